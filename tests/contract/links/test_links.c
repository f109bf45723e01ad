/* What coreengine/mcp/link.h promises of every link, asked of each kind. What no callback may do is in world.c. */
#include "tests/contract/links/world.h"

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

TCase *links_case(void)
{
    TCase *c = tcase_create("links");

    tcase_add_loop_test(c, a_request_ends_once_and_a_notification_does_not, 0, N_KINDS);
    tcase_add_loop_test(c, what_ends_without_an_answer_has_failed_once, 0, N_KINDS);
    return c;
}
