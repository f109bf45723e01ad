/* Events as JSON, one way and back, and effects as JSON: the recording that a replay is fed from and compared by. */
#include "coreengine/run/run.h"

#include <string.h>

static const char *const event_texts[] = {
#define X(name, text, meaning) [RV_EVENT_##name] = text,
    RV_EVENT_KINDS(X)
#undef X
};

static bool is_done(enum rv_event_kind kind)
{
    return kind == RV_EVENT_LLM_DONE || kind == RV_EVENT_TOOL_DONE || kind == RV_EVENT_HOOK_DONE;
}

void rv_response_write_json(const struct rv_response *r, rv_jw *w)
{
    rv_jw_obj(w);
    if (r->interrupt_id.ptr)
        rv_jw_kv_str(w, "interrupt_id", r->interrupt_id);
    if (r->text.ptr)
        rv_jw_kv_str(w, "text", r->text);
    if (r->has_approved)
        rv_jw_kv_bool(w, "approved", r->approved);
    if (r->decision.ptr)
        rv_jw_kv_str(w, "decision", r->decision);
    if (r->data)
        rv_jw_kv_value(w, "data", r->data);
    if (r->choice.ptr)
        rv_jw_kv_str(w, "choice", r->choice);
    if (r->arguments)
        rv_jw_kv_value(w, "arguments", r->arguments);
    if (r->expired)
        rv_jw_kv_bool(w, "expired", true);
    if (r->cancelled)
        rv_jw_kv_bool(w, "cancelled", true);
    rv_jw_obj_end(w);
}

static void write_answer(const struct rv_event *ev, rv_jw *w)
{
    struct rv_llm_answer answer = ev->llm;

    if (ev->failed)
        answer.finish = RV_UNSET;
    else
        answer.error_kind = RV_UNSET;
    rv_llm_answer_write(&answer, w);
}

rv_str rv_event_write_members(const struct rv_event *ev, rv_jw *w)
{
    const rv_str none = {NULL, 0};

    rv_jw_kv_text(w, "event", event_texts[ev->kind]);
    rv_jw_kv_int(w, "now_us", ev->now_us);
    if (ev->call_id)
        rv_jw_kv_int(w, "call_id", ev->call_id);
    if (ev->blocked)
        rv_jw_kv_value(w, "blocked", ev->blocked);
    if (ev->kind == RV_EVENT_CANCEL && ev->failed) {
        rv_jw_kv_bool(w, "failed", true);
        return ev->error;
    }
    if (!is_done(ev->kind))
        return ev->kind == RV_EVENT_CANCEL ? ev->reply : none;
    if (ev->asks)
        rv_jw_kv_bool(w, "asks", true);
    if (ev->unknown) {
        rv_jw_kv_bool(w, "unknown", true);
    } else if (ev->failed) {
        rv_jw_kv_bool(w, "failed", true);
        if (ev->error_type)
            rv_jw_kv_text(w, "error_type", ev->error_type);
        if (ev->code)
            rv_jw_kv_text(w, "code", ev->code);
        if (ev->retryable)
            rv_jw_kv_bool(w, "retryable", true);
        if (ev->reply.len && rv_utf8_valid(ev->reply, NULL))
            rv_jw_kv_str(w, "partial", ev->reply);
    }
    if (ev->kind == RV_EVENT_LLM_DONE)
        write_answer(ev, w);
    if (ev->kind == RV_EVENT_TOOL_DONE && ev->llm.has_usage) {
        rv_jw_key(w, "asked_models");
        rv_usage_write_json(&ev->llm.usage, w);
    }
    return ev->unknown ? none : ev->failed ? ev->error : ev->reply;
}

void rv_event_write_json(const struct rv_event *ev, rv_jw *w)
{
    rv_jw_obj(w);
    rv_str text = rv_event_write_members(ev, w);
    if (text.len)
        rv_jw_kv_str(w, ev->failed ? "error" : "reply", text);
    if (ev->kind == RV_EVENT_ANSWER) {
        rv_jw_key(w, "response");
        rv_response_write_json(&ev->response, w);
    }
    rv_jw_obj_end(w);
}

