/* Clients of the Model Context Protocol over HTTP: see mcp.c and mcp_calls.c. */
#ifndef RV_SERVER_MCP_INTERNAL_H
#define RV_SERVER_MCP_INTERNAL_H

#include "coreengine/app/app.h"
#include "coreengine/server/reader_internal.h"

#include <pthread.h>

#define SRV_MCP_MAX_ID 32 /* of a session: 128 random bits as hex */

/* The answer of a call that is not over. */
struct srv_mcp_stream {
    struct srv_mcp_stream *next;
    int64_t call;
    struct srv_stream *st;           /* NULL: the client has left, or its answer has not begun; borrowed */
    rv_buf waiting;                  /* what came before the answer began */
    bool is_gone;                    /* the client has left: what is for it is thrown away */
    bool is_over;                    /* its last message is written, or */
    bool is_cut;                     /* it never will be */
    bool cancels;                    /* its call is to be cancelled */
    struct srv_mcp_session *session; /* borrowed */
};
/* What one client has. A client of 2026-07-28 has one for each request. */
struct srv_mcp_session {
    struct srv_mcp_session *next; /* of the table */
    struct srv_message end;       /* it goes, on the loop: no memory is needed then */
    struct srv_mcps *all;         /* borrowed */
    char id[SRV_MCP_MAX_ID + 1];  /* "": it is in no table */
    int refs;                     /* guarded by the lock of all */
    int64_t used_us;              /* guarded as well */
    struct rv_identity who;
    bool is_modern;
    struct rv_app app;    /* its scope borrows from who */
    rv_app_mcp *client;   /* of the thread that has the turn, which asks the store without a lock; owned */
    pthread_mutex_t lock; /* guards the turn and the streams; before server/loop_internal.h, not within srv_mcps */
    pthread_cond_t is_free;
    bool is_taken;                     /* a thread has the turn */
    uint64_t n_turns, seen_turns;      /* of requests; as the loop saw it last */
    int n_missed;                      /* turns that the loop did not get, one after another */
    struct srv_mcp_stream *streams;    /* owned */
    struct srv_mcp_session *next_busy; /* the loop's: sessions with streams */
    bool is_listed;                    /* there */
};

/* A job that is done, whose session is not free. */
struct srv_mcp_late {
    struct srv_mcp_late *next;       /* owned, with the list */
    struct srv_mcp_session *session; /* owned: the job's reference */
    rv_app_mcp_job *job;             /* owned */
};
struct srv_mcps {
    struct srv_reader reader;
    struct rv_app_mcp_opts offer;  /* to all clients; never changed */
    rv_app_mcp_aside *aside;       /* owned; each of its jobs has a reference of its session */
    pthread_mutex_t lock;          /* guards the table, and the references and times of sessions; leaf */
    struct srv_mcp_session *table; /* owned: it has a reference of each */
    size_t n;
    struct srv_mcp_late *late;    /* owned; the loop's */
    struct srv_mcp_session *busy; /* the loop's: sessions with streams; owned, a reference of each */
};
RV_MUST_CHECK int srv_mcps_new(struct srv_server *s, struct srv_mcps **out, rv_err **err);
void srv_mcps_stop(struct srv_mcps *m); /* from any thread: no stream is left */
void srv_mcps_free(struct srv_mcps *m);

/** A session with one reference, the caller's. is_kept: it is found by its id afterwards. */
RV_MUST_CHECK int srv_mcp_session_new(struct srv_mcps *m, const struct srv_call *c, bool is_kept,
                                      struct srv_mcp_session **out, rv_err **err);
/** The session of that id and that caller, with a reference. NULL: there is none. */
struct srv_mcp_session *srv_mcp_session_find(struct srv_mcps *m, const struct srv_call *c, const char *id);
void srv_mcp_session_end(struct srv_mcp_session *session); /* it is not found any more */
void srv_mcp_session_unref(struct srv_mcp_session *session);
/** Wait for the turn: one thread at a time uses the client of a session. */
void srv_mcp_session_enter(struct srv_mcp_session *session);
/** False: another thread has it, perhaps for as long as its store takes, and the loop of all does not wait for that. A
 *  client that sends so much that the turn is never free does not keep the loop away from its calls: it waits then. */
bool srv_mcp_session_try(struct srv_mcp_session *session);
void srv_mcp_session_leave(struct srv_mcp_session *session);
/** When the server drains: it answers the calls whose runs it brings to an end within its grace. The other runs go on,
 *  and their clients hear that the answer breaks off. In a turn and under the lock. */
void srv_mcp_cut_left(struct srv_mcp_session *session);
/** Without the lock: a call waits for others, on another thread. */
void srv_mcp_job_add(struct srv_mcp_session *session, rv_app_mcp_job *job);
/** Under the session's lock: the call goes on, and its messages wait until its answer begins. */
RV_MUST_CHECK int srv_mcp_stream_new(struct srv_mcp_session *session, int64_t call, rv_err **err);
/** Under the session's lock: one more message of its call. False: that call has no stream. */
bool srv_mcp_stream_add(struct srv_mcp_session *session, const struct rv_mcp_order *order);
/** On the loop: the answer of the call begins. Takes a reference of the session. */
void srv_mcp_stream_begin(struct srv_call *c, struct srv_mcp_session *session, int64_t call);
/** Its client left before that. Takes a reference of the session. */
void srv_mcp_stream_lost(struct srv_mcp_session *session, int64_t call);

#endif
