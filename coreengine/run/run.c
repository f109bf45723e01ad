/* The run as others see it: made, begun at its first stage or with the answer to an interrupt (rules 7.2 and 7.10),
 * stepped, asked, freed. The two cores are in branch.c and parallel.c. */
#include "coreengine/run/work_kinds_internal.h"

#include <stdlib.h>
#include <string.h>

#include "envelope/envelope.h"

static int initialise(rv_run *run, rv_err **err)
{
    const struct rv_pipeline *p = run->pipeline;
    int mode = run->opts.mode != RV_UNSET ? run->opts.mode : p->default_run_mode;
    const char *first = p->n_agents ? p->agents[0].name : RV_STAGE_END;

    int rc = rv_envelope_set_stage_order(run->env, p->stage_names, p->n_agents, err);
    if (rc == 0)
        rc = rv_envelope_set_stage(run->env, rv_str_of(first), err);
    rv_envelope_set_parallel(run->env, mode == RV_MODE_PARALLEL);
    return rc;
}

/* What every beginning does; the position of a resumed run is not changed (W03). */
static int begin(rv_run *run, bool resumed, struct rv_effects *out, rv_err **err)
{
    const struct rv_pipeline *p = run->pipeline;
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    int rc = 0;

    rv_envelope_set_branches(run->env, NULL); /* they are in the run now */
    run_hold_bounds(run, &run->main);
    if (strcmp(f->current_stage, RV_STAGE_START) == 0)
        rc = initialise(run, err);
    run->parallel = f->parallel_mode;
    if (rc == 0 && run->parallel)
        rc = run_parallel_begin(run, err);
    if (rc < 0)
        return rc;
    run->started = true;
    run->status = RV_RUN_RUNNING;
    rv_envelope_set_status(run->env, RV_RUN_RUNNING);
    if (run->is_inner)
        return 0;
    rv_run_emit(run, out, RV_EMIT_PIPELINE_STARTED, RV_M_TEXT("pipeline", p->name),
                RV_M_TEXT("mode", rv_run_mode_text(run->parallel ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL)),
                RV_M_BOOL("resumed", resumed), RV_M_TEXT("envelope_id", f->envelope_id),
                RV_M_TEXT("request_id", f->request_id), RV_M_TEXT("session_id", f->session_id));
    return 0;
}

static int start(rv_run *run, struct rv_effects *out, rv_err **err)
{
    bool starts_over = run->shared.rules >= RV_RULES_2 && !run->opts.continues;
    int rc = starts_over ? rv_envelope_restart(run->env, err) : 0;

    return rc < 0 ? rc : begin(run, false, out, err);
}

static int go_to(rv_run *run, const char *stage, rv_err **err)
{
    return stage[0] ? rv_envelope_set_stage(run->env, rv_str_of(stage), err) : 0;
}

static int deny(rv_run *run, const char *text, struct rv_effects *out, rv_err **err)
{
    int rc = run_give_up_waiting(run, &run->main, text, out, err);
    return rc < 0 ? rc : run_fail(run, RV_RUN_TERMINATED, RV_REASON_USER_CANCELLED, text, out, err);
}

static int choose_stage(rv_run *run, enum rv_interrupt_kind kind, const struct rv_response *r, struct rv_effects *out,
                        rv_err **err)
{
    const struct rv_pipeline *p = run->pipeline;
    bool tells = false;
    int asker, rc = 0;

    switch (kind) {
    case RV_INTERRUPT_CLARIFICATION:
        return go_to(run, p->clarification_resume_stage, err);
    case RV_INTERRUPT_CONFIRMATION:
        if (!r->approved)
            rc = run_tells_denial(run, &run->main, &tells, err);
        if (rc < 0 || tells)
            return rc;
        if (!r->approved)
            return deny(run, "the user denied the confirmation", out, err);
        asker = run->parallel || p->confirmation_resume_stage[0]
                    ? -1
                    : rv_visit_asked_by_route(&run->shared, run->env, rv_envelope_interrupt(run->env).data);
        return asker >= 0 ? questions_go_on_approved(run, &run->main, asker, out, err)
                          : go_to(run, p->confirmation_resume_stage, err);
    case RV_INTERRUPT_AGENT_REVIEW:
        if (rv_str_is(r->decision, "reject")) {
            if (!p->agent_review_reject_stage[0])
                return deny(run, "the review rejected it", out, err);
            return go_to(run, p->agent_review_reject_stage, err);
        }
        if (rv_str_is(r->decision, "modify") && r->text.ptr) {
            rc = rv_envelope_add_feedback(run->env, r->text, err);
            if (rc < 0)
                return rc;
        }
        return go_to(run, p->agent_review_resume_stage, err);
    case RV_INTERRUPT_CHECKPOINT:
    case RV_INTERRUPT_RESOURCE_EXHAUSTED:
    case RV_INTERRUPT_TIMEOUT:
    case RV_INTERRUPT_SYSTEM_ERROR:
    case RV_N_INTERRUPT:
        break;
    }
    return 0;
}

