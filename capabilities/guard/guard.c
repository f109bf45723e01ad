/* guard: policies and hooks that keep secrets and unwanted words where they belong. Two policies look at the output of
 * a stage; two hooks look at each call of a model or a tool. */
#include "capabilities/guard/guard_internal.h"

#include <reeve/capability.h>

#include <json-c/json.h>
#include <json-c/linkhash.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_DEPTH 512 /* nesting of what the host gives: 256 levels of a value, inside an envelope */

struct guard {
    json_object *words; /* array of strings that hooks block; owned; NULL: none */
};

#define MAX_SHOWN 100 /* bytes of a word in the reason: it stands in one line with the rest */

static bool is_text(const char *at, const char *text, size_t len)
{
    return rv_cap_type(at) == '"' && rv_cap_is(rv_cap_space(at), text, len);
}

/* Does the tree have all of the text? json-c leaves out what it has no memory for, without a word. */
static bool is_whole(const char *at, json_object *v)
{
    struct rv_cap_iter i = rv_cap_each(at);
    size_t n = 0;

    if (!v || i.type == 'n')
        return !v && i.type == 'n';
    if (i.type == '"')
        return is_text(at, json_object_get_string(v), (size_t)json_object_get_string_len(v));
    if (i.type == '[') {
        while (rv_cap_next(&i))
            if (n >= json_object_array_length(v) || !is_whole(i.value, json_object_array_get_idx(v, n++)))
                return false;
        return n == json_object_array_length(v);
    }
    if (i.type == '{') {
        json_object_object_foreach (v, key, value)
            if (!rv_cap_next(&i) || !is_text(i.key, key, strlen(key)) || !is_whole(i.value, value))
                return false;
        return !rv_cap_next(&i);
    }
    return true;
}

/* NULL: no memory, or no JSON. The caller's. */
static json_object *json_of(const char *text)
{
    json_tokener *tokener = json_tokener_new_ex(MAX_DEPTH);
    json_object *value = tokener ? json_tokener_parse_ex(tokener, text, -1) : NULL;

    if (tokener)
        json_tokener_free(tokener);
    if (value && is_whole(text, value))
        return value;
    json_object_put(value);
    return NULL;
}

/* --- policies: what they cannot read they do not allow --- */

#define UNREADABLE "the output cannot be read"

/* The arguments, with the output in them; NULL: there is none that can be read. The caller's. */
static json_object *read_output(const struct rv_cap_call *call, json_object **output)
{
    json_object *args = json_of(call->args);

    if (json_object_is_type(args, json_type_object) && json_object_object_get_ex(args, "output", output))
        return args;
    json_object_put(args);
    return NULL;
}

static int no_secrets(void *self, struct rv_cap_call *call)
{
    json_object *output, *args = read_output(call, &output);
    const char *found = args ? guard_find_secret(output) : NULL;
    char reply[160];
    int rc;

    (void)self;
    if (!args) {
        rc = call->fail(call, "ExecutionError", UNREADABLE);
    } else if (found) {
        snprintf(reply, sizeof reply, "{\"decision\": \"deny\", \"reason\": \"the output holds a secret: %s\"}", found);
        rc = call->reply(call, reply);
    } else {
        rc = call->reply(call, "{\"decision\": \"allow\"}");
    }
    json_object_put(args);
    return rc;
}

static int confirm_commands(void *self, struct rv_cap_call *call)
{
    json_object *output, *args = read_output(call, &output);
    int asks =
        args && json_object_is_type(output, json_type_object) && json_object_object_get_ex(output, "command", NULL);

    (void)self;
    if (!args)
        return call->fail(call, "ExecutionError", UNREADABLE);
    json_object_put(args);
    return call->reply(call,
                       asks ? "{\"decision\": \"confirm\", \"message\": \"the output holds a command: may it pass?\"}"
                            : "{\"decision\": \"allow\"}");
}

/* --- hooks --- */

/* What each hook is shown, and which member it may change. Keys of a request: what it tells the model. */
static const struct place {
    const char *hook, *member;
} places[] = {
    {"before_model", "request"}, {"after_model", "reply"}, {"before_tool", "arguments"},
    {"after_tool", "result"},    {"after_tool", "error"}, /* which only a block can change */
};
static const char *const told_keys[] = {"system", "instructions", "examples", "history", "prompt", "turns"};

