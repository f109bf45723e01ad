/* One seed: the loop of virtual time, from the first event to an end, with everything that may come between. */
#include "coreengine/sim/sim_internal.h"

#include <stdlib.h>
#include <string.h>

/* Which faults this run has, and how often: a few kinds at a time find more than all of them a little. */
static void choose_rates(struct sim_seed *s)
{
    static const uint32_t per_call[] = {0, 0, 0, 20, 100, 300}, per_step[] = {0, 0, 0, 10, 40, 120};
    static const uint32_t per_question[] = {0, 0, 0, 150, 300, 300}, cancels[] = {0, 0, 0, 0, 5, 40};

    for (int f = 0; f < RV_N_SIM_FAULTS; f++) {
        uint32_t level = sim_draw(&s->tape, RV_COUNT(per_call));
        const uint32_t *rates = f == RV_SIM_CANCEL          ? cancels
                                : f == RV_SIM_ZOMBIE        ? per_call
                                : f >= RV_SIM_CRASH_BEFORE  ? per_step
                                : f >= RV_SIM_PERSON_ABSENT ? per_question
                                                            : per_call;
        s->rates[f] = s->opts->faults & 1u << f ? rates[level] : 0;
    }
}

static void pass_time(struct sim_seed *s, int64_t until_us)
{
    if (until_us > s->now_us)
        s->now_us = until_us;
    for (size_t i = 0; i < s->n_calls; i++)
        if (s->calls[i].effect_us <= s->now_us && s->calls[i].outcome.takes_effect)
            sim_world_effect(s, &s->calls[i]);
}

static int deliver(struct sim_seed *s, rv_err **err)
{
    size_t at = sim_call_next(s);
    struct rv_event ev;

    pass_time(s, s->calls[at].due_us);
    int rc = s->is_broken ? 0 : sim_process_renew(s, err);
    if (rc < 0 || s->is_broken)
        return rc;
    struct sim_call c = sim_call_take(s, at, &ev);
    sim_say_event(s, &ev, &c);
    rc = sim_process_step(s, &ev, NULL, err);
    sim_call_fini(&c);
    return rc;
}

/* What had come of the model calls under way, as streams are cut off: of some nothing. */
static int put_partials(struct sim_seed *s, rv_buf *b, rv_err **err)
{
    rv_jw w = rv_jw_on(b);

    rv_jw_arr(&w);
    for (size_t i = 0; i < s->n_calls; i++) {
        if (s->calls[i].kind != RV_EFFECT_CALL_LLM || sim_draw(&s->tape, 2) == 0)
            continue;
        rv_jw_obj(&w);
        rv_jw_kv_int(&w, "call_id", s->calls[i].call_id);
        rv_jw_kv_text(&w, "text", "It is said that");
        rv_jw_obj_end(&w);
    }
    rv_jw_arr_end(&w);
    return rv_buf_check(b, "what had come", err);
}

static int cancel(struct sim_seed *s, rv_err **err)
{
    struct rv_event ev = {.kind = RV_EVENT_CANCEL};
    rv_buf partials = RV_BUF_INIT(SIM_MAX_TEXT);

    sim_injected(s, RV_SIM_CANCEL);
    if (rv_run_is_finished(s->run)) { /* it waits: a process opens it to cancel it */
        rv_journal_free(s->journal);
        s->journal = NULL;
        int rc = sim_process_open(s, err);
        if (rc < 0 || s->is_broken || s->is_parked || !s->journal)
            return rc;
    }
    ev.now_us = s->now_us;
    s->tally->n_agent_faults += sim_asked_at_work(&s->watch);
    int rc = put_partials(s, &partials, err);
    if (partials.len > 2)
        ev.reply = rv_buf_str(&partials);
    sim_say_event(s, &ev, NULL);
    if (rc == 0)
        rc = sim_process_step(s, &ev, NULL, err);
    rv_buf_fini(&partials);
    return rc;
}

