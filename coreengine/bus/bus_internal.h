/* Shared by the files of this folder. */
#ifndef RV_BUS_INTERNAL_H
#define RV_BUS_INTERNAL_H

#include "coreengine/bus/bus.h"

#define RV_BUS_MAX_MIDDLEWARE 8 /* each sees every message: an engine has two or three */

struct sub; /* bus.c */
struct rv_bus_ask;
struct rv_bus_handling;

struct rv_bus {
    struct rv_clock clock;
    rv_log *log;      /* borrowed */
    struct sub *subs; /* in the order of subscribing; owned */
    uint64_t last_id;
    int depth;  /* of the message that is handed over */
    int n_busy; /* loops over the list: no member leaves it meanwhile */
    /* asks.c: */
    struct rv_bus_handling *handlers; /* owned */
    size_t n_handlers, cap_handlers;
    struct rv_bus_middleware middleware[RV_BUS_MAX_MIDDLEWARE];
    size_t n_middleware;
    struct rv_bus_ask *asks; /* under way, the newest first; owned */
    size_t n_asks;
    uint64_t last_ask;
};

/** Has the middleware look at a message. *n_seen: how many of them let it pass, for bus_after(). 0: it goes on; 1:
 * it was stopped quietly; negative: it failed. */
RV_MUST_CHECK int bus_before(rv_bus *b, struct rv_bus_message *m, rv_buf *room, size_t *n_seen, rv_err **err);
void bus_after(rv_bus *b, const struct rv_bus_message *m, size_t n_seen, struct rv_bus_outcome *o);
void bus_asks_tick(rv_bus *b); /* gives up asks whose time is over */
void bus_asks_fini(rv_bus *b); /* gives up what is under way, without a word to the askers */

#endif
