/* Capabilities: which ones a pipeline wants and what each is told when it opens, and the names that only they know. */
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
RV_EACH_HAS_ROW(isolations, RV_N_ISOLATIONS);
static const struct rv_term_list isolation_list = {"isolation", "isolation", isolations, RV_COUNT(isolations)};

/* The value is kept aside: only its type is looked at here. */
static void accept_config(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    (void)target;
    if (node->kind != RV_NODE_MAP)
        rv_keys_add_wrong_type(r, node, "config", "a map");
}

static const struct rv_key limit_keys[] = {
    {"memory_mb", RV_KEY_INT, AT(memory_mb), .min = 64, .max = 1e6, .default_text = "1024",
     .doc = "Address space of each process, in megabytes."},
    {"open_files", RV_KEY_INT, AT(open_files), .min = 16, .max = 1e6, .default_text = "64",
     .doc = "Open file descriptors of each process."},
};
static const struct rv_key capability_keys[] = {
    {"name", RV_KEY_STR, AT(name), .is_set_offset = AT(has_name),
     .doc = "A name that is looked for on the capability path."},
    {"path", RV_KEY_STR, AT(path), .is_set_offset = AT(has_path),
     .doc = "A shared object, relative to the pipeline's folder; instead of name."},
    {"config", RV_KEY_CUSTOM, AT(unused), .read = accept_config, .schema = "{\"type\":\"object\"}",
     .doc = "Handed to the capability when it opens; ${env:NAME} and ${file:path} are put in."},
    {"isolation", RV_KEY_TERM, AT(isolation), .terms = &isolation_list, .default_text = "\"none\"",
     .doc = "Where its code runs."},
    {"limits", RV_KEY_MAP, .keys = limit_keys, .n_keys = RV_COUNT(limit_keys), .is_set_offset = AT(has_limits),
     .doc = "What a process of its own may use; only with isolation: process."},
};
const struct rv_key_table config_capability_table = {"capability", "A capability", capability_keys,
                                                     RV_COUNT(capability_keys),
                                                     "\"oneOf\":[{\"required\":[\"name\"]},{\"required\":[\"path\"]}]"};

static const char *dotted(struct rv_loader *l, const char *path)
{
    size_t len = strlen(path);
    char *text = config_loader_array(l, len + 3, 1);

    if (text)
        snprintf(text, len + 3, "./%s", path);
    return text;
}

static void set_name(struct rv_key_reader *r, rv_str name, bool is_path, const struct rv_src *src,
                     struct rv_capability_config *out)
{
    struct rv_loader *l = config_loader_of(r);

    if (name.len == 0) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, src, NULL, "the name of a capability is empty");
        return;
    }
    if (is_path || memchr(name.ptr, '/', name.len)) {
        const char *path = config_loader_path(l, name);
        out->name = path && !strchr(path, '/') ? dotted(l, path) : path; /* a slash is what tells paths from names */
    } else {
        out->name = name.ptr;
    }
    if (!out->name)
        out->name = ""; /* out of memory, recorded */
}

static void read_mapping(struct rv_key_reader *r, const struct rv_node *node, struct rv_capability_config *out)
{
    struct rv_loader *l = config_loader_of(r);
    struct raw_capability raw = {0};
    const struct rv_node *config = rv_node_get(node, "config");
    struct rv_indirection how = {0};
    const struct rv_node *named;

    rv_keys_read(r, node, capability_keys, RV_COUNT(capability_keys), &raw);
    out->isolation = raw.isolation == RV_UNSET ? RV_ISOLATION_NONE : raw.isolation;
    if (out->isolation == RV_ISOLATION_PROCESS) {
        out->memory_mb = raw.has_limits ? raw.memory_mb : RV_ISOLATED_MEMORY_MB;
        out->open_files = raw.has_limits ? raw.open_files : RV_ISOLATED_OPEN_FILES;
    } else if (raw.has_limits) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, "add isolation: process, or remove the limits",
                            "it has limits but no process of its own");
    }
    if (raw.has_name == raw.has_path)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL,
                            raw.has_name ? "\"name\" and \"path\" exclude each other"
                                         : "\"name\" or \"path\" is required");
    else if ((named = rv_node_get(node, raw.has_path ? "path" : "name")) && named->kind == RV_NODE_STR)
        set_name(r, named->text, raw.has_path, &named->src, out); /* else its type is a finding already */
    if (config && config->kind == RV_NODE_MAP)
        out->config = config_resolve_indirections(l, config, &how);
}

