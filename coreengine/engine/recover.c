/* A run that another process left goes on: its journal is replayed, the script is brought to where it stood, and the
 * calls whose answers are missing are asked for again. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/quota_internal.h"
#include "coreengine/engine/stuck_internal.h"

/* What a replay learns of the processes that had the run before. */
struct past {
    rv_exec *x;
    int64_t n_events;
    int64_t told_us; /* the latest time the core was told */
    struct gap {
        int64_t next_call_id, us; /* for all calls before that one, this time does not count */
    } * gaps;
    size_t n_gaps, cap_gaps;
};

static int note_gap(struct past *p, int64_t now_us, const rv_run *run, rv_err **err)
{
    if (now_us <= p->told_us)
        return 0;
    if (!rv_has_room(&p->gaps, &p->cap_gaps, p->n_gaps + 1, sizeof *p->gaps))
        return RV_FAIL(err, RV_E_NOMEM, "recover a run");
    p->gaps[p->n_gaps++] = (struct gap){rv_run_counters(run).next_call_id, now_us - p->told_us};
    return 0;
}

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct past *p = self;
    rv_exec *x = p->x;
    struct rv_script_reply answered;
    struct rv_response response;
    int rc = 0;

    (void)record;
    if (!ev)
        return 0;
    if (ev->kind == RV_EVENT_RECOVER)
        rc = note_gap(p, ev->now_us, run, err);
    if (ev->now_us > p->told_us)
        p->told_us = ev->now_us;
    if (rc < 0 || !x->kept)
        return rc;
    if (ev->call_id && engine_kept_take(x, ev->call_id, &answered))
        rv_script_reply_fini(&answered);
    if (ev->kind == RV_EVENT_ANSWER && x->answers)
        RV_IGNORE(!rv_script_answer(x->opts.script, &response, NULL), "it only moves on: the journal has the answer");
    if (x->answers && rv_run_is_finished(run) && rv_run_status(run) == RV_RUN_INTERRUPTED)
        rc = rv_script_on_wait(x->opts.script, rv_run_envelope(run), rv_run_question_stage(run), err);
    for (size_t i = 0; rc == 0 && i < effects->n; i++)
        if (engine_script_plays(x, &effects->items[i]))
            rc = engine_kept_ask(x, &effects->items[i], err);
    return rc;
}

/* The options that the run was started with, as its journal has them. */
static int on_begin(void *self, const struct rv_journal_begin *begin, rv_err **err)
{
    const struct past *p = self;
    rv_exec *x = p->x;
    int rc = 0;

    x->opts.mode = begin->mode;
    x->opts.use_mocks = begin->use_mocks;
    x->opts.max_parallel = begin->max_parallel;
    if (begin->has_script && !x->opts.script) {
        rc = RV_FAIL(err, RV_E_STATE, "the run was started with a script, and there is none");
    } else if (!begin->has_script) {
        x->opts.script = NULL;
        engine_run_tools_fini(&x->tools); /* so it does not answer for tools either */
        engine_run_tools_init(&x->tools, &x->opts, x->engine);
    } else {
        x->answers = begin->answers_from_script;
        rv_journal_hold(x->opts.journal, x->answers || x->opts.holds);
        x->kept = engine_kept_new();
        rc = x->kept ? 0 : RV_FAIL(err, RV_E_NOMEM, "recover a run");
        if (rc == 0 && begin->script_at) /* of a run that began where another one stood */
            rc = rv_script_set_position(x->opts.script, begin->script_at, err);
    }
    return rc;
}

/* A clock that went back since then must not stop the run's time until it has caught up: no deadline would come. */
static void keep_time(rv_exec *x, int64_t last_us)
{
    int64_t now_us = rv_engine_now_us(x->engine);

    x->last_us = last_us;
    x->ahead_us = last_us > now_us ? last_us - now_us : 0;
}

void exec_take_replayed(rv_exec *x, struct rv_replayed *r)
{
    rv_run_free(x->run);
    x->run = r->run;
    r->run = NULL;
    rv_run_set_emits(x->run, engine_observes(x));
    rv_run_set_saves(x->run, x->opts.saves);
    if (r->begin.own) { /* the run borrows it until it is freed */
        free(x->scripted);
        x->scripted = r->begin.own;
        r->begin.own = NULL;
        json_object_put(x->scripted_inner);
        x->scripted_inner = r->begin.scripted_inner;
        r->begin.scripted_inner = NULL;
    }
    if (r->begin.own_conversation) {
        rv_conversation_free(x->conversation);
        x->conversation = r->begin.own_conversation;
        x->opts.conversation = x->conversation;
        r->begin.own_conversation = NULL;
    }
    keep_time(x, r->last_us);
}

