/* reeve entities: rows of all kinds; lists of them, one of them, rows from lines of JSON, deletions. */
#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <errno.h>
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_CONDITIONS 16 /* --where of one command: a person types them; more is an error */
#define MAX_CELL       60 /* columns of a name: others stand beside it on a terminal; the rest is cut */

/* --- list --- */

static int list_kinds(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {{"KIND", 0, false}, {"ROWS ARE", 80, false}};
    struct rv_cli_list l = {.what = "kinds", .words = "ids"};
    int rc = cli_list_begin(cli, &l, columns, RV_COUNT(columns), err);

    for (size_t i = 0; i < rv_n_kinds && rc == 0; i++) {
        if (l.json)
            rv_jw_text(l.json, rv_kinds[i].name);
        else if (!l.table)
            rv_buf_printf(&l.text, "%s\n", rv_kinds[i].name);
        else {
            cli_table_add_text(l.table, rv_kinds[i].name);
            cli_table_add_text(l.table, rv_kinds[i].doc);
        }
        l.n++;
    }
    return cli_list_end(cli, &l, rc, err);
}

struct listing {
    struct rv_cli_list list;
    bool is_json;
};

/* The first sixty characters of what the kind's index says of a row, or of its tags. */
static void add_row(struct rv_cli_list *l, json_object *row)
{
    rv_buf tags = RV_BUF_INIT(4096), age = RV_BUF_INIT(64);
    json_object *list = rv_json_get_arr(row, "tags");
    int64_t us = 0;

    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        rv_buf_puts(&tags, i ? ", " : "");
        rv_buf_add_str(&tags, rv_json_str(json_object_array_get_idx(list, i)));
    }
    if (rv_time_read(rv_str_of(rv_json_text_or(row, "created_at", NULL)), &us))
        cli_write_age(&age, l->now_us - us);
    cli_table_add_text(l->table, rv_json_text_or(row, "id", NULL));
    cli_table_add_text(l->table, rv_json_text_or(row, "name", NULL));
    cli_table_add_text(l->table, rv_json_text_or(row, "user_id", NULL));
    cli_table_add_text(l->table, tags.len > 0 ? rv_buf_cstr(&tags) : NULL);
    cli_table_add(l->table, rv_buf_str(&age));
    rv_buf_fini(&tags);
    rv_buf_fini(&age);
}

static void write_line(json_object *row, rv_buf *out)
{
    rv_json_write(row, out);
    rv_buf_putc(out, '\n');
}

static int take_row(void *self, json_object *row, rv_err **err)
{
    struct listing *l = self;
    rv_buf line = RV_BUF_INIT(RV_APP_MAX_TEXT);

    if (!cli_list_takes(&l->list))
        return RV_STORE_ENOUGH;
    if (l->list.table) {
        add_row(&l->list, row);
        return 0;
    }
    if (!l->is_json) {
        rv_buf_printf(&l->list.text, "%s\n", rv_json_text_or(row, "id", NULL));
        return 0;
    }
    write_line(row, &line);
    int rc = rv_buf_check(&line, "row", err);
    if (rc == 0 && !cli_out_now(rv_buf_str(&line)))
        rc = RV_STORE_ENOUGH;
    rv_buf_fini(&line);
    return rc;
}

struct conditions {
    struct rv_entity_where where[MAX_CONDITIONS];
    char *columns[MAX_CONDITIONS]; /* owned */
    size_t n;
};

static void drop_conditions(struct conditions *c)
{
    for (size_t i = 0; i < c->n; i++) {
        json_object_put(c->where[i].value);
        free(c->columns[i]);
    }
}

static int read_conditions(struct rv_cli *cli, const char *option, struct conditions *c, rv_err **err)
{
    const char *given;
    int rc = 0;

    while (rc == 0 && (given = cli_nth(cli, option, c->n))) {
        const char *sign = strchr(given, '=');
        if (!sign || sign == given)
            return cli_usage(cli, err, "--%s %s: write COLUMN=VALUE", option, given);
        if (c->n == MAX_CONDITIONS)
            return cli_usage(cli, err, "more than %d --%s", MAX_CONDITIONS, option);
        char *column = rv_str_dup((rv_str){given, (size_t)(sign - given)});
        c->columns[c->n] = column;
        c->where[c->n].column = column;
        c->n++;
        rc = column ? rv_app_entity_parse_value(cli->words[0], column, sign + 1, &c->where[c->n - 1].value, err)
                    : RV_FAIL(err, RV_E_NOMEM, "read --%s", option);
    }
    return rc;
}

