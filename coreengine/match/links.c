/* The links of a page of Markdown. A link is found by its brackets, not by a reader of the whole language: what counts
 * is that nothing in code is one, and that no text, however it is made, takes more than a few passes. */
#include <json-c/json_object.h>
#include <stdlib.h>

#include "coreengine/base/base.h"
#include "coreengine/match/match.h"
#include "coreengine/match/match_internal.h"

#define MAX_TARGET  2048 /* bytes; a longer one is not a page, even in codes such as %20 */
#define MAX_NAME    1024 /* bytes: what the name of a row may have: pages have no longer ones */
#define MAX_PARTS   128  /* folders of a path: ingest walks no deeper */
#define MAX_IN_TEXT 1000 /* bytes of [text]: an end is looked for only that far, for each open bracket */
#define MAX_SPAN    4000 /* bytes of a code span: backquotes without an end are looked for only that far */
#define MAX_NESTED  8    /* brackets within brackets: people write two, and in a page of "[" each look ends here */

/* An address with a scheme (RFC 3986, section 3.1) or a host, or a place within the page. */
static bool is_elsewhere(rv_str target)
{
    size_t i = 0;

    if (target.len > 0 && rv_is_letter(target.ptr[0]))
        while (i < target.len && (rv_is_letter(target.ptr[i]) || rv_is_digit(target.ptr[i]) || target.ptr[i] == '+' ||
                                  target.ptr[i] == '-' || target.ptr[i] == '.'))
            i++;
    return (i > 0 && i < target.len && target.ptr[i] == ':') || (target.len > 0 && target.ptr[0] == '#') ||
           (target.len > 1 && target.ptr[0] == '/' && target.ptr[1] == '/');
}

/* --- from a target to a name --- */

/* %XX decoded, if the whole is a text then. */
static void decode(rv_str target, rv_buf *out)
{
    for (size_t i = 0; i < target.len; i++) {
        bool is_code =
            target.ptr[i] == '%' && target.len - i > 2 && rv_is_hex(target.ptr[i + 1]) && rv_is_hex(target.ptr[i + 2]);
        rv_buf_putc(out, is_code ? (char)(rv_hex_digit(target.ptr[i + 1]) * 16 + rv_hex_digit(target.ptr[i + 2]))
                                 : target.ptr[i]);
        i += is_code ? 2 : 0;
    }
    if (!rv_utf8_valid(rv_buf_str(out), NULL) || rv_str_find(rv_buf_str(out), '\0')) {
        rv_buf_clear(out);
        rv_buf_add_str(out, target);
    }
}

/* The parts of a path behind those there are: "." adds none, ".." takes one away. False: they are too many. */
static bool add_parts(rv_str path, rv_str parts[MAX_PARTS], size_t *n)
{
    for (size_t i = 0; i < path.len;) {
        size_t end = i;
        while (end < path.len && path.ptr[end] != '/')
            end++;
        rv_str part = {path.ptr + i, end - i};
        if (rv_str_is(part, ".."))
            *n -= *n > 0;
        else if (part.len > 0 && !rv_str_is(part, ".")) {
            if (*n == MAX_PARTS)
                return false;
            parts[(*n)++] = part;
        }
        i = end + 1;
    }
    return true;
}

static rv_str folder_of(rv_str path)
{
    while (path.len > 0 && path.ptr[path.len - 1] != '/')
        path.len--;
    return path;
}

/* out stays empty if no page can have that path. */
static void name_of(rv_str target, rv_str page, rv_buf *out)
{
    rv_buf decoded = RV_BUF_INIT(MAX_TARGET + 1), path = RV_BUF_INIT(RV_MATCH_MAX_TEXT);
    rv_str parts[MAX_PARTS];
    size_t n = 0;

    decode(target, &decoded);
    bool is_relative = decoded.len > 0 && decoded.ptr[0] != '/';
    bool fits = (!is_relative || add_parts(folder_of(page), parts, &n)) && add_parts(rv_buf_str(&decoded), parts, &n);
    for (size_t i = 0; fits && i < n; i++) {
        rv_buf_puts(&path, "/");
        rv_buf_add_str(&path, parts[i]);
    }
    if (decoded.rc < 0 || path.rc < 0)
        out->rc = decoded.rc < 0 ? decoded.rc : path.rc;
    rv_page_write_name(rv_buf_str(&path), out);
    rv_buf_fini(&decoded);
    rv_buf_fini(&path);
}

/* --- the edges --- */

struct links {
    json_object *out; /* owned */
    rv_str page;
    rv_index seen; /* keys of targets */
    rv_arena *arena;
    int rc;
    rv_err **err;
};

