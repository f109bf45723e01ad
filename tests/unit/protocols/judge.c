/* See judge.h. The rules are those that clients were seen to hold: an event names something that is open, or opens
 * something that is not; nothing is open at the end; nothing follows the end. */
#include "tests/unit/protocols/judge.h"

#include <json-c/linkhash.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool bad(rv_buf *why, const char *fmt, ...) RV_PRINTF(2, 3);
static bool bad(rv_buf *why, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(why, fmt, args);
    va_end(args);
    return false;
}

/* --- blocks --- */

struct block {
    rv_str event, data;
};

/* False: there are no more, or *fault says what is wrong with the frame. */
static bool next_block(rv_str *rest, struct block *out, rv_buf *fault)
{
    *out = (struct block){0};
    if (rest->len == 0)
        return false;
    const char *end = memmem(rest->ptr, rest->len, "\n\n", 2);
    if (!end)
        return bad(fault, "a block has no end");
    rv_str text = {rest->ptr, (size_t)(end - rest->ptr)};
    *rest = (rv_str){end + 2, rest->len - text.len - 2};
    for (int n = 0; text.len > 0; n++) {
        const char *lf = memchr(text.ptr, '\n', text.len);
        rv_str line = {text.ptr, lf ? (size_t)(lf - text.ptr) : text.len};
        size_t used = line.len + (lf != NULL);
        if (line.len > 7 && memcmp(line.ptr, "event: ", 7) == 0 && n == 0)
            out->event = (rv_str){line.ptr + 7, line.len - 7};
        else if (line.len > 6 && memcmp(line.ptr, "data: ", 6) == 0 && !out->data.ptr)
            out->data = (rv_str){line.ptr + 6, line.len - 6};
        else if (!(line.len > 4 && memcmp(line.ptr, "id: ", 4) == 0 && out->data.ptr))
            return bad(fault, "a line is not of a frame: %.*s", RV_STR_ARG(line));
        text = (rv_str){text.ptr + used, text.len - used};
    }
    if (!out->data.ptr || out->data.len > 1000000)
        return bad(fault, "a block without data, or too long");
    return true;
}

static const char *text_of(json_object *o, const char *key)
{
    const char *text = NULL;

    return rv_json_get_text(o, key, &text) ? text : NULL;
}

/* --- sets of names --- */

#define MAX_OPEN 600
struct set {
    char names[MAX_OPEN][160];
    char tags[MAX_OPEN][80];
    int n;
};

static int find(const struct set *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->names[i], name) == 0)
            return i;
    return -1;
}

static bool add(struct set *s, const char *name, const char *tag)
{
    if (s->n == MAX_OPEN || find(s, name) >= 0)
        return false;
    snprintf(s->names[s->n], sizeof s->names[0], "%s", name);
    snprintf(s->tags[s->n], sizeof s->tags[0], "%s", tag ? tag : "");
    s->n++;
    return true;
}

static bool drop(struct set *s, const char *name)
{
    int at = find(s, name);

    if (at < 0)
        return false;
    s->n--;
    memmove(s->names[at], s->names[at + 1], sizeof s->names[0] * (size_t)(s->n - at));
    memmove(s->tags[at], s->tags[at + 1], sizeof s->tags[0] * (size_t)(s->n - at));
    return true;
}

/* --- AG-UI --- */

struct agui {
    struct set texts, spans, thoughts, calls, steps, agents, past_agents, past_calls, results, past_texts;
    rv_buf said[GEN_MAX_REPLIES]; /* by call id */
    bool begun, over, errored;
    int answers;
};
static struct agui ag; /* large */

static bool no_nulls(json_object *o, rv_buf *why)
{
    json_object_object_foreach (o, key, value) {
        if (!value)
            return bad(why, "%s is null", key);
    }
    return true;
}

/* The number of the model call in the id of a message; 0: it has none. */
static long reply_of(const char *id)
{
    return strncmp(id, "env_1-", 6) == 0 ? strtol(id + 6, NULL, 10) : 0;
}

static void hear(const char *id, const char *delta)
{
    long reply = 0;

    if (strcmp(id, "env_1-answer") == 0)
        ag.answers++;
    else if ((reply = reply_of(id)) > 0 && reply < GEN_MAX_REPLIES)
        rv_buf_puts(&ag.said[reply], delta);
}

