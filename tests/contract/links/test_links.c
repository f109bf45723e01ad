/* What coreengine/mcp/link.h promises of every link, asked of each kind. What no callback may do is in world.c. */
#include <stdlib.h>
#include <string.h>

#include "tests/contract/links/world.h"

#define TOO_MANY_BYTES (((size_t)33 << 20) + 1) /* more than any link takes or queues */

START_TEST(a_request_ends_once_and_a_notification_does_not)
{
    struct world w;

    world_open(&w, _i);
    for (int id = 1; id <= 5; id++)
        ck_assert_int_eq(world_send(&w, id, "answer"), 0);
    const struct rv_mcp_send notification = {.method = "notifications/cancelled",
                                             .body = RV_STR_LIT("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"),
                                             .version = "2026-07-28",
                                             .is_modern = true};
    ck_assert_int_eq(world_send_raw(&w, &notification), 0);
    world_wait(&w, 5, 0);
    world_end(&w);
    for (int id = 1; id <= 5; id++)
        ck_assert_int_eq(w.messages[id], 1);
    ck_assert_uint_eq(w.n_messages, 5);
    ck_assert_uint_eq(w.n_failed, 0);
}
END_TEST

START_TEST(what_ends_without_an_answer_has_failed_once)
{
    struct world w;

    world_open(&w, _i);
    ck_assert_int_eq(world_send(&w, 1, "answer"), 0);
    world_wait(&w, 1, 0);
    ck_assert_int_eq(world_send(&w, 2, "end"), 0);
    world_wait(&w, 1, 1);
    ck_assert_int_eq(w.failed[w.kind->is_one_server ? 0 : 2], 1);
    ck_assert_int_eq(w.fault, w.kind->is_one_server ? RV_MCP_FAULT_SERVER_EXITED : RV_MCP_FAULT_CONNECTION_LOST);
    int rc = world_send(&w, 3, "answer");
    ck_assert_int_eq(rc, w.kind->is_one_server ? RV_E_STATE : 0);
    world_wait(&w, rc == 0 ? 2 : 1, 1);
    world_end(&w);
    ck_assert_uint_eq(w.n_failed, 1);
}
END_TEST

static void cancel_all(struct world *w)
{
    for (int id = 1; id <= 3; id++)
        if (!w->failed[id])
            world_cancel(w, id);
    w->then = NULL;
}

START_TEST(what_is_cancelled_does_not_fail)
{
    struct world w;

    world_open(&w, _i);
    ck_assert_int_eq(world_send(&w, 4, "silent"), 0);
    ck_assert_int_eq(world_send(&w, 5, "answer"), 0);
    world_wait(&w, 1, 0);
    world_cancel(&w, 4);
    world_cancel(&w, 4);
    world_cancel(&w, 5);  /* it has its answer */
    world_cancel(&w, 15); /* never sent */
    if (w.server.port)
        server_hang_up(&w.server);
    w.then = cancel_all; /* in the callback of the first that fails */
    for (int id = 1; id <= 3; id++)
        ck_assert_int_eq(world_send(&w, id, "end"), 0);
    world_wait(&w, 1, 1);
    ck_assert_int_eq(world_send(&w, 6, "answer"), w.kind->is_one_server ? RV_E_STATE : 0);
    world_wait(&w, w.kind->is_one_server ? 1 : 2, 1);
    world_end(&w);
    ck_assert_uint_eq(w.n_failed, 1);
}
END_TEST

START_TEST(nothing_comes_after_close)
{
    struct world w;

    world_open(&w, _i);
    ck_assert_int_eq(world_send(&w, 1, "answer"), 0);
    world_wait(&w, 1, 0);
    ck_assert_int_eq(world_send(&w, 2, "silent"), 0);
    ck_assert_int_eq(world_send(&w, 3, "answer"), 0);
    ck_assert_int_eq(world_send(&w, 4, "end"), 0);
    world_close(&w);
    ck_assert_int_eq(w.n_closed, 0); /* it comes from the loop */
    ck_assert_ptr_null(w.link.ops);
    world_end(&w);
    ck_assert_uint_eq(w.n_messages + w.n_failed, 1);
}
END_TEST

START_TEST(a_callback_may_close)
{
    const char *const names[] = {"answer", "end"};
    struct world w;

    for (size_t i = 0; i < RV_COUNT(names); i++) {
        world_open(&w, _i);
        w.then = world_close;
        ck_assert_int_eq(world_send(&w, 1, w.kind->has_one_answer || i ? names[i] : "three"), 0);
        for (int id = 2; id <= 4; id++)
            ck_assert_int_eq(world_send(&w, id, names[i]), 0);
        world_wait(&w, i == 0, i == 1);
        world_end(&w);
        ck_assert_uint_eq(w.n_messages + w.n_failed, 1);
    }
}
END_TEST

