/* Protocols that know one text: which words of many speakers belong to that text, in which order, and which are kept
 * apart. That is decided as in a chat of the command line, by the sink of coreengine/app. */
#include <string.h>

#include "coreengine/protocols/protocols_internal.h"

typedef void say_fn(rv_protocol *p, const struct rv_origin *who, rv_str text);

static void say(rv_protocol *p, const struct rv_origin *who, const struct rv_chat_shown *shown, say_fn *out)
{
    rv_buf words = RV_BUF_INIT(2 * RV_LLM_MAX_REPLY);

    rv_buf_puts(&words, shown->begins_part ? "\n\n" : "");
    rv_buf_add_str(&words, shown->gap);
    rv_buf_add_str(&words, shown->text);
    proto_keep(p, &words);
    for (rv_str rest = rv_buf_str(&words); rest.len > 0 && p->rc == 0;) { /* what was held may be long */
        rv_str part = rv_utf8_cut(rest, RV_PROTOCOL_MAX_TEXT);
        part = part.len > 0 ? part : rest;
        out(p, who, part);
        rest = (rv_str){rest.ptr + part.len, rest.len - part.len};
    }
    proto_said(p, rv_buf_str(&words), false);
    rv_buf_fini(&words);
}

/* Of those that waited for another one to end. */
static void say_held(rv_protocol *p, say_fn *out)
{
    const struct rv_origin *who;
    struct rv_chat_shown shown;

    while (p->rc == 0 && rv_chat_sink_next(&p->sink, &who, &shown))
        say(p, who, &shown, out);
}

void proto_flat_text(rv_protocol *p, struct proto_owner *by, rv_str text, say_fn *out)
{
    /* an object that comes late is a part of its own */
    int64_t part = by->is_late ? -by->reply - 1 : by->reply;
    struct rv_chat_shown shown = rv_chat_sink_on_piece(&p->sink, &by->origin, part, text);

    if (shown.is_shown)
        say(p, &by->origin, &shown, out);
    say_held(p, out);
}

void proto_flat_replied(rv_protocol *p, struct proto_owner *by, bool failed, say_fn *out)
{
    rv_chat_sink_on_reply(&p->sink, &by->origin, failed);
    say_held(p, out);
}

void proto_flat_done(rv_protocol *p, struct proto_owner *by, bool failed, say_fn *out)
{
    rv_chat_sink_on_done(&p->sink, &by->origin, failed);
    say_held(p, out);
}

void proto_flat_end(rv_protocol *p, const struct rv_protocol_end *end, say_fn *out)
{
    bool any = false;

    rv_chat_sink_on_end(&p->sink);
    for (size_t i = 0; i < p->n_owners; i++) {
        if (p->owners[i]->asked_by)
            continue;
        proto_flat_replied(p, p->owners[i], false, out);
        any = any || p->owners[i]->has_said;
    }
    say_held(p, out);
    if (any || p->rc < 0 || proto_was_said(p, end->text))
        return;
    const struct rv_chat_shown answer = {.is_shown = true, .begins_part = p->said.len > 0, .text = end->text};
    say(p, NULL, &answer, out);
}

static void write_question(const struct proto_question *q, rv_buf *out)
{
    json_object *data = rv_json_get_obj(q->body, "data"), *options = rv_json_get_arr(data, RV_ASK_OPTIONS);
    const char *text = proto_member(q->body, "question");

    text = text ? text : proto_member(q->body, "message");
    rv_buf_puts(out, text ? text : "The run waits for an answer.");
    for (size_t i = 0; options && i < json_object_array_length(options); i++) {
        rv_buf_puts(out, i == 0 ? " (" : ", ");
        rv_buf_add_str(out, rv_json_str(json_object_array_get_idx(options, i)));
    }
    if (options && json_object_array_length(options) > 0)
        rv_buf_putc(out, ')');
}

void proto_flat_questions(rv_protocol *p, say_fn *out)
{
    rv_buf words = RV_BUF_INIT(RV_LLM_MAX_REPLY);

    for (size_t i = 0; i < p->n_questions && p->rc == 0; i++) {
        rv_buf_clear(&words);
        write_question(&p->questions[i], &words);
        proto_keep(p, &words);
        const struct rv_chat_shown shown = {
            .is_shown = true, .begins_part = p->said.len > 0, .text = rv_buf_str(&words)};
        say(p, NULL, &shown, out);
    }
    rv_buf_fini(&words);
}
