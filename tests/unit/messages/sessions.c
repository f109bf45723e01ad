#include "tests/unit/messages/sessions.h"

#include <string.h>

#define HUGE (((size_t)1 << 20) + 1)

static char huge[HUGE];

void session_init(struct session *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    s->rand = rv_rand_seeded(&s->state, seed);
    s->texts = rv_arena_new((size_t)64 << 20);
    if (!s->texts)
        rv_kit_die("no memory");
    memset(huge, 'h', sizeof huge);
}

void session_fini(struct session *s)
{
    rv_arena_free(s->texts);
}

unsigned session_pick(struct session *s, unsigned n)
{
    return (unsigned)rv_rand_below(s->rand, n);
}

static bool chance(struct session *s, unsigned percent)
{
    return session_pick(s, 100) < percent;
}

static const char *keep(struct session *s, rv_buf *text, size_t *len)
{
    char *copy = rv_arena_dup(s->texts, rv_buf_str(text));

    if (!copy || text->rc)
        rv_kit_die("no memory");
    *len = text->len;
    rv_buf_fini(text);
    return copy;
}

static rv_str keep_str(struct session *s, rv_buf *text)
{
    rv_str kept;

    kept.ptr = keep(s, text, &kept.len);
    return kept;
}

/* Bytes of all kinds; mostly UTF-8. */
static void add_piece(struct session *s, rv_buf *b)
{
    static const rv_str pieces[] = {{"word ", 5},    {"\xc3\xa9", 2}, {"\xe6\xbc\xa2", 3}, {"\xf0\x9f\x98\x80", 4},
                                    {"\"{}\\", 4},   {"\n\n", 2},     {"\xff", 1},         {"\xed\xa0\x80", 3},
                                    {"\xc3", 1},     {"\0", 1},       {" \t", 2},          {"\x7f\x01", 2},
                                    {"e\xcc\x81", 3}};
    rv_str piece = pieces[session_pick(s, chance(s, 80) ? 6 : RV_COUNT(pieces))];

    rv_buf_add_str(b, piece);
}

static rv_str some_text(struct session *s)
{
    rv_buf b = RV_BUF_INIT(1 << 20);
    unsigned n = chance(s, 10) ? 600 : session_pick(s, 30);

    if (chance(s, 15))
        n = 0;
    if (n == 0 && chance(s, 50))
        rv_buf_puts(&b, " \n");
    for (unsigned i = 0; i < n; i++)
        add_piece(s, &b);
    return keep_str(s, &b);
}

static void write_id(struct session *s, rv_jw *w, const char *key)
{
    static const char *const ids[] = {"a",
                                      "b",
                                      "call_3",
                                      "call_4",
                                      "toolu_01ABCdef",
                                      "a b",
                                      "\xc3\xa9",
                                      "0123456789012345678901234567890123456789",
                                      "01234567890123456789012345678901234567890",
                                      "",
                                      "call_5_1"};

    switch (session_pick(s, 8)) {
    case 0:
        break; /* left out */
    case 1:
        rv_jw_key(w, key);
        rv_jw_null(w);
        break;
    case 2:
        rv_jw_kv_int(w, key, 7);
        break;
    default:
        rv_jw_kv_text(w, key, ids[session_pick(s, RV_COUNT(ids))]);
    }
}

static void write_tool_name(struct session *s, rv_jw *w, const char *key)
{
    static const char *const names[] = {"f",
                                        "g",
                                        "agent:search",
                                        "n\xc3\xa4me with blanks",
                                        "",
                                        "a_name_that_is_longer_than_any_provider_would_take_it_to_be_for_a_tool"};

    if (chance(s, 85))
        rv_jw_kv_text(w, key, names[session_pick(s, RV_COUNT(names))]);
}

static void write_arguments(struct session *s, rv_jw *w, const char *key)
{
    static const char *const values[] = {"{}",       "{\"q\":1.50}",
                                         "[1]",      "null",
                                         "7",        "\"{\\\"q\\\":1}\"",
                                         "\"{q\"",   "\"\"",
                                         "\"[]\"",   "{\"a\":{\"a\":{\"a\":[1e30,\"\\ud83d\\ude00\\u0000\"]}}}",
                                         "\"1e999\""};

    if (chance(s, 90)) {
        rv_jw_key(w, key);
        rv_jw_raw(w, rv_str_of(values[session_pick(s, RV_COUNT(values))]));
    }
}

static rv_str some_call(struct session *s, const char *id, const char *name, const char *arguments)
{
    static const char *const broken[] = {"", "{", "[1]", "null", "7", "\xff"};
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);

    if (chance(s, 10)) {
        rv_buf_puts(&b, broken[session_pick(s, RV_COUNT(broken))]);
    } else {
        rv_jw_obj(&w);
        write_id(s, &w, id);
        write_tool_name(s, &w, name);
        write_arguments(s, &w, arguments);
        rv_jw_obj_end(&w);
    }
    return keep_str(s, &b);
}

static const char *some_type(struct session *s)
{
    static const char *const types[] = {
        "user",   "assistant",   "tool_call", "tool_call", "tool_response", "tool_response", "tool",
        "system", "observation", "memory",    "think",     "tool_result",   "alien",         ""};

    return chance(s, 2) ? NULL : types[session_pick(s, RV_COUNT(types))];
}

