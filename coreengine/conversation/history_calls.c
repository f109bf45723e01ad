/* Rows of tools in a history. Results come before their calls, since the walk goes back in time: room is set aside for
 * a result when it is read, and it waits until its call is found.
 *
 * A call is always shown with a result and a result with a call. A call that has none says so; a result whose call is
 * not in its turn stands behind one that is made up (remlight 14, rule 5).
 *
 * Rows of other engines may have anything where a call is described: its id, the tool's name and the arguments get a
 * form that every provider accepts, and an unusable value counts as missing. */
#include "coreengine/conversation/messages_internal.h"
#include "coreengine/model/llm/llm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN_TOOL "unknown_tool"
#define DERIVED      "call_" /* and the beginning of a hash */
#define DERIVED_HEX  32      /* digits of a hash in an id made for a call that has none */
#define TOO_LONG     "{\"not_shown\":\"these arguments are too long\"}"

static_assert(sizeof DERIVED + DERIVED_HEX <= MESSAGE_MAX_ID, "a derived id has to fit");

struct call_keys {
    const char *id, *name, *arguments; /* of the members; arguments NULL: they are not asked for */
};
static const struct call_keys call_keys = {"id", "name", "arguments"};
static const struct call_keys response_keys = {"id", "name", NULL};
static const struct call_keys tool_keys = {"tool_call_id", "tool_name", "tool_arguments"};

/* Model output: the last of equal keys wins, as the wires read it. A row has one level more than its arguments. */
static const struct rv_json_opts as_written = {.allow_duplicates = true};
static const struct rv_json_opts as_stored = {.max_depth = RV_JSON_MAX_DEPTH + 1, .allow_duplicates = true};

