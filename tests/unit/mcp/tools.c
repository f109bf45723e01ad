/* Tools of MCP servers: what of their words is believed, which definitions are taken, and under which names. */
#include "coreengine/mcp/mcp.h"

#include "tests/unit/mcp/suites.h"

#include <stdio.h>

static json_object *json(const char *text)
{
    json_object *value = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &value, NULL), 0);
    return value;
}

/* --- hints --- */

static const struct {
    const char *annotations;
    bool trusted;
    struct rv_mcp_tool_config own;
    const char *want; /* r read-only, d destructive, i idempotent, o open world */
} hints[] = {
    {"{}", false, {0}, "do"},
    {"{}", true, {0}, "do"},
    {"{\"readOnlyHint\":true,\"idempotentHint\":true,\"destructiveHint\":false,\"openWorldHint\":false}",
     false,
     {0},
     "do"},
    {"{\"readOnlyHint\":true,\"openWorldHint\":false}", true, {0}, "r"},
    {"{\"destructiveHint\":false,\"idempotentHint\":true}", true, {0}, "io"},
    {"{\"destructiveHint\":false}", false, {.has_destructive = true}, "o"},
    {"{\"destructiveHint\":true}", false, {0}, "do"},
    {"{}", false, {.has_read_only = true, .read_only = true}, "ro"},
    {"{\"readOnlyHint\":true}", true, {.has_read_only = true}, "do"},
    {"{\"idempotentHint\":true}", true, {.has_idempotent = true}, "do"},
    {"{\"readOnlyHint\":\"yes\",\"destructiveHint\":0}", true, {0}, "do"},
};
/* Proves mcp.H1: What the file says of a tool counts first, then what a trusted server says; an untrusted one can
 * only make a tool more dangerous. */
START_TEST(an_untrusted_server_is_believed_only_where_it_is_stricter)
{
    json_object *a = json(hints[_i].annotations);
    struct rv_mcp_hints h = rv_mcp_hints_of(a, hints[_i].trusted, &hints[_i].own);
    char got[8];

    snprintf(got, sizeof got, "%s%s%s%s", h.read_only ? "r" : "", h.destructive ? "d" : "", h.idempotent ? "i" : "",
             h.open_world ? "o" : "");
    ck_assert_str_eq(got, hints[_i].want);
    bool is_said = false; /* also an untrusted server may call a tool destructive */
    if (!hints[_i].own.has_destructive)
        ck_assert_int_eq(h.says_destructive, rv_json_get_bool(a, "destructiveHint", &is_said) && is_said);
    json_object_put(a);
}
END_TEST

/* Proves mcp.H2: The confirmation policies are never, declared, destructive, writes and always. */
START_TEST(policies_say_what_is_confirmed)
{
    static const struct rv_mcp_hints rows[] = {{.read_only = true},
                                               {.destructive = true},
                                               {.destructive = true, .says_destructive = true},
                                               {0},
                                               {.read_only = true, .says_destructive = true}};
    static const char *const want[] = {"nnnnn", "nnynn", "nyynn", "nyyyn", "yyyyy"};

    for (size_t i = 0; i < RV_COUNT(rows); i++)
        ck_assert_int_eq(rv_mcp_must_confirm((enum rv_mcp_confirm)_i, &rows[i]), want[_i][i] == 'y');
}
END_TEST

/* --- catalogs --- */

struct world {
    struct rv_mcp_server_config servers[2];
    rv_findings *findings;
    rv_mcp_catalog *catalog;
};

#define OBJECT "\"inputSchema\":{\"type\":\"object\"}"

static void begin(struct world *w)
{
    *w = (struct world){.findings = rv_findings_new()};
    for (int i = 0; i < 2; i++)
        w->servers[i] = (struct rv_mcp_server_config){
            .name = i == 0 ? "a" : "b", .confirm = RV_MCP_CONFIRM_DECLARED, .timeout_ms = 5, .catalog = ""};
    ck_assert_int_eq(rv_mcp_catalog_new(w->servers, 2, &w->catalog, NULL), 0);
}

