/* What a script knows by name: for the core, for the checks of a pipeline, and against a pipeline; and its tools as a
 * source, which answers at once, in place of the source that has the tool. */
#include <string.h>

#include "coreengine/tools/script/script_internal.h"

/* The stage of that name; of an inner pipeline "sub/inner". NULL: none. */
static const struct rv_agent *find_stage(const struct rv_pipeline *p, const char *name)
{
    int at = rv_pipeline_find_stage(p, rv_str_of(name));

    if (at >= 0)
        return &p->agents[at];
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        size_t len = strlen(a->name);
        const struct rv_agent *found = a->inner.pipeline && strncmp(name, a->name, len) == 0 && name[len] == '/'
                                           ? find_stage(a->inner.pipeline, name + len + 1)
                                           : NULL;
        if (found)
            return found;
    }
    return NULL;
}

/* The names in its `stages`, one after the other; NULL after the last one. */
static const char *next_name(const struct script_section *section, size_t *list, size_t *entry)
{
    while (*list < section->n) {
        const struct script_list *l = &section->lists[*list];

        if (*entry < (section->is_flat ? l->n : 1))
            return section->is_flat ? l->items[(*entry)++].stage : ((*entry)++, l->name);
        (*list)++;
        *entry = 0;
    }
    return NULL;
}

void rv_script_mark_stages(const rv_script *s, const struct rv_pipeline *p, bool *flags)
{
    size_t list = 0, entry = 0;
    const char *name;

    for (size_t i = 0; i < p->n_agents; i++)
        flags[i] = false;
    while ((name = next_name(&s->sections[RV_SCRIPT_STAGE], &list, &entry)) != NULL) {
        int stage = rv_pipeline_find_stage(p, rv_str_of(name));
        if (stage >= 0)
            flags[stage] = true;
    }
}

bool rv_script_has_stage(const rv_script *s, rv_str name)
{
    size_t list = 0, entry = 0;
    const char *each;

    while ((each = next_name(&s->sections[RV_SCRIPT_STAGE], &list, &entry)) != NULL)
        if (rv_str_is(name, each))
            return true;
    return false;
}

int rv_script_find_inner_stages(const rv_script *s, const struct rv_pipeline *p, json_object **out, rv_err **err)
{
    size_t list = 0, entry = 0;
    json_object *names = NULL;
    const char *name;
    int rc = 0;

    while (rc == 0 && (name = next_name(&s->sections[RV_SCRIPT_STAGE], &list, &entry)) != NULL) {
        if (rv_pipeline_find_stage(p, rv_str_of(name)) >= 0 || !find_stage(p, name))
            continue;
        if (!names && !(names = json_object_new_array()))
            rc = RV_FAIL(err, RV_E_NOMEM, "list the stages of a script");
        else
            rc = rv_json_push_take(names, json_object_new_string(name), err);
    }
    if (rc < 0)
        json_object_put(names);
    else
        *out = names;
    return rc;
}

bool rv_script_has_models(const rv_script *s)
{
    return !s->leaves_models && s->sections[RV_SCRIPT_MODEL].n > 0;
}

void rv_script_leave_models(rv_script *s, bool leaves)
{
    s->leaves_models = leaves;
}

bool rv_script_has_tool(const rv_script *s, rv_str tool)
{
    return rv_index_get(&s->tool_index, tool) >= 0;
}

bool rv_script_has_hook(const rv_script *s, rv_str hook, const char *stage)
{
    const struct script_section *section = &s->sections[RV_SCRIPT_HOOK];

    for (size_t i = 0; i < section->n; i++) {
        const struct script_list *list = &section->lists[i];
        if (list->name && !rv_str_is(hook, list->name))
            continue;
        for (size_t e = 0; e < list->n; e++) {
            const struct script_entry *one = &list->items[e];
            if ((!one->tool || rv_str_is(hook, one->tool)) && (!one->stage || strcmp(one->stage, stage) == 0))
                return true;
        }
    }
    return false;
}

const struct rv_tool_info *rv_script_find_tool(const rv_script *s, rv_str name)
{
    int at = rv_index_get(&s->tool_index, name);

    return at < 0 ? NULL : &s->tools[at].info;
}

const char *const *rv_script_tool_names(const rv_script *s, size_t *n)
{
    *n = s->n_tools;
    return s->tool_names;
}

/* --- its tools as a source --- */

static const struct rv_tool_info *find(void *self, rv_str name)
{
    return rv_script_find_tool(self, name);
}

