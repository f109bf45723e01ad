#include "tests/unit/bundle/world.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TEXT ((size_t)64 << 20)

static void must(int rc, rv_err *err, const char *what)
{
    char *text = rc < 0 ? rv_kit_err_take(err) : NULL;
    ck_assert_msg(rc == 0, "%s: %s", what, text);
}

static void must_be_clean(rv_findings *f, const char *what)
{
    rv_buf text = RV_BUF_INIT(1 << 20);

    rv_findings_write_text(f, false, &text);
    ck_assert_msg(rv_findings_n_errors(f) == 0, "%s:\n%s", what, rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_findings_free(f);
}

static void load_plugins(struct world *w, rv_findings *f)
{
    static const char *const dirs[] = {CAPABILITY_DIR};
    const struct rv_plugins_opts opts = {dirs, RV_COUNT(dirs), w->pipeline->dir, NULL, NULL, NULL};
    rv_err *err = NULL;

    must(rv_plugins_new(&opts, &w->plugins, &err), err, "plugins");
    must(rv_plugins_load_all(w->plugins, w->pipeline, f, &err), err, "capabilities");
    w->catalog = rv_plugins_catalog(w->plugins);
}

void world_load(struct world *w, const char *path)
{
    rv_findings *f = rv_findings_new();
    rv_err *err = NULL;

    *w = (struct world){.pipeline = NULL};
    must(rv_pipeline_load(path, f, &w->pipeline, &err), err, path);
    ck_assert_ptr_nonnull(w->pipeline);
    load_plugins(w, f);
    must_be_clean(f, path);
}

void world_parse(struct world *w, const char *text, const char *dir)
{
    rv_findings *f = rv_findings_new();
    rv_err *err = NULL;
    char *path = rv_kit_path(dir, "p.yaml");

    *w = (struct world){.catalog = rv_catalog_empty};
    must(rv_pipeline_parse(rv_str_of(text), path, dir, f, &w->pipeline, &err), err, "pipeline");
    must_be_clean(f, "pipeline");
    free(path);
}

void world_script(struct world *w, rv_script *script)
{
    w->script = script;
    w->catalog = rv_script_catalog(script, &w->catalog);
}

void world_script_text(struct world *w, const char *text)
{
    rv_findings *f = rv_findings_new();
    rv_script *s = NULL;
    rv_err *err = NULL;

    must(rv_script_parse(rv_str_of(text), "s.yaml", f, &s, &err), err, "script");
    must_be_clean(f, "script");
    world_script(w, s);
}

void world_fini(struct world *w)
{
    rv_script_free(w->script);
    rv_pipeline_free(w->pipeline);
    rv_plugins_free(w->plugins);
}

char *world_bundle(const struct world *w, char hash[RV_HASH_MAX])
{
    struct rv_known_names names = {.list = NULL, .self = NULL};
    struct rv_bundle_source from = {.pipeline = w->pipeline, .catalog = &w->catalog, .script = w->script};
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    rv_err *err = NULL;

    if (w->plugins) {
        names = rv_plugins_names(w->plugins);
        from.names = &names;
    }
    must(rv_bundle_write(&from, &text, hash, &err), err, "bundle");
    return rv_buf_steal(&text, NULL);
}

rv_bundle *world_open(const char *text, bool offline)
{
    const struct rv_bundle_opts opts = {.offline = offline};
    rv_bundle *b = NULL;
    rv_err *err = NULL;

    must(rv_bundle_open(rv_str_of(text), &opts, &b, &err), err, "open");
    return b;
}

char *world_refused(const char *text, bool offline, int rc)
{
    const struct rv_bundle_opts opts = {.offline = offline};
    rv_bundle *b = NULL;
    rv_err *err = NULL;
    int got = rv_bundle_open(rv_str_of(text), &opts, &b, &err);
    char *said = rv_kit_err_take(err);

    ck_assert_msg(got == rc, "%d, not %d: %s", got, rc, said);
    ck_assert_ptr_null(b);
    return said;
}

char *world_explained(const struct rv_pipeline *p)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    rv_jw w = rv_jw_on(&text);

    rv_pipeline_write_json(p, &w);
    ck_assert_int_eq(text.rc, 0);
    return rv_buf_steal(&text, NULL);
}

