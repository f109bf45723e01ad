/* REMLight's named events: progress, tool_call, action, metadata, error, done. A block of REMLight has the name of the
 * event; a client of OpenAI's protocol that asked for them gets the same objects as `reeve_event` of a chunk without
 * choices, as its readers take a named block for a chunk. */
#include <string.h>

#include "coreengine/protocols/protocols_internal.h"

static bool is_named(const rv_protocol *p)
{
    return !p->opts.is_whole &&
           (p->opts.kind == RV_PROTOCOL_REMLIGHT || (p->opts.kind == RV_PROTOCOL_OPENAI && p->opts.tells_events));
}

static void begin(rv_protocol *p, const char *type)
{
    bool is_chunk = p->opts.kind == RV_PROTOCOL_OPENAI;

    proto_block(p, is_chunk ? NULL : type);
    if (is_chunk) {
        proto_chunk_head(p);
        rv_jw_key(&p->w, "choices");
        rv_jw_raw(&p->w, RV_STR_LIT("[]"));
        rv_jw_key(&p->w, "reeve_event");
    }
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "type", type);
}

static void end(rv_protocol *p)
{
    rv_jw_obj_end(&p->w);
    if (p->opts.kind == RV_PROTOCOL_OPENAI)
        rv_jw_obj_end(&p->w);
    proto_block_end(p);
}

void proto_named_progress(rv_protocol *p, int step, const char *label, const char *name)
{
    rv_buf text = RV_BUF_INIT(4096);

    if (!is_named(p))
        return;
    rv_buf_puts(&text, label);
    rv_buf_add_str(&text, rv_utf8_cut(rv_str_of(name), 1000));
    proto_keep(p, &text);
    begin(p, "progress");
    rv_jw_kv_int(&p->w, "step", step);
    rv_jw_kv_int(&p->w, "total_steps", 3);
    rv_jw_kv_str(&p->w, "label", rv_buf_str(&text));
    rv_jw_kv_text(&p->w, "status", "in_progress");
    end(p);
    rv_buf_fini(&text);
}

/* That of an asked agent has the agent's name in front. */
static void write_tool(rv_protocol *p, const struct proto_call *c)
{
    rv_buf name = RV_BUF_INIT(8192);

    if (c->by->asked_by) {
        rv_buf_add_str(&name, rv_utf8_cut(rv_str_of(c->by->origin.agent), 1000));
        rv_buf_putc(&name, ':');
    }
    rv_buf_add_str(&name, rv_utf8_cut(rv_str_of(c->name), 4000));
    proto_keep(p, &name);
    rv_jw_kv_str(&p->w, "tool_name", rv_buf_str(&name));
    rv_jw_kv_text(&p->w, "tool_id", c->shown);
    rv_buf_fini(&name);
}

/* An object; text that is none is told as {"raw": text}. */
static void write_arguments(rv_protocol *p, const struct proto_call *c)
{
    rv_str text = rv_buf_str(&c->arguments);
    json_object *value = NULL;

    int rc = text.len > 0
                 ? rv_json_parse(text, NULL, &value,
                                 RV_CODE_ONLY("other text is told as a member raw; want of memory fails the stream"))
                 : 0;
    if (rc == RV_E_NOMEM)
        proto_fail(p, rc);
    rv_jw_key(&p->w, "arguments");
    if (text.len == 0) {
        rv_jw_raw(&p->w, RV_STR_LIT("{}"));
    } else if (rc == 0 && json_object_is_type(value, json_type_object)) {
        rv_jw_value(&p->w, value);
    } else {
        rv_jw_obj(&p->w);
        rv_jw_kv_str(&p->w, "raw", text);
        rv_jw_obj_end(&p->w);
    }
    json_object_put(value);
}

void proto_named_call(rv_protocol *p, const struct proto_call *c, const char *status, rv_str result, json_object *event)
{
    const char *error = event ? proto_member(event, "error") : NULL;

    if (!is_named(p))
        return;
    begin(p, "tool_call");
    write_tool(p, c);
    rv_jw_kv_text(&p->w, "status", status);
    if (c->state == PROTO_CALL_COMPLETE)
        write_arguments(p, c);
    if (result.len > 0) {
        rv_jw_key(&p->w, "result");
        rv_jw_raw(&p->w, result);
    }
    proto_kv_opt(p, "error", error);
    end(p);
}

/* The object of an asked agent: that of the stage's own is its text. */
void proto_named_output(rv_protocol *p, struct proto_owner *by, json_object *event)
{
    const char *id = proto_member(event, "step_id");
    json_object *part = NULL;

    if (!is_named(p) || !by->asked_by)
        return;
    begin(p, "tool_call");
    rv_jw_kv_text(&p->w, "tool_name", by->origin.agent);
    rv_jw_kv_text(&p->w, "tool_id", id ? id : by->origin.agent);
    rv_jw_kv_text(&p->w, "status", "completed");
    if (json_object_object_get_ex(event, "arguments", &part))
        rv_jw_kv_value(&p->w, "arguments", part);
    if (json_object_object_get_ex(event, "result", &part))
        rv_jw_kv_value(&p->w, "result", part);
    end(p);
}

