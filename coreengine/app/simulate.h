/* Pipelines as a simulation needs them: with the tools and agents that a run would find. */
#ifndef RV_APP_SIMULATE_H
#define RV_APP_SIMULATE_H

#include "coreengine/app/app.h"
#include "coreengine/sim/sim.h"

/* A pipeline as one thread has it: nothing is shared. */
struct rv_app_subject {
    struct rv_app_loaded loaded;
    struct rv_catalog plugins, *scripts; /* each script's tools on top of those before */
    const char **tools;                  /* all that are known; owned */
    struct rv_sim_agent *agents;         /* that may be asked; their texts are owned */
    size_t n_agents;
    bool is_loaded;
};
/** Without a script of its own the tools of the pipeline's tests are known, so that their schemas are. A pipeline with
 *  errors gives no subject: look at o->loaded. Zero o before, finish it in any case. */
RV_MUST_CHECK int rv_app_subject_load(const struct rv_app *app, const char *path, const char *script,
                                      struct rv_app_subject *o, struct rv_sim_subject *subject, rv_err **err);
void rv_app_subject_fini(struct rv_app_subject *o);

#endif
