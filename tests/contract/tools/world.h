/* What the tests of the contract of tool sources share. Each test is run once for each row of source_impls[]; a new
 * implementation is a new row. Nothing here looks behind source.h. */
#ifndef RV_TESTS_TOOLS_WORLD_H
#define RV_TESTS_TOOLS_WORLD_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine_internal.h"
#include "coreengine/tools/mcp/mcp.h"
#include "tests/kit/kit.h"

/* A source whose calls end later, on the loop, and whose catalog changes: what a protocol over a network will be. */
struct later {
    struct rv_tool_source source;
    struct rv_tool_call *queue[64];
    size_t n;
    bool offers_fades; /* the tool "fades" */
};
struct rv_tool_source *later_init(struct later *l);
void later_turn(struct later *l); /* the call that has waited for longest ends */

struct world;
struct source_impl {
    const char *name;
    void (*open)(struct world *w);
    const char *good, *good_args;       /* answers with an object that has "ok" or "agent" in it, or in its "data" */
    const char *failing, *failing_args; /* fails as that: */
    const char *error_type;
    const char *slow;  /* does not end before it is cancelled; NULL: each call ends at once */
    bool by_name_only; /* its tools are not among its names */
};
extern const struct source_impl source_impls[];
extern const int n_source_impls;

struct world {
    const struct source_impl *impl;
    struct rv_tool_source *s;
    rv_engine *engine; /* whose workers the capabilities use; in simulated time, so that nothing sleeps */
    rv_plugins *plugins;
    rv_script *script;
    struct run_tools tools;
    struct later later;
    /* peers.c */
    rv_mcp_tools *mcp;
    struct rv_tool_source of_servers;
    struct rv_pipeline *pipeline;
    rv_findings *findings;
    char *dir;
    struct rv_httpd *httpd;
    struct rv_httpd_exchange *unanswered[64];
    size_t n_unanswered;
};
void peers_open_mcp(struct world *w);
void peers_open_rest(struct world *w);
void peers_turn(struct world *w); /* until something happened */
void peers_close(struct world *w);
void world_open(struct world *w, int i);
void world_turn(struct world *w); /* lets a call that can end do so; waits for a worker */
void world_close(struct world *w);

/* A call and what came of it. */
struct seen {
    struct rv_tool_call call;
    int n_done;
    bool failed;
    char error_type[64];
    char text[4096]; /* its beginning */
};
/** What rv_tool_source_call() says. */
int call_tool(struct world *w, struct seen *seen, const char *tool, rv_str args, rv_err **err);
/** The same, and it begins. */
void must_call(struct world *w, struct seen *seen, const char *tool, const char *args);
/** Turns until it has ended. */
void await(struct world *w, struct seen *seen);

Suite *catalog_suite(void);
Suite *calls_suite(void);
Suite *ends_suite(void);

#define ADD(tc, test) tcase_add_loop_test((tc), (test), 0, n_source_impls)

#endif
