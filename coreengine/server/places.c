/* Where things are: handles of the store for the threads of the pool, and the pipelines that clients may run. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/server/server_internal.h"

#define MAX_PIPELINES 10000
#define MAX_NAME      200

/* --- stores for the pool --- */

int srv_desk_take(struct srv_server *s, struct srv_desk **out, rv_err **err)
{
    pthread_mutex_lock(&s->desk_lock);
    struct srv_desk *d = s->desks;
    if (d)
        s->desks = d->next;
    pthread_mutex_unlock(&s->desk_lock);
    if (!d) {
        d = calloc(1, sizeof *d);
        if (!d)
            return RV_FAIL(err, RV_E_NOMEM, "open the store");
        int rc = rv_app_sources_open(&s->app, RV_APP_STORE_MAKE, &d->sources, err);
        if (rc < 0) {
            free(d);
            return rc;
        }
    }
    *out = d;
    return 0;
}

void srv_desk_give(struct srv_server *s, struct srv_desk *d)
{
    pthread_mutex_lock(&s->desk_lock);
    d->next = s->desks;
    s->desks = d;
    pthread_mutex_unlock(&s->desk_lock);
}

void srv_desks_close(struct srv_server *s)
{
    for (struct srv_desk *d = s->desks, *next; d; d = next) {
        next = d->next;
        rv_app_sources_fini(&d->sources);
        free(d);
    }
}

/* --- pipelines that clients may run --- */

int srv_check_folder(const char *path, rv_err **err)
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

int srv_pipelines_each(const struct srv_server *s, int (*each)(void *self, const char *name, rv_err **err), void *self,
                       rv_err **err)
{
    DIR *dir = s->opts->pipelines ? opendir(s->opts->pipelines) : NULL;
    char **names = NULL;
    size_t n = 0, cap = 0;
    int rc = 0;

    for (struct dirent *e; dir && n < MAX_PIPELINES && (e = readdir(dir));) {
        size_t len = name_length(e->d_name);
        if (len == 0 || !rv_has_room(&names, &cap, n + 1, sizeof *names))
            continue;
        names[n] = rv_str_dup((rv_str){e->d_name, len});
        n += names[n] != NULL;
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

int srv_pipeline_path(const struct srv_server *s, const char *name, rv_buf *out, rv_err **err)
{
    static const char *const ends[] = {".yaml", ".yml"};
    bool is_plain = name[0] && name[0] != '.' && strlen(name) <= MAX_NAME && !strchr(name, '/');
    struct stat st;

    for (size_t i = 0; s->opts->pipelines && is_plain && i < RV_COUNT(ends); i++) {
        rv_buf_clear(out);
        rv_buf_printf(out, "%s/%s%s", s->opts->pipelines, name, ends[i]);
        int rc = rv_buf_check(out, "the path of a pipeline", err);
        if (rc < 0)
            return rc;
        if (stat(rv_buf_cstr(out), &st) == 0 && S_ISREG(st.st_mode))
            return 0;
    }
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "there is no pipeline \"%.100s\"", name);
    if (!s->opts->pipelines)
        rv_err_hint(err, "the server was started without --pipelines");
    return rc;
}
