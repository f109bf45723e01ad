/* What stands between the words of a chat: calls of tools, their results and actions as lines of text, made safe for a
 * terminal and without values that have the name of a secret. */
#include "coreengine/base/base.h"
#include "coreengine/cli/chat/chat_internal.h"
#include "coreengine/cli/show/width_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_ARGUMENTS 100  /* bytes of a call's arguments on its line: it stays one line of a wide terminal */
#define MAX_PAYLOAD   300  /* bytes of arguments or a question in a line: three lines of a terminal; the rest is cut */
#define MAX_RESULT    2000 /* bytes of a result that are looked at: its two lines of a terminal are far shorter */
#define RESULT_LINES  2    /* of a tool's result that are shown */
#define MIN_COLUMNS   16   /* of a line of a result, however narrow the terminal is */
#define HIDDEN        "[redacted]"

/* --- secrets --- */

int cli_chat_hide(json_object *tree)
{
    int rc = 0;

    if (json_object_is_type(tree, json_type_array))
        for (size_t i = 0; rc == 0 && i < json_object_array_length(tree); i++)
            rc = cli_chat_hide(json_object_array_get_idx(tree, i));
    if (!json_object_is_type(tree, json_type_object))
        return rc;
    json_object_object_foreach (tree, key, value) {
        if (rc < 0)
            return rc;
        if (value && rv_is_secret_name(rv_str_of(key))) /* the key stays there: the walk goes on */
            rc = rv_json_set_text(tree, key, HIDDEN,
                                  RV_CODE_ONLY("it fails without memory only: the call has no arguments then"));
        else
            rc = cli_chat_hide(value);
    }
    return rc;
}

/* JSON that is cut and cannot be parsed: what follows the name of a secret is left out. */
static void write_cut(rv_str text, rv_buf *b)
{
    for (size_t i = 0; i < text.len; i++) {
        size_t end = i + 1;
        if (text.ptr[i] != '"')
            continue;
        while (end < text.len && text.ptr[end] != '"')
            end += text.ptr[end] == '\\' ? 2 : 1;
        if (end + 1 < text.len && text.ptr[end + 1] == ':' &&
            rv_is_secret_name((rv_str){text.ptr + i + 1, end - i - 1})) {
            rv_buf_add_str(b, (rv_str){text.ptr, end + 2});
            rv_buf_puts(b, HIDDEN "...");
            return;
        }
        i = end;
    }
    rv_buf_add_str(b, text);
}

/* --- calls --- */

void cli_chat_write_line(rv_str text, rv_buf *b)
{
    cli_write_preview(text, MAX_PAYLOAD, b);
}

/* {"query": "x", "n": 2} as people write it: query: "x", n: 2 */
static void write_arguments(json_object *object, rv_buf *b)
{
    bool any = false;

    json_object_object_foreach (object, key, value) {
        rv_buf_printf(b, "%s%s: ", any ? ", " : "", key);
        rv_json_write(value, b);
        any = true;
    }
}

void cli_chat_write_call(rv_str tool, rv_str arguments, rv_buf *b)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *object = NULL;

    if (rv_json_parse(arguments, NULL, &object,
                      RV_CODE_ONLY("arguments that are not JSON are shown as text, with their secrets left out")) ==
            0 &&
        json_object_is_type(object, json_type_object))
        write_arguments(object, &text);
    else
        write_cut(arguments, &text);
    cli_write_preview(tool, MAX_ARGUMENTS, b);
    rv_buf_putc(b, '(');
    cli_write_preview(rv_buf_str(&text), MAX_ARGUMENTS, b);
    rv_buf_putc(b, ')');
    rv_buf_fini(&text);
    json_object_put(object);
}

/* --- what came of a call --- */

/* The part of text that a line of so many columns has: up to a blank where one is near its end. */
static rv_str line_of(rv_str text, size_t columns)
{
    rv_str fits = cli_fitting(text, columns);
    size_t n = fits.len;

    if (n == text.len)
        return fits;
    while (n > fits.len / 2 && fits.ptr[n] != ' ')
        n--;
    return n > fits.len / 2 ? (rv_str){fits.ptr, n} : fits;
}

void cli_chat_write_lines(rv_str text, size_t indent, size_t columns, rv_buf *b)
{
    size_t width = columns > indent + MIN_COLUMNS ? columns - indent : MIN_COLUMNS;
    rv_buf safe = RV_BUF_INIT(4 * MAX_RESULT);

    cli_write_preview(text, MAX_RESULT, &safe);
    rv_str rest = rv_str_trim(rv_buf_str(&safe));
    for (int i = 0; i < RESULT_LINES && rest.len > 0; i++) {
        rv_str line = line_of(rest, width);
        bool is_cut = i == RESULT_LINES - 1 && line.len < rest.len;
        if (is_cut)
            line = cli_fitting(rest, width - 3);
        rv_buf_printf(b, "\n%*s%.*s%s", (int)indent, "", RV_STR_ARG(line), is_cut ? "..." : "");
        rest = rv_str_trim((rv_str){rest.ptr + line.len, rest.len - line.len});
    }
    rv_buf_fini(&safe);
}

void cli_chat_write_result(json_object *event, size_t indent, size_t columns, rv_buf *b)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *result = NULL;

    if (!json_object_object_get_ex(event, "result", &result))
        write_cut(rv_str_of(rv_json_text_or(event, "result_preview", "")), &text);
    else if (cli_chat_hide(result) < 0)
        rv_buf_clear(&text);
    else if (json_object_is_type(result, json_type_object))
        write_arguments(result, &text);
    else if (json_object_is_type(result, json_type_string))
        rv_buf_add_str(&text, rv_json_str(result));
    else if (result && !(json_object_is_type(result, json_type_array) && json_object_array_length(result) == 0))
        rv_json_write(result, &text);
    cli_chat_write_lines(rv_buf_str(&text), indent, columns, b);
    rv_buf_fini(&text);
}

/* --- actions --- */

static void write_question(json_object *payload, const char *indent, rv_buf *b)
{
    json_object *question = NULL, *options = rv_json_get_arr(payload, "options");

    json_object_object_get_ex(payload, "question", &question);
    rv_buf_printf(b, "%s? ", indent);
    cli_write_preview(rv_json_str(question), MAX_PAYLOAD, b);
    for (size_t i = 0; options && i < json_object_array_length(options); i++) {
        rv_buf_printf(b, "\n%s  %zu. ", indent, i + 1);
        cli_write_preview(rv_json_str(json_object_array_get_idx(options, i)), MAX_PAYLOAD, b);
    }
}

void cli_chat_write_action(json_object *event, const char *indent, rv_buf *b)
{
    json_object *payload = rv_json_get_obj(event, "payload");
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    const char *type = rv_json_text_or(event, "action_type", "");

    if (payload && strcmp(type, "elicit") == 0) {
        write_question(payload, indent, b);
        return;
    }
    rv_buf_printf(b, "%s* ", indent);
    cli_write_preview(rv_str_of(type), MAX_ARGUMENTS, b);
    if (payload && json_object_object_length(payload) > 0) {
        write_arguments(payload, &text);
        rv_buf_puts(b, ": ");
        cli_write_preview(rv_buf_str(&text), MAX_PAYLOAD, b);
    }
    rv_buf_fini(&text);
}
