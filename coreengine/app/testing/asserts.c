/* What a test expects beyond equal values: expressions over the end of the run, schemas of outputs, tool calls, a
 * response that is like a text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coreengine/app/testing/testing_internal.h"
#include "coreengine/match/match.h"

#define MAX_SHOWN_NAMES 6    /* of one expression that is false: people write expressions with fewer names */
#define MAX_SHOWN_BYTES 120  /* of the value of such a name: it stays on one line or two of a terminal */
#define ROUNDING        1e-9 /* of doubles: 0.85 is within 0.05 of 0.8 */
#define MAX_MESSAGE     ((size_t)64 << 10) /* bytes of a difference: its values are cut */
#define MAX_VALUE_BYTES ((size_t)8 << 20)  /* of a value as JSON: RV_JSON_MAX_BYTES */

/* --- that --- */

/* A member of the state, or null. */
static void add_of_state(struct rv_json_build *b, json_object *end, const struct rv_test_report *r, const char *key)
{
    json_object *v = NULL;

    json_object_object_get_ex(r->state, key, &v);
    if (b->rc == 0)
        b->rc = rv_json_set_ref(end, key, v, b->err);
}

static void add_text(struct rv_json_build *b, json_object *to, const char *key, rv_str text)
{
    if (text.ptr)
        rv_json_build(b, to, key, json_object_new_string_len(text.ptr, (int)text.len));
    else if (b->rc == 0)
        b->rc = rv_json_set_ref(to, key, NULL, b->err);
}

/* What the run came to, and what it took. */
static void add_run(struct rv_json_build *b, json_object *end, const rv_envelope *env, const struct rv_test_report *r)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const struct rv_envelope_used used = rv_envelope_used(env);
    const char *reason = rv_reason_text(f->terminal_reason);
    json_object *run = rv_json_build(b, end, "run", json_object_new_object());

    rv_json_build_text(b, run, "status", rv_run_status_text(r->status));
    add_text(b, run, "terminal_reason", reason ? rv_str_of(reason) : (rv_str){NULL, 0});
    rv_json_build_int(b, run, "llm_calls", used.llm_calls);
    rv_json_build_int(b, run, "iteration", used.iterations);
    rv_json_build_int(b, run, "duration_ms", r->duration_ms);
    rv_json_build_int(b, run, "input_tokens", used.usage.input_tokens);
    rv_json_build_int(b, run, "output_tokens", used.usage.output_tokens);
    rv_json_build(b, run, "usd", rv_json_new_double((double)used.usage.cost_micro_usd / 1e6));
}

/* What `that` can name (variables_at() in config/texts.c). The caller's; it shares values with the report. */
static int end_of(const struct rv_pipeline *p, const rv_envelope *env, const struct rv_test_report *r,
                  json_object **out, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *end = json_object_new_object(), *errors = NULL;
    rv_str response = {NULL, 0};

    if (!end)
        return RV_FAIL(err, RV_E_NOMEM, "read the end of a test");
    if (!rv_envelope_find_final_response(env, &p->response, &response))
        response = (rv_str){NULL, 0};
    add_text(&b, end, "response", response);
    add_of_state(&b, end, r, "outputs");
    add_of_state(&b, end, r, "metadata");
    if (b.rc == 0)
        b.rc = app_test_gather(r->state, "errors", &errors, err);
    rv_json_build(&b, end, "errors", errors);
    rv_json_build(&b, end, "state", json_object_get(r->state));
    rv_json_build(&b, end, "visited", json_object_get(r->visited));
    rv_json_build(&b, end, "questions", json_object_get(r->questions));
    rv_json_build(&b, end, "calls", json_object_get(r->calls));
    add_run(&b, end, env, r);
    if (b.rc < 0)
        json_object_put(end);
    else
        *out = end;
    return b.rc;
}

