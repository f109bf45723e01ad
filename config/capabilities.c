/* The `capabilities` section: which plugins a pipeline wants, and what each is told when it opens. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

struct raw_capability {
    const char *name, *path;
    bool has_name, has_path, has_limits;
    int64_t memory_mb, open_files;
    json_object *unused; /* `config` is taken from its node, for the indirections in it */
    int isolation;
};
#define AT(member) offsetof(struct raw_capability, member)

static const struct rv_term isolations[] = {
    [RV_ISOLATION_NONE] = {"none", "in this process"},
    [RV_ISOLATION_PROCESS] = {"process", "in a process of its own"},
};
static const struct rv_term_list isolation_list = {"isolation", "isolation", isolations, RV_COUNT(isolations)};

/* The value is kept aside: only its type is looked at here. */
static void accept_config(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP)
        rv_keys_wrong_type(r, node, "config", "a map");
}

static const struct rv_key limit_keys[] = {
    {.name = "memory_mb",
     .type = RV_KEY_INT,
     .offset = AT(memory_mb),
     .min = 64,
     .max = 1e6,
     .default_text = "1024",
     .doc = "Address space of each process, in megabytes."},
    {.name = "open_files",
     .type = RV_KEY_INT,
     .offset = AT(open_files),
     .min = 16,
     .max = 1e6,
     .default_text = "64",
     .doc = "Open file descriptors of each process."},
};
static const struct rv_key capability_keys[] = {
    {.name = "name",
     .type = RV_KEY_STR,
     .offset = AT(name),
     .is_set_offset = AT(has_name),
     .doc = "A name that is looked for on the capability path."},
    {.name = "path",
     .type = RV_KEY_STR,
     .offset = AT(path),
     .is_set_offset = AT(has_path),
     .doc = "A shared object, relative to the pipeline's folder; instead of name."},
    {.name = "config",
     .type = RV_KEY_CUSTOM,
     .offset = AT(unused),
     .read = accept_config,
     .schema = "{\"type\":\"object\"}",
     .doc = "Handed to the capability when it opens; ${env:NAME} and ${file:path} are put in."},
    {.name = "isolation",
     .type = RV_KEY_TERM,
     .offset = AT(isolation),
     .terms = &isolation_list,
     .default_text = "\"none\"",
     .doc = "Where its code runs."},
    {.name = "limits",
     .type = RV_KEY_MAP,
     .keys = limit_keys,
     .n_keys = RV_COUNT(limit_keys),
     .is_set_offset = AT(has_limits),
     .doc = "What a process of its own may use; only with isolation: process."},
};
static const struct rv_key_table capability_table = {
    .name = "capability",
    .title = "A capability",
    .keys = capability_keys,
    .n_keys = RV_COUNT(capability_keys),
    .more = "\"oneOf\":[{\"required\":[\"name\"]},{\"required\":[\"path\"]}]",
};

const struct rv_key_table *rv_capability_table(void)
{
    return &capability_table;
}

static const char *dotted(struct rv_loader *l, const char *path)
{
    size_t len = strlen(path);
    char *text = rv_loader_array(l, len + 3, 1);

    if (text)
        snprintf(text, len + 3, "./%s", path);
    return text;
}

static void set_name(struct rv_key_reader *r, rv_str name, bool is_path, const struct rv_src *src,
                     struct rv_capability_config *out)
{
    struct rv_loader *l = rv_loader_of(r);

    if (name.len == 0) {
        rv_keys_finding(r, RV_SEVERITY_ERROR, src, NULL, "the name of a capability is empty");
        return;
    }
    if (is_path || memchr(name.ptr, '/', name.len)) {
        const char *path = rv_loader_path(l, name);
        out->name = path && !strchr(path, '/') ? dotted(l, path) : path; /* a slash is what tells paths from names */
    } else {
        out->name = name.ptr;
    }
    if (!out->name)
        out->name = ""; /* out of memory, recorded */
}

static void read_mapping(struct rv_key_reader *r, const struct rv_node *node, struct rv_capability_config *out)
{
    struct rv_loader *l = rv_loader_of(r);
    struct raw_capability raw = {0};
    const struct rv_node *config = rv_node_get(node, "config");
    struct rv_indirection how = {0};

    rv_keys_read(r, node, capability_keys, RV_COUNT(capability_keys), &raw);
    out->isolation = raw.isolation == RV_UNSET ? RV_ISOLATION_NONE : raw.isolation;
    if (out->isolation == RV_ISOLATION_PROCESS) {
        out->memory_mb = raw.has_limits ? raw.memory_mb : RV_ISOLATED_MEMORY_MB;
        out->open_files = raw.has_limits ? raw.open_files : RV_ISOLATED_OPEN_FILES;
    } else if (raw.has_limits) {
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, "add isolation: process, or remove the limits",
                        "it has limits but no process of its own");
    }
    if (raw.has_name == raw.has_path)
        rv_keys_finding(r, RV_SEVERITY_ERROR, &node->src, NULL,
                        raw.has_name ? "\"name\" and \"path\" exclude each other" : "\"name\" or \"path\" is required");
    else if (raw.name && raw.path)
        set_name(r, rv_str_of(raw.has_path ? raw.path : raw.name), raw.has_path, &node->src, out);
    if (config && config->kind == RV_NODE_MAP)
        out->config = rv_resolve_indirections(l, config, &how);
}

void rv_read_capabilities(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = rv_loader_of(r);
    bool ok = false;
    size_t n = rv_list_length(r, node, "capabilities", RV_MAX_CAPABILITIES, &ok);

    (void)target;
    if (!ok)
        return;
    l->p->capabilities = rv_loader_array(l, n, sizeof *l->p->capabilities);
    l->p->private->capabilities = rv_loader_array(l, n, sizeof *l->p->private->capabilities);
    for (size_t i = 0; i < n && l->rc == 0; i++) {
        struct rv_capability_config *out = &l->p->capabilities[i];
        const struct rv_node *item = node->items[i];
        const struct rv_node *name = rv_node_get(item, "name");
        struct rv_key_reader inner = {
            .arena = l->arena, .findings = l->findings, .owner_kind = "capability", .user = l, .hide_values = true};

        l->p->n_capabilities = i + 1;
        out->name = "";
        out->src = item->src;
        l->p->private->capabilities[i].node = item;
        inner.owner_name = name && name->kind == RV_NODE_STR ? name->text.ptr : NULL;
        if (item->kind == RV_NODE_STR)
            set_name(&inner, item->text, false, &item->src, out);
        else if (item->kind == RV_NODE_MAP)
            read_mapping(&inner, item, out);
        else
            rv_keys_finding(r, RV_SEVERITY_ERROR, &item->src, NULL,
                            "\"capabilities[%zu]\" must be a name or a map, not %s", i, rv_node_kind_text(item->kind));
        if (inner.rc < 0)
            l->rc = inner.rc;
    }
}
