/* A document from its text to the end of its life: text, tree, fields, and what holds between them. */
#include <stdlib.h>
#include <string.h>

#include "config/agentdoc/agentdoc.h"
#include "config/agentdoc/agentdoc_internal.h"

/* --- Findings that say what was probably meant --- */

#define MAX_SAID 2048 /* bytes of a finding or a hint: a person reads it; it quotes keys of RV_AGENTDOC_MAX_KEY */

void agentdoc_near(struct rv_agentdoc_reading *r, enum rv_severity severity, const struct rv_src *src, const char *near,
                   const char *otherwise, const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(MAX_SAID);
    rv_buf hint = RV_BUF_INIT(MAX_SAID);
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(&text, fmt, args);
    va_end(args);
    if (near)
        rv_buf_printf(&hint, "did you mean \"%s\"?", near);
    if (text.rc == RV_E_NOMEM || hint.rc == RV_E_NOMEM)
        r->keys.rc = RV_E_NOMEM;
    else
        rv_keys_add_finding(&r->keys, severity, src, near ? rv_buf_cstr(&hint) : otherwise, "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_buf_fini(&hint);
}

const char *agentdoc_listed(struct rv_agentdoc_reading *r, const char *intro, const char *const *names, size_t n)
{
    rv_buf text = RV_BUF_INIT(MAX_SAID);
    char *copy = NULL;

    rv_buf_puts(&text, intro);
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(&text, "%s%s", i > 0 ? ", " : "", names[i]);
    if (text.rc == 0)
        copy = rv_arena_dup(r->keys.arena, rv_buf_str(&text));
    if (!copy)
        r->keys.rc = RV_E_NOMEM;
    rv_buf_fini(&text);
    return copy;
}

/* --- Its text as a tree of nodes --- */

/* JSON is YAML, mostly: where libyaml would refuse it or read other values
 * than JSON has (surrogate pairs, tabs, U+0085 in a string), the values are those of JSON. Then only the file has a
 * place. */

/* Whether YAML has the same values: then its places are of use. */
static int read_by_yaml(rv_str text, const char *name, json_object *wanted, rv_yaml **out, rv_err **err)
{
    rv_findings *ignored = rv_findings_new();
    json_object *got = NULL;
    rv_yaml *yaml = NULL;
    int rc;

    if (!ignored)
        return RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", name);
    rc = rv_yaml_parse(text, name, ignored, &yaml, err);
    rv_findings_free(ignored);
    if (rc == 0 && yaml && rv_yaml_root(yaml)) {
        rv_err *why = NULL;
        rc = rv_node_build_json(rv_yaml_root(yaml), &got, &why);
        if (rc == RV_E_NOMEM)
            rc = RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", name);
        else if (rc == 0 && rv_json_equal(got, wanted)) {
            *out = yaml;
            yaml = NULL;
        } else {
            rc = 0;
        }
        rv_err_free(why);
    }
    json_object_put(got);
    rv_yaml_free(yaml);
    return rc;
}

/* *root stays NULL when the text is not a JSON object. */
static int read_json(rv_str text, const char *name, struct rv_agentdoc_owner *owner, const struct rv_node **root,
                     rv_err **err)
{
    struct rv_json_opts opts = {.max_bytes = RV_AGENTDOC_MAX_BYTES, .max_depth = RV_YAML_MAX_DEPTH};
    struct rv_src src = {rv_arena_dup(owner->arena, rv_str_of(name)), 1, 1};
    json_object *v = NULL;
    rv_err *why = NULL;
    int rc = src.file ? rv_json_parse(text, &opts, &v, &why) : RV_E_NOMEM;

    rv_err_free(why);
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", name);
    if (rc < 0)
        return 0; /* YAML's messages have places */
    rc = read_by_yaml(text, name, v, &owner->yaml, err);
    if (rc == 0 && owner->yaml)
        *root = rv_yaml_root(owner->yaml);
    else if (rc == 0)
        *root = rv_node_of_json(v, &src, owner->arena);
    json_object_put(v);
    return rc < 0 || *root ? rc : RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", name);
}

static void check_text(const struct rv_node *node, bool is_key, rv_findings *findings)
{
    const char *fault = NULL;

    if (node->text.len > 0 && memchr(node->text.ptr, 0, node->text.len))
        fault = "has a NUL character"; /* as YAML's reader has it: JSON must not bring in more */
    else if (is_key && node->text.len > RV_AGENTDOC_MAX_KEY)
        fault = "is longer than " RV_LIMIT_TEXT(RV_AGENTDOC_MAX_KEY) " bytes";
    if (fault)
        rv_findings_add(findings, RV_SEVERITY_ERROR, &node->src, NULL, "agent: the %s \"%.40s\" %s",
                        is_key ? "key" : "string", node->text.ptr, fault);
}

/* Bytes of all texts; faults of single ones are findings. */
static size_t measure(const struct rv_node *node, rv_findings *findings)
{
    size_t sum = node->text.len + 8;

    check_text(node, false, findings);
    for (size_t i = 0; i < node->n && sum <= RV_AGENTDOC_MAX_TREE; i++) {
        if (node->keys) {
            sum += node->keys[i]->text.len;
            check_text(node->keys[i], true, findings);
        }
        sum += measure(node->items[i], findings);
    }
    return sum;
}

/* text as a tree: YAML, or strict JSON that YAML would read otherwise. *root NULL: findings say why. */
static int source(rv_str text, const char *name, rv_findings *findings, struct rv_agentdoc_owner *owner,
                  const struct rv_node **root, rv_err **err)
{
    rv_str start = rv_str_trim(text);
    size_t n_before = rv_findings_n_errors(findings);
    int rc = 0;

    *root = NULL;
    if (start.len > 0 && start.ptr[0] == '{')
        rc = read_json(text, name, owner, root, err);
    if (rc == 0 && !*root) {
        rc = rv_yaml_parse(text, name, findings, &owner->yaml, err);
        if (rc == 0 && owner->yaml)
            *root = rv_yaml_root(owner->yaml);
    }
    if (rc < 0 || (!*root && rv_findings_n_errors(findings) > n_before))
        return rc;
    if (!*root || (*root)->kind != RV_NODE_MAP) {
        struct rv_src src = {name, 1, 1};
        rv_findings_add(findings, RV_SEVERITY_ERROR, *root ? &(*root)->src : &src,
                        "begin with `name:` and `description:`", "an agent document must be a map, not %s",
                        *root ? rv_node_kind_text((*root)->kind) : "empty");
        *root = NULL;
        return rv_findings_check(findings, err);
    }
    if (measure(*root, findings) > RV_AGENTDOC_MAX_TREE)
        return RV_FAIL(err, RV_E_LIMIT,
                       "the agent document \"%s\" has more than %zu bytes with its aliases written out", name,
                       RV_AGENTDOC_MAX_TREE);
    return 0;
}

/* --- Words of whose text is shown and kept when agents ask each other --- */

#define RV_CHILD_TEXT_WORD(n, t, m) [RV_CHILD_TEXT_##n] = (t),
static const char *const words[] = {RV_CHILD_TEXTS(RV_CHILD_TEXT_WORD)};

const char *rv_child_text_text(enum rv_child_text child_text)
{
    return words[child_text];
}

int rv_child_text_of(rv_str word)
{
    for (int i = 0; i < RV_N_CHILD_TEXTS; i++)
        if (rv_str_is(word, words[i]))
            return i;
    return RV_UNSET;
}

/* --- The gathered fields into the document, and what holds between them --- */

static void read_int(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f, int64_t *out)
{
    const struct rv_agentdoc_key *row = f->row;
    int64_t n = 0;

    if (!agentdoc_int(r, f->value, row->name, row->min, &n))
        return;
    if (row->max > 0 && n > row->max)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &f->value->src, NULL, "%s must be %lld or less, not %lld",
                            row->name, (long long)row->max, (long long)n);
    else
        *out = n;
}