static int find(struct rv_cli *cli, struct listing *l, rv_err **err)
{
    const char *tags[MAX_CONDITIONS];
    struct conditions where = {.n = 0}, lists = {.n = 0};
    struct rv_entity_filter filter = {.name = cli_value(cli, "name"), .about = cli_value(cli, "about"), .tags = tags};

    int rc = cli_values(cli, "tag", tags, MAX_CONDITIONS, &filter.n_tags, err);
    if (rc == 0)
        rc = cli_int(cli, "offset", 0, 1000000000, &filter.offset, err);
    if (rc == 0)
        rc = read_conditions(cli, "where", &where, err);
    if (rc == 0)
        rc = read_conditions(cli, "has", &lists, err);
    filter.where = where.where;
    filter.n_where = where.n;
    filter.lists = lists.where;
    filter.n_lists = lists.n;
    filter.limit = l->list.read > 0 ? l->list.read : RV_ENTITY_MAX_FIND;
    if (rc == 0 && cli->store)
        rc = rv_store_find_entities(cli->store, &cli->app.scope, &(const struct rv_entities_of){cli->words[0], &filter},
                                    take_row, l, err);
    drop_conditions(&where);
    drop_conditions(&lists);
    return rc;
}

/* Agents of capabilities and folders are rows before a list or a look at them. */
static int register_agents(const struct rv_cli *cli, const char *kind, rv_err **err)
{
    return !kind || strcmp(kind, "schemas") == 0 ? rv_app_register_agents(&cli->app, cli->store, err) : 0;
}

static int list_json(struct rv_cli *cli, rv_err **err)
{
    struct listing l = {.is_json = true};
    int rc = cli_int(cli, "limit", 0, RV_ENTITY_MAX_FIND - 1, &l.list.limit, err);

    l.list.read = l.list.limit;
    return rc < 0 ? rc : find(cli, &l, err);
}

static int list(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"ID", 0, false}, {"NAME", MAX_CELL, false}, {"USER", 36, false}, {"TAGS", 40, false}, {"AGE", 0, false}};
    struct listing l = {.list = {.what = "rows", .words = "ids", .is_cut = true}};
    const struct rv_kind *kind = NULL;

    if (cli->n_words == 0)
        return list_kinds(cli, err);
    int rc = rv_kind_of(rv_str_of(cli->words[0]), &kind, err);
    if (rc == 0)
        rc = register_agents(cli, cli->words[0], err);
    if (rc < 0)
        return rc;
    if (cli_flag(cli, "json"))
        return list_json(cli, err);
    rc = cli_list_begin(cli, &l.list, columns, RV_COUNT(columns), err);
    if (rc == 0)
        rc = find(cli, &l, err);
    return cli_list_end(cli, &l.list, rc, err);
}

/* --- show --- */

static void show_row(const char *kind, json_object *row, rv_buf *b)
{
    cli_put_line(b, "kind", kind);
    json_object_object_foreach (row, column, value) {
        json_object *empty = value;
        bool is_empty = !value ||
                        (json_object_is_type(empty, json_type_array) && json_object_array_length(empty) == 0) ||
                        (json_object_is_type(empty, json_type_object) && json_object_object_length(empty) == 0);
        if (is_empty)
            continue;
        rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
        if (json_object_is_type(value, json_type_string))
            rv_buf_add_str(&text, rv_json_str(value));
        else
            rv_json_write(value, &text);
        rv_buf_printf(b, "%-*s ", RV_CLI_LABEL + 6, column);
        cli_write_lines(rv_buf_str(&text), b);
        rv_buf_putc(b, '\n');
        rv_buf_fini(&text);
    }
}

static int show(struct rv_cli *cli, rv_err **err)
{
    const char *kind = cli->n_words > 1 ? cli->words[0] : NULL, *word = cli->words[cli->n_words - 1];
    json_object *rows = NULL;
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = register_agents(cli, kind, err);

    if (rc == 0)
        rc = rv_app_entities_show(cli->store, &cli->app.scope, kind, word, &rows, err);

    for (size_t i = 0; rc == 0 && i < json_object_array_length(rows); i++) {
        json_object *hit = json_object_array_get_idx(rows, i), *row = rv_json_get_obj(hit, "data");
        if (cli_flag(cli, "json")) {
            write_line(row, &text);
            continue;
        }
        rv_buf_puts(&text, i ? "\n" : "");
        show_row(rv_json_text_or(hit, "entity_type", NULL), row, &text);
    }
    json_object_put(rows);
    return cli_print(rc, &text, err);
}

