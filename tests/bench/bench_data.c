/* What searching costs: rows written with what they are found by, then queries.
 *
 *   bench_data N STORE SYNC            STORE a new file, "memory:" or a PostgreSQL URL; SYNC full, normal or off
 *   bench_data recall QUESTIONS FILE...   recall@10 of full text, hash-ngram and both, over chunks of pages
 *   bench_data rows N DIR              write the chunks and such queries, with their vectors, for tests/bench/search
 *
 * N rows are resources with a chunk of text each, N are tools whose summary is a text of some 300 characters. Prints
 * one JSON object: chunks a second, the first query of each kind and the median of forty others, all in time of the
 * processor: other processes do not change it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/knowledge/knowledge.h"
#include "coreengine/match/match.h"
#include "coreengine/store/store.h"
#include "tests/bench/bench_kit.h"

#define PER_PUT   100
#define QUERIES   41
#define WORDS     6000 /* of the language that texts are made of */
#define CHUNK     180  /* words of a chunk: some 1,200 characters */
#define SUMMARY   45
#define MAX_LINES 2000

static const struct rv_store_scope scope = {NULL, "ada"};

/* --- Texts: words of two to four syllables, the first ones often, as in languages --- */

static void write_word(uint64_t n, rv_buf *out)
{
    static const char *const parts[] = {"ka",  "ro",  "mi",  "ten", "sal", "vo", "ner", "pi",  "lu",  "dor",
                                        "esh", "gan", "tri", "be",  "fo",  "zu", "qua", "int", "con", "ver"};

    for (int i = 0; i < 2 + (int)(n % 3); i++, n = n / 3 + 7 * (uint64_t)i)
        rv_buf_puts(out, parts[(n * 2654435761u >> 7) % RV_COUNT(parts)]);
    rv_buf_printf(out, "%c", (int)('a' + n % 26));
}

static uint64_t some_word(struct rv_rand r)
{
    uint64_t most = WORDS >> rv_rand_below(r, 8);

    return rv_rand_below(r, most ? most : 1);
}

static void write_text(struct rv_rand r, size_t n, rv_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        rv_buf_puts(out, i ? " " : "");
        write_word(some_word(r), out);
    }
}

/* --- Rows --- */

static json_object *make_row(struct rv_rand r, const char *field, size_t n_words, size_t i)
{
    rv_buf name = RV_BUF_INIT(1000), text = RV_BUF_INIT(100000);
    json_object *row = json_object_new_object();

    write_text(r, 2, &name);
    rv_buf_printf(&name, " %zu", i);
    write_text(r, n_words, &text);
    if (rv_json_set_str(row, "name", rv_buf_str(&name), NULL) < 0 ||
        rv_json_set_str(row, field, rv_buf_str(&text), NULL) < 0)
        bench_die("a row", NULL);
    rv_buf_fini(&name);
    rv_buf_fini(&text);
    return row;
}

/* Gives the nanoseconds of the processor that writing took. */
static int64_t fill(rv_store *s, struct rv_rand r, const char *kind, const char *field, size_t n_words, size_t n)
{
    int64_t took = 0;

    for (size_t i = 0; i < n; i += PER_PUT) {
        json_object *rows[PER_PUT];
        size_t k = 0;
        rv_err *err = NULL;
        for (; k < PER_PUT && i + k < n; k++)
            rows[k] = make_row(r, field, n_words, i + k);
        const struct rv_entities_put put = {.kind = kind, .rows = rows, .n_rows = k, .now_us = (int64_t)i + 1};
        int64_t since = bench_cpu_ns();
        if (rv_store_put_entities(s, &scope, &put, NULL, &err) < 0)
            bench_die("put", err);
        took += bench_cpu_ns() - since;
        for (size_t j = 0; j < k; j++)
            json_object_put(rows[j]);
    }
    return took;
}

/* --- Queries --- */

static void ask_fuzzy(rv_store *s, rv_str text)
{
    const struct rv_knowledge_fuzzy query = {.text = text, .threshold = 0.3, .limit = 10};
    json_object *list = NULL;
    rv_err *err = NULL;

    if (rv_knowledge_search_fuzzy(s, &scope, &query, &list, &err) < 0)
        bench_die("fuzzy", err);
    json_object_put(list);
}

