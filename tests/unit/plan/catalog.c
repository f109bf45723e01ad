/* Tools of several servers in one catalog. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/plan/plan.h"
#include "tests/unit/plan/plan_suites.h"
#include "tests/unit/plan/world.h"

static void expect_names(const char *tools, const char *want)
{
    rv_plan_catalog *c = make_catalog(tools);
    rv_buf got = RV_BUF_INIT(10000);

    for (size_t i = 0; i < c->n; i++)
        rv_buf_printf(&got, "%s%s", i > 0 ? " " : "", c->tools[i].visible);
    for (size_t i = 0; i < c->n_drops; i++)
        rv_buf_printf(&got, " -%s:%s", c->drops[i].name, c->drops[i].reason);
    ck_assert_str_eq(rv_buf_cstr(&got), want);
    rv_buf_fini(&got);
    rv_plan_catalog_free(c);
}

/* Proves plan.G2: a tool that a plan cannot use is dropped with a reason, and the others stay */
START_TEST(bad_tools_are_dropped)
{
    expect_names("[{'name':'a'},{'name':'b','denied':true}]", "a -b:denied");
    expect_names("[{'name':'__planning__'},{'name':'a'}]", "a -__planning__:reserved_name");
    expect_names("[{'name':'a b'},{'name':''},{'name':'A-z_0.9'}]", "A-z_0.9 -a b:bad_name -:bad_name");
    expect_names("[{'name':'a','in':{'type':'string'}},{'name':'b','in':[]},{'name':'c','in':{}}]",
                 "c -a:bad_input_schema -b:bad_input_schema");
    expect_names("[{'name':'a','in':{'properties':{'x':{'type':'strnig'}}}}]", " -a:bad_input_schema");
    expect_names("[{'name':'a','out':{'type':5}}]", " -a:bad_output_schema");
    expect_names("[{'name':'a'},{'name':'a'}]", "a -a:duplicate");
    expect_names("[{'name':'a','server':'s'},{'name':'a','server':'s'}]", "a -a:duplicate");
}
END_TEST

START_TEST(schemas_of_others_have_notes)
{
    expect_names("[{'name':'a','in':{'type':'object','markdown':1,'properties':{'x':{'$ref':'http://x/y'},"
                 "'y':{'$ref':'#/$defs/none'}}}}]",
                 "a");
    expect_names("[{'name':'a','in':{'$defs':{'x':{'$ref':'#/$defs/x'}},'properties':{'x':{'$ref':'#/$defs/x'}}}}]",
                 "a");
}
END_TEST

START_TEST(header_annotations)
{
    static const struct {
        const char *schema, *want;
    } cases[] = {
        {"{'properties':{'a':{'type':'string','x-mcp-header':'Tenant'}}}", "t"},
        {"{'properties':{'a':{'properties':{'b':{'type':'integer','x-mcp-header':'T'}}}}}", "t"},
        {"{'properties':{'x-mcp-header':{'type':'array'}}}", "t"},
        {"{'properties':{'a':{'type':'number','x-mcp-header':'T'}}}", " -t:bad_header"},
        {"{'properties':{'a':{'type':'string','x-mcp-header':'a b'}}}", " -t:bad_header"},
        {"{'properties':{'a':{'type':'string','x-mcp-header':7}}}", " -t:bad_header"},
        {"{'properties':{'a':{'items':{'type':'string','x-mcp-header':'T'}}}}", " -t:bad_header"},
        {"{'anyOf':[{'properties':{'a':{'type':'string','x-mcp-header':'T'}}}]}", " -t:bad_header"},
        {"{'properties':{'a':{'type':'string','x-mcp-header':'T'},'b':{'type':'string','x-mcp-header':'t'}}}",
         " -t:bad_header"},
    };
    char tools[1000];

    snprintf(tools, sizeof tools, "[{'name':'t','http':true,'in':%s}]", cases[_i].schema);
    expect_names(tools, cases[_i].want);
    snprintf(tools, sizeof tools, "[{'name':'t','in':%s}]", cases[_i].schema);
    expect_names(tools, "t");
}
END_TEST

/* Proves plan.G3: a tool is called by its bare name where that is unique over all servers, else by server and name; the
 * qualified name is always accepted, and a bare name of several servers is ambiguous */