static void add(struct world *w, int server, const char *list)
{
    json_object *tools = json(list);

    ck_assert_int_eq(rv_mcp_catalog_add(w->catalog, &w->servers[server], &(struct rv_mcp_offer){tools, true, true},
                                        w->findings, NULL),
                     0);
    json_object_put(tools);
}

static void end(struct world *w)
{
    rv_mcp_catalog_free(w->catalog);
    rv_findings_free(w->findings);
}

static void must_list(const struct world *w, const char *want)
{
    rv_buf got = RV_BUF_INIT(4000);
    size_t n;
    const char *const *names = rv_mcp_catalog_names(w->catalog, &n);

    for (size_t i = 0; i < n; i++)
        rv_buf_printf(&got, "%s%s", i ? " " : "", names[i]);
    ck_assert_str_eq(rv_buf_cstr(&got), want);
    rv_buf_fini(&got);
}

START_TEST(bare_names_are_those_that_one_server_has)
{
    const struct rv_tool_info *info = NULL;
    struct world w;

    begin(&w);
    add(&w, 0, "[{\"name\":\"x\"," OBJECT "},{\"name\":\"y\"," OBJECT "},{\"name\":\"ask_agent\"," OBJECT "}]");
    add(&w, 1, "[{\"name\":\"x\"," OBJECT "},{\"name\":\"a.y\"," OBJECT "}]");
    ck_assert_int_eq(rv_mcp_catalog_finish(w.catalog, NULL), 0);
    must_list(&w, "a.ask_agent a.x a.y b.a.y b.x y");
    ck_assert_ptr_null(rv_mcp_catalog_find(w.catalog, RV_STR_LIT("x"), &info));
    const struct rv_mcp_tool *t = rv_mcp_catalog_find(w.catalog, RV_STR_LIT("y"), &info);
    ck_assert_str_eq(info->name, "y");
    ck_assert_ptr_eq(t, rv_mcp_catalog_find(w.catalog, RV_STR_LIT("a.y"), &info));
    ck_assert_str_eq(info->name, "a.y");
    end(&w);
}
END_TEST

START_TEST(a_definition_that_cannot_be_used_is_a_warning)
{
    struct world w;

    begin(&w);
    add(&w, 0,
        "[7,null,{},{\"name\":7},{\"name\":\"\"},{\"name\":\"a b\"},{\"name\":\"no_schema\"},"
        "{\"name\":\"array\",\"inputSchema\":{\"type\":\"array\"}},"
        "{\"name\":\"bad\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"x\":{\"pattern\":\"(\"}}}},"
        "{\"name\":\"bad_output\"," OBJECT ",\"outputSchema\":{\"type\":7}},"
        "{\"name\":\"header\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"object\","
        "\"x-mcp-header\":\"X\"}}}},"
        "{\"name\":\"one_header_twice\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":"
        "\"string\",\"x-mcp-header\":\"X\"},\"y\":{\"type\":\"string\",\"x-mcp-header\":\"x\"}}}},"
        "{\"name\":\"good\"," OBJECT "},{\"name\":\"good\"," OBJECT "}]");
    ck_assert_int_eq(rv_mcp_catalog_finish(w.catalog, NULL), 0);
    must_list(&w, "a.good good");
    ck_assert_uint_eq(rv_findings_n(w.findings), 13);
    ck_assert_uint_eq(rv_findings_n_errors(w.findings), 0);
    const char *named = rv_findings_at(w.findings, 5).text; /* its number here is not that of the server's list */
    ck_assert_msg(strstr(named, "tool \"a b\" is left out: its name is not 1 to 128 letters"), "%s", named);
    end(&w);
}
END_TEST

