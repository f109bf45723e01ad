/* The folder of tzdata: files of zones, kept in memory until they change. The only file of this module that does I/O;
 * zone_read.c knows what the bytes mean. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/calendar/calendar_internal.h"

#define SYSTEM_DIR "/usr/share/zoneinfo"
#define MAX_ZONES  1024 /* the folder has about 600 names; posix/ doubles them */

struct entry {
    rv_zone *zone; /* owned */
    struct stat seen;
};

struct rv_zones {
    char *dir;             /* owned */
    struct entry *entries; /* owned */
    size_t n;
};

rv_zones *rv_zones_new(const char *dir)
{
    rv_zones *zones = calloc(1, sizeof *zones);

    if (!zones)
        return NULL;
    zones->dir = strdup(dir ? dir : SYSTEM_DIR);
    if (!zones->dir) {
        free(zones);
        return NULL;
    }
    return zones;
}

void rv_zones_free(rv_zones *zones)
{
    if (!zones)
        return;
    for (size_t i = 0; i < zones->n; i++)
        rv_zone_free(zones->entries[i].zone);
    free(zones->entries);
    free(zones->dir);
    free(zones);
}

/* An update of the package replaces files: their times, sizes and numbers tell. */
static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int read_zone(const char *path, rv_str name, rv_zone **out, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf bytes = RV_BUF_INIT(RV_ZONE_MAX_BYTES);
    int rc = rv_file_read(path, &bytes, err);

    if (rc == 0)
        rc = rv_zone_parse(name, rv_buf_str(&bytes), out, err);
    return rc < 0 ? RV_WRAP(err, rc, "read %s", path) : 0;
}

static struct entry *add_entry(rv_zones *zones)
{
    struct entry *grown;

    if (zones->n >= MAX_ZONES)
        return NULL;
    grown = reallocarray(zones->entries, zones->n + 1, sizeof *grown);
    if (!grown)
        return NULL;
    zones->entries = grown;
    grown[zones->n] = (struct entry){NULL, {0}};
    return &grown[zones->n];
}

/* --- names that are near --- */

#define LIST_FILE "tzdata.zi"
#define MAX_LIST  ((size_t)1 << 20) /* bytes of the list of names; of a longer one no hint is made */
#define MAX_NAMES 2048              /* of the tz database that a hint is looked for in; it has about 600 */

/* The names in tzdata.zi: "Z NAME ..." and "L TARGET NAME". They point into text, which gets NULs behind them. */
static size_t list_names(char *text, const char *names[MAX_NAMES])
{
    char *line, *line_state = NULL, *word_state;
    size_t n = 0;

    for (line = strtok_r(text, "\n", &line_state); line && n < MAX_NAMES; line = strtok_r(NULL, "\n", &line_state)) {
        const char *kind = strtok_r(line, " ", &word_state), *name = NULL;
        if (kind && (strcmp(kind, "Z") == 0 || strcmp(kind, "L") == 0))
            name = strtok_r(NULL, " ", &word_state);
        if (name && *kind == 'L')
            name = strtok_r(NULL, " ", &word_state);
        if (name)
            names[n++] = name;
    }
    return n;
}

/* The one that differs in case, or has this name behind its continent, or is spelled alike. */
static const char *near_name(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(name, names[i]) == 0)
            return names[i];
    for (size_t i = 0; i < n; i++) {
        const char *slash = strrchr(names[i], '/');
        if (slash && strcasecmp(name, slash + 1) == 0)
            return names[i];
    }
    return rv_nearest(rv_str_of(name), names, n);
}

static void hint_near_name(const rv_zones *zones, const char *name, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(MAX_LIST);
    const char *names[MAX_NAMES], *found;
    char path[PATH_MAX];
    size_t n;

    snprintf(path, sizeof path, "%s/%s", zones->dir, LIST_FILE);
    if (rv_file_read(path, &text,
                     RV_CODE_ONLY("a hint on an error that is reported: without the list it has no hint")) < 0 ||
        !text.ptr)
        return;
    n = list_names(text.ptr, names);
    found = near_name(name, names, n);
    if (found)
        rv_err_set_hint(err, "did you mean \"%s\"?", found);
    else
        rv_err_set_hint(
            err, "names are those of the tz database, such as Europe/Berlin or America/New_York; %s lists them", path);
}

static int no_zone(const rv_zones *zones, const char *name, rv_err **err)
{
    struct stat st;
    int rc;

    if (stat(zones->dir, &st) < 0) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "unknown time zone \"%s\": there is no time zone data in %s", name,
                     zones->dir);
        rv_err_set_hint(err, "install the package tzdata, or use UTC, which needs none");
        return rc;
    }
    rc = RV_FAIL(err, RV_E_NOT_FOUND, "unknown time zone \"%s\"", name);
    hint_near_name(zones, name, err);
    return rc;
}

/* --- the calls --- */

int rv_zones_get(rv_zones *zones, rv_str name, const rv_zone **out, rv_err **err)
{
    char path[PATH_MAX], text[RV_ZONE_MAX_NAME + 1] = {0};
    struct entry *entry = NULL;
    rv_zone *fresh = NULL;
    struct stat st;
    int rc = rv_zone_check_name(name, err);

    if (rc < 0)
        return rc;
    if (rv_str_is(name, rv_zone_name(rv_zone_utc()))) {
        *out = rv_zone_utc();
        return 0;
    }
    memcpy(text, name.ptr, name.len);
    if (snprintf(path, sizeof path, "%s/%s", zones->dir, text) >= (int)sizeof path)
        return RV_FAIL(err, RV_E_LIMIT, "the path of time zone \"%s\" is too long", text);
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return no_zone(zones, text, err);
    for (size_t i = 0; i < zones->n && !entry; i++)
        if (strcmp(zones->entries[i].zone->name, text) == 0)
            entry = &zones->entries[i];
    if (!entry || !is_same_file(&entry->seen, &st)) {
        rc = read_zone(path, name, &fresh, err);
        if (rc < 0)
            return rc;
        if (!entry) {
            entry = add_entry(zones);
            if (!entry) {
                rv_zone_free(fresh);
                return zones->n >= MAX_ZONES
                           ? RV_FAIL(err, RV_E_LIMIT, "more than %d time zones are in use: \"%s\" is one too many",
                                     MAX_ZONES, text)
                           : RV_FAIL(err, RV_E_NOMEM, "keep time zone \"%s\"", text);
            }
            zones->n++;
        }
        rv_zone_free(entry->zone);
        *entry = (struct entry){fresh, st};
    }
    *out = entry->zone;
    return 0;
}