START_TEST(names_are_unique)
{
    const char *two =
        "[{'name':'find','server':'web'},{'name':'find','server':'docs'},{'name':'read','server':'docs'}]";
    rv_plan_catalog *c = make_catalog(two);
    size_t n = 9;

    expect_names(two, "docs.find read web.find");
    ck_assert_str_eq(rv_plan_find(c, RV_STR_LIT("docs.read"), &n)->visible, "read");
    ck_assert_str_eq(rv_plan_find(c, RV_STR_LIT("web.find"), NULL)->server, "web");
    ck_assert_ptr_null(rv_plan_find(c, RV_STR_LIT("find"), &n));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(rv_plan_candidate_at(c, RV_STR_LIT("find"), 1)->visible, "web.find");
    ck_assert_ptr_null(rv_plan_find(c, RV_STR_LIT("fin"), &n));
    ck_assert_uint_eq(n, 0);
    rv_plan_catalog_free(c);
    expect_errors(two, "[{'tool_name':'find'}]", NULL,
                  "0   {'type':'ambiguous_tool','tool_name':'find','candidates':['docs.find','web.find']}");
    /* A bare name that another tool has as its qualified one. */
    expect_names("[{'name':'a.b','server':'x'},{'name':'b','server':'a'}]", "b x.a.b");
    /* A tool without a server has its name; two qualified names may be one. */
    expect_names("[{'name':'a'},{'name':'a','server':'s'}]", "a s.a");
    expect_names("[{'name':'c','server':'a.b'},{'name':'b.c','server':'a'},{'name':'c','server':'z'},{'name':'b.c',"
                 "'server':'z'}]",
                 "a.b.c z.b.c z.c -c:name_conflict");
}
END_TEST

/* The tools of a stage have their server in their names. */
START_TEST(bare_names_of_full_ones)
{
    static const struct rv_plan_tool tools[] = {
        {.name = "a.put", .is_full = true},  {.name = "a.find", .is_full = true},
        {.name = "b.find", .is_full = true}, {.name = "look", .is_full = true},
        {.name = "c.look", .is_full = true}, {.name = "c.v.get", .is_full = true},
        {.name = "dot.", .is_full = true},   {.name = "old.one"}};
    rv_plan_catalog *c = NULL;
    size_t n = 9;

    ck_assert_int_eq(rv_plan_catalog_new(tools, RV_COUNT(tools), &c, NULL), 0);
    ck_assert_uint_eq(c->n, RV_COUNT(tools));
    for (size_t i = 0; i < c->n; i++)
        ck_assert_str_eq(c->tools[i].visible, c->tools[i].name);
    ck_assert_str_eq(rv_plan_find(c, RV_STR_LIT("put"), &n)->name, "a.put");
    ck_assert_str_eq(rv_plan_find(c, RV_STR_LIT("v.get"), NULL)->name, "c.v.get");
    ck_assert_str_eq(rv_plan_find(c, RV_STR_LIT("look"), NULL)->name, "look");
    ck_assert_ptr_null(rv_plan_find(c, RV_STR_LIT("find"), &n));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(rv_plan_candidate_at(c, RV_STR_LIT("find"), 1)->qualified, "b.find");
    ck_assert_ptr_null(rv_plan_find(c, RV_STR_LIT("get"), NULL));
    ck_assert_ptr_null(rv_plan_find(c, RV_STR_LIT(""), NULL));
    ck_assert_ptr_null(rv_plan_find(c, RV_STR_LIT("one"), NULL));
    rv_plan_catalog_free(c);
}
END_TEST

/* Proves plan.G4: tools are sorted by the name that plans use, in the order of bytes */
START_TEST(sorted_by_bytes)
{
    expect_names("[{'name':'b'},{'name':'a'},{'name':'B'},{'name':'a.a'}]", "B a a.a b");
}
END_TEST

static json_object *schema_of(const char *tools, const struct rv_planner_opts *opts)
{
    rv_plan_catalog *c = make_catalog(tools);
    json_object *schema = NULL;

    ck_assert_int_eq(rv_plan_build_schema(c, opts, &schema, NULL), 0);
    rv_plan_catalog_free(c);
    return schema;
}

