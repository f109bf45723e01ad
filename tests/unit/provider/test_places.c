/* max_concurrent: never more than that at once, first come first served, and every place comes back. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/provider/provider_internal.h"
#include "tests/unit/provider/suites.h"
#include "tests/unit/provider/world.h"

static const struct answer good = {.status = 200};

/* Proves 12.3/places: No more at once than there are places, first come first served, of all runs together */
START_TEST(those_who_wait_go_in_the_order_in_which_they_came)
{
    struct world w;
    rv_exchange *x[5];
    int64_t at;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_concurrent':2}");
    for (int i = 0; i < 5; i++) {
        x[i] = world_exchange(&w, NULL);
        ck_assert_int_eq(rv_exchange_next(x[i], w.now_us, &at), i < 2 ? RV_EXCHANGE_SEND : RV_EXCHANGE_WAIT);
        ck_assert(at == INT64_MAX);
    }
    ck_assert_uint_eq(w.n_ready, 0);
    world_answer(&w, x[0], &good);
    ck_assert_uint_eq(w.n_ready, 1);
    ck_assert_int_eq(rv_exchange_next(x[3], w.now_us, &at), RV_EXCHANGE_WAIT); /* not its turn */
    ck_assert_int_eq(rv_exchange_next(x[2], w.now_us, &at), RV_EXCHANGE_SEND);
    ck_assert_int_eq(rv_exchange_next(x[3], w.now_us, &at), RV_EXCHANGE_WAIT);
    rv_exchange_free(x[3]); /* gives up: the next moves up */
    world_answer(&w, x[1], &good);
    ck_assert_int_eq(rv_exchange_next(x[4], w.now_us, &at), RV_EXCHANGE_SEND);
    rv_exchange_free(x[4]);
    rv_exchange_free(x[0]);
    rv_exchange_free(x[1]);
    rv_exchange_free(x[2]);
    world_fini(&w);
}
END_TEST

START_TEST(nobody_overtakes_who_was_told_but_has_not_asked)
{
    struct world w;
    rv_exchange *inside, *waiting, *fresh;
    int64_t at;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_concurrent':1}");
    inside = world_exchange(&w, NULL);
    waiting = world_exchange(&w, NULL);
    fresh = world_exchange(&w, NULL);
    ck_assert_int_eq(rv_exchange_next(inside, w.now_us, &at), RV_EXCHANGE_SEND);
    ck_assert_int_eq(rv_exchange_next(waiting, w.now_us, &at), RV_EXCHANGE_WAIT);
    rv_exchange_free(inside);
    ck_assert_uint_eq(w.n_ready, 1);
    ck_assert_int_eq(rv_exchange_next(fresh, w.now_us, &at), RV_EXCHANGE_WAIT);
    rv_exchange_free(waiting); /* it was told, and never asked */
    ck_assert_uint_eq(w.n_ready, 2);
    ck_assert_int_eq(rv_exchange_next(fresh, w.now_us, &at), RV_EXCHANGE_SEND);
    rv_exchange_free(fresh);
    world_fini(&w);
}
END_TEST

START_TEST(a_place_is_not_held_while_it_waits_to_try_again)
{
    struct answer bad = {.status = 503};
    struct world w;
    rv_exchange *a, *b;
    int64_t at;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_concurrent':1}");
    a = world_exchange(&w, NULL);
    b = world_exchange(&w, NULL);
    ck_assert_int_eq(rv_exchange_next(a, w.now_us, &at), RV_EXCHANGE_SEND);
    ck_assert_int_eq(rv_exchange_next(b, w.now_us, &at), RV_EXCHANGE_WAIT);
    world_answer(&w, a, &bad);
    ck_assert_int_eq(rv_exchange_next(b, w.now_us, &at), RV_EXCHANGE_SEND);
    ck_assert_int_eq(rv_exchange_next(a, w.now_us, &at), RV_EXCHANGE_WAIT);
    w.now_us = at;
    ck_assert_int_eq(rv_exchange_next(a, w.now_us, &at), RV_EXCHANGE_WAIT); /* b has the place */
    world_answer(&w, b, &good);
    ck_assert_int_eq(rv_exchange_next(a, w.now_us, &at), RV_EXCHANGE_SEND);
    rv_exchange_free(a);
    rv_exchange_free(b);
    world_fini(&w);
}
END_TEST

