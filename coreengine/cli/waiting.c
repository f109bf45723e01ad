/* What people are told of runs that wait: the question, and the command that answers it; and which question an answer
 * on the command line means. */
#include "coreengine/cli/cli.h"

#include "coreengine/base/base.h"

#include <string.h>

#define ASK_BYTES   300   /* of a question, in a message */
#define STORE_BYTES 16384 /* of the options of a command that is shown */
#define MAX_SHOWN   16384 /* bytes of an option's value in a command: four times RV_STORE_MAX_URL, for escapes */

/* "--choice yes   # or no, later": the first choice, and the others. */
static void write_choices(json_object *data, rv_buf *out)
{
    rv_buf all = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *options = rv_json_get_arr(data, RV_ASK_OPTIONS), *first = json_object_array_get_idx(options, 0);

    rv_buf_puts(out, "--choice ");
    cli_write_word(json_object_is_type(first, json_type_string) ? json_object_get_string(first) : "", out);
    rv_ask_write_options(data, &all);
    size_t head = first ? rv_json_str(first).len + 2 : 0; /* and the comma behind it */
    if (head < all.len) {
        rv_buf_puts(out, "   # or ");
        cli_write_safe((rv_str){rv_buf_cstr(&all) + head, all.len - head}, out);
    }
    rv_buf_fini(&all);
}

void cli_write_how_to_answer(enum rv_interrupt_kind kind, json_object *data, rv_buf *out)
{
    bool outcome = rv_interrupt_asks_outcome(kind, data);

    if (rv_interrupt_is_ask(data) && !rv_ask_takes_text(data))
        write_choices(data, out);
    else
        rv_buf_puts(
            out, rv_interrupt_asks_client(kind, data) ? "--data '{\"results\": {\"CALL\": {\"content\": \"...\"}}}'"
                 : rv_interrupt_asks_input(kind, data)
                     ? "--decision accept --data JSON   # or --decision decline, cancel; the form: schema in its data"
                 : outcome ? "--decision happened   # or not_happened, fail; its result: --data JSON"
                 : kind == RV_INTERRUPT_CLARIFICATION    ? "--text \"...\""
                 : rv_interrupt_is_tool_call(kind, data) ? "--approve   # or --deny; other arguments: --arguments JSON"
                 : kind == RV_INTERRUPT_CONFIRMATION     ? "--approve   # or --deny"
                 : kind == RV_INTERRUPT_AGENT_REVIEW     ? "--decision approve   # or reject, modify"
                                                         : "");
}

static void write_after_blank(enum rv_interrupt_kind kind, json_object *data, rv_buf *out)
{
    rv_buf_putc(out, ' ');
    cli_write_how_to_answer(kind, data, out);
}

/* --- the commands that people are told --- */

void cli_write_store(const struct rv_cli *cli, rv_buf *b)
{
    static const char *const names[] = {"store", "user", "tenant"};

    for (size_t i = 0; i < RV_COUNT(names); i++) {
        const char *value = cli_value(cli, names[i]);
        if (!value)
            continue;
        rv_buf shown = RV_BUF_INIT(MAX_SHOWN);
        if (strcmp(names[i], "store") == 0) /* without a password */
            rv_store_show_url(value, &shown);
        else
            rv_buf_puts(&shown, value);
        rv_buf_printf(b, " --%s ", names[i]);
        cli_write_word(rv_buf_cstr(&shown), b);
        rv_buf_fini(&shown);
    }
}

void cli_write_resume(const struct rv_cli *cli, const struct rv_pending *pending, bool is_only, rv_buf *b)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_BODY, .max_depth = RV_STATE_MAX_DEPTH};
    enum rv_interrupt_kind kind;
    json_object *body = NULL;
    bool is_due = false;

    rv_buf_puts(b, "reeve resume ");
    cli_write_word(pending->run, b);
    if (!is_only) {
        rv_buf_puts(b, " --interrupt ");
        cli_write_word(pending->id, b);
    }
    cli_write_store(cli, b);
    RV_IGNORE(rv_app_is_due(pending, rv_app_now_us(), &is_due, NULL), "a hint, no more");
    if (is_due)
        rv_buf_puts(b, "   # it goes on by the time-out");
    else if (rv_interrupt_kind_of(rv_str_of(pending->kind), &kind, NULL) == 0 &&
             rv_json_parse(pending->body, &opts, &body,
                           RV_CODE_ONLY("a hint: for a damaged question the command is shown without an answer")) == 0)
        write_after_blank(kind, rv_json_get_obj(body, "data"), b);
    rv_buf_putc(b, '\n');
    json_object_put(body);
}

/* --- what a run waits for --- */

