/* Stages with `agent`: what contradicts it, as far as the pipeline's own text tells. */
#include <string.h>

#include "config/config_internal.h"

bool rv_agent_is_unbound(const struct rv_agent *a)
{
    return a->declared.name && a->declared.name[0] && !a->declared.doc;
}

/* Keys that say what the document says. */
static const struct {
    const char *key;
    bool when_false; /* only then */
    const char *text, *hint;
} contradictions[] = {
    {"has_llm", true, "has_llm is false, but a declared agent calls a model", "leave has_llm out"},
    {"has_tools", true, "has_tools is false, but its document says what tools there are",
     "write allowed_tools: [] for none"},
    {"output_mode", false, "output_mode is what the document of a declared agent makes it",
     "leave it out, or write structured_output: true or false"},
    {"output_schema", false, "output_schema is what the document of a declared agent makes it",
     "leave it out, or put the properties into the document"},
};
static const char *const only_with_agent[] = {"structured_output", "joins_session"};

static void check_keys(struct rv_loader *l, const struct rv_agent *a, const struct rv_node *node)
{
    for (size_t i = 0; i < RV_COUNT(contradictions); i++) {
        const struct rv_node *value = rv_node_get(node, contradictions[i].key);

        if (value && !(contradictions[i].when_false && !(value->kind == RV_NODE_BOOL && value->i64 == 0)))
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &value->src, contradictions[i].hint, "agent \"%s\": %s",
                            a->name, contradictions[i].text);
    }
}

static void refuse_keys(struct rv_loader *l, const struct rv_agent *a, const struct rv_node *node)
{
    for (size_t i = 0; i < RV_COUNT(only_with_agent); i++) {
        const struct rv_node *value = rv_node_get(node, only_with_agent[i]);

        if (value)
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &value->src, "name one: agent: NAME, or leave the key out",
                            "agent \"%s\": %s is for declared agents, and the stage has none", a->name,
                            only_with_agent[i]);
    }
}

void rv_check_declared(struct rv_loader *l)
{
    const struct rv_node **nodes = l->p->private->agent_nodes;

    for (size_t i = 0; nodes && i < l->p->n_agents; i++) {
        const struct rv_agent *a = &l->p->agents[i];

        if (a->places.agent.line == 0)
            refuse_keys(l, a, nodes[i]);
        else if (a->declared.name[0])
            check_keys(l, a, nodes[i]);
        if (a->places.agent.line > 0 && rv_node_get(nodes[i], "agent")->kind == RV_NODE_STR &&
            !rv_agentdoc_is_name(rv_str_of(a->declared.name)))
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &a->places.agent,
                            "a name is one word of letters, digits, \"-\", \"_\" and \".\"",
                            "agent \"%s\": agent is \"%.*s\", which is no name of one", a->name,
                            RV_STR_ARG(rv_utf8_cut(rv_str_of(a->declared.name), RV_MAX_STAGE_NAME)));
    }
}
