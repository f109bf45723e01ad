/* Filters of placeholders: read from {{path | name argument}}, and applied to a value. They never fail but for memory.
 */
#include <string.h>

#include "coreengine/lang/template_internal.h"

#define MAX_FILTERS 8  /* of one tag: there are as few filters, and one is seldom used twice */
#define MAX_INDENT  64 /* blanks: deeper than any text that people read, and each line gets them */
/* bytes of values that filters make while one template is rendered; more is an error */
#define MAX_ARENA ((size_t)8 << 20) /* bytes of filters: as RV_TEMPLATE_MAX_OUTPUT */

struct reader {
    rv_template *t;
    rv_str text;
    size_t pos;
    const struct rv_placeholder *ph;
    rv_err **err;
};

static char here(const struct reader *r)
{
    return r->pos < r->text.len ? r->text.ptr[r->pos] : '\0';
}

static void skip_blanks(struct reader *r)
{
    while (here(r) == ' ' || here(r) == '\t')
        r->pos++;
}

static const struct {
    const char *name;
    enum rv_filter_kind kind;
    bool has_text, has_number;
    const char *example;
} filters[] = {
    {"default", RV_FILTER_DEFAULT, true, false, "default \"none\""},
    {"json", RV_FILTER_JSON, false, false, "json"},
    {"join", RV_FILTER_JOIN, true, false, "join \", \""},
    {"truncate", RV_FILTER_TRUNCATE, false, true, "truncate 200"},
    {"indent", RV_FILTER_INDENT, false, true, "indent 4"},
};

/* A JSON string in quotes; in the arena. */
static int take_text(struct reader *r, rv_str *out)
{
    size_t end = r->pos + 1;
    json_object *value = NULL;
    int rc;

    if (here(r) != '"')
        return RV_E_PARSE;
    while (end < r->text.len && r->text.ptr[end] != '"')
        end += r->text.ptr[end] == '\\' ? 2 : 1;
    if (end >= r->text.len)
        return RV_E_PARSE;
    rc = rv_json_parse((rv_str){r->text.ptr + r->pos, end + 1 - r->pos}, NULL, &value,
                       RV_CODE_ONLY("the reader of the template reports the place of the filter by this code"));
    if (rc < 0)
        return rc;
    rv_str text = rv_json_str(value);
    char *copy = rv_arena_dup(r->t->arena, text);
    json_object_put(value);
    if (!copy)
        return RV_E_NOMEM;
    *out = (rv_str){copy, text.len};
    r->pos = end + 1;
    return 0;
}

static int take_number(struct reader *r, size_t max, size_t *out)
{
    size_t start = r->pos;

    for (*out = 0; here(r) >= '0' && here(r) <= '9' && *out <= max; r->pos++)
        *out = *out * 10 + (size_t)(here(r) - '0');
    return r->pos > start && *out <= max ? 0 : RV_E_PARSE;
}

static int take_filter(struct reader *r, struct rv_filter *f)
{
    const char *names[RV_COUNT(filters)], *near;
    size_t start = r->pos, i;
    int rc = 0;

    while (here(r) >= 'a' && here(r) <= 'z')
        r->pos++;
    rv_str name = {r->text.ptr + start, r->pos - start};
    for (i = 0; i < RV_COUNT(filters) && !rv_str_is(name, filters[i].name); i++)
        names[i] = filters[i].name;
    if (i == RV_COUNT(filters)) {
        rc = RV_FAIL_AT(r->err, &r->ph->src, RV_E_PARSE, "\"{{%.*s | %.*s\": unknown filter \"%.*s\"",
                        RV_STR_ARG(r->ph->path), RV_STR_ARG(name), RV_STR_ARG(name));
        near = rv_nearest(name, names, RV_COUNT(filters));
        if (near)
            rv_err_set_hint(r->err, "did you mean \"%s\"?", near);
        else
            rv_err_set_hint(r->err, "filters are default, json, join, truncate, indent");
        return rc;
    }
    *f = (struct rv_filter){.kind = filters[i].kind};
    skip_blanks(r);
    if (filters[i].has_text)
        rc = take_text(r, &f->text);
    else if (filters[i].has_number)
        rc = take_number(r, f->kind == RV_FILTER_INDENT ? MAX_INDENT : RV_TEMPLATE_MAX_OUTPUT, &f->n);
    if (rc == RV_E_NOMEM)
        return RV_FAIL(r->err, rc, "no memory for a template");
    if (rc < 0) {
        rc = RV_FAIL_AT(r->err, &r->ph->src, RV_E_PARSE, "\"{{%.*s | %s\" lacks %s that fits", RV_STR_ARG(r->ph->path),
                        filters[i].name, filters[i].has_text ? "a text" : "a number");
        rv_err_set_hint(r->err, "write it as in {{%.*s | %s}}", RV_STR_ARG(r->ph->path), filters[i].example);
        return rc;
    }
    return 0;
}

