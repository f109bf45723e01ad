/* Tools and resources (p8 1.2, 1.4; remlight 3, 4). */
#include <stdlib.h>

#include "tests/unit/agentdoc/suites.h"

/* As long as the name of a parameter may be. */
#define WORD_50  "a2345678901234567890123456789012345678901234567890"
#define WORD_127 WORD_50 WORD_50 "a23456789012345678901234567"

#define HEAD   "name: a\ndescription: d\n"
#define NESTED "description: d\njson_schema_extra:\n  name: a\n"

static const struct {
    const char *text;
    const char *want; /* the tools of the flat document */
} lists[] = {
    {HEAD "tools: []", "[]"},
    {HEAD "tools: [x]", "[{\"name\":\"x\"}]"},
    {HEAD "tools: [{name: x, server: local}, {name: y, server: rem}, {name: z, server: null}]",
     "[{\"name\":\"x\",\"server\":\"local\"},{\"name\":\"y\",\"server\":\"rem\"},{\"name\":\"z\"}]"},
    {HEAD "tools: [{name: x, server: s, description: d, uri: 'user://p/{user_id}'}]",
     "[{\"name\":\"x\",\"server\":\"s\",\"description\":\"d\",\"uri\":\"user://p/{user_id}\"}]"},
    {HEAD "tools: [{name: x, mcp_server: s}, {name: y, server: t, mcp_server: s}]",
     "[{\"name\":\"x\",\"server\":\"s\"},{\"name\":\"y\",\"server\":\"t\"}]"},
    {HEAD "tools: [x, x]", "[{\"name\":\"x\"},{\"name\":\"x\"}]"}, /* p8 1.2: duplicates are kept */
    {HEAD "resources: null", "[]"},
    {HEAD "tools: [x]\nresources: [{name: Weather Report, description: r}, {name: X}]",
     "[{\"name\":\"x\"},{\"name\":\"weather_report\",\"description\":\"r\"}]"},
    {HEAD "tools: [{name: x, uri: 'a:{" WORD_127 "}'}]", "[{\"name\":\"x\",\"uri\":\"a:{" WORD_127 "}\"}]"},
    {HEAD "resources: [{name: w, uri: 'rem://w'}]", "[{\"name\":\"w\"}]"}, /* p8 1.4: the URI is not kept */
    {HEAD "resources: ['rem://w', {uri: 'rem://w'}]", "[]"},
    {NESTED "  resources: [{uri: 'user://profile/{user_id}'}]",
     "[{\"name\":\"user_profile_user_id\",\"uri\":\"user://profile/{user_id}\"}]"},
    {NESTED "  resources: [{uri_pattern: 'resource://users/profile', description: r, mcp_server: s}]",
     "[{\"name\":\"resource_users_profile\",\"server\":\"s\",\"description\":\"r\",\"uri\":\"resource://users/"
     "profile\"}]"},
    {NESTED "  tools: [t]\n  resources: ['rem://status', {name: n, uri: 'a:b'}]",
     "[{\"name\":\"t\"},{\"name\":\"rem_status\",\"uri\":\"rem://status\"},{\"name\":\"n\",\"uri\":\"a:b\"}]"},
    {"name: a\ncontent: c\njson_schema: {tools: [t], resources: [{name: R}]}", "[{\"name\":\"t\"},{\"name\":\"r\"}]"},
};

/* Proves p8.1.2: Tools are names or maps; a description is a hint for the agent alone
 * Proves p8.1.4: Older resources become tools */
START_TEST(tools_are_names_or_maps)
{
    struct rv_agentdoc *d = doc_of(lists[_i].text);
    char *got = rv_kit_text(rv_json_get_arr(d->flat, "tools"));

    ck_assert_str_eq(got, lists[_i].want);
    free(got);
    rv_agentdoc_free(d);
}
END_TEST

