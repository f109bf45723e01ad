/* Loggers and their lines. A line is built on the stack: logging allocates no memory and cannot fail when memory is
 * short. */
#include "coreengine/base/base_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LINE_MAX_BYTES  ((size_t)16 << 10) /* of a record as a line; longer values are cut */
#define BOUND_MAX_BYTES ((size_t)4 << 10)  /* of a logger's own fields: most of a line is left for the record */
#define TAIL_BYTES      64                 /* kept free for what closes a cut line */

struct rv_log {
    rv_log *root;             /* borrowed; self for the root */
    struct rv_log_opts opts;  /* root only, as is lock */
    pthread_mutex_t lock;     /* guards the sink: one line at a time; leaf */
    struct rv_log_sink *sink; /* root only; owned; NULL: lines are written to opts.fd, however long that takes */
    uint64_t n_lost;          /* records since the last one that was taken */
    char *bound;              /* owned; ready-made fields, each with its separator in front; may be NULL */
    size_t bound_len;
    bool is_cut; /* its fields, or those of a parent, exceeded their limit */
};

/* A line being built. Writes beyond the border are dropped and set is_cut. */
struct line {
    char *ptr;
    size_t len, max;
    enum rv_log_format format;
    bool is_cut;
};

static const char *const level_names[] = {[RV_LOG_TRACE] = "trace", [RV_LOG_DEBUG] = "debug", [RV_LOG_INFO] = "info",
                                          [RV_LOG_WARN] = "warn",   [RV_LOG_ERROR] = "error", [RV_LOG_OFF] = "off"};
RV_EACH_HAS_ROW(level_names, RV_LOG_OFF + 1);

static bool put(struct line *l, const char *bytes, size_t n)
{
    if (n > l->max - l->len) {
        l->is_cut = true;
        return false;
    }
    if (n)
        memcpy(l->ptr + l->len, bytes, n);
    l->len += n;
    return true;
}

static bool put_text(struct line *l, const char *text)
{
    return put(l, text, strlen(text));
}

/* The inside of a quoted string: escapes as in JSON, broken UTF-8 becomes U+FFFD. Stops at the border. */
static void put_escaped(void *self, rv_str s)
{
    struct line *l = self;
    size_t i = 0;

    while (i < s.len && !l->is_cut) {
        unsigned char c = (unsigned char)s.ptr[i];
        size_t run = base_json_plain_run(s.ptr + i, s.len - i);
        char hex[8];
        int step;
        if (run) {
            size_t fits = run < l->max - l->len ? run : l->max - l->len;
            put(l, s.ptr + i, fits);
            l->is_cut = fits < run;
            i += run;
        } else if (c >= 0x80) {
            step = base_utf8_next((const unsigned char *)s.ptr + i, s.len - i);
            if (rv_utf8_control(s.ptr + i, s.len - i)) {
                snprintf(hex, sizeof hex, "\\u%04x", (unsigned char)s.ptr[i + 1]);
                put_text(l, hex);
                i += 2;
                continue;
            }
            put(l, step > 0 ? s.ptr + i : "\xEF\xBF\xBD", step > 0 ? (size_t)step : 3);
            i += step > 0 ? (size_t)step : 1;
        } else {
            if (c == '"' || c == '\\')
                snprintf(hex, sizeof hex, "\\%c", c);
            else if (c == '\n')
                snprintf(hex, sizeof hex, "\\n");
            else
                snprintf(hex, sizeof hex, "\\u%04x", c);
            put_text(l, hex);
            i++;
        }
    }
}

static void put_quoted(struct line *l, rv_str s)
{
    l->max -= 1; /* the closing quote always fits */
    if (put(l, "\"", 1))
        put_escaped(l, s);
    l->max += 1;
    put(l, "\"", 1);
}

static bool is_bare_word(rv_str s)
{
    size_t i;

    for (i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= ' ' || c >= 0x7F || c == '"' || c == '=' || c == '\\')
            return false;
    }
    return s.len > 0;
}

bool rv_is_secret_name(rv_str name)
{
    static const char *const ends[] = {"api_key",    "apikey",      "api-key", "authorization", "token",
                                       "password",   "passwd",      "secret",  "passphrase",    "private_key",
                                       "credential", "credentials", "cookie"};

    for (size_t i = 0; i < RV_COUNT(ends); i++) {
        size_t n = strlen(ends[i]);
        if (name.len >= n && strncasecmp(name.ptr + name.len - n, ends[i], n) == 0)
            return true;
    }
    return false;
}

static void put_str_value(struct line *l, rv_str s)
{
    if (l->format == RV_LOG_TEXT && is_bare_word(s) && s.len <= l->max - l->len)
        put(l, s.ptr, s.len);
    else
        put_quoted(l, s);
}

