/* Shared by the files that explain a pipeline: explain.c and explain_secrets.c. */
#ifndef RV_EXPLAIN_INTERNAL_H
#define RV_EXPLAIN_INTERNAL_H

#include "config/models_internal.h"

void config_explain_double(rv_jw *w, const char *key, double d);
/** A value of the file without its secrets. */
void config_explain_guarded(rv_jw *w, const struct rv_node *node);
/** The members "models" and "capabilities". */
void config_explain_models(const struct rv_pipeline *p, rv_jw *w);

#endif
