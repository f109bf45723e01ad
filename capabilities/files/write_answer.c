/* Hook files.write_answer: the answer in quotes. No model is pretended: each quote is the text of its lines, joined by
 * one blank, and can be compared with the file. A draft that a model wrote before is put above the quotes. */
#include "capabilities/files/files_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_QUOTES      4           /* of one answer: as many as a reader compares; further ones are left out */
#define MAX_QUOTE_LINES 4           /* of one quote: two or three sentences */
#define MAX_LINES_BACK  2           /* to where the sentence starts: a quote is to stay near what was found */
#define MAX_DRAFT       (64u << 10) /* bytes of a model's text that are passed on: many times a reply of 2,000 tokens */

struct answer {
    const struct words *question;
    json_object *quotes;
    struct text text;
    size_t n;
    bool failed;
};

static const char *line_text(json_object *lines, size_t i)
{
    const char *text = arg_text(json_object_array_get_idx(lines, i), "text");

    return text ? text : "";
}

static size_t n_covered(const struct words *question, const char *text)
{
    bool covered[MAX_TERMS] = {false};
    char word[MAX_WORD], written[MAX_WORD];
    size_t at = 0, n = 0, len = strlen(text);

    while (next_word(text, len, &at, word, written)) {
        int i = words_find(question, word);
        if (i >= 0 && !covered[i]) {
            covered[i] = true;
            n++;
        }
    }
    return n;
}

static bool ends_sentence(const char *text)
{
    size_t len = strlen(text);

    while (len > 0 && strchr(" \t\r`*)\"'", text[len - 1]))
        len--;
    return len > 0 && strchr(".!?:;|", text[len - 1]);
}

static bool says_something(const char *text)
{
    char word[MAX_WORD], written[MAX_WORD];
    size_t at = 0;

    return strncmp(text, "```", 3) != 0 && next_word(text, strlen(text), &at, word, written);
}

static void add_trimmed(struct text *out, const char *line)
{
    size_t len = strlen(line);

    while (len > 0 && (line[0] == ' ' || line[0] == '\t')) {
        line++;
        len--;
    }
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t' || line[len - 1] == '\r'))
        len--;
    text_add(out, line, len);
}

/* Where a quote of at most MAX_QUOTE_LINES lines best starts: where its lines have most words of the question, and of
 * equal places where the first line has one. */
static size_t best_start(const struct words *question, json_object *lines, size_t n)
{
    size_t best = 0, best_count = 0;

    for (size_t i = 0; i < n; i++) {
        struct text window = {0};
        size_t count;

        for (size_t k = i; k < n && k < i + MAX_QUOTE_LINES; k++) {
            text_puts(&window, line_text(lines, k));
            text_puts(&window, " ");
        }
        count = says_something(line_text(lines, i)) && window.ptr ? 2 * n_covered(question, window.ptr) : 0;
        if (count > 0 && n_covered(question, line_text(lines, i)) > 0)
            count++;
        if (count > best_count) { /* the first of equals: a sentence should start where its paragraph does */
            best = i;
            best_count = count;
        }
        free(window.ptr);
    }
    return best;
}

static bool starts_item(const char *text)
{
    text += strspn(text, " \t");
    if (strchr("-*|>", *text))
        return true;
    return text[strspn(text, "0123456789")] == '.';
}

/* The line in which the sentence of line `at` starts, if it is near. */
static size_t sentence_start(json_object *lines, size_t at)
{
    size_t first = at;

    while (first > 0 && at - first < MAX_LINES_BACK && !starts_item(line_text(lines, first)) &&
           !ends_sentence(line_text(lines, first - 1)) && says_something(line_text(lines, first - 1)))
        first--;
    return first;
}

