/* The workspace of a front, and what is done in it: stores are opened, pipelines loaded with all that belongs to them,
 * runs driven, answered and taken over; new files are made from templates. */
#ifndef RV_APP_WORKSPACE_H
#define RV_APP_WORKSPACE_H

#include "coreengine/app/agents/agents.h"
#include "coreengine/engine/engine.h"
#include "coreengine/store/journal/journal.h"

/* Where things are, and for whom. All texts are borrowed. A zeroed struct is the default of each field. */
struct rv_app {
    rv_log *log;                        /* borrowed; NULL: nothing is logged */
    bool keeps_log_level;               /* the log_level of a pipeline does not change the level of log */
    struct rv_mcp_until until;          /* outside runs, providers and servers are waited for; zeroed: as they need */
    const char *const *capability_dirs; /* folders that are searched for capabilities first */
    size_t n_capability_dirs;
    rv_mcp_lists *mcp;        /* borrowed; lists of MCP servers that are fresh; NULL: servers are always asked */
    rv_plugin_pool *pool;     /* borrowed; opened capabilities that pipelines share; NULL: each opens its own */
    const char *host_program; /* runs isolated capabilities; NULL: as in struct rv_plugins_opts */
    const char *schema_dir;   /* folder of agent documents; NULL: P8_SCHEMA_DIR of the environment; "": none */
    const char *capability;   /* the capability with the built-in agents; NULL: p8, if it can be found; "": none */
    const char *const *more_capabilities; /* others whose agents are at hand, too; names, "" and the built-in one count
                                             for nothing here */
    size_t n_more_capabilities;
    const char *store;              /* file of the store; NULL: REEVE_STORE, else the default place */
    struct rv_store_health *health; /* of the stores that are opened; borrowed; NULL: it is not kept */
    const char *sync;               /* durability of a commit: full, normal, off; NULL: REEVE_SYNC, else full */
    const char *quotas;             /* file of quotas; NULL: REEVE_QUOTAS, else the user's settings; "": none */
    const char *files;           /* folder of files for capabilities; NULL: REEVE_FILES; "": none (services/files.c) */
    bool no_store;               /* nothing is kept */
    struct rv_store_scope scope; /* tenant NULL: the default one; user NULL: the rows of all users */
    const char *client;          /* name of this front in the context of agents, such as "cli"; NULL: none */
    bool debug;                  /* texts of errors in reports of tests name lines of C source */
    bool traces;                 /* spans of runs go to a collector, so that requests of runs name them */
    int64_t lease_us; /* after this long without a sign of life another process may take over a run; 0: 15 s */
};

/* --- stores --- */
/** Append the folder for what is kept on this machine, $XDG_STATE_HOME/reeve. RV_E_NOT_FOUND: the environment names
 *  none. */
RV_MUST_CHECK int rv_app_find_state_folder(rv_buf *out, rv_err **err);
enum rv_app_store_use {
    RV_APP_STORE_READ,   /* nothing is changed; it must exist */
    RV_APP_STORE_MAKE,   /* made, with the folders of the default place, when it does not exist */
    RV_APP_STORE_CHANGE, /* changed; it must exist */
    RV_APP_STORE_FILL,   /* as _MAKE, for a copy: an unfinished one may be in it */
};
/** The store's file, appended. RV_E_NOT_FOUND: the environment does not say where the default place is. */
RV_MUST_CHECK int rv_app_find_store_path(const struct rv_app *app, rv_buf *out, rv_err **err);
/** Open the store of app as `use` says. RV_E_NOT_FOUND: there is none, and it is only made by _MAKE and _FILL (the hint
 *  says how to name another); RV_E_INVALID: `sync`; what reading the master keys says; else as rv_store_open(). */
RV_MUST_CHECK int rv_app_store_open(const struct rv_app *app, enum rv_app_store_use use, rv_store **out, rv_err **err);
/** Open the store for reading. Returns 0 with *out NULL when there is no store yet and app->store names none: lists are
 * empty then. */
