/* Each allocation of a store's life fails once, SQLite's own included: no crash, no leak, RV_E_NOMEM; the same handle
 * works on, nothing is half done, and the store is whole for whoever opens it next. */
#include "coreengine/store/store.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define T0    INT64_C(1700000000000000)
#define LATER (INT64_C(4000000000) * 1000000)

/* Check's own assertions allocate, so what a scenario finds wrong is kept until the allocator is disarmed. */
static int broken_line;

#define must(holds)                                                                                                    \
    do {                                                                                                               \
        if (!(holds) && broken_line == 0)                                                                              \
            broken_line = __LINE__;                                                                                    \
    } while (0)

static const struct rv_store_scope scope = {NULL, NULL};
static char large[5000];
static char url[300], path[300], copy[300];

static int look_record(void *self, const struct rv_record *r, rv_err **err)
{
    (void)err;
    must(r->seq == ++*(int64_t *)self);
    return 0;
}

static int look_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    (void)err;
    must(row->id && row->stage);
    ++*(int64_t *)self;
    return 0;
}

static int look_pending(void *self, const struct rv_pending *p, rv_err **err)
{
    (void)err;
    must(strcmp(p->id, "i") == 0);
    ++*(int64_t *)self;
    return 0;
}

static int look_id(void *self, const char *id, rv_err **err)
{
    (void)err;
    must(*id);
    ++*(int64_t *)self;
    return 0;
}

static int look_interrupt(void *self, const struct rv_interrupt_row *row, rv_err **err)
{
    (void)err;
    must(row->status == RV_INTERRUPT_STATUS_PENDING);
    ++*(int64_t *)self;
    return 0;
}

static int look_count(void *self, const struct rv_interrupt_count *count, rv_err **err)
{
    (void)err;
    must(count->n == 1 && count->n_open == 1);
    ++*(int64_t *)self;
    return 0;
}

static int write_runs(rv_store *s, rv_err **err)
{
    const struct rv_pending pending[] = {{.id = "i", .kind = "k", .stage = "a", .text = RV_STR_LIT("sure?")}};
    struct rv_record records[] = {{.seq = 1, .body = RV_STR_LIT("one"), .value = {large, sizeof large}},
                                  {.seq = 2, .body = RV_STR_LIT("two")}};
    char bundle[RV_HASH_MAX];
    struct rv_store_new_run run = {.id = "r1",
                                   .user = "u",
                                   .session = "s",
                                   .pipeline = "p",
                                   .bundle = bundle,
                                   .status = RV_RUN_RUNNING,
                                   .stage = "a",
                                   .owner = "A",
                                   .now_us = T0,
                                   .lease_until_us = T0 + 100,
                                   .records = records,
                                   .n_records = 2};
    struct rv_store_append a = {.run = "r1",
                                .fence = 1,
                                .records = records,
                                .n_records = 1,
                                .now_us = T0 + 1,
                                .status = RV_RUN_INTERRUPTED,
                                .stage = "b",
                                .set_pending = true,
                                .pending = pending,
                                .n_pending = 1};
    int rc = rv_store_put_blob(s, RV_STR_LIT("bundle"), bundle, err);

    if (rc == 0)
        rc = rv_store_create_run(s, &run, err);
    run.id = "r2";
    if (rc == 0)
        rc = rv_store_create_run(s, &run, err);
    records[0].seq = 3;
    if (rc == 0)
        rc = rv_store_append(s, &a, err);
    if (rc == 0)
        rc = rv_store_put_snapshot(s, "r1", 1, 3, (rv_str){large, sizeof large}, err);
    return rc;
}

static int write_group(rv_store *s, rv_err **err)
{
    struct rv_record r = {.seq = 4, .body = RV_STR_LIT("four"), .value = {large, 4000}};
    struct rv_store_append a = {
        .run = "r1", .fence = 1, .records = &r, .n_records = 1, .now_us = T0, .status = RV_RUN_RUNNING, .stage = "c"};
    int rc = rv_store_begin(s, err), refused;

    if (rc < 0)
        return rc;
    rc = rv_store_append(s, &a, err);
    a.fence = 7;
    refused = rc == 0 ? rv_store_append(s, &a, err) : RV_E_STATE;
    if (refused == RV_E_STATE && rc == 0) {
        rv_err_free(*err);
        *err = NULL;
    } else if (rc == 0) {
        must(refused == RV_E_NOMEM);
        rc = refused;
    }
    a.fence = 1;
    a.run = "r2";
    r.seq = 3;
    if (rc == 0)
        rc = rv_store_append(s, &a, err);
    if (rc == 0)
        return rv_store_commit(s, err);
    rv_store_rollback(s);
    return rc;
}

