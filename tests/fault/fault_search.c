/* Each allocation of searching fails once: rows with their tokens and vectors, FUZZY, SEARCH by vectors, by words and
 * by both, the queue of vectors. No crash, no leak; the code is RV_E_NOMEM, or the result is whole. */
#include <check.h>
#include <stdlib.h>

#include "coreengine/knowledge/knowledge.h"
#include "coreengine/store/store.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define T0 INT64_C(1700000000000000)

static const struct rv_store_scope scope = {NULL, "ada"};

/* Check's own assertions allocate, so what a scenario finds wrong is kept until the allocator is disarmed. */
static int broken_line;
#define must(holds)                                                                                                    \
    do {                                                                                                               \
        if (!(holds) && broken_line == 0)                                                                              \
            broken_line = __LINE__;                                                                                    \
    } while (0)

static int64_t at_t0(void *self)
{
    (void)self;
    return T0;
}

static int fake_embed(void *self, const char *provider, const rv_str *texts, size_t n, struct rv_knowledge_vectors *out,
                      rv_err **err)
{
    (void)self;
    (void)provider;
    (void)texts;
    out->values = calloc(n, sizeof *out->values);
    if (!out->values)
        return RV_FAIL(err, RV_E_NOMEM, "embed");
    for (size_t i = 0; i < n; i++)
        out->values[i] = 1;
    out->dims = 1;
    return 0;
}

static const struct rv_knowledge_embedder embedder = {fake_embed, NULL};

static int put(rv_store *s, const char *text, rv_err **err)
{
    json_object *row = NULL;
    int rc = rv_json_parse(rv_str_of(text), NULL, &row, err);
    const struct rv_entities_put how = {.kind = "resources", .rows = &row, .n_rows = 1, .now_us = T0};

    if (rc == 0)
        rc = rv_store_put_entities(s, &scope, &how, NULL, err);
    json_object_put(row);
    return rc;
}

static int fuzzy(rv_store *s, rv_err **err)
{
    const struct rv_knowledge_fuzzy query = {.text = RV_STR_LIT("bread"), .threshold = 0.3, .limit = 5};
    json_object *list = NULL;
    int rc = rv_knowledge_search_fuzzy(s, &scope, &query, &list, err);

    must(rc < 0 || json_object_array_length(list) == 1);
    json_object_put(list);
    return rc;
}

/* A query that could not be embedded is answered by words, with a warning. */
static int search(rv_store *s, enum rv_knowledge_rank rank, rv_err **err)
{
    const struct rv_knowledge_search query = {.text = RV_STR_LIT("flour water"),
                                              .table = RV_STR_LIT("resources"),
                                              .category = RV_STR_LIT("food"),
                                              .limit = 5,
                                              .rank = rank,
                                              .embedder = &embedder};
    json_object *list = NULL, *warnings = NULL;
    int rc = rv_knowledge_search(s, &scope, &query, &list, &warnings, err);

    must(rc < 0 || json_object_array_length(list) == 1);
    json_object_put(list);
    json_object_put(warnings);
    return rc;
}

/* An attempt that failed for want of memory leaves its row in the queue. */
static int embed(rv_store *s, rv_err **err)
{
    const struct rv_knowledge_embed how = {.provider = "openai:fake", .embedder = &embedder, .clock = {at_t0, NULL}};
    struct rv_knowledge_embedded done = {0};
    rv_err *why = NULL;
    int rc = rv_knowledge_embed(s, &how, &done, &why, err);

    must(rc < 0 || done.processed == 2 || why);
    rv_err_free(why);
    return rc;
}

static int live(void)
{
    rv_store *s = NULL;
    rv_err *err = NULL;
    int rc = rv_store_open("memory:", NULL, &s, &err);

    if (rc == 0)
        rc = put(s, "{\"name\":\"bread\",\"content\":\"flour and water\",\"category\":\"food\"}", &err);
    if (rc == 0)
        rc = put(s, "{\"name\":\"tea\",\"content\":\"water\"}", &err);
    if (rc == 0)
        rc = fuzzy(s, &err);
    for (int rank = 0; rank <= RV_RANK_LEXICAL && rc == 0; rank++)
        rc = search(s, (enum rv_knowledge_rank)rank, &err);
    if (rc == 0)
        rc = embed(s, &err);
    if (rc == 0)
        rc = search(s, RV_RANK_COSINE, &err);
    must((rc < 0) == (err != NULL));
    must(rc == 0 || rv_err_is(err, RV_E_NOMEM));
    rv_store_close(s);
    rv_err_free(err);
    return rc;
}

START_TEST(any_allocation_of_a_search_may_fail)
{
    size_t n, n_lived = 0, n_tried = 0;

    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(live(), 0);
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 500 + 1);
    ck_assert_int_eq(broken_line, 0);
    for (n = rv_kit_first(step);; n += step) {
        rv_fault_arm(n);
        int rc = live();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(broken_line == 0, "allocation %zu: broken at line %d", n, broken_line);
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks", n, rv_fault_balance());
        n_lived += rc == 0;
        n_tried++;
    }
    ck_assert_msg(!rv_fault_works() || (n_tried > 100 && n_lived < n_tried / 5), "%zu tried, %zu done without", n_tried,
                  n_lived);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_search");
    TCase *tc = tcase_create("search");

    tcase_add_test(tc, any_allocation_of_a_search_may_fail);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
