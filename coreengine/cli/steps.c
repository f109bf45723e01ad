/* The visits of a run and their calls, gathered while its journal is replayed. A step is a visit that ended; behind
 * most of them the run saves its state, and there another run can begin. */
#include "coreengine/cli/runs.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 1000000 /* a run that long is beyond its bounds */

const char *rv_cli_call_end_text(enum rv_cli_call_end end)
{
    static const char *const texts[] = {
        [RV_CLI_CALL_STARTED] = "started", [RV_CLI_CALL_FINISHED] = "finished",   [RV_CLI_CALL_FAILED] = "failed",
        [RV_CLI_CALL_UNKNOWN] = "unknown", [RV_CLI_CALL_CANCELLED] = "cancelled",
    };
    return texts[end];
}

static void *grow(void *items, size_t n, size_t *cap, size_t size, rv_err **err)
{
    if (n < *cap)
        return items;
    size_t wanted = *cap ? *cap * 2 : 32;
    void *more = wanted <= MAX_STEPS ? realloc(items, wanted * size) : NULL;
    if (!more) {
        RV_IGNORE(RV_FAIL(err, wanted <= MAX_STEPS ? RV_E_NOMEM : RV_E_LIMIT, "list the steps of a run"),
                  "the caller passes it on");
        return NULL;
    }
    *cap = wanted;
    return more;
}

static struct rv_cli_step *open_step(struct rv_cli_steps *s, int stage, int64_t visit)
{
    for (size_t i = s->n; i-- > 0;)
        if (s->items[i].stage == stage && s->items[i].visit == visit && !s->items[i].end)
            return &s->items[i];
    return NULL;
}

static int begin_step(struct rv_cli_steps *s, const struct rv_effect *e, int64_t now_us, rv_err **err)
{
    struct rv_cli_step *items = grow(s->items, s->n, &s->cap, sizeof *items, err);

    if (!items)
        return rv_err_code(*err);
    s->items = items;
    s->items[s->n++] = (struct rv_cli_step){.stage = e->stage,
                                            .visit = e->visit,
                                            .begun_us = now_us,
                                            .first_call = RV_CLI_NO_CALL,
                                            .last_call = RV_CLI_NO_CALL};
    return 0;
}

static int end_step(struct rv_cli_steps *s, const struct rv_effect *e, rv_str line, int64_t now_us, int64_t seq,
                    rv_err **err)
{
    struct rv_cli_step *step = open_step(s, e->stage, e->visit);

    if (!step)
        return 0;
    int rc = rv_json_parse(line, NULL, &step->end, err);
    if (rc < 0)
        return rc;
    step->number = ++s->n_ended;
    step->ended_us = now_us;
    step->seq = seq;
    return 0;
}

static int begin_call(struct rv_cli_steps *s, const struct rv_effect *e, int64_t now_us, rv_err **err)
{
    struct rv_cli_call *calls = grow(s->calls, s->n_calls, &s->cap_calls, sizeof *calls, err);
    struct rv_cli_step *step = open_step(s, e->stage, e->visit);

    if (!calls)
        return rv_err_code(*err);
    s->calls = calls;
    char *name = rv_str_dup(rv_str_of(e->name));
    if (!name)
        return RV_FAIL(err, RV_E_NOMEM, "list the calls of a run");
    s->calls[s->n_calls++] = (struct rv_cli_call){
        .id = e->call_id,
        .attempt = e->attempt,
        .kind = e->kind,
        .entry = e->entry,
        .name = name,
        .effect_class = e->effect_class,
        .next = RV_CLI_NO_CALL,
        .begun_us = now_us,
    };
    if (!step)
        return 0; /* of no visit: there is nowhere to show it */
    if (step->last_call == RV_CLI_NO_CALL)
        step->first_call = s->n_calls - 1;
    else
        s->calls[step->last_call].next = s->n_calls - 1;
    step->last_call = s->n_calls - 1;
    return 0;
}

/* The first end counts: an answer that comes behind a cancellation is not wanted any more. */
static void end_call(struct rv_cli_steps *s, int64_t call_id, enum rv_cli_call_end end, int64_t now_us)
{
    for (size_t i = s->n_calls; i-- > 0;) {
        struct rv_cli_call *c = &s->calls[i];
        if (c->id != call_id)
            continue;
        if (c->end == RV_CLI_CALL_STARTED) {
            c->end = end;
            c->ended_us = now_us;
        }
        return;
    }
}

static bool is_answer(const struct rv_event *ev)
{
    return ev->kind == RV_EVENT_LLM_DONE || ev->kind == RV_EVENT_TOOL_DONE || ev->kind == RV_EVENT_HOOK_DONE;
}

static void mark_saved(struct rv_cli_steps *s)
{
    for (size_t i = s->n; i-- > 0;)
        if (s->items[i].number == s->n_ended) {
            s->items[i].can_fork = s->n_ended > 0;
            return;
        }
}

