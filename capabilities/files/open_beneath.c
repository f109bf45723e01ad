/* Opening without ever leaving a root, however links and renames change meanwhile. Linux 5.6 does it in one call;
 * before that, and where a sandbox forbids the call, the path is walked part by part and no link is followed at all. */
#include "capabilities/files/files_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int walk_parts(int dir, const char *rel, int flags)
{
    int at = dup(dir);

    while (at >= 0) {
        size_t len = strcspn(rel, "/");
        const char *rest = rel + len;
        char part[MAX_PATH_BYTES];
        int next, saved;

        while (*rest == '/')
            rest++;
        if (len >= sizeof part) {
            next = -1;
            saved = ENAMETOOLONG;
        } else {
            memcpy(part, rel, len);
            part[len] = '\0';
            if (strcmp(part, "..") == 0) {
                next = -1;
                saved = EXDEV;
            } else {
                next = openat(at, len ? part : ".",
                              *rest ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags | O_NOFOLLOW | O_CLOEXEC);
                saved = errno;
            }
        }
        close(at);
        if (next < 0)
            errno = saved;
        if (next < 0 || !*rest)
            return next;
        at = next;
        rel = rest;
    }
    return -1;
}

int open_beneath(const struct files *f, int dir, const char *rel, int flags)
{
    const struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int fd = -1;

    if (!f->no_openat2) {
        do /* EAGAIN: something was renamed during the look-up */
            fd = (int)syscall(SYS_openat2, dir, rel, &how, sizeof how);
        while (fd < 0 && (errno == EAGAIN || errno == EINTR));
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
            return fd;
    }
    return walk_parts(dir, rel, flags);
}

int open_parent(const struct files *f, const struct place *place, char *name, size_t name_size)
{
    const char *slash = strrchr(place->rel, '/');
    char folder[MAX_PATH_BYTES];

    snprintf(name, name_size, "%s", slash ? slash + 1 : place->rel);
    if (!*name || strcmp(name, ".") == 0) {
        errno = EISDIR;
        return -1;
    }
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - place->rel) : 1, slash ? place->rel : ".");
    return open_beneath(f, place->root->fd, folder, O_RDONLY | O_DIRECTORY);
}

bool is_text(const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;

    for (size_t i = 0; i < len;) {
        unsigned char c = s[i];
        size_t more = c < 0x80                ? 0
                      : c >= 0xc2 && c < 0xe0 ? 1
                      : c >= 0xe0 && c < 0xf0 ? 2
                      : c >= 0xf0 && c < 0xf5 ? 3
                                              : 9;

        if (c == 0 || more == 9 || i + more >= len)
            return false;
        for (size_t k = 1; k <= more; k++)
            if ((s[i + k] & 0xc0) != 0x80)
                return false;
        if ((c == 0xe0 && s[i + 1] < 0xa0) || (c == 0xed && s[i + 1] > 0x9f) || (c == 0xf0 && s[i + 1] < 0x90) ||
            (c == 0xf4 && s[i + 1] > 0x8f))
            return false;
        i += more + 1;
    }
    return true;
}

static char *read_all(int fd, size_t size, size_t *len)
{
    char *text = malloc(size + 1);
    size_t n = 0;

    while (text && n < size) {
        ssize_t got = read(fd, text + n, size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break; /* it became shorter meanwhile: what is there counts */
        n += (size_t)got;
    }
    if (text)
        text[n] = '\0';
    *len = n;
    return text;
}

char *read_text(const struct files *f, const struct place *place, size_t *len, const char **type, const char **why)
{
    int fd = open_beneath(f, place->root->fd, place->rel, O_RDONLY | O_NONBLOCK); /* a pipe must not block us */
    struct stat st;
    char *text = NULL;

    *type = "AccessDenied";
    *why = "it cannot be opened";
    if (fd < 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            *type = "NotFoundError";
            *why = "there is no such file";
        } else if (errno == EXDEV || errno == ELOOP) {
            *why = "a link leads out of the root";
        }
        return NULL;
    }
    *type = "ValidationError";
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        *why = "it is not a regular file";
    } else if ((size_t)st.st_size > f->max_file_bytes) {
        *why = "it is larger than max_file_bytes";
    } else if (!(text = read_all(fd, (size_t)st.st_size, len))) {
        *type = "ExecutionError";
        *why = "out of memory";
    } else if (!is_text(text, *len)) {
        *why = "it is not a text in UTF-8";
        free(text);
        text = NULL;
    }
    close(fd);
    return text;
}
