/* All names that a user sees. */
#include "coreengine/app/agents/agents_internal.h"

#include <stdlib.h>
#include <string.h>

struct names {
    char **items; /* owned */
    size_t n, cap;
};

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
}

static int add_name(struct names *names, const char *name, rv_err **err)
{
    if (!rv_has_room(&names->items, &names->cap, names->n + 1, sizeof *names->items))
        return RV_FAIL(err, RV_E_NOMEM, "list agents");
    names->items[names->n] = rv_str_dup(rv_str_of(name));
    if (!names->items[names->n])
        return RV_FAIL(err, RV_E_NOMEM, "list agents");
    names->n++;
    return 0;
}

static int add_row(void *self, const struct rv_schema_row *row, rv_err **err)
{
    return add_name(self, row->name, err);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_once_each(struct names *names)
{
    size_t n = 0;

    if (names->n == 0)
        return;
    qsort(names->items, names->n, sizeof *names->items, by_text);
    for (size_t i = 0; i < names->n; i++) {
        if (n > 0 && strcmp(names->items[n - 1], names->items[i]) == 0)
            free(names->items[i]);
        else
            names->items[n++] = names->items[i];
    }
    names->n = n;
}

static int collect(rv_agents *a, const struct rv_store_scope *scope, struct names *names, rv_err **err)
{
    const char *name, *capability;
    rv_str text;
    int rc = 0;

    if (a->store)
        rc = rv_store_list_schemas(a->store, scope, RV_AGENTS_KIND, add_row, names, err);
    for (size_t i = 0; rc == 0 && a->plugins && rv_plugins_agent_at(a->plugins, i, &name, &text, &capability); i++)
        rc = add_name(names, name, err);
    for (size_t i = 0; rc == 0 && i < a->files.n; i++)
        if (a->files.items[i].name)
            rc = add_name(names, a->files.items[i].name, err);
    sort_once_each(names);
    return rc;
}

/* --- one that is not there --- */

/* Gives how many agents capabilities have. */
static size_t say_where(rv_agents *a, rv_buf *b)
{
    size_t n_built_in = 0;
    const char *name, *capability;
    rv_str text;

    while (a->plugins && rv_plugins_agent_at(a->plugins, n_built_in, &name, &text, &capability))
        n_built_in++;
    rv_buf_puts(b, a->store && !a->is_unkept ? "the store" : "no store");
    if (n_built_in > 0)
        rv_buf_printf(b, ", %zu built in", n_built_in);
    else
        rv_buf_puts(b, ", no capability with agents");
    for (size_t i = 0; i < a->n_dirs; i++)
        rv_buf_printf(b, ", the folder \"%s\"", a->dirs[i]);
    if (a->n_dirs == 0)
        rv_buf_puts(b, ", no folder");
    return n_built_in;
}

int agents_fail_unknown(rv_agents *a, const struct rv_store_scope *scope, const char *name, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf where = RV_BUF_INIT(RV_AGENTS_MAX_PATH);
    struct names names = {.items = NULL};
    const char *nearest = NULL;
    int rc = collect(a, scope, &names, err);

    if (rc == 0) {
        size_t n_built_in = say_where(a, &where);
        nearest = rv_nearest(rv_str_of(name), (const char *const *)names.items, names.n);
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "there is no agent \"%s\" (looked in: %s)", name, rv_buf_cstr(&where));
        if (nearest)
            rv_err_set_hint(err, "did you mean \"%s\"?", nearest);
        else
            rv_err_set_hint(
                err, "`reeve agents list` shows all%s; `reeve agents put FILE` adds one, and so does a YAML file in %s",
                n_built_in > 0 ? "" : ", and those that are built in need `p8` in the list `capabilities`",
                a->n_dirs > 0 ? "a folder of agents" : "the folder of --schema-dir or P8_SCHEMA_DIR");
    }
    names_fini(&names);
    return rc;
}

/* --- all of them --- */

struct listing {
    rv_agents *a;
    const struct rv_store_scope *scope;
    int (*each)(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault, rv_err **err);
    void *self;
};

static int show(const struct listing *l, const char *name, rv_err **err)
{
    struct rv_agents_entry agent = {.text = NULL};
    struct rv_agents_found found;
    rv_err *fault = NULL;
    int rc = agents_look_up(l->a, l->scope, name, false, &agent, &fault);

    if (rv_err_is(fault, RV_E_NOMEM)) /* also when only the message has suffered */
        rc = RV_E_NOMEM;
    found = (struct rv_agents_found){agent.doc, {agent.text, agent.len}, agent.source, agent.place};
    if (rc == 0) {
        rc = l->each(l->self, name, &found, NULL, err);
    } else if (rc == RV_E_INVALID) {
        rc = l->each(l->self, name, &found, fault, err);
    } else if (rc == RV_E_NOT_FOUND) { /* it went meanwhile */
        rc = 0;
    } else if (rc == RV_E_NOMEM) {
        rc = RV_FAIL(err, rc, "list agent \"%s\"", name);
    } else {
        rv_err_pass(err, fault);
        fault = NULL;
    }
    rv_err_free(fault);
    agents_entry_fini(&agent);
    return rc;
}

/* Files without a readable name: listed by the file's. */
static int show_nameless(const struct listing *l, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < l->a->files.n; i++) {
        const struct rv_agents_file *file = &l->a->files.items[i];
        const struct rv_agents_found found = {NULL, {file->text, file->len}, "file", file->path};
        const char *slash = strrchr(file->path, '/');

        if (!file->name)
            rc = l->each(l->self, slash ? slash + 1 : file->path, &found, file->fault, err);
    }
    return rc;
}

int rv_agents_list(rv_agents *a, const struct rv_store_scope *scope,
                   int (*each)(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                               rv_err **err),
                   void *self, rv_err **err)
{
    const struct listing l = {a, scope, each, self};
    struct names names = {.items = NULL};
    int rc = agents_catch_up(a, err);

    if (rc == 0)
        rc = collect(a, scope, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++)
        rc = show(&l, names.items[i], err);
    if (rc == 0)
        rc = show_nameless(&l, err);
    names_fini(&names);
    return rc;
}
