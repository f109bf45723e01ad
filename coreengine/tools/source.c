/* The life of a call, for every kind of source: begun, under way, ended exactly once. */
#include <assert.h>

#include "coreengine/tools/source.h"

static void link_call(struct rv_tool_source *s, struct rv_tool_call *c)
{
    c->source = s;
    c->prev = NULL;
    c->next = s->pending;
    if (c->next)
        c->next->prev = c;
    s->pending = c;
}

static void unlink_call(struct rv_tool_call *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->source->pending = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->source = NULL;
    c->prev = c->next = NULL;
}

int rv_tool_source_call(struct rv_tool_source *s, struct rv_tool_call *c, rv_err **err)
{
    assert(!c->source && c->done);
    if (!s->ops)
        return RV_FAIL(err, RV_E_STATE, "tool \"%s\" is called, and its source is closed", c->tool);
    if (c->args.len > RV_JSON_MAX_BYTES)
        return RV_FAIL(err, RV_E_LIMIT, "arguments of tool \"%s\": %zu bytes (the limit is %zu)", c->tool, c->args.len,
                       RV_JSON_MAX_BYTES);
    link_call(s, c);
    int rc = s->ops->call(s->self, c, err);
    if (rc < 0) {
        assert(c->source); /* a source that refuses a call does not finish it, too */
        unlink_call(c);
    }
    return rc;
}

void rv_tool_call_finish(struct rv_tool_call *c, struct rv_tool_reply *reply)
{
    assert(c->source); /* once, and not after a cancel */
    unlink_call(c);
    c->done(c, reply);
    rv_buf_fini(&reply->text);
    rv_buf_fini(&reply->partial);
}

void rv_tool_call_cancel(struct rv_tool_call *c)
{
    struct rv_tool_source *s = c->source;

    if (!s)
        return;
    unlink_call(c);
    s->ops->cancel(s->self, c);
}

void rv_tool_source_close(struct rv_tool_source *s)
{
    if (!s->ops)
        return;
    while (s->pending)
        rv_tool_call_cancel(s->pending);
    s->ops->close(s->self);
    s->ops = NULL;
}
