/* Subscribers that take, refuse, wait, go away, publish in turn. */
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
};

/* What a subscriber does with each message. */
enum habit { TAKES, WAITS, REFUSES, LEAVES, PUBLISHES, LEAVES_LATE };
struct reader {
    struct world *w;
    enum habit habit;
    uint64_t id, under_way;
    int n_given_up;
    rv_buf got;
};

static void world_open(struct world *w)
{
    rv_kit_log_init(&w->log, RV_LOG_DEBUG, RV_LOG_JSON);
    w->clock = (struct rv_kit_clock){.us = 1000000};
    struct rv_clock clock = rv_kit_clock(&w->clock);
    ck_assert_int_eq(rv_bus_new(&clock, w->log.log, &w->bus, NULL), 0);
}

static void world_close(struct world *w)
{
    rv_bus_free(w->bus);
    rv_kit_log_fini(&w->log);
}

static int deliver(void *self, uint64_t sub, const char *type, rv_str text, rv_err **err)
{
    struct reader *r = self;

    rv_buf_printf(&r->got, "%s%s:%.*s", r->got.len ? " " : "", type, RV_STR_ARG(text));
    r->under_way = sub;
    switch (r->habit) {
    case TAKES:
        rv_bus_settle(r->w->bus, sub, NULL);
        break;
    case WAITS:
        break;
    case REFUSES:
        return RV_FAIL(err, RV_E_TOOL, "no, thank you");
    case LEAVES:
        rv_bus_unsubscribe(r->w->bus, sub);
        rv_bus_unsubscribe(r->w->bus, sub);
        break;
    case LEAVES_LATE:
        rv_bus_unsubscribe(r->w->bus, sub);
        rv_bus_settle(r->w->bus, sub, NULL);
        break;
    case PUBLISHES:
        rv_bus_publish(r->w->bus, "again", text);
        rv_bus_settle(r->w->bus, sub, NULL);
        break;
    }
    return 0;
}

static void give_up(void *self)
{
    struct reader *r = self;

    r->n_given_up++;
}

static void read_on(struct world *w, struct reader *r, const char *name, enum habit habit, const char *const *types,
                    size_t n)
{
    *r = (struct reader){.w = w, .habit = habit, .got = RV_BUF_INIT(1 << 20)};
    const struct rv_bus_sub how = {.name = name,
                                   .types = types,
                                   .n_types = n,
                                   .timeout_us = 1000,
                                   .deliver = deliver,
                                   .give_up = give_up,
                                   .self = r};
    ck_assert_int_eq(rv_bus_subscribe(w->bus, &how, &r->id, NULL), 0);
}

static void got(struct reader *r, const char *want)
{
    ck_assert_str_eq(rv_buf_cstr(&r->got), want);
    rv_buf_fini(&r->got);
}

/* Proves 8.5/publish: An event reaches all subscribers of its type, in order for each; no subscriber is fine, errors
 * are told and not returned, and who publishes waits for none */
START_TEST(all_subscribers_of_a_type_get_it)
{
    static const char *const one[] = {"a"}, *const two[] = {"a", "b"};
    struct reader all, some, slow, bad;
    struct world w;

    world_open(&w);
    rv_bus_publish(w.bus, "a", RV_STR_LIT("0"));
    ck_assert(rv_bus_is_idle(w.bus));
    read_on(&w, &all, "all", TAKES, NULL, 0);
    read_on(&w, &bad, "bad", REFUSES, one, 1);
    read_on(&w, &slow, "slow", WAITS, two, 2);
    read_on(&w, &some, "some", TAKES, one, 1);
    rv_bus_publish(w.bus, "a", RV_STR_LIT("1"));
    rv_bus_publish(w.bus, "b", RV_STR_LIT("2"));
    rv_bus_publish(w.bus, "c", RV_STR_LIT(""));
    ck_assert(!rv_bus_is_idle(w.bus));
    rv_bus_settle(w.bus, slow.under_way, NULL);
    rv_bus_settle(w.bus, slow.under_way, NULL);
    ck_assert(rv_bus_is_idle(w.bus));
    got(&all, "a:1 b:2 c:");
    got(&some, "a:1");
    got(&slow, "a:1 b:2");
    got(&bad, "a:1");
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "no, thank you"));
    world_close(&w);
}
END_TEST

