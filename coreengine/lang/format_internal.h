/* Shared by the files of format only. */
#ifndef RV_FORMAT_INTERNAL_H
#define RV_FORMAT_INTERNAL_H

#include "coreengine/lang/yaml.h"

/** Lay out the tokens of a text that was read without a fault. comments receives each comment, one a line. RV_E_NOMEM;
 * RV_E_LIMIT: it is nested too deeply, or a buffer is full. */
int lang_yaml_layout(rv_str text, rv_buf *out, rv_buf *comments);

#endif
