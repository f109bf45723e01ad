/* Sessions in memory. As with runs, what changes is one state; here it is changed in place once the log has the old. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/memory_internal.h"

static struct rv_session_row row_of(const struct mem_session *s)
{
    struct rv_session_row row = s->head;

    row.name = s->state.name->text;
    row.mode = s->state.mode->text;
    row.metadata = (rv_str){s->state.metadata->text, s->state.metadata->len};
    row.total_tokens = s->state.total_tokens;
    row.n_messages = s->state.n_messages;
    row.updated_us = s->state.updated_us;
    row.status = rv_session_status_text(s->state.status);
    row.own = NULL;
    return row;
}

static bool is_seen(const struct rv_store_scope *scope, const struct mem_session *s)
{
    return !s->state.is_deleted && rv_store_sees_session(scope, &s->head);
}

/* NULL also when it could be several users'. */
static struct mem_session *find(const struct mem_store *m, const struct rv_store_scope *scope, const char *id,
                                bool is_deleted, size_t *n)
{
    struct mem_session *found = NULL;

    *n = 0;
    for (struct mem_node *node = rv_mem_table_find(&m->sessions, id); node; node = rv_mem_table_next(node)) {
        struct mem_session *s = (struct mem_session *)(void *)node;
        if (s->state.is_deleted != is_deleted || !rv_store_sees_session(scope, &s->head))
            continue;
        found = s;
        (*n)++;
    }
    return *n == 1 ? found : NULL;
}

struct mem_session *rv_mem_see_session(struct mem_store *m, const struct rv_store_scope *scope, const char *id)
{
    size_t n;
    return find(m, scope, id, false, &n);
}

struct mem_session *rv_mem_see_deleted_session(struct mem_store *m, const struct rv_store_scope *scope, const char *id)
{
    size_t n;
    return find(m, scope, id, true, &n);
}

int rv_mem_fail_unseen_session(const struct mem_store *m, const struct rv_store_scope *scope, const char *id,
                               rv_err **err)
{
    size_t n;

    find(m, scope, id, false, &n);
    return n > 1 ? rv_store_fail_ambiguous_session(id, err) : rv_store_fail_no_session(id, err);
}

void rv_mem_session_state_fini(struct mem_session_state *st)
{
    rv_mem_text_unref(st->name);
    rv_mem_text_unref(st->mode);
    rv_mem_text_unref(st->metadata);
    *st = (struct mem_session_state){0};
}

static void free_session(struct mem_session *s)
{
    if (!s)
        return;
    rv_mem_drop_messages(s, 0);
    free(s->messages);
    free(s->ids.buckets);
    rv_mem_session_state_fini(&s->state);
    rv_session_row_fini(&s->head);
    free(s);
}

static void link_session(struct mem_store *m, struct mem_session *s)
{
    rv_mem_table_add(&m->sessions, &s->node, s->head.id);
    s->next = m->first_session;
    if (m->first_session)
        m->first_session->prev = s;
    m->first_session = s;
}

static void unlink_session(struct mem_store *m, struct mem_session *s)
{
    rv_mem_table_remove(&m->sessions, &s->node);
    if (s->next)
        s->next->prev = s->prev;
    if (s->prev)
        s->prev->next = s->next;
    else
        m->first_session = s->next;
}

void rv_mem_sessions_free(struct mem_store *m)
{
    while (m->first_session) {
        struct mem_session *s = m->first_session;
        unlink_session(m, s);
        free_session(s);
    }
    free(m->sessions.buckets);
}

int rv_mem_make_session(struct mem_store *m, const struct rv_session_row *fresh, struct mem_session **out, rv_err **err)
{
    struct mem_session *s = calloc(1, sizeof *s);
    int rc = s ? rv_session_row_copy(fresh, &s->head) : RV_E_NOMEM;

    if (rc == 0) {
        s->state.name = rv_mem_text_new(rv_str_of(fresh->name));
        s->state.mode = rv_mem_text_new(rv_str_of(fresh->mode));
        s->state.metadata = rv_mem_text_new(fresh->metadata);
        s->state.updated_us = fresh->updated_us;
        s->state.status = (enum rv_session_status)rv_session_status_of(rv_str_of(fresh->status));
        if (!s->state.name || !s->state.mode || !s->state.metadata || rv_mem_table_reserve(&m->sessions) < 0 ||
            rv_mem_note(m, MEM_UNDO_SESSION_MADE, NULL, NULL, NULL) < 0)
            rc = RV_E_NOMEM;
    }
    if (rc < 0) {
        free_session(s);
        return RV_FAIL(err, rc, "make session \"%s\"", fresh->id);
    }
    m->undo->session = s;
    link_session(m, s);
    *out = s;
    return 0;
}

