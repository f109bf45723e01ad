/* Lines: what each begins with says what it is. The beginning of a line waits until that is known. */
#include "coreengine/cli/cli.h"
#include "coreengine/cli/markdown/spans_internal.h"

#include <stdlib.h>
#include <string.h>

#define RULE_COLUMNS 40 /* of a horizontal rule */
#define MAX_INDENT   12 /* blanks before a fence: in the item of a list */

enum where { START, TEXT, RAW };
enum kind { UNDECIDED, PARAGRAPH, HEADING, RULE, BULLET, NUMBER, QUOTE, FENCE, TABLE, BLANK };

struct rv_cli_md {
    bool styled, behind;
    size_t columns;
    char bytes[4]; /* of a character that is not whole yet */
    size_t n_bytes;
    bool cr; /* the last byte was a carriage return */
    enum where where;
    bool quoted;   /* the line is in a quotation */
    bool relook;   /* how the line looks was switched off in its middle */
    unsigned look; /* of the line */
    rv_buf line;   /* its beginning, while it waits */
    char fence;    /* what ends the code; 0: it is not code */
    size_t n_fence;
    struct md_spans spans;
    struct md_table table;
};

rv_cli_md *cli_md_new(bool styled, size_t columns)
{
    rv_cli_md *md = calloc(1, sizeof *md);

    if (!md)
        return NULL;
    md->styled = styled;
    md->columns = columns;
    cli_md_begin(md);
    return md;
}

void cli_md_free(rv_cli_md *md)
{
    if (!md)
        return;
    rv_buf_fini(&md->line);
    rv_buf_fini(&md->table.rows);
    md_spans_fini(&md->spans);
    free(md);
}

static void end_table(rv_cli_md *md)
{
    rv_buf_clear(&md->table.rows);
    md->table.rows.max = 2 * RV_CLI_MD_MAX_TABLE;
    md->table.n_columns = 0;
    md->table.is_open = false;
    memset(md->table.widths, 0, sizeof md->table.widths);
}

void cli_md_behind(rv_cli_md *md)
{
    md->behind = true;
}

void cli_md_begin(rv_cli_md *md)
{
    md->n_bytes = 0;
    md->behind = md->cr = md->quoted = md->relook = false;
    md->where = START;
    md->fence = 0;
    md->look = 0;
    rv_buf_clear(&md->line);
    md->line.max = 2 * RV_CLI_MD_MAX_LINE;
    md_spans_begin(&md->spans, md->styled, 0);
    end_table(md);
}

/* --- what a line is --- */

static size_t blanks_of(rv_str s)
{
    size_t n = 0;

    while (n < s.len && (s.ptr[n] == ' ' || s.ptr[n] == '\t'))
        n++;
    return n;
}

static size_t run_at(rv_str s, size_t at)
{
    size_t n = 0;

    while (at + n < s.len && s.ptr[at + n] == s.ptr[at])
        n++;
    return n;
}

/* "---", "* * *": marks and blanks alone, three marks at least. n: marks; false: something else is among them. */
static bool is_rule(rv_str s, size_t at, size_t *n)
{
    *n = 0;
    for (size_t i = at; i < s.len; i++) {
        if (s.ptr[i] != s.ptr[at] && s.ptr[i] != ' ')
            return false;
        *n += s.ptr[i] == s.ptr[at];
    }
    return true;
}

static enum kind marked(rv_str s, size_t at, bool ended, size_t *prefix)
{
    size_t n;
    bool alone = is_rule(s, at, &n), lists = s.ptr[at] != '_' && at + 1 < s.len && s.ptr[at + 1] == ' ';

    if (alone && !ended)
        return UNDECIDED;
    if (alone && n >= 3)
        return RULE;
    *prefix = at + 2;
    return lists ? BULLET : PARAGRAPH;
}

static enum kind numbered(rv_str s, size_t at, bool ended, size_t *prefix)
{
    size_t i = at;

    while (i < s.len && rv_is_digit(s.ptr[i]) && i - at < 9)
        i++;
    if (i + 1 >= s.len && !ended && (i == s.len || s.ptr[i] == '.' || s.ptr[i] == ')'))
        return UNDECIDED;
    if (i + 1 >= s.len || (s.ptr[i] != '.' && s.ptr[i] != ')') || s.ptr[i + 1] != ' ')
        return PARAGRAPH;
    *prefix = i + 2;
    return NUMBER;
}

static enum kind fenced(const rv_cli_md *md, rv_str s, size_t at, bool ended)
{
    size_t n = run_at(s, at);

