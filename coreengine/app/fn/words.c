/* Filters: words of enumerations; texts, templates and expressions. */
#include "coreengine/app/fn/fn_internal.h"

#include <stdlib.h>

/* --- words --- */

static void write_list(const struct rv_term_list *list, rv_jw *out)
{
    rv_jw_obj(out);
    for (size_t i = 0; i < list->n; i++)
        rv_jw_kv_text(out, list->terms[i].text, list->terms[i].meaning);
    rv_jw_obj_end(out);
}

static int terms(json_object *in, rv_jw *out, rv_err **err)
{
    size_t n;
    const struct rv_term_list *lists = rv_term_lists(&n);

    (void)in;
    (void)err;
    rv_jw_obj(out);
    for (size_t i = 0; i < n; i++) {
        rv_jw_key(out, lists[i].name);
        write_list(&lists[i], out);
    }
    rv_jw_obj_end(out);
    return 0;
}

/* One reader per list, so that what is tested here is what the loader calls. */
#define READER(tag, prefix, list, kind)                                                                                \
    static int read_##tag(rv_str text, const char **out, rv_err **err)                                                 \
    {                                                                                                                  \
        enum rv_##tag v;                                                                                               \
        int rc = rv_##tag##_of(text, &v, err);                                                                         \
        if (rc == 0)                                                                                                   \
            *out = rv_##tag##_text(v);                                                                                 \
        return rc;                                                                                                     \
    }
RV_TERM_TYPES(READER)
#undef READER

static const struct {
    const char *name;
    int (*read)(rv_str text, const char **out, rv_err **err);
} readers[] = {
#define ROW(tag, prefix, list, kind) {#tag, read_##tag},
    RV_TERM_TYPES(ROW)
#undef ROW
};

static int parse_term(json_object *in, rv_jw *out, rv_err **err)
{
    const char *names[RV_COUNT(readers)], *text = NULL;
    rv_str list = app_fn_str(in, "list");

    for (size_t i = 0; i < RV_COUNT(readers); i++) {
        names[i] = readers[i].name;
        if (!rv_str_is(list, names[i]))
            continue;
        int rc = readers[i].read(app_fn_str(in, "text"), &text, err);
        if (rc == 0)
            rv_jw_text(out, text);
        return rc;
    }
    const char *near = rv_nearest(list, names, RV_COUNT(names));
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "unknown list of words \"%.*s\"", RV_STR_ARG(list));
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    else
        rv_err_set_hint(err, "`reeve fn terms` prints them all");
    return rc;
}

static int outcome(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_outcome o;
    int rc = rv_outcome_of(app_fn_str(in, "outcome"), &o, err);

    if (rc < 0)
        return rc;
    rv_jw_obj(out);
    rv_jw_kv_bool(out, "is_terminal", rv_outcome_is_terminal(o));
    rv_jw_kv_bool(out, "is_success", rv_outcome_is_success(o));
    rv_jw_kv_bool(out, "requires_loop", rv_outcome_requires_loop(o));
    rv_jw_obj_end(out);
    return 0;
}

static int tool_status(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_tool_status status;
    int rc = rv_tool_status_parse(app_fn_str(in, "text"), &status, err);

    if (rc == 0)
        rv_jw_text(out, rv_tool_status_text(status));
    return rc;
}

static int effect_class_of_risk(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_risk risk;
    int rc = rv_risk_of(app_fn_str(in, "risk"), &risk, err);

    if (rc == 0)
        rv_jw_text(out, rv_effect_class_text(rv_effect_class_of_risk(risk)));
    return rc;
}

static int reason_class(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_reason reason;
    int rc = rv_reason_of(app_fn_str(in, "reason"), &reason, err);

    if (rc == 0)
        rv_jw_text(out, rv_reason_class_text(rv_reason_class_for(reason)));
    return rc;
}

static int risk_needs_confirmation(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_risk risk;
    int rc = rv_risk_of(app_fn_str(in, "risk"), &risk, err);

    if (rc == 0)
        rv_jw_bool(out, rv_risk_needs_confirmation(risk));
    return rc;
}

static int interrupt_rule(json_object *in, rv_jw *out, rv_err **err)
{
    enum rv_interrupt_kind kind;
    int rc = rv_interrupt_kind_of(app_fn_str(in, "kind"), &kind, err);

    if (rc < 0)
        return rc;
    struct rv_interrupt_rule rule = rv_interrupt_rule(kind);
    rv_jw_obj(out);
    rv_jw_kv_int(out, "ttl_ms", rule.ttl_us / RV_US_PER_MS);
    rv_jw_kv_bool(out, "expires", rule.expires);
    rv_jw_kv_bool(out, "needs_response", rule.needs_response);
    rv_jw_obj_end(out);
    return 0;
}

