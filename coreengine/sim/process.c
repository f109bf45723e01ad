/* The simulated process: feeds the core, journals each step before acting on it, and dies at any point of that. When
 * its lease ends, another process takes the run over, replays the journal, and goes on as a real one does. The dead one
 * may wake up. */
#include "coreengine/sim/sim_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- dying: the store refuses, at one point or altogether --- */

struct broken_store {
    const char *point; /* NULL: every one */
    bool fired;
};

static int refuse(void *self, const char *point, rv_err **err)
{
    struct broken_store *b = self;

    if (b->point && (b->fired || strcmp(b->point, point) != 0))
        return b->fired ? RV_FAIL(err, RV_E_IO, "the process is dead") : 0;
    b->fired = true;
    return RV_FAIL(err, RV_E_IO, "the process dies here");
}

/* Frees the resources of a dead process; none of its writes reaches the store. */
static void sim_process_forget(struct sim_seed *s, rv_journal *j)
{
    struct broken_store dead = {0};

    rv_store_set_faults(s->store, (struct rv_store_faults){refuse, &dead});
    rv_journal_free(j);
    rv_store_set_faults(s->store, (struct rv_store_faults){0});
}

static void sim_process_drop_run(struct sim_seed *s)
{
    rv_run_free(s->run);
    s->run = NULL;
    rv_replayed_fini(&s->replayed);
    s->replayed = (struct rv_replayed){0};
}

/* --- beginning --- */

static int new_envelope(struct sim_seed *s, rv_envelope **env, rv_err **err)
{
    struct sim_rng r = sim_rng_of(sim_bits(&s->tape));
    struct rv_rand_state state;
    json_object *metadata = json_object_new_object(), *input = sim_words(&r, 6);
    int rc = metadata && input ? 0 : RV_FAIL(err, RV_E_NOMEM, "begin a run");

    for (size_t i = 0; i < s->hints->n_metadata && rc == 0; i++) {
        json_object *v = NULL;
        if (sim_below(&r, 2) == 0)
            continue;
        rc = sim_any(&r, 1, &v, err);
        if (rc == 0)
            rc = rv_json_set_ref(metadata, s->hints->metadata[i], v, err);
        json_object_put(v);
    }
    const struct rv_context *who = &s->session.conversation.context;
    struct rv_envelope_seed seed = {.raw_input = rv_json_str(input),
                                    .metadata = metadata,
                                    .user_id = rv_str_of(who->user_id ? who->user_id : ""),
                                    .session_id = rv_str_of(who->session_id ? who->session_id : "")};
    if (rc == 0)
        rc = rv_envelope_new(&seed, rv_rand_seeded(&state, s->seed), s->now_us, env, err);
    json_object_put(metadata);
    json_object_put(input);
    return rc;
}

static void sim_process_next_owner(struct sim_seed *s)
{
    snprintf(s->owner, sizeof s->owner, "process %lld", (long long)++s->n_owners);
}

static int create(struct sim_seed *s, const rv_envelope *env, rv_err **err)
{
    char bundle[RV_STORE_HASH_MAX];
    struct rv_journal_start start = {
        .bundle = bundle,
        .pipeline = s->subject->pipeline,
        .begin = {.mode = s->opts->mode,
                  .use_mocks = s->opts->use_mocks,
                  .has_script = s->scripted != NULL,
                  .scripted = s->scripted,
                  .scripted_inner = s->scripted_inner,
                  .conversation = s->session.exists ? &s->session.conversation : NULL},
        .env = env,
        .owner = s->owner,
        .now_us = s->now_us,
    };
    int rc = rv_store_put_blob(s->store, RV_STR_LIT("{}"), bundle, err);

    return rc < 0 ? rc : rv_journal_create(s->store, &start, &s->journal, err);
}

