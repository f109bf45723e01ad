/* Writing to the memory store: each call builds the new state of a run, then puts it in place of the old. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/memory_internal.h"

#define FIRST_RECORDS 8

/* The head of a new run, not linked and without records. */
static int new_head(const struct rv_store_new_run *from, struct mem_blob *bundle, struct mem_run **out, rv_err **err)
{
    const char *const texts[] = {from->id, from->tenant, from->user, from->session, from->pipeline, from->parent};
    struct mem_run *run = calloc(1, sizeof *run);
    const char **const slots[] = {NULL,
                                  run ? &run->tenant : NULL,
                                  run ? &run->user : NULL,
                                  run ? &run->session : NULL,
                                  run ? &run->pipeline : NULL,
                                  run ? &run->parent : NULL};
    size_t size = 0, at = 0;

    if (!run)
        return RV_FAIL(err, RV_E_NOMEM, "make run \"%s\"", from->id);
    for (size_t i = 0; i < RV_COUNT(texts); i++)
        size += texts[i] ? strlen(texts[i]) + 1 : 0;
    run->own = malloc(size);
    run->state.stage = rv_mem_text_new(rv_str_of(from->stage));
    run->state.owner = from->owner ? rv_mem_text_new(rv_str_of(from->owner)) : NULL;
    if (!run->own || !run->state.stage || (from->owner && !run->state.owner)) {
        rv_mem_run_free(run);
        return RV_FAIL(err, RV_E_NOMEM, "make run \"%s\"", from->id);
    }
    for (size_t i = 0; i < RV_COUNT(texts); i++) {
        size_t len = texts[i] ? strlen(texts[i]) + 1 : 0;
        if (len > 0)
            memcpy(run->own + at, texts[i], len);
        if (len > 0 && slots[i])
            *slots[i] = run->own + at;
        at += len;
    }
    run->bundle = bundle;
    bundle->refs++;
    run->created_us = run->state.updated_us = from->now_us;
    run->parent_seq = from->parent_seq;
    run->state.status = from->status;
    run->state.fence = 1;
    run->state.lease_until_us = from->owner ? from->lease_until_us : 0;
    *out = run;
    return 0;
}

static int reserve(struct mem_run *run, size_t more, rv_err **err)
{
    size_t need = (size_t)run->state.n_records + more, cap = run->cap ? run->cap : FIRST_RECORDS;
    struct mem_record **records;

    if (need <= run->cap)
        return 0;
    while (cap < need)
        cap *= 2;
    records = realloc(run->records, cap * sizeof *records);
    if (!records)
        return RV_FAIL(err, RV_E_NOMEM, "keep %zu records", need);
    run->records = records;
    run->cap = cap;
    return 0;
}

/* Make the records behind the present ones; they count from when the state says so. */
static int add_records(struct mem_store *m, struct mem_run *run, const struct rv_record *records, size_t n,
                       int64_t now_us, rv_err **err)
{
    size_t have = (size_t)run->state.n_records;
    int rc = reserve(run, n, err);

    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = rv_mem_record_new(m, &records[i], now_us, &run->records[have + i], err);
        if (rc < 0)
            while (i-- > 0)
                rv_mem_record_free(run->records[have + i]);
    }
    return rc;
}

static int make_run(struct mem_store *m, const struct rv_store_new_run *given, rv_err **err)
{
    struct mem_blob *bundle = (struct mem_blob *)(void *)rv_mem_table_find(&m->blobs, given->bundle);
    struct mem_run *run = NULL;
    int rc;

    if (rv_mem_find(m, NULL, given->id))
        return rv_store_fail_taken(given->id, err);
    if (!bundle)
        return rv_store_fail_no_bundle(given->id, given->bundle, err);
    rc = new_head(given, bundle, &run, err);
    if (rc == 0)
        rc = add_records(m, run, given->records, given->n_records, given->now_us, err);
    if (rc == 0)
        run->state.n_records = (int64_t)given->n_records;
    if (rc == 0 && rv_mem_table_reserve(&m->runs) < 0)
        rc = RV_FAIL(err, RV_E_NOMEM, "make run \"%s\"", given->id);
    if (rc == 0)
        rc = rv_mem_note(m, MEM_UNDO_CREATED, run, NULL, err);
    if (rc == 0)
        rv_mem_link(m, run);
    else
        rv_mem_run_free(run);
    return rc;
}

static int create_run(void *self, const struct rv_store_new_run *run, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;

    return rv_mem_end(m, mark, make_run(m, run, err));
}

static int set_pending(struct mem_state *st, const struct rv_store_append *a, rv_err **err)
{
    struct mem_pending *pending = NULL;
    int rc = a->n_pending > 0 ? rv_mem_pending_new(a->pending, a->n_pending, &pending, err) : 0;

    if (rc < 0)
        return rc;
    rv_mem_pending_unref(st->pending);
    st->pending = pending;
    st->expires_us = 0;
    for (size_t i = 0; i < a->n_pending; i++) {
        int64_t end = a->pending[i].expires_us;
        if (end > 0 && (st->expires_us == 0 || end < st->expires_us))
            st->expires_us = end;
    }
    return 0;
}

