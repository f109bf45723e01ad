/* Calls that are ended from outside: cancelled, or their source is closed. */
#include "tests/contract/tools/world.h"

/* A call whose storage is gone when it has been cancelled: whoever touches it is told by the sanitizers. */
/* Proves 6.3/cancel: A call that was cancelled, or whose source was closed, is never told; cancelling it again, or
 * after its end, changes nothing */
START_TEST(a_cancelled_call_is_never_told_and_may_be_freed_at_once)
{
    struct world w;
    struct seen *slow = malloc(sizeof *slow), seen;

    ck_assert_ptr_nonnull(slow);
    world_open(&w, _i);
    if (w.impl->slow) {
        must_call(&w, slow, w.impl->slow, "{}");
        ck_assert_ptr_nonnull(slow->call.source);
        rv_tool_call_cancel(&slow->call);
        ck_assert_ptr_null(slow->call.source);
        rv_tool_call_cancel(&slow->call); /* a second time */
        ck_assert_int_eq(slow->n_done, 0);
    }
    free(slow);
    must_call(&w, &seen, w.impl->good, w.impl->good_args);
    await(&w, &seen);
    world_close(&w);
}
END_TEST

/* Proves 6.3/cancel */
START_TEST(a_call_that_has_ended_is_cancelled_without_harm)
{
    struct world w;
    struct seen seen;

    world_open(&w, _i);
    must_call(&w, &seen, w.impl->good, w.impl->good_args);
    await(&w, &seen);
    rv_tool_call_cancel(&seen.call);
    rv_tool_call_cancel(&seen.call);
    world_turn(&w);
    ck_assert_int_eq(seen.n_done, 1);
    world_close(&w);
}
END_TEST

START_TEST(a_call_may_be_cancelled_when_its_answer_is_on_the_way)
{
    struct world w;
    struct seen seen, other;

    world_open(&w, _i);
    must_call(&w, &seen, w.impl->good, w.impl->good_args);
    if (w.engine->pool) /* a worker has the answer, and the loop has not looked */
        engine_pool_wait(w.engine->pool, 20 * 1000 * 1000);
    int before = seen.n_done; /* the answer may have been there at once */
    rv_tool_call_cancel(&seen.call);
    must_call(&w, &other, w.impl->good, w.impl->good_args);
    await(&w, &other);
    ck_assert_int_eq(seen.n_done, before);
    world_close(&w);
}
END_TEST

/* Proves 6.3/cancel */
START_TEST(closing_ends_what_is_under_way_and_refuses_what_comes)
{
    struct world w;
    struct seen pending[3] = {0}, seen;
    rv_err *err = NULL;

    world_open(&w, _i);
    for (size_t i = 0; i < RV_COUNT(pending) && w.impl->slow; i++)
        must_call(&w, &pending[i], w.impl->slow, "{}");
    rv_tool_source_close(w.s);
    rv_tool_source_close(w.s);
    for (size_t i = 0; i < RV_COUNT(pending); i++) {
        ck_assert_ptr_null(pending[i].call.source);
        ck_assert_int_eq(pending[i].n_done, 0);
        rv_tool_call_cancel(&pending[i].call);
    }
    ck_assert_int_eq(call_tool(&w, &seen, w.impl->good, rv_str_of(w.impl->good_args), &err), RV_E_STATE);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), w.impl->good));
    rv_err_free(err);
    world_close(&w);
}
END_TEST

Suite *ends_suite(void)
{
    Suite *s = suite_create("ends");
    TCase *tc = tcase_create("ends");

    ADD(tc, a_cancelled_call_is_never_told_and_may_be_freed_at_once);
    ADD(tc, a_call_that_has_ended_is_cancelled_without_harm);
    ADD(tc, a_call_may_be_cancelled_when_its_answer_is_on_the_way);
    ADD(tc, closing_ends_what_is_under_way_and_refuses_what_comes);
    suite_add_tcase(s, tc);
    return s;
}
