/* reeve store: a whole store checked, copied, brought forward, backed up. */
#include "coreengine/app/app.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>
#include <time.h>

#define SHOWN_HASH    16  /* characters; --json has all */
#define PROGRESS_SECS 0.1 /* between two drawings: as often as an eye follows */

/* Nothing was done, or what was done is undone or refused by name: the command line, or what it names, is at fault. */
static int fail(const struct rv_cli *cli, rv_err **err)
{
    bool is_cancelled = rv_err_is(*err, RV_E_CANCELLED);

    int status = cli_report(cli, rv_err_steal(err));
    return is_cancelled ? RV_EXIT_CANCELLED : status == RV_EXIT_SCARCE ? status : RV_EXIT_USAGE;
}

static int open_named(struct rv_cli *cli, enum rv_app_store_use use, rv_err **err)
{
    if (cli->n_words > 0)
        cli->app.store = cli->words[0];
    return rv_app_store_open(&cli->app, use, &cli->store, err);
}

/* --- check --- */

static int print_whole(const struct rv_cli *cli, const struct rv_store_stats *s, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(16384);

    if (cli_flag(cli, "json")) {
        rv_jw w = rv_jw_on(&text);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "store", rv_store_url(cli->store));
        rv_jw_kv_int(&w, "schema", s->schema);
        rv_jw_kv_int(&w, "runs", s->runs);
        rv_jw_kv_int(&w, "records", s->records);
        rv_jw_kv_int(&w, "values", s->blobs);
        rv_jw_kv_int(&w, "sessions", s->sessions);
        rv_jw_kv_int(&w, "messages", s->messages);
        rv_jw_kv_int(&w, "tasks", s->tasks);
        rv_jw_kv_int(&w, "bytes", s->bytes);
        rv_jw_obj_end(&w);
        rv_buf_putc(&text, '\n');
    } else {
        rv_buf_printf(&text, "%s is whole: %lld run%s, %lld record%s, %lld value%s, ", rv_store_url(cli->store),
                      (long long)s->runs, cli_plural(s->runs), (long long)s->records, cli_plural(s->records),
                      (long long)s->blobs, cli_plural(s->blobs));
        cli_write_bytes(&text, s->bytes);
        rv_buf_printf(&text, ", schema %lld\n", (long long)s->schema);
    }
    return cli_print(0, &text, err);
}

/* --json of `reeve gc --check` means nothing, as ever. */
int cli_check_store(struct rv_cli *cli, rv_err **err)
{
    struct rv_store_stats s = {0};

    int rc = rv_store_check(cli->store, err);
    if (rc == 0)
        rc = rv_store_read_stats(cli->store, &s, err);
    if (rc < 0) {
        int status = cli_report(cli, rv_err_steal(err));
        return status == RV_EXIT_SCARCE ? status : RV_EXIT_FAILED; /* a damaged store, whatever its code is */
    }
    return print_whole(cli, &s, err);
}

static int check(struct rv_cli *cli, rv_err **err)
{
    int rc = open_named(cli, RV_APP_STORE_READ, err);

    return rc < 0 ? fail(cli, err) : cli_check_store(cli, err);
}

/* --- copy --- */

struct shown {
    bool is_live;
    struct timespec last;
};

static int show_progress(void *self, const struct rv_store_copy_progress *p, rv_err **err)
{
    static const char *const phases[] = {[RV_STORE_COPY_COMPARES] = "comparing",
                                         [RV_STORE_COPY_WRITES] = "copying",
                                         [RV_STORE_COPY_VERIFIES] = "verifying"};
    RV_EACH_HAS_ROW(phases, RV_N_STORE_COPY_PHASES);
    struct shown *s = self;
    struct timespec now;
    rv_buf line = RV_BUF_INIT(1000);

    (void)err;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!s->is_live ||
        (double)(now.tv_sec - s->last.tv_sec) + (double)(now.tv_nsec - s->last.tv_nsec) / 1e9 < PROGRESS_SECS)
        return 0;
    s->last = now;
    rv_buf_printf(&line, "\r\033[K%s %s: ", phases[p->phase], p->table);
    rv_app_write_count(&line, p->n_rows);
    rv_buf_puts(&line, " rows, ");
    cli_write_bytes(&line, p->bytes);
    cli_err(rv_buf_str(&line));
    rv_buf_fini(&line);
    return 0;
}

static int64_t count(const struct rv_store_copied *c, bool copied)
{
    int64_t n = 0;

    for (size_t i = 0; i < c->n_tables; i++)
        n += copied ? c->tables[i].n_copied : c->tables[i].n_rows;
    return n;
}

