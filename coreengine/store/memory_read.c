/* Reading from memory. A walk borrows what the store has; the front sees to it that nothing changes meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/memory_internal.h"

static bool is_in(const struct rv_store_scope *scope, const struct mem_run *run)
{
    return strcmp(run->tenant, scope->tenant) == 0 && (!scope->user || strcmp(run->user, scope->user) == 0);
}

struct mem_run *rv_mem_find(struct mem_store *m, const struct rv_store_scope *scope, const char *id)
{
    struct mem_run *run = (struct mem_run *)(void *)rv_mem_table_find(&m->runs, id);

    return run && (!scope || is_in(scope, run)) ? run : NULL;
}

static struct rv_run_row row_of(const struct mem_run *run)
{
    const struct mem_state *st = &run->state;

    return (struct rv_run_row){
        .id = run->node.name,
        .tenant = run->tenant,
        .user = run->user,
        .session = run->session,
        .pipeline = run->pipeline,
        .bundle = run->bundle->hash,
        .parent = run->parent,
        .parent_seq = run->parent_seq,
        .status = st->status,
        .stage = st->stage->text,
        .created_us = run->created_us,
        .updated_us = st->updated_us,
        .expires_us = st->expires_us,
        .n_records = st->n_records,
        .owner = st->owner ? st->owner->text : NULL,
        .fence = st->fence,
        .lease_until_us = st->lease_until_us,
        .cancel_requested = st->cancel_requested,
        .n_pending = st->pending ? (int64_t)st->pending->n : 0,
    };
}

int rv_mem_get_run(void *self, const struct rv_store_scope *scope, const char *id, struct rv_run_row *out, rv_err **err)
{
    const struct mem_run *run = rv_mem_find(self, scope, id);
    struct rv_run_row row;

    if (!run)
        return rv_store_fail_no_run(id, err);
    row = row_of(run);
    return rv_run_row_copy(&row, out) < 0 ? RV_FAIL(err, RV_E_NOMEM, "read run \"%s\"", id) : 0;
}

static bool matches(struct mem_store *m, const struct rv_run_filter *f, const struct mem_run *run)
{
    const struct mem_state *st = &run->state;

    if (f->statuses && !(f->statuses & 1u << st->status))
        return false;
    if ((f->pipeline && strcmp(f->pipeline, run->pipeline) != 0) ||
        (f->session && strcmp(f->session, run->session) != 0))
        return false;
    if (f->id_prefix && strncmp(f->id_prefix, run->node.name, strlen(f->id_prefix)) != 0)
        return false;
    if (f->of_deleted_sessions &&
        !rv_mem_see_deleted_session(m, &(struct rv_store_scope){run->tenant, run->user}, run->session))
        return false;
    if (f->lease_before_us > 0 && st->owner && st->lease_until_us >= f->lease_before_us)
        return false;
    return f->updated_before_us <= 0 || st->updated_us < f->updated_before_us;
}

static int by_age(const void *left, const void *right)
{
    const struct mem_run *a = *(const struct mem_run *const *)left, *b = *(const struct mem_run *const *)right;

    if (a->created_us != b->created_us)
        return a->created_us < b->created_us ? -1 : 1;
    return strcmp(a->node.name, b->node.name);
}

/* The runs of the scope that match, oldest first; free() them. filter NULL: those with pending interrupts. */
static int collect(struct mem_store *m, const struct rv_store_scope *scope, const struct rv_run_filter *filter,
                   const struct mem_run ***out, size_t *out_n, rv_err **err)
{
    const struct mem_run **found = malloc((m->runs.n + 1) * sizeof *found);
    size_t n = 0;

    if (!found)
        return RV_FAIL(err, RV_E_NOMEM, "list %zu runs", m->runs.n);
    for (const struct mem_run *run = m->first; run; run = run->next)
        if (is_in(scope, run) && (filter ? matches(m, filter, run) : run->state.pending != NULL))
            found[n++] = run;
    qsort(found, n, sizeof *found, by_age);
    *out = found;
    *out_n = n;
    return 0;
}

