/* The handle of a store: the one place that opens it, passes the fault points, guards against calls that do not fit
 * (writes to a read-only store, calls from within a walk), repeats a write and makes several writes one. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/search/search_internal.h"
#include "coreengine/store/sql/driver_internal.h"
#include "coreengine/store/store_internal.h"
#include "coreengine/store/upkeep.h"

#define MAX_POINT 64 /* bytes of a fault point's name: they are literals of ours, of two words */
/* that a probe writes and removes: more than a page, so that a full disk refuses them */
#define PROBE_BYTES ((size_t)64 << 10)

/* "get run" as "get_run", or "get_run.done". */
static int pass(rv_store *s, const char *end, rv_err **err)
{
    char point[MAX_POINT];

    if (!s->faults.at)
        return 0;
    snprintf(point, sizeof point, "%s%s", s->op, end);
    for (char *space = point; (space = strchr(space, ' '));)
        *space = '_';
    return s->faults.at(s->faults.self, point, err);
}

static int enter(rv_store *s, const char *op, rv_err **err)
{
    if (s->is_walking)
        return RV_FAIL(err, RV_E_STATE, "store \"%s\": one of its callbacks may not use it", s->url);
    s->op = op;
    return pass(s, "", err);
}

static int enter_write(rv_store *s, const char *op, rv_err **err)
{
    if (s->opts.read_only)
        return RV_FAIL(err, RV_E_DENIED, "store \"%s\" is open for reading only", s->url);
    return enter(s, op, err);
}

static int leave(rv_store *s, int rc, rv_err **err)
{
    return rc == 0 ? pass(s, ".done", err) : rc;
}

static int leave_write(rv_store *s, int rc, rv_err **err)
{
    if ((rc == RV_E_DISK || rc == RV_E_IO || (rc == RV_E_DENIED && s->sql->is_denied)) && s->opts.health)
        __atomic_store_n(&s->opts.health->refused, rc, __ATOMIC_SEQ_CST);
    return leave(s, rc, err);
}

int store_enter_read(rv_store *s, int rc, const char *op, rv_err **err)
{
    if (rc < 0)
        return RV_WRAP(err, rc, "%s", op);
    rc = enter(s, op, err);
    s->is_walking = s->is_walking || rc == 0;
    return rc;
}

int store_leave_read(rv_store *s, int rc, rv_err **err)
{
    s->is_walking = false;
    return leave(s, rc, err);
}

int store_enter_write(rv_store *s, int rc, const char *op, rv_err **err)
{
    if (rc < 0)
        return RV_WRAP(err, rc, "%s", op);
    rc = enter_write(s, op, err);
    if (rc == 0)
        rc = sql_begin_write(s->sql, op, err);
    s->is_writing = rc == 0;
    return rc;
}

bool store_repeats(rv_store *s, int *rc, rv_err **err)
{
    s->is_writing = false;
    *rc = sql_end_write(s->sql, *rc, s->op, err);
    if (*rc >= 0 || s->in_group || !sql_again(s->sql, err))
        return false;
    *rc = sql_begin_write(s->sql, s->op, err);
    s->is_writing = *rc == 0;
    return *rc == 0;
}

int store_leave_write(rv_store *s, int rc, rv_err **err)
{
    assert(!s->is_writing); /* store_repeats() has ended it */
    return leave_write(s, rc, err);
}

/* --- Opening --- */

enum store_kind { STORE_MEMORY, STORE_FILE, STORE_POSTGRES };

/* What stands behind the kind may be a password, and is not shown. */
static int fail_kind(rv_str kind, rv_err **err)
{
    static const char *const kinds[] = {"sqlite", "postgres", "postgresql", "memory"};
    const char *near = rv_nearest(kind, kinds, RV_COUNT(kinds));

    int rc = RV_FAIL(err, RV_E_INVALID, "there is no store of kind \"%.*s\"", (int)kind.len, kind.ptr);
    if (!near)
        rv_err_set_hint(
            err, "use a file, sqlite:FILE or postgres://USER@HOST:PORT/DATABASE; write ./ in front of the name of "
                 "a file that has a colon");
    else
        rv_err_set_hint(err, "did you mean %s? write ./ in front of the name of a file that has a colon",
                        near == kinds[0]   ? "sqlite:FILE"
                        : near == kinds[3] ? "memory:"
                                           : "postgres://USER@HOST:PORT/DATABASE");
    return rc;
}

