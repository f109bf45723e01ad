/* People: they answer, at times late, wrongly, twice, or not at all. Each answer comes through another process. */
#include "coreengine/sim/sim_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_WAITING 64 /* interrupts of one run that are looked at: runs of the simulation ask fewer at a time */

static const int64_t patience_us[] = {5 * RV_US_PER_S, 60 * RV_US_PER_S, 3600 * RV_US_PER_S};

/* One interrupt that waits; texts borrow from the run. */
struct waiting {
    enum rv_interrupt_kind kind;
    const char *id;
    json_object *data;
    int64_t expires_us; /* 0: never */
};

static size_t find_waiting(const rv_envelope *env, struct waiting *w)
{
    struct rv_interrupt in = rv_envelope_interrupt(env);
    const char *text = NULL;
    size_t n = 0;

    if (rv_envelope_has_interrupt(env))
        w[n++] = (struct waiting){in.kind, in.id, in.data, in.expires_at_us};
    for (size_t i = 0; i < rv_envelope_n_queued(env) && n < MAX_WAITING; i++) {
        json_object *entry = rv_envelope_queued_at(env, i);
        struct waiting q = {.kind = RV_INTERRUPT_SYSTEM_ERROR};
        if (!entry || !rv_json_get_text(entry, "id", &q.id))
            continue;
        if (rv_json_get_text(entry, "kind", &text))
            RV_IGNORE(rv_interrupt_kind_of(rv_str_of(text), &q.kind, NULL), "an unknown kind keeps the general one");
        if (rv_json_get_text(entry, "expires_at", &text))
            RV_IGNORE(rv_time_parse(rv_str_of(text), &q.expires_us, NULL), "then it never does");
        q.data = rv_json_get_obj(entry, "data");
        w[n++] = q;
    }
    return n;
}

/* A person checks whether the call happened and answers truthfully. */
static void say_outcome(struct sim_seed *s, const struct waiting *w, struct rv_response *r)
{
    const char *key = NULL, *started = "(nothing)";
    char asked[RV_TIME_MAX];
    struct sim_key *k = rv_json_get_text(w->data, "idempotency_key", &key) ? sim_world_find(&s->world, key) : NULL;

    if (!key)
        sim_break(s, RV_SIM_KEEPS_ANSWERS, "a question about a call does not say with which key it was made");
    if (k)
        rv_time_format(k->asked_us, asked);
    if (k && (!rv_json_get_text(w->data, "started_at", &started) || strcmp(started, asked) != 0))
        sim_break(s, RV_SIM_KEEPS_ANSWERS, "a question about a call says that it was made at %s, and it was at %s",
                  started, asked);
    if (sim_draw(&s->tape, 8) == 7)
        r->decision = RV_STR_LIT("fail");
    else if (k && k->effects > 0)
        r->decision = RV_STR_LIT("happened");
    else
        r->decision = RV_STR_LIT("not_happened");
}

/* One of the choices of a question, at times with a text. */
static void choose(struct sim_seed *s, const struct waiting *w, struct rv_response *r)
{
    json_object *options = rv_json_get_arr(w->data, RV_ASK_OPTIONS);
    size_t n = options ? json_object_array_length(options) : 0;

    if (rv_ask_takes_text(w->data) || sim_draw(&s->tape, 3) == 0)
        r->text = RV_STR_LIT("as I said");
    if (n > 0)
        r->choice = rv_json_str(json_object_array_get_idx(options, sim_draw(&s->tape, (uint32_t)n)));
}

static void good_answer(struct sim_seed *s, const struct waiting *w, struct rv_response *r)
{
    static const char *const decisions[] = {"approve", "reject", "modify"};

    *r = (struct rv_response){.interrupt_id = rv_str_of(w->id)};
    if (rv_interrupt_asks_outcome(w->kind, w->data)) {
        say_outcome(s, w, r);
        return;
    }
    if (rv_interrupt_is_ask(w->data)) {
        choose(s, w, r);
        return;
    }
    uint32_t how = sim_draw(&s->tape, 3);
    switch (w->kind) {
    case RV_INTERRUPT_CLARIFICATION:
        r->text = how ? RV_STR_LIT("the second one") : RV_STR_LIT("PostgreSQL");
        break;
    case RV_INTERRUPT_CONFIRMATION:
        r->has_approved = true;
        r->approved = how != 1;
        break;
    case RV_INTERRUPT_AGENT_REVIEW:
        r->decision = rv_str_of(decisions[how]);
        if (how == 2)
            r->text = RV_STR_LIT("shorter, please");
        break;
    case RV_INTERRUPT_CHECKPOINT:
    case RV_INTERRUPT_RESOURCE_EXHAUSTED:
    case RV_INTERRUPT_TIMEOUT:
    case RV_INTERRUPT_SYSTEM_ERROR:
    case RV_N_INTERRUPT:
        r->text = RV_STR_LIT("go on");
        break;
    }
}

