/* A folder of pipelines that clients may run, by the names of their files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/app/app.h"
#include "coreengine/base/base.h"

#define MAX_PIPELINES 10000 /* of one folder: with more it is not listed, for none may be left out silently */
#define MAX_NAME      200   /* bytes of a pipeline's name: it is part of a path; longer ones are not pipelines */

int rv_app_check_folder(const char *path, rv_err **err)
{
    DIR *d = path ? opendir(path) : NULL;

    if (d)
        closedir(d);
    if (d || !path)
        return 0;
    int number = errno, code = rv_code_of_system(number);
    if (code == RV_E_NOMEM || rv_code_is_scarce(code))
        return RV_FAIL_SYSTEM(err, number, "cannot read folder \"%s\"", path);
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "cannot read folder \"%s\": %s", path, strerror(number));
    rv_err_set_hint(err, "name a folder with YAML files");
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

/* The folder was there when the process started: if it cannot be read now, the caller asked rightly. */
static int fail_open(const char *folder, int number, rv_err **err)
{
    char text[128];
    int code = rv_code_of_system(number);

    if (code == RV_E_NOT_FOUND || code == RV_E_DENIED)
        return RV_FAIL(err, RV_E_IO, "cannot read the folder of pipelines \"%s\": %s", folder,
                       strerror_r(number, text, sizeof text));
    return RV_FAIL_SYSTEM(err, number, "cannot read the folder of pipelines \"%s\"", folder);
}

struct names {
    char **at; /* owned, and the names are */
    size_t n, cap;
};

static int add_name(struct names *names, const char *folder, const char *file, rv_err **err)
{
    size_t len = name_length(file);

    if (len == 0)
        return 0;
    if (names->n == MAX_PIPELINES)
        return RV_FAIL(err, RV_E_LIMIT, "the folder \"%s\" has more than %d pipelines", folder, MAX_PIPELINES);
    if (!rv_has_room(&names->at, &names->cap, names->n + 1, sizeof *names->at) ||
        !(names->at[names->n] = rv_str_dup((rv_str){file, len})))
        return RV_FAIL(err, RV_E_NOMEM, "list the pipelines");
    names->n++;
    return 0;
}

static int read_names(const char *folder, struct names *names, rv_err **err)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry = NULL;
    struct stat st;

    if (!dir)
        return fail_open(folder, errno, err);
    int rc;
    do {
        rc = rv_folder_next(dir, folder, &entry, err);
        if (rc == 0 && entry && (fstatat(dirfd(dir), entry->d_name, &st, 0) != 0 || S_ISREG(st.st_mode)))
            rc = add_name(names, folder, entry->d_name, err);
    } while (rc == 0 && entry);
    closedir(dir);
    return rc;
}

int rv_app_list_pipelines(const char *folder, int (*each)(void *self, const char *name, rv_err **err), void *self,
                          rv_err **err)
{
    struct names names = {.at = NULL};
    int rc = folder ? read_names(folder, &names, err) : 0;

    if (rc == 0 && names.n > 0)
        qsort(names.at, names.n, sizeof *names.at, by_name);
    for (size_t i = 0; i < names.n && rc == 0; i++)
        rc = each(self, names.at[i], err);
    for (size_t i = 0; i < names.n; i++)
        free(names.at[i]);
    free(names.at);
    return rc;
}

int rv_app_find_pipeline_path(const char *folder, const char *name, rv_buf *out, rv_err **err)
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
        rv_err_set_hint(err, "no folder of pipelines is named: start with --pipelines");
    return rc;
}
