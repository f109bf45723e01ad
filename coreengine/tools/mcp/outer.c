/* One loop hung into another: libuv's descriptor becomes readable when the inner loop has something to do, and a timer
 * of the outer one tells it the time. */
#include <stdlib.h>

#include "coreengine/tools/mcp/mcptools_internal.h"

struct rv_mcp_outer {
    uv_poll_t poll;
    uv_timer_t timer;
    uv_loop_t *inner; /* NULL: it is being freed */
    bool (*turn)(void *self);
    void *self;
    int n_handles;
};

static void set_timer(struct rv_mcp_outer *o);

static void run(struct rv_mcp_outer *o)
{
    if (!o->inner)
        return;
    uv_run(o->inner, UV_RUN_NOWAIT);
    bool is_needed = o->inner && o->turn(o->self);
    if (!o->inner)
        return;
    set_timer(o);
    if (!is_needed) /* an idle connection, whose end is due in minutes, does not keep the program alive */
        uv_unref((uv_handle_t *)&o->timer);
}

static void on_timer(uv_timer_t *t)
{
    run(t->data);
}

static void on_poll(uv_poll_t *p, int status, int events)
{
    (void)status;
    (void)events;
    run(p->data);
}

static void set_timer(struct rv_mcp_outer *o)
{
    uv_update_time(o->inner);
    int wait_ms = uv_loop_alive(o->inner) ? uv_backend_timeout(o->inner) : -1; /* of a loop at rest it is 0 */
    if (wait_ms < 0)
        uv_timer_stop(&o->timer);
    else /* never at once: the outer loop would not come to anything else */
        uv_timer_start(&o->timer, on_timer, wait_ms > 0 ? (uint64_t)wait_ms : 1, 0);
}

int mcptools_mcp_outer_new(uv_loop_t *inner, uv_loop_t *loop, bool (*turn)(void *self), void *self,
                           struct rv_mcp_outer **out, rv_err **err)
{
    struct rv_mcp_outer *o = calloc(1, sizeof *o);

    if (!o)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for connections to MCP servers");
    *o = (struct rv_mcp_outer){.inner = inner, .turn = turn, .self = self, .n_handles = 2};
    int rc = uv_poll_init(loop, &o->poll, uv_backend_fd(inner));
    if (rc < 0) {
        free(o);
        return RV_FAIL_SYSTEM(err, rc, "connections to MCP servers");
    }
    uv_timer_init(loop, &o->timer); /* does not fail */
    o->poll.data = o->timer.data = o;
    rc = uv_poll_start(&o->poll, UV_READABLE, on_poll);
    if (rc < 0) {
        mcptools_mcp_outer_free(o);
        return RV_FAIL_SYSTEM(err, rc, "connections to MCP servers");
    }
    uv_unref((uv_handle_t *)&o->poll); /* the timer does, while something is waited for */
    mcptools_mcp_outer_wake(o);
    *out = o;
    return 0;
}

uv_loop_t *mcptools_mcp_outer_loop(const struct rv_mcp_outer *o)
{
    return o->poll.loop;
}

void mcptools_mcp_outer_wake(struct rv_mcp_outer *o)
{
    uv_timer_start(&o->timer, on_timer, 0, 0);
    uv_ref((uv_handle_t *)&o->timer);
}

static void on_closed(uv_handle_t *h)
{
    struct rv_mcp_outer *o = h->data;

    if (--o->n_handles == 0)
        free(o);
}

void mcptools_mcp_outer_free(struct rv_mcp_outer *o)
{
    if (!o)
        return;
    o->inner = NULL;
    uv_poll_stop(&o->poll); /* at once: the descriptor may be closed before the handle is */
    uv_close((uv_handle_t *)&o->poll, on_closed);
    uv_close((uv_handle_t *)&o->timer, on_closed);
}
