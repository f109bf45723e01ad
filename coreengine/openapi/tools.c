/* Operations of a document as definitions of tools. What a tool may do follows from its method alone: a document can
 * say nothing that makes a call safer than HTTP has it. */
#include "coreengine/openapi/openapi_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>

#define TOOL_BYTES 1000 /* that a definition has beside its schemas */
#define MAX_SHOWN  200  /* bytes of a path in a reason: two lines of a terminal */

static const struct {
    const char *key, *method;
    bool read_only, destructive, idempotent;
} methods[] = {
    {"get", "GET", true, false, true},           {"head", "HEAD", true, false, true},
    {"put", "PUT", false, false, true},          {"delete", "DELETE", false, true, true},
    {"post", "POST", false, false, false},       {"patch", "PATCH", false, false, false},
    {"options", "OPTIONS", false, false, false},
};

/* While the tools of one document are made. */
struct making {
    json_object *document; /* borrowed */
    const struct rv_openapi_opts *how;
    const char *url;    /* for the operations; "": the configured one */
    json_object *tools; /* owned */
    size_t n_bytes, n_operations;
    bool is_30;
};

/* --- names --- */

/* The characters that a tool's name may have; others become "_", and none stands at the end. */
static void put_name(rv_str text, rv_buf *out)
{
    for (size_t i = 0; i < text.len && out->len < RV_MCP_MAX_TOOL_NAME; i++) {
        char c = text.ptr[i];
        bool is_legal = rv_is_letter(c) || rv_is_digit(c) || c == '_' || c == '-' || c == '.';
        if (is_legal || (out->len > 0 && rv_buf_cstr(out)[out->len - 1] != '_'))
            rv_buf_putc(out, is_legal ? c : '_');
    }
    while (out->len > 1 && rv_buf_cstr(out)[out->len - 1] == '_')
        rv_buf_truncate(out, out->len - 1);
}

static void write_name(json_object *operation, size_t method, const char *path, rv_buf *out)
{
    const char *id = "";

    if (rv_json_get_text(operation, "operationId", &id))
        put_name(rv_str_of(id), out);
    if (out->len > 0 && !rv_str_is(rv_buf_str(out), "_"))
        return;
    rv_buf_clear(out);
    rv_buf_printf(out, "%s_", methods[method].key);
    put_name(rv_str_of(path[0] == '/' ? path + 1 : path), out);
}

/* --- definitions --- */

static void write_description(json_object *operation, size_t method, const char *path, rv_buf *out)
{
    const char *summary = rv_json_text_or(operation, "summary", "");
    const char *text = rv_json_text_or(operation, "description", "");
    rv_buf_add_str(out, rv_utf8_cut(rv_str_of(summary), RV_MCP_MAX_DESCRIPTION));
    if (summary[0] && text[0] && strcmp(summary, text) != 0)
        rv_buf_puts(out, "\n\n");
    if (strcmp(summary, text) != 0)
        rv_buf_add_str(out, rv_utf8_cut(rv_str_of(text), RV_MCP_MAX_DESCRIPTION));
    if (out->len == 0)
        rv_buf_printf(out, "%s %.*s", methods[method].method, RV_STR_ARG(rv_utf8_cut(rv_str_of(path), 1000)));
}

static void add_annotations(struct rv_json_build *b, json_object *to, size_t method)
{
    json_object *hints = rv_json_build(b, to, "annotations", json_object_new_object());

    rv_json_build(b, hints, "readOnlyHint", json_object_new_boolean(methods[method].read_only));
    if (methods[method].destructive)
        rv_json_build(b, hints, "destructiveHint", json_object_new_boolean(true));
    rv_json_build(b, hints, "idempotentHint", json_object_new_boolean(methods[method].idempotent));
    rv_json_build(b, hints, "openWorldHint", json_object_new_boolean(true));
}

