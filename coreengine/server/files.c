/* Handlers of texts that clients send, and of the tree of all texts that were read, as an ontology. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/ingest.h"
#include "coreengine/app/select.h"
#include "coreengine/base/hex.h"
#include "coreengine/server/handlers_internal.h"

#define MIN_CHARS 100 /* of a chunk, as on the command line: each chunk is a row */
#define MAX_CHARS 100000
#define MAX_FILES 1000 /* of one request */

/* --- texts that are sent --- */

static int tell(void *self, const struct rv_ingested *file, rv_err **err)
{
    rv_jw *w = self;

    (void)err;
    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", file->id);
    rv_jw_kv_text(w, "path", file->path);
    rv_jw_kv_text(w, "name", file->name);
    rv_jw_kv_text(w, "status", rv_ingest_outcome_text(file->outcome));
    rv_jw_kv_int(w, "chunks", (int64_t)file->n_chunks);
    rv_jw_obj_end(w);
    return 0;
}

static int take_file(struct rv_app_ingest *opts, json_object *file, rv_err **err)
{
    json_object *content = NULL;
    const char *path = NULL;

    if (!rv_json_get_text(file, "path", &path) || !json_object_object_get_ex(file, "content", &content) ||
        !json_object_is_type(content, json_type_string))
        return RV_FAIL(err, RV_E_INVALID, "a file needs \"path\" and \"content\", which are texts");
    return rv_app_ingest_text(opts, path, rv_json_str(content), err);
}

int srv_files_post(struct srv_call *c, rv_err **err)
{
    json_object *files = rv_json_get_arr(c->body, "files");
    rv_jw w = srv_call_json(c, 201);
    struct rv_app_ingest opts = {.store = c->store, .scope = c->app.scope, .on_file = tell, .self = &w};
    int64_t chars = 0, overlap = 0;
    int rc = srv_body_text(c, "session", false, &opts.session, err);

    if (rc < 0)
        return rc;
    if ((rv_json_get_int(c->body, "chunk_chars", &chars) && (chars < MIN_CHARS || chars > MAX_CHARS)) ||
        (rv_json_get_int(c->body, "overlap", &overlap) && (overlap < 0 || overlap > MAX_CHARS)))
        return RV_FAIL(err, RV_E_INVALID, "chunk_chars must be from %d, and overlap from 0, to %d", MIN_CHARS,
                       MAX_CHARS);
    opts.chunk_chars = (size_t)chars;
    opts.overlap = (size_t)overlap;
    if (files && json_object_array_length(files) > MAX_FILES)
        return RV_FAIL(err, RV_E_LIMIT, "more than %d files at once", MAX_FILES);
    rv_jw_arr(&w);
    if (!files)
        rc = take_file(&opts, c->body, err);
    for (size_t i = 0; files && i < json_object_array_length(files) && rc == 0; i++) {
        rc = take_file(&opts, json_object_array_get_idx(files, i), err);
        if (rc < 0)
            rc = RV_WRAP(err, rc, "file %zu; those before it are kept", i + 1);
    }
    rv_jw_arr_end(&w);
    return rc;
}

int srv_file_delete(struct srv_call *c, rv_err **err)
{
    int rc = rv_app_delete_file(c->store, &c->app.scope, c->args[0], srv_now_us(), err);

    if (rc < 0)
        return rc;
    rv_jw w = srv_call_json(c, 200);
    rv_jw_raw(&w, RV_STR_LIT("{\"deleted\":true}"));
    return 0;
}

/* --- the tree --- */

struct leaf {
    char *path; /* without scheme, decoded; owned */
    json_object *row;
};

/* "file:///a/b%20c.md" is "a/b c.md". NULL: no memory. */
static char *path_of(const char *uri)
{
    const char *from = strstr(uri, "://");
    rv_buf path = RV_BUF_INIT(16384);

    for (from = from ? from + 3 : uri; *from == '/'; from++)
        ;
    for (; *from; from++) {
        if (*from == '%' && rv_hex_digit(from[1]) >= 0 && rv_hex_digit(from[2]) >= 0) {
            rv_buf_putc(&path, (char)(rv_hex_digit(from[1]) << 4 | rv_hex_digit(from[2])));
            from += 2;
        } else {
            rv_buf_putc(&path, *from);
        }
    }
    char *copy = path.rc == 0 ? rv_str_dup(rv_buf_str(&path)) : NULL;
    rv_buf_fini(&path);
    return copy;
}

/* Folders before what has a name behind theirs: "a/b" before "a-c". */
static int by_path(const void *a, const void *b)
{
    const char *x = ((const struct leaf *)a)->path, *y = ((const struct leaf *)b)->path;

    while (*x && *x == *y) {
        x++;
        y++;
    }
    int cx = *x == '/' ? 1 : (unsigned char)*x, cy = *y == '/' ? 1 : (unsigned char)*y;
    return cx - cy;
}

