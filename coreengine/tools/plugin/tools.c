/* The tools of a set of capabilities as a source: calls that may block, in this process or waiting for another one,
 * go to workers. What a call needs there is copied: a call that was given up may outlast its run. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/conversation/context.h"
#include "coreengine/tools/plugin/plugin_internal.h"

#define MAX_ERROR   ((size_t)2 << 20) /* text of a failed call */
#define MAX_CONTEXT ((size_t)64 << 10)

struct tool_work {
    struct rv_tool_work work;  /* first: a pointer to it is one to this */
    struct rv_tool_call *call; /* thread of the source only; not looked at once the work was given up */
    rv_plugins *plugins;       /* borrowed; outlives the call */
    struct rv_plugin_call what;
    rv_buf reply;
    rv_err *failure; /* owned; NULL: it went well */
    bool reports_error;
}; /* the texts of `what` follow it */

static void run(struct rv_tool_work *work)
{
    struct tool_work *w = (struct tool_work *)work;

    if (rv_plugins_call(w->plugins, &w->what, &w->reply, &w->failure) == 0)
        w->reports_error = rv_tool_reply_reports_error(rv_buf_str(&w->reply));
}

static void done(struct rv_tool_work *work)
{
    struct tool_work *w = (struct tool_work *)work;
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
    rv_tool_call_finish(w->call, &reply);
}

static void free_work(struct rv_tool_work *work)
{
    struct tool_work *w = (struct tool_work *)work;

    rv_buf_fini(&w->reply);
    rv_err_free(w->failure);
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

/* One block: the work, and behind it the texts of the call. NULL: memory is short. */
static struct tool_work *new_work(rv_plugins *p, struct rv_tool_call *c, rv_str context)
{
    const char *const ids[] = {c->tool, c->run_id, c->stage, c->user_id, c->session_id, c->key};
    size_t size = sizeof(struct tool_work) + c->args.len + 1 + context.len + 1;

    for (size_t i = 0; i < RV_COUNT(ids); i++)
        size += rv_str_of(ids[i]).len + 1;
    struct tool_work *w = malloc(size);
    if (!w)
        return NULL;
    char *at = (char *)(w + 1);
    *w = (struct tool_work){.work = {.run = run, .done = done, .free = free_work},
                            .call = c,
                            .plugins = p,
                            .what = {.kind = RV_NAME_TOOL,
                                     .name = keep(&at, rv_str_of(c->tool)),
                                     .args = {keep(&at, c->args), c->args.len},
                                     .run_id = keep(&at, rv_str_of(c->run_id)),
                                     .stage = keep(&at, rv_str_of(c->stage)),
                                     .user_id = keep(&at, rv_str_of(c->user_id)),
                                     .session_id = keep(&at, rv_str_of(c->session_id)),
                                     .idempotency_key = keep(&at, rv_str_of(c->key)),
                                     .context = keep(&at, context),
                                     .timeout_ms = c->timeout_ms,
                                     .cancelled = &w->work.cancelled},
                            .reply = RV_BUF_INIT(RV_JSON_MAX_BYTES)};
    atomic_init(&w->work.cancelled, false);
    w->work.tool = w->what.name;
    w->work.never_blocks = !rv_plugins_may_block(p, RV_NAME_TOOL, c->tool);
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

static int call(void *self, struct rv_tool_call *c, rv_err **err)
{
    const struct rv_plugin_tools *t = self;
    rv_buf context = RV_BUF_INIT(MAX_CONTEXT);
    rv_jw json = rv_jw_on(&context);

    if (!find(self, rv_str_of(c->tool)))
        return rv_plugin_fail_unknown(t->plugins, RV_NAME_TOOL, c->tool, err);
    rv_context_write_json(c->context, &json);
    rv_str who = context.rc == 0 ? rv_buf_str(&context) : RV_STR_LIT("{}");
    struct tool_work *w = context.rc == RV_E_NOMEM ? NULL : new_work(t->plugins, c, who);
    rv_buf_fini(&context);
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
    struct tool_work *w = c->state;

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
