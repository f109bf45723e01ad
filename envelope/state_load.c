/* Reading a state dict row by row into a blank envelope; unknown keys are passed over. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "envelope/envelope_internal.h"

/* Where in the state a value stands: key, key.member, key[item] or key[item].member. */
struct rv_state_place {
    const char *key;
    long item; /* -1: none */
    const char *member;
};
struct rv_state_reader {
    rv_envelope *env; /* what is read into; NULL for a single interrupt */
    int64_t now_us;   /* for times that are left out */
    rv_err **err;
};
#define AT(...) ((struct rv_state_place){__VA_ARGS__})

/* --- Single values: a wrong type is an error that names the path of the key --- */

#define MAX_PATH_TEXT 160 /* bytes of a key in a message: two lines of a terminal; longer ones are cut */

static bool is(json_object *v, json_type type)
{
    return json_object_is_type(v, type);
}

static int read_bad(struct rv_state_reader *rd, struct rv_state_place p, const char *want, json_object *got)
{
    char text[MAX_PATH_TEXT];
    char item[24] = "";
    rv_str path;

    if (p.item >= 0)
        snprintf(item, sizeof item, "[%ld]", p.item);
    snprintf(text, sizeof text, "%s%s%s%s", p.key, item, p.member ? "." : "", p.member ? p.member : "");
    path = rv_utf8_cut(rv_str_of(text), sizeof text - 4);
    bool is_number = got && rv_json_is_number(got);
    const char *number = is_number ? json_object_get_string(got) : NULL;
    if (is_number && !number)
        return RV_FAIL(rd->err, RV_E_NOMEM, "read the state");
    return RV_FAIL(rd->err, RV_E_INVALID, "state key \"%.*s\" must be %s, not %s", RV_STR_ARG(path), want,
                   number ? number : rv_json_type_text(got));
}

/* A whole number that arrives as 3.0 is fine, 3.5 is another type. */
static int read_int(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, int64_t lowest,
                    int64_t highest, int64_t *out)
{
    char want[80];
    int64_t i = 0;
    bool whole = false;

    if (rv_json_is_int(v)) {
        i = json_object_get_int64(v);
        whole = true;
    } else if (v && rv_json_is_number(v)) {
        double d = json_object_get_double(v);

        if (d >= -(double)RV_MAX_COUNTER && d <= (double)RV_MAX_COUNTER) {
            i = (int64_t)d;
            whole = (double)i == d;
        }
    }
    if (!whole || i < lowest || i > highest) {
        snprintf(want, sizeof want, "an integer from %lld to %lld", (long long)lowest, (long long)highest);
        return read_bad(rd, p, want, v);
    }
    *out = i;
    return 0;
}

static int read_count(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, int64_t *out)
{
    return read_int(rd, p, v, 0, RV_MAX_COUNTER, out);
}

static int read_time(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, int64_t *out)
{
    int64_t us = 0;

    if (!is(v, json_type_string))
        return read_bad(rd, p, "a time as text", v);
    if (!rv_time_read(rv_json_str(v), &us))
        return read_bad(rd, p, "a time in RFC 3339 form", v);
    *out = env_clamp_time(us);
    return 0;
}

static int read_text(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, bool may_be_null,
                     struct rv_text *out)
{
    struct rv_text made = {0};
    rv_str s = rv_json_str(v);
    int rc;

    if (!v && may_be_null) {
        env_text_fini(out);
        return 0;
    }
    if (!is(v, json_type_string))
        return read_bad(rd, p, may_be_null ? "a string or null" : "a string", v);
    rc = env_text_of(s.ptr ? s : RV_STR_LIT(""), p.key, &made, rd->err);
    if (rc == 0)
        env_text_move(out, &made);
    return rc;
}

/* A word of a list; the message keeps the list's own explanation as its cause. */
static int read_word(struct rv_state_reader *rd, const char *path, int rc)
{
    return rc < 0 ? RV_WRAP(rd->err, rc, "state key \"%s\"", path) : 0;
}

static int read_name(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, const struct rv_name **out)
{
    if (!is(v, json_type_string))
        return read_bad(rd, p, "a string", v);
    if (rv_str_find(rv_json_str(v), '\0'))
        return read_bad(rd, p, "a string without NUL", v);
    return env_intern(rd->env, rv_json_str(v), p.key, out, rd->err);
}

/* --- Parts with a shape of their own: edges, history, interrupt --- */

