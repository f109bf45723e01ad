/* Shared by the kinds of work of one visit. */
#ifndef RV_RUN_WORK_KINDS_INTERNAL_H
#define RV_RUN_WORK_KINDS_INTERNAL_H

#include "coreengine/run/run_internal.h"

struct each;
struct inner;

/* One kind of work that a visit leaves outside (enum rv_outside). */
struct rv_work_kind {
    int (*begin)(rv_work *w, struct rv_effects *out, rv_err **err);
    /* Begin as much as is allowed; *ended: nothing is under way any more. */
    int (*advance)(rv_work *w, struct rv_effects *out, bool *ended, rv_err **err);
    bool (*waits_for)(const rv_work *w, int64_t call_id);
    int (*find_short)(const rv_work *w, struct rv_short *out, rv_err **err); /* as run_work_find_short() */
    int (*on)(rv_work *w, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
    /* Give up what is under way; what has ended keeps its history. */
    int (*cancel)(rv_work *w, const char *why, json_object *partials, struct rv_effects *out, rv_err **err);
    int (*recover)(rv_work *w, int64_t gap_us, struct rv_effects *out, rv_err **err);
    int (*end)(rv_work *w, struct rv_outside_end *end, rv_err **err); /* its result; texts live until free */
    void (*free)(rv_work *w);
    /* Of a run inside that waits for a person; NULL: the kind has none. As run_give_up() and run_tells_denial() in
     * waiting.c. */
    int (*give_up)(rv_run *run, struct branch *b, int stage, const char *why, struct rv_effects *out, rv_err **err);
    int (*tells_denial)(rv_run *run, struct branch *b, bool *tells, rv_err **err);
    /* *is_inside false: the question is not of such a run, and nothing was checked. */
    int (*check_arguments)(rv_run *run, struct branch *b, const struct rv_response *r, int64_t now_us, bool *is_inside,
                           rv_err **err);
};
extern const struct rv_work_kind run_each_kind;  /* each.c: the elements of a list */
extern const struct rv_work_kind run_inner_kind; /* inner.c: another pipeline; goes on after a person's answer, too */

/* inner.c */
/** "stage/" behind the path of what is around it. *out is the caller's. */
RV_MUST_CHECK int run_inner_path(const char *before, const char *stage, char **out, rv_err **err);
struct run_inner_place { /* of a run that is the work of a stage; borrowed, and outlives the run */
    const char *path, *prefix;
    json_object *inputs;
    const rv_envelope *env; /* of the visit around it */
};
void run_inner_nest(rv_run *run, struct rv_visit_shared *up, int stage, const struct run_inner_place *at);

/* inside.c: for its kind */
RV_MUST_CHECK int run_inside_give_up(rv_run *run, struct branch *b, int stage, const char *why, struct rv_effects *out,
                                     rv_err **err);
RV_MUST_CHECK int run_inside_tells_denial(rv_run *run, struct branch *b, bool *tells, rv_err **err);
RV_MUST_CHECK int run_inside_check_arguments(rv_run *run, struct branch *b, const struct rv_response *r, int64_t now_us,
                                             bool *is_inside, rv_err **err);

struct rv_work {
    struct rv_visit_shared *shared;  /* borrowed */
    rv_envelope *env;                /* borrowed */
    rv_visit *visit;                 /* owned: of the stage */
    struct rv_visit_place place;     /* of the visit; borrowed values */
    const struct rv_work_kind *kind; /* static; of what the visit left outside and is under way; NULL: nothing */
    struct each *each;               /* owned; of that kind only, as is the next */
    struct inner *inner;             /* owned */
};

#endif