/* --- put --- */

struct putting {
    const struct rv_cli *cli;
    bool is_json;
};

static int say_row(void *self, int64_t line, json_object *row, const rv_err *why, rv_err **err)
{
    const struct putting *p = self;
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);

    if (why) {
        rv_buf_printf(&text, "line %lld: ", (long long)line);
        rv_err_write_text(why, p->cli->debug, &text);
        cli_say_text(&text);
        return 0;
    }
    if (p->is_json)
        write_line(row, &text);
    else
        rv_buf_printf(&text, "%s\n", rv_json_text_or(row, "id", NULL));
    int rc = rv_buf_check(&text, "row", err);
    if (rc == 0)
        cli_out(rv_buf_str(&text));
    rv_buf_fini(&text);
    return rc;
}

/* Can lines be read from it to an end? Not from a device other than a terminal and /dev/null. */
static int check_lines(int fd, const char *path, rv_err **err)
{
    struct stat st, none;

    if (fstat(fd, &st) < 0)
        return RV_FAIL_SYSTEM(err, errno, "read \"%s\"", path);
    if (!S_ISBLK(st.st_mode) && (!S_ISCHR(st.st_mode) || isatty(fd)))
        return 0;
    if (S_ISCHR(st.st_mode) && stat("/dev/null", &none) == 0 && none.st_rdev == st.st_rdev)
        return 0;
    RV_FAIL(err, RV_E_INVALID, "\"%s\" is a device, whose lines may never end", path);
    rv_err_set_hint(err, "name a file or a pipe");
    return RV_E_INVALID;
}

static int put(struct rv_cli *cli, rv_err **err)
{
    const char *path = cli->n_words > 1 ? cli->words[1] : "-";
    bool is_stdin = strcmp(path, "-") == 0;
    struct putting p = {.cli = cli, .is_json = cli_flag(cli, "json")};
    const struct rv_app_put_lines opts = {.store = cli->store,
                                          .scope = cli->app.scope,
                                          .kind = cli->words[0],
                                          .is_tenantless = cli_flag(cli, "every-tenant"),
                                          .on_row = say_row,
                                          .self = &p};
    int64_t n_failed = 0;
    FILE *in = is_stdin ? stdin : fopen(path, "re");

    if (!in)
        return RV_FAIL_SYSTEM(err, errno, "read \"%s\"", path);
    int rc = check_lines(fileno(in), is_stdin ? "standard input" : path, err);
    if (rc == 0)
        rc = rv_app_put_lines(&opts, in, &n_failed, err);
    if (!is_stdin)
        fclose(in);
    if (rc == 0 && n_failed > 0)
        cli_say("%lld %s not written\n", (long long)n_failed, n_failed == 1 ? "row was" : "rows were");
    return rc < 0 ? rc : n_failed > 0 ? RV_EXIT_FAILED : RV_EXIT_COMPLETED;
}

/* --- delete --- */

static int delete_rows(struct rv_cli *cli, rv_err **err)
{
    const char *kind = cli->words[0];
    rv_buf said = RV_BUF_INIT(RV_APP_MAX_TEXT);
    int rc = 0;

    for (size_t i = 1; i < cli->n_words && rc == 0; i++) {
        const char *word = cli->words[i];
        int64_t n = 1;
        rc = rv_uuid_read(rv_str_of(word), NULL)
                 ? rv_store_delete_entity(cli->store, &cli->app.scope,
                                          &(struct rv_entity_target){kind, word, rv_app_now_us()}, err)
                 : rv_store_delete_entities_named(cli->store, &cli->app.scope,
                                                  &(struct rv_entity_target){kind, word, rv_app_now_us()}, &n, err);
        if (rc == 0)
            rv_buf_printf(&said, "%lld %s of %s deleted: %s\n", (long long)n, n == 1 ? "row" : "rows", kind, word);
    }
    if (said.len > 0) /* also of those before the one that failed */
        cli_out(rv_buf_str(&said));
    rv_buf_fini(&said);
    return rc;
}

/* --- history, reindex --- */

struct history {
    struct rv_cli_list list;
    bool is_json;
};

