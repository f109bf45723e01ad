/* The verbs, one object each; the list is in verbs.c. */
#ifndef RV_CLI_VERBS_VERBS_INTERNAL_H
#define RV_CLI_VERBS_VERBS_INTERNAL_H

#include "coreengine/cli/cli.h"

extern const struct rv_cli_verb rv_verb_chat, rv_verb_run, rv_verb_resume, rv_verb_lint, rv_verb_fmt, rv_verb_test,
    rv_verb_sim, rv_verb_graph, rv_verb_explain, rv_verb_schema, rv_verb_inspect, rv_verb_fn, rv_verb_embed,
    rv_verb_new, rv_verb_doctor, rv_verb_version, rv_verb_docs, rv_verb_runs, rv_verb_replay, rv_verb_diff, rv_verb_gc,
    rv_verb_sessions, rv_verb_moments, rv_verb_agents, rv_verb_query, rv_verb_capability_host, rv_verb_run_host,
    rv_verb_tasks, rv_verb_submit, rv_verb_worker, rv_verb_schedules, rv_verb_interrupts, rv_verb_artifacts,
    rv_verb_top, rv_verb_usage, rv_verb_store, rv_verb_encryption, rv_verb_entities, rv_verb_ingest, rv_verb_dream,
    rv_verb_keys, rv_verb_serve, rv_verb_mcp, rv_verb_mcp_serve;
extern const struct rv_cli_verb rv_verb_runs_show, rv_verb_runs_events, rv_verb_runs_diff, rv_verb_runs_cancel,
    rv_verb_runs_recover;
extern const struct rv_cli_verb rv_verb_sessions_show, rv_verb_sessions_messages, rv_verb_sessions_export,
    rv_verb_sessions_timeline, rv_verb_sessions_clone, rv_verb_sessions_search;
extern const struct rv_cli_verb rv_verb_agents_put, rv_verb_agents_validate, rv_verb_agents_delete;
extern const struct rv_cli_verb rv_verb_tasks_show, rv_verb_tasks_add;
extern const struct rv_cli_verb rv_verb_schedules_show, rv_verb_schedules_next;

/* schedules_show.c */
struct rv_schedule_row;
/** As rv_store_get_schedule(), with a hint where to look when there is none. */
RV_MUST_CHECK int rv_cli_find_schedule(struct rv_cli *cli, const char *word, struct rv_schedule_row *out, rv_err **err);

/* check.c */
struct rv_app_proved;
/** The bounds of a pipeline for people, and what a run can cost at most. */
void rv_cli_write_proof(const struct rv_pipeline *p, const struct rv_app_proved *proved, rv_buf *b);

/* dry.c */
/** `reeve run --dry-run` of a pipeline that was checked. */
RV_MUST_CHECK int rv_cli_dry_run(struct rv_cli *cli, struct rv_app_loaded *loaded, rv_err **err);

/* run.c */
/** No store could be used: say how to do without, unless a link of the error says what to do. */
void rv_cli_hint_store(rv_err **err);

/* batch.c */
/** `reeve run --batch` of a pipeline that was checked. */
RV_MUST_CHECK int rv_cli_batch(struct rv_cli *cli, struct rv_app_loaded *loaded, rv_err **err);

/* mcp_serve.c */
#define RV_CLI_MAX_TOOLS 256 /* of one option */
/** Is each of them CAPABILITY:TOOL? RV_E_INVALID names the option. */
RV_MUST_CHECK int rv_cli_check_tools(const char *option, const char *const *tools, size_t n, rv_err **err);

#endif
