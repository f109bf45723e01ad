/* Pipelines that are prompts and resources: their addresses, and what their runs said as messages or contents. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/mcp/mcp_internal.h"

/* --- all pipelines that are offered --- */

struct walk {
    const struct rv_app_mcp_opts *opts;
    const struct rv_app_mcp_at *at;
    mcp_each_pipeline each;
    void *self;
};

static int look_into(void *self, const char *file, rv_err **err)
{
    struct walk *w = self;
    const struct rv_app_load_opts plain = {.keeps = false};
    struct rv_app_loaded l;
    rv_buf path = RV_BUF_INIT(8192);
    rv_err *why = NULL;
    int rc = rv_app_find_pipeline_path(w->opts->pipelines, file, &path, &why);

    if (rc == 0)
        rc = rv_app_load_plain(w->at->app, rv_buf_cstr(&path), &plain, &l, &why);
    if (rc < 0) { /* the list of tools says so in the log */
        bool no_memory = rc == RV_E_NOMEM;
        rv_err_free(why);
        rv_buf_fini(&path);
        return no_memory ? RV_FAIL(err, RV_E_NOMEM, "look at the pipelines") : 0;
    }
    if (l.pipeline)
        rc = w->each(w->self, file, rv_buf_cstr(&path), l.pipeline, err);
    rv_app_loaded_fini(&l);
    rv_buf_fini(&path);
    return rc;
}

int app_mcp_pipelines_each(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, mcp_each_pipeline each,
                           void *self, rv_err **err)
{
    struct walk w = {opts, at, each, self};

    if (!app_mcp_may(at, RV_APP_MCP_RUNS))
        return 0;
    return rv_app_list_pipelines(opts->pipelines, look_into, &w, err);
}

int app_mcp_offer_of(const char *name, const char *path, enum rv_mcp_offer_kind kind, struct offer *out, rv_err **err)
{
    *out = (struct offer){rv_str_dup(rv_str_of(name)), OFFER_PIPELINE, rv_str_dup(rv_str_of(path)), kind};
    if (out->name && out->target)
        return 0;
    app_mcp_offer_fini(out);
    return RV_FAIL(err, RV_E_NOMEM, "offer a pipeline");
}

/* --- addresses of resources --- */

/* How much of what is left an input is: up to the text that follows it in the template, and never past a part of the
 * path. */
static size_t input_length(rv_str left, rv_str follows, bool is_last)
{
    size_t n = 0;

    while (n < left.len && !strchr("/?#", left.ptr[n]))
        n++;
    if (follows.len == 0)
        return n;
    if (is_last)
        return left.len > follows.len && left.len - follows.len <= n ? left.len - follows.len : 0;
    for (size_t i = 1; i <= n && i + follows.len <= left.len; i++)
        if (memcmp(left.ptr + i, follows.ptr, follows.len) == 0)
            return i;
    return 0;
}

static int add_input(json_object *to, rv_str name, rv_str part, bool *fits, rv_err **err)
{
    char *value = app_mcp_uri_decode(part), *key = rv_str_dup(name);
    int rc = key ? 0 : RV_FAIL(err, RV_E_NOMEM, "read an address");

    *fits = value != NULL;
    if (rc == 0 && value)
        rc = rv_json_set_text(to, key, value, err);
    free(value);
    free(key);
    return rc;
}

/* The inputs that an address gives; *fits: it is one of the template. */
static int read_inputs(rv_str template, rv_str uri, json_object *to, bool *fits, rv_err **err)
{
    rv_str before, name, follows, next;
    int rc = 0;

    *fits = true;
    while (rc == 0 && *fits && rv_mcp_uri_next(&template, &before, &name)) {
        rv_str peek = template;
        bool is_last = !rv_mcp_uri_next(&peek, &follows, &next);
        *fits = uri.len >= before.len && memcmp(uri.ptr, before.ptr, before.len) == 0;
        if (!*fits)
            return 0;
        uri = (rv_str){uri.ptr + before.len, uri.len - before.len};
        size_t n = input_length(uri, follows, is_last);
        *fits = n > 0;
        if (*fits)
            rc = add_input(to, name, (rv_str){uri.ptr, n}, fits, err);
        uri = (rv_str){uri.ptr + n, uri.len - n};
    }
    if (rc == 0 && *fits) {
        RV_IGNORE(rv_mcp_uri_next(&template, &before, &name), "the text behind the last one");
        *fits = rv_str_eq(uri, before);
    }
    return rc;
}

struct reading {
    rv_str uri;
    struct mcp_document *out;
};

static int take_resource(void *self, const char *name, const char *path, const struct rv_pipeline *p, rv_err **err)
{
    struct reading *r = self;
    json_object *inputs;
    bool fits = false;

    if (p->mcp.kind != RV_MCP_OFFER_RESOURCE || !p->is_sound)
        return 0;
    inputs = json_object_new_object();
    int rc = inputs ? read_inputs(rv_str_of(p->mcp.uri), r->uri, inputs, &fits, err)
                    : RV_FAIL(err, RV_E_NOMEM, "read an address");
    if (rc == 0 && fits)
        rc = app_mcp_offer_of(name, path, RV_MCP_OFFER_RESOURCE, &r->out->offer, err);
    if (rc < 0 || !fits) {
        json_object_put(inputs);
        return rc;
    }
    r->out->arguments = inputs;
    return MCP_FOUND;
}