static void read_field(struct rv_agentdoc_reading *r, const struct rv_agentdoc_field *f)
{
    const struct rv_agentdoc_key *row = f->row;
    char *base = (char *)r->doc;

    if (f->value->kind == RV_NODE_NULL && row->null_is_unset)
        return;
    if (f->value->kind == RV_NODE_NULL) {
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &f->value->src, "leave the key out to get its default",
                            "%s must not be null", row->name);
        return;
    }
    switch (row->kind) {
    case RV_AGENTDOC_TEXT:
        agentdoc_text(r, f->value, row->name, (const char **)(void *)(base + row->offset));
        break;
    case RV_AGENTDOC_BOOL:
        agentdoc_bool(r, f->value, row->name, (bool *)(void *)(base + row->offset));
        break;
    case RV_AGENTDOC_INT:
        read_int(r, f, (int64_t *)(void *)(base + row->offset));
        break;
    case RV_AGENTDOC_CUSTOM:
        if (row->read)
            row->read(r, f);
        else
            *(const struct rv_node **)(void *)((char *)r + row->tree) = f->value;
        break;
    }
    if (row->src_offset)
        memcpy(base + row->src_offset, &f->value->src, sizeof f->value->src);
}

static bool has_field(const struct rv_agentdoc_reading *r, const char *name)
{
    for (size_t i = 0; i < r->n_fields; i++)
        if (r->fields[i].row && strcmp(r->fields[i].row->name, name) == 0)
            return true;
    return false;
}

