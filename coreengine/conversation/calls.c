/* A call as a row describes it: its id, the tool's name and the arguments, each in a form that every provider accepts.
 * Rows of other engines may have anything here; an unusable value counts as missing. */
#include <assert.h>
#include <string.h>

#include "coreengine/conversation/messages_internal.h"

#define UNKNOWN_TOOL "unknown_tool"
#define DERIVED      "call_" /* and the beginning of a hash */
#define DERIVED_HEX  32
#define TOO_LONG     "{\"not_shown\":\"these arguments are too long\"}"

static_assert(sizeof DERIVED + DERIVED_HEX <= MESSAGE_MAX_ID, "a derived id has to fit");

const struct call_keys rv_message_call_keys = {"id", "name", "arguments"};
const struct call_keys rv_message_response_keys = {"id", "name", NULL};
const struct call_keys rv_message_tool_keys = {"tool_call_id", "tool_name", "tool_arguments"};

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

void rv_message_tool_name(rv_str name, char out[MESSAGE_MAX_NAME])
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
    rv_hash_of(id, hex);
    memcpy(out, DERIVED, sizeof DERIVED - 1);
    memcpy(out + sizeof DERIVED - 1, hex, DERIVED_HEX);
    out[sizeof DERIVED - 1 + DERIVED_HEX] = '\0';
}

static json_object *member(json_object *obj, const char *key)
{
    json_object *value = NULL;

    if (json_object_is_type(obj, json_type_object))
        json_object_object_get_ex(obj, key, &value);
    return value;
}

/* NULL: the arguments cannot be read. RV_E_NOMEM only. */
static int parse(rv_str json, json_object **out, rv_err **err)
{
    *out = NULL;
    return rv_json_parse(json, &as_stored, out, NULL) == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "read a tool call") : 0;
}

/* Text that a model meant as arguments and that is not JSON is kept as text (p8-agents 16). */
void rv_message_write_raw(rv_str text, rv_buf *out)
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

    if (rv_message_is_blank(text)) {
        if (json_object_is_type(value, json_type_object))
            rv_json_write(value, out);
    } else {
        int read = rv_json_parse(text, &as_written, &parsed, NULL);
        if (read == RV_E_NOMEM)
            rc = RV_FAIL(err, RV_E_NOMEM, "read the arguments of a tool call");
        else if (read < 0)
            rv_message_write_raw(text, out);
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

int rv_message_read_call(rv_str json, const struct call_keys *keys, struct call_parts *out, rv_err **err)
{
    json_object *call = NULL;
    int rc = json.len ? parse(json, &call, err) : 0;

    *out = (struct call_parts){.arguments = RV_BUF_INIT(MESSAGE_MAX_RESULT)};
    if (rc < 0)
        return rc;
    write_id(rv_json_str(member(call, keys->id)), out->id);
    write_name(rv_json_str(member(call, keys->name)), out->name);
    out->has_arguments = keys->arguments && member(call, keys->arguments);
    if (keys->arguments)
        rc = write_arguments(member(call, keys->arguments), &out->arguments, err);
    json_object_put(call);
    return rc;
}

int rv_message_read_content(rv_str content, struct call_parts *call, bool *is_json, rv_err **err)
{
    json_object *value = NULL;
    int rc = rv_json_parse(content, &as_written, &value, NULL);

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

void rv_message_call_fini(struct call_parts *c)
{
    rv_buf_fini(&c->arguments);
}

int rv_message_is_error(rv_str metadata, bool *is, rv_err **err)
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
