/* Results as stages keep them: what a tool found in one shape, and one entry of a tool stage's `results`: the same keys
 * whether the step ran, failed or was refused. Shares the parameters and data with its sources. On the hot path. */
#include "coreengine/tools/tools_internal.h"
#include "envelope/envelope.h"

/* What a tool found, in one shape: explored and pending items, discoveries, evidence, and the raw answer. Entries that
 * say nothing usable are dropped and counted. */

/* The entry's share of a result list, or *out stays NULL when it is invalid. */
typedef int entry_fn(json_object *entry, json_object **out, rv_err **err);

/* Present and not null. */
static json_object *given(json_object *entry, const char *key)
{
    json_object *v = NULL;

    return json_object_object_get_ex(entry, key, &v) ? v : NULL;
}

static int put_text_or(json_object *obj, const char *key, json_object *v, const char *otherwise, rv_err **err)
{
    return v ? tools_tool_put_text_of(obj, key, v, err) : tools_tool_put_str(obj, key, rv_str_of(otherwise), err);
}

static int item_entry(json_object *entry, json_object **out, rv_err **err)
{
    (void)err;
    if (json_object_is_type(entry, json_type_string))
        *out = json_object_get(entry);
    return 0;
}

static int fill_discovery(json_object *entry, json_object *identifier, json_object *d, rv_err **err)
{
    json_object *location = given(entry, "location"), *metadata = rv_json_get_obj(entry, "metadata");
    int rc = tools_tool_put_text_of(d, "identifier", identifier, err);

    if (rc == 0)
        rc = put_text_or(d, "item_type", given(entry, "item_type"), "item", err);
    if (rc == 0)
        rc = location ? tools_tool_put_ref(d, "location", location, err) : tools_tool_put_null(d, "location", err);
    if (rc == 0)
        rc = metadata ? tools_tool_put_ref(d, "metadata", metadata, err)
                      : tools_tool_put_take(d, "metadata", json_object_new_object(), err);
    return rc;
}

static int fill_evidence(json_object *entry, json_object *content, json_object *e, rv_err **err)
{
    json_object *relevance = given(entry, "relevance"), *confidence = given(entry, "confidence");
    int rc = put_text_or(e, "location", given(entry, "location"), "unknown", err);

    if (rc == 0)
        rc = put_text_or(e, "content", content, "", err);
    if (rc == 0)
        rc = put_text_or(e, "relevance", relevance, "", err);
    if (rc == 0)
        rc = rv_json_is_number(confidence)
                 ? tools_tool_put_ref(e, "confidence", confidence, err)
                 : tools_tool_put_take(e, "confidence", rv_json_new_double(RV_TOOL_DEFAULT_CONFIDENCE), err);
    return rc;
}

/* A string stands for the one field that matters. */
static int made_entry(json_object *entry, json_object *main, json_object **out,
                      int (*fill)(json_object *entry, json_object *main, json_object *to, rv_err **err), rv_err **err)
{
    json_object *to = json_object_new_object();
    int rc = to ? fill(entry, main, to, err) : RV_FAIL(err, RV_E_NOMEM, "no memory for an entry of a tool result");

    if (rc < 0)
        json_object_put(to);
    else
        *out = to;
    return rc;
}

static int discovery_entry(json_object *entry, json_object **out, rv_err **err)
{
    json_object *identifier = NULL;

    if (json_object_is_type(entry, json_type_string))
        identifier = entry;
    else if (json_object_is_type(entry, json_type_object))
        identifier = given(entry, "identifier");
    return identifier ? made_entry(entry, identifier, out, fill_discovery, err) : 0;
}

static int evidence_entry(json_object *entry, json_object **out, rv_err **err)
{
    if (json_object_is_type(entry, json_type_string))
        return made_entry(entry, entry, out, fill_evidence, err);
    if (json_object_is_type(entry, json_type_object))
        return made_entry(entry, given(entry, "content"), out, fill_evidence, err);
    return 0;
}

static int fill_list(json_object *raw, const char *key, entry_fn *read, json_object *list, size_t *n_dropped,
                     rv_err **err)
{
    json_object *from = rv_json_get_arr(raw, key);
    size_t i, n = from ? json_object_array_length(from) : 0;

    for (i = 0; i < n; i++) {
        json_object *made = NULL;
        int rc = read(json_object_array_get_idx(from, i), &made, err);
        if (rc == 0 && made)
            rc = rv_json_push_take(list, made, err);
        else if (rc == 0)
            ++*n_dropped;
        if (rc < 0)
            return rc;
    }
    return 0;
}

