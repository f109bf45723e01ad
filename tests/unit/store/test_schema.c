/* Schema versions: older files come forward as a whole or not at all, newer ones are left alone. */
#include "coreengine/store/sqlite/sqlite_internal.h"
#include "tests/unit/store/world.h"

/* What a later version of the program would bring: the present schema and two steps more. */
static const char *later[RV_SQLITE_SCHEMA + 2];
static int n_later;

static void plan(const char *step_1, const char *step_2)
{
    n_later = RV_SQLITE_SCHEMA + 2;
    memcpy(later, store_sqlite_schema, RV_SQLITE_SCHEMA * sizeof *later);
    later[RV_SQLITE_SCHEMA] = step_1;
    later[RV_SQLITE_SCHEMA + 1] = step_2;
}

/* The text with the present version for @, the next for %, and the one after it for ^. */
static const char *said(const char *format)
{
    static char text[200];
    rv_buf b = RV_BUF_INIT(sizeof text - 1);

    for (; *format; format++) {
        if (*format == '@')
            rv_buf_printf(&b, "%d", RV_SQLITE_SCHEMA);
        else if (*format == '%')
            rv_buf_printf(&b, "%d", RV_SQLITE_SCHEMA + 1);
        else if (*format == '^')
            rv_buf_printf(&b, "%d", RV_SQLITE_SCHEMA + 2);
        else
            rv_buf_putc(&b, *format);
    }
    snprintf(text, sizeof text, "%s", rv_buf_cstr(&b));
    rv_buf_fini(&b);
    return text;
}

static int bring_forward(struct world *w, bool read_only)
{
    struct sqlite st = {
        .base = {.driver = &sqlite_driver, .path = w->path}, .link = &st.own, .busy_ms = 50, .read_only = read_only};
    int rc;

    ck_assert_int_eq(sqlite3_open(w->path, &st.own.db), SQLITE_OK);
    rc = sqlite_bring_forward(&st, NULL, later, n_later, &w->err);
    sqlite_disconnect(&st.own);
    return rc;
}

static void at_present(struct world *w)
{
    world_open(w, 5);
    rv_store_close(w->s);
    w->s = NULL;
}

/* Say that it is what it is. */
static void present(struct world *w)
{
    world_sql(w->path, said("PRAGMA user_version = @"));
}

START_TEST(an_older_file_comes_forward_with_what_it_holds)
{
    struct world world, *w = &world;

    at_present(w);
    plan("ALTER TABLE runs ADD COLUMN note TEXT", "UPDATE runs SET note = 'was here'; CREATE TABLE extra (x)");
    OK(bring_forward(w, false));
    world_sql(w->path, "INSERT INTO extra SELECT note FROM runs WHERE note = 'was here'");
    OK(bring_forward(w, false)); /* nothing is left to do */
    FAILS(RV_E_VERSION, said("schema version ^, this program knows versions up to @"), "newer program",
          world_store(w, w->path, &quick, &w->s));
    world_sql(w->path, "DROP TABLE extra; ALTER TABLE runs DROP COLUMN note");
    present(w);
    OK(world_store(w, w->path, &quick, &w->s));
    ck_assert_int_eq(world_count(w, w->s), 5);
    world_close(w);
}
END_TEST

START_TEST(a_step_that_fails_leaves_the_file_as_it_was)
{
    struct world world, *w = &world;

    at_present(w);
    plan("ALTER TABLE runs ADD COLUMN note TEXT", "INSERT INTO nowhere VALUES (1)");
    FAILS(RV_E_IO, said("from schema version % to ^"), NULL, bring_forward(w, false));
    OK(world_store(w, w->path, &quick, &w->s));
    ck_assert_int_eq(world_count(w, w->s), 5);
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_reader_does_not_bring_a_file_forward)
{
    struct world world, *w = &world;

    at_present(w);
    plan("CREATE TABLE extra (x)", "CREATE TABLE more (x)");
    FAILS(RV_E_VERSION, said("schema version @, this program reads version ^"), "for writing", bring_forward(w, true));
    OK(world_store(w, w->path, &(struct rv_store_opts){.read_only = true}, &w->s));
    ck_assert_int_eq(world_count(w, w->s), 5);
    world_close(w);
}
END_TEST

