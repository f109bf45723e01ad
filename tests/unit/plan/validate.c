/* Plans against catalogs: each rule of templates and of validation, as tables. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/plan/plan_suites.h"
#include "tests/unit/plan/world.h"

#define MAKER                                                                                                          \
    "{'name':'make','out':{'type':'object','properties':{'id':{'type':'string'},'n':{'type':'integer'},'list':{"       \
    "'type':'array','items':{'type':'object','properties':{'id':{'type':'string'}}}},'deep':{'type':'object',"         \
    "'properties':{'title':{'type':'string'}}},'key with.dots':{},'7':{'type':'null'}},'required':['id']}}"
#define TOOLS "[" MAKER ",{'name':'use'}]"

/* The first word of the errors of a plan whose second call has this argument, as a JSON string. */
static void expect_type(const char *argument, const char *want)
{
    rv_plan_catalog *c = make_catalog(TOOLS);
    char calls[1000], *got;

    snprintf(calls, sizeof calls, "[{\"tool_name\":\"make\"},{\"tool_name\":\"use\",\"arguments\":{\"a\":%s}}]",
             argument);
    got = errors_of(c, calls, NULL);
    const char *type = strstr(got, "{'type':'");
    size_t len = type ? strcspn(type + 9, "'") : 0;
    ck_assert_msg(type ? strlen(want) == len && strncmp(type + 9, want, len) == 0 : strcmp(got, want) == 0,
                  "%s gives %s, not %s", argument, got, want);
    free(got);
    rv_plan_catalog_free(c);
}

#define SYNTAX   "invalid_template_syntax"
#define EMBEDDED "embedded_reference"
#define FIELD    "field_not_found"
static const struct {
    const char *argument, *want;
} templates[] = {
    /* Proves plan.T1: a string is meant as a whole reference if it is "$", no blank or dot up to ".output", and then
     * its end or an accessor; one that does not follow the grammar is an error */
    {"\"$0.output.id\"", "ok"},
    {"\"$x.output.v\"", SYNTAX},
    {"\"$missing.output.v\"", SYNTAX},
    {"\"$-1.output.v\"", SYNTAX},
    {"\"$0.output.\"", SYNTAX},
    {"\"$5 costs more than .output. things\"", "ok"},
    {"\"$5.99 is the price\"", "ok"},
    {"\"$0.outputs\"", "ok"},
    {"\"$99999999999999999999.output.id\"", SYNTAX},
    {"\"$2147483648.output.id\"", SYNTAX},
    {"\"$\\u0663.output.id\"", SYNTAX},
    /* Proves plan.T2: "$N.output" is the whole output */
    {"\"$0.output\"", "ok"},
    {"{\"deep\":[{\"x\":\"$0.output\"}]}", "ok"},
    /* Proves plan.T3: digits and [n] are places of lists, digits are keys of objects, and a key in quotes is always one
     */
    {"\"$0.output.list.0.id\"", "ok"},
    {"\"$0.output.list[0].id\"", "ok"},
    {"\"$0.output[\\\"key with.dots\\\"]\"", "ok"},
    {"\"$0.output.7\"", "ok"},
    {"\"$0.output[7]\"", FIELD},
    {"\"$0.output.list[\\\"0\\\"]\"", FIELD},
    {"\"$0.output.list.x\"", FIELD},
    {"\"$0.output.id.x\"", FIELD},
    {"\"$0.output.id[0]\"", FIELD},
    /* Proves plan.T4: "${...}" that is all of a string is a whole reference, other ones are parts of text; one that is
     * begun and does not follow the grammar is an error */
    {"\"${0.output.id}\"", "ok"},
    {"\"See ${0.output.id} and ${0.output.n}\"", "ok"},
    {"\"${1} ${HOME} ${x.output.v}\"", "ok"},
    {"\"${.output.v}\"", "ok"},
    {"\"${0.output.id\"", SYNTAX},
    {"\"a ${0.output.a b}\"", SYNTAX},
    {"\"a ${0.output.nope}\"", FIELD},
    /* Proves plan.T5: a reference inside a text without braces is an error and never reaches a tool */
    {"\"See $0.output.id\"", EMBEDDED},
    {"\"$0.output.id and more\"", EMBEDDED},
    {"\"$0.output.id, $0.output.n\"", EMBEDDED},
    {"\"($0.output[0])\"", EMBEDDED},
    {"\"$0.output..id\"", SYNTAX},
    {"\"$0.output.id.\"", SYNTAX},
    {"\"$0.output.a[x]\"", SYNTAX},
    {"\"a $0.output\"", "ok"},
    /* Proves plan.T6: "$$" before what would be a reference is one "$" and no reference */
    {"\"$$0.output.id\"", "ok"},
    {"\"$${0.output.nope}\"", "ok"},
    {"\"See $$0.output.nope\"", "ok"},
    {"\"$$x.output.v\"", "ok"},
    {"\"costs $$5\"", "ok"},
    /* Proves plan.T7: only strings are read, at any depth; keys and other values are not */
    {"{\"$0.output.nope\":1}", "ok"},
    {"[[[[\"$0.output.nope\"]]]]", FIELD},
    {"[1,null,true]", "ok"},
    /* Proves plan.T8: an index may begin with zeros */
    {"\"$00.output.id\"", "ok"},
};

