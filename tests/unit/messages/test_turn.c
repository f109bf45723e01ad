/* What one step adds to a session, as the core writes it. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/suites.h"

static int read_quoted(const char *text, struct rv_turn *t, rv_err **err)
{
    char *json = strdup(text);
    int rc;

    for (char *c = json; *c; c++)
        if (*c == '\'')
            *c = '"';
    rc = rv_turn_read(rv_str_of(json), t, err);
    free(json);
    return rc;
}

START_TEST(a_whole_turn_is_read)
{
    struct rv_turn t = {0};
    const struct rv_message *m;

    ck_assert_int_eq(
        read_quoted(
            "{'session':'s1','agent':'helper','name':'About cats','metadata':{'routing':{'a':1}},'rows':["
            "{'id':'r1','type':'user','content':'hello world!','at_us':5},"
            "{'id':'r2','type':'tool_call','content':null,'tool_calls': { 'name' : 'f', 'id':'c1' },'agent':'helper',"
            "'at_us':6,'metadata':{'x':[1, 2]}},"
            "{'id':'r3','type':'tool_response','content':'','tool_calls':{'name':'f'},'at_us':7,'token_count':9},"
            "{'id':'r4','type':'assistant','content':'ok','agent':'helper','model':'a:b','trace_id':'t',"
            "'span_id':'p','run_id':'r','input_tokens':1,'output_tokens':2,'cost_micro_usd':3,'latency_ms':4,"
            "'status':'cancelled','parent_call_id':'c1','metadata':{},'at_us':8,'token_count':null}]}",
            &t, NULL),
        0);
    ck_assert_str_eq(t.session, "s1");
    ck_assert_str_eq(t.agent_name, "helper");
    ck_assert_str_eq(t.name, "About cats");
    ck_assert(rv_json_get_obj(t.metadata, "routing"));
    ck_assert_uint_eq(t.n_rows, 4);
    m = &t.rows[0];
    ck_assert_str_eq(m->id, "r1");
    ck_assert_str_eq(m->type, "user");
    ck_assert(m->has_content && rv_str_is(m->content, "hello world!"));
    ck_assert_int_eq(m->token_count, 3);
    ck_assert_int_eq(m->created_us, 5);
    ck_assert_int_eq(m->seq, 0);
    ck_assert_ptr_null(m->agent_name);
    ck_assert_ptr_null(m->status);
    ck_assert_uint_eq(m->tool_calls.len + m->metadata.len, 0);
    m = &t.rows[1];
    ck_assert(!m->has_content);
    ck_assert_int_eq(m->token_count, 0);
    ck_assert(rv_str_is(m->tool_calls, "{\"name\":\"f\",\"id\":\"c1\"}"));
    ck_assert(rv_str_is(m->metadata, "{\"x\":[1,2]}"));
    m = &t.rows[2];
    ck_assert(m->has_content && m->content.len == 0);
    ck_assert(rv_str_is(m->tool_calls, "{\"name\":\"f\"}"));
    ck_assert_int_eq(m->token_count, 9);
    m = &t.rows[3];
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
    rv_turn_fini(&t);
    rv_turn_fini(&t);
}
END_TEST

START_TEST(a_turn_may_add_no_rows)
{
    struct rv_turn t = {0};

    ck_assert_int_eq(read_quoted("{'session':'s','agent':'a','name':null,'metadata':null,'rows':[]}", &t, NULL), 0);
    ck_assert_uint_eq(t.n_rows, 0);
    ck_assert_ptr_null(t.name);
    ck_assert_ptr_null(t.metadata);
    rv_turn_fini(&t);
}
END_TEST

#define IN_ROW(members) "{'session':'s','agent':'a','rows':[{'id':'r','type':'user','at_us':1},{" members "}]}"
static const struct {
    const char *json, *why; /* a part of the printed error */
    int rc;
} broken[] = {
    {"{", "parse_error", RV_E_PARSE},
    {"[]", "it is no object but array", RV_E_INVALID},
    {"{'agent':'a','rows':[]}", "\"session\" is missing", RV_E_INVALID},
    {"{'session':'','agent':'a','rows':[]}", "\"session\" is missing", RV_E_INVALID},
    {"{'session':7,'agent':'a','rows':[]}", "\"session\" is no text but integer", RV_E_INVALID},
    {"{'session':'a\\u0000b','agent':'a','rows':[]}", "\"session\" has a NUL in it", RV_E_INVALID},
    {"{'session':'s','rows':[]}", "\"agent\" is missing", RV_E_INVALID},
    {"{'session':'s','agent':'a'}", "\"rows\" is no array", RV_E_INVALID},
    {"{'session':'s','agent':'a','rows':{}}", "\"rows\" is no array", RV_E_INVALID},
    {"{'session':'s','agent':'a','rows':[],'metadata':[]}", "\"metadata\" is no object but array", RV_E_INVALID},
    {"{'session':'s','agent':'a','rows':[],'user':'u'}", "\"user\" is not known here", RV_E_INVALID},
    {"{'session':'s','agent':'a','rows':[7]}", "row 1: it is no object but integer", RV_E_INVALID},
    {IN_ROW("'type':'user','at_us':1"), "row 2: \"id\" is missing", RV_E_INVALID},
    {IN_ROW("'id':'x','at_us':1"), "row 2: \"type\" is missing", RV_E_INVALID},
    {IN_ROW("'id':'x','type':'human','at_us':1"), "row 2: \"type\" can not be \"human\"", RV_E_INVALID},
    {IN_ROW("'id':'x','type':'user'"), "row 2: \"at_us\" is missing", RV_E_INVALID},
    {IN_ROW("'id':'x','type':'user','at_us':-1"), "row 2: \"at_us\" is no count", RV_E_INVALID},
    {IN_ROW("'id':'x','type':'user','at_us':1,'token_count':1.0"), "\"token_count\" is no count", RV_E_INVALID},
    {IN_ROW("'id':'x','type':'user','at_us':1,'content':{}"), "\"content\" is no text but object", RV_E_INVALID},
    {IN_ROW("'id':'x','type':'user','at_us':1,'tool_calls':[]"), "\"tool_calls\" is no object but array", RV_E_INVALID},
    {IN_ROW("'id':'x','type':'user','at_us':1,'metadata':'{}'"), "\"metadata\" is no object but string", RV_E_INVALID},
    {IN_ROW("'id':'x','type':'user','at_us':1,'status':'done'"), "\"status\" can not be \"done\"", RV_E_INVALID},
    {IN_ROW("'id':'x','type':'user','at_us':1,'role':'user'"), "row 2: \"role\" is not known here", RV_E_INVALID},
};
START_TEST(what_is_wrong_with_a_turn_is_named)
{
    struct rv_turn t = {0};
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(read_quoted(broken[_i].json, &t, &err), broken[_i].rc);
    ck_assert_ptr_null(t.json);
    text = rv_kit_err_take(err);
    ck_assert_msg(strstr(text, broken[_i].why) != NULL, "%s", text);
    ck_assert(strstr(text, "read what is added to a session: ") == text);
    free(text);
}
END_TEST

