/* Runs in memory: the table they are found by, their state, and the undo log that makes each call one transaction. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/memory_internal.h"

#define FIRST_BUCKETS 64

static uint64_t hash_of(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a with a final mix: the low bits choose the bucket */

    for (; *name; name++) {
        h ^= (unsigned char)*name;
        h *= 0x100000001b3u;
    }
    return h ^ (h >> 32);
}

int rv_mem_table_reserve(struct mem_table *t)
{
    struct mem_node **buckets, *node, *next;
    size_t n;

    if (t->n < t->n_buckets)
        return 0;
    n = t->n_buckets ? t->n_buckets * 2 : FIRST_BUCKETS;
    buckets = calloc(n, sizeof(struct mem_node *));
    if (!buckets)
        return RV_E_NOMEM;
    for (size_t i = 0; i < t->n_buckets; i++) {
        for (node = t->buckets[i]; node; node = next) {
            next = node->next;
            node->next = buckets[node->hash & (n - 1)];
            buckets[node->hash & (n - 1)] = node;
        }
    }
    free(t->buckets);
    t->buckets = buckets;
    t->n_buckets = n;
    return 0;
}

void rv_mem_table_add(struct mem_table *t, struct mem_node *node, const char *name)
{
    struct mem_node **bucket;

    node->name = name;
    node->hash = hash_of(name);
    bucket = &t->buckets[node->hash & (t->n_buckets - 1)];
    node->next = *bucket;
    *bucket = node;
    t->n++;
}

void rv_mem_table_remove(struct mem_table *t, struct mem_node *node)
{
    struct mem_node **slot = &t->buckets[node->hash & (t->n_buckets - 1)];

    while (*slot != node)
        slot = &(*slot)->next;
    *slot = node->next;
    t->n--;
}

static struct mem_node *first_of(struct mem_node *node, uint64_t hash, const char *name)
{
    while (node && (node->hash != hash || strcmp(node->name, name) != 0))
        node = node->next;
    return node;
}

struct mem_node *rv_mem_table_find(const struct mem_table *t, const char *name)
{
    uint64_t hash = hash_of(name);

    return t->n_buckets ? first_of(t->buckets[hash & (t->n_buckets - 1)], hash, name) : NULL;
}

struct mem_node *rv_mem_table_next(const struct mem_node *node)
{
    return first_of(node->next, node->hash, node->name);
}

struct mem_text *rv_mem_text_new(rv_str s)
{
    struct mem_text *t = malloc(sizeof *t + s.len + 1);

    if (!t)
        return NULL;
    t->refs = 1;
    t->len = s.len;
    if (s.len > 0)
        memcpy(t->text, s.ptr, s.len);
    t->text[s.len] = 0;
    return t;
}

void rv_mem_text_unref(struct mem_text *t)
{
    if (t && --t->refs == 0)
        free(t);
}

void rv_mem_pending_unref(struct mem_pending *p)
{
    if (p && --p->refs == 0)
        free(p);
}

struct mem_state rv_mem_state_dup(const struct mem_state *st)
{
    struct mem_state copy = *st;

    if (copy.stage)
        copy.stage->refs++;
    if (copy.owner)
        copy.owner->refs++;
    if (copy.pending)
        copy.pending->refs++;
    if (copy.snapshot)
        copy.snapshot->refs++;
    return copy;
}

void rv_mem_state_fini(struct mem_state *st)
{
    rv_mem_text_unref(st->stage);
    rv_mem_text_unref(st->owner);
    rv_mem_pending_unref(st->pending);
    rv_mem_text_unref(st->snapshot);
    *st = (struct mem_state){0};
}

int rv_mem_set_text(struct mem_text **slot, rv_str s, rv_err **err)
{
    struct mem_text *t;

    if (*slot && rv_str_eq((rv_str){(*slot)->text, (*slot)->len}, s))
        return 0;
    t = rv_mem_text_new(s);
    if (!t)
        return RV_FAIL(err, RV_E_NOMEM, "keep %zu bytes", s.len);
    rv_mem_text_unref(*slot);
    *slot = t;
    return 0;
}

