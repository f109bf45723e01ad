/* A run again from its journal alone, compared with what was noted then. */
#include "coreengine/app/past.h"

#include <string.h>

struct listener {
    struct rv_app_verified *v;
    struct rv_hash events;
    struct rv_journal_end end; /* as the last event says */
    void (*on_event)(void *self, rv_str line);
    void *self;
};

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct listener *l = self;

    (void)run;
    int rc = record->kind == RV_RECORD_EVENT ? rv_record_get_end(record, &l->end, err) : 0;
    for (size_t i = 0; ev && i < effects->n; i++) {
        const struct rv_effect *e = &effects->items[i];
        if (e->kind != RV_EFFECT_EMIT)
            continue;
        rv_str line = rv_effect_text(effects, e);
        rv_hash_add(&l->events, line);
        rv_hash_add(&l->events, RV_STR_LIT("\n"));
        l->v->n_events++;
        if (l->on_event)
            l->on_event(l->self, line);
    }
    return rc;
}

/* The row of a run was written with its last record; more may have come since it was read. */
static int check_row(const struct rv_app_past *p, const struct rv_replayed *r, rv_err **err)
{
    enum rv_run_status status = rv_run_status(r->run);
    const char *stage = rv_envelope_fields(rv_run_envelope(r->run))->current_stage;

    if (r->seq != p->row.n_records)
        return 0;
    if (status != p->row.status)
        return RV_FAIL(err, RV_E_STATE, "after record %lld the run was %s; replayed it is %s", (long long)r->seq,
                       rv_run_status_text(p->row.status), rv_run_status_text(status));
    if (p->row.stage && strcmp(stage, p->row.stage) != 0)
        return RV_FAIL(err, RV_E_STATE,
                       "behind record %lld the run stood at stage \"%s\"; replayed it stands at \"%s\"",
                       (long long)r->seq, p->row.stage, stage);
    return 0;
}

static int take_state(const rv_run *run, struct rv_app_verified *v, rv_err **err)
{
    rv_buf state = RV_BUF_INIT(RV_APP_MAX_TEXT);

    rv_envelope_write_state(rv_run_envelope(run), &state);
    int rc = rv_buf_check(&state, "state", err);
    if (rc == 0)
        rv_hash_format(rv_buf_str(&state), v->state_hash);
    rv_buf_fini(&state);
    return rc;
}

/* The state that the run ended with. Another version of the engine may word a message of its own differently. */
static int check_end(const struct rv_journal_end *end, struct rv_app_verified *v, rv_err **err)
{
    if (!end->state_hash[0] || strcmp(end->state_hash, v->state_hash) == 0)
        return 0;
    if (strcmp(end->engine, rv_version()) != 0) {
        memcpy(v->other_engine, end->engine, sizeof v->other_engine);
        return 0;
    }
    int rc = RV_FAIL(err, RV_E_STATE, "the run ended with the state sha256 %s; replayed it ends with %s",
                     end->state_hash, v->state_hash);
    rv_err_set_hint(err,
                    "it made the same calls, and did something else with their answers: `reeve replay RUN --state` "
                    "prints the state");
    return rc;
}

int rv_app_verify(rv_store *store, const struct rv_app_past *p, const struct rv_app_verify_opts *opts,
                  struct rv_app_verified *out, struct rv_replayed *replayed, rv_err **err)
{
    struct listener l = {.v = out, .on_event = opts ? opts->on_event : NULL, .self = opts ? opts->self : NULL};

    *out = (struct rv_app_verified){.records = 0};
    rv_hash_init(&l.events);
    int rc =
        rv_app_past_replay(store, p, &(struct rv_app_replay_opts){opts ? opts->upto : 0, on_step, &l}, replayed, err);
    if (rc < 0)
        return rc; /* it names the run */
    rc = check_row(p, replayed, err);
    if (rc == 0)
        rc = take_state(replayed->run, out, err);
    if (rc == 0)
        rc = check_end(&l.end, out, err);
    if (rc < 0) {
        rv_replayed_fini(replayed);
        return RV_WRAP(err, rc, "replay run \"%s\"", p->row.id);
    }
    rv_hash_finish_hex(&l.events, out->events_hash);
    out->records = replayed->seq;
    out->status = rv_run_status(replayed->run);
    out->n_open = (int64_t)replayed->open.n;
    return 0;
}

bool rv_app_is_difference(const rv_err *fault)
{
    int rc = rv_err_code(fault);
    bool is_damage = rv_err_is(fault, RV_E_INVALID) || rv_err_is(fault, RV_E_PARSE);

    if (rv_err_is(fault, RV_E_NOMEM))
        return false;
    return rc == RV_E_STATE || (is_damage && (rc == RV_E_IO || rc == RV_E_INVALID || rc == RV_E_PARSE));
}

void rv_app_verified_write(const struct rv_app_past *p, const struct rv_app_verified *v, const rv_err *fault, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "run", p->row.id);
    rv_jw_kv_bool(w, "identical", !fault);
    if (fault) {
        rv_jw_key(w, "error");
        rv_err_write_json(fault, w);
    } else {
        rv_jw_kv_int(w, "records", v->records);
        rv_jw_kv_int(w, "of", p->row.n_records);
        rv_jw_kv_text(w, "status", rv_run_status_text(v->status));
        rv_jw_kv_int(w, "events", v->n_events);
        rv_jw_kv_int(w, "open_calls", v->n_open);
        rv_jw_kv_text(w, "state_sha256", v->state_hash);
        rv_jw_kv_text(w, "events_sha256", v->events_hash);
        if (v->other_engine[0])
            rv_jw_kv_text(w, "state_differs_from_engine", v->other_engine);
    }
    rv_jw_obj_end(w);
}
