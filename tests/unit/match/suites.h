/* The cases of this suite, and what they share. */
#ifndef RV_TESTS_MATCH_SUITES_H
#define RV_TESTS_MATCH_SUITES_H

#include <check.h>

#include "coreengine/match/match.h"

TCase *keys_case(void);
TCase *grams_case(void);
TCase *terms_case(void);
TCase *vectors_case(void);
TCase *embed_case(void);
TCase *pages_case(void);
TCase *edges_case(void);

/* Numbers that are the same in every run: xorshift64*. */
struct numbers {
    uint64_t state; /* not 0 */
};
static inline uint64_t next_number(struct numbers *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * UINT64_C(0x2545f4914f6cdd1d);
}
static inline size_t next_below(struct numbers *r, size_t n)
{
    return (size_t)(next_number(r) >> 11) % n;
}

/* A character that text is made of: mostly letters of several scripts, marks, blanks, dashes, punctuation. */
int32_t some_character(struct numbers *r);
/* Up to max of them as UTF-8; the buffer is emptied first. */
void some_text(struct numbers *r, size_t max, rv_buf *out);

#endif
