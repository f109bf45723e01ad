/* Commands about the turns of a session: taking the last one back, saying it again, what all of them took, and the
 * conversation as a file. */
#include "coreengine/app/app.h"
#include "coreengine/cli/chat/chat_internal.h"
#include "coreengine/cli/show/table_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_MODELS 50 /* that one session has asked: people try a handful; further ones are counted with the last */

/* --- the last turn --- */

struct last_turn {
    int64_t *seqs; /* of its rows, newest first; owned */
    size_t n, cap;
    rv_buf said;
    json_object *attached; /* owned; NULL: none */
    bool has_said;
};

static bool is_type(const struct rv_message *m, enum rv_message_type type)
{
    return rv_message_type_of(rv_str_of(m->type)) == (int)type;
}

static int take_row(void *self, const struct rv_message *m, rv_err **err)
{
    struct last_turn *t = self;

    if (!rv_has_room(&t->seqs, &t->cap, t->n + 1, sizeof *t->seqs))
        return RV_FAIL(err, RV_E_NOMEM, "read the last turn");
    t->seqs[t->n++] = m->seq;
    t->has_said = is_type(m, RV_MESSAGE_USER) && !m->parent_call_id;
    if (!t->has_said)
        return 0;
    rv_buf_add_str(&t->said, m->content);
    int rc = cli_chat_attached_of(m, &t->attached, err);
    return rc < 0 ? rc : RV_STORE_ENOUGH;
}

static int delete_rows(struct rv_cli_chat *c, const struct last_turn *t, rv_err **err)
{
    const struct rv_store_scope scope = cli_chat_scope(c);
    int rc = rv_store_begin(c->in.store, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < t->n; i++)
        rc =
            rv_store_delete_message(c->in.store, &scope, rv_chat_session(c->in.chat), t->seqs[i], rv_app_now_us(), err);
    return rv_store_end(c->in.store, rc, err);
}

int cli_chat_take_back(struct rv_cli_chat *c, rv_buf *said, json_object **attached, rv_err **err)
{
    const struct rv_store_scope scope = cli_chat_scope(c);
    const struct rv_message_filter newest = {.newest_first = true, .with_children = true, .for_agents = true};
    struct last_turn t = {.said = RV_BUF_INIT(RV_CLI_MAX_MESSAGE)};
    rv_err *cause = NULL;
    int rc = rv_store_read_messages(c->in.store, &scope,
                                    &(const struct rv_messages_of){rv_chat_session(c->in.chat), &newest}, take_row, &t,
                                    &cause);

    if (rc == RV_E_NOT_FOUND || (rc >= 0 && !t.has_said)) { /* a session is made with its first turn */
        rv_err_free(cause);
        rc = RV_FAIL(err, RV_E_STATE, "the session has no turn that can be taken back");
    } else if (rc < 0) {
        rv_err_pass(err, cause);
    } else {
        rc = rv_buf_check(&t.said, "a message", err);
    }
    if (rc >= 0)
        rc = delete_rows(c, &t, err);
    if (rc == 0) {
        rv_buf_clear(said);
        rv_buf_add_str(said, rv_buf_str(&t.said));
        rc = rv_buf_check(said, "a message", err);
    }
    if (rc == 0) {
        *attached = t.attached;
        t.attached = NULL;
    }
    json_object_put(t.attached);
    rv_buf_fini(&t.said);
    free(t.seqs);
    return rc;
}

/* --- what the session took --- */

#define NO_COUNT "no answer of the session says how many tokens it took\n"

struct took {
    char model[RV_CLI_MAX_MODEL];
    int64_t answers, input, output, micro_usd, ms;
};
struct tally {
    struct took rows[MAX_MODELS];
    size_t n;
};

static struct took *row_of(struct tally *t, const char *model)
{
    rv_str name = rv_utf8_cut(rv_str_of(model && model[0] ? model : "-"), sizeof t->rows[0].model - 1);
    size_t i = 0;

    while (i < t->n && !rv_str_is(name, t->rows[i].model))
        i++;
    if (i == MAX_MODELS)
        return &t->rows[MAX_MODELS - 1];
    if (i == t->n) {
        memcpy(t->rows[i].model, name.ptr, name.len);
        t->n++;
    }
    return &t->rows[i];
}

static int64_t amount(int64_t n)
{
    return n > 0 ? n : 0;
}

static int count_row(void *self, const struct rv_message *m, rv_err **err)
{
    (void)err;
    if (!is_type(m, RV_MESSAGE_ASSISTANT) || amount(m->input_tokens) + amount(m->output_tokens) == 0)
        return 0;
    struct took *row = row_of(self, m->model);
    row->answers++;
    row->input += amount(m->input_tokens);
    row->output += amount(m->output_tokens);
    row->micro_usd += amount(m->cost_micro_usd);
    row->ms += amount(m->latency_ms);
    return 0;
}

/* Turns that were taken back were paid for: they count. */
static int count(struct rv_cli_chat *c, struct tally *t, rv_err **err)
{
    const struct rv_store_scope scope = cli_chat_scope(c);
    const struct rv_message_filter all = {.with_deleted = true, .told_us = 1};
    rv_err *cause = NULL;
    int rc = rv_store_read_messages(
        c->in.store, &scope, &(const struct rv_messages_of){rv_chat_session(c->in.chat), &all}, count_row, t, &cause);

    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0)
        rv_err_pass(err, cause);
    return rc < 0 ? rc : 0;
}

