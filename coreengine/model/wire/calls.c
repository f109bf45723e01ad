/* Tool calls of an answer: while their pieces come, and those that are kept at its end. */
#include <stdlib.h>

#include "coreengine/model/wire/wire_internal.h"

#define MAX_NAME ((size_t)1 << 10) /* of a tool call: its id, its name */

static int make_call(rv_wire_reader *r, int64_t key, rv_err **err)
{
    if (!rv_has_room(&r->calls, &r->cap_calls, r->n_calls + 1, sizeof *r->calls))
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a tool call");
    r->calls[r->n_calls++] = (struct wire_call){.key = key,
                                                .id = RV_BUF_INIT(MAX_NAME),
                                                .sent_id = RV_BUF_INIT(MAX_NAME),
                                                .name = RV_BUF_INIT(MAX_NAME),
                                                .arguments = RV_BUF_INIT(RV_LLM_MAX_REPLY)};
    return 0;
}

struct wire_call *wire_reader_call(rv_wire_reader *r, int64_t key, int *rc, rv_err **err)
{
    *rc = 0;
    for (size_t i = r->n_calls; key >= 0 && i-- > 0;)
        if (r->calls[i].key == key)
            return &r->calls[i];
    if (r->n_calls == RV_LLM_MAX_TOOL_CALLS) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the reply has more than %d tool calls", RV_LLM_MAX_TOOL_CALLS);
        return NULL;
    }
    *rc = make_call(r, key, err);
    return *rc < 0 ? NULL : &r->calls[r->n_calls - 1];
}

static bool is_taken(const rv_wire_reader *r, const struct wire_call *c)
{
    for (size_t i = 0; i < r->n_calls; i++)
        if (&r->calls[i] != c && r->calls[i].started && rv_str_eq(rv_buf_str(&r->calls[i].id), rv_buf_str(&c->id)))
            return true;
    return false;
}

static int name_call(rv_wire_reader *r, struct wire_call *c, rv_err **err)
{
    for (size_t n = 1; c->id.rc == 0 && (c->id.len == 0 || is_taken(r, c)); n++) {
        rv_buf_clear(&c->id);
        rv_buf_printf(&c->id, "call_%zu", n);
    }
    if (c->id.rc == RV_E_LIMIT || c->name.rc == RV_E_LIMIT) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the id or the name of a tool call is longer than %zu bytes",
                          MAX_NAME);
        return 0;
    }
    json_object *real = NULL;
    if (r->tool_names && c->name.rc == 0 && json_object_object_get_ex(r->tool_names, rv_buf_cstr(&c->name), &real)) {
        rv_buf_clear(&c->name);
        rv_buf_add_str(&c->name, rv_json_str(real));
    }
    return c->id.rc ? rv_buf_check(&c->id, "a tool call", err) : rv_buf_check(&c->name, "a tool call", err);
}

static size_t index_of(const rv_wire_reader *r, const struct wire_call *c)
{
    return (size_t)(c - r->calls);
}

static void hand_arguments(rv_wire_reader *r, const struct wire_call *c, rv_str text)
{
    if (text.len)
        wire_reader_hand(
            r, (struct rv_llm_delta){.kind = RV_LLM_DELTA_TOOL_ARGUMENTS, .index = index_of(r, c), .text = text});
}

/* Another call begins: those before it have all of their arguments. Against the protocol, a few servers mix the pieces
 * of several calls: a call whose arguments are not a complete object yet is left open. */
static int end_those_before(rv_wire_reader *r, const struct wire_call *next, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < r->n_calls && rc == 0; i++) {
        struct wire_call *c = &r->calls[i];
        bool is_complete = false;
        if (c == next || !c->started || c->ended)
            continue;
        rc = wire_reader_call_is_complete(c, &is_complete, err);
        if (rc == 0 && is_complete)
            wire_reader_call_ends(r, c);
    }
    return rc;
}

