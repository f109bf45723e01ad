/* Random rows, changes and queries: every store gives the same bytes. */
#include "tests/contract/search/search.h"

#define ROWS    120
#define QUERIES 60

static const char *const words[] = {"river", "stone",   "Water", "night", "search", "index", "naïve", "Straße", "query",
                                    "tree",  "running", "runs",  "über",  "v2",     "a",     "of",    "日本",   "data"};
static const char *const kinds[] = {"resources", "moments", "tools", "ontologies"};
static const char *const fields[] = {"content", "summary", "description", "content"};
static const struct rv_store_scope scopes[] = {{NULL, "ada"}, {NULL, "bob"}, {NULL, ""}, {"other", "ada"}};

static void write_words(struct rv_rand r, size_t n, rv_buf *out)
{
    for (size_t i = 0; i < n; i++)
        rv_buf_printf(out, "%s%s", i ? " " : "", words[rv_rand_below(r, RV_COUNT(words))]);
}

static void put_random(struct world *w, struct rv_rand r, int64_t at_us)
{
    rv_buf row = RV_BUF_INIT(10000);
    size_t kind = rv_rand_below(r, RV_COUNT(kinds));

    rv_buf_puts(&row, "{\"name\":\"");
    write_words(r, 1 + rv_rand_below(r, 3), &row);
    rv_buf_printf(&row, "\",\"%s\":\"", fields[kind]);
    write_words(r, rv_rand_below(r, 12), &row);
    rv_buf_printf(&row, "\"%s}", kind < 2 && rv_rand_below(r, 2) ? ",\"category\":\"c\"" : "");
    OK(try_put(w, &scopes[rv_rand_below(r, RV_COUNT(scopes))], kinds[kind], rv_buf_cstr(&row), at_us));
    rv_buf_fini(&row);
}

static void delete_random(struct world *w, struct rv_rand r)
{
    rv_buf name = RV_BUF_INIT(100);
    int64_t n = 0;

    write_words(r, 1, &name);
    rv_err_free(w->err);
    w->err = NULL;
    RV_IGNORE(rv_store_delete_entities_named(w->s, &scopes[rv_rand_below(r, RV_COUNT(scopes))],
                                             &(struct rv_entity_target){"resources", rv_buf_cstr(&name), T0 + 9999}, &n,
                                             NULL),
              "there may be none");
    rv_buf_fini(&name);
}

static void query_random(struct world *w, struct rv_rand r, rv_buf *out)
{
    rv_buf text = RV_BUF_INIT(1000);
    const struct rv_store_scope *scope = &scopes[rv_rand_below(r, RV_COUNT(scopes))];
    json_object *list = NULL;

    write_words(r, 1 + rv_rand_below(r, 3), &text);
    const struct rv_knowledge_fuzzy fuzzy = {
        .text = rv_buf_str(&text), .threshold = (double)rv_rand_below(r, 10) / 10, .limit = 1 + rv_rand_below(r, 20)};
    OK(rv_knowledge_search_fuzzy(w->s, scope, &fuzzy, &list, &w->err));
    rv_json_write(list, out);
    json_object_put(list);
    struct rv_knowledge_search search = {.text = rv_buf_str(&text),
                                         .table = rv_str_of(kinds[rv_rand_below(r, RV_COUNT(kinds))]),
                                         .min_similarity = (double)rv_rand_below(r, 5) / 10,
                                         .limit = 1 + rv_rand_below(r, 20),
                                         .rank = (enum rv_knowledge_rank)rv_rand_below(r, 3)};
    if (rv_rand_below(r, 3) == 0)
        search.category = RV_STR_LIT("c");
    OK(rv_knowledge_search(w->s, scope, &search, &list, NULL, &w->err));
    rv_json_write(list, out);
    rv_buf_putc(out, '\n');
    json_object_put(list);
    rv_buf_fini(&text);
}

/* Ids that are random come from the same seed. */
static void write_all(int impl, uint64_t seed, rv_buf *out)
{
    struct world world, *w = &world;
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, seed);

    world_open(w, impl);
    for (int i = 0; i < ROWS; i++)
        put_random(w, r, T0 + i / 3);
    for (int i = 0; i < QUERIES; i++) {
        if (i % 3 == 0)
            put_random(w, r, T0 + ROWS + i);
        if (i % 7 == 0)
            delete_random(w, r);
        query_random(w, r, out);
    }
    world_close(w);
}

START_TEST(all_stores_find_the_same_bytes)
{
    for (uint64_t seed = 1; seed <= (uint64_t)rv_kit_sample(3, 100); seed++) {
        rv_buf first = RV_BUF_INIT((size_t)64 << 20), other = RV_BUF_INIT((size_t)64 << 20);
        write_all(0, seed, &first);
        ck_assert_uint_gt(first.len, 10000);
        for (int i = 1; i < n_store_impls; i++) {
            rv_buf_clear(&other);
            write_all(i, seed, &other);
            ck_assert_msg(rv_str_eq(rv_buf_str(&first), rv_buf_str(&other)), "seed %llu, %s: other bytes",
                          (unsigned long long)seed, store_impls[i].name);
        }
        rv_buf_fini(&first);
        rv_buf_fini(&other);
    }
}
END_TEST

Suite *equal_suite(void)
{
    Suite *suite = suite_create("equal");
    TCase *tc = tcase_create("bytes");

    tcase_add_test(tc, all_stores_find_the_same_bytes);
    suite_add_tcase(suite, tc);
    return suite;
}