static void same_text(const char *a, const char *b)
{
    ck_assert_pstr_eq(a, b);
}

static void same_json(json_object *a, json_object *b)
{
    char *left = a ? rv_kit_text(a) : NULL, *right = b ? rv_kit_text(b) : NULL;

    same_text(left, right);
    free(left);
    free(right);
}

/* Also in what it says: that becomes part of a run's state. */
static void same_schema(const rv_schema *a, const rv_schema *b)
{
    static const char *const values[] = {"{}", "{'zz': 1, 'path': 7, 'query': [], 'name': null}", "[]", "3"};

    ck_assert(!a == !b);
    for (size_t i = 0; a && i < RV_COUNT(values); i++) {
        json_object *v = rv_kit_json(values[i]);
        rv_err *left = NULL, *right = NULL;
        ck_assert_int_eq(rv_schema_check(a, v, &left), rv_schema_check(b, v, &right));
        same_text(rv_err_text(left), rv_err_text(right));
        rv_err_free(left);
        rv_err_free(right);
        json_object_put(v);
    }
}

static void same_tool(const struct rv_tool_info *a, const struct rv_tool_info *b)
{
    ck_assert(!a == !b);
    if (!a)
        return;
    same_text(a->name, b->name);
    same_text(a->description, b->description);
    ck_assert_int_eq(a->category, b->category);
    ck_assert_int_eq(a->risk, b->risk);
    ck_assert_int_eq(a->effect, b->effect);
    ck_assert_int_eq(a->timeout_ms, b->timeout_ms);
    ck_assert_int_eq(a->has_probe, b->has_probe);
    same_json(a->input_json, b->input_json);
    same_json(a->output_json, b->output_json);
    same_schema(a->input, b->input);
    same_schema(a->output, b->output);
}

static void same_entry(const struct rv_entry_info *a, const struct rv_entry_info *b)
{
    ck_assert(!a == !b);
    if (!a)
        return;
    same_text(a->name, b->name);
    ck_assert_int_eq((int)a->kind, (int)b->kind);
    ck_assert_int_eq(a->timeout_ms, b->timeout_ms);
    ck_assert_int_eq(a->sees.is_set, b->sees.is_set);
    ck_assert_uint_eq(a->sees.n, b->sees.n);
    for (size_t i = 0; i < a->sees.n; i++)
        same_text(a->sees.items[i], b->sees.items[i]);
}

static void same_prompt(const rv_template *a, const rv_template *b)
{
    ck_assert(!a == !b);
    if (a)
        ck_assert(rv_str_eq(rv_template_text(a), rv_template_text(b)));
}

void world_same_catalog(const struct rv_catalog *a, const struct rv_catalog *b, const struct rv_known_names *names)
{
    for (int k = 0; k < RV_N_NAME_KINDS; k++) {
        size_t n;
        const char *const *list = names->list(names->self, (enum rv_name_kind)k, &n);
        for (size_t i = 0; i < n; i++) { /* each name in each way: a hook is no tool of that name */
            rv_str name = rv_str_of(list[i]);
            same_tool(a->tool(a->self, name), b->tool(b->self, name));
            same_prompt(a->prompt(a->self, name), b->prompt(b->self, name));
            for (int other = 0; other <= RV_N_NAME_KINDS; other++)
                same_entry(a->entry(a->self, (enum rv_name_kind)other, name),
                           b->entry(b->self, (enum rv_name_kind)other, name));
        }
    }
    ck_assert_ptr_null(b->tool(b->self, RV_STR_LIT("no_such_name")));
    ck_assert_ptr_null(b->entry(b->self, RV_NAME_HOOK, RV_STR_LIT("no_such_name")));
    ck_assert_ptr_null(b->prompt(b->self, RV_STR_LIT("no_such_name")));
}

char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    rv_buf out = RV_BUF_INIT(MAX_TEXT);

    ck_assert_msg(at != NULL, "\"%s\" is not in %s", from, text);
    rv_buf_add(&out, text, (size_t)(at - text));
    rv_buf_puts(&out, to);
    rv_buf_puts(&out, at + strlen(from));
    return rv_buf_steal(&out, NULL);
}
