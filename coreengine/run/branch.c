/* What a branch does next: it visits the stage where it stands, follows where that leads, opens a group, or is over. A
 * run without lists is its main branch alone.
 *
 * Branches that can move stand in a queue. Each one moves until it has a visit under way, waits or is over; what that
 * makes possible for others is queued behind, but for a group that is settled, which goes first. */
#include "coreengine/run/group_internal.h"

#include <stdlib.h>
#include <string.h>

/* --- the queue of those that can move --- */

void run_branch_ready(rv_run *run, struct branch *b)
{
    if (b->is_ready)
        return;
    b->is_ready = true;
    b->next_ready = NULL;
    if (run->last_ready)
        run->last_ready->next_ready = b;
    else
        run->first_ready = b;
    run->last_ready = b;
}

void run_branch_ready_first(rv_run *run, struct branch *b)
{
    if (b->is_ready)
        return;
    b->is_ready = true;
    b->next_ready = run->first_ready;
    run->first_ready = b;
    if (!run->last_ready)
        run->last_ready = b;
}

static struct branch *take_ready(rv_run *run)
{
    struct branch *b = run->first_ready;

    if (!b)
        return NULL;
    run->first_ready = b->next_ready;
    if (!run->first_ready)
        run->last_ready = NULL;
    b->is_ready = false;
    return b;
}

void run_branch_forget_ready(rv_run *run)
{
    struct branch *b = run->first_ready;

    run->first_ready = run->last_ready = NULL;
    while (b) {
        struct branch *next = b->next_ready;

        b->is_ready = false;
        if (b->state == BRANCH_ALIVE)
            run_branch_ready(run, b);
        b = next;
    }
}

/* --- the tree --- */

struct branch *run_branch_next(struct branch *b)
{
    if (b->opened)
        return &b->opened->items[0];
    while (b->group) {
        struct group *g = b->group;

        if (++b < g->items + g->n)
            return b;
        b = g->opener;
    }
    return NULL;
}

void run_branch_fini(struct branch *b)
{
    run_group_free(b->opened);
    run_work_free(b->work);
    free(b->path);
    free(b->held_taken);
    json_object_put(b->joined);
    run_failure_fini(&b->missed);
    run_failure_fini(&b->failure);
    *b = (struct branch){.asked_by = -1};
}

/* --- a visit begins --- */

struct rv_visit_place run_branch_place(const rv_run *run, const struct branch *b)
{
    struct rv_visit_place place = run->place;

    if (b->path)
        place.path = b->path;
    return place;
}

struct left run_left(const rv_run *run)
{
    return (struct left){run->shared.llm_left, run->shared.hops_left};
}

void run_branch_worked(rv_run *run, struct branch *b, struct left before)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(b->env);
    bool is_done = run_work_is_done(b->work);

    if (is_done)
        run->n_working--;
    if (!run->totals.is_on)
        return;
    b->calls_taken += before.calls - run->shared.llm_left;
    b->hops_taken += before.hops - run->shared.hops_left;
    if (!is_done)
        return;
    int64_t calls = f->llm_call_count - b->calls_before, hops = f->agent_hop_count - b->hops_before;
    run->totals.llm_calls += calls;
    run->totals.visits += hops;
    run->shared.llm_left += b->calls_taken - calls; /* what it took and did not use */
    run->shared.hops_left += b->hops_taken - hops;
}

/* Count the visit and its model call, in this run and in all runs around it. */
static void take(rv_run *run, struct branch *b, bool llm)
{
    if (!run->totals.is_on) {
        run->shared.llm_left = rv_envelope_left(b->env).llm_calls;
        run->shared.hops_left = rv_envelope_left(b->env).hops;
    }
    rv_visit_note_calls(&run->shared, llm);
    rv_visit_note_hops(&run->shared, 1);
}

static int begin_visit(rv_run *run, struct branch *b, int stage, struct rv_effects *out, rv_err **err)
{
    const struct failure *m = &b->missed;
    bool llm = run_branch_calls_llm(run, b, stage);
    struct rv_visit_place place = run_branch_place(run, b);
    struct left before;

    b->asked_by = -1;
    if (run->totals.is_on && !rv_visit_goes_on(&run->shared, stage, b->env))
        run->totals.of_stage[stage]++;
    b->calls_taken = b->hops_taken = 0;
    b->calls_before = rv_envelope_fields(b->env)->llm_call_count;
    b->hops_before = rv_envelope_fields(b->env)->agent_hop_count;
    b->passed = (struct rv_failed){m->stage, m->type, m->text, m->code, m->reason, m->attempt};
    place.group = b->joined;
    place.failed = m->text ? &b->passed : NULL;
    before = run_left(run);
    take(run, b, llm);
    run->n_working++;
    size_t from = out->n;
    const struct rv_visit_start start = {
        .stage = stage, .env = b->env, .place = &place, .route = true, .llm_reserved = llm};
    int rc = run_work_begin(&run->shared, &start, out, &b->work, err);
    if (rc == 0)
        rc = run_calls_note(run, b, out, from, err);
    if (rc == 0)
        run_branch_worked(run, b, before);
    return rc;
}

