/* A call as an HTTP request. Arguments are a model's: each goes into the one place that the operation has for it, and
 * can reach no other path, header or server. */
#include "coreengine/openapi/openapi_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>

#define MAX_VALUE ((size_t)64 << 10) /* bytes of one value outside of a body: eight times RV_OPENAPI_MAX_URL */

void rv_openapi_request_fini(struct rv_openapi_request *r)
{
    free(r->method);
    free(r->url);
    rv_mcp_headers_fini(&r->headers);
    rv_buf_fini(&r->body);
    *r = (struct rv_openapi_request){0};
}

/* --- the operation --- */

static bool is_method(const char *method)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "POST", "PATCH", "OPTIONS"};

    for (size_t i = 0; i < RV_COUNT(methods); i++)
        if (strcmp(method, methods[i]) == 0)
            return true;
    return false;
}

static int word_of(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, words[i]) == 0)
            return (int)i;
    return -1;
}

static bool read_parameter(json_object *item, struct openapi_parameter *p)
{
    const char *in = "", *style = "";

    if (!rv_json_get_text(item, "argument", &p->argument) || !rv_json_get_text(item, "name", &p->name) ||
        !rv_json_get_text(item, "in", &in) || !rv_json_get_text(item, "style", &style) ||
        !rv_json_get_bool(item, "explode", &p->explode))
        return false;
    int which = word_of(in, openapi_ins, OPENAPI_BODY + 1), how = word_of(style, openapi_styles, OPENAPI_JSON + 1);
    if (which < 0 || how < 0 || (which == OPENAPI_HEADER && !openapi_is_header(p->name, NULL)))
        return false;
    p->in = (enum openapi_in)which;
    p->style = (enum openapi_style)how;
    return true;
}

/* All texts are borrowed from `kept`. */
static int read_operation(json_object *kept, struct openapi_operation *out, rv_err **err)
{
    json_object *list = json_object_is_type(kept, json_type_object) ? rv_json_get_arr(kept, "parameters") : NULL;
    size_t n = list ? json_object_array_length(list) : 0;

    *out = (struct openapi_operation){.url = ""};
    if (!list || n > RV_COUNT(out->parameters) || !rv_json_get_text(kept, "method", &out->method) ||
        !rv_json_get_text(kept, "path", &out->path) || !is_method(out->method) || !openapi_is_path(out->path))
        return RV_FAIL(err, RV_E_INVALID, "the operation of the tool is not one: list the tools of the server again");
    out->url = rv_json_text_or(kept, "url", out->url);
    for (; out->n < n; out->n++)
        if (!read_parameter(json_object_array_get_idx(list, out->n), &out->parameters[out->n]))
            return RV_FAIL(err, RV_E_INVALID,
                           "a parameter of the tool's operation is not one: list the tools of the "
                           "server again");
    return 0;
}

/* --- values --- */

static int refuse(const struct openapi_parameter *p, const char *why, rv_err **err)
{
    return RV_FAIL(err, RV_E_INVALID, "argument \"%.*s\" %s", RV_STR_ARG(rv_utf8_cut(rv_str_of(p->argument), 100)),
                   why);
}

/* A text, a number, true or false. False: it is none of them. */
static bool write_plain(json_object *v, rv_buf *out)
{
    if (json_object_is_type(v, json_type_array) || json_object_is_type(v, json_type_object) || !v)
        return false;
    if (json_object_is_type(v, json_type_string))
        rv_buf_add_str(out, rv_json_str(v));
    else
        rv_json_write(v, out);
    return true;
}

/* The same, encoded for an address. */
static bool write_encoded(json_object *v, rv_buf *out)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(MAX_VALUE);

    if (!write_plain(v, &text))
        return false;
    if (text.rc < 0)
        out->rc = text.rc;
    rv_mcp_url_encode(rv_buf_str(&text), out);
    return true;
}

static bool write_value(json_object *v, bool encodes, rv_buf *out)
{
    return encodes ? write_encoded(v, out) : write_plain(v, out);
}

/* A value in one piece: the items of a list, or the names and values of an object, with something between them. */
enum joined { ENCODED = 1, EXPLODED = 2 }; /* EXPLODED: name=value instead of name and value as two pieces */

static bool write_joined(json_object *v, const char *between, unsigned how, rv_buf *out)
{
    bool encodes = how & ENCODED;
    bool is_fine = true;
    size_t n = 0;

    if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v) && is_fine; i++) {
            rv_buf_puts(out, i ? between : "");
            is_fine = write_value(json_object_array_get_idx(v, i), encodes, out);
        }
        return is_fine;
    }
    if (!json_object_is_type(v, json_type_object))
        return write_value(v, encodes, out);
    json_object_object_foreach (v, key, value) {
        rv_buf_puts(out, n++ ? between : "");
        if (encodes)
            rv_mcp_url_encode(rv_str_of(key), out);
        else
            rv_buf_puts(out, key);
        rv_buf_puts(out, how & EXPLODED ? "=" : between);
        is_fine = is_fine && write_value(value, encodes, out);
    }
    return is_fine;
}

