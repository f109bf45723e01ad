/* Hints for what a table of keys does not take: the form of a value, with the user's own in it, and the key that was
 * probably meant. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "coreengine/lang/yaml_internal.h"

#define MAX_LISTED 20 /* keys that a hint lists: two lines; of a longer table the likest, and where the others are */
#define N_LIKEST   5  /* of them: as many as a reader looks through */
#define MAX_OWN    40 /* bytes of a user's value that is shown as it should be written: half a line */

/* --- The form of a value --- */

/* A scalar as it stands in a list or map of YAML; "..." in the place of one that is long, hidden or not a scalar. */
static const char *own_value(const struct rv_key_reader *r, const struct rv_node *node, char out[MAX_OWN + 3])
{
    bool is_plain = true;

    if (r->hide_values || node->kind == RV_NODE_LIST || node->kind == RV_NODE_MAP || node->kind == RV_NODE_NULL ||
        node->text.len == 0 || node->text.len > MAX_OWN)
        return "...";
    for (size_t i = 0; i < node->text.len; i++) {
        unsigned char c = (unsigned char)node->text.ptr[i];
        if (c < ' ' || c == '"' || c == '\\')
            return "...";
        is_plain = is_plain && (isalnum(c) || strchr("_-.", c));
    }
    const char *mark = is_plain && !node->is_quoted ? "" : "\"";
    snprintf(out, MAX_OWN + 3, "%s%.*s%s", mark, RV_STR_ARG(node->text), mark);
    return out;
}

