/* Each allocation of what a capability asks for fails once: making the job, a handle of the store, the answer. No
 * crash, no leak; the code is RV_E_NOMEM, or the answer is whole. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/app/app.h"
#include "coreengine/store/store.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define MINE "55555555-5555-4555-8555-555555555555"
#define EDGE "[{\"target\": \"second\", \"weight\": 0.5}]"

static const struct {
    const char *service, *args;
    bool is_read; /* its answer is always the same */
} asks[] = {
    {"agents.save",
     "{\"document\": \"description: You sing.\", \"name\": \"bard\", \"tags\": [\"art\"], \"overwrite\": true}", false},
    {"agents.save", "{\"document\": \"{name: poet, description: You write.}\", \"description\": \"p\"}", false},
    {"entities.put",
     "{\"kind\": \"moments\", \"rows\": [{\"name\": \"m\", \"topic_tags\": [\"a\"]}], \"links\": "
     "[{\"kind\": \"resources\", \"id\": \"" MINE "\", \"edges\": " EDGE "}]}",
     false},
    {"entities.put",
     "{\"kind\": \"moments\", \"rows\": [{\"name\": \"v\"}], \"versions\": [null], \"merges\": "
     "[{\"kind\": \"resources\", \"id\": \"" MINE "\", \"patch\": {\"d\": 1}}]}",
     false},
    {"entities.put", "{\"kind\": \"moments\", \"rows\": [{\"name\": \"n\"}], \"versions\": [\"x\"]}", false},
    {"entities.merge_edges", "{\"kind\": \"resources\", \"id\": \"" MINE "\", \"edges\": " EDGE "}", false},
    {"entities.merge_metadata",
     "{\"kind\": \"resources\", \"id\": \"" MINE "\", \"patch\": {\"a\": {\"b\": 1}}, \"remove\": [\"c\"]}", false},
    {"entities.get", "{\"kind\": \"files\", \"id\": \"" MINE "\"}", true},
    {"entities.find",
     "{\"kind\": \"files\", \"where\": {\"name\": \"Filed\"}, \"tags\": [], \"columns\": [\"name\"], \"since\": "
     "\"2020-01-01\"}",
     true},
    {"entities.find", "{\"kind\": \"files\", \"nam\": 1}", false},
    {"entities.lookup", "{\"name\": \"filed\"}", true},
    {"query", "{\"text\": \"LOOKUP filed, nothing\"}", true},
    {"query", "{\"text\": \"FUZZY filed\"}", true},
    {"query", "{\"text\": \"SEARCH old boats FROM resources\"}", false},
    {"query", "{\"text\": \"TRAVERSE first DEPTH 2 LOAD\"}", false},
    {"query", "{\"text\": \"SELECT name, created_at FROM files ORDER BY name\"}", true},
    {"query", "{\"text\": \"SELECT nothing FROM files\"}", false},
    {"schedules.add", "{\"name\": \"daily\", \"type\": \"mail\", \"cron\": \"0 8 * * *\", \"replace\": true}", false},
    {"schedules.list", "{}", false},
    {"tasks.add", "{\"type\": \"mail\", \"payload\": {\"to\": \"bob\"}}", false},
    {"quotas.take", "{\"kind\": \"web_searches\"}", false},
    {"files.read", "{\"uri\": \"notes/plan.md\"}", true},
    {"files.read", "{\"uri\": \"notes/../plan.md\"}", false},
};

struct place {
    char *dir, *store, *files, *quotas;
};

static void put(rv_store *s, const char *kind, const char *text)
{
    const struct rv_store_scope scope = {NULL, "ada"};
    json_object *row = NULL;
    struct rv_entities_put what = {.kind = kind, .rows = &row, .n_rows = 1, .now_us = INT64_C(1700000000000000)};

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &row, NULL), 0);
    ck_assert_int_eq(rv_store_put_entities(s, &scope, &what, NULL, NULL), 0);
    json_object_put(row);
}