static int read_all(rv_store *s, rv_err **err)
{
    const struct rv_run_filter filter = {.statuses = 1u << RV_RUN_RUNNING, .id_prefix = "r", .pipeline = "p"};
    struct rv_store_stats stats;
    struct rv_run_row row = {0};
    rv_buf out = RV_BUF_INIT(20000);
    char hash[RV_HASH_MAX];
    int64_t n = 0, seq = 0;
    int rc = rv_store_read(s, &scope, &(struct rv_record_range){.run = "r1", .from = 1}, look_record, &n, err);

    must(rc < 0 || n == 4);
    n = 0;
    if (rc == 0)
        rc = rv_store_list_runs(s, &scope, &filter, look_run, &n, err);
    must(rc < 0 || n == 2);
    n = 0;
    if (rc == 0)
        rc = rv_store_list_pending(s, &scope, NULL, look_pending, &n, err);
    must(rc < 0 || n == 1);
    if (rc == 0)
        rc = rv_store_list_pending(s, &scope, "r1", look_pending, &n, err);
    n = 0;
    if (rc == 0)
        rc = rv_store_list_interrupts(s, &scope, NULL, look_interrupt, &n, err);
    must(rc < 0 || n == 1);
    if (rc == 0)
        rc = rv_store_count_interrupts(s, &scope, NULL, look_count, &n, err);
    must(rc < 0 || n == 2);
    if (rc == 0)
        rc = rv_store_get_run(s, &scope, "r1", &row, err);
    rv_run_row_fini(&row);
    rv_hash_format((rv_str){large, 4000}, hash);
    if (rc == 0)
        rc = rv_store_get_blob(s, hash, &out, err);
    if (rc == 0)
        rc = rv_store_get_snapshot(s, &scope, "r1", &seq, &out, err);
    must(rc < 0 || (seq == 3 && out.len == 4000 + sizeof large));
    if (rc == 0)
        rc = rv_store_read_stats(s, &stats, err);
    rv_buf_fini(&out);
    return rc;
}

static int own_and_end(rv_store *s, rv_err **err)
{
    const struct rv_store_claim claim = {"B", "A", T0, T0 + 200};
    int64_t fence = 0, n = 0, freed = 0;
    int rc = rv_store_renew(s, "A", T0 + 150, err);

    if (rc == 0)
        rc = rv_store_claim(s, &scope, "r1", &claim, &fence, err);
    must(rc < 0 || fence == 2);
    if (rc == 0)
        rc = rv_store_request_cancel(s, &scope, "r1", T0 + 3, err);
    if (rc == 0)
        rc = rv_store_list_cancels(s, "B", look_id, &n, err);
    must(rc < 0 || n == 1);
    if (rc == 0)
        rc = rv_store_release(s, "r1", 2, err);
    if (rc == 0)
        rc = rv_store_check(s, err);
    if (rc == 0)
        rc = rv_store_delete_run(s, &scope, "r1", NULL, T0, err);
    if (rc == 0)
        rc = rv_store_sweep(s, LATER, 0, &freed, err);
    if (rc == 0) /* last: it alone waits for the disk */
        rc = rv_store_backup(s, copy, err);
    return rc;
}

/* The allocation that failed is behind us: everything has to work now. */
static void still_works(rv_store *s)
{
    struct rv_store_stats stats;
    char hash[RV_HASH_MAX];

    must(rv_store_check(s, NULL) == 0);
    must(rv_store_put_blob(s, RV_STR_LIT("another"), hash, NULL) == 0);
    must(rv_store_read_stats(s, &stats, NULL) == 0);
}

static const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};

static int live(void)
{
    rv_store *s = NULL;
    rv_err *err = NULL;
    int rc = rv_store_open(url, &opts, &s, &err);

    must((rc == 0) == (s != NULL));
    if (rc == 0)
        rc = write_runs(s, &err);
    if (rc == 0)
        rc = write_group(s, &err);
    if (rc == 0)
        rc = read_all(s, &err);
    if (rc == 0)
        rc = own_and_end(s, &err);
    must((rc < 0) == (err != NULL));
    must(rc == 0 || rv_err_is(err, RV_E_NOMEM));
    if (rc < 0 && s)
        still_works(s);
    rv_store_close(s);
    rv_err_free(err);
    return rc;
}

