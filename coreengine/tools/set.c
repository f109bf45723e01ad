/* Sources composed into one catalog: whose definition of a tool counts, and who answers its calls. */
#include "coreengine/tools/source.h"

struct rv_tool_found rv_tool_set_find(const struct rv_tool_set *set, rv_str name)
{
    struct rv_tool_found found = {.info = set->under.tool(set->under.self, name)};

    for (size_t i = 0; i < set->n_sources; i++) {
        struct rv_tool_source *s = set->sources[i];
        const struct rv_tool_info *info = s->ops->find(s->self, name);
        if (!info)
            continue;
        if (!found.info && !set->is_whole)
            found.info = info;
        if (!found.source || (s->stands_in && !found.source->stands_in))
            found.source = s;
    }
    return found;
}

static const struct rv_tool_info *find_tool(void *self, rv_str name)
{
    const struct rv_tool_set *set = self;
    const struct rv_tool_info *info = set->under.tool(set->under.self, name);

    for (size_t i = 0; !info && !set->is_whole && i < set->n_sources; i++)
        info = set->sources[i]->ops->find(set->sources[i]->self, name);
    return info;
}

static const struct rv_entry_info *find_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    const struct rv_tool_set *set = self;

    return set->under.entry(set->under.self, kind, name);
}

static const rv_template *find_prompt(void *self, rv_str key)
{
    const struct rv_tool_set *set = self;

    return set->under.prompt(set->under.self, key);
}

/* The i-th name of those sources; NULL: there are fewer names; i is then reduced by their number. */
static const char *source_name(const struct rv_tool_set *set, bool stands_in, size_t *i)
{
    for (size_t s = 0; !set->is_whole && s < set->n_sources; s++) {
        const struct rv_tool_source *source = set->sources[s];
        size_t n = 0;
        const char *const *names = source->stands_in == stands_in ? source->ops->names(source->self, &n) : NULL;
        if (*i < n)
            return names[*i];
        *i -= n;
    }
    return NULL;
}

static const char *tool_name(void *self, size_t i)
{
    const struct rv_tool_set *set = self;
    const char *name = source_name(set, true, &i);

    if (!name)
        name = source_name(set, false, &i);
    return name || !set->under.tool_name ? name : set->under.tool_name(set->under.self, i);
}

struct rv_catalog rv_tool_set_catalog(const struct rv_tool_set *set)
{
    bool can_be_listed = !set->is_whole || set->under.tool_name;

    return (struct rv_catalog){find_tool, find_entry, find_prompt, (void *)(uintptr_t)set,
                               can_be_listed ? tool_name : NULL};
}
