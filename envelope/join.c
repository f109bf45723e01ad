/* Branches of a group: forks that live for many visits, may be forked themselves, and are joined in the order of their
 * list. What a branch wrote is merged by the rules of the join; what it did (history, errors, counts, cost) is added in
 * any case. Each call has the two steps of fork.c: the envelope changes only when nothing can fail any more. */
#include "envelope/envelope_internal.h"

#include <assert.h>
#include <json-c/linkhash.h>

int rv_envelope_branch(const rv_envelope *env, rv_envelope **out, rv_err **err)
{
    rv_envelope *fork = NULL;
    int rc = rv_envelope_fork(env, &fork, err);

    if (rc < 0)
        return rc;
    fork->is_branch = true;
    *out = fork;
    return 0;
}

void rv_joining_fini(struct rv_joining *j)
{
    json_object_put(j->gathered);
    json_object_put(j->writers);
    json_object_put(j->conflicts);
    j->gathered = j->writers = j->conflicts = NULL;
}

static int object(json_object **obj, rv_err **err)
{
    if (!*obj && !(*obj = json_object_new_object()))
        return RV_FAIL(err, RV_E_NOMEM, "join branches");
    return 0;
}

static enum rv_merge_mode how_of(const struct rv_joining *j, const char *key)
{
    return j->how ? j->how(j->self, key) : RV_MERGE_REPLACE;
}

/* {items: [...]} with one more entry. The object is this join's own until the end. */
static int gather_item(struct rv_joining *j, const char *key, json_object *value, rv_err **err)
{
    json_object *all = NULL, *items = NULL;

    if (json_object_object_get_ex(j->gathered, key, &all))
        return rv_json_push_ref(rv_json_get_arr(all, "items"), value, err);
    all = json_object_new_object();
    items = json_object_new_array();
    int rc = all && items ? 0 : RV_FAIL(err, RV_E_NOMEM, "join branches");
    if (rc == 0)
        rc = rv_json_set_ref(all, "items", items, err);
    if (rc == 0)
        rc = rv_json_push_ref(items, value, err);
    if (rc == 0)
        rc = rv_json_set_ref(j->gathered, key, all, err);
    json_object_put(items);
    json_object_put(all);
    return rc;
}

static int gather_members(struct rv_joining *j, const char *key, json_object *value, rv_err **err)
{
    json_object *old = NULL, *merged = NULL;
    bool has_old = json_object_object_get_ex(j->gathered, key, &old);

    int rc = env_merged_value(old, has_old, RV_MERGE_DICT, value, &merged, err);
    if (rc == 0)
        rc = rv_json_set_ref(j->gathered, key, merged, err);
    json_object_put(merged);
    return rc;
}

/* The outputs whose rule needs all writers wait in j until the end. */
static int gather_outputs(const rv_envelope *fork, struct rv_joining *j, rv_err **err)
{
    const struct rv_map *m = &fork->map[RV_MAP_OUTPUTS];
    int rc = object(&j->gathered, err);

    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        const struct rv_entry *e = &m->entries[i];
        enum rv_merge_mode how = e->kind == RV_ENTRY_LIVE ? how_of(j, e->name->text) : RV_MERGE_REPLACE;

        if (how == RV_MERGE_APPEND)
            rc = gather_item(j, e->name->text, e->value, err);
        else if (how == RV_MERGE_DICT)
            rc = gather_members(j, e->name->text, e->value, err);
    }
    return rc;
}

static int note_conflict(struct rv_joining *j, const char *key, json_object *earlier, rv_str branch, rv_err **err)
{
    json_object *entry = json_object_new_object();
    int rc = entry ? rv_json_set_text(entry, "key", key, err) : RV_FAIL(err, RV_E_NOMEM, "join branches");

    if (rc == 0 && !j->conflicts && !(j->conflicts = json_object_new_array()))
        rc = RV_FAIL(err, RV_E_NOMEM, "join branches");
    if (rc == 0)
        rc = rv_json_set_ref(entry, "earlier", earlier, err);
    if (rc == 0)
        rc = rv_json_set_str(entry, "later", branch, err);
    if (rc == 0)
        rc = rv_json_push_ref(j->conflicts, entry, err);
    json_object_put(entry);
    return rc;
}

/* Metadata that several branches wrote is worth a warning. */
static int note_metadata(const rv_envelope *fork, rv_str branch, struct rv_joining *j, rv_err **err)
{
    const struct rv_map *m = &fork->map[RV_MAP_METADATA];
    int rc = m->n_live > 0 ? object(&j->writers, err) : 0;

    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        const struct rv_entry *e = &m->entries[i];
        json_object *earlier = NULL;

        if (e->kind != RV_ENTRY_LIVE)
            continue;
        if (json_object_object_get_ex(j->writers, e->name->text, &earlier))
            rc = note_conflict(j, e->name->text, earlier, branch, err);
        if (rc == 0)
            rc = rv_json_set_str(j->writers, e->name->text, branch, err);
    }
    return rc;
}