/* Of two tools of one name in one list the first counts, also when it cannot be used. */
START_TEST(of_two_tools_of_a_name_the_first_counts)
{
    json_object *tools =
                    json("[7,{\"name\":\"x\",\"inputSchema\":7},{},{\"name\":\"X\"},{\"name\":\"x\"," OBJECT "},7,{},"
                         "{\"name\":\"y\"},{\"name\":\"x\"}]"),
                *unique = NULL;
    struct world w;

    begin(&w);
    ck_assert_int_eq(rv_mcp_catalog_build_unique(&w.servers[0], tools, w.findings, &unique, NULL), 0);
    ck_assert_str_eq(json_object_to_json_string_ext(unique, JSON_C_TO_STRING_PLAIN),
                     "[7,{\"name\":\"x\",\"inputSchema\":7},{},{\"name\":\"X\"},7,{},{\"name\":\"y\"}]");
    ck_assert_uint_eq(rv_findings_n(w.findings), 2);
    ck_assert_uint_eq(rv_findings_n_errors(w.findings), 0);
    json_object_put(unique);
    json_object_put(tools);
    end(&w);
}
END_TEST

START_TEST(names_of_the_file_that_no_tool_has_are_told)
{
    const char *allowed[] = {"purge", "list_prompts", "puge"}, *denied[] = {"drop"};
    struct rv_mcp_tool_config own[] = {{.name = "y"}, {.name = "purg"}};
    json_object *tools = json("[7,{\"name\":\"purge\"},{\"name\":\"y\"}]"), *unique = NULL;
    static const char *const texts[] = {"MCP server \"a\": tools names \"purg\", which it does not have",
                                        "MCP server \"a\": allow names \"puge\", which it does not have",
                                        "MCP server \"a\": deny names \"drop\", which it does not have"};
    struct world w;

    begin(&w);
    w.servers[0].allow = (struct rv_str_list){.items = allowed, .n = 3, .is_set = true};
    w.servers[0].deny = (struct rv_str_list){.items = denied, .n = 1, .is_set = true};
    w.servers[0].tools = own;
    w.servers[0].n_tools = 2;
    ck_assert_int_eq(rv_mcp_catalog_build_unique(&w.servers[0], tools, w.findings, &unique, NULL), 0);
    ck_assert_uint_eq(rv_findings_n(w.findings), RV_COUNT(texts));
    for (size_t i = 0; i < RV_COUNT(texts); i++)
        ck_assert_str_eq(rv_findings_at(w.findings, i).text, texts[i]);
    ck_assert_str_eq(rv_findings_at(w.findings, 0).hint, "did you mean \"purge\"?");
    ck_assert_uint_eq(rv_findings_n_errors(w.findings), 0);
    json_object_put(unique);
    json_object_put(tools);
    end(&w);
}
END_TEST

START_TEST(the_file_says_which_tools_are_taken)
{
    const char *allowed[] = {"x", "list_prompts"}, *denied[] = {"y"};
    struct world w;

    begin(&w);
    w.servers[0].allow = (struct rv_str_list){.items = allowed, .n = 2, .is_set = true};
    w.servers[0].prompts = w.servers[1].resources = true;
    w.servers[1].deny = (struct rv_str_list){.items = denied, .n = 1, .is_set = true};
    add(&w, 0, "[{\"name\":\"x\"," OBJECT "},{\"name\":\"z\"," OBJECT "}]");
    add(&w, 1, "[{\"name\":\"y\"," OBJECT "},{\"name\":\"v\"," OBJECT "}]");
    ck_assert_int_eq(rv_mcp_catalog_finish(w.catalog, NULL), 0);
    must_list(&w, "a.list_prompts a.x b.list_resource_templates b.list_resources b.read_resource b.v list_prompts "
                  "list_resource_templates list_resources read_resource v x");
    end(&w);
}
END_TEST