/* What happens next. */
static int turn(struct sim_seed *s, rv_err **err)
{
    bool waits = rv_run_is_finished(s->run); /* interrupted: calls are over, a person is to come */
    uint32_t rates[] = {s->rates[RV_SIM_CANCEL], s->rates[RV_SIM_CRASH_IDLE]};
    size_t what = sim_pick(&s->tape, rates, RV_COUNT(rates));

    if (what == 1)
        return cancel(s, err);
    if (waits)
        return sim_people(s, err);
    if (s->n_calls == 0) {
        sim_break(s, RV_SIM_KEEPS_ENDS, "the run is %s and nothing is under way that it could wait for",
                  rv_run_status_text(rv_run_status(s->run)));
        return 0;
    }
    if (what == 2) {
        int64_t due = s->calls[sim_call_next(s)].due_us;
        sim_injected(s, RV_SIM_CRASH_IDLE);
        s->tally->n_agent_faults += sim_asked_at_work(&s->watch);
        pass_time(s, s->now_us + (due - s->now_us) / 2);
        sim_say(s, "the process dies with %zu calls under way", s->n_calls);
        return s->is_broken ? 0 : sim_process_crash(s, err);
    }
    return deliver(s, err);
}

static bool is_over(const struct sim_seed *s)
{
    return rv_run_is_finished(s->run) && rv_run_status(s->run) != RV_RUN_INTERRUPTED;
}

static int run_seed(struct sim_seed *s, rv_err **err)
{
    int64_t max = s->opts->max_steps > 0 ? s->opts->max_steps : RV_SIM_MAX_STEPS;

    choose_rates(s);
    int rc = sim_process_begin(s, err);
    while (rc == 0 && !s->is_broken && !s->is_parked && s->tape.rc == 0 && !is_over(s)) {
        if (s->n_steps++ >= max) {
            sim_break(s, RV_SIM_KEEPS_ENDS, "the run has not ended after %lld events", (long long)max);
            break;
        }
        rc = turn(s, err);
    }
    if (rc == 0 && s->tape.rc < 0)
        rc = RV_FAIL(err, s->tape.rc, "keep the decisions of a seed");
    if (rc == 0 && !s->is_broken)
        rc = sim_ledger_verify(s, err);
    if (rc == 0 && !s->is_broken)
        rc = sim_session_verify(s, err);
    if (rc == 0 && !s->is_broken && s->run) {
        s->tally->by_status[rv_run_status(s->run)]++;
    }
    return rc;
}

/* --- set up and taken down --- */

int sim_once(const struct sim_setup *setup, const struct sim_try *of, struct sim_seed *s, rv_err **err)
{
    memset(s, 0, sizeof *s);
    s->opts = setup->opts;
    s->subject = setup->subject;
    s->hints = setup->hints;
    s->proof = &setup->proof;
    s->tamper = setup->tamper;
    s->scripted = setup->scripted;
    s->scripted_inner = setup->scripted_inner;
    s->store = setup->store;
    s->tally = of->tally;
    s->seed = of->seed;
    s->trace = of->trace;
    s->now_us = SIM_T0_US;
    s->broken = RV_BUF_INIT(SIM_MAX_BROKEN);
    s->ledger.text = RV_BUF_INIT(RV_STATE_MAX_BYTES);
    rv_hash_init(&s->ledger.hash);
    sim_tape_init(&s->tape, of->seed);
    if (of->script)
        sim_tape_replay(&s->tape, of->script, of->n_script);
    if (s->subject->script)
        rv_script_rewind(s->subject->script);
    int rc = sim_watch_init(&s->watch, s->subject->pipeline, err);
    if (rc == 0)
        rc = rv_store_begin(s->store, err);
    if (rc < 0)
        return rc;
    rc = run_seed(s, err);
    sim_process_leave_store(s);
    return rc;
}

void sim_seed_fini(struct sim_seed *s)
{
    sim_process_fini(s);
    sim_tape_fini(&s->tape);
    sim_world_fini(&s->world);
    sim_watch_fini(&s->watch);
    sim_session_fini(&s->session);
    free(s->ledger.entries);
    rv_buf_fini(&s->ledger.text);
    for (size_t i = 0; i < s->n_answered; i++)
        free(s->answered[i]);
    free(s->answered);
    rv_buf_fini(&s->broken);
    memset(s, 0, sizeof *s);
}
