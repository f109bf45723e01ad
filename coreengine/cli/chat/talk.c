/* Who talks in a chat: a person at a prompt, one message of a command line, or the lines of a pipe; how a turn that
 * waits is told, and why a turn did not come to its end. */
#include "coreengine/cli/chat/chat_internal.h"

#include <signal.h>
#include <unistd.h>

#define MAX_QUESTION ((size_t)1 << 20) /* bytes of one question: as the store takes (RV_STORE_MAX_QUESTION) */

/* --- what a turn waits for --- */

static void say_pending(const struct rv_cli_chat *c, const struct rv_chat_turn *turn)
{
    const struct rv_interrupt *in = &turn->interrupt;
    rv_buf text = RV_BUF_INIT(MAX_QUESTION);

    rv_buf_printf(&text, "the turn waits for %s: ", rv_interrupt_kind_text(in->kind));
    cli_write_lines(rv_str_of(in->question ? in->question : in->message), &text);
    rv_buf_putc(&text, '\n');
    if (!cli_flag(c->cli, "no-store")) {
        rv_buf_puts(&text, "answer with: reeve resume ");
        cli_write_word(turn->run_id, &text);
        cli_write_store(c->cli, &text);
        rv_buf_putc(&text, ' ');
        cli_write_how_to_answer(in->kind, in->data, &text);
        rv_buf_putc(&text, '\n');
    }
    cli_say_text(&text);
}

/* --- a turn of an earlier process --- */

struct asked {
    const struct rv_cli_chat *c;
    rv_buf text;
};

static int take_question(void *self, const struct rv_pending *p, rv_err **err)
{
    struct asked *a = self;

    (void)err;
    if (a->text.len > 0) /* a turn waits for one answer */
        return 0;
    rv_buf_printf(&a->text, "the last turn waits for %s: ", p->kind);
    cli_write_lines(p->text, &a->text);
    rv_buf_puts(&a->text, "\nanswer with: ");
    cli_write_resume(a->c->cli, p, true, &a->text);
    return 0;
}

/* Say on stderr that a turn of the session waits, how to answer it, and that a message gives it up; or nothing. */
static int note_waiting(const struct rv_cli_chat *c, rv_err **err)
{
    struct asked a = {.c = c, .text = RV_BUF_INIT(MAX_QUESTION)};
    char run_id[RV_STORE_MAX_ID + 1] = "";

    if (rv_chat_is_new(c->in.chat) && !cli_value(c->cli, "session"))
        return 0;
    int rc = rv_chat_find_waiting(c->in.chat, run_id, err);
    if (rc == 0 && run_id[0])
        rc = rv_store_list_pending(c->in.store, &c->cli->app.scope, run_id, take_question, &a, err);
    if (rc == 0 && a.text.len > 0) {
        rv_buf_puts(&a.text, "a new message gives it up: what was said in it is kept, marked cancelled\n");
        cli_err(rv_buf_str(&a.text));
    }
    rv_buf_fini(&a.text);
    return rc;
}

/* --- its end --- */

/* Why the turn did not complete, or could not be written, on stderr; gives the exit status. */
static int report_turn(const struct rv_cli_chat *c, const struct rv_chat_turn *turn)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    const char *red = c->cli->err_color ? "\033[31m" : "", *plain = c->cli->err_color ? "\033[0m" : "";
    int status = cli_exit_of(turn->status);

    bool is_told = cli_flag(c->cli, "json") || c->events || c->shows_remarks;
    if (turn->is_cut_off && !is_told)
        rv_buf_printf(&text, "%s[cut off] the answer reached max_tokens: raise it, or ask for less%s\n",
                      c->cli->err_color ? "\033[2m" : "", plain);
    if (turn->chained_error) {
        rv_buf_printf(&text, "%s[error]%s the chained tool failed: ", red, plain);
        cli_write_lines(rv_str_of(turn->chained_error), &text);
        rv_buf_putc(&text, '\n');
    }
    if (turn->status == RV_RUN_CANCELLED) {
        rv_buf_puts(&text, "[cancelled]\n");
    } else if (turn->status != RV_RUN_COMPLETED && turn->status != RV_RUN_INTERRUPTED && turn->was_kept) {
        rv_buf_printf(&text, "%s[error]%s ", red, plain);
        cli_write_lines(rv_str_of(turn->error ? turn->error : rv_run_status_text(turn->status)), &text);
        cli_write_code(turn->code, &text);
    }
    if (!turn->was_kept) {
        rv_buf_printf(&text, "%s[error]%s %s", red, plain,
                      cli_flag(c->cli, "no-store") ? "" : "the turn is not kept: ");
        cli_write_lines(rv_str_of(turn->store_error ? turn->store_error : "it failed"), &text);
        cli_write_code(turn->code, &text);
        status = RV_EXIT_FAILED;
    }
    cli_say_text(&text);
    return status;
}