/* open: the calls whose answers are missing; the caller's. */
static int replay(struct past *p, const struct rv_store_scope *scope, struct rv_effects *open, rv_err **err)
{
    rv_exec *x = p->x;
    const struct rv_replay_opts opts = {.pipeline = x->opts.pipeline,
                                        .catalog = &x->catalog,
                                        .without_events = true,
                                        .n_records = rv_journal_seq(x->opts.journal),
                                        .from_snapshot = !x->opts.script, /* the script must see every call */
                                        .on_begin = on_begin,
                                        .on_step = on_step,
                                        .self = p};
    struct rv_replayed r;

    int rc = rv_journal_replay(x->engine->opts.store, scope, rv_journal_run(x->opts.journal), &opts, &r, err);
    if (rc < 0)
        return rc;
    exec_take_replayed(x, &r);
    *open = r.open;
    memset(&r.open, 0, sizeof r.open);
    p->n_events = r.n_events;
    rv_replayed_fini(&r);
    return 0;
}

static bool is_cancelled(const struct rv_effects *effects, int64_t call_id)
{
    for (size_t i = 0; i < effects->n; i++)
        if (effects->items[i].kind == RV_EFFECT_CANCEL_CALL && effects->items[i].call_id == call_id)
            return true;
    return false;
}

/* What the step that recovered the run wants done, after the open calls that it did not cancel. */
static int add_step_effects(struct rv_effects *step, struct rv_effects *open, rv_err **err)
{
    size_t n = 0;

    for (size_t i = 0; i < open->n; i++)
        if (!is_cancelled(step, open->items[i].call_id))
            n++;
    struct rv_effect *items = calloc(n + step->n + 1, sizeof *items);
    if (!items)
        return RV_FAIL(err, RV_E_NOMEM, "recover a run");
    n = 0;
    for (size_t i = 0; i < open->n; i++)
        if (!is_cancelled(step, open->items[i].call_id)) {
            items[n++] = open->items[i];
            open->items[i] = (struct rv_effect){0};
        }
    if (step->n)
        memcpy(items + n, step->items, step->n * sizeof *items);
    free(step->items);
    step->items = items;
    step->cap = n + step->n + 1;
    step->n += n;
    return 0;
}

/* The open calls are what is to be performed next. They have as long as they had left when the process that made them
 * died, or the last one that made them again. */
static int ask_again(const struct past *p, struct rv_effects *open, rv_err **err)
{
    rv_exec *x = p->x;

    bool may_live = rv_journal_owner_may_live(x->opts.journal);

    for (size_t i = 0; i < open->n; i++)
        for (size_t g = 0; g < p->n_gaps && open->items[i].deadline_us; g++) {
            int64_t *deadline_us = &open->items[i].deadline_us;
            bool is_last = g + 1 == p->n_gaps; /* the time since the last sign of life of the owner */
            if (is_last && may_live && *deadline_us > x->under_way_until_us)
                x->under_way_until_us = *deadline_us;
            if (open->items[i].call_id < p->gaps[g].next_call_id)
                *deadline_us += p->gaps[g].us;
        }
    x->recovers = true;
    return add_step_effects(&x->effects, open, err);
}

/* A question that no one answered in time comes before any answer: the answer is refused, and the run opened without
 * it. True: ev tells the run. */
static bool is_due(const rv_exec *x, int64_t now_us, char id[RV_ID_MAX], struct rv_event *ev)
{
    ev->kind = RV_EVENT_ANSWER;
    return rv_run_find_due_question(x->run, now_us, id, &ev->response);
}

/* The journal of a core that has not begun was entered at a snapshot, which is written when a run pauses, or it has no
 * events yet. A run under way gets the recovery before anything else. */
static bool is_paused(const rv_run *run, int64_t n_events)
{
    return rv_run_is_finished(run) || (!rv_run_has_begun(run) && n_events > 0);
}

