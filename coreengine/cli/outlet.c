/* What a command that drives runs writes to its standard streams. The loop that drives them only puts it here, and a
 * thread writes it, in its order: a reader that pauses (a pager, Ctrl-S, a pipe that nothing takes from) would hold up
 * the loop, and with it each call, time-out and lease of the runs. What is not taken yet is kept in memory, and above
 * a bound in a file that has no name. */
#include "coreengine/cli/outlet_internal.h"

#include "coreengine/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define KEPT_BYTES ((size_t)4 << 20)  /* in memory: more than a pipe and the pager behind hold together */
#define FILE_BYTES ((off_t)1 << 30)   /* in the file: then the reader counts as one that left */
#define PART_BYTES ((size_t)64 << 10) /* of the file that are read at once: what one pipe holds */
#define MAX_PARTS  64                 /* written at once: chosen, below IOV_MAX (1,024); a step prints a few */
#define ROOM_BYTES (2 * KEPT_BYTES)   /* of the buffers: what is kept, and one piece of any size up to this */

/* Before the bytes of each piece. */
struct head {
    int fd;
    size_t n;
};

static atomic_bool is_open; /* set before the threads of a run start, cleared behind their end */
static struct {
    pthread_mutex_t lock; /* guards the kept pieces, the file and the flags; leaf */
    pthread_cond_t more;  /* there is something to write, or the end */
    pthread_t thread;
    bool ends, is_writing;
    rv_buf kept; /* pieces, older than those of the file */
    int file;    /* -1: none was needed */
    off_t from, to;
    int failed[3]; /* by descriptor: errno of the first failure, behind which nothing is written */
} outlet = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .more = PTHREAD_COND_INITIALIZER,
            .file = -1}; /* one a process, as the streams are */

static void fail(int fd, int number)
{
    if (!outlet.failed[fd])
        outlet.failed[fd] = number ? number : EIO;
}

/* --- the file --- */

