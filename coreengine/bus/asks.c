/* Commands and queries: one handler for each type, asks under way, and the middleware around all messages. */
#include "coreengine/bus/bus_internal.h"

#include <stdlib.h>
#include <string.h>

struct rv_bus_handling {
    char *type; /* owned */
    struct rv_bus_handler how;
};
struct rv_bus_ask {
    struct rv_bus_ask *next;
    uint64_t id;
    struct rv_bus_question q;
    rv_buf room;                            /* of middleware that replaces the text */
    size_t n_seen;                          /* middleware that let it pass */
    const struct rv_bus_handling *handling; /* NULL: not handed over. Stays where it is while it is asked: see grow() */
    int64_t since_us, until_us;             /* until_us RV_NEVER: no limit */
    int depth;
};

static int64_t now_us(const rv_bus *b)
{
    return b->clock.now_us(b->clock.self);
}

/* --- middleware --- */

int rv_bus_add_middleware(rv_bus *b, const struct rv_bus_middleware *middleware, rv_err **err)
{
    if (b->n_middleware == RV_BUS_MAX_MIDDLEWARE)
        return RV_FAIL(err, RV_E_LIMIT, "a message bus takes %d parts of middleware", RV_BUS_MAX_MIDDLEWARE);
    b->middleware[b->n_middleware++] = *middleware;
    return 0;
}

int bus_before(rv_bus *b, struct rv_bus_message *m, rv_buf *room, size_t *n_seen, rv_err **err)
{
    int rc = 0;

    for (*n_seen = 0; *n_seen < b->n_middleware && rc == 0; *n_seen += rc == 0) {
        const struct rv_bus_middleware *w = &b->middleware[*n_seen];
        rc = w->before ? w->before(w->self, m, room, err) : 0;
        if (rc == 0)
            rc = rv_buf_check(room, "a message that was replaced", err);
    }
    return rc;
}

void bus_after(rv_bus *b, const struct rv_bus_message *m, size_t n_seen, struct rv_bus_outcome *o)
{
    while (n_seen-- > 0)
        if (b->middleware[n_seen].after)
            b->middleware[n_seen].after(b->middleware[n_seen].self, m, o);
}

/* --- handlers --- */

static const struct rv_bus_handling *handling_of(const rv_bus *b, const char *type)
{
    for (size_t i = 0; i < b->n_handlers; i++)
        if (strcmp(b->handlers[i].type, type) == 0)
            return &b->handlers[i];
    return NULL;
}

/* All of them at once: an ask points to its handler. */
static bool grow(rv_bus *b)
{
    if (!b->handlers)
        b->handlers = calloc(RV_BUS_MAX_HANDLERS, sizeof *b->handlers);
    return b->handlers;
}

int rv_bus_register_handler(rv_bus *b, const struct rv_bus_handler *handler, rv_err **err)
{
    if (handling_of(b, handler->type))
        return RV_FAIL(err, RV_E_EXISTS, "messages of type \"%s\" have a handler", handler->type);
    if (b->n_handlers == RV_BUS_MAX_HANDLERS)
        return RV_FAIL(err, RV_E_LIMIT, "a message bus takes %d handlers", RV_BUS_MAX_HANDLERS);
    char *type = grow(b) ? rv_str_dup(rv_str_of(handler->type)) : NULL;
    if (!type)
        return RV_FAIL(err, RV_E_NOMEM, "add a handler of \"%s\"", handler->type);
    b->handlers[b->n_handlers++] = (struct rv_bus_handling){type, *handler};
    return 0;
}

static int fail_unknown(const rv_bus *b, const char *type, rv_err **err)
{
    const char *known[RV_BUS_MAX_HANDLERS];

    for (size_t i = 0; i < b->n_handlers; i++)
        known[i] = b->handlers[i].type;
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "nothing answers \"%.100s\"", type);
    const char *near = rv_nearest(rv_str_of(type), known, b->n_handlers);
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    return rc;
}

/* --- asks --- */

static void ask_free(struct rv_bus_ask *a)
{
    rv_buf_fini(&a->room);
    free(a);
}

static struct rv_bus_ask **find(rv_bus *b, uint64_t id)
{
    struct rv_bus_ask **at = &b->asks;

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* NULL: it is over already. */
static struct rv_bus_ask *take(rv_bus *b, uint64_t id)
{
    struct rv_bus_ask **at = find(b, id), *a = *at;

