/* Reading a script: its sections, their lists, the tools it declares and the answers of people. And its text again: the
 * bytes that it was read from, or, when it stands inside another file, its node as JSON. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/script/script_internal.h"

void *script_array(struct script_reader *r, size_t n, size_t size)
{
    void *items = rv_arena_alloc(r->s->arena, (n ? n : 1) * size);
    if (!items)
        r->keys.rc = RV_E_NOMEM;
    return items;
}

static void read_entry(struct script_reader *r, enum rv_script_kind kind, const struct rv_node *node,
                       struct script_entry *out)
{
    const struct script_table *t = script_table_of(kind);
    struct script_raw_entry raw = {.outcome = RV_UNSET, .raise_kind = RV_UNSET, .finish = RV_UNSET, .src = node->src};

    size_t before = rv_findings_n_errors(r->keys.findings);
    rv_keys_read(&r->keys, node, t->keys, t->n_keys, &raw);
    if (rv_findings_n_errors(r->keys.findings) == before && r->keys.rc == 0) {
        script_entry_make(r, kind, &raw, out);
        return;
    }
    *out = (struct script_entry){.stage = raw.stage, .tool = raw.tool, .src = raw.src}; /* enough said about the rest */
    script_raw_fini(&raw);
}

/* Entries of one list. key: what the list belongs to, for messages. */
static void read_list(struct script_reader *r, enum rv_script_kind kind, const char *key, const struct rv_node *node,
                      struct script_list *out)
{
    const struct script_table *t = script_table_of(kind);

    if (!out->name) /* a named one is known by its name */
        out->src = node->src;
    if (node->kind != RV_NODE_LIST) {
        rv_keys_add_wrong_type(&r->keys, node, key, "a list of entries, one per call");
        return;
    }
    if (node->n == 0)
        rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &node->src, "leave the name out, or give it an entry",
                            "%s has no entries", key);
    out->items = script_array(r, node->n, sizeof *out->items);
    const char *outer_kind = r->keys.owner_kind, *outer_name = r->keys.owner_name;
    r->keys.owner_kind = t->what;
    r->keys.owner_name = out->name;
    for (size_t i = 0; out->items && i < node->n && r->keys.rc == 0; i++)
        read_entry(r, kind, node->items[i], &out->items[out->n++]);
    r->keys.owner_kind = outer_kind;
    r->keys.owner_name = outer_name;
}

/* --- tools --- */

static void compile_input(struct script_reader *r, const char *name, const struct rv_node *node, struct script_tool *t)
{
    rv_err *err = NULL;
    const struct rv_node *at = rv_node_get(node, "input_schema");

    if (!t->info.input_json)
        return;
    int rc = rv_schema_compile(t->info.input_json, name, &t->input, &err);
    if (rc == RV_E_NOMEM)
        r->keys.rc = rc;
    else if (rc < 0)
        rv_findings_add_err(r->keys.findings, RV_SEVERITY_ERROR, at ? &at->src : &node->src, err);
    rv_err_free(err);
    t->info.input = t->input;
}

/* A tool of that name; its declaration is read if node is a map. Returns the node of its entries. */
static const struct rv_node *add_tool(struct script_reader *r, const char *name, const struct rv_src *src,
                                      const struct rv_node *node)
{
    rv_script *s = r->s;
    struct script_raw_tool raw = {.description = "", .risk = RV_UNSET, .effect = RV_UNSET};
    struct script_tool *t = &s->tools[s->n_tools];

    int rc = rv_index_add(&s->tool_index, rv_str_of(name), (int)s->n_tools);
    if (rc == RV_E_EXISTS)
        return node; /* of a flat list */
    if (rc < 0) {
        r->keys.rc = rc;
        return NULL;
    }
    s->n_tools++;
    if (node && node->kind == RV_NODE_MAP) {
        const struct script_table *table = &script_tool_table;
        const char *outer_kind = r->keys.owner_kind;
        r->keys.owner_kind = table->what;
        r->keys.owner_name = name;
        rv_keys_read(&r->keys, node, table->keys, table->n_keys, &raw);
        r->keys.owner_kind = outer_kind;
        r->keys.owner_name = NULL;
    }
    t->src = *src;
    t->info = (struct rv_tool_info){.name = name,
                                    .description = raw.description,
                                    .category = RV_UNSET,
                                    .risk = raw.risk == RV_UNSET ? RV_RISK_READ_ONLY : raw.risk,
                                    .effect = raw.effect,
                                    .input_json = raw.input_schema,
                                    .confirm = raw.confirm};
    compile_input(r, name, node, t);
    return node && node->kind == RV_NODE_MAP ? raw.calls : node;
}

