/* Another run, from the state behind a step of a run of the store. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"

#include <string.h>

#define FOUND 2 /* ends the replay: no code of an error is positive, and 1 is the reader's own */

/* --- the state behind a step --- */

struct saved {
    rv_buf state;           /* the state dict's text */
    int64_t seq;            /* of the record that ended the step */
    json_object *script_at; /* how far its script was handed out by then; NULL: not at all, or it has none; owned */
    /* of the search */
    int64_t step, n_steps, next_boundary;
};

struct search {
    const struct rv_app_past *past;
    struct rv_app_script script;
    struct saved *out;
    rv_run *shadow; /* owned */
    struct rv_effects effects;
};

static int begin_shadow(struct search *s, const rv_run *run, rv_err **err)
{
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    rv_envelope *env = NULL;

    int rc = rv_envelope_dup(rv_run_envelope(run), &env, err);
    if (rc < 0)
        return rc;
    rv_journal_begin_set_opts(&s->script.begin, &opts);
    return rv_run_new(rv_app_past_pipeline(s->past), &s->past->catalog, &opts, env, &s->shadow, err);
}

/* The state is there. */
static int take(struct search *s, int64_t seq, rv_err **err)
{
    s->out->seq = seq;
    int rc = rv_buf_check(&s->out->state, "state", err);
    if (rc == 0)
        rc = rv_app_script_build_position(&s->script, &s->out->script_at, err);
    return rc < 0 ? rc : FOUND;
}

static int take_first(struct search *s, const rv_run *run, int64_t seq, rv_err **err)
{
    rv_envelope_write_state(rv_run_envelope(run), &s->out->state);
    return take(s, seq, err);
}

/* States are large: one is only written where the wanted one can be. */
static bool comes_near(const struct search *s, const struct rv_effects *effects)
{
    int64_t n = s->out->n_steps;

    for (size_t i = 0; i < effects->n; i++)
        n += effects->items[i].kind == RV_EFFECT_EMIT && effects->items[i].emit == RV_EMIT_STAGE_COMPLETED;
    return n >= s->out->step;
}

/* Counts the steps that end; the first state saved behind the wanted one is it. */
static int look_for_state(struct search *s, int64_t seq, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < s->effects.n && rc == 0; i++) {
        const struct rv_effect *e = &s->effects.items[i];
        rc = rv_app_script_pass_effect(&s->script, e, err);
        if (e->kind == RV_EFFECT_EMIT && e->emit == RV_EMIT_STAGE_COMPLETED)
            s->out->n_steps++;
        if (rc < 0 || e->kind != RV_EFFECT_SAVE || s->out->n_steps < s->out->step)
            continue;
        s->out->next_boundary = s->out->n_steps;
        if (s->out->n_steps > s->out->step)
            return FOUND; /* the wanted place is in the middle of a batch or group, and this step is behind it */
        rv_buf_add(&s->out->state, e->request, e->request_len);
        return take(s, seq, err);
    }
    return rc;
}

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct search *s = self;

    if (!ev)
        return s->out->step == 0 ? take_first(s, run, record->seq, err) : begin_shadow(s, run, err);
    int told = rv_app_script_pass_event(&s->script, ev, run, err);
    if (told < 0)
        return told;
    rv_effects_clear(&s->effects);
    rv_run_set_saves(s->shadow,
                     comes_near(s, effects) ? RV_SAVES_EACH : RV_SAVES_NONE); /* the shadow makes the same ones */
    int rc = rv_run_step(s->shadow, ev, &s->effects, err);
    return rc < 0 ? rc : look_for_state(s, record->seq, err);
}

static int not_there(const struct rv_app_past *p, const struct saved *saved, rv_err **err)
{
    int rc;

    if (saved->n_steps < saved->step) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "run \"%s\" has no step %lld", p->row.id, (long long)saved->step);
        rv_err_set_hint(err, "its last step is %lld; `reeve runs show %s` lists them, and 0 is its beginning",
                        (long long)saved->n_steps, p->row.id);
        return rc;
    }
    rc = RV_FAIL(err, RV_E_STATE, "step %lld of run \"%s\" is within a batch or a group of branches",
                 (long long)saved->step, p->row.id);
    if (saved->next_boundary)
        rv_err_set_hint(err, "the next step that a run can begin behind is %lld", (long long)saved->next_boundary);
    return rc;
}

static void saved_fini(struct saved *s)
{
    rv_buf_fini(&s->state);
    json_object_put(s->script_at);
    s->script_at = NULL;
}

