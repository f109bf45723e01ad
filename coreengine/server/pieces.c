/* The events of a run with the pieces of its model calls between them, made from the journal and the lines of the run's
 * stream (coreengine/app/streams.h): the same lines give the same bytes in any process. An event has its number as id;
 * the second piece behind the event 17 has the id 17.2. A client that comes back with one is sent what follows it. */
#include "coreengine/server/pieces_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct piece_event {
    int64_t seq;
    char *line; /* owned */
    size_t len;
};
struct srv_pieces {
    struct srv_piece_cursor from;
    bool is_lines;              /* JSON, one a line; a piece has its id as its first member, "cursor" */
    struct piece_event *events; /* that were not told yet, in order; owned */
    size_t n_events, cap_events, at_event;
    int64_t told, known; /* numbers of events: told last, known last */
    int64_t n_pieces;    /* since the last event */
    int64_t line;        /* that was read last */
    bool has_piece;      /* since the process began that writes the lines */
};

bool srv_piece_cursor_read(rv_str text, struct srv_piece_cursor *out)
{
    int64_t parts[2] = {0, 0};
    size_t n = 0, digits = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (rv_is_digit(c) && parts[n] < INT64_MAX / 100) {
            parts[n] = parts[n] * 10 + (c - '0');
            digits++;
        } else if (c == '.' && n == 0 && digits > 0) {
            n++;
            digits = 0;
        } else {
            return false;
        }
    }
    *out = (struct srv_piece_cursor){.seq = parts[0], .piece = parts[1]};
    return digits > 0;
}

struct srv_pieces *srv_pieces_new(const struct srv_piece_cursor *from, bool is_lines)
{
    struct srv_pieces *p = calloc(1, sizeof *p);

    if (p) {
        p->from = *from;
        p->is_lines = is_lines;
    }
    return p;
}

void srv_pieces_free(struct srv_pieces *p)
{
    if (!p)
        return;
    for (size_t i = p->at_event; i < p->n_events; i++)
        free(p->events[i].line);
    free(p->events);
    free(p);
}

int srv_pieces_event(struct srv_pieces *p, int64_t seq, rv_str line, rv_err **err)
{
    if (seq <= p->known)
        return 0;
    if (p->at_event == p->n_events)
        p->at_event = p->n_events = 0;
    char *copy = rv_has_room(&p->events, &p->cap_events, p->n_events + 1, sizeof *p->events) ? rv_str_dup(line) : NULL;
    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "follow a run");
    p->events[p->n_events++] = (struct piece_event){seq, copy, line.len};
    p->known = seq;
    return 0;
}

static void put_event(const struct srv_pieces *p, const struct piece_event *e, rv_buf *out)
{
    if (!p->is_lines)
        rv_buf_puts(out, "data: ");
    rv_buf_add(out, e->line, e->len);
    if (!p->is_lines)
        rv_buf_printf(out, "\nid: %" PRId64 "\n", e->seq);
    rv_buf_putc(out, '\n');
}

static void tell_events(struct srv_pieces *p, int64_t upto, rv_buf *out)
{
    while (p->at_event < p->n_events && p->events[p->at_event].seq <= upto) {
        struct piece_event *e = &p->events[p->at_event++];
        if (e->seq > p->from.seq)
            put_event(p, e, out);
        p->told = e->seq;
        p->n_pieces = 0;
        free(e->line);
    }
}

static void tell_piece(struct srv_pieces *p, rv_str json, rv_buf *out)
{
    p->n_pieces++;
    if (json.len <= 2 || p->told < p->from.seq || (p->told == p->from.seq && p->n_pieces <= p->from.piece))
        return;
    if (p->is_lines) {
        rv_buf_printf(out, "{\"cursor\":\"%" PRId64 ".%" PRId64 "\",", p->told, p->n_pieces);
        rv_buf_add(out, json.ptr + 1, json.len - 1);
    } else {
        rv_buf_puts(out, "data: ");
        rv_buf_add_str(out, json);
        rv_buf_printf(out, "\nid: %" PRId64 ".%" PRId64 "\n", p->told, p->n_pieces);
    }
    rv_buf_putc(out, '\n');
}

static int64_t read_number(rv_str text)
{
    int64_t n = 0;

    for (size_t i = 0; i < text.len && rv_is_digit(text.ptr[i]) && n < INT64_MAX / 100; i++)
        n = n * 10 + (text.ptr[i] - '0');
    return n;
}

/* False: an event is needed that is not known yet. */
static bool read_line(struct srv_pieces *p, rv_str line, rv_buf *out)
{
    static const rv_str again = RV_STR_LIT("again ");
    bool is_again = line.len > again.len && memcmp(line.ptr, again.ptr, again.len) == 0;

    if (line.len > 0 && line.ptr[0] == '{') {
        p->has_piece = true;
        tell_piece(p, line, out);
        return true;
    }
    int64_t seq = read_number(is_again ? (rv_str){line.ptr + again.len, line.len - again.len} : line);
    if (seq > p->known)
        return false;
    tell_events(p, seq, out);
    if (is_again && p->has_piece) {
        tell_piece(p, RV_STR_LIT("{\"type\":\"deltas_void\"}"), out);
        p->has_piece = false;
    }
    return true;
}

int srv_pieces_lines(struct srv_pieces *p, const struct rv_stream_part *part, rv_buf *out, rv_err **err)
{
    rv_str rest = part->lines;
    bool is_known = true;

    for (int64_t number = part->first; rest.len > 0; number++) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        if (number > p->line) {
            is_known = read_line(p, (rv_str){rest.ptr, len}, out);
            if (!is_known)
                break;
            p->line = number;
        }
        rest = end ? (rv_str){end + 1, rest.len - len - 1} : (rv_str){NULL, 0};
    }
    int rc = rv_buf_check(out, "events of a run", err);
    return rc < 0 ? rc : !is_known;
}

int srv_pieces_flush(struct srv_pieces *p, rv_buf *out, rv_err **err)
{
    tell_events(p, INT64_MAX, out);
    return rv_buf_check(out, "events of a run", err);
}
