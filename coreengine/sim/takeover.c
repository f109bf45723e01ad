/* What follows the death of a process: its lease ends, another one takes the run over, replays the journal, and goes on
 * as a real one does. The dead one may wake up. */
#include "coreengine/sim/sim_internal.h"

#include <string.h>

#define OFF_US (20 * SIM_SECOND_US) /* until another process takes over: longer than a lease */

static const struct rv_store_scope scope = {0};

/* As long as its lease lasts, a dead process looks like a slow one. */
static int try_too_early(struct sim_seed *s, rv_err **err)
{
    struct rv_run_row row = {0};
    rv_journal *thief = NULL;

    int rc = rv_store_get_run(s->store, &scope, s->run_id, &row, err);
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_REPLAY, rc, "the run is not in the store", err);
    bool is_leased = row.owner && s->now_us < row.lease_until_us && !rv_run_status_is_final(row.status);
    rv_run_row_fini(&row);
    if (!is_leased)
        return 0;
    rc = rv_journal_open(s->store, &scope, s->run_id, "somebody else", s->now_us, 0, &thief, NULL);
    if (rc == 0)
        sim_break(s, RV_SIM_KEEPS_OWNER, "a run was taken over while the lease of its owner lasted");
    rv_journal_free(thief);
    return rc == RV_E_NOMEM ? RV_FAIL(err, rc, "take a run over") : 0;
}

int sim_process_crash(struct sim_seed *s, rv_err **err)
{
    int rc = try_too_early(s, err);

    if (rc < 0)
        return rc;
    sim_world_orphaned(s);
    sim_calls_drop(s);
    bool wakes = s->journal && !s->ghost && sim_chance(&s->tape, s->rates[RV_SIM_ZOMBIE]);
    if (wakes) {
        s->ghost = s->journal;
    } else {
        sim_process_forget(s, s->journal);
    }
    s->journal = NULL;
    sim_process_drop_run(s);
    rv_effects_clear(&s->fx);
    s->now_us += OFF_US + (int64_t)sim_draw(&s->tape, 4) * 30 * SIM_SECOND_US;
    return s->is_broken ? 0 : sim_process_open(s, err);
}

/* A process that was taken for dead is refused. */
static int wake_ghost(struct sim_seed *s, rv_err **err)
{
    const struct rv_event ev = {.kind = RV_EVENT_CANCEL, .now_us = s->now_us};
    const struct rv_effects nothing = {0};
    rv_journal *ghost = s->ghost;

    if (!ghost || !s->run)
        return 0;
    s->ghost = NULL;
    sim_injected(s, RV_SIM_ZOMBIE);
    int rc = rv_journal_step(ghost, &ev, &nothing, s->run, NULL);
    rv_journal_free(ghost);
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, rc, "write as a dead process");
    sim_say(s, "the process that was taken for dead writes a step: %s", rc < 0 ? rv_code_text(rc) : "accepted");
    if (rc == 0)
        sim_break(s, RV_SIM_KEEPS_OWNER, "a process whose lease was taken over wrote a step");
    else if (rc != RV_E_STATE)
        sim_break(s, RV_SIM_KEEPS_OWNER, "a process whose lease was taken over is refused with \"%s\"",
                  rv_code_text(rc));
    return 0;
}

/* --- taking over --- */

static bool is_unknown(const struct rv_effect *e)
{
    return e->kind == RV_EFFECT_CALL_TOOL && e->effect_class == RV_EFFECT_NON_IDEMPOTENT;
}

/* Calls with unknown outcome: safe ones and idempotent ones are made again. */
static int redo(struct sim_seed *s, struct rv_effects *open, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < open->n && rc == 0 && !s->is_broken; i++)
        if (!is_unknown(&open->items[i]))
            rc = sim_process_perform(s, &open->items[i], err);
    return rc;
}

/* The answer of a tool's probe, if it has one: 1 it happened, 0 it did not, -1 it cannot tell. */
static int ask_probe(struct sim_seed *s, const struct rv_effect *e)
{
    const struct rv_catalog *c = s->subject->catalog;
    const struct rv_tool_info *info = c ? c->tool(c->self, rv_str_of(e->name)) : NULL;
    struct sim_key *k = sim_world_find(&s->world, e->key);

    if (!e->key || !info || !info->has_probe || sim_draw(&s->tape, 4) == 3)
        return -1;
    return k && k->effects > 0;
}

/* For a call that must not be made twice, ask its probe or a person. Each answer is a separate step, in which the
 * process may die again: the calls that are still unknown are then found again. */
