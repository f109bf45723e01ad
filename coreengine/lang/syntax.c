/* Why libyaml stopped, said so that a person can act on it: its own texts name grammar productions. */
#include <string.h>

#include "coreengine/lang/yaml_internal.h"

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

struct rv_src rv_yaml_place(rv_str text, size_t offset, const char *name)
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
        src.col += ((unsigned char)text.ptr[i] & 0xc0) != 0x80; /* continuation bytes do not count as columns */
        i++;
    }
    return src;
}

void rv_yaml_seek_line(rv_str text, int target_line, int *line, size_t *offset)
{
    while (*line < target_line && *offset < text.len) {
        size_t n = break_len(text, *offset);
        *line += n > 0;
        *offset += n > 0 ? n : 1;
    }
}

static const struct {
    const char *problem; /* the beginning of libyaml's text */
    char at;             /* the character at its place; 0: any */
    const char *text, *hint;
} known[] = {
    {"found character that cannot start any token", '\t', "a tab stands where indentation is expected",
     "indent with blanks; YAML allows no tabs there"},
    {"found character that cannot start any token", '@', "a value can not begin with \"@\"", "put the value in quotes"},
    {"found character that cannot start any token", '`', "a value can not begin with \"`\"", "put the value in quotes"},
    {"found character that cannot start any token", '%', "a value can not begin with \"%\"", "put the value in quotes"},
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
    {"block sequence entries are not allowed in this context", 0, "a list can not begin here",
     "put \"- \" on a line of its own, below the key"},
    {"block mapping keys are not allowed in this context", 0, "a map can not begin here", NULL},
    {"did not find expected ',' or ']'", 0, "a \",\" or the closing \"]\" is missing", NULL},
    {"did not find expected ',' or '}'", 0, "a \",\" or the closing \"}\" is missing", NULL},
    {"did not find expected node content", 0, "a value is missing here",
     "values that begin with one of , ] } need quotes"},
    {"found unexpected end of stream", 0, "the file ends inside a quoted string", "close the quote"},
    {"found unexpected document indicator", 0, "a \"---\" or \"...\" stands inside a quoted string", "close the quote"},
    {"found unknown escape character", 0, "this escape does not exist",
     "write \"\\\\\" for a backslash, or use single quotes, which know no escapes"},
    {"did not find expected hexdecimal number", 0, "the escape needs hexadecimal digits", NULL},
    {"control characters are not allowed", 0, "control characters are not allowed", NULL},
    {"found invalid Unicode character escape code", 0, "the escape is no Unicode character", NULL},
    {"did not find expected <document start>", 0, "the file goes on after its end",
     "a file is one map: check the indentation of this line"},
    {"did not find the expected comment or line break", 0, "something follows that can not stand behind \"|\" or \">\"",
     "begin the text on the next line"},
    {"did not find expected comment or line break", 0, "something follows that can not stand behind \"|\" or \">\"",
     "begin the text on the next line"},
    {"found undefined tag handle", 0, "tags are not supported", NULL},
};

static char char_at(rv_str text, const yaml_mark_t *mark)
{
    int line = 1;
    size_t offset = 0;

    rv_yaml_seek_line(text, (int)mark->line + 1, &line, &offset);
    for (size_t col = 0; offset < text.len; offset++) {
        if (((unsigned char)text.ptr[offset] & 0xc0) == 0x80)
            continue;
        if (col++ == mark->column)
            return text.ptr[offset];
    }
    return 0;
}

void rv_yaml_add_syntax(const yaml_parser_t *parser, rv_str text, const char *name, rv_findings *findings)
{
    const char *problem = parser->problem ? parser->problem : "the text is not YAML";
    struct rv_src src = {name, (int)parser->problem_mark.line + 1, (int)parser->problem_mark.column + 1};
    const char *said = problem;
    const char *hint = NULL;
    char at;

    if (parser->error == YAML_READER_ERROR) { /* its mark stays 1:1 */
        src = rv_yaml_place(text, parser->problem_offset, name);
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
    if (parser->context && parser->context_mark.line != parser->problem_mark.line)
        rv_findings_add(findings, RV_SEVERITY_CRITICAL, &src, hint, "%s (in what began on line %zu)", said,
                        parser->context_mark.line + 1);
    else
        rv_findings_add(findings, RV_SEVERITY_CRITICAL, &src, hint, "%s", said);
}
