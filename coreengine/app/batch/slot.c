/* One line of a batch from its run to its result. A run that the store has already is read from there, or goes on; the
 * others are begun. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/batch/loop_internal.h"
#include "coreengine/app/recover.h"

#define MAX_CRASHES (2 * RV_APP_CRASHES) /* processes in a row that a line may end: half of them with others */

/* --- results --- */

static void count(struct batch *b, const char *status, bool is_failure)
{
    int64_t *n = is_failure                                                    ? &b->sum.failed
                 : strcmp(status, rv_run_status_text(RV_RUN_INTERRUPTED)) == 0 ? &b->sum.waiting
                 : strcmp(status, rv_run_status_text(RV_RUN_RUNNING)) == 0     ? &b->sum.elsewhere
                                                                               : &b->sum.completed;
    (*n)++;
}

static void hand_out(struct batch *b, struct slot *s)
{
    bool takes = b->opts->on_result(b->opts->self, rv_buf_str(&s->text), s->is_failure);

    b->held -= s->text.len;
    rv_buf_fini(&s->text);
    s->text = RV_BUF_INIT(BATCH_MAX_TEXT);
    if (!takes)
        batch_stop(b, false);
}

/* Results in the order of the lines, or this one at once; slots at the head that are done are free again. */
static void hand_out_all(struct batch *b, struct slot *s)
{
    if (b->opts->in_any_order && s->text.len)
        hand_out(b, s);
    while (b->n_used > 0 && b->slots[b->head].is_done) {
        struct slot *first = &b->slots[b->head];
        if (first->text.len)
            hand_out(b, first);
        batch_line_fini(&first->line);
        first->is_open = first->is_done = false;
        b->head = (b->head + 1) % b->n_slots;
        b->n_used--;
    }
}

static void give_script_back(struct slot *s)
{
    if (s->script)
        s->b->scripts[s->b->n_scripts++] = s->script;
    s->script = NULL;
}

/* The line has its result, or (rc < 0, err is taken) none could be written. */
static void conclude(struct slot *s, int rc, rv_err *err, const char *status, bool was_over)
{
    struct batch *b = s->b;

    s->is_done = true;
    if (rc < 0) {
        rv_buf_clear(&s->text);
        batch_fail(b, rc, err);
    } else if (s->text.len) {
        b->held += s->text.len;
        count(b, status, s->is_failure);
        b->sum.earlier += was_over;
    }
    hand_out_all(b, s);
}

static void conclude_run(struct slot *s, enum rv_run_status status, const rv_envelope *env, bool was_over)
{
    rv_err *err = NULL;

    s->is_failure = status != RV_RUN_COMPLETED && status != RV_RUN_INTERRUPTED;
    int rc = batch_line_write(&s->line, s->b->opts, status, env, &s->text, &err);
    conclude(s, rc, err, rv_run_status_text(status), was_over);
}

/* Takes why. */
static void conclude_error(struct slot *s, const char *status, bool is_failure, rv_err *why)
{
    rv_err *err = NULL;

    s->is_failure = is_failure;
    int rc = batch_line_write_error(&s->line, status, why, &s->text, &err);
    rv_err_free(why);
    conclude(s, rc, err, status, false);
}

static void conclude_elsewhere(struct slot *s)
{
    rv_err *why = NULL;

    RV_IGNORE(RV_FAIL(&why, RV_E_STATE, "another process has this run"), "it is the result");
    rv_err_set_hint(&why, "the same command prints its result when it is over");
    conclude_error(s, rv_run_status_text(RV_RUN_RUNNING), false, why);
}

void batch_conclude_faulty(struct slot *s, int rc, rv_err *err)
{
    if (rc == RV_E_PARSE || rc == RV_E_INVALID || rc == RV_E_LIMIT || rc == RV_E_NOT_FOUND || rc == RV_E_VERSION)
        conclude_error(s, rv_run_status_text(RV_RUN_FAILED), true, err);
    else
        conclude(s, rc, err, "", false);
}

/* --- runs --- */

