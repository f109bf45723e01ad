/* Forks: a cheap view of an envelope that keeps its own changes, and the merge of those changes. */
#include "envelope/envelope_internal.h"

#include <assert.h>
#include <stdlib.h>

int rv_envelope_fork(const rv_envelope *env, rv_envelope **out, rv_err **err)
{
    rv_envelope *fork;

    fork = calloc(1, sizeof *fork);
    if (!fork)
        return RV_FAIL(err, RV_E_NOMEM, "fork the envelope");
    fork->f = env->f;
    fork->f.usage = (struct rv_usage){0}; /* its own: the merge adds it */
    fork->stage = env->stage;
    for (size_t i = 0; i < RV_N_TEXTS; i++)
        fork->text[i] = (struct rv_text){env->text[i].ptr, env->text[i].len, true};
    fork->parent = env;
    fork->names.seed = env->names.seed;
    fork->base_llm_calls = env->f.llm_call_count;
    fork->base_hops = env->f.agent_hop_count;
    fork->base_iteration = env->f.iteration;
    fork->base_feedback = json_object_array_length(env_list(env, RV_LIST_FEEDBACK));
    fork->base_plans = json_object_array_length(env_list(env, RV_LIST_PRIOR_PLANS));
    *out = fork;
    return 0;
}

void rv_envelope_keep_back(rv_envelope *fork, rv_str output_key)
{
    const struct rv_name *name = env_name(fork, output_key);

    if (name)
        map_drop(&fork->map[RV_MAP_OUTPUTS], env_map_find(&fork->map[RV_MAP_OUTPUTS], name, NULL));
    map_clear(&fork->map[RV_MAP_SUSPENDED]);
    fork->own_interrupt = false;
}

void rv_envelope_add_inner(rv_envelope *env, const struct rv_envelope_used *now, const struct rv_envelope_used *before)
{
    const struct rv_usage *used = &now->usage, *old = &before->usage;
    const struct rv_usage more = {
        .calls = used->calls - old->calls,
        .input_tokens = used->input_tokens - old->input_tokens,
        .output_tokens = used->output_tokens - old->output_tokens,
        .cached_tokens = used->cached_tokens - old->cached_tokens,
        .cache_write_tokens = used->cache_write_tokens - old->cache_write_tokens,
        .reasoning_tokens = used->reasoning_tokens - old->reasoning_tokens,
        .cost_micro_usd = used->cost_micro_usd - old->cost_micro_usd,
        .estimated = used->estimated,
    };

    env->f.agent_hop_count = env_counter_add(env->f.agent_hop_count, now->hops - before->hops);
    rv_usage_add(&env->f.usage, &more);
}

void rv_merge_fini(struct rv_merge *m)
{
    json_object_put(m->written);
    json_object_put(m->conflicts);
    *m = (struct rv_merge){0};
}

static int to_parent(rv_envelope *env, const struct rv_name *name, const struct rv_name **out, rv_err **err)
{
    *out = name ? env_name_like(env, name) : NULL;
    return name && !*out ? env_intern(env, (rv_str){name->text, name->len}, "name", out, err) : 0;
}

int fork_prepare_map(rv_envelope *env, const rv_envelope *fork, enum rv_map_id id, size_t extra, rv_err **err)
{
    const struct rv_map *m = &fork->map[id];
    const struct rv_name *name;
    int rc = map_reserve(&env->map[id], m->n + extra, err);

    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        rc = to_parent(env, m->entries[i].name, &name, err);
        if (rc == 0)
            rc = to_parent(env, m->entries[i].to, &name, err);
    }
    return rc;
}

const struct rv_name *fork_known(const rv_envelope *env, const struct rv_name *name)
{
    return name ? env_name_like(env, name) : NULL;
}

static void commit_values(rv_envelope *env, const rv_envelope *fork, enum rv_map_id id)
{
    const struct rv_map *m = &fork->map[id];

    for (size_t i = 0; i < m->n; i++) {
        const struct rv_entry *e = &m->entries[i];
        const struct rv_name *name = fork_known(env, e->name);

        if (e->kind == RV_ENTRY_LIVE)
            map_put_ref(&env->map[id], name, e->value);
        else if (e->kind == RV_ENTRY_GONE)
            env_hide(env, id, name);
    }
}

