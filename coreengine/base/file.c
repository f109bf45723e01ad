/* Whole files: read into a capped buffer, replace atomically. What is written is for its owner only, but for new files
 * of authors (rv_file_write_new()), which the umask decides about; and no link leads it elsewhere. */
#include "coreengine/base/base_internal.h"
#include "coreengine/base/reads.h"
#include "coreengine/base/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_CHUNK     ((size_t)64 << 10) /* bytes of one read() of a file whose size is not known */
#define MAX_TEMP_TRIES 16   /* names of random digits: that all of them exist is not chance, and an error */
#define FOLDER_MODE    0700 /* only the user may look into it */
#define MAX_SEEN       1000 /* names of a folder that are looked at for one that is near: only for a hint */
#define MAX_SHOWN      5    /* of them that a hint lists: they stay on one line */
#define MAX_NAME       64   /* bytes of a name that is near another: rv_nearest() finds no longer ones */
#define FILE_MODE      0600 /* files may hold what users said: only their owner reads them */

static int fail_errno(rv_err **err, const char *verb, const char *path, int number)
{
    char text[128];

    if (number == EISDIR)
        return RV_FAIL(err, RV_E_INVALID, "cannot %s \"%s\": %s", verb, path, strerror_r(number, text, sizeof text));
    return RV_FAIL_SYSTEM(err, number, "cannot %s \"%s\"", verb, path);
}

/* --- what could have been meant --- */

static const char *ending_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot : "";
}

/* The names of a folder, up to MAX_SEEN, sorted; the caller frees them. Without memory there are fewer. */
static size_t list_names(const char *folder, char *names[MAX_SEEN])
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    size_t n = 0;

    while (dir && n < MAX_SEEN && (entry = readdir(dir))) {
        size_t at = n;
        char *name = entry->d_name[0] == '.' ? NULL : rv_str_dup(rv_str_of(entry->d_name));
        if (!name)
            continue;
        for (; at > 0 && strcmp(names[at - 1], name) > 0; at--)
            names[at] = names[at - 1];
        names[at] = name;
        n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

/* That both end with ".yaml" makes two names no more alike. */
static const char *nearest_name(const char *name, char *const *names, size_t n)
{
    const char *near = rv_nearest(rv_str_of(name), (const char *const *)names, n);
    char stem[MAX_NAME + 1];

    if (!near || strcmp(ending_of(name), ending_of(near)) != 0)
        return near;
    snprintf(stem, sizeof stem, "%.*s", (int)(strlen(near) - strlen(ending_of(near))), near);
    const char *only = stem;
    return rv_nearest((rv_str){name, strlen(name) - strlen(ending_of(name))}, &only, 1) ? near : NULL;
}

/* head: the folder as it was typed, with its slash. */
static void hint_names(rv_str head, const char *name, char *const *names, size_t n, rv_err **err)
{
    const char *near = nearest_name(name, names, n), *end = ending_of(name);
    rv_buf list = RV_BUF_INIT(4096);
    size_t n_alike = 0;

    for (size_t i = 0; i < n && !near; i++) /* its ending was left out */
        if (name[0] && strncmp(names[i], name, strlen(name)) == 0 && names[i][strlen(name)] == '.')
            near = names[i];
    for (size_t i = 0; i < n && !near; i++) {
        if (!end[0] || strcmp(ending_of(names[i]), end) != 0 || n_alike++ >= MAX_SHOWN)
            continue;
        rv_buf_printf(&list, "%s%s", n_alike > 1 ? ", " : "", names[i]);
    }
    if (near)
        rv_err_set_hint(err, "did you mean %.*s%s?", RV_STR_ARG(head), near);
    else if (n_alike > 0 && list.rc == 0)
        rv_err_set_hint(err, "files there: %s%s", rv_buf_cstr(&list), n_alike > MAX_SHOWN ? ", ..." : "");
    else
        rv_err_set_hint(err,
                        "check the path: in a file it starts at the folder of that file, on the command line at the "
                        "current folder");
    rv_buf_fini(&list);
}

static void hint_missing(const char *path, rv_err **err)
{
    const char *slash = strrchr(path, '/');
    const rv_str head = {path, slash ? (size_t)(slash - path) + 1 : 0};
    char *folder = rv_str_dup(slash ? head : RV_STR_LIT("."));
    char **names = calloc(MAX_SEEN, sizeof *names);
    struct stat st;

    if (!folder || !names) {
        free(names);
        free(folder);
        return;
    }
    if (stat(folder, &st) < 0 || !S_ISDIR(st.st_mode)) {
        rv_err_set_hint(err, "there is no folder %s", folder);
    } else {
        size_t n = list_names(folder, names);
        hint_names(head, slash ? slash + 1 : path, names, n, err);
        for (size_t i = 0; i < n; i++)
            free(names[i]);
    }
    free(names);
    free(folder);
}

static int fail_read(rv_err **err, const char *verb, const char *path, int number)
{
    int rc = fail_errno(err, verb, path, number);

    if (err && (number == ENOENT || number == ENOTDIR))
        hint_missing(path, err);
    else if (number == EISDIR)
        rv_err_set_hint(err, "it is a folder: name a file in it");
    return rc;
}

/* --- reading --- */

static int read_all(int fd, const char *path, rv_buf *b, rv_err **err)
{
    struct stat st;
    char extra;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && (size_t)st.st_size < b->max - b->len)
        RV_IGNORE(!base_buf_room(b, (size_t)st.st_size + 1),
                  "a failure shows below; one more, so that the end is seen");
    for (;;) {
        size_t room = b->cap ? b->cap - b->len - 1 : 0, left = b->max - b->len;
        size_t want = room ? room : left < READ_CHUNK ? left : READ_CHUNK;
        char *to = want ? base_buf_room(b, want) : &extra;
        ssize_t n;
        if (!to)
            return RV_FAIL(err, b->rc, "no memory to read \"%s\"", path);
        n = read(fd, to, want ? want : 1);
        if (n < 0) {
            if (errno == EAGAIN)
                rv_wait_readable(fd);
            else if (errno != EINTR)
                return fail_read(err, "read", path, errno);
            continue;
        }
        if (n == 0)
            break;
        if (want == 0) { /* full, and one byte more is there */
            b->rc = RV_E_LIMIT;
            return RV_FAIL(err, RV_E_LIMIT, "file \"%s\" is longer than %zu bytes", path, b->max);
        }
        b->len += (size_t)n;
    }
    if (b->ptr)
        b->ptr[b->len] = '\0';
    return 0;
}

