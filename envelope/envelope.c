/* Life and plain fields of an envelope. The other files of this folder hold one concern each; see README.md. */
#include <assert.h>
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "envelope/envelope_internal.h"

#define DEFAULT_USER           RV_ENVELOPE_NOBODY
#define DEFAULT_MAX_ITERATIONS 3  /* of one run, when its pipeline and input do not say it: as the format has it */
#define DEFAULT_MAX_LLM_CALLS  10 /* of one run, for the same case: as the format has it */
#define DEFAULT_MAX_AGENT_HOPS 21 /* of one run, for the same case: as the format has it */
#define DEFAULT_MAX_STAGES     5  /* of one run, for the same case: as the format has it */

void env_mirror(rv_envelope *env)
{
    struct rv_envelope_fields *f = &env->f;
    const char *text[RV_N_TEXTS];

    for (size_t i = 0; i < RV_N_TEXTS; i++)
        text[i] = env->text[i].ptr;
    f->envelope_id = text[RV_TEXT_ENVELOPE_ID];
    f->request_id = text[RV_TEXT_REQUEST_ID];
    f->user_id = text[RV_TEXT_USER_ID];
    f->session_id = text[RV_TEXT_SESSION_ID];
    f->raw_input = text[RV_TEXT_RAW_INPUT];
    f->raw_input_len = env->text[RV_TEXT_RAW_INPUT].len;
    f->termination_reason = text[RV_TEXT_TERMINATION];
    f->current_stage = env->stage->text;
}

int env_blank(int64_t now_us, rv_envelope **out, rv_err **err)
{
    rv_envelope *env = calloc(1, sizeof *env);
    int rc;

    if (!env)
        return RV_FAIL(err, RV_E_NOMEM, "make an envelope");
    /* Where the loader put this block differs between processes, which is all a hash seed needs; order never shows. */
    env->names.seed = (uint64_t)(uintptr_t)env * UINT64_C(0xD1342543DE82EF95);
    env->f = (struct rv_envelope_fields){
        .max_iterations = DEFAULT_MAX_ITERATIONS,
        .max_llm_calls = DEFAULT_MAX_LLM_CALLS,
        .max_agent_hops = DEFAULT_MAX_AGENT_HOPS,
        .current_stage_number = 1,
        .max_stages = DEFAULT_MAX_STAGES,
        .received_at_us = env_clamp_time(now_us),
        .created_at_us = env_clamp_time(now_us),
        .terminal_reason = RV_REASON_NONE,
        .status = RV_RUN_READY,
    };
    rc = env_intern(env, RV_STR_LIT(RV_STAGE_START), "stage", &env->stage, err);
    for (size_t i = 0; rc == 0 && i < RV_N_TEXTS; i++) {
        if (i == RV_TEXT_TERMINATION)
            continue;
        rc = env_text_of(i == RV_TEXT_USER_ID ? RV_STR_LIT(DEFAULT_USER) : RV_STR_LIT(""), "text", &env->text[i], err);
    }
    for (size_t i = 0; rc == 0 && i < RV_N_LISTS; i++) {
        env->list[i] = json_object_new_array_ext(4);
        if (!env->list[i])
            rc = RV_FAIL(err, RV_E_NOMEM, "make a list of the envelope");
    }
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    env_mirror(env);
    *out = env;
    return 0;
}

static int make_ids(rv_envelope *env, struct rv_rand rand, rv_err **err)
{
    static const struct {
        enum rv_text_id id;
        const char *prefix;
    } ids[] = {{RV_TEXT_ENVELOPE_ID, "env_"}, {RV_TEXT_REQUEST_ID, "req_"}, {RV_TEXT_SESSION_ID, "sess_"}};

    for (size_t i = 0; i < RV_COUNT(ids); i++) {
        char text[RV_ID_MAX];
        struct rv_text made = {0};
        int rc;

        rv_id_make(rand, ids[i].prefix, text);
        rc = env_text_of(rv_str_of(text), "id", &made, err);
        if (rc < 0)
            return rc;
        env_text_move(&env->text[ids[i].id], &made);
    }
    env_mirror(env);
    return 0;
}

