/* Structured log: constant event names, typed fields, levels, bound context, redaction.
 *
 * Loggers form a tree; a child adds fields to every line below it. The sink writes one line per record to a file
 * descriptor (text for people, JSON for machines), or hands it to a callback (tests, other hosts). Keys that name a
 * secret (api_key, authorization, token, password, secret, or a suffix of that kind) are written as "[redacted]". */
#ifndef RV_BASE_LOG_H
#define RV_BASE_LOG_H

#include "coreengine/base/clock.h"

enum rv_log_level { RV_LOG_TRACE, RV_LOG_DEBUG, RV_LOG_INFO, RV_LOG_WARN, RV_LOG_ERROR, RV_LOG_OFF };
enum rv_log_format { RV_LOG_TEXT, RV_LOG_JSON };

enum rv_field_kind { RV_FIELD_STR, RV_FIELD_I64, RV_FIELD_BOOL, RV_FIELD_ERR };
/* What it points to is borrowed for the call. */
struct rv_field {
    const char *key;
    enum rv_field_kind kind;
    rv_str str;
    int64_t i64;
    const rv_err *err;
};
#define RV_F_TEXT(k, v) ((struct rv_field){(k), RV_FIELD_STR, rv_str_of(v), 0, NULL})
#define RV_F_STR(k, v)  ((struct rv_field){(k), RV_FIELD_STR, (v), 0, NULL})
#define RV_F_I64(k, v)  ((struct rv_field){(k), RV_FIELD_I64, {NULL, 0}, (int64_t)(v), NULL})
#define RV_F_BOOL(k, v) ((struct rv_field){(k), RV_FIELD_BOOL, {NULL, 0}, (v) ? 1 : 0, NULL})
#define RV_F_ERR(k, v)  ((struct rv_field){(k), RV_FIELD_ERR, {NULL, 0}, 0, (v)})

typedef struct rv_log rv_log;

struct rv_log_opts {
    enum rv_log_level level; /* records below it cost one comparison */
    enum rv_log_format format;
    int fd;                /* written with one write(2) a line; ignored when `line` is set */
    bool color;            /* text format only */
    struct rv_clock clock; /* zeroed: system clock */
    void (*line)(void *self, enum rv_log_level level, rv_str line); /* optional */
    void *line_self;                                                /* borrowed */
};
/** The root. NULL on out of memory; every function here accepts a NULL logger and does nothing. */
rv_log *rv_log_new(const struct rv_log_opts *opts);
/** Tells whether a value of that name must not be shown: the name ends in password, token, api_key or the like. */
bool rv_is_secret_name(rv_str name);
/** A child that writes fields (copied) on each line. The parent must outlive it. */
rv_log *rv_log_bind(rv_log *parent, const struct rv_field *fields, size_t n);
void rv_log_free(rv_log *log);
/** From now on no record waits for the reader of a pipe, terminal or socket: 256 KiB are kept for it, then records are
 * lost, and the next one that finds room comes after `log.lost` with their number. For processes that serve others. Of
 * a root; not while other threads log. RV_E_NOMEM. */
RV_MUST_CHECK int rv_log_never_wait(rv_log *log, rv_err **err);
/** Set it from now on, for the root and its children. Not while other threads log. */
void rv_log_set_level(rv_log *log, enum rv_log_level level);
bool rv_log_is_on(const rv_log *log, enum rv_log_level level);
int64_t rv_log_now_us(const rv_log *log); /* the time that its records get */
/** One record. event is constant, "noun.verb". Thread-safe. Lines are capped at 16 KiB (values cut at UTF-8 borders).
 */
void rv_log_write(rv_log *log, enum rv_log_level level, const char *event, const struct rv_field *fields, size_t n);
#define RV_LOG(log, lvl, event, ...)                                                                                   \
    do {                                                                                                               \
        if (rv_log_is_on((log), RV_LOG_##lvl)) {                                                                       \
            const struct rv_field rv_fields_[] = {__VA_ARGS__};                                                        \
            rv_log_write((log), RV_LOG_##lvl, (event), rv_fields_, RV_COUNT(rv_fields_));                              \
        }                                                                                                              \
    } while (0)
/** "trace" .. "error", "off"; RV_E_INVALID otherwise. */
RV_MUST_CHECK int rv_log_level_of(rv_str word, enum rv_log_level *out, rv_err **err);

#endif
