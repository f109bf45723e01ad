/* Hooks around a tool call: those before it see the arguments, those after it what it came to. What they change is
 * checked like what a model or the tool itself says. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

void agent_tool_hooks_fini(struct tool_hooks *h)
{
    json_object_put(h->arguments);
    json_object_put(h->entry);
    *h = (struct tool_hooks){0};
}

/* --- asking --- */

static int show_call(rv_visit *v, size_t index, json_object *shown, rv_err **err)
{
    json_object *arguments = agent_step_parameters(v, index);
    char scratch[48];
    int rc = rv_json_set_str(shown, "tool", agent_step_tool(v, index), err);

    if (rc == 0)
        rc = rv_json_set_str(shown, "step_id", agent_step_id(v, index, scratch, sizeof scratch), err);
    if (rc < 0)
        return rc;
    return arguments ? rv_json_set_ref(shown, "arguments", arguments, err)
                     : rv_json_set_take(shown, "arguments", json_object_new_object(), err);
}

/* An entry of `results`: its data and what the model would get in its place, or its error. */
static int show_entry(json_object *entry, json_object *shown, rv_err **err)
{
    json_object *error = rv_json_get_obj(entry, "error"), *content = rv_json_get_arr(entry, "content"), *data = NULL;

    if (error)
        return rv_json_set_ref(shown, "error", error, err);
    json_object_object_get_ex(entry, "data", &data);
    int rc = rv_json_set_ref(shown, "result", data, err);
    return rc == 0 && content ? rv_json_set_ref(shown, "content", content, err) : rc;
}

static int ask(rv_visit *v, size_t index, struct tool_hooks *h, struct rv_effects *out, rv_err **err)
{
    bool is_before = h->side == HOOKS_BEFORE;
    json_object *shown = json_object_new_object();
    int rc = shown ? show_call(v, index, shown, err) : RV_FAIL(err, RV_E_NOMEM, "show a call to a hook");

    if (rc == 0 && !is_before)
        rc = show_entry(h->entry, shown, err);
    if (rc == 0)
        rc = agent_hooks_ask(v, is_before ? BEFORE_TOOL : AFTER_TOOL, h->at, shown, out, err);
    json_object_put(shown);
    return rc;
}

/* Ask the hook that is next on this side; with none left the side is over. */
static int ask_next(rv_visit *v, size_t index, struct tool_hooks *h, struct rv_effects *out, rv_err **err)
{
    bool is_before = h->side == HOOKS_BEFORE;

    if (h->at < agent_hooks_of(v, is_before ? BEFORE_TOOL : AFTER_TOOL)->n)
        return ask(v, index, h, out, err);
    h->side = is_before ? HOOKS_PASSED : HOOKS_DONE;
    return 0;
}

int agent_step_hooks_before(rv_visit *v, size_t index, struct tool_hooks *h, struct rv_effects *out, rv_err **err)
{
    h->side = HOOKS_BEFORE;
    h->at = 0;
    return ask_next(v, index, h, out, err);
}

int agent_step_hooks_after(rv_visit *v, size_t index, struct tool_hooks *h, struct step_end end, struct rv_effects *out,
                           rv_err **err)
{
    json_object_put(h->entry);
    h->entry = end.entry;
    h->call_id = end.call_id;
    h->side = HOOKS_AFTER;
    h->at = 0;
    return ask_next(v, index, h, out, err);
}

/* --- answers --- */

/* Other arguments: they have to fit the tool, as those of a model have to. */
static int replace_arguments(rv_visit *v, size_t index, struct tool_hooks *h, json_object *arguments, rv_err **err)
{
    rv_str tool = agent_step_tool(v, index);
    const struct rv_tool_info *info = visit_tool(v, tool);
    rv_err *cause = NULL;
    int rc = info && info->input ? rv_schema_check(info->input, arguments, &cause) : 0;

    if (rc < 0) {
        rc = RV_WRAP(&cause, rc, "its arguments do not fit tool \"%.*s\"", RV_STR_ARG(rv_utf8_cut(tool, 200)));
        RV_IGNORE(rc, "the chain carries it");
        return agent_hooks_fail(v, BEFORE_TOOL, h->at, cause, err);
    }
    if (v->tools.approved && rv_json_equal(arguments, h->arguments))
        return 0;
    v->tools.approved = false; /* a person who changed the arguments approved those, not what a hook makes of them */
    json_object_get(arguments);
    json_object_put(h->arguments);
    h->arguments = arguments;
    return 0;
}

