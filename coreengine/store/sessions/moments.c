/* Chunks of sessions: when one is due, what it covers, and its row with the session's watermark in one transaction; and
 * what of a session's moments its next turn is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/entities/entities_internal.h"
#include "coreengine/store/queue/queue_internal.h"
#include "coreengine/store/sessions.h"

#define FEW_HEX   6  /* digits that make a name unlike others of its time */
#define MANY_HEX  64 /* all of them, when a name with few is taken */
#define MAX_NOTED (RV_MOMENT_MAX_INJECT + RV_MOMENT_MAX_COVERS)

/* --- A chunk --- */

/* A session that has something to be remembered, and what is written then. */
struct building {
    struct rv_store_scope owner;
    struct rv_session_at at;
    int64_t total_tokens, n_messages;
    bool is_latest; /* for a chunk that is changed: the session shows its summary */
    struct rv_memory memory;
    rv_buf metadata; /* of the session, as it is; then as it will be */
    struct rv_chunk chunk;
    const char *summariser; /* borrowed; NULL: none */
    char previous[RV_CHUNK_NAME_MAX], name[RV_CHUNK_NAME_MAX];
    struct rv_entity_given given;
};

static void building_init(struct building *b)
{
    *b = (struct building){.metadata = RV_BUF_INIT(RV_STORE_MAX_META)};
    rv_chunk_init(&b->chunk);
}

static void building_fini(struct building *b)
{
    rv_buf_fini(&b->metadata);
    rv_chunk_fini(&b->chunk);
    entity_given_fini(&b->given);
}

static int take_session(struct building *b, const struct found_session *found, rv_err **err)
{
    const struct rv_session_row *row = &found->row;
    json_object *metadata = NULL;
    rv_err *cause = NULL;

    store_session_at(found, &b->at);
    b->owner = (struct rv_store_scope){b->at.tenant, b->at.user};
    b->total_tokens = row->total_tokens;
    b->n_messages = row->n_messages;
    rv_buf_add_str(&b->metadata, row->metadata);
    int rc = rv_json_parse(row->metadata, NULL, &metadata, &cause);
    if (rc == 0)
        rv_memory_read(metadata, &b->memory);
    json_object_put(metadata);
    if (rc == RV_E_NOMEM) {
        rv_err_pass(err, cause);
        return rc;
    }
    rv_err_free(cause); /* damaged metadata: as if nothing was remembered */
    return rv_buf_check(&b->metadata, "the metadata of a session", err);
}

static int add_message(void *self, const struct rv_message *m, rv_err **err)
{
    (void)err;
    rv_chunk_add(&((struct building *)self)->chunk, m);
    return 0;
}

/* A row of that kind and id that the session's owner has; *name: what it is called. 1: there is one. */
static int name_of(struct sql_store *st, const struct building *b, int64_t index, char name[RV_CHUNK_NAME_MAX],
                   rv_err **err)
{
    struct rv_entity_found found = {0};
    char id[RV_UUID_MAX];
    const char *text;
    rv_err *cause = NULL;

    name[0] = '\0';
    if (index < 0)
        return 0;
    rv_chunk_make_id(b->at.id, index, id);
    int rc = entity_see(st, &b->owner, rv_kind_find(RV_STR_LIT("moments")), id, &found, &cause);
    if (rc == 0 && strcmp(found.user, b->at.user) == 0 && rv_json_get_text(found.row, "name", &text))
        snprintf(name, RV_CHUNK_NAME_MAX, "%s", text);
    json_object_put(found.row);
    if (rc < 0 && rc != RV_E_NOT_FOUND) {
        rv_err_pass(err, cause);
        return rc;
    }
    rv_err_free(cause);
    return name[0] != '\0';
}

static int is_taken(struct sql_store *st, const struct building *b, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_NAMED_ENTITIES);

    store_sql_text(stmt, 1, b->at.tenant);
    store_sql_text(stmt, 2, "moments");
    store_sql_text(stmt, 3, b->name);
    store_sql_text(stmt, 4, b->at.user);
    int rc = sql_step(stmt, "look for a moment", err);
    sql_done(stmt);
    return rc;
}