START_TEST(templates_are_read)
{
    expect_type(templates[_i].argument, templates[_i].want);
}
END_TEST

/* Proves plan.T9: a plan has at most 256 references, whatever the number of its calls */
START_TEST(references_are_counted)
{
    rv_plan_catalog *c = make_catalog(TOOLS);
    rv_buf calls = RV_BUF_INIT(100000);
    char *got;

    rv_buf_puts(&calls, "[{'tool_name':'make'}");
    for (int k = 0; k < 2; k++) {
        rv_buf_puts(&calls, ",{'tool_name':'use','arguments':{'l':[");
        for (int i = 0; i < 128; i++)
            rv_buf_printf(&calls, "%s'$0.output.id'", i > 0 ? "," : "");
        rv_buf_puts(&calls, "]}}");
    }
    rv_buf_putc(&calls, ']');
    got = errors_of(c, rv_buf_cstr(&calls), NULL);
    ck_assert_str_eq(got, "ok");
    free(got);
    rv_buf_truncate(&calls, calls.len - 4);
    rv_buf_puts(&calls, ",'$0.output.nope','$0.output.nope']}}]");
    got = errors_of(c, rv_buf_cstr(&calls), NULL);
    ck_assert_str_eq(got, "2 l[128] $0.output.nope {'type':'too_many_references','count':258,'max':256}");
    free(got);
    rv_buf_fini(&calls);
    rv_plan_catalog_free(c);
}
END_TEST

