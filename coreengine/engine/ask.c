/* Agents as a source of one tool, ask_agent: its answer is the document of the agent that is asked, and the core then
 * runs that agent. Also the context of a call, which tells a tool which agent calls it. */
#include <stdlib.h>

#include "coreengine/engine/engine_internal.h"
#include "envelope/envelope.h"

#define MAX_DOCUMENT (2 * RV_AGENTDOC_MAX_BYTES) /* bytes of a document as JSON: twice its text, for its escapes */
#define MAX_CONTEXT  ((size_t)64 << 10)          /* bytes of the context that a call names: ids, names and a role */

struct rv_context engine_call_who(const struct call *c)
{
    const struct rv_conversation *conversation = c->x->opts.conversation;
    const struct rv_envelope_fields *f = rv_envelope_fields(rv_run_envelope(c->x->run));
    const struct rv_agent *a =
        c->origin || !c->pipeline ? &c->x->opts.pipeline->agents[c->stage] : &c->pipeline->agents[c->agent];
    struct rv_context base = {.user_id = rv_envelope_user(rv_run_envelope(c->x->run)),
                              .tenant_id = RV_STORE_TENANT,
                              .session_id = f->session_id};

    if (conversation)
        base = conversation->context;
    if (c->origin)
        return rv_context_child(&base, c->origin->agent, NULL);
    return a->declared.doc ? rv_context_child(&base, a->declared.doc->name, NULL) : base;
}

char *engine_call_context(const struct call *c)
{
    const struct rv_context context = engine_call_who(c);
    rv_buf text = RV_BUF_INIT(MAX_CONTEXT);
    rv_jw w = rv_jw_on(&text);

    rv_context_write_json(&context, &w);
    char *out = text.rc == 0 ? rv_buf_steal(&text, NULL) : text.rc == RV_E_NOMEM ? NULL : rv_str_dup(RV_STR_LIT("{}"));
    rv_buf_fini(&text);
    return out;
}

/* --- the source --- */

static const struct rv_tool_info *find(void *self, rv_str name)
{
    (void)self;
    return rv_str_is(name, rv_tool_ask_agent.name) ? &rv_tool_ask_agent : NULL;
}

static const char *const *names(void *self, size_t *n)
{
    (void)self;
    *n = 0; /* an agent that may ask others lists the tool itself */
    return NULL;
}

static int answer(const char *name, rv_str document, rv_buf *out, rv_err **err)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "agent", name);
    rv_jw_kv_str(&w, "agent_document", document);
    rv_jw_obj_end(&w);
    return rv_buf_check(out, "the document of an agent", err);
}

static int look_up(const struct ask_tools *t, const struct rv_tool_call *c, const char *name, rv_buf *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_DOCUMENT);

    int rc = t->find_agent ? t->find_agent(t->find_self, c->context, name, &text, err)
                           : RV_FAIL(err, RV_E_NOT_FOUND, "no agent can be asked here: there is no source of agents");
    if (rc == 0)
        rc = answer(name, rv_buf_str(&text), out, err);
    rv_buf_fini(&text);
    return rc;
}

/* The reason of the failure and the places that were searched are for the author of the agent, not for a model. Frees
 * why. */
static void fail(const struct ask_tools *t, const char *name, int rc, rv_err *why, struct rv_tool_reply *reply)
{
    bool is_unknown = rc == RV_E_NOT_FOUND && t->find_agent;

    reply->failed = true;
    reply->error_type = is_unknown ? rv_error_not_found : rv_error_agent;
    rv_buf_fini(&reply->text);
    reply->text = RV_BUF_INIT(RV_ENGINE_MAX_ERROR);
    if (is_unknown) {
        rv_buf_printf(&reply->text, "Agent '%s' not found", name);
    } else {
        RV_LOG(t->log, WARN, "agent.unusable", RV_F_TEXT("agent", name), RV_F_ERR("error", why));
        rv_buf_printf(&reply->text, "Agent '%s' cannot be used: its document has faults", name);
    }
    rv_err_free(why);
}

static int call(void *self, struct rv_tool_call *c, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = c->args.len + 1, .what = "question to an agent"};
    struct rv_tool_reply reply = {.text = RV_BUF_INIT(2 * MAX_DOCUMENT)};
    json_object *args = NULL;
    rv_err *why = NULL;

    if (!find(self, rv_str_of(c->tool)))
        return RV_FAIL(err, RV_E_NOT_FOUND, "the engine has no tool \"%s\"", c->tool);
    int rc = rv_json_parse(c->args, &opts, &args, err);
    if (rc < 0)
        return rc;
    const char *name = rv_json_text_or(args, "agent_name", "");
    rc = look_up(self, c, name, &reply.text, &why);
    if (rc < 0 && rv_err_is(why, RV_E_NOMEM)) {
        rv_err_free(why);
        rv_buf_fini(&reply.text);
        json_object_put(args);
        return RV_FAIL(err, RV_E_NOMEM, "find an agent");
    }
    if (rc < 0)
        fail(self, name, rc, why, &reply);
    rv_tool_call_finish(c, &reply);
    json_object_put(args);
    return 0;
}

static void cancel(void *self, struct rv_tool_call *c)
{
    (void)self; /* each call is answered when it begins */
    (void)c;
}

static void close(void *self)
{
    (void)self;
}

static const struct rv_tool_source_ops ops = {
    .name = "agents", .find = find, .names = names, .call = call, .cancel = cancel, .close = close};

struct rv_tool_source *engine_ask_tools_init(struct ask_tools *t, const struct rv_exec_opts *o, rv_log *log)
{
    *t = (struct ask_tools){.source = {.ops = &ops, .self = t, .is_engines = true},
                            .find_agent = o->find_agent,
                            .find_self = o->find_self,
                            .log = log};
    return &t->source;
}
