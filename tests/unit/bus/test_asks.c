/* Commands and queries: one handler for each type, answers at once and later, time, bounds; middleware around all. */
#include "coreengine/bus/bus.h"
#include "tests/kit/kit.h"
#include "tests/unit/bus/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
    struct rv_kit_log log;
    struct rv_kit_clock clock;
    rv_bus *bus;
    char seen[1000]; /* what middleware, handlers and askers did */
};

static void world_open(struct world *w)
{
    *w = (struct world){.clock = {.us = 1000000}};
    rv_kit_log_init(&w->log, RV_LOG_DEBUG, RV_LOG_JSON);
    struct rv_clock clock = rv_kit_clock(&w->clock);
    ck_assert_int_eq(rv_bus_new(&clock, w->log.log, &w->bus, NULL), 0);
}

static void world_close(struct world *w)
{
    rv_bus_free(w->bus);
    rv_kit_log_fini(&w->log);
}

static void see(struct world *w, const char *what, const char *more)
{
    size_t n = strlen(w->seen);

    snprintf(w->seen + n, sizeof w->seen - n, "%s%s%s%s", n ? " " : "", what, more ? ":" : "", more ? more : "");
}

/* --- handlers --- */

enum habit { ANSWERS, WAITS, REFUSES, FAILS, ASKS_ITSELF };
struct handler {
    struct world *w;
    enum habit habit;
    uint64_t ask; /* the last one */
    int n_given_up;
    int n_refused; /* of its own asks */
};

static void answered(void *self, struct rv_bus_outcome *o)
{
    char text[200];

    snprintf(text, sizeof text, "%s(%.*s)", o->why ? rv_code_text(rv_err_code(o->why)) : "ok", RV_STR_ARG(o->text));
    see(self, text, NULL);
}

static int ask_as(struct world *w, enum rv_bus_kind kind, const char *type, const char *text, uint64_t within,
                  uint64_t *id, rv_err **err)
{
    const struct rv_bus_question q = {.message = {.kind = kind, .type = type, .text = rv_str_of(text)},
                                      .within = within,
                                      .done = answered,
                                      .self = w};

    return rv_bus_ask(w->bus, &q, id, err);
}

static uint64_t ask(struct world *w, const char *type, const char *text)
{
    uint64_t id = 0;

    ck_assert_int_eq(ask_as(w, RV_BUS_QUERY, type, text, 0, &id, NULL), 0);
    return id;
}

static int begin(void *self, uint64_t id, const struct rv_bus_message *m, rv_err **err)
{
    struct handler *h = self;
    rv_err *why = NULL;
    uint64_t inner;

    h->ask = id;
    switch (h->habit) {
    case ANSWERS:
        rv_bus_answer(h->w->bus, id, m->text, NULL);
        break;
    case WAITS:
        break;
    case REFUSES:
        return RV_FAIL(err, RV_E_INVALID, "no");
    case FAILS:
        RV_IGNORE(RV_FAIL(&why, RV_E_TOOL, "it broke"), "told");
        rv_bus_answer(h->w->bus, id, m->text, why);
        break;
    case ASKS_ITSELF:
        if (ask_as(h->w, RV_BUS_QUERY, m->type, "x", id, &inner, NULL) == RV_E_LIMIT)
            h->n_refused++;
        rv_bus_answer(h->w->bus, id, RV_STR_LIT("end"), NULL);
        break;
    }
    return 0;
}

static void give_up(void *self, uint64_t id)
{
    struct handler *h = self;

    ck_assert_uint_ne(id, 0);
    h->n_given_up++;
}

static int try_handle(struct world *w, struct handler *h, const char *type, enum habit habit, rv_err **err)
{
    *h = (struct handler){.w = w, .habit = habit};
    const struct rv_bus_handler how = {.type = type, .timeout_us = 1000, .begin = begin, .give_up = give_up, .self = h};
    return rv_bus_register_handler(w->bus, &how, err);
}

static void handle(struct world *w, struct handler *h, const char *type, enum habit habit)
{
    ck_assert_int_eq(try_handle(w, h, type, habit, NULL), 0);
}