static const struct {
    const char *calls, *want;
} errors[] = {
    /* Proves plan.V1: what is not a reference is reported as such, and nothing else about it */
    {"[{'tool_name':'use','arguments':{'a':'$0.output..x'}}]", "0 a $0.output..x {'type':'invalid_template_syntax'}"},
    {"[{'tool_name':'use','arguments':{'a':'to $9.output.x'}}]", "0 a to $9.output.x {'type':'embedded_reference'}"},
    /* Proves plan.V2: a call cannot reference itself */
    {"[{'tool_name':'use','arguments':{'a':'$0.output.x'}}]", "0 a $0.output.x {'type':'self_reference'}"},
    /* Proves plan.V3: an index that no call has is out of bounds, with the largest that may be used there */
    {"[{'tool_name':'use','arguments':{'a':'$1.output.x'}}]",
     "0 a $1.output.x {'type':'index_out_of_bounds','referenced_index':1,'max_valid_index':null}"},
    {"[{'tool_name':'use'},{'tool_name':'use','arguments':{'l':['$99.output']}}]",
     "1 l[0] $99.output {'type':'index_out_of_bounds','referenced_index':99,'max_valid_index':0}"},
    /* Proves plan.V4: a call cannot reference a later one */
    {"[{'tool_name':'use','arguments':{'o':{'i':'$1.output.id'}}},{'tool_name':'make'}]",
     "0 o.i $1.output.id {'type':'forward_reference','referenced_index':1}"},
    /* Proves plan.V5: a reference to a call of an unknown tool is not reported, the call itself is */
    {"[{'tool_name':'nope'},{'tool_name':'use','arguments':{'a':'$0.output.x'}}]",
     "0   {'type':'unknown_tool','tool_name':'nope','available_tools':['make','strict','use']}"},
    /* Proves plan.V6: a tool without an output schema cannot be referenced, unless the run is to check it */
    {"[{'tool_name':'use'},{'tool_name':'use','arguments':{'a':'$0.output.x'}}]",
     "1 a $0.output.x {'type':'no_output_schema','tool_name':'use'}"},
    /* Proves plan.V7: a reference is walked along the schema, and its first missing field is reported with those that
     * there are */
    {"[{'tool_name':'make'},{'tool_name':'use','arguments':{'a':'$0.output.deep.titel.x'}}]",
     "1 a $0.output.deep.titel.x {'type':'field_not_found','tool_name':'make','field':'deep.titel',"
     "'available_fields':['title']}"},
    {"[{'tool_name':'make'},{'tool_name':'use','arguments':{'a':'$0.output.list[2].x'}}]",
     "1 a $0.output.list[2].x {'type':'field_not_found','tool_name':'make','field':'list[2].x',"
     "'available_fields':['id']}"},
    {"[{'tool_name':'make'},{'tool_name':'use','arguments':{'a':'$0.output.id.x'}}]",
     "1 a $0.output.id.x {'type':'field_not_found','tool_name':'make','field':'id.x','available_fields':[]}"},
    /* Proves plan.V8: the type of a whole reference has to be one that the argument accepts */
    {"[{'tool_name':'make'},{'tool_name':'strict','arguments':{'s':'$0.output.n'}}]",
     "1 s $0.output.n {'type':'type_mismatch','source_tool':'make','field':'n','source_type':'integer',"
     "'target_tool':'strict','target_argument':'s','target_type':'string'}"},
    {"[{'tool_name':'make'},{'tool_name':'strict','arguments':{'s':'${0.output.n} pages'}}]", "ok"},
    {"[{'tool_name':'make'},{'tool_name':'strict','arguments':{'s':'x','n':'${0.output.n} pages'}}]",
     "1 n ${0.output.n} pages {'type':'type_mismatch','source_tool':'make','field':'n','source_type':'string',"
     "'target_tool':'strict','target_argument':'n','target_type':'integer'}"},
    /* Proves plan.V9: each required argument has to be there; a reference and null are there */
    {"[{'tool_name':'strict'}]", "0   {'type':'missing_required_argument','tool_name':'strict','missing':'s'}"},
    {"[{'tool_name':'make'},{'tool_name':'strict','arguments':{'s':'$0.output.id'}}]", "ok"},
    {"[{'tool_name':'strict','arguments':{'s':null}}]",
     "0 s  {'type':'invalid_argument','tool_name':'strict','message':'expected string, found null'}"},
    /* Proves plan.V10: literals fit the input schema whatever the references beside them become; a key that is not
     * allowed is an unknown argument */
    {"[{'tool_name':'make'},{'tool_name':'strict','arguments':{'s':'$0.output.id','n':'5','x':1}}]",
     "1 n  {'type':'invalid_argument','tool_name':'strict','message':'expected integer, found string \\'5\\''}\n"
     "1 x  {'type':'unknown_argument','tool_name':'strict','unknown':'x','allowed':['s','n','l']}"},
    {"[{'tool_name':'make'},{'tool_name':'strict','arguments':{'s':'x','l':[{'k':0,'q':1},'$0.output.deep',{}]}}]",
     "1 l[0].q  {'type':'unknown_argument','tool_name':'strict','unknown':'q','allowed':['k']}\n"
     "1 l[2]  {'type':'invalid_argument','tool_name':'strict','message':'missing required property \\'k\\''}"},
    {"[{'tool_name':'strict','arguments':{'s':'$$0.output.id'}}]", "ok"},
    /* Proves plan.V11: the arguments of a tool without an input schema are not checked */
    {"[{'tool_name':'use','arguments':{'whatever':[1]}}]", "ok"},
    /* Proves plan.P3: arguments that are not an object are an error of their call */
    {"[{'tool_name':'use','arguments':[1]}]", "0   {'type':'arguments_not_object','actual_type':'array'}"},
    {"[{'tool_name':'use','arguments':'{}'}]", "ok"},
    {"[{'tool_name':'use','after':[0]}]", "0   {'type':'invalid_call_option','option':'after','message':'each item has "
                                          "to be the index of an earlier call'}"},
    {"[{'tool_name':'use','after':0}]",
     "0   {'type':'invalid_call_option','option':'after','message':'use a list of indices of earlier calls'}"},
    {"[{'tool_name':'use','on_failure':'retry'}]",
     "0   {'type':'invalid_call_option','option':'on_failure','message':'use \\'halt\\' or \\'continue\\''}"},
    {"[{'tool_name':'use','on_failure':'continue'},{'tool_name':'use','after':[0],'on_failure':'halt'}]", "ok"},
    /* Errors of all calls, in the order of the document; the same template twice is two errors. */
    {"[{'tool_name':'use','arguments':{'b':['$0.output.x',{'c':'$0.output.x'}],'a':'$7.output'}},{'tool_name':'nope'}]",
     "0 b[0] $0.output.x {'type':'self_reference'}\n0 b[1].c $0.output.x {'type':'self_reference'}\n"
     "0 a $7.output {'type':'index_out_of_bounds','referenced_index':7,'max_valid_index':null}\n"
     "1   {'type':'unknown_tool','tool_name':'nope','available_tools':['make','strict','use']}"},
};
#define ALL                                                                                                            \
    "[" MAKER ",{'name':'use'},{'name':'strict','in':{'type':'object','properties':{'s':{'type':'string'},'n':{"       \
    "'type':'integer'},'l':{'type':'array','items':{'type':'object','properties':{'k':{}},'required':['k'],"           \
    "'additionalProperties':false}}},'required':['s'],'additionalProperties':false}}]"

