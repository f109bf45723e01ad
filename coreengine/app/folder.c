/* A folder of pipelines that clients may run, by the names of their files. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/app/app.h"

#define MAX_PIPELINES 10000 /* of one folder that are listed; further ones are left out */
#define MAX_NAME      200   /* bytes of a pipeline's name: it is part of a path; longer ones are not pipelines */

int rv_app_check_folder(const char *path, rv_err **err)
{
    DIR *d = path ? opendir(path) : NULL;

    if (d)
        closedir(d);
    if (d || !path)
        return 0;
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "cannot read folder \"%s\": %s", path, strerror(errno));
    rv_err_hint(err, "name a folder with YAML files");
    return rc;
}

/* "news.yaml" is the pipeline "news". 0: the file is none. */
static size_t name_length(const char *file)
{
    size_t n = strlen(file);

    if (file[0] == '.' || n > MAX_NAME)
        return 0;
    if (n > 5 && strcmp(file + n - 5, ".yaml") == 0)
        return n - 5;
    return n > 4 && strcmp(file + n - 4, ".yml") == 0 ? n - 4 : 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int rv_app_pipelines_each(const char *folder, int (*each)(void *self, const char *name, rv_err **err), void *self,
                          rv_err **err)
{
    DIR *dir = folder ? opendir(folder) : NULL;
    char **names = NULL;
    size_t n = 0, cap = 0;
    int rc = folder && !dir && errno == ENOMEM ? RV_FAIL(err, RV_E_NOMEM, "list the pipelines") : 0;

    for (struct dirent *e; dir && rc == 0 && n < MAX_PIPELINES && (e = readdir(dir));) {
        size_t len = name_length(e->d_name);
        if (len == 0)
            continue;
        if (rv_has_room(&names, &cap, n + 1, sizeof *names) && (names[n] = rv_str_dup((rv_str){e->d_name, len})))
            n++;
        else
            rc = RV_FAIL(err, RV_E_NOMEM, "list the pipelines");
    }
    if (dir)
        closedir(dir);
    if (n > 0)
        qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = each(self, names[i], err);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return rc;
}

int rv_app_pipeline_path(const char *folder, const char *name, rv_buf *out, rv_err **err)
{
    static const char *const ends[] = {".yaml", ".yml"};
    bool is_plain = name[0] && name[0] != '.' && strlen(name) <= MAX_NAME && !strchr(name, '/');
    struct stat st;

    for (size_t i = 0; folder && is_plain && i < RV_COUNT(ends); i++) {
        rv_buf_clear(out);
        rv_buf_printf(out, "%s/%s%s", folder, name, ends[i]);
        int rc = rv_buf_check(out, "the path of a pipeline", err);
        if (rc < 0)
            return rc;
        if (stat(rv_buf_cstr(out), &st) == 0 && S_ISREG(st.st_mode))
            return 0;
    }
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "there is no pipeline \"%.100s\"", name);
    if (!folder)
        rv_err_hint(err, "no folder of pipelines is named: start with --pipelines");
    return rc;
}
