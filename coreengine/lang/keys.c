/* Reading a map by a table of rows: what a key is called, what it takes, where it goes, what it is worth when absent.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/lang/yaml_internal.h"

#define MAX_QUOTED     60   /* of a user's value in a message */
#define MAX_MESSAGE    2048 /* a finding without its owner */
#define MAX_HINT_NAMES 1200 /* bytes of names in one hint */

void rv_keys_finding(struct rv_key_reader *r, enum rv_severity severity, const struct rv_src *src, const char *hint,
                     const char *fmt, ...)
{
    char text[MAX_MESSAGE];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (r->owner_name && r->owner_name[0])
        rv_findings_add_as(r->findings, severity, r->code, src, hint, "%s \"%s\": %s", r->owner_kind, r->owner_name,
                           text);
    else
        rv_findings_add_as(r->findings, severity, r->code, src, hint, "%s: %s", r->owner_kind, text);
}

static const char *path_of(const struct rv_key_reader *r)
{
    return r->path ? r->path : "";
}

/* ` "text"` of a scalar, or nothing when it has none or may be a secret. */
static void quoted(const struct rv_key_reader *r, const struct rv_node *node, char out[MAX_QUOTED + 8])
{
    rv_str cut = rv_utf8_cut(node->text, MAX_QUOTED);
    const char *mark = node->kind == RV_NODE_STR ? "\"" : "";

    out[0] = 0;
    if (r->hide_values || node->kind == RV_NODE_LIST || node->kind == RV_NODE_MAP || node->kind == RV_NODE_NULL)
        return;
    snprintf(out, MAX_QUOTED + 8, " %s%.*s%s%s", mark, RV_STR_ARG(cut), cut.len < node->text.len ? "..." : "", mark);
}

/* Tells nothing of a hidden value but its kind, which the finding has. */
static const char *type_hint(const struct rv_node *node, const char *what, bool hidden, char out[MAX_QUOTED + 64])
{
    bool wants_string = strcmp(what, "a string") == 0;
    bool wants_number = strcmp(what, "an integer") == 0 || strcmp(what, "a number") == 0;

    if (node->kind == RV_NODE_NULL)
        return "leave the key out to get its default";
    if (strcmp(what, "a boolean") == 0 && node->kind == RV_NODE_STR)
        return "booleans are written true and false";
    if (wants_string && !hidden &&
        (node->kind == RV_NODE_INT || node->kind == RV_NODE_FLOAT || node->kind == RV_NODE_BOOL) &&
        node->text.len <= MAX_QUOTED) {
        snprintf(out, MAX_QUOTED + 64, "put it in quotes: \"%s\"", node->text.ptr);
        return out;
    }
    if (wants_number && !hidden && node->kind == RV_NODE_STR && node->is_quoted && node->text.len > 0 &&
        strspn(node->text.ptr, "0123456789.-") == node->text.len)
        return "write the number without quotes";
    if (wants_number)
        return strcmp(what, "a number") == 0 ? "write a number, without unit or quotes"
                                             : "write a whole number, without unit or quotes";
    if (strncmp(what, "a list", 6) == 0 && node->kind == RV_NODE_MAP)
        return node->n && node->keys[0]->text.ptr[0] == '-' ? "a blank belongs behind \"-\""
                                                            : "each item of a list begins with \"- \"";
    if (strcmp(what, "a map") == 0 || strcmp(what, "an object") == 0)
        return "write a map: {key: value}";
    return strcmp(what, "a list of strings") == 0 ? "write a list: [a, b]" : NULL;
}

void rv_keys_wrong_type(struct rv_key_reader *r, const struct rv_node *node, const char *key, const char *what)
{
    char value[MAX_QUOTED + 8];
    char hint[MAX_QUOTED + 64];
    const char *said = type_hint(node, what, r->hide_values, hint);

    quoted(r, node, value);
    rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, said, "%s%s must be %s, not %s%s", path_of(r), key, what,
                    rv_node_kind_text(node->kind), value);
}

static void out_of_memory(struct rv_key_reader *r)
{
    r->rc = RV_E_NOMEM;
}

/* --- Hints made of names --- */

static void append_name(char *hint, size_t size, size_t *len, bool first, const char *name)
{
    if (*len < size)
        *len += (size_t)snprintf(hint + *len, size - *len, "%s%s", first ? "" : ", ", name);
}

