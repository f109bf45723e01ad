/* Going on with a run of the store: as its new owner, by its own bundle; or, of a run that waits, with another
 * pipeline: a new run takes its place, from the state it stands at, and the old one is ended in the same transaction,
 * so that an answer cannot reach both. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/past.h"

#include <limits.h>
#include <string.h>

int app_open_bundle(const struct rv_app *app, rv_store *store, const struct rv_run_row *row, unsigned use,
                    struct rv_app_loaded *out, rv_err **err)
{
    bool calls = use & RV_APP_MAKES_CALLS;
    const struct rv_bundle_opts opts = {.offline = !calls};
    const struct rv_app_load_opts load = {.keeps = true, .store = use & RV_APP_OWN_HANDLE ? NULL : store};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_BUNDLE);
    rv_bundle *bundle = NULL;

    int rc = rv_store_get_blob(store, row->bundle, &text, err);
    if (rc == 0)
        rc = rv_bundle_open(rv_buf_str(&text), &opts, &bundle, err);
    rv_buf_fini(&text);
    if (rc == 0)
        rc = app_load_bundle(app, &load, bundle, calls, out, err);
    return rc < 0 ? RV_WRAP(err, rc, "open what run \"%s\" was started with", row->id) : 0;
}

/* See struct rv_app_early. */
static int take_early(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                      struct rv_journal_claim by, struct rv_app_early *out, rv_err **err)
{
    struct rv_clock clock = rv_clock_system();
    int rc;

    do {
        rv_journal_free(out->journal);
        out->journal = NULL;
        rc = rv_store_begin(store, err);
        if (rc < 0)
            continue;
        by.now_us = clock.now_us(clock.self); /* within the transaction */
        const struct rv_store_claim claim = {
            .owner = by.owner, .now_us = by.now_us, .until_us = by.now_us + by.lease_us};
        if (row->owner)
            rc = rv_journal_open(store, scope, row->id, &by, &out->journal, err);
        else
            rc = rv_store_claim(store, scope, row->id, &claim, &out->fence, err);
        rc = rv_store_end(store, rc, err);
    } while (rc < 0 && rv_store_wait_again(store, err));
    return rc;
}

int rv_app_continue(struct rv_app_run *run, rv_store *store, const char *id, enum rv_app_go go,
                    struct rv_app_loaded *out, rv_err **err)
{
    const struct rv_app *app = run->app;
    struct rv_run_row row = {0};

    int rc = app_run_prepare(run, err);
    if (rc == 0 && !(run->state->id = rv_str_dup(rv_str_of(id))))
        rc = RV_FAIL(err, RV_E_NOMEM, "go on with a run");
    if (rc < 0)
        return rc;
    run->loaded = out;
    run->store = store;
    run->state->continues = true;
    run->state->cancels = go == RV_APP_CANCEL;
    rv_owner_make_name(run->owner);
    rc = rv_store_get_run(store, &app->scope, id, &row, err);
    if (rc == 0)
        app_limits_set(&run->state->limits, run->state->quotas, row.tenant, row.user);
    bool recovers = rc == 0 && go == RV_APP_RECOVER && (row.status == RV_RUN_READY || row.status == RV_RUN_RUNNING);
    if (recovers)
        rc = take_early(store, &app->scope, &row,
                        (struct rv_journal_claim){.owner = run->owner, .lease_us = app_lease_us(app)},
                        &run->state->early, err);
    if (rc == 0)
        rc = app_open_bundle(app, store, &row, go != RV_APP_CANCEL ? RV_APP_MAKES_CALLS : 0, out, err);
    rv_run_row_fini(&row);
    return rc;
}

/* In the group of the first step. Loading may have taken longer than the lease. */
int rv_app_take_over(struct rv_app_run *run, rv_err **err)
{
    struct rv_app_early *early = &run->state->early;
    struct rv_clock clock = rv_clock_system();
    int64_t lease_us = app_lease_us(run->app);

    int rc = rv_store_begin(run->store, err); /* taking the run over and its next step are one commit */
    if (rc < 0)
        return rc;
    int64_t now_us = clock.now_us(clock.self);
    if (early->journal) {
        run->journal = early->journal;
        early->journal = NULL;
        rc = rv_store_renew(run->store, run->owner, now_us + lease_us, err);
        if (rc == 0)
            rv_journal_on_renewed(run->journal, now_us + lease_us);
        return rc;
    }
    if (early->fence)
        rc = rv_store_release(run->store, run->state->id, early->fence, err);
    return rc < 0 ? rc
                  : rv_journal_open(run->store, &run->app->scope, run->state->id,
                                    &(struct rv_journal_claim){run->owner, now_us, lease_us}, &run->journal, err);
}

