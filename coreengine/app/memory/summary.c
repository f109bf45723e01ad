/* The summary of a chunk by an agent: what the agent is told, and where its words go. The chunk has a summary from the
 * beginning, made of the answers; the agent's takes its place. A message of the chunk that is deleted meanwhile is not
 * in any summary: what the agent was told is compared with what the session says when the summary is written. */
#include "coreengine/app/memory.h"

#include "coreengine/base/base.h"
#include "coreengine/conversation/conversation.h"

#include <stdlib.h>
#include <string.h>

#define MAX_POINTS ((size_t)96000)   /* code points of all messages: some 24,000 tokens */
#define MIN_POINTS ((size_t)200)     /* of each message, however many there are */
#define MAX_TEXT   ((size_t)4 << 20) /* bytes of the messages that one summary is made of: a model's context */

/* --- a chunk --- */

struct chunk {
    json_object *row;    /* owned */
    const char *session; /* of the row */
    int64_t from_seq, through_seq;
};

static int read_chunk(rv_store *store, const struct rv_store_scope *scope, const char *moment, struct chunk *c,
                      rv_err **err)
{
    const char *type = "";
    const bool reveals = rv_store_reveal(store, true); /* which messages it covers is in its metadata */
    int rc = rv_store_get_entity(store, scope, "moments", moment, &c->row, err);

    rv_store_reveal(store, reveals);
    if (rc < 0)
        return rc;
    json_object *metadata = rv_json_get_obj(c->row, "metadata");
    if (!rv_json_get_text(c->row, "moment_type", &type) || strcmp(type, RV_CHUNK_TYPE) != 0 ||
        !rv_json_get_text(c->row, "source_session_id", &c->session) || !metadata ||
        !rv_json_get_int(metadata, "from_seq", &c->from_seq) ||
        !rv_json_get_int(metadata, "through_seq", &c->through_seq) || c->from_seq < 1)
        return RV_FAIL(err, RV_E_NOT_FOUND, "moment \"%.80s\" is not a chunk of a session", moment);
    return 0;
}

/* --- what an agent is told about a chunk --- */

struct telling {
    size_t n;    /* messages with words */
    size_t each; /* code points that each may take; 0: they are counted */
    size_t points;
    rv_buf *out;
};

static int tell(void *self, const struct rv_message *m, rv_err **err)
{
    struct telling *t = self;
    int type = rv_message_type_of(rv_str_of(m->type));

    (void)err;
    if (!m->has_content || rv_str_trim(m->content).len == 0 ||
        (type != RV_MESSAGE_USER && type != RV_MESSAGE_ASSISTANT && type != RV_MESSAGE_OBSERVATION))
        return 0;
    t->n++;
    t->points += rv_utf8_count(m->content);
    if (t->each == 0)
        return 0;
    if (t->n * MIN_POINTS > MAX_POINTS) /* a chunk of hundreds of messages: its end is left out */
        return RV_STORE_ENOUGH;
    rv_buf_printf(t->out,
                  "%s: ", type == RV_MESSAGE_ASSISTANT && m->agent_name && m->agent_name[0] ? m->agent_name : m->type);
    if (!rv_message_compress(m->content, NULL, t->each / 2, t->out))
        rv_buf_add_str(t->out, m->content);
    rv_buf_putc(t->out, '\n');
    return rv_buf_check(t->out, "the text of a chunk", err);
}

static int walk(rv_store *store, const struct rv_store_scope *scope, const struct chunk *c, struct telling *t,
                rv_err **err)
{
    const struct rv_message_filter range = {.from_seq = c->from_seq, .upto_seq = c->through_seq, .for_agents = true};

    return rv_store_read_messages(store, scope, &(const struct rv_messages_of){c->session, &range}, tell, t, err);
}

/* Of long messages both ends, so that all of them fit. */
static int write_text(rv_store *store, const struct rv_store_scope *scope, const struct chunk *c, rv_buf *out,
                      rv_err **err)
{
    struct telling all = {.out = out};
    int rc = walk(store, scope, c, &all, err);

    if (rc < 0 || all.n == 0)
        return rc;
    struct telling t = {.out = out, .each = all.points <= MAX_POINTS ? MAX_POINTS : MAX_POINTS / all.n};
    t.each = t.each < MIN_POINTS ? MIN_POINTS : t.each;
    return walk(store, scope, c, &t, err);
}