    if (at + n == s.len && !ended)
        return UNDECIDED;
    if (n < 3 || md->quoted || at > MAX_INDENT)
        return PARAGRAPH;
    if (s.ptr[at] == '`' && memchr(s.ptr + at + n, '`', s.len - at - n))
        return PARAGRAPH; /* code within a line */
    return ended ? FENCE : UNDECIDED;
}

static enum kind headed(rv_str s, size_t at, bool ended, size_t *prefix)
{
    size_t n = run_at(s, at);

    if (n > 6)
        return PARAGRAPH;
    if (at + n == s.len)
        return ended ? PARAGRAPH : UNDECIDED;
    *prefix = at + n + 1;
    return s.ptr[at + n] == ' ' ? HEADING : PARAGRAPH;
}

static enum kind kind_of(const rv_cli_md *md, rv_str s, bool ended, size_t *prefix)
{
    size_t at = blanks_of(s);

    *prefix = 0;
    if (at == s.len)
        return ended ? BLANK : UNDECIDED;
    switch (s.ptr[at]) {
    case '#':
        return headed(s, at, ended, prefix);
    case '>':
        *prefix = at + 1 + (at + 1 < s.len && s.ptr[at + 1] == ' ');
        return at + 1 == s.len && !ended ? UNDECIDED : QUOTE;
    case '-':
    case '*':
    case '_':
    case '+':
        return marked(s, at, ended, prefix);
    case '`':
    case '~':
        return fenced(md, s, at, ended);
    case '|':
        return md->quoted ? PARAGRAPH : ended ? TABLE : UNDECIDED;
    default:
        return rv_is_digit(s.ptr[at]) ? numbered(s, at, ended, prefix) : PARAGRAPH;
    }
}

/* Does the line, as far as it is there, end the code? */
static enum kind in_code(const rv_cli_md *md, rv_str s, bool ended)
{
    size_t at = blanks_of(s), n = at < s.len && s.ptr[at] == md->fence ? run_at(s, at) : 0, end = at + n;

    end += blanks_of((rv_str){s.ptr + end, s.len - end});
    if (end < s.len || (end == s.len && ended && n < md->n_fence))
        return PARAGRAPH;
    return ended ? FENCE : UNDECIDED;
}

/* --- writing --- */

/* Blocks of their own do not begin behind something. */
static void own_line(rv_cli_md *md, rv_buf *out)
{
    rv_buf_puts(out, md->behind ? "\n" : "");
    md->behind = false;
}

static void put_text(rv_cli_md *md, rv_str c, rv_buf *out)
{
    if (md->relook)
        md_look(md->styled, md->look, out);
    md->relook = false;
    if (md->where == TEXT)
        md_spans_add(&md->spans, c, out);
    else
        rv_buf_add_str(out, c);
}

static void begin_text(rv_cli_md *md, enum where where, unsigned look, rv_str text, rv_buf *out)
{
    md->where = md->styled ? where : RAW;
    md->look = look;
    md->behind = false;
    if (look)
        md_look(md->styled, look, out);
    md_spans_begin(&md->spans, md->styled, look);
    for (size_t i = 0, n; i < text.len; i += n) {
        n = 1;
        while (i + n < text.len && rv_utf8_continues(text.ptr[i + n]))
            n++;
        put_text(md, (rv_str){text.ptr + i, n}, out);
    }
}

static void finish_text(rv_cli_md *md, rv_buf *out)
{
    if (md->where == TEXT)
        md_spans_end(&md->spans, out);
    if (md->look)
        md_look(md->styled, 0, out);
}

/* A line that is written whole. */
static void write_line(rv_cli_md *md, rv_str text, unsigned look, rv_buf *out)
{
    own_line(md, out);
    md_look(md->styled, look, out);
    rv_buf_add_str(out, text);
    md_look(md->styled, 0, out);
}

static void write_rule(rv_cli_md *md, rv_str s, rv_buf *out)
{
    if (!md->styled) {
        write_line(md, s, 0, out);
        return;
    }
    own_line(md, out);
    md_look(true, MD_DIM, out);
    for (size_t i = 0; i < RULE_COLUMNS && i < md->columns; i++)
        rv_buf_puts(out, "\xe2\x94\x80");
    md_look(true, 0, out);
}

static void write_bullet(rv_cli_md *md, rv_str s, size_t prefix, enum kind kind, rv_buf *out)
{
    size_t at = blanks_of(s);

    own_line(md, out);
    rv_buf_add(out, s.ptr, at);
    if (kind == BULLET)
        rv_buf_puts(out, "\xe2\x80\xa2 ");
    else
        rv_buf_add(out, s.ptr + at, prefix - at);
}

