/* fill STORE <COMMANDS: a queue as programs and workers left it. Commands, one a line:
 * enqueue ID TENANT USER TYPE DELAY_S | claim WORKER N | complete ID WORKER ATTEMPT | fail ID WORKER ATTEMPT FINAL(0,1)
 */
#include "coreengine/store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 6

/* The words of a line, cut in place; those that are missing are empty. */
struct words {
    const char *at[MAX_WORDS];
};

static struct words cut(char *line)
{
    struct words w = {{"", "", "", "", "", ""}};

    for (size_t n = 0; n < MAX_WORDS && *line; n++) {
        size_t len = strcspn(line, " \n");
        w.at[n] = line;
        line += len;
        if (*line)
            *line++ = 0;
    }
    return w;
}

static int64_t number(const char *text)
{
    return strtoll(text, NULL, 10);
}

static int enqueue(rv_store *s, const struct words *w, int64_t now, rv_err **err)
{
    const struct rv_new_task task = {.id = w->at[1],
                                     .tenant = w->at[2],
                                     .user = w->at[3],
                                     .type = w->at[4],
                                     .key = w->at[1],
                                     .payload = RV_STR_LIT("{\"file\": \"a \\\"b\\\"\"}"),
                                     .max_retries = RV_UNSET,
                                     .scheduled_us = now + number(w->at[5]) * INT64_C(1000000),
                                     .now_us = now};

    return rv_store_enqueue(s, &task, NULL, err);
}

static int claim(rv_store *s, const struct words *w, int64_t now, rv_err **err)
{
    const int64_t classes[] = {1};
    const struct rv_claim_tasks want = {.worker = w->at[1],
                                        .n = (size_t)number(w->at[2]),
                                        .classes = classes,
                                        .n_classes = 1,
                                        .now_us = now,
                                        .until_us = now + 900 * INT64_C(1000000)};
    struct rv_claimed got = {0};
    int rc = rv_store_claim_tasks(s, &want, &got, err);

    rv_claimed_fini(&got);
    return rc;
}

static int end(rv_store *s, const struct words *w, int64_t now, rv_err **err)
{
    const struct rv_task_lease lease = {w->at[1], w->at[2], number(w->at[3])};
    const struct rv_task_failure failure = {
        .error = "disk \x1b[31mfull\nof files", .is_final = number(w->at[4]) != 0, .now_us = now};

    if (strcmp(w->at[0], "complete") == 0)
        return rv_store_complete_task(s, &lease, RV_STR_LIT("{\"pages\": 3}"), now, err);
    if (strcmp(w->at[0], "fail") == 0)
        return rv_store_fail_task(s, &lease, &failure, NULL, err);
    return RV_FAIL(err, RV_E_INVALID, "not a command: %s", w->at[0]);
}

static int fill(rv_store *s, rv_err **err)
{
    int64_t now = rv_clock_system().now_us(NULL);
    char line[600];
    int rc = 0;

    while (rc == 0 && fgets(line, sizeof line, stdin)) {
        const struct words w = cut(line);
        if (strcmp(w.at[0], "enqueue") == 0)
            rc = enqueue(s, &w, now, err);
        else if (strcmp(w.at[0], "claim") == 0)
            rc = claim(s, &w, now, err);
        else
            rc = end(s, &w, now, err);
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
