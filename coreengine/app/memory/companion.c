/* A moment and the session that goes with it: an upload, a reminder, a dream can be talked about. */
#include "coreengine/app/memory.h"

#include "coreengine/base/base.h"

#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#define MAX_DESCRIPTION 500  /* code points: a paragraph; lists show it */
#define MAX_UPLOADS     1000 /* of one session: the list is read as a whole; more is an error */

struct pair {
    struct rv_store_scope owner;
    const struct rv_app_moment_session *what;
    char session[RV_STORE_MAX_ID + 1];
    json_object *shown, *row; /* the moment, as the caller reads it and in plain; owned, as the next one */
    json_object *about;       /* the note in the metadata of the session (M) */
};

/* The moment's metadata, with which moment it is. */
static int describe(struct pair *p, rv_err **err)
{
    static const char *const columns[][2] = {
        {"moment_id", "id"}, {"moment_name", "name"}, {"moment_type", "moment_type"}};
    json_object *metadata = rv_json_get_obj(p->row, "metadata");
    int rc = 0;

    p->about = json_object_new_object();
    if (!p->about)
        return RV_FAIL(err, RV_E_NOMEM, "note a moment");
    if (metadata) {
        json_object_object_foreach (metadata, key, value) {
            if (rc == 0 && strcmp(key, "moment_id") != 0)
                rc = rv_json_set_ref(p->about, key, value, err);
        }
    }
    for (size_t i = 0; i < RV_COUNT(columns) && rc == 0; i++)
        rc = rv_json_set_text(p->about, columns[i][0], rv_json_text_or(p->row, columns[i][1], ""), err);
    return rc;
}

/* What the session tells about that is encrypted itself. */
static int read_plain(rv_store *store, struct pair *p, rv_err **err)
{
    const bool reveals = rv_store_reveal(store, true);
    int rc = rv_store_get_entity(store, &p->owner, "moments", rv_json_text_or(p->shown, "id", ""), &p->row, err);

    rv_store_reveal(store, reveals);
    return rc;
}

static int put_moment(rv_store *store, struct pair *p, rv_err **err)
{
    json_object *given = NULL, *rows = NULL;
    int rc = rv_json_dup(p->what->moment, &given, err);

    if (rc == 0 && (!rv_json_text_or(given, "name", "")[0] || !rv_json_text_or(given, "moment_type", "")[0]))
        rc = RV_FAIL(err, RV_E_INVALID, "a moment needs a name and a moment_type");
    if (rc == 0)
        rc = rv_json_set_text(given, "source_session_id", p->session, err);
    const struct rv_entities_put put = {
        .kind = "moments", .rows = &given, .n_rows = 1, .now_us = p->what->now_us, .rand = p->what->rand};
    if (rc == 0)
        rc = rv_store_put_entities(store, &p->owner, &put, &rows, err);
    if (rc == 0)
        p->shown = json_object_get(json_object_array_get_idx(rows, 0));
    if (rc == 0)
        rc = read_plain(store, p, err);
    json_object_put(rows);
    json_object_put(given);
    return rc == 0 ? describe(p, err) : rc;
}

static rv_str description_of(const struct pair *p)
{
    const char *given = p->what->description;

    return rv_utf8_first(rv_str_of(given ? given : rv_json_text_or(p->row, "summary", "")), MAX_DESCRIPTION);
}

static int add_upload(json_object *metadata, const struct pair *p, rv_err **err)
{
    json_object *list = rv_json_get_arr(metadata, "uploads");
    int rc = list ? 0 : rv_json_set_take(metadata, "uploads", json_object_new_array(), err);

    list = rc == 0 ? rv_json_get_arr(metadata, "uploads") : NULL;
    for (size_t i = 0; rc == 0 && i < json_object_array_length(list); i++) {
        json_object *one = json_object_array_get_idx(list, i);
        if (json_object_is_type(one, json_type_object) &&
            strcmp(rv_json_text_or(one, "moment_id", ""), rv_json_text_or(p->about, "moment_id", "")) == 0)
            return json_object_array_put_idx(list, i, json_object_get(p->about)) == 0
                       ? 0
                       : RV_FAIL(err, RV_E_NOMEM, "note a moment");
    }
    if (rc == 0 && json_object_array_length(list) >= MAX_UPLOADS)
        return RV_FAIL(err, RV_E_LIMIT, "session \"%s\" has %d uploads already", p->session, MAX_UPLOADS);
    return rc == 0 ? rv_json_push_ref(list, p->about, err) : rc;
}