/* The same, or no answer is wanted any more. */
static void answer_or_cancel(struct sim_seed *s, const struct waiting *w, struct rv_response *r)
{
    if (sim_draw(&s->tape, 16) != 15) {
        good_answer(s, w, r);
        return;
    }
    *r = (struct rv_response){
        .interrupt_id = rv_str_of(w->id), .cancelled = true, .text = RV_STR_LIT("not needed any more")};
}

/* An answer that must be refused, and change nothing. */
static int refused_answer(struct sim_seed *s, const struct rv_response *r, const char *why, rv_err **err)
{
    const struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = s->now_us, .response = *r};
    rv_buf before = RV_BUF_INIT(RV_STATE_MAX_BYTES), after = RV_BUF_INIT(RV_STATE_MAX_BYTES);
    struct rv_effects fx = {0};
    rv_err *said = NULL;

    sim_say_event(s, &ev, NULL);
    rv_envelope_write_state(rv_run_envelope(s->run), &before);
    int rc = rv_run_step(s->run, &ev, &fx, &said);
    rv_envelope_write_state(rv_run_envelope(s->run), &after);
    bool no_memory = rc == RV_E_NOMEM || before.rc < 0 || after.rc < 0;
    if (rc == 0)
        sim_break(s, RV_SIM_KEEPS_ANSWERS, "an answer %s is accepted", why);
    else if (!no_memory && (fx.n > 0 || !rv_str_eq(rv_buf_str(&before), rv_buf_str(&after))))
        sim_break(s, RV_SIM_KEEPS_ANSWERS, "an answer %s is refused and changes something", why);
    else
        sim_say(s, "refused: %s", rv_err_text(said));
    rv_err_free(said);
    rv_effects_fini(&fx);
    rv_buf_fini(&before);
    rv_buf_fini(&after);
    return no_memory ? RV_FAIL(err, RV_E_NOMEM, "answer an interrupt") : 0;
}

static int wrong_answer(struct sim_seed *s, const struct waiting *w, rv_err **err)
{
    struct rv_response r = {.interrupt_id = rv_str_of(w->id)};
    bool needs = rv_interrupt_rule(w->kind).needs_response;

    sim_injected(s, RV_SIM_PERSON_WRONG);
    if (sim_draw(&s->tape, 2) || !needs) {
        r.interrupt_id = RV_STR_LIT("int_of_somebody_else");
        r.text = RV_STR_LIT("hello");
        r.decision = RV_STR_LIT("approve");
        r.has_approved = r.approved = true;
        return refused_answer(s, &r, "to an interrupt that does not exist", err);
    }
    return refused_answer(s, &r, "without what its kind needs", err);
}

/* What a person said of a call decides whether it may be made again. Only what is in the journal was said. */
static void mark_key(struct sim_seed *s, rv_str decision)
{
    struct sim_key *k = s->asked_key ? sim_world_find(&s->world, s->asked_key) : NULL;

    if (k && rv_str_is(decision, "not_happened"))
        k->released = true;
    else if (k)
        k->settled = true;
}

int sim_people_answered(struct sim_seed *s, const struct rv_event *ev, rv_err **err)
{
    if (!rv_has_room(&s->answered, &s->cap_answered, s->n_answered + 1, sizeof *s->answered))
        return RV_FAIL(err, RV_E_NOMEM, "note an answer");
    char *id = rv_str_dup(ev->response.interrupt_id);
    if (!id)
        return RV_FAIL(err, RV_E_NOMEM, "note an answer");
    for (size_t i = 0; i < s->n_answered; i++)
        if (strcmp(s->answered[i], id) == 0)
            sim_break(s, RV_SIM_KEEPS_ANSWERS, "interrupt %s is answered for the second time", id);
    s->answered[s->n_answered++] = id;
    s->tally->n_answers++;
    mark_key(s, ev->response.decision);
    return 0;
}

/* What the call came to, as far as a person can see. */
static int say_result(json_object **data, rv_err **err)
{
    *data = json_object_new_object();
    return *data ? rv_json_set_text(*data, "note", "seen by a person", err)
                 : RV_FAIL(err, RV_E_NOMEM, "answer an interrupt");
}

static int answer(struct sim_seed *s, const struct waiting *w, rv_err **err)
{
    struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = s->now_us};
    const char *text = NULL;
    int refused = 0;
    size_t n_before = s->n_answered;

    answer_or_cancel(s, w, &ev.response);
    if (s->is_broken)
        return 0;
    /* The run changes under what w borrows. */
    char *id = rv_str_dup(rv_str_of(w->id)), *choice = NULL;
    if (ev.response.choice.ptr)
        ev.response.choice.ptr = choice = rv_str_dup(ev.response.choice);
    if (rv_interrupt_asks_outcome(w->kind, w->data) && rv_json_get_text(w->data, "idempotency_key", &text))
        s->asked_key = rv_str_dup(rv_str_of(text));
    int rc = id && (s->asked_key || !text) && (choice || !ev.response.choice.len)
                 ? 0
                 : RV_FAIL(err, RV_E_NOMEM, "answer an interrupt");
    if (rc == 0 && rv_str_is(ev.response.decision, "happened") && sim_draw(&s->tape, 2))
        rc = say_result(&ev.response.data, err);
    ev.response.interrupt_id = rv_str_of(id);
    if (rc == 0) {
        sim_say_event(s, &ev, NULL);
        rc = sim_process_step(s, &ev, &refused, err);
    }
    free(s->asked_key);
    s->asked_key = NULL;
    if (rc == 0 && refused)
        sim_break(s, RV_SIM_KEEPS_ANSWERS, "an answer that fits its interrupt is refused (%s)", rv_code_text(refused));
    json_object_put(ev.response.data);
    ev.response.data = NULL;
    bool accepted = s->n_answered > n_before;
    if (rc == 0 && !s->is_broken && accepted && s->run && sim_chance(&s->tape, s->rates[RV_SIM_PERSON_TWICE])) {
        sim_injected(s, RV_SIM_PERSON_TWICE);
        ev.now_us = s->now_us;
        rc = refused_answer(s, &ev.response, "that was given before", err);
    }
    free(id);
    free(choice);
    return rc;
}

