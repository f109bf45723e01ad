/* What a turn of a chat waits for: the question as a person sees it, and the line that answers it. An answer is checked
 * before the turn takes it, so that a person whose answer does not fit is told why and asked again. */
#include "coreengine/cli/chat/chat_internal.h"

#include <string.h>
#include <strings.h>

#define MAX_QUESTION ((size_t)1 << 20) /* bytes of one question: as the store takes (RV_STORE_MAX_QUESTION) */

/* --- the question --- */

static void write_arguments(const struct rv_interrupt *in, rv_buf *b)
{
    json_object *parameters = rv_json_get_obj(in->data, "parameters");

    if (parameters)
        rv_json_write(parameters, b);
    else
        rv_buf_puts(b, "{}");
}

static void write_call(const struct rv_interrupt *in, rv_buf *b)
{
    rv_buf arguments = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    const char *tool = rv_json_text_or(in->data, "tool", "");

    write_arguments(in, &arguments);
    rv_buf_puts(b, "  ");
    cli_chat_write_call(rv_str_of(tool), rv_buf_str(&arguments), b);
    rv_buf_putc(b, '\n');
    if (rv_interrupt_is_tool_call(in->kind, in->data)) {
        rv_buf_puts(b, "allow ");
        cli_chat_write_line(rv_str_of(tool), b);
        rv_buf_puts(b, "? [y/N, e: change the arguments] ");
    }
    rv_buf_fini(&arguments);
}

static void write_choices(json_object *data, rv_buf *b)
{
    rv_buf options = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    if (rv_ask_takes_text(data)) {
        rv_buf_putc(b, ' ');
        return;
    }
    rv_ask_write_options(data, &options);
    rv_buf_puts(b, " [");
    cli_write_safe(rv_buf_str(&options), b);
    rv_buf_puts(b, "; a text may follow] ");
    rv_buf_fini(&options);
}

static void write_question(const struct rv_interrupt *in, rv_buf *b)
{
    bool has_tool = in->data && json_object_object_get_ex(in->data, "tool", NULL) && !rv_interrupt_is_ask(in->data);

    if (has_tool)
        write_call(in, b);
    if (has_tool && in->kind == RV_INTERRUPT_CONFIRMATION)
        return;
    cli_write_lines(rv_str_of(in->question ? in->question : in->message), b);
    if (rv_interrupt_is_ask(in->data))
        write_choices(in->data, b);
    else
        rv_buf_puts(b, in->kind == RV_INTERRUPT_CONFIRMATION           ? " [y/N] "
                       : rv_interrupt_asks_outcome(in->kind, in->data) ? " [happened, not_happened, fail] "
                       : rv_interrupt_asks_input(in->kind, in->data)   ? " [accept JSON, decline, cancel] "
                       : in->kind == RV_INTERRUPT_AGENT_REVIEW         ? " [approve, reject, modify TEXT] "
                                                                       : " ");
}

static void ask(const struct rv_interrupt *in)
{
    rv_buf text = RV_BUF_INIT(MAX_QUESTION);

    write_question(in, &text);
    cli_say_text(&text);
}

/* The arguments as they are, whole, so that they can be copied. */
static void ask_arguments(const struct rv_interrupt *in)
{
    rv_buf text = RV_BUF_INIT(8 * RV_JSON_MAX_BYTES), arguments = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    write_arguments(in, &arguments);
    rv_buf_puts(&text, "  arguments now: ");
    cli_write_safe(rv_buf_str(&arguments), &text);
    rv_buf_puts(&text, "\n  the new arguments, all of them, as one line of JSON (an empty line goes back): ");
    cli_say_text(&text);
    rv_buf_fini(&arguments);
}

/* --- the answer --- */

struct answer {
    struct rv_cli_chat *chat;
    struct rv_chat_lines *lines;
    bool prompts;
    const struct rv_interrupt *in; /* the question */
    struct rv_response response;   /* borrows from here, the question and the line */
    char id[RV_ID_MAX];            /* of the interrupt, which the answer ends */
    json_object *arguments;        /* owned; NULL: unchanged */
};

static bool is_word(rv_str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.ptr, word, text.len) == 0;
}

/* The first word of a line; *rest is what follows it. */
static rv_str split(rv_str line, rv_str *rest)
{
    rv_str first = {line.ptr, 0};

    while (first.len < line.len && line.ptr[first.len] != ' ' && line.ptr[first.len] != '\t')
        first.len++;
    *rest = rv_str_trim((rv_str){line.ptr + first.len, line.len - first.len});
    return first;
}