int rv_mem_touch_session(struct mem_store *m, struct mem_session *s, rv_err **err)
{
    int rc = rv_mem_note(m, MEM_UNDO_SESSION, NULL, NULL, err);

    if (rc < 0)
        return rc;
    m->undo->session = s;
    m->undo->session_state = s->state;
    s->state.name->refs++;
    s->state.mode->refs++;
    s->state.metadata->refs++;
    return 0;
}

void rv_mem_undo_session(struct mem_store *m, struct mem_undo *u)
{
    struct mem_session *s = u->session;

    if (u->kind == MEM_UNDO_SESSION_MADE) {
        unlink_session(m, s);
        free_session(s);
        return;
    }
    rv_mem_drop_messages(s, u->session_state.n_messages);
    rv_mem_session_state_fini(&s->state);
    s->state = u->session_state;
}

int rv_mem_merge(struct mem_session *s, json_object *patch, const char *const *remove, size_t n_remove, rv_err **err)
{
    rv_buf merged = RV_BUF_INIT(RV_STORE_MAX_META);
    int rc = rv_store_merge((rv_str){s->state.metadata->text, s->state.metadata->len}, patch, remove, n_remove, &merged,
                            err);

    if (rc == 0)
        rc = rv_mem_set_text(&s->state.metadata, rv_buf_str(&merged), err);
    rv_buf_fini(&merged);
    return rc < 0 ? RV_WRAP(err, rc, "session \"%s\"", s->head.id) : 0;
}

static int copy(const struct mem_session *s, struct rv_session_row *out, rv_err **err)
{
    struct rv_session_row row = row_of(s);

    if (out && rv_session_row_copy(&row, out) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "read session \"%s\"", row.id);
    return 0;
}

int rv_mem_ensure_session(void *self, const struct rv_session_row *fresh, struct rv_session_row *out, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    const struct rv_store_scope owner = {fresh->tenant, fresh->user};
    struct mem_session *s = rv_mem_see_session(m, &owner, fresh->id);
    int rc = 0;

    if (rv_mem_see_deleted_session(m, &owner, fresh->id))
        return rv_store_fail_session_deleted(fresh->id, err);
    if (!s)
        rc = rv_mem_make_session(m, fresh, &s, err);
    if (rc == 0)
        rc = copy(s, out, err);
    return rv_mem_end(m, mark, rc);
}

int rv_mem_get_session(void *self, const struct rv_store_scope *scope, const char *id, struct rv_session_row *out,
                       rv_err **err)
{
    const struct mem_session *s = rv_mem_see_session(self, scope, id);

    return s ? copy(s, out, err) : rv_mem_fail_unseen_session(self, scope, id, err);
}

static int change_session(struct mem_store *m, struct mem_session *s, const struct rv_session_change *change,
                          rv_err **err)
{
    int rc = rv_mem_touch_session(m, s, err);

    if (rc == 0 && change->name)
        rc = rv_mem_set_text(&s->state.name, rv_str_of(change->name), err);
    if (rc == 0 && change->mode)
        rc = rv_mem_set_text(&s->state.mode, rv_str_of(change->mode), err);
    if (rc == 0 && (change->metadata || change->n_remove > 0))
        rc = rv_mem_merge(s, change->metadata, change->remove, change->n_remove, err);
    if (rc == 0 && change->status)
        s->state.status = (enum rv_session_status)rv_session_status_of(rv_str_of(change->status));
    if (rc == 0)
        s->state.updated_us = change->now_us;
    return rc;
}