static struct rv_message some_row(struct session *s)
{
    static const char *const metadata[] = {"",  "{}", "{\"is_error\":true}", "{\"is_error\":1}",
                                           "{", "[]", "{\"is_error\":false}"};
    struct rv_message m = {.type = some_type(s), .token_count = RV_UNSET, .has_content = chance(s, 90)};

    m.content = some_text(s);
    if (chance(s, 1)) {
        m.content = (rv_str){huge, HUGE - session_pick(s, 2)};
        s->n_huge++;
    }
    if (chance(s, 10))
        m.parent_call_id = chance(s, 50) ? "a" : "";
    m.tool_calls = some_call(s, "id", "name", "arguments");
    if (m.type && strcmp(m.type, "tool") == 0)
        m.metadata = some_call(s, "tool_call_id", "tool_name", "tool_arguments");
    else
        m.metadata = rv_str_of(metadata[session_pick(s, RV_COUNT(metadata))]);
    return m;
}

void session_make_wild(struct session *s)
{
    bool has_counts = chance(s, 30);

    s->n = session_pick(s, MAX_SESSION + 1);
    for (size_t i = 0; i < s->n; i++) {
        struct rv_message *m = &s->rows[i];
        *m = some_row(s);
        m->seq = chance(s, 95) ? (int64_t)i + 1 : (int64_t)session_pick(s, 5) - 1;
        m->created_us = (int64_t)i + 1;
        if (has_counts && chance(s, 70))
            m->token_count = chance(s, 5) ? INT64_MAX : session_pick(s, 60);
    }
}

/* --- sessions as the engine keeps them --- */

static struct rv_message *add_row(struct session *s, const char *type)
{
    struct rv_message *m = &s->rows[s->n++];

    *m = (struct rv_message){.type = type, .seq = (int64_t)s->n, .created_us = (int64_t)s->n, .token_count = RV_UNSET};
    return m;
}

static void say(struct session *s, const char *type)
{
    struct rv_message *m = add_row(s, type);
    rv_buf b = RV_BUF_INIT(10000);

    rv_buf_printf(&b, "%s %zu ", type, s->n);
    for (unsigned n = session_pick(s, 40); n > 0; n--)
        rv_buf_puts(&b, "\xc3\xa9x");
    m->has_content = true;
    m->content = keep_str(s, &b);
}

/* The ids begin anew with each turn, as some providers have them. */
static void call(struct session *s, const char *type, unsigned id, size_t k)
{
    struct rv_message *m = add_row(s, type);
    rv_buf b = RV_BUF_INIT(10000), text = RV_BUF_INIT(10000);

    rv_buf_printf(&b, "{\"name\":\"f%u\",\"id\":\"id_%u\"", id, id);
    if (strcmp(type, "tool_call") == 0) {
        rv_buf_printf(&b, ",\"arguments\":{\"is\":\"c%zu\",\"fill\":\"%.*s\"}", k, (int)session_pick(s, 40), huge);
    } else {
        rv_buf_printf(&text, "r%zu %.*s", k, (int)session_pick(s, 120), huge);
        m->has_content = true;
        m->content = keep_str(s, &text);
    }
    rv_buf_puts(&b, "}");
    m->tool_calls = keep_str(s, &b);
}

static void make_calls(struct session *s, bool at_once, unsigned *n_ids, size_t *n_calls)
{
    unsigned n = at_once ? 1 + session_pick(s, 4) : 1, first = *n_ids, shift = session_pick(s, n);

    for (unsigned i = 0; i < n; i++)
        call(s, "tool_call", first + i, *n_calls + i);
    if (chance(s, 20))
        say(s, "think");
    for (unsigned i = 0; i < n; i++) /* whoever is ready first */
        call(s, "tool_response", first + (i + shift) % n, *n_calls + (i + shift) % n);
    *n_ids += n;
    *n_calls += n;
}

void session_make_sound(struct session *s, bool at_once)
{
    size_t n_calls = 0;

    while (s->n < MAX_SESSION - 40) {
        unsigned n_ids = 0;
        say(s, "user");
        for (unsigned n = session_pick(s, 4); n > 0; n--)
            make_calls(s, at_once, &n_ids, &n_calls);
        if (chance(s, 90))
            say(s, "assistant");
    }
}

struct rv_history_opts session_options(struct session *s)
{
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;

    o.policy = (int)session_pick(s, RV_N_REPLAY_POLICIES);
    o.max_tokens = chance(s, 30) ? RV_UNSET : chance(s, 5) ? 0 : (int64_t)session_pick(s, chance(s, 50) ? 100 : 2000);
    o.max_messages = chance(s, 60) ? RV_UNSET : (int64_t)session_pick(s, 30);
    o.since_us = chance(s, 80) ? 0 : (int64_t)session_pick(s, 30);
    o.always_last = session_pick(s, 8);
    o.compress = chance(s, 70);
    o.compress_keep = chance(s, 50) ? 200 : (int64_t)session_pick(s, 300);
    o.count_tool_rows = chance(s, 20);
    return o;
}
