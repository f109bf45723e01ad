/* The application: what every front of reeve needs (a command line, a server, a program that embeds the library).
 *
 * A front fills in struct rv_app (where stores, capabilities and agents are, and for whom the front works), loads
 * pipelines, runs them and reads what was kept. Nothing here knows arguments, a terminal or an exit status, and nothing
 * prints: results are structs, errors are rv_err, findings are rv_findings, and what happens during a run goes to the
 * callbacks of an observer.
 *
 * Threads: one thread at a time may use a struct rv_app and what was made with it; two threads use one each. */
#ifndef RV_APP_H
#define RV_APP_H

#include "coreengine/agents/agents.h"
#include "coreengine/journal/bundle.h"
#include "coreengine/journal/journal.h"
#include "coreengine/shell/shell.h"

/* Where things are, and for whom. All texts are borrowed. A zeroed struct is the default of each field. */
struct rv_app {
    rv_log *log;                        /* borrowed; NULL: nothing is logged */
    bool keeps_log_level;               /* the log_level of a pipeline does not change the level of log */
    const char *const *capability_dirs; /* folders that are searched for capabilities first */
    size_t n_capability_dirs;
    const char *schema_dir;      /* folder of agent documents; NULL: P8_SCHEMA_DIR of the environment; "": none */
    const char *capability;      /* whose agents are built in; NULL: p8, if it can be found; "": none */
    const char *store;           /* file of the store; NULL: REEVE_STORE, else the default place */
    const char *sync;            /* durability of a commit: full, normal, off; NULL: REEVE_SYNC, else full */
    bool no_store;               /* nothing is kept */
    struct rv_store_scope scope; /* tenant NULL: the default one; user NULL: the rows of all users */
    bool debug;                  /* texts of errors in reports of tests name lines of C source */
    int64_t lease_us; /* after this long without a sign of life another process may take over a run; 0: 15 s */
};

/* --- stores --- */
enum rv_app_store_use {
    RV_APP_STORE_READ,   /* nothing is changed; it must exist */
    RV_APP_STORE_MAKE,   /* made, with the folders of the default place, when it does not exist */
    RV_APP_STORE_CHANGE, /* changed; it must exist */
};
/** The store's file, appended. RV_E_NOT_FOUND: the environment does not say where the default place is. */
RV_MUST_CHECK int rv_app_store_path(const struct rv_app *app, rv_buf *out, rv_err **err);
RV_MUST_CHECK int rv_app_store_open(const struct rv_app *app, enum rv_app_store_use use, rv_store **out, rv_err **err);
/** To read. *out NULL with 0: there is no store yet, and app->store names none: lists are empty then. */
RV_MUST_CHECK int rv_app_store_open_if_any(const struct rv_app *app, rv_store **out, rv_err **err);
/** The run that is meant by an id, a unique prefix of one, or "last". RV_E_NOT_FOUND, RV_E_INVALID (several). */
RV_MUST_CHECK int rv_app_find_run(rv_store *store, const struct rv_store_scope *scope, const char *word,
                                  struct rv_run_row *out, rv_err **err);

/* --- pipelines: one with all that belongs to it --- */
struct rv_app_loaded {
    rv_findings *findings;
    rv_findings *missing; /* with a script: capabilities that could not be loaded, as warnings; among findings too */
    const struct rv_pipeline *pipeline; /* NULL: the file is no pipeline, and the findings say why */
    struct rv_pipeline *own;            /* the same, unless a bundle owns it */
    rv_plugins *plugins;
    rv_script *script;        /* NULL: none */
    rv_bundle *bundle;        /* owned; owns pipeline and script; NULL: they were loaded from files */
    bool plugins_busy;        /* one still runs a call that was given up: its code must stay */
    rv_script **test_scripts; /* with `tests`: one per test of the pipeline, NULL for a test without; else NULL */
    rv_agents *agents;     /* of a pipeline with declared agents: where they are, and those that they ask; else NULL */
    rv_store *agent_store; /* that was opened for them; NULL: the caller's, or none */
    const char *tenant;    /* of struct rv_app */
};
struct rv_app_load_opts {
    const char *script; /* file that answers for models, stages, tools and people; NULL: none */
    bool tests;         /* with the scripts of the pipeline's own tests: a tool that any plays is known */
    bool keeps;         /* the run is kept in the store: agents are looked for there, and registered */
    rv_store *store;    /* that store, where it is open already; borrowed; NULL: it is opened if there are agents */
};
/** Load, open the capabilities, bind declared agents, check all names. All faults are findings: look at
 *  rv_findings_n_errors(out->findings) before a run. Fails only if the file cannot be read. */
RV_MUST_CHECK int rv_app_load(const struct rv_app *app, const char *path, const struct rv_app_load_opts *opts,
                              struct rv_app_loaded *out, rv_err **err);
/** Only what is needed to show it: capabilities are opened where declared agents may be in them. */
RV_MUST_CHECK int rv_app_load_plain(const struct rv_app *app, const char *path, const struct rv_app_load_opts *opts,
                                    struct rv_app_loaded *out, rv_err **err);
/** What a bundle holds, with its capabilities opened if there will be calls. Takes bundle on every path. */
RV_MUST_CHECK int rv_app_load_bundle(const struct rv_app *app, const struct rv_app_load_opts *opts, rv_bundle *bundle,
                                     bool calls, struct rv_app_loaded *out, rv_err **err);
/** Read them for a pipeline that is loaded: their faults become findings, their tools stay unknown to the pipeline. */
RV_MUST_CHECK int rv_app_load_test_scripts(struct rv_app_loaded *l, rv_err **err);
void rv_app_loaded_fini(struct rv_app_loaded *l);
/** rv_engine_free() that minds calls which ignore their cancellation. e may be NULL. */
void rv_app_engine_free(struct rv_app_loaded *l, rv_engine *e);
/** find_agent of struct rv_exec_opts; self is a struct rv_app_loaded that has `agents`. */
RV_MUST_CHECK int rv_app_find_agent(void *self, const struct rv_context *who, const char *name, rv_buf *text,
                                    rv_err **err);
bool rv_app_has_agents(const struct rv_pipeline *p); /* are any of its agents declared elsewhere? */

/* --- agents: store, built-in capability, folder --- */
struct rv_app_sources {
    struct rv_store_scope scope;
    rv_store *store; /* NULL: none */
    rv_plugins *plugins;
    rv_agents *agents;
};
/** A store that is only read may be missing, unless app->store names it. */
RV_MUST_CHECK int rv_app_sources_open(const struct rv_app *app, enum rv_app_store_use use, struct rv_app_sources *out,
                                      rv_err **err);
void rv_app_sources_fini(struct rv_app_sources *s);
/** app->schema_dir, which must be there, else P8_SCHEMA_DIR; *out NULL: none. */
RV_MUST_CHECK int rv_app_schema_dir(const struct rv_app *app, const char **out, rv_err **err);
#define RV_APP_BUILT_IN "p8"
/** A capability with nothing else loaded; name NULL: RV_APP_BUILT_IN, if it can be found; "": none. base_dir as
 *  rv_plugins_path() takes it. */
RV_MUST_CHECK int rv_app_open_built_in(const struct rv_app *app, const char *base_dir, const char *name,
                                       rv_plugins **out, rv_err **err);

#endif
