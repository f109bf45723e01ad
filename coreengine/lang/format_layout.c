/* The layout of a YAML file: libyaml's tokens say where the pieces of a text stand; what is between two of them is
 * blanks, line ends and comments, and only that is written in another way. The lines stay those of the author. */
#include <yaml.h>

#include "coreengine/lang/format_internal.h"

#define STEP 2 /* columns of a level */
/* two columns for each level that YAML may have; deeper files are not formatted */
#define MAX_LEVELS (2 * RV_YAML_MAX_DEPTH)

/* A list or map in block style. Columns from 0. */
struct level {
    int from, to;       /* in the text, in the result */
    bool is_list;       /* its entries begin with "-" */
    bool is_indentless; /* a list in the column of the map around it, which libyaml does not count as a level */
};

struct writer {
    yaml_parser_t parser;
    rv_str text;
    rv_buf *out, *comments;
    size_t index, offset; /* a place in the text, in characters and in bytes: marks count characters */
    size_t done;          /* bytes of the text that are dealt with */
    bool is_fresh;        /* done is the start of a line */
    struct level levels[MAX_LEVELS];
    size_t n, n_before;    /* levels now, and behind the last piece: what ended there is still readable */
    int flows[MAX_LEVELS]; /* columns of the lines that opened the lists and maps in flow style */
    size_t n_flows;
    int flow_line;           /* column of the line in flow style that is being written */
    yaml_token_type_t last;  /* the last piece; none: YAML_NO_TOKEN */
    bool is_key;             /* the next piece begins an entry of a map */
    bool ends_without_break; /* the text ends in a block scalar whose last line has no end, which is a part of its value
                              */
    int rc;
};

/* --- the text --- */

/* Bytes of the line end at i, as libyaml knows them; 0: none. */
static size_t break_at(rv_str s, size_t i)
{
    const unsigned char *p = (const unsigned char *)s.ptr + i;
    size_t left = s.len - i;

    if (left == 0)
        return 0;
    if (p[0] == '\r')
        return left > 1 && p[1] == '\n' ? 2 : 1;
    if (p[0] == '\n')
        return 1;
    if (left > 1 && p[0] == 0xc2 && p[1] == 0x85)
        return 2;
    return left > 2 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9) ? 3 : 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static size_t skip_blanks(rv_str s, size_t i)
{
    while (i < s.len && is_blank(s.ptr[i]))
        i++;
    return i;
}

static size_t line_end(rv_str s, size_t i)
{
    while (i < s.len && break_at(s, i) == 0)
        i++;
    return i;
}