static int read_edges(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    struct rv_map *m = &rd->env->map[RV_MAP_EDGES];

    if (!is(v, json_type_array))
        return read_bad(rd, AT(row->key, -1, NULL), "a list", v);
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        json_object *edge = json_object_array_get_idx(v, i), *from = NULL, *to = NULL, *count = NULL;
        const struct rv_name *from_name = NULL, *to_name = NULL;
        int64_t n = 0;
        int rc = map_reserve(m, 1, rd->err);

        if (rc < 0)
            return rc;
        if (!is(edge, json_type_object))
            return read_bad(rd, AT(row->key, (long)i, NULL), "an object", edge);
        json_object_object_get_ex(edge, "from", &from);
        json_object_object_get_ex(edge, "to", &to);
        json_object_object_get_ex(edge, "count", &count);
        rc = read_name(rd, AT(row->key, (long)i, "from"), from, &from_name);
        if (rc == 0)
            rc = read_name(rd, AT(row->key, (long)i, "to"), to, &to_name);
        if (rc == 0)
            rc = read_count(rd, AT(row->key, (long)i, "count"), count, &n);
        if (rc < 0)
            return rc;
        map_put(m, from_name, to_name)->count = n; /* of equal pairs the last wins */
    }
    return 0;
}

static int read_record(struct rv_state_reader *rd, const char *key, long i, json_object *v, struct rv_record *r)
{
    json_object *part = NULL;
    int rc = 0;

    if (!is(v, json_type_object))
        return read_bad(rd, AT(key, i, NULL), "an object", v);
    r->started_at_us = env_clamp_time(rd->now_us);
    json_object_object_get_ex(v, "agent", &part);
    rc = read_name(rd, AT(key, i, "agent"), part, &r->agent);
    if (rc == 0 && json_object_object_get_ex(v, "stage_order", &part))
        rc = read_int(rd, AT(key, i, "stage_order"), part, INT64_MIN, INT64_MAX, &r->stage_order);
    if (rc == 0 && json_object_object_get_ex(v, "started_at", &part))
        rc = read_time(rd, AT(key, i, "started_at"), part, &r->started_at_us);
    if (rc == 0 && json_object_object_get_ex(v, "completed_at", &part) && part)
        rc = read_time(rd, AT(key, i, "completed_at"), part, &r->completed_at_us);
    if (rc == 0 && json_object_object_get_ex(v, "duration_ms", &part))
        rc = read_count(rd, AT(key, i, "duration_ms"), part, &r->duration_ms);
    if (rc == 0 && json_object_object_get_ex(v, "llm_calls", &part))
        rc = read_count(rd, AT(key, i, "llm_calls"), part, &r->llm_calls);
    if (rc == 0 && json_object_object_get_ex(v, "error", &part))
        rc = read_text(rd, AT(key, i, "error"), part, true, &r->error);
    if (rc == 0 && json_object_object_get_ex(v, "status", &part)) {
        char path[64];

        if (!is(part, json_type_string))
            return read_bad(rd, AT(key, i, "status"), "a string", part);
        rc = rv_history_status_of(rv_json_str(part), &r->status, rd->err);
        snprintf(path, sizeof path, "%s[%ld].status", key, i);
        rc = read_word(rd, path, rc);
    }
    return rc;
}

static int read_records(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    rv_envelope *env = rd->env;
    int rc = 0;

    if (!is(v, json_type_array))
        return read_bad(rd, AT(row->key, -1, NULL), "a list", v);
    rc = env_grow(&env->records, &env->cap_records, json_object_array_length(v), sizeof *env->records, rd->err);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(v); i++) {
        struct rv_record r = {.status = RV_HISTORY_RUNNING};

        rc = read_record(rd, row->key, (long)i, json_object_array_get_idx(v, i), &r);
        if (rc == 0)
            env->records[env->n_records++] = r;
        else
            env_text_fini(&r.error);
    }
    return rc;
}

static int read_response(struct rv_state_reader *rd, json_object *v, json_object **out)
{
    static const struct {
        const char *key, *path;
        json_type type;
        const char *want;
    } parts[] = {{"text", "response.text", json_type_string, "a string"},
                 {"approved", "response.approved", json_type_boolean, "a boolean"},
                 {"decision", "response.decision", json_type_string, "a string"},
                 {"data", "response.data", json_type_null, "any value"},
                 {"choice", "response.choice", json_type_string, "a string"},
                 {"arguments", "response.arguments", json_type_object, "an object"},
                 {"expired", "response.expired", json_type_boolean, "a boolean"},
                 {"cancelled", "response.cancelled", json_type_boolean, "a boolean"}};
    int64_t received_at_us = rd->now_us;
    char time[RV_TIME_MAX];
    json_object *part = NULL, *obj = NULL;
    int rc = 0;

    if (!is(v, json_type_object))
        return read_bad(rd, AT("interrupt", -1, "response"), "an object or null", v);
    if (json_object_object_get_ex(v, "received_at", &part))
        rc = read_time(rd, AT("interrupt", -1, "response.received_at"), part, &received_at_us);
    if (rc < 0)
        return rc;
    obj = json_object_new_object();
    if (!obj)
        return RV_FAIL(rd->err, RV_E_NOMEM, "read the response");
    rv_time_format(env_clamp_time(received_at_us), time);
    rc = rv_json_set_text(obj, "received_at", time, rd->err);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(parts); i++) {
        json_object *copy = NULL;

        if (!json_object_object_get_ex(v, parts[i].key, &part) || !part)
            continue;
        if (parts[i].type != json_type_null && !is(part, parts[i].type)) {
            rc = read_bad(rd, AT("interrupt", -1, parts[i].path), parts[i].want, part);
            break;
        }
        rc = rv_json_dup(part, &copy, rd->err);
        if (rc == 0)
            rc = rv_json_set_take(obj, parts[i].key, copy, rd->err);
    }
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}

