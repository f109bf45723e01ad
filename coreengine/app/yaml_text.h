/* Texts in YAML that people read: as they are where YAML can have them so, else quoted. */
#ifndef RV_APP_YAML_TEXT_H
#define RV_APP_YAML_TEXT_H

#include "coreengine/base/base.h"

/** The value of a key at that depth (two blanks each), with its line end. Several lines become a block. Reading it
 *  gives the text again, byte for byte. */
void rv_app_yaml_text(rv_str text, int depth, rv_buf *b);
/** The same for any JSON value, on one line. */
void rv_app_yaml_json(json_object *value, rv_buf *b);

#endif