/* Opens, uses or closes an item of a set. */
static bool use(struct set *open, const char *id, const char *tag, char how, const char *type, rv_buf *why)
{
    if (!id)
        return bad(why, "%s without its id", type);
    if (how == '+')
        return add(open, id, tag) || bad(why, "%s of %s, which is open", type, id);
    int at = find(open, id);
    if (at < 0)
        return bad(why, "%s of %s, which is not open", type, id);
    if (tag && strcmp(open->tags[at], tag) != 0)
        return bad(why, "%s of %s by %s, which %s opened", type, id, tag, open->tags[at]);
    if (!tag && open->tags[at][0])
        return bad(why, "%s of %s without the tag %s", type, id, open->tags[at]);
    return how != '-' || drop(open, id);
}

static bool subagent(json_object *e, const char *type, rv_buf *why)
{
    const char *id = text_of(e, "subagentRunId"), *parent = text_of(e, "parentSubagentRunId");
    const char *call = text_of(e, "parentToolCallId");

    if (!id)
        return bad(why, "%s without subagentRunId", type);
    if (strcmp(type, "SUBAGENT_STARTED") == 0) {
        if (find(&ag.past_agents, id) >= 0 || !add(&ag.agents, id, NULL))
            return bad(why, "subagent %s again", id);
        if (!text_of(e, "name"))
            return bad(why, "subagent %s without a name", id);
        if (parent && find(&ag.agents, parent) < 0)
            return bad(why, "the parent of %s is not open", id);
        if (!call || find(&ag.calls, call) >= 0 || find(&ag.past_calls, call) < 0)
            return bad(why, "subagent %s begins outside of its call", id);
        return find(&ag.results, call) < 0 || bad(why, "subagent %s begins behind the result of its call", id);
    }
    add(&ag.past_agents, id, NULL);
    return drop(&ag.agents, id) || bad(why, "%s of %s, which is not open", type, id);
}

static bool tagged(json_object *e, const char *type, rv_buf *why)
{
    const char *tag = text_of(e, "subagentRunId");

    return !tag || find(&ag.agents, tag) >= 0 || bad(why, "%s of subagent %s, which is not open", type, tag);
}

static bool call_event(json_object *e, const char *type, rv_buf *why)
{
    const char *id = text_of(e, "toolCallId"), *tag = text_of(e, "subagentRunId");

    if (strcmp(type, "TOOL_CALL_RESULT") == 0) {
        if (!id || !text_of(e, "messageId") || !text_of(e, "content"))
            return bad(why, "a result lacks a member");
        if (find(&ag.calls, id) >= 0 || find(&ag.past_calls, id) < 0)
            return bad(why, "the result of %s before its end", id);
        return add(&ag.results, id, NULL) || bad(why, "two results of %s", id);
    }
    if (strcmp(type, "TOOL_CALL_START") == 0)
        return (text_of(e, "toolCallName") && id && find(&ag.past_calls, id) < 0 &&
                use(&ag.calls, id, tag, '+', type, why)) ||
               bad(why, " call %s begins twice", id ? id : "?");
    bool is_end = strcmp(type, "TOOL_CALL_END") == 0;
    return use(&ag.calls, id, tag, is_end ? '-' : ' ', type, why) && (!is_end || add(&ag.past_calls, id, NULL));
}

static bool finished(json_object *e, const struct gen *g, rv_buf *why)
{
    const struct set *const open[] = {&ag.texts, &ag.spans, &ag.thoughts, &ag.calls, &ag.steps, &ag.agents};
    json_object *outcome = rv_json_get_obj(e, "outcome");
    const char *how = outcome ? text_of(outcome, "type") : NULL;

    for (size_t i = 0; i < RV_COUNT(open); i++)
        if (open[i]->n > 0)
            return bad(why, "the run is over, and %s is open", open[i]->names[0]);
    const char *wanted = strcmp(g->status, "cancelled") == 0     ? "cancelled"
                         : strcmp(g->status, "interrupted") == 0 ? "interrupt"
                                                                 : "success";
    if (!how || strcmp(how, wanted) != 0)
        return bad(why, "the outcome is %s", how ? how : "missing");
    if (strcmp(how, "interrupt") == 0 && json_object_array_length(rv_json_get_arr(outcome, "interrupts")) != 2)
        return bad(why, "not both questions are told");
    if (strcmp(how, "success") != 0)
        return true;
    json_object *pending = rv_json_get_arr(outcome, "pendingToolCallIds");
    size_t waiting = pending ? json_object_array_length(pending) : 0;
    for (int i = 0; i < ag.past_calls.n; i++)
        if (find(&ag.results, ag.past_calls.names[i]) < 0 && waiting-- == 0)
            return bad(why, "call %s has no result and does not wait", ag.past_calls.names[i]);
    return waiting == 0 || bad(why, "a call waits that is not there");
}

