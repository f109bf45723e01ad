/* Kills a process at a chosen write. Preloaded, it stands before the calls with which SQLite changes files, before
 * those with which a client of PostgreSQL sends to its server on this machine, and before the write with which a test
 * tool leaves its effect. It counts those that concern a test, and at one of them ends the process as a crash or a
 * power cut would.
 *
 *   REEVE_CRASH_STORE    absolute path of the store; PATH-wal and PATH-journal belong to it; or the URL of a server
 *   REEVE_CRASH_EFFECTS  absolute path of the file that stands for the outside world
 *   REEVE_CRASH_AT       at which operation, from 1; left out: never
 *   REEVE_CRASH_HOW      before  SIGKILL before it
 *                        after   SIGKILL after it
 *                        torn    SIGKILL in the middle of it: a write that got half way
 *                        lose    a power cut before it: what was not synchronised is gone
 *                        scatter a power cut after it: of what was not synchronised each write is there, gone, or torn
 *   REEVE_CRASH_SEED     chooses among them
 *   REEVE_CRASH_COUNT    file that gets the number of operations when the process ends by itself
 *
 * The outside world is never undone: what a tool did stays done. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SECTOR 512

enum file { MAIN, WAL, JOURNAL, N_STORE_FILES, EFFECTS = N_STORE_FILES, SERVER, NONE };
static const char *const suffixes[N_STORE_FILES] = {"", "-wal", "-journal"};

enum how { BEFORE, AFTER, TORN, LOSE, SCATTER, N_HOWS };
static const char *const how_words[N_HOWS] = {"before", "after", "torn", "lose", "scatter"};

enum what { WRITE, SYNC, TRUNCATE, UNLINK };
static const char *const what_words[] = {"write", "sync", "truncate", "unlink"};

struct op {
    enum what what;
    enum file file;
    int fd;
    const void *data;
    size_t n;
    off_t at; /* of a write; the new length of a truncation; -1: the end (the outside world) */
};

/* A change of a store file that a power cut could take back. */
struct change {
    struct change *next, *prev;
    enum what what; /* WRITE or TRUNCATE */
    off_t at;
    size_t n, old_n; /* bytes written, bytes that were there in their place */
    off_t old_length;
    char *data, *old;
};
struct history {
    struct change *first, *last;
};

static struct {
    bool on;
    char store[4096], effects[4096], kept[N_STORE_FILES][4096 + 16];
    long at, count;
    enum how how;
    uint64_t random;
    char count_path[4096];
    pthread_mutex_t lock; /* one operation at a time: an undo log needs an order */
    struct history unsynced[N_STORE_FILES];
} crash = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    ssize_t (*write)(int, const void *, size_t);
    ssize_t (*pwrite)(int, const void *, size_t, off_t);
    int (*fsync)(int), (*fdatasync)(int);
    int (*ftruncate)(int, off_t);
    int (*unlink)(const char *);
    ssize_t (*send)(int, const void *, size_t, int);
} real;

static void resolve(void *slot, const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    memcpy(slot, &symbol, sizeof symbol); /* ISO C has no cast from an object to a function */
}

static void copy(char *to, size_t size, const char *from)
{
    if (from)
        snprintf(to, size, "%s", from);
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("REEVE_CRASH_AT"), *how = getenv("REEVE_CRASH_HOW"), *seed = getenv("REEVE_CRASH_SEED");

    resolve(&real.write, "write");
    resolve(&real.pwrite, "pwrite64");
    resolve(&real.fsync, "fsync");
    resolve(&real.fdatasync, "fdatasync");
    resolve(&real.ftruncate, "ftruncate64");
    resolve(&real.unlink, "unlink");
    resolve(&real.send, "send");
    copy(crash.store, sizeof crash.store, getenv("REEVE_CRASH_STORE"));
    copy(crash.effects, sizeof crash.effects, getenv("REEVE_CRASH_EFFECTS"));
    copy(crash.count_path, sizeof crash.count_path, getenv("REEVE_CRASH_COUNT"));
    crash.at = at ? strtol(at, NULL, 10) : 0;
    for (int i = 0; how && i < N_HOWS; i++)
        if (strcmp(how, how_words[i]) == 0)
            crash.how = (enum how)i;
    crash.random = 0x9e3779b97f4a7c15u * ((seed ? strtoull(seed, NULL, 10) : 0) + (uint64_t)crash.at + 1);
    for (int i = 0; i < N_STORE_FILES; i++)
        snprintf(crash.kept[i], sizeof crash.kept[i], "%s%s.kept", crash.store, suffixes[i]);
    unsetenv("LD_PRELOAD"); /* this process alone: its children have counters of their own */
    crash.on = crash.store[0] != '\0';
}

