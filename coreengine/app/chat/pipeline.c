/* An agent as a pipeline of one stage: made, bound to its document, checked, and put into the store as the bundle that
 * its turns are started with. Made again only when the document or the chat's options change: chats of one front share
 * them. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/chat/chat_internal.h"

#define MAX_TEXT      ((size_t)1 << 20) /* bytes of a made pipeline: as RV_YAML_MAX_BYTES */
#define MAX_PIPELINES 16                /* that are kept: agents of one chat; a person talks to a few */
#define MAX_SHARED    64 /* of all chats of a front, beside those in use: each has its documents in memory */
#define PUT_AGAIN_US  (10 * RV_US_PER_MIN) /* far below the time for which a sweep leaves an unused bundle alone */
#define MAX_LLM_CALLS 100                  /* of one turn, with the agents that are asked: each can cost */
#define ASKED_ROLE    "asked"

/* --- what it is made from --- */

struct made_from {
    struct rv_agent_pipeline pipeline;
    struct rv_agent_model_role models[2];
};

static struct rv_agent_model_role model_role(const char *role, const char *model, const struct rv_chat_settings *s)
{
    return (struct rv_agent_model_role){.role = role,
                                        .model = model,
                                        .has_temperature = s->has_temperature,
                                        .temperature = s->temperature,
                                        .max_tokens = s->max_tokens};
}

/* Borrows from the chat and from what was found. */
static void describe(const rv_chat *chat, const struct rv_agents_found *found, struct made_from *m)
{
    const struct rv_agentdoc *doc = found->doc;
    const struct rv_chat_opts *o = &chat->opts;
    const struct rv_chat_settings *s = &o->settings;
    bool has_model = o->model && !doc->model_overrides;

    m->models[0] = model_role("default", o->context.default_model ? o->context.default_model : s->default_model, s);
    if (has_model)
        m->models[1] = model_role(ASKED_ROLE, o->model, s);
    m->pipeline =
        (struct rv_agent_pipeline){.agent = doc->name,
                                   .document = found->text,
                                   .file = "chat",
                                   .place = found->place,
                                   .structured = RV_UNSET,
                                   .child_text = o->child_text ? rv_child_text_of(rv_str_of(o->child_text)) : RV_UNSET,
                                   .role = has_model ? ASKED_ROLE : NULL,
                                   .has_temperature = !doc->has_temperature && s->has_temperature,
                                   .temperature = s->temperature,
                                   .max_tokens = doc->max_tokens == 0 ? s->max_tokens : 0,
                                   .models = m->models,
                                   .n_models = has_model ? 2 : 1,
                                   .capabilities = o->capabilities,
                                   .n_capabilities = o->n_capabilities,
                                   .max_llm_calls = MAX_LLM_CALLS,
                                   .agent_request_limit = s->request_limit,
                                   .agent_token_limit = s->token_limit};
    chat_request_apply(chat, doc, &m->pipeline);
}

/* All its digits: %g has six. */
static void write_number(rv_buf *text, double number)
{
    rv_jw w = rv_jw_on(text);

    rv_jw_double(&w, number);
}

/* What tells the pipelines of one chat apart: the document, and what can change while the chat goes on. */
static int hash_of(const struct made_from *m, char checksum[RV_HASH_MAX], rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    struct rv_hash hash;

    for (size_t i = 0; i < m->pipeline.n_models; i++)
        rv_buf_printf(&text, "%s\n", m->models[i].model);
    rv_buf_printf(&text, "%s %s %lld %lld\n", m->pipeline.place ? m->pipeline.place : "",
                  m->pipeline.role ? m->pipeline.role : "", (long long)m->pipeline.agent_request_limit,
                  (long long)m->pipeline.agent_token_limit);
    for (size_t i = 0; i < m->pipeline.n_models; i++) {
        write_number(&text, m->models[i].temperature);
        rv_buf_printf(&text, " %d %lld\n", m->models[i].has_temperature, (long long)m->models[i].max_tokens);
    }
    write_number(&text, m->pipeline.temperature);
    rv_buf_printf(&text, " %d %d %lld", m->pipeline.child_text, m->pipeline.has_temperature,
                  (long long)m->pipeline.max_tokens);
    rv_buf_printf(&text, " %d %d %lld %s\n", m->pipeline.requires_tool, m->pipeline.has_seed,
                  (long long)m->pipeline.seed, m->pipeline.attachments ? m->pipeline.attachments : "");
    if (m->pipeline.client_tools)
        rv_json_write(m->pipeline.client_tools, &text);
    rv_buf_putc(&text, '\n');
    if (m->pipeline.output_schema)
        rv_json_write(m->pipeline.output_schema, &text);
    int rc = rv_buf_check(&text, "a chat's pipeline", err);
    rv_hash_init(&hash);
    rv_hash_add(&hash, m->pipeline.document);
    rv_hash_add(&hash, rv_buf_str(&text));
    rv_hash_finish_hex(&hash, checksum);
    rv_buf_fini(&text);
    return rc;
}

