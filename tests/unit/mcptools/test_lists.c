/* Lists of MCP servers that are kept while they are fresh: of which server, for how long, and until which change. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/base/base.h"
#include "coreengine/tools/mcp/mcptools_internal.h"
#include "tests/kit/suites.h"
#include "tests/unit/mcptools/cases.h"

#define SECOND INT64_C(1000000)

static json_object *json(const char *text)
{
    json_object *value = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &value, NULL), 0);
    return value;
}

static void put(rv_mcp_lists *l, const struct rv_mcp_server_config *s, int64_t ttl_ms, int64_t now_us,
                const char *tools, int64_t n_changes)
{
    const struct mcp_listed listed = {.tools = json(tools), .has_prompts = true, .n_changes = n_changes};

    ck_assert_int_eq(mcptools_lists_put(l, s, ttl_ms, now_us, &listed, NULL), 0);
    json_object_put(listed.tools);
}

/* The list as text; "": none is kept. */
static const char *find(rv_mcp_lists *l, const struct rv_mcp_server_config *s, int64_t now_us)
{
    static char text[400];
    struct mcp_listed listed;
    rv_buf b = RV_BUF_INIT(sizeof text);

    ck_assert_int_eq(mcptools_lists_find(l, s, now_us, &listed, NULL), 0);
    if (listed.tools)
        rv_json_write(listed.tools, &b);
    snprintf(text, sizeof text, "%s%s", rv_buf_cstr(&b), listed.has_prompts ? " prompts" : "");
    rv_buf_fini(&b);
    json_object_put(listed.tools);
    return text;
}

static const struct rv_mcp_server_config server = {.name = "a", .url = "http://a/", .cwd = "/"};

START_TEST(a_list_is_kept_as_long_as_its_server_said)
{
    rv_mcp_lists *l = rv_mcp_lists_new();

    ck_assert_str_eq(find(l, &server, 0), "");
    put(l, &server, 0, 0, "[1]", 0);
    put(l, &server, -1, 0, "[1]", 0);
    put(l, &server, INT64_MIN, 0, "[1]", 0);
    ck_assert_str_eq(find(l, &server, 0), "");
    put(l, &server, 2000, 0, "[1.50]", 0);
    ck_assert_str_eq(find(l, &server, 0), "[1.50] prompts");
    ck_assert_str_eq(find(l, &server, 2 * SECOND - 1), "[1.50] prompts");
    ck_assert_str_eq(find(l, &server, 2 * SECOND), "");
    ck_assert_str_eq(find(l, &server, 0), ""); /* what is not fresh any more is gone */
    put(l, &server, INT64_MAX, 0, "[2]", 0);
    put(l, &server, 1000, 0, "[3]", 0); /* the last one counts */
    ck_assert_str_eq(find(l, &server, 0), "[3] prompts");
    ck_assert_str_eq(find(l, &server, SECOND), "");
    put(l, &server, INT64_MAX, 0, "[2]", 0);
    ck_assert_str_eq(find(l, &server, 3600 * SECOND - 1), "[2] prompts");
    ck_assert_str_eq(find(l, &server, 3600 * SECOND), ""); /* whatever the server says, an hour is the most */
    rv_mcp_lists_free(l);
}
END_TEST

START_TEST(a_list_is_that_of_one_server_and_one_identity)
{
    static const char *one[] = {"ab", "c"}, *two[] = {"a", "bc"};
    json_object *header = json("{\"authorization\":\"x\"}"), *other = json("{\"authorization\":\"y\"}");
    const struct rv_mcp_server_config others[] = {
        {.name = "a", .url = "http://b/", .cwd = "/"},
        {.name = "a", .url = "http://a/", .cwd = "/x"},
        {.name = "a", .url = "http://a/", .cwd = "/", .openapi = "http://a/doc.json"},
        {.name = "a", .url = "http://a/", .cwd = "/", .elicitation = true},
        {.name = "a", .url = "http://a/", .cwd = "/", .headers = header},
        {.name = "a", .url = "http://a/", .cwd = "/", .headers = other},
        {.name = "a", .url = "http://a/", .cwd = "/", .env = header},
        {.name = "a", .url = "http://a/", .cwd = "/", .auth = header},
        {.name = "a", .url = "", .cwd = "/", .command = {.items = one, .n = 2, .is_set = true}},
        {.name = "a", .url = "", .cwd = "/", .command = {.items = two, .n = 2, .is_set = true}},
        {.name = "a", .url = "http://a/", .cwd = "/", .roots = {.items = one, .n = 2, .is_set = true}},
        {.name = "a", .url = "http://a/", .cwd = "/", .roots = {.items = one, .n = 0, .is_set = true}},
    };
    const struct rv_mcp_server_config same = {.name = "another name", .url = "http://a/", .cwd = "/", .trusted = true};
    rv_mcp_lists *l = rv_mcp_lists_new();
    char tools[20], want[40];

    put(l, &server, 1000, 0, "[\"a\"]", 0);
    for (size_t i = 0; i < RV_COUNT(others); i++) {
        ck_assert_str_eq(find(l, &others[i], 0), "");
        snprintf(tools, sizeof tools, "[%zu]", i);
        put(l, &others[i], 1000, 0, tools, 0);
    }
    for (size_t i = 0; i < RV_COUNT(others); i++) {
        snprintf(want, sizeof want, "[%zu] prompts", i);
        ck_assert_str_eq(find(l, &others[i], 0), want);
    }
    ck_assert_str_eq(find(l, &same, 0), "[\"a\"] prompts");
    rv_mcp_lists_free(l);
    json_object_put(header);
    json_object_put(other);
}
END_TEST

