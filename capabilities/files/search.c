/* search_files: passages ranked by the words of a query (BM25 over passages). Words in the titles above a passage and
 * in its path count too, and a passage that has more of the different words wins over one that repeats a single word.
 * The order is total: score, then path, then line. */
#include "capabilities/files/files_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define K1              1.2   /* of BM25, its usual value: how soon a repeated word adds nothing */
#define B               0.75  /* of BM25, its usual value: how much a long piece counts less */
#define TITLE_WEIGHT    0.8   /* a word in a title counts as this many in the text */
#define PATH_WEIGHT     0.4   /* of a word in the path, where one in the text counts 1 */
#define CODE_WEIGHT     0.35  /* of a match in a block of code */
#define LINKS_COST      0.6   /* taken from a passage that is nothing but links */
#define WORDS_OF_A_LINK 8     /* its title and its path, as words */
#define MAX_PER_FILE    3     /* hits of one file: a long page must not hide the others */
#define MAX_KEPT        20000 /* passages with a word of the query that are ranked: they are in memory */

struct candidate {
    size_t path; /* index of the walked files */
    int line, end_line;
    size_t n_words; /* length of the passage */
    double prose;   /* 1: sentences; less for code and for lists of links, which quote badly */
    float tf[MAX_TERMS];
    char *snippet, *heading; /* owned */
    int64_t score;           /* thousandths: equal on every machine */
};

struct search {
    const struct files *f;
    struct rv_cap_call *call;
    struct words terms;
    struct walked files;
    struct candidate *kept;
    size_t n_kept, cap_kept;
    size_t n_passages, n_words; /* of everything looked at */
    size_t df[MAX_TERMS];
    size_t n_searched, n_skipped, n_bytes;
    bool truncated, failed;
};

/* How words of a text count. */
struct weighing {
    float weight;
    bool once; /* each word once, however often it stands there */
};
static void add_matches(const struct search *s, const char *text, size_t len, const struct weighing *how, float *tf,
                        size_t *n_words)
{
    char word[MAX_WORD], written[MAX_WORD];
    bool seen[MAX_TERMS] = {false};
    size_t at = 0;

    while (next_word(text, len, &at, word, written)) {
        int term = words_find(&s->terms, word);
        if (n_words)
            ++*n_words;
        if (term < 0 || (how->once && seen[term]))
            continue;
        tf[term] += how->weight;
        seen[term] = true;
    }
}

/* A quote should say something by itself: code and lists of links match many words and explain few. */
static double prose_of(const struct passage *passage, size_t n_words)
{
    size_t links = 0;

    if (passage->is_code)
        return CODE_WEIGHT;
    for (size_t i = 0; i + 1 < passage->len; i++)
        links += passage->text[i] == ']' && passage->text[i + 1] == '(';
    double share = n_words ? (double)(links * WORDS_OF_A_LINK) / (double)n_words : 1.0;
    return share > 1.0 ? 1.0 - LINKS_COST : 1.0 - LINKS_COST * share;
}

static void keep(struct search *s, size_t path, const struct passage *passage, const float *tf, size_t n_words)
{
    struct candidate *c;

    if (s->n_kept >= MAX_KEPT) {
        s->truncated = true;
        return;
    }
    if (s->n_kept == s->cap_kept) {
        size_t cap = s->cap_kept ? s->cap_kept * 2 : 32;
        struct candidate *kept = realloc(s->kept, cap * sizeof *kept);
        if (!kept) {
            s->failed = true;
            return;
        }
        s->kept = kept;
        s->cap_kept = cap;
    }
    c = &s->kept[s->n_kept];
    *c = (struct candidate){.path = path,
                            .line = passage->line,
                            .end_line = passage->end_line,
                            .n_words = n_words,
                            .prose = prose_of(passage, n_words)};
    memcpy(c->tf, tf, sizeof c->tf);
    c->snippet = strndup(passage->text, passage->len);
    c->heading = strdup(passage->heading);
    s->n_kept++;
    s->failed |= !c->snippet || !c->heading;
}

