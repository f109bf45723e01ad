/* A span: names, times, attributes, and the memory of its texts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/telemetry/telemetry_internal.h"

#define MAX_ARENA ((size_t)64 << 10) /* bytes: RV_SPAN_MAX_ATTRS of RV_SPAN_MAX_TEXT */
#define MAX_NAME  ((size_t)256)      /* bytes; a longer name is cut */

int rv_span_new(const char *name, enum rv_span_kind kind, struct rv_span **out, rv_err **err)
{
    struct rv_span *s = calloc(1, sizeof *s);

    if (s && (s->arena = rv_arena_new(MAX_ARENA)))
        s->name = rv_arena_dup(s->arena, rv_utf8_cut(rv_str_of(name), MAX_NAME));
    if (!s || !s->name) {
        rv_span_free(s);
        return RV_FAIL(err, RV_E_NOMEM, "begin a span");
    }
    s->kind = kind;
    *out = s;
    return 0;
}

void rv_span_free(struct rv_span *s)
{
    if (!s)
        return;
    rv_arena_free(s->arena);
    free(s);
}

/* NULL: there is no room. */
static struct rv_attr *add(struct rv_span *s, const char *key, enum rv_attr_kind kind)
{
    for (size_t i = 0; i < s->n_attrs; i++)
        if (strcmp(s->attrs[i].key, key) == 0) {
            s->attrs[i] = (struct rv_attr){.key = key, .kind = kind};
            return &s->attrs[i];
        }
    if (s->n_attrs == RV_SPAN_MAX_ATTRS) {
        s->n_dropped++;
        return NULL;
    }
    s->attrs[s->n_attrs] = (struct rv_attr){.key = key, .kind = kind};
    return &s->attrs[s->n_attrs++];
}

static void add_text(struct rv_span *s, const char *key, enum rv_attr_kind kind, rv_str text)
{
    rv_str shown = rv_utf8_cut(text, RV_SPAN_MAX_TEXT);
    const char *copy = rv_utf8_valid(shown, NULL) ? rv_arena_dup(s->arena, shown) : NULL;
    struct rv_attr *a = copy ? add(s, key, kind) : NULL;

    if (a)
        a->text = (rv_str){copy, shown.len};
    else if (!copy)
        s->n_dropped++;
}

void rv_span_set_text(struct rv_span *s, const char *key, rv_str text)
{
    add_text(s, key, RV_ATTR_TEXT, text);
}

void rv_span_add_line(struct rv_span *s, const char *key, rv_str text)
{
    add_text(s, key, RV_ATTR_LIST, text);
}

void rv_span_set_int(struct rv_span *s, const char *key, int64_t number)
{
    struct rv_attr *a = add(s, key, RV_ATTR_INT);

    if (a)
        a->number = number;
}

void rv_span_set_double(struct rv_span *s, const char *key, double number)
{
    struct rv_attr *a = isfinite(number) ? add(s, key, RV_ATTR_DOUBLE) : NULL;

    if (a)
        a->real = number;
}

void rv_span_fail(struct rv_span *s, const char *type, const char *message)
{
    s->is_error = true;
    rv_span_set_text(s, "error.type", rv_str_of(type && *type ? type : "_OTHER"));
    if (message && *message)
        s->message = rv_arena_dup(s->arena, rv_utf8_cut(rv_str_of(message), RV_SPAN_MAX_TEXT));
}