static const struct {
    const char *text, *want;
} faults[] = {
    {HEAD "tools: null", "3:8: error: agent \"a\": tools must not be null"},
    {HEAD "tools: {x: y}",
     "3:8: error: agent \"a\": tools must be a list, not map\n  hint: begin each tool with \"- \""},
    {HEAD "tools: x", "tools must be a list, not string"},
    {HEAD "tools: [3]", "3:9: error: agent \"a\": tools[0] must be a tool, not integer\n  hint: write its name"},
    {HEAD "tools: [x, null]", "tools[1] must be a tool, not null"},
    {HEAD "tools: [[x]]", "tools[0] must be a tool, not list"},
    {HEAD "tools: [a b]", "tools[0].name must be a plain name, not \"a b\""},
    {HEAD "tools: [{server: s}]", "3:9: error: agent \"a\": tools[0].name is required"},
    {HEAD "tools: [{name: null}]", "tools[0].name is required"},
    {HEAD "tools: [{name: 3}]", "tools[0].name must be a string, not integer 3"},
    {HEAD "tools: [{name: x, server: a b}]", "tools[0].server must be a plain name"},
    {HEAD "tools: [{name: x, description: 3}]", "tools[0].description must be a string"},
    {HEAD "tools: [{name: x, uri: 'no uri'}]", "3:24: error: agent \"a\": tools[0].uri must be a URI"},
    {HEAD "tools: [{name: x, uri: 'a:{b'}]", "tools[0].uri must be a URI"},
    {HEAD "tools: [{name: x, uri: 'a:}'}]", "tools[0].uri must be a URI"},
    {HEAD "tools: [{name: x, uri: 'a:{}'}]", "tools[0].uri must be a URI"},
    {HEAD "tools: [{name: x, uri: 'a:{b-c}'}]", "tools[0].uri must be a URI"},
    {HEAD "tools: [{name: x, uri: ':a'}]", "tools[0].uri must be a URI"},
    {HEAD "tools: [{name: x, uri: 'a:{" WORD_127 "b}'}]", "tools[0].uri must be a URI"},
    {HEAD "tools: [{name: x, descripton: d}]",
     "3:19: warning: agent \"a\": tools[0].descripton has no effect\n  hint: did you mean \"description\"?"},
    {HEAD "tools: [{name: x, protocol: p}]", "warning: agent \"a\": tools[0].protocol has no effect"},
    {HEAD "tools: [x, y, x]", "3:15: warning: agent \"a\": the tool \"x\" is listed twice"},
    {HEAD "resources: 3", "resources must be a list, not integer"},
    {HEAD "resources: [{name: w, uri: 'rem://w'}]",
     "warning: agent \"a\": resources[0].uri has no effect: \"w\" is called as a tool of that name"},
    {HEAD "resources: ['rem://w']", "warning: agent \"a\": resources[0] has no name and no effect"},
    {HEAD "resources: [{name: 'a/b'}]", "resources[0].name must be a plain name, not \"a/b\""},
    {NESTED "  resources: [{name: x}]", "resources[0].uri or uri_pattern is required"},
    {NESTED "  resources: [3]", "resources[0] must be a resource, not integer"},
    {NESTED "  resources: [{uri: 'a:b?c'}]", "resources[0].uri makes the name \"a:b?c\", which is not a name"},
    {NESTED "  resources: [{uri: 'a:b', name: 'x y'}]", "resources[0].name must be a plain name"},
    {NESTED "  resources: [{uri: 'a:b', name: x, mime: y}]", "warning: agent \"a\": resources[0].mime has no effect"},
};

/* Proves p8.1.2 */
START_TEST(what_is_no_tool_is_a_finding_with_its_place)
{
    ck_findings(faults[_i].text, faults[_i].want);
}
END_TEST

START_TEST(a_tool_knows_its_place)
{
    struct rv_agentdoc *d = doc_of(HEAD "tools:\n  - x\n  - {name: y}\n");

    ck_assert_int_eq(d->tools_src.line, 4);
    ck_assert_int_eq(d->tools[0].src.line, 4);
    ck_assert_int_eq(d->tools[1].src.line, 5);
    ck_assert_int_eq(d->tools[1].src.col, 5);
    ck_assert_str_eq(d->tools[1].src.file, "a.yaml");
    rv_agentdoc_free(d);
}
END_TEST

START_TEST(tools_have_a_largest_number)
{
    rv_buf text = RV_BUF_INIT(1 << 16);

    rv_buf_puts(&text, HEAD "tools: [");
    for (int i = 0; i < RV_AGENTDOC_MAX_TOOLS; i++)
        rv_buf_printf(&text, "t%d, ", i);
    rv_buf_puts(&text, "]\n");
    ck_findings(rv_buf_cstr(&text), NULL);
    rv_buf_truncate(&text, text.len - 2);
    rv_buf_puts(&text, "last]\n");
    ck_findings(rv_buf_cstr(&text), "it has 129 tools (the limit is 128)");
    rv_buf_fini(&text);
}
END_TEST

TCase *tools_case(void)
{
    TCase *tc = tcase_create("tools");

    tcase_add_loop_test(tc, tools_are_names_or_maps, 0, RV_COUNT(lists));
    tcase_add_loop_test(tc, what_is_no_tool_is_a_finding_with_its_place, 0, RV_COUNT(faults));
    tcase_add_test(tc, a_tool_knows_its_place);
    tcase_add_test(tc, tools_have_a_largest_number);
    return tc;
}
