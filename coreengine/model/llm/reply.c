/* What a model call comes to: a reply while it is put together and what its failures mean, its pieces as observable
 * events, and the outcome as members of a record, as journals, recordings and bundles keep it. */
#include "coreengine/model/llm/llm.h"
#include "envelope/envelope.h"

#define MAX_ERROR  ((size_t)64 << 10) /* what a provider says went wrong: as RV_WIRE_MAX_ERROR */
#define MAX_OPAQUE ((size_t)4 << 20)  /* what it wants back with a turn: as RV_WIRE_MAX_EVENT, in which it comes */

void rv_llm_reply_init(struct rv_llm_reply *r)
{
    *r = (struct rv_llm_reply){.text = RV_BUF_INIT(RV_LLM_MAX_REPLY),
                               .error = RV_BUF_INIT(MAX_ERROR),
                               .tool_calls = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY),
                               .opaque = RV_BUF_INIT(MAX_OPAQUE),
                               .answer = RV_LLM_ANSWER_NONE,
                               .code = RV_FAILURE_NONE};
}

void rv_llm_reply_fini(struct rv_llm_reply *r)
{
    rv_buf_fini(&r->text);
    rv_buf_fini(&r->error);
    rv_buf_fini(&r->tool_calls);
    rv_buf_fini(&r->opaque);
}

struct rv_llm_answer rv_llm_reply_answer(const struct rv_llm_reply *r)
{
    struct rv_llm_answer answer = r->answer;

    answer.tool_calls = rv_buf_str(&r->tool_calls);
    answer.opaque = rv_buf_str(&r->opaque);
    return answer;
}

void rv_llm_reply_fail_at(struct rv_llm_reply *r, enum rv_llm_error kind, const char *c_file, int c_line,
                          const char *fmt, ...)
{
    va_list args;

    r->failed = true;
    r->retryable = rv_llm_error_is_retryable(kind);
    r->answer.error_kind = (int)kind;
    r->code = rv_llm_error_code((int)kind);
    rv_buf_clear(&r->error);
    va_start(args, fmt);
    rv_buf_vprintf(&r->error, fmt, args);
    va_end(args);
    r->c_file = c_file;
    r->c_line = c_line;
}

bool rv_llm_error_is_retryable(enum rv_llm_error kind)
{
    return kind == RV_LLM_ERROR_RATE_LIMITED || kind == RV_LLM_ERROR_OVERLOADED || kind == RV_LLM_ERROR_TIMEOUT ||
           kind == RV_LLM_ERROR_CONNECTION || kind == RV_LLM_ERROR_PROTOCOL;
}

const char *rv_llm_error_type(int kind)
{
    if (kind == RV_LLM_ERROR_TIMEOUT)
        return rv_error_timeout;
    return kind == RV_LLM_ERROR_CANCELLED ? rv_error_cancelled : rv_error_llm;
}

enum rv_failure rv_llm_error_code(int kind)
{
    static const enum rv_failure codes[] = {
        [RV_LLM_ERROR_RATE_LIMITED] = RV_FAILURE_MODEL_RATE_LIMITED,
        [RV_LLM_ERROR_OVERLOADED] = RV_FAILURE_MODEL_OVERLOADED,
        [RV_LLM_ERROR_TIMEOUT] = RV_FAILURE_MODEL_TIMED_OUT,
        [RV_LLM_ERROR_CONNECTION] = RV_FAILURE_MODEL_NO_CONNECTION,
        [RV_LLM_ERROR_PROTOCOL] = RV_FAILURE_MODEL_BAD_ANSWER,
        [RV_LLM_ERROR_BAD_REQUEST] = RV_FAILURE_MODEL_BAD_REQUEST,
        [RV_LLM_ERROR_AUTH] = RV_FAILURE_MODEL_REFUSED,
        [RV_LLM_ERROR_CONTEXT_TOO_LONG] = RV_FAILURE_MODEL_CONTEXT_TOO_LONG,
        [RV_LLM_ERROR_CONTENT_FILTER] = RV_FAILURE_MODEL_CONTENT_FILTER,
        [RV_LLM_ERROR_CANCELLED] = RV_FAILURE_CANCELLED,
    };
    RV_EACH_HAS_ROW(codes, RV_N_LLM_ERROR);

    return kind >= 0 && (size_t)kind < RV_COUNT(codes) ? codes[kind] : RV_FAILURE_MODEL_FAILED;
}

/* Clocks jump and providers say anything: what is written can be read. */
static int64_t within(int64_t n)
{
    return n < 0 ? 0 : n > RV_USAGE_MAX ? RV_USAGE_MAX : n;
}

static void write_time(rv_jw *w, const char *key, int64_t us)
{
    if (us > 0)
        rv_jw_kv_int(w, key, within(us));
}

