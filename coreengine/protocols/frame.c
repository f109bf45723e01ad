/* The life of an encoder, the frame of a stream, and small things that all protocols write. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/protocols_internal.h"

#define MAX_NAMES ((size_t)64 << 20) /* bytes of names that one stream gives out: MAX_OWNERS of 4 KiB */

static const struct {
    const char *text;
    const struct proto_ops *ops;
} kinds[] = {
    [RV_PROTOCOL_AGUI] = {"ag-ui", &proto_agui},
    [RV_PROTOCOL_AGUI_OLD] = {"ag-ui-0", &proto_agui_old},
    [RV_PROTOCOL_OPENAI] = {"openai", &proto_openai},
    [RV_PROTOCOL_RESPONSES] = {"openai-responses", &proto_responses},
    [RV_PROTOCOL_REMLIGHT] = {"remlight", &proto_remlight},
};
RV_EACH_HAS_ROW(kinds, RV_N_PROTOCOLS);

const char *rv_protocol_text(enum rv_protocol_kind kind)
{
    return (unsigned)kind < RV_N_PROTOCOLS ? kinds[kind].text : NULL;
}

struct rv_protocol_end rv_protocol_end_of(const struct rv_chat_turn *turn)
{
    return (struct rv_protocol_end){.status = turn->status,
                                    .text = turn->text,
                                    .output = turn->output,
                                    .agent = turn->agent,
                                    .message_id = turn->message_id,
                                    .finish = turn->is_cut_off ? RV_FINISH_LENGTH : RV_UNSET,
                                    .error = turn->error,
                                    .code = turn->code,
                                    .usage = turn->usage,
                                    .latency_ms = turn->latency_ms};
}

/* --- life --- */

int rv_protocol_new(const struct rv_protocol_opts *opts, rv_protocol **out, rv_err **err)
{
    assert(opts->run_id && opts->session_id && (unsigned)opts->kind < RV_N_PROTOCOLS);
    if (opts->is_whole && !kinds[opts->kind].ops->can_be_whole)
        return RV_FAIL(err, RV_E_INVALID, "the protocol %s has no whole answers: ask for a stream",
                       kinds[opts->kind].text);
    rv_protocol *p = calloc(1, sizeof *p);
    rv_arena *room = rv_arena_new(MAX_NAMES);
    if (!p || !room) {
        free(p);
        rv_arena_free(room);
        return RV_FAIL(err, RV_E_NOMEM, "begin a stream");
    }
    p->opts = *opts;
    p->ops = kinds[opts->kind].ops;
    p->room = room;
    p->said = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    p->thoughts = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    p->item_text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    p->text_item = -1;
    rv_chat_sink_init(&p->sink);
    *out = p;
    return 0;
}

static void free_owner(struct proto_owner *o)
{
    free((char *)o->origin.agent);
    free(o->asked_by);
    free(o->visit);
    free(o->model);
    free(o);
}

static void free_call(struct proto_call *c)
{
    free(c->id);
    free(c->name);
    rv_buf_fini(&c->arguments);
    free(c);
}

void rv_protocol_free(rv_protocol *p)
{
    if (!p)
        return;
    rv_chat_sink_fini(&p->sink);
    for (size_t i = 0; i < p->n_owners; i++)
        free_owner(p->owners[i]);
    for (size_t i = 0; i < p->n_calls; i++)
        free_call(p->calls[i]);
    for (size_t i = 0; i < p->n_usage; i++)
        free(p->usage[i].model);
    for (size_t i = 0; i < p->n_questions; i++)
        json_object_put(p->questions[i].body);
    free(p->owners);
    free(p->calls);
    free(p->usage);
    free(p->questions);
    rv_index_fini(&p->names);
    rv_arena_free(p->room);
    rv_buf_fini(&p->said);
    rv_buf_fini(&p->thoughts);
    rv_buf_fini(&p->item_text);
    json_object_put(p->items);
    json_object_put(p->seen);
    free(p);
}

bool rv_protocol_has_ended(const rv_protocol *p)
{
    return p->is_over;
}

/* --- the calls --- */

