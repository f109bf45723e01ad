/* The work of one visit: passes each call to the kind of work that the visit has. A stage with for_each or `pipeline`
 * begins as a visit, leaves its work to one of the kinds that its run knows (each.c, inner.c), and is told how that
 * ended. */
#include "coreengine/run/work_kinds_internal.h"

#include <stdlib.h>

static void drop(rv_work *w)
{
    if (w->kind)
        w->kind->free(w);
    w->kind = NULL;
}

/* Whatever the visit leaves outside is begun; what has ended there is handed to it. */
static int advance(rv_work *w, struct rv_effects *out, rv_err **err)
{
    struct rv_outside_end end;
    bool ended = false;
    int rc = 0;

    while (rc == 0 && rv_visit_outside(w->visit) != RV_OUTSIDE_NONE) {
        if (!w->kind) {
            w->kind = w->shared->outside[rv_visit_outside(w->visit)];
            rc = w->kind->begin(w, out, err);
        }
        if (rc == 0)
            rc = w->kind->advance(w, out, &ended, err);
        if (rc < 0 || !ended)
            return rc;
        rc = w->kind->end(w, &end, err);
        if (rc == 0)
            rc = rv_visit_on_outside_end(w->visit, &end, out->now_us, out, err);
        drop(w);
    }
    return rc;
}

int run_work_begin(struct rv_visit_shared *shared, const struct rv_visit_start *start, struct rv_effects *out,
                   rv_work **work, rv_err **err)
{
    rv_work *w = calloc(1, sizeof *w);

    if (!w)
        return RV_FAIL(err, RV_E_NOMEM, "begin stage \"%s\"", shared->pipeline->agents[start->stage].name);
    w->shared = shared;
    w->env = start->env;
    w->place = start->place ? *start->place : RV_VISIT_PLACE_NONE;
    int rc = rv_visit_begin(shared, start, out->now_us, out, &w->visit, err);
    if (rc == 0)
        rc = advance(w, out, err);
    if (rc < 0) {
        run_work_free(w);
        return rc;
    }
    *work = w;
    return 0;
}

bool run_work_waits_for(const rv_work *w, int64_t call_id)
{
    return w->kind ? w->kind->waits_for(w, call_id) : rv_visit_waits_for(w->visit, call_id);
}

int run_work_find_short(const rv_work *w, struct rv_short *out, rv_err **err)
{
    return w->kind ? w->kind->find_short(w, out, err) : rv_visit_find_short(w->visit, out, err);
}

int run_work_on(rv_work *w, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    int rc = w->kind ? w->kind->on(w, ev, out, err) : rv_visit_step(w->visit, ev, out, err);

    return rc < 0 ? rc : advance(w, out, err);
}

int run_work_cancel(rv_work *w, const char *why, json_object *partials, struct rv_effects *out, rv_err **err)
{
    int rc = w->kind ? w->kind->cancel(w, why, partials, out, err) : 0;

    drop(w);
    return rc < 0 ? rc : rv_visit_cancel(w->visit, why, partials, out->now_us, out, err);
}

int run_work_recover(rv_work *w, int64_t gap_us, struct rv_effects *out, rv_err **err)
{
    int rc = rv_visit_recover(w->visit, gap_us, out, err);

    if (rc == 0 && w->kind)
        rc = w->kind->recover(w, gap_us, out, err);
    return rc < 0 ? rc : advance(w, out, err); /* a call that must not be paid twice has ended */
}

bool run_work_is_done(const rv_work *w)
{
    return rv_visit_is_done(w->visit);
}

const struct rv_visit_result *run_work_result(const rv_work *w)
{
    return rv_visit_result(w->visit);
}

int run_work_stage(const rv_work *w)
{
    return rv_visit_stage(w->visit);
}

void run_work_free(rv_work *w)
{
    if (!w)
        return;
    drop(w);
    rv_visit_free(w->visit);
    free(w);
}
