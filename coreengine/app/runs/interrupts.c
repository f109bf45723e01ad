/* Questions of runs for programs, as JSON, and the runs that go on by a time-out. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/rows.h"

static void put_str(rv_jw *w, const char *key, rv_str text)
{
    rv_jw_key(w, key);
    if (text.ptr)
        rv_jw_str(w, text);
    else
        rv_jw_null(w);
}

void rv_app_interrupt_write(const struct rv_interrupt_row *row, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", row->id);
    rv_jw_kv_text(w, "run", row->run);
    rv_jw_kv_text(w, "session_id", row->session);
    rv_jw_kv_text(w, "tenant_id", row->tenant);
    rv_jw_kv_text(w, "user_id", row->user);
    rv_jw_kv_text(w, "kind", row->kind);
    rv_jw_kv_text(w, "stage", row->stage);
    rv_jw_kv_text(w, "status", rv_interrupt_status_text(row->status));
    rv_jw_kv_bool(w, "open", row->ended_us == 0);
    put_str(w, "text", row->text);
    put_str(w, "reason", row->reason);
    rv_app_put_time(w, "created_at", row->created_us);
    rv_app_put_time(w, "expires_at", row->expires_us);
    rv_app_put_time(w, "ended_at", row->ended_us);
    rv_jw_obj_end(w);
}

void rv_app_interrupt_count_write(const struct rv_interrupt_count *c, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", c->kind);
    rv_jw_kv_text(w, "status", rv_interrupt_status_text(c->status));
    rv_jw_kv_int(w, "count", c->n);
    rv_jw_kv_int(w, "open", c->n_open);
    rv_app_put_time(w, "oldest_at", c->oldest_us);
    rv_jw_key(w, "mean_wait_ms");
    if (c->status == RV_INTERRUPT_STATUS_RESOLVED && c->n > 0)
        rv_jw_int(w, c->answer_sum_us / c->n / 1000);
    else
        rv_jw_null(w);
    rv_jw_obj_end(w);
}

/* --- time-outs --- */

static int note_due(void *self, const struct rv_pending *p, rv_err **err)
{
    struct rv_app_due *d = self;

    bool is_due = false;

    int rc = rv_app_is_due(p, d->now_us, &is_due, err);
    if (rc < 0 || !is_due || rv_index_get(&d->found, rv_str_of(p->run)) >= 0)
        return rc;
    if (!rv_has_room(&d->runs, &d->cap, d->n + 1, sizeof *d->runs))
        return RV_FAIL(err, RV_E_NOMEM, "list questions that expired");
    char *run = rv_str_dup(rv_str_of(p->run));
    if (!run)
        return RV_FAIL(err, RV_E_NOMEM, "list questions that expired");
    d->runs[d->n++] = run;
    return rv_index_add(&d->found, rv_str_of(run), (int)d->n - 1) < 0
               ? RV_FAIL(err, RV_E_NOMEM, "list questions that expired")
               : 0;
}

int rv_app_find_due(rv_store *store, const struct rv_store_scope *scope, const char *run, int64_t now_us,
                    struct rv_app_due *out, rv_err **err)
{
    *out = (struct rv_app_due){.now_us = now_us};
    int rc = rv_store_list_pending(store, scope, run, note_due, out, err);
    if (rc < 0)
        rv_app_due_fini(out);
    return rc;
}

void rv_app_due_fini(struct rv_app_due *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->runs[i]);
    free(d->runs);
    rv_index_fini(&d->found);
    *d = (struct rv_app_due){.runs = NULL};
}
