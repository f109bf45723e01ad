/* search: one query of the REM dialect. */
#include "capabilities/p8/p8_internal.h"

#include <string.h>
#include <strings.h>

#define MAX_SHOWN ((size_t)256 << 10) /* bytes of all results: a model reads them */

/* The whole first word is a mode. */
static bool has_mode(const char *query)
{
    static const char *const modes[] = {"LOOKUP", "SEARCH", "FUZZY", "TRAVERSE", "SQL"};
    size_t len;

    query += strspn(query, " \t\r\n");
    len = strcspn(query, " \t\r\n");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (len == strlen(modes[i]) && strncasecmp(query, modes[i], len) == 0)
            return true;
    return false;
}

/* As many as a model can be shown; the first one always. */
static bool cut(json_object *results)
{
    size_t bytes = 0, n = length(results);

    for (size_t i = 0; i < n; i++) {
        bytes += strlen(json_object_to_json_string_ext(item(results, i), JSON_C_TO_STRING_PLAIN));
        if (bytes > MAX_SHOWN && i > 0) {
            json_object_array_del_idx(results, i, n - i);
            return true;
        }
    }
    return false;
}

static json_object *run(struct tool *t, const void *self)
{
    const char *query = arg_text(t, "query", true);
    int64_t limit = arg_int(t, "limit", 20);
    json_object *args, *said, *results, *result;
    bool is_truncated;

    (void)self;
    if (t->code)
        return NULL;
    if (!has_mode(query))
        return tool_fail(t, BAD_ARGUMENTS,
                         "Invalid query — must start with LOOKUP, SEARCH, FUZZY, TRAVERSE, or SQL. Example: "
                         "LOOKUP sarah-chen, or SEARCH database choice FROM ontologies LIMIT 5");
    if (limit < 1 || limit > 1000)
        return tool_fail(t, BAD_ARGUMENTS, "limit has to be from 1 to 1000");
    args = json_object_new_object();
    add(t, args, "text", text(query));
    add(t, args, "limit", json_object_new_int64(limit));
    said = ask_take(t, "query", args);
    if (!said)
        return NULL;
    results = member(said, "results");
    is_truncated = cut(results) || json_object_get_boolean(member(said, "truncated"));
    result = success(t, "success");
    add(t, result, "query", text(query));
    add(t, result, "results", json_object_get(results));
    add(t, result, "count", json_object_new_int64((int64_t)length(results)));
    if (is_truncated)
        add(t, result, "truncated", json_object_new_boolean(1));
    if (length(member(said, "warnings")) > 0)
        add(t, result, "warnings", json_object_get(member(said, "warnings")));
    json_object_put(said);
    return result;
}

int search(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, "query", run);
}
