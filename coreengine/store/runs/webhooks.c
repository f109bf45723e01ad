/* Webhooks of runs: rows that are kept with a run, and the tasks that its steps queue. */
#include "coreengine/store/clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/store/queue/queue_internal.h"

#define MAX_SHOWN ((size_t)4096) /* bytes of a question that a receiver is told: it asks for the rest */

void rv_webhook_fini(struct rv_webhook *w)
{
    free(w->own);
    *w = (struct rv_webhook){.url = NULL};
}

/* --- rows --- */

static int check(const struct rv_webhook *hook, int64_t n, rv_err **err)
{
    int rc = store_check_text("url", hook->url, RV_WEBHOOK_MAX_URL, err);

    if (rc == 0)
        rc = store_check_text("secret", hook->secret, RV_WEBHOOK_MAX_SECRET, err);
    if (rc == 0 && (n < 0 || n >= RV_WEBHOOK_MAX || hook->events < 1 || hook->events > 3))
        rc = RV_FAIL(err, RV_E_INVALID, "webhook %lld with events %lld", (long long)n, (long long)hook->events);
    return rc;
}

static struct rv_place place_of(const char *tenant, const char *run, int64_t n)
{
    return vault_engine_place(tenant, "webhooks", run, NULL, n + 1);
}

static int add(struct sql_store *st, const struct rv_store_scope *scope, const char *run, int64_t n,
               const struct rv_webhook *hook, rv_err **err)
{
    struct found_run found;
    int rc = store_run_find(st, scope, run, &found, err);

    if (rc < 0)
        return rc;
    const struct rv_place at = place_of(found.tenant, run, n);
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_WEBHOOK);
    sql_int(stmt, 1, found.key);
    sql_int(stmt, 2, n);
    store_sql_text(stmt, 3, hook->url);
    store_secret_bind(stmt, 4, SQL_STR, &at, "secret", rv_str_of(hook->secret));
    sql_int(stmt, 5, hook->events);
    return sql_run(stmt, "add a webhook", err);
}

int rv_store_add_webhook(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t n,
                         const struct rv_webhook *hook, rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scoped(scope, "run id", run, &sc, err);

    if (rc == 0)
        rc = check(hook, n, err);
    rc = store_enter_write(s, rc, "add webhook", err);
    if (rc != 0)
        return rc;
    do
        rc = add(s->sql, &sc, run, n, hook, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int get(struct sql_store *st, const struct rv_store_scope *scope, const char *run, int64_t n,
               struct rv_webhook *out, rv_err **err)
{
    struct found_run found;
    bool lacked = false;
    rv_str secret = {NULL, 0};
    int rc = store_run_find(st, scope, run, &found, err);

    if (rc < 0)
        return rc;
    const struct rv_place at = place_of(found.tenant, run, n);
    rv_sql_stmt *stmt = sql_use(st, SQL_GET_WEBHOOK);
    sql_int(stmt, 1, found.key);
    sql_int(stmt, 2, n);
    rc = sql_step(stmt, "read a webhook", err);
    if (rc == 0)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "run \"%s\" has no webhook %lld", run, (long long)n);
    else if (rc == 1)
        rc = store_secret_at(stmt, 1, &at, "secret", &secret, err);
    if (rc == 0) {
        struct rv_webhook row = {.url = sql_text_at(stmt, 0, &lacked), .events = sql_int_at(stmt, 2)};
        char *copy = rv_str_dup(secret);
        const struct rv_row_texts texts = {.texts = {&row.url, &row.secret}, .n_texts = 2};
        row.secret = copy;
        if (lacked || !copy || !(row.own = store_pack(&texts)))
            rc = RV_FAIL(err, RV_E_NOMEM, "read a webhook");
        else
            *out = row;
        free(copy);
    }
    sql_done(stmt);
    return rc;
}

int rv_store_get_webhook(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t n,
                         struct rv_webhook *out, rv_err **err)
{
    struct rv_webhook row = {.url = NULL};
    struct rv_store_scope sc;
    int rc = store_check_scoped(scope, "run id", run, &sc, err);

    rc = store_enter_read(s, rc, "read webhook", err);
    if (rc != 0)
        return rc;
    rc = store_leave_read(s, get(s->sql, &sc, run, n, &row, err), err);
    if (rc == 0)
        *out = row;
    else
        rv_webhook_fini(&row);
    return rc;
}

/* --- what a step of a run queues --- */

struct due {
    int64_t n[RV_WEBHOOK_MAX];
    size_t n_due;
    char user[RV_STORE_MAX_ID + 1];
};

static int find_due(struct sql_store *st, int64_t run, int64_t event, struct due *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_WEBHOOKS_OF_RUN);
    bool lacked = false;
    int rc;

    *out = (struct due){.n_due = 0};
    sql_int(stmt, 1, run);
    while ((rc = sql_step(stmt, "look for webhooks", err)) == 1) {
        const char *user = sql_text_at(stmt, 2, &lacked);
        if (user)
            snprintf(out->user, sizeof out->user, "%s", user);
        if (sql_int_at(stmt, 1) & event && out->n_due < RV_WEBHOOK_MAX)
            out->n[out->n_due++] = sql_int_at(stmt, 0);
    }
    sql_done(stmt);
    return rc == 0 && lacked ? RV_FAIL(err, RV_E_NOMEM, "look for webhooks") : rc;
}

