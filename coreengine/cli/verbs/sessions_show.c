/* reeve sessions show, messages, export: a conversation for people, as rows for programs, and as a document. */
#include "coreengine/app/app.h"
#include "coreengine/cli/verbs/verbs_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ROW_BYTES       ((size_t)512 << 20) /* of a message as JSON: RV_STORE_MAX_VALUE with its escapes */
#define FIRST_MESSAGE_CHARS 100                 /* of the message that a session begins with, in its head */
#define PREVIEW             400                 /* bytes of arguments and results that people see */

/* --- which: an id, or "last" --- */

static int take_id(void *self, const struct rv_session_row *row, rv_err **err)
{
    char **id = self;

    *id = rv_str_dup(rv_str_of(row->id));
    return *id ? RV_STORE_ENOUGH : RV_FAIL(err, RV_E_NOMEM, "find a session");
}

int cli_find_session(const struct rv_cli *cli, struct rv_session_row *out, rv_err **err)
{
    const struct rv_session_filter newest = {.limit = 1};
    const char *word = cli->words[0];
    char *id = NULL;
    rv_err *cause = NULL;
    int rc = rv_store_get_session(cli->store, &cli->app.scope, word, out, &cause);

    if (rc != RV_E_NOT_FOUND || strcmp(word, "last") != 0)
        return rv_err_pass(err, cause);
    rv_err_free(cause);
    rc = rv_store_list_sessions(cli->store, &cli->app.scope, &newest, take_id, &id, err);
    if (rc == 0 && !id)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "the store has no session yet");
    if (rc == 0)
        rc = rv_store_get_session(cli->store, &cli->app.scope, id, out, err);
    free(id);
    return rc;
}

/* --- show --- */

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
        cli_write_duration(p->out, m->latency_ms * RV_US_PER_MS);
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
    cli_write_moment(p->out, m->created_us);
    write_took(p, m);
    write_status(p, m);
    rv_buf_putc(p->out, '\n');
    if (m->content.len) {
        indent(p, m, 1);
        cli_write_lines(m->content, p->out);
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
    cli_write_preview(rv_str_of(call.name), PREVIEW, p->out);
    rv_buf_putc(p->out, ' ');
    cli_write_preview(rv_buf_str(&arguments), PREVIEW, p->out);
    write_status(p, m);
    rv_buf_putc(p->out, '\n');
    rv_buf_fini(&arguments);
    json_object_put(json);
}

static void write_result(const struct picture *p, const struct rv_message *m)
{
    indent(p, m, 1);
    rv_buf_puts(p->out, "<- ");
    cli_write_preview(m->content, PREVIEW, p->out);
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
    cli_write_preview(rv_str_of(row->id), PREVIEW, b);
    rv_buf_printf(b, "%s\n  name     ", mark(p, "\033[0m"));
    cli_write_preview(rv_str_of(row->name), PREVIEW, b);
    rv_buf_puts(b, "\n  agent    ");
    cli_write_preview(rv_str_of(row->agent_name && row->agent_name[0] ? row->agent_name : "-"), PREVIEW, b);
    rv_buf_puts(b, "\n  user     ");
    cli_write_preview(rv_str_of(row->user[0] ? row->user : "-"), PREVIEW, b);
    rv_buf_puts(b, "\n  status   ");
    rv_buf_puts(b, row->status);
    rv_buf_puts(b, "\n  tokens   ");
    rv_app_write_count(b, row->total_tokens);
    rv_buf_puts(b, "\n  begun    ");
    cli_write_moment(b, row->created_us);
    rv_buf_puts(b, "\n  touched  ");
    cli_write_moment(b, row->updated_us);
    rv_buf_puts(b, "\n\n");
}

static int show(struct rv_cli *cli, rv_err **err)
{
    struct rv_message_filter filter = {.with_children = cli_flag(cli, "children")};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    struct picture p = {.cli = cli, .out = &text};
    struct rv_session_row row = {0};

    int rc = cli_find_session(cli, &row, err);
    if (rc == 0 && cli_flag(cli, "json")) {
        rv_jw w = rv_jw_on(&text);
        rv_app_session_write(&row, &w);
        rv_buf_putc(&text, '\n');
    } else if (rc == 0) {
        write_head(&p, &row);
        rc = rv_store_read_messages(cli->store, &cli->app.scope, &(const struct rv_messages_of){row.id, &filter},
                                    take_message, &p, err);
        if (rc >= 0 && p.n == 0)
            rv_buf_puts(&text, "nothing was said yet\n");
    }
    rv_session_row_fini(&row);
    return cli_print(rc < 0 ? rc : 0, &text, err);
}

