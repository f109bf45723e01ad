#include "coreengine/base/base.h"
#include "tests/kit/kit.h"
#include "tests/unit/base/suites.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define NOON INT64_C(43384123000) /* 12:03:04.123 */

static struct rv_kit_log kl;

static void start(enum rv_log_format format)
{
    rv_kit_log_init(&kl, RV_LOG_INFO, format);
    kl.clock.us = NOON;
}

static void tear_down(void)
{
    rv_kit_log_fini(&kl);
}

START_TEST(text_lines_quote_what_has_blanks)
{
    start(RV_LOG_TEXT);
    RV_LOG(kl.log, INFO, "stage.finish", RV_F_TEXT("stage", "plan"), RV_F_TEXT("reason", "a b"), RV_F_I64("ms", -12),
           RV_F_BOOL("ok", true), RV_F_TEXT("empty", ""), RV_F_TEXT("q", "say \"x\"\n"));
    ck_assert_str_eq(kl.lines[0], "12:03:04.123 INFO  stage.finish stage=plan reason=\"a b\" ms=-12 ok=true empty=\"\" "
                                  "q=\"say \\\"x\\\"\\n\"");
}
END_TEST

START_TEST(json_lines_are_one_object_each)
{
    rv_err *err = NULL;

    start(RV_LOG_JSON);
    RV_FAIL(&err, RV_E_IO, "disk \"a\" is full");
    RV_WRAP(&err, RV_E_IO, "save");
    RV_LOG(kl.log, WARN, "run.save", RV_F_ERR("err", err), RV_F_I64("n", 3), RV_F_BOOL("b", false),
           RV_F_STR("s", ((rv_str){"x\xFF\x01\xC2\x9B", 5})), RV_F_ERR("none", NULL));
    ck_assert_str_eq(kl.lines[0], "{\"time\":\"1970-01-01T12:03:04.123000Z\",\"level\":\"warn\",\"event\":\"run.save\","
                                  "\"err\":\"save: disk \\\"a\\\" is full  [io_error]\",\"n\":3,\"b\":false,"
                                  "\"s\":\"x\xEF\xBF\xBD\\u0001\\u009b\",\"none\":null}");
    rv_err_free(err);
}
END_TEST

START_TEST(bound_fields_stand_on_each_line_below)
{
    const struct rv_field run[] = {RV_F_TEXT("run_id", "r1")}, stage[] = {RV_F_TEXT("stage", "plan")};
    rv_log *child, *grandchild;

    start(RV_LOG_TEXT);
    child = rv_log_bind(kl.log, run, 1);
    grandchild = rv_log_bind(child, stage, 1);
    RV_LOG(grandchild, INFO, "a.b", RV_F_I64("n", 1));
    RV_LOG(child, ERROR, "c.d", RV_F_I64("n", 2));
    rv_log_free(grandchild);
    rv_log_free(child);
    ck_assert_str_eq(kl.lines[0], "12:03:04.123 INFO  a.b run_id=r1 stage=plan n=1");
    ck_assert_str_eq(kl.lines[1], "12:03:04.123 ERROR c.d run_id=r1 n=2");
    ck_assert_uint_eq(kl.n_errors, 1);
    kl.n_expected = 1;
}
END_TEST

static const struct {
    const char *key;
    bool secret;
} keys[] = {
    {"api_key", true},       {"OPENAI_API_KEY", true}, {"authorization", true}, {"Authorization", true},
    {"access_token", true},  {"accessToken", true},    {"password", true},      {"db_password", true},
    {"client_secret", true}, {"tokens", false},        {"max_tokens", false},   {"key", false},
    {"secretary", false},    {"run_id", false},
};

