/* Results of calls: the data of the pipeline, and the blocks that are for the model beside it. Blocks are
 * hostile: one that is not formed as its type wants it fails the call. */
#include "coreengine/base/base.h"
#include "coreengine/mcp/tools_internal.h"

#define NOMEM(err) RV_FAIL((err), RV_E_NOMEM, "no memory for the answer of an MCP server")

/* --- blocks --- */

/* Of blocks that were read. */
struct blocks {
    json_object *parts; /* owned */
    const char *fault;  /* static; why the result is invalid; NULL: it is not */
    size_t n_unknown;   /* of types that the protocol does not name */
    bool is_more;       /* one of them is not a text */
    rv_buf text;        /* all texts, as one value */
};

/* annotations.audience: user, assistant or both; absent means both. */
static bool is_for_model(json_object *block)
{
    json_object *annotations = rv_json_get_obj(block, "annotations");
    json_object *audience = annotations ? rv_json_get_arr(annotations, "audience") : NULL;
    size_t n = audience ? json_object_array_length(audience) : 0;

    for (size_t i = 0; i < n; i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(audience, i)), "assistant"))
            return true;
    return n == 0;
}

/* Sets what is there. */
static void put(struct rv_json_build *b, json_object *part, const char *key, rv_str text)
{
    if (b->rc == 0 && text.len > 0)
        b->rc = rv_json_set_str(part, key, text, b->err);
}

static int add_text(struct blocks *all, rv_str text, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *part = rv_json_build(&b, all->parts, NULL, json_object_new_object());

    rv_json_build_text(&b, part, "type", "text");
    return b.rc < 0 ? b.rc : rv_json_set_str(part, "text", text, err);
}

static int add_blob(struct blocks *all, rv_str data, rv_str media_type, rv_str name, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    bool is_image = media_type.len > 6 && strncmp(media_type.ptr, "image/", 6) == 0;
    json_object *part = rv_json_build(&b, all->parts, NULL, json_object_new_object());

    rv_json_build_text(&b, part, "type", is_image ? "image" : "file");
    put(&b, part, "data", data);
    put(&b, part, "media_type", media_type);
    put(&b, part, "name", name);
    return b.rc;
}

static int add_reference(struct blocks *all, json_object *block, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    rv_str title = rv_json_member_str(block, "title");
    json_object *part;

    if (rv_json_member_str(block, "uri").len == 0) {
        all->fault = "a resource_link of the content has no uri";
        return 0;
    }
    part = rv_json_build(&b, all->parts, NULL, json_object_new_object());
    rv_json_build_text(&b, part, "type", "reference");
    put(&b, part, "uri", rv_json_member_str(block, "uri"));
    put(&b, part, "name", title.len ? title : rv_json_member_str(block, "name"));
    put(&b, part, "description", rv_json_member_str(block, "description"));
    put(&b, part, "media_type", rv_json_member_str(block, "mimeType"));
    return b.rc;
}

static int add_media(struct blocks *all, json_object *block, rv_err **err)
{
    rv_str data = rv_json_member_str(block, "data"), media_type = rv_json_member_str(block, "mimeType");

    if (!rv_tool_is_base64(data) || !rv_is_media_type(media_type)) {
        all->fault = "an image or audio block of the content has no data in base64, or no mimeType";
        return 0;
    }
    return add_blob(all, data, media_type, (rv_str){NULL, 0}, err);
}

/* A resource that is here itself: a text, or bytes. */
static int add_resource(struct blocks *all, json_object *block, rv_err **err)
{
    json_object *resource = rv_json_get_obj(block, "resource"), *text = NULL;
    rv_str uri = rv_json_member_str(resource, "uri"), blob = rv_json_member_str(resource, "blob"),
           media_type = rv_json_member_str(resource, "mimeType");

    if (uri.len == 0) {
        all->fault = "a resource block of the content has no resource with a uri";
        return 0;
    }
    if (json_object_object_get_ex(resource, "text", &text)) {
        if (json_object_is_type(text, json_type_string))
            return add_text(all, rv_json_str(text), err);
        all->fault = "a resource block of the content has a text that is not a string";
        return 0;
    }
    if (media_type.len == 0)
        media_type = RV_STR_LIT("application/octet-stream");
    if (!rv_tool_is_base64(blob) || !rv_is_media_type(media_type)) {
        all->fault = "a resource block of the content has neither a text nor a blob in base64";
        return 0;
    }
    return add_blob(all, blob, media_type, rv_utf8_cut(uri, RV_MCP_MAX_PART_NAME), err);
}

