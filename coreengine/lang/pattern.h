/* Regular expressions as JSON Schema means them: ECMA-262 with its flag u. PCRE2 matches them.
 *
 * The text of a pattern is translated, since the two differ where it is easy to miss: `$` is the end of the text only,
 * `.` leaves out four line ends, `\s` takes Unicode's blanks, `\d` and `\w` are ASCII, `\u` gives a character. What
 * only PCRE2 has (inline flags, atomic groups, possessive repeats, recursion, verbs) is an error.
 * docs/reference/schemas.md lists what differs from ECMA-262.
 *
 * A match is bounded: RV_PATTERN_STEPS and four more for each byte of the text, however the pattern is written. A step
 * is an item of the pattern tried at a place of the text; skipped text counts an eighth of a step a byte. The number
 * depends on the pattern and the text only, never on time. A compiled pattern is constant: any thread may match. */
#ifndef RV_PATTERN_H
#define RV_PATTERN_H

#include "coreengine/base/base.h"

#define RV_PATTERN_MAX_BYTES 4096 /* of its text */
/* of one match, and four for each byte; then RV_E_LIMIT: a pattern may need exponential time */
#define RV_PATTERN_STEPS 100000

typedef struct rv_pattern rv_pattern;

/** Compile. RV_E_PARSE: not a pattern (the message says where, counted in bytes from 1), RV_E_LIMIT: too long or too
 *  large, RV_E_NOMEM. text is UTF-8. */
RV_MUST_CHECK int rv_pattern_new(rv_str text, rv_pattern **out, rv_err **err);
/** The pattern in quotes, for messages; of a long one the beginning. Borrowed. */
const char *rv_pattern_text(const rv_pattern *p);
void rv_pattern_free(rv_pattern *p); /* NULL is fine */
/** Tells in *out whether the pattern matches anywhere in text. *steps is what the caller can spend on all its matches,
 *  and goes down; NULL: no such limit. RV_E_LIMIT: it takes more steps than allowed; RV_E_INVALID: the text is not
 * UTF-8; RV_E_NOMEM. */
RV_MUST_CHECK int rv_pattern_test(const rv_pattern *p, rv_str text, size_t *steps, bool *out, rv_err **err);

#endif