static void add_edge(struct links *l, rv_str name)
{
    struct rv_json_build b = {l->err, 0};
    json_object *edge = rv_json_build(&b, l->out, NULL, json_object_new_object());

    rv_json_build(&b, edge, "target", json_object_new_string_len(name.ptr, (int)name.len));
    rv_json_build_text(&b, edge, "relation", "links_to");
    rv_json_build(&b, edge, "weight", rv_json_new_double(1));
    l->rc = b.rc;
}

/* An edge to the page, if it is the first one. */
static void add_page(struct links *l, rv_str name)
{
    rv_buf key = RV_BUF_INIT(RV_MATCH_MAX_TEXT * 4);

    rv_match_write_key(name, &key);
    if (key.len == 0)
        rv_buf_add_str(&key, name);
    l->rc = rv_buf_check(&key, "link", l->err);
    if (l->rc == 0 && rv_index_get(&l->seen, rv_buf_str(&key)) < 0) {
        const char *text = rv_arena_dup(l->arena, rv_buf_str(&key));
        l->rc = text ? rv_index_add(&l->seen, (rv_str){text, key.len}, 1) : RV_E_NOMEM;
        if (l->rc < 0)
            l->rc = RV_FAIL(l->err, l->rc, "read the links of a page");
        else
            add_edge(l, name);
    }
    rv_buf_fini(&key);
}

static void add_target(struct links *l, rv_str target)
{
    rv_buf name = RV_BUF_INIT(RV_MATCH_MAX_TEXT);

    if (is_elsewhere(target) || target.len > MAX_TARGET)
        return;
    for (size_t i = 0; i < target.len; i++)
        if (target.ptr[i] == '#' || target.ptr[i] == '?')
            target.len = i;
    name_of(target, l->page, &name);
    l->rc = rv_buf_check(&name, "link", l->err);
    if (l->rc == 0 && target.len > 0 && name.len > 0 && name.len <= MAX_NAME && rv_utf8_valid(rv_buf_str(&name), NULL))
        add_page(l, rv_buf_str(&name));
    rv_buf_fini(&name);
}

/* --- the text --- */

static size_t behind_blanks(rv_str text, size_t i)
{
    while (i < text.len && (text.ptr[i] == ' ' || text.ptr[i] == '\t'))
        i++;
    return i;
}

/* Where a link ends whose target ends at text[i], with or without a title; 0: it does not end here. */
static size_t end_of_link(rv_str text, size_t i)
{
    size_t at = behind_blanks(text, i);

    if (at < text.len && at > i && (text.ptr[at] == '"' || text.ptr[at] == '\'')) {
        char quote = text.ptr[at++];
        while (at < text.len && text.ptr[at] != quote && text.ptr[at] != '\n')
            at++;
        if (at == text.len || text.ptr[at] != quote)
            return 0;
        at = behind_blanks(text, at + 1);
    }
    return at < text.len && text.ptr[at] == ')' ? at + 1 : 0;
}

/* "(target)", "(target "title")" or "(<target>)" at text[i]; returns where it ends, 0 if there is none. */
static size_t target_at(rv_str text, size_t i, rv_str *out)
{
    size_t from = behind_blanks(text, i + 1), depth = 0, end = 0;
    bool in_angles = from < text.len && text.ptr[from] == '<';

    if (text.len - i > MAX_TARGET)
        text.len = i + MAX_TARGET;
    from += in_angles;
    for (i = from; i < text.len && text.ptr[i] != '\n' && depth <= MAX_NESTED; i++) {
        char c = text.ptr[i];
        if (in_angles && (c == '>' || c == '<')) {
            *out = (rv_str){text.ptr + from, i - from};
            return c == '>' ? end_of_link(text, i + 1) : 0;
        }
        bool may_end = !in_angles && depth == 0 && (c == ')' || c == ' ' || c == '\t');
        if (may_end && (end = end_of_link(text, i)) > 0) {
            *out = (rv_str){text.ptr + from, i - from};
            return end;
        }
        depth += c == '(' ? 1 : 0;
        depth -= c == ')' && depth > 0 ? 1 : 0;
    }
    return 0;
}

/* The end of "[text]" at text[i], where a target may follow; 0 if there is none. */
static size_t end_of_text(rv_str text, size_t i)
{
    size_t limit = text.len - i > MAX_IN_TEXT ? i + MAX_IN_TEXT : text.len;
    int depth = 0;

    for (; i < limit && depth <= MAX_NESTED; i++) {
        char c = text.ptr[i];
        if (c == '\n' && i + 1 < limit && text.ptr[i + 1] == '\n')
            return 0;
        if (c == '\\') {
            i++;
            continue;
        }
        depth += c == '[' ? 1 : c == ']' ? -1 : 0;
        if (depth == 0)
            return i + 1;
    }
    return 0;
}

