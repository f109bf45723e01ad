/* The answers of providers: the pieces that one hands out while it makes the rest, and its reply or failure as a reply
 * of a model. Pieces are checked one by one, in the engine's process wherever the function runs, and handed on. The
 * first one that breaks a rule ends it, and fails the call after it returned. */
#include "coreengine/model/llm/llm.h"
#include "coreengine/tools/plugin/plugin_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_DEPTH     8   /* of a piece: it has one level, and the error shall say what is wrong with a second one */
#define MAX_CALL_NAME 256 /* bytes of a tool's name or a call's id: longer ones are not names */
#define MAX_MADE_ID   32  /* bytes of an id made for a call that has none: "call_", a number and a NUL */

/* --- pieces --- */

void plugin_pieces_fini(struct rv_plugin_pieces *p)
{
    rv_err_free(p->err);
    p->err = NULL;
}

int plugin_pieces_fail(enum rv_piece_fault fault, rv_err **err)
{
    switch (fault) {
    case RV_PIECE_GOOD:
    case RV_N_PIECE_FAULTS:
        break;
    case RV_PIECE_NULL:
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out a piece that is a null pointer");
    case RV_PIECE_LARGE:
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out pieces of more than %u bytes", RV_CAP_MAX_REPLY);
    case RV_PIECE_LATE:
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out a piece after its answer");
    }
    return 0;
}

int plugin_pieces_check(struct rv_plugin_pieces *p, enum rv_piece_fault fault, rv_err **err)
{
    if (p->rc == 0)
        return plugin_pieces_fail(fault, err);
    rv_err_pass(err, p->err);
    p->err = NULL;
    return p->rc;
}

/* {"text": "..."} or {"thinking": "..."}, and what it holds. */
static int read_piece(json_object *piece, rv_str *out, rv_err **err)
{
    static const char *const keys[] = {"text", "thinking"};
    json_object *value = NULL;
    size_t at = 0;

    if (!json_object_is_type(piece, json_type_object))
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out a piece that is not an object but %s",
                       rv_json_type_text(piece));
    while (at < RV_COUNT(keys) && !json_object_object_get_ex(piece, keys[at], &value))
        at++;
    if (at == RV_COUNT(keys) || json_object_object_length(piece) != 1)
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out a piece that has not \"text\" or \"thinking\" alone");
    if (!json_object_is_type(value, json_type_string))
        return RV_FAIL(err, RV_E_PLUGIN, "it handed out \"%s\" that is not a string but %s", keys[at],
                       rv_json_type_text(value));
    *out = rv_json_str(value);
    return 0;
}

static int check_piece(rv_str json, bool *is_empty, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_CAP_MAX_REPLY, .max_depth = MAX_DEPTH, .what = "piece"};
    json_object *piece = NULL;
    rv_str text = {NULL, 0};
    int rc = rv_json_parse(json, &opts, &piece, err);

    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "it handed out a piece that is not JSON");
    rc = read_piece(piece, &text, err);
    *is_empty = text.len == 0;
    json_object_put(piece);
    return rc;
}

bool plugin_piece(struct rv_plugin_pieces *p, rv_str json)
{
    const struct rv_plugin_call *call = p->call;
    bool is_empty = false;

    if (p->enough)
        return true;
    p->rc = check_piece(json, &is_empty, &p->err);
    if (p->rc < 0)
        p->enough = true;
    else if (!is_empty && call->on_emit)
        p->enough = call->on_emit(call->emit_self, json) != 0;
    return p->enough;
}

/* --- replies. Strict: an unknown member, an invalid count or a call without a name is the provider's mistake, and the
 * error names it for its author --- */

static const char *const reply_keys[] = {"text", "tool_calls", "finish_reason", "usage"};
static const char *const call_keys[] = {"id", "name", "arguments"};
static const struct {
    const char *key;
    size_t at;
} counts[] = {
    {"input_tokens", offsetof(struct rv_usage, input_tokens)},
    {"output_tokens", offsetof(struct rv_usage, output_tokens)},
    {"cached_tokens", offsetof(struct rv_usage, cached_tokens)},
    {"reasoning_tokens", offsetof(struct rv_usage, reasoning_tokens)},
};

