/* A document as a flat tree and as text; and what holds for all documents: the JSON Schema and the reference page. */
#include <json-c/linkhash.h>
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

/* --- The flat document as a tree --- */

/* Scalars are written from what was read, so that "0.5" is 0.5 in it; schemas and further
 * keys stand as they were given. */

/* What the table writes of the keys first..last, as members of out. */
static int add_written(const struct rv_agentdoc *d, const struct rv_agentdoc_key *row, json_object *out, rv_err **err)
{
    const char *base = (const char *)d;
    rv_buf text = RV_BUF_INIT(2 * RV_AGENTDOC_MAX_TREE);
    rv_jw w = rv_jw_on(&text);
    json_object *member = NULL;
    const char *s = NULL;
    bool b;
    int64_t i;
    int rc;

    rv_jw_obj(&w);
    switch (row->kind) {
    case RV_AGENTDOC_TEXT:
        memcpy(&s, base + row->offset, sizeof s);
        if (s)
            rv_jw_kv_text(&w, row->name, s);
        break;
    case RV_AGENTDOC_BOOL:
        memcpy(&b, base + row->offset, sizeof b);
        if (b || row->unset == 0)
            rv_jw_kv_bool(&w, row->name, b);
        break;
    case RV_AGENTDOC_INT:
        memcpy(&i, base + row->offset, sizeof i);
        if (i != row->unset)
            rv_jw_kv_int(&w, row->name, i);
        break;
    case RV_AGENTDOC_CUSTOM:
        row->write(d, &w);
        break;
    }
    rv_jw_obj_end(&w);
    rc = rv_buf_check(&text, "the agent document", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), NULL, &member, err);
    if (rc == 0) {
        json_object_object_foreach (member, key, value) {
            rc = rv_json_set_ref(out, key, value, err);
        }
    }
    json_object_put(member);
    rv_buf_fini(&text);
    return rc;
}

static int add_node(json_object *out, const char *key, const struct rv_node *node, rv_err **err)
{
    json_object *v = NULL;
    int rc = rv_node_build_json(node, &v, err);

    if (rc == 0)
        rc = rv_json_set_ref(out, key, v, err);
    json_object_put(v);
    return rc;
}

/* A row whose value is a tree: it stands as it was given. */
static int add_tree(const struct rv_agentdoc_reading *r, const struct rv_agentdoc_key *row, json_object *out,
                    rv_err **err)
{
    const struct rv_node *node = *(const struct rv_node *const *)(const void *)((const char *)r + row->tree);

    if (node)
        return add_node(out, row->name, node, err);
    if (row->empty == json_type_null)
        return 0;
    return rv_json_set_take(out, row->name,
                            row->empty == json_type_array ? json_object_new_array() : json_object_new_object(), err);
}

static int fill(struct rv_agentdoc_reading *r, json_object *out, rv_err **err)
{
    size_t n;
    const struct rv_agentdoc_key *rows = agentdoc_keys(&n);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (rows[i].tree)
            rc = add_tree(r, &rows[i], out, err);
        else if (rows[i].kind != RV_AGENTDOC_CUSTOM || rows[i].write)
            rc = add_written(r->doc, &rows[i], out, err);
    }
    for (size_t i = 0; rc == 0 && i < r->n_fields; i++)
        if (!r->fields[i].row)
            rc = add_node(out, r->fields[i].key->text.ptr, r->fields[i].value, err);
    return rc;
}

int agentdoc_flatten(struct rv_agentdoc_reading *r, rv_err **err)
{
    struct rv_agentdoc *d = r->doc;
    rv_err *why = NULL;
    int rc;

    d->flat = json_object_new_object();
    if (!d->flat)
        return RV_FAIL(err, RV_E_NOMEM, "write the agent document");
    rc = fill(r, d->flat, &why);
    if (rc == RV_E_INVALID) { /* .inf and integers beyond 64 bits, which JSON does not have */
        rv_findings_add_err(r->keys.findings, RV_SEVERITY_ERROR, &d->src, why);
        rv_err_free(why);
        return 0;
    }
    if (rc < 0) {
        rv_err_free(why);
        return RV_FAIL(err, rc, "write the agent document \"%s\"", d->name);
    }
    d->properties = rv_json_get_obj(d->flat, "properties");
    d->required = rv_json_get_arr(d->flat, "required");
    d->defs = rv_json_get_obj(d->flat, "$defs");
    d->chained_map = rv_json_get_obj(d->flat, "chained_map");
    if (d->properties && json_object_object_length(d->properties) == 0)
        d->properties = NULL;
    if (d->required && json_object_array_length(d->required) == 0)
        d->required = NULL;
    return 0;
}

