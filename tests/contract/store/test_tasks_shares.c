/* Which tenant's task is next: shares by weight, caps, classes. */
#include "tests/contract/store/tasks.h"

static void enqueue_many(struct world *w, const char *tenant, int from, int n)
{
    OK(rv_store_begin(w->s, &w->err));
    for (int i = from; i < from + n; i++) {
        char id[40];
        struct rv_new_task task = new_task(id);
        snprintf(id, sizeof id, "%s%d", tenant, i);
        task.tenant = tenant;
        enqueue_as(w, &task);
    }
    OK(rv_store_commit(w->s, &w->err));
}

/* Claim n one by one, and count those of each of the tenants, whose names have one letter. */
static void claim_many(struct world *w, int n, int counts[128])
{
    int64_t classes[ALL];
    struct rv_claim_tasks claim = {.worker = "A",
                                   .classes = classes,
                                   .n_classes = all_classes(w, classes, ALL),
                                   .n = 1,
                                   .now_us = T0,
                                   .until_us = AT(LEASE)};

    memset(counts, 0, 128 * sizeof *counts);
    OK(rv_store_begin(w->s, &w->err));
    for (int i = 0; i < n; i++) {
        struct rv_claimed got = {0};
        OK(rv_store_claim_tasks(w->s, &claim, &got, &w->err));
        if (got.n == 1)
            counts[got.rows[0].tenant[0] & 127]++;
        rv_claimed_fini(&got);
    }
    OK(rv_store_commit(w->s, &w->err));
}

START_TEST(a_small_tenant_does_not_wait_for_a_large_one)
{
    struct world world, *w = &world;
    int counts[128];

    world_open(w, _i);
    enqueue_many(w, "l", 0, w->impl->is_shared ? 1000 : 10000); /* one by one over a connection takes long */
    claim_many(w, 100, counts);
    enqueue_many(w, "s", 0, 10);
    claim_many(w, 20, counts);
    ck_assert_int_ge(counts['s'], 9); /* every other one, from the first */
    claim_many(w, 5, counts);
    ck_assert_int_ge(counts['l'], 4);
    world_close(w);
}
END_TEST

START_TEST(a_tenant_that_comes_back_does_not_make_up_for_what_it_did_not_use)
{
    struct world world, *w = &world;
    int counts[128];

    world_open(w, _i);
    enqueue_many(w, "a", 0, 1);
    enqueue_many(w, "b", 0, 250);
    claim_many(w, 125, counts);
    ck_assert_int_eq(counts['a'], 1);
    enqueue_many(w, "a", 1, 250); /* was idle while b was served 124 times */
    enqueue_many(w, "c", 0, 250); /* is new */
    claim_many(w, 60, counts);
    for (const char *t = "abc"; *t; t++)
        ck_assert_msg(counts[(int)*t] >= 19 && counts[(int)*t] <= 21, "%c: %d", *t, counts[(int)*t]);
    claim_many(w, 566, counts); /* all, and a tenant that is idle alone is not ahead of new ones afterwards */
    enqueue_many(w, "d", 0, 100);
    enqueue_many(w, "b", 250, 100);
    claim_many(w, 60, counts);
    ck_assert_int_ge(counts['b'], 29);
    world_close(w);
}
END_TEST

START_TEST(shares_are_by_weight)
{
    struct world world, *w = &world;
    int counts[128];

    world_open(w, _i);
    OK(rv_store_set_share(w->s, "a", &(struct rv_task_share){.weight = 3}, &w->err)); /* before its first task */
    enqueue_many(w, "a", 0, 400);
    enqueue_many(w, "b", 0, 400);
    enqueue_many(w, "c", 0, 400);
    OK(rv_store_set_share(w->s, "c", &(struct rv_task_share){.weight = 2}, &w->err));
    claim_many(w, 300, counts);
    ck_assert_msg(abs(counts['a'] - 150) <= 2, "%d", counts['a']);
    ck_assert_msg(abs(counts['c'] - 100) <= 2, "%d", counts['c']);
    ck_assert_msg(abs(counts['b'] - 50) <= 2, "%d", counts['b']);
    world_close(w);
}
END_TEST

static int see_lane(void *self, const struct rv_task_lane *lane, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s %lld %lld %lld/%lld", seen->n++ ? ", " : "", lane->tier,
                  (long long)lane->n_pending, (long long)lane->n_processing, (long long)lane->share.weight,
                  (long long)lane->share.cap);
    return 0;
}

