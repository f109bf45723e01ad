/* The text of a template becomes parts: each a piece of text and the tag behind it. Tags are found first, then sections
 * are matched with their ends; what has no counterpart is text. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/template_internal.h"

#define MAX_SEGMENTS 16 /* of one path: a person writes four or five */
#define MAX_SHOWN    40 /* bytes of what looks like a tag, in a message: half a line of a terminal */

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_char(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9') || c == '-';
}

static bool is_beyond_ascii(char c)
{
    return (unsigned char)c >= 0x80;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

rv_str lang_path_segment(rv_str path, size_t *pos)
{
    const char *from = path.ptr + *pos;
    const char *dot = memchr(from, '.', path.len - *pos);
    size_t len = dot ? (size_t)(dot - from) : path.len - *pos;

    *pos += len + (dot != NULL);
    return (rv_str){from, len};
}

struct reader {
    rv_template *t;
    rv_str text;
    size_t pos;
    struct rv_part tag; /* that is being read */
    rv_err **err;
};

static char here(const struct reader *r)
{
    return r->pos < r->text.len ? r->text.ptr[r->pos] : '\0';
}

static void skip_blanks(struct reader *r)
{
    while (is_blank(here(r)))
        r->pos++;
}

static bool take_close(struct reader *r)
{
    skip_blanks(r);
    if (r->text.len - r->pos < 2 || memcmp(r->text.ptr + r->pos, "}}", 2) != 0)
        return false;
    r->pos += 2;
    return true;
}

/* --- paths --- */

/* Segments are cut by NULs in a second copy, as scopes and json-c want their names terminated. */
static void keep_path(struct reader *r, rv_str path)
{
    struct rv_placeholder *ph = &r->tag.ph;
    char *copy = r->t->paths + (path.ptr - r->text.ptr);
    size_t pos = 0;

    ph->path = path;
    for (size_t i = 0; i < path.len; i++)
        copy[i] = path.ptr[i] == '.' ? '\0' : path.ptr[i];
    copy[path.len] = '\0';
    ph->root = ph->field = (rv_str){NULL, 0};
    if (path.ptr[0] == '.')
        return;
    ph->root = lang_path_segment(path, &pos);
    if (pos < path.len)
        ph->field = lang_path_segment(path, &pos);
    ph->root.ptr = r->t->paths + (ph->root.ptr - r->text.ptr);
    if (ph->field.ptr)
        ph->field.ptr = r->t->paths + (ph->field.ptr - r->text.ptr);
}

static void hint_at_names(const struct reader *r)
{
    if (is_beyond_ascii(here(r)))
        rv_err_set_hint(r->err, RV_TEMPLATE_NAMES);
}

/* a.b.c, .a.b or a single dot. *is_one: a path begins here. */
static int take_path(struct reader *r, bool *is_one)
{
    size_t start = r->pos, n = 1;
    bool is_dot = here(r) == '.';

    *is_one = is_dot || is_name_start(here(r));
    if (!*is_one)
        return 0;
    r->pos += is_dot;
    while (!is_dot || is_name_char(here(r))) {
        size_t segment = r->pos;
        while (is_name_char(here(r)))
            r->pos++;
        if (r->pos == segment) {
            int rc = RV_FAIL_AT(r->err, &r->tag.ph.src, RV_E_PARSE, "\"{{%.*s\": a name or an index must follow \".\"",
                                (int)(r->pos - start), r->text.ptr + start);
            hint_at_names(r);
            return rc;
        }
        if (here(r) != '.')
            break;
        r->pos++;
        if (++n > MAX_SEGMENTS)
            return RV_FAIL_AT(r->err, &r->tag.ph.src, RV_E_LIMIT, "placeholder has more than %d segments",
                              MAX_SEGMENTS);
    }
    keep_path(r, (rv_str){r->text.ptr + start, r->pos - start});
    return 0;
}

/* --- tags --- */

/* {{#path}}, {{^path}}, {{/path}}. kind stays RV_TAG_TEXT when it is none of them. */
static int take_section(struct reader *r)
{
    rv_err **err = r->err, *why = NULL;
    char mark = here(r);
    bool is_one;

    r->pos++;
    r->err = &why; /* other text here is of another language, such as {{#if x}} */
    if (take_path(r, &is_one) == 0 && is_one && take_close(r))
        r->tag.kind = mark == '#' ? RV_TAG_SECTION : mark == '^' ? RV_TAG_INVERTED : RV_TAG_END;
    r->err = err;
    rv_err_free(why);
    return 0;
}

static int take_counter(struct reader *r)
{
    static const struct {
        const char *text;
        enum rv_tag_kind kind;
    } counters[] = {{"@index}}", RV_TAG_INDEX}, {"@number}}", RV_TAG_NUMBER}};

    for (size_t i = 0; i < RV_COUNT(counters); i++) {
        size_t n = strlen(counters[i].text);
        if (r->text.len - r->pos >= n && memcmp(r->text.ptr + r->pos, counters[i].text, n) == 0) {
            r->tag.kind = counters[i].kind;
            r->pos += n;
            break;
        }
    }
    return 0;
}

static int take_value(struct reader *r)
{
    bool is_one;
    size_t start = r->pos;
    int rc = take_path(r, &is_one);

    if (rc < 0 || !is_one)
        return rc;
    rc = lang_filters_read(r->t, &r->pos, &r->tag, r->err);
    if (rc < 0)
        return rc;
    if (take_close(r)) {
        r->tag.kind = RV_TAG_VALUE;
        return 0;
    }
    if (r->text.ptr[start] == '.')
        return 0; /* of another language */
    rc = RV_FAIL_AT(r->err, &r->tag.ph.src, RV_E_PARSE, "\"{{%.*s\" is not followed by \"}}\"",
                    (int)rv_utf8_cut(r->tag.ph.path, 80).len, r->tag.ph.path.ptr);
    rv_err_set_hint(r->err, "a placeholder is a path, such as {{plan.goal}}; write \\{{ for two braces that are text");
    hint_at_names(r);
    return rc;
}

/* At "{{". The tag's kind stays RV_TAG_TEXT when there is none. */
static int take_tag(struct reader *r)
{
    r->pos += 2;
    skip_blanks(r);
    switch (here(r)) {
    case '#':
    case '^':
    case '/':
        return take_section(r);
    case '@':
        return take_counter(r);
    default:
        return take_value(r);
    }
}

static int add_part(rv_template *t, const struct rv_part *part, rv_err **err)
{
    if (!rv_has_room(&t->parts, &t->cap_parts, t->n_parts + 1, sizeof *t->parts))
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a template");
    t->parts[t->n_parts++] = *part;
    return 0;
}

static void note_foreign(rv_template *t, size_t at, const struct rv_src *src)
{
    rv_str rest = {t->text + at, t->len - at};
    const char *line = memchr(rest.ptr, '\n', rest.len);

    if (t->n_foreign == RV_TEMPLATE_MAX_FOREIGN)
        return;
    if (line)
        rest.len = (size_t)(line - rest.ptr);
    t->foreign[t->n_foreign++] = (struct rv_foreign){rv_utf8_cut(rest, MAX_SHOWN), *src};
}

/* "{{größe}}", on one line: such a name is not a path. */
static bool has_foreign_name(rv_str text, size_t at)
{
    size_t i = at + 2;

    while (i < text.len && is_blank(text.ptr[i]))
        i++;
    if (i >= text.len || !is_beyond_ascii(text.ptr[i]))
        return false;
    while (i + 1 < text.len && text.ptr[i] != '\n' && text.ptr[i] != '{' && text.ptr[i] != '}')
        i++;
    return i + 1 < text.len && text.ptr[i] == '}' && text.ptr[i + 1] == '}';
}

/* Is "{{..." or "{%..." here of another template language? JSON has {{ only before a brace, a quote or a blank. */
static bool looks_foreign(rv_str text, size_t at)
{
    char next = at + 2 < text.len ? text.ptr[at + 2] : '\0';

    if (text.ptr[at + 1] == '{' && has_foreign_name(text, at))
        return true;
    if (text.ptr[at + 1] == '%')
        return true;
    return next && (strchr("#^/>!&@.$", next) || (next == '-' && at + 3 < text.len && text.ptr[at + 3] == ' '));
}

/* Line and column move along with the scan, so that many placeholders do not cost quadratic time. */
static void move_place(struct rv_src *place, rv_str text, size_t from, size_t to)
{
    *place = lang_text_place((rv_str){text.ptr + from, to - from}, place, to - from);
}

/* The next "{{" or "{%" from `from` on; text.len: none. */
static size_t next_brace(rv_str text, size_t from)
{
    for (size_t i = from; i + 1 < text.len; i++) {
        const char *brace = memchr(text.ptr + i, '{', text.len - 1 - i);
        if (!brace)
            break;
        i = (size_t)(brace - text.ptr);
        if (brace[1] == '{' || brace[1] == '%')
            return i;
    }
    return text.len;
}

/* Every tag as a part, without the text before it. */
static int find_tags(rv_template *t, struct rv_src place, rv_err **err)
{
    struct reader r = {.t = t, .text = {t->text, t->len}, .err = err};
    size_t placed = 0, after_escape = 0;

    for (size_t at = next_brace(r.text, 0); at < t->len; at = next_brace(r.text, r.pos)) {
        bool is_escaped = at > after_escape && t->text[at - 1] == '\\' && t->text[at + 1] == '{';
        int rc = 0;
        move_place(&place, r.text, placed, at);
        placed = at;
        r.pos = at;
        r.tag = (struct rv_part){.ph = {.src = place}, .begin = at};
        if (t->text[at + 1] == '{' && !is_escaped)
            rc = take_tag(&r);
        if (rc < 0)
            return rc;
        if (r.tag.kind == RV_TAG_TEXT && !is_escaped) {
            if (looks_foreign(r.text, at))
                note_foreign(t, at, &place);
            r.pos = at + 1; /* of "{{{name}}}" the outer braces are text */
            continue;
        }
        if (is_escaped)
            r.pos = after_escape = at + 2;
        if (t->n_parts == RV_TEMPLATE_MAX_TAGS)
            return RV_FAIL_AT(err, &place, RV_E_LIMIT, "template has more than %d placeholders", RV_TEMPLATE_MAX_TAGS);
        r.tag.end = r.pos;
        if (is_escaped) { /* the backslash goes, the braces begin the next text */
            r.tag.begin = at - 1;
            r.tag.end = at;
        }
        rc = add_part(t, &r.tag, err);
        if (rc < 0)
            return rc;
        if (!is_escaped)
            after_escape = r.pos;
    }
    return 0;
}

/* --- sections --- */

/* Each end belongs to the innermost open section of its path. Sections without an end and ends without a section are
 * text, and so is what only means something inside of one. */
static int match_sections(rv_template *t, rv_err **err)
{
    size_t open[RV_TEMPLATE_MAX_NESTING], n_open = 0;

    for (size_t i = 0; i < t->n_parts; i++) {
        struct rv_part *p = &t->parts[i];
        size_t k = n_open;
        if (p->kind == RV_TAG_SECTION || p->kind == RV_TAG_INVERTED) {
            if (n_open == RV_TEMPLATE_MAX_NESTING)
                return RV_FAIL_AT(err, &p->ph.src, RV_E_LIMIT, "more than %d sections within each other",
                                  RV_TEMPLATE_MAX_NESTING);
            p->is_text = true; /* until its end is found */
            open[n_open++] = i;
        }
        if (p->kind != RV_TAG_END)
            continue;
        while (k > 0 && !rv_str_eq(t->parts[open[k - 1]].ph.path, p->ph.path))
            k--;
        p->is_text = k == 0;
        if (k == 0)
            continue;
        n_open = k - 1;
        t->parts[open[n_open]].other = i;
        t->parts[open[n_open]].is_text = false;
    }
    return 0;
}

static void mark_what_needs_an_item(rv_template *t)
{
    size_t until = 0; /* the end of the outermost section around */

    for (size_t i = 0; i < t->n_parts; i++) {
        struct rv_part *p = &t->parts[i];
        bool needs_item = p->kind == RV_TAG_INDEX || p->kind == RV_TAG_NUMBER || (p->ph.path.ptr && !p->ph.root.ptr);
        if (p->kind == RV_TAG_END || p->is_text)
            continue;
        p->is_text = needs_item && i >= until;
        if (p->is_text && p->other)
            t->parts[p->other].is_text = true;
        else if (p->other > until)
            until = p->other;
    }
}

/* A tag of a section alone on its line takes the line with it. */
static void take_line(const rv_template *t, size_t from, size_t *begin, size_t *end)
{
    size_t b = *begin, e = *end;

    while (b > from && is_blank(t->text[b - 1]))
        b--;
    while (e < t->len && is_blank(t->text[e]))
        e++;
    if ((b > 0 && t->text[b - 1] != '\n') || (e < t->len && t->text[e] != '\n'))
        return;
    *begin = b;
    *end = e + (e < t->len);
}

/* Drop the tags that are text, and give each part the text before it. */
static int cut(rv_template *t, rv_err **err)
{
    size_t *moved = malloc((t->n_parts + 1) * sizeof *moved);
    size_t n = 0, literal = 0;
    struct rv_part last = {.kind = RV_TAG_TEXT};

    if (!moved)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a template");
    for (size_t i = 0; i < t->n_parts; i++) {
        struct rv_part p = t->parts[i];
        moved[i] = n;
        if (p.is_text) {
            note_foreign(t, p.begin, &p.ph.src);
            continue;
        }
        if (p.kind >= RV_TAG_SECTION)
            take_line(t, literal, &p.begin, &p.end);
        p.before = (rv_str){t->text + literal, p.begin - literal};
        literal = p.end;
        t->parts[n++] = p;
    }
    for (size_t i = 0; i < n; i++)
        if (t->parts[i].kind == RV_TAG_SECTION || t->parts[i].kind == RV_TAG_INVERTED)
            t->parts[i].other = moved[t->parts[i].other];
    free(moved);
    t->n_parts = n;
    last.before = (rv_str){t->text + literal, t->len - literal};
    return add_part(t, &last, err);
}

static int list_holes(rv_template *t, rv_err **err)
{
    t->holes = malloc((t->n_parts + 1) * sizeof(*t->holes));
    if (!t->holes)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a template");
    for (size_t i = 0; i < t->n_parts; i++)
        if (t->parts[i].ph.root.ptr && t->parts[i].kind != RV_TAG_END)
            t->holes[t->n_holes++] = i;
    return 0;
}

int lang_template_read(rv_template *t, struct rv_src place, rv_err **err)
{
    int rc = find_tags(t, place, err);

    if (rc == 0)
        rc = match_sections(t, err);
    if (rc < 0)
        return rc;
    mark_what_needs_an_item(t);
    rc = cut(t, err);
    return rc < 0 ? rc : list_holes(t, err);
}
