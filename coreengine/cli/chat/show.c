/* A turn as a person watches it: words as they come on stdout, beneath labels that say whose they are, as the Markdown
 * that they are; on stderr a card for each call (what it was, how long it took, the beginning of its result or why it
 * failed), agent and action. What is shown is decided by the sink. */
#include "coreengine/app/app.h"
#include "coreengine/base/base.h"
#include "coreengine/cli/chat/chat_internal.h"
#include "coreengine/cli/markdown/markdown_internal.h"
#include "coreengine/cli/show/width_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LINE ((size_t)64 << 10) /* bytes of one line that is shown: some screens of a terminal */
#define MAX_ID   200                /* bytes of an id that is compared: providers make some 40; longer ones are cut */

#define OUTCOME_COLUMNS 10 /* "  999.9 s" */
#define MIN_CALL        20 /* columns of a call on its line, however narrow the terminal is */
#define PIPE_COLUMNS    80 /* of a result where no terminal shows it */

struct rv_chat_show {
    const struct rv_cli *cli;
    struct rv_chat_show_opts opts;
    struct rv_chat_sink sink;
    rv_cli_md *md;                        /* NULL: words are shown as they are; owned */
    char agent[RV_AGENTDOC_MAX_NAME + 1]; /* of the stage; "": not known yet */
    bool in_text;                         /* the last line of stdout has no end yet */
    bool in_call;                         /* that of stderr: the call of call_id has no result yet */
    int64_t call_id;
    size_t call_columns;    /* that its line has taken */
    json_object *acted;     /* what that call made known: told when its line has its end; NULL: nothing; owned */
    char done_call[MAX_ID]; /* by which the last agent that is done was asked: its result says nothing new */
    bool said_before;       /* the turn goes on behind its question, before which it has said something */
    bool left;              /* the reader of stdout is gone */
};

rv_chat_show *cli_chat_show_new(const struct rv_cli *cli, const struct rv_chat_show_opts *opts)
{
    rv_chat_show *s = calloc(1, sizeof *s);
    size_t columns;

    if (!s)
        return NULL;
    s->cli = cli;
    s->opts = *opts;
    rv_chat_sink_init(&s->sink);
    cli_terminal_size(&columns, NULL);
    if (!opts->plain && cli->out_tty && !(s->md = cli_md_new(cli->out_color, columns))) {
        cli_chat_show_free(s);
        return NULL;
    }
    return s;
}

void cli_chat_show_free(rv_chat_show *s)
{
    if (!s)
        return;
    rv_chat_sink_fini(&s->sink);
    cli_md_free(s->md);
    json_object_put(s->acted);
    free(s);
}

void cli_chat_show_begin(rv_chat_show *s)
{
    rv_chat_sink_on_turn(&s->sink);
    if (s->md)
        cli_md_begin(s->md);
    s->agent[0] = '\0';
    s->in_text = s->in_call = false;
}

static bool same_screen(const rv_chat_show *s)
{
    return s->cli->out_tty && s->cli->err_tty;
}

static void say(rv_chat_show *s, rv_str text)
{
    s->left = !cli_out_now(text) || s->left;
}

/* What waits for the end of its span or table, as it is known now. */
static void flush_words(rv_chat_show *s)
{
    rv_buf out = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);

    if (s->md)
        cli_md_flush(s->md, &out);
    say(s, rv_buf_str(&out));
    rv_buf_fini(&out);
}

static void end_call_line(rv_chat_show *s)
{
    if (s->in_call)
        cli_err(RV_STR_LIT("\n"));
    s->in_call = false;
}

/* Where both streams are one screen, a line must not begin in the middle of another. */
static void begin_line(rv_chat_show *s)
{
    end_call_line(s);
    if (s->in_text && same_screen(s)) {
        flush_words(s);
        say(s, RV_STR_LIT("\n"));
        s->in_text = false;
    }
}

