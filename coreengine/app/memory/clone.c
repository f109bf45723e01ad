/* A copy of a session, with its first messages. */
#include "coreengine/app/memory.h"

#include <stdio.h>
#include <string.h>

#define MAX_WORDS ((size_t)64 << 20) /* bytes of the texts of one copied turn: what a turn may have */
#define MAX_NAME  900                /* bytes of a copied name: a store takes 1000 */

struct cloning {
    struct rv_turn *turn; /* owned */
    struct rv_rand rand;
    char texts[3][RV_UUID_MAX];
};

static int take(void *self, const struct rv_message *m, rv_err **err)
{
    struct cloning *c = self;
    struct rv_message copy = *m;
    int type = rv_message_type_of(rv_str_of(m->type)), status = rv_turn_status_of(rv_str_of(m->status));
    char id[RV_UUID_MAX];

    rv_uuid_make(c->rand, id);
    copy.id = id;
    copy.seq = 0;
    copy.run_id = NULL; /* that run wrote the original */
    copy.type =
        type >= 0 ? rv_message_type_text((enum rv_message_type)type) : rv_turn_keep_text(c->turn, rv_str_of(m->type));
    copy.status = status >= 0 ? rv_turn_status_text((enum rv_turn_status)status) : NULL;
    rv_turn_add(c->turn, &copy);
    return rv_turn_check(c->turn, err);
}

/* How far chunks go, and what routes, is of the original. */
static int metadata_of(const struct rv_session_row *row, json_object **out, rv_err **err)
{
    static const char *const own[] = {RV_MEMORY_MEMBER, "latest_moment_id", "latest_summary", "moment_count"};
    int rc = rv_json_parse(row->metadata, NULL, out, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(own); i++)
        json_object_object_del(*out, own[i]);
    return rv_json_set_text(*out, "cloned_from", row->id, err);
}

static int write_clone(rv_store *store, const struct rv_session_row *from, const struct rv_app_clone *opts,
                       const char *id, struct rv_turn *turn, rv_err **err)
{
    const char *user = opts->user ? opts->user : from->user;
    const struct rv_store_scope owner = {from->tenant, user};
    char name[MAX_NAME + 32];
    struct rv_session_row there = {0};
    json_object *metadata = NULL;
    rv_buf text = RV_BUF_INIT(RV_STORE_MAX_META);
    rv_str short_name = rv_utf8_cut(rv_str_of(from->name), MAX_NAME);

    rv_err *cause = NULL;
    int rc = rv_store_get_session(store, &owner, id, &there, &cause);
    if (rc == 0) {
        rv_session_row_fini(&there);
        return RV_FAIL(err, RV_E_EXISTS, "there is a session \"%s\" already", id);
    }
    if (rc != RV_E_NOT_FOUND) { /* another failure may have ended the group: nothing is written after it */
        rv_err_pass(err, cause);
        return rc;
    }
    rv_err_free(cause);
    snprintf(name, sizeof name, "%.*s (clone)", RV_STR_ARG(short_name));
    rc = metadata_of(from, &metadata, err);
    if (rc == 0) {
        rv_json_write(metadata, &text);
        rc = rv_buf_check(&text, "the metadata of a session", err);
    }
    const struct rv_session_row fresh = {.id = id,
                                         .tenant = from->tenant,
                                         .user = user,
                                         .name = name,
                                         .description = from->description,
                                         .agent_name = opts->agent ? opts->agent : from->agent_name,
                                         .mode = from->mode,
                                         .metadata = rv_buf_str(&text),
                                         .created_us = opts->now_us};
    if (rc == 0)
        rc = rv_store_ensure_session(store, &fresh, NULL, err);
    turn->session = id;
    if (rc == 0)
        rc = rv_store_add_messages(store, &owner, turn, opts->now_us, err);
    json_object_put(metadata);
    rv_buf_fini(&text);
    return rc;
}

static int clone_of(rv_store *store, const struct rv_session_row *from, const struct rv_app_clone *opts, const char *id,
                    int64_t *n, rv_err **err)
{
    const struct rv_store_scope owner = {from->tenant, from->user};
    const struct rv_message_filter first = {.limit = opts->max_messages, .for_agents = true};
    struct cloning c = {.turn = rv_turn_new(MAX_WORDS), .rand = opts->rand};

    int rc =
        c.turn ? rv_store_read_messages(store, &owner, &(const struct rv_messages_of){from->id, &first}, take, &c, err)
               : RV_FAIL(err, RV_E_NOMEM, "copy a session");
    if (rc == 0)
        rc = write_clone(store, from, opts, id, c.turn, err);
    if (rc == 0)
        *n = (int64_t)c.turn->n_rows;
    rv_turn_free(c.turn);
    return rc;
}

/* In a group. What is copied is read in plain, so that it is encrypted once. */
static int clone_in(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_clone *opts,
                    const char *id, int64_t *n, rv_err **err)
{
    struct rv_session_row row = {0};
    const bool reveals = rv_store_reveal(store, true);
    int rc = rv_store_get_session(store, scope, opts->session, &row, err);

    rv_store_reveal(store, reveals);
    if (rc == 0)
        rc = clone_of(store, &row, opts, id, n, err);
    rv_session_row_fini(&row);
    return rc;
}

int rv_app_clone_session(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_clone *opts, char *id,
                         int64_t *n_messages, rv_err **err)
{
    char made[RV_UUID_MAX];
    int rc;

    if (opts->max_messages < 0)
        return RV_FAIL(err, RV_E_INVALID, "%lld messages to copy", (long long)opts->max_messages);
    if (opts->user && scope->user && strcmp(opts->user, scope->user) != 0)
        return RV_FAIL(err, RV_E_DENIED, "only an operator copies a session for another user");
    if (opts->id && strlen(opts->id) > RV_STORE_MAX_ID)
        return RV_FAIL(err, RV_E_INVALID, "a session's id has at most %d bytes", RV_STORE_MAX_ID);
    rv_uuid_make(opts->rand, made);
    const char *wanted = opts->id ? opts->id : made;
    do {
        rc = rv_store_begin(store, err);
        if (rc == 0)
            rc = rv_store_end(store, clone_in(store, scope, opts, wanted, n_messages, err), err);
    } while (rc < 0 && rv_store_wait_again(store, err));
    if (rc == 0)
        memcpy(id, wanted, strlen(wanted) + 1);
    return rc;
}
