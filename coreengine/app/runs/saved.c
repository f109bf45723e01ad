/* The state behind a step of a run. The run saves it between the end of one visit and the beginning of the next, within
 * one step of the core: a second run beside the replay is told the same, and saves in the steps that may pass there. */
#include "coreengine/app/past.h"

#include <string.h>

#define FOUND 2 /* ends the replay: no code of an error is positive, and 1 is the reader's own */

struct search {
    const struct rv_app_past *past;
    struct rv_app_script script;
    struct rv_app_saved *out;
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
    opts.rules = s->script.begin.rules;
    opts.continues = s->script.begin.continues;
    opts.mode = s->script.begin.mode;
    opts.use_mocks = s->script.begin.use_mocks;
    opts.scripted_stages = s->script.begin.scripted;
    opts.max_parallel = s->script.begin.max_parallel;
    opts.conversation = s->script.begin.conversation;
    return rv_run_new(rv_app_past_pipeline(s->past), &s->past->catalog, &opts, env, &s->shadow, err);
}

/* The state is there. */
static int take(struct search *s, int64_t seq, rv_err **err)
{
    s->out->seq = seq;
    int rc = rv_buf_check(&s->out->state, "state", err);
    if (rc == 0)
        rc = rv_app_script_at(&s->script, &s->out->script_at, err);
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
        rc = rv_app_script_asked(&s->script, e, err);
        if (e->kind == RV_EFFECT_EMIT && e->emit == RV_EMIT_STAGE_COMPLETED)
            s->out->n_steps++;
        if (rc < 0 || e->kind != RV_EFFECT_SAVE || s->out->n_steps < s->out->step)
            continue;
        s->out->next_boundary = s->out->n_steps;
        if (s->out->n_steps > s->out->step)
            return FOUND; /* it ended in the middle of a batch, of which this is the end */
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
    rv_app_script_told(&s->script, ev);
    rv_effects_clear(&s->effects);
    rv_run_set_saves(s->shadow,
                     comes_near(s, effects) ? RV_SAVES_EACH : RV_SAVES_NONE); /* the shadow makes the same ones */
    int rc = rv_run_step(s->shadow, ev, &s->effects, err);
    return rc < 0 ? rc : look_for_state(s, record->seq, err);
}

static int not_there(const struct rv_app_past *p, const struct rv_app_saved *saved, rv_err **err)
{
    int rc;

    if (saved->n_steps < saved->step) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "run \"%s\" has no step %lld", p->row.id, (long long)saved->step);
        rv_err_hint(err, "its last step is %lld; `reeve runs show %s` lists them, and 0 is its beginning",
                    (long long)saved->n_steps, p->row.id);
        return rc;
    }
    rc = RV_FAIL(err, RV_E_STATE, "step %lld of run \"%s\" ended while others of its batch went on",
                 (long long)saved->step, p->row.id);
    if (saved->next_boundary)
        rv_err_hint(err, "the batch ends with step %lld", (long long)saved->next_boundary);
    return rc;
}

int rv_app_saved_read(rv_store *store, const struct rv_app_past *p, int64_t step, struct rv_app_saved *out,
                      rv_err **err)
{
    struct search s = {.past = p, .out = out};
    struct rv_replayed replayed = {0};

    *out = (struct rv_app_saved){.step = step, .state = RV_BUF_INIT(RV_APP_MAX_TEXT)};
    int rc = rv_app_script_open(store, p, &s.script, err);
    if (rc == 0)
        rc = rv_app_past_replay(store, p, 0, on_step, &s, &replayed, err);
    if (rc == 0)
        rv_replayed_fini(&replayed);
    rv_run_free(s.shadow);
    rv_effects_fini(&s.effects);
    rv_app_script_fini(&s.script);
    if (rc >= 0)
        rc = out->state.len ? 0 : not_there(p, out, err);
    if (rc < 0)
        rv_app_saved_fini(out);
    return rc;
}

void rv_app_saved_fini(struct rv_app_saved *s)
{
    rv_buf_fini(&s->state);
    json_object_put(s->script_at);
    s->script_at = NULL;
}