START_TEST(a_change_drops_the_list_and_those_that_are_on_their_way)
{
    const struct rv_mcp_server_config other = {.name = "b", .url = "http://b/", .cwd = "/"};
    rv_mcp_lists *l = rv_mcp_lists_new();
    struct mcp_listed asked;

    put(l, &server, 1000, 0, "[1]", 0);
    put(l, &other, 1000, 0, "[2]", 0);
    ck_assert_int_eq(
        mcptools_lists_find(l, &(struct rv_mcp_server_config){.name = "c", .url = "http://c/"}, 0, &asked, NULL), 0);
    mcptools_lists_drop(l, &server);
    ck_assert_str_eq(find(l, &server, 0), "");
    ck_assert_str_eq(find(l, &other, 0), "[2] prompts");
    put(l, &server, 1000, 0, "[1]", asked.n_changes); /* asked for before the change */
    ck_assert_str_eq(find(l, &server, 0), "");
    ck_assert_int_eq(mcptools_lists_find(l, &server, 0, &asked, NULL), 0);
    put(l, &server, 1000, 0, "[3]", asked.n_changes);
    ck_assert_str_eq(find(l, &server, 0), "[3] prompts");
    rv_mcp_lists_free(l);
}
END_TEST

START_TEST(what_is_kept_is_bounded)
{
    rv_mcp_lists *l = rv_mcp_lists_new();
    rv_buf large = RV_BUF_INIT(4 << 20);
    char url[40];

    rv_buf_puts(&large, "[\"");
    for (int i = 0; i < 1 << 17; i++)
        rv_buf_puts(&large, "01234567");
    rv_buf_puts(&large, "\"]");
    put(l, &server, 1000, 0, rv_buf_cstr(&large), 0);
    ck_assert_str_eq(find(l, &server, 0), "");
    for (int i = 0; i < 1000; i++) {
        snprintf(url, sizeof url, "http://a/%d", i);
        put(l, &(struct rv_mcp_server_config){.name = "a", .url = url}, 1000 + i, 0, "[]", 0);
    }
    ck_assert_uint_eq(l->n, 64);
    for (int i = 0; i < 1000; i++) { /* those that ended first made room */
        snprintf(url, sizeof url, "http://a/%d", i);
        const struct rv_mcp_server_config s = {.name = "a", .url = url};
        ck_assert_str_eq(find(l, &s, 0), i < 1000 - 64 ? "" : "[] prompts");
    }
    rv_mcp_lists_free(l);
    rv_buf_fini(&large);
}
END_TEST

/* Random puts, drops and looks beside a model of a few numbers for each server. */
START_TEST(random_histories_fit_a_model)
{
    static const struct rv_mcp_server_config servers[] = {
        {.name = "a", .url = "1"}, {.name = "a", .url = "2"}, {.name = "a", .url = "3"}, {.name = "a", .url = "4"}};
    struct {
        int64_t until_us;
        int n;
    } model[RV_COUNT(servers)] = {{0, 0}};
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 17);
    rv_mcp_lists *l = rv_mcp_lists_new();
    char text[40];
    int64_t now_us = 0;

    for (int i = 0; i < 20000; i++) {
        size_t at = rv_rand_below(rand, RV_COUNT(servers));
        now_us += (int64_t)rv_rand_below(rand, 300);
        switch (rv_rand_below(rand, 4)) {
        case 0:
            snprintf(text, sizeof text, "[%d]", i);
            int64_t ttl_ms = (int64_t)rv_rand_below(rand, 3);
            put(l, &servers[at], ttl_ms, now_us, text, l->n_changes);
            if (ttl_ms > 0) {
                model[at].until_us = now_us + 1000 * ttl_ms;
                model[at].n = i;
            }
            break;
        case 1:
            mcptools_lists_drop(l, &servers[at]);
            model[at].until_us = 0;
            break;
        default:
            snprintf(text, sizeof text, "[%d] prompts", model[at].n);
            ck_assert_str_eq(find(l, &servers[at], now_us), model[at].until_us > now_us ? text : "");
        }
    }
    rv_mcp_lists_free(l);
}
END_TEST

TCase *lists_case(void)
{
    TCase *tc = tcase_create("lists");

    tcase_add_test(tc, a_list_is_kept_as_long_as_its_server_said);
    tcase_add_test(tc, a_list_is_that_of_one_server_and_one_identity);
    tcase_add_test(tc, a_change_drops_the_list_and_those_that_are_on_their_way);
    tcase_add_test(tc, what_is_kept_is_bounded);
    tcase_add_test(tc, random_histories_fit_a_model);
    return tc;
}
