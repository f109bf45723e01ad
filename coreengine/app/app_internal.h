/* Shared by the files of this folder. */
#ifndef RV_APP_INTERNAL_H
#define RV_APP_INTERNAL_H

#include "coreengine/app/app.h"
#include "coreengine/app/services.h"
#include "coreengine/app/upkeep.h"

/* --- places.c --- */
/** A variable of the environment; NULL: it is not set, or empty. */
const char *app_env(const char *name);
/** Append where the user's own file of settings is, $XDG_CONFIG_HOME/reeve/NAME. RV_E_NOT_FOUND: the environment does
 * not say. */
RV_MUST_CHECK int app_config_file(const char *name, rv_buf *out, rv_err **err);

/* --- check.c --- */
/** The errors among the findings as one error; 0: there are none. */
RV_MUST_CHECK int app_findings_error(const rv_findings *f, rv_err **err);
/** rv_app_check(), where each error that loading or checking found is the error. */
RV_MUST_CHECK int app_check_all(struct rv_app_loaded *l, bool use_mocks, rv_err **err);

/** Is that the name of a model, in the form that a role in a file has? NULL is fine. Whether the provider exists is
 * checked elsewhere. */
RV_MUST_CHECK int app_check_model(const char *model, rv_err **err);
/** A model that no stage asks would be chosen without effect. */
RV_MUST_CHECK int app_check_replaced(const struct rv_pipeline *p, const char *model, rv_err **err);

/* --- load.c --- */
/** Load the content of a bundle, with its capabilities opened if there will be calls. Takes bundle on every path. */
RV_MUST_CHECK int app_load_bundle(const struct rv_app *app, const struct rv_app_load_opts *opts, rv_bundle *bundle,
                                  bool calls, struct rv_app_loaded *out, rv_err **err);

/** Does a script, or one of the pipeline's tests, answer for the tool? */
bool app_plays_tool(const struct rv_app_loaded *l, rv_str tool);

/* --- quotas_use.c --- */
/* The limits of one run or task, copied when they come into force. */
struct rv_app_limits {
    char tenant[RV_STORE_MAX_ID + 1], user[RV_STORE_MAX_ID + 1];
    struct rv_quota_limit limits[RV_QUOTA_MAX_LIMITS];
    struct rv_exec_quotas exec; /* points to these */
    int64_t again_us;           /* after a refusal: when it may fit; 0: never */
    const char *once;           /* name of what is counted, an id; NULL: it has none; borrowed */
};
/** l stays where it is. q NULL: no limits. */
void app_limits_set(struct rv_app_limits *l, const rv_quotas *q, const char *tenant, const char *user);
const struct rv_exec_quotas *app_limits_exec(const struct rv_app_limits *l); /* NULL: there are none */
/** RV_E_INVALID: a run with these limits is not to be kept, and nothing would count what it uses. */
RV_MUST_CHECK int app_limits_refuse(const struct rv_app_limits *l, rv_err **err);
/** Count one before it begins; may be part of a group. RV_E_QUOTA: it may not begin now. With l->once it is counted
 * once, however often. */
RV_MUST_CHECK int app_limits_count(struct rv_app_limits *l, rv_store *store, enum rv_quota_kind kind, int64_t now_us,
                                   rv_log *log, rv_err **err);

/* --- run.c --- */
/* What it points to is borrowed for the call. */
struct rv_app_begin {   /* of a new run that takes another's place */
    const char *parent; /* NULL: it takes none */
    int64_t parent_seq;
    json_object *script_at; /* how far its script was handed out before; borrowed; NULL: not at all */
    const struct rv_conversation *conversation; /* that it belongs to; borrowed; NULL: none */
    const char *bundle;                         /* hash; of what the store has already; NULL: the bundle is made */
    bool in_group;                              /* the caller began the transaction */
    struct rv_app_limits *limits;               /* it counts as one more of `counts`; NULL: it does not count */
    enum rv_quota_kind counts;
};
/** Keep what a new run is started with; hash is its name. */
RV_MUST_CHECK int app_put_bundle(struct rv_app_run *run, char hash[RV_STORE_HASH_MAX], rv_err **err);
/** Keep a new run: its bundle and its beginning. */
RV_MUST_CHECK int app_keep(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_begin *begin,
                           rv_err **err);