/* A passage: {path, lines: [{line, text}]}. */
static void quote(struct answer *a, const char *path, json_object *lines)
{
    size_t n = json_object_is_type(lines, json_type_array) ? json_object_array_length(lines) : 0;
    size_t best, first, last;
    struct text joined = {0};
    json_object *item;
    int64_t line;

    if (!path || n == 0 || a->n >= MAX_QUOTES)
        return;
    best = last = best_start(a->question, lines, n);
    first = sentence_start(lines, best);
    while (last + 1 < n && last + 1 < first + MAX_QUOTE_LINES && !ends_sentence(line_text(lines, last)) &&
           says_something(line_text(lines, last + 1)))
        last++;
    for (size_t i = first; i <= last; i++) {
        text_puts(&joined, i > first ? " " : "");
        add_trimmed(&joined, line_text(lines, i));
    }
    line = arg_int(json_object_array_get_idx(lines, first), "line", 0);
    item = json_object_new_object();
    put(&a->failed, item, "path", json_object_new_string(path));
    put(&a->failed, item, "line", json_object_new_int64(line));
    put(&a->failed, item, "end_line", json_object_new_int64(line + (int64_t)(last - first)));
    put(&a->failed, item, "text", new_text(joined.ptr ? joined.ptr : "", joined.len));
    push(&a->failed, a->quotes, item);
    text_puts(&a->text, a->n ? "\n\n" : "");
    text_puts(&a->text, path);
    text_printf(&a->text, ":%lld: \"", (long long)line);
    text_add(&a->text, joined.ptr, joined.len);
    text_puts(&a->text, "\"");
    a->n++;
    a->failed |= joined.failed;
    free(joined.ptr);
}

static void quote_all(struct answer *a, json_object *args)
{
    json_object *results = arg_in(args, "envelope.outputs.read.results");
    size_t n = json_object_is_type(results, json_type_array) ? json_object_array_length(results) : 0;

    for (size_t i = 0; i < n; i++) {
        json_object *data = arg_in(json_object_array_get_idx(results, i), "data");
        quote(a, arg_text(data, "path"), arg_in(data, "lines"));
    }
}

static void say_nothing_found(struct answer *a, json_object *args)
{
    int64_t attempts = arg_int(args, "envelope.outputs.judge.attempt", 1);

    text_puts(&a->text, "Nothing was found about this in the files");
    if (a->question->n == 0) {
        text_puts(&a->text, ": the question has no word that could be looked for.");
        return;
    }
    text_printf(&a->text, " (%lld search%s for", (long long)attempts, attempts == 1 ? "" : "es");
    for (size_t i = 0; i < a->question->n; i++) {
        text_puts(&a->text, i ? ", " : " ");
        text_puts(&a->text, a->question->seen[i]);
    }
    text_puts(&a->text, ").");
}

static json_object *answer_of(struct answer *a, json_object *args)
{
    json_object *reply = json_object_new_object(), *output = json_object_new_object();
    const char *draft = arg_text(args, "envelope.outputs.draft.response");
    struct text whole = {0};

    quote_all(a, args);
    if (a->n == 0)
        say_nothing_found(a, args);
    else if (draft && *draft && strlen(draft) <= MAX_DRAFT) {
        text_puts(&whole, draft);
        text_puts(&whole, "\n\nFrom the files:\n\n");
    } else {
        text_puts(&whole, "The files say:\n\n");
    }
    text_add(&whole, a->text.ptr, a->text.len);
    put(&a->failed, output, "final_response", new_text(whole.ptr ? whole.ptr : "", whole.len));
    put(&a->failed, output, "found", json_object_new_boolean(a->n > 0));
    put(&a->failed, output, "quotes", a->quotes);
    put(&a->failed, reply, "output", output);
    a->failed |= whole.failed || a->text.failed;
    free(whole.ptr);
    return reply;
}

int write_answer(void *self, struct rv_cap_call *call)
{
    json_object *args = args_parse(call), *reply;
    const char *question = arg_text(args, "envelope.raw_input");
    struct words *words = calloc(1, sizeof *words);
    struct answer a = {.question = words};
    int rc = 1;

    (void)self;
    if (!args || !words) {
        if (args)
            rc = call->fail(call, "ExecutionError", "out of memory");
        goto done;
    }
    if (question)
        words_of(question, strlen(question), words);
    a.quotes = json_object_new_array();
    reply = answer_of(&a, args);
    rc = reply_take(call, reply, a.failed);
    free(a.text.ptr);
done:
    free(words);
    json_object_put(args);
    return rc;
}
