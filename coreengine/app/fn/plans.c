/* Filters: what a model plans. */
#include <stdlib.h>

#include "coreengine/app/fn/fn_internal.h"
#include "coreengine/plan/plan.h"

static void write_calls(const struct rv_plan *plan, rv_jw *out)
{
    rv_jw_kv_str(out, "reasoning", plan->reasoning);
    rv_jw_key(out, "calls");
    rv_jw_arr(out);
    for (size_t i = 0; i < plan->n_calls; i++) {
        rv_jw_obj(out);
        rv_jw_kv_str(out, "tool_name", plan->calls[i].tool);
        rv_jw_kv_value(out, "arguments", plan->calls[i].arguments);
        if (plan->calls[i].actual_type) {
            rv_jw_kv_text(out, "error", "arguments_not_object");
            rv_jw_kv_text(out, "actual_type", plan->calls[i].actual_type);
        }
        rv_jw_obj_end(out);
    }
    rv_jw_arr_end(out);
}

static void write_plan(const struct rv_plan *plan, rv_jw *out)
{
    rv_jw_obj(out);
    if (plan->fault) {
        rv_jw_kv_text(out, "error", rv_plan_error_text(plan->fault));
        if (plan->reason)
            rv_jw_kv_text(out, "reason", plan->reason);
        rv_jw_kv_text(out, "detail", plan->detail);
    } else {
        rv_jw_kv_text(out, "type", plan->direct ? "direct_response" : "tool_calls");
        if (plan->direct)
            rv_jw_kv_str(out, "content", plan->content);
        else
            write_calls(plan, out);
    }
    if (plan->duplicate_keys)
        rv_jw_kv_bool(out, "duplicate_keys", true);
    rv_jw_obj_end(out);
}

static int plan_parse(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_plan_reply reply = {app_fn_str(in, "text"), app_fn_any(in, "calls"), app_fn_flag(in, "truncated")};
    struct rv_plan plan;
    int64_t max = RV_PLAN_MAX_CALLS;

    if (!rv_json_get_int(in, "max_calls", &max))
        max = RV_PLAN_MAX_CALLS;
    if (max < 1)
        return RV_FAIL(err, RV_E_INVALID, "max_calls is %lld: use at least 1", (long long)max);
    int rc = rv_plan_parse(&reply, (size_t)max, &plan, err);
    if (rc == 0)
        write_plan(&plan, out);
    rv_plan_fini(&plan);
    return rc;
}

static int output_fits(const void *schema, json_object *value, rv_err **err)
{
    return rv_schema_check(schema, value, err);
}

/* The place of a word in a list. */
static int read_word(json_object *in, const char *key, const char *const *words, size_t n, size_t *out, rv_err **err)
{
    rv_buf hint = RV_BUF_INIT(200);
    rv_str word = app_fn_str(in, key);

    for (*out = 0; *out < n; ++*out)
        if (rv_str_is(word, words[*out]))
            return 0;
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(&hint, "%s%s", i == 0 ? "" : ", ", words[i]);
    int rc = RV_FAIL(err, RV_E_INVALID, "%s is \"%.*s\": use one of %s", key, RV_STR_ARG(word), rv_buf_cstr(&hint));
    rv_buf_fini(&hint);
    return rc;
}

static int read_check(json_object *in, enum rv_output_check *out, rv_err **err)
{
    static const char *const words[] = {
        [RV_OUTPUT_STRICT] = "strict", [RV_OUTPUT_WARN] = "warn", [RV_OUTPUT_OFF] = "off"};
    RV_EACH_HAS_ROW(words, RV_N_OUTPUT_CHECKS);
    size_t i = RV_OUTPUT_STRICT;
    int rc = app_fn_any(in, "validation") ? read_word(in, "validation", words, RV_COUNT(words), &i, err) : 0;

    if (rc == 0)
        *out = (enum rv_output_check)i;
    return rc;
}

static int tool_result_output(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_output_promise promise = {.fits = output_fits};
    json_object *given = app_fn_any(in, "output_schema");
    struct rv_output output = {0};
    rv_schema *schema = NULL;
    int rc = read_check(in, &promise.check, err);

    if (rc == 0 && given)
        rc = rv_schema_compile(given, "output_schema", &schema, err);
    promise.has_schema = given != NULL;
    promise.schema = schema;
    if (rc == 0)
        rc = rv_output_build(app_fn_any(in, "result"), &promise, &output, err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_bool(out, "success", !output.code);
        rv_jw_kv_value(out, "output", output.value);
        if (output.code)
            rv_jw_kv_text(out, "code", output.code);
        if (output.text)
            rv_jw_kv_text(out, output.code ? "error" : "warning", output.text);
        rv_jw_obj_end(out);
    }
    rv_output_fini(&output);
    rv_schema_free(schema);
    return rc;
}

/* --- references --- */

/* Each output has the shape that tool_result_output gives. */
static int read_outputs(json_object *list, struct rv_plan_step_output **out, size_t *n, rv_err **err)
{
    *n = json_object_array_length(list);
    *out = calloc(*n + 1, sizeof **out);
    if (!*out)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for outputs");
    for (size_t i = 0; i < *n; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        if (!json_object_is_type(item, json_type_object) || !rv_json_get_bool(item, "success", &(*out)[i].usable))
            return RV_FAIL(err, RV_E_INVALID, "outputs[%zu] has to be {success: bool, output?: any}", i);
        (*out)[i].value = app_fn_any(item, "output");
    }
    return 0;
}