/** Which stages the script plays; the caller frees the result with free(). NULL without a script. */
RV_MUST_CHECK int app_scripted_stages(const struct rv_app_loaded *l, bool **out, rv_err **err);
/** The agents of the run's capabilities are rows before the run asks for them in any way. */
RV_MUST_CHECK int app_register_run_agents(const struct rv_app_run *run, rv_err **err);
int64_t app_lease_us(const struct rv_app *app);
/** rv_app_run_keep() in a transaction that the caller began. */
RV_MUST_CHECK int app_run_keep_in_group(struct rv_app_run *run, const rv_envelope *env, rv_err **err);
/** As app_run_keep_in_group(), counted as one of another quota than runs. */
RV_MUST_CHECK int app_run_keep_counted(struct rv_app_run *run, const rv_envelope *env, enum rv_quota_kind counts,
                                       rv_err **err);
/** As app_run_keep_in_group() for a run whose pipeline was loaded from a bundle of the store, by its hash. */
RV_MUST_CHECK int app_run_keep_bundled(struct rv_app_run *run, const char *bundle, const rv_envelope *env,
                                       rv_err **err);
RV_MUST_CHECK int app_run_prepare(struct rv_app_run *run, rv_err **err); /* makes run->state, if there is none */
/** rv_app_run_drive() of a prepared run, whose capabilities can ask these services when it is kept. NULL: none. */
RV_MUST_CHECK int app_run_drive_with(struct rv_app_run *run, rv_envelope *env, const struct rv_response *response,
                                     const struct rv_exec_services *services, rv_err **err);

/* --- continue.c --- */
/** Another id for the state, and for those of inner pipelines that wait in it: keys of calls follow from these ids, and
 * a tool would take the calls of one run for repetitions of those of another. */
RV_MUST_CHECK int app_state_rename(json_object *state, const char *id, rv_err **err);
/** The same state under another id; *out is the caller's. */
RV_MUST_CHECK int app_state_as(const rv_envelope *env, const char *id, rv_envelope **out, rv_err **err);
/* Before any code of a capability is loaded, the store knows who recovers the run: should that code end this process, a
 * dead owner is left, and the next process that takes the run over notes it in the journal. */
struct rv_app_early {
    rv_journal *journal; /* of a run that had an owner; owned */
    int64_t fence;       /* of one that had none; 0: it had */
};
struct rv_app_conversation;
/* State of a run that its caller does not see. */
struct rv_app_run_state {
    bool closes_store;                        /* the run opened it */
    bool continues, cancels;                  /* a run whose journal was opened; to end it as cancelled */
    char *id;                                 /* of such a run; owned */
    struct rv_app_early early;                /* owned, too */
    struct rv_app_conversation *conversation; /* owned */
    rv_quotas *quotas;                        /* NULL: none; owned */
    struct rv_app_limits limits;
    struct rv_app_services services;
};
enum rv_app_bundle_use {
    RV_APP_MAKES_CALLS = 1, /* else neither capabilities nor secrets are needed, and both may be gone */
    RV_APP_OWN_HANDLE = 2,  /* its agents get a handle of the store for themselves, for another thread */
};
/** What a run of the store was started with. use: of enum rv_app_bundle_use. */
RV_MUST_CHECK int app_open_bundle(const struct rv_app *app, rv_store *store, const struct rv_run_row *row, unsigned use,
                                  struct rv_app_loaded *out, rv_err **err);

/* --- mcp_access.c --- */
extern const struct rv_mcp_http_transport app_mcp_http;
/** Append the folder for what is kept of MCP servers. */
RV_MUST_CHECK int app_mcp_state(rv_buf *out, rv_err **err);

/* --- mcp_servers.c: MCP servers of a pipeline that is loaded --- */
/** rv_app_mcp_open() for a run that goes on: with the lists of its bundle. */
RV_MUST_CHECK int app_mcp_reopen(const struct rv_app *app, struct rv_app_loaded *l, rv_err **err);
/** A server of MCP whose list of tools is not at hand, and that may have the tool of that name ("server.tool", "tool");
 * NULL: there is none. tool NULL: whatever tool. Borrowed. */
const char *app_mcp_find_unlisted(const struct rv_app_loaded *l, const char *tool);

/* The capabilities and the MCP servers of a pipeline as one catalog, for its bundle. */
struct rv_app_tools {
    struct rv_catalog plugins;
    struct rv_known_names known;
    const rv_mcp_catalog *mcp; /* NULL: none; borrowed from the pipeline's servers */
    const char **names;        /* of all tools, sorted; owned */
    size_t n_names;
};
RV_MUST_CHECK int app_tools_init(struct rv_app_tools *t, const struct rv_app_loaded *l, rv_err **err);
struct rv_catalog app_tools_catalog(const struct rv_app_tools *t); /* borrows t */
struct rv_known_names app_tools_names(const struct rv_app_tools *t);
void app_tools_fini(struct rv_app_tools *t);

#endif
