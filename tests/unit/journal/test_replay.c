/* After every prefix of every journal, a replay stands where the run stood. */
#include <stdlib.h>

#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

static rv_store *open_store(const char *url)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_store *store = NULL;
    rv_err *err = NULL;

    if (rv_store_open(url, &opts, &store, &err) < 0)
        rv_kit_die("%s", rv_kit_err_take(err));
    return store;
}

static void check_pipeline(const char *yaml, uint64_t seed, int mode)
{
    rv_store *store = open_store("memory:");
    struct live *l = live_new(store, yaml, seed, mode);

    live_go(l, 120);
    int64_t n = rv_journal_seq(l->j);
    for (int64_t seq = 1; seq <= n; seq++)
        live_check_at(l, seq, false);
    live_free(l);
    rv_store_close(store);
}

/* Proves 8.2/load: The state behind any step is loaded by replaying up to it
 * Proves 10/checkpoints: The state behind every step can be had from the journal, and a run can be forked there;
 * snapshots make that faster and may be deleted */
START_TEST(every_prefix_replays_to_what_was_then)
{
    for (uint64_t seed = 1, n = (uint64_t)rv_kit_sample(32, 40); seed <= n; seed++) {
        check_pipeline(live_pipelines[_i], seed, RV_UNSET);
        check_pipeline(live_pipelines[_i], seed, RV_MODE_PARALLEL);
    }
}
END_TEST

/* --- while it grows --- */

struct watcher {
    rv_follower *follower;
    int64_t n_told, n_steps, every; /* every: it looks after so many steps */
};

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct watcher *w = self;

    (void)record;
    (void)effects;
    (void)run;
    (void)err;
    w->n_told += ev != NULL;
    return 0;
}

static void look(void *self, struct live *l)
{
    struct watcher *w = self;
    rv_err *err = NULL;

    if (++w->n_steps % w->every != 0)
        return;
    if (rv_follower_feed(w->follower, &err) < 0)
        ck_abort_msg("%s", rv_kit_err_take(err));
    ck_assert_int_eq(w->n_told, l->n_events); /* each event once */
    char *want = live_state(l->run), *got = live_state(rv_follower_run(w->follower));
    ck_assert_str_eq(got, want);
    free(want);
    free(got);
    ck_assert_int_eq(rv_follower_feed(w->follower, NULL), 0); /* nothing was added */
    ck_assert_int_eq(w->n_told, l->n_events);
}

START_TEST(a_follower_stands_where_the_run_stands)
{
    const struct rv_store_scope scope = live_scope();

    for (uint64_t seed = 1, n = (uint64_t)rv_kit_sample(32, 40); seed <= n; seed++) {
        rv_store *store = open_store("memory:");
        struct live *l = live_new(store, live_pipelines[_i], seed, RV_UNSET);
        struct watcher w = {.every = 1 + (int64_t)seed % 5};
        const struct rv_replay_opts opts = {
            .pipeline = l->p, .catalog = &l->catalog, .upto = 1, .on_step = on_step, .self = &w};
        ck_assert_int_eq(rv_journal_follow(store, &scope, LIVE_RUN, &opts, &w.follower, NULL), 0);
        l->after = look;
        l->self = &w;
        live_go(l, 120);
        rv_follower_free(w.follower);
        live_free(l);
        rv_store_close(store);
    }
}
END_TEST

START_TEST(a_follower_says_what_is_wrong_with_the_journal)
{
    const struct rv_store_scope scope = live_scope();
    rv_store *store = open_store("memory:");
    struct live *l = live_new(store, live_pipelines[0], 1, RV_UNSET);
    const struct rv_replay_opts opts = {.pipeline = l->p, .catalog = &l->catalog};
    struct rv_record odd = {.kind = 99, .body = RV_STR_LIT("{}")};
    rv_follower *f = NULL;
    rv_err *err = NULL;

    live_must_say(rv_journal_follow(store, &scope, "none", &opts, &f, &err), RV_E_NOT_FOUND, &err, "none");
    live_start(l);
    ck_assert_int_eq(rv_journal_follow(store, &scope, LIVE_RUN, &opts, &f, NULL), 0);
    odd.seq = rv_journal_seq(l->j) + 1;
    const struct rv_store_append a = {
        .run = LIVE_RUN, .fence = 1, .records = &odd, .n_records = 1, .status = RV_RUN_RUNNING, .stage = "a"};
    ck_assert_int_eq(rv_store_append(store, &a, NULL), 0);
    live_must_say(rv_follower_feed(f, &err), RV_E_INVALID, &err, "kind 99");
    rv_follower_free(f);
    live_free(l);
    rv_store_close(store);
}
END_TEST

TCase *replay_case(void)
{
    TCase *tc = tcase_create("replay");

    tcase_add_loop_test(tc, every_prefix_replays_to_what_was_then, 0, (int)live_n_pipelines);
    tcase_add_loop_test(tc, a_follower_stands_where_the_run_stands, 0, (int)live_n_pipelines);
    tcase_add_test(tc, a_follower_says_what_is_wrong_with_the_journal);
    return tc;
}