START_TEST(errors_are_found)
{
    expect_errors(ALL, errors[_i].calls, NULL, errors[_i].want);
}
END_TEST

START_TEST(unschematized_outputs_may_wait)
{
    struct rv_plan_rules rules = {.defer_unschematized = true};

    expect_errors(TOOLS, "[{'tool_name':'use'},{'tool_name':'use','arguments':{'a':'$0.output.x[0].y'}}]", &rules,
                  "ok");
}
END_TEST

/* Holes: a literal beside a reference is an error only if it is one whatever the reference becomes. */
static const struct {
    const char *schema, *arguments, *want;
} holes[] = {
    {"{'properties':{'a':{'not':{'type':'string'}}}}", "{'a':'$0.output'}", "ok"},
    {"{'properties':{'a':{'not':{'type':'string'}}}}", "{'a':'x'}", "invalid_argument"},
    {"{'properties':{'a':{'not':{'required':['b']}}}}", "{'a':{'b':'$0.output'}}", "ok"},
    {"{'oneOf':[{'properties':{'a':{'const':1}}},{'properties':{'a':{'const':2}}}]}", "{'a':'$0.output'}", "ok"},
    {"{'oneOf':[{'properties':{'b':{'const':1}}},{'properties':{'b':{'const':2}}}]}", "{'a':'$0.output','b':3}",
     "invalid_argument"},
    {"{'properties':{'a':{'enum':[['x']]}}}", "{'a':['$0.output']}", "ok"},
    {"{'properties':{'a':{'const':{'k':1}}}}", "{'a':{'k':'$0.output'}}", "ok"},
    {"{'properties':{'a':{'uniqueItems':true}}}", "{'a':['$0.output','$0.output']}", "ok"},
    {"{'properties':{'a':{'contains':{'const':1},'maxContains':1}}}", "{'a':[1,'$0.output']}", "ok"},
    {"{'properties':{'a':{'contains':{'const':1}}}}", "{'a':[2,'$0.output']}", "ok"},
    {"{'properties':{'a':{'contains':{'const':1}}}}", "{'a':[2,3]}", "invalid_argument"},
    {"{'if':{'properties':{'a':{'const':1}}},'then':{'required':['b']}}", "{'a':'$0.output'}", "ok"},
    {"{'if':{'properties':{'a':{'const':1}}},'then':{'required':['b']},'else':{'required':['c']}}",
     "{'a':'$0.output','c':1}", "ok"},
    {"{'if':{'properties':{'a':{'const':1}}},'then':{'required':['b']},'else':{'required':['c']}}", "{'a':'$0.output'}",
     "invalid_argument"},
    {"{'anyOf':[{'properties':{'a':{}}},{'properties':{'b':{}}}],'unevaluatedProperties':false}",
     "{'a':'$0.output','b':1}", "ok"},
    {"{'properties':{'a':{'minLength':50}}}", "{'a':'${0.output} b'}", "ok"},
    {"{'properties':{'a':{'items':{'type':'integer'},'maxItems':1}}}", "{'a':['$0.output','$0.output']}",
     "invalid_argument"},
};

