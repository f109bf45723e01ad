/* Shared by the files of this module: the text that is read, its faults, its words. */
#ifndef RV_REM_REM_INTERNAL_H
#define RV_REM_REM_INTERNAL_H

#include "coreengine/rem/rem.h"

#define REM_MAX_QUOTE 60 /* bytes of the query, in errors: most of a line of a terminal */

/* --- fault.c --- */

/* What it points to is borrowed for the call. */
struct rem_source {
    rv_str text;
    struct rv_src start;        /* of text, in what the caller shows to people */
    struct rv_rem_fault *fault; /* may be NULL */
    rv_err **err;
    rv_arena *memory; /* of the result */
};
/** The place of a byte of the text, and the fault with it. */
struct rv_src rem_mark(const struct rem_source *s, const char *at, enum rv_rem_fault_code code);
/** The code of the error value. */
int rem_code(enum rv_rem_fault_code code);
#define REM_FAIL(s, at, code, ...)                                                                                     \
    RV_FAIL_AT((s)->err, (struct rv_src[]){rem_mark((s), (at), (code))}, rem_code(code), __VA_ARGS__)
#define REM_QUOTE(s) RV_STR_ARG(rv_utf8_cut((s), REM_MAX_QUOTE))
/** Size, encoding. */
RV_MUST_CHECK int rem_check_text(const struct rem_source *s);
/** Equal but for the case of ASCII letters. */
bool rem_is_word(rv_str s, const char *word);
/** What the arena could not give. */
int rem_no_memory(const struct rem_source *s);

/* --- words.c --- */

/* A word of the four modes: unquoted. */
struct rem_word {
    rv_str text;         /* in the arena */
    const char *literal; /* for each byte of text: 1 if it was quoted or escaped; in the arena */
    const char *at;      /* in the source; borrowed */
    size_t first_quote;  /* bytes of text before the first quote or escape; SIZE_MAX: none */
};
struct rem_words {
    struct rem_word *items; /* in the arena */
    size_t n;
};
/** The words of a part of the source. */
RV_MUST_CHECK int rem_split(const struct rem_source *s, rv_str part, struct rem_words *out);
static inline bool rem_is_plain(const struct rem_word *w)
{
    return w->first_quote == SIZE_MAX;
}
bool rem_is_blank(char c);

#endif
