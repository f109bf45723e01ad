/* reeve interrupts cancel, sweep and prune: what changes questions of runs, apart from answers (reeve resume). */
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/work.h"
#include "coreengine/cli/verbs/verbs.h"

#define PRUNE_BATCH 500 /* deleted in one transaction, so that others get their turn */

/* --- cancel --- */

/* A question with a time-out that is due takes that. Any other may be cancelled, also when it is too late to answer. */
static int find_question(struct rv_cli *cli, const struct rv_run_row *row, struct rv_app_question *q, rv_err **err)
{
    rv_str wanted = cli->n_words > 1 ? rv_str_of(cli->words[1]) : (rv_str){NULL, 0};

    int rc = rv_app_find_question(cli->store, &cli->app.scope, row, wanted, q, err);
    if (rc == RV_E_TIMEOUT && !rv_interrupt_is_ask(q->data)) {
        rv_err_free(*err);
        *err = NULL;
        return 0;
    }
    if (rc == RV_E_TIMEOUT)
        rv_err_hint(err, "`reeve resume %s` goes on by its time-out", row->id);
    else if (rc == RV_E_INVALID && q->n > 1)
        rv_err_hint(err, "name one: `reeve interrupts list --run %s` lists them", row->id);
    return rc;
}

static int cancel_question(struct rv_cli *cli, const struct rv_run_row *row, const struct rv_response *response,
                           rv_err **err)
{
    bool is_new = false;

    if (!rv_cli_flag(cli, "queue"))
        return rv_cli_continue(cli, row->id, RV_APP_ANSWER, response, err);
    int rc = rv_app_enqueue(cli->store, &cli->app.scope, row->id, response, &is_new, err);
    if (rc == 0)
        rv_cli_say(is_new ? "run %s: queued\n" : "run %s: an answer to this question is queued already\n", row->id);
    return rc;
}

static int cancel(struct rv_cli *cli, rv_err **err)
{
    const char *reason = rv_cli_value(cli, "reason");
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

    int rc = rv_cli_flag(cli, "queue") ? rv_app_enqueue(cli->store, &cli->app.scope, run, NULL, &is_new, &err)
                                       : rv_cli_continue(cli, run, RV_APP_ANSWER, NULL, &err);
    s->n_runs += rc >= 0;
    s->n_failed += rc < 0;
    if (rc < 0)
        RV_IGNORE(rv_cli_report(cli, err), "the number of failures is the status");
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
    rv_cli_say("%lld interrupt%s expired; %zu run%s %s by a time-out", (long long)s.n_expired,
               s.n_expired == 1 ? "" : "s", s.n_runs, s.n_runs == 1 ? "" : "s",
               rv_cli_flag(cli, "queue") ? "queued to go on" : "went on");
    rv_cli_say(s.n_failed ? ", %zu could not\n" : "\n", s.n_failed);
    return s.n_failed ? RV_EXIT_FAILED : RV_EXIT_COMPLETED;
}

/* --- prune --- */

static int prune(struct rv_cli *cli, rv_err **err)
{
    const char *age = rv_cli_value(cli, "older-than");
    const char *tenant = cli->app.scope.tenant ? cli->app.scope.tenant : RV_STORE_TENANT;
    rv_buf said = RV_BUF_INIT(200);
    int64_t us = 0, n = PRUNE_BATCH, all = 0;

    if (!age)
        return rv_cli_usage(cli, err, "say how old: --older-than 30d");
    int rc = rv_cli_parse_duration(age, &us, err);
    while (rc == 0 && n == PRUNE_BATCH) {
        rc = rv_store_prune_interrupts(cli->store, tenant, rv_app_now_us() - us, PRUNE_BATCH, &n, err);
        all += rc == 0 ? n : 0;
    }
    rv_buf_printf(&said, "%lld interrupt%s deleted\n", (long long)all, all == 1 ? "" : "s");
    return rv_cli_print(rc, &said, err);
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

const struct rv_cli_verb rv_verb_interrupts_cancel = {
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
    .groups = {&rv_cli_of_work, &rv_cli_of_stores, &rv_cli_of_commits},
    .store = RV_CLI_CHANGES,
    .min_words = 1,
    .max_words = 2,
    .takes = &rv_cli_takes_runs,
    .outlives_reader = true,
    .run = cancel,
};
const struct rv_cli_verb rv_verb_interrupts_sweep = {
    .name = "interrupts sweep",
    .args = "",
    .summary = "mark questions that no one answered in time",
    .text =
        "Marks the questions that are due as expired and counts them. Runs whose question has a time-out (`ask` with\n"
        "expires_seconds) go on by that, here or, with --queue, at a worker. Others still wait: it is too late to\n"
        "answer them, but they can be cancelled. Workers do the same every few seconds.",
    .examples = "reeve interrupts sweep",
    RV_CLI_OPTIONS(sweep_options),
    .groups = {&rv_cli_of_work, &rv_cli_of_stores, &rv_cli_of_commits},
    .store = RV_CLI_CHANGES,
    .outlives_reader = true,
    .run = sweep,
};
const struct rv_cli_verb rv_verb_interrupts_prune = {
    .name = "interrupts prune",
    .args = "",
    .summary = "delete the rows of questions that ended long ago",
    .text = "Deletes the rows of resolved, expired and cancelled questions, in small batches. Their runs and journals "
            "stay\n"
            "as they are.",
    .examples = "reeve interrupts prune --older-than 30d",
    RV_CLI_OPTIONS(prune_options),
    .groups = {&rv_cli_of_stores, &rv_cli_of_commits},
    .store = RV_CLI_CHANGES,
    .run = prune,
};
