/* Rule 6.5 and W33, W35, W38: any answer becomes a standard result. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

static const struct {
    const char *id, *raw, *want;
} cases[] = {
    /* standard results pass */
    {"6.5 standard success passes", "{'status':'success','data':{'a':1}}", "{'status':'success','data':{'a':1}}"},
    {"6.5 standard success with message passes", "{'status':'success','data':{},'message':'m'}",
     "{'status':'success','data':{},'message':'m'}"},
    {"6.5 standard error passes", "{'status':'error','error':{'error_type':'T','message':'m','recoverable':true}}",
     "{'status':'error','error':{'error_type':'T','message':'m','recoverable':true}}"},
    {"6.5 standard error with everything passes",
     "{'message':'x','data':{'part':1},'error':{'recoverable':false,'details':{'d':1},'error_type':'T','message':'m'},"
     "'status':'error'}",
     "{'message':'x','data':{'part':1},'error':{'recoverable':false,'details':{'d':1},'error_type':'T','message':'m'},"
     "'status':'error'}"},
    {"W35 data that is no object is wrapped", "{'status':'success','data':[1,2],'message':'m'}",
     "{'status':'success','data':{'value':[1,2]},'message':'m'}"},
    {"W35 null data is wrapped", "{'status':'success','data':null}", "{'status':'success','data':{'value':null}}"},

    /* step 1: status */
    {"6.5.1 no status, no error", "{'hits':[1]}", "{'status':'success','data':{'hits':[1]}}"},
    {"6.5.1 empty object", "{}", "{'status':'success','data':{}}"},
    {"6.5.1 success", "{'status':'success','n':1}", "{'status':'success','data':{'status':'success','n':1}}"},
    {"6.5.1 completed", "{'status':'completed'}", "{'status':'success','data':{'status':'completed'}}"},
    {"6.5.1 ok in capitals", "{'status':'OK'}", "{'status':'success','data':{'status':'OK'}}"},
    {"6.5.1 error", "{'status':'error'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'Unknown error','recoverable':false}}"},
    {"6.5.1 failed", "{'status':'Failed'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'Unknown error','recoverable':false}}"},
    {"6.5.1 failure", "{'status':'failure'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'Unknown error','recoverable':false}}"},
    {"W38 status is trimmed", "{'status':' \\tError\\n'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'Unknown error','recoverable':false}}"},
    {"W38 timeout is an error", "{'status':'timeout'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'Unknown error','recoverable':false}}"},
    {"W38 denied is an error", "{'status':'Denied','message':'no'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'no','recoverable':false},'message':'no'}"},
    {"W38 cancelled is an error", "{'status':'cancelled'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'Unknown error','recoverable':false}}"},
    {"6.5.1 success wins over an error key", "{'status':'success','error':'e'}",
     "{'status':'success','data':{'status':'success','error':'e'}}"},
    {"6.5.1 other status without error", "{'status':'pending'}", "{'status':'success','data':{'status':'pending'}}"},
    {"6.5.1 other status with error", "{'status':'pending','error':'e'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'e','recoverable':false}}"},
    {"6.5.1 status that is no text", "{'status':200}", "{'status':'success','data':{'status':200}}"},
    {"6.5.1 status that is no text, with error", "{'status':500,'error':'e'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'e','recoverable':false}}"},
    {"6.5.1 status null", "{'status':null}", "{'status':'success','data':{'status':null}}"},
    {"6.5.1 very long status", "{'status':'successsuccesssuccesssuccess'}",
     "{'status':'success','data':{'status':'successsuccesssuccesssuccess'}}"},

    /* W38: an error that says nothing */
    {"W38 error null", "{'error':null,'n':1}", "{'status':'success','data':{'error':null,'n':1}}"},
    {"W38 error false", "{'error':false}", "{'status':'success','data':{'error':false}}"},
    {"W38 error empty", "{'error':''}", "{'status':'success','data':{'error':''}}"},
    {"W38 error null in a failure", "{'status':'error','error':null,'message':'m'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'m','recoverable':false},'message':'m'}"},
    {"W38 error zero counts", "{'error':0}",
     "{'status':'error','error':{'error_type':'ToolError','message':'0','recoverable':false}}"},

    /* steps 2 and 3 */
    {"6.5.2 message is kept", "{'message':'done','n':1}",
     "{'status':'success','data':{'message':'done','n':1},'message':'done'}"},
    {"6.5.2 message that is no text is not", "{'message':5}", "{'status':'success','data':{'message':5}}"},
    {"6.5.2 bare success with message is an answer like any other", "{'status':'success','message':'saved'}",
     "{'status':'success','data':{'status':'success','message':'saved'},'message':'saved'}"},
    {"6.5.3 data is the whole object", "{'data':{'a':1},'n':2}", "{'status':'success','data':{'data':{'a':1},'n':2}}"},

    /* step 4: error text */
    {"6.5.4 error text", "{'error':'boom','message':'m'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'boom','recoverable':false},'message':'m'}"},
    {"6.5.4 error type beside a text", "{'error':'boom','error_type':'IOError'}",
     "{'status':'error','error':{'error_type':'IOError','message':'boom','recoverable':false}}"},
    {"6.5.4 message stands in", "{'error':7,'message':'m'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'m','recoverable':false},'message':'m'}"},
    {"W38 text form of an error is its JSON", "{'error':['a',1,null]}",
     "{'status':'error','error':{'error_type':'ToolError','message':'[\\u0022a\\u0022,1,null]','recoverable':false}}"},
    {"W38 text form of true", "{'error':true}",
     "{'status':'error','error':{'error_type':'ToolError','message':'true','recoverable':false}}"},
    {"6.5.4 error object", "{'error':{'type':'NotFoundError','message':'gone','path':'x'}}",
     "{'status':'error','error':{'error_type':'NotFoundError','message':'gone','details':{'type':'NotFoundError',"
     "'message':'gone','path':'x'},'recoverable':false}}"},
    {"6.5.4 error object without type and message", "{'error':{'code':5}}",
     "{'status':'error','error':{'error_type':'ToolError','message':'{\\u0022code\\u0022:5}','details':{'code':5},"
     "'recoverable':false}}"},
    {"6.5.4 error object, message above", "{'error':{'type':4,'message':4},'message':'m'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'m','details':{'type':4,'message':4},"
     "'recoverable':false},'message':'m'}"},
    {"6.5.4 top-level error type is not for error objects", "{'error':{'message':'m'},'error_type':'X'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'m','details':{'message':'m'},"
     "'recoverable':false}}"},
    {"6.5.4 half a standard error is an error object", "{'status':'error','error':{'error_type':'T','message':'m'}}",
     "{'status':'error','error':{'error_type':'ToolError','message':'m','details':{'error_type':'T','message':'m'},"
     "'recoverable':false}}"},

    /* W38: recoverable and partial data */
    {"W38 recoverable from the error object", "{'error':{'message':'m','recoverable':true},'recoverable':false}",
     "{'status':'error','error':{'error_type':'ToolError','message':'m','details':{'message':'m','recoverable':true},"
     "'recoverable':true}}"},
    {"W38 recoverable from the top", "{'error':'e','recoverable':true}",
     "{'status':'error','error':{'error_type':'ToolError','message':'e','recoverable':true}}"},
    {"W38 recoverable from the top beside an error object", "{'error':{'message':'m'},'recoverable':true}",
     "{'status':'error','error':{'error_type':'ToolError','message':'m','details':{'message':'m'},"
     "'recoverable':true}}"},
    {"W38 recoverable that is no boolean", "{'error':'e','recoverable':'yes'}",
     "{'status':'error','error':{'error_type':'ToolError','message':'e','recoverable':false}}"},
    {"W38 partial data is kept", "{'error':'e','data':{'done':3}}",
     "{'status':'error','data':{'done':3},'error':{'error_type':'ToolError','message':'e','recoverable':false}}"},
    {"6.5.4 data that is no object is dropped", "{'error':'e','data':[1]}",
     "{'status':'error','error':{'error_type':'ToolError','message':'e','recoverable':false}}"},
};