static bool is_scalar(const struct rv_node *node)
{
    return node->kind != RV_NODE_LIST && node->kind != RV_NODE_MAP && node->kind != RV_NODE_NULL;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool list_hint(const struct rv_key_reader *r, const struct rv_node *node, const char *what, char *out)
{
    bool of_texts =
        begins(what, "a list of strings") || begins(what, "a list of names") || begins(what, "a list of expressions");
    bool is_named = strstr(what, "with a name") || strstr(what, "names or maps");
    char own[MAX_OWN + 3];

    if (node->kind == RV_NODE_MAP && node->n > 0 && node->keys[0]->text.ptr[0] == '-')
        snprintf(out, RV_KEYS_MAX_HINT, "a blank belongs behind \"-\"");
    else if (node->kind == RV_NODE_MAP && node->n > 0 && is_named && !rv_str_is(node->keys[0]->text, "name"))
        snprintf(out, RV_KEYS_MAX_HINT, "begin each item with `- ` and write its name inside: `- name: %s`",
                 own_value(r, node->keys[0], own));
    else if (node->kind == RV_NODE_MAP && node->n > 0 && !of_texts && is_scalar(node->items[0]) && !r->hide_values)
        snprintf(out, RV_KEYS_MAX_HINT, "begin each item with `- `, as in `- %.*s: %s`",
                 RV_STR_ARG(rv_utf8_cut(node->keys[0]->text, MAX_OWN)), own_value(r, node->items[0], own));
    else if (is_scalar(node) && of_texts)
        snprintf(out, RV_KEYS_MAX_HINT, "write a list: [%s]", own_value(r, node, own));
    else if (is_scalar(node) && is_named)
        snprintf(out, RV_KEYS_MAX_HINT, "write a list of maps, as in `- name: %s`", own_value(r, node, own));
    else if (of_texts)
        snprintf(out, RV_KEYS_MAX_HINT, "write a list: [a, b]");
    else
        snprintf(out, RV_KEYS_MAX_HINT, "each item of a list begins with \"- \"");
    return true;
}

/* The value of the map that is suggested: the user's own only where it would be taken. inner is a key of a number, if
 * the user has given one; of maps from keys of the user's own, those that hold texts are known by their words. */
static const char *map_value(const struct rv_key_reader *r, const struct rv_node *value, const char *what,
                             const char *inner, char own[MAX_OWN + 3])
{
    static const char *const of_texts[] = {" to model", " to text", " to stage", " to a way of merging"};

    if (r->hide_values || !is_scalar(value))
        return "value";
    if (inner && isdigit((unsigned char)value->text.ptr[0]) && rv_number_read(value->text.ptr, NULL) > 0) {
        snprintf(own, MAX_OWN + 3, "%.*s", (int)strspn(value->text.ptr, "0123456789."), value->text.ptr);
        return own;
    }
    for (size_t i = 0; !inner && value->kind == RV_NODE_STR && i < RV_COUNT(of_texts); i++)
        if (strstr(what, of_texts[i]))
            return own_value(r, value, own);
    return "value";
}

/* "a map from role to model" has roles as keys. */
static bool map_hint(const struct rv_key_reader *r, const struct rv_node *node, const char *what, const char *inner,
                     char *out)
{
    static const char from[] = "a map from ";
    const struct rv_node *value = node->kind == RV_NODE_LIST && node->n > 0 ? node->items[0] : node;
    bool is_generic = !inner && !begins(what, from);
    char own[MAX_OWN + 3], key[MAX_OWN];

    snprintf(key, sizeof key, "%s", inner ? inner : is_generic ? "key" : what + strlen(from));
    if (!inner && !is_generic) {
        key[strcspn(key, " ")] = 0;
        for (char *c = key; *c; c++)
            *c = (char)toupper((unsigned char)*c);
    }
    snprintf(out, RV_KEYS_MAX_HINT, "write a map: {%s: %s}", key, map_value(r, value, what, inner, own));
    return true;
}

static bool number_hint(const struct rv_key_reader *r, const struct rv_node *node, const char *what, char *out)
{
    bool is_number = !r->hide_values && node->kind == RV_NODE_STR && node->is_quoted && node->text.len > 0 &&
                     strspn(node->text.ptr, "0123456789.-") == node->text.len;

    snprintf(out, RV_KEYS_MAX_HINT, "%s",
             is_number                       ? "write the number without quotes"
             : strcmp(what, "a number") == 0 ? "write a number, without unit or quotes"
                                             : "write a whole number, without unit or quotes");
    return true;
}

static bool string_hint(const struct rv_key_reader *r, const struct rv_node *node, char *out)
{
    char own[MAX_OWN + 3];

    if (r->hide_values)
        return false;
    if (node->kind == RV_NODE_LIST && node->n == 1 && is_scalar(node->items[0])) {
        snprintf(out, RV_KEYS_MAX_HINT, "write it without the brackets: %s", own_value(r, node->items[0], own));
        return true;
    }
    if (!is_scalar(node) || node->text.len > MAX_OWN)
        return false;
    snprintf(out, RV_KEYS_MAX_HINT, "put it in quotes: \"%.*s\"", RV_STR_ARG(node->text));
    return true;
}

bool lang_keys_type_hint(const struct rv_key_reader *r, const struct rv_node *node, const char *what, const char *inner,
                         char out[RV_KEYS_MAX_HINT])
{
    if (node->kind == RV_NODE_NULL)
        snprintf(out, RV_KEYS_MAX_HINT, "leave the key out to get its default");
    else if (strcmp(what, "a boolean") == 0 && node->kind == RV_NODE_STR)
        snprintf(out, RV_KEYS_MAX_HINT, "booleans are written true and false");
    else if (strcmp(what, "an integer") == 0 || strcmp(what, "a number") == 0)
        return number_hint(r, node, what, out);
    else if (begins(what, "a list"))
        return list_hint(r, node, what, out);
    else if (begins(what, "a map") || strcmp(what, "an object") == 0)
        return map_hint(r, node, what, inner, out);
    else if (strcmp(what, "a string") == 0)
        return string_hint(r, node, out);
    else
        return false;
    return true;
}

/* --- The key that was meant --- */

void lang_keys_append_name(char hint[RV_KEYS_MAX_HINT], size_t *len, bool first, const char *name)
{
    if (*len < RV_KEYS_MAX_HINT)
        *len += (size_t)snprintf(hint + *len, RV_KEYS_MAX_HINT - *len, "%s%s", first ? "" : ", ", name);
}

/* How much of the word is in the name: its pairs of letters that the name has, too. */
static size_t likeness(rv_str word, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i + 1 < word.len; i++) {
        const char pair[] = {(char)rv_ascii_lower(word.ptr[i]), (char)rv_ascii_lower(word.ptr[i + 1]), '\0'};
        n += strstr(name, pair) != NULL;
    }
    return n;
}

/* The likest keys; among equals the first of the table, which are the best known. */
static void choose_likest(rv_str word, const struct rv_key *keys, size_t n_keys, size_t out[N_LIKEST])
{
    for (size_t n = 0; n < N_LIKEST; n++) {
        size_t best = 0;
        out[n] = n_keys;
        for (size_t i = 0; i < n_keys; i++) {
            size_t like = likeness(word, keys[i].name);
            bool is_chosen = false;
            for (size_t k = 0; k < n; k++)
                is_chosen = is_chosen || out[k] == i;
            if (!is_chosen && (out[n] == n_keys || like > best)) {
                best = like;
                out[n] = i;
            }
        }
    }
}

