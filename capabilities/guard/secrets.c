/* What well-known credentials look like, and texts without them. */
#include "capabilities/guard/guard_internal.h"

#include <ctype.h>
#include <json-c/json.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What well-known credentials begin with, and how many more characters of [A-Za-z0-9_-] make it one. Private keys have
 * lines around them instead. */
static const struct token {
    const char *prefix;
    size_t more;
    const char *what;
} tokens[] = {
    {"AKIA", 16, "an access key id"},
    {"ghp_", 30, "a repository token"},
    {"sk-", 20, "an API key"},
    {"xoxb-", 20, "a chat token"},
};

static const char hex[] = "0123456789abcdef";

struct secret {
    const char *what;
    size_t len; /* bytes of the text that it takes up */
};

static bool is_token_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static size_t token_length(const char *c, const char *end)
{
    size_t n = 0;

    while (c + n < end && is_token_char(c[n]))
        n++;
    return n;
}

int guard_read_escape(const char *c, const char *end)
{
    int code = 0;

    if (end - c < 6 || c[0] != '\\' || c[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        const char *digit = strchr(hex, tolower((unsigned char)c[i]));
        if (!c[i] || !digit)
            return -1;
        code = code * 16 + (int)(digit - hex);
    }
    return code;
}

/* Is `at` within a word, as "sk-" is in "risk-free"? The letters of an escape do not belong to one: a string of JSON in
 * a string has "\\nsk-..." or "\\u0026sk-...", an address has "%20sk-...". */
static bool is_in_word(const char *text, const char *at)
{
    size_t before = (size_t)(at - text);

    if (before == 0 || !is_token_char(at[-1]))
        return false;
    if (before >= 2 && at[-2] == '\\' && strchr("bfnrt", at[-1]))
        return false;
    int code = before >= 6 ? guard_read_escape(at - 6, at) : -1;
    if (code >= 0)
        return code < 0x80 && is_token_char((char)code);
    return !(before >= 3 && at[-3] == '%' && isxdigit((unsigned char)at[-2]) && isxdigit((unsigned char)at[-1]));
}

static bool starts(const char *c, const char *end, const char *with)
{
    size_t n = strlen(with);

    return (size_t)(end - c) >= n && memcmp(c, with, n) == 0;
}

/* The length of a line that begins or ends a private key of whatever kind (RSA, EC, OPENSSH, ENCRYPTED, none), or 0. A
 * line without its last dashes is one, too. */
static size_t key_line(const char *c, const char *end, const char *word)
{
    if (!starts(c, end, word))
        return 0;
    const char *label = c + strlen(word), *after = label;
    while (after < end && (isupper((unsigned char)*after) || isdigit((unsigned char)*after) || *after == ' '))
        after++;
    if (!memmem(label, (size_t)(after - label), "PRIVATE KEY", strlen("PRIVATE KEY")))
        return 0;
    while (after < end && *after == '-')
        after++;
    return (size_t)(after - c);
}

/* From its first line to its last one, or to the end of a text that breaks off. */
static size_t private_key_length(const char *c, const char *end)
{
    size_t n = key_line(c, end, "-----BEGIN "), last;

    if (n == 0)
        return 0;
    for (const char *line = c + n; line < end; line++)
        if ((last = key_line(line, end, "-----END ")) > 0)
            return (size_t)(line - c) + last;
    return (size_t)(end - c);
}

/* Is there a secret that begins exactly at `c`, in the text until `end`? */
static bool secret_at(const char *text, const char *c, const char *end, struct secret *out)
{
    *out = (struct secret){"a private key", private_key_length(c, end)};
    if (out->len > 0)
        return true;
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        const struct token *t = &tokens[i];
        if (!starts(c, end, t->prefix) ||
            is_in_word(text, c)) /* first, as it costs nothing: texts may repeat a prefix */
            continue;
        size_t n = strlen(t->prefix), more = token_length(c + n, end);
        if (more >= t->more) {
            *out = (struct secret){t->what, n + more};
            return true;
        }
    }
    return false;
}

/* What the first secret of a text is, or NULL. */
static const char *secret_in(const char *text, size_t len)
{
    struct secret found;

    for (const char *c = text; c < text + len; c++)
        if (secret_at(text, c, text + len, &found))
            return found.what;
    return NULL;
}