static void write_payload(const struct rv_store_append *a, int64_t n, const char *event, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);
    char time[RV_TIME_MAX];

    rv_time_format(a->now_us, time);
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "run", a->run);
    rv_jw_kv_int(&w, "n", n);
    rv_jw_kv_text(&w, "event", event);
    rv_jw_kv_text(&w, "at", time);
    rv_jw_kv_text(&w, "status", rv_run_status_text(a->status));
    rv_jw_key(&w, "interrupts");
    rv_jw_arr(&w);
    for (size_t i = 0; a->status == RV_RUN_INTERRUPTED && i < a->n_pending; i++) {
        const struct rv_pending *p = &a->pending[i];
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "id", p->id);
        rv_jw_kv_text(&w, "kind", p->kind);
        rv_jw_kv_text(&w, "stage", p->stage);
        rv_jw_kv_str(&w, "text", rv_utf8_cut((rv_str){p->text.ptr ? p->text.ptr : "", p->text.len}, MAX_SHOWN));
        rv_jw_obj_end(&w);
    }
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
}

/* The same event of the same run has the same id in every process. */
static void name_task(const struct rv_store_append *a, int64_t seq, int64_t n, char out[RV_ID_MAX])
{
    char hash[RV_HASH_MAX], numbers[64];
    struct rv_hash h;

    snprintf(numbers, sizeof numbers, "\n%lld\n%lld", (long long)seq, (long long)n);
    rv_hash_init(&h);
    rv_hash_add(&h, rv_str_of(a->run));
    rv_hash_add(&h, rv_str_of(numbers));
    rv_hash_finish_hex(&h, hash);
    snprintf(out, RV_ID_MAX, RV_WEBHOOK_PREFIX "%.16s", hash);
}

/* An event of a run that a webhook is told. Texts are borrowed. */
struct due_event {
    const char *user;
    int64_t n; /* number of the webhook */
    const char *event;
};
static int queue(struct sql_store *st, const struct found_run *run, const struct rv_store_append *a,
                 const struct due_event *due, rv_err **err)
{
    rv_buf payload = RV_BUF_INIT(RV_TASK_MAX_JSON);
    struct rv_enqueued done;
    char id[RV_ID_MAX];

    name_task(a, run->n_records + (int64_t)a->n_records, due->n, id);
    write_payload(a, due->n, due->event, &payload);
    const struct rv_new_task task = {.id = id,
                                     .tenant = run->tenant,
                                     .user = due->user,
                                     .type = RV_WEBHOOK_TASK,
                                     .key = id,
                                     .tier = rv_task_tier_text(RV_TASK_TIER_SMALL),
                                     .payload = rv_buf_str(&payload),
                                     .max_retries = RV_WEBHOOK_RETRIES,
                                     .now_us = a->now_us};
    int rc = rv_buf_check(&payload, "payload of a webhook", err);
    if (rc == 0)
        rc = store_task_enqueue(st, &task, &done, err);
    rv_buf_fini(&payload);
    return rc;
}

int store_webhooks_keep(struct sql_store *st, const struct found_run *run, const struct rv_store_append *a,
                        rv_err **err)
{
    bool ends = rv_run_status_is_final(a->status), waits = a->status == RV_RUN_INTERRUPTED;
    struct due due;

    if (a->status == run->status || (!ends && !waits))
        return 0;
    int rc = find_due(st, run->key, ends ? RV_WEBHOOK_ENDED : RV_WEBHOOK_INTERRUPTED, &due, err);
    for (size_t i = 0; i < due.n_due && rc == 0; i++)
        rc = queue(
            st, run, a,
            &(const struct due_event){.user = due.user, .n = due.n[i], .event = ends ? "run.ended" : "run.interrupted"},
            err);
    return rc;
}