static int take_version(void *self, const struct rv_schema_version *v, rv_err **err)
{
    struct history *h = self;
    char time[RV_TIME_MAX];
    rv_jw w = rv_jw_on(&h->list.text);

    (void)err;
    rv_time_format(v->recorded_us, time);
    h->list.n++;
    if (h->list.table) {
        cli_table_add_text(h->list.table, time);
        cli_table_add_text(h->list.table, v->operation);
        cli_table_add_text(h->list.table, v->version);
        cli_table_add_text(h->list.table, *v->user ? v->user : NULL);
        cli_table_add(h->list.table, (rv_str){v->checksum, 12});
        return 0;
    }
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "schema_id", v->schema_id);
    rv_jw_kv_text(&w, "kind", v->kind);
    rv_jw_kv_text(&w, "user_id", *v->user ? v->user : NULL);
    rv_jw_kv_text(&w, "operation", v->operation);
    rv_jw_kv_text(&w, "name", v->name);
    rv_jw_kv_text(&w, "version", v->version);
    rv_jw_kv_str(&w, "content", v->content);
    rv_jw_key(&w, "json_schema");
    rv_jw_raw(&w, v->json_schema);
    rv_jw_kv_text(&w, "checksum", v->checksum);
    rv_jw_kv_text(&w, "recorded_at", time);
    rv_jw_obj_end(&w);
    rv_buf_putc(&h->list.text, '\n');
    return 0;
}

static int history(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {{"RECORDED", 0, false},
                                                   {"OPERATION", 0, false},
                                                   {"VERSION", 20, false},
                                                   {"USER", 36, false},
                                                   {"CHECKSUM", 0, false}};
    const char *kind = cli_value(cli, "kind");
    struct history h = {.list = {.what = "versions", .text = RV_BUF_INIT(RV_APP_MAX_TEXT)},
                        .is_json = cli_flag(cli, "json")};
    int rc = h.is_json ? 0 : cli_list_begin(cli, &h.list, columns, RV_COUNT(columns), err);

    if (rc == 0)
        rc = rv_store_list_schema_versions(
            cli->store, &cli->app.scope,
            &(const struct rv_schema_key){.kind = kind ? kind : "agent", .name = cli->words[0]}, take_version, &h, err);
    if (rc == 0 && h.list.n == 0) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "no version of a schema \"%s\" is kept", cli->words[0]);
        rv_err_set_hint(err, "`reeve agents list` shows the agents; --kind names another kind of schema");
    }
    return cli_list_end(cli, &h.list, rc, err);
}

static int reindex(struct rv_cli *cli, rv_err **err)
{
    rv_buf said = RV_BUF_INIT(200);
    int64_t n = 0;
    int rc = rv_store_rebuild_keys(cli->store, &n, err);

    rv_buf_printf(&said, "%lld name%s indexed\n", (long long)n, n == 1 ? " is" : "s are");
    return cli_print(rc, &said, err);
}

/* --- the table --- */

static const struct rv_cli_option list_options[] = {
    {"name", 0, "TEXT", "only rows of this name", NULL, false},
    {"about", 0, "ID", "only rows that belong to this: a session, a file, a server", NULL, false},
    {"tag", 't', "TAG", "only rows with this tag", NULL, true},
    {"where", 0, "COLUMN=VALUE", "only rows whose column has this value (null: none; JSON for numbers)", NULL, true},
    {"has", 0, "COLUMN=VALUE", "only rows whose list column contains this value", NULL, true},
    {"offset", 0, "N", "rows to pass over", NULL, false},
    {"limit", 'l', "N", "number of rows to list, newest first; 0: all (default 50; all with --json and --ids)", NULL,
     false},
    {"json", 'j', NULL, "print whole rows, one JSON object a line", NULL, false},
    {"ids", 0, NULL, "print ids only, one a line", NULL, false},
};
static const struct rv_cli_option show_options[] = {
    {"json", 'j', NULL, "print whole rows, one JSON object a line", NULL, false},
};
static const struct rv_cli_option put_options[] = {
    {"json", 'j', NULL, "print the rows as they are now, one JSON object a line, instead of their ids", NULL, false},
    {"every-tenant", 0, NULL, "the rows belong to no tenant: every tenant finds them", NULL, false},
};