/* --- loading --- */

/* The first finding that is an error, as one. */
static int fail_findings(rv_findings *findings, const char *agent, rv_err **err)
{
    for (size_t i = 0; i < rv_findings_n(findings); i++) {
        struct rv_finding f = rv_findings_at(findings, i);
        if (f.severity == RV_SEVERITY_WARNING)
            continue;
        int rc = RV_FAIL_AT(err, &f.src, RV_E_INVALID, "%s", f.text);
        if (f.hint)
            rv_err_set_hint(err, "%s", f.hint);
        return RV_WRAP(err, rc, "agent \"%s\" cannot be used", agent);
    }
    return RV_FAIL(err, RV_E_INVALID, "agent \"%s\" cannot be used", agent);
}

static int check_tool(const rv_chat *chat, const char *agent, const char *tool, const char *why, rv_err **err)
{
    const struct rv_catalog *c = &chat->catalog;
    const char *names[256];
    size_t n = 0;

    if (strcmp(tool, "ask_agent") == 0 || c->tool(c->self, rv_str_of(tool)))
        return 0;
    while (c->tool_name && n < RV_COUNT(names) - 1 && (names[n] = c->tool_name(c->self, n)))
        n++;
    names[n++] = "ask_agent";
    const char *near = rv_nearest(rv_str_of(tool), names, n);
    int rc = RV_FAIL(err, RV_E_STATE, "agent \"%s\" names %s \"%s\", and no capability that is open has it", agent, why,
                     tool);
    if (near)
        rv_err_set_hint(err,
                        "did you mean \"%s\"? else open the capability that has it (--capability NAME; `reeve inspect` "
                        "lists their tools)",
                        near);
    else
        rv_err_set_hint(
            err,
            "open the capability that has it (--capability NAME; `reeve inspect` lists their tools), or take it out of "
            "the agent's tools");
    return rc;
}

static int check_tools(const rv_chat *chat, const struct rv_pipeline *p, rv_err **err)
{
    const struct rv_agent *a = &p->agents[0];
    int rc = 0;

    for (size_t i = 0; i < a->tools.allowed.n && rc == 0; i++)
        rc = check_tool(chat, a->declared.name, rv_agent_callee(a, a->tools.allowed.items[i]), "tool", err);
    if (rc == 0 && a->tools.chained[0])
        rc = check_tool(chat, a->declared.name, a->tools.chained, "chained tool", err);
    return rc;
}

/* *out NULL with 0: the findings say why. */
static int bind(const rv_chat *chat, const struct made_from *m, rv_findings *findings, struct rv_pipeline **out,
                rv_err **err)
{
    int rc = rv_pipeline_build_agent(&m->pipeline, findings, out, err);

    if (rc == 0 && *out)
        rc = rv_schema_check_pipeline(*out, findings, err);
    if (rc == 0 && *out)
        rv_tools_check_chains(*out, &chat->catalog, findings);
    return rc == 0 ? rv_findings_check(findings, err) : rc;
}

