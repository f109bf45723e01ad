/* Reading a request: the body as a whole, members by their type, and the list of things that are new in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/requests_internal.h"

/* --- where it is wrong --- */

static size_t path_add(struct req *q, const char *text)
{
    size_t mark = q->path_len, left = RV_REQUEST_MAX_PATH - 1 - q->path_len;
    rv_str part = rv_utf8_cut(rv_str_of(text), left);

    memcpy(q->path + q->path_len, part.ptr, part.len);
    q->path_len += part.len;
    q->path[q->path_len] = '\0';
    return mark;
}

size_t req_enter(struct req *q, const char *key)
{
    size_t mark = q->path_len;

    if (mark > 0)
        path_add(q, ".");
    path_add(q, key);
    return mark;
}

size_t req_enter_at(struct req *q, size_t index)
{
    char text[32];

    snprintf(text, sizeof text, "[%zu]", index);
    return path_add(q, text);
}

void req_back(struct req *q, size_t mark)
{
    q->path_len = mark;
    q->path[mark] = '\0';
}

int req_wrong(struct req *q, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(4096);
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(&text, fmt, args);
    va_end(args);
    int rc = text.rc == RV_E_NOMEM
                 ? req_no_memory(q)
                 : RV_FAIL(q->err, RV_E_INVALID, "%s%s%s", q->path, q->path_len > 0 ? ": " : "", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return rc;
}

int req_unsupported(struct req *q, const char *why)
{
    q->is_unsupported = true;
    return req_wrong(q, "%s", why);
}

int req_wrong_type(struct req *q, json_object *value, const char *legal)
{
    return req_wrong(q, "must be %s, and is %s %s", legal,
                     value && strchr("aeio", rv_json_type_text(value)[0]) ? "an" : "a", rv_json_type_text(value));
}

int req_no_memory(struct req *q)
{
    return RV_FAIL(q->err, RV_E_NOMEM, "read a request");
}

/* --- members --- */

json_object *req_member(json_object *obj, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(obj, key, &value) ? value : NULL;
}

static int text_at(struct req *q, json_object *value, const char **out)
{
    if (!json_object_is_type(value, json_type_string))
        return req_wrong_type(q, value, "a text");
    *out = json_object_get_string(value);
    if (strlen(*out) != (size_t)json_object_get_string_len(value))
        return req_wrong(q, "must not have the character NUL");
    return 0;
}

int req_text(struct req *q, json_object *obj, const char *key, const char **out)
{
    json_object *value = req_member(obj, key);

    if (!value)
        return 0;
    size_t mark = req_enter(q, key);
    int rc = text_at(q, value, out);
    if (rc == 0)
        req_back(q, mark);
    return rc;
}

int req_id(struct req *q, json_object *obj, const char *key, const char **out)
{
    const char *id = NULL;

    int rc = req_text(q, obj, key, &id);
    if (rc < 0 || !id)
        return rc;
    size_t mark = req_enter(q, key);
    if (!*id || strlen(id) > RV_REQUEST_MAX_ID)
        return req_wrong(q, "must have 1 to %d bytes, and has %zu", RV_REQUEST_MAX_ID, strlen(id));
    for (size_t i = 0; id[i]; i++)
        if (rv_utf8_control(id + i, strlen(id + i)) > 0)
            return req_wrong(q, "must not have control characters");
    req_back(q, mark);
    *out = id;
    return 0;
}

int req_bool(struct req *q, json_object *obj, const char *key, bool *out)
{
    json_object *value = req_member(obj, key);

    if (!value)
        return 0;
    size_t mark = req_enter(q, key);
    if (!json_object_is_type(value, json_type_boolean))
        return req_wrong_type(q, value, "true or false");
    req_back(q, mark);
    *out = json_object_get_boolean(value);
    return 0;
}

int req_int(struct req *q, json_object *obj, const char *key, const struct req_int_range *range, bool *has,
            int64_t *out)
{
    json_object *value = req_member(obj, key);

    *has = value != NULL;
    if (!value)
        return 0;
    size_t mark = req_enter(q, key);
    if (!rv_json_is_int(value) && json_object_is_type(value, json_type_int)) /* beyond 64 bits */
        return req_wrong(q, "must be %lld to %lld, and is %s", (long long)range->min, (long long)range->max,
                         json_object_get_string(value));
    if (!rv_json_is_int(value))
        return req_wrong_type(q, value, "an integer");
    *out = json_object_get_int64(value);
    if (*out < range->min || *out > range->max)
        return req_wrong(q, "must be %lld to %lld, and is %lld", (long long)range->min, (long long)range->max,
                         (long long)*out);
    req_back(q, mark);
    return 0;
}

int req_number(struct req *q, json_object *obj, const char *key, const struct req_range *range, bool *has, double *out)
{
    json_object *value = req_member(obj, key);

    *has = value != NULL;
    if (!value)
        return 0;
    size_t mark = req_enter(q, key);
    if (!rv_json_is_number(value))
        return req_wrong_type(q, value, "a number");
    *out = json_object_get_double(value);
    if (!(*out >= range->min && *out <= range->max))
        return req_wrong(q, "must be %g to %g, and is %g", range->min, range->max, *out);
    req_back(q, mark);
    return 0;
}

int req_typed(struct req *q, json_object *obj, const char *key, enum json_type type, json_object **out)
{
    json_object *value = req_member(obj, key);

    *out = NULL;
    if (!value)
        return 0;
    size_t mark = req_enter(q, key);
    if (!json_object_is_type(value, type))
        return req_wrong_type(q, value, type == json_type_object ? "an object" : "a list");
    req_back(q, mark);
    *out = value;
    return 0;
}

int req_list(struct req *q, json_object *obj, const char *key, size_t max, json_object **out)
{
    int rc = req_typed(q, obj, key, json_type_array, out);

    if (rc == 0 && *out && json_object_array_length(*out) > max) {
        req_enter(q, key);
        return RV_FAIL(q->err, RV_E_LIMIT, "%s: must have at most %zu items, and has %zu", q->path, max,
                       json_object_array_length(*out));
    }
    return rc;
}

int req_make(struct req *q, json_object *value, json_object **out)
{
    if (!value)
        return req_no_memory(q);
    if (!q->out->made && !(q->out->made = json_object_new_array())) {
        json_object_put(value);
        return req_no_memory(q);
    }
    int rc = rv_json_push_take(q->out->made, value, q->err);
    *out = rc == 0 ? value : NULL;
    return rc;
}

/* --- tools of the client --- */

static int check_tool_name(struct req *q, const char *name)
{
    json_object *list = q->out->tools;

    for (const char *c = name; *c; c++)
        if (!rv_is_letter(*c) && !rv_is_digit(*c) && *c != '_' && *c != '-')
            return req_wrong(q, "must have letters, digits, - and _ only");
    if (strlen(name) < 1 || strlen(name) > 64)
        return req_wrong(q, "must have 1 to 64 characters, and has %zu", strlen(name));
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        const char *other = NULL;
        if (rv_json_get_text(json_object_array_get_idx(list, i), "name", &other) && strcmp(other, name) == 0)
            return req_wrong(q, "two tools have the name \"%s\"", name);
    }
    return 0;
}

