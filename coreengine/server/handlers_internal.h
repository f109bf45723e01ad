/* Handlers that the table of routes names beside those of server_internal.h, by their files. */
#ifndef RV_SERVER_HANDLERS_INTERNAL_H
#define RV_SERVER_HANDLERS_INTERNAL_H

#include "coreengine/server/server_internal.h"

/* --- resources.c: rows of the kind that the first segment of the route's path names --- */
int srv_rows_list(struct srv_call *c, rv_err **err);
int srv_rows_create(struct srv_call *c, rv_err **err);
int srv_row_show(struct srv_call *c, rv_err **err);
int srv_row_change(struct srv_call *c, rv_err **err);
int srv_row_delete(struct srv_call *c, rv_err **err);
/** The kind of a route: "scenarios" of "/scenarios/{id}". RV_E_NOT_FOUND. */
RV_MUST_CHECK int srv_kind_of(const struct srv_call *c, const struct rv_kind **out, rv_err **err);

/* --- find.c: rows found by what a body says --- */
int srv_rows_search(struct srv_call *c, rv_err **err);

/* --- collections.c: the sessions of a collection --- */
int srv_collection_sessions(struct srv_call *c, rv_err **err);
int srv_collection_add(struct srv_call *c, rv_err **err);
int srv_collection_add_found(struct srv_call *c, rv_err **err);
int srv_collection_remove(struct srv_call *c, rv_err **err);
int srv_collection_export(struct srv_call *c, rv_err **err);
/** Put sessions that the caller sees into a collection, those that are in it once. RV_E_NOT_FOUND. */
RV_MUST_CHECK int srv_collection_put(struct srv_call *c, const char *collection, json_object *sessions,
                                     int64_t *n_added, rv_err **err);

/* --- runs.c --- */
int srv_pipelines_list(struct srv_call *c, rv_err **err);
int srv_runs_post(struct srv_call *c, rv_err **err);
int srv_runs_list(struct srv_call *c, rv_err **err);
int srv_run_show(struct srv_call *c, rv_err **err);
int srv_run_events(struct srv_call *c, rv_err **err);
int srv_run_cancel(struct srv_call *c, rv_err **err);
int srv_run_answer(struct srv_call *c, rv_err **err);
int srv_run_fork(struct srv_call *c, rv_err **err);
int srv_interrupts(struct srv_call *c, rv_err **err);
void srv_run_begin(struct srv_call *c);

/* --- look.c: pipelines and runs as pages show them --- */
int srv_pipeline_show(struct srv_call *c, rv_err **err);
int srv_run_graph(struct srv_call *c, rv_err **err);
int srv_run_timeline(struct srv_call *c, rv_err **err);
int srv_run_journal(struct srv_call *c, rv_err **err);
int srv_run_replay(struct srv_call *c, rv_err **err);
int srv_run_diff(struct srv_call *c, rv_err **err);

/* --- rows.c --- */
int srv_tasks_list(struct srv_call *c, rv_err **err);
int srv_task_show(struct srv_call *c, rv_err **err);
int srv_task_cancel(struct srv_call *c, rv_err **err);
int srv_task_retry(struct srv_call *c, rv_err **err);
int srv_schedules_list(struct srv_call *c, rv_err **err);

/* --- agents.c --- */
int srv_tools(struct srv_call *c, rv_err **err); /* tools that documents may name */

#endif
