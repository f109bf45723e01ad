/* Options of a history, written and read. */
#include <stdlib.h>

#include "tests/unit/messages/rows.h"
#include "tests/unit/messages/suites.h"

static const struct {
    const char *json, *want; /* want: what is written again, or the words of the error */
    int rc;
} cases[] = {
    {"{}",
     "{'policy':'synthesise','max_tokens':8000,'max_messages':null,'since_us':0,'always_last':5,'compress':true,"
     "'compress_keep':200,'count_tool_rows':false,'version':2}",
     0},
    {"{'policy':'skip','max_tokens':null,'max_messages':3,'since_us':7,'always_last':0,'compress':false,"
     "'compress_keep':0,'count_tool_rows':true}",
     "{'policy':'skip','max_tokens':null,'max_messages':3,'since_us':7,'always_last':0,'compress':false,"
     "'compress_keep':0,'count_tool_rows':true,'version':2}",
     0},
    {"{'version':1}",
     "{'policy':'synthesise','max_tokens':8000,'max_messages':null,'since_us':0,'always_last':5,'compress':true,"
     "'compress_keep':200,'count_tool_rows':false}",
     0},
    {"{'version':0}", "history option 'version' is out of range", RV_E_INVALID},
    {"{'version':3}", "history option 'version' is out of range", RV_E_INVALID},
    {"{'max_tokens':0,'max_messages':0}",
     "{'policy':'synthesise','max_tokens':0,'max_messages':0,'since_us':0,'always_last':5,'compress':true,"
     "'compress_keep':200,'count_tool_rows':false,'version':2}",
     0},
    {"[]", "the options of a history must be an object, not array", RV_E_INVALID},
    {"null", "the options of a history must be an object, not null", RV_E_INVALID},
    {"{'policy':'all'}", "history option 'policy' is neither 'synthesise' nor 'skip'", RV_E_INVALID},
    {"{'policy':null}", "history option 'policy' is neither 'synthesise' nor 'skip'", RV_E_INVALID},
    {"{'max_tokens':-1}", "history option 'max_tokens' is out of range", RV_E_INVALID},
    {"{'max_tokens':1.5}", "history option 'max_tokens' must be an integer, not number", RV_E_INVALID},
    {"{'max_messages':'3'}", "history option 'max_messages' must be an integer, not string", RV_E_INVALID},
    {"{'since_us':null}", "history option 'since_us' must be an integer, not null", RV_E_INVALID},
    {"{'compress_keep':1073741825}", "history option 'compress_keep' is out of range", RV_E_INVALID},
    {"{'compress':1}", "history option 'compress' must be a boolean, not integer", RV_E_INVALID},
    {"{'max_token':1}", "'max_token' is not an option of a history", RV_E_INVALID},
};
START_TEST(options_are_read_and_written)
{
    json_object *json = rv_kit_json(cases[_i].json), *want = NULL;
    struct rv_history_opts o = {.policy = RV_UNSET};
    rv_buf text = RV_BUF_INIT(10000);
    rv_jw w = rv_jw_on(&text);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_history_opts_read(json, &o, &err), cases[_i].rc);
    if (cases[_i].rc == 0) {
        char *expected;
        want = rv_kit_json(cases[_i].want);
        expected = rv_kit_text(want);
        rv_history_opts_write(&o, &w);
        ck_assert_str_eq(rv_buf_cstr(&text), expected);
        free(expected);
    } else {
        rv_buf_puts(&text, rv_err_text(err));
        for (size_t i = 0; i < text.len; i++)
            if (text.ptr[i] == '"')
                text.ptr[i] = '\'';
        ck_assert_str_eq(rv_buf_cstr(&text), cases[_i].want);
        ck_assert_int_eq(o.policy, RV_UNSET);
    }
    rv_err_free(err);
    rv_buf_fini(&text);
    json_object_put(want);
    json_object_put(json);
}
END_TEST

START_TEST(a_history_has_a_policy)
{
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    rv_history *h = NULL;

    o.policy = RV_N_REPLAY_POLICIES;
    ck_assert_int_eq(rv_history_new("s", &o, &h, NULL), RV_E_INVALID);
    o.policy = RV_UNSET;
    ck_assert_int_eq(rv_history_new("s", &o, &h, NULL), RV_E_INVALID);
    o.policy = RV_REPLAY_SKIP;
    ck_assert_int_eq(rv_history_new("\xff", &o, &h, NULL), RV_E_INVALID);
    ck_assert_ptr_null(h);
    rv_history_free(h);
}
END_TEST

TCase *options_case(void)
{
    TCase *c = tcase_create("options");

    tcase_add_loop_test(c, options_are_read_and_written, 0, RV_COUNT(cases));
    tcase_add_test(c, a_history_has_a_policy);
    return c;
}