static void warn(struct rv_agentdoc_reading *r, const struct rv_src *src, const char *hint, const char *text)
{
    rv_keys_add_finding(&r->keys, RV_SEVERITY_WARNING, src, hint, "%s", text);
}

static const struct rv_node *value_of(const struct rv_agentdoc_reading *r, const char *name)
{
    for (size_t i = 0; i < r->n_fields; i++)
        if (r->fields[i].row && strcmp(r->fields[i].row->name, name) == 0)
            return r->fields[i].value;
    return NULL;
}

/* Two members under one name: only one of them would be passed on. */
static void check_targets(struct rv_agentdoc_reading *r, const struct rv_node *map)
{
    static const char hint[] = "give each member a parameter of its own";

    for (size_t i = 0; i < map->n; i++) {
        const char *to = map->items[i]->kind == RV_NODE_STR ? map->items[i]->text.ptr : NULL;
        const char *from = map->keys[i]->text.ptr;
        for (size_t k = 0; to && k < i; k++)
            if (map->items[k]->kind == RV_NODE_STR && strcmp(map->items[k]->text.ptr, to) == 0)
                rv_keys_add_finding(
                    &r->keys, RV_SEVERITY_WARNING, &map->items[i]->src, hint,
                    "chained_map: \"%.60s\" and \"%.60s\" both become \"%.60s\", so one of them is lost",
                    map->keys[k]->text.ptr, from, to);
        if (to && strcmp(to, from) != 0 && rv_node_get(r->properties, to) && !rv_node_get(map, to))
            rv_keys_add_finding(
                &r->keys, RV_SEVERITY_WARNING, &map->items[i]->src, hint,
                "chained_map: \"%.60s\" becomes \"%.60s\", as a property is called, so one of them is lost", from, to);
    }
}

/* p8 W37: what the map names must be there to be passed on. */
static void check_chain(struct rv_agentdoc_reading *r)
{
    const struct rv_node *map = r->chained_map;
    const char **names;
    size_t n = r->properties && r->properties->kind == RV_NODE_MAP ? r->properties->n : 0;

    if (r->doc->chained_tool && !r->doc->structured_output)
        warn(r, &r->doc->chained_src, "set structured_output: true",
             "chained_tool is only called with structured output");
    if (!map || map->kind != RV_NODE_MAP)
        return;
    if (!r->doc->chained_tool)
        warn(r, &map->src, "name the tool in chained_tool", "chained_map has no effect without chained_tool");
    names = agentdoc_room(r, n, sizeof *names);
    if (!names)
        return;
    for (size_t i = 0; i < n; i++)
        names[i] = r->properties->keys[i]->text.ptr;
    for (size_t i = 0; i < map->n; i++) {
        const struct rv_node *key = map->keys[i];
        if (!rv_node_get(r->properties, key->text.ptr))
            agentdoc_near(r, RV_SEVERITY_ERROR, &key->src, rv_nearest(key->text, names, n), NULL,
                          "chained_map: no property is called \"%s\"", key->text.ptr);
    }
    check_targets(r, map);
}

/* A router that names itself leads nowhere: a person would be shown its choice instead of an answer. */
static void check_routing(struct rv_agentdoc_reading *r)
{
    const struct rv_node *map = value_of(r, "routing");
    const struct rv_str_list *routes = &r->doc->routes;
    const char *name = r->doc->name, *fallback = r->doc->routing_fallback;

    if (!name || !map || map->kind != RV_NODE_MAP)
        return;
    for (size_t i = 0; i < routes->n; i++)
        if (strcmp(routes->items[i], name) == 0)
            rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &routes->srcs[i], "list the agents that answer",
                                "routing.agents has \"%.60s\" itself: a router does not answer", name);
    if (fallback && strcmp(fallback, name) == 0)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &rv_node_get(map, "fallback")->src,
                            "name an agent that answers, or leave it out: then it is " RV_AGENTDOC_FALLBACK,
                            "routing.fallback is \"%.60s\" itself: a router does not answer", name);
    if (!fallback && strcmp(name, RV_AGENTDOC_FALLBACK) == 0)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &map->src, "add `fallback:` with an agent that answers",
                            "routing.fallback is %s unless told, which is this agent", RV_AGENTDOC_FALLBACK);
}