void fork_commit_counts(rv_envelope *env, const rv_envelope *fork, enum rv_map_id id)
{
    const struct rv_map *m = &fork->map[id];

    for (size_t i = 0; i < m->n; i++) {
        const struct rv_entry *e = &m->entries[i];
        struct rv_entry *sum = map_put(&env->map[id], fork_known(env, e->name), fork_known(env, e->to));

        sum->count = env_counter_add(sum->count, e->count);
    }
}

/* Remember who wrote each output; a second writer is a conflict. Doing it again for the same stage changes nothing. */
static int note_writes(const rv_envelope *fork, rv_str stage, struct rv_merge *m, rv_err **err)
{
    const struct rv_map *outputs = &fork->map[RV_MAP_OUTPUTS];
    int rc = 0;

    if (!m->written && !(m->written = json_object_new_object()))
        return RV_FAIL(err, RV_E_NOMEM, "merge a fork");
    for (size_t i = 0; rc == 0 && i < outputs->n; i++) {
        const char *key = outputs->entries[i].name->text;
        json_object *earlier = NULL;
        json_object *entry;

        if (outputs->entries[i].kind == RV_ENTRY_DEAD)
            continue;
        if (json_object_object_get_ex(m->written, key, &earlier)) {
            if (rv_str_eq(rv_json_str(earlier), stage))
                continue;
            if (!m->conflicts && !(m->conflicts = json_object_new_array()))
                return RV_FAIL(err, RV_E_NOMEM, "note a conflict");
            entry = json_object_new_object();
            rc = entry ? rv_json_set_text(entry, "key", key, err) : RV_FAIL(err, RV_E_NOMEM, "note a conflict");
            if (rc == 0)
                rc = rv_json_set_ref(entry, "earlier", earlier, err);
            if (rc == 0)
                rc = rv_json_set_str(entry, "later", stage, err);
            if (rc == 0)
                rc = rv_json_push_ref(m->conflicts, entry, err);
            json_object_put(entry);
        }
        if (rc == 0)
            rc = rv_json_set_str(m->written, key, stage, err);
    }
    return rc;
}

int fork_prepare_state(rv_envelope *env, const rv_envelope *fork, struct rv_map *merged, rv_err **err)
{
    int rc = map_reserve(merged, fork->n_ops, err);

    if (rc == 0)
        rc = map_reserve(&env->map[RV_MAP_STATE], fork->n_ops, err);
    if (rc == 0 && env->parent)
        rc = env_grow(&env->ops, &env->cap_ops, env->n_ops + fork->n_ops, sizeof *env->ops, err);
    for (size_t i = 0; rc == 0 && i < fork->n_ops; i++) {
        const struct rv_state_op *op = &fork->ops[i];
        const struct rv_name *name;
        const struct rv_entry *old;
        json_object *value = NULL;

        rc = to_parent(env, op->name, &name, err);
        if (rc < 0)
            break;
        old = env_map_find(merged, name, NULL);
        if (!old)
            old = env_find(env, RV_MAP_STATE, name);
        rc = env_merged_value(old ? old->value : NULL, old != NULL, op->how, op->value, &value, err);
        if (rc == 0)
            map_put_ref(merged, name, value);
        json_object_put(value);
    }
    return rc;
}

void fork_commit_state(rv_envelope *env, const rv_envelope *fork, const struct rv_map *merged)
{
    for (size_t i = 0; i < merged->n; i++)
        map_put_ref(&env->map[RV_MAP_STATE], merged->entries[i].name, merged->entries[i].value);
    for (size_t i = 0; env->parent && i < fork->n_ops; i++) {
        const struct rv_state_op *op = &fork->ops[i];

        env->ops[env->n_ops++] = (struct rv_state_op){fork_known(env, op->name), op->how, json_object_get(op->value)};
    }
}

