/* The result of a tool becomes an output: structured content, else what its text says. */
#include "coreengine/plan/artifact.h"

struct texts {
    size_t n; /* text blocks */
    rv_buf joined;
};

/* The call failed; text is copied. */
static int failed(struct rv_output *out, const char *code, rv_str text, rv_err **err)
{
    json_object_put(out->value);
    out->value = NULL;
    out->code = code;
    out->text = rv_str_dup(text);
    return out->text ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for the output of a tool");
}

static int malformed(struct rv_output *out, const char *why, rv_err **err)
{
    return failed(out, "invalid_result", rv_str_of(why), err);
}

/* The text blocks of the content, a line feed between two; blocks of other types are not read. */
static int read_texts(json_object *result, struct texts *texts, struct rv_output *out, rv_err **err)
{
    json_object *content = NULL;

    if (!json_object_object_get_ex(result, "content", &content) || !content)
        return 0;
    if (!json_object_is_type(content, json_type_array))
        return malformed(out, "content is not a list", err);
    for (size_t i = 0; i < json_object_array_length(content); i++) {
        json_object *block = json_object_array_get_idx(content, i), *text = NULL;
        const char *type = NULL;
        if (!json_object_is_type(block, json_type_object) || !rv_json_get_text(block, "type", &type))
            return malformed(out, "a block of the content is not an object with a type", err);
        if (!rv_str_is(rv_str_of(type), "text"))
            continue;
        if (!json_object_object_get_ex(block, "text", &text) || !json_object_is_type(text, json_type_string))
            return malformed(out, "a text block of the content has no text", err);
        if (texts->n++ > 0)
            rv_buf_putc(&texts->joined, '\n');
        rv_buf_add_str(&texts->joined, rv_json_str(text));
    }
    if (texts->joined.rc == RV_E_LIMIT)
        return malformed(out, "the text of the content is too long", err);
    return rv_buf_check(&texts->joined, "text of a tool", err);
}

/* N1, N7: the text blocks say why, else the structured content, which no schema is asked about. */
static int tool_failed(const struct texts *texts, json_object *structured, struct rv_output *out, rv_err **err)
{
    if (texts->n > 0)
        return failed(out, "tool_error", rv_buf_str(&texts->joined), err);
    if (!structured)
        return failed(out, "tool_error", RV_STR_LIT("Unknown error"), err);
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    rv_json_write(structured, &text);
    int rc = text.rc == RV_E_NOMEM ? rv_buf_check(&text, "error of a tool", err)
             : text.rc < 0         ? malformed(out, "the structured content of an error is too long", err)
                                   : failed(out, "tool_error", rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc;
}

/* N4: a single text that is an object or a list is that, any other text is a string; no text is null. */
static int output_of_texts(const struct texts *texts, struct rv_output *out, rv_err **err)
{
    struct rv_json_opts opts = {.what = "text of a tool"};
    json_object *value = NULL;

    if (texts->n == 0)
        return 0;
    if (texts->n == 1) {
        int rc = rv_json_try_parse(rv_buf_str(&texts->joined), &opts, &value, err);
        if (rc < 0)
            return rc;
        if (json_object_is_type(value, json_type_object) || json_object_is_type(value, json_type_array)) {
            out->value = value;
            return 0;
        }
        json_object_put(value);
    }
    rv_str text = rv_buf_str(&texts->joined);
    out->value = json_object_new_string_len(text.ptr ? text.ptr : "", (int)text.len); /* the buffer has a ceiling */
    return out->value ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for the output of a tool");
}

/* N2, N5: structured content of any type is the output, if it is what the tool promises. */
static int output_of_structured(json_object *structured, const struct rv_output_promise *promise, struct rv_output *out,
                                rv_err **err)
{
    rv_err *why = NULL;
    int rc = 0;

    out->value = json_object_get(structured);
    if (!promise->has_schema || promise->check == RV_OUTPUT_OFF || !promise->fits)
        return 0;
    int fits = promise->fits(promise->schema, structured, &why);
    if (fits == RV_E_NOMEM) {
        rc = RV_FAIL(err, RV_E_NOMEM, "no memory for the output of a tool");
    } else if (fits < 0 && promise->check == RV_OUTPUT_STRICT) {
        rc = failed(out, "output_schema_violation", rv_str_of(rv_err_text(why)), err);
    } else if (fits < 0) {
        out->text = rv_str_dup(rv_str_of(rv_err_text(why)));
        rc = out->text ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for the output of a tool");
    }
    rv_err_free(why);
    return rc;
}

int rv_output_build(json_object *result, const struct rv_output_promise *promise, struct rv_output *out, rv_err **err)
{
    struct texts texts = {0, RV_BUF_INIT(RV_JSON_MAX_BYTES)};
    json_object *structured = NULL, *flag = NULL;

    *out = (struct rv_output){0};
    if (!json_object_is_type(result, json_type_object))
        return malformed(out, "the result is not an object", err);
    json_object_object_get_ex(result, "structuredContent", &structured);
    json_object_object_get_ex(result, "isError", &flag);
    if (flag && !json_object_is_type(flag, json_type_boolean))
        return malformed(out, "isError is not a boolean", err);
    int rc = read_texts(result, &texts, out, err);
    if (rc == 0 && !out->code) {
        if (flag && json_object_get_boolean(flag)) /* N6: absent is false */
            rc = tool_failed(&texts, structured, out, err);
        else if (structured)
            rc = output_of_structured(structured, promise, out, err);
        else if (promise->has_schema) /* N3 */
            rc = failed(out, "missing_structured_content",
                        RV_STR_LIT("the tool declares an output schema, but its result has no structuredContent"), err);
        else
            rc = output_of_texts(&texts, out, err);
    }
    rv_buf_fini(&texts.joined);
    return rc;
}
