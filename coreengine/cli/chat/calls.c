/* What stands between the words of a chat: calls of tools and actions as lines of text, made safe for a terminal. */
#include "coreengine/cli/chat/chat.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_ARGUMENTS 100 /* bytes of a call's arguments on its line */
#define MAX_PAYLOAD   300

void rv_chat_write_line(rv_str text, rv_buf *b)
{
    rv_cli_write_preview(text, MAX_PAYLOAD, b);
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
    rv_cli_write_preview(tool, MAX_ARGUMENTS, b);
    rv_buf_putc(b, '(');
    rv_cli_write_preview(rv_buf_str(&text), MAX_ARGUMENTS, b);
    rv_buf_putc(b, ')');
    rv_buf_fini(&text);
    json_object_put(object);
}

static void write_question(json_object *payload, const char *indent, rv_buf *b)
{
    json_object *question = NULL, *options = rv_json_get_arr(payload, "options");

    json_object_object_get_ex(payload, "question", &question);
    rv_buf_printf(b, "%s? ", indent);
    rv_cli_write_preview(rv_json_str(question), MAX_PAYLOAD, b);
    for (size_t i = 0; options && i < json_object_array_length(options); i++) {
        rv_buf_printf(b, "\n%s  %zu. ", indent, i + 1);
        rv_cli_write_preview(rv_json_str(json_object_array_get_idx(options, i)), MAX_PAYLOAD, b);
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
    rv_cli_write_preview(rv_str_of(type), MAX_ARGUMENTS, b);
    if (payload && json_object_object_length(payload) > 0) {
        write_arguments(payload, &text);
        rv_buf_puts(b, ": ");
        rv_cli_write_preview(rv_buf_str(&text), MAX_PAYLOAD, b);
    }
    rv_buf_fini(&text);
}