/* Proves 8.5/subscribe: A subscription ends any number of times, also while its subscriber takes a message */
START_TEST(a_subscription_ends_any_number_of_times)
{
    struct reader leaver, late, stays, waits;
    struct world w;

    world_open(&w);
    read_on(&w, &leaver, "leaver", LEAVES, NULL, 0);
    read_on(&w, &late, "late", LEAVES_LATE, NULL, 0);
    read_on(&w, &waits, "waits", WAITS, NULL, 0);
    read_on(&w, &stays, "stays", TAKES, NULL, 0);
    rv_bus_publish(w.bus, "a", RV_STR_LIT("1"));
    rv_bus_publish(w.bus, "a", RV_STR_LIT("2"));
    rv_bus_unsubscribe(w.bus, waits.id);
    rv_bus_unsubscribe(w.bus, waits.id);
    rv_bus_settle(w.bus, waits.id, NULL); /* too late: nothing */
    rv_bus_unsubscribe(w.bus, 0);
    rv_bus_unsubscribe(w.bus, 99);
    ck_assert_int_eq(leaver.n_given_up, 1);
    ck_assert_int_eq(late.n_given_up, 0);
    ck_assert_int_eq(waits.n_given_up, 1);
    ck_assert(rv_bus_is_idle(w.bus));
    got(&leaver, "a:1");
    got(&late, "a:1");
    got(&waits, "a:1");
    got(&stays, "a:1 a:2");
    ck_assert(!rv_bus_find_counts(w.bus, leaver.id, &(struct rv_bus_counts){0}));
    world_close(&w);
}
END_TEST

/* Proves W47: Types are names, and failures count for each of them while they follow each other; an open breaker lets
 * one message through after its time, and is told as what it is */
START_TEST(one_that_fails_is_left_alone_for_a_while)
{
    struct rv_bus_counts c;
    struct reader bad;
    struct world w;

    world_open(&w);
    read_on(&w, &bad, "bad", REFUSES, NULL, 0);
    for (int i = 0; i < RV_BUS_FAILURES - 1; i++)
        rv_bus_publish(w.bus, "a", RV_STR_LIT(""));
    bad.habit = TAKES; /* a success in between: the count begins again */
    rv_bus_publish(w.bus, "a", RV_STR_LIT(""));
    bad.habit = REFUSES;
    for (int i = 0; i < RV_BUS_FAILURES + 3; i++)
        rv_bus_publish(w.bus, "a", RV_STR_LIT(""));
    ck_assert(rv_bus_find_counts(w.bus, bad.id, &c));
    ck_assert_int_eq(c.failed, 2 * RV_BUS_FAILURES - 1);
    ck_assert_int_eq(c.blocked, 3);
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "subscriber.blocked"));
    rv_bus_publish(w.bus, "b", RV_STR_LIT("")); /* another type has its own */
    ck_assert(rv_bus_find_counts(w.bus, bad.id, &c));
    ck_assert_int_eq(c.failed, 2 * RV_BUS_FAILURES);
    w.clock.us += RV_BUS_RESET_US;
    bad.habit = WAITS; /* one goes through; those behind it wait for its end */
    rv_bus_publish(w.bus, "a", RV_STR_LIT("probe"));
    rv_bus_publish(w.bus, "a", RV_STR_LIT("next"));
    bad.habit = REFUSES;
    rv_err *why = NULL;
    RV_IGNORE(RV_FAIL(&why, RV_E_TOOL, "no"), "made to be counted");
    rv_bus_settle(w.bus, bad.under_way, why);
    rv_err_free(why);
    ck_assert(rv_bus_find_counts(w.bus, bad.id, &c));
    ck_assert_int_eq(c.blocked, 4); /* the failure opened it again */
    w.clock.us += RV_BUS_RESET_US;
    bad.habit = TAKES;
    rv_bus_publish(w.bus, "a", RV_STR_LIT(""));
    rv_bus_publish(w.bus, "a", RV_STR_LIT(""));
    ck_assert(rv_bus_find_counts(w.bus, bad.id, &c));
    ck_assert_int_eq(c.taken, 3);
    ck_assert_int_eq(c.blocked, 4);
    rv_buf_fini(&bad.got);
    world_close(&w);
}
END_TEST

/* Those that failed before, and are fine or forgotten, keep no place. */
START_TEST(one_type_of_many_that_fail_is_left_alone)
{
    struct rv_bus_counts c;
    struct reader bad;
    struct world w;
    char type[32];

    world_open(&w);
    read_on(&w, &bad, "bad", REFUSES, NULL, 0);
    for (int i = 0; i < 100; i++) {
        snprintf(type, sizeof type, "type%d", i);
        rv_bus_publish(w.bus, type, RV_STR_LIT(""));
        w.clock.us++;
    }
    for (int i = 0; i < RV_BUS_FAILURES + 3; i++)
        rv_bus_publish(w.bus, "a", RV_STR_LIT(""));
    ck_assert(rv_bus_find_counts(w.bus, bad.id, &c));
    ck_assert_int_eq(c.blocked, 3);
    rv_buf_fini(&bad.got);
    world_close(&w);
}
END_TEST

