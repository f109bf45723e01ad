/* Hook files.judge_coverage: do the passages found speak about what the question asks? A word of the question counts as
 * covered when a passage, or a title above it, has it or, after the first attempt, a word that means nearly the same. A
 * single passage with many of the words says more than many passages with one word each, so both are looked at. */
#include "capabilities/files/files_internal.h"

#include <stdlib.h>
#include <string.h>

#define LOOKED_AT   3    /* the best passages are judged, and planned to be read */
#define GOOD_ENOUGH 0.65 /* coverage that needs no wider search */
#define LAST_RESORT 0.55 /* coverage that is better than nothing after the last attempt */

struct judgement {
    const char *verdict;
    double coverage;
    bool covered[MAX_TERMS];
    int64_t attempt;
    size_t n_hits;
};

static void mark(const struct words *question, const char *text, size_t len, bool widened, bool *covered)
{
    char word[MAX_WORD], written[MAX_WORD];
    size_t at = 0;

    while (next_word(text, len, &at, word, written))
        for (size_t i = 0; i < question->n; i++) {
            const char *const *relatives = widened ? synonyms_of(question->item[i]) : NULL;
            bool same = strcmp(question->item[i], word) == 0;
            for (; relatives && *relatives && !same; relatives++)
                same = strcmp(*relatives, word) == 0;
            covered[i] |= same;
        }
}

static double share(const bool *covered, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += covered[i];
    return n ? (double)count / (double)n : 0.0;
}

/* data.hits of the one result of the search stage; NULL when the search failed or found nothing. */
static json_object *hits_of(json_object *args)
{
    json_object *results = arg_in(args, "envelope.outputs.search.results");
    json_object *first = json_object_is_type(results, json_type_array) ? json_object_array_get_idx(results, 0) : NULL;
    json_object *hits = arg_in(first, "data.hits");

    return json_object_is_type(hits, json_type_array) ? hits : NULL;
}

static void judge(json_object *hits, const struct words *question, struct judgement *j)
{
    double best = 0.0;
    bool is_last;

    j->n_hits = hits ? json_object_array_length(hits) : 0;
    for (size_t h = 0; h < j->n_hits && h < LOOKED_AT; h++) {
        json_object *hit = json_object_array_get_idx(hits, h);
        const char *snippet = arg_text(hit, "snippet"), *heading = arg_text(hit, "heading");
        bool covered[MAX_TERMS] = {false};

        if (snippet)
            mark(question, snippet, strlen(snippet), j->attempt > 1, covered);
        if (heading)
            mark(question, heading, strlen(heading), j->attempt > 1, covered);
        for (size_t i = 0; i < question->n; i++)
            j->covered[i] |= covered[i];
        if (share(covered, question->n) > best)
            best = share(covered, question->n);
    }
    j->coverage = (best + share(j->covered, question->n)) / 2;
    is_last = j->attempt >= ATTEMPTS || question->n == 0;
    if (j->n_hits > 0 && j->coverage >= (is_last ? LAST_RESORT : GOOD_ENOUGH))
        j->verdict = "proceed";
    else
        j->verdict = is_last ? "nothing" : "loop_back";
}

static void feedback_of(const struct words *question, const struct judgement *j, struct text *out)
{
    bool any = false;

    text_puts(out, "no passage has: ");
    for (size_t i = 0; i < question->n; i++) {
        if (j->covered[i])
            continue;
        text_puts(out, any ? ", " : "");
        text_puts(out, question->seen[i]);
        any = true;
    }
    if (!any) {
        out->len = 0;
        text_puts(out, "the words are spread over several passages");
    }
}

static json_object *missing_of(const struct words *question, const struct judgement *j, bool *failed)
{
    json_object *missing = json_object_new_array();

    for (size_t i = 0; i < question->n; i++)
        if (!j->covered[i])
            push(failed, missing, json_object_new_string(question->seen[i]));
    return missing;
}

static json_object *steps_of(json_object *hits, bool *failed)
{
    json_object *steps = json_object_new_array();
    size_t n = hits ? json_object_array_length(hits) : 0;

    for (size_t h = 0; h < n && h < LOOKED_AT; h++) {
        json_object *hit = json_object_array_get_idx(hits, h), *step, *parameters;
        const char *path = arg_text(hit, "path");
        int64_t line = arg_int(hit, "line", 0), end_line = arg_int(hit, "end_line", 0);
        char id[32];

        if (!path || line < 1 || end_line < line)
            continue;
        step = json_object_new_object();
        parameters = json_object_new_object();
        snprintf(id, sizeof id, "read_%zu", h + 1);
        put(failed, parameters, "path", json_object_new_string(path));
        put(failed, parameters, "start_line", json_object_new_int64(line));
        put(failed, parameters, "end_line", json_object_new_int64(end_line));
        put(failed, step, "step_id", json_object_new_string(id));
        put(failed, step, "tool", json_object_new_string("read_file"));
        put(failed, step, "parameters", parameters);
        push(failed, steps, step);
    }
    return steps;
}

static int reply_judgement(struct rv_cap_call *call, json_object *hits, const struct words *question,
                           const struct judgement *j, bool failed)
{
    json_object *reply = json_object_new_object(), *output = json_object_new_object();
    struct text feedback = {0};

    put(&failed, output, "verdict", json_object_new_string(j->verdict));
    put(&failed, output, "coverage", new_decimal(j->coverage));
    put(&failed, output, "attempt", json_object_new_int64(j->attempt));
    put(&failed, output, "hits", json_object_new_int64((int64_t)j->n_hits));
    put(&failed, output, "missing", missing_of(question, j, &failed));
    if (strcmp(j->verdict, "loop_back") == 0) {
        feedback_of(question, j, &feedback);
        put(&failed, output, "feedback", new_text(feedback.ptr, feedback.len));
    }
    put(&failed, output, "steps",
        strcmp(j->verdict, "proceed") == 0 ? steps_of(hits, &failed) : json_object_new_array());
    put(&failed, reply, "output", output);
    failed |= feedback.failed;
    free(feedback.ptr);
    return reply_take(call, reply, failed);
}

int judge_coverage(void *self, struct rv_cap_call *call)
{
    json_object *args = args_parse(call), *hits;
    const char *text = arg_text(args, "envelope.raw_input");
    struct words *question = calloc(1, sizeof *question);
    struct judgement j = {.verdict = "nothing", .attempt = arg_int(args, "envelope.iteration", 0) + 1};
    int rc = 1;

    (void)self;
    if (!args)
        goto done;
    hits = hits_of(args);
    if (question && text) {
        words_of(text, strlen(text), question);
        judge(hits, question, &j);
    }
    rc = question ? reply_judgement(call, hits, question, &j, false)
                  : call->fail(call, "ExecutionError", "out of memory");
done:
    free(question);
    json_object_put(args);
    return rc;
}