/* Proves 8.5/query: A query is answered by the one handler of its type, at once or later, or fails: without a handler,
 * with the nearest type, when the handler fails, and when the time of the bus is over */
START_TEST(a_query_gets_one_answer)
{
    struct handler now, later, refuses, fails;
    struct world w;

    world_open(&w);
    handle(&w, &now, "now", ANSWERS);
    handle(&w, &later, "later", WAITS);
    handle(&w, &refuses, "refuses", REFUSES);
    handle(&w, &fails, "fails", FAILS);
    ask(&w, "now", "1");
    ask(&w, "later", "2");
    rv_bus_answer(w.bus, later.ask, RV_STR_LIT("two"), NULL);
    rv_bus_answer(w.bus, later.ask, RV_STR_LIT("again"), NULL); /* it is over */
    ask(&w, "refuses", "3");
    ask(&w, "fails", "4");
    ask(&w, "nwo", "5");
    ck_assert_str_eq(w.seen, "ok(1) ok(two) invalid_argument() tool_error(4) not_found()");
    ck_assert_int_eq(rv_bus_due_us(w.bus), INT64_MAX);
    world_close(&w);
}
END_TEST

static void wants_hint(void *self, struct rv_bus_outcome *o)
{
    rv_err **why = self;

    *why = o->why; /* the asker may take it */
    o->why = NULL;
}

START_TEST(an_unknown_type_is_told_with_the_nearest_one)
{
    struct handler h;
    struct world w;
    rv_err *why = NULL;
    uint64_t id;

    world_open(&w);
    handle(&w, &h, "engine.health", ANSWERS);
    const struct rv_bus_question q = {
        .message = {.kind = RV_BUS_QUERY, .type = "engine.heatlh"}, .done = wants_hint, .self = &why};
    ck_assert_int_eq(rv_bus_ask(w.bus, &q, &id, NULL), 0);
    ck_assert_int_eq(rv_err_code(why), RV_E_NOT_FOUND);
    ck_assert_str_eq(rv_err_hint_text(why), "did you mean \"engine.health\"?");
    rv_err_free(why);
    world_close(&w);
}
END_TEST

START_TEST(a_query_that_takes_too_long_is_over)
{
    struct handler h;
    struct world w;
    uint64_t id;

    world_open(&w);
    handle(&w, &h, "slow", WAITS);
    ask(&w, "slow", "1");
    const struct rv_bus_question q = {
        .message = {.kind = RV_BUS_QUERY, .type = "slow"}, .timeout_us = 400, .done = answered, .self = &w};
    ck_assert_int_eq(rv_bus_ask(w.bus, &q, &id, NULL), 0);
    ck_assert_int_eq(rv_bus_due_us(w.bus), 1000400);
    w.clock.us += 399;
    rv_bus_tick(w.bus);
    ck_assert_str_eq(w.seen, "");
    w.clock.us += 1;
    rv_bus_tick(w.bus);
    ck_assert_str_eq(w.seen, "timeout()");
    ck_assert_int_eq(rv_bus_due_us(w.bus), 1001000);
    w.clock.us += 600;
    rv_bus_tick(w.bus);
    ck_assert_str_eq(w.seen, "timeout() timeout()");
    ck_assert_int_eq(h.n_given_up, 2);
    rv_bus_answer(w.bus, h.ask, RV_STR_LIT("late"), NULL);
    ck_assert_str_eq(w.seen, "timeout() timeout()");
    world_close(&w);
}
END_TEST

/* Proves 8.5/send: A command goes to its one handler, whose error is returned; without a handler nothing happens,
 * without an error */
START_TEST(a_command_is_done_or_failed)
{
    struct handler does, fails;
    struct world w;
    uint64_t id;

    world_open(&w);
    handle(&w, &does, "do", ANSWERS);
    handle(&w, &fails, "fail", FAILS);
    ck_assert_int_eq(ask_as(&w, RV_BUS_COMMAND, "do", "", 0, &id, NULL), 0);
    ck_assert_int_eq(ask_as(&w, RV_BUS_COMMAND, "fail", "", 0, &id, NULL), 0);
    ck_assert_int_eq(ask_as(&w, RV_BUS_COMMAND, "unheard", "", 0, &id, NULL), 0);
    ck_assert_str_eq(w.seen, "ok() tool_error() ok()");
    world_close(&w);
}
END_TEST