/* "; outputs.draft.score is 0.3" */
static void show_name(const struct rv_placeholder *name, json_object *end, rv_buf *b)
{
    const rv_str parts[] = {name->root, name->field, name->member};
    json_object *v = end;
    bool exists = true;
    rv_buf text = RV_BUF_INIT(MAX_VALUE_BYTES);

    rv_buf_puts(b, "; ");
    for (size_t i = 0; i < RV_COUNT(parts) && parts[i].ptr; i++) {
        char key[256];
        rv_buf_printf(b, "%s%.*s", i ? "." : "", RV_STR_ARG(parts[i]));
        snprintf(key, sizeof key, "%.*s", RV_STR_ARG(parts[i]));
        exists = exists && json_object_is_type(v, json_type_object) && json_object_object_get_ex(v, key, &v);
    }
    if (!exists) {
        rv_buf_puts(b, " is absent");
        return;
    }
    rv_json_write(v, &text);
    rv_str head = rv_utf8_cut(rv_buf_str(&text), MAX_SHOWN_BYTES);
    rv_buf_printf(b, " is %.*s%s", RV_STR_ARG(head), head.len < text.len ? "..." : "");
    rv_buf_fini(&text);
}

static bool was_shown(const rv_expr *e, size_t at)
{
    struct rv_placeholder name = rv_expr_name_at(e, at);

    for (size_t i = 0; i < at; i++) {
        struct rv_placeholder other = rv_expr_name_at(e, i);
        if (rv_str_eq(name.root, other.root) && rv_str_eq(name.field, other.field) &&
            rv_str_eq(name.member, other.member))
            return true;
    }
    return false;
}

/* The expression, why it does not hold, and the values that it names. Takes fault, which may be NULL: it is false. */
static int complain_that(struct rv_test_report *r, size_t i, json_object *end, rv_err *fault, rv_err **err)
{
    static const char *const wholes[] = {"response", "visited", "calls", "questions", "errors"}; /* have no members */
    const rv_expr *e = r->test->that[i];
    rv_buf text = RV_BUF_INIT(MAX_MESSAGE);
    size_t n_shown = 0;
    char path[32];

    snprintf(path, sizeof path, "/that/%zu", i);
    rv_buf_puts(&text, rv_expr_text(e));
    if (fault)
        rv_buf_printf(&text, " has no value: %s", rv_err_text(fault));
    else
        rv_buf_puts(&text, " is false");
    for (size_t k = 0; k < rv_expr_n_names(e) && n_shown < MAX_SHOWN_NAMES; k++) {
        struct rv_placeholder name = rv_expr_name_at(e, k);
        if (was_shown(e, k))
            continue;
        show_name(&name, end, &text);
        n_shown++;
    }
    for (size_t k = 0; k < RV_COUNT(wholes) && n_shown < MAX_SHOWN_NAMES; k++)
        if (rv_expr_has_variable(e, wholes[k], NULL)) {
            show_name(&(struct rv_placeholder){.root = rv_str_of(wholes[k])}, end, &text);
            n_shown++;
        }
    rv_err_free(fault);
    int rc = rv_buf_check(&text, "failure of a test", err);
    if (rc == 0)
        rc = app_test_complain(r, path, rv_buf_cstr(&text), err);
    rv_buf_fini(&text);
    return rc;
}

static int compare_that(struct rv_test_report *r, json_object *end, rv_err **err)
{
    struct rv_scope scope = rv_scope_of_object(end);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->test->n_that; i++) {
        rv_err *fault = NULL;
        bool holds = false;
        rc = rv_expr_test(r->test->that[i], &scope, &holds, &fault);
        if (rc == RV_E_NOMEM) {
            rv_err_pass(err, fault);
        } else if (rc < 0 || !holds) {
            rc = complain_that(r, i, end, fault, err);
        }
    }
    return rc;
}

/* --- near --- */

/* What is wrong with the value, in text; nothing, if it is near enough. */
static void judge_near(const struct rv_test_near *near, json_object *v, rv_buf *text)
{
    double found = json_object_get_double(v), slack = near->within * ROUNDING + fabs(near->to) * ROUNDING;

    if ((json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double)) &&
        fabs(found - near->to) <= near->within + slack)
        return;
    rv_buf shown = RV_BUF_INIT(MAX_VALUE_BYTES);
    rv_json_write(v, &shown);
    rv_str head = rv_utf8_cut(rv_buf_str(&shown), MAX_SHOWN_BYTES);
    rv_buf_printf(text, "expected a number within %.15g of %.15g, found %.*s%s", near->within, near->to,
                  RV_STR_ARG(head), head.len < shown.len ? "..." : "");
    rv_buf_fini(&shown);
}

