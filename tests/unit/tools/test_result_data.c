/* Rule 6.6 and W39: what a tool found, in one shape. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

static const struct {
    const char *id, *raw, *key, *want;
    int n_dropped;
} cases[] = {
    {"6.6 missing list is empty", "{}", "items_explored", "[]", 0},
    {"6.6 list of another type is empty", "{'items_pending':'a'}", "items_pending", "[]", 0},
    {"6.6 missing discoveries", "{}", "discoveries", "[]", 0},
    {"6.6 missing evidence", "{'evidence':null}", "evidence", "[]", 0},
    {"6.6 explored strings only", "{'items_explored':['a',1,null,'b',{}]}", "items_explored", "['a','b']", 3},
    {"6.6 pending strings only", "{'items_pending':['a',true]}", "items_pending", "['a']", 1},
    {"6.6 raw is the input", "{'x':[1],'evidence':[]}", "raw", "{'x':[1],'evidence':[]}", 0},

    {"6.6 discovery as text", "{'discoveries':['a.c']}", "discoveries",
     "[{'identifier':'a.c','item_type':'item','location':null,'metadata':{}}]", 0},
    {"6.6 whole discovery",
     "{'discoveries':[{'identifier':'f','item_type':'function','location':'a.c:3','metadata':{'n':1},'more':2}]}",
     "discoveries", "[{'identifier':'f','item_type':'function','location':'a.c:3','metadata':{'n':1}}]", 0},
    {"6.6 discovery defaults", "{'discoveries':[{'identifier':'f','location':null,'metadata':3}]}", "discoveries",
     "[{'identifier':'f','item_type':'item','location':null,'metadata':{}}]", 0},
    {"6.6 identifier as text", "{'discoveries':[{'identifier':42},{'identifier':[1,'a']},{'identifier':1.50}]}",
     "discoveries",
     "[{'identifier':'42','item_type':'item','location':null,'metadata':{}},"
     "{'identifier':'[1,\\u0022a\\u0022]','item_type':'item','location':null,'metadata':{}},"
     "{'identifier':'1.50','item_type':'item','location':null,'metadata':{}}]",
     0},
    {"W39 discovery without identifier is dropped", "{'discoveries':[{'location':'x'},{'identifier':null},'a']}",
     "discoveries", "[{'identifier':'a','item_type':'item','location':null,'metadata':{}}]", 2},
    {"6.6 anything else is ignored", "{'discoveries':[1,null,['a'],true]}", "discoveries", "[]", 4},

    {"6.6 evidence as text", "{'evidence':['it says so']}", "evidence",
     "[{'location':'unknown','content':'it says so','relevance':'','confidence':0.9}]", 0},
    {"6.6 whole evidence", "{'evidence':[{'location':'a.c:3','content':'int x','relevance':'high','confidence':0.25}]}",
     "evidence", "[{'location':'a.c:3','content':'int x','relevance':'high','confidence':0.25}]", 0},
    {"W39 missing location is unknown, missing content empty", "{'evidence':[{}]}", "evidence",
     "[{'location':'unknown','content':'','relevance':'','confidence':0.9}]", 0},
    {"W39 null is missing", "{'evidence':[{'location':null,'content':null,'relevance':null,'confidence':null}]}",
     "evidence", "[{'location':'unknown','content':'','relevance':'','confidence':0.9}]", 0},
    {"6.6 location and content as text", "{'evidence':[{'location':12,'content':{'a':1}}]}", "evidence",
     "[{'location':'12','content':'{\\u0022a\\u0022:1}','relevance':'','confidence':0.9}]", 0},
    {"6.6 whole-number confidence stays", "{'evidence':[{'content':'c','confidence':1}]}", "evidence",
     "[{'location':'unknown','content':'c','relevance':'','confidence':1}]", 0},
    {"6.6 confidence that is no number", "{'evidence':[{'content':'c','confidence':'high'}]}", "evidence",
     "[{'location':'unknown','content':'c','relevance':'','confidence':0.9}]", 0},
    {"6.6 other evidence is ignored", "{'evidence':[null,3,[]]}", "evidence", "[]", 3},
};

/* Proves 6.6/lists: Explored and pending items keep texts only; a missing list is empty; raw is the answer
 * Proves 6.6/discoveries: A discovery is an object or a text that is its identifier; type, location and metadata
 * have defaults
 * Proves 6.6/evidence: Evidence is an object or a text that is its content; location, content, relevance and
 * confidence have defaults
 * Proves 6.6/other: Other entries are dropped and counted; an answer that is no object is an error
 * Proves W39: A discovery without identifier is dropped and counted; a missing location is unknown, missing content
 * empty */
START_TEST(result_data_has_one_shape)
{
    json_object *raw = rv_kit_json(cases[_i].raw), *want = rv_kit_json(cases[_i].want), *out = NULL, *part = NULL;
    size_t n_dropped = 99;
    char *got_text, *want_text;

    ck_assert_int_eq(rv_tool_result_build_data(raw, &out, &n_dropped, NULL), 0);
    ck_assert_int_eq(json_object_object_length(out), 5);
    ck_assert(json_object_object_get_ex(out, cases[_i].key, &part));
    got_text = rv_kit_text(part);
    want_text = rv_kit_text(want);
    ck_assert_msg(strcmp(got_text, want_text) == 0, "%s:\n  got  %s\n  want %s", cases[_i].id, got_text, want_text);
    ck_assert_msg((int)n_dropped == cases[_i].n_dropped, "%s: %zu dropped", cases[_i].id, n_dropped);
    free(got_text);
    free(want_text);
    json_object_put(out);
    json_object_put(want);
    json_object_put(raw);
}
END_TEST

/* Proves 6.6/other */
START_TEST(result_data_of_no_object_is_an_error)
{
    json_object *raw = rv_kit_json("[1]"), *out = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_tool_result_build_data(raw, &out, NULL, &err), RV_E_INVALID);
    ck_assert_str_eq(rv_err_text(err), "result data must be an object, found array");
    ck_assert_ptr_null(out);
    rv_err_free(err);
    json_object_put(raw);
}
END_TEST

TCase *result_data_case(void)
{
    TCase *tc = tcase_create("result_data");

    tcase_add_loop_test(tc, result_data_has_one_shape, 0, (int)RV_COUNT(cases));
    tcase_add_test(tc, result_data_of_no_object_is_an_error);
    return tc;
}
