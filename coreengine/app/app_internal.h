/* What the files of this folder share. */
#ifndef RV_APP_INTERNAL_H
#define RV_APP_INTERNAL_H

#include "coreengine/app/app.h"

/* --- agents.c: declared agents of a pipeline --- */
/** Say where agents are, for a pipeline that has some. */
RV_MUST_CHECK int rv_app_open_agents(const struct rv_app *app, const struct rv_app_load_opts *opts,
                                     struct rv_app_loaded *l, rv_err **err);
/** The same, and make its stages what the documents say. */
RV_MUST_CHECK int rv_app_bind_agents(const struct rv_app *app, const struct rv_app_load_opts *opts,
                                     struct rv_app_loaded *l, rv_err **err);

#endif
