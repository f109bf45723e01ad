/* What a stage might come up with: an object with the fields that the pipeline looks at, aimed at one of its routes. */
#include "coreengine/sim/sim_internal.h"

#include <stdlib.h>
#include <string.h>

#define AIM_TRIES 8 /* outputs that are made until a `when` holds */

static int field_value(const struct sim_field *f, struct sim_rng *r, json_object **out, rv_err **err)
{
    size_t n = json_object_array_length(f->values);
    int rc = 0;

    if (f->is_list && sim_below(r, 3) > 0) {
        json_object *list = json_object_new_array();
        rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "make an output");
        for (uint32_t i = 0, len = sim_below(r, 4); i < len && rc == 0; i++)
            rc = n ? rv_json_push_ref(list, json_object_array_get_idx(f->values, sim_below(r, (uint32_t)n)), err)
                   : rv_json_push_take(list, sim_words(r, 2), err);
        *out = list;
        return rc;
    }
    if (n > 0 && sim_below(r, 6) < 5) {
        *out = json_object_get(json_object_array_get_idx(f->values, sim_below(r, (uint32_t)n)));
        return 0;
    }
    if (sim_below(r, 8) == 7)
        return sim_any(r, 1, out, err);
    *out = sim_words(r, 5);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "make an output");
}

/* Put a value at a path, making objects on the way. Takes v. */
static int set_path(json_object *obj, const struct sim_field *f, json_object *v, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i + 1 < f->n_path && rc == 0; i++) {
        json_object *next = rv_json_get_obj(obj, f->path[i]);
        if (!next) {
            rc = rv_json_set_take(obj, f->path[i], json_object_new_object(), err);
            next = rc == 0 ? rv_json_get_obj(obj, f->path[i]) : NULL;
        }
        obj = next;
    }
    if (rc == 0)
        rc = rv_json_set_ref(obj, f->path[f->n_path - 1], v, err);
    json_object_put(v);
    return rc;
}

/* Words that the engine itself understands in an output. */
static int set_words(struct sim_rng *r, json_object *obj, rv_err **err)
{
    uint32_t how = sim_below(r, 80);
    int rc = 0;

    if (how == 76)
        rc = rv_json_set_text(obj, "outcome", "no_such_outcome", err);
    else if (how >= 77)
        rc = rv_json_set_text(obj, "outcome", rv_outcome_text((enum rv_outcome)sim_below(r, RV_N_OUTCOME)), err);
    if (rc == 0 && sim_below(r, 4) == 3)
        rc = rv_json_set_text(obj, "feedback", "not good enough", err);
    if (rc == 0 && sim_below(r, 4) == 3)
        rc = rv_json_set_text(obj, "clarification_question", "which one?", err);
    return rc;
}

/* --- plans --- */

static int set_question(struct sim_seed *s, struct sim_rng *r, json_object *step, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(SIM_MAX_TEXT);
    json_object *v = NULL;

    int rc = sim_ask_arguments(s, "nobody", r, &text, err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), NULL, &v, err);
    if (rc == 0)
        rc = rv_json_set_ref(step, "parameters", v, err);
    json_object_put(v);
    rv_buf_fini(&text);
    return rc;
}

static int set_parameters(struct sim_seed *s, const char *tool, struct sim_rng *r, json_object *step, rv_err **err)
{
    const struct rv_catalog *c = s->subject->catalog;
    const struct rv_tool_info *info = c ? c->tool(c->self, rv_str_of(tool)) : NULL;
    json_object *v = NULL;
    bool fits;

    if (strcmp(tool, SIM_ASK_AGENT) == 0)
        return set_question(s, r, step, err);
    if (!info || !info->input_json || sim_below(r, 12) == 11) /* now and then parameters that do not fit */
        return sim_below(r, 2) ? rv_json_set_take(step, "parameters", json_object_new_object(), err) : 0;
    int rc = sim_value(info->input_json, info->input, r, &v, &fits, err);
    if (rc == 0)
        rc = rv_json_set_ref(step, "parameters", v, err);
    json_object_put(v);
    return rc;
}