static void ask_search(rv_store *s, rv_str text, enum rv_knowledge_rank rank)
{
    const struct rv_knowledge_search query = {
        .text = text, .table = RV_STR_LIT("resources"), .min_similarity = 0.3, .limit = 10, .rank = rank};
    json_object *list = NULL;
    rv_err *err = NULL;

    if (rv_knowledge_search(s, &scope, &query, &list, NULL, &err) < 0)
        bench_die("search", err);
    json_object_put(list);
}

/* how: -1 FUZZY, else a rank. Prints the first and the median of the others, in milliseconds. */
static void measure(rv_store *s, struct rv_rand r, const char *name, int how, size_t n_words)
{
    int64_t took[QUERIES];

    for (int i = 0; i < QUERIES; i++) {
        rv_buf text = RV_BUF_INIT(10000);
        write_text(r, n_words, &text);
        int64_t since = bench_cpu_ns();
        if (how < 0)
            ask_fuzzy(s, rv_buf_str(&text));
        else
            ask_search(s, rv_buf_str(&text), (enum rv_knowledge_rank)how);
        took[i] = bench_cpu_ns() - since;
        rv_buf_fini(&text);
    }
    int64_t first = took[0];
    printf(",\"%s_cold_ms\":%.1f,\"%s_ms\":%.2f", name, (double)first / 1e6, name,
           (double)bench_quantile(took + 1, QUERIES - 1, 0.5) / 1e6);
    fflush(stdout);
}

static void measure_all(const char *n_text, const char *url, const char *sync)
{
    const struct rv_store_opts opts = {.sync = bench_sync(sync)};
    size_t n = bench_number(n_text, 1);
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 1);
    rv_store *s = NULL;
    rv_err *err = NULL;

    if (rv_store_open(url, &opts, &s, &err) < 0)
        bench_die("open", err);
    int64_t chunks = fill(s, r, "resources", "content", CHUNK, n);
    printf("{\"rows\":%zu,\"chunks_per_s\":%.0f", n, (double)n * 1e9 / (double)chunks);
    measure(s, r, "fuzzy_keys", -1, 2);
    measure(s, r, "search", RV_RANK_COSINE, 8);
    measure(s, r, "words", RV_RANK_LEXICAL, 8);
    measure(s, r, "hybrid", RV_RANK_HYBRID, 8);
    fill(s, r, "tools", "description", SUMMARY, n);
    measure(s, r, "fuzzy_summaries", -1, 3);
    printf(",\"resident_mb\":%.0f}\n", (double)bench_resident_bytes() / 1e6);
    rv_store_close(s);
}

/* --- The same for others: texts as JSON, a line each, vectors as little-endian float32 --- */

static FILE *open_to_write(const char *dir, const char *name)
{
    rv_buf path = RV_BUF_INIT(4096);

    rv_buf_printf(&path, "%s/%s", dir, name);
    FILE *f = fopen(rv_buf_cstr(&path), "we");
    if (!f)
        bench_die(rv_buf_cstr(&path), NULL);
    rv_buf_fini(&path);
    return f;
}

static void write_with_vector(FILE *texts, FILE *vectors, rv_str text, const char *json)
{
    float vector[RV_EMBED_NGRAM_DIMS];
    rv_err *err = NULL;

    if (rv_embed_text(RV_STR_LIT(RV_EMBED_NGRAM), text, RV_EMBED_NGRAM_DIMS, vector, &err) < 0)
        bench_die("a vector", err);
    fprintf(texts, "%s\n", json);
    fwrite(vector, sizeof *vector, RV_EMBED_NGRAM_DIMS, vectors);
}

static void write_rows(const char *n_text, const char *dir)
{
    size_t n = bench_number(n_text, 1);
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 1);
    FILE *rows = open_to_write(dir, "rows.jsonl"), *vectors = open_to_write(dir, "rows.f32");
    FILE *queries = open_to_write(dir, "queries.jsonl"), *asked = open_to_write(dir, "queries.f32");

    for (size_t i = 0; i < n; i++) {
        json_object *row = make_row(r, "content", CHUNK, i), *content = NULL;
        json_object_object_get_ex(row, "content", &content);
        write_with_vector(rows, vectors, rv_json_str(content), json_object_to_json_string(row));
        json_object_put(row);
    }
    for (int i = 0; i < QUERIES; i++) {
        rv_buf text = RV_BUF_INIT(10000);
        write_text(r, 8, &text);
        json_object *query = json_object_new_string(rv_buf_cstr(&text));
        write_with_vector(queries, asked, rv_buf_str(&text), json_object_to_json_string(query));
        json_object_put(query);
        rv_buf_fini(&text);
    }
    if (fclose(rows) || fclose(vectors) || fclose(queries) || fclose(asked))
        bench_die("write rows", NULL);
}