START_TEST(lists_that_were_kept_make_the_same_catalog)
{
    json_object *lists = NULL, *again = NULL;
    struct world w, v;

    begin(&w);
    w.servers[0].resources = true;
    add(&w, 0, "[{\"name\":\"x\"," OBJECT ",\"annotations\":{\"destructiveHint\":true}}]");
    ck_assert_int_eq(rv_mcp_catalog_write(w.catalog, NULL, &lists, NULL), 0);
    begin(&v);
    v.servers[0].resources = true;
    ck_assert_int_eq(rv_mcp_catalog_read(v.catalog, lists, v.findings, NULL), 0);
    ck_assert_int_eq(rv_mcp_catalog_finish(v.catalog, NULL), 0);
    must_list(&v,
              "a.list_resource_templates a.list_resources a.read_resource a.x list_resource_templates list_resources "
              "read_resource x");
    ck_assert_int_eq(rv_mcp_catalog_write(v.catalog, NULL, &again, NULL), 0);
    ck_assert(rv_json_equal(lists, again));
    ck_assert(!rv_mcp_catalog_has_server(v.catalog, "b"));
    json_object_put(lists);
    json_object_put(again);
    lists = json("{\"a\":{}}");
    ck_assert_int_eq(rv_mcp_catalog_read(w.catalog, lists, w.findings, NULL), RV_E_INVALID);
    json_object_put(lists);
    end(&w);
    end(&v);
}
END_TEST

/* --- risk and effect --- */

static const struct {
    const char *annotations;
    int confirm;
    enum rv_risk risk;
    enum rv_effect_class effect;
    bool confirms;
} judged[] = {
    {"{\"readOnlyHint\":true}", RV_MCP_CONFIRM_DECLARED, RV_RISK_READ_ONLY, RV_EFFECT_SAFE, false},
    {"{\"idempotentHint\":true}", RV_MCP_CONFIRM_DECLARED, RV_RISK_WRITE, RV_EFFECT_IDEMPOTENT, false},
    {"{}", RV_MCP_CONFIRM_DECLARED, RV_RISK_WRITE, RV_EFFECT_NON_IDEMPOTENT, false},
    {"{}", RV_MCP_CONFIRM_DESTRUCTIVE, RV_RISK_DESTRUCTIVE, RV_EFFECT_NON_IDEMPOTENT, true},
    {"{\"destructiveHint\":true}", RV_MCP_CONFIRM_DECLARED, RV_RISK_DESTRUCTIVE, RV_EFFECT_NON_IDEMPOTENT, true},
    {"{\"destructiveHint\":true}", RV_MCP_CONFIRM_NEVER, RV_RISK_WRITE, RV_EFFECT_NON_IDEMPOTENT, false},
    {"{\"readOnlyHint\":true}", RV_MCP_CONFIRM_ALWAYS, RV_RISK_READ_ONLY, RV_EFFECT_SAFE, true},
};
/* Proves mcp.H4: A tool is repeated, or called beside others, only where it is believed to be read-only or
 * idempotent. */
START_TEST(risk_and_effect_follow_from_what_is_believed)
{
    const struct rv_tool_info *info = NULL;
    char list[400];
    struct world w;

    begin(&w);
    w.servers[0].trusted = true;
    w.servers[0].confirm = judged[_i].confirm;
    snprintf(list, sizeof list, "[{\"name\":\"x\"," OBJECT ",\"annotations\":%s}]", judged[_i].annotations);
    add(&w, 0, list);
    ck_assert_int_eq(rv_mcp_catalog_finish(w.catalog, NULL), 0);
    ck_assert_ptr_nonnull(rv_mcp_catalog_find(w.catalog, RV_STR_LIT("a.x"), &info));
    ck_assert_int_eq(rv_tool_risk(info), judged[_i].risk);
    ck_assert_int_eq(rv_tool_effect(info), judged[_i].effect);
    ck_assert_int_eq(info->confirm != NULL, judged[_i].confirms);
    ck_assert_int_eq(info->timeout_ms, 5);
    end(&w);
}
END_TEST