static int find_out(struct sim_seed *s, struct rv_effects *open, rv_err **err)
{
    int64_t me = s->n_owners;
    int rc = 0;

    for (size_t i = 0; i < open->n && rc == 0 && !s->is_broken && s->n_owners == me; i++) {
        struct rv_effect *e = &open->items[i];
        struct rv_event ev = {.kind = RV_EVENT_TOOL_DONE, .now_us = s->now_us, .call_id = e->call_id};
        if (!is_unknown(e))
            continue;
        int happened = ask_probe(s, e);
        if (happened == 0) {
            struct sim_key *k = sim_world_find(&s->world, e->key);
            if (k)
                k->released = true;
            sim_say(s, "the probe of %s: call %lld did not happen", e->name, (long long)e->call_id);
            rc = sim_process_perform(s, e, err);
            continue;
        }
        ev.unknown = happened < 0;
        ev.reply = ev.unknown ? (rv_str){NULL, 0} : RV_STR_LIT("{}");
        sim_say_event(s, &ev, NULL);
        rc = sim_process_step(s, &ev, NULL, err);
    }
    return rc;
}

static int replay(struct sim_seed *s, rv_err **err)
{
    struct rv_replay_opts opts = {
        .pipeline = s->subject->pipeline, .catalog = s->subject->catalog, .on_step = sim_ledger_compare, .self = s};

    s->ledger.at = 0;
    int rc = rv_journal_replay(s->store, &scope, s->run_id, &opts, &s->replayed, err);
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_REPLAY, rc, "the journal can not be replayed", err);
    s->run = s->replayed.run;
    s->replayed.run = NULL;
    if (s->replayed.last_us > s->now_us)
        s->now_us = s->replayed.last_us;
    if (s->ledger.at != s->ledger.n)
        sim_break(s, RV_SIM_KEEPS_REPLAY, "of %zu journaled steps recovery knows %zu", s->ledger.n, s->ledger.at);
    if (!s->is_broken)
        sim_watch_recovered(s, &s->replayed.open);
    if (s->tamper && s->tamper->after_replay && !s->is_broken)
        return s->tamper->after_replay(s->tamper->self, s, &s->replayed, err);
    return 0;
}

/* The time without an owner does not count; deadlines move. */
static int recover(struct sim_seed *s, struct rv_effects *open, rv_err **err)
{
    const struct rv_event ev = {.kind = RV_EVENT_RECOVER, .now_us = s->now_us};
    int64_t gap_us = s->now_us - s->last_event_us;

    for (size_t i = 0; i < open->n; i++)
        if (open->items[i].deadline_us)
            open->items[i].deadline_us += gap_us;
    sim_say_event(s, &ev, NULL);
    return sim_process_step(s, &ev, NULL, err);
}

static int go_on(struct sim_seed *s, rv_err **err)
{
    const struct rv_event start = {.kind = RV_EVENT_START, .now_us = s->now_us};
    struct rv_effects open = s->replayed.open;
    int64_t me = s->n_owners;

    if (s->replayed.n_events == 0) {
        sim_say_event(s, &start, NULL);
        return sim_process_step(s, &start, NULL, err);
    }
    if (rv_run_is_finished(s->run))
        return 0;
    s->replayed.open = (struct rv_effects){0}; /* the steps below may replace what was replayed */
    int rc = recover(s, &open, err);
    if (rc == 0 && s->n_owners == me) /* else it died again, and its successor has done the rest */
        rc = redo(s, &open, err);
    if (rc == 0 && s->n_owners == me)
        rc = find_out(s, &open, err);
    rv_effects_fini(&open);
    return rc;
}

int sim_process_open(struct sim_seed *s, rv_err **err)
{
    struct rv_run_row row = {0};

    if (s->n_owners > SIM_MAX_PROCESSES) {
        s->is_parked = true;
        return 0;
    }
    sim_process_next_owner(s);
    s->tally->n_recoveries++;
    sim_process_drop_run(s);
    int rc = rv_store_get_run(s->store, &scope, s->run_id, &row, err);
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_REPLAY, rc, "the run is not in the store", err);
    bool is_over = rv_run_status_is_final(row.status);
    rv_run_row_fini(&row);
    if (!is_over) /* else there is nothing to own: its end is in the journal */
        rc = rv_journal_open(s->store, &scope, s->run_id, s->owner, s->now_us, 0, &s->journal, err);
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_OWNER, rc, "nobody can take the run over", err);
    sim_say(s, "%s takes the run over", s->owner);
    rc = replay(s, err);
    if (rc == 0 && !s->is_broken && !is_over)
        rc = wake_ghost(s, err);
    return rc < 0 || s->is_broken ? rc : go_on(s, err);
}