/* --- places --- */

static json_object *value_of(const struct openapi_operation *o, rv_str name, json_object *args,
                             const struct openapi_parameter **p)
{
    json_object *value = NULL;

    for (size_t i = 0; i < o->n; i++)
        if (o->parameters[i].in == OPENAPI_PATH && rv_str_is(name, o->parameters[i].name)) {
            *p = &o->parameters[i];
            json_object_object_get_ex(args, o->parameters[i].argument, &value);
        }
    return value;
}

static bool write_json(json_object *v, rv_buf *out)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(MAX_VALUE);

    rv_json_write(v, &text);
    if (text.rc < 0)
        out->rc = text.rc;
    rv_mcp_url_encode(rv_buf_str(&text), out);
    return true;
}

static int write_path(const struct openapi_operation *o, json_object *args, rv_buf *out, rv_err **err)
{
    for (const char *p = o->path; *p; p++) {
        const struct openapi_parameter *parameter = NULL;
        size_t n = *p == '{' ? strcspn(p, "}") : 0, before = out->len;
        if (!n) {
            rv_buf_putc(out, *p);
            continue;
        }
        json_object *value = value_of(o, (rv_str){p + 1, n - 1}, args, &parameter);
        if (!parameter)
            return RV_FAIL(err, RV_E_INVALID, "the path of the operation has a part that is not an argument");
        if (!(parameter->style == OPENAPI_JSON
                  ? write_json(value, out)
                  : write_joined(value, ",", parameter->explode ? ENCODED | EXPLODED : ENCODED, out)))
            return refuse(parameter, "is null or a list of lists", err);
        if (out->rc == 0 && out->len == before)
            return refuse(parameter, "is empty, and would lead to another path", err);
        p += n;
    }
    return 0;
}

/* A part of a path that is "." or "..", made by an argument, would leave the path of the operation. */
static int check_dots(rv_str path, rv_err **err)
{
    for (size_t i = 0; i < path.len; i++) {
        size_t n = 0;
        if (path.ptr[i] != '/')
            continue;
        while (i + 1 + n < path.len && path.ptr[i + 1 + n] != '/')
            n++;
        rv_str part = {path.ptr + i + 1, n};
        if (rv_str_is(part, ".") || rv_str_is(part, ".."))
            return RV_FAIL(err, RV_E_INVALID,
                           "an argument of the path is \".\" or \"..\", and would lead to another path");
    }
    return 0;
}

static void begin_query(rv_buf *out, bool *has_query)
{
    rv_buf_putc(out, *has_query ? '&' : '?');
    *has_query = true;
}

static void write_pair(rv_str name, rv_buf *out, bool *has_query)
{
    begin_query(out, has_query);
    rv_mcp_url_encode(name, out);
    rv_buf_putc(out, '=');
}

/* One pair for each item. */
static bool write_exploded(const struct openapi_parameter *p, json_object *v, rv_buf *out, bool *has_query)
{
    bool is_fine = true;

    if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v) && is_fine; i++) {
            write_pair(rv_str_of(p->name), out, has_query);
            is_fine = write_encoded(json_object_array_get_idx(v, i), out);
        }
        return is_fine;
    }
    json_object_object_foreach (v, key, value) {
        if (p->style == OPENAPI_DEEP) {
            begin_query(out, has_query);
            rv_mcp_url_encode(rv_str_of(p->name), out);
            rv_buf_puts(out, "%5B");
            rv_mcp_url_encode(rv_str_of(key), out);
            rv_buf_puts(out, "%5D=");
        } else {
            write_pair(rv_str_of(key), out, has_query);
        }
        is_fine = is_fine && write_encoded(value, out);
    }
    return is_fine;
}

static bool write_query(const struct openapi_parameter *p, json_object *v, rv_buf *out, bool *has_query)
{
    /* Only the styles of joined values: JSON is written as it is. */
    static const char *const between[OPENAPI_N_STYLES] = {
        [OPENAPI_PLAIN] = ",", [OPENAPI_DEEP] = ",", [OPENAPI_SPACES] = "%20", [OPENAPI_PIPES] = "%7C"};
    bool is_object = json_object_is_type(v, json_type_object), is_list = json_object_is_type(v, json_type_array);

    if (p->style != OPENAPI_JSON && ((is_object && p->style == OPENAPI_DEEP) || (p->explode && (is_object || is_list))))
        return write_exploded(p, v, out, has_query);
    write_pair(rv_str_of(p->name), out, has_query);
    return p->style == OPENAPI_JSON ? write_json(v, out) : write_joined(v, between[p->style], ENCODED, out);
}

