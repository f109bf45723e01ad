/* One answer while it is read: frames its body, keeps what the codec extracts, and hands the pieces out. The end of the
 * answer is in reader_end.c, its tool calls are in calls.c. */
#include <stdlib.h>
#include <strings.h>

#include "coreengine/model/wire/wire_internal.h"

#define MAX_STRANGER ((size_t)2 * WIRE_MAX_SHOWN)

/* --- frames --- */

static int on_event(void *self, const struct rv_sse_event *ev, rv_err **err)
{
    rv_wire_reader *r = self;

    if (rv_wire_is_done(r))
        return 0;
    r->has_halves = false;
    return r->codec->event(r, ev->name, ev->data, err);
}

static int on_line(void *self, rv_str line, rv_err **err)
{
    const struct rv_sse_event ev = {{NULL, 0}, line};

    return on_event(self, &ev, err);
}

static bool is_type(rv_str type, const char *name)
{
    return type.len == rv_str_of(name).len && strncasecmp(type.ptr, name, type.len) == 0;
}

static void choose_frame(rv_wire_reader *r, rv_str type, bool *sse, bool *ndjson)
{
    size_t n = 0;

    while (n < type.len && type.ptr[n] != ';')
        n++;
    type = rv_str_trim((rv_str){type.ptr, n});
    *ndjson = is_type(type, "application/x-ndjson") || is_type(type, "application/ndjson") ||
              is_type(type, "application/jsonl") || (type.len == 0 && r->target.wire == RV_WIRE_OLLAMA);
    *sse = is_type(type, "text/event-stream") || (type.len == 0 && r->target.wire != RV_WIRE_OLLAMA);
    r->is_whole = is_type(type, "application/json");
    r->is_stranger = !*sse && !*ndjson && !r->is_whole;
    if (r->is_stranger)
        rv_wire_show(type, &r->scratch);
}

int rv_wire_reader_new(const struct rv_wire_target *t, rv_str content_type, rv_llm_delta_fn on_delta, void *self,
                       rv_wire_reader **out, rv_err **err)
{
    rv_wire_reader *r = calloc(1, sizeof *r);
    bool sse = false, ndjson = false;

    if (!r)
        return RV_FAIL(err, RV_E_NOMEM, "no memory to read an answer");
    r->target = *t;
    r->codec = rv_wire_codec(t->wire);
    r->on_delta = on_delta;
    r->self = self;
    r->whole = RV_BUF_INIT(WIRE_MAX_WHOLE);
    r->broken_why = RV_BUF_INIT(WIRE_MAX_WHY);
    r->text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    r->scratch = RV_BUF_INIT(WIRE_MAX_WHOLE);
    r->joined = RV_BUF_INIT(WIRE_MAX_WHOLE);
    r->block_text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    r->block_signature = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    r->finish = RV_UNSET;
    choose_frame(r, content_type, &sse, &ndjson);
    if (sse)
        r->sse = rv_sse_new(RV_WIRE_MAX_EVENT, on_event, r);
    if (ndjson)
        r->ndjson = rv_ndjson_new(RV_WIRE_MAX_EVENT, on_line, r);
    if ((sse && !r->sse) || (ndjson && !r->ndjson) || r->scratch.rc) {
        rv_wire_reader_free(r);
        return RV_FAIL(err, RV_E_NOMEM, "no memory to read an answer");
    }
    *out = r;
    return 0;
}

void rv_wire_reader_free(rv_wire_reader *r)
{
    if (!r)
        return;
    rv_sse_free(r->sse);
    rv_ndjson_free(r->ndjson);
    for (size_t i = 0; i < r->n_calls; i++) {
        rv_buf_fini(&r->calls[i].id);
        rv_buf_fini(&r->calls[i].name);
        rv_buf_fini(&r->calls[i].arguments);
    }
    free(r->calls);
    rv_buf_fini(&r->whole);
    rv_buf_fini(&r->broken_why);
    rv_buf_fini(&r->text);
    rv_buf_fini(&r->scratch);
    rv_buf_fini(&r->joined);
    json_object_put(r->blocks);
    rv_buf_fini(&r->block_text);
    rv_buf_fini(&r->block_signature);
    free(r);
}

int rv_reader_stopped(rv_wire_reader *r, int rc, rv_err *why, rv_err **err)
{
    if (rc < 0 && rv_err_is(why, RV_E_NOMEM)) /* also where only the words found none */
        rc = RV_FAIL(err, RV_E_NOMEM, "no memory to read an answer");
    else if (rc < 0)
        rv_reader_break(r, RV_LLM_ERROR_PROTOCOL, "%s", rv_err_text(why));
    rv_err_free(why);
    return rc == RV_E_NOMEM ? rc : 0;
}