static int next_line(struct answer *a, rv_str *line, rv_err **err)
{
    int rc = cli_chat_lines_next(a->lines, line, err);

    *line = rc > 0 ? rv_str_trim(*line) : RV_STR_LIT("");
    return rc == 0 ? RV_FAIL(err, RV_E_CANCELLED, "standard input ended before an answer") : rc;
}

/* Where the line can be edited, the arguments stand in it. */
static int edit_arguments(struct answer *a, rv_str *line, rv_err **err)
{
    rv_buf arguments = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    write_arguments(a->in, &arguments);
    int rc = rv_buf_check(&arguments, "arguments", err);
    if (rc == 0) {
        cli_say("  Enter makes the call with these arguments; an empty line goes back\n");
        rc = cli_chat_edit_line(a->chat->edit, a->lines, rv_buf_str(&arguments), line, err);
    }
    rv_buf_fini(&arguments);
    *line = rc > 0 ? rv_str_trim(*line) : RV_STR_LIT("");
    return rc == 0 ? RV_FAIL(err, RV_E_CANCELLED, "standard input ended before an answer") : rc;
}

/* "e", then a line of JSON, or both in one line. 0: back to the question. */
static int read_arguments(struct answer *a, rv_str json, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_ANSWER_MAX_ARGUMENTS, .what = "the arguments"};
    int rc = 1;

    if (json.len == 0 && a->prompts && !a->chat->edit)
        ask_arguments(a->in);
    if (json.len == 0)
        rc = a->prompts && a->chat->edit ? edit_arguments(a, &json, err) : next_line(a, &json, err);
    if (rc < 0 || json.len == 0)
        return rc < 0 ? rc : 0;
    rc = rv_json_parse(json, &opts, &a->arguments, err);
    if (rc == RV_E_NOMEM)
        return rc;
    if (rc == 0 && json_object_is_type(a->arguments, json_type_object)) {
        a->response.has_approved = a->response.approved = true;
        a->response.arguments = a->arguments;
        return 1;
    }
    rc = rc < 0
             ? RV_WRAP(err, RV_E_INVALID, "the arguments cannot be read")
             : RV_FAIL(err, RV_E_INVALID, "the arguments must be an object, not %s", rv_json_type_text(a->arguments));
    rv_err_set_hint(err, "write all arguments of the call, such as {\"path\": \"notes.txt\"}");
    return rc;
}

static int read_confirmation(struct answer *a, rv_str line, rv_err **err)
{
    rv_str rest, first = split(line, &rest);
    bool is_call = rv_interrupt_is_tool_call(a->in->kind, a->in->data);

    if (is_call && (is_word(first, "e") || is_word(first, "edit")))
        return read_arguments(a, rest, err);
    if (is_call && line.len > 0 && line.ptr[0] == '{') {
        int rc = RV_FAIL(err, RV_E_INVALID, "a line of JSON neither allows nor denies the call");
        rv_err_set_hint(err, "e JSON makes the call with these arguments, y with those that are shown, n denies it");
        return rc;
    }
    a->response.has_approved = true;
    a->response.approved = is_word(line, "y") || is_word(line, "yes");
    return 1;
}

/* The longest choice that the line begins with; what follows is the text. */
static int read_choice(struct answer *a, rv_str line)
{
    json_object *options = rv_json_get_arr(a->in->data, RV_ASK_OPTIONS);
    rv_str rest, choice = split(line, &rest);
    size_t n = options ? json_object_array_length(options) : 0, longest = 0;

    if (rv_ask_takes_text(a->in->data)) {
        a->response.text = line;
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        rv_str option = rv_json_str(json_object_array_get_idx(options, i));
        bool begins = option.len > longest && option.len <= line.len &&
                      strncasecmp(option.ptr, line.ptr, option.len) == 0 &&
                      (option.len == line.len || strchr(" \t,:;", line.ptr[option.len]));
        if (!begins)
            continue;
        choice = option;
        longest = option.len;
        rest = (rv_str){line.ptr + longest, line.len - longest};
        while (rest.len > 0 && strchr(" \t,:;", rest.ptr[0]))
            rest = (rv_str){rest.ptr + 1, rest.len - 1};
    }
    a->response.choice = choice.len > 0 ? choice : (rv_str){NULL, 0};
    a->response.text = rest.len > 0 ? rest : (rv_str){NULL, 0};
    return 1;
}

