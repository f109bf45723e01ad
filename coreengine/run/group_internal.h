/* Groups of branches: how they open, settle and close, and the rule of a join. */
#ifndef RV_RUN_GROUP_INTERNAL_H
#define RV_RUN_GROUP_INTERNAL_H

#include "coreengine/run/run_internal.h"

/* group.c: groups open, settle and close */
/** Open the group of that list, which b->held_by routes to; its first visits begin. */
RV_MUST_CHECK int run_group_open(rv_run *run, struct branch *b, const struct rv_branches *list, const bool *taken,
                                 struct rv_effects *out, rv_err **err);
/** Its group is settled: cancel who is left, merge, and let it go on at the join. */
RV_MUST_CHECK int run_group_settle(rv_run *run, struct branch *b, struct rv_effects *out, rv_err **err);
/** Make a group without branches; add one branch to it, without an envelope. */
RV_MUST_CHECK int run_group_new(rv_run *run, struct branch *opener, int stage, const struct rv_branches *list,
                                rv_err **err);
RV_MUST_CHECK int run_group_add(struct group *g, const struct rv_branch_target *target, rv_err **err);
void run_group_look_at(rv_run *run, struct group *g); /* is it settled? Then its opener goes on next */
/** A branch of a group is over. */
void run_group_branch_over(rv_run *run, struct branch *b, enum branch_state state, struct rv_effects *out);
/** The run ends: give up all that is under way in the groups. Their history is kept, their values are not. */
RV_MUST_CHECK int run_group_close_all(rv_run *run, const char *why, json_object *partials, struct rv_effects *out,
                                      rv_err **err);
void run_group_free(struct group *g);

/* tree.c */
extern const char *const run_branch_states[N_BRANCH_STATES]; /* their words, in events and in states that are kept */

/* join.c: the rule of a join */
struct verdict {
    bool is_settled, is_satisfied;
    bool takes_arrived, takes_ended; /* whose values are merged */
};
struct verdict run_join_verdict(const rv_run *run, const struct group *g);
/** The first of the list that failed; NULL: none did. */
const struct branch *run_join_first_failed(const struct group *g);
/** Why it is not satisfied. */
int run_join_failure(const rv_run *run, const struct group *g, struct failure *out, rv_err **err);
/** The variable `group`. */
RV_MUST_CHECK int run_join_describe(const struct group *g, json_object **out, rv_err **err);
int run_failure_copy(const struct failure *from, struct failure *to, rv_err **err);

#endif
