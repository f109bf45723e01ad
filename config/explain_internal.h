/* Shared by explain.c and explain_guarded.c only. */
#ifndef RV_CONFIG_EXPLAIN_INTERNAL_H
#define RV_CONFIG_EXPLAIN_INTERNAL_H

#include "config/models_internal.h"

void rv_explain_double(rv_jw *w, const char *key, double d);
/** The word of a TERM key's value, by the key's own table row; nothing when it is not set. */
void rv_explain_term(rv_jw *w, const struct rv_key_table *table, const char *key, int value);
void rv_explain_models(const struct rv_pipeline *p, rv_jw *w);
void rv_explain_capabilities(const struct rv_pipeline *p, rv_jw *w);

#endif
