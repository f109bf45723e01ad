/* A call that is over as an entry of a script, so that playing it gives the same answer again, piece by piece. */
#include "coreengine/app/record/record_internal.h"
#include "envelope/envelope.h"

#include <string.h>

#define MAX_JSON_DEPTH 50 /* an entry stands in four levels of a file with RV_YAML_MAX_DEPTH: 50 leave room */
#define REPLACEMENT    "\xef\xbf\xbd"

/* The bytes at the start of a text that a script may have: no invalid UTF-8, no NUL. */
static size_t playable(rv_str text)
{
    const char *nul = text.len ? memchr(text.ptr, 0, text.len) : NULL;
    size_t n = nul ? (size_t)(nul - text.ptr) : text.len, bad = 0;

    return rv_utf8_valid((rv_str){text.ptr, n}, &bad) ? n : bad;
}

/* Each byte is looked at once: a reply may have millions that are not text. */
static void add_playable(rv_str text, rv_buf *out)
{
    while (text.len > 0) {
        const char *nul = memchr(text.ptr, 0, text.len);
        rv_str part = {text.ptr, nul ? (size_t)(nul - text.ptr) : text.len};
        size_t bad = 0;
        text = (rv_str){text.ptr + part.len, text.len - part.len};
        while (!rv_utf8_valid(part, &bad)) {
            rv_buf_add(out, part.ptr, bad);
            rv_buf_puts(out, REPLACEMENT);
            part = (rv_str){part.ptr + bad + 1, part.len - bad - 1};
        }
        rv_buf_add_str(out, part);
        if (nul) {
            rv_buf_puts(out, REPLACEMENT);
            text = (rv_str){text.ptr + 1, text.len - 1};
        }
    }
}

static int put_text(json_object *map, const char *key, rv_str text, rv_err **err)
{
    rv_buf clean = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);

    add_playable(text, &clean);
    int rc = rv_buf_check(&clean, "recorded text", err);
    if (rc == 0)
        rc = rv_json_set_str(map, key, rv_buf_str(&clean), err);
    rv_buf_fini(&clean);
    return rc;
}

/* --- values that may stand in a script as they are --- */

/* What a script gives back that has this JSON for a value; nothing if a script cannot have it. */
static int as_played(rv_str json, rv_buf *out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    json_object *value = NULL;
    rv_yaml *doc = NULL;
    int rc = findings ? 0 : RV_E_NOMEM;

    rv_script_add_json(json, &text);
    if (rc == 0)
        rc = text.rc;
    if (rc == 0)
        rc =
            rv_yaml_parse(rv_buf_str(&text), "reply", findings, &doc,
                          RV_CODE_ONLY("what cannot be played back is recorded as text; want of memory is told below"));
    if (rc == 0 && doc && rv_yaml_root(doc) && rv_findings_n_errors(findings) == 0)
        rc = rv_node_build_json(
            rv_yaml_root(doc), &value,
            RV_CODE_ONLY("what cannot be played back is recorded as text; want of memory is told below"));
    if (rc == 0 && value)
        rv_json_write(value, out);
    json_object_put(value);
    rv_yaml_free(doc);
    rv_buf_fini(&text);
    rv_findings_free(findings);
    return rc == RV_E_NOMEM || out->rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "record a value") : 0;
}

/* An object whose text a script would write in the same way. *out is NULL when it is not. */
static int same_object(rv_str text, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_YAML_MAX_BYTES, .max_depth = MAX_JSON_DEPTH};
    rv_buf played = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    json_object *json = NULL;

    *out = NULL;
    int rc = text.len && text.ptr[0] == '{' ? rv_json_try_parse(text, &opts, &json, err) : 0;
    if (rc == 0 && json)
        rc = as_played(text, &played, err);
    if (rc == 0 && json && rv_str_eq(rv_buf_str(&played), text))
        *out = json;
    else
        json_object_put(json);
    rv_buf_fini(&played);
    return rc;
}

