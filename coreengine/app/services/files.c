/* The service `files.read`: a text file below the folder that app->files or REEVE_FILES names. {tenant} and {user} in
 * the folder stand for those of the call, so that each has files of their own. No link is followed below it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coreengine/app/ingest/ingest_internal.h"
#include "coreengine/app/services/services_internal.h"

#define SCHEME    "file://"
#define MAX_BYTES ((size_t)4 << 20) /* of a file: its text, escaped, fits an answer in most cases */

/* --- the folder --- */

/* An id that becomes a part of a path must be the name of one folder. */
static int add_id(const char *what, const char *id, rv_buf *out, rv_err **err)
{
    if (!id || !*id)
        return RV_FAIL(err, RV_E_DENIED, "each %s has files of their own, and the call has no %s", what, what);
    if (strchr(id, '/') || strcmp(id, ".") == 0 || strcmp(id, "..") == 0)
        return RV_FAIL(err, RV_E_DENIED, "the %s \"%.100s\" cannot be the name of a folder", what, id);
    rv_buf_puts(out, id);
    return 0;
}

static int folder_of(const struct app_ask *a, rv_buf *out, rv_err **err)
{
    const char *tenant = a->app.scope.tenant ? a->app.scope.tenant : RV_STORE_TENANT;
    int rc = 0;

    if (!a->app.files || !*a->app.files) {
        rc = RV_FAIL(err, RV_E_DENIED, "capabilities may read no files: no folder is configured for them");
        rv_err_set_hint(err, "set REEVE_FILES to a folder, such as /srv/files/{tenant}/{user}");
        return rc;
    }
    for (const char *s = a->app.files; *s && rc == 0;) {
        if (strncmp(s, "{tenant}", 8) == 0) {
            rc = add_id("tenant", tenant, out, err);
            s += 8;
        } else if (strncmp(s, "{user}", 6) == 0) {
            rc = add_id("user", a->app.scope.user, out, err);
            s += 6;
        } else {
            rv_buf_putc(out, *s++);
        }
    }
    return rc == 0 ? rv_buf_check(out, "folder of files", err) : rc;
}

/* --- the file --- */

static int fail_open(const char *path, int code, rv_err **err)
{
    if (code == ENOENT || code == ENOTDIR)
        return RV_FAIL(err, RV_E_NOT_FOUND, "there is no file \"%.300s\"", path);
    if (code == ELOOP)
        return RV_FAIL(err, RV_E_DENIED, "\"%.300s\" leads over a link, which is not followed", path);
    return RV_FAIL_SYSTEM(err, code, "\"%.300s\" cannot be opened", path);
}

/* Part by part. *fd is the caller's. */
static int open_below(int folder, const char *path, int *fd, rv_err **err)
{
    int at = dup(folder), code = errno;

    for (const char *rest = path; at >= 0;) {
        char part[256];
        size_t len = strcspn(rest, "/");
        bool is_last = rest[len] == '\0';
        if (len == 0 || len >= sizeof part || (rest[0] == '.' && (len == 1 || (len == 2 && rest[1] == '.')))) {
            close(at);
            return RV_FAIL(err, RV_E_INVALID, "\"%.300s\" is not a path below the folder of files", path);
        }
        memcpy(part, rest, len);
        part[len] = '\0';
        rest += len + 1;
        int next = openat(at, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (is_last ? 0 : O_DIRECTORY));
        code = errno;
        close(at);
        at = next;
        if (is_last && at >= 0) {
            *fd = at;
            return 0;
        }
    }
    return fail_open(path, code, err);
}

static int read_text(int fd, const char *path, rv_buf *out, rv_err **err)
{
    char block[16384];
    struct stat st;
    ssize_t n = 0;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return RV_FAIL(err, RV_E_INVALID, "\"%.300s\" is not a regular file", path);
    if ((size_t)st.st_size > MAX_BYTES)
        return RV_FAIL(err, RV_E_LIMIT, "\"%.300s\" has %lld bytes, at most %zu are read", path, (long long)st.st_size,
                       MAX_BYTES);
    do {
        n = read(fd, block, sizeof block);
        if (n > 0)
            rv_buf_add(out, block, (size_t)n);
    } while ((n > 0 && out->len <= MAX_BYTES) || (n < 0 && errno == EINTR));
    if (n < 0)
        return RV_FAIL_SYSTEM(err, errno, "\"%.300s\" cannot be read", path);
    if (!rv_utf8_valid(rv_buf_str(out), NULL) || memchr(rv_buf_cstr(out), '\0', out->len))
        return RV_FAIL(err, RV_E_INVALID, "\"%.300s\" is not text in UTF-8", path);
    return rv_buf_check(out, "file", err);
}

/* A path, or file:// and the path of a file in the folder. Gives the path below the folder. */
static const char *path_of(const char *uri, const char *folder)
{
    size_t n = strlen(folder);

    if (strncmp(uri, SCHEME, strlen(SCHEME)) == 0)
        uri += strlen(SCHEME);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return strncmp(uri, folder, n) == 0 && uri[n] == '/' ? uri + n + 1 : uri;
}

static int read_below(const char *folder, const char *path, rv_buf *text, rv_err **err)
{
    int base = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;

    if (base < 0 && errno == ENOENT) /* of a user who has none yet */
        return fail_open(path, errno, err);
    if (base < 0)
        return RV_FAIL_SYSTEM(err, errno, "the folder of files cannot be opened");
    int rc = open_below(base, path, &fd, err);
    close(base);
    if (rc < 0)
        return rc;
    rc = read_text(fd, path, text, err);
    close(fd);
    return rc;
}

/* --- the answer --- */

static void write_hash(rv_jw *w, const char *key, rv_str of)
{
    struct rv_hash h;
    char hex[RV_HASH_MAX];

    rv_hash_init(&h);
    rv_hash_add(&h, of);
    rv_hash_finish_hex(&h, hex);
    rv_jw_kv_text(w, key, hex);
}

int app_files_read(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"uri"};
    RV_AUTO(rv_buf_fini) rv_buf folder = RV_BUF_INIT(PATH_MAX), text = RV_BUF_INIT(MAX_BYTES + 16384);
    const char *uri = NULL, *path = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = app_ask_text(a, "uri", true, &uri, err);
    if (rc == 0)
        rc = folder_of(a, &folder, err);
    if (rc == 0) {
        path = path_of(uri, rv_buf_cstr(&folder));
        rc = read_below(rv_buf_cstr(&folder), path, &text, err);
    }
    if (rc < 0)
        return rc;
    const char *mime = app_ingest_mime(path);
    rv_jw_kv_text(w, "uri", path);
    write_hash(w, "uri_hash", rv_str_of(path));
    rv_jw_kv_text(w, "mime_type", mime ? mime : "text/plain");
    rv_jw_kv_int(w, "size_bytes", (int64_t)text.len);
    write_hash(w, "sha256", rv_buf_str(&text));
    rv_jw_kv_str(w, "text", rv_buf_str(&text));
    return 0;
}