void config_read_capabilities(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = config_loader_of(r);
    size_t n;

    (void)target;
    l->p->capabilities =
        config_loader_items(r, node, "capabilities",
                            RV_LIST_OF("a list of names or maps", RV_MAX_CAPABILITIES, sizeof *l->p->capabilities), &n);
    l->p->internal->capabilities = config_loader_array(l, n, sizeof *l->p->internal->capabilities);
    for (size_t i = 0; i < n && l->rc == 0; i++) {
        struct rv_capability_config *out = &l->p->capabilities[i];
        const struct rv_node *item = node->items[i];
        const struct rv_node *name = rv_node_get(item, "name");
        struct rv_key_reader inner = {
            .arena = l->arena, .findings = l->findings, .owner_kind = "capability", .user = l, .hide_values = true};

        l->p->n_capabilities = i + 1;
        out->name = "";
        out->src = item->src;
        l->p->internal->capabilities[i].node = item;
        inner.owner_name = name && name->kind == RV_NODE_STR ? name->text.ptr : NULL;
        if (item->kind == RV_NODE_STR)
            set_name(&inner, item->text, false, &item->src, out);
        else if (item->kind == RV_NODE_MAP)
            read_mapping(&inner, item, out);
        else
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &item->src, NULL,
                                "\"capabilities[%zu]\" must be a name or a map, not %s", i,
                                rv_node_kind_text(item->kind));
        if (inner.rc < 0)
            l->rc = inner.rc;
    }
}

/* --- Names --- */

/* Every one a pipeline uses must be registered, and what needs one must have it. */

static const char *const kind_texts[] = {
    [RV_NAME_TOOL] = "tool",
    [RV_NAME_HOOK] = "hook",
    [RV_NAME_POLICY] = "policy",
    [RV_NAME_MOCK] = "mock handler",
    [RV_NAME_ROUTE] = "routing function",
    [RV_NAME_PROMPT] = "prompt",
    [RV_NAME_PROVIDER] = "provider",
    [RV_NAME_PROBE] = "probe",
    [RV_NAME_SUBSCRIBER] = "subscriber",
};
RV_EACH_HAS_ROW(kind_texts, RV_N_NAME_KINDS);
static const char *const plural_texts[] = {
    [RV_NAME_TOOL] = "tools",
    [RV_NAME_HOOK] = "hooks",
    [RV_NAME_POLICY] = "policies",
    [RV_NAME_MOCK] = "mock handlers",
    [RV_NAME_ROUTE] = "routing functions",
    [RV_NAME_PROMPT] = "prompts",
    [RV_NAME_PROVIDER] = "providers",
    [RV_NAME_PROBE] = "probes",
    [RV_NAME_SUBSCRIBER] = "subscribers",
};
RV_EACH_HAS_ROW(plural_texts, RV_N_NAME_KINDS);

const char *rv_name_kind_text(enum rv_name_kind kind)
{
    return kind_texts[kind];
}

struct checker {
    const struct rv_pipeline *p;
    rv_findings *findings;
    struct {
        const char *const *items;
        size_t n;
    } known[RV_N_NAME_KINDS];
    bool is_partial; /* as in struct rv_known_names */
};

/* One tool is the engine's own: it asks another agent. Plans have no use for it. */
static bool is_own_tool(const struct rv_agent *a, const char *name)
{
    return a->has_llm && strcmp(name, RV_TOOL_ASK_AGENT) == 0;
}

static bool is_known(const struct checker *c, enum rv_name_kind kind, const char *name)
{
    for (size_t i = 0; i < c->known[kind].n; i++)
        if (strcmp(c->known[kind].items[i], name) == 0)
            return true;
    return false;
}

static void check(const struct checker *c, const struct rv_agent *a, enum rv_name_kind kind, const char *key,
                  const char *name, const struct rv_src *src)
{
    char hint[RV_HINT_MAX];

    if (!name[0] || c->is_partial || is_known(c, kind, name))
        return;
    config_name_hint(c->findings, rv_str_of(name), plural_texts[kind], c->known[kind].items, c->known[kind].n, hint);
    if (c->known[kind].n == 0)
        snprintf(
            hint, sizeof hint,
            "no %s are known here: name the capability that brings them under `capabilities` (`reeve inspect` lists "
            "those that are found), or play them with --script",
            plural_texts[kind]);
    rv_findings_add(c->findings, RV_SEVERITY_ERROR, src, hint, "agent \"%s\": %s names \"%s\", which is not a known %s",
                    a->name, key, name, kind_texts[kind]);
}

/* A prompt may stand in the file or come from a capability. */
static void check_prompt(const struct checker *c, const struct rv_agent *a, const char *key, const char *name,
                         const struct rv_src *src)
{
    char hint[RV_HINT_MAX];
    const char *names[64];
    size_t n = 0;

    if (!name[0] || c->is_partial || rv_pipeline_find_prompt(c->p, rv_str_of(name)) ||
        is_known(c, RV_NAME_PROMPT, name))
        return;
    for (size_t i = 0; i < c->p->n_prompts && n < RV_COUNT(names); i++)
        names[n++] = c->p->prompts[i].key;
    for (size_t i = 0; i < c->known[RV_NAME_PROMPT].n && n < RV_COUNT(names); i++)
        names[n++] = c->known[RV_NAME_PROMPT].items[i];
    config_name_hint(c->findings, rv_str_of(name), plural_texts[RV_NAME_PROMPT], names, n, hint);
    rv_findings_add(c->findings, RV_SEVERITY_ERROR, src, hint,
                    "agent \"%s\": %s names \"%s\", which is not a known prompt", a->name, key, name);
}

