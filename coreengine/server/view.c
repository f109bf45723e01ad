/* What a client is sent, made from the lines of a stream (coreengine/app/streams.h): the same lines give the same bytes
 * in any process, also from the middle on. Each block has an id, "STREAM-LINE.BLOCK" or, of the last block of a line,
 * "STREAM-LINE"; a client that comes back with one is sent what follows it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/server/chats_internal.h"
#include "coreengine/server/view_internal.h"

#define MAX_JSON ((size_t)256 << 20) /* bytes of a line of a stream: a state with its escapes */
#define MAX_READ ((size_t)16 << 10)  /* bytes of an event that waits as an object: that is many times as large */

struct view_event {
    int64_t seq;
    char *line; /* owned; NULL: it was read */
    size_t len;
    json_object *read;  /* owned; NULL: it was not read */
    char *text, *calls; /* of the reply that it was made of; owned; NULL: none */
    size_t text_len, calls_len;
};
struct srv_view {
    rv_protocol *encoder; /* owned */
    char *texts;          /* of opts; owned */
    struct rv_protocol_opts opts;
    json_object *tools;        /* names of the tools of the client, of the first stream that says them; owned */
    const char **names;        /* the same; the list is owned */
    struct view_event *events; /* that were not told yet, in order; owned */
    size_t n_events, cap_events, at_event;
    int64_t n_told, n_known; /* numbers of events: told last, known last */
    int64_t ordinal, line;   /* line: that was read last */
    struct srv_cursor from;
    bool is_over, is_waiting, is_whole;
    bool is_quota;   /* one ran out */
    bool is_stopped; /* the server ended it */
    enum rv_run_status status;
};

bool srv_cursor_read(rv_str text, struct srv_cursor *out)
{
    int64_t parts[3] = {0, 0, 0};
    size_t n = 0, digits = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (rv_is_digit(c) && parts[n] < INT64_MAX / 100) {
            parts[n] = parts[n] * 10 + (c - '0');
            digits++;
        } else if (digits > 0 && n < 2 && c == (n == 0 ? '-' : '.')) {
            n++;
            digits = 0;
        } else {
            return false;
        }
    }
    *out = (struct srv_cursor){.ordinal = parts[0], .line = parts[1], .blocks = n == 2 ? (size_t)parts[2] : SIZE_MAX};
    return n >= 1 && digits > 0;
}

struct srv_view *srv_view_new(const struct srv_cursor *from)
{
    struct srv_view *v = calloc(1, sizeof *v);

    if (v && from)
        v->from = *from;
    return v;
}

static void event_fini(struct view_event *e)
{
    free(e->line);
    free(e->text);
    free(e->calls);
    json_object_put(e->read);
}

void srv_view_free(struct srv_view *v)
{
    if (!v)
        return;
    for (size_t i = v->at_event; i < v->n_events; i++)
        event_fini(&v->events[i]);
    free(v->events);
    rv_protocol_free(v->encoder);
    free(v->texts);
    json_object_put(v->tools);
    free(v->names);
    free(v);
}

bool srv_view_is_over(const struct srv_view *v)
{
    return v->is_over;
}

bool srv_view_is_whole(const struct srv_view *v)
{
    return v->is_whole;
}

enum rv_run_status srv_view_status(const struct srv_view *v)
{
    return v->status;
}

/* A quota that ran out within the turn is the client's to mind; the rest is that of those behind us. */
int srv_view_http(const struct srv_view *v)
{
    bool failed = v->status == RV_RUN_FAILED || v->status == RV_RUN_CANCELLED || v->status == RV_RUN_TERMINATED;

    return !failed ? 200 : v->is_quota ? 429 : v->is_stopped ? 503 : 502;
}

/* Clients repeat a 429 and a 502 by themselves: a repetition begins what a person cancelled, and of a turn that was
 * stopped it is told the same again. */
void srv_view_put_fields(const struct srv_view *v, struct srv_stream *st)
{
    if (v->is_stopped)
        srv_stream_field(st, "Retry-After", SRV_RETRY_S);
    else if (v->status == RV_RUN_CANCELLED || v->status == RV_RUN_TERMINATED)
        srv_stream_field(st, "x-should-retry", "false");
}

int srv_view_event(struct srv_view *v, int64_t seq, rv_str line, json_object *event, rv_err **err)
{
    struct view_event e = {.seq = seq, .len = line.len};

    if (seq <= v->n_known)
        return 0;
    if (v->at_event > 0 && v->at_event == v->n_events)
        v->at_event = v->n_events = 0;
    bool has_room = rv_has_room(&v->events, &v->cap_events, v->n_events + 1, sizeof *v->events);
    if (has_room && line.len <= MAX_READ && json_object_is_type(event, json_type_object))
        e.read = json_object_get(event);
    else if (has_room)
        e.line = rv_str_dup(line);
    if (!e.read && !e.line)
        return RV_FAIL(err, RV_E_NOMEM, "go on with a stream");
    v->events[v->n_events++] = e;
    v->n_known = seq;
    return 0;
}

