/* Filters: plans before they run. Tools are given as `tools/list` has them. */
#include <stdlib.h>

#include "coreengine/app/fn/fn_internal.h"
#include "coreengine/base/base.h"
#include "coreengine/plan/plan.h"

static bool hint(json_object *annotations, const char *key, bool otherwise)
{
    bool value = otherwise;

    return annotations && rv_json_get_bool(annotations, key, &value) ? value : otherwise;
}

static int read_tool(json_object *item, size_t i, struct rv_plan_tool *out, rv_err **err)
{
    if (!json_object_is_type(item, json_type_object) || !rv_json_get_text(item, "name", &out->name))
        return RV_FAIL(err, RV_E_INVALID, "tools[%zu] has to be an object with a name", i);
    json_object *annotations = rv_json_get_obj(item, "annotations");
    rv_json_get_text(item, "server", &out->server);
    rv_json_get_text(item, "description", &out->description);
    out->input = app_fn_any(item, "inputSchema");
    out->output = app_fn_any(item, "outputSchema");
    out->read_only = hint(annotations, "readOnlyHint", false);
    out->destructive = hint(annotations, "destructiveHint", true);
    out->idempotent = hint(annotations, "idempotentHint", false);
    out->denied = app_fn_flag(item, "denied");
    out->is_http = app_fn_flag(item, "http");
    return 0;
}

static int read_catalog(json_object *in, rv_plan_catalog **out, rv_err **err)
{
    json_object *list = app_fn_any(in, "tools");
    size_t n = json_object_array_length(list);
    struct rv_plan_tool *tools = calloc(n + 1, sizeof *tools);
    int rc = tools ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for tools");

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = read_tool(json_object_array_get_idx(list, i), i, &tools[i], err);
    if (rc == 0)
        rc = rv_plan_catalog_new(tools, n, out, err);
    free(tools);
    return rc;
}

static void write_drops(const rv_plan_catalog *c, rv_jw *out)
{
    rv_jw_key(out, "dropped");
    rv_jw_arr(out);
    for (size_t i = 0; i < c->n_drops; i++) {
        rv_jw_obj(out);
        rv_jw_kv_text(out, "name", c->drops[i].name);
        if (c->drops[i].server)
            rv_jw_kv_text(out, "server", c->drops[i].server);
        rv_jw_kv_text(out, "reason", c->drops[i].reason);
        rv_jw_kv_text(out, "detail", c->drops[i].detail);
        rv_jw_obj_end(out);
    }
    rv_jw_arr_end(out);
}

static int read_count(json_object *in, const char *key, size_t *out, rv_err **err)
{
    int64_t n = 0;

    if (rv_json_get_int(in, key, &n) && n < 1)
        return RV_FAIL(err, RV_E_INVALID, "%s is %lld: use at least 1", key, (long long)n);
    *out = (size_t)n;
    return 0;
}

/* --- validation --- */

static int read_done(json_object *list, struct rv_plan_rules *rules, struct rv_plan_done **out, rv_err **err)
{
    size_t n = list ? json_object_array_length(list) : 0;

    *out = calloc(n + 1, sizeof **out);
    if (!*out)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for outputs");
    for (size_t i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        struct rv_plan_done *done = &(*out)[i];
        if (!json_object_is_type(item, json_type_object) || !rv_json_get_text(item, "tool_name", &done->tool) ||
            !rv_json_get_bool(item, "success", &done->usable))
            return RV_FAIL(err, RV_E_INVALID, "done[%zu] has to be {tool_name: word, success: bool, output?: any}", i);
        done->value = app_fn_any(item, "output");
    }
    rules->done = *out;
    rules->n_done = n;
    return 0;
}

static void write_needs(const struct rv_plan_check *check, rv_jw *out)
{
    rv_jw_key(out, "needs");
    rv_jw_arr(out);
    for (size_t i = 0; i < check->n_calls; i++) {
        rv_jw_arr(out);
        for (size_t k = 0; k < check->needs[i].n; k++)
            rv_jw_int(out, (int64_t)(check->n_done + check->needs[i].calls[k]));
        rv_jw_arr_end(out);
    }
    rv_jw_arr_end(out);
}

