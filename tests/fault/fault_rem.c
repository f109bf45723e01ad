/* Each allocation of reading a query and a statement fails once: no crash, no leak, and the code says no memory. */
#include <stdlib.h>

#include "coreengine/rem/rem.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

static int parse(const char *text)
{
    struct rv_rem_opts opts = {.natural = RV_REM_NATURAL_SEARCH};
    struct rv_rem_fault fault;
    struct rv_rem_query q;
    rv_err *err = NULL;
    int rc;

    opts.tables = rv_rem_tables(&opts.n_tables);
    rc = rv_rem_parse(rv_str_of(text), &opts, &q, &fault, &err);
    rv_err_free(err);
    if (rc == 0)
        rv_rem_query_fini(&q);
    else if (rc == RV_E_NOMEM && fault.code != RV_REM_OK)
        return RV_E_INTERNAL;
    return rc;
}

static int check(const char *text, enum rv_rem_backend backend)
{
    struct rv_rem_sql_opts opts = {.backend = backend};
    struct rv_rem_fault fault;
    struct rv_rem_sql sql;
    rv_err *err = NULL;
    int rc;

    opts.tables = rv_rem_tables(&opts.n_tables);
    rc = rv_rem_write_sql(rv_str_of(text), &opts, &sql, &fault, &err);
    rv_err_free(err);
    if (rc == 0)
        rv_rem_sql_fini(&sql);
    return rc;
}

static int parse_modes(void)
{
    static const char *const texts[] = {"LOOKUP a, \"b, c\"",
                                        "SEARCH x FROM moments FIELD name limit=3",
                                        "FUZZY x table=y THRESHOLD 0.5",
                                        "TRAVERSE a LOAD",
                                        "SQL SELECT 1",
                                        "what's new"};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(texts); i++)
        rc = parse(texts[i]);
    return rc;
}

static const char statement[] =
    "WITH part(a, b) AS (SELECT name, 'x'::date_ FROM moments) SELECT 1"; /* cut below: an error path as well */

static int check_statements(void)
{
    static const char *const texts[] = {
        "SELECT metadata->'a'->>'b', LEFT(content, 3), created_at::date, now() - interval '1 day', "
        "AVG(latency_ms)::int FROM "
        "messages m WHERE content LIKE '%a\\_%' AND content ILIKE '%' || model AND 'x' = ANY(tags) AND created_at > "
        "'2026-01-01' ORDER BY id DESC OFFSET 2",
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 || 'x' FROM n) SELECT count(*), count(*) FROM n",
        "SELECT a.id AS \"A b\", date_trunc('day', b.created_at), round(2.5, 1), E'\\t' FROM messages a JOIN (SELECT * "
        "FROM "
        "moments) AS b USING (id)"};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < RV_COUNT(texts); i++) {
        rc = check(texts[i], RV_REM_SQLITE);
        if (rc == 0)
            rc = check(texts[i], RV_REM_POSTGRES);
    }
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {{"parse_modes", parse_modes},
                                                     {"check_statements", check_statements}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 5);
}
END_TEST

/* A fault keeps its code where the memory for its text fails. */
START_TEST(faults_need_no_memory)
{
    for (size_t n = 0; n < 40; n++) {
        rv_fault_arm(n);
        int rc = check(statement, RV_REM_SQLITE), rc2;
        (void)rv_fault_disarm();
        ck_assert(rc == RV_E_INVALID || rc == RV_E_NOMEM);
        rv_fault_arm(n);
        rc2 = parse("SEARCH a FROM nowhere");
        (void)rv_fault_disarm();
        ck_assert(rc2 == RV_E_NOT_FOUND || rc2 == RV_E_NOMEM);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_rem");
    TCase *c = tcase_create("loops");

    tcase_add_loop_test(c, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    tcase_add_test(c, faults_need_no_memory);
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}