START_TEST(a_cap_ends_what_a_tenant_has_at_once)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;
    int counts[128];

    world_open(w, _i);
    enqueue_many(w, "a", 0, 9);
    enqueue_many(w, "b", 0, 20);
    OK(rv_store_set_share(w->s, "a", &(struct rv_task_share){.weight = 1, .cap = 2}, &w->err));
    claim_many(w, 9, counts);
    ck_assert_int_eq(counts['a'], 2);
    ck_assert_int_eq(counts['b'], 7);
    OK(rv_store_list_lanes(w->s, "a", see_lane, &seen, &w->err));
    SEEN(&seen, "small 7 2 1/2");
    OK(rv_store_complete_task(w->s, HELD("a0", "A", 1), RV_STR_LIT("{}"), T0, &w->err));
    claim_many(w, 3, counts); /* one has room again: it is not behind for having had none */
    ck_assert_int_eq(counts['a'], 1);
    OK(rv_store_release_task(w->s, HELD("a1", "A", 1), T0, &w->err));
    OK(rv_store_release_task(w->s, HELD("a2", "A", 1), T0, &w->err));
    CLAIM("A", 99, 0, "a1 a2 b9 b10 b11 b12 b13 b14 b15 b16 b17 b18 b19");
    OK(rv_store_set_share(w->s, "a", &(struct rv_task_share){.weight = 1}, &w->err));
    CLAIM("A", 99, 0, "a3 a4 a5 a6 a7 a8");
    seen = SEEN_INIT;
    OK(rv_store_list_lanes(w->s, "a", see_lane, &seen, &w->err));
    SEEN(&seen, "small 0 8 1/0");
    seen = SEEN_INIT;
    OK(rv_store_list_lanes(w->s, NULL, see_lane, &seen, &w->err)); /* the default tenant has none */
    SEEN(&seen, "");
    world_close(w);
}
END_TEST

static int see_class(void *self, const struct rv_task_class *c, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s[", seen->n++ ? " " : "", c->tier);
    for (size_t i = 0; i < c->n_needs; i++)
        rv_buf_printf(&seen->text, "%s%s", i > 0 ? "," : "", c->needs[i]);
    rv_buf_puts(&seen->text, "]");
    return 0;
}

START_TEST(a_worker_claims_only_what_it_can_serve)
{ /* p8-data 17 "claim": that tier; and needs, whatever their order */
    static const char *const needs[] = {"ocr 1", "gpu"}, *const turned[] = {"gpu", "ocr 1", "gpu"};
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;
    int64_t classes[ALL];
    struct rv_claimed got = {0};
    struct rv_claim_tasks claim = {.worker = "A", .classes = classes, .n = 9, .now_us = T0, .until_us = AT(1)};
    struct rv_next_tasks next;

    world_open(w, _i);
    for (int i = 0; i < 4; i++) {
        struct rv_new_task task = new_task((const char *[]){"large", "plain", "two", "same"}[i]);
        task.tier = i == 0 ? "large" : i == 1 ? "small" : NULL;
        task.needs = i == 2 ? needs : i == 3 ? turned : NULL;
        task.n_needs = i == 2 ? 2 : i == 3 ? 3 : 0;
        enqueue_as(w, &task);
    }
    OK(rv_store_list_classes(w->s, see_class, &seen, &w->err));
    SEEN(&seen, "large[] small[] small[gpu,ocr 1]");
    ck_assert_uint_eq(all_classes(w, classes, ALL), 3);
    OK(rv_store_claim_tasks(w->s, &claim, &got, &w->err)); /* no class at all */
    ck_assert_uint_eq(got.n, 0);
    rv_claimed_fini(&got);
    claim.classes = classes + 2;
    claim.n_classes = 1;
    OK(rv_store_claim_tasks(w->s, &claim, &got, &w->err));
    ck_assert_uint_eq(got.n, 2);
    ck_assert_str_eq(got.rows[0].id, "two");
    ck_assert_str_eq(got.rows[1].id, "same");
    ck_assert_int_eq(got.rows[0].class_id, classes[2]);
    rv_claimed_fini(&got);
    OK(rv_store_next_tasks(w->s, classes + 2, 1, &next, &w->err));
    ck_assert(!next.ready);
    OK(rv_store_next_tasks(w->s, classes + 1, 2, &next, &w->err));
    ck_assert(next.ready);
    claim.classes = (const int64_t[]){classes[1], classes[0]}; /* in the order of the list */
    claim.n_classes = 2;
    OK(rv_store_claim_tasks(w->s, &claim, &got, &w->err));
    ck_assert_uint_eq(got.n, 2);
    ck_assert_str_eq(got.rows[0].id, "plain");
    ck_assert_str_eq(got.rows[1].tier, "large");
    rv_claimed_fini(&got);
    world_close(w);
}
END_TEST

Suite *tasks_shares_suite(void)
{
    Suite *suite = suite_create("tasks_shares");
    TCase *tc = tcase_create("tasks_shares");

    ADD(tc, a_small_tenant_does_not_wait_for_a_large_one);
    ADD(tc, a_tenant_that_comes_back_does_not_make_up_for_what_it_did_not_use);
    ADD(tc, shares_are_by_weight);
    ADD(tc, a_cap_ends_what_a_tenant_has_at_once);
    ADD(tc, a_worker_claims_only_what_it_can_serve);
    suite_add_tcase(suite, tc);
    return suite;
}
