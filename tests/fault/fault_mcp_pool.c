/* Each allocation fails once while a server on pipes is started, asked and ended: no crash, no leak, and the call is
 * told. */
#include <check.h>
#include <signal.h>
#include <stdint.h>

#include "coreengine/tools/mcp/mcptools_internal.h"
#include "tests/kit/fault.h"
#include "tests/kit/suites.h"

struct call {
    struct rv_mcp_call call;
    int n_told;
};

/* The server ends without a word: no call succeeds. */
static void on_done(struct rv_mcp_call *c, const struct rv_mcp_out *out)
{
    (void)out;
    ((struct call *)c)->n_told++;
}

/* Asks once. n_told: how often the call was told its end. */
static int ask(rv_mcp_pool *pool, const struct rv_mcp_server_config *server, int *n_told)
{
    const struct rv_mcp_ask a = {.method = "tools/call", .timeout_us = 10000000};
    struct call c = {.call = {.done = on_done}};

    int rc = rv_mcp_pool_ask(pool, server, &a, &c.call, NULL);
    while (rc == 0 && c.n_told == 0)
        rv_mcp_pool_wait(pool, 1000000);
    *n_told = c.n_told;
    return rc;
}

/* Of libuv only what a loop has from its first server on: before, it aborts without memory. n: the allocation that
 * fails. */
static int talk(size_t n, int *n_told, bool *has_failed)
{
    static const char *command[] = {"true"};
    static const struct rv_mcp_server_config servers[] = {
        {.name = "a", .url = "", .command = {.items = command, .n = 1, .is_set = true}, .timeout_ms = 10000},
        {.name = "b", .url = "", .command = {.items = command, .n = 1, .is_set = true}, .timeout_ms = 10000}};
    const struct rv_mcp_pool_opts opts = {.servers = servers, .n_servers = 2};
    rv_mcp_pool *pool = NULL;

    int rc = rv_mcp_pool_new(&opts, &pool, NULL);
    rc = rc == 0 ? ask(pool, &servers[0], n_told) : rc;
    if (rc == 0) {
        rv_fault_arm(n);
        rc = ask(pool, &servers[1], n_told);
    }
    rv_mcp_pool_free(pool);
    *has_failed = rv_fault_disarm();
    return rc;
}

START_TEST(a_server_is_started_asked_and_ended)
{
    int n_told;
    bool has_failed = true;

    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(talk(SIZE_MAX, &n_told, &has_failed), 0);
    long balance = rv_fault_balance(); /* what the pool had before */
    has_failed = true;
    for (size_t n = 0; has_failed; n++) {
        int rc = talk(n, &n_told, &has_failed);
        ck_assert_msg(rc == 0 || rc == RV_E_NOMEM, "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(n_told == (rc == 0), "allocation %zu: told %d times", n, n_told);
        ck_assert_msg(rv_fault_balance() == balance, "allocation %zu: %ld blocks leak", n,
                      rv_fault_balance() - balance);
        ck_assert_msg(has_failed || n > 10 || !rv_fault_works(), "only %zu allocations", n);
    }
}
END_TEST

/* Lists that are kept: put, found, replaced, dropped. A drop without memory loses lists, and says nothing. */
static int lists(void)
{
    static const struct rv_mcp_server_config servers[] = {{.name = "a", .url = "1"}, {.name = "b", .url = "2"}};
    rv_mcp_lists *l = rv_mcp_lists_new();
    struct mcp_listed listed = {.tools = json_object_new_array()}, found = {.tools = NULL};
    int rc = l && listed.tools ? 0 : RV_E_NOMEM;

    for (size_t i = 0; i < 3 && rc == 0; i++)
        rc = mcptools_lists_put(l, &servers[i % 2], 1000, 0, &listed, NULL);
    rc = rc == 0 ? mcptools_lists_find(l, &servers[0], 0, &found, NULL) : rc;
    json_object_put(found.tools);
    if (l)
        mcptools_lists_drop(l, &servers[0]);
    json_object_put(listed.tools);
    rv_mcp_lists_free(l);
    return rc;
}

START_TEST(lists_are_kept_or_asked_for_again)
{
    bool has_failed = true;

    ck_assert_int_eq(lists(), 0);
    long balance = rv_fault_balance();
    for (size_t n = 0; has_failed; n++) {
        rv_fault_arm(n);
        int rc = lists();
        has_failed = rv_fault_disarm();
        ck_assert_msg(rc == 0 || rc == RV_E_NOMEM, "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == balance, "allocation %zu leaks", n);
        ck_assert_msg(has_failed || n > 5 || !rv_fault_works(), "only %zu allocations", n);
    }
}
END_TEST

static TCase *pool_case(void)
{
    TCase *tc = tcase_create("pool");

    tcase_add_test(tc, a_server_is_started_asked_and_ended);
    tcase_add_test(tc, lists_are_kept_or_asked_for_again);
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {pool_case};

    return rv_kit_run_cases("fault_mcp_pool", cases, RV_COUNT(cases));
}