void lang_keys_list(const struct rv_key_reader *r, rv_str word, const struct rv_key *keys, size_t n_keys,
                    char hint[RV_KEYS_MAX_HINT])
{
    size_t likest[N_LIKEST], len;

    if (n_keys <= MAX_LISTED) {
        len = (size_t)snprintf(hint, RV_KEYS_MAX_HINT, "keys here: ");
        for (size_t i = 0; i < n_keys; i++)
            lang_keys_append_name(hint, &len, i == 0, keys[i].name);
        return;
    }
    len = (size_t)snprintf(hint, RV_KEYS_MAX_HINT, "keys here, among %zu: ", n_keys);
    choose_likest(word, keys, n_keys, likest);
    for (size_t i = 0; i < N_LIKEST; i++)
        lang_keys_append_name(hint, &len, i == 0, keys[likest[i]].name);
    if (r->page && len < RV_KEYS_MAX_HINT)
        snprintf(hint + len, RV_KEYS_MAX_HINT - len, "; `reeve docs reference %s` lists them", r->page);
}

/* entryPoint, entry-point and entry_point are one word. */
static bool is_word(rv_str name, const char *word)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '_' || name.ptr[i] == '-')
            continue;
        if (rv_ascii_lower(name.ptr[i]) != *word++)
            return false;
    }
    return *word == 0;
}

const char *rv_key_word_says(const struct rv_key_word *words, rv_str key)
{
    for (const struct rv_key_word *w = words; w && w->words; w++)
        for (const char *at = w->words; *at; at += strcspn(at, " ") + (strchr(at, ' ') != NULL)) {
            char word[MAX_OWN];
            snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
            if (is_word(key, word))
                return w->says;
        }
    return NULL;
}

/* Is word a part of the name, as "prompt" is of "prompt_key"? */
static bool has_part(const char *name, rv_str word)
{
    for (const char *part = name; part; part = strchr(part, '_')) {
        part += *part == '_';
        if (strcspn(part, "_") == word.len && memcmp(part, word.ptr, word.len) == 0)
            return true;
    }
    return false;
}

/* "did you mean ...?" with all names that have the word as a part. False: none has. */
static bool hint_parts(rv_str word, const char *const *names, size_t n, char hint[RV_KEYS_MAX_HINT])
{
    size_t len = (size_t)snprintf(hint, RV_KEYS_MAX_HINT, "did you mean "), n_found = 0;

    for (size_t i = 0; word.len > 0 && i < n; i++)
        if (has_part(names[i], word))
            lang_keys_append_name(hint, &len, n_found++ == 0, names[i]);
    if (n_found > 0 && len < RV_KEYS_MAX_HINT)
        snprintf(hint + len, RV_KEYS_MAX_HINT - len, "?");
    return n_found > 0;
}

void lang_keys_unknown(struct rv_key_reader *r, const struct rv_node *key, const struct rv_key *keys, size_t n_keys)
{
    char hint[RV_KEYS_MAX_HINT] = "";
    const char **names = malloc((n_keys > 0 ? n_keys : 1) * sizeof *names);
    const char *said = rv_key_word_says(r->words ? r->words(keys) : NULL, key->text), *near;

    if (!names) {
        r->rc = RV_E_NOMEM;
        return;
    }
    for (size_t i = 0; i < n_keys; i++)
        names[i] = keys[i].name;
    near = said ? NULL : rv_nearest(key->text, names, n_keys);
    if (said) {
        snprintf(hint, sizeof hint, "%s", said);
    } else if (near) {
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
    } else if (hint_parts(key->text, names, n_keys, hint)) {
        /* it is written */
    } else if (memchr(key->text.ptr, ':', key->text.len)) {
        snprintf(hint, sizeof hint, "a blank belongs between \":\" and the value");
    } else {
        lang_keys_list(r, key->text, keys, n_keys, hint);
    }
    free(names);
    rv_keys_add_finding(r, RV_SEVERITY_ERROR, &key->src, hint, "unknown key \"%s%s\"", r->path ? r->path : "",
                        key->text.ptr);
}
