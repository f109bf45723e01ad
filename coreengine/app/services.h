/* The services of coreengine/tools/source.h that need a store: a run's capabilities queue tasks and schedules under
 * the tenant and the user of the run. Asks are answered on the threads that ask, by handles of the store that are used
 * again. */
#ifndef RV_APP_SERVICES_H
#define RV_APP_SERVICES_H

#include "coreengine/app/workspace.h"

#define RV_APP_MAX_SCHEDULES 1000 /* of one user that have not ended: capabilities add no more */

/* A store in memory, for a test. */
typedef struct rv_app_scratch rv_app_scratch;
rv_app_scratch *rv_app_scratch_new(void); /* NULL: no memory; opens nothing before the first request */
void rv_app_scratch_free(rv_app_scratch *scratch);
/* Handles of a store that are not in use. */
typedef struct rv_app_handles rv_app_handles;
rv_app_handles *rv_app_handles_new(void); /* NULL: no memory */
/** No handle is left but those of asks under way, which close them. NULL is fine. */
void rv_app_handles_free(rv_app_handles *h);

struct rv_app_services {
    struct rv_exec_services exec; /* for struct rv_exec_opts */
    const struct rv_app *app;     /* borrowed */
    rv_app_scratch *scratch;      /* borrowed; NULL: the store of app */
    rv_app_handles *handles;      /* NULL until something is asked; owned, unless `shares` */
    bool shares;                  /* the handles are borrowed */
};
/** For runs that are kept; s and app outlive them. Gives &s->exec. End it with rv_app_services_fini() when no run is
 * left. */
const struct rv_exec_services *rv_app_services_init(struct rv_app_services *s, const struct rv_app *app);
/** The same with handles that others use, too; they outlive s. It need not be ended. */
const struct rv_exec_services *rv_app_services_init_shared(struct rv_app_services *s, const struct rv_app *app,
                                                           rv_app_handles *handles);
void rv_app_services_fini(struct rv_app_services *s); /* also of a zeroed one */
/** As rv_app_services_init() with a store of its own, which is empty and is gone with the scratch: for a test.
 * It is freed when no run is left. */
const struct rv_exec_services *rv_app_services_init_scratch(struct rv_app_services *s, const struct rv_app *app,
                                                            rv_app_scratch *scratch);

#endif
