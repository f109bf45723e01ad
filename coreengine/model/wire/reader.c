/* One answer while it is read: frames its body, keeps what the codec extracts, and hands the pieces out. Its
 * tool calls are in calls.c. At the end what came is made a reply, or a failure that keeps the text. */
#include <stdlib.h>
#include <strings.h>

#include "coreengine/model/wire/wire_internal.h"

#define MAX_STRANGER ((size_t)2 * WIRE_MAX_SHOWN) /* bytes of another kind of answer: for blanks, twice */

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
        wire_show(type, &r->scratch);
}

int rv_wire_reader_new(const struct rv_wire_target *t, rv_str content_type, rv_llm_delta_fn on_delta, void *self,
                       rv_wire_reader **out, rv_err **err)
{
    rv_wire_reader *r = calloc(1, sizeof *r);
    bool sse = false, ndjson = false;

    if (!r)
        return RV_FAIL(err, RV_E_NOMEM, "no memory to read an answer");
    r->target = *t;
    r->codec = wire_codec_of(t->wire);
    r->on_delta = on_delta;
    r->self = self;
    r->whole = RV_BUF_INIT(WIRE_MAX_WHOLE);
    r->broken_why = RV_BUF_INIT(WIRE_MAX_WHY);
    r->text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    r->scratch = RV_BUF_INIT(WIRE_MAX_WHOLE);
    r->joined = RV_BUF_INIT(WIRE_MAX_WHOLE);
    r->block_text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    r->block_signature = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    r->block_input = RV_BUF_INIT(RV_LLM_MAX_REPLY);
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

void rv_wire_reader_set_tool_names(rv_wire_reader *r, json_object *names)
{
    r->tool_names = names;
}

void rv_wire_reader_free(rv_wire_reader *r)
{
    if (!r)
        return;
    rv_sse_free(r->sse);
    rv_ndjson_free(r->ndjson);
    for (size_t i = 0; i < r->n_calls; i++) {
        rv_buf_fini(&r->calls[i].id);
        rv_buf_fini(&r->calls[i].sent_id);
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
    rv_buf_fini(&r->block_input);
    free(r);
}

static int stopped(rv_wire_reader *r, int rc, rv_err *why, rv_err **err)
{
    if (rc < 0 && rv_err_is(why, RV_E_NOMEM)) /* also where only the words found none */
        rc = RV_FAIL(err, RV_E_NOMEM, "no memory to read an answer");
    else if (rc < 0)
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "%s", rv_err_text(why));
    rv_err_free(why);
    return rc == RV_E_NOMEM ? rc : 0;
}

static int read_whole(rv_wire_reader *r, rv_str bytes, rv_err **err)
{
    if (r->is_stranger && r->whole.len + bytes.len > MAX_STRANGER)
        bytes.len = MAX_STRANGER - r->whole.len;
    rv_buf_add_str(&r->whole, bytes);
    if (r->whole.rc == RV_E_LIMIT) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the answer is longer than %zu MiB", WIRE_MAX_WHOLE >> 20);
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
    return stopped(r, rc, why, err);
}

bool rv_wire_is_done(const rv_wire_reader *r)
{
    return r->is_broken || r->saw_end;
}

/* --- what codecs tell --- */

void wire_reader_break(rv_wire_reader *r, enum rv_llm_error kind, const char *fmt, ...)
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
void wire_reader_hand(rv_wire_reader *r, struct rv_llm_delta d)
{
    if (!r->has_begun) {
        r->has_begun = true;
        if (r->has_usage)
            hand_usage(r);
    }
    d.finish = RV_UNSET;
    hand(r, &d);
}

bool wire_reader_fits(rv_wire_reader *r, size_t n)
{
    if (n <= RV_LLM_MAX_REPLY - r->total_bytes) {
        r->total_bytes += n;
        return true;
    }
    wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the reply is longer than %zu bytes", RV_LLM_MAX_REPLY);
    return false;
}

int wire_reader_text(rv_wire_reader *r, rv_str text, rv_err **err)
{
    text = wire_half_join(&r->half, r->has_halves, text, &r->joined);
    if (r->joined.rc)
        return rv_buf_check(&r->joined, "the reply", err);
    if (!text.len || !wire_reader_fits(r, text.len))
        return 0;
    rv_buf_add_str(&r->text, text);
    if (r->text.rc)
        return rv_buf_check(&r->text, "the reply", err);
    wire_reader_hand(r, (struct rv_llm_delta){.kind = RV_LLM_DELTA_TEXT, .text = text});
    return 0;
}

int wire_reader_said(rv_wire_reader *r, json_object *value, rv_err **err)
{
    if (!value || json_object_is_type(value, json_type_string))
        return wire_reader_text(r, rv_json_str(value), err);
    wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the text of the answer is not a string but %s",
                      rv_json_type_text(value));
    return 0;
}

