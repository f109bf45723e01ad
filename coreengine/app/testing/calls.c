/* The tool calls of a test, from the events of its run: in the order in which they begin, with how they end. */
#include <string.h>

#include "coreengine/app/testing/testing_internal.h"

static bool same_text(json_object *a, json_object *b, const char *key)
{
    return strcmp(rv_json_text_or(a, key, ""), rv_json_text_or(b, key, "")) == 0;
}

/* The call that an answer belongs to: begun by the same stage as the same step, and not answered. NULL: it never began,
 * since it was not allowed. */
static json_object *find_begun(struct rv_test_report *r, json_object *event)
{
    for (size_t i = json_object_array_length(r->calls); i-- > 0;) {
        json_object *call = json_object_array_get_idx(r->calls, i);
        if (!json_object_object_get_ex(call, "status", NULL) && same_text(call, event, "tool") &&
            same_text(call, event, "step_id") && same_text(call, event, "stage"))
            return call;
    }
    return NULL;
}

static int take_members(json_object *call, json_object *event, const char *const *keys, size_t n, rv_err **err)
{
    json_object *v = NULL;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        if (json_object_object_get_ex(event, keys[i], &v))
            rc = rv_json_set_ref(call, keys[i], v, err);
    return rc;
}

/* *out is borrowed from the list. */
static int begin(struct rv_test_report *r, json_object *event, json_object **out, rv_err **err)
{
    static const char *const keys[] = {"tool", "stage", "agent", "step_id", "arguments"};
    json_object *call = json_object_new_object();
    int rc = call ? take_members(call, event, keys, RV_COUNT(keys), err) : RV_FAIL(err, RV_E_NOMEM, "note a tool call");

    if (rc < 0) {
        json_object_put(call);
        return rc;
    }
    *out = call;
    return rv_json_push_take(r->calls, call, err);
}

static int note_end(struct rv_test_report *r, json_object *event, rv_err **err)
{
    static const char *const keys[] = {"status", "result", "error", "error_type", "code"};
    json_object *call = find_begun(r, event);
    bool ran = json_object_object_get_ex(event, "call_id", NULL);
    int rc = 0;

    const char *status = rv_json_text_or(event, "status", "");
    if (!call && !ran && strcmp(status, "success") == 0) /* the output of an agent, which its clients see as a result */
        return 0;
    if (!call)
        rc = begin(r, event, &call, err);
    return rc == 0 ? take_members(call, event, keys, RV_COUNT(keys), err) : rc;
}

int app_test_note_call(struct rv_test_report *r, const struct rv_effect *e, rv_str line, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = TEST_MAX_LINE, .max_depth = RV_STATE_MAX_DEPTH};
    json_object *event = NULL, *call = NULL;
    int64_t attempt = 1;

    int rc = rv_json_parse(line, &opts, &event, err);
    RV_IGNORE(rc < 0 || !rv_json_get_int(event, "attempt", &attempt), "left out means the first");
    if (rc == 0 && e->emit == RV_EMIT_TOOL_RESULT)
        rc = note_end(r, event, err);
    else if (rc == 0 && attempt == 1) /* a repeated call is one call */
        rc = begin(r, event, &call, err);
    json_object_put(event);
    return rc;
}
