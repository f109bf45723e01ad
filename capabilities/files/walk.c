/* All files of the roots, sorted, so that two walks over the same files give the same list. Links are not followed:
 * a walk cannot leave a root or go in circles. Hidden files and folders are skipped. */
#include "capabilities/files/files_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool add(struct walked *w, const char *path)
{
    if (w->n >= MAX_FILES) {
        w->truncated = true;
        return false;
    }
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 64;
        char **paths = realloc(w->paths, cap * sizeof *paths);
        if (!paths) {
            w->failed = true;
            return false;
        }
        w->paths = paths;
        w->cap = cap;
    }
    w->paths[w->n] = strdup(path);
    if (!w->paths[w->n]) {
        w->failed = true;
        return false;
    }
    w->n++;
    return true;
}

void walked_fini(struct walked *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->paths[i]);
    free(w->paths);
    memset(w, 0, sizeof *w);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of one folder, sorted. The descriptor is taken; -1: errno says why there is none. */
static void names_of(int fd, struct walked *out)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        out->error = errno;
        if (fd >= 0)
            close(fd);
        return;
    }
    while (errno = 0, (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && is_text(entry->d_name, strlen(entry->d_name)) && !add(out, entry->d_name))
            break;
    if (!entry)
        out->error = errno;
    closedir(dir);
    if (out->n > 0)
        qsort(out->paths, out->n, sizeof *out->paths, by_text);
}

/* Gone, replaced, or not ours to read: as if it were not there. Else the list would not be whole. */
static bool is_absent(int number)
{
    return number == ENOENT || number == ENOTDIR || number == ELOOP || number == EACCES;
}

static void note_error(struct walked *out, int number, const char *folder)
{
    if (out->error || !number)
        return;
    out->error = number;
    snprintf(out->unread, sizeof out->unread, "%s", *folder ? folder : ".");
}

/* A folder in its parent. Borrowed. */
struct folder_place {
    const char *name, *prefix; /* prefix: how paths in it begin */
    int depth;
};
static void walk_folder(int parent, const struct folder_place *at, const struct rv_cap_call *call, const char *glob,
                        struct walked *out)
{
    int fd = openat(parent, at->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct walked names = {0};

    if (fd < 0) {
        note_error(out, is_absent(errno) ? 0 : errno, at->prefix);
        return;
    }
    if (at->depth >= MAX_WALK_DEPTH) {
        out->truncated = true;
        close(fd);
        return;
    }
    names_of(dup(fd), &names);
    note_error(out, names.error, at->prefix);
    out->failed |= names.failed;
    out->truncated |= names.truncated;
    for (size_t i = 0; i < names.n && !out->failed && !out->error && out->n < MAX_FILES && !call->cancelled(call);
         i++) {
        char path[MAX_PATH_BYTES];
        struct stat st;
        int len = snprintf(path, sizeof path, "%s%s%s", at->prefix, *at->prefix ? "/" : "", names.paths[i]);

        if (len < 0 || (size_t)len >= sizeof path)
            out->truncated = true; /* no tool could name it */
        else if (fstatat(fd, names.paths[i], &st, AT_SYMLINK_NOFOLLOW) != 0)
            note_error(out, is_absent(errno) ? 0 : errno, path);
        else if (S_ISDIR(st.st_mode))
            walk_folder(fd,
                        &(const struct folder_place){.name = names.paths[i], .prefix = path, .depth = at->depth + 1},
                        call, glob, out);
        else if (S_ISREG(st.st_mode) && (!glob || glob_match(glob, path)))
            add(out, path);
    }
    walked_fini(&names);
    close(fd);
}

int walk_failed(const struct walked *w, struct rv_cap_call *call)
{
    return rv_cap_failf(call, "ExecutionError", "folder \"%s\" cannot be read to its end: %s", w->unread,
                        strerror(w->error));
}

void walk_all(const struct files *f, const struct rv_cap_call *call, const char *glob, struct walked *out)
{
    for (size_t i = 0; i < f->n_roots; i++) {
        const struct root *root = &f->roots[i];

        if (!root->file)
            walk_folder(root->fd, &(const struct folder_place){.name = ".", .prefix = root->label, .depth = 0}, call,
                        glob, out);
        else if (!glob || glob_match(glob, root->label))
            add(out, root->label);
    }
}