static bool agui_event(json_object *e, const struct gen *g, rv_buf *why)
{
    static const struct {
        const char *type;
        struct set *open;
        char how;
    } messages[] = {
        {"TEXT_MESSAGE_START", &ag.texts, '+'},
        {"TEXT_MESSAGE_CONTENT", &ag.texts, ' '},
        {"TEXT_MESSAGE_END", &ag.texts, '-'},
        {"REASONING_START", &ag.spans, '+'},
        {"REASONING_END", &ag.spans, '-'},
        {"REASONING_MESSAGE_START", &ag.thoughts, '+'},
        {"REASONING_MESSAGE_CONTENT", &ag.thoughts, ' '},
        {"REASONING_MESSAGE_END", &ag.thoughts, '-'},
    };
    const char *type = text_of(e, "type"), *id = text_of(e, "messageId"), *tag = text_of(e, "subagentRunId");
    json_object *time = NULL;

    if (!type)
        return bad(why, "an event without a type");
    if (ag.over)
        return bad(why, "%s behind the end", type);
    if (!ag.begun && strcmp(type, "RUN_STARTED") != 0)
        return bad(why, "%s is the first", type);
    if (json_object_object_get_ex(e, "timestamp", &time) && !rv_json_is_int(time))
        return bad(why, "a time that is not an integer");
    if (!no_nulls(e, why))
        return false;
    if (strncmp(type, "SUBAGENT_", 9) == 0)
        return subagent(e, type, why);
    if (!tagged(e, type, why))
        return false;
    for (size_t i = 0; i < RV_COUNT(messages); i++) {
        if (strcmp(type, messages[i].type) != 0)
            continue;
        if (strcmp(type, "TEXT_MESSAGE_CONTENT") == 0)
            hear(id ? id : "", text_of(e, "delta"));
        if (strcmp(type, "TEXT_MESSAGE_START") == 0 && (!id || !add(&ag.past_texts, id, NULL)))
            return bad(why, "message %s begins again", id ? id : "?");
        return use(messages[i].open, id, tag, messages[i].how, type, why);
    }
    if (strncmp(type, "TOOL_CALL_", 10) == 0)
        return call_event(e, type, why);
    if (strcmp(type, "RUN_STARTED") == 0) {
        bool again = ag.begun;
        ag.begun = true;
        return !again || bad(why, "RUN_STARTED again");
    }
    if (strcmp(type, "STEP_STARTED") == 0 || strcmp(type, "STEP_FINISHED") == 0)
        return use(&ag.steps, text_of(e, "stepName"), tag, strcmp(type, "STEP_STARTED") == 0 ? '+' : '-', type, why);
    ag.over = strncmp(type, "RUN_", 4) == 0;
    ag.errored = strcmp(type, "RUN_ERROR") == 0;
    if (ag.errored)
        return text_of(e, "message") || bad(why, "an error without a message");
    return strcmp(type, "RUN_FINISHED") == 0 ? finished(e, g, why)
                                             : strcmp(type, "CUSTOM") == 0 || bad(why, "unknown event %s", type);
}

static bool is_failure(const struct gen *g)
{
    return strcmp(g->status, "failed") == 0 || strcmp(g->status, "terminated") == 0;
}

static bool all_said(const struct gen *g, rv_buf *why)
{
    for (size_t i = 1; i < GEN_MAX_REPLIES; i++)
        if (!rv_str_eq(rv_buf_str(&ag.said[i]), rv_buf_str(&g->texts[i])))
            return bad(why, "of reply %zu was told \"%s\", and not \"%s\"", i, rv_buf_cstr(&ag.said[i]),
                       rv_buf_cstr(&g->texts[i]));
    return true;
}

