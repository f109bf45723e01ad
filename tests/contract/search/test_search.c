/* What FUZZY and SEARCH find, in which order, and for whom. */
#include "tests/contract/search/search.h"

static void put(struct world *w, const struct rv_store_scope *scope, const char *kind, const char *row, int64_t at_us)
{
    OK(try_put(w, scope, kind, row, at_us));
}

/* "name/user:score ..." or, of words, "name/user~". */
static void write_result(json_object *element, const char *name_of, rv_buf *out)
{
    json_object *data = rv_json_get_obj(element, "data"), *score = NULL;
    const char *name = "-", *match = NULL;

    ck_assert(rv_json_get_text(data, name_of, &name));
    rv_buf_printf(out, "%s%s", out->len > 0 ? " " : "", name);
    if (rv_json_get_text(element, "match", &match)) {
        rv_buf_printf(out, "~%s", match);
    } else {
        json_object_object_get_ex(element, "similarity_score", &score);
        rv_buf_printf(out, ":%.3f", json_object_get_double(score));
    }
}

static void results_are(json_object *list, const char *name_of, const char *want, int line)
{
    rv_buf text = RV_BUF_INIT(1 << 20);

    for (size_t i = 0; i < json_object_array_length(list); i++)
        write_result(json_object_array_get_idx(list, i), name_of, &text);
    ck_assert_msg(strcmp(rv_buf_cstr(&text), want) == 0, "line %d: \"%s\", not \"%s\"", line, rv_buf_cstr(&text), want);
    rv_buf_fini(&text);
    json_object_put(list);
}

static void fuzzy_is(struct world *w, const struct rv_store_scope *scope, const char *text, double threshold,
                     const char *want, int line)
{
    const struct rv_knowledge_fuzzy query = {.text = rv_str_of(text), .threshold = threshold, .limit = 10};
    json_object *list = NULL;

    must_ok(w, rv_knowledge_search_fuzzy(w->s, scope, &query, &list, &w->err), text, line);
    results_are(list, "key", want, line);
}
#define FUZZY(scope, text, threshold, want) fuzzy_is(w, (scope), (text), (threshold), (want), __LINE__)

static struct rv_knowledge_search query_of(const char *table, const char *text)
{
    return (struct rv_knowledge_search){
        .text = rv_str_of(text), .table = rv_str_of(table), .min_similarity = 0.3, .limit = 10};
}

static void search_is(struct world *w, const struct rv_store_scope *scope, const struct rv_knowledge_search *query,
                      const char *want, int line)
{
    json_object *list = NULL, *warnings = NULL;

    must_ok(w, rv_knowledge_search(w->s, scope, query, &list, &warnings, &w->err), want, line);
    json_object_put(warnings);
    results_are(list, "name", want, line);
}
#define SEARCH(scope, query, want) search_is(w, (scope), (query), (want), __LINE__)

/* Proves p8-data.9/fuzzy: FUZZY compares the text as typed with keys and summaries of all kinds, and keeps what
 * reaches the threshold, best first */
START_TEST(fuzzy_finds_names_by_their_spelling)
{
    struct world world, *w = &world;

    world_open(w, _i);
    put(w, &ada, "resources", "{\"name\":\"Sarah Chen\"}", T0);
    put(w, &ada, "resources", "{\"name\":\"traverse\"}", T0 + 1);
    put(w, &ada, "moments", "{\"name\":\"kv_store\"}", T0 + 2);
    put(w, &ada, "tools", "{\"name\":\"embedding service\",\"description\":\"makes vectors of texts\"}", T0 + 3);
    FUZZY(&ada, "sara chen", 0.3, "sarah-chen:0.750");
    FUZZY(&ada, "travers", 0.3, "traverse:0.700");
    FUZZY(&ada, "kv stor", 0.7, "kv-store:0.700");
    FUZZY(&ada, "kv stor", 0.71, "");
    FUZZY(&ada, "vectors of texts", 0.3, "embedding-service:0.739"); /* by the summary */
    FUZZY(&ada, "", 0.3, "");
    FUZZY(&ada, "...", 0.3, "");
    put(w, &ada, "resources", "{\"name\":\"Traverse\",\"uri\":\"x\"}", T0 + 9);
    FUZZY(&ada, "traverse", 0.3, "traverse:1.000 traverse:1.000"); /* two rows of that key */
    world_close(w);
}
END_TEST

