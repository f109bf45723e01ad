/* Tasks of type `webhook`: what a receiver is told of a run, and the request that tells it, signed in the manner of
 * Standard Webhooks. Made here on the dispatcher's thread; sent by hook_send.c on the loop, so that a receiver that is
 * slow keeps nothing else back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/worker/hook_internal.h"
#include "coreengine/base/base.h"

/* bytes that a webhook is sent: an event with its output; a longer one is an error of the task */
#define MAX_BODY   ((size_t)16 << 20)
#define MAX_HEADER ((size_t)1024) /* bytes of one header of ours: a name, an id or a signature */

/* --- the body: {type, timestamp, data} --- */

static void write_run(const struct rv_run_row *row, rv_jw *w)
{
    char time[RV_TIME_MAX];

    rv_time_format(row->created_us, time);
    rv_jw_kv_text(w, "run_id", row->id);
    rv_jw_kv_text(w, "pipeline", row->pipeline);
    rv_jw_kv_text(w, "session_id", row->session && row->session[0] ? row->session : NULL);
    rv_jw_kv_text(w, "tenant_id", row->tenant);
    rv_jw_kv_text(w, "user_id", row->user && row->user[0] ? row->user : NULL);
    rv_jw_kv_text(w, "created_at", time);
}

static int read_result(struct work_taker *t, const struct rv_app_past *past, rv_buf *text, rv_err **err)
{
    struct rv_replayed r = {0};
    int rc = rv_app_past_replay(t->store, past, NULL, &r, err);

    if (rc < 0)
        return rc;
    rv_envelope_write_result(rv_run_envelope(r.run), &rv_app_past_pipeline(past)->response, text);
    rv_replayed_fini(&r);
    return rv_buf_check(text, "the result of the run", err);
}

/* The result of a run that ended, as `reeve run --json` prints it. One that is too long, or that is not there any more,
 * is left out: the receiver can ask for the run. Any other failure may pass: the task is tried again. */
static int write_result(struct work_taker *t, const struct rv_store_scope *scope, const char *run, rv_jw *w,
                        rv_err **err)
{
    struct rv_app_past past;
    rv_buf text = RV_BUF_INIT(MAX_BODY / 2);
    rv_err *why = NULL;
    int rc = rv_app_past_open(t->store, scope, run, &past, &why);

    if (rc == 0) {
        rc = read_result(t, &past, &text, &why);
        rv_app_past_fini(&past);
    }
    bool is_left_out = rc == RV_E_NOT_FOUND || rc == RV_E_LIMIT;
    rv_jw_key(w, "result");
    if (rc == 0)
        rv_jw_raw(w, rv_buf_str(&text));
    else
        rv_jw_null(w);
    rv_buf_fini(&text);
    if (rc == 0 || is_left_out) {
        rv_err_free(why);
        return 0;
    }
    rv_err_pass(err, why);
    return RV_WRAP(err, rc == RV_E_INVALID ? RV_E_IO : rc, "read the result of run \"%s\"",
                   run); /* not the payload's */
}

static int write_body(struct work_taker *t, struct work_job *j, rv_buf *out, rv_err **err)
{
    const struct rv_store_scope scope = {j->task.tenant, NULL};
    bool ended = strcmp(rv_json_text_or(j->asked, "event", ""), "run.ended") == 0;
    struct rv_run_row row;
    rv_jw w = rv_jw_on(out);
    int rc = rv_store_get_run(t->store, &scope, rv_json_text_or(j->asked, "run", ""), &row, err);

    if (rc < 0)
        return rc;
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "type", rv_json_text_or(j->asked, "event", ""));
    rv_jw_kv_text(&w, "timestamp", rv_json_text_or(j->asked, "at", ""));
    rv_jw_key(&w, "data");
    rv_jw_obj(&w);
    write_run(&row, &w);
    rv_jw_kv_text(&w, "status", rv_json_text_or(j->asked, "status", "")); /* then: the run may have gone on */
    rv_jw_kv_value(&w, "interrupts", rv_json_get_arr(j->asked, "interrupts"));
    if (ended)
        rc = write_result(t, &scope, row.id, &w, err);
    rv_jw_obj_end(&w);
    rv_jw_obj_end(&w);
    rv_run_row_fini(&row);
    return rc < 0 ? rc : rv_buf_check(out, "what a webhook tells", err);
}

/* --- the signature --- */

