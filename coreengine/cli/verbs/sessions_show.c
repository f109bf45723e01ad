/* reeve sessions show: a conversation for people. */
#include "coreengine/app/rows.h"
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <string.h>

#define PREVIEW 400 /* bytes of arguments and results that people see */

struct picture {
    const struct rv_cli *cli;
    rv_buf *out;
    int64_t n;
};

static const char *mark(const struct picture *p, const char *color)
{
    return p->cli->out_color ? color : "";
}

static void write_status(const struct picture *p, const struct rv_message *m)
{
    if (m->status && strcmp(m->status, rv_turn_status_text(RV_TURN_COMPLETED)) != 0)
        rv_buf_printf(p->out, "  %s[%s]%s", mark(p, "\033[31m"), m->status, mark(p, "\033[0m"));
}

static void write_took(const struct picture *p, const struct rv_message *m)
{
    if (m->model && m->model[0])
        rv_buf_printf(p->out, ", %s", m->model);
    if (m->input_tokens > 0 || m->output_tokens > 0) {
        rv_buf_puts(p->out, ", ");
        rv_app_write_count(p->out, m->input_tokens > 0 ? m->input_tokens : 0);
        rv_buf_puts(p->out, " in, ");
        rv_app_write_count(p->out, m->output_tokens > 0 ? m->output_tokens : 0);
        rv_buf_puts(p->out, " out");
    }
    if (m->latency_ms > 0) {
        rv_buf_puts(p->out, ", ");
        rv_cli_write_duration(p->out, m->latency_ms * 1000);
    }
}

/* A child's rows stand further in. */
static void indent(const struct picture *p, const struct rv_message *m, int depth)
{
    for (int i = 0; i < depth + (m->parent_call_id ? 2 : 0); i++)
        rv_buf_puts(p->out, "  ");
}

static void write_said(const struct picture *p, const struct rv_message *m, const char *who)
{
    indent(p, m, 0);
    rv_buf_printf(p->out, "%s%s%s  ", mark(p, "\033[1m"), who, mark(p, "\033[0m"));
    rv_cli_write_moment(p->out, m->created_us);
    write_took(p, m);
    write_status(p, m);
    rv_buf_putc(p->out, '\n');
    if (m->content.len) {
        indent(p, m, 1);
        rv_cli_write_lines(m->content, p->out);
        rv_buf_putc(p->out, '\n');
    }
}

static void write_call(const struct picture *p, const struct rv_message *m)
{
    rv_buf arguments = RV_BUF_INIT(RV_APP_MAX_TEXT);
    struct rv_app_tool_call call;
    json_object *json = NULL;

    rv_app_tool_call_read(m, &json, &call);
    if (call.arguments)
        rv_json_write(call.arguments, &arguments);
    indent(p, m, 1);
    rv_buf_puts(p->out, "-> ");
    rv_cli_write_preview(rv_str_of(call.name), PREVIEW, p->out);
    rv_buf_putc(p->out, ' ');
    rv_cli_write_preview(rv_buf_str(&arguments), PREVIEW, p->out);
    write_status(p, m);
    rv_buf_putc(p->out, '\n');
    rv_buf_fini(&arguments);
    json_object_put(json);
}

static void write_result(const struct picture *p, const struct rv_message *m)
{
    indent(p, m, 1);
    rv_buf_puts(p->out, "<- ");
    rv_cli_write_preview(m->content, PREVIEW, p->out);
    write_status(p, m);
    rv_buf_putc(p->out, '\n');
}

static int take_message(void *self, const struct rv_message *m, rv_err **err)
{
    struct picture *p = self;

    (void)err;
    p->n++;
    if (strcmp(m->type, rv_message_type_text(RV_MESSAGE_TOOL_CALL)) == 0)
        write_call(p, m);
    else if (strcmp(m->type, rv_message_type_text(RV_MESSAGE_TOOL_RESPONSE)) == 0)
        write_result(p, m);
    else if (strcmp(m->type, rv_message_type_text(RV_MESSAGE_ASSISTANT)) == 0)
        write_said(p, m, m->agent_name && m->agent_name[0] ? m->agent_name : m->type);
    else
        write_said(p, m, m->type);
    return 0;
}

static void write_head(const struct picture *p, const struct rv_session_row *row)
{
    rv_buf *b = p->out;

    rv_buf_printf(b, "%ssession ", mark(p, "\033[1m"));
    rv_cli_write_preview(rv_str_of(row->id), PREVIEW, b);
    rv_buf_printf(b, "%s\n  name     ", mark(p, "\033[0m"));
    rv_cli_write_preview(rv_str_of(row->name), PREVIEW, b);
    rv_buf_puts(b, "\n  agent    ");
    rv_cli_write_preview(rv_str_of(row->agent_name && row->agent_name[0] ? row->agent_name : "-"), PREVIEW, b);
    rv_buf_puts(b, "\n  user     ");
    rv_cli_write_preview(rv_str_of(row->user[0] ? row->user : "-"), PREVIEW, b);
    rv_buf_puts(b, "\n  status   ");
    rv_buf_puts(b, row->status);
    rv_buf_puts(b, "\n  tokens   ");
    rv_app_write_count(b, row->total_tokens);
    rv_buf_puts(b, "\n  begun    ");
    rv_cli_write_moment(b, row->created_us);
    rv_buf_puts(b, "\n  touched  ");
    rv_cli_write_moment(b, row->updated_us);
    rv_buf_puts(b, "\n\n");
}

static int show_session(rv_store *store, const struct rv_cli *cli, const struct rv_cli_args *args, rv_buf *text,
                        rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct rv_message_filter filter = {.with_children = rv_cli_flag(args, "children")};
    struct picture p = {.cli = cli, .out = text};
    struct rv_session_row row = {0};

    int rc = rv_store_get_session(store, &scope, args->words[0], &row, err);
    if (rc == 0 && rv_cli_flag(args, "json")) {
        rv_jw w = rv_jw_on(text);
        rv_app_session_json(&row, &w);
        rv_buf_putc(text, '\n');
    } else if (rc == 0) {
        write_head(&p, &row);
        rc = rv_store_read_messages(store, &scope, row.id, &filter, take_message, &p, err);
        if (rc >= 0 && p.n == 0)
            rv_buf_puts(text, "nothing was said yet\n");
    }
    rv_session_row_fini(&row);
    return rc < 0 ? rc : 0;
}

static int show(struct rv_cli *cli, const struct rv_cli_args *args)
{
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (!rv_cli_runs_open(cli, RV_APP_STORE_READ, &store, &status))
        return status;
    if (show_session(store, cli, args, &text, &err) < 0) {
        status = rv_cli_report(cli, err);
        rv_buf_fini(&text);
    } else {
        status = rv_cli_print(cli, &text);
    }
    rv_store_close(store);
    return status;
}

static const struct rv_cli_option options[] = {
    {"children", 'c', NULL, "include the messages and calls of delegated agents", NULL, false},
    {"json", 'j', NULL, "print the session as one JSON object, without messages", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
};

const struct rv_cli_verb rv_verb_sessions_show = {
    .name = "sessions show",
    .args = "SESSION",
    .summary = "show a conversation",
    .text =
        "Prints messages whole and in order; tool calls and their results are indented and shortened. Messages that\n"
        "did not succeed are marked [failed] or [cancelled].",
    .examples = "reeve sessions show 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2\n"
                "reeve sessions show 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 --children | less",
    .options = options,
    .n_options = RV_COUNT(options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_sessions,
    .run = show,
};
