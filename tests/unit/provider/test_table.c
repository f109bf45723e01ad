/* What is known of providers and models, as data. */
#include <string.h>

#include "coreengine/model/provider/provider_internal.h"
#include "tests/unit/provider/suites.h"

START_TEST(providers_are_sorted_and_found_by_name)
{
    size_t n;
    const struct rv_provider_info *list = rv_provider_list(&n);

    ck_assert_uint_ge(n, 14);
    for (size_t i = 0; i < n; i++) {
        ck_assert(i == 0 || strcmp(list[i - 1].name, list[i].name) < 0);
        ck_assert_ptr_eq(rv_provider_find(rv_str_of(list[i].name)), &list[i]);
        ck_assert_ptr_nonnull(list[i].description);
        ck_assert(list[i].base_url || list[i].base_url_env);
        ck_assert(!list[i].needs_key || list[i].key_env);
        ck_assert(list[i].wire < RV_N_WIRES);
    }
    ck_assert_ptr_null(rv_provider_find(RV_STR_LIT("open")));
    ck_assert_ptr_null(rv_provider_find(RV_STR_LIT("OpenAI")));
    ck_assert_ptr_null(rv_provider_find(RV_STR_LIT("")));
}
END_TEST

START_TEST(a_dot_makes_it_a_capabilitys)
{
    ck_assert(rv_provider_is_capability("hello.echo"));
    ck_assert(!rv_provider_is_capability("openai"));
    ck_assert(!rv_provider_is_capability(NULL));
}
END_TEST

#define OLD  RV_QUIRK_OLD_MAX_TOKENS
#define DEV  RV_QUIRK_DEVELOPER_ROLE
#define SAMP RV_QUIRK_NO_SAMPLING
static const struct {
    const char *provider, *model;
    bool at_home;
    unsigned before, after;
} quirk_cases[] = {
    {"openai", "gpt-4.1-mini", true, 0, 0},
    {"openai", "gpt-5", true, 0, SAMP | DEV},
    {"openai", "gpt-5-mini", true, OLD, SAMP | DEV},
    {"openai", "gpt-5.1", true, 0, SAMP | DEV},
    {"openai", "gpt-5-chat-latest", true, 0, 0},
    {"openai", "gpt-50", true, 0, 0},
    {"openai", "o1", true, 0, SAMP | DEV},
    {"openai", "o1-mini", true, 0,
     SAMP | RV_QUIRK_NO_TOOLS | RV_QUIRK_NO_NATIVE_OUTPUT | RV_QUIRK_NO_IMAGES | RV_QUIRK_NO_FILES},
    {"openai", "o3-mini", true, 0, SAMP | DEV},
    {"openai", "o4-mini-2025-04-16", true, 0, SAMP | DEV},
    {"openai", "o3x", true, 0, 0},
    {"openai", "o3", false, OLD, SAMP},
    {"azure", "o3", true, 0, SAMP | DEV},
    {"openrouter", "openai/o3", true, OLD, SAMP},
    {"openrouter", "mistralai/o3-like/mixtral", true, OLD, OLD},
    {"anthropic", "o3", true, 0, 0},
};

START_TEST(models_that_reason_refuse_sampling)
{
    unsigned quirks = quirk_cases[_i].before;

    provider_model_quirks(rv_provider_find(rv_str_of(quirk_cases[_i].provider)), quirk_cases[_i].model,
                          quirk_cases[_i].at_home, &quirks);
    ck_assert_msg(quirks == quirk_cases[_i].after, "%s: %#x", quirk_cases[_i].model, quirks);
}
END_TEST

START_TEST(a_provider_takes_what_its_wire_has_and_its_quirks_leave)
{
    static const struct {
        const char *provider;
        unsigned takes;
    } rows[] = {{"anthropic", RV_WIRE_IMAGE_DATA | RV_WIRE_IMAGE_URL | RV_WIRE_FILE_DATA | RV_WIRE_FILE_URL},
                {"openai", RV_WIRE_IMAGE_DATA | RV_WIRE_IMAGE_URL | RV_WIRE_FILE_DATA},
                {"groq", RV_WIRE_IMAGE_DATA | RV_WIRE_IMAGE_URL},
                {"ollama", RV_WIRE_IMAGE_DATA},
                {"deepseek", 0}};

    for (size_t i = 0; i < RV_COUNT(rows); i++)
        ck_assert_uint_eq(rv_provider_takes(rv_provider_find(rv_str_of(rows[i].provider))), rows[i].takes);
}
END_TEST

TCase *table_case(void)
{
    TCase *tc = tcase_create("table");

    tcase_add_test(tc, providers_are_sorted_and_found_by_name);
    tcase_add_test(tc, a_dot_makes_it_a_capabilitys);
    tcase_add_test(tc, a_provider_takes_what_its_wire_has_and_its_quirks_leave);
    tcase_add_loop_test(tc, models_that_reason_refuse_sampling, 0, (int)RV_COUNT(quirk_cases));
    return tc;
}
