/* reeve interrupts: the questions of runs, as a list and as statistics; and what changes them, apart from answers
 * (reeve resume): cancelling, sweeping, pruning. */
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/cli/show/table_internal.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#define PRUNE_BATCH 500 /* deleted in one transaction, so that others get their turn */

#define NOTE_CHARS 60 /* columns of a note; the rest is cut */

/* --- list --- */

static void write_note(const struct rv_interrupt_row *row, int64_t now_us, rv_buf *b)
{
    rv_str text = row->ended_us ? row->reason : row->text;

    if (!row->ended_us && row->expires_us) {
        bool is_due = row->expires_us <= now_us;
        rv_buf_puts(b, is_due ? "due for " : "expires in ");
        cli_write_age(b, is_due ? now_us - row->expires_us : row->expires_us - now_us);
        rv_buf_puts(b, text.len ? ": " : "");
    }
    cli_write_preview(text, 2 * NOTE_CHARS, b);
}

static void add_row(struct rv_cli_list *l, const struct rv_interrupt_row *row)
{
    rv_buf age = RV_BUF_INIT(64), note = RV_BUF_INIT(4096);

    cli_write_age(&age, l->now_us - row->created_us);
    write_note(row, l->now_us, &note);
    cli_table_add_text(l->table, row->id);
    cli_table_add_text(l->table, row->run);
    cli_table_add_text(l->table, row->kind);
    cli_table_add_text(l->table, row->stage);
    cli_table_add_text(l->table, rv_interrupt_status_text(row->status));
    cli_table_add(l->table, rv_buf_str(&age));
    cli_table_add_text(l->table, note.len > 0 ? rv_buf_cstr(&note) : NULL);
    rv_buf_fini(&age);
    rv_buf_fini(&note);
}

static int take_row(void *self, const struct rv_interrupt_row *row, rv_err **err)
{
    struct rv_cli_list *l = self;

    (void)err;
    if (!cli_list_takes(l))
        return 0;
    if (l->table)
        add_row(l, row);
    else
        rv_app_interrupt_write(row, l->json);
    return 0;
}

/* The run that --run names; `room` is for its id. */
static int read_run(struct rv_cli *cli, struct rv_interrupt_filter *f, struct rv_run_row *room, rv_err **err)
{
    const char *word = cli_value(cli, "run");

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

    f->session = cli_value(cli, "session");
    f->kind = cli_value(cli, "kind");
    for (size_t i = 0; rc == 0 && (word = cli_nth(cli, "status", i)); i++) {
        enum rv_interrupt_status status;
        rc = rv_interrupt_status_of(rv_str_of(word), &status, err);
        if (rc == 0)
            f->statuses |= 1u << status;
    }
    return rc;
}

static int read_list(struct rv_cli *cli, struct rv_cli_list *l, rv_err **err)
{
    struct rv_interrupt_filter f = {.limit = 0};
    struct rv_run_row room = {0};

    int rc = read_filter(cli, &f, err);
    f.open_only = f.statuses == 0;
    f.limit = l->read;
    if (rc == 0)
        rc = read_run(cli, &f, &room, err);
    if (rc == 0 && cli->store)
        rc = rv_store_list_interrupts(cli->store, &cli->app.scope, &f, take_row, l, err);
    rv_run_row_fini(&room);
    return rc;
}

static int list(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {
        {"INTERRUPT", 0, false}, {"RUN", 0, false}, {"KIND", 0, false},          {"STAGE", 24, false},
        {"STATUS", 0, false},    {"AGE", 0, false}, {"NOTE", NOTE_CHARS, false},
    };
    struct rv_cli_list l = {.what = "interrupts", .is_cut = true};
    int rc = cli_list_begin(cli, &l, columns, RV_COUNT(columns), err);

    if (rc == 0)
        rc = read_list(cli, &l, err);
    return cli_list_end(cli, &l, rc, err);
}

/* --- stats --- */

