/* The service `query`: the REM dialect, in the scope of the call that asks. */
#include <json-c/linkhash.h>
#include <string.h>

#include "coreengine/app/models.h"
#include "coreengine/app/services/services_internal.h"
#include "coreengine/knowledge/knowledge.h"

#define MAX_BYTES ((size_t)6 << 20) /* of the results: what is beyond is left out, and said to be */
#define MAX_LIMIT 1000              /* rows of one answer: it crosses the plugin border as one text */

static int limit_of(const struct app_ask *a, int64_t *out, rv_err **err)
{
    *out = MAX_LIMIT;
    if (!json_object_object_get_ex(a->args, "limit", NULL))
        return 0;
    if (!rv_json_get_int(a->args, "limit", out) || *out < 1 || *out > MAX_LIMIT)
        return RV_FAIL(err, RV_E_INVALID, "\"limit\" is not an integer from 1 to %d", MAX_LIMIT);
    return 0;
}

/* The members of the answer, the results cut at the limit: they are in order, best first. */
static void write_answer(json_object *answer, size_t limit, rv_jw *w)
{
    json_object *results = rv_json_get_arr(answer, "results");
    size_t n = results ? json_object_array_length(results) : 0;
    bool is_cut = n > limit;

    if (is_cut)
        rv_json_cut(results, limit, n - limit);
    json_object_object_foreach (answer, key, value) {
        bool is_truncated = strcmp(key, "truncated") == 0;
        rv_jw_key(w, key);
        if (is_truncated && is_cut)
            rv_jw_bool(w, true);
        else
            rv_jw_value(w, value);
    }
}

int app_query(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    static const char *const known[] = {"text", "limit"};
    struct rv_app app = a->app; /* without the log, which is the loop's */
    struct rv_app_query with;
    json_object *answer = NULL;
    const char *text = NULL;
    int64_t limit = 0;
    app.log = NULL;
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = app_ask_text(a, "text", true, &text, err);
    if (rc == 0)
        rc = limit_of(a, &limit, err);
    if (rc == 0)
        rc = rv_app_query_init(&app, &with, err);
    with.opts.max_bytes = MAX_BYTES;
    if (rc == 0)
        rc = rv_knowledge_query(a->store, &a->app.scope,
                                &(const struct rv_knowledge_query){rv_str_of(text), &with.opts}, &answer, NULL, err);
    if (rc == 0)
        write_answer(answer, (size_t)limit, w);
    json_object_put(answer);
    return rc;
}
