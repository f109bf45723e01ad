/* Each allocation of a copy fails once, SQLite's own included: RV_E_NOMEM, no leak, and the same call again finishes
 * the copy, with the rows that it would have had. */
#include "coreengine/store/store.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define T0 INT64_C(1700000000000000)

static const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF, .takes_copy = true};
static char from[300], to[300], empty[300], hash[RV_HASH_MAX];

static int fill(rv_err **err)
{
    static char value[3000];
    const struct rv_record records[] = {{.seq = 1, .body = RV_STR_LIT("one"), .value = {value, sizeof value}},
                                        {.seq = 2, .body = RV_STR_LIT("two")}};
    const struct rv_new_task task = {.id = "t", .type = "run", .max_retries = RV_UNSET, .now_us = T0};
    char bundle[RV_HASH_MAX];
    rv_store *s = NULL;

    memset(value, 'x', sizeof value);
    int rc = rv_store_open(from, &opts, &s, err);
    if (rc == 0)
        rc = rv_store_put_blob(s, RV_STR_LIT("bundle"), bundle, err);
    const struct rv_store_new_run run = {.id = "r1",
                                         .user = "u",
                                         .session = "s",
                                         .pipeline = "p",
                                         .bundle = bundle,
                                         .status = RV_RUN_RUNNING,
                                         .stage = "a",
                                         .owner = "A",
                                         .now_us = T0,
                                         .lease_until_us = T0 - 1,
                                         .records = records,
                                         .n_records = 2};
    if (rc == 0)
        rc = rv_store_create_run(s, &run, err);
    if (rc == 0)
        rc = rv_store_enqueue(s, &task, NULL, err);
    rv_store_close(s);
    return rc;
}

/* The error, if any, is freed; out stays zeroed then. */
static int copy(struct rv_store_copied *out)
{
    const struct rv_store_copy_opts how = {.now_us = T0};
    rv_store *source = NULL, *target = NULL;
    rv_err *err = NULL;
    int rc = rv_store_open(from, &opts, &source, &err);

    if (rc == 0)
        rc = rv_store_open(to, &opts, &target, &err);
    if (rc == 0)
        rc = rv_store_copy(source, target, &how, out, &err);
    if (rc < 0 && !rv_err_is(err, RV_E_NOMEM))
        rc = RV_E_INTERNAL;
    rv_store_close(source);
    rv_store_close(target);
    rv_err_free(err);
    return rc;
}

static void make_empty(void)
{
    static const char *const ends[] = {"-wal", "-shm", "-journal"};
    char name[320];

    for (size_t i = 0; i < RV_COUNT(ends); i++) {
        snprintf(name, sizeof name, "%s%s", to, ends[i]);
        unlink(name);
    }
    rv_kit_copy(empty, to);
}

START_TEST(every_allocation_of_a_copy_may_fail_once)
{
    char *dir = rv_kit_tmpdir();
    rv_store *s = NULL;
    struct rv_store_copied out;
    size_t n, n_survived = 0;

    snprintf(from, sizeof from, "%s/from.db", dir);
    snprintf(to, sizeof to, "%s/to.db", dir);
    snprintf(empty, sizeof empty, "%s/empty.db", dir);
    ck_assert_int_eq(fill(NULL), 0);
    ck_assert_int_eq(rv_store_open(empty, &opts, &s, NULL), 0);
    rv_store_close(s);
    make_empty();
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(copy(&out), 0); /* libraries set themselves up at first use */
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 120 + 1);
    memcpy(hash, out.hash, sizeof hash);
    for (n = rv_kit_first(step);; n += step) {
        make_empty();
        rv_fault_arm(n);
        int rc = copy(&out);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks leaked", n, rv_fault_balance());
        n_survived += rc == 0;
        if (rc < 0) {
            rc = copy(&out);
            ck_assert_msg(rc == 0, "allocation %zu: cannot be repeated: %s", n, rv_code_text(rc));
        }
        ck_assert_str_eq(out.hash, hash);
    }
    ck_assert_msg(!rv_fault_works() || (n > 100 && n_survived < n / 10), "%zu allocations, %zu done without", n,
                  n_survived);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_copy");
    TCase *tc = tcase_create("allocations");

    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, every_allocation_of_a_copy_may_fail_once);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
