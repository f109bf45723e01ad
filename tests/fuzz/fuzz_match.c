/* Any bytes as a name, a text and a page: keys, trigrams, words, embeddings, chunks, links and edges keep their
 * promises.
 */
#include <math.h>
#include <stdlib.h>

#include "coreengine/match/match.h"
#include "tests/kit/fuzz.h"

static void check_key(rv_str text)
{
    rv_buf once = RV_BUF_INIT(RV_MATCH_MAX_TEXT * 4), twice = RV_BUF_INIT(RV_MATCH_MAX_TEXT * 4);

    rv_match_write_key(text, &once);
    require(once.rc == 0 && rv_utf8_valid(rv_buf_str(&once), NULL));
    rv_match_write_key(rv_buf_str(&once), &twice);
    require(rv_str_eq(rv_buf_str(&once), rv_buf_str(&twice)));
    rv_buf_fini(&once);
    rv_buf_fini(&twice);
}

static void check_grams(rv_str text)
{
    struct rv_grams a, b;

    require(rv_grams_build(text, &a, NULL) == 0);
    require(rv_grams_build((rv_str){text.ptr, text.len / 2}, &b, NULL) == 0);
    require(a.n == 0 || rv_grams_similarity(a.at, a.n, a.at, a.n) == 1.0f);
    float score = rv_grams_similarity(a.at, a.n, b.at, b.n);
    require(score >= 0 && score <= 1);
    rv_grams_fini(&a);
    rv_grams_fini(&b);
}

static void check_terms(rv_str text)
{
    struct rv_terms t;
    size_t total = 0;
    float v[64];

    require(rv_terms_build(text, &t, NULL) == 0);
    for (size_t i = 0; i < t.n; i++) {
        total += t.at[i].count;
        require(t.at[i].text.len > 0 && rv_utf8_valid(t.at[i].text, NULL));
        require(rv_utf8_count(t.at[i].text) <= RV_TERM_MAX_CHARS);
    }
    require(total == t.length);
    struct rv_lexical_doc docs[2] = {{&t, 0}, {&t, 0}};
    rv_lexical_rank(&t, docs, 2);
    require(docs[0].score == docs[1].score && isfinite(docs[0].score) && (docs[0].score > 0) == (t.n > 0));
    require(rv_embed_text(RV_STR_LIT(RV_EMBED_NGRAM), text, 64, v, NULL) == 0);
    require(rv_vector_is_finite(v, 64));
    rv_terms_fini(&t);
}

static void check_chunks(rv_str text, size_t max_chars, size_t overlap)
{
    struct rv_chunks c;
    const char *end = text.ptr;
    bool is_valid = rv_utf8_valid(text, NULL);

    require(rv_chunks_build(text, max_chars, overlap, &c, NULL) == 0);
    for (size_t i = 0; i < c.n; i++) {
        require(c.at[i].ptr >= text.ptr && c.at[i].ptr + c.at[i].len <= text.ptr + text.len);
        require(c.at[i].ptr + c.at[i].len > end);
        require(!is_valid || rv_utf8_valid(c.at[i], NULL));
        require(!is_valid || rv_utf8_count(c.at[i]) <= max_chars);
        end = c.at[i].ptr + c.at[i].len;
    }
    rv_chunks_fini(&c);
}

static void check_edges(rv_str text)
{
    json_object *links = NULL, *merged = NULL, *twice = NULL,
                *wrapped = json_object_new_string_len(text.ptr, (int)text.len);
    rv_err *err = NULL;

    require(wrapped && rv_page_build_links(text, RV_STR_LIT("a/b/c.md"), &links, NULL) == 0);
    require(rv_edges_merge(links, links, &merged, NULL, NULL) == 0);
    require(rv_json_equal(links, merged)); /* each target once */
    json_object_put(merged);
    merged = NULL;
    if (rv_edges_merge(wrapped, links, &merged, NULL, &err) == 0) { /* the text itself, if it is a list */
        require(rv_edges_merge(merged, wrapped, &twice, NULL, NULL) == 0);
        require(rv_json_equal(merged, twice));
    }
    rv_err_free(err);
    json_object_put(links);
    json_object_put(merged);
    json_object_put(twice);
    json_object_put(wrapped);
}

RV_FUZZ_TARGET(match)
{
    rv_str text = {size ? (const char *)data : "", size};

    if (size > 100000)
        return 0;
    check_key(text);
    check_grams(text);
    check_terms(text);
    check_chunks(text, 1 + size % 50, size % 50 / 3);
    check_chunks(text, RV_CHUNK_CHARS, RV_CHUNK_OVERLAP);
    check_edges(text);
    return 0;
}
