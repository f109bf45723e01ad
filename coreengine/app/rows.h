/* Rows of a store as JSON objects (every column, null where there is nothing), and what else programs list: agents,
 * providers of models. */
#ifndef RV_APP_ROWS_H
#define RV_APP_ROWS_H

#include "coreengine/app/agents/agents.h"
#include "coreengine/model/provider/provider.h"

/** A time as RFC 3339. put: null for 0 and below. */
void rv_app_put_time(rv_jw *w, const char *key, int64_t us);
void rv_app_build_time(struct rv_json_build *b, json_object *to, const char *key, int64_t us);

void rv_app_session_json(const struct rv_session_row *row, rv_jw *w);
void rv_app_message_json(const char *session, const struct rv_message *m, rv_jw *w);
void rv_app_task_json(const struct rv_task_row *row, rv_jw *w);
/** As that, with the task's events as the member `events`. RV_E_NOT_FOUND: it is gone. */
RV_MUST_CHECK int rv_app_task_json_whole(rv_store *store, const struct rv_store_scope *scope,
                                         const struct rv_task_row *row, rv_jw *w, rv_err **err);
void rv_app_interrupt_json(const struct rv_interrupt_row *row, rv_jw *w);
void rv_app_interrupt_count_json(const struct rv_interrupt_count *count, rv_jw *w);
void rv_app_lane_json(const struct rv_task_lane *lane, rv_jw *w);
/** The task of that id, or the only one whose id begins so. RV_E_NOT_FOUND; RV_E_INVALID: several do. out owns its
 *  texts. */
RV_MUST_CHECK int rv_app_find_task(rv_store *store, const struct rv_store_scope *scope, const char *word,
                                   struct rv_task_row *out, rv_err **err);
/** The members of its tool call; texts are borrowed from *json, which is the caller's to put. Absent: "". */
struct rv_app_tool_call {
    const char *name, *id;
    json_object *arguments; /* NULL: none */
};
void rv_app_tool_call_read(const struct rv_message *m, json_object **json, struct rv_app_tool_call *out);

const char *rv_app_agent_mode(const struct rv_agentdoc *doc); /* "structured", "conversational" */
/** An agent as rv_agents_list() gives it. hidden: see rv_agents_hidden(); NULL: none. */
void rv_app_agent_json(const char *name, const struct rv_agents_found *found, const char *hidden, const rv_err *fault,
                       rv_jw *w);
/** Every provider of models, built in or of these capabilities, as an array; the caller puts it. */
RV_MUST_CHECK int rv_app_providers(rv_plugins *plugins, json_object **out, rv_err **err);
/** The capabilities as rv_plugins_write_json() writes them. */
RV_MUST_CHECK int rv_app_capabilities(rv_plugins *plugins, json_object **out, rv_err **err);

#endif
