/* Tools: results (rules 6.4 to 6.6), access (6.2), schemas, prompt lines, health. */
#include "coreengine/app/fn/fn_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>

static int normalize_tool_result(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *standard = NULL;
    int rc = rv_tool_result_normalize(in, &standard, err);

    if (rc == 0)
        rv_jw_value(out, standard);
    json_object_put(standard);
    return rc;
}

static int validate_tool_result(json_object *in, rv_jw *out, rv_err **err)
{
    int rc = rv_tool_result_validate(in, err);

    if (rc == 0)
        rv_jw_bool(out, true);
    return rc;
}

static int tool_result_data(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *data = NULL;
    size_t n_dropped = 0;
    int rc = rv_tool_result_build_data(in, &data, &n_dropped, err);

    if (rc < 0)
        return rc;
    rv_jw_obj(out);
    rv_jw_kv_value(out, "data", data);
    rv_jw_kv_int(out, "dropped", (int64_t)n_dropped);
    rv_jw_obj_end(out);
    json_object_put(data);
    return 0;
}

/* A whitelist is a list of names or a map from name to bool; null is none. */
static int read_whitelist(json_object *given, struct rv_str_list *out, rv_err **err)
{
    bool is_map = json_object_is_type(given, json_type_object);

    if (!given)
        return 0;
    size_t n = is_map ? (size_t)json_object_object_length(given) : json_object_array_length(given);
    out->items = calloc(n + 1, sizeof *out->items);
    if (!out->items)
        return RV_FAIL(err, RV_E_NOMEM, "read \"allowed_tools\"");
    out->is_set = true;
    if (!is_map) {
        for (size_t i = 0; i < n; i++)
            out->items[out->n++] = rv_json_str(json_object_array_get_idx(given, i)).ptr;
        return 0;
    }
    json_object_object_foreach (given, key, value) {
        if (!json_object_is_type(value, json_type_boolean))
            return RV_FAIL(err, RV_E_INVALID, "allowed_tools.%s must be bool, not %s", key, rv_json_type_text(value));
        if (json_object_get_boolean(value))
            out->items[out->n++] = key;
    }
    return 0;
}

static int tool_allowed(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_tool_access access = RV_ACCESS_UNSET;
    enum rv_risk risk = RV_RISK_WRITE;
    struct rv_str_list whitelist = {0};
    rv_str level = app_fn_str(in, "access"), danger = app_fn_str(in, "risk");
    const char *why = NULL;

    int rc = level.ptr ? rv_tool_access_of(level, &access, err) : 0;
    if (rc == 0 && danger.ptr)
        rc = rv_risk_of(danger, &risk, err);
    if (rc == 0)
        rc = read_whitelist(app_fn_any(in, "allowed_tools"), &whitelist, err);
    if (rc == 0) {
        struct rv_tool_info info = {.name = app_fn_str(in, "tool").ptr, .risk = (int)risk, .effect = RV_UNSET};
        bool allowed = rv_tool_is_allowed((int)access, &whitelist, app_fn_str(in, "tool"),
                                          app_fn_flag(in, "unknown") ? NULL : &info, &why);
        rv_jw_obj(out);
        rv_jw_kv_bool(out, "allowed", allowed);
        rv_jw_kv_text(out, "why", allowed ? NULL : why);
        rv_jw_obj_end(out);
    }
    free(whitelist.items);
    return rc;
}

/* A schema that is wrong fails the call; a value that does not fit is an answer. */
static int validate_schema(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *value = app_fn_any(in, "value");
    rv_schema *schema = NULL;
    rv_err *fault = NULL;

    int rc = rv_schema_compile(app_fn_any(in, "schema"), "schema", &schema, err);
    if (rc == 0 && app_fn_flag(in, "fill_defaults") && json_object_is_type(value, json_type_object))
        rc = rv_schema_fill_defaults(schema, value, err);
    if (rc == 0) {
        int fits = rv_schema_check(schema, value, &fault);
        if (fits < 0 && fits != RV_E_INVALID) {
            rv_err_pass(err, fault);
            fault = NULL;
            rc = fits;
        } else {
            rv_jw_obj(out);
            rv_jw_kv_bool(out, "valid", fits == 0);
            rv_jw_kv_text(out, "message", fault ? rv_err_text(fault) : NULL);
            if (app_fn_flag(in, "fill_defaults"))
                rv_jw_kv_value(out, "value", value);
            rv_jw_obj_end(out);
        }
    }
    rv_err_free(fault);
    rv_schema_free(schema);
    return rc;
}

