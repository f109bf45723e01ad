/* Views of an envelope for stages that run side by side: forks of single stages, branches of groups, and the questions
 * of branches. */
#ifndef RV_BRANCHES_H
#define RV_BRANCHES_H

#include "envelope/state.h"

/* --- Forks (parallel stages) --- */
/** A fork of env: sees its values, owns its changes. env must not change or die before the merge. Cost: O(1). */
RV_MUST_CHECK int rv_envelope_fork(const rv_envelope *env, rv_envelope **out, rv_err **err);
/* One batch of merges; zeroed at first. Says which keys several forks wrote. */
struct rv_merge {
    json_object *written;   /* output key -> stage that wrote it last; owned */
    json_object *conflicts; /* array of {key, earlier, later}; owned; NULL: none */
};
void rv_merge_fini(struct rv_merge *m);
/** Take out of a fork what a merge is not to bring: the output of that key, and an interrupt that waits, with the work
 * that was suspended for it. */
void rv_envelope_keep_back(rv_envelope *fork, rv_str output_key);
/* What a run has used so far. */
struct rv_envelope_used {
    int64_t hops, llm_calls, iterations;
    struct rv_usage usage;
};
/** Of the envelope of a run: with what the branches used that it keeps while the run pauses, which the fields of the
 * envelope do not count before the branches are joined. Of a fork: since it was made. */
struct rv_envelope_used rv_envelope_used(const rv_envelope *env);
/** Count the hops and the usage of a run that was made inside of a visit: what it has used now, but for what it had
 * used before. Its model calls count with the record of the visit. */
void rv_envelope_add_inner(rv_envelope *env, const struct rv_envelope_used *now, const struct rv_envelope_used *before);
/** Copy the fork's changes into env (rule 7.7): changed outputs and metadata set, state set, counters added, new
 * history and errors appended, visits added, the first pending interrupt taken (further ones go to
 * metadata.queued_interrupts), suspended work set, a termination applied. `stage` names the fork's stage. The fork is
 * still the caller's to free. */
RV_MUST_CHECK int rv_envelope_merge(rv_envelope *env, rv_envelope *fork, rv_str stage, struct rv_merge *m,
                                    rv_err **err);

/* --- Branches of a group --- */
/** A fork for many visits, of an envelope or of another branch: a change back to the value that env has is a change,
 * too. env must not change or die before the branch was joined or freed. Cost: O(1). */
RV_MUST_CHECK int rv_envelope_branch(const rv_envelope *env, rv_envelope **out, rv_err **err);
/* The join of one group; zeroed at first but for how and self. */
struct rv_joining {
    enum rv_merge_mode (*how)(const void *self, const char *key); /* of an output key; NULL: replace for all */
    const void *self;                                             /* for how; borrowed */
    json_object *gathered; /* outputs that are merged from several writers; owned */
    json_object *writers;  /* metadata key -> branch that wrote it last; owned */
    json_object
        *conflicts; /* array of {key, earlier, later}: metadata that several branches wrote; owned; NULL: none */
};
void rv_joining_fini(struct rv_joining *j);
/** Join one branch; branches are joined in the order of their list. History, errors, cost and counts are added; with
 * values also outputs (by their rule), metadata, state (its changes are made again) and new feedback and prior plans.
 * What loop-backs cleared in the branch stays. The branch is still the caller's to free. Cost: O(changes). */
RV_MUST_CHECK int rv_envelope_join(rv_envelope *env, rv_envelope *branch, rv_str name, bool with_values,
                                   struct rv_joining *j, rv_err **err);
/** After the last branch: set the outputs that several branches may have written. */
RV_MUST_CHECK int rv_envelope_join_end(rv_envelope *env, struct rv_joining *j, rv_err **err);
/** A branch, at any depth, ended the run: env is terminated as it is; nothing where it did not. */
void rv_envelope_copy_end(rv_envelope *env, rv_envelope *branch);

/* The state dict of a run that pauses inside of a group has its branches under `branches`: a list that the run writes
 * and reads, of what each branch keeps of its own. */
/** The members `own`, `gone` and `writes` of an object that was begun. */
RV_MUST_CHECK int rv_envelope_write_branch(const rv_envelope *branch, rv_jw *w, rv_err **err);
/** A branch of env with what such an object keeps. RV_E_INVALID names what is wrong in it. */
RV_MUST_CHECK int rv_envelope_load_branch(const rv_envelope *env, json_object *json, rv_envelope **out, rv_err **err);
json_object *rv_envelope_branches(const rv_envelope *env);           /* borrowed; NULL: none */
void rv_envelope_set_branches(rv_envelope *env, json_object *value); /* adds a reference */
/** What the envelope has itself in the place of the questions that it shows: members `interrupt` and `queue`. */
void rv_envelope_write_hidden(const rv_envelope *env, rv_jw *w);
/** The same of a loaded envelope: what it has as its questions counts as shown. */
RV_MUST_CHECK int rv_envelope_read_hidden(rv_envelope *env, json_object *json, rv_err **err);

/* A run pauses while branches ask: its envelope shows their questions as if they were its own. */
/** Before the first branch is made. */
RV_MUST_CHECK int rv_envelope_expect_questions(rv_envelope *env, rv_err **err);
/** Show the pending question of a branch, the first one as the pending interrupt, others in its queue. What env has
 * there itself comes back when they are hidden. */
RV_MUST_CHECK int rv_envelope_show_question(rv_envelope *env, const rv_envelope *branch, rv_str stage, rv_str path,
                                            rv_err **err);
void rv_envelope_hide_questions(rv_envelope *env); /* nothing where none are shown */

#endif