static int stop_at(rv_run *run, enum rv_reason reason, int stage, struct rv_effects *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1024);

    run_write_bound(run, reason, stage, &text);
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = run_halt(run, RV_RUN_TERMINATED, reason, rv_buf_cstr(&text), out, err);
    rv_buf_fini(&text);
    return rc;
}

/* Begin the visit, unless a bound forbids it: those of the runs around this one are checked first. */
static int begin_in_bounds(rv_run *run, struct branch *b, int stage, struct rv_effects *out, rv_err **err)
{
    bool llm = run_branch_calls_llm(run, b, stage), stopped = false;

    if (!rv_visit_goes_on(&run->shared, stage, b->env)) {
        int rc = run_halt_outside(run, llm, &stopped, out, err);
        if (rc < 0 || stopped)
            return rc;
        enum rv_reason reason = run_bound_at(run, b, stage);
        if (reason != RV_REASON_NONE)
            return stop_at(run, reason, stage, out, err);
    }
    return begin_visit(run, b, stage, out, err);
}

int run_branch_begin(rv_run *run, struct branch *b, struct rv_effects *out, rv_err **err)
{
    return begin_in_bounds(run, b, b->first, out, err);
}

/* --- what comes next --- */

static int fail_branch(rv_run *run, struct branch *b, const struct failure *f, struct rv_effects *out, rv_err **err)
{
    int rc = run_failure_copy(f, &b->failure, err);

    if (rc == 0 && !b->group)
        return run_fail_with(run, &b->failure, out, err);
    if (rc == 0)
        run_group_branch_over(run, b, BRANCH_FAILED, out);
    return rc;
}

/* The branch stands at a join of a group that it did not open: it arrives there. */
static int arrive(rv_run *run, struct branch *b, int stage, struct rv_effects *out, rv_err **err)
{
    const char *name = run->pipeline->agents[stage].name;

    if (b->group && b->group->join == stage) {
        run_group_branch_over(run, b, BRANCH_ARRIVED, out);
        return 0;
    }
    return run_stop(run, RV_RUN_FAILED, RV_REASON_JOIN, out, err,
                    "stage \"%.*s\" is a join, and no group that it could join is open here",
                    RV_STR_ARG(run_shown(name)));
}

static int unknown_stage(rv_run *run, struct branch *b, struct rv_effects *out, rv_err **err)
{
    return run_stop(run, RV_RUN_FAILED, RV_REASON_TOOL_FAILED, out, err, "unknown stage \"%.*s\"",
                    RV_STR_ARG(run_shown(rv_envelope_fields(b->env)->current_stage)));
}

static bool is_at_join(const rv_run *run, const struct branch *b, int stage)
{
    return stage >= 0 && run->pipeline->agents[stage].join.wait != RV_WAIT_NOT && !b->joined;
}

static int open_held(rv_run *run, struct branch *b, struct rv_effects *out, rv_err **err)
{
    const struct rv_branches *list = b->held;
    bool *taken = b->held_taken;

    b->held = NULL;
    b->held_taken = NULL;
    int rc = run_group_open(run, b, list, taken, out, err);
    free(taken);
    return rc;
}

/* The next step of the main branch while it is the only one. */
static int next_of_main(rv_run *run, struct rv_effects *out, rv_err **err)
{
    struct branch *b = &run->main;
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    enum rv_reason reason = RV_REASON_NONE;

    if (f->terminated)
        return run_finish(run, RV_RUN_TERMINATED, NULL, out, err);
    if (b->held && !f->interrupt_pending)
        return open_held(run, b, out, err);
    if (strcmp(f->current_stage, RV_STAGE_END) == 0)
        return run_finish(run, f->interrupt_pending ? RV_RUN_INTERRUPTED : RV_RUN_COMPLETED, NULL, out, err);
    int stage = rv_pipeline_find_stage(run->pipeline, rv_str_of(f->current_stage));
    bool llm = stage >= 0 && run_branch_calls_llm(run, b, stage);
    if (stage >= 0 && !f->interrupt_pending && rv_visit_goes_on(&run->shared, stage, run->env))
        return begin_visit(run, b, stage, out, err);
    bool stopped = false;
    int rc = run_stop_outside(run, llm, &stopped, out, err);
    if (rc < 0 || stopped)
        return rc;
    if (!rv_envelope_can_continue(run->env, llm, &reason))
        return reason == RV_REASON_NONE ? run_finish(run, RV_RUN_INTERRUPTED, NULL, out, err)
                                        : run_stop_at_bound(run, reason, out, err);
    if (stage < 0)
        return unknown_stage(run, b, out, err);
    if (is_at_join(run, b, stage))
        return arrive(run, b, stage, out, err);
    if (!run_visits_left(run, stage))
        return run_stop_at_visits(run, stage, out, err);
    return begin_visit(run, b, stage, out, err);
}

