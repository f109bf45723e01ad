/* Texts: objects in replies (rule 5.6), templates, expressions, times, near names. */
#include "coreengine/app/fn/fn_internal.h"

#include <stdlib.h>

static int extract_json(json_object *in, rv_jw *out, rv_err **err)
{
    const char **required = NULL;
    size_t n = 0;
    json_object *found = NULL;

    int rc = rv_fn_words(in, "required_output_fields", &required, &n, err);
    if (rc == 0)
        rc = rv_extract_object(rv_fn_str(in, "text"), required, n, &found, err);
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

    int rc = rv_template_compile(rv_fn_str(in, "template"), NULL, &t, err);
    if (rc == 0)
        rc = rv_template_render(t, &scope, &text, err);
    if (rc == 0)
        rv_jw_str(out, rv_buf_str(&text));
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
        none ? rv_expr_compile(rv_fn_str(in, "expr"), NULL, NULL, 0, &e, err) : RV_FAIL(err, RV_E_NOMEM, "evaluate");
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
    int rc = rv_time_parse(rv_fn_str(in, "text"), &us, err);

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

    int rc = rv_fn_words(in, "names", &names, &n, err);
    if (rc == 0)
        rv_jw_text(out, rv_nearest(rv_fn_str(in, "name"), names, n));
    free(names);
    return rc;
}

static const struct rv_fn items[] = {
    {"extract_json", "{text: string, required_output_fields?: words}", "object",
     "the object in a model's reply; prose, fences and drafts around it are skipped", extract_json},
    {"render_prompt", "{template: string, values: object}", "string",
     "fill {{name}} and {{a.b}}; values stay as they are", render_prompt},
    {"expr", "{expr: string, vars?: object}", "any", "evaluate an expression of the `when` language", expr},
    {"time_parse", "{text: string}", "int", "RFC 3339 text to microseconds since 1970", time_parse},
    {"time_format", "{us: int}", "string", "microseconds since 1970 to RFC 3339 text", time_format},
    {"nearest", "{name: string, names: words}", "string", "the likely meant name, or null", nearest},
};
const struct rv_fn_group rv_fn_group_texts = {items, RV_COUNT(items)};
