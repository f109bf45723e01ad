/* The suites of this program, and the set of capabilities that their tests start from. */
#ifndef RV_TEST_PLUGIN_SUITES_H
#define RV_TEST_PLUGIN_SUITES_H

#include <check.h>

#include "coreengine/tools/plugin/plugin.h"

Suite *path_suite(void);
Suite *load_suite(void);
Suite *call_suite(void);
Suite *catalog_suite(void);
Suite *hello_suite(void);
Suite *isolated_suite(void);
Suite *hostile_child_suite(void);
Suite *probe_suite(void);
Suite *provider_suite(void);
Suite *provider_reply_suite(void);
Suite *echo_suite(void);
Suite *agents_suite(void);
Suite *attachments_suite(void);
Suite *ask_suite(void);
Suite *pool_suite(void);

#define TEST_MEMORY_MB 256 /* of each process of an isolated capability */

/* A row of what load_named() says to each faulty plugin, in whichever process it is loaded. */
struct load_fault {
    const char *name;
    int rc;
    const char *says;
};
extern const struct load_fault load_faults[];
extern const size_t n_load_faults;

/** A set that looks in the folders of the hostile and of the project's own plugins. */
rv_plugins *new_set(rv_log *log);
/** Load by name; config is JSON text or NULL. */
int load_named(rv_plugins *p, const char *name, const char *config, rv_err **err);
/** The same, and it has to work. */
void must_load(rv_plugins *p, const char *name);
/** The same with `isolation: process`. */
int load_isolated(rv_plugins *p, const char *name, const char *config, rv_err **err);
void must_isolate(rv_plugins *p, const char *name);
/** Call with args (JSON text); the reply is appended to out. */
int call_entry(rv_plugins *p, enum rv_name_kind kind, const char *name, const char *args, rv_buf *out, rv_err **err);
/** The error's whole text, as people see it; from one static buffer. */
const char *error_text(const rv_err *err);

#endif
