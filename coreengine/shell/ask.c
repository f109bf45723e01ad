/* Agents that are asked: the document of one, as the answer to ask_agent; and who asks, as tools are told. */
#include <stdlib.h>

#include "coreengine/shell/shell_internal.h"

#define MAX_DOCUMENT (2 * RV_AGENTDOC_MAX_BYTES)
#define MAX_CONTEXT  ((size_t)64 << 10)

/* The context of whoever makes the call: each agent on the way down has its own name in it. */
static struct rv_context context_of(const struct call *c)
{
    const struct rv_conversation *talk = c->x->opts.conversation;
    const struct rv_envelope_fields *f = rv_envelope_fields(rv_run_envelope(c->x->run));
    const struct rv_agent *a = &c->x->opts.pipeline->agents[c->stage];
    struct rv_context base = {.user_id = rv_envelope_user(rv_run_envelope(c->x->run)),
                              .tenant_id = RV_STORE_TENANT,
                              .session_id = f->session_id};

    if (talk)
        base = talk->context;
    if (c->origin)
        return rv_context_child(&base, c->origin->agent, NULL);
    return a->declared.doc ? rv_context_child(&base, a->declared.doc->name, NULL) : base;
}

char *rv_call_context(const struct call *c)
{
    const struct rv_context context = context_of(c);
    rv_buf text = RV_BUF_INIT(MAX_CONTEXT);
    rv_jw w = rv_jw_on(&text);

    rv_context_write_json(&context, &w);
    char *out = text.rc == 0 ? rv_buf_steal(&text, NULL) : text.rc == RV_E_NOMEM ? NULL : rv_str_dup(RV_STR_LIT("{}"));
    rv_buf_fini(&text);
    return out;
}

static int look_up(struct call *c, const char *name, rv_buf *text, rv_err **err)
{
    const struct rv_exec_opts *o = &c->x->opts;
    const struct rv_context who = context_of(c);

    if (!o->find_agent)
        return RV_FAIL(err, RV_E_NOT_FOUND, "no agent can be asked here: nobody knows where agents are");
    return o->find_agent(o->find_self, &who, name, text, err);
}

static int answer(struct call *c, const char *name, rv_str document, rv_err **err)
{
    rv_jw w;

    rv_buf_fini(&c->text);
    c->text = RV_BUF_INIT(2 * MAX_DOCUMENT);
    w = rv_jw_on(&c->text);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "agent", name);
    rv_jw_kv_str(&w, "agent_document", document);
    rv_jw_obj_end(&w);
    return rv_buf_check(&c->text, "the document of an agent", err);
}

int rv_call_find_agent(struct call *c, const struct rv_effect *e, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = e->request_len + 1, .what = "question to an agent"};
    rv_buf text = RV_BUF_INIT(MAX_DOCUMENT);
    json_object *args = NULL;
    const char *name = "";
    rv_err *cause = NULL;

    int rc = rv_json_parse((rv_str){e->request, e->request_len}, &opts, &args, err);
    if (rc < 0)
        return rc;
    RV_IGNORE(!rv_json_get_text(args, "agent_name", &name), "the core has looked at it");
    rc = look_up(c, name, &text, &cause);
    if (rc == 0)
        rc = answer(c, name, rv_buf_str(&text), &cause);
    if (rc < 0 && rv_err_is(cause, RV_E_NOMEM)) {
        rc = RV_FAIL(err, RV_E_NOMEM, "find an agent");
    } else if (rc == RV_E_NOT_FOUND && c->x->opts.find_agent) { /* where was looked is nothing for a model */
        rv_call_fail(c, "NotFoundError", false, "Agent '%s' not found", name);
        rc = 0;
    } else if (rc < 0) { /* why is for whoever keeps the agent, not for a model */
        RV_LOG(c->x->engine->opts.log, WARN, "agent.unusable", RV_F_TEXT("agent", name), RV_F_ERR("error", cause));
        rv_call_fail(c, "AgentError", false, "Agent '%s' can not be used: its document has faults", name);
        rc = 0;
    }
    rv_err_free(cause);
    rv_buf_fini(&text);
    json_object_put(args);
    return rc;
}