/* "word:" names a kind of stores, known or not; a path may contain a colon after anything else. */
static int kind_of(const char *url, enum store_kind *kind, const char **path, rv_err **err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strspn(url, letters);

    *path = url;
    if (rv_store_is_postgres(url)) {
        *kind = STORE_POSTGRES;
        return 0;
    }
    if (strcmp(url, "memory:") == 0) {
        *kind = STORE_MEMORY;
        return 0;
    }
    if (strncmp(url, "sqlite:", 7) == 0)
        *path = url + 7;
    else if (n > 0 && url[n] == ':')
        return fail_kind((rv_str){url, n}, err);
    if (!**path)
        return RV_FAIL(err, RV_E_INVALID, "store \"%s\" names no file", url);
    *kind = STORE_FILE;
    return 0;
}

static int open_kind(rv_store *s, enum store_kind kind, const char *path, rv_err **err)
{
    if (kind == STORE_POSTGRES)
        return postgres_open(s->source, s->url, &s->opts, &s->sql, err);
    return sqlite_open(kind == STORE_MEMORY ? NULL : path, &s->opts, &s->sql, err);
}

/* Half of a store would look like a whole one. */
static int check_whole(rv_store *s, rv_err **err)
{
    rv_buf from = RV_BUF_INIT(2 * (size_t)RV_STORE_MAX_URL);

    int rc = store_about_get(s->sql, "copy_from", &from, err);
    if (rc == 0 && from.len > 0)
        rc = store_fail_half(s->sql, rv_buf_cstr(&from), err);
    rv_buf_fini(&from);
    if (rc < 0)
        sql_close(s->sql);
    return rc;
}

static void destroy(rv_store *s)
{
    if (s)
        free(s->url);
    if (s)
        free(s->source);
    free(s);
}

static rv_store *new_store(const char *url, const struct rv_store_opts *opts)
{
    rv_buf shown = RV_BUF_INIT(RV_STORE_MAX_URL + 1);
    rv_store *s = calloc(1, sizeof *s);

    rv_store_show_url(url, &shown);
    if (s) {
        s->opts = *opts;
        s->opts.ring = NULL; /* the connection has the reference */
        s->source = rv_str_dup(rv_str_of(url));
        s->url = rv_buf_steal(&shown, NULL);
    }
    rv_buf_fini(&shown);
    if (s && s->source && s->url)
        return s;
    destroy(s);
    return NULL;
}

static int check_open(const char *url, const struct rv_store_opts *opts, rv_err **err)
{
    if (!url || !*url)
        return RV_FAIL(err, RV_E_INVALID, "no store given");
    if (strnlen(url, RV_STORE_MAX_URL + 1) > RV_STORE_MAX_URL)
        return RV_FAIL(err, RV_E_LIMIT, "store \"%.*s...\": a name of more than %d bytes",
                       rv_store_is_postgres(url) ? 11 : 40, url, RV_STORE_MAX_URL);
    if (opts->busy_ms < 0)
        return RV_FAIL(err, RV_E_INVALID, "a store with busy_ms %lld", (long long)opts->busy_ms);
    return 0;
}

/* Opening failed: by `rc`. A program that can do nothing without the store tells this from a failure on the way: that
 * is RV_E_UNAVAILABLE, the code of the whole. The link below keeps that of what was refused, such as RV_E_IO of a
 * server that does not answer; --debug shows both. */