int rv_mem_list_runs(void *self, const struct rv_store_scope *scope, const struct rv_run_filter *filter,
                     rv_each_run *each, void *ctx, rv_err **err)
{
    const struct mem_run **found = NULL;
    size_t n = 0;
    int rc = collect(self, scope, filter, &found, &n, err);
    size_t limit = filter->limit > 0 && (uint64_t)filter->limit < n ? (size_t)filter->limit : n;

    for (size_t i = 0; i < limit && rc == 0; i++) {
        struct rv_run_row row = row_of(found[filter->oldest_first ? i : n - 1 - i]);
        rc = each(ctx, &row, err);
    }
    free(found);
    return rc;
}

int rv_mem_read(void *self, const struct rv_store_scope *scope, const char *run, int64_t from, int64_t upto,
                rv_each_record *each, void *ctx, rv_err **err)
{
    const struct mem_run *r = rv_mem_find(self, scope, run);
    int rc = 0;

    if (!r)
        return rv_store_fail_no_run(run, err);
    for (int64_t seq = from < 1 ? 1 : from; seq <= upto && seq <= r->state.n_records && rc == 0; seq++) {
        const struct mem_record *rec = r->records[seq - 1];
        struct rv_record record = {.seq = seq, .kind = rec->kind, .body = {rec->bytes, rec->body_len}};
        if (rec->has_value)
            record.value = (rv_str){rec->blob ? rec->blob->bytes : rec->bytes + rec->body_len, rec->value_len};
        rc = each(ctx, &record, err);
    }
    return rc;
}

struct waiting {
    const struct mem_run *run;
    size_t at;
};

static int by_time(const void *left, const void *right)
{
    const struct waiting *a = left, *b = right;
    int64_t ta = a->run->state.pending->items[a->at].created_us, tb = b->run->state.pending->items[b->at].created_us;
    int order;

    if (ta != tb)
        return ta < tb ? -1 : 1;
    order = strcmp(a->run->node.name, b->run->node.name);
    return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

int rv_mem_list_pending(void *self, const struct rv_store_scope *scope, const char *run, rv_each_pending *each,
                        void *ctx, rv_err **err)
{
    const struct mem_run **runs = NULL, *one = run ? rv_mem_find(self, scope, run) : NULL;
    struct waiting *all = NULL;
    size_t n_runs = 0, n = 0, k = 0;
    int rc = 0;

    if (run && !one)
        return rv_store_fail_no_run(run, err);
    if (!run)
        rc = collect(self, scope, NULL, &runs, &n_runs, err);
    else if (one->state.pending)
        n_runs = 1;
    for (size_t i = 0; i < n_runs; i++)
        n += (run ? one : runs[i])->state.pending->n;
    all = rc == 0 && n > 0 ? malloc(n * sizeof *all) : NULL;
    if (n > 0 && !all && rc == 0)
        rc = RV_FAIL(err, RV_E_NOMEM, "list %zu pending interrupts", n);
    for (size_t i = 0; i < n_runs && rc == 0; i++) {
        const struct mem_run *r = run ? one : runs[i];
        for (size_t at = 0; at < r->state.pending->n; at++)
            all[k++] = (struct waiting){r, at};
    }
    if (k > 0)
        qsort(all, k, sizeof *all, by_time);
    for (size_t i = 0; i < k && rc == 0; i++) {
        struct rv_pending p = all[i].run->state.pending->items[all[i].at];
        p.run = all[i].run->node.name;
        p.user = all[i].run->user;
        rc = each(ctx, &p, err);
    }
    free(all);
    free(runs);
    return rc;
}

int rv_mem_list_cancels(void *self, const char *owner, rv_each_id *each, void *ctx, rv_err **err)
{
    const struct mem_store *m = self;
    int rc = 0;

    for (const struct mem_run *run = m->first; run && rc == 0; run = run->next)
        if (run->state.cancel_requested && run->state.owner && strcmp(run->state.owner->text, owner) == 0)
            rc = each(ctx, run->node.name, err);
    return rc;
}

int rv_mem_get_snapshot(void *self, const struct rv_store_scope *scope, const char *run, int64_t *seq, rv_buf *out,
                        rv_err **err)
{
    const struct mem_run *r = rv_mem_find(self, scope, run);

    if (!r)
        return rv_store_fail_no_run(run, err);
    if (r->state.snapshot) {
        *seq = r->state.snapshot_seq;
        rv_buf_add(out, r->state.snapshot->text, r->state.snapshot->len);
    }
    return 0;
}
