/* The end of a turn as JSON and back: what a process that goes on with a stream has to know. */
#include "coreengine/protocols/protocols_internal.h"

void rv_protocol_end_write(const struct rv_protocol_end *end, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "status", rv_run_status_text(end->status));
    rv_jw_kv_str(w, "text", end->text);
    if (end->output) {
        rv_jw_key(w, "output");
        rv_jw_value(w, end->output);
    }
    if (end->agent)
        rv_jw_kv_text(w, "agent", end->agent);
    if (end->message_id)
        rv_jw_kv_text(w, "message_id", end->message_id);
    if (end->session_name)
        rv_jw_kv_text(w, "session_name", end->session_name);
    if (end->finish >= 0)
        rv_jw_kv_text(w, "finish_reason", rv_finish_reason_text((enum rv_finish_reason)end->finish));
    if (end->error)
        rv_jw_kv_text(w, "error", end->error);
    if (end->code)
        rv_jw_kv_text(w, "code", end->code);
    rv_jw_key(w, "usage");
    rv_usage_write_json(&end->usage, w);
    rv_jw_kv_int(w, "latency_ms", end->latency_ms);
    rv_jw_obj_end(w);
}

int rv_protocol_end_read(json_object *json, struct rv_protocol_end *out, rv_err **err)
{
    const char *status = proto_member(json, "status"), *finish = proto_member(json, "finish_reason");
    enum rv_finish_reason why = RV_FINISH_OTHER;
    json_object *text = NULL, *usage = NULL;
    int found = -1;

    *out = (struct rv_protocol_end){.finish = RV_UNSET,
                                    .agent = proto_member(json, "agent"),
                                    .message_id = proto_member(json, "message_id"),
                                    .session_name = proto_member(json, "session_name"),
                                    .error = proto_member(json, "error"),
                                    .code = proto_member(json, "code")};
    for (int i = 0; status && i < RV_N_RUN; i++)
        if (rv_str_is(rv_str_of(status), rv_run_status_text((enum rv_run_status)i)))
            found = i;
    if (found < 0)
        return RV_FAIL(err, RV_E_INVALID, "the end of a stream has no status");
    out->status = (enum rv_run_status)found;
    json_object_object_get_ex(json, "text", &text);
    out->text = rv_json_str(text);
    json_object_object_get_ex(json, "output", &out->output);
    if (finish) {
        RV_IGNORE(rv_finish_reason_of(rv_str_of(finish), &why, NULL), "an unknown one is another one");
        out->finish = (int)why;
    }
    if (json_object_object_get_ex(json, "usage", &usage))
        RV_IGNORE(rv_usage_read_json(usage, &out->usage), "without it nothing was used");
    if (!rv_json_get_int(json, "latency_ms", &out->latency_ms))
        out->latency_ms = 0;
    return 0;
}
