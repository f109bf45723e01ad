/* Amounts as people read them. */
#ifndef RV_APP_FIGURES_H
#define RV_APP_FIGURES_H

#include "coreengine/base/base.h"

#define RV_APP_MAX_MONEY 32
/** "$0.0123": no digit of a micro-dollar is lost, cents are always there. In out, or static. */
const char *rv_app_money(int64_t micro_usd, char out[RV_APP_MAX_MONEY]);
void rv_app_write_count(rv_buf *b, int64_t n); /* "16,384" */

#endif
