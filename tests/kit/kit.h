/* What tests share. Nothing here returns errors: a helper that cannot do its work ends the test with a message.
 *
 * Seeded ids need no helper: rv_rand_seeded() of base is one. The failing allocator is apart, in fault.h. */
#ifndef RV_TESTS_KIT_H
#define RV_TESTS_KIT_H

#include "coreengine/base/base.h"

/** Print to stderr and abort. */
_Noreturn void rv_kit_die(const char *fmt, ...) RV_PRINTF(1, 2);

/* A clock that stands still until the test moves it. */
struct rv_kit_clock {
    int64_t us;
};
struct rv_clock rv_kit_clock(struct rv_kit_clock *state); /* state is borrowed */

/** Parse test data: like JSON, but 'single quotes' do where the text has no double ones, equal keys and big integers
 *  pass. You own the tree. */
json_object *rv_kit_json(const char *text);
/** Compact text of v; the string is yours to free. */
char *rv_kit_text(json_object *v);

/** The printed form of an error (without --debug); free() it. Frees err. For comparing whole messages. */
char *rv_kit_err_take(rv_err *err);

/* A logger that keeps its lines. */
struct rv_kit_log {
    rv_log *log;
    char **lines; /* without the line feed */
    size_t n_lines;
    size_t n_errors;   /* lines of level error */
    size_t n_expected; /* of them the test provokes; any other number fails it at the end */
    struct rv_kit_clock clock;
};
void rv_kit_log_init(struct rv_kit_log *kl, enum rv_log_level level, enum rv_log_format format);
void rv_kit_log_fini(struct rv_kit_log *kl);
/** The first line that contains text, or NULL. */
const char *rv_kit_log_find(const struct rv_kit_log *kl, const char *text);

/** A fresh folder under $TMPDIR; give it to _remove, which deletes it with all it holds and frees the name. */
char *rv_kit_tmpdir(void);
/** The rest between two looks at something of another process, which tells nothing when it changes. The one sleep of
 *  tests, always in a loop that ends when it has changed: never a wait that is hoped to be long enough. */
#define RV_KIT_REST_MS 2 /* short beside what is waited for, and the processor is free for it */
void rv_kit_rest(void);
void rv_kit_tmpdir_remove(char *dir);
/** dir/name; free() it. */
char *rv_kit_path(const char *dir, const char *name);
/** Write a small file, or read one (NUL-terminated; free() it). */
void rv_kit_write(const char *path, const char *text);
char *rv_kit_read(const char *path);

/** Copy a file over another. */
void rv_kit_copy(const char *from, const char *to);

/** The size of a random sample: n in a plain build; n / 8 under a sanitizer, which slows a program about ten times;
 * many with REEVE_SOAK in the environment (`./dev soak`). */
int rv_kit_sample(int n, int many);
/** The step of a loop that tries every place: 1, but n under a sanitizer without REEVE_SOAK. */
size_t rv_kit_stride(size_t n);
/** The step of a long loop that tries every place: n, but 1 with REEVE_SOAK. */
size_t rv_kit_step(size_t n);
/** The place with which a loop of that step begins, below step: it follows from REEVE_SHUFFLE, so that runs of the
 * tests together try every place. 0 without it. */
size_t rv_kit_first(size_t step);

/** True if text is what tests/golden/<name> holds; else the first difference is printed. With REEVE_GOLDEN=update in
 * the environment the file is rewritten (folders are made) and the answer is true. */
bool rv_kit_golden(const char *name, const char *text);

#endif