static void look_at_passage(struct search *s, size_t path, const struct passage *passage)
{
    float tf[MAX_TERMS] = {0};
    size_t n_words = 0;
    bool any = false;

    add_matches(s, passage->text, passage->len, &(const struct weighing){.weight = 1.0f, .once = false}, tf, &n_words);
    for (size_t i = 0; i < s->terms.n && !any; i++)
        any = tf[i] > 0;
    s->n_passages++;
    s->n_words += n_words;
    if (!any) /* a title alone answers nothing */
        return;
    for (size_t i = 0; i < s->terms.n; i++)
        s->df[i] += tf[i] > 0;
    add_matches(s, passage->heading, strlen(passage->heading),
                &(const struct weighing){.weight = (float)TITLE_WEIGHT, .once = true}, tf, NULL);
    add_matches(s, s->files.paths[path], strlen(s->files.paths[path]),
                &(const struct weighing){.weight = (float)PATH_WEIGHT, .once = true}, tf, NULL);
    keep(s, path, passage, tf, n_words);
}

static void look_at_file(struct search *s, size_t i)
{
    struct place place;
    const char *type, *why;
    size_t len = 0;
    char *text = NULL;
    struct passages cursor;
    struct passage passage;

    if (place_of(s->f, NULL, s->files.paths[i], &place))
        text = read_text(s->f, &place, &len, &type, &why);
    if (!text) { /* binary, too large, or gone */
        s->n_skipped++;
        return;
    }
    s->n_searched++;
    s->n_bytes += len;
    passages_begin(&cursor, s->files.paths[i], text, len);
    while (!s->failed && passages_next(&cursor, &passage))
        look_at_passage(s, i, &passage);
    free(text);
}

static void rank(struct search *s)
{
    double average = s->n_passages ? (double)s->n_words / (double)s->n_passages : 1.0, idf[MAX_TERMS];

    for (size_t t = 0; t < s->terms.n; t++)
        idf[t] = log(1.0 + ((double)s->n_passages - (double)s->df[t] + 0.5) / ((double)s->df[t] + 0.5));
    for (size_t i = 0; i < s->n_kept; i++) {
        struct candidate *c = &s->kept[i];
        double norm = K1 * (1.0 - B + B * (double)c->n_words / average), score = 0;
        size_t matched = 0;

        for (size_t t = 0; t < s->terms.n; t++) {
            if (c->tf[t] <= 0)
                continue;
            matched++;
            score += idf[t] * (double)c->tf[t] * (K1 + 1.0) / ((double)c->tf[t] + norm);
        }
        score *= (0.4 + 0.6 * (double)matched / (double)s->terms.n) * c->prose;
        c->score = (int64_t)llround(score * 1000.0);
    }
}

