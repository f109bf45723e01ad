/* The catalog of a bundle: tools, entries and prompts as their capabilities declared them, without functions to
 * call. */
#include "coreengine/store/journal/bundle_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

static const char *const tool_keys[] = {"description",  "category",      "risk",
                                        "effect",       "timeout_ms",    "has_probe",
                                        "input_schema", "output_schema", "requires_confirmation"};
static const char *const entry_keys[] = {"sees", "timeout_ms"};
static const char *const catalog_keys[] = {"tools", "entries", "prompts"};

int journal_bundle_check_keys(json_object *obj, const char *what, const char *const *keys, size_t n, rv_err **err)
{
    json_object_object_foreach (obj, key, value) {
        size_t i = 0;

        (void)value;
        while (i < n && strcmp(keys[i], key) != 0)
            i++;
        if (i == n)
            return RV_FAIL(err, RV_E_INVALID, "%s has an unknown key \"%s\"", what, key);
    }
    return 0;
}

int journal_bundle_text(json_object *obj, const char *key, bool required, const char **out, rv_err **err)
{
    json_object *value = NULL;
    rv_str text;

    if (!json_object_object_get_ex(obj, key, &value))
        return required ? RV_FAIL(err, RV_E_INVALID, "\"%s\" is missing", key) : 0;
    if (!value && !required)
        return 0;
    if (!json_object_is_type(value, json_type_string))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" must be a string, not %s", key, rv_json_type_text(value));
    text = rv_json_str(value);
    if (memchr(text.ptr, 0, text.len))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" has a NUL in it", key);
    *out = text.ptr;
    return 0;
}

int journal_bundle_object(json_object *obj, const char *key, bool required, json_object **out, rv_err **err)
{
    json_object *value = NULL;

    *out = NULL;
    if (!json_object_object_get_ex(obj, key, &value))
        return required ? RV_FAIL(err, RV_E_INVALID, "\"%s\" is missing", key) : 0;
    if (!json_object_is_type(value, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" must be an object, not %s", key, rv_json_type_text(value));
    *out = value;
    return 0;
}

static int read_timeout(json_object *obj, int64_t *out, rv_err **err)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(obj, "timeout_ms", &value))
        return 0;
    if (!rv_json_get_int(obj, "timeout_ms", out) || *out < 1)
        return RV_FAIL(err, RV_E_INVALID, "\"timeout_ms\" must be an integer above 0");
    return 0;
}

static int check_object(json_object *value, const char *what, const char *const *keys, size_t n, rv_err **err)
{
    if (!json_object_is_type(value, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "%s must be an object, not %s", what, rv_json_type_text(value));
    return journal_bundle_check_keys(value, what, keys, n, err);
}

/* Room for all members of a map and an index for their names. */
static int reserve(json_object *map, const char *what, size_t size, void *out_items, rv_err **err)
{
    size_t n = (size_t)json_object_object_length(map);
    void *items;

    if (n > RV_BUNDLE_MAX_NAMES)
        return RV_FAIL(err, RV_E_LIMIT, "%zu %s (the limit is %zu)", n, what, RV_BUNDLE_MAX_NAMES);
    items = calloc(n + 1, size);
    if (!items)
        return RV_FAIL(err, RV_E_NOMEM, "read the %s of a bundle", what);
    memcpy(out_items, &items, sizeof items);
    return 0;
}

/* --- Tools --- */

static int read_words(json_object *obj, struct rv_tool_info *info, rv_err **err)
{
    const char *category = NULL, *risk = NULL, *effect = NULL;
    int rc;

    if ((rc = journal_bundle_text(obj, "category", false, &category, err)) < 0 ||
        (rc = journal_bundle_text(obj, "risk", false, &risk, err)) < 0 ||
        (rc = journal_bundle_text(obj, "effect", false, &effect, err)) < 0)
        return rc;
    return rv_tool_read_words(info, category, risk, effect, err);
}

static int read_probe(json_object *obj, bool *out, rv_err **err)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(obj, "has_probe", &value) || rv_json_get_bool(obj, "has_probe", out))
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "\"has_probe\" must be true or false");
}

/* The key is what messages call it: the loader of capabilities does the same, and messages become part of states. */
static int read_schema(json_object *obj, const char *key, json_object **json, rv_schema **out, rv_err **err)
{
    return json_object_object_get_ex(obj, key, json) ? rv_schema_compile(*json, key, out, err) : 0;
}

