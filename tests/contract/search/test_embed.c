/* The queue of vectors, with a provider that is made up. */
#include "tests/contract/search/search.h"

#define SERVER "openai:fake"

/* Vectors of two dimensions: rows that say "north", rows that say "east". */
struct fake {
    int n_calls, n_texts, fails; /* fails: so many calls */
    int64_t now_us;
};

static int fake_embed(void *self, const char *provider, const rv_str *texts, size_t n, struct rv_knowledge_vectors *out,
                      rv_err **err)
{
    struct fake *f = self;

    ck_assert_str_eq(provider, SERVER);
    f->n_calls++;
    f->n_texts += (int)n;
    if (f->fails > 0) {
        f->fails--;
        return RV_FAIL(err, RV_E_PROVIDER, "the server is away");
    }
    out->dims = 2;
    out->values = calloc(2 * n, sizeof *out->values);
    ck_assert_ptr_nonnull(out->values);
    for (size_t i = 0; i < n; i++) {
        out->values[2 * i] = memmem(texts[i].ptr, texts[i].len, "north", 5) ? 1.0f : 0.0f;
        out->values[2 * i + 1] = memmem(texts[i].ptr, texts[i].len, "east", 4) ? 1.0f : 0.0f;
    }
    return 0;
}

static int64_t fake_now(void *self)
{
    return ((struct fake *)self)->now_us;
}

static void work_is(struct world *w, struct fake *f, const char *provider, size_t limit, const char *want, int line)
{
    const struct rv_knowledge_embedder embedder = {fake_embed, f};
    const struct rv_knowledge_embed how = {
        .provider = provider, .limit = limit, .batch = 2, .embedder = &embedder, .clock = {fake_now, f}};
    struct rv_knowledge_embedded done = {0};
    rv_err *why = NULL;
    char text[100];

    must_ok(w, rv_knowledge_embed(w->s, &how, &done, &why, &w->err), want, line);
    rv_err_free(why);
    snprintf(text, sizeof text, "%lld %lld %lld", (long long)done.processed, (long long)done.skipped,
             (long long)done.failed);
    ck_assert_msg(strcmp(text, want) == 0, "line %d: %s, not %s", line, text, want);
}
#define WORK(provider, limit, want) work_is(w, &f, (provider), (limit), (want), __LINE__)

static void finds(struct world *w, struct fake *f, const char *text, const char *want, int line)
{
    const struct rv_knowledge_embedder embedder = {fake_embed, f};
    const struct rv_knowledge_search query = {.text = rv_str_of(text),
                                              .table = RV_STR_LIT("resources"),
                                              .min_similarity = 0.5,
                                              .limit = 9,
                                              .embedder = &embedder};
    json_object *list = NULL;
    rv_buf out = RV_BUF_INIT(1000);

    must_ok(w, rv_knowledge_search(w->s, &ada, &query, &list, NULL, &w->err), text, line);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *element = json_object_array_get_idx(list, i);
        const char *name = "-";
        ck_assert(rv_json_get_text(rv_json_get_obj(element, "data"), "name", &name));
        rv_buf_printf(&out, "%s%s%s", i ? " " : "", name, json_object_object_get_ex(element, "match", NULL) ? "~" : "");
    }
    ck_assert_msg(strcmp(rv_buf_cstr(&out), want) == 0, "line %d: \"%s\", not \"%s\"", line, rv_buf_cstr(&out), want);
    json_object_put(list);
    rv_buf_fini(&out);
}
#define FINDS(text, want) finds(w, &f, (text), (want), __LINE__)

static void put(struct world *w, const char *row)
{
    OK(try_put(w, &ada, "resources", row, T0));
}

/* Proves p8-data.13/provider: Another provider embeds all rows again */
START_TEST(another_provider_embeds_all_rows_again)
{
    struct world world, *w = &world;
    struct fake f = {.now_us = T0};

    world_open(w, _i);
    put(w, "{\"name\":\"a\",\"content\":\"go north\"}");
    put(w, "{\"name\":\"b\",\"content\":\"go east\"}");
    put(w, "{\"name\":\"c\",\"content\":\"stay\"}");
    put(w, "{\"name\":\"d\"}");
    WORK(NULL, 0, "0 0 0"); /* hash-ngram has made them already */
    WORK(SERVER, 0, "3 0 0");
    ck_assert_int_eq(f.n_calls, 2);
    ck_assert_int_eq(f.n_texts, 3);
    FINDS("which way is north", "a");
    FINDS("the east", "b");
    WORK(NULL, 0, "0 0 0");           /* the store knows its provider */
    WORK(RV_EMBED_NGRAM, 0, "0 0 0"); /* their vectors are still there */
    FINDS("go north", "a");
    world_close(w);
}
END_TEST

/* Proves p8-data.13/queue: A row waits for its vector when its text changed, and is skipped when its hash is that of
 * the vector */
START_TEST(a_row_is_queued_when_its_text_changes)
{
    struct world world, *w = &world;
    struct fake f = {.now_us = T0};

    world_open(w, _i);
    WORK(SERVER, 0, "0 0 0");
    put(w, "{\"name\":\"a\",\"content\":\"go north\"}");
    FINDS("north", "a~"); /* by its words, as long as it has no vector */
    WORK(NULL, 0, "1 0 0");
    FINDS("north", "a");
    put(w, "{\"name\":\"a\",\"category\":\"x\"}");
    WORK(NULL, 0, "0 0 0");
    put(w, "{\"name\":\"a\",\"content\":\"go east\"}");
    WORK(NULL, 0, "1 0 0");
    FINDS("north", "");
    FINDS("east", "a");
    put(w, "{\"name\":\"a\",\"content\":\"go north\"}");
    put(w, "{\"name\":\"a\",\"content\":\"go east\"}"); /* as it was embedded */
    WORK(NULL, 0, "0 1 0");
    put(w, "{\"name\":\"a\",\"content\":null}");
    WORK(NULL, 0, "0 0 0");
    FINDS("east", "");
    world_close(w);
}
END_TEST

