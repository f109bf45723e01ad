/* Blobs, records and pending interrupts in memory, and the upkeep of them. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/memory_internal.h"

static int put_blob(struct mem_store *m, rv_str data, const char *hash, int64_t now_us, struct mem_blob **out,
                    rv_err **err)
{
    struct mem_blob *b = (struct mem_blob *)(void *)rv_mem_table_find(&m->blobs, hash);

    if (b) {
        if (b->created_us < now_us) /* a caller is about to refer to it: its grace period begins again */
            b->created_us = now_us;
        *out = b;
        return 0;
    }
    b = malloc(sizeof *b + data.len);
    if (!b || rv_mem_table_reserve(&m->blobs) < 0 || rv_mem_note(m, MEM_UNDO_BLOB, NULL, b, NULL) < 0) {
        free(b);
        return RV_FAIL(err, RV_E_NOMEM, "keep %zu bytes", data.len);
    }
    b->refs = 0;
    b->created_us = now_us;
    b->len = data.len;
    memcpy(b->hash, hash, sizeof b->hash);
    if (data.len > 0)
        memcpy(b->bytes, data.ptr, data.len);
    rv_mem_table_add(&m->blobs, &b->node, b->hash);
    *out = b;
    return 0;
}

int rv_mem_put_blob(void *self, rv_str data, const char *hash, int64_t now_us, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    struct mem_blob *b;

    return rv_mem_end(m, mark, put_blob(m, data, hash, now_us, &b, err));
}

int rv_mem_get_blob(void *self, const char *hash, rv_buf *out, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_blob *b = (const struct mem_blob *)(void *)rv_mem_table_find(&m->blobs, hash);

    if (!b)
        return RV_FAIL(err, RV_E_NOT_FOUND, "no blob %s", hash);
    rv_buf_add(out, b->bytes, b->len);
    return 0;
}

int rv_mem_record_new(struct mem_store *m, const struct rv_record *r, int64_t now_us, struct mem_record **out,
                      rv_err **err)
{
    bool is_large = r->value.ptr && r->body.len + r->value.len > RV_STORE_INLINE_MAX;
    struct mem_record *rec = malloc(sizeof *rec + r->body.len + (is_large ? 0 : r->value.len));
    char hash[RV_HASH_MAX];

    if (!rec)
        return RV_FAIL(err, RV_E_NOMEM, "keep record %lld", (long long)r->seq);
    *rec = (struct mem_record){.kind = r->kind, .has_value = r->value.ptr != NULL};
    rec->body_len = r->body.len;
    rec->value_len = r->value.len;
    if (r->body.len > 0)
        memcpy(rec->bytes, r->body.ptr, r->body.len);
    if (is_large) {
        int rc;
        rv_hash_of(r->value, hash);
        rc = put_blob(m, r->value, hash, now_us, &rec->blob, err);
        if (rc < 0) {
            free(rec);
            return rc;
        }
        rec->blob->refs++;
    } else if (r->value.len > 0) {
        memcpy(rec->bytes + r->body.len, r->value.ptr, r->value.len);
    }
    *out = rec;
    return 0;
}

void rv_mem_record_free(struct mem_record *r)
{
    if (r->blob)
        r->blob->refs--;
    free(r);
}

static const char *move_text(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *to = memcpy(*at, text, size);

    *at += size;
    return to;
}

static rv_str move_bytes(char **at, rv_str s)
{
    rv_str to = {*at, s.len};

    if (s.len > 0)
        memcpy(*at, s.ptr, s.len);
    *at += s.len;
    return to;
}

int rv_mem_pending_new(const struct rv_pending *items, size_t n, struct mem_pending **out, rv_err **err)
{
    size_t size = sizeof(struct mem_pending) + n * sizeof *items;
    struct mem_pending *p;
    char *at;

    for (size_t i = 0; i < n; i++)
        size += strlen(items[i].id) + strlen(items[i].kind) + strlen(items[i].stage) + 3 + items[i].text.len +
                items[i].body.len;
    p = malloc(size);
    if (!p)
        return RV_FAIL(err, RV_E_NOMEM, "keep %zu pending interrupts", n);
    p->refs = 1;
    p->n = n;
    at = (char *)&p->items[n];
    for (size_t i = 0; i < n; i++) {
        p->items[i] = items[i];
        p->items[i].id = move_text(&at, items[i].id);
        p->items[i].kind = move_text(&at, items[i].kind);
        p->items[i].stage = move_text(&at, items[i].stage);
        p->items[i].text = move_bytes(&at, items[i].text);
        p->items[i].body = move_bytes(&at, items[i].body);
    }
    *out = p;
    return 0;
}

