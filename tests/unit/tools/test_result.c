/* Rule 6.4: checking standard results. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

static const struct {
    const char *result, *complaint; /* NULL: valid */
} checked[] = {
    {"{'status':'success'}", NULL},
    {"{'status':'success','data':{},'message':'m','error':null}", NULL},
    {"{'status':'error','error':{'error_type':'T','message':'m','recoverable':false,'details':null}}", NULL},
    {"[]", "tool result must be an object, found array"},
    {"{}", "tool result: \"status\" must be text, found null"},
    {"{'status':'ok'}", "tool result: \"status\""},
    {"{'status':'SUCCESS'}", "tool result: \"status\""},
    {"{'status':'error'}", "tool result: status error needs an \"error\""},
    {"{'status':'error','error':null}", "tool result: status error needs an \"error\""},
    {"{'status':'success','error':{'error_type':'T','message':'m','recoverable':false}}",
     "tool result: status success must not have an \"error\""},
    {"{'status':'error','error':'text'}", "tool result: \"error\" must be an object, found string"},
    {"{'status':'error','error':{'message':'m','recoverable':false}}",
     "tool result: \"error\" needs the text \"error_type\""},
    {"{'status':'error','error':{'error_type':'T','recoverable':false}}",
     "tool result: \"error\" needs the text \"message\""},
    {"{'status':'error','error':{'error_type':'T','message':'m'}}",
     "tool result: \"error\" needs the boolean \"recoverable\""},
    {"{'status':'error','error':{'error_type':'T','message':'m','recoverable':false,'details':1}}",
     "tool result: \"error.details\" must be an object, found integer"},
    {"{'status':'success','data':[1]}", "tool result: \"data\" must be an object, found array"},
    {"{'status':'success','message':1}", "tool result: \"message\" must be text, found integer"},
};

/* Proves 6.4/validate: Status error needs an error object, status success must not have one; each message says
 * which rule is broken */
START_TEST(validation_says_which_rule_a_result_breaks)
{
    json_object *result = rv_kit_json(checked[_i].result);
    rv_err *err = NULL;
    int rc = rv_tool_result_validate(result, &err);

    ck_assert_msg(rc == (checked[_i].complaint ? RV_E_INVALID : 0), "%s: %s", checked[_i].result, rv_err_text(err));
    ck_assert_str_eq(rv_err_text(err), checked[_i].complaint ? checked[_i].complaint : "");
    rv_err_free(err);
    json_object_put(result);
}
END_TEST

TCase *result_case(void)
{
    TCase *tc = tcase_create("result");

    tcase_add_loop_test(tc, validation_says_which_rule_a_result_breaks, 0, (int)RV_COUNT(checked));
    return tc;
}
