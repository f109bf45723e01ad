/* Questions of runs, open and over: what steps of runs make of them, lists, counts, the sweep and the end. */
#include "tests/contract/store/world.h"

static struct rv_pending asked(const char *id, const char *kind, int64_t created, int64_t expires)
{
    return (struct rv_pending){.id = id,
                               .kind = kind,
                               .stage = "gate",
                               .text = RV_STR_LIT("well?"),
                               .body = RV_STR_LIT("{}"),
                               .created_us = created,
                               .expires_us = expires};
}

struct step {
    const char *run;
    int64_t seq;
    const struct rv_pending *pending;
    size_t n;
    enum rv_run_status status;
    const char *settles; /* NULL: nothing; "": the only one */
    enum rv_interrupt_status as;
    const char *reason;
};

static int take(struct world *w, struct step s)
{
    struct rv_record r;
    struct rv_store_append a = world_append(s.run, 1, &r, s.seq, "x");

    a.status = s.status;
    a.set_pending = true;
    a.pending = s.pending;
    a.n_pending = s.n;
    a.settled.is_set = s.settles != NULL;
    a.settled.id = s.settles && *s.settles ? s.settles : NULL;
    a.settled.status = s.as;
    a.settled.reason = s.reason ? rv_str_of(s.reason) : (rv_str){NULL, 0};
    a.now_us = T0 + s.seq;
    return rv_store_append(w->s, &a, &w->err);
}

static int see(void *self, const struct rv_interrupt_row *row, rv_err **err)
{
    rv_buf *b = self;

    (void)err;
    rv_buf_printf(b, "%s%s=%s", b->len ? " " : "", row->id, rv_interrupt_status_text(row->status));
    if (row->ended_us)
        rv_buf_printf(b, "@%lld", (long long)(row->ended_us - T0));
    if (row->reason.ptr)
        rv_buf_printf(b, "(%.*s)", RV_STR_ARG(row->reason));
    return 0;
}

static void list_is(struct world *w, const struct rv_interrupt_filter *f, const char *want)
{
    rv_buf b = RV_BUF_INIT(10000);

    OK(rv_store_list_interrupts(w->s, &operator_scope, f, see, &b, &w->err));
    ck_assert_str_eq(rv_buf_cstr(&b), want);
    rv_buf_fini(&b);
}

static int see_count(void *self, const struct rv_interrupt_count *c, rv_err **err)
{
    rv_buf *b = self;

    (void)err;
    rv_buf_printf(b, "%s%s/%s:%lld/%lld", b->len ? " " : "", c->kind, rv_interrupt_status_text(c->status),
                  (long long)c->n, (long long)c->n_open);
    return 0;
}

static void counts_are(struct world *w, const struct rv_interrupt_filter *f, const char *want)
{
    rv_buf b = RV_BUF_INIT(10000);

    OK(rv_store_count_interrupts(w->s, &operator_scope, f, see_count, &b, &w->err));
    ck_assert_str_eq(rv_buf_cstr(&b), want);
    rv_buf_fini(&b);
}

