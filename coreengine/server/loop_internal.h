/* A loop with a thread, and messages to it: see loop.c. */
#ifndef RV_SERVER_LOOP_INTERNAL_H
#define RV_SERVER_LOOP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "coreengine/base/base.h"

struct srv_message {
    struct srv_message *next;            /* in its loop; guarded by its lock */
    void (*open)(struct srv_message *l); /* on the thread of the loop; owns the message */
    bool is_followed;                    /* by another one at once, so that it wakes the loop */
};
struct srv_loop {
    uv_loop_t *uv; /* borrowed, or own */
    uv_async_t wake;
    pthread_mutex_t lock;             /* guards the messages, is_closed and is_pausing; leaf */
    struct srv_message *first, **end; /* owned until they are read */
    bool is_closed;
    bool is_pausing;
    uv_loop_t own; /* of srv_loop_go() */
    pthread_t thread;
    bool has_thread;
    /* --- of its thread --- */
    struct srv_loop *outlet; /* woken once for all messages to it that come of the messages here; outlives this one */
    bool owes_wake;          /* the outlet is to be woken */
    bool coalesces; /* set before srv_loop_go(): while it is woken again and again, and nothing hurries, it waits some
                     * milliseconds and handles at once what has come meanwhile */
    uv_check_t check;
    pthread_cond_t alarm;
    uint64_t checked_ns, hurried_ns;
    unsigned n_busy; /* wakes in a row, each a short time after the last */
};
/** For a loop that the caller runs; close it with srv_loop_close() on that thread. */
RV_MUST_CHECK int srv_loop_init(struct srv_loop *loop, uv_loop_t *uv, rv_err **err);
/** With a loop of its own, for a thread that srv_loop_go() starts. */
RV_MUST_CHECK int srv_loop_open(struct srv_loop *loop, rv_err **err);
RV_MUST_CHECK int srv_loop_go(struct srv_loop *loop, rv_err **err);
/** Any thread; takes the message. */
void srv_loop_post(struct srv_loop *loop, struct srv_message *message);
void srv_loop_hurry(struct srv_loop *loop); /* no is_pausing for some time; on its thread */
void srv_loop_read(struct srv_loop *loop);  /* open what has come, on its thread, or when that has ended */
void srv_loop_close(struct srv_loop *loop); /* on its thread: its handle goes, and messages wake it no more */
void srv_loop_join(struct srv_loop *loop);  /* waits until the loop of its thread has nothing left */
void srv_loop_fini(struct srv_loop *loop);  /* its own loop goes */

/* --- What a producer is told of its stream, see server_internal.h --- */
struct srv_stream;
enum srv_word_of { SRV_WORD_GONE, SRV_WORD_DRAIN, SRV_WORD_STOP, SRV_N_WORDS };
struct srv_word {               /* to the producer; a part of its stream, so that none is lost where memory is short */
    struct srv_message message; /* the first member */
    struct srv_stream *st;      /* borrowed: a message that waits has a reference */
    atomic_bool is_told;        /* it waits in the producer's loop: what is told again meanwhile is told once */
};

#endif
