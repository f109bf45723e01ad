/* The list of verbs, in the order of help, by what they are for. Apart from the options, so that verbs and options do
 * not refer to each other. */
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>

/* clang-format off */ /* one a line */
const struct rv_cli_verb *const rv_cli_verbs[] = {
    &rv_verb_new,
    &rv_verb_lint,
    &rv_verb_fmt,
    &rv_verb_explain,
    &rv_verb_graph,
    &rv_verb_schema,
    &rv_verb_test,
    &rv_verb_sim,
    &rv_verb_run,
    &rv_verb_chat,
    &rv_verb_resume,
    &rv_verb_interrupts,
    &rv_verb_artifacts,
    &rv_verb_submit,
    &rv_verb_schedules,
    &rv_verb_worker,
    &rv_verb_tasks,
    &rv_verb_serve,
    &rv_verb_mcp,
    &rv_verb_runs,
    &rv_verb_top,
    &rv_verb_replay,
    &rv_verb_diff,
    &rv_verb_usage,
    &rv_verb_agents,
    &rv_verb_sessions,
    &rv_verb_moments,
    &rv_verb_dream,
    &rv_verb_entities,
    &rv_verb_ingest,
    &rv_verb_query,
    &rv_verb_embed,
    &rv_verb_doctor,
    &rv_verb_inspect,
    &rv_verb_gc,
    &rv_verb_store,
    &rv_verb_encryption,
    &rv_verb_keys,
    &rv_verb_fn,
    &rv_verb_version,
    &rv_verb_docs,
    &rv_verb_capability_host,
    &rv_verb_run_host,
    NULL,
};

static const struct {
    const char *title;
    const struct rv_cli_verb *first; /* of its verbs in the list above; static */
} jobs[] = {
    {"Write pipelines", &rv_verb_new},
    {"Run them", &rv_verb_run},
    {"See what happened", &rv_verb_runs},
    {"Agents, memory and knowledge", &rv_verb_agents},
    {"Look after an installation", &rv_verb_doctor},
};
/* clang-format on */

const char *rv_cli_job_of(const struct rv_cli_verb *verb)
{
    for (size_t i = 0; i < RV_COUNT(jobs); i++)
        if (jobs[i].first == verb)
            return jobs[i].title;
    return NULL;
}

const struct rv_cli_verb *rv_cli_find_verb(const char *name, const char *sub)
{
    const struct rv_cli_verb *const *list = rv_cli_verbs;

    for (const char *word = name; list; word = sub, sub = NULL) {
        const struct rv_cli_verb *found = NULL;
        for (size_t i = 0; list[i] && !found; i++)
            if (strcmp(rv_cli_short_name(list[i]), word) == 0)
                found = list[i];
        if (!found || !sub)
            return found;
        list = found->subs;
    }
    return NULL;
}
