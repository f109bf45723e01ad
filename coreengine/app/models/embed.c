/* Texts as vectors, asked of a provider without any pipeline. */
#include "coreengine/app/models/fetch_internal.h"
#include "coreengine/app/models/models_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BODY      ((size_t)128 << 20)
#define CONNECT_US    INT64_C(10000000)
#define FIRST_BYTE_US INT64_C(300000000) /* a local model may have to be loaded first */
#define IDLE_US       INT64_C(60000000)

static const char *get_variable(void *self, const char *name)
{
    (void)self;
    return getenv(name);
}

int rv_app_embed_target(rv_str provider, const char *model, const char *base_url, struct rv_embed_target *out,
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
        rc = rv_provider_embed_target(env, name, model, options, out, err);
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
        rc = rv_wire_fault(&t->wire, f->status, rv_buf_str(&f->type), rv_buf_str(&f->body), &reply, err);
        if (rc < 0)
            return rc;
        hide_keys(t, &reply.error);
        rc = RV_FAIL(err, RV_E_PROVIDER, "%s", rv_buf_cstr(&reply.error));
        rv_llm_reply_fini(&reply);
    }
    return RV_WRAP(err, rc, "ask \"%s\" for embeddings", t->wire.provider);
}

int rv_app_embed(const struct rv_app *app, const struct rv_embed_target *target, const rv_str *texts, size_t n,
                 int64_t dimensions, struct rv_embeddings *out, rv_err **err)
{
    rv_buf body = RV_BUF_INIT(MAX_BODY);
    struct rv_app_fetch fetch = {.request = {.method = "POST",
                                             .url = target->url,
                                             .headers = (const char *const *)target->headers,
                                             .n_headers = target->n_headers,
                                             .connect_us = CONNECT_US,
                                             .first_byte_us = FIRST_BYTE_US,
                                             .idle_us = IDLE_US}};

    int rc = rv_wire_embed_request(&target->wire, texts, n, dimensions, &body, err);
    fetch.request.body = rv_buf_str(&body);
    if (rc == 0)
        rc = rv_app_fetch_all(app, &fetch, 1, err);
    if (rc == 0 && (fetch.fault != RV_HTTP_OK || fetch.status < 200 || fetch.status > 299)) {
        rc = refuse(target, &fetch, err);
    } else if (rc == 0) {
        rc = rv_wire_embed_read(&target->wire, rv_buf_str(&fetch.body), n, out, err);
        if (rc < 0) /* a bad answer is not the caller's fault */
            rc = RV_WRAP(err, rc == RV_E_PARSE ? RV_E_PROVIDER : rc, "read the embeddings of \"%s\"",
                         target->wire.provider);
    }
    rv_app_fetch_fini(&fetch);
    rv_buf_fini(&body);
    return rc;
}
