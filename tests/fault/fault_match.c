/* Each allocation of the comparison of texts fails once: no crash, no leak, and the code says no memory. */
#include <stdlib.h>

#include "coreengine/match/match.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

#define TEXT "Caf\u00e9 au lait, \u65e5\u672c\u8a9e and [links](docs/README.md). "

static int make_key(void)
{
    rv_buf out = RV_BUF_INIT(1000);

    rv_match_write_key(RV_STR_LIT(TEXT), &out);
    int rc = out.rc;
    rv_buf_fini(&out);
    return rc;
}

static int compare_grams(void)
{
    struct rv_grams a = {NULL, 0}, b = {NULL, 0};
    int rc = rv_grams_build(RV_STR_LIT(TEXT), &a, NULL);

    if (rc == 0)
        rc = rv_grams_build(RV_STR_LIT("caf\u00e9"), &b, NULL);
    rv_grams_fini(&a);
    rv_grams_fini(&b);
    return rc;
}

static int rank_words(void)
{
    static const size_t items[] = {0, 1};
    const struct rv_ranking list = {items, 2};
    struct rv_terms query = {NULL, 0, 0, NULL};
    struct rv_fused fused[2];
    size_t n;
    int rc = rv_terms_build(RV_STR_LIT(TEXT), &query, NULL);

    if (rc == 0) {
        struct rv_lexical_doc doc = {&query, 0};
        rv_lexical_rank(&query, &doc, 1);
        rc = rv_fuse_ranks(&list, 1, 2, fused, &n, NULL);
    }
    rv_terms_fini(&query);
    return rc;
}

/* Few features: qsort() asks for memory to sort many, and does without. */
static int search_vectors(void)
{
    float v[16];
    rv_matrix *m = rv_matrix_new(16);
    struct rv_vector_query query = {.vector = v, .limit = 2};
    struct rv_vector_hit hits[2];
    size_t row, n;
    int rc = m ? rv_embed_text(RV_STR_LIT(RV_EMBED_NGRAM), RV_STR_LIT("few parts"), 16, v, NULL) : RV_E_NOMEM;

    for (size_t i = 0; rc == 0 && i < RV_MATRIX_COARSE_ROWS; i++)
        rc = rv_matrix_add(m, v, &row, NULL);
    if (rc == 0)
        rc = rv_matrix_search(m, &query, hits, &n, NULL);
    rv_matrix_free(m);
    return rc;
}

static int cut_text(void)
{
    struct rv_chunks chunks = {NULL, 0};
    int rc = rv_chunks_build(RV_STR_LIT(TEXT TEXT TEXT TEXT), 10, 2, &chunks, NULL);

    rv_chunks_fini(&chunks);
    return rc;
}

static int merge_links(void)
{
    json_object *links = NULL, *old = NULL, *merged = NULL;
    int rc = rv_page_build_links(RV_STR_LIT(TEXT "[two](../b%20c.md)"), RV_STR_LIT("a/b.md"), &links, NULL);

    if (rc == 0)
        rc = rv_json_parse(RV_STR_LIT("[{\"target\":\"Docs\",\"relation\":\"links_to\",\"weight\":7}]"), NULL, &old,
                           NULL);
    if (rc == 0)
        rc = rv_edges_merge(old, links, &merged, NULL, NULL);
    json_object_put(links);
    json_object_put(old);
    json_object_put(merged);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {
    {"make_key", make_key},     {"compare_grams", compare_grams},
    {"rank_words", rank_words}, {"search_vectors", search_vectors},
    {"cut_text", cut_text},     {"merge_links", merge_links},
};
static const size_t more_than[] = {3, 1, 4, 10, 2, 20};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], more_than[_i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_match");
    TCase *c = tcase_create("loops");

    tcase_add_loop_test(c, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}