int sim_process_begin(struct sim_seed *s, rv_err **err)
{
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    const struct rv_event start = {.kind = RV_EVENT_START, .now_us = s->now_us};
    rv_envelope *env = NULL;

    opts.mode = s->opts->mode;
    opts.use_mocks = s->opts->use_mocks;
    opts.scripted_stages = s->scripted;
    opts.scripted_inner = s->scripted_inner;
    sim_process_next_owner(s);
    int rc = sim_session_begin(s, err);
    if (rc == 0)
        rc = new_envelope(s, &env, err);
    if (rc < 0)
        return rc;
    if (s->session.exists)
        opts.conversation = &s->session.conversation;
    snprintf(s->run_id, sizeof s->run_id, "%s", rv_envelope_fields(env)->envelope_id);
    rc = create(s, env, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    rc = rv_run_new(s->subject->pipeline, s->subject->catalog, &opts, env, &s->run, err);
    sim_say_event(s, &start, NULL);
    return rc < 0 ? rc : sim_process_step(s, &start, NULL, err);
}

/* --- one step --- */

enum death { LIVES, DIES_BEFORE, DIES_AFTER, DIES_AMID, N_DEATHS };

/* Only those that die. */
static const enum rv_sim_fault deaths[N_DEATHS] = {
    [DIES_BEFORE] = RV_SIM_CRASH_BEFORE, [DIES_AFTER] = RV_SIM_CRASH_AFTER, [DIES_AMID] = RV_SIM_CRASH_AMID};

static enum death choose_death(struct sim_seed *s)
{
    uint32_t rates[] = {s->rates[RV_SIM_CRASH_BEFORE], s->rates[RV_SIM_CRASH_AFTER], s->rates[RV_SIM_CRASH_AMID]};
    enum death d = (enum death)sim_pick(&s->tape, rates, RV_COUNT(rates));

    if (d != LIVES)
        sim_injected(s, deaths[d]);
    if (d != LIVES && sim_asked_at_work(&s->watch))
        s->tally->n_agent_faults++;
    return d;
}

/* Checks what follows from a journaled step before its effects are performed. */
static int note_step(struct sim_seed *s, const struct rv_event *ev, int64_t seq, rv_err **err)
{
    int rc = sim_ledger_add(s, ev, seq, err);

    s->tally->n_steps++;
    s->last_event_us = ev->now_us;
    sim_say_effects(s);
    if (rc == 0)
        rc = sim_watch_step(s, ev, err);
    if (rc == 0 && !s->is_broken)
        rc = sim_session_step(s, err);
    if (rc == 0 && (ev->kind == RV_EVENT_LLM_DONE || ev->kind == RV_EVENT_TOOL_DONE || ev->kind == RV_EVENT_HOOK_DONE))
        rc = sim_world_finished(s, ev, err);
    if (rc == 0 && ev->kind == RV_EVENT_ANSWER)
        rc = sim_people_answered(s, ev, err);
    return rc;
}

static int sim_process_perform(struct sim_seed *s, struct rv_effect *e, rv_err **err)
{
    switch (e->kind) {
    case RV_EFFECT_CALL_LLM:
    case RV_EFFECT_CALL_TOOL:
    case RV_EFFECT_CALL_HOOK:
        return sim_call_start(s, e, err);
    case RV_EFFECT_ARM_TIMER:
        return sim_timer_start(s, e, err);
    case RV_EFFECT_CANCEL_CALL:
        sim_call_cancel(s, e->call_id);
        return 0;
    case RV_EFFECT_FINISH:
        sim_world_orphaned(s);
        sim_calls_drop(s);
        return 0;
    case RV_EFFECT_EMIT:
    case RV_EFFECT_SAVE:
    case RV_EFFECT_KEEP:
    case RV_EFFECT_ARTIFACT:
        break;
    }
    return 0;
}

static int act(struct sim_seed *s, size_t n, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0 && !s->is_broken; i++)
        rc = sim_process_perform(s, &s->fx.items[i], err);
    return rc;
}

/* Journal it, or die on the way. *durable: it is in the journal. */
static int journal(struct sim_seed *s, const struct rv_event *ev, enum death death, bool *durable, rv_err **err)
{
    struct broken_store dead = {.point = death == DIES_BEFORE ? "append" : "append.done"};

    if (death == DIES_BEFORE || death == DIES_AFTER)
        rv_store_set_faults(s->store, (struct rv_store_faults){refuse, &dead});
    int rc = rv_journal_step(s->journal, ev, &s->fx, s->run, err);
    rv_store_set_faults(s->store, (struct rv_store_faults){0});
    *durable = death != DIES_BEFORE;
    if (dead.fired && rc < 0 && rc != RV_E_NOMEM) { /* as meant */
        rv_err_free(rv_err_steal(err));
        return 0;
    }
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_CORE, rc, "a step cannot be journaled", err);
    if (dead.fired)
        sim_break(s, RV_SIM_KEEPS_REPLAY, "a step whose write failed counts as journaled");
    if (dead.point && !dead.fired && (death == DIES_BEFORE || death == DIES_AFTER))
        sim_break(s, RV_SIM_KEEPS_CORE, "a step was journaled without an append");
    return 0;
}