static int print_copied_json(const struct rv_app_copied *c, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&text);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "from", c->from);
    rv_jw_kv_text(&w, "to", c->to);
    rv_jw_kv_bool(&w, "resumed", c->rows.is_resumed);
    rv_jw_kv_bool(&w, "restarted", c->rows.has_restarted);
    rv_jw_kv_int(&w, "rows", count(&c->rows, false));
    rv_jw_kv_int(&w, "copied", count(&c->rows, true));
    rv_jw_kv_text(&w, "sha256", c->rows.hash);
    rv_jw_key(&w, "tables");
    rv_jw_arr(&w);
    for (size_t i = 0; i < c->rows.n_tables; i++) {
        const struct rv_store_table *t = &c->rows.tables[i];
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "name", t->name);
        rv_jw_kv_int(&w, "rows", t->n_rows);
        rv_jw_kv_int(&w, "copied", t->n_copied);
        rv_jw_kv_int(&w, "bytes", t->bytes);
        rv_jw_kv_text(&w, "sha256", t->hash);
        rv_jw_obj_end(&w);
    }
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
    rv_buf_putc(&text, '\n');
    return cli_print(0, &text, err);
}

static int write_tables(const struct rv_store_copied *c, bool bold, rv_buf *b, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"table", 0, false}, {"rows", 0, true}, {"bytes", 0, true}, {"sha256", 0, false}};
    rv_cli_table *t = cli_table_new(columns, RV_COUNT(columns));
    int rc;

    if (!t)
        return RV_FAIL(err, RV_E_NOMEM, "print a table");
    for (size_t i = 0; i < c->n_tables; i++) {
        if (c->tables[i].n_rows == 0)
            continue;
        cli_table_add_text(t, c->tables[i].name);
        cli_table_add_int(t, c->tables[i].n_rows);
        cli_table_add_int(t, c->tables[i].bytes);
        cli_table_add(t, (rv_str){c->tables[i].hash, SHOWN_HASH});
    }
    rc = cli_table_write(t, bold, b, err);
    cli_table_free(t);
    return rc;
}

static int print_copied(const struct rv_cli *cli, const struct rv_app_copied *c, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    int rc = write_tables(&c->rows, cli->out_color, &text, err);

    if (c->rows.is_resumed) {
        rv_buf_puts(&text, "continued a copy that was not finished: ");
        rv_app_write_count(&text, count(&c->rows, true));
        rv_buf_puts(&text, " rows were missing\n");
    }
    if (c->rows.has_restarted)
        rv_buf_printf(&text, "%s had changed since the unfinished copy began: copied everything again\n", c->from);
    rv_buf_printf(&text, "%s is copied to %s and verified: ", c->from, c->to);
    rv_app_write_count(&text, count(&c->rows, false));
    rv_buf_printf(&text, " rows, sha256 %.*s\n", SHOWN_HASH, c->rows.hash);
    return cli_print(rc, &text, err);
}

static int copy(struct rv_cli *cli, rv_err **err)
{
    struct shown shown = {.is_live = cli->err_tty && !cli_flag(cli, "quiet")};
    const struct rv_app_copy_watch watch = {.self = &shown, .on_progress = show_progress};
    struct rv_app_copied done;

    int rc = rv_app_copy_store(&cli->app, cli->words[0], cli->words[1], &watch, &done, err);
    if (shown.last.tv_sec > 0)
        cli_err(RV_STR_LIT("\r\033[K"));
    if (rc < 0)
        return fail(cli, err);
    rc = cli_flag(cli, "json") ? print_copied_json(&done, err) : print_copied(cli, &done, err);
    rv_app_copied_fini(&done);
    return rc;
}

/* --- migrate --- */

static int print_migrated(const struct rv_cli *cli, const struct rv_app_migrated *m, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(16384);
    long long has = (long long)m->was.has, current = (long long)m->was.current;
    bool is_dry = cli_flag(cli, "dry-run");

    if (cli_flag(cli, "json")) {
        rv_jw w = rv_jw_on(&text);
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "store", m->url);
        rv_jw_kv_int(&w, "from", m->was.has);
        rv_jw_kv_int(&w, "to", m->was.current);
        rv_jw_kv_bool(&w, "dry_run", is_dry);
        rv_jw_obj_end(&w);
        rv_buf_putc(&text, '\n');
    } else if (has == current) {
        rv_buf_printf(&text, "%s has schema version %lld: nothing to do\n", m->url, has);
    } else {
        rv_buf_printf(&text, "%s %s migrated from schema version %lld to %lld\n", m->url, is_dry ? "would be" : "is",
                      has, current);
    }
    return cli_print(0, &text, err);
}

