/* A chunk of a session: which messages it covers, its summary, its name and id, and its row as a moment. */
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/conversation/conversation.h"
#include "coreengine/conversation/messages_internal.h"

#define GLUE        "\n...\n"      /* where the middle of a long text is left out */
#define HEAD_POINTS ((size_t)1000) /* code points of a summary's beginning that are kept */
/* code points of its end, with what joins the two */
#define TAIL_POINTS (RV_CHUNK_MAX_SUMMARY - HEAD_POINTS - (sizeof GLUE - 1))
#define MAX_BYTES   ((size_t)64 << 10) /* of a part that is kept: RV_CHUNK_MAX_SUMMARY points have at most 8,000 */

/* --- the watermark --- */

void rv_memory_read(json_object *metadata, struct rv_memory *out)
{
    json_object *m = metadata ? rv_json_get_obj(metadata, RV_MEMORY_MEMBER) : NULL;
    struct {
        const char *name;
        int64_t *n;
    } members[] = {{"chunks", &out->chunks}, {"through_seq", &out->through_seq}, {"tokens", &out->tokens}};

    *out = (struct rv_memory){0};
    for (size_t i = 0; m && i < RV_COUNT(members); i++)
        if (!rv_json_get_int(m, members[i].name, members[i].n) || *members[i].n < 0)
            *members[i].n = 0;
}

bool rv_memory_is_due(const struct rv_memory *m, int64_t total_tokens, int64_t n_messages, int64_t threshold)
{
    return n_messages > m->through_seq && total_tokens - m->tokens >= threshold;
}

/* --- what it covers --- */

void rv_chunk_init(struct rv_chunk *c)
{
    *c = (struct rv_chunk){.head = RV_BUF_INIT(MAX_BYTES), .tail = RV_BUF_INIT(MAX_BYTES)};
}

void rv_chunk_fini(struct rv_chunk *c)
{
    rv_buf_fini(&c->head);
    rv_buf_fini(&c->tail);
}

static rv_str last_points(rv_str text, size_t n)
{
    size_t points = rv_utf8_count(text);

    if (points <= n)
        return text;
    rv_str before = rv_utf8_first(text, points - n);
    return (rv_str){text.ptr + before.len, text.len - before.len};
}

/* The newest code points of the text so far and of this one. */
static void keep_tail(struct rv_chunk *c, rv_str text)
{
    rv_buf kept = RV_BUF_INIT(MAX_BYTES);

    text = last_points(text, TAIL_POINTS);
    if (rv_utf8_count(text) < TAIL_POINTS)
        rv_buf_add_str(&kept, last_points(rv_buf_str(&c->tail), TAIL_POINTS - rv_utf8_count(text)));
    rv_buf_add_str(&kept, text);
    rv_buf_fini(&c->tail);
    c->tail = kept;
}

static void add_words(struct rv_chunk *c, rv_str text)
{
    size_t points = rv_utf8_count(text);

    if (c->points < RV_CHUNK_MAX_SUMMARY)
        rv_buf_add_str(&c->head, rv_utf8_first(text, RV_CHUNK_MAX_SUMMARY - c->points));
    keep_tail(c, text);
    c->points += points;
}

void rv_chunk_add(struct rv_chunk *c, const struct rv_message *m)
{
    rv_buf room = RV_BUF_INIT(SIZE_MAX / 2);
    bool is_first = c->n_messages == 0;

    c->n_messages++;
    c->tokens += m->token_count >= 0 ? m->token_count : rv_tokens_estimate(m->content);
    c->from_seq = is_first ? m->seq : c->from_seq;
    c->through_seq = m->seq;
    c->first_us = is_first || m->created_us < c->first_us ? m->created_us : c->first_us;
    c->last_us = is_first || m->created_us > c->last_us ? m->created_us : c->last_us;
    if (!m->type || rv_message_type_of(rv_str_of(m->type)) != RV_MESSAGE_ASSISTANT || !m->has_content ||
        conversation_message_is_blank(m->content))
        return;
    if (c->points > 0)
        add_words(c, RV_STR_LIT("\n"));
    add_words(c, conversation_message_clean(m->content, &room));
    if (room.rc < 0)
        c->head.rc = room.rc;
    rv_buf_fini(&room);
}

void rv_chunk_write_summary(const struct rv_chunk *c, rv_buf *out)
{
    if (c->points <= RV_CHUNK_MAX_SUMMARY) {
        rv_buf_add_str(out, rv_buf_str(&c->head));
        return;
    }
    rv_buf_add_str(out, rv_utf8_first(rv_buf_str(&c->head), HEAD_POINTS));
    rv_buf_puts(out, GLUE);
    rv_buf_add_str(out, rv_buf_str(&c->tail));
}

/* --- its names --- */

static char *append(char *out, const char *text, size_t n)
{
    memcpy(out, text, n);
    return out + n;
}

/* index: from 0. */
static const char *write_number(int64_t index, char room[24])
{
    char *digit = room + 23;

    *digit = '\0';
    do
        *--digit = (char)('0' + index % 10);
    while (index /= 10);
    return digit;
}

void rv_chunk_make_name(const char *session, int64_t first_us, int64_t index, int hex, char out[RV_CHUNK_NAME_MAX])
{
    char hash[RV_HASH_MAX], day[RV_TIME_MAX], room[24];
    const char *number = write_number(index, room);

    rv_hash_format(rv_str_of(session), hash);
    rv_time_format(first_us, day);
    out = append(out, "session-", 8);
    out = append(out, hash, (size_t)hex);
    out = append(out, "-", 1);
    out = append(out, day, 4);
    out = append(out, day + 5, 2);
    out = append(out, day + 8, 2);
    out = append(out, "-chunk-", 7);
    append(out, number, strlen(number) + 1);
}

