/* The visits of a run and their calls, gathered while its journal is replayed. A step is a visit that ended; another
 * run can begin behind it, unless its batch or its group goes on. */
#include "coreengine/app/past.h"
#include "coreengine/app/rows.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 1000000 /* of a run: bounds end runs long before; they are in memory */

/* --- lines of the event stream, read again --- */

static int64_t count_of(json_object *obj, const char *key)
{
    json_object *value = NULL;
    int64_t n;

    if (!json_object_object_get_ex(obj, key, &value) || !json_object_is_type(value, json_type_int))
        return 0;
    n = json_object_get_int64(value);
    return n > 0 && n <= RV_USAGE_MAX ? n : 0;
}

void rv_app_spent_read(json_object *result, struct rv_app_spent *out)
{
    const char *status = NULL;
    bool failed = rv_json_get_text(result, "status", &status) && strcmp(status, "error") == 0;

    *out = (struct rv_app_spent){
        .is_told = json_object_object_get_ex(result, "input_tokens", NULL),
        .usage = {.calls = 1,
                  .input_tokens = count_of(result, "input_tokens"),
                  .output_tokens = count_of(result, "output_tokens"),
                  .cached_tokens = count_of(result, "cached_tokens"),
                  .reasoning_tokens = count_of(result, "reasoning_tokens"),
                  .cost_micro_usd = count_of(result, "cost_micro_usd")},
        .latency_ms = count_of(result, "latency_ms"),
        .first_ms = count_of(result, "first_token_ms"),
    };
    out->usage.estimated = out->usage.cost_micro_usd > 0 && (failed || !out->is_told);
}

int rv_app_read_event(rv_str line, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_APP_MAX_TEXT, .max_depth = RV_STATE_MAX_DEPTH, .what = "event"};

    return rv_json_parse(line, &opts, out, err);
}

/* --- steps --- */

const char *rv_app_call_end_text(enum rv_app_call_end end)
{
    static const char *const texts[] = {
#define X(name, text) [RV_APP_CALL_##name] = text,
        RV_APP_CALL_ENDS(X)
#undef X
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
        RV_IGNORE(wanted <= MAX_STEPS ? RV_FAIL(err, RV_E_NOMEM, "list the steps of a run")
                                      : RV_FAIL(err, RV_E_LIMIT, "the run has more than %d steps", MAX_STEPS),
                  "the caller passes it on");
        return NULL;
    }
    *cap = wanted;
    return more;
}

static int copy_text(const char *text, char **out, rv_err **err)
{
    free(*out);
    *out = rv_str_dup(rv_str_of(text));
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "list the calls of a run");
}

/* Visits are numbered in each branch, so two of them may have the same number. */
static bool is_of(const struct rv_app_step *step, const struct rv_effect *e)
{
    return step->stage == e->stage && step->visit == e->visit &&
           strcmp(step->path ? step->path : "", e->path ? e->path : "") == 0;
}

static struct rv_app_step *open_step(struct rv_app_steps *s, const struct rv_effect *e)
{
    for (size_t i = s->n; i-- > 0;)
        if (is_of(&s->items[i], e) && !s->items[i].number)
            return &s->items[i];
    return NULL;
}

static int begin_step(struct rv_app_steps *s, const struct rv_effect *e, int64_t now_us, rv_err **err)
{
    struct rv_app_step *items = grow(s->items, s->n, &s->cap, sizeof *items, err);

    if (!items)
        return rv_err_code(*err);
    s->items = items;
    struct rv_app_step *step = &s->items[s->n++];
    *step = (struct rv_app_step){.stage = e->stage,
                                 .index = e->index,
                                 .visit = e->visit,
                                 .begun_us = now_us,
                                 .first_call = RV_APP_NO_CALL,
                                 .last_call = RV_APP_NO_CALL};
    int rc = e->path ? copy_text(e->path, &step->path, err) : 0;
    return rc == 0 && e->label ? copy_text(e->label, &step->label, err) : rc;
}

static bool is_shown(const struct rv_app_steps *s, int64_t number)
{
    const struct rv_app_window *w = &s->window;
    return w->all || number <= w->first || (number >= w->from && number <= w->to) || number > s->n_ended - w->last;
}