/* A lookup of the name has to find this chunk: where another session has the short name, it is a long one. */
static int choose_name(struct sql_store *st, struct building *b, rv_err **err)
{
    int rc = name_of(st, b, b->memory.chunks, b->name, err);

    if (rc != 0)
        return rc < 0 ? rc : 0;
    rv_chunk_make_name(b->at.id, b->chunk.first_us, b->memory.chunks, FEW_HEX, b->name);
    rc = is_taken(st, b, err);
    if (rc == 1)
        rv_chunk_make_name(b->at.id, b->chunk.first_us, b->memory.chunks, MANY_HEX, b->name);
    return rc < 0 ? rc : 0;
}

static int make_row(struct building *b, rv_err **err)
{
    const struct rv_chunk_place at = {.session = b->at.id,
                                      .name = b->name,
                                      .previous = b->previous[0] ? b->previous : NULL,
                                      .index = b->memory.chunks,
                                      .summariser = b->summariser,
                                      .total_tokens = b->total_tokens};
    rv_buf merged = RV_BUF_INIT(RV_STORE_MAX_META);
    json_object *row = NULL, *metadata = NULL;

    int rc = rv_chunk_build_row(&b->chunk, &at, &row, &metadata, err);
    if (rc == 0)
        rc = store_merge(rv_buf_str(&b->metadata), metadata, NULL, 0, &merged, err);
    if (rc == 0)
        rc = rv_buf_check(&merged, "the metadata of a session", err);
    if (rc == 0)
        rc = entity_check(rv_kind_find(RV_STR_LIT("moments")), &b->owner, row, &b->given, err);
    rv_buf_fini(&b->metadata);
    b->metadata = merged;
    json_object_put(row);
    json_object_put(metadata);
    return rc;
}

/* Reads and checks; writes nothing. 1: there is a chunk to be written. */
static int prepare(struct sql_store *st, const struct rv_store_scope *scope, const char *session, int64_t threshold,
                   struct building *b, rv_err **err)
{
    struct found_session found;
    rv_sql_stmt *stmt = NULL;
    int rc = store_session_see(st, scope, session, &stmt, &found, err);

    if (rc == 0)
        rc = take_session(b, &found, err);
    sql_done(stmt);
    if (rc < 0 || !rv_memory_is_due(&b->memory, b->total_tokens, b->n_messages, threshold))
        return rc;
    const struct rv_message_filter fresh = {
        .from_seq = b->memory.through_seq + 1, .upto_seq = b->n_messages, .for_agents = true};
    rc = store_messages_walk(st, &b->at, &fresh, add_message, b, err);
    if (rc < 0 || b->chunk.n_messages == 0)
        return rc;
    b->chunk.through_seq = b->n_messages; /* with what was deleted, and what agents asked each other */
    rc = name_of(st, b, b->memory.chunks - 1, b->previous, err);
    if (rc >= 0)
        rc = choose_name(st, b, err);
    if (rc == 0)
        rc = make_row(b, err);
    return rc < 0 ? rc : 1;
}

static int write_chunk(struct sql_store *st, struct building *b, int64_t now_us, json_object *out, rv_err **err)
{
    int rc = entity_put(st, &b->owner, &b->given, now_us, out, err);

    if (rc < 0)
        return rc;
    const struct rv_place at = vault_session_place(b->at.tenant, b->at.user, b->at.id);
    rv_sql_stmt *stmt = sql_use(st, SQL_CHANGE_SESSION);
    sql_int(stmt, 1, b->at.key);
    store_sql_text(stmt, 2, NULL);
    store_sql_text(stmt, 3, NULL);
    store_secret_bind(stmt, 4, SQL_STR, &at, "metadata", rv_buf_str(&b->metadata));
    sql_int(stmt, 5, now_us);
    store_sql_text(stmt, 6, NULL);
    store_sql_text(stmt, 7, NULL);
    store_sql_text(stmt, 8, NULL);
    return sql_run(stmt, "write a session", err);
}

