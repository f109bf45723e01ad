/* echo: the smallest provider of a model, as a template and for tests. It repeats the last line of the prompt, word by
 * word. A last line that begins with "call:" or "fail:" makes it call a tool or fail; after a tool was called it
 * repeats the result. */
#include <json-c/json_tokener.h>
#include <reeve/capability.h>
#include <stdbool.h>
#include <string.h>

#include "capabilities/echo/echo_internal.h"

#define MAX_ANSWER (64u << 10) /* bytes: chosen, far below RV_CAP_MAX_REPLY, also with escapes */
#define MAX_WORDS  2000        /* where the request says nothing: as many as RV_LLM_DEFAULT_MAX_TOKENS has tokens */
#define MAX_NAME   64          /* bytes of a kind of failure: the longest that hosts know have some 20 */
#define MAX_DEPTH  256         /* levels of a request: as a host's RV_JSON_MAX_DEPTH; json-c alone stops at 32 */

static json_object *member(json_object *obj, const char *key)
{
    json_object *value = NULL;

    if (json_object_is_type(obj, json_type_object))
        json_object_object_get_ex(obj, key, &value);
    return value;
}

static struct text text_of(json_object *obj, const char *key)
{
    json_object *value = member(obj, key);

    if (!json_object_is_type(value, json_type_string))
        return (struct text){"", 0};
    return (struct text){json_object_get_string(value), (size_t)json_object_get_string_len(value)};
}

