/* Finding repetitions: see the header. */
#include "coreengine/app/told.h"

#include <stdlib.h>
#include <string.h>

struct rv_chat_said {
    const struct rv_origin *by;
    char *text; /* owned */
    size_t len;
};

void rv_chat_told_clear(struct rv_chat_told *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->items[i].text);
    t->n = 0;
}

void rv_chat_told_fini(struct rv_chat_told *t)
{
    rv_chat_told_clear(t);
    free(t->items);
    *t = (struct rv_chat_told){0};
}

void rv_chat_told_add(struct rv_chat_told *t, const struct rv_origin *by, rv_str text)
{
    rv_str words = rv_str_trim(text);

    if (words.len == 0)
        return;
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 8;
        struct rv_chat_said *items = realloc(t->items, cap * sizeof *items);
        if (!items)
            return;
        t->items = items;
        t->cap = cap;
    }
    char *copy = rv_str_dup(words);
    if (copy)
        t->items[t->n++] = (struct rv_chat_said){by, copy, words.len};
}

static bool is_asked_by(const struct rv_origin *by, const struct rv_origin *who)
{
    do
        by = by ? by->parent : NULL;
    while (by && by != who);
    return by == who;
}

bool rv_chat_told_any(const struct rv_chat_told *t, const struct rv_origin *who)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->items[i].by && is_asked_by(t->items[i].by, who))
            return true;
    return false;
}

/* The longest reply that text begins with; *undecided: text is the beginning of one, or ends with one. */
static size_t longest(const struct rv_chat_told *t, const struct rv_origin *who, rv_str text, bool *undecided)
{
    size_t found = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct rv_chat_said *s = &t->items[i];
        size_t common = s->len < text.len ? s->len : text.len;
        if (!s->by || !is_asked_by(s->by, who) || memcmp(s->text, text.ptr, common) != 0)
            continue;
        size_t end = common;
        while (end < text.len && strchr(" \t\r", text.ptr[end]))
            end++;
        *undecided = *undecided || text.len < s->len || end == text.len;
        if (text.len >= s->len && s->len > found && (end == text.len || text.ptr[end] == '\n'))
            found = s->len;
    }
    return found;
}

size_t rv_chat_told_repeats(const struct rv_chat_told *t, const struct rv_origin *who, rv_str text, bool *undecided)
{
    size_t at = 0;

    for (;;) {
        size_t from = at;
        while (from < text.len && strchr(" \n\t\r\v\f", text.ptr[from]))
            from++;
        *undecided = from == text.len;
        if (*undecided)
            return at;
        size_t n = longest(t, who, (rv_str){text.ptr + from, text.len - from}, undecided);
        if (n == 0)
            return at;
        at = from + n;
    }
}