static int next_state(struct mem_state *st, const struct rv_store_append *a, rv_err **err)
{
    int rc = rv_mem_set_text(&st->stage, rv_str_of(a->stage), err);

    if (rc == 0 && a->set_pending)
        rc = set_pending(st, a, err);
    if (rc < 0)
        return rc;
    st->status = a->status;
    st->updated_us = a->now_us;
    st->n_records += (int64_t)a->n_records;
    if (rv_store_status_is_final(a->status))
        st->cancel_requested = false;
    if (a->release)
        rv_mem_disown(st);
    return 0;
}

static int do_append(struct mem_store *m, const struct rv_store_append *a, rv_err **err)
{
    struct mem_run *run = NULL;
    struct mem_state st;
    int rc = rv_mem_find_fenced(m, a->run, a->fence, &run, err);

    if (rc < 0)
        return rc;
    if (a->n_records > 0 && a->records[0].seq != run->state.n_records + 1)
        return rv_store_fail_seq(a->run, run->state.n_records, a->records[0].seq, err);
    st = rv_mem_state_dup(&run->state);
    rc = next_state(&st, a, err);
    if (rc == 0)
        rc = add_records(m, run, a->records, a->n_records, a->now_us, err);
    if (rc < 0) {
        rv_mem_state_fini(&st);
        return rc;
    }
    rc = rv_mem_put_state(m, run, &st, err);
    for (size_t i = 0; i < a->n_records && rc < 0; i++)
        rv_mem_record_free(run->records[run->state.n_records + (int64_t)i]);
    return rc < 0 ? rc : rv_mem_keep_turns(m, run, a, err);
}

static int append(void *self, const struct rv_store_append *a, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;

    return rv_mem_end(m, mark, do_append(m, a, err));
}

static int begin(void *self, rv_err **err)
{
    struct mem_store *m = self;

    (void)err;
    m->in_group = true;
    return 0;
}

static int commit(void *self, rv_err **err)
{
    struct mem_store *m = self;

    (void)err;
    m->in_group = false;
    rv_mem_forget(m);
    return 0;
}

static void rollback(void *self)
{
    struct mem_store *m = self;

    m->in_group = false;
    rv_mem_undo_to(m, NULL);
}

static int delete_run(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    struct mem_run *run = rv_mem_find(m, scope, id);
    int rc;

    if (!run)
        return rv_store_fail_no_run(id, err);
    if (rv_mem_is_leased(run, now_us))
        return rv_store_fail_leased(id, run->state.owner->text, run->state.lease_until_us, err);
    rc = rv_mem_note(m, MEM_UNDO_DELETED, run, NULL, err);
    if (rc == 0)
        rv_mem_unlink(m, run);
    return rv_mem_end(m, mark, rc);
}

/* --- The store as a whole --- */

static int backup(void *self, const char *path, rv_err **err)
{
    (void)self;
    return RV_FAIL(err, RV_E_STATE, "backup to \"%s\": a store in memory has none", path);
}

int rv_store_memory_open(void **out, rv_err **err)
{
    struct mem_store *m = calloc(1, sizeof *m);

    if (!m)
        return RV_FAIL(err, RV_E_NOMEM, "make a store");
    *out = m;
    return 0;
}

static void close_store(void *self)
{
    struct mem_store *m = self;

    while (m->first) {
        struct mem_run *run = m->first;
        rv_mem_unlink(m, run);
        rv_mem_run_free(run);
    }
    rv_mem_sessions_free(m);
    rv_mem_schemas_free(m);
    for (size_t i = 0; i < m->blobs.n_buckets; i++) {
        for (struct mem_node *node = m->blobs.buckets[i], *next; node; node = next) {
            next = node->next;
            free(node);
        }
    }
    for (struct mem_undo *u = m->spare, *next; u; u = next) {
        next = u->before;
        free(u);
    }
    free(m->runs.buckets);
    free(m->blobs.buckets);
    free(m);
}

const struct rv_store_ops rv_store_memory_ops = {
    .close = close_store,
    .create_run = create_run,
    .append = append,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .get_run = rv_mem_get_run,
    .list_runs = rv_mem_list_runs,
    .read = rv_mem_read,
    .list_pending = rv_mem_list_pending,
    .delete_run = delete_run,
    .ensure_session = rv_mem_ensure_session,
    .get_session = rv_mem_get_session,
    .change_session = rv_mem_change_session,
    .list_sessions = rv_mem_list_sessions,
    .delete_session = rv_mem_delete_session,
    .delete_message = rv_mem_delete_message,
    .read_messages = rv_mem_read_messages,
    .add_messages = rv_mem_add_messages,
    .put_schema = rv_mem_put_schema,
    .find_schema = rv_mem_find_schema,
    .list_schemas = rv_mem_list_schemas,
    .delete_schema = rv_mem_delete_schema,
    .schemas_version = rv_mem_schemas_version,
    .claim = rv_mem_claim,
    .renew = rv_mem_renew,
    .release = rv_mem_release,
    .request_cancel = rv_mem_request_cancel,
    .list_cancels = rv_mem_list_cancels,
    .put_blob = rv_mem_put_blob,
    .get_blob = rv_mem_get_blob,
    .put_snapshot = rv_mem_put_snapshot,
    .get_snapshot = rv_mem_get_snapshot,
    .drop_snapshots = rv_mem_drop_snapshots,
    .stats = rv_mem_stats,
    .sweep = rv_mem_sweep,
    .check = rv_mem_check,
    .backup = backup,
};