/* The list metadata.queued_interrupts with the fork's interrupt added. */
static int queue_interrupt(rv_envelope *env, const rv_envelope *fork, rv_str stage, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    const struct rv_name *fork_name = env_name(fork, RV_STR_LIT(RV_QUEUED_INTERRUPTS));
    const struct rv_entry *old = fork_name ? env_map_find(&fork->map[RV_MAP_METADATA], fork_name, NULL) : NULL;
    rv_buf b = RV_BUF_INIT(RV_STATE_MAX_BYTES);
    rv_jw w = rv_jw_on(&b);
    json_object *entry = NULL;
    const struct rv_name *name = NULL;
    int rc = env_intern(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS), "metadata key", &name, err);

    if (rc == 0) {
        env_interrupt_write(&fork->interrupt, stage, &w);
        rc = rv_buf_check(&b, "a queued interrupt", err);
    }
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&b), &opts, &entry, err);
    if (rc == 0) {
        if (!old) /* a list that the fork itself wrote goes first, as its other metadata */
            old = env_find(env, RV_MAP_METADATA, name);
        rc = env_merged_value(old ? old->value : NULL, old && old->kind == RV_ENTRY_LIVE, RV_MERGE_APPEND, entry, out,
                              err);
    }
    json_object_put(entry);
    rv_buf_fini(&b);
    return rc;
}

static size_t list_length(json_object *list)
{
    return list ? json_object_array_length(list) : 0;
}

void env_list_cut(json_object *list, size_t n)
{
    if (list_length(list) > n)
        rv_json_cut(list, n, list_length(list) - n);
}

int fork_append_list(rv_envelope *env, const rv_envelope *fork, enum rv_list_id id, size_t first, rv_err **err)
{
    json_object *from = fork->list[id], *to = NULL;

    if (list_length(from) <= first)
        return 0;
    int rc = env_own_list(env, id, &to, err);
    if (rc < 0)
        return rc;
    size_t had = json_object_array_length(to);
    for (size_t i = first; rc == 0 && i < list_length(from); i++)
        rc = rv_json_push_ref(to, json_object_array_get_idx(from, i), err);
    if (rc < 0)
        env_list_cut(to, had);
    return rc;
}

/* The fork keeps a view, env owns the text. */
static struct rv_text lend(struct rv_text *t)
{
    struct rv_text given = *t;

    t->borrowed = true;
    return given;
}

void fork_commit_records(rv_envelope *env, rv_envelope *fork)
{
    for (size_t i = 0; i < fork->n_records; i++) {
        struct rv_record r = fork->records[i];

        r.agent = fork_known(env, r.agent);
        r.error = lend(&fork->records[i].error);
        env->records[env->n_records++] = r;
    }
}

void fork_commit_counters(rv_envelope *env, const rv_envelope *fork)
{
    env->f.llm_call_count = env_counter_add(env->f.llm_call_count, fork->f.llm_call_count - fork->base_llm_calls);
    rv_usage_add(&env->f.usage, &fork->f.usage);
    env->f.agent_hop_count = env_counter_add(env->f.agent_hop_count, fork->f.agent_hop_count - fork->base_hops);
}

struct prepared {
    struct rv_map state;
    json_object *queue; /* NULL: nothing to queue; owned */
    bool take_interrupt;
    struct rv_text stage; /* of the interrupt that is taken; owned */
};

static void commit_interrupt(rv_envelope *env, rv_envelope *fork, struct prepared *p)
{
    struct rv_stored_interrupt *it = &fork->interrupt;

    env_text_fini(&it->stage);
    env_interrupt_fini(&env->interrupt);
    env->interrupt = *it;
    env->interrupt.id = lend(&it->id);
    env->interrupt.question = lend(&it->question);
    env->interrupt.message = lend(&it->message);
    env->interrupt.stage = p->stage;
    p->stage = (struct rv_text){0};
    it->data = json_object_get(it->data);
    it->response = json_object_get(it->response);
    env->f.interrupt_pending = true;
    env->own_interrupt = true;
}