    if (!a)
        return NULL;
    *at = a->next;
    b->n_asks--;
    return a;
}

/* Frees a, which is in no list any more; takes why. */
static void end(rv_bus *b, struct rv_bus_ask *a, rv_str text, rv_err *why)
{
    struct rv_bus_outcome o = {.text = text, .why = why, .took_us = now_us(b) - a->since_us};

    bus_after(b, &a->q.message, a->n_seen, &o);
    a->q.done(a->q.self, &o);
    rv_err_free(o.why);
    ask_free(a);
}

void rv_bus_answer(rv_bus *b, uint64_t ask, rv_str text, rv_err *why)
{
    struct rv_bus_ask *a = take(b, ask);

    if (a)
        end(b, a, text, why);
    else
        rv_err_free(why);
}

static void give_up(struct rv_bus_ask *a)
{
    const struct rv_bus_handler *how = a->handling ? &a->handling->how : NULL;

    if (how && how->give_up)
        how->give_up(how->self, a->id);
}

void rv_bus_withdraw(rv_bus *b, uint64_t ask)
{
    struct rv_bus_ask *a = take(b, ask);

    if (!a)
        return;
    give_up(a);
    ask_free(a);
}

static int64_t until(const struct rv_bus_ask *a)
{
    int64_t limit_us = a->handling->how.timeout_us;

    if (a->q.timeout_us > 0 && (limit_us == 0 || a->q.timeout_us < limit_us))
        limit_us = a->q.timeout_us;
    return limit_us > 0 && a->since_us < RV_NEVER - limit_us ? a->since_us + limit_us : RV_NEVER;
}

/* Negative: it did not begin, and is still there. The handler may have answered when this returns. */
static int hand_over(rv_bus *b, struct rv_bus_ask *a, bool *is_over, rv_err **err)
{
    struct rv_bus_message *m = &a->q.message;
    int rc = bus_before(b, m, &a->room, &a->n_seen, err);
    bool is_stopped = rc == 1;

    *is_over = false;
    a->handling = rc == 0 ? handling_of(b, m->type) : NULL;
    if (rc < 0)
        return rc;
    if (!a->handling) {
        *is_over = m->kind == RV_BUS_COMMAND;
        return *is_over     ? 0
               : is_stopped ? RV_FAIL(err, RV_E_NOT_FOUND, "nothing answers \"%.100s\" now", m->type)
                            : fail_unknown(b, m->type, err);
    }
    a->until_us = until(a);
    return a->handling->how.begin(a->handling->how.self, a->id, m, err);
}

int rv_bus_ask(rv_bus *b, const struct rv_bus_question *q, uint64_t *id, rv_err **err)
{
    const struct rv_bus_ask *outer = q->within ? *find(b, q->within) : NULL;
    int depth = outer ? outer->depth + 1 : 0;
    rv_err *why = NULL;
    bool is_over;

    if (b->n_asks == RV_BUS_MAX_ASKS)
        return RV_FAIL(err, RV_E_LIMIT, "\"%.100s\" is not asked: %d asks are under way", q->message.type,
                       RV_BUS_MAX_ASKS);
    if (depth == RV_BUS_MAX_DEPTH)
        return RV_FAIL(err, RV_E_LIMIT, "\"%.100s\" is not asked: it is the %dth ask within another", q->message.type,
                       RV_BUS_MAX_DEPTH);
    struct rv_bus_ask *a = calloc(1, sizeof *a);
    if (!a)
        return RV_FAIL(err, RV_E_NOMEM, "ask \"%.100s\"", q->message.type);
    *a = (struct rv_bus_ask){.next = b->asks,
                             .id = ++b->last_ask,
                             .q = *q,
                             .room = RV_BUF_INIT(RV_BUS_MAX_QUEUE_BYTES),
                             .since_us = now_us(b),
                             .until_us = RV_NEVER,
                             .depth = depth};
    b->asks = a;
    b->n_asks++;
    *id = a->id;
    uint64_t mine = a->id;
    int rc = hand_over(b, a, &is_over, &why);
    if ((rc < 0 || is_over) && (a = take(b, mine)))
        end(b, a, (rv_str){NULL, 0}, why);
    else
        rv_err_free(why);
    return 0;
}

int64_t rv_bus_due_us(const rv_bus *b)
{
    int64_t due_us = RV_NEVER;

    for (const struct rv_bus_ask *a = b->asks; a; a = a->next)
        due_us = a->until_us < due_us ? a->until_us : due_us;
    return due_us;
}

static struct rv_bus_ask *late(const rv_bus *b, int64_t now)
{
    struct rv_bus_ask *a = b->asks;

    while (a && a->until_us > now)
        a = a->next;
    return a;
}

void bus_asks_tick(rv_bus *b)
{
    int64_t now = now_us(b);
    struct rv_bus_ask *a;

    while ((a = late(b, now))) {
        rv_err *why = NULL;
        RV_IGNORE(RV_FAIL(&why, RV_E_TIMEOUT, "\"%s\" was not answered within %lld ms", a->q.message.type,
                          (long long)((a->until_us - a->since_us) / RV_US_PER_MS)),
                  "told");
        RV_IGNORE(!take(b, a->id), "it is there");
        give_up(a);
        end(b, a, (rv_str){NULL, 0}, why);
    }
}

void bus_asks_fini(rv_bus *b)
{
    while (b->asks)
        rv_bus_withdraw(b, b->asks->id);
    for (size_t i = 0; i < b->n_handlers; i++)
        free(b->handlers[i].type);
    free(b->handlers);
}