/* *out is the member, or NULL where there is none. */
static int read_member(json_object *json, const char *key, json_type type, json_object **out, rv_err **err)
{
    *out = NULL;
    if (!json_object_object_get_ex(json, key, out) || json_object_is_type(*out, type))
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "\"%s\" of a recorded answer is %s and not %s", key, rv_json_type_text(*out),
                   type == json_type_string    ? "string"
                   : type == json_type_boolean ? "boolean"
                                               : "object");
}

static int read_text(json_object *json, const char *key, rv_str *out, rv_err **err)
{
    json_object *part;
    int rc = read_member(json, key, json_type_string, &part, err);

    if (rc == 0 && part)
        *out = rv_json_str(part);
    return rc;
}

static int read_flag(json_object *json, const char *key, bool *is_there, bool *out, rv_err **err)
{
    json_object *part;
    int rc = read_member(json, key, json_type_boolean, &part, err);

    if (rc == 0 && part)
        *out = json_object_get_boolean(part);
    *is_there = rc == 0 && part;
    return rc;
}

int rv_response_read_json(json_object *json, struct rv_response *out, rv_err **err)
{
    struct rv_response r = *out;
    const struct {
        const char *key;
        rv_str *out;
    } texts[] = {
        {"text", &r.text}, {"decision", &r.decision}, {"interrupt_id", &r.interrupt_id}, {"choice", &r.choice}};
    json_object *data = NULL;
    bool is_there;
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(texts) && rc == 0; i++)
        rc = read_text(json, texts[i].key, texts[i].out, err);
    if (rc == 0)
        rc = read_member(json, "arguments", json_type_object, &r.arguments, err);
    if (rc == 0)
        rc = read_flag(json, "approved", &r.has_approved, &r.approved, err);
    if (rc == 0)
        rc = read_flag(json, "expired", &is_there, &r.expired, err);
    if (rc == 0)
        rc = read_flag(json, "cancelled", &is_there, &r.cancelled, err);
    if (rc < 0)
        return rc;
    if (json_object_object_get_ex(json, "data", &data))
        r.data = data;
    *out = r;
    return 0;
}

int rv_event_read_json(json_object *json, struct rv_event *out, rv_err **err)
{
    struct rv_event ev = {.kind = RV_EVENT_CANCEL, .llm = RV_LLM_ANSWER_NONE};
    const char *text = NULL;
    json_object *part = NULL;
    size_t kind = 0;

    if (!json_object_is_type(json, json_type_object) || !rv_json_get_text(json, "event", &text))
        return RV_FAIL(err, RV_E_INVALID, "recorded event has no kind");
    while (kind < RV_COUNT(event_texts) && strcmp(event_texts[kind], text) != 0)
        kind++;
    if (kind == RV_COUNT(event_texts))
        return RV_FAIL(err, RV_E_INVALID, "recorded event has unknown kind \"%.60s\"", text);
    ev.kind = (enum rv_event_kind)kind;
    if (!rv_json_get_int(json, "now_us", &ev.now_us))
        return RV_FAIL(err, RV_E_INVALID, "recorded event \"%s\" has no time", text);
    if (!rv_json_get_int(json, "call_id", &ev.call_id) && (is_done(ev.kind) || ev.kind == RV_EVENT_TIMER))
        return RV_FAIL(err, RV_E_INVALID, "recorded event \"%s\" has no call id", text);
    ev.failed = rv_json_bool_or(json, "failed", ev.failed);
    ev.retryable = rv_json_bool_or(json, "retryable", ev.retryable);
    ev.unknown = rv_json_bool_or(json, "unknown", ev.unknown);
    ev.asks = rv_json_bool_or(json, "asks", ev.asks);
    if (json_object_object_get_ex(json, "reply", &part))
        ev.reply = rv_json_str(part);
    if (json_object_object_get_ex(json, "error", &part))
        ev.error = rv_json_str(part);
    ev.error_type = rv_json_text_or(json, "error_type", ev.error_type);
    ev.code = rv_json_text_or(json, "code", ev.code);
    if (json_object_object_get_ex(json, "partial", &part))
        ev.reply = rv_json_str(part);
    if (json_object_object_get_ex(json, "blocked", &ev.blocked) && !json_object_is_type(ev.blocked, json_type_array))
        return RV_FAIL(err, RV_E_INVALID, "its blocked tools are not a list");
    if (!rv_llm_answer_read(json, &ev.llm))
        return RV_FAIL(err, RV_E_INVALID, "one of its numbers is negative or too large");
    part = ev.kind == RV_EVENT_TOOL_DONE ? rv_json_get_obj(json, "asked_models") : NULL;
    if (part && !(ev.llm.has_usage = rv_usage_read_json(part, &ev.llm.usage)))
        return RV_FAIL(err, RV_E_INVALID, "the usage of its models has a member that is not a count");
    if (ev.kind == RV_EVENT_ANSWER) {
        part = rv_json_get_obj(json, "response");
        int rc = part ? rv_response_read_json(part, &ev.response, err)
                      : RV_FAIL(err, RV_E_INVALID, "recorded event \"answer\" has no response");
        if (rc < 0)
            return rc;
    }
    *out = ev;
    return 0;
}

