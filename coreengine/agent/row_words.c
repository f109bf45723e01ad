/* What the agent said, row by row: words that stand before calls of tools are a row in front of them, the rest of what
 * people were shown is the answer. Which words were shown is known from `said`, where they stand in their order and
 * apart from each other; a run of older rules has all of them in its answer. */
#include <string.h>

#include "coreengine/agent/rows_internal.h"

#define BLANK_LINE "\n\n" /* between the parts of what was said */

/* The words of a message of the model that asks for tools; empty: there are none. */
static rv_str words_before_calls(const rv_visit *v, size_t at)
{
    json_object *message = json_object_array_get_idx(v->talk.turns, at), *part = NULL;

    if (!rv_json_get_arr(message, "tool_calls") || !json_object_object_get_ex(message, "content", &part))
        return (rv_str){NULL, 0};
    return rv_str_trim(rv_json_str(part));
}

static bool is_apart(rv_str said, size_t at)
{
    return at == said.len || (said.len - at >= 2 && memcmp(said.ptr + at, BLANK_LINE, 2) == 0);
}

/* Where the words stand as a part of their own; false: they were not shown. */
static bool find_part(rv_str said, size_t from, rv_str words, size_t *at)
{
    for (size_t i = from; words.len > 0 && i + words.len <= said.len; i++) {
        bool begins = i == 0 || rv_str_trim((rv_str){said.ptr, i}).len == 0 ||
                      (i >= 2 && memcmp(said.ptr + i - 2, BLANK_LINE, 2) == 0);
        if (begins && memcmp(said.ptr + i, words.ptr, words.len) == 0) {
            size_t end = i + words.len;
            while (end < said.len && !is_apart(said, end) && rv_str_trim((rv_str){said.ptr + end, 1}).len == 0)
                end++;
            if (is_apart(said, end)) {
                *at = i;
                return true;
            }
        }
    }
    return false;
}

static bool tells_apart(const rv_visit *v)
{
    return v->shared->rules >= RV_RULES_2 && !v->agent->output.schema && v->talk.turns;
}

void rv_row_words(struct rows *r, size_t turn)
{
    rv_str said = rv_buf_str(&r->v->talk.said), words;
    size_t at = 0;

    if (!tells_apart(r->v) || !find_part(said, r->said_at, words = words_before_calls(r->v, turn), &at))
        return;
    r->said_at = at + words.len;
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
    rv_str said = rv_buf_str(&v->talk.said);
    size_t from = 0, n = v->talk.turns ? json_object_array_length(v->talk.turns) : 0;

    for (size_t i = 0; tells_apart(v) && i < n; i++) {
        rv_str words = words_before_calls(v, i);
        size_t at = 0;
        if (!find_part(said, from, words, &at))
            continue;
        add_part(out, (rv_str){said.ptr + from, at - from});
        from = at + words.len;
    }
    if (from == 0)
        rv_buf_add_str(out, said);
    else
        add_part(out, (rv_str){said.ptr + from, said.len - from});
}
