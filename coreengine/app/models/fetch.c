/* A few HTTP requests at once, waited for. */
#include "coreengine/app/models/fetch_internal.h"

#include <stdlib.h>
#include <uv.h>

struct waiting {
    struct rv_app_fetch *fetch;
    uv_loop_t *loop;
    size_t *n_left;
};

static void on_head(void *self, const struct rv_http_head *head)
{
    struct waiting *w = self;

    w->fetch->status = head->status;
    rv_buf_add_str(&w->fetch->type, head->content_type);
}

static bool on_body(void *self, rv_str bytes)
{
    struct waiting *w = self;

    rv_buf_add_str(&w->fetch->body, bytes);
    return true;
}

static void on_end(void *self, const struct rv_http_end *end)
{
    struct waiting *w = self;

    w->fetch->is_done = true;
    w->fetch->fault = end->fault;
    rv_buf_puts(&w->fetch->why, end->text);
    if (--*w->n_left == 0)
        uv_stop(w->loop);
}

static int start_all(rv_http *http, uv_loop_t *loop, struct rv_app_fetch *fetches, struct waiting *waiting, size_t n,
                     size_t *n_left, rv_err **err)
{
    for (size_t i = 0; i < n; i++) {
        struct rv_http_events events = {on_head, on_body, on_end, &waiting[i]};
        rv_http_call *call;
        waiting[i] = (struct waiting){&fetches[i], loop, n_left};
        int rc = rv_http_start(http, &fetches[i].request, &events, &call, err);
        if (rc < 0)
            return rc;
        ++*n_left;
    }
    return 0;
}

int rv_app_fetch_all(const struct rv_app *app, struct rv_app_fetch *fetches, size_t n, rv_err **err)
{
    struct rv_http_opts opts = {.log = app->log};
    struct waiting *waiting = calloc(n ? n : 1, sizeof *waiting);
    size_t n_left = 0;
    rv_http *http = NULL;
    uv_loop_t loop;
    int rc;

    for (size_t i = 0; i < n; i++) {
        fetches[i].type = RV_BUF_INIT(RV_HTTP_MAX_HEAD);
        fetches[i].why = RV_BUF_INIT(RV_HTTP_MAX_HEAD);
        fetches[i].body = RV_BUF_INIT(RV_APP_MAX_FETCH);
    }
    if (!waiting)
        return RV_FAIL(err, RV_E_NOMEM, "ask %zu servers", n);
    if (uv_loop_init(&loop) != 0) {
        free(waiting);
        return RV_FAIL(err, RV_E_IO, "start an event loop");
    }
    opts.loop = &loop;
    rc = rv_http_new(&opts, &http, err);
    if (rc == 0)
        rc = start_all(http, &loop, fetches, waiting, n, &n_left, err);
    while (rc == 0 && n_left > 0)
        uv_run(&loop, UV_RUN_ONCE);
    rv_http_free(http);
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_loop_close(&loop);
    free(waiting);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = rv_buf_check(&fetches[i].body, "an answer", err);
    return rc;
}

void rv_app_fetch_fini(struct rv_app_fetch *f)
{
    rv_buf_fini(&f->type);
    rv_buf_fini(&f->body);
    rv_buf_fini(&f->why);
}