static int compare_near_one(struct rv_test_report *r, const struct rv_test_near *near, json_object *end, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(MAX_MESSAGE), text = RV_BUF_INIT(MAX_MESSAGE);
    struct rv_scope scope = rv_scope_of_object(end);
    json_object *v = NULL;
    rv_err *fault = NULL;
    int rc = rv_expr_eval(near->value, &scope, &v, &fault);

    if (rc == RV_E_NOMEM) {
        rv_err_pass(err, fault);
        return rc;
    }
    if (rc < 0)
        rv_buf_printf(&text, "it has no value: %s", rv_err_text(fault));
    else
        judge_near(near, v, &text);
    rv_err_free(fault);
    json_object_put(v);
    rv_buf_printf(&path, "/near/%s", rv_expr_text(near->value));
    rc = rv_buf_check(&text, "failure of a test", err);
    if (rc == 0 && text.len > 0)
        rc = app_test_complain(r, rv_buf_cstr(&path), rv_buf_cstr(&text), err);
    rv_buf_fini(&path);
    rv_buf_fini(&text);
    return rc;
}

/* `that` and `near`, which look at the whole end of the run. */
static int compare_end(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r, rv_err **err)
{
    json_object *end = NULL;
    int rc = r->test->n_that || r->test->n_near ? end_of(p, env, r, &end, err) : 0;

    for (size_t i = 0; rc == 0 && i < r->test->n_near; i++)
        rc = compare_near_one(r, &r->test->near[i], end, err);
    if (rc == 0)
        rc = compare_that(r, end, err);
    json_object_put(end);
    return rc;
}

/* --- schema --- */

/* No stage stored it; say which were. */
static int complain_of_output(struct rv_test_report *r, const char *path, json_object *outputs, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1 << 16);
    size_t n = 0;

    rv_buf_puts(&text, "no stage stored this output; stored: ");
    json_object_object_foreach (outputs, key, value) { /* a run has them, if only {} */
        (void)value;
        rv_buf_printf(&text, "%s%s", n++ > 0 ? ", " : "", key);
    }
    rv_buf_puts(&text, n > 0 ? "" : "none");
    int rc = rv_buf_check(&text, "failure of a test", err);
    if (rc == 0)
        rc = app_test_complain(r, path, rv_buf_cstr(&text), err);
    rv_buf_fini(&text);
    return rc;
}

static int compare_schema(struct rv_test_report *r, const struct rv_test_schema *s, rv_err **err)
{
    json_object *outputs = rv_json_get_obj(r->state, "outputs"), *output = NULL;
    char path[RV_MAX_STAGE_NAME + 16];
    rv_schema *schema = NULL;
    rv_err *fault = NULL;

    snprintf(path, sizeof path, "/schema/%s", s->output_key);
    if (!json_object_object_get_ex(outputs, s->output_key, &output))
        return complain_of_output(r, path, outputs, err);
    int rc = rv_schema_compile(s->schema, "the output", &schema, err);
    if (rc == 0)
        rc = rv_schema_check(schema, output, &fault);
    rv_schema_free(schema);
    if (rc == RV_E_NOMEM && fault)
        return rv_err_pass(err, fault);
    if (fault)
        rc = app_test_complain(r, path, rv_err_text(fault), err);
    rv_err_free(fault);
    return rc;
}

/* --- tool calls --- */

