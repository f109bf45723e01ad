/* The questions that an envelope shows: those of branches while their run waits for answers, and when questions with
 * choices expire. */
#include "envelope/envelope_internal.h"

/* While branches are there their root makes no new names: each of them may have made the same one. */
int rv_envelope_expect_questions(rv_envelope *env, rv_err **err)
{
    const struct rv_name *name = NULL;

    return env_intern(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS), "metadata key", &name, err);
}

static int show_first(rv_envelope *env, struct rv_stored_interrupt *it, rv_err **err)
{
    const struct rv_name *name = env_name(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS));
    const struct rv_entry *queue;
    int rc = map_reserve(&env->map[RV_MAP_METADATA], 2, err); /* to show a queue and to hide it again */

    if (rc < 0)
        return rc;
    queue = env_find(env, RV_MAP_METADATA, name);
    env->hidden = env->interrupt;
    env->had_queue = queue != NULL;
    env->hidden_queue = queue ? json_object_get(queue->value) : NULL;
    if (queue)
        map_drop(&env->map[RV_MAP_METADATA], env_map_find(&env->map[RV_MAP_METADATA], name, NULL));
    env->interrupt = *it;
    env->own_interrupt = true;
    env->f.interrupt_pending = true;
    env->shows = true;
    *it = (struct rv_stored_interrupt){0};
    return 0;
}

static int show_next(rv_envelope *env, const struct rv_stored_interrupt *it, rv_err **err)
{
    rv_str key = RV_STR_LIT(RV_QUEUED_INTERRUPTS);
    json_object *entry = NULL, *list = NULL;
    bool found = false;

    int rc = env_interrupt_json(it, &entry, err);
    if (rc == 0) {
        json_object *old = rv_envelope_metadata(env, key, &found);
        rc = env_merged_value(old, found, RV_MERGE_APPEND, entry, &list, err);
    }
    if (rc == 0)
        rc = rv_envelope_set_metadata(env, key, list, err);
    json_object_put(list);
    json_object_put(entry);
    return rc;
}

int rv_envelope_show_question(rv_envelope *env, const rv_envelope *branch, rv_str stage, rv_str path, rv_err **err)
{
    struct rv_stored_interrupt it = {0};
    struct rv_text given = {0};

    int rc = env_interrupt_copy(env_interrupt(branch), false, &it, err);
    if (rc == 0 && !it.stage.ptr)
        rc = env_text_of(stage, "interrupt stage", &it.stage, err);
    if (rc == 0)
        rc = env_text_of(path, "interrupt path", &given, err);
    if (rc == 0) {
        env_text_move(&it.path, &given);
        rc = env->shows ? show_next(env, &it, err) : show_first(env, &it, err);
    }
    env_interrupt_fini(&it);
    return rc;
}

void rv_envelope_hide_questions(rv_envelope *env)
{
    struct rv_map *metadata = &env->map[RV_MAP_METADATA];
    const struct rv_name *name = env_name(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS));

    if (!env->shows)
        return;
    env_interrupt_fini(&env->interrupt);
    env->interrupt = env->hidden;
    env->hidden = (struct rv_stored_interrupt){0};
    env->f.interrupt_pending = false;
    env->shows = false;
    if (name && env->had_queue)
        map_put_ref(metadata, name, env->hidden_queue); /* its place is free: it was there */
    else if (name)
        map_drop(metadata, env_map_find(metadata, name, NULL));
    json_object_put(env->hidden_queue);
    env->hidden_queue = NULL;
    env->had_queue = false;
}

/* --- expiry of questions with choices --- */

/* The i-th question that waits: the pending one is 0, then those of the queue. Its time is 0 unless it has choices and
 * expires. */
static rv_str ask_at(const rv_envelope *env, size_t i, int64_t *expires_us)
{
    const char *id = NULL, *time = NULL;

    *expires_us = 0;
    if (i == 0) {
        const struct rv_stored_interrupt *it = env_interrupt(env);
        if (rv_envelope_has_interrupt(env) && rv_interrupt_is_ask(it->data))
            *expires_us = it->expires_at_us;
        return env_text_str(&it->id);
    }
    json_object *entry = rv_envelope_queued_at(env, i - 1);
    if (entry && rv_json_get_text(entry, "id", &id) && rv_interrupt_is_ask(rv_json_get_obj(entry, "data")) &&
        rv_json_get_text(entry, "expires_at", &time) && !rv_time_read(rv_str_of(time), expires_us))
        *expires_us = 0;
    return id ? rv_str_of(id) : (rv_str){NULL, 0};
}

bool rv_envelope_find_due_ask(const rv_envelope *env, int64_t now_us, rv_str *id, int64_t *expired_us)
{
    bool found = false;

    for (size_t i = 0; i <= rv_envelope_n_queued(env); i++) {
        int64_t at_us;
        rv_str one = ask_at(env, i, &at_us);
        if (at_us == 0 || now_us < at_us || (found && at_us >= *expired_us))
            continue;
        found = true;
        *id = one;
        *expired_us = at_us;
    }
    return found;
}

int64_t rv_envelope_next_expiry(const rv_envelope *env)
{
    int64_t next_us = 0;

    for (size_t i = 0; i <= rv_envelope_n_queued(env); i++) {
        int64_t at_us;
        RV_IGNORE(!ask_at(env, i, &at_us).ptr, "only the time is wanted");
        if (at_us != 0 && (next_us == 0 || at_us < next_us))
            next_us = at_us;
    }
    return next_us;
}
