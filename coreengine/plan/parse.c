/* A reply of a model becomes a plan. */
#include <stdlib.h>

#include "coreengine/plan/plan.h"

RV_PRINTF(5, 6)
static int bad(struct rv_plan *p, enum rv_plan_error_type fault, const char *reason, rv_err **err, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(4096);
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(&text, fmt, args);
    va_end(args);
    p->fault = fault;
    p->reason = reason;
    int rc = rv_buf_check(&text, "fault of a plan", err);
    if (rc == 0)
        p->detail = rv_buf_steal(&text, NULL);
    rv_buf_fini(&text);
    return rc;
}

/* The value of a text; a text that is not sound JSON is a fault of the plan, unless memory was short. */
static int read_json(rv_str text, struct rv_plan *p, json_object **out, bool *sound, rv_err **err)
{
    struct rv_json_opts opts = {RV_PLAN_MAX_BYTES, RV_PLAN_MAX_DEPTH, true, false, "plan"};
    rv_err *why = NULL;
    int rc = rv_json_parse(text, &opts, out, &why);

    *sound = rc == 0;
    if (rc == RV_E_NOMEM) {
        rv_err_free(why);
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a plan");
    }
    if (rc < 0) {
        rc = bad(p, RV_PLAN_ERROR_PLAN_MALFORMED, "json", err, "%s", rv_err_text(why));
        rv_err_free(why);
        return rc;
    }
    json_object *strict = NULL;
    opts.allow_duplicates = false;
    rc = rv_json_parse(text, &opts, &strict,
                       RV_CODE_ONLY("it was read above: what the strict reading refuses is a key twice"));
    json_object_put(strict);
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a plan");
    p->duplicate_keys = p->duplicate_keys || rc < 0;
    return 0;
}

/* P3: an object, a string that is one, or nothing; anything else is kept as its type. */
static int read_arguments(json_object *given, struct rv_plan *p, struct rv_plan_call *call, rv_err **err)
{
    if (!given) {
        call->arguments = json_object_new_object();
        return call->arguments ? 0 : RV_FAIL(err, RV_E_NOMEM, "no memory for a plan");
    }
    if (json_object_is_type(given, json_type_object)) {
        call->arguments = json_object_get(given);
        return 0;
    }
    call->actual_type = rv_json_type_text(given);
    if (!json_object_is_type(given, json_type_string))
        return 0;
    struct rv_plan within = {0};
    json_object *value = NULL;
    bool sound = false;
    int rc = read_json(rv_json_str(given), &within, &value, &sound, err);
    if (rc == 0 && sound && json_object_is_type(value, json_type_object)) {
        call->arguments = json_object_get(value);
        call->actual_type = NULL;
        p->duplicate_keys = p->duplicate_keys || within.duplicate_keys;
    }
    json_object_put(value);
    free(within.detail);
    return rc;
}

static void read_options(json_object *item, struct rv_plan_call *call)
{
    json_object_object_get_ex(item, "after", &call->after);
    json_object_object_get_ex(item, "on_failure", &call->on_failure);
    call->continues = rv_str_is(rv_json_str(call->on_failure), "continue");
}

