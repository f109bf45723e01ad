/* From what was read to what is handed out: bodies are written once, at load. */
#include <stddef.h>
#include <string.h>

#include "coreengine/tools/script/script_internal.h"
#include "envelope/envelope.h"

static void finding(struct script_reader *r, const struct rv_src *src, const char *hint, const char *text)
{
    rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, src, hint, "%s", text);
}

bool script_keep(struct script_reader *r, rv_buf *b, rv_str *out)
{
    char *copy = b->rc < 0 ? NULL : rv_arena_dup(r->s->arena, rv_buf_str(b));

    if (copy)
        *out = (rv_str){copy, b->len};
    else if (b->rc == RV_E_LIMIT)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &r->at, NULL, "is too large (the limit is %zu bytes)", b->max);
    else
        r->keys.rc = RV_E_NOMEM;
    rv_buf_fini(b);
    return copy != NULL;
}

/* --- failures --- */

/* What failures say that have no message of their own. */
static const char *const error_texts[] = {
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
RV_EACH_HAS_ROW(error_texts, RV_N_LLM_ERROR);

static void fail_model(struct script_reader *r, const struct script_raw_error *e, struct script_entry *out)
{
    bool has_message = e->message && e->message[0];
    enum rv_llm_error kind = e->kind >= 0 ? (enum rv_llm_error)e->kind : RV_LLM_ERROR_OVERLOADED;
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES + 256);
    rv_str kept = {"", 0};

    out->error_type = rv_llm_error_type((int)kind);
    out->retryable = e->has_retryable ? e->retryable : rv_llm_error_is_retryable(kind);
    out->answer.error_kind = (int)kind;
    out->answer.retry_after_us = e->retry_after_ms * RV_US_PER_MS;
    out->answer.may_be_billed = e->billed;
    rv_buf_puts(&text, has_message ? e->message : error_texts[kind]);
    if (e->status)
        rv_buf_printf(&text, " (status %lld)", (long long)e->status);
    if (e->retry_after_ms && !has_message) /* a recorded message has it in the provider's words, or not at all */
        rv_buf_printf(&text, " (retry after %lld ms)", (long long)e->retry_after_ms);
    script_keep(r, &text, &kept);
    out->error = kept.ptr;
}

static void make_error(struct script_reader *r, enum rv_script_kind kind, const struct script_raw_error *e,
                       struct script_entry *out)
{
    out->failed = true;
    if (kind == RV_SCRIPT_MODEL) {
        fail_model(r, e, out);
        return;
    }
    out->error_type = e->type && e->type[0] ? e->type : rv_error_execution;
    out->error = e->message && e->message[0] ? e->message : "it failed";
    out->retryable = e->recoverable;
}

/* --- replies of models: the text, its pieces, and what else it came to --- */

static void make_chunks(struct script_reader *r, const struct script_raw_entry *raw, struct script_entry *out,
                        rv_buf *body)
{
    if (raw->n_chunks == 0)
        return;
    out->deltas = script_array(r, raw->n_chunks, sizeof *out->deltas);
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
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &raw->src, hint, "%s", fault);
    if (raw->has_error && raw->tool_calls.len)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &raw->src, "leave one of them out",
                            "has both an error and tool calls");
}

static void make_model(struct script_reader *r, struct script_raw_entry *raw, struct script_entry *out)
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
    script_keep(r, &body, &out->body);
}

/* --- stages, tools and hooks --- */

static void write_raise(const struct script_raw_entry *raw, rv_jw *w)
{
    rv_jw_key(w, "raise");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", rv_interrupt_kind_text((enum rv_interrupt_kind)raw->raise_kind));
    if (raw->raise_question && raw->raise_question[0])
        rv_jw_kv_text(w, "question", raw->raise_question);
    if (raw->raise_message && raw->raise_message[0])
        rv_jw_kv_text(w, "message", raw->raise_message);
    if (raw->raise_data)
        rv_jw_kv_value(w, "data", raw->raise_data);
    rv_jw_obj_end(w);
}

static void make_stage(struct script_reader *r, struct script_raw_entry *raw, struct script_entry *out)
{
    bool has_answer = raw->output || raw->outcome != RV_UNSET || raw->has_raise;
    rv_buf body = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    rv_jw w = rv_jw_on(&body);

    if (has_answer && raw->has_error)
        finding(r, &raw->src, NULL, "has both an error and an output");
    if (!has_answer && !raw->has_error)
        finding(r, &raw->src, "one of output, outcome, raise and error", "says nothing");
    if (raw->outcome != RV_UNSET && !raw->output)
        raw->output = json_object_new_object();
    if (raw->outcome != RV_UNSET &&
        (!raw->output ||
         rv_json_set_text(raw->output, "outcome", rv_outcome_text((enum rv_outcome)raw->outcome),
                          RV_CODE_ONLY("setting a member fails without memory only, which rc says")) < 0))
        r->keys.rc = RV_E_NOMEM;
    rv_jw_obj(&w);
    if (raw->output)
        rv_jw_kv_value(&w, "output", raw->output);
    if (raw->has_raise && raw->raise_kind != RV_UNSET)
        write_raise(raw, &w);
    rv_jw_obj_end(&w);
    script_keep(r, &body, &out->body);
}

/* key: what it calls its answer. */
static void make_tool(struct script_reader *r, const struct script_raw_entry *raw, struct script_entry *out,
                      const char *key)
{
    bool is_hook = strcmp(key, "reply") == 0;
    rv_buf body = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    if (raw->has_result && raw->has_error)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &raw->src, NULL, "has both a %s and an error", key);
    if (!raw->has_result && !raw->has_error)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &raw->src,
                            is_hook ? "reply: {...}, or error: \"why\"" : "result: {...}, or error: \"why\"",
                            "has neither a %s nor an error", key);
    rv_json_write(raw->result, &body);
    script_keep(r, &body, &out->body);
}

static const char *matcher(const char *text)
{
    return text && text[0] ? text : NULL;
}

void script_raw_fini(struct script_raw_entry *raw)
{
    json_object_put(raw->json);
    json_object_put(raw->output);
    json_object_put(raw->raise_data);
    json_object_put(raw->result);
}

void script_entry_make(struct script_reader *r, enum rv_script_kind kind, struct script_raw_entry *raw,
                       struct script_entry *out)
{
    *out = (struct script_entry){.stage = matcher(raw->stage),
                                 .tool = matcher(raw->tool),
                                 .contains = matcher(raw->contains),
                                 .branch = matcher(raw->branch),
                                 .request = matcher(raw->request),
                                 .visit = raw->visit,
                                 .index = raw->has_index ? raw->index : -1,
                                 .delay_ms = raw->delay_ms,
                                 .answer = RV_LLM_ANSWER_NONE,
                                 .src = raw->src};
    r->at = raw->src;
    r->s->knows_requests |= out->request != NULL;
    r->s->reads_stages |= kind == RV_SCRIPT_STAGE && out->contains;
    switch (kind) {
    case RV_SCRIPT_MODEL:
        make_model(r, raw, out);
        break;
    case RV_SCRIPT_STAGE:
        make_stage(r, raw, out);
        break;
    case RV_SCRIPT_TOOL:
        make_tool(r, raw, out, "result");
        break;
    case RV_SCRIPT_HOOK:
        make_tool(r, raw, out, "reply");
        break;
    case RV_N_SCRIPT_KINDS:
        break;
    }
    if (raw->has_error)
        make_error(r, kind, &raw->error, out);
    script_raw_fini(raw);
}