static void put_err_value(struct line *l, const rv_err *err)
{
    if (!err) {
        put_text(l, l->format == RV_LOG_JSON ? "null" : "none");
        return;
    }
    l->max -= 1;
    if (put(l, "\"", 1))
        base_err_line(err, put_escaped, l);
    l->max += 1;
    put(l, "\"", 1);
}

static void put_value(struct line *l, const struct rv_field *f)
{
    char digits[RV_JSON_NUMBER_MAX];

    if (rv_is_secret_name(rv_str_of(f->key))) {
        put_str_value(l, RV_STR_LIT("[redacted]"));
        return;
    }
    switch (f->kind) {
    case RV_FIELD_STR:
        put_str_value(l, f->str);
        return;
    case RV_FIELD_I64:
        put(l, digits, base_json_int_write(f->i64 < 0, f->i64 < 0 ? 0 - (uint64_t)f->i64 : (uint64_t)f->i64, digits));
        return;
    case RV_FIELD_BOOL:
        put_text(l, f->i64 ? "true" : "false");
        return;
    case RV_FIELD_ERR:
        put_err_value(l, f->err);
        return;
    }
}

/* One field with its separator. A field whose text is NULL is left out, as is a field whose key and
 * a short value do not fit. */
static void put_field(struct line *l, const struct rv_field *f)
{
    size_t need = strlen(f->key) + TAIL_BYTES;

    if (f->kind == RV_FIELD_STR && !f->str.ptr)
        return;
    if (l->is_cut || need > l->max - l->len) {
        l->is_cut = true;
        return;
    }
    put_text(l, l->format == RV_LOG_JSON ? ",\"" : " ");
    put_text(l, f->key);
    put_text(l, l->format == RV_LOG_JSON ? "\":" : "=");
    put_value(l, f);
}

/* --- loggers --- */

rv_log *rv_log_new(const struct rv_log_opts *opts)
{
    rv_log *log = calloc(1, sizeof *log);

    if (!log)
        return NULL;
    log->root = log;
    log->opts = *opts;
    if (!log->opts.clock.now_us)
        log->opts.clock = rv_clock_system();
    if (pthread_mutex_init(&log->lock, NULL) != 0) {
        free(log);
        return NULL;
    }
    return log;
}

rv_log *rv_log_bind(rv_log *parent, const struct rv_field *fields, size_t n)
{
    char text[BOUND_MAX_BYTES];
    struct line l = {.ptr = text, .max = sizeof text};
    rv_log *log;
    size_t i;

    if (!parent)
        return NULL;
    l.format = parent->root->opts.format;
    if (parent->bound)
        put(&l, parent->bound, parent->bound_len);
    for (i = 0; i < n; i++)
        put_field(&l, &fields[i]);
    log = calloc(1, sizeof *log);
    if (!log)
        return NULL;
    log->root = parent->root;
    log->bound = rv_str_dup((rv_str){text, l.len});
    log->bound_len = l.len;
    log->is_cut = parent->is_cut || l.is_cut;
    if (!log->bound) {
        free(log);
        return NULL;
    }
    return log;
}

void rv_log_free(rv_log *log)
{
    if (!log)
        return;
    if (log->root == log) {
        base_log_sink_free(log->sink);
        pthread_mutex_destroy(&log->lock);
    }
    free(log->bound);
    free(log);
}

int rv_log_never_wait(rv_log *log, rv_err **err)
{
    if (!log || log->sink || log->opts.line)
        return 0;
    log->sink = base_log_sink_new(log->opts.fd);
    return log->sink ? 0 : RV_FAIL(err, RV_E_NOMEM, "open the log");
}

void rv_log_set_level(rv_log *log, enum rv_log_level level)
{
    if (log)
        log->root->opts.level = level;
}

bool rv_log_is_on(const rv_log *log, enum rv_log_level level)
{
    return log && level >= log->root->opts.level && level < RV_LOG_OFF;
}

int64_t rv_log_now_us(const rv_log *log)
{
    return log->root->opts.clock.now_us(log->root->opts.clock.self);
}

/* --- records --- */

