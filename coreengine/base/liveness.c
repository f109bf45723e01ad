/* Marks in the abstract namespace of Unix sockets: made once for each process, and looked up by a connection. */
#include "coreengine/base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "coreengine/base/clock.h"

#define PREFIX    "reeve-owner-" /* of the abstract name: `ss -xa` shows it */
#define SPACE_MAX 24             /* bytes of the number of a network namespace: 20 digits of 64 bits, and a NUL */
#define FIRST_FD  5              /* a child gets copies at fixed numbers below */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `mark`; leaf */
static struct {
    pid_t pid; /* whose mark it is: a fork() of that process has only a copy of the descriptor */
    int fd;
    char name[RV_LIVENESS_MAX];
} mark = {.fd = -1};

/* The network namespace: abstract names are those of one. The link reads "net:[4026531840]". */
static bool read_namespace(char out[SPACE_MAX])
{
    char link[64];
    ssize_t len = readlink("/proc/self/ns/net", link, sizeof link - 1);

    link[len > 0 ? len : 0] = '\0';
    size_t n = strncmp(link, "net:[", 5) == 0 ? strspn(link + 5, "0123456789") : 0;
    if (n == 0 || n >= SPACE_MAX || strcmp(link + 5 + n, "]") != 0)
        return false;
    memcpy(out, link + 5, n);
    out[n] = '\0';
    return true;
}

static socklen_t address_of(const char *name, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "%s%s", PREFIX, name);

    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* A datagram socket, since connect() to one asks nothing of its owner. */
static int bind_mark(const char *name)
{
    struct sockaddr_un address;
    socklen_t len = address_of(name, &address);
    int low = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), fd;

    if (low < 0)
        return -1;
    fd = fcntl(low, F_DUPFD_CLOEXEC, FIRST_FD);
    close(low);
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, len) < 0 || shutdown(fd, SHUT_RD) < 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The lock is held. */
static void make_mark(void)
{
    char space[SPACE_MAX];

    if (mark.fd >= 0)
        close(mark.fd); /* the parent's: this process no longer shares it */
    mark.pid = getpid();
    mark.fd = -1;
    mark.name[0] = '\0';
    if (!read_namespace(space))
        return;
    snprintf(mark.name, sizeof mark.name, "%s-%016llx", space, (unsigned long long)rv_rand_u64(rv_rand_system()));
    mark.fd = bind_mark(mark.name);
}

static int look(char out[RV_LIVENESS_MAX])
{
    pthread_mutex_lock(&lock);
    if (mark.pid != getpid())
        make_mark();
    int fd = mark.fd;
    memcpy(out, mark.name, RV_LIVENESS_MAX);
    pthread_mutex_unlock(&lock);
    return fd;
}

bool rv_liveness_make_name(char out[RV_LIVENESS_MAX])
{
    return look(out) >= 0;
}

int rv_liveness_fd(void)
{
    char name[RV_LIVENESS_MAX];

    return look(name);
}

/* "NAMESPACE-TOKEN", of this namespace. */
static bool is_here(const char *name)
{
    char space[SPACE_MAX];
    size_t len = strlen(name);

    if (len >= RV_LIVENESS_MAX || !read_namespace(space))
        return false;
    size_t n = strlen(space);
    return strncmp(name, space, n) == 0 && name[n] == '-' && len == n + 17 &&
           strspn(name + n + 1, "0123456789abcdef") == 16;
}

enum rv_liveness rv_liveness_of(const char *name)
{
    struct sockaddr_un address;

    if (!is_here(name))
        return RV_LIVENESS_UNKNOWN;
    socklen_t len = address_of(name, &address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return RV_LIVENESS_UNKNOWN;
    int reason = connect(fd, (struct sockaddr *)&address, len) == 0 ? 0 : errno;
    close(fd);
    return reason == 0 ? RV_LIVENESS_HELD : reason == ECONNREFUSED ? RV_LIVENESS_GONE : RV_LIVENESS_UNKNOWN;
}
