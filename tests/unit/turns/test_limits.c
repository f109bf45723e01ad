/* Limits that hold for a turn and everything below it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/run/run_internal.h"
#include "tests/unit/turns/room.h"

static struct room *done(const struct scene *s)
{
    struct room *r = room_new(s, NULL);

    room_start(r);
    room_go(r);
    return r;
}

/* --- money --- */

#define PRICED "models: {default: {model: 'openai:gpt-x', price: {input: 1, output: 2}}}\nbudget: {usd: %d.%06d}\n"

static int64_t spent(const struct room *r)
{
    return rv_envelope_fields(rv_run_envelope(r->run))->usage.cost_micro_usd;
}

static void check_money(const struct room *r, int64_t budget)
{
    ck_assert_int_eq(r->run->shared.reserved_micro_usd, 0);
    ck_assert_int_eq(r->run->shared.spent_micro_usd, spent(r));
    ck_assert_msg(spent(r) <= budget, "%lld of %lld", (long long)spent(r), (long long)budget);
}

static void price(struct scene *s, char keys[200], int64_t budget)
{
    ck_assert_int_lt(snprintf(keys, 200, PRICED, (int)(budget / 1000000), (int)(budget % 1000000)), 200);
    s->keys = keys;
}

/* Proves p8.W14, remlight.19/16 */
START_TEST(whoever_is_asked_spends_from_the_same_purse)
{
    size_t n_refused = 0, n_whole = 0, n_failed = 0;

    for (int64_t budget = 1000; budget <= 61000; budget += 1500) {
        struct scene s = *room_scene("paid");
        char keys[200];
        price(&s, keys, budget);
        struct room *r = done(&s);
        char *rows = room_rows(r);
        bool refused = strstr(rows, "the next model call may cost") != NULL;
        bool ok = rv_run_status(r->run) == RV_RUN_COMPLETED;
        check_money(r, budget);
        n_refused += ok && refused;
        n_whole += ok && !refused;
        n_failed += !ok;
        free(rows);
        room_free(r);
    }
    ck_assert_uint_gt(n_refused, 2); /* the agent that was asked could not pay, and its parent could */
    ck_assert_uint_gt(n_whole, 2);
    ck_assert_uint_gt(n_failed, 0);
}
END_TEST

/* A model call under way when the process dies counts as charged for: then an asked agent may have nothing left. */
START_TEST(a_death_costs_and_nobody_stands_still)
{
    size_t n_broke = 0;

    for (int64_t budget = 10000; budget <= 61000; budget += 3000 * (int64_t)rv_kit_stride(8)) {
        struct scene s = *room_scene("paid");
        char keys[200];
        price(&s, keys, budget);
        struct room *calm = done(&s);
        for (size_t step = 1; step < calm->n_steps; step++) {
            struct room *r = room_new(&s, NULL);
            room_start(r);
            for (size_t i = 1; i < step; i++)
                ck_assert(room_answer(r));
            room_die(r);
            n_broke += !r->finished && r->n_calls == 0; /* that would be a run that nobody wakes */
            if (!r->finished)
                room_go(r);
            check_money(r, budget);
            room_check_replay(r);
            room_free(r);
        }
        room_free(calm);
    }
    ck_assert_uint_eq(n_broke, 0);
}
END_TEST

/* --- rows --- */

#define LONG_ID   1025
#define LONG_NAME 1100
#define HUGE_KEYS "models: {default: {model: 'openai:%s', price: {input: 3, output: 15}}}\n"

/* {"a":{"a": ... 1}} */
static void write_deep(int levels, rv_buf *out)
{
    for (int i = 0; i < levels; i++)
        rv_buf_puts(out, "{\"a\":");
    rv_buf_putc(out, '1');
    for (int i = 0; i < levels; i++)
        rv_buf_putc(out, '}');
}

static void check_kept(struct room *r, const char *id)
{
    char *rows = room_rows(r), *columns = room_columns(r), hash[RV_HASH_MAX], part[RV_HASH_MAX + 40];

    rv_hash_format(rv_str_of(id), hash);
    snprintf(part, sizeof part, "assistant<%s[child] this", hash);
    ck_assert_msg(strstr(rows, part) != NULL, "%s", rows);
    snprintf(part, sizeof part, "\"id\":\"%s\"", hash);
    ck_assert_uint_eq(room_count(rows, part), 2); /* of the call and of its result */
    ck_assert_ptr_nonnull(strstr(rows, "\"id\":\"r1\",\"arguments\":{\"raw\":\"{"));
    ck_assert_ptr_nonnull(strstr(rows, "\"id\":\"r2\",\"arguments\":{\"a\":{"));
    ck_assert_ptr_nonnull(strstr(rows, "assistant[parent](failed) it said this") /* its tokens pass a limit */);
    ck_assert_ptr_nonnull(strstr(columns, " openai:mmm"));
    ck_assert_uint_eq(room_count(columns, " in 1099511627776 "), 1);
    ck_assert_uint_eq(room_count(columns, " cost 1099511627776 "), 1);
    free(columns);
    free(rows);
}

/* The ids, the depth and the usage are those of a model's reply: a store that refused their rows would refuse every
 * attempt to go on with the run. */
START_TEST(a_turn_is_kept_whatever_a_model_replies)
{
    struct scene s = *room_scene("the parent is heard");
    rv_buf calls = RV_BUF_INIT(ROOM_MAX_TEXT);
    char id[LONG_ID + 1], name[LONG_NAME + 1], keys[LONG_NAME + 200];

    memset(id, 'x', LONG_ID);
    memset(name, 'm', LONG_NAME);
    id[LONG_ID] = name[LONG_NAME] = '\0';
    snprintf(keys, sizeof keys, HUGE_KEYS, name);
    s.keys = keys;
    rv_buf_printf(&calls, "%s ask_agent {\"agent_name\":\"child\",\"input_text\":\"what?\"} | r1 look ", id);
    write_deep(RV_JSON_MAX_DEPTH, &calls);
    rv_buf_puts(&calls, " | r2 look ");
    write_deep(RV_JSON_MAX_DEPTH - 1, &calls);
    s.lines[0].calls = rv_buf_cstr(&calls);
    s.lines[2].in = RV_USAGE_MAX;
    s.lines[2].out = 5;
    s.lines[3] = s.lines[4] = (struct line){.to = "look", .text = "{\"seen\":1}"};
    struct room *r = done(&s);
    check_kept(r, id);
    room_check_replay(r);
    room_free(r);
    rv_buf_fini(&calls);
}
END_TEST

Suite *limits_suite(void)
{
    Suite *s = suite_create("limits");
    TCase *tc = tcase_create("limits");

    tcase_add_test(tc, whoever_is_asked_spends_from_the_same_purse);
    tcase_add_test(tc, a_death_costs_and_nobody_stands_still);
    tcase_add_test(tc, a_turn_is_kept_whatever_a_model_replies);
    suite_add_tcase(s, tc);
    return s;
}
