/* What a branch keeps of its own, as JSON and back: its changes alone, beside the state of the envelope that it is a
 * fork of. The keys are those of the state dict; `gone` names what it hides of its parent, `writes` its changes of
 * `state`. */
#include <stdlib.h>
#include <string.h>

#include "envelope/envelope_internal.h"

static const struct {
    const char *key;
    enum rv_map_id id;
} hiding[] = {{"outputs", RV_MAP_OUTPUTS},
              {"metadata", RV_MAP_METADATA},
              {"suspended", RV_MAP_SUSPENDED},
              {"caught", RV_MAP_CAUGHT}};
const char *rv_merge_mode_text(enum rv_merge_mode mode)
{
#define TEXT(n, t, m) t,
    static const char *const words[] = {RV_MERGE_MODES(TEXT)};
#undef TEXT

    return words[mode];
}

int rv_merge_mode_of(rv_str word)
{
    for (int i = 0; i < RV_N_MERGE_MODES; i++)
        if (rv_str_is(word, rv_merge_mode_text((enum rv_merge_mode)i)))
            return i;
    return RV_UNSET;
}

static void write_gone(const rv_envelope *env, rv_jw *w)
{
    rv_jw_key(w, "gone");
    rv_jw_obj(w);
    for (size_t k = 0; k < RV_COUNT(hiding); k++) {
        const struct rv_map *m = &env->map[hiding[k].id];

        rv_jw_key(w, hiding[k].key);
        rv_jw_arr(w);
        for (size_t i = 0; i < m->n; i++)
            if (m->entries[i].kind == RV_ENTRY_GONE)
                rv_jw_text(w, m->entries[i].name->text);
        rv_jw_arr_end(w);
    }
    rv_jw_obj_end(w);
}