static int add_header(const struct openapi_parameter *p, json_object *v, struct rv_openapi_request *r, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(RV_MCP_MAX_HEADER);

    if (p->style == OPENAPI_JSON)
        rv_json_write(v, &text);
    else if (!write_joined(v, ",", p->explode ? EXPLODED : 0, &text))
        return refuse(p, "is null, or nested too deeply for a header", err);
    int rc = rv_buf_check(&text, "a header", err);
    if (rc == 0)
        rc = rv_mcp_headers_add(&r->headers, p->name, rv_str_trim(rv_buf_str(&text)), err);
    return rc == RV_E_INVALID ? RV_WRAP(err, rc, "argument \"%s\"", p->argument) : rc;
}

static int add_body(const struct openapi_parameter *p, json_object *v, struct rv_openapi_request *r, rv_err **err)
{
    rv_json_write(v, &r->body);
    int rc = rv_buf_check(&r->body, "the body of a request", err);

    return rc < 0 ? rc : rv_mcp_headers_add(&r->headers, "Content-Type", rv_str_of(p->name), err);
}

/* A kept definition may be from before the server was configured as it is: such a header is left out. */
static int add_rest(const struct openapi_operation *o, json_object *args, const struct rv_openapi_opts *how,
                    struct rv_openapi_request *r, rv_buf *url, rv_err **err)
{
    bool has_query = false;
    int rc = 0;

    for (size_t i = 0; i < o->n && rc == 0; i++) {
        const struct openapi_parameter *p = &o->parameters[i];
        json_object *value = NULL;
        bool is_there = json_object_object_get_ex(args, p->argument, &value);
        if (!is_there || (!value && p->in != OPENAPI_BODY)) /* null: it is left out */
            continue;
        switch (p->in) {
        case OPENAPI_PATH:
            break;
        case OPENAPI_QUERY:
            if (!write_query(p, value, url, &has_query))
                rc = refuse(p, "is nested too deeply for a query", err);
            break;
        case OPENAPI_HEADER:
            rc = openapi_is_header(p->name, how) ? add_header(p, value, r, err) : 0;
            break;
        case OPENAPI_BODY:
            rc = add_body(p, value, r, err);
            break;
        case OPENAPI_N_INS:
            break;
        }
    }
    return rc;
}

/* The address at which the operation begins. One that a document named has to be where the document was. */
static int write_base(const struct openapi_operation *o, const struct rv_openapi_opts *opts, rv_buf *out, rv_err **err)
{
    struct rv_mcp_url from, to;

    if (!opts->url[0] && (!rv_mcp_url_read(rv_str_of(opts->document_url), &from) ||
                          !rv_mcp_url_read(rv_str_of(o->url), &to) || !rv_mcp_url_has_same_origin(&from, &to)))
        return RV_FAIL(err, RV_E_DENIED,
                       "the operation is not at the address of the document: say url in the pipeline");
    const struct rv_openapi_opts there = {.url = opts->url[0] ? opts->url : o->url, .document_url = ""};
    return openapi_base(NULL, &there, out, err);
}

int rv_openapi_build_request(json_object *operation, json_object *args, const struct rv_openapi_opts *opts,
                             const char *key, struct rv_openapi_request *out, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf url = RV_BUF_INIT(RV_OPENAPI_MAX_URL);
    struct rv_openapi_request r = {.body = RV_BUF_INIT(RV_JSON_MAX_BYTES)};
    struct openapi_operation *o = calloc(1, sizeof *o);

    int rc = o ? read_operation(operation, o, err) : OPENAPI_NOMEM(err);
    if (rc == 0)
        rc = write_base(o, opts, &url, err);
    size_t base = url.len;
    if (rc == 0)
        rc = write_path(o, args, &url, err);
    if (rc == 0)
        rc = rv_buf_check(&url, "the address of a request", err);
    if (rc == 0)
        rc = check_dots((rv_str){rv_buf_cstr(&url) + base, url.len - base}, err);
    if (rc == 0)
        rc = add_rest(o, args, opts, &r, &url, err);
    if (rc == 0)
        rc = rv_buf_check(&url, "the address of a request", err);
    if (rc == 0)
        rc = rv_mcp_headers_add(&r.headers, "Accept", RV_STR_LIT("application/json, */*;q=0.5"), err);
    if (rc == 0 && key[0] && strcmp(o->method, "GET") != 0 && strcmp(o->method, "HEAD") != 0)
        rc = rv_mcp_headers_add(&r.headers, "Idempotency-Key", rv_str_of(key), err);
    if (rc == 0) {
        r.method = rv_str_dup(rv_str_of(o->method));
        r.url = rv_buf_steal(&url, NULL);
        rc = r.method && r.url ? 0 : OPENAPI_NOMEM(err);
    }
    free(o);
    if (rc < 0)
        rv_openapi_request_fini(&r);
    else
        *out = r;
    return rc;
}