static int check_members(json_object *obj, const char *where, const char *const *keys, size_t n, rv_err **err)
{
    json_object_object_foreach (obj, key, value) {
        size_t i = 0;

        (void)value;
        while (i < n && strcmp(keys[i], key) != 0)
            i++;
        if (i == n) {
            const char *nearest = rv_nearest(rv_str_of(key), keys, n);
            int rc = RV_FAIL(err, RV_E_PLUGIN, "%s has an unknown member \"%s\"", where, key);
            if (nearest)
                rv_err_set_hint(err, "did you mean \"%s\"?", nearest);
            return rc;
        }
    }
    return 0;
}

/* A string that has to be there and is a name. */
static int read_word(json_object *obj, const char *where, const char *key, rv_str *out, rv_err **err)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(obj, key, &value))
        return RV_FAIL(err, RV_E_PLUGIN, "%s has no \"%s\"", where, key);
    if (!json_object_is_type(value, json_type_string))
        return RV_FAIL(err, RV_E_PLUGIN, "%s has a \"%s\" that is not a string but %s", where, key,
                       rv_json_type_text(value));
    *out = rv_json_str(value);
    if (out->len == 0 || out->len > MAX_CALL_NAME)
        return RV_FAIL(err, RV_E_PLUGIN, "%s has a \"%s\" of %zu bytes, which is not within 1 and %d", where, key,
                       out->len, MAX_CALL_NAME);
    return 0;
}

/* --- tool calls --- */

/* Whether one of the calls has that id; a few compared with a few. */
static bool has_id(json_object *list, size_t n, rv_str id)
{
    for (size_t i = 0; i < n; i++) {
        json_object *call = json_object_array_get_idx(list, i), *value = NULL;
        if (json_object_is_type(call, json_type_object) && json_object_object_get_ex(call, "id", &value) &&
            rv_str_eq(rv_json_str(value), id))
            return true;
    }
    return false;
}

struct of_list {
    json_object *list; /* borrowed, as the text is */
    size_t i;
    const char *where; /* for messages */
};

/* The id of the i-th call: its own, or one that no call has. */
static int read_id(struct of_list at, int *n_made, char made[MAX_MADE_ID], rv_str *out, rv_err **err)
{
    json_object *call = json_object_array_get_idx(at.list, at.i);
    int rc;

    if (!json_object_object_get_ex(call, "id", NULL)) {
        do
            *out = (rv_str){made, (size_t)snprintf(made, MAX_MADE_ID, "call_%d", ++*n_made)};
        while (has_id(at.list, json_object_array_length(at.list), *out));
        return 0;
    }
    rc = read_word(call, at.where, "id", out, err);
    if (rc == 0 && has_id(at.list, at.i, *out))
        rc = RV_FAIL(err, RV_E_PLUGIN, "%s has the \"id\" of another one", at.where);
    return rc;
}

static int write_arguments(json_object *call, const char *where, rv_jw *w, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    json_object *value = NULL;
    int rc;

    if (!json_object_object_get_ex(call, "arguments", &value))
        return RV_FAIL(err, RV_E_PLUGIN, "%s has no \"arguments\"", where);
    if (json_object_is_type(value, json_type_string)) {
        rv_jw_kv_str(w, "arguments", rv_json_str(value));
        return 0;
    }
    if (!json_object_is_type(value, json_type_object))
        return RV_FAIL(err, RV_E_PLUGIN, "%s has \"arguments\" that are neither a text nor an object but %s", where,
                       rv_json_type_text(value));
    rv_json_write(value, &text);
    rc = rv_buf_check(&text, "arguments of a tool call", err);
    if (rc == 0)
        rv_jw_kv_str(w, "arguments", rv_buf_str(&text));
    return rc;
}

static int read_call(json_object *list, size_t i, int *n_made, rv_jw *w, rv_err **err)
{
    json_object *call = json_object_array_get_idx(list, i);
    char where[64], made[MAX_MADE_ID];
    rv_str id = {NULL, 0}, name = {NULL, 0};
    int rc;

    snprintf(where, sizeof where, "tool call %zu of its answer", i);
    if (!json_object_is_type(call, json_type_object))
        return RV_FAIL(err, RV_E_PLUGIN, "%s is not an object but %s", where, rv_json_type_text(call));
    if ((rc = check_members(call, where, call_keys, RV_COUNT(call_keys), err)) < 0 ||
        (rc = read_id((struct of_list){list, i, where}, n_made, made, &id, err)) < 0 ||
        (rc = read_word(call, where, "name", &name, err)) < 0)
        return rc;
    rv_jw_obj(w);
    rv_jw_kv_str(w, "id", id);
    rv_jw_kv_str(w, "name", name);
    rc = write_arguments(call, where, w, err);
    rv_jw_obj_end(w);
    return rc;
}