static void write_ops(const rv_envelope *env, rv_jw *w)
{
    rv_jw_key(w, "writes");
    rv_jw_arr(w);
    for (size_t i = 0; i < env->n_ops; i++) {
        rv_jw_obj(w);
        rv_jw_kv_text(w, "key", env->ops[i].name->text);
        rv_jw_kv_text(w, "how", rv_merge_mode_text(env->ops[i].how));
        rv_jw_kv_value(w, "value", env->ops[i].value);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}

int rv_envelope_write_branch(const rv_envelope *branch, rv_jw *w, rv_err **err)
{
    json_object *empty = json_object_new_array();
    rv_buf own_state = RV_BUF_INIT(RV_STATE_MAX_BYTES);
    rv_envelope own = *branch; /* a view: it is neither changed nor freed */

    if (!empty)
        return RV_FAIL(err, RV_E_NOMEM, "keep a branch");
    own.parent = NULL;
    for (size_t i = 0; i < RV_N_TEXTS; i++)
        if (own.text[i].borrowed)
            own.text[i] = (struct rv_text){0};
    for (size_t i = 0; i < RV_N_LISTS; i++)
        if (!own.list[i])
            own.list[i] = empty;
    if (!own.own_interrupt)
        own.interrupt = (struct rv_stored_interrupt){0};
    rv_envelope_write_lean_state(&own, &own_state);
    int rc = rv_buf_check(&own_state, "the state of a branch", err);
    if (rc == 0) {
        rv_jw_key(w, "own");
        rv_jw_raw(w, rv_buf_str(&own_state));
        write_gone(branch, w);
        write_ops(branch, w);
    }
    rv_buf_fini(&own_state);
    json_object_put(empty);
    return rc;
}

/* --- and back --- */

static int take_map(rv_envelope *fork, const rv_envelope *from, enum rv_map_id id, rv_err **err)
{
    const struct rv_map *m = &from->map[id];
    int rc = map_reserve(&fork->map[id], m->n, err);

    for (size_t i = 0; rc == 0 && i < m->n; i++) {
        const struct rv_entry *e = &m->entries[i];
        const struct rv_name *name = NULL, *to = NULL;

        if (e->kind != RV_ENTRY_LIVE)
            continue;
        rc = env_intern(fork, (rv_str){e->name->text, e->name->len}, "name", &name, err);
        if (rc == 0 && e->to)
            rc = env_intern(fork, (rv_str){e->to->text, e->to->len}, "name", &to, err);
        if (rc == 0) {
            struct rv_entry *put = map_put(&fork->map[id], name, to);

            json_object_put(put->value);
            put->value = json_object_get(e->value);
            put->count = e->count;
        }
    }
    return rc;
}

static int take_records(rv_envelope *fork, rv_envelope *from, rv_err **err)
{
    int rc = env_grow(&fork->records, &fork->cap_records, from->n_records, sizeof *fork->records, err);

    for (size_t i = 0; rc == 0 && i < from->n_records; i++) {
        struct rv_record r = from->records[i];

        rc = env_intern(fork, (rv_str){r.agent->text, r.agent->len}, "agent", &r.agent, err);
        if (rc < 0)
            break;
        from->records[i].error = (struct rv_text){0};
        fork->records[fork->n_records++] = r;
    }
    return rc;
}

static void take_lists(rv_envelope *fork, rv_envelope *from)
{
    for (size_t i = 0; i < RV_N_LISTS; i++)
        if (json_object_array_length(from->list[i]) > 0)
            fork->list[i] = json_object_get(from->list[i]);
}

static void take_fields(rv_envelope *fork, rv_envelope *from)
{
    fork->f.iteration = from->f.iteration;
    fork->f.llm_call_count = from->f.llm_call_count;
    fork->f.agent_hop_count = from->f.agent_hop_count;
    fork->f.current_stage_number = from->f.current_stage_number;
    fork->f.usage = from->f.usage;
    fork->f.interrupt_pending = from->f.interrupt_pending;
    if (from->interrupt.exists) {
        fork->interrupt = from->interrupt;
        from->interrupt = (struct rv_stored_interrupt){0};
        fork->own_interrupt = true;
    }
    if (from->text[RV_TEXT_RAW_INPUT].len > 0) {
        env_text_move(&fork->text[RV_TEXT_RAW_INPUT], &from->text[RV_TEXT_RAW_INPUT]);
        fork->f.raw_input = fork->text[RV_TEXT_RAW_INPUT].ptr;
        fork->f.raw_input_len = fork->text[RV_TEXT_RAW_INPUT].len;
    }
}

static int take_gone(rv_envelope *fork, json_object *gone, rv_err **err)
{
    int rc = 0;

    for (size_t k = 0; rc == 0 && gone && k < RV_COUNT(hiding); k++) {
        json_object *list = rv_json_get_arr(gone, hiding[k].key);
        size_t n = list ? json_object_array_length(list) : 0;

        rc = map_reserve(&fork->map[hiding[k].id], n, err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            const struct rv_name *name = env_name(fork, rv_json_str(json_object_array_get_idx(list, i)));

            if (name && env_find(fork->parent, hiding[k].id, name))
                map_hide(&fork->map[hiding[k].id], name);
        }
    }
    return rc;
}

static int take_ops(rv_envelope *fork, json_object *writes, rv_err **err)
{
    size_t n = writes ? json_object_array_length(writes) : 0;
    int rc = env_grow(&fork->ops, &fork->cap_ops, n, sizeof *fork->ops, err);

    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *entry = json_object_array_get_idx(writes, i), *value = NULL;
        const char *key = NULL, *word = NULL;

        if (!json_object_is_type(entry, json_type_object) || !rv_json_get_text(entry, "key", &key) ||
            !rv_json_get_text(entry, "how", &word))
            return RV_FAIL(err, RV_E_INVALID, "write %zu of a branch has no key or no way to merge", i);
        int how = rv_merge_mode_of(rv_str_of(word));
        if (how < 0)
            return RV_FAIL(err, RV_E_INVALID, "write %zu of a branch is merged by an unknown word", i);
        struct rv_state_op op = {.how = (enum rv_merge_mode)how};
        json_object_object_get_ex(entry, "value", &value);
        rc = env_intern(fork, rv_str_of(key), "state key", &op.name, err);
        if (rc < 0)
            break;
        op.value = json_object_get(value);
        fork->ops[fork->n_ops++] = op;
    }
    return rc;
}