static int open_file(void)
{
    const char *dir = getenv("TMPDIR");
    char path[4096];
    int fd = open(dir && dir[0] ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    int n = snprintf(path, sizeof path, "%s/reeve-XXXXXX", dir && dir[0] ? dir : "/tmp");
    fd = n < (int)sizeof path ? mkostemp(path, O_CLOEXEC) : -1;
    if (fd >= 0)
        RV_IGNORE(unlink(path), "an empty file stays behind");
    return fd;
}

static void spill(const struct head *head, rv_str text)
{
    struct iovec parts[] = {{(void *)(uintptr_t)head, sizeof *head}, {(void *)(uintptr_t)text.ptr, text.len}};
    ssize_t want = (ssize_t)(sizeof *head + text.len);

    if (outlet.file < 0 && (outlet.file = open_file()) < 0) {
        fail(head->fd, errno);
        return;
    }
    errno = 0;
    if (want > FILE_BYTES - outlet.to)
        fail(head->fd, ENOBUFS);
    else if (pwritev(outlet.file, parts, 2, outlet.to) != want)
        fail(head->fd, errno ? errno : ENOSPC);
    else
        outlet.to += want;
}

/* --- what waits is written --- */

/* Without the lock. 0, or errno. */
static int write_all(int fd, struct iovec *parts, size_t n)
{
    size_t at = 0;

    while (at < n) {
        ssize_t done = writev(fd, parts + at, (int)(n - at));
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : EIO;
        for (; at < n && (size_t)done >= parts[at].iov_len; at++)
            done -= (ssize_t)parts[at].iov_len;
        if (at < n) {
            parts[at].iov_base = (char *)parts[at].iov_base + done;
            parts[at].iov_len -= (size_t)done;
        }
    }
    return 0;
}

static int has_failed(int fd)
{
    pthread_mutex_lock(&outlet.lock);
    int failed = outlet.failed[fd];
    pthread_mutex_unlock(&outlet.lock);
    return failed;
}

static void write_parts(int fd, struct iovec *parts, size_t n)
{
    int number = n && !has_failed(fd) ? write_all(fd, parts, n) : 0;

    if (number) {
        pthread_mutex_lock(&outlet.lock);
        fail(fd, number);
        pthread_mutex_unlock(&outlet.lock);
    }
}

static void write_pieces(const char *at, const char *end)
{
    struct iovec parts[MAX_PARTS];
    size_t n = 0;
    int fd = -1;

    while (at < end) {
        struct head head;
        memcpy(&head, at, sizeof head);
        if (head.fd != fd || n == MAX_PARTS) {
            write_parts(fd, parts, n);
            n = 0;
        }
        fd = head.fd;
        parts[n++] = (struct iovec){(char *)(uintptr_t)at + sizeof head, head.n};
        at += sizeof head + head.n;
    }
    write_parts(fd, parts, n);
}

/* The oldest piece of the file, part by part. With the lock, which it lets go. */
static void write_piece_of_file(void)
{
    char bytes[PART_BYTES];
    struct head head;
    off_t at = outlet.from;
    int file = outlet.file;
    bool ok = pread(file, &head, sizeof head, at) == (ssize_t)sizeof head;

    at += (off_t)sizeof head;
    for (size_t left = ok ? head.n : 0, n; ok && left > 0; left -= n, at += (off_t)n) {
        n = left < sizeof bytes ? left : sizeof bytes;
        ok = pread(file, bytes, n, at) == (ssize_t)n;
        pthread_mutex_unlock(&outlet.lock);
        if (ok)
            write_parts(head.fd, &(struct iovec){bytes, n}, 1);
        pthread_mutex_lock(&outlet.lock);
    }
    outlet.from = ok ? at : outlet.to;
    for (int fd = 1; !ok && fd <= 2; fd++)
        fail(fd, EIO);
    if (outlet.from == outlet.to) {
        outlet.from = outlet.to = 0;
        RV_IGNORE(ftruncate(file, 0), "the file keeps its room until the end");
    }
}

static void *write_what_comes(void *self)
{
    rv_buf at_hand = RV_BUF_INIT(ROOM_BYTES);

    (void)self;
    pthread_mutex_lock(&outlet.lock);
    for (;;) {
        outlet.is_writing = false;
        if (!outlet.kept.len && outlet.from == outlet.to) {
            if (outlet.ends)
                break;
            pthread_cond_wait(&outlet.more, &outlet.lock);
            continue;
        }
        outlet.is_writing = true;
        if (!outlet.kept.len) {
            write_piece_of_file();
            continue;
        }
        rv_buf other = outlet.kept;
        outlet.kept = at_hand;
        at_hand = other;
        pthread_mutex_unlock(&outlet.lock);
        write_pieces(at_hand.ptr, at_hand.ptr + at_hand.len);
        rv_buf_clear(&at_hand);
        pthread_mutex_lock(&outlet.lock);
    }
    pthread_mutex_unlock(&outlet.lock);
    rv_buf_fini(&at_hand);
    return NULL;
}

/* --- for the rest of the command line --- */

void cli_outlet_open(rv_log *log)
{
    if (is_open || fflush(stdout) != 0)
        return;
    outlet.kept = (rv_buf)RV_BUF_INIT(ROOM_BYTES);
    outlet.ends = false;
    memset(outlet.failed, 0, sizeof outlet.failed);
    RV_IGNORE(rv_log_never_wait(log, NULL), "without memory its records wait for their reader");
    is_open = rv_thread_start(write_what_comes, NULL, &outlet.thread,
                              RV_CODE_ONLY("without the thread output is written by the one that has it")) == 0;
}

bool cli_outlet_put(int fd, rv_str text)
{
    struct head head = {fd, text.len};

    if (!is_open)
        return false;
    pthread_mutex_lock(&outlet.lock);
    size_t before = outlet.kept.len;
    if (!outlet.failed[fd] && text.len) {
        if (outlet.from < outlet.to || before + sizeof head + text.len > KEPT_BYTES) {
            spill(&head, text);
        } else {
            rv_buf_add(&outlet.kept, (const char *)&head, sizeof head);
            rv_buf_add_str(&outlet.kept, text);
            if (outlet.kept.rc < 0) { /* what was kept before is whole */
                outlet.kept.rc = 0;
                rv_buf_truncate(&outlet.kept, before);
                fail(fd, ENOMEM);
            }
        }
        pthread_cond_signal(&outlet.more);
    }
    pthread_mutex_unlock(&outlet.lock);
    return true;
}

bool cli_outlet_is_behind(void)
{
    if (!is_open)
        return false;
    pthread_mutex_lock(&outlet.lock);
    bool is = outlet.is_writing || outlet.kept.len || outlet.from < outlet.to;
    pthread_mutex_unlock(&outlet.lock);
    return is;
}

int cli_outlet_failed(int fd)
{
    return is_open ? has_failed(fd) : 0;
}

int cli_outlet_close(void)
{
    if (!is_open)
        return 0;
    pthread_mutex_lock(&outlet.lock);
    outlet.ends = true;
    pthread_cond_signal(&outlet.more);
    pthread_mutex_unlock(&outlet.lock);
    pthread_join(outlet.thread, NULL);
    is_open = false;
    rv_buf_fini(&outlet.kept);
    if (outlet.file >= 0)
        RV_IGNORE(close(outlet.file), "it has no name and nothing more in it");
    outlet.file = -1;
    return outlet.failed[STDOUT_FILENO];
}