/* The calls of a list of objects; `key` is where the name of the tool is. */
static int read_calls(json_object *list, const char *key, size_t max, struct rv_plan *p, rv_err **err)
{
    size_t n = json_object_array_length(list);

    if (n == 0)
        return bad(p, RV_PLAN_ERROR_EMPTY_PLAN, NULL, err,
                   "the plan has no calls: answer with direct_response instead");
    p->n_given = n;
    p->max_calls = max;
    if (n > max)
        return bad(p, RV_PLAN_ERROR_TOO_MANY_CALLS, NULL, err, "the plan has %zu calls, at most %zu are allowed", n,
                   max);
    p->calls = calloc(n, sizeof *p->calls);
    if (!p->calls)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a plan");
    for (size_t i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i), *name = NULL, *arguments = NULL;
        if (!json_object_is_type(item, json_type_object))
            return bad(p, RV_PLAN_ERROR_PLAN_MALFORMED, "missing_field", err, "calls[%zu] is %s, not an object", i,
                       rv_json_type_text(item));
        if (!json_object_object_get_ex(item, key, &name) || !json_object_is_type(name, json_type_string) ||
            rv_json_str(name).len == 0)
            return bad(p, RV_PLAN_ERROR_PLAN_MALFORMED, "missing_field", err,
                       "calls[%zu] needs %s, a string that is not empty", i, key);
        p->calls[i].tool = rv_json_str(name);
        p->n_calls = i + 1;
        json_object_object_get_ex(item, "arguments", &arguments);
        if (p->root != list) /* native calls have no such members */
            read_options(item, &p->calls[i]);
        int rc = read_arguments(arguments, p, &p->calls[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* 0: not a form, 1: direct, 2: tools. */
static int form_of(json_object *root)
{
    json_object *type = NULL;

    if (!json_object_is_type(root, json_type_object) || !json_object_object_get_ex(root, "type", &type))
        return 0;
    return rv_str_is(rv_json_str(type), "direct_response") ? 1 : rv_str_is(rv_json_str(type), "tool_calls") ? 2 : 0;
}

/* P1, P2: `type` decides; members of the other form and unknown ones are ignored. */
static int read_form(struct rv_plan *p, size_t max, rv_err **err)
{
    json_object *member = NULL;
    int form = form_of(p->root);

    if (form == 0)
        return bad(p, RV_PLAN_ERROR_PLAN_MALFORMED, "type", err, "type has to be direct_response or tool_calls");
    if (form == 1) {
        p->direct = true;
        if (!json_object_object_get_ex(p->root, "content", &member) || !json_object_is_type(member, json_type_string))
            return bad(p, RV_PLAN_ERROR_PLAN_MALFORMED, "missing_field", err,
                       "direct_response needs content, a string");
        p->content = rv_json_str(member);
        return 0;
    }
    if (json_object_object_get_ex(p->root, "reasoning", &member))
        p->reasoning = rv_json_str(member);
    member = rv_json_get_arr(p->root, "calls");
    if (!member)
        return bad(p, RV_PLAN_ERROR_PLAN_MALFORMED, "missing_field", err, "tool_calls needs calls, a list");
    return read_calls(member, "tool_name", max, p, err);
}

/* The inside of a text that is one fenced block, else the text. */
static rv_str unfenced(rv_str text)
{
    text = rv_str_trim(text);
    if (text.len < 6 || memcmp(text.ptr, "```", 3) != 0 || memcmp(text.ptr + text.len - 3, "```", 3) != 0)
        return text;
    const char *line = memchr(text.ptr, '\n', text.len);
    if (!line)
        return text;
    return rv_str_trim((rv_str){line + 1, (size_t)(text.ptr + text.len - 3 - (line + 1))});
}

/* A text is the answer, unless all of its characters are one plan. */
static int read_text(const struct rv_plan_reply *reply, size_t max, struct rv_plan *p, rv_err **err)
{
    rv_str inside = unfenced(reply->text);
    bool sound = false;

    if (inside.len == 0)
        return bad(p, RV_PLAN_ERROR_PLAN_MALFORMED, "empty", err, "the reply has no text and no call");
    if (inside.ptr[0] == '{') {
        struct rv_plan trial = {0};
        int rc = read_json(inside, &trial, &p->root, &sound, err);
        free(trial.detail);
        if (rc < 0)
            return rc;
        if (!sound && reply->truncated)
            return bad(p, RV_PLAN_ERROR_PLAN_MALFORMED, "truncated", err, "the reply was cut while it was a plan");
        if (sound && form_of(p->root) != 0) {
            p->duplicate_keys = trial.duplicate_keys;
            return read_form(p, max, err);
        }
    }
    p->direct = true;
    p->content = reply->text;
    return 0;
}

/* The input of the planning tool: an object, or its text. */
static int read_planning(json_object *call, size_t max, struct rv_plan *p, rv_err **err)
{
    json_object *input = NULL;
    bool sound = true;
    int rc = 0;

    json_object_object_get_ex(call, "arguments", &input);
    if (json_object_is_type(input, json_type_string))
        rc = read_json(rv_json_str(input), p, &p->root, &sound, err);
    else
        p->root = json_object_get(input);
    return rc < 0 || !sound ? rc : read_form(p, max, err);
}

int rv_plan_parse(const struct rv_plan_reply *reply, size_t max_calls, struct rv_plan *out, rv_err **err)
{
    size_t n = reply->calls ? json_object_array_length(reply->calls) : 0, n_planning = 0;
    size_t max = max_calls ? max_calls : RV_PLAN_MAX_CALLS;
    json_object *planning = NULL, *name = NULL;

    *out = (struct rv_plan){0};
    if (n == 0)
        return read_text(reply, max, out, err);
    if (reply->truncated)
        return bad(out, RV_PLAN_ERROR_PLAN_MALFORMED, "truncated", err, "the reply was cut while it was a plan");
    for (size_t i = 0; i < n; i++) {
        json_object *call = json_object_array_get_idx(reply->calls, i);
        if (json_object_is_type(call, json_type_object) && json_object_object_get_ex(call, "name", &name) &&
            rv_str_is(rv_json_str(name), RV_PLAN_TOOL)) {
            planning = call;
            n_planning++;
        }
    }
    if (n_planning > 1)
        return bad(out, RV_PLAN_ERROR_PLAN_MALFORMED, "multiple", err,
                   "the reply calls " RV_PLAN_TOOL " %zu times: call it once", n_planning);
    if (planning)
        return read_planning(planning, max, out, err);
    out->reasoning = reply->text;
    out->root = json_object_get(reply->calls);
    return read_calls(reply->calls, "name", max, out, err);
}

void rv_plan_fini(struct rv_plan *plan)
{
    for (size_t i = 0; i < plan->n_calls; i++)
        json_object_put(plan->calls[i].arguments);
    free(plan->calls);
    free(plan->detail);
    json_object_put(plan->root);
    *plan = (struct rv_plan){0};
}