/* It stays as a row; what it said and the texts of its calls go. */
static void leave_out(struct rv_app_steps *s, struct rv_app_step *step)
{
    free(step->line);
    step->line = NULL;
    step->is_left_out = true;
    s->n_left_out++;
    for (size_t c = step->first_call; c != RV_APP_NO_CALL; c = s->calls[c].next) {
        char **texts[] = {&s->calls[c].name, &s->calls[c].step_id, &s->calls[c].asked, &s->calls[c].agent};
        for (size_t i = 0; i < RV_COUNT(texts); i++) {
            free(*texts[i]);
            *texts[i] = NULL;
        }
    }
}

/* With each step that ends, at most one leaves the last ones: the rows up to it are looked at once. */
static void drop_old(struct rv_app_steps *s)
{
    while (s->dropped_to < s->n) {
        struct rv_app_step *step = &s->items[s->dropped_to];
        if (!step->number || (!s->window.all && step->number > s->n_ended - s->window.last))
            return;
        if (!is_shown(s, step->number))
            leave_out(s, step);
        s->dropped_to++;
    }
}

/* The run stays at the stage: a person has to answer first. */
static bool asks(json_object *end)
{
    const char *stage, *next;

    return rv_json_get_text(end, "stage", &stage) && rv_json_get_text(end, "next_stage", &next) &&
           strcmp(stage, next) == 0;
}

const char *rv_app_visit_status(json_object *end)
{
    const char *status = rv_json_text_or(end, "status", "under way");

    return strcmp(status, "skipped") == 0 && asks(end) ? "asked" : status;
}

static int read_kept(struct rv_app_steps *s, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < s->n && rc == 0; i++) {
        struct rv_app_step *step = &s->items[i];
        if (step->number && !step->is_left_out && !is_shown(s, step->number))
            leave_out(s, step); /* of a batch whose first stage is still under way */
        if (!step->line)
            continue;
        rc = rv_app_read_event(rv_str_of(step->line), &step->end, err);
        free(step->line);
        step->line = NULL;
        step->asks = rc == 0 && asks(step->end);
    }
    return rc;
}

static int end_step(struct rv_app_steps *s, const struct rv_effect *e, rv_str line, int64_t now_us, int64_t seq,
                    rv_err **err)
{
    struct rv_app_step *step = open_step(s, e);

    if (!step)
        return 0;
    step->line = rv_str_dup(line); /* read when it is known which steps are shown */
    if (!step->line)
        return RV_FAIL(err, RV_E_NOMEM, "list the steps of a run");
    step->number = ++s->n_ended;
    step->ended_us = now_us;
    step->seq = seq;
    drop_old(s);
    return 0;
}

/* --- agents that are asked: their calls belong below the one by which they were --- */

/* The latest call of that name in a visit: names are one of a kind there, but for attempts. */
static size_t call_named(const struct rv_app_steps *s, const struct rv_effect *e, const char *step_id)
{
    const struct rv_app_step *step = NULL;
    size_t found = RV_APP_NO_CALL;

    for (size_t i = s->n; i-- > 0 && !step;)
        if (is_of(&s->items[i], e))
            step = &s->items[i];
    for (size_t i = step ? step->first_call : RV_APP_NO_CALL; i != RV_APP_NO_CALL; i = s->calls[i].next)
        if (s->calls[i].step_id && strcmp(s->calls[i].step_id, step_id) == 0)
            found = i;
    return found;
}

static int name_call(struct rv_app_steps *s, rv_str line, rv_err **err)
{
    json_object *told = NULL;
    const char *step_id = NULL;
    int64_t id = 0;

    int rc = rv_app_read_event(line, &told, err);
    if (rc < 0)
        return rc;
    bool is_named = rv_json_get_text(told, "step_id", &step_id) && rv_json_get_int(told, "call_id", &id);
    for (size_t i = s->n_calls; is_named && i-- > 0;)
        if (s->calls[i].id == id) {
            rc = copy_text(step_id, &s->calls[i].step_id, err);
            break;
        }
    json_object_put(told);
    return rc;
}

/* The call was answered with the agent's document; now that agent works on it. */
static int begin_agent(struct rv_app_steps *s, const struct rv_effect *e, rv_err **err)
{
    size_t i = e->origin ? call_named(s, e, e->origin->parent_tool_call_id) : RV_APP_NO_CALL;

    if (i == RV_APP_NO_CALL)
        return 0;
    s->calls[i].end = RV_APP_CALL_STARTED;
    s->calls[i].ended_us = 0;
    return copy_text(e->origin->agent, &s->calls[i].asked, err);
}

