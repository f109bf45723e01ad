/* Turns of chats, as the loop that holds them (turns.c) and the turns themselves (turn.c) know them. */
#ifndef RV_SERVER_TURNS_INTERNAL_H
#define RV_SERVER_TURNS_INTERNAL_H

#include "coreengine/app/app.h"
#include "coreengine/server/chats_internal.h"
#include "coreengine/server/view_internal.h"

struct turn {
    struct turn *next, **at;                    /* in the list; where it is pointed at from */
    struct turn *next_of_row;                   /* of those with a serial of the same row; borrowed */
    struct turn *next_of_session, **at_session; /* of those with a session of the same row */
    struct srv_turns *all;                      /* borrowed: it has the turn */
    int64_t serial;
    struct srv_turn_ask *ask;    /* owned */
    struct srv_stream *st;       /* NULL: no client listens; borrowed */
    rv_app_user_chat *user_chat; /* owned */
    rv_app_stream *log;          /* NULL: nothing has happened yet; owned */
    struct kept *spare; /* with the log, of its writer: a message for when memory is short; NULL: it was used; owned */
    struct srv_view *view; /* with the log; owned */
    rv_buf out;
    rv_buf routing;    /* lines of events of the router, until the run of the answer has begun */
    bool is_answering; /* that run has begun */
    bool is_told;      /* its end is a line, or there will be none */
    bool is_held;      /* the model is */
    bool is_parked;    /* it waits for an answer */
    enum srv_turn_by { SRV_TURN_BY_REQUEST, SRV_TURN_BY_CLIENT, SRV_TURN_BY_SERVER } cancelled_by; /* if it is */
    char interrupt_id[RV_STORE_MAX_ID + 1];
    bool has_begun;    /* the head was sent, or will be */
    size_t n_others;   /* clients that follow it elsewhere in this process */
    uv_timer_t *grace; /* runs while no client listens; NULL: it does not; owned */
};
/* A message that is under way once at most. */
struct order {
    struct srv_message message;
    struct srv_turns *all; /* borrowed */
    atomic_bool is_posted;
};

#define SRV_TURN_ROWS 4096 /* each kept line looks for its turn: some thousands are open at a time */
struct srv_turns {
    struct srv_loop loop;
    struct srv_server *server; /* borrowed */
    struct rv_app app;
    struct rv_app_chat base;
    struct turn *turns;                                                /* newest first; owned */
    struct turn *by_serial[SRV_TURN_ROWS], *by_session[SRV_TURN_ROWS]; /* borrowed */
    size_t n_parked;
    int64_t n_serial;
    char owner[RV_OWNER_MAX];
    bool is_draining;
    struct order drain, stop; /* told without memory: without them the process would not end */
};

/* --- turns.c --- */
/** Of the list; NULL: it is over. */
struct turn *srv_turn_of(const struct srv_turns *all, int64_t serial);
void srv_turn_end(struct turn *t);
void srv_turn_end_grace(struct turn *t); /* nothing waits for its client to come back */

/* --- parked.c: turns that wait for an answer --- */
/** It keeps its chat, and gives its run back; its stream has ended, and no client listens until an answer comes. */
void srv_turn_park(struct turn *t);
/** May it get an answer? RV_E_STATE: its run is to be cancelled. */
RV_MUST_CHECK int srv_turn_check_wanted(const struct turn *parked, rv_err **err);

/* --- turn.c: what a client is sent, from what happens --- */
/** The model goes on, unless the client or the store has too much to take. */
void srv_turn_read_on(struct turn *t);
void srv_turn_close_log(struct turn *t, enum rv_app_stream_close how);
/** A turn that was refused before anything happened in it: the row of its stream is left to the same request, which
 * begins it again; that of an answer goes. */
void srv_turn_give_row(struct srv_turns *all, const struct srv_turn_ask *ask);
/** Of a chat: struct rv_chat_opts. */
void srv_turn_on_event(void *self, const struct rv_effect *e, rv_str line);
bool srv_turn_on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d);
void srv_turn_on_turn(void *self, rv_chat *chat, const struct rv_chat_turn *turn, int rc, const rv_err *why);

/* --- reason.c: what a client is told of a failure --- */
/** turn->error, out, or NULL when the turn did not fail. */
#define SRV_MAX_REASON 512 /* bytes: a sentence of ours and an id of RV_STORE_MAX_ID */
const char *srv_reason(const struct rv_chat_turn *turn, const char *run, char out[SRV_MAX_REASON]);
/** The same of a run of a pipeline, of which its caller can ask more. */
const char *srv_reason_of_run(const char *error, const char *code, const char *run, char out[SRV_MAX_REASON]);

#endif