START_TEST(values_of_secret_keys_are_redacted)
{
    start(RV_LOG_TEXT);
    RV_LOG(kl.log, INFO, "x.y", RV_F_TEXT(keys[_i].key, "hunter2"));
    ck_assert_int_eq(strstr(kl.lines[0], "hunter2") == NULL, keys[_i].secret);
    ck_assert_int_eq(strstr(kl.lines[0], "[redacted]") != NULL, keys[_i].secret);
}
END_TEST

START_TEST(records_below_the_level_are_not_written)
{
    start(RV_LOG_TEXT);
    RV_LOG(kl.log, DEBUG, "x.y", RV_F_I64("n", 1));
    RV_LOG(kl.log, TRACE, "x.y", RV_F_I64("n", 1));
    ck_assert_uint_eq(kl.n_lines, 0);
    ck_assert(!rv_log_is_on(kl.log, RV_LOG_DEBUG));
    ck_assert(rv_log_is_on(kl.log, RV_LOG_INFO));
    ck_assert(!rv_log_is_on(kl.log, RV_LOG_OFF));
}
END_TEST

START_TEST(no_logger_is_a_quiet_logger)
{
    const struct rv_field f[] = {RV_F_I64("n", 1)};

    start(RV_LOG_TEXT);
    RV_LOG((rv_log *)NULL, ERROR, "x.y", RV_F_I64("n", 1));
    rv_log_write(NULL, RV_LOG_ERROR, "x.y", f, 1);
    ck_assert_ptr_null(rv_log_bind(NULL, f, 1));
    rv_log_free(NULL);
}
END_TEST

/* _i: 0 ASCII, 1 three-byte characters, 2 characters that become six bytes, 3 an error chain; even: JSON, odd: text */
START_TEST(a_line_is_cut_at_16_kib_and_stays_valid)
{
    static const char *const units[] = {"a", "\xE2\x82\xAC", "\x01", "\"", "\xFF"};
    size_t i, j;

    for (j = 0; j < 2; j++) {
        rv_buf b = RV_BUF_INIT(1 << 17);
        rv_err *err = NULL;
        const char *line;
        start(j ? RV_LOG_TEXT : RV_LOG_JSON);
        for (i = 0; i < 30000; i++)
            rv_buf_puts(&b, units[_i]);
        for (i = 0; i < 20; i++)
            RV_WRAP(&err, RV_E_IO, "%s", rv_buf_cstr(&b));
        RV_LOG(kl.log, INFO, "x.y", RV_F_TEXT("pad", "xx"), RV_F_STR("s", rv_buf_str(&b)), RV_F_I64("late", 1));
        RV_LOG(kl.log, INFO, "x.y", RV_F_ERR("err", err), RV_F_TEXT("late", "x"));
        for (i = 0; i < 2; i++) {
            line = kl.lines[i];
            ck_assert_uint_lt(strlen(line), 16384);
            ck_assert_uint_gt(strlen(line), 15000);
            ck_assert(rv_utf8_valid(rv_str_of(line), NULL));
            ck_assert_ptr_null(strstr(line, "late"));
            if (j == 0) {
                json_object *v = rv_kit_json(line);
                bool cut = false;
                ck_assert(rv_json_get_bool(v, "cut", &cut));
                ck_assert(cut);
                json_object_put(v);
            } else {
                ck_assert_ptr_nonnull(strstr(line, " cut=true"));
            }
        }
        rv_err_free(err);
        rv_buf_fini(&b);
        if (j == 0)
            rv_kit_log_fini(&kl);
    }
}
END_TEST

START_TEST(many_fields_are_cut_whole)
{
    struct rv_field fields[2000];
    json_object *v;
    size_t i;

    start(RV_LOG_JSON);
    for (i = 0; i < RV_COUNT(fields); i++)
        fields[i] = RV_F_TEXT("some_key", "value");
    rv_log_write(kl.log, RV_LOG_INFO, "x.y", fields, RV_COUNT(fields));
    v = rv_kit_json(kl.lines[0]);
    ck_assert_ptr_nonnull(v);
    json_object_put(v);
}
END_TEST

