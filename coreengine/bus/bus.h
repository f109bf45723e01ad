/* Messages inside of a process: events, commands and queries.
 *
 * A message has a type, which is a name, and a text. Every subscriber of the type gets an event; no subscriber is fine.
 * A subscriber gets its messages in the order in which they were published, one at a time: the next one when it has
 * reported the end of the one before. Publishing never fails and never waits: what goes wrong is told to the log.
 *
 * A query goes to the one handler of its type, which answers from within or later. A command is a query without an
 * answer, for which no handler is fine, too. Middleware sees messages before they are handed over, and outcomes. */
#ifndef RV_BUS_H
#define RV_BUS_H

#include "coreengine/base/base.h"

#define RV_BUS_MAX_QUEUE       1024               /* that wait for one subscriber: a slow one must not fill memory */
#define RV_BUS_MAX_QUEUE_BYTES ((size_t)8 << 20)  /* bytes of their texts together: the same */
#define RV_BUS_MAX_DEPTH       8                  /* of messages published while one is handed over: a circle ends */
#define RV_BUS_FAILURES        5                  /* in a row of one type that open its breaker */
#define RV_BUS_RESET_US        (30 * RV_US_PER_S) /* after the last failure, until one message is let through */

typedef struct rv_bus rv_bus; /* one thread */

struct rv_bus_sub {
    const char *name;         /* for the log; copied */
    const char *const *types; /* that it gets; copied */
    size_t n_types;           /* 0: all */
    int64_t timeout_us;       /* for one message; 0: none */
    /** Take a message (borrowed for the call). Call rv_bus_settle() when it is done, also from within. May publish,
     * subscribe and unsubscribe. Negative: refused; rv_bus_settle() must not be called then. */
    int (*deliver)(void *self, uint64_t sub, const char *type, rv_str text, rv_err **err);
    /** The message under way is waited for no longer: rv_bus_settle() must not be called for it. May be NULL. */
    void (*give_up)(void *self);
    void *self; /* borrowed; outlives the subscription */
};

/** clock: only now_us is used. log: borrowed; may be NULL. */
RV_MUST_CHECK int rv_bus_new(const struct rv_clock *clock, rv_log *log, rv_bus **out, rv_err **err);
void rv_bus_free(rv_bus *b); /* gives up what is under way; not from a subscriber. NULL is fine */
/** *id: of the subscription, never 0 and never the same again. */
RV_MUST_CHECK int rv_bus_subscribe(rv_bus *b, const struct rv_bus_sub *sub, uint64_t *id, rv_err **err);
/** Any number of times, also while it takes a message: it gets no other. */
void rv_bus_unsubscribe(rv_bus *b, uint64_t id);
/** A message to all subscribers of the type. One that is published while RV_BUS_MAX_DEPTH others are handed over within
 * each other is dropped, as is one for which a queue has no room. */
void rv_bus_publish(rv_bus *b, const char *type, rv_str text);
/** The message that the subscriber has is done. why NULL: well; else why not (borrowed). */
void rv_bus_settle(rv_bus *b, uint64_t id, const rv_err *why);
/** Drop messages whose deadline has passed. */
void rv_bus_tick(rv_bus *b);
/** No message waits or is under way. */
bool rv_bus_is_idle(const rv_bus *b);
/** What a subscription has come to. False: there is none of that id. */
struct rv_bus_counts {
    int64_t taken, failed, dropped, blocked; /* messages; blocked: by a breaker */
    int64_t waiting;                         /* just now, with the one that is under way */
};
bool rv_bus_find_counts(const rv_bus *b, uint64_t id, struct rv_bus_counts *out);

/* --- commands and queries: asks.c --- */

#define RV_BUS_MAX_HANDLERS 256  /* of one bus; an engine has one for each service */
#define RV_BUS_MAX_ASKS     1024 /* under way at once: an answer that never comes must not fill the memory */