static int fail_open(const char *shown, int rc, rv_err **err)
{
    size_t len = strlen(shown);
    const char *cause = err ? rv_err_text(*err) : "";
    const char *named = cause[0] == '"' ? cause + 1 : cause;
    if (strncmp(named, "./", 2) == 0 && strncmp(shown, "./", 2) != 0)
        named += 2; /* as SQLite is told the name */
    bool is_named = cause[0] == '"' && strncmp(named, shown, len) == 0 && named[len] == '"';
    int code = rc == RV_E_IO || rc == RV_E_TIMEOUT ? RV_E_UNAVAILABLE : rc;

    return is_named ? RV_WRAP(err, code, "open store") : RV_WRAP(err, code, "open store \"%s\"", shown);
}

int rv_store_open(const char *url, const struct rv_store_opts *opts, rv_store **out, rv_err **err)
{
    static const struct rv_store_opts defaults = {0};
    enum store_kind kind;
    const char *path = NULL;
    int rc;

    if (!opts)
        opts = &defaults;
    rc = check_open(url, opts, err);
    if (rc < 0)
        return rc;
    rc = kind_of(url, &kind, &path, err);
    if (rc < 0)
        return rc;
    rv_store *s = new_store(url, opts);
    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "open a store");
    rc = open_kind(s, kind, path, err);
    if (rc == 0)
        s->sql->ring = store_keyring_ref(opts->ring);
    if (rc == 0 && kind > 0 && !opts->takes_copy)
        rc = check_whole(s, err);
    if (rc == 0 && kind > 0 && !opts->takes_copy && !opts->read_only) {
        rc = store_keys_catch_up(s->sql, err);
        if (rc < 0)
            sql_close(s->sql);
    }
    if (rc < 0) {
        rc = fail_open(s->url, rc, err);
        destroy(s);
        return rc;
    }
    *out = s;
    return 0;
}

bool rv_store_is_memory(const rv_store *s)
{
    return strcmp(s->url, "memory:") == 0;
}

int rv_store_reopen(const rv_store *s, rv_store **out, rv_err **err)
{
    struct rv_store_opts opts = s->opts;

    if (rv_store_is_memory(s)) {
        int rc = RV_FAIL(err, RV_E_STATE, "the store \"memory:\" serves one thread only");
        rv_err_set_hint(err, "name a file or a database: --store FILE");
        return rc;
    }
    opts.ring = s->sql->ring;
    opts.must_exist = true;
    int rc = rv_store_open(s->source, &opts, out, err);
    if (rc == 0)
        (*out)->faults = s->faults;
    return rc;
}

void rv_store_close(rv_store *s)
{
    if (!s)
        return;
    store_search_cache_free(s->searched);
    sql_close(s->sql);
    destroy(s);
}

void rv_store_defer_sync(rv_store *s, bool defers)
{
    if (s->sql->driver->defer_sync)
        s->sql->driver->defer_sync(s->sql, defers);
}

void rv_store_set_wait(rv_store *s, int64_t ms)
{
    sql_set_wait(s->sql, ms > 0 ? ms : 0);
}

/* text NULL: what was written goes. */
static int write_probe(rv_store *s, const char *text, rv_err **err)
{
    int rc = store_enter_write(s, 0, "probe", err);

    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, text ? SQL_SET_ABOUT : SQL_DROP_PROBE);
        if (text) {
            store_sql_text(stmt, 1, "probe");
            store_sql_text(stmt, 2, text);
        }
        rc = sql_run(stmt, "probe", err);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