struct question {
    enum rv_interrupt_kind kind;
    const char *id, *stage, *ask;
    json_object *data;
};

/* What a question with choices is about, and the choices. */
static void write_shown(json_object *data, rv_buf *b)
{
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_BODY);
    json_object *shown = NULL;
    const char *key = "";

    if (json_object_object_get_ex(data, RV_ASK_SHOWN, &shown)) {
        rv_json_write(shown, &text);
    } else {
        key = rv_json_text_or(data, "output_key", "");
        rv_buf_printf(&text, "(too long to show: output %s)", key);
    }
    rv_buf_puts(b, "  ");
    cli_write_lines(rv_buf_str(&text), b);
    rv_buf_puts(b, "\n  choices: ");
    rv_buf_clear(&text);
    rv_ask_write_options(data, &text);
    cli_write_safe(rv_ask_takes_text(data) ? RV_STR_LIT("any text") : rv_buf_str(&text), b);
    rv_buf_putc(b, '\n');
    rv_buf_fini(&text);
}

static void write_question(const struct rv_cli *cli, const struct question *q, bool several, const char *run, rv_buf *b)
{
    rv_buf_printf(b, "waits for %s (%s)", rv_interrupt_kind_text(q->kind), q->id);
    if (q->stage)
        rv_buf_printf(b, " in stage %s", q->stage);
    rv_buf_puts(b, ": ");
    cli_write_lines(rv_str_of(q->ask), b);
    rv_buf_putc(b, '\n');
    bool is_told = q->kind == RV_INTERRUPT_CLARIFICATION && json_object_object_get_ex(q->data, "output", NULL);
    if (rv_interrupt_is_ask(q->data)) {
        write_shown(q->data, b);
    } else if (q->data && !is_told) { /* the question of an output says what is wanted */
        rv_buf_puts(b, "  ");
        rv_json_write(q->data, b);
        rv_buf_putc(b, '\n');
    }
    rv_buf_puts(b, "answer with: reeve resume ");
    cli_write_word(run, b);
    if (several) {
        rv_buf_puts(b, " --interrupt ");
        cli_write_word(q->id, b);
    }
    cli_write_store(cli, b);
    write_after_blank(q->kind, q->data, b);
    rv_buf_putc(b, '\n');
}

void cli_say_pending(const struct rv_cli *cli, const rv_envelope *env, const rv_store *store, const char *word)
{
    struct rv_interrupt in = rv_envelope_interrupt(env);
    bool several = rv_envelope_n_queued(env) > 0;
    rv_buf text = RV_BUF_INIT(4 << 20);
    struct question q = {in.kind, in.id ? in.id : "", in.stage, in.question ? in.question : in.message, in.data};

    if (store)
        rv_buf_printf(&text, "run %s is kept in %s\n", word, rv_store_url(store));
    if (!q.ask)
        q.ask = "";
    write_question(cli, &q, several, word, &text);
    for (size_t i = 0; i < rv_envelope_n_queued(env); i++) {
        json_object *entry = rv_envelope_queued_at(env, i);
        const char *kind = entry ? rv_json_text_or(entry, "kind", NULL) : NULL;
        const char *ask = !entry                                     ? NULL
                          : rv_json_text_or(entry, "question", NULL) ? rv_json_text_or(entry, "question", NULL)
                                                                     : rv_json_text_or(entry, "message", NULL);
        if (!kind || rv_interrupt_kind_of(rv_str_of(kind), &q.kind, NULL) < 0)
            continue;
        q.id = rv_json_text_or(entry, "id", NULL) ? rv_json_text_or(entry, "id", NULL) : "";
        q.stage = rv_json_text_or(entry, "stage", NULL);
        q.ask = ask ? ask : "";
        q.data = rv_json_get_obj(entry, "data");
        write_question(cli, &q, several, word, &text);
    }
    cli_say_text(&text);
}

/* --- an answer --- */

static void write_why(const rv_err *why, rv_buf *out)
{
    if (!why)
        return;
    rv_buf_puts(out, rv_err_text(why));
    if (rv_err_hint_text(why))
        rv_buf_printf(out, "; %s", rv_err_hint_text(why));
}

