/* changes SECONDS PLACE...: for scripts that wait for what another process does, without resting between two looks. It
 * prints an empty line when it watches, and another one whenever something has changed since the last line was read. A
 * PLACE is a folder (what is directly in it), a file (also one that comes later), or the number of a process, whose end
 * counts. !NAME is the name of a file that does not count. A line comes each second as well, as a change is told a
 * moment before others can see it: SQLite writes its log, then the index by which that is read, and a server of
 * PostgreSQL its log before the transaction counts. Ends when its output is closed, and with status 2 after SECONDS.
 * tests/integration/cli/lib has until_true(), which reads it. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_PLACES 16   /* and names */
#define LOOK_MS    1000 /* see above */
#define OUTPUT     0    /* the first two of what is polled; processes follow */
#define WATCH      1
#define CHANGES    (IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM)

static char *names[MAX_PLACES]; /* of a file in its folder; NULL: all but what readers of SQLite write, too */
static int watches[MAX_PLACES];
static int n_names;
static char **ignored; /* arguments; those that begin with '!' */
static int n_ignored;

static void die(const char *what)
{
    fprintf(stderr, "changes: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void watch(int fd, const char *place)
{
    struct stat st;
    bool is_folder = stat(place, &st) == 0 && S_ISDIR(st.st_mode);
    char *copy = strdup(place), *other = strdup(place);

    if (!copy || !other)
        die("memory");
    int one = inotify_add_watch(fd, is_folder ? place : dirname(copy), CHANGES);
    if (one < 0)
        die(place);
    watches[n_names] = one;
    names[n_names++] = is_folder ? NULL : strdup(basename(other));
    free(copy);
    free(other);
}

static bool counts(const struct inotify_event *e)
{
    const char *end = e->len > 0 ? strrchr(e->name, '-') : NULL;

    for (int i = 0; i < n_ignored && e->len > 0; i++)
        if (ignored[i][0] == '!' && strcmp(ignored[i] + 1, e->name) == 0)
            return false;
    for (int i = 0; i < n_names; i++)
        if (watches[i] == e->wd &&
            (names[i] ? e->len > 0 && strcmp(names[i], e->name) == 0 : !end || strcmp(end, "-shm") != 0))
            return true;
    return false;
}

static bool has_changed(int fd)
{
    _Alignas(struct inotify_event) char events[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
    ssize_t got = read(fd, events, sizeof events);
    bool has = got < 0 && errno != EAGAIN;

    for (const char *at = events; got > 0 && at < events + got;) {
        const struct inotify_event *e = (const void *)at;
        has = has || counts(e);
        at += sizeof *e + e->len;
    }
    return has;
}

static void say(void)
{
    int unread = 0;

    if (ioctl(STDOUT_FILENO, FIONREAD, &unread) == 0 && unread > 0)
        return; /* its reader will look again */
    if (write(STDOUT_FILENO, "\n", 1) != 1)
        exit(0);
}

static time_t now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* What can be polled: the output, the watch, the processes. */
static nfds_t open_all(struct pollfd *fds, char **places, int n_places)
{
    nfds_t n = 2;

    fds[OUTPUT] = (struct pollfd){.fd = STDOUT_FILENO};
    fds[WATCH] = (struct pollfd){.fd = inotify_init1(IN_NONBLOCK), .events = POLLIN};
    if (fds[WATCH].fd < 0)
        die("inotify");
    ignored = places;
    n_ignored = n_places;
    for (int i = 0; i < n_places; i++) {
        if (places[i][0] == '!')
            continue;
        if (places[i][strspn(places[i], "0123456789")])
            watch(fds[WATCH].fd, places[i]);
        else /* one that is gone already has no descriptor, which is not a change */
            fds[n++] = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, (pid_t)strtol(places[i], NULL, 10), 0),
                                       .events = POLLIN};
    }
    return n;
}

int main(int argc, char **argv)
{
    struct pollfd fds[2 + MAX_PLACES];
    time_t end_s = argc > 1 ? now_s() + strtol(argv[1], NULL, 10) : 0;

    if (argc < 3 || argc > 2 + MAX_PLACES) {
        fprintf(stderr, "usage: changes SECONDS FOLDER|FILE|PROCESS|!NAME...\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    nfds_t n = open_all(fds, argv + 2, argc - 2);
    for (bool has = true; now_s() < end_s;) {
        if (has)
            say();
        has = poll(fds, n, LOOK_MS) == 0;
        if (fds[OUTPUT].revents)
            return 0;
        if (fds[WATCH].revents)
            has = has_changed(fds[WATCH].fd);
        for (nfds_t i = 2; i < n; i++)
            if (fds[i].revents) {
                fds[i].fd = -1; /* it ends once */
                has = true;
            }
    }
    fprintf(stderr, "changes: what is waited for has not come in %s seconds\n", argv[1]);
    return 2;
}
