/* What comes out of a bundle is what went in, without a file, and offline without a secret. */
#include "tests/unit/bundle/world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char secrets[] = "name: t\n"
                              "models:\n"
                              "  default: {model: 'openai:gpt', api_key: '${env:RV_OPEN_KEY}'}\n"
                              "  named: '${env:RV_OPEN_MODEL}'\n"
                              "  extra: {model: 'x:y', api_key: '${env:RV_OPEN_EXTRA}', optional: true}\n"
                              "  filed: {model: 'openai:${file:model.txt}', api_key: '${file:key.txt}'}\n"
                              "capabilities: [{name: c, config: {k: '${env:RV_OPEN_KEY}'}}]\n"
                              "agents:\n"
                              "  - {name: a, has_llm: true, model_role: default, prompt_key: ask, default_next: b}\n"
                              "  - {name: b, has_llm: true, model_role: extra}\n"
                              "prompts: {ask: {file: ask.md}}\n"
                              "tests: [{name: one, script: script.yaml, expect: {status: completed}}]\n";

static char *folder_with_files(void)
{
    static const char *const files[][2] = {{"ask.md", "Do {{raw_input}}"},
                                           {"model.txt", "large\n"},
                                           {"key.txt", "s3cr3t"},
                                           {"script.yaml", "models: {a: [{json: {}}]}\n"}};
    char *dir = rv_kit_tmpdir();

    for (size_t i = 0; i < RV_COUNT(files); i++) {
        char *path = rv_kit_path(dir, files[i][0]);
        rv_kit_write(path, files[i][1]);
        free(path);
    }
    setenv("RV_OPEN_KEY", "k1", 1);
    setenv("RV_OPEN_MODEL", "anthropic:small", 1);
    setenv("RV_OPEN_EXTRA", "k2", 1);
    return dir;
}

/* The bundle of the above; its folder and variables are gone afterwards. explained (may be NULL): of the original. */
static char *orphaned(char **explained)
{
    char *dir = folder_with_files(), *text;
    struct world w;

    world_parse(&w, secrets, dir);
    text = world_bundle(&w, NULL);
    if (explained)
        *explained = world_explained(w.pipeline);
    world_fini(&w);
    rv_kit_tmpdir_remove(dir);
    unsetenv("RV_OPEN_KEY");
    unsetenv("RV_OPEN_MODEL");
    unsetenv("RV_OPEN_EXTRA");
    return text;
}

START_TEST(offline_nothing_but_the_bundle_is_needed)
{
    char *want = NULL, *text = orphaned(&want), *got;
    rv_bundle *b = world_open(text, true);
    const struct rv_pipeline *p = rv_bundle_pipeline(b);

    got = world_explained(p);
    ck_assert_str_eq(got, want);
    ck_assert_str_eq(rv_pipeline_find_model(p, RV_STR_LIT("named"))->provider, "anthropic");
    ck_assert_str_eq(rv_pipeline_find_model(p, RV_STR_LIT("named"))->model, "small");
    ck_assert_str_eq(rv_pipeline_find_model(p, RV_STR_LIT("filed"))->model, "large");
    ck_assert_ptr_nonnull(rv_pipeline_find_model(p, RV_STR_LIT("extra")));
    rv_bundle_free(b);
    free(text);
    free(want);
    free(got);
}
END_TEST

START_TEST(prices_are_those_of_the_day_the_bundle_was_made)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "prices.json"), *text;
    static const char pipeline[] =
        "name: t\nbudget: {usd: 1}\nmodels:\n  default: openai:gpt-4.1-mini\n  mine: 'corp:big'\n"
        "agents:\n  - {name: a, has_llm: true, model_role: default, default_next: b}\n"
        "  - {name: b, has_llm: true, model_role: mine}\n";
    struct world w;

    rv_kit_write(path, "{\"models\": {\"corp:*\": {\"input\": 2, \"cached\": 0.5, \"output\": 3}}}");
    setenv("REEVE_PRICES", path, 1);
    world_parse(&w, pipeline, ".");
    text = world_bundle(&w, NULL);
    world_fini(&w);
    ck_assert_ptr_nonnull(strstr(text, "\"mine\":{\"provider\":\"corp\",\"model\":\"big\",\"price\":{\"input\":2000000,"
                                       "\"output\":3000000,\"cached\":500000}}"));
    ck_assert_ptr_nonnull(strstr(text, "\"cached\":100000},\"max_input_tokens\":1047576}"));
    rv_kit_write(path, "{\"models\": {\"corp:*\": {\"input\": 99, \"output\": 99}}}");
    for (int offline = 0; offline < 2; offline++) {
        rv_bundle *b = world_open(text, offline);
        const struct rv_model_config *m = rv_pipeline_find_model(rv_bundle_pipeline(b), RV_STR_LIT("mine"));

        ck_assert(m->has_price && m->price_from_table && m->price.input == 2000000 && m->price.cached == 500000);
        ck_assert_int_eq(m->price.cache_write, RV_UNSET);
        m = rv_pipeline_find_model(rv_bundle_pipeline(b), RV_STR_LIT("default"));
        ck_assert(m->has_price && m->price.output == 1600000 && m->max_input_tokens == 1047576);
        rv_bundle_free(b);
    }
    free(text);
    free(path);
    rv_kit_tmpdir_remove(dir);
    unsetenv("REEVE_PRICES");
}
END_TEST