__attribute__((destructor)) static void end(void)
{
    for (int i = 0; crash.on && i < N_STORE_FILES; i++)
        real.unlink(crash.kept[i]);
    if (!crash.on || !crash.count_path[0])
        return;
    FILE *f = fopen(crash.count_path, "w");
    if (f) {
        fprintf(f, "%ld\n", crash.count);
        fclose(f);
    }
}

static unsigned roll(unsigned below)
{
    crash.random ^= crash.random << 13;
    crash.random ^= crash.random >> 7;
    crash.random ^= crash.random << 17;
    return (unsigned)((crash.random >> 33) % below);
}

/* --- which file --- */

static enum file file_of_path(const char *path)
{
    size_t n = strlen(crash.store);

    if (strcmp(path, crash.effects) == 0)
        return EFFECTS;
    for (int i = 0; strncmp(path, crash.store, n) == 0 && i < N_STORE_FILES; i++)
        if (strcmp(path + n, suffixes[i]) == 0)
            return (enum file)i;
    return NONE;
}

static enum file file_of(int fd)
{
    char link[64], path[4096 + 16];
    int saved = errno;

    if (!crash.on)
        return NONE;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (n <= 0)
        return NONE;
    path[n] = '\0';
    return file_of_path(path);
}

/* --- what a power cut takes back --- */

static bool forgets(enum file file)
{
    return (crash.how == LOSE || crash.how == SCATTER) && crash.at > 0 && file < N_STORE_FILES;
}

static void give_up(const char *why)
{
    dprintf(STDERR_FILENO, "crash: %s\n", why);
    _exit(99);
}

static char *keep(const void *data, size_t n)
{
    char *bytes = malloc(n + 1);

    if (!bytes)
        give_up("no memory");
    if (n > 0 && data)
        memcpy(bytes, data, n);
    return bytes;
}

/* Before op changes its file. */
static void remember(const struct op *op)
{
    struct history *h = &crash.unsynced[op->file];
    struct change *c = calloc(1, sizeof *c);
    struct stat st;

    if (!c || fstat(op->fd, &st) < 0)
        give_up("can not keep a change");
    *c = (struct change){.prev = h->last, .what = op->what, .at = op->at, .old_length = st.st_size};
    if (op->what == WRITE) {
        c->n = op->n;
        c->data = keep(op->data, op->n);
    }
    off_t past = op->what == WRITE ? op->at + (off_t)op->n : st.st_size; /* a truncation takes all from `at` on */
    if (past > st.st_size)
        past = st.st_size;
    if (past > op->at) {
        c->old_n = (size_t)(past - op->at);
        c->old = keep(NULL, c->old_n);
        if (pread(op->fd, c->old, c->old_n, op->at) != (ssize_t)c->old_n)
            give_up("can not read what was there");
    }
    *(h->last ? &h->last->next : &h->first) = c;
    h->last = c;
}

static void forget(enum file file)
{
    struct history *h = &crash.unsynced[file];

    for (struct change *c = h->first, *next; c; c = next) {
        next = c->next;
        free(c->data);
        free(c->old);
        free(c);
    }
    *h = (struct history){NULL, NULL};
}

static void must(bool good)
{
    if (!good)
        give_up("can not take back what was written");
}

static void take_back(int fd, const struct change *c)
{
    must(c->old_n == 0 || real.pwrite(fd, c->old, c->old_n, c->at) == (ssize_t)c->old_n);
    must(real.ftruncate(fd, c->old_length) == 0);
}

/* There, gone, or there up to some sector. */
static void survive(int fd, const struct change *c)
{
    size_t n = c->n;

    switch (roll(3)) {
    case 0:
        return;
    case 1:
        n = n > SECTOR ? (1 + roll((unsigned)(n / SECTOR))) * SECTOR : roll((unsigned)n + 1);
        break;
    default:
        break;
    }
    if (c->what == TRUNCATE)
        must(real.ftruncate(fd, c->at) == 0);
    else
        must(real.pwrite(fd, c->data, n, c->at) == (ssize_t)n);
}

static void cut_power(void)
{
    char path[4096 + 16];

    for (int i = 0; i < N_STORE_FILES; i++) {
        snprintf(path, sizeof path, "%s%s", crash.store, suffixes[i]);
        if (access(path, F_OK) != 0 && (crash.how == LOSE || roll(2)))
            rename(crash.kept[i], path); /* its removal was not synchronised either */
        real.unlink(crash.kept[i]);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            continue;
        for (const struct change *c = crash.unsynced[i].last; c; c = c->prev)
            take_back(fd, c);
        for (const struct change *c = crash.unsynced[i].first; c && crash.how == SCATTER; c = c->next)
            survive(fd, c);
        close(fd);
    }
    snprintf(path, sizeof path, "%s-shm", crash.store); /* memory that processes share */
    real.unlink(path);
}

