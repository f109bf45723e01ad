/* What a test expects against what came. Keys that are left out are not compared. */
#include "coreengine/app/testing/testing_internal.h"

#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#define MAX_PATH_BYTES  ((size_t)1 << 16) /* of "output.a.b[3]": keys of the state; a longer one is an error */
#define MAX_SHOWN_BYTES 240               /* of the error of a run: it stays within three lines of a terminal */

/* Add {path, expected, found}; found is left out when there is nothing. Borrows both. */
static int differ(struct rv_test_report *r, const char *path, json_object *expected, json_object *found, bool exists,
                  rv_err **err)
{
    json_object *entry = json_object_new_object();
    int rc = entry ? 0 : RV_FAIL(err, RV_E_NOMEM, "report a difference");

    if (rc == 0)
        rc = rv_json_set_text(entry, "path", path, err);
    if (rc == 0)
        rc = rv_json_set_ref(entry, "expected", expected, err);
    if (rc == 0 && exists)
        rc = rv_json_set_ref(entry, "found", found, err);
    if (rc == 0)
        return rv_json_push_take(r->failures, entry, err);
    json_object_put(entry);
    return rc;
}

int app_test_complain(struct rv_test_report *r, const char *path, const char *message, rv_err **err)
{
    json_object *entry = json_object_new_object();
    int rc = entry ? 0 : RV_FAIL(err, RV_E_NOMEM, "report a failure");

    if (rc == 0)
        rc = rv_json_set_text(entry, "path", path, err);
    if (rc == 0)
        rc = rv_json_set_text(entry, "message", message, err);
    if (rc == 0)
        return rv_json_push_take(r->failures, entry, err);
    json_object_put(entry);
    return rc;
}

int app_test_lacks_response(const struct rv_pipeline *p, struct rv_test_report *r, const char *path, rv_err **err)
{
    const char *key = p->response.output_key ? p->response.output_key : "integration";
    const char *field = p->response.field ? p->response.field : "final_response";
    char text[512];

    snprintf(text, sizeof text,
             "there is no response: the output \"%.100s\" has no text \"%.100s\" (the key `response` of the pipeline "
             "names where it is)",
             key, field);
    return app_test_complain(r, path, text, err);
}

static int same(struct rv_test_report *r, const char *path, json_object *expected, json_object *found, rv_err **err)
{
    return rv_json_equal(expected, found) ? 0 : differ(r, path, expected, found, true, err);
}

static int same_text(struct rv_test_report *r, const char *path, json_object *expected, const char *text, rv_err **err)
{
    json_object *found = text ? json_object_new_string(text) : NULL;

    if (text && !found)
        return RV_FAIL(err, RV_E_NOMEM, "compare");
    int rc = rv_json_equal(expected, found) ? 0 : differ(r, path, expected, found, found != NULL, err);
    json_object_put(found);
    return rc;
}

static int same_int(struct rv_test_report *r, const char *path, json_object *expected, int64_t value, rv_err **err)
{
    json_object *found = json_object_new_int64(value);

    if (!found)
        return RV_FAIL(err, RV_E_NOMEM, "compare");
    int rc = same(r, path, expected, found, err);
    json_object_put(found);
    return rc;
}

/* --- a part of a value --- */

/* One more step of a JSON pointer; gives the length to cut back to. */
static size_t step_into(rv_buf *path, const char *key)
{
    size_t len = path->len;

    rv_buf_putc(path, '/');
    for (; *key; key++) {
        if (*key == '~')
            rv_buf_puts(path, "~0");
        else if (*key == '/')
            rv_buf_puts(path, "~1");
        else
            rv_buf_putc(path, *key);
    }
    return len;
}

/* Objects may have more keys than expected; lists have as many items; everything else is equal. */
static int contains(struct rv_test_report *r, rv_buf *path, json_object *expected, json_object *found, rv_err **err)
{
    int rc = 0;

    if (json_object_is_type(expected, json_type_object) && json_object_is_type(found, json_type_object)) {
        json_object_object_foreach (expected, key, part) {
            json_object *value = NULL;
            bool exists = json_object_object_get_ex(found, key, &value);
            size_t len = step_into(path, key);
            rc = exists ? contains(r, path, part, value, err) : differ(r, rv_buf_cstr(path), part, NULL, false, err);
            rv_buf_truncate(path, len);
            if (rc < 0)
                return rc;
        }
        return 0;
    }
    if (json_object_is_type(expected, json_type_array) && json_object_is_type(found, json_type_array) &&
        json_object_array_length(expected) == json_object_array_length(found)) {
        for (size_t i = 0; rc == 0 && i < json_object_array_length(expected); i++) {
            size_t len = path->len;
            rv_buf_printf(path, "/%zu", i);
            rc = contains(r, path, json_object_array_get_idx(expected, i), json_object_array_get_idx(found, i), err);
            rv_buf_truncate(path, len);
        }
        return rc;
    }
    return same(r, rv_buf_cstr(path), expected, found, err);
}