static int answer(rv_run *run, const struct rv_response *response, struct rv_effects *out, rv_err **err)
{
    int rc = run_check_answer(run, &run->main, response, out->now_us, err);
    if (rc < 0)
        return rc;
    rc = rv_envelope_select_interrupt(run->env, response->interrupt_id, err);
    if (rc < 0)
        return rc;
    struct rv_interrupt in = rv_envelope_interrupt(run->env);
    bool asks_inside = rv_visit_asks_inside(&run->shared, run->env, &in);
    bool denies = in.kind == RV_INTERRUPT_CONFIRMATION && response->has_approved && !response->approved;
    bool goes_on = rv_interrupt_goes_on(in.kind, in.data);
    rc = rv_envelope_resolve(run->env, response, out->now_us, err);
    if (rc == 0)
        rc = begin(run, true, out, err);
    if (rc == 0 && response->cancelled)
        return run_question_cancelled(run, &run->main, response->text, out, err);
    if (rc < 0 || goes_on || (asks_inside && !denies)) /* the stage that asked goes on with it */
        return rc;
    if (rv_interrupt_is_ask(in.data))
        return rv_visit_on_answer(&run->shared, run->env, err);
    return choose_stage(run, in.kind, response, out, err);
}

static const struct rv_work_kind *const outside_kinds[] = {
    [RV_OUTSIDE_NONE] = NULL, [RV_OUTSIDE_LIST] = &run_each_kind, [RV_OUTSIDE_PIPELINE] = &run_inner_kind};
RV_EACH_HAS_ROW(outside_kinds, RV_N_OUTSIDES);

int rv_run_new(const struct rv_pipeline *pipeline, const struct rv_catalog *catalog, const struct rv_run_opts *opts,
               rv_envelope *env, rv_run **out, rv_err **err)
{
    if (!pipeline->is_sound) {
        rv_envelope_free(env);
        return RV_FAIL(err, RV_E_STATE, "pipeline \"%s\" has errors and cannot be run", pipeline->name);
    }
    rv_run *run = calloc(1, sizeof *run);
    if (!run) {
        rv_envelope_free(env);
        return RV_FAIL(err, RV_E_NOMEM, "make a run of pipeline \"%s\"", pipeline->name);
    }
    run->main = (struct branch){.env = env, .asked_by = -1};
    run->place = RV_VISIT_PLACE_NONE;
    run->pipeline = pipeline;
    run->opts = *opts;
    run->env = env;
    run->status = RV_RUN_READY;
    run->bound = RV_REASON_NONE;
    run->shared = (struct rv_visit_shared){
        .pipeline = pipeline,
        .catalog = catalog ? *catalog : rv_catalog_empty,
        .rules = opts->rules == RV_RULES_NEWEST ? RV_RULES_LAST : opts->rules,
        .scripted_stages = opts->scripted_stages,
        .scripted_inner = opts->scripted_inner,
        .is_script_blind = opts->is_script_blind,
        .use_mocks = opts->use_mocks || pipeline->mock,
        .emits = opts->emits,
        .next_call_id = opts->first.next_call_id > 0 ? opts->first.next_call_id : 1,
        .next_seq = opts->first.next_seq > 0 ? opts->first.next_seq : 1,
        .spent_micro_usd = rv_envelope_fields(env)->usage.cost_micro_usd,
        .conversation = opts->conversation,
        .outside = outside_kinds,
    };
    *out = run;
    return 0;
}

void rv_run_free(rv_run *run)
{
    if (!run)
        return;
    run_calls_fini(&run->calls);
    run_branch_fini(&run->main);
    run_totals_fini(&run->totals);
    free(run->halt.text);
    json_object_put(run->shared.withdrawn);
    run_parallel_fini(run);
    free(run->failed_stage);
    free(run->failed_type);
    rv_visit_shared_fini(&run->shared);
    rv_envelope_free(run->env);
    free(run);
}

