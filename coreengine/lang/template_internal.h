/* Shared by the files of templates only. */
#ifndef RV_TEMPLATE_INTERNAL_H
#define RV_TEMPLATE_INTERNAL_H

#include "coreengine/lang/expr_internal.h"

#define RV_TEMPLATE_MAX_TAGS    4096    /* of one template */
#define RV_TEMPLATE_MAX_NESTING 16      /* sections in sections */
#define RV_TEMPLATE_MAX_STEPS   1000000 /* parts of one rendering: sections within sections multiply */

enum rv_filter_kind { RV_FILTER_DEFAULT, RV_FILTER_JSON, RV_FILTER_JOIN, RV_FILTER_TRUNCATE, RV_FILTER_INDENT };
struct rv_filter {
    enum rv_filter_kind kind;
    rv_str text; /* of default and join; in the arena */
    size_t n;    /* of truncate and indent */
};

/* What stands in braces. The order matters: from RV_TAG_SECTION on they belong to sections. */
enum rv_tag_kind {
    RV_TAG_TEXT,     /* none: the end of the template, or an escape */
    RV_TAG_VALUE,    /* {{path}} */
    RV_TAG_INDEX,    /* {{@index}} */
    RV_TAG_NUMBER,   /* {{@number}} */
    RV_TAG_SECTION,  /* {{#path}} */
    RV_TAG_INVERTED, /* {{^path}} */
    RV_TAG_END,      /* {{/path}} */
};

/* A piece of text, and the tag behind it. */
struct rv_part {
    rv_str before; /* in the template's text */
    enum rv_tag_kind kind;
    struct rv_placeholder ph;        /* root.ptr NULL: a path that begins with a dot, of the item */
    const struct rv_filter *filters; /* in the arena of the template */
    size_t n_filters;
    size_t other;      /* of a section, the part that ends it */
    size_t begin, end; /* bytes of the tag; while it is read */
    bool is_text;      /* it turned out to be text; while it is read */
};

struct rv_template {
    char *text; /* owned, as all of the below */
    size_t len;
    char *file;
    char *paths; /* the paths, each segment with a NUL, at the same offset as in text */
    struct rv_part *parts;
    size_t n_parts, cap_parts;
    size_t *holes; /* indices of the parts that look a name up */
    size_t n_holes;
    rv_arena *arena; /* of the filters; NULL: there are none */
    struct rv_foreign foreign[RV_TEMPLATE_MAX_FOREIGN];
    size_t n_foreign;
};

/** The next segment of a path at *pos, which is moved behind it and a following dot. */
rv_str lang_path_segment(rv_str path, size_t *pos);
/** Read t->text into t->parts. place: of its first byte. RV_E_PARSE, RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int lang_template_read(rv_template *t, struct rv_src place, rv_err **err);
/** Read the filters at *pos, which is moved behind them. */
RV_MUST_CHECK int lang_filters_read(rv_template *t, size_t *pos, struct rv_part *tag, rv_err **err);
/** Append what p's filters make of v. is_there: v is the value of the path, else there is none. RV_E_NOMEM, RV_E_LIMIT.
 */
RV_MUST_CHECK int lang_filters_write(const struct rv_part *p, json_object *v, bool is_there, rv_buf *out, rv_err **err);

#endif
