/* What schemas say about fields and types: the walk of a reference, and the matrix of types. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/plan/plan_suites.h"
#include "tests/unit/plan/world.h"

/* --- the walk of V7 --- */

static const struct {
    const char *schema, *path, *want;
} walks[] = {
    {"true", ".a.b[3]", "ok"},
    {"{}", ".a", "ok"},
    {"{'type':'object'}", ".a.b", "ok"},
    {"{'type':'object','additionalProperties':false}", ".a", "field_not_found"},
    {"{'properties':{'a':{}}}", ".a.b.c", "ok"},
    {"{'properties':{'a':{}}}", ".b", "field_not_found"},
    {"{'properties':{'a':{}},'additionalProperties':true}", ".b.c", "ok"},
    {"{'properties':{'a':{}},'additionalProperties':{'type':'string'}}", ".b", "ok"},
    {"{'properties':{'a':{}},'additionalProperties':{'type':'string'}}", ".b.c", "field_not_found"},
    {"{'properties':{'a':{'$ref':'#/$defs/d'}},'$defs':{'d':{'properties':{'x':{}}}}}", ".a.x", "ok"},
    {"{'properties':{'a':{'$ref':'#/$defs/d'}},'$defs':{'d':{'properties':{'x':{}}}}}", ".a.y", "field_not_found"},
    {"{'properties':{'a':{'$ref':'#'}}}", ".a.a.a", "ok"},
    {"{'properties':{'a':{'$ref':'#'}}}", ".a.a.b", "field_not_found"},
    {"{'properties':{'a':{'$ref':'http://other/x'}}}", ".a.b", "ok"},
    {"{'properties':{'a':{'$ref':'other.json','properties':{'b':{}}}}}", ".a.c", "ok"},
    {"{'properties':{'a':{'$ref':'#/$defs/d%64'}},'$defs':{'d%64':{'properties':{'x':{}}}}}", ".a.y", "ok"},
    {"{'type':'array','items':{'properties':{'x':{}}}}", "[4].x", "ok"},
    {"{'type':'array','items':{'properties':{'x':{}}}}", ".4.x", "ok"},
    {"{'type':'array','items':{'properties':{'x':{}}}}", "[4].y", "field_not_found"},
    {"{'type':'array','items':{'properties':{'x':{}}}}", ".x", "field_not_found"},
    {"{'type':'array','prefixItems':[{'type':'string'}],'items':{'properties':{'x':{}}}}", "[0].x", "field_not_found"},
    {"{'type':'array','prefixItems':[{'type':'string'}],'items':{'properties':{'x':{}}}}", "[1].x", "ok"},
    {"{'type':'array','prefixItems':[{'type':'string'}],'items':false}", "[1]", "field_not_found"},
    {"{'type':'array'}", "[9].q", "ok"},
    {"{'type':'string'}", ".a", "field_not_found"},
    {"{'type':'string'}", "[0]", "field_not_found"},
    {"{'anyOf':[{'properties':{'a':{}}},{'properties':{'b':{}}}]}", ".b", "ok"},
    {"{'oneOf':[{'properties':{'a':{}}},{'type':'null'}]}", ".a", "ok"},
    {"{'anyOf':[{'properties':{'a':{}}},{'properties':{'b':{}}}]}", ".c", "field_not_found"},
    {"{'allOf':[{'properties':{'a':{}}},{'properties':{'b':{}}}]}", ".b", "ok"},
    {"{'allOf':[{'properties':{'a':{}}},{'properties':{'b':{}}}]}", ".c", "field_not_found"},
    {"{'properties':{'a':{}},'anyOf':[{'required':['a']},{'properties':{'b':{}}}]}", ".a", "ok"},
    {"{'properties':{'a':{}},'anyOf':[{'required':['a']},{'properties':{'b':{}}}]}", ".c", "field_not_found"},
    {"{'properties':{'a':{}},'patternProperties':{'^x':{}}}", ".xy", "ok"},
    {"{'properties':{'a':{}},'required':['b']}", ".a", "ok"},
};

START_TEST(schemas_are_walked)
{
    rv_buf tools = RV_BUF_INIT(10000), calls = RV_BUF_INIT(1000);

    rv_buf_printf(&tools, "[{'name':'m','out':%s},{'name':'u'}]", walks[_i].schema);
    rv_buf_printf(&calls, "[{'tool_name':'m'},{'tool_name':'u','arguments':{'a':'$0.output%s'}}]", walks[_i].path);
    rv_plan_catalog *c = make_catalog(rv_buf_cstr(&tools));
    char *got = errors_of(c, rv_buf_cstr(&calls), NULL);
    ck_assert_msg(strcmp(got, "ok") == 0 ? strcmp(walks[_i].want, "ok") == 0 : strstr(got, walks[_i].want) != NULL,
                  "%s%s: %s", walks[_i].schema, walks[_i].path, got);
    free(got);
    rv_plan_catalog_free(c);
    rv_buf_fini(&tools);
    rv_buf_fini(&calls);
}
END_TEST

/* --- the matrix of V8 --- */

static const char *const types[] = {"string", "integer", "number", "boolean", "array", "object", "null", "any"};
#define N_TYPES RV_COUNT(types)
static const char *const matrix[] = {
    /* string integer number boolean array object null any; '.': fits, 'd': the run decides, 'x': never */
    "+xxxxxx+", "x++xxxx+", "xd+xxxx+", "xxx+xxx+", "xxxx+xx+", "xxxxx+x+", "xxxxxx++", "ddddddd+",
};

