/* Runs that ask real models in real time, and what was heard of each. */
#ifndef RV_TESTS_SHELL_TALKS_H
#define RV_TESTS_SHELL_TALKS_H

#include "tests/unit/engine/model_server.h"
#include "tests/unit/engine/world.h"

#define MAX_PIPELINES 2

/* One engine, and a server that its models are at. */
struct talks {
    struct model_server server;
    rv_engine *engine;
    rv_plugins *plugins;
    struct rv_pipeline *pipelines[MAX_PIPELINES];
    size_t n_pipelines;
};

/* One run. Zeroed before use, apart from what the test wants of it. */
struct talk {
    bool holds;       /* after each piece */
    size_t cancel_at; /* the piece at which the run is cancelled; 0: never */
    rv_exec *exec;
    rv_buf heard; /* in order: pieces in <>, usage as [usage], finish as [finish], events as their types in {} */
    rv_buf events, payloads; /* a line each */
    size_t n_pieces, n_payloads;
    bool may_be_billed; /* the last call, if it failed */
};

/** A pipeline of one stage "ask": what its execution section, its role and its stage say more, in YAML's flow style. */
struct asking {
    const char *execution, *role, *stage;
};
void talks_init(struct talks *a, const struct plan *plan, size_t n_plan);
/** The same, with a log for the engine; borrowed. */
void talks_init_logged(struct talks *a, const struct plan *plan, size_t n_plan, rv_log *log);
const struct rv_pipeline *talks_asking(struct talks *a, const struct asking *how);
/** The same, of a capability's provider, e.g. "echo.model:x". */
const struct rv_pipeline *talks_capability(struct talks *a, const char *name, bool is_isolated, const char *model,
                                           const char *execution);
/** The same, and the stage has an image as attachment. */
const struct rv_pipeline *talks_picture(struct talks *a, const char *name, const char *model);
/** A stage that runs such a pipeline as talks_asking() makes, with a budget of a dollar; the outer one has none. */
const struct rv_pipeline *talks_budget_within(struct talks *a, const struct asking *how);
void talks_fini(struct talks *a);
/** The text of such a pipeline; free() it. */
char *talks_text(const struct talks *a, const struct asking *how);

void talk_begin(struct talks *a, struct talk *t, const struct rv_pipeline *pipeline);
/** Waits; the status word. */
const char *talk_end(struct talks *a, struct talk *t);
/** begin and end. */
const char *talk_whole(struct talks *a, struct talk *t, const struct rv_pipeline *pipeline);
void talk_fini(struct talk *t);
/** The last event line of that type. */
const char *talk_event(const struct talk *t, const char *type, char *line, size_t size);

/** The engine goes on with whatever is under way, for that long. */
void engine_let_pass(rv_engine *e, int ms);
/** The engine goes on until *n is at least that. */
void engine_until(rv_engine *e, const size_t *n, size_t at_least);

#endif