/* --- results --- */

#define NUMBER                                                                                                         \
    ",\"outputSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}"
static const struct {
    const char *more, *result;
    int validation;
    const char *code, *text; /* code NULL: a success */
} results[] = {
    {"", "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}", 0, NULL,
     "{\"status\":\"success\",\"data\":{\"value\":\"a\"}}"},
    {"", "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"status\\\":\\\"error\\\"}\"}]}", 0, NULL,
     "{\"status\":\"success\",\"data\":{\"status\":\"error\"}}"},
    {"", "{\"content\":[]}", 0, NULL, "{\"status\":\"success\",\"data\":{\"value\":null}}"},
    {"", "{\"structuredContent\":[1]}", 0, NULL, "{\"status\":\"success\",\"data\":{\"value\":[1]}}"},
    {"", "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"no\"}]}", 0, "tool_error", "no"},
    {NUMBER, "{\"structuredContent\":{\"n\":1}}", 0, NULL, "{\"status\":\"success\",\"data\":{\"n\":1}}"},
    {NUMBER, "{\"structuredContent\":{\"n\":\"x\"}}", RV_MCP_OUTPUT_STRICT, "output_schema_violation", "/n"},
    {NUMBER, "{\"structuredContent\":{\"n\":\"x\"}}", RV_MCP_OUTPUT_WARN, NULL, "{\"n\":\"x\"}"},
    {NUMBER, "{\"structuredContent\":{\"n\":\"x\"}}", RV_MCP_OUTPUT_OFF, NULL, "{\"n\":\"x\"}"},
    {NUMBER, "{\"content\":[]}", RV_MCP_OUTPUT_STRICT, "missing_structured_content", "structuredContent"},
    {NUMBER, "{\"content\":7}", 0, "invalid_result", "content"},
};
START_TEST(results_become_standard_results)
{
    const struct rv_tool_info *info = NULL;
    rv_buf text = RV_BUF_INIT(10000), note = RV_BUF_INIT(10000);
    struct rv_mcp_told told = {.text = &text, .note = &note, .code = "x"};
    char list[600];
    struct world w;

    begin(&w);
    w.servers[0].output_validation = results[_i].validation;
    snprintf(list, sizeof list, "[{\"name\":\"x\"," OBJECT "%s}]", results[_i].more);
    add(&w, 0, list);
    ck_assert_int_eq(rv_mcp_catalog_finish(w.catalog, NULL), 0);
    const struct rv_mcp_tool *t = rv_mcp_catalog_find(w.catalog, RV_STR_LIT("x"), &info);
    json_object *result = json(results[_i].result);
    ck_assert_int_eq(rv_mcp_tool_read_result(t, result, &told, NULL), 0);
    ck_assert_pstr_eq(told.code, results[_i].code);
    ck_assert_msg(strstr(rv_buf_cstr(&text), results[_i].text), "%s", rv_buf_cstr(&text));
    ck_assert_int_eq(note.len > 0, results[_i].validation == RV_MCP_OUTPUT_WARN);
    json_object_put(result);
    rv_buf_fini(&text);
    rv_buf_fini(&note);
    end(&w);
}
END_TEST