int rv_mem_change_session(void *self, const struct rv_store_scope *scope, const char *id,
                          const struct rv_session_change *change, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    struct mem_session *s = rv_mem_see_session(m, scope, id);

    if (!s)
        return rv_mem_fail_unseen_session(m, scope, id, err);
    return rv_mem_end(m, mark, change_session(m, s, change, err));
}

int rv_mem_delete_session(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    struct mem_session *s = rv_mem_see_session(m, scope, id);
    int rc;

    if (!s)
        return rv_mem_fail_unseen_session(m, scope, id, err);
    rc = rv_mem_touch_session(m, s, err);
    if (rc == 0) {
        s->state.is_deleted = true;
        s->state.updated_us = now_us;
    }
    return rv_mem_end(m, mark, rc);
}

static bool has_unfinished_run(const struct mem_store *m, const struct mem_session *s)
{
    for (const struct mem_run *run = m->first; run; run = run->next)
        if (!rv_store_status_is_final(run->state.status) && strcmp(run->session, s->head.id) == 0 &&
            strcmp(run->tenant, s->head.tenant) == 0 && strcmp(run->user, s->head.user) == 0)
            return true;
    return false;
}

int rv_mem_purge_sessions(struct mem_store *m, rv_err **err)
{
    int rc = 0;

    for (struct mem_session *s = m->first_session; s && rc == 0; s = s->next) {
        if (has_unfinished_run(m, s))
            continue;
        rv_mem_drop_words(s);
        if (!s->state.is_deleted)
            continue;
        rv_mem_drop_messages(s, 0);
        s->state.total_tokens = 0;
        rc = rv_mem_set_text(&s->state.name, RV_STR_LIT(""), err);
        if (rc == 0)
            rc = rv_mem_set_text(&s->state.metadata, RV_STR_LIT("{}"), err);
    }
    return rc;
}

/* --- Lists --- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool begins(const char *text, const char *start)
{
    for (; *start; text++, start++)
        if (lower(*text) != lower(*start))
            return false;
    return true;
}

static bool contains(const char *text, const char *part)
{
    for (;; text++) {
        if (begins(text, part))
            return true;
        if (!*text)
            return false;
    }
}

static bool matches(const struct rv_session_filter *f, const struct mem_session *s)
{
    const char *agent = s->head.agent_name;

    if (f->agent_name && (!agent || strlen(agent) != strlen(f->agent_name) || !begins(agent, f->agent_name)))
        return false;
    if (f->name_contains && !contains(s->state.name->text, f->name_contains))
        return false;
    if (f->status && strcmp(rv_session_status_text(s->state.status), f->status) != 0)
        return false;
    return f->since_us <= 0 || s->state.updated_us >= f->since_us;
}

static int by_touch(const void *left, const void *right)
{
    const struct mem_session *a = *(const struct mem_session *const *)left;
    const struct mem_session *b = *(const struct mem_session *const *)right;

    if (a->state.updated_us != b->state.updated_us)
        return a->state.updated_us < b->state.updated_us ? 1 : -1;
    int by_id = strcmp(a->head.id, b->head.id);
    return by_id ? by_id : strcmp(a->head.user, b->head.user);
}

int rv_mem_list_sessions(void *self, const struct rv_store_scope *scope, const struct rv_session_filter *filter,
                         rv_each_session *each, void *ctx, rv_err **err)
{
    const struct mem_store *m = self;
    const struct mem_session **found = malloc((m->sessions.n + 1) * sizeof *found);
    int64_t n = 0, end;
    int rc = 0;

    if (!found)
        return RV_FAIL(err, RV_E_NOMEM, "list %zu sessions", m->sessions.n);
    for (const struct mem_session *s = m->first_session; s; s = s->next)
        if (is_seen(scope, s) && matches(filter, s))
            found[n++] = s;
    qsort(found, (size_t)n, sizeof *found, by_touch);
    end = filter->limit > 0 && filter->offset < n && filter->limit < n - filter->offset ? filter->offset + filter->limit
                                                                                        : n;
    for (int64_t i = filter->offset; i < end && rc == 0; i++) {
        struct rv_session_row row = row_of(found[i]);
        rc = each(ctx, &row, err);
    }
    free(found);
    return rc;
}
