/* The pipeline files that a command line names: files, and folders of files. */
#include "coreengine/cli/verbs/files_internal.h"

#include "coreengine/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_DEPTH 16 /* folders in folders: deeper ones belong to something else */

static bool is_pipeline(const char *name)
{
    size_t n = strlen(name);

    return name[0] != '.' &&
           ((n > 5 && strcmp(name + n - 5, ".yaml") == 0) || (n > 4 && strcmp(name + n - 4, ".yml") == 0));
}

/* dir/name, or name alone */
static int add(struct rv_cli_files *files, const char *dir, const char *name, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(1 << 16);

    if (dir)
        rv_buf_printf(&path, "%s%s", dir, dir[0] && dir[strlen(dir) - 1] == '/' ? "" : "/");
    rv_buf_puts(&path, name);
    int rc = rv_buf_check(&path, "path of a pipeline", err);
    if (rc == 0 && !rv_has_room(&files->paths, &files->cap, files->n + 1, sizeof *files->paths))
        rc = RV_FAIL(err, RV_E_NOMEM, "list pipelines");
    if (rc == 0)
        files->paths[files->n++] = rv_buf_steal(&path, NULL);
    rv_buf_fini(&path);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_folder(struct rv_cli_files *files, const char *path, rv_err **err)
{
    DIR *dir = opendir(path);
    size_t first = files->n;
    const struct dirent *entry;
    struct stat st;
    int rc = 0;

    if (!dir)
        return RV_FAIL_SYSTEM(err, errno, "open the folder \"%s\"", path);
    while (rc == 0 && (rc = rv_folder_next(dir, path, &entry, err)) == 0 && entry) {
        if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && !S_ISREG(st.st_mode))
            continue; /* opening a pipe would wait for a writer */
        if (is_pipeline(entry->d_name))
            rc = add(files, path, entry->d_name, err);
    }
    closedir(dir);
    if (rc == 0 && files->n == first) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "the folder \"%s\" has no pipelines", path);
        rv_err_set_hint(err, "pipelines are files that end with .yaml or .yml; folders in it are not looked at");
    }
    if (rc == 0)
        qsort(files->paths + first, files->n - first, sizeof *files->paths, by_name);
    return rc;
}

/* All of a folder and the folders in it, in any order. */
static int add_below(struct rv_cli_files *files, const char *path, int depth, rv_err **err)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int rc = 0;

    if (!dir)
        return RV_FAIL_SYSTEM(err, errno, "open the folder \"%s\"", path);
    while (rc == 0 && (rc = rv_folder_next(dir, path, &entry, err)) == 0 && entry) {
        struct stat st;
        if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!S_ISDIR(st.st_mode) && !(S_ISREG(st.st_mode) && is_pipeline(entry->d_name)))
            continue;
        rc = add(files, path, entry->d_name, err);
        if (rc < 0 || !S_ISDIR(st.st_mode))
            continue;
        char *inner = files->paths[--files->n];
        rc = depth == MAX_DEPTH
                 ? RV_FAIL(err, RV_E_LIMIT, "the folder \"%s\" has more than %d folders around it", inner, MAX_DEPTH)
                 : add_below(files, inner, depth + 1, err);
        free(inner);
    }
    closedir(dir);
    return rc;
}

static int add_whole_folder(struct rv_cli_files *files, const char *path, rv_err **err)
{
    size_t first = files->n;

    int rc = add_below(files, path, 1, err);
    if (rc == 0 && files->n == first)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "the folder \"%s\" has no files that end with .yaml or .yml", path);
    if (rc == 0)
        qsort(files->paths + first, files->n - first, sizeof *files->paths, by_name);
    return rc;
}

static int add_words(const struct rv_cli *cli, struct rv_cli_files *out,
                     int (*folder)(struct rv_cli_files *, const char *, rv_err **), rv_err **err)
{
    struct stat st;
    int rc = 0;

    *out = (struct rv_cli_files){0};
    for (size_t i = 0; rc == 0 && i < cli->n_words; i++)
        rc = stat(cli->words[i], &st) == 0 && S_ISDIR(st.st_mode) ? folder(out, cli->words[i], err)
                                                                  : add(out, NULL, cli->words[i], err);
    return rc;
}

int cli_files(const struct rv_cli *cli, struct rv_cli_files *out, rv_err **err)
{
    return add_words(cli, out, add_folder, err);
}

int cli_files_below(const struct rv_cli *cli, struct rv_cli_files *out, rv_err **err)
{
    return add_words(cli, out, add_whole_folder, err);
}

void cli_files_fini(struct rv_cli_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->paths[i]);
    free(files->paths);
    *files = (struct rv_cli_files){0};
}
