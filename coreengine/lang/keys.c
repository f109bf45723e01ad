/* Reading a map by a table of rows: what a key is called, what it takes, where it goes, what it is worth when absent.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coreengine/base/base.h"
#include "coreengine/lang/yaml_internal.h"

#define MAX_QUOTED 60 /* bytes of a user's value in a message: the message stays on one line of a terminal */

void rv_keys_add_finding(struct rv_key_reader *r, enum rv_severity severity, const struct rv_src *src, const char *hint,
                         const char *fmt, ...)
{
    char text[LANG_MAX_FINDING];
    va_list args;

    va_start(args, fmt);
    rv_vformat(text, sizeof text, fmt, args);
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

/* inner: a key that the wanted map may have; NULL: what says what its keys are. */
static void wrong_type(struct rv_key_reader *r, const struct rv_node *node, const char *key, const char *what,
                       const char *inner)
{
    char value[MAX_QUOTED + 8], hint[RV_KEYS_MAX_HINT];
    bool has_hint = lang_keys_type_hint(r, node, what, inner, hint);

    quoted(r, node, value);
    rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, has_hint ? hint : NULL, "%s%s must be %s, not %s%s",
                        path_of(r), key, what, rv_node_kind_text(node->kind), value);
}

void rv_keys_add_wrong_type(struct rv_key_reader *r, const struct rv_node *node, const char *key, const char *what)
{
    wrong_type(r, node, key, what, NULL);
}

void rv_keys_add_not_a_map(struct rv_key_reader *r, const struct rv_node *node, const char *key, const char *inner)
{
    wrong_type(r, node, key, "a map", inner);
}

static void out_of_memory(struct rv_key_reader *r)
{
    r->rc = RV_E_NOMEM;
}

static void unknown_term(struct rv_key_reader *r, const struct rv_node *node, const struct rv_key *key,
                         const struct rv_term_list *list)
{
    char hint[RV_KEYS_MAX_HINT] = "";
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
        lang_keys_append_name(hint, &len, i == 0, names[i]);
    free(names);
    rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, hint, "%s%s is \"%.*s\", which is not a valid %s", path_of(r),
                        key->name, RV_STR_ARG(rv_utf8_cut(node->text, MAX_QUOTED)), list->kind);
}

/* --- Values --- */

const struct rv_term_list *lang_key_terms(const struct rv_key *key)
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
        rv_format(out, MAX_QUOTED + 64, "legal: %.15g to %.15g", key->min, key->max);
    else if (r->hide_values)
        rv_format(out, MAX_QUOTED + 64, "legal: %.15g or more", key->min);
    else if (key->default_text)
        snprintf(out, MAX_QUOTED + 64, "left out, it is %.*s", MAX_QUOTED, key->default_text);
    else
        rv_format(out, MAX_QUOTED + 64, "the nearest legal value is %.15g", low ? key->min : key->max);
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
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, hint[0] ? hint : NULL, "%s%s is out of range", path_of(r),
                            key->name);
    else if (low || high)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, hint, "%s%s must be at %s %.17g, not %s", path_of(r),
                            key->name, low ? "least" : "most", low ? key->min : key->max, node->text.ptr);
    else
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%s%s must be a finite number, not %s", path_of(r),
                            key->name, node->text.ptr);
    return true;
}

static bool read_int(struct rv_key_reader *r, const struct rv_node *node, const struct rv_key *key, int64_t *out)
{
    bool is_whole = node->kind == RV_NODE_FLOAT && isfinite(node->f64) && floor(node->f64) == node->f64;

    if (node->kind != RV_NODE_INT && !is_whole) {
        rv_keys_add_wrong_type(r, node, key->name, "an integer");
        return false;
    }
    if (out_of_range(r, node, key, node->f64))
        return false;
    if (is_whole && fabs(node->f64) >= 9.2e18) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%s%s does not fit 64 bits", path_of(r), key->name);
        return false;
    }
    *out = node->kind == RV_NODE_INT ? node->i64 : (int64_t)node->f64; /* 3.0 is 3 */
    return true;
}

