/* One provider for each way of handing out an answer piece by piece, right and wrong. Some end their process or never
 * come back: those are for hosts that run plugins in a process of their own. */
#include <reeve/capability.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROVIDER(name) static int name(__attribute__((unused)) void *self, struct rv_cap_call *call)
#define DONE           "{\"text\": \"done\"}"

PROVIDER(good)
{
    if (call->emit(call, "{\"thinking\": \"a greeting\"}") || call->emit(call, " {\"text\": \"Hel\"} ") ||
        call->emit(call, "{\"text\": \"lo \\u00e4\"}"))
        return call->fail(call, "ExecutionError", "nobody listens");
    return call->reply(call, "{\"text\": \"Hello \\u00e4\", \"usage\": {\"input_tokens\": 3, \"output_tokens\": 2}}");
}

PROVIDER(says_nothing_first)
{
    call->emit(call, "{\"text\": \"\"}");
    call->emit(call, "{\"text\": \"x\"}");
    return call->reply(call, DONE);
}

/* --- pieces that are none; what emit() says to that has to be "no more" --- */

static int emit_bad(struct rv_cap_call *call, const char *piece)
{
    int refused = call->emit(call, "{\"text\": \"before\"}") == 0;

    call->emit(call, piece); /* in a process of its own that is not known at once */
    return refused ? call->reply(call, DONE) : call->fail(call, "ExecutionError", "a good piece was refused");
}

PROVIDER(garbage)
{
    return emit_bad(call, "{\"text\": \"");
}

PROVIDER(not_utf8)
{
    return emit_bad(call, "{\"text\": \"\xff\"}");
}

PROVIDER(list)
{
    return emit_bad(call, "[\"text\"]");
}

PROVIDER(bare)
{
    return emit_bad(call, "\"text\"");
}

PROVIDER(nothing)
{
    return emit_bad(call, "{}");
}

PROVIDER(both)
{
    return emit_bad(call, "{\"text\": \"a\", \"thinking\": \"b\"}");
}

PROVIDER(other_member)
{
    return emit_bad(call, "{\"txt\": \"a\"}");
}

PROVIDER(number)
{
    return emit_bad(call, "{\"text\": 7}");
}

PROVIDER(null_text)
{
    return emit_bad(call, "{\"thinking\": null}");
}

PROVIDER(deep)
{
    return emit_bad(call, "{\"text\": [[[[[[[[[[1]]]]]]]]]]}");
}

PROVIDER(null_piece)
{
    return emit_bad(call, NULL);
}

PROVIDER(after_reply)
{
    call->reply(call, DONE);
    call->emit(call, "{\"text\": \"late\"}");
    return 0;
}

PROVIDER(after_failure)
{
    call->fail(call, "overloaded", "come back later");
    call->emit(call, "{\"text\": \"late\"}");
    return 1;
}

PROVIDER(bad_piece_then_failure)
{
    emit_bad(call, "7");
    return call->fail(call, "overloaded", "come back later");
}

/* --- large ones, and many --- */

static char *piece_of(size_t n)
{
    char *piece = malloc(n + 32);

    if (!piece)
        return NULL;
    memcpy(piece, "{\"text\": \"", 10);
    memset(piece + 10, 'x', n);
    memcpy(piece + 10 + n, "\"}", 3);
    return piece;
}

PROVIDER(large)
{
    char *piece = piece_of(RV_CAP_MAX_REPLY);
    int rc;

    if (!piece)
        return call->fail(call, "ExecutionError", "out of memory");
    rc = emit_bad(call, piece);
    free(piece);
    return rc;
}

/* Until somebody says that it is enough. */
PROVIDER(flood)
{
    char *piece = piece_of(1000);

    if (!piece)
        return call->fail(call, "ExecutionError", "out of memory");
    while (call->emit(call, piece) == 0)
        continue;
    free(piece);
    return call->reply(call, DONE);
}

/* The same, for as long as somebody wants it: small ones, so that the limit is far. */
PROVIDER(counts)
{
    char text[64];
    int n = 0;

    while (n < 1000 && call->emit(call, "{\"text\": \"x\"}") == 0)
        n++;
    snprintf(text, sizeof text, "{\"text\": \"%d\"}", n);
    return call->reply(call, text);
}

/* Deaf to all that is said, and without an end. */
PROVIDER(deaf)
{
    for (;;)
        call->emit(call, "{\"text\": \"x\"}");
    return call->reply(call, DONE);
}

