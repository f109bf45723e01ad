/* Thousands of random sessions, as the engine keeps them and as nobody should, under random options: the messages keep
 * the rules of providers, so do the bodies that the wires make of them, the budget is kept, no call is parted from its
 * result, and what comes after the end of the walk changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/conversation/conversation.h"
#include "coreengine/model/wire/wire.h"
#include "tests/kit/suites.h"
#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/rules.h"
#include "tests/unit/messages/sessions.h"

#if defined(__SANITIZE_ADDRESS__)
#define N_SESSIONS 400
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define N_SESSIONS 400
#endif
#endif
#ifndef N_SESSIONS
#define N_SESSIONS 3000
#endif
#define PROMPT    "What now?"
#define NO_RESULT "no result was recorded for this call"

static json_object *messages_of(const struct session *s, const struct rv_history_opts *o, bool insists)
{
    return history_of(s->rows, s->n, o, insists, NULL);
}

/* --- what providers get --- */

static json_object *body_of(enum rv_wire_kind wire, json_object *messages)
{
    struct rv_wire_target t = {.wire = wire, .provider = "p", .model = "m"};
    const struct rv_json_opts opts = {.max_bytes = (size_t)256 << 20};
    json_object *request = rv_kit_json("{'system':'You help.','prompt':'" PROMPT "','options':{'num_predict':100}}"),
                *body = NULL;
    rv_buf text = RV_BUF_INIT((size_t)256 << 20);
    rv_err *err = NULL;

    if (rv_json_set_ref(request, "history", messages, &err) < 0 ||
        rv_wire_write_request(&t, request, &text, &err) < 0 || rv_json_parse(rv_buf_str(&text), &opts, &body, &err) < 0)
        rv_kit_die("wire %d: %s", (int)wire, rv_err_text(err));
    rv_buf_fini(&text);
    json_object_put(request);
    return body;
}

static void check_rules(json_object *messages, uint64_t seed)
{
    const char *broken = broken_rule_of_history(messages);
    json_object *body;

    ck_assert_msg(!broken, "session %d: messages: %s", (int)seed, broken);
    body = body_of(RV_WIRE_OPENAI, messages);
    broken = broken_rule_of_openai(body, PROMPT);
    ck_assert_msg(!broken, "session %d: openai: %s", (int)seed, broken);
    json_object_put(body);
    body = body_of(RV_WIRE_ANTHROPIC, messages);
    broken = broken_rule_of_anthropic(body, PROMPT);
    ck_assert_msg(!broken, "session %d: anthropic: %s", (int)seed, broken);
    json_object_put(body);
    json_object_put(body_of(RV_WIRE_OLLAMA, messages));
}

/* --- the budget --- */

static int64_t tokens_of(rv_str text)
{
    int64_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += ((unsigned char)text.ptr[i] >> 6) != 2;
    return n / 4;
}

/* Of rows without counts: whatever is shown is estimated. */
static void measure(json_object *messages, int64_t *tokens, int64_t *rows)
{
    *tokens = *rows = 0;
    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        json_object *m = json_object_array_get_idx(messages, i), *calls = rv_json_get_arr(m, "tool_calls");
        *tokens += tokens_of(rule_text(m, "content"));
        *rows += json_object_object_get_ex(m, "content", NULL);
        for (size_t k = 0; calls && k < json_object_array_length(calls); k++)
            *tokens += tokens_of(rule_text(json_object_array_get_idx(calls, k), "arguments"));
    }
}

static bool has_counts(const struct session *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->rows[i].token_count >= 0)
            return true;
    return false;
}

static void check_budget(const struct session *s, const struct rv_history_opts *o, json_object *messages, uint64_t seed)
{
    int64_t tokens, rows;

    measure(messages, &tokens, &rows);
    if (o->max_tokens >= 0 && !has_counts(s))
        ck_assert_msg(tokens <= o->max_tokens, "session %d: %d tokens", (int)seed, (int)tokens);
    if (o->max_messages >= 0)
        ck_assert_msg(rows <= o->max_messages, "session %d: %d rows", (int)seed, (int)rows);
    if (o->max_tokens == 0)
        ck_assert_uint_eq(json_object_array_length(messages), 0);
}

/* --- wild sessions --- */

