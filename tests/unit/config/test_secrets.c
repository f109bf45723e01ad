/* ${env:NAME} and ${file:path}: put in at load, below models and capabilities only, and never shown. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/config/world.h"

#define SECRET "s3cr3t-value"

static struct loaded load_with_secret(const char *text)
{
    setenv("RV_TEST_SECRET", SECRET, 1);
    setenv("RV_TEST_MODEL", "openai:" SECRET, 1);
    unsetenv("RV_TEST_MISSING");
    return load_text(text, ".");
}

START_TEST(another_indirection_is_a_mistake)
{
    struct loaded l =
        load_with_secret("name: t\ncapabilities: [{name: c, config: {k: \"${evn:HOME}\", o: \"${HOME}\"}}]\n");

    ck_assert_ptr_nonnull(strstr(l.findings, "\"${evn:\" is not a known indirection"));
    ck_assert_ptr_nonnull(strstr(l.findings, "\"${HOME}\" is not a known indirection"));
    ck_assert_ptr_nonnull(strstr(l.findings, "hint: write ${env:NAME} or ${file:path}"));
    loaded_fini(&l);
}
END_TEST

START_TEST(indirections_are_replaced_in_models_and_capabilities_only)
{
    struct loaded l =
        load_with_secret("name: ${env:RV_TEST_SECRET}\n"
                         "models:\n"
                         "  a: {model: \"${env:RV_TEST_MODEL}\", headers: {h: \"Bearer ${env:RV_TEST_SECRET}!\"}}\n"
                         "capabilities: [{name: c, config: {k: \"${env:RV_TEST_SECRET}\", o: \"$other {x}\"}}]\n");
    const char *text = NULL;

    ck_assert_str_eq(l.findings, "");
    ck_assert_str_eq(l.p->name, "${env:RV_TEST_SECRET}");
    ck_assert_str_eq(l.p->models[0].provider, "openai");
    ck_assert_str_eq(l.p->models[0].model, SECRET);
    ck_assert_str_eq(
        json_object_get_string(json_object_object_get(rv_json_get_obj(l.p->models[0].options, "headers"), "h")),
        "Bearer " SECRET "!");
    ck_assert(rv_json_get_text(l.p->capabilities[0].config, "k", &text));
    ck_assert_str_eq(text, SECRET);
    ck_assert(rv_json_get_text(l.p->capabilities[0].config, "o", &text));
    ck_assert_str_eq(text, "$other {x}");
    loaded_fini(&l);
}
END_TEST

START_TEST(inserted_text_is_not_looked_at_again)
{
    struct loaded l;
    const char *text = NULL;

    setenv("RV_TEST_LOOP", "${env:RV_TEST_SECRET}", 1);
    l = load_with_secret("name: x\nmodels: {a: {model: 'p:m', proxy: \"${env:RV_TEST_LOOP}\"}}\n");
    ck_assert(rv_json_get_text(l.p->models[0].options, "proxy", &text));
    ck_assert_str_eq(text, "${env:RV_TEST_SECRET}");
    loaded_fini(&l);
}
END_TEST

START_TEST(files_lose_their_last_line_break)
{
    char *dir = rv_kit_tmpdir();
    char *path = rv_kit_path(dir, "key");
    struct loaded l;
    const char *text = NULL;

    rv_kit_write(path, "abc\n");
    l = load_text("name: x\nmodels: {a: {model: 'p:m', api_key: \"${file:key}\"}}\n", dir);
    ck_assert_str_eq(l.findings, "");
    ck_assert(rv_json_get_text(l.p->models[0].options, "api_key", &text));
    ck_assert_str_eq(text, "abc");
    loaded_fini(&l);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

static const struct {
    const char *text, *want;
} faults[] = {
    {"name: x\nmodels: {a: {model: 'p:m', proxy: \"${env:RV_TEST_MISSING}\"}}\n",
     "t.yaml:2:35: error: the environment variable \"RV_TEST_MISSING\" is not set\n"
     "  hint: set it; a model with \"optional: true\" is left out while it is not set\n"},
    {"name: x\nmodels: {a: \"${env:RV_TEST_MISSING}\"}\n",
     "t.yaml:2:13: error: the environment variable \"RV_TEST_MISSING\" is not set\n"
     "  hint: set it; a model with \"optional: true\" is left out while it is not set\n"},
    {"name: x\nmodels: {a: {model: 'p:m', proxy: \"${env:NO GOOD}\"}}\n",
     "t.yaml:2:35: error: \"NO GOOD\" is not the name of an environment variable\n  hint: write ${env:NAME}\n"},
    {"name: x\nmodels: {a: {model: 'p:m', proxy: \"${env:OPEN\"}}\n", "t.yaml:2:35: error: \"${\" without \"}\"\n"},
    {"name: x\nmodels: {a: {model: 'p:m', proxy: \"${file:nowhere}\"}}\n",
     "t.yaml:2:35: error: ${file:}: cannot open \"nowhere\": No such file or directory\n"
     "  hint: paths start at the folder of the pipeline\n"},
    {"name: x\nmodels: {a: \"${file:nowhere}\"}\n", /* once: a file that is not there names no model, either */
     "t.yaml:2:13: error: ${file:}: cannot open \"nowhere\": No such file or directory\n"
     "  hint: paths start at the folder of the pipeline\n"},
    {"name: x\nmodels: {a: \"${RV_TEST_MODEL}\"}\n",
     "t.yaml:2:13: error: \"${RV_TEST_MODEL}\" is not a known indirection\n  hint: write ${env:RV_TEST_MODEL}\n"},
    {"name: x\nmodels: {a: \"${env:RV_TEST_SECRET}\"}\n", /* not provider:model, but what it is stays hidden */
     "t.yaml:2:13: error: model \"a\": must be provider:model once its ${} is put in\n"
     "  hint: for example \"openai:gpt-4.1-mini\", or \"scripted\"\n"},
    {"name: x\nmodels: {a: {model: 'p:m', temperature: " SECRET "}}\n",
     "t.yaml:2:41: error: model \"a\": temperature must be a number, not string\n"
     "  hint: write a number, without unit or quotes\n"},
};