static bool is_legal(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static void write_name(rv_str name, char out[MESSAGE_MAX_NAME])
{
    size_t n = name.len < MESSAGE_MAX_NAME ? name.len : MESSAGE_MAX_NAME - 1;

    for (size_t i = 0; i < n; i++)
        out[i] = is_legal(name.ptr[i]) ? name.ptr[i] : '_';
    out[n] = '\0';
}

void rv_message_make_tool_name(rv_str name, char out[MESSAGE_MAX_NAME])
{
    write_name(name.len ? name : RV_STR_LIT(UNKNOWN_TOOL), out);
}

/* An id that a provider would refuse is replaced by one that follows from it, so that a call and its result still have
 * the same. */
static void write_id(rv_str id, char out[MESSAGE_MAX_ID])
{
    char hex[RV_HASH_MAX];
    bool good = id.len < MESSAGE_MAX_ID;

    for (size_t i = 0; good && i < id.len; i++)
        good = is_legal(id.ptr[i]);
    if (good) {
        memcpy(out, id.len ? id.ptr : "", id.len);
        out[id.len] = '\0';
        return;
    }
    rv_hash_format(id, hex);
    memcpy(out, DERIVED, sizeof DERIVED - 1);
    memcpy(out + sizeof DERIVED - 1, hex, DERIVED_HEX);
    out[sizeof DERIVED - 1 + DERIVED_HEX] = '\0';
}

/* NULL: the arguments cannot be read. RV_E_NOMEM only. */
static int parse(rv_str json, json_object **out, rv_err **err)
{
    return rv_json_try_parse(json, &as_stored, out, err);
}

/* Text that a model meant as arguments and that is not JSON is kept as text (p8-agents 16). */
/* Wrap text that is not JSON as {"raw": text}. */
static void write_raw(rv_str text, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_str(&w, "raw", text);
    rv_jw_obj_end(&w);
}

static int write_arguments(json_object *value, rv_buf *out, rv_err **err)
{
    rv_str text = rv_json_str(value);
    json_object *parsed = NULL;
    int rc = 0;

    if (conversation_message_is_blank(text)) {
        if (json_object_is_type(value, json_type_object))
            rv_json_write(value, out);
    } else {
        int read = rv_json_parse(text, &as_written, &parsed,
                                 RV_CODE_ONLY("text that is not JSON is kept as text; want of memory is told below"));
        if (read == RV_E_NOMEM)
            rc = RV_FAIL(err, RV_E_NOMEM, "read the arguments of a tool call");
        else if (read < 0)
            write_raw(text, out);
        else if (json_object_is_type(parsed, json_type_object))
            rv_json_write(parsed, out);
        json_object_put(parsed);
    }
    if (rc == 0 && out->rc == RV_E_LIMIT) {
        rv_buf_clear(out);
        rv_buf_puts(out, TOO_LONG);
    }
    if (rc == 0 && out->rc == 0 && out->len == 0)
        rv_buf_puts(out, "{}");
    return rc < 0 ? rc : rv_buf_check(out, "the arguments of a tool call", err);
}

/* RV_E_NOMEM only. out is zeroed or finished by the caller, on every path. */
static int read_call(rv_str json, const struct call_keys *keys, struct call_parts *out, rv_err **err)
{
    json_object *call = NULL;
    int rc = json.len ? parse(json, &call, err) : 0;

    *out = (struct call_parts){.arguments = RV_BUF_INIT(MESSAGE_MAX_RESULT)};
    if (rc < 0)
        return rc;
    write_id(rv_json_member_str(call, keys->id), out->id);
    write_name(rv_json_member_str(call, keys->name), out->name);
    out->has_arguments = keys->arguments && rv_json_member(call, keys->arguments);
    if (keys->arguments)
        rc = write_arguments(rv_json_member(call, keys->arguments), &out->arguments, err);
    json_object_put(call);
    return rc;
}

/* What the content of a row says beside its metadata: arguments that it has as a JSON object, where those of the call
 * are missing. *is_json false: it is another text. RV_E_NOMEM only. */
static int read_content(rv_str content, struct call_parts *call, bool *is_json, rv_err **err)
{
    json_object *value = NULL;
    int rc = rv_json_parse(content, &as_written, &value,
                           RV_CODE_ONLY("text that is not JSON is the content; want of memory is told below"));

    *is_json = rc == 0;
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read the content of a tool row");
    rc = 0;
    if (!call->has_arguments && json_object_is_type(value, json_type_object)) {
        rv_buf_clear(&call->arguments);
        rc = write_arguments(value, &call->arguments, err);
    }
    json_object_put(value);
    return rc;
}

void conversation_message_call_fini(struct call_parts *c)
{
    rv_buf_fini(&c->arguments);
}

/* Tells whether the metadata of a row says that the result is an error; RV_E_NOMEM only. */
static int is_error_row(rv_str metadata, bool *is, rv_err **err)
{
    json_object *json = NULL;
    int rc;

    *is = false;
    if (metadata.len == 0)
        return 0;
    rc = parse(metadata, &json, err);
    if (rc == 0 && json_object_is_type(json, json_type_object) && !rv_json_get_bool(json, "is_error", is))
        *is = false;
    json_object_put(json);
    return rc;
}

#define NO_RESULT "no result was recorded for this call"
#define NOTHING   "{}" /* remlight 14, rule 11 */

/* --- results --- */

struct result {
    rv_str text; /* as it is shown */
    int64_t tokens;
    bool is_error, is_too_long;
    rv_buf room; /* for what is not as it is stored */
};

static int read_result(const struct rv_message *row, struct result *r, rv_err **err)
{
    rv_str content = row->has_content ? row->content : (rv_str){NULL, 0};
    int rc = is_error_row(row->metadata, &r->is_error, err);

    if (rc < 0)
        return rc;
    rv_buf_init(&r->room, SIZE_MAX / 2);
    if (content.len > MESSAGE_MAX_RESULT) {
        rv_buf_printf(&r->room, "a result of %zu bytes was recorded; it is too long to be shown", content.len);
        r->text = rv_buf_str(&r->room);
        r->is_too_long = true;
    } else if (conversation_message_is_blank(content)) {
        r->text = RV_STR_LIT(NOTHING);
    } else {
        r->text = conversation_message_clean(content, &r->room);
    }
    rc = rv_buf_check(&r->room, "the result of a tool call", err);
    r->tokens = r->text.ptr == content.ptr && row->token_count >= 0 ? row->token_count : rv_tokens_estimate(r->text);
    return rc;
}

/* {"raw": text} in its place. */
static int wrap_raw(struct result *r, rv_err **err)
{
    rv_buf wrapped = RV_BUF_INIT(SIZE_MAX / 2);

    write_raw(r->text, &wrapped);
    int rc = rv_buf_check(&wrapped, "the result of a tool call", err);
    rv_buf_fini(&r->room);
    r->room = wrapped;
    r->text = rv_buf_str(&r->room);
    r->tokens = rv_tokens_estimate(r->text);
    return rc;
}

static void result_fini(struct result *r)
{
    rv_buf_fini(&r->room);
}

static int push_result(struct rv_history *h, const struct rv_message *row, const struct result *r, struct shown **out,
                       rv_err **err)
{
    int rc = history_push(h, r->tokens, out, err);

    if (rc < 0)
        return rc;
    (*out)->seq = row->seq;
    (*out)->is_error = r->is_error;
    rv_buf_add_str(&(*out)->text, r->text);
    return rv_buf_check(&(*out)->text, "the result of a tool call", err);
}

/* --- what waits --- */

static int wait_for_call(struct rv_history *h, struct shown *s, const struct call_parts *call, rv_err **err)
{
    struct waiting *w;

    if (!rv_has_room(&h->waiting, &h->cap_waiting, h->n_waiting + 1, sizeof *h->waiting))
        return RV_FAIL(err, RV_E_NOMEM, "keep a result of a history");
    w = &h->waiting[h->n_waiting++];
    w->shown = s;
    memcpy(w->id, call->id, sizeof w->id);
    memcpy(w->name, call->name, sizeof w->name);
    return 0;
}

/* The newest result that waits under that id, for a tool that may be the same; h->n_waiting: none. */
static size_t find_waiting(const struct rv_history *h, const char *id, const char *name)
{
    size_t i = 0;

    for (; i < h->n_waiting; i++) {
        const struct waiting *w = &h->waiting[i];
        if (strcmp(w->id, id) == 0 && (!w->name[0] || !name[0] || strcmp(w->name, name) == 0))
            break;
    }
    return i;
}

/* Takes the result of that call out of those that wait: the one with its id, or else one without an id. False: it has
 * none. */
static bool find_result(struct rv_history *h, const struct call_parts *call, struct waiting *out)
{
    size_t at = find_waiting(h, call->id, call->name);

    if (at == h->n_waiting)
        at = find_waiting(h, "", call->name);
    if (at == h->n_waiting)
        return false;
    *out = h->waiting[at];
    memmove(&h->waiting[at], &h->waiting[at + 1], (h->n_waiting - at - 1) * sizeof *out);
    h->n_waiting--;
    return true;
}

/* --- calls --- */

/* The call is that item's now; its name falls back to the one of the result. */
static void give_call(struct rv_history *h, struct shown *s, struct call_parts *call, int64_t seq, size_t run)
{
    if (!call->name[0])
        memcpy(call->name, s->call.name, sizeof call->name);
    conversation_message_call_fini(&s->call);
    s->call = *call;
    *call = (struct call_parts){0};
    s->seq = seq;
    s->run = run;
    s->age = h->n_calls++;
}

static int show_unanswered(struct rv_history *h, const struct rv_message *row, struct call_parts *call, rv_err **err)
{
    struct result none = {.text = RV_STR_LIT(NO_RESULT), .is_error = true};
    struct shown *s = NULL;
    int rc;

    none.tokens = rv_tokens_estimate(none.text) + rv_tokens_estimate(rv_buf_str(&call->arguments));
    if (!history_fits(h, none.tokens)) {
        history_leave_out(h);
        return 0;
    }
    rc = push_result(h, row, &none, &s, err);
    if (rc == 0)
        give_call(h, s, call, row->seq, h->n_runs);
    return rc;
}

static void show_answered(struct rv_history *h, const struct rv_message *row, struct call_parts *call,
                          struct shown *result)
{
    int64_t tokens = rv_tokens_estimate(rv_buf_str(&call->arguments));

    if (history_fits(h, tokens)) {
        history_charge(h, tokens);
        give_call(h, result, call, row->seq, h->n_runs);
    } else {
        history_drop(h, result);
        history_leave_out(h);
    }
}

/* The output of a structured agent is told by its answer. */
static bool is_output(const struct rv_history *h, const struct call_parts *call)
{
    return h->opts.version >= RV_HISTORY_2 && strcmp(call->name, RV_OUTPUT_TOOL) == 0;
}

int history_add_call(struct rv_history *h, const struct rv_message *row, rv_err **err)
{
    struct call_parts call = {0};
    struct waiting found;
    int rc = read_call(row->tool_calls, &call_keys, &call, err);

    if (rc == 0 && is_output(h, &call)) {
        conversation_message_call_fini(&call);
        return history_pass(h, row);
    }
    if (!h->is_in_run)
        h->n_runs++; /* from 1 */
    h->is_in_run = true;
    if (rc == 0 && !find_result(h, &call, &found))
        rc = show_unanswered(h, row, &call, err);
    else if (rc == 0 && found.shown)
        show_answered(h, row, &call, found.shown);
    conversation_message_call_fini(&call);
    return rc;
}

int history_add_response(struct rv_history *h, const struct rv_message *row, rv_err **err)
{
    struct call_parts call = {0};
    struct result r = {0};
    struct shown *s = NULL;
    int rc = read_call(row->tool_calls, &response_keys, &call, err);
    bool fits;

    if (rc == 0 && is_output(h, &call)) {
        conversation_message_call_fini(&call);
        return history_pass(h, row);
    }
    h->is_in_run = false;
    if (rc == 0)
        rc = read_result(row, &r, err);
    fits = rc == 0 && history_fits(h, r.tokens);
    if (rc == 0 && !fits)
        history_leave_out(h);
    if (fits)
        rc = push_result(h, row, &r, &s, err);
    if (s)
        give_call(h, s, &call, row->seq, 0);
    if (rc == 0)
        rc = wait_for_call(h, s, s ? &s->call : &call, err);
    result_fini(&r);
    conversation_message_call_fini(&call);
    return rc;
}

/* A call and its result in one row (remlight 12): the content is the result, and the arguments where the metadata has
 * none (remlight 14, rules 10 and 11). */
int history_add_tool(struct rv_history *h, const struct rv_message *row, rv_err **err)
{
    struct call_parts call = {0};
    struct result r = {0};
    struct shown *s = NULL;
    bool is_json = true;
    int rc = read_call(row->metadata, &tool_keys, &call, err);

    if (rc == 0 && is_output(h, &call)) {
        conversation_message_call_fini(&call);
        return history_pass(h, row);
    }
    h->is_in_run = false;
    if (rc == 0)
        rc = read_result(row, &r, err);
    if (rc == 0 && h->opts.version >= RV_HISTORY_2 && !r.is_too_long)
        rc = read_content(r.text, &call, &is_json, err);
    if (rc == 0 && !is_json)
        rc = wrap_raw(&r, err);
    r.tokens = r.tokens > INT64_MAX / 2 ? r.tokens : r.tokens + rv_tokens_estimate(rv_buf_str(&call.arguments));
    if (rc == 0 && !history_fits(h, r.tokens))
        history_leave_out(h);
    else if (rc == 0)
        rc = push_result(h, row, &r, &s, err);
    if (s) {
        give_call(h, s, &call, row->seq, 0);
        s->is_one_row = true;
    }
    result_fini(&r);
    conversation_message_call_fini(&call);
    return rc;
}