static void make_place(struct place *p)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_store *s = NULL;

    p->dir = rv_kit_tmpdir();
    p->store = rv_kit_path(p->dir, "store.db");
    p->files = rv_kit_path(p->dir, "{user}");
    p->quotas = rv_kit_path(p->dir, "quotas.yaml");
    rv_kit_write(p->quotas, "plans:\n  free: {quotas: {web_searches: {day: 1000000}}}\ndefault: free\n");
    char *ada = rv_kit_path(p->dir, "ada"), *notes = rv_kit_path(p->dir, "ada/notes");
    char *plan = rv_kit_path(p->dir, "ada/notes/plan.md");
    ck_assert_int_eq(mkdir(ada, 0700) + mkdir(notes, 0700), 0);
    rv_kit_write(plan, "# Plan\n");
    free(ada);
    free(notes);
    free(plan);
    ck_assert_int_eq(rv_store_open(p->store, &opts, &s, NULL), 0);
    put(s, "files", "{\"id\": \"" MINE "\", \"name\": \"Filed\", \"uri\": \"f.txt\", \"metadata\": {\"a\": 1}}");
    put(s, "resources",
        "{\"id\": \"" MINE "\", \"name\": \"First\", \"content\": \"old boats\", \"graph_edges\": " EDGE "}");
    put(s, "resources", "{\"name\": \"Second\", \"content\": \"old bridges\"}");
    rv_store_close(s);
}

static void free_place(struct place *p)
{
    rv_kit_tmpdir_remove(p->dir);
    free(p->store);
    free(p->files);
    free(p->quotas);
}

/* Two asks: the second one uses the handle that the first one leaves. */
static int scenario(const struct place *p, size_t i, rv_buf *answer)
{
    const struct rv_app app = {.store = p->store, .sync = "off", .files = p->files, .quotas = p->quotas};
    const struct rv_service_ask ask = {.service = asks[i].service,
                                       .args = rv_str_of(asks[i].args),
                                       .capability = "any",
                                       .entry = "any",
                                       .user_id = "ada",
                                       .key = "call-1"};
    struct rv_app_services services;
    rv_err *err = NULL;
    int rc = 0;

    rv_app_services_init(&services, &app);
    for (int n = 0; n < 2 && rc == 0; n++) {
        struct rv_service_job *job = NULL;
        rv_buf_clear(answer);
        rc = services.exec.make(services.exec.self, &ask, NULL, &job, &err);
        if (rc == 0)
            rc = job->run(job, answer, &err);
        if (job)
            job->free(job);
        if (rc == 0)
            rc = rv_buf_check(answer, "answer", &err);
    }
    rv_app_services_fini(&services);
    if (rc < 0 && rv_err_is(err, RV_E_NOMEM))
        rc = RV_E_NOMEM;
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_of_an_ask_may_fail)
{
    struct place p;
    rv_buf answer;
    size_t n, n_lived = 0;

    rv_buf_init(&answer, 1 << 20);
    make_place(&p);
    int expected = scenario(&p, (size_t)_i, &answer);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(scenario(&p, (size_t)_i, &answer), expected);
    rv_fault_disarm();
    char *whole = rv_str_dup(rv_buf_str(&answer));
    const size_t step = rv_kit_step(rv_fault_count() / 80 + 1);
    for (n = rv_kit_first(step);; n += step) {
        rv_buf_fini(&answer);
        rv_buf_init(&answer, 1 << 20);
        rv_fault_arm(n);
        int rc = scenario(&p, (size_t)_i, &answer);
        bool fired = rv_fault_disarm();
        long balance = rv_fault_lost(answer.ptr != NULL);
        if (!fired) {
            ck_assert_int_eq(rc, expected);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == expected, "%s, allocation %zu: %s", asks[_i].service, n,
                      rv_code_text(rc));
        ck_assert_msg(balance == 0, "%s, allocation %zu: %ld blocks", asks[_i].service, n, balance);
        ck_assert_msg(rc < 0 || !asks[_i].is_read || strcmp(rv_buf_cstr(&answer), whole) == 0,
                      "%s, allocation %zu: %s\ninstead of %s", asks[_i].service, n, rv_buf_cstr(&answer), whole);
        n_lived += rc == expected;
    }
    ck_assert(n > 10 || !rv_fault_works());
    ck_assert_msg(n_lived * step <= n / 2, "%s: %zu of %zu", asks[_i].service, n_lived * step, n);
    free(whole);
    rv_buf_fini(&answer);
    free_place(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_services");
    TCase *tc = tcase_create("services");

    tcase_add_loop_test(tc, any_allocation_of_an_ask_may_fail, 0, RV_COUNT(asks));
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
