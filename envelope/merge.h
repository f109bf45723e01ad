/* The ways to merge a new value with an old one: the words of pipelines and of kept branches. */
#ifndef RV_ENVELOPE_MERGE_H
#define RV_ENVELOPE_MERGE_H

#include "coreengine/base/base.h"

/* One list: constant, word, meaning. */
#define RV_MERGE_MODES(X)                                                                                              \
    X(REPLACE, "replace", "the new value stands")                                                                      \
    X(APPEND, "append", "the new value goes to the end of a list")                                                     \
    X(DICT, "merge_dict", "the new value's keys are set in the old one")
#define RV_MERGE_CONST(n, t, m) RV_MERGE_##n,
enum rv_merge_mode { RV_MERGE_MODES(RV_MERGE_CONST) RV_N_MERGE_MODES };
const char *rv_merge_mode_text(enum rv_merge_mode mode);
int rv_merge_mode_of(rv_str word); /* RV_UNSET: another word */

#endif
