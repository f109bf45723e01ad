/* What a turn came to, as an object for programs. */
#include <string.h>

#include "coreengine/app/talk.h"

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

static void write_message_id(const struct rv_app_chat *c, const struct rv_chat_turn *turn, rv_jw *w)
{
    const struct rv_store_scope *of = &c->app->scope;
    const struct rv_store_scope scope = {.tenant = of->tenant, .user = of->user ? of->user : ""};
    const struct rv_message_filter newest = {.newest_first = true};
    struct answer_row answer = {.run_id = turn->run_id, .id = RV_BUF_INIT(RV_STORE_MAX_ID + 1)};

    if (turn->was_kept)
        RV_IGNORE(rv_store_read_messages(c->store, &scope, rv_chat_session(c->chat), &newest, look, &answer, NULL),
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

void rv_app_chat_write(const struct rv_app_chat *c, const struct rv_chat_turn *turn, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "session_id", rv_chat_session(c->chat));
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
    if (turn->error && turn->code)
        rv_jw_kv_text(&w, "code", turn->code);
    rv_jw_kv_bool(&w, "stored", turn->was_kept && !c->app->no_store);
    if (!turn->was_kept && turn->store_error && !c->app->no_store)
        rv_jw_kv_text(&w, "store_error", turn->store_error);
    rv_jw_obj_end(&w);
}
