/* What a test expects against what came. Keys that are left out are not compared. */
#include "coreengine/app/testing/testing_internal.h"

#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#define MAX_PATH_BYTES ((size_t)1 << 16)

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

int rv_test_complain(struct rv_test_report *r, const char *path, const char *message, rv_err **err)
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

int rv_test_lacks_response(const struct rv_pipeline *p, struct rv_test_report *r, const char *path, rv_err **err)
{
    const char *key = p->response.output_key ? p->response.output_key : "integration";
    const char *field = p->response.field ? p->response.field : "final_response";
    char text[512];

    snprintf(text, sizeof text,
             "there is no response: the output \"%.100s\" has no text \"%.100s\" (the key `response` of the pipeline "
             "names where it is)",
             key, field);
    return rv_test_complain(r, path, text, err);
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

int rv_test_same_part(struct rv_test_report *r, rv_buf *path, const char *key, json_object *expected,
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
    bool exists = rv_envelope_final_response(env, &p->response, &response);
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
    const char *agent = NULL, *part = NULL, *text = "", *by = "";

    by = rv_json_text_or(found, "agent", "");
    text = rv_json_text_or(found, "error", "");
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
    json_object *errors = rv_json_get_arr(r->state, "errors");
    size_t n = errors ? json_object_array_length(errors) : 0;
    int rc = 0;

    if (!json_object_is_type(expected, json_type_array))
        return same_int(r, "/errors", expected, (int64_t)n, err);
    if (n != json_object_array_length(expected))
        return differ(r, "/errors", expected, errors, true, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = compare_error(r, i, json_object_array_get_idx(expected, i), json_object_array_get_idx(errors, i), err);
    return rc;
}

/* --- all expectations --- */

static int compare_duration(struct rv_test_report *r, json_object *expected, rv_err **err)
{
    int64_t most = json_object_get_int64(expected);
    return r->duration_ms <= most ? 0 : same_int(r, "/max_duration_ms", expected, r->duration_ms, err);
}

/* Keys that rv_test_assert() and rv_test_ask_judge() look at. */
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
        return same_int(r, "/llm_calls", expected, f->llm_call_count, err);
    if (strcmp(key, "iteration") == 0)
        return same_int(r, "/iteration", expected, f->iteration, err);
    if (strcmp(key, "max_duration_ms") == 0)
        return compare_duration(r, expected, err);
    return RV_FAIL(err, RV_E_INTERNAL, "test \"%s\": expect.%s is not compared by anything", r->test->name, key);
}

int rv_test_compare(const struct rv_pipeline *p, const rv_envelope *env, struct rv_test_report *r, rv_err **err)
{
    json_object_object_foreach (r->test->expect, key, expected) {
        int rc = is_assertion(key) ? 0 : compare_key(p, env, r, key, expected, err);
        if (rc < 0)
            return rc;
    }
    return rv_test_assert(p, env, r, err);
}
