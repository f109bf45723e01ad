/* reeve artifacts: what planned calls made for people: listed, shown, and saved as files. */
#include "coreengine/app/app.h"

#include <string.h>
#include <sys/stat.h>

#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#define MAX_CONTENT ((size_t)256 << 20) /* bytes of an artifact: RV_STORE_MAX_VALUE */

/* The run that --run names; `room` is for its id. */
static int read_filter(struct rv_cli *cli, struct rv_app_artifacts_filter *f, struct rv_run_row *room, rv_err **err)
{
    const char *word = cli_value(cli, "run");
    int rc = 0;

    *f = (struct rv_app_artifacts_filter){.session = cli_value(cli, "session")};
    if (word && cli->store)
        rc = rv_app_find_run(cli->store, &cli->app.scope, word, room, err);
    f->run = word && rc == 0 ? room->id : NULL;
    return rc;
}

static const char *text_of(const struct rv_app_artifact *a, const char *key)
{
    const char *text = NULL;

    return rv_json_get_text(a->about, key, &text) ? text : "";
}

/* --- list --- */

static void add_row(struct rv_cli_list *l, const struct rv_app_artifact *a)
{
    cli_table_add_text(l->table, text_of(a, "id"));
    cli_table_add_text(l->table, a->run);
    cli_table_add_text(l->table, text_of(a, "type"));
    cli_table_add_text(l->table, text_of(a, "title"));
    cli_table_add_text(l->table, text_of(a, "stage"));
    int64_t bytes = rv_json_int_or(a->about, "bytes", 0);
    cli_table_add_int(l->table, bytes);
}

static int take_row(void *self, const struct rv_app_artifact *a, rv_err **err)
{
    struct rv_cli_list *l = self;

    (void)err;
    if (!cli_list_takes(l))
        return 1;
    if (l->table)
        add_row(l, a);
    else
        rv_app_artifact_write(a, l->json);
    return 0;
}

static int list(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"ARTIFACT", 40, false}, {"RUN", 0, false},    {"TYPE", 24, false},
        {"TITLE", 40, false},    {"STAGE", 24, false}, {"BYTES", 0, true},
    };
    struct rv_cli_list l = {.what = "artifacts", .is_cut = true};
    struct rv_app_artifacts_filter f = {.run = NULL};
    struct rv_run_row room = {0};
    int rc = cli_list_begin(cli, &l, columns, RV_COUNT(columns), err);

    if (rc == 0)
        rc = read_filter(cli, &f, &room, err);
    f.max_runs = l.read; /* each of them has one at least */
    if (rc == 0 && cli->store)
        rc = rv_app_list_artifacts(cli->store, &cli->app.scope, &f, take_row, &l, err);
    rv_run_row_fini(&room);
    return cli_list_end(cli, &l, rc, err);
}

/* --- one --- */

struct one {
    struct rv_cli *cli;
    rv_buf text;
    bool is_found;
};

static void write_part(json_object *part, rv_buf *b)
{
    json_object *file = rv_json_get_obj(part, "file"), *value = NULL;
    const char *text = NULL;
    rv_buf data = RV_BUF_INIT(MAX_CONTENT);

    if (file) {
        static const char *const keys[] = {"name", "mimeType", "url"};
        rv_buf_puts(b, "file");
        for (size_t i = 0; i < RV_COUNT(keys); i++)
            if (rv_json_get_text(file, keys[i], &text)) {
                rv_buf_printf(b, "  %s ", keys[i]);
                cli_write_preview(rv_str_of(text), 200, b);
            }
    } else if (rv_json_get_text(part, "text", &text)) {
        cli_write_lines(rv_str_of(text), b);
    } else {
        json_object_object_get_ex(part, "data", &value);
        rv_json_write_pretty(value, &data);
        cli_write_lines(rv_buf_str(&data), b);
    }
    rv_buf_putc(b, '\n');
    rv_buf_fini(&data);
}

static int write_one(const struct rv_app_artifact *a, rv_buf *b, rv_err **err)
{
    static const char *const keys[] = {"id", "title", "type", "stage", "sha256"};
    json_object *content = NULL, *parts;
    int rc = rv_app_artifact_parse_content(a, &content, err);

    for (size_t i = 0; i < RV_COUNT(keys) && rc == 0; i++) {
        rv_buf_printf(b, "%-8s  ", keys[i]);
        cli_write_preview(rv_str_of(text_of(a, keys[i])), 300, b);
        rv_buf_putc(b, '\n');
    }
    rv_buf_printf(b, "%-8s  %s\n", "run", a->run);
    parts = rc == 0 ? rv_json_get_arr(content, "parts") : NULL;
    for (size_t i = 0; parts && i < json_object_array_length(parts); i++) {
        rv_buf_putc(b, '\n');
        write_part(json_object_array_get_idx(parts, i), b);
    }
    json_object_put(content);
    return rc;
}