/* The values of a form follow as JSON. */
static int read_input(struct answer *a, rv_str line, rv_err **err)
{
    static const char *const words[] = {"accept", "decline", "cancel"};
    const struct rv_json_opts opts = {.what = "values of the form"};
    rv_str rest, first = split(line, &rest);

    for (size_t i = 0; i < RV_COUNT(words); i++) {
        if (!is_word(first, words[i]))
            continue;
        int rc = rest.len > 0 ? rv_json_parse(rest, &opts, &a->arguments, err) : 0;
        a->response.decision = rv_str_of(words[i]);
        a->response.data = a->arguments;
        return rc < 0 ? rc : 1;
    }
    return RV_FAIL(err, RV_E_INVALID, "\"%.*s\" does not answer the question: write accept JSON, decline or cancel",
                   RV_STR_ARG(line));
}

static int read_decision(struct answer *a, rv_str line, rv_err **err)
{
    static const char *const words[] = {"approve", "reject", "modify", "happened", "not_happened", "fail"};
    bool outcome = rv_interrupt_asks_outcome(a->in->kind, a->in->data);
    rv_str rest, first = split(line, &rest);

    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (is_word(first, words[i]) && outcome == (i >= 3)) {
            a->response.decision = rv_str_of(words[i]);
            a->response.text = rest.len > 0 ? rest : (rv_str){NULL, 0};
            return 1;
        }
    return RV_FAIL(err, RV_E_INVALID, "\"%.*s\" does not answer the question: write %s", RV_STR_ARG(line),
                   outcome ? "happened, not_happened or fail" : "approve, reject or modify TEXT");
}

/* One line read as an answer. 1: it is one, 0: ask again, RV_E_INVALID: why it is not one. */
static int read_answer(struct answer *a, rv_err **err)
{
    const struct rv_interrupt *in = a->in;
    rv_str line;

    json_object_put(a->arguments);
    a->arguments = NULL;
    a->response = (struct rv_response){.interrupt_id = a->id[0] ? rv_str_of(a->id) : (rv_str){NULL, 0}};
    if (a->prompts)
        ask(in);
    int rc = next_line(a, &line, err);
    if (rc < 0)
        return rc;
    rc = rv_interrupt_is_ask(in->data)                 ? read_choice(a, line)
         : in->kind == RV_INTERRUPT_CONFIRMATION       ? read_confirmation(a, line, err)
         : rv_interrupt_asks_input(in->kind, in->data) ? read_input(a, line, err)
         : in->kind == RV_INTERRUPT_AGENT_REVIEW       ? read_decision(a, line, err)
                                                       : 1;
    if (in->kind == RV_INTERRUPT_CLARIFICATION && !rv_interrupt_is_ask(in->data))
        a->response.text = line;
    if (rc <= 0)
        return rc;
    rc = rv_chat_check_answer(a->chat->in.chat, &a->response, err);
    return rc < 0 ? rc : 1;
}

/* Lines, until one of them answers the question. */
static int read_lines(struct answer *a, rv_err **err)
{
    int rc;

    while ((rc = read_answer(a, err)) != 1) {
        if (rc < 0 && (rc != RV_E_INVALID || !a->prompts))
            return rc;
        if (rc == 0)
            continue;
        cli_say("[error] ");
        cli_report(a->chat->cli, rv_err_steal(err));
    }
    return 0;
}

static int answer_one(struct rv_cli_chat *c, struct rv_chat_lines *lines, bool prompts, struct rv_chat_turn *turn,
                      rv_err **err)
{
    struct rv_interrupt in = turn->interrupt;
    struct answer a = {.chat = c, .lines = lines, .prompts = prompts, .in = &in};
    rv_str id = rv_utf8_cut(rv_str_of(in.id ? in.id : ""), sizeof a.id - 1);

    memcpy(a.id, id.ptr, id.len);
    json_object *data = json_object_get(in.data); /* a choice is borrowed from it, and the turn that goes on drops it */
    int rc = read_lines(&a, err);
    if (rc == 0)
        rc = cli_chat_turn(c, (rv_str){NULL, 0}, &a.response, turn, err);
    json_object_put(a.arguments);
    json_object_put(data);
    return rc;
}

int cli_chat_answer(struct rv_cli_chat *c, struct rv_chat_lines *lines, bool prompts, struct rv_chat_turn *turn,
                    rv_err **err)
{
    int rc = 0;

    while (rc == 0 && turn->status == RV_RUN_INTERRUPTED)
        rc = answer_one(c, lines, prompts, turn, err);
    return rc;
}
