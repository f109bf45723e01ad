/* Another run, from the state behind a step of a run of the store. */
#include "coreengine/app/past.h"

#include <string.h>

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
        rc = rv_json_set_text(state, "envelope_id", fork->id, err);
    if (rc < 0)
        json_object_put(state);
    else
        *out = state;
    return rc;
}

static int make_run(rv_store *store, const struct rv_app_past *p, const struct rv_app_saved *from, json_object *state,
                    rv_err **err)
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
    if (start.begin.own_conversation) /* the fork reads the history of the session and adds no rows to it */
        start.begin.own_conversation->keeps = false;
    if (rc == 0)
        rc = rv_journal_create(store, &start, NULL, err);
    rv_journal_begin_fini(&start.begin);
    rv_envelope_free(env);
    return rc;
}

int rv_app_fork(rv_store *store, const struct rv_store_scope *scope, const char *word, struct rv_app_fork *fork,
                rv_err **err)
{
    struct rv_app_past p;
    struct rv_app_saved saved;
    json_object *state = NULL;

    rv_id_make(rv_rand_system(), "env_", fork->id);
    int rc = rv_app_past_open(store, scope, word, &p, err);
    if (rc < 0)
        return rc;
    rc = rv_app_saved_read(store, &p, fork->step, &saved, err);
    if (rc == 0) {
        rc = changed_state(fork, rv_buf_str(&saved.state), &state, err);
        if (rc == 0)
            rc = make_run(store, &p, &saved, state, err);
        json_object_put(state);
        rv_app_saved_fini(&saved);
    }
    rv_app_past_fini(&p);
    return rc;
}