static int read_interrupt(struct rv_state_reader *rd, json_object *v, struct rv_stored_interrupt *it)
{
    const char *key = "interrupt";
    json_object *part = NULL;
    int rc;

    if (!v)
        return 0;
    if (!is(v, json_type_object))
        return read_bad(rd, AT(key, -1, NULL), "an object or null", v);
    it->exists = true;
    it->created_at_us = env_clamp_time(rd->now_us);
    json_object_object_get_ex(v, "kind", &part);
    if (!is(part, json_type_string))
        return read_bad(rd, AT(key, -1, "kind"), "a string", part);
    rc = read_word(rd, "interrupt.kind", rv_interrupt_kind_of(rv_json_str(part), &it->kind, rd->err));
    part = NULL;
    json_object_object_get_ex(v, "id", &part);
    if (rc == 0)
        rc = read_text(rd, AT(key, -1, "id"), part, false, &it->id);
    if (rc == 0 && json_object_object_get_ex(v, "question", &part))
        rc = read_text(rd, AT(key, -1, "question"), part, true, &it->question);
    if (rc == 0 && json_object_object_get_ex(v, "message", &part))
        rc = read_text(rd, AT(key, -1, "message"), part, true, &it->message);
    if (rc == 0 && json_object_object_get_ex(v, "stage", &part))
        rc = read_text(rd, AT(key, -1, "stage"), part, true, &it->stage);
    if (rc == 0 && json_object_object_get_ex(v, "path", &part))
        rc = read_text(rd, AT(key, -1, "path"), part, true, &it->path);
    if (rc == 0 && json_object_object_get_ex(v, "data", &part)) {
        if (part && !is(part, json_type_object))
            return read_bad(rd, AT(key, -1, "data"), "an object or null", part);
        rc = rv_json_dup(part, &it->data, rd->err);
    }
    if (rc == 0 && json_object_object_get_ex(v, "created_at", &part))
        rc = read_time(rd, AT(key, -1, "created_at"), part, &it->created_at_us);
    if (rc == 0 && json_object_object_get_ex(v, "expires_at", &part) && part)
        rc = read_time(rd, AT(key, -1, "expires_at"), part, &it->expires_at_us);
    if (rc == 0 && json_object_object_get_ex(v, "response", &part) && part)
        rc = read_response(rd, part, &it->response);
    return rc;
}

int env_read_interrupt(json_object *v, struct rv_stored_interrupt *it, rv_err **err)
{
    struct rv_state_reader rd = {.err = err};

    return read_interrupt(&rd, v, it);
}

/* --- Rows --- */

static int read_map_value(struct rv_state_reader *rd, const struct rv_row *row, const char *key, json_object *v,
                          struct rv_entry *to, bool *keep)
{
    struct rv_state_place p = {row->key, -1, key};

    *keep = true;
    if (row->kind == RV_ROW_COUNTS)
        return read_count(rd, p, v, &to->count);
    if (row->kind == RV_ROW_SET) {
        if (!is(v, json_type_boolean))
            return read_bad(rd, p, "a boolean", v);
        *keep = json_object_get_boolean(v); /* false: not a member */
        return 0;
    }
    if (row->kind == RV_ROW_OUTPUTS && v && !is(v, json_type_object))
        return read_bad(rd, p, "an object or null", v);
    if (row->kind == RV_ROW_TEXT_MAP && !is(v, json_type_string))
        return read_bad(rd, p, "a string", v);
    if (row->kind == RV_ROW_WORK)
        *keep = v != NULL;
    return rv_json_dup(v, &to->value, rd->err);
}

