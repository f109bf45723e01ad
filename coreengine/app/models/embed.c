/* A few HTTP requests at once, waited for, outside any run; and texts as vectors, asked of a provider. */
#include "coreengine/app/models/fetch_internal.h"
#include "coreengine/base/loop.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define MAX_BODY      ((size_t)128 << 20) /* bytes: RV_EMBED_MAX_TEXTS texts with their escapes; more is an error */
#define CONNECT_US    (10 * RV_US_PER_S)  /* ten seconds: a server that is there accepts at once */
#define FIRST_BYTE_US (5 * RV_US_PER_MIN) /* a local model may have to be loaded first */
#define IDLE_US       RV_US_PER_MIN       /* a minute without a byte: a local model may have to be loaded first */
#define LOOK_MS       50                  /* between two looks whether the answers are still wanted */

/* --- requests --- */

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

static int start_all(rv_http *http, struct waiting *waiting, size_t n, rv_err **err)
{
    for (size_t i = 0; i < n; i++) {
        struct rv_http_events events = {on_head, on_body, on_end, &waiting[i]};
        rv_http_call *call;
        int rc = rv_http_start(http, &waiting[i].fetch->request, &events, &call, err);
        if (rc < 0)
            return rc;
        ++*waiting[i].n_left;
    }
    return 0;
}

static void on_look(uv_timer_t *timer)
{
    (void)timer; /* the loop turns, that is all */
}

static int wait_all(const struct rv_app *app, uv_loop_t *loop, const size_t *n_left, rv_err **err)
{
    uv_timer_t look;
    int rc = 0;

    uv_timer_init(loop, &look);
    if (app->until.is_over)
        uv_timer_start(&look, on_look, LOOK_MS, LOOK_MS);
    while (rc == 0 && *n_left > 0)
        if (app->until.is_over && app->until.is_over(app->until.self))
            rc = RV_FAIL(err, RV_E_CANCELLED, "the answer is not waited for any more");
        else
            uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&look, NULL);
    uv_run(loop, UV_RUN_NOWAIT); /* the timer is of this function */
    return rc;
}

int app_fetch_all(const struct rv_app *app, struct rv_app_fetch *fetches, size_t n, rv_err **err)
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
    rc = rv_loop_init(&loop, err);
    if (rc < 0) {
        free(waiting);
        return rc;
    }
    for (size_t i = 0; i < n; i++)
        waiting[i] = (struct waiting){&fetches[i], &loop, &n_left};
    opts.loop = &loop;
    rc = rv_http_new(&opts, &http, err);
    if (rc == 0)
        rc = start_all(http, waiting, n, err);
    if (rc == 0)
        rc = wait_all(app, &loop, &n_left, err);
    rv_http_free(http);
    uv_run(&loop, UV_RUN_NOWAIT);
    RV_IGNORE(uv_loop_close(&loop), "all handles are closed");
    free(waiting);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = rv_buf_check(&fetches[i].body, "an answer", err);
    return rc;
}

void app_fetch_fini(struct rv_app_fetch *f)
{
    rv_buf_fini(&f->type);
    rv_buf_fini(&f->body);
    rv_buf_fini(&f->why);
}

/* --- vectors --- */

static const char *get_variable(void *self, const char *name)
{
    (void)self;
    return getenv(name);
}

int rv_app_find_embed_target(rv_str provider, const char *model, const char *base_url, struct rv_embed_target *out,
                             rv_err **err)
{
    struct rv_provider_env env = {get_variable, NULL};
    json_object *options = NULL;
    char *name = rv_str_dup(provider);
    int rc = name ? 0 : RV_FAIL(err, RV_E_NOMEM, "find a provider");

    if (rc == 0 && base_url) {
        options = json_object_new_object();
        rc = options ? rv_json_set_take(options, "base_url", json_object_new_string(base_url), err)
                     : RV_FAIL(err, RV_E_NOMEM, "find a provider");
    }
    if (rc == 0)
        rc = rv_provider_find_embed_target(env, name, model, options, out, err);
    json_object_put(options);
    free(name);
    return rc;
}

/* A provider may repeat the key that it refuses: it is cut out of its words. */
static void hide_keys(const struct rv_embed_target *t, rv_buf *text)
{
    for (size_t i = 0; i < t->n_headers; i++) {
        const char *value = strchr(t->headers[i], ':');
        value = value ? value + 1 + strspn(value + 1, " ") : "";
        if (strncmp(value, "Bearer ", 7) == 0)
            value += 7;
        size_t len = strlen(value);
        if (len < 8 || !text->ptr)
            continue;
        for (char *at = strstr(text->ptr, value); at; at = strstr(at, value))
            memset(at, '*', len);
    }
}

static int fault_code(enum rv_http_fault fault)
{
    switch (fault) {
    case RV_HTTP_CONNECT_TIME:
    case RV_HTTP_FIRST_BYTE_TIME:
    case RV_HTTP_IDLE_TIME:
    case RV_HTTP_TOTAL_TIME:
        return RV_E_TIMEOUT;
    case RV_HTTP_OK:
    case RV_HTTP_UNREACHABLE:
    case RV_HTTP_CUT:
    case RV_HTTP_TOO_LARGE:
    case RV_HTTP_BAD_ANSWER:
    case RV_HTTP_LOCAL:
        break;
    }
    return RV_E_PROVIDER;
}

static int refuse(const struct rv_embed_target *t, const struct rv_app_fetch *f, rv_err **err)
{
    struct rv_llm_reply reply;
    int rc;

    if (f->fault != RV_HTTP_OK) {
        rc = RV_FAIL(err, fault_code(f->fault), "%s", rv_buf_cstr(&f->why));
    } else {
        rc = rv_wire_read_fault(&t->wire, f->status, rv_buf_str(&f->type), rv_buf_str(&f->body), &reply, err);
        if (rc < 0)
            return rc;
        hide_keys(t, &reply.error);
        rc = RV_FAIL(err, RV_E_PROVIDER, "%s", rv_buf_cstr(&reply.error));
        rv_llm_reply_fini(&reply);
    }
    return RV_WRAP(err, rc, "ask \"%s\" for embeddings", t->wire.provider);
}

int rv_app_embed(const struct rv_app *app, const struct rv_embed_target *target, const struct rv_embed_texts *what,
                 struct rv_embeddings *out, rv_err **err)
{
    rv_buf body = RV_BUF_INIT(MAX_BODY);
    struct rv_app_fetch fetch = {.request = {.method = "POST",
                                             .url = target->url,
                                             .headers = (const char *const *)target->headers,
                                             .n_headers = target->n_headers,
                                             .connect_us = CONNECT_US,
                                             .first_byte_us = FIRST_BYTE_US,
                                             .idle_us = IDLE_US}};

    int rc = rv_wire_embed_write_request(&target->wire, what->texts, what->n, what->dimensions, &body, err);
    fetch.request.body = rv_buf_str(&body);
    if (rc == 0)
        rc = app_fetch_all(app, &fetch, 1, err);
    if (rc == 0 && (fetch.fault != RV_HTTP_OK || fetch.status < 200 || fetch.status > 299)) {
        rc = refuse(target, &fetch, err);
    } else if (rc == 0) {
        rc = rv_wire_embed_read(&target->wire, rv_buf_str(&fetch.body), what->n, out, err);
        if (rc < 0) /* a bad answer is not the caller's fault */
            rc = RV_WRAP(err, rc == RV_E_PARSE ? RV_E_PROVIDER : rc, "read the embeddings of \"%s\"",
                         target->wire.provider);
    }
    app_fetch_fini(&fetch);
    rv_buf_fini(&body);
    return rc;
}