bool cli_answer_fits(enum rv_interrupt_kind kind, json_object *data, const struct rv_response *r, rv_buf *out)
{
    /* Only the kinds with a form of their own. */
    static const char *const fitting[RV_N_INTERRUPT] = {[RV_INTERRUPT_CLARIFICATION] = "--text",
                                                        [RV_INTERRUPT_CONFIRMATION] = "--approve or --deny",
                                                        [RV_INTERRUPT_AGENT_REVIEW] =
                                                            "--decision approve, reject or modify"};
    const char *const given[] = {r->text.ptr ? "--text" : NULL,
                                 r->has_approved ? r->approved ? "--approve" : "--deny" : NULL,
                                 r->decision.ptr ? "--decision" : NULL, r->data ? "--data" : NULL};
    const char *sep = ", not ";
    rv_err *why = NULL;

    if (rv_interrupt_is_ask(data) || rv_interrupt_asks_input(kind, data) || r->choice.ptr || r->arguments) {
        bool fits = rv_answer_check(kind, data, r, &why) == 0;
        write_why(why, out);
        rv_err_free(why);
        return fits;
    }
    if (rv_app_answers(kind, data, r))
        return true;
    rv_buf_printf(out, "a %s takes %s", rv_interrupt_kind_text(kind),
                  rv_interrupt_asks_outcome(kind, data) ? "--decision happened, not_happened or fail" : fitting[kind]);
    for (size_t i = 0; i < RV_COUNT(given); i++)
        if (given[i]) {
            rv_buf_printf(out, "%s%s", sep, given[i]);
            sep = " and ";
        }
    return false;
}

struct commands {
    const struct rv_cli *cli;
    rv_buf lines; /* that answer all questions of a run */
};

static int add_command(void *self, const struct rv_pending *p, rv_err **err)
{
    struct commands *c = self;

    (void)err;
    cli_write_resume(c->cli, p, false, &c->lines);
    return 0;
}

/* What to do about it, in words of the command line. */
static void add_hint(const struct rv_cli *cli, const struct rv_run_row *row, int rc, rv_err **err)
{
    struct commands c = {.cli = cli, .lines = RV_BUF_INIT(1 << 20)};
    rv_buf where = RV_BUF_INIT(STORE_BYTES);

    RV_IGNORE(rv_store_list_pending(cli->store, &cli->app.scope, row->id, add_command, &c, NULL), "a hint, no more");
    cli_write_store(cli, &where);
    rv_str lines = rv_str_trim(rv_buf_str(&c.lines));
    if (rc == RV_E_TIMEOUT)
        rv_err_set_hint(
            err,
            "`reeve runs fork %s --at STEP --go%s` starts again from an earlier step, `reeve runs cancel %s%s` "
            "ends it",
            row->id, rv_buf_cstr(&where), row->id, rv_buf_cstr(&where));
    else if (rc == RV_E_INVALID)
        rv_err_set_hint(err, "name one with --interrupt:\n%.*s", RV_STR_ARG(lines));
    else if (lines.len > 0)
        rv_err_set_hint(err, "it waits for:\n%.*s", RV_STR_ARG(lines));
    rv_buf_fini(&c.lines);
    rv_buf_fini(&where);
}

static int check_fit(const struct rv_cli *cli, const struct rv_run_row *row, const struct rv_app_question *q,
                     const struct rv_response *response, rv_err **err)
{
    struct commands c = {.cli = cli, .lines = RV_BUF_INIT(1 << 20)};
    rv_buf misfit = RV_BUF_INIT(1024), ask = RV_BUF_INIT(4 * ASK_BYTES);
    int rc = 0;

    if (!cli_answer_fits(q->kind, q->data, response, &misfit)) {
        cli_write_preview(rv_buf_str(&q->text), ASK_BYTES, &ask);
        RV_IGNORE(rv_store_list_pending(cli->store, &cli->app.scope, row->id, add_command, &c, NULL),
                  "a hint, no more");
        rc = RV_FAIL(err, RV_E_INVALID, "%s; the run waits for %s: %s", rv_buf_cstr(&misfit),
                     rv_interrupt_kind_text(q->kind), rv_buf_cstr(&ask));
        rv_err_set_hint(err, "answer with: %.*s", RV_STR_ARG(rv_str_trim(rv_buf_str(&c.lines))));
    }
    rv_buf_fini(&c.lines);
    rv_buf_fini(&misfit);
    rv_buf_fini(&ask);
    return rc;
}

int cli_check_answer(const struct rv_cli *cli, const struct rv_run_row *row, struct rv_response *response,
                     char id[RV_STORE_MAX_ID + 1], bool *is_due, rv_err **err)
{
    struct rv_app_question q;

    int rc = rv_app_find_question(cli->store, &cli->app.scope, row, response->interrupt_id, &q, err);
    *is_due = rc == RV_E_TIMEOUT && rv_interrupt_is_ask(q.data);
    if (*is_due)
        rv_err_set_hint(err, "the run goes on by the time-out");
    else if (rc < 0)
        add_hint(cli, row, rc, err);
    else
        rc = check_fit(cli, row, &q, response, err);
    if (rc == 0) {
        memcpy(id, q.id, sizeof q.id);
        response->interrupt_id = rv_str_of(id);
    }
    rv_app_question_fini(&q);
    return rc;
}
