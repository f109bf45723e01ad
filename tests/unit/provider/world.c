#include "tests/unit/provider/world.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TURNS 1000 /* of one exchange: more is a loop */

static const char *get_env(void *self, const char *name)
{
    struct world *w = self;

    for (size_t i = 0; w->env[i]; i += 2)
        if (strcmp(w->env[i], name) == 0)
            return w->env[i + 1];
    return NULL;
}

void world_init(struct world *w)
{
    *w = (struct world){.now_us = START_US, .env = {"OPENAI_API_KEY", KEY, "ANTHROPIC_API_KEY", KEY, NULL}};
    w->providers = rv_providers_new((struct rv_provider_env){get_env, w});
    ck_assert_ptr_nonnull(w->providers);
    w->pipeline.models = w->models;
    w->request = rv_kit_json("{'role':'default','provider':null,'model':null,'prompt':'Hi','options':"
                             "{'num_predict':100,'num_ctx':8192},'output_mode':'text'}");
    rv_buf_init(&w->deltas, 1 << 20);
    rv_buf_init(&w->retries, 1 << 20);
}

static void forget_sent(struct world *w)
{
    for (size_t i = 0; i < w->n_sent; i++) {
        free(w->urls[i]);
        free(w->bodies[i]);
    }
    w->n_sent = 0;
    rv_buf_clear(&w->deltas);
    rv_buf_clear(&w->retries);
}

void world_fini(struct world *w)
{
    forget_sent(w);
    rv_providers_free(w->providers);
    for (size_t i = 0; i < w->pipeline.n_models; i++)
        json_object_put(w->models[i].options);
    json_object_put(w->request);
    rv_buf_fini(&w->deltas);
    rv_buf_fini(&w->retries);
}

struct rv_model_config *world_model(struct world *w, const char *role, const char *provider, const char *model,
                                    const char *options)
{
    struct rv_model_config *m = &w->models[w->pipeline.n_models++];

    ck_assert_uint_le(w->pipeline.n_models, MAX_MODELS);
    *m = (struct rv_model_config){.role = role, .provider = provider, .model = model};
    m->options = options ? rv_kit_json(options) : NULL;
    return m;
}

void world_fallback(struct world *w, const char *role, const char *first, const char *second)
{
    const struct rv_model_config *m = rv_pipeline_find_model(&w->pipeline, rv_str_of(role));
    size_t at = (size_t)(m - w->models), n = 0;

    w->fallback_names[at][n] = first;
    w->fallbacks[at][n++] = rv_pipeline_find_model(&w->pipeline, rv_str_of(first));
    if (second) {
        w->fallback_names[at][n] = second;
        w->fallbacks[at][n++] = rv_pipeline_find_model(&w->pipeline, rv_str_of(second));
    }
    w->models[at].fallback.items = w->fallback_names[at];
    w->models[at].fallback.n = n;
    w->models[at].fallback_models = w->fallbacks[at];
}

static void on_delta(void *self, const struct rv_llm_delta *d)
{
    struct world *w = self;

    if (d->kind == RV_LLM_DELTA_TEXT)
        rv_buf_add_str(&w->deltas, d->text);
}

static void on_ready(void *self)
{
    struct world *w = self;

    w->n_ready++;
}

static void on_retry(void *self, const struct rv_exchange_retry *r)
{
    struct world *w = self;

    if (r->to)
        rv_buf_printf(&w->retries, "%s -> %s", r->role, r->to);
    else
        rv_buf_printf(&w->retries, "%s %lld/%lld waits %lld", r->role, (long long)r->attempt, (long long)r->of,
                      (long long)r->wait_us);
    rv_buf_printf(&w->retries, ": %.*s (%s)\n", RV_STR_ARG(r->error), rv_failure_text(r->code));
}

struct rv_exchange_opts world_opts(struct world *w, const char *role)
{
    return (struct rv_exchange_opts){.pipeline = &w->pipeline,
                                     .role = role,
                                     .request = w->request,
                                     .now_us = w->now_us,
                                     .random = 42,
                                     .on_delta = on_delta,
                                     .on_ready = on_ready,
                                     .on_retry = on_retry,
                                     .self = w};
}

