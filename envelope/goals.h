/* Goals, and what is kept for another try: loop-backs, feedback, earlier plans. */
#ifndef RV_ENVELOPE_GOALS_H
#define RV_ENVELOPE_GOALS_H

#include "envelope/state.h"

/* Outputs that a loop-back archives and deletes, and that a new goal stage deletes. Borrowed; NULL: the defaults. */
struct rv_reset_rules {
    const char *const *retry_archive; /* default: plan */
    size_t n_retry_archive;
    const char *const *retry_clear; /* default: plan arbiter execution synthesizer critic */
    size_t n_retry_clear;
    const char *const *stage_reset; /* default: plan execution critic */
    size_t n_stage_reset;
};
/** Replace all goals by these n, each pending. RV_E_INVALID: one is not UTF-8; RV_E_LIMIT, RV_E_NOMEM: nothing changed.
 */
RV_MUST_CHECK int rv_envelope_init_goals(rv_envelope *env, const char *const *goals, size_t n, rv_err **err);
/* The goals that a stage has met. All is borrowed. */
struct rv_goals_met {
    const char *const *goals;
    size_t n;
    json_object *summary; /* an object, or NULL */
};
/** *more: there is work left (rule 3.7). */
RV_MUST_CHECK int rv_envelope_advance_stage(rv_envelope *env, const struct rv_goals_met *met,
                                            const struct rv_reset_rules *rules, bool *more, rv_err **err);
/** The goals' position for prompts; *out is the caller's object. */
RV_MUST_CHECK int rv_envelope_build_stage_context(const rv_envelope *env, json_object **out, rv_err **err);
/* Loop-backs that are counted by why they were taken; the keys of the state dict are `replans` and `rejections`. */
enum rv_loop_cause { RV_LOOP_REPLAN, RV_LOOP_REJECTION };
/** One more by that stage. *of_stage: its own so far; *of_all: those of every stage. Of forks only for branches. */
RV_MUST_CHECK int rv_envelope_note_loop(rv_envelope *env, enum rv_loop_cause cause, rv_str stage, int64_t *of_stage,
                                        int64_t *of_all, rv_err **err);
int64_t rv_envelope_loops(const rv_envelope *env, enum rv_loop_cause cause, rv_str stage); /* its own so far */
/** iteration + 1; feedback (ptr NULL: none) appended; archive, then clear. */
RV_MUST_CHECK int rv_envelope_increment_iteration(rv_envelope *env, rv_str feedback, const struct rv_reset_rules *rules,
                                                  rv_err **err);
RV_MUST_CHECK int rv_envelope_add_feedback(rv_envelope *env, rv_str feedback, rv_err **err); /* RV_E_INVALID */
json_object *rv_envelope_feedback(const rv_envelope *env);                                   /* array, borrowed */
json_object *rv_envelope_prior_plans(const rv_envelope *env);                                /* array, borrowed */

#endif