bool judge_agui(rv_str stream, const struct gen *g, rv_buf *why)
{
    rv_str rest = stream;
    struct block b;
    bool good = true;

    memset(&ag, 0, sizeof ag);
    for (size_t i = 0; i < GEN_MAX_REPLIES; i++)
        ag.said[i] = RV_BUF_INIT((size_t)1 << 20);
    while (good && next_block(&rest, &b, why)) {
        json_object *e = NULL;
        good = rv_json_parse(b.data, NULL, &e, NULL) == 0 && json_object_is_type(e, json_type_object);
        good = good ? agui_event(e, g, why) : bad(why, "a block that is not an object");
        if (!good)
            rv_buf_printf(why, " in %.*s", RV_STR_ARG(b.data));
        json_object_put(e);
    }
    good = good && why->len == 0 && (ag.over || bad(why, "it has no end")) && all_said(g, why) &&
           (ag.errored == is_failure(g) || bad(why, "it ended well, or did not"));
    for (size_t i = 0; i < GEN_MAX_REPLIES; i++)
        rv_buf_fini(&ag.said[i]);
    return good;
}

/* Older clients: pairs are pairs, what children do is within their call, and nothing comes behind the end. */
bool judge_agui_old(rv_str stream, const struct gen *g, rv_buf *why)
{
    int thinks = 0, over = 0;
    rv_str rest = stream;
    struct block b;

    (void)g;
    memset(&ag, 0, sizeof ag);
    while (why->len == 0 && next_block(&rest, &b, why)) {
        json_object *e = NULL;
        if (rv_json_parse(b.data, NULL, &e, NULL) < 0)
            return bad(why, "a block that is not JSON");
        const char *type = text_of(e, "type"), *id = text_of(e, "messageId");
        json_object *value = rv_json_get_obj(e, "value");
        const char *call = value ? text_of(value, "parent_tool_call_id") : NULL;
        if (over++ && !(over = 0))
            bad(why, "%s behind the end", type);
        over = strcmp(type, "RUN_FINISHED") == 0 || strcmp(type, "RUN_ERROR") == 0;
        if (strncmp(type, "SUBAGENT", 8) == 0 || strncmp(type, "REASONING", 9) == 0 || strncmp(type, "STEP", 4) == 0)
            bad(why, "%s is not known to old clients", type);
        if (strcmp(type, "THINKING_START") == 0 && thinks++ > 0)
            bad(why, "two thoughts at once");
        if (strcmp(type, "THINKING_END") == 0 && --thinks < 0)
            bad(why, "a thought that was not begun");
        if (strncmp(type, "TEXT_MESSAGE_", 13) == 0)
            use(&ag.texts, id, NULL,
                strcmp(type + 13, "START") == 0 ? '+'
                : strcmp(type + 13, "END") == 0 ? '-'
                                                : ' ',
                type, why);
        if (strncmp(type, "TOOL_CALL_", 10) == 0)
            call_event(e, type, why);
        if (strcmp(type, "CUSTOM") == 0 && strncmp(text_of(e, "name"), "child_", 6) == 0 &&
            (!call || find(&ag.results, call) >= 0))
            bad(why, "an item of a child outside of its call");
        if (over && (ag.texts.n > 0 || ag.calls.n > 0 || thinks > 0))
            bad(why, "the run is over, and something is open");
        if (why->len > 0)
            rv_buf_printf(why, " in %.*s", RV_STR_ARG(b.data));
        json_object_put(e);
    }
    return why->len == 0 && (over || bad(why, "it has no end"));
}

/* --- OpenAI --- */

/* What was said of each reply stands in the whole, but for white space at its borders. */
static bool has_all(rv_str whole, const struct gen *g, rv_buf *why)
{
    for (size_t i = 1; i < GEN_MAX_REPLIES; i++) {
        rv_str words = rv_str_trim(rv_buf_str(&g->texts[i]));
        bool is_late = words.len > 7 && memcmp(words.ptr + words.len - 7, "{\"a\":1}", 7) == 0;
        if (is_late) /* a part of its own */
            words = rv_str_trim((rv_str){words.ptr, words.len - 7});
        if (words.len > 0 && !memmem(whole.ptr, whole.len, words.ptr, words.len))
            return bad(why, "\"%.*s\" of reply %zu is not in \"%.*s\"", RV_STR_ARG(words), i, RV_STR_ARG(whole));
    }
    return true;
}

