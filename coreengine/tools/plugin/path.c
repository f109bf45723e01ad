/* Where capabilities are looked for, and what is there. Only names and files; nothing is opened as code. */
#include "coreengine/base/base.h"
#include "coreengine/base/reads.h"
#include "coreengine/tools/plugin/plugin_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DIRS      64   /* of one search path: a person writes it, and each is searched; more is an error */
#define MAX_AVAILABLE 4096 /* files of one path that are listed: a folder may be another's, with any number */
#define SUFFIX        ".so"

struct texts {
    char **items; /* NULL-terminated; owned */
    size_t n, cap;
};

void rv_plugins_path_free(char **dirs)
{
    for (char **dir = dirs; dir && *dir; dir++)
        free(*dir);
    free(dirs);
}

static bool texts_have(const struct texts *list, rv_str text)
{
    for (size_t i = 0; i < list->n; i++)
        if (rv_str_is(text, list->items[i]))
            return true;
    return false;
}

/* Add a copy; an empty text or one that is there already is passed over. */
static int texts_add(struct texts *list, rv_str text, size_t max, rv_err **err)
{
    char *copy;

    if (text.len == 0 || texts_have(list, text))
        return 0;
    if (list->n >= max)
        return RV_FAIL(err, RV_E_LIMIT, "more than %zu entries on the capability path", max);
    if (!rv_has_room(&list->items, &list->cap, list->n + 2, sizeof *list->items))
        return RV_FAIL(err, RV_E_NOMEM, "list the capability path");
    list->items[list->n] = NULL; /* the caller frees the list after a failure, so it needs its end */
    copy = rv_str_dup(text);
    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "list the capability path");
    list->items[list->n++] = copy;
    list->items[list->n] = NULL;
    return 0;
}

static int texts_add_below(struct texts *list, const char *dir, const char *rest, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf path = RV_BUF_INIT(PATH_MAX);
    int rc;

    rv_buf_printf(&path, "%s/%s", dir, rest);
    rc = rv_buf_check(&path, "capability path", err);
    return rc < 0 ? rc : texts_add(list, rv_buf_str(&path), MAX_DIRS, err);
}

/* <prefix>/bin/program -> <prefix>/lib/reeve/capabilities; silent when the system does not say where we are. */
static int add_beside_program(struct texts *list, rv_err **err)
{
    char program[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);

    if (len <= 0)
        return 0;
    program[len] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(program, '/');
        if (!slash)
            return 0;
        *slash = '\0';
    }
    return texts_add_below(list, program, "lib/reeve/capabilities", err);
}

static int add_variable(struct texts *list, rv_err **err)
{
    const char *text = getenv("REEVE_CAPABILITY_PATH");
    int rc = 0;

    while (text && *text && rc == 0) {
        size_t len = strcspn(text, ":");
        rc = texts_add(list, (rv_str){text, len}, MAX_DIRS, err);
        text += len + (text[len] == ':');
    }
    return rc;
}

static int collect(struct texts *list, const char *const *extra, size_t n_extra, const char *base_dir, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < n_extra && rc == 0; i++)
        rc = texts_add(list, rv_str_of(extra[i]), MAX_DIRS, err);
    if (rc == 0)
        rc = add_variable(list, err);
    if (rc == 0 && base_dir && *base_dir) {
        rc = texts_add(list, rv_str_of(base_dir), MAX_DIRS, err);
        if (rc == 0)
            rc = texts_add_below(list, base_dir, "capabilities", err);
    }
    if (rc == 0)
        rc = add_beside_program(list, err);
    if (rc == 0)
        rc = texts_add(list, RV_STR_LIT(RV_INSTALL_CAPABILITIES), MAX_DIRS, err);
    return rc;
}

int rv_plugins_path_new(const char *const *extra, size_t n_extra, const char *base_dir, char ***out, size_t *n,
                        rv_err **err)
{
    struct texts list = {NULL, 0, 0};
    int rc = collect(&list, extra, n_extra, base_dir, err);

    if (rc < 0) {
        rv_plugins_path_free(list.items);
        return rc;
    }
    *out = list.items;
    *n = list.n;
    return 0;
}

bool plugin_name_ok(rv_str name, bool dashes)
{
    if (name.len == 0 || name.len > RV_PLUGIN_MAX_NAME || name.ptr[0] < 'a' || name.ptr[0] > 'z')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (dashes && c == '-')))
            return false;
    }
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_dir(const char *dir, struct texts *list, rv_err **err)
{
    DIR *d = opendir(dir);
    const struct dirent *entry;
    int rc = 0;

    if (!d) /* most places of the path do not exist on most machines */
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP
                   ? 0
                   : RV_FAIL_SYSTEM(err, errno, "cannot list the capabilities in \"%s\"", dir);
    while (rc == 0 && (rc = rv_folder_next(d, dir, &entry, err)) == 0 && entry) {
        size_t len = strlen(entry->d_name);
        rv_str stem;
        if (len <= strlen(SUFFIX) || strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX) != 0)
            continue;
        stem = (rv_str){entry->d_name, len - strlen(SUFFIX)};
        if (plugin_name_ok(stem, true))
            rc = texts_add(list, stem, MAX_AVAILABLE, err);
    }
    closedir(d);
    return rc;
}