/* The process that opens the run tells it that a question of a stage has expired, and the run goes on by that. */
static int expire(struct sim_seed *s, const struct waiting *w, rv_err **err)
{
    char *id = rv_str_dup(rv_str_of(w->id)); /* the run changes under what w borrows */
    const struct rv_event ev = {
        .kind = RV_EVENT_ANSWER, .now_us = s->now_us, .response = {.interrupt_id = rv_str_of(id), .expired = true}};
    int refused = 0;

    int rc = id ? 0 : RV_FAIL(err, RV_E_NOMEM, "let a question expire");
    if (rc == 0) {
        sim_say_event(s, &ev, NULL);
        rc = sim_process_step(s, &ev, &refused, err);
    }
    if (rc == 0 && refused)
        sim_break(s, RV_SIM_KEEPS_ANSWERS, "a question that has expired does not (%s)", rv_code_text(refused));
    free(id);
    return rc;
}

static int too_late(struct sim_seed *s, const struct waiting *w, rv_err **err)
{
    int64_t at = w->expires_us + (int64_t)sim_draw(&s->tape, 2) * RV_US_PER_S;
    struct rv_response r;

    s->now_us = at > s->now_us ? at : s->now_us;
    good_answer(s, w, &r);
    bool goes_on = rv_interrupt_is_ask(w->data);
    s->is_parked = !goes_on;
    int rc = refused_answer(s, &r, "that comes too late", err);
    return rc < 0 || !goes_on || s->is_broken ? rc : expire(s, w, err);
}

/* In time, if there is an end to it. */
static void take_time(struct sim_seed *s, const struct waiting *w)
{
    int64_t at = s->now_us + patience_us[sim_draw(&s->tape, RV_COUNT(patience_us))];

    if (w->expires_us && at >= w->expires_us)
        at = w->expires_us - 1;
    if (at > s->now_us)
        s->now_us = at;
}

int sim_people(struct sim_seed *s, rv_err **err)
{
    static const enum rv_sim_fault kinds[] = {RV_SIM_PERSON_ABSENT, RV_SIM_PERSON_LATE, RV_SIM_PERSON_WRONG};
    uint32_t rates[] = {s->rates[kinds[0]], s->rates[kinds[1]], s->rates[kinds[2]]};
    struct waiting waiting[MAX_WAITING];
    int rc = 0;

    size_t fault = sim_pick(&s->tape, rates, RV_COUNT(rates));
    if (fault == 1) {
        sim_injected(s, RV_SIM_PERSON_ABSENT);
        sim_say(s, "no person answers");
        s->is_parked = true;
        return 0;
    }
    /* The lease ended with the pause: to answer, a process opens the run again, mostly another one. */
    rc = s->journal
             ? rv_journal_release(s->journal,
                                  RV_CODE_ONLY("a lease that was lost needs no release; want of memory is told below"))
             : 0;
    rv_journal_free(s->journal);
    s->journal = NULL;
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, rc, "end a process");
    rc = sim_process_open(s, err);
    if (rc < 0 || s->is_broken || s->is_parked || !s->run || rv_run_status(s->run) != RV_RUN_INTERRUPTED)
        return rc;
    size_t n = find_waiting(rv_run_envelope(s->run), waiting);
    if (n == 0) {
        sim_break(s, RV_SIM_KEEPS_ENDS, "the run waits for an answer, and nothing was asked");
        return 0;
    }
    const struct waiting *w = &waiting[sim_draw(&s->tape, (uint32_t)n)];
    bool outcome = rv_interrupt_asks_outcome(w->kind, w->data);
    if (fault == 2 && w->expires_us && !outcome)
        sim_injected(s, RV_SIM_PERSON_LATE);
    if (w->expires_us && !outcome && (fault == 2 || s->now_us >= w->expires_us)) /* crashes take their time, too */
        return too_late(s, w, err);
    if (fault == 3)
        rc = wrong_answer(s, w, err);
    if (rc < 0 || s->is_broken)
        return rc;
    take_time(s, w);
    return answer(s, w, err);
}