START_TEST(faults_have_places_and_no_secrets)
{
    struct loaded l = load_with_secret(faults[_i].text);

    ck_assert_str_eq(l.findings, faults[_i].want);
    ck_assert_ptr_null(strstr(l.findings, SECRET));
    loaded_fini(&l);
}
END_TEST

START_TEST(an_optional_role_is_left_out_while_its_variable_is_missing)
{
    struct loaded l = load_with_secret("name: x\n"
                                       "models:\n"
                                       "  a: {model: 'p:m', proxy: \"${env:RV_TEST_MISSING}\", optional: true}\n"
                                       "  b: {model: 'p:m', proxy: \"${env:RV_TEST_SECRET}\", optional: true}\n"
                                       "agents:\n"
                                       "  - {name: s, has_llm: true, model_role: a}\n");

    ck_assert_str_eq(l.findings, ""); /* the stage is no fault of the file */
    ck_assert_uint_eq(l.p->n_models, 1);
    ck_assert_str_eq(l.p->models[0].role, "b");
    ck_assert_ptr_null(rv_pipeline_find_model(l.p, RV_STR_LIT("a")));
    loaded_fini(&l);
}
END_TEST

START_TEST(explaining_shows_no_secret)
{
    struct loaded l = load_with_secret(
        "name: x\n"
        "models:\n"
        "  a: {model: \"${env:RV_TEST_MODEL}\", headers: {h: \"${env:RV_TEST_SECRET}\"}, base_url: http://x,\n"
        "      api_key: literal-" SECRET ", extra_body: {auth_token: literal-" SECRET "}}\n"
        "capabilities: [{name: c, config: {k: \"${env:RV_TEST_SECRET}\", n: 1}}]\n");
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);

    ck_assert_str_eq(l.findings, "");
    rv_pipeline_write_json(l.p, &w);
    ck_assert_ptr_null(strstr(rv_buf_cstr(&b), SECRET));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"provider\":\"[secret]\""));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"base_url\":\"http://x\",\"api_key\":\"[secret]\""));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"config\":{\"k\":\"[secret]\",\"n\":1}"));
    rv_buf_fini(&b);
    loaded_fini(&l);
}
END_TEST

TCase *secrets_case(void)
{
    TCase *tc = tcase_create("secrets");

    tcase_add_test(tc, indirections_are_replaced_in_models_and_capabilities_only);
    tcase_add_test(tc, another_indirection_is_a_mistake);
    tcase_add_test(tc, inserted_text_is_not_looked_at_again);
    tcase_add_test(tc, files_lose_their_last_line_break);
    tcase_add_loop_test(tc, faults_have_places_and_no_secrets, 0, RV_COUNT(faults));
    tcase_add_test(tc, an_optional_role_is_left_out_while_its_variable_is_missing);
    tcase_add_test(tc, explaining_shows_no_secret);
    return tc;
}