START_TEST(bound_fields_that_exceed_their_limit_leave_a_mark)
{
    static char text[6000];
    struct rv_field fields[] = {RV_F_STR("pipeline", RV_STR_LIT("")), RV_F_TEXT("run_id", "r")};
    bool cut = false;

    memset(text, 'x', sizeof text - 1);
    fields[0].str = (rv_str){text, sizeof text};
    start(RV_LOG_JSON);
    rv_log *bound = rv_log_bind(kl.log, fields, RV_COUNT(fields)), *child = rv_log_bind(bound, NULL, 0);
    RV_LOG(child, INFO, "x.y", RV_F_I64("n", 1));
    json_object *v = rv_kit_json(kl.lines[0]), *n = NULL;
    ck_assert_ptr_nonnull(v);
    ck_assert(rv_json_get_bool(v, "cut", &cut) && cut);
    ck_assert(json_object_object_get_ex(v, "n", &n)); /* what the record itself has is whole */
    json_object_put(v);
    rv_log_free(child);
    rv_log_free(bound);
}
END_TEST

START_TEST(lines_go_to_the_file_descriptor)
{
    struct rv_kit_clock clock = {NOON};
    char got[200];
    int fds[2];
    ssize_t n;
    rv_log *log;

    start(RV_LOG_TEXT);
    ck_assert_int_eq(pipe(fds), 0);
    log = rv_log_new(&(struct rv_log_opts){.fd = fds[1], .color = true, .clock = rv_kit_clock(&clock)});
    RV_LOG(log, WARN, "x.y", RV_F_I64("n", 1));
    n = read(fds[0], got, sizeof got - 1);
    ck_assert_int_gt(n, 0);
    got[n] = '\0';
    ck_assert_str_eq(got, "12:03:04.123 \x1b[33mWARN \x1b[0m x.y n=1\n");
    rv_log_free(log);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

/* All that is in the pipe; it does not wait. Returns the number of lines. */
static int read_lines(int fd, rv_buf *out)
{
    char piece[4096];
    ssize_t n;
    int n_lines = 0;

    out->len = 0;
    while ((n = read(fd, piece, sizeof piece)) > 0)
        rv_buf_add(out, piece, (size_t)n);
    for (size_t i = 0; i < out->len; i++)
        n_lines += out->ptr[i] == '\n';
    return n_lines;
}

/* A reader that takes nothing holds up nothing: what it takes later are whole lines, and how many were lost. */
START_TEST(a_log_that_never_waits_counts_what_it_loses)
{
    rv_buf got = RV_BUF_INIT(1 << 20);
    int fds[2], n_first, n_later, n_lost = -1, n_all = 4000;
    char pad[1000];
    rv_log *log;

    start(RV_LOG_TEXT);
    memset(pad, 'x', sizeof pad - 1);
    pad[sizeof pad - 1] = '\0';
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    log = rv_log_new(&(struct rv_log_opts){.fd = fds[1], .format = _i ? RV_LOG_JSON : RV_LOG_TEXT});
    ck_assert_int_eq(rv_log_never_wait(log, NULL), 0);
    ck_assert_int_eq(rv_log_never_wait(log, NULL), 0); /* once more changes nothing */
    ck_assert_int_eq(fcntl(fds[1], F_GETFL) & O_NONBLOCK, 0);
    for (int i = 0; i < n_all; i++)
        RV_LOG(log, INFO, "x.y", RV_F_TEXT("pad", pad));
    n_first = read_lines(fds[0], &got);
    ck_assert_int_gt(n_first, 10);
    for (int i = 0; i < 20; i++) { /* the reader is back */
        RV_LOG(log, INFO, "x.y", RV_F_TEXT("pad", pad));
        n_later = read_lines(fds[0], &got);
        n_first += n_later;
        const char *lost = strstr(rv_buf_cstr(&got), _i ? "log.lost\",\"records\":" : "log.lost records=");
        if (lost)
            n_lost = (int)strtol(lost + (_i ? 20 : 17), NULL, 10);
    }
    rv_log_free(log);
    n_first += read_lines(fds[0], &got);
    ck_assert_int_gt(n_lost, 3000);
    ck_assert_int_eq(n_first, n_all + 20 - n_lost + 1);
    close(fds[0]);
    close(fds[1]);
    rv_buf_fini(&got);
}
END_TEST

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Lines of a file that cannot grow for a while; with and without a sink that keeps some. */
START_TEST(a_log_on_a_full_disk_counts_what_it_loses)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "log"), pad[1000];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), n_all = 1000, n_lines = 0;
    rv_log *log = rv_log_new(&(struct rv_log_opts){.fd = fd});

    signal(SIGXFSZ, SIG_IGN);
    memset(pad, 'x', sizeof pad - 1);
    pad[sizeof pad - 1] = '\0';
    ck_assert_int_eq(_i ? rv_log_never_wait(log, NULL) : 0, 0);
    limit_files(0);
    for (int i = 0; i < n_all; i++)
        RV_LOG(log, INFO, "x.y", RV_F_TEXT("pad", pad));
    limit_files(RLIM_INFINITY);
    RV_LOG(log, INFO, "x.y", RV_F_TEXT("pad", pad));
    rv_log_free(log);
    char *text = rv_kit_read(path);
    for (const char *c = text; *c; c++)
        n_lines += *c == '\n';
    const char *lost = strstr(text, "log.lost records=");
    ck_assert_ptr_nonnull(lost);
    ck_assert_int_eq(n_lines, n_all + 1 - (int)strtol(lost + 17, NULL, 10) + 1);
    ck_assert_int_ge(n_lines, _i ? 200 : 2); /* 256 KiB are kept */
    free(text);
    close(fd);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(the_end_of_a_log_does_not_wait_for_a_full_disk)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "log");
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    rv_log *log = rv_log_new(&(struct rv_log_opts){.fd = fd});

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(rv_log_never_wait(log, NULL), 0);
    limit_files(0);
    RV_LOG(log, INFO, "x.y");
    rv_log_free(log);
    limit_files(RLIM_INFINITY);
    close(fd);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* What is kept when the log is closed is still handed over, to a reader that is slow. */
