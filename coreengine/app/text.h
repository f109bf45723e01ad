/* Amounts and texts as people read them. */
#ifndef RV_APP_TEXT_H
#define RV_APP_TEXT_H

#include "coreengine/base/base.h"

#define RV_APP_MAX_MONEY 32 /* bytes of an amount as text */
/** "$0.0123": no digit of a micro-dollar is lost, cents are always there. In out, or static. */
const char *rv_app_money(int64_t micro_usd, char out[RV_APP_MAX_MONEY]);
void rv_app_write_count(rv_buf *b, int64_t n); /* "16,384" */

/* Texts in YAML: as they are where YAML can have them so, else quoted. */
/** The value of a key at that depth (two blanks each), with its line end. Several lines become a block. Reading it
 *  gives the text again, byte for byte. */
void rv_app_yaml_text(rv_str text, int depth, rv_buf *b);
/** The same for any JSON value, on one line. */
void rv_app_yaml_json(json_object *value, rv_buf *b);

#endif
