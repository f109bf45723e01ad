/* What one step adds to a session: rows that are made, and rows that are kept as JSON. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/suites.h"

#define MAX_BYTES ((size_t)1 << 20)

static int read_rows(rv_str json, struct rv_turn *t, rv_err **err)
{
    const struct rv_json_opts opts = {.max_depth = RV_JSON_MAX_DEPTH + 4};
    json_object *rows = NULL;
    int rc = rv_json_parse(json, &opts, &rows, err);

    if (rc == 0)
        rc = rv_turn_read_rows(rows, t, err);
    json_object_put(rows);
    return rc;
}

static int read_quoted(const char *text, struct rv_turn *t, rv_err **err)
{
    char *json = strdup(text);
    int rc;

    for (char *c = json; *c; c++)
        if (*c == '\'')
            *c = '"';
    rc = read_rows(rv_str_of(json), t, err);
    free(json);
    return rc;
}

START_TEST(rows_are_read)
{
    struct rv_turn *t = rv_turn_new(MAX_BYTES);
    const struct rv_message *m;

    ck_assert_int_eq(
        read_quoted(
            "[{'id':'r1','type':'user','content':'hello world!','at_us':5},"
            "{'id':'r2','type':'tool_call','content':null,'tool_calls': { 'name' : 'f', 'id':'c1' },'agent':'helper',"
            "'at_us':6,'metadata':{'x':[1, 2]}},"
            "{'id':'r3','type':'tool_response','content':'','tool_calls':{'name':'f'},'at_us':7},"
            "{'id':'r4','type':'assistant','content':'ok','agent':'helper','model':'a:b','trace_id':'t',"
            "'span_id':'p','run_id':'r','input_tokens':1,'output_tokens':2,'cost_micro_usd':3,'latency_ms':4,"
            "'status':'cancelled','parent_call_id':'c1','metadata':{},'at_us':8}]",
            t, NULL),
        0);
    ck_assert_uint_eq(t->n_rows, 4);
    m = &t->rows[0];
    ck_assert_str_eq(m->id, "r1");
    ck_assert_str_eq(m->type, "user");
    ck_assert(m->has_content && rv_str_is(m->content, "hello world!"));
    ck_assert_int_eq(m->token_count, 3);
    ck_assert_int_eq(m->created_us, 5);
    ck_assert_int_eq(m->seq, 0);
    ck_assert_ptr_null(m->agent_name);
    ck_assert_ptr_null(m->status);
    ck_assert_uint_eq(m->tool_calls.len + m->metadata.len, 0);
    m = &t->rows[1];
    ck_assert(!m->has_content);
    ck_assert_int_eq(m->token_count, 0);
    ck_assert(rv_str_is(m->tool_calls, "{\"name\":\"f\",\"id\":\"c1\"}"));
    ck_assert(rv_str_is(m->metadata, "{\"x\":[1,2]}"));
    m = &t->rows[2];
    ck_assert(m->has_content && m->content.len == 0);
    ck_assert(rv_str_is(m->tool_calls, "{\"name\":\"f\"}"));
    ck_assert_int_eq(m->token_count, 0);
    m = &t->rows[3];
    ck_assert_str_eq(m->model, "a:b");
    ck_assert_str_eq(m->trace_id, "t");
    ck_assert_str_eq(m->span_id, "p");
    ck_assert_str_eq(m->run_id, "r");
    ck_assert_int_eq(m->input_tokens, 1);
    ck_assert_int_eq(m->output_tokens, 2);
    ck_assert_int_eq(m->cost_micro_usd, 3);
    ck_assert_int_eq(m->latency_ms, 4);
    ck_assert_str_eq(m->status, "cancelled");
    ck_assert_str_eq(m->parent_call_id, "c1");
    ck_assert(rv_str_is(m->metadata, "{}"));
    ck_assert_int_eq(m->token_count, 0);
    rv_turn_free(t);
}
END_TEST

/* What is written is read back, and written the same. */
START_TEST(rows_are_written)
{
    static const struct rv_message rows[] = {
        {.id = "1", .type = "user", .has_content = true, .content = {"h\"i", 3}, .run_id = "r", .created_us = 4},
        {.id = "2",
         .type = "tool_call",
         .agent_name = "a",
         .tool_calls = {"{\"name\":\"f\",\"id\":\"c\",\"arguments\":{}}", 36},
         .parent_call_id = "p",
         .created_us = 3},
        {.id = "3",
         .type = "assistant",
         .has_content = true,
         .content = {"", 0},
         .model = "m",
         .has_usage = true,
         .latency_ms = 7,
         .status = "failed",
         .metadata = {"{\"k\":1}", 7},
         .created_us = 5}};
    struct rv_turn *t = rv_turn_new(MAX_BYTES), *back = rv_turn_new(MAX_BYTES);
    rv_buf text = RV_BUF_INIT(MAX_BYTES), again = RV_BUF_INIT(MAX_BYTES), array = RV_BUF_INIT(MAX_BYTES);

    for (size_t i = 0; i < RV_COUNT(rows); i++)
        rv_turn_add(t, &rows[i]);
    ck_assert_int_eq(rv_turn_check(t, NULL), 0);
    rv_turn_write_rows(t, &text);
    ck_assert_str_eq(rv_buf_cstr(&text),
                     "{\"id\":\"1\",\"type\":\"user\",\"run_id\":\"r\",\"at_us\":4,\"content\":\"h\\\"i\"},"
                     "{\"id\":\"2\",\"type\":\"tool_call\",\"agent\":\"a\",\"parent_call_id\":\"p\",\"at_us\":3,"
                     "\"tool_calls\":{\"name\":\"f\",\"id\":\"c\",\"arguments\":{}}},"
                     "{\"id\":\"3\",\"type\":\"assistant\",\"status\":\"failed\",\"at_us\":5,\"content\":\"\","
                     "\"model\":\"m\",\"input_tokens\":0,\"output_tokens\":0,\"cost_micro_usd\":0,\"latency_ms\":7,"
                     "\"metadata\":{\"k\":1}}");
    rv_buf_printf(&array, "[%s]", rv_buf_cstr(&text));
    ck_assert_int_eq(read_rows(rv_buf_str(&array), back, NULL), 0);
    rv_turn_write_rows(back, &again);
    ck_assert_str_eq(rv_buf_cstr(&again), rv_buf_cstr(&text));
    rv_turn_keep_order(t);
    ck_assert_int_eq(t->rows[1].created_us, 4);
    ck_assert_int_eq(t->rows[2].created_us, 5);
    rv_turn_free(t);
    rv_turn_free(back);
    rv_buf_fini(&text);
    rv_buf_fini(&again);
    rv_buf_fini(&array);
}
END_TEST