static int read_map(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    struct rv_map *m = &rd->env->map[row->at];

    if (!is(v, json_type_object))
        return read_bad(rd, AT(row->key, -1, NULL), "an object", v);
    json_object_object_foreach (v, key, member) {
        struct rv_entry made = {0};
        bool keep = false;
        int rc = map_reserve(m, 1, rd->err);

        if (rc == 0)
            rc = env_intern(rd->env, rv_str_of(key), row->key, &made.name, rd->err);
        if (rc == 0)
            rc = read_map_value(rd, row, key, member, &made, &keep);
        if (rc == 0 && keep) {
            struct rv_entry *e = map_put(m, made.name, NULL);

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
        return read_bad(rd, AT(row->key, -1, NULL), "a list", v);
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        json_object *item = json_object_array_get_idx(v, i);
        bool fits = texts ? is(item, json_type_string) : !item || is(item, json_type_object);

        if (!fits)
            return read_bad(rd, AT(row->key, (long)i, NULL), texts ? "a string" : "an object", item);
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
        return read_bad(rd, AT(row->key, -1, NULL), is_reason ? "a string or null" : "a string", v);
    return read_word(rd, row->key,
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
            return read_bad(rd, p, "a boolean", v);
        flag = json_object_get_boolean(v);
        memcpy(field, &flag, sizeof flag);
        return 0;
    }
    if (row->kind == RV_ROW_COUNT)
        rc = read_count(rd, p, v, &number);
    else if (v || row->kind == RV_ROW_TIME)
        rc = read_time(rd, p, v, &number);
    if (rc == 0)
        memcpy(field, &number, sizeof number);
    return rc;
}

static int read_stage(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    struct rv_state_place p = {row->key, -1, NULL};

    if (is(v, json_type_string) && rv_json_str(v).len == 0)
        return read_bad(rd, p, "a name that is not empty", v);
    return read_name(rd, p, v, &rd->env->stage);
}

static int read_withdrawn(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    if (v && (!is(v, json_type_array) || json_object_array_length(v) == 0))
        return read_bad(rd, AT(row->key, -1, NULL), "a list of ids", v);
    for (size_t i = 0; v && i < json_object_array_length(v); i++)
        if (!is(json_object_array_get_idx(v, i), json_type_string))
            return read_bad(rd, AT(row->key, (int)i, NULL), "an id", json_object_array_get_idx(v, i));
    json_object_put(rd->env->withdrawn);
    rd->env->withdrawn = NULL;
    return rv_json_dup(v, &rd->env->withdrawn, rd->err);
}

static int read_row(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    switch (row->kind) {
    case RV_ROW_TEXT:
    case RV_ROW_TEXT_NULL:
        return read_text(rd, AT(row->key, -1, NULL), v, row->kind == RV_ROW_TEXT_NULL, &rd->env->text[row->at]);
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
        return read_edges(rd, row, v);
    case RV_ROW_TEXTS:
    case RV_ROW_OBJECTS:
    case RV_ROW_ERRORS:
        return read_list(rd, row, v);
    case RV_ROW_RECORDS:
        return read_records(rd, row, v);
    case RV_ROW_INTERRUPT:
        return read_interrupt(rd, v, &rd->env->interrupt);
    case RV_ROW_USAGE:
        if (v && !is(v, json_type_object))
            return read_bad(rd, AT(row->key, -1, NULL), "an object", v);
        if (!rv_usage_read_json(v, &rd->env->f.usage))
            return read_bad(rd, AT(row->key, -1, NULL), "an object of counts", v);
        return 0;
    case RV_ROW_BRANCHES:
        if (v && !is(v, json_type_array))
            return read_bad(rd, AT(row->key, -1, NULL), "a list", v);
        json_object_put(rd->env->branches);
        rd->env->branches = NULL;
        return rv_json_dup(v, &rd->env->branches, rd->err);
    case RV_ROW_INTERRUPTS:
        break; /* other rows have them */
    case RV_ROW_WITHDRAWN:
        return read_withdrawn(rd, row, v);
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
    rc = read_int(rd, AT("state_version", -1, NULL), v, 1, RV_MAX_COUNTER, &version);
    if (rc == 0 && version > RV_STATE_VERSION)
        rc = RV_FAIL(rd->err, RV_E_VERSION, "state key \"state_version\" is %lld; this engine reads up to %d",
                     (long long)version, RV_STATE_VERSION);
    return rc;
}

int env_state_read(json_object *state, int64_t now_us, rv_envelope *env, uint64_t *present, rv_err **err)
{
    struct rv_state_reader rd = {env, now_us, err};
    size_t n = 0;
    const struct rv_row *rows = env_state_rows(&n);
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
        env_mirror(env);
    return rc;
}

int rv_envelope_restore(json_object *state, int64_t now_us, rv_envelope **out, rv_err **err)
{
    struct rv_rand_state seed; /* ids that the state lacks are the same on a replay */

    return rv_envelope_load(state, rv_rand_seeded(&seed, 1), now_us, out, err);
}

int rv_envelope_load(json_object *state, struct rv_rand rand, int64_t now_us, rv_envelope **out, rv_err **err)
{
    rv_envelope *env = NULL;
    uint64_t present = 0;
    int rc = rv_envelope_new(NULL, rand, now_us, &env, err);

    if (rc == 0)
        rc = env_state_read(state, now_us, env, &present, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    *out = env;
    return 0;
}