static const struct rv_cli_verb list_verb = {
    .name = "entities list",
    .args = "[KIND]",
    .summary = "list rows of a kind, newest first",
    .text =
        "Without KIND, prints the kinds. With KIND, prints a table: id, name, user, tags and the time since the row\n"
        "was added. With --user (or REEVE_USER) rows of that user and rows without a user are visible.",
    .examples = "reeve entities list                       # the kinds\n"
                "reeve entities list moments --where moment_type=note --tag work\n"
                "reeve entities list resources --json > resources.ndjson",
    RV_CLI_OPTIONS(list_options),
    .groups = {&cli_of_stores},
    .excludes = "json ids",
    .max_words = 1,
    .takes = &cli_takes_kinds,
    .store = RV_CLI_READS_IF_ANY,
    .run = list,
};
static const struct rv_cli_verb show_verb = {
    .name = "entities show",
    .args = "[KIND] NAME",
    .summary = "show the rows of a name, or one by its id",
    .text = "NAME is a name in any spelling (case, blanks, - and _ do not matter), the id of a row, or the key of a\n"
            "message (session-ID-msg-N). A user's own rows come before shared ones. Empty columns are not shown.",
    .examples = "reeve entities show dentist\n"
                "reeve entities show moments 'ML Patterns' --json | jq .graph_edges",
    RV_CLI_OPTIONS(show_options),
    .groups = {&cli_of_stores},
    .min_words = 1,
    .max_words = 2,
    .takes = &cli_takes_kinds,
    .store = RV_CLI_READS,
    .run = show,
};
static const struct rv_cli_verb put_verb = {
    .name = "entities put",
    .args = "KIND [FILE]",
    .summary = "add or change rows, from lines of JSON",
    .text =
        "Reads one JSON object a line from FILE or standard input; its members are columns. A row whose id exists is\n"
        "changed: exactly the columns that are given are set. Without an id, it follows from the name (or uri, email)\n"
        "and the user. Prints the ids. A line that cannot be written is reported with its number, the others are\n"
        "written, and the exit status is 1.",
    .examples = "echo '{\"name\":\"Dentist\",\"tags\":[\"health\"]}' | reeve entities put ontologies\n"
                "reeve entities put resources pages.ndjson --user ada\n"
                "reeve entities list moments --json | jq -c '.rating = 5' | reeve entities put moments",
    RV_CLI_OPTIONS(put_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .min_words = 1,
    .max_words = 2,
    .takes = &cli_takes_kinds,
    .store = RV_CLI_MAKES,
    .run = put,
};
static const struct rv_cli_verb delete_verb = {
    .name = "entities delete",
    .args = "KIND NAME...",
    .summary = "delete rows by id or by name",
    .text =
        "NAME is the id of a row, or a name exactly as it is written in the row. A deleted row is not found any more;\n"
        "writing the same id again brings it back. `reeve gc` erases rows 30 days after their deletion.",
    .examples = "reeve entities delete moments 'ML Patterns' --user ada",
    .groups = {&cli_of_stores, &cli_of_commits},
    .min_words = 2,
    .max_words = RV_CLI_MAX_ARGS,
    .takes = &cli_takes_kinds,
    .store = RV_CLI_CHANGES,
    .run = delete_rows,
};

static const struct rv_cli_option history_options[] = {
    {"kind", 0, "KIND", "kind of the schema (default agent)", NULL, false},
    {"json", 'j', NULL, "print whole versions, one JSON object a line", NULL, false},
};
static const struct rv_cli_verb history_verb = {
    .name = "entities history",
    .args = "NAME",
    .summary = "list the versions of a schema, oldest first",
    .text =
        "A version is kept when an agent (or another schema) is added, changes its prompt or its document, is deleted\n"
        "or comes back. Versions of a deleted schema are listed, too.",
    .examples = "reeve entities history general\n"
                "reeve entities history general --json | jq -r 'select(.operation == \"update\") | .content'",
    RV_CLI_OPTIONS(history_options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .takes = &cli_takes_agents,
    .store = RV_CLI_READS,
    .run = history,
};
static const struct rv_cli_verb reindex_verb = {
    .name = "entities reindex",
    .args = "",
    .summary = "rebuild the index of names from the rows",
    .text =
        "The index is written with each row, so this is only needed when `reeve store check` reports keys that do not\n"
        "fit their rows. It takes one transaction.",
    .examples = "reeve entities reindex",
    .groups = {&cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .run = reindex,
};

static const struct rv_cli_verb *const subs[] = {&list_verb,    &show_verb,    &put_verb, &delete_verb,
                                                 &history_verb, &reindex_verb, NULL};

const struct rv_cli_verb verb_entities = {
    .name = "entities",
    .args = "VERB",
    .summary = "list, show, write and delete rows of knowledge",
    .text =
        "Entities are rows of kinds: users, ontologies, schemas, resources, moments, sessions, files, servers, tools,\n"
        "tenants, messages, feedback, scenarios and collections. `reeve docs reference entities` lists their columns.",
    .examples = "reeve entities list moments             # newest first\n"
                "reeve entities show dentist             # by name, whatever its kind",
    .subs = subs,
};
