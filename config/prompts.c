/* The `prompts` section: texts and files, compiled to templates; and which names their placeholders may use. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

struct raw_prompt {
    const char *unused; /* offset 0 */
    const char *file;
};

static const struct rv_key prompt_keys[] = {
    {.name = "file",
     .type = RV_KEY_STR,
     .offset = offsetof(struct raw_prompt, file),
     .required = true,
     .doc = "A text file, relative to the pipeline's folder."},
};
static const struct rv_key_table prompt_table = {
    .name = "prompt",
    .title = "A prompt in a file",
    .keys = prompt_keys,
    .n_keys = RV_COUNT(prompt_keys),
};

const struct rv_key_table *rv_prompt_table(void)
{
    return &prompt_table;
}

/* node: where the text stands; NULL for a file */
static void compile(struct rv_loader *l, rv_str text, const struct rv_node *node, struct rv_prompt_config *out)
{
    rv_err *err = NULL;
    int rc = rv_template_compile(text, &out->src, &out->template, &err);

    if (rc == RV_E_NOMEM) {
        l->rc = rc;
    } else if (rc < 0) {
        rc = RV_WRAP(&err, rc, "prompt \"%s\"", out->key);
        if (node)
            rv_findings_add_text_err(l->findings, RV_SEVERITY_ERROR, node, err);
        else
            rv_findings_add_err(l->findings, RV_SEVERITY_ERROR, &out->src, err);
    }
    rv_err_free(err);
}

static void read_file(struct rv_key_reader *r, const struct rv_node *node, struct rv_prompt_config *out)
{
    struct rv_loader *l = rv_loader_of(r);
    struct raw_prompt raw = {0};
    const struct rv_node *place = rv_node_get(node, "file");
    char what[160];
    rv_str text = {NULL, 0};

    rv_keys_read(r, node, prompt_keys, RV_COUNT(prompt_keys), &raw);
    if (!place || !raw.file || !raw.file[0])
        return;
    out->file = rv_loader_path(l, rv_str_of(raw.file));
    snprintf(what, sizeof what, "prompt \"%.100s\"", out->key);
    if (!out->file || !rv_loader_text_file(l, what, out->file, &place->src, &text))
        return;
    out->src = (struct rv_src){out->file, 1, 1};
    compile(l, text, NULL, out);
}

void rv_read_prompts(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = rv_loader_of(r);
    bool ok = false;
    size_t n = rv_map_length(r, node, "prompts", RV_MAX_PROMPTS, &ok);

    (void)target;
    if (!ok)
        return;
    l->p->prompts = rv_loader_array(l, n, sizeof *l->p->prompts);
    for (size_t i = 0; i < n && l->rc == 0; i++) {
        struct rv_prompt_config *out = &l->p->prompts[i];
        const struct rv_node *value = node->items[i];
        struct rv_key_reader inner = {.arena = l->arena, .findings = l->findings, .owner_kind = "prompt", .user = l};

        l->p->n_prompts = i + 1;
        out->key = node->keys[i]->text.ptr;
        out->src = rv_node_text_src(value);
        inner.owner_name = out->key;
        if (value->kind == RV_NODE_STR) {
            out->indent = value->is_block ? value->indent : 0;
            compile(l, value->text, value, out);
        } else if (value->kind == RV_NODE_MAP) {
            read_file(&inner, value, out);
        } else {
            rv_keys_finding(&inner, RV_SEVERITY_ERROR, &value->src, "write {file: path} for a text file",
                            "must be a text or a map with \"file\", not %s", rv_node_kind_text(value->kind));
        }
        if (inner.rc < 0)
            l->rc = inner.rc;
    }
}

/* --- Placeholders --- */

/* What every prompt can name besides outputs (rule 5.5). */
static const char *const roots[] = {
    "raw_input",          "user_id", "session_id", "metadata",      "iteration", "loop_feedback", "prior_plans",
    "interrupt_response", "outputs", "state",      "stage_context",
};

static bool is_root(rv_str name)
{
    for (size_t i = 0; i < RV_COUNT(roots); i++)
        if (rv_str_is(name, roots[i]))
            return true;
    return false;
}