/* Of a run whose process died while a branch waited and others ran: the answer is told after the recovery. */
static int check_branch(const rv_exec *x, const struct rv_response *response, int64_t now_us, bool *is_for_branch,
                        rv_err **err)
{
    char id[RV_ID_MAX];
    rv_err *why = NULL;

    *is_for_branch = false;
    if (!response || rv_run_is_finished(x->run))
        return 0;
    int rc = rv_run_check_branch_answer(x->run, response, now_us, id, &why);
    *is_for_branch = rc == 0;
    if (rc != RV_E_STATE) /* it does not fit its question, or memory is short */
        return rv_err_pass(err, why);
    rv_err_free(why);
    return 0;
}

/* What a run that goes on is told. Borrowed. */
struct told {
    const struct rv_response *response; /* NULL: no answer */
    bool cancels;
};

static int next_event(const rv_exec *x, const struct told *told, int64_t n_events, char id[RV_ID_MAX],
                      struct rv_event *ev, rv_err **err)
{
    const struct rv_response *response = told->response;
    enum rv_run_status status = rv_run_status(x->run);
    const char *run = rv_journal_run(x->opts.journal);

    bool is_over = rv_run_is_finished(x->run) && status != RV_RUN_INTERRUPTED;
    bool waits = !is_over && is_paused(x->run, n_events);
    if (is_over && response && rv_envelope_was_withdrawn(rv_run_envelope(x->run), response->interrupt_id))
        return RV_FAIL(err, RV_E_STATE, "the question \"%.*s\" was withdrawn: its run has ended",
                       RV_STR_ARG(rv_utf8_cut(response->interrupt_id, RV_ID_MAX)));
    if (is_over)
        return RV_FAIL(err, RV_E_STATE, "run \"%s\" is over: it was %s", run, rv_run_status_text(status));
    bool is_for_branch = false;
    int rc = told->cancels ? 0 : check_branch(x, response, ev->now_us, &is_for_branch, err);
    if (rc < 0)
        return rc;
    if (told->cancels) {
        ev->kind = RV_EVENT_CANCEL;
    } else if (waits && is_due(x, ev->now_us, id, ev)) {
        if (response)
            return RV_FAIL(err, RV_E_TIMEOUT, "the answer comes too late: question \"%s\" of run \"%s\" has expired",
                           id, run);
    } else if (response && !is_for_branch) {
        bool begins = n_events == 0 && rv_envelope_has_interrupt(rv_run_envelope(x->run)); /* from such a state */
        if (!waits && !begins)
            return RV_FAIL(err, RV_E_STATE, "run \"%s\" waits for no answer: it is under way", run);
        ev->kind = RV_EVENT_ANSWER;
        ev->response = *response;
    } else if (waits) {
        return RV_FAIL(err, RV_E_STATE, "run \"%s\" waits for an answer", run);
    } else {
        ev->kind = n_events == 0 ? RV_EVENT_START : RV_EVENT_RECOVER;
    }
    return 0;
}

static int step_on(rv_exec *x, const struct rv_store_scope *scope, const struct told *told, rv_err **err)
{
    struct rv_effects open = {0};
    struct rv_event ev = {0};
    struct past p = {.x = x};
    char id[RV_ID_MAX];

    int rc = replay(&p, scope, &open, err);
    if (rc == 0) {
        ev.now_us = exec_now_us(x);
        rc = next_event(x, told, p.n_events, id, &ev, err);
    }
    if (rc == 0)
        rc = exec_step(x, &ev, err);
    if (rc == 0 && ev.kind == RV_EVENT_RECOVER) {
        RV_LOG(x->log, INFO, "run.recover", RV_F_I64("events", p.n_events), RV_F_I64("open_calls", open.n));
        rc = note_gap(&p, ev.now_us, x->run, err);
        if (rc == 0)
            rc = ask_again(&p, &open, err);
        if (rc == 0 && told->response)
            rc = exec_tell_later(x, told->response, err);
    }
    rv_effects_fini(&open);
    free(p.gaps);
    return rc;
}

static int go_on(rv_exec *x, const struct rv_store_scope *scope, const struct told *told, rv_err **err)
{
    const char *before = rv_journal_owner_before(x->opts.journal);

    exec_bind_log(x, rv_journal_run(x->opts.journal));
    if (before[0])
        RV_LOG(x->log, INFO, "run.takeover", RV_F_TEXT("owner", before),
               RV_F_BOOL("may_live", rv_journal_owner_may_live(x->opts.journal)));
    engine_quotas_recover(x);
    rv_err *why = NULL;
    int rc = step_on(x, scope, told, &why);
    if (rc < 0 && exec_ends_later(x, &why))
        return 0;
    if (rc < 0)
        return rv_err_pass(err, why);
    return exec_begin(x, err);
}