static int take_one(void *self, const struct rv_app_artifact *a, rv_err **err)
{
    struct one *o = self;
    rv_jw w = rv_jw_on(&o->text);
    int rc = cli_flag(o->cli, "json") ? rv_app_artifact_write_whole(a, &w, err) : write_one(a, &o->text, err);

    if (rc == 0 && cli_flag(o->cli, "json"))
        rv_buf_putc(&o->text, '\n');
    o->is_found = true;
    return rc == 0 ? 1 : rc;
}

static int fail_unknown(struct rv_cli *cli, const char *id, rv_err **err)
{
    int rc = id ? RV_FAIL(err, RV_E_NOT_FOUND, "no artifact \"%.200s\" in \"%s\"", id, rv_store_url(cli->store))
                : RV_FAIL(err, RV_E_NOT_FOUND, "that run has no artifacts");

    rv_err_set_hint(err, "`reeve artifacts list` has the ids");
    return rc;
}

static int show(struct rv_cli *cli, rv_err **err)
{
    struct one o = {.cli = cli, .text = RV_BUF_INIT(RV_APP_MAX_TEXT)};
    struct rv_app_artifacts_filter f = {.run = NULL};
    struct rv_run_row room = {0};
    int rc = read_filter(cli, &f, &room, err);

    f.id = cli->words[0];
    if (rc == 0)
        rc = rv_app_list_artifacts(cli->store, &cli->app.scope, &f, take_one, &o, err);
    if (rc == 0 && !o.is_found)
        rc = fail_unknown(cli, f.id, err);
    rv_run_row_fini(&room);
    return cli_print(rc, &o.text, err);
}

/* --- save --- */

struct saving {
    const char *to;
    bool is_folder, is_one; /* is_one: of one artifact the newest */
    size_t n_artifacts;
    rv_buf said;
};

/* "TITLE-ID[-N][-NAME].EXTENSION": no name leaves the folder. */
static void write_path(const struct saving *s, const struct rv_app_artifact *a, size_t i, size_t n,
                       const struct rv_app_artifact_file *file, rv_buf *path)
{
    rv_buf_puts(path, s->to);
    if (s->is_folder) {
        rv_buf_putc(path, '/');
        rv_app_artifact_write_name(text_of(a, "title"), path);
        rv_buf_putc(path, '-');
        rv_app_artifact_write_name(text_of(a, "id"), path);
        if (n > 1)
            rv_buf_printf(path, "-%zu", i + 1);
        if (file->name) {
            const char *slash = strrchr(file->name, '/');
            rv_buf_putc(path, '-');
            rv_app_artifact_write_name(slash ? slash + 1 : file->name, path);
        }
        if (file->extension[0])
            rv_buf_printf(path, ".%s", file->extension);
    }
}

static int save_part(struct saving *s, const struct rv_app_artifact *a, json_object *parts, size_t i, rv_err **err)
{
    struct rv_app_artifact_file file = {.bytes = RV_BUF_INIT(MAX_CONTENT)};
    rv_buf path = RV_BUF_INIT(8192);
    int rc = rv_app_artifact_read_part(json_object_array_get_idx(parts, i), &file, err);

    if (rc == 0)
        write_path(s, a, i, json_object_array_length(parts), &file, &path);
    if (rc == 0)
        rc = rv_buf_check(&path, "the name of a file", err);
    if (rc == 0)
        rc = rv_file_write_new(rv_buf_cstr(&path), rv_buf_str(&file.bytes), err);
    if (rc == 0)
        rv_buf_printf(&s->said, "%s\n", rv_buf_cstr(&path));
    rv_buf_fini(&path);
    rv_buf_fini(&file.bytes);
    return rc < 0 ? RV_WRAP(err, rc, "save part %zu of artifact \"%.200s\"", i + 1, text_of(a, "id")) : 0;
}

static int take_saved(void *self, const struct rv_app_artifact *a, rv_err **err)
{
    struct saving *s = self;
    json_object *content = NULL;
    int rc = rv_app_artifact_parse_content(a, &content, err);
    json_object *parts = rc == 0 ? rv_json_get_arr(content, "parts") : NULL;
    size_t n = parts ? json_object_array_length(parts) : 0;

    if (rc == 0 && !s->is_folder && n != 1)
        rc = RV_FAIL(err, RV_E_INVALID, "artifact \"%.200s\" has %zu parts: --to has to be a folder", text_of(a, "id"),
                     n);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = save_part(s, a, parts, i, err);
    s->n_artifacts++;
    json_object_put(content);
    return rc == 0 && s->is_one ? 1 : rc;
}

