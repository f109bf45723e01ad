/* Documents: what is refused before reading, and the life of the result. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/yaml_internal.h"

/* --- Faults of syntax --- */

/* Length of the line break at offset, as libyaml sees it; 0: none. */
static size_t break_len(rv_str text, size_t offset)
{
    const char *p = text.ptr + offset;
    size_t left = text.len - offset;

    if (p[0] == '\n')
        return 1;
    if (p[0] == '\r')
        return left > 1 && p[1] == '\n' ? 2 : 1;
    if (left > 1 && memcmp(p, "\xc2\x85", 2) == 0)
        return 2;
    if (left > 2 && (memcmp(p, "\xe2\x80\xa8", 3) == 0 || memcmp(p, "\xe2\x80\xa9", 3) == 0))
        return 3;
    return 0;
}

/* Line and column, both from 1, of a byte offset; columns count characters. */
static struct rv_src yaml_place(rv_str text, size_t offset, const char *name)
{
    struct rv_src src = {name, 1, 1};
    size_t i = 0;

    while (i < offset && i < text.len) {
        size_t n = break_len(text, i);
        if (n > 0) {
            i += n;
            src.line++;
            src.col = 1;
            continue;
        }
        src.col += !rv_utf8_continues(text.ptr[i]); /* continuation bytes do not count as columns */
        i++;
    }
    return src;
}

void lang_yaml_seek_line(rv_str text, int target_line, int *line, size_t *offset)
{
    while (*line < target_line && *offset < text.len) {
        size_t n = break_len(text, *offset);
        *line += n > 0;
        *offset += n > 0 ? n : 1;
    }
}

#define THE_END '\4' /* for a place behind the text, in the table below; YAML has no such character */
static const struct {
    const char *problem; /* the beginning of libyaml's text */
    char at;             /* the character at its place; 0: any */
    const char *text, *hint;
} known[] = {
    {"found character that cannot start any token", '\t', "a tab stands where indentation is expected",
     "indent with blanks; YAML allows no tabs there"},
    {"found character that cannot start any token", '@', "a value cannot begin with \"@\"", "put the value in quotes"},
    {"found character that cannot start any token", '`', "a value cannot begin with \"`\"", "put the value in quotes"},
    {"found character that cannot start any token", '%', "a value cannot begin with \"%\"", "put the value in quotes"},
    {"found a tab character that violate", 0, "a tab stands where indentation is expected",
     "indent with blanks; YAML allows no tabs there"},
    {"found a tab character where an indentation space is expected", 0, "a tab stands where indentation is expected",
     "indent with blanks; YAML allows no tabs there"},
    {"mapping values are not allowed in this context", 0, "a \":\" is not allowed here",
     "put a value that contains \": \" in quotes, or check the indentation of this line"},
    {"could not find expected ':'", 0, "a \":\" is missing after a key",
     "write \"key: value\"; a text of several lines needs \"|\" after the \":\" and deeper indentation"},
    {"did not find expected key", 0, "this line fits no map or list that is open here",
     "it must be indented exactly as the lines it belongs to; a quoted value must end where its quote does"},
    {"did not find expected '-' indicator", 0, "an item of a list must begin with \"- \" here",
     "it must be indented exactly as the other items"},
    {"block sequence entries are not allowed in this context", 0, "a list cannot begin here",
     "put \"- \" on a line of its own, below the key"},
    {"block mapping keys are not allowed in this context", 0, "a map cannot begin here", NULL},
    {"did not find expected ',' or ']'", 0, "a \",\" or the closing \"]\" is missing",
     "close it, and put a comma between two values"},
    {"did not find expected ',' or '}'", 0, "a \",\" or the closing \"}\" is missing",
     "close it, and put a comma between two values"},
    {"did not find expected node content", THE_END, "the file ends inside a list or map", "close it with ] or }"},
    {"did not find expected node content", '-', "\"- \" cannot begin a value between brackets",
     "close the bracket first, or separate the values by commas"},
    {"did not find expected node content", 0, "a value is missing here",
     "values that begin with one of , ] } need quotes"},
    {"found unexpected end of stream", 0, "the file ends inside a quoted string", "close the quote"},
    {"found unexpected document indicator", 0, "a \"---\" or \"...\" stands inside a quoted string", "close the quote"},
    {"found unknown escape character", 0, "this escape does not exist",
     "write \"\\\\\" for a backslash, or use single quotes, which know no escapes"},
    {"did not find expected hexdecimal number", 0, "the escape needs hexadecimal digits", NULL},
    {"control characters are not allowed", 0, "control characters are not allowed", NULL},
    {"found invalid Unicode character escape code", 0, "the escape is not a Unicode character", NULL},
    {"did not find expected <document start>", 0, "the file goes on after its end",
     "a file is one map: check the indentation of this line"},
    {"did not find the expected comment or line break", 0, "something follows that cannot stand behind \"|\" or \">\"",
     "begin the text on the next line"},
    {"did not find expected comment or line break", 0, "something follows that cannot stand behind \"|\" or \">\"",
     "begin the text on the next line"},
    {"found undefined tag handle", 0, "tags are not supported", NULL},
};