static int write_check(const struct rv_plan_check *check, rv_jw *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    rv_jw_obj(out);
    rv_jw_kv_bool(out, "valid", check->n_errors == 0);
    rv_jw_key(out, "errors");
    rv_jw_arr(out);
    for (size_t i = 0; i < check->n_errors; i++)
        rv_plan_error_write_json(&check->errors[i], out);
    rv_jw_arr_end(out);
    if (check->n_errors > 0) {
        rv_plan_check_write_text(check, &text);
        rv_jw_kv_str(out, "text", rv_buf_str(&text));
    } else {
        write_needs(check, out);
    }
    rv_jw_obj_end(out);
    int rc = rv_buf_check(&text, "errors of a plan", err);
    rv_buf_fini(&text);
    return rc;
}

/* The plan as a planner gives it: the input of its one tool. */
static int parse_plan(json_object *given, size_t max, struct rv_plan *out, rv_err **err)
{
    struct rv_json_build b = {err, 0};
    json_object *calls = json_object_new_array();
    json_object *call = calls ? rv_json_build(&b, calls, NULL, json_object_new_object()) : NULL;
    int rc = calls ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for a plan");

    if (rc == 0)
        rv_json_build_text(&b, call, "name", RV_PLAN_TOOL);
    if (rc == 0)
        rc = b.rc;
    if (rc == 0)
        rc = rv_json_set_ref(call, "arguments", given, err);
    if (rc == 0)
        rc = rv_plan_parse(&(struct rv_plan_reply){.calls = calls}, max, out, err);
    json_object_put(calls);
    return rc;
}

static int plan_validate(json_object *in, rv_jw *out, rv_err **err)
{
    rv_str unschematized = app_fn_str(in, "unschematized");
    struct rv_plan_rules rules = {.defer_unschematized = rv_str_is(unschematized, "defer")};
    struct rv_plan_done *done = NULL;
    struct rv_plan_check check = {0};
    rv_plan_catalog *catalog = NULL;
    struct rv_plan plan = {0};
    size_t max = 0;
    int rc = read_catalog(in, &catalog, err);

    if (rc == 0 && unschematized.ptr && !rules.defer_unschematized && !rv_str_is(unschematized, "reject"))
        rc = RV_FAIL(err, RV_E_INVALID, "unschematized is \"%.*s\": use reject or defer", RV_STR_ARG(unschematized));
    if (rc == 0)
        rc = read_count(in, "max_calls", &max, err);
    if (rc == 0)
        rc = read_done(app_fn_any(in, "done"), &rules, &done, err);
    if (rc == 0)
        rc = parse_plan(app_fn_any(in, "plan"), max, &plan, err);
    if (rc == 0)
        rc = rv_plan_validate(&plan, catalog, &rules, &check, err);
    if (rc == 0)
        rc = write_check(&check, out, err);
    rv_plan_check_fini(&check);
    rv_plan_fini(&plan);
    rv_plan_catalog_free(catalog);
    free(done);
    return rc;
}

/* --- what a planner is given --- */

static int plan_schema(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_planner_opts opts = {.any_of = app_fn_flag(in, "any_of"), .has_options = app_fn_flag(in, "options")};
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    rv_plan_catalog *catalog = NULL;
    json_object *schema = NULL;
    int rc = read_catalog(in, &catalog, err);

    if (rc == 0)
        rc = read_count(in, "max_calls", &opts.max_calls, err);
    if (rc == 0)
        rc = rv_plan_build_schema(catalog, &opts, &schema, err);
    if (rc == 0) {
        rv_plan_write_brief(catalog, &opts, &text);
        rc = rv_buf_check(&text, "text for a planner", err);
    }
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_text(out, "name", RV_PLAN_TOOL);
        rv_jw_kv_value(out, "inputSchema", schema);
        rv_jw_kv_str(out, "brief", rv_buf_str(&text));
        write_drops(catalog, out);
        rv_jw_obj_end(out);
    }
    json_object_put(schema);
    rv_plan_catalog_free(catalog);
    rv_buf_fini(&text);
    return rc;
}

/* --- artifacts --- */

static struct rv_artifact_context read_context(json_object *from)
{
    return (struct rv_artifact_context){
        .context_id = rv_json_text_or(from, "context_id", NULL),
        .request_id = rv_json_text_or(from, "request_id", NULL),
        .trace_id = rv_json_text_or(from, "trace_id", NULL),
        .session_id = rv_json_text_or(from, "session_id", NULL),
        .user_id = rv_json_text_or(from, "user_id", NULL),
        .agent_name = rv_json_text_or(from, "agent_name", NULL),
        .task_id = rv_json_text_or(from, "task_id", NULL),
        .skill_id = rv_json_text_or(from, "skill_id", NULL),
        .skill_name = rv_json_text_or(from, "skill_name", NULL),
        .execution_id = rv_json_text_or(from, "execution_id", NULL),
    };
}