static void put_head_text(struct line *l, const struct rv_log_opts *opts, enum rv_log_level level, const char *event)
{
    /* Only those of records: none has the level "off". */
    static const char *const colors[RV_LOG_OFF] = {[RV_LOG_TRACE] = "\x1b[2m",
                                                   [RV_LOG_DEBUG] = "\x1b[36m",
                                                   [RV_LOG_INFO] = "\x1b[32m",
                                                   [RV_LOG_WARN] = "\x1b[33m",
                                                   [RV_LOG_ERROR] = "\x1b[31m"};
    /* Only those of records, padded to five characters. */
    static const char *const names[RV_LOG_OFF] = {[RV_LOG_TRACE] = "TRACE",
                                                  [RV_LOG_DEBUG] = "DEBUG",
                                                  [RV_LOG_INFO] = "INFO ",
                                                  [RV_LOG_WARN] = "WARN ",
                                                  [RV_LOG_ERROR] = "ERROR"};
    char time[RV_TIME_MAX];

    rv_time_format(opts->clock.now_us(opts->clock.self), time);
    put(l, time + 11, 12); /* hh:mm:ss.mmm */
    put(l, " ", 1);
    if (opts->color)
        put_text(l, colors[level]);
    put(l, names[level], 5);
    if (opts->color)
        put_text(l, "\x1b[0m");
    put(l, " ", 1);
    put_text(l, event);
}

static void put_head_json(struct line *l, const struct rv_log_opts *opts, enum rv_log_level level, const char *event)
{
    char time[RV_TIME_MAX];

    rv_time_format(opts->clock.now_us(opts->clock.self), time);
    put_text(l, "{\"time\":\"");
    put_text(l, time);
    put_text(l, "\",\"level\":\"");
    put_text(l, level_names[level]);
    put_text(l, "\",\"event\":\"");
    put_text(l, event);
    put_text(l, "\"");
}

/* False: the line is lost, or its end is. A reader that is gone misses nothing. */
static bool write_all(int fd, rv_str line)
{
    while (line.len) { /* a pipe may take a part */
        ssize_t n = write(fd, line.ptr, line.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && errno == EPIPE;
        line.ptr += n;
        line.len -= (size_t)n;
    }
    return true;
}

/* A record as a line; text has room for LINE_MAX_BYTES. */
static rv_str format(const rv_log *log, enum rv_log_level level, const char *event, const struct rv_field *fields,
                     size_t n, char *text)
{
    const struct rv_log_opts *opts = &log->root->opts;
    struct line l = {.ptr = text, .max = LINE_MAX_BYTES - TAIL_BYTES, .format = opts->format};

    if (l.format == RV_LOG_JSON)
        put_head_json(&l, opts, level, event);
    else
        put_head_text(&l, opts, level, event);
    if (log->bound)
        put(&l, log->bound, log->bound_len);
    for (size_t i = 0; i < n; i++)
        put_field(&l, &fields[i]);
    l.max = LINE_MAX_BYTES;
    l.is_cut |= log->is_cut;
    if (l.format == RV_LOG_JSON)
        put_text(&l, l.is_cut ? ",\"cut\":true}\n" : "}\n");
    else
        put_text(&l, l.is_cut ? " cut=true\n" : "\n");
    return (rv_str){text, l.len};
}

static bool take(rv_log *root, rv_str line)
{
    return root->sink ? base_log_sink_put(root->sink, line) : write_all(root->opts.fd, line);
}

/* What was lost is said before the first line that finds room. */
static bool say_lost(rv_log *root)
{
    char text[LINE_MAX_BYTES];
    const struct rv_field field = RV_F_I64("records", root->n_lost);

    if (root->n_lost && !take(root, format(root, RV_LOG_WARN, "log.lost", &field, 1, text)))
        return false;
    root->n_lost = 0;
    return true;
}

static void hand_over(rv_log *root, enum rv_log_level level, rv_str line)
{
    pthread_mutex_lock(&root->lock);
    if (root->opts.line) {
        line.len--; /* callbacks get it without the line feed */
        root->opts.line(root->opts.line_self, level, line);
    } else if (!say_lost(root) || !take(root, line)) {
        root->n_lost++;
    }
    pthread_mutex_unlock(&root->lock);
}

void rv_log_write(rv_log *log, enum rv_log_level level, const char *event, const struct rv_field *fields, size_t n)
{
    char text[LINE_MAX_BYTES];

    if (rv_log_is_on(log, level))
        hand_over(log->root, level, format(log, level, event, fields, n, text));
}

int rv_log_level_of(rv_str word, enum rv_log_level *out, rv_err **err)
{
    size_t i;

    for (i = 0; i < RV_COUNT(level_names); i++) {
        if (rv_str_is(word, level_names[i])) {
            *out = (enum rv_log_level)i;
            return 0;
        }
    }
    RV_FAIL(err, RV_E_INVALID, "unknown log level \"%.*s\"", RV_STR_ARG(word));
    rv_err_set_hint(err, "levels: trace, debug, info, warn, error, off");
    return RV_E_INVALID;
}
