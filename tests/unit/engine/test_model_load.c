/* Many runs that ask the same server. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"
#include "tests/unit/engine/talks.h"

#define N_AT_ONCE  200
#define N_PLACES   8
#define N_IN_A_ROW 500

static int n_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Proves 12.3/places */
START_TEST(two_hundred_runs_keep_to_the_places_there_are)
{
    static const struct plan plan[] = {{.status = 200, .body = PIECE("Hel") PIECE("lo") THE_END, .delay_ms = 2}};
    struct talk *t = calloc(N_AT_ONCE, sizeof *t);
    struct talks all;

    talks_init(&all, plan, 1);
    const struct rv_pipeline *p = talks_asking(&all, &(struct asking){.role = "max_concurrent: 8"});
    for (size_t i = 0; i < N_AT_ONCE; i++)
        talk_begin(&all, &t[i], p);
    for (size_t i = 0; i < N_AT_ONCE; i++) {
        ck_assert_str_eq(talk_end(&all, &t[i]), "completed");
        ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&t[i].heard), "{llm_call_start}<Hel><lo>["));
    }
    ck_assert_uint_eq(all.server.n_requests, N_AT_ONCE);
    ck_assert_uint_le(all.server.n_peak, N_PLACES);
    ck_assert_uint_gt(all.server.n_peak, 1);
    ck_assert_uint_le(all.server.n_connections, N_PLACES);
    for (size_t i = 0; i < N_AT_ONCE; i++)
        talk_fini(&t[i]);
    free(t);
    talks_fini(&all);
}
END_TEST

/* Every third is cancelled in the middle, so that connections are closed and made again. */
START_TEST(descriptors_do_not_grow)
{
    static const struct plan plan[] = {{.status = 200, .body = PIECE("Hel") PIECE("lo") THE_END}};
    struct talks all;
    int n_before = 0;

    talks_init(&all, plan, 1);
    const struct rv_pipeline *p = talks_asking(&all, &(struct asking){0});
    for (size_t i = 0; i < N_IN_A_ROW; i++) {
        struct talk t = {.cancel_at = i % 3 == 0 ? 1 : 0};
        ck_assert_str_eq(talk_whole(&all, &t, p), i % 3 == 0 ? "cancelled" : "completed");
        talk_fini(&t);
        if (i == 10)
            n_before = n_descriptors();
    }
    ck_assert(model_server_is_down_to(&all.server, &all.server.n_open, 2));
    ck_assert_int_le(n_descriptors(), n_before + 2);
    talks_fini(&all);
}
END_TEST

START_TEST(engines_that_asked_leave_no_descriptors)
{
    static const struct plan plan[] = {{.status = 200, .body = PIECE("Hel"), .hangs = true}};
    int n_before = 0;

    for (size_t i = 0; i < 20; i++) {
        struct talk t = {0};
        struct talks all;
        talks_init(&all, plan, 1);
        talk_begin(&all, &t, talks_asking(&all, &(struct asking){0}));
        engine_until(all.engine, &t.n_pieces, 1);
        talks_fini(&all);
        talk_fini(&t);
        if (i == 2)
            n_before = n_descriptors();
    }
    ck_assert_int_eq(n_descriptors(), n_before);
}
END_TEST

Suite *model_load_suite(void)
{
    Suite *suite = suite_create("model_load");
    TCase *tc = tcase_create("model_load");

    tcase_add_test(tc, two_hundred_runs_keep_to_the_places_there_are);
    tcase_add_test(tc, descriptors_do_not_grow);
    tcase_add_test(tc, engines_that_asked_leave_no_descriptors);
    suite_add_tcase(suite, tc);
    return suite;
}
