/* Maps from key to value (outputs, metadata, state, suspended work) and lists, seen through a fork. */
#include "envelope/envelope_internal.h"

#include <json-c/linkhash.h>

/* to: the second half of the key, of edges; else NULL. */
static const struct rv_entry *find_pair(const rv_envelope *env, enum rv_map_id id, const struct rv_name *name,
                                        const struct rv_name *to)
{
    for (; env; env = env->parent) {
        const struct rv_entry *own = env_map_find(&env->map[id], name, to);

        if (own)
            return own->kind == RV_ENTRY_LIVE ? own : NULL;
    }
    return NULL;
}

const struct rv_entry *env_find(const rv_envelope *env, enum rv_map_id id, const struct rv_name *name)
{
    return name ? find_pair(env, id, name, NULL) : NULL;
}

void env_hide(rv_envelope *env, enum rv_map_id id, const struct rv_name *name)
{
    struct rv_map *m = &env->map[id];

    if (env->parent && env_find(env->parent, id, name))
        map_hide(m, name);
    else
        map_drop(m, env_map_find(m, name, NULL));
}

void env_hide_below(rv_envelope *env, enum rv_map_id id)
{
    if (!env->parent)
        return;
    struct rv_cursor c = env_cursor_on(env->parent, id);
    for (const struct rv_entry *e = env_cursor_next(&c); e; e = env_cursor_next(&c))
        map_hide(&env->map[id], e->name);
}

size_t env_size(const rv_envelope *env, enum rv_map_id id)
{
    const struct rv_map *m = &env->map[id];
    size_t n = m->n_live;

    if (!env->parent)
        return n;
    n = env_size(env->parent, id);
    for (size_t i = 0; i < m->n; i++) {
        const struct rv_entry *e = &m->entries[i];
        bool below = e->kind != RV_ENTRY_DEAD && find_pair(env->parent, id, e->name, e->to);

        if (e->kind == RV_ENTRY_LIVE && !below)
            n++;
        if (e->kind == RV_ENTRY_GONE && below)
            n--;
    }
    return n;
}

int64_t env_count(const rv_envelope *env, enum rv_map_id id, const struct rv_name *name, const struct rv_name *to)
{
    int64_t sum = 0;

    for (; env; env = env->parent) {
        const struct rv_entry *own = env_map_find(&env->map[id], name, to);

        sum = env_counter_add(sum, own ? own->count : 0);
    }
    return sum;
}

static const rv_envelope *root_of(const rv_envelope *env)
{
    while (env->parent)
        env = env->parent;
    return env;
}

struct rv_cursor env_cursor_on(const rv_envelope *env, enum rv_map_id id)
{
    return (struct rv_cursor){.env = env, .id = id, .level = root_of(env)};
}

/* An entry stands where the envelope nearest to the root has it. */
static bool stands_higher(const rv_envelope *level, enum rv_map_id id, const struct rv_entry *e)
{
    for (level = level->parent; level; level = level->parent) {
        const struct rv_entry *above = env_map_find(&level->map[id], e->name, e->to);

        if (above && above->kind == RV_ENTRY_LIVE)
            return true;
    }
    return false;
}

/* The fork through which env sees that level. */
static const rv_envelope *level_after(const rv_envelope *env, const rv_envelope *level)
{
    while (env->parent != level)
        env = env->parent;
    return env;
}

const struct rv_entry *env_cursor_next(struct rv_cursor *c)
{
    for (;;) {
        const struct rv_map *m = &c->level->map[c->id];

        while (c->i < m->n) {
            const struct rv_entry *e = &m->entries[c->i++];

            if (e->kind != RV_ENTRY_LIVE || stands_higher(c->level, c->id, e))
                continue;
            if (c->level != c->env)
                e = find_pair(c->env, c->id, e->name, e->to);
            if (e)
                return e;
        }
        if (c->level == c->env)
            return NULL;
        c->level = level_after(c->env, c->level);
        c->i = 0;
    }
}

/* No entry, not even one that hides another: what most maps of a run are, most of the time. */
static bool is_bare(const rv_envelope *env, enum rv_map_id id)
{
    while (env && env->map[id].n == 0)
        env = env->parent;
    return !env;
}

static json_object *get(const rv_envelope *env, enum rv_map_id id, rv_str key, bool *found)
{
    const struct rv_entry *e = env_find(env, id, env_name(env, key));

    if (found)
        *found = e != NULL;
    return e ? e->value : NULL;
}