START_TEST(a_fresh_file_takes_all_steps)
{
    struct world world, *w = &world;

    world_open(w, -1);
    plan("CREATE TABLE extra (x)", "CREATE TABLE more (x)");
    OK(bring_forward(w, false));
    world_sql(w->path, "INSERT INTO more VALUES (1); INSERT INTO extra VALUES (1)");
    world_close(w);
}
END_TEST

static int add_row(void *text, int n, char **values, char **names)
{
    (void)names;
    for (int i = 0; i < n; i++)
        rv_buf_printf(text, "%s|", values[i] ? values[i] : "-");
    rv_buf_putc(text, '\n');
    return 0;
}

/* The tables of a store that is made with \a tables, and the rows it begins with. */
static rv_buf made(const char *tables)
{
    static const char *const asked[] = {
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name",
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY rowid", /* which of two is newer */
        "SELECT name, value FROM counters ORDER BY name",
        "SELECT name, length(value) FROM about ORDER BY name",
        "PRAGMA application_id",
        "PRAGMA user_version",
        "PRAGMA auto_vacuum"};
    struct sqlite st = {.base = {.driver = &sqlite_driver, .path = ":memory:"}, .link = &st.own};
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;

    ck_assert_int_eq(sqlite3_open(":memory:", &st.own.db), SQLITE_OK);
    ck_assert_int_eq(sqlite_bring_forward(&st, tables, store_sqlite_schema, RV_SQLITE_SCHEMA, &err), 0);
    for (size_t i = 0; i < RV_COUNT(asked); i++)
        ck_assert_int_eq(sqlite3_exec(st.own.db, asked[i], add_row, &text, NULL), SQLITE_OK);
    sqlite_disconnect(&st.own);
    ck_assert_int_eq(text.rc, 0);
    return text;
}

START_TEST(a_store_made_at_once_is_one_that_took_all_steps)
{
    rv_buf at_once = made(sqlite_tables), by_steps = made(NULL);
    const char *a = rv_buf_cstr(&at_once), *b = rv_buf_cstr(&by_steps);
    size_t same = 0;

    while (a[same] && a[same] == b[same])
        same++;
    ck_assert_msg(a[same] == b[same], "at once: %.300s\n\nby steps: %.300s", a + same - (same < 100 ? same : 100),
                  b + same - (same < 100 ? same : 100));
    ck_assert_uint_gt(at_once.len, 10000);
    rv_buf_fini(&at_once);
    rv_buf_fini(&by_steps);
}
END_TEST

START_TEST(a_newer_file_is_refused_and_not_touched)
{
    static const struct rv_store_opts opts[] = {{.busy_ms = 50}, {.read_only = true}};
    struct world world, *w = &world;

    at_present(w);
    world_sql(w->path, said("PRAGMA user_version = %"));
    for (size_t i = 0; i < RV_COUNT(opts); i++)
        FAILS(RV_E_VERSION, said("schema version %, this program knows versions up to @"), "newer program",
              world_store(w, w->path, &opts[i], &w->s));
    present(w);
    OK(world_store(w, w->path, &quick, &w->s));
    ck_assert_int_eq(world_count(w, w->s), 5);
    world_close(w);
}
END_TEST

START_TEST(a_database_of_another_program_is_refused_and_not_touched)
{
    struct world world, *w = &world;
    rv_buf before, after;

    world_open(w, -1);
    world_sql(w->path, "CREATE TABLE theirs (x)");
    before = world_read(w->path);
    FAILS(RV_E_INVALID, "not a store", "another file", world_store(w, w->path, &quick, &w->s));
    after = world_read(w->path);
    ck_assert(rv_str_eq(rv_buf_str(&before), rv_buf_str(&after)));
    rv_buf_fini(&before);
    rv_buf_fini(&after);
    world_close(w);
}
END_TEST

Suite *schema_suite(void)
{
    Suite *suite = suite_create("schema");
    TCase *tc = tcase_create("schema");

    tcase_add_test(tc, an_older_file_comes_forward_with_what_it_holds);
    tcase_add_test(tc, a_step_that_fails_leaves_the_file_as_it_was);
    tcase_add_test(tc, a_reader_does_not_bring_a_file_forward);
    tcase_add_test(tc, a_fresh_file_takes_all_steps);
    tcase_add_test(tc, a_store_made_at_once_is_one_that_took_all_steps);
    tcase_add_test(tc, a_newer_file_is_refused_and_not_touched);
    tcase_add_test(tc, a_database_of_another_program_is_refused_and_not_touched);
    suite_add_tcase(suite, tc);
    return suite;
}