static void write_resolution(const struct rv_plan_resolution *r, const rv_err *violation, rv_jw *out)
{
    rv_jw_obj(out);
    if (violation) {
        rv_jw_kv_text(out, "error", "invalid_argument");
        rv_jw_kv_text(out, "reason", rv_err_text(violation));
    } else if (r->code) {
        rv_jw_kv_text(out, "error", r->code);
        rv_jw_kv_text(out, "argument", r->argument);
        rv_jw_kv_text(out, "template", r->text);
        rv_jw_kv_text(out, "reason", r->reason);
    } else {
        rv_jw_kv_value(out, "arguments", r->arguments);
    }
    rv_jw_obj_end(out);
}

/* The arguments fit the schema of the tool, or *violation says why not. */
static int check_arguments(json_object *given, json_object *arguments, rv_err **violation, rv_err **err)
{
    rv_schema *schema = NULL;
    int rc = rv_schema_compile(given, "input_schema", &schema, err);

    if (rc < 0)
        return rc;
    if (rv_schema_check(schema, arguments, violation) == RV_E_NOMEM) {
        rv_err_free(*violation);
        *violation = NULL;
        rc = RV_FAIL(err, RV_E_NOMEM, "no memory for arguments");
    }
    rv_schema_free(schema);
    return rc;
}

static int plan_resolve(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *schema = app_fn_any(in, "input_schema");
    struct rv_plan_step_output *outputs = NULL;
    struct rv_plan_resolution r = {0};
    rv_err *violation = NULL;
    size_t n = 0;
    int rc = read_outputs(app_fn_any(in, "outputs"), &outputs, &n, err);

    if (rc == 0)
        rc = rv_plan_resolve(app_fn_any(in, "arguments"), outputs, n, &r, err);
    if (rc == 0 && schema && r.arguments)
        rc = check_arguments(schema, r.arguments, &violation, err);
    if (rc == 0)
        write_resolution(&r, violation, out);
    rv_err_free(violation);
    rv_plan_resolution_fini(&r);
    free(outputs);
    return rc;
}

/* --- results as text --- */

static int format_result(json_object *in, rv_jw *out, rv_err **err)
{
    static const char *const formats[] = {[RV_RESULT_MODEL] = "model",
                                          [RV_RESULT_SYNTHESIS] = "synthesis",
                                          [RV_RESULT_DISPLAY] = "display",
                                          [RV_RESULT_FALLBACK] = "fallback"};
    RV_EACH_HAS_ROW(formats, RV_N_RESULT_FORMATS);
    json_object *results = app_fn_any(in, "results");
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct rv_plan_result *items = NULL;
    const char **names = NULL;
    int64_t limit = 0;
    size_t n = 0, format = RV_RESULT_MODEL;
    int rc = read_word(in, "format", formats, RV_COUNT(formats), &format, err);

    if (rc == 0 && rv_json_get_int(in, "limit", &limit) && limit < 1)
        rc = RV_FAIL(err, RV_E_INVALID, "limit is %lld: use at least 1", (long long)limit);
    if (rc == 0)
        rc = app_fn_words(in, "names", &names, &n, err);
    if (rc == 0 && n > json_object_array_length(results)) /* the shorter list decides */
        n = json_object_array_length(results);
    if (rc == 0 && !(items = calloc(n + 1, sizeof *items)))
        rc = RV_FAIL(err, RV_E_NOMEM, "no memory for results");
    for (size_t i = 0; rc == 0 && i < n; i++)
        items[i] = (struct rv_plan_result){rv_str_of(names[i]), json_object_array_get_idx(results, i)};
    if (rc == 0) {
        rv_plan_results_write((enum rv_plan_result_format)format, items, n, (size_t)limit, &text);
        rc = rv_buf_check(&text, "text of the results", err);
    }
    if (rc == 0)
        rv_jw_str(out, rv_buf_str(&text));
    rv_buf_fini(&text);
    free(items);
    free(names);
    return rc;
}

static const struct rv_fn items[] = {
    {"plan_parse", "{text?: string, calls?: list, truncated?: bool, max_calls?: int}",
     "{type, content} | {type, reasoning, calls} | {error, reason?, detail}",
     "the plan in a reply of a model: the input of `__planning__`, a text that is a plan, native calls, or an answer",
     plan_parse},
    {"plan_resolve", "{arguments: object, outputs: list, input_schema?: any}",
     "{arguments} | {error, argument, template, reason} | {error, reason}",
     "replaces the references in the arguments of a planned call; outputs: of the earlier calls, in order, as "
     "tool_result_output writes them; input_schema: of the tool, checked afterwards",
     plan_resolve},
    {"tool_result_output", "{result: object, output_schema?: any, validation?: word}",
     "{success, output, warning?} | {success, output, code, error}",
     "the output that templates reference, from the result of a tool; validation: strict, warn or off",
     tool_result_output},
    {"format_result", "{names: words, results: list, format: word, limit?: int}", "string",
     "results of tools as text; format: model, synthesis, display or fallback; limit: bytes of each text",
     format_result},
};
const struct rv_fn_group app_fn_group_plans = {items, RV_COUNT(items)};