/* A result that a hook gives is read like one of the tool. */
static int entry_of_result(rv_visit *v, size_t index, json_object *result, int64_t ms, json_object **entry,
                           rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    rv_json_write(result, &text);
    int rc = rv_buf_check(&text, "the result of a hook", err);
    const struct rv_event told = {.kind = RV_EVENT_TOOL_DONE, .reply = rv_buf_str(&text)};
    if (rc == 0)
        rc = agent_step_entry(v, index, &told, ms, entry, err);
    rv_buf_fini(&text);
    return rc;
}

static int replace_result(rv_visit *v, size_t index, struct tool_hooks *h, json_object *result, rv_err **err)
{
    json_object *entry = NULL;
    int64_t ms = rv_json_int_or(h->entry, "execution_time_ms", 0);

    int rc = entry_of_result(v, index, result, ms, &entry, err);
    if (rc < 0)
        return rc;
    json_object_put(h->entry);
    h->entry = entry;
    return 0;
}

/* The call is not made, or its result is not used: the model learns why, as of a tool that it may not call. */
static int block(rv_visit *v, size_t index, struct tool_hooks *h, enum hook_place place, rv_str reason, rv_err **err)
{
    const char *hook = agent_hooks_of(v, place)->items[h->at];
    rv_buf text = RV_BUF_INIT(8192);
    json_object *entry = NULL;
    int64_t ms = 0;

    rv_buf_printf(&text, "hook \"%.200s\" blocked %s \"%.*s\": %.*s", hook,
                  place == BEFORE_TOOL ? "tool" : "the result of tool",
                  RV_STR_ARG(rv_utf8_cut(agent_step_tool(v, index), 200)), RV_STR_ARG(reason));
    if (h->entry)
        ms = rv_json_int_or(h->entry, "execution_time_ms", 0);
    int rc = rv_buf_check(&text, "why a call is blocked", err);
    if (rc == 0)
        rc = agent_step_error(
            v, index, &(struct step_failure){.type = rv_error_access_denied, .message = rv_buf_str(&text), .ms = ms},
            &entry, err);
    if (rc == 0)
        rc = planned_code(v, entry, "access_denied", err);
    rv_buf_fini(&text);
    if (rc < 0) {
        json_object_put(entry);
        return rc;
    }
    json_object_put(h->entry);
    h->entry = entry;
    h->side = HOOKS_DONE;
    h->is_refused = place == BEFORE_TOOL && !v->tools.approved; /* else it was a person who wrote the arguments */
    return 0;
}

int agent_step_hooks_on(rv_visit *v, size_t index, struct tool_hooks *h, const struct rv_event *ev,
                        struct rv_effects *out, rv_err **err)
{
    enum hook_place place = h->side == HOOKS_BEFORE ? BEFORE_TOOL : AFTER_TOOL;
    struct hook_answer answer;
    json_object *entry = NULL;
    int rc = agent_hooks_read(v, place, h->at, ev, &answer, err);

    if (rc <= 0)
        return rc;
    rc = 0;
    switch (answer.action) {
    case HOOK_CONTINUES:
        break;
    case HOOK_REPLACES:
        rc = place == BEFORE_TOOL ? replace_arguments(v, index, h, answer.value, err)
                                  : replace_result(v, index, h, answer.value, err);
        break;
    case HOOK_ANSWERS:
        rc = entry_of_result(v, index, answer.value, 0, &entry, err);
        break;
    case HOOK_BLOCKS:
        rc = block(v, index, h, place, answer.reason, err);
        break;
    }
    if (rc == 0 && entry) /* hooks after the call see it, too */
        rc = agent_step_hooks_after(v, index, h, (struct step_end){entry, 0}, out, err);
    else if (rc == 0 && answer.action != HOOK_BLOCKS && v->phase != PHASE_FAILED) {
        h->at++;
        rc = ask_next(v, index, h, out, err);
    }
    json_object_put(answer.json);
    return rc;
}
