/* reeve sessions messages, reeve sessions export: the rows of a session for programs, and as a document. */
#include "coreengine/app/rows.h"
#include "coreengine/app/yaml_text.h"
#include "coreengine/cli/runs/runs.h"
#include "coreengine/cli/verbs/verbs.h"

#include <string.h>

#define MAX_ROW_BYTES       ((size_t)512 << 20)
#define FIRST_MESSAGE_CHARS 100 /* of the message that a session begins with, in its head */

/* --- messages --- */

static int print_row(void *self, const struct rv_message *m, rv_err **err)
{
    const char *session = self;
    rv_buf line = RV_BUF_INIT(MAX_ROW_BYTES);
    rv_jw w = rv_jw_on(&line);

    rv_app_message_json(session, m, &w);
    rv_buf_putc(&line, '\n');
    int rc = rv_buf_check(&line, "message", err);
    if (rc == 0)
        rv_cli_out(rv_buf_str(&line));
    rv_buf_fini(&line);
    return rc;
}

static int read_filter(const struct rv_cli_args *args, struct rv_message_filter *out, rv_err **err)
{
    *out = (struct rv_message_filter){.newest_first = rv_cli_flag(args, "newest"),
                                      .with_children = rv_cli_flag(args, "children")};
    return rv_cli_int(args, "limit", 0, 1000000000, &out->limit, err);
}

static int messages(struct rv_cli *cli, const struct rv_cli_args *args)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    struct rv_message_filter filter;
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status = RV_EXIT_COMPLETED;

    if (read_filter(args, &filter, &err) < 0)
        return rv_cli_report(cli, err);
    if (!rv_cli_runs_open(cli, RV_APP_STORE_READ, &store, &status))
        return status;
    status = rv_store_read_messages(store, &scope, args->words[0], &filter, print_row,
                                    (void *)(uintptr_t)args->words[0], &err) < 0
                 ? rv_cli_report(cli, err)
                 : RV_EXIT_COMPLETED;
    rv_store_close(store);
    return status;
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
    rv_app_yaml_text(text, depth, b);
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

    if (text.len == 0 || rv_json_parse(text, &opts, &json, NULL) < 0)
        return;
    if (json_object_is_type(json, json_type_object) && json_object_object_length(json) > 0) {
        rv_buf_printf(b, "%*s%s: %s", 2 * depth, "", key, listed ? "\n" : "");
        if (listed)
            rv_buf_printf(b, "%*s- ", 2 * depth + 2, "");
        rv_app_yaml_json(json, b);
    }
    json_object_put(json);
}

static rv_str first_characters(rv_str text, size_t n)
{
    size_t at = 0;

    while (at < text.len) {
        if (((unsigned char)text.ptr[at] & 0xc0) != 0x80 && n-- == 0)
            break;
        at++;
    }
    return (rv_str){text.ptr, at};
}

static int add_message(void *self, const struct rv_message *m, rv_err **err)
{
    struct document *d = self;
    rv_buf *b = &d->messages;

    if (!d->has_first && strcmp(m->type, rv_message_type_text(RV_MESSAGE_USER)) == 0) {
        d->has_first = true;
        put_text(&d->head, 1, "first_message", first_characters(m->content, FIRST_MESSAGE_CHARS));
    }
    rv_buf_puts(b, "  - id: ");
    rv_app_yaml_text(rv_str_of(m->id), 2, b);
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

static int export_session(rv_store *store, const struct rv_cli_args *args, struct document *d, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_scope(args);
    const struct rv_message_filter all = {.with_children = rv_cli_flag(args, "children")};
    struct rv_session_row row = {0};

    int rc = rv_store_get_session(store, &scope, args->words[0], &row, err);
    if (rc < 0)
        return rc;
    begin_document(d, &row);
    rc = rv_store_read_messages(store, &scope, row.id, &all, add_message, d, err);
    rv_session_row_fini(&row);
    if (rc >= 0)
        rc = rv_buf_check(&d->messages, "session", err);
    return rc;
}

static int export_verb(struct rv_cli *cli, const struct rv_cli_args *args)
{
    struct document d = {.head = RV_BUF_INIT(RV_APP_MAX_TEXT), .messages = RV_BUF_INIT(RV_APP_MAX_TEXT)};
    rv_store *store = NULL;
    rv_err *err = NULL;
    int status;

    if (!rv_cli_runs_open(cli, RV_APP_STORE_READ, &store, &status))
        return status;
    if (export_session(store, args, &d, &err) < 0) {
        status = rv_cli_report(cli, err);
        rv_buf_fini(&d.head);
    } else {
        rv_buf_puts(&d.head, d.messages.len ? "messages:\n" : "messages: []\n");
        rv_buf_add_str(&d.head, rv_buf_str(&d.messages));
        status = rv_cli_print(cli, &d.head);
    }
    rv_buf_fini(&d.messages);
    rv_store_close(store);
    return status;
}

#define CHILDREN_OPTION                                                                                                \
    {                                                                                                                  \
        "children", 'c', NULL, "include the rows of delegated agents", NULL, false                                     \
    }
static const struct rv_cli_option messages_options[] = {
    CHILDREN_OPTION,
    {"limit", 'l', "N", "maximum number of messages; 0: all (default)", NULL, false},
    {"newest", 0, NULL, "newest first", NULL, false},
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
};
static const struct rv_cli_option export_options[] = {
    CHILDREN_OPTION,
    RV_CLI_STORE_OPTION,
    RV_CLI_USER_OPTION,
    RV_CLI_TENANT_OPTION,
};

const struct rv_cli_verb rv_verb_sessions_messages = {
    .name = "sessions messages",
    .args = "SESSION",
    .summary = "print the messages of a session, one JSON object a line",
    .text = "Prints the rows as they are stored: every column, nothing shortened, null for an unknown value.",
    .examples =
        "reeve sessions messages 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 --newest --limit 1 | jq -r .content\n"
        "reeve sessions messages 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 --children | jq -c '[.seq, .message_type]'",
    .options = messages_options,
    .n_options = RV_COUNT(messages_options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_sessions,
    .run = messages,
};
const struct rv_cli_verb rv_verb_sessions_export = {
    .name = "sessions export",
    .args = "SESSION",
    .summary = "print a session as a YAML document",
    .text = "The document has the keys `session` and `messages`; a message has id, role (user, assistant, tool, ...),\n"
            "content, created_at, tool_calls and metadata.",
    .examples = "reeve sessions export 2f6c0c5e-9a39-5f1c-8d0e-0c5a53a8a1d2 > session.yaml",
    .options = export_options,
    .n_options = RV_COUNT(export_options),
    .min_words = 1,
    .max_words = 1,
    .takes = &rv_cli_takes_sessions,
    .run = export_verb,
};