static int saved_read(rv_store *store, const struct rv_app_past *p, int64_t step, struct saved *out, rv_err **err)
{
    struct search s = {.past = p, .out = out};
    struct rv_replayed replayed = {0};

    *out = (struct saved){.step = step, .state = RV_BUF_INIT(RV_APP_MAX_TEXT)};
    int rc = rv_app_script_open(store, p, &s.script, err);
    if (rc == 0)
        rc = rv_app_past_replay(store, p, &(struct rv_app_replay_opts){.on_step = on_step, .self = &s}, &replayed, err);
    if (rc == 0)
        rv_replayed_fini(&replayed);
    rv_run_free(s.shadow);
    rv_effects_fini(&s.effects);
    rv_app_script_fini(&s.script);
    if (rc >= 0)
        rc = out->state.len ? 0 : not_there(p, out, err);
    if (rc < 0)
        saved_fini(out);
    return rc;
}

/* --- the other run --- */

int rv_app_check_user(const struct rv_store_scope *scope, const char *user_id, rv_err **err)
{
    if (!scope->user || strcmp(scope->user, user_id) == 0)
        return 0;
    return RV_FAIL(err, RV_E_DENIED, "the state belongs to another user than \"%s\"", scope->user);
}

static int check_state(const struct rv_store_scope *scope, const rv_envelope *env, rv_err **err)
{
    if (rv_envelope_fields(env)->interrupt_pending && !rv_envelope_interrupt(env).exists)
        return RV_FAIL(err, RV_E_INVALID,
                       "state key \"interrupt_pending\" is true, but \"interrupt\" says nothing is asked");
    return rv_app_check_user(scope, rv_envelope_fields(env)->user_id, err);
}

/* The state as JSON, changed by the caller, under another id. */
static int changed_state(const struct rv_app_fork *fork, rv_str text, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_APP_MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH, .what = "saved state"};
    json_object *state = NULL;

    int rc = rv_json_parse(text, &opts, &state, err);
    if (rc == 0 && fork->change)
        rc = fork->change(fork->self, state, err);
    if (rc == 0)
        rc = app_state_rename(state, fork->id, err);
    if (rc < 0)
        json_object_put(state);
    else
        *out = state;
    return rc;
}

/* It counts as any run that begins. */
static int keep(const struct rv_app *app, rv_store *store, const struct rv_journal_start *start, rv_err **err)
{
    struct rv_app_limits limits = {.again_us = 0};
    rv_quotas *quotas = NULL;

    int rc = rv_app_quotas_open(app, &quotas, err);
    if (rc < 0)
        return rc;
    app_limits_set(&limits, quotas, start->tenant, rv_envelope_user(start->env));
    do {
        rc = rv_store_begin(store, err);
        int made = rc < 0 ? rc : app_limits_count(&limits, store, RV_QUOTA_RUNS, start->now_us, app->log, err);
        if (made == 0)
            made = rv_journal_create(store, start, NULL, err);
        if (rc == 0)
            rc = rv_store_end(store, made, err);
    } while (rc < 0 && rv_store_wait_again(store, err));
    rv_quotas_free(quotas);
    return rc;
}

static int make_run(const struct rv_app *app, rv_store *store, const struct rv_app_past *p, const struct saved *from,
                    json_object *state, rv_err **err)
{
    struct rv_journal_start start = {
        .tenant = p->row.tenant,
        .bundle = p->row.bundle,
        .pipeline = rv_app_past_pipeline(p),
        .parent = p->row.id,
        .parent_seq = from->seq,
        .now_us = rv_app_now_us(),
    };
    rv_envelope *env = NULL;

    int rc = rv_envelope_load(state, rv_rand_system(), start.now_us, &env, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "read the state of the new run");
    start.env = env;
    rc = check_state(&p->scope, env, err);
    if (rc == 0)
        rc = rv_journal_read_begin(store, &p->scope, p->row.id, start.pipeline, &start.begin, err);
    if (from->step > 0) /* a run that has not begun begins as its parent did */
        start.begin.continues = true;
    json_object_put(start.begin.script_at);
    start.begin.script_at = json_object_get(from->script_at);
    struct rv_conversation *conversation = start.begin.own_conversation;
    if (conversation) /* the fork reads the history of the session and adds no rows to it */
        conversation->keeps = false;
    if (rc == 0 && conversation)
        rc = rv_journal_tell_again(store, &p->scope, conversation, err);
    if (rc == 0)
        rc = keep(app, store, &start, err);
    rv_journal_begin_fini(&start.begin);
    rv_envelope_free(env);
    return rc;
}

int rv_app_fork(const struct rv_app *app, rv_store *store, const char *word, struct rv_app_fork *fork, rv_err **err)
{
    struct rv_app_past p;
    struct saved saved;
    json_object *state = NULL;

    rv_id_make(rv_rand_system(), "env_", fork->id);
    int rc = rv_app_past_open(store, &app->scope, word, &p, err);
    if (rc < 0)
        return rc;
    rc = saved_read(store, &p, fork->step, &saved, err);
    if (rc == 0) {
        rc = changed_state(fork, rv_buf_str(&saved.state), &state, err);
        if (rc == 0)
            rc = make_run(app, store, &p, &saved, state, err);
        json_object_put(state);
        saved_fini(&saved);
    }
    rv_app_past_fini(&p);
    return rc;
}