/* Proves 6.5/input: A standard result passes as it is, other objects are converted, anything else is an error that
 * names its type
 * Proves 6.5/status: The status word decides, whatever its case; any other status, or none, means error only if
 * there is an error
 * Proves 6.5/message: A text under message is kept
 * Proves 6.5/success: The data of a success is the whole answer
 * Proves 6.5/error: The text of a failure is the error, else the message, else the error as JSON, else "Unknown
 * error"; an error object gives type, message and details
 * Proves W33: A failure that a tool reports inside its answer is a failed step
 * Proves W38: Status is trimmed; timeout, denied and cancelled are errors; an error of null, false or empty text is
 * none; texts are JSON; recoverable and partial data are kept
 * Proves 6.4/details: Error details are as given; details may be absent
 * Proves 6.4/failure: A failure has status error and an error, no data; without a message of its own it takes the
 * error's
 * Proves 6.4/success: A success has status success, no error, data and message as given
 * Proves W35: Data that is no object is wrapped as {value: it} */
START_TEST(answer_becomes_the_standard_result)
{
    json_object *raw = rv_kit_json(cases[_i].raw), *want = rv_kit_json(cases[_i].want), *out = NULL, *again = NULL;
    char *got_text, *want_text;
    rv_err *err = NULL;

    ck_assert_msg(rv_tool_result_normalize(raw, &out, &err) == 0, "%s", cases[_i].id);
    got_text = rv_kit_text(out);
    want_text = rv_kit_text(want);
    ck_assert_msg(strcmp(got_text, want_text) == 0, "%s:\n  got  %s\n  want %s", cases[_i].id, got_text, want_text);
    ck_assert_msg(rv_tool_result_validate(out, &err) == 0, "%s: %s", cases[_i].id, rv_err_text(err));
    ck_assert_int_eq(rv_tool_result_normalize(out, &again, &err), 0);
    ck_assert_msg(again == out, "%s: a second time changes nothing", cases[_i].id);
    free(got_text);
    free(want_text);
    json_object_put(again);
    json_object_put(out);
    json_object_put(want);
    json_object_put(raw);
}
END_TEST

