/* What a stage tells its model besides the prompt: examples, images and files. */
#include <stddef.h>
#include <stdio.h>

#include "config/config_internal.h"

/* --- Examples --- */

struct raw_example {
    const char *user, *assistant;
};

static const struct rv_key example_keys[] = {
    {"user", RV_KEY_STR, offsetof(struct raw_example, user), .required = true,
     .doc = "What the model is asked; a text with {{name}} placeholders, as in prompts."},
    {"assistant", RV_KEY_STR, offsetof(struct raw_example, assistant), .required = true,
     .doc = "What it is to have answered; with placeholders, too."},
};
const struct rv_key_table rv_example_table = {"example", "An example for a model", example_keys, RV_COUNT(example_keys),
                                              NULL};

/* One of its texts as a template. */
static void compile(struct rv_key_reader *r, const struct rv_node *node, const char *label, rv_template **out)
{
    struct rv_loader *l = rv_loader_of(r);
    struct rv_src src;
    rv_err *err = NULL;
    int rc;

    if (!node || node->kind != RV_NODE_STR)
        return; /* a finding already */
    src = rv_node_text_src(node);
    rc = rv_template_compile(node->text, &src, out, &err);
    if (rc == RV_E_NOMEM) {
        l->rc = rc;
    } else if (rc < 0) {
        rc = RV_WRAP(&err, rc, "agent \"%s\": %s", r->owner_name ? r->owner_name : "", label);
        rv_findings_add_text_err(l->findings, RV_SEVERITY_ERROR, node, err);
    } else {
        rv_note_text(r, node, label, NULL, *out);
    }
    rv_err_free(err);
}

static void read_example(struct rv_key_reader *r, const struct rv_node *node, size_t i, struct rv_example *out)
{
    struct raw_example raw = {0};
    const char *outer = r->path;
    char path[32], label[48];

    snprintf(path, sizeof path, "examples[%zu].", i);
    r->path = path;
    rv_keys_read(r, node, example_keys, RV_COUNT(example_keys), &raw);
    r->path = outer;
    snprintf(label, sizeof label, "%suser", path);
    compile(r, rv_node_get(node, "user"), label, &out->user);
    snprintf(label, sizeof label, "%sassistant", path);
    compile(r, rv_node_get(node, "assistant"), label, &out->assistant);
}

void rv_read_examples(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_model *m = (struct rv_agent_model *)((char *)target - offsetof(struct rv_agent_model, examples));
    bool ok = false;
    size_t n = rv_list_length(r, node, "examples", RV_MAX_EXAMPLES, &ok);

    if (!ok)
        return;
    m->examples = rv_loader_array(rv_loader_of(r), n, sizeof *m->examples);
    if (!m->examples)
        return;
    m->n_examples = n;
    for (size_t i = 0; i < n; i++)
        read_example(r, node->items[i], i, &m->examples[i]);
}

/* --- Attachments --- */

static void compile_attachment(struct rv_key_reader *r, const struct rv_node *node, size_t i, rv_expr **out)
{
    /* Those of conditions but for `output`: the stage has none yet. */
    static const char *const variables[] = {"outputs", "envelope", "metadata", "state", "interrupt", "models",
                                            "group",   "error",    "item",     "index", "inputs"};
    struct rv_loader *l = rv_loader_of(r);
    char label[48];
    rv_err *err = NULL;
    struct rv_src src;
    int rc;

    snprintf(label, sizeof label, "attachments[%zu]", i);
    if (node->kind != RV_NODE_STR) {
        rv_keys_wrong_type(r, node, label, "an expression");
        return;
    }
    src = rv_node_text_src(node);
    rc = rv_expr_compile(node->text, &src, variables, RV_COUNT(variables), out, &err);
    if (rc == RV_E_NOMEM) {
        l->rc = rc;
    } else if (rc < 0) {
        rc = RV_WRAP(&err, rc, "agent \"%s\": %s", r->owner_name ? r->owner_name : "", label);
        rv_findings_add_text_err(l->findings, RV_SEVERITY_ERROR, node, err);
    } else {
        rv_note_text(r, node, label, *out, NULL);
    }
    rv_err_free(err);
}

void rv_read_attachments(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_model *m = (struct rv_agent_model *)((char *)target - offsetof(struct rv_agent_model, attachments));
    bool ok = false;
    size_t n = rv_list_length(r, node, "attachments", RV_MAX_ATTACHMENTS, &ok);

    if (!ok)
        return;
    m->attachments = rv_loader_array(rv_loader_of(r), n, sizeof *m->attachments);
    if (!m->attachments)
        return;
    m->n_attachments = n;
    for (size_t i = 0; i < n; i++)
        compile_attachment(r, node->items[i], i, &m->attachments[i]);
}

/* --- All of them --- */

void rv_check_request_keys(struct rv_loader *l, const struct rv_agent *a)
{
    const struct {
        const char *key;
        const struct rv_src *src;
    } rows[] = {{"system_key", &a->places.system_key},
                {"examples", &a->places.examples},
                {"attachments", &a->places.attachments}};

    for (size_t i = 0; i < RV_COUNT(rows) && !a->has_llm; i++)
        if (rows[i].src->line > 0)
            rv_findings_add(l->findings, RV_SEVERITY_WARNING, rows[i].src, "set has_llm, or leave it out",
                            "agent \"%s\": %s has no effect: the stage does not call a model", a->name, rows[i].key);
}
