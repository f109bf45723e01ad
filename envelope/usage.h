/* What model calls took: tokens and money. */
#ifndef RV_USAGE_H
#define RV_USAGE_H

#include "coreengine/base/base.h"

/* The usage of model calls. Tokens are counted as their provider counts them. */
struct rv_usage {
    int64_t calls;                       /* whose tokens were told, or that may have been charged for */
    int64_t input_tokens, output_tokens; /* all of them: those below are among these */
    int64_t cached_tokens, cache_write_tokens, reasoning_tokens; /* input read from and written to a cache; output */
    int64_t cost_micro_usd;                                      /* 0 where no price is known */
    bool estimated; /* a part is the worst case, because the provider did not report it */
};
/** Adds, without overflow. */
void rv_usage_add(struct rv_usage *sum, const struct rv_usage *part);
bool rv_usage_is_zero(const struct rv_usage *u);
/** {calls?, input_tokens, output_tokens, cached_tokens?, cache_write_tokens?, reasoning_tokens?, cost_micro_usd?,
 * estimated?}: what is 0 or false is left out, but for the input and output. */
void rv_usage_write_json(const struct rv_usage *u, rv_jw *w);
#define RV_USAGE_MAX ((int64_t)1 << 52) /* a count above it is none: sums do not overflow */
/** The count under key, 0 when it is missing. False: it is there and no count; *out is 0 then. */
bool rv_usage_read_count(json_object *json, const char *key, int64_t *out);
/** Read the written form; missing members are 0. False: a member is not a count; it is read as 0. */
bool rv_usage_read_json(json_object *json, struct rv_usage *out);

#endif
