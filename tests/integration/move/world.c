#include "tests/integration/move/world.h"

#include <sqlite3.h>

void world_open(struct world *w)
{
    *w = (struct world){.dir = rv_kit_tmpdir()};
}

void world_close(struct world *w)
{
    rv_kit_tmpdir_remove(w->dir);
}

char *world_url(struct world *w, enum kind kind)
{
    char name[20];

    if (kind == DATABASE)
        return rv_kit_postgres_url(rv_kit_postgres());
    snprintf(name, sizeof name, "%d.db", ++w->n);
    return rv_kit_path(w->dir, name);
}

rv_store *world_store(struct world *w, const char *url, bool takes_copy)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF, .takes_copy = takes_copy};
    rv_store *s = NULL;

    OK(rv_store_open(url, &opts, &s, &w->err));
    return s;
}

int world_copy(struct world *w, const char *from, const char *to, const struct rv_store_copy_opts *opts,
               struct rv_store_copied *out)
{
    static const struct rv_store_copy_opts plain = {.now_us = T0};
    rv_store *source = world_store(w, from, false), *target = world_store(w, to, true);

    int rc = rv_store_copy(source, target, opts ? opts : &plain, out, &w->err);
    rv_store_close(source);
    rv_store_close(target);
    return rc;
}

void must_ok(struct world *w, int rc, const char *what, int line)
{
    ck_assert_msg(rc == 0 && !w->err, "line %d: %s: %d %s", line, what, rc, w->err ? rv_kit_err_take(w->err) : "");
}

void must_fail(struct world *w, int rc, int code, const char *part, int line)
{
    const rv_err *link = w->err;

    ck_assert_msg(rc == code && w->err, "line %d: %d, not %d: %s", line, rc, code,
                  w->err ? rv_kit_err_take(w->err) : "no error");
    while (link && !strstr(rv_err_text(link), part))
        link = rv_err_cause(link);
    ck_assert_msg(link, "line %d: nothing about \"%s\": %s", line, part, rv_kit_err_take(w->err));
    rv_err_free(w->err);
    w->err = NULL;
}

void world_sql(const char *path, const char *sql)
{
    char *why = NULL;
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s: %s", sql, why);
    sqlite3_close(db);
}