static void add_flat_tools(struct script_reader *r, const struct script_list *list)
{
    r->s->tools = script_array(r, list->n, sizeof *r->s->tools);
    for (size_t i = 0; i < list->n && r->keys.rc == 0; i++) {
        const struct script_entry *e = &list->items[i];
        if (e->tool)
            add_tool(r, e->tool, &e->src, NULL);
        else
            rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &e->src, NULL,
                                "an entry of a flat list of tools needs `tool`");
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_tool_names(struct script_reader *r)
{
    rv_script *s = r->s;

    s->tool_names = script_array(r, s->n_tools, sizeof *s->tool_names);
    if (!s->tool_names)
        return;
    for (size_t i = 0; i < s->n_tools; i++)
        s->tool_names[i] = s->tools[i].info.name;
    qsort(s->tool_names, s->n_tools, sizeof *s->tool_names, by_text);
}

/* --- sections --- */

static void check_flat(struct script_reader *r, enum rv_script_kind kind, const struct script_list *list)
{
    bool is_hook = kind == RV_SCRIPT_HOOK;

    for (size_t i = 0; i < list->n; i++)
        if (is_hook ? !list->items[i].tool : !list->items[i].stage)
            rv_keys_add_finding(&r->keys, RV_SEVERITY_ERROR, &list->items[i].src, NULL,
                                "an entry of a flat list of %s needs `%s`", is_hook ? "hooks" : "stages",
                                is_hook ? "hook" : "stage");
}

static void read_named(struct script_reader *r, enum rv_script_kind kind, const struct rv_node *node)
{
    struct script_section *section = &r->s->sections[kind];

    section->lists = script_array(r, node->n, sizeof *section->lists);
    if (kind == RV_SCRIPT_TOOL)
        r->s->tools = script_array(r, node->n, sizeof *r->s->tools);
    for (size_t i = 0; i < node->n && r->keys.rc == 0; i++) {
        struct script_list *list = &section->lists[section->n];
        const struct rv_node *entries = node->items[i];
        bool is_declared = kind == RV_SCRIPT_TOOL && entries->kind == RV_NODE_MAP;

        list->name = node->keys[i]->text.ptr;
        list->src = node->keys[i]->src;
        r->keys.rc = rv_index_add(&section->by_name, rv_str_of(list->name), (int)section->n);
        if (r->keys.rc < 0)
            return;
        section->n++;
        if (kind == RV_SCRIPT_TOOL)
            entries = add_tool(r, list->name, &node->keys[i]->src, entries);
        if (entries && !(is_declared && entries->kind == RV_NODE_LIST && entries->n == 0))
            read_list(r, kind, list->name, entries, list); /* of a tool it may be enough to know it */
    }
}

static void read_section(struct script_reader *r, enum rv_script_kind kind, const struct rv_node *node, const char *key)
{
    struct script_section *section = &r->s->sections[kind];

    if (node->kind == RV_NODE_MAP) {
        read_named(r, kind, node);
    } else if (node->kind == RV_NODE_LIST) {
        section->lists = script_array(r, 1, sizeof *section->lists);
        if (!section->lists)
            return;
        section->is_flat = true;
        section->n = 1;
        read_list(r, kind, key, node, section->lists);
        if (kind == RV_SCRIPT_TOOL)
            add_flat_tools(r, section->lists);
        else if (kind != RV_SCRIPT_MODEL)
            check_flat(r, kind, section->lists);
    } else {
        rv_keys_add_wrong_type(&r->keys, node, key, "a map from name to entries, or a list of entries with matchers");
    }
}

/* The tables call these with the reader as user. */
static struct script_reader *reader_of(struct rv_key_reader *r)
{
    return r->user;
}

static void read_models(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    read_section(reader_of(r), RV_SCRIPT_MODEL, node, "models");
}

static void read_stages(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    read_section(reader_of(r), RV_SCRIPT_STAGE, node, "stages");
}

static void read_tools(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    read_section(reader_of(r), RV_SCRIPT_TOOL, node, "tools");
}

static void read_hooks(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    read_section(reader_of(r), RV_SCRIPT_HOOK, node, "hooks");
}

static void read_answer(struct script_reader *r, const struct rv_node *node, struct script_answer *out)
{
    const struct script_table *t = &script_answer_table;
    struct script_raw_answer raw = {.decision = RV_UNSET};

    rv_keys_read(&r->keys, node, t->keys, t->n_keys, &raw);
    out->response = (struct rv_response){.has_approved = raw.has_approved, .approved = raw.approved, .data = raw.data};
    out->response.arguments = raw.arguments;
    out->response.expired = raw.expires;
    out->response.cancelled = raw.cancels;
    out->stage = raw.stage && raw.stage[0] ? raw.stage : NULL;
    if (raw.choice && raw.choice[0])
        out->response.choice = rv_str_of(raw.choice);
    if (raw.has_text)
        out->response.text = rv_str_of(raw.text);
    if (raw.decision != RV_UNSET)
        out->response.decision = rv_str_of(script_decision_text(raw.decision));
    out->delay_ms = raw.delay_ms;
}

static void read_answers(struct rv_key_reader *keys, const struct rv_node *node, void *target)
{
    struct script_reader *r = reader_of(keys);

    (void)target;
    if (node->kind != RV_NODE_LIST) {
        rv_keys_add_wrong_type(keys, node, "answers", "a list of answers, in the order of the questions");
        return;
    }
    r->s->answers = script_array(r, node->n, sizeof *r->s->answers);
    keys->owner_kind = script_answer_table.what;
    for (size_t i = 0; r->s->answers && i < node->n && keys->rc == 0; i++)
        read_answer(r, node->items[i], &r->s->answers[r->s->n_answers++]);
    keys->owner_kind = "script";
}

static const struct rv_key script_keys[] = {
    {.name = "models",
     .type = RV_KEY_CUSTOM,
     .read = read_models,
     .schema = "{\"$ref\":\"#/$defs/model_section\"}",
     .doc = "Replies of models, by stage."},
    {.name = "stages",
     .type = RV_KEY_CUSTOM,
     .read = read_stages,
     .schema = "{\"$ref\":\"#/$defs/stage_section\"}",
     .doc = "Stages that are played as a whole."},
    {.name = "tools",
     .type = RV_KEY_CUSTOM,
     .read = read_tools,
     .schema = "{\"$ref\":\"#/$defs/tool_section\"}",
     .doc = "Answers of tools, by tool."},
    {.name = "hooks",
     .type = RV_KEY_CUSTOM,
     .read = read_hooks,
     .schema = "{\"$ref\":\"#/$defs/hook_section\"}",
     .doc = "Answers of hooks, by hook (capability.hook)."},
    {.name = "answers",
     .type = RV_KEY_CUSTOM,
     .read = read_answers,
     .schema = "{\"$ref\":\"#/$defs/answer_list\"}",
     .doc = "Answers to interrupts, in the order they are raised."},
    {.name = "repeat",
     .type = RV_KEY_BOOL,
     .offset = offsetof(struct rv_script, repeat),
     .default_text = "true",
     .doc = "The last entry that matches answers all further calls."},
};

const struct rv_key *script_all_keys(size_t *n)
{
    *n = RV_COUNT(script_keys);
    return script_keys;
}

int rv_script_read_node(const struct rv_node *node, rv_findings *findings, rv_script **out, rv_err **err)
{
    size_t before = rv_findings_n_errors(findings);
    struct script_reader r = {.s = calloc(1, sizeof *r.s)};

    *out = NULL;
    if (r.s)
        r.s->arena = rv_arena_new(RV_SCRIPT_MAX_ARENA);
    if (!r.s || !r.s->arena) {
        rv_script_free(r.s);
        return RV_FAIL(err, RV_E_NOMEM, "read a script");
    }
    r.keys = (struct rv_key_reader){.arena = r.s->arena, .findings = findings, .owner_kind = "script", .user = &r};
    r.s->root = node;
    rv_keys_read(&r.keys, node, script_keys, RV_COUNT(script_keys), r.s);
    if (r.keys.rc == 0)
        sort_tool_names(&r);
    int rc = r.keys.rc < 0 ? RV_FAIL(err, r.keys.rc, "read a script") : rv_findings_check(findings, err);
    if (rc < 0 || rv_findings_n_errors(findings) > before) {
        rv_script_free(r.s);
        return rc;
    }
    *out = r.s;
    return 0;
}

/* The document and its text become the script's. */
static int keep_source(rv_script *s, rv_yaml *doc, rv_str text, rv_err **err)
{
    s->doc = doc; /* keys and texts point into it */
    s->text = (rv_str){rv_arena_dup(s->arena, text), text.len};
    return s->text.ptr ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep the text of a script");
}

int rv_script_parse(rv_str text, const char *name, rv_findings *findings, rv_script **out, rv_err **err)
{
    size_t before = rv_findings_n_errors(findings);
    rv_yaml *doc = NULL;
    rv_script *s = NULL;

    *out = NULL;
    int rc = rv_yaml_parse(text, name, findings, &doc, err);
    if (rc < 0 || !doc)
        return rc;
    const struct rv_node *root = rv_yaml_root(doc);
    if (root) {
        rc = rv_script_read_node(root, findings, &s, err);
    } else {
        struct rv_src src = {name, 1, 1};
        rv_findings_add(findings, RV_SEVERITY_ERROR, &src, "keys here: models, stages, tools, hooks, answers, repeat",
                        "script: the file is empty");
        rc = rv_findings_check(findings, err);
    }
    if (s && rv_findings_n_errors(findings) == before) { /* of the YAML itself, which can be read in part */
        rc = keep_source(s, doc, text, err);
        doc = NULL;
    }
    if (rc == 0 && s && rv_findings_n_errors(findings) == before)
        *out = s;
    else
        rv_script_free(s);
    rv_yaml_free(doc);
    return rc;
}

int rv_script_read(const char *path, rv_findings *findings, rv_script **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);

    *out = NULL;
    int rc = rv_file_read(path, &text, err);
    if (rc == 0)
        rc = rv_script_parse(rv_buf_str(&text), path, findings, out, err);
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "read script \"%s\"", path) : 0;
}

