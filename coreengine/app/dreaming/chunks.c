/* Phase 1: sessions of a user become chunks up to their last message. A chunk and what is added to it are one
 * transaction, and the watermark of the session moves in it, so a second call has nothing to do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/dreaming/dreaming_internal.h"
#include "coreengine/store/store.h"

#define MAX_EXCERPT 500 /* code points of an upload in a chunk: a paragraph; a chunk goes into requests */
#define MAX_UPLOADS 20  /* that a chunk speaks of: with MAX_EXCERPT each, 10,000 code points for a model */
#define FIRST_CHUNK "-chunk-0000"
#define MAX_TEXT    ((size_t)1 << 20) /* bytes of a summary, and of names: MAX_UPLOADS of these are shorter */

const char *dream_text(json_object *row, const char *column)
{
    const char *text = NULL;

    return row && rv_json_get_text(row, column, &text) ? text : "";
}

int dream_check_user(const struct rv_store_scope *scope, rv_err **err)
{
    return scope->user && scope->user[0] ? 0
                                         : RV_FAIL(err, RV_E_INVALID, "dreaming is for one user, and none is named");
}

/* --- which sessions --- */

static int take_session(void *self, const struct rv_session_row *row, rv_err **err)
{
    struct dream_sessions *s = self;

    if (strcmp(row->mode, RV_DREAM_MODE) == 0)
        return 0;
    if (!rv_has_room(&s->items, &s->cap, s->n + 1, sizeof *s->items))
        return RV_FAIL(err, RV_E_NOMEM, "list sessions");
    struct dream_session *one = &s->items[s->n];
    one->name = rv_str_dup(rv_str_of(row->name ? row->name : row->id));
    if (!one->name)
        return RV_FAIL(err, RV_E_NOMEM, "list sessions");
    snprintf(one->id, sizeof one->id, "%s", row->id);
    s->n++;
    return s->n == s->most ? RV_STORE_ENOUGH : 0;
}

int dream_sessions_read(rv_store *store, const struct rv_store_scope *own, size_t most, int64_t since_us,
                        struct dream_sessions *out, rv_err **err)
{
    const struct rv_session_filter filter = {.since_us = since_us};

    *out = (struct dream_sessions){.most = most};
    int rc = rv_store_list_sessions(store, own, &filter, take_session, out, err);
    if (rc < 0)
        dream_sessions_fini(out);
    return rc;
}

bool dream_is_sealed(json_object *row)
{
    return strcmp(dream_text(row, "encryption_level"), "sealed") == 0;
}

void dream_sessions_fini(struct dream_sessions *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->items[i].name);
    free(s->items);
    *s = (struct dream_sessions){.items = NULL};
}

/* --- what was uploaded there --- */

struct uploads {
    rv_store *store;
    const struct rv_store_scope *scope;
    json_object *found, *keys; /* owned: first chunks of uploads; those that are there */
    rv_buf lines;
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n > m && strcmp(text + n - m, end) == 0;
}

static int take_resource(void *self, json_object *row, rv_err **err)
{
    rv_buf *lines = self;
    rv_str content = rv_str_of(dream_text(row, "content")), first = rv_utf8_first(content, MAX_EXCERPT);

    (void)err;
    if (dream_is_sealed(row))
        return 0;
    rv_buf_printf(lines, "- %s: ", dream_text(row, "name"));
    rv_buf_add_str(lines, first);
    rv_buf_puts(lines, first.len < content.len ? "...\n" : "\n");
    return RV_STORE_ENOUGH;
}

static int take_upload(void *self, json_object *row, rv_err **err)
{
    struct uploads *u = self;
    json_object *keys = rv_json_get_arr(rv_json_get_obj(row, "metadata"), "resource_keys");
    int rc = 0;

    for (size_t i = 0; rc == 0 && keys && i < json_object_array_length(keys); i++) {
        json_object *key = json_object_array_get_idx(keys, i);
        if (json_object_is_type(key, json_type_string) && ends_with(json_object_get_string(key), FIRST_CHUNK))
            rc = rv_json_push_ref(u->found, key, err);
    }
    return rc;
}

static int add_upload(struct uploads *u, json_object *key, rv_err **err)
{
    const struct rv_entity_filter filter = {.name = json_object_get_string(key), .limit = 1};
    size_t before = u->lines.len;
    int rc = rv_store_find_entities(u->store, u->scope, &(const struct rv_entities_of){"resources", &filter},
                                    take_resource, &u->lines, err);

    return rc == 0 && u->lines.len > before ? rv_json_push_ref(u->keys, key, err) : rc;
}