static int end_agent(struct rv_app_steps *s, const struct rv_effect *e, rv_str line, int64_t now_us, rv_err **err)
{
    const char *step_id = NULL, *status = "";
    json_object *told = NULL;

    int rc = rv_app_read_event(line, &told, err);
    if (rc < 0)
        return rc;
    size_t i = rv_json_get_text(told, "step_id", &step_id) ? call_named(s, e, step_id) : RV_APP_NO_CALL;
    if (i != RV_APP_NO_CALL && s->calls[i].asked && s->calls[i].end == RV_APP_CALL_STARTED) {
        status = rv_json_text_or(told, "status", "");
        s->calls[i].end = strcmp(status, "success") == 0 ? RV_APP_CALL_FINISHED : RV_APP_CALL_FAILED;
        s->calls[i].ended_us = now_us;
    }
    json_object_put(told);
    return 0;
}

/* The run is over, and agents that it asked are not. */
static void cancel_agents(struct rv_app_steps *s, int64_t now_us)
{
    for (size_t i = 0; i < s->n_calls; i++)
        if (s->calls[i].asked && s->calls[i].end == RV_APP_CALL_STARTED) {
            s->calls[i].end = RV_APP_CALL_CANCELLED;
            s->calls[i].ended_us = now_us;
        }
}

/* --- calls --- */

static int begin_call(struct rv_app_steps *s, const struct rv_effect *e, int64_t now_us, rv_err **err)
{
    struct rv_app_call *calls = grow(s->calls, s->n_calls, &s->cap_calls, sizeof *calls, err);
    struct rv_app_step *step = open_step(s, e);

    if (!calls)
        return rv_err_code(*err);
    s->calls = calls;
    char *name = rv_str_dup(rv_str_of(e->name));
    if (!name)
        return RV_FAIL(err, RV_E_NOMEM, "list the calls of a run");
    s->calls[s->n_calls++] = (struct rv_app_call){
        .id = e->call_id,
        .attempt = e->attempt,
        .kind = e->kind,
        .entry = e->entry,
        .name = name,
        .effect_class = e->effect_class,
        .next = RV_APP_NO_CALL,
        .asker = e->origin ? call_named(s, e, e->origin->parent_tool_call_id) : RV_APP_NO_CALL,
        .begun_us = now_us,
    };
    int rc = e->origin ? copy_text(e->origin->agent, &s->calls[s->n_calls - 1].agent, err) : 0;
    if (rc < 0)
        return rc;
    if (!step)
        return 0; /* of no visit: there is nowhere to show it */
    if (step->last_call == RV_APP_NO_CALL)
        step->first_call = s->n_calls - 1;
    else
        s->calls[step->last_call].next = s->n_calls - 1;
    step->last_call = s->n_calls - 1;
    return 0;
}

/* The first end counts: an answer that comes behind a cancellation is not wanted any more. */
static void end_call(struct rv_app_steps *s, int64_t call_id, enum rv_app_call_end end, int64_t now_us)
{
    for (size_t i = s->n_calls; i-- > 0;) {
        struct rv_app_call *c = &s->calls[i];
        if (c->id != call_id)
            continue;
        if (c->end == RV_APP_CALL_STARTED) {
            c->end = end;
            c->ended_us = now_us;
        }
        return;
    }
}

static int take_result(struct rv_app_steps *s, rv_str line, rv_err **err)
{
    json_object *result = NULL, *id = NULL;
    const char *muted = NULL;

    int rc = rv_app_read_event(line, &result, err);
    if (rc < 0)
        return rc;
    json_object_object_get_ex(result, "call_id", &id);
    for (size_t i = s->n_calls; i-- > 0;)
        if (s->calls[i].id == json_object_get_int64(id)) {
            rv_app_spent_read(result, &s->calls[i].spent);
            if (rv_json_get_text(result, "muted_text", &muted) && !(s->calls[i].muted = rv_str_dup(rv_str_of(muted))))
                rc = RV_FAIL(err, RV_E_NOMEM, "read what was said");
            s->calls[i].has_spent = true;
            break;
        }
    json_object_put(result);
    return rc;
}

static bool is_answer(const struct rv_event *ev)
{
    return ev->kind == RV_EVENT_LLM_DONE || ev->kind == RV_EVENT_TOOL_DONE || ev->kind == RV_EVENT_HOOK_DONE;
}

/* A state is saved behind a step, unless others of its batch or its group are not done. */
static void mark_boundary(struct rv_app_steps *s, bool can_fork)
{
    for (size_t i = s->n; i-- > 0;)
        if (s->n_ended > 0 && s->items[i].number == s->n_ended) {
            s->items[i].can_fork = can_fork;
            return;
        }
}

