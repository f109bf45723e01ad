/* Texts that may be anything, where JSON needs UTF-8 or C needs a text without a NUL. */
#ifndef RV_BASE_BORDER_H
#define RV_BASE_BORDER_H

#include "coreengine/base/json.h"

/** Key and value: the name of a file, which may have any bytes. Each that is not of UTF-8 becomes "?", as in the texts
 * of errors. NULL writes null. */
void rv_jw_kv_path(rv_jw *w, const char *key, const char *path);
/** Is it a string with a NUL (U+0000)? As a C string it ends there: refuse it where others say what a name is. */
bool rv_json_has_nul(json_object *v);

#endif