static int find_uploads(struct uploads *u, const char *session, rv_err **err)
{
    const struct rv_entity_where where = {"moment_type", json_object_new_string("content_upload")};
    const struct rv_entity_filter filter = {.about = session, .where = &where, .n_where = 1, .limit = MAX_UPLOADS};
    int rc = where.value
                 ? rv_store_find_entities(u->store, u->scope, &(const struct rv_entities_of){"moments", &filter},
                                          take_upload, u, err)
                 : RV_FAIL(err, RV_E_NOMEM, "look for uploads");

    json_object_put(where.value);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(u->found); i++)
        rc = add_upload(u, json_object_array_get_idx(u->found, i), err);
    return rc;
}

/* The summary of the chunk says what the uploads begin with, its metadata name them. */
static int enrich(struct uploads *u, json_object *row, int64_t now_us, rv_err **err)
{
    rv_buf summary = RV_BUF_INIT(MAX_TEXT);
    json_object *metadata = NULL, *change = json_object_new_object();
    int rc = change ? 0 : RV_FAIL(err, RV_E_NOMEM, "change a chunk");

    rv_buf_printf(&summary, "%s\n\n[Uploaded Resources]\n", dream_text(row, "summary"));
    rv_buf_add_str(&summary, rv_str_trim(rv_buf_str(&u->lines)));
    if (rc == 0)
        rc = rv_json_dup(rv_json_get_obj(row, "metadata"), &metadata, err);
    if (rc == 0)
        rc = rv_json_set_ref(metadata, "resource_keys", u->keys, err);
    if (rc == 0)
        rc = rv_json_set_ref(change, "metadata", metadata, err);
    if (rc == 0)
        rc = rv_json_set_text(change, "id", dream_text(row, "id"), err);
    if (rc == 0)
        rc = rv_buf_check(&summary, "summary", err);
    if (rc == 0)
        rc = rv_json_set_str(change, "summary", rv_buf_str(&summary), err);
    const struct rv_entities_put put = {.kind = "moments", .rows = &change, .n_rows = 1, .now_us = now_us};
    if (rc == 0)
        rc = rv_store_put_entities(u->store, u->scope, &put, NULL, err);
    json_object_put(metadata);
    json_object_put(change);
    rv_buf_fini(&summary);
    return rc;
}

/* --- one session --- */

static int build_in_group(struct uploads *u, const char *session, int64_t now_us, bool *is_built, rv_err **err)
{
    json_object *row = NULL;
    int rc = rv_store_build_moment(
        u->store, u->scope,
        &(const struct rv_moment_build){.session = session, .threshold = RV_DREAM_THRESHOLD, .now_us = now_us}, &row,
        err);

    *is_built = rc == 0 && row;
    if (*is_built)
        rc = find_uploads(u, session, err);
    if (rc == 0 && row && json_object_array_length(u->keys) > 0)
        rc = enrich(u, row, now_us, err);
    json_object_put(row);
    return rc;
}

static int build(rv_store *store, const struct rv_store_scope *scope, const char *session, int64_t now_us,
                 bool *is_built, rv_err **err)
{
    int rc;

    do {
        struct uploads u = {store, scope, json_object_new_array(), json_object_new_array(), RV_BUF_INIT(MAX_TEXT)};
        rc = u.keys && u.found ? rv_store_begin(store, err) : RV_FAIL(err, RV_E_NOMEM, "build a moment");
        if (rc == 0)
            rc = rv_store_end(store, build_in_group(&u, session, now_us, is_built, err), err);
        json_object_put(u.found);
        json_object_put(u.keys);
        rv_buf_fini(&u.lines);
    } while (rc < 0 && rv_store_wait_again(store, err));
    return rc;
}

int rv_app_dream_make_chunks(rv_store *store, const struct rv_store_scope *scope, int64_t now_us,
                             struct rv_dream_chunks *out, rv_err **err)
{
    struct dream_sessions sessions;
    int rc = dream_check_user(scope, err);

    *out = (struct rv_dream_chunks){0};
    if (rc == 0)
        rc = dream_sessions_read(store, scope, RV_DREAM_SESSIONS, 0, &sessions, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < sessions.n; i++) {
        bool is_built = false;
        rc = build(store, scope, sessions.items[i].id, now_us, &is_built, err);
        out->n_checked++;
        out->n_built += is_built;
    }
    dream_sessions_fini(&sessions);
    return rc;
}