/* The part of the call that the hook looks at, or NULL; the tree is the caller's. */
static const struct place *place_of(json_object *args, json_object **shown)
{
    json_object *hook = NULL;

    *shown = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (json_object_object_get_ex(args, "hook", &hook) &&
            strcmp(json_object_get_string(hook), places[i].hook) == 0 &&
            json_object_object_get_ex(args, places[i].member, shown))
            return &places[i];
    return NULL;
}

void guard_put(json_object *obj, const char *key, json_object *value, int *failed)
{
    if (obj && value && json_object_object_add(obj, key, value) == 0)
        return;
    json_object_put(value);
    *failed = 1;
}

/* The call by which a model hands over the output of a stage, or NULL; borrowed. */
static json_object *output_call(json_object *calls)
{
    json_object *name = NULL;

    for (size_t i = 0; json_object_is_type(calls, json_type_array) && i < json_object_array_length(calls); i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        if (json_object_object_get_ex(call, "name", &name) && strcmp(json_object_get_string(name), "final_result") == 0)
            return call;
    }
    return NULL;
}

/* Of a text that gave no value. json-c has an error for it since 0.17, the one behind the last of 0.16, which tells of
 * success. */
static bool is_short_of_memory(json_tokener *tokener)
{
    enum json_tokener_error error = json_tokener_get_error(tokener);

    return error == json_tokener_success || error > json_tokener_error_size;
}

/* The output that a reply hands over by a call, the caller's; NULL: none. Arguments that are not JSON are none: the
 * engine takes no output from them. */
static json_object *output_of(json_object *reply, int *failed)
{
    json_object *calls = NULL, *arguments = NULL, *output = NULL;

    if (!json_object_object_get_ex(reply, "tool_calls", &calls) ||
        !json_object_object_get_ex(output_call(calls), "arguments", &arguments))
        return NULL;
    if (!json_object_is_type(arguments, json_type_string))
        return json_object_get(arguments);
    const char *brace = strchr(json_object_get_string(arguments), '{');
    json_tokener *tokener = brace ? json_tokener_new_ex(MAX_DEPTH) : NULL;
    if (tokener) {
        json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
        output = json_tokener_parse_ex(tokener, brace, -1);
    }
    *failed |= brace && (!tokener || (!output && is_short_of_memory(tokener)) || (output && !is_whole(brace, output)));
    if (tokener)
        json_tokener_free(tokener);
    return output;
}

/* What of a request or a reply may be given back: the rest is the engine's. */
static json_object *changeable(const struct place *place, json_object *shown, int *failed)
{
    json_object *part = NULL;

    if (place != &places[0] && place != &places[1])
        return json_object_get(shown);
    json_object *kept = json_object_new_object();
    if (!kept)
        *failed = 1;
    if (place == &places[1] && json_object_object_get_ex(shown, "text", &part) && part)
        guard_put(kept, "text", json_object_get(part), failed);
    if (place == &places[1] && (part = output_of(shown, failed)))
        guard_put(kept, "output", part, failed);
    for (size_t i = 0; place == &places[0] && i < sizeof told_keys / sizeof told_keys[0]; i++)
        if (json_object_object_get_ex(shown, told_keys[i], &part) && part)
            guard_put(kept, told_keys[i], json_object_get(part), failed);
    return kept;
}

/* A hook gives back the text of a reply or its output, not both: the output where a secret is in it. */
static void choose_part(json_object *reply)
{
    json_object *output = NULL;

    if (json_object_object_get_ex(reply, "output", &output))
        json_object_object_del(reply, guard_find_secret(output) ? "text" : "output");
}

/* What the model gets in place of a result, or NULL; borrowed. */
static json_object *content_of(const struct place *place, json_object *args)
{
    json_object *content = NULL;

    return place == &places[3] && json_object_object_get_ex(args, "content", &content) ? content : NULL;
}

/* Where the model is told something else than the result, both are given back, as the tool itself would. Takes
 * result. */
static json_object *with_content(json_object *result, json_object *content, int *failed)
{
    if (!content || (!guard_find_secret(content) && !guard_find_secret(result)))
        return result;
    json_object *whole = json_object_new_object(), *data = result;
    if (!json_object_is_type(result, json_type_object)) {
        data = json_object_new_object();
        if (result)
            guard_put(data, "value", result, failed);
    }
    guard_put(whole, "status", json_object_new_string("success"), failed);
    guard_put(whole, "data", data, failed);
    guard_put(whole, "content", json_object_get(content), failed);
    *failed |= !whole;
    return whole;
}

