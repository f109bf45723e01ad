/* Envelopes as state dicts: make, look at, check, pause and answer (rules 3.1, 3.4, 3.6, 3.9, 3.10, 8.4). */
#include "coreengine/app/fn/fn_internal.h"

static int create(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_fn_source source;
    rv_envelope *env = NULL;
    struct rv_envelope_seed seed = {.raw_input = rv_fn_str(in, "raw_input"),
                                    .user_id = rv_fn_str(in, "user_id"),
                                    .session_id = rv_fn_str(in, "session_id"),
                                    .request_id = rv_fn_str(in, "request_id"),
                                    .metadata = rv_json_get_obj(in, "metadata"),
                                    .stage_order = rv_json_get_arr(in, "stage_order")};

    int rc = rv_fn_source(in, &source, err);
    if (rc == 0)
        rc = rv_envelope_new(&seed, source.rand, source.now_us, &env, err);
    if (rc == 0)
        rv_fn_write_state(env, out);
    rv_envelope_free(env);
    return rc;
}

static int can_continue(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    enum rv_reason reason = RV_REASON_NONE;
    int rc = rv_fn_envelope(in, NULL, &env, err);

    if (rc < 0)
        return rc;
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    bool can = rv_envelope_can_continue(env, true, &reason);
    if (reason == RV_REASON_NONE)
        reason = f->terminal_reason;
    rv_jw_obj(out);
    rv_jw_kv_bool(out, "can_continue", can);
    rv_jw_kv_text(out, "terminal_reason", rv_reason_text(reason));
    rv_jw_kv_int(out, "iteration", f->iteration);
    rv_jw_kv_int(out, "llm_call_count", f->llm_call_count);
    rv_jw_kv_int(out, "agent_hop_count", f->agent_hop_count);
    rv_jw_obj_end(out);
    rv_envelope_free(env);
    return 0;
}

static int result(json_object *in, rv_jw *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_FN_MAX_REPLY);
    rv_envelope *env = NULL;

    int rc = rv_fn_envelope(in, NULL, &env, err);
    if (rc == 0) {
        rv_envelope_write_result(env, NULL, &text);
        rc = rv_buf_check(&text, "result", err);
    }
    if (rc == 0)
        rv_jw_raw(out, rv_buf_str(&text));
    rv_envelope_free(env);
    rv_buf_fini(&text);
    return rc;
}

/* A state that cannot be loaded is a result here, not a failure. */
static int validate(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    rv_err *fault = NULL;
    const char *id = NULL;
    int rc = rv_fn_envelope(in, NULL, &env, &fault);

    if (rc == RV_E_NOMEM) {
        *err = fault;
        return rc;
    }
    RV_IGNORE(!rv_json_get_text(in, "envelope_id", &id), "a state may have none");
    rv_jw_obj(out);
    rv_jw_kv_bool(out, "valid", rc == 0);
    rv_jw_key(out, "errors");
    rv_jw_arr(out);
    if (fault)
        rv_err_write_json(fault, out);
    rv_jw_arr_end(out);
    rv_jw_kv_text(out, "envelope_id", id);
    rv_jw_obj_end(out);
    rv_err_free(fault);
    rv_envelope_free(env);
    return 0;
}

static int final_response(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_response_place place = {rv_fn_str(in, "output_key").ptr, rv_fn_str(in, "field").ptr};
    rv_envelope *env = NULL;
    rv_str text;

    int rc = rv_fn_envelope(rv_json_get_obj(in, "state"), in, &env, err);
    if (rc < 0)
        return rc;
    if (rv_envelope_final_response(env, &place, &text))
        rv_jw_str(out, text);
    else
        rv_jw_null(out);
    rv_envelope_free(env);
    return 0;
}

static int interrupt_raise(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_interrupt_spec spec = {.id = rv_fn_str(in, "id"),
                                     .question = rv_fn_str(in, "question"),
                                     .message = rv_fn_str(in, "message"),
                                     .data = rv_json_get_obj(in, "data"),
                                     .ttl_us = -1,
                                     .replace = rv_fn_flag(in, "replace")};
    struct rv_fn_source source;
    rv_envelope *env = NULL;
    int64_t ttl_ms = 0;

    int rc = rv_interrupt_kind_of(rv_fn_str(in, "kind"), &spec.kind, err);
    if (rc == 0)
        rc = rv_fn_source(in, &source, err);
    if (rc == 0 && rv_json_get_int(in, "ttl_ms", &ttl_ms)) {
        if (ttl_ms < 0 || ttl_ms > INT64_MAX / 2000)
            rc = RV_FAIL(err, RV_E_INVALID, "ttl_ms must be from 0 to %lld", (long long)(INT64_MAX / 2000));
        spec.ttl_us = ttl_ms * 1000;
    }
    if (rc == 0)
        rc = rv_fn_envelope(rv_json_get_obj(in, "state"), in, &env, err);
    if (rc == 0)
        rc = rv_envelope_raise(env, &spec, source.now_us, err);
    if (rc == 0)
        rv_fn_write_state(env, out);
    rv_envelope_free(env);
    return rc;
}

static int interrupt_resolve(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_fn_source source;
    struct rv_response response;
    rv_envelope *env = NULL;

    int rc = rv_fn_response(rv_json_get_obj(in, "response"), &response, err);
    if (rc == 0)
        rc = rv_fn_source(in, &source, err);
    if (rc == 0)
        rc = rv_fn_envelope(rv_json_get_obj(in, "state"), in, &env, err);
    if (rc == 0)
        rc = rv_envelope_check_response(env, &response, source.now_us, err);
    if (rc == 0)
        rc = rv_envelope_resolve(env, &response, source.now_us, err);
    if (rc == 0)
        rv_fn_write_state(env, out);
    rv_envelope_free(env);
    return rc;
}

static const struct rv_fn items[] = {
    {"create",
     "{raw_input?: string, user_id?: string, session_id?: string, request_id?: string, metadata?: object, "
     "stage_order?: words, now?: string, seed?: int}",
     "state", "a fresh envelope; now and seed make it repeatable", create},
    {"can_continue", "object",
     "{can_continue: bool, terminal_reason: string, iteration, llm_call_count, agent_hop_count}",
     "whether a run may take another step: terminated, interrupt, iterations, model calls, hops", can_continue},
    {"result", "object", "result", "the result dict of a state dict", result},
    {"validate", "object", "{valid: bool, errors: list, envelope_id: string}", "whether a state dict can be loaded",
     validate},
    {"final_response", "{state: object, output_key?: word, field?: word}", "string", "what the run answers, or null",
     final_response},
    {"interrupt_raise",
     "{state: object, kind: string, id: word, question?: string, message?: string, data?: object, ttl_ms?: int, "
     "replace?: bool, now?: string}",
     "state", "ask a person", interrupt_raise},
    {"interrupt_resolve", "{state: object, response: object, now?: string}", "state",
     "answer with {text?, approved?, decision?, data?}, if the answer fits and is in time", interrupt_resolve},
};
const struct rv_fn_group rv_fn_group_envelopes = {items, RV_COUNT(items)};