/* A line on stderr, dim; open: its end comes with the result. Takes the text out of b. */
static void write_note(rv_chat_show *s, rv_buf *b, bool open)
{
    bool dim = s->cli->err_color;
    rv_buf line = RV_BUF_INIT(MAX_LINE);

    rv_buf_puts(&line, dim ? "\033[2m" : "");
    rv_buf_add_str(&line, rv_buf_str(b));
    rv_buf_puts(&line, dim ? "\033[0m" : "");
    rv_buf_puts(&line, open ? "" : "\n");
    cli_err(rv_buf_str(&line));
    rv_buf_fini(&line);
    rv_buf_clear(b);
}

void cli_chat_show_note(rv_chat_show *s, rv_str text)
{
    rv_buf line = RV_BUF_INIT(MAX_LINE);

    begin_line(s);
    cli_write_safe(text, &line);
    rv_buf_putc(&line, '\n');
    cli_err(rv_buf_str(&line));
    rv_buf_fini(&line);
}

/* --- words --- */

static void write_label(const rv_chat_show *s, const struct rv_origin *who, rv_buf *b)
{
    const char *name = who ? who->agent : s->agent;
    bool color = s->cli->out_color;

    if (!s->opts.labels)
        return;
    rv_buf_printf(b, "%*s%s", who ? 2 * who->depth : 0, "", color ? "\033[1m" : "");
    cli_write_safe(rv_str_of(name), b);
    rv_buf_printf(b, ">%s ", color ? "\033[0m" : "");
    if (s->md)
        cli_md_behind(s->md);
}

static void write_words(rv_chat_show *s, const struct rv_origin *who, const struct rv_chat_shown *shown)
{
    rv_buf out = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);

    if (same_screen(s))
        end_call_line(s);
    if (shown->begins_part) {
        if (s->md)
            cli_md_flush(s->md, &out);
        rv_buf_puts(&out, s->in_text ? "\n\n" : "\n");
    }
    bool broken = !s->in_text && !shown->begins_part; /* the first words, or lines of something else came between */
    if (s->md && (shown->new_speaker || shown->begins_part))
        cli_md_begin(s->md);
    if (shown->new_speaker || broken)
        write_label(s, who, &out);
    if (s->md) {
        cli_md_add(s->md, broken ? (rv_str){NULL, 0} : shown->gap, &out);
        cli_md_add(s->md, shown->text, &out);
    } else if (s->cli->out_tty) {
        cli_write_safe(broken ? (rv_str){NULL, 0} : shown->gap, &out);
        cli_write_safe(shown->text, &out);
    } else {
        rv_buf_add_str(&out, shown->gap);
        rv_buf_add_str(&out, shown->text);
    }
    say(s, rv_buf_str(&out));
    s->in_text = true;
    rv_buf_fini(&out);
}

/* Of those that waited for the floor. */
static void write_held(rv_chat_show *s)
{
    const struct rv_origin *who;
    struct rv_chat_shown shown;

    while (rv_chat_sink_next(&s->sink, &who, &shown))
        write_words(s, who, &shown);
}

bool cli_chat_show_delta(rv_chat_show *s, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    if (d->kind == RV_LLM_DELTA_TEXT) {
        const struct rv_chat_shown shown = rv_chat_sink_on_piece(&s->sink, from->origin, from->call_id, d->text);
        if (shown.is_shown)
            write_words(s, from->origin, &shown);
        write_held(s);
    }
    return !s->left;
}

