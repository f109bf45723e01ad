/* Resources: sessions and entities of the store, as reeve:// addresses.
 *
 *   reeve://sessions/ID          a session with its messages
 *   reeve://entities/KIND/WORD   an entity by its id, name or key
 *
 * The list has the sessions, last touched first; entities are many, and are found by the template or the tool query.
 * Before them stand pipelines that are resources, at addresses of their own (offered.c). */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/entities.h"
#include "coreengine/app/mcp/mcp_internal.h"
#include "coreengine/app/rows.h"
#include "coreengine/base/base.h"

#define SCHEME   "reeve://"
#define SESSIONS SCHEME "sessions/"
#define ENTITIES SCHEME "entities/"
#define JSON     "application/json"
#define MAX_URI  4096 /* bytes of an address that a client asks for: ids and a few words; a longer one is an error */

/* --- addresses --- */

static bool is_plain(char c)
{
    return rv_is_letter(c) || rv_is_digit(c) || strchr("-._~", c);
}

static void write_encoded(const char *text, rv_buf *b)
{
    for (; *text; text++)
        if (is_plain(*text))
            rv_buf_putc(b, *text);
        else
            rv_buf_printf(b, "%%%02X", (unsigned)(unsigned char)*text);
}

char *app_mcp_uri_decode(rv_str part)
{
    char *out = part.len > 0 ? malloc(part.len + 1) : NULL;
    size_t n = 0;

    for (size_t i = 0; out && i < part.len; i++) {
        char c = part.ptr[i];
        if (c == '%' && i + 2 < part.len && rv_is_hex(part.ptr[i + 1]) && rv_is_hex(part.ptr[i + 2])) {
            c = (char)(rv_hex_digit(part.ptr[i + 1]) * 16 + rv_hex_digit(part.ptr[i + 2]));
            i += 2;
        }
        if (c == '\0' || c == '/') {
            free(out);
            return NULL;
        }
        out[n++] = c;
    }
    if (out)
        out[n] = '\0';
    return out;
}

/* --- the list --- */

struct listing {
    json_object *list;
    int64_t n;
};

static int add_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    struct listing *l = self;
    rv_buf uri = RV_BUF_INIT(MAX_URI);

    if (l->n++ == RV_MCP_PAGE)
        return 0;
    rv_buf_puts(&uri, SESSIONS);
    write_encoded(row->id, &uri);
    struct rv_json_build b = {err, rv_buf_check(&uri, "an address", err)};
    json_object *one = rv_json_build(&b, l->list, NULL, b.rc < 0 ? NULL : json_object_new_object());
    rv_json_build_buf(&b, one, "uri", &uri);
    rv_json_build_text(&b, one, "name", row->name && row->name[0] ? row->name : row->id);
    rv_json_build_text(&b, one, "description", "a session with its messages");
    rv_json_build_text(&b, one, "mimeType", JSON);
    rv_buf_fini(&uri);
    return b.rc;
}

/* Pipelines, which are the first of the list. */
struct offering {
    json_object *list;
    int64_t first, n; /* entries to leave out; that were seen */
    bool has_inputs;  /* templates are wanted */
    bool has_more;
};

static int add_offered(void *self, const char *name, const char *path, const struct rv_pipeline *p, rv_err **err)
{
    struct offering *o = self;
    struct rv_json_build b = {.err = err};

    (void)path;
    if (p->mcp.kind != RV_MCP_OFFER_RESOURCE || !p->is_sound || (p->inputs.n > 0) != o->has_inputs || o->n++ < o->first)
        return 0;
    if (json_object_array_length(o->list) == RV_MCP_PAGE) {
        o->has_more = true;
        return MCP_FOUND;
    }
    json_object *one = rv_json_build(&b, o->list, NULL, json_object_new_object());
    rv_json_build_text(&b, one, o->has_inputs ? "uriTemplate" : "uri", p->mcp.uri);
    rv_json_build_text(&b, one, "name", name);
    if (p->description && p->description[0])
        rv_json_build_text(&b, one, "description", p->description);
    rv_json_build_text(&b, one, "mimeType", p->mcp.mime_type[0] ? p->mcp.mime_type : "text/plain");
    return b.rc;
}