/* --- YAML --- */

/* For people: block style, texts of several lines as block scalars. What another reader could take
 * for something else is put in quotes. */

#define MAX_PLAIN      100 /* bytes of a text without quotes: it stays on one line */
#define MAX_SIMPLE_KEY 256 /* bytes, quotes included; YAML's readers allow 1024 in one line */
#define STEP           2   /* blanks of one level of the YAML that is written */

static void indent(rv_buf *out, int columns)
{
    for (int i = 0; i < columns; i++)
        rv_buf_putc(out, ' ');
}

static const char *const reserved[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan"};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* A text that every reader takes for the string it is. */
static bool is_plain(rv_str s)
{
    if (s.len == 0 || s.len > MAX_PLAIN || !is_letter(s.ptr[0]) || s.ptr[s.len - 1] == ' ')
        return false;
    for (size_t i = 0; i < RV_COUNT(reserved); i++)
        if (strlen(reserved[i]) == s.len && strncasecmp(reserved[i], s.ptr, s.len) == 0)
            return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!is_letter(c) && !(c >= '0' && c <= '9') && !memchr(" -./,;()'!?+*=%&", c, 16))
            return false;
    }
    return true;
}

static void write_quoted(rv_str s, rv_buf *out)
{
    rv_buf_putc(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == '"' || c == '\\')
            rv_buf_printf(out, "\\%c", c);
        else if (c == '\n' || c == '\t')
            rv_buf_puts(out, c == '\n' ? "\\n" : "\\t");
        else if (c < 0x20 || c == 0x7f)
            rv_buf_printf(out, "\\x%02x", c);
        else if (c == 0xc2 && i + 1 < s.len && (unsigned char)s.ptr[i + 1] < 0xa0) /* further controls */
            rv_buf_printf(out, "\\x%02x", (unsigned char)s.ptr[++i]);
        else if (i + 2 < s.len &&
                 (memcmp(s.ptr + i, "\xe2\x80\xa8", 3) == 0 || memcmp(s.ptr + i, "\xe2\x80\xa9", 3) == 0 ||
                  memcmp(s.ptr + i, "\xef\xbb\xbf", 3) == 0 || memcmp(s.ptr + i, "\xef\xbf\xbe", 3) == 0 ||
                  memcmp(s.ptr + i, "\xef\xbf\xbf", 3) == 0)) {
            unsigned code =
                ((unsigned)c & 0xf) << 12 | ((unsigned)s.ptr[i + 1] & 0x3f) << 6 | ((unsigned)s.ptr[i + 2] & 0x3f);
            rv_buf_printf(out, "\\u%04x", code);
            i += 2;
        } else {
            rv_buf_putc(out, (char)c);
        }
    }
    rv_buf_putc(out, '"');
}

/* Several lines of which a block scalar keeps every byte. */
static bool is_block(rv_str s)
{
    const char *feed = s.len > 0 ? memchr(s.ptr, '\n', s.len) : NULL;

    if (!feed || s.ptr[0] == '\n')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && c != '\n') || c == 0x7f || (c == 0xc2 && (unsigned char)s.ptr[i + 1] < 0xa0))
            return false;
        if (i + 2 < s.len && (memcmp(s.ptr + i, "\xe2\x80\xa8", 3) == 0 || memcmp(s.ptr + i, "\xe2\x80\xa9", 3) == 0 ||
                              memcmp(s.ptr + i, "\xef\xbb\xbf", 3) == 0 || memcmp(s.ptr + i, "\xef\xbf\xbe", 3) == 0 ||
                              memcmp(s.ptr + i, "\xef\xbf\xbf", 3) == 0))
            return false;
    }
    return true;
}

/* depth: columns of the lines. */
static void write_block(rv_str s, int depth, rv_buf *out)
{
    bool ends_in_feed = s.ptr[s.len - 1] == '\n';
    bool ends_in_more = ends_in_feed && s.len > 1 && s.ptr[s.len - 2] == '\n';

    rv_buf_putc(out, '|');
    if (s.ptr[0] == ' ') /* or the reader would count these as indentation */
        rv_buf_printf(out, "%d", STEP);
    rv_buf_puts(out, ends_in_more ? "+" : ends_in_feed ? "" : "-");
    for (size_t i = 0; i < s.len; i++) {
        if (i == 0 || s.ptr[i - 1] == '\n') {
            if (i == 0)
                rv_buf_putc(out, '\n');
            if (s.ptr[i] != '\n')
                indent(out, depth);
        }
        if (i + 1 < s.len || s.ptr[i] != '\n')
            rv_buf_putc(out, s.ptr[i]);
    }
}

