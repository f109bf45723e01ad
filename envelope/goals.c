/* Goals over several passes, and what a loop-back keeps. */
#include "envelope/envelope_internal.h"

#include <string.h>

static const char *const default_archive[] = {"plan"};
static const char *const default_clear[] = {"plan", "arbiter", "execution", "synthesizer", "critic"};
static const char *const default_reset[] = {"plan", "execution", "critic"};

struct keys {
    const char *const *keys;
    size_t n;
};

static struct keys keys_of(const char *const *given, size_t n, const char *const *defaults, size_t n_defaults)
{
    return given ? (struct keys){given, n} : (struct keys){defaults, n_defaults};
}

static int new_list(json_object **out, rv_err **err)
{
    *out = json_object_new_array();
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a list of the envelope");
}

static int push_text(json_object *list, rv_str text, rv_err **err)
{
    return rv_json_push_take(list, json_object_new_string_len(text.len ? text.ptr : "", (int)text.len), err);
}

/* Give the list up to the envelope. */
static void put_list(rv_envelope *env, enum rv_list_id id, json_object *list)
{
    json_object_put(env->list[id]);
    env->list[id] = list;
}

/* Room and names for n goals, so that their states can be set without failing. */
static int prepare_goals(rv_envelope *env, const char *const *goals, size_t n, rv_err **err)
{
    const struct rv_name *name = NULL;
    int rc = map_reserve(&env->map[RV_MAP_GOALS], n, err);

    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = env_intern(env, rv_str_of(goals[i]), "goal", &name, err);
    return rc;
}

static void commit_goals(rv_envelope *env, const char *const *goals, size_t n, json_object *state)
{
    for (size_t i = 0; i < n; i++)
        map_put_ref(&env->map[RV_MAP_GOALS], env_name(env, rv_str_of(goals[i])), state);
}

int rv_envelope_init_goals(rv_envelope *env, const char *const *goals, size_t n, rv_err **err)
{
    size_t n_below = env->parent ? env_size(env->parent, RV_MAP_GOALS) : 0;
    json_object *pending = json_object_new_string("pending");
    json_object *all = NULL;
    json_object *remaining = NULL;
    int rc = pending ? 0 : RV_FAIL(err, RV_E_NOMEM, "set the goals");

    if (rc == 0)
        rc = new_list(&all, err);
    if (rc == 0)
        rc = new_list(&remaining, err);
    if (rc == 0)
        rc = prepare_goals(env, goals, n, err);
    if (rc == 0) /* the old goals are forgotten; a fork has to hide its parent's */
        rc = map_reserve(&env->map[RV_MAP_GOALS], n + n_below, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = push_text(all, rv_str_of(goals[i]), err);
        if (rc == 0)
            rc = push_text(remaining, rv_str_of(goals[i]), err);
    }
    if (rc == 0) {
        map_clear(&env->map[RV_MAP_GOALS]);
        env_hide_below(env, RV_MAP_GOALS);
        commit_goals(env, goals, n, pending);
        put_list(env, RV_LIST_ALL_GOALS, all);
        put_list(env, RV_LIST_REMAINING_GOALS, remaining);
        all = remaining = NULL;
    }
    json_object_put(all);
    json_object_put(remaining);
    json_object_put(pending);
    return rc;
}

static bool is_one_of(rv_str text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rv_str_is(text, words[i]))
            return true;
    return false;
}

/* remaining_goals without every entry that is satisfied now. */
static int still_open(const rv_envelope *env, const char *const *satisfied, size_t n, json_object **out, rv_err **err)
{
    json_object *open = env_list(env, RV_LIST_REMAINING_GOALS);
    json_object *list = NULL;
    int rc = new_list(&list, err);

    for (size_t i = 0; rc == 0 && i < json_object_array_length(open); i++) {
        json_object *goal = json_object_array_get_idx(open, i);

        if (!is_one_of(rv_json_str(goal), satisfied, n))
            rc = rv_json_push_ref(list, goal, err);
    }
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    *out = list;
    return 0;
}

