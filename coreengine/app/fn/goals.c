/* Goals, retry context and gathered state (rules 3.7, 3.8, state schema). */
#include "coreengine/app/fn/fn_internal.h"

#include <stdlib.h>
#include <string.h>

static int load(json_object *in, rv_envelope **out, rv_err **err)
{
    return rv_fn_envelope(rv_json_get_obj(in, "state"), in, out, err);
}

static int initialize_goals(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    const char **goals = NULL;
    size_t n = 0;

    int rc = load(in, &env, err);
    if (rc == 0)
        rc = rv_fn_words(in, "goals", &goals, &n, err);
    if (rc == 0)
        rc = rv_envelope_init_goals(env, goals, n, err);
    if (rc == 0)
        rv_fn_write_state(env, out);
    free(goals);
    rv_envelope_free(env);
    return rc;
}

/* The lists of the pipeline where the input has one, else the defaults. *out borrows from *p, which the caller frees.
 */
static int reset_rules(json_object *in, struct rv_pipeline **p, struct rv_reset_rules *out, rv_err **err)
{
    json_object *config = rv_json_get_obj(in, "pipeline");
    int rc = config ? rv_fn_pipeline(config, p, err) : 0;

    *out = rc == 0 && config ? rv_pipeline_reset_rules(*p) : (struct rv_reset_rules){0};
    return rc;
}

static int advance_stage(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    struct rv_pipeline *p = NULL;
    struct rv_reset_rules rules;
    const char **satisfied = NULL;
    size_t n = 0;
    bool more = false;

    int rc = load(in, &env, err);
    if (rc == 0)
        rc = rv_fn_words(in, "satisfied", &satisfied, &n, err);
    if (rc == 0)
        rc = reset_rules(in, &p, &rules, err);
    if (rc == 0)
        rc = rv_envelope_advance_stage(env, satisfied, n, rv_json_get_obj(in, "summary"), &rules, &more, err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_bool(out, "more", more);
        rv_jw_key(out, "state");
        rv_fn_write_state(env, out);
        rv_jw_obj_end(out);
    }
    free(satisfied);
    rv_pipeline_free(p);
    rv_envelope_free(env);
    return rc;
}

static int increment_iteration(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    struct rv_pipeline *p = NULL;
    struct rv_reset_rules rules;

    int rc = load(in, &env, err);
    if (rc == 0)
        rc = reset_rules(in, &p, &rules, err);
    if (rc == 0)
        rc = rv_envelope_increment_iteration(env, rv_fn_str(in, "feedback"), &rules, err);
    if (rc == 0)
        rv_fn_write_state(env, out);
    rv_pipeline_free(p);
    rv_envelope_free(env);
    return rc;
}

static int stage_context(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    json_object *context = NULL;

    int rc = rv_fn_envelope(in, NULL, &env, err);
    if (rc == 0)
        rc = rv_envelope_stage_context(env, &context, err);
    if (rc == 0)
        rv_jw_value(out, context);
    json_object_put(context);
    rv_envelope_free(env);
    return rc;
}

static int merge_of(rv_str word, enum rv_merge_how *out, rv_err **err)
{
    static const char *const words[] = {"replace", "append", "merge_dict"};

    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(word, words[i])) {
            *out = (enum rv_merge_how)i;
            return 0;
        }
    int rc = RV_FAIL(err, RV_E_INVALID, "unknown merge \"%.*s\"", RV_STR_ARG(word));
    rv_err_hint(err, "legal: replace, append, merge_dict");
    return rc;
}

static int merge_state(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    enum rv_merge_how how = RV_MERGE_REPLACE;
    json_object *state = NULL;

    int rc = merge_of(rv_fn_str(in, "merge"), &how, err);
    if (rc == 0)
        rc = load(in, &env, err);
    if (rc == 0)
        rc = rv_envelope_merge_state(env, rv_fn_str(in, "key"), how, rv_fn_any(in, "value"), err);
    if (rc == 0)
        rc = rv_envelope_all_state(env, &state, err);
    if (rc == 0)
        rv_jw_value(out, state);
    json_object_put(state);
    rv_envelope_free(env);
    return rc;
}

static const struct rv_fn items[] = {
    {"initialize_goals", "{state: object, goals: words}", "state", "set the goals of a long task", initialize_goals},
    {"advance_stage", "{state: object, satisfied: words, summary?: object, pipeline?: object}",
     "{more: bool, state: object}",
     "tick off goals and go to the next part of the work; outputs in `stage_reset` of the pipeline are deleted",
     advance_stage},
    {"increment_iteration", "{state: object, feedback?: string, pipeline?: object}", "state",
     "count a loop-back: keep the feedback; `retry_archive` and `retry_clear` of the pipeline apply",
     increment_iteration},
    {"stage_context", "object", "object", "what prompts see of the goals", stage_context},
    {"merge_state", "{state: object, key: string, merge: string, value: any}", "object",
     "gather a value in `state`: replace, append or merge_dict", merge_state},
};
const struct rv_fn_group rv_fn_group_goals = {items, RV_COUNT(items)};
