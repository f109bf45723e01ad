/* Rules 3.9 (final response) and 3.10 (result dict). */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#define ANSWER "'outputs':{'integration':{'final_response':'the answer'},'out':{'text':'elsewhere','n':1}}"
#define AT     "'created_at':'2025-01-01T00:00:00Z'"

static const struct {
    const char *state;
    const char *key, *field;
    const char *want; /* NULL: none */
} responses[] = {
    {"{'interrupt_pending':true,'interrupt':{'kind':'clarification','id':'i','question':'which?'}," ANSWER "}", NULL,
     NULL, "which?"},
    {"{'interrupt_pending':true,'interrupt':{'kind':'clarification','id':'i','question':''}," ANSWER "}", NULL, NULL,
     "the answer"},
    {"{'interrupt_pending':true,'interrupt':{'kind':'confirmation','id':'i','message':'sure?'}," ANSWER "}", NULL, NULL,
     "sure?"},
    {"{'interrupt_pending':true,'interrupt':{'kind':'confirmation','id':'i','question':'which?'}," ANSWER "}", NULL,
     NULL, "the answer"},
    {"{'interrupt_pending':true,'interrupt':{'kind':'agent_review','id':'i','message':'look'}," ANSWER "}", NULL, NULL,
     "look"},
    {"{'interrupt_pending':true,'interrupt':{'kind':'timeout','id':'i','message':'late'}," ANSWER "}", NULL, NULL,
     "the answer"},
    {"{'interrupt_pending':false,'interrupt':{'kind':'clarification','id':'i','question':'which?'}," ANSWER "}", NULL,
     NULL, "the answer"},
    {"{" ANSWER "}", NULL, NULL, "the answer"},
    {"{" ANSWER "}", "out", "text", "elsewhere"},
    {"{" ANSWER "}", "out", NULL, NULL},
    {"{" ANSWER "}", "out", "n", NULL}, /* not a string */
    {"{" ANSWER "}", "none", "text", NULL},
    {"{'outputs':{'integration':null}}", NULL, NULL, NULL},
    {"{'outputs':{'integration':{'final_response':''}}}", NULL, NULL, ""},
    {"{}", NULL, NULL, NULL},
};

/* Proves 3.9.1: Final response: a pending clarification with a question gives the question
 * Proves 3.9.2: Final response: a pending confirmation with a message gives the message
 * Proves 3.9.3: Final response: a pending agent review with a message gives the message
 * Proves 3.9.4: Final response: else the string at the configured output and field, by default
 * integration.final_response
 * Proves 3.9.5: Final response: else null */
START_TEST(rule_3_9_the_final_response_is_looked_for_in_order)
{
    rv_envelope *env = world_load(responses[_i].state);
    struct rv_response_place place = {responses[_i].key, responses[_i].field};
    rv_str got = {NULL, 0};
    bool found = rv_envelope_find_final_response(env, &place, &got);

    ck_assert_int_eq(found, responses[_i].want != NULL);
    if (found)
        ck_assert(rv_str_is(got, responses[_i].want));
    rv_envelope_free(env);
}
END_TEST

#define IDS "'envelope_id':'e','request_id':'r','user_id':'u','session_id':'s'"

