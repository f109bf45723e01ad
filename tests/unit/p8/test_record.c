/* keep_record: one line for each call that is meant, however often it is made. */
#include "tests/unit/p8/room.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIG "{\"records\": \"kept/notes.jsonl\"}"
#define NOTE   "{\"name\": \"note\", \"fields\": {\"title\": \"A \\n/ \\u00e4\"}}"

static void begin_with_folder(struct room *r, const char *config)
{
    char *folder;

    room_begin(r, config);
    ck_assert_msg(r->loaded == 0, "%s", rv_err_text(r->err));
    folder = rv_kit_path(r->dir, "kept");
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    free(folder);
}

static char *kept(const struct room *r)
{
    char *path = rv_kit_path(r->dir, "kept/notes.jsonl"), *text = rv_kit_read(path);

    free(path);
    return text;
}

static void must_hold(const struct room *r, const char *want)
{
    char *text = kept(r);

    ck_assert_str_eq(text, want);
    free(text);
}

static void must_keep(struct room *r, const char *key, const char *want)
{
    ck_assert_msg(room_call(r, "keep_record", NOTE, key) == 0, "%s", rv_err_text(r->err));
    ck_assert_str_eq(rv_buf_cstr(&r->reply), want);
}

START_TEST(a_full_file_is_told_in_words)
{
    struct room r;
    struct rlimit old, small;

    begin_with_folder(&r, CONFIG);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 4, .rlim_max = old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = room_call(&r, "keep_record", NOTE, "k1");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    ck_assert_int_lt(rc, 0);
    ck_assert_msg(strstr(rv_err_text(r.err), "would be larger than a file of this process may be"), "%s",
                  rv_err_text(r.err));
    must_keep(&r, "k1", "{\"status\":\"success\",\"name\":\"note\",\"line\":1}");
    room_end(&r);
}
END_TEST

START_TEST(a_record_is_one_line_and_a_repeated_call_adds_none)
{
    struct room r;

    begin_with_folder(&r, CONFIG);
    must_keep(&r, "k\"1", "{\"status\":\"success\",\"name\":\"note\",\"line\":1}");
    must_keep(&r, "k2", "{\"status\":\"success\",\"name\":\"note\",\"line\":2}");
    must_keep(&r, "k\"1", "{\"status\":\"success\",\"name\":\"note\",\"line\":1}");
    must_hold(&r, "{\"key\":\"k\\\"1\",\"name\":\"note\",\"fields\":{\"title\":\"A \\n/ ä\"}}\n"
                  "{\"key\":\"k2\",\"name\":\"note\",\"fields\":{\"title\":\"A \\n/ ä\"}}\n");
    room_end(&r);
}
END_TEST

START_TEST(a_key_that_begins_like_another_is_another)
{
    struct room r;

    begin_with_folder(&r, CONFIG);
    must_keep(&r, "k12", "{\"status\":\"success\",\"name\":\"note\",\"line\":1}");
    must_keep(&r, "k1", "{\"status\":\"success\",\"name\":\"note\",\"line\":2}");
    room_end(&r);
}
END_TEST

START_TEST(without_a_key_each_call_adds_a_line)
{
    struct room r;

    begin_with_folder(&r, CONFIG);
    must_keep(&r, NULL, "{\"status\":\"success\",\"name\":\"note\",\"line\":1}");
    must_keep(&r, NULL, "{\"status\":\"success\",\"name\":\"note\",\"line\":2}");
    must_hold(&r, "{\"name\":\"note\",\"fields\":{\"title\":\"A \\n/ ä\"}}\n"
                  "{\"name\":\"note\",\"fields\":{\"title\":\"A \\n/ ä\"}}\n");
    room_end(&r);
}
END_TEST

/* What a power cut leaves: it was never acknowledged, so the call is made again and has to leave a whole line. */
START_TEST(a_line_without_an_end_counts_as_none)
{
    struct room r;
    char *path;

    begin_with_folder(&r, CONFIG);
    path = rv_kit_path(r.dir, "kept/notes.jsonl");
    rv_kit_write(path, "{\"key\":\"k1\",\"na");
    must_keep(&r, "k1", "{\"status\":\"success\",\"name\":\"note\",\"line\":2}");
    must_keep(&r, "k1", "{\"status\":\"success\",\"name\":\"note\",\"line\":2}");
    must_hold(&r, "{\"key\":\"k1\",\"na\n{\"key\":\"k1\",\"name\":\"note\",\"fields\":{\"title\":\"A \\n/ ä\"}}\n");
    free(path);
    room_end(&r);
}
END_TEST

#define N_WRITERS 4
#define N_ROUNDS  25

static void write_often(struct room *r, int who)
{
    char key[32];

    for (int i = 0; i < N_ROUNDS; i++) {
        snprintf(key, sizeof key, "w%d-%d", who % 2, i); /* two of them make the same calls */
        if (room_call(r, "keep_record", NOTE, key) != 0)
            _exit(1);
    }
    _exit(0);
}

