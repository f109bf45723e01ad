/* TRAVERSE: breadth first, each row once, along edges that lead to rows of the scope only. */
#include "tests/contract/knowledge/people.h"

/* "a>b>c" */
static void put_path(json_object *row, rv_buf *out)
{
    json_object *path = rv_json_get_arr(row, "path");

    for (size_t k = 0; k < json_object_array_length(path); k++)
        rv_buf_printf(out, "%s%.*s", k ? ">" : "", RV_STR_ARG(rv_json_str(json_object_array_get_idx(path, k))));
}
#define WALKS(scope, query, want) tells(w, (scope), (query), put_path, (want), __LINE__)

/* Proves p8-data.9/traverse: TRAVERSE reaches each row once, at its smallest depth, by the heavier edge */
START_TEST(edges_are_followed_breadth_first_the_heaviest_before)
{
    struct world world, *w = &world;

    world_open(w, _i);
    fill_seen(w);
    WALKS(&ada, "TRAVERSE lunch DEPTH 0", "lunch");
    WALKS(&ada, "TRAVERSE lunch", "lunch lunch>report lunch>atlas");
    WALKS(&ada, "TRAVERSE lunch DEPTH 2", "lunch lunch>report lunch>atlas lunch>atlas>quay");
    WALKS(&ada, "TRAVERSE lunch DEPTH 9", "lunch lunch>report lunch>atlas lunch>atlas>quay");
    WALKS(&ada, "TRAVERSE lunch DEPTH 2 PATHS", "lunch lunch>report lunch>atlas lunch>report>atlas lunch>atlas>quay");
    WALKS(&ada, "TRAVERSE lunch DEPTH 9 TYPE builds_on", "lunch lunch>atlas");
    WALKS(&ada, "TRAVERSE lunch TYPE BUILDS_ON", "lunch");
    WALKS(&ada, "TRAVERSE nothing DEPTH 3", "");
    WALKS(&bob, "TRAVERSE lunch DEPTH 3", "");
    WALKS(&bob, "TRAVERSE atlas DEPTH 3", "atlas");
    WALKS(&ada, "TRAVERSE session-talk-msg-1", "session-talk-msg-1");
    ANSWERS(&ada, "TRAVERSE Quay",
            "[{\"depth\":0,\"entity_key\":\"quay\",\"entity_type\":\"moments\",\"entity_id\":"
            "\"3305a5ec-03a8-58e8-88dc-6aff2cc17cf2\",\"rel_type\":null,\"rel_weight\":1.0,\"path\":[\"quay\"],"
            "\"entity_record\":{\"summary\":\"Quay\",\"metadata\":{}}},{\"depth\":1,\"entity_key\":\"lunch\",\"entity_"
            "type\":"
            "\"moments\",\"entity_id\":\"9eb51f0b-3026-58aa-8afa-835fd3f3febc\",\"rel_type\":null,\"rel_weight\":1.0,"
            "\"path\":"
            "[\"quay\",\"lunch\"],\"entity_record\":{\"summary\":\"Lunch\",\"metadata\":{\"n\":1,\"f\":1.50,\"o\":{"
            "\"k\":[1,"
            "\"two\"]}}}}]");
    world_close(w);
}
END_TEST

START_TEST(an_edge_to_a_row_of_another_user_leads_nowhere)
{
    struct world world, *w = &world;

    world_open(w, _i);
    fill_seen(w);
    char *before = ask(w, &ada, "TRAVERSE lunch DEPTH 5 PATHS LOAD", NULL);
    fill_hidden(w);
    char *after = ask(w, &ada, "TRAVERSE lunch DEPTH 5 PATHS LOAD", NULL);
    ck_assert_str_eq(after, before);
    free(before);
    free(after);
    WALKS(&bob, "TRAVERSE secret-plan DEPTH 3", "secret-plan secret-plan>lunch");
    world_close(w);
}
END_TEST