static int set(rv_envelope *env, enum rv_map_id id, rv_str key, json_object *value, const char *what, rv_err **err)
{
    const struct rv_name *name = NULL;
    const struct rv_entry *below;
    int rc = env_intern(env, key, what, &name, err);

    if (rc < 0)
        return rc;
    /* Writing the value of the snapshot is not a change, so it does not conflict with a sibling. To a branch it is one:
     * the branch has written, which its join looks at. */
    below = env->parent && !env->is_branch ? env_find(env->parent, id, name) : NULL;
    if (below && rv_json_equal(below->value, value)) {
        map_drop(&env->map[id], env_map_find(&env->map[id], name, NULL));
        return 0;
    }
    rc = map_reserve(&env->map[id], 1, err);
    if (rc < 0)
        return rc;
    map_put_ref(&env->map[id], name, value);
    return 0;
}

static int as_object(const rv_envelope *env, enum rv_map_id id, json_object **out, rv_err **err)
{
    json_object *obj = json_object_new_object();
    struct rv_cursor c = env_cursor_on(env, id);
    const struct rv_entry *e;
    int rc = obj ? 0 : RV_FAIL(err, RV_E_NOMEM, "gather values of the envelope");

    while (rc == 0 && (e = env_cursor_next(&c)) != NULL)
        rc = rv_json_set_ref(obj, e->name->text, e->value, err);
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}

static void write_map(const rv_envelope *env, enum rv_map_id id, rv_jw *w)
{
    struct rv_cursor c = env_cursor_on(env, id);
    const struct rv_entry *e;

    rv_jw_obj(w);
    while ((e = env_cursor_next(&c)) != NULL)
        rv_jw_kv_value(w, e->name->text, e->value);
    rv_jw_obj_end(w);
}

void rv_envelope_write_outputs(const rv_envelope *env, rv_jw *w)
{
    write_map(env, RV_MAP_OUTPUTS, w);
}

void rv_envelope_write_metadata(const rv_envelope *env, rv_jw *w)
{
    write_map(env, RV_MAP_METADATA, w);
}

void rv_envelope_write_state_values(const rv_envelope *env, rv_jw *w)
{
    write_map(env, RV_MAP_STATE, w);
}

json_object *rv_envelope_output(const rv_envelope *env, rv_str key, bool *found)
{
    return get(env, RV_MAP_OUTPUTS, key, found);
}

int rv_envelope_set_output(rv_envelope *env, rv_str key, json_object *value, rv_err **err)
{
    if (value && !json_object_is_type(value, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "output \"%.*s\" must be an object, not %s", RV_STR_ARG(rv_utf8_cut(key, 64)),
                       rv_json_type_text(value));
    return set(env, RV_MAP_OUTPUTS, key, value, "output key", err);
}

int rv_envelope_remove_output(rv_envelope *env, rv_str key, rv_err **err)
{
    const struct rv_name *name = env_name(env, key);

    if (!name)
        return 0;
    if (env->parent) {
        int rc = map_reserve(&env->map[RV_MAP_OUTPUTS], 1, err);

        if (rc < 0)
            return rc;
    }
    env_hide(env, RV_MAP_OUTPUTS, name);
    return 0;
}

size_t rv_envelope_n_outputs(const rv_envelope *env)
{
    return env_size(env, RV_MAP_OUTPUTS);
}

int rv_envelope_build_outputs(const rv_envelope *env, json_object **out, rv_err **err)
{
    return as_object(env, RV_MAP_OUTPUTS, out, err);
}

json_object *rv_envelope_metadata(const rv_envelope *env, rv_str key, bool *found)
{
    return get(env, RV_MAP_METADATA, key, found);
}

int rv_envelope_set_metadata(rv_envelope *env, rv_str key, json_object *value, rv_err **err)
{
    return set(env, RV_MAP_METADATA, key, value, "metadata key", err);
}

int rv_envelope_build_metadata(const rv_envelope *env, json_object **out, rv_err **err)
{
    return as_object(env, RV_MAP_METADATA, out, err);
}

json_object *rv_envelope_suspended(const rv_envelope *env, rv_str stage)
{
    return is_bare(env, RV_MAP_SUSPENDED) ? NULL : get(env, RV_MAP_SUSPENDED, stage, NULL);
}

static int set_of_stage(rv_envelope *env, enum rv_map_id id, rv_str stage, json_object *value, rv_err **err)
{
    const struct rv_name *name = NULL;
    int rc;

    if (value)
        return set(env, id, stage, value, "stage", err);
    name = env_name(env, stage);
    if (!name)
        return 0;
    rc = env->parent ? map_reserve(&env->map[id], 1, err) : 0;
    if (rc == 0)
        env_hide(env, id, name);
    return rc;
}

int rv_envelope_set_suspended(rv_envelope *env, rv_str stage, json_object *value, rv_err **err)
{
    return set_of_stage(env, RV_MAP_SUSPENDED, stage, value, err);
}

json_object *rv_envelope_caught(const rv_envelope *env, rv_str handler)
{
    return is_bare(env, RV_MAP_CAUGHT) ? NULL : get(env, RV_MAP_CAUGHT, handler, NULL);
}

int rv_envelope_set_caught(rv_envelope *env, rv_str handler, json_object *value, rv_err **err)
{
    if (!value && is_bare(env, RV_MAP_CAUGHT))
        return 0;
    return set_of_stage(env, RV_MAP_CAUGHT, handler, value, err);
}

json_object *rv_envelope_state_value(const rv_envelope *env, rv_str key, bool *found)
{
    return get(env, RV_MAP_STATE, key, found);
}

int rv_envelope_build_state(const rv_envelope *env, json_object **out, rv_err **err)
{
    return as_object(env, RV_MAP_STATE, out, err);
}

int env_list_copy(json_object *list, json_object **out, rv_err **err)
{
    json_object *copy = json_object_new_array();
    int rc = copy ? 0 : RV_FAIL(err, RV_E_NOMEM, "copy a list of the envelope");

    for (size_t i = 0; rc == 0 && i < json_object_array_length(list); i++)
        rc = rv_json_push_ref(copy, json_object_array_get_idx(list, i), err);
    if (rc < 0) {
        json_object_put(copy);
        return rc;
    }
    *out = copy;
    return 0;
}

static int appended(json_object *old, bool has_old, json_object *value, json_object **out, rv_err **err)
{
    json_object *list = NULL;
    int rc;

    if (json_object_is_type(old, json_type_array)) {
        rc = env_list_copy(old, &list, err);
    } else {
        list = json_object_new_array();
        rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "append to a value of the state");
        if (rc == 0 && has_old)
            rc = rv_json_push_ref(list, old, err);
    }
    if (rc == 0)
        rc = rv_json_push_ref(list, value, err);
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    *out = list;
    return 0;
}

