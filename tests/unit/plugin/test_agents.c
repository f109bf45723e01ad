/* Agents of capabilities: listed with their documents, in whichever process the capability is. */
#include <string.h>

#include "tests/unit/plugin/suites.h"

#define N_HOMES 2 /* in the engine's process, and in one of its own */

static rv_plugins *agents_at(int home)
{
    rv_plugins *p = new_set(NULL);

    must_load(p, "hello");
    if (home)
        must_isolate(p, "agents");
    else
        must_load(p, "agents");
    return p;
}

START_TEST(agents_are_listed_as_they_were_given)
{
    rv_plugins *p = agents_at(_i);
    const char *name = NULL, *capability = NULL;
    rv_str document = {NULL, 0};

    ck_assert(rv_plugins_agent_at(p, 0, &name, &document, &capability));
    ck_assert_str_eq(name, "plain-agent");
    ck_assert_str_eq(capability, "agents");
    ck_assert_str_eq(document.ptr, "type: object\nname: plain-agent\ndescription: |\n  You answer.\n\n  Briefly.\n");
    ck_assert_uint_eq(document.len, strlen(document.ptr));
    ck_assert(rv_plugins_agent_at(p, 1, &name, &document, &capability));
    ck_assert_str_eq(name, "as_json");
    ck_assert(!rv_plugins_agent_at(p, 2, &name, &document, &capability));
    rv_plugins_free(p);
}
END_TEST

START_TEST(entries_beside_agents_are_called_at_their_places)
{
    rv_plugins *p = agents_at(_i);
    rv_buf out = RV_BUF_INIT(4096);
    size_t n = 0;

    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "first", "{}", &out, NULL), 0);
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "last", "{}", &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"tool\": \"first\"}{\"tool\": \"last\"}");
    rv_plugins_names(p).list(p, RV_NAME_PROMPT, &n);
    ck_assert_uint_eq(n, 1);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(inspect_shows_what_each_agent_is)
{
    static const char want[] =
        "[{\"name\":\"plain-agent\",\"description\":\"You answer.\",\"version\":\"1.0.0\",\"structured_output\":false,"
        "\"tools\":[]},"
        "{\"name\":\"as_json\",\"description\":\"Extracts.\",\"version\":\"2.1.0\",\"structured_output\":true,"
        "\"model\":\"openai:gpt-4.1-mini\",\"chained_tool\":\"first\",\"tools\":[\"first\",\"last\"]}]";
    rv_plugins *p = agents_at(_i);
    rv_buf text = RV_BUF_INIT((size_t)1 << 20), agents = RV_BUF_INIT(4096);
    rv_jw w = rv_jw_on(&text);
    json_object *all = NULL;

    rv_plugins_write_json(p, &w);
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&text), NULL, &all, NULL), 0);
    ck_assert_uint_eq(json_object_array_length(rv_json_get_arr(json_object_array_get_idx(all, 0), "agents")), 0);
    rv_json_write(rv_json_get_arr(json_object_array_get_idx(all, 1), "agents"), &agents);
    ck_assert_str_eq(rv_buf_cstr(&agents), want);
    json_object_put(all);
    rv_buf_fini(&agents);
    rv_buf_fini(&text);
    rv_plugins_free(p);
}
END_TEST

START_TEST(an_agent_is_in_one_capability_only)
{
    rv_plugins *p = agents_at(_i);
    const char *name, *capability;
    rv_err *err = NULL;
    rv_str document;

    ck_assert_int_eq(load_named(p, "same_agent", NULL, &err), RV_E_EXISTS);
    ck_assert_msg(strstr(error_text(err), "agent \"plain-agent\" is in capability \"agents\" already") != NULL, "%s",
                  error_text(err));
    ck_assert(!rv_plugins_agent_at(p, 2, &name, &document, &capability)); /* nothing of the refused one stays */
    rv_err_free(err);
    rv_plugins_free(p);
}
END_TEST

Suite *agents_suite(void)
{
    Suite *s = suite_create("plugin agents");
    TCase *tc = tcase_create("agents");

    tcase_add_loop_test(tc, agents_are_listed_as_they_were_given, 0, N_HOMES);
    tcase_add_loop_test(tc, entries_beside_agents_are_called_at_their_places, 0, N_HOMES);
    tcase_add_loop_test(tc, inspect_shows_what_each_agent_is, 0, N_HOMES);
    tcase_add_loop_test(tc, an_agent_is_in_one_capability_only, 0, N_HOMES);
    suite_add_tcase(s, tc);
    return s;
}