static void fence(rv_cli_md *md, rv_str s, rv_buf *out)
{
    size_t at = blanks_of(s);

    if (md->fence) {
        md->fence = 0;
    } else {
        md->fence = s.ptr[at];
        md->n_fence = run_at(s, at);
    }
    write_line(md, s, MD_DIM, out);
}

/* The table that waits, or the line that might have been its head. */
static void write_table(rv_cli_md *md, rv_buf *out)
{
    rv_str rows = rv_buf_str(&md->table.rows);

    if (md->table.n_columns) {
        own_line(md, out);
        md_table_write(&md->table, md->styled, md->columns, out);
    } else {
        enum where where = md->where;
        begin_text(md, TEXT, 0, (rv_str){rows.ptr, rows.len - 1}, out);
        finish_text(md, out);
        md->where = where;
    }
}

/* A whole line that begins with a bar. */
static void take_row(rv_cli_md *md, rv_str line, rv_buf *out)
{
    struct md_table *t = &md->table;
    rv_str head = {rv_buf_cstr(&t->rows), t->rows.len ? t->rows.len - 1 : 0};

    if (t->rows.len > 0 && !t->n_columns &&
        !(md_table_is_rule(line, t) && md_table_count(head) == t->n_columns)) { /* the line before was not its head */
        t->n_columns = 0;
        write_table(md, out);
        rv_buf_putc(out, '\n');
        end_table(md);
    }
    size_t n = t->rows.len;
    rv_buf_add_str(&t->rows, line);
    rv_buf_putc(&t->rows, '\n');
    if (t->rows.rc < 0) { /* no memory: its text stays */
        rv_buf_puts(out, t->is_open ? "\n" : "");
        rv_buf_add_str(out, (rv_str){t->rows.ptr, n});
        rv_buf_add_str(out, line);
        end_table(md);
    } else if (t->n_columns && (t->is_open || t->rows.len > RV_CLI_MD_MAX_TABLE)) {
        write_table(md, out);
    }
}

static bool has_table(const rv_cli_md *md)
{
    return md->table.rows.len > 0 || md->table.is_open;
}

/* --- the beginning of a line --- */

static void begin_quote(rv_cli_md *md, size_t prefix, rv_buf *out)
{
    if (!md->quoted)
        own_line(md, out);
    md_look(md->styled, MD_DIM, out);
    rv_buf_puts(out, md->styled ? "\xe2\x94\x82 " : "> ");
    md_look(md->styled, 0, out);
    md->quoted = true;
    memmove(md->line.ptr, md->line.ptr + prefix, md->line.len - prefix);
    rv_buf_truncate(&md->line, md->line.len - prefix);
}

/* True: the line is written, or waits as a row of a table. */
static bool begin_line(rv_cli_md *md, enum kind kind, size_t prefix, rv_buf *out)
{
    rv_str s = rv_buf_str(&md->line), rest = {s.ptr + prefix, s.len - prefix};
    size_t at = blanks_of(s), level = kind == HEADING ? run_at(s, at) : 0;

    switch (kind) {
    case RULE:
        write_rule(md, s, out);
        return true;
    case FENCE:
        fence(md, s, out);
        return true;
    case TABLE:
        take_row(md, s, out);
        return true;
    case BLANK:
        md->behind = false;
        return true;
    case HEADING:
        own_line(md, out);
        begin_text(md, TEXT, MD_BOLD | (level < 3 ? MD_UNDERLINE : 0), md->styled ? rest : s, out);
        return false;
    case BULLET:
    case NUMBER:
        if (md->styled)
            write_bullet(md, s, prefix, kind, out);
        else
            own_line(md, out);
        begin_text(md, TEXT, 0, md->styled ? rest : s, out);
        return false;
    case UNDECIDED:
    case QUOTE:
    case PARAGRAPH:
        break;
    }
    begin_text(md, TEXT, 0, s, out);
    return false;
}

/* It is a row of a table, or may become one. */
static bool is_row(rv_str s, bool ended)
{
    size_t at = blanks_of(s);

    return at < s.len ? s.ptr[at] == '|' : !ended;
}

static void leave_table(rv_cli_md *md, rv_buf *out)
{
    if (md->table.rows.len > 0)
        write_table(md, out);
    rv_buf_putc(out, '\n');
    end_table(md);
}

