/* Reading the parts of a state dict that have a shape of their own: edges, history, interrupt. */
#include "envelope/state_read_internal.h"

#include <stdio.h>

static bool is(json_object *v, json_type type)
{
    return json_object_is_type(v, type);
}

int rv_read_edges(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    struct rv_map *m = &rd->env->map[RV_MAP_EDGES];

    if (!is(v, json_type_array))
        return rv_read_bad(rd, (struct rv_state_place){row->key, -1, NULL}, "a list", v);
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        json_object *edge = json_object_array_get_idx(v, i);
        json_object *from = NULL;
        json_object *to = NULL;
        json_object *count = NULL;
        const struct rv_name *from_name = NULL;
        const struct rv_name *to_name = NULL;
        int64_t n = 0;
        int rc = rv_map_reserve(m, 1, rd->err);

        if (rc < 0)
            return rc;
        if (!is(edge, json_type_object))
            return rv_read_bad(rd, (struct rv_state_place){row->key, (long)i, NULL}, "an object", edge);
        (void)json_object_object_get_ex(edge, "from", &from);
        (void)json_object_object_get_ex(edge, "to", &to);
        (void)json_object_object_get_ex(edge, "count", &count);
        rc = rv_read_name(rd, (struct rv_state_place){row->key, (long)i, "from"}, from, &from_name);
        if (rc == 0)
            rc = rv_read_name(rd, (struct rv_state_place){row->key, (long)i, "to"}, to, &to_name);
        if (rc == 0)
            rc = rv_read_count(rd, (struct rv_state_place){row->key, (long)i, "count"}, count, &n);
        if (rc < 0)
            return rc;
        rv_map_put(m, from_name, to_name)->count = n; /* of equal pairs the last wins */
    }
    return 0;
}

static int read_record(struct rv_state_reader *rd, const char *key, long i, json_object *v, struct rv_record *r)
{
    json_object *part = NULL;
    int rc = 0;

    if (!is(v, json_type_object))
        return rv_read_bad(rd, (struct rv_state_place){key, i, NULL}, "an object", v);
    r->started_at_us = rv_clamp_time(rd->now_us);
    (void)json_object_object_get_ex(v, "agent", &part);
    rc = rv_read_name(rd, (struct rv_state_place){key, i, "agent"}, part, &r->agent);
    if (rc == 0 && json_object_object_get_ex(v, "stage_order", &part))
        rc = rv_read_int(rd, (struct rv_state_place){key, i, "stage_order"}, part, INT64_MIN, INT64_MAX,
                         &r->stage_order);
    if (rc == 0 && json_object_object_get_ex(v, "started_at", &part))
        rc = rv_read_time(rd, (struct rv_state_place){key, i, "started_at"}, part, &r->started_at_us);
    if (rc == 0 && json_object_object_get_ex(v, "completed_at", &part) && part)
        rc = rv_read_time(rd, (struct rv_state_place){key, i, "completed_at"}, part, &r->completed_at_us);
    if (rc == 0 && json_object_object_get_ex(v, "duration_ms", &part))
        rc = rv_read_count(rd, (struct rv_state_place){key, i, "duration_ms"}, part, &r->duration_ms);
    if (rc == 0 && json_object_object_get_ex(v, "llm_calls", &part))
        rc = rv_read_count(rd, (struct rv_state_place){key, i, "llm_calls"}, part, &r->llm_calls);
    if (rc == 0 && json_object_object_get_ex(v, "error", &part))
        rc = rv_read_text(rd, (struct rv_state_place){key, i, "error"}, part, true, &r->error);
    if (rc == 0 && json_object_object_get_ex(v, "status", &part)) {
        char path[64];

        if (!is(part, json_type_string))
            return rv_read_bad(rd, (struct rv_state_place){key, i, "status"}, "a string", part);
        rc = rv_history_status_of(rv_json_str(part), &r->status, rd->err);
        (void)snprintf(path, sizeof path, "%s[%ld].status", key, i);
        rc = rv_read_word(rd, path, rc);
    }
    return rc;
}

int rv_read_records(struct rv_state_reader *rd, const struct rv_row *row, json_object *v)
{
    rv_envelope *env = rd->env;
    int rc = 0;

    if (!is(v, json_type_array))
        return rv_read_bad(rd, (struct rv_state_place){row->key, -1, NULL}, "a list", v);
    rc = rv_grow(&env->records, &env->cap_records, json_object_array_length(v), sizeof *env->records, rd->err);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(v); i++) {
        struct rv_record r = {.status = RV_HISTORY_RUNNING};

        rc = read_record(rd, row->key, (long)i, json_object_array_get_idx(v, i), &r);
        if (rc == 0)
            env->records[env->n_records++] = r;
        else
            rv_text_fini(&r.error);
    }
    return rc;
}

