/* Loading: every fault that shows before a call, and that a failed load leaves nothing behind. */
#include "tests/unit/plugin/suites.h"

#include <signal.h>
#include <string.h>

const struct load_fault load_faults[] = {
    {"too_old", RV_E_VERSION, "built for capability ABI 0"},
    {"too_new", RV_E_VERSION, "it is too new"},
    {"too_short", RV_E_VERSION, "descriptor is 16 bytes long"},
    {"wrong_symbol", RV_E_PLUGIN, "no function rv_capability()"},
    {"null_descriptor", RV_E_PLUGIN, "gave no descriptor"},
    {"not_elf", RV_E_PLUGIN, "not a capability that can be loaded"},
    {"no_name", RV_E_PLUGIN, "calls itself \"\""},
    {"bad_name", RV_E_PLUGIN, "calls itself \"Bad Name\""},
    {"other_name", RV_E_PLUGIN, "calls itself \"somebody_else\""},
    {"bad_version", RV_E_PLUGIN, "version is not UTF-8"},
    {"bad_config_schema", RV_E_PLUGIN, "config_schema is not a schema"},
    {"fails_to_open", RV_E_PLUGIN, "failed to open: no index below \"tests\""},
    {"fails_to_open_silently", RV_E_PLUGIN, "does not say why"},
    {"fills_the_error", RV_E_PLUGIN, "failed to open: ????"},
    {"needs_config", RV_E_INVALID, "root"},
    {"tiny_entries", RV_E_VERSION, "entries are said to be 8 bytes long"},
    {"huge_entries", RV_E_VERSION, "entries are said to be 1048576 bytes long"},
    {"odd_entries", RV_E_VERSION, "entries are said to be 33 bytes long"},
    {"no_entries", RV_E_PLUGIN, "no list of entries"},
    {"endless_entries", RV_E_PLUGIN, "no end within 1024"},
    {"bad_kind", RV_E_PLUGIN, "entry 0: there is no kind 99"},
    {"negative_kind", RV_E_PLUGIN, "there is no kind -1"},
    {"no_entry_name", RV_E_PLUGIN, "\"\" is not a name of a tool"},
    {"bad_entry_name", RV_E_PLUGIN, "\"Bad.Name\" is not a name of a tool"},
    {"no_spec", RV_E_PLUGIN, "specification is missing"},
    {"garbage_spec", RV_E_PLUGIN, "specification is not JSON"},
    {"list_spec", RV_E_PLUGIN, "specification is not an object but array"},
    {"unknown_key", RV_E_PLUGIN, "did you mean \"description\"?"},
    {"bad_risk", RV_E_PLUGIN, "\"harmless\""},
    {"bad_timeout", RV_E_PLUGIN, "\"timeout_ms\" is not an integer"},
    {"bad_schema", RV_E_PLUGIN, "\"input_schema\" is not a schema"},
    {"no_function", RV_E_PLUGIN, "tool \"entry\" has no function"},
    {"prompt_with_function", RV_E_PLUGIN, "prompts have none"},
    {"prompt_without_text", RV_E_PLUGIN, "has no \"text\""},
    {"bad_template", RV_E_PLUGIN, "its text is not a template"},
    {"bad_sees", RV_E_PLUGIN, "not a string but integer"},
    {"unknown_service", RV_E_PLUGIN, "did you mean \"http.get\"?"},
    {"bad_services", RV_E_PLUGIN, "\"services\" is not a list"},
    {"unsafe_service", RV_E_PLUGIN, "\"http.request\" is non_idempotent, and calls of this tool are repeated as safe"},
    {"unsafe_hook_service", RV_E_PLUGIN, "calls of this hook are repeated as idempotent ones"},
    {"publishing_subscriber", RV_E_PLUGIN, "a subscriber cannot publish events"},
    {"hasty_asker", RV_E_PLUGIN, "\"blocking\": false rules out"},
    {"duplicate", RV_E_PLUGIN, "two entries for tool \"entry\""},
    {"probe_of_nothing", RV_E_PLUGIN, "it has a probe \"entry\" but no tool of that name"},
    {"two_probes", RV_E_PLUGIN, "two entries for probe \"entry\""},
    {"bad_probe_spec", RV_E_PLUGIN, "unknown key \"sees\""},
    {"no_provider_function", RV_E_PLUGIN, "provider \"entry\" has no function"},
    {"two_providers", RV_E_PLUGIN, "two entries for provider \"entry\""},
    {"bad_provider_attachments", RV_E_PLUGIN, "\"attachments\" must be true or false, not integer"},
    {"bad_provider_spec", RV_E_PLUGIN, "unknown key \"risk\""},
    {"agent_with_function", RV_E_PLUGIN, "agent \"entry\" has a function; agents have none"},
    {"no_agent", RV_E_PLUGIN, "agent \"entry\": its document is missing"},
    {"broken_agent", RV_E_PLUGIN, "agent \"entry\": its document, line 3, column"},
    {"misspelt_agent", RV_E_PLUGIN, "agent \"entry\": its document, line 3, column 8: "},
    {"renamed_agent", RV_E_PLUGIN, "its document names the agent \"other\""},
    {"bytes_agent", RV_E_PLUGIN, "its document is not UTF-8"},
    {"two_agents", RV_E_PLUGIN, "two entries for agent \"entry\""},
    {"heloo", RV_E_NOT_FOUND, "did you mean \"hello\"?"},
    {"nothing_like_it", RV_E_NOT_FOUND, HOSTILE_DIR},
    {"Not-A-Name", RV_E_INVALID, "not a name of a capability"},
    {"./plugins/absent.so", RV_E_NOT_FOUND, "no file \"./plugins/absent.so\""},
};