START_TEST(a_deadline_ends_the_wait_for_a_place)
{
    struct rv_exchange_opts opts;
    struct world w;
    rv_exchange *a, *b, *c;
    int64_t at;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_concurrent':1}");
    opts = world_opts(&w, "default");
    a = world_exchange(&w, &opts);
    c = world_exchange(&w, &opts);
    opts.deadline_us = START_US + 3 * S;
    b = world_exchange(&w, &opts);
    ck_assert_int_eq(rv_exchange_next(a, w.now_us, &at), RV_EXCHANGE_SEND);
    ck_assert_int_eq(rv_exchange_next(b, w.now_us, &at), RV_EXCHANGE_WAIT);
    ck_assert_int_eq(at, START_US + 3 * S);
    ck_assert_int_eq(rv_exchange_next(c, w.now_us, &at), RV_EXCHANGE_WAIT);
    w.now_us = START_US + 3 * S;
    ck_assert_int_eq(rv_exchange_next(b, w.now_us, &at), RV_EXCHANGE_DONE);
    ck_assert_int_eq(rv_exchange_reply(b)->answer.error_kind, RV_LLM_ERROR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(world_error(b), "after 3000 ms of waiting for its turn (max_concurrent, "));
    world_answer(&w, a, &good);
    ck_assert_int_eq(rv_exchange_next(c, w.now_us, &at), RV_EXCHANGE_SEND);
    rv_exchange_free(a);
    rv_exchange_free(b);
    rv_exchange_free(c);
    world_fini(&w);
}
END_TEST

/* --- Many at once --- */

#define N_EXCHANGES 1000
#define N_PLACES    7

struct crowd;
struct one {
    struct crowd *crowd;
    rv_exchange *x;
    int64_t due_us; /* when it does something: asks, or its answer comes; INT64_MAX: when it is told */
    bool is_sent, is_done;
};
struct crowd {
    struct world w;
    struct rv_rand_state state;
    struct rv_rand rand;
    struct one *all;
    size_t n_sent, most_sent, n_done, n_answered, n_given_up;
    bool is_eager; /* asks from within on_ready */
};

static void ask(struct one *o)
{
    struct crowd *c = o->crowd;
    int64_t at;

    o->due_us = INT64_MAX;
    switch (rv_exchange_next(o->x, c->w.now_us, &at)) {
    case RV_EXCHANGE_SEND:
        o->is_sent = true;
        c->n_sent++;
        if (c->n_sent > c->most_sent)
            c->most_sent = c->n_sent;
        o->due_us = c->w.now_us + (int64_t)rv_rand_below(c->rand, 4 * S);
        break;
    case RV_EXCHANGE_WAIT:
        if (at < o->due_us)
            o->due_us = at;
        break;
    case RV_EXCHANGE_DONE:
        o->is_done = true;
        c->n_done++;
        c->n_answered += !rv_exchange_reply(o->x)->failed;
        break;
    }
}

static void crowd_ready(void *self)
{
    struct one *o = self;

    if (o->crowd->is_eager && rv_rand_below(o->crowd->rand, 2))
        ask(o);
    else
        o->due_us = o->crowd->w.now_us;
}

static void get_answer(struct one *o)
{
    static const struct answer answers[] = {
        {.status = 200},
        {.status = 200},
        {.status = 200},
        {.status = 200},
        {.status = 200},
        {.status = 200},
        {.status = 200, .body = HALF, .fault = RV_HTTP_CUT},
        {.status = 200, .body = "nonsense"},
        {.status = 503},
        {.status = 429, .headers = "retry-after: 0.4"},
        {.status = 429, .headers = "retry-after: 2\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 3s"},
        {.status = 400},
        {.fault = RV_HTTP_CUT, .was_sent = true},
        {.fault = RV_HTTP_UNREACHABLE},
        {.is_refused = true},
        {.fault = RV_HTTP_LOCAL},
    };
    o->crowd->n_sent--;
    o->is_sent = false;
    o->due_us = o->crowd->w.now_us;
    world_answer(&o->crowd->w, o->x, &answers[rv_rand_below(o->crowd->rand, RV_COUNT(answers))]);
}

static void give_up(struct one *o)
{
    o->crowd->n_sent -= o->is_sent;
    o->is_sent = false;
    o->is_done = true;
    o->crowd->n_done++;
    o->crowd->n_given_up++;
    rv_exchange_free(o->x);
    o->x = NULL;
}

static struct one *earliest(struct crowd *c)
{
    struct one *first = NULL;

    for (size_t i = 0; i < N_EXCHANGES; i++)
        if (!c->all[i].is_done && c->all[i].due_us != INT64_MAX && (!first || c->all[i].due_us < first->due_us))
            first = &c->all[i];
    return first;
}

static const struct {
    const char *options;
    uint64_t seed;
    int64_t deadline_us;
    bool is_eager;
} crowds[] = {
    {"{'max_concurrent':7}", 1, 0, false},
    {"{'max_concurrent':7}", 2, 0, true},
    {"{'max_concurrent':7,'max_attempts':1}", 3, 0, true},
    {"{'max_concurrent':7,'max_attempts':6,'requests_per_minute':600}", 4, 0, true},
    {"{'max_concurrent':7,'tokens_per_minute':90000}", 5, 0, false},
    {"{'max_concurrent':7,'requests_per_minute':300}", 6, 60 * S, true},
    {"{'max_concurrent':7,'requests_per_minute':300}", 7, 60 * S, false},
};

