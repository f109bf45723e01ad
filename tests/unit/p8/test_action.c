/* action: the marker that it gives, and what it refuses (remlight 7). */
#include "tests/unit/p8/room.h"

#include <string.h>

#define MARK(type) "{\"_action_event\":true,\"action_type\":\"" type "\",\"status\":\"success\""

static const struct {
    const char *name, *args, *want;
} good[] = {
    {"observation_without_payload", "{\"type\": \"observation\"}", MARK("observation") "}"},
    {"observation_with_null", "{\"type\": \"observation\", \"payload\": null}", MARK("observation") "}"},
    {"observation_with_empty_payload", "{\"type\": \"observation\", \"payload\": {}}", MARK("observation") "}"},
    {"observation_with_all_members",
     "{\"type\": \"observation\", \"payload\": {\"confidence\": 0.85, \"sources\": [\"sarah-chen\"], "
     "\"session_name\": \"Apples \\u00e4nd pears\", \"references\": [\"https://x/y\", {\"href\": \"z\"}], \"flags\": "
     "[], "
     "\"risk_level\": \"moderate\", \"risk_score\": 40, \"risk_reasoning\": \"r\", \"recommended_action\": \"a\", "
     "\"extra\": {\"status\": \"mine\"}, \"request_id\": \"q\"}}",
     MARK("observation") ",\"payload\":{\"confidence\":0.85,\"sources\":[\"sarah-chen\"],\"session_name\":\"Apples änd "
                         "pears\",\"references\":[\"https://x/y\",{\"href\":\"z\"}],\"flags\":[],\"risk_level\":"
                         "\"moderate\",\"risk_score\":40,\"risk_reasoning\":\"r\",\"recommended_action\":\"a\","
                         "\"extra\":"
                         "{\"status\":\"mine\"},\"request_id\":\"q\"},\"_metadata_event\":true,\"confidence\":0.85,"
                         "\"sources\":[\"sarah-chen\"],\"session_name\":\"Apples änd pears\",\"references\":"
                         "[\"https://x/"
                         "y\",{\"href\":\"z\"}],\"flags\":[],\"risk_level\":\"moderate\",\"risk_score\":"
                         "40,\"risk_reasoning\":\"r\",\"recommended_action\":\"a\",\"extra\":{\"status\":\"mine\"},"
                         "\"request_id\":\"q\"}"},
    {"observation_passes_over_null_members",
     "{\"type\": \"observation\", \"payload\": {\"confidence\": 1, \"sources\": null}}",
     MARK("observation") ",\"payload\":{\"confidence\":1,\"sources\":null},\"_metadata_event\":true,\"confidence\":1}"},
    {"elicit",
     "{\"type\": \"elicit\", \"payload\": {\"question\": \"Which?\", \"options\": [\"a\", \"b\"], "
     "\"timeout_seconds\": 30}}",
     MARK("elicit") ",\"payload\":{\"question\":\"Which?\",\"options\":[\"a\",\"b\"],\"timeout_seconds\":30}}"},
    {"delegate",
     "{\"type\": \"delegate\", \"payload\": {\"target_agent\": \"general\", \"task\": \"do\", \"context\": {\"k\": "
     "1}}}",
     MARK("delegate") ",\"payload\":{\"target_agent\":\"general\",\"task\":\"do\",\"context\":{\"k\":1}}}"},
    {"complete", "{\"type\": \"complete\"}", MARK("complete") "}"},
    {"escalate", "{\"type\": \"escalate\", \"payload\": {\"reason\": \"not mine\"}}",
     MARK("escalate") ",\"payload\":{\"reason\":\"not mine\"}}"},
    {"another_type", "{\"type\": \"schema_focus\", \"payload\": {\"section\": \"tools\", \"status\": \"x\"}}",
     MARK("schema_focus") ",\"payload\":{\"section\":\"tools\",\"status\":\"x\"}}"},
    {"members_that_nobody_knows_and_none_that_is_required",
     "{\"type\": \"elicit\", \"payload\": {\"options\": [1], \"mood\": \"good\"}}",
     MARK("elicit") ",\"payload\":{\"options\":[1],\"mood\":\"good\"}}"},
    {"members_that_are_called_as_those_of_the_marker",
     "{\"type\": \"observation\", \"payload\": {\"status\": \"failed\", \"action_type\": \"x\", \"payload\": 1, "
     "\"data\": {\"n\": 1}, \"_action_event\": false, \"_metadata_event\": 0, \"sources\": \"a\", \"mood\": 1}}",
     MARK("observation") ",\"payload\":{\"status\":\"failed\",\"action_type\":\"x\",\"payload\":1,\"data\":{\"n\":1},"
                         "\"_action_event\":false,\"_metadata_event\":0,\"sources\":\"a\",\"mood\":1},"
                         "\"_metadata_event\":true,\"sources\":\"a\",\"mood\":1}"},
};

/* Proves p8.7.2: `action` gives a marker that becomes an event; what may go with each type is checked
 * Proves remlight.7: Types of actions and the payloads of each
 * Proves p8-data.14.2: An action gives its marker, and unknown types and members pass */
START_TEST(an_action_gives_its_marker)
{
    struct room r;

    room_begin(&r, NULL);
    ck_assert_msg(room_call(&r, "action", good[_i].args, NULL) == 0, "%s: %s", good[_i].name, rv_err_text(r.err));
    ck_assert_msg(strcmp(rv_buf_cstr(&r.reply), good[_i].want) == 0, "%s: %s", good[_i].name, rv_buf_cstr(&r.reply));
    room_end(&r);
}
END_TEST