int cli_chat_write_usage(struct rv_cli_chat *c, rv_buf *out, rv_err **err)
{
    static const struct rv_cli_column columns[] = {{"MODEL", 40, false}, {"ANSWERS", 0, true}, {"INPUT", 0, true},
                                                   {"OUTPUT", 0, true},  {"COST", 0, true},    {"TIME", 0, true}};
    struct tally *t = calloc(1, sizeof *t);
    rv_cli_table *table = cli_table_new(columns, RV_COUNT(columns));
    int rc = t && table ? count(c, t, err) : RV_FAIL(err, RV_E_NOMEM, "count what the session took");

    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        const struct took *row = &t->rows[i];
        char money[RV_APP_MAX_MONEY];
        rv_buf time = RV_BUF_INIT(64);
        cli_write_duration(&time, row->ms * 1000);
        cli_table_add_text(table, row->model);
        cli_table_add_int(table, row->answers);
        cli_table_add_int(table, row->input);
        cli_table_add_int(table, row->output);
        cli_table_add_text(table, rv_app_format_money(row->micro_usd, money));
        cli_table_add(table, rv_buf_str(&time));
        rv_buf_fini(&time);
    }
    if (rc == 0)
        rc = cli_table_write(table, c->cli->out_color, out, err);
    if (rc == 0 && t->n == 0)
        rv_buf_puts(out, NO_COUNT);
    cli_table_free(table);
    free(t);
    return rc;
}

int cli_chat_write_cost(struct rv_cli_chat *c, rv_buf *out, rv_err **err)
{
    struct tally *t = calloc(1, sizeof *t);
    struct took all = {0};
    char money[RV_APP_MAX_MONEY];
    int rc = t ? count(c, t, err) : RV_FAIL(err, RV_E_NOMEM, "count what the session took");

    for (size_t i = 0; rc == 0 && i < t->n; i++) {
        all.answers += t->rows[i].answers;
        all.input += t->rows[i].input;
        all.output += t->rows[i].output;
        all.micro_usd += t->rows[i].micro_usd;
    }
    if (rc == 0 && t->n == 0) {
        rv_buf_puts(out, NO_COUNT);
    } else if (rc == 0) {
        rv_buf_printf(out, "%s for %lld answer%s: ", rv_app_format_money(all.micro_usd, money), (long long)all.answers,
                      all.answers == 1 ? "" : "s");
        rv_app_write_count(out, all.input);
        rv_buf_puts(out, " tokens in, ");
        rv_app_write_count(out, all.output);
        rv_buf_puts(out, " out\n");
    }
    free(t);
    return rc;
}

/* --- the conversation as a file --- */

struct document {
    const char *session;
    rv_buf *out;
    rv_jw *json; /* NULL: Markdown */
};

static void write_markdown(const struct rv_message *m, rv_buf *b)
{
    const char *who = is_type(m, RV_MESSAGE_USER) ? "you" : m->agent_name && m->agent_name[0] ? m->agent_name : m->type;
    struct rv_app_tool_call call;
    json_object *json = NULL;

    if (is_type(m, RV_MESSAGE_TOOL_RESPONSE)) /* what came of a call is for models */
        return;
    if (is_type(m, RV_MESSAGE_TOOL_CALL)) {
        rv_app_tool_call_read(m, &json, &call);
        rv_buf_printf(b, "\n    %s(", call.name);
        if (call.arguments)
            rv_json_write(call.arguments, b);
        rv_buf_puts(b, ")\n");
        json_object_put(json);
        return;
    }
    rv_buf_printf(b, "\n## %s\n\n", who);
    rv_buf_add_str(b, rv_str_trim(m->content));
    rv_buf_putc(b, '\n');
    int rc = is_type(m, RV_MESSAGE_USER)
                 ? cli_chat_attached_of(m, &json,
                                        RV_CODE_ONLY("damaged metadata name no files; want of memory fails the buffer"))
                 : 0;
    if (rc == RV_E_NOMEM && b->rc == 0)
        b->rc = rc;
    if (rc == 0 && json) {
        rv_buf_putc(b, '\n');
        cli_chat_write_attached(json, "- attached ", b);
        json_object_put(json);
    }
}

static int write_message(void *self, const struct rv_message *m, rv_err **err)
{
    struct document *d = self;

    if (d->json)
        rv_app_message_write(d->session, m, d->json);
    else
        write_markdown(m, d->out);
    return rv_buf_check(d->out, "a conversation", err);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), len = strlen(end);

    return n >= len && strcmp(text + n - len, end) == 0;
}

int cli_chat_export(struct rv_cli_chat *c, const char *path, rv_err **err)
{
    const struct rv_store_scope scope = cli_chat_scope(c);
    const struct rv_message_filter all = {0};
    rv_buf text = RV_BUF_INIT(RV_APP_MAX_TEXT);
    rv_jw w = rv_jw_on(&text);
    struct document d = {
        .session = rv_chat_session(c->in.chat), .out = &text, .json = ends_with(path, ".json") ? &w : NULL};

    if (d.json)
        rv_jw_arr(&w);
    else
        rv_buf_printf(&text, "# %s\n", d.session);
    int rc = rv_store_read_messages(c->in.store, &scope, &(const struct rv_messages_of){d.session, &all}, write_message,
                                    &d, err);
    if (d.json) {
        rv_jw_arr_end(&w);
        rv_buf_putc(&text, '\n');
    }
    if (rc >= 0)
        rc = rv_buf_check(&text, "a conversation", err);
    if (rc == 0)
        rc = rv_file_write_new(path, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc;
}
