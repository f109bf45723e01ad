/* Shared by the files of this folder. */
#ifndef RV_APP_MODELS_INTERNAL_H
#define RV_APP_MODELS_INTERNAL_H

#include "coreengine/app/models.h"

/* servers.c */
RV_MUST_CHECK int rv_app_servers_find(struct rv_app_models *m, rv_err **err);
/** Asks all servers at once. Also reports the HTTP library, or why there is none. */
RV_MUST_CHECK int rv_app_servers_ask(const struct rv_app *app, struct rv_app_models *m, rv_err **err);

#endif
