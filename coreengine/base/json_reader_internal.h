/* The JSON reader's state, shared by its two files: json_scalar.c (strings, numbers) and json_read.c (the rest). */
#ifndef RV_BASE_JSON_READER_H
#define RV_BASE_JSON_READER_H

#include "coreengine/base/base_internal.h"

/* Every function of the reader either moves `p` behind what it read, or leaves the place and the reason here and
 * returns non-zero. The text never ends in a NUL: `end` is the only border. */
enum outcome {
    OK,
    BROKEN,   /* breaks the grammar */
    CUT,      /* the text ended inside a so far valid value */
    TOO_MUCH, /* a limit */
    NO_MEMORY,
};

/* What it points to is borrowed for the call. */
struct reader {
    const char *text, *p, *end;
    const struct rv_json_opts *opts;
    int max_depth, depth;
    bool build;
    size_t units;
    rv_buf scratch;  /* the string being unescaped */
    bool saw_key;    /* of the outermost container */
    const char *at;  /* where it broke */
    const char *why; /* "a value": what was expected there; or, with is_verdict, the whole complaint */
    bool is_verdict;
    rv_str name; /* with is_verdict: the text the complaint is about, if any */
};

/** The grammar wants `what` at p; CUT at the end of the text, else BROKEN. */
enum outcome base_jr_expected(struct reader *r, const char *what);
/** `why` says it all. */
enum outcome base_jr_verdict(struct reader *r, enum outcome how, const char *at, const char *why);
/** A fresh node into *out; NULL is a failed allocation. */
enum outcome base_jr_made(json_object *v, json_object **out);
bool base_jr_at_digit(const struct reader *r);

/** p stands on the opening quote. *out views the text, or scratch when there are escapes: valid until the next one. */
enum outcome base_jr_string(struct reader *r, rv_str *out);
enum outcome base_jr_string_value(struct reader *r, json_object **out);
/** p stands on a minus or a digit. */
enum outcome base_jr_number(struct reader *r, json_object **out);

#endif