static int read_calls(json_object *reply, struct rv_llm_reply *out, rv_err **err)
{
    json_object *list = NULL;
    rv_jw w = rv_jw_on(&out->tool_calls);
    int n_made = 0, rc = 0;
    size_t n;

    if (!json_object_object_get_ex(reply, "tool_calls", &list))
        return 0;
    if (!json_object_is_type(list, json_type_array))
        return RV_FAIL(err, RV_E_PLUGIN, "its answer has \"tool_calls\" that are not a list but %s",
                       rv_json_type_text(list));
    n = json_object_array_length(list);
    if (n > RV_LLM_MAX_TOOL_CALLS)
        return RV_FAIL(err, RV_E_PLUGIN, "its answer has %zu tool calls, more than %d", n, RV_LLM_MAX_TOOL_CALLS);
    if (n == 0)
        return 0;
    rv_jw_arr(&w);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_call(list, i, &n_made, &w, err);
    rv_jw_arr_end(&w);
    return rc < 0 ? rc : rv_buf_check(&out->tool_calls, "tool calls of an answer", err);
}

/* --- the rest --- */

static int read_text(json_object *reply, struct rv_llm_reply *out, rv_err **err)
{
    json_object *text = NULL;

    if (!json_object_object_get_ex(reply, "text", &text))
        return out->tool_calls.len ? 0
                                   : RV_FAIL(err, RV_E_PLUGIN, "its answer has neither \"text\" nor \"tool_calls\"");
    if (!json_object_is_type(text, json_type_string))
        return RV_FAIL(err, RV_E_PLUGIN, "its answer has a \"text\" that is not a string but %s",
                       rv_json_type_text(text));
    rv_buf_add_str(&out->text, rv_json_str(text));
    return rv_buf_check(&out->text, "text of an answer", err);
}

static int read_finish(json_object *reply, struct rv_llm_reply *out, rv_err **err)
{
    enum rv_finish_reason reason;
    json_object *word = NULL;
    int rc;

    out->answer.finish = out->tool_calls.len ? RV_FINISH_TOOL_CALLS : RV_FINISH_STOP;
    if (!json_object_object_get_ex(reply, "finish_reason", &word))
        return 0;
    if (!json_object_is_type(word, json_type_string))
        return RV_FAIL(err, RV_E_PLUGIN, "its answer has a \"finish_reason\" that is not a string but %s",
                       rv_json_type_text(word));
    rc = rv_finish_reason_of(rv_json_str(word), &reason, err);
    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "its answer");
    if (reason == RV_FINISH_TOOL_CALLS && !out->tool_calls.len)
        return RV_FAIL(err, RV_E_PLUGIN, "its answer ended for tool calls and has none");
    out->answer.finish = (int)reason;
    return 0;
}

static int read_count(json_object *usage, const char *key, int64_t *out, rv_err **err)
{
    if (!json_object_object_get_ex(usage, key, NULL))
        return 0;
    if (!rv_json_get_int(usage, key, out) || *out < 0 || *out > RV_USAGE_MAX)
        return RV_FAIL(err, RV_E_PLUGIN, "the usage of its answer has \"%s\" that is not a count", key);
    return 0;
}

/* The cost depends on the usage: without both counts it does not count as usage, and a part must not be larger than the
 * whole. */