/* Proves 8.5/handler: A type has one handler; a second one is an error */
START_TEST(a_second_handler_is_refused)
{
    struct handler one, two;
    struct world w;
    rv_err *err = NULL;
    char type[20];

    world_open(&w);
    handle(&w, &one, "a", ANSWERS);
    ck_assert_int_eq(try_handle(&w, &two, "a", WAITS, &err), RV_E_EXISTS);
    ck_assert_str_eq(rv_err_text(err), "messages of type \"a\" have a handler");
    rv_err_free(err);
    ask(&w, "a", "1");
    ck_assert_str_eq(w.seen, "ok(1)");
    for (int i = 1; i < RV_BUS_MAX_HANDLERS; i++) {
        snprintf(type, sizeof type, "t%d", i);
        handle(&w, &two, type, ANSWERS);
    }
    ck_assert_int_eq(try_handle(&w, &two, "more", WAITS, NULL), RV_E_LIMIT);
    world_close(&w);
}
END_TEST

START_TEST(asks_within_asks_and_asks_at_once_are_bounded)
{
    struct handler deep, slow;
    struct world w;
    uint64_t id;

    world_open(&w);
    handle(&w, &deep, "deep", ASKS_ITSELF);
    handle(&w, &slow, "slow", WAITS);
    ask(&w, "deep", "x");
    ck_assert_int_eq(deep.n_refused, 1);
    for (int i = 0; i < RV_BUS_MAX_ASKS; i++)
        ask(&w, "slow", "x");
    ck_assert_int_eq(ask_as(&w, RV_BUS_QUERY, "slow", "x", 0, &id, NULL), RV_E_LIMIT);
    rv_bus_withdraw(w.bus, slow.ask);
    rv_bus_withdraw(w.bus, slow.ask);
    ck_assert_int_eq(slow.n_given_up, 1);
    ask(&w, "slow", "x");
    rv_bus_free(w.bus); /* gives up all the others, and tells no asker */
    ck_assert_int_eq(slow.n_given_up, 1 + RV_BUS_MAX_ASKS);
    rv_kit_log_fini(&w.log);
}
END_TEST

/* --- middleware --- */

struct ware {
    struct world *w;
    const char *name;
    const char *stops, *fails, *replaces; /* messages of that type */
    bool mends;                           /* errors become the text "mended" */
};

static int before(void *self, struct rv_bus_message *m, rv_buf *room, rv_err **err)
{
    struct ware *a = self;

    see(a->w, a->name, "before");
    if (a->stops && strcmp(a->stops, m->type) == 0)
        return 1;
    if (a->fails && strcmp(a->fails, m->type) == 0)
        return RV_FAIL(err, RV_E_DENIED, "not for you");
    if (a->replaces && strcmp(a->replaces, m->type) == 0) {
        rv_buf_printf(room, "<%.*s>", RV_STR_ARG(m->text));
        m->text = rv_buf_str(room);
    }
    return 0;
}

static void after(void *self, const struct rv_bus_message *m, struct rv_bus_outcome *o)
{
    struct ware *a = self;

    (void)m;
    see(a->w, a->name, o->why ? "error" : "after");
    if (a->mends && o->why) {
        rv_err_free(o->why);
        o->why = NULL;
        o->text = RV_STR_LIT("mended");
    }
}

static int deliver(void *self, uint64_t sub, const char *type, rv_str text, rv_err **err)
{
    struct world *w = self;
    char got[100];

    (void)err;
    snprintf(got, sizeof got, "%.*s", RV_STR_ARG(text));
    see(w, type, got);
    rv_bus_settle(w->bus, sub, NULL);
    return 0;
}

