/* Search: the right passages first, with the right lines, in the same order every time. */
#include "tests/unit/files/sandbox.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Proves 6.6: read_file and search_files give evidence with location, content, relevance, confidence */
START_TEST(a_hit_has_the_lines_of_its_passage)
{
    struct sandbox s;
    json_object *reply;

    sandbox_begin(&s, NULL);
    reply = sandbox_ask(&s, "search_files", "{\"query\": \"what is the code of an error?\"}");
    ck_assert_str_eq(text_at(reply, "hits.0.path"), "docs/errors.md");
    ck_assert_int_eq(int_at(reply, "hits.0.line"), 3);
    ck_assert_int_eq(int_at(reply, "hits.0.end_line"), 4);
    ck_assert_str_eq(text_at(reply, "hits.0.snippet"), "An error is a value.\nIt has a code and a text.");
    ck_assert_str_eq(text_at(reply, "hits.0.heading"), "Errors");
    ck_assert_str_eq(text_at(reply, "evidence.0.location"), "docs/errors.md:3");
    ck_assert_str_eq(text_at(reply, "hits.1.heading"), "Errors > Chains");
    sandbox_end(&s);
}
END_TEST

START_TEST(hits_of_the_projects_own_documents_are_at_their_lines)
{
    struct sandbox s;
    json_object *hits;
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);

    sandbox_begin(&s, "{\"roots\": [\"" RV_SOURCE_DIR "/CONTRIBUTING.md\"]}");
    ck_assert_ptr_null(s.err);
    ck_assert_int_eq(rv_file_read(RV_SOURCE_DIR "/CONTRIBUTING.md", &text, NULL), 0);
    hits = at(sandbox_ask(&s, "search_files", "{\"query\": \"tests that fail, plugins, commits\"}"), "hits");
    ck_assert_uint_gt(json_object_array_length(hits), 1);
    for (size_t i = 0; i < json_object_array_length(hits); i++) {
        json_object *hit = json_object_array_get_idx(hits, i);
        const char *line = rv_buf_cstr(&text), *snippet = text_at(hit, "snippet");
        for (int64_t n = 1; n < int_at(hit, "line"); n++)
            line = strchr(line, '\n') + 1;
        ck_assert_msg(strncmp(line, snippet, strlen(snippet)) == 0, "line %d is not: %s", (int)int_at(hit, "line"),
                      snippet);
    }
    rv_buf_fini(&text);
    sandbox_end(&s);
}
END_TEST

START_TEST(endings_do_not_matter)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    ck_assert_str_eq(text_at(sandbox_ask(&s, "search_files", "{\"query\": \"edge limit\"}"), "hits.0.path"),
                     "docs/deep/limits.md");
    ck_assert_str_eq(text_at(sandbox_ask(&s, "search_files", "{\"query\": \"EDGES, looping\"}"), "hits.0.path"),
                     "docs/deep/limits.md");
    sandbox_end(&s);
}
END_TEST

START_TEST(a_title_lifts_the_passages_below_it)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    sandbox_file(&s, "project/docs/a.md", "# Other\n\nThe zebra is an animal here.\n");
    sandbox_file(&s, "project/docs/b.md", "# Zebra\n\nThe zebra is an animal here.\n");
    ck_assert_str_eq(text_at(sandbox_ask(&s, "search_files", "{\"query\": \"zebra\"}"), "hits.0.path"), "docs/b.md");
    sandbox_end(&s);
}
END_TEST

START_TEST(more_different_words_win_over_one_that_is_repeated)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    sandbox_file(&s, "project/docs/a.md", "zebra zebra zebra zebra zebra zebra\n");
    sandbox_file(&s, "project/docs/b.md", "a zebra has stripes everywhere, and it runs\n");
    ck_assert_str_eq(text_at(sandbox_ask(&s, "search_files", "{\"query\": \"zebra stripes\"}"), "hits.0.path"),
                     "docs/b.md");
    sandbox_end(&s);
}
END_TEST

START_TEST(equal_scores_are_in_the_order_of_paths_and_two_searches_are_equal)
{
    struct sandbox s;
    char first[65536], name[64];

    sandbox_begin(&s, NULL);
    for (int i = 9; i >= 0; i--) {
        snprintf(name, sizeof name, "project/docs/same%d.md", i);
        sandbox_file(&s, name, "okapi text\n");
    }
    sandbox_ask(&s, "search_files", "{\"query\": \"okapi\", \"max_results\": 10}");
    snprintf(first, sizeof first, "%s", rv_buf_cstr(&s.reply));
    for (int i = 0; i < 10; i++) {
        char path[32];
        snprintf(path, sizeof path, "hits.%d.path", i);
        snprintf(name, sizeof name, "docs/same%d.md", i);
        ck_assert_str_eq(text_at(s.json, path), name);
    }
    sandbox_ask(&s, "search_files", "{\"query\": \"okapi\", \"max_results\": 10}");
    ck_assert_str_eq(rv_buf_cstr(&s.reply), first);
    sandbox_end(&s);
}
END_TEST