static void write_text(rv_str s, int depth, rv_buf *out)
{
    if (is_block(s))
        write_block(s, depth, out);
    else if (is_plain(s))
        rv_buf_add_str(out, s);
    else
        write_quoted(s, out);
}

static void write_members(json_object *v, int depth, bool is_begun, rv_buf *out);
static void write_items(json_object *v, int depth, rv_buf *out);

/* Behind "key:" or "-"; depth: columns of what stands on lines of its own. */
static void write_value(json_object *v, int depth, rv_buf *out)
{
    bool is_map = json_object_is_type(v, json_type_object);
    bool is_list = json_object_is_type(v, json_type_array);
    size_t n = is_map ? (size_t)json_object_object_length(v) : is_list ? json_object_array_length(v) : 0;

    if (n > 0) {
        rv_buf_putc(out, '\n');
        if (is_map)
            write_members(v, depth, false, out);
        else
            write_items(v, depth, out);
        return;
    }
    rv_buf_putc(out, ' ');
    if (is_map || is_list)
        rv_buf_puts(out, is_map ? "{}" : "[]");
    else if (json_object_is_type(v, json_type_string))
        write_text(rv_json_str(v), depth, out);
    else
        rv_json_write(v, out);
    rv_buf_putc(out, '\n');
}

static void write_key(const char *key, int depth, rv_buf *out)
{
    rv_str s = rv_str_of(key);

    if (s.len > MAX_SIMPLE_KEY) {
        rv_buf_puts(out, "? ");
        write_quoted(s, out);
        rv_buf_putc(out, '\n');
        indent(out, depth);
    } else if (is_plain(s) || (s.len > 1 && s.ptr[0] == '$' && is_plain((rv_str){s.ptr + 1, s.len - 1}))) {
        rv_buf_add_str(out, s);
    } else {
        write_quoted(s, out);
    }
    rv_buf_putc(out, ':');
}

/* is_begun: the first key goes on a line that is there, behind "- ". */
static void write_members(json_object *v, int depth, bool is_begun, rv_buf *out)
{
    json_object_object_foreach (v, key, value) {
        if (!is_begun)
            indent(out, depth);
        is_begun = false;
        write_key(key, depth, out);
        write_value(value, depth + STEP, out);
    }
}

static void write_items(json_object *v, int depth, rv_buf *out)
{
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        json_object *item = json_object_array_get_idx(v, i);
        indent(out, depth);
        rv_buf_putc(out, '-');
        if (json_object_is_type(item, json_type_object) && json_object_object_length(item) > 0) {
            rv_buf_putc(out, ' ');
            write_members(item, depth + STEP, true, out);
        } else {
            write_value(item, depth + STEP, out);
        }
    }
}

void rv_agentdoc_write_yaml(const struct rv_agentdoc *d, rv_buf *out)
{
    write_members(d->flat, 0, false, out);
}

/* --- The JSON Schema and the reference page --- */

void rv_agentdoc_write_json(const struct rv_agentdoc *d, rv_jw *w)
{
    rv_jw_value(w, d->flat);
}

static void write_property(rv_jw *w, const char *name, const char *schema, const char *meaning)
{
    size_t len = strlen(schema);

    rv_jw_key(w, name);
    rv_jw_obj(w);
    rv_jw_kv_text(w, "description", meaning);
    rv_jw_raw(w, (rv_str){schema + 1, len - 2}); /* the members between the braces */
    rv_jw_obj_end(w);
}

static void write_limits(rv_jw *w)
{
    rv_jw_key(w, "limits");
    rv_jw_obj(w);
    rv_jw_key(w, "type");
    rv_jw_raw(w, RV_STR_LIT("[\"object\",\"null\"]"));
    rv_jw_key(w, "properties");
    rv_jw_obj(w);
    for (size_t i = 0; i < RV_AGENTDOC_LIMITS; i++)
        write_property(w, agentdoc_limit_keys[i].name, "{\"type\":[\"integer\",\"string\",\"null\"],\"minimum\":1}",
                       agentdoc_limit_keys[i].meaning);
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

void rv_agentdoc_write_schema(rv_jw *w)
{
    size_t n;
    const struct rv_agentdoc_key *rows = agentdoc_keys(&n);

    rv_jw_obj(w);
    rv_jw_kv_text(w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    rv_jw_kv_text(w, "title", "Agent document");
    rv_jw_kv_text(w, "description", "A declared agent, in the flat form. Further keys are kept and have no effect.");
    rv_jw_kv_text(w, "type", "object");
    rv_jw_key(w, "required");
    rv_jw_raw(w, RV_STR_LIT("[\"name\"]"));
    rv_jw_key(w, "properties");
    rv_jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].name, "limits") == 0)
            write_limits(w);
        else
            write_property(w, rows[i].name, rows[i].schema, rows[i].meaning);
    }
    rv_jw_obj_end(w);
    rv_jw_obj_end(w);
}

