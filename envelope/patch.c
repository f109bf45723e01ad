/* A partial state applied to an envelope or a fork: read as a whole first, then committed without a step that can fail.
 *
 * What a hook may not change may still be in its answer, as long as it is what the envelope has: a hook that returns
 * the whole state with one key changed is the common case. */
#include "envelope/envelope_internal.h"

#include <string.h>

struct patch {
    rv_envelope *env;   /* to change */
    rv_envelope *given; /* blank but for the rows that are present; its names become env's in prepare(); owned */
    uint64_t present;
};

static bool same_text(const struct rv_text *a, const struct rv_text *b)
{
    return (a->ptr != NULL) == (b->ptr != NULL) && rv_str_eq(env_text_str(a), env_text_str(b));
}

static bool same_name(const struct rv_name *a, const struct rv_name *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static bool same_records(const rv_envelope *env, const rv_envelope *given)
{
    if (rv_envelope_n_records(env) != given->n_records)
        return false;
    for (size_t i = 0; i < given->n_records; i++) {
        const struct rv_record *a = env_record(env, i);
        const struct rv_record *b = &given->records[i];

        if (!same_name(a->agent, b->agent) || a->stage_order != b->stage_order ||
            a->started_at_us != b->started_at_us || a->completed_at_us != b->completed_at_us ||
            a->duration_ms != b->duration_ms || a->llm_calls != b->llm_calls || a->status != b->status ||
            !same_text(&a->error, &b->error))
            return false;
    }
    return true;
}

static const struct rv_name *in_env(const rv_envelope *env, const struct rv_name *name)
{
    return name ? env_name(env, (rv_str){name->text, name->len}) : NULL;
}

static bool same_counts(const rv_envelope *env, const rv_envelope *given, enum rv_map_id id)
{
    struct rv_cursor c = env_cursor_on(given, id);
    const struct rv_entry *e;

    if (env_size(env, id) != given->map[id].n_live)
        return false;
    while ((e = env_cursor_next(&c)) != NULL) {
        const struct rv_name *name = in_env(env, e->name);
        const struct rv_name *to = in_env(env, e->to);

        if (!name || (e->to && !to) || env_count(env, id, name, to) != e->count)
            return false;
    }
    return true;
}

static bool same_usage(const struct rv_usage *a, const struct rv_usage *b)
{
    return a->calls == b->calls && a->input_tokens == b->input_tokens && a->output_tokens == b->output_tokens &&
           a->cached_tokens == b->cached_tokens && a->cache_write_tokens == b->cache_write_tokens &&
           a->reasoning_tokens == b->reasoning_tokens && a->cost_micro_usd == b->cost_micro_usd &&
           a->estimated == b->estimated;
}

static bool is_same(const struct patch *p, const struct rv_row *row)
{
    const char *a = (const char *)&p->env->f;
    const char *b = (const char *)&p->given->f;

    if (row->kind == RV_ROW_TEXT)
        return same_text(&p->env->text[row->at], &p->given->text[row->at]);
    if (row->kind == RV_ROW_RECORDS)
        return same_records(p->env, p->given);
    if (row->kind == RV_ROW_COUNTS || row->kind == RV_ROW_EDGES)
        return same_counts(p->env, p->given, (enum rv_map_id)row->at);
    if (row->kind == RV_ROW_USAGE)
        return same_usage(&p->env->f.usage, &p->given->f.usage);
    if (row->kind == RV_ROW_BRANCHES)
        return rv_json_equal(p->env->branches, p->given->branches);
    if (row->kind == RV_ROW_WITHDRAWN)
        return rv_json_equal(p->env->withdrawn, p->given->withdrawn);
    if (row->kind == RV_ROW_INTERRUPTS)
        return true; /* it is not read */
    return memcmp(a + row->at, b + row->at, sizeof(int64_t)) == 0;
}

/* The errors of a fork are its own new ones; those of its parent cannot be removed. */
static int cut_errors_seen(const struct patch *p, rv_err **err)
{
    json_object *given = p->given->list[RV_LIST_ERRORS];
    size_t n = rv_envelope_n_errors(p->env->parent), end = n;
    bool extends = json_object_array_length(given) >= n;

    for (const rv_envelope *e = p->env->parent; extends && e; e = e->parent) { /* the newest first */
        size_t own = e->list[RV_LIST_ERRORS] ? json_object_array_length(e->list[RV_LIST_ERRORS]) : 0;

        end -= own;
        for (size_t i = 0; extends && i < own; i++)
            extends = rv_json_equal(json_object_array_get_idx(given, end + i),
                                    json_object_array_get_idx(e->list[RV_LIST_ERRORS], i));
    }
    if (!extends)
        return RV_FAIL(err, RV_E_INVALID, "state key \"errors\" can only be added to while stages run side by side");
    rv_json_cut(given, 0, n);
    return 0;
}

static bool is_map(const struct rv_row *row)
{
    return row->kind == RV_ROW_OUTPUTS || row->kind == RV_ROW_VALUES || row->kind == RV_ROW_WORK ||
           row->kind == RV_ROW_SET || row->kind == RV_ROW_TEXT_MAP;
}

static int prepare_map(struct patch *p, enum rv_map_id id, rv_err **err)
{
    struct rv_map *from = &p->given->map[id];
    size_t below = p->env->parent ? env_size(p->env->parent, id) : 0;
    int rc = map_reserve(&p->env->map[id], from->n + below, err);

    if (rc == 0 && p->env->parent && id == RV_MAP_STATE)
        rc = env_grow(&p->env->ops, &p->env->cap_ops, p->env->n_ops + from->n, sizeof *p->env->ops, err);
    for (size_t i = 0; rc == 0 && i < from->n; i++) {
        rv_str key = {from->entries[i].name->text, from->entries[i].name->len};

        rc = env_intern(p->env, key, "key", &from->entries[i].name, err);
    }
    return rc;
}

static int prepare_row(struct patch *p, const struct rv_row *row, rv_err **err)
{
    rv_str stage = {p->given->stage->text, p->given->stage->len};

    if (row->patch == RV_PATCH_SAME)
        return is_same(p, row) ? 0 : RV_FAIL(err, RV_E_INVALID, "state key \"%s\" can not be changed", row->key);
    if (is_map(row))
        return prepare_map(p, (enum rv_map_id)row->at, err);
    if (row->kind == RV_ROW_STAGE)
        return env_intern(p->env, stage, "stage", &p->given->stage, err);
    if (row->kind == RV_ROW_ERRORS && p->env->parent)
        return cut_errors_seen(p, err);
    return 0;
}

static void merge_map(struct patch *p, enum rv_map_id id)
{
    const struct rv_map *from = &p->given->map[id];
    rv_envelope *env = p->env;

    for (size_t i = 0; i < from->n; i++) {
        const struct rv_entry *e = &from->entries[i];

        if (env->parent) {
            const struct rv_entry *now = env_find(env, id, e->name);

            if (now && rv_json_equal(now->value, e->value))
                continue; /* handed back as it was: no change to merge later */
            if (id == RV_MAP_STATE)
                env->ops[env->n_ops++] = (struct rv_state_op){e->name, RV_MERGE_REPLACE, json_object_get(e->value)};
        }
        map_put_ref(&env->map[id], e->name, e->value);
    }
}

static void replace_map(struct patch *p, enum rv_map_id id)
{
    struct rv_map *to = &p->env->map[id];
    const rv_envelope *below = p->env->parent;
    const struct rv_map *from = &p->given->map[id];

    map_clear(to);
    env_hide_below(p->env, id);
    for (size_t i = 0; i < from->n; i++) {
        const struct rv_entry *e = &from->entries[i];
        const struct rv_entry *seen = below ? env_find(below, id, e->name) : NULL;

        if (seen && rv_json_equal(seen->value, e->value))
            map_drop(to, env_map_find(to, e->name, NULL)); /* no change to merge later */
        else
            map_put_ref(to, e->name, e->value);
    }
}

static void commit_map(struct patch *p, const struct rv_row *row)
{
    if (row->patch == RV_PATCH_MERGE)
        merge_map(p, (enum rv_map_id)row->at);
    else
        replace_map(p, (enum rv_map_id)row->at);
}

static void commit_list(struct patch *p, enum rv_list_id id)
{
    json_object_put(p->env->list[id]);
    p->env->list[id] = p->given->list[id];
    p->given->list[id] = NULL;
}

static void commit_row(struct patch *p, const struct rv_row *row)
{
    char *to = (char *)&p->env->f + row->at;
    const char *from = (const char *)&p->given->f + row->at;

    if (row->patch == RV_PATCH_SAME)
        return;
    switch (row->kind) {
    case RV_ROW_TEXT:
    case RV_ROW_TEXT_NULL:
        env_text_move(&p->env->text[row->at], &p->given->text[row->at]);
        break;
    case RV_ROW_COUNT:
    case RV_ROW_TIME:
    case RV_ROW_TIME_NULL:
        memcpy(to, from, sizeof(int64_t));
        break;
    case RV_ROW_BOOL:
        memcpy(to, from, sizeof(bool));
        break;
    case RV_ROW_REASON:
        p->env->f.terminal_reason = p->given->f.terminal_reason;
        break;
    case RV_ROW_STATUS:
        p->env->f.status = p->given->f.status;
        break;
    case RV_ROW_STAGE:
        p->env->stage = p->given->stage;
        break;
    case RV_ROW_OUTPUTS:
    case RV_ROW_VALUES:
    case RV_ROW_WORK:
    case RV_ROW_SET:
    case RV_ROW_TEXT_MAP:
        commit_map(p, row);
        break;
    case RV_ROW_TEXTS:
    case RV_ROW_OBJECTS:
    case RV_ROW_ERRORS:
        commit_list(p, (enum rv_list_id)row->at);
        break;
    case RV_ROW_INTERRUPT:
        env_interrupt_fini(&p->env->interrupt);
        p->env->interrupt = p->given->interrupt;
        p->given->interrupt = (struct rv_stored_interrupt){0};
        p->env->own_interrupt = true;
        break;
    case RV_ROW_COUNTS:
    case RV_ROW_EDGES:
    case RV_ROW_RECORDS:
    case RV_ROW_USAGE:
    case RV_ROW_BRANCHES:
    case RV_ROW_INTERRUPTS:
    case RV_ROW_WITHDRAWN:
        break; /* never changed by a patch */
    }
}

/* A run that waits must have an interrupt, or it could never be answered. */
static int check_interrupt(const struct patch *p, const struct rv_row *rows, size_t n, rv_err **err)
{
    bool pending = p->env->f.interrupt_pending, asks = env_interrupt(p->env)->exists, touched = false;

    for (size_t i = 0; i < n; i++) {
        if (!(p->present >> i & 1U))
            continue;
        if (rows[i].kind == RV_ROW_INTERRUPT) {
            asks = env_interrupt(p->given)->exists;
            touched = true;
        } else if (strcmp(rows[i].key, "interrupt_pending") == 0) {
            pending = p->given->f.interrupt_pending;
            touched = true;
        }
    }
    bool waited_so = p->env->f.interrupt_pending && !env_interrupt(p->env)->exists; /* as it was loaded */
    if (touched && pending && !asks && !waited_so)
        return RV_FAIL(err, RV_E_INVALID, "state key \"interrupt_pending\" is true, but \"interrupt\" holds none");
    return 0;
}

int rv_envelope_patch(rv_envelope *env, json_object *partial, rv_err **err)
{
    struct patch p = {.env = env};
    size_t n = 0;
    const struct rv_row *rows = env_state_rows(&n);
    int rc = env_blank(env->f.created_at_us, &p.given, err);

    if (rc == 0)
        rc = env_state_read(partial, env->f.created_at_us, p.given, &p.present, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (p.present >> i & 1U)
            rc = prepare_row(&p, &rows[i], err);
    if (rc == 0)
        rc = check_interrupt(&p, rows, n, err);
    if (rc == 0) {
        for (size_t i = 0; i < n; i++)
            if (p.present >> i & 1U)
                commit_row(&p, &rows[i]);
        env_mirror(env);
    }
    rv_envelope_free(p.given);
    return rc;
}
