/* reeve interrupts: the questions of runs, open and over, as a list and as statistics. */
#include "coreengine/app/rows.h"
#include "coreengine/cli/show/table.h"
#include "coreengine/cli/verbs/verbs.h"

#define SHOWN_BY_DEFAULT 50
#define NOTE_CHARS       60

/* --- list --- */

struct listing {
    rv_cli_table *table; /* NULL: for programs */
    rv_jw *json;
    int64_t n, limit, now_us;
    bool more; /* than the limit */
};

static void write_note(const struct rv_interrupt_row *row, int64_t now_us, rv_buf *b)
{
    rv_str text = row->ended_us ? row->reason : row->text;

    if (!row->ended_us && row->expires_us) {
        bool is_due = row->expires_us <= now_us;
        rv_buf_puts(b, is_due ? "due since " : "until ");
        rv_cli_write_age(b, is_due ? now_us - row->expires_us : row->expires_us - now_us);
        rv_buf_puts(b, text.len ? ": " : "");
    }
    rv_cli_write_preview(text, 2 * NOTE_CHARS, b);
}

static void add_row(struct listing *l, const struct rv_interrupt_row *row)
{
    rv_buf age = RV_BUF_INIT(64), note = RV_BUF_INIT(4096);

    rv_cli_write_age(&age, l->now_us - row->created_us);
    write_note(row, l->now_us, &note);
    rv_cli_table_add_text(l->table, row->id);
    rv_cli_table_add_text(l->table, row->run);
    rv_cli_table_add_text(l->table, row->kind);
    rv_cli_table_add_text(l->table, row->stage);
    rv_cli_table_add_text(l->table, rv_interrupt_status_text(row->status));
    rv_cli_table_add(l->table, rv_buf_str(&age));
    rv_cli_table_add_text(l->table, note.len > 0 ? rv_buf_cstr(&note) : NULL);
    rv_buf_fini(&age);
    rv_buf_fini(&note);
}

static int take_row(void *self, const struct rv_interrupt_row *row, rv_err **err)
{
    struct listing *l = self;

    (void)err;
    l->more = l->limit && l->n == l->limit;
    if (l->more)
        return 0;
    l->n++;
    if (l->table)
        add_row(l, row);
    else
        rv_app_interrupt_json(row, l->json);
    return 0;
}

/* The run that is named, or a prefix of it; `room` is for its id. */
static int read_run(struct rv_cli *cli, struct rv_interrupt_filter *f, struct rv_run_row *room, rv_err **err)
{
    const char *word = rv_cli_value(cli, "run");

    if (!word || !cli->store)
        return 0;
    int rc = rv_app_find_run(cli->store, &cli->app.scope, word, room, err);
    f->run = rc == 0 ? room->id : NULL;
    return rc;
}

static int read_filter(struct rv_cli *cli, struct rv_interrupt_filter *f, rv_err **err)
{
    const char *word;
    int rc = 0;

    f->session = rv_cli_value(cli, "session");
    f->kind = rv_cli_value(cli, "kind");
    for (size_t i = 0; rc == 0 && (word = rv_cli_nth(cli, "status", i)); i++) {
        enum rv_interrupt_status status;
        rc = rv_interrupt_status_of(rv_str_of(word), &status, err);
        if (rc == 0)
            f->statuses |= 1u << status;
    }
    return rc;
}

static int read_list(struct rv_cli *cli, struct listing *l, rv_err **err)
{
    struct rv_interrupt_filter f = {.limit = 0};
    struct rv_run_row room = {0};

    int rc = read_filter(cli, &f, err);
    f.open_only = f.statuses == 0;
    if (rc == 0)
        rc = rv_cli_int(cli, "limit", 0, 1000000, &l->limit, err);
    if (rc == 0)
        rc = read_run(cli, &f, &room, err);
    f.limit = l->limit ? l->limit + 1 : 0; /* one more tells whether there are more */
    if (rc == 0 && cli->store)
        rc = rv_store_list_interrupts(cli->store, &cli->app.scope, &f, take_row, l, err);
    rv_run_row_fini(&room);
    return rc;
}

/* A JSON array, or a table; takes it. */
static int write(rv_cli_table *table, rv_jw *w, rv_buf *text, bool color, int rc, rv_err **err)
{
    if (!table) {
        rv_jw_arr_end(w);
        rv_buf_putc(text, '\n');
    } else if (rc == 0) {
        rc = rv_cli_table_write(table, color, text, err);
    }
    rv_cli_table_free(table);
    return rv_cli_print(rc, text, err);
}

static int begin(struct rv_cli *cli, const struct rv_cli_column *columns, size_t n, rv_cli_table **table, rv_jw *w,
                 rv_err **err)
{
    *table = NULL;
    if (rv_cli_flag(cli, "json"))
        rv_jw_arr(w);
    else if (!(*table = rv_cli_table_new(columns, n)))
        return RV_FAIL(err, RV_E_NOMEM, "list interrupts");
    return 0;
}

static int list(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"INTERRUPT", 0, false}, {"RUN", 0, false}, {"KIND", 0, false},          {"STAGE", 24, false},
        {"STATUS", 0, false},    {"AGE", 0, false}, {"NOTE", NOTE_CHARS, false},
    };
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);
    struct listing l = {
        .json = &w, .limit = rv_cli_flag(cli, "json") ? 0 : SHOWN_BY_DEFAULT, .now_us = rv_app_now_us()};

    int rc = begin(cli, columns, RV_COUNT(columns), &l.table, &w, err);
    if (rc < 0)
        return rc;
    bool is_table = l.table != NULL;
    rc = write(l.table, &w, &text, cli->out_color, read_list(cli, &l, err), err);
    if (rc == 0 && l.n == 0 && is_table)
        rv_cli_say("no interrupts found\n");
    if (rc == 0 && l.more && !rv_cli_value(cli, "limit"))
        rv_cli_say("there are more; --limit 0 shows all\n");
    return rc;
}

