/* Who watches a turn: people, lines of --events, the recorder, --debug. One set of callbacks tells them all. */
#include "coreengine/cli/chat/chat.h"

#define MAX_LINE (2 * RV_LLM_MAX_REPLY)

/* The reader of stdout left, or the disk is full: the turn goes on to its end and is kept, the chat ends behind it. */
static void note_written(struct rv_cli_chat *c, bool written)
{
    c->reader_left = c->reader_left || !written;
}

/* The recorder has to know a pipeline's secrets and tools before the first answer. */
static void record_pipeline(struct rv_cli_chat *c, const struct rv_pipeline *p)
{
    struct rv_catalog catalog = rv_plugins_catalog(c->in.loaded.plugins);

    if (!p || p == c->recorded)
        return;
    c->recorded = p;
    if (c->in.loaded.script)
        catalog = rv_script_catalog(c->in.loaded.script, &catalog);
    rv_recorder_hide(c->recorder, p);
    rv_recorder_tools(c->recorder, p, &catalog);
}

/* A line of its own among what a person watches. */
static void write_debug(struct rv_cli_chat *c, const char *head, const char *provider, rv_str body)
{
    rv_buf line = RV_BUF_INIT(MAX_LINE + RV_JSON_MAX_BYTES);

    rv_buf_puts(&line, head);
    if (provider)
        rv_buf_printf(&line, " %s", provider);
    rv_buf_putc(&line, ' ');
    rv_buf_add_str(&line, body);
    if (c->show) {
        rv_chat_show_note(c->show, rv_buf_str(&line));
    } else {
        rv_buf_putc(&line, '\n');
        rv_cli_err(rv_buf_str(&line));
    }
    rv_buf_fini(&line);
}

static void on_effect(void *self, const struct rv_effects *all, const struct rv_effect *e)
{
    struct rv_cli_chat *c = self;

    (void)all;
    if (e->kind == RV_EFFECT_CALL_LLM && !e->origin)
        c->running = e->pipeline;
    if (c->recorder && (e->kind == RV_EFFECT_CALL_LLM || e->kind == RV_EFFECT_CALL_TOOL))
        record_pipeline(c, e->pipeline);
    if (c->show)
        rv_chat_show_effect(c->show, e);
    bool sent = !c->in.loaded.script || !rv_script_has_models(c->in.loaded.script); /* then on_payload tells */
    if (c->debug && !sent && e->kind == RV_EFFECT_CALL_LLM)
        write_debug(c, "request", NULL, (rv_str){e->request, e->request_len});
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct rv_cli_chat *c = self;

    if (c->events && !c->reader_left) {
        rv_cli_out(line);
        note_written(c, rv_cli_out_now(RV_STR_LIT("\n")));
    }
    c->has_end = e->emit == RV_EMIT_DONE;
    if (c->show)
        rv_chat_show_event(c->show, e, line);
    if (c->recorder)
        rv_recorder_event(c->recorder, e, line);
}

static void print_delta(struct rv_cli_chat *c, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    rv_buf line = RV_BUF_INIT(MAX_LINE);

    rv_cli_write_delta(c->running, from, d, &line);
    note_written(c, rv_cli_out_now(rv_buf_str(&line)));
    rv_buf_fini(&line);
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct rv_cli_chat *c = self;

    if (c->deltas && !c->reader_left)
        print_delta(c, from, d);
    if (c->show)
        note_written(c, rv_chat_show_delta(c->show, from, d));
    return true;
}

static void on_piece(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct rv_cli_chat *c = self;

    rv_recorder_delta(c->recorder, from->stage, from->call_id, d, rv_engine_now_us(c->in.engine));
}

static void on_payload(void *self, int64_t call_id, const char *provider, rv_str body)
{
    struct rv_cli_chat *c = self;

    (void)call_id;
    if (c->debug)
        write_debug(c, "payload", provider, body);
}

static void on_input(void *self, const struct rv_event *ev)
{
    struct rv_cli_chat *c = self;

    if (c->recorder)
        rv_recorder_input(c->recorder, ev);
}

/* What can be turned on later is always listened to. */
void rv_cli_chat_watch(struct rv_cli_chat *c, struct rv_chat_opts *opts)
{
    opts->self = c;
    opts->on_payload = on_payload;
    opts->on_effect = on_effect;
    if (c->events || c->show || c->recorder)
        opts->on_event = on_event;
    if (c->deltas || c->show)
        opts->on_delta = on_delta;
    if (c->recorder) {
        opts->on_input = on_input;
        opts->on_piece = on_piece;
    }
}

int rv_cli_chat_turn(struct rv_cli_chat *c, rv_str message, const struct rv_response *response,
                     struct rv_chat_turn *out, rv_err **err)
{
    if (c->show)
        rv_chat_show_begin(c->show);
    c->recorded = c->running = NULL;
    c->has_end = false;
    rv_chat_signals_turn(true);
    int rc = response ? rv_chat_answer(c->in.chat, response, out, err) : rv_chat_say(c->in.chat, message, out, err);
    rv_chat_signals_turn(false);
    if (rc < 0 && c->events && !c->has_end) /* it could not even begin */
        note_written(c, rv_cli_tell_end(NULL, *err));
    if (c->recorder)
        rv_recorder_run_over(c->recorder);
    if (c->show && rc == 0)
        rv_chat_show_end(c->show, out);
    return rc;
}
