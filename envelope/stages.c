/* Where the envelope is in its pipeline: stage order, stage sets, visits, edges. */
#include "envelope/envelope_internal.h"

int rv_envelope_set_stage_order(rv_envelope *env, const char *const *names, size_t n, rv_err **err)
{
    json_object *list = json_object_new_array();
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "set the stage order");

    for (size_t i = 0; rc == 0 && i < n; i++) {
        rv_str name = rv_str_of(names[i]);

        if (!rv_utf8_valid(name, NULL))
            rc = RV_FAIL(err, RV_E_INVALID, "stage_order[%zu] is not UTF-8", i);
        else
            rc = rv_json_push_take(list, json_object_new_string_len(name.ptr ? name.ptr : "", (int)name.len), err);
    }
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    json_object_put(env->list[RV_LIST_STAGE_ORDER]);
    env->list[RV_LIST_STAGE_ORDER] = list;
    return 0;
}

json_object *rv_envelope_stage_order(const rv_envelope *env)
{
    return rv_env_list(env, RV_LIST_STAGE_ORDER);
}

/* A stage is in one of the three sets at most; value is the failure's text in the last of them. */
static int move_to(rv_envelope *env, enum rv_map_id id, rv_str stage, json_object *value, rv_err **err)
{
    static const enum rv_map_id sets[] = {RV_MAP_ACTIVE, RV_MAP_COMPLETED, RV_MAP_FAILED};
    const struct rv_name *name = NULL;
    int rc = rv_env_intern(env, stage, "stage", &name, err);

    for (size_t i = 0; rc == 0 && i < RV_COUNT(sets); i++)
        if (sets[i] == id || env->parent)
            rc = rv_map_reserve(&env->map[sets[i]], 1, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(sets); i++)
        if (sets[i] != id)
            rv_env_hide(env, sets[i], name);
    rv_map_put_ref(&env->map[id], name, value);
    return 0;
}

int rv_envelope_start_stage(rv_envelope *env, rv_str stage, rv_err **err)
{
    return move_to(env, RV_MAP_ACTIVE, stage, NULL, err);
}

int rv_envelope_complete_stage(rv_envelope *env, rv_str stage, rv_err **err)
{
    return move_to(env, RV_MAP_COMPLETED, stage, NULL, err);
}

int rv_envelope_pause_stage(rv_envelope *env, rv_str stage, rv_err **err)
{
    const struct rv_name *name = NULL;
    int rc = rv_env_intern(env, stage, "stage", &name, err);

    if (rc == 0 && env->parent)
        rc = rv_map_reserve(&env->map[RV_MAP_ACTIVE], 1, err);
    if (rc == 0)
        rv_env_hide(env, RV_MAP_ACTIVE, name);
    return rc;
}

int rv_envelope_fail_stage(rv_envelope *env, rv_str stage, rv_str text, rv_err **err)
{
    struct rv_text clean = {0};
    json_object *value = NULL;
    int rc = rv_text_clean(text, &clean, err);

    if (rc < 0)
        return rc;
    value = json_object_new_string_len(clean.ptr ? clean.ptr : "", (int)clean.len);
    rc = value ? move_to(env, RV_MAP_FAILED, stage, value, err) : RV_FAIL(err, RV_E_NOMEM, "keep the failure's text");
    json_object_put(value);
    rv_text_fini(&clean);
    return rc;
}

static bool is_in(const rv_envelope *env, enum rv_map_id id, rv_str stage)
{
    return rv_env_find(env, id, rv_env_name(env, stage)) != NULL;
}

bool rv_envelope_is_active(const rv_envelope *env, rv_str stage)
{
    return is_in(env, RV_MAP_ACTIVE, stage);
}

bool rv_envelope_is_completed(const rv_envelope *env, rv_str stage)
{
    return is_in(env, RV_MAP_COMPLETED, stage);
}

bool rv_envelope_is_failed(const rv_envelope *env, rv_str stage)
{
    return is_in(env, RV_MAP_FAILED, stage);
}

size_t rv_envelope_n_active(const rv_envelope *env)
{
    return rv_env_size(env, RV_MAP_ACTIVE);
}

size_t rv_envelope_n_completed(const rv_envelope *env)
{
    return rv_env_size(env, RV_MAP_COMPLETED);
}

size_t rv_envelope_n_failed(const rv_envelope *env)
{
    return rv_env_size(env, RV_MAP_FAILED);
}

bool rv_envelope_all_completed(const rv_envelope *env)
{
    json_object *order = rv_env_list(env, RV_LIST_STAGE_ORDER);
    size_t n = json_object_array_length(order);

    for (size_t i = 0; i < n; i++)
        if (!rv_envelope_is_completed(env, rv_json_str(json_object_array_get_idx(order, i))))
            return false;
    return n > 0;
}

int64_t rv_envelope_visits(const rv_envelope *env, rv_str stage)
{
    const struct rv_name *name = rv_env_name(env, stage);

    return name ? rv_env_count(env, RV_MAP_VISITS, name, NULL) : 0;
}

int64_t rv_envelope_edge_count(const rv_envelope *env, rv_str from, rv_str to)
{
    const struct rv_name *from_name = rv_env_name(env, from);
    const struct rv_name *to_name = rv_env_name(env, to);

    return from_name && to_name ? rv_env_count(env, RV_MAP_EDGES, from_name, to_name) : 0;
}

int rv_envelope_count_edge(rv_envelope *env, rv_str from, rv_str to, int64_t *out_count, rv_err **err)
{
    const struct rv_name *from_name = NULL;
    const struct rv_name *to_name = NULL;
    struct rv_entry *e;
    int rc = rv_env_intern(env, from, "stage", &from_name, err);

    if (rc == 0)
        rc = rv_env_intern(env, to, "stage", &to_name, err);
    if (rc == 0)
        rc = rv_map_reserve(&env->map[RV_MAP_EDGES], 1, err);
    if (rc < 0)
        return rc;
    e = rv_map_put(&env->map[RV_MAP_EDGES], from_name, to_name);
    e->count = rv_counter_add(e->count, 1);
    if (out_count)
        *out_count = rv_env_count(env, RV_MAP_EDGES, from_name, to_name);
    return 0;
}

int rv_envelope_count_loop(rv_envelope *env, enum rv_loop_cause cause, rv_str stage, int64_t *of_stage, int64_t *of_all,
                           rv_err **err)
{
    enum rv_map_id id = cause == RV_LOOP_REPLAN ? RV_MAP_REPLANS : RV_MAP_REJECTIONS;
    const struct rv_name *name = NULL;
    int rc = rv_env_intern(env, stage, "stage", &name, err);

    if (rc == 0)
        rc = rv_map_reserve(&env->map[id], 1, err);
    if (rc < 0)
        return rc;
    struct rv_entry *mine = rv_map_put(&env->map[id], name, NULL);
    mine->count = rv_counter_add(mine->count, 1);
    *of_stage = mine->count;
    *of_all = 0;
    struct rv_cursor c = rv_cursor_on(env, id);
    for (const struct rv_entry *e = rv_cursor_next(&c); e; e = rv_cursor_next(&c))
        *of_all = rv_counter_add(*of_all, e->count);
    return 0;
}
