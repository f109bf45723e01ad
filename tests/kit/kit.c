/* Small helpers of the tests: data, clock, log capture. Files and golden texts are in kit_files.c. */
#include "tests/kit/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_TEXT ((size_t)64 << 20)

void rv_kit_die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    abort();
}

static int64_t stopped_now(void *self)
{
    const struct rv_kit_clock *state = self;

    return state->us;
}

struct rv_clock rv_kit_clock(struct rv_kit_clock *state)
{
    return (struct rv_clock){stopped_now, state};
}

json_object *rv_kit_json(const char *text)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_TEXT, .allow_duplicates = true, .what = "test data"};
    char *copy = rv_str_dup(rv_str_of(text)), *p;
    json_object *v = NULL;
    rv_err *err = NULL;

    if (!copy)
        rv_kit_die("no memory for test data");
    if (!strchr(copy, '"'))
        for (p = copy; *p; p++)
            if (*p == '\'')
                *p = '"';
    if (rv_json_parse(rv_str_of(copy), &opts, &v, &err) < 0)
        rv_kit_die("%s in: %s", rv_err_text(err), text);
    free(copy);
    return v;
}

char *rv_kit_text(json_object *v)
{
    rv_buf b = RV_BUF_INIT(MAX_TEXT);

    rv_json_write(v, &b);
    if (b.rc < 0)
        rv_kit_die("cannot write a JSON tree");
    return rv_buf_steal(&b, NULL);
}

char *rv_kit_err_take(rv_err *err)
{
    rv_buf b = RV_BUF_INIT(MAX_TEXT);
    char *text;

    rv_err_write_text(err, false, &b);
    rv_err_free(err);
    text = rv_buf_steal(&b, NULL);
    if (!text)
        rv_kit_die("cannot print an error");
    return text;
}

static void keep_line(void *self, enum rv_log_level level, rv_str line)
{
    struct rv_kit_log *kl = self;
    char **lines = realloc(kl->lines, (kl->n_lines + 1) * sizeof *lines);

    if (!lines)
        rv_kit_die("no memory for a log line");
    kl->lines = lines;
    lines[kl->n_lines] = rv_str_dup(line);
    if (!lines[kl->n_lines])
        rv_kit_die("no memory for a log line");
    kl->n_lines++;
    if (level == RV_LOG_ERROR)
        kl->n_errors++;
}

void rv_kit_log_init(struct rv_kit_log *kl, enum rv_log_level level, enum rv_log_format format)
{
    *kl = (struct rv_kit_log){.n_lines = 0};
    kl->log = rv_log_new(&(struct rv_log_opts){.level = level,
                                               .format = format,
                                               .fd = -1,
                                               .clock = rv_kit_clock(&kl->clock),
                                               .line = keep_line,
                                               .line_self = kl});
    if (!kl->log)
        rv_kit_die("no memory for a logger");
}

void rv_kit_log_fini(struct rv_kit_log *kl)
{
    size_t i;

    rv_log_free(kl->log);
    for (i = 0; i < kl->n_lines && kl->n_errors != kl->n_expected; i++)
        fprintf(stderr, "%s\n", kl->lines[i]);
    if (kl->n_errors != kl->n_expected)
        rv_kit_die("%zu log lines of level error instead of %zu", kl->n_errors, kl->n_expected);
    for (i = 0; i < kl->n_lines; i++)
        free(kl->lines[i]);
    free(kl->lines);
    *kl = (struct rv_kit_log){.n_lines = 0};
}

const char *rv_kit_log_find(const struct rv_kit_log *kl, const char *text)
{
    size_t i;

    for (i = 0; i < kl->n_lines; i++)
        if (strstr(kl->lines[i], text))
            return kl->lines[i];
    return NULL;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool is_slow = true;
#else
static const bool is_slow = false;
#endif

static bool soaks(void)
{
    return getenv("REEVE_SOAK") != NULL;
}

int rv_kit_sample(int n, int many)
{
    return soaks() ? many : is_slow ? (n + 7) / 8 : n;
}

size_t rv_kit_step(size_t n)
{
    return soaks() ? 1 : n;
}

size_t rv_kit_stride(size_t n)
{
    return is_slow && !soaks() ? n : 1;
}

size_t rv_kit_first(size_t step)
{
    const char *seed = getenv("REEVE_SHUFFLE");

    return seed ? strtoull(seed, NULL, 10) % step : 0;
}

void rv_kit_rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = RV_KIT_REST_MS * 1000000L}, NULL);
}