bool srv_view_break(struct srv_view *v, int code, rv_buf *out)
{
    return v->encoder && !v->is_whole && srv_tell_break(v->encoder, v->opts.run_id, code, out);
}

int srv_view_reply(struct srv_view *v, int64_t seq, const struct rv_protocol_reply *reply, rv_err **err)
{
    struct view_event *e = v->at_event < v->n_events ? &v->events[v->n_events - 1] : NULL;

    if (!e || e->seq != seq || e->text)
        return 0;
    e->text = rv_str_dup(reply->text);
    e->calls = rv_str_dup(reply->tool_calls);
    if (!e->text || !e->calls)
        return RV_FAIL(err, RV_E_NOMEM, "go on with a stream");
    e->text_len = reply->text.len;
    e->calls_len = reply->tool_calls.len;
    return 0;
}

/* --- one line --- */

struct told {
    struct srv_view *v;
    struct rv_protocol_at at;
    rv_buf *out;
    rv_err **err;
};

/* Pieces come before the line of the event that ends their reply: when that is missing, they may be, too. */
static int tell_missed(struct told *t, const struct view_event *e)
{
    const struct rv_protocol_reply reply = {{e->text, e->text_len}, {e->calls, e->calls_len}};
    json_object *event = NULL;
    int rc = rv_json_parse((rv_str){e->line, e->len}, NULL, &event, t->err);

    if (rc == 0)
        rc = rv_protocol_tell_missed(t->v->encoder, &t->at, event, &reply, t->out, t->err);
    json_object_put(event);
    return rc;
}

/* upto has a line of its own if has_line. */
static int tell_events(struct told *t, int64_t upto, bool has_line)
{
    struct srv_view *v = t->v;
    int rc = 0;

    while (rc == 0 && v->at_event < v->n_events && v->events[v->at_event].seq <= upto) {
        struct view_event *e = &v->events[v->at_event++];
        if (v->encoder && e->text && e->line && (e->seq < upto || !has_line))
            rc = tell_missed(t, e);
        if (rc == 0 && v->encoder && e->read)
            rc = rv_protocol_event_read(v->encoder, &t->at, e->read, t->out, t->err);
        else if (rc == 0 && v->encoder)
            rc = rv_protocol_on_event(v->encoder, &t->at, (rv_str){e->line, e->len}, t->out, t->err);
        v->n_told = e->seq;
        event_fini(e);
    }
    return rc;
}

static bool is_set(json_object *json, const char *key)
{
    bool yes = false;

    return rv_json_get_bool(json, key, &yes) && yes;
}

static int64_t number_of(json_object *json, const char *key)
{
    int64_t n = 0;

    return rv_json_get_int(json, key, &n) ? n : 0;
}

void srv_view_open_write(const struct rv_protocol_opts *o, int64_t ordinal, int64_t before, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "protocol", rv_protocol_text(o->kind));
    rv_jw_kv_int(&w, "stream", ordinal);
    rv_jw_kv_int(&w, "before", before);
    rv_jw_kv_bool(&w, "whole", o->is_whole);
    rv_jw_kv_text(&w, "run", o->run_id);
    rv_jw_kv_text(&w, "session", o->session_id);
    rv_jw_kv_text(&w, "client_run", o->client_run_id);
    rv_jw_kv_text(&w, "parent_run", o->parent_run_id);
    rv_jw_kv_text(&w, "model", o->model);
    rv_jw_kv_int(&w, "created_us", o->created_us);
    rv_jw_kv_bool(&w, "usage", o->tells_usage);
    rv_jw_kv_bool(&w, "events", o->tells_events);
    rv_jw_kv_bool(&w, "metadata", o->tells_metadata);
    rv_jw_kv_bool(&w, "calls", o->tells_calls);
    if (o->n_client_tools > 0) {
        rv_jw_key(&w, "client_tools");
        rv_jw_arr(&w);
        for (size_t i = 0; i < o->n_client_tools; i++)
            rv_jw_text(&w, o->client_tools[i]);
        rv_jw_arr_end(&w);
    }
    rv_jw_obj_end(&w);
}