/* One piece, then waits until the answer is not wanted any more, then tries another. */
PROVIDER(waits)
{
    struct timespec rest = {0, 1000000};

    call->emit(call, "{\"text\": \"first\"}");
    for (int i = 0; i < 20000 && !call->cancelled(call); i++)
        nanosleep(&rest, NULL);
    return call->reply(call, call->emit(call, "{\"text\": \"second\"}") ? "{\"text\": \"refused\"}"
                                                                        : "{\"text\": \"taken\"}");
}

/* --- ends --- */

PROVIDER(silent)
{
    call->emit(call, "{\"text\": \"half\"}");
    return 0;
}

PROVIDER(two_replies)
{
    call->reply(call, DONE);
    call->reply(call, DONE);
    return 0;
}

PROVIDER(fails)
{
    call->emit(call, "{\"text\": \"half\"}");
    return call->fail(call, "rate_limited", "slow down");
}

PROVIDER(fails_oddly)
{
    return call->fail(call, "NotFoundError", "no such model");
}

PROVIDER(fails_as_cancelled)
{
    return call->fail(call, "cancelled", "I do not want to");
}

PROVIDER(dies)
{
    call->emit(call, "{\"text\": \"half\"}");
    abort();
}

PROVIDER(hangs)
{
    call->emit(call, "{\"text\": \"half\"}");
    while (pause() < 0)
        continue;
    return call->reply(call, DONE);
}

/* Past the host in its own process: frames with pieces, more of them than a call may have. */
PROVIDER(forges)
{
    static const char head[] = "{\"emit\":true}";
    uint32_t lengths[] = {sizeof head - 1, 1u << 20};
    char *piece = piece_of(lengths[1] - 12);

    for (int i = 0; piece && i < 9; i++)
        if (write(3, lengths, sizeof lengths) < 0 || write(3, head, sizeof head - 1) < 0 ||
            write(3, piece, lengths[1]) < 0)
            break;
    free(piece);
    while (pause() < 0)
        continue;
    return call->reply(call, DONE);
}

/* What a tool hands out piece by piece is for nobody. */
PROVIDER(tool)
{
    return call->reply(call, call->emit(call, "no piece") ? "{\"taken\": false}" : "{\"taken\": true}");
}

PROVIDER(args)
{
    return call->reply(call, call->args);
}

/* Says what its role has for it. */
PROVIDER(knows)
{
    const char *settings = rv_cap_get(call->args, "settings");
    struct rv_cap_out out = RV_CAP_OUT;
    int64_t mine = 0;
    char key[20];

    if (rv_cap_str(rv_cap_get(settings, "api_key"), key, sizeof key) < 0 ||
        rv_cap_int(rv_cap_get(settings, "mine.0"), &mine) < 0)
        return call->fail(call, "ExecutionError", call->args);
    rv_cap_put_strf(&out, "text", "%s and %d", key, (int)mine);
    return rv_cap_reply(call, &out);
}

/* Tells whether it was given the picture. */
PROVIDER(sees)
{
    return call->reply(call, strstr(call->args, "https://x/kea.png") ? "{\"text\": \"a kea\"}" : "{\"text\": \"?\"}");
}

#define ROW(name)                                                                                                      \
    {                                                                                                                  \
        RV_CAP_PROVIDER, #name, "{\"description\": \"Answers for models.\", \"timeout_ms\": 700}", name                \
    }
static const struct rv_cap_entry entries[] = {
    ROW(good),
    {RV_CAP_PROVIDER, "sees", "{\"description\": \"Takes pictures.\", \"attachments\": true}", sees},
    ROW(says_nothing_first),
    ROW(garbage),
    ROW(not_utf8),
    ROW(list),
    ROW(bare),
    ROW(nothing),
    ROW(both),
    ROW(other_member),
    ROW(number),
    ROW(null_text),
    ROW(deep),
    ROW(null_piece),
    ROW(after_reply),
    ROW(after_failure),
    ROW(bad_piece_then_failure),
    ROW(large),
    ROW(flood),
    ROW(counts),
    ROW(deaf),
    ROW(waits),
    ROW(silent),
    ROW(two_replies),
    ROW(fails),
    ROW(fails_oddly),
    ROW(fails_as_cancelled),
    ROW(dies),
    ROW(hangs),
    ROW(forges),
    ROW(args),
    ROW(knows),
    {RV_CAP_TOOL, "tool", "{}", tool},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "models", .version = "1", .description = "Hands out pieces in every way.", .entries = entries)