/* What other systems call a key of ours. */
static const char *other_word(rv_str name, const char *const *names, size_t n)
{
    static const char *const words[][2] = {{"stages", "agents"}, {"steps", "agents"}, {"nodes", "agents"}};

    for (size_t i = 0; i < RV_COUNT(words); i++)
        for (size_t k = 0; rv_str_is(name, words[i][0]) && k < n; k++)
            if (strcmp(names[k], words[i][1]) == 0)
                return names[k];
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
static bool hint_parts(rv_str word, const char *const *names, size_t n, char *hint, size_t size)
{
    size_t len = (size_t)snprintf(hint, size, "did you mean "), n_found = 0;

    for (size_t i = 0; word.len > 0 && i < n; i++)
        if (has_part(names[i], word))
            append_name(hint, size, &len, n_found++ == 0, names[i]);
    if (n_found > 0 && len < size)
        snprintf(hint + len, size - len, "?");
    return n_found > 0;
}

static void list_keys(const struct rv_key *keys, size_t n_keys, char hint[MAX_HINT_NAMES])
{
    size_t len = (size_t)snprintf(hint, MAX_HINT_NAMES, "keys here: ");

    for (size_t i = 0; i < n_keys; i++)
        append_name(hint, MAX_HINT_NAMES, &len, i == 0, keys[i].name);
}

static void unknown_key(struct rv_key_reader *r, const struct rv_node *key, const struct rv_key *keys, size_t n_keys)
{
    char hint[MAX_HINT_NAMES] = "";
    const char **names = malloc((n_keys > 0 ? n_keys : 1) * sizeof *names);
    const char *near;

    if (!names) {
        out_of_memory(r);
        return;
    }
    for (size_t i = 0; i < n_keys; i++)
        names[i] = keys[i].name;
    near = other_word(key->text, names, n_keys);
    if (!near)
        near = rv_nearest(key->text, names, n_keys);
    if (near) {
        snprintf(hint, sizeof hint, "did you mean \"%s\"?", near);
    } else if (hint_parts(key->text, names, n_keys, hint, sizeof hint)) {
        /* it is written */
    } else if (memchr(key->text.ptr, ':', key->text.len)) {
        snprintf(hint, sizeof hint, "a blank belongs between \":\" and the value");
    } else {
        list_keys(keys, n_keys, hint);
    }
    free(names);
    rv_keys_finding(r, RV_SEVERITY_ERROR, &key->src, hint, "unknown key \"%s%s\"", path_of(r), key->text.ptr);
}

static void unknown_term(struct rv_key_reader *r, const struct rv_node *node, const struct rv_key *key,
                         const struct rv_term_list *list)
{
    char hint[MAX_HINT_NAMES] = "";
    size_t len = 0;
    const char **names = malloc((list->n > 0 ? list->n : 1) * sizeof *names);
    const char *near;

    if (!names) {
        out_of_memory(r);
        return;
    }
    for (size_t i = 0; i < list->n; i++)
        names[i] = list->terms[i].text;
    near = rv_nearest(node->text, names, list->n);
    if (near)
        len = (size_t)snprintf(hint, sizeof hint, "did you mean \"%s\"? ", near);
    len += (size_t)snprintf(hint + len, sizeof hint - len, "legal: ");
    for (size_t i = 0; i < list->n; i++)
        append_name(hint, sizeof hint, &len, i == 0, names[i]);
    free(names);
    rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, hint, "%s%s is \"%.*s\", which is not a valid %s", path_of(r),
                    key->name, RV_STR_ARG(rv_utf8_cut(node->text, MAX_QUOTED)), list->kind);
}

/* --- Values --- */

const struct rv_term_list *rv_key_terms(const struct rv_key *key)
{
    size_t n = 0;
    const struct rv_term_list *lists = rv_term_lists(&n);

    if (key->terms)
        return key->terms;
    for (size_t i = 0; i < n; i++)
        if (strcmp(lists[i].name, key->term_list) == 0)
            return &lists[i];
    return NULL;
}

static bool has_range(const struct rv_key *key)
{
    return key->min != 0 || key->max != 0;
}

/* What may be written instead. A hidden value is not to be told by which bound it broke. */
static void range_hint(const struct rv_key_reader *r, const struct rv_key *key, bool low, char out[MAX_QUOTED + 64])
{
    if (r->hide_values && key->max >= key->min)
        snprintf(out, MAX_QUOTED + 64, "legal: %.15g to %.15g", key->min, key->max);
    else if (r->hide_values)
        snprintf(out, MAX_QUOTED + 64, "legal: %.15g or more", key->min);
    else if (key->default_text)
        snprintf(out, MAX_QUOTED + 64, "left out, it is %.*s", MAX_QUOTED, key->default_text);
    else
        snprintf(out, MAX_QUOTED + 64, "the nearest legal value is %.15g", low ? key->min : key->max);
}

