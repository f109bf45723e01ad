/* Any text read as the rows of a turn either fails or gives rows whose history can be shown; and bytes taken as rows of
 * a store, whatever is in them, become messages in which each call is followed by its result, with any options. */
#include "coreengine/conversation/conversation.h"
#include "tests/kit/fuzz.h"

#include <stdint.h>
#include <stdlib.h>

#define MAX_ROWS 200

/* --- what has to hold --- */

static void check_calls(json_object *calls, json_object *messages, size_t at)
{
    size_t n = json_object_array_length(calls);

    require(n > 0 && at + n < json_object_array_length(messages));
    for (size_t i = 0; i < n; i++) {
        json_object *call = json_object_array_get_idx(calls, i), *arguments = NULL;
        json_object *result = json_object_array_get_idx(messages, at + 1 + i);
        const char *id = NULL, *answers = NULL, *text = NULL;
        require(rv_json_get_text(call, "id", &id) && *id && rv_json_get_text(call, "arguments", &text));
        require(rv_json_get_text(result, "tool_call_id", &answers) && rv_str_is(rv_str_of(id), answers));
        require(rv_json_parse(rv_str_of(text), NULL, &arguments, NULL) == 0);
        require(json_object_is_type(arguments, json_type_object));
        json_object_put(arguments);
    }
}

static void check_messages(json_object *messages)
{
    rv_buf text = RV_BUF_INIT((size_t)64 << 20);
    json_object *again = NULL;

    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        json_object *calls = rv_json_get_arr(json_object_array_get_idx(messages, i), "tool_calls");
        if (calls)
            check_calls(calls, messages, i);
    }
    rv_json_write(messages, &text);
    require(rv_buf_check(&text, "messages", NULL) == 0); /* all of it is UTF-8 */
    require(rv_json_parse(rv_buf_str(&text), NULL, &again, NULL) == 0);
    json_object_put(again);
    rv_buf_fini(&text);
}

/* rows: oldest first */
static void show(const struct rv_message *rows, size_t n, const struct rv_history_opts *o)
{
    rv_history *h = NULL;
    json_object *messages = NULL;
    bool full = false;

    require(rv_history_new("s", o, &h, NULL) == 0);
    for (size_t i = n; i > 0 && !full; i--)
        require(rv_history_add(h, &rows[i - 1], &full, NULL) == 0);
    require(rv_history_finish(h, &messages, NULL) == 0);
    check_messages(messages);
    json_object_put(messages);
    rv_history_free(h);
}

/* --- the input as a turn --- */

static void as_turn(rv_str text)
{
    struct rv_turn *t = rv_turn_new(1 << 20);
    json_object *json = NULL;

    require(t != NULL);
    if (rv_json_parse(text, NULL, &json, NULL) == 0 && rv_json_get_arr(json, "rows") &&
        rv_turn_read_rows(rv_json_get_arr(json, "rows"), t, NULL) == 0) {
        struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
        show(t->rows, t->n_rows, &o);
        o.policy = RV_REPLAY_SKIP;
        show(t->rows, t->n_rows, &o);
    }
    json_object_put(json);
    rv_turn_free(t);
}

/* --- the input as rows: options first, then for each row its kind and three texts with their lengths --- */

struct bytes {
    const uint8_t *at;
    size_t left;
};

static unsigned byte(struct bytes *b)
{
    if (b->left == 0)
        return 0;
    b->left--;
    return *b->at++;
}

static rv_str some(struct bytes *b)
{
    size_t n = byte(b);
    rv_str text;

    if (n == 255)
        n = 255 + 16 * (size_t)byte(b);
    if (n > b->left)
        n = b->left;
    text = (rv_str){(const char *)b->at, n};
    b->at += n;
    b->left -= n;
    return text;
}

static void as_rows(struct bytes b)
{
    static struct rv_message rows[MAX_ROWS];
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    unsigned flags = byte(&b);
    size_t n = 0;

    o.policy = (int)(flags & 1);
    o.compress = (flags & 2) != 0;
    o.count_tool_rows = (flags & 4) != 0;
    o.always_last = (flags >> 3) & 3;
    o.compress_keep = byte(&b);
    o.max_tokens = flags & 32 ? RV_UNSET : (int64_t)byte(&b);
    o.max_messages = flags & 64 ? RV_UNSET : (int64_t)byte(&b);
    for (; b.left && n < MAX_ROWS; n++) {
        unsigned kind = byte(&b), type = kind % (RV_N_MESSAGE_TYPES + 2);
        rows[n] = (struct rv_message){.seq = (int64_t)n + 1, .token_count = RV_UNSET, .has_content = (kind & 128) == 0};
        rows[n].type = type < RV_N_MESSAGE_TYPES ? rv_message_type_text((enum rv_message_type)type) : "alien";
        rows[n].content = some(&b);
        rows[n].tool_calls = some(&b);
        rows[n].metadata = some(&b);
    }
    show(rows, n, &o);
}

static void as_key(rv_str text)
{
    char key[RV_MESSAGE_MAX_KEY];
    rv_str session;
    int64_t seq;
    bool is_cut;

    if (!rv_message_key_read(text, &session, &seq, &is_cut) || is_cut)
        return;
    char *name = rv_str_dup(session);
    require(name != NULL);
    rv_message_make_key(name, seq, key);
    require(rv_str_eq(rv_str_of(key), text) || rv_str_of(name).len != session.len); /* no NUL within */
    free(name);
}

RV_FUZZ_TARGET(history)
{
    rv_str text = {(const char *)data, size};

    as_turn(text);
    as_rows((struct bytes){data, size});
    as_key(text);
    return 0;
}