START_TEST(fuzzy_follows_what_is_written_deleted_and_renamed)
{
    struct world world, *w = &world;
    struct rv_store_scope all = {NULL, NULL};
    json_object *row = NULL;
    const char *id = NULL;

    world_open(w, _i);
    FUZZY(&all, "apple", 0.3, "");
    row = put_one(w, &ada, "resources", "{\"uri\":\"u\",\"name\":\"apple\"}", T0);
    ck_assert(rv_json_get_text(row, "id", &id));
    FUZZY(&all, "apple", 0.3, "apple:1.000");
    put(w, &ada, "resources", "{\"uri\":\"u\",\"name\":\"orange\"}", T0 + 1);
    FUZZY(&all, "apple", 0.3, "");
    FUZZY(&all, "orange", 0.3, "orange:1.000");
    OK(rv_store_delete_entity(w->s, &ada, &(struct rv_entity_target){"resources", id, T0 + 2}, &w->err));
    FUZZY(&all, "orange", 0.3, "");
    put(w, &ada, "resources", "{\"uri\":\"u\"}", T0 + 3);
    FUZZY(&all, "orange", 0.3, "orange:1.000");
    json_object_put(row);
    world_close(w);
}
END_TEST

START_TEST(what_a_group_undoes_is_not_found)
{
    struct world world, *w = &world;

    world_open(w, _i);
    put(w, &ada, "resources", "{\"name\":\"apple\"}", T0);
    OK(rv_store_begin(w->s, &w->err));
    put(w, &ada, "resources", "{\"name\":\"apple pie\"}", T0);
    FUZZY(&ada, "apple", 0.3, "apple:1.000 apple-pie:0.600");
    rv_store_rollback(w->s);
    FUZZY(&ada, "apple", 0.3, "apple:1.000");
    put(w, &ada, "resources", "{\"name\":\"apples\"}", T0);
    FUZZY(&ada, "apple", 0.3, "apple:1.000 apples:0.625");
    world_close(w);
}
END_TEST

START_TEST(another_handle_sees_it_at_once)
{
    struct world world, *w = &world;

    world_open(w, _i);
    if (w->impl->is_shared) {
        rv_store *own = w->s, *other = world_other(w);
        w->s = other;
        FUZZY(&ada, "apple", 0.3, "");
        w->s = own;
        put(w, &ada, "resources", "{\"name\":\"apple\",\"content\":\"a fruit\"}", T0);
        w->s = other;
        FUZZY(&ada, "apple", 0.3, "apple:1.000");
        w->s = own;
        FUZZY(&ada, "apple", 0.3, "apple:1.000");
        rv_store_close(other);
    }
    world_close(w);
}
END_TEST

/* A transaction that began first and ends last: its rows are found although later ones were read before. */
START_TEST(a_transaction_that_ends_late_is_found)
{
    struct world world, *w = &world;

    world_open(w, _i);
    if (!w->impl->scheme) { /* where several write at a time */
        rv_store *reader = w->s, *slow = world_other(w), *fast = world_other(w);
        FUZZY(&ada, "apple", 0.3, "");
        OK(rv_store_begin(slow, &w->err));
        w->s = slow;
        put(w, &ada, "resources", "{\"name\":\"apple\"}", T0);
        w->s = fast;
        put(w, &ada, "resources", "{\"name\":\"apples\"}", T0);
        w->s = reader;
        FUZZY(&ada, "apple", 0.3, "apples:0.625");
        OK(rv_store_commit(slow, &w->err));
        FUZZY(&ada, "apple", 0.3, "apple:1.000 apples:0.625");
        rv_store_close(slow);
        rv_store_close(fast);
    }
    world_close(w);
}
END_TEST

/* Proves p8-data.9/search: SEARCH finds whole rows by the cosine of their vectors with that of the text, nearest
 * first */