static bool id_is_fit(const char *id)
{
    for (const char *c = id; *c; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    return *id != '\0';
}

/* False: nothing is to be told any more. */
static bool enter(rv_protocol *p, const struct rv_protocol_at *at, rv_buf *out)
{
    if (p->is_over || out->rc < 0)
        return false;
    p->out = out;
    p->w = rv_jw_on(out);
    p->now_us = at ? at->now_us : 0;
    p->has_block = false;
    p->rc = 0;
    return true;
}

/* Behind the data of the last block, before the empty line that ends it. */
static void add_id(rv_protocol *p, const struct rv_protocol_at *at)
{
    if (!p->has_block || p->opts.is_whole || !at || !at->id || !id_is_fit(at->id) || p->out->rc < 0)
        return;
    rv_buf_truncate(p->out, p->out->len - 1);
    rv_buf_printf(p->out, "id: %s\n\n", at->id);
}

static int leave(rv_protocol *p, const struct rv_protocol_at *at, size_t mark, rv_err **err)
{
    rv_buf *out = p->out;

    add_id(p, at);
    int rc = p->rc < 0 ? p->rc : out->rc;
    p->out = NULL;
    if (rc == 0 && !p->has_begun) /* an earlier stream told it */
        rv_buf_truncate(out, mark);
    if (rc == 0)
        return 0;
    p->is_broken = true;
    if (out->len > mark)
        rv_buf_truncate(out, mark);
    out->rc = 0; /* what was there before is whole */
    return RV_FAIL(err, rc, "write what a client is told: %s",
                   rc == RV_E_NOMEM   ? "no memory"
                   : rc == RV_E_LIMIT ? "it is too large, or too much is going on at once"
                                      : "a text is not UTF-8");
}

void proto_answer_id(const rv_protocol *p, const char *prefix, char out[PROTO_MAX_ANSWER_ID])
{
    int n = snprintf(out, PROTO_MAX_ANSWER_ID, "%s%.400s", prefix, p->opts.run_id);

    if (p->opts.ordinal > 1)
        snprintf(out + n, PROTO_MAX_ANSWER_ID - (size_t)n, "%c%lld", RV_PROTOCOL_ORDINAL, (long long)p->opts.ordinal);
}

/* What was told before the beginning was told in another stream: its calls are known, and nothing else is open.
 */
static void forget(rv_protocol *p)
{
    for (size_t i = 0; i < p->n_owners; i++) {
        struct proto_owner *o = p->owners[i];
        o->is_told = o->text_open = o->thought_open = o->has_said = false;
        o->step = NULL;
    }
    for (size_t i = 0; i < p->n_calls; i++)
        p->calls[i]->is_known = true;
    for (size_t i = 0; i < p->n_usage; i++)
        free(p->usage[i].model);
    for (size_t i = 0; i < p->n_questions; i++)
        json_object_put(p->questions[i].body);
    json_object_put(p->items);
    p->items = NULL;
    p->n_usage = p->n_questions = p->n_told_calls = 0;
    p->sequence = p->n_items = 0;
    p->text_item = -1;
    p->said_role = p->sink.has_said = false;
    rv_buf_clear(&p->said);
    rv_buf_clear(&p->thoughts);
}

int rv_protocol_begin(rv_protocol *p, const struct rv_protocol_at *at, rv_buf *out, rv_err **err)
{
    size_t mark = out->len;

    if (p->has_begun || !enter(p, at, out))
        return 0;
    p->has_begun = true;
    forget(p);
    p->ops->begin(p);
    return leave(p, at, mark, err);
}

int rv_protocol_begin_again(rv_protocol *p, const struct rv_protocol_opts *opts, const struct rv_protocol_at *at,
                            rv_buf *out, rv_err **err)
{
    if (p->is_broken || !p->is_over)
        return RV_FAIL(err, RV_E_STATE, "the stream before has not ended well: begin another one");
    p->opts = *opts;
    p->ops = kinds[opts->kind].ops;
    p->is_over = p->has_begun = false;
    return rv_protocol_begin(p, at, out, err);
}

/* An event's own time, else that of the call. */
static void take_time(rv_protocol *p, json_object *event)
{
    const char *time = proto_member(event, "time");
    int64_t us = 0;

    if (time && rv_time_read(rv_str_of(time), &us) && us > 0)
        p->now_us = us;
}

static bool read_delta(json_object *line, struct rv_protocol_from *from, struct rv_llm_delta *d)
{
    static const char *const texts[RV_N_LLM_DELTAS] = {
#define X(name, text, meaning) [RV_LLM_DELTA_##name] = text,
        RV_LLM_DELTAS(X)
#undef X
    };
    const char *kind = proto_member(line, "kind"), *finish = proto_member(line, "finish_reason");
    json_object *text = NULL, *id = NULL, *name = NULL;
    enum rv_finish_reason why = RV_FINISH_OTHER;
    int64_t n = 0;

    *d = (struct rv_llm_delta){.kind = RV_N_LLM_DELTAS};
    for (int i = 0; kind && i < RV_N_LLM_DELTAS; i++)
        if (strcmp(kind, texts[i]) == 0)
            d->kind = (enum rv_llm_delta_kind)i;
    if (d->kind == RV_N_LLM_DELTAS)
        return false;
    json_object_object_get_ex(line, "text", &text);
    json_object_object_get_ex(line, "id", &id);
    json_object_object_get_ex(line, "name", &name);
    d->text = rv_json_str(text);
    d->id = rv_json_str(id);
    d->name = rv_json_str(name);
    d->index = rv_json_get_int(line, "index", &n) && n >= 0 ? (size_t)n : 0;
    if (finish)
        RV_IGNORE(rv_finish_reason_of(rv_str_of(finish), &why, NULL), "an unknown one is another one");
    d->finish = (int)why;
    *from = (struct rv_protocol_from){.stage = proto_member(line, "stage"),
                                      .agent = proto_member(line, "agent"),
                                      .parent_tool_call_id = proto_member(line, "parent_tool_call_id")};
    if (!rv_json_get_int(line, "call_id", &from->call_id))
        from->call_id = 0;
    if (rv_json_get_int(line, "depth", &n) && n > 0 && n < INT32_MAX)
        from->depth = (int)n;
    if (!rv_json_get_bool(line, "muted", &from->is_muted))
        from->is_muted = false;
    return true;
}

static int read_line(rv_protocol *p, rv_str line, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = (size_t)64 << 20, .what = "event"};
    rv_err *cause = NULL;

    int rc = rv_json_parse(line, &opts, out, &cause);
    if (rc == 0 && json_object_is_type(*out, json_type_object))
        return 0;
    json_object_put(*out);
    *out = NULL;
    rv_err_free(cause); /* it may quote what a user said, and goes to clients */
    p->is_broken = true;
    return rc == RV_E_NOMEM ? RV_FAIL(err, rc, "read an event")
                            : RV_FAIL(err, RV_E_INVALID, "an event must be an object");
}