RV_MUST_CHECK int rv_app_store_open_if_any(const struct rv_app *app, rv_store **out, rv_err **err);
/** The run that is meant by an id, a unique prefix of one, or "last". RV_E_NOT_FOUND, RV_E_INVALID (several). */
RV_MUST_CHECK int rv_app_find_run(rv_store *store, const struct rv_store_scope *scope, const char *word,
                                  struct rv_run_row *out, rv_err **err);

/* --- pipelines: one with all that belongs to it --- */
struct rv_app_loaded {     /* what is owned ends with rv_app_loaded_fini() */
    rv_findings *findings; /* owned */
    rv_findings *missing;  /* owned; what a run begins without: with a script, capabilities that were not loaded; MCP
                              servers and tools of theirs. As warnings; among findings, too */
    const struct rv_pipeline *pipeline; /* `own`, or borrowed from bundle; NULL: not a pipeline: see the findings */
    struct rv_pipeline *own;            /* the same, owned; NULL: a bundle owns it */
    rv_plugins *plugins;                /* owned; left as they are while plugins_busy */
    rv_mcp_tools *mcp;                  /* tools of its MCP servers; owned; NULL: it has no servers */
    rv_script *script;                  /* owned, unless a bundle owns it; NULL: none */
    rv_bundle *bundle;                  /* owned, and owns pipeline and script; NULL: they were loaded from files */
    bool plugins_busy;                  /* one still runs a call that was given up: its code must stay */
    rv_script **test_scripts;           /* owned; with `tests`: one per test of the pipeline, NULL for a test without */
    rv_agents *agents;     /* owned; where declared agents and those that they ask are; NULL: the pipeline has none */
    rv_store *agent_store; /* that was opened for them; owned; NULL: the caller's, or none */
    const char *tenant;    /* borrowed from struct rv_app */
    bool is_partial;       /* a capability that the file lists could not be loaded, which is a finding */
};
/* What it points to is borrowed for the call. */
struct rv_app_load_opts {
    const char *script; /* file that answers for models, stages, tools, hooks and people; NULL: none */
    bool tests;         /* with the scripts of the pipeline's own tests: a tool that any plays is known */
    bool connects;      /* MCP servers are started and asked for their tools: a run begins */
    bool keeps;         /* the run is kept in the store: agents are looked for there, and registered */
    rv_store *store;    /* that store, where it is open already; borrowed; NULL: it is opened if there are agents */
    const char *model;  /* "provider:model" in the place of each model of the file; NULL: its own; not with text */
    const struct rv_test_place
        *place;      /* prompts of a test's matrix in the place of the file's; NULL: none; not with text
                      */
    rv_str text;     /* of the pipeline, which the path then only names; ptr NULL: it is read from the path */
    const char *dir; /* what relative paths of text start from; NULL: the folder of this process */
};
/** Load, open the capabilities, bind declared agents, check all names. All faults are findings: look at
 *  rv_findings_n_errors(out->findings) before a run. Fails only if the file cannot be read. */
RV_MUST_CHECK int rv_app_load(const struct rv_app *app, const char *path, const struct rv_app_load_opts *opts,
                              struct rv_app_loaded *out, rv_err **err);
#define RV_APP_MAX_BUNDLE ((size_t)64 << 20) /* bytes: as what opens one permits */
/** Append what a run is started with: the pipeline, its prompts, agents and script. Of two equal texts the runs are
 * started alike. */
RV_MUST_CHECK int rv_app_bundle_write(const struct rv_app_loaded *l, rv_buf *out, rv_err **err);
/** Only what is needed to show it: capabilities are opened where declared agents may be in them. */
RV_MUST_CHECK int rv_app_load_plain(const struct rv_app *app, const char *path, const struct rv_app_load_opts *opts,
                                    struct rv_app_loaded *out, rv_err **err);