int app_test_same_part(struct rv_test_report *r, rv_buf *path, const char *key, json_object *expected,
                       json_object *found, rv_err **err)
{
    size_t len = step_into(path, key);
    int rc = contains(r, path, expected, found, err);

    rv_buf_truncate(path, len);
    return rc;
}

static int compare_output(struct rv_test_report *r, json_object *expected, rv_err **err)
{
    json_object *outputs = rv_json_get_obj(r->state, "outputs");
    rv_buf path = RV_BUF_INIT(MAX_PATH_BYTES);

    rv_buf_puts(&path, "/output");
    int rc = contains(r, &path, expected, outputs, err);
    rv_buf_fini(&path);
    return rc;
}

/* --- response --- */

static int response_contains(struct rv_test_report *r, const char *path, json_object *part, rv_str response,
                             bool exists, rv_err **err)
{
    rv_str want = rv_json_str(part);

    if (exists && (want.len == 0 || (response.len && memmem(response.ptr, response.len, want.ptr, want.len))))
        return 0;
    json_object *found = exists ? json_object_new_string_len(response.ptr, (int)response.len) : NULL;
    int rc = differ(r, path, part, found, exists, err);
    json_object_put(found);
    return rc;
}

static int compare_response(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r,
                            json_object *expected, bool exact, rv_err **err)
{
    rv_str response = {NULL, 0};
    bool exists = rv_envelope_find_final_response(env, &p->response, &response);
    int rc = 0;

    if (exact) {
        rv_str want = rv_json_str(expected);
        if (exists && rv_str_eq(want, response))
            return 0;
        json_object *found = exists ? json_object_new_string_len(response.ptr, (int)response.len) : NULL;
        rc = differ(r, "/response", expected, found, exists, err);
        json_object_put(found);
        return rc;
    }
    if (!json_object_is_type(expected, json_type_array))
        return response_contains(r, "/response_contains", expected, response, exists, err);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(expected); i++) {
        char path[48];
        snprintf(path, sizeof path, "/response_contains/%zu", i);
        rc = response_contains(r, path, json_object_array_get_idx(expected, i), response, exists, err);
    }
    return rc;
}

/* --- errors --- */

static int compare_error(struct rv_test_report *r, size_t i, json_object *want, json_object *found, rv_err **err)
{
    const char *agent = NULL, *part = NULL;

    const char *by = rv_json_text_or(found, "agent", "");
    const char *text = rv_json_text_or(found, "error", "");
    bool fits = (!rv_json_get_text(want, "agent", &agent) || strcmp(agent, by) == 0) &&
                (!rv_json_get_text(want, "contains", &part) || strstr(text, part));
    if (fits)
        return 0;
    char path[48];
    snprintf(path, sizeof path, "/errors/%zu", i);
    return differ(r, path, want, found, true, err);
}

static int compare_errors(struct rv_test_report *r, json_object *expected, rv_err **err)
{
    json_object *errors = NULL;

    int rc = app_test_gather(r->state, "errors", &errors, err);
    if (rc < 0)
        return rc;
    size_t n = json_object_array_length(errors);
    if (!json_object_is_type(expected, json_type_array))
        rc = same_int(r, "/errors", expected, (int64_t)n, err);
    else if (n != json_object_array_length(expected))
        rc = differ(r, "/errors", expected, errors, true, err);
    else
        for (size_t i = 0; rc == 0 && i < n; i++)
            rc = compare_error(r, i, json_object_array_get_idx(expected, i), json_object_array_get_idx(errors, i), err);
    json_object_put(errors);
    return rc;
}

/* --- all expectations --- */

static int compare_duration(struct rv_test_report *r, json_object *expected, rv_err **err)
{
    int64_t most = json_object_get_int64(expected);
    return r->duration_ms <= most ? 0 : same_int(r, "/max_duration_ms", expected, r->duration_ms, err);
}