enum rv_bus_kind { RV_BUS_EVENT, RV_BUS_COMMAND, RV_BUS_QUERY };
/* What it points to is borrowed for the call that passes it. */
struct rv_bus_message {
    enum rv_bus_kind kind;
    const char *type;
    rv_str text;
    const void *about; /* what the asker says of itself; borrowed; NULL: nothing */
};
struct rv_bus_outcome {
    rv_str text;     /* of a query that went well */
    rv_err *why;     /* NULL: it went well; owned by the outcome */
    int64_t took_us; /* since it was asked */
};

/* Who answers. */
struct rv_bus_handler {
    const char *type;   /* copied */
    int64_t timeout_us; /* for one answer; 0: none */
    /** Begin to answer: rv_bus_answer() follows once, from within or later. What m points to lives until then. May ask
     * and publish. Negative: it failed, and rv_bus_answer() must not be called. */
    int (*begin)(void *self, uint64_t ask, const struct rv_bus_message *m, rv_err **err);
    /** The answer is not wanted any more: rv_bus_answer() has no effect from now on. May be NULL. */
    void (*give_up)(void *self, uint64_t ask);
    void *self; /* borrowed; outlives the bus */
};
/** A handler for a type, for as long as the bus lives. RV_E_EXISTS: it has one; RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int rv_bus_register_handler(rv_bus *b, const struct rv_bus_handler *handler, rv_err **err);

struct rv_bus_question {
    struct rv_bus_message message; /* its texts and `about` are borrowed until `done` */
    int64_t timeout_us;            /* the shorter of this and the handler's counts; 0: the handler's */
    uint64_t within;               /* the ask that this one serves; 0: none */
    /** The end, once, also from within rv_bus_ask(). It may take o->why, and leave NULL. Errors: RV_E_NOT_FOUND (no
     * handler; the hint has the nearest type), RV_E_TIMEOUT, what the handler or middleware says. */
    void (*done)(void *self, struct rv_bus_outcome *o);
    void *self; /* borrowed until the answer */
};
/** Ask a query, or send a command. *id: for rv_bus_withdraw(); set before `done` comes. Negative: `done` does not come:
 * RV_E_LIMIT (RV_BUS_MAX_ASKS are under way, or RV_BUS_MAX_DEPTH within each other), RV_E_NOMEM. */
RV_MUST_CHECK int rv_bus_ask(rv_bus *b, const struct rv_bus_question *q, uint64_t *id, rv_err **err);
/** The answer of a handler. why: NULL, or why there is none; taken. Nothing happens if no answer is wanted. */
void rv_bus_answer(rv_bus *b, uint64_t ask, rv_str text, rv_err *why);
/** The asker does not want the answer any more: `done` does not come. Nothing happens to one that is over. */
void rv_bus_withdraw(rv_bus *b, uint64_t ask);
int64_t rv_bus_due_us(const rv_bus *b); /* when rv_bus_tick() ends the next ask; RV_NEVER: never */

/* What sees all messages. The first one that was added is the first before and the last after. */
struct rv_bus_middleware {
    /** m->text may be replaced by a text in room (empty, owned by the message). 0: it goes on. 1: it is stopped: an
     * event or a command is over without an error, a query finds no handler. Negative: it fails. May be NULL. */
    int (*before)(void *self, struct rv_bus_message *m, rv_buf *room, rv_err **err);
    /** May replace the text (by one that lives as long as the handler's) and the error. Not for a message that its
     * `before` did not let pass. Of an event: it was handed out. May be NULL. */
    void (*after)(void *self, const struct rv_bus_message *m, struct rv_bus_outcome *o);
    void *self; /* borrowed; outlives the bus */
};
/** RV_E_LIMIT: there are too many. */
RV_MUST_CHECK int rv_bus_add_middleware(rv_bus *b, const struct rv_bus_middleware *middleware, rv_err **err);

#endif