START_TEST(literals_beside_references)
{
    struct rv_plan_rules rules = {.defer_unschematized = true};
    rv_buf tools = RV_BUF_INIT(10000), calls = RV_BUF_INIT(1000);

    rv_buf_printf(&tools, "[{'name':'m'},{'name':'u','in':%s}]", holes[_i].schema);
    rv_buf_printf(&calls, "[{'tool_name':'m'},{'tool_name':'u','arguments':%s}]", holes[_i].arguments);
    rv_plan_catalog *c = make_catalog(rv_buf_cstr(&tools));
    char *got = errors_of(c, rv_buf_cstr(&calls), &rules);
    ck_assert_msg(strcmp(got, "ok") == 0 ? strcmp(holes[_i].want, "ok") == 0 : strstr(got, holes[_i].want) != NULL,
                  "%s %s: %s", holes[_i].schema, holes[_i].arguments, got);
    free(got);
    rv_plan_catalog_free(c);
    rv_buf_fini(&tools);
    rv_buf_fini(&calls);
}
END_TEST

/* --- results of earlier rounds --- */

START_TEST(results_that_stand_can_be_referenced)
{
    json_object *value = rv_kit_json("{'id':'x','n':5,'l':[1]}"), *id = json_object_new_string("art-1");
    struct rv_plan_done done[2] = {{"make", true, value, id}, {"use", false, NULL, NULL}};
    struct rv_plan_rules rules = {.done = done, .n_done = 2};

    expect_errors(ALL, "[{'tool_name':'strict','arguments':{'s':'$0.output.id'}}]", &rules, "ok");
    expect_errors(ALL, "[{'tool_name':'strict','arguments':{'s':'$0.output.artifact_id'}}]", &rules, "ok");
    expect_errors(ALL, "[{'tool_name':'strict','arguments':{'s':'$0.output.n'}}]", &rules,
                  "2 s $0.output.n {'type':'type_mismatch','source_tool':'make','field':'n','source_type':'integer',"
                  "'target_tool':'strict','target_argument':'s','target_type':'string'}");
    expect_errors(
        ALL, "[{'tool_name':'use','arguments':{'a':'$0.output.q','b':'$1.output','c':'$2.output'}}]", &rules,
        "2 a $0.output.q {'type':'unresolved_reference','reason':'the object has no \\'q\\'; it has id, n, l'}\n"
        "2 b $1.output {'type':'unresolved_reference','reason':'call 1 did not succeed'}\n"
        "2 c $2.output {'type':'self_reference'}");
    expect_errors(ALL, "[{'tool_name':'make'},{'tool_name':'use','after':[0,1,2],'arguments':{'a':'$2.output.id'}}]",
                  &rules, "ok");
    json_object_put(value);
    json_object_put(id);
}
END_TEST

/* --- which call needs which --- */

START_TEST(needs_of_calls)
{
    struct rv_plan plan =
        make_plan("[{'tool_name':'make'},{'tool_name':'make','after':[0]},{'tool_name':'use',"
                  "'arguments':{'a':['$1.output.id','${1.output.id}!']}},{'tool_name':'use'},"
                  "{'tool_name':'use','on_failure':'continue','arguments':{'a':'$0.output'},'after':[3]}]");
    rv_plan_catalog *c = make_catalog(ALL);
    struct rv_plan_check check;

    ck_assert_int_eq(rv_plan_validate(&plan, c, NULL, &check, NULL), 0);
    ck_assert_uint_eq(check.n_errors, 0);
    ck_assert_uint_eq(check.n_calls, 5);
    ck_assert_uint_eq(check.needs[0].n, 0);
    ck_assert_uint_eq(check.needs[2].n, 1);
    ck_assert_uint_eq(check.needs[2].calls[0], 1);
    ck_assert_uint_eq(check.needs[2].n_all, 2);
    ck_assert_uint_eq(check.needs[2].all[0], 0);
    ck_assert_uint_eq(check.needs[2].n_refs, 2);
    ck_assert_uint_eq(check.needs[3].n_all, 0);
    ck_assert_uint_eq(check.needs[4].n, 2);
    ck_assert(plan.calls[4].continues && !plan.calls[3].continues);
    rv_plan_check_fini(&check);
    rv_plan_fini(&plan);
    rv_plan_catalog_free(c);
}
END_TEST

/* --- faults of whole plans, and text --- */