static const enum rv_map_id counts[] = {RV_MAP_VISITS, RV_MAP_EDGES, RV_MAP_REPLANS, RV_MAP_REJECTIONS};

static int prepare_counts(rv_envelope *env, const rv_envelope *fork, rv_err **err)
{
    int rc = fork_prepare_records(env, fork, err);

    for (size_t i = 0; rc == 0 && i < RV_COUNT(counts); i++)
        rc = fork_prepare_map(env, fork, counts[i], 0, err);
    return rc;
}

static int prepare_values(rv_envelope *env, const rv_envelope *fork, rv_str branch, struct rv_joining *j,
                          struct rv_map *state, rv_err **err)
{
    int rc = fork_prepare_map(env, fork, RV_MAP_OUTPUTS, 0, err);

    if (rc == 0)
        rc = fork_prepare_map(env, fork, RV_MAP_METADATA, 0, err);
    if (rc == 0)
        rc = fork_prepare_state(env, fork, state, err);
    if (rc == 0)
        rc = note_metadata(fork, branch, j, err);
    return rc == 0 ? gather_outputs(fork, j, err) : rc;
}

/* What can fail half-way is taken back. */
static int join_lists(rv_envelope *env, const rv_envelope *fork, bool with_values, rv_err **err)
{
    static const enum rv_list_id lists[] = {RV_LIST_ERRORS, RV_LIST_FEEDBACK, RV_LIST_PRIOR_PLANS};
    const size_t first[] = {0, fork->base_feedback, fork->base_plans};
    size_t had[RV_COUNT(lists)], n = with_values ? RV_COUNT(lists) : 1;
    int rc = 0;

    for (size_t i = 0; i < n; i++)
        had[i] = env->list[lists[i]] ? json_object_array_length(env->list[lists[i]]) : SIZE_MAX;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = fork_append_list(env, fork, lists[i], first[i], err);
    for (size_t i = 0; rc < 0 && i < n; i++)
        if (env->list[lists[i]] && had[i] != SIZE_MAX)
            env_list_cut(env->list[lists[i]], had[i]);
    return rc;
}

static void commit_values(rv_envelope *env, const rv_envelope *fork, enum rv_map_id id, const struct rv_joining *j)
{
    const struct rv_map *m = &fork->map[id];

    for (size_t i = 0; i < m->n; i++) {
        const struct rv_entry *e = &m->entries[i];

        if (e->kind == RV_ENTRY_LIVE && (id != RV_MAP_OUTPUTS || how_of(j, e->name->text) == RV_MERGE_REPLACE))
            map_put_ref(&env->map[id], fork_known(env, e->name), e->value);
    }
}

int rv_envelope_join(rv_envelope *env, rv_envelope *fork, rv_str branch, bool with_values, struct rv_joining *j,
                     rv_err **err)
{
    struct rv_map state = {0};

    assert(fork->parent == env && fork->is_branch);
    int rc = prepare_counts(env, fork, err);
    if (rc == 0 && with_values)
        rc = prepare_values(env, fork, branch, j, &state, err);
    if (rc == 0)
        rc = join_lists(env, fork, with_values, err);
    if (rc == 0 && with_values) {
        commit_values(env, fork, RV_MAP_OUTPUTS, j);
        commit_values(env, fork, RV_MAP_METADATA, j);
        fork_commit_state(env, fork, &state);
    }
    if (rc == 0) {
        for (size_t i = 0; i < RV_COUNT(counts); i++)
            fork_commit_counts(env, fork, counts[i]);
        fork_commit_records(env, fork);
        fork_commit_counters(env, fork);
        env->f.iteration = env_counter_add(env->f.iteration, fork->f.iteration - fork->base_iteration);
    }
    env_map_fini(&state);
    return rc < 0 ? RV_WRAP(err, rc, "join branch \"%.*s\"", RV_STR_ARG(rv_utf8_cut(branch, 64))) : 0;
}

int rv_envelope_join_end(rv_envelope *env, struct rv_joining *j, rv_err **err)
{
    int rc = 0;

    if (!j->gathered)
        return 0;
    json_object_object_foreach (j->gathered, key, value) {
        rc = rv_envelope_set_output(env, rv_str_of(key), value, err);
        if (rc < 0)
            break;
    }
    return rc < 0 ? RV_WRAP(err, rc, "join branches") : 0;
}

void rv_envelope_copy_end(rv_envelope *env, rv_envelope *fork)
{
    fork_commit_termination(env, fork);
}
