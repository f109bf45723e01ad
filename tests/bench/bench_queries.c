/* What queries of the REM dialect cost that are not searches.
 *
 *   bench_queries STORE SYNC    STORE a new file, "memory:" or a PostgreSQL URL; SYNC full, normal or off
 *
 * 1,000 rows with an edge each: a tree of three levels below one row, ten edges a row. Prints one JSON object: the
 * median of forty queries of each kind in microseconds, in time of the processor for SQLite and of the wall for
 * PostgreSQL. */
#include <stdio.h>
#include <string.h>

#include "coreengine/knowledge/knowledge.h"
#include "tests/bench/bench_kit.h"

#define NODES   1000
#define FAN     10
#define QUERIES 41

static const struct rv_store_scope scope = {NULL, "ada"};
static int64_t (*now_ns)(void) = bench_cpu_ns;

/* Node i has edges to 10 i + 1 ... 10 i + 10. */
static void fill(rv_store *s)
{
    rv_err *err = NULL;

    if (rv_store_begin(s, &err) < 0)
        bench_die("begin", err);
    for (int i = 0; i <= NODES; i++) {
        rv_buf text = RV_BUF_INIT(1 << 16);
        json_object *row = NULL;
        rv_buf_printf(&text,
                      "{\"name\":\"Node %d\",\"summary\":\"the summary of node %d\",\"rating\":%d,\"graph_edges\":[", i,
                      i, i % 5 + 1);
        for (int k = 1; k <= FAN && FAN * i + k <= NODES; k++)
            rv_buf_printf(&text, "%s{\"target\":\"node-%d\",\"relation\":\"links_to\",\"weight\":0.%d}",
                          k > 1 ? "," : "", FAN * i + k, k % 9 + 1);
        rv_buf_puts(&text, "]}");
        if (rv_json_parse(rv_buf_str(&text), NULL, &row, &err) < 0)
            bench_die("row", err);
        const struct rv_entities_put put = {
            .kind = "moments", .rows = &row, .n_rows = 1, .now_us = INT64_C(1700000000000000) + i};
        if (rv_store_put_entities(s, &scope, &put, NULL, &err) < 0)
            bench_die("put", err);
        json_object_put(row);
        rv_buf_fini(&text);
    }
    if (rv_store_commit(s, &err) < 0)
        bench_die("commit", err);
}

/* The median in microseconds; *n_rows: of the last answer. */
static double ask(rv_store *s, const char *query, size_t *n_rows)
{
    int64_t took[QUERIES];

    for (int i = 0; i < QUERIES; i++) {
        json_object *answer = NULL;
        rv_err *err = NULL;
        int64_t began = now_ns();
        if (rv_knowledge_query(s, &scope, &(const struct rv_knowledge_query){rv_str_of(query), NULL}, &answer, NULL,
                               &err) < 0)
            bench_die(query, err);
        took[i] = now_ns() - began;
        *n_rows = json_object_array_length(rv_json_get_arr(answer, "results"));
        json_object_put(answer);
    }
    return (double)(bench_quantile(took + 1, QUERIES - 1, 0.5) / 100) / 10; /* the first one prepares statements */
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *query;
    } queries[] = {
        {"lookup", "LOOKUP node 500"},
        {"traverse_depth_3", "TRAVERSE node 0 DEPTH 3"},
        {"sql_newest", "SELECT name, created_at FROM moments ORDER BY created_at DESC LIMIT 10"},
        {"sql_group", "SELECT rating, count(*) AS n FROM moments GROUP BY rating ORDER BY rating"},
    };
    rv_store *s = NULL;
    rv_err *err = NULL;
    struct rv_store_opts opts = {.sync = RV_STORE_SYNC_NORMAL};

    if (argc != 3)
        bench_die("bench_queries STORE SYNC", NULL);
    opts.sync = strcmp(argv[2], "full") == 0  ? RV_STORE_SYNC_FULL
                : strcmp(argv[2], "off") == 0 ? RV_STORE_SYNC_OFF
                                              : RV_STORE_SYNC_NORMAL;
    if (rv_store_is_postgres(argv[1]))
        now_ns = bench_now_ns;
    if (rv_store_open(argv[1], &opts, &s, &err) < 0)
        bench_die("open", err);
    fill(s);
    printf("{");
    for (size_t i = 0; i < RV_COUNT(queries); i++) {
        size_t n_rows = 0;
        double us = ask(s, queries[i].query, &n_rows);
        printf("%s\"%s_us\":%.1f,\"%s_rows\":%zu", i ? "," : "", queries[i].name, us, queries[i].name, n_rows);
    }
    printf("}\n");
    rv_store_close(s);
    return 0;
}
