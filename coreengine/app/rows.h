/* Rows of a store as JSON objects: every column, null where there is nothing. */
#ifndef RV_APP_ROWS_H
#define RV_APP_ROWS_H

#include "coreengine/store/store.h"

void rv_app_session_json(const struct rv_session_row *row, rv_jw *w);
void rv_app_message_json(const char *session, const struct rv_message *m, rv_jw *w);
void rv_app_schema_json(const struct rv_schema_row *row, rv_jw *w);
/** The members of its tool call; texts are borrowed from *json, which is the caller's to put. Absent: "". */
struct rv_app_tool_call {
    const char *name, *id;
    json_object *arguments; /* NULL: none */
};
void rv_app_tool_call_read(const struct rv_message *m, json_object **json, struct rv_app_tool_call *out);

#endif
