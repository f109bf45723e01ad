/* Schemas in memory: a list, since there are few and finding one is followed by work that costs more. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/conversation/context.h"
#include "coreengine/store/memory_internal.h"

void rv_mem_schemas_free(struct mem_store *m)
{
    while (m->first_schema) {
        struct mem_schema *s = m->first_schema;
        m->first_schema = s->next;
        rv_schema_row_fini(&s->row);
        free(s);
    }
}

static struct mem_schema *find(const struct mem_store *m, const char *tenant, const char *user, const char *kind,
                               const char *name)
{
    struct mem_schema *s = m->first_schema;

    while (s && !(strcmp(s->row.name, name) == 0 && strcmp(s->row.kind, kind) == 0 && strcmp(s->row.user, user) == 0 &&
                  strcmp(s->row.tenant, tenant) == 0))
        s = s->next;
    return s;
}

void rv_mem_undo_schema(struct mem_store *m, struct mem_undo *u)
{
    struct mem_schema *s = u->schema;

    rv_schema_row_fini(&s->row);
    if (u->kind == MEM_UNDO_SCHEMA) {
        s->row = u->old_schema.row;
        s->is_deleted = u->old_schema.is_deleted;
        return;
    }
    m->first_schema = s->next; /* what was made after it is gone already */
    free(s);
}

static int make(struct mem_store *m, struct rv_schema_row *row, rv_err **err)
{
    struct mem_schema *s = calloc(1, sizeof *s);

    if (!s || rv_mem_note(m, MEM_UNDO_SCHEMA_MADE, NULL, NULL, NULL) < 0) {
        free(s);
        return RV_FAIL(err, RV_E_NOMEM, "keep schema \"%s\"", row->name);
    }
    s->row = *row;
    s->next = m->first_schema;
    m->first_schema = s;
    m->undo->schema = s;
    return 0;
}

/* row is taken when it goes well. */
static int replace(struct mem_store *m, struct mem_schema *s, struct rv_schema_row *row, bool is_deleted, rv_err **err)
{
    int rc = rv_mem_note(m, MEM_UNDO_SCHEMA, NULL, NULL, err);

    if (rc < 0)
        return rc;
    m->undo->schema = s;
    m->undo->old_schema = *s;
    s->row = *row;
    s->is_deleted = is_deleted;
    return 0;
}

/* As in sqlite_schemas.c: only an id that the caller gave is looked for. */
static int check_id(const struct mem_store *m, const struct rv_schema_row *row, rv_err **err)
{
    for (const struct mem_schema *s = m->first_schema; s; s = s->next) {
        if (strcmp(s->row.tenant, row->tenant) != 0 || strcmp(s->row.id, row->id) != 0)
            continue;
        if (strcmp(s->row.user, row->user) != 0)
            return rv_store_fail_schema_id(row->id, true, err);
        if (strcmp(s->row.kind, row->kind) != 0 || strcmp(s->row.name, row->name) != 0)
            return rv_store_fail_schema_id(row->id, false, err);
    }
    return 0;
}

static int put(struct mem_store *m, const struct rv_schema_row *given, enum rv_schema_put how, int64_t now_us,
               bool *changed, rv_err **err)
{
    struct mem_schema *s = find(m, given->tenant, given->user, given->kind, given->name);
    struct rv_schema_row row = *given, kept;
    char id[RV_UUID_MAX];
    int rc = given->id ? check_id(m, given, err) : 0;

    if (rc < 0)
        return rc;
    if (!rv_store_schema_changes(given, how, s ? &s->row : NULL, s && s->is_deleted)) {
        *changed = false;
        return 0;
    }
    rv_entity_id("schemas", rv_str_of(given->name), given->user, id);
    row.id = s ? s->row.id : given->id ? given->id : id;
    row.created_us = s ? s->row.created_us : now_us;
    row.updated_us = now_us;
    if (rv_schema_row_copy(&row, &kept) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "keep schema \"%s\"", given->name);
    rc = s ? replace(m, s, &kept, false, err) : make(m, &kept, err);
    if (rc < 0) {
        rv_schema_row_fini(&kept);
        return rc;
    }
    m->n_schema_changes++;
    *changed = true;
    return 0;
}

