/* analyze_pages: a model describes pages of a text file, some of them at a time. Pages are divided by form feeds. */
#include "capabilities/p8/p8_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BATCH   20                  /* pages of one prompt: together they have to fit into a model's context */
#define MAX_PROMPTS 50                  /* of one call: each asks a model and can cost */
#define MAX_BYTES   ((size_t)256 << 10) /* text of the pages of one prompt: some 64,000 tokens of a context */
#define MAX_ASKED   (16 << 10)          /* bytes of the argument `prompt`: it is sent again with each batch of pages */
#define USUAL       "Describe what is on these pages: what they are about, and what matters in them."

struct pages {
    const char *uri, *prompt, *provider, *model;
    int64_t first, last, batch; /* pages from 1; last 0: to the end */
    const char *text;
    int64_t total;
    json_object *runs; /* owned */
    int64_t usage[4];
    char *said; /* the descriptions so far; owned */
    size_t len;
};

static const char *const counts[] = {"calls", "input_tokens", "output_tokens", "cost_micro_usd"};

/* --- pages --- */

/* A form feed at the end closes a page, it opens none. */
static int64_t count_pages(const char *text)
{
    int64_t n = 1;

    for (; *text; text++)
        n += text[0] == '\f' && text[1] != '\0';
    return n;
}

/* Where page n begins; one page further than the last: the end. */
static const char *page_at(const char *text, int64_t n)
{
    while (n-- > 1) {
        const char *end = strchr(text, '\f');
        if (!end)
            return text + strlen(text);
        text = end + 1;
    }
    return text;
}

/* --- one prompt --- */

static char *prompt_of(struct tool *t, const struct pages *p, int64_t from, int64_t to)
{
    const char *begin = page_at(p->text, from), *end = page_at(p->text, to + 1);
    size_t n = (size_t)(end - begin), size = n + strlen(p->prompt) + strlen(p->uri) + (size_t)(to - from + 1) * 64 + 64;
    char *out, *at;

    if (n > MAX_BYTES)
        return tool_fail(t, BAD_ARGUMENTS,
                         "pages %lld to %lld have %zu bytes, at most %zu are shown to a model at once: give a smaller "
                         "page_batch_size",
                         (long long)from, (long long)to, n, MAX_BYTES);
    out = at = malloc(size);
    if (!out) {
        t->no_memory = true;
        return NULL;
    }
    at += snprintf(at, size, "%s\n", p->prompt);
    for (int64_t i = from; i <= to; i++) {
        size_t len = strcspn(begin, "\f");
        at += snprintf(at, size - (size_t)(at - out), "\n[page %lld of %lld]\n", (long long)i, (long long)p->total);
        memcpy(at, begin, len);
        at += len;
        begin += len + (begin[len] == '\f');
        *at++ = '\n';
    }
    *at = '\0';
    return out;
}

static void keep_text(struct tool *t, struct pages *p, const char *said)
{
    size_t n = strlen(said);
    char *grown = realloc(p->said, p->len + n + 3);

    if (!grown) {
        t->no_memory = true;
        return;
    }
    p->said = grown;
    p->len += (size_t)snprintf(p->said + p->len, n + 3, "%s%s", p->len ? "\n\n" : "", said);
}

static void keep_answer(struct tool *t, struct pages *p, json_object *answer)
{
    const char *said = text_in(answer, "text");

    keep_text(t, p, said ? said : "");
    push(t, p->runs, json_object_get(member(answer, "run")));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        p->usage[i] += json_object_get_int64(member(member(answer, "usage"), counts[i]));
}

static void ask_model(struct tool *t, struct pages *p, int64_t from, int64_t to)
{
    char *prompt = prompt_of(t, p, from, to);
    json_object *args, *answer;

    if (!prompt)
        return;
    args = json_object_new_object();
    add(t, args, "prompt", text(prompt));
    if (p->provider)
        add(t, args, "provider", text(p->provider));
    if (p->model)
        add(t, args, "model", text(p->model));
    free(prompt);
    answer = ask_take(t, "models.call", args);
    if (answer)
        keep_answer(t, p, answer);
    json_object_put(answer);
}