static size_t run_of(rv_str text, size_t i, char c)
{
    size_t n = 0;

    while (i + n < text.len && text.ptr[i + n] == c)
        n++;
    return n;
}

/* Behind the code span that begins with n backquotes at text[i]; behind these if it has no end in the paragraph. */
static size_t behind_span(rv_str text, size_t i, size_t n)
{
    size_t limit = text.len - i > MAX_SPAN ? i + MAX_SPAN : text.len;

    for (size_t k = i + n; k < limit;) {
        size_t run = text.ptr[k] == '`' ? run_of(text, k, '`') : 0;
        if (run == n)
            return k + run;
        if (text.ptr[k] == '\n' && k + 1 < text.len && text.ptr[k + 1] == '\n')
            break;
        k += run ? run : 1;
    }
    return i + n;
}

/* A paragraph, or any text without fences. */
static void read_text(struct links *l, rv_str text)
{
    size_t picture = 0; /* where "[" belongs to "![", the beginning of a picture */

    for (size_t i = 0; i < text.len && l->rc == 0 && json_object_array_length(l->out) < RV_PAGE_MAX_LINKS;) {
        char c = text.ptr[i];
        rv_str target;
        size_t end = c == '[' ? end_of_text(text, i) : 0;
        size_t behind = end && end < text.len && text.ptr[end] == '(' ? target_at(text, end, &target) : 0;
        if (behind && i > 0 && i == picture) {
            i = behind;
        } else if (behind) {
            add_target(l, target);
            i++; /* the text can have links of its own, as that of a picture */
        } else if (c == '`') {
            i = behind_span(text, i, run_of(text, i, '`'));
        } else {
            i += c == '\\' && i + 1 < text.len ? 2 : 1;
            picture = c == '!' ? i : picture;
        }
    }
}

/* The fence at the beginning of a line: its character and how many; 0 if there is none. */
static size_t fence_at(rv_str line, char *c)
{
    size_t i = 0;

    while (i < line.len && i < 3 && line.ptr[i] == ' ')
        i++;
    if (i == line.len || (line.ptr[i] != '`' && line.ptr[i] != '~'))
        return 0;
    size_t n = run_of(line, i, line.ptr[i]);
    *c = line.ptr[i];
    if (n < 3 || (*c == '`' && memchr(line.ptr + i + n, '`', line.len - i - n)))
        return 0;
    return n;
}

static bool ends_fence(rv_str line, char c, size_t n)
{
    char found;
    size_t n_found = fence_at(line, &found);
    rv_str rest = rv_str_trim(line);

    return n_found >= n && found == c && run_of(rest, 0, c) == rest.len;
}

/* Line by line: what is between fences is code. */
static void read_page(struct links *l, rv_str page)
{
    size_t from = 0, fence = 0; /* where the text began that is not read yet; the length of the open fence */
    char c = 0;

    for (size_t i = 0, end; i < page.len; i = end) {
        const char *feed = memchr(page.ptr + i, '\n', page.len - i);
        end = feed ? (size_t)(feed - page.ptr) + 1 : page.len;
        rv_str line = {page.ptr + i, end - i};
        if (fence) {
            if (ends_fence(line, c, fence))
                fence = 0;
            from = end;
        } else if ((fence = fence_at(line, &c)) > 0) {
            read_text(l, (rv_str){page.ptr + from, i - from});
            from = end;
        }
    }
    if (!fence)
        read_text(l, (rv_str){page.ptr + from, page.len - from});
}

int rv_page_build_links(rv_str markdown, rv_str path, json_object **out, rv_err **err)
{
    struct links l = {json_object_new_array(), path, {NULL, 0, 0}, rv_arena_new((size_t)16 << 20), 0, err};

    if (markdown.len > RV_PAGE_MAX_BYTES)
        l.rc =
            RV_FAIL(err, RV_E_LIMIT, "a page of %zu bytes is too long (at most %zu)", markdown.len, RV_PAGE_MAX_BYTES);
    else if (!l.out || !l.arena)
        l.rc = RV_FAIL(err, RV_E_NOMEM, "read the links of a page");
    else
        read_page(&l, markdown);
    if (l.rc == 0)
        *out = json_object_get(l.out);
    json_object_put(l.out);
    rv_index_fini(&l.seen);
    rv_arena_free(l.arena);
    return l.rc;
}
