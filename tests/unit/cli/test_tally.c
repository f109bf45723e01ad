/* What model calls took, as a table: what is added up, what stands in the middle, what is left out. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/cli/cli.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

static struct rv_agent stages[] = {{.name = "plan"}, {.name = "a_name_that_is_longer_than_a_column"}};
static const struct rv_pipeline pipeline = {.agents = stages, .n_agents = RV_COUNT(stages)};

static struct rv_app_spent spent_of(const char *result)
{
    struct rv_app_spent spent;
    json_object *json = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(result), NULL, &json, NULL), 0);
    rv_app_spent_read(json, &spent);
    json_object_put(json);
    return spent;
}

static void want_table(const rv_cli_tally *t, const struct rv_usage *total, const char *want)
{
    rv_buf text = RV_BUF_INIT(1 << 16);

    cli_tally_write(t, total, false, &text);
    ck_assert_str_eq(rv_buf_cstr(&text), want);
    rv_buf_fini(&text);
}

static void add(rv_cli_tally *t, int stage, const char *result)
{
    struct rv_app_spent spent = spent_of(result);
    cli_tally_add(t, stage, &spent);
}

START_TEST(nothing_is_shown_of_calls_that_told_nothing)
{
    rv_cli_tally *t = cli_tally_new(&pipeline);

    want_table(t, NULL, "");
    add(t, 0, "{\"status\":\"success\",\"latency_ms\":20}");
    want_table(t, NULL, "");
    cli_tally_free(t);
    want_table(NULL, NULL, "");
}
END_TEST

START_TEST(columns_that_nobody_filled_are_left_out)
{
    rv_cli_tally *t = cli_tally_new(&pipeline);

    add(t, 0, "{\"status\":\"success\",\"input_tokens\":1200,\"output_tokens\":0}");
    want_table(t, NULL,
               "usage   calls  input  output\n"
               "  plan      1  1,200       0\n");
    cli_tally_free(t);
}
END_TEST

START_TEST(stages_add_up_and_times_are_medians)
{
    static const char *const results[] = {
        "{\"input_tokens\":10,\"output_tokens\":2,\"latency_ms\":100,\"first_token_ms\":30,\"cost_micro_usd\":5}",
        "{\"input_tokens\":10,\"output_tokens\":2,\"latency_ms\":900,\"first_token_ms\":10,\"cost_micro_usd\":5}",
        "{\"input_tokens\":10,\"output_tokens\":2,\"latency_ms\":200,\"first_token_ms\":20,\"reasoning_tokens\":1}",
    };
    rv_cli_tally *t = cli_tally_new(&pipeline);

    for (size_t i = 0; i < RV_COUNT(results); i++)
        add(t, 0, results[i]);
    add(t, 1, "{\"input_tokens\":7,\"output_tokens\":1,\"latency_ms\":2000,\"cached_tokens\":6}");
    add(t, -1, results[0]);
    add(t, 2, results[0]);
    want_table(
        t, NULL,
        "usage                           calls  input  cached  output  reasoning      cost  first token  latency\n"
        "  plan                              3     30       -       6          1  $0.00001        20 ms   200 ms\n"
        "  a_name_that_is_longer_than_a      1      7       6       1          -         -            -    2.0 s\n"
        "  all                               4     37       6       7          1  $0.00001        20 ms   550 ms\n");
    cli_tally_free(t);
}
END_TEST

START_TEST(what_nobody_told_is_marked_as_a_guess)
{
    rv_cli_tally *t = cli_tally_new(&pipeline);

    add(t, 0, "{\"status\":\"success\",\"cost_micro_usd\":1500000}");
    add(t, 0, "{\"status\":\"error\",\"error\":\"x\"}");
    want_table(t, NULL,
               "usage   calls    cost\n"
               "  plan      2  ~$1.50\n");
    cli_tally_free(t);

    struct rv_app_spent told = spent_of("{\"status\":\"success\",\"input_tokens\":3,\"cost_micro_usd\":1}");
    struct rv_app_spent broken = spent_of("{\"status\":\"error\",\"input_tokens\":3,\"cost_micro_usd\":1}");
    ck_assert(told.is_told && !told.usage.estimated);
    ck_assert(broken.is_told && broken.usage.estimated);
}
END_TEST

/* What was set aside for a call that died with its process is known to the run alone. */
START_TEST(the_total_of_the_run_counts_where_it_is_more)
{
    const struct rv_usage total = {
        .calls = 2, .input_tokens = 5, .output_tokens = 1, .cost_micro_usd = 900, .estimated = true};
    const struct rv_usage same = {.calls = 1, .input_tokens = 5, .output_tokens = 1};
    rv_cli_tally *t = cli_tally_new(&pipeline);

    add(t, 0, "{\"status\":\"success\",\"input_tokens\":5,\"output_tokens\":1}");
    want_table(t, &total,
               "usage   calls  input  output      cost\n"
               "  plan      1      5       1         -\n"
               "  all       2      5       1  ~$0.0009\n");
    want_table(t, &same,
               "usage   calls  input  output\n"
               "  plan      1      5       1\n");
    cli_tally_free(t);
}
END_TEST

