/* How an answer ends: what came is made a reply, or a failure that keeps the text. */
#include "coreengine/model/wire/wire_internal.h"

/* A body that can only be parsed when it is complete. */
static int read_rest(rv_wire_reader *r, rv_err **err)
{
    json_object *reply = NULL;
    rv_err *why = NULL;
    int rc;

    if (r->is_stranger) {
        rv_wire_show(rv_buf_str(&r->whole), &r->joined);
        rv_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the answer has the content type \"%s\": %s",
                        rv_buf_cstr(&r->scratch), rv_buf_cstr(&r->joined));
        return rv_buf_check(&r->joined, "the answer", err);
    }
    if (r->ndjson) {
        rc = rv_ndjson_end(r->ndjson, &why);
        return rv_reader_stopped(r, rc, why, err);
    }
    if (!r->is_whole)
        return 0;
    r->has_halves = false;
    rc = rv_reader_json(r, rv_buf_str(&r->whole), &reply, err);
    if (rc == 0 && reply)
        rc = r->codec->whole(r, reply, err);
    json_object_put(reply);
    r->may_end = true;
    return rc;
}

int rv_reader_is_object(rv_str text, bool *is, rv_err **err)
{
    static const struct rv_json_opts opts = {.allow_duplicates = true};
    struct rv_json_scan scan = {RV_JSON_SYNTAX, 0, false};
    int rc;

    text = rv_str_trim(text);
    *is = false;
    if (text.len == 0 || text.ptr[0] != '{')
        return 0;
    rc = rv_json_scan(text, &opts, &scan, NULL, err);
    *is = rc == 0 && scan.how == RV_JSON_VALUE && scan.end == text.len;
    return rc;
}

static bool is_cut_off(const rv_wire_reader *r)
{
    return r->finish == RV_FINISH_LENGTH || r->finish == RV_FINISH_CONTENT_FILTER || r->finish == RV_FINISH_REFUSAL;
}

/* Of a reply that was cut off, a call is kept when nothing can be missing from it. A wire may close the last one where
 * the text was cut, so that only its JSON tells; one before the last may be wrong, which the model will be told. */
static int is_kept(const rv_wire_reader *r, const struct wire_call *c, bool *kept, rv_err **err)
{
    bool is_last = c == &r->calls[r->n_calls - 1];
    int rc;

    *kept = true;
    if (!is_cut_off(r))
        return 0;
    if (!c->started) {
        *kept = false;
        return 0;
    }
    rc = rv_reader_is_object(rv_buf_str(&c->arguments), kept, err);
    if (rc == 0 && !*kept && !is_last)
        *kept = c->ended || c->arguments.len == 0;
    return rc;
}

static int end_call(rv_wire_reader *r, struct wire_call *c, rv_jw *w, rv_err **err)
{
    rv_str lost = {NULL, 0}, arguments;
    int rc = 0;

    if (!c->started) {
        rv_reader_break(r, RV_LLM_ERROR_PROTOCOL, "a tool call has no name");
        return 0;
    }
    if (!c->ended && rv_half_is_lost(&c->half, &lost)) {
        r->has_halves = false;
        rc = rv_reader_arguments(r, c, lost, err);
        if (rc < 0)
            return rc;
    }
    rv_reader_call_ends(r, c);
    arguments = rv_buf_str(&c->arguments);
    if (rv_str_trim(arguments).len == 0)
        arguments = RV_STR_LIT("{}"); /* how many models call what takes nothing */
    rv_jw_obj(w);
    rv_jw_kv_str(w, "id", rv_buf_str(&c->id));
    rv_jw_kv_str(w, "name", rv_buf_str(&c->name));
    rv_jw_kv_str(w, "arguments", arguments);
    rv_jw_obj_end(w);
    return 0;
}

static int end_calls(rv_wire_reader *r, rv_buf *out, size_t *n_kept, rv_err **err)
{
    rv_jw w = rv_jw_on(out);
    int rc = 0;

    rv_jw_arr(&w);
    for (size_t i = 0; i < r->n_calls && rc == 0 && !r->is_broken; i++) {
        bool kept = true;
        rc = is_kept(r, &r->calls[i], &kept, err);
        if (rc == 0 && kept) {
            rc = end_call(r, &r->calls[i], &w, err);
            ++*n_kept;
        }
    }
    rv_jw_arr_end(&w);
    if (rc == 0)
        rc = rv_buf_check(out, "the tool calls of a reply", err);
    if (rc == 0 && *n_kept == 0)
        rv_buf_clear(out);
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

    if (rv_half_is_lost(&r->half, &lost)) {
        r->has_halves = false;
        rc = rv_reader_text(r, lost, err);
    }
    if (rc == 0)
        rc = end_calls(r, &out->tool_calls, &n_calls, err);
    if (rc == 0 && r->blocks && !r->is_broken) {
        rv_jw w = rv_jw_on(&out->opaque);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "provider", r->target.provider);
        rv_jw_kv_value(&w, "blocks", r->blocks);
        rv_jw_obj_end(&w);
        if (out->opaque.rc == RV_E_LIMIT)
            rv_reader_break(r, RV_LLM_ERROR_PROTOCOL, "what the provider wants back is too long");
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
    int rc = rv_buf_check(&r->broken_why, "why an answer is no good", err);

    if (r->is_broken)
        kind = (enum rv_llm_error)r->broken_kind;
    else if (!why)
        kind = RV_LLM_ERROR_PROTOCOL;
    rv_wire_name_target(&r->target, &text);
    rv_buf_printf(&text, ": %s",
                  r->is_broken ? rv_buf_cstr(&r->broken_why)
                  : why        ? why
                               : "the stream ended before the answer was complete");
    if (rc == 0)
        rc = rv_buf_check(&text, "why an answer is no good", err);
    if (rc == 0) {
        rv_llm_reply_fail(out, kind, "%s", rv_buf_cstr(&text));
        rc = rv_buf_check(&out->error, "why an answer is no good", err);
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