static int begin_batch(struct rv_app_steps *s, rv_str line, rv_err **err)
{
    json_object *batch = NULL;

    int rc = rv_app_read_event(line, &batch, err);
    if (rc < 0)
        return rc;
    json_object *stages = rv_json_get_arr(batch, "stages");
    s->batch_left = stages ? json_object_array_length(stages) : 0;
    json_object_put(batch);
    return 0;
}

static int take_emit(struct rv_app_steps *s, const struct rv_effect *e, rv_str line, int64_t now_us, int64_t seq,
                     rv_err **err)
{
    if (e->emit == RV_EMIT_STAGE_STARTED)
        return begin_step(s, e, now_us, err);
    if (e->emit == RV_EMIT_BATCH)
        return begin_batch(s, line, err);
    if (e->emit == RV_EMIT_LLM_RESULT)
        return take_result(s, line, err);
    if (e->emit == RV_EMIT_TOOL_CALL_START)
        return name_call(s, line, err);
    if (e->emit == RV_EMIT_AGENT_STARTED)
        return begin_agent(s, e, err);
    if (e->emit == RV_EMIT_TOOL_RESULT)
        return end_agent(s, e, line, now_us, err);
    if (e->emit == RV_EMIT_ITERATION && s->n > 0 && s->items[s->n - 1].seq == seq)
        s->items[s->n - 1].asks = false; /* it leads back to itself */
    if (e->emit == RV_EMIT_BRANCH_STARTED || e->emit == RV_EMIT_GROUP_SETTLED)
        mark_boundary(s, false); /* the step opened a group, or the join is not visited yet */
    if (e->emit != RV_EMIT_STAGE_COMPLETED)
        return 0;
    int rc = end_step(s, e, line, now_us, seq, err);
    if (s->batch_left > 0)
        s->batch_left--;
    if (rc == 0 && s->batch_left == 0 && !e->path)
        mark_boundary(s, true);
    return rc;
}

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct rv_app_steps *s = self;
    int rc = 0;

    (void)run;
    if (ev && is_answer(ev))
        end_call(s, ev->call_id,
                 ev->unknown  ? RV_APP_CALL_UNKNOWN
                 : ev->failed ? RV_APP_CALL_FAILED
                              : RV_APP_CALL_FINISHED,
                 ev->now_us);
    for (size_t i = 0; ev && i < effects->n && rc == 0; i++) {
        const struct rv_effect *e = &effects->items[i];
        if (e->kind == RV_EFFECT_EMIT)
            rc = take_emit(s, e, rv_effect_text(effects, e), ev->now_us, record->seq, err);
        else if (e->kind == RV_EFFECT_CALL_LLM || e->kind == RV_EFFECT_CALL_TOOL || e->kind == RV_EFFECT_CALL_HOOK)
            rc = begin_call(s, e, ev->now_us, err);
        else if (e->kind == RV_EFFECT_CANCEL_CALL)
            end_call(s, e->call_id, RV_APP_CALL_CANCELLED, ev->now_us);
        else if (e->kind == RV_EFFECT_FINISH) {
            mark_boundary(s, true);
            if (e->status != RV_RUN_INTERRUPTED)
                cancel_agents(s, ev->now_us);
        }
    }
    return rc;
}

int rv_app_steps_read(rv_store *store, const struct rv_app_past *p, const struct rv_app_window *window,
                      struct rv_app_steps *out, struct rv_replayed *replayed, rv_err **err)
{
    *out = (struct rv_app_steps){.window = *window};
    int rc = rv_app_past_replay(store, p, &(struct rv_app_replay_opts){.on_step = on_step, .self = out}, replayed, err);
    if (rc == 0)
        rc = read_kept(out, err);
    if (rc < 0)
        rv_app_steps_fini(out);
    return rc;
}

void rv_app_steps_fini(struct rv_app_steps *s)
{
    for (size_t i = 0; i < s->n; i++) {
        json_object_put(s->items[i].end);
        free(s->items[i].line);
        free(s->items[i].path);
        free(s->items[i].label);
    }
    for (size_t i = 0; i < s->n_calls; i++) {
        free(s->calls[i].name);
        free(s->calls[i].step_id);
        free(s->calls[i].asked);
        free(s->calls[i].agent);
        free(s->calls[i].muted);
    }
    free(s->items);
    free(s->calls);
    memset(s, 0, sizeof *s);
}