/* Keys that app_test_assert() and app_test_ask_judge() look at. */
static bool is_assertion(const char *key)
{
    static const char *const keys[] = {"that", "schema", "tool_calls", "similar", "near", "judge"};

    for (size_t i = 0; i < RV_COUNT(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static int compare_key(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r, const char *key,
                       json_object *expected, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);

    if (strcmp(key, "status") == 0)
        return same_text(r, "/status", expected, rv_run_status_text(r->status), err);
    if (strcmp(key, "terminal_reason") == 0)
        return same_text(r, "/terminal_reason", expected, rv_reason_text(f->terminal_reason), err);
    if (strcmp(key, "visited") == 0)
        return same(r, "/visited", expected, r->visited, err);
    if (strcmp(key, "output") == 0)
        return compare_output(r, expected, err);
    if (strcmp(key, "response") == 0)
        return compare_response(p, env, r, expected, true, err);
    if (strcmp(key, "response_contains") == 0)
        return compare_response(p, env, r, expected, false, err);
    if (strcmp(key, "interrupt") == 0)
        return same_text(
            r, "/interrupt", expected,
            rv_envelope_has_interrupt(env) ? rv_interrupt_kind_text(rv_envelope_interrupt(env).kind) : NULL, err);
    if (strcmp(key, "questions") == 0)
        return same(r, "/questions", expected, r->questions, err);
    if (strcmp(key, "errors") == 0)
        return compare_errors(r, expected, err);
    if (strcmp(key, "llm_calls") == 0)
        return same_int(r, "/llm_calls", expected, rv_envelope_used(env).llm_calls, err);
    if (strcmp(key, "iteration") == 0)
        return same_int(r, "/iteration", expected, rv_envelope_used(env).iterations, err);
    if (strcmp(key, "max_duration_ms") == 0)
        return compare_duration(r, expected, err);
    return RV_FAIL(err, RV_E_INTERNAL, "test \"%s\": expect.%s is not compared by anything", r->test->name, key);
}

/* --- the end of the run, where nothing is said about it --- */

/* Expressions that look at how the run ended; `state` tells that as well. */
static bool names_end(const rv_expr *e)
{
    for (size_t i = 0; i < rv_expr_n_names(e); i++) {
        struct rv_placeholder name = rv_expr_name_at(e, i);
        if (rv_str_is(name.root, "run") &&
            (!name.field.ptr || rv_str_is(name.field, "status") || rv_str_is(name.field, "terminal_reason")))
            return true;
    }
    return rv_expr_has_variable(e, "errors", NULL) || rv_expr_has_variable(e, "questions", NULL) ||
           rv_expr_has_variable(e, "state", NULL);
}

static bool speaks_of_end(const struct rv_test_config *test)
{
    static const char *const keys[] = {"status", "terminal_reason", "interrupt", "questions", "errors"};

    for (size_t i = 0; i < RV_COUNT(keys); i++)
        if (json_object_object_get_ex(test->expect, keys[i], NULL))
            return true;
    for (size_t i = 0; i < test->n_that; i++)
        if (names_end(test->that[i]))
            return true;
    return false;
}

/* The run completed, or a stage broke it off on purpose. */
static bool ended_well(const rv_envelope *env, const struct rv_test_report *r)
{
    return r->status == RV_RUN_COMPLETED || rv_envelope_fields(env)->terminal_reason == RV_REASON_BREAK;
}

/* "failed: the disk is on fire", "waits for an answer: Which file?" */
static void write_end(const struct rv_test_report *r, rv_buf *b)
{
    size_t n_errors = json_object_array_length(r->errors), n_questions = json_object_array_length(r->questions);
    const char *reason = r->ended_by;

    if (r->status == RV_RUN_INTERRUPTED) {
        rv_buf_puts(b, "waits for an answer that the script does not have");
        if (n_questions)
            reason = rv_json_str(json_object_array_get_idx(r->questions, n_questions - 1)).ptr;
    } else {
        rv_buf_printf(b, "%s%s", r->status == RV_RUN_FAILED ? "" : "was ", rv_run_status_text(r->status));
        if (!reason && n_errors)
            reason = rv_json_text_or(json_object_array_get_idx(r->errors, n_errors - 1), "text", NULL);
    }
    if (reason) {
        rv_str head = rv_utf8_cut(rv_str_of(reason), MAX_SHOWN_BYTES);
        rv_buf_printf(b, ": %.*s%s", RV_STR_ARG(head), head.len < strlen(reason) ? "..." : "");
    }
}

/* A run that did not complete fails a test that says nothing about the end. */
static int compare_outcome(const rv_envelope *env, struct rv_test_report *r, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_PATH_BYTES);

    if (speaks_of_end(r->test) || ended_well(env, r))
        return 0;
    rv_buf_puts(&text, "the run ");
    write_end(r, &text);
    rv_buf_printf(&text, " (set expect.status to %s if that is meant)", rv_run_status_text(r->status));
    int rc = rv_buf_check(&text, "failure of a test", err);
    if (rc == 0)
        rc = app_test_complain(r, "/status", rv_buf_cstr(&text), err);
    rv_buf_fini(&text);
    return rc;
}

int app_test_compare(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r, rv_err **err)
{
    int rc = compare_outcome(env, r, err);

    if (rc < 0)
        return rc;
    json_object_object_foreach (r->test->expect, key, expected) {
        rc = is_assertion(key) ? 0 : compare_key(p, env, r, key, expected, err);
        if (rc < 0)
            return rc;
    }
    return app_test_assert(p, env, r, err);
}