static int take_count(void *self, const struct rv_interrupt_count *c, rv_err **err)
{
    struct rv_cli_list *l = self;
    rv_buf age = RV_BUF_INIT(64), mean = RV_BUF_INIT(64);

    (void)err;
    l->n++;
    if (!l->table) {
        rv_app_interrupt_count_write(c, l->json);
        return 0;
    }
    cli_write_age(&age, l->now_us - c->oldest_us);
    if (c->status == RV_INTERRUPT_STATUS_RESOLVED)
        cli_write_age(&mean, c->answer_sum_us / c->n);
    cli_table_add_text(l->table, c->kind);
    cli_table_add_text(l->table, rv_interrupt_status_text(c->status));
    cli_table_add_int(l->table, c->n);
    cli_table_add_int(l->table, c->n_open);
    cli_table_add(l->table, rv_buf_str(&age));
    cli_table_add_text(l->table, mean.len ? rv_buf_cstr(&mean) : NULL);
    rv_buf_fini(&age);
    rv_buf_fini(&mean);
    return 0;
}

static int stats(struct rv_cli *cli, rv_err **err)
{
    static const struct rv_cli_column columns[] = {{"KIND", 0, false}, {"STATUS", 0, false}, {"COUNT", 0, true},
                                                   {"OPEN", 0, true},  {"OLDEST", 0, false}, {"MEAN WAIT", 0, false}};
    struct rv_cli_list l = {.what = "interrupts"};
    struct rv_interrupt_filter f = {.limit = 0};
    struct rv_run_row room = {0};

    int rc = cli_list_begin(cli, &l, columns, RV_COUNT(columns), err);
    if (rc == 0)
        rc = read_filter(cli, &f, err);
    if (rc == 0)
        rc = read_run(cli, &f, &room, err);
    if (rc == 0 && cli->store)
        rc = rv_store_count_interrupts(cli->store, &cli->app.scope, &f, take_count, &l, err);
    rv_run_row_fini(&room);
    return cli_list_end(cli, &l, rc, err);
}

/* --- the table --- */

#define KINDS    "clarification confirmation agent_review checkpoint resource_exhausted timeout system_error"
#define STATUSES "pending resolved expired cancelled"

static const struct rv_cli_option list_options[] = {
    {"session", 0, "ID", "only questions of runs of the session", NULL, false},
    {"kind", 'k', "KIND", "only questions of the kind", KINDS, false},
    {"status", 0, "STATUS",
     "only questions with this status; may be given more than once (default: those that are open)", STATUSES, true},
    {"run", 0, "RUN", "only questions of the run", NULL, false},
    {"limit", 'l', "N", "number of questions to list, oldest first; 0: all (default 50; all with --json)", NULL, false},
    {"json", 'j', NULL, "print a JSON array", NULL, false},
};
static const struct rv_cli_option stats_options[] = {
    {"session", 0, "ID", "only questions of runs of the session", NULL, false},
    {"kind", 'k', "KIND", "only questions of the kind", KINDS, false},
    {"run", 0, "RUN", "only questions of the run", NULL, false},
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
    .groups = {&cli_of_stores},
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
    .groups = {&cli_of_stores},
    .store = RV_CLI_READS_IF_ANY,
    .run = stats,
};

/* --- cancel --- */

/* A question with a time-out that is due takes that. Any other may be cancelled, also when it is too late to answer. */
static int find_question(struct rv_cli *cli, const struct rv_run_row *row, struct rv_app_question *q, rv_err **err)
{
    rv_str wanted = cli->n_words > 1 ? rv_str_of(cli->words[1]) : (rv_str){NULL, 0};

    int rc = rv_app_find_question(cli->store, &cli->app.scope, row, wanted, q, err);
    if (rc == RV_E_TIMEOUT && !rv_interrupt_is_ask(q->data)) {
        rv_err_free(rv_err_steal(err));
        return 0;
    }
    if (rc == RV_E_TIMEOUT)
        rv_err_set_hint(err, "`reeve resume %s` goes on by its time-out", row->id);
    else if (rc == RV_E_INVALID && q->n > 1)
        rv_err_set_hint(err, "name one: `reeve interrupts list --run %s` lists them", row->id);
    return rc;
}

