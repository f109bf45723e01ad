/* The verbs, one object each; the list is in verbs.c. */
#ifndef RV_CLI_VERBS_VERBS_INTERNAL_H
#define RV_CLI_VERBS_VERBS_INTERNAL_H

#include "coreengine/cli/cli.h"

extern const struct rv_cli_verb verb_chat, verb_run, verb_resume, verb_lint, verb_fmt, verb_test, verb_sim, verb_graph,
    verb_explain, verb_schema, verb_inspect, verb_fn, verb_embed, verb_new, verb_doctor, verb_version, verb_docs,
    verb_runs, verb_replay, verb_diff, verb_gc, verb_sessions, verb_moments, verb_agents, verb_query,
    verb_capability_host, verb_run_host, verb_tasks, verb_submit, verb_worker, verb_schedules, verb_interrupts,
    verb_artifacts, verb_top, verb_usage, verb_store, verb_encryption, verb_entities, verb_ingest, verb_dream,
    verb_keys, verb_serve, verb_mcp, verb_mcp_serve;
extern const struct rv_cli_verb verb_runs_show, verb_runs_events, verb_runs_diff, verb_runs_cancel, verb_runs_recover;
extern const struct rv_cli_verb verb_sessions_show, verb_sessions_messages, verb_sessions_export,
    verb_sessions_timeline, verb_sessions_clone, verb_sessions_search;
extern const struct rv_cli_verb verb_agents_put, verb_agents_validate, verb_agents_delete;
extern const struct rv_cli_verb verb_tasks_show, verb_tasks_add;
extern const struct rv_cli_verb verb_schedules_show, verb_schedules_next;

/* schedules_show.c */
struct rv_schedule_row;
/** As rv_store_get_schedule(), with a hint where to look when there is none. */
RV_MUST_CHECK int cli_find_schedule(struct rv_cli *cli, const char *word, struct rv_schedule_row *out, rv_err **err);

/* tasks.c */
/** `--older-than AGE`: the time that is so long ago, 1970 if it is longer ago than that. Without it: a mistake of use.
 */
RV_MUST_CHECK int cli_read_age(const struct rv_cli *cli, int64_t *out_us, rv_err **err);

/* sessions_show.c */
struct rv_session_row;
/** The session of the first word: an id, or "last", the session that was used last, unless a session has that id. */
RV_MUST_CHECK int cli_find_session(const struct rv_cli *cli, struct rv_session_row *out, rv_err **err);

/* check.c */
struct rv_app_proved;
/** The bounds of a pipeline for people, and what a run can cost at most. */
void cli_write_proof(const struct rv_pipeline *p, const struct rv_app_proved *proved, rv_buf *b);

/* dry.c */
/** `reeve run --dry-run` of a pipeline that was checked. */
RV_MUST_CHECK int cli_dry_run(struct rv_cli *cli, struct rv_app_loaded *loaded, rv_err **err);

/* run.c */
/** No store could be used: say how to do without, unless a link of the error says what to do. */
void cli_hint_store(rv_err **err);

/* batch.c */
/** `reeve run --batch` of a pipeline that was checked. */
RV_MUST_CHECK int cli_batch(struct rv_cli *cli, struct rv_app_loaded *loaded, rv_err **err);

/* mcp_serve.c */
#define RV_CLI_MAX_TOOLS RV_CLI_MAX_ARGS /* of one option */
/** Is each of them CAPABILITY:TOOL? RV_E_INVALID names the option. */
RV_MUST_CHECK int cli_check_tools(const char *option, const char *const *tools, size_t n, rv_err **err);

#endif
