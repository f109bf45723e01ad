/* What a turn waits for, asked on the terminal or of the next line of a pipe. */
#include "coreengine/cli/chat/chat.h"
#include "coreengine/cli/runs/runs.h"

#include <string.h>
#include <strings.h>

#define MAX_QUESTION ((size_t)1 << 20)

static void write_asked(const struct rv_interrupt *in, rv_buf *b)
{
    const char *tool = NULL;
    json_object *parameters = in->data ? rv_json_get_obj(in->data, "parameters") : NULL;
    const char *ask = in->question ? in->question : in->message ? in->message : "";
    rv_buf arguments = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    if (in->data && rv_json_get_text(in->data, "tool", &tool)) {
        rv_json_write(parameters, &arguments);
        rv_buf_puts(b, "  ");
        rv_chat_write_call(rv_str_of(tool), parameters ? rv_buf_str(&arguments) : RV_STR_LIT("{}"), b);
        rv_buf_putc(b, '\n');
    }
    if (in->kind == RV_INTERRUPT_CONFIRMATION && tool) {
        rv_buf_puts(b, "allow ");
        rv_chat_write_line(rv_str_of(tool), b);
        rv_buf_puts(b, "? [y/N] ");
    } else {
        rv_cli_write_lines(rv_str_of(ask), b);
        rv_buf_puts(b, in->kind == RV_INTERRUPT_CONFIRMATION           ? " [y/N] "
                       : rv_interrupt_asks_outcome(in->kind, in->data) ? " [happened, not_happened, fail] "
                       : in->kind == RV_INTERRUPT_AGENT_REVIEW         ? " [approve, reject, modify TEXT] "
                                                                       : " ");
    }
    rv_buf_fini(&arguments);
}

static bool is_word(rv_str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.ptr, word, text.len) == 0;
}

/* False: the line does not answer the interrupt. id copies the interrupt's id, since the answer ends its turn. */
static bool read_answer(const struct rv_interrupt *in, rv_str line, rv_buf *id, struct rv_response *out)
{
    static const char *const words[] = {"approve", "reject", "modify", "happened", "not_happened", "fail"};
    rv_str text = rv_str_trim(line), first = {text.ptr, 0};

    rv_buf_clear(id);
    rv_buf_puts(id, in->id ? in->id : "");
    *out = (struct rv_response){0};
    if (id->len > 0)
        out->interrupt_id = rv_buf_str(id);
    if (in->kind == RV_INTERRUPT_CONFIRMATION) {
        out->has_approved = true;
        out->approved = is_word(text, "y") || is_word(text, "yes");
        return true;
    }
    if (in->kind != RV_INTERRUPT_AGENT_REVIEW) {
        out->text = text.len ? text : RV_STR_LIT("");
        return true;
    }
    while (first.len < text.len && text.ptr[first.len] != ' ')
        first.len++;
    bool outcome = rv_interrupt_asks_outcome(in->kind, in->data);
    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (is_word(first, words[i]) && outcome == (i >= 3)) {
            out->decision = rv_str_of(words[i]);
            out->text = rv_str_trim((rv_str){text.ptr + first.len, text.len - first.len});
            if (!out->text.len)
                out->text.ptr = NULL;
            return true;
        }
    return false;
}

static void ask(const struct rv_interrupt *in)
{
    rv_buf text = RV_BUF_INIT(MAX_QUESTION);

    write_asked(in, &text);
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
}

/* The next line is the answer. */
static int answer(struct rv_cli_chat *c, struct rv_chat_lines *lines, bool prompts, struct rv_chat_turn *turn,
                  rv_buf *id, rv_err **err)
{
    struct rv_response response;
    rv_str line;

    int rc = rv_chat_lines_next(lines, &line, err);
    if (rc == 0)
        return RV_FAIL(err, RV_E_CANCELLED, "standard input ended before an answer");
    if (rc < 0)
        return rc;
    if (read_answer(&turn->interrupt, line, id, &response))
        return rv_cli_chat_turn(c, (rv_str){NULL, 0}, &response, turn, err);
    return prompts ? 0 : RV_FAIL(err, RV_E_INVALID, "\"%.*s\" does not answer the question", RV_STR_ARG(line));
}

int rv_cli_chat_answer(struct rv_cli_chat *c, struct rv_chat_lines *lines, bool prompts, struct rv_chat_turn *turn,
                       rv_err **err)
{
    rv_buf id = RV_BUF_INIT(MAX_QUESTION);
    int rc = 0;

    while (rc == 0 && turn->status == RV_RUN_INTERRUPTED) {
        if (prompts)
            ask(&turn->interrupt);
        rc = answer(c, lines, prompts, turn, &id, err);
    }
    rv_buf_fini(&id);
    return rc;
}

void rv_cli_chat_say_pending(const struct rv_cli_chat *c, const struct rv_chat_turn *turn)
{
    const struct rv_interrupt *in = &turn->interrupt;
    rv_buf text = RV_BUF_INIT(MAX_QUESTION);

    rv_buf_printf(&text, "the turn waits for %s: ", rv_interrupt_kind_text(in->kind));
    rv_cli_write_lines(rv_str_of(in->question ? in->question : in->message), &text);
    rv_buf_putc(&text, '\n');
    if (!rv_cli_flag(c->args, "no-store")) {
        rv_buf_puts(&text, "answer with: reeve resume ");
        rv_cli_write_word(turn->run_id, &text);
        rv_cli_write_store(c->args, &text);
        rv_buf_printf(&text, " %s\n", rv_cli_how_to_answer(in->kind, in->data));
    }
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
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
    rv_cli_write_lines(p->text, &a->text);
    rv_buf_puts(&a->text, "\nanswer with: ");
    rv_cli_write_resume(a->c->args, p, true, &a->text);
    return 0;
}

int rv_cli_chat_note_waiting(const struct rv_cli_chat *c, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(c->args);
    struct asked a = {.c = c, .text = RV_BUF_INIT(MAX_QUESTION)};
    char run_id[RV_STORE_MAX_ID + 1] = "";

    if (rv_chat_is_new(c->in.chat) && !rv_cli_value(c->args, "session"))
        return 0;
    int rc = rv_chat_waiting(c->in.chat, run_id, err);
    if (rc == 0 && run_id[0])
        rc = rv_store_list_pending(c->in.store, &scope, run_id, take_question, &a, err);
    if (rc == 0 && a.text.len > 0) {
        rv_buf_puts(&a.text, "a new message gives it up: what was said in it is kept, marked cancelled\n");
        rv_cli_err(rv_buf_str(&a.text));
    }
    rv_buf_fini(&a.text);
    return rc;
}