static int read_whole(rv_wire_reader *r, rv_str bytes, rv_err **err)
{
    if (r->is_stranger && r->whole.len + bytes.len > MAX_STRANGER)
        bytes.len = MAX_STRANGER - r->whole.len;
    rv_buf_add_str(&r->whole, bytes);
    if (r->whole.rc == RV_E_LIMIT) {
        rv_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the answer is longer than %zu bytes", WIRE_MAX_WHOLE);
        return 0;
    }
    return rv_buf_check(&r->whole, "the answer", err);
}

int rv_wire_read(rv_wire_reader *r, rv_str bytes, rv_err **err)
{
    rv_err *why = NULL;
    int rc;

    if (rv_wire_is_done(r))
        return 0;
    if (r->is_whole || r->is_stranger)
        return read_whole(r, bytes, err);
    rc = r->sse ? rv_sse_read(r->sse, bytes, &why) : rv_ndjson_read(r->ndjson, bytes, &why);
    return rv_reader_stopped(r, rc, why, err);
}

bool rv_wire_is_done(const rv_wire_reader *r)
{
    return r->is_broken || r->saw_end;
}

/* --- what codecs tell --- */

void rv_reader_break(rv_wire_reader *r, enum rv_llm_error kind, const char *fmt, ...)
{
    va_list args;

    if (r->is_broken)
        return;
    r->is_broken = true;
    r->broken_kind = (int)kind;
    va_start(args, fmt);
    rv_buf_vprintf(&r->broken_why, fmt, args);
    va_end(args);
}

static void hand(rv_wire_reader *r, const struct rv_llm_delta *d)
{
    if (r->on_delta)
        r->on_delta(r->self, d);
}

static void hand_usage(rv_wire_reader *r)
{
    hand(r, &(struct rv_llm_delta){.kind = RV_LLM_DELTA_USAGE, .usage = r->usage, .finish = RV_UNSET});
}

/* A piece of the answer itself. Usage that came before waits for the first: an answer that only said what it costs has
 * not begun, and may be asked for again. */
void rv_reader_hand(rv_wire_reader *r, struct rv_llm_delta d)
{
    if (!r->has_begun) {
        r->has_begun = true;
        if (r->has_usage)
            hand_usage(r);
    }
    d.finish = RV_UNSET;
    hand(r, &d);
}

bool rv_reader_fits(rv_wire_reader *r, size_t n)
{
    if (n <= RV_LLM_MAX_REPLY - r->total_bytes) {
        r->total_bytes += n;
        return true;
    }
    rv_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the reply is longer than %zu bytes", RV_LLM_MAX_REPLY);
    return false;
}

int rv_reader_text(rv_wire_reader *r, rv_str text, rv_err **err)
{
    text = rv_half_join(&r->half, r->has_halves, text, &r->joined);
    if (r->joined.rc)
        return rv_buf_check(&r->joined, "the reply", err);
    if (!text.len || !rv_reader_fits(r, text.len))
        return 0;
    rv_buf_add_str(&r->text, text);
    if (r->text.rc)
        return rv_buf_check(&r->text, "the reply", err);
    rv_reader_hand(r, (struct rv_llm_delta){.kind = RV_LLM_DELTA_TEXT, .text = text});
    return 0;
}

int rv_reader_thinking(rv_wire_reader *r, rv_str text, rv_err **err)
{
    text = rv_half_join(&r->thinking_half, r->has_halves, text, &r->joined);
    if (r->joined.rc)
        return rv_buf_check(&r->joined, "the reply", err);
    if (text.len && rv_reader_fits(r, text.len))
        rv_reader_hand(r, (struct rv_llm_delta){.kind = RV_LLM_DELTA_THINKING, .text = text});
    return 0;
}

void rv_reader_finish(rv_wire_reader *r, int finish)
{
    r->finish = finish;
}

static bool same_usage(const struct rv_usage *a, const struct rv_usage *b)
{
    return a->input_tokens == b->input_tokens && a->output_tokens == b->output_tokens &&
           a->cached_tokens == b->cached_tokens && a->cache_write_tokens == b->cache_write_tokens &&
           a->reasoning_tokens == b->reasoning_tokens;
}

static bool is_count(int64_t n)
{
    return n >= 0 && n <= RV_USAGE_MAX;
}

void rv_reader_usage(rv_wire_reader *r, const struct rv_usage *totals)
{
    bool is_new = !r->has_usage || !same_usage(&r->usage, totals);

    if (r->has_false_usage || !is_count(totals->input_tokens) || !is_count(totals->output_tokens) ||
        !is_count(totals->cached_tokens) || !is_count(totals->cache_write_tokens) ||
        !is_count(totals->reasoning_tokens)) {
        r->has_false_usage = true; /* the other counts are worth no more */
        r->has_usage = false;
        return;
    }
    r->usage = *totals;
    r->has_usage = true;
    if (is_new && r->has_begun)
        hand_usage(r);
}
