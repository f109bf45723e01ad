/* What rows are found by, damaged behind the store's back: the check names it, and a new index mends it. */
#include "tests/contract/search/search.h"
#include "tests/contract/store/behind.h"

#define SERVER "openai:fake"

static const struct {
    const char *what, *sql, *says;
} damages[] = {
    {"trigrams of a key", "UPDATE tokens SET key_grams = words WHERE kind = 'resources'",
     "of resources is found by other trigrams than it has"},
    {"trigrams of a summary", "UPDATE tokens SET summary_grams = NULL WHERE kind = 'moments'",
     "of moments is found by other trigrams than it has"},
    {"words", "UPDATE tokens SET words = NULL WHERE kind = 'moments'",
     "of moments is found by other words than it has"},
    {"the number of words", "UPDATE tokens SET n_words = n_words + 1 WHERE kind = 'moments'",
     "of moments is found by other words than it has"},
    {"the hash of a text", "UPDATE tokens SET hash = 'x' WHERE kind = 'moments'",
     "of moments has another hash than its embedded text"},
    {"the owner", "UPDATE tokens SET user_id = 'bob' WHERE kind = 'resources'",
     "of resources is found as that of another owner, id, category or time"},
    {"the category", "UPDATE tokens SET category = 'other' WHERE kind = 'resources'",
     "of resources is found as that of another owner, id, category or time"},
    {"tokens that are lost", "DELETE FROM tokens WHERE kind = 'sessions'", "of sessions is not in the index of words"},
    {"tokens marked as gone", "UPDATE tokens SET is_gone = 1 WHERE kind = 'moments'",
     "of moments is not in the index of words"},
    {"tokens without a row",
     "INSERT INTO tokens (kind, row, tenant_id, user_id, id, created_us, is_gone, hash, n_words)"
     " VALUES ('moments', 999, 'default', 'ada', 'x', 1, 0, '', 0)",
     "words of moments, row 999, have no key"},
    {"a summary", "UPDATE keys SET summary = 'other' WHERE kind = 'moments'",
     "of moments has another summary in the index of names"},
    {"a key", "UPDATE keys SET entity_key = 'other' WHERE kind = 'moments'",
     "a row of moments has the key \"other\", not \"harbour\""},
    {"keys that are lost", "DELETE FROM keys WHERE kind = 'moments'", "of moments has no key"},
    {"a key without a row", "UPDATE keys SET row = 999 WHERE kind = 'moments'", "has no row"},
    {"a vector that is lost", "DELETE FROM vectors WHERE kind = 'moments'",
     "of moments has neither a vector nor a place in the queue of vectors"},
    {"a vector of another text", "UPDATE vectors SET hash = 'x' WHERE kind = 'moments'",
     "of moments has neither a vector nor a place in the queue of vectors"},
    {"the bytes of a vector", "UPDATE vectors SET vector = (SELECT v.vector FROM vectors v WHERE v.kind = 'moments')",
     "of resources has a vector that its text does not have"},
    {"the size of a vector", "UPDATE vectors SET dims = 3 WHERE kind = 'moments'",
     "a vector of moments, row 1, is damaged"},
    {"a vector without a row", "UPDATE vectors SET row = 999 WHERE kind = 'moments'",
     "a vector of moments, row 999, has no row with a text"},
    {"a row of the queue without a row",
     "INSERT INTO embeddings (kind, row, tenant_id, status, attempts, claimed_us, created_us)"
     " VALUES ('moments', 999, 'default', 'pending', 0, 0, 1)",
     "the queue of vectors has moments, row 999, which is gone"},
    {"a state of the queue",
     "INSERT INTO embeddings (kind, row, tenant_id, status, attempts, claimed_us, created_us)"
     " VALUES ('moments', 1, 'default', 'sleeping', 0, 0, 1)",
     "the queue of vectors has an impossible state for moments, row 1"},
};

static void fill(struct world *w)
{
    OK(try_put(w, &ada, "moments", "{\"name\":\"Harbour\",\"summary\":\"ships leave the harbour at dawn\"}", T0));
    OK(try_put(w, &ada, "resources", "{\"name\":\"Tide table\",\"category\":\"sea\",\"content\":\"high water at six\"}",
               T0 + 1));
    make_session(w, "talk", "ada");
}

static void add_found(struct world *w, rv_buf *out, const char *table, const char *text)
{
    const struct rv_knowledge_search query = {.text = rv_str_of(text), .table = rv_str_of(table), .limit = 9};
    const struct rv_knowledge_fuzzy names = {.text = rv_str_of(text), .limit = 9};
    json_object *list = NULL;

    OK(rv_knowledge_search(w->s, &ada, &query, &list, NULL, &w->err));
    rv_json_write(list, out);
    json_object_put(list);
    OK(rv_knowledge_search_fuzzy(w->s, &ada, &names, &list, &w->err));
    rv_json_write(list, out);
    json_object_put(list);
}

/* All that the searches give, as a process sees it that begins now. */
static char *found(struct world *w)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_store *own = w->s;

    w->s = world_other(w);
    add_found(w, &out, "moments", "ships at dawn");
    add_found(w, &out, "resources", "high water");
    rv_store_close(w->s);
    w->s = own;
    return rv_buf_steal(&out, NULL);
}

static const char *hint_of(const rv_err *err)
{
    const char *hint = NULL;

    for (; err && !hint; err = rv_err_cause(err))
        hint = rv_err_hint_text(err);
    return hint ? hint : "";
}

