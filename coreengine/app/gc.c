/* Which runs of a store are deleted, by rules or with their sessions, and the space that nothing refers to any more. */
#include "coreengine/app/retention.h"

#include <stdlib.h>
#include <string.h>

#include "coreengine/app/past.h"

#define MAX_LIST_BYTES ((size_t)256 << 20)
#define AT_ONCE        ((size_t)200) /* runs that one transaction deletes: others wait no longer than that */

/* rule NULL: its session was deleted. */
static int doom(struct rv_app_gc *c, const struct rv_run_row *row, const struct rv_retention_rule *rule, rv_err **err)
{
    if (!rv_run_status_is_final(row->status) && rv_app_owner_of(row, c->now_us) == RV_APP_OWNER_LIVES) {
        c->n_owned++;
        return 0;
    }
    if (c->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 64;
        struct rv_app_doomed *items = realloc(c->items, cap * sizeof *items);
        if (!items)
            return RV_FAIL(err, RV_E_NOMEM, "list what is to be deleted");
        c->items = items;
        c->cap = cap;
    }
    struct rv_app_doomed *d = &c->items[c->n];
    bool is_orphan = !rv_run_status_is_final(row->status) && rv_app_owner_of(row, c->now_us) == RV_APP_OWNER_DEAD;
    *d = (struct rv_app_doomed){.id = rv_arena_dup(c->arena, rv_str_of(row->id)),
                                .pipeline = rv_arena_dup(c->arena, rv_str_of(row->pipeline ? row->pipeline : "")),
                                .status = row->status,
                                .updated_us = row->updated_us,
                                .of_deleted_session = !rule,
                                .dead = is_orphan ? rv_arena_dup(c->arena, rv_str_of(row->owner)) : NULL,
                                .line = rule ? rule->line : 0};
    if (!d->id || !d->pipeline || (is_orphan && !d->dead))
        return RV_FAIL(err, RV_E_NOMEM, "list what is to be deleted");
    c->n++;
    return 0;
}

static int judge(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct rv_app_gc *c = self;
    const struct rv_retention_rule *rule = rv_retention_drops(c->opts->rules, row, c->now_us);

    return rule ? doom(c, row, rule, err) : 0;
}

static int judge_deleted(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct rv_app_gc *c = self;

    if (c->opts->rules && rv_retention_drops(c->opts->rules, row, c->now_us)) /* is in the list */
        return 0;
    return doom(c, row, NULL, err);
}

/* The lease of a process that is gone would hold it yet for a while. */
static int delete_one(const struct rv_app_gc *c, const struct rv_app_doomed *d, rv_err **err)
{
    const struct rv_store_claim claim = {
        .owner = "gc", .dead = d->dead, .now_us = c->now_us, .until_us = c->now_us + 1};
    int64_t fence = 0;
    int rc = d->dead ? rv_store_claim(c->opts->store, &c->opts->scope, d->id, &claim, &fence, err) : 0;

    if (rc == 0 && d->dead)
        rc = rv_store_release(c->opts->store, d->id, fence, err);
    return rc < 0 ? rc : rv_store_delete_run(c->opts->store, &c->opts->scope, d->id, c->now_us, err);
}

/* Some of them, within one transaction. Who is run again meanwhile stays, and who is gone is gone. */
static int delete_some(struct rv_app_gc *c, size_t from, size_t upto, rv_err **err)
{
    size_t n = 0, n_owned = 0;

    int rc = rv_store_begin(c->opts->store, err);
    if (rc < 0)
        return rc;
    for (size_t i = from; i < upto && rc == 0; i++) {
        rv_err *cause = NULL;
        rc = delete_one(c, &c->items[i], &cause);
        n += rc == 0;
        n_owned += rc == RV_E_STATE;
        if (rc == RV_E_STATE || rc == RV_E_NOT_FOUND) {
            rv_err_free(cause);
            rc = 0;
        } else if (rc < 0) {
            *err = cause;
        }
    }
    if (rc < 0)
        rv_store_rollback(c->opts->store);
    else
        rc = rv_store_commit(c->opts->store, err);
    if (rc == 0) {
        c->n_deleted += n;
        c->n_owned += n_owned;
    }
    return rc;
}

static int delete_all(struct rv_app_gc *c, rv_err **err)
{
    int rc = 0;

    for (size_t at = 0; at < c->n && rc == 0; at += AT_ONCE)
        rc = delete_some(c, at, c->n - at < AT_ONCE ? c->n : at + AT_ONCE, err);
    return rc;
}

int rv_app_gc(const struct rv_app_gc_opts *opts, struct rv_app_gc *out, rv_err **err)
{
    const struct rv_run_filter all = {0}, deleted = {.of_deleted_sessions = true};

    *out = (struct rv_app_gc){.opts = opts, .now_us = rv_app_now_us(), .arena = rv_arena_new(MAX_LIST_BYTES)};
    int rc = out->arena ? 0 : RV_FAIL(err, RV_E_NOMEM, "list what is to be deleted");
    if (rc == 0 && opts->rules)
        rc = rv_store_list_runs(opts->store, &opts->scope, &all, judge, out, err);
    if (rc == 0)
        rc = rv_store_list_runs(opts->store, &opts->scope, &deleted, judge_deleted, out, err);
    if (rc == 0 && !opts->dry_run)
        rc = delete_all(out, err);
    if (rc == 0 && !opts->dry_run)
        rc = rv_store_sweep(opts->store, out->now_us, opts->grace_us, &out->freed_bytes, err);
    if (rc < 0)
        rv_app_gc_fini(out);
    return rc;
}

void rv_app_gc_fini(struct rv_app_gc *c)
{
    free(c->items);
    rv_arena_free(c->arena);
    memset(c, 0, sizeof *c);
}
