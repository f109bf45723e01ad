/* The list of verbs, in the order of help. */
#include "coreengine/cli/verbs/verbs.h"

const struct rv_cli_verb *const rv_cli_verbs[] = {
    &rv_verb_run,      &rv_verb_chat,
    &rv_verb_resume,   &rv_verb_runs,
    &rv_verb_replay,   &rv_verb_diff,
    &rv_verb_gc,       &rv_verb_sessions,
    &rv_verb_agents,   &rv_verb_query,
    &rv_verb_lint,     &rv_verb_test,
    &rv_verb_sim,      &rv_verb_graph,
    &rv_verb_explain,  &rv_verb_schema,
    &rv_verb_inspect,  &rv_verb_embed,
    &rv_verb_fn,       &rv_verb_new,
    &rv_verb_doctor,   &rv_verb_version,
    &rv_verb_docs,     &rv_verb_capability_host,
    &rv_verb_run_host, NULL,
};
