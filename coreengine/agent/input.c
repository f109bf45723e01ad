/* Tools that ask a person before they can answer. The call that asked is over; the stage waits with one question after
 * the other, and makes the call again, with the same key and with all answers. So nothing is under way while a person
 * thinks, and a crash loses nothing.
 *
 * What is kept with the step is {round, server, state?, requests: [{key, message, schema}], answers: [{round, key,
 * message, schema, action, content?}]}: `requests` are open, in the order in which they are asked; a tool may ask again
 * when it has its answers, which is another round. */
#include "coreengine/agent/tools_internal.h"
#include "coreengine/base/base.h"
#include "envelope/envelope.h"

#define WAIT_US     RV_US_PER_HOUR    /* for one answer: servers forget what they asked */
#define MAX_MESSAGE ((size_t)4 << 10) /* bytes of what a server asks: a person reads it, as RV_MCP_MAX_WORDS */

/* --- what a tool asks --- */

/* What is wrong with it; NULL: it is {server?, state?, requests}. */
static const char *fault_of(json_object *asked)
{
    json_object *list = json_object_is_type(asked, json_type_object) ? rv_json_get_arr(asked, "requests") : NULL;
    size_t n = list ? json_object_array_length(list) : 0;
    const char *text;

    if (n == 0 || n > RV_TOOL_MAX_REQUESTS)
        return "the tool asks a person for nothing, or for more than " RV_LIMIT_TEXT(
            RV_TOOL_MAX_REQUESTS) " things at once";
    for (size_t i = 0; i < n; i++) {
        json_object *one = json_object_array_get_idx(list, i);
        if (!json_object_is_type(one, json_type_object) || !rv_json_get_text(one, "key", &text) ||
            !rv_json_get_text(one, "message", &text) || !rv_json_get_obj(one, "schema"))
            return "the tool asks a person, and does not say what";
    }
    return NULL;
}

/* The state of the step after it asked, the caller's. */
static int next_round(const rv_visit *v, json_object *asked, json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *before = v->tools.input, *input = json_object_new_object(), *part = NULL;
    json_object *answers = before ? rv_json_get_arr(before, "answers") : NULL;
    int64_t round = 0;

    if (!input)
        return RV_FAIL(err, RV_E_NOMEM, "ask for a tool");
    RV_IGNORE(!before || !rv_json_get_int(before, "round", &round), "the first one");
    rv_json_build_int(&b, input, "round", round + 1);
    if (json_object_object_get_ex(asked, "server", &part))
        rv_json_build(&b, input, "server", json_object_get(part));
    if (json_object_object_get_ex(asked, "state", &part) && part)
        rv_json_build(&b, input, "state", json_object_get(part));
    rv_json_build(&b, input, "requests", json_object_get(rv_json_get_arr(asked, "requests")));
    rv_json_build(&b, input, "answers", answers ? json_object_get(answers) : json_object_new_array());
    if (b.rc < 0)
        json_object_put(input);
    else
        *out = input;
    return b.rc;
}

static bool may_ask_again(const rv_visit *v)
{
    int64_t round = 0;

    return !v->tools.input || !rv_json_get_int(v->tools.input, "round", &round) || round < RV_TOOL_MAX_ROUNDS;
}

int agent_input_asked(rv_visit *v, const struct rv_event *ev, int64_t ms, json_object **entry, struct rv_effects *out,
                      rv_err **err)
{
    const struct rv_json_opts opts = {.what = "what a tool asks"};
    json_object *asked = NULL, *input = NULL;

    *entry = NULL;
    int rc = rv_json_try_parse(ev->reply, &opts, &asked, err);
    if (rc < 0)
        return rc;
    const char *why = fault_of(asked);
    if (!why && v->planned && v->agent->planning.confirmer == RV_CONFIRMER_NONE)
        why = "the tool asks a person, and the stage has no one who answers";
    if (!why && !may_ask_again(v))
        why = "the tool asks again and again, and got " RV_LIMIT_TEXT(RV_TOOL_MAX_ROUNDS) " answers";
    if (why) {
        json_object_put(asked);
        rc = agent_step_error(v, v->tools.at,
                              &(struct step_failure){.type = rv_error_tool, .message = rv_str_of(why), .ms = ms}, entry,
                              err);
        if (rc == 0 && (rc = planned_code(v, *entry, "tool_error", err)) < 0) {
            json_object_put(*entry);
            *entry = NULL;
        }
        return rc;
    }
    rc = next_round(v, asked, &input, err);
    json_object_put(asked);
    if (rc < 0)
        return rc;
    json_object_put(v->tools.input);
    v->tools.input = input;
    return agent_input_ask(v, out, err);
}

/* --- the question --- */

int agent_input_ask(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    json_object *one = agent_input_open(v), *data = json_object_new_object(),
                *parameters = agent_step_parameters(v, v->tools.at);
    rv_buf message = RV_BUF_INIT(MAX_MESSAGE + 1024);
    char scratch[48];

    const char *text = rv_json_text_or(one, "message", "");
    const char *server = rv_json_text_or(v->tools.input, "server", "");
    int rc = RV_SET(data, err, RV_M_TEXT("reason", RV_TOOL_INPUT), RV_M_STR("tool", agent_step_tool(v, v->tools.at)),
                    RV_M_STR("step_id", agent_step_id(v, v->tools.at, scratch, sizeof scratch)),
                    RV_M_TEXT("stage", v->agent->name), RV_M_TEXT("server", server),
                    RV_M_OF(VALUE, "schema", rv_json_get_obj(one, "schema")),
                    RV_M_IF(parameters, RV_M_OF(VALUE, "parameters", parameters)));
    rv_buf_printf(&message, "MCP server \"%.*s\" asks for its tool \"%.*s\": %.*s",
                  RV_STR_ARG(rv_utf8_cut(rv_str_of(server), 100)),
                  RV_STR_ARG(rv_utf8_cut(agent_step_tool(v, v->tools.at), 200)),
                  RV_STR_ARG(rv_utf8_cut(rv_str_of(text), MAX_MESSAGE)));
    if (rc == 0)
        rc = rv_buf_check(&message, "a question", err);
    if (rc == 0)
        rc = visit_pause(
            v,
            &(struct visit_question){
                .kind = RV_INTERRUPT_AGENT_REVIEW, .text = rv_buf_str(&message), .data = data, .ttl_us = WAIT_US},
            RV_TOOL_INPUT, out, err);
    json_object_put(data);
    rv_buf_fini(&message);
    return rc;
}