/* What the first secret below v is, in its texts or in the names of members, or NULL. */
const char *guard_find_secret(json_object *v)
{
    const char *found = NULL;

    if (json_object_is_type(v, json_type_string)) {
        found = secret_in(json_object_get_string(v), (size_t)json_object_get_string_len(v));
    } else if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v) && !found; i++)
            found = guard_find_secret(json_object_array_get_idx(v, i));
    } else if (json_object_is_type(v, json_type_object)) {
        json_object_object_foreach (v, key, value) {
            found = found ? found : secret_in(key, strlen(key));
            found = found ? found : guard_find_secret(value);
        }
    }
    return found;
}

/* The text with "[redacted: what it is]" in place of each secret; NULL when there is none or memory is short
 * (*failed). The caller frees it. */
static char *redacted_text(const char *text, size_t len, size_t *out_len, int *failed)
{
    size_t room = len + 1, used = 0;
    char *out = NULL;

    if (!secret_in(text, len))
        return NULL;
    for (const char *c = text; c < text + len;) {
        struct secret s;
        char mark[64];
        bool is_secret = secret_at(text, c, text + len, &s);
        size_t n = is_secret ? (size_t)snprintf(mark, sizeof mark, "[redacted: %s]", s.what) : 1;
        if (!out || used + n >= room) {
            char *more = realloc(out, room = 2 * (room + n));
            if (!more) {
                free(out);
                *failed = 1;
                return NULL;
            }
            out = more;
        }
        memcpy(out + used, is_secret ? mark : c, n);
        used += n;
        c += is_secret ? s.len : 1;
    }
    out[used] = '\0';
    *out_len = used;
    return out;
}

static json_object *redact_string(json_object *v, int *changed, int *failed)
{
    size_t len = 0;
    char *text = redacted_text(json_object_get_string(v), (size_t)json_object_get_string_len(v), &len, failed);
    json_object *made = text ? json_object_new_string_len(text, (int)len) : NULL;

    *failed |= text && !made;
    *changed += made != NULL;
    free(text);
    return made;
}

/* A name for a member whose own name has a secret; one that is taken gets the next number. NULL: memory is short. */
static char *free_name(json_object *in, const char *name, unsigned *number)
{
    size_t size = strlen(name) + 16;
    char *made = malloc(size);

    if (made)
        snprintf(made, size, "%s", name);
    while (made && json_object_object_get_ex(in, made, NULL))
        snprintf(made, size, "%s (%u)", name, ++*number);
    return made;
}

/* The same members in the same order, under other names where a name has a secret; NULL when none has. */
static json_object *rename_members(json_object *v, int *changed, int *failed)
{
    json_object *made = NULL;
    unsigned number = 1;
    bool any = false;

    json_object_object_foreach (v, each, unused) {
        (void)unused;
        any |= secret_in(each, strlen(each)) != NULL;
    }
    if (!any || !(made = json_object_new_object())) {
        *failed |= any;
        return NULL;
    }
    json_object_object_foreach (v, key, value) {
        size_t len;
        char *text = redacted_text(key, strlen(key), &len, failed),
             *name = text ? free_name(made, text, &number) : NULL;
        *failed |= text && !name;
        *failed |= json_object_object_add(made, name ? name : key, json_object_get(value)) != 0;
        free(name);
        free(text);
    }
    ++*changed;
    return made;
}

static json_object *redact_object(json_object *v, int *changed, int *failed)
{
    json_object_object_foreach (v, key, value) {
        json_object *item = guard_redact(value, changed, failed);
        if (item)
            *failed |= json_object_object_add(v, key, item) != 0;
    }
    return rename_members(v, changed, failed);
}

/* Redacts all texts and names of members below v. Returns what is to stand in its place, or NULL to leave it; *changed
 * counts. */
json_object *guard_redact(json_object *v, int *changed, int *failed)
{
    if (json_object_is_type(v, json_type_string))
        return redact_string(v, changed, failed);
    if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(v); i++) {
            json_object *item = guard_redact(json_object_array_get_idx(v, i), changed, failed);
            if (item)
                *failed |= json_object_array_put_idx(v, i, item) != 0;
        }
    }
    return json_object_is_type(v, json_type_object) ? redact_object(v, changed, failed) : NULL;
}