START_TEST(search_finds_what_was_just_written)
{
    struct world world, *w = &world;
    struct rv_knowledge_search query = query_of("resources", "databases and their indexes");

    world_open(w, _i);
    SEARCH(&ada, &query, "");
    put(w, &ada, "resources", "{\"name\":\"a\",\"content\":\"Indexes of databases are trees\",\"category\":\"db\"}",
        T0);
    put(w, &ada, "resources", "{\"name\":\"b\",\"content\":\"Bread needs flour and water\",\"category\":\"food\"}", T0);
    put(w, &ada, "moments", "{\"name\":\"c\",\"summary\":\"databases and their indexes\"}", T0);
    SEARCH(&ada, &query, "a:0.784");
    query.category = RV_STR_LIT("food");
    SEARCH(&ada, &query, "");
    query.min_similarity = 0;
    query.text = RV_STR_LIT("flour");
    SEARCH(&ada, &query, "b:0.522");
    query.category = RV_STR_LIT("nothing");
    SEARCH(&ada, &query, "");
    query = query_of("moments", "databases and their indexes");
    SEARCH(&ada, &query, "c:1.000");
    query.limit = 0;
    FAILS(RV_E_INVALID, rv_knowledge_search(w->s, &ada, &query, &(json_object *){NULL}, NULL, &w->err));
    query = query_of("feedback", "x");
    FAILS(RV_E_INVALID, rv_knowledge_search(w->s, &ada, &query, &(json_object *){NULL}, NULL, &w->err));
    world_close(w);
}
END_TEST

/* Proves p8-data.10.2/ties: Of equal scores the newest comes first, then the one with the lower id */
START_TEST(equal_scores_are_ordered_by_age_and_id)
{
    struct world world, *w = &world;
    struct rv_knowledge_search query = query_of("resources", "the same words");

    world_open(w, _i);
    put(w, &ada, "resources", "{\"name\":\"old\",\"content\":\"the same words\"}", T0);
    put(w, &ada, "resources", "{\"name\":\"new\",\"content\":\"the same words\"}", T0 + 5);
    put(w, &ada, "resources",
        "{\"id\":\"bbbbbbbb-0000-4000-8000-000000000000\",\"name\":\"second\",\"content\":"
        "\"the same words\"}",
        T0 + 3);
    put(w, &ada, "resources",
        "{\"id\":\"aaaaaaaa-0000-4000-8000-000000000000\",\"name\":\"first\",\"content\":"
        "\"the same words\"}",
        T0 + 3);
    SEARCH(&ada, &query, "new:1.000 first:1.000 second:1.000 old:1.000");
    query.rank = RV_RANK_LEXICAL;
    SEARCH(&ada, &query, "new~lexical first~lexical second~lexical old~lexical");
    query.limit = 2;
    SEARCH(&ada, &query, "new~lexical first~lexical");
    query.rank = RV_RANK_HYBRID;
    SEARCH(&ada, &query, "new~both first~both");
    world_close(w);
}
END_TEST

/* Proves p8-data.10.2/lexical: Without vectors of the provider words decide, and each result says so */
START_TEST(words_decide_when_there_is_no_vector)
{
    struct world world, *w = &world;
    struct rv_knowledge_search query = query_of("resources", "flour");

    world_open(w, _i);
    put(w, &ada, "resources", "{\"name\":\"bread\",\"content\":\"Bread needs flour and water\"}", T0);
    put(w, &ada, "resources", "{\"name\":\"flour\",\"content\":\"It is milled\"}", T0);
    put(w, &ada, "resources", "{\"name\":\"soup\",\"content\":\"Water, salt, carrots\"}", T0);
    query.provider = "openai:text-embedding-3-small";
    SEARCH(&ada, &query, "flour~lexical bread~lexical");
    query.provider = RV_EMBED_LOCAL; /* no row has such a vector either */
    SEARCH(&ada, &query, "flour~lexical bread~lexical");
    world_close(w);
}
END_TEST

/* Isolation: other users' and tenants' rows are neither found nor counted.
 * Proves p8-data.12.3/owners: How rare a word is is counted over what the caller sees */
START_TEST(scores_do_not_depend_on_rows_of_others)
{
    struct world world, *w = &world;
    struct rv_knowledge_search query = query_of("resources", "flour water");
    json_object *before = NULL, *after = NULL;
    static const enum rv_knowledge_rank ranks[] = {RV_RANK_COSINE, RV_RANK_LEXICAL, RV_RANK_HYBRID};
    char row[200];

    world_open(w, _i);
    put(w, &ada, "resources", "{\"name\":\"bread\",\"content\":\"Bread needs flour and water\"}", T0);
    put(w, &ada, "resources", "{\"name\":\"soup\",\"content\":\"Water, salt, carrots\"}", T0 + 1);
    put(w, &unowned, "resources", "{\"name\":\"tea\",\"content\":\"Hot water\"}", T0 + 2);
    query.min_similarity = 0.1;
    for (size_t i = 0; i < RV_COUNT(ranks); i++) {
        query.rank = ranks[i];
        OK(rv_knowledge_search(w->s, &ada, &query, &before, NULL, &w->err));
        for (int k = 0; k < 5; k++) {
            snprintf(row, sizeof row, "{\"name\":\"secret %zu %d\",\"content\":\"flour flour water\"}", i, k);
            put(w, k % 2 ? &bob : &elsewhere, "resources", row, T0 + 3);
        }
        OK(rv_knowledge_search(w->s, &ada, &query, &after, NULL, &w->err));
        ck_assert_uint_ge(json_object_array_length(before), 2);
        ck_assert(rv_json_equal(before, after));
        json_object_put(before);
        json_object_put(after);
    }
    FUZZY(&ada, "secret", 0.1, "");
    FUZZY(&elsewhere, "bread", 0.1, "");
    FUZZY(&bob, "tea", 0.5, "tea:1.000"); /* without an owner: everybody's */
    world_close(w);
}
END_TEST

