/* What was said in a session, as a person reads it again: words with their speakers, calls as dim lines. */
#include "coreengine/app/rows.h"
#include "coreengine/cli/chat/chat.h"
#include "coreengine/cli/runs/runs.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SHOWN 1000

/* Rows come newest first and are shown the other way round. */
struct rows {
    const struct rv_cli *cli;
    rv_buf texts[MAX_SHOWN];
    size_t n, most;
};

static void write_words(const struct rv_cli *cli, const char *who, const struct rv_message *m, rv_buf *b)
{
    rv_buf_puts(b, cli->out_color ? "\033[1m" : "");
    rv_cli_write_safe(rv_str_of(who), b);
    rv_buf_printf(b, ">%s ", cli->out_color ? "\033[0m" : "");
    rv_cli_write_safe(m->content, b);
    if (m->status && strcmp(m->status, rv_turn_status_text(RV_TURN_COMPLETED)) != 0)
        rv_buf_printf(b, "%s[%s]", m->content.len ? "  " : "", m->status);
    rv_buf_putc(b, '\n');
}

static void write_call(const struct rv_cli *cli, const struct rv_message *m, rv_buf *b)
{
    rv_buf arguments = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct rv_app_tool_call call;
    json_object *json = NULL;

    rv_app_tool_call_read(m, &json, &call);
    if (call.arguments)
        rv_json_write(call.arguments, &arguments);
    rv_buf_puts(b, cli->out_color ? "\033[2m  > " : "  > ");
    rv_chat_write_call(rv_str_of(call.name), rv_buf_str(&arguments), b);
    rv_buf_puts(b, cli->out_color ? "\033[0m\n" : "\n");
    rv_buf_fini(&arguments);
    json_object_put(json);
}

static int take(void *self, const struct rv_message *m, rv_err **err)
{
    struct rows *r = self;
    rv_buf *b = &r->texts[r->n];

    *b = RV_BUF_INIT(RV_APP_MAX_TEXT);
    switch (rv_message_type_of(rv_str_of(m->type))) {
    case RV_MESSAGE_USER:
        write_words(r->cli, "you", m, b);
        break;
    case RV_MESSAGE_TOOL_CALL:
        write_call(r->cli, m, b);
        break;
    case RV_MESSAGE_TOOL_RESPONSE: /* what came of a call is for models */
        return 0;
    default:
        write_words(r->cli, m->agent_name && m->agent_name[0] ? m->agent_name : m->type, m, b);
    }
    r->n++;
    int rc = rv_buf_check(b, "a message", err);
    return rc == 0 && r->n == r->most ? RV_STORE_ENOUGH : rc;
}

int rv_cli_chat_history(struct rv_cli_chat *c, int64_t n, rv_err **err)
{
    const struct rv_store_scope scope = rv_cli_chat_scope(c);
    const struct rv_message_filter newest = {.newest_first = true};
    struct rows *r = calloc(1, sizeof *r);
    rv_err *cause = NULL;

    if (!r)
        return RV_FAIL(err, RV_E_NOMEM, "show the history");
    r->cli = c->cli;
    r->most = n < 1 ? 1 : n > MAX_SHOWN ? MAX_SHOWN : (size_t)n;
    int rc = rv_store_read_messages(c->in.store, &scope, rv_chat_session(c->in.chat), &newest, take, r, &cause);
    for (size_t i = r->n; rc >= 0 && i-- > 0;)
        rv_cli_out(rv_buf_str(&r->texts[i]));
    for (size_t i = 0; i < MAX_SHOWN; i++)
        rv_buf_fini(&r->texts[i]);
    if (rc == RV_E_NOT_FOUND) { /* it is made with the first turn */
        rv_err_free(cause);
        rc = 0;
    } else if (rc < 0) {
        *err = cause;
    }
    if (rc >= 0 && r->n == 0)
        rv_cli_err(RV_STR_LIT("the session has no messages yet\n"));
    free(r);
    return rc < 0 ? rc : 0;
}
