/* Answers of a REST server as results of tools: data where the body is JSON, else a text or bytes. */
#include "coreengine/openapi/openapi_internal.h"

#include "coreengine/base/base.h"

static rv_str media_type_of(rv_str content_type)
{
    rv_str name = content_type;

    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] == ';')
            name.len = i;
    return rv_str_trim(name);
}

static bool ends_with(rv_str text, const char *end)
{
    size_t n = strlen(end);

    return text.len >= n && rv_mcp_is_same_word((rv_str){text.ptr + text.len - n, n}, (rv_str){end, n});
}

static bool begins_with(rv_str text, const char *begin)
{
    size_t n = strlen(begin);

    return text.len >= n && rv_mcp_is_same_word((rv_str){text.ptr, n}, (rv_str){begin, n});
}

static bool is_json(rv_str type)
{
    return rv_mcp_is_same_word(type, RV_STR_LIT("application/json")) || ends_with(type, "+json");
}

static int add_text(json_object *content, rv_str text, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *block = rv_json_build(&b, content, NULL, json_object_new_object());

    rv_json_build_text(&b, block, "type", "text");
    return b.rc < 0 ? b.rc : rv_json_set_str(block, "text", text, err);
}

/* Bytes: an image or a sound, or a resource of any other type. */
static int add_bytes(json_object *content, const struct rv_openapi_answer *a, rv_str type, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf data = RV_BUF_INIT(2 * RV_JSON_MAX_BYTES);
    struct rv_json_build b = {.err = err};
    bool is_image = begins_with(type, "image/"), is_media = is_image || begins_with(type, "audio/");

    if (!rv_is_media_type(type))
        type = RV_STR_LIT("application/octet-stream");
    rv_base64_write(a->body, &data);
    json_object *block = rv_json_build(&b, content, NULL, json_object_new_object()), *at = block;
    rv_json_build_text(&b, block, "type", is_image ? "image" : is_media ? "audio" : "resource");
    if (!is_media) {
        at = rv_json_build(&b, block, "resource", json_object_new_object());
        rv_json_build_text(&b, at, "uri", a->url);
    }
    int rc = b.rc < 0 ? b.rc : rv_buf_check(&data, "the body of an answer", err);
    if (rc == 0)
        rc = rv_json_set_str(at, is_media ? "data" : "blob", rv_buf_str(&data), err);
    return rc < 0 ? rc : rv_json_set_str(at, "mimeType", type, err);
}

static int add_data(json_object *to, rv_str body, rv_err **err)
{
    const struct rv_json_opts opts = {.what = "the body of the answer"};
    json_object *data = NULL;

    int rc = rv_json_parse(body, &opts, &data, err);
    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_INVALID, "the answer is not the JSON that it says it is");
    if (!data) /* null: a result without data */
        return 0;
    return rv_json_set_take(to, "structuredContent", data, err);
}

static int add_error(json_object *content, const struct rv_openapi_answer *a, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(RV_OPENAPI_MAX_ERROR + 100);
    rv_str body = rv_str_trim(a->body);

    if (a->status)
        rv_buf_printf(&text, "HTTP status %d", a->status);
    if (body.len > 0 && rv_utf8_valid(body, NULL)) {
        rv_buf_puts(&text, a->status ? ": " : "");
        rv_buf_add_str(&text, rv_utf8_cut(body, RV_OPENAPI_MAX_ERROR));
    }
    int rc = rv_buf_check(&text, "an error of a server", err);
    return rc < 0 ? rc : add_text(content, rv_buf_str(&text), err);
}

int rv_openapi_build_result(const struct rv_openapi_answer *a, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *to = json_object_new_object();
    rv_str type = media_type_of(a->content_type);
    bool is_error = a->status < 200 || a->status > 299;
    int rc = to ? 0 : OPENAPI_NOMEM(err);

    if (rc < 0)
        return rc;
    json_object *content = rv_json_build(&b, to, "content", json_object_new_array());
    if (is_error)
        rv_json_build(&b, to, "isError", json_object_new_boolean(true));
    rc = b.rc;
    if (rc == 0 && is_error)
        rc = add_error(content, a, err);
    else if (rc == 0 && a->body.len == 0)
        rc = 0;
    else if (rc == 0 && is_json(type))
        rc = add_data(to, a->body, err);
    else if (rc == 0 &&
             (type.len == 0 || begins_with(type, "text/") || ends_with(type, "xml") ||
              rv_mcp_is_same_word(type, RV_STR_LIT("application/yaml"))) &&
             rv_utf8_valid(a->body, NULL))
        rc = add_text(content, a->body, err);
    else if (rc == 0)
        rc = add_bytes(content, a, type, err);
    if (rc < 0)
        json_object_put(to);
    else
        *out = to;
    return rc;
}
