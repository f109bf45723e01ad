/* What a store has, for programs and people: rows as JSON objects (every column, null where there is nothing),
 * artifacts of runs, agents and providers of models; amounts and texts as people read them. */
#ifndef RV_APP_ROWS_H
#define RV_APP_ROWS_H

#include "coreengine/app/agents/agents.h"
#include "coreengine/base/base.h"
#include "coreengine/model/provider/provider.h"
#include "coreengine/store/store.h"

/* --- Rows, agents, providers --- */
/** A time as RFC 3339. put: null for 0 and below. */
void rv_app_put_time(rv_jw *w, const char *key, int64_t us);
void rv_app_build_time(struct rv_json_build *b, json_object *to, const char *key, int64_t us);

void rv_app_session_write(const struct rv_session_row *row, rv_jw *w);
void rv_app_message_write(const char *session, const struct rv_message *m, rv_jw *w);
/** An array of those of a session that the filter takes. */
RV_MUST_CHECK int rv_app_messages_write(rv_store *store, const struct rv_store_scope *scope, const char *session,
                                        const struct rv_message_filter *filter, rv_jw *w, rv_err **err);
void rv_app_task_write(const struct rv_task_row *row, rv_jw *w);
/** As that, with the task's events as the member `events`. RV_E_NOT_FOUND: it is gone. */
RV_MUST_CHECK int rv_app_task_write_whole(rv_store *store, const struct rv_store_scope *scope,
                                          const struct rv_task_row *row, rv_jw *w, rv_err **err);
void rv_app_interrupt_write(const struct rv_interrupt_row *row, rv_jw *w);
void rv_app_interrupt_count_write(const struct rv_interrupt_count *count, rv_jw *w);
void rv_app_lane_write(const struct rv_task_lane *lane, rv_jw *w);
/** The task of that id, or the only one whose id begins so. RV_E_NOT_FOUND; RV_E_INVALID: several do. out owns its
 *  texts. */
RV_MUST_CHECK int rv_app_find_task(rv_store *store, const struct rv_store_scope *scope, const char *word,
                                   struct rv_task_row *out, rv_err **err);
/** The members of its tool call; texts are borrowed from *json, which is the caller's to put. Absent: "". One that a
 * client is shown as ciphertext is called "(encrypted)". */
struct rv_app_tool_call {
    const char *name, *id;
    json_object *arguments; /* NULL: none */
};
void rv_app_tool_call_read(const struct rv_message *m, json_object **json, struct rv_app_tool_call *out);

const char *rv_app_agent_mode(const struct rv_agentdoc *doc); /* "structured", "conversational" */
/** An agent as rv_agents_list() gives it. hidden: see rv_agents_hidden(); NULL: none. */
void rv_app_agent_write(const char *name, const struct rv_agents_found *found, const char *hidden, const rv_err *fault,
                        rv_jw *w);
/** Every provider of models, built in or of these capabilities, as an array; the caller puts it. */
RV_MUST_CHECK int rv_app_build_providers(rv_plugins *plugins, json_object **out, rv_err **err);
/** The capabilities as rv_plugins_write_json() writes them. */
RV_MUST_CHECK int rv_app_build_capabilities(rv_plugins *plugins, json_object **out, rv_err **err);

/* --- Artifacts of runs: what planned calls made for people, read from the journals that keep them. --- */
/* One artifact; everything is borrowed for the call that gets it. */
struct rv_app_artifact {
    const char *run, *session, *user;
    json_object *about; /* what its record says: {id, title, type, stage, visit, step_id, bytes, sha256, metadata} */
    rv_str content;     /* {parts, mcp_schema?, rendering_hints?} as JSON text */
};
/* What it points to is borrowed for the call. */
struct rv_app_artifacts_filter {
    const char *run, *session; /* NULL: any; run is a whole id */
    const char *id;            /* of the artifact; NULL: any */
    int64_t max_runs;          /* no more than so many of those that have artifacts; 0: all */
};
typedef int (*rv_app_on_artifact)(void *self, const struct rv_app_artifact *artifact, rv_err **err);
/** Those of the newest run first, and of each run in the order in which they were made. each returns 0, a code of
 *  failure, or 1: that is enough. It must not use the store. */
RV_MUST_CHECK int rv_app_list_artifacts(rv_store *store, const struct rv_store_scope *scope,
                                        const struct rv_app_artifacts_filter *filter, rv_app_on_artifact each,
                                        void *self, rv_err **err);

/** One of a list: {id, title, type, run, session_id, user_id, stage, visit, step_id, bytes, sha256, created_at}. */
void rv_app_artifact_write(const struct rv_app_artifact *artifact, rv_jw *w);
/** The same with parts and the whole metadata. */
RV_MUST_CHECK int rv_app_artifact_write_whole(const struct rv_app_artifact *artifact, rv_jw *w, rv_err **err);

/** The content, parsed: an object that the caller puts. RV_E_INVALID: the record is damaged. */
RV_MUST_CHECK int rv_app_artifact_parse_content(const struct rv_app_artifact *artifact, json_object **out,
                                                rv_err **err);
/* A part as a file has it. */
struct rv_app_artifact_file {
    rv_buf bytes;
    const char *extension; /* "txt", "json", "" when the name has one; static */
    const char *name;      /* borrowed from the part; NULL: it has none */
};
/** @param out bytes has a limit when it comes; a link has none and is RV_E_STATE: nothing is fetched */
RV_MUST_CHECK int rv_app_artifact_read_part(json_object *part, struct rv_app_artifact_file *out, rv_err **err);
/** A name for a file: letters, digits, ".", "_" and "-" only, not empty, no leading dot, at most 64 bytes. */
void rv_app_artifact_write_name(const char *text, rv_buf *out);

/* --- Amounts and texts as people read them --- */
#define RV_APP_MAX_MONEY 32 /* bytes of an amount as text, with its NUL */
/** "$0.0123": no digit of a micro-dollar is lost, cents are always there. In out, or static. */
const char *rv_app_format_money(int64_t micro_usd, char out[RV_APP_MAX_MONEY]);
void rv_app_write_count(rv_buf *b, int64_t n); /* "16,384" */

/* Texts in YAML: as they are where YAML can have them so, else quoted. */
/** The value of a key at that depth (two blanks each), with its line end. Several lines become a block. Reading it
 *  gives the text again, byte for byte. */
void rv_app_write_yaml(rv_str text, int depth, rv_buf *b);
/** The same for any JSON value, on one line. */
void rv_app_yaml_write(json_object *value, rv_buf *b);
/** The status of a visit, from its event stage_completed; "asked" where it is "skipped" because a person has to answer
 * before it goes on. Borrowed. */
const char *rv_app_visit_status(json_object *end);

#endif