int rv_mem_put_schema(void *self, const struct rv_schema_row *row, enum rv_schema_put how, int64_t now_us,
                      bool *changed, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;

    return rv_mem_end(m, mark, put(m, row, how, now_us, changed, err));
}

int rv_mem_find_schema(void *self, const struct rv_store_scope *scope, const char *kind, const char *name,
                       struct rv_schema_row *out, rv_err **err)
{
    const struct mem_schema *s = scope->user ? find(self, scope->tenant, scope->user, kind, name) : NULL;

    if (!s || s->is_deleted)
        s = find(self, scope->tenant, "", kind, name);
    if (!s || s->is_deleted)
        return rv_store_fail_no_schema(kind, name, err);
    return rv_schema_row_copy(&s->row, out) < 0 ? RV_FAIL(err, RV_E_NOMEM, "read schema \"%s\"", name) : 0;
}

static bool is_listed(const struct rv_store_scope *scope, const char *kind, const struct mem_schema *s)
{
    if (s->is_deleted || strcmp(s->row.tenant, scope->tenant) != 0 || (kind && strcmp(s->row.kind, kind) != 0))
        return false;
    return !scope->user || !*s->row.user || strcmp(s->row.user, scope->user) == 0;
}

static int by_name(const void *left, const void *right)
{
    const struct rv_schema_row *a = &(*(const struct mem_schema *const *)left)->row;
    const struct rv_schema_row *b = &(*(const struct mem_schema *const *)right)->row;
    int order = strcmp(a->name, b->name);

    if (order == 0)
        order = strcmp(a->kind, b->kind);
    if (order == 0 && !*a->user != !*b->user)
        return *a->user ? -1 : 1;
    return order != 0 ? order : strcmp(a->user, b->user);
}

int rv_mem_list_schemas(void *self, const struct rv_store_scope *scope, const char *kind, rv_each_schema *each,
                        void *ctx, rv_err **err)
{
    const struct mem_store *m = self;
    const struct mem_schema **found;
    size_t n = 0, k = 0;
    int rc = 0;

    for (const struct mem_schema *s = m->first_schema; s; s = s->next)
        n += is_listed(scope, kind, s);
    found = malloc((n + 1) * sizeof *found);
    if (!found)
        return RV_FAIL(err, RV_E_NOMEM, "list %zu schemas", n);
    for (const struct mem_schema *s = m->first_schema; s; s = s->next)
        if (is_listed(scope, kind, s))
            found[k++] = s;
    qsort(found, n, sizeof *found, by_name);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct rv_schema_row row = found[i]->row;
        row.own = NULL;
        rc = each(ctx, &row, err);
    }
    free(found);
    return rc;
}

int rv_mem_delete_schema(void *self, const struct rv_store_scope *scope, const char *kind, const char *name,
                         int64_t now_us, rv_err **err)
{
    struct mem_store *m = self;
    const struct mem_undo *mark = m->undo;
    struct mem_schema *s = find(m, scope->tenant, scope->user ? scope->user : "", kind, name);
    struct rv_schema_row row;
    int rc;

    if (!s || s->is_deleted)
        return rv_store_fail_no_schema(kind, name, err);
    if (rv_schema_row_copy(&s->row, &row) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "delete schema \"%s\"", name);
    row.updated_us = now_us;
    rc = replace(m, s, &row, true, err);
    if (rc < 0)
        rv_schema_row_fini(&row);
    else
        m->n_schema_changes++;
    return rv_mem_end(m, mark, rc);
}

int rv_mem_schemas_version(void *self, int64_t *out, rv_err **err)
{
    const struct mem_store *m = self;

    (void)err;
    *out = m->n_schema_changes;
    return 0;
}