/* An end as interrupted was a pause: go on as if new, with the same envelope and numbers. */
static void rearm(rv_run *run)
{
    rv_envelope_set_branches(run->env, NULL); /* the run has them */
    if (run->main.opened) {                   /* the branches stay as they are */
        run->finished = false;
        return;
    }
    run_work_free(run->main.work);
    run->main.work = NULL;
    run_parallel_fini(run);
    run->started = run->finished = run->parallel = run->cancelled = false;
    run->bound = RV_REASON_NONE;
}

static bool is_paused(const rv_run *run)
{
    return run->finished && run->status == RV_RUN_INTERRUPTED;
}

static int advance(rv_run *run, struct rv_effects *out, rv_err **err)
{
    if (run->finished)
        return 0;
    if (run->parallel)
        return run_parallel(run, out, err);
    if (!run->main.opened)
        run_branch_ready(run, &run->main);
    return run_go(run, out, err);
}

/* The visit that waits for a call, or NULL: its answer is not wanted any more. */
static rv_work *waiting_work(rv_run *run, int64_t call_id)
{
    while (run->first_open < run->n_begun && run_work_is_done(run->batch_stages[run->batch[run->first_open]].work))
        run->first_open++; /* mostly answered in order: do not look at the finished ones again */
    for (size_t i = run->first_open; i < run->n_begun; i++) {
        rv_work *w = run->batch_stages[run->batch[i]].work;
        if (!run_work_is_done(w) && run_work_waits_for(w, call_id))
            return w;
    }
    return NULL;
}

bool run_waits_for(rv_run *run, int64_t call_id)
{
    if (run->finished)
        return false;
    return run->parallel ? waiting_work(run, call_id) != NULL : run_calls_branch(run, call_id) != NULL;
}

static int on_done_of_branch(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    struct branch *b = run_calls_branch(run, ev->call_id);
    struct left left = run_left(run);
    size_t from = out->n;

    if (!b)
        return 0;
    int rc = run_work_on(b->work, ev, out, err);
    if (rc == 0 && !run_work_waits_for(b->work, ev->call_id))
        run_calls_answered(run, ev->call_id);
    if (rc == 0)
        rc = run_calls_note(run, b, out, from, err);
    if (rc < 0)
        return rc;
    run_branch_worked(run, b, left);
    if (run_work_is_done(b->work))
        run_branch_ready(run, b);
    return run_go(run, out, err);
}

int run_on_done(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    if (!run->parallel)
        return on_done_of_branch(run, ev, out, err);
    rv_work *w = waiting_work(run, ev->call_id);
    if (!w)
        return 0;
    int rc = run_work_on(w, ev, out, err);
    if (rc < 0)
        return rc;
    run->n_done += run_work_is_done(w);
    return advance(run, out, err);
}

/* Give up all that is under way or waits. */
static int give_up_all(rv_run *run, const char *why, json_object *partials, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    if (run->main.work || run->main.opened)
        rc = run_branch_cancel(run, &run->main, why, partials, out, err);
    if (run->parallel && run->n_batch > 0) {
        for (size_t i = 0; i < run->n_begun && rc == 0; i++) {
            rv_work *w = run->batch_stages[run->batch[i]].work;
            if (!run_work_is_done(w))
                rc = run_work_cancel(w, why, partials, out, err);
        }
        run->n_done = run->n_begun;
        run->cancelled = true;
        if (rc == 0)
            rc = run_batch_merge(run, out, err);
    }
    return rc == 0 && !run->finished ? run_give_up_waiting(run, &run->main, why, out, err) : rc;
}

int run_cancel(rv_run *run, const char *why, json_object *partials, struct rv_effects *out, rv_err **err)
{
    int rc = give_up_all(run, why, partials, out, err);

    return rc < 0 || run->finished ? rc : run_fail(run, RV_RUN_CANCELLED, RV_REASON_USER_CANCELLED, why, out, err);
}

