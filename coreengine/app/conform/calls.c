/* Rules about calls. A tool whose effect is `safe` may be called any number of times: it is called with arguments made
 * up from its schema, and once more when its answer is not wanted any more. */
#include <json-c/json.h>
#include <string.h>

#include "coreengine/app/conform/conform_internal.h"

#define TIMEOUT_MS 5000 /* for one call */
#define MAX_SAMPLE 64   /* items and bytes of one value that is made up: a schema may ask for millions */
#define MAX_NESTED 16   /* levels of a schema with made-up values: it may contain itself; deeper objects are empty */

/* A value that fits the schema as far as types, lengths and members go; NULL: memory is short. */
static json_object *sample_of(json_object *schema, int depth);

static json_object *sample_text(json_object *schema)
{
    char text[MAX_SAMPLE + 1];
    int64_t least = rv_json_int_or(schema, "minLength", 0);

    least = least < 1 ? 1 : least > MAX_SAMPLE ? MAX_SAMPLE : least;
    memset(text, 'a', (size_t)least);
    return json_object_new_string_len(text, (int)least);
}

static json_object *sample_list(json_object *schema, int depth)
{
    json_object *list = json_object_new_array(), *items = rv_json_get_obj(schema, "items");
    int64_t least = rv_json_int_or(schema, "minItems", 0);

    for (int64_t i = 0; list && i < least && i < MAX_SAMPLE; i++) {
        if (rv_json_push_take(list, sample_of(items, depth + 1),
                              RV_CODE_ONLY("without memory there is no sample: call_tool() says so")) < 0) {
            json_object_put(list);
            return NULL;
        }
    }
    return list;
}

/* The members that are required; if there are none, all of them. */
static json_object *sample_object(json_object *schema, int depth)
{
    json_object *obj = json_object_new_object(), *properties = rv_json_get_obj(schema, "properties");
    json_object *required = rv_json_get_arr(schema, "required");

    if (!obj || !properties)
        return obj;
    json_object_object_foreach (properties, key, value) {
        bool is_wanted = !required;
        for (size_t i = 0; required && i < json_object_array_length(required); i++)
            is_wanted = is_wanted || strcmp(json_object_get_string(json_object_array_get_idx(required, i)), key) == 0;
        if (is_wanted && rv_json_set_take(obj, key, sample_of(value, depth + 1),
                                          RV_CODE_ONLY("without memory there is no sample: call_tool() says so")) < 0) {
            json_object_put(obj);
            return NULL;
        }
    }
    return obj;
}

static json_object *sample_of(json_object *schema, int depth)
{
    static const char *const given[] = {"default", "const"};
    json_object *words, *value;

    if (!json_object_is_type(schema, json_type_object) || depth > MAX_NESTED)
        return json_object_new_object();
    for (size_t i = 0; i < RV_COUNT(given); i++)
        if (json_object_object_get_ex(schema, given[i], &value) && value)
            return json_object_get(value);
    if ((words = rv_json_get_arr(schema, "examples")) && json_object_array_length(words) > 0)
        return json_object_get(json_object_array_get_idx(words, 0));
    if ((words = rv_json_get_arr(schema, "enum")) && json_object_array_length(words) > 0)
        return json_object_get(json_object_array_get_idx(words, 0));
    const char *type = rv_json_text_or(schema, "type", "");
    int64_t least = rv_json_int_or(schema, "minimum", 0);
    if (strcmp(type, "string") == 0)
        return sample_text(schema);
    if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
        return json_object_new_int64(least);
    if (strcmp(type, "boolean") == 0)
        return json_object_new_boolean(0);
    if (strcmp(type, "array") == 0)
        return sample_list(schema, depth);
    return sample_object(schema, depth);
}

