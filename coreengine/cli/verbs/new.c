/* reeve new */
#include "coreengine/app/app.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>

#define MAX_TEXT ((size_t)1 << 20) /* bytes of what is told of the new files: their paths */

/* --- the gallery --- */

static void write_item(const struct rv_gallery_item *item, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", item->name);
    rv_jw_kv_text(w, "summary", item->summary);
    rv_jw_kv_text(w, "does", item->does);
    rv_jw_kv_text(w, "change", item->change);
    rv_jw_kv_text(w, "input", item->input);
    rv_jw_kv_text(w, "options", item->options);
    rv_jw_key(w, "files");
    rv_jw_arr(w);
    for (size_t i = 0; i < item->n_files; i++)
        rv_jw_text(w, item->files[i]);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

static int write_list(const struct rv_cli *cli, const rv_gallery *g, rv_buf *out, rv_err **err)
{
    static const struct rv_cli_column columns[] = {{"NAME", 0, false}, {"WHAT IT DOES", 0, false}};
    rv_cli_table *table = cli_table_new(columns, RV_COUNT(columns));

    if (!table)
        return RV_FAIL(err, RV_E_NOMEM, "list the gallery");
    for (size_t i = 0; i < rv_gallery_n(g); i++) {
        cli_table_add_text(table, rv_gallery_at(g, i)->name);
        cli_table_add_text(table, rv_gallery_at(g, i)->summary);
    }
    int rc = cli_table_write(table, cli->out_color, out, err);
    cli_table_free(table);
    return rc;
}

static int list(const struct rv_cli *cli, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    rv_gallery *g = NULL;
    int rc = rv_gallery_open(&g, err);

    if (rc == 0 && cli_flag(cli, "json")) {
        rv_jw w = rv_jw_on(&text);
        rv_jw_arr(&w);
        for (size_t i = 0; i < rv_gallery_n(g); i++)
            write_item(rv_gallery_at(g, i), &w);
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0) {
        rc = write_list(cli, g, &text, err);
    }
    rv_gallery_free(g);
    return cli_print(rc, &text, err);
}

static void write_next(const struct rv_gallery_item *item, const struct rv_gallery_copy *c, rv_buf *text)
{
    rv_buf_printf(text, "wrote %s\n      %s\n", rv_buf_cstr(&c->pipeline), rv_buf_cstr(&c->script));
    for (const char *path = rv_buf_cstr(&c->others); *path; path += strcspn(path, "\n") + 1)
        rv_buf_printf(text, "      %.*s\n", (int)strcspn(path, "\n"), path);
    rv_buf_puts(text, "next: reeve test ");
    cli_write_word(rv_buf_cstr(&c->pipeline), text);
    rv_buf_puts(text, "\n      reeve run ");
    cli_write_word(rv_buf_cstr(&c->pipeline), text);
    rv_buf_puts(text, " --script ");
    cli_write_word(rv_buf_cstr(&c->script), text);
    rv_buf_puts(text, " --input ");
    cli_write_word(item->input, text);
    rv_buf_printf(text, "%s%s\n", item->options[0] ? " " : "", item->options);
}

static int copy(const char *name, const char *path, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    const struct rv_gallery_item *item = NULL;
    struct rv_gallery_copy made = {0};
    rv_gallery *g = NULL;
    int rc = rv_gallery_open(&g, err);

    if (rc == 0)
        rc = rv_gallery_find(g, name, &item, err);
    if (rc == 0)
        rc = rv_gallery_copy(g, item, path, &made, err);
    if (rc == 0)
        write_next(item, &made, &text);
    rv_gallery_copy_fini(&made);
    rv_gallery_free(g);
    return cli_print(rc, &text, err);
}

/* --- the verb --- */

static int make_pipeline(struct rv_cli *cli, rv_err **err)
{
    const char *path = cli->n_words > 1 ? cli->words[1] : NULL, *from = cli_value(cli, "from");
    rv_buf text = RV_BUF_INIT(MAX_TEXT);

    if (cli_flag(cli, "list"))
        return path || from ? cli_usage(cli, err, "--list takes no file and no --from") : list(cli, err);
    if (cli_flag(cli, "json"))
        return cli_usage(cli, err, "--json goes with --list");
    if (!path)
        return cli_usage(cli, err, "`reeve new pipeline` takes the file to write, or --list");
    if (cli->n_words > 2)
        return cli_usage(cli, err, "`reeve new pipeline` takes one file, not \"%s\" too", cli->words[2]);
    if (from)
        return copy(from, path, err);
    rv_buf file = RV_BUF_INIT(MAX_TEXT);
    int rc = rv_app_new_pipeline(path, &file, err);
    if (rc == 0) {
        rv_buf_printf(&text, "wrote %s\nnext: reeve test ", rv_buf_cstr(&file));
        cli_write_word(rv_buf_cstr(&file), &text);
        rv_buf_puts(&text, "\n      reeve run ");
        cli_write_word(rv_buf_cstr(&file), &text);
        rv_buf_puts(&text, " --input hello\n");
    }
    rv_buf_fini(&file);
    return cli_print(rc, &text, err);
}

static int make_capability(struct rv_cli *cli, rv_err **err)
{
    const char *name = cli->words[1], *dir = cli->n_words > 2 ? cli->words[2] : name;
    rv_buf text = RV_BUF_INIT(MAX_TEXT);

    if (cli->n_words < 2)
        return cli_usage(cli, err, "`reeve new capability` takes the name of the capability");
    if (cli_value(cli, "from") || cli_flag(cli, "list") || cli_flag(cli, "json"))
        return cli_usage(cli, err, "--from, --list and --json are for pipelines");
    int rc = rv_app_new_capability(name, dir, cli_value(cli, "sdk"), err);
    rv_buf_printf(&text, "wrote %s/: %s.c, %s_test.c, %s.yaml, Makefile, CMakeLists.txt, README.md\n", dir, name, name,
                  name);
    rv_buf_printf(&text, "next: cd %s && make check\n      reeve run %s.yaml --input Ada\n", dir, name);
    return cli_print(rc, &text, err);
}

static int make(struct rv_cli *cli, rv_err **err)
{
    static const char *const kinds[] = {"pipeline", "capability"};
    const char *kind = cli->words[0], *dot = strrchr(kind, '.');

    if (strcmp(kind, "pipeline") == 0)
        return make_pipeline(cli, err);
    if (strcmp(kind, "capability") == 0)
        return make_capability(cli, err);
    if (strcmp(kind, "agent") == 0 || strcmp(kind, "agents") == 0) {
        int rc = RV_FAIL(err, RV_E_INVALID, "unknown template \"%s\" (templates: pipeline, capability)", kind);
        rv_err_set_hint(err, "an agent is one YAML file; `reeve agents show general --yaml` prints one to change");
        return rc;
    }
    if (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)) {
        int rc = RV_FAIL(err, RV_E_INVALID, "\"%s\" is a file: the kind of what it becomes is missing", kind);
        rv_err_set_hint(err, "write: reeve new pipeline %s", kind);
        return rc;
    }
    const char *near = rv_nearest(rv_str_of(kind), kinds, RV_COUNT(kinds));
    return cli_usage(cli, err, "unknown template \"%s\" (templates: pipeline, capability)%s%s%s", kind,
                     near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static const struct rv_cli_option new_options[] = {
    {"from", 0, "NAME", "for a pipeline: copy this one of the gallery, with its script and agents", NULL, false},
    {"list", 0, NULL, "for a pipeline: list the gallery", NULL, false},
    {"json", 'j', NULL, "with --list: print a JSON array of objects", NULL, false},
    {"sdk", 0, "DIR", "for a capability: folder that contains reeve/capability.h (default: searched)", "DIR", false},
};

const struct rv_cli_verb verb_new = {
    .name = "new",
    .args = "pipeline FILE | pipeline --list | capability NAME [DIR]",
    .summary = "write a new pipeline or capability from a template",
    .text =
        "The pipeline runs without a model and contains tests; .yaml is added to FILE if it does not end with .yaml "
        "or\n"
        ".yml. With --from it is a copy of one that comes with reeve, with its script and its agents in the folders\n"
        "scripts and agents beside it. The capability is a folder with a plugin in C, build files, a pipeline that "
        "uses it and tests. Existing "
        "files\n"
        "are not overwritten.",
    .examples = "reeve new pipeline hello.yaml && reeve test hello.yaml\n"
                "reeve new pipeline --list\n"
                "reeve new pipeline desk --from support && reeve test desk.yaml\n"
                "reeve new capability weather && make -C weather check",
    RV_CLI_OPTIONS(new_options),
    .min_words = 1,
    .max_words = 3,
    .run = make,
};