static int take_seed_text(rv_envelope *env, enum rv_text_id id, rv_str given, const char *what, rv_err **err)
{
    struct rv_text made = {0};
    int rc;

    if (given.len == 0)
        return 0;
    rc = env_text_of(given, what, &made, err);
    if (rc < 0)
        return rc;
    env_text_move(&env->text[id], &made);
    return 0;
}

static int take_seed_metadata(rv_envelope *env, json_object *metadata, rv_err **err)
{
    if (!metadata)
        return 0;
    if (!json_object_is_type(metadata, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "metadata must be an object, not %s", rv_json_type_text(metadata));
    json_object_object_foreach (metadata, key, value) {
        json_object *copy = NULL;
        int rc = rv_json_dup(value, &copy, err);

        if (rc == 0)
            rc = rv_envelope_set_metadata(env, rv_str_of(key), copy, err);
        json_object_put(copy);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int take_seed_order(rv_envelope *env, json_object *order, rv_err **err)
{
    json_object *copy = NULL;
    int rc;

    if (!order)
        return 0;
    if (!json_object_is_type(order, json_type_array))
        return RV_FAIL(err, RV_E_INVALID, "stage_order must be an array, not %s", rv_json_type_text(order));
    for (size_t i = 0; i < json_object_array_length(order); i++) {
        json_object *name = json_object_array_get_idx(order, i);

        if (!json_object_is_type(name, json_type_string) || !rv_utf8_valid(rv_json_str(name), NULL))
            return RV_FAIL(err, RV_E_INVALID, "stage_order[%zu] must be a string in UTF-8", i);
    }
    rc = rv_json_dup(order, &copy, err);
    if (rc < 0)
        return rc;
    json_object_put(env->list[RV_LIST_STAGE_ORDER]);
    env->list[RV_LIST_STAGE_ORDER] = copy;
    return 0;
}

int rv_envelope_new(const struct rv_envelope_seed *seed, struct rv_rand rand, int64_t now_us, rv_envelope **out,
                    rv_err **err)
{
    rv_envelope *env = NULL;
    int rc = env_blank(now_us, &env, err);

    if (rc == 0)
        rc = make_ids(env, rand, err);
    if (rc == 0 && seed) {
        rc = take_seed_text(env, RV_TEXT_RAW_INPUT, seed->raw_input, "raw_input", err);
        if (rc == 0)
            rc = take_seed_text(env, RV_TEXT_USER_ID, seed->user_id, "user_id", err);
        if (rc == 0)
            rc = take_seed_text(env, RV_TEXT_SESSION_ID, seed->session_id, "session_id", err);
        if (rc == 0)
            rc = take_seed_text(env, RV_TEXT_REQUEST_ID, seed->request_id, "request_id", err);
        if (rc == 0)
            rc = take_seed_text(env, RV_TEXT_ENVELOPE_ID, seed->envelope_id, "envelope_id", err);
        if (rc == 0)
            rc = take_seed_metadata(env, seed->metadata, err);
        if (rc == 0)
            rc = take_seed_order(env, seed->stage_order, err);
    }
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    env_mirror(env);
    *out = env;
    return 0;
}

void rv_envelope_free(rv_envelope *env)
{
    if (!env)
        return;
    for (size_t i = 0; i < RV_N_TEXTS; i++)
        env_text_fini(&env->text[i]);
    for (size_t i = 0; i < RV_N_MAPS; i++)
        env_map_fini(&env->map[i]);
    for (size_t i = 0; i < RV_N_LISTS; i++)
        json_object_put(env->list[i]);
    for (size_t i = 0; i < env->n_records; i++)
        env_text_fini(&env->records[i].error);
    free(env->records);
    env_interrupt_fini(&env->interrupt);
    env_interrupt_fini(&env->hidden);
    json_object_put(env->hidden_queue);
    json_object_put(env->branches);
    json_object_put(env->withdrawn);
    for (size_t i = 0; i < env->n_ops; i++)
        json_object_put(env->ops[i].value);
    free(env->ops);
    env_names_fini(&env->names);
    free(env);
}

const struct rv_envelope_fields *rv_envelope_fields(const rv_envelope *env)
{
    return &env->f;
}

const char *rv_envelope_user(const rv_envelope *env)
{
    return strcmp(env->f.user_id, RV_ENVELOPE_NOBODY) == 0 ? NULL : env->f.user_id;
}

int rv_envelope_set_stage(rv_envelope *env, rv_str stage, rv_err **err)
{
    int rc;

    if (stage.len == 0)
        return RV_FAIL(err, RV_E_INVALID, "the name of the current stage is empty");
    rc = env_intern(env, stage, "stage", &env->stage, err);
    if (rc < 0)
        return rc;
    env->f.current_stage = env->stage->text;
    return 0;
}

static int64_t clamp_counter(int64_t n)
{
    if (n < 0)
        return 0;
    return n > RV_MAX_COUNTER ? RV_MAX_COUNTER : n;
}

void rv_envelope_set_bounds(rv_envelope *env, int64_t max_iterations, int64_t max_llm_calls, int64_t max_agent_hops)
{
    env->f.max_iterations = clamp_counter(max_iterations);
    env->f.max_llm_calls = clamp_counter(max_llm_calls);
    env->f.max_agent_hops = clamp_counter(max_agent_hops);
}

void rv_envelope_set_parallel(rv_envelope *env, bool parallel)
{
    env->f.parallel_mode = parallel;
}

void rv_envelope_set_status(rv_envelope *env, enum rv_run_status status)
{
    assert((size_t)status < RV_N_RUN);
    env->f.status = status;
}

/* --- The deep copy: copies every value and interns the names again --- */

static int copy_name(rv_envelope *to, const struct rv_name *name, const struct rv_name **out, rv_err **err)
{
    *out = NULL;
    return name ? env_intern(to, (rv_str){name->text, name->len}, "name", out, err) : 0;
}

static int copy_map(const struct rv_map *from, rv_envelope *to, enum rv_map_id id, rv_err **err)
{
    int rc = map_reserve(&to->map[id], from->n_live, err);

    for (size_t i = 0; rc == 0 && i < from->n; i++) {
        const struct rv_entry *e = &from->entries[i];
        const struct rv_name *name;
        const struct rv_name *second;
        json_object *value = NULL;

        if (e->kind != RV_ENTRY_LIVE)
            continue;
        rc = copy_name(to, e->name, &name, err);
        if (rc == 0)
            rc = copy_name(to, e->to, &second, err);
        if (rc == 0)
            rc = rv_json_dup(e->value, &value, err);
        if (rc == 0) {
            struct rv_entry *made = map_put(&to->map[id], name, second);

            made->value = value;
            made->count = e->count;
        }
    }
    return rc;
}

static int copy_records(const rv_envelope *from, rv_envelope *to, rv_err **err)
{
    int rc = env_grow(&to->records, &to->cap_records, from->n_records, sizeof *to->records, err);

    for (size_t i = 0; rc == 0 && i < from->n_records; i++) {
        struct rv_record r = from->records[i];

        r.error = (struct rv_text){0};
        rc = copy_name(to, r.agent, &r.agent, err);
        if (rc == 0)
            rc = env_text_of(env_text_str(&from->records[i].error), "error text", &r.error, err);
        if (rc == 0)
            to->records[to->n_records++] = r;
    }
    return rc;
}

static int copy_parts(const rv_envelope *from, rv_envelope *to, rv_err **err)
{
    int rc = copy_name(to, from->stage, &to->stage, err);

    to->f = from->f;
    for (size_t i = 0; rc == 0 && i < RV_N_TEXTS; i++) {
        env_text_fini(&to->text[i]);
        rc = env_text_of(env_text_str(&from->text[i]), "text", &to->text[i], err);
    }
    for (size_t i = 0; rc == 0 && i < RV_N_MAPS; i++)
        rc = copy_map(&from->map[i], to, (enum rv_map_id)i, err);
    for (size_t i = 0; rc == 0 && i < RV_N_LISTS; i++) {
        json_object *list = NULL;

        rc = rv_json_dup(from->list[i], &list, err);
        if (rc == 0) {
            json_object_put(to->list[i]);
            to->list[i] = list;
        }
    }
    if (rc == 0)
        rc = copy_records(from, to, err);
    if (rc == 0)
        rc = env_interrupt_copy(&from->interrupt, true, &to->interrupt, err);
    if (rc == 0)
        rc = rv_json_dup(from->branches, &to->branches, err);
    if (rc == 0)
        rc = rv_json_dup(from->withdrawn, &to->withdrawn, err);
    return rc;
}

int rv_envelope_dup(const rv_envelope *env, rv_envelope **out, rv_err **err)
{
    rv_envelope *copy = NULL;
    int rc;

    assert(!env->parent);
    rc = env_blank(env->f.created_at_us, &copy, err);
    if (rc == 0)
        rc = copy_parts(env, copy, err);
    if (rc < 0) {
        rv_envelope_free(copy);
        return RV_WRAP(err, rc, "copy the envelope");
    }
    env_mirror(copy);
    *out = copy;
    return 0;
}

/* --- Envelopes for work below another envelope: whose ids follow from it, so that a replay makes the same ones --- */

static uint64_t add(uint64_t h, rv_str text)
{
    return rv_fnv_add(rv_fnv_add(h, text),
                      RV_STR_LIT("\xff")); /* no text has that byte: the end of one is not the middle of another */
}

int rv_envelope_derive(const rv_envelope *env, rv_str raw_input, rv_str name, int64_t now_us, rv_envelope **out,
                       rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const struct rv_envelope_seed seed = {.raw_input = raw_input,
                                          .user_id = rv_str_of(f->user_id),
                                          .session_id = rv_str_of(f->session_id),
                                          .request_id = rv_str_of(f->request_id)};
    struct rv_rand_state state;

    return rv_envelope_new(&seed,
                           rv_rand_seeded(&state, add(add(1469598103934665603u, rv_str_of(f->envelope_id)), name)),
                           now_us, out, err);
}

/* --- A new run of an envelope that was in a run before --- */

int rv_envelope_restart(rv_envelope *env, rv_err **err)
{
    static const enum rv_map_id position[] = {RV_MAP_ACTIVE, RV_MAP_COMPLETED, RV_MAP_FAILED, RV_MAP_SUSPENDED,
                                              RV_MAP_CAUGHT};
    const struct rv_name *queue = env_name(env, RV_STR_LIT(RV_QUEUED_INTERRUPTS));
    struct rv_map *metadata = &env->map[RV_MAP_METADATA];
    int rc = rv_envelope_set_stage(env, RV_STR_LIT(RV_STAGE_START), err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(position); i++)
        map_clear(&env->map[position[i]]);
    if (queue)
        map_drop(metadata, env_map_find(metadata, queue, NULL));
    if (env->f.interrupt_pending) /* the answer to an earlier one is still for prompts to read */
        rv_envelope_clear_interrupt(env);
    json_object_put(env->branches);
    json_object_put(env->withdrawn);
    env->branches = env->withdrawn = NULL;
    env_text_fini(&env->text[RV_TEXT_TERMINATION]);
    env->f.terminated = false;
    env->f.terminal_reason = RV_REASON_NONE;
    env->f.completed_at_us = 0;
    env->f.status = RV_RUN_READY;
    env_mirror(env);
    return 0;
}