static int read_usage(json_object *reply, struct rv_llm_reply *out, rv_err **err)
{
    struct rv_usage *usage = &out->answer.usage;
    const char *keys[RV_COUNT(counts)];
    json_object *json = NULL;
    int rc;

    if (!json_object_object_get_ex(reply, "usage", &json))
        return 0;
    if (!json_object_is_type(json, json_type_object))
        return RV_FAIL(err, RV_E_PLUGIN, "its answer has \"usage\" that is not an object but %s",
                       rv_json_type_text(json));
    for (size_t i = 0; i < RV_COUNT(counts); i++)
        keys[i] = counts[i].key;
    rc = check_members(json, "the usage of its answer", keys, RV_COUNT(keys), err);
    for (size_t i = 0; i < RV_COUNT(counts) && rc == 0; i++)
        rc = read_count(json, counts[i].key, (int64_t *)(void *)((char *)usage + counts[i].at), err);
    if (rc < 0)
        return rc;
    if (usage->cached_tokens > usage->input_tokens)
        return RV_FAIL(err, RV_E_PLUGIN, "the usage of its answer has more \"cached_tokens\" than \"input_tokens\"");
    if (usage->reasoning_tokens > usage->output_tokens)
        return RV_FAIL(err, RV_E_PLUGIN,
                       "the usage of its answer has more \"reasoning_tokens\" than \"output_tokens\"");
    out->answer.has_usage =
        json_object_object_get_ex(json, "input_tokens", NULL) && json_object_object_get_ex(json, "output_tokens", NULL);
    return 0;
}

static int read_reply(rv_str text, struct rv_llm_reply *out, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_CAP_MAX_REPLY, .max_depth = RV_PLUGIN_MAX_DEPTH, .what = "answer"};
    json_object *reply = NULL;
    int rc = rv_json_parse(text, &opts, &reply, err);

    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "it answered what is not JSON");
    if (!json_object_is_type(reply, json_type_object))
        rc = RV_FAIL(err, RV_E_PLUGIN, "it answered a value of type %s, not an object", rv_json_type_text(reply));
    else if ((rc = check_members(reply, "its answer", reply_keys, RV_COUNT(reply_keys), err)) == 0 &&
             (rc = read_calls(reply, out, err)) == 0 && (rc = read_text(reply, out, err)) == 0 &&
             (rc = read_finish(reply, out, err)) == 0)
        rc = read_usage(reply, out, err);
    json_object_put(reply);
    return rc;
}

int rv_plugin_read_llm_reply(rv_str json, struct rv_llm_reply *out, rv_err **err)
{
    struct rv_llm_reply reply;
    int rc;

    rv_llm_reply_init(&reply);
    rc = read_reply(json, &reply, err);
    if (rc < 0) {
        rv_llm_reply_fini(&reply);
        return rc;
    }
    *out = reply;
    return 0;
}

/* The kinds that a provider may name; only the engine may say that a call was cancelled. */
static enum rv_llm_error kind_of(const rv_err *e)
{
    enum rv_llm_error kind = RV_LLM_ERROR_PROTOCOL;

    if (rv_err_is(e, RV_E_CANCELLED))
        return RV_LLM_ERROR_CANCELLED;
    if (rv_err_is(e, RV_E_TIMEOUT))
        return RV_LLM_ERROR_TIMEOUT;
    if (rv_err_is(e, RV_E_NOT_FOUND)) /* no such provider: asking again does not help */
        return RV_LLM_ERROR_BAD_REQUEST;
    if (!rv_err_is(e, RV_E_TOOL) || rv_llm_error_of(rv_str_of(rv_plugin_error_type(e)), &kind, NULL) < 0 ||
        kind == RV_LLM_ERROR_CANCELLED)
        return RV_LLM_ERROR_PROTOCOL;
    return kind;
}

void rv_plugin_make_llm_failure(const rv_err *e, struct rv_llm_reply *out)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(RV_PLUGIN_MAX_TEXT * 4);
    enum rv_llm_error kind = kind_of(e);

    for (const rv_err *link = e; link; link = rv_err_cause(link)) {
        if (text.len)
            rv_buf_puts(&text, ": ");
        rv_buf_puts(&text, rv_err_text(link));
    }
    rv_llm_reply_init(out);
    rv_llm_reply_fail(out, kind, "%s", text.len ? rv_buf_cstr(&text) : "the provider failed and does not say why");
    if (rv_err_is(e, RV_E_PLUGIN))
        out->code = RV_FAILURE_PLUGIN_FAILED;
    /* The provider had the request, and it is unknown how far it got. */
    out->answer.may_be_billed =
        kind == RV_LLM_ERROR_TIMEOUT || kind == RV_LLM_ERROR_CANCELLED || kind == RV_LLM_ERROR_PROTOCOL;
}