/* As a plan reads them. */
static const struct {
    const char *result, *text;
} called[] = {
    {"{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/"
     "png\"},"
     "{\"type\":\"text\",\"text\":\"b\",\"annotations\":{}}],\"other\":1,\"structuredContent\":null}",
     "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}"},
    {"{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"structuredContent\":[1.50],\"_meta\":{\"k\":{}},\"isError\":"
     "false}",
     "{\"content\":[],\"structuredContent\":[1.50],\"_meta\":{\"k\":{}}}"},
    {"{\"structuredContent\":{\"status\":\"error\"},\"_meta\":7}",
     "{\"content\":[],\"structuredContent\":{\"status\":\"error\"}}"},
};
START_TEST(results_stay_as_they_were_called_for)
{
    const struct rv_tool_info *info = NULL;
    rv_buf text = RV_BUF_INIT(10000), note = RV_BUF_INIT(10000);
    struct rv_mcp_told told = {.as_called = true, .text = &text, .note = &note, .code = "x"};
    struct world w;

    begin(&w);
    add(&w, 0, "[{\"name\":\"x\"," OBJECT "}]");
    ck_assert_int_eq(rv_mcp_catalog_finish(w.catalog, NULL), 0);
    const struct rv_mcp_tool *t = rv_mcp_catalog_find(w.catalog, RV_STR_LIT("x"), &info);
    json_object *result = json(called[_i].result);
    ck_assert_int_eq(rv_mcp_tool_read_result(t, result, &told, NULL), 0);
    ck_assert_ptr_null(told.code);
    ck_assert_str_eq(rv_buf_cstr(&text), called[_i].text);
    json_object_put(result);
    rv_buf_fini(&text);
    rv_buf_fini(&note);
    end(&w);
}
END_TEST

