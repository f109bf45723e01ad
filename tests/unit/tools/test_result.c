/* Rule 6.4: making and checking standard results and error details. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

/* Both are put. */
static void assert_json(json_object *got, const char *want)
{
    json_object *tree = rv_kit_json(want);
    char *a = rv_kit_text(got), *b = rv_kit_text(tree);

    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    json_object_put(tree);
    json_object_put(got);
}

/* Proves 6.4/success: A success has status success, no error, data and message as given
 * Proves W35 */
START_TEST(success_has_status_data_and_message)
{
    json_object *data = rv_kit_json("{'a':1}"), *list = rv_kit_json("[1]"), *out = NULL;

    ck_assert_int_eq(rv_tool_result_success(data, "m", &out, NULL), 0);
    assert_json(out, "{'status':'success','data':{'a':1},'message':'m'}");
    ck_assert_int_eq(rv_tool_result_success(NULL, NULL, &out, NULL), 0);
    assert_json(out, "{'status':'success'}");
    ck_assert_int_eq(rv_tool_result_success(list, NULL, &out, NULL), 0); /* W35 */
    assert_json(out, "{'status':'success','data':{'value':[1]}}");
    json_object_put(data);
    json_object_put(list);
}
END_TEST

/* Proves 6.4/failure: A failure has status error and an error, no data; without a message of its own it takes the
 * error's */
START_TEST(failure_takes_its_message_from_the_error_by_default)
{
    json_object *error = NULL, *out = NULL;

    ck_assert_int_eq(rv_tool_error_details("T", RV_STR_LIT("why"), NULL, true, &error, NULL), 0);
    ck_assert_int_eq(rv_tool_result_failure(error, NULL, &out, NULL), 0);
    assert_json(out, "{'status':'error','error':{'error_type':'T','message':'why','recoverable':true},"
                     "'message':'why'}");
    ck_assert_int_eq(rv_tool_result_failure(error, "other", &out, NULL), 0);
    assert_json(out, "{'status':'error','error':{'error_type':'T','message':'why','recoverable':true},"
                     "'message':'other'}");
    json_object_put(error);
}
END_TEST

/* Proves 6.4/failure */
START_TEST(failure_needs_error_details)
{
    static const char *const bad[] = {"null",
                                      "'text'",
                                      "{}",
                                      "{'error_type':'T','message':'m'}",
                                      "{'error_type':'','message':'m','recoverable':true}",
                                      "{'error_type':'T','message':1,'recoverable':true}",
                                      "{'error_type':'T','message':'m','recoverable':true,'details':[]}"};

    for (size_t i = 0; i < RV_COUNT(bad); i++) {
        json_object *error = rv_kit_json(bad[i]), *out = NULL;
        ck_assert_msg(rv_tool_result_failure(error, NULL, &out, NULL) == RV_E_INVALID, "%s", bad[i]);
        ck_assert_ptr_null(out);
        json_object_put(error);
    }
}
END_TEST

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

/* Proves 6.4/details: Error details are as given; details may be absent */
START_TEST(error_details_are_as_given)
{
    json_object *details = rv_kit_json("{'k':[1]}"), *out = NULL;

    ck_assert_int_eq(rv_tool_error_details("T", RV_STR_LIT("m"), NULL, false, &out, NULL), 0);
    assert_json(out, "{'error_type':'T','message':'m','recoverable':false}");
    ck_assert_int_eq(rv_tool_error_details("T", RV_STR_LIT("m"), details, true, &out, NULL), 0);
    assert_json(out, "{'error_type':'T','message':'m','details':{'k':[1]},'recoverable':true}");
    json_object_put(details);
}
END_TEST

/* Proves 6.4/native: An engine error gives its kind as type, its texts as message and the whole chain as
 * details.traceback
 * Proves 6.3/null */
START_TEST(native_error_gives_type_text_and_traceback)
{
    static const struct {
        int code;
        const char *type;
    } types[] = {
        {RV_E_NOT_FOUND, "NotFoundError"}, {RV_E_DENIED, "AccessDenied"},      {RV_E_TIMEOUT, "TimeoutError"},
        {RV_E_INVALID, "ValidationError"}, {RV_E_PARSE, "ValidationError"},    {RV_E_TOOL, "ExecutionError"},
        {RV_E_PLUGIN, "ExecutionError"},   {RV_E_CANCELLED, "ExecutionError"}, {RV_E_IO, "ExecutionError"},
    };

    for (size_t i = 0; i < RV_COUNT(types); i++) {
        json_object *out = NULL;
        const char *type = NULL;
        rv_err *native = NULL;
        RV_FAIL(&native, types[i].code, "why");
        ck_assert_int_eq(rv_tool_error_from(native, false, &out, NULL), 0);
        ck_assert(rv_json_get_text(out, "error_type", &type));
        ck_assert_str_eq(type, types[i].type);
        json_object_put(out);
        rv_err_free(native);
    }
}
END_TEST

/* Proves 6.4/native */
START_TEST(native_error_keeps_the_whole_chain)
{
    struct rv_src src = {"a.yaml", 3, 7};
    json_object *out = NULL;
    rv_err *native = NULL;

    RV_FAIL_AT(&native, &src, RV_E_NOT_FOUND, "no such file");
    RV_WRAP(&native, RV_E_TOOL, "read it");
    ck_assert_int_eq(rv_tool_error_from(native, true, &out, NULL), 0);
    assert_json(out, "{'error_type':'ExecutionError','message':'read it: no such file','details':{'traceback':"
                     "'read it [tool_error]\\nno such file [not_found] (a.yaml:3:7)\\n'},'recoverable':true}");
    rv_err_free(native);
}
END_TEST

/* Proves 6.4/not-found: A missing entity is a NotFoundError that names entity and id and is not recoverable */
START_TEST(not_found_names_entity_and_id)
{
    json_object *out = NULL;

    ck_assert_int_eq(rv_tool_error_not_found("file", "a.txt", &out, NULL), 0);
    assert_json(out,
                "{'error_type':'NotFoundError','message':'file \\u0022a.txt\\u0022 not found','recoverable':false}");
}
END_TEST

TCase *result_case(void)
{
    TCase *tc = tcase_create("result");

    tcase_add_test(tc, success_has_status_data_and_message);
    tcase_add_test(tc, failure_takes_its_message_from_the_error_by_default);
    tcase_add_test(tc, failure_needs_error_details);
    tcase_add_loop_test(tc, validation_says_which_rule_a_result_breaks, 0, (int)RV_COUNT(checked));
    tcase_add_test(tc, error_details_are_as_given);
    tcase_add_test(tc, native_error_gives_type_text_and_traceback);
    tcase_add_test(tc, native_error_keeps_the_whole_chain);
    tcase_add_test(tc, not_found_names_entity_and_id);
    return tc;
}