START_TEST(processes_that_write_at_once_do_not_tear_lines)
{
    struct room r;
    pid_t pids[N_WRITERS];
    size_t n = 0;
    char *text;

    begin_with_folder(&r, CONFIG);
    for (int i = 0; i < N_WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            write_often(&r, i);
    }
    for (int i = 0; i < N_WRITERS; i++) {
        int status = 1;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    text = kept(&r);
    for (char *line = text; *line; line = strchr(line, '\n') + 1, n++)
        ck_assert_int_eq(strncmp(line, "{\"key\":\"w", 9), 0);
    ck_assert_uint_eq(n, 2 * N_ROUNDS);
    free(text);
    room_end(&r);
}
END_TEST

START_TEST(without_a_configured_file_nothing_is_kept)
{
    struct room r;

    room_begin(&r, NULL);
    ck_assert_int_eq(room_call(&r, "keep_record", NOTE, "k"), RV_E_TOOL);
    ck_assert_str_eq(rv_plugin_error_type(r.err), "NotConfigured");
    ck_assert_ptr_nonnull(strstr(rv_err_text(r.err), "records:"));
    room_end(&r);
}
END_TEST

static const char *const outside[] = {"../x", "/tmp/x", "a/../../x", "a//x", "./x", "a/", "..", ".", "a/./x"};

START_TEST(a_file_outside_the_folder_is_refused_when_it_is_opened)
{
    RV_AUTO(rv_buf_fini) rv_buf config = RV_BUF_INIT(256);
    struct room r;

    rv_buf_printf(&config, "{\"records\": \"%s\"}", outside[_i]);
    room_begin(&r, rv_buf_cstr(&config));
    ck_assert_int_eq(r.loaded, RV_E_PLUGIN);
    room_end(&r);
}
END_TEST

START_TEST(a_link_is_not_followed)
{
    struct room r;
    char *from, *target;

    begin_with_folder(&r, CONFIG);
    from = rv_kit_path(r.dir, "kept/notes.jsonl");
    target = rv_kit_path(r.dir, "target");
    rv_kit_write(target, "");
    ck_assert_int_eq(symlink(target, from), 0);
    ck_assert_int_eq(room_call(&r, "keep_record", NOTE, "k"), RV_E_TOOL);
    ck_assert_str_eq(rv_plugin_error_type(r.err), "AccessDenied");
    ck_assert_int_eq(unlink(from), 0);
    ck_assert_int_eq(mkfifo(from, 0644), 0);
    ck_assert_int_eq(room_call(&r, "keep_record", NOTE, "k"), RV_E_TOOL); /* and does not wait for a reader */
    free(target);
    free(from);
    room_end(&r);
}
END_TEST

START_TEST(a_missing_folder_is_named)
{
    struct room r;

    room_begin(&r, CONFIG);
    ck_assert_int_eq(room_call(&r, "keep_record", NOTE, "k"), RV_E_TOOL);
    ck_assert_str_eq(rv_plugin_error_type(r.err), "NotFoundError");
    ck_assert_ptr_nonnull(strstr(rv_err_text(r.err), "\"kept/notes.jsonl\": its folder does not exist"));
    room_end(&r);
}
END_TEST

START_TEST(a_record_that_is_too_large_is_refused)
{
    RV_AUTO(rv_buf_fini) rv_buf args = RV_BUF_INIT((size_t)1 << 20);
    struct room r;

    begin_with_folder(&r, CONFIG);
    rv_buf_puts(&args, "{\"name\": \"n\", \"fields\": {\"x\": \"");
    for (int i = 0; i < 300000; i++)
        rv_buf_putc(&args, 'x');
    rv_buf_puts(&args, "\"}}");
    ck_assert_int_eq(room_call(&r, "keep_record", rv_buf_cstr(&args), "k"), RV_E_TOOL);
    ck_assert_ptr_nonnull(strstr(rv_err_text(r.err), "at most 262144 are kept"));
    room_end(&r);
}
END_TEST

TCase *record_case(void)
{
    TCase *tc = tcase_create("keep_record");

    tcase_add_test(tc, a_full_file_is_told_in_words);
    tcase_add_test(tc, a_record_is_one_line_and_a_repeated_call_adds_none);
    tcase_add_test(tc, a_key_that_begins_like_another_is_another);
    tcase_add_test(tc, without_a_key_each_call_adds_a_line);
    tcase_add_test(tc, a_line_without_an_end_counts_as_none);
    tcase_add_test(tc, processes_that_write_at_once_do_not_tear_lines);
    tcase_add_test(tc, without_a_configured_file_nothing_is_kept);
    tcase_add_loop_test(tc, a_file_outside_the_folder_is_refused_when_it_is_opened, 0, RV_COUNT(outside));
    tcase_add_test(tc, a_link_is_not_followed);
    tcase_add_test(tc, a_missing_folder_is_named);
    tcase_add_test(tc, a_record_that_is_too_large_is_refused);
    return tc;
}