static const struct {
    const char *state, *want;
} results[] = {
    {"{" IDS "}",
     "{" IDS
     ",'current_stage':'start','terminated':false,'termination_reason':null,'terminal_reason':null,'reason_class':null,"
     "'status':'ready','response':null,'interrupt_pending':false,'iteration':0,'llm_call_count':0,"
     "'processing_time_ms':0,'errors':[]}"},
    {"{" IDS ",'terminated':true,'termination_reason':'why','terminal_reason':'policy_violation','reason_class':'"
     "failed','status':'terminated',"
     "'iteration':1,'llm_call_count':2,'errors':[{'a':1}],'outputs':{'integration':{'final_response':'x'}},"
     "'processing_history':[{'agent':'a','duration_ms':3},{'agent':'b','duration_ms':4}]}",
     "{" IDS ",'current_stage':'start','terminated':true,'termination_reason':'why',"
     "'terminal_reason':'policy_violation','reason_class':'failed','status':'terminated','response':'x','interrupt_"
     "pending':false,"
     "'iteration':1,'llm_call_count':2,'processing_time_ms':7,'errors':[{'a':1}],"
     "'outputs':{'integration':{'final_response':'x'}}}"},
    {"{" IDS ",'interrupt_pending':true,'status':'interrupted','interrupt':{'kind':'clarification','id':'i',"
     "'question':'q','data':{'x':1}," AT "}}",
     "{" IDS
     ",'current_stage':'start','terminated':false,'termination_reason':null,'terminal_reason':null,'reason_class':null,"
     "'status':'interrupted','response':'q','interrupt_pending':true,'iteration':0,'llm_call_count':0,"
     "'processing_time_ms':0,'errors':[],'interrupt':{'kind':'clarification','id':'i','question':'q','message':null,"
     "'created_at':'2025-01-01T00:00:00.000000Z'},'clarification_needed':true,'clarification_question':'q',"
     "'interrupts':[{'kind':'clarification','id':'i','question':'q','message':null,'data':{'x':1},"
     "'created_at':'2025-01-01T00:00:00.000000Z'}]}"},
    {"{" IDS ",'interrupt_pending':false,'interrupt':{'kind':'confirmation','id':'i','message':'m'," AT "}}",
     "{" IDS
     ",'current_stage':'start','terminated':false,'termination_reason':null,'terminal_reason':null,'reason_class':null,"
     "'status':'ready','response':null,'interrupt_pending':false,'iteration':0,'llm_call_count':0,"
     "'processing_time_ms':0,'errors':[],'interrupt':{'kind':'confirmation','id':'i','question':null,'message':'m',"
     "'created_at':'2025-01-01T00:00:00.000000Z'},'confirmation_needed':false,'confirmation_message':'m',"
     "'confirmation_id':'i'}"},
    {"{" IDS ",'interrupt_pending':true,'interrupt':{'kind':'checkpoint','id':'i','message':'m'," AT "}}",
     "{" IDS
     ",'current_stage':'start','terminated':false,'termination_reason':null,'terminal_reason':null,'reason_class':null,"
     "'status':'ready','response':null,'interrupt_pending':true,'iteration':0,'llm_call_count':0,"
     "'processing_time_ms':0,'errors':[],'interrupt':{'kind':'checkpoint','id':'i','question':null,'message':'m',"
     "'created_at':'2025-01-01T00:00:00.000000Z'},'interrupts':[{'kind':'checkpoint','id':'i','question':null,"
     "'message':'m','data':null,'created_at':'2025-01-01T00:00:00.000000Z'}]}"},
};

/* Proves 3.10.always: Result dict: the keys that are always there, in order
 * Proves 3.10.outputs: Result dict: outputs only when not empty
 * Proves 3.10.interrupt: Result dict: an existing interrupt in its short form
 * Proves 3.10.clarification: Result dict: clarification_needed and clarification_question
 * Proves 3.10.confirmation: Result dict: confirmation_needed, confirmation_message, confirmation_id
 * Proves 3.10.engine: Result dict: terminal_reason and status
 * graph 7: all open questions are listed */
START_TEST(rule_3_10_result_dict)
{
    rv_envelope *env = world_load(results[_i].state);
    json_object *wrapped = json_object_new_object();

    json_object_object_add(wrapped, "result", world_result_json(env));
    world_expect_in(wrapped, "result", results[_i].want); /* all keys, in order */
    json_object_put(wrapped);
    rv_envelope_free(env);
}
END_TEST

TCase *result_case(void)
{
    TCase *tc = tcase_create("result");

    tcase_add_loop_test(tc, rule_3_9_the_final_response_is_looked_for_in_order, 0, RV_COUNT(responses));
    tcase_add_loop_test(tc, rule_3_10_result_dict, 0, RV_COUNT(results));
    return tc;
}
