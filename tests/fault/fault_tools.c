/* Every allocation of the tools module fails once: no crash, no leak, RV_E_NOMEM. */
#include <check.h>
#include <stdlib.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

/* What the scenarios read; made before any allocation fails. */
static json_object *schema_doc, *bad_value, *good_value, *few_defaults;
static json_object *answers[4];

static int compile_check_and_fill(void)
{
    json_object *filled = NULL;
    rv_schema *s = NULL;
    rv_err *err = NULL;
    int rc = rv_schema_compile(schema_doc, "x", &s, &err);

    if (rc < 0)
        goto done;
    rc = rv_schema_check(s, good_value, &err);
    if (rc < 0)
        goto done;
    rc = rv_schema_check(s, bad_value, &err);
    if (rc == RV_E_INVALID) /* a report that found no memory keeps the code and says so in the text */
        rc = rv_err_code(err) == RV_E_INVALID ? 0 : RV_E_NOMEM;
    if (rc < 0)
        goto done;
    rv_err_free(err);
    err = NULL;
    rc = rv_json_dup(few_defaults, &filled, &err);
    if (rc == 0)
        rc = rv_schema_fill_defaults(s, filled, &err);
done:
    json_object_put(filled);
    rv_schema_free(s);
    rv_err_free(err);
    return rc;
}

static int normalize_and_shape(void)
{
    rv_err *err = NULL;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(answers); i++) {
        json_object *standard = NULL, *step = NULL, *data = NULL;
        rc = rv_tool_result_normalize(answers[i], &standard, &err);
        if (rc == 0) {
            struct rv_step_result s = {.step_id = RV_STR_LIT("s"), .tool = RV_STR_LIT("t"), .standard = standard};
            rc = rv_tool_build_step_result(&s, &step, &err);
        }
        if (rc == 0)
            rc = rv_tool_result_build_data(answers[i], &data, NULL, &err);
        json_object_put(standard);
        json_object_put(step);
        json_object_put(data);
    }
    rv_err_free(err);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {
    {"schema", compile_check_and_fill},
    {"results", normalize_and_shape},
};

START_TEST(any_failing_allocation_is_an_error_without_a_leak)
{
    schema_doc = rv_kit_json(
        "{'type':'object','$defs':{'n':{'type':['integer','null'],'enum':[1,2,null]}},'required':['a'],'properties':"
        "{'a':{'anyOf':[{'$ref':'#/$defs/n'},{'type':'object','properties':{'b':{'const':1}}}]},'d':{'default':[1]},"
        "'u':{'uniqueItems':true},'p':{'pattern':'^a'}},'patternProperties':{'^x-':{'type':'null'}},'propertyNames':"
        "{'maxLength':9},'dependentRequired':{'d':['a']},'if':{'required':['p']},'then':{'properties':{'v':true}},"
        "'unevaluatedProperties':false}");
    good_value = rv_kit_json("{'a':1,'u':[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18],'p':'ab','v':2,'x-y':null}");
    bad_value = rv_kit_json("{'a':{'b':2},'x':1,'u':[1,1],'p':'b','x-':1,'much-too-long':1,'d':2}");
    few_defaults = rv_kit_json("{'a':1}");
    answers[0] = rv_kit_json("{'hits':[1],'discoveries':['a',{'identifier':1}],'evidence':['e',{}],'message':'m'}");
    answers[1] = rv_kit_json("{'status':'failed','error':{'code':5},'data':{'part':1}}");
    answers[2] = rv_kit_json("{'error':[1],'items_explored':['a']}");
    answers[3] = rv_kit_json("{'status':'success','data':[1]}");

    rv_fault_each(&scenarios[_i], 10);
    json_object_put(schema_doc);
    json_object_put(good_value);
    json_object_put(bad_value);
    json_object_put(few_defaults);
    for (size_t i = 0; i < RV_COUNT(answers); i++)
        json_object_put(answers[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_tools");
    TCase *tc = tcase_create("fault");

    tcase_add_loop_test(tc, any_failing_allocation_is_an_error_without_a_leak, 0, (int)RV_COUNT(scenarios));
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}
