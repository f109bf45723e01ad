/* A YAML file in the layout that all files have. The layout is not trusted: its result must have the same events and
 * the same comments as the text, and must be a layout already, or there is no result. */
#include <string.h>
#include <yaml.h>

#include "coreengine/lang/format_internal.h"

static bool same_text(const yaml_char_t *a, const yaml_char_t *b)
{
    return a && b ? strcmp((const char *)a, (const char *)b) == 0 : !a && !b;
}

/* What a reader of either is told, but for its place. */
static bool same_event(const yaml_event_t *a, const yaml_event_t *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case YAML_ALIAS_EVENT:
        return same_text(a->data.alias.anchor, b->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        return same_text(a->data.scalar.anchor, b->data.scalar.anchor) &&
               same_text(a->data.scalar.tag, b->data.scalar.tag) && a->data.scalar.style == b->data.scalar.style &&
               rv_str_eq((rv_str){(const char *)a->data.scalar.value, a->data.scalar.length},
                         (rv_str){(const char *)b->data.scalar.value, b->data.scalar.length});
    case YAML_SEQUENCE_START_EVENT:
        return same_text(a->data.sequence_start.anchor, b->data.sequence_start.anchor) &&
               same_text(a->data.sequence_start.tag, b->data.sequence_start.tag) &&
               a->data.sequence_start.style == b->data.sequence_start.style;
    case YAML_MAPPING_START_EVENT:
        return same_text(a->data.mapping_start.anchor, b->data.mapping_start.anchor) &&
               same_text(a->data.mapping_start.tag, b->data.mapping_start.tag) &&
               a->data.mapping_start.style == b->data.mapping_start.style;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        break;
    }
    return true;
}

struct side {
    yaml_parser_t parser;
    yaml_event_t event;
};

static bool side_init(struct side *s, rv_str text)
{
    if (!yaml_parser_initialize(&s->parser))
        return false;
    yaml_parser_set_encoding(&s->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&s->parser, (const unsigned char *)(text.len > 0 ? text.ptr : ""), text.len);
    return true;
}

/* 1: they say the same; 0: they do not; RV_E_NOMEM. */
static int compare_sides(struct side *a, struct side *b)
{
    bool same = true, ended = false;

    while (same && !ended) {
        if (!yaml_parser_parse(&a->parser, &a->event))
            return a->parser.error == YAML_MEMORY_ERROR ? RV_E_NOMEM : 0;
        if (!yaml_parser_parse(&b->parser, &b->event)) {
            yaml_event_delete(&a->event);
            return b->parser.error == YAML_MEMORY_ERROR ? RV_E_NOMEM : 0;
        }
        same = same_event(&a->event, &b->event);
        ended = a->event.type == YAML_STREAM_END_EVENT || a->event.type == YAML_NO_EVENT;
        yaml_event_delete(&a->event);
        yaml_event_delete(&b->event);
    }
    return same;
}

static int says_the_same(rv_str one, rv_str other)
{
    struct side a, b;
    int rc = RV_E_NOMEM;

    if (!side_init(&a, one))
        return RV_E_NOMEM;
    if (side_init(&b, other)) {
        rc = compare_sides(&a, &b);
        yaml_parser_delete(&b.parser);
    }
    yaml_parser_delete(&a.parser);
    return rc;
}

/* What a file looks like when it is written out. */
struct layout {
    rv_buf text, comments; /* owned */
};

/* The result against the text; again and again_comments: the layout of the result. */
static int check(rv_str text, const struct layout *made, struct layout *again, const char *name, rv_err **err)
{
    int rc = lang_yaml_layout(rv_buf_str(&made->text), &again->text, &again->comments);

    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, rc, "format \"%s\"", name);
    int same = rc == 0 && rv_str_eq(rv_buf_str(&made->text), rv_buf_str(&again->text)) &&
               rv_str_eq(rv_buf_str(&made->comments), rv_buf_str(&again->comments));
    if (same)
        same = says_the_same(text, rv_buf_str(&made->text));
    if (same < 0)
        return RV_FAIL(err, RV_E_NOMEM, "format \"%s\"", name);
    if (same)
        return 0;
    RV_IGNORE(RV_FAIL(err, RV_E_INVALID, "format \"%s\": the layout would change what the file says", name),
              "the hint comes behind it");
    rv_err_set_hint(err, "the file stays as it is: a key or text that begins with \"---\" or \"...\" can cause this");
    return RV_E_INVALID;
}

static int format_sound(rv_str text, const char *name, rv_buf *out, rv_err **err)
{
    struct layout made = {RV_BUF_INIT(RV_YAML_MAX_BYTES), RV_BUF_INIT(2 * RV_YAML_MAX_BYTES)};
    struct layout again = {RV_BUF_INIT(RV_YAML_MAX_BYTES), RV_BUF_INIT(2 * RV_YAML_MAX_BYTES)};

    int rc = lang_yaml_layout(text, &made.text, &made.comments);
    if (rc == RV_E_LIMIT)
        rc = RV_FAIL(err, rc, "format \"%s\": the result would have more than %zu bytes", name, RV_YAML_MAX_BYTES);
    else if (rc < 0)
        rc = RV_FAIL(err, rc, "format \"%s\"", name);
    if (rc == 0)
        rc = check(text, &made, &again, name, err);
    if (rc == 0) {
        rv_buf_add_str(out, rv_buf_str(&made.text));
        rc = rv_buf_check(out, "a file that is formatted", err);
    }
    rv_buf_fini(&made.text);
    rv_buf_fini(&made.comments);
    rv_buf_fini(&again.text);
    rv_buf_fini(&again.comments);
    return rc;
}

int rv_yaml_format(rv_str text, const char *name, rv_findings *findings, rv_buf *out, rv_err **err)
{
    size_t n_before = rv_findings_n_errors(findings);
    rv_yaml *doc = NULL;

    int rc = rv_yaml_parse(text, name, findings, &doc, err);
    if (rc < 0)
        return rc;
    bool is_sound = doc && rv_findings_n_errors(findings) == n_before;
    rv_yaml_free(doc);
    if (!is_sound)
        return 0;
    return format_sound(rv_utf8_unmark(text), name, out, err);
}
