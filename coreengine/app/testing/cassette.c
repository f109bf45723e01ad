/* Cassettes: the answers that a live test got, as a script that answers the same requests again. The models' replies
 * and the results of tools are the cassette's; what the test's own script plays besides models stays as it stands
 * there. */
#include <ctype.h>
#include <json-c/linkhash.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/app/testing/testing_internal.h"
#include "coreengine/base/base.h"

#define FOLDER         "cassettes"
#define NOTE           "cassette of `reeve test --live`; --record all records it again"
#define MAX_PATH_BYTES ((size_t)64 << 10) /* the pipeline's path and a name: sixteen times PATH_MAX */
#define NAME_BYTES     48                 /* of a test's name, in the name of its file */
#define HASH_BYTES     8                  /* characters that tell names apart whose beginnings are the same */

/* --- where it is --- */

static rv_str file_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

    return (rv_str){name, dot && dot > name ? (size_t)(dot - name) : strlen(name)};
}

/* The beginning of a name, as far as any file system takes it, and a hash of the whole name. */
static void write_name(const char *name, rv_buf *out)
{
    char hash[RV_HASH_MAX];
    bool is_apart = true;
    size_t n = 0;

    for (const char *c = name; *c && n < NAME_BYTES; c++) {
        bool is_plain = isalnum((unsigned char)*c);
        if (!is_plain && is_apart)
            continue;
        rv_buf_putc(out, is_plain ? rv_ascii_lower(*c) : '-');
        is_apart = !is_plain;
        n++;
    }
    if (n > 0 && !is_apart)
        rv_buf_putc(out, '-');
    rv_hash_format(rv_str_of(name), hash);
    rv_buf_printf(out, "%.*s", HASH_BYTES, hash);
}

/* FOLDER/PIPELINE/[MODEL/]NAME[.NUMBER].yaml */
static int write_path(const struct rv_pipeline *p, const char *test, const struct rv_test_opts *opts, int64_t number,
                      rv_buf *out, rv_err **err)
{
    if (opts->cassettes)
        rv_buf_puts(out, opts->cassettes);
    else
        rv_buf_printf(out, "%s/" FOLDER, p->dir);
    rv_buf_putc(out, '/');
    rv_buf_add_str(out, file_name(p->file));
    rv_buf_putc(out, '/');
    if (opts->variant) {
        write_name(opts->variant, out);
        rv_buf_putc(out, '/');
    }
    write_name(test, out);
    if (number > 1)
        rv_buf_printf(out, ".%lld", (long long)number);
    rv_buf_puts(out, ".yaml");
    return rv_buf_check(out, "path of a cassette", err);
}

/* --- what it plays --- */

/* Tools that only the cassette knows. A flat list of the script's has no place for what declares a tool: its entries
 * come behind. */
static int add_tools(const rv_script *own, json_object *to, json_object *tools, rv_err **err)
{
    json_object *flat = rv_json_get_arr(to, "tools"), *map = rv_json_get_obj(to, "tools");
    int rc = 0;

    if (!flat && !map) {
        map = json_object_new_object();
        rc = rv_json_set_take(to, "tools", map, err);
    }
    json_object_object_foreach (tools, name, tool) {
        json_object *calls = rv_json_get_arr(tool, "calls");
        if (rc < 0)
            return rc;
        if (own && rv_script_has_tool(own, rv_str_of(name)))
            continue;
        if (map)
            rc = rv_json_set_ref(map, name, tool, err);
        for (size_t i = 0; flat && rc == 0 && calls && i < json_object_array_length(calls); i++) {
            json_object *entry = json_object_array_get_idx(calls, i);
            rc = rv_json_set_text(entry, "tool", name, err);
            if (rc == 0)
                rc = rv_json_push_take(flat, json_object_get(entry), err);
        }
    }
    return rc;
}

/* The test's script with the cassette's models and tools. own may be NULL. */
static int merge(const rv_script *own, json_object *cassette, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *all = NULL, *models = rv_json_get_obj(cassette, "models"), *tools = rv_json_get_obj(cassette, "tools");
    const char *name = NULL;
    int rc = 0;

    if (own) {
        rc = rv_script_write_source(own, &name, &text, err);
        if (rc == 0)
            rc = app_test_yaml_json(rv_buf_str(&text), name, &all, err);
    } else if (!(all = json_object_new_object())) {
        rc = RV_FAIL(err, RV_E_NOMEM, "read a cassette");
    }
    rv_buf_fini(&text);
    if (rc == 0) {
        json_object_object_del(all, "models");
        if (models)
            rc = rv_json_set_ref(all, "models", models, err);
    }
    if (rc == 0 && tools)
        rc = add_tools(own, all, tools, err);
    if (rc < 0)
        json_object_put(all);
    else
        *out = all;
    return rc;
}

