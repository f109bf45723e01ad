/* Any JSON as a tool's answer: what comes out is a valid standard result, normalising it again changes nothing, and its
 * shapes can be made and written. */
#include <stdlib.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/fuzz.h"

static void shape(json_object *raw, json_object *standard)
{
    struct rv_step_result s = {
        .step_id = RV_STR_LIT("s"), .tool = RV_STR_LIT("t"), .parameters = raw, .standard = standard};
    json_object *step = NULL, *found = NULL;
    rv_buf text = RV_BUF_INIT(SIZE_MAX / 2);
    size_t n_dropped = 0;

    require(rv_tool_build_step_result(&s, &step, NULL) == 0);
    require(rv_tool_result_build_data(raw, &found, &n_dropped, NULL) == 0);
    rv_json_write(step, &text);
    rv_json_write(found, &text);
    require(text.rc == 0);
    rv_buf_fini(&text);
    json_object_put(step);
    json_object_put(found);
}

RV_FUZZ_TARGET(tool_result)
{
    json_object *raw = NULL, *standard = NULL, *again = NULL;
    rv_err *err = NULL;

    if (rv_json_parse((rv_str){(const char *)data, size}, NULL, &raw, NULL) < 0)
        return 0;
    RV_IGNORE(rv_tool_result_validate(raw, &err), "any answer will do");
    rv_err_free(err);
    if (rv_tool_result_normalize(raw, &standard, NULL) == 0) {
        require(rv_tool_result_validate(standard, NULL) == 0);
        require(rv_tool_result_normalize(standard, &again, NULL) == 0);
        require(again == standard);
        shape(raw, standard);
    } else {
        require(!json_object_is_type(raw, json_type_object));
    }
    json_object_put(again);
    json_object_put(standard);
    json_object_put(raw);
    return 0;
}
