/* What the asking agent is told of one that it asked: its answer, or why there is none. */
#include <string.h>

#include "coreengine/agent/child_internal.h"

/* The result of a delegation as models and rows have it; the caller's. */
static int result_map(const rv_visit *v, size_t index, const char *agent, const struct child *c, const char *error,
                      json_object **out, rv_err **err)
{
    const char *asked = NULL;
    const rv_visit *child = c ? c->visit : NULL;
    bool structured = child && !error && child->agent->output.schema;
    json_object *text = NULL, *map = json_object_new_object();
    rv_buf words = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);

    if (!error && structured)
        rv_json_write(child->output, &words);
    else if (!error && child->model.visible.len > 0)
        rv_buf_add_str(&words, rv_buf_str(&child->model.visible));
    int rc = map ? rv_buf_check(&words, "the answer of an agent", err) : RV_FAIL(err, RV_E_NOMEM, "end a delegation");
    if (rc == 0)
        rc = rv_json_set_text(map, "status", error ? "error" : "success", err);
    if (rc == 0 && structured)
        rc = rv_json_set_ref(map, "output", child->output, err);
    else if (rc == 0) {
        if (!error)
            json_object_object_get_ex(child->output, "response", &text);
        rc = rv_json_set_str(map, "output", rv_json_str(text), err);
    }
    if (rc == 0)
        rc = rv_json_set_str(map, "text_response", rv_buf_str(&words), err);
    if (rc == 0)
        rc = rv_json_set_text(map, "agent_schema", agent, err);
    if (rc == 0 && !error && v->shared->rules >= RV_RULES_2 &&
        rv_json_get_text(rv_step_parameters(v, index), "input_text", &asked)) /* remlight 8 */
        rc = rv_json_set_text(map, "input_text", asked, err);
    if (rc == 0 && error)
        rc = rv_json_set_text(map, "error", error, err);
    if (rc == 0 && !error)
        rc = rv_json_set_bool(map, "is_structured_output", structured, err);
    if (rc == 0 && !error)
        rc = rv_json_set_ref(map, "chained_tool_result", child->chained, err);
    rv_buf_fini(&words);
    if (rc < 0) {
        json_object_put(map);
        return rc;
    }
    *out = map;
    return 0;
}

/* Takes map: an entry of `results`. */
static int entry_of(rv_visit *v, size_t index, json_object *map, const char *type, const char *error, int64_t ms,
                    json_object **entry, rv_err **err)
{
    char scratch[48];
    struct rv_step_result r = {.step_id = rv_step_id(v, index, scratch, sizeof scratch),
                               .tool = rv_step_tool(v, index),
                               .parameters = rv_step_parameters(v, index),
                               .execution_ms = ms};
    json_object *standard = json_object_new_object(), *fault = NULL;
    int rc = standard ? 0 : RV_FAIL(err, RV_E_NOMEM, "end a delegation");

    if (rc == 0)
        rc = rv_json_set_text(standard, "status", error ? "error" : "success", err);
    if (rc == 0 && error) {
        fault = json_object_new_object();
        rc = rv_json_set_take(standard, "error", fault, err);
        if (rc == 0)
            rc = rv_json_set_text(fault, "error_type", type, err);
        if (rc == 0)
            rc = rv_json_set_text(fault, "message", error, err);
    }
    if (rc == 0)
        rc = rv_json_set_take(standard, "data", map, err);
    else
        json_object_put(map);
    r.standard = standard;
    if (rc == 0)
        rc = rv_tool_step_result(&r, entry, err);
    json_object_put(standard);
    return rc;
}

int rv_child_result(rv_visit *v, size_t index, const char *agent, const struct child *c, const char *type,
                    const char *error, int64_t ms, json_object **entry, rv_err **err)
{
    json_object *map = NULL;
    int rc = result_map(v, index, agent, c, error, &map, err);

    return rc < 0 ? rc : entry_of(v, index, map, type, error, ms, entry, err);
}

int rv_child_refuse(rv_visit *v, size_t index, const char *why, json_object **entry, rv_err **err)
{
    json_object *parameters = rv_step_parameters(v, index);
    const char *agent = "";

    if (parameters && !rv_json_get_text(parameters, "agent_name", &agent))
        agent = "";
    return rv_child_result(v, index, agent, NULL, "AgentError", why, 0, entry, err);
}

const char *rv_child_fault(const struct child *c, rv_buf *why, const char **type)
{
    const rv_visit *child = c->visit;
    const char *agent = child->shared->origin->agent;

    *type = "AgentError";
    if (child->result.end == RV_VISIT_OK)
        return NULL;
    if (child->result.end == RV_VISIT_STAYED) {
        struct rv_interrupt in = rv_envelope_interrupt(c->env);
        const char *ask = in.question ? in.question : in.message;
        rv_buf_printf(why, "agent \"%s\" needs a person, and an agent that was asked can not wait for one: %s", agent,
                      ask ? ask : "it asks for an answer");
    } else if (child->error_type && strcmp(child->error_type, "TimeoutError") == 0 &&
               child->now_us >= c->shared.deadline_us) {
        *type = "TimeoutError";
        rv_buf_printf(why, "Agent '%s' timed out after %llds", agent, (long long)((c->timeout_us + 999999) / 1000000));
    } else {
        rv_buf_puts(why, child->error_text ? child->error_text : "it failed");
    }
    return why->rc < 0 ? "it failed" : rv_buf_cstr(why);
}
