/* The process that runs a run, and whether it, a thread or a child still lives. The mark in an owner's name
 * tells (base/system.h). Names without one, which older versions wrote, are looked up in /proc. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "coreengine/base/base.h"
#include "coreengine/store/journal/journal_internal.h"

#define BOOT_CHARS          8           /* of the boot id: tells the boots of one machine apart */
#define FIRST_PID_NAMESPACE 4026531836u /* the machine's own; containers have others, with the same process ids */
#define STEP_US             (2 * RV_US_PER_MS) /* between two looks at a process that is ending */
#define PAGE                32                 /* records that are read at once */

/* What stands in "host/boot/pid/start/mark". */
struct owner {
    char host[96], boot[BOOT_CHARS + 1], mark[RV_LIVENESS_MAX]; /* mark: "" in a name of an older version */
    uint64_t pid, start;
};

/* Digits, and nothing but `end` behind them. */
static bool read_number(const char *text, char end, uint64_t *out)
{
    uint64_t n = 0;

    if (!isdigit((unsigned char)*text))
        return false;
    for (; isdigit((unsigned char)*text); text++) {
        if (n > (UINT64_MAX - 9) / 10)
            return false;
        n = n * 10 + (uint64_t)(*text - '0');
    }
    *out = n;
    return *text == end;
}

static bool read_start(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "re");
    size_t n;

    if (!f)
        return false;
    n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    fclose(f);
    return n > 0;
}

/* "name", or "name+namespace" in a container that has its own process ids. */
static void host_name(char *out, size_t size)
{
    char link[64] = "";
    struct utsname u;
    uint64_t ns = 0;
    size_t n = 0;

    const char *name = uname(&u) == 0 && u.nodename[0] ? u.nodename : "localhost";
    for (; *name && n + 1 < size; name++)
        out[n++] = isalnum((unsigned char)*name) || *name == '.' || *name == '_' ? *name : '-';
    out[n] = '\0';
    ssize_t len = readlink("/proc/self/ns/pid", link, sizeof link - 1); /* "pid:[4026531836]" */
    if (len > 5 && read_number(link + 5, ']', &ns) && ns != FIRST_PID_NAMESPACE)
        snprintf(out + n, size - n, "+%llu", (unsigned long long)ns);
}

static bool boot_id(char out[BOOT_CHARS + 1])
{
    char text[64];

    snprintf(out, BOOT_CHARS + 1, "unknown");
    if (!read_start("/proc/sys/kernel/random/boot_id", text, sizeof text) || strspn(text, "0123456789abcdef") < 8)
        return false;
    memcpy(out, text, BOOT_CHARS);
    out[BOOT_CHARS] = '\0';
    return true;
}

/* Field 3 (state) and 22 (start, in ticks since the boot) of a stat file; the name in field 2 may hold anything. */
static bool read_stat(const char *path, char *state, uint64_t *start)
{
    char text[1024];

    if (!read_start(path, text, sizeof text))
        return false;
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || !at[2])
        return false;
    at += 2;
    *state = *at;
    for (int field = 3; field < 22; field++) {
        at = strchr(at, ' ');
        if (!at++)
            return false;
    }
    return read_number(at, ' ', start);
}

static bool process_start(uint64_t pid, char *state, uint64_t *start)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    return read_stat(path, state, start);
}

static bool has_ended(char state)
{
    return state == 'Z' || state == 'X';
}

/* A process is shown as a zombie when its first thread has ended; others may be in a system call still. What cannot be
 * looked at, as without descriptors, may live: a run has one owner at a time. */
