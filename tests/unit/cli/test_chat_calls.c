/* Lines between the words of a chat: calls and actions as people read them, and text that can not lead a terminal
 * astray. */
#include <string.h>

#include "coreengine/cli/chat/chat_internal.h"
#include "coreengine/cli/cli.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

static const struct {
    const char *text, *want;
} texts[] = {
    {"plain\ttext\nin two lines", "plain\ttext\nin two lines"},
    {"\033[2J\033]0;title\007", " [2J ]0;title "},
    {"one\r\ntwo\rthree", "one\ntwo three"},
    {"a\177b\001c", "a b c"},
    {"C1: \302\233m \302\205.", "C1:  m  ."},
    {"caf\303\251 \302\240 \342\202\254", "caf\303\251 \302\240 \342\202\254"},
    {"turned \342\200\256around\342\200\254, \342\201\246isolated\342\201\251", "turned  around ,  isolated "},
    {"marks \342\200\216a\342\200\217b\330\234c \342\200\250d\342\200\251", "marks  a b c  d "},
    {"joined \342\200\215 stay", "joined \342\200\215 stay"},
    {"dashes \342\200\223 stay", "dashes \342\200\223 stay"},
    {"cut \302", "cut \302"}, /* never in text of models, and no reason to read behind the end */
    {"cut \342\200", "cut \342\200"},
    {"", ""},
};

START_TEST(a_terminal_gets_text_and_nothing_else)
{
    rv_buf out = RV_BUF_INIT(4096);

    cli_write_safe(rv_str_of(texts[_i].text), &out);
    ck_assert_str_eq(rv_buf_cstr(&out), texts[_i].want);
    rv_buf_fini(&out);
}
END_TEST

static const struct {
    const char *tool, *arguments, *want;
} calls[] = {
    {"search", "{\"query\":\"a b\",\"n\":2}", "search(query: \"a b\", n: 2)"},
    {"search", "{}", "search()"},
    {"search", "", "search()"},
    {"search", "{\"query\":\"cut of...", "search({\"query\":\"cut of...)"},
    {"search", "[1]", "search([1])"},
    {"se\033arch", "{\"a\\u001b\":\"x\\ny\"}", "se arch(a : \"x\\ny\")"},
    {"t",
     "{\"a\":\"012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678\"}",
     "t(a: \"012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345...)"},
};

START_TEST(a_call_is_one_line)
{
    rv_buf out = RV_BUF_INIT(4096);

    cli_chat_write_call(rv_str_of(calls[_i].tool), rv_str_of(calls[_i].arguments), &out);
    ck_assert_str_eq(rv_buf_cstr(&out), calls[_i].want);
    rv_buf_fini(&out);
}
END_TEST

static const struct {
    const char *event, *want;
} actions[] = {
    {"{'action_type':'observation','payload':{'confidence':0.7,'sources':['a']}}",
     "  * observation: confidence: 0.7, sources: [\"a\"]"},
    {"{'action_type':'complete','payload':{}}", "  * complete"},
    {"{'action_type':'elicit','payload':{'question':'Which\\none?','options':['x','y']}}",
     "  ? Which one?\n    1. x\n    2. y"},
    {"{'action_type':'elicit','payload':{'question':'Why?'}}", "  ? Why?"},
    {"{'action_type':'elicit','payload':{'options':[1,null]}}", "  ? \n    1. \n    2. "},
    {"{}", "  * "},
};

START_TEST(an_action_is_told_and_a_question_has_its_options)
{
    json_object *event = rv_kit_json(actions[_i].event);
    rv_buf out = RV_BUF_INIT(4096);

    cli_chat_write_action(event, "  ", &out);
    ck_assert_str_eq(rv_buf_cstr(&out), actions[_i].want);
    rv_buf_fini(&out);
    json_object_put(event);
}
END_TEST

Suite *chat_calls_suite(void)
{
    Suite *s = suite_create("chat_calls");
    TCase *tc = tcase_create("chat_calls");

    tcase_add_loop_test(tc, a_terminal_gets_text_and_nothing_else, 0, RV_COUNT(texts));
    tcase_add_loop_test(tc, a_call_is_one_line, 0, RV_COUNT(calls));
    tcase_add_loop_test(tc, an_action_is_told_and_a_question_has_its_options, 0, RV_COUNT(actions));
    suite_add_tcase(s, tc);
    return s;
}
