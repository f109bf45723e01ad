/* Bold text, italics, code, links within a line. A mark without its end in time stays as it was typed. */
#include "coreengine/cli/markdown/spans_internal.h"

#include <string.h>

#define MAX_DEPTH 4 /* of spans in spans: people write two, and the reader calls itself; deeper marks stay */

/* Where a text stands. */
struct within {
    unsigned look; /* of the text around it */
    int depth;     /* spans around it */
    bool ended;    /* no more text comes */
};

static void write_spans(struct md_spans *s, rv_str text, const struct within *in, size_t *used, rv_buf *out);

void md_look(bool styled, unsigned look, rv_buf *out)
{
    static const struct {
        unsigned bit;
        const char *code;
    } codes[] = {{MD_BOLD, ";1"},  {MD_ITALIC, ";3"}, {MD_UNDERLINE, ";4"},
                 {MD_CODE, ";36"}, {MD_STRIKE, ";9"}, {MD_DIM, ";2"}};

    if (!styled)
        return;
    rv_buf_puts(out, "\033[0");
    for (size_t i = 0; i < RV_COUNT(codes); i++)
        rv_buf_puts(out, look & codes[i].bit ? codes[i].code : "");
    rv_buf_putc(out, 'm');
}

static rv_str part(rv_str text, size_t from, size_t to)
{
    return (rv_str){text.ptr + from, to - from};
}