/* As a map if that is the same, else as text. */
static int put_json(json_object *map, const char *key, const char *text_key, rv_str text, rv_err **err)
{
    json_object *json = NULL;
    int rc = same_object(text, &json, err);

    if (rc == 0 && json)
        return rv_json_set_take(map, key, json, err);
    return rc < 0 ? rc : put_text(map, text_key, text, err);
}

/* --- pieces, and the waits before them --- */

static int64_t ms_until(int64_t from_us, int64_t to_us)
{
    return to_us > from_us ? (to_us - from_us) / RV_US_PER_MS : 0;
}

/* The wait that is left until `due_ms` after the start, if *passed_ms are over. */
static int64_t wait_of(int64_t due_ms, int64_t *passed_ms)
{
    int64_t wait = due_ms > *passed_ms ? due_ms - *passed_ms : 0;

    if (wait > RV_SCRIPT_MAX_DELAY_MS)
        wait = RV_SCRIPT_MAX_DELAY_MS;
    *passed_ms += wait;
    return wait;
}

static int put_wait(json_object *map, int64_t ms, rv_err **err)
{
    return ms > 0 ? rv_json_set_int(map, "delay_ms", ms, err) : 0;
}

static int push_piece(json_object *list, const char *key, rv_str text, int64_t wait_ms, rv_err **err)
{
    if (wait_ms == 0 && strcmp(key, "text") == 0 && playable(text) == text.len)
        return rv_json_push_take(list, json_object_new_string_len(text.ptr, (int)text.len), err);
    json_object *item = json_object_new_object();
    int rc = rv_json_push_take(list, item, err);
    if (rc == 0 && text.len)
        rc = put_text(item, key, text, err);
    return rc == 0 ? put_wait(item, wait_ms, err) : rc;
}

static int put_pieces(const struct rv_record_call *c, int64_t end_us, rv_err **err)
{
    json_object *list = json_object_new_array();
    int64_t passed_ms = 0;
    size_t at = 0;

    int rc = rv_json_set_take(c->entry, "chunks", list, err);
    for (size_t i = 0; rc == 0 && i < c->n_pieces; i++) {
        const struct rv_record_piece *p = &c->pieces[i];
        const rv_str text = {c->text.ptr + at, p->len};
        rc = push_piece(list, p->is_thinking ? "thinking" : "text", text,
                        wait_of(ms_until(c->start_us, p->at_us), &passed_ms), err);
        at += p->len;
    }
    int64_t rest_ms = wait_of(ms_until(c->start_us, end_us), &passed_ms);
    if (rc == 0 && rest_ms > 0)
        rc = push_piece(list, "text", (rv_str){NULL, 0}, rest_ms, err);
    return rc;
}

/* Do the pieces come to that text? */
static bool pieces_make(const struct rv_record_call *c, rv_str reply)
{
    size_t at = 0, made = 0;

    if (c->n_pieces == 0 || c->is_whole)
        return false;
    for (size_t i = 0; i < c->n_pieces; i++) {
        const struct rv_record_piece *p = &c->pieces[i];
        if (!p->is_thinking) {
            if (p->len > reply.len - made || memcmp(c->text.ptr + at, reply.ptr + made, p->len) != 0)
                return false;
            made += p->len;
        }
        at += p->len;
    }
    return made == reply.len;
}

/* --- replies of models --- */

