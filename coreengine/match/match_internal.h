/* What the files of this module share: characters, and the logarithm. */
#ifndef RV_MATCH_INTERNAL_H
#define RV_MATCH_INTERNAL_H

#include "coreengine/match/match.h"

/* Code points, owned. */
struct runes {
    int32_t *at;
    size_t n;
};

#define RUNE_BAD 0xfffd /* what a byte that is not part of a valid sequence counts as */

/** The character at text[i] and its length in bytes; RUNE_BAD and 1 for a byte that begins none. */
int32_t match_rune_at(rv_str text, size_t i, size_t *n_bytes);
/** A letter or a digit. */
bool match_rune_is_word(int32_t c);
/** A mark that is written with the character before it, such as an accent or a vowel sign. */
bool match_rune_is_mark(int32_t c);
bool match_rune_is_space(int32_t c);
/** The lower case of the upper case, one to one: the same for all forms of a letter. */
int32_t match_rune_fold(int32_t c);
/** Simple lower case. */
int32_t match_rune_lower(int32_t c);
/** A character as UTF-8; returns the length. */
size_t match_rune_write(int32_t c, char out[4]);
/** The characters of a text in NFC. Of a run of marks those after the 30th are dropped. RV_E_LIMIT, RV_E_NOMEM */
RV_MUST_CHECK int match_runes_nfc(rv_str text, struct runes *out, rv_err **err);
/** NFC in place. */
RV_MUST_CHECK int match_runes_compose(struct runes *r, rv_err **err);
void match_runes_fini(struct runes *r);

/** The natural logarithm of a finite x > 0, the same bits on every machine; to about 1e-15. */
double match_log(double x);

struct rune_range {
    int32_t first, last;
};
/* Marks and symbols that Unicode calls alphabetic, ascending; letters may lie within a range. */
extern const struct rune_range match_alphabetic[];
extern const size_t match_n_alphabetic;

#endif