int rv_tool_result_build_data(json_object *raw, json_object **out, size_t *n_dropped, rv_err **err)
{
    static const struct {
        const char *key;
        entry_fn *read;
    } lists[] = {
        {"items_explored", item_entry},
        {"items_pending", item_entry},
        {"discoveries", discovery_entry},
        {"evidence", evidence_entry},
    };
    json_object *result;
    size_t i, dropped = 0;
    int rc = 0;

    if (!json_object_is_type(raw, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "result data must be an object, found %s", rv_json_type_text(raw));
    result = json_object_new_object();
    if (!result)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for result data");
    for (i = 0; rc == 0 && i < RV_COUNT(lists); i++) {
        json_object *list = json_object_new_array();
        rc = tools_tool_put_take(result, lists[i].key, list, err);
        if (rc == 0)
            rc = fill_list(raw, lists[i].key, lists[i].read, list, &dropped, err);
    }
    if (rc == 0)
        rc = tools_tool_put_ref(result, "raw", raw, err);
    if (rc < 0) {
        json_object_put(result);
        return rc;
    }
    if (n_dropped)
        *n_dropped = dropped;
    *out = result;
    return 0;
}

/* --- An entry --- */

static int fill_error(const struct rv_step_result *s, json_object *error, rv_err **err)
{
    json_object *from = rv_json_get_obj(s->standard, "error"), *v, *details = NULL;
    bool recoverable = s->recoverable;
    int rc;

    /* A failed result without details has no text of its own. */
    if (s->error_type || !from || !json_object_object_get_ex(from, "error_type", &v))
        rc = tools_tool_put_str(error, "type", rv_str_of(s->error_type ? s->error_type : rv_error_tool), err);
    else
        rc = tools_tool_put_ref(error, "type", v, err);
    if (rc < 0)
        return rc;
    if (s->error_type || !from || !json_object_object_get_ex(from, "message", &v))
        rc = tools_tool_put_str(error, "message", s->error_type ? s->error_message : RV_STR_LIT("Unknown error"), err);
    else
        rc = tools_tool_put_ref(error, "message", v, err);
    if (rc < 0)
        return rc;
    if (!s->error_type) {
        recoverable = rv_json_bool_or(from, "recoverable", recoverable);
        details = rv_json_get_obj(from, "details");
    }
    rc = tools_tool_put_take(error, "recoverable", json_object_new_boolean(recoverable), err);
    if (rc < 0)
        return rc;
    return details ? tools_tool_put_ref(error, "details", details, err)
                   : tools_tool_put_take(error, "details", json_object_new_object(), err);
}

static int put_error(const struct rv_step_result *s, json_object *result, rv_err **err)
{
    json_object *error = json_object_new_object();
    int rc = error ? fill_error(s, error, err) : RV_FAIL(err, RV_E_NOMEM, "no memory for a step's error");

    if (rc < 0) {
        json_object_put(error);
        return rc;
    }
    return tools_tool_put_take(result, "error", error, err);
}

/* Of a success always; of a failure the part that it got done, if any. */
static int put_data(const struct rv_step_result *s, bool failed, json_object *result, rv_err **err)
{
    json_object *data = NULL, *held = NULL;
    int rc;

    if (!json_object_object_get_ex(s->standard, "data", &data))
        return failed ? 0 : tools_tool_put_take(result, "data", json_object_new_object(), err);
    if (failed && !data)
        return 0;
    rc = tools_tool_data_object(data, &held, err);
    return rc == 0 ? tools_tool_put_take(result, "data", held, err) : rc;
}

static int put_content(const struct rv_step_result *s, json_object *result, rv_err **err)
{
    json_object *content = s->has_content ? rv_json_get_arr(s->standard, "content") : NULL;

    return content ? tools_tool_put_ref(result, "content", content, err) : 0;
}

static int fill(const struct rv_step_result *s, json_object *result, rv_err **err)
{
    json_object *status = NULL;
    bool failed = s->error_type || !json_object_object_get_ex(s->standard, "status", &status) ||
                  !rv_str_eq(rv_json_str(status), RV_STR_LIT("success"));
    int rc = tools_tool_put_str(result, "step_id", s->step_id, err);

    if (rc == 0)
        rc = tools_tool_put_str(result, "tool", s->tool, err);
    if (rc == 0)
        rc = s->parameters ? tools_tool_put_ref(result, "parameters", s->parameters, err)
                           : tools_tool_put_take(result, "parameters", json_object_new_object(), err);
    if (rc == 0)
        rc = tools_tool_put_str(result, "status", failed ? RV_STR_LIT("error") : RV_STR_LIT("success"), err);
    if (rc == 0)
        rc = tools_tool_put_take(result, "execution_time_ms", json_object_new_int64(s->execution_ms), err);
    if (rc == 0)
        rc = put_data(s, failed, result, err);
    if (rc == 0 && !failed)
        rc = put_content(s, result, err);
    if (rc == 0 && failed)
        rc = put_error(s, result, err);
    return rc;
}

int rv_tool_build_step_result(const struct rv_step_result *s, json_object **out, rv_err **err)
{
    json_object *result = json_object_new_object();
    int rc = result ? fill(s, result, err) : RV_FAIL(err, RV_E_NOMEM, "no memory for a step's result");

    if (rc < 0)
        json_object_put(result);
    else
        *out = result;
    return rc;
}