static int artifact(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_artifact_source source = {
        .tool = rv_json_text_or(in, "tool", NULL),
        .arguments = app_fn_any(in, "arguments"),
        .result = app_fn_any(in, "result"),
        .schema = app_fn_any(in, "output_schema"),
        .fresh_id = rv_json_text_or(in, "id", NULL),
        .created_at = rv_json_text_or(in, "now", NULL),
        .provenance = rv_json_text_or(in, "provenance_key", NULL),
        .is_refused = app_fn_flag(in, "refused"),
        .context = read_context(app_fn_any(in, "context")),
    };
    struct rv_artifact made = {0};
    int64_t index = 0;

    if (rv_json_get_int(in, "index", &index) && index < 0)
        return RV_FAIL(err, RV_E_INVALID, "index is %lld: use at least 0", (long long)index);
    source.index = (size_t)index;
    int rc = rv_artifact_build(&source, &made, err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_key(out, "artifact");
        if (made.exists)
            rv_artifact_write(&made, source.tool, out);
        else
            rv_jw_null(out);
        if (!made.exists)
            rv_jw_kv_value(out, "parts", made.parts);
        if (made.warning)
            rv_jw_kv_text(out, "warning", made.warning);
        rv_jw_obj_end(out);
    }
    rv_artifact_fini(&made);
    return rc;
}

static int artifact_wrap(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_artifact_context context = read_context(app_fn_any(in, "context"));
    json_object *schema = NULL, *result = NULL;
    const char *summary = rv_json_text_or(in, "summary", NULL);
    int rc = rv_artifact_build_schema(app_fn_any(in, "artifact_schema"), &schema, err);

    if (rc == 0)
        rc = rv_artifact_wrap(&(struct rv_artifact_made){app_fn_any(in, "artifact"), rv_json_text_or(in, "id", NULL),
                                                         rv_json_text_or(in, "tool", NULL),
                                                         rv_json_text_or(in, "now", NULL), summary ? summary : ""},
                              &context, &result, err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_value(out, "outputSchema", schema);
        rv_jw_kv_value(out, "result", result);
        rv_jw_obj_end(out);
    }
    json_object_put(result);
    json_object_put(schema);
    return rc;
}

static const struct rv_fn items[] = {
    {"plan_validate", "{plan: object, tools: list, unschematized?: word, max_calls?: int, done?: list}",
     "{valid, errors, needs} | {valid, errors, text}",
     "every error of a plan before it runs, or which calls need which; tools: as `tools/list` has them, with server?; "
     "unschematized: reject or defer references to outputs without a schema; done: results of earlier rounds, "
     "{tool_name, success, output}",
     plan_validate},
    {"plan_schema", "{tools: list, max_calls?: int, any_of?: bool, options?: bool}",
     "{name, inputSchema, brief, dropped}",
     "what a planner is given: its one tool, and the block of text with the rules and the tools; any_of: with the "
     "arguments of each tool; options: with `after` and `on_failure`; dropped: tools that a plan cannot use, with "
     "reasons",
     plan_schema},
    {"artifact",
     "{tool: word, result: object, arguments?: object, output_schema?: object, index?: int, id?: word, now?: word, "
     "context?: object, provenance_key?: word, refused?: bool}",
     "{artifact: {id, title, type, parts, metadata}, warning?} | {artifact: null, parts, warning?}",
     "the artifact in the result of a tool; context: {context_id, task_id}; refused: a policy forbids it; id: of an "
     "artifact whose result has none; "
     "now: "
     "when it was made",
     artifact},
    {"artifact_wrap",
     "{artifact: object, id: word, tool: word, now: word, summary?: word, context?: object, artifact_schema?: object}",
     "{outputSchema, result}",
     "the result of a tool that returns an artifact in the standard wrapper, and the output schema of such a tool; "
     "context: "
     "{context_id, request_id, trace_id, user_id, session_id?, agent_name?, task_id?, skill_id?, skill_name?, "
     "execution_id?}",
     artifact_wrap},
};
const struct rv_fn_group app_fn_group_planning = {items, RV_COUNT(items)};