static int add_step(struct sim_seed *s, const struct sim_shape *shape, struct sim_rng *r, json_object *steps,
                    rv_err **err)
{
    uint32_t odd = sim_below(r, 24);
    json_object *step = json_object_new_object();
    int rc = step ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a plan");

    const char *tool = shape->n_tools ? shape->tools[sim_below(r, (uint32_t)shape->n_tools)] : "no_such_tool";
    if (odd == 23) {
        json_object_put(step);
        return rv_json_push_take(steps, json_object_new_string("no step"), err);
    }
    if (odd == 22)
        tool = "no_such_tool";
    if (rc == 0 && odd != 21)
        rc = rv_json_set_text(step, "tool", tool, err);
    if (rc == 0)
        rc = set_parameters(s, tool, r, step, err);
    if (rc == 0 && sim_below(r, 2))
        rc = rv_json_set_text(step, "step_id", "the same id", err);
    if (rc == 0)
        return rv_json_push_take(steps, step, err);
    json_object_put(step);
    return rc;
}

static int plan_steps(struct sim_seed *s, const struct sim_shape *shape, struct sim_rng *r, json_object *output,
                      rv_err **err)
{
    json_object *steps = json_object_new_array();
    uint32_t n = r->is_plain ? 1 : sim_below(r, 4);
    int rc = steps ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a plan");

    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = add_step(s, shape, r, steps, err);
    if (rc == 0 && !r->is_plain && sim_below(r, 40) == 39)
        return json_object_put(steps), rv_json_set_text(output, "steps", "no list", err);
    if (rc == 0)
        return rv_json_set_take(output, "steps", steps, err);
    json_object_put(steps);
    return rc;
}

/* --- outputs --- */

static int fill(struct sim_seed *s, int stage, struct sim_rng *r, json_object *obj, rv_err **err)
{
    const struct sim_shape *shape = &s->hints->shapes[stage];
    int rc = 0;

    for (size_t i = 0; i < shape->n_fields && rc == 0; i++) {
        const struct sim_field *f = &shape->fields[i];
        json_object *v = NULL;
        if (!f->is_required && sim_below(r, 3) == 0)
            continue;
        rc = field_value(f, r, &v, err);
        if (rc == 0)
            rc = set_path(obj, f, v, err);
        else
            json_object_put(v);
    }
    if (rc == 0 && shape->tools)
        rc = plan_steps(s, shape, r, obj, err);
    return rc == 0 ? set_words(r, obj, err) : rc;
}

/* Does the rule hold for it, as far as the run stands now? */
static bool holds(struct sim_seed *s, const struct rv_rule *rule, json_object *obj)
{
    struct rv_stage_scope values;
    bool yes = false;
    const rv_envelope *env = s->run ? rv_run_envelope(s->run) : NULL;

    if (!env)
        return true;
    struct rv_scope scope = rv_stage_scope_init(&values, s->subject->pipeline, env, obj, false);
    int rc =
        rv_expr_test(rule->when, &scope, &yes,
                     RV_CODE_ONLY("a rule that does not fit the output is not met; the tape keeps want of memory"));
    rv_stage_scope_fini(&values);
    if (rc == RV_E_NOMEM)
        s->tape.rc = rc; /* the rule is just not met for any other reason */
    return rc == 0 && yes;
}

int sim_output(struct sim_seed *s, int stage, struct sim_rng *r, json_object **out, rv_err **err)
{
    const struct rv_agent *a = &s->subject->pipeline->agents[stage];
    size_t aim = sim_below(r, (uint32_t)a->routing.n_rules + 1);
    const struct rv_rule *rule = aim > 0 ? &a->routing.rules[aim - 1] : NULL;
    json_object *obj = NULL;
    int rc = 0;

    for (int i = 0; i < AIM_TRIES && rc == 0; i++) {
        json_object_put(obj);
        obj = json_object_new_object();
        rc = obj ? fill(s, stage, r, obj, err) : RV_FAIL(err, RV_E_NOMEM, "make an output");
        if (rc == 0 && rule && !rule->when)
            rc = rv_json_set_ref(obj, rule->condition, rule->value, err);
        if (!rule || !rule->when || (rc == 0 && holds(s, rule, obj)))
            break;
    }
    if (rc < 0)
        json_object_put(obj);
    else
        *out = obj;
    return rc;
}
