/* Handlers that the table of routes names beside those of server_internal.h, by their files. */
#ifndef RV_SERVER_HANDLERS_INTERNAL_H
#define RV_SERVER_HANDLERS_INTERNAL_H

#include "coreengine/server/body_internal.h"
#include "coreengine/store/store.h"

/* --- resources.c: rows of the kind that the first segment of the route's path names --- */
RV_MUST_CHECK int srv_rows_list(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_rows_create(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_row_show(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_row_change(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_row_delete(struct srv_call *c, rv_err **err);
/** The kind of a route: "scenarios" of "/scenarios/{id}". RV_E_NOT_FOUND. */
RV_MUST_CHECK int srv_kind_of(const struct srv_call *c, const struct rv_kind **out, rv_err **err);

/* --- sessions.c --- */
/** rv_app_check_session_owner() for who asks. */
RV_MUST_CHECK int srv_session_check_owner(struct srv_call *c, const char *session, rv_err **err);

/* --- find.c: rows found by what a body says --- */
RV_MUST_CHECK int srv_rows_search(struct srv_call *c, rv_err **err);

/* --- collections.c: the sessions of a collection --- */
RV_MUST_CHECK int srv_collection_sessions(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_collection_add(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_collection_add_found(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_collection_remove(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_collection_export(struct srv_call *c, rv_err **err);
/** Put sessions that the caller sees into a collection, those that are in it once. RV_E_NOT_FOUND. */
RV_MUST_CHECK int srv_collection_put(struct srv_call *c, const char *collection, json_object *sessions,
                                     int64_t *n_added, rv_err **err);

/* --- memory.c --- */
RV_MUST_CHECK int srv_feed(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_session_timeline(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_session_moments(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_sessions_search(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_moment_post(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_usage_answers(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_me(struct srv_call *c, rv_err **err);

/* --- queue.c --- */
RV_MUST_CHECK int srv_task_post(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_schedule_post(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_schedule_show(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_schedule_put(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_schedule_change(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_schedule_delete(struct srv_call *c, rv_err **err);

/* --- runs.c, for those who begin runs in other ways --- */
/** The pipeline of that name with the state that the body gives its runs: members pipeline, input, state, session.
 *  RV_E_NOT_FOUND; RV_E_STATE: it has errors, which are in the log. Finish out and put state on success. */
RV_MUST_CHECK int srv_run_load(struct srv_call *c, const char *name, struct rv_app_loaded *out, json_object **state,
                               rv_err **err);
/** The member "mode" of the body; RV_UNSET: none. */
RV_MUST_CHECK int srv_run_mode(struct srv_call *c, int *mode, rv_err **err);

/* --- webhooks.c --- */
#define SRV_MAX_WEBHOOKS 2 /* of one run: its own, and that of the server */
/** Who is told of a run that begins: the member "webhook" of the body, and what the server was started with. They
 * borrow from the body and the options. RV_E_INVALID. */
RV_MUST_CHECK int srv_webhooks_read(struct srv_call *c, struct rv_webhook out[SRV_MAX_WEBHOOKS], size_t *n,
                                    rv_err **err);
/** Can that be the address of a receiver? RV_E_INVALID. */
RV_MUST_CHECK int srv_webhook_check(const char *url, const char *secret, rv_err **err);

/* --- files.c --- */
RV_MUST_CHECK int srv_files_post(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_file_delete(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_ontology_tree(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_ontology_content(struct srv_call *c, rv_err **err);

/* --- embed.c --- */
RV_MUST_CHECK int srv_embeddings(struct srv_call *c, rv_err **err);

/* --- schemas.c --- */
RV_MUST_CHECK int srv_schema_post(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_schema_show(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_schema_delete(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_agents_search(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_agent_version(struct srv_call *c, rv_err **err);
/* --- runs.c --- */
RV_MUST_CHECK int srv_runs_post(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_runs_list(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_run_show(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_run_events(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_run_cancel(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_run_answer(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_run_fork(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_interrupts(struct srv_call *c, rv_err **err);
void srv_run_begin(struct srv_call *c);

/* --- look.c: pipelines and runs as pages show them --- */
RV_MUST_CHECK int srv_pipelines_list(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_pipeline_show(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_run_graph(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_run_timeline(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_run_journal(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_run_replay(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_run_diff(struct srv_call *c, rv_err **err);

/* --- rows.c --- */
/** The row of a kind as the answer, and deleting it. RV_E_NOT_FOUND. */
RV_MUST_CHECK int srv_row_write(struct srv_call *c, const char *kind, const char *id, rv_err **err);
RV_MUST_CHECK int srv_row_drop(struct srv_call *c, const char *kind, const char *id, rv_err **err);
RV_MUST_CHECK int srv_tasks_list(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_task_show(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_task_cancel(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_task_retry(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_schedules_list(struct srv_call *c, rv_err **err);

/* --- agents.c --- */
RV_MUST_CHECK int srv_tools(struct srv_call *c, rv_err **err); /* tools that documents may name */

/* --- watch.c, for the worker in this process --- */
/** What events of a run without a trace belong to: a traceparent. */
void srv_watch_begin(void *w, const void *key, const char *trace, bool is_trusted);

/* --- views.c, mcp.c: lists for clients of REMLight --- */
/** Of a route with an id that one. */
RV_MUST_CHECK int srv_models_used(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_tool_servers(struct srv_call *c, rv_err **err);
RV_MUST_CHECK int srv_mcp_tools(struct srv_call *c, rv_err **err);

#endif
