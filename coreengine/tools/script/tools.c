/* A script as a source of tools: it answers at once, in place of the source that has the tool. */
#include "coreengine/tools/script/script_internal.h"

static const struct rv_tool_info *find(void *self, rv_str name)
{
    return rv_script_tool(self, name);
}

static const char *const *names(void *self, size_t *n)
{
    return rv_script_tool_names(self, n);
}

static int call(void *self, struct rv_tool_call *c, rv_err **err)
{
    const struct rv_script_call asked = {
        .kind = RV_SCRIPT_TOOL, .stage = c->agent, .tool = c->tool, .visit = c->visit, .text = c->args};
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
                                .after_us = reply->delay_ms * 1000};

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
