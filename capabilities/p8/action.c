/* action: describes as data something that happens beside the answer. The engine turns the marker in the result into an
 * event; the tool itself changes nothing, so it may be called again. */
#include "capabilities/p8/p8_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_NAME_CHARS 120   /* of what a session is called: it is one line of a list */
#define MAX_SECONDS    86400 /* a day: a question that stays open for longer is forgotten */

/* --- what goes with an action: anything. Only members with a range are checked, for a wrong one would be shown as if
 * it meant something. A model reads the message, so it says which member is wrong and what would be right. --- */

enum legal {
    UNIT,    /* a number from 0 to 1 */
    PERCENT, /* an integer from 0 to 100 */
    SECONDS, /* a number above 0, at most a day */
    WORD,    /* one of `words` */
    NAME,    /* a string that says something and fits a line of a list */
    LIST,    /* of objects */
};
struct member {
    const char *type, *name; /* of the action, of the member */
    enum legal legal;
    const char *const *words;
};

static const char *const risk_levels[] = {"low", "moderate", "high", "critical", NULL};
static const char *const sections[] = {"tools", "system_prompt", "properties", "metadata", NULL};
static const struct member members[] = {
    {"observation", "confidence", UNIT, NULL},    {"observation", "risk_level", WORD, risk_levels},
    {"observation", "risk_score", PERCENT, NULL}, {"observation", "session_name", NAME, NULL},
    {"elicit", "timeout_seconds", SECONDS, NULL}, {"patch_schema", "patches", LIST, NULL},
    {"schema_focus", "section", WORD, sections},
};

/* Code points; the host has checked that it is UTF-8. */
static size_t chars_of(json_object *text)
{
    const char *s = json_object_get_string(text);
    size_t n = 0, len = (size_t)json_object_get_string_len(text);

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

/* One line that is more than blanks. */
static bool is_line(json_object *text)
{
    bool says = false;

    for (const char *s = json_object_get_string(text); *s; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return false;
        says = says || *s != ' ';
    }
    return says;
}

static bool is_number_in(json_object *value, double above, double least, double most)
{
    double number = json_object_get_double(value);

    return (json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double)) &&
           number > above && number >= least && number <= most;
}

static bool is_word(json_object *value, const char *const *words)
{
    for (size_t i = 0; json_object_is_type(value, json_type_string) && words[i]; i++)
        if (strcmp(json_object_get_string(value), words[i]) == 0)
            return true;
    return false;
}

static bool is_list(json_object *value)
{
    if (!json_object_is_type(value, json_type_array))
        return false;
    for (size_t i = 0; i < json_object_array_length(value); i++)
        if (!json_object_is_type(json_object_array_get_idx(value, i), json_type_object))
            return false;
    return true;
}

static bool is_legal(const struct member *m, json_object *value)
{
    switch (m->legal) {
    case UNIT:
        return is_number_in(value, -1, 0, 1);
    case PERCENT:
        return json_object_is_type(value, json_type_int) && is_number_in(value, -1, 0, 100);
    case SECONDS:
        return is_number_in(value, 0, 0, MAX_SECONDS);
    case WORD:
        return is_word(value, m->words);
    case NAME:
        return json_object_is_type(value, json_type_string) && is_line(value) && chars_of(value) <= MAX_NAME_CHARS;
    case LIST:
        return is_list(value);
    }
    return false;
}

/* What would have been right, for the message. */
static void say_legal(const struct member *m, char *out, size_t size)
{
    size_t len = 0;

    switch (m->legal) {
    case UNIT:
        snprintf(out, size, "a number from 0 to 1");
        break;
    case PERCENT:
        snprintf(out, size, "an integer from 0 to 100");
        break;
    case SECONDS:
        snprintf(out, size, "a number above 0 and at most %d", MAX_SECONDS);
        break;
    case WORD:
        for (size_t i = 0; m->words[i] && len < size; i++)
            len += (size_t)snprintf(out + len, size - len, "%s%s", i ? ", " : "one of ", m->words[i]);
        break;
    case NAME:
        snprintf(out, size, "a string of 1 to %d characters in one line", MAX_NAME_CHARS);
        break;
    case LIST:
        snprintf(out, size, "a list of objects");
        break;
    }
}

static int check_payload(struct rv_cap_call *call, const char *type, json_object *payload)
{
    char legal[128];

    for (size_t i = 0; payload && i < sizeof members / sizeof members[0]; i++) {
        const struct member *m = &members[i];
        json_object *value = NULL;
        if (strcmp(m->type, type) != 0 || !json_object_object_get_ex(payload, m->name, &value) || !value)
            continue; /* null says as much as leaving it out */
        if (!is_legal(m, value)) {
            say_legal(m, legal, sizeof legal);
            return rv_cap_failf(call, "ValidationError", "the payload of %s: %s has to be %s", type, m->name, legal);
        }
    }
    return 0;
}

/* --- the result --- */

/* Members that the result itself has; and `data`, which would be read as the complete result. */
static bool is_reserved(const char *key)
{
    static const char *const keys[] = {"_action_event", "_metadata_event", "action_type", "status", "payload", "data"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* Members of an observation stand at the top too, where those look who show how sure an answer is. */
static void copy_members(bool *failed, json_object *result, json_object *payload)
{
    put(failed, result, "_metadata_event", json_object_new_boolean(1));
    json_object_object_foreach (payload, key, value) {
        if (value && !is_reserved(key))
            put(failed, result, key, json_object_get(value));
    }
}

static json_object *result_of(const char *type, json_object *payload, bool *failed)
{
    json_object *result = json_object_new_object();

    put(failed, result, "_action_event", json_object_new_boolean(1));
    put(failed, result, "action_type", json_object_new_string(type));
    put(failed, result, "status", json_object_new_string("success"));
    if (!payload || json_object_object_length(payload) == 0)
        return result;
    put(failed, result, "payload", json_object_get(payload));
    if (result && strcmp(type, "observation") == 0)
        copy_members(failed, result, payload);
    return result;
}

int act(void *self, struct rv_cap_call *call)
{
    json_object *args = args_of(call), *type = NULL, *payload = NULL;
    bool failed = false;
    int rc;

    (void)self;
    if (!args)
        return 1;
    json_object_object_get_ex(args, "type", &type);
    json_object_object_get_ex(args, "payload", &payload);
    if (!json_object_is_type(type, json_type_string) || json_object_get_string_len(type) == 0) {
        rc = call->fail(call, "ValidationError",
                        "type is missing: observation, elicit, delegate, complete, escalate or "
                        "a word of your own");
    } else if (payload && !json_object_is_type(payload, json_type_object)) {
        rc = call->fail(call, "ValidationError", "payload has to be an object");
    } else {
        rc = check_payload(call, json_object_get_string(type), payload);
        if (rc == 0)
            rc = reply_take(call, result_of(json_object_get_string(type), payload, &failed), failed);
    }
    json_object_put(args);
    return rc;
}