void rv_script_free(rv_script *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_answers; i++) {
        json_object_put(s->answers[i].response.data);
        json_object_put(s->answers[i].response.arguments);
    }
    script_questions_fini(s);
    for (size_t i = 0; i < s->n_tools; i++) {
        rv_schema_free(s->tools[i].input);
        json_object_put(s->tools[i].info.input_json);
        json_object_put(s->tools[i].info.confirm);
    }
    for (size_t i = 0; i < RV_N_SCRIPT_KINDS; i++)
        rv_index_fini(&s->sections[i].by_name);
    rv_index_fini(&s->tool_index);
    rv_arena_free(s->arena);
    rv_yaml_free(s->doc);
    free(s);
}

/* --- its text again --- */

/* The length of the character at p if YAML would refuse it or take it for a line break where JSON has it as it is; its
 * code goes to *code. All are below U+10000. 0: it may stand. */
static size_t odd_character(const unsigned char *p, size_t n, unsigned *code)
{
    if (p[0] == 0x7f) {
        *code = 0x7f;
        return 1;
    }
    if (n >= 2 && p[0] == 0xc2 && p[1] <= 0xa0) { /* C1 controls, the no-break space */
        *code = p[1];
        return 2;
    }
    if (n < 3 || !(p[0] == 0xe2 || p[0] == 0xef))
        return 0;
    *code = (unsigned)(p[0] & 15) << 12 | (unsigned)(p[1] & 63) << 6 | (p[2] & 63);
    return *code == 0x2028 || *code == 0x2029 || *code == 0xfeff || *code >= 0xfffe ? 3 : 0;
}

