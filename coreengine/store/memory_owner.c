/* Who owns a run of the memory store, and what its owner keeps beside it: leases, fences, cancels, snapshots. */
#include <string.h>

#include "coreengine/store/memory_internal.h"

int rv_mem_find_fenced(struct mem_store *m, const char *id, int64_t fence, struct mem_run **out, rv_err **err)
{
    struct mem_run *run = rv_mem_find(m, NULL, id);

    if (!run)
        return rv_store_fail_no_run(id, err);
    if (run->state.fence != fence)
        return rv_store_fail_fenced(id, fence, run->state.fence, run->state.owner ? run->state.owner->text : NULL, err);
    *out = run;
    return 0;
}

void rv_mem_disown(struct mem_state *st)
{
    rv_mem_text_unref(st->owner);
    st->owner = NULL;
    st->lease_until_us = 0;
}

bool rv_mem_is_leased(const struct mem_run *run, int64_t now_us)
{
    return run->state.owner && run->state.lease_until_us > now_us;
}

int rv_mem_claim(void *self, const struct rv_store_scope *scope, const char *id, const struct rv_store_claim *claim,
                 int64_t *fence, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    struct mem_run *run = rv_mem_find(m, scope, id);
    struct mem_state st;
    int rc;

    if (!run)
        return rv_store_fail_no_run(id, err);
    if (rv_mem_is_leased(run, claim->now_us) && !(claim->dead && strcmp(claim->dead, run->state.owner->text) == 0))
        return rv_store_fail_leased(id, run->state.owner->text, run->state.lease_until_us, err);
    st = rv_mem_state_dup(&run->state);
    rc = rv_mem_set_text(&st.owner, rv_str_of(claim->owner), err);
    if (rc < 0) {
        rv_mem_state_fini(&st);
        return rc;
    }
    st.fence++;
    st.lease_until_us = claim->until_us;
    rc = rv_mem_end(m, mark, rv_mem_put_state(m, run, &st, err));
    if (rc == 0)
        *fence = run->state.fence;
    return rc;
}

int rv_mem_renew(void *self, const char *owner, int64_t until_us, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    int rc = 0;

    for (struct mem_run *run = m->first; run && rc == 0; run = run->next) {
        struct mem_state st;
        if (!run->state.owner || run->state.lease_until_us >= until_us || strcmp(run->state.owner->text, owner) != 0)
            continue;
        st = rv_mem_state_dup(&run->state);
        st.lease_until_us = until_us;
        rc = rv_mem_put_state(m, run, &st, err);
    }
    return rv_mem_end(m, mark, rc);
}

int rv_mem_release(void *self, const char *id, int64_t fence, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    struct mem_run *run = rv_mem_find(m, NULL, id);
    struct mem_state st;

    if (!run)
        return rv_store_fail_no_run(id, err);
    if (run->state.fence != fence)
        return 0;
    st = rv_mem_state_dup(&run->state);
    rv_mem_disown(&st);
    return rv_mem_end(m, mark, rv_mem_put_state(m, run, &st, err));
}

int rv_mem_request_cancel(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    struct mem_run *run = rv_mem_find(m, scope, id);
    struct mem_state st;

    if (!run)
        return rv_store_fail_no_run(id, err);
    if (rv_store_status_is_final(run->state.status))
        return rv_store_fail_over(id, run->state.status, err);
    st = rv_mem_state_dup(&run->state);
    st.cancel_requested = true;
    st.updated_us = now_us;
    return rv_mem_end(m, mark, rv_mem_put_state(m, run, &st, err));
}

/* --- Snapshots --- */

int rv_mem_put_snapshot(void *self, const char *id, int64_t fence, int64_t seq, rv_str body, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    struct mem_run *run = NULL;
    struct mem_state st;
    int rc = rv_mem_find_fenced(m, id, fence, &run, err);

    if (rc < 0)
        return rc;
    if (seq > run->state.n_records)
        return rv_store_fail_snapshot(id, run->state.n_records, seq, err);
    if (seq < run->state.snapshot_seq)
        return 0;
    st = rv_mem_state_dup(&run->state);
    rc = rv_mem_set_text(&st.snapshot, body, err);
    if (rc < 0) {
        rv_mem_state_fini(&st);
        return rc;
    }
    st.snapshot_seq = seq;
    return rv_mem_end(m, mark, rv_mem_put_state(m, run, &st, err));
}

int rv_mem_drop_snapshots(void *self, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    int rc = 0;

    for (struct mem_run *run = m->first; run && rc == 0; run = run->next) {
        struct mem_state st;
        if (!run->state.snapshot)
            continue;
        st = rv_mem_state_dup(&run->state);
        rv_mem_text_unref(st.snapshot);
        st.snapshot = NULL;
        st.snapshot_seq = 0;
        rc = rv_mem_put_state(m, run, &st, err);
    }
    return rv_mem_end(m, mark, rc);
}
