/* What a call of a plan differs in from another call: who has to confirm it, how long it may take, how its result is
 * read, and the code of its failure. */
#include "coreengine/agent/tools_internal.h"

#include "coreengine/plan/plan.h"
#include "envelope/envelope.h"

json_object *planned_output_of(json_object *entry)
{
    json_object *value = NULL;

    if (!planned_is_good(entry))
        return NULL;
    if (!json_object_object_get_ex(entry, PLANNED_OUTPUT, &value))
        json_object_object_get_ex(entry, "data", &value);
    return value;
}

bool planned_confirms(const rv_visit *v, const struct rv_tool_info *info)
{
    bool is_destructive = rv_risk_needs_confirmation(rv_tool_risk(info)),
         only_reads = rv_tool_effect(info) == RV_EFFECT_SAFE;
    bool is_gated = v->shared->pipeline->execution.require_confirmation_for_destructive && is_destructive;

    switch (v->agent->planning.confirm) {
    case RV_CONFIRMS_NEVER:
        return false;
    case RV_CONFIRMS_DECLARED:
        return is_gated || info->confirm;
    case RV_CONFIRMS_DESTRUCTIVE:
        return is_destructive || info->confirm || (info->risk == RV_UNSET && !only_reads);
    case RV_CONFIRMS_WRITES:
        return is_destructive || info->confirm || !only_reads;
    case RV_CONFIRMS_ALL:
        return true;
    case RV_N_CONFIRMS:
        break;
    }
    return true;
}

/* --- what it comes to --- */

/* The effect class that decides whether a call without an answer may have happened. */
static bool may_have_happened(const rv_visit *v, json_object *entry)
{
    const char *tool = "";
    const struct rv_tool_info *info = rv_json_get_text(entry, "tool", &tool) ? visit_tool(v, rv_str_of(tool)) : NULL;

    return !info || rv_tool_effect(info) == RV_EFFECT_NON_IDEMPOTENT;
}

/* What is wrong with a result, as far as its tool has said it by a code. */
static const char *code_of_result(json_object *error)
{
    static const char *const codes[] = {"missing_structured_content", "output_schema_violation", "invalid_result"};
    const char *code = rv_json_text_or(rv_json_get_obj(error, "details"), "code", "");

    for (size_t i = 0; i < RV_COUNT(codes); i++)
        if (strcmp(code, codes[i]) == 0)
            return codes[i];
    return "tool_error";
}

static const char *code_of(const rv_visit *v, json_object *entry, const char *type, bool was_called)
{
    static const struct {
        const char *type, *code;
    } refused[] = {
        {rv_error_validation, "invalid_argument"},
        {rv_error_not_found, "unknown_tool"},
        {rv_error_access_denied, "access_denied"},
        {rv_error_tool, "tool_blocked"},
    };

    if (rv_error_is(type, rv_error_timeout)) {
        if (v->now_us >= v->planned->until_us)
            return "budget_exhausted";
        return may_have_happened(v, entry) ? "outcome_unknown" : "timeout";
    }
    if (rv_error_is(type, rv_error_cancelled))
        return "cancelled";
    for (size_t i = 0; i < RV_COUNT(refused) && !was_called; i++)
        if (strcmp(refused[i].type, type) == 0)
            return refused[i].code;
    return was_called && v->shared->rules >= RV_RULES_7 ? code_of_result(rv_json_get_obj(entry, "error"))
                                                        : "tool_error";
}

int planned_set_code(const rv_visit *v, json_object *entry, const char *code, bool was_called, rv_err **err)
{
    json_object *error = rv_json_get_obj(entry, "error");

    if (!error)
        return 0;
    const char *type = rv_json_text_or(error, "type", "");
    return rv_json_set_text(error, "code", code ? code : code_of(v, entry, type, was_called), err);
}

int planned_code(const rv_visit *v, json_object *entry, const char *code, rv_err **err)
{
    bool has_code = v->planned && v->shared->rules >= RV_RULES_7;

    return has_code ? planned_set_code(v, entry, code, !code, err) : 0;
}

/* --- results of `tools/call` --- */

static int fits(const void *schema, json_object *value, rv_err **err)
{
    return rv_schema_check(schema, value, err);
}

static int standard_error(const char *code, const char *text, json_object *standard, rv_err **err)
{
    json_object *error = json_object_new_object();
    int rc = rv_json_set_text(standard, "status", "error", err);

    if (rc == 0)
        rc = rv_json_set_take(standard, "error", error, err);
    else
        json_object_put(error);
    return rc < 0
               ? rc
               : RV_SET(error, err,
                        RV_M_TEXT("error_type", strcmp(code, "tool_error") == 0 ? rv_error_tool : rv_error_validation),
                        RV_M_TEXT("message", text), RV_M_BOOL("recoverable", false));
}

int planned_read_result(const struct rv_tool_info *info, json_object *raw, json_object **standard, json_object **value,
                        const char **code, rv_err **err)
{
    const struct rv_output_promise promise = {.has_schema = info && info->output,
                                              .check = RV_OUTPUT_STRICT,
                                              .schema = info ? info->output : NULL,
                                              .fits = fits};
    json_object *made = json_object_new_object();
    struct rv_output output = {0};
    int rc = made ? rv_output_build(raw, &promise, &output, err) : RV_FAIL(err, RV_E_NOMEM, "read a tool result");

    *value = NULL;
    *code = output.code;
    if (rc == 0 && output.code)
        rc = standard_error(output.code, output.text, made, err);
    else if (rc == 0)
        rc = RV_SET(made, err, RV_M_TEXT("status", "success"), RV_M_OF(VALUE, "data", output.value));
    if (rc == 0 && !output.code)
        *value = json_object_get(output.value);
    rv_output_fini(&output);
    if (rc < 0)
        json_object_put(made);
    else
        *standard = made;
    return rc;
}