int rv_protocol_event_read(rv_protocol *p, const struct rv_protocol_at *at, json_object *event, rv_buf *out,
                           rv_err **err)
{
    struct rv_protocol_from from;
    struct rv_llm_delta d;
    size_t mark = out->len;

    if (p->is_broken || !enter(p, at, out))
        return 0;
    const char *type = proto_member(event, "type");
    take_time(p, event);
    if (!type || strcmp(type, "delta") != 0)
        proto_track_event(p, event);
    else if (read_delta(event, &from, &d))
        proto_track_delta(p, &from, &d);
    return leave(p, at, mark, err);
}

int rv_protocol_tell_missed(rv_protocol *p, const struct rv_protocol_at *at, json_object *event,
                            const struct rv_protocol_reply *reply, rv_buf *out, rv_err **err)
{
    size_t mark = out->len;

    if (p->is_broken || !enter(p, at, out))
        return 0;
    proto_track_missed(p, event, reply);
    return leave(p, at, mark, err);
}

int rv_protocol_on_event(rv_protocol *p, const struct rv_protocol_at *at, rv_str line, rv_buf *out, rv_err **err)
{
    json_object *event = NULL;

    if (p->is_broken || p->is_over)
        return 0;
    int rc = read_line(p, line, &event, err);
    if (rc == 0)
        rc = rv_protocol_event_read(p, at, event, out, err);
    json_object_put(event);
    return rc;
}

int rv_protocol_on_break(rv_protocol *p, const struct rv_protocol_at *at, rv_buf *out, rv_err **err)
{
    size_t mark = out->len;

    if (p->is_broken || !enter(p, at, out))
        return 0;
    proto_track_broken(p);
    return leave(p, at, mark, err);
}

int rv_protocol_end(rv_protocol *p, const struct rv_protocol_at *at, const struct rv_protocol_end *end, rv_buf *out,
                    rv_err **err)
{
    size_t mark = out->len;

    if (!enter(p, at, out))
        return 0;
    if (!p->is_broken)
        proto_track_end(p, end);
    p->ops->end(p, end);
    int rc = leave(p, at, mark, err);
    p->is_over = rc == 0;
    return rc;
}