/* block: an object with a type, and a text block has its text. */
static int add_block(struct blocks *all, json_object *block, rv_err **err)
{
    static const struct {
        const char *type;
        int (*add)(struct blocks *all, json_object *block, rv_err **err);
    } types[] = {
        {"image", add_media}, {"audio", add_media}, {"resource_link", add_reference}, {"resource", add_resource}};
    rv_str type = rv_json_member_str(block, "type");

    if (!is_for_model(block))
        return 0;
    if (json_object_array_length(all->parts) >= RV_TOOL_MAX_PARTS) {
        all->fault = "the content has more than " RV_LIMIT_TEXT(RV_TOOL_MAX_PARTS) " blocks";
        return 0;
    }
    if (rv_str_is(type, "text")) {
        if (all->text.len > 0)
            rv_buf_putc(&all->text, '\n');
        rv_buf_add_str(&all->text, rv_json_member_str(block, "text"));
        return add_text(all, rv_json_member_str(block, "text"), err);
    }
    for (size_t i = 0; i < RV_COUNT(types); i++)
        if (rv_str_is(type, types[i].type)) {
            all->is_more = true;
            return types[i].add(all, block, err);
        }
    all->n_unknown++;
    return 0;
}

/* Do the texts say what the data says? Then the model needs only the data. */
static int says_data(struct blocks *all, json_object *result, bool *out, rv_err **err)
{
    json_object *structured = NULL, *value = NULL;

    *out = true;
    if (!json_object_object_get_ex(result, "structuredContent", &structured) || !structured || all->text.len == 0)
        return 0;
    int rc = rv_json_try_parse(rv_buf_str(&all->text), NULL, &value, err);
    *out = value && rv_json_equal(value, structured);
    json_object_put(value);
    return rc;
}

/* What the model gets beside the data; parts stay empty where that is nothing. result: as rv_output_build() accepts it.
 */
static int read_blocks(json_object *result, struct blocks *all, rv_err **err)
{
    json_object *content = rv_json_get_arr(result, "content");
    size_t n = content ? json_object_array_length(content) : 0;
    bool is_said = true;
    int rc = 0;

    *all = (struct blocks){.parts = json_object_new_array(), .text = RV_BUF_INIT(RV_JSON_MAX_BYTES)};
    if (!all->parts)
        return NOMEM(err);
    for (size_t i = 0; i < n && rc == 0 && !all->fault; i++)
        rc = add_block(all, json_object_array_get_idx(content, i), err);
    if (rc == 0)
        rc = rv_buf_check(&all->text, "text of a tool", err);
    if (rc == 0 && !all->is_more)
        rc = says_data(all, result, &is_said, err);
    if (rc == 0 && !all->is_more && is_said)
        rv_json_cut(all->parts, 0, json_object_array_length(all->parts));
    return rc;
}

static void blocks_fini(struct blocks *all)
{
    json_object_put(all->parts);
    rv_buf_fini(&all->text);
}

/* --- results --- */

static int fits(const void *schema, json_object *value, rv_err **err)
{
    return rv_schema_check(schema, value, err);
}

/* parts NULL or empty: none. */
static void write_success(json_object *value, json_object *parts, rv_buf *text)
{
    rv_jw w = rv_jw_on(text);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "status", "success");
    rv_jw_key(&w, "data");
    if (json_object_is_type(value, json_type_object)) {
        rv_jw_value(&w, value);
    } else {
        rv_jw_obj(&w);
        rv_jw_kv_value(&w, "value", value);
        rv_jw_obj_end(&w);
    }
    if (parts && json_object_array_length(parts) > 0) {
        rv_jw_key(&w, "content");
        rv_jw_value(&w, parts);
    }
    rv_jw_obj_end(&w);
}