const size_t n_load_faults = RV_COUNT(load_faults);

/* Proves 8.1/version: Every structure across the border states its size and version, which are checked before
 * anything else
 * Proves 6.3/register: A tool needs a name and a function; a capability whose tool lacks one is refused
 * Proves 6.3/definition: The schemas of a tool are compiled when its capability is loaded; a bad schema is refused */
START_TEST(a_faulty_plugin_is_refused_and_the_process_goes_on)
{
    rv_plugins *p = new_set(NULL);
    rv_err *err = NULL;
    rv_buf out = RV_BUF_INIT(4096);
    size_t n = 0;

    ck_assert_int_eq(load_named(p, load_faults[_i].name, NULL, &err), load_faults[_i].rc);
    ck_assert_int_eq(rv_err_code(err), load_faults[_i].rc);
    ck_assert_msg(strstr(error_text(err), load_faults[_i].says) != NULL, "\"%s\" is not in: %s", load_faults[_i].says,
                  error_text(err));
    ck_assert_ptr_nonnull(strstr(error_text(err), load_faults[_i].name));
    ck_assert_ptr_nonnull(strstr(error_text(err), "qa.yaml:3:5"));
    rv_err_free(err);

    rv_plugins_names(p).list(p, RV_NAME_TOOL, &n);
    ck_assert_uint_eq(n, 0); /* nothing of it remains */
    must_load(p, "good");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "nothing", "{}", &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{}");
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

/* The process is the host's. */
START_TEST(loading_changes_no_signal_of_the_process)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct sigaction before[RV_COUNT(numbers)], behind;
    rv_plugins *p = new_set(NULL);

    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        ck_assert_int_eq(sigaction(numbers[i], NULL, &before[i]), 0);
    must_load(p, "hello");
    for (size_t i = 0; i < RV_COUNT(numbers); i++) {
        ck_assert_int_eq(sigaction(numbers[i], NULL, &behind), 0);
        ck_assert(behind.sa_handler == before[i].sa_handler);
    }
    rv_plugins_free(p);
}
END_TEST

/* Proves 11.5: No abort on plugin answers: every hostile plugin ends in an error and a usable process */
START_TEST(all_faulty_plugins_one_after_another_leave_the_good_ones_usable)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);

    must_load(p, "answers");
    for (size_t i = 0; i < RV_COUNT(load_faults); i++)
        ck_assert_int_eq(load_named(p, load_faults[i].name, NULL, NULL), load_faults[i].rc);
    must_load(p, "hello");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "good", "{}", &out, NULL), 0);
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "greet", "{\"name\": \"x\"}", &out, NULL), 0);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