START_TEST(online_a_missing_secret_is_an_error_that_names_it)
{
    char *text = orphaned(NULL);
    char *said = world_refused(text, false, RV_E_INVALID);

    ck_assert_msg(strstr(said, "p.yaml\": the environment variable \"RV_OPEN_KEY\" is not set"), "%s", said);
    ck_assert_msg(strstr(said, "p.yaml:3:"), "%s", said);
    free(said);
    free(text);
}
END_TEST

START_TEST(online_secrets_are_read_again)
{
    char *dir = folder_with_files(), *text;
    struct world w;
    const char *key = NULL;

    world_parse(&w, secrets, dir);
    text = world_bundle(&w, NULL);
    setenv("RV_OPEN_KEY", "changed", 1);
    setenv("RV_OPEN_MODEL", "openai:another", 1);
    rv_bundle *b = world_open(text, false);
    const struct rv_pipeline *p = rv_bundle_pipeline(b);
    ck_assert(rv_json_get_text(rv_pipeline_find_model(p, RV_STR_LIT("default"))->options, "api_key", &key));
    ck_assert_str_eq(key, "changed");
    ck_assert(rv_json_get_text(rv_pipeline_find_model(p, RV_STR_LIT("filed"))->options, "api_key", &key));
    ck_assert_str_eq(key, "s3cr3t");
    ck_assert(rv_json_get_text(p->capabilities[0].config, "k", &key));
    ck_assert_str_eq(key, "changed");
    ck_assert_str_eq(rv_pipeline_find_model(p, RV_STR_LIT("named"))->model, "small"); /* the run began with it */
    rv_bundle_free(b);
    free(text);
    world_fini(&w);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

static const struct {
    const char *then, *now; /* RV_OPEN_EXTRA */
    bool offline, is_there;
} roles[] = {
    {"x", "x", false, true},   {"x", NULL, true, true},   {"x", "y", true, true},   {NULL, NULL, false, false},
    {NULL, NULL, true, false}, {NULL, "x", false, false}, {NULL, "x", true, false},
};

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

START_TEST(an_optional_role_is_there_if_it_was_there)
{
    char *dir = folder_with_files(), *text;
    struct world w;

    set("RV_OPEN_EXTRA", roles[_i].then);
    world_parse(&w, secrets, dir);
    text = world_bundle(&w, NULL);
    set("RV_OPEN_EXTRA", roles[_i].now);
    rv_bundle *b = world_open(text, roles[_i].offline);
    ck_assert_int_eq(rv_pipeline_find_model(rv_bundle_pipeline(b), RV_STR_LIT("extra")) != NULL, roles[_i].is_there);
    rv_bundle_free(b);
    free(text);
    world_fini(&w);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(online_a_role_that_was_there_needs_its_variable)
{
    char *dir = folder_with_files(), *text, *said;
    struct world w;

    world_parse(&w, secrets, dir);
    text = world_bundle(&w, NULL);
    unsetenv("RV_OPEN_EXTRA");
    said = world_refused(text, false, RV_E_INVALID);
    ck_assert_msg(strstr(said, "RV_OPEN_EXTRA") && strstr(said, "it was set when this was begun"), "%s", said);
    free(said);
    free(text);
    world_fini(&w);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(prompts_come_from_the_bundle_not_from_the_disk)
{
    char *dir = folder_with_files(), *path = rv_kit_path(dir, "ask.md"), *text;
    struct world w;

    world_parse(&w, secrets, dir);
    text = world_bundle(&w, NULL);
    rv_kit_write(path, "changed");
    rv_bundle *b = world_open(text, false);
    rv_str got = rv_template_text(rv_pipeline_find_prompt(rv_bundle_pipeline(b), RV_STR_LIT("ask"))->compiled);
    ck_assert(rv_str_is(got, "Do {{raw_input}}"));
    rv_bundle_free(b);
    free(text);
    free(path);
    world_fini(&w);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* Another process looks for the files below the folder where the pipeline was, whatever the path of that folder was. */
START_TEST(files_are_found_below_the_base)
{
    static const char *const dirs[] = {".", "down"};
    char *dir = rv_kit_tmpdir(), *text;
    struct world w;
    rv_err *err = NULL;

    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_int_eq(mkdir("down", 0700), 0);
    rv_kit_write("ask.md", "Do {{raw_input}}");
    rv_kit_write("down/ask.md", "Do {{raw_input}}");
    world_parse(&w,
                "name: t\nmodels: {default: scripted}\nagents: [{name: a, has_llm: true, model_role: default, "
                "prompt_key: ask}]\n"
                "prompts: {ask: {file: ask.md}}\n",
                dirs[_i]);
    char *base = rv_kit_path(dir, _i == 0 ? "gone" : "gone/down");
    const struct rv_bundle_source from = {.pipeline = w.pipeline, .catalog = &w.catalog, .base = base};
    rv_buf out = RV_BUF_INIT(1 << 20);
    ck_assert_int_eq(rv_bundle_write(&from, &out, NULL, &err), 0);
    text = rv_buf_steal(&out, NULL);
    rv_bundle *b = world_open(text, false);
    rv_str got = rv_template_text(rv_pipeline_find_prompt(rv_bundle_pipeline(b), RV_STR_LIT("ask"))->compiled);
    ck_assert(rv_str_is(got, "Do {{raw_input}}"));
    rv_bundle_free(b);
    free(text);
    free(base);
    world_fini(&w);
    ck_assert_int_eq(chdir("/"), 0);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* graph 8.2: a file that a stage runs keeps its models, too, wherever the pipeline is opened. A bundle of before does
 * not have them: then the environment says again. */
START_TEST(a_file_that_a_stage_runs_keeps_its_models)
{
    static const char *const dirs[] = {".", "down"};
    static const char pipeline[] =
        "name: t\nmodels: {m: 'openai:outer'}\nagents:\n  - {name: a, pipeline: sub/in.yaml}\n";
    static const char in[] = "name: in\nmodels: {m: '${env:RV_OPEN_MODEL}', extra: {model: 'x:y', api_key: "
                             "'${env:RV_OPEN_EXTRA}', optional: true}}\n"
                             "agents: [{name: b, has_llm: true, model_role: m}]\n";
    char *dir = rv_kit_tmpdir(), *text, *models;
    bool is_new = _i < 4;
    struct world w;
    rv_err *err = NULL;
    size_t n = 0;

    ck_assert_int_eq(chdir(dir), 0);
    for (int i = 0; i < 2; i++) {
        char *sub = rv_kit_path(dirs[i], "sub"), *file = rv_kit_path(sub, "in.yaml");
        ck_assert(i == 0 || mkdir(dirs[i], 0700) == 0);
        ck_assert_int_eq(mkdir(sub, 0700), 0);
        rv_kit_write(file, in);
        free(file);
        free(sub);
    }
    setenv("RV_OPEN_MODEL", "anthropic:small", 1);
    unsetenv("RV_OPEN_EXTRA");
    world_parse(&w, pipeline, dirs[_i % 2]);
    char *base = rv_kit_path(dir, _i % 2 == 0 ? "gone" : "gone/down");
    const struct rv_bundle_source from = {
        .pipeline = w.pipeline, .catalog = &w.catalog, .base = _i % 4 < 2 ? base : NULL};
    rv_buf out = RV_BUF_INIT(1 << 20);
    ck_assert_int_eq(rv_bundle_write(&from, &out, NULL, &err), 0);
    text = rv_buf_steal(&out, NULL);
    models = strstr(text, ",\"inner\":{");
    ck_assert_ptr_nonnull(models);
    if (!is_new) { /* as it was written before */
        char *end = strstr(models, "}}}");
        ck_assert_ptr_nonnull(end);
        memmove(models, end + 2, strlen(end + 2) + 1);
    }
    setenv("RV_OPEN_MODEL", "openai:another", 1);
    setenv("RV_OPEN_EXTRA", "k", 1);
    rv_bundle *b = world_open(text, false);
    const struct rv_pipeline *p = rv_bundle_pipeline(b), *inner = rv_pipeline_inner(p, &n)[0];
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(rv_pipeline_find_model(p, RV_STR_LIT("m"))->model, "outer");
    ck_assert_str_eq(rv_pipeline_find_model(inner, RV_STR_LIT("m"))->model, is_new ? "small" : "another");
    ck_assert_int_eq(rv_pipeline_find_model(inner, RV_STR_LIT("extra")) == NULL, is_new);
    rv_bundle_free(b);
    free(text);
    free(base);
    world_fini(&w);
    unsetenv("RV_OPEN_MODEL");
    unsetenv("RV_OPEN_EXTRA");
    ck_assert_int_eq(chdir("/"), 0);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

Suite *open_suite(void)
{
    Suite *suite = suite_create("bundle_open");
    TCase *tc = tcase_create("open");

    tcase_add_loop_test(tc, a_file_that_a_stage_runs_keeps_its_models, 0, 6);
    tcase_add_test(tc, offline_nothing_but_the_bundle_is_needed);
    tcase_add_test(tc, prices_are_those_of_the_day_the_bundle_was_made);
    tcase_add_test(tc, online_a_missing_secret_is_an_error_that_names_it);
    tcase_add_test(tc, online_secrets_are_read_again);
    tcase_add_loop_test(tc, an_optional_role_is_there_if_it_was_there, 0, RV_COUNT(roles));
    tcase_add_test(tc, online_a_role_that_was_there_needs_its_variable);
    tcase_add_test(tc, prompts_come_from_the_bundle_not_from_the_disk);
    tcase_add_loop_test(tc, files_are_found_below_the_base, 0, 2);
    suite_add_tcase(suite, tc);
    return suite;
}
