/* Calls as work for threads that may wait, and the tools of a set of capabilities as a source that uses it. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/conversation/context.h"
#include "coreengine/model/llm/llm.h"
#include "coreengine/tools/plugin/plugin_internal.h"

#define MAX_ERROR   ((size_t)2 << 20) /* text of a failed call */
#define MAX_CONTEXT ((size_t)64 << 10)

/* --- work --- */

static struct rv_llm_reply *provider_reply(const struct rv_plugin_work *w)
{
    struct rv_llm_reply *llm = calloc(1, sizeof *llm);
    rv_err *err = NULL;

    if (!llm)
        return NULL;
    if (w->failure) {
        rv_plugin_llm_failure(w->failure, llm);
    } else if (rv_plugin_llm_reply(rv_buf_str(&w->reply), llm, &err) < 0) {
        rv_plugin_llm_failure(err, llm);
        rv_err_free(err);
    }
    return llm;
}

static bool run(struct rv_tool_work *work)
{
    struct rv_plugin_work *w = (struct rv_plugin_work *)work;

    int rc = rv_plugins_call(w->plugins, &w->call, &w->reply, &w->failure);
    w->is_late = rc == RV_PLUGIN_LATE;
    if (w->is_late)
        return false;
    if (w->call.kind == RV_NAME_PROVIDER)
        w->llm = provider_reply(w);
    else if (w->call.kind == RV_NAME_TOOL && rc == 0)
        w->reports_error = rv_tool_reply_reports_error(rv_buf_str(&w->reply));
    return true;
}

static void work_done(struct rv_tool_work *work)
{
    struct rv_plugin_work *w = (struct rv_plugin_work *)work;

    if (w->is_late) {
        w->reply = w->late_reply;
        w->failure = w->late_failure;
        w->late_reply = RV_BUF_INIT(0);
        w->late_failure = NULL;
        w->reports_error =
            w->call.kind == RV_NAME_TOOL && !w->failure && rv_tool_reply_reports_error(rv_buf_str(&w->reply));
    }
    w->done(w);
}

static void free_work(struct rv_tool_work *work)
{
    struct rv_plugin_work *w = (struct rv_plugin_work *)work;

    rv_late_forget(w);
    rv_buf_fini(&w->reply);
    rv_err_free(w->failure);
    rv_buf_fini(&w->late_reply);
    rv_err_free(w->late_failure);
    if (w->llm)
        rv_llm_reply_fini(w->llm);
    free(w->llm);
    free(w);
}

/* A text that the work keeps, behind the last one. */
static const char *keep(char **at, rv_str text)
{
    char *copy = *at;

    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *at = copy + text.len + 1;
    return copy;
}

/* One block: the work, and behind it the texts of the call. */
struct rv_plugin_work *rv_plugin_work_new(rv_plugins *p, const struct rv_plugin_call *call,
                                          void (*done)(struct rv_plugin_work *w), void *self)
{
    const char *ids[] = {call->name,       call->run_id,          call->stage,  call->user_id,
                         call->session_id, call->idempotency_key, call->context};
    const struct rv_plugin_entry *e = rv_plugin_find(p, call->kind, rv_str_of(call->name));
    size_t size = sizeof(struct rv_plugin_work) + call->args.len + 1;

    for (size_t i = 0; i < RV_COUNT(ids); i++)
        size += rv_str_of(ids[i]).len + 1; /* NULL is "" */
    struct rv_plugin_work *w = malloc(size);
    if (!w)
        return NULL;
    char *at = (char *)(w + 1);
    *w = (struct rv_plugin_work){.work = {.run = run, .done = work_done, .free = free_work},
                                 .done = done,
                                 .self = self,
                                 .plugins = p,
                                 .call = *call,
                                 .reply = RV_BUF_INIT(RV_JSON_MAX_BYTES)};
    for (size_t i = 0; i < RV_COUNT(ids); i++)
        ids[i] = keep(&at, rv_str_of(ids[i]));
    w->call.name = ids[0];
    w->call.run_id = ids[1];
    w->call.stage = ids[2];
    w->call.user_id = ids[3];
    w->call.session_id = ids[4];
    w->call.idempotency_key = ids[5];
    w->call.context = ids[6];
    w->call.args.ptr = keep(&at, call->args);
    w->call.cancelled = &w->work.cancelled;
    w->call.work = w->call.emit_self = w;
    if (call->kind != RV_NAME_PROVIDER)
        w->call.on_emit = NULL;
    atomic_init(&w->work.cancelled, false);
    w->work.kind = rv_name_kind_text(call->kind);
    w->work.name = w->call.name;
    w->work.never_blocks = e && e->never_blocks && !e->owner->isolated; /* its process may be busy, or has to start */
    return w;
}

/* --- the source --- */

static const struct rv_tool_info *find(void *self, rv_str name)
{
    const struct rv_plugin_tools *t = self;
    const struct rv_plugin_entry *e = rv_plugin_find(t->plugins, RV_NAME_TOOL, name);

    return e ? &e->tool : NULL;
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
        reply.text = RV_BUF_INIT(MAX_ERROR);
        rv_err_write_chain(w->failure, &reply.text);
    } else {
        reply.text = w->reply;
        w->reply = RV_BUF_INIT(0);
    }
    rv_tool_call_finish(w->self, &reply);
}

static int call(void *self, struct rv_tool_call *c, rv_err **err)
{
    const struct rv_plugin_tools *t = self;
    RV_AUTO(rv_buf_fini) rv_buf context = RV_BUF_INIT(MAX_CONTEXT);
    rv_jw json = rv_jw_on(&context);

    if (!find(self, rv_str_of(c->tool)))
        return rv_plugin_fail_unknown(t->plugins, RV_NAME_TOOL, c->tool, err);
    rv_context_write_json(c->context, &json);
    const struct rv_plugin_call what = {.kind = RV_NAME_TOOL,
                                        .name = c->tool,
                                        .args = c->args,
                                        .run_id = c->run_id,
                                        .stage = c->stage,
                                        .user_id = c->user_id,
                                        .session_id = c->session_id,
                                        .idempotency_key = c->key,
                                        .context = context.rc == 0 ? rv_buf_cstr(&context) : "{}",
                                        .timeout_ms = c->timeout_ms};
    struct rv_plugin_work *w = context.rc == RV_E_NOMEM ? NULL : rv_plugin_work_new(t->plugins, &what, tool_done, c);
    if (!w)
        return RV_FAIL(err, RV_E_NOMEM, "call tool \"%s\"", c->tool);
    c->state = w;
    int rc = t->workers.begin(t->workers.self, &w->work, err);
    if (rc < 0)
        free_work(&w->work);
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

static const struct rv_tool_source_ops ops = {
    .name = "capabilities", .find = find, .names = names, .call = call, .cancel = cancel, .close = close};

struct rv_tool_source *rv_plugin_tools_init(struct rv_plugin_tools *t, rv_plugins *p,
                                            const struct rv_tool_workers *workers)
{
    *t = (struct rv_plugin_tools){.source = {.ops = &ops, .self = t}, .plugins = p, .workers = *workers};
    return &t->source;
}