#define BLOCKS(b) "{\"content\":[" b "]}"
static const struct {
    const char *result;
    const char *code, *text; /* code NULL: a success */
    const char *note;
} blocks[] = {
    /* what the data says already is not said twice */
    {"{\"structuredContent\":{\"n\":1},\"content\":[{\"type\":\"text\",\"text\":\"{ \\\"n\\\": 1}\"}]}", NULL,
     "{\"status\":\"success\",\"data\":{\"n\":1}}", ""},
    {"{\"structuredContent\":{\"n\":1},\"content\":[{\"type\":\"text\",\"text\":\"{ \\\"n\\\": 2}\"}]}", NULL,
     "\"content\":[{\"type\":\"text\"", ""},
    {"{\"structuredContent\":{\"n\":1},\"content\":[{\"type\":\"text\",\"text\":\"one\"}]}", NULL,
     "{\"status\":\"success\",\"data\":{\"n\":1},\"content\":[{\"type\":\"text\",\"text\":\"one\"}]}", ""},
    {BLOCKS("{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}"), NULL,
     "{\"status\":\"success\",\"data\":{\"value\":\"a\\nb\"}}", ""},
    /* everything that is not a text */
    {BLOCKS("{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\"},{\"type\":\"text\",\"text\":\"a\"}"),
     NULL,
     "\"data\":{\"value\":\"a\"},\"content\":[{\"type\":\"image\",\"data\":\"AAAA\",\"media_type\":\"image/png\"},"
     "{\"type\":\"text\",\"text\":\"a\"}]}",
     ""},
    {BLOCKS("{\"type\":\"audio\",\"data\":\"AA==\",\"mimeType\":\"audio/wav\"}"), NULL,
     "\"data\":{\"value\":null},\"content\":[{\"type\":\"file\",\"data\":\"AA==\",\"media_type\":\"audio/wav\"}]}", ""},
    {BLOCKS("{\"type\":\"resource_link\",\"uri\":\"a:b\",\"name\":\"n\",\"title\":\"t\",\"mimeType\":\"a/b\",\"x\":1}"),
     NULL, "\"content\":[{\"type\":\"reference\",\"uri\":\"a:b\",\"name\":\"t\",\"media_type\":\"a/b\"}]}", ""},
    {BLOCKS("{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"text\":\"\"}}"), NULL,
     "\"content\":[{\"type\":\"text\",\"text\":\"\"}]}", ""},
    {BLOCKS("{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"blob\":\"AAA=\"}}"), NULL,
     "{\"type\":\"file\",\"data\":\"AAA=\",\"media_type\":\"application/octet-stream\",\"name\":\"a:b\"}", ""},
    /* who it is for */
    {BLOCKS(
         "{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\",\"annotations\":{\"audience\":[\"user\"]}}"),
     NULL, "{\"status\":\"success\",\"data\":{\"value\":null}}", ""},
    {BLOCKS("{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"image/png\",\"annotations\":{\"audience\":[\"user\","
            "\"assistant\"]}}"),
     NULL, "\"content\":[{\"type\":\"image\"", ""},
    {BLOCKS("{\"type\":\"hologram\"},{\"type\":\"text\",\"text\":\"a\"}"), NULL, "{\"value\":\"a\"}}", "1 block of"},
    /* bad blocks */
    {BLOCKS("{\"type\":\"image\",\"data\":\"AAA\",\"mimeType\":\"image/png\"}"), "invalid_result", "base64", ""},
    {BLOCKS("{\"type\":\"image\",\"data\":\"AA=A\",\"mimeType\":\"image/png\"}"), "invalid_result", "base64", ""},
    {BLOCKS("{\"type\":\"image\",\"data\":7,\"mimeType\":\"image/png\"}"), "invalid_result", "base64", ""},
    {BLOCKS("{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\"png\"}"), "invalid_result", "mimeType", ""},
    {BLOCKS("{\"type\":\"audio\",\"data\":\"AAAA\",\"mimeType\":\"a/b\\u0000\"}"), "invalid_result", "mimeType", ""},
    {BLOCKS("{\"type\":\"resource_link\",\"uri\":[]}"), "invalid_result", "no uri", ""},
    {BLOCKS("{\"type\":\"resource\",\"resource\":7}"), "invalid_result", "no resource", ""},
    {BLOCKS("{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\"}}"), "invalid_result", "neither", ""},
    {BLOCKS("{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"text\":7}}"), "invalid_result", "not a string", ""},
};
START_TEST(blocks_that_are_not_the_data_are_content_for_the_model)
{
    const struct rv_tool_info *info = NULL;
    rv_buf text = RV_BUF_INIT(10000), note = RV_BUF_INIT(10000);
    struct rv_mcp_told told = {.text = &text, .note = &note, .code = "x"};
    struct world w;

    begin(&w);
    add(&w, 0, "[{\"name\":\"x\"," OBJECT "}]");
    ck_assert_int_eq(rv_mcp_catalog_finish(w.catalog, NULL), 0);
    const struct rv_mcp_tool *t = rv_mcp_catalog_find(w.catalog, RV_STR_LIT("x"), &info);
    json_object *result = json(blocks[_i].result);
    ck_assert_int_eq(rv_mcp_tool_read_result(t, result, &told, NULL), 0);
    ck_assert_pstr_eq(told.code, blocks[_i].code);
    ck_assert_msg(strstr(rv_buf_cstr(&text), blocks[_i].text), "%s", rv_buf_cstr(&text));
    ck_assert_msg(strstr(rv_buf_cstr(&note), blocks[_i].note), "%s", rv_buf_cstr(&note));
    json_object *said = told.code ? NULL : json(rv_buf_cstr(&text)), *content = rv_json_get_arr(said, "content");
    ck_assert(!content || rv_tool_is_content(content)); /* the core takes it */
    json_object_put(said);
    json_object_put(result);
    rv_buf_fini(&text);
    rv_buf_fini(&note);
    end(&w);
}
END_TEST

