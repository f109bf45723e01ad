/* Patterns compiled and matched by PCRE2, within limits. The just-in-time compiler is not used: it counts steps in
 * another way, and a replay on another machine has to come to the same verdict. */
#include "coreengine/lang/pattern_internal.h"

#define PCRE2_CODE_UNIT_WIDTH 8 /* bits: pcre2.h asks for it */
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_TRANSLATED ((size_t)256 << 10) /* bytes of a translated pattern: \S in a class is long */
#define MAX_NESTING    100   /* of groups: PCRE2 calls itself when it compiles them; its own limit is 250 */
#define MAX_HEAP_KB    16384 /* of one match: protects memory, 16 MiB at each place where an expression runs */
#define MAX_SHOWN      60    /* bytes of a pattern in a message: it stays on one line */

struct rv_pattern {
    pcre2_code *code;          /* owned */
    char shown[MAX_SHOWN + 8]; /* the pattern, or its beginning; for messages */
};

static int refuse(int number, const char *shown, rv_err **err)
{
    PCRE2_UCHAR text[160] = "";

    if (number == PCRE2_ERROR_HEAP_FAILED)
        return RV_FAIL(err, RV_E_NOMEM, "no memory to compile a pattern");
    pcre2_get_error_message(number, text, sizeof text);
    int rc = RV_FAIL(err, RV_E_PARSE, "pattern %s: %s", shown, (const char *)text);
    rv_err_set_hint(err, "a character that stands for itself, such as ( or [, has a backslash before it");
    return rc;
}

static int compile(rv_str text, rv_pattern *p, rv_err **err)
{
    const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF |
                             PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    rv_buf translated = RV_BUF_INIT(MAX_TRANSLATED);
    int number = 0;
    size_t at = 0;
    int rc = 0;

    if (!context)
        return RV_FAIL(err, RV_E_NOMEM, "no memory to compile a pattern");
    rc = lang_pattern_translate(text, p->shown, &translated, err);
    if (rc == 0) {
        pcre2_set_parens_nest_limit(context, MAX_NESTING);
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        p->code = pcre2_compile((PCRE2_SPTR)rv_buf_cstr(&translated), translated.len, options, &number, &at, context);
        rc = p->code ? 0 : refuse(number, p->shown, err);
    }
    rv_buf_fini(&translated);
    pcre2_compile_context_free(context);
    return rc;
}

int rv_pattern_new(rv_str text, rv_pattern **out, rv_err **err)
{
    rv_str shown = rv_utf8_cut(text, MAX_SHOWN);

    if (text.len > RV_PATTERN_MAX_BYTES)
        return RV_FAIL(err, RV_E_LIMIT, "a pattern has at most %d bytes, this one %zu", RV_PATTERN_MAX_BYTES, text.len);
    rv_pattern *p = calloc(1, sizeof *p);
    if (!p)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a pattern");
    snprintf(p->shown, sizeof p->shown, "\"%.*s%s\"", RV_STR_ARG(shown), shown.len < text.len ? "..." : "");
    int rc = compile(text, p, err);
    if (rc == 0)
        *out = p;
    else
        rv_pattern_free(p);
    return rc;
}

void rv_pattern_free(rv_pattern *p)
{
    if (!p)
        return;
    pcre2_code_free(p->code);
    free(p);
}

const char *rv_pattern_text(const rv_pattern *p)
{
    return p->shown;
}

struct count {
    size_t left, position;
};

/* Called before each item of the pattern that is tried. */
static int count_step(pcre2_callout_block *block, void *self)
{
    struct count *c = self;
    size_t from = c->position, to = block->current_position;
    size_t cost = 1 + (to > from ? to - from : from - to) / 8;

    c->position = to;
    if (cost > c->left)
        return PCRE2_ERROR_CALLOUT;
    c->left -= cost;
    return 0;
}

int rv_pattern_test(const rv_pattern *p, rv_str text, size_t *steps, bool *out, rv_err **err)
{
    size_t own = RV_PATTERN_STEPS + 4 * text.len, allowed = steps && *steps < own ? *steps : own;
    struct count count = {.left = allowed};
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    pcre2_match_data *data = context ? pcre2_match_data_create(1, NULL) : NULL;

    if (!data) {
        pcre2_match_context_free(context);
        return RV_FAIL(err, RV_E_NOMEM, "no memory to match a pattern");
    }
    pcre2_set_callout(context, count_step, &count);
    pcre2_set_heap_limit(context, MAX_HEAP_KB);
    int rc = pcre2_match(p->code, (PCRE2_SPTR)(text.len ? text.ptr : ""), text.len, 0, 0, data, context);
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    if (steps)
        *steps -= allowed - count.left;
    *out = rc >= 0;
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc == PCRE2_ERROR_NOMEMORY)
        return RV_FAIL(err, RV_E_NOMEM, "no memory to match a pattern");
    if (rc == PCRE2_ERROR_CALLOUT || rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT ||
        rc == PCRE2_ERROR_HEAPLIMIT) {
        rc = RV_FAIL(err, RV_E_LIMIT, "pattern %s takes more than %zu steps on a text of %zu bytes", p->shown, allowed,
                     text.len);
        rv_err_set_hint(err, "a repeat within a repeat, such as (a+)+, tries every way to divide the text");
        return rc;
    }
    return RV_FAIL(err, RV_E_INVALID, "pattern %s: the text is not UTF-8", p->shown);
}