static int list_leaves(struct srv_call *c, json_object **rows, struct leaf **out, size_t *n, rv_err **err)
{
    static const rv_str sql = RV_STR_LIT("SELECT id, name, uri, size_bytes, updated_at FROM files ORDER BY uri, id");
    int rc = rv_app_select(c->store, &c->app.scope, sql, rows, err);

    *n = 0;
    if (rc < 0)
        return rc;
    size_t total = json_object_array_length(*rows);
    *out = calloc(total + 1, sizeof **out);
    for (size_t i = 0; *out && i < total; i++) {
        const char *uri = "";
        struct leaf *l = &(*out)[*n];
        l->row = json_object_array_get_idx(*rows, i);
        if (!rv_json_get_text(l->row, "uri", &uri) && !rv_json_get_text(l->row, "name", &uri))
            continue;
        if (!(l->path = path_of(uri)))
            return RV_FAIL(err, RV_E_NOMEM, "list files");
        ++*n;
    }
    if (!*out)
        return RV_FAIL(err, RV_E_NOMEM, "list files");
    qsort(*out, *n, sizeof **out, by_path);
    return 0;
}

static void write_leaf(const struct leaf *l, size_t from, rv_jw *w)
{
    const char *text = NULL;
    int64_t size = 0;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", l->path + from);
    rv_jw_kv_text(w, "type", "file");
    rv_jw_kv_text(w, "path", l->path);
    rv_jw_kv_text(w, "id", rv_json_get_text(l->row, "id", &text) ? text : NULL);
    rv_jw_kv_text(w, "key", rv_json_get_text(l->row, "name", &text) ? text : NULL);
    if (rv_json_get_int(l->row, "size_bytes", &size))
        rv_jw_kv_int(w, "size", size);
    rv_jw_kv_text(w, "updated_at", rv_json_get_text(l->row, "updated_at", &text) ? text : NULL);
    rv_jw_obj_end(w);
}

/* Those from `at` on that are below the same folder as the first; `from`: bytes of the path of that folder. Folders
 * that have nothing but one folder are one with it. Deep paths are written flat. */
static size_t write_level(const struct leaf *l, size_t n, size_t from, int depth, rv_jw *w)
{
    size_t i = 0;

    rv_jw_arr(w);
    while (i < n) {
        const char *slash = depth < 32 ? strchr(l[i].path + from, '/') : NULL;
        if (!slash) {
            write_leaf(&l[i++], from, w);
            continue;
        }
        size_t len = (size_t)(slash - l[i].path) + 1, end = i + 1;
        while (end < n && strncmp(l[end].path, l[i].path, len) == 0)
            end++;
        for (const char *next; (next = strchr(l[i].path + len, '/'));) { /* a chain of folders */
            size_t more = (size_t)(next - l[i].path) + 1;
            if (strncmp(l[end - 1].path, l[i].path, more) != 0)
                break;
            len = more;
        }
        rv_jw_obj(w);
        rv_jw_kv_str(w, "name", (rv_str){l[i].path + from, len - 1 - from});
        rv_jw_kv_text(w, "type", "folder");
        rv_jw_kv_str(w, "path", (rv_str){l[i].path, len - 1});
        rv_jw_key(w, "children");
        write_level(l + i, end - i, len, depth + 1, w);
        rv_jw_obj_end(w);
        i = end;
    }
    rv_jw_arr_end(w);
    return i;
}

int srv_ontology_tree(struct srv_call *c, rv_err **err)
{
    json_object *rows = NULL;
    struct leaf *leaves = NULL;
    size_t n = 0;
    int rc = list_leaves(c, &rows, &leaves, &n, err);

    if (rc == 0) {
        rv_jw w = srv_call_json(c, 200);
        rv_jw_obj(&w);
        rv_jw_key(&w, "tree");
        write_level(leaves, n, 0, 0, &w);
        rv_jw_kv_int(&w, "files", (int64_t)n);
        rv_jw_obj_end(&w);
    }
    for (size_t i = 0; i < n; i++)
        free(leaves[i].path);
    free(leaves);
    json_object_put(rows);
    return rc;
}

int srv_ontology_content(struct srv_call *c, rv_err **err)
{
    json_object *rows = NULL, *row = NULL;
    struct leaf *leaves = NULL;
    const char *id = NULL, *text = NULL;
    size_t n = 0;
    int rc = list_leaves(c, &rows, &leaves, &n, err);

    for (size_t i = 0; i < n && rc == 0 && !id; i++)
        if (strcmp(leaves[i].path, c->args[0]) == 0)
            id = rv_json_text_or(leaves[i].row, "id", NULL);
    if (rc == 0 && !id) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "unknown page \"%.200s\"", c->args[0]);
        rv_err_hint(err, "GET /ontology/tree lists the pages");
    }
    if (rc == 0)
        rc = rv_store_get_entity(c->store, &c->app.scope, "files", id, &row, err);
    if (rc == 0) {
        rv_jw w = srv_call_json(c, 200);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "path", c->args[0]);
        rv_jw_kv_text(&w, "id", id);
        rv_jw_kv_text(&w, "key", rv_json_get_text(row, "name", &text) ? text : NULL);
        rv_jw_kv_text(&w, "mime_type", rv_json_get_text(row, "mime_type", &text) ? text : NULL);
        json_object *content = NULL;
        json_object_object_get_ex(row, "parsed_content", &content);
        rv_jw_kv_value(&w, "content", content);
        rv_jw_kv_value(&w, "links", rv_json_get_arr(row, "graph_edges"));
        rv_jw_kv_text(&w, "updated_at", rv_json_get_text(row, "updated_at", &text) ? text : NULL);
        rv_jw_obj_end(&w);
    }
    json_object_put(row);
    for (size_t i = 0; i < n; i++)
        free(leaves[i].path);
    free(leaves);
    json_object_put(rows);
    return rc;
}
