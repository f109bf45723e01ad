/* What the agent said, row by row: words that stand before calls of tools are a row in front of them, the rest of what
 * people were shown is the answer. Which words were shown is known from `said`, where they stand in their order and
 * apart from each other; a run of older rules has all of them in its answer. */
#include <string.h>

#include "coreengine/agent/rows_internal.h"

#define BLANK_LINE "\n\n" /* between the parts of what was said */

/* The words of a message of the model that asks for tools; empty: there are none. */
static rv_str words_before_calls(const rv_visit *v, size_t at)
{
    json_object *message = json_object_array_get_idx(v->model.messages, at), *part = NULL;

    if (!rv_json_get_arr(message, "tool_calls") || !json_object_object_get_ex(message, "content", &part))
        return (rv_str){NULL, 0};
    return rv_str_trim(rv_json_str(part));
}

static bool is_apart(rv_str visible, size_t at)
{
    return at == visible.len || (visible.len - at >= 2 && memcmp(visible.ptr + at, BLANK_LINE, 2) == 0);
}

/* Where the words stand as a part of their own; false: they were not shown. */
static bool find_part(rv_str visible, size_t from, rv_str words, size_t *at)
{
    for (size_t i = from; words.len > 0 && i + words.len <= visible.len; i++) {
        bool begins = i == 0 || rv_str_trim((rv_str){visible.ptr, i}).len == 0 ||
                      (i >= 2 && memcmp(visible.ptr + i - 2, BLANK_LINE, 2) == 0);
        if (begins && memcmp(visible.ptr + i, words.ptr, words.len) == 0) {
            size_t end = i + words.len;
            while (end < visible.len && !is_apart(visible, end) && rv_str_trim((rv_str){visible.ptr + end, 1}).len == 0)
                end++;
            if (is_apart(visible, end)) {
                *at = i;
                return true;
            }
        }
    }
    return false;
}

static bool tells_apart(const rv_visit *v)
{
    return v->shared->rules >= RV_RULES_2 && !v->agent->output.schema && v->model.messages;
}

void rv_row_words(struct rows *r, size_t turn)
{
    rv_str visible = rv_buf_str(&r->v->model.visible), words;
    size_t at = 0;

    if (!tells_apart(r->v) || !find_part(visible, r->visible_at, words = words_before_calls(r->v, turn), &at))
        return;
    r->visible_at = at + words.len;
    rv_row_begin(r, RV_MESSAGE_ASSISTANT, r->v->now_us);
    rv_jw_kv_str(&r->w, "content", words);
    rv_jw_key(&r->w, "metadata"); /* it is not the answer */
    rv_jw_obj(&r->w);
    rv_jw_kv_bool(&r->w, "before_calls", true);
    rv_jw_obj_end(&r->w);
    rv_row_end(r);
}

static void add_part(rv_buf *out, rv_str part)
{
    rv_str words = rv_str_trim(part);

    if (words.len == 0)
        return;
    if (out->len > 0)
        rv_buf_puts(out, BLANK_LINE);
    rv_buf_add_str(out, words);
}

void rv_rows_answer(const rv_visit *v, rv_buf *out)
{
    rv_str visible = rv_buf_str(&v->model.visible);
    size_t from = 0, n = v->model.messages ? json_object_array_length(v->model.messages) : 0;

    for (size_t i = 0; tells_apart(v) && i < n; i++) {
        rv_str words = words_before_calls(v, i);
        size_t at = 0;
        if (!find_part(visible, from, words, &at))
            continue;
        add_part(out, (rv_str){visible.ptr + from, at - from});
        from = at + words.len;
    }
    if (from == 0)
        rv_buf_add_str(out, visible);
    else
        add_part(out, (rv_str){visible.ptr + from, visible.len - from});
}
