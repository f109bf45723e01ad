/* Waits until a file changes: inotify on folders. In the folders of pipelines every file counts; of other folders those
 * that were read, or looked for. Folders are watched, not files, since editors put a new file in the place of the old
 * one, and a file may be made later. */
#include "coreengine/cli/verbs/watch_internal.h"

#include "coreengine/base/base.h"
#include "coreengine/base/reads.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define QUIET_MS 100 /* without a further change: an editor has written all its files */
#define MAX_MORE 64  /* reads of further changes: other files of a busy folder do not hold up the next run */

static const uint32_t changes = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE;
static const uint32_t ends = IN_DELETE_SELF | IN_MOVE_SELF; /* of a folder: another one may take its place */

struct rv_cli_watched {
    int folder; /* its number in inotify */
    char *name; /* in it; owned; NULL: all */
};

static int refuse(const char *path, int number, rv_err **err)
{
    if (number != ENOSPC)
        return RV_FAIL_SYSTEM(err, number, "cannot watch folder \"%s\"", path);
    int rc = RV_FAIL(err, RV_E_LIMIT, "cannot watch folder \"%s\": the system allows this user no more watches", path);
    rv_err_set_hint(err, "raise fs.inotify.max_user_watches with sysctl, or end other programs that watch files");
    return rc;
}

/* --- what is watched --- */

static bool is_same(const struct rv_cli_watched *one, int folder, const char *name)
{
    if (one->folder != folder)
        return false;
    return one->name && name ? strcmp(one->name, name) == 0 : one->name == name;
}

static int note(struct rv_cli_watch *w, int folder, const char *name, rv_err **err)
{
    for (size_t i = 0; i < w->n; i++)
        if (is_same(&w->items[i], folder, name))
            return 0;
    char *kept = name ? rv_str_dup(rv_str_of(name)) : NULL;
    if ((name && !kept) || !rv_has_room(&w->items, &w->cap, w->n + 1, sizeof *w->items)) {
        free(kept);
        return RV_FAIL(err, RV_E_NOMEM, "watch files");
    }
    w->items[w->n++] = (struct rv_cli_watched){folder, kept};
    return 0;
}

static bool is_absent(int number)
{
    return number == ENOENT || number == ENOTDIR || number == EACCES;
}

/* All of a folder, but if there is none, or it cannot be read: then it has nothing that a run reads. */
static int add_inner(struct rv_cli_watch *w, const char *path, rv_err **err)
{
    int folder = inotify_add_watch(w->fd, path, changes | ends | IN_ONLYDIR);

    if (folder >= 0)
        return note(w, folder, NULL, err);
    return is_absent(errno) ? 0 : refuse(path, errno, err);
}

/* A name in its folder; where that is not there, the first folder on the way to it. */
static int add_place(struct rv_cli_watch *w, char *path, rv_err **err)
{
    for (;;) {
        char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        if (name[0]) {
            const char *folder = !slash ? "." : slash == path ? "/" : path;
            char kept = slash && slash != path ? '/' : '\0';
            if (kept)
                *slash = '\0';
            int number = inotify_add_watch(w->fd, folder, changes | ends | IN_ONLYDIR);
            if (number >= 0)
                return note(w, number, name, err);
            if (!is_absent(errno))
                return refuse(folder, errno, err);
        } else if (slash) {
            *slash = '\0'; /* "folder/" */
        }
        if (!slash || slash == path)
            return 0;
    }
}

static int add_copy(struct rv_cli_watch *w, const char *path, rv_err **err)
{
    char *copy = rv_str_dup(rv_str_of(path));

    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "watch files");
    int rc = add_place(w, copy, err);
    free(copy);
    return rc;
}

/* A folder and the folders in it. One that is not there may be made. */
static int add_folder(struct rv_cli_watch *w, const char *path, rv_err **err)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;

    if (!dir)
        return errno == ENOENT || errno == ENOTDIR ? add_copy(w, path, err) : refuse(path, errno, err);
    int folder = inotify_add_watch(w->fd, path, changes | ends);
    int rc = folder >= 0 ? note(w, folder, NULL, err) : refuse(path, errno, err);
    while (rc == 0 && (rc = rv_folder_next(dir, path, &entry, err)) == 0 && entry) {
        char inner[PATH_MAX];
        if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
            continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < (int)sizeof inner)
            rc = add_inner(w, inner, err);
    }
    closedir(dir);
    return rc;
}

static int add_files(struct rv_cli_watch *w, const struct rv_cli_files *files, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < files->n; i++) {
        const char *slash = strrchr(files->paths[i], '/');
        char *folder = slash
                           ? strndup(files->paths[i], slash == files->paths[i] ? 1 : (size_t)(slash - files->paths[i]))
                           : strdup(".");
        rc = folder ? add_folder(w, folder, err) : RV_FAIL(err, RV_E_NOMEM, "watch files");
        free(folder);
    }
    return rc;
}

static void on_read(void *self, const char *path, bool is_folder)
{
    struct rv_cli_watch *w = self;
    char real[PATH_MAX];

    if (w->rc < 0 || !path[0])
        return;
    w->rc = add_copy(w, path, &w->err);
    if (w->rc == 0 && realpath(path, real) && strcmp(real, path) != 0) /* a link, and what it leads to */
        w->rc = add_copy(w, real, &w->err);
    if (w->rc == 0 && is_folder)
        w->rc = add_inner(w, path, &w->err);
}

static void forget(struct rv_cli_watch *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->items[i].name);
    w->n = 0;
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

int cli_watch_begin(struct rv_cli_watch *w, const struct rv_cli_files *files, rv_err **err)
{
    forget(w);
    w->fd = inotify_init1(IN_CLOEXEC);
    int rc = w->fd < 0 ? RV_FAIL_SYSTEM(err, errno, "cannot watch files") : add_files(w, files, err);
    if (rc < 0)
        forget(w);
    return rc;
}

void cli_watch_reads(struct rv_cli_watch *w, bool on)
{
    if (w)
        rv_reads_tell(on ? on_read : NULL, w);
}

/* --- waiting --- */

static bool is_wanted(const struct rv_cli_watch *w, const struct inotify_event *e)
{
    if (e->mask & (ends | IN_Q_OVERFLOW | IN_UNMOUNT))
        return true;
    for (size_t i = 0; i < w->n; i++)
        if (w->items[i].folder == e->wd &&
            (!w->items[i].name || (e->len > 0 && strcmp(w->items[i].name, e->name) == 0)))
            return true;
    return false;
}

/* False: nothing came within that time. *changed: something that counts. */
static bool drain(const struct rv_cli_watch *w, int timeout_ms, bool *changed)
{
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    alignas(struct inotify_event) char events[4096];

    if (poll(&p, 1, timeout_ms) <= 0)
        return false;
    ssize_t n = read(w->fd, events, sizeof events);
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *e = (const void *)(events + at);
        *changed = *changed || is_wanted(w, e);
        at += (ssize_t)(sizeof *e + e->len);
    }
    return n > 0;
}

int cli_watch_wait(struct rv_cli_watch *w, rv_err **err)
{
    bool changed = false;

    if (w->rc < 0) {
        rv_err_pass(err, w->err);
        w->err = NULL;
        return w->rc;
    }
    while (!changed)
        drain(w, -1, &changed);
    for (int i = 0; i < MAX_MORE && drain(w, QUIET_MS, &changed); i++)
        ;
    return 0;
}

void cli_watch_end(struct rv_cli_watch *w)
{
    forget(w);
    free(w->items);
    rv_err_free(w->err);
    *w = RV_CLI_WATCH_INIT;
}