static void remove_files(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char name[320];

    for (size_t i = 0; i < RV_COUNT(ends); i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
        snprintf(name, sizeof name, "%s%s", copy, ends[i]);
        unlink(name);
    }
}

/* What is left on the disk is a store, or nothing was made yet. */
static void check_file(size_t n)
{
    rv_store *s = NULL;
    rv_err *err = NULL;
    int rc = rv_store_open(url, &opts, &s, &err);

    if (rc == 0)
        rc = rv_store_check(s, &err);
    ck_assert_msg(rc == 0, "allocation %zu: %s", n, rv_err_text(err));
    rv_store_close(s);
}

/* A page in the middle is overwritten. */
static void damage_file(void)
{
    char page[4096];
    FILE *f = fopen(path, "r+b");

    ck_assert_ptr_nonnull(f);
    memset(page, 0xa5, sizeof page);
    ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
    long n_pages = ftell(f) / (long)sizeof page;
    ck_assert_int_eq(fseek(f, n_pages / 2 * (long)sizeof page, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(page, sizeof page, 1, f), 1);
    ck_assert_int_eq(fclose(f), 0);
}

/* Without memory SQLite may complain of more. */
static bool says_all(const char *said, const char *whole)
{
    char line[200];

    while ((whole = strchr(whole, '\n'))) {
        whole++;
        snprintf(line, sizeof line, "%.*s", (int)strcspn(whole, "\n"), whole);
        if (!strstr(said, line))
            return false;
    }
    return true;
}

/* Gives the code of the check, and its error. */
static int check_damaged(size_t n, bool *fired, rv_err **err)
{
    rv_store *s = NULL;

    must(rv_store_open(url, &opts, &s, err) == 0);
    rv_fault_arm(n);
    int rc = rv_store_check(s, err);
    *fired = rv_fault_disarm();
    rv_store_close(s);
    return rc;
}

START_TEST(no_damage_is_left_out_for_want_of_memory)
{
    char *dir = rv_kit_tmpdir();
    rv_err *whole = NULL;
    bool fired = true;

    snprintf(path, sizeof path, "%s/store.db", dir);
    snprintf(copy, sizeof copy, "%s/copy.db", dir);
    snprintf(url, sizeof url, "%s", path);
    memset(large, 'x', sizeof large);
    ck_assert_int_eq(live(), 0);
    damage_file();
    ck_assert_int_eq(check_damaged(SIZE_MAX, &fired, &whole), RV_E_IO);
    const size_t step = rv_kit_step(rv_fault_count() / 200 + 1);
    fired = true;
    for (size_t n = 0; fired; n += step) {
        rv_err *err = NULL;
        int rc = check_damaged(n, &fired, &err);
        bool is_told = rc == RV_E_IO && says_all(rv_err_text(err), rv_err_text(whole));
        ck_assert_msg(is_told || (fired && (rc == RV_E_NOMEM || strcmp(rv_err_text(err), "out of memory") == 0)),
                      "allocation %zu: %d: %s", n, rc, rv_err_text(err));
        rv_err_free(err);
    }
    rv_err_free(whole);
    remove_files();
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(every_allocation_may_fail_once)
{
    char *dir = rv_kit_tmpdir();
    size_t n, n_survived = 0;

    snprintf(path, sizeof path, "%s/store.db", dir);
    snprintf(copy, sizeof copy, "%s/copy.db", dir);
    snprintf(url, sizeof url, "%s", path);
    memset(large, 'x', sizeof large);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(live(), 0); /* libraries set themselves up at first use */
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 200 + 1);
    ck_assert_int_eq(broken_line, 0);
    for (n = rv_kit_first(step);; n += step) {
        int rc;
        remove_files();
        rv_fault_arm(n);
        rc = live();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(broken_line == 0, "allocation %zu: broken at line %d", n, broken_line);
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks leaked", n, rv_fault_balance());
        n_survived += rc == 0; /* SQLite does without some; so does the text of a refusal */
        check_file(n);
    }
    ck_assert_msg(!rv_fault_works() || (n > 30 && n_survived < n / 10), "%zu allocations, %zu done without", n,
                  n_survived);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* What follows is as with a file. */
START_TEST(every_allocation_of_opening_in_memory_may_fail_once)
{
    char hash[RV_STORE_HASH_MAX];

    for (size_t n = rv_kit_first(rv_kit_step(5));; n += rv_kit_step(5)) {
        rv_store *s = NULL;
        rv_fault_arm(n);
        int rc = rv_store_open("memory:", NULL, &s, NULL);
        bool fired = rv_fault_disarm();
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %s", n, rv_code_text(rc));
        if (rc == 0)
            ck_assert_int_eq(rv_store_put_blob(s, RV_STR_LIT("a"), hash, NULL), 0);
        rv_store_close(s);
        if (!fired)
            break;
    }
}
END_TEST

/* Webhooks of a run that ends. */

struct hooked {
    size_t n;
    char ids[2][RV_ID_MAX];
};

static int look_hook(void *self, const struct rv_task_row *row, rv_err **err)
{
    struct hooked *h = self;

    (void)err;
    if (h->n < RV_COUNT(h->ids))
        snprintf(h->ids[h->n], sizeof h->ids[0], "%s", row->id);
    h->n++;
    return 0;
}

static rv_store *hooked_store(void)
{
    const struct rv_webhook hook = {.url = "http://127.0.0.1/", .secret = "s", .events = RV_WEBHOOK_ENDED};
    const struct rv_record first = {.seq = 1, .body = RV_STR_LIT("begin")};
    char bundle[RV_HASH_MAX];
    rv_store *s = NULL;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &s, NULL), 0);
    ck_assert_int_eq(rv_store_put_blob(s, RV_STR_LIT("bundle"), bundle, NULL), 0);
    const struct rv_store_new_run run = {.id = "r1",
                                         .user = "u",
                                         .session = "s",
                                         .pipeline = "p",
                                         .bundle = bundle,
                                         .status = RV_RUN_RUNNING,
                                         .stage = "a",
                                         .owner = "A",
                                         .now_us = T0,
                                         .lease_until_us = T0 + 100,
                                         .records = &first,
                                         .n_records = 1};
    rv_err *err = NULL;
    ck_assert_msg(rv_store_create_run(s, &run, &err) == 0, "%s", rv_kit_err_take(err));
    for (int64_t i = 0; i < 2; i++)
        ck_assert_int_eq(rv_store_add_webhook(s, &scope, "r1", i, &hook, NULL), 0);
    return s;
}