int wire_reader_thinking(rv_wire_reader *r, rv_str text, rv_err **err)
{
    text = wire_half_join(&r->thinking_half, r->has_halves, text, &r->joined);
    if (r->joined.rc)
        return rv_buf_check(&r->joined, "the reply", err);
    if (text.len && wire_reader_fits(r, text.len))
        wire_reader_hand(r, (struct rv_llm_delta){.kind = RV_LLM_DELTA_THINKING, .text = text});
    return 0;
}

void wire_reader_finish(rv_wire_reader *r, int finish)
{
    r->finish = finish;
}

bool wire_reader_count(json_object *usage, const char *key, int64_t *n)
{
    json_object *v = rv_json_member(usage, key);
    double d;

    if (!v)
        return false;
    d = rv_json_is_number(v) ? json_object_get_double(v) : -1;
    if (d < 0 || d > (double)RV_USAGE_MAX || d != (double)(int64_t)d)
        *n = RV_USAGE_MAX + 1;
    else
        *n = rv_json_is_int(v) ? json_object_get_int64(v) : (int64_t)d;
    return true;
}

static bool same_usage(const struct rv_usage *a, const struct rv_usage *b)
{
    return a->input_tokens == b->input_tokens && a->output_tokens == b->output_tokens &&
           a->cached_tokens == b->cached_tokens && a->cache_write_tokens == b->cache_write_tokens &&
           a->reasoning_tokens == b->reasoning_tokens;
}

bool wire_is_count(int64_t n)
{
    return n >= 0 && n <= RV_USAGE_MAX;
}

void wire_reader_usage(rv_wire_reader *r, const struct rv_usage *totals)
{
    bool is_new = !r->has_usage || !same_usage(&r->usage, totals);

    if (r->has_false_usage || !wire_is_count(totals->input_tokens) || !wire_is_count(totals->output_tokens) ||
        !wire_is_count(totals->cached_tokens) || !wire_is_count(totals->cache_write_tokens) ||
        !wire_is_count(totals->reasoning_tokens)) {
        r->has_false_usage = true; /* the other counts are worth no more */
        r->has_usage = false;
        return;
    }
    r->usage = *totals;
    if (!r->knows_input || !r->knows_output)
        return;
    r->has_usage = true;
    if (is_new && r->has_begun)
        hand_usage(r);
}

/* --- JSON of an answer --- */

int wire_reader_json(rv_wire_reader *r, rv_str text, json_object **out, rv_err **err)
{
    /* What servers write is taken as every other client takes it: the last of equal keys, big counters as they are. */
    static const struct rv_json_opts opts = {.max_bytes = WIRE_MAX_WHOLE, .allow_duplicates = true, .what = "its JSON"};
    rv_buf marked = RV_BUF_INIT(WIRE_MAX_WHOLE), shown = RV_BUF_INIT(WIRE_MAX_WHY / 2);
    json_object *value = NULL;
    rv_err *why = NULL;
    int rc;

    *out = NULL;
    wire_half_mark(text, &marked, &r->has_halves);
    rc = rv_buf_check(&marked, "an event", &why);
    if (rc == 0)
        rc = rv_json_parse(r->has_halves ? rv_buf_str(&marked) : text, &opts, &value, &why);
    if (rc < 0 || !json_object_is_type(value, json_type_object))
        wire_show(text, &shown);
    if (rv_err_is(why, RV_E_NOMEM) || shown.rc == RV_E_NOMEM) { /* also where only the words found none */
        rc = RV_FAIL(err, RV_E_NOMEM, "no memory to read an answer");
    } else if (rc < 0) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the answer cannot be understood: %s: %s", rv_err_text(why),
                          rv_buf_cstr(&shown));
        rc = 0;
    } else if (!json_object_is_type(value, json_type_object)) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the answer cannot be understood: it is not a JSON object: %s",
                          rv_buf_cstr(&shown));
    } else {
        *out = value;
        value = NULL;
    }
    json_object_put(value);
    rv_buf_fini(&marked);
    rv_buf_fini(&shown);
    rv_err_free(why);
    return rc;
}

int wire_reader_fault(rv_wire_reader *r, json_object *body, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_WIRE_MAX_ERROR), shown = RV_BUF_INIT(WIRE_MAX_WHY / 2);
    int kind = RV_LLM_ERROR_OVERLOADED, rc;
    bool retryable = true;

    r->codec->fault(body, 0, &kind, &retryable, &text);
    wire_show(rv_buf_str(&text), &shown);
    rc = text.rc == RV_E_NOMEM ? rv_buf_check(&text, "a provider's error", err)
                               : rv_buf_check(&shown, "a provider's error", err);
    if (rc == 0) {
        wire_reader_break(r, (enum rv_llm_error)kind, "the provider broke off: %s",
                          shown.len ? rv_buf_cstr(&shown) : "it does not say why");
        r->broken_for_good = !retryable;
    }
    rv_buf_fini(&text);
    rv_buf_fini(&shown);
    return rc;
}

