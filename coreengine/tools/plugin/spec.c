/* The specification of one entry: a JSON object in which every key is known. */
#include "coreengine/tools/plugin/plugin_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

static const char *const tool_keys[] = {"description", "risk",         "category",      "effect",
                                        "timeout_ms",  "input_schema", "output_schema", "blocking"};
static const char *const call_keys[] = {"description", "sees", "timeout_ms", "blocking"};
static const char *const plain_keys[] = {"description", "timeout_ms", "blocking"}; /* of those that see no envelope */
static const char *const prompt_keys[] = {"description", "text"};

int rv_plugin_read_object(const char *text, const char *what, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_PLUGIN_MAX_SPEC, .what = what};
    json_object *obj = NULL;
    int rc;

    if (!text)
        return RV_FAIL(err, RV_E_PLUGIN, "%s is missing", what);
    rc = rv_json_parse((rv_str){text, strnlen(text, RV_PLUGIN_MAX_SPEC + 1)}, &opts, &obj, err);
    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "%s is not JSON", what);
    if (!json_object_is_type(obj, json_type_object)) {
        rc = RV_FAIL(err, RV_E_PLUGIN, "%s is no object but %s", what, rv_json_type_text(obj));
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}

static int check_keys(json_object *spec, const char *const *keys, size_t n, rv_err **err)
{
    json_object_object_foreach (spec, key, value) {
        size_t i = 0;
        const char *nearest;
        int rc;

        (void)value;
        while (i < n && strcmp(keys[i], key) != 0)
            i++;
        if (i < n)
            continue;
        nearest = rv_nearest(rv_str_of(key), keys, n);
        rc = RV_FAIL(err, RV_E_PLUGIN, "its specification has an unknown key \"%s\"", key);
        if (nearest)
            rv_err_hint(err, "did you mean \"%s\"?", nearest);
        return rc;
    }
    return 0;
}

/* The text under key, or "" when it is absent. */
static int read_text(json_object *spec, const char *key, const char **out, rv_err **err)
{
    json_object *value;

    *out = "";
    if (!json_object_object_get_ex(spec, key, &value))
        return 0;
    if (!rv_json_get_text(spec, key, out))
        return RV_FAIL(err, RV_E_PLUGIN, "\"%s\" is no string but %s", key, rv_json_type_text(value));
    return 0;
}

static int read_timeout(json_object *spec, int64_t *out, rv_err **err)
{
    json_object *value;

    if (!json_object_object_get_ex(spec, "timeout_ms", &value))
        return 0;
    if (!rv_json_get_int(spec, "timeout_ms", out) || *out < 1 || *out > RV_PLUGIN_MAX_TIMEOUT_MS)
        return RV_FAIL(err, RV_E_PLUGIN, "\"timeout_ms\" is no integer between 1 and %lld",
                       (long long)RV_PLUGIN_MAX_TIMEOUT_MS);
    return 0;
}

static int read_blocking(struct rv_plugin_entry *e, rv_err **err)
{
    bool blocks = true;

    if (json_object_object_get_ex(e->spec, "blocking", NULL) && !rv_json_get_bool(e->spec, "blocking", &blocks))
        return RV_FAIL(err, RV_E_PLUGIN, "\"blocking\" is neither true nor false");
    e->never_blocks = !blocks;
    return 0;
}

static int read_schema(json_object *spec, const char *key, json_object **json, rv_schema **out, rv_err **err)
{
    int rc;

    if (!json_object_object_get_ex(spec, key, json))
        return 0;
    rc = rv_schema_compile(*json, key, out, err);
    if (rc < 0)
        return rc == RV_E_NOMEM ? rc : RV_WRAP(err, RV_E_PLUGIN, "\"%s\" is no schema", key);
    return 0;
}

static int read_words(json_object *spec, struct rv_tool_info *tool, rv_err **err)
{
    const char *risk, *category, *effect;
    enum rv_risk risk_value = RV_RISK_WRITE;
    enum rv_tool_category category_value = RV_CATEGORY_READ;
    enum rv_effect_class effect_value = RV_EFFECT_NON_IDEMPOTENT;
    int rc;

    tool->risk = tool->category = tool->effect = RV_UNSET;
    if ((rc = read_text(spec, "risk", &risk, err)) < 0 || (rc = read_text(spec, "category", &category, err)) < 0 ||
        (rc = read_text(spec, "effect", &effect, err)) < 0)
        return rc;
    if (*risk && (rc = rv_risk_of(rv_str_of(risk), &risk_value, err)) == 0)
        tool->risk = (int)risk_value;
    if (rc == 0 && *category && (rc = rv_tool_category_of(rv_str_of(category), &category_value, err)) == 0)
        tool->category = (int)category_value;
    if (rc == 0 && *effect && (rc = rv_effect_class_of(rv_str_of(effect), &effect_value, err)) == 0)
        tool->effect = (int)effect_value;
    return rc == RV_E_INVALID ? RV_WRAP(err, RV_E_PLUGIN, "its specification") : rc;
}