START_TEST(one_that_does_not_answer_is_given_up)
{
    struct rv_bus_counts c;
    struct reader slow;
    struct world w;

    world_open(&w);
    read_on(&w, &slow, "slow", WAITS, NULL, 0);
    rv_bus_publish(w.bus, "a", RV_STR_LIT("1"));
    rv_bus_publish(w.bus, "a", RV_STR_LIT("2"));
    w.clock.us += 999;
    rv_bus_tick(w.bus);
    ck_assert_int_eq(slow.n_given_up, 0);
    ck_assert(rv_bus_find_counts(w.bus, slow.id, &c));
    ck_assert_int_eq(c.waiting, 2);
    w.clock.us += 1;
    rv_bus_tick(w.bus);
    ck_assert_int_eq(slow.n_given_up, 1);
    ck_assert(rv_bus_find_counts(w.bus, slow.id, &c));
    ck_assert_int_eq(c.failed, 1);
    ck_assert_int_eq(c.waiting, 1);
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "did not take a message within 1 ms"));
    got(&slow, "a:1 a:2");
    world_close(&w);
}
END_TEST

/* A message that is published while one is handed over is deeper than that: a loop of them ends. */
START_TEST(messages_that_lead_to_messages_end)
{
    struct rv_bus_counts c;
    struct reader loop, other;
    struct world w;

    world_open(&w);
    read_on(&w, &loop, "loop", PUBLISHES, NULL, 0);
    read_on(&w, &other, "other", PUBLISHES, NULL, 0);
    rv_bus_publish(w.bus, "a", RV_STR_LIT("1"));
    ck_assert(rv_bus_is_idle(w.bus));
    ck_assert(rv_bus_find_counts(w.bus, loop.id, &c));
    ck_assert_int_gt(c.dropped, 0);
    ck_assert_int_ge(c.taken, RV_BUS_MAX_DEPTH);
    ck_assert_ptr_nonnull(rv_kit_log_find(&w.log, "subscriber.dropped"));
    rv_buf_fini(&loop.got);
    rv_buf_fini(&other.got);
    world_close(&w);
}
END_TEST

static size_t n_drops_told(const struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->log.n_lines; i++)
        n += strstr(w->log.lines[i], "subscriber.dropped") != NULL;
    return n;
}

START_TEST(a_queue_has_a_bound)
{
    char *text = calloc(1, RV_BUS_MAX_QUEUE_BYTES);
    struct rv_bus_counts c;
    struct reader slow;
    struct world w;

    ck_assert_ptr_nonnull(text);
    world_open(&w);
    read_on(&w, &slow, "slow", WAITS, NULL, 0);
    rv_bus_publish(w.bus, "a", RV_STR_LIT("under way"));
    for (int i = 0; i < RV_BUS_MAX_QUEUE + 2; i++)
        rv_bus_publish(w.bus, "a", RV_STR_LIT("x"));
    ck_assert(rv_bus_find_counts(w.bus, slow.id, &c));
    ck_assert_int_eq(c.dropped, 2);
    ck_assert_uint_eq(n_drops_told(&w), 1);
    w.clock.us += RV_BUS_RESET_US; /* a later loss is told again */
    rv_bus_publish(w.bus, "a", RV_STR_LIT("x"));
    ck_assert_uint_eq(n_drops_told(&w), 2);
    rv_bus_unsubscribe(w.bus, slow.id);
    rv_buf_fini(&slow.got);
    read_on(&w, &slow, "slow", WAITS, NULL, 0);
    rv_bus_publish(w.bus, "a", RV_STR_LIT("under way"));
    rv_bus_publish(w.bus, "a", (rv_str){text, RV_BUS_MAX_QUEUE_BYTES});
    rv_bus_publish(w.bus, "a", RV_STR_LIT("y"));
    ck_assert(rv_bus_find_counts(w.bus, slow.id, &c));
    ck_assert_int_eq(c.dropped, 1);
    rv_buf_fini(&slow.got);
    world_close(&w);
    free(text);
}
END_TEST

TCase *bus_case(void)
{
    TCase *tc = tcase_create("bus");

    tcase_add_test(tc, all_subscribers_of_a_type_get_it);
    tcase_add_test(tc, a_subscription_ends_any_number_of_times);
    tcase_add_test(tc, one_that_fails_is_left_alone_for_a_while);
    tcase_add_test(tc, one_type_of_many_that_fail_is_left_alone);
    tcase_add_test(tc, one_that_does_not_answer_is_given_up);
    tcase_add_test(tc, messages_that_lead_to_messages_end);
    tcase_add_test(tc, a_queue_has_a_bound);
    return tc;
}