/* The engine cannot go on with the run. It ends even if what is under way cannot be given up for the same reason. */
static int end_failed(rv_run *run, rv_str why, struct rv_effects *out, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    enum rv_failure code = run->shared.rules >= RV_RULES_3 ? RV_FAILURE_ENGINE_FAILED : RV_FAILURE_NONE;
    char *text = rv_str_dup(why);

    int rc =
        text ? give_up_all(run, text, NULL, out,
                           RV_CODE_ONLY("the run ends with the error that began this; want of memory is told below"))
             : RV_E_NOMEM;
    if (rc == RV_E_NOMEM)
        rc = RV_FAIL(err, RV_E_NOMEM, "end a run");
    else if (!run->finished)
        rc = rv_envelope_add_error(
            run->env, &(const struct rv_error_entry){rv_str_of(f->current_stage), why, rv_error_execution, code},
            out->now_us, err);
    if (rc == 0 && !run->finished)
        rc = run_fail(run, RV_RUN_FAILED, RV_REASON_TOOL_FAILED, text, out, err);
    free(text);
    return rc;
}

static int on_cancel(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = 8 * RV_LLM_MAX_REPLY, .what = "what had come of model calls"};
    json_object *partials = NULL;

    if (ev->failed)
        return end_failed(run, ev->error, out, err);
    int rc = ev->reply.len > 0 ? rv_json_parse(ev->reply, &opts, &partials, err) : 0;

    if (rc == 0 && partials && !json_object_is_type(partials, json_type_array))
        rc = RV_FAIL(err, RV_E_INVALID, "what had come of model calls must be a list");
    if (rc == 0)
        rc = run_cancel(run, "cancelled by the caller", partials, out, err);
    json_object_put(partials);
    return rc;
}

static int recover_branch(rv_run *run, struct branch *b, int64_t gap_us, struct rv_effects *out, bool *ended,
                          rv_err **err)
{
    struct left left = run_left(run);
    size_t from = out->n;

    int rc = run_work_recover(b->work, gap_us, out, err);
    if (rc == 0)
        rc = run_calls_note(run, b, out, from, err);
    if (rc < 0)
        return rc;
    run_branch_worked(run, b, left);
    if (run_work_is_done(b->work)) {
        *ended = true;
        run_branch_ready(run, b);
    }
    return 0;
}

/* The process that replays the run makes the pending calls again; this function corrects time and cost. */
int run_recover(rv_run *run, int64_t gap_us, struct rv_effects *out, rv_err **err)
{
    bool ended = false;
    int rc = 0;

    for (struct branch *b = &run->main; b && rc == 0; b = run_branch_next(b))
        if (b->work && !run_work_is_done(b->work))
            rc = recover_branch(run, b, gap_us, out, &ended, err);
    for (size_t i = 0; i < run->n_begun && rc == 0; i++) {
        rv_work *w = run->batch_stages[run->batch[i]].work;
        if (!w || run_work_is_done(w))
            continue;
        rc = run_work_recover(w, gap_us, out, err);
        run->n_done += run_work_is_done(w);
        ended = ended || run_work_is_done(w);
    }
    return rc == 0 && ended ? advance(run, out, err) : rc;
}

/* An answer, already checked, to the question of a branch. Other branches may be under way. */
static int answer_branch(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    if (is_paused(run) || !run->started) {
        int rc = questions_hide(run, err);
        if (rc < 0)
            return rc;
        rearm(run);
        rc = begin(run, true, out, err);
        if (rc < 0)
            return rc;
    }
    int rc = questions_answer(run, &ev->response, out, err);
    return rc < 0 || run->finished ? rc : run_go(run, out, err);
}

int rv_run_check_answer(rv_run *run, const struct rv_response *r, int64_t now_us, rv_err **err)
{
    return run->main.opened ? questions_check(run, r, now_us, err) : run_check_answer(run, &run->main, r, now_us, err);
}

/* After a restart or an answer: the branches that the envelope tells of, before anything looks at them. */
static int load_branches(rv_run *run, const struct rv_event *ev, rv_err **err)
{
    bool goes_on = ev->kind == RV_EVENT_ANSWER || ev->kind == RV_EVENT_CANCEL ||
                   (ev->kind == RV_EVENT_START && run->opts.continues);

    if (run->started || run->main.opened || !goes_on || rv_envelope_fields(run->env)->terminated)
        return 0;
    return run_load_tree(run, err);
}

/* A run that waits for people hears their answers and a cancellation; *is_heard false: the event says nothing to it. */
static int wake(rv_run *run, const struct rv_event *ev, bool *is_heard, rv_err **err)
{
    bool waits = is_paused(run);
    int rc = 0;

    if (ev->kind == RV_EVENT_ANSWER) {
        rc = questions_refuse_withdrawn(run, &ev->response, err);
        if (rc == 0 && waits)
            rc = run_check_answer(run, &run->main, &ev->response, ev->now_us, err);
    } else if (run->main.opened && (waits || !run->started)) {
        *is_heard = !waits || ev->kind == RV_EVENT_CANCEL;
        waits = *is_heard;
        if (*is_heard)
            rc = questions_hide(run, err);
    } else {
        waits = waits && ev->kind == RV_EVENT_CANCEL;
    }
    if (rc == 0 && waits)
        rearm(run);
    return rc;
}

