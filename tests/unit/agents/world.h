/* A store, a capability with agents, a folder of documents and a clock that stands still. */
#ifndef RV_TEST_AGENTS_WORLD_H
#define RV_TEST_AGENTS_WORLD_H

#include <check.h>

#include "coreengine/app/agents/agents.h"
#include "tests/kit/kit.h"

TCase *order_case(void);
TCase *files_case(void);
TCase *cache_case(void);
TCase *list_case(void);
TCase *put_case(void);

#define N_STORES 2 /* in memory, and a file of SQLite */
extern const struct rv_store_scope ann, bob, nobody;

struct world {
    char *dir;    /* a temporary folder */
    char *folder; /* of documents, in it; not made until a file is written */
    char *url;    /* of the store */
    rv_store *store;
    rv_plugins *plugins;
    rv_agents *agents;
    struct rv_kit_clock time;
    struct rv_kit_log log;
    rv_err *err;                  /* of the last call */
    struct rv_agents_found found; /* by the last call */
};
enum world_parts { NO_STORE = 1, NO_PLUGINS = 2, NO_FOLDER = 4, NOT_REGISTERING = 8 };
/** store: 0 memory, 1 SQLite. The capability is `agents` of tests/plugins: plain-agent and as_json. */
void world_begin(struct world *w, int store, int without);
void world_end(struct world *w);
/** Write or delete a document of the folder. A new text is seen whatever the clock of the file system says. */
void world_file(struct world *w, const char *name, const char *text);
void world_no_file(struct world *w, const char *name);
void world_put(struct world *w, const struct rv_store_scope *scope, bool own, const char *text);
int world_find(struct world *w, const struct rv_store_scope *scope, const char *name);
/** It has to be there, from that source and with that prompt. */
void must_find(struct world *w, const struct rv_store_scope *scope, const char *name, const char *source,
               const char *prompt);
const char *error_of(const struct world *w); /* all of it as people see it; from a static buffer */
/** How often somebody wrote to the schemas of the store. */
int64_t version_of(const struct world *w);

#define DOC(name, prompt) "type: object\nname: " name "\ndescription: " prompt "\n"

#endif