static bool shows(json_object *messages, const char *content)
{
    for (size_t i = 0; i < json_object_array_length(messages); i++)
        if (rule_is(json_object_array_get_idx(messages, i), "content", content))
            return true;
    return false;
}

static void check_repeatable(const struct session *s, const struct rv_history_opts *o, json_object *messages)
{
    json_object *again = messages_of(s, o, false), *insisting = messages_of(s, o, true);
    char *text = rv_kit_text(messages), *same = rv_kit_text(again), *also = rv_kit_text(insisting);

    ck_assert_str_eq(text, same);
    ck_assert_str_eq(text, also);
    free(text);
    free(same);
    free(also);
    json_object_put(again);
    json_object_put(insisting);
}

/* Proves remlight.14: Whatever the rows are, the messages are those that every provider takes */
START_TEST(whatever_is_stored_becomes_messages_that_providers_take)
{
    int n_calls = 0, n_unanswered = 0, n_huge = 0, n_shown = 0;

    for (uint64_t seed = 0; seed < N_SESSIONS; seed++) {
        struct session s;
        struct rv_history_opts o;
        json_object *messages;

        session_init(&s, seed + 1);
        session_make_wild(&s);
        o = session_options(&s);
        messages = messages_of(&s, &o, false);
        check_rules(messages, seed);
        check_budget(&s, &o, messages, seed);
        check_repeatable(&s, &o, messages);
        n_unanswered += shows(messages, NO_RESULT);
        n_huge += s.n_huge;
        n_shown += json_object_array_length(messages) > 5;
        for (size_t i = 0; i < json_object_array_length(messages); i++)
            n_calls += rv_json_get_arr(json_object_array_get_idx(messages, i), "tool_calls") != NULL;
        json_object_put(messages);
        session_fini(&s);
    }
    ck_assert_int_gt(n_calls, N_SESSIONS / 4);
    ck_assert_int_gt(n_unanswered, N_SESSIONS / 20);
    ck_assert_int_gt(n_huge, N_SESSIONS / 20);
    ck_assert_int_gt(n_shown, N_SESSIONS / 5);
}
END_TEST

/* --- memory --- */

static json_object *told_of(const struct session *s, const struct rv_history_opts *o, json_object *moments)
{
    rv_history *h = NULL;
    json_object *messages = NULL;
    rv_err *err = NULL;
    bool full = false;

    if (rv_history_new("s", o, &h, &err) < 0)
        rv_kit_die("%s", rv_err_text(err));
    rv_history_set_moments(h, moments);
    for (size_t i = s->n; i > 0 && !full; i--)
        if (rv_history_add(h, &s->rows[i - 1], &full, &err) < 0)
            rv_kit_die("%s", rv_err_text(err));
    if (rv_history_finish(h, &messages, &err) < 0)
        rv_kit_die("%s", rv_err_text(err));
    rv_history_free(h);
    return messages;
}

/* Whether the message of the whole history became what stands in the compacted one. */
static bool is_kept_or_hint(json_object *whole, json_object *compacted, bool *is_hint)
{
    rv_str now = rule_text(compacted, "content");

    *is_hint = false;
    if (rv_json_equal(whole, compacted))
        return true;
    *is_hint = now.len > 9 && (memcmp(now.ptr, "[Earlier:", 9) == 0 || memcmp(now.ptr, "[earlier ", 9) == 0);
    return *is_hint && rule_is(whole, "role", "assistant") && rule_is(compacted, "role", "assistant") &&
           rv_json_equal(json_object_object_get(whole, "tool_calls"), json_object_object_get(compacted, "tool_calls"));
}