int app_mcp_find_resource(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, rv_str uri,
                          struct mcp_document *out, rv_err **err)
{
    struct reading r = {uri, out};
    int rc = app_mcp_pipelines_each(opts, at, take_resource, &r, err);

    return rc == MCP_FOUND ? 0 : rc;
}

void app_mcp_document_fini(struct mcp_document *d)
{
    json_object_put(d->result);
    json_object_put(d->arguments);
    app_mcp_offer_fini(&d->offer);
}

/* --- what a run said --- */

static json_object *member(json_object *o, const char *key)
{
    json_object *v = NULL;

    json_object_object_get_ex(o, key, &v);
    return v;
}

static void add_message(struct rv_json_build *b, json_object *list, const char *role, json_object *block)
{
    json_object *one = rv_json_build(b, list, NULL, b->rc < 0 ? NULL : json_object_new_object());

    rv_json_build_text(b, one, "role", role);
    if (!json_object_is_type(block, json_type_string)) {
        rv_json_build(b, one, "content", b->rc < 0 ? NULL : json_object_get(block));
        return;
    }
    json_object *content = rv_json_build(b, one, "content", b->rc < 0 ? NULL : json_object_new_object());
    rv_json_build_text(b, content, "type", "text");
    rv_json_build(b, content, "text", b->rc < 0 ? NULL : json_object_get(block));
}

/* `messages` of the output, each with a role and a text or a block; NULL: there are none such. */
static json_object *own_messages(json_object *result)
{
    json_object *list =
        rv_json_get_arr(rv_json_get_obj(rv_json_get_obj(result, "structuredContent"), "artifact"), "messages");

    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object *one = json_object_array_get_idx(list, i), *content = member(one, "content");
        rv_str role = rv_json_str(member(one, "role"));
        bool is_text = json_object_is_type(content, json_type_string);
        if ((!rv_str_is(role, "user") && !rv_str_is(role, "assistant")) || (!is_text && !app_mcp_is_block(content)))
            return NULL;
    }
    return list && json_object_array_length(list) > 0 ? list : NULL;
}

static void write_messages(struct rv_json_build *b, json_object *from, json_object *to)
{
    json_object *own = own_messages(from), *blocks = rv_json_get_arr(from, "content");
    json_object *list = rv_json_build(b, to, "messages", b->rc < 0 ? NULL : json_object_new_array());

    for (size_t i = 0; own && i < json_object_array_length(own); i++) {
        json_object *one = json_object_array_get_idx(own, i);
        add_message(b, list, rv_json_text_or(one, "role", "user"), member(one, "content"));
    }
    for (size_t i = 0; !own && blocks && i < json_object_array_length(blocks); i++)
        add_message(b, list, "user", json_object_array_get_idx(blocks, i));
}

/* A text is one of the address; bytes have the type that they say, and a resource its own address. */
static void write_contents(struct rv_json_build *b, const struct mcp_shown *shown, json_object *from, json_object *to)
{
    json_object *blocks = rv_json_get_arr(from, "content");
    json_object *list = rv_json_build(b, to, "contents", b->rc < 0 ? NULL : json_object_new_array());

    for (size_t i = 0; blocks && b->rc == 0 && i < json_object_array_length(blocks); i++) {
        json_object *block = json_object_array_get_idx(blocks, i), *resource = rv_json_get_obj(block, "resource");
        json_object *text = member(block, "text"), *data = member(block, "data");
        if (resource) {
            rv_json_build(b, list, NULL, json_object_get(resource));
            continue;
        }
        json_object *one = rv_json_build(b, list, NULL, json_object_new_object());
        rv_json_build_text(b, one, "uri", shown->uri);
        rv_json_build_text(b, one, "mimeType",
                           data ? rv_json_text_or(block, "mimeType", "application/octet-stream") : shown->mime_type);
        if (data)
            rv_json_build(b, one, "blob", b->rc < 0 ? NULL : json_object_get(data));
        else
            rv_json_build(b, one, "text", b->rc < 0 ? NULL : text ? json_object_get(text) : json_object_new_string(""));
    }
}

int app_mcp_show(const struct mcp_shown *shown, json_object *result, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};

    *out = json_object_new_object();
    if (!*out)
        return RV_FAIL(err, RV_E_NOMEM, "answer a client");
    if (shown->want == RV_MCP_WANT_READ_RESOURCE) {
        write_contents(&b, shown, result, *out);
    } else {
        if (shown->description[0])
            rv_json_build_text(&b, *out, "description", shown->description);
        write_messages(&b, result, *out);
    }
    if (b.rc < 0) {
        json_object_put(*out);
        *out = NULL;
    }
    return b.rc;
}