/* A member that has its enum as type takes an int: an enum is as large here, and C lets an int be written to one. */
_Static_assert(sizeof(enum rv_node_kind) == sizeof(int), "compiled with enums of the size of an int");
static bool read_term(struct rv_key_reader *r, const struct rv_node *node, const struct rv_key *key, int *out)
{
    const struct rv_term_list *list = lang_key_terms(key);

    if (node->kind != RV_NODE_STR) {
        rv_keys_add_wrong_type(r, node, key->name, "a string");
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

void rv_keys_read_str_list(struct rv_key_reader *r, const struct rv_node *node, const char *key,
                           struct rv_str_list *out)
{
    if (node->kind != RV_NODE_LIST) {
        rv_keys_add_wrong_type(r, node, key, "a list of strings");
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
            rv_keys_add_wrong_type(r, item, label, "a string");
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
        wrong_type(r, node, key->name, "a map", key->n_keys > 0 ? key->keys[0].name : NULL);
        return;
    }
    r->path = path;
    rv_keys_read(r, node, key->keys, key->n_keys, target);
    r->path = outer;
}

void rv_keys_read_json(struct rv_key_reader *r, const struct rv_node *node, json_object **out)
{
    rv_err *err = NULL;
    int rc = rv_node_build_json(node, out, &err);

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
            rv_keys_add_wrong_type(r, node, key->name, "a string");
        else if (key->required && node->text.len == 0)
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL, "%s%s is required but empty", path_of(r),
                                key->name);
        else
            *(const char **)target = node->text.ptr;
        break;
    case RV_KEY_BOOL:
        if (node->kind != RV_NODE_BOOL)
            rv_keys_add_wrong_type(r, node, key->name, "a boolean");
        else
            *(bool *)target = node->i64 != 0;
        break;
    case RV_KEY_INT:
        read_int(r, node, key, target);
        break;
    case RV_KEY_FLOAT:
        if (node->kind != RV_NODE_FLOAT && node->kind != RV_NODE_INT)
            rv_keys_add_wrong_type(r, node, key->name, "a number");
        else if (!out_of_range(r, node, key, node->f64))
            *(double *)target = node->f64;
        break;
    case RV_KEY_TERM:
        read_term(r, node, key, target);
        break;
    case RV_KEY_STR_LIST:
        rv_keys_read_str_list(r, node, key->name, target);
        break;
    case RV_KEY_JSON:
        rv_keys_read_json(r, node, target);
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
    else if (key->type == RV_KEY_TERM) /* an int, or an enum whose every key has a default */
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
        lang_scalar_resolve(&node);
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
static void say_missing(const struct rv_key *key, char hint[RV_KEYS_MAX_HINT])
{
    const char *doc = key->doc ? key->doc : "";
    size_t len = strlen(doc);
    bool is_word = len > 1 && doc[0] >= 'A' && doc[0] <= 'Z' && doc[1] >= 'a' && doc[1] <= 'z';
    bool is_article = len > 1 && doc[0] == 'A' && doc[1] == ' ';

    len -= len > 0 && doc[len - 1] == '.' ? 1 : 0;
    snprintf(hint, RV_KEYS_MAX_HINT, "add `%s:`%s%.*s", key->name, len > 0 ? ", " : "", (int)len, doc);
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
        char value[MAX_QUOTED + 8], hint[RV_KEYS_MAX_HINT];
        quoted(r, map, value);
        lang_keys_list(r, RV_STR_LIT(""), keys, n_keys, hint);
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &map->src, hint, "must be a map, not %s%s",
                            rv_node_kind_text(map->kind), value);
        return;
    }
    for (size_t i = 0; i < map->n && r->rc == 0; i++) {
        const struct rv_key *key = find_key(keys, n_keys, map->keys[i]->text);
        if (key)
            read_value(r, map->items[i], key, target);
        else
            lang_keys_unknown(r, map->keys[i], keys, n_keys);
    }
    for (size_t i = 0; i < n_keys; i++) {
        char hint[RV_KEYS_MAX_HINT];
        if (!keys[i].required || rv_node_get(map, keys[i].name))
            continue;
        say_missing(&keys[i], hint);
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &map->src, hint, "%s%s is required", path_of(r), keys[i].name);
    }
}
