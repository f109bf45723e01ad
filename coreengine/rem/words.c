/* The words of LOOKUP, SEARCH, FUZZY and TRAVERSE. A quote opens only where a word begins, or behind a comma or an
 * equals sign, so that "what's" is a word. SQL never comes here. */
#include <string.h>

#include "coreengine/rem/rem_internal.h"

struct splitter {
    const struct rem_source *s;
    const char *p, *end;
    char *text, *literal; /* room for the words, in the arena: unquoted text is never longer than its source */
};

bool rem_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void put(struct splitter *r, char c, bool is_literal)
{
    *r->text++ = c;
    *r->literal++ = is_literal ? 1 : 0;
}

/* A quoted part; p is at its quote. Inside double quotes a backslash escapes a double quote and a backslash. */
static int read_quoted(struct splitter *r)
{
    const char *open = r->p++;
    int rc;

    while (r->p < r->end && *r->p != *open) {
        if (*open == '"' && *r->p == '\\' && r->p + 1 < r->end && (r->p[1] == '"' || r->p[1] == '\\'))
            r->p++;
        put(r, *r->p++, true);
    }
    if (r->p < r->end) {
        r->p++;
        return 0;
    }
    rc = REM_FAIL(r->s, open, RV_REM_UNTERMINATED, "the quote %c has no end", *open);
    rv_err_set_hint(r->s->err, "end the quoted text with %c; write \\%c for the character itself", *open, *open);
    return rc;
}

static int read_word(struct splitter *r, struct rem_word *w)
{
    char *text = r->text;
    bool may_quote = true;
    int rc;

    *w = (struct rem_word){{text, 0}, r->literal, r->p, SIZE_MAX};
    while (r->p < r->end && !rem_is_blank(*r->p)) {
        bool quotes = may_quote && (*r->p == '"' || *r->p == '\'');
        if ((quotes || *r->p == '\\') && w->first_quote == SIZE_MAX)
            w->first_quote = (size_t)(r->text - text);
        if (quotes) {
            if ((rc = read_quoted(r)) < 0)
                return rc;
        } else if (*r->p != '\\') {
            put(r, *r->p++, false);
        } else if (r->p + 1 == r->end) {
            rc = REM_FAIL(r->s, r->p, RV_REM_BAD_ESCAPE, "the backslash at the end escapes nothing");
            rv_err_set_hint(r->s->err, "write \\\\ for a backslash");
            return rc;
        } else {
            put(r, r->p[1], true);
            r->p += 2;
            may_quote = false;
            continue;
        }
        may_quote = !quotes && (r->p[-1] == ',' || r->p[-1] == '=');
    }
    w->text.len = (size_t)(r->text - text);
    return 0;
}

int rem_split(const struct rem_source *s, rv_str part, struct rem_words *out)
{
    struct splitter r = {s, part.ptr, part.ptr + part.len, NULL, NULL};
    size_t n = 0;
    int rc;

    for (size_t i = 0; i < part.len; i++) /* an upper bound: blanks inside quotes count too */
        n += !rem_is_blank(part.ptr[i]) && (i == 0 || rem_is_blank(part.ptr[i - 1]));
    r.text = rv_arena_alloc(s->memory, part.len + 1);
    r.literal = rv_arena_alloc(s->memory, part.len + 1);
    out->items = rv_arena_alloc(s->memory, (n + 1) * sizeof(out->items[0]));
    out->n = 0;
    if (!r.text || !r.literal || !out->items)
        return rem_no_memory(s);
    for (;;) {
        while (r.p < r.end && rem_is_blank(*r.p))
            r.p++;
        if (r.p == r.end)
            return 0;
        if (out->n == RV_REM_MAX_WORDS)
            return REM_FAIL(s, r.p, RV_REM_TOO_LONG, "query of more than %d words", RV_REM_MAX_WORDS);
        if ((rc = read_word(&r, &out->items[out->n])) < 0)
            return rc;
        out->n++;
    }
}
