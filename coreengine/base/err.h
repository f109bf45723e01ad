/* Error values: code, text, place, hint and cause chain, passed up by the caller's pointer.
 *
 * Every function that can fail returns 0 or a negative rv_code and ends with `rv_err **err`. The caller starts it
 * at NULL, or passes RV_CODE_ONLY() when only the code matters. An error is created where the fact is known, wrapped
 * where context is known, and reported once. Reporting never needs memory it cannot do without: when the error itself
 * cannot be allocated, a static out-of-memory error takes its place. */
#ifndef RV_BASE_ERR_H
#define RV_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* One list: constant, wire text, meaning. */
#define RV_CODES(X)                                                                                                    \
    X(NOMEM, "no_memory", "an allocation failed")                                                                      \
    X(INVALID, "invalid_argument", "the input breaks a rule")                                                          \
    X(PARSE, "parse_error", "the text does not follow its grammar")                                                    \
    X(LIMIT, "resource_exhausted", "a size, depth, count or budget limit was reached")                                 \
    X(NOT_FOUND, "not_found", "a named thing does not exist")                                                          \
    X(EXISTS, "already_exists", "a name is taken")                                                                     \
    X(STATE, "failed_precondition", "the call does not fit the present state")                                         \
    X(DENIED, "permission_denied", "access or policy forbids it")                                                      \
    X(TIMEOUT, "timeout", "the deadline passed")                                                                       \
    X(CANCELLED, "cancelled", "the caller asked to stop")                                                              \
    X(IO, "io_error", "a read, write or open failed, or what was read is damaged")                                     \
    X(PROVIDER, "provider_error", "a model provider failed")                                                           \
    X(TOOL, "tool_error", "a tool failed")                                                                             \
    X(PLUGIN, "plugin_error", "a capability broke its contract")                                                       \
    X(VERSION, "version_mismatch", "the other side is too old or too new")                                             \
    X(INTERNAL, "internal_error", "a fault of the engine itself")                                                      \
    X(QUOTA, "quota_exceeded", "a quota or a rate of a user or a tenant does not allow it now")                        \
    X(UNAVAILABLE, "unavailable", "a store cannot be opened now")                                                      \
    X(DISK, "disk_full", "the disk or its quota is full, or a file would exceed the largest size")                     \
    X(FILES, "no_descriptors", "the process or the system cannot open more files and sockets")                         \
    X(THREADS, "no_threads", "the system does not start more threads or processes")

enum rv_code_ordinal {
#define X(name, text, meaning) RV_CODE_##name,
    RV_CODES(X)
#undef X
        RV_N_CODES
};
/* Codes are negative, so that `rc < 0` reads as "failed". */
enum rv_code {
#define X(name, text, meaning) RV_E_##name = -1 - RV_CODE_##name,
    RV_CODES(X)
#undef X
};

/** Wire text of a code ("not_found"); "ok" for 0, "internal_error" for anything unknown. Static. */
const char *rv_code_text(int code);

/** The machine has run out of something that a person can give it and that may come back by itself: RV_E_DISK,
 * RV_E_FILES, RV_E_THREADS. Not RV_E_NOMEM, after which a process cannot rely on anything. */
bool rv_code_is_scarce(int code);

/** What a refusal of the system means to a caller. `number` is an errno, or a negative one as libuv returns it.
 * RV_E_NOMEM, RV_E_DISK, RV_E_FILES, RV_E_DENIED, RV_E_NOT_FOUND, RV_E_EXISTS; RV_E_IO for all others, such as EAGAIN:
 * only of a call that starts a thread or a process does it mean RV_E_THREADS, see RV_FAIL_START. */
int rv_code_of_system(int number);

/* A place in a file. `file` is borrowed here and copied into errors; line and col count from 1, 0 means unknown. */
struct rv_src {
    const char *file;
    int line;
    int col;
};

typedef struct rv_err rv_err;

#define RV_MUST_CHECK        __attribute__((warn_unused_result))
#define RV_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* Drop a result on purpose; the reason is for the reader. tests/scripts/ignored counts these. */
#define RV_IGNORE(call, why)                                                                                           \
    do {                                                                                                               \
        if (call) { /* ignored */                                                                                      \
        }                                                                                                              \
    } while (0)