static size_t run_of(rv_str text, size_t at)
{
    size_t n = at;

    while (n < text.len && text.ptr[n] == text.ptr[at])
        n++;
    return n - at;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static bool is_word(char c)
{
    return rv_is_letter(c) || rv_is_digit(c) || (unsigned char)c >= 0x80;
}

static bool is_mark(char c)
{
    return c != '\0' && strchr("\\`*_~[!", c) != NULL;
}

/* --- what ends a span; 0: nothing does --- */

/* Behind the code that begins at `at` with n backticks: where as many end it. */
static size_t code_end(rv_str text, size_t at, size_t n)
{
    for (size_t i = at + n; i < text.len;) {
        size_t run = text.ptr[i] == '`' ? run_of(text, i) : 0;
        if (run == n)
            return i;
        i += run ? run : 1;
    }
    return 0;
}

/* The marks that end what n of them at `at` begin. Code and escapes in between are passed over. */
static size_t marks_end(rv_str text, size_t at, size_t n)
{
    char mark = text.ptr[at];

    for (size_t i = at + n; i < text.len;) {
        size_t run = run_of(text, i);
        if (text.ptr[i] == '\\') {
            i += 2;
        } else if (text.ptr[i] == '`') {
            size_t end = code_end(text, i, run);
            i = end ? end + run : i + run;
        } else if (text.ptr[i] == mark) {
            bool closes = run >= n && !is_blank(text.ptr[i - 1]);
            bool inside = mark == '_' && i + run < text.len && is_word(text.ptr[i + run]);
            if (closes && !inside && i > at + n)
                return i + run - n;
            i += run;
        } else {
            i++;
        }
    }
    return 0;
}

struct link {
    size_t text_end, url, url_end, end;
};

/* "[text](url)" at `at`. */
static bool link_at(rv_str text, size_t at, struct link *out)
{
    int depth = 0;
    size_t i = at;

    for (; i < text.len; i++) {
        if (text.ptr[i] == '\\')
            i++;
        else if (text.ptr[i] == '[')
            depth++;
        else if (text.ptr[i] == ']' && --depth == 0)
            break;
    }
    if (i + 1 >= text.len || text.ptr[i + 1] != '(')
        return false;
    const char *close = memchr(text.ptr + i, ')', text.len - i);
    if (!close)
        return false;
    *out = (struct link){.text_end = i, .url = i + 2, .url_end = (size_t)(close - text.ptr)};
    out->end = out->url_end + 1;
    return true;
}

/* Can more text still make it a link? */
static bool may_be_link(rv_str text, size_t at)
{
    int depth = 0;

    for (size_t i = at; i < text.len; i++) {
        if (text.ptr[i] == '\\')
            i++;
        else if (text.ptr[i] == '[')
            depth++;
        else if (text.ptr[i] == ']' && --depth == 0)
            return i + 1 >= text.len || text.ptr[i + 1] == '(';
    }
    return true;
}

/* --- writing --- */

static void write_inner(struct md_spans *s, rv_str text, unsigned look, int depth, rv_buf *out)
{
    size_t used;

    md_look(s->styled, look, out);
    write_spans(s, text, &(struct within){look, depth + 1, true}, &used, out);
}

static void write_link(struct md_spans *s, rv_str text, size_t at, const struct link *l, const struct within *in,
                       rv_buf *out)
{
    rv_str label = part(text, at + 1, l->text_end), url = part(text, l->url, l->url_end);

    if (label.len > 0) {
        write_inner(s, label, in->look | MD_UNDERLINE, in->depth, out);
        md_look(s->styled, in->look, out);
    }
    if (rv_str_eq(label, url))
        return;
    rv_buf_puts(out, label.len > 0 ? " (" : "(");
    rv_buf_add_str(out, url);
    rv_buf_putc(out, ')');
}

static unsigned look_of(char mark, size_t n)
{
    if (mark == '~')
        return MD_STRIKE;
    return n == 1 ? MD_ITALIC : n == 2 ? MD_BOLD : MD_BOLD | MD_ITALIC;
}

enum found { PLAIN, SPAN, WAITS };

static enum found code_span(struct md_spans *s, rv_str text, size_t *at, unsigned look, bool ended, rv_buf *out)
{
    size_t n = run_of(text, *at), end = code_end(text, *at, n);
    bool is_open = *at + n == text.len || !end || end + n == text.len; /* more backticks may come */

    s->awaited = '`';
    if (!ended && is_open)
        return WAITS;
    if (!end)
        return PLAIN;
    md_look(s->styled, look | MD_CODE, out);
    rv_buf_add_str(out, part(text, *at + n, end));
    md_look(s->styled, look, out);
    *at = end + n;
    return SPAN;
}

/* before: the byte in front of the mark. */
static enum found marked_span(struct md_spans *s, rv_str text, size_t *at, char before, const struct within *in,
                              rv_buf *out)
{
    char mark = text.ptr[*at];
    size_t n = run_of(text, *at);

    if (*at + n == text.len)
        return in->ended ? PLAIN : WAITS;
    if (n > 3 || is_blank(text.ptr[*at + n]) || (mark == '~' && n != 2) || (mark == '_' && is_word(before)))
        return PLAIN;
    size_t end = marks_end(text, *at, n);
    s->awaited = mark;
    if (!in->ended && (!end || end + n == text.len))
        return WAITS;
    if (!end || in->depth >= MAX_DEPTH)
        return PLAIN;
    write_inner(s, part(text, *at + n, end), in->look | look_of(mark, n), in->depth, out);
    md_look(s->styled, in->look, out);
    *at = end + n;
    return SPAN;
}

static enum found link_span(struct md_spans *s, rv_str text, size_t *at, const struct within *in, rv_buf *out)
{
    bool image = text.ptr[*at] == '!';
    size_t open = *at + image;
    struct link l;

    if (open >= text.len)
        return in->ended ? PLAIN : WAITS;
    if (text.ptr[open] != '[' || in->depth >= MAX_DEPTH)
        return PLAIN;
    s->awaited = ')';
    if (!link_at(text, open, &l))
        return !in->ended && may_be_link(text, open) ? WAITS : PLAIN;
    rv_buf_puts(out, image ? "image: " : "");
    write_link(s, text, open, &l, in, out);
    *at = l.end;
    return SPAN;
}

static enum found escape(rv_str text, size_t *at, bool ended, rv_buf *out)
{
    if (*at + 1 == text.len)
        return ended ? PLAIN : WAITS;
    char c = text.ptr[*at + 1];
    bool is_punctuation = c > ' ' && c < 0x7f && !rv_is_letter(c) && !rv_is_digit(c);
    if (!is_punctuation)
        return PLAIN;
    rv_buf_putc(out, c);
    *at += 2;
    return SPAN;
}

/* *used: what was written; less than all where a mark waits for its end. */
static void write_spans(struct md_spans *s, rv_str text, const struct within *in, size_t *used, rv_buf *out)
{
    size_t at = 0;

    while (at < text.len) {
        char c = text.ptr[at], before = at ? text.ptr[at - 1] : in->depth ? ' ' : s->last;
        enum found found = PLAIN;
        s->awaited = 0;
        if (c == '`')
            found = code_span(s, text, &at, in->look, in->ended, out);
        else if (c == '*' || c == '_' || c == '~')
            found = marked_span(s, text, &at, before, in, out);
        else if (c == '[' || c == '!')
            found = link_span(s, text, &at, in, out);
        else if (c == '\\')
            found = escape(text, &at, in->ended, out);
        if (found == WAITS)
            break;
        if (found == PLAIN) { /* all marks of a run: fewer of them would be another mark */
            size_t n = c == '`' || c == '*' || c == '_' || c == '~' ? run_of(text, at) : 1;
            rv_buf_add_str(out, part(text, at, at + n));
            at += n;
        }
    }
    *used = at;
}

/* --- a line --- */

void md_spans_begin(struct md_spans *s, bool styled, unsigned base)
{
    rv_buf_clear(&s->held);
    s->held.max = 2 * RV_CLI_MD_MAX_LINE;
    s->styled = styled;
    s->base = base;
    s->awaited = 0;
    s->last = ' ';
}

void md_spans_fini(struct md_spans *s)
{
    rv_buf_fini(&s->held);
}

static void settle(struct md_spans *s, bool ended, rv_buf *out)
{
    size_t used = 0;

    write_spans(s, rv_buf_str(&s->held), &(struct within){s->base, 0, ended}, &used, out);
    if (used == 0)
        return;
    s->last = s->held.ptr[used - 1];
    memmove(s->held.ptr, s->held.ptr + used, s->held.len - used);
    rv_buf_truncate(&s->held, s->held.len - used);
}

void md_spans_add(struct md_spans *s, rv_str c, rv_buf *out)
{
    bool waits = s->held.len > 0;

    if (!waits && !is_mark(c.ptr[0])) {
        rv_buf_add_str(out, c);
        s->last = c.ptr[c.len - 1];
        return;
    }
    rv_buf_add_str(&s->held, c);
    if (s->held.rc < 0) { /* without memory marks stay */
        rv_buf_add_str(out, rv_buf_str(&s->held));
        rv_buf_clear(&s->held);
        rv_buf_add_str(out, c);
        return;
    }
    if (s->held.len > RV_CLI_MD_MAX_SPAN) {
        settle(s, true, out);
        return;
    }
    /* Nothing is decided before what is awaited came, but for the character behind it. */
    char before = s->held.len > c.len ? s->held.ptr[s->held.len - c.len - 1] : '\0';
    if (!s->awaited || c.ptr[0] == s->awaited || before == s->awaited || c.ptr[0] == ']' || before == ']' ||
        s->held.len <= 4 + c.len)
        settle(s, false, out);
}

void md_spans_end(struct md_spans *s, rv_buf *out)
{
    settle(s, true, out);
    if (s->held.rc < 0)
        rv_buf_clear(&s->held);
}