/* What a router chooses is the member `agent` of its output: without it each message goes to the fallback. */
static void check_choice(struct rv_agentdoc_reading *r)
{
    const struct rv_node *map = value_of(r, "routing");

    if (r->doc->routes.n == 0 || !map)
        return;
    if (!r->doc->structured_output)
        warn(r, &map->src, "set structured_output: true, with a property `agent`",
             "routing leads to the fallback alone without structured_output");
    else if (!r->properties || !rv_node_get(r->properties, "agent"))
        warn(r, r->properties ? &r->properties->src : &map->src, "add `agent: {type: string, enum: [...]}`",
             "routing leads to the fallback alone: no property is called \"agent\"");
}

static void check_together(struct rv_agentdoc_reading *r)
{
    if (!has_field(r, "name"))
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &r->doc->src, "add `name:` with one word", "name is required");
    if (!has_field(r, "description"))
        warn(r, &r->doc->src, "write it, or say `description: \"\"`",
             has_field(r, "system_prompt") ? "there is no description: lists of agents have nothing to show for it"
                                           : "there is no description: the prompt is empty");
    if (r->doc->structured_output && (!r->properties || (r->properties->kind == RV_NODE_MAP && r->properties->n == 0)))
        warn(r, r->properties ? &r->properties->src : &r->doc->src, "add the fields of the output as properties",
             "structured_output has no effect without properties");
    check_chain(r);
    check_routing(r);
    check_choice(r);
}

/* The fields' values into the document; then what holds between them. */
static void read_fields(struct rv_agentdoc_reading *r)
{
    for (size_t i = 0; i < r->n_fields && r->keys.rc == 0; i++)
        if (r->fields[i].row)
            read_field(r, &r->fields[i]);
    if (r->keys.rc == 0)
        agentdoc_read_resources(r);
    if (r->keys.rc == 0)
        agentdoc_check_schema(r);
    if (r->keys.rc == 0)
        check_together(r);
}

/* --- Its life --- */

#define MAX_ARENA ((size_t)64 << 20) /* bytes: the caps on text, tree and tools end long before */

bool rv_agentdoc_is_name(rv_str name)
{
    if (name.len == 0 || name.len > RV_AGENTDOC_MAX_NAME)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!is_word && (i == 0 || (c != '-' && c != '.'))) /* ".." is not a name: names become files */
            return false;
    }
    return true;
}

bool rv_agentdoc_names_tool(const struct rv_agentdoc *d, const char *name)
{
    for (size_t i = 0; i < d->n_tools; i++)
        if (strcmp(d->tools[i].name, name) == 0)
            return true;
    return false;
}

const struct rv_agentdoc_tool *rv_agentdoc_find_resource(const struct rv_agentdoc *d, const char *name)
{
    for (size_t i = 0; i < d->n_tools; i++)
        if (strcmp(d->tools[i].name, name) == 0)
            return d->tools[i].uri && !d->tools[i].server ? &d->tools[i] : NULL;
    return NULL;
}

static struct rv_agentdoc_owner *new_owner(void)
{
    struct rv_agentdoc_owner *owner = calloc(1, sizeof *owner);

    if (!owner)
        return NULL;
    owner->arena = rv_arena_new(MAX_ARENA);
    if (!owner->arena) {
        free(owner);
        return NULL;
    }
    owner->doc = (struct rv_agentdoc){
        .name = "",
        .kind = "agent",
        .version = "1.0.0",
        .description = "",
        .routing_enabled = true,
        .routing_max_turns = 20,
        .always_include_last = RV_UNSET,
        .compaction = RV_UNSET,
        .moment_token_threshold = RV_UNSET,
        .moment_max_inject = RV_UNSET,
        .moment_max_tokens = RV_UNSET,
        .replay = RV_UNSET,
        .child_text = RV_UNSET,
    };
    return owner;
}

/* What is read can be written and read again, aliases written out. */
static int check_size(const struct rv_agentdoc *d, const char *name, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    rv_jw w = rv_jw_on(&text);
    int rc;

    rv_agentdoc_write_json(d, &w);
    rc = text.rc;
    rv_buf_fini(&text);
    if (rc == RV_E_LIMIT)
        return RV_FAIL(err, rc, "the agent document \"%s\" has more than %zu bytes when it is written out", name,
                       RV_AGENTDOC_MAX_BYTES);
    return rc < 0 ? RV_FAIL(err, rc, "read the agent document \"%s\"", name) : 0;
}