/* --- the call --- */

static void read_args(struct tool *t, struct pages *p)
{
    p->uri = arg_text(t, "file_uri", true);
    p->prompt = arg_text(t, "prompt", false);
    p->provider = arg_text(t, "provider", false);
    p->model = arg_text(t, "model", false);
    p->first = arg_int(t, "start_page", 1);
    p->last = arg_int(t, "end_page", 0);
    p->batch = arg_int(t, "page_batch_size", 5);
    if (!p->prompt || !*p->prompt)
        p->prompt = USUAL;
    if (t->code)
        return;
    if (p->first < 1)
        tool_fail(t, BAD_ARGUMENTS, "start_page has to be at least 1");
    if (member(t->args, "end_page") && p->last < p->first)
        tool_fail(t, BAD_ARGUMENTS, "end_page has to be at least start_page");
    if (p->batch < 1 || p->batch > MAX_BATCH)
        tool_fail(t, BAD_ARGUMENTS, "page_batch_size has to be from 1 to %d", MAX_BATCH);
    if (strlen(p->prompt) > MAX_ASKED)
        tool_fail(t, BAD_ARGUMENTS, "prompt has more than %d bytes", MAX_ASKED);
    if (p->provider && !p->model)
        tool_fail(t, BAD_ARGUMENTS, "provider needs model: which of its models?");
}

static json_object *read_file(struct tool *t, const struct pages *p)
{
    json_object *args = json_object_new_object();

    add(t, args, "uri", text(p->uri));
    return ask_take(t, "files.read", args);
}

/* Which pages there are to look at. */
static void settle_range(struct tool *t, struct pages *p)
{
    p->total = count_pages(p->text);
    if (p->first > p->total)
        tool_fail(t, NOT_FOUND, "the file has %lld pages, and no page %lld", (long long)p->total, (long long)p->first);
    if (p->last == 0 || p->last > p->total)
        p->last = p->total;
    if (!t->code && (p->last - p->first) / p->batch >= MAX_PROMPTS)
        tool_fail(t, BAD_ARGUMENTS, "pages %lld to %lld are more than %d times page_batch_size: give end_page",
                  (long long)p->first, (long long)p->last, MAX_PROMPTS);
}

static json_object *show(struct tool *t, const struct pages *p)
{
    json_object *result = success(t, "success"), *usage = json_object_new_object();

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        add(t, usage, counts[i], json_object_new_int64(p->usage[i]));
    add(t, result, "file_uri", text(p->uri));
    add(t, result, "description", text(p->said ? p->said : ""));
    add(t, result, "page_count", json_object_new_int64(p->last - p->first + 1));
    add(t, result, "usage", usage);
    add(t, result, "start_page", json_object_new_int64(p->first));
    add(t, result, "end_page", json_object_new_int64(p->last));
    add(t, result, "total_pages", json_object_new_int64(p->total));
    add(t, result, "runs", json_object_get(p->runs));
    return result;
}

static json_object *analyze(struct tool *t, const void *self)
{
    struct pages p = {.runs = json_object_new_array()};
    json_object *file = NULL, *result = NULL;

    (void)self;
    read_args(t, &p);
    if (!t->code)
        file = read_file(t, &p);
    if (file) {
        p.text = text_in(file, "text");
        p.text = p.text ? p.text : "";
        settle_range(t, &p);
        for (int64_t at = p.first; !t->code && !t->no_memory && at <= p.last; at += p.batch)
            ask_model(t, &p, at, at + p.batch - 1 < p.last ? at + p.batch - 1 : p.last);
        if (!t->code)
            result = show(t, &p);
    }
    json_object_put(file);
    json_object_put(p.runs);
    free(p.said);
    return result;
}

int analyze_pages(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, "file_uri", analyze);
}
