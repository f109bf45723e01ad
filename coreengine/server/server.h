/* The server: agents, runs and data of a store, over HTTP.
 *
 * One call serves until SIGTERM or SIGINT, which drain it: nothing new is accepted, turns and runs under way come to
 * their end or to a point where another process goes on, and streams end with their last event. A second signal ends
 * the process at once. */
#ifndef RV_SERVER_H
#define RV_SERVER_H

#include "coreengine/app/app.h"
#include "coreengine/identity/identity.h"
#include "coreengine/telemetry/telemetry.h"

#define RV_SERVER_LISTEN   "127.0.0.1:8080"
#define RV_SERVER_STAYS    INT64_MAX         /* turns go on without a client until they are over */
#define RV_SERVER_STAYS_US (5 * RV_US_PER_S) /* a client that reconnects is back within seconds */

/* What it points to is borrowed, and outlives the call. */
struct rv_server_opts {
    const struct rv_app *app; /* where stores, capabilities and agents are; scope is ignored; no_store is refused */
    struct rv_identity_opts identity;
    const char *listen;      /* "ADDRESS:PORT", "[::1]:8080"; port 0: the system chooses; NULL: RV_SERVER_LISTEN */
    const char *certificate; /* PEM file; NULL: no TLS */
    const char *key;         /* PEM file */
    const char *pipelines;   /* folder of pipelines that clients may run; NULL: none */
    const char *script;      /* answers for models, tools and people in chats; NULL: none */
    const char *scripts;     /* folder of scripts for pipelines, by their names; NULL: none */
    const char *const *capabilities; /* beside the built-in one, for chats */
    size_t n_capabilities;
    bool mcp_agents;              /* agents are tools at /mcp, too */
    const char *const *mcp_tools; /* tools of capabilities there: "capability:tool" */
    size_t n_mcp_tools;
    const char *model;  /* "provider:model" of turns whose agent and request name none; NULL: the default */
    size_t concurrency; /* queued runs at once; 0: RV_WORKER_CONCURRENCY */
    bool no_worker;     /* what is queued is left to `reeve worker` */
    int64_t grace_us;   /* of draining; as of struct rv_worker_opts */
    int64_t stays_us;   /* how long a turn goes on without a client, or RV_SERVER_STAYS; 0: it is cancelled at once */
    int64_t kept_us;    /* how long a stream is kept beyond its end; as of struct rv_app_streams_opts */
    struct rv_telemetry_settings telemetry; /* its url says whether app->traces has to be set */
    const char *webhook;        /* address that is told when a run of POST /runs ends or waits; NULL: none */
    const char *webhook_secret; /* by which it, and what names no secret of its own, is signed; NULL: none */
    rv_log *access;             /* one record for each answer; NULL: none */
    /** Said once, when clients can connect: "http://127.0.0.1:8080". May be NULL. */
    void (*on_ready)(void *self, const char *url);
    /** A line about what it does, without line end. May be NULL. */
    void (*say)(void *self, const char *line);
    void *self;
};
/** Serve until a signal has drained it. *n_left: runs with a call under way that must not be repeated: end the process
 *  without more ado.
 *  @return RV_E_INVALID (an address, a setting, an address that others can reach while nothing asks who they are),
 *  RV_E_EXISTS (the port is taken), what the store says */
RV_MUST_CHECK int rv_server_run(const struct rv_server_opts *opts, int64_t *n_left, rv_err **err);

/** The table of routes as an OpenAPI 3.1 document, and as docs/reference/http.md. */
void rv_server_write_openapi(rv_buf *out);
void rv_server_write_reference(rv_buf *out);

#endif
