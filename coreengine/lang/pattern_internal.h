/* Shared by the files of patterns only. */
#ifndef RV_PATTERN_INTERNAL_H
#define RV_PATTERN_INTERNAL_H

#include "coreengine/lang/lang.h"

/** Append to out what PCRE2 reads for a pattern of ECMA-262; messages name it as shown. RV_E_PARSE, RV_E_LIMIT,
 * RV_E_NOMEM. */
RV_MUST_CHECK int lang_pattern_translate(rv_str text, const char *shown, rv_buf *out, rv_err **err);

#endif
