/* Opened capabilities that several sets share: a worker opens each once, not once a run.
 *
 * One is known by its path, its file as stat() describes it, the folder and the configuration that it was opened with,
 * and the log that it writes to. While a set still uses one whose file was replaced, dlopen() would give the old code
 * again: sets that are made then open it for themselves, and the first one after that gets the new file. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/tools/plugin/plugin_internal.h"

#define MAX_IDLE 64 /* capabilities that stay open while no set uses them: each keeps a library or a process */

struct rv_plugin_key {
    struct rv_plugin_key *next; /* of the pool, the last one used first */
    struct rv_plugin *plugin;   /* that has this key; NULL: it is not in the pool yet */
    char *base_dir, *config;    /* owned */
    struct stat file;
    size_t n_users;
    bool is_stale; /* its file is another one now */
};
struct rv_plugin_pool {
    pthread_mutex_t lock; /* guards the list of keys, and is_over; before tools/plugin/work.c */
    struct rv_plugin_key *first;
    bool is_over; /* freed while sets used its capabilities */
};

int rv_plugin_pool_new(rv_plugin_pool **out, rv_err **err)
{
    rv_plugin_pool *pool = calloc(1, sizeof *pool);

    if (!pool)
        return RV_FAIL(err, RV_E_NOMEM, "share capabilities");
    pthread_mutex_init(&pool->lock, NULL);
    *out = pool;
    return 0;
}

const char *plugin_key_base_dir(const struct rv_plugin_key *key)
{
    return key->base_dir;
}

void plugin_key_free(struct rv_plugin_key *key)
{
    if (!key)
        return;
    free(key->base_dir);
    free(key->config);
    free(key);
}

/* --- under the lock --- */

static void unlink_key(rv_plugin_pool *pool, const struct rv_plugin_key *key)
{
    struct rv_plugin_key **at = &pool->first;

    while (*at != key)
        at = &(*at)->next;
    *at = key->next;
}

/* Take one that is to be closed: its file is another one, it owes answers, too many are idle, or the pool is over. */
static struct rv_plugin *take_superfluous(rv_plugin_pool *pool)
{
    size_t n_idle = 0;

    for (struct rv_plugin_key *k = pool->first; k; k = k->next) {
        if (k->n_users > 0 || (++n_idle <= MAX_IDLE && !k->is_stale && !pool->is_over && !plugin_late_any(k->plugin)))
            continue;
        unlink_key(pool, k);
        return k->plugin;
    }
    return NULL;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* *is_held: the process still has another file by that path. */
static struct rv_plugin_key *find(rv_plugin_pool *pool, const struct rv_plugins *p, const char *path,
                                  const struct rv_plugin_key *wanted, bool *is_held)
{
    struct rv_plugin_key *found = NULL;

    for (struct rv_plugin_key *k = pool->first; k; k = k->next) {
        if (strcmp(k->plugin->path, path) != 0)
            continue;
        k->is_stale = k->is_stale || !is_same_file(&k->file, &wanted->file);
        *is_held = *is_held || (k->is_stale && k->n_users > 0);
        if (!k->is_stale && k->plugin->log == p->log && strcmp(k->base_dir, wanted->base_dir) == 0 &&
            strcmp(k->config, wanted->config) == 0)
            found = k;
    }
    return found;
}

/* --- */

/* What the pool needs no more is closed without its lock: a capability may take its time. */
static void close_superfluous(rv_plugin_pool *pool)
{
    struct rv_plugin *pl;

    do {
        pthread_mutex_lock(&pool->lock);
        pl = take_superfluous(pool);
        bool is_empty = pool->is_over && !pool->first;
        pthread_mutex_unlock(&pool->lock);
        plugin_free(pl);
        if (!is_empty)
            continue;
        pthread_mutex_destroy(&pool->lock);
        free(pool);
        return;
    } while (pl);
}

void rv_plugin_pool_free(rv_plugin_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->is_over = true;
    pthread_mutex_unlock(&pool->lock);
    close_superfluous(pool);
}

static int new_key(const struct rv_plugins *p, const struct rv_capability_config *which, struct rv_plugin_key **out,
                   rv_err **err)
{
    struct rv_plugin_key *key = calloc(1, sizeof *key);
    rv_buf config = RV_BUF_INIT(RV_PLUGIN_MAX_CONFIG);

    if (which->config)
        rv_json_write(which->config, &config);
    if (key && config.rc == 0) {
        key->base_dir = rv_str_dup(rv_str_of(p->base_dir));
        key->config = rv_str_dup(rv_buf_str(&config));
    }
    int rc = rv_buf_check(&config, "configuration of a capability", err);
    rv_buf_fini(&config);
    if (rc == 0 && (!key || !key->base_dir || !key->config))
        rc = RV_FAIL(err, RV_E_NOMEM, "share a capability");
    if (rc < 0)
        plugin_key_free(key);
    else
        *out = key;
    return rc;
}

int plugin_pool_take(const struct rv_plugins *p, const struct rv_capability_config *which, const char *path,
                     struct rv_plugin_key **key, struct rv_plugin **out, rv_err **err)
{
    rv_plugin_pool *pool = p->pool;
    struct rv_plugin_key *wanted = NULL;
    bool is_held = false;

    int rc = new_key(p, which, &wanted, err);
    if (rc < 0)
        return rc;
    if (stat(path, &wanted->file) < 0) { /* to load it says what is wrong */
        plugin_key_free(wanted);
        return 0;
    }
    pthread_mutex_lock(&pool->lock);
    struct rv_plugin_key *found = find(pool, p, path, wanted, &is_held);
    if (found) {
        unlink_key(pool, found);
        found->next = pool->first;
        pool->first = found;
        found->n_users++;
        *out = found->plugin;
    }
    pthread_mutex_unlock(&pool->lock);
    if (found || is_held)
        plugin_key_free(wanted);
    else
        *key = wanted;
    close_superfluous(pool);
    return 0;
}

void plugin_pool_put(rv_plugin_pool *pool, struct rv_plugin *pl)
{
    struct rv_plugin_key *key = pl->key;

    key->plugin = pl;
    key->n_users = 1;
    pthread_mutex_lock(&pool->lock);
    key->next = pool->first;
    pool->first = key;
    pthread_mutex_unlock(&pool->lock);
}

void plugin_pool_return(rv_plugin_pool *pool, struct rv_plugin *pl)
{
    pthread_mutex_lock(&pool->lock);
    pl->key->n_users--;
    pthread_mutex_unlock(&pool->lock);
    close_superfluous(pool);
}