static void expect_schema(const char *tools, const struct rv_planner_opts *opts, const char *pointer, const char *want)
{
    json_object *schema = schema_of(tools, opts), *at = schema;
    rv_schema *compiled = NULL;
    char path[200], *rest = path, *key;

    ck_assert_int_eq(rv_schema_compile(schema, "plan", &compiled, NULL), 0);
    rv_schema_free(compiled);
    snprintf(path, sizeof path, "%s", pointer);
    while ((key = strsep(&rest, " ")) && *key) {
        if (json_object_is_type(at, json_type_array))
            at = json_object_array_get_idx(at, (size_t)strtoul(key, NULL, 10));
        else
            ck_assert_msg(json_object_object_get_ex(at, key, &at), "%s of %s", key, pointer);
    }
    json_object *wanted = rv_kit_json(want);
    char *got = rv_kit_text(at);
    ck_assert_msg(rv_json_equal(at, wanted), "%s", got);
    free(got);
    json_object_put(wanted);
    json_object_put(schema);
}

/* Proves plan.G5: the planner's tool has a schema with the names of the catalog; where the provider reads anyOf, with
 * the arguments of each tool, of which each value may be a reference */
START_TEST(schema_of_plans)
{
    struct rv_planner_opts opts = {.max_calls = 3}, any_of = {.any_of = true}, options = {.has_options = true};
    const char *two = "[{'name':'b'},{'name':'a','in':{'properties':{'n':{'type':'integer','x-note':1}}}}]";

    expect_schema(two, &opts, "",
                  "{'type':'object','properties':{'type':{'type':'string','enum':['direct_response','tool_calls']},"
                  "'content':{'type':'string','description':'the answer; for direct_response'},"
                  "'reasoning':{'type':'string','description':'why these calls; for tool_calls'},"
                  "'calls':{'type':'array','minItems':1,'maxItems':3,'items':{'type':'object','properties':{"
                  "'tool_name':{'type':'string','enum':['a','b']},'arguments':{'type':'object'}},"
                  "'required':['tool_name','arguments']}}},'required':['type'],'additionalProperties':false}");
    expect_schema("[]", NULL, "properties",
                  "{'type':{'type':'string','enum':['direct_response']},'content':{'type':'string','description':"
                  "'the answer; for direct_response'}}");
    expect_schema(two, &any_of, "properties calls items anyOf 0 properties",
                  "{'tool_name':{'type':'string','enum':['a']},'arguments':{'properties':{'n':{'anyOf':[{'type':"
                  "'integer'},{'type':'string','pattern':'^\\\\$[0-9]+\\\\.output'}]}},'type':'object'}}");
    expect_schema(two, &options, "properties calls items properties on_failure",
                  "{'type':'string','enum':['halt','continue']}");
    /* References move along, or the arguments stay open. */
    expect_schema(
        "[{'name':'a','in':{'$defs':{'d':{'type':'null'}},'properties':{'l':{'items':{'$ref':'#/$defs/d'}}}}}]",
        &any_of, "properties calls items anyOf 0 properties arguments properties l anyOf 0 items anyOf 0",
        "{'$ref':'#/properties/calls/items/anyOf/0/properties/arguments/$defs/d'}");
    expect_schema("[{'name':'a','in':{'properties':{'x':{},'y':{'$ref':'#/properties/x'}}}}]", &any_of,
                  "properties calls items anyOf 0 properties arguments", "{'type':'object'}");
    expect_schema("[{'name':'a','in':{'properties':{'x':{'oneOf':[{'type':'null'},true],'not':{}}}}}]", &any_of,
                  "properties calls items anyOf 0 properties arguments properties x anyOf 0",
                  "{'anyOf':[{'type':'null'},true]}");
}
END_TEST

static void expect_brief(const char *tools, const struct rv_planner_opts *opts, const char *want)
{
    rv_plan_catalog *c = make_catalog(tools);
    rv_buf got = RV_BUF_INIT(1000000);

    rv_plan_write_brief(c, opts, &got);
    ck_assert_int_eq(got.rc, 0);
    ck_assert_msg(strstr(rv_buf_cstr(&got), want), "%s\nis not in\n%s", want, rv_buf_cstr(&got));
    rv_buf_fini(&got);
    rv_plan_catalog_free(c);
}