int rv_mem_note(struct mem_store *m, enum mem_undo_kind kind, struct mem_run *run, struct mem_blob *blob, rv_err **err)
{
    struct mem_undo *u = m->spare;

    if (u)
        m->spare = u->before;
    else
        u = malloc(sizeof *u);
    if (!u)
        return RV_FAIL(err, RV_E_NOMEM, "note what to undo");
    *u = (struct mem_undo){.before = m->undo, .kind = kind, .run = run, .blob = blob};
    m->undo = u;
    return 0;
}

int rv_mem_put_state(struct mem_store *m, struct mem_run *run, struct mem_state *st, rv_err **err)
{
    int rc = rv_mem_note(m, MEM_UNDO_STATE, run, NULL, err);

    if (rc < 0) {
        rv_mem_state_fini(st);
        return rc;
    }
    m->undo->state = run->state;
    run->state = *st;
    return 0;
}

void rv_mem_link(struct mem_store *m, struct mem_run *run)
{
    rv_mem_table_add(&m->runs, &run->node, run->own);
    run->prev = NULL;
    run->next = m->first;
    if (m->first)
        m->first->prev = run;
    m->first = run;
}

void rv_mem_unlink(struct mem_store *m, struct mem_run *run)
{
    rv_mem_table_remove(&m->runs, &run->node);
    if (run->next)
        run->next->prev = run->prev;
    if (run->prev)
        run->prev->next = run->next;
    else
        m->first = run->next;
}

static void drop_records(struct mem_run *run, int64_t from)
{
    for (int64_t i = from; i < run->state.n_records; i++)
        rv_mem_record_free(run->records[i]);
}

void rv_mem_run_free(struct mem_run *run)
{
    if (!run)
        return;
    drop_records(run, 0);
    free(run->records);
    if (run->bundle)
        run->bundle->refs--;
    rv_mem_state_fini(&run->state);
    free(run->own);
    free(run);
}

static void undo(struct mem_store *m, struct mem_undo *u)
{
    switch (u->kind) {
    case MEM_UNDO_STATE:
        drop_records(u->run, u->state.n_records);
        rv_mem_state_fini(&u->run->state);
        u->run->state = u->state;
        break;
    case MEM_UNDO_CREATED:
        rv_mem_unlink(m, u->run);
        rv_mem_run_free(u->run);
        break;
    case MEM_UNDO_DELETED:
        rv_mem_link(m, u->run); /* the table has not shrunk */
        break;
    case MEM_UNDO_BLOB: /* whatever came to refer to it was undone before */
        rv_mem_table_remove(&m->blobs, &u->blob->node);
        free(u->blob);
        break;
    case MEM_UNDO_SESSION:
    case MEM_UNDO_SESSION_MADE:
        rv_mem_undo_session(m, u);
        break;
    case MEM_UNDO_MESSAGE:
        u->message->deleted_us = 0;
        break;
    case MEM_UNDO_SCHEMA:
    case MEM_UNDO_SCHEMA_MADE:
        rv_mem_undo_schema(m, u);
        break;
    }
}

static void recycle(struct mem_store *m)
{
    struct mem_undo *u = m->undo;

    m->undo = u->before;
    u->before = m->spare;
    m->spare = u;
}

void rv_mem_undo_to(struct mem_store *m, const struct mem_undo *mark)
{
    while (m->undo != mark) {
        undo(m, m->undo);
        recycle(m);
    }
}

void rv_mem_forget(struct mem_store *m)
{
    while (m->undo) {
        if (m->undo->kind == MEM_UNDO_STATE)
            rv_mem_state_fini(&m->undo->state);
        else if (m->undo->kind == MEM_UNDO_DELETED)
            rv_mem_run_free(m->undo->run);
        else if (m->undo->kind == MEM_UNDO_SESSION)
            rv_mem_session_state_fini(&m->undo->session_state);
        else if (m->undo->kind == MEM_UNDO_SCHEMA)
            rv_schema_row_fini(&m->undo->old_schema.row);
        recycle(m);
    }
}

int rv_mem_end(struct mem_store *m, const struct mem_undo *mark, int rc)
{
    if (rc != 0)
        rv_mem_undo_to(m, mark);
    else if (!m->in_group)
        rv_mem_forget(m);
    return rc;
}