static int read_opts(json_object *json, struct rv_protocol_opts *o, rv_err **err)
{
    const char *kind = rv_json_text_or(json, "protocol", NULL);
    int found = -1;

    for (int i = 0; kind && i < RV_N_PROTOCOLS; i++)
        if (strcmp(kind, rv_protocol_text((enum rv_protocol_kind)i)) == 0)
            found = i;
    *o = (struct rv_protocol_opts){.is_whole = is_set(json, "whole"),
                                   .run_id = rv_json_text_or(json, "run", NULL),
                                   .ordinal = number_of(json, "stream"),
                                   .session_id = rv_json_text_or(json, "session", NULL),
                                   .client_run_id = rv_json_text_or(json, "client_run", NULL),
                                   .parent_run_id = rv_json_text_or(json, "parent_run", NULL),
                                   .model = rv_json_text_or(json, "model", NULL),
                                   .created_us = number_of(json, "created_us"),
                                   .child_text = RV_UNSET,
                                   .tells_usage = is_set(json, "usage"),
                                   .tells_events = is_set(json, "events"),
                                   .tells_metadata = is_set(json, "metadata"),
                                   .tells_calls = is_set(json, "calls")};
    if (found < 0 || !o->run_id || !o->session_id)
        return RV_FAIL(err, RV_E_IO, "the first line of a stream is damaged");
    o->kind = (enum rv_protocol_kind)found;
    return 0;
}

/* In one piece, since the first line as an object is many times as large. NULL: no memory. */
static char *keep_texts(struct rv_protocol_opts *o)
{
    const char **const texts[] = {&o->run_id, &o->session_id, &o->client_run_id, &o->parent_run_id, &o->model};
    size_t n = 1, at = 0;

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        n += *texts[i] ? strlen(*texts[i]) + 1 : 0;
    char *kept = malloc(n);
    for (size_t i = 0; kept && i < RV_COUNT(texts); i++)
        if (*texts[i]) {
            size_t len = strlen(*texts[i]) + 1;
            *texts[i] = memcpy(kept + at, *texts[i], len);
            at += len;
        }
    return kept;
}

/* The tools of a run are those of its first request: the streams behind it have them, too. */
static int read_tools(struct srv_view *v, json_object *json, rv_err **err)
{
    json_object *list = v->tools ? NULL : rv_json_get_arr(json, "client_tools");
    size_t n = list ? json_object_array_length(list) : 0;

    if (n == 0)
        return 0;
    v->names = calloc(n, sizeof *v->names);
    if (!v->names)
        return RV_FAIL(err, RV_E_NOMEM, "go on with a stream");
    v->tools = json_object_get(list);
    for (size_t i = 0; i < n; i++) {
        json_object *name = json_object_array_get_idx(list, i);
        if (!json_object_is_type(name, json_type_string))
            return RV_FAIL(err, RV_E_IO, "the first line of a stream is damaged");
        v->names[i] = json_object_get_string(name);
    }
    return 0;
}

/* A stream that follows another one of the run knows what that one told. */
static int open_it(struct told *t, json_object *json)
{
    struct srv_view *v = t->v;
    struct rv_protocol_opts opts;
    int rc = read_opts(json, &opts, t->err);

    if (rc == 0)
        rc = read_tools(v, json, t->err);
    char *texts = rc == 0 ? keep_texts(&opts) : NULL;
    if (rc == 0 && !texts)
        rc = RV_FAIL(t->err, RV_E_NOMEM, "go on with a stream");
    if (rc < 0)
        return rc;
    opts.client_tools = v->names;
    opts.n_client_tools = v->tools ? json_object_array_length(v->tools) : 0;
    v->opts = opts;
    v->is_whole = opts.is_whole;
    v->ordinal = number_of(json, "stream");
    v->is_over = false;
    if (v->encoder && rv_protocol_has_ended(v->encoder)) {
        rc = rv_protocol_begin_again(v->encoder, &v->opts, &t->at, t->out, t->err);
    } else {
        rc = v->encoder ? 0 : rv_protocol_new(&v->opts, &v->encoder, t->err);
        if (rc == 0)
            rc = tell_events(t, number_of(json, "before"), true);
        if (rc == 0)
            rc = rv_protocol_begin(v->encoder, &t->at, t->out, t->err);
    }
    free(v->texts);
    v->texts = texts;
    return rc;
}

static int end_it(struct told *t, json_object *json)
{
    struct rv_protocol_end end;
    int rc = rv_protocol_end_read(json, &end, t->err);

    if (rc == 0)
        rc = rv_protocol_end(t->v->encoder, &t->at, &end, t->out, t->err);
    if (rc == 0) {
        t->v->is_over = true;
        t->v->status = end.status;
        t->v->is_quota = end.code && strcmp(end.code, "quota_exceeded") == 0;
        t->v->is_stopped = end.status == RV_RUN_CANCELLED && end.code && strcmp(end.code, SRV_STOPPED) == 0;
    }
    return rc;
}

