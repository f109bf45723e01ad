/* Long conversations: what a turn costs in the store, and entering a long journal near its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

#define TURNS    500
#define NEW_TEXT 400 /* bytes of a turn's question, and of its answer */
#define OVERHEAD 640 /* bytes a turn may cost beside them */

static const char chat[] = "name: t\nmax_iterations: 100000\nmax_llm_calls: 100000\nmax_agent_hops: 100000\n"
                           "models: {r: scripted}\nagents:\n  - {name: chat, has_llm: true, model_role: r, "
                           "routing_rules: [{condition: more, value: true, target: clarification}]}\n";

static rv_store *open_at(const char *url)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_store *store = NULL;

    ck_assert_int_eq(rv_store_open(url, &opts, &store, NULL), 0);
    return store;
}

/* Text that no other turn has. */
static void fill(struct live *l, char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + live_pick(l, 26));
}

static void turn(struct live *l)
{
    char question[NEW_TEXT + 1] = "", reply[NEW_TEXT + 1];
    const int head = snprintf(reply, sizeof reply, "{\"more\":true,\"text\":\"");
    struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = l->now_us += 1000000};
    rv_err *err = NULL;

    fill(l, question, NEW_TEXT);
    ev.response.text = (rv_str){question, NEW_TEXT};
    if (rv_run_status(l->run) == RV_RUN_READY)
        ev.kind = RV_EVENT_START;
    else
        live_hand_over(l);
    if (live_step(l, &ev, &err) < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
    fill(l, reply + head, NEW_TEXT - (size_t)head - 2);
    memcpy(reply + NEW_TEXT - 2, "\"}", 3);
    ev = (struct rv_event){.kind = RV_EVENT_LLM_DONE,
                           .now_us = l->now_us += 1000000,
                           .call_id = l->calls[0].id,
                           .reply = {reply, NEW_TEXT},
                           .llm.has_usage = true,
                           .llm.usage.input_tokens = 1234,
                           .llm.usage.output_tokens = 321};
    if (live_step(l, &ev, &err) < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
    ck_assert_int_eq(rv_run_status(l->run), RV_RUN_INTERRUPTED);
}

static int64_t size_of(const char *path)
{
    struct stat st;

    ck_assert_int_eq(stat(path, &st), 0);
    return (int64_t)st.st_size;
}

START_TEST(a_turn_costs_its_new_text_and_little_more)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "runs.db");
    rv_store *store = open_at(path);
    struct live *l = live_new(store, chat, 7, RV_UNSET);
    int64_t at[3] = {0};

    for (int part = 0; part < 3; part++) {
        for (int i = 0; part > 0 && i < TURNS / 2; i++)
            turn(l);
        rv_journal_free(l->j);
        l->j = NULL;
        rv_store_close(store); /* what waits beside the file goes into it */
        at[part] = size_of(path);
        l->store = store = open_at(path);
        live_hand_over(l);
    }
    int64_t first = (at[1] - at[0]) / (TURNS / 2) - 2 * NEW_TEXT, second = (at[2] - at[1]) / (TURNS / 2) - 2 * NEW_TEXT;
    printf("a turn takes %d bytes beside its text, and %d after %d turns\n", (int)first, (int)second, TURNS / 2);
    ck_assert_int_le(first, OVERHEAD);
    ck_assert_int_le(second, OVERHEAD);
    ck_assert_int_le(second, first + 64); /* flat: a page or two in 250 turns */
    live_free(l);
    rv_store_close(store);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* --- snapshots --- */

static int n_told(struct live *l, int64_t upto, bool from_snapshot)
{
    struct played got;

    ck_assert_int_eq(play(l, upto, from_snapshot, &got, NULL), 0);
    int n = got.n_told;
    played_fini(&got);
    return n;
}

START_TEST(a_long_run_in_a_file_has_a_snapshot)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "runs.db");
    rv_store *file = open_at(path);
    struct live *l = live_new(file, chat, 6, RV_UNSET);

    for (int i = 0; i < 690; i++)
        turn(l);
    ck_assert_int_lt(n_told(l, 0, true), 40);
    live_check_at(l, rv_journal_seq(l->j), true);
    live_free(l);
    rv_store_close(file);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