int wire_reader_call_starts(rv_wire_reader *r, struct wire_call *c, rv_err **err)
{
    int rc;

    if (c->started || (c->name.len == 0 && c->name.rc == 0))
        return 0;
    rc = end_those_before(r, c, err);
    if (rc == 0)
        rc = name_call(r, c, err);
    if (rc < 0 || r->is_broken)
        return rc;
    c->started = true;
    wire_reader_hand(r, (struct rv_llm_delta){.kind = RV_LLM_DELTA_TOOL_START,
                                              .index = index_of(r, c),
                                              .id = rv_buf_str(&c->id),
                                              .name = rv_buf_str(&c->name)});
    hand_arguments(r, c, rv_buf_str(&c->arguments));
    return 0;
}

int wire_reader_arguments(rv_wire_reader *r, struct wire_call *c, rv_str text, rv_err **err)
{
    text = wire_half_join(&c->half, r->has_halves, text, &r->joined);
    if (r->joined.rc)
        return rv_buf_check(&r->joined, "the reply", err);
    if (c->ended && rv_str_trim(text).len == 0)
        return 0;
    if (c->ended)
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "arguments of a tool call came after its end");
    if (!text.len || c->ended || !wire_reader_fits(r, text.len))
        return 0;
    rv_buf_add_str(&c->arguments, text);
    if (c->arguments.rc)
        return rv_buf_check(&c->arguments, "the arguments of a tool call", err);
    if (c->started)
        hand_arguments(r, c, text);
    return 0;
}

int wire_reader_arguments_object(rv_wire_reader *r, struct wire_call *c, json_object *arguments, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    int rc = 0;

    rv_json_write(arguments, &text);
    if (text.rc == RV_E_LIMIT)
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the reply is longer than %zu bytes", RV_LLM_MAX_REPLY);
    else
        rc = rv_buf_check(&text, "the arguments of a tool call", err);
    if (rc == 0 && !r->is_broken)
        rc = wire_reader_arguments(r, c, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc;
}

static int is_object(rv_str text, bool *is, rv_err **err)
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

static void look_at(struct wire_brackets *b, char c)
{
    if (b->in_text) {
        b->in_text = c != '"' || b->is_escaped;
        b->is_escaped = c == '\\' && !b->is_escaped;
    } else if (c == '"') {
        b->in_text = true;
    } else if (c == '{' || c == '[') {
        b->depth++;
    } else if ((c == '}' || c == ']') && b->depth > 0) {
        b->are_closed = --b->depth == 0;
    }
}

int wire_reader_call_is_complete(struct wire_call *c, bool *is, rv_err **err)
{
    struct wire_brackets *b = &c->brackets;
    int rc;

    *is = false;
    for (; b->at < c->arguments.len && !b->are_closed; b->at++)
        look_at(b, c->arguments.ptr[b->at]);
    if (!b->are_closed || b->is_none)
        return 0;
    rc = is_object(rv_buf_str(&c->arguments), is, err);
    b->is_none = rc == 0 && !*is;
    return rc;
}

void wire_reader_call_ends(rv_wire_reader *r, struct wire_call *c)
{
    if (c->started && !c->ended)
        wire_reader_hand(r, (struct rv_llm_delta){.kind = RV_LLM_DELTA_TOOL_END, .index = index_of(r, c)});
    c->ended = true;
}

/* --- the end of the answer --- */

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
    rc = is_object(rv_buf_str(&c->arguments), kept, err);
    if (rc == 0 && !*kept && !is_last)
        *kept = c->ended || c->arguments.len == 0;
    return rc;
}

static int end_call(rv_wire_reader *r, struct wire_call *c, rv_jw *w, rv_err **err)
{
    rv_str lost = {NULL, 0}, arguments;
    int rc = 0;

    if (!c->started) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "a tool call has no name");
        return 0;
    }
    if (!c->ended && wire_half_is_lost(&c->half, &lost)) {
        r->has_halves = false;
        rc = wire_reader_arguments(r, c, lost, err);
        if (rc < 0)
            return rc;
    }
    wire_reader_call_ends(r, c);
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

int wire_reader_end_calls(rv_wire_reader *r, rv_buf *out, size_t *n_kept, rv_err **err)
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
