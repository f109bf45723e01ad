/* Random scripts of changes and queries, the same on every store: what they answer is equal to the byte. Names differ
 * by case, accents and punctuation, times by microseconds and not at all, so that order, ties and formats matter. */
#include "tests/contract/knowledge/people.h"

#define STEPS   40
#define TENANTS 25 /* scripts that share a store, each in a tenant of its own */

static const char *const names[] = {"Harbour",     "harbour ", "HAR-BOUR",
                                    "Harbor",      "Hafen",    "Hafen 2",
                                    "\303\234ber", "uber",     "\346\227\245\346\234\254\350\252\236",
                                    "caf\303\251", "cafe",     "Quay 10",
                                    "Quay 9",      "quay_9",   "a.b/c",
                                    "!!",          "O'Brien",  "x=y"};
static const char *const texts[] = {"ships leave at dawn",
                                    "Ships leave at dawn.",
                                    "the tide table of may",
                                    "ropes and knots 12",
                                    "12",
                                    "",
                                    "\303\234bung macht den Meister",
                                    "rope"};
static const char *const kinds[] = {"moments", "resources", "ontologies"};
static const int64_t moments_us[] = {0, 0, 1, 500000, 999999, 1000000, 123456};

static const char *one_of(struct rv_rand r, const char *const *list, size_t n)
{
    return list[rv_rand_below(r, n)];
}
#define ONE_OF(list) one_of(r, (list), RV_COUNT(list))

static int64_t some_time(struct rv_rand r, int step)
{
    return T0 + step / 4 * INT64_C(86400000000) / 8 + moments_us[rv_rand_below(r, RV_COUNT(moments_us))];
}

static void change(struct world *w, const struct rv_store_scope *scope, struct rv_rand r, int step)
{
    const char *kind = ONE_OF(kinds), *name = ONE_OF(names);
    const char *text = strcmp(kind, "moments") == 0 ? "summary" : "content";
    rv_buf row = RV_BUF_INIT(4096);

    if (rv_rand_below(r, 6) == 0) {
        int rc = rv_store_delete_entities_named(w->s, scope, &(struct rv_entity_target){kind, name, some_time(r, step)},
                                                NULL, &w->err);
        ck_assert(rc == 0 || rc == RV_E_NOT_FOUND);
        rv_err_free(w->err);
        w->err = NULL;
        return;
    }
    rv_buf_printf(&row, "{\"name\":\"%s\",\"%s\":\"%s\",\"tags\":[\"%s\"],\"metadata\":{\"n\":%d,\"s\":\"%s\"}", name,
                  text, ONE_OF(texts), ONE_OF(texts), (int)rv_rand_below(r, 40) - 20, ONE_OF(texts));
    if (rv_rand_below(r, 2))
        rv_buf_printf(&row, ",\"category\":\"%s\"", rv_rand_below(r, 2) ? "sea" : "Land");
    if (rv_rand_below(r, 2))
        rv_buf_printf(
            &row, ",\"graph_edges\":[{\"target\":\"%s\",\"weight\":%g},{\"target\":\"%s\",\"relation\":\"%s\"}]",
            ONE_OF(names), (double)rv_rand_below(r, 5) / 4, ONE_OF(names), rv_rand_below(r, 2) ? "part" : "builds_on");
    rv_buf_puts(&row, "}");
    const char *json = rv_buf_cstr(&row), *category = strstr(json, ",\"category\"");
    if (category && strcmp(kind, "ontologies") == 0) /* it has no such column */
        rv_buf_truncate(&row, (size_t)(category - json)), rv_buf_puts(&row, "}");
    json_object_put(put_one(w, scope, kind, rv_buf_cstr(&row), some_time(r, step)));
    rv_buf_fini(&row);
}

static void write_sql(struct rv_rand r, rv_buf *q)
{
    static const char *const columns[] = {"created_at",
                                          "updated_at",
                                          "substr(created_at, 1, 19)",
                                          "date(created_at)",
                                          "(metadata->>'n')::int",
                                          "(metadata->>'s')::float",
                                          "metadata->>'s'",
                                          "upper(name)",
                                          "length(name)",
                                          "tags",
                                          "graph_edges",
                                          "json_array_length(graph_edges)",
                                          "rank() OVER (ORDER BY name)",
                                          "coalesce(user_id, 'none')"};
    static const char *const wheres[] = {"name LIKE 'H%'",
                                         "name ILIKE '%quay%'",
                                         "created_at > '2023-11-15'",
                                         "created_at < now() - interval '12 hours'",
                                         "'12' = ANY(tags)",
                                         "(metadata->>'n')::int > 0",
                                         "metadata->>'s' = ''",
                                         "name IN (SELECT name FROM moments)",
                                         "user_id IS NULL"};
    static const char *const orders[] = {"id", "name, id", "created_at, id", "updated_at DESC, id",
                                         "(metadata->>'n')::int, id"};

    rv_buf_printf(q, "SELECT id, %s AS x, %s AS y FROM %s WHERE %s ORDER BY %s LIMIT %d", ONE_OF(columns),
                  ONE_OF(columns), ONE_OF(kinds), ONE_OF(wheres), ONE_OF(orders), 1 + (int)rv_rand_below(r, 9));
}