/* Proves p8-data.23/2: The last rows and the words of users never change, stored rows never do, twice is once */
START_TEST(only_older_answers_become_hints)
{
    int n_hints = 0;
    json_object *moments = rv_kit_json("[{'name':'m','hint':'H','text':'T','from_seq':1,'through_seq':9}]");

    for (uint64_t seed = 0; seed < N_SESSIONS; seed++) {
        struct session s;
        json_object *whole, *compacted, *again, *notes = seed % 2 ? moments : NULL;
        struct rv_history_opts o;

        session_init(&s, seed + 7);
        session_make_wild(&s);
        o = session_options(&s);
        rv_history_compact(&o, RV_COMPACTION_NONE);
        whole = told_of(&s, &o, notes);
        rv_history_compact(&o, RV_COMPACTION_MOMENTS);
        compacted = told_of(&s, &o, notes);
        again = told_of(&s, &o, notes);
        ck_assert(rv_json_equal(compacted, again));
        check_rules(compacted, seed);
        size_t n = json_object_array_length(whole);
        ck_assert_uint_eq(n, json_object_array_length(compacted));
        for (size_t i = 0; i < n; i++) {
            bool is_hint;
            ck_assert_msg(
                is_kept_or_hint(json_object_array_get_idx(whole, i), json_object_array_get_idx(compacted, i), &is_hint),
                "session %d: message %zu of %zu", (int)seed, i, n);
            ck_assert_msg(!is_hint || (int64_t)(n - i) > o.always_last / 2, "session %d: a hint among the last %d",
                          (int)seed, (int)o.always_last);
            n_hints += is_hint;
        }
        json_object_put(whole);
        json_object_put(compacted);
        json_object_put(again);
        session_fini(&s);
    }
    json_object_put(moments);
    ck_assert_int_gt(n_hints, N_SESSIONS / 4);
}
END_TEST

/* Proves p8-data.23/1: What is kept is the end of the session, and an older row never changes what stands behind it */
START_TEST(an_older_row_changes_nothing_behind_it)
{
    for (uint64_t seed = 0; seed < N_SESSIONS; seed++) {
        struct session s;
        struct rv_history_opts o;

        session_init(&s, seed + 3);
        for (s.n = 0; s.n < 20; s.n++)
            s.rows[s.n] = (struct rv_message){.type = session_pick(&s, 2) ? "user" : "assistant",
                                              .has_content = true,
                                              .content = RV_STR_LIT("words of a user"),
                                              .token_count = session_pick(&s, 9),
                                              .seq = (int64_t)s.n + 2};
        o = RV_HISTORY_OPTS_INIT;
        o.max_tokens = session_pick(&s, 60);
        json_object *before = told_of(&s, &o, NULL);
        memmove(s.rows + 1, s.rows, s.n * sizeof *s.rows);
        s.rows[0] = (struct rv_message){.type = "user", .has_content = true, .content = RV_STR_LIT("older"), .seq = 1};
        s.n++;
        json_object *after = told_of(&s, &o, NULL);
        size_t n = json_object_array_length(before), m = json_object_array_length(after);
        ck_assert_uint_ge(m, n);
        ck_assert_uint_le(m, n + 1);
        for (size_t i = 0; i < n; i++)
            ck_assert(rv_json_equal(json_object_array_get_idx(before, i), json_object_array_get_idx(after, m - n + i)));
        json_object_put(before);
        json_object_put(after);
        session_fini(&s);
    }
}
END_TEST

/* --- sound sessions --- */

/* "c7" of the arguments {"is":"c7",...} and "r7" of the result "r7 ...". */
static long number_of(rv_str text, char letter)
{
    const char *at = text.len ? strchr(text.ptr, letter) : NULL;

    while (at && (at[1] < '0' || at[1] > '9'))
        at = strchr(at + 1, letter);
    return at ? strtol(at + 1, NULL, 10) : -1;
}

/* Each call with its own result; nothing made up. */
static void check_pairs(json_object *messages, uint64_t seed)
{
    json_object *calls = NULL;
    size_t next = 0;

    for (size_t i = 0; i < json_object_array_length(messages); i++) {
        json_object *m = json_object_array_get_idx(messages, i);
        if (rv_json_get_arr(m, "tool_calls")) {
            calls = rv_json_get_arr(m, "tool_calls");
            next = 0;
        }
        if (!rule_is(m, "role", "tool"))
            continue;
        long c = number_of(rule_text(json_object_array_get_idx(calls, next++), "arguments"), 'c');
        long r = number_of(rule_text(m, "content"), 'r');
        ck_assert_msg(c >= 0 && c == r, "session %d: call %ld has result %ld", (int)seed, c, r);
    }
}

