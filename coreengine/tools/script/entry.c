/* From what was read to what is handed out: bodies are written once, at load. */
#include <stddef.h>
#include <string.h>

#include "coreengine/tools/script/script_internal.h"

static void finding(struct script_reader *r, const struct rv_src *src, const char *hint, const char *text)
{
    rv_keys_finding(&r->keys, RV_SEVERITY_ERROR, src, hint, "%s", text);
}

bool rv_script_keep(struct script_reader *r, rv_buf *b, rv_str *out)
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

static void make_error(struct script_reader *r, enum rv_script_kind kind, const struct script_raw_error *e,
                       struct script_entry *out)
{
    out->failed = true;
    if (kind == RV_SCRIPT_MODEL) {
        rv_script_model_fail(r, e, out);
        return;
    }
    out->error_type = e->type && e->type[0] ? e->type : "ExecutionError";
    out->error = e->message && e->message[0] ? e->message : "it failed";
    out->retryable = e->recoverable;
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
    rv_script_keep(r, &body, &out->body);
}

static void make_tool(struct script_reader *r, const struct script_raw_entry *raw, struct script_entry *out)
{
    rv_buf body = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    if (raw->has_result && raw->has_error)
        finding(r, &raw->src, NULL, "has both a result and an error");
    if (!raw->has_result && !raw->has_error)
        finding(r, &raw->src, "result: {...}, or error: \"why\"", "has neither a result nor an error");
    rv_json_write(raw->result, &body);
    rv_script_keep(r, &body, &out->body);
}

static const char *matcher(const char *text)
{
    return text && text[0] ? text : NULL;
}

void rv_script_raw_fini(struct script_raw_entry *raw)
{
    json_object_put(raw->json);
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
                                 .answer = RV_LLM_ANSWER_NONE,
                                 .src = raw->src};
    r->at = raw->src;
    switch (kind) {
    case RV_SCRIPT_MODEL:
        rv_script_model_make(r, raw, out);
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
