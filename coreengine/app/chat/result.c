/* What a turn came to, as people and programs are told. A turn that could not be written is a turn all the same. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/chat/chat_internal.h"

/* The output under a key of the run's only stage; borrowed. */
static json_object *output_of(const rv_chat *chat, const rv_envelope *env, const char *suffix)
{
    rv_buf key = RV_BUF_INIT(4096);

    rv_buf_printf(&key, "%s%s", chat->with->pipeline->agents[0].output.key, suffix);
    json_object *out = key.rc == 0 ? rv_envelope_output(env, rv_buf_str(&key), NULL) : NULL;
    rv_buf_fini(&key);
    return out;
}

/* What was kept of the agent's words: the assistant's rows of this run, the newest first; that one is the answer. */
struct kept {
    const char *run_id;
    rv_buf *text;
    char *id; /* RV_STORE_MAX_ID + 1 bytes */
    bool found, is_cut_off;
};

/* Put before what was said later. */
static void say_before(rv_str words, rv_buf *text)
{
    rv_buf later = *text;

    *text = RV_BUF_INIT(later.max);
    rv_buf_add_str(text, words);
    if (words.len > 0 && later.len > 0)
        rv_buf_puts(text, "\n\n");
    rv_buf_add_str(text, rv_buf_str(&later));
    if (later.rc < 0) /* the text is not whole, and the reason must be shown */
        text->rc = later.rc;
    rv_buf_fini(&later);
}

/* The row's metadata says it where the model did not end the answer by itself. */
static int read_finish(const struct rv_message *m, bool *is_cut_off, rv_err **err)
{
    json_object *metadata = NULL;
    const char *why = NULL;
    rv_err *cause = NULL;

    int rc = m->metadata.len > 0 ? rv_json_parse(m->metadata, NULL, &metadata, &cause) : 0;
    bool no_memory = rv_err_is(cause, RV_E_NOMEM);
    rv_err_free(cause);
    *is_cut_off = rc == 0 && rv_json_get_text(metadata, "finish_reason", &why) &&
                  strcmp(why, rv_finish_reason_text(RV_FINISH_LENGTH)) == 0;
    json_object_put(metadata);
    return no_memory ? RV_FAIL(err, RV_E_NOMEM, "read an answer") : 0;
}

static int look(void *self, const struct rv_message *m, rv_err **err)
{
    struct kept *k = self;

    if (!m->run_id || strcmp(m->run_id, k->run_id) != 0)
        return RV_STORE_ENOUGH;
    if (strcmp(m->type, "assistant") != 0)
        return 0;
    say_before(m->content, k->text);
    if (k->found)
        return 0;
    k->found = true;
    snprintf(k->id, RV_STORE_MAX_ID + 1, "%s", m->id);
    return read_finish(m, &k->is_cut_off, err);
}

/* *found false: none was kept, as of a turn whose session was deleted while it was under way. */
static int kept_text(rv_chat *chat, bool *found, bool *is_cut_off, rv_err **err)
{
    rv_err *cause = NULL;
    struct rv_store_scope scope = chat_scope(chat);
    const struct rv_message_filter newest = {.newest_first = true, .for_agents = true};
    struct kept k = {.run_id = chat->run_id, .text = &chat->text, .id = chat->answer_id};

    int rc = rv_store_read_messages(chat->opts.store, &scope, &(const struct rv_messages_of){chat->session_id, &newest},
                                    look, &k, &cause);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        cause = NULL;
        rc = 0;
    }
    if (rc == 0)
        rc = rv_buf_check(&chat->text, "an answer", &cause);
    if (rc < 0)
        return rv_err_pass(err, cause);
    *found = k.found;
    *is_cut_off = k.is_cut_off;
    return 0;
}

/* What would have been kept as the answer, of a turn that the store refused. */
static int unkept_text(rv_chat *chat, bool *found, rv_err **err)
{
    const struct rv_turn *turn = rv_exec_unkept(chat->exec);

    *found = false;
    for (size_t i = turn ? turn->n_rows : 0; i-- > 0;) {
        const struct rv_message *m = &turn->rows[i];
        if (m->parent_call_id || strcmp(m->type, "assistant") != 0)
            continue;
        say_before(m->content, &chat->text);
        *found = true;
    }
    return rv_buf_check(&chat->text, "an answer", err);
}