static const struct {
    enum rv_bus_kind kind;
    const char *type, *seen;
} passing[] = {
    {RV_BUS_QUERY, "plain", "a:before b:before b:after a:after ok(x)"},
    {RV_BUS_QUERY, "replaced", "a:before b:before b:after a:after ok(<x>)"},
    {RV_BUS_QUERY, "stopped", "a:before b:before a:error ok(mended)"},
    {RV_BUS_QUERY, "denied", "a:before b:before a:error ok(mended)"},
    {RV_BUS_QUERY, "unknown", "a:before b:before b:error a:error ok(mended)"},
    {RV_BUS_COMMAND, "stopped", "a:before b:before a:after ok()"},
    {RV_BUS_COMMAND, "denied", "a:before b:before a:error ok(mended)"},
    {RV_BUS_EVENT, "plain", "a:before b:before plain:x b:after a:after"},
    {RV_BUS_EVENT, "replaced", "a:before b:before replaced:<x> b:after a:after"},
    {RV_BUS_EVENT, "stopped", "a:before b:before a:after"},
    {RV_BUS_EVENT, "denied", "a:before b:before a:error"},
};

/* Proves 8.5/middleware: Middleware sees messages in order before they are handed over, and may replace, stop or refuse
 * them; it sees outcomes in reverse order, and may replace them. Stopped is quiet for events and commands, and no
 * handler for a query */
START_TEST(middleware_stands_around_each_message)
{
    struct ware a, b;
    struct handler h[3];
    struct world w;
    uint64_t id;

    world_open(&w);
    a = (struct ware){.w = &w, .name = "a", .mends = true};
    b = (struct ware){.w = &w, .name = "b", .stops = "stopped", .fails = "denied", .replaces = "replaced"};
    const struct rv_bus_middleware wares[] = {{before, after, &a}, {before, after, &b}};
    for (size_t i = 0; i < RV_COUNT(wares); i++)
        ck_assert_int_eq(rv_bus_add_middleware(w.bus, &wares[i], NULL), 0);
    handle(&w, &h[0], "plain", ANSWERS);
    handle(&w, &h[1], "replaced", ANSWERS);
    handle(&w, &h[2], "stopped", ANSWERS);
    const struct rv_bus_sub sub = {.name = "s", .deliver = deliver, .self = &w};
    ck_assert_int_eq(rv_bus_subscribe(w.bus, &sub, &id, NULL), 0);
    if (passing[_i].kind == RV_BUS_EVENT)
        rv_bus_publish(w.bus, passing[_i].type, RV_STR_LIT("x"));
    else
        ck_assert_int_eq(ask_as(&w, passing[_i].kind, passing[_i].type, "x", 0, &id, NULL), 0);
    ck_assert_str_eq(w.seen, passing[_i].seen);
    world_close(&w);
}
END_TEST

START_TEST(middleware_is_bounded_and_may_have_one_side_only)
{
    const struct rv_bus_middleware none = {0};
    struct handler h;
    struct world w;

    world_open(&w);
    handle(&w, &h, "a", ANSWERS);
    int n = 0;
    while (rv_bus_add_middleware(w.bus, &none, NULL) == 0)
        n++;
    ck_assert_int_eq(n, 8);
    ask(&w, "a", "1");
    ck_assert_str_eq(w.seen, "ok(1)");
    world_close(&w);
}
END_TEST

TCase *asks_case(void)
{
    TCase *tc = tcase_create("asks");

    tcase_add_test(tc, a_query_gets_one_answer);
    tcase_add_test(tc, an_unknown_type_is_told_with_the_nearest_one);
    tcase_add_test(tc, a_query_that_takes_too_long_is_over);
    tcase_add_test(tc, a_command_is_done_or_failed);
    tcase_add_test(tc, a_second_handler_is_refused);
    tcase_add_test(tc, asks_within_asks_and_asks_at_once_are_bounded);
    tcase_add_loop_test(tc, middleware_stands_around_each_message, 0, RV_COUNT(passing));
    tcase_add_test(tc, middleware_is_bounded_and_may_have_one_side_only);
    return tc;
}
