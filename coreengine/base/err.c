/* Error chains: making, wrapping, reading, printing.
 *
 * One block per link holds the link, its text and its file name, so that a link is made wholly or not at all. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base_internal.h"
#include "coreengine/base/number.h"

static const char *const code_texts[] = {
#define X(name, text, meaning) [RV_CODE_##name] = (text),
    RV_CODES(X)
#undef X
};

/* Stands in for any error that cannot be allocated. Never freed, never changed. */
static rv_err oom = {.code = RV_E_NOMEM, .n_links = 1, .c_line = __LINE__, .c_file = __FILE__, .text = "out of memory"};

const char *rv_code_text(int code)
{
    if (code == 0)
        return "ok";
    if (code > -1 || code < -(int)RV_COUNT(code_texts))
        code = RV_E_INTERNAL;
    return code_texts[-1 - code];
}

bool rv_code_is_scarce(int code)
{
    return code == RV_E_DISK || code == RV_E_FILES || code == RV_E_THREADS;
}

/* --- Refusals of the system --- */

struct refusal {
    int number, code;
    const char *hint; /* NULL: none */
};

static const struct refusal refusals[] = {
    {ENOMEM, RV_E_NOMEM, NULL},
    {ENOSPC, RV_E_DISK, "make room on the disk; what was written before is not lost"},
    {EDQUOT, RV_E_DISK, "make room on the disk or raise its quota; what was written before is not lost"},
    {EFBIG, RV_E_DISK, "raise the largest size of a file, `ulimit -f`; what was written before is not lost"},
    {EMFILE, RV_E_FILES, "raise `ulimit -n`, the largest number of open files of a process"},
    {ENFILE, RV_E_FILES, "raise fs.file-max, the largest number of open files of the system"},
    {EACCES, RV_E_DENIED, NULL},
    {EPERM, RV_E_DENIED, NULL},
    {EROFS, RV_E_DENIED, NULL},
    {ENOENT, RV_E_NOT_FOUND, NULL},
    {ENOTDIR, RV_E_NOT_FOUND, NULL},
    {EEXIST, RV_E_EXISTS, NULL},
};
static const struct refusal other_refusal = {0, RV_E_IO, NULL};
/* EAGAIN of anything else says that nothing is there yet. */
static const struct refusal no_start = {
    EAGAIN, RV_E_THREADS, "raise `ulimit -u` or pids.max of its group of processes, or give it more memory for stacks"};

static const struct refusal *refusal_of(int number)
{
    number = number < 0 ? -number : number;
    for (size_t i = 0; i < RV_COUNT(refusals); i++)
        if (refusals[i].number == number)
            return &refusals[i];
    return &other_refusal;
}

int rv_code_of_system(int number)
{
    return refusal_of(number)->code;
}

/* Format into out (RV_ERR_MAX_TEXT + 1 bytes). Quoted user bytes may be anything: the result is valid UTF-8. */
static RV_PRINTF(2, 0) size_t format_text(char *out, const char *fmt, va_list ap)
{
    size_t len, i = 0;
    int n = rv_vformat(out, RV_ERR_MAX_TEXT + 1, fmt, ap);

    if (n < 0) {
        out[0] = '\0';
        return 0;
    }
    len = (size_t)n > RV_ERR_MAX_TEXT ? RV_ERR_MAX_TEXT : (size_t)n;
    len = rv_utf8_cut((rv_str){out, len}, len).len;
    while (i < len) {
        int step = base_utf8_next((const unsigned char *)out + i, len - i);
        if (step <= 0) {
            out[i] = '?';
            step = 1;
        }
        i += (size_t)step;
    }
    out[len] = '\0';
    return len;
}

struct link_place {
    const char *c_file; /* static */
    int c_line;
    const struct rv_src *src; /* borrowed; NULL: none */
};

