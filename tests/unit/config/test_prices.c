/* Where prices come from: the pipeline, the user's table, the one that is built in, a run's bundle; in this order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/config/world.h"

static const struct {
    const char *name;
    int64_t input, output, cached, cache_write, window; /* input -2: not known */
} known[] = {
    {"openai:gpt-4.1-mini", 400000, 1600000, 100000, RV_UNSET, 1047576},
    {"openai:gpt-4.1-mini-2025-04-14", 400000, 1600000, 100000, RV_UNSET, 1047576},
    {"openai:gpt-4o-2024-05-13", 5000000, 15000000, RV_UNSET, RV_UNSET, 128000}, /* not that of gpt-4o */
    {"openai:gpt-4o-2024-11-20", 2500000, 10000000, 1250000, RV_UNSET, 128000},
    {"openai:gpt-5-nano", 50000, 400000, 5000, RV_UNSET, 400000},
    {"openai:gpt-5-pro", -2, 0, 0, 0, 0}, /* another model, at another price */
    {"openai:gpt-4.1-mini-tuned", -2, 0, 0, 0, 0},
    {"openai:gpt-4.1-mini-2025-04", -2, 0, 0, 0, 0},
    {"azure:gpt-4.1-mini", -2, 0, 0, 0, 0},
    {"anthropic:claude-sonnet-4-20250514", 3000000, 15000000, 300000, 3750000, 200000},
    {"anthropic:claude-sonnet-4-5-20250929", 3000000, 15000000, 300000, 3750000, 200000},
    {"anthropic:claude-3-5-haiku-latest", 800000, 4000000, 80000, 1000000, 200000},
    {"anthropic:claude-opus-4-5@20251101", 5000000, 25000000, 500000, 6250000, 200000},
    {"anthropic:claude-opus-4-5@", -2, 0, 0, 0, 0},
    {"ollama:llama3.2:1b", 0, 0, RV_UNSET, RV_UNSET, 0},
    {"scripted:any", -2, 0, 0, 0, 0},
};

static void check_price(const struct rv_model_config *m, int64_t input, int64_t output, int64_t cached, int64_t write)
{
    ck_assert(m->has_price);
    ck_assert_int_eq(m->price.input, input);
    ck_assert_int_eq(m->price.output, output);
    ck_assert_int_eq(m->price.cached, cached);
    ck_assert_int_eq(m->price.cache_write, write);
}

/* Proves 12.4/prices: Prices come from the role, the user's table or the one that is built in; with a budget an
 * unknown one is an error */
START_TEST(names_are_found_in_the_table)
{
    char text[128];

    snprintf(text, sizeof text, "name: x\nmodels: {a: '%s'}\n", known[_i].name);
    struct loaded l = load_clean(text);
    const struct rv_model_config *m = &l.p->models[0];
    ck_assert_int_eq(m->max_input_tokens, known[_i].window);
    if (known[_i].input == -2)
        ck_assert(!m->has_price && !m->price_from_table);
    else
        check_price(m, known[_i].input, known[_i].output, known[_i].cached, known[_i].cache_write);
    ck_assert(m->has_price == m->price_from_table);
    loaded_fini(&l);
}
END_TEST

/* Proves 12.4/prices */
START_TEST(a_price_of_the_pipeline_wins_and_is_rounded_to_the_nearest)
{
    struct loaded l = load_clean("name: x\nmodels: {a: {model: 'openai:gpt-4.1', price: {input: 0.0000015, output: "
                                 "0.0000014, cached: 0.57, cache_write: 0}}}\n");

    check_price(&l.p->models[0], 2, 1, 570000, 0);
    ck_assert(!l.p->models[0].price_from_table);
    ck_assert_int_eq(l.p->models[0].max_input_tokens, 1047576);
    loaded_fini(&l);
}
END_TEST

/* --- The user's table --- */

static char *begin_table(const char *text, const char *name)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, name);

    rv_kit_write(path, text);
    setenv("REEVE_PRICES", path, 1);
    free(path);
    return dir;
}