static int cancel_question(struct rv_cli *cli, const struct rv_run_row *row, const struct rv_response *response,
                           rv_err **err)
{
    bool is_new = false;

    if (!cli_flag(cli, "queue"))
        return cli_continue(cli, row->id, RV_APP_ANSWER, response, err);
    int rc = rv_app_enqueue(cli->store, &cli->app.scope, row->id, response, &is_new, err);
    if (rc == 0)
        cli_say(is_new ? "run %s: queued\n" : "run %s: an answer to this question is queued already\n", row->id);
    return rc;
}

static int cancel(struct rv_cli *cli, rv_err **err)
{
    const char *reason = cli_value(cli, "reason");
    struct rv_response response = {.cancelled = true};
    struct rv_app_question q = {.n = 0};
    struct rv_run_row row = {0};

    if (reason)
        response.text = rv_str_of(reason);
    int rc = rv_answer_check_cancel(&response, err);
    if (rc == 0)
        rc = rv_app_find_run(cli->store, &cli->app.scope, cli->words[0], &row, err);
    if (rc == 0) {
        rc = find_question(cli, &row, &q, err);
        response.interrupt_id = rv_str_of(q.id);
        if (rc == 0)
            rc = cancel_question(cli, &row, &response, err);
        rv_app_question_fini(&q);
    }
    rv_run_row_fini(&row);
    return rc;
}

/* --- sweep --- */

struct swept {
    int64_t n_expired;
    size_t n_runs, n_failed;
};

/* One that cannot go on does not keep the others from it. */
static void go_on(struct rv_cli *cli, const char *run, struct swept *s)
{
    bool is_new = false;
    rv_err *err = NULL;

    int rc = cli_flag(cli, "queue") ? rv_app_enqueue(cli->store, &cli->app.scope, run, NULL, &is_new, &err)
                                    : cli_continue(cli, run, RV_APP_ANSWER, NULL, &err);
    s->n_runs += rc >= 0;
    s->n_failed += rc < 0;
    if (rc < 0)
        RV_IGNORE(cli_report(cli, err), "the number of failures is the status");
}

static int sweep(struct rv_cli *cli, rv_err **err)
{
    int64_t now_us = rv_app_now_us();
    struct rv_app_due due = {.n = 0};
    struct swept s = {.n_expired = 0};

    int rc = rv_store_expire_interrupts(cli->store, cli->app.scope.tenant ? cli->app.scope.tenant : RV_STORE_TENANT,
                                        now_us, &s.n_expired, err);
    if (rc == 0)
        rc = rv_app_find_due(cli->store, &cli->app.scope, NULL, now_us, &due, err);
    for (size_t i = 0; rc == 0 && i < due.n; i++)
        go_on(cli, due.runs[i], &s);
    rv_app_due_fini(&due);
    if (rc < 0)
        return rc;
    cli_say("%lld interrupt%s expired; %zu run%s %s by a time-out", (long long)s.n_expired, s.n_expired == 1 ? "" : "s",
            s.n_runs, s.n_runs == 1 ? "" : "s", cli_flag(cli, "queue") ? "queued to go on" : "went on");
    cli_say(s.n_failed ? ", %zu could not\n" : "\n", s.n_failed);
    return s.n_failed ? RV_EXIT_FAILED : RV_EXIT_COMPLETED;
}

/* --- prune --- */

static int prune(struct rv_cli *cli, rv_err **err)
{
    const char *tenant = cli->app.scope.tenant ? cli->app.scope.tenant : RV_STORE_TENANT;
    rv_buf said = RV_BUF_INIT(200);
    int64_t before_us = 0, n = PRUNE_BATCH, all = 0;
    int rc = cli_read_age(cli, &before_us, err);

    if (rc != 0)
        return rc;
    while (rc == 0 && n == PRUNE_BATCH) {
        rc = rv_store_prune_interrupts(cli->store, tenant, before_us, PRUNE_BATCH, &n, err);
        all += rc == 0 ? n : 0;
    }
    rv_buf_printf(&said, "%lld interrupt%s deleted\n", (long long)all, all == 1 ? "" : "s");
    return cli_print(rc, &said, err);
}