static int compare_call(struct rv_test_report *r, size_t i, json_object *want, json_object *found, rv_err **err)
{
    static const char *const names[] = {"tool", "stage"};
    rv_buf path = RV_BUF_INIT(MAX_MESSAGE);
    json_object *part = NULL, *value = NULL;
    int rc = 0;

    rv_buf_printf(&path, "/tool_calls/%zu", i);
    for (size_t k = 0; k < RV_COUNT(names) && rc == 0; k++)
        if (json_object_object_get_ex(want, names[k], &part)) {
            json_object_object_get_ex(found, names[k], &value);
            rc = app_test_same_part(r, &path, names[k], part, value, err);
        }
    if (rc == 0 && json_object_object_get_ex(want, "arguments", &part)) {
        json_object_object_get_ex(found, "arguments", &value);
        rc = app_test_same_part(r, &path, "arguments", part, value, err);
    }
    rv_buf_fini(&path);
    return rc;
}

/* "plan: look, act: write_file" */
static int complain_of_number(struct rv_test_report *r, size_t n_wanted, rv_err **err)
{
    size_t n = json_object_array_length(r->calls);
    rv_buf text = RV_BUF_INIT(MAX_MESSAGE);

    rv_buf_printf(&text, "expected %zu, found %zu", n_wanted, n);
    for (size_t i = 0; i < n; i++) {
        json_object *call = json_object_array_get_idx(r->calls, i);
        rv_buf_printf(&text, "%s%s: %s", i ? ", " : ": ", rv_json_text_or(call, "stage", ""),
                      rv_json_text_or(call, "tool", ""));
        if (text.len > MAX_MESSAGE / 2)
            break;
    }
    int rc = rv_buf_check(&text, "failure of a test", err);
    if (rc == 0)
        rc = app_test_complain(r, "/tool_calls", rv_buf_cstr(&text), err);
    rv_buf_fini(&text);
    return rc;
}

static int compare_calls(struct rv_test_report *r, rv_err **err)
{
    json_object *wanted = rv_json_get_arr(r->test->expect, "tool_calls");
    int rc = 0;

    if (!wanted)
        return 0;
    if (json_object_array_length(wanted) != json_object_array_length(r->calls))
        return complain_of_number(r, json_object_array_length(wanted), err);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(wanted); i++)
        rc = compare_call(r, i, json_object_array_get_idx(wanted, i), json_object_array_get_idx(r->calls, i), err);
    return rc;
}

/* --- similar --- */

static int compare_similar(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r, rv_err **err)
{
    struct rv_grams want = {NULL, 0}, found = {NULL, 0};
    rv_str response = {NULL, 0};

    if (!r->test->similar_to)
        return 0;
    if (!rv_envelope_find_final_response(env, &p->response, &response))
        return app_test_lacks_response(p, r, "/similar", err);
    int rc = rv_grams_build(rv_str_of(r->test->similar_to), &want, err);
    if (rc == 0)
        rc = rv_grams_build(response, &found, err);
    double score = rc == 0 ? rv_float_decimal(rv_grams_similarity(want.at, want.n, found.at, found.n)) : 0;
    rv_grams_fini(&want);
    rv_grams_fini(&found);
    if (rc == 0 && score < r->test->similar_at_least) {
        rv_buf text = RV_BUF_INIT(MAX_MESSAGE);
        rv_str head = rv_utf8_cut(response, MAX_SHOWN_BYTES);
        rv_jw w = rv_jw_on(&text);
        rv_buf_puts(&text, "the response ");
        rv_jw_str(&w, head);
        rv_buf_printf(&text, "%s has a similarity of %.3f, less than %.3f", head.len < response.len ? "..." : "", score,
                      r->test->similar_at_least);
        rc = rv_buf_check(&text, "failure of a test", err);
        if (rc == 0)
            rc = app_test_complain(r, "/similar", rv_buf_cstr(&text), err);
        rv_buf_fini(&text);
    }
    return rc;
}

int app_test_assert(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r, rv_err **err)
{
    int rc = compare_calls(r, err);

    for (size_t i = 0; rc == 0 && i < r->test->n_schemas; i++)
        rc = compare_schema(r, &r->test->schemas[i], err);
    if (rc == 0)
        rc = compare_similar(p, env, r, err);
    return rc == 0 ? compare_end(p, env, r, err) : rc;
}
