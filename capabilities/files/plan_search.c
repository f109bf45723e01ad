/* Hook files.plan_search: the question becomes a plan of one search. The first attempt takes its own words, the second
 * adds words that mean nearly the same, the third drops the shorter half of the words and keeps their relatives. */
#include "capabilities/files/files_internal.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_RESULTS 8 /* results of the first attempt; each further attempt asks for MORE_RESULTS more */
#define MORE_RESULTS  8 /* by which each further attempt asks for more */

static int by_length(const void *a, const void *b)
{
    size_t x = strlen(*(const char *const *)a), y = strlen(*(const char *const *)b);

    return x < y ? 1 : x > y ? -1 : strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Is the word among the longer half? Long words say more about a subject than short ones. */
static bool is_long(const struct words *words, size_t i)
{
    const char *sorted[MAX_TERMS];

    for (size_t k = 0; k < words->n; k++)
        sorted[k] = words->seen[k];
    qsort(sorted, words->n, sizeof *sorted, by_length);
    for (size_t k = 0; k < (words->n + 1) / 2; k++)
        if (strcmp(sorted[k], words->seen[i]) == 0)
            return true;
    return false;
}

static void query_of(const struct words *words, int64_t attempt, struct text *query)
{
    for (size_t i = 0; i < words->n; i++) {
        const char *const *relatives = attempt > 1 ? synonyms_of(words->item[i]) : NULL;

        if (attempt > 2 && !is_long(words, i))
            continue;
        text_puts(query, query->len ? " " : "");
        text_puts(query, words->seen[i]);
        for (; relatives && *relatives; relatives++) {
            if (strcmp(*relatives, words->item[i]) == 0)
                continue;
            text_puts(query, " ");
            text_puts(query, *relatives);
        }
    }
}

static json_object *step_of(const struct text *query, int64_t attempt, bool *failed)
{
    json_object *step = json_object_new_object(), *parameters = json_object_new_object();

    put(failed, parameters, "query", new_text(query->ptr, query->len));
    put(failed, parameters, "max_results", json_object_new_int64(FIRST_RESULTS + MORE_RESULTS * (attempt - 1)));
    put(failed, step, "step_id", json_object_new_string("search"));
    put(failed, step, "tool", json_object_new_string("search_files"));
    put(failed, step, "parameters", parameters);
    return step;
}

int plan_search(void *self, struct rv_cap_call *call)
{
    json_object *args = args_parse(call), *reply, *output, *steps;
    const char *question = arg_text(args, "envelope.raw_input");
    int64_t attempt = arg_int(args, "envelope.iteration", 0) + 1;
    struct words *words = calloc(1, sizeof *words);
    struct text query = {0};
    bool failed = !words;

    (void)self;
    if (!args) {
        free(words);
        return 1;
    }
    if (attempt > ATTEMPTS)
        attempt = ATTEMPTS;
    if (!failed && question) {
        words_of(question, strlen(question), words);
        query_of(words, attempt, &query);
    }
    reply = json_object_new_object();
    output = json_object_new_object();
    steps = json_object_new_array();
    put(&failed, output, "question", json_object_new_string(question ? question : ""));
    put(&failed, output, "query", new_text(query.ptr ? query.ptr : "", query.len));
    put(&failed, output, "attempt", json_object_new_int64(attempt));
    if (query.len > 0) /* a question without a word that could be looked for has nothing to search */
        push(&failed, steps, step_of(&query, attempt, &failed));
    put(&failed, output, "steps", steps);
    put(&failed, reply, "output", output);
    failed |= query.failed;
    free(query.ptr);
    free(words);
    json_object_put(args);
    return reply_take(call, reply, failed);
}