void cli_chat_show_effect(rv_chat_show *s, const struct rv_effect *e)
{
    if (e->kind != RV_EFFECT_CALL_LLM || !e->pipeline)
        return;
    const struct rv_agent *a = &e->pipeline->agents[e->origin ? 0 : e->stage];

    int how = rv_agent_child_text_kind(e->pipeline, a);
    const struct rv_chat_speaker speaker = {.who = e->origin,
                                            .is_structured = a->output.schema != NULL,
                                            .child_text = how == RV_UNSET ? RV_CHILD_TEXT_FINAL : how,
                                            .resets = a->session.child_text_resets};

    rv_chat_sink_on_ask(&s->sink, &speaker);
    if (e->origin)
        return;
    rv_str name = rv_utf8_cut(rv_str_of(a->declared.name[0] ? a->declared.name : a->name), RV_AGENTDOC_MAX_NAME);
    memcpy(s->agent, name.ptr, name.len);
    s->agent[name.len] = '\0';
}

/* --- calls and agents --- */

static int64_t int_of(json_object *event, const char *key)
{
    int64_t n = 0;
    return rv_json_get_int(event, key, &n) ? n : 0;
}

static void indent(const struct rv_origin *who, int more, rv_buf *b)
{
    rv_buf_printf(b, "%*s", 2 + 2 * ((who ? who->depth : 0) + more), "");
}

static bool is_chained(json_object *event)
{
    bool chained = false;
    return rv_json_get_bool(event, "chained", &chained) && chained;
}

/* The columns of a line; where no terminal shows it, it is not cut. */
static size_t columns_of_line(const rv_chat_show *s)
{
    size_t columns = SIZE_MAX;

    if (s->cli->err_tty)
        cli_terminal_size(&columns, NULL);
    return columns;
}

/* A call that is longer than its line loses the end of its arguments, so that the outcome has room. */
static void cut_call(rv_buf *line, size_t columns)
{
    size_t room = columns > OUTCOME_COLUMNS + MIN_CALL ? columns - OUTCOME_COLUMNS : MIN_CALL;
    rv_str all = rv_buf_str(line);

    if (cli_width(all) <= room)
        return;
    rv_buf_truncate(line, cli_fitting(all, room - 4).len);
    rv_buf_puts(line, "...)");
}

static void write_call(const rv_chat_show *s, json_object *event, rv_buf *line)
{
    json_object *arguments = rv_json_get_obj(event, "arguments");
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    if (!arguments) /* events of older rules have only their beginning */
        rv_buf_puts(&text, rv_json_text_or(event, "params_preview", ""));
    else if (cli_chat_hide(arguments) == 0)
        rv_json_write(arguments, &text);
    cli_chat_write_call(rv_str_of(rv_json_text_or(event, "tool", "")), rv_buf_str(&text), line);
    cut_call(line, columns_of_line(s));
    rv_buf_fini(&text);
}

static void call_begins(rv_chat_show *s, const struct rv_effect *e, json_object *event)
{
    rv_buf line = RV_BUF_INIT(MAX_LINE);

    begin_line(s);
    indent(e->origin, 0, &line);
    rv_buf_puts(&line, "> ");
    if (is_chained(event)) { /* it gets the output as it is */
        cli_chat_write_line(rv_str_of(rv_json_text_or(event, "tool", "")), &line);
        rv_buf_puts(&line, " gets the output");
    } else {
        write_call(s, event, &line);
    }
    if (int_of(event, "attempt") > 1)
        rv_buf_puts(&line, " again");
    s->call_columns = cli_width(rv_buf_str(&line));
    write_note(s, &line, true);
    s->in_call = true;
    s->call_id = int_of(event, "call_id");
    rv_buf_fini(&line);
}

/* Why a call failed: on its line if that has room, else below it. */
static void write_failure(const rv_chat_show *s, const char *error, size_t depth, size_t used, rv_buf *b)
{
    size_t columns = columns_of_line(s);
    rv_buf reason = RV_BUF_INIT(MAX_LINE);

    cli_chat_write_line(rv_str_of(error), &reason);
    rv_buf_puts(b, "failed");
    if (columns == SIZE_MAX || used + strlen("  failed: ") + cli_width(rv_buf_str(&reason)) <= columns) {
        rv_buf_puts(b, ": ");
        rv_buf_add_str(b, rv_buf_str(&reason));
    } else {
        cli_chat_write_lines(rv_buf_str(&reason), depth + 2, columns, b);
    }
    rv_buf_fini(&reason);
}

