/* Reads scenes, and makes a test of each. */
#include "tests/kit/scene.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"

/* --- reading --- */

static json_object *read_yaml(const char *file)
{
    rv_findings *findings = rv_findings_new();
    rv_yaml *doc = NULL;
    json_object *json = NULL;
    rv_err *err = NULL;

    int rc = rv_yaml_read(file, findings, &doc, &err);
    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, &err);
    if (rc == 0)
        rc = rv_node_build_json(rv_yaml_root(doc), &json, &err);
    if (rc < 0 || !json_object_is_type(json, json_type_object))
        rv_kit_die("%s is not a scene: %s", file, err ? rv_kit_err_take(err) : "it is not a map");
    rv_yaml_free(doc);
    rv_findings_free(findings);
    return json;
}

static void add(struct rv_scenes *all, const char *file, const char *name, json_object *shared, json_object *own)
{
    all->items = realloc(all->items, (all->n + 1) * sizeof *all->items);
    if (!all->items)
        rv_kit_die("no memory");
    all->items[all->n++] = (struct rv_scene){.file = rv_str_dup(rv_str_of(file)),
                                             .name = rv_str_dup(rv_str_of(name)),
                                             .shared = json_object_get(shared),
                                             .own = json_object_get(own)};
}

static void add_file(struct rv_scenes *all, const char *folder, const char *base)
{
    rv_buf file = RV_BUF_INIT(4096), name = RV_BUF_INIT(4096);

    rv_buf_printf(&file, "%s/%s", folder, base);
    json_object *shared = read_yaml(rv_buf_cstr(&file)), *cases = rv_json_get_arr(shared, "cases");
    size_t stem = strlen(base) - strlen(".yaml"), n = cases ? json_object_array_length(cases) : 0;
    rv_buf_add(&name, base, stem);
    if (!cases)
        add(all, rv_buf_cstr(&file), rv_buf_cstr(&name), shared, NULL);
    for (size_t i = 0; i < n; i++) {
        json_object *own = json_object_array_get_idx(cases, i);
        const char *what = NULL;
        if (!rv_json_get_text(own, "name", &what))
            rv_kit_die("%s: case %zu has no name", rv_buf_cstr(&file), i);
        rv_buf_clear(&name);
        rv_buf_printf(&name, "%.*s: %s", (int)stem, base, what);
        add(all, rv_buf_cstr(&file), rv_buf_cstr(&name), shared, own);
    }
    json_object_put(shared);
    rv_buf_fini(&file);
    rv_buf_fini(&name);
}

static int is_scene(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return n > 5 && strcmp(e->d_name + n - 5, ".yaml") == 0;
}

struct rv_scenes rv_scenes_read(const char *folder)
{
    struct rv_scenes all = {0};
    struct dirent **files;
    char *path = rv_kit_path(RV_SOURCE_DIR "/tests/scenes", folder);
    int n = scandir(path, &files, is_scene, alphasort);

    if (n <= 0)
        rv_kit_die("no scenes in %s", path);
    for (int i = 0; i < n; i++) {
        add_file(&all, path, files[i]->d_name);
        free(files[i]);
    }
    free(files);
    free(path);
    return all;
}

void rv_scenes_free(struct rv_scenes *scenes)
{
    for (size_t i = 0; i < scenes->n; i++) {
        free(scenes->items[i].file);
        free(scenes->items[i].name);
        json_object_put(scenes->items[i].shared);
        json_object_put(scenes->items[i].own);
    }
    free(scenes->items);
    *scenes = (struct rv_scenes){0};
}

/* --- as tests --- */

static struct rv_scenes listed;
static TTest *tests; /* Check borrows them */

static void run_listed(int i)
{
    rv_scene_run(&listed.items[i], NULL, NULL);
}

TCase *rv_scenes_case(const char *folder)
{
    TCase *tc = tcase_create("scenes");

    listed = rv_scenes_read(folder);
    tests = calloc(listed.n, sizeof *tests);
    for (size_t i = 0; tests && i < listed.n; i++) {
        const struct rv_scene *s = &listed.items[i];
        tests[i] = (TTest){.name = s->name, .fn = run_listed, .file = s->file, .line = 1};
        _tcase_add_test(tc, &tests[i], 0, 0, (int)i, (int)i + 1);
    }
    return tc;
}