int req_tool(struct req *q, json_object *item, const char *name_path)
{
    const char *name = NULL, *description = NULL;
    json_object *parameters = NULL, *tool = NULL;
    struct rv_json_build b = {.err = q->err};

    int rc = req_text(q, item, "name", &name);
    if (rc == 0)
        rc = req_text(q, item, "description", &description);
    if (rc == 0)
        rc = req_typed(q, item, "parameters", json_type_object, &parameters);
    if (rc < 0)
        return rc;
    size_t mark = req_enter(q, name_path);
    rc = name ? check_tool_name(q, name) : req_wrong(q, "is missing: each tool has a name");
    if (rc < 0)
        return rc;
    req_back(q, mark);
    if (!q->out->tools)
        rc = req_make(q, json_object_new_array(), &q->out->tools);
    if (rc < 0)
        return rc;
    tool = rv_json_build(&b, q->out->tools, NULL, json_object_new_object());
    rv_json_build_text(&b, tool, "name", name);
    if (description)
        rv_json_build_text(&b, tool, "description", description);
    json_object *schema = parameters ? json_object_get(parameters) : json_object_new_object();
    rv_json_build(&b, tool, "parameters", schema);
    if (!parameters)
        rv_json_build_text(&b, schema, "type", "object");
    return b.rc;
}

/* --- the whole --- */

static const char *const what[] = {
    [RV_PROTOCOL_AGUI] = "AG-UI request",    [RV_PROTOCOL_AGUI_OLD] = "AG-UI request",
    [RV_PROTOCOL_OPENAI] = "chat request",   [RV_PROTOCOL_RESPONSES] = "responses request",
    [RV_PROTOCOL_REMLIGHT] = "chat request",
};
RV_EACH_HAS_ROW(what, RV_N_PROTOCOLS);

static int read_body(enum rv_protocol_kind kind, struct req *q, rv_str body)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_REQUEST_MAX_BYTES, .max_depth = RV_REQUEST_MAX_DEPTH, .what = what[kind]};
    struct rv_request *r = q->out;

    int rc = rv_json_parse(rv_utf8_unmark(body), &opts, &r->body, q->err);
    if (rc < 0)
        return rc;
    if (!json_object_is_type(r->body, json_type_object))
        return req_wrong_type(q, r->body, "an object");
    switch (kind) {
    case RV_PROTOCOL_AGUI:
    case RV_PROTOCOL_AGUI_OLD:
        return req_read_agui(q, r->body);
    case RV_PROTOCOL_OPENAI:
    case RV_PROTOCOL_REMLIGHT:
        return req_read_openai(q, r->body);
    case RV_PROTOCOL_RESPONSES:
        return req_read_responses(q, r->body);
    case RV_N_PROTOCOLS:
        break;
    }
    return RV_FAIL(q->err, RV_E_INVALID, "unknown protocol");
}

int rv_request_read(enum rv_protocol_kind kind, rv_str body, struct rv_request *out, char path[RV_REQUEST_MAX_PATH],
                    rv_err **err)
{
    struct req q = {.out = out, .path = path, .text_left = RV_REQUEST_MAX_TEXT, .err = err};

    path[0] = '\0';
    *out = (struct rv_request){
        .kind = kind, .text = RV_BUF_INIT(RV_REQUEST_MAX_TEXT), .system = RV_BUF_INIT(RV_REQUEST_MAX_TEXT)};
    int rc = read_body(kind, &q, body);
    if (rc == 0)
        req_back(&q, 0);
    else
        rv_request_fini(out);
    out->is_unsupported = q.is_unsupported;
    return rc;
}

void rv_request_fini(struct rv_request *r)
{
    for (size_t i = 0; i < r->n_results; i++)
        rv_buf_fini(&r->results[i].room);
    free(r->results);
    free(r->answers);
    rv_buf_fini(&r->text);
    rv_buf_fini(&r->system);
    json_object_put(r->made);
    json_object_put(r->body);
    *r = (struct rv_request){0};
}