static bool is(struct text text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static size_t length_of(json_object *list)
{
    return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

/* --- words --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The next word with the blanks around it; rest begins after it. Its length is 0 at the end. */
static struct text next_word(struct text *rest)
{
    struct text word = {rest->ptr, 0};

    while (word.len < rest->len && is_blank(word.ptr[word.len]))
        word.len++;
    while (word.len < rest->len && !is_blank(word.ptr[word.len]))
        word.len++;
    while (word.len < rest->len && is_blank(word.ptr[word.len]))
        word.len++;
    rest->ptr += word.len;
    rest->len -= word.len;
    return word;
}

static int64_t words_in(struct text text)
{
    int64_t n = 0;

    while (next_word(&text).len > 0)
        n++;
    return n;
}

static struct text last_line(struct text text)
{
    size_t from;

    while (text.len > 0 && is_blank(text.ptr[text.len - 1]))
        text.len--;
    for (from = text.len; from > 0 && text.ptr[from - 1] != '\n'; from--)
        continue;
    return (struct text){text.ptr + from, text.len - from};
}

/* At most that many words and MAX_ANSWER bytes, and no half of a character. */
static struct text cut(struct text text, int64_t max_words)
{
    struct text rest = text;

    for (int64_t i = 0; i < max_words && next_word(&rest).len > 0; i++)
        continue;
    text.len -= rest.len;
    if (text.len <= MAX_ANSWER)
        return text;
    for (text.len = MAX_ANSWER; text.len > 0 && ((unsigned char)text.ptr[text.len] & 0xc0) == 0x80; text.len--)
        continue;
    return text;
}

/* After `word` at the beginning of text, without blanks; its length is 0 when it begins with something else. */
static struct text after(struct text text, const char *word)
{
    size_t len = strlen(word);

    if (text.len < len || memcmp(text.ptr, word, len) != 0)
        return (struct text){"", 0};
    for (text.ptr += len, text.len -= len; text.len > 0 && is_blank(text.ptr[0]); text.ptr++)
        text.len--;
    return text;
}

static struct text first_word(struct text text)
{
    size_t len = 0;

    while (len < text.len && !is_blank(text.ptr[len]))
        len++;
    return (struct text){text.ptr, len};
}

/* --- the request --- */

static int64_t words_of_messages(json_object *list)
{
    int64_t n = 0;

    for (size_t i = 0; i < length_of(list); i++)
        n += words_in(text_of(json_object_array_get_idx(list, i), "content"));
    return n;
}

static int64_t words_of_request(json_object *request)
{
    return words_in(text_of(request, "system")) + words_of_messages(member(request, "examples")) +
           words_of_messages(member(request, "history")) + words_in(text_of(request, "prompt")) +
           words_of_messages(member(request, "turns"));
}

/* --- the answer --- */

/* Takes value on every path; false: out of memory. */
static bool add(json_object *obj, const char *key, json_object *value)
{
    if (obj && value && json_object_object_add(obj, key, value) == 0)
        return true;
    json_object_put(value);
    return false;
}

static bool add_text(json_object *obj, const char *key, struct text text)
{
    return add(obj, key, json_object_new_string_len(text.ptr, (int)text.len));
}

static bool add_usage(json_object *obj, json_object *request, int64_t n_words)
{
    json_object *usage = json_object_new_object();
    bool good = add(usage, "input_tokens", json_object_new_int64(words_of_request(request))) &&
                add(usage, "output_tokens", json_object_new_int64(n_words));

    return add(obj, "usage", usage) && good;
}

/* Hand over the answer, or say that it could not be made; obj is taken. */
static int reply(struct rv_cap_call *call, json_object *obj, bool good)
{
    const char *json = good ? json_object_to_json_string_ext(obj, JSON_C_TO_STRING_NOSLASHESCAPE) : NULL;
    int rc = json ? call->reply(call, json) : call->fail(call, "overloaded", "out of memory");

    json_object_put(obj);
    return rc;
}

static int emit(struct rv_cap_call *call, struct text word)
{
    json_object *piece = json_object_new_object();
    int rc = 1;

    if (add_text(piece, "text", word))
        rc = call->emit(call, json_object_to_json_string_ext(piece, JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(piece);
    return rc;
}

static int say(struct rv_cap_call *call, json_object *request, struct text text)
{
    json_object *max = member(member(request, "options"), "num_predict"), *obj;
    struct text shown = cut(text, max ? json_object_get_int64(max) : MAX_WORDS), rest = shown, word;
    struct text finish = shown.len < text.len ? (struct text){"length", 6} : (struct text){"stop", 4};

    while ((word = next_word(&rest)).len > 0)
        if (emit(call, word) != 0)
            return call->fail(call, "timeout", "the caller does not wait for the rest");
    obj = json_object_new_object();
    return reply(call, obj,
                 add_text(obj, "text", shown) && add_text(obj, "finish_reason", finish) &&
                     add_usage(obj, request, words_in(shown)));
}

static int call_tool(struct rv_cap_call *call, json_object *request, struct text name, struct text arguments)
{
    json_object *obj = json_object_new_object(), *list = json_object_new_array(), *one = json_object_new_object();
    bool good =
        add_text(one, "name", name) && add_text(one, "arguments", arguments.len ? arguments : (struct text){"{}", 2});

    if (!list || !one || json_object_array_add(list, one) < 0) {
        json_object_put(one);
        good = false;
    }
    good = add(obj, "tool_calls", list) && good;
    return reply(call, obj, good && add_usage(obj, request, 1 + words_in(arguments)));
}

/* Structured output: as a text, or by the tool that hands it over. */
static int answer_in_shape(struct rv_cap_call *call, json_object *request, json_object *output, struct text text)
{
    json_object *value = simplest(member(output, "schema"), text);
    const char *json = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    struct text via = text_of(output, "via"), shape = {json ? json : "", json ? strlen(json) : 0};
    int rc;

    if (!json)
        rc = call->fail(call, "overloaded", "out of memory");
    else if (is(via, "tool"))
        rc = call_tool(call, request, (struct text){"final_result", 12}, shape);
    else
        rc = say(call, request, shape);
    json_object_put(value);
    return rc;
}

static int fail_as_asked(struct rv_cap_call *call, struct text what)
{
    struct text kind = first_word(what), why = after(what, "");
    char type[MAX_NAME + 1];

    if (kind.len > MAX_NAME)
        kind.len = MAX_NAME;
    memcpy(type, kind.ptr, kind.len);
    type[kind.len] = '\0';
    why.ptr += kind.len;
    why.len -= kind.len;
    why = after(why, "");
    return rv_cap_failf(call, type, "%.*s", (int)(why.len < 512 ? why.len : 512), why.ptr);
}

static int answer(struct rv_cap_call *call, json_object *request)
{
    json_object *turns = member(request, "turns"), *output = member(request, "output");
    json_object *last = length_of(turns) ? json_object_array_get_idx(turns, length_of(turns) - 1) : NULL;
    struct text line = last ? text_of(last, "content") : last_line(text_of(request, "prompt"));
    struct text tool = last ? (struct text){"", 0} : after(line, "call:");
    struct text fault = last ? (struct text){"", 0} : after(line, "fail:");

    if (fault.len > 0)
        return fail_as_asked(call, fault);
    if (tool.len > 0 && length_of(member(request, "tools")) > 0 && !is(text_of(request, "tool_choice"), "none")) {
        struct text name = first_word(tool), arguments = {tool.ptr + name.len, tool.len - name.len};
        return call_tool(call, request, name, after(arguments, ""));
    }
    if (output)
        return answer_in_shape(call, request, output, line);
    return say(call, request, line);
}

/* The host wrote it: it is JSON, but schemas in it may be deeper than json-c expects. */
static json_object *read_request(const char *args)
{
    json_tokener *tokener = json_tokener_new_ex(MAX_DEPTH);
    json_object *request = tokener ? json_tokener_parse_ex(tokener, args, -1) : NULL;

    if (tokener)
        json_tokener_free(tokener);
    return request;
}

static int model(void *self, struct rv_cap_call *call)
{
    json_object *request = read_request(call->args);
    int rc = request ? answer(call, request) : call->fail(call, "bad_request", "the request cannot be read");

    (void)self;
    json_object_put(request);
    return rc;
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_PROVIDER, "model", RV_CAP_JSON({"description" : "Repeat the last line of the prompt."}), model},
    RV_CAP_END,
};

RV_CAPABILITY(.name = "echo", .version = "1.0.0", .description = "A model that repeats what it is told.",
              .entries = entries)