static const char *const *names(void *self, size_t *n)
{
    return rv_script_tool_names(self, n);
}

static int call(void *self, struct rv_tool_call *c, rv_err **err)
{
    const struct rv_script_call asked = {.kind = RV_SCRIPT_TOOL,
                                         .stage = c->agent,
                                         .tool = c->tool,
                                         .visit = c->visit,
                                         .index = c->index,
                                         .branch = c->branch,
                                         .text = c->args};
    struct rv_script_reply reply;

    int rc = rv_script_next(self, &asked, &reply, err);
    if (rc < 0)
        return rc;
    struct rv_tool_reply out = rv_script_tool_reply(&reply);
    rv_tool_call_finish(c, &out);
    return 0;
}

static void cancel(void *self, struct rv_tool_call *c)
{
    (void)self; /* no call of a script is ever under way */
    (void)c;
}

static void close(void *self)
{
    (void)self;
}

static const struct rv_tool_source_ops ops = {
    .name = "script", .find = find, .names = names, .call = call, .cancel = cancel, .close = close};

struct rv_tool_source rv_script_tools(rv_script *s)
{
    return (struct rv_tool_source){.ops = &ops, .self = s, .stands_in = true};
}

struct rv_tool_reply rv_script_tool_reply(struct rv_script_reply *reply)
{
    struct rv_tool_reply out = {.failed = reply->failed,
                                .retryable = reply->retryable,
                                .error_type = reply->error_type,
                                .text = RV_BUF_INIT(RV_JSON_MAX_BYTES),
                                .after_us = reply->delay_ms * RV_US_PER_MS};

    if (reply->failed) {
        rv_buf_puts(&out.text, reply->error);
        out.partial = reply->body;
    } else {
        out.text = reply->body;
        out.reports_error = rv_tool_reply_reports_error(rv_buf_str(&out.text));
    }
    reply->body = RV_BUF_INIT(0);
    return out;
}

struct rv_catalog rv_script_catalog(rv_script *s, const struct rv_catalog *under)
{
    if (under->self == &s->catalog) /* composed again, it would ask itself forever */
        return *under;
    s->as_source = rv_script_tools(s);
    s->sources[0] = &s->as_source;
    s->catalog = (struct rv_tool_set){.under = *under, .sources = s->sources, .n_sources = RV_COUNT(s->sources)};
    return rv_tool_set_catalog(&s->catalog);
}

/* --- against a pipeline --- */

#define MAX_LISTED 12 /* stages in a hint: with 200 bytes each they fit an error's text */

static bool has_judge(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_tests; i++)
        if (p->tests[i].judge.rubric)
            return true;
    return false;
}

static void check_stage(const struct rv_pipeline *p, enum rv_script_kind kind, const char *name,
                        const struct rv_src *src, rv_findings *findings)
{
    const struct rv_agent *stage = name ? find_stage(p, name) : NULL;
    const char *near = name && !stage ? rv_nearest(rv_str_of(name), p->stage_names, p->n_agents) : NULL;
    rv_buf hint = RV_BUF_INIT(4096);

    if (near)
        rv_buf_printf(&hint, "did you mean \"%.200s\"?", near);
    for (size_t i = 0; !near && i < p->n_agents && i < MAX_LISTED; i++)
        rv_buf_printf(&hint, "%s%.200s", i ? ", " : "stages: ", p->stage_names[i]);
    if (name && !stage && !(kind == RV_SCRIPT_MODEL && has_judge(p) && strcmp(name, RV_TEST_JUDGE) == 0))
        rv_findings_add(findings, RV_SEVERITY_ERROR, src, hint.len ? rv_buf_cstr(&hint) : NULL,
                        "script: unknown stage \"%s\"", name);
    else if (stage && kind == RV_SCRIPT_MODEL && !stage->has_llm)
        rv_findings_add(findings, RV_SEVERITY_WARNING, src, "has_llm: true makes it one",
                        "script: stage \"%s\" asks no model", name);
    rv_buf_fini(&hint);
}

static void check_role(const struct rv_pipeline *p, const struct script_entry *e, rv_findings *findings)
{
    if (e->answer.role && p->n_models > 0 && !rv_pipeline_find_model(p, rv_str_of(e->answer.role)))
        rv_findings_add(findings, RV_SEVERITY_ERROR, &e->src, "answered_by is a role of the pipeline's models",
                        "script: unknown model role \"%s\"", e->answer.role);
}

