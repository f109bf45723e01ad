/* The tools of a set of capabilities as a source: calls that may block, in this process or waiting for another one,
 * go to workers. What a call needs there is copied: a call that was given up may outlast its run. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/context/context.h"
#include "coreengine/plugin/plugin_internal.h"

#define MAX_CALL    (2 * RV_JSON_MAX_BYTES) /* of what is copied for one call */
#define MAX_ERROR   ((size_t)2 << 20)       /* text of a failed call */
#define MAX_CONTEXT ((size_t)64 << 10)

struct tool_work {
    struct rv_tool_work work;  /* first: a pointer to it is one to this */
    struct rv_tool_call *call; /* thread of the source only; not looked at once the work was given up */
    rv_plugins *plugins;       /* borrowed; outlives the call */
    rv_arena *room;            /* owned: the texts of `what` */
    struct rv_plugin_call what;
    rv_buf reply;
    rv_err *failure; /* owned; NULL: it went well */
    bool reports_error;
};

static void run(struct rv_tool_work *work)
{
    struct tool_work *w = (struct tool_work *)work;

    w->reply = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    if (rv_plugins_call(w->plugins, &w->what, &w->reply, &w->failure) == 0)
        w->reports_error = rv_tool_reply_reports_error(rv_buf_str(&w->reply));
}

static void done(struct rv_tool_work *work)
{
    struct tool_work *w = (struct tool_work *)work;
    struct rv_tool_reply reply = {.failed = w->failure != NULL, .reports_error = w->reports_error};

    if (w->failure) {
        reply.error_type = rv_plugin_error_type(w->failure);
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

    rv_arena_free(w->room);
    rv_buf_fini(&w->reply);
    rv_err_free(w->failure);
    free(w);
}

static const char *keep(struct tool_work *w, const char *text)
{
    return rv_arena_dup(w->room, rv_str_of(text));
}

/* False: memory is short. */
static bool copy_call(struct tool_work *w, const struct rv_tool_call *c)
{
    struct rv_plugin_call *what = &w->what;
    rv_buf context = RV_BUF_INIT(MAX_CONTEXT);
    rv_jw json = rv_jw_on(&context);

    rv_context_write_json(c->context, &json);
    *what = (struct rv_plugin_call){.kind = RV_NAME_TOOL,
                                    .name = keep(w, c->tool),
                                    .args = {rv_arena_dup(w->room, c->args), c->args.len},
                                    .run_id = keep(w, c->run_id),
                                    .stage = keep(w, c->stage),
                                    .user_id = keep(w, c->user_id),
                                    .session_id = keep(w, c->session_id),
                                    .idempotency_key = keep(w, c->key),
                                    .context = keep(w, context.rc == 0 ? rv_buf_cstr(&context) : "{}"),
                                    .timeout_ms = c->timeout_ms,
                                    .cancelled = &w->work.cancelled};
    bool ok = context.rc != RV_E_NOMEM && what->name && what->args.ptr && what->run_id && what->stage &&
              what->user_id && what->session_id && what->idempotency_key && what->context;
    rv_buf_fini(&context);
    return ok;
}

static struct tool_work *new_work(rv_plugins *p, struct rv_tool_call *c)
{
    struct tool_work *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->work = (struct rv_tool_work){.run = run, .done = done, .free = free_work};
    atomic_init(&w->work.cancelled, false);
    w->call = c;
    w->plugins = p;
    w->work.never_blocks = !rv_plugins_may_block(p, RV_NAME_TOOL, c->tool);
    w->room = rv_arena_new(MAX_CALL);
    if (w->room && copy_call(w, c)) {
        w->work.tool = w->what.name;
        return w;
    }
    free_work(&w->work);
    return NULL;
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

    if (!find(self, rv_str_of(c->tool)))
        return rv_plugin_fail_unknown(t->plugins, RV_NAME_TOOL, c->tool, err);
    struct tool_work *w = new_work(t->plugins, c);
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