/* Proves 12.3/places */
START_TEST(of_a_thousand_no_more_than_the_places_and_all_of_them_end)
{
    struct crowd c = {.is_eager = crowds[_i].is_eager};
    struct rv_exchange_opts opts;
    struct one *o;

    world_init(&c.w);
    world_model(&c.w, "default", "openai", "m", crowds[_i].options);
    c.rand = rv_rand_seeded(&c.state, crowds[_i].seed);
    c.all = calloc(N_EXCHANGES, sizeof *c.all);
    opts = world_opts(&c.w, "default");
    opts.on_delta = NULL;
    opts.on_ready = crowd_ready;
    for (size_t i = 0; i < N_EXCHANGES; i++) {
        c.all[i] = (struct one){.crowd = &c, .due_us = START_US + (int64_t)rv_rand_below(c.rand, 200 * S)};
        opts.on_retry = NULL;
        opts.self = &c.all[i];
        opts.random = rv_rand_u64(c.rand);
        opts.deadline_us = crowds[_i].deadline_us ? c.all[i].due_us + crowds[_i].deadline_us : 0;
        c.all[i].x = world_exchange(&c.w, &opts);
    }
    while ((o = earliest(&c))) {
        if (o->due_us > c.w.now_us)
            c.w.now_us = o->due_us;
        if (rv_rand_below(c.rand, 50) == 0)
            give_up(o);
        else if (o->is_sent)
            get_answer(o);
        else
            ask(o);
        ck_assert_uint_le(c.n_sent, N_PLACES);
    }
    ck_assert_uint_eq(c.n_done, N_EXCHANGES); /* else one waits for ever */
    ck_assert_uint_eq(c.n_sent, 0);
    ck_assert_uint_eq(c.most_sent, N_PLACES);
    ck_assert_uint_gt(c.n_answered, 50);
    ck_assert_uint_gt(c.n_given_up, 10);
    ck_assert_int_eq(c.w.providers->gates->in_flight, 0);
    ck_assert_int_eq(c.w.providers->gates->n_waiting, 0);
    for (size_t i = 0; i < N_EXCHANGES; i++)
        rv_exchange_free(c.all[i].x);
    free(c.all);
    world_fini(&c.w);
}
END_TEST

START_TEST(a_long_queue_that_fails_at_once_is_no_deep_stack)
{
    struct answer bad = {.status = 503};
    struct crowd c = {.is_eager = true};
    struct rv_exchange_opts opts;
    rv_exchange *inside;
    int64_t at;

    world_init(&c.w);
    world_model(&c.w, "default", "openai", "m", "{'max_concurrent':1,'max_attempts':1}");
    c.rand = rv_rand_seeded(&c.state, 9);
    c.all = calloc(N_EXCHANGES, sizeof *c.all);
    opts = world_opts(&c.w, "default");
    opts.on_delta = NULL;
    for (int i = 0; i < 4; i++) {
        rv_exchange *x = world_exchange(&c.w, &opts);
        world_drive(&c.w, x, &bad, 1);
        rv_exchange_free(x);
    }
    inside = world_exchange(&c.w, &opts);
    ck_assert_int_eq(rv_exchange_next(inside, c.w.now_us, &at), RV_EXCHANGE_SEND);
    opts.on_ready = crowd_ready;
    for (size_t i = 0; i < N_EXCHANGES; i++) {
        c.all[i] = (struct one){.crowd = &c};
        opts.on_retry = NULL;
        opts.self = &c.all[i];
        c.all[i].x = world_exchange(&c.w, &opts);
        ask(&c.all[i]);
    }
    world_answer(&c.w, inside, &bad); /* opens the breaker: all who wait are refused, one by one */
    for (struct one *o; (o = earliest(&c));)
        ask(o);
    ck_assert_uint_eq(c.n_done, N_EXCHANGES);
    ck_assert_uint_eq(c.n_answered, 0);
    for (size_t i = 0; i < N_EXCHANGES; i++)
        rv_exchange_free(c.all[i].x);
    rv_exchange_free(inside);
    free(c.all);
    world_fini(&c.w);
}
END_TEST

TCase *places_case(void)
{
    TCase *tc = tcase_create("places");

    tcase_add_test(tc, those_who_wait_go_in_the_order_in_which_they_came);
    tcase_add_test(tc, nobody_overtakes_who_was_told_but_has_not_asked);
    tcase_add_test(tc, a_place_is_not_held_while_it_waits_to_try_again);
    tcase_add_test(tc, a_deadline_ends_the_wait_for_a_place);
    tcase_add_loop_test(tc, of_a_thousand_no_more_than_the_places_and_all_of_them_end, 0, (int)RV_COUNT(crowds));
    tcase_add_test(tc, a_long_queue_that_fails_at_once_is_no_deep_stack);
    return tc;
}
