/* The services of coreengine/tools/services.h that need a store: a run's capabilities queue tasks and schedules under
 * the tenant and the user of the run. Each ask opens the store for itself, on the thread that asks. */
#ifndef RV_APP_SERVICES_H
#define RV_APP_SERVICES_H

#include "coreengine/app/app.h"

#define RV_APP_MAX_SCHEDULES 1000 /* of one user, that capabilities may have added to */

struct rv_app_services {
    struct rv_exec_services exec; /* for struct rv_exec_opts */
    const struct rv_app *app;     /* borrowed */
};
/** For runs that are kept; s and app outlive them. Gives &s->exec. */
const struct rv_exec_services *rv_app_services_init(struct rv_app_services *s, const struct rv_app *app);

#endif
