/* One tool for each way of answering wrongly, and some that only look wrong. */
#include <reeve/capability.h>

#include <stdlib.h>
#include <string.h>

#define TOOL(name) static int name(__attribute__((unused)) void *self, struct rv_cap_call *call)

TOOL(garbage)
{
    return call->reply(call, "{\"a\": tru");
}

TOOL(not_object)
{
    return call->reply(call, "[1, 2]");
}

TOOL(not_utf8)
{
    return call->reply(call, "{\"a\": \"\xff\xfe\"}");
}

TOOL(trailing)
{
    return call->reply(call, "{} {}");
}

TOOL(twice_a_key)
{
    return call->reply(call, "{\"a\": 1, \"a\": 2}");
}

TOOL(null_reply)
{
    return call->reply(call, NULL);
}

TOOL(silent)
{
    (void)call;
    return 0;
}

TOOL(mute_failure)
{
    (void)call;
    return 7;
}

TOOL(null_failure)
{
    return call->fail(call, NULL, NULL);
}

TOOL(proper_failure)
{
    return call->fail(call, "NotFoundError", "no file \"x\"");
}

TOOL(odd_failure)
{
    return call->fail(call, "not a name!", "bad \xff bytes\x1b[31m");
}

TOOL(formatted_failure)
{
    return rv_cap_failf(call, "ValidationError", "%d is not a %s", 7, "name");
}

TOOL(good)
{
    return call->reply(call, " {\"ok\": true} ");
}

TOOL(identity)
{
    return call->reply(call, call->args);
}

TOOL(reads_cancel)
{
    return call->reply(call, call->cancelled(call) ? "{\"cancelled\": true}" : "{\"cancelled\": false}");
}

TOOL(two_replies)
{
    call->reply(call, "{}");
    call->reply(call, "{}");
    return 0;
}

TOOL(reply_and_fail)
{
    call->reply(call, "{}");
    return call->fail(call, "ExecutionError", "changed my mind");
}

TOOL(reply_then_code)
{
    call->reply(call, "{}");
    return 3;
}

TOOL(fail_returns_zero)
{
    call->fail(call, "TimeoutError", "too slow");
    return 0;
}

TOOL(fails_twice)
{
    call->fail(call, "FirstError", "the cause");
    return call->fail(call, "SecondError", "its consequence");
}

TOOL(context)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"name\": \"%s\", \"run\": \"%s\", \"stage\": \"%s\", \"user\": \"%s\", \"session\": \"%s\", "
             "\"key\": \"%s\", \"timeout_ms\": %lld, \"context\": %s}",
             call->name, call->run_id, call->stage, call->user_id, call->session_id, call->idempotency_key,
             (long long)call->timeout_ms, call->context);
    return call->reply(call, text);
}

TOOL(logs)
{
    call->log(call, -5, NULL);
    call->log(call, 2, "look \xc0 here");
    call->log(call, 99, "worse");
    return call->reply(call, "{}");
}

TOOL(floods)
{
    for (int i = 0; i < 250; i++)
        call->log(call, 2, "again");
    return call->reply(call, "{}");
}

/* An object of n bytes around a filler. */
static int reply_filled(struct rv_cap_call *call, size_t n, const char *head, const char *tail, char fill)
{
    char *text = malloc(n + strlen(head) + strlen(tail) + 1);
    int rc;

    if (!text)
        return call->fail(call, "ExecutionError", "out of memory");
    memcpy(text, head, strlen(head));
    memset(text + strlen(head), fill, n);
    memcpy(text + strlen(head) + n, tail, strlen(tail) + 1);
    rc = call->reply(call, text);
    free(text);
    return rc;
}

TOOL(huge)
{
    return reply_filled(call, (size_t)RV_CAP_MAX_REPLY, "{\"a\": \"", "\"}", 'x');
}

TOOL(deep)
{
    return reply_filled(call, 100000, "{\"a\": ", "}", '[');
}

TOOL(long_failure)
{
    char text[20000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    return call->fail(call, "ExecutionError", text);
}

/* Says how far it is, right and wrong, and again when it has answered. */
TOOL(far)
{
    int rc, wanted = rv_cap_progress(call, 1, 4, "one\x1b[2J\xff");

    rv_cap_progress(call, 0.0 / (double)(wanted == 0 ? 0 : 1), 4, "no number");
    rv_cap_progress(call, 2, 0, NULL);
    rc = call->reply(call, "{}");
    rv_cap_progress(call, 3, 4, "after the answer");
    return rc;
}

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        RV_CAP_TOOL, #name, "{}", name                                                                                 \
    }
static const struct rv_cap_entry entries[] = {
    ROW(garbage),
    ROW(not_object),
    ROW(not_utf8),
    ROW(trailing),
    ROW(twice_a_key),
    ROW(null_reply),
    ROW(silent),
    ROW(mute_failure),
    ROW(null_failure),
    ROW(proper_failure),
    ROW(odd_failure),
    ROW(formatted_failure),
    ROW(good),
    ROW(identity),
    ROW(reads_cancel),
    ROW(two_replies),
    ROW(reply_and_fail),
    ROW(reply_then_code),
    ROW(fail_returns_zero),
    ROW(fails_twice),
    ROW(context),
    ROW(logs),
    ROW(floods),
    ROW(huge),
    ROW(deep),
    ROW(long_failure),
    ROW(far),
    {RV_CAP_HOOK, "identity", "{\"sees\": [\"raw_input\", \"outputs.plan\"], \"timeout_ms\": 70}", identity},
    {RV_CAP_HOOK, "garbage", "{}", garbage},
    {RV_CAP_HOOK, "far", "{}", far},
    {RV_CAP_HOOK, "proper_failure", "{}", proper_failure},
    {RV_CAP_PROMPT, "ask", "{\"description\": \"asks\", \"text\": \"Answer {{raw_input}}\"}", NULL},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "answers", .version = "0.1", .description = "Answers in every wrong way.", .entries = entries)