/** Read them for a pipeline that is loaded: their faults become findings, their tools stay unknown to the pipeline. */
RV_MUST_CHECK int rv_app_load_test_scripts(struct rv_app_loaded *l, rv_err **err);
void rv_app_loaded_fini(struct rv_app_loaded *l);
/** rv_engine_free() that minds calls which ignore their cancellation. e may be NULL. */
void rv_app_engine_free(struct rv_app_loaded *l, rv_engine *e);
/** find_agent of struct rv_exec_opts; self is a struct rv_app_loaded that has `agents`. */
RV_MUST_CHECK int rv_app_find_agent(void *self, const struct rv_context *context, const char *name, rv_buf *text,
                                    rv_err **err);
bool rv_app_has_agents(const struct rv_pipeline *p); /* are any of its agents declared elsewhere? */

/* --- agents: store, built-in capability, folder --- */
struct rv_app_sources {
    struct rv_store_scope scope;
    rv_store *store;     /* NULL: none; owned */
    rv_plugins *plugins; /* owned, as store and agents */
    rv_agents *agents;   /* owned */
};
/** A store that is only read may be missing, unless app->store names it. */
RV_MUST_CHECK int rv_app_sources_open(const struct rv_app *app, enum rv_app_store_use use, struct rv_app_sources *out,
                                      rv_err **err);
/** Make the agents that are at hand rows of the store (rv_agents_register()). store: open for reading; another handle
 *  writes, and only if there is something to write. A store that cannot be written is left as it is. */
RV_MUST_CHECK int rv_app_register_agents(const struct rv_app *app, rv_store *store, rv_err **err);
void rv_app_sources_fini(struct rv_app_sources *s);
/** app->schema_dir, which must be there, else P8_SCHEMA_DIR; *out NULL: none. */
RV_MUST_CHECK int rv_app_find_schema_dir(const struct rv_app *app, const char **out, rv_err **err);
#define RV_APP_BUILT_IN "p8"
/** A capability with nothing else loaded; name NULL: RV_APP_BUILT_IN, if it can be found; "": none. base_dir: folder of
 *  the pipeline; NULL: without one, so that no code of the current folder runs by its name alone. */
RV_MUST_CHECK int rv_app_open_built_in(const struct rv_app *app, const char *base_dir, const char *name,
                                       rv_plugins **out, rv_err **err);

/* --- folder.c: a folder of pipelines that clients may run, by the names of their files; folder NULL: there is none ---
 */
RV_MUST_CHECK int rv_app_check_folder(const char *folder, rv_err **err); /* RV_E_NOT_FOUND */
/** The file of the pipeline of that name, appended. RV_E_NOT_FOUND. */
RV_MUST_CHECK int rv_app_find_pipeline_path(const char *folder, const char *name, rv_buf *out, rv_err **err);
/** Calls each for every pipeline by name, sorted. RV_E_IO: the folder cannot be read; RV_E_LIMIT: it has too many. */
RV_MUST_CHECK int rv_app_list_pipelines(const char *folder, int (*each)(void *self, const char *name, rv_err **err),
                                        void *self, rv_err **err);

/* The observer of a run. All slots may be NULL, and are called on the thread that drives the run, while the run goes
 * on; they may cancel it, nothing else. Arguments are borrowed for the call; struct rv_exec_opts describes each. */
