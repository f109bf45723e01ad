/* What prompts and `when` expressions see of a run, and where a stage leads by its rules: in order, then the default,
 * then the end (rule 5.8). Values are looked up by need; only what has no tree of its own in the envelope is built, and
 * then kept until the scope dies. */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>
#include <string.h>

/* Keep a built value alive with the scope and hand it out. Takes val. */
static int keep(struct rv_stage_scope *s, json_object *val, json_object **out, rv_err **err)
{
    if (!val)
        return RV_FAIL(err, RV_E_NOMEM, "build a value for an expression");
    if (!s->made && !(s->made = json_object_new_array())) {
        json_object_put(val);
        return RV_FAIL(err, RV_E_NOMEM, "build a value for an expression");
    }
    *out = val;
    return rv_json_push_take(s->made, val, err);
}

static int keep_int(struct rv_stage_scope *s, int64_t i, json_object **out, rv_err **err)
{
    return keep(s, json_object_new_int64(i), out, err);
}

static int keep_text(struct rv_stage_scope *s, const char *text, size_t len, json_object **out, rv_err **err)
{
    return keep(s, json_object_new_string_len(text, (int)len), out, err);
}

/* Scalars of the envelope by name, shared by the variable `envelope` and by prompts. */
static int envelope_field(struct rv_stage_scope *s, rv_str name, json_object **out, bool *found, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(s->env);
    const struct {
        const char *name;
        const char *text;
    } texts[] = {
        {"envelope_id", f->envelope_id}, {"request_id", f->request_id},       {"user_id", f->user_id},
        {"session_id", f->session_id},   {"current_stage", f->current_stage},
    };
    const struct {
        const char *name;
        int64_t value;
    } ints[] = {
        {"iteration", f->iteration},
        {"max_iterations", f->max_iterations},
        {"llm_call_count", f->llm_call_count},
        {"max_llm_calls", f->max_llm_calls},
        {"agent_hop_count", f->agent_hop_count},
        {"max_agent_hops", f->max_agent_hops},
        {"current_stage_number", f->current_stage_number},
    };

    *found = true;
    if (rv_str_is(name, "raw_input"))
        return keep_text(s, f->raw_input, f->raw_input_len, out, err);
    for (size_t i = 0; i < RV_COUNT(texts); i++)
        if (rv_str_is(name, texts[i].name))
            return keep_text(s, texts[i].text, strlen(texts[i].text), out, err);
    for (size_t i = 0; i < RV_COUNT(ints); i++)
        if (rv_str_is(name, ints[i].name))
            return keep_int(s, ints[i].value, out, err);
    if (rv_str_is(name, "parallel_mode"))
        return keep(s, json_object_new_boolean(f->parallel_mode), out, err);
    if (rv_str_is(name, "n_errors"))
        return keep_int(s, (int64_t)rv_envelope_n_errors(s->env), out, err);
    if (rv_str_is(name, "loop_feedback")) {
        *out = rv_envelope_feedback(s->env);
        return 0;
    }
    if (rv_str_is(name, "prior_plans")) {
        *out = rv_envelope_prior_plans(s->env);
        return 0;
    }
    *found = false;
    return 0;
}

static int envelope_object(struct rv_stage_scope *s, json_object **out, rv_err **err)
{
    static const char *const names[] = {"envelope_id",
                                        "request_id",
                                        "user_id",
                                        "session_id",
                                        "raw_input",
                                        "current_stage",
                                        "iteration",
                                        "max_iterations",
                                        "llm_call_count",
                                        "max_llm_calls",
                                        "agent_hop_count",
                                        "max_agent_hops",
                                        "current_stage_number",
                                        "parallel_mode",
                                        "n_errors",
                                        "loop_feedback",
                                        "prior_plans"};
    json_object *obj = json_object_new_object();
    int rc = keep(s, obj, out, err);
    for (size_t i = 0; i < RV_COUNT(names) && rc == 0; i++) {
        json_object *v = NULL;
        bool found;
        rc = envelope_field(s, rv_str_of(names[i]), &v, &found, err);
        if (rc == 0)
            rc = rv_json_set_ref(obj, names[i], v, err);
    }
    return rc;
}