static char *text_of(const char *reply, size_t max)
{
    rv_plan_catalog *c = make_catalog(ALL);
    rv_buf text = RV_BUF_INIT(1000000);
    struct rv_plan plan;
    struct rv_plan_check check;

    struct rv_plan_reply r = {.text = rv_str_of(reply)};
    ck_assert_int_eq(rv_plan_parse(&r, max, &plan, NULL), 0);
    ck_assert_int_eq(rv_plan_validate(&plan, c, NULL, &check, NULL), 0);
    for (size_t i = 0; i < check.n_errors; i++) {
        rv_jw w = rv_jw_on(&text);
        rv_plan_error_write_json(&check.errors[i], &w);
        rv_buf_putc(&text, '\n');
    }
    rv_plan_check_write_text(&check, &text);
    rv_plan_check_fini(&check);
    rv_plan_fini(&plan);
    rv_plan_catalog_free(c);
    return rv_buf_steal(&text, NULL);
}

START_TEST(plans_with_a_fault)
{
    static const struct {
        const char *reply, *want;
    } cases[] = {
        {"{\"type\":\"tool_calls\",\"calls\":[]}",
         "{\"tool_index\":0,\"argument\":\"\",\"template\":\"\",\"error\":{\"type\":\"empty_plan\"}}\n"
         "Plan validation failed:\n- the plan has no calls: answer with direct_response instead"},
        {"{\"type\":\"tool_calls\",\"calls\":[{\"tool_name\":\"a\"},{\"tool_name\":\"a\"},{\"tool_name\":\"a\"}]}",
         "{\"tool_index\":0,\"argument\":\"\",\"template\":\"\",\"error\":{\"type\":\"too_many_calls\",\"count\":3,"
         "\"max\":2}}\nPlan validation failed:\n- the plan has 3 calls, at most 2 are allowed"},
        {"{\"type\":\"direct_response\"}",
         "{\"tool_index\":0,\"argument\":\"\",\"template\":\"\",\"error\":{\"type\":\"plan_malformed\",\"reason\":"
         "\"missing_field\",\"detail\":\"direct_response needs content, a string\"}}\nPlan validation failed:\n- "
         "direct_response needs content, a string"},
        {"{\"type\":\"direct_response\",\"content\":\"x\"}", "Plan validation failed:"},
        {"{\"type\":\"tool_calls\",\"calls\":[{\"tool_name\":\"no\\nsuch\"}]}",
         "{\"tool_index\":0,\"argument\":\"\",\"template\":\"\",\"error\":{\"type\":\"unknown_tool\",\"tool_name\":"
         "\"no\\nsuch\",\"available_tools\":[\"make\",\"strict\",\"use\"]}}\nPlan validation failed:\n- call 0: "
         "unknown "
         "tool \"no such\"; the tools are: make, strict, use"},
    };
    char *got = text_of(cases[_i].reply, 2);

    ck_assert_str_eq(got, cases[_i].want);
    free(got);
}
END_TEST

/* Proves plan.A9: the id of an artifact can be referenced although the schema does not declare it */
START_TEST(ids_of_artifacts_are_declared)
{
    const char *tools = "[{'name':'m','out':{'x-artifact-type':'table','properties':{'items':{'type':'string'}}}},"
                        "{'name':'u','in':{'properties':{'s':{'type':'string'},'n':{'type':'integer'}}}}]";

    expect_errors(tools, "[{'tool_name':'m'},{'tool_name':'u','arguments':{'s':'$0.output.artifact_id'}}]", NULL, "ok");
    expect_errors(tools, "[{'tool_name':'m'},{'tool_name':'u','arguments':{'n':'$0.output.artifact_id'}}]", NULL,
                  "1 n $0.output.artifact_id {'type':'type_mismatch','source_tool':'m','field':'artifact_id',"
                  "'source_type':'string','target_tool':'u','target_argument':'n','target_type':'integer'}");
    expect_errors(tools, "[{'tool_name':'m'},{'tool_name':'u','arguments':{'s':'$0.output.artifact_id.x'}}]", NULL,
                  "1 s $0.output.artifact_id.x {'type':'field_not_found','tool_name':'m','field':'artifact_id.x',"
                  "'available_fields':[]}");
    expect_errors(tools, "[{'tool_name':'m'},{'tool_name':'u','arguments':{'s':'$0.output.items.artifact_id'}}]", NULL,
                  "1 s $0.output.items.artifact_id {'type':'field_not_found','tool_name':'m','field':"
                  "'items.artifact_id','available_fields':[]}");
}
END_TEST

