/* Further tools of p8 that ask the engine: agents that are saved, files that are read. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/p8/data.h"

#define POET "name: poet\\ndescription: You write verse.\\n# a comment\\n"
#define SAVED(version, created)                                                                                        \
    "{\"status\":\"success\",\"_action_event\":true,\"action_type\":\"agent_saved\",\"payload\":{\"name\":\"poet\","   \
    "\"version\":\"" version "\",\"created\":" created "}}"

/* Proves remlight.6/save_agent: An agent is saved for the user who asks, and an agent of others is not changed */
START_TEST(an_agent_is_saved_for_its_user)
{
    struct data d;

    data_begin(&d, _i);
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\"}", SAVED("1.0.0", "true"));
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\"}", SAVED("1.0.0", "false")); /* the call again */
    char *rows = data_find(&d, NULL, "ada", "schemas");
    ck_assert_msg(strstr(rows, "\"user_id\":\"ada\",\"name\":\"poet\",\"kind\":\"agent\""), "%s", rows);
    free(rows);
    data_has(
        &d, "save_agent", "{\"schema_yaml\": \"" POET "version: '2'\"}",
        "\"error\":\"you have an agent \\\"poet\\\" already: choose another name, or set \\\"overwrite\\\" to replace "
        "it\",\"code\":\"conflict\",\"error_type\":\"ExistsError\",\"name\":null,\"data\":{\"_action_event\":true,"
        "\"action_type\":\"agent_save_error\",\"payload\":{\"error\":");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "version: '2'\", \"overwrite\": true}", SAVED("2", "false"));
    data_has(
        &d, "save_agent",
        "{\"schema_yaml\": \"{description: You sing.}\", \"name\": \"bard\", \"tags\": [\"art\"], \"description\": "
        "\"sings\"}",
        "\"payload\":{\"name\":\"bard\",");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\", \"name\": \"lyricist\"}", "\"name\":\"lyricist\",");
    rows = data_find(&d, NULL, "ada", "schemas");
    ck_assert_msg(strstr(rows, "\"description\":\"sings\"") && strstr(rows, "\"tags\":[\"art\"]"), "%s", rows);
    free(rows);
    d.user = "bob";
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\"}", SAVED("1.0.0", "true"));
    d.user = "ada";
    rows = data_find(&d, NULL, "ada", "schemas");
    ck_assert_msg(strstr(rows, "\"version\":\"2\""), "%s", rows); /* Bob's own one is another */
    free(rows);
    data_agent(&d, "{name: clerk, description: all}");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"{name: clerk, description: x}\"}", "is for everybody");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"{name: clerk, description: x}\", \"overwrite\": true}",
             "\"created\":true");
    rows = data_find(&d, NULL, "bob", "schemas");
    ck_assert_msg(strstr(rows, "\"content\":\"all\""), "%s", rows);
    free(rows);
    d.app.scope.tenant = "other";
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\"}", SAVED("1.0.0", "true"));
    data_end(&d);
}
END_TEST

START_TEST(an_agent_that_cannot_be_saved_is_an_action_too)
{
    struct data d;

    data_begin(&d, _i);
    data_has(&d, "save_agent", "{}",
             "{\"status\":\"success\",\"_action_event\":true,\"action_type\":\"trigger_save\"}");
    data_has(&d, "save_agent", "{\"name\": \"poet\"}", "\"trigger_save\",\"payload\":{\"name\":\"poet\"}}");
    ck_assert_int_eq(d.n_asked, 0);
    data_has(&d, "save_agent", "{\"schema_yaml\": \"description: x\"}", "name is required");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"[1]\"}", "is not a map of keys");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"{\"}", "\"code\":\"bad_arguments\"");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"name: p\\ntools: 7\"}", "agent_save_error");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\", \"name\": \"two words\"}",
             "\"code\":\"bad_arguments\"");
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\", \"overwrite\": 1}",
             "overwrite has to be true or false");
    d.user = "";
    data_has(&d, "save_agent", "{\"schema_yaml\": \"" POET "\"}", "user_id is required");
    char *rows = data_find(&d, NULL, NULL, "schemas");
    ck_assert_str_eq(rows, "");
    free(rows);
    data_end(&d);
}
END_TEST

TCase *tools_case(void)
{
    TCase *tc = tcase_create("tools");

    tcase_add_loop_test(tc, an_agent_is_saved_for_its_user, 0, 2);
    tcase_add_loop_test(tc, an_agent_that_cannot_be_saved_is_an_action_too, 0, 2);
    return tc;
}
