/* Random turns and runs, as scripts for play(): stages one after the other or side by side, agents that ask others,
 * each speaking and calling tools in pieces that interleave; replies that break, questions, and a stop at any point. */
#ifndef RV_TESTS_PROTOCOLS_GEN_H
#define RV_TESTS_PROTOCOLS_GEN_H

#include "coreengine/base/base.h"

#define GEN_MAX_REPLIES 200

struct gen {
    rv_buf script;
    rv_buf texts[GEN_MAX_REPLIES]; /* by call id: the text that is not muted */
    size_t n_replies;
    const char *status; /* how it ended: a word of enum rv_run_status */
};
void gen_make(uint64_t seed, struct gen *out);
void gen_fini(struct gen *g);

#endif
