/* A text as passages: paragraphs, lists and blocks between blank lines, each with its lines and, in Markdown, the
 * titles above it. A title is not a passage: a quote of a title answers nothing. */
#include "capabilities/files/files_internal.h"

#include <string.h>

#define MAX_PASSAGE_LINES 14 /* longer blocks are cut: a quote should fit a screen */

static bool is_markdown(const char *path)
{
    size_t len = strlen(path);

    return (len > 3 && strcmp(path + len - 3, ".md") == 0) || (len > 9 && strcmp(path + len - 9, ".markdown") == 0);
}

void passages_begin(struct passages *p, const char *path, const char *text, size_t len)
{
    memset(p, 0, sizeof *p);
    p->text = text;
    p->len = len;
    p->line = 1;
    p->is_markdown = is_markdown(path);
}

static size_t line_length(const struct passages *p, size_t at)
{
    const char *end = memchr(p->text + at, '\n', p->len - at);

    return end ? (size_t)(end - p->text) - at : p->len - at;
}

static bool is_blank(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

static bool is_fence(const char *line, size_t len)
{
    return len >= 3 && (memcmp(line, "```", 3) == 0 || memcmp(line, "~~~", 3) == 0);
}

/* Level of a Markdown title, 0: none. */
static size_t title_level(const char *line, size_t len)
{
    size_t n = 0;

    while (n < len && n < 7 && line[n] == '#')
        n++;
    return n >= 1 && n <= 6 && n < len && line[n] == ' ' ? n : 0;
}

static size_t cut_utf8(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
        max--;
    return max;
}

static void keep_title(struct passages *p, const char *line, size_t len, size_t level)
{
    size_t skip = level;

    while (skip < len && (line[skip] == ' ' || line[skip] == '\t'))
        skip++;
    len = cut_utf8(line + skip, len - skip, sizeof p->titles[0] - 1);
    memcpy(p->titles[level - 1], line + skip, len);
    p->titles[level - 1][len] = '\0';
    if (len > 0 && p->titles[level - 1][len - 1] == '\r')
        p->titles[level - 1][len - 1] = '\0';
    for (size_t i = level; i < 6; i++)
        p->titles[i][0] = '\0';
}

static void join_titles(const struct passages *p, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < 6; i++) {
        size_t len = strlen(p->titles[i]);
        if (len == 0 || used + len + 4 > size)
            continue;
        if (used > 0) {
            memcpy(out + used, " > ", 3);
            used += 3;
        }
        memcpy(out + used, p->titles[i], len + 1);
        used += len;
    }
}

bool passages_next(struct passages *p, struct passage *out)
{
    size_t start = 0, end = 0;
    int first = 0;

    out->is_code = p->in_fence;

    while (p->at < p->len) {
        size_t len = line_length(p, p->at);
        const char *line = p->text + p->at;
        bool fence = p->is_markdown && is_fence(line, len);
        size_t level = p->is_markdown && !p->in_fence ? title_level(line, len) : 0;
        bool ends =
            level > 0 || (!p->in_fence && is_blank(line, len)) || (first && p->line - first >= MAX_PASSAGE_LINES);

        if (first && ends)
            break; /* a title or a long block is looked at again by the next call */
        if (level > 0) {
            keep_title(p, line, len, level);
        } else if (!is_blank(line, len) || (first && p->in_fence)) {
            if (!first) {
                first = p->line;
                start = p->at;
                out->is_code |= fence;
            }
            end = p->at + len;
            p->in_fence ^= fence;
        }
        p->at += len + 1;
        p->line++;
    }
    if (!first)
        return false;
    out->text = p->text + start;
    out->len = end - start;
    out->line = first;
    out->end_line = p->line - 1;
    join_titles(p, out->heading, sizeof out->heading);
    return true;
}
