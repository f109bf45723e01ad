/* A run as pictures need it, as JSON: when its steps and calls were and what they took, and how far each of its stages
 * has come. */
#include "config/analysis/analysis.h"
#include "coreengine/app/past.h"
#include "coreengine/app/rows.h"

#include <stdlib.h>
#include <string.h>

/* --- the timeline --- */

/* Milliseconds since the run was made, and until it ended or now; what has not begun has no place. */
static void put_span(const struct rv_app_view *v, int64_t begun_us, int64_t ended_us, rv_jw *w)
{
    int64_t from = begun_us > v->past->row.created_us ? begun_us - v->past->row.created_us : 0;
    int64_t until = ended_us > 0 ? ended_us : v->now_us;

    rv_jw_kv_int(w, "start_ms", from / 1000);
    rv_jw_kv_int(w, "duration_ms", until > begun_us ? (until - begun_us) / RV_US_PER_MS : 0);
    rv_jw_kv_bool(w, "ended", ended_us > 0);
}

static void put_call(const struct rv_app_view *v, const struct rv_app_call *c, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_int(w, "call_id", c->id);
    rv_jw_kv_text(w, "kind", rv_app_call_kind(c));
    rv_jw_kv_text(w, "name", c->name);
    if (c->asked)
        rv_jw_kv_text(w, "asked", c->asked);
    if (c->agent)
        rv_jw_kv_text(w, "agent", c->agent);
    if (c->asker != RV_APP_NO_CALL)
        rv_jw_kv_int(w, "parent_call_id", v->steps->calls[c->asker].id);
    rv_jw_kv_int(w, "attempt", c->attempt);
    rv_jw_kv_text(w, "outcome", rv_app_call_end_text(c->end));
    put_span(v, c->begun_us, c->ended_us, w);
    if (c->has_spent && (c->spent.is_told || c->spent.usage.cost_micro_usd)) {
        rv_jw_key(w, "usage");
        rv_usage_write_json(&c->spent.usage, w);
    }
    rv_jw_obj_end(w);
}

static const char *stage_name(const struct rv_app_view *v, const struct rv_app_step *s)
{
    return s->label ? s->label : s->stage >= 0 ? rv_app_past_pipeline(v->past)->agents[s->stage].name : "-";
}

