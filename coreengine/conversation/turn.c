/* What one step adds to a session: rows with their texts, made by the core and kept by the store. A stage that waits
 * for a person keeps the rows of the agents that it asked as JSON in the state of its run. The writer is this engine,
 * maybe of a later version: members that are not known are passed over. */
#include "coreengine/conversation/messages_internal.h"

#include <stdlib.h>

#define ROW_BYTES ((size_t)256) /* what each row counts beside its texts */

/* --- making --- */

struct rv_turn *rv_turn_new(size_t max_bytes)
{
    struct rv_turn *t = calloc(1, sizeof *t);

    if (t)
        t->room = rv_arena_new(2 * max_bytes); /* more than the texts, which are counted here */
    if (!t || !t->room) {
        free(t);
        return NULL;
    }
    t->max_bytes = max_bytes;
    return t;
}

void rv_turn_free(struct rv_turn *t)
{
    if (!t)
        return;
    free(t->rows);
    json_object_put(t->metadata);
    rv_arena_free(t->room);
    free(t);
}

static void fail(struct rv_turn *t, int rc)
{
    if (t->rc == 0)
        t->rc = rc;
}

const char *rv_turn_keep_text(struct rv_turn *t, rv_str text)
{
    char *copy = NULL;

    if (!text.ptr || t->rc < 0)
        return NULL;
    if (!rv_utf8_valid(text, NULL))
        fail(t, RV_E_INVALID);
    else if (text.len > t->max_bytes - t->bytes)
        fail(t, RV_E_LIMIT);
    else if (!(copy = rv_arena_dup(t->room, text)))
        fail(t, RV_E_NOMEM);
    else
        t->bytes += text.len;
    return copy;
}

static void copy_str(struct rv_turn *t, rv_str *text)
{
    text->ptr = text->len > 0 ? rv_turn_keep_text(t, *text) : "";
}

static bool has_room(struct rv_turn *t)
{
    if (!rv_has_room(&t->rows, &t->cap_rows, t->n_rows + 1, sizeof *t->rows)) {
        fail(t, RV_E_NOMEM);
        return false;
    }
    if (t->n_rows >= RV_TURN_MAX_ROWS || t->max_bytes - t->bytes < ROW_BYTES) {
        fail(t, RV_E_LIMIT);
        return false;
    }
    t->bytes += ROW_BYTES;
    return true;
}

void rv_turn_add(struct rv_turn *t, const struct rv_message *row)
{
    struct rv_message m = *row;
    const char **const texts[] = {&m.id,      &m.agent_name, &m.model,         &m.trace_id,
                                  &m.span_id, &m.run_id,     &m.parent_call_id};

    if (t->rc < 0 || !has_room(t))
        return;
    for (size_t i = 0; i < RV_COUNT(texts); i++)
        if (*texts[i])
            *texts[i] = rv_turn_keep_text(t, rv_str_of(*texts[i]));
    copy_str(t, &m.content);
    copy_str(t, &m.tool_calls);
    copy_str(t, &m.metadata);
    m.encryption_level = NULL;
    if (t->rc == 0)
        t->rows[t->n_rows++] = m;
}

void rv_turn_add_all(struct rv_turn *t, const struct rv_turn *from)
{
    for (size_t i = 0; i < from->n_rows; i++)
        rv_turn_add(t, &from->rows[i]);
}

void rv_turn_keep_order(struct rv_turn *t)
{
    for (size_t i = 1; i < t->n_rows; i++)
        if (t->rows[i].created_us < t->rows[i - 1].created_us)
            t->rows[i].created_us = t->rows[i - 1].created_us;
}

/* --- as JSON --- */

static void write_text(rv_jw *w, const char *key, const char *text)
{
    if (text)
        rv_jw_kv_text(w, key, text);
}

static void write_raw(rv_jw *w, const char *key, rv_str json)
{
    if (json.len == 0)
        return;
    rv_jw_key(w, key);
    rv_jw_raw(w, json);
}

static void write_row(const struct rv_message *m, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", m->id);
    rv_jw_kv_text(w, "type", m->type);
    write_text(w, "agent", m->agent_name);
    write_text(w, "run_id", m->run_id);
    write_text(w, "trace_id", m->trace_id);
    write_text(w, "span_id", m->span_id);
    write_text(w, "status", m->status);
    write_text(w, "parent_call_id", m->parent_call_id);
    rv_jw_kv_int(w, "at_us", m->created_us);
    if (m->has_content)
        rv_jw_kv_str(w, "content", m->content);
    write_text(w, "model", m->model);
    if (m->has_usage) {
        rv_jw_kv_int(w, "input_tokens", m->input_tokens);
        rv_jw_kv_int(w, "output_tokens", m->output_tokens);
        rv_jw_kv_int(w, "cost_micro_usd", m->cost_micro_usd);
        rv_jw_kv_int(w, "latency_ms", m->latency_ms);
    }
    write_raw(w, "tool_calls", m->tool_calls);
    write_raw(w, "metadata", m->metadata);
    rv_jw_obj_end(w);
}

