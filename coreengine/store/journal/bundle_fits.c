/* May a run go on with another pipeline? Looked at in the state dict, which has everything a run goes on from. Work
 * that is not begun may change freely; what was begun, counted or asked must still have its place. */
#include "coreengine/store/journal/bundle_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_REASONS 24 /* a reader mends the first ones first: a screen of them; further ones are counted */

struct reasons {
    rv_buf text;
    size_t n;
};

static void add(struct reasons *r, const char *fmt, ...) RV_PRINTF(2, 3);
static void add(struct reasons *r, const char *fmt, ...)
{
    va_list args;

    if (++r->n > MAX_REASONS)
        return;
    if (r->n > 1)
        rv_buf_puts(&r->text, "; ");
    va_start(args, fmt);
    rv_buf_vprintf(&r->text, fmt, args);
    va_end(args);
}

static const struct rv_agent *stage_of(const struct rv_pipeline *p, const char *name)
{
    int at = rv_pipeline_find_stage(p, rv_str_of(name));
    return at < 0 ? NULL : &p->agents[at];
}

/* A name in a message. */
#define SHOWN(name) RV_STR_ARG(rv_utf8_cut(rv_str_of(name), RV_MAX_STAGE_NAME))

/* --- Where the run stands and what it has done --- */

static void check_position(const struct rv_pipeline *p, const char *stage, struct reasons *r)
{
    bool is_pseudo = strcmp(stage, RV_STAGE_START) == 0 || strcmp(stage, RV_STAGE_END) == 0;

    if (!is_pseudo && !stage_of(p, stage))
        add(r, "stage \"%.*s\", where the run stands, is gone", SHOWN(stage));
}

/* Stages of one of the state's sets. */
static void check_set(const struct rv_pipeline *p, json_object *state, const char *key, const char *what,
                      struct reasons *r)
{
    json_object *set = rv_json_get_obj(state, key);

    if (!set)
        return;
    json_object_object_foreach (set, name, value) {
        (void)value;
        if (!stage_of(p, name))
            add(r, "stage \"%.*s\", which %s, is gone", SHOWN(name), what);
    }
}

/* --- What waits for an answer --- */

/* Results so far are for the steps before `at`; the step at `at` was asked about or is under way. */
static void check_tool_work(const struct rv_agent *a, json_object *work, struct reasons *r)
{
    json_object *steps = rv_json_get_arr(work, "steps"), *step;
    const char *tool = NULL, *why = NULL;

    if (!steps)
        return;
    if (!a->has_tools) {
        add(r, "stage \"%s\" stopped between the calls of its tools, but has_tools is not set any more", a->name);
        return;
    }
    int64_t at = rv_json_int_or(work, "at", -1);
    if (at < 0 || (uint64_t)at >= json_object_array_length(steps))
        return;
    step = json_object_array_get_idx(steps, (size_t)at);
    if (json_object_is_type(step, json_type_object) && rv_json_get_text(step, "tool", &tool) &&
        !rv_tool_is_allowed(a->tools.access, &a->tools.allowed, rv_str_of(tool), NULL, &why))
        add(r, "stage \"%s\" stopped at a call of tool \"%.*s\", which it may not make any more (%s)", a->name,
            SHOWN(tool), why);
}

static void check_policy_work(const struct rv_agent *a, json_object *work, struct reasons *r)
{
    const char *policy = NULL;

    if (!rv_json_get_text(work, "policy", &policy))
        return;
    for (size_t i = 0; a->has_policies && i < a->hooks.policies.n; i++)
        if (strcmp(a->hooks.policies.items[i], policy) == 0)
            return;
    add(r, "stage \"%s\" waits for an answer to policy \"%.*s\", which it does not ask any more", a->name,
        SHOWN(policy));
}

/* The state of the pipeline that waits inside of the stage; NULL: none does. */
static json_object *inside_of(json_object *work)
{
    return json_object_is_type(work, json_type_object) && strcmp(rv_json_text_or(work, "kind", ""), "pipeline") == 0
               ? rv_json_get_obj(work, "state")
               : NULL;
}

static void check_waiting(const struct rv_pipeline *p, json_object *state, struct reasons *r);

