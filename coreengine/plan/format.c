/* Results of tools become text. */
#include <string.h>

#include "coreengine/plan/plan.h"

#define SUMMARY_CHARACTERS 200 /* of a result's first line that a list shows */

static const struct {
    size_t limit; /* bytes of a text; 0: none */
    const char *between;
} formats[] = {
    [RV_RESULT_MODEL] = {500, "\n"},
    [RV_RESULT_SYNTHESIS] = {1000, "\n---\n\n"},
    [RV_RESULT_DISPLAY] = {200, "\n"},
    [RV_RESULT_FALLBACK] = {0, "\n\n"},
};
RV_EACH_HAS_ROW(formats, RV_N_RESULT_FORMATS);

static bool has_failed(json_object *result)
{
    bool failed = false;

    return json_object_is_type(result, json_type_object) && rv_json_get_bool(result, "isError", &failed) && failed;
}

/* The text blocks, a line feed between two; everything else is left out. */
static void read_text(json_object *result, rv_buf *text)
{
    json_object *content = json_object_is_type(result, json_type_object) ? rv_json_get_arr(result, "content") : NULL;
    size_t n = 0;

    for (size_t i = 0; content && i < json_object_array_length(content); i++) {
        json_object *block = json_object_array_get_idx(content, i), *value = NULL;
        const char *type = NULL;
        if (!json_object_is_type(block, json_type_object) || !rv_json_get_text(block, "type", &type) ||
            strcmp(type, "text") != 0 || !json_object_object_get_ex(block, "text", &value) ||
            !json_object_is_type(value, json_type_string))
            continue;
        if (n++ > 0)
            rv_buf_putc(text, '\n');
        rv_buf_add_str(text, rv_json_str(value));
    }
}

static void put_cut(rv_str text, size_t limit, rv_buf *out)
{
    size_t keep = limit > 3 ? limit - 3 : 0;

    if (limit == 0 || text.len <= limit) {
        rv_buf_add_str(out, text);
        return;
    }
    while (keep > 0 && rv_utf8_continues(text.ptr[keep]))
        keep--;
    rv_buf_add(out, text.ptr, keep);
    rv_buf_puts(out, "...");
}

/* The beginning of the first line that is not blank. */
static void put_summary(rv_str text, rv_buf *out)
{
    while (text.len > 0) {
        const char *feed = memchr(text.ptr, '\n', text.len);
        rv_str line = {text.ptr, feed ? (size_t)(feed - text.ptr) : text.len};
        if (rv_str_trim(line).len > 0) {
            size_t end = 0, n = 0;
            line.len -= line.ptr[line.len - 1] == '\r';
            while (end < line.len && (n < SUMMARY_CHARACTERS || rv_utf8_continues(line.ptr[end])))
                n += !rv_utf8_continues(line.ptr[end++]);
            rv_buf_add(out, line.ptr, end);
            return;
        }
        text = feed ? (rv_str){feed + 1, text.len - line.len - 1} : (rv_str){0};
    }
    rv_buf_puts(out, "No summary available");
}

static void put_section(const struct rv_plan_result *r, rv_str text, size_t limit, rv_buf *out)
{
    bool failed = has_failed(r->result);

    rv_buf_printf(out, "### Tool: %.*s [%s]\n\n**Summary**: ", RV_STR_ARG(r->tool), failed ? "FAILED" : "SUCCESS");
    put_summary(text, out);
    rv_buf_puts(out, "\n**Details** (truncated):\n");
    put_cut(text, limit, out);
    if (!failed)
        rv_buf_puts(out, "\nThis action is done: do not repeat it.");
}

/* One result, behind what separates it from the one before. */
static void put(enum rv_plan_result_format format, const struct rv_plan_result *r, size_t index, rv_str text,
                size_t limit, rv_buf *out)
{
    const char *status = has_failed(r->result) ? "FAILED" : "SUCCESS";

    if (format == RV_RESULT_SYNTHESIS) {
        put_section(r, text, limit, out);
        return;
    }
    if (format == RV_RESULT_MODEL)
        rv_buf_printf(out, "Tool '%.*s' [%s]: ", RV_STR_ARG(r->tool), status);
    else if (format == RV_RESULT_DISPLAY)
        rv_buf_printf(out, "%zu. %.*s [%s]: ", index + 1, RV_STR_ARG(r->tool), status);
    else
        rv_buf_printf(out, "**%.*s**:\n", RV_STR_ARG(r->tool));
    put_cut(text, limit, out);
}

void rv_plan_results_write(enum rv_plan_result_format format, const struct rv_plan_result *results, size_t n,
                           size_t limit, rv_buf *out)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    size_t n_put = 0;

    for (size_t i = 0; i < n; i++) {
        rv_buf_clear(&text);
        read_text(results[i].result, &text);
        if (text.rc == RV_E_NOMEM)
            out->rc = RV_E_NOMEM;
        if (format == RV_RESULT_FALLBACK && (text.len == 0 || has_failed(results[i].result)))
            continue;
        if (n_put++ > 0)
            rv_buf_puts(out, formats[format].between);
        put(format, &results[i], i, rv_buf_str(&text), limit > 0 ? limit : formats[format].limit, out);
    }
    if (format == RV_RESULT_FALLBACK && n_put == 0)
        rv_buf_puts(out, "Tool execution completed.");
    rv_buf_fini(&text);
}
