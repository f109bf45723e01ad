/* Messages in memory: each session has its own, in order, and a table of their ids. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/memory_internal.h"

#define FIRST_MESSAGES 8

void rv_mem_drop_messages(struct mem_session *s, int64_t from)
{
    for (int64_t i = from; i < s->state.n_messages; i++) {
        rv_mem_table_remove(&s->ids, &s->messages[i]->node);
        free(s->messages[i]->own);
        free(s->messages[i]);
    }
    if (from < s->state.n_messages)
        s->state.n_messages = from;
}

static int reserve(struct mem_session *s)
{
    size_t cap = s->cap ? s->cap * 2 : FIRST_MESSAGES;
    struct mem_message **messages;

    if ((size_t)s->state.n_messages < s->cap)
        return 0;
    messages = realloc(s->messages, cap * sizeof *messages);
    if (!messages)
        return RV_E_NOMEM;
    s->messages = messages;
    s->cap = cap;
    return 0;
}

static struct mem_message *new_message(const struct rv_message *row)
{
    struct mem_message *m = calloc(1, sizeof *m);
    struct rv_message *r = m ? &m->row : NULL;

    if (!m)
        return NULL;
    *r = *row;
    const struct rv_row_texts texts = {.texts = {&r->id, &r->type, &r->agent_name, &r->model, &r->trace_id, &r->span_id,
                                                 &r->run_id, &r->status, &r->parent_call_id},
                                       .n_texts = 9,
                                       .strs = {&r->content, &r->tool_calls, &r->metadata},
                                       .n_strs = 3};
    m->own = rv_store_pack(&texts);
    if (!m->own) {
        free(m);
        return NULL;
    }
    return m;
}

/* The session was touched. */
static int add_message(struct mem_session *s, const struct rv_message *row, rv_err **err)
{
    struct mem_message *m;

    if (rv_mem_table_find(&s->ids, row->id))
        return 0;
    if (reserve(s) < 0 || rv_mem_table_reserve(&s->ids) < 0 || !(m = new_message(row)))
        return RV_FAIL(err, RV_E_NOMEM, "keep message \"%s\"", row->id);
    rv_mem_table_add(&s->ids, &m->node, m->row.id);
    s->messages[s->state.n_messages++] = m;
    m->row.seq = s->state.n_messages;
    s->state.total_tokens += row->parent_call_id ? 0 : row->token_count;
    return 0;
}

/* run: what rows that do not say so belong to; NULL: none. */
static int keep_turn(struct mem_store *m, struct mem_session *s, const struct rv_turn *turn, const char *run,
                     int64_t now_us, rv_err **err)
{
    int rc = rv_mem_touch_session(m, s, err);

    if (rc == 0 && turn->metadata)
        rc = rv_mem_merge(s, turn->metadata, NULL, 0, err);
    if (rc == 0 && turn->name)
        rc = rv_mem_set_text(&s->state.name, rv_str_of(turn->name), err);
    for (size_t i = 0; i < turn->n_rows && rc == 0; i++) {
        struct rv_message row = rv_store_message_of(&turn->rows[i], run, now_us);
        rc = add_message(s, &row, err);
    }
    if (rc == 0)
        s->state.updated_us = now_us;
    return rc;
}

int rv_mem_keep_turns(struct mem_store *m, const struct mem_run *run, const struct rv_store_append *a, rv_err **err)
{
    const struct rv_store_scope owner = {run->tenant, run->user};
    int rc = 0;

    for (size_t i = 0; i < a->n_turns && rc == 0; i++) {
        const struct rv_turn *turn = &a->turns[i];
        struct mem_session *s = rv_mem_see_session(m, &owner, turn->session);
        if (!s && rv_mem_see_deleted_session(m, &owner, turn->session))
            continue;
        if (!s) {
            char name[RV_STORE_NAME_ROOM];
            struct rv_session_row fresh = rv_store_session_of(turn, &owner, a->now_us, name);
            rc = rv_mem_make_session(m, &fresh, &s, err);
        }
        if (rc == 0)
            rc = keep_turn(m, s, turn, a->run, a->now_us, err);
    }
    return rc;
}

int rv_mem_add_messages(void *self, const struct rv_store_scope *scope, const struct rv_turn *turn, int64_t now_us,
                        rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    struct mem_session *s = rv_mem_see_session(m, scope, turn->session);

    if (!s)
        return rv_mem_fail_unseen_session(m, scope, turn->session, err);
    return rv_mem_end(m, mark, keep_turn(m, s, turn, NULL, now_us, err));
}

int rv_mem_read_messages(void *self, const struct rv_store_scope *scope, const char *session,
                         const struct rv_message_filter *f, rv_each_message *each, void *ctx, rv_err **err)
{
    const struct mem_session *s = rv_mem_see_session(self, scope, session);
    int64_t first, last, n = 0;
    int rc = 0;

    if (!s && f->with_deleted)
        s = rv_mem_see_deleted_session(self, scope, session);
    if (!s)
        return rv_mem_fail_unseen_session(self, scope, session, err);
    first = f->from_seq < 1 ? 1 : f->from_seq;
    last = f->upto_seq < s->state.n_messages ? f->upto_seq : s->state.n_messages;
    for (int64_t i = 0; i <= last - first && rc == 0 && (f->limit == 0 || n < f->limit); i++) {
        const struct rv_message *row = &s->messages[(f->newest_first ? last - i : first + i) - 1]->row;
        int64_t gone_us = s->messages[row->seq - 1]->deleted_us;
        if ((row->parent_call_id && !f->with_children) || (gone_us && (!f->with_deleted || gone_us <= f->told_us)))
            continue;
        n++;
        rc = each(ctx, row, err);
    }
    return rc;
}

int rv_mem_delete_message(void *self, const struct rv_store_scope *scope, const char *session, int64_t seq,
                          int64_t now_us, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    const struct mem_session *s = rv_mem_see_session(m, scope, session);

    if (!s)
        return rv_mem_fail_unseen_session(m, scope, session, err);
    if (seq < 1 || seq > s->state.n_messages || s->messages[seq - 1]->deleted_us)
        return rv_store_fail_no_message(session, seq, err);
    int rc = rv_mem_note(m, MEM_UNDO_MESSAGE, NULL, NULL, err);
    if (rc == 0) {
        m->undo->message = s->messages[seq - 1];
        m->undo->message->deleted_us = now_us > 0 ? now_us : 1;
    }
    return rv_mem_end(m, mark, rc);
}

void rv_mem_drop_words(struct mem_session *s)
{
    for (int64_t i = 0; i < s->state.n_messages; i++) {
        struct rv_message *row = &s->messages[i]->row;
        if (s->messages[i]->deleted_us) {
            row->has_content = false;
            row->content = row->tool_calls = row->metadata = (rv_str){NULL, 0};
        }
    }
}
