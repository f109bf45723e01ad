/* Allocations of the driver of PostgreSQL fail, libpq's own included: each is an error of one call, or the connection
 * is given up and made again; nothing is leaked, and what was acknowledged is there. Every so many-th is tried. */
#include "coreengine/store/store.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"
#include "tests/kit/suites.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T0 INT64_C(1700000000000000)

static const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF, .busy_ms = 500};
static const struct rv_store_scope scope = {NULL, NULL};
static char *url;

/* What the store said it did; of the present round. */
struct round {
    char id[20];
    bool is_added, is_claimed, is_done;
    char why[300];
    int broken_line; /* Check's own assertions allocate */
};

static void expect(struct round *r, bool holds, int line)
{
    if (!holds && r->broken_line == 0)
        r->broken_line = line;
}

static int see_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    (void)err;
    *(int *)self += row->id != NULL;
    return 0;
}

static int work(rv_store *s, struct round *r, rv_err **err)
{
    const struct rv_new_task task = {.id = r->id, .type = "news", .max_retries = RV_UNSET, .now_us = T0};
    const struct rv_claim_tasks claim = {
        .worker = "W", .classes = (const int64_t[]){1}, .n_classes = 1, .n = 9, .now_us = T0, .until_us = T0 + 9};
    struct rv_claimed got = {0};
    bool heard = false;
    int fd = -1, n = 0;
    int rc = rv_store_listen(s, &fd, err);

    if (rc == 0)
        rc = rv_store_begin(s, err);
    if (rc == 0) {
        rc = rv_store_enqueue(s, &task, NULL, err);
        rc = rv_store_end(s, rc, err);
    }
    r->is_added = rc == 0;
    if (rc == 0)
        rc = rv_store_list_tasks(s, &scope, NULL, see_task, &n, err);
    expect(r, rc < 0 || n > 0, __LINE__);
    if (rc == 0)
        rc = rv_store_claim_tasks(s, &claim, &got, err);
    expect(r, (rc == 0) == (got.n > 0), __LINE__);
    for (size_t i = 0; i < got.n && rc == 0; i++) /* nine at most: those of earlier rounds may fill it */
        r->is_claimed |= strcmp(got.rows[i].id, r->id) == 0;
    for (size_t i = 0; i < got.n && rc == 0; i++) { /* those of earlier rounds, too */
        struct rv_task_end end = {.lease = {got.rows[i].id, "W", got.rows[i].attempt}, .result = RV_STR_LIT("{}")};
        rc = rv_store_complete_tasks(s, &end, 1, T0 + 1, err);
        expect(r, rc < 0 || !end.is_lost, __LINE__);
        if (strcmp(got.rows[i].id, r->id) == 0)
            r->is_done = rc == 0;
    }
    rv_claimed_fini(&got);
    return rc == 0 ? rv_store_was_notified(s, &heard, err) : rc;
}

static int live(struct round *r)
{
    rv_store *s = NULL;
    rv_err *err = NULL;
    int rc = rv_store_open(url, &opts, &s, &err);

    if (rc == 0)
        rc = work(s, r, &err);
    expect(r, (rc < 0) == (err != NULL), __LINE__);
    const rv_err *link = err;
    while (rv_err_cause(link))
        link = rv_err_cause(link);
    snprintf(r->why, sizeof r->why, "%s", link ? rv_err_text(link) : "");
    rv_store_close(s);
    rv_err_free(err);
    return rc;
}

/* What was acknowledged is so; what was not may be so as well. */
static void check_round(rv_store *s, const struct round *r, size_t n)
{
    struct rv_task_row row = {0};
    int rc = rv_store_get_task(s, &scope, r->id, &row, NULL);

    ck_assert_msg(!r->is_added || rc == 0, "allocation %zu: the task is not there", n);
    ck_assert_msg(!r->is_claimed || row.attempt == 1, "allocation %zu: attempt %d", n, (int)row.attempt);
    ck_assert_msg(!r->is_done || row.status == RV_TASK_COMPLETED, "allocation %zu: not completed", n);
    if (rc == 0)
        rv_task_row_fini(&row);
}

/* Whatever earlier rounds left held or pending does not stay in the way. */
static void tidy(rv_store *s)
{
    ck_assert_int_eq(rv_store_recover_tasks(s, T0 + 10, RV_TASK_MAX_CLAIM, NULL, NULL), 0);
}

START_TEST(allocations_of_the_driver_may_fail)
{
    size_t stride = getenv("REEVE_SOAK") ? 1 : 7 * (size_t)rv_kit_stride(3), n_failed = 0, n_survived = 0, n;
    rv_store *s = NULL;

    url = rv_kit_postgres_url(rv_kit_postgres());
    ck_assert_int_eq(rv_store_open(url, &opts, &s, NULL), 0);
    for (int i = 0; i < 2; i++) { /* libraries set themselves up at first use */
        struct round r = {.id = ""};
        snprintf(r.id, sizeof r.id, "first%d", i);
        ck_assert_int_eq(live(&r), 0);
        ck_assert_int_eq(r.broken_line, 0);
    }
    for (n = rv_kit_first(stride);; n += stride) {
        struct round r = {.id = ""};
        snprintf(r.id, sizeof r.id, "t%zu", n);
        rv_fault_arm(n);
        int rc = live(&r);
        bool fired = rv_fault_disarm();
        long left = rv_fault_balance();
        ck_assert_msg(r.broken_line == 0, "allocation %zu: line %d", n, r.broken_line);
        ck_assert_msg(left == 0, "allocation %zu: %ld blocks are left", n, left);
        ck_assert_msg(rc == 0 || rc == RV_E_NOMEM || rc == RV_E_IO || rc == RV_E_UNAVAILABLE || rc == RV_E_TIMEOUT,
                      "allocation %zu: %s: %s", n, rv_code_text(rc), r.why);
        check_round(s, &r, n);
        tidy(s);
        if (!fired) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        n_failed += rc < 0;
        n_survived += rc == 0;
    }
    printf("%zu allocations, every %zu: %zu failed a call, %zu were made up for\n", n, stride, n_failed, n_survived);
    ck_assert(!rv_fault_works() || n_failed > 20);
    ck_assert_int_eq(rv_store_check(s, NULL), 0);
    rv_store_close(s);
    free(url);
}
END_TEST

static Suite *postgres_suite(void)
{
    Suite *suite = suite_create("fault_postgres");
    TCase *tc = tcase_create("fault_postgres");

    tcase_add_test(tc, allocations_of_the_driver_may_fail);
    suite_add_tcase(suite, tc);
    return suite;
}

int main(void)
{
    static Suite *(*const suites[])(void) = {postgres_suite};

    rv_kit_postgres();
    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