static void *read_all(void *fd)
{
    char piece[512];
    ssize_t n;
    size_t all = 0;

    while ((n = read(*(int *)fd, piece, sizeof piece)) > 0)
        all += (size_t)n;
    *(int *)fd = (int)all;
    return NULL;
}

START_TEST(the_end_of_a_log_hands_over_what_is_kept)
{
    char pad[1000];
    int fds[2], reader;
    pthread_t thread;
    rv_log *log;

    start(RV_LOG_TEXT);
    memset(pad, 'x', sizeof pad - 1);
    pad[sizeof pad - 1] = '\0';
    ck_assert_int_eq(pipe(fds), 0);
    reader = fds[0];
    log = rv_log_new(&(struct rv_log_opts){.fd = fds[1], .clock = rv_kit_clock(&(struct rv_kit_clock){NOON})});
    ck_assert_int_eq(rv_log_never_wait(log, NULL), 0);
    for (int i = 0; i < 200; i++)
        RV_LOG(log, INFO, "x.y", RV_F_TEXT("pad", pad));
    ck_assert_int_eq(pthread_create(&thread, NULL, read_all, &reader), 0);
    rv_log_free(log);
    close(fds[1]);
    pthread_join(thread, NULL);
    ck_assert_int_eq(reader, 200 * (int)(strlen("12:03:04.123 INFO  x.y pad=\n") + 999));
    close(fds[0]);
}
END_TEST

