/* fill STORE <COMMANDS: a queue as programs and workers left it. Commands, one a line:
 * enqueue ID TENANT USER TYPE DELAY_S | claim WORKER N | complete ID WORKER ATTEMPT | fail ID WORKER ATTEMPT FINAL(0,1)
 */
#include "coreengine/store/store.h"

#include <stdio.h>
#include <string.h>

static int enqueue(rv_store *s, const char *line, int64_t now, rv_err **err)
{
    char id[100], tenant[100], user[100], type[100];
    struct rv_new_task task = {.id = id,
                               .tenant = tenant,
                               .user = user,
                               .type = type,
                               .key = id,
                               .payload = RV_STR_LIT("{\"file\": \"a \\\"b\\\"\"}"),
                               .max_retries = RV_UNSET,
                               .now_us = now};
    int delay_s = 0;

    if (sscanf(line, "enqueue %99s %99s %99s %99s %d", id, tenant, user, type, &delay_s) != 5)
        return RV_FAIL(err, RV_E_INVALID, "not a command: %s", line);
    task.scheduled_us = now + delay_s * INT64_C(1000000);
    return rv_store_enqueue(s, &task, NULL, err);
}

static int claim(rv_store *s, const char *line, int64_t now, rv_err **err)
{
    const int64_t classes[] = {1};
    char worker[100];
    struct rv_claim_tasks want = {
        .worker = worker, .classes = classes, .n_classes = 1, .now_us = now, .until_us = now + 900 * INT64_C(1000000)};
    struct rv_claimed got = {0};

    if (sscanf(line, "claim %99s %zu", worker, &want.n) != 2)
        return RV_FAIL(err, RV_E_INVALID, "not a command: %s", line);
    int rc = rv_store_claim_tasks(s, &want, &got, err);
    rv_claimed_fini(&got);
    return rc;
}

static int end(rv_store *s, const char *line, int64_t now, rv_err **err)
{
    char verb[20], id[100], worker[100];
    int attempt = 0, is_final = 0;
    int n = sscanf(line, "%19s %99s %99s %d %d", verb, id, worker, &attempt, &is_final);
    const struct rv_task_lease lease = {id, worker, attempt};
    const struct rv_task_failure failure = {
        .error = "disk \x1b[31mfull\nof files", .is_final = is_final != 0, .now_us = now};

    if (n < 4)
        return RV_FAIL(err, RV_E_INVALID, "not a command: %s", line);
    if (strcmp(verb, "complete") == 0)
        return rv_store_complete_task(s, &lease, RV_STR_LIT("{\"pages\": 3}"), now, err);
    return rv_store_fail_task(s, &lease, &failure, NULL, err);
}

static int fill(rv_store *s, rv_err **err)
{
    int64_t now = rv_clock_system().now_us(NULL);
    char line[600];
    int rc = 0;

    while (rc == 0 && fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "enqueue ", 8) == 0)
            rc = enqueue(s, line, now, err);
        else if (strncmp(line, "claim ", 6) == 0)
            rc = claim(s, line, now, err);
        else
            rc = end(s, line, now, err);
    }
    return rc;
}

int main(int argc, char **argv)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_buf said = RV_BUF_INIT(1 << 20);
    rv_store *store = NULL;
    rv_err *err = NULL;

    if (argc != 2)
        return 2;
    int rc = rv_store_open(argv[1], &opts, &store, &err);
    if (rc == 0)
        rc = fill(store, &err);
    if (rc < 0) {
        rv_err_write_text(err, false, &said);
        fputs(rv_buf_cstr(&said), stderr);
    }
    rv_store_close(store);
    rv_err_free(err);
    rv_buf_fini(&said);
    return rc < 0;
}
