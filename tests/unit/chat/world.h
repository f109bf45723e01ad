/* A chat with a scripted model, capability p8, and a store that is looked into. */
#ifndef WORLD_H
#define WORLD_H

#include <check.h>

#include "coreengine/app/app.h"
#include "tests/kit/kit.h"

struct world {
    rv_store *store;
    rv_plugins *plugins;
    rv_agents *agents;
    rv_script *script;
    rv_engine *engine;
    rv_chat *chat;
    char *dir;                            /* of agent files */
    rv_buf events, deltas, calls, pieces; /* pieces: as the model gave them */
    struct rv_chat_opts opts;             /* as the last chat was made */
};
/** files: name, text, name, text, ..., NULL; agents beside the built-in ones. script: YAML. */
void world_init(struct world *w, const char *script, const char *const *files);
/** The same with a store at that place, and a log (borrowed; may be NULL). */
void world_init_at(struct world *w, const char *place, rv_log *log, const char *script, const char *const *files);
void world_fini(struct world *w);
void world_chat(struct world *w, const char *agent, const char *session, const char *user);
/** The chat anew, watched by the callbacks of `watcher` (and its self) instead of the world. */
void world_watch(struct world *w, const struct rv_chat_opts *watcher);
struct rv_chat_turn world_say(struct world *w, const char *message);
/** "type[agent] content|tool_calls" of each row, a line each; free() it. */
char *world_rows(struct world *w, bool with_children);
/** The lines of events of that type; free() it. */
char *world_events(const struct world *w, const char *type);

Suite *turns_suite(void);
Suite *delegation_suite(void);
Suite *chain_suite(void);
Suite *flood_suite(void);
Suite *store_faults_suite(void);
Suite *damage_suite(void);
Suite *history_suite(void);
Suite *who_suite(void);
Suite *alone_suite(void);
Suite *shown_suite(void);
Suite *loop_suite(void);

#endif
