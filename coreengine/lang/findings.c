/* The list of findings: owns its texts, keeps the first RV_FINDINGS_MAX, counts the rest. Texts quote what users wrote,
 * so control characters are shown as escapes: a file cannot move the cursor in the terminal of its reader. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/lang/yaml_internal.h"

struct entry {
    struct rv_finding finding;
    size_t order; /* of arrival, for a stable sort */
};
struct rv_findings {
    rv_arena *arena;
    struct entry *entries; /* RV_FINDINGS_MAX of them; owned */
    size_t n, n_errors, n_dropped;
    const char *code; /* of findings that have none of their own; static */
    bool failed;      /* out of memory once */
};

rv_findings *rv_findings_new(void)
{
    rv_findings *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->arena = rv_arena_new((size_t)RV_FINDINGS_MAX * 64 * LANG_MAX_FINDING);
    f->entries = calloc(RV_FINDINGS_MAX, sizeof *f->entries);
    if (!f->arena || !f->entries) {
        rv_findings_free(f);
        return NULL;
    }
    return f;
}

void rv_findings_free(rv_findings *f)
{
    if (!f)
        return;
    rv_arena_free(f->arena);
    free(f->entries);
    free(f);
}

/* A copy without control characters, those that reorder text, and broken UTF-8; NULL on out of memory. */
static char *clean_copy(rv_findings *f, const char *text)
{
    rv_str s = rv_utf8_cut(rv_str_of(text), LANG_MAX_FINDING);
    char *copy = rv_arena_alloc(f->arena, s.len * 4 + 1);
    size_t n = 0;
    size_t bad = 0;
    size_t from = 0;

    if (!copy)
        return NULL;
    while (from < s.len) {
        rv_str rest = {s.ptr + from, s.len - from};
        size_t good = rv_utf8_valid(rest, &bad) ? rest.len : bad;
        for (size_t i = 0; i < good; i++) {
            unsigned char c = (unsigned char)rest.ptr[i];
            if (c == '\n') {
                copy[n++] = '\\';
                copy[n++] = 'n';
            } else if (rv_utf8_control(rest.ptr + i, good - i)) {
                i += rv_utf8_control(rest.ptr + i, good - i) - 1;
                n += (size_t)snprintf(copy + n, 5, "\\x%02x", (unsigned char)rest.ptr[i]);
            } else if (rv_utf8_reorders(rest.ptr + i, good - i)) { /* U+20xx */
                unsigned low = ((unsigned char)rest.ptr[i + 1] & 3U) << 6 | ((unsigned char)rest.ptr[i + 2] & 63U);
                n += (size_t)snprintf(copy + n, 7, "\\u20%02x", low);
                i += 2;
            } else {
                copy[n++] = (char)c;
            }
        }
        from += good;
        if (from < s.len) {
            copy[n++] = '?';
            from++;
        }
    }
    copy[n] = 0;
    return copy;
}

static const char *shared_file(rv_findings *f, const char *file)
{
    if (f->n > 0) { /* nearly always the file of the finding before */
        const char *last = f->entries[f->n - 1].finding.src.file;
        if (last && strcmp(last, file) == 0)
            return last;
    }
    return clean_copy(f, file);
}

/* Has it been found at that place already? A script that many tests use is read for each of them. */
static bool is_known(const rv_findings *f, const struct rv_finding *finding)
{
    for (size_t i = f->n; i > 0; i--) {
        const struct rv_finding *other = &f->entries[i - 1].finding;
        if (other->src.line == finding->src.line && other->src.col == finding->src.col &&
            other->severity == finding->severity && strcmp(other->text, finding->text) == 0 &&
            strcmp(other->src.file ? other->src.file : "", finding->src.file ? finding->src.file : "") == 0)
            return finding->src.line > 0;
    }
    return false;
}

static void add(rv_findings *f, enum rv_severity severity, const char *code, const struct rv_src *src, const char *hint,
                const char *text)
{
    struct rv_finding finding = {.severity = severity, .code = code ? code : f->code};

    if (f->n == RV_FINDINGS_MAX) {
        f->n_errors += severity != RV_SEVERITY_WARNING;
        f->n_dropped++;
        return;
    }
    finding.text = clean_copy(f, text);
    if (hint && hint[0])
        finding.hint = clean_copy(f, hint);
    if (src) {
        finding.src = *src;
        finding.src.file = src->file ? shared_file(f, src->file) : NULL;
    }
    if (!finding.text || (hint && hint[0] && !finding.hint) || (src && src->file && !finding.src.file)) {
        f->failed = true;
        return;
    }
    if (is_known(f, &finding))
        return;
    f->n_errors += severity != RV_SEVERITY_WARNING;
    f->entries[f->n] = (struct entry){finding, f->n};
    f->n++;
}

void rv_findings_add(rv_findings *f, enum rv_severity severity, const struct rv_src *src, const char *hint,
                     const char *fmt, ...)
{
    char text[LANG_MAX_FINDING + 1];
    va_list args;

    va_start(args, fmt);
    rv_vformat(text, sizeof text, fmt, args);
    va_end(args);
    add(f, severity, NULL, src, hint, text);
}