/* Read the result from the run itself: the session in the store has no answer of the run. */
static void own_text(rv_chat *chat)
{
    json_object *text = NULL;

    if (chat->with->pipeline->agents[0].output.schema)
        rv_json_write(chat->output, &chat->text);
    else if (chat->output && json_object_object_get_ex(chat->output, "response", &text))
        rv_buf_add_str(&chat->text, rv_json_str(text));
}

static const char *chained_error(json_object *result)
{
    const char *status = NULL, *text = NULL;

    if (!rv_json_get_text(result, "status", &status) || strcmp(status, "error") != 0)
        return NULL;
    return rv_json_get_text(result, "error", &text) ? text : "it failed";
}

static int fill(rv_chat *chat, const rv_envelope *env, rv_err **err)
{
    struct rv_chat_turn *out = &chat->turn;
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const struct rv_agent *a = &chat->with->pipeline->agents[0];
    bool found = false;

    chat->answer_id[0] = '\0';
    json_object_put(chat->output); /* of before it waited */
    json_object_put(chat->chained);
    chat->output = json_object_get(output_of(chat, env, ""));
    chat->chained = json_object_get(output_of(chat, env, "_chained"));
    int rc = out->was_kept ? kept_text(chat, &found, &out->is_cut_off, err) : 0;
    if (rc == 0 && !found && out->status == RV_RUN_COMPLETED)
        own_text(chat);
    out->message_id = chat->answer_id[0] ? chat->answer_id : NULL;
    out->is_structured = a->output.schema != NULL;
    out->output = out->is_structured ? chat->output : NULL;
    out->chained = chat->chained;
    out->chained_error = chained_error(chat->chained);
    out->text = rv_buf_str(&chat->text);
    out->usage = rv_envelope_used(env).usage;
    out->error = out->status == RV_RUN_COMPLETED || out->status == RV_RUN_INTERRUPTED ? NULL : f->termination_reason;
    out->code = f->terminal_reason == RV_REASON_QUOTA ? rv_failure_text(RV_FAILURE_QUOTA_EXCEEDED)
                                                      : rv_failure_text(rv_envelope_failure(env, NULL));
    if (out->status == RV_RUN_INTERRUPTED)
        out->interrupt = rv_envelope_interrupt(env);
    return rc;
}

int chat_result(rv_chat *chat, int run_rc, rv_err *run_err, rv_err **err)
{
    struct rv_chat_turn *out = &chat->turn;
    const rv_envelope *env = chat->exec ? rv_exec_envelope(chat->exec) : NULL;

    rv_buf_clear(&chat->text);
    rv_buf_clear(&chat->store_error);
    if (!env || rv_err_is(run_err, RV_E_NOMEM)) { /* the run never began, or its result cannot be read */
        if (run_rc == 0)
            return RV_FAIL(err, RV_E_INTERNAL, "a turn has no state");
        rv_err_pass(err, run_err);
        return run_rc;
    }
    out->status = run_rc < 0 ? RV_RUN_FAILED : rv_exec_status(chat->exec);
    chat->waits = out->status == RV_RUN_INTERRUPTED;
    out->run_id = chat->run_id;
    out->agent = chat->with->agent;
    out->was_kept = run_rc == 0;
    out->latency_ms = (rv_engine_now_us(chat->opts.engine) - chat->began_us) / RV_US_PER_MS;
    if (run_rc < 0) {
        rv_err_write_chain(run_err, &chat->store_error);
        out->store_error = rv_buf_cstr(&chat->store_error);
    }
    int rc = fill(chat, env, err);
    if (run_rc < 0 && rc == 0) { /* the text so far is not lost to the caller */
        bool found = false;
        rv_buf_clear(&chat->text);
        rc = unkept_text(chat, &found, err);
        if (rc == 0 && !found && chat->output)
            own_text(chat);
        out->text = rv_buf_str(&chat->text);
    }
    if (run_rc < 0) {
        out->error = out->store_error;
        out->code = rv_code_text(rv_err_code(run_err));
    }
    rv_err_free(run_err);
    return rc;
}

/* --- as an object for programs --- */

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
    if (turn->message_id)
        rv_jw_kv_text(&w, "message_id", turn->message_id);
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
