/* Going on with a run of the store: as its new owner, by its own bundle. */
#include "coreengine/app/app_internal.h"

#include <string.h>

#define MAX_BUNDLE ((size_t)64 << 20)

/* calls: the run will make some. Else neither capabilities nor secrets are needed, and both may be gone. */
static int open_bundle(const struct rv_app *app, rv_store *store, const struct rv_run_row *row, bool calls,
                       struct rv_app_loaded *out, rv_err **err)
{
    const struct rv_bundle_opts opts = {.offline = !calls};
    const struct rv_app_load_opts load = {.keeps = true, .store = store};
    rv_buf text = RV_BUF_INIT(MAX_BUNDLE);
    rv_bundle *bundle = NULL;

    int rc = rv_store_get_blob(store, row->bundle, &text, err);
    if (rc == 0)
        rc = rv_bundle_open(rv_buf_str(&text), &opts, &bundle, err);
    rv_buf_fini(&text);
    if (rc == 0)
        rc = rv_app_load_bundle(app, &load, bundle, calls, out, err);
    return rc < 0 ? RV_WRAP(err, rc, "open what run \"%s\" was started with", row->id) : 0;
}

/* See struct rv_app_early. */
static int take_early(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                      const char *owner, int64_t lease_us, struct rv_app_early *out, rv_err **err)
{
    struct rv_clock clock = rv_clock_system();

    int rc = rv_store_begin(store, err);
    if (rc < 0)
        return rc;
    int64_t now_us = clock.now_us(clock.self);
    const struct rv_store_claim claim = {.owner = owner, .now_us = now_us, .until_us = now_us + lease_us};
    if (row->owner)
        rc = rv_journal_open(store, scope, row->id, owner, now_us, lease_us, &out->journal, err);
    else
        rc = rv_store_claim(store, scope, row->id, &claim, &out->fence, err);
    return rv_store_end(store, rc, err);
}

int rv_app_continue(struct rv_app_run *run, rv_store *store, const char *id, enum rv_app_go go,
                    struct rv_app_loaded *out, rv_err **err)
{
    const struct rv_app *app = run->app;
    struct rv_run_row row = {0};

    int rc = rv_app_run_prepare(run, err);
    if (rc == 0 && !(run->state->id = rv_str_dup(rv_str_of(id))))
        rc = RV_FAIL(err, RV_E_NOMEM, "go on with a run");
    if (rc < 0)
        return rc;
    run->loaded = out;
    run->store = store;
    run->state->continues = true;
    run->state->cancels = go == RV_APP_CANCEL;
    rv_owner_name(run->owner);
    rc = rv_store_get_run(store, &app->scope, id, &row, err);
    bool recovers = rc == 0 && go == RV_APP_RECOVER && (row.status == RV_RUN_READY || row.status == RV_RUN_RUNNING);
    if (recovers)
        rc = take_early(store, &app->scope, &row, run->owner, rv_app_lease_us(app), &run->state->early, err);
    if (rc == 0)
        rc = open_bundle(app, store, &row, go != RV_APP_CANCEL, out, err);
    rv_run_row_fini(&row);
    return rc;
}

/* In the group of the first step. Loading may have taken longer than the lease. */
int rv_app_take_over(struct rv_app_run *run, rv_err **err)
{
    struct rv_app_early *early = &run->state->early;
    struct rv_clock clock = rv_clock_system();
    int64_t lease_us = rv_app_lease_us(run->app);

    int rc = rv_store_begin(run->store, err); /* taking the run over and its next step are one commit */
    if (rc < 0)
        return rc;
    int64_t now_us = clock.now_us(clock.self);
    if (early->journal) {
        run->journal = early->journal;
        early->journal = NULL;
        rc = rv_store_renew(run->store, run->owner, now_us + lease_us, err);
        if (rc == 0)
            rv_journal_renewed(run->journal, now_us + lease_us);
        return rc;
    }
    if (early->fence)
        rc = rv_store_release(run->store, run->state->id, early->fence, err);
    return rc < 0 ? rc
                  : rv_journal_open(run->store, &run->app->scope, run->state->id, run->owner, now_us, lease_us,
                                    &run->journal, err);
}

void rv_app_let_go(struct rv_app_run *run)
{
    struct rv_app_early *early = &run->state->early;

    rv_journal_free(early->journal);
    if (early->fence)
        RV_IGNORE(rv_store_release(run->store, run->state->id, early->fence, NULL),
                  "the lease ends by itself, only later");
}
