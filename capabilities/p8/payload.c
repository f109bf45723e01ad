/* What may go with an action of each type that has rules. A model reads the message, so it says which member is wrong
 * and what would be right. */
#include "capabilities/p8/p8_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_NAME_CHARS 120   /* of what a session is called */
#define MAX_SECONDS    86400 /* a day: how long a question may stay open */
#define MAX_LISTED     16    /* members of one type, and words of one member */
#define MAX_KEY        64    /* bytes of a member's name that are compared */

enum legal {
    UNIT,       /* a number from 0 to 1 */
    PERCENT,    /* an integer from 0 to 100 */
    SECONDS,    /* a number above 0, at most a day */
    WORD,       /* one of `words` */
    TEXT,       /* a string */
    SHORT_TEXT, /* a string that says something and fits a line of a list */
    SAID,       /* a string that is not empty */
    TEXTS,      /* a list of strings */
    LINKS,      /* a list of strings or objects */
    OBJECT,
};
struct member {
    const char *name; /* NULL ends the list */
    enum legal legal;
    bool required;
    const char *const *words;
};

static const char *const risk_levels[] = {"low", "moderate", "high", "critical", NULL};
static const struct member observation[] = {
    {"confidence", UNIT, false, NULL},
    {"sources", TEXTS, false, NULL},
    {"session_name", SHORT_TEXT, false, NULL},
    {"references", LINKS, false, NULL},
    {"flags", TEXTS, false, NULL},
    {"risk_level", WORD, false, risk_levels},
    {"risk_score", PERCENT, false, NULL},
    {"risk_reasoning", TEXT, false, NULL},
    {"recommended_action", TEXT, false, NULL},
    {"extra", OBJECT, false, NULL}, /* what has no member of its own */
    {"request_id", TEXT, false, NULL},
    {NULL, TEXT, false, NULL},
};
static const struct member elicit[] = {
    {"question", SAID, true, NULL},
    {"options", TEXTS, false, NULL},
    {"timeout_seconds", SECONDS, false, NULL},
    {NULL, TEXT, false, NULL},
};
static const struct member delegate[] = {
    {"target_agent", SHORT_TEXT, true, NULL},
    {"task", SAID, true, NULL},
    {"context", OBJECT, false, NULL},
    {NULL, TEXT, false, NULL},
};
/* Ways out of an agent that a conversation was routed to: it is done, or it is not the right one. */
static const struct member way_out[] = {
    {"reason", TEXT, false, NULL},
    {NULL, TEXT, false, NULL},
};
static const struct {
    const char *type;
    const struct member *members;
} types[] = {
    {"observation", observation}, {"elicit", elicit},    {"delegate", delegate},
    {"complete", way_out},        {"escalate", way_out},
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

static bool is_list_of(json_object *value, bool with_objects)
{
    if (!json_object_is_type(value, json_type_array))
        return false;
    for (size_t i = 0; i < json_object_array_length(value); i++) {
        json_object *item = json_object_array_get_idx(value, i);
        if (!json_object_is_type(item, json_type_string) &&
            !(with_objects && json_object_is_type(item, json_type_object)))
            return false;
    }
    return true;
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

static bool is_legal(const struct member *m, json_object *value)
{
    bool is_text = json_object_is_type(value, json_type_string);

    switch (m->legal) {
    case UNIT:
        return is_number_in(value, -1, 0, 1);
    case PERCENT:
        return json_object_is_type(value, json_type_int) && is_number_in(value, -1, 0, 100);
    case SECONDS:
        return is_number_in(value, 0, 0, MAX_SECONDS);
    case WORD:
        return is_word(value, m->words);
    case TEXT:
        return is_text;
    case SHORT_TEXT:
        return is_text && is_line(value) && chars_of(value) <= MAX_NAME_CHARS;
    case SAID:
        return is_text && chars_of(value) > 0;
    case TEXTS:
        return is_list_of(value, false);
    case LINKS:
        return is_list_of(value, true);
    case OBJECT:
        return json_object_is_type(value, json_type_object);
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
    case TEXT:
        snprintf(out, size, "a string");
        break;
    case SHORT_TEXT:
        snprintf(out, size, "a string of 1 to %d characters in one line", MAX_NAME_CHARS);
        break;
    case SAID:
        snprintf(out, size, "a string that is not empty");
        break;
    case TEXTS:
        snprintf(out, size, "a list of strings");
        break;
    case LINKS:
        snprintf(out, size, "a list of strings or objects");
        break;
    case OBJECT:
        snprintf(out, size, "an object");
        break;
    }
}

/* Edit distance; SIZE_MAX for what is too long to be a slip of the pen. */
static size_t distance(const char *a, const char *b)
{
    size_t row[MAX_KEY + 1], la = strlen(a), lb = strlen(b);

    if (la > MAX_KEY || lb > MAX_KEY)
        return SIZE_MAX;
    for (size_t k = 0; k <= lb; k++)
        row[k] = k;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t k = 1; k <= lb; k++) {
            size_t best = diagonal + (a[i - 1] != b[k - 1]);
            diagonal = row[k];
            if (row[k] + 1 < best)
                best = row[k] + 1;
            if (row[k - 1] + 1 < best)
                best = row[k - 1] + 1;
            row[k] = best;
        }
    }
    return row[lb];
}

static int fail_unknown(struct rv_cap_call *call, const char *type, const struct member *members, const char *key)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX, len = 0;
    char list[512] = "";

    for (size_t i = 0; members[i].name && i < MAX_LISTED; i++) {
        size_t d = distance(key, members[i].name);
        if (d < least && d <= strlen(members[i].name) / 2) {
            least = d;
            nearest = members[i].name;
        }
        if (len < sizeof list)
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", members[i].name);
    }
    if (nearest)
        return rv_cap_failf(call, "ValidationError",
                            "the payload of %s has no member \"%.*s\": did you mean \"%s\"? (its members are %s)", type,
                            MAX_KEY, key, nearest, list);
    return rv_cap_failf(call, "ValidationError", "the payload of %s has no member \"%.*s\": its members are %s", type,
                        MAX_KEY, key, list);
}

static const struct member *find_member(const struct member *members, const char *key)
{
    while (members->name && strcmp(members->name, key) != 0)
        members++;
    return members->name ? members : NULL;
}

static int check_members(struct rv_cap_call *call, const char *type, const struct member *members, json_object *payload)
{
    char legal[128];

    json_object_object_foreach (payload, key, value) {
        const struct member *m = find_member(members, key);
        if (!m)
            return fail_unknown(call, type, members, key);
        if (!value && !m->required) /* null says as much as leaving it out */
            continue;
        if (!is_legal(m, value)) {
            say_legal(m, legal, sizeof legal);
            return rv_cap_failf(call, "ValidationError", "the payload of %s: %s has to be %s", type, m->name, legal);
        }
    }
    return 0;
}

int check_payload(struct rv_cap_call *call, const char *type, json_object *payload)
{
    const struct member *members = NULL;

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].type, type) == 0)
            members = types[i].members;
    if (!members) /* anybody may have actions of their own */
        return 0;
    for (const struct member *m = members; m->name; m++)
        if (m->required && (!payload || !json_object_object_get_ex(payload, m->name, NULL)))
            return rv_cap_failf(call, "ValidationError", "the payload of %s has to have %s", type, m->name);
    return payload ? check_members(call, type, members, payload) : 0;
}