static int migrate(struct rv_cli *cli, rv_err **err)
{
    struct rv_app_migrated done;

    if (cli->n_words > 0)
        cli->app.store = cli->words[0];
    int rc = rv_app_migrate_store(&cli->app, cli_flag(cli, "dry-run"), &done, err);
    if (rc < 0)
        return fail(cli, err);
    rc = print_migrated(cli, &done, err);
    rv_app_migrated_fini(&done);
    return rc;
}

/* --- backup --- */

int cli_back_up(struct rv_cli *cli, const char *path, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(16384);

    int rc = rv_store_backup(cli->store, path, err);
    rv_buf_printf(&text, "%s is copied to %s\n", rv_store_url(cli->store), path);
    return cli_print(rc, &text, err);
}

static int backup(struct rv_cli *cli, rv_err **err)
{
    int rc = open_named(cli, RV_APP_STORE_READ, err);

    if (rc == 0)
        rc = cli_back_up(cli, cli->words[1], err);
    return rc < 0 ? fail(cli, err) : rc;
}

/* --- the verbs --- */

static const struct rv_cli_option json_options[] = {
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
};
static const struct rv_cli_option copy_options[] = {
    {"json", 'j', NULL, "print the result as one JSON object, with the SHA-256 of each table", NULL, false},
    {"quiet", 'q', NULL, "do not show progress", NULL, false},
};
static const struct rv_cli_option migrate_options[] = {
    {"dry-run", 'n', NULL, "only print the versions", NULL, false},
    {"json", 'j', NULL, "print the result as one JSON object", NULL, false},
};

static const struct rv_cli_verb check_verb = {
    .name = "store check",
    .args = "[URL]",
    .summary = "check the integrity of a store",
    .text =
        "Reads the whole store (default: REEVE_STORE, else ~/.local/state/reeve/reeve.db) and lists damaged pages,\n"
        "gaps in journals and values that do not match their hash. Other processes can use the store meanwhile. Exits\n"
        "with 1 if it is damaged, and with 2 if it cannot be opened, which can be damage, too.",
    .examples = "reeve store check\n"
                "reeve store check sqlite:runs.db",
    RV_CLI_OPTIONS(json_options),
    .max_words = 1,
    .run = check,
};
static const struct rv_cli_verb copy_verb = {
    .name = "store copy",
    .args = "FROM TO",
    .summary = "copy a store into another file or database",
    .text =
        "Copies every run, session, agent and task, between files and PostgreSQL in any direction. FROM is not\n"
        "changed. TO is created; if it exists it must be empty or contain an unfinished copy of FROM. If the command\n"
        "is killed, repeat it: it continues. Until the copy is complete no other command can use TO. At the end the\n"
        "command reads TO and compares the rows of each table by their SHA-256. No run may be in progress and no\n"
        "worker may be active, since they would continue in both stores.",
    .examples = "reeve store copy sqlite:runs.db postgres:///reeve\n"
                "reeve store copy postgres:///reeve copy.db --json | jq -r .sha256",
    RV_CLI_OPTIONS(copy_options),
    .groups = {&cli_of_commits},
    .min_words = 2,
    .max_words = 2,
    .run = copy,
};
static const struct rv_cli_verb migrate_verb = {
    .name = "store migrate",
    .args = "[URL]",
    .summary = "upgrade the tables of a store to the version of this program",
    .text =
        "Upgrades in one transaction. Every command that opens an older store does the same; with this one you choose\n"
        "when. Older programs cannot open the store afterwards.",
    .examples = "reeve store migrate --dry-run\n"
                "reeve store migrate sqlite:runs.db",
    RV_CLI_OPTIONS(migrate_options),
    .groups = {&cli_of_commits},
    .max_words = 1,
    .run = migrate,
};
static const struct rv_cli_verb backup_verb = {
    .name = "store backup",
    .args = "URL FILE",
    .summary = "write a consistent copy of a store to a new file",
    .text =
        "The copy is a SQLite file, also of a store in PostgreSQL. Other processes can use the store meanwhile. FILE\n"
        "must not exist; if the command fails, it is deleted.",
    .examples = "reeve store backup sqlite:runs.db backup.db\n"
                "reeve store backup postgres:///reeve database.db",
    .min_words = 2,
    .max_words = 2,
    .run = backup,
};

static const struct rv_cli_verb *const subs[] = {&check_verb, &copy_verb, &migrate_verb, &backup_verb, NULL};

const struct rv_cli_verb verb_store = {
    .name = "store",
    .args = "VERB",
    .summary = "check, copy, upgrade and back up a store",
    .text = "A store is named by a path, sqlite:PATH or postgres://... All tenants and users are concerned.",
    .examples = "reeve store check                                  # is it whole?\n"
                "reeve store copy sqlite:runs.db moved.db           # every row, compared at the end\n"
                "reeve store backup sqlite:runs.db today.db         # while others use it",
    .subs = subs,
};