struct rv_app_observer {
    void *self;
    void (*on_event)(void *self, const struct rv_effect *e, rv_str line); /* line: JSON, docs/reference/events.md */
    bool (*on_delta)(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d);
    void (*on_payload)(void *self, int64_t call_id, const char *provider, rv_str body);
};
/* --- a run in one call --- */
/* Texts are borrowed for the call. */
struct rv_app_job {
    const char *pipeline; /* its file */
    const char *input;    /* raw_input of the envelope; NULL: none */
    json_object *state; /* a state dict to begin with, may be partial (docs/reference/state.md); borrowed; NULL: none */
    const char *script; /* file that answers for models, stages, tools, hooks and people; NULL: none */
    const char *session; /* id of the session that the run belongs to; NULL: none */
    int mode;            /* enum rv_run_mode, or RV_UNSET for the pipeline's */
    bool use_mocks;      /* the mock handlers of all stages that have one */
    size_t workers;      /* threads for capability code at most; 0: 64 */
    struct rv_app_observer observer;
};
#define RV_APP_JOB_INIT ((struct rv_app_job){.mode = RV_UNSET})
struct rv_app_result {
    enum rv_run_status status; /* RV_RUN_INTERRUPTED: it waits for rv_app_answer() */
    rv_envelope *envelope;     /* owned: its id, outputs, errors, the question that it waits for */
    char *answer;              /* the final response as text; owned; NULL: there is none, see rv_app_has_answer() */
};
/** Load a pipeline and run it until it is over or waits for an answer. A run that fails, or ends at a bound, is a
 *  success of this call: out->status tells. The run is kept in the store of app, unless app->no_store.
 *  @return RV_E_INVALID: the pipeline has errors (the first one is the text), or cannot do its work; RV_E_NOT_FOUND,
 *  RV_E_IO: a file cannot be read; and what the store says
 *  Thread: blocks the caller; callbacks come on its thread. */
RV_MUST_CHECK int rv_app_run(const struct rv_app *app, const struct rv_app_job *job, struct rv_app_result *out,
                             rv_err **err);
/** Answer a run of the store that waits, and drive it on. run: as rv_app_find_run() takes it. observer may be NULL.
 *  response NULL: one of its questions has expired, and the run goes on by that.
 *  @return RV_E_STATE: it does not wait; RV_E_INVALID: the answer does not fit the question; RV_E_TIMEOUT: the question
 *  has expired: the run was driven on by that, if it goes on so */
RV_MUST_CHECK int rv_app_answer(const struct rv_app *app, const char *run, const struct rv_response *response,
                                const struct rv_app_observer *observer, struct rv_app_result *out, rv_err **err);
void rv_app_result_fini(struct rv_app_result *r);
/** Tells whether outputs are an answer: those of a run that failed, was cancelled, waits or was denied are not. A bound
 * may end a run that has one. */
bool rv_app_has_answer(enum rv_run_status status, const rv_envelope *env);
/** Does a new run set that key of a state itself when it begins? What a caller gave for it would be lost. */
bool rv_app_state_is_runs_own(rv_str key);

/* --- a run step by step, for fronts that show findings, questions and files --- */
/* One run. Zero it, fill in what is wanted of the first part, and finish with rv_app_run_fini(). Its texts are
 * borrowed, and outlive it. */
struct rv_app_run {
    const struct rv_app *app;     /* borrowed; outlives the run */
    struct rv_app_loaded *loaded; /* what it runs; borrowed */
    int mode;                     /* of a new run: enum rv_run_mode, or RV_UNSET for the pipeline's */
    bool use_mocks;               /* of a new run: the mock handlers of all stages that have one */
    const char *session;          /* of a new run that is kept: id of its session; NULL: none */
    const char *task;             /* of a new run that is kept: as of struct rv_journal_begin; NULL: none */
    const char *request;          /* the same */
    size_t workers;               /* threads for capability code at most; 0: 64 */
    bool handle_signals;          /* SIGINT and SIGTERM cancel the run */
    const char *save;             /* run file that is brought up to date while the run goes on; NULL: none */
    struct rv_app_observer observer;
    struct rv_recorder *recorder; /* that records the run; borrowed; NULL: none */
    /* of a run file that is resumed */
    const char *pipeline_path, *script_path; /* what run files say; script NULL: none */
    const char *run_file;                    /* brought up to date, too, so that an answer counts once; NULL: none */
    enum rv_rules rules;                     /* RV_RULES_NEWEST: of a new run */
    /* filled in */
    rv_store *store;     /* where it is kept; NULL: nowhere. Borrowed where the caller or `loaded` has it open */
    rv_journal *journal; /* owned; NULL: it is not kept */
    char owner[RV_OWNER_MAX];
    rv_engine *engine;              /* owned */
    rv_exec *exec;                  /* NULL: the run never began; owned */
    rv_err *save_err;               /* why a run file could not be written; NULL: all were; owned */
    struct rv_app_run_state *state; /* owned */
};
/** Tells whether a new run can do its work: stages that neither a mock nor the script answers for, that have no model
 *  or no tool, become findings of l. */
