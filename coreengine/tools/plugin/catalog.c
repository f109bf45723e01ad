/* What a set of capabilities has: names to entries, the agents, the view of the core and of `lint`, everything as JSON.
 */
#include "coreengine/tools/plugin/plugin_internal.h"

#include <stdlib.h>
#include <string.h>

/* --- agents: documents that come with the descriptor. They are read when the capability is loaded, so that the author
 * sees a fault, not the user who talks to the agent, and passed on unchanged --- */

/* The place is part of the text: as a place of the error it would hide the one in the pipeline. */
static int fail_document(const rv_err *why, int rc, rv_err **err)
{
    struct rv_src at = rv_err_src(why);
    const char *hint = rv_err_hint_text(why);

    if (rc == RV_E_NOMEM || rv_err_is(why, RV_E_NOMEM))
        return RV_FAIL(err, RV_E_NOMEM, "read its document");
    if (at.line > 0)
        rc = RV_FAIL(err, RV_E_PLUGIN, "its document, line %d, column %d: %s", at.line, at.col, rv_err_text(why));
    else
        rc = RV_FAIL(err, RV_E_PLUGIN, "its document: %s", rv_err_text(why));
    if (hint)
        rv_err_set_hint(err, "%s", hint);
    return rc;
}

/* An entry is a name of C, an agent's may have dashes. */
static bool is_called(const struct rv_agentdoc *doc, const char *entry)
{
    size_t i = 0;

    while (doc->name[i] && (doc->name[i] == '-' ? '_' : doc->name[i]) == entry[i])
        i++;
    return !doc->name[i] && !entry[i];
}

int plugin_read_agent(struct rv_plugin_agent *a, const char *name, const char *text, rv_err **err)
{
    rv_str given = {text, text ? strnlen(text, RV_AGENTDOC_MAX_BYTES + 1) : 0};
    rv_err *why = NULL;
    int rc;

    if (!text)
        return RV_FAIL(err, RV_E_PLUGIN, "its document is missing");
    if (given.len > RV_AGENTDOC_MAX_BYTES)
        return RV_FAIL(err, RV_E_PLUGIN, "its document is longer than %zu bytes", RV_AGENTDOC_MAX_BYTES);
    if (!rv_utf8_valid(given, NULL))
        return RV_FAIL(err, RV_E_PLUGIN, "its document is not UTF-8");
    a->text = rv_str_dup(given);
    if (!a->text)
        return RV_FAIL(err, RV_E_NOMEM, "copy its document");
    rc = rv_agentdoc_read(rv_str_of(a->text), name, &a->doc, &why);
    if (rc < 0)
        rc = fail_document(why, rc, err);
    rv_err_free(why);
    if (rc == 0 && !is_called(a->doc, name)) {
        rc = RV_FAIL(err, RV_E_PLUGIN, "its document names the agent \"%s\"", a->doc->name);
        rv_err_set_hint(err, "the entry is called like the agent, with \"_\" for \"-\"");
    }
    return rc;
}

void plugin_agents_fini(struct rv_plugin *pl)
{
    for (size_t i = 0; i < pl->n_agents; i++) {
        rv_agentdoc_free(pl->agents[i].doc);
        free(pl->agents[i].text);
    }
    free(pl->agents);
    pl->agents = NULL;
    pl->n_agents = 0;
}

static bool has_agent(const struct rv_plugin *pl, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(pl->agents[i].doc->name, name) == 0)
            return true;
    return false;
}

int plugin_check_agents(const struct rv_plugins *p, const struct rv_plugin *pl, rv_err **err)
{
    for (size_t i = 0; i < pl->n_agents; i++) {
        const char *name = pl->agents[i].doc->name;

        if (has_agent(pl, i, name))
            return RV_FAIL(err, RV_E_PLUGIN, "it has two entries for agent \"%s\"", name);
        for (size_t k = 0; k < p->n_loaded; k++)
            if (has_agent(p->loaded[k], p->loaded[k]->n_agents, name))
                return RV_FAIL(err, RV_E_EXISTS, "agent \"%s\" is in capability \"%s\" already", name,
                               p->loaded[k]->name);
    }
    return 0;
}

bool rv_plugins_agent_at(rv_plugins *p, size_t i, const char **name, rv_str *document, const char **capability)
{
    for (size_t k = 0; k < p->n_loaded; k++) {
        const struct rv_plugin *pl = p->loaded[k];

        if (i < pl->n_agents) {
            *name = pl->agents[i].doc->name;
            *document = rv_str_of(pl->agents[i].text);
            *capability = pl->name;
            return true;
        }
        i -= pl->n_agents;
    }
    return false;
}

/* --- for inspect --- */

