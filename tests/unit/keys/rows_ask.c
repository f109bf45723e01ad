/* Keys by which a stage asks a person, and by which an answer leads on. */
#include "tests/unit/keys/rows.h"

#define ASKS(keys) "name: t\nagents: [{name: a, " keys "}, {name: b, stage_order: 1}, {name: c, stage_order: 2}]\n"
/* A model's call that waits for approval. */
#define WAITS                                                                                                          \
    "{'envelope_id':'e','current_stage':'a','stage_order':['a'],'interrupt_pending':true,'interrupt':{'kind':"         \
    "'confirmation','id':'i','message':'m','data':{'stage':'a','tool':'wipe'},'created_at':'2023-11-14T22:13:20Z'},"   \
    "'suspended':{'a':{'kind':'confirmation_gate','interrupt_id':'i','steps':[{'step_id':'c1','tool':'wipe'}],"        \
    "'results':[],'at':0,'talk':{'prompt':'p','turns':[{'role':'assistant','tool_calls':[{'id':'c1','name':'wipe',"    \
    "'arguments':''}]}]}}}}"

static const struct key_row rows[] = {
    {"agent.ask", "{question: q}", "{question: q, options: text}", ASKS("ask: @")},
    {"ask.question", "one", "two", ASKS("ask: {question: @}")},
    {"ask.show", "output", "outputs", ASKS("ask: {question: q, show: @}")},
    {"ask.options", "[yes, no]", "[no, yes]", ASKS("ask: {question: q, options: @}")},
    {"ask.expires_seconds", "1", "2", ASKS("ask: {question: q, expires_seconds: @}")},
    {"agent.on_answer", "{yes: b}", "{yes: c}", ASKS("ask: {question: q}, on_answer: @")},
    {"agent.on_denied", "end_run", "tell_model",
     "name: t\nmodels: {r: scripted}\nagents: [{name: a, has_llm: true, has_tools: true, tool_access: all, "
     "model_role: r, on_denied: @}]\n",
     .with = "reject", .state = WAITS},
};

const struct key_rows key_rows_ask = {rows, RV_COUNT(rows), key_tell_run};
