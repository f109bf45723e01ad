/* The runs of a store with what they wait for. */
#include "coreengine/app/past.h"
#include "coreengine/app/recover.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LIST_BYTES ((size_t)256 << 20) /* of rows: they are in memory; more is an error that asks for --limit */

static int no_memory(rv_err **err)
{
    return RV_FAIL(err, RV_E_LIMIT, "there are more runs than can be listed at once; a limit shows the newest");
}

static const char *keep(struct rv_app_runs *l, const char *text, bool *ok)
{
    const char *kept = text ? rv_arena_dup(l->arena, rv_str_of(text)) : NULL;

    *ok = *ok && (kept || !text);
    return kept;
}

static int take_row(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct rv_app_runs *l = self;
    struct rv_app_listed *items = rv_arena_grow(l->arena, l->items, l->n, &l->max, sizeof *items);
    bool ok = items != NULL;

    if (!ok)
        return no_memory(err);
    l->items = items;
    struct rv_app_listed *e = &items[l->n];
    *e = (struct rv_app_listed){.row = *row};
    e->id = keep(l, row->id, &ok);
    e->pipeline = keep(l, row->pipeline, &ok);
    e->session = keep(l, row->session, &ok);
    e->user = keep(l, row->user, &ok);
    e->bundle = keep(l, row->bundle, &ok);
    e->parent = keep(l, row->parent, &ok);
    e->stage = keep(l, row->stage, &ok);
    e->owner = keep(l, row->owner, &ok);
    e->row.owner = e->owner;
    e->row.own = NULL;
    if (!ok || rv_index_add(&l->by_id, rv_str_of(e->id), (int)l->n) < 0)
        return no_memory(err);
    l->n++;
    return 0;
}

static int take_pending(void *self, const struct rv_pending *p, rv_err **err)
{
    struct rv_app_runs *l = self;
    int at = rv_index_get(&l->by_id, rv_str_of(p->run));
    bool ok = true;

    if (at < 0)
        return 0;
    struct rv_app_waiting *waiting =
        rv_arena_grow(l->arena, l->waiting, l->n_waiting, &l->max_waiting, sizeof *waiting);
    if (!waiting)
        return no_memory(err);
    l->waiting = waiting;
    struct rv_app_waiting *w = &waiting[l->n_waiting];
    *w = (struct rv_app_waiting){.entry = (size_t)at, .nth = l->n_waiting, .p = *p};
    w->p.run = l->items[at].id;
    w->p.id = keep(l, p->id, &ok);
    w->p.kind = keep(l, p->kind, &ok);
    w->p.stage = keep(l, p->stage, &ok);
    w->p.user = keep(l, p->user, &ok);
    w->p.text.ptr = rv_arena_dup(l->arena, p->text);
    w->p.body.ptr = rv_arena_dup(l->arena, p->body);
    if (!ok || !w->p.text.ptr || !w->p.body.ptr)
        return no_memory(err);
    l->items[at].n_pending++;
    l->n_waiting++;
    return 0;
}

static int by_entry(const void *a, const void *b)
{
    const struct rv_app_waiting *x = a, *y = b;
    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    return x->nth < y->nth ? -1 : x->nth > y->nth;
}

/* Those of one run side by side. */
static void sort_waiting(struct rv_app_runs *l)
{
    if (l->n_waiting)
        qsort(l->waiting, l->n_waiting, sizeof *l->waiting, by_entry);
    for (size_t k = l->n_waiting; k-- > 0;)
        l->items[l->waiting[k].entry].first_waiting = k;
}

/* A journal that cannot be read has none: what is wrong with it is said where it is read as a whole. */
static int count_crashes(rv_store *store, const struct rv_store_scope *scope, struct rv_app_runs *l, rv_err **err)
{
    int64_t now_us = rv_app_now_us();

    for (size_t i = 0; i < l->n; i++) {
        struct rv_app_listed *e = &l->items[i];
        struct rv_run_row row = e->row;
        rv_err *cause = NULL;
        row.id = e->id;
        int rc = rv_app_count_crashes(store, scope, &row, now_us, &e->crashes, &cause);
        if (rc == RV_E_NOMEM) {
            rv_err_pass(err, cause);
            return rc;
        }
        rv_err_free(cause);
    }
    return 0;
}

int rv_app_runs_find(rv_store *store, const struct rv_store_scope *scope, struct rv_run_filter filter,
                     struct rv_app_runs *l, rv_err **err)
{
    int64_t limit = filter.limit;

    *l = (struct rv_app_runs){0};
    l->arena = rv_arena_new(MAX_LIST_BYTES);
    if (!l->arena)
        return RV_FAIL(err, RV_E_NOMEM, "list runs");
    filter.limit = limit ? limit + 1 : 0; /* one more tells whether there are more */
    int rc = rv_store_list_runs(store, scope, &filter, take_row, l, err);
    if (rc == 0)
        rc = rv_store_list_pending(store, scope, NULL, take_pending, l, err);
    if (rc == 0)
        sort_waiting(l);
    if (rc == 0 && limit && (int64_t)l->n > limit) {
        l->more = true;
        l->n = (size_t)limit;
    }
    if (rc == 0)
        rc = count_crashes(store, scope, l, err);
    if (rc < 0)
        rv_app_runs_fini(l);
    return rc;
}

void rv_app_runs_fini(struct rv_app_runs *l)
{
    rv_index_fini(&l->by_id);
    rv_arena_free(l->arena);
    *l = (struct rv_app_runs){0};
}

static void write_time(rv_jw *w, const char *key, int64_t us)
{
    char text[RV_TIME_MAX];

    if (!us)
        return;
    rv_time_format(us, text);
    rv_jw_kv_text(w, key, text);
}

static void write_entry(const struct rv_app_runs *l, size_t i, rv_jw *w)
{
    const struct rv_app_listed *e = &l->items[i];

    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", e->id);
    rv_jw_kv_text(w, "pipeline", e->pipeline);
    rv_jw_kv_text(w, "status", rv_run_status_text(e->row.status));
    rv_jw_kv_text(w, "stage", e->stage);
    rv_jw_kv_text(w, "user", e->user);
    rv_jw_kv_text(w, "session", e->session);
    write_time(w, "created_at", e->row.created_us);
    write_time(w, "updated_at", e->row.updated_us);
    rv_jw_kv_int(w, "records", e->row.n_records);
    rv_jw_kv_text(w, "bundle", e->bundle);
    if (e->parent) {
        rv_jw_kv_text(w, "parent", e->parent);
        rv_jw_kv_int(w, "parent_seq", e->row.parent_seq);
    }
    if (e->owner) {
        rv_jw_kv_text(w, "owner", e->owner);
        write_time(w, "lease_until", e->row.lease_until_us);
    }
    if (e->row.cancel_requested)
        rv_jw_kv_bool(w, "cancel_requested", true);
    if (e->crashes)
        rv_jw_kv_int(w, "crashes", e->crashes);
    rv_jw_key(w, "pending");
    rv_jw_arr(w);
    for (size_t k = 0; k < e->n_pending; k++)
        rv_jw_raw(w, l->waiting[e->first_waiting + k].p.body);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

void rv_app_runs_write(const struct rv_app_runs *l, rv_jw *w)
{
    rv_jw_arr(w);
    for (size_t i = 0; i < l->n; i++)
        write_entry(l, i, w);
    rv_jw_arr_end(w);
}