/* The operation as the definition keeps it, the caller's. */
static int write_operation(const struct openapi_operation *o, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *to = json_object_new_object();

    if (!to)
        return OPENAPI_NOMEM(err);
    rv_json_build_text(&b, to, "method", o->method);
    rv_json_build_text(&b, to, "path", o->path);
    if (o->url[0])
        rv_json_build_text(&b, to, "url", o->url);
    json_object *list = rv_json_build(&b, to, "parameters", json_object_new_array());
    for (size_t i = 0; i < o->n && b.rc == 0; i++) {
        const struct openapi_parameter *p = &o->parameters[i];
        json_object *item = rv_json_build(&b, list, NULL, json_object_new_object());
        rv_json_build_text(&b, item, "argument", p->argument);
        rv_json_build_text(&b, item, "name", p->name);
        rv_json_build_text(&b, item, "in", openapi_ins[p->in]);
        rv_json_build_text(&b, item, "style", openapi_styles[p->style]);
        rv_json_build(&b, item, "explode", json_object_new_boolean(p->explode));
    }
    if (b.rc < 0)
        json_object_put(to);
    else
        *out = to;
    return b.rc;
}

/* The schemas of a tool, which its definition takes. */
struct tool_schemas {
    json_object *input, *output;
};
/* Takes input and output, which may be NULL. */
static int define(struct making *m, json_object *operation, const struct openapi_operation *o, size_t method,
                  const struct tool_schemas *schemas, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf name = RV_BUF_INIT(RV_MCP_MAX_TOOL_NAME + 16);
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(2 * RV_MCP_MAX_DESCRIPTION + 16);
    json_object *to = json_object_new_object(), *kept = NULL;
    struct rv_json_build b = {.err = err};

    write_name(operation, method, o->path, &name);
    write_description(operation, method, o->path, &text);
    int rc = rv_buf_check(&name, "the name of a tool", err);
    if (rc == 0)
        rc = rv_buf_check(&text, "the description of a tool", err);
    if (rc == 0)
        rc = to ? write_operation(o, &kept, err) : OPENAPI_NOMEM(err);
    if (rc < 0) {
        json_object_put(schemas->input);
        json_object_put(schemas->output);
        json_object_put(to);
        return rc;
    }
    rv_json_build_text(&b, to, "name", rv_buf_cstr(&name));
    rv_json_build_text(&b, to, "description", rv_buf_cstr(&text));
    rv_json_build(&b, to, "inputSchema", schemas->input);
    if (schemas->output)
        rv_json_build(&b, to, "outputSchema", schemas->output);
    add_annotations(&b, to, method);
    rv_json_build(&b, to, RV_MCP_OPERATION, kept);
    if (b.rc < 0) {
        json_object_put(to);
        return b.rc;
    }
    return rv_json_push_take(m->tools, to, err);
}

/* An operation that cannot be a tool: the catalog says why. */
static int refuse(struct making *m, json_object *operation, size_t method, const char *path, const rv_buf *why,
                  rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf name = RV_BUF_INIT(RV_MCP_MAX_TOOL_NAME + 16);
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(2 * OPENAPI_MAX_WHY);
    struct rv_json_build b = {.err = err};
    rv_str shown = rv_utf8_cut(rv_str_of(path), MAX_SHOWN);

    write_name(operation, method, path, &name);
    rv_buf_printf(&text, "%s %.*s: %s", methods[method].method, RV_STR_ARG(shown), rv_buf_cstr(why));
    int rc = rv_buf_check(&text, "a reason", err);
    if (rc == 0)
        rc = rv_buf_check(&name, "the name of a tool", err);
    if (rc < 0)
        return rc;
    json_object *to = rv_json_build(&b, m->tools, NULL, json_object_new_object());
    rv_json_build_text(&b, to, "name", rv_buf_cstr(&name));
    rv_json_build_text(&b, to, RV_MCP_REFUSED, rv_buf_cstr(&text));
    return b.rc;
}

static bool has_servers(json_object *value)
{
    json_object *servers = rv_json_get_arr(value, "servers");

    return servers && json_object_array_length(servers) > 0;
}