void fork_commit_termination(rv_envelope *env, rv_envelope *fork)
{
    struct rv_text *t = &fork->text[RV_TEXT_TERMINATION];

    if (!fork->f.terminated || env->f.terminated)
        return;
    env_text_fini(&env->text[RV_TEXT_TERMINATION]);
    env->text[RV_TEXT_TERMINATION] = lend(t);
    env->f.termination_reason = t->ptr;
    env->f.terminated = true;
    env->f.terminal_reason = fork->f.terminal_reason;
    env->f.completed_at_us = fork->f.completed_at_us;
}

int fork_prepare_records(rv_envelope *env, const rv_envelope *fork, rv_err **err)
{
    const struct rv_name *name;
    int rc = env_grow(&env->records, &env->cap_records, env->n_records + fork->n_records, sizeof *env->records, err);

    for (size_t i = 0; rc == 0 && i < fork->n_records; i++)
        rc = to_parent(env, fork->records[i].agent, &name, err);
    return rc;
}

/* Everything that can fail (names, room, new values); needs no undo because it does not change the visible state. */
static int prepare(rv_envelope *env, rv_envelope *fork, rv_str stage, struct prepared *p, rv_err **err)
{
    static const enum rv_map_id maps[] = {RV_MAP_OUTPUTS, RV_MAP_METADATA, RV_MAP_SUSPENDED, RV_MAP_VISITS,
                                          RV_MAP_EDGES};
    bool pending = fork->own_interrupt && fork->f.interrupt_pending && fork->interrupt.exists;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(maps); i++)
        rc = fork_prepare_map(env, fork, maps[i], 1, err);
    if (rc == 0)
        rc = fork_prepare_records(env, fork, err);
    if (rc == 0)
        rc = fork_prepare_state(env, fork, &p->state, err);
    if (rc == 0 && pending && rv_envelope_has_interrupt(env))
        rc = queue_interrupt(env, fork, stage, &p->queue, err);
    p->take_interrupt = rc == 0 && pending && !p->queue;
    if (p->take_interrupt)
        rc = env_text_of(stage, "interrupt stage", &p->stage, err);
    return rc;
}

static int merge_lists(rv_envelope *env, const rv_envelope *fork, rv_err **err)
{
    size_t n_errors = list_length(env->list[RV_LIST_ERRORS]);
    int rc = fork_append_list(env, fork, RV_LIST_ERRORS, 0, err);

    if (rc == 0)
        rc = fork_append_list(env, fork, RV_LIST_FEEDBACK, fork->base_feedback, err);
    if (rc < 0)
        env_list_cut(env->list[RV_LIST_ERRORS], n_errors);
    return rc;
}

int rv_envelope_merge(rv_envelope *env, rv_envelope *fork, rv_str stage, struct rv_merge *m, rv_err **err)
{
    struct prepared p = {0};
    int rc;

    assert(fork->parent == env);
    rc = note_writes(fork, stage, m, err);
    if (rc == 0)
        rc = prepare(env, fork, stage, &p, err);
    if (rc == 0)
        rc = merge_lists(env, fork, err);
    if (rc == 0) {
        commit_values(env, fork, RV_MAP_OUTPUTS);
        commit_values(env, fork, RV_MAP_METADATA);
        commit_values(env, fork, RV_MAP_SUSPENDED);
        fork_commit_state(env, fork, &p.state);
        fork_commit_counts(env, fork, RV_MAP_VISITS);
        fork_commit_counts(env, fork, RV_MAP_EDGES);
        fork_commit_records(env, fork);
        fork_commit_counters(env, fork);
        if (p.queue)
            map_put_ref(&env->map[RV_MAP_METADATA], env_name(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS)), p.queue);
        if (p.take_interrupt)
            commit_interrupt(env, fork, &p);
        fork_commit_termination(env, fork);
    }
    env_map_fini(&p.state);
    json_object_put(p.queue);
    env_text_fini(&p.stage);
    return rc < 0 ? RV_WRAP(err, rc, "merge the work of stage \"%.*s\"", RV_STR_ARG(rv_utf8_cut(stage, 64))) : 0;
}