void rv_turn_write_rows(const struct rv_turn *t, rv_buf *out)
{
    for (size_t i = 0; i < t->n_rows; i++) {
        rv_jw w = rv_jw_on(out);
        if (i > 0)
            rv_buf_putc(out, ',');
        write_row(&t->rows[i], &w);
    }
}

void rv_turn_write_json(const struct rv_turn *t, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "session", t->session);
    rv_jw_kv_text(w, "agent", t->agent_name);
    write_text(w, "name", t->name);
    if (t->metadata)
        rv_jw_kv_value(w, "metadata", t->metadata);
    rv_jw_key(w, "rows");
    rv_jw_arr(w);
    for (size_t i = 0; i < t->n_rows; i++)
        write_row(&t->rows[i], w);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

/* --- reading rows back --- */

static rv_str str_of(json_object *json, const char *key)
{
    json_object *value = NULL;

    json_object_object_get_ex(json, key, &value);
    return rv_json_str(value);
}

static void write_object(json_object *json, const char *key, rv_buf *text)
{
    json_object *value = rv_json_get_obj(json, key);

    if (value)
        rv_json_write(value, text);
}

/* False: what every row has is missing or wrong. */
static bool read_members(json_object *json, struct rv_message *m)
{
    const struct {
        const char *key;
        const char **out;
    } texts[] = {{"id", &m->id},
                 {"agent", &m->agent_name},
                 {"model", &m->model},
                 {"trace_id", &m->trace_id},
                 {"span_id", &m->span_id},
                 {"run_id", &m->run_id},
                 {"parent_call_id", &m->parent_call_id}};
    const struct {
        const char *key;
        int64_t *out;
    } counts[] = {{"input_tokens", &m->input_tokens},
                  {"output_tokens", &m->output_tokens},
                  {"cost_micro_usd", &m->cost_micro_usd},
                  {"latency_ms", &m->latency_ms}};
    int type = rv_message_type_of(str_of(json, "type")), status = rv_turn_status_of(str_of(json, "status"));

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        if (!rv_json_get_text(json, texts[i].key, texts[i].out))
            *texts[i].out = NULL;
    if (!m->id || type < 0 || !rv_json_get_int(json, "at_us", &m->created_us) || m->created_us < 0)
        return false;
    m->type = rv_message_type_text((enum rv_message_type)type);
    m->status = status < 0 ? NULL : rv_turn_status_text((enum rv_turn_status)status);
    m->content = str_of(json, "content");
    m->has_content = m->content.ptr != NULL;
    m->token_count = rv_tokens_estimate(m->content);
    m->has_usage = json_object_object_get_ex(json, "input_tokens", NULL);
    for (size_t i = 0; i < RV_COUNT(counts); i++)
        if (!rv_json_get_int(json, counts[i].key, counts[i].out))
            *counts[i].out = 0;
    return true;
}

static int read_row(json_object *json, struct rv_turn *t, rv_err **err)
{
    struct rv_message m = {0};
    rv_buf calls = RV_BUF_INIT(t->max_bytes), metadata = RV_BUF_INIT(t->max_bytes);

    if (!json_object_is_type(json, json_type_object) || !read_members(json, &m))
        return RV_FAIL(err, RV_E_INVALID, "it has no id, no type or no time");
    write_object(json, "tool_calls", &calls);
    write_object(json, "metadata", &metadata);
    m.tool_calls = rv_buf_str(&calls);
    m.metadata = rv_buf_str(&metadata);
    int rc = rv_buf_check(&calls, "its call", err);
    if (rc == 0)
        rc = rv_buf_check(&metadata, "its metadata", err);
    if (rc == 0) {
        rv_turn_add(t, &m);
        rc = rv_turn_check(t, err);
    }
    rv_buf_fini(&calls);
    rv_buf_fini(&metadata);
    return rc;
}

int rv_turn_read_rows(json_object *rows, struct rv_turn *t, rv_err **err)
{
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        int rc = read_row(json_object_array_get_idx(rows, i), t, err);
        if (rc < 0)
            return RV_WRAP(err, rc, "row %zu of a session", i + 1);
    }
    return 0;
}

int rv_turn_check(const struct rv_turn *t, rv_err **err)
{
    if (t->rc == RV_E_LIMIT)
        return RV_FAIL(err, RV_E_LIMIT, "the rows of a turn have more than %zu bytes", t->max_bytes);
    if (t->rc == RV_E_INVALID)
        return RV_FAIL(err, RV_E_INVALID, "the rows of a turn are not UTF-8");
    return t->rc < 0 ? RV_FAIL(err, t->rc, "keep the rows of a turn") : 0;
}
