/* Rule 6.1, the engine's shape of a step's result; W33, W35, W37. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

static const struct {
    const char *id, *parameters, *standard, *error_type, *error_message;
    bool recoverable;
    const char *want; /* after step_id and tool */
} cases[] = {
    {"6.1 success", "{'q':1}", "{'status':'success','data':{'a':1}}", NULL, "", false,
     "'parameters':{'q':1},'status':'success','execution_time_ms':7,'data':{'a':1}"},
    {"6.1 no parameters, no data", NULL, "{'status':'success'}", NULL, "", false,
     "'parameters':{},'status':'success','execution_time_ms':7,'data':{}"},
    {"W35 data that is no object", NULL, "{'status':'success','data':'text'}", NULL, "", false,
     "'parameters':{},'status':'success','execution_time_ms':7,'data':{'value':'text'}"},
    {"W35 null data", NULL, "{'status':'success','data':null}", NULL, "", false,
     "'parameters':{},'status':'success','execution_time_ms':7,'data':{'value':null}"},
    {"W33 failure inside the result", "{}",
     "{'status':'error','error':{'error_type':'T','message':'m','details':{'d':1},'recoverable':true},'message':'m'}",
     NULL, "", false,
     "'parameters':{},'status':'error','execution_time_ms':7,'error':{'type':'T','message':'m','recoverable':true,"
     "'details':{'d':1}}"},
    {"W38 partial data of a failure", "{}",
     "{'status':'error','data':{'done':2},'error':{'error_type':'T','message':'m','recoverable':false}}", NULL, "",
     true,
     "'parameters':{},'status':'error','execution_time_ms':7,'data':{'done':2},'error':{'type':'T','message':'m',"
     "'recoverable':false,'details':{}}"},
    {"W37 denial", "{'q':1}", NULL, "AccessDenied", "access denied to tool \"t\"", false,
     "'parameters':{'q':1},'status':'error','execution_time_ms':7,'error':{'type':'AccessDenied','message':"
     "'access denied to tool \\u0022t\\u0022','recoverable':false,'details':{}}"},
    {"W37 executor's error", "{'q':1}", NULL, "ExecutionError", "it broke", true,
     "'parameters':{'q':1},'status':'error','execution_time_ms':7,'error':{'type':'ExecutionError','message':"
     "'it broke','recoverable':true,'details':{}}"},
    {"W36 malformed step", NULL, NULL, "InvalidStep", "step 0 is not an object", false,
     "'parameters':{},'status':'error','execution_time_ms':7,'error':{'type':'InvalidStep','message':"
     "'step 0 is not an object','recoverable':false,'details':{}}"},
    {"6.1 neither result nor error", NULL, NULL, NULL, "", false,
     "'parameters':{},'status':'error','execution_time_ms':7,'error':{'type':'ToolError','message':'Unknown error',"
     "'recoverable':false,'details':{}}"},
    {"6.1 failed result without error", NULL, "{'status':'error'}", NULL, "", false,
     "'parameters':{},'status':'error','execution_time_ms':7,'error':{'type':'ToolError','message':'Unknown error',"
     "'recoverable':false,'details':{}}"},
};

/* Proves 6.1/shape: A step's result always has step_id, tool, parameters, status and execution_time_ms, then data
 * or an error with type, message, recoverable and details
 * Proves W36/shape: A malformed step has a result of type InvalidStep in the one shape (the rest of W36 belongs to
 * the stage)
 * Proves W37: A denial has the shape of every other failed step
 * Proves W33, W38
 * Proves W35 */
START_TEST(step_result_has_one_shape)
{
    json_object *parameters = cases[_i].parameters ? rv_kit_json(cases[_i].parameters) : NULL;
    json_object *standard = cases[_i].standard ? rv_kit_json(cases[_i].standard) : NULL, *out = NULL, *want;
    struct rv_step_result s = {.step_id = RV_STR_LIT("s1"),
                               .tool = RV_STR_LIT("t"),
                               .parameters = parameters,
                               .execution_ms = 7,
                               .standard = standard,
                               .error_type = cases[_i].error_type,
                               .error_message = rv_str_of(cases[_i].error_message),
                               .recoverable = cases[_i].recoverable};
    char whole[1024], *got_text, *want_text;

    snprintf(whole, sizeof whole, "{'step_id':'s1','tool':'t',%s}", cases[_i].want);
    want = rv_kit_json(whole);
    ck_assert_int_eq(rv_tool_build_step_result(&s, &out, NULL), 0);
    got_text = rv_kit_text(out);
    want_text = rv_kit_text(want);
    ck_assert_msg(strcmp(got_text, want_text) == 0, "%s:\n  got  %s\n  want %s", cases[_i].id, got_text, want_text);
    free(got_text);
    free(want_text);
    json_object_put(want);
    json_object_put(out);
    json_object_put(standard);
    json_object_put(parameters);
}
END_TEST

TCase *step_result_case(void)
{
    TCase *tc = tcase_create("step_result");

    tcase_add_loop_test(tc, step_result_has_one_shape, 0, (int)RV_COUNT(cases));
    return tc;
}