static const char *const effect_texts[] = {
#define X(name, text, meaning) [RV_EFFECT_##name] = text,
    RV_EFFECT_KINDS(X)
#undef X
};

static void write_call(const struct rv_effect *e, rv_jw *w)
{
    if (e->kind == RV_EFFECT_CALL_HOOK)
        rv_jw_kv_text(w, "entry", rv_name_kind_text(e->entry));
    rv_jw_kv_text(w, "name", e->name);
    rv_jw_kv_int(w, "visit", e->visit);
    rv_jw_kv_int(w, "attempt", e->attempt);
    rv_jw_kv_int(w, "deadline_us", e->deadline_us);
    if (e->kind == RV_EFFECT_CALL_TOOL) {
        rv_jw_kv_text(w, "effect_class", rv_effect_class_text((enum rv_effect_class)e->effect_class));
        rv_jw_kv_text(w, "key", e->key);
    }
    rv_jw_key(w, "request");
    rv_jw_raw(w, (rv_str){e->request, e->request_len});
}

void rv_effect_write_json(const struct rv_effects *all, const struct rv_effect *e, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "effect", effect_texts[e->kind]);
    if (e->call_id)
        rv_jw_kv_int(w, "call_id", e->call_id);
    if (e->stage >= 0)
        rv_jw_kv_int(w, "stage", e->stage);
    switch (e->kind) {
    case RV_EFFECT_CALL_LLM:
    case RV_EFFECT_CALL_TOOL:
    case RV_EFFECT_CALL_HOOK:
        write_call(e, w);
        break;
    case RV_EFFECT_ARM_TIMER:
        rv_jw_kv_int(w, "at_us", e->at_us);
        break;
    case RV_EFFECT_EMIT:
        rv_jw_key(w, "line");
        rv_jw_raw(w, rv_effect_text(all, e));
        break;
    case RV_EFFECT_SAVE:
        rv_jw_key(w, "state");
        rv_jw_raw(w, (rv_str){e->request, e->request_len});
        break;
    case RV_EFFECT_KEEP:
        rv_jw_key(w, "turn");
        rv_turn_write_json(e->turn, w);
        break;
    case RV_EFFECT_ARTIFACT:
        rv_jw_key(w, "about");
        rv_jw_raw(w, (rv_str){e->about, e->about_len});
        rv_jw_key(w, "content");
        rv_jw_raw(w, (rv_str){e->request, e->request_len});
        break;
    case RV_EFFECT_FINISH:
        rv_jw_kv_text(w, "status", rv_run_status_text(e->status));
        break;
    case RV_EFFECT_CANCEL_CALL:
        break;
    }
    rv_jw_obj_end(w);
}