static char char_at(rv_str text, const yaml_mark_t *mark)
{
    int line = 1;
    size_t offset = 0;

    lang_yaml_seek_line(text, (int)mark->line + 1, &line, &offset);
    for (size_t col = 0; offset < text.len; offset++) {
        if (rv_utf8_continues(text.ptr[offset]))
            continue;
        if (col++ == mark->column)
            return text.ptr[offset];
    }
    return THE_END;
}

void lang_yaml_add_syntax(const yaml_parser_t *parser, rv_str text, const struct rv_yaml_flow *flow, const char *name,
                          rv_findings *findings)
{
    const char *problem = parser->problem ? parser->problem : "the text is not YAML";
    struct rv_src src = {name, (int)parser->problem_mark.line + 1, (int)parser->problem_mark.column + 1};
    const char *said = problem;
    const char *hint = NULL;
    char at;

    if (parser->error == YAML_READER_ERROR) { /* its mark stays 1:1 */
        src = yaml_place(text, parser->problem_offset, name);
        at = 0;
    } else {
        at = char_at(text, &parser->problem_mark);
    }
    for (size_t i = 0; i < RV_COUNT(known); i++) {
        if (strncmp(problem, known[i].problem, strlen(known[i].problem)) != 0)
            continue;
        if (known[i].at && known[i].at != at)
            continue;
        said = known[i].text;
        hint = known[i].hint;
        break;
    }
    if (flow->is_open && parser->error == YAML_PARSER_ERROR)
        rv_findings_add(findings, RV_SEVERITY_CRITICAL, &src, hint, "%s (in the %s that begins at %d:%d)", said,
                        flow->is_map ? "map" : "list", flow->src.line, flow->src.col);
    else if (parser->context && parser->context_mark.line != parser->problem_mark.line)
        rv_findings_add(findings, RV_SEVERITY_CRITICAL, &src, hint, "%s (in what began on line %zu)", said,
                        parser->context_mark.line + 1);
    else
        rv_findings_add(findings, RV_SEVERITY_CRITICAL, &src, hint, "%s", said);
}

/* --- Documents --- */

#define MAX_ARENA ((size_t)256 << 20) /* bytes: the caps on nodes and text end long before */

static bool is_readable(rv_str text, const char *name, rv_findings *findings)
{
    size_t bad = 0;
    struct rv_src src = {name, 1, 1};

    if (text.len > RV_YAML_MAX_BYTES) {
        rv_findings_add(findings, RV_SEVERITY_CRITICAL, &src, NULL, "the file has %zu bytes (the limit is %zu)",
                        text.len, RV_YAML_MAX_BYTES);
        return false;
    }
    if (!rv_utf8_valid(text, &bad)) {
        src = yaml_place(text, bad, name);
        rv_findings_add(findings, RV_SEVERITY_CRITICAL, &src, "save the file as UTF-8",
                        "the byte 0x%02x is not valid UTF-8 here", (unsigned char)text.ptr[bad]);
        return false;
    }
    return true;
}

int rv_yaml_parse(rv_str text, const char *name, rv_findings *findings, rv_yaml **out, rv_err **err)
{
    rv_yaml *doc = NULL;
    bool is_whole = false;
    int rc = 0;

    *out = NULL;
    text = rv_utf8_unmark(text); /* it does not count as part of line 1 */
    if (!is_readable(text, name, findings))
        return rv_findings_check(findings, err);
    doc = calloc(1, sizeof *doc);
    if (doc)
        doc->arena = rv_arena_new(MAX_ARENA);
    if (doc && doc->arena)
        doc->name = rv_arena_dup(doc->arena, rv_str_of(name));
    if (!doc || !doc->name)
        rc = RV_E_NOMEM;
    if (rc == 0)
        rc = lang_yaml_read_nodes(doc, text, findings, &is_whole);
    if (rc == 0)
        rc = rv_findings_check(
            findings, RV_CODE_ONLY("it fails without memory only; the line below reports that code with the file"));
    if (rc < 0 || !is_whole) {
        rv_yaml_free(doc);
        return rc < 0 ? RV_FAIL(err, rc, "read \"%s\"", name) : 0;
    }
    *out = doc;
    return 0;
}

int rv_yaml_read(const char *path, rv_findings *findings, rv_yaml **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    int rc = rv_file_read(path, &text, err);

    if (rc == 0)
        rc = rv_yaml_parse(rv_buf_str(&text), path, findings, out, err);
    rv_buf_fini(&text);
    return rc;
}

void rv_yaml_free(rv_yaml *doc)
{
    if (!doc)
        return;
    rv_arena_free(doc->arena);
    free(doc);
}

const struct rv_node *rv_yaml_root(const rv_yaml *doc)
{
    return doc ? doc->root : NULL;
}