/* The shadow tells where states are saved: between the end of one step and the beginning of the next. */
static int take_effects(struct rv_cli_steps *s, const struct rv_event *ev, int64_t seq, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < s->effects.n && rc == 0; i++) {
        struct rv_effect *e = &s->effects.items[i];
        if (e->kind == RV_EFFECT_EMIT && e->emit == RV_EMIT_STAGE_STARTED)
            rc = begin_step(s, e, ev->now_us, err);
        else if (e->kind == RV_EFFECT_EMIT && e->emit == RV_EMIT_STAGE_COMPLETED)
            rc = end_step(s, e, rv_effect_text(&s->effects, e), ev->now_us, seq, err);
        else if (e->kind == RV_EFFECT_CALL_LLM || e->kind == RV_EFFECT_CALL_TOOL || e->kind == RV_EFFECT_CALL_HOOK)
            rc = begin_call(s, e, ev->now_us, err);
        else if (e->kind == RV_EFFECT_CANCEL_CALL)
            end_call(s, e->call_id, RV_CLI_CALL_CANCELLED, ev->now_us);
        if (e->kind != RV_EFFECT_SAVE)
            continue;
        mark_saved(s);
        if (s->want == s->n_ended && s->want > 0 && !s->state) {
            s->state = e->request;
            s->state_len = e->request_len;
            s->state_seq = seq;
            e->request = NULL;
        }
    }
    return rc;
}

static int begin_shadow(struct rv_cli_steps *s, const struct rv_replay_opts *p, const struct rv_journal_begin *begin,
                        const rv_run *run, rv_err **err)
{
    struct rv_run_opts opts = RV_RUN_OPTS_INIT;
    rv_envelope *env = NULL;

    int rc = rv_envelope_dup(rv_run_envelope(run), &env, err);
    if (rc < 0)
        return rc;
    opts.mode = begin->mode;
    opts.use_mocks = begin->use_mocks;
    opts.scripted_stages = begin->scripted;
    opts.max_parallel = begin->max_parallel;
    opts.saves = true;
    return rv_run_new(p->pipeline, p->catalog, &opts, env, &s->shadow, err);
}

static int keep_first_state(struct rv_cli_steps *s, const rv_run *run, int64_t seq, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_CLI_MAX_TEXT);

    rv_envelope_write_state(rv_run_envelope(run), &text);
    int rc = rv_buf_check(&text, "state", err);
    if (rc == 0) {
        s->state = rv_buf_steal(&text, &s->state_len);
        s->state_seq = seq;
    }
    rv_buf_fini(&text);
    return rc;
}

struct reading {
    struct rv_cli_steps *steps;
    struct rv_replay_opts opts; /* pipeline and catalog */
    struct rv_journal_begin begin;
};

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct reading *r = self;
    struct rv_cli_steps *s = r->steps;

    (void)effects; /* the shadow makes the same ones, and saves */
    if (!ev) {
        int rc = s->want == 0 ? keep_first_state(s, run, record->seq, err) : 0;
        return rc < 0 ? rc : begin_shadow(s, &r->opts, &r->begin, run, err);
    }
    if (is_answer(ev))
        end_call(s, ev->call_id,
                 ev->unknown  ? RV_CLI_CALL_UNKNOWN
                 : ev->failed ? RV_CLI_CALL_FAILED
                              : RV_CLI_CALL_FINISHED,
                 ev->now_us);
    rv_effects_clear(&s->effects);
    int rc = rv_run_step(s->shadow, ev, &s->effects, err);
    return rc < 0 ? rc : take_effects(s, ev, record->seq, err);
}

int rv_cli_steps_read(rv_store *store, const struct rv_cli_past *p, int64_t want, struct rv_cli_steps *out,
                      struct rv_replayed *replayed, rv_err **err)
{
    struct reading r = {.steps = out, .opts = {.pipeline = rv_cli_past_pipeline(p), .catalog = &p->catalog}};

    *out = (struct rv_cli_steps){.want = want};
    int rc = rv_journal_read_begin(store, &rv_cli_scope, p->row.id, r.opts.pipeline, &r.begin, err);
    if (rc == 0)
        rc = rv_cli_past_replay(store, p, 0, on_step, &r, replayed, err);
    rv_run_free(out->shadow);
    out->shadow = NULL;
    rv_effects_fini(&out->effects);
    rv_journal_begin_fini(&r.begin);
    if (rc < 0)
        rv_cli_steps_fini(out);
    return rc;
}

void rv_cli_steps_fini(struct rv_cli_steps *s)
{
    for (size_t i = 0; i < s->n; i++)
        json_object_put(s->items[i].end);
    for (size_t i = 0; i < s->n_calls; i++)
        free(s->calls[i].name);
    free(s->items);
    free(s->calls);
    free(s->state);
    memset(s, 0, sizeof *s);
}
