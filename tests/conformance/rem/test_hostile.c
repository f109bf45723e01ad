/* Statements that want more than to read: each is refused with the code of its line, on both databases, with a place. A
 * line of "bounded" passes: what it costs is for the limits of the executor, and that it has to be watched shows. */
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/rem/suites.h"
#include "tests/kit/kit.h"

struct count {
    int n, n_bounded;
};

static void expect(const char *code, const char *statement, enum rv_rem_backend backend)
{
    struct rv_rem_sql_opts opts = strict_options(backend);
    struct rv_rem_fault fault;
    struct rv_rem_sql sql;
    rv_err *err = NULL;
    int rc = rv_rem_write_sql(rv_str_of(statement), &opts, &sql, &fault, &err);

    if (strcmp(code, "bounded") == 0) {
        ck_assert_msg(rc == 0, "%s: %s", statement, rv_err_text(err));
        rv_rem_sql_fini(&sql);
        return;
    }
    ck_assert_msg(rc < 0, "%s: passes as %.*s", statement, rc < 0 ? 0 : RV_STR_ARG(sql.text));
    ck_assert_msg(strcmp(rv_rem_fault_text(fault.code), code) == 0, "%s: %s, not %s (%s)", statement,
                  rv_rem_fault_text(fault.code), code, rv_err_text(err));
    ck_assert(fault.line >= 1 && fault.col >= 1 && rv_err_text(err)[0]);
    rv_err_free(err);
}

static void check_line(void *self, char *line)
{
    struct count *count = self;
    char *tab = strchr(line, '\t');

    ck_assert_msg(tab != NULL, "no tab: %s", line);
    *tab = '\0';
    expect(line, tab + 1, RV_REM_SQLITE);
    expect(line, tab + 1, RV_REM_POSTGRES);
    count->n++;
    count->n_bounded += strcmp(line, "bounded") == 0;
}

START_TEST(what_is_hostile_is_refused_or_bounded)
{
    struct count count = {0, 0};

    each_line("hostile.txt", check_line, &count);
    ck_assert_int_ge(count.n, 300);
    ck_assert_int_le(count.n_bounded, 20);
}
END_TEST

/* The executor sees what needs its limits. */
START_TEST(what_may_be_large_says_so)
{
    struct rv_rem_sql_opts opts = strict_options(RV_REM_SQLITE);
    struct rv_rem_sql sql;

    ck_assert_int_eq(
        rv_rem_write_sql(RV_STR_LIT("WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) "
                                    "FROM n"),
                         &opts, &sql, NULL, NULL),
        0);
    ck_assert(sql.is_recursive && sql.n_sources == 2 && !sql.is_explain && !sql.may_write);
    rv_rem_sql_fini(&sql);
    ck_assert_int_eq(rv_rem_write_sql(RV_STR_LIT("SELECT count(*) FROM messages a, messages b, (SELECT 1 AS x) c"),
                                      &opts, &sql, NULL, NULL),
                     0);
    ck_assert(!sql.is_recursive && sql.n_sources == 3);
    rv_rem_sql_fini(&sql);
}
END_TEST

TCase *hostile_case(void)
{
    TCase *c = tcase_create("hostile");

    tcase_add_test(c, what_is_hostile_is_refused_or_bounded);
    tcase_add_test(c, what_may_be_large_says_so);
    return c;
}
