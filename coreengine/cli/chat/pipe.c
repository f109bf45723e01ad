/* One message, or one for each line of standard input, for pipes and scripts. */
#include "coreengine/cli/chat/chat.h"

#include <unistd.h>

static int print_answer(struct rv_cli_chat *c, const struct rv_chat_turn *turn)
{
    rv_buf text = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);
    bool json = rv_cli_flag(c->args, "json");
    /* An answer that could not be kept is one all the same. */
    bool ended = turn->status == RV_RUN_COMPLETED || turn->status == RV_RUN_TERMINATED || !turn->was_kept;

    if (json) {
        rv_app_chat_write(&c->in, turn, &text);
        rv_buf_putc(&text, '\n');
    } else if (ended && !c->show && !c->events && (turn->text.len || turn->status == RV_RUN_COMPLETED)) {
        rv_buf_add_str(&text, turn->text);
        rv_buf_putc(&text, '\n');
    }
    int status = rv_cli_print(c->cli, &text);
    c->reader_left = !rv_cli_out_now((rv_str){NULL, 0}) || c->reader_left;
    return status;
}

/* lines NULL: no person to ask. prompts: standard input is a terminal. */
static int one_turn(struct rv_cli_chat *c, rv_str message, struct rv_chat_lines *lines, bool prompts)
{
    struct rv_chat_turn turn = {0};
    rv_err *err = NULL;

    int rc = rv_cli_chat_turn(c, message, NULL, &turn, &err);
    if (rc == 0 && lines)
        rc = rv_cli_chat_answer(c, lines, prompts, &turn, &err);
    if (rc == RV_E_CANCELLED && turn.status == RV_RUN_INTERRUPTED) {
        rv_err_free(err);
        err = NULL;
    } else if (rc < 0) {
        return rv_cli_report(c->cli, err);
    }
    int printed = print_answer(c, &turn);
    if (turn.status == RV_RUN_INTERRUPTED && turn.was_kept)
        rv_cli_chat_say_pending(c, &turn);
    int status = rv_cli_chat_report(c, &turn);
    return status ? status : printed;
}

int rv_cli_chat_once(struct rv_cli_chat *c, rv_str message)
{
    struct rv_chat_lines lines;
    bool person = isatty(STDIN_FILENO) && c->show;

    rv_chat_lines_init(&lines);
    rv_cli_chat_header(c);
    int status = one_turn(c, message, person ? &lines : NULL, person);
    rv_chat_lines_fini(&lines);
    return status;
}

/* The first turn that did not end well says how it all ended; later ones are had all the same. */
int rv_cli_chat_lines(struct rv_cli_chat *c)
{
    struct rv_chat_lines lines;
    int status = RV_EXIT_COMPLETED, rc = 1;
    rv_err *err = NULL;
    rv_str line;

    rv_chat_lines_init(&lines);
    rv_cli_chat_header(c);
    while (!c->reader_left && status != RV_EXIT_CANCELLED) {
        rc = rv_chat_lines_next(&lines, &line, &err);
        if (rc <= 0)
            break;
        if (rv_str_trim(line).len == 0)
            continue;
        int this_one = one_turn(c, line, &lines, false);
        status = status && this_one != RV_EXIT_CANCELLED ? status : this_one;
    }
    if (rc == RV_E_CANCELLED) { /* who sent the signal knows */
        rv_err_free(err);
        status = RV_EXIT_CANCELLED;
    } else if (rc < 0) {
        status = rv_cli_report(c->cli, err);
    }
    if (c->reader_left && status == RV_EXIT_COMPLETED)
        status = RV_EXIT_FAILED; /* the lines behind it were not said */
    rv_chat_lines_fini(&lines);
    return status;
}
