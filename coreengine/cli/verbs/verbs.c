/* The list of verbs, in the order of help, by what they are for. Apart from the options, so that verbs and options do
 * not refer to each other. */
#include "coreengine/cli/verbs/verbs_internal.h"

#include <string.h>

/* clang-format off */ /* one a line */
const struct rv_cli_verb *const cli_verbs[] = {
    &verb_new,
    &verb_lint,
    &verb_fmt,
    &verb_explain,
    &verb_graph,
    &verb_schema,
    &verb_test,
    &verb_sim,
    &verb_run,
    &verb_chat,
    &verb_resume,
    &verb_interrupts,
    &verb_artifacts,
    &verb_submit,
    &verb_schedules,
    &verb_worker,
    &verb_tasks,
    &verb_serve,
    &verb_mcp,
    &verb_runs,
    &verb_top,
    &verb_replay,
    &verb_diff,
    &verb_usage,
    &verb_agents,
    &verb_sessions,
    &verb_moments,
    &verb_dream,
    &verb_entities,
    &verb_ingest,
    &verb_query,
    &verb_embed,
    &verb_doctor,
    &verb_inspect,
    &verb_gc,
    &verb_store,
    &verb_encryption,
    &verb_keys,
    &verb_fn,
    &verb_version,
    &verb_docs,
    &verb_capability_host,
    &verb_run_host,
    NULL,
};

static const struct {
    const char *title;
    const struct rv_cli_verb *first; /* of its verbs in the list above; static */
} jobs[] = {
    {"Write pipelines", &verb_new},
    {"Run them", &verb_run},
    {"See what happened", &verb_runs},
    {"Agents, memory and knowledge", &verb_agents},
    {"Look after an installation", &verb_doctor},
};
/* clang-format on */

const char *cli_job_of(const struct rv_cli_verb *verb)
{
    for (size_t i = 0; i < RV_COUNT(jobs); i++)
        if (jobs[i].first == verb)
            return jobs[i].title;
    return NULL;
}

const struct rv_cli_verb *cli_find_verb(const char *name, const char *sub)
{
    const struct rv_cli_verb *const *list = cli_verbs;

    for (const char *word = name; list; word = sub, sub = NULL) {
        const struct rv_cli_verb *found = NULL;
        for (size_t i = 0; list[i] && !found; i++)
            if (strcmp(cli_short_name(list[i]), word) == 0)
                found = list[i];
        if (!found || !sub)
            return found;
        list = found->subs;
    }
    return NULL;
}