static int read_tool(const char *name, json_object *obj, struct bundle_tool *t, rv_err **err)
{
    json_object *confirm = NULL;
    int rc = check_object(obj, "it", tool_keys, RV_COUNT(tool_keys), err);

    t->info.name = name;
    if (rc < 0 || (rc = journal_bundle_text(obj, "description", false, &t->info.description, err)) < 0 ||
        (rc = read_words(obj, &t->info, err)) < 0 || (rc = read_timeout(obj, &t->info.timeout_ms, err)) < 0 ||
        (rc = read_probe(obj, &t->info.has_probe, err)) < 0 ||
        (rc = read_schema(obj, "input_schema", &t->info.input_json, &t->input, err)) < 0 ||
        (rc = read_schema(obj, "output_schema", &t->info.output_json, &t->output, err)) < 0)
        return rc;
    t->info.input = t->input;
    t->info.output = t->output;
    return json_object_object_get_ex(obj, "requires_confirmation", &confirm)
               ? rv_tool_read_confirm(&t->info, confirm, err)
               : 0;
}

static int read_tools(json_object *map, struct bundle_catalog *c, rv_err **err)
{
    int rc = reserve(map, "tools", sizeof *c->tools, &c->tools, err);

    if (rc < 0)
        return rc;
    json_object_object_foreach (map, name, value) {
        size_t i = c->n_tools++;
        rc = read_tool(name, value, &c->tools[i], err);
        if (rc < 0)
            return RV_WRAP(err, rc, "tool \"%s\"", name);
        if (rv_index_add(&c->tool_index, rv_str_of(name), (int)i) < 0)
            return RV_FAIL(err, RV_E_NOMEM, "read the tools of a bundle");
    }
    return 0;
}

/* --- Entries --- */

static int read_sees(json_object *obj, struct rv_str_list *sees, rv_err **err)
{
    json_object *list = NULL;

    if (!json_object_object_get_ex(obj, "sees", &list))
        return 0;
    if (!json_object_is_type(list, json_type_array))
        return RV_FAIL(err, RV_E_INVALID, "\"sees\" must be an array, not %s", rv_json_type_text(list));
    size_t n = json_object_array_length(list);
    sees->items = calloc(n + 1, sizeof *sees->items);
    if (!sees->items)
        return RV_FAIL(err, RV_E_NOMEM, "read \"sees\"");
    sees->is_set = true;
    for (size_t i = 0; i < n; i++) {
        json_object *item = json_object_array_get_idx(list, i);
        rv_str text = rv_json_str(item);
        if (!json_object_is_type(item, json_type_string) || memchr(text.ptr, 0, text.len))
            return RV_FAIL(err, RV_E_INVALID, "\"sees\" has an item that is not plain text");
        sees->items[sees->n++] = text.ptr;
    }
    return 0;
}

static int read_entry(json_object *obj, struct rv_entry_info *out, rv_err **err)
{
    int rc = check_object(obj, "it", entry_keys, RV_COUNT(entry_keys), err);

    if (rc == 0)
        rc = read_timeout(obj, &out->timeout_ms, err);
    return rc < 0 ? rc : read_sees(obj, &out->sees, err);
}

static bool find_kind(const char *text, enum rv_name_kind *out)
{
    for (int k = 0; k < RV_N_NAME_KINDS; k++) {
        *out = (enum rv_name_kind)k;
        if (journal_bundle_has_kind(*out) && strcmp(rv_name_kind_text(*out), text) == 0)
            return true;
    }
    return false;
}

