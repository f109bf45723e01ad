/* The tools of a set of capabilities as a source. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/conversation/conversation.h"
#include "coreengine/tools/plugin/plugin_internal.h"

#define MAX_ERROR   ((size_t)2 << 20)  /* text of a failed call: a quarter of RV_CAP_MAX_REPLY */
#define MAX_CONTEXT ((size_t)64 << 10) /* bytes of the context that a call is given: ids, names and a role */

static const struct rv_tool_info *find(void *self, rv_str name)
{
    const struct rv_plugin_tools *t = self;
    const struct rv_plugin_entry *e = plugin_find(t->plugins, RV_NAME_TOOL, name);

    return e ? &e->tool : NULL;
}

static bool identity(void *self, rv_str name, char out[RV_HASH_MAX])
{
    const struct rv_plugin_tools *t = self;
    const struct rv_plugin_entry *e = plugin_find(t->plugins, RV_NAME_TOOL, name);

    if (e)
        memcpy(out, e->owner->identity, RV_HASH_MAX);
    return e != NULL;
}

static const char *const *names(void *self, size_t *n)
{
    const struct rv_plugin_tools *t = self;

    *n = t->plugins->names.n_lists[RV_NAME_TOOL];
    return t->plugins->names.lists[RV_NAME_TOOL];
}

static void tool_done(struct rv_plugin_work *w)
{
    struct rv_tool_reply reply = {.failed = w->failure != NULL, .reports_error = w->reports_error};

    if (w->failure) {
        reply.error_type = rv_plugin_error_type(w->failure);
        reply.code = rv_plugin_failure_code(w->failure);
        reply.text = RV_BUF_INIT(MAX_ERROR);
        rv_err_write_chain(w->failure, &reply.text);
    } else {
        reply.text = w->reply;
        w->reply = RV_BUF_INIT(0);
    }
    rv_tool_call_finish(w->self, &reply);
}

static void tool_told(struct rv_plugin_work *w, const struct rv_tool_progress *p)
{
    struct rv_tool_call *c = w->self;

    if (c->progress)
        c->progress(c, p);
}

static int call(void *self, struct rv_tool_call *c, rv_err **err)
{
    const struct rv_plugin_tools *t = self;
    RV_AUTO(rv_buf_fini) rv_buf context = RV_BUF_INIT(MAX_CONTEXT);
    rv_jw json = rv_jw_on(&context);

    if (!find(self, rv_str_of(c->tool)))
        return plugin_fail_unknown(t->plugins, RV_NAME_TOOL, c->tool, err);
    rv_context_write_json(c->context, &json);
    const struct rv_plugin_call what = {.kind = RV_NAME_TOOL,
                                        .name = c->tool,
                                        .args = c->args,
                                        .run_id = c->run_id,
                                        .call_id = c->call_id,
                                        .stage = c->stage,
                                        .user_id = c->user_id,
                                        .session_id = c->session_id,
                                        .idempotency_key = c->key,
                                        .context = context.rc == 0 ? rv_buf_cstr(&context) : "{}",
                                        .timeout_ms = c->timeout_ms};
    struct rv_plugin_work *w = context.rc == RV_E_NOMEM ? NULL : rv_plugin_work_new(t->plugins, &what, tool_done, c);
    if (!w)
        return RV_FAIL(err, RV_E_NOMEM, "call tool \"%s\"", c->tool);
    w->on_progress = tool_told;
    c->state = w;
    int rc = t->workers.begin(t->workers.self, &w->work, err);
    if (rc < 0)
        w->work.free(&w->work);
    return rc;
}

static void cancel(void *self, struct rv_tool_call *c)
{
    const struct rv_plugin_tools *t = self;
    struct rv_plugin_work *w = c->state;

    t->workers.give_up(t->workers.self, &w->work);
}

static void close(void *self)
{
    (void)self; /* the set is its owner's */
}

static const struct rv_tool_source_ops ops = {.name = "capabilities",
                                              .find = find,
                                              .identity = identity,
                                              .names = names,
                                              .call = call,
                                              .cancel = cancel,
                                              .close = close};

struct rv_tool_source *rv_plugin_tools_init(struct rv_plugin_tools *t, rv_plugins *p,
                                            const struct rv_tool_workers *workers)
{
    *t = (struct rv_plugin_tools){.source = {.ops = &ops, .self = t}, .plugins = p, .workers = *workers};
    return &t->source;
}