int app_mcp_resources_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, int64_t first,
                           json_object *list, bool *has_more, rv_err **err)
{
    struct offering offered = {.list = list, .first = first};
    int rc = app_mcp_pipelines_each(opts, at, add_offered, &offered, err);
    int64_t n = (int64_t)json_object_array_length(list);
    const struct rv_session_filter filter = {.offset = first > offered.n ? first - offered.n : 0,
                                             .limit = RV_MCP_PAGE + 1 - n};
    struct listing l = {list, n};

    *has_more = offered.has_more;
    if (rc == MCP_FOUND)
        return 0;
    if (rc < 0 || !app_mcp_may(at, RV_APP_MCP_SESSIONS))
        return rc;
    rc = rv_store_list_sessions(at->sources->store, &at->app->scope, &filter, add_session, &l, err);
    if (rc == 0)
        *has_more = l.n > RV_MCP_PAGE;
    return rc;
}

static void add_template(struct rv_json_build *b, json_object *list, const char *uri, const char *name,
                         const char *description)
{
    json_object *one = rv_json_build(b, list, NULL, b->rc < 0 ? NULL : json_object_new_object());

    rv_json_build_text(b, one, "uriTemplate", uri);
    rv_json_build_text(b, one, "name", name);
    rv_json_build_text(b, one, "description", description);
    rv_json_build_text(b, one, "mimeType", JSON);
}

int app_mcp_templates_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, json_object *list,
                           rv_err **err)
{
    struct offering offered = {.list = list, .has_inputs = true};
    struct rv_json_build b = {.err = err};

    if (app_mcp_may(at, RV_APP_MCP_SESSIONS))
        add_template(&b, list, SESSIONS "{id}", "session", "a session with its messages");
    if (app_mcp_may(at, RV_APP_MCP_DATA))
        add_template(&b, list, ENTITIES "{kind}/{key}", "entity", "an entity by its id, name or key");
    if (b.rc < 0)
        return b.rc;
    int rc = app_mcp_pipelines_each(opts, at, add_offered, &offered, err);
    return rc == MCP_FOUND ? 0 : rc;
}

/* --- one of them --- */

static int write_session(const struct rv_app_mcp_at *at, const char *id, rv_buf *out, rv_err **err)
{
    const struct rv_message_filter all = {.with_children = true};
    struct rv_session_row row;
    int rc = rv_store_get_session(at->sources->store, &at->app->scope, id, &row, err);

    if (rc < 0)
        return rc;
    rv_jw w = rv_jw_on(out);
    rv_jw_obj(&w);
    rv_jw_key(&w, "session");
    rv_app_session_write(&row, &w);
    rv_session_row_fini(&row);
    rv_jw_key(&w, "messages");
    rc = rv_app_messages_write(at->sources->store, &at->app->scope, id, &all, &w, err);
    rv_jw_obj_end(&w);
    return rc;
}

/* The first row that the word means. */
static int write_entity(const struct rv_app_mcp_at *at, const char *kind, const char *word, rv_buf *out, rv_err **err)
{
    json_object *found = NULL;
    int rc = rv_app_entities_show(at->sources->store, &at->app->scope, kind, word, &found, err);

    if (rc == 0)
        rv_json_write(json_object_array_get_idx(found, 0), out);
    json_object_put(found);
    return rc;
}

static int write_resource(const struct rv_app_mcp_at *at, rv_str uri, rv_buf *out, rv_err **err)
{
    static const char sessions[] = SESSIONS, entities[] = ENTITIES;
    int rc = RV_E_NOT_FOUND;

    if (uri.len > sizeof sessions - 1 && memcmp(uri.ptr, sessions, sizeof sessions - 1) == 0 &&
        app_mcp_may(at, RV_APP_MCP_SESSIONS)) {
        char *id = app_mcp_uri_decode((rv_str){uri.ptr + sizeof sessions - 1, uri.len - sizeof sessions + 1});
        rc = id ? write_session(at, id, out, err) : rc;
        free(id);
    } else if (uri.len > sizeof entities - 1 && memcmp(uri.ptr, entities, sizeof entities - 1) == 0 &&
               app_mcp_may(at, RV_APP_MCP_DATA)) {
        rv_str rest = {uri.ptr + sizeof entities - 1, uri.len - sizeof entities + 1};
        const char *slash = memchr(rest.ptr, '/', rest.len);
        size_t n = slash ? (size_t)(slash - rest.ptr) : 0;
        char *kind = slash ? app_mcp_uri_decode((rv_str){rest.ptr, n}) : NULL;
        char *word = slash ? app_mcp_uri_decode((rv_str){slash + 1, rest.len - n - 1}) : NULL;
        rc = kind && word ? write_entity(at, kind, word, out, err) : rc;
        free(kind);
        free(word);
    }
    return rc;
}