START_TEST(errors_are_bounded)
{
    rv_plan_catalog *c = make_catalog(ALL);
    rv_buf calls = RV_BUF_INIT(1000000);
    struct rv_plan_check check;

    rv_buf_puts(&calls, "[{'tool_name':'use','arguments':{'l':[0");
    for (int i = 0; i < RV_PLAN_MAX_ERRORS + 7; i++)
        rv_buf_puts(&calls, ",'$x.output.v'");
    rv_buf_puts(&calls, "]}}]");
    struct rv_plan plan = make_plan(rv_buf_cstr(&calls));
    ck_assert_int_eq(rv_plan_validate(&plan, c, NULL, &check, NULL), 0);
    ck_assert_uint_eq(check.n_errors, RV_PLAN_MAX_ERRORS);
    ck_assert_uint_eq(check.n_more, 7);
    rv_plan_check_fini(&check);
    rv_plan_fini(&plan);
    rv_plan_catalog_free(c);
    rv_buf_fini(&calls);
}
END_TEST

/* A reference with more steps than any output has levels ends, whatever the schema says. */
START_TEST(long_references_end)
{
    rv_plan_catalog *c = make_catalog("[{'name':'m','out':{'properties':{'a':{'$ref':'#'}}}},{'name':'u'}]");
    rv_buf calls = RV_BUF_INIT(1000000);

    rv_buf_puts(&calls, "[{'tool_name':'m'},{'tool_name':'u','arguments':{'a':'$0.output");
    for (int i = 0; i < 100000; i++)
        rv_buf_puts(&calls, ".a");
    rv_buf_puts(&calls, "'}}]");
    char *got = errors_of(c, rv_buf_cstr(&calls), NULL);
    ck_assert(strstr(got, "{'type':'field_not_found','tool_name':'m','field':'a.a.a"));
    free(got);
    rv_plan_catalog_free(c);
    rv_buf_fini(&calls);
}
END_TEST

/* The example of the design: research, then a post about it. */
START_TEST(research_then_post)
{
    const char *tools =
        "[{'name':'research_blog','out':{'properties':{'artifact_id':{'type':'string'},'artifact':{'type':'object',"
        "'properties':{'title':{'type':'string'},'sections':{'type':'array'},'sources':{'type':'array'}}},'_metadata':"
        "{'type':'object'}},'required':['artifact_id','artifact','_metadata']}},{'name':'create_blog_post','in':{"
        "'properties':{'artifact_id':{'type':'string'},'skill_id':{'type':'string'},'instructions':{'type':'string'}},"
        "'required':['artifact_id','skill_id','instructions']}}]";
    const char *broken = "[{'name':'research_blog','out':{'properties':{'topic':{},'sources':{}}}},{'name':"
                         "'create_blog_post'}]";
    const char *calls =
        "[{'tool_name':'research_blog','arguments':{'topic':'AI trends 2025','skill_id':'research_blog'}},"
        "{'tool_name':'create_blog_post','arguments':{'artifact_id':'$0.output.artifact_id','skill_id':"
        "'blog_writing','instructions':'Focus on practical applications'}}]";

    expect_errors(tools, calls, NULL, "ok");
    expect_errors(broken, calls, NULL,
                  "1 artifact_id $0.output.artifact_id {'type':'field_not_found','tool_name':'research_blog','field':"
                  "'artifact_id','available_fields':['topic','sources']}");
}
END_TEST

TCase *validate_case(void)
{
    TCase *tc = tcase_create("validate");

    tcase_add_loop_test(tc, templates_are_read, 0, (int)RV_COUNT(templates));
    tcase_add_test(tc, references_are_counted);
    tcase_add_loop_test(tc, errors_are_found, 0, (int)RV_COUNT(errors));
    tcase_add_test(tc, unschematized_outputs_may_wait);
    tcase_add_loop_test(tc, literals_beside_references, 0, (int)RV_COUNT(holes));
    tcase_add_test(tc, results_that_stand_can_be_referenced);
    tcase_add_test(tc, needs_of_calls);
    tcase_add_loop_test(tc, plans_with_a_fault, 0, 5);
    tcase_add_test(tc, ids_of_artifacts_are_declared);
    tcase_add_test(tc, errors_are_bounded);
    tcase_add_test(tc, long_references_end);
    tcase_add_test(tc, research_then_post);
    return tc;
}