static bool begins(rv_str line, const char *word, rv_str *rest)
{
    size_t n = strlen(word);

    if (line.len < n || memcmp(line.ptr, word, n) != 0)
        return false;
    *rest = (rv_str){line.ptr + n, line.len - n};
    return true;
}

static int64_t read_number(rv_str text)
{
    int64_t n = 0;

    for (size_t i = 0; i < text.len && rv_is_digit(text.ptr[i]) && n < INT64_MAX / 100; i++)
        n = n * 10 + (text.ptr[i] - '0');
    return n;
}

static int with_json(struct told *t, rv_str text, int (*then)(struct told *t, json_object *json))
{
    const struct rv_json_opts opts = {
        .max_bytes = MAX_JSON, .max_depth = RV_STATE_MAX_DEPTH, .what = "line of a stream"};
    json_object *json = NULL;
    int rc = rv_json_parse(text, &opts, &json, t->err);

    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(t->err, RV_E_IO, "a line of a stream is damaged");
    rc = then(t, json);
    json_object_put(json);
    return rc;
}

/* 1: an event is needed that is not known yet. */
static int read_line(struct told *t, rv_str line)
{
    struct srv_view *v = t->v;
    rv_str rest = line;

    if (begins(line, "open ", &rest))
        return with_json(t, rest, open_it);
    if (!v->encoder)
        return RV_FAIL(t->err, RV_E_IO, "a stream does not begin with its first line");
    if (begins(line, "end ", &rest))
        return with_json(t, rest, end_it);
    if (begins(line, "{", &rest))
        return rv_protocol_on_event(v->encoder, &t->at, line, t->out, t->err);
    bool again = begins(line, "again ", &rest);
    int64_t seq = read_number(rest);
    if (seq > v->n_known)
        return 1;
    int rc = tell_events(t, seq, !again);
    return rc == 0 && again ? rv_protocol_on_break(v->encoder, &t->at, t->out, t->err) : rc;
}

/* --- ids --- */

/* How many blocks of this line the client has. */
static size_t blocks_before(const struct srv_view *v)
{
    if (v->ordinal < v->from.ordinal || (v->ordinal == v->from.ordinal && v->line < v->from.line))
        return SIZE_MAX;
    return v->ordinal == v->from.ordinal && v->line == v->from.line ? v->from.blocks : 0;
}

static void add_blocks(const struct srv_view *v, rv_str bytes, rv_buf *out)
{
    size_t had = blocks_before(v), n = 0;

    while (bytes.len > 0) {
        const char *end = memmem(bytes.ptr, bytes.len, "\n\n", 2);
        size_t len = end ? (size_t)(end - bytes.ptr) + 1 : bytes.len;
        rv_str rest = end ? (rv_str){end + 2, bytes.len - len - 1} : (rv_str){NULL, 0};
        if (n++ >= had) {
            rv_buf_add(out, bytes.ptr, len);
            if (!rv_str_is((rv_str){bytes.ptr, len}, "data: [DONE]\n")) { /* as its readers know it */
                rv_buf_printf(out, "id: %" PRId64 "-%" PRId64, v->ordinal, v->line);
                if (rest.len > 0)
                    rv_buf_printf(out, ".%zu", n);
                rv_buf_putc(out, '\n');
            }
            rv_buf_putc(out, '\n');
        }
        bytes = rest;
    }
}

int srv_view_lines(struct srv_view *v, const struct rv_stream_part *part, rv_buf *out, rv_err **err)
{
    rv_buf bytes = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    struct told t = {.v = v, .at = {.now_us = part->at_us}, .out = &bytes, .err = err};
    rv_str rest = part->lines;
    int64_t number = part->first;
    int rc = 0;

    if (part->first == 1 && v->is_over) { /* of the next stream */
        v->line = 0;
        v->is_over = false;
    }
    for (; rest.len > 0 && rc == 0; number++) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        if (number > v->line && !v->is_over) {
            rc = read_line(&t, (rv_str){rest.ptr, len});
            if (rc == 0)
                rc = rv_buf_check(&bytes, "what a client is sent", err);
            if (rc != 0)
                break;
            v->line = number;
            if (!v->is_whole)
                add_blocks(v, rv_buf_str(&bytes), out);
            else if (v->ordinal >= v->from.ordinal) /* not the answers before this one */
                rv_buf_add_str(out, rv_buf_str(&bytes));
            rv_buf_clear(&bytes);
        }
        rest = end ? (rv_str){end + 1, rest.len - len - 1} : (rv_str){NULL, 0};
    }
    rv_buf_fini(&bytes);
    return rc == 0 ? rv_buf_check(out, "what a client is sent", err) : rc;
}