static int next_of_branch(rv_run *run, struct branch *b, struct rv_effects *out, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(b->env);

    if (f->terminated) {
        rv_envelope_copy_end(run->env, b->env);
        return run_finish(run, RV_RUN_TERMINATED, NULL, out, err);
    }
    if (f->interrupt_pending)
        return 0; /* it waits for a person */
    if (b->held)
        return open_held(run, b, out, err);
    if (strcmp(f->current_stage, RV_STAGE_END) == 0) {
        run_group_branch_over(run, b, BRANCH_ENDED, out);
        return 0;
    }
    int stage = rv_pipeline_find_stage(run->pipeline, rv_str_of(f->current_stage));
    if (stage < 0)
        return unknown_stage(run, b, out, err);
    if (is_at_join(run, b, stage))
        return arrive(run, b, stage, out, err);
    return begin_in_bounds(run, b, stage, out, err);
}

static int next_step(rv_run *run, struct branch *b, struct rv_effects *out, rv_err **err)
{
    run_hold_bounds(run, b);
    return b->group ? next_of_branch(run, b, out, err) : next_of_main(run, out, err);
}

/* --- a visit is over --- */

int run_branch_hold(struct branch *b, int stage, const struct rv_branches *list, const bool *taken, rv_err **err)
{
    bool *copy = calloc(list->n, sizeof *copy);

    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "open a group");
    memcpy(copy, taken, list->n * sizeof *copy);
    free(b->held_taken);
    b->held = list;
    b->held_taken = copy;
    b->held_by = stage;
    return 0;
}

/* Follow the visit's result. */
static int follow(rv_run *run, struct branch *b, int from, const struct rv_visit_result *r, struct rv_effects *out,
                  rv_err **err)
{
    bool leaves = r->end != RV_VISIT_STAYED && r->outcome != RV_OUTCOME_TERMINATE;
    bool moves = leaves && r->next >= 0, looped = moves && r->next <= from;
    int rc = 0;

    if (run->halt.is_set) /* the run is about to end: the branch takes no further edge */
        return 0;
    if (r->feedback && rv_outcome_requires_loop(r->outcome) && !looped)
        rc = rv_envelope_add_feedback(b->env, rv_json_str(r->feedback), err);
    const struct edge edge = {.from = from, .to = r->next, .outcome = r->outcome, .feedback = r->feedback};
    if (rc == 0 && moves)
        rc = run_take_edge(run, b, &edge, out, err);
    if (rc == 0 && leaves && r->next == RV_TARGET_LIST && r->branches)
        rc = run_branch_hold(b, from, r->branches, r->taken, err);
    return rc;
}

static int note_failure(rv_run *run, int stage, const struct rv_visit_result *r, struct failure *out, rv_err **err)
{
    rv_buf name = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    int rc = run_write_failed_stage(run, stage, r, &name, err);
    const struct failure f = {.stage = (char *)rv_buf_cstr(&name),
                              .type = (char *)r->error_type,
                              .text = (char *)r->error_text,
                              .code = r->code,
                              .reason = r->reason,
                              .status = run_failure_status(r),
                              .attempt = r->attempt,
                              .bound_of = r->bound_of};
    if (rc == 0)
        rc = run_failure_copy(&f, out, err);
    rv_buf_fini(&name);
    return rc;
}

/* Values that only the visit of a join or of an error handler sees are dropped when it is over, unless the stage is
 * visited again. */
static void leave_place(struct branch *b, const struct rv_visit_result *r)
{
    if (r->end == RV_VISIT_STAYED)
        return;
    json_object_put(b->joined);
    b->joined = NULL;
    run_failure_fini(&b->missed);
}

/* A visit has failed, and no error route leads on. */
static int failed(rv_run *run, struct branch *b, const struct failure *f, struct rv_effects *out, rv_err **err)
{
    if (b->group && f->status != RV_RUN_FAILED) { /* by a bound, or cancelled at one */
        if (run->halt.is_set) {
            run_group_branch_over(run, b, BRANCH_CANCELLED, out);
            return 0;
        }
        run->stopped_by = f->bound_of != &run->shared ? f->bound_of : NULL;
        return run_halt(run, f->status, f->reason, f->text, out, err);
    }
    return fail_branch(run, b, f, out, err);
}

