/* The reply of a model made ready: its text, its pieces, and what else it came to. */
#include <string.h>

#include "coreengine/tools/script/script_internal.h"

/* What failures say that have no message of their own. */
static const char *const error_texts[RV_N_LLM_ERROR] = {
    [RV_LLM_ERROR_RATE_LIMITED] = "rate limited",
    [RV_LLM_ERROR_OVERLOADED] = "the model is overloaded",
    [RV_LLM_ERROR_TIMEOUT] = "the model did not answer in time",
    [RV_LLM_ERROR_CONNECTION] = "the connection broke",
    [RV_LLM_ERROR_PROTOCOL] = "the answer could not be understood",
    [RV_LLM_ERROR_BAD_REQUEST] = "the request was refused as invalid",
    [RV_LLM_ERROR_AUTH] = "the key was refused",
    [RV_LLM_ERROR_CONTEXT_TOO_LONG] = "the prompt is too long for the model",
    [RV_LLM_ERROR_CONTENT_FILTER] = "the provider's content filter refused it",
    [RV_LLM_ERROR_CANCELLED] = "the call was cancelled",
};

void rv_script_model_fail(struct script_reader *r, const struct script_raw_error *e, struct script_entry *out)
{
    bool has_message = e->message && e->message[0];
    enum rv_llm_error kind = e->kind >= 0 ? (enum rv_llm_error)e->kind : RV_LLM_ERROR_OVERLOADED;
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES + 256);
    rv_str kept = {"", 0};

    out->error_type = rv_llm_error_type((int)kind);
    out->retryable = e->has_retryable ? e->retryable : rv_llm_error_is_retryable(kind);
    out->answer.error_kind = (int)kind;
    out->answer.retry_after_us = e->retry_after_ms * 1000;
    out->answer.may_be_billed = e->billed;
    rv_buf_puts(&text, has_message ? e->message : error_texts[kind]);
    if (e->status)
        rv_buf_printf(&text, " (status %lld)", (long long)e->status);
    if (e->retry_after_ms && !has_message) /* a recorded message has it in the provider's words, or not at all */
        rv_buf_printf(&text, " (retry after %lld ms)", (long long)e->retry_after_ms);
    rv_script_keep(r, &text, &kept);
    out->error = kept.ptr;
}

static void make_chunks(struct script_reader *r, const struct script_raw_entry *raw, struct script_entry *out,
                        rv_buf *body)
{
    if (raw->n_chunks == 0)
        return;
    out->deltas = rv_script_array(r, raw->n_chunks, sizeof *out->deltas);
    if (!out->deltas)
        return;
    out->n_deltas = raw->n_chunks;
    for (size_t i = 0; i < raw->n_chunks; i++) {
        const struct script_raw_chunk *c = &raw->chunks[i];
        out->deltas[i] = (struct rv_script_delta){
            .delay_ms = c->has_delay ? c->delay_ms : raw->delay_ms, .is_thinking = c->has_thinking, .text = c->text};
        if (!c->has_thinking)
            rv_buf_add_str(body, c->text);
    }
}

static void check_ways(struct script_reader *r, const struct script_raw_entry *raw)
{
    static const char hint[] = "one of json, text, chunks, tool_calls and error";
    int n = raw->has_json + raw->has_text + raw->has_chunks;
    const char *fault = NULL;

    if (n > 1 || (raw->has_json && raw->has_error))
        fault = "says its reply in more than one way";
    else if (n == 0 && !raw->has_error && !raw->tool_calls.len)
        fault = "has no reply";
    if (fault)
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &raw->src, hint, "%s", fault);
    if (raw->has_error && raw->tool_calls.len)
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &raw->src, "leave one of them out",
                        "has both an error and tool calls");
}

void rv_script_model_make(struct script_reader *r, struct script_raw_entry *raw, struct script_entry *out)
{
    rv_buf body = RV_BUF_INIT(RV_LLM_MAX_REPLY);

    check_ways(r, raw);
    if (raw->has_finish)
        out->answer.finish = raw->finish;
    else if (!raw->has_error)
        out->answer.finish = raw->tool_calls.len ? RV_FINISH_TOOL_CALLS : RV_FINISH_STOP;
    out->answer.tool_calls = raw->tool_calls;
    out->answer.opaque = raw->opaque;
    out->answer.role = raw->answered_by && raw->answered_by[0] ? raw->answered_by : NULL;
    out->answer.usage = raw->usage;
    out->answer.has_usage = raw->has_usage;
    out->answer.attempts = raw->attempts;
    if (raw->has_json)
        rv_json_write(raw->json, &body);
    else if (raw->has_text)
        rv_buf_add_str(&body, raw->text);
    else
        make_chunks(r, raw, out, &body);
    rv_script_keep(r, &body, &out->body);
}