int rv_plugins_find_available(const char *const *dirs, size_t n_dirs, char ***out, size_t *n, rv_err **err)
{
    struct texts list = {NULL, 0, 0};
    int rc = 0;

    for (const struct rv_capability_linked *c = rv_capabilities_linked; c->name && rc == 0; c++)
        rc = texts_add(&list, rv_str_of(c->name), MAX_AVAILABLE, err);
    for (size_t i = 0; i < n_dirs && rc == 0; i++)
        rc = list_dir(dirs[i], &list, err);
    if (rc < 0) {
        rv_plugins_path_free(list.items);
        return rc;
    }
    if (!list.items) { /* nothing there: an empty list, which is not a null pointer */
        list.items = calloc(1, sizeof *list.items);
        if (!list.items)
            return RV_FAIL(err, RV_E_NOMEM, "list capabilities");
    }
    qsort(list.items, list.n, sizeof *list.items, by_text);
    *out = list.items;
    *n = list.n;
    return 0;
}

static bool is_file(const char *path)
{
    struct stat st;

    rv_reads_note(path, false);
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int fail_not_found(const struct rv_plugins *p, const char *name, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf places = RV_BUF_INIT((size_t)8 << 10);
    char **names = NULL;
    size_t n = 0;
    const char *nearest = NULL;
    int rc;

    for (size_t i = 0; i < p->n_dirs; i++)
        rv_buf_printf(&places, "%s%s", i ? ", " : "", p->dirs[i]);
    rc = rv_plugins_find_available((const char *const *)p->dirs, p->n_dirs, &names, &n, err);
    if (rc < 0)
        return rc;
    nearest = rv_nearest(rv_str_of(name), (const char *const *)names, n);
    rc = RV_FAIL(err, RV_E_NOT_FOUND, "no capability \"%s\" in %s", name,
                 p->n_dirs ? rv_buf_cstr(&places) : "an empty capability path");
    if (nearest && strcmp(nearest, name) == 0)
        rv_err_set_hint(err, "something is called %s.so there, but it is not a regular file", name);
    else if (nearest)
        rv_err_set_hint(err, "did you mean \"%s\"?", nearest);
    else
        rv_err_set_hint(err, "give --capability-path DIR, set REEVE_CAPABILITY_PATH, or write a path such as ./%s.so",
                        name);
    rv_plugins_path_free(names);
    return rc;
}

/* Join; *out stays NULL when no file is there. */
static int try_place(const char *dir, const char *rest, const char *suffix, char **out, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf path = RV_BUF_INIT(PATH_MAX);
    int rc;

    /* With a slash in front dlopen() takes the file itself and searches nowhere. */
    rv_buf_printf(&path, "%s%s%s%s", dir, *dir ? "/" : "", rest, suffix);
    rc = rv_buf_check(&path, "path of a capability", err);
    if (rc < 0 || !is_file(rv_buf_cstr(&path)))
        return rc;
    *out = rv_buf_steal(&path, NULL);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "path of a capability");
}

/* *out stays NULL when the program does not have it. */
static int try_program(const char *name, char **out, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf path = RV_BUF_INIT(PATH_MAX);

    if (!plugin_linked(name))
        return 0;
    rv_buf_printf(&path, RV_LINKED_FOLDER "%s", name);
    int rc = rv_buf_check(&path, "path of a capability", err);
    if (rc < 0)
        return rc;
    *out = rv_buf_steal(&path, NULL);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "path of a capability");
}

int plugin_locate(const struct rv_plugins *p, const char *name, char **out, rv_err **err)
{
    int rc = 0;

    *out = NULL;
    if (strchr(name, '/')) { /* of a pipeline it begins with the pipeline's folder, which config/ has put there */
        rc = try_place("", name, "", out, err);
        if (rc == 0 && !*out) {
            rc = RV_FAIL(err, RV_E_NOT_FOUND, "no file \"%s\"", name);
            rv_err_set_hint(err, "relative paths start in the folder of the pipeline, \"%s\"", p->base_dir);
        }
        return rc;
    }
    if (!plugin_name_ok(rv_str_of(name), true)) {
        rc = RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a name of a capability", name);
        rv_err_set_hint(err, "a name has a-z, 0-9, _ and -; a path to a file needs a slash, such as ./x.so");
        return rc;
    }
    rc = try_program(name, out, err);
    for (size_t i = 0; i < p->n_dirs && rc == 0 && !*out; i++)
        rc = try_place(p->dirs[i], name, SUFFIX, out, err);
    return rc == 0 && !*out ? fail_not_found(p, name, err) : rc;
}
