/* Messages of JSON-RPC 2.0: read with all their types checked, and written. */
#include "coreengine/base/base.h"
#include "coreengine/mcp/mcp.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

/* --- Revisions --- */

static const char *const versions[] = {
    [RV_MCP_UNKNOWN_VERSION] = "",      [RV_MCP_2024_11_05] = "2024-11-05", [RV_MCP_2025_03_26] = "2025-03-26",
    [RV_MCP_2025_06_18] = "2025-06-18", [RV_MCP_2025_11_25] = "2025-11-25", [RV_MCP_2026_07_28] = "2026-07-28",
};
RV_EACH_HAS_ROW(versions, RV_N_MCP_VERSIONS);

const char *rv_mcp_version_text(enum rv_mcp_version version)
{
    return versions[version];
}

int rv_mcp_version_of(rv_str word)
{
    for (int i = RV_MCP_UNKNOWN_VERSION + 1; i < RV_N_MCP_VERSIONS; i++)
        if (rv_str_is(word, versions[i]))
            return i;
    return RV_UNSET;
}

/* --- Reading --- */

static bool has(json_object *object, const char *key, json_object **out)
{
    *out = NULL;
    return json_object_object_get_ex(object, key, out);
}

static bool is_id(json_object *value)
{
    if (json_object_is_type(value, json_type_string))
        return rv_json_str(value).len <= RV_MCP_MAX_ID;
    return rv_json_is_int(value);
}

static const char bad_id[] = "\"id\" is not an integer, or a string of at most " RV_LIMIT_TEXT(RV_MCP_MAX_ID) " bytes";

/* A string without a NUL inside, so that it may be handled as text. */
static const char *plain_text(json_object *value)
{
    rv_str text = rv_json_str(value);

    return json_object_is_type(value, json_type_string) && !memchr(text.ptr, '\0', text.len)
               ? json_object_get_string(value)
               : NULL;
}

/* Why a request or notification is not one; NULL: it is one. */
static const char *read_call(struct rv_mcp_message *m, bool has_id, json_object *method)
{
    json_object *other;

    m->kind = has_id ? RV_MCP_REQUEST : RV_MCP_NOTIFICATION;
    m->method = plain_text(method);
    if (!m->method)
        return "\"method\" is not text";
    if (has_id && !m->id)
        return bad_id;
    if (has(m->root, "result", &other) || has(m->root, "error", &other))
        return "a message has either \"method\" or an answer";
    if (!has(m->root, "params", &m->params))
        return NULL;
    return json_object_is_type(m->params, json_type_object) ? NULL : "\"params\" is not an object";
}

static const char *read_error(struct rv_mcp_message *m, json_object *error)
{
    int64_t code = 0;

    m->kind = RV_MCP_ERROR;
    if (!json_object_is_type(error, json_type_object))
        return "\"error\" is not an object";
    if (!rv_json_get_int(error, "code", &code) || code < INT_MIN || code > INT_MAX)
        return "\"error.code\" is not an integer of 32 bits";
    m->code = (int)code;
    json_object *text;
    m->text = has(error, "message", &text) ? plain_text(text) : NULL;
    if (!m->text)
        return "\"error.message\" is not text";
    has(error, "data", &m->data);
    return NULL;
}

static const char *read_answer(struct rv_mcp_message *m, bool has_id)
{
    json_object *id, *error;
    bool is_result = has(m->root, "result", &m->result), is_error = has(m->root, "error", &error);

    if (is_result == is_error)
        return is_result ? "a message has either \"result\" or \"error\""
                         : "a message has \"method\", \"result\" or \"error\"";
    if (is_error) {
        if (has_id && !m->id && has(m->root, "id", &id) && id)
            return bad_id;
        return read_error(m, error);
    }
    m->kind = RV_MCP_RESULT;
    if (!m->id)
        return bad_id;
    return json_object_is_type(m->result, json_type_object) ? NULL : "\"result\" is not an object";
}

static const char *read_message(struct rv_mcp_message *m)
{
    json_object *id, *version, *method;

    if (json_object_is_type(m->root, json_type_array))
        return "batches are not supported: send one message at a time";
    if (!json_object_is_type(m->root, json_type_object))
        return "a message is an object";
    bool has_id = has(m->root, "id", &id);
    m->id = is_id(id) ? id : NULL;
    if (!has(m->root, "jsonrpc", &version) || !rv_str_is(rv_json_str(version), "2.0"))
        return "\"jsonrpc\" is not \"2.0\"";
    return has(m->root, "method", &method) ? read_call(m, has_id, method) : read_answer(m, has_id);
}

#define ESCAPE 6         /* bytes of \uXXXX */
#define LOST   "\\ufffd" /* as long as what it replaces, so that places in errors stay */

/* The UTF-16 unit that the escape at p stands for; 0: p holds none, or a NUL. */
static unsigned read_unit(const char *p, size_t n)
{
    unsigned unit = 0;

    if (n < ESCAPE || p[0] != '\\' || p[1] != 'u')
        return 0;
    for (int i = 2; i < ESCAPE; i++) {
        int digit = rv_hex_digit(p[i]);
        if (digit < 0)
            return 0;
        unit = unit * 16 + (unsigned)digit;
    }
    return unit;
}