/* As main() has it. */
static void forget_tables(void)
{
    unsetenv("REEVE_PRICES");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
}

START_TEST(a_table_of_the_user_stands_before_the_one_built_in)
{
    char *dir =
        begin_table("{\"as_of\": \"2030\", \"models\": {\n  \"openai:gpt-4.1\": {\"input\": 1, \"output\": 2},\n"
                    "  \"openai:*\": {\"input\": 7, \"output\": 8},\n"
                    "  \"corp:big\": {\"input\": 3, \"output\": 4, \"cached\": 0.5, \"window\": 9}}}\n",
                    "prices.json");
    struct loaded l =
        load_clean("name: x\nmodels: {a: 'openai:gpt-4.1', b: 'openai:o9', c: 'corp:big', d: 'openai:o3'}\n");

    check_price(&l.p->models[0], 1000000, 2000000, RV_UNSET, RV_UNSET);
    ck_assert_int_eq(l.p->models[0].max_input_tokens, 0); /* a row takes the place of the whole row */
    check_price(&l.p->models[1], 7000000, 8000000, RV_UNSET, RV_UNSET);
    check_price(&l.p->models[2], 3000000, 4000000, 500000, RV_UNSET);
    ck_assert_int_eq(l.p->models[2].max_input_tokens, 9);
    check_price(&l.p->models[3], 2000000, 8000000, 500000, RV_UNSET); /* a whole name is nearer than a pattern */
    loaded_fini(&l);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(the_table_may_be_among_the_users_settings)
{
    char *dir = rv_kit_tmpdir(), *sub, *path;

    sub = rv_kit_path(dir, "reeve");
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    path = rv_kit_path(sub, "prices.json");
    rv_kit_write(path, "{\"models\": {\"corp:*\": {\"input\": 1, \"output\": 1}}}");
    setenv("XDG_CONFIG_HOME", dir, 1);
    struct loaded l = load_clean("name: x\nmodels: {a: 'corp:x'}\n");
    check_price(&l.p->models[0], 1000000, 1000000, RV_UNSET, RV_UNSET);
    loaded_fini(&l);
    free(sub);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

static const struct {
    const char *table, *want; /* want: what stands behind the path of the table */
} broken[] = {
    {"{\"models\": {\n  \"corp\": {\"input\": 1}}}\n",
     ":2:3: error: price of \"corp\": the name must be provider:model\n"
     "  hint: for example \"openai:gpt-4.1-mini\", or \"openai:*\"\n"},
    {"{\"models\": {\n  \"a:b\": {\"input\": 1, \"ouput\": 2}}}\n",
     ":2:23: error: price of \"a:b\": unknown key \"ouput\"\n  hint: did you mean \"output\"?\n"},
    {"{\"models\": {\n  \"a:b\": {\"input\": \"1\", \"output\": 2}}}\n",
     ":2:20: error: price of \"a:b\": input must be a number, not string \"1\"\n"
     "  hint: write the number without quotes\n"},
    {"{\"models\": [1]}\n", ": models must be a map, not list\n"},
    {"", "the file is empty\n"},
    {"{\"models\": {\n", ":2:1: "},
};

START_TEST(faults_of_the_users_table_have_their_place_there)
{
    char *dir = begin_table(broken[_i].table, "p.json");
    struct loaded l = load_text("name: x\nmodels: {a: 'corp:big', b: 'corp:small'}\n", ".");

    ck_assert_msg(strstr(l.findings, broken[_i].want) && strstr(l.findings, dir), "%s", l.findings);
    ck_assert(!l.p->is_sound);
    ck_assert_ptr_null(strstr(strstr(l.findings, broken[_i].want) + 1, broken[_i].want)); /* told once */
    loaded_fini(&l);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(a_table_that_is_named_must_be_there)
{
    setenv("REEVE_PRICES", "/nonexistent/p.json", 1);
    expect_findings("name: x\nmodels: {a: 'corp:big'}\n",
                    "/nonexistent/p.json:1:1: error: cannot open \"/nonexistent/p.json\": No such file or directory\n"
                    "  hint: there is no folder /nonexistent/\n");
    expect_findings("name: x\nmodels: {a: 'scripted:big'}\n", ""); /* nobody asked for it */
}
END_TEST

/* --- The bundle of a run --- */

START_TEST(what_a_run_began_with_stands_whatever_the_tables_say)
{
    static const struct rv_chosen_model chosen[] = {
        {.role = "a",
         .provider = "openai",
         .model = "gpt-4.1",
         .has_price = true,
         .price = {.input = 5, .output = 6, .cached = 7, .cache_write = RV_UNSET},
         .max_input_tokens = 8},
        {.role = "b",
         .provider = "openai",
         .model = "gpt-4.1",
         .has_price = true,
         .price = {.input = 5, .output = 6, .cached = RV_UNSET, .cache_write = RV_UNSET}},
    };
    static const char text[] = "name: x\nmodels:\n  a: 'openai:gpt-4.1'\n"
                               "  b: {model: 'openai:gpt-4.1', price: {input: 1, output: 2}}\n  c: 'openai:gpt-4.1'\n";
    const struct rv_pipeline_opts opts = {.models = chosen, .n_models = 2, .offline = true};
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    size_t n;

    ck_assert_int_eq(rv_pipeline_parse_with(&(const struct rv_pipeline_source){rv_str_of(text), "t.yaml", "."}, &opts,
                                            findings, &p, NULL),
                     0);
    ck_assert(p->is_sound);
    check_price(&p->models[0], 5, 6, 7, RV_UNSET);
    ck_assert_int_eq(p->models[0].max_input_tokens, 8);
    check_price(&p->models[1], 1000000, 2000000, RV_UNSET, RV_UNSET);
    ck_assert(!p->models[2].has_price);
    const struct rv_chosen_model *again = rv_pipeline_chosen_models(p, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(again[0].role, "a");
    ck_assert_int_eq(again[0].price.cached, 7);
    rv_pipeline_free(p);
    rv_findings_free(findings);
}
END_TEST

START_TEST(what_a_table_said_is_noted_and_hides_no_name)
{
    struct loaded l =
        load_clean("name: x\nmodels: {a: 'openai:o3', b: 'corp:x', c: {model: 'openai:o3', price: {input: "
                   "1, output: 1}}}\n");
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&b);
    size_t n;
    const struct rv_chosen_model *chosen = rv_pipeline_chosen_models(l.p, &n);

    ck_assert_uint_eq(n, 2);
    ck_assert(chosen[0].has_price && chosen[0].price.output == 8000000 && chosen[0].max_input_tokens == 200000);
    ck_assert(!chosen[1].has_price && chosen[1].max_input_tokens == 200000);
    rv_pipeline_write_json(l.p, &w);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"model\":\"o3\",\"max_input_tokens\":200000,\"optional\":false,"
                                                  "\"price\":{\"input\":2.0,\"output\":8.0,\"cached\":0.5},"
                                                  "\"price_from_table\":true}"));
    rv_buf_fini(&b);
    loaded_fini(&l);
}
END_TEST

TCase *prices_case(void)
{
    TCase *tc = tcase_create("prices");

    tcase_add_checked_fixture(tc, NULL, forget_tables);
    tcase_add_loop_test(tc, names_are_found_in_the_table, 0, RV_COUNT(known));
    tcase_add_test(tc, a_price_of_the_pipeline_wins_and_is_rounded_to_the_nearest);
    tcase_add_test(tc, a_table_of_the_user_stands_before_the_one_built_in);
    tcase_add_test(tc, the_table_may_be_among_the_users_settings);
    tcase_add_loop_test(tc, faults_of_the_users_table_have_their_place_there, 0, RV_COUNT(broken));
    tcase_add_test(tc, a_table_that_is_named_must_be_there);
    tcase_add_test(tc, what_a_run_began_with_stands_whatever_the_tables_say);
    tcase_add_test(tc, what_a_table_said_is_noted_and_hides_no_name);
    return tc;
}
