/* From what was read to what is handed out: bodies are written once, at load. */
#include <stddef.h>
#include <string.h>

#include "coreengine/script/script_internal.h"

/* In the order of the `error kind` words of tables.c. */
static const struct {
    const char *type, *text;
    bool retryable;
} kinds[] = {
    {"LLMError", "rate limited", true},
    {"LLMError", "the model is overloaded", true},
    {"TimeoutError", "the model did not answer in time", true},
    {"LLMError", "the connection broke", true},
    {"LLMError", "the answer could not be understood", true},
    {"LLMError", "the request was refused as invalid", false},
    {"LLMError", "the key was refused", false},
    {"LLMError", "the prompt is too long for the model", false},
    {"LLMError", "the provider's content filter refused it", false},
};

static void finding(struct script_reader *r, const struct rv_src *src, const char *hint, const char *text)
{
    rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, src, hint, "%s", text);
}

/* Bytes of b into the arena; false when memory is short. */
static bool keep(struct script_reader *r, rv_buf *b, rv_str *out)
{
    char *copy = b->rc < 0 ? NULL : rv_arena_dup(r->s->arena, rv_buf_str(b));

    if (copy)
        *out = (rv_str){copy, b->len};
    else if (b->rc == RV_E_LIMIT)
        rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, &r->at, NULL, "is too large (the limit is %zu bytes)", b->max);
    else
        r->keys.rc = RV_E_NOMEM;
    rv_buf_fini(b);
    return copy != NULL;
}

static const char *keep_text(struct script_reader *r, rv_buf *b)
{
    rv_str out = {"", 0};
    return keep(r, b, &out) ? out.ptr : "";
}

static void make_error(struct script_reader *r, enum rv_script_kind kind, const struct script_raw_error *e,
                       struct script_entry *out)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES + 256);
    bool has_message = e->message && e->message[0];

    out->failed = true;
    out->error_type = e->type && e->type[0] ? e->type : "ExecutionError";
    out->retryable = e->recoverable;
    if (kind != RV_SCRIPT_MODEL) {
        out->error = has_message ? e->message : "it failed";
        return;
    }
    int k = e->kind >= 0 && e->kind < (int)RV_COUNT(kinds) ? e->kind : 0;
    out->error_type = kinds[k].type;
    out->retryable = kinds[k].retryable;
    rv_buf_puts(&text, has_message ? e->message : kinds[k].text);
    if (e->status)
        rv_buf_printf(&text, " (status %lld)", (long long)e->status);
    if (e->retry_after_ms)
        rv_buf_printf(&text, " (retry after %lld ms)", (long long)e->retry_after_ms);
    out->error = keep_text(r, &text);
}

static void make_chunks(struct script_reader *r, const struct rv_str_list *list, struct script_entry *out, rv_buf *body)
{
    out->chunks = rv_script_array(r, list->n, sizeof *out->chunks);
    if (!out->chunks)
        return;
    out->n_chunks = list->n;
    for (size_t i = 0; i < list->n; i++) {
        out->chunks[i] = rv_str_of(list->items[i]);
        rv_buf_add_str(body, out->chunks[i]);
    }
}

static void make_model(struct script_reader *r, const struct script_raw_entry *raw, struct script_entry *out)
{
    int n = raw->has_json + raw->has_text + raw->chunks.is_set;
    rv_buf body = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    if (n + raw->has_error > 1)
        finding(r, &raw->src, "one of json, text, chunks and error", "says its reply in more than one way");
    else if (n + raw->has_error == 0 && !raw->tool_calls)
        finding(r, &raw->src, "one of json, text, chunks and error", "has no reply");
    out->finish_reason = raw->finish_reason;
    out->input_tokens = raw->input_tokens;
    out->output_tokens = raw->output_tokens;
    out->has_tool_calls = raw->tool_calls != NULL;
    if (raw->has_json)
        rv_json_write(raw->json, &body);
    else if (raw->has_text)
        rv_buf_puts(&body, raw->text);
    else
        make_chunks(r, &raw->chunks, out, &body);
    if (n > 0) {
        keep(r, &body, &out->body);
    } else if (raw->tool_calls) { /* no text: the names, for whoever has to say that nobody asked for them */
        for (size_t i = 0; i < json_object_array_length(raw->tool_calls); i++) {
            const char *name = "";
            RV_IGNORE(rv_json_get_text(json_object_array_get_idx(raw->tool_calls, i), "name", &name), "was checked");
            rv_buf_printf(&body, "%s%s", i ? ", " : "", name);
        }
        out->failed = true;
        out->error_type = "LLMError";
        rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);
        rv_buf_printf(&text, "the model asked for tools (%.200s), model stages do not call tools", rv_buf_cstr(&body));
        rv_buf_fini(&body);
        out->error = keep_text(r, &text);
    }
    rv_buf_fini(&body);
}

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
    if (raw->outcome != RV_UNSET && !raw->output && !(raw->output = json_object_new_object()))
        r->keys.rc = RV_E_NOMEM;
    else if (raw->outcome != RV_UNSET &&
             rv_json_set_text(raw->output, "outcome", rv_outcome_text((enum rv_outcome)raw->outcome), NULL) < 0)
        r->keys.rc = RV_E_NOMEM;
    rv_jw_obj(&w);
    if (raw->output)
        rv_jw_kv_value(&w, "output", raw->output);
    if (raw->has_raise && raw->raise_kind != RV_UNSET)
        write_raise(raw, &w);
    rv_jw_obj_end(&w);
    keep(r, &body, &out->body);
}

static void make_tool(struct script_reader *r, const struct script_raw_entry *raw, struct script_entry *out)
{
    rv_buf body = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    if (raw->has_result && raw->has_error)
        finding(r, &raw->src, NULL, "has both a result and an error");
    if (!raw->has_result && !raw->has_error)
        finding(r, &raw->src, "result: {...}, or error: \"why\"", "has neither a result nor an error");
    rv_json_write(raw->result, &body);
    keep(r, &body, &out->body);
}

static const char *matcher(const char *text)
{
    return text && text[0] ? text : NULL;
}

void rv_script_raw_fini(struct script_raw_entry *raw)
{
    json_object_put(raw->json);
    json_object_put(raw->tool_calls);
    json_object_put(raw->output);
    json_object_put(raw->raise_data);
    json_object_put(raw->result);
}

void rv_script_entry_make(struct script_reader *r, enum rv_script_kind kind, struct script_raw_entry *raw,
                          struct script_entry *out)
{
    *out = (struct script_entry){.stage = matcher(raw->stage),
                                 .tool = matcher(raw->tool),
                                 .contains = matcher(raw->contains),
                                 .visit = raw->visit,
                                 .delay_ms = raw->delay_ms,
                                 .finish_reason = "stop",
                                 .src = raw->src};
    r->at = raw->src;
    switch (kind) {
    case RV_SCRIPT_MODEL:
        make_model(r, raw, out);
        break;
    case RV_SCRIPT_STAGE:
        make_stage(r, raw, out);
        break;
    case RV_SCRIPT_TOOL:
        make_tool(r, raw, out);
        break;
    }
    if (raw->has_error)
        make_error(r, kind, &raw->error, out);
    rv_script_raw_fini(raw);
}