/* Everything a placeholder may begin with: the roots, then every output key. */
struct names {
    const char **items;
    size_t n;
};

static struct names collect_names(struct rv_loader *l)
{
    struct names names = {rv_loader_array(l, RV_COUNT(roots) + l->p->n_agents, sizeof(char *)), 0};

    if (!names.items)
        return names;
    for (size_t i = 0; i < l->p->n_agents; i++)
        if (l->p->agents[i].output.key[0])
            names.items[names.n++] = l->p->agents[i].output.key;
    for (size_t i = 0; i < RV_COUNT(roots); i++)
        names.items[names.n++] = roots[i];
    return names;
}

static void check_placeholder(struct rv_loader *l, const struct rv_prompt_config *prompt,
                              const struct rv_placeholder *place, const struct names *names, bool is_used)
{
    const rv_index *outputs = &l->p->private->output_index;
    enum rv_severity severity = is_used ? RV_SEVERITY_ERROR : RV_SEVERITY_WARNING;
    struct rv_src src = place->src;
    char hint[RV_HINT_MAX];

    if (prompt->indent > 0 && src.line > prompt->src.line)
        src.col += prompt->indent;
    if (rv_str_is(place->root, "outputs") && place->field.ptr) {
        if (rv_index_get(outputs, place->field) >= 0)
            return;
        rv_name_hint(l->findings, place->field, "output keys", names->items, names->n - RV_COUNT(roots), hint);
        rv_findings_add(l->findings, severity, &src, hint,
                        "prompt \"%s\": {{%.*s}} names the output \"%.*s\", which no stage makes", prompt->key,
                        RV_STR_ARG(rv_utf8_cut(place->path, 100)), RV_STR_ARG(rv_utf8_cut(place->field, 100)));
        return;
    }
    if (is_root(place->root) || rv_index_get(outputs, place->root) >= 0)
        return;
    rv_name_hint(l->findings, place->root, "names", names->items, names->n, hint);
    rv_findings_add(l->findings, severity, &src, hint,
                    "prompt \"%s\": {{%.*s}} can have no value: nothing is called \"%.*s\"", prompt->key,
                    RV_STR_ARG(rv_utf8_cut(place->path, 100)), RV_STR_ARG(rv_utf8_cut(place->root, 100)));
}

/* A tag that is none reaches the model as it stands. */
static void warn_of_foreign(struct rv_loader *l, const struct rv_prompt_config *prompt)
{
    size_t n = prompt->template ? rv_template_n_foreign(prompt->template) : 0;

    for (size_t i = 0; i < n; i++) {
        struct rv_foreign tag = rv_template_foreign(prompt->template, i);
        if (prompt->indent > 0 && tag.src.line > prompt->src.line)
            tag.src.col += prompt->indent;
        rv_findings_add(
            l->findings, RV_SEVERITY_WARNING, &tag.src,
            "tags are {{name}}, {{#list}}...{{/list}}, {{^list}}...{{/list}}; write \\{{ for braces that are text",
            "prompt \"%s\": the model gets \"%.*s\" as it stands", prompt->key, RV_STR_ARG(tag.text));
    }
}

void rv_check_prompts(struct rv_loader *l)
{
    rv_index used = {NULL, 0, 0};
    struct names names = {NULL, 0};

    if (l->p->n_prompts == 0)
        return;
    names = collect_names(l);
    for (size_t i = 0; i < l->p->n_agents && l->rc == 0; i++)
        if (rv_index_add(&used, rv_str_of(l->p->agents[i].model.prompt_key), 1) == RV_E_NOMEM)
            l->rc = RV_E_NOMEM;
    for (size_t i = 0; i < l->p->n_prompts && l->rc == 0; i++) {
        const struct rv_prompt_config *prompt = &l->p->prompts[i];
        size_t n = prompt->template ? rv_template_n_placeholders(prompt->template) : 0;
        bool is_used = rv_index_get(&used, rv_str_of(prompt->key)) >= 0;

        for (size_t k = 0; k < n; k++) {
            struct rv_placeholder place = rv_template_placeholder(prompt->template, k);
            check_placeholder(l, prompt, &place, &names, is_used);
        }
        warn_of_foreign(l, prompt);
    }
    rv_index_fini(&used);
}