START_TEST(damage_of_the_index_is_named_and_mended)
{
    for (size_t i = 0; i < RV_COUNT(damages); i++) {
        struct world world, *w = &world;

        world_open(w, _i);
        fill(w);
        if (!w->impl->is_shared) { /* its tables cannot be reached */
            world_close(w);
            return;
        }
        char *before = found(w);
        OK(rv_store_check(w->s, &w->err));
        free(world_sql(w, damages[i].sql));
        int rc = rv_store_check(w->s, &w->err);
        ck_assert_msg(rc == RV_E_IO, "%s: %s: not noticed", w->impl->name, damages[i].what);
        ck_assert_msg(strstr(hint_of(w->err), "reeve entities reindex"), "%s: %s: \"%s\"", w->impl->name,
                      damages[i].what, hint_of(w->err));
        SAYS(RV_E_IO, damages[i].says, rc);
        OK(rv_store_rebuild_keys(w->s, NULL, &w->err));
        OK(rv_store_check(w->s, &w->err));
        char *after = found(w);
        ck_assert_msg(strcmp(before, after) == 0, "%s: %s:\n%s\n%s", w->impl->name, damages[i].what, before, after);
        free(before);
        free(after);
        world_close(w);
    }
}
END_TEST

/* The count of rows behind the store, "" in memory. */
static void counts(struct world *w, const char *sql, const char *want, int line)
{
    char *got = world_sql(w, sql);

    got[strcspn(got, "\n")] = '\0';
    ck_assert_msg(!w->impl->is_shared || strcmp(got, want) == 0, "line %d: %s: %s gives %s, not %s", line,
                  w->impl->name, sql, got, want);
    free(got);
}
#define COUNTS(sql, want) counts(w, (sql), (want), __LINE__)

START_TEST(a_vector_that_comes_after_a_deletion_is_not_kept)
{
    struct world world, *w = &world;
    struct rv_embeddings_claimed claimed;
    const float vector[] = {1, 0};

    world_open(w, _i);
    OK(rv_store_set_embedding_provider(w->s, SERVER, T0, &w->err));
    fill(w);
    OK(rv_store_claim_embeddings(w->s, SERVER, 9, T0, &claimed, &w->err));
    ck_assert_uint_eq(claimed.n, 2);
    OK(rv_store_delete_entities_named(w->s, &ada, &(struct rv_entity_target){"moments", "Harbour", T0 + 5}, NULL,
                                      &w->err));
    OK(try_put(w, &ada, "resources", "{\"name\":\"Tide table\",\"content\":\"low water at noon\"}", T0 + 6));
    for (size_t i = 0; i < claimed.n; i++)
        OK(rv_store_put_vector(w->s, &claimed.at[i], &(struct rv_vector){SERVER, vector, 2}, T0, &w->err));
    rv_embeddings_claimed_fini(&claimed);
    COUNTS("SELECT count(*) FROM vectors", "0");
    COUNTS("SELECT kind, status FROM embeddings", "resources|pending");
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_sweep_takes_all_of_a_deleted_row_along)
{
    const int64_t month_us = INT64_C(31) * 24 * 3600 * 1000000;
    struct world world, *w = &world;
    int64_t freed;

    world_open(w, _i);
    fill(w);
    OK(rv_store_delete_entities_named(w->s, &ada, &(struct rv_entity_target){"moments", "Harbour", T0 + 5}, NULL,
                                      &w->err));
    COUNTS("SELECT count(*) FROM vectors WHERE kind = 'moments'", "0");
    free(world_sql(w, "INSERT INTO vectors (kind, row, provider, dims, hash, vector, created_us)"
                      " SELECT kind, (SELECT t.row FROM tokens t WHERE t.kind = 'moments'), provider, dims, hash,"
                      " vector, created_us FROM vectors;"
                      " UPDATE vectors SET kind = 'moments' WHERE key = (SELECT max(key) FROM vectors);"
                      " INSERT INTO embeddings (kind, row, tenant_id, status, attempts, claimed_us, created_us)"
                      " SELECT 'moments', t.row, 'default', 'pending', 0, 0, 1 FROM tokens t"
                      " WHERE t.kind = 'moments'"));
    OK(rv_store_sweep(w->s, T0 + month_us, 0, &freed, &w->err));
    COUNTS("SELECT count(*) FROM entities WHERE kind = 'moments'", "0");
    COUNTS("SELECT count(*) FROM tokens WHERE kind = 'moments'", "0");
    COUNTS("SELECT count(*) FROM vectors WHERE kind = 'moments'", "0");
    COUNTS("SELECT count(*) FROM embeddings", "0");
    COUNTS("SELECT count(*) FROM vectors", "1");
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_process_that_is_open_learns_of_another_provider)
{
    struct world world, *w = &world;

    world_open(w, _i);
    fill(w);
    rv_store *other = world_other(w);
    if (w->impl->is_shared) {
        OK(rv_store_set_embedding_provider(other, SERVER, T0, &w->err));
        OK(try_put(w, &ada, "moments", "{\"name\":\"Quay\",\"summary\":\"ropes\"}", T0 + 5));
        COUNTS("SELECT count(*) FROM embeddings", "3");
    }
    OK(rv_store_check(w->s, &w->err));
    rv_store_close(other);
    world_close(w);
}
END_TEST

Suite *damage_suite(void)
{
    Suite *suite = suite_create("damage");
    TCase *tc = tcase_create("index");

    ADD(tc, damage_of_the_index_is_named_and_mended);
    ADD(tc, a_vector_that_comes_after_a_deletion_is_not_kept);
    ADD(tc, a_sweep_takes_all_of_a_deleted_row_along);
    ADD(tc, a_process_that_is_open_learns_of_another_provider);
    suite_add_tcase(suite, tc);
    return suite;
}