/* --- the table --- */

static const struct rv_cli_option cancel_options[] = {
    {"reason", 0, "TEXT", "why no answer is wanted; kept with the run, and told to its error route or model", NULL,
     false},
    {"queue", 0, NULL, "queue the cancellation for a worker instead of continuing here", NULL, false},
};
static const struct rv_cli_option sweep_options[] = {
    {"queue", 0, NULL, "queue the runs for workers instead of continuing them here", NULL, false},
};
static const struct rv_cli_option prune_options[] = {
    {"older-than", 0, "AGE", "only questions that ended longer ago than this: 90s, 15min, 12h, 30d, 4w", NULL, false},
};

static const struct rv_cli_verb cancel_verb = {
    .name = "interrupts cancel",
    .args = "RUN [INTERRUPT]",
    .summary = "cancel one question of a run; the run goes on",
    .text =
        "INTERRUPT is the id of the question; a run that waits with only one needs none. The stage that waits fails\n"
        "with QuestionCancelledError: its error_next catches that, or its branch fails and the join decides. A\n"
        "question of a stage (`ask`) takes its `timeout` of on_answer, and a tool call whose stage has on_denied:\n"
        "tell_model is refused with the reason. `reeve runs cancel` ends the whole run instead.",
    .examples = "reeve run pipelines/triage.yaml --script pipelines/scripts/triage.yaml   # exits with 3\n"
                "reeve interrupts cancel last --reason \"the customer has left\"",
    RV_CLI_OPTIONS(cancel_options),
    .groups = {&cli_of_work, &cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .min_words = 1,
    .max_words = 2,
    .takes = &cli_takes_runs,
    .outlives_reader = true,
    .run = cancel,
};
static const struct rv_cli_verb sweep_verb = {
    .name = "interrupts sweep",
    .args = "",
    .summary = "mark questions that no one answered in time",
    .text =
        "Marks the questions that are due as expired and counts them. Runs whose question has a time-out (`ask` with\n"
        "expires_seconds) go on by that, here or, with --queue, at a worker. Others still wait: it is too late to\n"
        "answer them, but they can be cancelled. Workers do the same every few seconds.",
    .examples = "reeve interrupts sweep",
    RV_CLI_OPTIONS(sweep_options),
    .groups = {&cli_of_work, &cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .outlives_reader = true,
    .run = sweep,
};
static const struct rv_cli_verb prune_verb = {
    .name = "interrupts prune",
    .args = "",
    .summary = "delete the rows of questions that ended long ago",
    .text = "Deletes the rows of resolved, expired and cancelled questions, in small batches. Their runs and journals "
            "stay\n"
            "as they are.",
    .examples = "reeve interrupts prune --older-than 30d",
    RV_CLI_OPTIONS(prune_options),
    .groups = {&cli_of_stores, &cli_of_commits},
    .store = RV_CLI_CHANGES,
    .run = prune,
};

static const struct rv_cli_verb *const subs[] = {&list_verb, &stats_verb, &cancel_verb, &sweep_verb, &prune_verb, NULL};

const struct rv_cli_verb verb_interrupts = {
    .name = "interrupts",
    .args = "VERB",
    .summary = "list, count, cancel and expire questions of runs",
    .text =
        "A run that needs a person waits with one question or several. `reeve resume` answers a question; these verbs\n"
        "list the questions of many runs, and cancel one while its run goes on. With --user (or REEVE_USER) only the\n"
        "questions of that user's runs are visible.",
    .examples = "reeve interrupts                        # those that runs wait with\n"
                "reeve interrupts stats                  # how many, of which kind and status\n"
                "reeve interrupts sweep                  # those that no one answered in time",
    .subs = subs,
};