static rv_store *store;
static struct live *talk;

static void talk_long(void)
{
    store = open_at("memory:");
    talk = live_new(store, chat, 6, RV_UNSET);
    for (int i = 0; i < 690; i++)
        turn(talk);
}

static void end_talk(void)
{
    live_free(talk);
    rv_store_close(store);
}

static int64_t snapshot_seq(rv_buf *text)
{
    const struct rv_store_scope scope = live_scope();
    int64_t seq = 0;

    rv_buf_clear(text);
    ck_assert_int_eq(rv_store_get_snapshot(store, &scope, LIVE_RUN, &seq, text, NULL), 0);
    return seq;
}

/* Proves 10/checkpoints */
START_TEST(a_replay_from_a_snapshot_ends_where_the_whole_one_ends)
{
    rv_buf text = RV_BUF_INIT(LIVE_MAX_TEXT);
    int64_t n = rv_journal_seq(talk->j), seq = snapshot_seq(&text);

    ck_assert_int_gt(seq, 2048);
    ck_assert_int_lt(seq, n);
    ck_assert_int_lt(n_told(talk, 0, true), 40);
    ck_assert_int_gt(n_told(talk, 0, false), 1000);
    live_check_at(talk, n, false);
    for (int64_t at = seq; at <= n; at++)
        live_check_at(talk, at, true);
    ck_assert_int_gt(n_told(talk, seq - 1, true), 1000); /* it is too new for that */
    turn(talk);                                          /* and the run goes on as before */
    live_check_at(talk, rv_journal_seq(talk->j), true);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(a_snapshot_that_can_not_be_used_is_passed_over)
{
    static const char *const how[] = {"flipped", "cut", "newer", "empty", "other"};
    const struct rv_store_scope scope = live_scope();
    rv_buf text = RV_BUF_INIT(LIVE_MAX_TEXT);
    struct rv_run_row row;
    char hash[RV_HASH_MAX];

    int64_t seq = snapshot_seq(&text), n = rv_journal_seq(talk->j);
    ck_assert_int_eq(rv_store_get_run(store, &scope, LIVE_RUN, &row, NULL), 0);
    for (size_t i = 0; i < RV_COUNT(how); i++) {
        rv_buf bad = RV_BUF_INIT(LIVE_MAX_TEXT);
        rv_buf_add_str(&bad, rv_buf_str(&text));
        if (strcmp(how[i], "flipped") == 0)
            bad.ptr[bad.len / 2] ^= 1;
        if (strcmp(how[i], "cut") == 0)
            rv_buf_truncate(&bad, bad.len - 1);
        if (strcmp(how[i], "empty") == 0)
            rv_buf_truncate(&bad, 0);
        if (strcmp(how[i], "newer") == 0) {
            char *v = strstr(bad.ptr, "\"v\":1");
            v[4] = '2';
            rv_hash_format((rv_str){bad.ptr + 65, bad.len - 65}, hash);
            memcpy(bad.ptr, hash, 64);
        }
        ck_assert_int_eq(rv_store_put_snapshot(store, LIVE_RUN, row.fence, strcmp(how[i], "other") == 0 ? seq - 3 : seq,
                                               rv_buf_str(&bad), NULL),
                         0);
        live_check_at(talk, n, true);
        ck_assert_msg(n_told(talk, 0, true) > 1000, "%s is used", how[i]);
        rv_buf_fini(&bad);
    }
    rv_run_row_fini(&row);
    rv_buf_fini(&text);
}
END_TEST

TCase *growth_case(void)
{
    TCase *tc = tcase_create("growth");

    tcase_add_test(tc, a_turn_costs_its_new_text_and_little_more);
    tcase_add_test(tc, a_long_run_in_a_file_has_a_snapshot);
    return tc;
}

TCase *snapshot_case(void)
{
    TCase *tc = tcase_create("snapshot");

    tcase_add_checked_fixture(tc, talk_long, end_talk);
    tcase_add_test(tc, a_replay_from_a_snapshot_ends_where_the_whole_one_ends);
    tcase_add_test(tc, a_snapshot_that_can_not_be_used_is_passed_over);
    return tc;
}
