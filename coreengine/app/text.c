/* Amounts and texts as people read them: money, large counts; texts in YAML, as they are where YAML can have them so,
 * else quoted. */
#include "coreengine/app/rows.h"
#include "coreengine/tools/script/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MICRO          1000000             /* millionths of a dollar */
#define MAX_TEXT_BYTES ((size_t)256 << 20) /* of a state as JSON: four times RV_STATE_MAX_BYTES, for its escapes */

const char *rv_app_format_money(int64_t micro_usd, char out[RV_APP_MAX_MONEY])
{
    int n;

    if (micro_usd == INT64_MAX)
        return "more than can be counted";
    n = snprintf(out, RV_APP_MAX_MONEY, "$%" PRId64 ".%06d", micro_usd / MICRO, (int)(micro_usd % MICRO));
    while (n > 3 && out[n - 1] == '0' && out[n - 4] != '.')
        out[--n] = 0;
    while (n > 4 && out[n - 1] == '0' && out[n - 3] != '.')
        out[--n] = 0;
    return out;
}

void rv_app_write_count(rv_buf *b, int64_t n)
{
    char digits[32];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRId64, n);

    for (size_t i = 0; i < len; i++)
        rv_buf_printf(b, "%s%c", i > 0 && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

/* --- YAML --- */

/* A block has its text as it stands: no characters that YAML does not take or reads as line ends, and neither blanks
 * nor empty lines where they would be part of the indentation. */
static bool can_be_block(rv_str text)
{
    rv_buf escaped = RV_BUF_INIT(MAX_TEXT_BYTES);

    if (!text.len || !memchr(text.ptr, '\n', text.len) || strchr(" \t\n", text.ptr[0]))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' && text.ptr[i] != '\n' && text.ptr[i] != '\t')
            return false;
    rv_script_add_json(text, &escaped);
    bool as_it_is = escaped.len == text.len; /* nothing had to be escaped */
    rv_buf_fini(&escaped);
    return as_it_is;
}

static void write_block(rv_str text, int depth, rv_buf *b)
{
    size_t n_ends = 0;

    while (n_ends < text.len && text.ptr[text.len - 1 - n_ends] == '\n')
        n_ends++;
    rv_buf_puts(b, n_ends == 0 ? "|-\n" : n_ends == 1 ? "|\n" : "|+\n");
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t n = end ? (size_t)(end - text.ptr) - at : text.len - at;
        for (int i = 0; n > 0 && i < depth + 1; i++)
            rv_buf_puts(b, "  ");
        rv_buf_add(b, text.ptr + at, n);
        rv_buf_putc(b, '\n');
        at += n + 1;
    }
}

/* As a line; or what kept json from being written. */
static void add_json(const rv_buf *json, rv_buf *b)
{
    if (json->rc < 0) {
        rv_buf_add_buf(b, json);
        return;
    }
    rv_script_add_json(rv_buf_str(json), b);
    rv_buf_putc(b, '\n');
}

void rv_app_write_yaml(rv_str text, int depth, rv_buf *b)
{
    rv_buf json = RV_BUF_INIT(MAX_TEXT_BYTES);
    rv_jw w = rv_jw_on(&json);

    if (can_be_block(text)) {
        write_block(text, depth, b);
        return;
    }
    rv_jw_str(&w, text);
    add_json(&json, b);
    rv_buf_fini(&json);
}

void rv_app_yaml_write(json_object *value, rv_buf *b)
{
    rv_buf json = RV_BUF_INIT(MAX_TEXT_BYTES);

    rv_json_write(value, &json);
    add_json(&json, b);
    rv_buf_fini(&json);
}
