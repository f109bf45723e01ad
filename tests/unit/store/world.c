#include "tests/unit/store/world.h"

#include <unistd.h>

#define MAX_FILE ((size_t)256 << 20)
#define NOBODY   65534

const struct rv_store_scope operator_scope = {NULL, NULL};
const struct rv_store_opts quick = {.sync = RV_STORE_SYNC_OFF, .busy_ms = 50};

int world_store(struct world *w, const char *path, const struct rv_store_opts *opts, rv_store **out)
{
    *out = NULL;
    return rv_store_open(path, opts, out, &w->err);
}

void world_open(struct world *w, int64_t n)
{
    *w = (struct world){.dir = rv_kit_tmpdir()};
    w->path = rv_kit_path(w->dir, "store.db");
    if (n >= 0)
        world_begin(w, n);
}

void world_begin(struct world *w, int64_t n)
{
    struct rv_store_new_run run;

    OK(world_store(w, w->path, &quick, &w->s));
    OK(rv_store_put_blob(w->s, RV_STR_LIT("bundle"), w->bundle, &w->err));
    run = (struct rv_store_new_run){.id = "r1",
                                    .user = "u",
                                    .session = "s",
                                    .pipeline = "p",
                                    .bundle = w->bundle,
                                    .status = RV_RUN_RUNNING,
                                    .stage = "a",
                                    .owner = "A",
                                    .now_us = T0,
                                    .lease_until_us = T0 + 100};
    OK(rv_store_create_run(w->s, &run, &w->err));
    for (int64_t seq = 1; seq <= n; seq++)
        OK(world_append(w, w->s, seq, 2000));
}

void world_close(struct world *w)
{
    rv_store_close(w->s);
    free(w->path);
    rv_kit_tmpdir_remove(w->dir);
    rv_err_free(w->err);
}

int world_append(struct world *w, rv_store *s, int64_t seq, size_t value_len)
{
    char *value = malloc(value_len + 1);
    struct rv_record r = {.seq = seq, .body = RV_STR_LIT("body"), .value = {value, value_len}};
    const struct rv_store_append a = {.run = "r1",
                                      .fence = 1,
                                      .records = &r,
                                      .n_records = 1,
                                      .now_us = T0 + seq,
                                      .status = RV_RUN_RUNNING,
                                      .stage = "a"};
    int rc;

    ck_assert_ptr_nonnull(value);
    for (size_t i = 0; i < value_len; i++)
        value[i] = (char)('a' + (i * 31 + (size_t)seq * (i + 7)) % 26);
    if (value_len > 20)
        snprintf(value, 20, "%019lld", (long long)seq);
    rc = rv_store_append(s, &a, &w->err);
    free(value);
    return rc;
}

static int count(void *self, const struct rv_record *r, rv_err **err)
{
    int64_t *n = self;

    (void)err;
    ++*n;
    ck_assert_int_eq(r->seq, *n);
    if (r->value.len > 20)
        ck_assert_int_eq(strtoll(r->value.ptr, NULL, 10), r->seq);
    return 0;
}

int64_t world_count(struct world *w, rv_store *s)
{
    int64_t n = 0;
    int rc = rv_store_read(s, &operator_scope, &(struct rv_record_range){.run = "r1", .from = 1}, count, &n, &w->err);

    return rc < 0 ? rc : n;
}

void must_ok(struct world *w, int rc, const char *what, int line)
{
    const rv_err *link = w->err;

    while (rv_err_cause(link))
        link = rv_err_cause(link);
    ck_assert_msg(rc == 0, "line %d: %s: %s: %s", line, what, rv_code_text(rc), rv_err_text(link));
}

void must_fail(struct world *w, int rc, int code, const char *part, const char *hint, int line)
{
    const rv_err *link = w->err;

    ck_assert_msg(rc == code, "line %d: %s, not %s: %s", line, rv_code_text(rc), rv_code_text(code),
                  rv_err_text(w->err));
    while (link && !strstr(rv_err_text(link), part))
        link = rv_err_cause(link);
    ck_assert_msg(link, "line %d: nothing about \"%s\": %s", line, part, rv_kit_err_take(w->err));
    ck_assert_msg(!hint || (rv_err_hint_text(link) && strstr(rv_err_hint_text(link), hint)), "line %d: the hint is %s",
                  line, rv_err_hint_text(link));
    rv_err_free(w->err);
    w->err = NULL;
}

rv_buf world_read(const char *path)
{
    rv_buf b = RV_BUF_INIT(MAX_FILE);

    ck_assert_int_eq(rv_file_read(path, &b, NULL), 0);
    return b;
}

void world_write(const char *path, rv_str bytes)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes.ptr, 1, bytes.len, f), bytes.len);
    ck_assert_int_eq(fclose(f), 0);
}

void world_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *said = NULL;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &said) == SQLITE_OK, "%s: %s", sql, said ? said : "");
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

void world_drop_root(struct world *w)
{
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown(w->dir, NOBODY, NOBODY), 0);
    if (access(w->path, F_OK) == 0)
        ck_assert_int_eq(chown(w->path, NOBODY, NOBODY), 0);
    ck_assert_int_eq(seteuid(NOBODY), 0);
}

void world_regain_root(void)
{
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
}
