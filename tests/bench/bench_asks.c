/* What an ask of a capability costs that needs the store, from the job that the loop makes to its answer.
 *
 *   bench_asks STORE [ROWS]    STORE a new file or a PostgreSQL URL; 20,000 rows of one user
 *
 * Prints one JSON object: asks per second of `query` with a SEARCH, with a LOOKUP, and of entities.get, one after the
 * other, by the clock on the wall. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/app/app.h"
#include "coreengine/store/store.h"
#include "tests/bench/bench_kit.h"

#define ASKS 40

static const struct rv_store_scope scope = {NULL, "ada"};

static void put(rv_store *s, int i)
{
    static const char *const words[] = {"river", "bridge", "harbour", "engine", "garden", "letter", "signal", "winter"};
    rv_buf text = RV_BUF_INIT(1 << 12);
    json_object *row = NULL;
    rv_err *err = NULL;

    rv_buf_printf(&text, "{\"name\":\"Page %d\",\"content\":\"%s %s %s number %d\"}", i, words[i % 8], words[i / 8 % 8],
                  words[i / 64 % 8], i);
    if (rv_json_parse(rv_buf_str(&text), NULL, &row, &err) < 0)
        bench_die("row", err);
    const struct rv_entities_put what = {
        .kind = "resources", .rows = &row, .n_rows = 1, .now_us = INT64_C(1700000000000000) + i};
    if (rv_store_put_entities(s, &scope, &what, NULL, &err) < 0)
        bench_die("put", err);
    json_object_put(row);
    rv_buf_fini(&text);
}

static void fill(const char *url, int n)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    rv_store *s = NULL;
    rv_err *err = NULL;

    if (rv_store_open(url, &opts, &s, &err) < 0 || rv_store_begin(s, &err) < 0)
        bench_die("open", err);
    for (int i = 0; i < n; i++)
        put(s, i);
    if (rv_store_commit(s, &err) < 0)
        bench_die("commit", err);
    rv_store_close(s);
}

static void ask(const struct rv_app_services *s, const char *service, const char *args)
{
    const struct rv_service_ask q = {.service = service,
                                     .args = rv_str_of(args),
                                     .capability = "bench",
                                     .entry = "bench",
                                     .user_id = scope.user,
                                     .key = "k"};
    rv_buf answer = RV_BUF_INIT(RV_SERVICE_MAX_ANSWER);
    struct rv_service_job *job = NULL;
    rv_err *err = NULL;

    if (s->exec.make(s->exec.self, &q, NULL, &job, &err) < 0 || job->run(job, &answer, &err) < 0)
        bench_die(service, err);
    job->free(job);
    rv_buf_fini(&answer);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *service, *args;
    } asks[] = {
        {"search", "query", "{\"text\": \"SEARCH a letter about the harbour FROM resources\"}"},
        {"lookup", "query", "{\"text\": \"LOOKUP page 500\"}"},
        {"find", "entities.find", "{\"kind\": \"resources\", \"name\": \"Page 7\"}"},
    };
    struct rv_app app = {.store = argc > 1 ? argv[1] : NULL, .sync = "off"};
    struct rv_app_services services;

    if (argc < 2 || argc > 3)
        bench_die("bench_asks STORE [ROWS]", NULL);
    fill(argv[1], argc > 2 ? (int)strtol(argv[2], NULL, 10) : 20000);
    rv_app_services_init(&services, &app);
    printf("{");
    for (size_t i = 0; i < RV_COUNT(asks); i++) {
        int64_t began = bench_now_ns();
        for (int k = 0; k < ASKS; k++)
            ask(&services, asks[i].service, asks[i].args);
        printf("%s\"%s_per_s\":%.1f", i ? "," : "", asks[i].name, ASKS * 1e9 / (double)(bench_now_ns() - began));
    }
    printf("}\n");
    rv_app_services_fini(&services);
    return 0;
}