int rv_mem_stats(void *self, struct rv_store_stats *out, rv_err **err)
{
    struct mem_store *m = self;

    (void)err;
    out->runs = (int64_t)m->runs.n;
    out->blobs = (int64_t)m->blobs.n;
    for (const struct mem_run *run = m->first; run; run = run->next) {
        out->records += run->state.n_records;
        out->pending += run->state.pending ? (int64_t)run->state.pending->n : 0;
        out->snapshots += run->state.snapshot != NULL;
        out->bytes += run->state.snapshot ? (int64_t)run->state.snapshot->len : 0;
        for (int64_t i = 0; i < run->state.n_records; i++) {
            const struct mem_record *r = run->records[i];
            out->bytes += (int64_t)(r->body_len + (r->blob ? 0 : r->value_len));
        }
    }
    for (size_t i = 0; i < m->blobs.n_buckets; i++)
        for (const struct mem_node *node = m->blobs.buckets[i]; node; node = node->next)
            out->bytes += (int64_t)((const struct mem_blob *)(const void *)node)->len;
    for (const struct mem_session *s = m->first_session; s; s = s->next) {
        out->sessions += !s->state.is_deleted;
        out->messages += s->state.is_deleted ? 0 : s->state.n_messages;
        out->bytes += (int64_t)s->state.metadata->len;
        for (int64_t i = 0; i < s->state.n_messages; i++)
            out->bytes += (int64_t)(s->messages[i]->row.content.len + s->messages[i]->row.tool_calls.len);
    }
    for (const struct mem_schema *s = m->first_schema; s; s = s->next) {
        out->schemas += !s->is_deleted;
        out->bytes += (int64_t)(s->row.content.len + s->row.json_schema.len + s->row.document.len);
    }
    out->schema = 1;
    return 0;
}

int rv_mem_sweep(void *self, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err)
{
    struct mem_store *m = self;

    for (size_t i = 0; i < m->blobs.n_buckets; i++) {
        struct mem_node *node = m->blobs.buckets[i], *next;
        for (; node; node = next) {
            struct mem_blob *b = (struct mem_blob *)(void *)node;
            next = node->next;
            if (b->refs > 0 || now_us - grace_us < b->created_us)
                continue;
            *freed += (int64_t)b->len;
            rv_mem_table_remove(&m->blobs, node);
            free(b);
        }
    }
    return rv_mem_purge_sessions(m, err);
}

int rv_mem_check(void *self, rv_err **err)
{
    struct mem_store *m = self;
    char hash[RV_HASH_MAX];

    for (size_t i = 0; i < m->blobs.n_buckets; i++) {
        for (const struct mem_node *node = m->blobs.buckets[i]; node; node = node->next) {
            const struct mem_blob *b = (const struct mem_blob *)(const void *)node;
            rv_hash_of((rv_str){b->bytes, b->len}, hash);
            if (strcmp(hash, b->hash) != 0)
                return RV_FAIL(err, RV_E_INVALID, "blob %s: its bytes have the hash %s", b->hash, hash);
        }
    }
    for (const struct mem_session *s = m->first_session; s; s = s->next) {
        int64_t tokens = 0;
        for (int64_t i = 0; i < s->state.n_messages; i++)
            tokens += s->messages[i]->row.parent_call_id ? 0 : s->messages[i]->row.token_count;
        if (tokens != s->state.total_tokens)
            return RV_FAIL(err, RV_E_INVALID, "session \"%s\" should have %lld tokens and has %lld", s->head.id,
                           (long long)s->state.total_tokens, (long long)tokens);
    }
    return 0;
}
