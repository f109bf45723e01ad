/* Which files the paths of a command line stand for: folders are walked in the order of their names. Symbolic links to
 * folders are not followed, so there are no circles; links to files are read. Names that begin with a dot are passed
 * over, unless they were named. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coreengine/app/ingest/ingest_internal.h"

static const struct {
    const char *suffix, *mime;
} suffixes[] = {
    {".md", "text/markdown"},       {".markdown", "text/markdown"},
    {".txt", "text/plain"},         {".text", "text/plain"},
    {".rst", "text/plain"},         {".csv", "text/csv"},
    {".tsv", "text/csv"},           {".json", "application/json"},
    {".jsonl", "application/json"}, {".ndjson", "application/json"},
    {".yaml", "application/yaml"},  {".yml", "application/yaml"},
};

const char *app_ingest_mime(const char *path)
{
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot && i < RV_COUNT(suffixes); i++)
        if (strcasecmp(dot, suffixes[i].suffix) == 0)
            return suffixes[i].mime;
    return NULL;
}

/* Takes why. */
static int add_file(struct ingest_files *files, const char *path, rv_err *why, rv_err **err)
{
    char *copy = NULL;
    int rc = 0;

    if (files->n == RV_INGEST_MAX_FILES)
        rc = RV_FAIL(err, RV_E_LIMIT, "there are more than %d files", RV_INGEST_MAX_FILES);
    else if (!rv_has_room(&files->at, &files->cap, files->n + 1, sizeof *files->at) ||
             !(copy = rv_str_dup(rv_str_of(path))))
        rc = RV_FAIL(err, RV_E_NOMEM, "list files");
    if (rc < 0)
        rv_err_free(why);
    else
        files->at[files->n++] = (struct ingest_file){copy, why};
    return rc;
}

/* A file or folder that cannot be looked at. */
static int add_unread(struct ingest_files *files, const char *path, int reason, rv_err **err)
{
    rv_err *why = NULL;

    RV_IGNORE(RV_FAIL_SYSTEM(&why, reason, "\"%s\"", path), "kept with the file");
    return add_file(files, path, why, err);
}

static int add_too_deep(struct ingest_files *files, const char *path, rv_err **err)
{
    rv_err *why = NULL;

    RV_IGNORE(RV_FAIL(&why, RV_E_LIMIT, "\"%s\": more than %d folders within each other", path, RV_INGEST_MAX_DEPTH),
              "kept with the file");
    rv_err_set_hint(&why, "ingest it by itself, with this path");
    return add_file(files, path, why, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
    char **at; /* owned, and each of them */
    size_t n, cap;
};

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->at[i]);
    free(names->at);
}

/* errno when the folder cannot be read to its end. */
static int read_names(const char *path, struct names *out, int *reason, rv_err **err)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int rc = 0;

    *reason = dir ? 0 : errno;
    while (dir && rc == 0 && (errno = 0, entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        if (!rv_has_room(&out->at, &out->cap, out->n + 1, sizeof *out->at) ||
            !(out->at[out->n] = rv_str_dup(rv_str_of(entry->d_name))))
            rc = RV_FAIL(err, RV_E_NOMEM, "list files");
        else
            out->n++;
    }
    if (dir && rc == 0)
        *reason = errno;
    if (dir)
        closedir(dir);
    if (out->n > 1)
        qsort(out->at, out->n, sizeof *out->at, by_name);
    return rc;
}

static int walk(struct ingest_files *files, const char *path, int depth, rv_err **err);

static int walk_folder(struct ingest_files *files, const char *path, int depth, rv_err **err)
{
    struct names names = {NULL, 0, 0};
    rv_buf below = RV_BUF_INIT(PATH_MAX);
    int reason = 0;
    int rc = depth < RV_INGEST_MAX_DEPTH ? read_names(path, &names, &reason, err) : add_too_deep(files, path, err);

    if (rc == 0 && reason)
        rc = add_unread(files, path, reason, err);
    for (size_t i = 0; i < names.n && rc == 0; i++) {
        rv_buf_clear(&below);
        rv_buf_printf(&below, "%s%s%s", path, path[0] && path[strlen(path) - 1] == '/' ? "" : "/", names.at[i]);
        rc = below.rc == RV_E_LIMIT ? add_unread(files, path, ENAMETOOLONG, err) : rv_buf_check(&below, "path", err);
        if (rc == 0 && below.rc == 0)
            rc = walk(files, rv_buf_cstr(&below), depth + 1, err);
    }
    names_fini(&names);
    rv_buf_fini(&below);
    return rc;
}

/* depth 0: it was named. */
static int walk(struct ingest_files *files, const char *path, int depth, rv_err **err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return add_unread(files, path, errno, err);
    if (S_ISDIR(st.st_mode)) {
        struct stat link;
        if (depth > 0 && lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
            return (files->n_passed_over++, 0);
        return walk_folder(files, path, depth, err);
    }
    if (depth > 0 && (!S_ISREG(st.st_mode) || !app_ingest_mime(path)))
        return (files->n_passed_over++, 0);
    if (!S_ISREG(st.st_mode)) {
        rv_err *why = NULL;
        RV_IGNORE(RV_FAIL(&why, RV_E_INVALID, "\"%s\" is neither a file nor a folder", path), "kept with the file");
        rv_err_set_hint(&why, "a row needs a text that can be read again: write it to a file first");
        return add_file(files, path, why, err);
    }
    return add_file(files, path, NULL, err);
}

int app_ingest_find(const char *const *paths, size_t n, struct ingest_files *out, rv_err **err)
{
    int rc = 0;

    *out = (struct ingest_files){0};
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = walk(out, paths[i], 0, err);
    if (rc < 0)
        app_ingest_files_fini(out);
    return rc;
}

void app_ingest_files_fini(struct ingest_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        free(files->at[i].path);
        rv_err_free(files->at[i].why);
    }
    free(files->at);
    *files = (struct ingest_files){0};
}