static int take_all(rv_envelope *fork, rv_envelope *from, json_object *json, rv_err **err)
{
    int rc = env_intern(fork, rv_str_of(from->f.current_stage), "stage", &fork->stage, err);

    if (rc == 0)
        fork->f.current_stage = fork->stage->text;
    for (size_t i = 0; rc == 0 && i < RV_N_MAPS; i++)
        rc = take_map(fork, from, (enum rv_map_id)i, err);
    if (rc == 0)
        rc = take_records(fork, from, err);
    if (rc == 0)
        rc = take_gone(fork, rv_json_get_obj(json, "gone"), err);
    if (rc == 0)
        rc = take_ops(fork, rv_json_get_arr(json, "writes"), err);
    if (rc == 0) {
        take_lists(fork, from);
        take_fields(fork, from);
    }
    return rc;
}

int rv_envelope_load_branch(const rv_envelope *env, json_object *json, rv_envelope **out, rv_err **err)
{
    rv_envelope *from = NULL, *fork = NULL;
    json_object *own = NULL;
    uint64_t present = 0;

    if (!json_object_is_type(json, json_type_object) || !(own = rv_json_get_obj(json, "own")))
        return RV_FAIL(err, RV_E_INVALID, "a branch of the state has no state of its own");
    int rc = env_blank(env->f.created_at_us, &from, err);
    if (rc == 0)
        rc = env_state_read(own, env->f.created_at_us, from, &present, err);
    if (rc == 0)
        rc = rv_envelope_branch(env, &fork, err);
    if (rc == 0)
        rc = take_all(fork, from, json, err);
    rv_envelope_free(from);
    if (rc < 0) {
        rv_envelope_free(fork);
        return RV_WRAP(err, rc, "load a branch");
    }
    *out = fork;
    return 0;
}

/* --- the branches of a run, as its envelope keeps them while it pauses --- */

json_object *rv_envelope_branches(const rv_envelope *env)
{
    return env->branches;
}

void rv_envelope_set_branches(rv_envelope *env, json_object *value)
{
    json_object_get(value);
    json_object_put(env->branches);
    env->branches = value;
}

void rv_envelope_write_hidden(const rv_envelope *env, rv_jw *w)
{
    if (!env->shows)
        return;
    if (env->hidden.exists) {
        rv_jw_key(w, "interrupt");
        env_interrupt_write(&env->hidden, (rv_str){NULL, 0}, w);
    }
    if (env->had_queue)
        rv_jw_kv_value(w, "queue", env->hidden_queue);
}

int rv_envelope_read_hidden(rv_envelope *env, json_object *json, rv_err **err)
{
    json_object *interrupt = rv_json_get_obj(json, "interrupt"), *queue = NULL;
    struct rv_stored_interrupt it = {0};
    int rc = interrupt ? env_read_interrupt(interrupt, &it, err) : 0;

    if (rc < 0) {
        env_interrupt_fini(&it);
        return rc;
    }
    env_interrupt_fini(&env->hidden);
    env->hidden = it;
    env->had_queue = json_object_object_get_ex(json, "queue", &queue);
    json_object_put(env->hidden_queue);
    env->hidden_queue = json_object_get(queue);
    if (env->had_queue) { /* so that hiding cannot fail */
        rc = rv_envelope_set_metadata(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS), queue, err);
        if (rc < 0)
            return rc;
    }
    env->shows = true;
    return 0;
}
