/* Going on with a run of the store: as its new owner, by its own bundle. */
#include "coreengine/cli/cli.h"

#include <string.h>

#define MAX_BUNDLE ((size_t)64 << 20)

/* calls: the run will make some. Else neither capabilities nor secrets are needed, and both may be gone. */
static int open_bundle(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store,
                       const struct rv_run_row *row, bool calls, struct rv_cli_loaded *out, rv_err **err)
{
    const struct rv_bundle_opts opts = {.offline = !calls};
    const struct rv_cli_load_opts load = {.args = args, .keeps = true, .store = store};
    rv_buf text = RV_BUF_INIT(MAX_BUNDLE);
    rv_bundle *bundle = NULL;

    int rc = rv_store_get_blob(store, row->bundle, &text, err);
    if (rc == 0)
        rc = rv_bundle_open(rv_buf_str(&text), &opts, &bundle, err);
    rv_buf_fini(&text);
    if (rc == 0)
        rc = rv_cli_load_bundle(cli, &load, bundle, calls, out, err);
    return rc < 0 ? RV_WRAP(err, rc, "open what run \"%s\" was started with", row->id) : 0;
}

int rv_cli_continue(struct rv_cli *cli, const struct rv_cli_args *args, rv_store *store, const char *run,
                    const struct rv_response *response, bool cancel)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct rv_cli_loaded loaded = {0};
    struct rv_run_row row = {0};
    struct rv_clock clock = rv_clock_system();
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
    if (rc == 0)
        rc = open_bundle(cli, args, store, &row, !cancel, &loaded, &err);
    if (rc == 0 && !rv_cli_sound(cli, &loaded, false)) {
        status = RV_EXIT_USAGE;
    } else {
        rv_cli_warn_missing(cli, &loaded);
        /* taking the run over and its next step are one commit: the session ends the group */
        if (rc == 0)
            rc = rv_store_begin(store, &err);
        if (rc == 0)
            rc = rv_journal_open(store, &scope, run, owner, clock.now_us(clock.self), lease_us, &s.journal, &err);
        status = rc < 0 ? rv_cli_report(cli, err) : rv_cli_session_run(&s, NULL, response);
    }
    rv_store_rollback(store); /* nothing to do, unless it did not come to a commit */
    rv_journal_free(s.journal);
    rv_run_row_fini(&row);
    rv_cli_loaded_fini(&loaded);
    return status;
}
