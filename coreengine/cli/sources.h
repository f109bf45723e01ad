/* Where verbs find agents: the store, a capability that brings some, a folder of documents. */
#ifndef RV_CLI_SOURCES_H
#define RV_CLI_SOURCES_H

#include "coreengine/cli/cli.h"

#define RV_CLI_SCHEMA_DIR_OPTION                                                                                       \
    {                                                                                                                  \
        "schema-dir", 0, "DIR", "folder of agent documents (default P8_SCHEMA_DIR; \"\": none)", "DIR", false          \
    }
/* Of a verb that looks for agents. */
#define RV_CLI_SOURCES_OPTIONS                                                                                         \
    RV_CLI_SCHEMA_DIR_OPTION,                                                                                          \
        {"capability", 0,                                                                                              \
         "NAME",       "capability that provides built-in agents (default p8, if it is found; \"\": none)",            \
         NULL,         false},                                                                                         \
        {"no-store", 0, NULL, "do not search the store", NULL, false}, RV_CLI_STORE_OPTION, RV_CLI_USER_OPTION,        \
        RV_CLI_TENANT_OPTION

/* Of a verb that loads pipelines, but keeps no runs. */
#define RV_CLI_AGENT_OPTIONS                                                                                           \
    RV_CLI_SCHEMA_DIR_OPTION, {"store", 0, "URL", "also search this store for declared agents", "FILE", false},        \
        RV_CLI_USER_OPTION, RV_CLI_TENANT_OPTION

/** "in the store, ID", "built in, by NAME", "in the file PATH". */
void rv_cli_write_source(const struct rv_agents_found *found, rv_buf *b);
/** That a file's agent is hidden by the one that was found; appended. */
void rv_cli_write_hidden(const char *name, const struct rv_agents_found *found, const char *hidden, rv_buf *b);
/** The same on standard error, if it hides one. */
void rv_cli_warn_hidden(const rv_agents *agents, const char *name, const struct rv_agents_found *found);

#endif
