/* What one step adds to a session, read from the text that the core wrote: the turn itself. The reader is strict, since
 * the writer is this engine, maybe of another version: a member that is not known would be lost. */
#include <stdlib.h>

#include <json-c/linkhash.h>

#include "coreengine/conversation/turn_internal.h"

#define LEVELS 4 /* of a turn around the arguments of a call, which may be as deep as any JSON */

static const struct rv_json_opts as_kept = {
    .max_bytes = RV_TURN_MAX_BYTES, .max_depth = RV_JSON_MAX_DEPTH + LEVELS, .what = "rows of a session"};

int rv_turn_text(json_object *obj, const char *key, const char **out, rv_err **err)
{
    json_object *value = NULL;
    rv_str text;

    *out = NULL;
    json_object_object_get_ex(obj, key, &value);
    if (!value)
        return 0;
    if (!json_object_is_type(value, json_type_string))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is no text but %s", key, rv_json_type_text(value));
    text = rv_json_str(value);
    if (rv_str_of(text.ptr).len != text.len)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" has a NUL in it", key);
    *out = text.ptr;
    return 0;
}

int rv_turn_name(json_object *obj, const char *key, const char **out, rv_err **err)
{
    int rc = rv_turn_text(obj, key, out, err);

    if (rc == 0 && (!*out || !**out))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is missing", key);
    return rc;
}

int rv_turn_object(json_object *obj, const char *key, json_object **out, rv_err **err)
{
    *out = NULL;
    json_object_object_get_ex(obj, key, out);
    if (*out && !json_object_is_type(*out, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is no object but %s", key, rv_json_type_text(*out));
    return 0;
}

int rv_turn_check_members(json_object *obj, const char *const *known, size_t n, rv_err **err)
{
    json_object_object_foreach (obj, key, value) {
        bool is_known = false;
        (void)value;
        for (size_t i = 0; !is_known && i < n; i++)
            is_known = rv_str_is(rv_str_of(key), known[i]);
        if (!is_known)
            return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not known here", key);
    }
    return 0;
}

static int read_rows(struct rv_turn *t, json_object *rows, rv_err **err)
{
    size_t n = json_object_array_length(rows);

    if (n > RV_TURN_MAX_ROWS)
        return RV_FAIL(err, RV_E_LIMIT, "%zu rows are more than %d", n, RV_TURN_MAX_ROWS);
    t->rows = calloc(n ? n : 1, sizeof *t->rows);
    if (!t->rows)
        return RV_FAIL(err, RV_E_NOMEM, "read the rows of a turn");
    t->n_rows = n;
    for (size_t i = 0; i < n; i++) {
        int rc = rv_turn_read_row(json_object_array_get_idx(rows, i), &t->texts, &t->rows[i], err);
        if (rc < 0)
            return RV_WRAP(err, rc, "row %zu", i + 1);
    }
    return 0;
}

/* The texts were written one behind the other while the buffer grew: now they stand still. */
static void place_texts(struct rv_turn *t)
{
    size_t at = 0;

    for (size_t i = 0; i < t->n_rows; i++) {
        rv_str *const views[] = {&t->rows[i].tool_calls, &t->rows[i].metadata};
        for (size_t k = 0; k < RV_COUNT(views); k++) {
            if (views[k]->len)
                views[k]->ptr = t->texts.ptr + at;
            at += views[k]->len;
        }
    }
}

static int read_turn(struct rv_turn *t, rv_err **err)
{
    static const char *const known[] = {"session", "agent", "name", "metadata", "rows"};
    json_object *rows;
    int rc;

    if (!json_object_is_type(t->json, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "it is no object but %s", rv_json_type_text(t->json));
    rc = rv_turn_check_members(t->json, known, RV_COUNT(known), err);
    if (rc == 0)
        rc = rv_turn_name(t->json, "session", &t->session, err);
    if (rc == 0)
        rc = rv_turn_name(t->json, "agent", &t->agent_name, err);
    if (rc == 0)
        rc = rv_turn_text(t->json, "name", &t->name, err);
    if (rc == 0)
        rc = rv_turn_object(t->json, "metadata", &t->metadata, err);
    if (rc < 0)
        return rc;
    rows = rv_json_get_arr(t->json, "rows");
    return rows ? read_rows(t, rows, err) : RV_FAIL(err, RV_E_INVALID, "\"rows\" is no array");
}

/* Rows keep the order in which they are to be read, even if a reader sorts them by time. */
static void keep_order(struct rv_turn *t)
{
    for (size_t i = 1; i < t->n_rows; i++)
        if (t->rows[i].created_us < t->rows[i - 1].created_us)
            t->rows[i].created_us = t->rows[i - 1].created_us;
}

int rv_turn_read(rv_str json, struct rv_turn *out, rv_err **err)
{
    struct rv_turn t = {.texts = RV_BUF_INIT(RV_TURN_MAX_BYTES)};
    int rc = rv_json_parse(json, &as_kept, &t.json, err);

    if (rc == 0)
        rc = read_turn(&t, err);
    if (rc == 0)
        rc = rv_buf_check(&t.texts, "rows of a session", err);
    if (rc < 0) {
        rv_turn_fini(&t);
        return RV_WRAP(err, rc, "read what is added to a session");
    }
    place_texts(&t);
    keep_order(&t);
    *out = t;
    return 0;
}

void rv_turn_fini(struct rv_turn *t)
{
    free(t->rows);
    json_object_put(t->json);
    rv_buf_fini(&t->texts);
    *t = (struct rv_turn){0};
}
