/* The store thread by itself: what each of the writes of a group is told when the group fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/writer_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

#define NOW_US  INT64_C(1700000000000000)
#define WAIT_US INT64_C(2000) /* that the writes may wait for other processes */
#define N       3

static int64_t now_us(void *self)
{
    (void)self;
    return NOW_US;
}

static void wake(void *self)
{
    (void)self;
}

static int write_nothing(struct write *w, rv_store *store, rv_err **err)
{
    (void)w, (void)store, (void)err;
    return 0;
}

START_TEST(each_write_of_a_group_has_the_whole_reason_why_it_failed)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "runs"), url[512];
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_store *store, *other;
    struct writer *writer;
    struct write writes[N] = {{.write = NULL}};

    snprintf(url, sizeof url, "sqlite:%s", path);
    ck_assert_int_eq(rv_store_open(url, &opts, &store, NULL), 0);
    ck_assert_int_eq(rv_store_open(url, &opts, &other, NULL), 0);
    ck_assert_int_eq(engine_writer_new(store, (struct rv_clock){.now_us = now_us}, wake, NULL, &writer, NULL), 0);
    ck_assert_int_eq(rv_store_begin(other, NULL), 0); /* another process has the store */
    for (size_t i = 0; i < N; i++) {
        writes[i] = (struct write){.write = write_nothing, .until_us = NOW_US + WAIT_US};
        engine_writer_submit(writer, &writes[i]);
    }
    for (size_t i = 0; i < N; i++)
        engine_writer_wait_for(writer, &writes[i]);
    ck_assert_int_eq(rv_store_end(other, 0, NULL), 0);
    for (size_t i = 0; i < N; i++) {
        const char *hint = rv_err_hint_text(writes[i].err);
        int line;
        ck_assert_int_eq(writes[i].rc, RV_E_TIMEOUT);
        ck_assert_int_eq(rv_err_code(writes[i].err), RV_E_TIMEOUT);
        ck_assert_msg(hint && strstr(hint, "or end the one that holds it"), "no hint");
        ck_assert_msg(strstr(rv_err_made_at(writes[i].err, &line), "store/"), "another place");
        rv_err_free(writes[i].err); /* each has one of its own */
    }
    engine_writer_free(writer);
    rv_store_close(store);
    rv_store_close(other);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

Suite *writer_suite(void)
{
    Suite *s = suite_create("writer");
    TCase *tc = tcase_create("writer");

    tcase_add_test(tc, each_write_of_a_group_has_the_whole_reason_why_it_failed);
    suite_add_tcase(s, tc);
    return s;
}
