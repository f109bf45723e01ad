/* Reading a state dict row by row into a blank envelope; unknown keys are passed over. */
#include "envelope/state_read_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

static bool is(json_object *v, json_type type)
{
    return json_object_is_type(v, type);
}

static int read_map_value(struct rv_state_reader *rd, const struct rv_row *row, const char *key, json_object *v,
                          struct rv_entry *to, bool *keep)
{
    struct rv_state_place p = {row->key, -1, key};

    *keep = true;
    if (row->kind == RV_ROW_COUNTS)
        return rv_read_count(rd, p, v, &to->count);
    if (row->kind == RV_ROW_SET) {
        if (!is(v, json_type_boolean))
            return rv_read_bad(rd, p, "a boolean", v);
        *keep = json_object_get_boolean(v); /* false: not a member */
        return 0;
    }
    if (row->kind == RV_ROW_OUTPUTS && v && !is(v, json_type_object))
        return rv_read_bad(rd, p, "an object or null", v);
    if (row->kind == RV_ROW_TEXT_MAP && !is(v, json_type_string))
        return rv_read_bad(rd, p, "a string", v);
    if (row->kind == RV_ROW_WORK)
        *keep = v != NULL;
    return rv_json_dup(v, &to->value, rd->err);
}

static int read_map(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    struct rv_map *m = &rd->env->map[row->at];

    if (!is(v, json_type_object))
        return rv_read_bad(rd, (struct rv_state_place){row->key, -1, NULL}, "an object", v);
    json_object_object_foreach (v, key, member) {
        struct rv_entry made = {0};
        bool keep = false;
        int rc = rv_map_reserve(m, 1, rd->err);

        if (rc == 0)
            rc = rv_env_intern(rd->env, rv_str_of(key), row->key, &made.name, rd->err);
        if (rc == 0)
            rc = read_map_value(rd, row, key, member, &made, &keep);
        if (rc == 0 && keep) {
            struct rv_entry *e = rv_map_put(m, made.name, NULL);

            e->count = made.count;
            e->value = made.value;
            made.value = NULL;
        }
        json_object_put(made.value);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_list(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    bool texts = row->kind == RV_ROW_TEXTS;
    json_object *copy = NULL;
    int rc;

    if (!is(v, json_type_array))
        return rv_read_bad(rd, (struct rv_state_place){row->key, -1, NULL}, "a list", v);
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        json_object *item = json_object_array_get_idx(v, i);
        bool fits = texts ? is(item, json_type_string) : !item || is(item, json_type_object);

        if (!fits)
            return rv_read_bad(rd, (struct rv_state_place){row->key, (long)i, NULL}, texts ? "a string" : "an object",
                               item);
    }
    rc = rv_json_dup(v, &copy, rd->err);
    if (rc < 0)
        return rc;
    json_object_put(rd->env->list[row->at]);
    rd->env->list[row->at] = copy;
    return 0;
}

static int read_term(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    struct rv_envelope_fields *f = &rd->env->f;
    bool is_reason = row->kind == RV_ROW_REASON;

    if (!v && is_reason) {
        f->terminal_reason = RV_REASON_NONE;
        return 0;
    }
    if (!is(v, json_type_string))
        return rv_read_bad(rd, (struct rv_state_place){row->key, -1, NULL}, is_reason ? "a string or null" : "a string",
                           v);
    return rv_read_word(rd, row->key,
                        is_reason ? rv_reason_of(rv_json_str(v), &f->terminal_reason, rd->err)
                                  : rv_run_status_of(rv_json_str(v), &f->status, rd->err));
}

static int read_scalar(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    struct rv_state_place p = {row->key, -1, NULL};
    char *field = (char *)&rd->env->f + row->at;
    int64_t number = 0;
    bool flag;
    int rc = 0;

    if (row->kind == RV_ROW_BOOL) {
        if (!is(v, json_type_boolean))
            return rv_read_bad(rd, p, "a boolean", v);
        flag = json_object_get_boolean(v);
        memcpy(field, &flag, sizeof flag);
        return 0;
    }
    if (row->kind == RV_ROW_COUNT)
        rc = rv_read_count(rd, p, v, &number);
    else if (v || row->kind == RV_ROW_TIME)
        rc = rv_read_time(rd, p, v, &number);
    if (rc == 0)
        memcpy(field, &number, sizeof number);
    return rc;
}

static int read_stage(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    struct rv_state_place p = {row->key, -1, NULL};

    if (is(v, json_type_string) && rv_json_str(v).len == 0)
        return rv_read_bad(rd, p, "a name that is not empty", v);
    return rv_read_name(rd, p, v, &rd->env->stage);
}

static int read_row(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    switch (row->kind) {
    case RV_ROW_TEXT:
    case RV_ROW_TEXT_NULL:
        return rv_read_text(rd, (struct rv_state_place){row->key, -1, NULL}, v, row->kind == RV_ROW_TEXT_NULL,
                            &rd->env->text[row->at]);
    case RV_ROW_COUNT:
    case RV_ROW_TIME:
    case RV_ROW_TIME_NULL:
    case RV_ROW_BOOL:
        return read_scalar(rd, row, v);
    case RV_ROW_REASON:
    case RV_ROW_STATUS:
        return read_term(rd, row, v);
    case RV_ROW_STAGE:
        return read_stage(rd, row, v);
    case RV_ROW_OUTPUTS:
    case RV_ROW_VALUES:
    case RV_ROW_WORK:
    case RV_ROW_SET:
    case RV_ROW_TEXT_MAP:
    case RV_ROW_COUNTS:
        return read_map(rd, row, v);
    case RV_ROW_EDGES:
        return rv_read_edges(rd, row, v);
    case RV_ROW_TEXTS:
    case RV_ROW_OBJECTS:
    case RV_ROW_ERRORS:
        return read_list(rd, row, v);
    case RV_ROW_RECORDS:
        return rv_read_records(rd, row, v);
    case RV_ROW_INTERRUPT:
        return rv_read_interrupt(rd, v, &rd->env->interrupt);
    case RV_ROW_USAGE:
        if (v && !is(v, json_type_object))
            return rv_read_bad(rd, (struct rv_state_place){row->key, -1, NULL}, "an object", v);
        if (!rv_usage_read_json(v, &rd->env->f.usage))
            return rv_read_bad(rd, (struct rv_state_place){row->key, -1, NULL}, "an object of counts", v);
        return 0;
    }
    return 0;
}

static int check_version(struct rv_state_reader *rd, json_object *state)
{
    json_object *v = NULL;
    int64_t version = 0;
    int rc;

    if (!json_object_object_get_ex(state, "state_version", &v))
        return 0;
    rc = rv_read_int(rd, (struct rv_state_place){"state_version", -1, NULL}, v, 1, RV_MAX_COUNTER, &version);
    if (rc == 0 && version > RV_STATE_VERSION)
        rc = RV_FAIL(rd->err, RV_E_VERSION, "state key \"state_version\" is %lld; this engine reads up to %d",
                     (long long)version, RV_STATE_VERSION);
    return rc;
}

int rv_state_read(json_object *state, int64_t now_us, rv_envelope *env, uint64_t *present, rv_err **err)
{
    struct rv_state_reader rd = {env, now_us, err};
    size_t n = 0;
    const struct rv_row *rows = rv_state_rows(&n);
    int rc;

    *present = 0;
    if (!is(state, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "a state must be an object, not %s", rv_json_type_text(state));
    rc = check_version(&rd, state);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *v = NULL;

        if (!json_object_object_get_ex(state, rows[i].key, &v))
            continue;
        *present |= UINT64_C(1) << i;
        rc = read_row(&rd, &rows[i], v);
    }
    if (rc == 0)
        rv_env_mirror(env);
    return rc;
}

int rv_envelope_load(json_object *state, struct rv_rand rand, int64_t now_us, rv_envelope **out, rv_err **err)
{
    rv_envelope *env = NULL;
    uint64_t present = 0;
    int rc = rv_envelope_new(NULL, rand, now_us, &env, err);

    if (rc == 0)
        rc = rv_state_read(state, now_us, env, &present, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    *out = env;
    return 0;
}
