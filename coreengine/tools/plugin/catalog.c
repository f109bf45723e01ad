/* Names to entries: one view for the pure core (struct rv_catalog), one for the checks of a pipeline (known names). */
#include "coreengine/tools/plugin/plugin_internal.h"

#include <stdlib.h>
#include <string.h>

void rv_plugin_names_fini(struct rv_plugin_names *names)
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

int rv_plugin_names_build(const struct rv_plugins *p, struct rv_plugin *more, struct rv_plugin_names *out, rv_err **err)
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
        rv_plugin_names_fini(&names);
        return rc;
    }
    *out = names;
    return 0;
}

struct rv_plugin_entry *rv_plugin_find(const struct rv_plugins *p, enum rv_name_kind kind, rv_str name)
{
    int at;

    if ((unsigned)kind >= RV_N_NAME_KINDS)
        return NULL;
    at = rv_index_get(&p->names.index[kind], name);
    return at < 0 ? NULL : p->names.entries[at];
}

static const struct rv_tool_info *find_tool(void *self, rv_str name)
{
    const struct rv_plugin_entry *e = rv_plugin_find(self, RV_NAME_TOOL, name);

    return e ? &e->tool : NULL;
}

bool rv_plugins_may_block(const rv_plugins *p, enum rv_name_kind kind, const char *name)
{
    const struct rv_plugin_entry *e = rv_plugin_find(p, kind, rv_str_of(name));

    return !e || !e->never_blocks || e->owner->isolated; /* another process is waited for in any case */
}

static const struct rv_entry_info *find_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    const struct rv_plugin_entry *e = NULL;

    if (kind != RV_NAME_TOOL && kind != RV_NAME_PROMPT)
        e = rv_plugin_find(self, kind, name);
    return e ? &e->info : NULL;
}

static const rv_template *find_prompt(void *self, rv_str key)
{
    const struct rv_plugin_entry *e = rv_plugin_find(self, RV_NAME_PROMPT, key);

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
    return (struct rv_known_names){list_names, p};
}