/* --- with another pipeline --- */

struct move {
    const struct rv_app_run *how;
    rv_store *store;
    const char *script_path; /* NULL: none */
    struct rv_app_past past;
    struct rv_replayed was;
    struct rv_app_script script; /* where it stood */
    json_object *script_at;      /* owned; NULL: the new run begins with the first entries */
    struct rv_app_loaded *next;  /* the caller finishes it */
};

/* "new": the file it came from; else the file that is named. */
static int load_next(struct move *m, const char *word, rv_err **err)
{
    const char *base = rv_bundle_base(m->past.bundle), *file = rv_app_past_pipeline(&m->past)->file;
    const char *script = m->script_path, *slash = strrchr(file, '/');
    rv_buf same = RV_BUF_INIT(PATH_MAX);
    const char *path = word;
    int rc;

    if (strcmp(word, "new") == 0) {
        if (base)
            rv_buf_printf(&same, "%s/%s", base, slash ? slash + 1 : file);
        else
            rv_buf_puts(&same, file);
        path = rv_buf_cstr(&same);
    }

    if (m->was.begin.has_script && !script) {
        rc = RV_FAIL(err, RV_E_INVALID, "run \"%s\" was started with a script", m->past.row.id);
        rv_err_set_hint(err, "name the script to continue with");
    } else {
        rc = rv_buf_check(&same, "path", err);
        if (rc == 0) {
            const struct rv_app_load_opts opts = {.script = script, .keeps = true, .store = m->store};
            rc = rv_app_load(m->how->app, path, &opts, m->next, err);
        }
        if (rc == 0 && (!m->next->pipeline || rv_findings_n_errors(m->next->findings) > 0))
            rc = RV_FAIL(err, RV_E_INVALID, "pipeline \"%s\" has errors", path);
    }
    rv_buf_fini(&same);
    return rc;
}

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    struct move *m = self;
    int rc = 0;

    (void)record;
    if (ev)
        rc = rv_app_script_pass_event(&m->script, ev, run, err);
    for (size_t i = 0; ev && i < effects->n && rc == 0; i++)
        rc = rv_app_script_pass_effect(&m->script, &effects->items[i], err);
    return rc;
}

/* Its place is of use only in the same text. */
static int keep_place(struct move *m, rv_err **err)
{
    rv_buf was = RV_BUF_INIT(RV_APP_MAX_TEXT), is = RV_BUF_INIT(RV_APP_MAX_TEXT);
    const char *name;

    if (!m->script.script || !m->next->script)
        return 0;
    int rc = rv_script_write_source(m->script.script, &name, &was, err);
    if (rc == 0)
        rc = rv_script_write_source(m->next->script, &name, &is, err);
    if (rc == 0 && rv_str_eq(rv_buf_str(&was), rv_buf_str(&is)))
        rc = rv_app_script_build_position(&m->script, &m->script_at, err);
    rv_buf_fini(&was);
    rv_buf_fini(&is);
    return rc;
}

/* Those of inner pipelines that wait in it. */
static int rename_inside(json_object *state, rv_err **err)
{
    json_object *waiting = rv_json_get_obj(state, "suspended"), *branches = rv_json_get_arr(state, "branches");
    size_t n = branches ? json_object_array_length(branches) : 0;
    int rc = 0;

    if (waiting) {
        json_object_object_foreach (waiting, stage, work) {
            json_object *inner = json_object_is_type(work, json_type_object) ? rv_json_get_obj(work, "state") : NULL;
            char id[RV_ID_MAX];

            (void)stage;
            if (rc < 0 || !inner || !rv_json_get_obj(work, "inputs"))
                continue;
            rv_id_make(rv_rand_system(), "env_", id);
            rc = rv_json_set_text(inner, "envelope_id", id, err);
            if (rc == 0)
                rc = rename_inside(inner, err);
        }
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *branch = json_object_array_get_idx(branches, i);
        json_object *own = json_object_is_type(branch, json_type_object) ? rv_json_get_obj(branch, "own") : NULL;
        rc = own ? rename_inside(own, err) : 0;
    }
    return rc;
}

int app_state_rename(json_object *state, const char *id, rv_err **err)
{
    int rc = rv_json_set_text(state, "envelope_id", id, err);

    return rc < 0 ? rc : rename_inside(state, err);
}

int app_state_as(const rv_envelope *env, const char *id, rv_envelope **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    rv_buf text = RV_BUF_INIT(RV_STATE_MAX_BYTES);
    json_object *state = NULL;

    rv_envelope_write_state(env, &text);
    int rc = rv_buf_check(&text, "state", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, &state, err);
    if (rc == 0)
        rc = app_state_rename(state, id, err);
    if (rc == 0)
        rc = rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), out, err);
    json_object_put(state);
    rv_buf_fini(&text);
    return rc;
}