/* Engines before this one wrote times that were too long. False: it is there and no time. */
static bool read_time(json_object *json, const char *key, int64_t *out)
{
    *out = 0;
    if (!json_object_object_get_ex(json, key, NULL))
        return true;
    bool good = rv_json_get_int(json, key, out) && *out >= 0;
    *out = good ? within(*out) : 0;
    return good;
}

void rv_llm_answer_write(const struct rv_llm_answer *a, rv_jw *w)
{
    const char *finish = a->finish >= 0 ? rv_finish_reason_text((enum rv_finish_reason)a->finish) : NULL;
    const char *kind = a->error_kind >= 0 ? rv_llm_error_text((enum rv_llm_error)a->error_kind) : NULL;

    if (finish)
        rv_jw_kv_text(w, "finish_reason", finish);
    if (a->tool_calls.len)
        rv_jw_kv_str(w, "tool_calls", a->tool_calls);
    if (a->opaque.len)
        rv_jw_kv_str(w, "opaque", a->opaque);
    if (a->role)
        rv_jw_kv_text(w, "answered_by", a->role);
    if (a->has_usage) {
        rv_jw_key(w, "usage");
        rv_usage_write_json(&a->usage, w);
    }
    if (kind)
        rv_jw_kv_text(w, "error_kind", kind);
    if (a->may_be_billed)
        rv_jw_kv_bool(w, "billed", true);
    if (a->is_scripted)
        rv_jw_kv_bool(w, "scripted", true);
    write_time(w, "retry_after_us", a->retry_after_us);
    write_time(w, "latency_us", a->latency_us);
    write_time(w, "first_token_us", a->first_token_us);
    if (a->attempts > 1)
        rv_jw_kv_int(w, "attempts", within(a->attempts));
}

bool rv_llm_answer_read(json_object *json, struct rv_llm_answer *out)
{
    enum rv_finish_reason finish;
    enum rv_llm_error kind;
    json_object *usage = rv_json_get_obj(json, "usage");

    *out = RV_LLM_ANSWER_NONE;
    if (rv_finish_reason_of(rv_json_member_str(json, "finish_reason"), &finish, NULL) == 0)
        out->finish = (int)finish;
    if (rv_llm_error_of(rv_json_member_str(json, "error_kind"), &kind, NULL) == 0)
        out->error_kind = (int)kind;
    out->tool_calls = rv_json_member_str(json, "tool_calls");
    out->opaque = rv_json_member_str(json, "opaque");
    if (!rv_json_get_text(json, "answered_by", &out->role))
        out->role = NULL;
    out->has_usage = usage != NULL;
    bool good = !usage || rv_usage_read_json(usage, &out->usage);
    if (!usage) { /* journals of version 0.1 have the two counts as members of the record */
        good &= rv_usage_read_count(json, "input_tokens", &out->usage.input_tokens);
        good &= rv_usage_read_count(json, "output_tokens", &out->usage.output_tokens);
        out->has_usage = out->usage.input_tokens > 0 || out->usage.output_tokens > 0;
    }
    if (!rv_json_get_bool(json, "billed", &out->may_be_billed))
        out->may_be_billed = false;
    if (!rv_json_get_bool(json, "scripted", &out->is_scripted))
        out->is_scripted = false;
    good &= read_time(json, "retry_after_us", &out->retry_after_us);
    good &= read_time(json, "latency_us", &out->latency_us);
    good &= read_time(json, "first_token_us", &out->first_token_us);
    good &= read_time(json, "attempts", &out->attempts);
    return good;
}

static const char *const texts[RV_N_LLM_DELTAS] = {
#define X(name, text, meaning) [RV_LLM_DELTA_##name] = text,
    RV_LLM_DELTAS(X)
#undef X
};

void rv_llm_delta_write(const struct rv_llm_delta *d, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "delta");
    rv_jw_kv_text(w, "kind", texts[d->kind]);
    switch (d->kind) {
    case RV_LLM_DELTA_TEXT:
    case RV_LLM_DELTA_THINKING:
        rv_jw_kv_str(w, "text", d->text);
        break;
    case RV_LLM_DELTA_TOOL_START:
        rv_jw_kv_int(w, "index", (int64_t)d->index);
        rv_jw_kv_str(w, "id", d->id);
        rv_jw_kv_str(w, "name", d->name);
        break;
    case RV_LLM_DELTA_TOOL_ARGUMENTS:
        rv_jw_kv_int(w, "index", (int64_t)d->index);
        rv_jw_kv_str(w, "text", d->text);
        break;
    case RV_LLM_DELTA_TOOL_END:
        rv_jw_kv_int(w, "index", (int64_t)d->index);
        break;
    case RV_LLM_DELTA_USAGE:
        rv_jw_key(w, "usage");
        rv_usage_write_json(&d->usage, w);
        break;
    case RV_LLM_DELTA_FINISH:
        rv_jw_kv_text(w, "finish_reason", rv_finish_reason_text((enum rv_finish_reason)d->finish));
        break;
    case RV_N_LLM_DELTAS:
        break;
    }
}