/* Their tasks are queued with the end, both of them, under the ids that they always have. */
START_TEST(a_run_ends_with_all_its_webhooks_or_goes_on)
{
    const struct rv_task_filter tasks = {.limit = 10};
    const struct rv_record record = {.seq = 2, .body = RV_STR_LIT("end")};
    const struct rv_store_append a = {.run = "r1",
                                      .fence = 1,
                                      .records = &record,
                                      .n_records = 1,
                                      .now_us = T0 + 1,
                                      .status = RV_RUN_COMPLETED,
                                      .stage = "a"};
    struct hooked want = {0};
    bool fired = true;

    for (size_t n = SIZE_MAX; fired; n++) { /* at first all goes well */
        rv_store *s = hooked_store();
        struct hooked got = {0};
        rv_fault_arm(n);
        int rc = rv_store_append(s, &a, NULL);
        fired = rv_fault_disarm() || n == SIZE_MAX;
        ck_assert_msg(rc == 0 || rc == RV_E_NOMEM, "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_int_eq(rv_store_list_tasks(s, &scope, &tasks, look_hook, &got, NULL), 0);
        if (n == SIZE_MAX)
            want = got;
        ck_assert_msg(rc < 0 ? got.n == 0 : got.n == 2 && memcmp(&got, &want, sizeof got) == 0,
                      "allocation %zu: %zu webhooks", n, got.n);
        rv_store_close(s);
    }
    ck_assert_str_ne(want.ids[0], want.ids[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_store");
    TCase *tc = tcase_create("allocations");

    tcase_add_test(tc, every_allocation_may_fail_once);
    tcase_add_test(tc, no_damage_is_left_out_for_want_of_memory);
    tcase_add_test(tc, every_allocation_of_opening_in_memory_may_fail_once);
    tcase_add_test(tc, a_run_ends_with_all_its_webhooks_or_goes_on);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
