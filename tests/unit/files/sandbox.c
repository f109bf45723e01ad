#include "tests/unit/files/sandbox.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void sandbox_file(const struct sandbox *s, const char *name, const char *text)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    ck_assert_int_eq(rv_file_write(path, rv_str_of(text), NULL), 0);
}

static void make_dir(const struct sandbox *s, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

void sandbox_begin(struct sandbox *s, const char *config)
{
    static const char *const dirs[] = {CAPABILITY_DIR};
    struct rv_plugins_opts opts = {dirs, 1, NULL, NULL, NULL, NULL};
    struct rv_capability_config which = {.name = "files"};
    char base[256];

    memset(s, 0, sizeof *s);
    snprintf(s->dir, sizeof s->dir, "/tmp/rv_files_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(s->dir));
    rv_buf_init(&s->reply, (size_t)16 << 20);
    make_dir(s, "project");
    make_dir(s, "project/docs");
    make_dir(s, "project/docs/deep");
    make_dir(s, "project/pipelines");
    sandbox_file(s, "secret.txt", "the secret is 42\n");
    sandbox_file(s, "project/README.md", "# Project\n\nA thing that sorts apples.\n");
    sandbox_file(
        s, "project/docs/errors.md",
        "# Errors\n\nAn error is a value.\nIt has a code and a text.\n\n## Chains\n\nA wrapped error keeps its "
        "cause.\n");
    sandbox_file(s, "project/docs/deep/limits.md", "# Limits\n\nEdges have limits: a loop ends.\n");
    sandbox_file(s, "project/docs/.hidden.md", "error error error\n");
    sandbox_file(s, "project/pipelines/qa.yaml", "name: qa\n");
    snprintf(base, sizeof base, "%s/project/pipelines", s->dir);
    opts.base_dir = base;
    ck_assert_int_eq(rv_plugins_new(&opts, &s->plugins, NULL), 0);
    ck_assert_int_eq(rv_json_parse(rv_str_of(config ? config : "{\"roots\": [\"../docs\", \"../README.md\"]}"), NULL,
                                   &which.config, NULL),
                     0);
    if (rv_plugins_load(s->plugins, &which, &s->err) < 0)
        ck_assert_msg(config != NULL, "%s", rv_err_text(rv_err_cause(s->err)));
    json_object_put(which.config);
}

void sandbox_end(struct sandbox *s)
{
    rv_plugins_free(s->plugins);
    rv_buf_fini(&s->reply);
    json_object_put(s->json);
    rv_err_free(s->err);
    nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int sandbox_call(struct sandbox *s, const char *name, const char *args)
{
    const struct rv_plugin_call call = {
        .kind = strchr(name, '.') ? RV_NAME_HOOK : RV_NAME_TOOL, .name = name, .args = rv_str_of(args)};
    int rc;

    rv_err_free(s->err);
    s->err = NULL;
    rv_buf_clear(&s->reply);
    json_object_put(s->json);
    s->json = NULL;
    rc = rv_plugins_call(s->plugins, &call, &s->reply, &s->err);
    if (rc == 0)
        ck_assert_int_eq(rv_json_parse(rv_buf_str(&s->reply), NULL, &s->json, NULL), 0);
    return rc;
}

json_object *sandbox_ask(struct sandbox *s, const char *name, const char *args)
{
    int rc = sandbox_call(s, name, args);

    ck_assert_msg(rc == 0, "%s %s: %s", name, args, rv_err_text(s->err));
    return s->json;
}

json_object *at(json_object *value, const char *path)
{
    while (value && *path) {
        size_t len = strcspn(path, ".");
        char key[64];

        snprintf(key, sizeof key, "%.*s", (int)len, path);
        if (json_object_is_type(value, json_type_array))
            value = json_object_array_get_idx(value, strtoul(key, NULL, 10));
        else if (!json_object_object_get_ex(value, key, &value))
            value = NULL;
        path += len + (path[len] == '.');
    }
    return value;
}

const char *text_at(json_object *value, const char *path)
{
    rv_str text = rv_json_str(at(value, path));

    return text.ptr ? text.ptr : "";
}

int64_t int_at(json_object *value, const char *path)
{
    json_object *found = at(value, path);

    ck_assert_msg(rv_json_is_int(found), "no integer at %s", path);
    return json_object_get_int64(found);
}