/* Its time is not told of a chained call. used: columns of the line that are taken. */
static void write_outcome(const rv_chat_show *s, const struct rv_origin *who, json_object *event, const char *time_key,
                          size_t used, rv_buf *b)
{
    const char *error = rv_json_text_or(event, "error", "");
    size_t depth = 2 + 2 * (who ? (size_t)who->depth : 0);
    int64_t ms;

    rv_buf_puts(b, "  ");
    if (error[0]) {
        write_failure(s, error, depth, used, b);
    } else if (rv_json_get_int(event, time_key, &ms)) {
        cli_write_duration(b, ms * 1000);
    } else {
        rv_buf_puts(b, "done");
    }
}

static bool is_output(json_object *event)
{
    bool structured = false;
    return rv_json_get_bool(event, "structured", &structured) && structured;
}

/* A question is for the person: it is not dim, and said whatever else is. */
static void write_action(rv_chat_show *s, json_object *event)
{
    rv_buf line = RV_BUF_INIT(MAX_LINE);
    bool asks = strcmp(rv_json_text_or(event, "action_type", ""), "elicit") == 0;

    if (!asks && !s->opts.tools)
        return;
    begin_line(s);
    cli_chat_write_action(event, "  ", &line);
    if (asks)
        cli_chat_show_note(s, rv_buf_str(&line));
    else
        write_note(s, &line, false);
    rv_buf_fini(&line);
}

static void action(rv_chat_show *s, json_object *event)
{
    if (s->in_call && !s->acted)
        s->acted = json_object_get(event);
    else
        write_action(s, event);
}

static void tell_acted(rv_chat_show *s)
{
    json_object *event = s->acted;

    s->acted = NULL;
    if (event)
        write_action(s, event);
    json_object_put(event);
}

static void call_ends(rv_chat_show *s, const struct rv_effect *e, json_object *event)
{
    bool goes_on = s->in_call && s->call_id == int_of(event, "call_id"), asked;
    rv_buf line = RV_BUF_INIT(MAX_LINE);

    asked = strcmp(rv_json_text_or(event, "tool", ""), RV_TOOL_ASK_AGENT) == 0 &&
            strcmp(rv_json_text_or(event, "step_id", ""), s->done_call) == 0;
    if (!asked) {
        if (!goes_on) {
            begin_line(s);
            indent(e->origin, 0, &line);
            rv_buf_puts(&line, "< ");
            write_call(s, event, &line); /* others may have begun after it: it says again which one it is */
        }
        write_outcome(s, e->origin, event, "execution_time_ms",
                      goes_on ? s->call_columns : cli_width(rv_buf_str(&line)), &line);
        if (!s->acted && !rv_json_text_or(event, "error", "")[0]) { /* an action is told by itself */
            size_t columns = columns_of_line(s);
            cli_chat_write_result(event, 4 + 2 * (e->origin ? (size_t)e->origin->depth : 0),
                                  columns == SIZE_MAX ? PIPE_COLUMNS : columns, &line);
        }
        write_note(s, &line, false);
        s->in_call = false;
    }
    rv_buf_fini(&line);
    tell_acted(s);
}

static void agent_ends(rv_chat_show *s, const struct rv_effect *e, json_object *event)
{
    rv_str id = rv_utf8_cut(rv_str_of(e->origin->parent_tool_call_id), MAX_ID - 1);
    rv_buf line = RV_BUF_INIT(MAX_LINE);

    memcpy(s->done_call, id.ptr, id.len);
    s->done_call[id.len] = '\0';
    begin_line(s);
    indent(e->origin, -1, &line);
    rv_buf_puts(&line, "< ");
    cli_chat_write_line(rv_str_of(e->origin->agent), &line);
    write_outcome(s, e->origin, event, "duration_ms", cli_width(rv_buf_str(&line)), &line);
    write_note(s, &line, false);
    rv_buf_fini(&line);
}