START_TEST(edges_to_ids_and_damaged_edges_do_no_harm)
{
    struct world world, *w = &world;

    world_open(w, _i);
    json_object *one = put_one(w, &ada, "moments", "{\"name\":\"one\"}", T0);
    const char *id = "";
    rv_buf row = RV_BUF_INIT(1000);
    ck_assert(rv_json_get_text(one, "id", &id));
    rv_buf_printf(
        &row, "{\"name\":\"two\",\"graph_edges\":[{\"target\":\"%s\"},{\"target\":\"two\"},{\"target\":\"!!\"}]}", id);
    json_object_put(put_one(w, &ada, "moments", rv_buf_cstr(&row), T0));
    WALKS(&ada, "TRAVERSE two DEPTH 3", "two two>one");
    WALKS(&ada, "TRAVERSE two DEPTH 3 PATHS", "two two>one");
    rv_buf_clear(&row);
    rv_buf_printf(&row, "TRAVERSE %s", id);
    WALKS(&ada, rv_buf_cstr(&row), "one");
    rv_buf_fini(&row);
    json_object_put(one);
    world_close(w);
}
END_TEST

/* Proves p8-data.9/traverse-end: It ends at 500 rows and says that it was cut */
START_TEST(a_large_graph_ends_at_five_hundred_rows)
{
    struct world world, *w = &world;
    rv_buf row = RV_BUF_INIT(1 << 20);

    world_open(w, _i);
    rv_buf_puts(&row, "{\"name\":\"hub\",\"graph_edges\":[");
    for (int i = 0; i < 700; i++)
        rv_buf_printf(&row, "%s{\"target\":\"n%d\",\"weight\":%g}", i ? "," : "", i, i / 1000.0);
    rv_buf_puts(&row, "]}");
    OK(rv_store_begin(w->s, &w->err));
    json_object_put(put_one(w, &ada, "moments", rv_buf_cstr(&row), T0));
    for (int i = 0; i < 700; i++) {
        char node[100];
        snprintf(node, sizeof node, "{\"name\":\"n%d\",\"graph_edges\":[{\"target\":\"n%d\"},{\"target\":\"hub\"}]}", i,
                 (i + 1) % 700);
        json_object_put(put_one(w, &ada, "moments", node, T0));
    }
    OK(rv_store_commit(w->s, &w->err));
    char *nodes = ask(w, &ada, "TRAVERSE hub DEPTH 3", NULL),
         *paths = ask(w, &ada, "TRAVERSE hub DEPTH 10 PATHS", NULL);
    char *answers[] = {nodes, paths};
    for (size_t i = 0; i < RV_COUNT(answers); i++) {
        json_object *answer = tree(answers[i]);
        bool truncated = false;
        ck_assert_uint_eq(json_object_array_length(rv_json_get_arr(answer, "results")), 500);
        ck_assert(rv_json_get_bool(answer, "truncated", &truncated) && truncated);
        json_object_put(answer);
        free(answers[i]);
    }
    rv_buf_fini(&row);
    world_close(w);
}
END_TEST

/* --- Properties: rows of random graphs --- */

#define N_NODES 24

struct graph {
    bool edges[N_NODES][N_NODES];
    int owner[N_NODES]; /* 0 ada, 1 bob, 2 none */
};

static void make_graph(struct world *w, struct graph *g, struct rv_rand rand)
{
    static const struct rv_store_scope *const owners[] = {&ada, &bob, &unowned};

    memset(g, 0, sizeof *g);
    for (int i = 0; i < N_NODES; i++) {
        rv_buf row = RV_BUF_INIT(1 << 16);
        g->owner[i] = (int)rv_rand_below(rand, 3);
        rv_buf_printf(&row, "{\"name\":\"Node %d\",\"graph_edges\":[", i);
        for (int k = 0, n = 0; k < N_NODES; k++)
            if (rv_rand_below(rand, 6) == 0) {
                g->edges[i][k] = true;
                rv_buf_printf(&row, "%s{\"target\":\"%s%d\",\"weight\":%g}", n++ ? "," : "", k % 2 ? "node_" : "NODE ",
                              k, (double)rv_rand_below(rand, 4) / 4);
            }
        rv_buf_puts(&row, "]}");
        json_object_put(put_one(w, owners[g->owner[i]], i % 2 ? "moments" : "resources", rv_buf_cstr(&row), T0));
        rv_buf_fini(&row);
    }
}

