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
const struct rv_key_table config_example_table = {"example", "An example for a model", example_keys,
                                                  RV_COUNT(example_keys), NULL};

/* One text of an example, compiled; NULL: it is missing or not a text, and reading the keys has told so. */
static rv_template *compile(struct rv_key_reader *r, const struct rv_node *node, const char *key)
{
    const struct rv_node *text = rv_node_get(node, key);
    char label[48];

    snprintf(label, sizeof label, "%s%s", r->path, key);
    return text && text->kind == RV_NODE_STR ? config_loader_template(r, text, label) : NULL;
}

static void read_example(struct rv_key_reader *r, const struct rv_node *node, size_t i, struct rv_example *out)
{
    struct raw_example raw = {0};
    const char *outer = r->path;
    char path[32];

    snprintf(path, sizeof path, "examples[%zu].", i);
    r->path = path;
    rv_keys_read(r, node, example_keys, RV_COUNT(example_keys), &raw);
    out->user = compile(r, node, "user");
    out->assistant = compile(r, node, "assistant");
    r->path = outer;
}

void config_read_examples(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_model *m = (struct rv_agent_model *)((char *)target - offsetof(struct rv_agent_model, examples));

    m->examples = config_loader_items(
        r, node, "examples", RV_LIST_OF("a list of maps", RV_MAX_EXAMPLES, sizeof *m->examples), &m->n_examples);
    for (size_t i = 0; i < m->n_examples; i++)
        read_example(r, node->items[i], i, &m->examples[i]);
}

/* --- Attachments --- */

void config_read_attachments(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_agent_model *m = (struct rv_agent_model *)((char *)target - offsetof(struct rv_agent_model, attachments));

    m->attachments = config_loader_items(
        r, node, "attachments", RV_LIST_OF("a list of expressions", RV_MAX_ATTACHMENTS, sizeof *m->attachments),
        &m->n_attachments);
    for (size_t i = 0; i < m->n_attachments; i++) {
        char label[48];

        snprintf(label, sizeof label, "attachments[%zu]", i);
        if (node->items[i]->kind == RV_NODE_STR)
            m->attachments[i] = config_loader_expr(r, node->items[i], label, RV_TEXT_BEFORE_OUTPUT);
        else
            rv_keys_add_wrong_type(r, node->items[i], label, "an expression");
    }
}

/* --- All of them --- */

void config_check_request_keys(struct rv_loader *l, const struct rv_agent *a)
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
