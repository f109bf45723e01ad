/* What stands between the words of a chat: calls of tools and actions as lines of text, made safe for a terminal. */
#include "coreengine/cli/chat.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_ARGUMENTS 100 /* bytes of a call's arguments on its line */
#define MAX_PAYLOAD   300

/* Bytes of a character at i that a terminal or a reader would be led astray by: controls (C0 but line feed and tab,
 * DEL, C1) and those that turn the direction of text around. 0: an ordinary one. */
static size_t unsafe(rv_str text, size_t i)
{
    const unsigned char *c = (const unsigned char *)text.ptr + i;
    size_t left = text.len - i;

    if (c[0] < ' ')
        return c[0] != '\n' && c[0] != '\t';
    if (c[0] == 0x7f)
        return 1;
    if (c[0] == 0xc2 && left > 1 && c[1] >= 0x80 && c[1] < 0xa0)
        return 2;
    if (c[0] != 0xe2 || left < 3)
        return 0;
    bool turns = (c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) || (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9);
    return turns ? 3 : 0;
}

void rv_chat_write_safe(rv_str text, rv_buf *b)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = unsafe(text, i);
        if (n == 0)
            rv_buf_putc(b, text.ptr[i]);
        else if (text.ptr[i] != '\r' || i + 1 == text.len || text.ptr[i + 1] != '\n')
            rv_buf_putc(b, ' ');
        i += n ? n : 1;
    }
}

/* The same on one line, cut after max bytes. */
static void write_line(rv_str text, size_t max, rv_buf *b)
{
    rv_str head = rv_utf8_cut(text, max);
    size_t from = b->len;

    rv_chat_write_safe(head, b);
    for (size_t i = from; i < b->len; i++)
        if (b->ptr[i] == '\n' || b->ptr[i] == '\t')
            b->ptr[i] = ' ';
    if (head.len < text.len)
        rv_buf_puts(b, "...");
}

void rv_chat_write_line(rv_str text, rv_buf *b)
{
    write_line(text, MAX_PAYLOAD, b);
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

void rv_chat_write_call(rv_str tool, rv_str arguments, rv_buf *b)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *object = NULL;

    if (rv_json_parse(arguments, NULL, &object, NULL) == 0 && json_object_is_type(object, json_type_object))
        write_arguments(object, &text);
    else
        rv_buf_add_str(&text, arguments);
    write_line(tool, MAX_ARGUMENTS, b);
    rv_buf_putc(b, '(');
    write_line(rv_buf_str(&text), MAX_ARGUMENTS, b);
    rv_buf_putc(b, ')');
    rv_buf_fini(&text);
    json_object_put(object);
}

static void write_question(json_object *payload, const char *indent, rv_buf *b)
{
    json_object *question = NULL, *options = rv_json_get_arr(payload, "options");

    json_object_object_get_ex(payload, "question", &question);
    rv_buf_printf(b, "%s? ", indent);
    write_line(rv_json_str(question), MAX_PAYLOAD, b);
    for (size_t i = 0; options && i < json_object_array_length(options); i++) {
        rv_buf_printf(b, "\n%s  %zu. ", indent, i + 1);
        write_line(rv_json_str(json_object_array_get_idx(options, i)), MAX_PAYLOAD, b);
    }
}

void rv_chat_write_action(json_object *event, const char *indent, rv_buf *b)
{
    json_object *payload = rv_json_get_obj(event, "payload");
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    const char *type = "";

    RV_IGNORE(!rv_json_get_text(event, "action_type", &type), "every action has one");
    if (payload && strcmp(type, "elicit") == 0) {
        write_question(payload, indent, b);
        return;
    }
    rv_buf_printf(b, "%s* ", indent);
    write_line(rv_str_of(type), MAX_ARGUMENTS, b);
    if (payload && json_object_object_length(payload) > 0) {
        write_arguments(payload, &text);
        rv_buf_puts(b, ": ");
        write_line(rv_buf_str(&text), MAX_PAYLOAD, b);
    }
    rv_buf_fini(&text);
}