START_TEST(one_file_does_not_fill_the_hits)
{
    struct sandbox s;
    char text[2000] = "";

    sandbox_begin(&s, NULL);
    for (int i = 0; i < 20; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "okapi number %d\n\n", i);
    sandbox_file(&s, "project/docs/many.md", text);
    ck_assert_uint_eq(json_object_array_length(at(sandbox_ask(&s, "search_files", "{\"query\": \"okapi\"}"), "hits")),
                      3);
    ck_assert_int_eq(int_at(s.json, "total_matches"), 20);
    sandbox_end(&s);
}
END_TEST

START_TEST(binary_files_are_skipped_and_counted)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    sandbox_file(&s, "project/docs/image.md", "okapi \xff\xfe okapi");
    ck_assert_uint_eq(json_object_array_length(at(sandbox_ask(&s, "search_files", "{\"query\": \"okapi\"}"), "hits")),
                      0);
    ck_assert_int_eq(int_at(s.json, "files_skipped"), 1);
    sandbox_end(&s);
}
END_TEST

static const struct {
    const char *args;
    size_t n_hits;
} counts[] = {
    {"{\"query\": \"how is it?\"}", 0}, /* no word that says anything */
    {"{\"query\": \"xylophone\"}", 0},  {"{\"query\": \"error\", \"max_results\": 1}", 1},
    {"{\"query\": \"error\"}", 2},      {"{\"query\": \"error\", \"glob\": \"*.txt\"}", 0},
};

START_TEST(the_number_of_hits_is_bounded)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    ck_assert_uint_eq(json_object_array_length(at(sandbox_ask(&s, "search_files", counts[_i].args), "hits")),
                      counts[_i].n_hits);
    sandbox_end(&s);
}
END_TEST

START_TEST(a_cancelled_search_stops)
{
    const atomic_bool cancelled = true;
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL,
                                        .name = "search_files",
                                        .args = RV_STR_LIT("{\"query\": \"error\"}"),
                                        .cancelled = &cancelled};
    struct sandbox s;

    sandbox_begin(&s, NULL);
    ck_assert_int_eq(rv_plugins_call(s.plugins, &call, &s.reply, &s.err), RV_E_TOOL);
    ck_assert_str_eq(rv_plugin_error_type(s.err), "CancelledError");
    sandbox_end(&s);
}
END_TEST

struct asker {
    rv_plugins *plugins;
    rv_buf reply;
    int rc;
};

static void *ask_often(void *self)
{
    const struct rv_plugin_call call = {
        .kind = RV_NAME_TOOL, .name = "search_files", .args = RV_STR_LIT("{\"query\": \"error cause\"}")};
    struct asker *a = self;

    for (int i = 0; i < 20 && a->rc == 0; i++) {
        rv_buf_clear(&a->reply);
        a->rc = rv_plugins_call(a->plugins, &call, &a->reply, NULL);
    }
    return NULL;
}

START_TEST(calls_from_several_threads_give_the_same_answer)
{
    struct sandbox s;
    struct asker askers[4];
    pthread_t threads[4];

    sandbox_begin(&s, NULL);
    for (size_t i = 0; i < RV_COUNT(askers); i++) {
        askers[i] = (struct asker){s.plugins, RV_BUF_INIT((size_t)1 << 20), 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_often, &askers[i]), 0);
    }
    for (size_t i = 0; i < RV_COUNT(askers); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < RV_COUNT(askers); i++) {
        ck_assert_int_eq(askers[i].rc, 0);
        ck_assert_str_eq(rv_buf_cstr(&askers[i].reply), rv_buf_cstr(&askers[0].reply));
        ck_assert_uint_gt(askers[i].reply.len, 100);
    }
    for (size_t i = 0; i < RV_COUNT(askers); i++)
        rv_buf_fini(&askers[i].reply);
    sandbox_end(&s);
}
END_TEST

TCase *search_case(void)
{
    TCase *tc = tcase_create("search");

    tcase_add_test(tc, a_hit_has_the_lines_of_its_passage);
    tcase_add_test(tc, hits_of_the_projects_own_documents_are_at_their_lines);
    tcase_add_test(tc, endings_do_not_matter);
    tcase_add_test(tc, a_title_lifts_the_passages_below_it);
    tcase_add_test(tc, more_different_words_win_over_one_that_is_repeated);
    tcase_add_test(tc, equal_scores_are_in_the_order_of_paths_and_two_searches_are_equal);
    tcase_add_test(tc, one_file_does_not_fill_the_hits);
    tcase_add_test(tc, binary_files_are_skipped_and_counted);
    tcase_add_loop_test(tc, the_number_of_hits_is_bounded, 0, RV_COUNT(counts));
    tcase_add_test(tc, a_cancelled_search_stops);
    tcase_add_test(tc, calls_from_several_threads_give_the_same_answer);
    return tc;
}