/* In place of an `rv_err **`: the callee reports no error, its code says enough; the reason is for the reader.
 * tests/scripts/ignored counts these, and calls that pass NULL, which has no reason. */
#define RV_CODE_ONLY(why) ((rv_err **)NULL)

/* Each of these evaluates to `code`, so that `return RV_FAIL(err, RV_E_INVALID, "...")` reads as one step. */
#define RV_FAIL(err, code, ...)         rv_err_add_at((err), (code), __FILE__, __LINE__, NULL, __VA_ARGS__)
#define RV_FAIL_AT(err, src, code, ...) rv_err_add_at((err), (code), __FILE__, __LINE__, (src), __VA_ARGS__)
/* Add a link above *err; the links below keep their codes. `code` is what that means to the caller, mostly the same:
 * the one that rv_err_code() gives, and exit statuses go by. Works on *err == NULL too (then it starts the chain). */
#define RV_WRAP(err, code, ...)         rv_err_add_at((err), (code), __FILE__, __LINE__, NULL, __VA_ARGS__)
#define RV_WRAP_AT(err, src, code, ...) rv_err_add_at((err), (code), __FILE__, __LINE__, (src), __VA_ARGS__)
/* A refusal of the system (errno, or a negative one): rv_code_of_system() is the code, strerror() the end of the text,
 * and for what the machine has run out of there is a hint. */
#define RV_FAIL_SYSTEM(err, number, ...) rv_err_add_system_at((err), (number), __FILE__, __LINE__, __VA_ARGS__)
/* The same of a call that starts a thread or a process: EAGAIN is RV_E_THREADS, and has a hint. */
#define RV_FAIL_START(err, number, ...) rv_err_start_at((err), (number), __FILE__, __LINE__, __VA_ARGS__)

/* Behind the macros. *err is NULL for a new error; src is borrowed for the call. Returns code. */
int rv_err_add_at(rv_err **err, int code, const char *c_file, int c_line, const struct rv_src *src, const char *fmt,
                  ...) RV_PRINTF(6, 7);

int rv_err_add_system_at(rv_err **err, int number, const char *c_file, int c_line, const char *fmt, ...)
    RV_PRINTF(5, 6);

int rv_err_start_at(rv_err **err, int number, const char *c_file, int c_line, const char *fmt, ...) RV_PRINTF(5, 6);

/** Attach "what to do about it" to the topmost link; replaces an earlier hint. No-op when err or *err is NULL. */
void rv_err_set_hint(rv_err **err, const char *fmt, ...) RV_PRINTF(2, 3);

/** Put the chain `causes` (taken) below the last link of *err. It is freed where the chain would be too long, or where
 * *err is NULL. */
void rv_err_add_causes(rv_err **err, rv_err *causes);

/** Put `chain` (taken) in place of the last link of *err: it says the same in more links. It is freed, and *err stays,
 * where the chain would be too long, or where *err is NULL. */
void rv_err_replace_last(rv_err **err, rv_err *chain);

/** Hand a cause over: it is the error now, or goes where `err` is NULL. Returns its code; 0 for NULL, which is handed
 * over, too. Takes cause. Outside of this module nothing else writes to *err: callers may pass NULL. */
int rv_err_pass(rv_err **err, rv_err *cause);
/** The error, which is the caller's now; *err is NULL again. NULL: there is none, or err is NULL. */
rv_err *rv_err_steal(rv_err **err);

void rv_err_free(rv_err *err); /* frees the whole chain; NULL and the static error are fine */

/* Borrowed views, valid while err lives. rv_err_text is "" and rv_err_hint_text is NULL when there is none. */
int rv_err_code(const rv_err *err); /* of the topmost link; 0 for NULL */
const char *rv_err_text(const rv_err *err);
const char *rv_err_hint_text(const rv_err *err);
struct rv_src rv_err_src(const rv_err *err);
const rv_err *rv_err_cause(const rv_err *err);
/** The line of the source where this link was made. */
const char *rv_err_made_at(const rv_err *err, int *line);
/** True if any link of the chain carries code. RV_E_NOMEM also when a link could not be added to it: the text is then
 * not what it would have been, and must not become part of a run. */
bool rv_err_is(const rv_err *err, int code);

#endif