static void put_step(const struct rv_app_view *v, const struct rv_app_step *s, rv_jw *w)
{
    static const char *const keys[] = {"status", "outcome", "next_stage", "error", "code", "usage"};
    json_object *part;

    rv_jw_obj(w);
    rv_jw_key(w, "step");
    if (s->number)
        rv_jw_int(w, s->number);
    else
        rv_jw_null(w);
    rv_jw_kv_text(w, "stage", stage_name(v, s));
    rv_jw_kv_int(w, "visit", s->visit);
    if (s->path)
        rv_jw_kv_text(w, "path", s->path);
    if (s->index >= 0)
        rv_jw_kv_int(w, "index", s->index);
    rv_jw_kv_bool(w, "can_fork", s->can_fork);
    put_span(v, s->begun_us, s->ended_us, w);
    for (size_t k = 0; s->end && k < RV_COUNT(keys); k++)
        if (json_object_object_get_ex(s->end, keys[k], &part))
            rv_jw_kv_value(w, keys[k], part);
    rv_jw_key(w, "calls");
    rv_jw_arr(w);
    for (size_t c = s->first_call; c != RV_APP_NO_CALL; c = v->steps->calls[c].next)
        put_call(v, &v->steps->calls[c], w);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

static void put_run(const struct rv_app_view *v, rv_jw *w)
{
    const struct rv_run_row *row = &v->past->row;

    rv_jw_kv_text(w, "run", row->id);
    rv_jw_kv_text(w, "pipeline", row->pipeline);
    rv_jw_kv_text(w, "status", rv_run_status_text(row->status));
    rv_jw_kv_int(w, "next_event", rv_run_counters(v->replayed->run).next_seq);
}

void rv_app_timeline_write(const struct rv_app_view *v, rv_jw *w)
{
    const struct rv_envelope_used used = rv_run_used(v->replayed->run);
    const struct rv_run_row *row = &v->past->row;
    int64_t until = rv_run_status_is_final(row->status) ? row->updated_us : v->now_us;

    rv_jw_obj(w);
    put_run(v, w);
    rv_jw_kv_int(w, "duration_ms", until > row->created_us ? (until - row->created_us) / RV_US_PER_MS : 0);
    rv_jw_key(w, "usage");
    rv_usage_write_json(&used.usage, w);
    rv_jw_key(w, "steps");
    rv_jw_arr(w);
    for (size_t i = 0; i < v->steps->n; i++)
        if (!v->steps->items[i].is_left_out)
            put_step(v, &v->steps->items[i], w);
    rv_jw_arr_end(w);
    rv_jw_kv_int(w, "steps_left_out", v->steps->n_left_out);
    rv_jw_obj_end(w);
}

/* --- the graph --- */

/* How far a stage has come; the words of its state are those of the member. */
struct reached {
    int64_t visits, open;
    const char *last; /* status of the visit that ended last; borrowed; NULL: none did */
};

/* Also beside other branches of a group, where the run as a whole stands elsewhere. */
static bool has_question(const struct rv_app_view *v, const char *stage)
{
    const rv_envelope *env = rv_run_envelope(v->replayed->run);
    struct rv_interrupt in = rv_envelope_interrupt(env);
    bool has = rv_envelope_has_interrupt(env) && in.stage && strcmp(in.stage, stage) == 0;

    for (size_t i = 0; i < rv_envelope_n_queued(env) && !has; i++)
        has = strcmp(rv_json_text_or(rv_envelope_queued_at(env, i), "stage", ""), stage) == 0;
    return has;
}

static const char *state_of(const struct rv_app_view *v, const struct reached *r, const char *stage)
{
    enum rv_run_status status = v->past->row.status;
    bool is_there = v->past->row.stage && strcmp(v->past->row.stage, stage) == 0;

    if (status == RV_RUN_INTERRUPTED && (r->open > 0 || (is_there && r->visits > 0) || has_question(v, stage)))
        return "waits";
    if (r->open > 0)
        return rv_run_status_is_final(status) ? "cancelled" : "running";
    if (!r->last)
        return "pending";
    if (strcmp(r->last, "asked") == 0)
        return rv_run_status_is_final(status) ? "cancelled" : "waits";
    return strcmp(r->last, "error") == 0 ? "failed" : strcmp(r->last, "skipped") == 0 ? "skipped" : "completed";
}

/* Stages of inner pipelines have no box of their own: they count for none. */
static void count_steps(const struct rv_app_view *v, size_t n_stages, struct reached *reached)
{
    for (size_t i = 0; i < v->steps->n; i++) {
        const struct rv_app_step *s = &v->steps->items[i];
        if (s->label || s->stage < 0 || (size_t)s->stage >= n_stages)
            continue;
        struct reached *r = &reached[s->stage];
        r->visits++;
        r->open += s->number == 0;
        if (s->number != 0)
            r->last = s->end ? rv_app_visit_status(s->end) : "success";
    }
}

static void put_moves(const struct rv_app_view *v, rv_jw *w)
{
    rv_jw_key(w, "moves");
    rv_jw_arr(w);
    for (size_t i = 0; i < v->steps->n; i++) {
        const struct rv_app_step *s = &v->steps->items[i];
        const char *next = NULL;
        if (s->label || !s->end || s->asks || !rv_json_get_text(s->end, "next_stage", &next))
            continue;
        rv_jw_obj(w);
        rv_jw_kv_text(w, "from", stage_name(v, s));
        rv_jw_kv_text(w, "to", next);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

int rv_app_progress_write(const struct rv_app_view *v, rv_jw *w, rv_err **err)
{
    const struct rv_pipeline *p = rv_app_past_pipeline(v->past);
    struct reached *reached = calloc(p->n_agents + 1, sizeof *reached);
    rv_buf graph = RV_BUF_INIT(RV_APP_MAX_TEXT);

    if (!reached)
        return RV_FAIL(err, RV_E_NOMEM, "draw a run");
    rv_pipeline_write_graph(p, RV_GRAPH_JSON, &graph);
    int rc = rv_buf_check(&graph, "the drawing of a run", err);
    if (rc == 0) {
        count_steps(v, p->n_agents, reached);
        rv_jw_obj(w);
        put_run(v, w);
        rv_jw_key(w, "stages");
        rv_jw_arr(w);
        for (size_t i = 0; i < p->n_agents; i++) {
            rv_jw_obj(w);
            rv_jw_kv_text(w, "stage", p->agents[i].name);
            rv_jw_kv_text(w, "state", state_of(v, &reached[i], p->agents[i].name));
            rv_jw_kv_int(w, "visits", reached[i].visits);
            rv_jw_obj_end(w);
        }
        rv_jw_arr_end(w);
        put_moves(v, w);
        rv_jw_key(w, "graph");
        rv_jw_raw(w, rv_buf_str(&graph));
        rv_jw_obj_end(w);
    }
    rv_buf_fini(&graph);
    free(reached);
    return rc;
}