/* Proves p8-data.20/index: Ciphertext is in no index */
START_TEST(ciphertext_has_no_tokens)
{
    struct world world, *w = &world;
    struct rv_knowledge_search query = query_of("resources", "flour water bread");

    world_open(w, _i);
    put(w, &ada, "resources", "{\"name\":\"x\",\"content\":\"flour water bread\",\"encryption_level\":\"platform\"}",
        T0);
    query.min_similarity = 0;
    SEARCH(&ada, &query, "");
    query.rank = RV_RANK_LEXICAL;
    SEARCH(&ada, &query, "");
    put(w, &ada, "resources", "{\"name\":\"x\",\"content\":\"flour water bread\",\"encryption_level\":\"none\"}", T0);
    SEARCH(&ada, &query, "x~lexical");
    put(w, &ada, "resources", "{\"name\":\"x\",\"encryption_level\":\"sealed\"}", T0);
    SEARCH(&ada, &query, "");
    query.rank = RV_RANK_COSINE;
    SEARCH(&ada, &query, "");
    world_close(w);
}
END_TEST

START_TEST(shared_rows_are_every_tenants)
{
    struct world world, *w = &world;
    json_object *given = tree("{\"name\":\"rest api\",\"content\":\"requests and answers\"}");
    const struct rv_entities_put all = {
        .kind = "ontologies", .rows = &given, .n_rows = 1, .now_us = T0, .is_tenantless = true};
    struct rv_knowledge_search query = query_of("ontologies", "requests and answers");

    world_open(w, _i);
    OK(rv_store_put_entities(w->s, &operator_scope, &all, NULL, &w->err));
    FUZZY(&ada, "rest api", 0.3, "rest-api:1.000");
    FUZZY(&elsewhere, "rest api", 0.3, "rest-api:1.000");
    SEARCH(&elsewhere, &query, "rest api:1.000");
    json_object_put(given);
    world_close(w);
}
END_TEST

START_TEST(a_reindexed_store_finds_the_same)
{
    struct world world, *w = &world;
    struct rv_knowledge_search query = query_of("resources", "flour");

    world_open(w, _i);
    make_session(w, "lunch talk", "ada");
    put(w, &ada, "resources", "{\"name\":\"bread\",\"content\":\"flour\"}", T0);
    FUZZY(&ada, "lunch talk", 0.3, "chat-lunch-talk:0.688");
    OK(rv_store_rebuild_keys(w->s, NULL, &w->err));
    SEARCH(&ada, &query, "bread:1.000");
    FUZZY(&ada, "bread", 0.3, "bread:1.000");
    FUZZY(&ada, "lunch talk", 0.3, "chat-lunch-talk:0.688");
    world_close(w);
}
END_TEST

Suite *search_suite(void)
{
    Suite *suite = suite_create("search");
    TCase *tc = tcase_create("rows");

    ADD(tc, fuzzy_finds_names_by_their_spelling);
    ADD(tc, fuzzy_follows_what_is_written_deleted_and_renamed);
    ADD(tc, what_a_group_undoes_is_not_found);
    ADD(tc, another_handle_sees_it_at_once);
    ADD(tc, a_transaction_that_ends_late_is_found);
    ADD(tc, search_finds_what_was_just_written);
    ADD(tc, equal_scores_are_ordered_by_age_and_id);
    ADD(tc, words_decide_when_there_is_no_vector);
    ADD(tc, scores_do_not_depend_on_rows_of_others);
    ADD(tc, ciphertext_has_no_tokens);
    ADD(tc, shared_rows_are_every_tenants);
    ADD(tc, a_reindexed_store_finds_the_same);
    suite_add_tcase(suite, tc);
    return suite;
}