/* An agent is to write the summary of a chunk. Its task is part of the transaction that writes the chunk, and has
 * none of its words. Its id follows from the chunk and the time: a repeated transaction queues it once. */
static int queue_summary(struct sql_store *st, const struct building *b, const char *moment, const char *agent,
                         int64_t now_us, rv_err **err)
{
    rv_buf payload = RV_BUF_INIT(RV_TASK_MAX_JSON);
    rv_jw w = rv_jw_on(&payload);
    char id[RV_ID_MAX + RV_UUID_MAX];
    struct rv_enqueued done;

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "moment", moment);
    rv_jw_kv_text(&w, "agent", agent);
    rv_jw_obj_end(&w);
    snprintf(id, sizeof id, "task_%s_%llx", moment, (unsigned long long)now_us);
    const struct rv_new_task task = {.id = id,
                                     .tenant = b->at.tenant,
                                     .user = b->at.user,
                                     .type = RV_SUMMARY_TASK,
                                     .key = moment,
                                     .payload = rv_buf_str(&payload),
                                     .max_retries = RV_UNSET,
                                     .now_us = now_us};
    int rc = rv_buf_check(&payload, "payload", err);
    if (rc == 0)
        rc = store_task_check(&task, err);
    if (rc == 0)
        rc = store_task_enqueue(st, &task, &done, err);
    rv_buf_fini(&payload);
    return rc;
}

/* An error that is caused by the rows: the next turn would fail in the same way. */
static bool is_refusal(int rc)
{
    return rc == RV_E_INVALID || rc == RV_E_LIMIT || rc == RV_E_DENIED || rc == RV_E_EXISTS || rc == RV_E_NOT_FOUND;
}

int store_moments_after_turn(struct sql_store *st, const struct rv_store_scope *owner, const struct rv_turn *turn,
                             int64_t now_us, rv_err **err)
{
    struct building b;
    rv_err *cause = NULL;

    building_init(&b);
    b.summariser = turn->moment_summariser;
    int rc = prepare(st, owner, turn->session, turn->moment_token_threshold, &b, &cause);
    if (rc < 0 && is_refusal(rc)) { /* the turn is worth more than its memory */
        rv_err_free(cause);
        rc = 0;
    } else if (rc < 0) {
        rv_err_pass(err, cause);
    }
    if (rc == 1) {
        char moment[RV_UUID_MAX];
        rv_chunk_make_id(b.at.id, b.memory.chunks, moment);
        rc = write_chunk(st, &b, now_us, NULL, err);
        if (rc == 0 && b.summariser)
            rc = queue_summary(st, &b, moment, b.summariser, now_us, err);
    }
    building_fini(&b);
    return rc;
}

static int build(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_moment_build *what,
                 json_object *out, rv_err **err)
{
    struct building b;
    int rc = sql_begin_part(st, err);

    if (rc < 0)
        return rc;
    building_init(&b);
    rc = prepare(st, scope, what->session, what->threshold, &b, err);
    if (rc == 1)
        rc = write_chunk(st, &b, what->now_us, out, err);
    building_fini(&b);
    return sql_end_part(st, rc, err);
}

int rv_store_build_moment(rv_store *s, const struct rv_store_scope *scope, const struct rv_moment_build *what,
                          json_object **out, rv_err **err)
{
    struct rv_store_scope sc;
    json_object *rows = NULL;
    int rc = store_check_scoped(scope, "session id", what->session, &sc, err);

    *out = NULL;
    if (rc == 0)
        rc = store_check_time("the time", what->now_us, err);
    if (rc == 0 && what->threshold < 0)
        rc = RV_FAIL(err, RV_E_INVALID, "a threshold of %lld tokens", (long long)what->threshold);
    if ((rc = store_enter_write(s, rc, "build moment", err)) != 0)
        return rc;
    do {
        json_object_put(rows);
        rows = json_object_new_array();
        rc = rows ? build(s->sql, &sc, what, rows, err) : RV_FAIL(err, RV_E_NOMEM, "build a moment");
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && json_object_array_length(rows) > 0)
        *out = json_object_get(json_object_array_get_idx(rows, 0));
    json_object_put(rows);
    return rc;
}

