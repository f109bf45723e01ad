/* Why a turn did not come to its end, for people. */
#include "coreengine/cli/chat/chat.h"
#include "coreengine/cli/runs/runs.h"

int rv_cli_chat_report(const struct rv_cli_chat *c, const struct rv_chat_turn *turn)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    const char *red = c->cli->err_color ? "\033[31m" : "", *plain = c->cli->err_color ? "\033[0m" : "";
    int status = rv_cli_exit_of(turn->status);

    bool is_told = rv_cli_flag(c->args, "json") || c->events || (c->show && rv_chat_show_remarks(c->show));
    if (turn->is_cut_off && !is_told)
        rv_buf_printf(&text, "%s[cut off] the answer reached max_tokens: raise it, or ask for less%s\n",
                      c->cli->err_color ? "\033[2m" : "", plain);
    if (turn->chained_error) {
        rv_buf_printf(&text, "%s[error]%s the chained tool failed: ", red, plain);
        rv_cli_write_lines(rv_str_of(turn->chained_error), &text);
        rv_buf_putc(&text, '\n');
    }
    if (turn->status == RV_RUN_CANCELLED) {
        rv_buf_puts(&text, "[cancelled]\n");
    } else if (turn->status != RV_RUN_COMPLETED && turn->status != RV_RUN_INTERRUPTED && turn->was_kept) {
        rv_buf_printf(&text, "%s[error]%s ", red, plain);
        rv_cli_write_lines(rv_str_of(turn->error ? turn->error : rv_run_status_text(turn->status)), &text);
        rv_cli_write_code(turn->code, &text);
    }
    if (!turn->was_kept) {
        rv_buf_printf(&text, "%s[error]%s %s", red, plain,
                      rv_cli_flag(c->args, "no-store") ? "" : "the turn is not kept: ");
        rv_cli_write_lines(rv_str_of(turn->store_error ? turn->store_error : "it failed"), &text);
        rv_cli_write_code(turn->code, &text);
        status = RV_EXIT_FAILED;
    }
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
    return status;
}