static int count_entries(json_object *kinds, size_t *n, rv_err **err)
{
    *n = 0;
    json_object_object_foreach (kinds, text, map) {
        enum rv_name_kind kind;
        if (!find_kind(text, &kind))
            return RV_FAIL(err, RV_E_INVALID, "entries: there is no kind \"%s\"", text);
        if (!json_object_is_type(map, json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "\"%s\" must be an object, not %s", text, rv_json_type_text(map));
        *n += (size_t)json_object_object_length(map);
    }
    return *n > RV_BUNDLE_MAX_NAMES
               ? RV_FAIL(err, RV_E_LIMIT, "%zu entries (the limit is %zu)", *n, RV_BUNDLE_MAX_NAMES)
               : 0;
}

static int read_kind(enum rv_name_kind kind, json_object *map, struct bundle_catalog *c, rv_err **err)
{
    json_object_object_foreach (map, name, value) {
        size_t i = c->n_entries++;
        c->entries[i].name = name;
        c->entries[i].kind = kind;
        int rc = read_entry(value, &c->entries[i], err);
        if (rc < 0)
            return RV_WRAP(err, rc, "%s \"%s\"", rv_name_kind_text(kind), name);
        if (rv_index_add(&c->entry_index[kind], rv_str_of(name), (int)i) < 0)
            return RV_FAIL(err, RV_E_NOMEM, "read the entries of a bundle");
    }
    return 0;
}

static int read_entries(json_object *kinds, struct bundle_catalog *c, rv_err **err)
{
    size_t n = 0;
    int rc = count_entries(kinds, &n, err);

    if (rc < 0)
        return rc;
    c->entries = calloc(n + 1, sizeof *c->entries);
    if (!c->entries)
        return RV_FAIL(err, RV_E_NOMEM, "read the entries of a bundle");
    json_object_object_foreach (kinds, text, map) {
        enum rv_name_kind kind;
        if (rc == 0 && find_kind(text, &kind))
            rc = read_kind(kind, map, c, err);
    }
    return rc;
}

/* --- Prompts --- */

static int read_prompts(json_object *map, struct bundle_catalog *c, rv_err **err)
{
    int rc = reserve(map, "prompts", sizeof(*c->prompts), &c->prompts, err);

    if (rc < 0)
        return rc;
    json_object_object_foreach (map, key, value) {
        size_t i = c->n_prompts++;
        if (!json_object_is_type(value, json_type_string))
            return RV_FAIL(err, RV_E_INVALID, "prompt \"%s\" must be a string, not %s", key, rv_json_type_text(value));
        rc = rv_template_compile(rv_json_str(value), NULL, &c->prompts[i], err);
        if (rc < 0)
            return RV_WRAP(err, rc == RV_E_PARSE ? RV_E_INVALID : rc, "prompt \"%s\"", key);
        if (rv_index_add(&c->prompt_index, rv_str_of(key), (int)i) < 0)
            return RV_FAIL(err, RV_E_NOMEM, "read the prompts of a bundle");
    }
    return 0;
}

int journal_bundle_catalog_read(json_object *json, struct bundle_catalog *out, rv_err **err)
{
    json_object *tools = NULL, *entries = NULL, *prompts = NULL;
    int rc;

    out->json = json_object_get(json);
    if ((rc = journal_bundle_check_keys(json, "the catalog", catalog_keys, RV_COUNT(catalog_keys), err)) < 0 ||
        (rc = journal_bundle_object(json, "tools", true, &tools, err)) < 0 ||
        (rc = journal_bundle_object(json, "entries", true, &entries, err)) < 0 ||
        (rc = journal_bundle_object(json, "prompts", true, &prompts, err)) < 0)
        return rc;
    if ((rc = read_tools(tools, out, err)) < 0 || (rc = read_entries(entries, out, err)) < 0)
        return rc;
    return read_prompts(prompts, out, err);
}

void journal_bundle_catalog_fini(struct bundle_catalog *c)
{
    for (size_t i = 0; i < c->n_tools; i++) {
        rv_schema_free(c->tools[i].input);
        rv_schema_free(c->tools[i].output);
    }
    for (size_t i = 0; i < c->n_entries; i++)
        free(c->entries[i].sees.items);
    for (size_t i = 0; i < c->n_prompts; i++)
        rv_template_free(c->prompts[i]);
    for (size_t k = 0; k < RV_N_NAME_KINDS; k++)
        rv_index_fini(&c->entry_index[k]);
    rv_index_fini(&c->tool_index);
    rv_index_fini(&c->prompt_index);
    free(c->tools);
    free(c->entries);
    free(c->prompts);
    json_object_put(c->json);
}

/* --- As the core sees it --- */

static const struct rv_tool_info *find_tool(void *self, rv_str name)
{
    const rv_bundle *b = self;
    int at = rv_index_get(&b->catalog.tool_index, name);

    return at < 0 ? NULL : &b->catalog.tools[at].info;
}

static const struct rv_entry_info *find_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    const rv_bundle *b = self;
    int at = (unsigned)kind < RV_N_NAME_KINDS ? rv_index_get(&b->catalog.entry_index[kind], name) : -1;

    return at < 0 ? NULL : &b->catalog.entries[at];
}

static const rv_template *find_prompt(void *self, rv_str key)
{
    const rv_bundle *b = self;
    int at = rv_index_get(&b->catalog.prompt_index, key);

    return at < 0 ? NULL : b->catalog.prompts[at];
}

static const char *tool_name(void *self, size_t i)
{
    const rv_bundle *b = self;

    return i < b->catalog.n_tools ? b->catalog.tools[i].info.name : NULL;
}

void journal_bundle_compose(rv_bundle *b)
{
    b->tools = (struct rv_tool_set){.under = {find_tool, find_entry, find_prompt, b, tool_name}, .sources = b->sources};
    if (!b->script)
        return;
    b->script_tools = rv_script_tools(b->script);
    b->sources[b->tools.n_sources++] = &b->script_tools;
}

struct rv_catalog rv_bundle_catalog(const rv_bundle *b)
{
    return rv_tool_set_catalog(&b->tools);
}
