/* Named tools with their handlers: a sorted array of entries behind one read-write lock. The lock guards the array; an
 * entry does not change once it is in. Handlers run with the lock released. Lock rank: leaf, nothing is called under it
 * but allocation. */
#include "coreengine/tools/tools_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct rv_tool_info info; /* everything in it is owned */
    struct rv_tool_handler handler;
    char *name, *description;
    rv_schema *input, *output;
};

struct rv_tool_registry {
    pthread_rwlock_t lock;  /* guards what follows */
    struct entry **entries; /* by name */
    size_t n, cap;
};

rv_tool_registry *rv_tool_registry_new(void)
{
    rv_tool_registry *r = calloc(1, sizeof *r);

    if (r && pthread_rwlock_init(&r->lock, NULL) != 0) {
        free(r);
        r = NULL;
    }
    return r;
}

static void entry_free(struct entry *e)
{
    if (!e)
        return;
    rv_schema_free(e->input);
    rv_schema_free(e->output);
    json_object_put(e->info.input_json);
    json_object_put(e->info.output_json);
    free(e->name);
    free(e->description);
    free(e);
}

void rv_tool_registry_free(rv_tool_registry *r)
{
    size_t i;

    if (!r)
        return;
    for (i = 0; i < r->n; i++)
        entry_free(r->entries[i]);
    free(r->entries);
    pthread_rwlock_destroy(&r->lock);
    free(r);
}

/* The schema is compiled from a copy: the caller's tree belongs to the caller's thread. */
static int copy_schema(json_object *json, const char *kind, const char *tool, json_object **copy, rv_schema **schema,
                       rv_err **err)
{
    rv_buf what = RV_BUF_INIT(SIZE_MAX / 2);
    int rc = 0;

    if (!json)
        return 0;
    rv_buf_printf(&what, "%s of tool \"%s\"", kind, tool);
    rc = rv_buf_check(&what, "the name of a schema", err);
    if (rc == 0)
        rc = rv_json_dup(json, copy, err);
    if (rc == 0)
        rc = rv_schema_compile(*copy, what.ptr, schema, err);
    rv_buf_fini(&what);
    return rc;
}

static int entry_new(const struct rv_tool_info *info, const struct rv_tool_handler *handler, struct entry **out,
                     rv_err **err)
{
    struct entry *e = calloc(1, sizeof *e);
    int rc = RV_E_NOMEM;

    if (!e)
        goto nomem;
    e->info = *info;
    e->info.input_json = e->info.output_json = NULL;
    e->handler = *handler;
    e->name = rv_str_dup(rv_str_of(info->name));
    e->description = rv_str_dup(rv_str_of(info->description));
    if (!e->name || !e->description)
        goto nomem;
    rc = copy_schema(info->input_json, "input", e->name, &e->info.input_json, &e->input, err);
    if (rc < 0)
        goto fail;
    rc = copy_schema(info->output_json, "output", e->name, &e->info.output_json, &e->output, err);
    if (rc < 0)
        goto fail;
    e->info.name = e->name;
    e->info.description = e->description;
    e->info.input = e->input;
    e->info.output = e->output;
    *out = e;
    return 0;
nomem:
    RV_FAIL(err, rc, "no memory to register tool \"%s\"", info->name);
fail:
    entry_free(e);
    return rc;
}

/* Where name is, or would be. Under the lock. */
static size_t place_of(const rv_tool_registry *r, rv_str name, bool *found)
{
    size_t lo = 0, hi = r->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const char *other = r->entries[mid]->name;
        size_t len = strlen(other), n = len < name.len ? len : name.len;
        int cmp = n ? memcmp(other, name.ptr, n) : 0;
        if (cmp == 0)
            cmp = (len > name.len) - (len < name.len);
        if (cmp == 0) {
            *found = true;
            return mid;
        }
        if (cmp < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *found = false;
    return lo;
}

/* Under the lock. On success *e is the registry's and becomes NULL. */
static int insert_at(rv_tool_registry *r, size_t i, struct entry **e, rv_err **err)
{
    if (r->n == RV_TOOL_MAX_REGISTERED)
        return RV_FAIL(err, RV_E_LIMIT, "no room for tool \"%s\": %d are registered", (*e)->name,
                       RV_TOOL_MAX_REGISTERED);
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 16;
        struct entry **grown = realloc(r->entries, cap * sizeof(*grown));
        if (!grown)
            return RV_FAIL(err, RV_E_NOMEM, "no memory to register tool \"%s\"", (*e)->name);
        r->entries = grown;
        r->cap = cap;
    }
    memmove(r->entries + i + 1, r->entries + i, (r->n - i) * sizeof(*r->entries));
    r->entries[i] = *e;
    *e = NULL;
    r->n++;
    return 0;
}

