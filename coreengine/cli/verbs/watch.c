/* Waits until a file changes: inotify on the folders of pipelines. */
#include "coreengine/cli/verbs/watch.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define QUIET_MS 100 /* without a further change: an editor has written all its files */

static const uint32_t changes = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE;

/* A folder and the folders in it. */
static void add_folder(int fd, const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    RV_IGNORE(inotify_add_watch(fd, path, changes) < 0, "a folder that cannot be watched is not");
    while (dir && (entry = readdir(dir))) {
        char inner[4096];
        if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
            continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < (int)sizeof inner)
            RV_IGNORE(inotify_add_watch(fd, inner, changes | IN_ONLYDIR) < 0, "the same");
    }
    if (dir)
        closedir(dir);
}

int rv_cli_watch_begin(const struct rv_cli_files *files, struct rv_cli_watch *out, rv_err **err)
{
    out->fd = inotify_init1(IN_CLOEXEC);
    if (out->fd < 0)
        return RV_FAIL_SYSTEM(err, errno, "watch files");
    for (size_t i = 0; i < files->n; i++) {
        const char *slash = strrchr(files->paths[i], '/');
        char *folder = slash
                           ? strndup(files->paths[i], slash == files->paths[i] ? 1 : (size_t)(slash - files->paths[i]))
                           : strdup(".");
        if (!folder)
            return RV_FAIL(err, RV_E_NOMEM, "watch files");
        add_folder(out->fd, folder); /* a folder that is watched already stays so */
        free(folder);
    }
    return 0;
}

/* False: nothing came within that time. */
static bool drain(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char events[4096];

    if (poll(&p, 1, timeout_ms) <= 0)
        return false;
    return read(fd, events, sizeof events) > 0;
}

void rv_cli_watch_wait(const struct rv_cli_watch *w)
{
    while (!drain(w->fd, -1))
        ;
    while (drain(w->fd, QUIET_MS))
        ;
}

void rv_cli_watch_end(struct rv_cli_watch *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}