static int tool_line(json_object *in, rv_jw *out, rv_err **err)
{
    rv_str description = app_fn_str(in, "description");
    struct rv_tool_info info = {.name = app_fn_str(in, "name").ptr,
                                .description = description.ptr ? description.ptr : "",
                                .risk = RV_UNSET,
                                .effect = RV_UNSET,
                                .category = RV_UNSET,
                                .input_json = rv_json_get_obj(in, "input_schema")};
    rv_buf line = RV_BUF_INIT(RV_FN_MAX_REPLY);

    rv_tool_write_line(&info, &line);
    int rc = rv_buf_check(&line, "line of a tool", err);
    if (rc == 0)
        rv_jw_str(out, rv_buf_str(&line));
    rv_buf_fini(&line);
    return rc;
}

static int record_calls(json_object *calls, struct rv_tool_health *h, int64_t *last_us, rv_err **err)
{
    for (size_t i = 0; i < json_object_array_length(calls); i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        int64_t latency_ms = 0;
        int rc = app_fn_check_shape("{at: string, ok: bool, latency_ms?: int, error_type?: string, message?: string}",
                                    call, err);
        if (rc == 0)
            rc = rv_time_parse(app_fn_str(call, "at"), last_us, err);
        if (rc < 0)
            return RV_WRAP(err, rc, "calls[%zu]", i);
        latency_ms = rv_json_int_or(call, "latency_ms", 0);
        rv_tool_health_note(h, *last_us, app_fn_flag(call, "ok"), latency_ms);
        rv_str type = app_fn_str(call, "error_type"), message = app_fn_str(call, "message");
        if (!app_fn_flag(call, "ok") && (type.ptr || message.ptr))
            rv_tool_health_note_error(h, type, message);
    }
    return 0;
}

static int tool_health(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_tool_health h = {0};
    rv_str now = app_fn_str(in, "now");
    int64_t now_us = 0;

    int rc = record_calls(rv_json_get_arr(in, "calls"), &h, &now_us, err);
    if (rc == 0 && now.ptr)
        rc = rv_time_parse(now, &now_us, err);
    if (rc < 0)
        return rc;
    rv_jw_obj(out);
    rv_jw_kv_text(out, "status", rv_health_text(rv_tool_health_status(&h)));
    rv_jw_key(out, "success_rate");
    rv_jw_double(out, rv_tool_health_success_rate(&h));
    rv_jw_kv_bool(out, "breaker_open", rv_tool_breaker_open(&h, now_us));
    rv_jw_key(out, "errors");
    rv_tool_health_write_errors(&h, out);
    rv_jw_obj_end(out);
    return 0;
}

static const struct rv_fn items[] = {
    {"normalize_tool_result", "any", "{status, data?, error?, message?}", "the standard form of a raw tool result",
     normalize_tool_result},
    {"validate_tool_result", "any", "true", "whether a standard result keeps its rules", validate_tool_result},
    {"tool_result_data", "any", "{data: {items_explored, items_pending, discoveries, evidence, raw}, dropped: int}",
     "what a result says about the things it found", tool_result_data},
    {"tool_allowed", "{tool: word, access?: string, allowed_tools?: words|object, risk?: string, unknown?: bool}",
     "{allowed: bool, why: string}", "whether a stage may call a tool", tool_allowed},
    {"validate_schema", "{schema: object|bool, value: any, fill_defaults?: bool}",
     "{valid: bool, message: string, value?: any}", "check a value against a JSON Schema", validate_schema},
    {"tool_line", "{name: word, description?: word, input_schema?: object}", "string", "a tool as prompts show it",
     tool_line},
    {"tool_health", "{calls: list, now?: string}",
     "{status: string, success_rate: number, breaker_open: bool, errors: list}",
     "health, circuit breaker and kinds of errors after calls of {at, ok, latency_ms?, error_type?, message?}",
     tool_health},
};
const struct rv_fn_group app_fn_group_tools = {items, RV_COUNT(items)};
