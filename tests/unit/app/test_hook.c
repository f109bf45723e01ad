/* What a webhook tells of a run that ended: without its result only where that is gone. Where it cannot be
 * read now, the task is tried again. */
#include <string.h>

#include "coreengine/app/worker/hook_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

#define T0 INT64_C(1750000000000000)

/* What the run was started with cannot be read: its code; 0: it can. */
static int fail_read(void *self, const char *point, rv_err **err)
{
    int code = *(int *)self;

    return code && strcmp(point, "get_blob") == 0 ? RV_FAIL(err, code, "the store is away") : 0;
}

static rv_store *open_store(void)
{
    static const struct rv_webhook hook = {.url = "http://127.0.0.1/told", .secret = "s", .events = RV_WEBHOOK_ENDED};
    static const struct rv_store_scope all = {NULL, NULL};
    char bundle[RV_HASH_MAX];
    const struct rv_store_new_run run = {.id = "env_1",
                                         .user = "ada",
                                         .session = "",
                                         .pipeline = "say",
                                         .bundle = bundle,
                                         .status = RV_RUN_COMPLETED,
                                         .stage = "a",
                                         .now_us = T0};
    rv_store *store;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    ck_assert_int_eq(rv_store_put_blob(store, RV_STR_LIT("not a bundle"), bundle, NULL), 0);
    int rc = rv_store_create_run(store, &run, &err);
    ck_assert_msg(rc == 0, "%s", rv_kit_err_take(err));
    ck_assert_int_eq(rv_store_add_webhook(store, &all, "env_1", 0, &hook, NULL), 0);
    return store;
}

static const struct {
    int code, rc;
} reads[] = {
    {RV_E_NOMEM, RV_E_NOMEM},     {RV_E_UNAVAILABLE, RV_E_UNAVAILABLE},
    {RV_E_TIMEOUT, RV_E_TIMEOUT}, {RV_E_INVALID, RV_E_IO},
    {RV_E_NOT_FOUND, 0},
};

START_TEST(a_result_that_cannot_be_read_now_is_told_later)
{
    int code = reads[_i].code;
    rv_store *store = open_store();
    struct work_taker taker = {.store = store};
    struct work_job job = {.task = {.id = "hook_env_1_0", .tenant = RV_STORE_TENANT}, .end = WORK_RUNS};
    rv_err *err = NULL;

    job.asked = rv_kit_json("{'run': 'env_1', 'n': 0, 'event': 'run.ended', 'at': '2025', 'status': 'completed'}");
    rv_store_set_faults(store, (struct rv_store_faults){fail_read, &code});
    int rc = app_work_hook_make(&taker, &job, &err);
    ck_assert_msg(rc == reads[_i].rc, "%d: %s", rc, rv_err_text(err));
    ck_assert_int_eq(job.end, WORK_RUNS); /* not fatal: there are retries */
    ck_assert_int_eq(job.hook != NULL, rc == 0);
    if (rc == 0)
        ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&job.hook->body), "\"result\":null"));
    app_work_hook_free(job.hook);
    json_object_put(job.asked);
    rv_err_free(err);
    rv_store_close(store);
}
END_TEST

TCase *hook_case(void)
{
    TCase *tc = tcase_create("hook");

    tcase_add_loop_test(tc, a_result_that_cannot_be_read_now_is_told_later, 0, RV_COUNT(reads));
    return tc;
}