static void write_row(rv_buf *out, const char *name, const char *type, const char *otherwise, const char *meaning,
                      const char *forms)
{
    rv_buf_printf(out, "| `%s` | %s | %s | %s | %s |\n", name, type, otherwise, meaning, forms);
}

#define TABLE_HEAD "| key | type | default | meaning | form |\n| --- | --- | --- | --- | --- |\n"

static const char intro[] =
    "# Keys of an agent document\n"
    "\n"
    "An agent document declares one agent: what it is told, what it may call, what its answer looks like, what it may\n"
    "use up. It is a JSON Schema of the answer with the agent's own keys beside the schema's, in YAML or JSON.\n"
    "\n"
    "Numbers may be written as strings, a whole float is an integer, booleans may be written as `true`, `yes`, `on`,\n"
    "`t`, `y`, `1` and their opposites in any case. Strings are strings: put `\"1.0\"` in quotes. A wrong value is an\n"
    "error with its place; a key that has no effect is a warning, and the flat and the nested form keep it. Keys that\n"
    "begin with `x-`, and `$schema`, `$id`, `$comment`, `examples`, `icon` and `enabled` are kept without a word;\n"
    "`title` is dropped.\n"
    "\n"
    "## Forms\n"
    "\n"
    "| form | how it is told | what it becomes |\n"
    "| --- | --- | --- |\n"
    "| flat | none of the others | itself |\n"
    "| nested | `json_schema_extra` | the outer keys with those of `json_schema_extra` over them |\n"
    "| legacy | `json_schema` with neither `name` and `description` nor `json_schema_extra` in it; or, without those "
    "two "
    "at the top, `content`, `model_name` or `response_schema` | `name` and `content` (else `description`) of the row, "
    "`model_name` or `model`, the schema of `response_schema`, and the keys that the table lists for the form |\n"
    "\n"
    "A row whose `json_schema` is a flat or nested document is that document.\n"
    "\n"
    "## Keys\n"
    "\n"
    "The order is the one in which documents are written back. What is unset is left out, other defaults are written.\n"
    "\n";

static const char notes[] =
    "\n"
    "The prompt shows `description`, `system_prompt`, the tools that have a description of their own, and, unless the\n"
    "output is structured, the properties as a structure to think in. There a reference is replaced by the definition\n"
    "that has its last part as name, once; the schema of a structured output keeps references and `$defs`.\n";

void rv_agentdoc_write_reference(rv_buf *out)
{
    static const char name_type[] = "name";
    size_t n;
    const struct rv_agentdoc_key *rows = agentdoc_keys(&n);

    rv_buf_puts(out, intro);
    rv_buf_puts(out, TABLE_HEAD);
    for (size_t i = 0; i < n; i++)
        write_row(out, rows[i].name, rows[i].type, rows[i].default_text, rows[i].meaning, rows[i].forms);
    rv_buf_puts(out, "\n## Keys of a tool\n\nA string stands for a map with that `name`.\n\n" TABLE_HEAD);
    write_row(out, "name", name_type, "required", "The tool. `ask_agent` is the one that asks another agent.", "all");
    write_row(out, "server", name_type, "unset",
              "Which server has it. Unset, `local` and `rem`: it is in the process, as `ask_agent` always is. "
              "`mcp_server` is another name.",
              "all");
    write_row(out, "description", "string", "unset",
              "What this agent should know about it: it goes into the prompt, not to the tool's definition.", "all");
    write_row(
        out, "uri", "URI", "unset",
        "Makes it a resource that is read. Each `{word}` is a string parameter; `{user_id}` and `{session_id}` are "
        "filled in.",
        "all");
    rv_buf_puts(out, "\n## limits\n\n" TABLE_HEAD);
    for (size_t i = 0; i < RV_AGENTDOC_LIMITS; i++)
        write_row(out, agentdoc_limit_keys[i].name, "integer, from 1", "unset", agentdoc_limit_keys[i].meaning, "all");
    rv_buf_puts(out, "\n## routing\n\n" TABLE_HEAD);
    write_row(out, "agents", "list of names", "required", "Where it may lead.", "flat, nested");
    write_row(out, "fallback", name_type, "`general`", "Who answers when none of them fits.", "flat, nested");
    rv_buf_puts(out, notes);
}
