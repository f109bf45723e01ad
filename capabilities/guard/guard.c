/* guard: policies and hooks that keep secrets and unwanted words where they belong. Two policies look at the output of
 * a stage; two hooks look at each call of a model or a tool. */
#include <reeve/capability.h>

#include <ctype.h>
#include <json-c/json.h>
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_DEPTH 512 /* nesting of what the host gives: 256 levels of a value, inside an envelope */

/* What well-known credentials begin with, and how many more characters of [A-Za-z0-9_-] make it one. */
static const struct secret {
    const char *prefix;
    size_t more;
    const char *what;
} secrets[] = {
    {"AKIA", 16, "an access key id"},
    {"ghp_", 30, "a repository token"},
    {"sk-", 20, "an API key"},
    {"xoxb-", 20, "a chat token"},
    {"-----BEGIN PRIVATE KEY", 0, "a private key"},
    {"-----BEGIN RSA PRIVATE KEY", 0, "a private key"},
};

struct guard {
    json_object *words; /* array of strings that hooks block; owned; NULL: none */
};

static size_t token_length(const char *c)
{
    size_t n = 0;
    while (isalnum((unsigned char)c[n]) || c[n] == '_' || c[n] == '-')
        n++;
    return n;
}

/* The secret that begins exactly there, or NULL. */
static const struct secret *secret_at(const char *c)
{
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        size_t n = strlen(secrets[i].prefix);
        if (strncmp(c, secrets[i].prefix, n) == 0 && token_length(c + n) >= secrets[i].more)
            return &secrets[i];
    }
    return NULL;
}

static const char *find_secret(const char *text, size_t len)
{
    for (const char *c = text; c < text + len; c++) {
        const struct secret *found = secret_at(c);
        if (found)
            return found->what;
    }
    return NULL;
}

/* NULL: no memory, or no JSON. The caller's. */
static json_object *json_of(const char *text)
{
    json_tokener *tokener = json_tokener_new_ex(MAX_DEPTH);
    json_object *value = tokener ? json_tokener_parse_ex(tokener, text, -1) : NULL;

    if (tokener)
        json_tokener_free(tokener);
    return value;
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
    const char *text = args ? json_object_to_json_string_ext(output, JSON_C_TO_STRING_NOSLASHESCAPE) : NULL;
    const char *found = text ? find_secret(text, strlen(text)) : NULL;
    char reply[160];
    int rc;

    (void)self;
    if (!text) {
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
    {"before_model", "request"}, {"after_model", "reply"}, {"before_tool", "arguments"}, {"after_tool", "result"}};
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

/* In place of each secret, "[redacted: what it is]"; NULL when there is none or memory is short (*failed). */
static json_object *redacted_text(const char *text, size_t len, int *failed)
{
    size_t room = len + 1, used = 0;
    char *out = NULL;

    if (!find_secret(text, len))
        return NULL;
    for (const char *c = text; c < text + len;) {
        const struct secret *s = secret_at(c);
        char mark[64];
        size_t n = 1, skip = 1;
        if (s) {
            n = (size_t)snprintf(mark, sizeof mark, "[redacted: %s]", s->what);
            skip = strlen(s->prefix);
            skip += token_length(c + skip);
        }
        if (!out || used + n >= room) {
            char *more = realloc(out, room = 2 * (room + n));
            if (!more) {
                free(out);
                *failed = 1;
                return NULL;
            }
            out = more;
        }
        memcpy(out + used, s ? mark : c, n);
        used += n;
        c += skip;
    }
    json_object *made = json_object_new_string_len(out, (int)used);
    free(out);
    *failed |= !made;
    return made;
}

/* Redacts all strings below v. Returns what is to stand in its place, or NULL to leave it; *changed counts. */
static json_object *redact(json_object *v, int *changed, int *failed)
{
    json_object *other = NULL;

    if (json_object_is_type(v, json_type_string)) {
        other = redacted_text(json_object_get_string(v), (size_t)json_object_get_string_len(v), failed);
        *changed += other != NULL;
    } else if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v); i++) {
            json_object *item = redact(json_object_array_get_idx(v, i), changed, failed);
            if (item)
                *failed |= json_object_array_put_idx(v, i, item) != 0;
        }
    } else if (json_object_is_type(v, json_type_object)) {
        json_object_object_foreach (v, key, value) {
            json_object *item = redact(value, changed, failed);
            if (item)
                *failed |= json_object_object_add(v, key, item) != 0;
        }
    }
    return other;
}

/* What of a request or a reply may be given back: the rest is the engine's. */
static json_object *changeable(const struct place *place, json_object *shown)
{
    json_object *kept = json_object_new_object(), *part = NULL;

    if (place != &places[0] && place != &places[1]) {
        json_object_put(kept);
        return json_object_get(shown);
    }
    if (place == &places[1] && json_object_object_get_ex(shown, "text", &part))
        json_object_object_add(kept, "text", json_object_get(part));
    for (size_t i = 0; place == &places[0] && i < sizeof told_keys / sizeof told_keys[0]; i++)
        if (json_object_object_get_ex(shown, told_keys[i], &part))
            json_object_object_add(kept, told_keys[i], json_object_get(part));
    return kept;
}

static int redact_secrets(void *self, struct rv_cap_call *call)
{
    json_object *args = json_of(call->args), *shown = NULL, *reply = NULL, *kept = NULL, *whole;
    const struct place *place = place_of(args, &shown);
    int changed = 0, failed = 0, rc;

    (void)self;
    if (place && (kept = changeable(place, shown)) && (whole = redact(kept, &changed, &failed))) {
        json_object_put(kept);
        kept = whole;
    }
    if (changed && (reply = json_object_new_object())) {
        json_object_object_add(reply, "action", json_object_new_string("replace"));
        json_object_object_add(reply, place->member, json_object_get(kept));
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

/* The first of the words that stands in a string below v, whatever its case, or NULL. */
static const char *find_word(const struct guard *g, json_object *v)
{
    const char *found = NULL;

    if (json_object_is_type(v, json_type_string)) {
        for (size_t i = 0; i < json_object_array_length(g->words) && !found; i++) {
            const char *word = json_object_get_string(json_object_array_get_idx(g->words, i));
            found = strcasestr(json_object_get_string(v), word) ? word : NULL;
        }
    } else if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v) && !found; i++)
            found = find_word(g, json_object_array_get_idx(v, i));
    } else if (json_object_is_type(v, json_type_object)) {
        json_object_object_foreach (v, key, value) {
            (void)key;
            found = found ? found : find_word(g, value);
        }
    }
    return found;
}

static int block_words(void *self, struct rv_cap_call *call)
{
    const struct guard *g = self;
    json_object *args = json_of(call->args), *shown = NULL, *kept = NULL, *reply = NULL;
    const struct place *place = place_of(args, &shown);
    const char *word = NULL;
    char reason[200];
    int rc;

    if (place && g->words && (kept = changeable(place, shown)))
        word = find_word(g, kept);
    if (word && (reply = json_object_new_object())) {
        snprintf(reason, sizeof reason, "it has the word \"%.100s\", which is not allowed here", word);
        json_object_object_add(reply, "action", json_object_new_string("block"));
        json_object_object_add(reply, "reason", json_object_new_string(reason));
    }
    if (!args || (word && !reply))
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
