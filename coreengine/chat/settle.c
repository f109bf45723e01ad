/* Turns that a process left behind when it died: they are ended as cancelled, so that what was said in them is kept as
 * rows, marked, before the session goes on. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/chat/chat_internal.h"

#define MAX_LEFT   64
#define MAX_BUNDLE ((size_t)64 << 20)

struct left {
    char *ids[MAX_LEFT], *bundles[MAX_LEFT];
    size_t n;
    int64_t now_us;
};

static bool is_left(const struct rv_run_row *row, int64_t now_us)
{
    if (!row->owner || !row->owner[0])
        return true;
    return rv_owner_is_dead(row->owner) || row->lease_until_us < now_us;
}

static int note(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct left *l = self;

    if (l->n == MAX_LEFT || !is_left(row, l->now_us))
        return 0;
    l->ids[l->n] = rv_str_dup(rv_str_of(row->id));
    l->bundles[l->n] = rv_str_dup(rv_str_of(row->bundle));
    l->n++;
    return l->ids[l->n - 1] && l->bundles[l->n - 1] ? 0 : RV_FAIL(err, RV_E_NOMEM, "look for unfinished turns");
}

/* Ended by its own bundle and journal: what it was, it stays. */
static int end_turn(rv_chat *chat, const char *id, const char *bundle_hash, rv_err **err)
{
    const struct rv_bundle_opts offline = {.offline = true};
    const struct rv_store_scope scope = {.tenant = chat->context.tenant_id};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    rv_buf text = RV_BUF_INIT(MAX_BUNDLE);
    struct rv_catalog catalog;
    rv_bundle *bundle = NULL;
    rv_journal *journal = NULL;
    rv_exec *exec = NULL;

    int rc = rv_store_get_blob(chat->opts.store, bundle_hash, &text, err);
    if (rc == 0)
        rc = rv_bundle_open(rv_buf_str(&text), &offline, &bundle, err);
    if (rc == 0)
        rc = rv_journal_open(chat->opts.store, &scope, id, chat->opts.owner, rv_engine_now_us(chat->opts.engine),
                             chat->opts.lease_us, &journal, err);
    if (rc == 0) {
        catalog = rv_bundle_catalog(bundle);
        x.pipeline = rv_bundle_pipeline(bundle);
        x.catalog = &catalog;
        x.script = rv_bundle_script(bundle);
        x.journal = journal;
        rc = rv_engine_continue_cancel(chat->opts.engine, &x, &scope, &exec, err);
    }
    if (rc == 0)
        rc = rv_engine_wait(chat->opts.engine, exec, err);
    rv_exec_free(exec);
    rv_journal_free(journal);
    rv_bundle_free(bundle);
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "end the turn that was left unfinished (run \"%s\")", id) : 0;
}

/* Somebody else was quicker, or it can not be replayed, since it is damaged or of another engine: the session goes on.
 */
static bool is_its_own_fault(int rc)
{
    return rc == RV_E_STATE || rc == RV_E_INVALID || rc == RV_E_PARSE || rc == RV_E_VERSION || rc == RV_E_NOT_FOUND ||
           rc == RV_E_LIMIT;
}

int rv_chat_settle(rv_chat *chat, int64_t *n, rv_err **err)
{
    struct rv_store_scope scope = chat_scope(chat);
    const struct rv_run_filter filter = {
        .statuses = 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING, .session = chat->session, .oldest_first = true};
    struct left left = {.now_us = rv_engine_now_us(chat->opts.engine)};

    int64_t n_ended = 0;
    int rc = rv_store_list_runs(chat->opts.store, &scope, &filter, note, &left, err);
    for (size_t i = 0; i < left.n; i++) {
        rv_err *cause = NULL;
        int ended = rc == 0 ? end_turn(chat, left.ids[i], left.bundles[i], &cause) : 0;
        free(left.ids[i]);
        free(left.bundles[i]);
        n_ended += rc == 0 && ended == 0;
        if (is_its_own_fault(ended) && !rv_err_is(cause, RV_E_NOMEM)) {
            rv_err_free(cause);
        } else if (ended < 0) {
            *err = cause;
            rc = ended;
        }
    }
    if (rc == 0 && n)
        *n = n_ended;
    return rc;
}