/* What it is, in one line: a description is a whole prompt. */
static rv_str short_text(const struct rv_agentdoc *doc)
{
    rv_str text = rv_str_trim(rv_str_of(doc->short_description ? doc->short_description : doc->description));
    const char *end = text.len ? memchr(text.ptr, '\n', text.len) : NULL;

    if (end)
        text.len = (size_t)(end - text.ptr);
    return rv_str_trim(text);
}

static void write_agent(const struct rv_agentdoc *doc, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", doc->name);
    rv_jw_kv_str(w, "description", short_text(doc));
    rv_jw_kv_text(w, "version", doc->version);
    rv_jw_kv_bool(w, "structured_output", rv_agentdoc_is_structured(doc, RV_UNSET));
    if (doc->model)
        rv_jw_kv_text(w, "model", doc->model);
    if (doc->chained_tool)
        rv_jw_kv_text(w, "chained_tool", doc->chained_tool);
    rv_jw_key(w, "tools");
    rv_jw_arr(w);
    for (size_t i = 0; i < doc->n_tools; i++)
        rv_jw_text(w, doc->tools[i].name);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

static void write_agents(const struct rv_plugin *pl, rv_jw *w)
{
    rv_jw_key(w, "agents");
    rv_jw_arr(w);
    for (size_t i = 0; i < pl->n_agents; i++)
        write_agent(pl->agents[i].doc, w);
    rv_jw_arr_end(w);
}

/* --- names to entries --- */

void plugin_names_fini(struct rv_plugin_names *names)
{
    for (int kind = 0; kind < RV_N_NAME_KINDS; kind++) {
        rv_index_fini(&names->index[kind]);
        free(names->lists[kind]);
    }
    free(names->entries);
    memset(names, 0, sizeof *names);
}

static int add_capability(struct rv_plugin_names *names, struct rv_plugin *pl, rv_err **err)
{
    for (size_t i = 0; i < pl->n_entries; i++) {
        struct rv_plugin_entry *e = &pl->entries[i];
        rv_str name = rv_str_of(e->name);
        int old = rv_index_get(&names->index[e->kind], name);
        int rc;

        if (old >= 0) {
            const struct rv_plugin *other = names->entries[old]->owner;
            const char *kind = rv_name_kind_text(e->kind);
            if (other == pl)
                return RV_FAIL(err, RV_E_PLUGIN, "it has two entries for %s \"%s\"", kind, e->bare);
            return RV_FAIL(err, RV_E_EXISTS, "%s \"%s\" is in capability \"%s\" already", kind, e->name, other->name);
        }
        rc = rv_index_add(&names->index[e->kind], name, (int)names->n_entries);
        if (rc < 0)
            return RV_FAIL(err, rc, "remember the names of a capability");
        names->entries[names->n_entries++] = e;
        names->n_lists[e->kind]++;
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int make_lists(struct rv_plugin_names *names, rv_err **err)
{
    for (int kind = 0; kind < RV_N_NAME_KINDS; kind++) {
        size_t n = 0;

        names->lists[kind] = calloc(names->n_lists[kind] + 1, sizeof *names->lists[kind]);
        if (!names->lists[kind])
            return RV_FAIL(err, RV_E_NOMEM, "list the names of capabilities");
        for (size_t i = 0; i < names->n_entries; i++)
            if ((int)names->entries[i]->kind == kind)
                names->lists[kind][n++] = names->entries[i]->name;
        qsort(names->lists[kind], n, sizeof *names->lists[kind], by_text);
    }
    return 0;
}

int plugin_names_build(const struct rv_plugins *p, struct rv_plugin *more, struct rv_plugin_names *out, rv_err **err)
{
    struct rv_plugin_names names = {0};
    size_t n = more ? more->n_entries : 0;
    int rc = 0;

    for (size_t i = 0; i < p->n_loaded; i++)
        n += p->loaded[i]->n_entries;
    names.entries = calloc(n + 1, sizeof(struct rv_plugin_entry *));
    if (!names.entries)
        return RV_FAIL(err, RV_E_NOMEM, "remember the names of a capability");
    for (size_t i = 0; i < p->n_loaded && rc == 0; i++)
        rc = add_capability(&names, p->loaded[i], err);
    if (rc == 0 && more)
        rc = add_capability(&names, more, err);
    if (rc == 0)
        rc = make_lists(&names, err);
    if (rc < 0) {
        plugin_names_fini(&names);
        return rc;
    }
    *out = names;
    return 0;
}

struct rv_plugin_entry *plugin_find(const struct rv_plugins *p, enum rv_name_kind kind, rv_str name)
{
    int at;

    if ((unsigned)kind >= RV_N_NAME_KINDS)
        return NULL;
    at = rv_index_get(&p->names.index[kind], name);
    return at < 0 ? NULL : p->names.entries[at];
}

static const struct rv_tool_info *find_tool(void *self, rv_str name)
{
    const struct rv_plugin_entry *e = plugin_find(self, RV_NAME_TOOL, name);

    return e ? &e->tool : NULL;
}

static const struct rv_entry_info *find_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    const struct rv_plugin_entry *e = NULL;

    if (kind != RV_NAME_TOOL && kind != RV_NAME_PROMPT)
        e = plugin_find(self, kind, name);
    return e ? &e->info : NULL;
}

static const rv_template *find_prompt(void *self, rv_str key)
{
    const struct rv_plugin_entry *e = plugin_find(self, RV_NAME_PROMPT, key);

    return e ? e->prompt : NULL;
}

static const char *const *list_names(void *self, enum rv_name_kind kind, size_t *n)
{
    const struct rv_plugins *p = self;

    *n = p->names.n_lists[kind];
    return p->names.lists[kind];
}

static const char *tool_name(void *self, size_t i)
{
    size_t n;
    const char *const *names = list_names(self, RV_NAME_TOOL, &n);

    return i < n ? names[i] : NULL;
}

struct rv_catalog rv_plugins_catalog(rv_plugins *p)
{
    return (struct rv_catalog){
        .tool = find_tool, .entry = find_entry, .prompt = find_prompt, .self = p, .tool_name = tool_name};
}

struct rv_known_names rv_plugins_names(rv_plugins *p)
{
    return (struct rv_known_names){.list = list_names, .self = p};
}

/* --- everything that is loaded, as JSON for `inspect` and for editors --- */

static const struct {
    const char *key;
    enum rv_name_kind kind;
} groups[] = {
    {"tools", RV_NAME_TOOL},   {"hooks", RV_NAME_HOOK},         {"policies", RV_NAME_POLICY},
    {"mocks", RV_NAME_MOCK},   {"routes", RV_NAME_ROUTE},       {"prompts", RV_NAME_PROMPT},
    {"probes", RV_NAME_PROBE}, {"providers", RV_NAME_PROVIDER}, {"subscribers", RV_NAME_SUBSCRIBER},
};

static void write_tool(const struct rv_plugin_entry *e, rv_jw *w)
{
    const struct rv_tool_info *tool = &e->tool;

    rv_jw_kv_text(w, "risk", rv_risk_text(rv_tool_risk(tool)));
    rv_jw_kv_text(w, "effect", rv_effect_class_text(rv_tool_effect(tool)));
    if (tool->category != RV_UNSET)
        rv_jw_kv_text(w, "category", rv_tool_category_text((enum rv_tool_category)tool->category));
    if (tool->timeout_ms)
        rv_jw_kv_int(w, "timeout_ms", tool->timeout_ms);
    if (tool->confirm)
        rv_jw_kv_value(w, "requires_confirmation", tool->confirm);
    if (tool->input_json)
        rv_jw_kv_value(w, "input_schema", tool->input_json);
    if (tool->output_json)
        rv_jw_kv_value(w, "output_schema", tool->output_json);
}

static void write_entry(const struct rv_plugin_entry *e, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", e->name);
    rv_jw_kv_text(w, "description", e->description);
    if (e->never_blocks)
        rv_jw_kv_bool(w, "blocking", false);
    if (e->services.n > 0)
        rv_jw_kv_list(w, "services", &e->services);
    if (e->kind == RV_NAME_TOOL) {
        write_tool(e, w);
    } else if (e->kind == RV_NAME_PROMPT) {
        rv_jw_kv_text(w, "text", e->prompt_text);
    } else {
        if (e->info.sees.is_set)
            rv_jw_kv_list(w, e->kind == RV_NAME_SUBSCRIBER ? "events" : "sees", &e->info.sees);
        if (e->info.timeout_ms)
            rv_jw_kv_int(w, "timeout_ms", e->info.timeout_ms);
    }
    rv_jw_obj_end(w);
}

static void write_capability(const struct rv_plugin *pl, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", pl->name);
    rv_jw_kv_text(w, "version", pl->version);
    rv_jw_kv_text(w, "description", pl->description);
    rv_jw_kv_text(w, "path", pl->path);
    rv_jw_kv_int(w, "abi", pl->desc.abi);
    rv_jw_kv_value(w, "config_schema", pl->config_schema_json);
    for (size_t g = 0; g < RV_COUNT(groups); g++) {
        rv_jw_key(w, groups[g].key);
        rv_jw_arr(w);
        for (size_t i = 0; i < pl->n_entries; i++)
            if (pl->entries[i].kind == groups[g].kind)
                write_entry(&pl->entries[i], w);
        rv_jw_arr_end(w);
    }
    write_agents(pl, w);
    rv_jw_obj_end(w);
}

void rv_plugins_write_json(rv_plugins *p, rv_jw *w)
{
    rv_jw_arr(w);
    for (size_t i = 0; i < p->n_loaded; i++)
        write_capability(p->loaded[i], w);
    rv_jw_arr_end(w);
}