static const struct {
    const char *raw, *message;
} bad[] = {
    {"[1]", "tool result must be an object, found array  [invalid_argument]\n"},
    {"null", "tool result must be an object, found null  [invalid_argument]\n"},
    {"'text'", "tool result must be an object, found string  [invalid_argument]\n"},
    {"1", "tool result must be an object, found integer  [invalid_argument]\n"},
    {"1.5", "tool result must be an object, found number  [invalid_argument]\n"},
    {"true", "tool result must be an object, found boolean  [invalid_argument]\n"},
};

/* Proves 6.5/input */
START_TEST(answer_that_is_no_object_is_an_error_naming_its_type)
{
    json_object *raw = rv_kit_json(bad[_i].raw), *out = NULL;
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(rv_tool_result_normalize(raw, &out, &err), RV_E_INVALID);
    ck_assert_ptr_null(out);
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, bad[_i].message);
    free(text);
    json_object_put(raw);
}
END_TEST

TCase *normalize_case(void)
{
    TCase *tc = tcase_create("normalize");

    tcase_add_loop_test(tc, answer_becomes_the_standard_result, 0, (int)RV_COUNT(cases));
    tcase_add_loop_test(tc, answer_that_is_no_object_is_an_error_naming_its_type, 0, (int)RV_COUNT(bad));
    return tc;
}
