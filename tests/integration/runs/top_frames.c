/* top_frames color|plain: two frames of `reeve top` on this terminal, drawn by the same functions, with rows and times
 * that are always the same. It ends without closing the screen, so that what the terminal shows can be looked at. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/cli/show/width_internal.h"
#include "coreengine/cli/top/top_internal.h"

#define NOW INT64_C(1700000000000000)

bool cli_out_now(rv_str text)
{
    fwrite(text.ptr, 1, text.len, stdout);
    return fflush(stdout) == 0;
}

static const struct rv_app_top_row rows[] = {
    {.id = "env_0123456789abcdef",
     .pipeline = "請求書の確認",
     .stage = "承認する人",
     .status = RV_RUN_INTERRUPTED,
     .created_us = NOW - 7200000000,
     .waits = RV_APP_TOP_ANSWER,
     .name = "confirmation",
     .text = "漢字は広い。この請求書を払いますか? \033[31mred\033[0m",
     .n = 1,
     .is_read = true,
     .llm_calls = 3,
     .used = {.input_tokens = 12000, .output_tokens = 345, .cost_micro_usd = 4200}},
    {.id = "env_1111111111111111",
     .pipeline = "review",
     .stage = "critic",
     .status = RV_RUN_RUNNING,
     .created_us = NOW - 62000000,
     .waits = RV_APP_TOP_MODEL,
     .name = "openai:gpt-4.1-mini",
     .text = "",
     .n = 2,
     .since_us = NOW - 3000000,
     .is_read = true,
     .llm_calls = 12,
     .used = {.input_tokens = 1200000, .output_tokens = 34500, .cost_micro_usd = 1534200}},
    {.id = "env_2222222222222222",
     .pipeline = "nightly",
     .stage = "start",
     .status = RV_RUN_READY,
     .created_us = NOW - 1000000,
     .waits = RV_APP_TOP_WORKER,
     .name = "",
     .text = "",
     .is_read = true},
};

static bool frame(rv_cli_screen *screen, const struct rv_app_top_row *first, size_t n, bool color)
{
    struct rv_app_top_snapshot look = {
        .now_us = NOW,
        .rows = first,
        .n = n,
        .n_running = 1,
        .rates = {.span_us = 60000000, .n_ended = 7, .tokens = 9000, .cost_micro_usd = 2000}};
    struct rv_cli_top_view view = {.color = color, .selected = n - 1};
    rv_buf text = RV_BUF_INIT(RV_CLI_TOP_MAX_TEXT);

    for (size_t i = 0; i < n; i++) {
        look.llm_calls += first[i].llm_calls;
        rv_usage_add(&look.used, &first[i].used);
    }
    cli_terminal_size(&view.columns, &view.rows);
    cli_top_draw(&look, &view, &text);
    bool shown = cli_screen_show(screen, rv_buf_str(&text));
    rv_buf_fini(&text);
    return shown;
}

int main(int argc, char **argv)
{
    bool color = argc > 1 && strcmp(argv[1], "color") == 0;
    rv_cli_screen *screen = NULL;

    if (cli_screen_open(&screen, NULL) < 0)
        return 1;
    bool shown = frame(screen, rows + 1, 2, color) && frame(screen, rows, 3, color) && frame(screen, rows, 2, color);
    fputs("\033[20;1HEND", stdout);
    fflush(stdout);
    while (shown && cli_screen_wait(screen, 60000) == RV_CLI_TOP_SIZE) /* until tmux ends it */
        continue;
    _exit(1);
}