/* What a plan reads: the structured content, or the texts in its place, and what stands in _meta. */
static void write_as_called(json_object *result, rv_buf *text)
{
    json_object *structured = NULL, *meta = rv_json_get_obj(result, "_meta");
    json_object *content = rv_json_get_arr(result, "content");
    rv_jw w = rv_jw_on(text);

    json_object_object_get_ex(result, "structuredContent", &structured);
    rv_jw_obj(&w);
    rv_jw_key(&w, "content");
    rv_jw_arr(&w);
    for (size_t i = 0; !structured && content && i < json_object_array_length(content); i++) {
        json_object *block = json_object_array_get_idx(content, i);
        if (!rv_str_is(rv_json_member_str(block, "type"), "text"))
            continue;
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "type", "text");
        rv_jw_kv_str(&w, "text", rv_json_member_str(block, "text"));
        rv_jw_obj_end(&w);
    }
    rv_jw_arr_end(&w);
    if (structured)
        rv_jw_kv_value(&w, "structuredContent", structured);
    if (meta)
        rv_jw_kv_value(&w, "_meta", meta);
    rv_jw_obj_end(&w);
}

/* A call that succeeded: its data, and the blocks beside it. */
static int say_success(const struct rv_output *out, json_object *result, struct rv_mcp_told *told, rv_err **err)
{
    struct blocks all;
    int rc = read_blocks(result, &all, err);

    if (rc == 0 && all.fault) {
        told->code = "invalid_result";
        rv_buf_puts(told->text, all.fault);
    } else if (rc == 0) {
        if (out->text)
            rv_buf_add_str(told->note, rv_utf8_cut(rv_str_of(out->text), RV_MCP_MAX_ERROR));
        if (all.n_unknown > 0)
            rv_buf_printf(told->note, "%s%zu block%s of the content have an unknown type and are left out",
                          told->note->len > 0 ? "; " : "", all.n_unknown, all.n_unknown == 1 ? "" : "s");
        if (told->as_called)
            write_as_called(result, told->text);
        else
            write_success(out->value, all.parts, told->text);
    }
    blocks_fini(&all);
    return rc;
}

int rv_mcp_tool_read_result(const struct rv_mcp_tool *t, json_object *result, struct rv_mcp_told *told, rv_err **err)
{
    static const enum rv_output_check checks[] = {[RV_MCP_OUTPUT_STRICT] = RV_OUTPUT_STRICT,
                                                  [RV_MCP_OUTPUT_WARN] = RV_OUTPUT_WARN,
                                                  [RV_MCP_OUTPUT_OFF] = RV_OUTPUT_OFF};
    RV_EACH_HAS_ROW(checks, RV_N_MCP_OUTPUT_VALIDATIONS);
    const struct rv_output_promise promise = {.has_schema = t->output != NULL,
                                              .check = checks[t->server->output_validation],
                                              .schema = t->output,
                                              .fits = fits};
    struct rv_output out = {0};
    int rc = 0;

    told->code = NULL;
    if (t->kind != RV_MCP_CALL_TOOL) {
        write_success(result, NULL, told->text);
        return rv_buf_check(told->text, "answer of an MCP server", err);
    }
    rc = rv_output_build(result, &promise, &out, err);
    if (rc == 0 && out.code) {
        told->code = out.code;
        rv_buf_add_str(told->text, rv_utf8_cut(rv_str_of(out.text), RV_MCP_MAX_ERROR));
    } else if (rc == 0) {
        rc = say_success(&out, result, told, err);
    }
    rv_output_fini(&out);
    if (rc == 0)
        rc = rv_buf_check(told->text, "answer of an MCP server", err);
    return rc == 0 ? rv_buf_check(told->note, "answer of an MCP server", err) : rc;
}