static int save(struct rv_cli *cli, rv_err **err)
{
    struct saving s = {.to = cli_value(cli, "to"), .is_one = cli->n_words > 0, .said = RV_BUF_INIT(RV_APP_MAX_TEXT)};
    struct rv_app_artifacts_filter f = {.run = NULL};
    struct rv_run_row room = {0};
    struct stat st;

    if (!s.to)
        return cli_usage(cli, err, "`reeve artifacts save` needs --to FILE or --to FOLDER");
    s.is_folder = stat(s.to, &st) == 0 && S_ISDIR(st.st_mode);
    int rc = read_filter(cli, &f, &room, err);
    if (rc == 0 && !s.is_one && !f.run)
        rc = cli_usage(cli, err, "`reeve artifacts save` needs the id of an artifact, or --run");
    else if (rc == 0 && !s.is_one && !s.is_folder)
        rc = RV_FAIL(err, RV_E_INVALID, "--to \"%s\" is not a folder, and a run may have several artifacts", s.to);
    f.id = s.is_one ? cli->words[0] : NULL;
    if (rc == 0)
        rc = rv_app_list_artifacts(cli->store, &cli->app.scope, &f, take_saved, &s, err);
    if (rc == 0 && s.n_artifacts == 0)
        rc = fail_unknown(cli, f.id, err);
    rv_run_row_fini(&room);
    int said = cli_print(0, &s.said, rc < 0 ? NULL : err); /* files that were written are named in any case */
    return rc < 0 ? rc : said;
}

/* --- the table --- */

static const struct rv_cli_option list_options[] = {
    {"run", 0, "RUN", "only artifacts of the run", NULL, false},
    {"session", 0, "ID", "only artifacts of runs of the session", NULL, false},
    {"limit", 'l', "N",
     "number of artifacts to list, those of the newest run first; 0: all (default 50; all with --json)", NULL, false},
    {"json", 'j', NULL, "print a JSON array", NULL, false},
};
static const struct rv_cli_option show_options[] = {
    {"run", 0, "RUN", "the artifact of that run (default: of the newest run that has the id)", NULL, false},
    {"json", 'j', NULL, "print one JSON object, with the whole metadata", NULL, false},
};
static const struct rv_cli_option save_options[] = {
    {"to", 0, "PATH", "file that is written, or folder in which files are written", NULL, false},
    {"run", 0, "RUN", "the artifact of that run; without ID: all artifacts of the run", NULL, false},
};

static const struct rv_cli_verb list_verb = {
    .name = "artifacts list",
    .args = "",
    .summary = "list artifacts, those of the newest run first",
    .text =
        "Lists what calls of plans made for people: id, run, type, title, stage and size of the content. Reads the\n"
        "journals of all runs that match, so give a run or a session where there are many.",
    .examples = "reeve artifacts\n"
                "reeve artifacts list --run last\n"
                "reeve artifacts list --session chat-7 --json | jq -r '.[].id'",
    RV_CLI_OPTIONS(list_options),
    .groups = {&cli_of_stores},
    .store = RV_CLI_READS_IF_ANY,
    .run = list,
};
static const struct rv_cli_verb show_verb = {
    .name = "artifacts show",
    .args = "ID",
    .summary = "show an artifact with its content",
    .text = "Prints an artifact and its parts: texts as they are, data as JSON, of files the name and the type.",
    .examples = "reeve artifacts show a-1\n"
                "reeve artifacts show a-1 --run last --json | jq '.parts[0].data'",
    RV_CLI_OPTIONS(show_options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .run = show,
};
static const struct rv_cli_verb save_verb = {
    .name = "artifacts save",
    .args = "[ID] --to PATH",
    .summary = "write the content of artifacts to files",
    .text =
        "Writes the one part of an artifact to a file, or each part to a file in a folder that exists. Names in a\n"
        "folder are made of title and id and have no characters but letters, digits, \".\", \"_\" and \"-\". Texts "
        "are\n"
        "written as they are, data as JSON, files as their bytes. Links are not followed. Files that exist are not\n"
        "overwritten. Prints the names of the files.",
    .examples = "reeve artifacts save a-1 --to report.json\n"
                "mkdir out && reeve artifacts save --run last --to out",
    RV_CLI_OPTIONS(save_options),
    .groups = {&cli_of_stores},
    .max_words = 1,
    .store = RV_CLI_READS,
    .run = save,
};

static const struct rv_cli_verb *const subs[] = {&list_verb, &show_verb, &save_verb, NULL};

const struct rv_cli_verb verb_artifacts = {
    .name = "artifacts",
    .args = "VERB",
    .summary = "list, show and save artifacts of runs",
    .text =
        "An artifact is what a call of a plan made for people: a report, a table, an image. It is kept with its run\n"
        "and deleted with it. With --user (or REEVE_USER) only the artifacts of that user's runs are visible.",
    .examples = "reeve artifacts                        # those of the newest run first\n"
                "reeve artifacts show ID                # one of them\n"
                "reeve artifacts save ID --to report.json",
    .subs = subs,
};