static bool has_live_thread(uint64_t pid)
{
    char path[300];
    bool has = false;

    snprintf(path, sizeof path, "/proc/%llu/task", (unsigned long long)pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return errno != ENOENT;
    for (const struct dirent *task; !has && (task = readdir(tasks));) {
        uint64_t start;
        char state = 'X';
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%llu/task/%s/stat", (unsigned long long)pid, task->d_name);
        errno = 0;
        has = read_stat(path, &state, &start) ? !has_ended(state) : errno == EMFILE || errno == ENFILE;
    }
    closedir(tasks);
    return has;
}

void rv_owner_make_name(char out[RV_OWNER_MAX])
{
    char state, mark[RV_LIVENESS_MAX] = "";
    struct owner me = {.pid = (uint64_t)getpid()};
    bool is_marked = rv_liveness_make_name(mark);

    host_name(me.host, sizeof me.host);
    boot_id(me.boot);
    /* Without a mark other processes cannot tell whether a thread or a child of this one is left: they wait for the
     * lease of an owner without a start. */
    if (!is_marked || !process_start(me.pid, &state, &me.start))
        me.start = 0;
    snprintf(out, RV_OWNER_MAX, "%s/%s/%llu/%llu%s%s", me.host, me.boot, (unsigned long long)me.pid,
             (unsigned long long)me.start, is_marked ? "/" : "", is_marked ? mark : "");
}

static bool take_part(const char **at, char *out, size_t size)
{
    size_t n = strcspn(*at, "/");

    if (n == 0 || n >= size || (*at)[n] != '/')
        return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n + 1;
    return true;
}

static bool read_owner(const char *text, struct owner *out)
{
    char start[24];

    out->mark[0] = '\0';
    if (!take_part(&text, out->host, sizeof out->host) || !take_part(&text, out->boot, sizeof out->boot) ||
        strlen(out->boot) != BOOT_CHARS || !read_number(text, '/', &out->pid))
        return false;
    text = strchr(text, '/') + 1;
    if (strchr(text, '/')) {
        if (!take_part(&text, start, sizeof start) || strlen(text) >= sizeof out->mark)
            return false;
        memcpy(out->mark, text, strlen(text) + 1);
        text = start;
    }
    return read_number(text, '\0', &out->start) && out->pid > 0 && out->pid <= INT32_MAX && out->start > 0;
}

enum fate {
    UNKNOWN,
    LIVES,
    ENDS,
    DEAD
}; /* ENDS: the process has ended, but one of its threads or children still exists */

/* The first thread of that process has ended, or its id belongs to another process. */
static bool is_over(const struct owner *they, char *state)
{
    uint64_t start = 0;

    if (process_start(they->pid, state, &start))
        return start != they->start || has_ended(*state);
    return kill((pid_t)they->pid, 0) < 0 && errno == ESRCH; /* /proc may hide the processes of others */
}

static enum fate fate_of(const char *owner)
{
    char host[sizeof((struct owner *)0)->host], boot[BOOT_CHARS + 1], state = '?';
    struct owner they;

    if (!owner || !read_owner(owner, &they))
        return UNKNOWN;
    host_name(host, sizeof host);
    /* Another boot may be one before this machine's, or of another machine with the same name. */
    if (strcmp(host, they.host) != 0 || !boot_id(boot) || strcmp(boot, they.boot) != 0)
        return UNKNOWN;
    if (they.mark[0]) {
        enum rv_liveness is = rv_liveness_of(they.mark);
        if (is == RV_LIVENESS_HELD)
            return is_over(&they, &state) ? ENDS : LIVES;
        return is == RV_LIVENESS_GONE ? DEAD : UNKNOWN;
    }
    if (!is_over(&they, &state))
        return LIVES;
    return has_ended(state) && has_live_thread(they.pid) ? ENDS : DEAD;
}

bool rv_owner_is_dead(const char *owner)
{
    return fate_of(owner) == DEAD;
}

bool rv_owner_wait_dead(const char *owner, int64_t *patience_us)
{
    const struct timespec step = {0, STEP_US * 1000};
    enum fate fate;

    while ((fate = fate_of(owner)) == ENDS && *patience_us > 0) {
        nanosleep(&step, NULL);
        *patience_us -= STEP_US;
    }
    return fate == DEAD;
}

/* --- How often a run was taken over without getting any further: it ends the process that recovers it, or that process
 * is ended each time. Read backwards from the end of the journal. --- */

struct tail {
    int64_t n; /* changes of owner since the last progress */
    bool has_progress;
};

/* A take-over writes its owner, the event "recover", and the calls that this event asks for. */
static int is_progress(const struct rv_record *r, bool *out, rv_err **err)
{
    json_object *body = NULL;
    const char *event = "";
    int rc = 0;

    *out = r->kind == RV_RECORD_BEGIN;
    if (r->kind == RV_RECORD_EVENT) {
        rc = journal_record_get_body(r, &body, err);
        *out = rc == 0 && !(rv_json_get_text(body, "event", &event) && strcmp(event, "recover") == 0);
        json_object_put(body);
    }
    return rc;
}

static int look(void *self, const struct rv_record *r, rv_err **err)
{
    struct tail *tail = self;
    bool progress = false;

    int rc = is_progress(r, &progress, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "journal record %lld", (long long)r->seq);
    tail->has_progress = tail->has_progress || progress;
    tail->n = progress ? 0 : tail->n + (r->kind == RV_RECORD_OWNER);
    return 0;
}

int rv_journal_count_takeovers(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                               int64_t *out, rv_err **err)
{
    int64_t n = 0;

    for (int64_t upto = row->n_records; upto > 0; upto -= PAGE) {
        struct tail tail = {0, false};
        int rc =
            rv_store_read(store, scope, &(struct rv_record_range){row->id, upto > PAGE ? upto - PAGE + 1 : 1, upto},
                          look, &tail, err);
        if (rc < 0)
            return rc;
        n += tail.n;
        if (tail.has_progress)
            break;
    }
    *out = n;
    return 0;
}
