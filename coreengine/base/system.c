/* Threads and descriptors: a refusal of the system becomes an error that names what is used up. */
#include "coreengine/base/system.h"
#include "coreengine/base/base_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define MAX_CHECK 16 /* descriptors that are tried at once: callers ask for what they open at a start, some six */

int rv_thread_start(void *(*body)(void *self), void *self, pthread_t *out, rv_err **err)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t others, before;

    sigfillset(&others);
    for (size_t i = 0; i < RV_COUNT(own); i++)
        sigdelset(&others, own[i]); /* of a fault that is blocked, no handler can tell */
    pthread_sigmask(SIG_BLOCK, &others, &before);
    int failed = pthread_create(out, NULL, body, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? RV_FAIL_START(err, failed, "start a thread") : 0;
}

int rv_descriptors_check(size_t n, rv_err **err)
{
    int fds[MAX_CHECK], rc = 0;
    size_t opened = 0;

    assert(n <= MAX_CHECK);
    while (opened < n && (fds[opened] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        opened++;
    if (opened < n)
        rc = RV_FAIL_SYSTEM(err, errno, "open %zu file descriptors", n);
    while (opened > 0)
        close(fds[--opened]);
    return rc;
}

int rv_terminal_open_reader(int fd)
{
    char path[32];

    if (!isatty(fd))
        return fd;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return own < 0 ? fd : own;
}

void rv_wait_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (poll(&p, 1, -1) < 0 && errno == EINTR) /* of other failures the next read() says what is wrong */
        continue;
}

int rv_stream_getc(FILE *in)
{
    int c;

    while ((c = getc_unlocked(in)) == EOF && ferror(in) && errno == EAGAIN) {
        clearerr(in);
        rv_wait_readable(fileno(in));
    }
    return c;
}