int sim_process_step(struct sim_seed *s, const struct rv_event *ev, int *refused, rv_err **err)
{
    bool durable = false;

    rv_effects_clear(&s->fx);
    int rc = rv_run_step(s->run, ev, &s->fx, err);
    if (rc < 0 && refused && rc != RV_E_NOMEM) {
        *refused = rc;
        sim_say(s, "refused: %s", rv_err_text(*err));
        rv_err_free(rv_err_steal(err));
        return 0;
    }
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_CORE, rc, "the core refuses an event", err);
    enum death death = choose_death(s);
    int64_t seq = rv_journal_seq(s->journal) + 1;
    rc = journal(s, ev, death, &durable, err);
    if (rc < 0 || s->is_broken)
        return rc;
    if (death == DIES_BEFORE)
        sim_say(s, "the process dies before that is journaled");
    if (durable)
        rc = note_step(s, ev, seq, err);
    if (rc < 0 || s->is_broken)
        return rc;
    if (death == DIES_AFTER)
        sim_say(s, "the process dies before it acts on that");
    if (death == LIVES || death == DIES_AMID) {
        size_t n = death == LIVES ? s->fx.n : sim_draw(&s->tape, (uint32_t)s->fx.n + 1);
        rc = act(s, n, err);
        if (death == DIES_AMID)
            sim_say(s, "the process dies when %zu of %zu effects are under way", n, s->fx.n);
    }
    if (rc < 0 || s->is_broken || death == LIVES)
        return rc;
    return sim_process_crash(s, err);
}

int sim_process_renew(struct sim_seed *s, rv_err **err)
{
    int64_t until_us = s->now_us + RV_LEASE_DEFAULT_US;
    int rc = rv_store_renew(s->store, s->owner, until_us, err);

    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_OWNER, rc, "the owner of a run cannot keep it", err);
    rv_journal_on_renewed(s->journal, until_us);
    return 0;
}

void sim_process_leave_store(struct sim_seed *s)
{
    sim_process_forget(s, s->journal);
    sim_process_forget(s, s->ghost);
    rv_store_rollback(s->store);
    s->journal = s->ghost = NULL;
}

void sim_process_fini(struct sim_seed *s)
{
    rv_effects_fini(&s->fx);
    sim_calls_drop(s);
    free(s->calls);
    sim_process_drop_run(s);
}

/* --- taking over --- */

#define OFF_US (20 * RV_US_PER_S) /* until another process takes over: longer than a lease */

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
    rc = rv_journal_open(s->store, &scope, s->run_id,
                         &(struct rv_journal_claim){.owner = "another process", .now_us = s->now_us}, &thief,
                         RV_CODE_ONLY("being refused is what is right; want of memory is told below"));
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
    s->now_us += OFF_US + (int64_t)sim_draw(&s->tape, 4) * 30 * RV_US_PER_S;
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
    int rc = rv_journal_step(ghost, &ev, &nothing, s->run,
                             RV_CODE_ONLY("the seed says the code, and a code that is not a refusal breaks a promise"));
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
        return sim_unexpected(s, RV_SIM_KEEPS_REPLAY, rc, "the journal cannot be replayed", err);
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
        rc = rv_journal_open(s->store, &scope, s->run_id,
                             &(struct rv_journal_claim){.owner = s->owner, .now_us = s->now_us}, &s->journal, err);
    if (rc < 0)
        return sim_unexpected(s, RV_SIM_KEEPS_OWNER, rc, "no process can take the run over", err);
    sim_say(s, "%s takes the run over", s->owner);
    rc = replay(s, err);
    if (rc == 0 && !s->is_broken && !is_over)
        rc = wake_ghost(s, err);
    return rc < 0 || s->is_broken ? rc : go_on(s, err);
}