static int number_of(json_object *path, size_t i)
{
    return (int)strtol(rv_json_str(json_object_array_get_idx(path, i)).ptr + strlen("node-"), NULL, 10);
}

static void check_rows(const struct graph *g, json_object *rows, int start, bool once)
{
    int64_t depth = 0, before = 0;
    bool seen[N_NODES] = {false};

    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i), *path = rv_json_get_arr(row, "path");
        size_t n = json_object_array_length(path);
        bool in_path[N_NODES] = {false};
        ck_assert(rv_json_get_int(row, "depth", &depth));
        ck_assert_int_ge(depth, before);
        before = depth;
        ck_assert_uint_eq(n, (size_t)depth + 1);
        ck_assert_int_eq(number_of(path, 0), start);
        for (size_t k = 0; k < n; k++) {
            int node = number_of(path, k);
            ck_assert_int_ne(g->owner[node], 1);
            ck_assert(!in_path[node]);
            in_path[node] = true;
            ck_assert(k == 0 || g->edges[number_of(path, k - 1)][node]);
        }
        ck_assert(!once || !seen[number_of(path, n - 1)]);
        seen[number_of(path, n - 1)] = true;
    }
}

/* Proves p8-data.23/6: The path of each row of a traversal begins at the start key, has depth + 1 distinct keys, and
 * each of its steps is an edge
 * Proves p8-data.23/7 */
START_TEST(paths_are_edges_of_rows_that_are_seen)
{
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 23);
    int n_graphs = rv_kit_sample(6, 200);

    for (int n = 0; n < n_graphs; n++) {
        struct world worlds[8];
        struct graph g;
        for (int i = 0; i < n_store_impls; i++) {
            struct rv_rand_state again = state;
            struct rv_rand same = rand;
            same.self = &again;
            world_open(&worlds[i], i);
            make_graph(&worlds[i], &g, i + 1 < n_store_impls ? same : rand);
        }
        for (int start = 0; start < N_NODES; start += 3) {
            for (int form = 0; form < 2; form++) {
                char query[100], *first = NULL;
                snprintf(query, sizeof query, "TRAVERSE \"node %d\" DEPTH %d%s", start, form ? 3 : 10,
                         form ? " PATHS" : "");
                for (int i = 0; i < n_store_impls; i++) {
                    char *text = results_of(&worlds[i], &ada, query);
                    json_object *rows = tree(text);
                    check_rows(&g, rows, start, form == 0);
                    ck_assert(!first || strcmp(first, text) == 0);
                    json_object_put(rows);
                    if (first)
                        free(text);
                    else
                        first = text;
                }
                free(first);
            }
        }
        for (int i = 0; i < n_store_impls; i++)
            world_close(&worlds[i]);
    }
}
END_TEST

Suite *traverse_suite(void)
{
    Suite *s = suite_create("traverse");
    TCase *tc = tcase_create("traverse");

    ADD(tc, edges_are_followed_breadth_first_the_heaviest_before);
    ADD(tc, an_edge_to_a_row_of_another_user_leads_nowhere);
    ADD(tc, edges_to_ids_and_damaged_edges_do_no_harm);
    ADD(tc, a_large_graph_ends_at_five_hundred_rows);
    tcase_add_test(tc, paths_are_edges_of_rows_that_are_seen);
    suite_add_tcase(s, tc);
    return s;
}
