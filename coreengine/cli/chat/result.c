/* What a turn came to: as an object for programs, and why it did not come to its end, for people. */
#include "coreengine/cli/chat/chat.h"
#include "coreengine/cli/runs/runs.h"

#include <string.h>

/* The row that was kept as the answer of a run. */
struct answer_row {
    const char *run_id;
    rv_buf id;
};

static int look(void *self, const struct rv_message *m, rv_err **err)
{
    struct answer_row *a = self;

    (void)err;
    if (!m->run_id || strcmp(m->run_id, a->run_id) != 0)
        return RV_STORE_ENOUGH;
    if (strcmp(m->type, rv_message_type_text(RV_MESSAGE_ASSISTANT)) != 0)
        return 0;
    rv_buf_puts(&a->id, m->id);
    return RV_STORE_ENOUGH;
}

static void write_message_id(const struct rv_cli_chat *c, const struct rv_chat_turn *turn, rv_jw *w)
{
    const struct rv_store_scope scope = rv_cli_chat_scope(c);
    const struct rv_message_filter newest = {.newest_first = true};
    struct answer_row answer = {.run_id = turn->run_id, .id = RV_BUF_INIT(RV_STORE_MAX_ID + 1)};

    if (turn->was_kept)
        RV_IGNORE(
            rv_store_read_messages(c->in.store, &scope, rv_chat_session(c->in.chat), &newest, look, &answer, NULL),
            "the answer is worth more than its id");
    if (answer.id.len > 0)
        rv_jw_kv_str(w, "message_id", rv_buf_str(&answer.id));
    rv_buf_fini(&answer.id);
}

static void write_usage(const struct rv_usage *u, rv_jw *w)
{
    rv_jw_key(w, "usage");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "input_tokens", u->input_tokens);
    rv_jw_kv_int(w, "output_tokens", u->output_tokens);
    if (u->cost_micro_usd > 0) {
        rv_jw_key(w, "cost_usd");
        rv_jw_double(w, (double)u->cost_micro_usd / 1e6);
        if (u->estimated)
            rv_jw_kv_bool(w, "estimated", true); /* at most that */
    }
    rv_jw_obj_end(w);
}

static void write_interrupt(const struct rv_interrupt *in, rv_jw *w)
{
    rv_jw_key(w, "interrupt");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "kind", rv_interrupt_kind_text(in->kind));
    rv_jw_kv_text(w, "id", in->id);
    rv_jw_kv_text(w, "question", in->question ? in->question : in->message);
    if (in->data)
        rv_jw_kv_value(w, "data", in->data);
    rv_jw_obj_end(w);
}

void rv_chat_write_result(const struct rv_cli_chat *c, const struct rv_chat_turn *turn, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "session_id", rv_chat_session(c->in.chat));
    rv_jw_kv_text(&w, "run_id", turn->run_id);
    rv_jw_kv_text(&w, "agent", turn->agent);
    rv_jw_kv_text(&w, "status", rv_run_status_text(turn->status));
    if (turn->status == RV_RUN_COMPLETED && turn->was_kept)
        rv_jw_kv_text(&w, "finish_reason", rv_finish_reason_text(turn->is_cut_off ? RV_FINISH_LENGTH : RV_FINISH_STOP));
    rv_jw_kv_str(&w, "text", turn->text);
    if (turn->output)
        rv_jw_kv_value(&w, "output", turn->output);
    if (turn->chained)
        rv_jw_kv_value(&w, "chained_tool_result", turn->chained);
    if (turn->chained_error)
        rv_jw_kv_text(&w, "chained_tool_error", turn->chained_error);
    write_usage(&turn->usage, &w);
    rv_jw_kv_int(&w, "latency_ms", turn->latency_ms);
    write_message_id(c, turn, &w);
    if (turn->status == RV_RUN_INTERRUPTED)
        write_interrupt(&turn->interrupt, &w);
    if (turn->error)
        rv_jw_kv_text(&w, "error", turn->error);
    rv_jw_kv_bool(&w, "stored", turn->was_kept && !rv_cli_flag(c->args, "no-store"));
    if (!turn->was_kept && turn->store_error && !rv_cli_flag(c->args, "no-store"))
        rv_jw_kv_text(&w, "store_error", turn->store_error);
    rv_jw_obj_end(&w);
    rv_buf_putc(b, '\n');
}

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
        rv_buf_putc(&text, '\n');
    }
    if (!turn->was_kept) {
        rv_buf_printf(&text, "%s[error]%s %s", red, plain,
                      rv_cli_flag(c->args, "no-store") ? "" : "the turn is not kept: ");
        rv_cli_write_lines(rv_str_of(turn->store_error ? turn->store_error : "it failed"), &text);
        rv_buf_putc(&text, '\n');
        status = RV_EXIT_FAILED;
    }
    rv_cli_err(rv_buf_str(&text));
    rv_buf_fini(&text);
    return status;
}