/* Proves p8-data.13/failures: A row whose text cannot be embedded is tried three times */
START_TEST(a_provider_that_fails_is_asked_three_times)
{
    struct world world, *w = &world;
    struct fake f = {.now_us = T0, .fails = 5};

    world_open(w, _i);
    WORK(SERVER, 0, "0 0 0");
    put(w, "{\"name\":\"a\",\"content\":\"go north\"}");
    WORK(NULL, 0, "0 0 0");
    WORK(NULL, 0, "0 0 0");
    WORK(NULL, 0, "0 0 1");
    WORK(NULL, 0, "0 0 0");
    ck_assert_int_eq(f.n_calls, 3);
    FINDS("north", "a~"); /* the query cannot be embedded either */
    f.fails = 0;
    put(w, "{\"name\":\"a\",\"content\":\"far north\"}"); /* a new text has new attempts */
    WORK(NULL, 0, "1 0 0");
    FINDS("north", "a");
    world_close(w);
}
END_TEST

/* Proves p8-data.13/lease: A row that was claimed is claimed again after five minutes */
START_TEST(rows_of_a_worker_that_died_are_claimed_again)
{
    struct world world, *w = &world;
    struct fake f = {.now_us = T0};
    struct rv_embeddings_claimed claimed;
    const float vector[] = {1, 0};

    world_open(w, _i);
    WORK(SERVER, 0, "0 0 0");
    put(w, "{\"name\":\"a\",\"content\":\"go north\"}");
    put(w, "{\"name\":\"b\",\"content\":\"go east\"}");
    OK(rv_store_claim_embeddings(w->s, SERVER, 1, T0, &claimed, &w->err));
    ck_assert_uint_eq(claimed.n, 1);
    WORK(NULL, 0, "1 0 0"); /* the other one */
    f.now_us = T0 + RV_EMBED_LEASE_US;
    WORK(NULL, 0, "1 0 0");
    /* The first worker comes back: another worker has embedded its row, which stays out of the queue. */
    OK(rv_store_put_vector(w->s, &claimed.at[0], &(struct rv_vector){SERVER, vector, 2}, T0, &w->err));
    WORK(NULL, 0, "0 0 0");
    rv_embeddings_claimed_fini(&claimed);
    world_close(w);
}
END_TEST

START_TEST(a_limit_leaves_the_rest_for_later)
{
    struct world world, *w = &world;
    struct fake f = {.now_us = T0};
    char row[100];

    world_open(w, _i);
    WORK(SERVER, 0, "0 0 0");
    for (int i = 0; i < 5; i++) {
        snprintf(row, sizeof row, "{\"name\":\"n%d\",\"content\":\"go north %d\"}", i, i);
        put(w, row);
    }
    WORK(NULL, 3, "3 0 0");
    WORK(NULL, 3, "2 0 0");
    world_close(w);
}
END_TEST

static void claim_one(struct world *w, int64_t now_us, struct rv_embeddings_claimed *out)
{
    OK(rv_store_claim_embeddings(w->s, SERVER, 1, now_us, out, &w->err));
    ck_assert_uint_eq(out->n, 1);
}

/* A vector that a server made of the text at the time of the claim. */
static void answer(struct world *w, struct rv_embeddings_claimed *claimed, const float *values)
{
    OK(rv_store_put_vector(w->s, &claimed->at[0], &(struct rv_vector){SERVER, values, 2}, T0, &w->err));
    rv_embeddings_claimed_fini(claimed);
}

START_TEST(a_vector_of_a_former_text_is_not_kept)
{
    const float north[] = {1, 0}, east[] = {0, 1};
    struct world world, *w = &world;
    struct fake f = {.now_us = T0};
    struct rv_embeddings_claimed slow, quick;

    world_open(w, _i);
    WORK(SERVER, 0, "0 0 0");
    put(w, "{\"name\":\"a\",\"content\":\"go north\"}");
    claim_one(w, T0, &slow);
    put(w, "{\"name\":\"a\",\"content\":\"go east\"}");
    claim_one(w, T0 + 1, &quick);
    answer(w, &slow, north);
    FINDS("north", "");
    answer(w, &quick, east);
    FINDS("east", "a");
    put(w, "{\"name\":\"a\",\"content\":\"go north\"}");
    claim_one(w, T0 + 2, &slow);
    put(w, "{\"name\":\"a\",\"content\":\"go east\"}"); /* which has its vector */
    answer(w, &slow, north);
    FINDS("north", "");
    FINDS("east", "a");
    OK(rv_store_check(w->s, &w->err));
    put(w, "{\"name\":\"a\",\"content\":\"go north\"}");
    claim_one(w, T0 + 3, &slow);
    put(w, "{\"name\":\"a\",\"content\":null}");
    answer(w, &slow, north);
    FINDS("north", "");
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

Suite *embed_suite(void)
{
    Suite *suite = suite_create("embed");
    TCase *tc = tcase_create("queue");

    ADD(tc, another_provider_embeds_all_rows_again);
    ADD(tc, a_row_is_queued_when_its_text_changes);
    ADD(tc, a_provider_that_fails_is_asked_three_times);
    ADD(tc, rows_of_a_worker_that_died_are_claimed_again);
    ADD(tc, a_vector_of_a_former_text_is_not_kept);
    ADD(tc, a_limit_leaves_the_rest_for_later);
    suite_add_tcase(suite, tc);
    return suite;
}