/* What a tool says went wrong, without its secrets, is why nothing else is told. */
static void block_error(json_object *reply, json_object *error, int *failed)
{
    json_object *message = NULL;
    bool has = json_object_object_get_ex(error, "message", &message) && json_object_get_string_len(message) > 0;

    guard_put(reply, "action", json_object_new_string("block"), failed);
    guard_put(reply, "reason", has ? json_object_get(message) : json_object_new_string("its error has a secret"),
              failed);
}

/* The attachments of a request, or NULL; borrowed. */
static json_object *attachments_of(const struct place *place, json_object *shown)
{
    json_object *list = NULL;

    return place == &places[0] && json_object_object_get_ex(shown, "attachments", &list) ? list : NULL;
}

static void redact_attachments(json_object *request, json_object *list, int *changed, int *failed)
{
    int here = 0;
    json_object *made = guard_redact_attachments(list, &here, failed);

    if (here > 0)
        guard_put(request, "attachments", made, failed);
    else
        json_object_put(made);
    *changed += here;
}

static int redact_secrets(void *self, struct rv_cap_call *call)
{
    json_object *args = json_of(call->args), *shown = NULL, *reply = NULL, *kept = NULL, *whole;
    const struct place *place = place_of(args, &shown);
    int changed = 0, failed = 0, rc;

    (void)self;
    if (place) {
        kept = with_content(changeable(place, shown, &failed), content_of(place, args), &failed);
        if (place == &places[1])
            choose_part(kept);
        if ((whole = guard_redact(kept, &changed, &failed))) {
            json_object_put(kept);
            kept = whole;
        }
        if (attachments_of(place, shown))
            redact_attachments(kept, attachments_of(place, shown), &changed, &failed);
    }
    if (changed && (reply = json_object_new_object()) && place == &places[4]) {
        block_error(reply, kept, &failed);
    } else if (reply) {
        guard_put(reply, "action", json_object_new_string("replace"), &failed);
        guard_put(reply, place->member, json_object_get(kept), &failed);
    }
    if (failed || !args || (changed && !reply))
        rc = call->fail(call, "ExecutionError", args ? "out of memory" : "the call cannot be read");
    else
        rc = call->reply(call, reply ? json_object_to_json_string_ext(reply, JSON_C_TO_STRING_NOSLASHESCAPE)
                                     : "{\"action\": \"continue\"}");
    json_object_put(reply);
    json_object_put(kept);
    json_object_put(args);
    return rc;
}

/* The next character of a text, in UTF-8, and how many bytes of the text it takes up: a byte, or one escape or two. */
static size_t read_char(const char *c, const char *end, char out[4], size_t *n)
{
    int code = guard_read_escape(c, end), low = code >= 0xd800 && code < 0xdc00 ? guard_read_escape(c + 6, end) : -1;
    bool is_pair = low >= 0xdc00 && low < 0xe000;
    size_t taken = is_pair ? 12 : code >= 0 ? 6 : 1;

    if (is_pair)
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    *n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    out[0] = *c;
    if (code >= 0 && code < 0x80)
        out[0] = (char)code;
    for (size_t i = *n; *n > 1 && i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    if (*n > 1)
        out[0] = (char)((0xf0 << (4 - *n)) | code);
    return taken;
}

/* Does the word begin there, in a text with escapes of JSON? */
static bool is_word_escaped(const char *c, const char *end, const char *word)
{
    while (*word) {
        char got[4];
        size_t n = 0;
        if (c >= end)
            return false;
        c += read_char(c, end, got, &n);
        if (strncasecmp(got, word, n) != 0)
            return false;
        word += n;
    }
    return true;
}

/* The first of the words that stands in a text, whatever the case of its ASCII letters, or NULL. A NUL ends no text. A
 * text may itself be JSON, as many servers give it, with escapes for all but ASCII. */
static const char *word_in(const struct guard *g, const char *text, size_t len)
{
    bool has_escapes = memmem(text, len, "\\u", 2) != NULL;

    for (size_t i = 0; i < json_object_array_length(g->words); i++) {
        const char *word = json_object_get_string(json_object_array_get_idx(g->words, i));
        size_t n = strlen(word);
        for (size_t at = 0; at + n <= len; at++)
            if (strncasecmp(text + at, word, n) == 0 || (has_escapes && is_word_escaped(text + at, text + len, word)))
                return word;
    }
    return NULL;
}

/* The first of the words below v, in its texts or in the names of members, or NULL. */
static const char *find_word(const struct guard *g, json_object *v)
{
    const char *found = NULL;

    if (json_object_is_type(v, json_type_string)) {
        found = word_in(g, json_object_get_string(v), (size_t)json_object_get_string_len(v));
    } else if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v) && !found; i++)
            found = find_word(g, json_object_array_get_idx(v, i));
    } else if (json_object_is_type(v, json_type_object)) {
        json_object_object_foreach (v, key, value) {
            found = found ? found : word_in(g, key, strlen(key));
            found = found ? found : find_word(g, value);
        }
    }
    return found;
}

