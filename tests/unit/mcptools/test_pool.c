/* A pool and a server on pipes, which writes down what it is told. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/tools/mcp/mcp.h"
#include "tests/kit/kit.h"
#include "tests/unit/mcptools/cases.h"

/* It offers a session of 2025-11-25, and answers no call. */
static const char program[] =
    "while read -r line; do\n"
    "  printf '%s\\n' \"$line\" >> \"$0\"\n"
    "  id=${line#*'\"id\":'}; id=${id%%[,\\}]*}\n"
    "  case $line in\n"
    "  *'\"server/discover\"'*) echo "
    "'{\"jsonrpc\":\"2.0\",\"id\":'$id',\"error\":{\"code\":-32601,\"message\":\"no\"}}';;\n"
    "  *'\"initialize\"'*) echo '{\"jsonrpc\":\"2.0\",\"id\":'$id',\"result\":{\"protocolVersion\":\"2025-11-25\","
    "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}';;\n"
    "  esac\n"
    "done\n";

static bool was_told(const char *log, const char *text)
{
    char *all = rv_kit_read(log);
    bool was = all && strstr(all, text);

    free(all);
    return was;
}

static void never_done(struct rv_mcp_call *call, const struct rv_mcp_out *out)
{
    (void)call;
    ck_abort_msg("it was answered: %s", out->trouble.text ? out->trouble.text : "");
}

/* A call that is cancelled in the last moment: nothing turns the loop between that and the end of the pool. */
START_TEST(a_server_is_told_of_a_cancel_before_it_is_left)
{
    char *folder = rv_kit_tmpdir(), *log = rv_kit_path(folder, "log");
    const char *command[] = {"sh", "-c", program, log};
    const struct rv_mcp_server_config server = {.name = "s",
                                                .url = "",
                                                .cwd = folder,
                                                .command = {.items = command, .n = 4, .is_set = true},
                                                .timeout_ms = 60000};
    const struct rv_mcp_pool_opts opts = {.servers = &server, .n_servers = 1};
    json_object *params = json_object_new_object();
    struct rv_mcp_call call = {.done = never_done};
    rv_mcp_pool *pool = NULL;

    fclose(fopen(log, "w"));
    ck_assert_int_eq(rv_mcp_pool_new(&opts, &pool, NULL), 0);
    json_object_object_add(params, "name", json_object_new_string("slow"));
    const struct rv_mcp_ask ask = {.method = "tools/call", .params = params};
    ck_assert_int_eq(rv_mcp_pool_ask(pool, &server, &ask, &call, NULL), 0);
    while (!was_told(log, "\"tools/call\""))
        rv_mcp_pool_wait(pool, RV_US_PER_MS);
    ck_assert(!was_told(log, "notifications/cancelled"));
    rv_mcp_pool_cancel(&call);
    rv_mcp_pool_free(pool);
    ck_assert(was_told(log, "notifications/cancelled"));
    json_object_put(params);
    free(log);
    rv_kit_tmpdir_remove(folder);
}
END_TEST

/* The connection stays, and its end is due in minutes. */
START_TEST(a_connection_without_calls_does_not_keep_a_loop_alive)
{
    char *folder = rv_kit_tmpdir(), *log = rv_kit_path(folder, "log");
    const char *command[] = {"sh", "-c", program, log};
    const struct rv_mcp_server_config server = {.name = "s",
                                                .url = "",
                                                .cwd = folder,
                                                .command = {.items = command, .n = 4, .is_set = true},
                                                .timeout_ms = 60000};
    const struct rv_mcp_pool_opts opts = {.servers = &server, .n_servers = 1};
    const struct rv_mcp_ask ask = {.method = "tools/list", .timeout_us = RV_US_PER_MIN};
    struct rv_mcp_call call = {.done = never_done};
    rv_mcp_pool *pool = NULL;
    uv_loop_t loop;

    fclose(fopen(log, "w"));
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(rv_mcp_pool_new(&opts, &pool, NULL), 0);
    ck_assert_int_eq(rv_mcp_pool_attach(pool, &loop, NULL), 0);
    ck_assert_int_eq(rv_mcp_pool_ask(pool, &server, &ask, &call, NULL), 0);
    while (!was_told(log, "\"tools/list\""))
        uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert(uv_loop_alive(&loop));
    rv_mcp_pool_cancel(&call);
    for (int i = 0; i < 10; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert(!uv_loop_alive(&loop));
    rv_mcp_pool_free(pool);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    free(log);
    rv_kit_tmpdir_remove(folder);
}
END_TEST

TCase *pool_case(void)
{
    TCase *tc = tcase_create("pool");

    tcase_add_test(tc, a_server_is_told_of_a_cancel_before_it_is_left);
    tcase_add_test(tc, a_connection_without_calls_does_not_keep_a_loop_alive);
    return tc;
}
