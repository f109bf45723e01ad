/* Who runs a run, and whether that process is still there. Linux: /proc knows. */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "coreengine/journal/journal_internal.h"

#define BOOT_CHARS          8           /* of the boot id: tells the boots of one machine apart */
#define FIRST_PID_NAMESPACE 4026531836u /* the machine's own; containers have others, with the same process ids */

/* What stands in "host/boot/pid/start". */
struct owner {
    char host[96], boot[BOOT_CHARS + 1];
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

/* "name", or "name+namespace" in a container that counts its processes anew. */
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

/* Field 3 (state) and 22 (start, in ticks since the boot) of /proc/PID/stat; the name in field 2 may hold anything. */
static bool process_start(uint64_t pid, char *state, uint64_t *start)
{
    char path[64], text[1024];

    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
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

void rv_owner_name(char out[RV_OWNER_MAX])
{
    struct owner me = {.pid = (uint64_t)getpid()};
    char state;

    host_name(me.host, sizeof me.host);
    boot_id(me.boot);
    if (!process_start(me.pid, &state, &me.start))
        me.start = 0; /* nobody can tell then */
    snprintf(out, RV_OWNER_MAX, "%s/%s/%llu/%llu", me.host, me.boot, (unsigned long long)me.pid,
             (unsigned long long)me.start);
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
    if (!take_part(&text, out->host, sizeof out->host) || !take_part(&text, out->boot, sizeof out->boot) ||
        strlen(out->boot) != BOOT_CHARS || !read_number(text, '/', &out->pid))
        return false;
    return read_number(strchr(text, '/') + 1, '\0', &out->start) && out->pid > 0 && out->pid <= INT32_MAX &&
           out->start > 0;
}

bool rv_owner_is_dead(const char *owner)
{
    char host[sizeof((struct owner *)0)->host], boot[BOOT_CHARS + 1], state = '?';
    struct owner they;
    uint64_t start = 0;

    if (!owner || !read_owner(owner, &they))
        return false;
    host_name(host, sizeof host);
    if (strcmp(host, they.host) != 0 || !boot_id(boot))
        return false;
    if (strcmp(boot, they.boot) != 0)
        return true;
    if (process_start(they.pid, &state, &start))
        return start != they.start || state == 'Z' || state == 'X';
    return kill((pid_t)they.pid, 0) < 0 && errno == ESRCH; /* /proc may hide the processes of others */
}