/* Does it fit where the run is? *is_heard false: it came too late, and that is not a fault. */
static int check_order(const rv_run *run, const struct rv_event *ev, bool *is_heard, rv_err **err)
{
    bool begins = ev->kind == RV_EVENT_START || ev->kind == RV_EVENT_ANSWER;

    if (run->finished && begins)
        return RV_FAIL(err, RV_E_STATE, "the run is over");
    if (run->started && begins)
        return RV_FAIL(err, RV_E_STATE, "the run has begun already");
    if (!run->finished && !run->started && !begins && ev->kind != RV_EVENT_CANCEL)
        return RV_FAIL(err, RV_E_STATE, "a run begins with a start or an answer");
    *is_heard = *is_heard && !run->finished;
    return 0;
}

static int hear(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    int rc;

    switch (ev->kind) {
    case RV_EVENT_START:
    case RV_EVENT_ANSWER:
        rc = ev->kind == RV_EVENT_START ? start(run, out, err) : answer(run, &ev->response, out, err);
        return rc < 0 ? rc : advance(run, out, err);
    case RV_EVENT_LLM_DONE:
    case RV_EVENT_TOOL_DONE:
    case RV_EVENT_HOOK_DONE:
    case RV_EVENT_TIMER:
        return run_on_done(run, ev, out, err);
    case RV_EVENT_CANCEL:
        return on_cancel(run, ev, out, err);
    case RV_EVENT_RECOVER:
        return run_recover(run, ev->now_us > run->last_us ? ev->now_us - run->last_us : 0, out, err);
    }
    return RV_FAIL(err, RV_E_INVALID, "unknown event kind %d", (int)ev->kind);
}

static int step(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    bool is_heard = true;
    int rc = load_branches(run, ev, err);

    if (rc == 0 && ev->kind == RV_EVENT_ANSWER && run->main.opened) {
        rc = questions_check(run, &ev->response, ev->now_us, err);
        return rc < 0 ? rc : answer_branch(run, ev, out, err);
    }
    if (rc == 0)
        rc = wake(run, ev, &is_heard, err);
    if (rc == 0 && is_heard)
        rc = check_order(run, ev, &is_heard, err);
    return rc == 0 && is_heard ? hear(run, ev, out, err) : rc;
}

int rv_run_step(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    out->now_us = ev->now_us;
    run->shared.blocked = run->shared.rules >= RV_RULES_2 ? ev->blocked : NULL;
    int rc = step(run, ev, out, err);
    if (rc == 0 && !run->is_inner)
        rc = run_look_for_money(run, out, err);
    run->shared.blocked = NULL;
    if (rc == 0 && ev->now_us > run->last_us)
        run->last_us = ev->now_us;
    if (rc == 0 && out->rc < 0)
        rc = RV_FAIL(err, out->rc, "collect the effects of a step of pipeline \"%s\"", run->pipeline->name);
    return rc;
}

bool rv_run_is_finished(const rv_run *run)
{
    return run->finished;
}

bool rv_run_has_begun(const rv_run *run)
{
    return run->started;
}

struct rv_run_counters rv_run_counters(const rv_run *run)
{
    return (struct rv_run_counters){run->shared.next_call_id, run->shared.next_seq};
}

enum rv_run_status rv_run_status(const rv_run *run)
{
    return run->status;
}

const rv_err *rv_run_failure(const rv_run *run)
{
    return run->shared.failure;
}

const rv_envelope *rv_run_envelope(const rv_run *run)
{
    return run->env;
}

void rv_run_set_saves(rv_run *run, enum rv_saves saves)
{
    run->opts.saves = saves;
}

void rv_run_set_emits(rv_run *run, bool emits)
{
    run->shared.emits = emits;
}

bool rv_run_checks_breakers(const rv_run *run)
{
    return run->shared.rules >= RV_RULES_2;
}

rv_envelope *rv_run_steal_envelope(rv_run *run)
{
    rv_envelope *env = run->env;
    run->env = NULL;
    return env;
}
