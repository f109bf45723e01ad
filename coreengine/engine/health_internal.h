/* The health of tools: how the calls of each have ended, and whether its breaker is open. Everything here
 * belongs to the loop thread. */
#ifndef RV_ENGINE_HEALTH_H
#define RV_ENGINE_HEALTH_H

#include "coreengine/base/base.h"
#include "coreengine/engine/engine.h"

struct call;

#define RV_ENGINE_MAX_TOOLS 10000 /* records of an engine, in memory: the half not used for longest goes */

/* --- tool_records.c --- */

/* A tool as one source answers it: the same name of another source is another tool. */
struct tool_record {
    char key[RV_HASH_MAX]; /* of the source, its credentials, the tenant and the name */
    char *name;            /* as runs call it; owned */
    uint64_t used;         /* number of its last use */
    struct rv_tool_health health;
};
/* Zeroed: empty. */
struct tool_records {
    struct tool_record **items; /* owned */
    size_t n, cap;
    rv_index index;
    uint64_t n_uses;
};
/** The record with that key, made if it is not there. NULL: no memory. */
struct tool_record *engine_tool_records_take(struct tool_records *r, const char *key, const char *name);
/** NULL: there is none. */
const struct tool_record *engine_tool_records_find(const struct tool_records *r, const char *key);
void engine_tool_records_fini(struct tool_records *r);

/* --- health.c --- */

/** Name the record of the tool that c calls of that source; NULL: of none. Calls of the engine's own tools are not
 * counted. */
void engine_health_bind(struct call *c, const struct rv_tool_source *s);
void engine_health_unbind(struct call *c); /* the call is not counted */
bool engine_health_blocks(const struct call *c);
void engine_health_note(struct call *c); /* how the call ended */
/** The names of the run's tools whose breaker is open; *out is the caller's, NULL: none. */
RV_MUST_CHECK int engine_health_blocked(const rv_exec *x, json_object **out, rv_err **err);

#endif
