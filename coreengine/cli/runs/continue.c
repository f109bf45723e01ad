/* Going on with a run of the store: as its new owner, by its own bundle. */
#include "coreengine/cli/cli.h"

#include <string.h>

#define MAX_BUNDLE ((size_t)64 << 20)

/* calls: the run will make some. Else neither capabilities nor secrets are needed, and both may be gone. */
static int open_bundle(struct rv_cli *cli, rv_store *store, const struct rv_run_row *row, bool calls,
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
        rc = rv_app_load_bundle(&cli->app, &load, bundle, calls, out, err);
    return rc < 0 ? RV_WRAP(err, rc, "open what run \"%s\" was started with", row->id) : 0;
}

/* Before any code of a capability is loaded, the store knows who recovers the run: should that code end this process, a
 * dead owner is left, and the next process that takes the run over notes it in the journal. */
struct early {
    rv_journal *journal; /* of a run that had an owner */
    int64_t fence;       /* of one that had none; 0: it had */
};

static int take_early(rv_store *store, const struct rv_store_scope *scope, const struct rv_run_row *row,
                      const char *owner, int64_t lease_us, struct early *out, rv_err **err)
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

/* In the group of the first step. Loading may have taken longer than the lease. */
static int take_over(rv_store *store, const struct rv_store_scope *scope, const char *run, const char *owner,
                     int64_t lease_us, struct early *early, rv_journal **out, rv_err **err)
{
    struct rv_clock clock = rv_clock_system();
    int64_t now_us = clock.now_us(clock.self);
    int rc = 0;

    if (early->journal) {
        *out = early->journal;
        early->journal = NULL;
        rc = rv_store_renew(store, owner, now_us + lease_us, err);
        if (rc == 0)
            rv_journal_renewed(*out, now_us + lease_us);
        return rc;
    }
    if (early->fence)
        rc = rv_store_release(store, run, early->fence, err);
    return rc < 0 ? rc : rv_journal_open(store, scope, run, owner, now_us, lease_us, out, err);
}

static void let_go(rv_store *store, const char *run, struct early *early)
{
    rv_journal_free(early->journal);
    if (early->fence)
        RV_IGNORE(rv_store_release(store, run, early->fence, NULL), "the lease ends by itself, only later");
}

int rv_cli_continue(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store, const char *run,
                    const struct rv_response *response, bool cancel)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct rv_app_loaded loaded = {0};
    struct rv_run_row row = {0};
    struct early early = {0};
    char owner[RV_OWNER_MAX];
    struct rv_cli_session s = {.cli = cli,
                               .args = args,
                               .loaded = &loaded,
                               .store = store,
                               .owner = owner,
                               .continues = true,
                               .cancels = cancel};
    int64_t lease_us = 0;
    rv_err *err = NULL;
    int status;

    rv_owner_name(owner);
    int rc = rv_cli_lease_us(args, &lease_us, &err);
    if (rc == 0)
        rc = rv_store_get_run(store, &scope, run, &row, &err);
    bool recovers = rc == 0 && !response && !cancel && (row.status == RV_RUN_READY || row.status == RV_RUN_RUNNING);
    if (recovers)
        rc = take_early(store, &scope, &row, owner, lease_us, &early, &err);
    if (rc == 0)
        rc = open_bundle(cli, store, &row, !cancel, &loaded, &err);
    if (rc == 0 && !rv_cli_sound(cli, &loaded, false)) {
        status = RV_EXIT_USAGE;
    } else {
        rv_cli_warn_missing(cli, &loaded);
        /* taking the run over and its next step are one commit: the session ends the group */
        if (rc == 0)
            rc = rv_store_begin(store, &err);
        if (rc == 0)
            rc = take_over(store, &scope, run, owner, lease_us, &early, &s.journal, &err);
        status = rc < 0 ? rv_cli_report(cli, err) : rv_cli_session_run(&s, NULL, response);
    }
    rv_store_rollback(store); /* nothing to do, unless it did not come to a commit */
    rv_journal_free(s.journal);
    let_go(store, run, &early);
    rv_run_row_fini(&row);
    rv_app_loaded_fini(&loaded);
    return status;
}