bool judge_chunks(rv_str stream, const struct gen *g, bool is_remlight, rv_buf *why)
{
    rv_buf said = RV_BUF_INIT((size_t)8 << 20);
    bool role = false, finish = false, done = false, failed = false, named_done = false;
    rv_str rest = stream;
    struct block b;

    while (why->len == 0 && next_block(&rest, &b, why)) {
        json_object *e = NULL, *choices, *content = NULL;
        if (done)
            bad(why, "a block behind [DONE]");
        done = rv_str_is(b.data, "[DONE]");
        if (done)
            continue;
        if (rv_json_parse(b.data, NULL, &e, NULL) < 0)
            return bad(why, "a block that is not JSON");
        if (b.event.ptr && !is_remlight)
            bad(why, "a block with a name");
        if (b.event.ptr && (!text_of(e, "type") || !rv_str_is(b.event, text_of(e, "type"))))
            bad(why, "the name is not the type");
        named_done = named_done || rv_str_is(b.event, "done");
        failed = failed || rv_json_get_obj(e, "error") || rv_str_is(b.event, "error");
        choices = rv_json_get_arr(e, "choices");
        if (!choices && !b.event.ptr && !rv_json_get_obj(e, "error"))
            bad(why, "a chunk without choices");
        json_object *choice = choices ? json_object_array_get_idx(choices, 0) : NULL;
        json_object *delta = rv_json_get_obj(choice, "delta");
        if (delta && finish)
            bad(why, "a delta behind finish_reason");
        if (delta && !role && !text_of(delta, "role"))
            bad(why, "the first delta has no role");
        role = role || delta;
        if (choice && text_of(choice, "finish_reason"))
            finish = true;
        if (delta && json_object_object_get_ex(delta, "content", &content))
            rv_buf_add_str(&said, rv_json_str(content));
        json_object_put(e);
    }
    bool wrong_end = strcmp(g->status, "completed") != 0 && strcmp(g->status, "interrupted") != 0;
    if (why->len == 0 && (!done || (is_remlight && !named_done)))
        bad(why, "it has no end");
    if (why->len == 0 && (failed != wrong_end || finish == wrong_end))
        bad(why, "it ended well, or did not");
    bool good = why->len == 0 && has_all(rv_buf_str(&said), g, why);
    rv_buf_fini(&said);
    return good;
}

bool judge_responses(rv_str stream, const struct gen *g, rv_buf *why)
{
    rv_buf said = RV_BUF_INIT((size_t)8 << 20);
    int64_t sequence = 0, number = -1, items = 0, index = 0;
    json_object *last = NULL, *delta = NULL;
    rv_str rest = stream;
    struct block b;

    while (why->len == 0 && next_block(&rest, &b, why)) {
        json_object *e = NULL;
        if (rv_json_parse(b.data, NULL, &e, NULL) < 0)
            return bad(why, "a block that is not JSON");
        const char *type = text_of(e, "type");
        if (!type || !rv_str_is(b.event, type))
            bad(why, "the name is not the type");
        if (!rv_json_get_int(e, "sequence_number", &number) || number != sequence++)
            bad(why, "a number is left out");
        if (sequence == 1 && !rv_str_is(b.event, "response.created"))
            bad(why, "the first is not response.created");
        if (rv_str_is(b.event, "response.output_item.added") &&
            (!rv_json_get_int(e, "output_index", &index) || index != items++))
            bad(why, "an item has another index");
        if (rv_json_get_int(e, "output_index", &index) && index >= items)
            bad(why, "an item that was not added");
        if (rv_str_is(b.event, "response.output_text.delta") && json_object_object_get_ex(e, "delta", &delta))
            rv_buf_add_str(&said, rv_json_str(delta));
        json_object_put(last);
        last = e;
    }
    json_object *response = rv_json_get_obj(last, "response"), *output = rv_json_get_arr(response, "output");
    bool good = why->len == 0 && response && strcmp(text_of(response, "status"), "in_progress") != 0;
    size_t n = output ? json_object_array_length(output) : 0;
    if (good && n != (size_t)items)
        good = bad(why, "the output has %zu items of %lld", n, (long long)items);
    for (size_t i = 0; good && i < n; i++)
        good = json_object_array_get_idx(output, i) || bad(why, "an item is missing");
    good = good && has_all(rv_buf_str(&said), g, why);
    if (!good && why->len == 0)
        bad(why, "it has no end");
    json_object_put(last);
    rv_buf_fini(&said);
    return good;
}
