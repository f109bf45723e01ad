/* Rows of a store as JSON objects: every column, null where there is nothing. */
#ifndef RV_CLI_ROWS_H
#define RV_CLI_ROWS_H

#include "coreengine/store/store.h"

void rv_cli_session_json(const struct rv_session_row *row, rv_jw *w);
void rv_cli_message_json(const char *session, const struct rv_message *m, rv_jw *w);
void rv_cli_schema_json(const struct rv_schema_row *row, rv_jw *w);
/** What is said of its tokens: those that were told, else an estimate. */
int64_t rv_cli_message_tokens(const struct rv_message *m);
/** The members of its tool call; texts are borrowed from *json, which is the caller's to put. Absent: "". */
struct rv_cli_tool_call {
    const char *name, *id;
    json_object *arguments; /* NULL: none */
};
void rv_cli_tool_call_read(const struct rv_message *m, json_object **json, struct rv_cli_tool_call *out);

#endif