static RV_PRINTF(4, 0) int push_link(rv_err **err, int code, struct link_place at, const char *fmt, va_list ap)
{
    const struct rv_src *src = at.src;
    char text[RV_ERR_MAX_TEXT + 1];
    size_t len, file_size = 0;
    rv_err *link;

    if (!err)
        return code;
    if (*err && (*err)->n_links >= RV_ERR_MAX_LINKS)
        return code;
    len = format_text(text, fmt, ap);
    if (src && src->file)
        file_size = strlen(src->file) + 1;
    link = malloc(sizeof *link + len + 1 + file_size);
    if (!link) {
        if (!*err)
            *err = &oom;
        else if (*err != &oom) /* a chain that exists says more than "out of memory" */
            (*err)->lost_link = true;
        return code;
    }
    *link = (rv_err){.code = code, .n_links = *err ? (*err)->n_links + 1 : 1, .c_file = at.c_file, .c_line = at.c_line};
    memcpy(link->text, text, len + 1);
    if (file_size)
        link->file = memcpy(link->text + len + 1, src->file, file_size);
    if (src) {
        link->line = src->line;
        link->col = src->col;
    }
    link->cause = *err;
    *err = link;
    return code;
}

int rv_err_add_at(rv_err **err, int code, const char *c_file, int c_line, const struct rv_src *src, const char *fmt,
                  ...)
{
    va_list ap;

    va_start(ap, fmt);
    code = push_link(err, code, (struct link_place){c_file, c_line, src}, fmt, ap);
    va_end(ap);
    return code;
}

static int fail_system(rv_err **err, int number, const struct refusal *why, const char *c_file, int c_line,
                       const char *text)
{
    char reason[128];
    int rc = rv_err_add_at(err, why->code, c_file, c_line, NULL, "%s: %s", text,
                           strerror_r(number < 0 ? -number : number, reason, sizeof reason));

    if (why->hint)
        rv_err_set_hint(err, "%s", why->hint);
    return rc;
}

int rv_err_add_system_at(rv_err **err, int number, const char *c_file, int c_line, const char *fmt, ...)
{
    char text[RV_ERR_MAX_TEXT + 1];
    va_list ap;

    va_start(ap, fmt);
    format_text(text, fmt, ap);
    va_end(ap);
    return fail_system(err, number, refusal_of(number), c_file, c_line, text);
}

int rv_err_start_at(rv_err **err, int number, const char *c_file, int c_line, const char *fmt, ...)
{
    char text[RV_ERR_MAX_TEXT + 1];
    va_list ap;

    va_start(ap, fmt);
    format_text(text, fmt, ap);
    va_end(ap);
    bool is_again = number == EAGAIN || number == -EAGAIN;
    return fail_system(err, number, is_again ? &no_start : refusal_of(number), c_file, c_line, text);
}

void rv_err_set_hint(rv_err **err, const char *fmt, ...)
{
    char text[RV_ERR_MAX_TEXT + 1];
    char *copy;
    size_t len;
    va_list ap;

    if (!err || !*err || *err == &oom)
        return;
    va_start(ap, fmt);
    len = format_text(text, fmt, ap);
    va_end(ap);
    copy = rv_str_dup((rv_str){text, len});
    if (!copy) /* the error itself matters more than the advice */
        return;
    free((*err)->hint);
    (*err)->hint = copy;
}

void rv_err_add_causes(rv_err **err, rv_err *causes)
{
    rv_err *last = err ? *err : NULL;

    if (!causes || !last || last == &oom || causes == &oom || last->n_links + causes->n_links > RV_ERR_MAX_LINKS) {
        rv_err_free(causes);
        return;
    }
    for (;; last = last->cause) {
        last->n_links += causes->n_links;
        if (!last->cause)
            break;
    }
    last->cause = causes;
}

void rv_err_replace_last(rv_err **err, rv_err *chain)
{
    rv_err *first = err ? *err : NULL;
    rv_err **at = err;

    if (!chain || !first || first == &oom || chain == &oom || first->n_links - 1 + chain->n_links > RV_ERR_MAX_LINKS) {
        rv_err_free(chain);
        return;
    }
    for (; (*at)->cause; at = &(*at)->cause)
        (*at)->n_links += chain->n_links - 1;
    rv_err_free(*at);
    *at = chain;
}