static rv_str without_trailing_blanks(rv_str s)
{
    while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

/* Marks come in order. */
static size_t offset_of(struct writer *w, const yaml_mark_t *mark)
{
    while (w->index < mark->index && w->offset < w->text.len) {
        w->offset++;
        while (w->offset < w->text.len && rv_utf8_continues(w->text.ptr[w->offset]))
            w->offset++;
        w->index++;
    }
    return w->offset;
}

static size_t line_start(rv_str s, size_t at)
{
    while (at > 0 && s.ptr[at - 1] != '\n' && s.ptr[at - 1] != '\r')
        at--;
    return at;
}

/* Columns from the first character of the line of `at` that is not blank to `at`. */
static size_t columns_before(rv_str s, size_t at)
{
    size_t start = skip_blanks((rv_str){s.ptr, at}, line_start(s, at));

    return rv_utf8_count((rv_str){s.ptr + start, at - start});
}

/* --- what is written --- */

static void put_break(rv_str s, size_t i, rv_buf *out)
{
    if (break_at(s, i) == 3) /* U+2028 and U+2029 are a part of what a scalar says */
        rv_buf_add_str(out, (rv_str){s.ptr + i, 3});
    else
        rv_buf_putc(out, '\n');
}

static void put_blanks(rv_buf *out, int n)
{
    for (int i = 0; i < n; i++)
        rv_buf_putc(out, ' ');
}

static int inner_column(const struct writer *w)
{
    return w->n ? w->levels[w->n - 1].to + STEP : 0;
}

static size_t put_comment(struct writer *w, size_t at)
{
    size_t end = line_end(w->text, at);
    rv_str comment = without_trailing_blanks((rv_str){w->text.ptr + at, end - at});

    rv_buf_add_str(w->out, comment);
    rv_buf_add_str(w->comments, comment);
    rv_buf_putc(w->comments, '\n');
    return end;
}

/* A comment behind a piece keeps its column, counted from where its line begins, so that comments that stand in one
 * column still do. */
static size_t put_trailing_comment(struct writer *w, size_t at)
{
    size_t wanted = columns_before(w->text, at), used = columns_before(rv_buf_str(w->out), w->out->len);

    put_blanks(w->out, wanted > used ? (int)(wanted - used) : 1);
    return put_comment(w, at);
}

/* --- between two pieces --- */

/* Where the next piece stands if it begins a line. */
static int column_of(const struct writer *w, yaml_token_type_t type)
{
    if (w->n_flows) {
        bool closes = type == YAML_FLOW_SEQUENCE_END_TOKEN || type == YAML_FLOW_MAPPING_END_TOKEN;
        return w->flows[w->n_flows - 1] + (closes ? 0 : STEP);
    }
    if (w->is_key || type == YAML_BLOCK_ENTRY_TOKEN || type == YAML_KEY_TOKEN || type == YAML_VALUE_TOKEN)
        return w->n ? w->levels[w->n - 1].to : 0;
    if (type == YAML_SCALAR_TOKEN || type == YAML_ALIAS_TOKEN || type == YAML_ANCHOR_TOKEN ||
        type == YAML_FLOW_SEQUENCE_START_TOKEN || type == YAML_FLOW_MAPPING_START_TOKEN)
        return inner_column(w);
    return 0;
}

/* Where a comment of its own line in column `from` goes. Above an entry, or at the end, it can belong to any level that
 * is open before it and not above the one that goes on: the deepest whose column is not
 * greater. */
static int comment_column(const struct writer *w, yaml_token_type_t type, int from)
{
    bool ends = type == YAML_STREAM_END_TOKEN || type == YAML_DOCUMENT_END_TOKEN;
    bool is_entry = w->is_key || type == YAML_BLOCK_ENTRY_TOKEN || type == YAML_KEY_TOKEN || type == YAML_VALUE_TOKEN;
    size_t first = ends || w->n == 0 ? 0 : w->n - 1;
    int best = -1, to = 0;

    if (w->n_flows)
        return w->flows[w->n_flows - 1] + STEP;
    if (!ends && (!is_entry || w->n > w->n_before))
        return column_of(w, type);
    if (!ends) {
        best = w->levels[first].from;
        to = w->levels[first].to;
    }
    for (size_t i = first; i < w->n_before; i++)
        if (w->levels[i].from <= from && w->levels[i].from > best) {
            best = w->levels[i].from;
            to = w->levels[i].to;
        }
    if ((w->last == YAML_VALUE_TOKEN || w->last == YAML_BLOCK_ENTRY_TOKEN) && w->n_before &&
        from > w->levels[w->n_before - 1].from) /* where the value would stand that is not there */
        to = w->levels[w->n_before - 1].to + STEP;
    return to;
}

static bool begins_line(const struct writer *w, size_t start)
{
    return w->is_fresh || line_end((rv_str){w->text.ptr, start}, w->done) < start;
}

static bool is_spaced(const struct writer *w, yaml_token_type_t type)
{
    switch ((int)type) {
    case YAML_FLOW_SEQUENCE_END_TOKEN:
    case YAML_FLOW_MAPPING_END_TOKEN:
    case YAML_FLOW_ENTRY_TOKEN:
        return w->last == YAML_VALUE_TOKEN || w->last == YAML_KEY_TOKEN;
    case YAML_VALUE_TOKEN:
        return w->last == YAML_KEY_TOKEN;
    default:
        return w->last != YAML_FLOW_SEQUENCE_START_TOKEN && w->last != YAML_FLOW_MAPPING_START_TOKEN;
    }
}

/* The lines from `at` to the next piece, which begins at `start`: comments, each at its level, and of blank lines in a
 * row one. */
static void put_lines(struct writer *w, yaml_token_type_t type, size_t at, size_t start)
{
    bool skipped = false;

    while (at < start) {
        size_t from = skip_blanks(w->text, at);
        if (from >= start)
            break;
        bool is_comment = w->text.ptr[from] == '#';
        if (is_comment) {
            if (skipped && w->out->len)
                rv_buf_putc(w->out, '\n');
            put_blanks(w->out, comment_column(w, type, (int)(from - at)));
            from = put_comment(w, from);
            rv_buf_putc(w->out, '\n');
        }
        skipped = !is_comment;
        at = from + break_at(w->text, from);
        if (at == from)
            break; /* the end of the text */
    }
    if (skipped && w->out->len && type != YAML_STREAM_END_TOKEN)
        rv_buf_putc(w->out, '\n');
}

/* What stands before a piece that begins at `start`. */
static void put_gap(struct writer *w, yaml_token_type_t type, size_t start)
{
    size_t at = w->done;

    if (!begins_line(w, start) && type != YAML_STREAM_END_TOKEN) {
        if (w->last != YAML_NO_TOKEN && is_spaced(w, type))
            rv_buf_putc(w->out, ' ');
        return;
    }
    if (!w->is_fresh) {
        at = skip_blanks(w->text, at);
        if (at < start && w->text.ptr[at] == '#')
            at = put_trailing_comment(w, at);
        if (at < w->text.len || !w->ends_without_break)
            rv_buf_putc(w->out, '\n');
        at += break_at(w->text, at);
    }
    put_lines(w, type, at, start);
    if (type != YAML_STREAM_END_TOKEN) {
        w->flow_line = column_of(w, type);
        put_blanks(w->out, w->flow_line);
    }
}

/* --- pieces --- */

/* A plain or quoted scalar. The blanks at the start of its further lines say nothing. */
static void put_scalar(struct writer *w, yaml_scalar_style_t style, rv_str s)
{
    int column = w->n_flows ? w->flow_line + STEP : w->n ? inner_column(w) : STEP;

    for (size_t at = 0; at < s.len;) {
        size_t from = at ? skip_blanks(s, at) : 0, end = line_end(s, from);
        rv_str line = {s.ptr + from, end - from};
        if (style == YAML_PLAIN_SCALAR_STYLE)
            line = without_trailing_blanks(line);
        if (at && line.len)
            put_blanks(w->out, column);
        rv_buf_add_str(w->out, line);
        if (end < s.len)
            put_break(s, end, w->out);
        at = end + break_at(s, end);
    }
}

/* Columns that libyaml removes from each line of a block scalar. digit: of its header; 0: as its first line has it. */
static size_t block_indent(const struct writer *w, rv_str lines, int digit)
{
    size_t i = w->n;

    if (digit) {
        while (i > 0 && w->levels[i - 1].is_indentless)
            i--;
        return (size_t)digit + (i > 0 ? (size_t)w->levels[i - 1].from : 0);
    }
    for (size_t at = 0; at < lines.len; at = line_end(lines, at), at += break_at(lines, at)) {
        size_t n = 0;
        while (at + n < lines.len && lines.ptr[at + n] == ' ')
            n++;
        if (at + n < lines.len && break_at(lines, at + n) == 0)
            return n;
    }
    return SIZE_MAX; /* no line has a text */
}

/* The lines of a block scalar, moved with their level. Gives how many bytes of them are its value, and not blank lines
 * behind it. */
static size_t put_block_lines(struct writer *w, rv_str lines, size_t indent, int column, bool keeps)
{
    size_t end = 0; /* of the lines that are written */

    for (size_t at = 0; at < lines.len;) {
        size_t stop = line_end(lines, at), next = stop + break_at(lines, stop), n = 0;
        while (at + n < stop && n < indent && lines.ptr[at + n] == ' ')
            n++;
        bool is_empty = at + n == stop;
        if (!is_empty || keeps) {
            while (end < at) { /* blank lines between two lines of the value, or before the first */
                size_t blank = line_end(lines, end);
                put_break(lines, blank, w->out);
                end = blank + break_at(lines, blank);
            }
            if (!is_empty) {
                put_blanks(w->out, column);
                rv_buf_add_str(w->out, (rv_str){lines.ptr + at + n, stop - at - n});
            }
            if (next > stop)
                put_break(lines, stop, w->out);
            w->is_fresh = next > stop;
            end = next;
        }
        at = next;
    }
    return end;
}

static void put_block_scalar(struct writer *w, size_t start, size_t end)
{
    rv_str text = w->text;
    size_t at = start + 1;
    int digit = 0;
    char chomp = 0;

    for (; at < end && strchr("+-123456789", text.ptr[at]); at++) {
        if (rv_is_digit(text.ptr[at]))
            digit = text.ptr[at] - '0';
        else
            chomp = text.ptr[at];
    }
    rv_buf_add_str(w->out, (rv_str){text.ptr + start, at - start});
    at = skip_blanks(text, at);
    if (at < text.len && text.ptr[at] == '#')
        at = put_trailing_comment(w, at);
    w->done = at;
    if (break_at(text, at) == 0)
        return; /* the text ends */
    at += break_at(text, at);
    rv_buf_putc(w->out, '\n');

    rv_str lines = {text.ptr + at, end > at ? end - at : 0};
    int column = digit ? digit + (w->n ? w->levels[w->n - 1].to : 0) : w->n ? inner_column(w) : STEP;
    w->is_fresh = true;
    w->done = at + put_block_lines(w, lines, block_indent(w, lines, digit), column, chomp == '+');
    w->ends_without_break = !w->is_fresh && chomp != '-';
}

enum level_kind { MAPPING, LIST, INDENTLESS_LIST };

static void open_level(struct writer *w, const yaml_token_t *token, enum level_kind kind)
{
    size_t start = offset_of(w, &token->start_mark);

    if (w->n == MAX_LEVELS) {
        w->rc = RV_E_LIMIT;
        return;
    }
    int to =
        begins_line(w, start) || w->last == YAML_NO_TOKEN
            ? inner_column(w)
            : (int)(w->out->len - line_start(rv_buf_str(w->out), w->out->len)) + 1; /* "- ", "? " or ": " precede it */
    w->levels[w->n++] = (struct level){(int)token->start_mark.column, to, kind != MAPPING, kind == INDENTLESS_LIST};
}

static void close_indentless(struct writer *w)
{
    if (w->n_flows == 0 && w->n && w->levels[w->n - 1].is_indentless)
        w->n--;
}

static void open_flow(struct writer *w, bool begins)
{
    if (w->n_flows == 0 && !begins)
        w->flow_line = w->n == 0 ? 0 : w->levels[w->n - 1].to + (w->levels[w->n - 1].is_list ? STEP : 0);
    if (w->n_flows == MAX_LEVELS)
        w->rc = RV_E_LIMIT;
    else
        w->flows[w->n_flows++] = w->flow_line;
}

/* A token that is seen in the text. */
static void put_piece(struct writer *w, const yaml_token_t *token, size_t start, size_t end)
{
    yaml_token_type_t type = token->type;
    bool begins = begins_line(w, start);

    put_gap(w, type, start);
    w->done = end;
    w->is_fresh = false;
    if (type == YAML_FLOW_SEQUENCE_START_TOKEN || type == YAML_FLOW_MAPPING_START_TOKEN)
        open_flow(w, begins);
    else if ((type == YAML_FLOW_SEQUENCE_END_TOKEN || type == YAML_FLOW_MAPPING_END_TOKEN) && w->n_flows)
        w->n_flows--;
    if (type == YAML_SCALAR_TOKEN &&
        (token->data.scalar.style == YAML_LITERAL_SCALAR_STYLE || token->data.scalar.style == YAML_FOLDED_SCALAR_STYLE))
        put_block_scalar(w, start, end);
    else if (type == YAML_SCALAR_TOKEN)
        put_scalar(w, token->data.scalar.style, (rv_str){w->text.ptr + start, end - start});
    else
        rv_buf_add_str(w->out, (rv_str){w->text.ptr + start, end - start});
    w->last = type;
    w->n_before = w->n;
    w->is_key = false;
}

static void put_token(struct writer *w, const yaml_token_t *token)
{
    switch ((int)token->type) {
    case YAML_BLOCK_SEQUENCE_START_TOKEN:
    case YAML_BLOCK_MAPPING_START_TOKEN:
        open_level(w, token, token->type == YAML_BLOCK_SEQUENCE_START_TOKEN ? LIST : MAPPING);
        return;
    case YAML_BLOCK_END_TOKEN:
        close_indentless(w);
        w->n -= w->n > 0;
        return;
    case YAML_BLOCK_ENTRY_TOKEN:
        if (w->n_flows == 0 && (w->n == 0 || !w->levels[w->n - 1].is_list))
            open_level(w, token, INDENTLESS_LIST);
        break;
    case YAML_KEY_TOKEN:
    case YAML_VALUE_TOKEN:
        close_indentless(w);
        break;
    default:
        break;
    }
    size_t start = offset_of(w, &token->start_mark), end = offset_of(w, &token->end_mark);
    if (token->type == YAML_STREAM_END_TOKEN) {
        put_gap(w, token->type, w->text.len);
    } else if (end > start) {
        put_piece(w, token, start, end);
    } else if (token->type == YAML_KEY_TOKEN && w->n_flows == 0) {
        w->is_key = true;
    }
}

int lang_yaml_layout(rv_str text, rv_buf *out, rv_buf *comments)
{
    struct writer w = {.text = text, .out = out, .comments = comments, .is_fresh = true, .last = YAML_NO_TOKEN};
    bool ended = false;

    if (!yaml_parser_initialize(&w.parser))
        return RV_E_NOMEM;
    yaml_parser_set_encoding(&w.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&w.parser, (const unsigned char *)(text.len > 0 ? text.ptr : ""), text.len);
    while (!ended && w.rc == 0) {
        yaml_token_t token;
        if (!yaml_parser_scan(&w.parser, &token)) {
            w.rc = w.parser.error == YAML_MEMORY_ERROR ? RV_E_NOMEM : RV_E_INVALID;
            break;
        }
        ended = token.type == YAML_STREAM_END_TOKEN || token.type == YAML_NO_TOKEN;
        put_token(&w, &token);
        yaml_token_delete(&token);
        if (w.rc == 0)
            w.rc = out->rc ? out->rc : comments->rc;
    }
    yaml_parser_delete(&w.parser);
    return w.rc;
}
