/* Sessions by what they are about: names, descriptions and moments, fused, on every store. */
#include "coreengine/app/app.h"
#include "tests/contract/search/search.h"

static void add_session(struct world *w, const char *id, const char *user, const char *name, const char *about,
                        int64_t at_us)
{
    const struct rv_session_row fresh = {
        .id = id, .tenant = RV_STORE_TENANT, .user = user, .name = name, .description = about, .created_us = at_us};

    OK(rv_store_ensure_session(w->s, &fresh, NULL, &w->err));
}

static void add_moment(struct world *w, const struct rv_store_scope *scope, const char *name, const char *session,
                       const char *summary)
{
    char row[500];

    snprintf(row, sizeof row,
             "{\"name\":\"%s\",\"moment_type\":\"note\",\"source_session_id\":\"%s\",\"summary\":\"%s\"}", name,
             session, summary);
    OK(try_put(w, scope, "moments", row, T0));
}

/* Bob has one that says the same; a moment of his names a session of ada. */
static void fill(struct world *w)
{
    add_session(w, "s1", "ada", "Monday", "baking bread with rye flour", T0 + 1);
    add_session(w, "s2", "ada", "Rye flour", NULL, T0 + 2);
    add_session(w, "s3", "ada", "Tuesday", "the garden gate", T0 + 3);
    add_session(w, "s4", "ada", "Wednesday", NULL, T0 + 4);
    add_session(w, "b1", "bob", "Rye flour", "baking bread with rye flour", T0 + 5);
    add_moment(w, &ada, "one", "s4", "rye flour bread was baked twice");
    add_moment(w, &ada, "two", "s1", "more rye flour was bought");
    add_moment(w, &bob, "three", "s3", "rye flour rye flour");
}

/* "id:similarity ..." of one page and the total; the rows are as many bytes on each store. */
static void finds(struct world *w, const struct rv_store_scope *scope, const struct rv_app_session_search *search,
                  const char *want, int line)
{
    rv_buf text = RV_BUF_INIT(4096);
    json_object *page = NULL, *rows, *score = NULL;
    int64_t total = 0;

    must_ok(w, rv_app_search_sessions(w->s, scope, search, &page, &w->err), want, line);
    rows = rv_json_get_arr(page, "results");
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        const char *id = "-";
        ck_assert(rv_json_get_text(row, "id", &id) && json_object_object_get_ex(row, "similarity", &score));
        rv_buf_printf(&text, "%s:", id);
        if (score)
            rv_buf_printf(&text, "%.3f ", json_object_get_double(score));
        else
            rv_buf_puts(&text, "- ");
    }
    ck_assert(rv_json_get_int(page, "total", &total));
    rv_buf_printf(&text, "of %lld", (long long)total);
    ck_assert_msg(strcmp(rv_buf_cstr(&text), want) == 0, "line %d: \"%s\", not \"%s\"", line, rv_buf_cstr(&text), want);
    rv_buf_fini(&text);
    json_object_put(page);
}
#define FINDS(scope, search, want) finds(w, (scope), (search), (want), __LINE__)

START_TEST(names_descriptions_and_moments_are_fused)
{
    struct world world, *w = &world;
    struct rv_app_session_search search = {.query = "rye flour", .page = 1, .size = 10};

    world_open(w, _i);
    fill(w);
    FINDS(&ada, &search, "s1:0.583 s2:- s4:0.556 of 3");
    search.query = "garden gate";
    FINDS(&ada, &search, "s3:0.994 of 1");
    search.query = "submarine cables";
    FINDS(&ada, &search, "of 0");
    search.query = "rye flour";
    FINDS(&bob, &search, "b1:0.523 of 1");
    FINDS(&elsewhere, &search, "of 0");
    search.size = 1;
    search.page = 2;
    FINDS(&ada, &search, "s2:- of 3");
    search.page = 4;
    FINDS(&ada, &search, "of 3");
    search.page = 1;
    search.name = "wednes";
    FINDS(&ada, &search, "s4:0.556 of 1");
    search.since_us = T0 + 5;
    FINDS(&ada, &search, "of 0");
    world_close(w);
}
END_TEST

/* Nothing can make a vector of the query: words and names are what is left. */
START_TEST(words_decide_when_no_request_may_be_made)
{
    struct world world, *w = &world;
    struct rv_app_session_search search = {.query = "rye flour", .page = 1, .size = 10};

    world_open(w, _i);
    OK(rv_store_set_embedding_provider(w->s, "openai:small", T0, &w->err));
    fill(w);
    FINDS(&ada, &search, "s2:- s1:- s4:- of 3");
    search.query = NULL;
    search.name = "rye flour";
    FINDS(&ada, &search, "s2:- of 1");
    world_close(w);
}
END_TEST

/* Without a query it is what it always was, whatever has vectors. */
START_TEST(a_name_is_only_compared)
{
    struct world world, *w = &world;
    const struct rv_app_session_search search = {.name = "DAY", .page = 1, .size = 2};
    const struct rv_app_session_search empty = {.query = "", .name = "DAY", .page = 1, .size = 2};
    const struct rv_app_session_search none = {.query = "rye", .page = 0, .size = 2};

    world_open(w, _i);
    fill(w);
    FINDS(&ada, &search, "s4:- s3:- of 3");
    FINDS(&ada, &empty, "s4:- s3:- of 3");
    json_object *page = NULL;
    FAILS(RV_E_INVALID, rv_app_search_sessions(w->s, &ada, &none, &page, &w->err));
    world_close(w);
}
END_TEST

Suite *sessions_suite(void)
{
    Suite *suite = suite_create("sessions");
    TCase *tc = tcase_create("about");

    tcase_add_loop_test(tc, names_descriptions_and_moments_are_fused, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, words_decide_when_no_request_may_be_made, first_store_impl, n_store_impls);
    tcase_add_loop_test(tc, a_name_is_only_compared, first_store_impl, n_store_impls);
    suite_add_tcase(suite, tc);
    return suite;
}