int rv_err_pass(rv_err **err, rv_err *cause)
{
    int code = rv_err_code(cause);

    assert(!(err && *err));
    if (err)
        *err = cause;
    else
        rv_err_free(cause);
    return code;
}

rv_err *rv_err_steal(rv_err **err)
{
    rv_err *own = err ? *err : NULL;

    if (own)
        *err = NULL;
    return own;
}

void rv_err_free(rv_err *err)
{
    while (err && err != &oom) {
        rv_err *cause = err->cause;
        free(err->hint);
        free(err);
        err = cause;
    }
}

int rv_err_code(const rv_err *err)
{
    return err ? err->code : 0;
}

const char *rv_err_text(const rv_err *err)
{
    return err ? err->text : "";
}

const char *rv_err_hint_text(const rv_err *err)
{
    return err ? err->hint : NULL;
}

struct rv_src rv_err_src(const rv_err *err)
{
    return err ? (struct rv_src){err->file, err->line, err->col} : (struct rv_src){NULL, 0, 0};
}

const rv_err *rv_err_cause(const rv_err *err)
{
    return err ? err->cause : NULL;
}

const char *rv_err_made_at(const rv_err *err, int *line)
{
    *line = err ? err->c_line : 0;
    return err ? err->c_file : "";
}

bool rv_err_is(const rv_err *err, int code)
{
    for (; err; err = err->cause)
        if (err->code == code || (code == RV_E_NOMEM && err->lost_link))
            return true;
    return false;
}

/* --- For people and for machines --- */

/* The innermost link that knows a place has the most exact one. */
static const rv_err *placed_link(const rv_err *err)
{
    const rv_err *found = NULL;

    for (; err; err = err->cause)
        if (err->file || err->line > 0)
            found = err;
    return found;
}

#define PLACE_MAX 48 /* ":line:col" */

static void place_numbers(const rv_err *err, char out[PLACE_MAX])
{
    out[0] = '\0';
    if (err->line > 0 && err->col > 0)
        snprintf(out, PLACE_MAX, ":%d:%d", err->line, err->col);
    else if (err->line > 0)
        snprintf(out, PLACE_MAX, ":%d", err->line);
}

static const char *place_file(const rv_err *err)
{
    return err->file ? err->file : "<text>";
}

void base_err_line(const rv_err *err, void (*put)(void *self, rv_str piece), void *self)
{
    const rv_err *link, *placed = placed_link(err);
    char numbers[PLACE_MAX];

    if (!err)
        return;
    for (link = err; link; link = link->cause) {
        put(self, rv_str_of(link->text));
        if (link->cause)
            put(self, RV_STR_LIT(": "));
    }
    put(self, RV_STR_LIT("  ["));
    put(self, rv_str_of(rv_code_text(err->code)));
    put(self, RV_STR_LIT("]"));
    if (!placed)
        return;
    place_numbers(placed, numbers);
    put(self, RV_STR_LIT("  ("));
    put(self, rv_str_of(place_file(placed)));
    put(self, rv_str_of(numbers));
    put(self, RV_STR_LIT(")"));
}

/* Quoted user bytes must not steer a terminal: controls are written as \xNN, and characters that reorder text as
 * \uNNNN. `keep` is a control that may pass. */
static void put_visible(rv_buf *b, rv_str s, char keep)
{
    size_t i, from = 0;

    for (i = 0; i < s.len; i++) {
        size_t n = rv_utf8_control(s.ptr + i, s.len - i);
        bool reorders = n == 0 && rv_utf8_reorders(s.ptr + i, s.len - i);
        if ((n == 0 && !reorders) || (keep && s.ptr[i] == keep))
            continue;
        rv_buf_add(b, s.ptr + from, i - from);
        i += reorders ? 2 : n - 1;
        unsigned last = (unsigned char)s.ptr[i];
        if (reorders)
            rv_buf_printf(b, "\\u20%02x", ((unsigned char)s.ptr[i - 1] & 3U) << 6 | (last & 63U));
        else
            rv_buf_printf(b, "\\x%02x", last); /* of C1 the last byte is the code point */
        from = i + 1;
    }
    rv_buf_add(b, s.ptr + from, s.len - from);
}