static int stage_entry(const rv_envelope *env, const char *const *satisfied, size_t n, json_object *summary,
                       json_object **out, rv_err **err)
{
    json_object *plan = rv_envelope_output(env, RV_STR_LIT("plan"), NULL);
    json_object *plan_id = NULL;
    json_object *goals = NULL;
    json_object *entry = json_object_new_object();
    int rc = entry ? 0 : RV_FAIL(err, RV_E_NOMEM, "record a completed stage");

    if (plan)
        json_object_object_get_ex(plan, "plan_id", &plan_id);
    if (rc == 0)
        rc = new_list(&goals, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = push_text(goals, rv_str_of(satisfied[i]), err);
    if (rc == 0)
        rc = rv_json_set_int(entry, "stage_number", env->f.current_stage_number, err);
    if (rc == 0)
        rc = rv_json_set_ref(entry, "satisfied_goals", goals, err);
    if (rc == 0)
        rc = rv_json_set_ref(entry, "summary", summary, err);
    if (rc == 0)
        rc = rv_json_set_ref(entry, "plan_id", plan_id, err);
    json_object_put(goals);
    if (rc < 0) {
        json_object_put(entry);
        return rc;
    }
    *out = entry;
    return 0;
}

static void clear_outputs(rv_envelope *env, struct keys keys)
{
    for (size_t i = 0; i < keys.n; i++) {
        const struct rv_name *name = env_name(env, rv_str_of(keys.keys[i]));

        if (name)
            env_hide(env, RV_MAP_OUTPUTS, name);
    }
}

int rv_envelope_advance_stage(rv_envelope *env, const struct rv_goals_met *met, const struct rv_reset_rules *rules,
                              bool *more, rv_err **err)
{
    static const struct rv_reset_rules none;
    const struct rv_reset_rules *r = rules ? rules : &none;
    struct keys reset = keys_of(r->stage_reset, r->n_stage_reset, default_reset, RV_COUNT(default_reset));
    json_object *done = json_object_new_string("satisfied");
    json_object *open = NULL;
    json_object *entry = NULL;
    json_object *stages = NULL;
    int rc = done ? 0 : RV_FAIL(err, RV_E_NOMEM, "advance to the next stage");

    if (rc == 0 && met->summary && !json_object_is_type(met->summary, json_type_object))
        rc = RV_FAIL(err, RV_E_INVALID, "the summary must be an object, not %s", rv_json_type_text(met->summary));
    if (rc == 0)
        rc = prepare_goals(env, met->goals, met->n, err);
    if (rc == 0)
        rc = still_open(env, met->goals, met->n, &open, err);
    if (rc == 0)
        rc = stage_entry(env, met->goals, met->n, met->summary, &entry, err);
    if (rc == 0)
        rc = map_reserve(&env->map[RV_MAP_OUTPUTS], reset.n, err);
    if (rc == 0)
        rc = env_own_list(env, RV_LIST_COMPLETED_STAGES, &stages, err);
    if (rc == 0)
        rc = rv_json_push_ref(stages, entry, err);
    if (rc == 0) {
        commit_goals(env, met->goals, met->n, done);
        *more = json_object_array_length(open) > 0 && env->f.current_stage_number < env->f.max_stages;
        put_list(env, RV_LIST_REMAINING_GOALS, open);
        open = NULL;
        if (*more) {
            env->f.current_stage_number++;
            clear_outputs(env, reset);
        }
    }
    json_object_put(done);
    json_object_put(open);
    json_object_put(entry);
    return rc;
}

static int satisfied_goals(const rv_envelope *env, json_object **out, rv_err **err)
{
    json_object *all = env_list(env, RV_LIST_ALL_GOALS);
    json_object *list = NULL;
    int rc = new_list(&list, err);

    for (size_t i = 0; rc == 0 && i < json_object_array_length(all); i++) {
        json_object *goal = json_object_array_get_idx(all, i);
        const struct rv_entry *e = env_find(env, RV_MAP_GOALS, env_name(env, rv_json_str(goal)));

        if (e && rv_str_is(rv_json_str(e->value), "satisfied"))
            rc = rv_json_push_ref(list, goal, err);
    }
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    *out = list;
    return 0;
}

int rv_envelope_build_stage_context(const rv_envelope *env, json_object **out, rv_err **err)
{
    json_object *obj = json_object_new_object();
    json_object *part = NULL;
    struct rv_cursor c = env_cursor_on(env, RV_MAP_GOALS);
    const struct rv_entry *e;
    int rc = obj ? rv_json_set_int(obj, "current_stage", env->f.current_stage_number, err)
                 : RV_FAIL(err, RV_E_NOMEM, "make the stage context");

    if (rc == 0)
        rc = env_list_copy(env_list(env, RV_LIST_COMPLETED_STAGES), &part, err);
    if (rc == 0)
        rc = rv_json_set_take(obj, "completed_stages", part, err);
    if (rc == 0)
        rc = env_list_copy(env_list(env, RV_LIST_REMAINING_GOALS), &part, err);
    if (rc == 0)
        rc = rv_json_set_take(obj, "remaining_goals", part, err);
    if (rc == 0)
        rc = rv_json_set_take(obj, "goal_completion_status", part = json_object_new_object(), err);
    while (rc == 0 && (e = env_cursor_next(&c)) != NULL)
        rc = rv_json_set_ref(part, e->name->text, e->value, err);
    if (rc == 0)
        rc = satisfied_goals(env, &part, err);
    if (rc == 0)
        rc = rv_json_set_take(obj, "satisfied_goals", part, err);
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}

int rv_envelope_add_feedback(rv_envelope *env, rv_str feedback, rv_err **err)
{
    json_object *list = NULL;
    int rc;

    if (!rv_utf8_valid(feedback, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the feedback is not UTF-8");
    rc = env_own_list(env, RV_LIST_FEEDBACK, &list, err);
    return rc < 0 ? rc : push_text(list, feedback, err);
}

int rv_envelope_increment_iteration(rv_envelope *env, rv_str feedback, const struct rv_reset_rules *rules, rv_err **err)
{
    static const struct rv_reset_rules none;
    const struct rv_reset_rules *r = rules ? rules : &none;
    struct keys archive = keys_of(r->retry_archive, r->n_retry_archive, default_archive, RV_COUNT(default_archive));
    struct keys clear = keys_of(r->retry_clear, r->n_retry_clear, default_clear, RV_COUNT(default_clear));
    json_object *plans = NULL;
    size_t n_plans;
    int rc = map_reserve(&env->map[RV_MAP_OUTPUTS], clear.n, err);

    if (rc == 0)
        rc = env_own_list(env, RV_LIST_PRIOR_PLANS, &plans, err);
    if (rc < 0)
        return rc;
    n_plans = json_object_array_length(plans);
    for (size_t i = 0; rc == 0 && i < archive.n; i++) {
        bool found = false;
        json_object *plan = rv_envelope_output(env, rv_str_of(archive.keys[i]), &found);

        if (found)
            rc = rv_json_push_ref(plans, plan, err);
    }
    if (rc == 0 && feedback.ptr)
        rc = rv_envelope_add_feedback(env, feedback, err);
    if (rc < 0) {
        env_list_cut(plans, n_plans);
        return rc;
    }
    env->f.iteration = env_counter_add(env->f.iteration, 1);
    clear_outputs(env, clear);
    return 0;
}

json_object *rv_envelope_feedback(const rv_envelope *env)
{
    return env_list(env, RV_LIST_FEEDBACK);
}

json_object *rv_envelope_prior_plans(const rv_envelope *env)
{
    return env_list(env, RV_LIST_PRIOR_PLANS);
}