/* --- stats --- */

static int take_count(void *self, const struct rv_interrupt_count *c, rv_err **err)
{
    struct listing *l = self;
    rv_buf age = RV_BUF_INIT(64), mean = RV_BUF_INIT(64);

    (void)err;
    l->n++;
    if (!l->table) {
        rv_app_interrupt_count_json(c, l->json);
        return 0;
    }
    rv_cli_write_age(&age, l->now_us - c->oldest_us);
    if (c->status == RV_INTERRUPT_STATUS_RESOLVED)
        rv_cli_write_age(&mean, c->answer_sum_us / c->n);
    rv_cli_table_add_text(l->table, c->kind);
    rv_cli_table_add_text(l->table, rv_interrupt_status_text(c->status));
    rv_cli_table_add_int(l->table, c->n);
    rv_cli_table_add_int(l->table, c->n_open);
    rv_cli_table_add(l->table, rv_buf_str(&age));
    rv_cli_table_add_text(l->table, mean.len ? rv_buf_cstr(&mean) : NULL);
    rv_buf_fini(&age);
    rv_buf_fini(&mean);
    return 0;
}

static int stats(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {{"KIND", 0, false}, {"STATUS", 0, false}, {"COUNT", 0, true},
                                                   {"OPEN", 0, true},  {"OLDEST", 0, false}, {"MEAN WAIT", 0, false}};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);
    struct listing l = {.json = &w, .now_us = rv_app_now_us()};
    struct rv_interrupt_filter f = {.limit = 0};
    struct rv_run_row room = {0};

    int rc = begin(cli, columns, RV_COUNT(columns), &l.table, &w, err);
    if (rc < 0)
        return rc;
    rc = read_filter(cli, &f, err);
    if (rc == 0)
        rc = read_run(cli, &f, &room, err);
    if (rc == 0 && cli->store)
        rc = rv_store_count_interrupts(cli->store, &cli->app.scope, &f, take_count, &l, err);
    rv_run_row_fini(&room);
    bool is_table = l.table != NULL;
    rc = write(l.table, &w, &text, cli->out_color, rc, err);
    if (rc == 0 && l.n == 0 && is_table)
        rv_cli_say("no interrupts found\n");
    return rc;
}

/* --- the table --- */

#define KINDS    "clarification confirmation agent_review checkpoint resource_exhausted timeout system_error"
#define STATUSES "pending resolved expired cancelled"

static const struct rv_cli_option list_options[] = {
    {"session", 0, "ID", "only questions of runs of this session", NULL, false},
    {"kind", 'k', "KIND", "only questions of this kind", KINDS, false},
    {"status", 0, "STATUS",
     "only questions with this status; may be given more than once (default: those that are open)", STATUSES, true},
    {"run", 0, "RUN", "only questions of this run", NULL, false},
    {"limit", 'l', "N", "number of questions to list, oldest first; 0: all (default 50; all with --json)", NULL, false},
    {"json", 'j', NULL, "print a JSON array", NULL, false},
};
static const struct rv_cli_option stats_options[] = {
    {"session", 0, "ID", "only questions of runs of this session", NULL, false},
    {"kind", 'k', "KIND", "only questions of this kind", KINDS, false},
    {"run", 0, "RUN", "only questions of this run", NULL, false},
    {"json", 'j', NULL, "print a JSON array", NULL, false},
};

static const struct rv_cli_verb list_verb = {
    .name = "interrupts list",
    .args = "",
    .summary = "list questions of runs, oldest first",
    .text =
        "Lists the questions that runs wait with. --status lists others: a question is pending until it is resolved\n"
        "(answered), expired (`reeve interrupts sweep` and workers mark those that are due) or cancelled. A question\n"
        "that is over has a row until its run is deleted or `reeve interrupts prune` deletes the row.",
    .examples = "reeve interrupts\n"
                "reeve interrupts list --session chat-7 --kind confirmation\n"
                "reeve interrupts list --status expired --status cancelled --json",
    RV_CLI_OPTIONS(list_options),
    .groups = {&rv_cli_of_stores},
    .store = RV_CLI_READS_IF_ANY,
    .run = list,
};
static const struct rv_cli_verb stats_verb = {
    .name = "interrupts stats",
    .args = "",
    .summary = "count questions of runs by kind and status",
    .text = "For each kind and status: the number of questions, how many of them runs still wait with, the age of the\n"
            "oldest one, and the mean time from a question to its answer.",
    .examples = "reeve interrupts stats\n"
                "reeve interrupts stats --session chat-7 --json",
    RV_CLI_OPTIONS(stats_options),
    .groups = {&rv_cli_of_stores},
    .store = RV_CLI_READS_IF_ANY,
    .run = stats,
};

static const struct rv_cli_verb *const subs[] = {
    &list_verb, &stats_verb, &rv_verb_interrupts_cancel, &rv_verb_interrupts_sweep, &rv_verb_interrupts_prune, NULL};

const struct rv_cli_verb rv_verb_interrupts = {
    .name = "interrupts",
    .args = "VERB",
    .summary = "list, count, cancel and expire questions of runs",
    .text =
        "A run that needs a person waits with one question or several. `reeve resume` answers a question; these verbs\n"
        "list the questions of many runs, and cancel one while its run goes on. With --user (or REEVE_USER) only the\n"
        "questions of that user's runs are visible.",
    .examples = "reeve interrupts                        # those that runs wait with\n"
                "reeve interrupts cancel RUN --reason \"asked by mistake\"\n"
                "reeve interrupts sweep                  # those that no one answered in time",
    .subs = subs,
};