static int put_calls(json_object *entry, rv_str calls, rv_err **err)
{
    json_object *from = NULL, *list = NULL, *ids = NULL;

    int rc = rv_json_parse(calls, NULL, &from, err);
    if (rc < 0)
        return rc;
    if (json_object_is_type(from, json_type_array) && json_object_array_length(from) > 0) {
        list = json_object_new_array();
        rc = rv_json_set_take(entry, "tool_calls", list, err);
        ids = rc == 0 ? json_object_new_object() : NULL;
        if (rc == 0 && !ids)
            rc = RV_FAIL(err, RV_E_NOMEM, "record tool calls");
    }
    for (size_t i = 0; rc == 0 && list && i < json_object_array_length(from); i++) {
        json_object *call = json_object_array_get_idx(from, i), *out = json_object_new_object(), *part = NULL;
        const char *id = NULL;
        rc = rv_json_push_take(list, out, err);
        if (rc == 0 && rv_json_get_text(call, "id", &id) && id[0] && !json_object_object_get_ex(ids, id, NULL)) {
            rc = rv_json_set_bool(ids, id, true, err); /* a script refuses the same id twice */
            if (rc == 0)
                rc = rv_json_set_text(out, "id", id, err);
        }
        if (rc == 0)
            rc = put_text(out, "name", rv_json_str(json_object_object_get(call, "name")), err);
        if (rc == 0 && json_object_object_get_ex(call, "arguments", &part))
            rc = put_json(out, "arguments", "arguments", rv_json_str(part), err);
    }
    json_object_put(ids);
    json_object_put(from);
    return rc;
}

static int put_usage(json_object *entry, const struct rv_usage *u, rv_err **err)
{
    const struct {
        const char *key;
        int64_t n;
    } counts[] = {
        {"input_tokens", u->input_tokens},         {"output_tokens", u->output_tokens},
        {"cached_tokens", u->cached_tokens},       {"cache_write_tokens", u->cache_write_tokens},
        {"reasoning_tokens", u->reasoning_tokens},
    };
    json_object *usage = json_object_new_object();
    int rc = rv_json_set_take(entry, "usage", usage, err);

    for (size_t i = 0; rc == 0 && i < RV_COUNT(counts); i++)
        if (counts[i].n > 0)
            rc = rv_json_set_int(usage, counts[i].key, counts[i].n, err);
    return rc;
}

/* What a script takes for granted is left out. */
static int put_finish(const struct rv_event *ev, json_object *entry, rv_err **err)
{
    int granted = ev->failed ? RV_UNSET : ev->llm.tool_calls.len ? RV_FINISH_TOOL_CALLS : RV_FINISH_STOP;

    if (ev->llm.finish == granted)
        return 0;
    if (ev->llm.finish == RV_UNSET)
        return rv_json_set_null(entry, "finish_reason", err);
    return rv_json_set_text(entry, "finish_reason", rv_finish_reason_text((enum rv_finish_reason)ev->llm.finish), err);
}

static enum rv_llm_error kind_of(const struct rv_event *ev)
{
    if (ev->llm.error_kind != RV_UNSET)
        return (enum rv_llm_error)ev->llm.error_kind;
    if (rv_error_is(ev->error_type, rv_error_timeout))
        return RV_LLM_ERROR_TIMEOUT;
    if (rv_error_is(ev->error_type, rv_error_cancelled))
        return RV_LLM_ERROR_CANCELLED;
    return ev->retryable ? RV_LLM_ERROR_CONNECTION : RV_LLM_ERROR_BAD_REQUEST;
}

static int put_model_error(const struct rv_event *ev, json_object *entry, rv_err **err)
{
    json_object *error = json_object_new_object();
    enum rv_llm_error kind = kind_of(ev);
    int64_t retry_ms = ev->llm.retry_after_us / RV_US_PER_MS + (ev->llm.retry_after_us % 1000 > 0);

    int rc = rv_json_set_take(entry, "error", error, err);
    if (rc == 0)
        rc = rv_json_set_text(error, "kind", rv_llm_error_text(kind), err);
    if (rc == 0)
        rc = put_text(error, "message", ev->error, err);
    if (rc == 0 && ev->retryable != rv_llm_error_is_retryable(kind))
        rc = rv_json_set_bool(error, "retryable", ev->retryable, err);
    if (rc == 0 && retry_ms > 0)
        rc = rv_json_set_int(error, "retry_after_ms",
                             retry_ms < RV_SCRIPT_MAX_DELAY_MS ? retry_ms : RV_SCRIPT_MAX_DELAY_MS, err);
    if (rc == 0 && ev->llm.may_be_billed)
        rc = rv_json_set_bool(error, "billed", true, err);
    return rc;
}