static const char *find_word_in_attachments(const struct guard *g, json_object *list, int *failed)
{
    const char *word = NULL;

    for (size_t i = 0; list && i < json_object_array_length(list) && !word; i++) {
        json_object *read = guard_read_attachment(json_object_array_get_idx(list, i), failed);
        word = find_word(g, read);
        json_object_put(read);
    }
    return word;
}

static int block_words(void *self, struct rv_cap_call *call)
{
    const struct guard *g = self;
    json_object *args = json_of(call->args), *shown = NULL, *kept = NULL, *reply = NULL;
    const struct place *place = place_of(args, &shown);
    const char *word = NULL;
    char reason[200];
    int failed = 0, rc;

    if (place && g->words && (kept = changeable(place, shown, &failed)))
        word = find_word(g, kept);
    if (place && g->words && !word)
        word = find_word(g, content_of(place, args));
    if (place && g->words && !word)
        word = find_word_in_attachments(g, attachments_of(place, shown), &failed);
    if (word && (reply = json_object_new_object())) {
        size_t n = strnlen(word, MAX_SHOWN);
        while (n > 0 && ((unsigned char)word[n] & 0xc0) == 0x80) /* not within a character */
            n--;
        snprintf(reason, sizeof reason, "it has the word \"%.*s\", which is not allowed here", (int)n, word);
        guard_put(reply, "action", json_object_new_string("block"), &failed);
        guard_put(reply, "reason", json_object_new_string(reason), &failed);
    }
    if (failed || !args || (word && !reply))
        rc = call->fail(call, "ExecutionError", args ? "out of memory" : "the call cannot be read");
    else
        rc = call->reply(call, reply ? json_object_to_json_string_ext(reply, JSON_C_TO_STRING_NOSLASHESCAPE)
                                     : "{\"action\": \"continue\"}");
    json_object_put(reply);
    json_object_put(kept);
    json_object_put(args);
    return rc;
}

static const struct rv_cap_entry entries[] = {
    {RV_CAP_POLICY, "no_secrets",
     RV_CAP_JSON({"description" : "Deny outputs that look like they hold a credential.", "sees" : []}), no_secrets},
    {RV_CAP_POLICY, "confirm_commands",
     RV_CAP_JSON({"description" : "Ask a person when an output has a command.", "sees" : []}), confirm_commands},
    {RV_CAP_HOOK, "redact_secrets", RV_CAP_JSON({
         "description" :
             "Around calls: replace what looks like a credential in what a model or a tool is told or says.",
         "sees" : []
     }),
     redact_secrets},
    {RV_CAP_HOOK, "block_words",
     RV_CAP_JSON(
         {"description" : "Around calls: block those that have one of the words in blocked_words.", "sees" : []}),
     block_words},
    RV_CAP_END,
};

static void guard_close(void *self)
{
    struct guard *g = self;

    if (g)
        json_object_put(g->words);
    free(g);
}

static int guard_open(const struct rv_cap_host *host, const char *config_text, void **self, char *error,
                      uint32_t error_size)
{
    struct guard *g = calloc(1, sizeof *g);
    json_object *config = json_of(config_text), *words = NULL;

    (void)host;
    if (!g || !config) {
        snprintf(error, error_size, g ? "the configuration cannot be read" : "out of memory");
        json_object_put(config);
        free(g);
        return 1;
    }
    if (json_object_object_get_ex(config, "blocked_words", &words))
        g->words = json_object_get(words);
    json_object_put(config);
    *self = g;
    return 0;
}

RV_CAPABILITY(.name = "guard", .version = "1.1.0",
              .description = "No secrets, commands need a yes; hooks around calls of models and tools.",
              .config_schema = RV_CAP_JSON({
                  "type" : "object",
                  "additionalProperties" : false,
                  "properties" : {
                      "blocked_words" : {
                          "type" : "array",
                          "items" : {"type" : "string", "minLength" : 1, "maxLength" : 100},
                          "maxItems" : 1000
                      }
                  }
              }),
              .entries = entries, .open = guard_open, .close = guard_close)
