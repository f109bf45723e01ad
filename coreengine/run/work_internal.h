/* Shared by the kinds of work of one visit. */
#ifndef RV_WORK_INTERNAL_H
#define RV_WORK_INTERNAL_H

#include "coreengine/run/run_internal.h"

struct each;  /* each.c: the elements of a list */
struct inner; /* inner.c: another pipeline */

struct rv_work {
    struct rv_visit_shared *shared; /* borrowed */
    rv_envelope *env;               /* borrowed */
    rv_visit *visit;                /* owned: of the stage */
    struct rv_visit_place place;    /* of the visit; borrowed values */
    struct each *each;              /* while its elements are worked on; owned; NULL: not */
    struct inner *inner;            /* while that pipeline runs; owned; NULL: it does not */
};

/* each.c */
/** The visit waits for its list: begin. */
RV_MUST_CHECK int rv_each_begin(rv_work *w, int64_t now_us, struct rv_effects *out, rv_err **err);
bool rv_each_waits_for(const struct each *e, int64_t call_id);
RV_MUST_CHECK int rv_each_find_short(const struct each *e, struct rv_short *out, rv_err **err);
RV_MUST_CHECK int rv_each_on(rv_work *w, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** Give up the elements under way; those that have ended keep their history. */
RV_MUST_CHECK int rv_each_cancel(rv_work *w, const char *why, json_object *partials, int64_t now_us,
                                 struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int rv_each_recover(rv_work *w, int64_t gap_us, int64_t now_us, struct rv_effects *out, rv_err **err);
/** Begin further elements as far as may be; *ended: nothing is under way any more. */
RV_MUST_CHECK int rv_each_advance(rv_work *w, int64_t now_us, struct rv_effects *out, bool *ended, rv_err **err);
/** All that there is to do is done: what it came to. Its texts live as long as the elements. */
RV_MUST_CHECK int rv_each_end(rv_work *w, struct rv_outside_end *end, rv_err **err);
void rv_each_free(struct each *e);

/* inner.c */
/** The visit waits for its pipeline: begin, or go on after a person's answer. */
RV_MUST_CHECK int rv_inner_begin(rv_work *w, int64_t now_us, struct rv_effects *out, rv_err **err);
bool rv_inner_waits_for(const struct inner *in, int64_t call_id);
RV_MUST_CHECK int rv_inner_find_short(const struct inner *in, struct rv_short *out, rv_err **err);
RV_MUST_CHECK int rv_inner_on(rv_work *w, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int rv_inner_cancel(rv_work *w, const char *why, json_object *partials, int64_t now_us,
                                  struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int rv_inner_recover(rv_work *w, int64_t gap_us, int64_t now_us, struct rv_effects *out, rv_err **err);
bool rv_inner_is_done(const struct inner *in);
/** It is done: what it came to. Texts live as long as the inner run. */
RV_MUST_CHECK int rv_inner_end(rv_work *w, struct rv_outside_end *end, rv_err **err);
void rv_inner_free(struct inner *in);

#endif
