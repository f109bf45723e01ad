/* Requests to receivers of webhooks, on the worker's loop. They go where the policy for addresses of others lets them:
 * to public addresses, and to what REEVE_ALLOW_NET names. Redirects are not followed. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/models.h"
#include "coreengine/app/worker/hook_internal.h"
#include "coreengine/model/http/http.h"

#define ALLOW_NET   "REEVE_ALLOW_NET"
#define CONNECT_US  (10 * RV_US_PER_S) /* ten seconds: a server that is there accepts at once */
#define TOTAL_US    (20 * RV_US_PER_S) /* twenty seconds: a receiver that works longer than this should answer first */
#define MAX_ANSWER  ((size_t)64 << 10) /* bytes of an answer: it says nothing that is read */
#define STATUS_GONE 410                /* of HTTP: the receiver wants nothing more */

struct work_hooks {
    rv_http *http;     /* owned */
    rv_egress *egress; /* owned */
};

void app_work_hooks_free(struct work_hooks *hooks)
{
    if (!hooks)
        return;
    rv_http_free(hooks->http);
    rv_egress_free(hooks->egress);
    free(hooks);
}

static int open_hooks(struct uv_loop_s *loop, const struct rv_app *app, struct work_hooks **out, rv_err **err)
{
    const struct rv_http_opts opts = {.loop = loop, .runs_on = true, .log = app->log};
    struct work_hooks *h = *out ? *out : calloc(1, sizeof *h);
    int rc = 0;

    if (!h)
        return RV_FAIL(err, RV_E_NOMEM, "tell a receiver");
    *out = h;
    if (!h->egress)
        rc = rv_egress_new(rv_app_variable(ALLOW_NET), &h->egress, err);
    if (rc < 0)
        return RV_WRAP(err, RV_E_STATE, "the variable %s", ALLOW_NET);
    return h->http ? 0 : rv_http_new(&opts, &h->http, err);
}

static void on_head(void *self, const struct rv_http_head *head)
{
    struct work_job *j = self;

    j->hook->status = head->status;
}

static bool on_body(void *self, rv_str bytes)
{
    (void)self;
    (void)bytes;
    return true;
}

static void take_answer(struct work_job *j, const struct rv_http_end *end)
{
    int status = j->hook->status;
    rv_jw w = rv_jw_on(&j->result);

    rv_buf_clear(&j->result);
    rv_buf_clear(&j->error);
    if (status >= 200 && status < 300) {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "status", "ok");
        rv_jw_kv_int(&w, "http_status", status);
        rv_jw_obj_end(&w);
        rv_buf_puts(&j->error, "told");
        j->end = WORK_DONE;
    } else if (end->is_denied) {
        rv_buf_printf(&j->error, "%s; %s allows addresses that are not public", end->text, ALLOW_NET);
        j->end = WORK_FATAL;
    } else if (status > 0) {
        rv_buf_printf(&j->error, "the receiver answered with status %d", status);
        j->end = status == STATUS_GONE ? WORK_FATAL : WORK_FAILED;
    } else {
        rv_buf_puts(&j->error, end->text);
        j->end = WORK_FAILED;
    }
}

static void on_end(void *self, const struct rv_http_end *end)
{
    struct work_job *j = self;

    j->hook->call = NULL;
    take_answer(j, end);
    j->hook->on_end(j);
}

int app_work_hook_begin(struct work_job *j, struct uv_loop_s *loop, struct work_hooks **hooks,
                        void (*ended)(struct work_job *j), rv_err **err)
{
    struct work_hook *h = j->hook;
    int rc = open_hooks(loop, &j->app, hooks, err);

    if (rc < 0)
        return rc;
    h->hooks = *hooks;
    h->on_end = ended;
    h->status = 0;
    for (size_t i = 0; i < WORK_HOOK_HEADERS; i++)
        h->lines[i] = rv_buf_cstr(&h->headers[i]);
    const struct rv_http_request req = {.method = "POST",
                                        .url = rv_buf_cstr(&h->url),
                                        .headers = h->lines,
                                        .n_headers = WORK_HOOK_HEADERS,
                                        .body = rv_buf_str(&h->body),
                                        .connect_us = CONNECT_US,
                                        .total_us = TOTAL_US,
                                        .max_body = MAX_ANSWER,
                                        .egress = h->hooks->egress};
    const struct rv_http_events events = {.on_head = on_head, .on_body = on_body, .on_end = on_end, .self = j};
    return rv_http_start(h->hooks->http, &req, &events, &h->call, err);
}

void app_work_hook_cancel(struct work_job *j)
{
    if (j->hook && j->hook->call)
        rv_http_cancel(j->hook->call);
    if (j->hook)
        j->hook->call = NULL;
}
