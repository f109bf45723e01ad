/* Judges of streams that share no code with the encoders: what clients refuse, and what was lost. */
#ifndef RV_TESTS_PROTOCOLS_JUDGE_H
#define RV_TESTS_PROTOCOLS_JUDGE_H

#include "tests/unit/protocols/gen.h"

/** Each returns true, or writes what is wrong. g: what was played. */
bool judge_agui(rv_str stream, const struct gen *g, rv_buf *why);
bool judge_agui_old(rv_str stream, const struct gen *g, rv_buf *why);
bool judge_chunks(rv_str stream, const struct gen *g, bool is_remlight, rv_buf *why);
bool judge_responses(rv_str stream, const struct gen *g, rv_buf *why);

#endif