void proto_named_action(rv_protocol *p, struct proto_owner *by, json_object *event)
{
    const char *type = proto_member(event, "action_type");
    json_object *payload = rv_json_get_obj(event, "payload");

    (void)by;
    if (type && strcmp(type, "observation") == 0 && payload) {
        json_object_put(p->seen);
        p->seen = json_object_get(payload);
    }
    if (!is_named(p))
        return;
    begin(p, "action");
    rv_jw_kv_text(&p->w, "action_type", type ? type : "");
    rv_jw_key(&p->w, "payload");
    if (payload)
        rv_jw_value(&p->w, payload);
    else
        rv_jw_raw(&p->w, RV_STR_LIT("{}"));
    end(p);
}

void proto_named_question(rv_protocol *p, const struct proto_question *q)
{
    json_object *data = rv_json_get_obj(q->body, "data"), *options = rv_json_get_arr(data, RV_ASK_OPTIONS);
    const char *text = proto_member(q->body, "question");

    if (!is_named(p))
        return;
    text = text ? text : proto_member(q->body, "message");
    begin(p, "action");
    rv_jw_kv_text(&p->w, "action_type", "elicit");
    rv_jw_key(&p->w, "payload");
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "question", text ? text : "");
    rv_jw_key(&p->w, "options");
    if (options)
        rv_jw_value(&p->w, options);
    else
        rv_jw_raw(&p->w, RV_STR_LIT("[]"));
    rv_jw_kv_text(&p->w, "interrupt_id", q->id);
    proto_kv_opt(p, "kind", proto_member(q->body, "kind"));
    proto_kv_opt(p, "expires_at", proto_member(q->body, "expires_at"));
    if (data)
        rv_jw_kv_value(&p->w, "data", data);
    rv_jw_obj_end(&p->w);
    end(p);
}

/* Members that an observation may have, if they are of the type that clients expect. */
static void write_observed(rv_protocol *p, const char *key, enum json_type type)
{
    json_object *value = NULL;

    if (!p->seen || !json_object_object_get_ex(p->seen, key, &value) || !value)
        return;
    bool number = type == json_type_double && rv_json_is_number(value);
    if (number || json_object_is_type(value, type))
        rv_jw_kv_value(&p->w, key, value);
}

void proto_named_metadata(rv_protocol *p, const struct rv_protocol_end *e)
{
    const struct rv_usage sum = proto_usage_sum(p, e);
    const char *name = p->seen ? proto_member(p->seen, "session_name") : NULL;

    if (!is_named(p) || !p->opts.tells_metadata)
        return;
    begin(p, "metadata");
    proto_kv_opt(p, "message_id", e->message_id);
    rv_jw_kv_text(&p->w, "session_id", p->opts.session_id);
    proto_kv_opt(p, "agent_schema", e->agent);
    proto_kv_opt(p, "responding_agent", p->responding);
    proto_kv_opt(p, "session_name", name ? name : e->session_name);
    write_observed(p, "confidence", json_type_double);
    write_observed(p, "sources", json_type_array);
    if (p->n_usage > 0)
        proto_kv_opt(p, "model_version", p->usage[p->n_usage - 1].model);
    if (e->latency_ms > 0)
        rv_jw_kv_int(&p->w, "latency_ms", e->latency_ms);
    if (sum.output_tokens > 0)
        rv_jw_kv_int(&p->w, "token_count", sum.output_tokens);
    write_observed(p, "risk_level", json_type_string);
    write_observed(p, "risk_score", json_type_int);
    write_observed(p, "risk_reasoning", json_type_string);
    write_observed(p, "recommended_action", json_type_string);
    write_observed(p, "extra", json_type_object);
    end(p);
}

void proto_named_error(rv_protocol *p, const struct rv_protocol_end *e)
{
    begin(p, "error");
    rv_jw_kv_text(&p->w, "code", "stream_error");
    rv_jw_kv_text(&p->w, "message", proto_end_message(e));
    if (e->code) {
        rv_jw_key(&p->w, "details");
        rv_jw_obj(&p->w);
        rv_jw_kv_text(&p->w, "code", e->code);
        rv_jw_obj_end(&p->w);
    }
    rv_jw_kv_bool(&p->w, "recoverable", true);
    end(p);
}

void proto_named_done(rv_protocol *p, const char *reason)
{
    begin(p, "done");
    rv_jw_kv_text(&p->w, "reason", reason);
    end(p);
}