static int interrupt_object(struct rv_stage_scope *s, json_object **out, bool *found, rv_err **err)
{
    struct rv_interrupt in = rv_envelope_interrupt(s->env);
    int rc;

    *found = true;
    *out = NULL;
    if (!in.exists)
        return 0;
    json_object *obj = json_object_new_object();
    rc = keep(s, obj, out, err);
    return rc < 0 ? rc
                  : RV_SET(obj, err, RV_M_TEXT("kind", rv_interrupt_kind_text(in.kind)), RV_M_TEXT("id", in.id),
                           RV_M_TEXT("question", in.question), RV_M_TEXT("message", in.message),
                           RV_M_OF(VALUE, "data", in.data), RV_M_OF(VALUE, "response", in.response));
}

static int models_object(struct rv_stage_scope *s, json_object **out, rv_err **err)
{
    json_object *obj = json_object_new_object();
    int rc = keep(s, obj, out, err);
    for (size_t i = 0; i < s->pipeline->n_models && rc == 0; i++)
        rc = rv_json_set_text(obj, s->pipeline->models[i].role, s->pipeline->models[i].model, err);
    return rc;
}

typedef json_object *(*map_get)(const rv_envelope *env, rv_str key, bool *found);
typedef int (*map_all)(const rv_envelope *env, json_object **out, rv_err **err);

/* How a map of the envelope is read. */
struct map_reader {
    map_get get;
    map_all all;
};
static int from_map(struct rv_stage_scope *s, const struct map_reader *map, rv_str field, json_object **out,
                    bool *found, rv_err **err)
{
    json_object *obj = NULL;
    int rc;

    if (field.ptr) {
        *out = map->get(s->env, field, found);
        return 0;
    }
    *found = true;
    rc = map->all(s->env, &obj, err);
    return rc < 0 ? rc : keep(s, obj, out, err);
}

/* The member `field` of a whole value that was found. */
static void member(rv_str field, json_object **out, bool *found)
{
    if (!*found || !field.ptr)
        return;
    json_object *obj = *out;
    *out = NULL;
    *found = false;
    if (!json_object_is_type(obj, json_type_object))
        return;
    char key[256];
    if (field.len >= sizeof key)
        return;
    memcpy(key, field.ptr, field.len);
    key[field.len] = '\0';
    *found = json_object_object_get_ex(obj, key, out);
}

/* Names that only some places have. *known: it is such a name. */
static int place_key(struct rv_stage_scope *s, rv_str name, json_object **out, bool *known, bool *found, rv_err **err)
{
    const struct {
        const char *name;
        json_object *value;
        bool is_there;
    } values[] = {
        {"item", s->item, s->index >= 0},
        {"group", s->group, s->group != NULL},
        {"error", s->error, s->error != NULL},
        {"inputs", s->inputs, s->inputs != NULL},
    };

    *known = true;
    for (size_t i = 0; i < RV_COUNT(values); i++)
        if (rv_str_is(name, values[i].name)) {
            *found = values[i].is_there;
            *out = *found ? values[i].value : NULL;
            return 0;
        }
    *known = rv_str_is(name, "index");
    *found = *known && s->index >= 0;
    return *found ? keep_int(s, s->index, out, err) : 0;
}

static int absent(rv_str name, rv_err **err)
{
    const char *where = rv_str_is(name, "group")    ? "at a join"
                        : rv_str_is(name, "error")  ? "in a stage that an error_next leads to"
                        : rv_str_is(name, "inputs") ? "inside of a pipeline that is a stage of another one"
                                                    : "in a stage with for_each";

    return RV_FAIL(err, RV_E_NOT_FOUND, "\"%.*s\" is there only %s", RV_STR_ARG(name), where);
}

