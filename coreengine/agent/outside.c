/* Work that a visit leaves to the run: the elements of a list, which are visits themselves, and another
 * pipeline, which is a run. And `set`, which needs no call: the output is built from expressions. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

/* --- Values that are built --- */

#define MAX_PATH      8    /* keys of a path in a message, the innermost ones: people write no deeper values */
#define MAX_PATH_TEXT 1024 /* bytes: MAX_PATH keys of some hundred bytes; the rest is left out */

struct building {
    const struct rv_scope *scope;
    size_t n_values;
    size_t n_bytes;
    struct {
        const char *key; /* NULL: an element of a list */
        size_t index;
    } path[MAX_PATH]; /* to the value that failed, the innermost first */
    size_t n_path;
};

static int build(const struct rv_built *b, struct building *state, json_object **out, rv_err **err);

/* Bytes that a value adds to the output: it may be borrowed many times, and is written each time. */
static int weigh(struct building *state, json_object *value, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_BUILT_MAX_BYTES - state->n_bytes + 1);

    rv_json_write(value, &text);
    bool too_long = text.rc == RV_E_LIMIT || text.len > RV_BUILT_MAX_BYTES - state->n_bytes;
    int rc = text.rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "build a value") : 0;
    state->n_bytes += text.len;
    rv_buf_fini(&text);
    return rc == 0 && too_long
               ? RV_FAIL(err, RV_E_LIMIT, "the values together are longer than %zu bytes", (size_t)RV_BUILT_MAX_BYTES)
               : rc;
}

static int build_parts(const struct rv_built *b, struct building *state, json_object **out, rv_err **err)
{
    json_object *made = b->kind == RV_BUILT_MAP ? json_object_new_object() : json_object_new_array();
    int rc = made ? 0 : RV_FAIL(err, RV_E_NOMEM, "build a value");

    for (size_t i = 0; i < b->n && rc == 0; i++) {
        json_object *part = NULL;
        rc = build(&b->items[i], state, &part, err);
        if (rc == 0)
            rc = b->kind == RV_BUILT_MAP ? rv_json_set_ref(made, b->keys[i], part, err)
                                         : rv_json_push_ref(made, part, err);
        json_object_put(part);
        if (rc < 0 && state->n_path < MAX_PATH) {
            state->path[state->n_path].key = b->kind == RV_BUILT_MAP ? b->keys[i] : NULL;
            state->path[state->n_path++].index = i;
        }
    }
    if (rc < 0)
        json_object_put(made);
    else
        *out = made;
    return rc;
}

static int build(const struct rv_built *b, struct building *state, json_object **out, rv_err **err)
{
    int rc = 0;

    *out = NULL;
    if (b->kind == RV_BUILT_LIST || b->kind == RV_BUILT_MAP)
        return build_parts(b, state, out, err);
    if (++state->n_values > RV_BUILT_MAX_VALUES)
        return RV_FAIL(err, RV_E_LIMIT, "it has more than %d values", RV_BUILT_MAX_VALUES);
    if (b->kind == RV_BUILT_EXPR) {
        rc = rv_expr_eval(b->expr, state->scope, out, err);
        if (rc < 0 && rc != RV_E_NOMEM)
            rc = RV_WRAP_AT(err, &b->node->src, rc, "\"%s\" cannot be evaluated", rv_expr_text(b->expr));
    } else {
        *out = json_object_get(b->value);
    }
    if (rc == 0)
        rc = weigh(state, *out, err);
    if (rc < 0) {
        json_object_put(*out);
        *out = NULL;
    }
    return rc;
}

static bool fits_depth(json_object *value, int levels)
{
    if (levels == 0)
        return false;
    if (json_object_is_type(value, json_type_array))
        for (size_t i = 0; i < json_object_array_length(value); i++)
            if (!fits_depth(json_object_array_get_idx(value, i), levels - 1))
                return false;
    if (json_object_is_type(value, json_type_object)) {
        json_object_object_foreach (value, key, member) {
            (void)key;
            if (!fits_depth(member, levels - 1))
                return false;
        }
    }
    return true;
}

/* "agent "a": set.rows[0].name" before what went wrong */
static int wrap_path(const struct building *state, const char *where, int rc, rv_err **err)
{
    rv_buf path = RV_BUF_INIT(MAX_PATH_TEXT);

    for (size_t i = state->n_path; i-- > 0;) {
        if (state->path[i].key)
            rv_buf_printf(&path, ".%s", state->path[i].key);
        else
            rv_buf_printf(&path, "[%zu]", state->path[i].index);
    }
    rc = RV_WRAP(err, path.rc == RV_E_NOMEM ? path.rc : rc, "%s%s", where, rv_buf_cstr(&path));
    rv_buf_fini(&path);
    return rc;
}