/* --- texts --- */

static int extract_json(json_object *in, rv_jw *out, rv_err **err)
{
    const char **required = NULL;
    size_t n = 0;
    json_object *found = NULL;

    int rc = app_fn_words(in, "required_output_fields", &required, &n, err);
    if (rc == 0)
        rc = rv_extract_object(app_fn_str(in, "text"), required, n, RV_RULES_NEWEST, &found, err);
    if (rc == 0)
        rv_jw_value(out, found);
    json_object_put(found);
    free(required);
    return rc;
}

static int render_prompt(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_scope scope = rv_scope_of_object(rv_json_get_obj(in, "values"));
    rv_buf text = RV_BUF_INIT(RV_TEMPLATE_MAX_OUTPUT);
    rv_template *t = NULL;

    int rc = rv_template_compile(app_fn_str(in, "template"), NULL, &t, err);
    if (rc == 0)
        rc = rv_template_render(t, &scope, &text, err);
    if (rc == 0)
        rv_jw_buf(out, &text);
    rv_template_free(t);
    rv_buf_fini(&text);
    return rc;
}

static int expr(json_object *in, rv_jw *out, rv_err **err)
{
    json_object *none = json_object_new_object(), *vars = rv_json_get_obj(in, "vars"), *value = NULL;
    struct rv_scope scope = rv_scope_of_object(vars ? vars : none);
    rv_expr *e = NULL;

    int rc =
        none ? rv_expr_compile(app_fn_str(in, "expr"), NULL, NULL, 0, &e, err) : RV_FAIL(err, RV_E_NOMEM, "evaluate");
    if (rc == 0)
        rc = rv_expr_eval(e, &scope, &value, err);
    if (rc == 0)
        rv_jw_value(out, value);
    json_object_put(value);
    json_object_put(none);
    rv_expr_free(e);
    return rc;
}

static int time_parse(json_object *in, rv_jw *out, rv_err **err)
{
    int64_t us = 0;
    int rc = rv_time_parse(app_fn_str(in, "text"), &us, err);

    if (rc == 0)
        rv_jw_int(out, us);
    return rc;
}

static int time_format(json_object *in, rv_jw *out, rv_err **err)
{
    char text[RV_TIME_MAX];
    int64_t us = 0;

    if (!rv_json_get_int(in, "us", &us))
        return RV_FAIL(err, RV_E_INVALID, "the input has no \"us\"");
    rv_time_format(us, text);
    rv_jw_text(out, text);
    return 0;
}

static int nearest(json_object *in, rv_jw *out, rv_err **err)
{
    const char **names = NULL;
    size_t n = 0;

    int rc = app_fn_words(in, "names", &names, &n, err);
    if (rc == 0)
        rv_jw_text(out, rv_nearest(app_fn_str(in, "name"), names, n));
    free(names);
    return rc;
}

static const struct rv_fn items[] = {
    {"terms", "any", "{list: {word: meaning}}", "every word the engine reads or writes, by list", terms},
    {"parse_term", "{list: word, text: string}", "string", "read a word of a list; an unknown one is an error",
     parse_term},
    {"outcome", "{outcome: string}", "{is_terminal: bool, is_success: bool, requires_loop: bool}",
     "what an outcome of a stage means", outcome},
    {"tool_status", "{text: string}", "string", "read a tool status: trimmed, lower-cased, one of two words",
     tool_status},
    {"effect_class_of_risk", "{risk: string}", "string", "the effect class that a risk level implies",
     effect_class_of_risk},
    {"risk_needs_confirmation", "{risk: string}", "bool", "whether a person must approve a tool of that risk",
     risk_needs_confirmation},
    {"reason_class", "{reason: string}", "string", "the class of a terminal reason: completed, bounds_exceeded, failed",
     reason_class},
    {"interrupt_rule", "{kind: string}", "{ttl_ms: int, expires: bool, needs_response: bool}",
     "how long an interrupt of that kind waits and what it needs", interrupt_rule},
    {"extract_json", "{text: string, required_output_fields?: words}", "object",
     "the object in a model's reply; prose, fences and drafts around it are skipped", extract_json},
    {"render_prompt", "{template: string, values: object}", "string",
     "fill {{name}} and {{a.b}}; values stay as they are", render_prompt},
    {"expr", "{expr: string, vars?: object}", "any", "evaluate an expression of the `when` language", expr},
    {"time_parse", "{text: string}", "int", "RFC 3339 text to microseconds since 1970", time_parse},
    {"time_format", "{us: int}", "string", "microseconds since 1970 to RFC 3339 text", time_format},
    {"nearest", "{name: string, names: words}", "string", "the likely meant name, or null", nearest},
};

const struct rv_fn_group app_fn_group_words = {items, RV_COUNT(items)};