/* A file may leave them open, and gets a warning; what is made to run has to have one (rule 5.1). */
static void check_has_policy(const struct checker *c, const struct rv_agent *a)
{
    char hint[RV_HINT_MAX];

    if (!a->has_policies || a->hooks.policies.n > 0)
        return;
    snprintf(hint, sizeof hint, "name one, for example policies: [%.200s], or remove has_policies",
             c->known[RV_NAME_POLICY].n > 0 ? c->known[RV_NAME_POLICY].items[0] : "capability.name");
    rv_findings_add(c->findings, RV_SEVERITY_ERROR, &a->places.has_policies, hint,
                    "agent \"%s\": has_policies needs a policy, and none is bound", a->name);
}

static void check_hooks(const struct checker *c, const struct rv_agent *a)
{
    const struct {
        const char *key;
        const struct rv_str_list *names;
    } rows[] = {{"before_model", &a->hooks.before_model},
                {"after_model", &a->hooks.after_model},
                {"before_tool", &a->hooks.before_tool},
                {"after_tool", &a->hooks.after_tool}};

    check(c, a, RV_NAME_HOOK, "pre_process", a->hooks.pre_process, &a->places.pre_process);
    check(c, a, RV_NAME_HOOK, "post_process", a->hooks.post_process, &a->places.post_process);
    for (size_t r = 0; r < RV_COUNT(rows); r++)
        for (size_t i = 0; i < rows[r].names->n; i++)
            check(c, a, RV_NAME_HOOK, rows[r].key, rows[r].names->items[i], &rows[r].names->srcs[i]);
}

static void check_agent(const struct checker *c, const struct rv_agent *a)
{
    for (size_t i = 0; i < a->tools.allowed.n; i++)
        if (!is_own_tool(a, a->tools.allowed.items[i]))
            check(c, a, RV_NAME_TOOL, "allowed_tools", rv_agent_callee(a, a->tools.allowed.items[i]),
                  &a->tools.allowed.srcs[i]);
    if (a->declared.doc && !is_own_tool(a, a->tools.chained))
        check(c, a, RV_NAME_TOOL, "chained_tool", a->tools.chained, &a->declared.doc->chained_src);
    for (size_t i = 0; i < a->hooks.policies.n; i++)
        check(c, a, RV_NAME_POLICY, "policies", a->hooks.policies.items[i], &a->hooks.policies.srcs[i]);
    check_has_policy(c, a);
    check_hooks(c, a);
    check(c, a, RV_NAME_MOCK, "mock_handler", a->hooks.mock_handler, &a->places.mock_handler);
    check(c, a, RV_NAME_ROUTE, "routing_function", a->routing.function, &a->places.routing_function);
    check_prompt(c, a, "prompt_key", a->model.prompt_key, &a->places.prompt_key);
    check_prompt(c, a, "system_key", a->model.system_key, &a->places.system_key);
}

static void check_provider(const struct checker *c, size_t i)
{
    const struct rv_model_config *model = &c->p->models[i];
    const struct rv_written *written = &c->p->internal->models[i];
    const struct rv_node *node = rv_node_get(written->node, "provider");
    struct rv_src src;
    char hint[RV_HINT_MAX];

    if (!model->provider[0] || c->is_partial || is_known(c, RV_NAME_PROVIDER, model->provider))
        return;
    if (!node)
        node = rv_node_get(written->node, "model");
    if (!node)
        node = written->node;
    src = node ? node->src : model->src; /* of a document */
    config_name_hint(c->findings, rv_str_of(written->hides_name ? "" : model->provider), plural_texts[RV_NAME_PROVIDER],
                     c->known[RV_NAME_PROVIDER].items, c->known[RV_NAME_PROVIDER].n, hint);
    if (written->hides_name)
        rv_findings_add(c->findings, RV_SEVERITY_ERROR, &src, hint, "model \"%s\": its ${} gives no known provider",
                        model->role);
    else
        rv_findings_add(c->findings, RV_SEVERITY_ERROR, &src, hint, "model \"%s\": \"%s\" is not a known provider",
                        model->role, model->provider);
}

void rv_pipeline_check_names(struct rv_pipeline *p, const struct rv_known_names *known, rv_findings *findings)
{
    struct checker c = {.p = p, .findings = findings, .is_partial = known->is_partial};
    size_t n_before = rv_findings_n_errors(findings);

    for (int kind = 0; kind < RV_N_NAME_KINDS; kind++)
        c.known[kind].items = known->list(known->self, (enum rv_name_kind)kind, &c.known[kind].n);
    for (size_t i = 0; i < p->n_agents; i++)
        check_agent(&c, &p->agents[i]);
    for (size_t i = 0; i < p->n_models; i++)
        check_provider(&c, i);
    if (known->is_partial || rv_findings_n_errors(findings) > n_before ||
        rv_findings_check(findings,
                          RV_CODE_ONLY("without memory for a finding the pipeline counts as unsound, as with one")) < 0)
        p->is_sound = false;
}