void cli_chat_header(const struct rv_cli_chat *c)
{
    rv_err *err = NULL;

    if (cli_flag(c->cli, "quiet") || cli_flag(c->cli, "json") || cli_flag(c->cli, "events"))
        return;
    cli_say("Agent: %s\n%s %s\n", rv_chat_agent(c->in.chat),
            rv_chat_is_new(c->in.chat) ? "New session:" : "Resuming session", rv_chat_session(c->in.chat));
    if (note_waiting(c, &err) < 0) /* a note, no more: the turn itself will say what is wrong */
        rv_err_free(err);
}

/* --- one message, or one for each line of a pipe --- */

static int print_answer(struct rv_cli_chat *c, const struct rv_chat_turn *turn)
{
    rv_buf text = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);
    rv_err *err = NULL;
    bool json = cli_flag(c->cli, "json");
    /* An answer that could not be kept is one all the same. */
    bool ended = turn->status == RV_RUN_COMPLETED || turn->status == RV_RUN_TERMINATED || !turn->was_kept;

    if (json) {
        rv_app_chat_write(&c->in, turn, &text);
        rv_buf_putc(&text, '\n');
    } else if (ended && !c->show && !c->events && (turn->text.len || turn->status == RV_RUN_COMPLETED)) {
        rv_buf_add_str(&text, turn->text);
        rv_buf_putc(&text, '\n');
    }
    int rc = cli_print(0, &text, &err);
    c->reader_left = !cli_out_now((rv_str){NULL, 0}) || c->reader_left;
    return rc < 0 ? cli_report(c->cli, err) : RV_EXIT_COMPLETED;
}

/* lines NULL: no person to ask. prompts: standard input is a terminal. */
static int one_turn(struct rv_cli_chat *c, rv_str message, struct rv_chat_lines *lines, bool prompts)
{
    struct rv_chat_turn turn = {0};
    rv_err *err = NULL;

    int rc = cli_chat_turn(c, message, NULL, &turn, &err);
    if (rc == 0 && lines)
        rc = cli_chat_answer(c, lines, prompts, &turn, &err);
    if (rc == RV_E_CANCELLED && turn.status == RV_RUN_INTERRUPTED) {
        rv_err_free(err);
        err = NULL;
    } else if (rc < 0) {
        return cli_report(c->cli, err);
    }
    int printed = print_answer(c, &turn);
    if (turn.status == RV_RUN_INTERRUPTED && turn.was_kept)
        say_pending(c, &turn);
    int status = report_turn(c, &turn);
    return status ? status : printed;
}

int cli_chat_once(struct rv_cli_chat *c, rv_str message)
{
    struct rv_chat_lines lines;
    bool person = isatty(STDIN_FILENO) && c->show;

    cli_chat_lines_init(&lines);
    cli_chat_header(c);
    int status = one_turn(c, message, person ? &lines : NULL, person);
    cli_chat_lines_fini(&lines);
    return status;
}

/* The first turn that did not end well says how it all ended; later ones are had all the same. */
int cli_chat_lines(struct rv_cli_chat *c)
{
    struct rv_chat_lines lines;
    int status = RV_EXIT_COMPLETED, rc = 1;
    rv_err *err = NULL;
    rv_str line;

    cli_chat_lines_init(&lines);
    cli_chat_header(c);
    while (!c->reader_left && status != RV_EXIT_CANCELLED) {
        rc = cli_chat_lines_next(&lines, &line, &err);
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
        status = cli_report(c->cli, err);
    }
    if (c->reader_left && status == RV_EXIT_COMPLETED)
        status = RV_EXIT_FAILED; /* the lines behind it were not said */
    cli_chat_lines_fini(&lines);
    return status;
}

/* --- on a terminal: a prompt, a line, a turn, again --- */

static void show_prompt(const struct rv_cli_chat *c)
{
    rv_str text = RV_STR_LIT("you> ");

    if (c->cli->out_tty)
        RV_IGNORE(!cli_out_now(text), "a write that failed is told at the end");
    else
        cli_err(text);
}