/* Says which bound is broken; true when there is one. */
static bool out_of_range(struct rv_key_reader *r, const struct rv_node *node, const struct rv_key *key, double value)
{
    bool low = has_range(key) && value < key->min;
    bool high = has_range(key) && key->max >= key->min && value > key->max;
    char hint[MAX_QUOTED + 64] = "";

    if (!low && !high && isfinite(value))
        return false;
    if (has_range(key))
        range_hint(r, key, low, hint);
    if (r->hide_values)
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, hint[0] ? hint : NULL, "%s%s is out of range", path_of(r),
                        key->name);
    else if (low || high)
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, hint, "%s%s must be at %s %.17g, not %s", path_of(r),
                        key->name, low ? "least" : "most", low ? key->min : key->max, node->text.ptr);
    else
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%s%s must be a finite number, not %s", path_of(r),
                        key->name, node->text.ptr);
    return true;
}

static bool read_int(struct rv_key_reader *r, const struct rv_node *node, const struct rv_key *key, int64_t *out)
{
    bool is_whole = node->kind == RV_NODE_FLOAT && isfinite(node->f64) && floor(node->f64) == node->f64;

    if (node->kind != RV_NODE_INT && !is_whole) {
        rv_keys_wrong_type(r, node, key->name, "an integer");
        return false;
    }
    if (out_of_range(r, node, key, node->f64))
        return false;
    if (is_whole && fabs(node->f64) >= 9.2e18) {
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%s%s does not fit 64 bits", path_of(r), key->name);
        return false;
    }
    *out = node->kind == RV_NODE_INT ? node->i64 : (int64_t)node->f64; /* 3.0 is 3 */
    return true;
}

static bool read_term(struct rv_key_reader *r, const struct rv_node *node, const struct rv_key *key, int *out)
{
    const struct rv_term_list *list = rv_key_terms(key);

    if (node->kind != RV_NODE_STR) {
        rv_keys_wrong_type(r, node, key->name, "a string");
        return false;
    }
    for (size_t i = 0; list && i < list->n; i++) {
        if (rv_str_is(node->text, list->terms[i].text)) {
            *out = (int)i;
            return true;
        }
    }
    if (list)
        unknown_term(r, node, key, list);
    return false;
}

void rv_jw_kv_list(rv_jw *w, const char *key, const struct rv_str_list *list)
{
    rv_jw_key(w, key);
    rv_jw_arr(w);
    for (size_t i = 0; i < list->n; i++)
        rv_jw_text(w, list->items[i]);
    rv_jw_arr_end(w);
}

void rv_keys_str_list(struct rv_key_reader *r, const struct rv_node *node, const char *key, struct rv_str_list *out)
{
    if (node->kind != RV_NODE_LIST) {
        rv_keys_wrong_type(r, node, key, "a list of strings");
        return;
    }
    out->items = rv_arena_alloc(r->arena, (node->n + 1) * sizeof *out->items);
    out->srcs = rv_arena_alloc(r->arena, (node->n + 1) * sizeof *out->srcs);
    if (!out->items || !out->srcs) {
        out_of_memory(r);
        return;
    }
    out->is_set = true;
    out->n = 0;
    for (size_t i = 0; i < node->n; i++) {
        const struct rv_node *item = node->items[i];
        if (item->kind != RV_NODE_STR) {
            char label[128];
            snprintf(label, sizeof label, "%s[%zu]", key, i);
            rv_keys_wrong_type(r, item, label, "a string");
            continue;
        }
        out->items[out->n] = item->text.ptr;
        out->srcs[out->n++] = item->src;
    }
}

static void read_nested(struct rv_key_reader *r, const struct rv_node *node, const struct rv_key *key, void *target)
{
    char path[160];
    const char *outer = r->path;

    snprintf(path, sizeof path, "%s%s.", path_of(r), key->name);
    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, key->name, "a map");
        return;
    }
    r->path = path;
    rv_keys_read(r, node, key->keys, key->n_keys, target);
    r->path = outer;
}

void rv_keys_json(struct rv_key_reader *r, const struct rv_node *node, json_object **out)
{
    rv_err *err = NULL;
    int rc = rv_node_to_json(node, out, &err);

    if (rc == RV_E_NOMEM)
        out_of_memory(r);
    else if (rc < 0)
        rv_findings_add_err(r->findings, RV_SEVERITY_ERROR, &node->src, err);
    rv_err_free(err);
}