static int put_text_of_reply(const struct rv_record_call *c, const struct rv_event *ev, rv_err **err)
{
    bool needs_text = !ev->failed && !ev->llm.tool_calls.len;
    int64_t passed_ms = 0;
    int rc = 0;

    if (pieces_make(c, ev->reply))
        return put_pieces(c, ev->now_us, err);
    if (ev->failed && ev->reply.len)
        rc = put_text(c->entry, "text", ev->reply, err);
    else if (ev->reply.len || needs_text)
        rc = put_json(c->entry, "json", "text", ev->reply, err);
    return rc < 0 ? rc : put_wait(c->entry, wait_of(ms_until(c->start_us, ev->now_us), &passed_ms), err);
}

static int model_answer(const struct rv_record_call *c, const struct rv_event *ev, rv_err **err)
{
    const struct rv_llm_answer *a = &ev->llm;

    int rc = put_text_of_reply(c, ev, err);
    if (rc == 0 && a->tool_calls.len && !ev->failed)
        rc = put_calls(c->entry, a->tool_calls, err);
    if (rc == 0 && a->has_usage)
        rc = put_usage(c->entry, &a->usage, err);
    if (rc == 0)
        rc = put_finish(ev, c->entry, err);
    if (rc == 0 && a->opaque.len)
        rc = put_json(c->entry, "opaque", "opaque", a->opaque, err);
    if (rc == 0 && a->role)
        rc = rv_json_set_text(c->entry, "answered_by", a->role, err);
    if (rc == 0 && a->attempts > 1)
        rc = rv_json_set_int(c->entry, "attempts", a->attempts, err);
    return rc == 0 && ev->failed ? put_model_error(ev, c->entry, err) : rc;
}

/* --- results of tools --- */

static int put_tool_error(json_object *entry, const char *type, rv_str message, bool recoverable, rv_err **err)
{
    json_object *error = json_object_new_object();

    int rc = rv_json_set_take(entry, "error", error, err);
    if (rc == 0)
        rc = rv_json_set_text(error, "type", type ? type : rv_error_execution, err);
    if (rc == 0)
        rc = put_text(error, "message", message.len ? message : RV_STR_LIT("it failed"), err);
    return rc == 0 && recoverable ? rv_json_set_bool(error, "recoverable", true, err) : rc;
}

static int tool_answer(const struct rv_record_call *c, const struct rv_event *ev, rv_err **err)
{
    json_object *result = NULL;
    int64_t passed_ms = 0;
    int rc = 0;

    if (ev->failed) {
        rc = put_tool_error(c->entry, ev->error_type, ev->error, ev->retryable, err);
    } else {
        rc = rv_json_parse(ev->reply, NULL, &result, err);
        if (rc == 0)
            rc = rv_json_set_take(c->entry, "result", result, err);
    }
    return rc < 0 ? rc : put_wait(c->entry, wait_of(ms_until(c->start_us, ev->now_us), &passed_ms), err);
}

int app_record_answer(const struct rv_record_call *c, const struct rv_event *ev, rv_err **err)
{
    return c->is_model ? model_answer(c, ev, err) : tool_answer(c, ev, err);
}

int app_record_no_answer(const struct rv_record_call *c, int64_t last_us, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(c->text.max);
    size_t at = 0;

    for (size_t i = 0; i < c->n_pieces; at += c->pieces[i++].len)
        if (!c->pieces[i].is_thinking)
            rv_buf_add(&text, c->text.ptr + at, c->pieces[i].len);
    int rc = rv_buf_check(&text, "recorded text", err);
    const struct rv_event ev = {.now_us = last_us + 1000, /* the caller gave up before that */
                                .failed = true,
                                .reply = rv_buf_str(&text),
                                .error = RV_STR_LIT("the answer came after the deadline of the call"),
                                .error_type = rv_error_cancelled,
                                .llm = RV_LLM_ANSWER_NONE};
    if (rc == 0)
        rc = app_record_answer(c, &ev, err);
    rv_buf_fini(&text);
    return rc;
}