/* Agents that are asked answer under their own names and call their own tools, which are not known in advance. */
static bool delegates(const struct rv_pipeline *p)
{
    bool found = false;

    for (size_t i = 0; i < p->n_agents && !found; i++) {
        const struct rv_agent *a = &p->agents[i];
        for (size_t t = 0; t < a->tools.allowed.n && a->has_tools && !found; t++)
            found = strcmp(a->tools.allowed.items[t], "ask_agent") == 0;
        found = found || (a->inner.pipeline && delegates(a->inner.pipeline));
    }
    return found;
}

/* May any stage, also of an inner pipeline, call it, as far as the pipeline alone tells? */
static bool is_callable(const struct rv_pipeline *p, const char *tool)
{
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        if ((a->tools.chained && strcmp(a->tools.chained, tool) == 0) ||
            (a->inner.pipeline && is_callable(a->inner.pipeline, tool)))
            return true;
        if (!a->has_tools)
            continue;
        if (!a->tools.allowed.is_set)
            return true;
        for (size_t t = 0; t < a->tools.allowed.n; t++)
            if (strcmp(rv_agent_callee(a, a->tools.allowed.items[t]), tool) == 0)
                return true;
    }
    return false;
}

static bool names_hook(const struct rv_agent *a, const char *hook)
{
    const struct rv_str_list *const lists[] = {&a->hooks.before_model, &a->hooks.after_model, &a->hooks.before_tool,
                                               &a->hooks.after_tool};

    if (strcmp(a->hooks.pre_process, hook) == 0 || strcmp(a->hooks.post_process, hook) == 0)
        return true;
    for (size_t l = 0; l < RV_COUNT(lists); l++)
        for (size_t i = 0; i < lists[l]->n; i++)
            if (strcmp(lists[l]->items[i], hook) == 0)
                return true;
    return false;
}

/* Does that stage, or without one any stage, of the pipeline or of an inner one name the hook? */
static bool is_hooked(const struct rv_pipeline *p, const char *stage, const char *hook)
{
    const struct rv_agent *one = stage ? find_stage(p, stage) : NULL;
    bool found = one && names_hook(one, hook);

    for (size_t i = 0; i < p->n_agents && !stage && !found; i++)
        found = names_hook(&p->agents[i], hook) ||
                (p->agents[i].inner.pipeline && is_hooked(p->agents[i].inner.pipeline, NULL, hook));
    return found;
}

static void check_hook(const struct rv_pipeline *p, const char *hook, const struct script_entry *e,
                       rv_findings *findings)
{
    if (!hook || is_hooked(p, e->stage, hook))
        return;
    if (e->stage && find_stage(p, e->stage))
        rv_findings_add(findings, RV_SEVERITY_WARNING, &e->src, NULL, "script: stage \"%s\" does not name hook \"%s\"",
                        e->stage, hook);
    else if (!e->stage)
        rv_findings_add(findings, RV_SEVERITY_WARNING, &e->src, NULL,
                        "script: no stage of the pipeline names hook \"%s\"", hook);
}

void rv_script_check(const rv_script *s, const struct rv_pipeline *p, rv_findings *findings)
{
    bool asks = delegates(p);

    for (int kind = 0; kind < RV_N_SCRIPT_KINDS; kind++) {
        const struct script_section *section = &s->sections[kind];
        for (size_t i = 0; i < section->n; i++) {
            const struct script_list *list = &section->lists[i];
            bool may_be_agent = asks && kind == RV_SCRIPT_MODEL;
            if (!section->is_flat && kind != RV_SCRIPT_TOOL && kind != RV_SCRIPT_HOOK && !may_be_agent)
                check_stage(p, (enum rv_script_kind)kind, list->name, &list->src, findings);
            for (size_t e = 0; e < list->n; e++) {
                if (list->items[e].stage && !may_be_agent)
                    check_stage(p, (enum rv_script_kind)kind, list->items[e].stage, &list->items[e].src, findings);
                check_role(p, &list->items[e], findings);
                if (kind == RV_SCRIPT_HOOK)
                    check_hook(p, section->is_flat ? list->items[e].tool : list->name, &list->items[e], findings);
            }
        }
    }
    for (size_t i = 0; i < s->n_tools; i++)
        if (!asks && !is_callable(p, s->tools[i].info.name))
            rv_findings_add(findings, RV_SEVERITY_WARNING, &s->tools[i].src, NULL,
                            "script: no stage of the pipeline may call tool \"%s\"", s->tools[i].info.name);
}
