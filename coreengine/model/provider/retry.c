/* What follows a failed attempt: another one, after a wait, as the vendors' own clients do it; or another role, with
 * the request that it gets. */
#include "coreengine/model/provider/provider_internal.h"

#include <json-c/linkhash.h>
#include <stdio.h>

#define FIRST_WAIT_US (RV_US_PER_S / 2) /* half a second, as the vendors' own clients */
#define MAX_WAIT_US   (8 * RV_US_PER_S) /* eight seconds, as the vendors' own clients */

/* Doubles with each attempt; up to a quarter less, so that those who failed together do not come back together. */
static int64_t back_off(rv_exchange *x)
{
    int64_t wait = FIRST_WAIT_US;

    for (int64_t n = 1; n < x->role_attempts && wait < MAX_WAIT_US; n++)
        wait *= 2;
    if (wait > x->endpoint.call.max_retry_wait_us)
        wait = x->endpoint.call.max_retry_wait_us;
    return wait - (int64_t)rv_rand_below(x->rand, (uint64_t)(wait / 4 + 1));
}

static bool no_repeat(rv_exchange *x, const char *why)
{
    snprintf(x->why_no_repeat, sizeof x->why_no_repeat, "%s", why);
    return false;
}

bool provider_retry_wanted(rv_exchange *x)
{
    int64_t hint = x->hints.retry_after_us, wait;

    x->why_no_repeat[0] = '\0';
    if (!x->reply.retryable || x->role_attempts >= x->endpoint.call.max_attempts)
        return false;
    if (x->has_begun)
        return no_repeat(x, "a part of the answer had come already");
    if (x->opts.charged && x->attempt_may_be_billed)
        return no_repeat(x, "it may have been charged for, and there is a budget or a quota");
    wait = hint >= 0 && hint <= x->endpoint.call.max_retry_wait_us ? hint : back_off(x);
    if (x->opts.deadline_us && wait >= x->opts.deadline_us - x->now_us)
        return no_repeat(x, "the wait before it would pass the deadline");
    x->wait_until_us = x->now_us + wait;
    return true;
}

/* --- another role --- */

/* A wrong request stays wrong, but a fallback that could not even be asked says nothing of the request. */
static bool may_another_help(const rv_exchange *x)
{
    int kind = x->reply.answer.error_kind;

    if (kind == RV_LLM_ERROR_BAD_REQUEST)
        return x->model != x->asked && x->role_attempts == 0;
    return kind != RV_LLM_ERROR_CANCELLED;
}

bool provider_fallback_wanted(const rv_exchange *x)
{
    return may_another_help(x) && !x->is_refused && !x->has_begun && !(x->opts.charged && x->may_be_billed) &&
           !(x->opts.deadline_us && x->now_us >= x->opts.deadline_us);
}

const struct rv_model_config *provider_fallback_next(rv_exchange *x)
{
    const struct rv_model_config *m = NULL;

    while (x->asked && !m && x->next_fallback < x->asked->fallback.n) {
        if (x->asked->fallback_models)
            m = x->asked->fallback_models[x->next_fallback]; /* NULL: an optional role that is not there */
        x->next_fallback++;
    }
    return m;
}

/* A limit of the fallback's own may be lower, and counts; a higher one does not: what the call can cost was reckoned
 * with the request's. Its temperature takes the place of the one that the asked role has. */
static int adapt(const struct rv_model_config *asked, const struct rv_model_config *model, json_object *options,
                 rv_err **err)
{
    json_object *t = NULL;
    int64_t limit;
    bool has = json_object_object_get_ex(options, "temperature", &t);
    int rc = 0;

    if (model->has_max_tokens && rv_json_get_int(options, "num_predict", &limit) && model->max_tokens < limit)
        rc = rv_json_set_int(options, "num_predict", model->max_tokens, err);
    if (rc == 0 && model->has_temperature &&
        (!has || (asked->has_temperature && rv_json_is_number(t) && json_object_get_double(t) == asked->temperature)))
        rc = rv_json_set_take(options, "temperature", rv_json_new_double(model->temperature), err);
    return rc;
}

/* The members are shared with the request, but for the one that is changed. */
static int copy_but(json_object *from, const char *but, json_object **out, rv_err **err)
{
    json_object *copy = json_object_new_object();
    int rc = copy ? 0 : RV_FAIL(err, RV_E_NOMEM, "copy a request");

    if (copy) {
        json_object_object_foreach (from, key, value) {
            if (rc == 0 && !rv_str_is(rv_str_of(key), but))
                rc = rv_json_set_ref(copy, key, value, err);
        }
    }
    if (rc < 0)
        json_object_put(copy);
    else
        *out = copy;
    return rc;
}

int provider_fallback_request(const struct rv_model_config *asked, const struct rv_model_config *model,
                              json_object *request, json_object **out, rv_err **err)
{
    json_object *options = rv_json_get_obj(request, "options"), *copy = NULL, *own = NULL;
    int rc;

    if (asked == model || !options) {
        *out = json_object_get(request);
        return 0;
    }
    rc = copy_but(request, "options", &copy, err);
    if (rc == 0)
        rc = rv_json_dup(options, &own, err);
    if (rc == 0)
        rc = adapt(asked, model, own, err);
    if (rc < 0) {
        json_object_put(own);
        json_object_put(copy);
        return rc;
    }
    rc = rv_json_set_take(copy, "options", own, err);
    if (rc < 0)
        json_object_put(copy);
    else
        *out = copy;
    return rc;
}