/* "whsec_" and base64, as Standard Webhooks writes secrets; anything else is the key itself. */
static void read_secret(const char *text, rv_buf *key)
{
    static const char prefix[] = "whsec_";

    if (strncmp(text, prefix, sizeof prefix - 1) == 0 && rv_base64_read(rv_str_of(text + sizeof prefix - 1), key))
        return;
    rv_buf_clear(key);
    rv_buf_puts(key, text);
}

static int sign(struct work_hook *h, const char *id, const char *secret, rv_err **err)
{
    rv_buf key = RV_BUF_INIT(2 * RV_WEBHOOK_MAX_SECRET), text = RV_BUF_INIT(MAX_BODY + MAX_HEADER);
    long long now_s = (long long)(rv_app_now_us() / RV_US_PER_S);
    unsigned char mac[32];

    read_secret(secret, &key);
    int rc = rv_buf_check(&key, "the key of a webhook", err);
    if (rc < 0) /* no signature with less of a key */
        goto done;
    rv_buf_printf(&text, "%s.%lld.", id, now_s);
    rv_buf_add_str(&text, rv_buf_str(&h->body));
    rv_hmac_sha256_make(rv_buf_str(&key), rv_buf_str(&text), mac);
    rv_buf_printf(&h->headers[0], "webhook-id: %s", id);
    rv_buf_printf(&h->headers[1], "webhook-timestamp: %lld", now_s);
    rv_buf_puts(&h->headers[2], "webhook-signature: v1,");
    rv_base64_write((rv_str){(const char *)mac, sizeof mac}, &h->headers[2]);
    rv_buf_puts(&h->headers[3], "Content-Type: application/json");
    rc = rv_buf_check(&text, "what is signed", err);
    for (size_t i = 0; i < WORK_HOOK_HEADERS && rc == 0; i++)
        rc = rv_buf_check(&h->headers[i], "a header", err);
done:
    if (key.ptr)
        rv_wipe(key.ptr, key.cap);
    rv_buf_fini(&key);
    rv_buf_fini(&text);
    return rc;
}

/* --- the task --- */

void app_work_hook_free(struct work_hook *h)
{
    if (!h)
        return;
    rv_buf_fini(&h->body);
    rv_buf_fini(&h->url);
    for (size_t i = 0; i < WORK_HOOK_HEADERS; i++)
        rv_buf_fini(&h->headers[i]);
    free(h);
}

static int make(struct work_taker *t, struct work_job *j, struct work_hook *h, rv_err **err)
{
    const struct rv_store_scope scope = {j->task.tenant, NULL};
    struct rv_webhook hook;
    int64_t n = rv_json_int_or(j->asked, "n", -1);

    int rc = rv_store_get_webhook(t->store, &scope, rv_json_text_or(j->asked, "run", ""), n, &hook, err);
    if (rc < 0)
        return rc;
    rv_buf_puts(&h->url, hook.url);
    rc = rv_buf_check(&h->url, "the address", err);
    if (rc == 0)
        rc = write_body(t, j, &h->body, err);
    if (rc == 0)
        rc = sign(h, j->task.id, hook.secret, err);
    rv_webhook_fini(&hook);
    return rc;
}

int app_work_hook_make(struct work_taker *t, struct work_job *j, rv_err **err)
{
    bool is_ours = strncmp(j->task.id, RV_WEBHOOK_PREFIX, sizeof RV_WEBHOOK_PREFIX - 1) == 0;
    struct work_hook *h = is_ours ? calloc(1, sizeof *h) : NULL;

    if (!is_ours) {
        j->end = WORK_FATAL;
        return RV_FAIL(err, RV_E_INVALID, "only the end of a run, or its question, queues a task of this type");
    }
    if (!h)
        return RV_FAIL(err, RV_E_NOMEM, "tell a receiver");
    rv_buf_init(&h->body, MAX_BODY);
    rv_buf_init(&h->url, RV_WEBHOOK_MAX_URL + 1);
    for (size_t i = 0; i < WORK_HOOK_HEADERS; i++)
        rv_buf_init(&h->headers[i], MAX_HEADER);
    app_work_hook_free(j->hook); /* of an attempt whose connection to the store broke */
    j->hook = NULL;
    int rc = make(t, j, h, err);
    if (rc < 0) {
        app_work_hook_free(h);
        if (rc == RV_E_NOT_FOUND || rc == RV_E_INVALID) /* the run was deleted; someone else wrote the payload */
            j->end = WORK_FATAL;
        return rc;
    }
    j->hook = h; /* and j->end stays WORK_RUNS */
    return 0;
}