static void check_inside(const struct rv_agent *a, json_object *state, struct reasons *r)
{
    struct reasons inside = {.text = RV_BUF_INIT((size_t)MAX_REASONS * 1024)};

    if (!a->inner.pipeline) {
        add(r, "stage \"%s\" waits inside of its pipeline, but `pipeline` is not set any more", a->name);
        return;
    }
    check_position(a->inner.pipeline, rv_json_text_or(state, "current_stage", RV_STAGE_END), &inside);
    check_waiting(a->inner.pipeline, state, &inside);
    if (inside.n > 0)
        add(r, "inside of stage \"%s\": %s", a->name, rv_buf_cstr(&inside.text));
    rv_buf_fini(&inside.text);
}

static void check_suspended(const struct rv_pipeline *p, json_object *state, struct reasons *r)
{
    json_object *all = rv_json_get_obj(state, "suspended");

    if (!all)
        return;
    json_object_object_foreach (all, name, work) {
        const struct rv_agent *a = stage_of(p, name);

        if (!a) {
            add(r, "stage \"%.*s\", which has suspended work, is gone", SHOWN(name));
        } else if (inside_of(work)) {
            check_inside(a, inside_of(work), r);
        } else if (json_object_is_type(work, json_type_object)) {
            check_tool_work(a, work, r);
            check_policy_work(a, work, r);
        }
    }
}

/* Was it put inside of a stage? Then it names a stage of the pipeline there, which was checked. */
static bool is_asked_inside(json_object *state, const char *id)
{
    json_object *all = rv_json_get_obj(state, "suspended");

    if (!all)
        return false;
    json_object_object_foreach (all, name, work) {
        (void)name;
        if (inside_of(work) && strcmp(rv_json_text_or(work, "interrupt_id", ""), id) == 0)
            return true;
    }
    return false;
}

static void check_asker(const struct rv_pipeline *p, json_object *state, json_object *interrupt, struct reasons *r)
{
    json_object *data = rv_json_get_obj(interrupt, "data");
    const char *stage = NULL;

    const char *id = rv_json_text_or(interrupt, "id", "?");
    if (!rv_json_get_text(interrupt, "stage", &stage) && !(data && rv_json_get_text(data, "stage", &stage)))
        return; /* raised by the stage the run stands at */
    if (!stage_of(p, stage) && !is_asked_inside(state, id))
        add(r, "stage \"%.*s\", which asked interrupt \"%.*s\", is gone", SHOWN(stage), SHOWN(id));
}

static void check_interrupts(const struct rv_pipeline *p, json_object *state, struct reasons *r)
{
    json_object *interrupt = rv_json_get_obj(state, "interrupt"), *metadata = rv_json_get_obj(state, "metadata");
    json_object *queue = metadata ? rv_json_get_arr(metadata, "queued_interrupts") : NULL;
    bool is_pending = false;

    if (interrupt && rv_json_get_bool(state, "interrupt_pending", &is_pending) && is_pending)
        check_asker(p, state, interrupt, r);
    for (size_t i = 0; queue && i < json_object_array_length(queue); i++) {
        json_object *item = json_object_array_get_idx(queue, i);
        if (json_object_is_type(item, json_type_object))
            check_asker(p, state, item, r);
    }
}

static void check_waiting(const struct rv_pipeline *p, json_object *state, struct reasons *r)
{
    json_object *branches = rv_json_get_arr(state, "branches");

    check_suspended(p, state, r);
    for (size_t i = 0; branches && i < json_object_array_length(branches); i++) {
        json_object *branch = json_object_array_get_idx(branches, i);
        json_object *own = json_object_is_type(branch, json_type_object) ? rv_json_get_obj(branch, "own") : NULL;
        if (own)
            check_suspended(p, own, r);
    }
    check_interrupts(p, state, r);
}

/* --- What is counted --- */

/* In all branches: they count when the run goes on. */
static void check_bounds(const struct rv_pipeline *p, const rv_envelope *env, struct reasons *r)
{
    const struct rv_envelope_used used = rv_envelope_used(env);
    const struct {
        const char *what, *bound;
        int64_t count, max;
    } rows[] = {
        {"iteration", "max_iterations", used.iterations, p->max_iterations},
        {"llm_call_count", "max_llm_calls", used.llm_calls, p->max_llm_calls},
        {"agent_hop_count", "max_agent_hops", used.hops, p->max_agent_hops},
    };

    for (size_t i = 0; i < RV_COUNT(rows); i++)
        if (rows[i].count > rows[i].max)
            add(r, "%s %lld exceeds %s %lld", rows[i].what, (long long)rows[i].count, rows[i].bound,
                (long long)rows[i].max);
}