/* What the turn took; nothing for one that no model was asked in. */
static void say_usage(const struct rv_cli_chat *c, const struct rv_usage *u)
{
    rv_buf text = RV_BUF_INIT(256);
    char money[RV_APP_MAX_MONEY];

    if (!c->cli->out_tty || cli_flag(c->cli, "quiet") || u->input_tokens + u->output_tokens == 0)
        return;
    rv_buf_printf(&text, "%s%s", c->cli->err_color ? "\033[2m" : "", u->estimated ? "at most " : "");
    rv_app_write_count(&text, u->input_tokens);
    rv_buf_puts(&text, " tokens in, ");
    rv_app_write_count(&text, u->output_tokens);
    rv_buf_puts(&text, " out");
    if (u->cost_micro_usd > 0) /* 0: no price is known, or there is none */
        rv_buf_printf(&text, ", %s", rv_app_format_money(u->cost_micro_usd, money));
    rv_buf_printf(&text, "%s\n", c->cli->err_color ? "\033[0m" : "");
    cli_say_text(&text);
}

/* A turn that went wrong is told, and the conversation goes on. */
static void say(struct rv_cli_chat *c, struct rv_chat_lines *lines, rv_str line)
{
    struct rv_chat_turn turn = {0};
    rv_err *err = NULL;

    int rc = cli_chat_turn(c, line, NULL, &turn, &err);
    if (rc == 0)
        rc = cli_chat_answer(c, lines, true, &turn, &err);
    if (rc == 0) {
        RV_IGNORE(report_turn(c, &turn), "the next turn may be better");
        say_usage(c, &turn.usage);
        cli_out(c->cli->out_tty ? RV_STR_LIT("\n") : (rv_str){NULL, 0});
    } else if (rc == RV_E_CANCELLED) { /* the loop sees why */
        rv_err_free(err);
    } else {
        cli_say("[error] ");
        cli_report(c->cli, err);
    }
}

static int next_line(struct rv_cli_chat *c, struct rv_chat_lines *lines, rv_str *line, rv_err **err)
{
    if (!c->edit) {
        show_prompt(c);
        return cli_chat_lines_next(lines, line, err);
    }
    int rc = cli_chat_edit_line(c->edit, lines, (rv_str){NULL, 0}, line, err);
    if (rc == 1 && rv_str_trim(*line).len > 0) {
        cli_chat_edit_remember(c->edit, *line);
        if (c->recalls)
            cli_chat_recall_add(*line);
    }
    return rc;
}

static int talk(struct rv_cli_chat *c, struct rv_chat_lines *lines)
{
    enum rv_chat_word word = RV_CHAT_WORD_NONE;
    rv_err *err = NULL;
    rv_str line;

    while (word != RV_CHAT_WORD_EXIT && !c->reader_left && !cli_chat_signals_seen()) {
        int rc = next_line(c, lines, &line, &err);
        if (rc == RV_E_LIMIT) {
            cli_report(c->cli, err);
            err = NULL;
            continue;
        }
        if (rc <= 0) {
            cli_say("\n");
            if (rc == 0 || rc == RV_E_CANCELLED)
                break;
            return cli_report(c->cli, err);
        }
        word = rv_str_trim(line).len > 0 ? cli_chat_command(c, line) : RV_CHAT_WORD_DONE;
        if (word == RV_CHAT_WORD_NONE || word == RV_CHAT_WORD_AGAIN)
            say(c, lines, word == RV_CHAT_WORD_AGAIN ? rv_buf_str(&c->again) : line);
    }
    rv_err_free(err);
    cli_say("Bye.\n");
    return c->reader_left ? RV_EXIT_FAILED : cli_chat_signals_seen() == SIGTERM ? RV_EXIT_CANCELLED : RV_EXIT_COMPLETED;
}

int cli_chat_repl(struct rv_cli_chat *c)
{
    struct rv_chat_lines lines;

    cli_chat_lines_init(&lines);
    c->again = RV_BUF_INIT(RV_CLI_MAX_MESSAGE);
    if (cli_chat_edit_fits(c->cli) && (c->edit = cli_chat_edit_new(c)) && (c->recalls = cli_chat_recall_keeps(c)))
        cli_chat_recall_load(c->edit);
    cli_chat_header(c);
    if (!cli_flag(c->cli, "quiet"))
        cli_say("/help lists commands, Ctrl-C stops an answer, Ctrl-D ends the chat\n");
    int status = talk(c, &lines);
    cli_chat_edit_free(c->edit);
    rv_buf_fini(&c->again);
    cli_chat_lines_fini(&lines);
    return status;
}