/* --- messages --- */

static int print_row(void *self, const struct rv_message *m, rv_err **err)
{
    const char *session = self;
    rv_buf line = RV_BUF_INIT(MAX_ROW_BYTES);
    rv_jw w = rv_jw_on(&line);

    rv_app_message_write(session, m, &w);
    rv_buf_putc(&line, '\n');
    int rc = rv_buf_check(&line, "message", err);
    if (rc == 0)
        cli_out(rv_buf_str(&line));
    rv_buf_fini(&line);
    return rc;
}

static int messages(struct rv_cli *cli, rv_err **err)
{
    struct rv_message_filter filter = {.newest_first = cli_flag(cli, "newest"),
                                       .with_children = cli_flag(cli, "children")};
    struct rv_session_row row = {0};

    int rc = cli_int(cli, "limit", 0, 1000000000, &filter.limit, err);
    if (rc == 0)
        rc = cli_find_session(cli, &row, err);
    if (rc == 0)
        rc = rv_store_read_messages(cli->store, &cli->app.scope, &(const struct rv_messages_of){row.id, &filter},
                                    print_row, (void *)(uintptr_t)row.id, err);
    rv_session_row_fini(&row);
    return rc < 0 ? rc : RV_EXIT_COMPLETED;
}

/* --- export --- */

struct document {
    rv_buf head, messages;
    bool has_first; /* what a person said first stands in the head */
};

/* What the part of a conversation is called elsewhere. */
static const char *role_of(const char *type)
{
    if (strcmp(type, rv_message_type_text(RV_MESSAGE_TOOL_CALL)) == 0)
        return "assistant";
    if (strcmp(type, rv_message_type_text(RV_MESSAGE_TOOL_RESPONSE)) == 0)
        return "tool";
    return type;
}

static void put_text(rv_buf *b, int depth, const char *key, rv_str text)
{
    rv_buf_printf(b, "%*s%s: ", 2 * depth, "", key);
    rv_app_write_yaml(text, depth, b);
}

static void put_time(rv_buf *b, int depth, const char *key, int64_t us)
{
    char text[RV_TIME_MAX];

    rv_time_format(us, text);
    put_text(b, depth, key, rv_str_of(text));
}

/* JSON of a row. Text that is not JSON, other types and empty objects are left out. */
static void put_object(rv_buf *b, int depth, const char *key, rv_str text, bool listed)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE};
    json_object *json = NULL;

    int rc = text.len > 0
                 ? rv_json_parse(text, &opts, &json,
                                 RV_CODE_ONLY("text that is not JSON is left out; want of memory fails the buffer"))
                 : RV_E_PARSE;
    if (rc == RV_E_NOMEM && b->rc == 0)
        b->rc = rc;
    if (rc < 0)
        return;
    if (json_object_is_type(json, json_type_object) && json_object_object_length(json) > 0) {
        rv_buf_printf(b, "%*s%s: %s", 2 * depth, "", key, listed ? "\n" : "");
        if (listed)
            rv_buf_printf(b, "%*s- ", 2 * depth + 2, "");
        rv_app_yaml_write(json, b);
    }
    json_object_put(json);
}

static int add_message(void *self, const struct rv_message *m, rv_err **err)
{
    struct document *d = self;
    rv_buf *b = &d->messages;

    if (!d->has_first && strcmp(m->type, rv_message_type_text(RV_MESSAGE_USER)) == 0) {
        d->has_first = true;
        put_text(&d->head, 1, "first_message", rv_utf8_first(m->content, FIRST_MESSAGE_CHARS));
    }
    rv_buf_puts(b, "  - id: ");
    rv_app_write_yaml(rv_str_of(m->id), 2, b);
    put_text(b, 2, "role", rv_str_of(role_of(m->type)));
    if (m->agent_name && m->agent_name[0])
        put_text(b, 2, "agent", rv_str_of(m->agent_name));
    if (m->has_content)
        put_text(b, 2, "content", m->content);
    put_time(b, 2, "created_at", m->created_us);
    put_object(b, 2, "tool_calls", m->tool_calls, true);
    if (m->status && strcmp(m->status, rv_turn_status_text(RV_TURN_COMPLETED)) != 0)
        put_text(b, 2, "status", rv_str_of(m->status));
    if (m->parent_call_id)
        put_text(b, 2, "parent_call_id", rv_str_of(m->parent_call_id));
    put_object(b, 2, "metadata", m->metadata, false);
    return rv_buf_check(b, "session", err);
}

