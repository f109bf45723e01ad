/* Messages to subscribers inside of a process.
 *
 * A message has a type, which is a name, and a text. Every subscriber of the type gets it; no subscriber is fine. A
 * subscriber gets its messages in the order in which they were published, one at a time: the next one when it has
 * reported the end of the one before. Publishing never fails and never waits: what goes wrong is told to the log. */
#ifndef RV_BUS_H
#define RV_BUS_H

#include "coreengine/base/base.h"

#define RV_BUS_MAX_QUEUE       1024              /* messages that wait for one subscriber */
#define RV_BUS_MAX_QUEUE_BYTES ((size_t)8 << 20) /* and their texts together */
#define RV_BUS_MAX_DEPTH       8                 /* of messages that are published while one is handed over */
#define RV_BUS_FAILURES        5                 /* in a row of one type that open its breaker */
#define RV_BUS_RESET_US        INT64_C(30000000) /* after the last failure, until one message is let through */

typedef struct rv_bus rv_bus; /* one thread */

struct rv_bus_sub {
    const char *name;         /* for the log; copied */
    const char *const *types; /* that it gets; copied */
    size_t n_types;           /* 0: all */
    int64_t timeout_us;       /* for one message; 0: none */
    /** Take a message (borrowed for the call). Call rv_bus_settled() when it is done, also from within. May publish,
     * subscribe and unsubscribe. Negative: refused; rv_bus_settled() must not be called then. */
    int (*deliver)(void *self, uint64_t sub, const char *type, rv_str text, rv_err **err);
    /** The message under way is waited for no longer: rv_bus_settled() must not be called for it. May be NULL. */
    void (*give_up)(void *self);
    void *self;
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
void rv_bus_settled(rv_bus *b, uint64_t id, const rv_err *why);
/** Give up messages whose time is over. */
void rv_bus_tend(rv_bus *b);
/** No message waits or is under way. */
bool rv_bus_is_idle(const rv_bus *b);
/** What a subscription has come to. False: there is none of that id. */
struct rv_bus_counts {
    int64_t taken, failed, dropped, blocked; /* messages; blocked: by a breaker */
};
bool rv_bus_counts(const rv_bus *b, uint64_t id, struct rv_bus_counts *out);

#endif