/* The turn goes on in the new run, which keeps it whole. */
static void drop_turns(struct rv_effects *effects)
{
    size_t n = 0;

    for (size_t i = 0; i < effects->n; i++) {
        if (effects->items[i].kind == RV_EFFECT_KEEP)
            rv_effect_fini(&effects->items[i]);
        else
            effects->items[n++] = effects->items[i];
    }
    effects->n = n;
}

static int end_old(struct move *m, const char *owner, rv_err **err)
{
    struct rv_event ev = {.kind = RV_EVENT_CANCEL, .now_us = rv_app_now_us()};
    struct rv_effects effects = {0};
    rv_journal *j = NULL;

    if (ev.now_us < m->was.last_us)
        ev.now_us = m->was.last_us;
    int rc = rv_journal_open(m->store, &m->past.scope, m->past.row.id,
                             &(struct rv_journal_claim){.owner = owner, .now_us = ev.now_us}, &j, err);
    if (rc == 0 && rv_journal_seq(j) != m->was.seq)
        rc = RV_FAIL(err, RV_E_STATE, "run \"%s\" continued in the meantime", m->past.row.id);
    if (rc == 0)
        rc = rv_run_step(m->was.run, &ev, &effects, err);
    if (rv_app_has_agents(m->next->pipeline))
        drop_turns(&effects);
    if (rc == 0)
        rc = rv_journal_step(j, &ev, &effects, m->was.run, err);
    rv_journal_free(j);
    rv_effects_fini(&effects);
    return rc;
}

static int move_over(struct move *m, const char *id, rv_err **err)
{
    char owner[RV_OWNER_MAX];
    rv_envelope *env = NULL;
    struct rv_conversation *conversation = m->was.begin.own_conversation;
    const struct rv_app_begin begin = {.parent = m->past.row.id,
                                       .parent_seq = m->was.seq,
                                       .script_at = m->script_at,
                                       .conversation = conversation,
                                       .in_group = true};
    struct rv_app_run run = {
        .app = m->how->app, .loaded = m->next, .mode = m->how->mode, .use_mocks = m->how->use_mocks, .store = m->store};

    rv_owner_make_name(owner);
    int rc = app_state_as(rv_run_envelope(m->was.run), id, &env, err);
    if (rc < 0)
        return rc;
    rc = rv_store_begin(m->store, err); /* once: the old run in memory moves on, too */
    if (rc == 0) {
        if (conversation)
            rc = rv_journal_tell_again(m->store, &m->past.scope, conversation, err);
        if (rc == 0)
            rc = app_keep(&run, env, &begin, err);
        rv_journal_free(run.journal);
        rc = rv_store_end(m->store, rc == 0 ? end_old(m, owner, err) : rc, err);
    }
    rv_envelope_free(env);
    return rc;
}

int rv_app_migrate(const struct rv_app_run *opts, rv_store *store, const struct rv_app_migration *what,
                   struct rv_app_loaded *next, char id[RV_ID_MAX], rv_err **err)
{
    struct move m = {.how = opts, .store = store, .script_path = what->script, .next = next};

    int rc = rv_app_past_open(store, &opts->app->scope, what->run, &m.past, err);
    if (rc < 0)
        return rc;
    rc = rv_app_script_open(store, &m.past, &m.script, err);
    if (rc == 0)
        rc = rv_app_past_replay(store, &m.past, &(struct rv_app_replay_opts){.on_step = on_step, .self = &m}, &m.was,
                                err);
    if (rc == 0 && !(rv_run_is_finished(m.was.run) && rv_run_status(m.was.run) == RV_RUN_INTERRUPTED))
        rc = RV_FAIL(err, RV_E_STATE, "only a waiting run can continue with another pipeline; run \"%s\" is %s",
                     m.past.row.id, rv_run_status_text(m.past.row.status));
    if (rc == 0)
        rc = load_next(&m, what->word, err);
    if (rc == 0)
        rc = rv_bundle_fits(m.next->pipeline, rv_run_envelope(m.was.run), err);
    if (rc == 0)
        rc = keep_place(&m, err);
    rv_id_make(rv_rand_system(), "env_", id);
    if (rc == 0)
        rc = move_over(&m, id, err);
    rv_replayed_fini(&m.was);
    rv_app_script_fini(&m.script);
    json_object_put(m.script_at);
    if (rc < 0)
        rc = RV_WRAP(err, rc, "go on with another pipeline than run \"%s\" was started with", m.past.row.id);
    rv_app_past_fini(&m.past);
    return rc;
}
