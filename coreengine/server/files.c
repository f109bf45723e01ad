/* Handlers of texts that clients send, and of the tree of all texts that were read, as an ontology. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/server/handlers_internal.h"

#define MIN_CHARS 100    /* of a chunk, as on the command line: each chunk is a row */
#define MAX_CHARS 100000 /* of one piece: above it an embedding sees only the beginning; more is an error */
#define MAX_FILES 1000   /* of one request: RV_REQUEST_MAX_BYTES holds as many small ones; more is an error */

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

/* "file:///a/b%20c.md" is "a/b c.md". An address that does not decode to text stays as it is. NULL: no memory. */
static char *path_of(const char *uri)
{
    const char *from = strstr(uri, "://");

    for (from = from ? from + 3 : uri; *from == '/'; from++)
        ;
    rv_buf path = RV_BUF_INIT(strlen(from) + 1);
    for (const char *p = from; *p; p++)
        if (*p == '%' && rv_hex_digit(p[1]) >= 0 && rv_hex_digit(p[2]) >= 0) {
            rv_buf_putc(&path, (char)(rv_hex_digit(p[1]) << 4 | rv_hex_digit(p[2])));
            p += 2;
        } else {
            rv_buf_putc(&path, *p);
        }
    rv_str text = rv_buf_str(&path);
    bool is_text = rv_utf8_valid(text, NULL) && strlen(rv_buf_cstr(&path)) == text.len;
    char *copy = path.rc == 0 ? rv_str_dup(is_text ? text : rv_str_of(from)) : NULL;
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
    int cx = *x == '/' ? 1 : *x ? 1 + (unsigned char)*x : 0, cy = *y == '/' ? 1 : *y ? 1 + (unsigned char)*y : 0;
    return cx - cy;
}

/* Files, one page of them. */
struct leaves {
    int64_t limit, offset; /* given */
    json_object *rows;     /* owned */
    struct leaf *items;    /* owned; in the order of their paths */
    size_t n;
    bool has_more;
};

static void leaves_fini(struct leaves *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i].path);
    free(l->items);
    json_object_put(l->rows);
    *l = (struct leaves){.limit = l->limit, .offset = l->offset};
}

static int list_leaves(struct srv_call *c, struct leaves *l, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(200);

    rv_buf_printf(&sql,
                  "SELECT id, name, uri, size_bytes, updated_at FROM files ORDER BY uri, id LIMIT %lld OFFSET %lld",
                  (long long)l->limit + 1, (long long)l->offset);
    int rc = rv_buf_check(&sql, "a statement", err);
    if (rc == 0)
        rc = rv_app_select(c->store, &c->app.scope, rv_buf_str(&sql), &l->rows, &l->has_more, err);
    rv_buf_fini(&sql);
    if (rc < 0)
        return rc;
    size_t total = json_object_array_length(l->rows);
    if ((int64_t)total > l->limit) {
        l->has_more = true;
        total = (size_t)l->limit;
    }
    l->items = calloc(total + 1, sizeof *l->items);
    for (; l->items && l->n < total; l->n++) {
        struct leaf *leaf = &l->items[l->n];
        const char *uri = "";
        leaf->row = json_object_array_get_idx(l->rows, l->n);
        if (!rv_json_get_text(leaf->row, "uri", &uri) && !rv_json_get_text(leaf->row, "name", &uri))
            rv_json_get_text(leaf->row, "id", &uri);
        if (!(leaf->path = path_of(uri)))
            return RV_FAIL(err, RV_E_NOMEM, "list files");
    }
    if (!l->items)
        return RV_FAIL(err, RV_E_NOMEM, "list files");
    qsort(l->items, l->n, sizeof *l->items, by_path);
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

/* Bytes of the folders that both paths begin with, each with its slash. */
static size_t chain_of(const char *first, const char *last)
{
    size_t len = 0;

    for (size_t i = 0; first[i] && first[i] == last[i]; i++)
        if (first[i] == '/')
            len = i + 1;
    return len;
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
        len += chain_of(l[i].path + len, l[end - 1].path + len);
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
    struct leaves l = {.limit = RV_APP_MAX_SELECT};
    int rc = srv_call_int(c, "limit", 1, RV_APP_MAX_SELECT, &l.limit, err);

    if (rc == 0)
        rc = srv_call_int(c, "offset", 0, INT64_MAX / 2, &l.offset, err);
    if (rc == 0)
        rc = list_leaves(c, &l, err);
    if (rc == 0) {
        rv_jw w = srv_call_json(c, 200);
        rv_jw_obj(&w);
        rv_jw_key(&w, "tree");
        write_level(l.items, l.n, 0, 0, &w);
        rv_jw_kv_int(&w, "files", (int64_t)l.n);
        rv_jw_kv_bool(&w, "truncated", l.has_more);
        rv_jw_obj_end(&w);
    }
    leaves_fini(&l);
    return rc;
}

/* *id: of the file with that path, the caller's. RV_E_NOT_FOUND. */
static int find_page(struct srv_call *c, const char *path, char **id, rv_err **err)
{
    struct leaves l = {.limit = RV_APP_MAX_SELECT};
    int rc;

    do {
        leaves_fini(&l);
        if ((rc = list_leaves(c, &l, err)) < 0)
            break;
        for (size_t i = 0; i < l.n && !*id && rc == 0; i++)
            if (strcmp(l.items[i].path, path) == 0 &&
                !(*id = rv_str_dup(rv_str_of(rv_json_text_or(l.items[i].row, "id", "")))))
                rc = RV_FAIL(err, RV_E_NOMEM, "find a page");
        l.offset += (int64_t)l.n;
    } while (rc == 0 && !*id && l.has_more && l.n > 0);
    leaves_fini(&l);
    if (rc == 0 && !*id) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "unknown page \"%.200s\"", path);
        rv_err_set_hint(err, "GET /ontology/tree lists the pages");
    }
    return rc;
}

int srv_ontology_content(struct srv_call *c, rv_err **err)
{
    json_object *row = NULL;
    const char *text = NULL;
    char *id = NULL;
    int rc = find_page(c, c->args[0], &id, err);

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
    free(id);
    return rc;
}