int rv_file_read(const char *path, rv_buf *b, rv_err **err)
{
    int fd, rc;

    if (b->rc)
        return rv_buf_check(b, "the text before a file", err);
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", b, err);
    rv_reads_note(path, false);
    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return fail_read(err, "open", path, errno);
    rc = read_all(fd, path, b, err);
    close(fd);
    return rc;
}

static int write_all(int fd, rv_str bytes)
{
    while (bytes.len) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        bytes.ptr += n;
        bytes.len -= (size_t)n;
    }
    return 0;
}

/* A fresh file beside path. */
static int open_temp(const char *path, char **out_name)
{
    size_t size = strlen(path) + sizeof ".tmp-0123456789abcdef";
    char *name = malloc(size);
    int tries, fd = -1;

    if (!name) {
        errno = ENOMEM;
        return -1;
    }
    for (tries = 0; fd < 0 && tries < MAX_TEMP_TRIES; tries++) {
        snprintf(name, size, "%s.tmp-%016llx", path, (unsigned long long)rv_rand_u64(rv_rand_system()));
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
        if (fd < 0 && errno != EEXIST && errno != EINTR)
            break;
    }
    if (fd < 0)
        free(name);
    else
        *out_name = name;
    return fd;
}

/* Makes the rename itself durable. Some file systems cannot sync a folder; the file is whole either way. */
static void sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == path ? rv_str_dup(RV_STR_LIT("/"))
                                 : rv_str_dup(slash ? (rv_str){path, (size_t)(slash - path)} : RV_STR_LIT("."));
    int fd;

    if (!folder)
        return;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0)
        return;
    RV_IGNORE(fsync(fd), "not every file system can");
    close(fd);
}

/* Devices and pipes cannot be replaced, only written to. */
static int write_in_place(const char *path, rv_str bytes, rv_err **err)
{
    int number, fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return fail_errno(err, "open", path, errno);
    number = write_all(fd, bytes);
    if (close(fd) < 0 && !number)
        number = errno;
    return number ? fail_errno(err, "write", path, number) : 0;
}