/* --- Recall: the pages that questions are about --- */

struct tally {
    int n, found[3];
};

static void read_all(const char *path, rv_buf *out)
{
    FILE *f = fopen(path, "re");
    char part[1 << 14];
    size_t n;

    if (!f)
        bench_die(path, NULL);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        rv_buf_add(out, part, n);
    fclose(f);
}

static void put_page(rv_store *s, const char *path)
{
    rv_buf text = RV_BUF_INIT((size_t)16 << 20), name = RV_BUF_INIT(1000);
    struct rv_chunks chunks;
    rv_err *err = NULL;

    read_all(path, &text);
    if (rv_chunks_build(rv_buf_str(&text), RV_CHUNK_CHARS, RV_CHUNK_OVERLAP, &chunks, &err) < 0)
        bench_die("chunks", err);
    for (size_t i = 0; i < chunks.n; i++) {
        json_object *row = json_object_new_object();
        rv_buf_clear(&name);
        rv_page_write_name(rv_str_of(path), &name);
        rv_buf_printf(&name, "#%zu", i);
        const struct rv_entities_put put = {.kind = "resources", .rows = &row, .n_rows = 1, .now_us = 1};
        if (rv_json_set_str(row, "name", rv_buf_str(&name), NULL) < 0 ||
            rv_json_set_str(row, "content", chunks.at[i], NULL) < 0 ||
            rv_store_put_entities(s, &scope, &put, NULL, &err) < 0)
            bench_die("put", err);
        json_object_put(row);
    }
    rv_chunks_fini(&chunks);
    rv_buf_fini(&text);
    rv_buf_fini(&name);
}

static bool finds(rv_store *s, rv_str question, rv_str page, enum rv_knowledge_rank rank)
{
    const struct rv_knowledge_search query = {
        .text = question, .table = RV_STR_LIT("resources"), .min_similarity = 0, .limit = 10, .rank = rank};
    json_object *list = NULL;
    rv_err *err = NULL;
    bool found = false;

    if (rv_knowledge_search(s, &scope, &query, &list, NULL, &err) < 0)
        bench_die("search", err);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        const char *name = "";
        if (rv_json_get_text(rv_json_get_obj(json_object_array_get_idx(list, i), "data"), "name", &name))
            found = found || (strncmp(name, page.ptr, page.len) == 0 && name[page.len] == '#');
    }
    json_object_put(list);
    return found;
}

/* "page<TAB>question" a line. */
static void recall(const char *questions, char **pages, int n_pages)
{
    static const enum rv_knowledge_rank ranks[] = {RV_RANK_LEXICAL, RV_RANK_COSINE, RV_RANK_HYBRID};
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);
    struct tally t = {0};
    rv_store *s = NULL;
    rv_err *err = NULL;

    if (rv_store_open("memory:", NULL, &s, &err) < 0)
        bench_die("open", err);
    for (int i = 0; i < n_pages; i++)
        put_page(s, pages[i]);
    read_all(questions, &text);
    char *rest = NULL;
    for (char *line = strtok_r(text.ptr, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *tab = strchr(line, '\t');
        if (!tab)
            continue;
        t.n++;
        for (size_t k = 0; k < RV_COUNT(ranks); k++)
            t.found[k] += finds(s, rv_str_of(tab + 1), (rv_str){line, (size_t)(tab - line)}, ranks[k]);
    }
    printf("{\"questions\":%d,\"full_text\":%.2f,\"hash_ngram\":%.2f,\"hybrid\":%.2f}\n", t.n,
           t.n ? (double)t.found[0] / t.n : 0, t.n ? (double)t.found[1] / t.n : 0, t.n ? (double)t.found[2] / t.n : 0);
    rv_store_close(s);
    rv_buf_fini(&text);
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "recall") == 0)
        recall(argv[2], argv + 3, argc - 3);
    else if (argc == 4 && strcmp(argv[1], "rows") == 0)
        write_rows(argv[2], argv[3]);
    else if (argc == 4)
        measure_all(argv[1], argv[2], argv[3]);
    else
        bench_die("bench_data N STORE SYNC | recall QUESTIONS FILE... | rows N DIR", NULL);
    return 0;
}