static void judge_reply(struct conform *c, const struct rv_tool_info *tool, const char *name, rv_str reply)
{
    static const enum rv_conform_rule kept[] = {RV_CONFORM_CALL_LIVE, RV_CONFORM_CALL_TIME, RV_CONFORM_CALL_ONCE,
                                                RV_CONFORM_CALL_SAYS, RV_CONFORM_CALL_JSON};
    json_object *value = NULL;
    rv_err *why = NULL;

    for (size_t i = 0; i < RV_COUNT(kept); i++)
        app_conform_keep(c, kept[i]);
    if (!tool->output || rv_tool_reply_reports_error(reply))
        return;
    int rc = rv_json_parse(reply, NULL, &value,
                           RV_CODE_ONLY("replies that are not JSON were refused before; want of memory is told below"));
    if (rc < 0) {
        c->rc = rc == RV_E_NOMEM ? rc : c->rc;
        return;
    }
    if (rv_schema_check(tool->output, value, &why) < 0)
        app_conform_note(c, RV_CONFORM_CALL_SCHEMA, false, name, "%s", rv_err_text(why));
    else
        app_conform_keep(c, RV_CONFORM_CALL_SCHEMA);
    rv_err_free(why);
    json_object_put(value);
}

static void call_once(struct conform *c, rv_plugins *p, const struct rv_tool_info *tool, const char *name, rv_str args,
                      bool is_cancelled)
{
    const rv_cancel_flag cancelled = is_cancelled;
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL,
                                        .name = name,
                                        .args = args,
                                        .stage = "check",
                                        .timeout_ms = TIMEOUT_MS,
                                        .cancelled = is_cancelled ? &cancelled : NULL};
    rv_buf reply = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    rv_err *why = NULL;
    int rc = rv_plugins_call(p, &call, &reply, &why);

    if (rc == 0)
        judge_reply(c, tool, name, rv_buf_str(&reply));
    else if (rc == RV_E_TIMEOUT)
        app_conform_note(c, RV_CONFORM_CALL_TIME, false, name, "it has not answered after %d ms", TIMEOUT_MS);
    else if (rc != RV_E_TOOL && rc != RV_E_CANCELLED) /* cancelled: the host ended it, which says nothing */
        app_conform_note_err(c, RV_CONFORM_CALL_LIVE, name, why);
    else if (rc == RV_E_TOOL)
        app_conform_note(c, RV_CONFORM_CALL_SAYS, !strstr(rv_err_text(why), "does not say why"), name,
                         "it fails and does not say why");
    rv_err_free(why);
    rv_buf_fini(&reply);
}

static int call_tool(struct conform *c, rv_plugins *p, const struct rv_tool_info *tool, const char *name, rv_err **err)
{
    json_object *args = sample_of(tool->input_json, 0);
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    int rc = 0;

    if (!args)
        return RV_FAIL(err, RV_E_NOMEM, "make up arguments of tool \"%s\"", name);
    bool is_call = json_object_is_type(args, json_type_object);
    int fits = is_call && tool->input
                   ? rv_schema_check(
                         tool->input, args,
                         RV_CODE_ONLY("made-up arguments that do not fit are not sent; want of memory is told below"))
                   : 0;
    if (fits == RV_E_NOMEM)
        rc = RV_FAIL(err, fits, "check arguments of tool \"%s\"", name);
    if (is_call && fits == 0) { /* else nothing is known of the call */
        rv_json_write(args, &text);
        rc = rv_buf_check(&text, "arguments", err);
        for (int cancelled = 0; cancelled < 2 && rc == 0; cancelled++)
            call_once(c, p, tool, name, rv_buf_str(&text), cancelled);
    }
    rv_buf_fini(&text);
    json_object_put(args);
    return rc;
}

int app_conform_calls(struct conform *c, rv_plugins *p, json_object *cap, rv_err **err)
{
    json_object *tools = rv_json_get_arr(cap, "tools");
    struct rv_catalog catalog = rv_plugins_catalog(p);
    int rc = 0;

    for (size_t i = 0; tools && i < json_object_array_length(tools) && rc == 0; i++) {
        const char *name = rv_json_text_or(json_object_array_get_idx(tools, i), "name", "");
        const struct rv_tool_info *tool = catalog.tool(catalog.self, rv_str_of(name));
        if (tool && rv_tool_effect(tool) == RV_EFFECT_SAFE)
            rc = call_tool(c, p, tool, name, err);
    }
    return rc;
}