static int load(const rv_chat *chat, const struct made_from *m, struct rv_pipeline **out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;

    int rc = findings ? bind(chat, m, findings, &p, err) : RV_FAIL(err, RV_E_NOMEM, "load an agent");
    if (rc == 0 && (!p || !p->is_sound))
        rc = fail_findings(findings, m->pipeline.agent, err);
    if (rc == 0)
        rc = check_tools(chat, p, err);
    rv_findings_free(findings);
    if (rc < 0) {
        rv_pipeline_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

/* --- checking alone --- */

/* A tool that a document names, and as what. Borrowed. */
struct named_tool {
    const char *tool, *why;
    const struct rv_src *src;
};
/* A tool that is not there is a finding here. */
static int find_tool(const rv_chat *chat, const struct rv_agentdoc *doc, const struct named_tool *named,
                     rv_findings *findings, rv_err **err)
{
    rv_err *fault = NULL;
    int rc = check_tool(chat, doc->name, named->tool, named->why, &fault);

    if (rc < 0 && !rv_err_is(fault, RV_E_NOMEM)) {
        rv_findings_add_err(findings, RV_SEVERITY_ERROR, named->src, fault);
        rc = 0;
    } else if (rc < 0) {
        rc = RV_FAIL(err, RV_E_NOMEM, "check agent \"%s\"", doc->name);
    }
    rv_err_free(fault);
    return rc;
}

static bool is_told(const rv_findings *findings, const struct rv_finding *f)
{
    for (size_t i = 0; i < rv_findings_n(findings); i++) {
        struct rv_finding one = rv_findings_at(findings, i);
        bool is_there = f->src.line == 0 || (one.src.line == f->src.line && one.src.col == f->src.col);
        if (is_there && strcmp(one.text, f->text) == 0)
            return true;
    }
    return false;
}

/* Reading the document again finds again what was found in it, now and then without the place. */
static void add_new(rv_findings *findings, const rv_findings *more)
{
    for (size_t i = 0; i < rv_findings_n(more); i++) {
        struct rv_finding f = rv_findings_at(more, i);
        if (f.severity != RV_SEVERITY_WARNING && !is_told(findings, &f))
            rv_findings_add_as(findings, f.severity, f.code, &f.src, f.hint, "%s", f.text);
    }
}

int rv_chat_check_agent(rv_plugins *plugins, const struct rv_agents_found *found, rv_findings *findings, rv_err **err)
{
    const struct rv_agentdoc *doc = found->doc;
    rv_chat chat = {.opts = {.settings = {.default_model = "openai:any", .max_tokens = 1}},
                    .catalog = rv_plugins_catalog(plugins)};
    rv_findings *more = rv_findings_new();
    struct rv_pipeline *p = NULL;
    struct made_from m;
    int rc = more ? 0 : RV_FAIL(err, RV_E_NOMEM, "check an agent");

    describe(&chat, found, &m);
    if (rc == 0)
        rc = bind(&chat, &m, more, &p, err);
    if (rc == 0)
        add_new(findings, more);
    for (size_t i = 0; rc == 0 && i < doc->n_tools; i++)
        rc = find_tool(&chat, doc,
                       &(const struct named_tool){.tool = rv_agentdoc_find_resource(doc, doc->tools[i].name)
                                                              ? RV_TOOL_READ_RESOURCE
                                                              : doc->tools[i].name,
                                                  .why = "tool",
                                                  .src = &doc->tools[i].src},
                       findings, err);
    if (rc == 0 && doc->chained_tool)
        rc = find_tool(
            &chat, doc,
            &(const struct named_tool){.tool = doc->chained_tool, .why = "chained tool", .src = &doc->chained_src},
            findings, err);
    rv_pipeline_free(p);
    rv_findings_free(more);
    return rc;
}

static int put_bundle(const rv_chat *chat, struct chat_pipeline *cp, rv_err **err)
{
    struct rv_known_names names = rv_plugins_names(chat->opts.plugins);
    const struct rv_bundle_source from = {
        .pipeline = cp->pipeline, .catalog = &chat->under, .names = &names, .script = chat->opts.script};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_BUNDLE);

    int rc = rv_bundle_write(&from, &text, NULL, err);
    if (rc == 0)
        rc = rv_store_put_blob(chat->opts.store, rv_buf_str(&text), cp->bundle, err);
    rv_buf_fini(&text);
    return rc;
}

/* --- the ones there are --- */

static void drop(struct chat_pipeline *cp)
{
    if (--cp->n_refs > 0)
        return;
    rv_pipeline_free(cp->pipeline);
    free(cp->agent);
    free(cp);
}

/* Drop what is behind the first `max` of a list, but for one that is in use. */
static void keep_few(struct chat_pipelines *list, size_t max, const struct chat_pipeline *used)
{
    for (size_t i = max; i < list->n;) {
        struct chat_pipeline *cp = list->items[i];
        if (cp == used) {
            i++;
            continue;
        }
        memmove(list->items + i, list->items + i + 1, (list->n - i - 1) * sizeof(struct chat_pipeline *));
        list->n--;
        drop(cp);
    }
}

/* To the front; room was made. */
static void put_first(struct chat_pipelines *list, struct chat_pipeline *cp)
{
    memmove(list->items + 1, list->items, list->n * sizeof(struct chat_pipeline *));
    list->items[0] = cp;
    list->n++;
    cp->n_refs++;
}

static struct chat_pipeline *find(const struct chat_pipelines *list, const char *checksum)
{
    for (size_t i = 0; list && i < list->n; i++)
        if (strcmp(list->items[i]->checksum, checksum) == 0)
            return list->items[i];
    return NULL;
}

void chat_pipelines_fini(struct chat_pipelines *list)
{
    keep_few(list, 0, NULL);
    free(list->items);
    *list = (struct chat_pipelines){.n = 0};
}

rv_chat_pipelines *rv_chat_pipelines_new(void)
{
    return calloc(1, sizeof(rv_chat_pipelines));
}

void rv_chat_pipelines_free(rv_chat_pipelines *list)
{
    if (list)
        chat_pipelines_fini(list);
    free(list);
}

static int make(const rv_chat *chat, const struct rv_agents_found *found, const struct made_from *m,
                const char *checksum, struct chat_pipeline **out, rv_err **err)
{
    struct chat_pipeline *cp = calloc(1, sizeof *cp);

    if (!cp)
        return RV_FAIL(err, RV_E_NOMEM, "load an agent");
    cp->n_refs = 1;
    cp->agent = rv_str_dup(rv_str_of(found->doc->name));
    memcpy(cp->checksum, checksum, sizeof cp->checksum);
    cp->routing_max_turns = found->doc->routing_max_turns;
    int rc = cp->agent ? load(chat, m, &cp->pipeline, err) : RV_FAIL(err, RV_E_NOMEM, "load an agent");
    if (rc < 0) {
        drop(cp);
        return rc;
    }
    *out = cp;
    return 0;
}

/* The bundle is in the store, and stays there until the turn refers to it. */
static int keep_bundle(const rv_chat *chat, struct chat_pipeline *cp, rv_err **err)
{
    int64_t now_us = rv_engine_now_us(chat->opts.engine);

    if (cp->put_us > 0 && now_us - cp->put_us < PUT_AGAIN_US)
        return 0;
    int rc = put_bundle(chat, cp, err);
    if (rc == 0)
        cp->put_us = now_us;
    return rc;
}

/* The chat uses it from now on, and other chats may. */
static int take_up(rv_chat *chat, struct chat_pipeline *cp, rv_err **err)
{
    struct chat_pipelines *own = &chat->pipelines, *shared = chat->opts.pipelines;
    bool is_own = find(own, cp->checksum), is_shared = !shared || find(shared, cp->checksum);

    if ((!is_own && !rv_has_room(&own->items, &own->cap, own->n + 1, sizeof(struct chat_pipeline *))) ||
        (!is_shared && !rv_has_room(&shared->items, &shared->cap, shared->n + 1, sizeof(struct chat_pipeline *))))
        return RV_FAIL(err, RV_E_NOMEM, "load an agent");
    if (!is_own) {
        put_first(own, cp);
        keep_few(own, MAX_PIPELINES, chat->with);
    }
    if (!is_shared) {
        put_first(shared, cp);
        keep_few(shared, MAX_SHARED, NULL);
    }
    return 0;
}

/* Said in the words of who chats, before the engine names the role that the made pipeline has for the model. */
static int check_script(const rv_chat *chat, const struct rv_agents_found *found, const struct made_from *m,
                        rv_err **err)
{
    const char *model = m->models[m->pipeline.n_models - 1].model;

    if (chat->opts.script || found->doc->model_overrides || strncmp(model, "scripted:", strlen("scripted:")) != 0)
        return 0;
    RV_FAIL(err, RV_E_INVALID, "model \"%s\" is played by a script, and the chat has none", model);
    rv_err_set_hint(err,
                    "give the script with --script FILE, or name a provider and its model, such as openai:gpt-5-mini");
    return RV_E_INVALID;
}

int chat_pipeline_of(rv_chat *chat, const char *agent, const struct chat_pipeline **out, rv_err **err)
{
    struct rv_store_scope scope = chat_scope(chat);
    struct chat_pipeline *cp = NULL;
    struct rv_agents_found found;
    struct made_from m;
    char checksum[RV_HASH_MAX];

    int rc = chat_request_check(chat, err);
    if (rc == 0)
        rc = rv_agents_find(chat->opts.agents, &scope, agent, &found, err);
    if (rc < 0)
        return rc;
    describe(chat, &found, &m);
    rc = check_script(chat, &found, &m, err);
    if (rc == 0)
        rc = chat_request_tools(chat, found.doc, &m.pipeline.client_tools, err);
    if (rc == 0)
        rc = hash_of(&m, checksum, err);
    if (rc == 0 && ((cp = find(&chat->pipelines, checksum)) || (cp = find(chat->opts.pipelines, checksum))))
        cp->n_refs++;
    else if (rc == 0)
        rc = make(chat, &found, &m, checksum, &cp, err);
    json_object_put(m.pipeline.client_tools);
    if (rc < 0)
        return rc;
    rc = keep_bundle(chat, cp, err);
    if (rc == 0)
        rc = take_up(chat, cp, err);
    if (rc == 0)
        *out = cp; /* the chat has it */
    drop(cp);
    return rc;
}
