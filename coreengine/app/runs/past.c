/* A run of the store, read again: its bundle without capabilities, its journal without performing anything. */
#include "coreengine/app/past.h"

#include <string.h>

int64_t rv_app_now_us(void)
{
    struct rv_clock clock = rv_clock_system();
    return clock.now_us(clock.self);
}

static int open_bundle(rv_store *store, struct rv_app_past *p, rv_err **err)
{
    const struct rv_bundle_opts opts = {.offline = true};
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_VALUE);

    int rc = rv_store_get_blob(store, p->row.bundle, &text, err);
    if (rc == 0)
        rc = rv_bundle_open(rv_buf_str(&text), &opts, &p->bundle, err);
    rv_buf_fini(&text);
    if (rc < 0)
        return RV_WRAP(err, rc, "open what run \"%s\" was started with", p->row.id);
    p->catalog = rv_bundle_catalog(p->bundle);
    return 0;
}

int rv_app_past_open(rv_store *store, const struct rv_store_scope *scope, const char *word, struct rv_app_past *out,
                     rv_err **err)
{
    *out = (struct rv_app_past){.scope = *scope};
    int rc = rv_app_find_run(store, scope, word, &out->row, err);
    if (rc == 0)
        rc = open_bundle(store, out, err);
    if (rc < 0)
        rv_app_past_fini(out);
    return rc;
}

void rv_app_past_fini(struct rv_app_past *p)
{
    rv_bundle_free(p->bundle);
    rv_run_row_fini(&p->row);
    memset(p, 0, sizeof *p);
}

const struct rv_pipeline *rv_app_past_pipeline(const struct rv_app_past *p)
{
    return rv_bundle_pipeline(p->bundle);
}

int rv_app_past_replay(rv_store *store, const struct rv_app_past *p, const struct rv_app_replay_opts *opts,
                       struct rv_replayed *out, rv_err **err)
{
    const struct rv_replay_opts how = {.pipeline = rv_bundle_pipeline(p->bundle),
                                       .catalog = &p->catalog,
                                       .upto = opts ? opts->upto : 0,
                                       .on_step = opts ? opts->on_step : NULL,
                                       .self = opts ? opts->self : NULL};
    int rc = rv_journal_replay(store, &p->scope, p->row.id, &how, out, err);
    bool is_damaged = rc == RV_E_INVALID || rc == RV_E_PARSE; /* of the store, not of the command line */
    return is_damaged ? RV_WRAP(err, RV_E_IO, "read a journal in \"%s\"", rv_store_url(store)) : rc;
}

int rv_app_script_open(rv_store *store, const struct rv_app_past *p, struct rv_app_script *out, rv_err **err)
{
    *out = (struct rv_app_script){.pipeline = rv_app_past_pipeline(p)};
    int rc = rv_journal_read_begin(store, &p->scope, p->row.id, out->pipeline, &out->begin, err);
    if (rc < 0 || !out->begin.has_script)
        return rc;
    out->script = rv_bundle_script(p->bundle);
    rc = out->script ? rv_script_set_position(out->script, out->begin.script_at, err) : 0;
    if (rc < 0)
        rv_app_script_fini(out);
    return rc;
}

int rv_app_script_pass_event(struct rv_app_script *s, const struct rv_event *ev, const rv_run *run, rv_err **err)
{
    struct rv_response response;

    if (!s->script || !s->begin.answers_from_script)
        return 0;
    if (ev->kind == RV_EVENT_ANSWER)
        RV_IGNORE(!rv_script_answer(s->script, &response, NULL), "it only moves on: the journal has the answer");
    return rv_run_is_finished(run) && rv_run_status(run) == RV_RUN_INTERRUPTED
               ? rv_script_on_wait(s->script, rv_run_envelope(run), rv_run_question_stage(run), err)
               : 0;
}

int rv_app_script_pass_effect(struct rv_app_script *s, const struct rv_effect *e, rv_err **err)
{
    return rv_engine_pass_script(s->script, s->pipeline, s->begin.scripted, e, err);
}

int rv_app_script_build_position(const struct rv_app_script *s, json_object **out, rv_err **err)
{
    *out = NULL;
    return s->script ? rv_script_build_position(s->script, out, err) : 0;
}

void rv_app_script_fini(struct rv_app_script *s)
{
    rv_journal_begin_fini(&s->begin);
    s->script = NULL;
}

enum rv_app_owner rv_app_owner_of(const struct rv_run_row *row, int64_t now_us)
{
    if (!row->owner)
        return RV_APP_OWNER_NONE;
    if (rv_owner_is_dead(row->owner))
        return RV_APP_OWNER_DEAD;
    return row->lease_until_us <= now_us ? RV_APP_OWNER_LATE : RV_APP_OWNER_LIVES;
}