static int read_response(struct rv_state_reader *rd, json_object *v, json_object **out)
{
    static const struct {
        const char *key;
        const char *path;
        json_type type;
        const char *want;
    } parts[] = {{"text", "response.text", json_type_string, "a string"},
                 {"approved", "response.approved", json_type_boolean, "a boolean"},
                 {"decision", "response.decision", json_type_string, "a string"},
                 {"data", "response.data", json_type_null, "any value"}};
    int64_t received_at_us = rd->now_us;
    char time[RV_TIME_MAX];
    json_object *part = NULL;
    json_object *obj = NULL;
    int rc = 0;

    if (!is(v, json_type_object))
        return rv_read_bad(rd, (struct rv_state_place){"interrupt", -1, "response"}, "an object or null", v);
    if (json_object_object_get_ex(v, "received_at", &part))
        rc = rv_read_time(rd, (struct rv_state_place){"interrupt", -1, "response.received_at"}, part, &received_at_us);
    if (rc < 0)
        return rc;
    obj = json_object_new_object();
    if (!obj)
        return RV_FAIL(rd->err, RV_E_NOMEM, "read the response");
    rv_time_format(rv_clamp_time(received_at_us), time);
    rc = rv_json_set_text(obj, "received_at", time, rd->err);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(parts); i++) {
        json_object *copy = NULL;

        if (!json_object_object_get_ex(v, parts[i].key, &part) || !part)
            continue;
        if (parts[i].type != json_type_null && !is(part, parts[i].type)) {
            rc = rv_read_bad(rd, (struct rv_state_place){"interrupt", -1, parts[i].path}, parts[i].want, part);
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

int rv_read_interrupt(struct rv_state_reader *rd, json_object *v, struct rv_stored_interrupt *it)
{
    const char *key = "interrupt";
    json_object *part = NULL;
    int rc;

    if (!v)
        return 0;
    if (!is(v, json_type_object))
        return rv_read_bad(rd, (struct rv_state_place){key, -1, NULL}, "an object or null", v);
    it->exists = true;
    it->created_at_us = rv_clamp_time(rd->now_us);
    (void)json_object_object_get_ex(v, "kind", &part);
    if (!is(part, json_type_string))
        return rv_read_bad(rd, (struct rv_state_place){key, -1, "kind"}, "a string", part);
    rc = rv_read_word(rd, "interrupt.kind", rv_interrupt_kind_of(rv_json_str(part), &it->kind, rd->err));
    part = NULL;
    (void)json_object_object_get_ex(v, "id", &part);
    if (rc == 0)
        rc = rv_read_text(rd, (struct rv_state_place){key, -1, "id"}, part, false, &it->id);
    if (rc == 0 && json_object_object_get_ex(v, "question", &part))
        rc = rv_read_text(rd, (struct rv_state_place){key, -1, "question"}, part, true, &it->question);
    if (rc == 0 && json_object_object_get_ex(v, "message", &part))
        rc = rv_read_text(rd, (struct rv_state_place){key, -1, "message"}, part, true, &it->message);
    if (rc == 0 && json_object_object_get_ex(v, "stage", &part))
        rc = rv_read_text(rd, (struct rv_state_place){key, -1, "stage"}, part, true, &it->stage);
    if (rc == 0 && json_object_object_get_ex(v, "data", &part)) {
        if (part && !is(part, json_type_object))
            return rv_read_bad(rd, (struct rv_state_place){key, -1, "data"}, "an object or null", part);
        rc = rv_json_dup(part, &it->data, rd->err);
    }
    if (rc == 0 && json_object_object_get_ex(v, "created_at", &part))
        rc = rv_read_time(rd, (struct rv_state_place){key, -1, "created_at"}, part, &it->created_at_us);
    if (rc == 0 && json_object_object_get_ex(v, "expires_at", &part) && part)
        rc = rv_read_time(rd, (struct rv_state_place){key, -1, "expires_at"}, part, &it->expires_at_us);
    if (rc == 0 && json_object_object_get_ex(v, "response", &part) && part)
        rc = read_response(rd, part, &it->response);
    return rc;
}