static int parse(rv_str text, const char *path, rv_script **out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    int rc = findings ? 0 : RV_FAIL(err, RV_E_NOMEM, "read a cassette");

    if (rc == 0)
        rc = rv_script_parse(text, path, findings, out, err);
    if (rc == 0 && !*out)
        rc = rv_findings_raise_first_error(findings, err);
    rv_findings_free(findings);
    return rc;
}

static int parse_json(json_object *all, const char *path, rv_script **out, rv_err **err)
{
    rv_buf json = RV_BUF_INIT(RV_JSON_MAX_BYTES), text = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    rv_json_write(all, &json);
    int rc = rv_buf_check(&json, "cassette", err);
    if (rc == 0) {
        rv_script_add_json(rv_buf_str(&json), &text);
        rc = rv_buf_check(&text, "cassette", err);
    }
    if (rc == 0)
        rc = parse(rv_buf_str(&text), path, out, err);
    rv_buf_fini(&json);
    rv_buf_fini(&text);
    return rc;
}

/* The cassette is parsed alone first, so that its faults have their places. */
static int read_cassette(const rv_script *own, const char *path, rv_script **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    json_object *cassette = NULL, *all = NULL;
    rv_script *alone = NULL;

    int rc = rv_file_read(path, &text, err);
    if (rc == 0)
        rc = parse(rv_buf_str(&text), path, &alone, err);
    if (rc == 0)
        rc = app_test_yaml_json(rv_buf_str(&text), path, &cassette, err);
    if (rc == 0)
        rc = merge(own, cassette, &all, err);
    if (rc == 0)
        rc = parse_json(all, path, out, err);
    rv_script_free(alone);
    json_object_put(cassette);
    json_object_put(all);
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "play cassette \"%s\"", path) : 0;
}

/* --- open, write, free --- */

int app_cassette_open(const struct rv_app_loaded *l, size_t i, const struct rv_test_opts *opts, int64_t number,
                      struct rv_cassette *out, rv_err **err)
{
    struct stat st;

    *out = (struct rv_cassette){.path = RV_BUF_INIT(MAX_PATH_BYTES)};
    int rc = write_path(l->pipeline, l->pipeline->tests[i].name, opts, number, &out->path, err);
    if (rc < 0)
        return rc;
    const char *path = rv_buf_cstr(&out->path);
    bool exists = stat(path, &st) == 0;
    if (exists && opts->use != RV_CASSETTES_ALL)
        return read_cassette(l->test_scripts[i], path, &out->script, err);
    if (opts->use == RV_CASSETTES_NONE) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "there is no cassette \"%s\"", path);
        rv_err_set_hint(err, "record it with `reeve test --live`, which asks the models");
        return rc;
    }
    rc = rv_app_check_target(path, true, err); /* before the models are asked */
    if (rc < 0)
        return RV_WRAP(err, rc, "record a cassette");
    out->recorder = rv_recorder_new();
    return out->recorder ? 0 : RV_FAIL(err, RV_E_NOMEM, "record a cassette");
}

static void on_piece(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct rv_cassette *c = self;

    rv_recorder_note_delta(c->recorder, from->stage, from->call_id, d, rv_engine_now_us(c->engine));
}

static void on_input(void *self, const struct rv_event *ev)
{
    rv_recorder_note_input(((struct rv_cassette *)self)->recorder, ev);
}

static void on_effect(void *self, const struct rv_effects *all, const struct rv_effect *e)
{
    struct rv_cassette *c = self;

    (void)all;
    rv_recorder_note_request(c->recorder, c->pipeline, e);
}

void app_cassette_record(struct rv_cassette *c, struct rv_exec_opts *x)
{
    struct rv_catalog catalog = x->plugins ? rv_plugins_catalog(x->plugins) : rv_catalog_empty;

    if (x->script) {
        rv_script_leave_models(x->script, true);
        catalog = rv_script_catalog(x->script, &catalog);
    }
    c->pipeline = x->pipeline;
    rv_recorder_hide(c->recorder, x->pipeline);
    rv_recorder_note_tools(c->recorder, x->pipeline, &catalog);
    x->on_piece = on_piece;
    x->on_input = on_input;
    x->on_effect = on_effect;
    x->self = c;
}

int app_cassette_write(struct rv_cassette *c, rv_err **err)
{
    const char *path = rv_buf_cstr(&c->path);

    int rc = rv_file_make_folders(path, err);
    return rc == 0 ? rv_recorder_write(c->recorder, NOTE, path, err) : rc;
}

void app_cassette_fini(struct rv_cassette *c)
{
    rv_buf_fini(&c->path);
    rv_script_free(c->script);
    rv_recorder_free(c->recorder);
    *c = (struct rv_cassette){0};
}