static int read_row(const struct rv_app_mcp_at *at, rv_str uri, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MCP_MAX_RESULT / 2); /* as a string in JSON it may be twice as long */
    rv_err *why = NULL;
    int rc = write_resource(at, uri, &text, &why);

    if (rc == RV_E_INVALID) /* a kind that does not exist, an id that cannot be one */
        rc = RV_E_NOT_FOUND;
    if (rc == 0)
        rc = rv_buf_check(&text, "a resource", &why);
    if (rc < 0) {
        rc = RV_FAIL(err, rc, "%s",
                     why ? rv_err_text(why) : "unknown resource; resources/templates/list has the forms of addresses");
    } else {
        json_object *result = json_object_new_object();
        struct rv_json_build b = {err, result ? 0 : RV_FAIL(err, RV_E_NOMEM, "read a resource")};
        json_object *list = rv_json_build(&b, result, "contents", b.rc < 0 ? NULL : json_object_new_array());
        json_object *one = rv_json_build(&b, list, NULL, b.rc < 0 ? NULL : json_object_new_object());
        rv_json_build(&b, one, "uri", b.rc < 0 ? NULL : json_object_new_string_len(uri.ptr, (int)uri.len));
        rv_json_build_text(&b, one, "mimeType", JSON);
        rv_json_build(&b, one, "text", b.rc < 0 ? NULL : json_object_new_string_len(rv_buf_cstr(&text), (int)text.len));
        rc = b.rc;
        if (rc < 0)
            json_object_put(result);
        else
            *out = result;
    }
    rv_err_free(why);
    rv_buf_fini(&text);
    return rc;
}

int app_mcp_resource_read(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, rv_str uri,
                          struct mcp_document *out, rv_err **err)
{
    static const char scheme[] = SCHEME;

    if (uri.len < sizeof scheme - 1 || memcmp(uri.ptr, scheme, sizeof scheme - 1) != 0) {
        int rc = uri.len <= MAX_URI ? app_mcp_find_resource(opts, at, uri, out, err) : 0;
        if (rc < 0 || out->offer.name)
            return rc;
    }
    return read_row(at, uri, &out->result, err);
}

/* --- what may be filled in --- */

struct filling {
    rv_str begins;
    json_object *values;
};

static int complete_kind(const struct filling *f, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < rv_n_kinds && rc == 0; i++)
        if (strncmp(rv_kinds[i].name, f->begins.ptr ? f->begins.ptr : "", f->begins.len) == 0)
            rc = rv_json_push_take(f->values, json_object_new_string(rv_kinds[i].name), err);
    return rc;
}

int app_mcp_complete(const struct rv_app_mcp_at *at, json_object *params, json_object **out, rv_err **err)
{
    json_object *argument = rv_json_get_obj(params, "argument"), *value = NULL, *result = json_object_new_object();
    struct rv_json_build b = {err, result ? 0 : RV_FAIL(err, RV_E_NOMEM, "complete an argument")};
    json_object *completion = rv_json_build(&b, result, "completion", b.rc < 0 ? NULL : json_object_new_object());
    json_object *values = rv_json_build(&b, completion, "values", b.rc < 0 ? NULL : json_object_new_array());

    json_object_object_get_ex(argument, "value", &value);
    const char *type = rv_json_text_or(rv_json_get_obj(params, "ref"), "type", NULL);
    const char *name = rv_json_text_or(argument, "name", NULL);
    const struct filling f = {rv_json_str(value), values};
    if (b.rc == 0 && strcmp(type, "ref/resource") == 0 && strcmp(name, "kind") == 0 && app_mcp_may(at, RV_APP_MCP_DATA))
        b.rc = complete_kind(&f, err);
    rv_json_build(&b, completion, "hasMore", b.rc < 0 ? NULL : json_object_new_boolean(false));
    if (b.rc < 0)
        json_object_put(result);
    else
        *out = result;
    return b.rc;
}