START_TEST(more_blocks_than_a_model_can_use_fail_the_call)
{
    const struct rv_tool_info *info = NULL;
    rv_buf text = RV_BUF_INIT(1 << 20), note = RV_BUF_INIT(1000);
    json_object *result = json("{\"content\":[]}"), *list = rv_json_get_arr(result, "content");
    struct rv_mcp_told told = {.text = &text, .note = &note, .code = "x"};
    struct world w;

    begin(&w);
    add(&w, 0, "[{\"name\":\"x\"," OBJECT "}]");
    ck_assert_int_eq(rv_mcp_catalog_finish(w.catalog, NULL), 0);
    const struct rv_mcp_tool *t = rv_mcp_catalog_find(w.catalog, RV_STR_LIT("x"), &info);
    for (int i = 0; i < RV_TOOL_MAX_PARTS; i++)
        json_object_array_add(list, json("{\"type\":\"resource_link\",\"uri\":\"a:b\"}"));
    ck_assert_int_eq(rv_mcp_tool_read_result(t, result, &told, NULL), 0);
    ck_assert_ptr_null(told.code);
    json_object_array_add(list, json("{\"type\":\"text\",\"text\":\"a\"}"));
    rv_buf_clear(&text);
    ck_assert_int_eq(rv_mcp_tool_read_result(t, result, &told, NULL), 0);
    ck_assert_pstr_eq(told.code, "invalid_result");
    json_object_put(result);
    rv_buf_fini(&text);
    rv_buf_fini(&note);
    end(&w);
}
END_TEST

START_TEST(a_call_carries_its_key_and_the_headers_of_its_arguments)
{
    const struct rv_tool_info *info = NULL;
    struct rv_mcp_request r;
    rv_buf text = RV_BUF_INIT(1000);
    struct world w;

    begin(&w);
    add(&w, 0,
        "[{\"name\":\"x\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"r\":{\"type\":\"string\","
        "\"x-mcp-header\":\"Region\"},\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},\"o\":{\"type\":\"string\","
        "\"x-mcp-header\":\"O\"}}}}]");
    ck_assert_int_eq(rv_mcp_catalog_finish(w.catalog, NULL), 0);
    const struct rv_mcp_tool *t = rv_mcp_catalog_find(w.catalog, RV_STR_LIT("x"), &info);
    json_object *args = json("{\"r\":\"eu\",\"n\":7,\"o\":null}");
    ck_assert_int_eq(rv_mcp_tool_build_request(t, args, "k1", &r, NULL), 0);
    ck_assert_str_eq(r.method, "tools/call");
    rv_json_write(r.params, &text);
    rv_json_write(r.headers, &text);
    ck_assert_str_eq(rv_buf_cstr(&text),
                     "{\"name\":\"x\",\"arguments\":{\"r\":\"eu\",\"n\":7,\"o\":null},\"_meta\":{"
                     "\"dev.reeve/idempotency-key\":\"k1\"}}{\"Mcp-Param-Region\":\"eu\",\"Mcp-Param-N\":\"7\"}");
    rv_mcp_request_fini(&r);
    json_object_put(args);
    rv_buf_fini(&text);
    end(&w);
}
END_TEST

TCase *tools_case(void)
{
    TCase *tc = tcase_create("tools");

    tcase_add_loop_test(tc, an_untrusted_server_is_believed_only_where_it_is_stricter, 0, RV_COUNT(hints));
    tcase_add_loop_test(tc, policies_say_what_is_confirmed, 0, 5);
    tcase_add_test(tc, bare_names_are_those_that_one_server_has);
    tcase_add_test(tc, a_definition_that_cannot_be_used_is_a_warning);
    tcase_add_test(tc, of_two_tools_of_a_name_the_first_counts);
    tcase_add_test(tc, names_of_the_file_that_no_tool_has_are_told);
    tcase_add_test(tc, the_file_says_which_tools_are_taken);
    tcase_add_test(tc, lists_that_were_kept_make_the_same_catalog);
    tcase_add_loop_test(tc, risk_and_effect_follow_from_what_is_believed, 0, RV_COUNT(judged));
    tcase_add_loop_test(tc, results_become_standard_results, 0, RV_COUNT(results));
    tcase_add_loop_test(tc, results_stay_as_they_were_called_for, 0, (int)RV_COUNT(called));
    tcase_add_loop_test(tc, blocks_that_are_not_the_data_are_content_for_the_model, 0, RV_COUNT(blocks));
    tcase_add_test(tc, more_blocks_than_a_model_can_use_fail_the_call);
    tcase_add_test(tc, a_call_carries_its_key_and_the_headers_of_its_arguments);
    return tc;
}
