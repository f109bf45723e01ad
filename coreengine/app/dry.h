/* What a run would send to models, known before anything is run. */
#ifndef RV_APP_DRY_H
#define RV_APP_DRY_H

#include "coreengine/app/app.h"

/* The first request of a stage that asks a model. What it points to is borrowed for the call. */
struct rv_app_dry_stage {
    const struct rv_pipeline *pipeline; /* that it is in: of an inner one, too */
    const struct rv_agent *agent;
    json_object *request;     /* borrowed for the call; NULL: not known */
    const char *why;          /* NULL: it is known; else why not */
    bool has_unknown;         /* outputs of other stages are in it, as {{outputs.KEY.FIELD}} */
    const char *const *hooks; /* that may change it before it is sent */
    size_t n_hooks;
};
/** Calls each for every stage that asks a model, in the order of the file, inner pipelines last. The core builds the
 *  requests from the state and, for outputs that stages will make, from marks in their place. Nothing is performed and
 *  nothing is kept. state: as of struct rv_app_job; borrowed. */
RV_MUST_CHECK int rv_app_dry_run(struct rv_app_loaded *l, json_object *state,
                                 int (*each)(void *self, const struct rv_app_dry_stage *stage, rv_err **err),
                                 void *self, rv_err **err);

#endif
