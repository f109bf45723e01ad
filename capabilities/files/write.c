/* write_file and delete_file. A file is replaced as a whole: a temporary file beside it, then a rename, so that readers
 * see the old text or the new one. Names are used relative to the opened folder, never as a path again. */
#include "capabilities/files/files_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_ATTEMPTS 100 /* names of temporary files that may be taken already */

static const char *reason_of(int code)
{
    const char *words = strerrordesc_np(code);

    return words ? words : "it cannot be changed";
}

static int fail_errno(struct rv_cap_call *call, const char *path, int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return rv_cap_failf(call, "NotFoundError", "file \"%s\": its folder does not exist", path);
    case EXDEV:
    case ELOOP:
        return rv_cap_failf(call, "AccessDenied", "file \"%s\": a link leads out of the root", path);
    case EISDIR:
        return rv_cap_failf(call, "ValidationError", "\"%s\" is a folder", path);
    case EACCES:
    case EPERM:
        return rv_cap_failf(call, "AccessDenied", "file \"%s\": the system does not let this process change it", path);
    case ENAMETOOLONG:
        return rv_cap_failf(call, "ValidationError", "file \"%.200s\": its name is too long: take a shorter one", path);
    case ENOSPC:
        return rv_cap_failf(call, "ExecutionError", "file \"%s\": the disk is full: make room there", path);
    case EDQUOT:
        return rv_cap_failf(call, "ExecutionError", "file \"%s\": the quota of the disk is used up: make room there",
                            path);
    case EFBIG:
        return rv_cap_failf(call, "ExecutionError",
                            "file \"%s\": it would be larger than a file of this process may be (`ulimit -f`)", path);
    default:
        return rv_cap_failf(call, "ExecutionError", "file \"%s\": %s (system error %d)", path, reason_of(code), code);
    }
}

/* 0: absent, 1: a regular file; -1: something else or not known, and the call has failed. */
static int kind_of(struct rv_cap_call *call, const char *path, int dir, const char *name, struct stat *st)
{
    if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            return 0;
        fail_errno(call, path, errno);
        return -1;
    }
    if (S_ISREG(st->st_mode))
        return 1;
    rv_cap_failf(call, "AccessDenied", "\"%s\" is not a regular file", path);
    return -1;
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : EIO;
            return false;
        }
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static int open_temp(int dir, const char *name, char *temp, size_t size)
{
    int fd = -1;

    for (int i = 0; i < TEMP_ATTEMPTS && fd < 0; i++) {
        int len = snprintf(temp, size, ".%.200s.%ld.%d.tmp", name, (long)getpid(), i);
        if (len < 0 || (size_t)len >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

/* 0, or an errno. An old file keeps who may read and write it, and survives any failure. Its set-user-id and
 * set-group-id bits do not stay: the new text is not the program that they were given to. */
static int replace(int dir, const char *name, const struct stat *old, const char *bytes, size_t len)
{
    char temp[300];
    int code = 0, fd = open_temp(dir, name, temp, sizeof temp);

    if (fd < 0)
        return errno;
    if ((old && fchmod(fd, old->st_mode & 0777) != 0) || !write_all(fd, bytes, len) || fsync(fd) != 0)
        code = errno;
    if (close(fd) != 0 && code == 0)
        code = errno;
    if (code == 0 && renameat(dir, temp, dir, name) != 0)
        code = errno;
    if (code != 0)
        unlinkat(dir, temp, 0);
    else
        fsync(dir); /* sync the name, too; where a folder cannot be synced the rename still holds */
    return code;
}

/* Resolve path to its folder and name; -1 with the call failed. */
static int folder_of(const struct files *f, struct rv_cap_call *call, const char *path, char *name, size_t size)
{
    struct place place;
    int dir;

    if (!place_of(f, call, path, &place))
        return -1;
    dir = open_parent(f, &place, name, size);
    if (dir < 0)
        fail_errno(call, path, errno);
    return dir;
}

static int reply_path(struct rv_cap_call *call, const char *path, const char *key, json_object *value)
{
    json_object *reply = json_object_new_object();
    bool failed = false;

    put(&failed, reply, "path", json_object_new_string(path));
    put(&failed, reply, key, value);
    return reply_take(call, reply, failed);
}

int write_file(void *self, struct rv_cap_call *call)
{
    const struct files *f = self;
    json_object *args = args_parse(call), *text = arg_in(args, "text");
    const char *path = arg_path(args);
    char name[MAX_PATH_BYTES];
    struct stat old;
    size_t len;
    int dir = -1, kind, code, rc = 1;

    if (!args)
        return 1;
    if (!json_object_is_type(text, json_type_string)) {
        rc = call->fail(call, "ValidationError", "text is missing");
        goto done;
    }
    len = (size_t)json_object_get_string_len(text);
    if (len > f->max_file_bytes) {
        rc = rv_cap_failf(call, "ValidationError", "the text has %zu bytes, max_file_bytes is %zu", len,
                          f->max_file_bytes);
        goto done;
    }
    dir = folder_of(f, call, path, name, sizeof name);
    if (dir < 0)
        goto done;
    kind = kind_of(call, path, dir, name, &old);
    if (kind < 0)
        goto done;
    code = replace(dir, name, kind ? &old : NULL, json_object_get_string(text), len);
    rc = code ? fail_errno(call, path, code) : reply_path(call, path, "bytes", json_object_new_int64((int64_t)len));
done:
    if (dir >= 0)
        close(dir);
    json_object_put(args);
    return rc;
}

int delete_file(void *self, struct rv_cap_call *call)
{
    const struct files *f = self;
    json_object *args = args_parse(call);
    const char *path = arg_path(args);
    char name[MAX_PATH_BYTES];
    struct stat old;
    int dir, kind, rc = 1;

    if (!args)
        return 1;
    dir = folder_of(f, call, path, name, sizeof name);
    if (dir >= 0) {
        kind = kind_of(call, path, dir, name, &old);
        if (kind > 0 && unlinkat(dir, name, 0) != 0 && errno != ENOENT)
            rc = fail_errno(call, path, errno);
        else if (kind >= 0) /* a second call leaves the same state: it says so and succeeds */
            rc = reply_path(call, path, "deleted", json_object_new_boolean(kind > 0));
        close(dir);
    }
    json_object_put(args);
    return rc;
}
