/* The conversation on a terminal: a prompt, a line, a turn, again. */
#include "coreengine/cli/chat/chat.h"

#include <signal.h>

static const char prompt[] = "you> ";

static bool has_text(rv_str line)
{
    return rv_str_trim(line).len > 0;
}

void rv_cli_chat_header(const struct rv_cli_chat *c)
{
    rv_buf text = RV_BUF_INIT(4096);

    if (rv_cli_flag(c->args, "quiet") || rv_cli_flag(c->args, "json") || rv_cli_flag(c->args, "events"))
        return;
    rv_buf_printf(&text, "Agent: %s\n%s %s\n", rv_chat_agent(c->in.chat),
                  rv_chat_is_new(c->in.chat) ? "New session:" : "Resuming session", rv_chat_session(c->in.chat));
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
    rv_err *err = NULL;
    if (rv_cli_chat_note_waiting(c, &err) < 0) /* a note, no more: the turn itself will say what is wrong */
        rv_err_free(err);
}

static void show_prompt(const struct rv_cli_chat *c)
{
    rv_str text = RV_STR_LIT(prompt);

    if (c->cli->out_tty)
        RV_IGNORE(!rv_cli_out_now(text), "a write that failed is told at the end");
    else
        rv_cli_err(text);
}

/* A turn that went wrong is told, and the conversation goes on. */
static void say(struct rv_cli_chat *c, struct rv_chat_lines *lines, rv_str line)
{
    struct rv_chat_turn turn = {0};
    rv_err *err = NULL;

    int rc = rv_cli_chat_turn(c, line, NULL, &turn, &err);
    if (rc == 0)
        rc = rv_cli_chat_answer(c, lines, true, &turn, &err);
    if (rc == 0) {
        RV_IGNORE(rv_cli_chat_report(c, &turn), "the next turn may be better");
        rv_cli_out(c->cli->out_tty ? RV_STR_LIT("\n") : (rv_str){NULL, 0});
    } else if (rc == RV_E_CANCELLED) { /* the loop sees why */
        rv_err_free(err);
    } else {
        rv_cli_err(RV_STR_LIT("[error] "));
        (void)rv_cli_report(c->cli, err);
    }
}

static int talk(struct rv_cli_chat *c, struct rv_chat_lines *lines)
{
    enum rv_chat_word word = RV_CHAT_WORD_NONE;
    rv_err *err = NULL;
    rv_str line;

    while (word != RV_CHAT_WORD_EXIT && !c->reader_left && !rv_chat_signals_seen()) {
        show_prompt(c);
        int rc = rv_chat_lines_next(lines, &line, &err);
        if (rc == RV_E_LIMIT) {
            (void)rv_cli_report(c->cli, err);
            err = NULL;
            continue;
        }
        if (rc <= 0) {
            rv_cli_err(RV_STR_LIT("\n"));
            if (rc == 0 || rc == RV_E_CANCELLED)
                break;
            return rv_cli_report(c->cli, err);
        }
        word = has_text(line) ? rv_cli_chat_command(c, line) : RV_CHAT_WORD_DONE;
        if (word == RV_CHAT_WORD_NONE)
            say(c, lines, line);
    }
    rv_err_free(err);
    rv_cli_err(RV_STR_LIT("Bye.\n"));
    return c->reader_left ? RV_EXIT_FAILED : rv_chat_signals_seen() == SIGTERM ? RV_EXIT_CANCELLED : RV_EXIT_COMPLETED;
}

int rv_cli_chat_repl(struct rv_cli_chat *c)
{
    struct rv_chat_lines lines;

    rv_chat_lines_init(&lines);
    rv_cli_chat_header(c);
    if (!rv_cli_flag(c->args, "quiet"))
        rv_cli_err(RV_STR_LIT("/help lists commands, Ctrl-C stops an answer, Ctrl-D ends the chat\n"));
    int status = talk(c, &lines);
    rv_chat_lines_fini(&lines);
    return status;
}