static int replace(const char *target, rv_str bytes, mode_t mode, rv_err **err)
{
    char *temp = NULL;
    int number = 0, fd = open_temp(target, &temp);

    if (fd < 0)
        return fail_errno(err, "create a file beside", target, errno);
    number = write_all(fd, bytes);
    if (!number && mode != FILE_MODE && fchmod(fd, mode) < 0)
        number = errno;
    if (!number && fsync(fd) < 0)
        number = errno;
    if (close(fd) < 0 && !number)
        number = errno;
    if (!number && rename(temp, target) < 0)
        number = errno;
    if (number)
        RV_IGNORE(unlink(temp), "the first failure is the one to report");
    else
        sync_folder_of(target);
    free(temp);
    return number ? fail_errno(err, "write", target, number) : 0;
}

static int fail_link(const char *path, rv_err **err)
{
    RV_IGNORE(RV_FAIL(err, RV_E_INVALID, "cannot write \"%s\": it is a symbolic link", path),
              "the hint comes behind it");
    rv_err_set_hint(err, "name the file itself");
    return RV_E_INVALID;
}

/* Links of /dev are the system's own: /dev/stdout. */
static bool is_device_path(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0;
}

static int write_file(const char *path, rv_str bytes, bool keeps_mode, rv_err **err)
{
    struct stat st;

    if ((is_device_path(path) ? stat(path, &st) : lstat(path, &st)) < 0)
        return errno == ENOENT && !keeps_mode ? replace(path, bytes, FILE_MODE, err)
                                              : fail_errno(err, "write", path, errno);
    if (S_ISLNK(st.st_mode))
        return fail_link(path, err);
    if (S_ISDIR(st.st_mode))
        return fail_errno(err, "write", path, EISDIR);
    if (!S_ISREG(st.st_mode))
        return write_in_place(path, bytes, err);
    return replace(path, bytes, keeps_mode ? st.st_mode & 0777 : FILE_MODE, err);
}

int rv_file_write(const char *path, rv_str bytes, rv_err **err)
{
    return write_file(path, bytes, false, err);
}

int rv_file_rewrite(const char *path, rv_str bytes, rv_err **err)
{
    return write_file(path, bytes, true, err);
}

int rv_file_write_new(const char *path, rv_str bytes, rv_err **err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666), number = fd < 0 ? errno : 0;

    if (fd >= 0) {
        number = write_all(fd, bytes);
        if (close(fd) < 0 && !number)
            number = errno;
        if (number)
            RV_IGNORE(unlink(path), "the first failure is the one to report");
    }
    if (!number)
        return 0;
    int rc = fail_errno(err, "write", path, number);
    if (rc == RV_E_EXISTS)
        rv_err_set_hint(err, "existing files are not overwritten: choose another name or move the file");
    else if (number == EACCES || number == EROFS)
        rv_err_set_hint(err, "choose a folder that you may write to");
    return rc;
}

int rv_file_make_folders(const char *path, rv_err **err)
{
    char *copy = rv_str_dup(rv_str_of(path));
    int rc = copy ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a folder");

    for (char *slash = copy ? strchr(copy + 1, '/') : NULL; slash && rc == 0; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, FOLDER_MODE) < 0 && errno != EEXIST)
            rc = RV_FAIL_SYSTEM(err, errno, "cannot make the folder \"%s\"", copy);
        *slash = '/';
    }
    free(copy);
    return rc;
}

/* An old file is emptied. One of another user, or one that has a second name, is not ours to write to. */
static int take_over(int fd, const char *path, rv_err **err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return fail_errno(err, "open", path, errno);
    if (!S_ISREG(st.st_mode))
        return 0;
    if (st.st_nlink > 1)
        return RV_FAIL(err, RV_E_INVALID, "cannot write \"%s\": the file has another name, too", path);
    if (fchmod(fd, FILE_MODE) < 0 || ftruncate(fd, 0) < 0)
        return fail_errno(err, "write", path, errno);
    return 0;
}

int rv_file_create(const char *path, int *out, rv_err **err)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (is_device_path(path) ? 0 : O_NOFOLLOW);
    int fd = open(path, flags, FILE_MODE);

    if (fd < 0)
        return errno == ELOOP ? fail_link(path, err) : fail_errno(err, "open", path, errno);
    int rc = take_over(fd, path, err);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    *out = fd;
    return 0;
}