/* --- the end --- */

/* A body that can only be parsed when it is complete. */
static int read_rest(rv_wire_reader *r, rv_err **err)
{
    json_object *reply = NULL;
    rv_err *why = NULL;
    int rc;

    if (r->is_stranger) {
        wire_show(rv_buf_str(&r->whole), &r->joined);
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the answer has the content type \"%s\": %s",
                          rv_buf_cstr(&r->scratch), rv_buf_cstr(&r->joined));
        return rv_buf_check(&r->joined, "the answer", err);
    }
    if (r->ndjson) {
        rc = rv_ndjson_end(r->ndjson, &why);
        return stopped(r, rc, why, err);
    }
    if (!r->is_whole)
        return 0;
    r->has_halves = false;
    rc = wire_reader_json(r, rv_buf_str(&r->whole), &reply, err);
    if (rc == 0 && reply)
        rc = r->codec->whole(r, reply, err);
    json_object_put(reply);
    r->may_end = true;
    return rc;
}

static int settled_finish(const rv_wire_reader *r, size_t n_calls)
{
    if (n_calls && (r->finish == RV_FINISH_STOP || r->finish == RV_FINISH_OTHER || r->finish == RV_UNSET))
        return RV_FINISH_TOOL_CALLS; /* servers are not to be relied on here: what came counts */
    if (!n_calls && r->finish == RV_FINISH_TOOL_CALLS)
        return RV_FINISH_STOP;
    return r->finish;
}

static int end_well(rv_wire_reader *r, struct rv_llm_reply *out, rv_err **err)
{
    rv_str lost = {NULL, 0};
    size_t n_calls = 0;
    int rc = 0;

    if (wire_half_is_lost(&r->half, &lost)) {
        r->has_halves = false;
        rc = wire_reader_text(r, lost, err);
    }
    if (rc == 0)
        rc = wire_reader_end_calls(r, &out->tool_calls, &n_calls, err);
    if (rc == 0 && r->blocks && !r->is_broken) {
        rv_jw w = rv_jw_on(&out->opaque);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "provider", r->target.provider);
        rv_jw_kv_value(&w, "blocks", r->blocks);
        rv_jw_obj_end(&w);
        if (out->opaque.rc == RV_E_LIMIT)
            wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "what the provider wants back is too long");
        else
            rc = rv_buf_check(&out->opaque, "what the provider wants back", err);
    }
    if (rc < 0 || r->is_broken)
        return rc;
    out->answer.finish = settled_finish(r, n_calls);
    if (out->answer.finish != RV_UNSET && r->on_delta)
        r->on_delta(r->self, &(struct rv_llm_delta){.kind = RV_LLM_DELTA_FINISH, .finish = out->answer.finish});
    return 0;
}

static int end_badly(rv_wire_reader *r, const char *why, enum rv_llm_error kind, struct rv_llm_reply *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_WIRE_MAX_ERROR);
    int rc = rv_buf_check(&r->broken_why, "why an answer cannot be used", err);

    if (r->is_broken)
        kind = (enum rv_llm_error)r->broken_kind;
    else if (!why)
        kind = RV_LLM_ERROR_PROTOCOL;
    wire_name_target(&r->target, &text);
    rv_buf_printf(&text, ": %s",
                  r->is_broken ? rv_buf_cstr(&r->broken_why)
                  : why        ? why
                               : "the stream ended before the answer was complete");
    if (rc == 0)
        rc = rv_buf_check(&text, "why an answer cannot be used", err);
    if (rc == 0) {
        rv_llm_reply_fail(out, kind, "%s", rv_buf_cstr(&text));
        rc = rv_buf_check(&out->error, "why an answer cannot be used", err);
    }
    rv_buf_fini(&text);
    rv_buf_clear(&out->tool_calls);
    rv_buf_clear(&out->opaque);
    if (r->broken_for_good)
        out->retryable = false;
    out->answer.may_be_billed = true; /* it had begun to answer */
    return rc;
}

int rv_wire_end(rv_wire_reader *r, const char *why, enum rv_llm_error kind, struct rv_llm_reply *out, rv_err **err)
{
    rv_buf empty;
    int rc = 0;

    rv_llm_reply_init(out);
    if (!why && !rv_wire_is_done(r))
        rc = read_rest(r, err);
    if (rc == 0 && !r->is_broken && (r->saw_end || r->may_end))
        rc = end_well(r, out, err);
    if (rc == 0 && (r->is_broken || !(r->saw_end || r->may_end)))
        rc = end_badly(r, why, kind, out, err);
    if (rc < 0) {
        rv_llm_reply_fini(out);
        return rc;
    }
    empty = out->text;
    out->text = r->text;
    r->text = empty;
    out->answer.usage = r->usage;
    out->answer.has_usage = r->has_usage;
    return 0;
}