static void send_next(struct world *w)
{
    if (w->n_messages < 5)
        ck_assert_int_eq(world_send(w, (int)w->n_messages + 1, "answer"), 0);
}

START_TEST(a_callback_may_send)
{
    struct world w;

    world_open(&w, _i);
    w.then = send_next;
    ck_assert_int_eq(world_send(&w, 1, "answer"), 0);
    world_wait(&w, 5, 0);
    ck_assert_str_eq(rv_buf_cstr(&w.order), "1 2 3 4 5 ");
    world_end(&w);
}
END_TEST

START_TEST(closed_is_told_of_a_link_that_was_not_used)
{
    struct world w;

    world_open(&w, _i);
    world_close(&w);
    ck_assert_int_eq(w.n_closed, 0);
    world_end(&w);
    ck_assert_uint_eq(w.n_messages + w.n_failed, 0);
}
END_TEST

START_TEST(messages_come_in_the_order_of_the_peer)
{
    struct world w;

    world_open(&w, _i);
    if (!w.kind->has_one_answer) {
        ck_assert_int_eq(world_send(&w, 1, "three"), 0);
        world_wait(&w, 3, 0);
        ck_assert_str_eq(rv_buf_cstr(&w.order), "one two 1 ");
    }
    if (w.kind->is_one_server) {
        for (int id = 2; id <= 6; id++)
            ck_assert_int_eq(world_send(&w, id, "answer"), 0);
        world_wait(&w, 8, 0);
        ck_assert_str_eq(rv_buf_cstr(&w.order), "one two 1 2 3 4 5 6 ");
    }
    world_end(&w);
}
END_TEST

START_TEST(what_is_too_large_is_a_failure_of_its_kind)
{
    char *body = malloc(TOO_MANY_BYTES);
    struct world w;

    ck_assert_ptr_nonnull(body);
    memset(body, ' ', TOO_MANY_BYTES);
    world_open(&w, _i);
    const struct rv_mcp_send large = {.id = 1,
                                      .method = "tools/call",
                                      .name = "answer",
                                      .body = {body, TOO_MANY_BYTES},
                                      .version = "2026-07-28",
                                      .is_modern = true};
    ck_assert_int_eq(world_send_raw(&w, &large), RV_E_LIMIT);
    ck_assert_int_eq(world_send(&w, 2, "answer"), 0); /* the link is as before */
    world_wait(&w, 1, 0);
    ck_assert_int_eq(world_send(&w, 3, "large"), 0);
    world_wait(&w, 1, 1);
    ck_assert_int_eq(w.failed[w.kind->is_one_server ? 0 : 3], 1);
    ck_assert_int_eq(w.fault, RV_MCP_FAULT_TOO_LARGE);
    world_end(&w);
    free(body);
}
END_TEST

START_TEST(closed_may_be_left_out)
{
    struct world w;

    world_open(&w, _i);
    w.is_not_told = true;
    ck_assert_int_eq(world_send(&w, 1, "silent"), 0);
    world_end(&w);
    ck_assert_uint_eq(w.n_messages + w.n_failed, 0);
}
END_TEST

TCase *links_case(void)
{
    TCase *c = tcase_create("links");

    tcase_add_loop_test(c, a_request_ends_once_and_a_notification_does_not, 0, N_KINDS);
    tcase_add_loop_test(c, what_ends_without_an_answer_has_failed_once, 0, N_KINDS);
    tcase_add_loop_test(c, what_is_cancelled_does_not_fail, 0, N_KINDS);
    tcase_add_loop_test(c, nothing_comes_after_close, 0, N_KINDS);
    tcase_add_loop_test(c, a_callback_may_close, 0, N_KINDS);
    tcase_add_loop_test(c, a_callback_may_send, 0, N_KINDS);
    tcase_add_loop_test(c, closed_is_told_of_a_link_that_was_not_used, 0, N_KINDS);
    tcase_add_loop_test(c, closed_may_be_left_out, 0, N_KINDS);
    tcase_add_loop_test(c, messages_come_in_the_order_of_the_peer, 0, N_KINDS);
    tcase_add_loop_test(c, what_is_too_large_is_a_failure_of_its_kind, 0, N_KINDS);
    return c;
}