/* --- one operation --- */

static ssize_t perform(const struct op *op, size_t n)
{
    switch (op->what) {
    case WRITE:
        if (op->file == SERVER)
            return real.send(op->fd, op->data, n, MSG_NOSIGNAL);
        return op->at < 0 ? real.write(op->fd, op->data, n) : real.pwrite(op->fd, op->data, n, op->at);
    case SYNC:
        return real.fdatasync(op->fd);
    case TRUNCATE:
        return real.ftruncate(op->fd, op->at);
    case UNLINK:
        return real.unlink(op->data);
    }
    return -1;
}

static void die(const struct op *op)
{
    static const char *const names[] = {"store", "wal", "journal", "effects", "server"};
    bool is_change = op->what == WRITE || op->what == TRUNCATE;

    dprintf(STDERR_FILENO, "crash: %s operation %ld, %s of %s, %zu bytes at %lld\n", how_words[crash.how], crash.count,
            what_words[op->what], names[op->file], op->n, (long long)op->at);
    if (forgets(op->file) && crash.how == SCATTER && is_change)
        remember(op);
    if (crash.how == AFTER || (crash.how == SCATTER && is_change))
        perform(op, op->n);
    else if (crash.how == TORN && op->what == WRITE && op->file != EFFECTS)
        perform(op, op->n > 2 * SECTOR ? op->n / 2 / SECTOR * SECTOR : op->n / 2);
    if (crash.how == LOSE || crash.how == SCATTER)
        cut_power();
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static ssize_t step(const struct op *op)
{
    ssize_t rc;

    pthread_mutex_lock(&crash.lock);
    if (++crash.count == crash.at)
        die(op);
    if (forgets(op->file) && (op->what == WRITE || op->what == TRUNCATE)) {
        remember(op);
        real.unlink(crash.kept[op->file]); /* a new file of that name has begun its life */
    } else if (forgets(op->file)) {
        forget(op->file);
        for (int i = 0; i < N_STORE_FILES; i++) /* a journaling file system writes down what it did in order */
            if (op->what == SYNC || i == (int)op->file)
                real.unlink(crash.kept[i]);
        if (op->what == UNLINK)
            (void)!link(op->data, crash.kept[op->file]);
    }
    rc = perform(op, op->n);
    pthread_mutex_unlock(&crash.lock);
    return rc;
}

/* --- in the place of the C library --- */

ssize_t write(int fd, const void *data, size_t n)
{
    enum file file = file_of(fd);

    if (file == NONE)
        return real.write(fd, data, n);
    off_t at = file == EFFECTS ? -1 : lseek(fd, 0, SEEK_CUR);
    ssize_t rc = step(&(struct op){WRITE, file, fd, data, n, at});
    if (rc > 0 && at >= 0)
        lseek(fd, at + rc, SEEK_SET);
    return rc;
}

/* Is it the connection to a server of PostgreSQL? */
static bool is_server(int fd)
{
    struct sockaddr_un peer;
    socklen_t len = sizeof peer;
    int saved = errno;

    memset(&peer, 0, sizeof peer);
    bool is = crash.on && getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sun_family == AF_UNIX &&
              strstr(peer.sun_path, "/.s.PGSQL.");
    errno = saved;
    return is;
}

ssize_t send(int fd, const void *data, size_t n, int flags)
{
    return is_server(fd) ? step(&(struct op){WRITE, SERVER, fd, data, n, -1}) : real.send(fd, data, n, flags);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    enum file file = file_of(fd);

    return file == NONE ? real.pwrite(fd, data, n, at) : step(&(struct op){WRITE, file, fd, data, n, at});
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    return pwrite64(fd, data, n, at);
}

int fdatasync(int fd)
{
    enum file file = file_of(fd);

    return file == NONE ? real.fdatasync(fd) : (int)step(&(struct op){SYNC, file, fd, NULL, 0, 0});
}

int fsync(int fd)
{
    return file_of(fd) == NONE ? real.fsync(fd) : fdatasync(fd);
}

int ftruncate64(int fd, off64_t length)
{
    enum file file = file_of(fd);

    return file == NONE ? real.ftruncate(fd, length) : (int)step(&(struct op){TRUNCATE, file, fd, NULL, 0, length});
}

int ftruncate(int fd, off_t length)
{
    return ftruncate64(fd, length);
}

int unlink(const char *path)
{
    enum file file = crash.on ? file_of_path(path) : NONE;

    return file >= N_STORE_FILES ? real.unlink(path) : (int)step(&(struct op){UNLINK, file, -1, path, strlen(path), 0});
}