static int lookup_engine_key(struct rv_stage_scope *s, rv_str name, rv_str field, json_object **out, bool *found,
                             rv_err **err)
{
    bool known;
    int rc = place_key(s, name, out, &known, found, err);

    if (rc < 0 || (known && !*found))
        return rc < 0 || s->is_prompt ? rc : absent(name, err); /* a prompt may mean an output of that name */
    if (known) {
        member(field, out, found);
        return 0;
    }
    if (rv_str_is(name, "outputs"))
        return from_map(s, &(const struct map_reader){.get = rv_envelope_output, .all = rv_envelope_build_outputs},
                        field, out, found, err);
    if (rv_str_is(name, "metadata"))
        return from_map(s, &(const struct map_reader){.get = rv_envelope_metadata, .all = rv_envelope_build_metadata},
                        field, out, found, err);
    if (rv_str_is(name, "state"))
        return from_map(s, &(const struct map_reader){.get = rv_envelope_state_value, .all = rv_envelope_build_state},
                        field, out, found, err);
    if (s->is_prompt) {
        if (rv_str_is(name, "interrupt_response")) {
            *out = rv_envelope_interrupt(s->env).response;
            *found = true;
        } else if (rv_str_is(name, "stage_context")) {
            json_object *ctx = NULL;
            rc = rv_envelope_build_stage_context(s->env, &ctx, err);
            if (rc == 0)
                rc = keep(s, ctx, out, err);
            *found = true;
        } else if (rv_str_is(name, "raw_input") || rv_str_is(name, "user_id") || rv_str_is(name, "session_id") ||
                   rv_str_is(name, "iteration") || rv_str_is(name, "loop_feedback") || rv_str_is(name, "prior_plans")) {
            rc = envelope_field(s, name, out, found, err);
        }
    } else if (rv_str_is(name, "output")) {
        *out = s->output;
        *found = true;
    } else if (rv_str_is(name, "envelope")) {
        if (field.ptr)
            return envelope_field(s, field, out, found, err);
        rc = envelope_object(s, out, err);
        *found = true;
    } else if (rv_str_is(name, "interrupt")) {
        rc = interrupt_object(s, out, found, err);
    } else if (rv_str_is(name, "models")) {
        rc = models_object(s, out, err);
        *found = true;
    }
    if (rc == 0)
        member(field, out, found);
    return rc;
}

static int lookup(void *self, rv_str name, rv_str field, json_object **out, bool *found, rv_err **err)
{
    struct rv_stage_scope *s = self;

    *out = NULL;
    int rc = lookup_engine_key(s, name, field, out, found, err);
    if (rc < 0 || *found || !s->is_prompt || rv_str_is(name, "outputs") || rv_str_is(name, "metadata") ||
        rv_str_is(name, "state"))
        return rc;
    *out = rv_envelope_output(s->env, name, found); /* outputs under their own key, engine keys first (W27) */
    member(field, out, found);
    return 0;
}

struct rv_scope rv_stage_scope_init(struct rv_stage_scope *s, const struct rv_pipeline *p, const rv_envelope *env,
                                    json_object *output, bool is_prompt)
{
    *s = (struct rv_stage_scope){.pipeline = p, .env = env, .output = output, .is_prompt = is_prompt, .index = -1};
    return (struct rv_scope){.lookup = lookup, .self = s};
}

void rv_stage_scope_set_place(struct rv_stage_scope *s, const struct rv_visit_place *place)
{
    s->group = place->group;
    s->error = place->error;
    s->item = place->item;
    s->inputs = place->inputs;
    s->index = place->index;
}

void rv_stage_scope_fini(struct rv_stage_scope *s)
{
    json_object_put(s->made);
    s->made = NULL;
}

static const char *const by_texts[] = {
#define X(name, text) [RV_ROUTE_##name] = text,
    RV_ROUTES_BY(X)
#undef X
};

const char *rv_route_by_text(enum rv_route_by by)
{
    return by_texts[by];
}

static int matches(const struct rv_rule *rule, json_object *output, const struct rv_scope *scope, bool *out,
                   rv_err **err)
{
    if (rule->when) {
        int rc = rv_expr_test(rule->when, scope, out, err);
        if (rc == RV_E_NOMEM)
            return rc;
        return rc < 0 ? RV_WRAP_AT(err, &rule->src, RV_E_INVALID, "routing rule \"%s\" can not be decided",
                                   rv_expr_text(rule->when))
                      : 0;
    }
    json_object *value = NULL;
    *out = json_object_is_type(output, json_type_object) &&
           json_object_object_get_ex(output, rule->condition, &value) && rv_json_equal(value, rule->value);
    return 0;
}

int rv_route(const struct rv_agent *agent, json_object *output, const struct rv_scope *scope, struct rv_routed *out,
             rv_err **err)
{
    for (size_t i = 0; i < agent->routing.n_rules; i++) {
        bool match = false;
        int rc = matches(&agent->routing.rules[i], output, scope, &match, err);
        if (rc < 0)
            return rc;
        if (match) {
            *out = (struct rv_routed){agent->routing.rules[i].target, RV_ROUTE_RULE, (int)i};
            return 0;
        }
    }
    bool has_default = agent->routing.default_target != RV_TARGET_NONE;
    *out = (struct rv_routed){has_default ? agent->routing.default_target : RV_TARGET_END,
                              has_default ? RV_ROUTE_DEFAULT : RV_ROUTE_NO_MATCH, -1};
    return 0;
}