static int better(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    if (x->path != y->path) /* walked in order: the index is the order of paths */
        return x->path < y->path ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static size_t snippet_length(const char *text)
{
    size_t len = strlen(text);

    if (len <= MAX_SNIPPET)
        return len;
    len = MAX_SNIPPET;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

static json_object *hit_of(const struct search *s, const struct candidate *c, bool *failed)
{
    json_object *hit = json_object_new_object(), *matched = json_object_new_array();

    for (size_t t = 0; t < s->terms.n; t++)
        if (c->tf[t] > 0)
            push(failed, matched, json_object_new_string(s->terms.seen[t]));
    put(failed, hit, "path", json_object_new_string(s->files.paths[c->path]));
    put(failed, hit, "line", json_object_new_int(c->line));
    put(failed, hit, "end_line", json_object_new_int(c->end_line));
    put(failed, hit, "score", new_decimal((double)c->score / 1000.0));
    put(failed, hit, "heading", json_object_new_string(c->heading));
    put(failed, hit, "matched", matched);
    put(failed, hit, "snippet", new_text(c->snippet, snippet_length(c->snippet)));
    return hit;
}

static json_object *evidence_of(const struct search *s, const struct candidate *c, bool *failed)
{
    json_object *item = json_object_new_object();
    char location[MAX_PATH_BYTES + 32], score[DECIMAL_MAX], relevance[DECIMAL_MAX + 8];
    size_t matched = 0;

    for (size_t t = 0; t < s->terms.n; t++)
        matched += c->tf[t] > 0;
    snprintf(location, sizeof location, "%s:%d", s->files.paths[c->path], c->line);
    write_decimal((double)c->score / 1000.0, score);
    snprintf(relevance, sizeof relevance, "score %s", score);
    put(failed, item, "location", json_object_new_string(location));
    put(failed, item, "content", new_text(c->snippet, snippet_length(c->snippet)));
    put(failed, item, "relevance", json_object_new_string(relevance));
    put(failed, item, "confidence", new_decimal((double)matched / (double)s->terms.n));
    return item;
}

static int reply_hits(struct search *s, size_t max_results)
{
    json_object *reply = json_object_new_object(), *hits = json_object_new_array(), *evidence = json_object_new_array();
    json_object *terms = json_object_new_array();
    size_t *per_file = calloc(s->files.n + 1, sizeof *per_file);
    bool failed = s->failed || !per_file;

    for (size_t t = 0; t < s->terms.n; t++)
        push(&failed, terms, json_object_new_string(s->terms.seen[t]));
    for (size_t i = 0, n = 0; per_file && i < s->n_kept && n < max_results && !failed; i++) {
        const struct candidate *c = &s->kept[i];
        if (per_file[c->path]++ >= MAX_PER_FILE)
            continue;
        push(&failed, hits, hit_of(s, c, &failed));
        push(&failed, evidence, evidence_of(s, c, &failed));
        n++;
    }
    free(per_file);
    put(&failed, reply, "terms", terms);
    put(&failed, reply, "hits", hits);
    put(&failed, reply, "total_matches", json_object_new_int64((int64_t)s->n_kept));
    put(&failed, reply, "files_searched", json_object_new_int64((int64_t)s->n_searched));
    put(&failed, reply, "files_skipped", json_object_new_int64((int64_t)s->n_skipped));
    put(&failed, reply, "truncated", json_object_new_boolean(s->truncated));
    put(&failed, reply, "evidence", evidence);
    return reply_take(s->call, reply, failed);
}

static int run_search(struct search *s, const char *glob, size_t max_results)
{
    if (s->terms.n > 0)
        walk_all(s->f, s->call, glob, &s->files);
    if (s->files.error)
        return walk_failed(&s->files, s->call);
    s->failed = s->files.failed;
    s->truncated = s->files.truncated;
    for (size_t i = 0; i < s->files.n && !s->failed; i++) {
        if (s->call->cancelled(s->call))
            return s->call->fail(s->call, "CancelledError", "the search was cancelled");
        if (s->n_bytes > MAX_SEARCH_BYTES) {
            s->truncated = true;
            break;
        }
        look_at_file(s, i);
    }
    rank(s);
    if (s->n_kept > 0)
        qsort(s->kept, s->n_kept, sizeof *s->kept, better);
    return reply_hits(s, max_results);
}

int search_files(void *self, struct rv_cap_call *call)
{
    struct search *s = calloc(1, sizeof *s);
    json_object *args = s ? args_parse(call) : NULL;
    const char *query = arg_text(args, "query");
    int64_t max_results;
    int rc;

    if (!s)
        return call->fail(call, "ExecutionError", "out of memory");
    s->f = self;
    s->call = call;
    max_results = arg_int(args, "max_results", (int64_t)s->f->max_results);
    if (!args) {
        rc = 1;
    } else if (!query || max_results < 1 || max_results > MAX_RESULTS) {
        rc = call->fail(call, "ValidationError", "query is missing, or max_results is not between 1 and 50");
    } else {
        words_of(query, strlen(query), &s->terms);
        rc = run_search(s, arg_text(args, "glob"), (size_t)max_results);
    }
    for (size_t i = 0; i < s->n_kept; i++) {
        free(s->kept[i].snippet);
        free(s->kept[i].heading);
    }
    free(s->kept);
    walked_fini(&s->files);
    free(s);
    json_object_put(args);
    return rc;
}