static void write_query(struct rv_rand r, rv_buf *q)
{
    static const char *const ranks[] = {"", " rank=words", " rank=hybrid", " rank=cosine"};

    switch (rv_rand_below(r, 5)) {
    case 0:
        rv_buf_printf(q, "LOOKUP \"%s\", \"%s\"", ONE_OF(names), ONE_OF(names));
        break;
    case 1:
        rv_buf_printf(q, "FUZZY \"%s\" THRESHOLD %g LIMIT %d", ONE_OF(names), (double)rv_rand_below(r, 6) / 10,
                      1 + (int)rv_rand_below(r, 9));
        break;
    case 2:
        rv_buf_printf(q, "SEARCH \"%s harbour\" FROM %s MIN_SIMILARITY %g LIMIT %d%s", ONE_OF(texts), ONE_OF(kinds),
                      (double)rv_rand_below(r, 4) / 10, 1 + (int)rv_rand_below(r, 9), ONE_OF(ranks));
        break;
    case 3:
        rv_buf_printf(q, "TRAVERSE \"%s\" DEPTH %d%s%s", ONE_OF(names), (int)rv_rand_below(r, 5),
                      rv_rand_below(r, 3) ? "" : " PATHS", rv_rand_below(r, 3) ? "" : " LOAD");
        break;
    default:
        write_sql(r, q);
    }
}

static void play(struct world *w, uint64_t seed, rv_buf *log)
{
    static const char *const users[] = {"ada", "bob", ""};
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, seed);
    char tenant[40];

    snprintf(tenant, sizeof tenant, "tenant%llu", (unsigned long long)seed);
    for (int step = 0; step < STEPS; step++) {
        const struct rv_store_scope scope = {tenant, ONE_OF(users)};
        if (step < STEPS / 2 || rv_rand_below(r, 4) == 0) {
            change(w, &scope, r, step);
            continue;
        }
        rv_buf query = RV_BUF_INIT(4096);
        write_query(r, &query);
        char *answer = ask(w, &scope, rv_buf_cstr(&query), NULL);
        rv_buf_printf(log, "%s: %s\n%s\n", scope.user, rv_buf_cstr(&query), answer);
        free(answer);
        rv_buf_fini(&query);
    }
}

static void same(const rv_buf *a, const rv_buf *b, uint64_t seed, const char *name)
{
    const char *one = rv_buf_cstr(a), *other = rv_buf_cstr(b);
    size_t i = 0, line;

    while (one[i] && one[i] == other[i])
        i++;
    for (line = i; line > 0 && one[line - 1] != '\n';)
        line--;
    ck_assert_msg(one[i] == other[i], "script %llu, %s:\n%.400s\n--\n%.400s", (unsigned long long)seed, name,
                  one + line, other + line);
}

/* Proves p8-data.23/10: Every store gives the same bytes for the same script of changes and queries */
START_TEST(scripts_give_the_same_bytes_on_every_store)
{
    int n = rv_kit_sample(10, 500);

    for (int first = 1; first <= n; first += TENANTS) {
        struct world worlds[8];
        for (int i = 0; i < n_store_impls; i++)
            world_open(&worlds[i], i);
        for (int seed = first; seed <= n && seed < first + TENANTS; seed++) {
            rv_buf logs[8];
            for (int i = 0; i < n_store_impls; i++) {
                logs[i] = (rv_buf)RV_BUF_INIT((size_t)16 << 20);
                play(&worlds[i], (uint64_t)seed, &logs[i]);
                same(&logs[0], &logs[i], (uint64_t)seed, store_impls[i].name);
            }
            ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&logs[0]), "\"results\":[{"));
            for (int i = 0; i < n_store_impls; i++)
                rv_buf_fini(&logs[i]);
        }
        for (int i = 0; i < n_store_impls; i++)
            world_close(&worlds[i]);
    }
}
END_TEST

Suite *scripts_suite(void)
{
    Suite *s = suite_create("scripts");
    TCase *tc = tcase_create("scripts");

    tcase_add_test(tc, scripts_give_the_same_bytes_on_every_store);
    suite_add_tcase(s, tc);
    return s;
}