static int continue_run(rv_engine *e, const struct rv_exec_opts *opts, const struct rv_store_scope *scope,
                        const struct told *told, rv_exec **out, rv_err **err)
{
    rv_exec *x = NULL;

    int rc = exec_new(e, opts, &x, err);
    if (rc < 0)
        return rc;
    rv_err *why = NULL;
    rc = go_on(x, scope, told, &why);
    if (rc < 0) {
        if (x->is_unkept && !e->opts.loop) /* a host is told nothing before this returns */
            rv_exec_tell_end(x, why);
        rv_exec_free(x);
        return rv_err_pass(err, why);
    }
    *out = x;
    return 0;
}

int rv_engine_continue(rv_engine *e, const struct rv_exec_opts *opts, const struct rv_store_scope *scope,
                       const struct rv_response *response, rv_exec **out, rv_err **err)
{
    return continue_run(e, opts, scope, &(struct told){.response = response}, out, err);
}

int rv_engine_continue_cancel(rv_engine *e, const struct rv_exec_opts *opts, const struct rv_store_scope *scope,
                              rv_exec **out, rv_err **err)
{
    return continue_run(e, opts, scope, &(struct told){.cancels = true}, out, err);
}

/* --- runs that the store thread takes over --- */

static struct own_journal *own_of(struct write *w)
{
    return (struct own_journal *)((char *)w - offsetof(struct own_journal, write));
}

static int open_journal(struct write *w, rv_store *store, rv_err **err)
{
    struct own_journal *o = own_of(w);
    const rv_engine *e = o->engine;
    const struct rv_store_scope scope = {o->tenant, o->user};

    return rv_journal_open(store, &scope, o->run,
                           &(struct rv_journal_claim){e->opts.owner, e->clock.now_us(e->clock.self), e->opts.lease_us},
                           &o->journal, err);
}

static int opened(struct own_journal *o, rv_err **err)
{
    const struct rv_store_scope scope = {o->tenant, o->user};
    rv_exec *x = o->x;

    rv_journal_move(o->journal, x->engine->opts.store);
    x->opts.journal = o->journal;
    rv_journal_hold(o->journal, x->answers || x->opts.holds);
    const struct told told = {o->has_response ? &o->response : NULL, o->cancels || x->cancel_asked};
    return go_on(x, &scope, &told, err);
}

/* On the loop. */
static void open_done(struct write *w)
{
    struct own_journal *o = own_of(w);
    rv_exec *x = o->x;
    rv_err *err = w->err;
    int rc = w->rc;

    w->err = NULL;
    if (!x) { /* it was freed meanwhile */
        rv_err_free(err);
        engine_own_unlink(o);
        engine_own_end(o);
        return;
    }
    x->is_opening = false;
    x->last_us = rv_engine_now_us(x->engine);
    if (rc == 0)
        rc = opened(o, &err);
    if (rc < 0)
        exec_break(x, rc, err);
}

int rv_engine_open(rv_engine *e, const struct rv_exec_opts *opts, const struct rv_store_scope *scope,
                   const struct rv_engine_resume *what, rv_exec **out, rv_err **err)
{
    rv_exec *x = NULL;

    int rc = exec_new(e, opts, &x, err);
    if (rc < 0)
        return rc;
    exec_bind_log(x, what->run);
    x->own = engine_own_new(x, scope, what->run);
    rc = x->own ? 0 : RV_FAIL(err, RV_E_NOMEM, "open a run");
    if (rc == 0 && what->response)
        rc = engine_own_answer(x->own, what->response, err);
    if (rc == 0)
        x->own->cancels = what->cancels;
    if (rc == 0 && e->writer) {
        x->is_opening = true;
        x->own->write = (struct write){.write = open_journal, .done = open_done, .is_alone = true};
        engine_writer_submit(e->writer, &x->own->write);
    } else if (rc == 0) {
        rc = open_journal(&x->own->write, e->opts.store, err);
        if (rc == 0)
            rc = opened(x->own, err);
    }
    if (rc < 0) {
        rv_exec_free(x);
        return rc;
    }
    *out = x;
    return 0;
}
