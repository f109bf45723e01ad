/* What a model's reply comes to: tool calls to be made, an output, a reply that is asked for again, or a failure (rules
 * 5.5 to 5.7). */
#include "coreengine/agent/reply_internal.h"

#include <string.h>

/* --- failures --- */

static int64_t max_retries(const rv_visit *v)
{
    int64_t cap = v->shared->pipeline->execution.max_llm_retries;
    return v->agent->limits.max_retries < cap ? v->agent->limits.max_retries : cap;
}

int rv_reply_failed(rv_visit *v, const char *type, bool retryable, rv_err *cause, struct rv_effects *out, rv_err **err)
{
    if (retryable && !rv_err_is(cause, RV_E_NOMEM) &&
        rv_visit_retry(v, max_retries(v), true, rv_err_text(cause), out)) {
        rv_err_free(cause);
        return 0;
    }
    return rv_visit_fail_cause(v, type, cause, err);
}

static int call_failed(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    const char *type = ev->error_type ? ev->error_type : "LLMError";
    bool timeout = strcmp(type, "TimeoutError") == 0;
    rv_err *cause = NULL;

    int rc = RV_FAIL(&cause, timeout ? RV_E_TIMEOUT : RV_E_PROVIDER, "agent \"%s\": generation failed: %.*s",
                     v->agent->name, RV_STR_ARG(ev->error));
    RV_IGNORE(rc, "the error carries it");
    rc = rv_reply_failed(v, type, ev->retryable || timeout, cause, out, err);
    if (rc == 0 && v->phase == PHASE_FAILED) {
        v->code = rv_event_failure(ev);
        rv_visit_fail_by(v, ev);
    }
    return rc;
}

/* --- the reply --- */

/* The provider's own loop paused: it wants its words back and goes on. */
static int go_on(rv_visit *v, const struct rv_event *ev, rv_err **err)
{
    if (!v->agent->has_tools) /* nor is it counted by the proof of model calls */
        return rv_visit_fail(v, "LLMError", err,
                             "agent \"%s\": the provider paused its answer, which only stages with tools go on with: "
                             "set has_tools",
                             v->agent->name);
    if (v->model.rounds >= v->agent->limits.max_rounds)
        return rv_visit_fail(v, "LimitError", err,
                             "agent \"%s\": the provider paused its answer %lld times, max_rounds is %lld: raise it",
                             v->agent->name, (long long)v->model.rounds, (long long)v->agent->limits.max_rounds);
    v->model.rounds++;
    v->phase = PHASE_MAIN;
    return rv_messages_add_reply(v, ev, NULL, err);
}

static int refused(rv_visit *v, const struct rv_event *ev, rv_err **err)
{
    rv_str head = rv_utf8_cut(rv_str_trim(ev->reply), REPLY_HEAD_BYTES);
    bool declined = ev->llm.finish == RV_FINISH_REFUSAL;

    return rv_visit_fail_as(v, declined ? RV_FAILURE_MODEL_DECLINED : RV_FAILURE_MODEL_CONTENT_FILTER, "LLMError", err,
                            "agent \"%s\": %s: \"%.*s\"", v->agent->name,
                            declined ? "the model refuses to answer"
                                     : "the provider's content filter cut the answer off",
                            RV_STR_ARG(head));
}

/* calls: NULL when there are none. */
static int take_reply(rv_visit *v, const struct rv_event *ev, json_object *calls, struct rv_effects *out, rv_err **err)
{
    json_object *offered = NULL;

    if (ev->llm.finish == RV_FINISH_REFUSAL || ev->llm.finish == RV_FINISH_CONTENT_FILTER)
        return refused(v, ev, err);
    if (v->agent->output.schema && (!calls || rv_reply_output_call(calls)))
        return ev->llm.finish == RV_FINISH_PAUSE ? go_on(v, ev, err) : rv_reply_structured(v, ev, calls, out, err);
    int rc = calls ? rv_messages_offered(v, &offered, err) : 0;
    if (rc < 0)
        return rc;
    if (calls)
        return offered || v->agent->output.schema ? rv_reply_act(v, ev, calls, err)
                                                  : rv_reply_unasked(v, calls, out, err);
    return ev->llm.finish == RV_FINISH_PAUSE ? go_on(v, ev, err) : rv_reply_plain(v, ev, out, err);
}

int rv_visit_llm_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    int64_t spent = v->model.usage.cost_micro_usd;
    json_object *calls = NULL;
    rv_err *cause = NULL;

    rv_money_settle(v, ev);
    rv_buf_clear(&v->partial);
    int rc = rv_reply_calls(ev, &calls, &cause);
    if (ev->failed)
        rv_buf_add_str(&v->partial, ev->reply);
    else
        rv_visible_own(v, ev->reply, calls != NULL);
    v->model.finish = ev->failed ? RV_UNSET : ev->llm.finish;
    if (v->partial.rc == RV_E_NOMEM || v->model.visible.rc == RV_E_NOMEM) {
        rv_err_free(cause);
        json_object_put(calls);
        return RV_FAIL(err, RV_E_NOMEM, "keep what agent \"%s\" said", v->agent->name);
    }
    rv_messages_drop_new_calls(&v->model);
    v->model.new_calls = json_object_get(calls);
    rv_reply_emit(v, ev, calls, spent, out);
    if (ev->failed) {
        json_object_put(calls);
        return call_failed(v, ev, out, err);
    }
    if (rc == 0 && v->model.visible.rc < 0)
        rc = RV_FAIL(&cause, RV_E_LIMIT, "agent \"%s\" said more in one turn than the %zu MiB that are kept",
                     v->agent->name, v->model.visible.max >> 20);
    if (rc == 0 && !rv_utf8_valid(ev->reply, NULL))
        rc = RV_FAIL(&cause, RV_E_PARSE, "agent \"%s\": the model reply is not valid UTF-8", v->agent->name);
    if (rc < 0)
        rc = rv_reply_failed(v, "ParseError", true, cause, out, err);
    else if (rv_money_within_limits(v, &rc, err))
        rc = take_reply(v, ev, calls, out, err);
    if (v->phase != PHASE_FAILED) /* else they become rows */
        rv_messages_drop_new_calls(&v->model);
    json_object_put(calls);
    return rc;
}