static bool is_high(unsigned unit)
{
    return unit >= 0xD800 && unit < 0xDC00;
}

static bool is_low(unsigned unit)
{
    return unit >= 0xDC00 && unit < 0xE000;
}

/* Programs that count in UTF-16 cut texts inside of characters, and their JSON has half of one as an escape. Each half
 * that stands alone is replaced. False: there is none. */
static bool replace_halves(rv_str json, rv_buf *out)
{
    size_t from = 0, i = 0;
    const char *slash;

    while (i < json.len && (slash = memchr(json.ptr + i, '\\', json.len - i))) {
        i = (size_t)(slash - json.ptr);
        unsigned unit = read_unit(slash, json.len - i);
        bool is_pair = is_high(unit) && is_low(read_unit(slash + ESCAPE, json.len - i - ESCAPE));
        if (is_pair) {
            i += 2 * (size_t)ESCAPE;
        } else if (is_high(unit) || is_low(unit)) {
            rv_buf_add(out, json.ptr + from, i - from);
            rv_buf_puts(out, LOST);
            from = i += ESCAPE;
        } else {
            i += 2; /* another escape, a backslash too */
        }
    }
    if (from > 0)
        rv_buf_add(out, json.ptr + from, json.len - from);
    return from > 0;
}

static int parse(rv_str bytes, json_object **out, rv_err **err)
{
    static const struct rv_json_opts opts = {
        .max_bytes = RV_MCP_MAX_MESSAGE, .max_depth = RV_MCP_MAX_DEPTH, .what = "the message"};
    rv_buf mended = RV_BUF_INIT(RV_MCP_MAX_MESSAGE);
    rv_err *cause = NULL, **why = err ? &cause : NULL;
    int rc = rv_json_parse(bytes, &opts, out, why);

    if (rc == RV_E_PARSE && replace_halves(bytes, &mended)) {
        rv_err_free(cause);
        cause = NULL;
        rc = rv_buf_check(&mended, "a message of MCP", why);
        if (rc == 0)
            rc = rv_json_parse(rv_buf_str(&mended), &opts, out, why);
    }
    rv_buf_fini(&mended);
    return rc < 0 && err ? rv_err_pass(err, cause) : rc;
}

int rv_mcp_read(rv_str bytes, struct rv_mcp_message *out, int *code, rv_err **err)
{
    int rc, unused;

    *out = (struct rv_mcp_message){0};
    code = code ? code : &unused;
    rc = parse(bytes, &out->root, err);
    if (rc == RV_E_NOMEM)
        return rc;
    if (rc < 0) {
        *code = rc == RV_E_PARSE ? RV_MCP_PARSE_ERROR : RV_MCP_INVALID_REQUEST;
        return RV_WRAP(err, RV_E_INVALID, "not a message of MCP");
    }
    const char *fault = read_message(out);
    if (!fault)
        return 0;
    *out = (struct rv_mcp_message){.id = out->id, .root = out->root};
    *code = RV_MCP_INVALID_REQUEST;
    return RV_FAIL(err, RV_E_INVALID, "not a message of MCP: %s", fault);
}

void rv_mcp_message_fini(struct rv_mcp_message *message)
{
    json_object_put(message->root);
    *message = (struct rv_mcp_message){0};
}

/* --- Writing --- */

static rv_jw begin(rv_buf *out)
{
    rv_jw w = rv_jw_on(out);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "jsonrpc", "2.0");
    return w;
}

static int end(rv_jw *w, rv_err **err)
{
    rv_jw_obj_end(w);
    return rv_buf_check(w->out, "a message of MCP", err);
}

static int end_call(rv_jw *w, const char *method, json_object *params, rv_err **err)
{
    rv_jw_kv_text(w, "method", method);
    if (params)
        rv_jw_kv_value(w, "params", params);
    return end(w, err);
}

int rv_mcp_write_request(int64_t id, const char *method, json_object *params, rv_buf *out, rv_err **err)
{
    rv_jw w = begin(out);

    rv_jw_kv_int(&w, "id", id);
    return end_call(&w, method, params, err);
}

int rv_mcp_write_notification(const char *method, json_object *params, rv_buf *out, rv_err **err)
{
    rv_jw w = begin(out);

    return end_call(&w, method, params, err);
}

int rv_mcp_write_result(json_object *id, json_object *result, rv_buf *out, rv_err **err)
{
    rv_jw w = begin(out);

    rv_jw_kv_value(&w, "id", id);
    if (result)
        rv_jw_kv_value(&w, "result", result);
    else
        rv_jw_key(&w, "result"), rv_jw_raw(&w, RV_STR_LIT("{}"));
    return end(&w, err);
}

int rv_mcp_write_error(json_object *id, int code, const char *text, json_object *data, rv_buf *out, rv_err **err)
{
    rv_jw w = begin(out);

    rv_jw_kv_value(&w, "id", id);
    rv_jw_key(&w, "error");
    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "code", code);
    rv_jw_kv_text(&w, "message", text);
    if (data)
        rv_jw_kv_value(&w, "data", data);
    rv_jw_obj_end(&w);
    return end(&w, err);
}