rv_exchange *world_exchange(struct world *w, const struct rv_exchange_opts *opts)
{
    const struct rv_exchange_opts usual = world_opts(w, "default");
    rv_exchange *x = NULL;

    forget_sent(w);
    ck_assert_int_eq(rv_exchange_new(w->providers, opts ? opts : &usual, &x, NULL), 0);
    return x;
}

static const char *type_of(const struct answer *a)
{
    if (a->type)
        return a->type;
    return a->status == 200 ? "text/event-stream" : "application/json";
}

static const char *body_of(const struct answer *a)
{
    if (a->body)
        return a->body;
    return a->status == 200 ? HELLO : "{\"error\":{\"message\":\"no luck\",\"type\":\"x\",\"code\":null}}";
}

void world_fill_head(struct rv_http_head *head, const struct answer *a, char *storage, size_t size)
{
    char *line, *rest = storage;

    *head = (struct rv_http_head){.status = a->status, .content_type = rv_str_of(type_of(a))};
    snprintf(storage, size, "%s", a->headers ? a->headers : "");
    while ((line = rest) && *line) {
        char *end = strchr(line, '\n'), *colon = strchr(line, ':');
        rest = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        ck_assert_ptr_nonnull(colon);
        head->headers[head->n_headers].name = (rv_str){line, (size_t)(colon - line)};
        head->headers[head->n_headers++].value = rv_str_trim(rv_str_of(colon + 1));
    }
}

void world_answer(struct world *w, rv_exchange *x, const struct answer *a)
{
    struct rv_http_end end = {.fault = a->fault, .was_sent = a->was_sent || a->status, .text = ""};
    struct rv_http_head head;
    char storage[2000];

    if (a->is_refused) {
        rv_err *why = NULL;
        RV_FAIL(&why, RV_E_INTERNAL, "no descriptor is left");
        ck_assert_int_eq(rv_exchange_on_not_sent(x, why, w->now_us, NULL), 0);
        rv_err_free(why);
        return;
    }
    if (a->status) {
        world_fill_head(&head, a, storage, sizeof storage);
        ck_assert_int_eq(rv_exchange_on_head(x, &head, w->now_us, NULL), 0);
        ck_assert_int_eq(rv_exchange_on_body(x, rv_str_of(body_of(a)), w->now_us, NULL), 0);
    }
    if (a->fault == RV_HTTP_UNREACHABLE || a->fault == RV_HTTP_CUT)
        end.text = "the other side is gone";
    if (a->text)
        end.text = a->text;
    w->now_us += a->took_us;
    ck_assert_int_eq(rv_exchange_on_end(x, &end, w->now_us, NULL), 0);
}

static void note(struct world *w, rv_exchange *x)
{
    const struct rv_http_request *r = rv_exchange_request(x);

    ck_assert_uint_lt(w->n_sent, MAX_SENDS);
    w->last = *r;
    w->sent_at[w->n_sent] = w->now_us;
    w->urls[w->n_sent] = rv_str_dup(rv_str_of(r->url));
    w->bodies[w->n_sent++] = rv_str_dup(r->body);
}

void world_drive(struct world *w, rv_exchange *x, const struct answer *answers, size_t n)
{
    for (size_t turn = 0; turn < MAX_TURNS; turn++) {
        int64_t at_us;
        switch (rv_exchange_next(x, w->now_us, &at_us)) {
        case RV_EXCHANGE_DONE:
            return;
        case RV_EXCHANGE_WAIT:
            ck_assert_msg(at_us != INT64_MAX, "it would wait for ever");
            ck_assert_int_gt(at_us, w->now_us);
            w->now_us = at_us;
            break;
        case RV_EXCHANGE_SEND:
            note(w, x);
            ck_assert_uint_gt(n, 0);
            world_answer(w, x, &answers[w->n_sent <= n ? w->n_sent - 1 : n - 1]);
            break;
        }
    }
    ck_abort_msg("it does not end");
}

const char *world_error(const rv_exchange *x)
{
    return rv_buf_cstr(&rv_exchange_reply(x)->error);
}