/* --- What is deleted is not remembered --- */

struct keys {
    int64_t *list; /* owned */
    size_t n, cap;
};

static int list_chunks(struct sql_store *st, const struct rv_store_scope *owner, const char *session, struct keys *k,
                       rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_CHUNKS);
    int rc;

    store_sql_text(stmt, 1, owner->tenant);
    store_sql_text(stmt, 2, session);
    store_sql_text(stmt, 3, owner->user);
    while ((rc = sql_step(stmt, "look for chunks", err)) == 1) {
        if (!rv_has_room(&k->list, &k->cap, k->n + 1, sizeof *k->list)) {
            rc = RV_FAIL(err, RV_E_NOMEM, "look for chunks");
            break;
        }
        k->list[k->n++] = sql_int_at(stmt, 0);
    }
    sql_done(stmt);
    return rc;
}

static int drop_chunk(struct sql_store *st, int64_t key, int64_t now_us, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_DELETE_ENTITY);

    sql_int(stmt, 1, key);
    sql_int(stmt, 2, now_us);
    int rc = sql_run(stmt, "delete a chunk", err);
    return rc == 0 ? store_keys_drop(st, "moments", key, err) : rc;
}

/* The messages that a chunk covers. */
struct message_span {
    int64_t from, upto;
};
/* Its words without those of messages that are gone. */
static int say_anew(struct sql_store *st, struct building *b, json_object *row, const struct message_span *span,
                    int64_t now_us, rv_err **err)
{
    const struct rv_message_filter range = {.from_seq = span->from, .upto_seq = span->upto, .for_agents = true};
    rv_buf summary = RV_BUF_INIT(RV_STORE_MAX_META), merged = RV_BUF_INIT(RV_STORE_MAX_META);
    json_object *change = json_object_new_object(), *patch = json_object_new_object(), *id = NULL;
    const char *agent = NULL;
    int rc = change && patch ? store_messages_walk(st, &b->at, &range, add_message, b, err)
                             : RV_FAIL(err, RV_E_NOMEM, "change a chunk");

    rv_chunk_write_summary(&b->chunk, &summary);
    if (rc == 0)
        rc = rv_buf_check(&summary, "the summary of a moment", err);
    if (rc == 0 && json_object_object_get_ex(row, "id", &id))
        rc = rv_json_set_ref(change, "id", id, err);
    if (rc == 0)
        rc = rv_json_set_str(change, "summary", rv_buf_str(&summary), err);
    if (rc == 0)
        rc = entity_check(rv_kind_find(RV_STR_LIT("moments")), &b->owner, change, &b->given, err);
    if (rc == 0 && b->is_latest)
        rc = rv_json_set_str(patch, "latest_summary", rv_utf8_first(rv_buf_str(&summary), RV_CHUNK_MAX_LATEST), err);
    if (rc == 0)
        rc = store_merge(rv_buf_str(&b->metadata), patch, NULL, 0, &merged, err);
    rv_buf_fini(&b->metadata);
    b->metadata = merged;
    if (rc == 0)
        rc = write_chunk(st, b, now_us, NULL, err);
    if (rc == 0 && id && rv_json_get_text(rv_json_get_obj(row, "metadata"), "summariser", &agent))
        rc = queue_summary(st, b, json_object_get_string(id), agent, now_us, err);
    json_object_put(change);
    json_object_put(patch);
    rv_buf_fini(&summary);
    return rc;
}