static int united(json_object *old, json_object *value, json_object **out, rv_err **err)
{
    json_object *sources[] = {old, value};
    json_object *obj = json_object_new_object();
    int rc = obj ? 0 : RV_FAIL(err, RV_E_NOMEM, "merge a value of the state");

    for (size_t i = 0; rc == 0 && i < RV_COUNT(sources); i++) {
        json_object_object_foreach (sources[i], key, member) {
            rc = rv_json_set_ref(obj, key, member, err);
            if (rc < 0)
                break;
        }
    }
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}

int env_merged_value(json_object *old, bool has_old, enum rv_merge_mode mode, json_object *value, json_object **out,
                     rv_err **err)
{
    switch (mode) {
    case RV_MERGE_APPEND:
        return appended(old, has_old, value, out, err);
    case RV_MERGE_DICT:
        if (json_object_is_type(old, json_type_object) && json_object_is_type(value, json_type_object))
            return united(old, value, out, err);
        break;
    case RV_MERGE_REPLACE:
    case RV_N_MERGE_MODES:
        break;
    }
    *out = json_object_get(value);
    return 0;
}

int rv_envelope_merge_state(rv_envelope *env, rv_str key, enum rv_merge_mode mode, json_object *value, rv_err **err)
{
    const struct rv_name *name = NULL;
    const struct rv_entry *old;
    json_object *merged = NULL;
    int rc = env_intern(env, key, "state key", &name, err);

    if (rc == 0)
        rc = map_reserve(&env->map[RV_MAP_STATE], 1, err);
    if (rc == 0 && env->parent)
        rc = env_grow(&env->ops, &env->cap_ops, env->n_ops + 1, sizeof *env->ops, err);
    if (rc < 0)
        return rc;
    old = env_find(env, RV_MAP_STATE, name);
    rc = env_merged_value(old ? old->value : NULL, old != NULL, mode, value, &merged, err);
    if (rc < 0)
        return rc;
    map_put_ref(&env->map[RV_MAP_STATE], name, merged);
    json_object_put(merged);
    if (env->parent)
        env->ops[env->n_ops++] = (struct rv_state_op){name, mode, json_object_get(value)};
    return 0;
}

json_object *env_list(const rv_envelope *env, enum rv_list_id id)
{
    while (!env->list[id])
        env = env->parent;
    return env->list[id];
}

int env_own_list(rv_envelope *env, enum rv_list_id id, json_object **out, rv_err **err)
{
    if (!env->list[id]) {
        int rc = 0;

        if (id != RV_LIST_ERRORS)
            rc = env_list_copy(env_list(env->parent, id), &env->list[id], err);
        else if (!(env->list[id] = json_object_new_array()))
            rc = RV_FAIL(err, RV_E_NOMEM, "make a list of the envelope");
        if (rc < 0)
            return rc;
    }
    *out = env->list[id];
    return 0;
}
