/* Files that were read from a folder and are not there any more. Their rows stay, and are found, until they are pruned:
 * a folder that is not mounted looks like one whose files were deleted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/app/ingest/ingest_internal.h"

#define ROWS_AT_ONCE 5000 /* that are asked for: below RV_APP_MAX_SELECT */

/* "file:///a/b%20c.md" is "/a/b c.md", a part of uri that is decoded in place. */
static char *path_of(char *uri)
{
    char *to = uri + strlen("file://"), *path = to;

    for (const char *p = to; *p; p++) {
        bool is_code = *p == '%' && rv_hex_digit(p[1]) >= 0 && rv_hex_digit(p[2]) >= 0;
        *to++ = is_code ? (char)(rv_hex_digit(p[1]) << 4 | rv_hex_digit(p[2])) : *p;
        p += is_code ? 2 : 0;
    }
    *to = '\0';
    return path;
}

static bool is_below(const char *uri, const struct rv_app_ingest *opts, rv_buf *folders)
{
    for (size_t i = 0; i < opts->n_paths; i++)
        if (folders[i].len > 0 && strncmp(uri, rv_buf_cstr(&folders[i]), folders[i].len) == 0)
            return true;
    return false;
}

static int add_missing(struct ingest_missing *out, json_object *row, const char *uri, rv_err **err)
{
    struct missing_file file = {.id = rv_str_dup(rv_str_of(rv_json_text_or(row, "id", ""))),
                                .name = rv_str_dup(rv_str_of(rv_json_text_or(row, "name", ""))),
                                .uri = rv_str_dup(rv_str_of(uri))};
    struct stat st;

    file.path = file.uri ? path_of(file.uri) : NULL;
    bool is_there = file.path && (lstat(file.path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR));
    bool is_whole = file.id && file.name && file.uri && rv_has_room(&out->at, &out->cap, out->n + 1, sizeof *out->at);
    if (is_whole && !is_there) {
        out->at[out->n++] = file;
        return 0;
    }
    free(file.id);
    free(file.name);
    free(file.uri);
    return is_whole ? 0 : RV_FAIL(err, RV_E_NOMEM, "list missing files");
}

static int look_at_rows(const struct rv_app_ingest *opts, rv_buf *folders, struct ingest_missing *out, rv_err **err)
{
    const char *mine = opts->scope.user ? opts->scope.user : "";
    const struct rv_store_scope own = {opts->scope.tenant, mine};
    size_t n = ROWS_AT_ONCE;
    int rc = 0;

    for (int64_t at = 0; n == ROWS_AT_ONCE && rc == 0; at += ROWS_AT_ONCE) {
        rv_buf sql = RV_BUF_INIT(200);
        json_object *rows = NULL;
        rv_buf_printf(&sql, "SELECT id, name, uri, user_id FROM files ORDER BY uri, id LIMIT %d OFFSET %lld",
                      ROWS_AT_ONCE, (long long)at);
        rc = rv_buf_check(&sql, "a statement", err);
        if (rc == 0)
            rc = rv_app_select(opts->store, &own, rv_buf_str(&sql), &rows, NULL, err);
        n = rows ? json_object_array_length(rows) : 0;
        for (size_t i = 0; i < n && rc == 0; i++) {
            json_object *row = json_object_array_get_idx(rows, i);
            const char *uri = rv_json_text_or(row, "uri", "");
            if (strcmp(rv_json_text_or(row, "user_id", ""), mine) == 0 && is_below(uri, opts, folders))
                rc = add_missing(out, row, uri, err);
        }
        json_object_put(rows);
        rv_buf_fini(&sql);
    }
    return rc;
}

/* What the address of each file below it begins with; nothing for what is not a folder. */
static int write_folder(const char *path, rv_buf *out, rv_err **err)
{
    char *real = realpath(path, NULL);
    struct stat st;

    if (real && stat(real, &st) == 0 && S_ISDIR(st.st_mode)) {
        app_ingest_write_uri("file://", real, out);
        if (strcmp(real, "/") != 0)
            rv_buf_putc(out, '/');
    }
    free(real);
    return rv_buf_check(out, "address of the folder", err);
}

int app_ingest_missing(const struct rv_app_ingest *opts, struct ingest_missing *out, rv_err **err)
{
    rv_buf *folders = calloc(opts->n_paths + 1, sizeof *folders);
    size_t n = 0, n_folders = 0;
    int rc = folders ? 0 : RV_FAIL(err, RV_E_NOMEM, "list missing files");

    *out = (struct ingest_missing){0};
    for (; n < opts->n_paths && rc == 0; n++) {
        folders[n] = RV_BUF_INIT(RV_INGEST_MAX_URI);
        rc = write_folder(opts->paths[n], &folders[n], err);
        n_folders += folders[n].len > 0;
    }
    if (rc == 0 && n_folders > 0)
        rc = look_at_rows(opts, folders, out, err);
    for (size_t i = 0; i < n; i++)
        rv_buf_fini(&folders[i]);
    free(folders);
    if (rc < 0)
        app_ingest_missing_fini(out);
    return rc;
}

void app_ingest_missing_fini(struct ingest_missing *files)
{
    for (size_t i = 0; i < files->n; i++) {
        free(files->at[i].id);
        free(files->at[i].name);
        free(files->at[i].uri);
    }
    free(files->at);
    *files = (struct ingest_missing){0};
}