static int copy_of(const rv_err *why, int rc, rv_err **err)
{
    rv_buf text = RV_BUF_INIT((size_t)64 << 10);

    rv_err_write_chain(why, &text);
    rc = RV_FAIL(err, rc, "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return rc;
}

static void on_ended(void *self, rv_exec *x, int rc, const rv_err *borrowed);

static struct rv_exec_opts exec_opts(struct slot *s)
{
    struct batch *b = s->b;
    struct rv_app_loaded *l = b->opts->loaded;
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;

    if (l->script) {
        s->script = b->scripts[--b->n_scripts];
        rv_script_rewind(s->script);
    }
    x.pipeline = l->pipeline;
    x.plugins = l->plugins;
    x.script = s->script;
    x.mcp = l->mcp;
    x.tenant = b->opts->app->scope.tenant;
    x.quotas = app_limits_exec(&s->limits);
    x.services = &b->services.exec;
    x.mode = b->opts->mode;
    x.use_mocks = b->opts->use_mocks;
    x.answer_from_script = s->script != NULL;
    if (l->agents) {
        x.find_agent = rv_app_find_agent;
        x.find_self = l;
    }
    x.observer = (struct rv_observer){.on_ended = on_ended, .self = s};
    return x;
}

static int new_journal(struct slot *s, const rv_envelope *env, rv_journal **out, rv_err **err)
{
    struct batch *b = s->b;
    const struct rv_journal_start start = {.tenant = b->opts->app->scope.tenant,
                                           .bundle = b->bundle,
                                           .pipeline = b->opts->loaded->pipeline,
                                           .begin = {.mode = b->opts->mode,
                                                     .use_mocks = b->opts->use_mocks,
                                                     .has_script = b->opts->loaded->script != NULL,
                                                     .answers_from_script = b->opts->loaded->script != NULL,
                                                     .is_script_blind = rv_script_is_blind(b->opts->loaded->script),
                                                     .scripted = b->scripted,
                                                     .scripted_inner = b->inner,
                                                     .max_parallel = RV_ENGINE_MAX_PARALLEL},
                                           .env = env,
                                           .owner = b->owner,
                                           .now_us = rv_app_now_us(),
                                           .lease_us = app_lease_us(b->opts->app)};

    return rv_journal_new(b->store, &start, out, err);
}

static void set_limits(struct slot *s, const char *user)
{
    app_limits_set(&s->limits, s->b->quotas, s->b->opts->app->scope.tenant, user);
    s->limits.exec.hands_over = true;
}

/* Counted before it is begun: should this process end in between, it counts as one more. */
static int count_run(struct slot *s, const rv_envelope *env, rv_err **err)
{
    struct batch *b = s->b;

    set_limits(s, rv_envelope_user(env));
    return app_limits_exec(&s->limits)
               ? app_limits_count(&s->limits, b->store, RV_QUOTA_RUNS, rv_app_now_us(), b->opts->app->log, err)
               : 0;
}

static void begin_new(struct slot *s)
{
    struct batch *b = s->b;
    rv_envelope *env = NULL;
    rv_journal *journal = NULL;
    rv_err *err = NULL;
    int rc = rv_envelope_load(s->line.state, rv_rand_system(), rv_app_now_us(), &env, &err);

    if (rc == 0)
        rc = rv_app_check_user(&b->opts->app->scope, rv_envelope_fields(env)->user_id, &err);
    if (rc == RV_E_DENIED) /* of the line, not of the batch */
        rc = RV_WRAP(&err, RV_E_INVALID, "the line");
    if (rc == 0)
        rc = count_run(s, env, &err);
    if (rc == 0)
        rc = new_journal(s, env, &journal, &err);
    if (rc < 0) {
        rv_envelope_free(env);
        batch_conclude_faulty(s, rc, err);
        return;
    }
    struct rv_exec_opts x = exec_opts(s);
    x.journal = journal;
    x.takes_journal = true;
    rc = rv_engine_start(b->engine, &x, env, NULL, &s->exec, &err);
    if (rc == 0) {
        b->n_running++;
    } else {
        give_script_back(s);
        batch_conclude_faulty(s, rc, err);
    }
}

static void go_on(struct slot *s, const char *user, bool cancels)
{
    struct batch *b = s->b;
    rv_err *err = NULL;

    set_limits(s, user);
    const struct rv_exec_opts x = exec_opts(s);
    int rc = rv_engine_open(b->engine, &x, &b->opts->app->scope,
                            &(struct rv_engine_resume){.run = s->line.run, .cancels = cancels}, &s->exec, &err);

    if (rc == 0) {
        b->n_running++;
    } else {
        b->is_alone = false;
        give_script_back(s);
        batch_conclude_faulty(s, rc, err);
    }
}

/* It waits, and no process has it any more: who asked before that it be cancelled left that to this one, whose engine
 * looks a few times a second. True: it is being ended. */
static bool ends_as_asked(struct slot *s, const rv_envelope *env)
{
    struct batch *b = s->b;
    bool is_wanted = false;
    rv_err *err = NULL;

    if (rv_app_is_to_be_cancelled(b->store, &b->opts->app->scope, s->line.run, &is_wanted, &err) < 0)
        rv_app_log_uncancelled(b->opts->app->log, s->line.run, err);
    if (is_wanted)
        go_on(s, rv_envelope_user(env), true);
    return is_wanted;
}

static void end_run(struct slot *s, rv_exec *x)
{
    enum rv_run_status status = rv_exec_status(x);
    rv_envelope *env = rv_exec_steal_envelope(x);

    rv_exec_free(x); /* gives the run back */
    if (status != RV_RUN_INTERRUPTED || !ends_as_asked(s, env))
        conclude_run(s, status, env, false);
    rv_envelope_free(env);
}

static void on_ended(void *self, rv_exec *x, int rc, const rv_err *borrowed)
{
    struct slot *s = self;
    struct batch *b = s->b;
    rv_err *err = NULL;
    const char *why = "";

    b->n_running--;
    b->is_alone = false;
    s->exec = NULL;
    give_script_back(s);
    if (rc == 0 && !rv_exec_is_handed_over(x)) {
        end_run(s, x);
        batch_tick(b);
        return;
    }
    if (rc < 0)
        rc = copy_of(borrowed, rc, &err);
    if (rc == RV_E_EXISTS || rc == RV_E_STATE) { /* begun, or taken over, by another process just now */
        rv_err_free(err);
        conclude_elsewhere(s);
    } else if (rc < 0) {
        batch_conclude_faulty(s, rc, err);
    } else {
        if (rv_exec_refused(x, &why) != 0) {
            rc = RV_FAIL(&err, RV_E_QUOTA, "%s", why);
            batch_fail(b, rc, err);
        }
        conclude(s, 0, NULL, "", false);
    }
    rv_exec_free(x);
    batch_tick(b);
}

/* --- runs that the store has --- */

/* All of them have one bundle, which is opened once. */
static void read_past(struct slot *s, const struct rv_run_row *row)
{
    struct batch *b = s->b;
    struct rv_replayed r;
    rv_err *err = NULL;
    int rc = b->past.bundle ? 0 : rv_app_past_open(b->store, &b->opts->app->scope, row->id, &b->past, &err);
    struct rv_app_past past = b->past;

    past.row = *row;
    if (rc == 0)
        rc = rv_app_past_replay(b->store, &past, NULL, &r, &err);
    if (rc < 0) {
        conclude(s, rc, err, "", false);
        return;
    }
    conclude_run(s, row->status, rv_run_envelope(r.run), true);
    rv_replayed_fini(&r);
}

/* A line that crashed several processes runs alone, after all others; one that crashed many is not run again. */
static int judge_crashes(struct slot *s, const struct rv_run_row *row, bool *is_later, rv_err **err)
{
    struct batch *b = s->b;
    int64_t crashes = 0;
    int rc = rv_app_count_crashes(b->store, &b->opts->app->scope, row, rv_app_now_us(), &crashes, err);

    if (rc < 0 || crashes < RV_APP_CRASHES)
        return rc;
    if (crashes >= MAX_CRASHES) {
        rc = RV_FAIL(err, RV_E_LIMIT, "its run ended %lld processes in a row", (long long)crashes);
        rv_err_set_hint(err, "`reeve runs recover %s` tries it in a process of its own", row->id);
        return rc;
    }
    *is_later = b->n_running > 0;
    b->is_alone = !*is_later;
    return 0;
}

/* Goes on with a run of the store, if there is anything to do. *is_later: not while others run. */
static int take_up(struct slot *s, const struct rv_run_row *row, bool *is_later, rv_err **err)
{
    struct batch *b = s->b;
    struct rv_app_due due;
    bool goes_on = false;
    int rc;

    switch (rv_app_recovery_of(row, rv_app_now_us(), &b->patience_us)) {
    case RV_APP_RECOVERY_ENDED:
        read_past(s, row);
        return 0;
    case RV_APP_RECOVERY_OWNED:
        conclude_elsewhere(s);
        return 0;
    case RV_APP_RECOVERY_WAITS:
        rc = rv_app_find_due(b->store, &b->opts->app->scope, row->id, rv_app_now_us(), &due, err);
        goes_on = rc == 0 && (due.n > 0 || row->cancel_requested);
        rv_app_due_fini(&due);
        if (rc == 0 && !goes_on)
            read_past(s, row);
        break;
    case RV_APP_RECOVERY_LEFT:
    case RV_APP_RECOVERY_QUEUED:
    case RV_APP_RECOVERY_LATER:
        goes_on = true;
        rc = judge_crashes(s, row, is_later, err);
        break;
    }
    if (rc == 0 && goes_on && !*is_later)
        go_on(s, row->user, row->cancel_requested);
    return rc;
}

bool batch_begin(struct slot *s)
{
    struct batch *b = s->b;
    struct rv_run_row row = {0};
    bool is_later = false;
    rv_err *err = NULL;
    int rc = rv_store_get_run(b->store, &b->opts->app->scope, s->line.run, &row, &err);

    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(err);
        begin_new(s);
        return true;
    }
    if (rc == 0)
        rc = take_up(s, &row, &is_later, &err);
    rv_run_row_fini(&row);
    if (rc < 0)
        batch_conclude_faulty(s, rc, err);
    return !is_later;
}