/* JSON is YAML but for those characters; they only stand in strings, which both escape alike. */
void rv_script_add_json(rv_str json, rv_buf *out)
{
    size_t from = 0, at = 0;

    while (at < json.len) {
        unsigned code = 0;
        size_t n = odd_character((const unsigned char *)json.ptr + at, json.len - at, &code);

        if (n > 0) {
            rv_buf_add(out, json.ptr + from, at - from);
            rv_buf_printf(out, "\\u%04x", code);
            from = at + n;
        }
        at += n > 0 ? n : 1;
    }
    rv_buf_add(out, json.ptr + from, json.len - from);
}

static int write_node(const struct rv_node *node, rv_buf *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES); /* more could not be read again */
    json_object *json = NULL;
    int rc = rv_node_build_json(node, &json, err);

    if (rc == 0) {
        rv_json_write_pretty(json, &text);
        rc = rv_buf_check(&text, "text of a script", err);
    }
    if (rc == 0)
        rv_script_add_json(rv_buf_str(&text), out);
    json_object_put(json);
    rv_buf_fini(&text);
    return rc;
}

int rv_script_write_source(const rv_script *s, const char **name, rv_buf *text, rv_err **err)
{
    int rc = 0;

    if (s->doc)
        rv_buf_add_str(text, s->text);
    else
        rc = write_node(s->root, text, err);
    if (rc == 0)
        rc = rv_buf_check(text, "text of a script", err);
    if (rc == 0)
        *name = s->root->src.file;
    return rc;
}