static int rc_of(size_t max_bytes, const char *content, size_t len)
{
    const struct rv_message m = {.id = "1", .type = "user", .has_content = true, .content = {content, len}};
    struct rv_turn *t = rv_turn_new(max_bytes);

    rv_turn_add(t, &m);
    rv_turn_add(t, &(struct rv_message){.id = "2", .type = "user"});
    int rc = rv_turn_check(t, NULL);
    ck_assert_uint_eq(t->n_rows, rc == 0 ? 2 : 0);
    rv_turn_free(t);
    return rc;
}

START_TEST(a_turn_has_bounds)
{
    ck_assert_int_eq(rc_of(1000, "abc", 3), 0);
    ck_assert_int_eq(rc_of(258, "abc", 3), RV_E_LIMIT);
    ck_assert_int_eq(rc_of(1000, "a\xff", 2), RV_E_INVALID);
    rv_turn_free(NULL);
}
END_TEST

static const char *const broken[] = {
    "[7]",
    "[{'type':'user','at_us':1}]",
    "[{'id':7,'type':'user','at_us':1}]",
    "[{'id':'x','type':'human','at_us':1}]",
    "[{'id':'x','at_us':1}]",
    "[{'id':'x','type':'user'}]",
    "[{'id':'x','type':'user','at_us':-1}]",
};
START_TEST(what_is_wrong_with_a_row_is_named)
{
    struct rv_turn *t = rv_turn_new(MAX_BYTES);
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(read_quoted(broken[_i], t, &err), RV_E_INVALID);
    text = rv_kit_err_take(err);
    ck_assert_msg(strstr(text, "row 1 of a session: it has no id, no type or no time") != NULL, "%s", text);
    free(text);
    rv_turn_free(t);
}
END_TEST

/* Arguments as deep as JSON may be come back as they were. */
START_TEST(arguments_may_be_deep)
{
    rv_buf arguments = RV_BUF_INIT(10000), row = RV_BUF_INIT(10000), json = RV_BUF_INIT(10000);
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    struct rv_turn *t = rv_turn_new(MAX_BYTES);
    json_object *messages, *call;
    const char *shown = NULL;

    for (int i = 0; i < RV_JSON_MAX_DEPTH - 1; i++)
        rv_buf_puts(&arguments, "{\"a\":");
    rv_buf_puts(&arguments, "{}");
    for (int i = 0; i < RV_JSON_MAX_DEPTH - 1; i++)
        rv_buf_putc(&arguments, '}');
    rv_buf_printf(&row, "{\"name\":\"f\",\"id\":\"c\",\"arguments\":%s}", rv_buf_cstr(&arguments));
    rv_buf_printf(&json, "[{\"id\":\"r\",\"type\":\"tool_call\",\"at_us\":1,\"tool_calls\":%s}]", rv_buf_cstr(&row));
    ck_assert_int_eq(read_rows(rv_buf_str(&json), t, NULL), 0);
    ck_assert(rv_str_eq(t->rows[0].tool_calls, rv_buf_str(&row)));
    messages = history_of(t->rows, 1, &o, false, NULL);
    call = json_object_array_get_idx(rv_json_get_arr(json_object_array_get_idx(messages, 0), "tool_calls"), 0);
    ck_assert(rv_json_get_text(call, "arguments", &shown));
    ck_assert_str_eq(shown, rv_buf_cstr(&arguments));
    json_object_put(messages);
    rv_turn_free(t);
    rv_buf_fini(&arguments);
    rv_buf_fini(&row);
    rv_buf_fini(&json);
}
END_TEST

TCase *turn_case(void)
{
    TCase *c = tcase_create("turn");

    tcase_add_test(c, rows_are_read);
    tcase_add_test(c, rows_are_written);
    tcase_add_test(c, a_turn_has_bounds);
    tcase_add_test(c, arguments_may_be_deep);
    tcase_add_loop_test(c, what_is_wrong_with_a_row_is_named, 0, RV_COUNT(broken));
    return c;
}