static void read_value(struct rv_key_reader *r, const struct rv_node *node, const struct rv_key *key, char *base)
{
    void *target = base + key->offset;

    if (key->is_null_offset && node->kind == RV_NODE_NULL) {
        *(bool *)(base + key->is_null_offset) = true;
        return;
    }
    switch (key->type) {
    case RV_KEY_STR:
        if (node->kind != RV_NODE_STR)
            rv_keys_wrong_type(r, node, key->name, "a string");
        else if (key->required && node->text.len == 0)
            rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%s%s is required but empty", path_of(r),
                            key->name);
        else
            *(const char **)target = node->text.ptr;
        break;
    case RV_KEY_BOOL:
        if (node->kind != RV_NODE_BOOL)
            rv_keys_wrong_type(r, node, key->name, "a boolean");
        else
            *(bool *)target = node->i64 != 0;
        break;
    case RV_KEY_INT:
        read_int(r, node, key, target);
        break;
    case RV_KEY_FLOAT:
        if (node->kind != RV_NODE_FLOAT && node->kind != RV_NODE_INT)
            rv_keys_wrong_type(r, node, key->name, "a number");
        else if (!out_of_range(r, node, key, node->f64))
            *(double *)target = node->f64;
        break;
    case RV_KEY_TERM:
        read_term(r, node, key, target);
        break;
    case RV_KEY_STR_LIST:
        rv_keys_str_list(r, node, key->name, target);
        break;
    case RV_KEY_JSON:
        rv_keys_json(r, node, target);
        break;
    case RV_KEY_CUSTOM:
        key->read(r, node, target);
        break;
    case RV_KEY_MAP:
        read_nested(r, node, key, target);
        break;
    }
    if (key->is_set_offset)
        *(bool *)(base + key->is_set_offset) = true;
    if (key->src_offset)
        *(struct rv_src *)(base + key->src_offset) = node->src;
}

static void set_default(struct rv_key_reader *r, const struct rv_key *key, char *base)
{
    void *target = base + key->offset;
    struct rv_node node = {.kind = RV_NODE_NULL};

    if (key->type == RV_KEY_STR)
        *(const char **)target = "";
    else if (key->type == RV_KEY_TERM)
        *(int *)target = RV_UNSET;
    if (!key->default_text)
        return;
    node.text = rv_str_of(key->default_text);
    if (node.text.len >= 2 && node.text.ptr[0] == '"') { /* a JSON string; defaults need no escapes */
        node.kind = RV_NODE_STR;
        node.text.len -= 2;
        node.text.ptr = rv_arena_dup(r->arena, (rv_str){key->default_text + 1, node.text.len});
        if (!node.text.ptr) {
            out_of_memory(r);
            return;
        }
    } else {
        rv_scalar_resolve(&node);
    }
    if (key->type == RV_KEY_STR || key->type == RV_KEY_BOOL || key->type == RV_KEY_INT || key->type == RV_KEY_FLOAT ||
        key->type == RV_KEY_TERM) {
        struct rv_key plain = *key;
        plain.is_set_offset = 0;
        plain.src_offset = 0;
        read_value(r, &node, &plain, base);
    }
}

static const struct rv_key *find_key(const struct rv_key *keys, size_t n_keys, rv_str name)
{
    for (size_t i = 0; i < n_keys; i++)
        if (rv_str_is(name, keys[i].name))
            return &keys[i];
    return NULL;
}

/* What the key is for, as the rest of a sentence. */
static void say_missing(const struct rv_key *key, char hint[MAX_HINT_NAMES])
{
    const char *doc = key->doc ? key->doc : "";
    size_t len = strlen(doc);
    bool is_word = len > 1 && doc[0] >= 'A' && doc[0] <= 'Z' && doc[1] >= 'a' && doc[1] <= 'z';
    bool is_article = len > 1 && doc[0] == 'A' && doc[1] == ' ';

    len -= len > 0 && doc[len - 1] == '.' ? 1 : 0;
    snprintf(hint, MAX_HINT_NAMES, "add `%s:`%s%.*s", key->name, len > 0 ? ", " : "", (int)len, doc);
    if (is_word || is_article) {
        char *first = hint + strlen("add `") + strlen(key->name) + strlen(":`, ");
        *first = (char)(*first - 'A' + 'a');
    }
}

void rv_keys_read(struct rv_key_reader *r, const struct rv_node *map, const struct rv_key *keys, size_t n_keys,
                  void *target)
{
    for (size_t i = 0; i < n_keys; i++)
        set_default(r, &keys[i], target);
    if (map->kind != RV_NODE_MAP) {
        char value[MAX_QUOTED + 8], hint[MAX_HINT_NAMES];
        quoted(r, map, value);
        list_keys(keys, n_keys, hint);
        rv_keys_finding(r, RV_SEVERITY_ERROR, &map->src, hint, "must be a map, not %s%s", rv_node_kind_text(map->kind),
                        value);
        return;
    }
    for (size_t i = 0; i < map->n && r->rc == 0; i++) {
        const struct rv_key *key = find_key(keys, n_keys, map->keys[i]->text);
        if (key)
            read_value(r, map->items[i], key, target);
        else
            unknown_key(r, map->keys[i], keys, n_keys);
    }
    for (size_t i = 0; i < n_keys; i++) {
        char hint[MAX_HINT_NAMES];
        if (!keys[i].required || rv_node_get(map, keys[i].name))
            continue;
        say_missing(&keys[i], hint);
        rv_keys_finding(r, RV_SEVERITY_ERROR, &map->src, hint, "%s%s is required", path_of(r), keys[i].name);
    }
}