/* Proves remlight.14, remlight.19/8 */
START_TEST(no_call_is_parted_from_its_result)
{
    int n_calls = 0;

    for (uint64_t seed = 0; seed < N_SESSIONS; seed++) {
        struct session s;
        struct rv_history_opts o;
        json_object *messages;

        session_init(&s, seed + 1000000);
        session_make_sound(&s, true);
        o = session_options(&s);
        messages = messages_of(&s, &o, false);
        check_pairs(messages, seed);
        check_rules(messages, seed);
        check_budget(&s, &o, messages, seed);
        check_repeatable(&s, &o, messages);
        for (size_t i = 0; i < json_object_array_length(messages); i++)
            n_calls += rule_is(json_object_array_get_idx(messages, i), "role", "tool");
        json_object_put(messages);
        session_fini(&s);
    }
    ck_assert_int_gt(n_calls, N_SESSIONS);
}
END_TEST

/* --- the walk, written once more: texts and whole pairs, from the newest --- */

/* What has room of a session in which each call is directly followed by its result: one letter for each row, oldest
 * first. */
static void expect(const struct session *s, const struct rv_history_opts *o, char shown[MAX_SESSION + 1])
{
    int64_t tokens = o->max_tokens < 0 ? INT64_MAX : o->max_tokens,
            rows = o->max_messages < 0 ? INT64_MAX : o->max_messages;
    size_t i = s->n;

    memset(shown, '-', s->n);
    shown[s->n] = '\0';
    while (i > 0 && tokens >= 0) {
        const struct rv_message *row = &s->rows[--i];
        bool is_pair = row->type[0] == 't' && row->type[5] == 'r';
        const char *arguments =
            is_pair ? strstr(s->rows[i - 1 - (s->rows[i - 1].type[1] == 'h')].tool_calls.ptr, "{\"is") : "";
        int64_t cost = tokens_of(row->content) + (is_pair ? tokens_of((rv_str){arguments, strlen(arguments) - 1}) : 0);
        if (row->type[0] == 't' && !is_pair)
            continue; /* thoughts; the call of a pair */
        bool fits = cost <= tokens && (is_pair ? 2 : 1) <= rows;
        if (!is_pair && !fits)
            return;
        if (!fits || (is_pair && o->policy == RV_REPLAY_SKIP))
            continue;
        shown[i] = is_pair ? 'p' : 't';
        tokens -= cost;
        rows -= is_pair ? 2 : 1;
    }
}

static void check_shown(const struct session *s, const char *shown, json_object *messages, uint64_t seed)
{
    size_t at = 0;

    for (size_t i = 0; i < s->n; i++) {
        json_object *m;
        if (shown[i] == '-')
            continue;
        while (at < json_object_array_length(messages) &&
               !json_object_object_get_ex(json_object_array_get_idx(messages, at), "content", NULL))
            at++; /* calls alone */
        ck_assert_msg(at < json_object_array_length(messages), "session %d: row %zu is not shown", (int)seed, i + 1);
        m = json_object_array_get_idx(messages, at++);
        ck_assert_msg(rv_str_eq(rule_text(m, "content"), s->rows[i].content), "session %d: row %zu is not next",
                      (int)seed, i + 1);
    }
    ck_assert_msg(at == json_object_array_length(messages), "session %d: more than %s", (int)seed, shown);
}

/* Proves p8.W17 */
START_TEST(as_much_is_shown_as_has_room)
{
    int n_left_out = 0;

    for (uint64_t seed = 0; seed < N_SESSIONS; seed++) {
        struct session s;
        struct rv_history_opts o;
        json_object *messages;
        char shown[MAX_SESSION + 1];

        session_init(&s, seed + 2000000);
        session_make_sound(&s, false);
        o = session_options(&s);
        o.compress = o.count_tool_rows = false;
        o.since_us = 0;
        if (o.max_tokens == 0)
            o.max_tokens = 1;
        messages = messages_of(&s, &o, false);
        expect(&s, &o, shown);
        check_shown(&s, shown, messages, seed);
        n_left_out += strstr(shown, "t-") != NULL && strchr(shown, 'p') != NULL;
        json_object_put(messages);
        session_fini(&s);
    }
    ck_assert_int_gt(n_left_out, N_SESSIONS / 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("messages_property");
    TCase *c = tcase_create("property");

    tcase_add_test(c, whatever_is_stored_becomes_messages_that_providers_take);
    tcase_add_test(c, only_older_answers_become_hints);
    tcase_add_test(c, an_older_row_changes_nothing_behind_it);
    tcase_add_test(c, no_call_is_parted_from_its_result);
    tcase_add_test(c, as_much_is_shown_as_has_room);
    suite_add_tcase(suite, c);
    return rv_kit_run(suite);
}
