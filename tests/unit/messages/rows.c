#include "tests/unit/messages/rows.h"

size_t count_rows(const struct rv_message *rows, size_t max)
{
    size_t n = 0;

    while (n < max && rows[n].type)
        n++;
    return n;
}

json_object *history_of(const struct rv_message *rows, size_t n, const struct rv_history_opts *o, bool insists,
                        size_t *n_read)
{
    rv_history *h = NULL;
    json_object *messages = NULL;
    rv_err *err = NULL;
    bool full = false;
    size_t n_until_full = 0;

    if (rv_history_new("s", o, &h, &err) < 0)
        rv_kit_die("%s", rv_err_text(err));
    for (size_t i = n; i > 0 && (!full || insists); i--) {
        struct rv_message row = rows[i - 1];
        bool was_full = full;
        if (!row.seq)
            row.seq = (int64_t)i;
        if (rv_history_add(h, &row, &full, &err) < 0)
            rv_kit_die("row %zu: %s", i, rv_err_text(err));
        ck_assert(full || !was_full);
        n_until_full += !was_full;
    }
    if (rv_history_finish(h, &messages, &err) < 0)
        rv_kit_die("%s", rv_err_text(err));
    rv_history_free(h);
    if (n_read)
        *n_read = n_until_full;
    return messages;
}

static const char *text_of(json_object *obj, const char *key)
{
    const char *text = NULL;

    return rv_json_get_text(obj, key, &text) ? text : NULL;
}

static void write_message(json_object *m, rv_buf *out)
{
    json_object *calls = rv_json_get_arr(m, "tool_calls");
    const char *content = text_of(m, "content");
    bool is_error = false;

    rv_buf_puts(out, text_of(m, "role"));
    if (text_of(m, "tool_call_id"))
        rv_buf_printf(out, "%s %s %s", rv_json_get_bool(m, "is_error", &is_error) && is_error ? "!" : "",
                      text_of(m, "tool_call_id"), text_of(m, "name"));
    if (content)
        rv_buf_printf(out, " %s", content);
    for (size_t i = 0; calls && i < json_object_array_length(calls); i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        rv_buf_printf(out, " + %s:%s%s", text_of(call, "id"), text_of(call, "name"), text_of(call, "arguments"));
    }
    rv_buf_putc(out, '\n');
}

void write_messages(json_object *messages, rv_buf *out)
{
    for (size_t i = 0; i < json_object_array_length(messages); i++)
        write_message(json_object_array_get_idx(messages, i), out);
}