/* Proves 8.6/session: Questions are listed and counted by session, kind and status */
START_TEST(each_question_has_a_row_that_says_how_it_ended)
{
    struct world world, *w = &world;
    const struct rv_pending three[] = {asked("i1", "confirmation", T0, 0), asked("i2", "clarification", T0 + 1, 0),
                                       asked("i3", "confirmation", T0 + 2, 0)};

    world_open(w, _i);
    make_run(w, "r1");
    OK(take(w, (struct step){.run = "r1", .seq = 2, .pending = three, .n = 3, .status = RV_RUN_INTERRUPTED}));
    list_is(w, NULL, "i1=pending i2=pending i3=pending");
    counts_are(w, NULL, "clarification/pending:1/1 confirmation/pending:2/2");
    /* the answer to one: the others stay open while the run goes on, and after it */
    OK(take(w, (struct step){.run = "r1",
                             .seq = 3,
                             .pending = NULL,
                             .n = 0,
                             .status = RV_RUN_RUNNING,
                             .settles = "i2",
                             .as = RV_INTERRUPT_STATUS_RESOLVED}));
    list_is(w, NULL, "i1=pending i2=resolved@3 i3=pending");
    OK(take(w, (struct step){.run = "r1",
                             .seq = 4,
                             .pending = (struct rv_pending[]){three[0], three[2]},
                             .n = 2,
                             .status = RV_RUN_INTERRUPTED}));
    list_is(w, NULL, "i1=pending i2=resolved@3 i3=pending");
    OK(take(w, (struct step){.run = "r1",
                             .seq = 5,
                             .pending = NULL,
                             .n = 0,
                             .status = RV_RUN_RUNNING,
                             .settles = "i3",
                             .as = RV_INTERRUPT_STATUS_CANCELLED,
                             .reason = "not now"}));
    OK(take(w, (struct step){.run = "r1", .seq = 6, .pending = three, .n = 1, .status = RV_RUN_INTERRUPTED}));
    /* the only one need not be named */
    OK(take(w, (struct step){.run = "r1",
                             .seq = 7,
                             .pending = NULL,
                             .n = 0,
                             .status = RV_RUN_COMPLETED,
                             .settles = "",
                             .as = RV_INTERRUPT_STATUS_RESOLVED}));
    list_is(w, NULL, "i1=resolved@7 i2=resolved@3 i3=cancelled@5(not now)");
    list_is(w, &(struct rv_interrupt_filter){.kind = "confirmation", .statuses = 1u << RV_INTERRUPT_STATUS_RESOLVED},
            "i1=resolved@7");
    list_is(w, &(struct rv_interrupt_filter){.run = "r1", .limit = 1}, "i1=resolved@7");
    list_is(w, &(struct rv_interrupt_filter){.session = "elsewhere"}, "");
    list_is(w, &(struct rv_interrupt_filter){.open_only = true}, "");
    counts_are(w, NULL, "clarification/resolved:1/0 confirmation/cancelled:1/0 confirmation/resolved:1/0");
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

START_TEST(what_a_run_no_longer_asks_was_withdrawn)
{
    struct world world, *w = &world;
    const struct rv_pending two[] = {asked("i1", "confirmation", T0, 0), asked("i2", "clarification", T0 + 1, 0)};

    world_open(w, _i);
    make_run(w, "r1");
    OK(take(w, (struct step){.run = "r1", .seq = 2, .pending = two, .n = 2, .status = RV_RUN_INTERRUPTED}));
    OK(take(w, (struct step){.run = "r1",
                             .seq = 3,
                             .pending = NULL,
                             .n = 0,
                             .status = RV_RUN_RUNNING,
                             .settles = "i1",
                             .as = RV_INTERRUPT_STATUS_RESOLVED}));
    OK(take(w, (struct step){.run = "r1", .seq = 4, .pending = NULL, .n = 0, .status = RV_RUN_FAILED}));
    list_is(w, NULL, "i1=resolved@3 i2=cancelled@4");
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

/* Proves 8.6/sweep: A sweep marks the questions that are due and counts them; those that are over are deleted apart
 * from their runs */
START_TEST(the_sweep_marks_what_is_due_and_the_old_ones_go)
{
    struct world world, *w = &world;
    const struct rv_pending two[] = {asked("i1", "confirmation", T0, T0 + 10),
                                     asked("i2", "confirmation", T0, T0 + 90)};
    int64_t n = -1;

    world_open(w, _i);
    make_run(w, "r1");
    OK(take(w, (struct step){.run = "r1", .seq = 2, .pending = two, .n = 2, .status = RV_RUN_INTERRUPTED}));
    OK(rv_store_expire_interrupts(w->s, NULL, T0 + 9, &n, &w->err));
    ck_assert_int_eq(n, 0);
    OK(rv_store_expire_interrupts(w->s, "other", T0 + 10, &n, &w->err));
    ck_assert_int_eq(n, 0);
    OK(rv_store_expire_interrupts(w->s, NULL, T0 + 10, &n, &w->err));
    ck_assert_int_eq(n, 1);
    OK(rv_store_expire_interrupts(w->s, NULL, T0 + 10, &n, &w->err));
    ck_assert_int_eq(n, 0); /* once each */
    list_is(w, NULL, "i1=expired i2=pending");
    counts_are(w, NULL, "confirmation/expired:1/1 confirmation/pending:1/1");
    OK(take(w, (struct step){.run = "r1",
                             .seq = 3,
                             .pending = two,
                             .n = 1,
                             .status = RV_RUN_INTERRUPTED,
                             .settles = "i2",
                             .as = RV_INTERRUPT_STATUS_RESOLVED}));
    list_is(w, NULL, "i1=expired i2=resolved@3");
    OK(take(w, (struct step){.run = "r1", .seq = 4, .pending = NULL, .n = 0, .status = RV_RUN_CANCELLED}));
    list_is(w, NULL, "i1=expired@4 i2=resolved@3");
    OK(rv_store_prune_interrupts(w->s, NULL, T0 + 4, 100, &n, &w->err));
    ck_assert_int_eq(n, 1);
    list_is(w, NULL, "i1=expired@4");
    OK(rv_store_prune_interrupts(w->s, NULL, T0 + 5, 100, &n, &w->err));
    ck_assert_int_eq(n, 1);
    OK(rv_store_check(w->s, &w->err));
    SAYS(RV_E_INVALID, "delete 0 interrupts", rv_store_prune_interrupts(w->s, NULL, T0, 0, &n, &w->err));
    SAYS(RV_E_INVALID, "no such status",
         rv_store_list_interrupts(w->s, &operator_scope, &(struct rv_interrupt_filter){.statuses = 1u << 9}, see, NULL,
                                  &w->err));
    world_close(w);
}
END_TEST

/* A question that is asked again, by the same id, is open again. */
START_TEST(one_that_is_asked_again_is_open_again)
{
    struct world world, *w = &world;
    struct rv_pending one = asked("i1", "confirmation", T0, T0 + 10);
    int64_t n = 0;

    world_open(w, _i);
    make_run(w, "r1");
    OK(take(w, (struct step){.run = "r1", .seq = 2, .pending = &one, .n = 1, .status = RV_RUN_INTERRUPTED}));
    OK(rv_store_expire_interrupts(w->s, NULL, T0 + 10, &n, &w->err));
    OK(take(w, (struct step){.run = "r1",
                             .seq = 3,
                             .pending = &one,
                             .n = 1,
                             .status = RV_RUN_INTERRUPTED})); /* the same one: it stays marked */
    list_is(w, NULL, "i1=expired");
    OK(take(w, (struct step){.run = "r1",
                             .seq = 4,
                             .pending = NULL,
                             .n = 0,
                             .status = RV_RUN_RUNNING,
                             .settles = "i1",
                             .as = RV_INTERRUPT_STATUS_CANCELLED}));
    one.expires_us = T0 + 50;
    OK(take(w, (struct step){.run = "r1", .seq = 5, .pending = &one, .n = 1, .status = RV_RUN_INTERRUPTED}));
    list_is(w, NULL, "i1=pending");
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, T0 + 100000000, &w->err));
    list_is(w, NULL, "");
    world_close(w);
}
END_TEST

Suite *interrupts_suite(void)
{
    Suite *suite = suite_create("interrupts");
    TCase *tc = tcase_create("interrupts");

    ADD(tc, each_question_has_a_row_that_says_how_it_ended);
    ADD(tc, what_a_run_no_longer_asks_was_withdrawn);
    ADD(tc, the_sweep_marks_what_is_due_and_the_old_ones_go);
    ADD(tc, one_that_is_asked_again_is_open_again);
    suite_add_tcase(suite, tc);
    return suite;
}
