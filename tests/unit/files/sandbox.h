/* A folder of its own for each test, and the capability `files` opened on it. */
#ifndef RV_TEST_FILES_SANDBOX_H
#define RV_TEST_FILES_SANDBOX_H

#include <check.h>

#include "coreengine/tools/plugin/plugin.h"

TCase *parts_case(void);
TCase *confinement_case(void);
TCase *tools_case(void);
TCase *search_case(void);
TCase *hooks_case(void);
TCase *ask_docs_case(void);

struct sandbox {
    char dir[128];
    rv_plugins *plugins;
    rv_buf reply;      /* of the last call */
    json_object *json; /* the same, parsed */
    rv_err *err;       /* of the last call */
};
/** Make the folder with a few files in it; config is JSON text or NULL for the defaults. */
void sandbox_begin(struct sandbox *s, const char *config);
void sandbox_end(struct sandbox *s);
/** Write a file below the folder; folders must exist. */
void sandbox_file(const struct sandbox *s, const char *name, const char *text);
/** Call a tool (or a hook: a name with a dot). The code of the call. */
int sandbox_call(struct sandbox *s, const char *name, const char *args);
/** Calls that have to work. */
json_object *sandbox_ask(struct sandbox *s, const char *name, const char *args);
/** The value at a path such as "hits.0.line"; NULL when absent. */
json_object *at(json_object *value, const char *path);
const char *text_at(json_object *value, const char *path);
int64_t int_at(json_object *value, const char *path);

#endif
