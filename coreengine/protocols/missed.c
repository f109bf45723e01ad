/* Pieces that no line has: the process died when the reply was in the journal and its last pieces were not in the
 * stream. What was told of a reply is its beginning, by length and hash; the rest is told now. */
#include "coreengine/protocols/protocols_internal.h"

#include <string.h>

void proto_note_text(struct proto_owner *o, rv_str text)
{
    o->has_said = true;
    o->told_hash = rv_fnv_add(o->told_hash, text);
    o->told_len += text.len;
}

static void tell_arguments(rv_protocol *p, const struct rv_protocol_from *from, struct proto_call *c,
                           json_object *calls)
{
    json_object *call = json_object_array_get_idx(calls, c->index), *arguments = NULL;
    rv_buf whole = RV_BUF_INIT(RV_LLM_MAX_REPLY);

    if (json_object_object_get_ex(call, "arguments", &arguments) && json_object_is_type(arguments, json_type_string))
        rv_buf_add_str(&whole, rv_json_str(arguments));
    else if (arguments)
        rv_json_write(arguments, &whole);
    proto_keep(p, &whole);
    size_t had = c->arguments.len;
    const struct rv_llm_delta d = {.kind = RV_LLM_DELTA_TOOL_ARGUMENTS,
                                   .index = c->index,
                                   .text = {whole.ptr + had, whole.len > had ? whole.len - had : 0}};
    if (d.text.len > 0 && memcmp(whole.ptr, c->arguments.ptr ? c->arguments.ptr : "", had) == 0)
        proto_track_delta(p, from, &d);
    rv_buf_fini(&whole);
}

/* A reply of which no piece was told: at the end an answer is told as a whole, but not when its agent has said
 * something before. */
static bool is_told_now(const struct proto_owner *o, json_object *event)
{
    bool is_muted = rv_json_bool_or(event, "muted", false);

    return o->told_len > 0 || (o->has_said && !is_muted && proto_member(event, "preview"));
}

void proto_track_missed(rv_protocol *p, json_object *event, const struct rv_protocol_reply *reply)
{
    struct proto_owner *o = proto_owner_of(p, event);
    struct rv_protocol_from from = {.stage = proto_member(event, "stage")};
    const char *status = proto_member(event, "status");
    json_object *calls = NULL;

    if (!o || p->rc < 0 || !status || strcmp(status, "success") != 0 ||
        !rv_json_get_int(event, "call_id", &from.call_id) || o->reply != from.call_id || o->reply_over ||
        o->reply_broke)
        return;
    const rv_str had = {reply->text.ptr, o->told_len};
    const struct rv_llm_delta rest = {
        .kind = RV_LLM_DELTA_TEXT,
        .text = had.len < reply->text.len ? (rv_str){reply->text.ptr + had.len, reply->text.len - had.len} : had};
    if (had.len < reply->text.len && is_told_now(o, event) && rv_fnv_add(PROTO_NO_TEXT, had) == o->told_hash)
        proto_track_delta(p, &from, &rest);
    if (reply->tool_calls.len > 0 &&
        rv_json_parse(reply->tool_calls, NULL, &calls,
                      RV_CODE_ONLY("unreadable calls have no arguments to tell; want of memory fails the stream")) ==
            RV_E_NOMEM)
        proto_fail(p, RV_E_NOMEM);
    for (size_t i = 0; json_object_is_type(calls, json_type_array) && i < p->n_calls && p->rc == 0; i++)
        if (p->calls[i]->by == o && p->calls[i]->reply == from.call_id && p->calls[i]->state == PROTO_CALL_OPEN)
            tell_arguments(p, &from, p->calls[i], calls);
    json_object_put(calls);
}