int rv_built_eval(const struct rv_built *b, const struct rv_scope *scope, const char *where, json_object **out,
                  rv_err **err)
{
    struct building state = {.scope = scope};
    int rc = build(b, &state, out, err);

    if (rc < 0 && rc != RV_E_NOMEM && where)
        return wrap_path(&state, where, rc, err);
    if (rc < 0 || fits_depth(*out, RV_JSON_MAX_DEPTH))
        return rc;
    json_object_put(*out);
    *out = NULL;
    return RV_FAIL(err, RV_E_LIMIT, "the value is nested deeper than %d levels", RV_JSON_MAX_DEPTH);
}

/* Make a value of what the visit sees. If one of its expressions fails, so does the visit, and *out is NULL. Errors
 * name their place since rules 6: a replay of an older run has to fail with the same text. */
static int make(rv_visit *v, const struct rv_built *b, const char *key, json_object **out, rv_err **err)
{
    rv_buf where = RV_BUF_INIT(RV_MAX_STAGE_NAME + 64);
    struct rv_stage_scope values;
    struct rv_scope scope = rv_stage_scope_init(&values, v->shared->pipeline, v->env, NULL, false);
    rv_err *cause = NULL;

    if (v->shared->rules >= RV_RULES_6)
        rv_buf_printf(&where, "agent \"%s\": %s", v->agent->name, key);
    if (rv_buf_check(&where, "a place", err) < 0) {
        rv_stage_scope_fini(&values);
        return RV_E_NOMEM;
    }
    rv_stage_scope_set_place(&values, &v->place);
    int rc = rv_built_eval(b, &scope, where.len > 0 ? rv_buf_cstr(&where) : NULL, out, &cause);
    rv_buf_fini(&where);
    rv_stage_scope_fini(&values);
    return rc < 0 ? visit_fail_cause(v, rc == RV_E_LIMIT ? rv_error_limit : rv_error_expression, cause, err) : 0;
}

int visit_set(rv_visit *v, rv_err **err)
{
    int rc = make(v, v->agent->set, "set", &v->output, err);

    if (rc == 0 && v->output)
        v->phase = PHASE_CHECK;
    return rc;
}

/* --- Lists and other pipelines --- */

json_object *rv_visit_outside_state(const rv_visit *v)
{
    return v->outside_state;
}

void visit_resume_inner(rv_visit *v, json_object *kept)
{
    v->outside_state = json_object_get(rv_json_get_obj(kept, "state"));
    v->outside_value = json_object_get(rv_json_get_obj(kept, "inputs"));
    v->resumed = v->outside_state && v->outside_value;
}

bool rv_visit_kept_inside(const struct rv_visit_shared *shared, int stage, const rv_envelope *env,
                          struct rv_kept_inside *out)
{
    json_object *kept =
        shared->pipeline->agents[stage].inner.pipeline ? visit_kept(shared, stage, env, RV_KEPT_PIPELINE) : NULL;

    if (!kept || !rv_json_get_text(kept, "interrupt_id", &out->interrupt_id))
        return false;
    out->inputs = rv_json_get_obj(kept, "inputs");
    out->state = rv_json_get_obj(kept, "state");
    return true;
}

bool rv_visit_asks_inside(const struct rv_visit_shared *shared, const rv_envelope *env, const struct rv_interrupt *in)
{
    for (size_t i = 0; i < shared->pipeline->n_agents; i++) {
        struct rv_kept_inside kept;

        if (rv_visit_kept_inside(shared, (int)i, env, &kept) && in->id && strcmp(kept.interrupt_id, in->id) == 0)
            return true;
    }
    return false;
}

static int keep_inner(rv_visit *v, json_object *state, const char *id, rv_err **err)
{
    json_object *kept = json_object_new_object();
    int rc = RV_SET(kept, err, RV_M_TEXT("kind", RV_KEPT_PIPELINE), RV_M_TEXT("interrupt_id", id),
                    RV_M_OF(VALUE, "inputs", v->outside_value), RV_M_OF(VALUE, "state", state));

    if (rc == 0)
        rc = rv_envelope_set_suspended(v->env, rv_str_of(v->agent->name), kept, err);
    json_object_put(kept);
    return rc;
}

