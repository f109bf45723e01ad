/* Made, asked, freed. */
#include "coreengine/app/agents/agents_internal.h"

#include <stdlib.h>
#include <string.h>

static int copy_dirs(rv_agents *a, const struct rv_agents_opts *opts, rv_err **err)
{
    a->dirs = calloc(opts->n_dirs + 1, sizeof *a->dirs);
    if (!a->dirs)
        return RV_FAIL(err, RV_E_NOMEM, "remember the folders of agents");
    for (size_t i = 0; i < opts->n_dirs; i++) {
        if (!opts->dirs[i] || !*opts->dirs[i]) /* off, and not the present folder (p8 W10) */
            continue;
        a->dirs[a->n_dirs] = rv_str_dup(rv_str_of(opts->dirs[i]));
        if (!a->dirs[a->n_dirs])
            return RV_FAIL(err, RV_E_NOMEM, "remember the folders of agents");
        a->n_dirs++;
    }
    return 0;
}

int rv_agents_new(const struct rv_agents_opts *opts, rv_agents **out, rv_err **err)
{
    rv_agents *a = calloc(1, sizeof *a);
    int rc;

    if (!a)
        return RV_FAIL(err, RV_E_NOMEM, "look for agents");
    a->store = opts->store;
    a->plugins = opts->plugins;
    a->registers = opts->registers && opts->store;
    a->is_unkept = opts->is_unkept;
    a->obeys_env = opts->obeys_env;
    a->clock = opts->clock.now_us ? opts->clock : rv_clock_system();
    a->log = opts->log;
    rc = copy_dirs(a, opts, err);
    if (rc < 0) {
        rv_agents_free(a);
        return rc;
    }
    *out = a;
    return 0;
}

void rv_agents_forget(rv_agents *a)
{
    rv_agents_clear(&a->cache);
    rv_agents_files_fini(&a->files);
}

void rv_agents_free(rv_agents *a)
{
    if (!a)
        return;
    rv_agents_forget(a);
    for (size_t i = 0; i < a->n_dirs; i++)
        free(a->dirs[i]);
    free(a->dirs);
    free(a);
}

int rv_agents_catch_up(rv_agents *a, rv_err **err)
{
    int64_t version = 0;
    bool changed = false;
    int rc = rv_agents_refresh_files(a, a->clock.now_us(a->clock.self), &changed, err);

    if (rc == 0 && a->store)
        rc = rv_store_schemas_version(a->store, &version, err);
    if (rc < 0)
        return rc;
    if (changed || version != a->schemas_version)
        rv_agents_clear(&a->cache);
    a->schemas_version = version;
    return 0;
}

/* Before it is part of a message, a query or anything else. */
static int check_name(const char *name, rv_err **err)
{
    rv_str given = {name, strnlen(name, RV_AGENTDOC_MAX_NAME + 1)};
    int rc;

    if (rv_agentdoc_is_name(given))
        return 0;
    if (!rv_utf8_valid(given, NULL))
        given = RV_STR_LIT("");
    rc = RV_FAIL(err, RV_E_INVALID, "\"%.*s\" is no name of an agent", RV_STR_ARG(rv_utf8_cut(given, 80)));
    rv_err_hint(err, "a name is a word of letters, digits, \"-\", \"_\" and \".\", of at most %d bytes",
                RV_AGENTDOC_MAX_NAME);
    return rc;
}

static const char *environment(void *self, const char *name)
{
    (void)self;
    return getenv(name);
}

/* The document as the environment changes it, in place of the one that was found. */
static int obey_env(struct rv_agents_entry *agent, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    struct rv_agents_entry changed = {.source = agent->source};
    int rc = rv_agentdoc_with_env(agent->doc, environment, NULL, &changed.doc, err);

    if (rc < 0 || !changed.doc)
        return rc;
    rv_agentdoc_write_yaml(changed.doc, &text);
    rc = rv_buf_check(&text, "the agent document", err);
    if (rc == 0) {
        changed.text = rv_str_dup(rv_buf_str(&text));
        changed.len = text.len;
        changed.place = rv_str_dup(rv_str_of(changed.doc->src.file));
        if (!changed.text || !changed.place)
            rc = RV_FAIL(err, RV_E_NOMEM, "change agent \"%s\"", changed.doc->name);
    }
    rv_buf_fini(&text);
    if (rc == 0) {
        struct rv_agents_entry found = *agent;
        *agent = changed;
        changed = found;
    }
    rv_agents_entry_fini(&changed);
    return rc;
}

static int ask(rv_agents *a, const struct rv_store_scope *scope, const char *name, const struct rv_agents_entry **out,
               rv_err **err)
{
    struct rv_agents_entry agent = {.text = NULL};
    int64_t now_us = a->clock.now_us(a->clock.self);
    int rc = check_name(name, err);

    if (rc == 0)
        rc = rv_agents_catch_up(a, err);
    if (rc < 0 || (*out = rv_agents_recall(&a->cache, scope, name, now_us)))
        return rc;
    rc = rv_agents_look_up(a, scope, name, a->registers, &agent, err);
    if (rc == 0 && a->obeys_env)
        rc = obey_env(&agent, err);
    if (rc == 0)
        return rv_agents_keep(&a->cache, scope, name, now_us + RV_AGENTS_TTL_US, &agent, out, err);
    rv_agents_entry_fini(&agent);
    return rc;
}

int rv_agents_find(rv_agents *a, const struct rv_store_scope *scope, const char *name, struct rv_agents_found *out,
                   rv_err **err)
{
    const struct rv_agents_entry *agent = NULL;
    int rc = ask(a, scope, name, &agent, err);

    if (rc < 0)
        return rc;
    *out = (struct rv_agents_found){agent->doc, {agent->text, agent->len}, agent->source, agent->place};
    return 0;
}
