/* What the files of this folder share. */
#ifndef RV_APP_MODELS_INTERNAL_H
#define RV_APP_MODELS_INTERNAL_H

#include "coreengine/app/models.h"

/* servers.c */
RV_MUST_CHECK int rv_app_servers_find(struct rv_app_models *m, rv_err **err);
/** All at once. Also says what HTTP is done with, or why it can not be done. */
RV_MUST_CHECK int rv_app_servers_ask(const struct rv_app *app, struct rv_app_models *m, rv_err **err);

#endif