/* Arguments as deep as JSON may be come back as they were. */
START_TEST(arguments_may_be_deep)
{
    rv_buf arguments = RV_BUF_INIT(10000), row = RV_BUF_INIT(10000), json = RV_BUF_INIT(10000);
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    struct rv_turn t = {0};
    json_object *messages, *call;
    const char *shown = NULL;

    for (int i = 0; i < RV_JSON_MAX_DEPTH - 1; i++)
        rv_buf_puts(&arguments, "{\"a\":");
    rv_buf_puts(&arguments, "{}");
    for (int i = 0; i < RV_JSON_MAX_DEPTH - 1; i++)
        rv_buf_putc(&arguments, '}');
    rv_buf_printf(&row, "{\"name\":\"f\",\"id\":\"c\",\"arguments\":%s}", rv_buf_cstr(&arguments));
    rv_buf_printf(&json,
                  "{\"session\":\"s\",\"agent\":\"a\",\"rows\":[{\"id\":\"r\",\"type\":\"tool_call\",\"at_us\":1,"
                  "\"tool_calls\":%s}]}",
                  rv_buf_cstr(&row));
    ck_assert_int_eq(rv_turn_read(rv_buf_str(&json), &t, NULL), 0);
    ck_assert(rv_str_eq(t.rows[0].tool_calls, rv_buf_str(&row)));
    messages = history_of(t.rows, 1, &o, false, NULL);
    call = json_object_array_get_idx(rv_json_get_arr(json_object_array_get_idx(messages, 0), "tool_calls"), 0);
    ck_assert(rv_json_get_text(call, "arguments", &shown));
    ck_assert_str_eq(shown, rv_buf_cstr(&arguments));
    json_object_put(messages);
    rv_turn_fini(&t);
    rv_buf_fini(&arguments);
    rv_buf_fini(&row);
    rv_buf_fini(&json);
}
END_TEST

TCase *turn_case(void)
{
    TCase *c = tcase_create("turn");

    tcase_add_test(c, a_whole_turn_is_read);
    tcase_add_test(c, a_turn_may_add_no_rows);
    tcase_add_test(c, arguments_may_be_deep);
    tcase_add_loop_test(c, what_is_wrong_with_a_turn_is_named, 0, RV_COUNT(broken));
    return c;
}
