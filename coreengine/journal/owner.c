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

#define BOOT_CHARS          8            /* of the boot id: tells the boots of one machine apart */
#define FIRST_PID_NAMESPACE "4026531836" /* the machine's own; containers have others, with the same process ids */

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
    char link[64] = "", ns[32] = "";
    struct utsname u;
    size_t n = 0;

    const char *name = uname(&u) == 0 && u.nodename[0] ? u.nodename : "localhost";
    for (; *name && n + 1 < size; name++)
        out[n++] = isalnum((unsigned char)*name) || *name == '.' || *name == '_' ? *name : '-';
    out[n] = '\0';
    ssize_t len = readlink("/proc/self/ns/pid", link, sizeof link - 1);
    if (len > 0 && sscanf(link, "pid:[%20[0-9]]", ns) == 1 && strcmp(ns, FIRST_PID_NAMESPACE) != 0)
        snprintf(out + n, size - n, "+%s", ns);
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
static bool process_start(long pid, char *state, unsigned long long *start)
{
    char path[64], text[1024];

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (!read_start(path, text, sizeof text))
        return false;
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at + 1, " %c", state) != 1)
        return false;
    at += 2;
    for (int field = 3; field < 22; field++) {
        at = strchr(at, ' ');
        if (!at++)
            return false;
    }
    return sscanf(at, "%llu", start) == 1;
}

void rv_owner_name(char out[RV_OWNER_MAX])
{
    char host[96], boot[BOOT_CHARS + 1], state = '?';
    unsigned long long start = 0;

    host_name(host, sizeof host);
    boot_id(boot);
    process_start((long)getpid(), &state, &start);
    snprintf(out, RV_OWNER_MAX, "%s/%s/%ld/%llu", host, boot, (long)getpid(), start);
}

bool rv_owner_is_dead(const char *owner)
{
    char host[96], boot[BOOT_CHARS + 1], their_host[96], their_boot[16], state = '?', junk;
    unsigned long long start = 0, their_start = 0;
    long pid = 0;

    if (!owner || sscanf(owner, "%95[^/]/%15[^/]/%ld/%llu%c", their_host, their_boot, &pid, &their_start, &junk) != 4 ||
        pid < 1)
        return false;
    host_name(host, sizeof host);
    if (strcmp(host, their_host) != 0 || !boot_id(boot) || strlen(their_boot) != BOOT_CHARS || their_start == 0)
        return false;
    if (strcmp(boot, their_boot) != 0)
        return true;
    if (process_start(pid, &state, &start))
        return start != their_start || state == 'Z' || state == 'X';
    return kill((pid_t)pid, 0) < 0 && errno == ESRCH; /* /proc may hide the processes of others */
}