int rv_app_read_chunk(rv_store *store, const struct rv_store_scope *scope, const char *moment, rv_buf *out,
                      char hash[RV_HASH_MAX], rv_err **err)
{
    struct chunk c = {.row = NULL};
    int rc = read_chunk(store, scope, moment, &c, err);

    if (rc == 0)
        rc = write_text(store, scope, &c, out, err);
    if (rc == 0)
        rc = rv_buf_check(out, "the text of a chunk", err);
    if (rc == 0)
        rv_hash_format(rv_buf_str(out), hash);
    json_object_put(c.row);
    return rc;
}

/* --- where its words go --- */

static int change_moment(rv_store *store, const struct rv_store_scope *scope, const struct chunk *c,
                         const struct rv_app_summary *opts, rv_str summary, rv_err **err)
{
    json_object *metadata = NULL, *change = json_object_new_object(), *id = NULL;
    int rc = change ? rv_json_dup(rv_json_get_obj(c->row, "metadata"), &metadata, err)
                    : RV_FAIL(err, RV_E_NOMEM, "change a chunk");

    if (rc == 0)
        rc = rv_json_set_text(metadata, "summariser", opts->agent, err);
    if (rc == 0)
        rc = rv_json_set_text(metadata, "summary_run", opts->run, err);
    if (rc == 0 && json_object_object_get_ex(c->row, "id", &id))
        rc = rv_json_set_ref(change, "id", id, err);
    if (rc == 0)
        rc = rv_json_set_str(change, "summary", summary, err);
    if (rc == 0)
        rc = rv_json_set_ref(change, "metadata", metadata, err);
    const struct rv_entities_put put = {.kind = "moments", .rows = &change, .n_rows = 1, .now_us = opts->now_us};
    if (rc == 0)
        rc = rv_store_put_entities(store, scope, &put, NULL, err);
    json_object_put(metadata);
    json_object_put(change);
    return rc;
}

/* A session tells the summary of its newest moment. */
static int change_session(rv_store *store, const struct rv_store_scope *scope, const struct chunk *c,
                          const struct rv_app_summary *opts, rv_str summary, rv_err **err)
{
    struct rv_session_row session = {.id = NULL};
    json_object *metadata = NULL, *patch = json_object_new_object();
    const char *latest = "";
    int rc = patch ? rv_store_get_session(store, scope, c->session, &session, err)
                   : RV_FAIL(err, RV_E_NOMEM, "change a session");

    if (rc == 0)
        rc = rv_json_parse(session.metadata, NULL, &metadata, err);
    if (rc == 0 && (!rv_json_get_text(metadata, "latest_moment_id", &latest) || strcmp(latest, opts->moment) != 0))
        goto done;
    if (rc == 0)
        rc = rv_json_set_str(patch, "latest_summary", rv_utf8_first(summary, RV_CHUNK_MAX_LATEST), err);
    const struct rv_session_change change = {.metadata = patch, .now_us = opts->now_us};
    if (rc == 0)
        rc = rv_store_change_session(store, scope, c->session, &change, err);
done:
    rv_session_row_fini(&session);
    json_object_put(metadata);
    json_object_put(patch);
    return rc;
}

static int check_told(rv_store *store, const struct rv_store_scope *scope, const struct chunk *c,
                      const struct rv_app_summary *opts, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    char hash[RV_HASH_MAX] = "";
    int rc = write_text(store, scope, c, &text, err);

    if (rc == 0)
        rc = rv_buf_check(&text, "the text of a chunk", err);
    if (rc == 0)
        rv_hash_format(rv_buf_str(&text), hash);
    if (rc == 0 && strcmp(hash, opts->hash) != 0)
        rc = RV_FAIL(err, RV_E_STATE, "the messages of the chunk are not those that the agent was told");
    rv_buf_fini(&text);
    return rc;
}

int rv_app_put_summary(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_summary *opts,
                       rv_str words, rv_err **err)
{
    rv_str summary = rv_utf8_first(rv_str_trim(words), RV_CHUNK_MAX_SUMMARY);
    struct chunk c = {.row = NULL};
    int rc = read_chunk(store, scope, opts->moment, &c, err);

    if (rc == 0)
        rc = check_told(store, scope, &c, opts, err);
    if (rc == 0)
        rc = change_moment(store, scope, &c, opts, summary, err);
    if (rc == 0)
        rc = change_session(store, scope, &c, opts, summary, err);
    json_object_put(c.row);
    return rc;
}