/* False: it is not known yet what the line is. *whole: nothing is left to write. */
static bool decide(rv_cli_md *md, bool ended, bool *whole, rv_buf *out)
{
    bool is_long = md->line.len > RV_CLI_MD_MAX_LINE;
    size_t prefix = 0;

    *whole = false;
    for (;;) {
        rv_str s = rv_buf_str(&md->line);
        if (has_table(md) && (is_long || !is_row(s, ended)))
            leave_table(md, out);
        enum kind kind = md->fence ? in_code(md, s, ended) : kind_of(md, s, ended, &prefix);
        if (is_long && (kind == UNDECIDED || kind == TABLE || kind == FENCE))
            kind = PARAGRAPH;
        if (kind == UNDECIDED)
            return false;
        if (kind == QUOTE) {
            begin_quote(md, prefix, out);
            continue;
        }
        if (md->fence && kind == PARAGRAPH)
            begin_text(md, RAW, MD_CODE, s, out);
        else
            *whole = begin_line(md, kind, prefix, out);
        rv_buf_clear(&md->line);
        return true;
    }
}

static void end_line(rv_cli_md *md, rv_buf *out)
{
    bool whole = false, waits;

    if (md->where == START)
        RV_IGNORE(!decide(md, true, &whole, out), "a line that ended is known");
    waits = whole && md->table.rows.len > 0;
    if (!whole)
        finish_text(md, out);
    if (!waits && !(whole && md->table.is_open))
        rv_buf_putc(out, '\n');
    md->where = START;
    md->quoted = md->relook = false;
    md->look = 0;
}

static void put_char(rv_cli_md *md, rv_str c, rv_buf *out)
{
    bool whole;

    if (c.ptr[0] == '\n') {
        end_line(md, out);
        return;
    }
    if (md->where != START) {
        put_text(md, c, out);
        return;
    }
    rv_buf_add_str(&md->line, c);
    if (md->line.rc < 0) { /* no memory: as it is */
        begin_text(md, RAW, 0, rv_buf_str(&md->line), out);
        rv_buf_clear(&md->line);
        put_text(md, c, out);
        return;
    }
    RV_IGNORE(decide(md, false, &whole, out), "more of the line comes");
}

/* --- characters --- */

static size_t length_of(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
}

/* A whole character, made safe for a terminal. */
static void put_safe(rv_cli_md *md, rv_str c, rv_buf *out)
{
    char memory[16];
    rv_buf safe = {.ptr = NULL, .max = sizeof memory};

    if ((unsigned char)c.ptr[0] >= ' ' && (unsigned char)c.ptr[0] < 0x7f) {
        put_char(md, c, out);
        return;
    }
    cli_write_safe(c, &safe);
    put_char(md, safe.rc < 0 ? RV_STR_LIT("?") : rv_buf_str(&safe), out);
    rv_buf_fini(&safe);
}

static void put_byte(rv_cli_md *md, char byte, rv_buf *out)
{
    bool cr = md->cr;

    md->cr = byte == '\r';
    if (cr && byte != '\n')
        put_char(md, RV_STR_LIT(" "), out);
    if (md->cr)
        return;
    md->bytes[md->n_bytes++] = byte;
    size_t len = length_of((unsigned char)md->bytes[0]);
    bool continues = md->n_bytes == 1 || rv_utf8_continues(byte);
    if (continues && md->n_bytes < len)
        return;
    rv_str c = {md->bytes, md->n_bytes};
    size_t n = md->n_bytes;
    md->n_bytes = 0;
    if (continues && n == len && rv_utf8_valid(c, NULL)) {
        put_safe(md, c, out);
        return;
    }
    put_char(md, RV_STR_LIT("\xef\xbf\xbd"), out); /* bytes that are not UTF-8 */
    if (n > 1 && !continues)
        put_byte(md, byte, out);
}

void cli_md_add(rv_cli_md *md, rv_str piece, rv_buf *out)
{
    for (size_t i = 0; i < piece.len; i++)
        put_byte(md, piece.ptr[i], out);
}

void cli_md_flush(rv_cli_md *md, rv_buf *out)
{
    bool whole;

    if (md->where == START && md->line.len > 0) {
        RV_IGNORE(!decide(md, true, &whole, out), "what is there is taken as the line");
        if (!whole)
            cli_md_flush(md, out);
    }
    if (md->where == START && md->table.rows.len > 0) {
        write_table(md, out);
        end_table(md);
    }
    if (md->where != START) {
        finish_text(md, out);
        md->relook = md->look != 0;
    }
}