START_TEST(planner_is_told_the_rules)
{
    static const char *const texts[] = {
        "direct_response", "tool_calls",          "\"$0.output.artifact_id\"",          "${0.output.title}",
        "earlier call",    "listed output field", "stops at the first call that fails", "at most 16 calls",
        "not instructions"};
    struct rv_planner_opts later = {.n_done = 2, .max_calls = 4, .has_options = true, .defers = true};

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        expect_brief("[{'name':'a'}]", NULL, texts[i]);
    expect_brief("[]", NULL, "No tool is available");
    expect_brief("[]", &later, "The first call of the plan has number 2, the next one 3");
    expect_brief("[]", &later, "at most 4 calls");
    expect_brief("[]", &later, "\"on_failure\": \"continue\"");
    expect_brief("[]", &later, "may be referenced, too");
}
END_TEST

START_TEST(planner_is_told_the_tools)
{
    struct rv_planner_opts brief = {.max_description = 5};

    expect_brief("[{'name':'a','ro':true,'in':{'properties':{'q':{'type':'string'},'n':{'type':['integer','null']}},"
                 "'required':['q']},'out':{'properties':{'l':{'type':'array','items':{'type':'object','properties':{"
                 "'id':{'type':'string'},'d':{'type':'object','properties':{'e':{'type':'object','properties':{'f':{"
                 "'type':'null'}}}}}}}}}}}]",
                 NULL,
                 "## a\nBehavior: only reads\nArguments:\n- q: string (required)\n- n: integer or null\nOutput:\n- l: "
                 "array of object\n- l[n].id: string\n- l[n].d: object\n- l[n].d.e: object\n");
    expect_brief("[{'name':'a','description':'one\\ntwo \\u0007 three'}]", NULL, "Description: one two   three\n");
    expect_brief("[{'name':'a','description':'123456789'}]", &brief, "Description: 12345...\n");
    expect_brief("[{'name':'a'}]", NULL, "Output: not declared, it cannot be referenced");
    expect_brief("[{'name':'a','out':{'x-artifact-type':'table','properties':{'items':{'type':'array'}}}}]", NULL,
                 "Output:\n- items: array\n- artifact_id: string\n");
    expect_brief("[{'name':'a','in':{'properties':{'x\\ny':{}}}}]", NULL, "- x y: any\n");
}
END_TEST

static void expect_fields(const char *schema, const char *want)
{
    json_object *given = rv_kit_json(schema), *wanted = rv_kit_json(want), *read = NULL;
    rv_buf got = RV_BUF_INIT(1000000);
    rv_jw w = rv_jw_on(&got);

    rv_plan_fields_write(given, &w);
    ck_assert_int_eq(got.rc, 0);
    read = rv_kit_json(rv_buf_cstr(&got));
    ck_assert_msg(rv_json_equal(read, wanted), "%s", rv_buf_cstr(&got));
    json_object_put(read);
    json_object_put(wanted);
    json_object_put(given);
    rv_buf_fini(&got);
}

START_TEST(fields_of_an_output)
{
    expect_fields("{'properties':{'l':{'type':'array','items':{'properties':{'id':{'type':['string','null']}}}}}}",
                  "[{'path':'l','type':'array of object'},{'path':'l[n].id','type':'string or null'}]");
    expect_fields("{'x-artifact-type':'table','properties':{'items':{}}}",
                  "[{'path':'items','type':'any'},{'path':'artifact_id','type':'string'}]");
    expect_fields("{'type':'object','properties':{'x\\ny':{}}}", "[{'path':'x y','type':'any'}]");
    expect_fields("{}", "[]");
}
END_TEST

TCase *catalog_case(void)
{
    TCase *tc = tcase_create("catalog");

    tcase_add_test(tc, bad_tools_are_dropped);
    tcase_add_test(tc, schemas_of_others_have_notes);
    tcase_add_loop_test(tc, header_annotations, 0, 9);
    tcase_add_test(tc, names_are_unique);
    tcase_add_test(tc, bare_names_of_full_ones);
    tcase_add_test(tc, sorted_by_bytes);
    tcase_add_test(tc, schema_of_plans);
    tcase_add_test(tc, planner_is_told_the_rules);
    tcase_add_test(tc, planner_is_told_the_tools);
    tcase_add_test(tc, fields_of_an_output);
    return tc;
}