/* A method of a path of the document. Borrowed. */
struct method_of {
    const char *path;
    json_object *operation;
    size_t method;
};
static int make_tool(struct making *m, json_object *item, const struct method_of *of, rv_buf *why, rv_err **err)
{
    const struct openapi_source source = {.document = m->document,
                                          .path_item = item,
                                          .operation = of->operation,
                                          .how = m->how,
                                          .is_30 = m->is_30,
                                          .n_bytes = &m->n_bytes};
    struct openapi_operation *o = calloc(1, sizeof *o);
    json_object *input = NULL, *output = NULL;

    if (!o)
        return OPENAPI_NOMEM(err);
    m->n_bytes += TOOL_BYTES;
    *o = (struct openapi_operation){.method = methods[of->method].method, .path = of->path, .url = m->url};
    if (!openapi_is_path(of->path))
        rv_buf_puts(why, "the path is not one");
    else if (has_servers(item) || has_servers(of->operation))
        rv_buf_puts(why, "it names a server of its own, which is not supported");
    int rc = why->len == 0 ? openapi_parameters(&source, o, &input, &output, why, err) : 0;
    if (rc == 0 && why->len == 0 && m->n_bytes > RV_OPENAPI_MAX_TOOLS)
        rv_buf_printf(why, "the schemas of all operations have more than %zu MiB", RV_OPENAPI_MAX_TOOLS >> 20);
    if (rc == 0 && why->len == 0) {
        rc = define(m, of->operation, o, of->method, &(const struct tool_schemas){.input = input, .output = output},
                    err);
    } else {
        json_object_put(input);
        json_object_put(output);
    }
    free(o);
    return rc;
}

static int add_operation(struct making *m, json_object *item, const char *path, json_object *operation, size_t method,
                         rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf why = RV_BUF_INIT(OPENAPI_MAX_WHY);
    int rc = 0;

    if (m->n_operations++ == RV_OPENAPI_MAX_OPERATIONS)
        return RV_FAIL(err, RV_E_LIMIT, "the document has more than %d operations", RV_OPENAPI_MAX_OPERATIONS);
    if (!json_object_is_type(operation, json_type_object))
        rv_buf_puts(&why, "it is not an object");
    else
        rc = make_tool(m, item, &(const struct method_of){.path = path, .operation = operation, .method = method}, &why,
                       err);
    if (rc == 0)
        rc = rv_buf_check(&why, "a reason", err);
    return rc == 0 && why.len > 0 ? refuse(m, operation, method, path, &why, err) : rc;
}

static int add_path(struct making *m, const char *path, json_object *item, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf why = RV_BUF_INIT(OPENAPI_MAX_WHY);
    json_object *operation = NULL;
    int rc = 0;

    if (strncmp(path, "x-", 2) == 0)
        return 0;
    json_object *whole = openapi_follow(m->document, item, &why);
    if (!json_object_is_type(whole, json_type_object)) {
        if (why.len == 0)
            rv_buf_puts(&why, "the path has no operations");
        return refuse(m, NULL, 0, path, &why, err);
    }
    for (size_t i = 0; i < RV_COUNT(methods) && rc == 0; i++)
        if (json_object_object_get_ex(whole, methods[i].key, &operation))
            rc = add_operation(m, whole, path, operation, i, err);
    return rc;
}

int rv_openapi_build_tools(json_object *document, const struct rv_openapi_opts *opts, json_object **out, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf base = RV_BUF_INIT(RV_OPENAPI_MAX_URL);
    json_object *paths = rv_json_get_obj(document, "paths");
    int rc = openapi_base(document, opts, &base, err);

    if (rc < 0)
        return rc;
    if (!paths)
        return RV_FAIL(err, RV_E_INVALID, "the document has no paths");
    const char *version = rv_json_text_or(document, "openapi", "");
    struct making m = {.document = document,
                       .how = opts,
                       .url = opts->url[0] ? "" : rv_buf_cstr(&base),
                       .tools = json_object_new_array(),
                       .is_30 = strncmp(version, "3.0", 3) == 0};
    rc = m.tools ? 0 : OPENAPI_NOMEM(err);
    json_object_object_foreach (paths, path, item) {
        if (rc < 0)
            break;
        rc = add_path(&m, path, item, err);
    }
    if (rc < 0)
        json_object_put(m.tools);
    else
        *out = m.tools;
    return rc;
}