static void put_in_buf(void *self, rv_str piece)
{
    put_visible(self, piece, '\n');
}

static void write_hint(const rv_err *link, const char *indent, rv_buf *b)
{
    if (!link->hint)
        return;
    rv_buf_printf(b, "%shint: ", indent);
    put_visible(b, rv_str_of(link->hint), '\n');
    rv_buf_putc(b, '\n');
}

static void write_debug(const rv_err *err, rv_buf *b)
{
    const rv_err *link;
    char numbers[PLACE_MAX];

    for (link = err; link; link = link->cause) {
        if (link != err)
            rv_buf_puts(b, "  by: ");
        put_visible(b, rv_str_of(link->text), '\n');
        rv_buf_printf(b, "  [%s]", rv_code_text(link->code));
        if (link->file || link->line > 0) {
            place_numbers(link, numbers);
            rv_buf_puts(b, "  (");
            put_visible(b, rv_str_of(place_file(link)), '\0');
            rv_buf_printf(b, "%s)", numbers);
        }
        rv_buf_printf(b, "  at %s:%d\n", link->c_file, link->c_line);
        write_hint(link, link == err ? "  " : "      ", b);
    }
}

void rv_err_write_text(const rv_err *err, bool debug, rv_buf *b)
{
    const rv_err *link;

    if (!err)
        return;
    if (debug) {
        write_debug(err, b);
        return;
    }
    base_err_line(err, put_in_buf, b);
    rv_buf_putc(b, '\n');
    for (link = err; link; link = link->cause)
        write_hint(link, "  ", b);
}

static void write_place(const rv_err *link, rv_jw *w)
{
    rv_str file = rv_str_of(place_file(link));

    rv_jw_key(w, "place");
    rv_jw_obj(w);
    rv_jw_kv_str(w, "file", rv_utf8_valid(file, NULL) ? file : RV_STR_LIT("<not UTF-8>"));
    if (link->line > 0)
        rv_jw_kv_int(w, "line", link->line);
    if (link->col > 0)
        rv_jw_kv_int(w, "col", link->col);
    rv_jw_obj_end(w);
}

static void write_head(const rv_err *link, rv_jw *w, rv_str message)
{
    rv_jw_kv_text(w, "code", rv_code_text(link->code));
    rv_jw_kv_str(w, "message", message);
}

void rv_err_write_json(const rv_err *err, rv_jw *w)
{
    rv_buf joined = RV_BUF_INIT((size_t)RV_ERR_MAX_LINKS * (RV_ERR_MAX_TEXT + 2));
    const rv_err *link, *placed = placed_link(err);

    if (!err) {
        rv_jw_null(w);
        return;
    }
    rv_err_write_chain(err, &joined);
    rv_jw_obj(w);
    write_head(err, w, joined.rc ? rv_str_of(err->text) : rv_buf_str(&joined));
    rv_buf_fini(&joined);
    if (placed)
        write_place(placed, w);
    for (link = err; link; link = link->cause) {
        if (link->hint) {
            rv_jw_kv_text(w, "hint", link->hint);
            break;
        }
    }
    rv_jw_key(w, "causes");
    rv_jw_arr(w);
    for (link = err->cause; link; link = link->cause) {
        rv_jw_obj(w);
        write_head(link, w, rv_str_of(link->text));
        if (link->file || link->line > 0)
            write_place(link, w);
        if (link->hint)
            rv_jw_kv_text(w, "hint", link->hint);
        rv_jw_obj_end(w);
    }
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

void rv_err_write_chain(const rv_err *err, rv_buf *out)
{
    for (const rv_err *link = err; link; link = link->cause) {
        rv_buf_puts(out, link == err ? "" : ": ");
        rv_buf_puts(out, link->text);
    }
}