static int new_session(rv_store *store, struct pair *p, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_META), description = RV_BUF_INIT(4096);
    json_object *metadata = NULL;
    int rc = rv_json_dup(p->about, &metadata, err);

    if (rc == 0)
        rc = add_upload(metadata, p, err);
    if (rc == 0) {
        rv_json_write(metadata, &text);
        rc = rv_buf_check(&text, "the metadata of a session", err);
    }
    rv_buf_add_str(&description, description_of(p));
    const struct rv_session_row fresh = {.id = p->session,
                                         .tenant = p->owner.tenant,
                                         .user = p->owner.user,
                                         .name = rv_json_text_or(p->row, "name", ""),
                                         .description = rv_buf_cstr(&description),
                                         .mode = rv_json_text_or(p->row, "moment_type", ""),
                                         .metadata = rv_buf_str(&text),
                                         .created_us = p->what->now_us};
    if (rc == 0)
        rc = rv_buf_check(&description, "the description of a session", err);
    if (rc == 0)
        rc = rv_store_ensure_session(store, &fresh, NULL, err);
    json_object_put(metadata);
    rv_buf_fini(&text);
    rv_buf_fini(&description);
    return rc;
}

/* Those that are new, behind those that are there. */
static int add_keys(json_object *patch, json_object *before, json_object *more, rv_err **err)
{
    json_object *list = json_object_new_array();
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "note a moment");
    json_object *const both[] = {before, more};

    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; rc == 0 && both[k] && i < json_object_array_length(both[k]); i++) {
            json_object *key = json_object_array_get_idx(both[k], i);
            bool found = false;
            for (size_t j = 0; j < json_object_array_length(list) && !found; j++)
                found = rv_json_equal(json_object_array_get_idx(list, j), key);
            if (!found)
                rc = rv_json_push_ref(list, key, err);
        }
    if (rc == 0)
        return rv_json_set_take(patch, "resource_keys", list, err);
    json_object_put(list);
    return rc;
}

static int change_session(rv_store *store, struct pair *p, const struct rv_session_row *row, rv_err **err)
{
    rv_buf description = RV_BUF_INIT(4096);
    json_object *metadata = NULL, *patch = json_object_new_object(), *uploads = NULL;
    int rc = patch ? rv_json_parse(row->metadata, NULL, &metadata, err) : RV_FAIL(err, RV_E_NOMEM, "note a moment");

    if (rc == 0)
        rc = add_upload(metadata, p, err);
    if (rc == 0 && json_object_object_get_ex(metadata, "uploads", &uploads))
        rc = rv_json_set_ref(patch, "uploads", uploads, err);
    if (rc == 0 && rv_json_get_arr(p->about, "resource_keys"))
        rc = add_keys(patch, rv_json_get_arr(metadata, "resource_keys"), rv_json_get_arr(p->about, "resource_keys"),
                      err);
    if (rc == 0)
        rc = rv_json_set_text(patch, "latest_moment_id", rv_json_text_or(p->row, "id", ""), err);
    if (rc == 0)
        rc =
            rv_json_set_str(patch, "latest_summary",
                            rv_utf8_first(rv_str_of(rv_json_text_or(p->row, "summary", "")), RV_CHUNK_MAX_LATEST), err);
    rv_buf_add_str(&description, description_of(p));
    const struct rv_session_change change = {.description = description.len > 0 ? rv_buf_cstr(&description) : NULL,
                                             .metadata = patch,
                                             .now_us = p->what->now_us};
    if (rc == 0)
        rc = rv_buf_check(&description, "the description of a session", err);
    if (rc == 0)
        rc = rv_store_change_session(store, &p->owner, p->session, &change, err);
    rv_buf_fini(&description);
    json_object_put(metadata);
    json_object_put(patch);
    return rc;
}