void rv_findings_add_as(rv_findings *f, enum rv_severity severity, const char *code, const struct rv_src *src,
                        const char *hint, const char *fmt, ...)
{
    char text[LANG_MAX_FINDING + 1];
    va_list args;

    va_start(args, fmt);
    rv_vformat(text, sizeof text, fmt, args);
    va_end(args);
    add(f, severity, code, src, hint, text);
}

void rv_findings_set_code(rv_findings *f, const char *code)
{
    f->code = code;
}

/* indent: columns to add in lines below the first, which is that of src. */
static void add_err(rv_findings *f, enum rv_severity severity, const struct rv_src *src, int indent, const rv_err *err)
{
    char text[LANG_MAX_FINDING + 1] = "";
    size_t len = 0;
    struct rv_src place = {NULL, 0, 0};
    const char *hint = NULL;

    if (rv_err_code(err) == RV_E_NOMEM) {
        f->failed = true;
        return;
    }
    for (const rv_err *link = err; link; link = rv_err_cause(link)) {
        struct rv_src here = rv_err_src(link);
        if (len < sizeof text)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", len > 0 ? ": " : "", rv_err_text(link));
        if (here.line > 0)
            place = here; /* the deepest link knows best */
        if (!hint)
            hint = rv_err_hint_text(link);
    }
    if (src && place.line > src->line)
        place.col += indent;
    add(f, severity, NULL, place.line > 0 ? &place : src, hint, text);
}

void rv_findings_add_err(rv_findings *f, enum rv_severity severity, const struct rv_src *src, const rv_err *err)
{
    add_err(f, severity, src, 0, err);
}

void rv_findings_add_text_err(rv_findings *f, enum rv_severity severity, const struct rv_node *node, const rv_err *err)
{
    struct rv_src src = rv_node_text_src(node);

    add_err(f, severity, &src, node->is_block ? node->indent : 0, err);
}

size_t rv_findings_n(const rv_findings *f)
{
    return f->n;
}

size_t rv_findings_n_errors(const rv_findings *f)
{
    return f->n_errors;
}

struct rv_finding rv_findings_at(const rv_findings *f, size_t i)
{
    return f->entries[i].finding;
}

static int compare(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    const char *a_file = a->finding.src.file ? a->finding.src.file : "";
    const char *b_file = b->finding.src.file ? b->finding.src.file : "";
    int by_file = strcmp(a_file, b_file);

    if (by_file != 0)
        return by_file;
    if (a->finding.src.line != b->finding.src.line)
        return a->finding.src.line < b->finding.src.line ? -1 : 1;
    if (a->finding.src.col != b->finding.src.col)
        return a->finding.src.col < b->finding.src.col ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

void rv_findings_sort(rv_findings *f)
{
    qsort(f->entries, f->n, sizeof *f->entries, compare);
}

int rv_findings_check(const rv_findings *f, rv_err **err)
{
    return f->failed ? RV_FAIL(err, RV_E_NOMEM, "collect findings") : 0;
}

int rv_findings_raise_first_error(rv_findings *f, rv_err **err)
{
    int rc = rv_findings_check(f, err);

    if (rc < 0)
        return rc;
    rv_findings_sort(f);
    for (size_t i = 0; i < rv_findings_n(f); i++) {
        const struct rv_finding one = rv_findings_at(f, i);
        if (one.severity == RV_SEVERITY_WARNING)
            continue;
        rc = RV_FAIL_AT(err, &one.src, RV_E_INVALID, "%s", one.text);
        if (one.hint)
            rv_err_set_hint(err, "%s", one.hint);
        return rc;
    }
    return 0;
}

static void write_place(const struct rv_src *src, rv_buf *b)
{
    if (src->file)
        rv_buf_puts(b, src->file);
    if (src->file && src->line > 0)
        rv_buf_printf(b, ":%d:%d", src->line, src->col);
    if (src->file)
        rv_buf_puts(b, ": ");
}

void rv_findings_write_text(const rv_findings *f, bool color, rv_buf *b)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct rv_finding *x = &f->entries[i].finding;
        bool is_warning = x->severity == RV_SEVERITY_WARNING;

        rv_buf_puts(b, color ? "\033[1m" : "");
        write_place(&x->src, b);
        rv_buf_puts(b, !color ? "" : is_warning ? "\033[35m" : "\033[31m");
        rv_buf_printf(b, "%s:%s %s", is_warning ? "warning" : "error", color ? "\033[0m" : "", x->text);
        if (x->code)
            rv_buf_printf(b, "  [%s]", x->code);
        rv_buf_putc(b, '\n');
        if (x->hint)
            rv_buf_printf(b, "  hint: %s\n", x->hint);
    }
    if (f->n_dropped > 0)
        rv_buf_printf(b, "%zu further findings are not shown\n", f->n_dropped);
}

void rv_findings_write_json(const rv_findings *f, rv_jw *w)
{
    rv_jw_arr(w);
    for (size_t i = 0; i < f->n; i++) {
        const struct rv_finding *x = &f->entries[i].finding;
        rv_jw_obj(w);
        rv_jw_kv_text(w, "severity", rv_severity_text(x->severity));
        rv_jw_kv_text(w, "file", x->src.file);
        rv_jw_kv_int(w, "line", x->src.line);
        rv_jw_kv_int(w, "column", x->src.col);
        rv_jw_kv_text(w, "message", x->text);
        rv_jw_kv_text(w, "hint", x->hint);
        if (x->code)
            rv_jw_kv_text(w, "code", x->code);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
}