RV_MUST_CHECK int rv_app_check(struct rv_app_loaded *l, bool use_mocks, rv_err **err);
/** Open the store for a new run. Leave it out for a run that is not kept. */
RV_MUST_CHECK int rv_app_run_open(struct rv_app_run *run, rv_err **err);
/** Keep a new run before it begins: its bundle, its session, its beginning. RV_E_EXISTS: the store has a run of that
 *  id, or the session is another user's. */
RV_MUST_CHECK int rv_app_run_keep(struct rv_app_run *run, const rv_envelope *env, rv_err **err);
/** Begin or go on, and wait until it is over or waits for an answer: rv_exec_status(run->exec). Takes env, NULL of a
 * run that was opened with rv_app_continue(). response: the answer to what the run waits for; NULL: it begins. */
RV_MUST_CHECK int rv_app_run_drive(struct rv_app_run *run, rv_envelope *env, const struct rv_response *response,
                                   rv_err **err);
/** Write the run file of a run that waits and is in no store. path gets where, also when the file was there already. */
RV_MUST_CHECK int rv_app_run_keep_file(struct rv_app_run *run, rv_buf *path, rv_err **err);
void rv_app_run_fini(struct rv_app_run *run);

enum rv_app_go { RV_APP_ANSWER, RV_APP_RECOVER, RV_APP_CANCEL };
/** Open a run of the store to go on with it: as its new owner, by its own bundle, which out gets. RECOVER is for what a
 *  process left that is gone. Look at the findings of out, then rv_app_take_over(), then rv_app_run_drive(). */
RV_MUST_CHECK int rv_app_continue(struct rv_app_run *run, rv_store *store, const char *id, enum rv_app_go go,
                                  struct rv_app_loaded *out, rv_err **err);
/** Begins the transaction that the first step of the run commits. */
RV_MUST_CHECK int rv_app_take_over(struct rv_app_run *run, rv_err **err);
/* A run that goes on with another pipeline. Borrowed for the call. */
struct rv_app_migration {
    const char *run;    /* that waits */
    const char *word;   /* "new" for the file it came from, or the path of one */
    const char *script; /* path; NULL: none */
};
/** Have a run that waits take its place in another pipeline, if its state fits: a new run, whose id goes to id; the old
 *  one is ended. next gets what was loaded, with its
 * findings, also on failure; the caller finishes it. RV_E_STATE says why it does not fit. */
RV_MUST_CHECK int rv_app_migrate(const struct rv_app_run *opts, rv_store *store, const struct rv_app_migration *what,
                                 struct rv_app_loaded *next, char id[RV_ID_MAX], rv_err **err);

/* --- new files, from templates; those that exist are not overwritten: RV_E_EXISTS --- */
/** A pipeline that runs without a model and carries tests. A path that does not end with .yaml or .yml gets ".yaml".
 *  Appends the path of the file to written. */
RV_MUST_CHECK int rv_app_new_pipeline(const char *path, rv_buf *written, rv_err **err);
/** A plugin in C with build files, a pipeline and tests, in a folder: all or nothing. dir NULL: it is called like the
 *  capability. sdk: folder that contains reeve/capability.h; NULL: searched. */
RV_MUST_CHECK int rv_app_new_capability(const char *name, const char *dir, const char *sdk, rv_err **err);

#endif