static void remark(rv_chat_show *s, const char *head, const char *text)
{
    rv_buf line = RV_BUF_INIT(MAX_LINE);

    begin_line(s);
    rv_buf_printf(&line, "  ! %s", head);
    cli_chat_write_line(rv_str_of(text), &line);
    write_note(s, &line, false);
    rv_buf_fini(&line);
}

static void tell(rv_chat_show *s, const struct rv_effect *e, json_object *event)
{
    if (e->emit == RV_EMIT_ACTION)
        action(s, event);
    if (!s->opts.tools)
        return;
    if (e->emit == RV_EMIT_TOOL_CALL_START)
        call_begins(s, e, event);
    else if (e->emit == RV_EMIT_TOOL_RESULT && !is_output(event)) /* that stands at the end, laid out for people */
        call_ends(s, e, event);
    else if (e->emit == RV_EMIT_AGENT_COMPLETED)
        agent_ends(s, e, event);
    else if (e->emit == RV_EMIT_RETRY)
        remark(s, "trying again: ", rv_json_text_or(event, "error", ""));
    else if (e->emit == RV_EMIT_WARNING)
        remark(s, "", rv_json_text_or(event, "message", ""));
}

void cli_chat_show_event(rv_chat_show *s, const struct rv_effect *e, rv_str line)
{
    json_object *event = NULL;

    if (rv_app_read_event(line, &event,
                          RV_CODE_ONLY("without memory to read the event it is not shown; the store has it")) < 0)
        return;
    bool failed = rv_json_text_or(event, "error", "")[0] != '\0';
    if (e->emit == RV_EMIT_PIPELINE_STARTED)
        rv_chat_sink_on_run(&s->sink);
    else if (e->emit == RV_EMIT_LLM_RESULT)
        rv_chat_sink_on_reply(&s->sink, e->origin, failed);
    else if (e->emit == RV_EMIT_AGENT_COMPLETED)
        rv_chat_sink_on_done(&s->sink, e->origin, failed);
    write_held(s);
    tell(s, e, event);
    json_object_put(event);
}

/* --- the end --- */

static void write_whole(const rv_chat_show *s, rv_str text, rv_buf *out)
{
    if (s->md) {
        cli_md_add(s->md, text, out);
        cli_md_flush(s->md, out);
    } else {
        cli_write_safe(text, out);
    }
}

static void write_rest(const rv_chat_show *s, const struct rv_chat_turn *turn, rv_buf *out)
{
    bool has_said = s->sink.has_said || (s->said_before && turn->status != RV_RUN_COMPLETED);

    if (turn->is_structured && turn->output) {
        rv_buf_puts(out, s->sink.has_said ? "\n" : "");
        rv_json_write_pretty(turn->output, out);
    } else if (!has_said && turn->text.len && s->cli->out_tty) {
        write_label(s, NULL, out);
        write_whole(s, turn->text, out);
    } else if (!has_said) {
        rv_buf_add_str(out, turn->text);
    }
    if (out->len > 0)
        rv_buf_putc(out, '\n');
}

void cli_chat_show_end(rv_chat_show *s, const struct rv_chat_turn *turn)
{
    rv_buf out = RV_BUF_INIT(2 * RV_LLM_MAX_REPLY);

    rv_chat_sink_on_end(&s->sink);
    write_held(s);
    tell_acted(s); /* the turn ended before its call */
    end_call_line(s);
    if (s->in_text) {
        flush_words(s);
        say(s, RV_STR_LIT("\n"));
    }
    s->in_text = false;
    write_rest(s, turn, &out);
    s->said_before = turn->status == RV_RUN_INTERRUPTED && (s->said_before || s->sink.has_said);
    say(s, rv_buf_str(&out));
    rv_buf_fini(&out);
}