#define OBSERVATION(payload) "{\"type\": \"observation\", \"payload\": {" payload "}}"
#define ELICIT(payload)      "{\"type\": \"elicit\", \"payload\": {" payload "}}"
#define DELEGATE(payload)    "{\"type\": \"delegate\", \"payload\": {" payload "}}"

static const struct {
    const char *args, *says;
} bad[] = {
    {"{}", "type is missing"},
    {"{\"type\": \"\"}", "type is missing"},
    {"{\"type\": 7}", "type is missing"},
    {"[]", "not a JSON object"},
    {"{\"type\": \"observation\", \"payload\": []}", "payload has to be an object"},
    {"{\"type\": \"other\", \"payload\": \"x\"}", "payload has to be an object"},
    {OBSERVATION("\"confidence\": 1.01"), "confidence has to be a number from 0 to 1"},
    {OBSERVATION("\"confidence\": -0.5"), "confidence has to be a number from 0 to 1"},
    {OBSERVATION("\"confidence\": \"high\""), "confidence has to be a number from 0 to 1"},
    {OBSERVATION("\"confidence\": true"), "confidence has to be a number from 0 to 1"},
    {OBSERVATION("\"session_name\": \"\""), "session_name has to be a string of 1 to 120 characters in one line"},
    {OBSERVATION("\"session_name\": \"  \""), "session_name has to be a string of 1 to 120 characters"},
    {OBSERVATION("\"session_name\": \"two\\nlines\""), "session_name has to be a string of 1 to 120 characters"},
    {OBSERVATION("\"risk_level\": \"medium\""), "risk_level has to be one of low, moderate, high, critical"},
    {OBSERVATION("\"risk_score\": 101"), "risk_score has to be an integer from 0 to 100"},
    {OBSERVATION("\"risk_score\": 5.5"), "risk_score has to be an integer from 0 to 100"},
    {OBSERVATION("\"risk_score\": -1"), "risk_score has to be an integer from 0 to 100"},
    {"{\"type\": \"patch_schema\", \"payload\": {\"patches\": {}}}", "patches has to be a list of objects"},
    {"{\"type\": \"patch_schema\", \"payload\": {\"patches\": [1]}}", "patches has to be a list of objects"},
    {"{\"type\": \"schema_focus\", \"payload\": {\"section\": \"all\"}}",
     "section has to be one of tools, system_prompt, properties, metadata"},
    {ELICIT("\"question\": \"q\", \"timeout_seconds\": 0"), "timeout_seconds has to be a number above 0"},
};

/* Proves p8.7.2 */
START_TEST(an_action_that_breaks_a_rule_is_told_which_and_what_would_be_right)
{
    struct room r;

    room_begin(&r, NULL);
    ck_assert_int_eq(room_call(&r, "action", bad[_i].args, NULL), RV_E_TOOL);
    ck_assert_msg(strstr(rv_err_text(r.err), bad[_i].says) != NULL, "%s: %s", bad[_i].args, rv_err_text(r.err));
    ck_assert_str_eq(rv_plugin_error_type(r.err), "ValidationError");
    room_end(&r);
}
END_TEST

static void observe_name(struct room *r, size_t n, const char *letter)
{
    RV_AUTO(rv_buf_fini) rv_buf args = RV_BUF_INIT(4096);

    rv_buf_puts(&args, "{\"type\": \"observation\", \"payload\": {\"session_name\": \"");
    for (size_t i = 0; i < n; i++)
        rv_buf_puts(&args, letter);
    rv_buf_puts(&args, "\"}}");
    ck_assert_int_eq(room_call(r, "action", rv_buf_cstr(&args), NULL), n <= 120 ? 0 : RV_E_TOOL);
}

/* Proves remlight.7 */
START_TEST(a_session_name_is_counted_in_characters)
{
    struct room r;

    room_begin(&r, NULL);
    observe_name(&r, 120, "x");
    observe_name(&r, 121, "x");
    observe_name(&r, 120, "ä");
    observe_name(&r, 121, "ä");
    room_end(&r);
}
END_TEST

START_TEST(the_tool_declares_what_it_is)
{
    struct rv_catalog catalog;
    const struct rv_tool_info *tool;
    struct room r;

    room_begin(&r, NULL);
    catalog = rv_plugins_catalog(r.plugins);
    tool = catalog.tool(catalog.self, RV_STR_LIT("action"));
    ck_assert_ptr_nonnull(tool);
    ck_assert_int_eq(rv_tool_risk(tool), RV_RISK_READ_ONLY);
    ck_assert_int_eq(rv_tool_effect(tool), RV_EFFECT_SAFE);
    ck_assert_ptr_nonnull(tool->input);
    room_end(&r);
}
END_TEST

TCase *action_case(void)
{
    TCase *tc = tcase_create("action");

    tcase_add_loop_test(tc, an_action_gives_its_marker, 0, RV_COUNT(good));
    tcase_add_loop_test(tc, an_action_that_breaks_a_rule_is_told_which_and_what_would_be_right, 0, RV_COUNT(bad));
    tcase_add_test(tc, a_session_name_is_counted_in_characters);
    tcase_add_test(tc, the_tool_declares_what_it_is);
    return tc;
}