int rv_store_probe(rv_store *s, rv_err **err)
{
    char *text = malloc(PROBE_BYTES + 1);
    int before = s->opts.health ? __atomic_load_n(&s->opts.health->refused, __ATOMIC_SEQ_CST) : 0;

    if (!text)
        return RV_FAIL(err, RV_E_NOMEM, "probe the store");
    memset(text, 'x', PROBE_BYTES);
    text[PROBE_BYTES] = '\0';
    int rc = write_probe(s, text, err);
    free(text);
    if (rc == 0)
        rc = write_probe(s, NULL, err);
    if (rc == 0 && before != 0) /* what was refused meanwhile stays */
        __atomic_compare_exchange_n(&s->opts.health->refused, &before, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return rc;
}

const char *rv_store_url(const rv_store *s)
{
    return s->url;
}

void rv_store_set_faults(rv_store *s, struct rv_store_faults faults)
{
    s->faults = faults;
}

/* --- Groups --- */

int rv_store_begin(rv_store *s, rv_err **err)
{
    int rc;

    if (s->in_group)
        return RV_FAIL(err, RV_E_STATE, "store \"%s\": a group is open already", s->url);
    if ((rc = enter_write(s, "begin", err)) != 0)
        return rc;
    rc = sql_begin(s->sql, err);
    s->in_group = rc == 0;
    rc = leave_write(s, rc, err);
    if (rc != 0)
        rv_store_rollback(s); /* a caller that gets the error will not end it */
    return rc;
}

int rv_store_commit(rv_store *s, rv_err **err)
{
    int rc;

    if (!s->in_group)
        return RV_FAIL(err, RV_E_STATE, "store \"%s\": no group is open", s->url);
    rc = enter_write(s, "commit", err);
    if (rc != 0) {
        rv_store_rollback(s); /* a commit that fails leaves nothing of the group */
        return rc;
    }
    s->in_group = false;
    return leave_write(s, sql_commit(s->sql, err), err);
}

void rv_store_rollback(rv_store *s)
{
    if (s->in_group && !s->is_walking)
        sql_rollback(s->sql);
    s->in_group = s->in_group && s->is_walking;
}

int rv_store_end(rv_store *s, int rc, rv_err **err)
{
    if (rc == 0)
        return rv_store_commit(s, err);
    rv_store_rollback(s);
    return rc;
}

bool rv_store_wait_again(rv_store *s, rv_err **err)
{
    return !s->in_group && sql_again(s->sql, err);
}

bool rv_store_has_one_writer(const rv_store *s)
{
    return s->sql->driver->has_one_writer;
}

static int hold_name(struct sql_store *st, const char *name, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_HOLD_NAME);

    store_sql_text(stmt, 1, name);
    int rc = sql_step(stmt, "hold a name", err);
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int rv_store_hold_name(rv_store *s, const char *name, rv_err **err)
{
    int rc;

    if (!s->in_group)
        return RV_FAIL(err, RV_E_STATE, "store \"%s\": no group is open", s->url);
    rc = enter_write(s, "hold name", err);
    return rc != 0 ? rc : leave_write(s, hold_name(s->sql, name, err), err);
}

bool rv_store_is_in_group(const rv_store *s)
{
    return s->in_group;
}

/* --- Hearing of work --- */

int rv_store_listen(rv_store *s, int *fd, rv_err **err)
{
    int got = -1, rc = enter(s, "listen", err);

    if (rc != 0)
        return rc;
    if (s->sql->driver->listen)
        rc = s->sql->driver->listen(s->sql, &got, err);
    rc = leave(s, rc, err);
    if (rc == 0)
        *fd = got;
    return rc;
}

int rv_store_was_notified(rv_store *s, bool *heard, rv_err **err)
{
    int rc = enter(s, "heard", err);

    if (rc != 0)
        return rc;
    bool got = s->sql->driver->heard && s->sql->driver->heard(s->sql);
    rc = leave(s, 0, err);
    if (rc == 0)
        *heard = got;
    return rc;
}

/* --- Upkeep --- */

/* Upkeep looks at the file as a whole, which is not what it will be while a group is open. */
static int enter_alone(rv_store *s, const char *op, rv_err **err)
{
    if (s->in_group)
        return RV_FAIL(err, RV_E_STATE, "store \"%s\": not before the group is committed", s->url);
    return enter(s, op, err);
}

int rv_store_read_stats(rv_store *s, struct rv_store_stats *out, rv_err **err)
{
    struct rv_store_stats got = {0};
    int rc = store_enter_read(s, 0, "stats", err);

    if (rc != 0)
        return rc;
    rc = store_leave_read(s, store_upkeep_stats(s->sql, &got, err), err);
    if (rc == 0)
        *out = got;
    return rc;
}

int rv_store_sweep(rv_store *s, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err)
{
    int64_t got = 0;
    int rc;

    if (now_us < 0 || grace_us < 0)
        return RV_FAIL(err, RV_E_INVALID, "sweep: neither time nor grace can be negative");
    if (s->opts.read_only)
        return RV_FAIL(err, RV_E_DENIED, "store \"%s\" is open for reading only", s->url);
    if ((rc = enter_alone(s, "sweep", err)) != 0)
        return rc;
    rc = leave(s, store_upkeep_sweep(s->sql, now_us, grace_us, &got, err), err);
    if (rc == 0 && freed)
        *freed = got;
    return rc;
}

int rv_store_check(rv_store *s, rv_err **err)
{
    int rc = enter_alone(s, "check", err);

    return rc != 0 ? rc : leave(s, store_upkeep_check(s->sql, err), err);
}

/* A backup is named as any store is. */
static int find_backup(const char *url, const char **path, rv_err **err)
{
    enum store_kind kind = STORE_FILE;
    int rc = check_open(url, &(const struct rv_store_opts){0}, err);

    if (rc == 0)
        rc = kind_of(url, &kind, path, err);
    if (rc < 0 || kind == STORE_FILE)
        return rc;
    RV_FAIL(err, RV_E_INVALID, "a backup is a file, not %s", kind == STORE_POSTGRES ? "a database" : "memory");
    rv_err_set_hint(err, "name a file; `reeve store copy` copies a store into a database");
    return RV_E_INVALID;
}

int rv_store_backup(rv_store *s, const char *url, rv_err **err)
{
    const char *path = NULL;
    int rc = find_backup(url, &path, err);

    if (rc == 0)
        rc = enter_alone(s, "backup", err);
    if (rc != 0)
        return rc;
    rc = s->sql->driver->backup ? s->sql->driver->backup(s->sql, path, err) : store_upkeep_back_up(s->sql, path, err);
    return leave(s, rc, err);
}

int rv_store_copy(rv_store *from, rv_store *to, const struct rv_store_copy_opts *opts, struct rv_store_copied *out,
                  rv_err **err)
{
    if (from == to)
        return RV_FAIL(err, RV_E_STATE, "copy of store \"%s\" into itself", from->url);
    if (to->opts.read_only)
        return RV_FAIL(err, RV_E_DENIED, "store \"%s\" is open for reading only", to->url);
    int rc = enter_alone(from, "copy", err);
    if (rc == 0)
        rc = enter_alone(to, "copy", err);
    if (rc != 0)
        return rc;
    from->is_walking = to->is_walking = true;
    rc = store_copy_rows(from->sql, to->sql, opts, out, err);
    from->is_walking = to->is_walking = false;
    return leave(to, rc, err);
}

int rv_store_list_leased(rv_store *from, const struct rv_store_copy_opts *opts, rv_err **err)
{
    int rc = store_enter_read(from, 0, "list leased", err);

    return rc != 0 ? rc : store_leave_read(from, store_copy_list_leased(from->sql, opts, err), err);
}

int rv_store_read_version(const char *url, struct rv_store_version *out, rv_err **err)
{
    static const struct rv_store_opts none = {0};
    rv_buf shown = RV_BUF_INIT(RV_STORE_MAX_URL + 1);
    enum store_kind kind;
    const char *path;

    int rc = check_open(url, &none, err);
    if (rc == 0)
        rc = kind_of(url, &kind, &path, err);
    if (rc < 0)
        return rc;
    if (kind == STORE_MEMORY)
        return RV_FAIL(err, RV_E_INVALID, "store \"%s\" is made when it is opened", url);
    rv_store_show_url(url, &shown);
    rc = rv_buf_check(&shown, "URL", err);
    if (rc == 0)
        rc = kind == STORE_POSTGRES ? postgres_look(url, rv_buf_cstr(&shown), out, err) : sqlite_look(path, out, err);
    if (rc < 0)
        rc = fail_open(rv_buf_cstr(&shown), rc, err);
    rv_buf_fini(&shown);
    return rc;
}
