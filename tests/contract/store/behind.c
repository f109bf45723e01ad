/* Statements on the tables behind a store: by SQLite's library, or by psql. */
#include "tests/contract/store/behind.h"

#include <sqlite3.h>

#include "tests/kit/postgres.h"

static int put_row(void *self, int n, char **cells, char **names)
{
    (void)names;
    for (int i = 0; i < n; i++)
        rv_buf_printf(self, "%s%s", i ? "|" : "", cells[i] ? cells[i] : "");
    rv_buf_puts(self, "\n");
    return 0;
}

static char *ask_file(const char *path, const char *sql)
{
    rv_buf rows = RV_BUF_INIT(1 << 20);
    sqlite3 *db = NULL;
    char *why = NULL;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_busy_timeout(db, 60000), SQLITE_OK);
    int rc = sqlite3_exec(db, sql, put_row, &rows, &why);
    ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, why);
    sqlite3_close(db);
    rv_buf_puts(&rows, "");
    return rv_buf_steal(&rows, NULL);
}

char *world_sql(struct world *w, const char *sql)
{
    const char *schema = strstr(w->url, "schema=");

    if (!w->impl->is_shared)
        return rv_str_dup(RV_STR_LIT(""));
    if (!schema)
        return ask_file(strchr(w->url, ':') + 1, sql);
    rv_buf text = RV_BUF_INIT(1 << 16);
    rv_buf_printf(&text, "SET search_path = %s; %s", schema + strlen("schema="), sql);
    char *rows = rv_kit_postgres_sql(rv_kit_postgres(), rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return rows;
}
