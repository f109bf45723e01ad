/* After every prefix of every journal, a replay stands where the run stood. */
#include <stdlib.h>

#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

#if defined(__SANITIZE_ADDRESS__)
#define SEEDS 4
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SEEDS 4
#endif
#endif
#ifndef SEEDS
#define SEEDS 40
#endif

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

START_TEST(every_prefix_replays_to_what_was_then)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        check_pipeline(live_pipelines[_i], seed, RV_UNSET);
        check_pipeline(live_pipelines[_i], seed, RV_MODE_PARALLEL);
    }
}
END_TEST

TCase *replay_case(void)
{
    TCase *tc = tcase_create("replay");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, every_prefix_replays_to_what_was_then, 0, (int)live_n_pipelines);
    return tc;
}