START_TEST(a_log_whose_reader_is_gone_goes_on)
{
    int fds[2];
    rv_log *log;

    start(RV_LOG_TEXT);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    log = rv_log_new(&(struct rv_log_opts){.fd = fds[1]});
    ck_assert_int_eq(rv_log_never_wait(log, NULL), 0);
    RV_LOG(log, INFO, "x.y", RV_F_I64("n", 1));
    close(fds[0]);
    for (int i = 0; i < 10000; i++)
        RV_LOG(log, INFO, "x.y", RV_F_I64("n", i));
    rv_log_free(log);
    close(fds[1]);
}
END_TEST

static void *write_many(void *log)
{
    int i;

    for (i = 0; i < 200; i++)
        RV_LOG((rv_log *)log, INFO, "x.y", RV_F_TEXT("k", "abcdefghij"), RV_F_I64("n", 1));
    return NULL;
}

START_TEST(lines_of_many_threads_stay_whole)
{
    const struct rv_field run[] = {RV_F_TEXT("run_id", "r1")};
    pthread_t threads[4];
    rv_log *child;
    size_t i;

    start(RV_LOG_TEXT);
    child = rv_log_bind(kl.log, run, 1);
    for (i = 0; i < RV_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_many, child), 0);
    for (i = 0; i < RV_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(kl.n_lines, 800);
    for (i = 0; i < kl.n_lines; i++)
        ck_assert_str_eq(kl.lines[i], "12:03:04.123 INFO  x.y run_id=r1 k=abcdefghij n=1");
    rv_log_free(child);
}
END_TEST

START_TEST(levels_have_names)
{
    enum rv_log_level level = RV_LOG_TRACE;
    rv_err *err = NULL;

    start(RV_LOG_TEXT);
    ck_assert_int_eq(rv_log_level_of(RV_STR_LIT("warn"), &level, NULL), 0);
    ck_assert_int_eq(level, RV_LOG_WARN);
    ck_assert_int_eq(rv_log_level_of(RV_STR_LIT("off"), &level, NULL), 0);
    ck_assert_int_eq(rv_log_level_of(RV_STR_LIT("loud"), &level, &err), RV_E_INVALID);
    ck_assert_int_eq(level, RV_LOG_OFF);
    ck_assert_str_eq(rv_err_hint_text(err), "levels: trace, debug, info, warn, error, off");
    rv_err_free(err);
}
END_TEST

TCase *log_case(void)
{
    TCase *tc = tcase_create("log");

    tcase_add_checked_fixture(tc, NULL, tear_down);
    tcase_add_test(tc, text_lines_quote_what_has_blanks);
    tcase_add_test(tc, json_lines_are_one_object_each);
    tcase_add_test(tc, bound_fields_stand_on_each_line_below);
    tcase_add_loop_test(tc, values_of_secret_keys_are_redacted, 0, RV_COUNT(keys));
    tcase_add_test(tc, records_below_the_level_are_not_written);
    tcase_add_test(tc, no_logger_is_a_quiet_logger);
    tcase_add_loop_test(tc, a_line_is_cut_at_16_kib_and_stays_valid, 0, 5);
    tcase_add_test(tc, many_fields_are_cut_whole);
    tcase_add_test(tc, bound_fields_that_exceed_their_limit_leave_a_mark);
    tcase_add_test(tc, lines_go_to_the_file_descriptor);
    tcase_add_loop_test(tc, a_log_that_never_waits_counts_what_it_loses, 0, 2);
    tcase_add_loop_test(tc, a_log_on_a_full_disk_counts_what_it_loses, 0, 2);
    tcase_add_test(tc, the_end_of_a_log_does_not_wait_for_a_full_disk);
    tcase_add_test(tc, the_end_of_a_log_hands_over_what_is_kept);
    tcase_add_test(tc, a_log_whose_reader_is_gone_goes_on);
    tcase_add_test(tc, lines_of_many_threads_stay_whole);
    tcase_add_test(tc, levels_have_names);
    return tc;
}