/* Proves 6.3: A tool name that another capability has is refused; nothing is replaced silently */
START_TEST(a_tool_name_belongs_to_one_capability)
{
    rv_plugins *p = new_set(NULL);
    rv_err *err = NULL;
    rv_buf out = RV_BUF_INIT(4096);

    must_load(p, "hello");
    ck_assert_int_eq(load_named(p, "same_tool", NULL, &err), RV_E_EXISTS);
    ck_assert_ptr_nonnull(strstr(error_text(err), "tool \"greet\" is in capability \"hello\" already"));
    rv_err_free(err);
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "greet", "{\"name\": \"x\"}", &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"text\":\"Hello, x!\"}");
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_capability_is_loaded_once)
{
    rv_plugins *p = new_set(NULL);

    must_load(p, "good");
    ck_assert_int_eq(load_named(p, "good", NULL, NULL), RV_E_EXISTS);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_path_is_taken_as_it_is)
{
    rv_plugins *p = new_set(NULL);

    must_load(p, HOSTILE_DIR "/good.so");
    rv_plugins_free(p);
}
END_TEST

static const struct {
    const char *name, *config;
    int rc;
    const char *says; /* in the error, or the configuration that open received */
} configs[] = {
    {"needs_config", "{\"root\": \"docs\"}", 0, "{\"root\":\"docs\",\"n\":5}"},
    {"needs_config", "{\"root\": \"docs\", \"n\": 1}", 0, "{\"root\":\"docs\",\"n\":1}"},
    {"needs_config", "{\"root\": 7}", RV_E_INVALID, "/root"},
    {"needs_config", "{\"root\": \"x\", \"other\": 1}", RV_E_INVALID, "other"},
    {"needs_config", "[]", RV_E_INVALID, "not a map but array"},
    {"good", "{}", 0, "{}"},
    {"good", "{\"a\": 1}", RV_E_INVALID, "takes no configuration"},
};

START_TEST(configuration_is_checked_against_the_schema)
{
    rv_plugins *p = new_set(NULL);
    rv_err *err = NULL;
    rv_buf out = RV_BUF_INIT(4096);

    ck_assert_int_eq(load_named(p, configs[_i].name, configs[_i].config, &err), configs[_i].rc);
    if (configs[_i].rc == 0) {
        ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "nothing", "{}", &out, NULL), 0);
        ck_assert_str_eq(rv_buf_cstr(&out), configs[_i].says);
    } else {
        ck_assert_msg(strstr(error_text(err), configs[_i].says) != NULL, "%s", error_text(err));
    }
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

/* Proves 8.1/unresolved: A capability that cannot be loaded, and a name that no capability has, are errors at load
 * with their place
 * Proves 7.1/build */
START_TEST(load_all_makes_each_failure_a_finding_at_its_place)
{
    struct rv_capability_config list[] = {
        {.name = "too_old", .src = {"qa.yaml", 2, 16}},
        {.name = "good", .src = {"qa.yaml", 2, 25}},
        {.name = "absent", .src = {"qa.yaml", 2, 31}},
    };
    const struct rv_pipeline pipeline = {.capabilities = list, .n_capabilities = RV_COUNT(list)};
    rv_findings *findings = rv_findings_new();
    rv_plugins *p = new_set(NULL);
    size_t n = 0;

    ck_assert_int_eq(rv_plugins_load_all(p, &pipeline, findings, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(findings), 2);
    ck_assert_int_eq(rv_findings_at(findings, 0).src.col, 16);
    ck_assert_int_eq(rv_findings_at(findings, 1).src.col, 31);
    ck_assert_ptr_nonnull(strstr(rv_findings_at(findings, 1).text, "absent"));
    rv_plugins_names(p).list(p, RV_NAME_TOOL, &n);
    ck_assert_uint_eq(n, 1);
    rv_plugins_free(p);
    rv_findings_free(findings);
}
END_TEST

Suite *load_suite(void)
{
    Suite *s = suite_create("plugin load");
    TCase *tc = tcase_create("load");

    tcase_add_loop_test(tc, a_faulty_plugin_is_refused_and_the_process_goes_on, 0, RV_COUNT(load_faults));
    tcase_add_test(tc, all_faulty_plugins_one_after_another_leave_the_good_ones_usable);
    tcase_add_test(tc, loading_changes_no_signal_of_the_process);
    tcase_add_test(tc, a_tool_name_belongs_to_one_capability);
    tcase_add_test(tc, a_capability_is_loaded_once);
    tcase_add_test(tc, a_path_is_taken_as_it_is);
    tcase_add_loop_test(tc, configuration_is_checked_against_the_schema, 0, RV_COUNT(configs));
    tcase_add_test(tc, load_all_makes_each_failure_a_finding_at_its_place);
    suite_add_tcase(s, tc);
    return s;
}
