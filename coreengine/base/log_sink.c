/* Where the lines of a log go that must not hold up the process: what the reader of a pipe, a terminal or a socket does
 * not take at once, or a disk that is full, is kept, up to a bound; a line that does not fit is lost as a whole, and
 * counted by the caller.
 *
 * O_NONBLOCK belongs to the open file, which other processes may share (a shell, a pipeline of commands). Therefore the
 * pipe or terminal is opened once more by way of /proc; where that is refused, and for a file on a disk, writes wait.
 */
#include "coreengine/base/base_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT_BYTES ((size_t)256 << 10) /* of lines that are not taken yet: some thousand of an access log */
#define END_MS     1000                /* that the end waits for a reader that takes something, between two pieces */

struct rv_log_sink {
    int fd;
    bool is_own, is_socket;
    bool is_full;   /* a line was lost: none is taken before half is free, so that losses stand together */
    bool is_broken; /* the last write failed in a way that no wait for the reader mends */
    size_t len;
    char kept[KEPT_BYTES];
};

/* Hand over what can be handed over; a reader that is gone takes all. What a full or faulty disk refuses may be taken
 * later. */
static size_t push(struct rv_log_sink *s, const char *bytes, size_t n)
{
    size_t done = 0;

    s->is_broken = false;
    while (done < n) {
        ssize_t put = s->is_socket ? send(s->fd, bytes + done, n - done, MSG_DONTWAIT | MSG_NOSIGNAL)
                                   : write(s->fd, bytes + done, n - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EPIPE)
            return n;
        if (put <= 0) {
            s->is_broken = put == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
            break;
        }
        done += (size_t)put;
    }
    return done;
}

static void push_kept(struct rv_log_sink *s)
{
    size_t done = s->len ? push(s, s->kept, s->len) : 0;

    s->len -= done;
    if (done && s->len)
        memmove(s->kept, s->kept + done, s->len);
}

struct rv_log_sink *base_log_sink_new(int fd)
{
    struct rv_log_sink *s = malloc(sizeof *s);
    struct stat st;
    char path[64];

    if (!s)
        return NULL;
    s->fd = fd;
    s->len = 0;
    s->is_own = s->is_full = s->is_broken = false;
    s->is_socket = fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
    if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int again = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (again >= 0) {
            s->fd = again;
            s->is_own = true;
        }
    }
    return s;
}

bool base_log_sink_put(struct rv_log_sink *s, rv_str line)
{
    push_kept(s);
    if (s->is_full && s->len > KEPT_BYTES / 2)
        return false;
    size_t done = s->len ? 0 : push(s, line.ptr, line.len);
    s->is_full = line.len - done > KEPT_BYTES - s->len;
    if (s->is_full)
        return false; /* done is 0: with nothing kept there is always room */
    memcpy(s->kept + s->len, line.ptr + done, line.len - done);
    s->len += line.len - done;
    return true;
}

void base_log_sink_free(struct rv_log_sink *s)
{
    if (!s)
        return;
    for (push_kept(s); s->len && !s->is_broken; push_kept(s)) {
        struct pollfd ready = {.fd = s->fd, .events = POLLOUT};
        int n = poll(&ready, 1, END_MS);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
    }
    if (s->is_own)
        RV_IGNORE(close(s->fd), "the log itself ends: there is no place to tell it");
    free(s);
}