static int read_root(struct rv_agentdoc_owner *owner, const struct rv_node *root, const char *name,
                     rv_findings *findings, rv_err **err)
{
    struct rv_agentdoc_reading r = {
        .keys = {.arena = owner->arena, .findings = findings, .owner_kind = "agent"},
        .doc = &owner->doc,
    };

    owner->doc.src = root->src;
    agentdoc_gather(&r, root);
    if (r.keys.rc == 0)
        read_fields(&r);
    if (r.keys.rc < 0)
        return RV_FAIL(err, r.keys.rc, "read the agent document \"%s\"", name);
    int rc = agentdoc_flatten(&r, err);
    return rc == 0 ? check_size(&owner->doc, name, err) : rc;
}

/* The document, unless something was found wrong with it. Takes owner. */
static int hand_out(struct rv_agentdoc_owner *owner, int rc, rv_findings *findings, size_t n_before,
                    struct rv_agentdoc **out, rv_err **err)
{
    if (rc == 0)
        rc = rv_findings_check(findings, err);
    if (rc == 0 && rv_findings_n_errors(findings) == n_before)
        *out = &owner->doc;
    else
        rv_agentdoc_free(&owner->doc);
    return rc;
}

int rv_agentdoc_parse(rv_str text, const char *name, rv_findings *findings, struct rv_agentdoc **out, rv_err **err)
{
    size_t n_before = rv_findings_n_errors(findings);
    struct rv_agentdoc_owner *owner = NULL;
    const struct rv_node *root = NULL;

    *out = NULL;
    if (text.len > RV_AGENTDOC_MAX_BYTES)
        return RV_FAIL(err, RV_E_LIMIT, "the agent document \"%s\" has %zu bytes (the limit is %zu)", name, text.len,
                       RV_AGENTDOC_MAX_BYTES);
    owner = new_owner();
    if (!owner)
        return RV_FAIL(err, RV_E_NOMEM, "read the agent document \"%s\"", name);
    int rc = source(text, name, findings, owner, &root, err);
    if (rc == 0 && root)
        rc = read_root(owner, root, name, findings, err);
    return hand_out(owner, rc, findings, n_before, out, err);
}

/* Findings as an error: the first one. */
static int fail_findings(rv_findings *findings, const char *name, rv_err **err)
{
    int rc = rv_findings_raise_first_error(findings, err);

    return rc < 0 ? rc : RV_FAIL(err, RV_E_INVALID, "the agent document \"%s\" has more faults than are kept", name);
}

int rv_agentdoc_read(rv_str text, const char *name, struct rv_agentdoc **out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc *d = NULL;
    int rc;

    if (!findings)
        return RV_FAIL(err, RV_E_NOMEM, "read the agent document \"%s\"", name);
    rc = rv_agentdoc_parse(text, name, findings, &d, err);
    if (rc == 0 && !d)
        rc = fail_findings(findings, name, err);
    rv_findings_free(findings);
    if (rc == 0)
        *out = d;
    return rc;
}

int agentdoc_of_value(json_object *flat, const char *name, struct rv_agentdoc **out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc_owner *owner = findings ? new_owner() : NULL;
    struct rv_src src = {owner ? rv_arena_dup(owner->arena, rv_str_of(name)) : NULL, 1, 1};
    const struct rv_node *root = src.file ? rv_node_of_json(flat, &src, owner->arena) : NULL;
    struct rv_agentdoc *d = NULL;
    int rc = root ? read_root(owner, root, name, findings, err)
                  : RV_FAIL(err, RV_E_NOMEM, "read the agent document \"%s\"", name);

    if (owner)
        rc = hand_out(owner, rc, findings, 0, &d, err);
    if (rc == 0 && !d)
        rc = fail_findings(findings, name, err);
    rv_findings_free(findings);
    if (rc == 0)
        *out = d;
    return rc;
}

void rv_agentdoc_free(struct rv_agentdoc *d)
{
    struct rv_agentdoc_owner *owner = (struct rv_agentdoc_owner *)(void *)d;

    if (!owner)
        return;
    json_object_put(d->flat); /* properties, required, defs and chained_map are parts of the flat document */
    rv_yaml_free(owner->yaml);
    rv_arena_free(owner->arena);
    free(owner);
}