/* Visits that paused were made again when they went on, and do not count twice. */
static int64_t paused_visits(json_object *state, const char *stage)
{
    json_object *history = rv_json_get_arr(state, "processing_history");
    int64_t n = 0;

    for (size_t i = 0; history && i < json_object_array_length(history); i++) {
        json_object *record = json_object_array_get_idx(history, i);
        const char *agent = NULL, *status = NULL;
        if (rv_json_get_text(record, "agent", &agent) && rv_json_get_text(record, "status", &status) &&
            strcmp(agent, stage) == 0 && strcmp(status, rv_history_status_text(RV_HISTORY_SKIPPED)) == 0)
            n++;
    }
    return n;
}

static void check_visits(const struct rv_pipeline *p, const rv_envelope *env, json_object *state, struct reasons *r)
{
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        int64_t n = a->limits.max_visits > 0 ? rv_envelope_visits(env, rv_str_of(a->name)) : 0;
        if (n > a->limits.max_visits)
            n -= paused_visits(state, a->name);
        if (a->limits.max_visits > 0 && n > a->limits.max_visits)
            add(r, "stage \"%s\" was visited %lld times, which exceeds its max_visits %lld", a->name, (long long)n,
                (long long)a->limits.max_visits);
    }
}

static void check_edges(const struct rv_pipeline *p, const rv_envelope *env, struct reasons *r)
{
    for (size_t i = 0; i < p->n_edge_limits; i++) {
        const struct rv_edge_limit *e = &p->edge_limits[i];
        int64_t n = rv_envelope_passages(env, rv_str_of(e->from_name), rv_str_of(e->to_name));
        if (n > e->max_count)
            add(r, "the way from \"%s\" to \"%s\" was taken %lld times, which exceeds its max_count %lld", e->from_name,
                e->to_name, (long long)n, (long long)e->max_count);
    }
}

/* --- */

static int state_of(const rv_envelope *env, json_object **out, rv_err **err)
{
    const struct rv_json_opts limits = {
        .max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH, .what = "state"};
    rv_buf text = RV_BUF_INIT(RV_STATE_MAX_BYTES);
    int rc;

    rv_envelope_write_state(env, &text);
    rc = rv_buf_check(&text, "state", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &limits, out, err);
    rv_buf_fini(&text);
    return rc;
}

static int refuse(const struct rv_pipeline *p, struct reasons *r, rv_err **err)
{
    if (r->n > MAX_REASONS)
        rv_buf_printf(&r->text, "; and %zu more", r->n - MAX_REASONS);
    int rc = rv_buf_check(&r->text, "reasons", err);
    if (rc < 0)
        return rc;
    rc = RV_FAIL(err, RV_E_STATE, "the run does not fit pipeline \"%s\": %s", p->file, rv_buf_cstr(&r->text));
    rv_err_set_hint(err, "go on with the bundle that the run was started with, or bring back what is named");
    return rc;
}

int rv_bundle_fits(const struct rv_pipeline *next, const rv_envelope *env, rv_err **err)
{
    struct reasons r = {.text = RV_BUF_INIT((size_t)MAX_REASONS * 1024)};
    json_object *state = NULL;
    int rc;

    if (!next->is_sound)
        return RV_FAIL(err, RV_E_STATE, "pipeline \"%s\" has errors and cannot be run", next->name);
    rc = state_of(env, &state, err);
    if (rc == 0) {
        check_position(next, rv_envelope_fields(env)->current_stage, &r);
        check_set(next, state, "active_stages", "is active", &r);
        check_set(next, state, "completed_stage_set", "is completed", &r);
        check_set(next, state, "failed_stages", "failed", &r);
        check_waiting(next, state, &r);
        check_bounds(next, env, &r);
        check_visits(next, env, state, &r);
        check_edges(next, env, &r);
        if (r.n > 0)
            rc = refuse(next, &r, err);
    }
    json_object_put(state);
    rv_buf_fini(&r.text);
    return rc;
}
