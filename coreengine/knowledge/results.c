/* Results of a query, within the limit of their bytes, and the words for faults. */
#include <stdint.h>

#include "coreengine/knowledge/knowledge_internal.h"

static const char *const faults[] = {
#define X(name, word, code, meaning) word,
    RV_KNOWLEDGE_FAULTS(X)
#undef X
};

const char *knowledge_asking_fault_text(enum knowledge_fault fault)
{
    return faults[fault];
}

static size_t max_bytes(const struct asking *a)
{
    return a->opts->max_bytes > 0 ? a->opts->max_bytes : RV_KNOWLEDGE_MAX_BYTES;
}

/* How long it is as JSON; more than fits: one more than that. */
static int measure(const struct asking *a, json_object *result, size_t *out, rv_err **err)
{
    size_t left = max_bytes(a) - a->bytes;
    rv_buf text = RV_BUF_INIT(left);

    rv_json_write(result, &text);
    int rc = text.rc;
    *out = rc == RV_E_LIMIT ? left + 1 : text.len + 1;
    rv_buf_fini(&text);
    return rc == 0 || rc == RV_E_LIMIT ? 0 : RV_FAIL(err, rc, "write a result");
}

int knowledge_asking_add_take(struct asking *a, json_object *result, bool *is_full, rv_err **err)
{
    size_t n = 0;
    int rc = 0;

    if (!a->is_truncated)
        rc = measure(a, result, &n, err);
    if (rc == 0 && (a->is_truncated || n > max_bytes(a) - a->bytes)) {
        a->is_truncated = true;
        json_object_put(result);
    } else if (rc == 0) {
        a->bytes += n;
        rc = rv_json_push_take(a->results, result, err);
    } else {
        json_object_put(result);
    }
    if (is_full)
        *is_full = a->is_truncated;
    return rc;
}

int knowledge_asking_warn(struct asking *a, rv_str text, rv_err **err)
{
    return rv_json_push_take(a->warnings, json_object_new_string_len(text.ptr, (int)text.len), err);
}