static const struct {
    const char *result, *want;
} lines[] = {
    {"{}", ""},
    {"{\"input_tokens\":\"many\",\"output_tokens\":-4}", ", 0 in, 0 out"},
    {"{\"input_tokens\":9007199254740993,\"output_tokens\":1.5}", ", 0 in, 0 out"},
    {"{\"input_tokens\":1234567,\"output_tokens\":8,\"cached_tokens\":1000,\"reasoning_tokens\":3}",
     ", 1,234,567 in (1,000 cached), 8 out (3 reasoning)"},
    {"{\"input_tokens\":1,\"output_tokens\":1,\"cost_micro_usd\":12,\"first_token_ms\":1500}",
     ", 1 in, 1 out, $0.000012, first token after 1.5 s"},
    {"{\"status\":\"error\",\"cost_micro_usd\":12}", ", ~$0.000012"},
};
START_TEST(a_call_says_what_it_was_told)
{
    struct rv_app_spent spent = spent_of(lines[_i].result);
    rv_buf text = RV_BUF_INIT(4096);

    cli_spent_write(&spent, &text);
    ck_assert_str_eq(rv_buf_cstr(&text), lines[_i].want);
    rv_buf_fini(&text);
}
END_TEST

static const struct {
    int64_t micro_usd;
    const char *want;
} amounts[] = {
    {0, "$0.00"},       {1, "$0.000001"},    {10, "$0.00001"},
    {10000, "$0.01"},   {123400, "$0.1234"}, {500000, "$0.50"},
    {1000000, "$1.00"}, {1230000, "$1.23"},  {INT64_MAX, "more than can be counted"},
};
START_TEST(money_keeps_its_last_digit)
{
    char text[RV_APP_MAX_MONEY];

    ck_assert_str_eq(rv_app_format_money(amounts[_i].micro_usd, text), amounts[_i].want);
}
END_TEST

Suite *tally_suite(void)
{
    Suite *s = suite_create("tally");
    TCase *tc = tcase_create("tally");

    tcase_add_test(tc, nothing_is_shown_of_calls_that_told_nothing);
    tcase_add_test(tc, columns_that_nobody_filled_are_left_out);
    tcase_add_test(tc, stages_add_up_and_times_are_medians);
    tcase_add_test(tc, what_nobody_told_is_marked_as_a_guess);
    tcase_add_test(tc, the_total_of_the_run_counts_where_it_is_more);
    tcase_add_loop_test(tc, a_call_says_what_it_was_told, 0, RV_COUNT(lines));
    tcase_add_loop_test(tc, money_keeps_its_last_digit, 0, RV_COUNT(amounts));
    suite_add_tcase(s, tc);
    return s;
}