/* The errors and the number of deferred references of a value of one schema in an argument of another. */
static char verdict(const char *source, const char *target, const char *template)
{
    rv_buf tools = RV_BUF_INIT(10000), calls = RV_BUF_INIT(1000);
    struct rv_plan_check check;
    char found;

    rv_buf_printf(
        &tools,
        "[{'name':'m','out':{'properties':{'v':%s},'required':['v']}},{'name':'u','in':{'properties':{'a':%s}}}]",
        source, target);
    rv_buf_printf(&calls, "[{'tool_name':'m'},{'tool_name':'u','arguments':{'a':'%s'}}]", template);
    rv_plan_catalog *c = make_catalog(rv_buf_cstr(&tools));
    struct rv_plan plan = make_plan(rv_buf_cstr(&calls));
    ck_assert_int_eq(rv_plan_validate(&plan, c, NULL, &check, NULL), 0);
    if (check.n_errors > 0)
        ck_assert_int_eq(check.errors[0].type, RV_PLAN_ERROR_TYPE_MISMATCH);
    ck_assert_uint_eq(check.needs[1].n_refs, 1);
    found = check.n_errors > 0 ? 'x' : check.needs[1].n_deferred > 0 ? 'd' : '+';
    rv_plan_check_fini(&check);
    rv_plan_fini(&plan);
    rv_plan_catalog_free(c);
    rv_buf_fini(&tools);
    rv_buf_fini(&calls);
    return found;
}

static void schema_of_type(size_t i, char *out, size_t size)
{
    snprintf(out, size, i == N_TYPES - 1 ? "{}" : "{'type':'%s'}", types[i]);
}

START_TEST(types_are_compared)
{
    size_t from = (size_t)_i / N_TYPES, to = (size_t)_i % N_TYPES;
    char source[50], target[50], want = matrix[from][to];

    schema_of_type(from, source, sizeof source);
    schema_of_type(to, target, sizeof target);
    char got = verdict(source, target, "$0.output.v");
    if (want == '+' && from == N_TYPES - 1)
        want = 'd'; /* nothing is known about the value, so the run looks at it */
    ck_assert_msg(got == want, "%s to %s: %c, not %c", source, target, got, want);
    /* Text from any type: the argument has to accept a string. */
    got = verdict(source, target, "<${0.output.v}>");
    ck_assert_msg((got != 'x') == (to == 0 || to == N_TYPES - 1), "%s in text to %s: %c", source, target, got);
}
END_TEST

static const struct {
    const char *source, *target;
    char want;
} fits[] = {
    {"{'type':['string','null']}", "{'type':'string'}", 'd'},
    {"{'type':['string','null']}", "{'type':['null','string']}", '+'},
    {"{'type':['string','null']}", "{'type':'integer'}", 'x'},
    {"{'anyOf':[{'type':'string'},{'type':'integer'}]}", "{'type':'number'}", 'd'},
    {"{'oneOf':[{'type':'string'},{'type':'boolean'}]}", "{'type':'number'}", 'x'},
    {"{'allOf':[{'type':['string','null']},{'type':['string','integer']}]}", "{'type':'string'}", '+'},
    {"{'enum':['a','b']}", "{'type':'string'}", '+'},
    {"{'const':5}", "{'type':'string'}", 'x'},
    {"{'const':5}", "{'type':'integer'}", 'd'},
    {"{'type':'integer','enum':[5,6]}", "{'type':'integer'}", '+'},
    {"{'enum':['a',1]}", "{'type':'string'}", 'd'},
    {"{'properties':{}}", "{'type':'array'}", 'x'},
    {"{'required':['a']}", "{'type':'object'}", '+'},
    {"{'items':{}}", "{'type':'object'}", 'x'},
    {"{'type':'array','items':{'type':'string'}}", "{'type':'array','items':{'type':'integer'}}", 'x'},
    {"{'type':'array','items':{'type':'integer'}}", "{'type':'array','items':{'type':'number'}}", '+'},
    {"{'type':'array','items':{'type':'number'}}", "{'type':'array','items':{'type':'integer'}}", 'd'},
    {"{'type':'array'}", "{'type':'array','items':{'type':'integer'}}", '+'},
    {"{'type':'array','items':{'items':{'type':'null'}}}", "{'type':'array','items':{'items':{'type':'string'}}}", 'x'},
    {"{'type':'string','format':'email'}", "{'type':'string','pattern':'^a'}", '+'},
};

START_TEST(unions_are_compared)
{
    char got = verdict(fits[_i].source, fits[_i].target, "$0.output.v");

    ck_assert_msg(got == fits[_i].want, "%s to %s: %c", fits[_i].source, fits[_i].target, got);
}
END_TEST

TCase *shape_case(void)
{
    TCase *tc = tcase_create("shape");

    tcase_add_loop_test(tc, schemas_are_walked, 0, (int)RV_COUNT(walks));
    tcase_add_loop_test(tc, types_are_compared, 0, (int)(N_TYPES * N_TYPES));
    tcase_add_loop_test(tc, unions_are_compared, 0, (int)RV_COUNT(fits));
    return tc;
}