void rv_chunk_make_id(const char *session, int64_t index, char out[RV_UUID_MAX])
{
    char room[24];
    const rv_str key[] = {RV_STR_LIT("session-"), rv_str_of(session), RV_STR_LIT("-chunk-"),
                          rv_str_of(write_number(index, room))};

    rv_entity_make_id_joined("moments", key, RV_COUNT(key), NULL, out);
}

/* --- its row --- */

static int set_time(json_object *row, const char *key, int64_t us, rv_err **err)
{
    char text[RV_TIME_MAX];

    rv_time_format(us, text);
    return rv_json_set_text(row, key, text, err);
}

static int add_metadata(const struct rv_chunk *c, const struct rv_chunk_place *at, json_object *row, rv_err **err)
{
    const struct {
        const char *name;
        int64_t n;
    } members[] = {{"message_count", c->n_messages},
                   {"token_count", c->tokens},
                   {"chunk_index", at->index},
                   {"from_seq", c->from_seq},
                   {"through_seq", c->through_seq}};
    int rc = rv_json_set_take(row, "metadata", json_object_new_object(), err);
    json_object *metadata = rc == 0 ? rv_json_get_obj(row, "metadata") : NULL;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(members); i++)
        rc = rv_json_set_int(metadata, members[i].name, members[i].n, err);
    if (rc == 0 && at->summariser)
        rc = rv_json_set_text(metadata, "summariser", at->summariser, err);
    return rc;
}

static int add_previous(const struct rv_chunk_place *at, json_object *row, rv_err **err)
{
    int rc = rv_json_set_take(row, "previous_moment_keys", json_object_new_array(), err);

    return rc == 0 && at->previous ? rv_json_push_take(rv_json_get_arr(row, "previous_moment_keys"),
                                                       json_object_new_string(at->previous), err)
                                   : rc;
}

static int fill_row(const struct rv_chunk *c, const struct rv_chunk_place *at, rv_str summary, json_object *row,
                    rv_err **err)
{
    char id[RV_UUID_MAX];
    int rc;

    rv_chunk_make_id(at->session, at->index, id);
    rc = rv_json_set_text(row, "id", id, err);
    if (rc == 0)
        rc = rv_json_set_text(row, "name", at->name, err);
    if (rc == 0)
        rc = rv_json_set_text(row, "moment_type", RV_CHUNK_TYPE, err);
    if (rc == 0)
        rc = rv_json_set_str(row, "summary", summary, err);
    if (rc == 0)
        rc = set_time(row, "starts_timestamp", c->first_us, err);
    if (rc == 0)
        rc = set_time(row, "ends_timestamp", c->last_us, err);
    if (rc == 0)
        rc = rv_json_set_text(row, "source_session_id", at->session, err);
    if (rc == 0)
        rc = add_previous(at, row, err);
    return rc == 0 ? add_metadata(c, at, row, err) : rc;
}

static int fill_session(const struct rv_chunk *c, const struct rv_chunk_place *at, rv_str summary, json_object *to,
                        rv_err **err)
{
    char id[RV_UUID_MAX];
    json_object *memory;
    int rc;

    rv_chunk_make_id(at->session, at->index, id);
    rc = rv_json_set_text(to, "latest_moment_id", id, err);
    if (rc == 0)
        rc = rv_json_set_str(to, "latest_summary", rv_utf8_first(summary, RV_CHUNK_MAX_LATEST), err);
    if (rc == 0)
        rc = rv_json_set_int(to, "moment_count", at->index + 1, err);
    if (rc == 0)
        rc = rv_json_set_take(to, RV_MEMORY_MEMBER, json_object_new_object(), err);
    memory = rc == 0 ? rv_json_get_obj(to, RV_MEMORY_MEMBER) : NULL;
    if (rc == 0)
        rc = rv_json_set_int(memory, "chunks", at->index + 1, err);
    if (rc == 0)
        rc = rv_json_set_int(memory, "through_seq", c->through_seq, err);
    return rc == 0 ? rv_json_set_int(memory, "tokens", at->total_tokens, err) : rc;
}

int rv_chunk_build_row(const struct rv_chunk *c, const struct rv_chunk_place *at, json_object **row,
                       json_object **metadata, rv_err **err)
{
    json_object *moment = json_object_new_object(), *session = json_object_new_object();
    rv_buf summary = RV_BUF_INIT(2 * MAX_BYTES);
    int rc = moment && session ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a moment");

    rv_chunk_write_summary(c, &summary);
    if (rc == 0)
        rc = rv_buf_check(&c->head, "the summary of a moment", err);
    if (rc == 0)
        rc = rv_buf_check(&c->tail, "the summary of a moment", err);
    if (rc == 0)
        rc = rv_buf_check(&summary, "the summary of a moment", err);
    if (rc == 0)
        rc = fill_row(c, at, rv_buf_str(&summary), moment, err);
    if (rc == 0)
        rc = fill_session(c, at, rv_buf_str(&summary), session, err);
    rv_buf_fini(&summary);
    if (rc < 0) {
        json_object_put(moment);
        json_object_put(session);
        return rc;
    }
    *row = moment;
    *metadata = session;
    return 0;
}