static int forget_message(struct sql_store *st, const struct found_session *session, int64_t key, int64_t seq,
                          int64_t now_us, rv_err **err)
{
    struct building b;
    json_object *row = NULL, *metadata;
    int64_t from = 0, upto = 0;
    const bool reveals = st->reveals;

    st->reveals = true; /* which messages it covers is in its metadata */
    int rc = entity_at(st, rv_kind_find(RV_STR_LIT("moments")), key, &row, err);
    st->reveals = reveals;
    building_init(&b);
    metadata = rc == 0 ? rv_json_get_obj(row, "metadata") : NULL;
    if (metadata && rv_json_get_int(metadata, "from_seq", &from) && rv_json_get_int(metadata, "through_seq", &upto) &&
        from > 0 && from <= seq && seq <= upto) {
        rc = take_session(&b, session, err);
        b.is_latest = upto == b.memory.through_seq;
        if (rc == 0)
            rc = say_anew(st, &b, row, &(const struct message_span){.from = from, .upto = upto}, now_us, err);
    }
    building_fini(&b);
    json_object_put(row);
    return rc;
}

int store_moments_forget(struct sql_store *st, const struct found_session *found, int64_t seq, int64_t now_us,
                         rv_err **err)
{
    const struct rv_store_scope owner = {found->row.tenant, found->row.user};
    struct keys k = {0};
    int rc = list_chunks(st, &owner, found->row.id, &k, err);

    for (size_t i = 0; i < k.n && rc == 0; i++)
        rc = seq == 0 ? drop_chunk(st, k.list[i], now_us, err) : forget_message(st, found, k.list[i], seq, now_us, err);
    free(k.list);
    return rc;
}

/* --- What a turn is told --- */

struct noting {
    const char *user;
    json_object *rows[MAX_NOTED]; /* owned */
    size_t n;
    size_t max_injected;
    int64_t uncovered; /* tokens that a history may show beyond the chunks so far; RV_UNSET: any number */
};

static int64_t tokens_of(json_object *row)
{
    json_object *metadata = rv_json_get_obj(row, "metadata");
    int64_t n = 0;

    return metadata && rv_json_get_int(metadata, "token_count", &n) && n > 0 ? n : 0;
}

static int note(void *self, json_object *row, rv_err **err)
{
    struct noting *n = self;
    const char *type = "";
    bool is_chunk = rv_json_get_text(row, "moment_type", &type) && strcmp(type, RV_CHUNK_TYPE) == 0;

    (void)err;
    const char *user = rv_json_text_or(row, "user_id", "");
    if (strcmp(user, n->user) != 0) /* sessions of other owners may have the same id */
        return 0;
    if (n->n >= n->max_injected && n->uncovered == 0)
        return RV_STORE_ENOUGH;
    if (n->n >= n->max_injected && !is_chunk)
        return 0;
    n->rows[n->n++] = json_object_get(row);
    if (is_chunk && n->uncovered > 0)
        n->uncovered = tokens_of(row) < n->uncovered ? n->uncovered - tokens_of(row) : 0;
    return n->n == MAX_NOTED ? RV_STORE_ENOUGH : 0;
}

int rv_store_note_moments(rv_store *s, const struct rv_store_scope *scope, const char *session,
                          const struct rv_moment_notes *want, json_object **out, rv_err **err)
{
    const struct rv_entity_filter filter = {.about = session, .limit = RV_ENTITY_MAX_FIND};
    struct noting n = {.user = scope->user ? scope->user : "",
                       .max_injected = (size_t)want->opts->max_inject,
                       .uncovered = want->covers_tokens};

    const bool reveals = s->sql->reveals;

    *out = NULL;
    int rc = rv_moment_opts_check(want->opts, err);
    s->sql->reveals = true;
    if (rc == 0 && want->opts->max_inject > 0)
        rc = rv_store_find_entities(s, scope, &(const struct rv_entities_of){"moments", &filter}, note, &n, err);
    s->sql->reveals = reveals;
    if (rc == 0)
        rc = rv_moments_note(n.rows, n.n, want->opts, want->covers_tokens != 0, out, err);
    for (size_t i = 0; i < n.n; i++)
        json_object_put(n.rows[i]);
    return rc;
}
