/* What is kept of a new run before it begins: its bundle and the first record of its journal. */
#include "coreengine/app/app_internal.h"

#include <limits.h>
#include <stdlib.h>

#define MAX_BUNDLE ((size_t)64 << 20)

int64_t rv_app_lease_us(const struct rv_app *app)
{
    return app->lease_us ? app->lease_us : RV_LEASE_DEFAULT_US;
}

static int put_bundle(struct rv_app_run *run, char hash[RV_STORE_HASH_MAX], rv_err **err)
{
    struct rv_catalog catalog = rv_plugins_catalog(run->loaded->plugins);
    struct rv_known_names names = rv_plugins_names(run->loaded->plugins);
    char base[PATH_MAX];
    const struct rv_bundle_source from = {.pipeline = run->loaded->pipeline,
                                          .catalog = &catalog,
                                          .names = &names,
                                          .script = run->loaded->script,
                                          .base = realpath(run->loaded->pipeline->dir, base)};
    rv_buf text = RV_BUF_INIT(MAX_BUNDLE);

    int rc = rv_bundle_write(&from, &text, NULL, err);
    if (rc == 0)
        rc = rv_store_put_blob(run->store, rv_buf_str(&text), hash, err);
    rv_buf_fini(&text);
    return rc;
}

/* Which stages the script plays; the caller frees the result with free(). NULL: there is no script. */
static int scripted_stages(const struct rv_app_loaded *l, bool **out, rv_err **err)
{
    *out = NULL;
    if (!l->script)
        return 0;
    *out = calloc(l->pipeline->n_agents + 1, sizeof **out);
    if (!*out)
        return RV_FAIL(err, RV_E_NOMEM, "keep a run");
    rv_script_stages(l->script, l->pipeline, *out);
    return 0;
}

int rv_app_keep(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_begin *begin, rv_err **err)
{
    struct rv_clock clock = rv_clock_system();
    const struct rv_app_loaded *l = run->loaded;
    char hash[RV_STORE_HASH_MAX];
    bool *scripted = NULL;
    struct rv_journal_start start = {.tenant = run->app->scope.tenant,
                                     .bundle = hash,
                                     .pipeline = l->pipeline,
                                     .env = env,
                                     .owner = run->owner[0] ? run->owner : NULL,
                                     .lease_us = rv_app_lease_us(run->app),
                                     .parent = begin->parent,
                                     .parent_seq = begin->parent_seq};

    int rc = put_bundle(run, hash, err);
    if (rc == 0)
        rc = scripted_stages(l, &scripted, err);
    start.begin = (struct rv_journal_begin){
        .mode = run->mode,
        .continues = begin->parent != NULL,
        .use_mocks = run->use_mocks,
        .has_script = l->script != NULL,
        .answers_from_script = l->script != NULL,
        .scripted = scripted,
        .max_parallel = RV_ENGINE_MAX_PARALLEL,
        .script_at = begin->script_at,
        .conversation = begin->conversation,
    };
    if (rc == 0 && !begin->in_group)
        rc = rv_store_begin(run->store, err);
    if (rc == 0) {
        start.now_us = clock.now_us(clock.self); /* the lease begins when other writers are waited for */
        rc = rv_journal_create(run->store, &start, &run->journal, err);
        rc = begin->in_group ? rc : rv_store_end(run->store, rc, err);
    }
    free(scripted);
    if (rc == RV_E_EXISTS)
        rv_err_hint(err, "leave envelope_id out of the state, or keep this run elsewhere");
    return rc < 0 ? RV_WRAP(err, rc, "keep the run") : 0;
}
