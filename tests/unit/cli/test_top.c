/* What `reeve top` draws of a look, column by column as it becomes narrower, and which keys a terminal's bytes are. */
#include <string.h>

#include "coreengine/cli/show/width_internal.h"
#include "coreengine/cli/top/top_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

#define NOW INT64_C(1700000000000000)

static const struct rv_app_top_row rows[] = {
    {.id = "env_0123456789abcdef",
     .pipeline = "review",
     .stage = "boss",
     .status = RV_RUN_INTERRUPTED,
     .created_us = NOW - 90000000,
     .waits = RV_APP_TOP_ANSWER,
     .name = "confirmation",
     .text = "Publish \xe6\xbc\xa2\xe5\xad\x97\xe3\x81\xaf\xe5\xba\x83\xe3\x81\x84?\033[2J\nNow",
     .n = 2,
     .is_read = true,
     .llm_calls = 1234,
     .used = {.input_tokens = 1000000, .output_tokens = 5, .cost_micro_usd = 12345}},
    {.id = "env_1",
     .pipeline = "a-pipeline-with-a-name-that-is-long",
     .stage = "",
     .status = RV_RUN_RUNNING,
     .created_us = NOW - 5000000,
     .waits = RV_APP_TOP_MODEL,
     .name = "openai:gpt-4.1-mini",
     .text = "",
     .n = 1,
     .since_us = NOW - 3000000},
    {.id = "env_2",
     .pipeline = "p",
     .stage = "s",
     .status = RV_RUN_READY,
     .created_us = NOW,
     .waits = RV_APP_TOP_WORKER,
     .name = "",
     .text = "",
     .is_read = true},
};
static const struct rv_app_top_snapshot look = {
    .now_us = NOW,
    .rows = rows,
    .n = RV_COUNT(rows),
    .n_running = 1,
    .n_ready = 1,
    .n_waiting = 1,
    .llm_calls = 1234,
    .used = {.input_tokens = 1000000, .output_tokens = 5, .cost_micro_usd = 12345},
    .rates = {.span_us = 60000000, .n_ended = 90, .tokens = 60000, .cost_micro_usd = 1000000},
};

static const struct {
    struct rv_cli_top_view view;
    const char *want;
} drawn[] = {
    {{.columns = 140},
     "reeve top  22:13:20 UTC  1 running, 1 ready, 1 waiting  by state\n"
     "last 60 s: 1.50 runs/s, 1,000 tokens/s, $60.00/h\n"
     "\n"
     "STATE    RUN                   PIPELINE                  STAGE   WAITS FOR                                  AGE  "
     "CALLS     TOKENS       COST\n"
     "waiting  env_0123456789abcdef  review                    boss    confirmation: Publish "
     "\xe6\xbc\xa2\xe5\xad\x97\xe3\x81\xaf\xe5\xba\x83\xe3\x81\x84? [2J...  90 s  1,234  1,000,005  $0.012345\n"
     "running  env_1                 a-pipeline-with-a-nam...  -       model openai:gpt-4.1-mini (3 s)            5 s  "
     "    -          -          -\n"
     "ready    env_2                 p                         s       a worker                                   0 s  "
     "    0          0      $0.00\n"
     "3 runs                                                                                                           "
     "1,234  1,000,005  $0.012345\n"},
    {{.columns = 60, .rows = 24},
     "reeve top  22:13:20 UTC  1 running, 1 ready, 1 waiting  b...\n"
     "last 60 s: 1.50 runs/s, 1,000 tokens/s, $60.00/h\n"
     "\n"
     "  STATE    PIPELINE    STAGE   WAITS FOR                 AGE\n"
     "> waiting  review      boss    confirmation: Publis...  90 s\n"
     "  running  a-pipel...  -       model openai:gpt-4.1...   5 s\n"
     "  ready    p           s       a worker                  0 s\n"
     "  3 runs\n"
     "env_0123456789abcdef  waiting in boss  confirmation: Publ...\n"
     "q quit  s sort  up/down select  r refresh\n"},
};

START_TEST(columns_shrink_and_then_go)
{
    rv_buf text = RV_BUF_INIT(1 << 16);

    struct rv_cli_top_view view = drawn[_i].view;

    cli_top_draw(&look, &view, &text);
    ck_assert_str_eq(rv_buf_cstr(&text), drawn[_i].want);
    rv_buf_fini(&text);
}
END_TEST

/* No line is wider than the screen, and no control character gets there, whatever the width. */
START_TEST(no_line_is_wider_than_the_screen)
{
    for (size_t columns = 10; columns < 200; columns++) {
        struct rv_cli_top_view view = {.columns = columns, .rows = 10, .selected = 2, .first = 1};
        rv_buf text = RV_BUF_INIT(1 << 16);
        size_t n_lines = 0;
        cli_top_draw(&look, &view, &text);
        for (const char *p = rv_buf_cstr(&text), *end; *p; p = end + 1, n_lines++) {
            end = strchr(p, '\n');
            ck_assert_ptr_nonnull(end);
            ck_assert_uint_le(cli_width((rv_str){p, (size_t)(end - p)}), columns);
            ck_assert_ptr_null(memchr(p, '\033', (size_t)(end - p)));
        }
        ck_assert_uint_le(n_lines, view.rows);
        rv_buf_fini(&text);
    }
}
END_TEST

static const struct {
    const char *bytes;
    size_t n;
    enum rv_cli_top_key key;
} keys[] = {
    {"", 0, RV_CLI_TOP_TIME},
    {"q", 1, RV_CLI_TOP_QUIT},
    {"sx", 1, RV_CLI_TOP_SORT},
    {"x", 1, RV_CLI_TOP_TIME},
    {"\033", 0, RV_CLI_TOP_TIME},
    {"\033[", 0, RV_CLI_TOP_TIME},
    {"\033x", 1, RV_CLI_TOP_TIME},
    {"\033[A", 3, RV_CLI_TOP_UP},
    {"\033OB", 3, RV_CLI_TOP_DOWN},
    {"\033[5~", 4, RV_CLI_TOP_PAGE_UP},
    {"\033[6~q", 4, RV_CLI_TOP_PAGE_DOWN},
    {"\033[1;5H", 6, RV_CLI_TOP_HOME},
    {"\033[200~", 6, RV_CLI_TOP_TIME},
    {"\033[1111111111111111111111111111111111111111111111111111111", 57, RV_CLI_TOP_TIME},
};

START_TEST(bytes_are_keys)
{
    enum rv_cli_top_key key;

    ck_assert_uint_eq(cli_screen_key(rv_str_of(keys[_i].bytes), &key), keys[_i].n);
    ck_assert_int_eq(key, keys[_i].key);
}
END_TEST

Suite *top_suite(void)
{
    Suite *s = suite_create("top");
    TCase *c = tcase_create("draw");

    tcase_add_loop_test(c, columns_shrink_and_then_go, 0, RV_COUNT(drawn));
    tcase_add_test(c, no_line_is_wider_than_the_screen);
    tcase_add_loop_test(c, bytes_are_keys, 0, RV_COUNT(keys));
    suite_add_tcase(s, c);
    return s;
}
