/* One run as JSON: what it was started with, its steps and calls, what it waits for, its state. */
#include "coreengine/app/past.h"

const char *rv_app_owner_text(enum rv_app_owner owner)
{
    static const char *const texts[] = {
        [RV_APP_OWNER_NONE] = "none",
        [RV_APP_OWNER_LIVES] = "alive",
        [RV_APP_OWNER_LATE] = "its lease has ended",
        [RV_APP_OWNER_DEAD] = "gone",
    };
    return texts[owner];
}

const char *rv_app_call_kind(const struct rv_app_call *c)
{
    if (c->kind != RV_EFFECT_CALL_HOOK)
        return c->kind == RV_EFFECT_CALL_LLM ? "model" : "tool";
    return c->entry == RV_NAME_POLICY  ? "policy"
           : c->entry == RV_NAME_MOCK  ? "mock"
           : c->entry == RV_NAME_ROUTE ? "route"
                                       : "hook";
}

static void put_time(rv_jw *w, const char *key, int64_t us)
{
    char text[RV_TIME_MAX];

    if (us <= 0)
        return;
    rv_time_format(us, text);
    rv_jw_kv_text(w, key, text);
}

static void write_row(const struct rv_app_view *p, rv_jw *w)
{
    const struct rv_run_row *r = &p->past->row;

    rv_jw_kv_text(w, "id", r->id);
    rv_jw_kv_text(w, "pipeline", r->pipeline);
    rv_jw_kv_text(w, "status", rv_run_status_text(r->status));
    rv_jw_kv_text(w, "stage", r->stage);
    rv_jw_kv_text(w, "user", r->user);
    rv_jw_kv_text(w, "session", r->session);
    put_time(w, "created_at", r->created_us);
    put_time(w, "updated_at", r->updated_us);
    rv_jw_kv_int(w, "records", r->n_records);
    rv_jw_kv_text(w, "bundle", r->bundle);
    if (r->parent) {
        rv_jw_kv_text(w, "parent", r->parent);
        rv_jw_kv_int(w, "parent_seq", r->parent_seq);
    }
    rv_jw_kv_bool(w, "mock", p->replayed->begin.use_mocks);
    rv_jw_kv_bool(w, "script", p->replayed->begin.has_script);
    rv_jw_kv_bool(w, "cancel_requested", r->cancel_requested);
    rv_jw_key(w, "owner");
    if (!r->owner) {
        rv_jw_null(w);
        return;
    }
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", r->owner);
    rv_jw_kv_text(w, "state", rv_app_owner_text(rv_app_owner_of(r, p->now_us)));
    put_time(w, "lease_until", r->lease_until_us);
    rv_jw_kv_int(w, "fence", r->fence);
    rv_jw_obj_end(w);
}

static void write_call(const struct rv_app_view *p, const struct rv_app_call *c, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_int(w, "call_id", c->id);
    rv_jw_kv_text(w, "kind", rv_app_call_kind(c));
    rv_jw_kv_text(w, "name", c->name);
    if (c->kind == RV_EFFECT_CALL_TOOL)
        rv_jw_kv_text(w, "class", rv_effect_class_text((enum rv_effect_class)c->effect_class));
    if (c->asked)
        rv_jw_kv_text(w, "asked", c->asked);
    if (c->agent)
        rv_jw_kv_text(w, "agent", c->agent);
    if (c->asker != RV_APP_NO_CALL)
        rv_jw_kv_int(w, "parent_call_id", p->steps->calls[c->asker].id);
    rv_jw_kv_int(w, "attempt", c->attempt);
    rv_jw_kv_text(w, "outcome", rv_app_call_end_text(c->end));
    put_time(w, "begun_at", c->begun_us);
    put_time(w, "ended_at", c->ended_us);
    if (c->has_spent && (c->spent.is_told || c->spent.usage.cost_micro_usd)) {
        rv_jw_key(w, "usage");
        rv_usage_write_json(&c->spent.usage, w);
    }
    if (c->muted)
        rv_jw_kv_text(w, "muted_text", c->muted);
    if (c->spent.latency_ms)
        rv_jw_kv_int(w, "latency_ms", c->spent.latency_ms);
    if (c->spent.first_ms)
        rv_jw_kv_int(w, "first_token_ms", c->spent.first_ms);
    rv_jw_obj_end(w);
}

static void write_step(const struct rv_app_view *p, size_t i, rv_jw *w)
{
    static const char *const keys[] = {"status", "outcome",    "output_key", "output", "next_stage",
                                       "error",  "error_type", "code",       "usage"};
    const struct rv_app_step *s = &p->steps->items[i];
    json_object *part;

    rv_jw_obj(w);
    rv_jw_key(w, "step");
    if (s->end)
        rv_jw_int(w, s->number);
    else
        rv_jw_null(w);
    rv_jw_kv_text(w, "stage", s->stage >= 0 ? rv_app_past_pipeline(p->past)->agents[s->stage].name : "-");
    rv_jw_kv_int(w, "visit", s->visit);
    rv_jw_kv_bool(w, "can_fork", s->can_fork);
    rv_jw_kv_bool(w, "asks", s->asks);
    put_time(w, "begun_at", s->begun_us);
    put_time(w, "ended_at", s->ended_us);
    if (s->end)
        rv_jw_kv_int(w, "record", s->seq);
    for (size_t k = 0; s->end && k < RV_COUNT(keys); k++)
        if (json_object_object_get_ex(s->end, keys[k], &part))
            rv_jw_kv_value(w, keys[k], part);
    rv_jw_key(w, "calls");
    rv_jw_arr(w);
    for (size_t c = s->first_call; c != RV_APP_NO_CALL; c = p->steps->calls[c].next)
        write_call(p, &p->steps->calls[c], w);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

void rv_app_view_write(const struct rv_app_view *p, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);
    rv_buf state = RV_BUF_INIT(RV_APP_MAX_TEXT);

    rv_jw_obj(&w);
    write_row(p, &w);
    rv_jw_key(&w, "steps");
    rv_jw_arr(&w);
    for (size_t i = 0; i < p->steps->n; i++)
        if (!p->steps->items[i].is_left_out)
            write_step(p, i, &w);
    rv_jw_arr_end(&w);
    if (p->steps->n_left_out)
        rv_jw_kv_int(&w, "steps_left_out", p->steps->n_left_out);
    rv_jw_key(&w, "usage");
    rv_usage_write_json(&rv_envelope_fields(rv_run_envelope(p->replayed->run))->usage, &w);
    rv_jw_kv_value(&w, "pending", p->pending);
    rv_envelope_write_state(rv_run_envelope(p->replayed->run), &state);
    if (state.rc < 0 && b->rc == 0)
        b->rc = state.rc;
    rv_jw_key(&w, "state");
    rv_jw_raw(&w, rv_buf_str(&state));
    rv_jw_obj_end(&w);
    rv_buf_fini(&state);
}