int rv_tool_register(rv_tool_registry *r, const struct rv_tool_info *info, const struct rv_tool_handler *handler,
                     bool replace, rv_err **err)
{
    struct entry *e = NULL, *old;
    bool found;
    size_t i;
    int rc;

    if (!info->name || !info->name[0])
        return RV_FAIL(err, RV_E_INVALID, "tool name is required");
    if (!handler || !handler->call)
        return RV_FAIL(err, RV_E_INVALID, "tool \"%s\" has no handler", info->name);
    rc = entry_new(info, handler, &e, err);
    if (rc < 0)
        return rc;

    pthread_rwlock_wrlock(&r->lock);
    i = place_of(r, rv_str_of(e->name), &found);
    if (!found) {
        rc = insert_at(r, i, &e, err);
    } else if (replace) {
        old = r->entries[i];
        r->entries[i] = e;
        e = old;
    } else {
        rc = RV_FAIL(err, RV_E_EXISTS, "tool \"%s\" is registered already", e->name);
    }
    pthread_rwlock_unlock(&r->lock);
    entry_free(e); /* what has no place in the registry: the old one, or a refused one */
    return rc;
}

const struct rv_tool_info *rv_tool_find(rv_tool_registry *r, rv_str name)
{
    const struct rv_tool_info *info;
    bool found;
    size_t i;

    pthread_rwlock_rdlock(&r->lock);
    i = place_of(r, name, &found);
    info = found ? &r->entries[i]->info : NULL;
    pthread_rwlock_unlock(&r->lock);
    return info;
}

/* Under the lock. NULL: no memory. */
static const char **names_of(const rv_tool_registry *r)
{
    const char **names = malloc((r->n ? r->n : 1) * sizeof(*names));
    size_t i;

    for (i = 0; names && i < r->n; i++)
        names[i] = r->entries[i]->name;
    return names;
}

int rv_tool_names(rv_tool_registry *r, const char ***out, size_t *n, rv_err **err)
{
    const char **names;
    size_t n_names;

    pthread_rwlock_rdlock(&r->lock);
    names = names_of(r);
    n_names = r->n;
    pthread_rwlock_unlock(&r->lock);
    if (!names)
        return RV_FAIL(err, RV_E_NOMEM, "no memory to list tools");
    *out = names;
    *n = n_names;
    return 0;
}

/* Under the lock. */
static int fail_not_found(const rv_tool_registry *r, rv_str name, rv_err **err)
{
    int rc = RV_FAIL(err, RV_E_NOT_FOUND, "tool not found: \"%.*s\"", RV_STR_ARG(name));
    const char **names = names_of(r);
    const char *near = names ? rv_nearest(name, names, r->n) : NULL; /* without memory: no advice */

    if (near)
        rv_err_hint(err, "did you mean \"%s\"?", near);
    free(names);
    return rc;
}

static int check_reply(rv_str name, rv_str text, rv_err **err)
{
    struct rv_json_opts opts = {.what = "tool reply", .allow_duplicates = true};
    json_object *value = NULL;
    bool is_null;
    int rc;

    if (rv_str_trim(text).len == 0)
        return RV_FAIL(err, RV_E_TOOL, "tool \"%.*s\" gave no answer", RV_STR_ARG(name));
    rc = rv_json_parse(text, &opts, &value, err);
    if (rc == RV_E_NOMEM)
        return rc;
    if (rc < 0)
        return RV_WRAP(err, RV_E_TOOL, "tool \"%.*s\" gave an answer that is no JSON", RV_STR_ARG(name));
    is_null = !value;
    json_object_put(value);
    return is_null ? RV_FAIL(err, RV_E_TOOL, "tool \"%.*s\" answered null", RV_STR_ARG(name)) : 0;
}

int rv_tool_execute(rv_tool_registry *r, rv_str name, rv_str args, rv_buf *reply, rv_err **err)
{
    rv_buf own = RV_BUF_INIT(reply->max - reply->len); /* a failed call leaves nothing in the caller's buffer */
    struct rv_tool_handler handler = {NULL, NULL};
    bool found;
    size_t i;
    int rc = 0;

    pthread_rwlock_rdlock(&r->lock);
    i = place_of(r, name, &found);
    if (found)
        handler = r->entries[i]->handler;
    else
        rc = fail_not_found(r, name, err);
    pthread_rwlock_unlock(&r->lock);
    if (!found)
        return rc;

    rc = handler.call(handler.self, args, &own, err);
    if (rc == 0)
        rc = rv_buf_check(&own, "a tool's reply", err);
    else if (rc > 0 || (err && !*err)) /* failed without saying why */
        rc = RV_WRAP(err, RV_E_TOOL, "tool \"%.*s\" failed", RV_STR_ARG(name));
    if (rc == 0)
        rc = check_reply(name, (rv_str){own.ptr, own.len}, err);
    if (rc == 0) {
        rv_buf_add(reply, own.ptr, own.len);
        rc = rv_buf_check(reply, "a tool's reply", err);
    }
    rv_buf_fini(&own);
    return rc;
}