static int see_moment(void *self, json_object *row, rv_err **err)
{
    struct pair *p = self;
    const char *session = rv_json_text_or(row, "source_session_id", "");

    (void)err;
    if (strcmp(rv_json_text_or(row, "user_id", ""), p->owner.user) != 0)
        return 0;
    if (session[0] && strlen(session) <= RV_STORE_MAX_ID)
        snprintf(p->session, sizeof p->session, "%s", session);
    return RV_STORE_ENOUGH;
}

/* A moment that is written again stays in the session that it has, if it is still there. */
static int find_session(rv_store *store, struct pair *p, rv_err **err)
{
    const struct rv_entity_filter filter = {.name = rv_json_text_or(p->what->moment, "name", ""),
                                            .limit = RV_ENTITY_ALL};
    char fresh[RV_STORE_MAX_ID + 1];
    struct rv_session_row row = {0};
    rv_err *cause = NULL;

    memcpy(fresh, p->session, sizeof fresh);
    int rc = rv_store_find_entities(store, &p->owner, &(const struct rv_entities_of){"moments", &filter}, see_moment, p,
                                    err);
    if (rc < 0 || strcmp(fresh, p->session) == 0)
        return rc;
    rc = rv_store_get_session(store, &p->owner, p->session, &row, &cause);
    if (rc == RV_E_NOT_FOUND) {
        memcpy(p->session, fresh, sizeof fresh);
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0)
        rv_err_pass(err, cause);
    rv_session_row_fini(&row);
    return rc;
}

static int write_both(rv_store *store, struct pair *p, rv_err **err)
{
    struct rv_session_row row = {0};
    rv_err *cause = NULL;
    int rc = p->what->session ? 0 : find_session(store, p, err);

    if (rc == 0)
        rc = put_moment(store, p, err);

    if (rc < 0)
        return rc;
    rc = rv_store_get_session(store, &p->owner, p->session, &row, &cause);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return new_session(store, p, err);
    }
    if (rc < 0)
        rv_err_pass(err, cause);
    else
        rc = change_session(store, p, &row, err);
    rv_session_row_fini(&row);
    return rc;
}

static void pair_fini(struct pair *p)
{
    json_object_put(p->shown);
    json_object_put(p->row);
    json_object_put(p->about);
    p->shown = p->row = p->about = NULL;
}

/* In a group of its own, unless one is open already. */
static int write_pair(rv_store *store, struct pair *p, rv_err **err)
{
    char session[RV_STORE_MAX_ID + 1];
    int rc;

    if (rv_store_is_in_group(store))
        return write_both(store, p, err);
    memcpy(session, p->session, sizeof session);
    do {
        pair_fini(p);
        memcpy(p->session, session, sizeof session);
        rc = rv_store_begin(store, err);
        if (rc == 0)
            rc = rv_store_end(store, write_both(store, p, err), err);
    } while (rc < 0 && rv_store_wait_again(store, err));
    return rc;
}

int rv_app_put_moment(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_moment_session *opts,
                      char *session, json_object **out, rv_err **err)
{
    struct pair p = {.owner = {scope->tenant ? scope->tenant : RV_STORE_TENANT, scope->user ? scope->user : ""},
                     .what = opts};

    if (opts->session && (!opts->session[0] || strlen(opts->session) > RV_STORE_MAX_ID))
        return RV_FAIL(err, RV_E_INVALID, "a session's id has from 1 to %d bytes", RV_STORE_MAX_ID);
    rv_uuid_make(opts->rand, p.session);
    if (opts->session)
        snprintf(p.session, sizeof p.session, "%s", opts->session);
    int rc = write_pair(store, &p, err);
    if (rc == 0) {
        memcpy(session, p.session, strlen(p.session) + 1);
        *out = json_object_get(p.shown);
    }
    pair_fini(&p);
    return rc;
}
