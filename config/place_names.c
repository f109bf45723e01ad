/* Names that only some visits have: `group` at a join, `error` at a handler, `item` and `index` in a list, `inputs` in
 * a pipeline that is a stage. A prompt or an expression that names one has to belong to such a stage. */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"

enum place_name { NAME_GROUP, NAME_ERROR, NAME_ITEM, NAME_INDEX, NAME_INPUTS };
static const struct {
    const char *name, *where, *hint;
    enum rv_severity severity;
} place_names[] = {
    [NAME_GROUP] = {"group", "at a join", "give the stage the key join, or take the name out", RV_SEVERITY_ERROR},
    [NAME_ERROR] = {"error", "in a stage that an error_next leads to",
                    "let the error_next of a stage name it, or take the name out", RV_SEVERITY_WARNING},
    [NAME_ITEM] = {"item", "in a stage with for_each", "give the stage for_each, or take the name out",
                   RV_SEVERITY_ERROR},
    [NAME_INDEX] = {"index", "in a stage with for_each", "give the stage for_each, or take the name out",
                    RV_SEVERITY_ERROR},
    [NAME_INPUTS] = {"inputs", "in a pipeline with the key inputs",
                     "list the names under inputs at the top of the file, or take the name out", RV_SEVERITY_ERROR},
};

static int find_name(rv_str name)
{
    for (size_t i = 0; i < RV_COUNT(place_names); i++)
        if (rv_str_is(name, place_names[i].name))
            return (int)i;
    return -1;
}

bool rv_is_place_name(rv_str name)
{
    return find_name(name) >= 0;
}

/* The names that a stage has, a bit each. */
static unsigned names_of(const struct rv_agent *a)
{
    return (a->join.wait != RV_WAIT_NOT ? 1U << NAME_GROUP : 0) |
           (a->each.list ? 1U << NAME_ITEM | 1U << NAME_INDEX : 0);
}

/* A text that asks whether the name is there knows that it may not be. */
static unsigned asked_for(const struct rv_placeholder *place)
{
    int which = place->is_test ? find_name(place->root) : -1;

    return which >= 0 ? 1U << which : 0;
}

/* Once for each name of a text. what: how the finding begins */
static void check(struct rv_loader *l, struct rv_placeholder *place, const char *what, unsigned *has)
{
    int which = find_name(place->root);

    if (which < 0 || *has >> which & 1U)
        return;
    *has |= 1U << which;
    rv_findings_add(l->findings, place_names[which].severity, &place->src, place_names[which].hint,
                    "%s names \"%s\", which is there only %s", what, place_names[which].name, place_names[which].where);
}

static void check_template(struct rv_loader *l, const rv_template *t, const struct rv_src *src, int indent,
                           const char *what, unsigned has)
{
    for (size_t i = 0; t && i < rv_template_n_placeholders(t); i++) {
        struct rv_placeholder place = rv_template_placeholder(t, i);
        has |= asked_for(&place);
    }
    for (size_t i = 0; t && i < rv_template_n_placeholders(t); i++) {
        struct rv_placeholder place = rv_template_placeholder(t, i);

        if (rv_index_get(&l->p->internal->output_index, place.root) >= 0) /* it may mean an output */
            continue;
        if (indent > 0 && place.src.line > src->line)
            place.src.col += indent;
        check(l, &place, what, &has);
    }
}

static void check_prompt(struct rv_loader *l, const struct rv_prompt_config *prompt, unsigned has)
{
    char what[RV_MAX_STAGE_NAME + 96];

    snprintf(what, sizeof what, "prompt \"%.*s\"", RV_STR_ARG(rv_utf8_cut(rv_str_of(prompt->key), 200)));
    check_template(l, prompt->compiled, &prompt->src, prompt->indent, what, has);
}

static void check_noted(struct rv_loader *l, const struct rv_noted_text *text, const unsigned *has)
{
    int stage = text->owner ? rv_pipeline_stage(l->p, rv_str_of(text->owner)) : -1;
    unsigned names = stage >= 0 ? has[stage] : 0;

    if (stage < 0)
        return;
    if (l->p->agents[stage].inner.file[0])
        names |= 1U << NAME_INPUTS; /* its outputs are looked up inside */
    check_template(l, text->template, &text->src, text->indent, text->what, names);
    for (size_t i = 0; text->expr && i < rv_expr_n_names(text->expr); i++) {
        struct rv_placeholder place = rv_expr_name(text->expr, i);
        names |= asked_for(&place);
    }
    for (size_t i = 0; text->expr && i < RV_COUNT(place_names); i++) {
        struct rv_placeholder place = {.root = rv_str_of(place_names[i].name)};

        if (!rv_expr_has_variable(text->expr, place_names[i].name, &place.src))
            continue;
        if (text->indent > 0 && place.src.line > text->src.line)
            place.src.col += text->indent;
        check(l, &place, text->what, &names);
    }
}

void rv_check_place_names(struct rv_loader *l)
{
    const struct rv_pipeline *p = l->p;
    unsigned *has = rv_loader_array(l, p->n_agents, sizeof *has), all = p->inputs.n > 0 ? 1U << NAME_INPUTS : 0;
    unsigned *of_prompt = rv_loader_array(l, p->n_prompts, sizeof *of_prompt);
    rv_index prompts = {NULL, 0, 0};

    if (!has || !of_prompt)
        return;
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];

        has[i] |= names_of(a) | all;
        if (a->routing.error_target >= 0)
            has[a->routing.error_target] |= 1U << NAME_ERROR;
    }
    for (size_t i = 0; i < p->n_prompts && l->rc == 0; i++)
        if (rv_index_add(&prompts, rv_str_of(p->prompts[i].key), (int)i) == RV_E_NOMEM)
            l->rc = RV_E_NOMEM;
    for (size_t i = 0; i < p->n_agents && l->rc == 0; i++) {
        int prompt = rv_index_get(&prompts, rv_str_of(p->agents[i].model.prompt_key));
        int system = rv_index_get(&prompts, rv_str_of(p->agents[i].model.system_key));

        if (prompt >= 0)
            of_prompt[prompt] |= has[i];
        if (system >= 0)
            of_prompt[system] |= has[i];
    }
    for (size_t i = 0; i < p->n_prompts && l->rc == 0; i++)
        check_prompt(l, &p->prompts[i], of_prompt[i] | all);
    for (const struct rv_noted_text *text = l->noted; text && l->rc == 0; text = text->next)
        check_noted(l, text, has);
    rv_index_fini(&prompts);
}