int visit_wait_inside(rv_visit *v, const struct rv_outside_end *end, struct rv_effects *out, rv_err **err)
{
    struct rv_interrupt in = rv_envelope_interrupt(end->asks);
    struct rv_interrupt_spec spec = {.kind = in.kind,
                                     .id = rv_str_of(in.id ? in.id : ""),
                                     .question = {in.question, in.question ? strlen(in.question) : 0},
                                     .message = {in.message, in.message ? strlen(in.message) : 0},
                                     .data = in.data,
                                     .ttl_us = in.expires_at_us ? in.expires_at_us - v->now_us : 0,
                                     .replace = true};

    if (in.expires_at_us && spec.ttl_us <= 0)
        spec.ttl_us = 1;
    int rc = in.exists ? rv_envelope_raise(v->env, &spec, v->now_us, err)
                       : RV_FAIL(err, RV_E_STATE, "an inner run of stage \"%s\" waits for nothing", v->agent->name);
    if (rc == 0)
        rc = keep_inner(v, end->state, in.id, err);
    json_object_put(end->state);
    if (rc < 0)
        return rc;
    v->output = json_object_new_object(); /* events have an object */
    if (!v->output)
        return RV_FAIL(err, RV_E_NOMEM, "pause stage \"%s\"", v->agent->name);
    v->result.outcome = RV_OUTCOME_SKIP; /* nothing was made yet */
    return visit_stay(v, out, err);
}

int visit_inner(rv_visit *v, rv_err **err)
{
    int rc = 0;

    if (v->outside_state) {
        v->outside = RV_OUTSIDE_PIPELINE;
        return 0;
    }
    json_object_put(v->outside_value); /* of the attempt before */
    v->outside_value = NULL;
    if (v->agent->inner.inputs)
        rc = make(v, v->agent->inner.inputs, "inputs", &v->outside_value, err);
    else if (!(v->outside_value = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "begin stage \"%s\"", v->agent->name);
    if (rc == 0 && v->outside_value)
        v->outside = RV_OUTSIDE_PIPELINE;
    return rc;
}

static int too_long(rv_visit *v, size_t n, rv_err **err)
{
    v->given_reason = RV_REASON_MAX_ITEMS;
    return rv_visit_fail(
        v, rv_error_limit, err,
        "agent \"%s\": the list of for_each has %zu elements, max_items (%lld) allows fewer: raise it, "
        "or shorten the list",
        v->agent->name, n, (long long)v->agent->each.max_items);
}

int visit_list(rv_visit *v, rv_err **err)
{
    struct rv_stage_scope values;
    struct rv_scope scope = rv_stage_scope_init(&values, v->shared->pipeline, v->env, NULL, false);
    json_object *list = NULL;
    rv_err *cause = NULL;

    v->phase = PHASE_MAIN;
    rv_stage_scope_set_place(&values, &v->place);
    int rc = rv_expr_eval(v->agent->each.list, &scope, &list, &cause);
    rv_stage_scope_fini(&values);
    if (rc < 0) {
        if (rc != RV_E_NOMEM)
            rc = RV_WRAP_AT(&cause, &v->agent->each.src, rc, "for_each \"%s\" cannot be evaluated",
                            rv_expr_text(v->agent->each.list));
        if (rc != RV_E_NOMEM && v->shared->rules >= RV_RULES_6)
            rc = RV_WRAP(&cause, rc, "agent \"%s\"", v->agent->name);
        return visit_fail_cause(v, rv_error_expression, cause, err);
    }
    if (!json_object_is_type(list, json_type_array)) {
        rc = rv_visit_fail(v, rv_error_expression, err,
                           "agent \"%s\": for_each \"%s\" gives a value of type %s, it must give a list (%s:%d:%d)",
                           v->agent->name, rv_expr_text(v->agent->each.list), rv_json_type_text(list),
                           v->agent->each.src.file, v->agent->each.src.line, v->agent->each.src.col);
        json_object_put(list);
        return rc;
    }
    if ((int64_t)json_object_array_length(list) > v->agent->each.max_items) {
        rc = too_long(v, json_object_array_length(list), err);
        json_object_put(list);
        return rc;
    }
    v->outside_value = list;
    v->outside = RV_OUTSIDE_LIST;
    return 0;
}

enum rv_outside rv_visit_outside(const rv_visit *v)
{
    return v->outside;
}

json_object *rv_visit_outside_value(const rv_visit *v)
{
    return v->outside_value;
}

int64_t rv_visit_deadline(const rv_visit *v)
{
    return v->deadline_us;
}

void rv_visit_add_calls(rv_visit *v, int64_t n)
{
    v->llm_calls += n;
}

int64_t rv_visit_number(const rv_visit *v)
{
    return v->visit_no;
}

bool rv_visit_repeats(const rv_visit *v)
{
    return v->asked_twice && v->shared->rules >= RV_RULES_10;
}