static int after_visit(rv_run *run, struct branch *b, struct rv_effects *out, rv_err **err)
{
    rv_work *work = b->work;
    const struct rv_visit_result *r = run_work_result(work);
    bool is_main = !b->group, is_failure = r->end == RV_VISIT_FAILED;
    int from = run_work_stage(work), rc = 0;
    struct failure f = {0};

    b->work = NULL;
    if (is_failure)
        rc = note_failure(run, from, r, &f, err);
    if (rc == 0 && !(is_failure && r->next == RV_TARGET_NONE)) {
        rc = follow(run, b, from, r, out, err);
        if (rc == 0 && !run->finished) {
            leave_place(b, r);
            rc = run_save(run, out, err);
        }
    } else if (rc == 0) {
        rc = failed(run, b, &f, out, err);
    }
    run_failure_fini(&f);
    run_work_free(work);
    if (is_main || !run->finished)
        b->asked_by = rv_envelope_has_interrupt(b->env) ? from : -1;
    if (!is_main && !run->finished && run_branch_asks(b))
        run->n_asked++;
    return rc;
}

/* --- all branches move that can --- */

static int move(rv_run *run, struct branch *b, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    if (b->opened && b->opened->is_settled)
        rc = run_group_settle(run, b, out, err);
    while (rc == 0 && !run->finished && b->state == BRANCH_ALIVE && !b->opened) {
        if (b->work && !run_work_is_done(b->work))
            return 0;
        if (b->work)
            rc = after_visit(run, b, out, err);
        else if (run->halt.is_set || (b->group && run_branch_asks(b)))
            return 0;
        else
            rc = next_step(run, b, out, err);
    }
    return rc;
}

static int stand_still(rv_run *run, struct rv_effects *out, rv_err **err)
{
    if (run->n_working > 0)
        return 0;
    if (run->halt.is_set)
        return run_end_halted(run, out, err);
    if (questions_first(run))
        return run_finish(run, RV_RUN_INTERRUPTED, NULL, out, err);
    return RV_FAIL(err, RV_E_STATE, "no branch of the run can move, and none waits");
}

int run_go(rv_run *run, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    while (rc == 0 && !run->finished) {
        struct branch *b = take_ready(run);

        if (!b)
            return stand_still(run, out, err);
        rc = move(run, b, out, err);
    }
    return rc;
}

/* --- giving up --- */

static int cancel_opened(rv_run *run, struct branch *b, const char *why, json_object *partials, struct rv_effects *out,
                         rv_err **err)
{
    struct group *g = b->opened;
    struct rv_joining j = {0};
    int rc = 0;

    for (size_t i = 0; i < g->n && rc == 0; i++)
        if (g->items[i].state == BRANCH_ALIVE)
            rc = run_branch_cancel(run, &g->items[i], why, partials, out, err);
    for (size_t i = 0; i < g->n && rc == 0; i++)
        rc = rv_envelope_join(b->env, g->items[i].env, rv_str_of(g->items[i].name), false, &j, err);
    rv_joining_fini(&j);
    if (rc < 0)
        return rc;
    run_branch_forget_ready(run);
    run_group_free(g);
    b->opened = NULL;
    return 0;
}

static int cancel_visit(rv_run *run, struct branch *b, const char *why, json_object *partials, struct rv_effects *out,
                        rv_err **err)
{
    struct left left = run_left(run);
    size_t from = out->n;
    int rc = 0;

    if (!run_work_is_done(b->work)) {
        rc = run_work_cancel(b->work, why, partials, out, err);
        if (rc == 0)
            rc = run_calls_note(run, b, out, from, err);
        if (rc == 0)
            run_branch_worked(run, b, left);
    }
    run_work_free(b->work);
    b->work = NULL;
    return rc;
}

/* The work so far of a stage that waits for a person is kept with its session. */
static int give_up(rv_run *run, struct branch *b, const char *why, struct rv_effects *out, rv_err **err)
{
    int stage = rv_pipeline_find_stage(run->pipeline, rv_str_of(rv_envelope_fields(b->env)->current_stage));

    int rc = questions_withdraw(run, b, err);
    return rc < 0 || stage < 0 ? rc : run_give_up(run, b, stage, why, out, err);
}

int run_branch_cancel(rv_run *run, struct branch *b, const char *why, json_object *partials, struct rv_effects *out,
                      rv_err **err)
{
    int rc = 0;

    if (b->opened)
        rc = cancel_opened(run, b, why, partials, out, err);
    else if (b->work)
        rc = cancel_visit(run, b, why, partials, out, err);
    else if (run_branch_asks(b))
        rc = give_up(run, b, why, out, err);
    else if (b->state == BRANCH_ALIVE && run->shared.rules >= RV_RULES_9) /* its question was denied just now */
        rc = run_give_up_waiting(run, b, why, out, err);
    if (rc == 0 && b->group)
        run_group_branch_over(run, b, BRANCH_CANCELLED, out);
    return rc;
}