static void begin_document(struct document *d, const struct rv_session_row *row)
{
    rv_buf_puts(&d->head, "session:\n");
    put_text(&d->head, 1, "id", rv_str_of(row->id));
    put_text(&d->head, 1, "user_id", rv_str_of(row->user));
    put_text(&d->head, 1, "name", rv_str_of(row->name));
    put_text(&d->head, 1, "agent", rv_str_of(row->agent_name));
    rv_buf_printf(&d->head, "  message_count: %lld\n", (long long)row->n_messages);
    put_time(&d->head, 1, "created_at", row->created_us);
    put_time(&d->head, 1, "updated_at", row->updated_us);
}

static int export_session(struct rv_cli *cli, rv_err **err)
{
    struct document d = {.head = RV_BUF_INIT(RV_APP_MAX_TEXT), .messages = RV_BUF_INIT(RV_APP_MAX_TEXT)};
    const struct rv_message_filter all = {.with_children = cli_flag(cli, "children")};
    struct rv_session_row row = {0};

    int rc = cli_find_session(cli, &row, err);
    if (rc == 0) {
        begin_document(&d, &row);
        rc = rv_store_read_messages(cli->store, &cli->app.scope, &(const struct rv_messages_of){row.id, &all},
                                    add_message, &d, err);
    }
    rv_session_row_fini(&row);
    if (rc >= 0)
        rc = rv_buf_check(&d.messages, "session", err);
    rv_buf_puts(&d.head, d.messages.len ? "messages:\n" : "messages: []\n");
    rv_buf_add_str(&d.head, rv_buf_str(&d.messages));
    rv_buf_fini(&d.messages);
    return cli_print(rc, &d.head, err);
}

/* --- the table --- */

#define CHILDREN_OPTION                                                                                                \
    {                                                                                                                  \
        "children", 'c', NULL, "include the rows of delegated agents", NULL, false                                     \
    }
static const struct rv_cli_option show_options[] = {
    {"children", 'c', NULL, "include the messages and calls of delegated agents", NULL, false},
    {"json", 'j', NULL, "print the session as one JSON object, without messages", NULL, false},
};

const struct rv_cli_verb verb_sessions_show = {
    .name = "sessions show",
    .args = "SESSION",
    .summary = "show a conversation",
    .text =
        "Prints messages whole and in order; tool calls and their results are indented and shortened. Messages that\n"
        "did not succeed are marked [failed] or [cancelled]. \"last\" is the session that was used last.",
    .examples = "reeve sessions show last\n"
                "reeve sessions show 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2\n"
                "reeve sessions show 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 --children | less",
    RV_CLI_OPTIONS(show_options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .takes = &cli_takes_any_session,
    .run = show,
};

static const struct rv_cli_option messages_options[] = {
    CHILDREN_OPTION,
    {"limit", 'l', "N", "maximum number of messages; 0: all (default)", NULL, false},
    {"newest", 0, NULL, "newest first", NULL, false},
};
static const struct rv_cli_option export_options[] = {
    CHILDREN_OPTION,
};

const struct rv_cli_verb verb_sessions_messages = {
    .name = "sessions messages",
    .args = "SESSION",
    .summary = "print the messages of a session, one JSON object a line",
    .text =
        "Prints the rows as they are stored: every column, nothing shortened, null for an unknown value. \"last\" is\n"
        "the session that was used last.",
    .examples =
        "reeve sessions messages 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 --newest --limit 1 | jq -r .content\n"
        "reeve sessions messages 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 --children | jq -c '[.seq, .message_type]'",
    RV_CLI_OPTIONS(messages_options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .takes = &cli_takes_any_session,
    .run = messages,
};
const struct rv_cli_verb verb_sessions_export = {
    .name = "sessions export",
    .args = "SESSION",
    .summary = "print a session as a YAML document",
    .text = "The document has the keys `session` and `messages`; a message has id, role (user, assistant, tool, ...),\n"
            "content, created_at, tool_calls and metadata. \"last\" is the session that was used last.",
    .examples = "reeve sessions export 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 > session.yaml",
    RV_CLI_OPTIONS(export_options),
    .groups = {&cli_of_stores},
    RV_CLI_ONE_WORD,
    .store = RV_CLI_READS,
    .takes = &cli_takes_any_session,
    .run = export_session,
};