int lang_filters_read(rv_template *t, size_t *pos, struct rv_part *tag, rv_err **err)
{
    struct reader r = {t, {t->text, t->len}, *pos, &tag->ph, err};
    struct rv_filter found[MAX_FILTERS], *kept;
    size_t n = 0;

    for (skip_blanks(&r); here(&r) == '|'; skip_blanks(&r)) {
        if (!t->arena && !(t->arena = rv_arena_new(MAX_ARENA)))
            return RV_FAIL(err, RV_E_NOMEM, "no memory for a template");
        if (n == MAX_FILTERS)
            return RV_FAIL_AT(err, &tag->ph.src, RV_E_LIMIT, "a placeholder has at most %d filters", MAX_FILTERS);
        r.pos++;
        skip_blanks(&r);
        int rc = take_filter(&r, &found[n]);
        if (rc < 0)
            return rc;
        n++;
    }
    *pos = r.pos;
    if (n == 0)
        return 0;
    kept = rv_arena_alloc(t->arena, n * sizeof *kept);
    if (!kept)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a template");
    memcpy(kept, found, n * sizeof *kept);
    tag->filters = kept;
    tag->n_filters = n;
    return 0;
}

/* --- applying --- */

static void write_text(json_object *v, rv_buf *b)
{
    if (json_object_is_type(v, json_type_string))
        rv_buf_add_str(b, rv_json_str(v));
    else
        rv_json_write(v, b);
}

static void join(json_object *v, rv_str between, rv_buf *b)
{
    if (!json_object_is_type(v, json_type_array)) {
        write_text(v, b);
        return;
    }
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        if (i)
            rv_buf_add_str(b, between);
        write_text(json_object_array_get_idx(v, i), b);
    }
}

static void truncate_to(rv_str text, size_t n, rv_buf *b)
{
    rv_str first = rv_utf8_first(text, n);

    rv_buf_add_str(b, first);
    if (first.len < text.len)
        rv_buf_puts(b, "...");
}

static void indent(rv_str text, size_t n, rv_buf *b)
{
    for (size_t i = 0; i < text.len; i++) {
        rv_buf_putc(b, text.ptr[i]);
        for (size_t k = 0; text.ptr[i] == '\n' && k < n; k++)
            rv_buf_putc(b, ' ');
    }
}

/* *text has what the filters before have made of the value; the first one gets the value itself. */
static void apply(const struct rv_filter *f, json_object *v, rv_buf *text, bool *is_text)
{
    rv_buf to = RV_BUF_INIT(text->max);
    rv_str from;

    if (f->kind == RV_FILTER_JOIN && !*is_text) {
        join(v, f->text, &to);
    } else if (f->kind == RV_FILTER_JSON && !*is_text) {
        rv_json_write(v, &to);
    } else {
        if (!*is_text)
            write_text(v, text);
        from = (rv_str){text->len ? text->ptr : "", text->len};
        if (f->kind == RV_FILTER_JSON) {
            rv_jw w = rv_jw_on(&to);
            rv_jw_str(&w, from);
        } else if (f->kind == RV_FILTER_TRUNCATE) {
            truncate_to(from, f->n, &to);
        } else if (f->kind == RV_FILTER_INDENT) {
            indent(from, f->n, &to);
        } else {
            rv_buf_add_str(&to, from); /* join of a text, default of a value that is there */
        }
    }
    if (text->rc && !to.rc)
        to.rc = text->rc;
    rv_buf_fini(text);
    *text = to;
    *is_text = true;
}

/* The filter that begins: without a value `default`, wherever it stands, for there is nothing to filter before it. */
static size_t first_filter(const struct rv_part *p, json_object *v, bool is_older)
{
    for (size_t i = 0; i < p->n_filters && !v && !is_older; i++)
        if (p->filters[i].kind == RV_FILTER_DEFAULT)
            return i;
    return 0;
}

int lang_filters_write(const struct rv_part *p, json_object *v, bool is_older, rv_buf *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_TEMPLATE_MAX_OUTPUT);
    bool is_text = false;
    int rc;

    for (size_t i = first_filter(p, v, is_older); i < p->n_filters; i++) {
        const struct rv_filter *f = &p->filters[i];
        if (f->kind != RV_FILTER_DEFAULT)
            apply(f, v, &text, &is_text);
        else if (!is_text && !v) {
            rv_buf_add_str(&text, f->text);
            is_text = true;
        }
    }
    if (is_text)
        rv_buf_add_str(out, (rv_str){text.len ? text.ptr : "", text.len});
    else
        write_text(v, out);
    rc = text.rc ? rv_buf_check(&text, "rendered template", err) : 0;
    rv_buf_fini(&text);
    return rc;
}