static int read_tool(struct rv_plugin_entry *e, rv_err **err)
{
    struct rv_tool_info *tool = &e->tool;
    int rc;

    tool->name = e->name;
    tool->description = e->description;
    if ((rc = check_keys(e->spec, tool_keys, RV_COUNT(tool_keys), err)) < 0 ||
        (rc = read_words(e->spec, tool, err)) < 0 || (rc = read_timeout(e->spec, &tool->timeout_ms, err)) < 0 ||
        (rc = read_blocking(e, err)) < 0 ||
        (rc = read_schema(e->spec, "input_schema", &tool->input_json, &e->input, err)) < 0 ||
        (rc = read_schema(e->spec, "output_schema", &tool->output_json, &e->output, err)) < 0)
        return rc;
    tool->input = e->input;
    tool->output = e->output;
    return 0;
}

static int read_sees(struct rv_plugin_entry *e, rv_err **err)
{
    struct rv_str_list *sees = &e->info.sees;
    json_object *list;
    size_t n;

    if (!json_object_object_get_ex(e->spec, "sees", &list))
        return 0;
    if (!json_object_is_type(list, json_type_array))
        return RV_FAIL(err, RV_E_PLUGIN, "\"sees\" is no list but %s", rv_json_type_text(list));
    n = json_object_array_length(list);
    sees->items = calloc(n + 1, sizeof *sees->items); /* one more: an empty list must not be a null pointer */
    if (!sees->items)
        return RV_FAIL(err, RV_E_NOMEM, "read \"sees\"");
    for (size_t i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        if (!json_object_is_type(item, json_type_string))
            return RV_FAIL(err, RV_E_PLUGIN, "\"sees\" has an item that is no string but %s", rv_json_type_text(item));
        sees->items[i] = rv_json_str(item).ptr;
    }
    sees->n = n;
    sees->is_set = true;
    return 0;
}

static int read_called(struct rv_plugin_entry *e, const char *const *keys, size_t n_keys, rv_err **err)
{
    int rc;

    e->info.name = e->name;
    e->info.kind = e->kind;
    if ((rc = check_keys(e->spec, keys, n_keys, err)) < 0 ||
        (rc = read_timeout(e->spec, &e->info.timeout_ms, err)) < 0 || (rc = read_blocking(e, err)) < 0)
        return rc;
    return read_sees(e, err);
}

static int read_prompt(struct rv_plugin_entry *e, rv_err **err)
{
    rv_err *why = NULL;
    int rc;

    if ((rc = check_keys(e->spec, prompt_keys, RV_COUNT(prompt_keys), err)) < 0 ||
        (rc = read_text(e->spec, "text", &e->prompt_text, err)) < 0)
        return rc;
    if (!*e->prompt_text)
        return RV_FAIL(err, RV_E_PLUGIN, "it has no \"text\"");
    rc = rv_template_compile(rv_str_of(e->prompt_text), NULL, &e->prompt, &why);
    if (rc < 0) /* the text only: a place inside a plugin would hide the place in the pipeline */
        rc = RV_FAIL(err, rc == RV_E_NOMEM ? rc : RV_E_PLUGIN, "its text is no template: %s", rv_err_text(why));
    rv_err_free(why);
    return rc;
}

int rv_plugin_read_spec(struct rv_plugin_entry *e, const char *text, rv_err **err)
{
    int rc = rv_plugin_read_object(text, "its specification", &e->spec, err);

    if (rc == 0)
        rc = read_text(e->spec, "description", &e->description, err);
    if (rc < 0)
        return rc;
    switch (e->kind) {
    case RV_NAME_TOOL:
        return read_tool(e, err);
    case RV_NAME_PROMPT:
        return read_prompt(e, err);
    case RV_NAME_HOOK:
    case RV_NAME_POLICY:
    case RV_NAME_MOCK:
    case RV_NAME_ROUTE:
        return read_called(e, call_keys, RV_COUNT(call_keys), err);
    case RV_NAME_PROBE:
    case RV_NAME_PROVIDER:
        return read_called(e, plain_keys, RV_COUNT(plain_keys), err);
    case RV_N_NAME_KINDS:
        break;
    }
    return RV_FAIL(err, RV_E_INTERNAL, "an entry of a kind that the table does not give");
}
