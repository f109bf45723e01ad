#include "coreengine/base/base.h"
#include "tests/kit/kit.h"
#include "tests/unit/base/suites.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_LATE 100 /* bytes that come one at a time */

static char *dir;

static void set_up(void)
{
    dir = rv_kit_tmpdir();
}

static void tear_down(void)
{
    rv_kit_tmpdir_remove(dir);
}

static int count_entries(void)
{
    DIR *d = opendir(dir);
    int n = 0;

    ck_assert_ptr_nonnull(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

START_TEST(what_was_written_is_read_back)
{
    char *path = rv_kit_path(dir, "f");
    rv_buf b = RV_BUF_INIT(1 << 20);
    rv_str bytes = {"a\0b\n", 4};

    ck_assert_int_eq(rv_file_write(path, bytes, NULL), 0);
    ck_assert_int_eq(rv_file_write(path, bytes, NULL), 0);
    ck_assert_int_eq(rv_file_read(path, &b, NULL), 0);
    ck_assert(rv_str_eq(rv_buf_str(&b), bytes));
    ck_assert_int_eq(count_entries(), 1);
    rv_buf_fini(&b);
    free(path);
}
END_TEST

START_TEST(a_large_file_is_read_whole_and_an_empty_one_too)
{
    char *path = rv_kit_path(dir, "f");
    rv_buf b = RV_BUF_INIT(300000), in = RV_BUF_INIT(300000);
    size_t i;

    for (i = 0; i < 300000; i++)
        rv_buf_putc(&in, (char)(i * 7 % 251));
    ck_assert_int_eq(rv_file_write(path, rv_buf_str(&in), NULL), 0);
    ck_assert_int_eq(rv_file_read(path, &b, NULL), 0);
    ck_assert(rv_str_eq(rv_buf_str(&b), rv_buf_str(&in)));
    rv_buf_clear(&b);
    ck_assert_int_eq(rv_file_write(path, RV_STR_LIT(""), NULL), 0);
    ck_assert_int_eq(rv_file_read(path, &b, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&b), "");
    rv_buf_fini(&b);
    rv_buf_fini(&in);
    free(path);
}
END_TEST

START_TEST(a_file_above_the_ceiling_is_refused)
{
    char *path = rv_kit_path(dir, "f");
    rv_buf b = RV_BUF_INIT(3);
    rv_err *err = NULL;

    rv_kit_write(path, "abcd");
    ck_assert_int_eq(rv_file_read(path, &b, &err), RV_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "is longer than 3 bytes"));
    rv_err_free(err);
    rv_buf_fini(&b);
    rv_buf_init(&b, 3);
    rv_kit_write(path, "abc");
    ck_assert_int_eq(rv_file_read(path, &b, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&b), "abc");
    rv_buf_fini(&b);
    free(path);
}
END_TEST

START_TEST(failures_say_what_the_system_said)
{
    rv_buf b = RV_BUF_INIT(100);
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(rv_file_read("/nonexistent/x", &b, &err), RV_E_NOT_FOUND);
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, "cannot open \"/nonexistent/x\": No such file or directory  [not_found]\n"
                           "  hint: there is no folder /nonexistent/\n");
    free(text);
    err = NULL;
    ck_assert_int_eq(rv_file_read("/", &b, &err), RV_E_INVALID);
    rv_err_free(err);
    ck_assert_int_eq(rv_file_write(dir, RV_STR_LIT("x"), NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_file_write("/nonexistent/x", RV_STR_LIT("x"), NULL), RV_E_NOT_FOUND);
    rv_buf_fini(&b);
}
END_TEST

/* The nearest name, else files of the same kind, else where paths begin. */
START_TEST(a_file_that_is_not_there_has_a_hint)
{
    static const struct {
        const char *name, *hint;
    } cases[] = {{"lop.yaml", "/loop.yaml?"},
                 {"other-thing.yaml", "files there: loop.yaml, qa.yaml"},
                 {"other.json", "check the path"},
                 {"loop", "/loop.yaml?"},
                 {"no/x.yaml", "/no/"},
                 {"loop.yaml/x", "/loop.yaml/"},
                 {".", "it is a folder: name a file in it"}};
    char *loop = rv_kit_path(dir, "loop.yaml"), *qa = rv_kit_path(dir, "qa.yaml");
    rv_buf b = RV_BUF_INIT(100);

    rv_kit_write(loop, "x");
    rv_kit_write(qa, "x");
    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        char *path = rv_kit_path(dir, cases[i].name);
        rv_err *err = NULL;
        ck_assert_int_lt(rv_file_read(path, &b, &err), 0);
        ck_assert_msg(rv_err_hint_text(err) && strstr(rv_err_hint_text(err), cases[i].hint), "%s: the hint is \"%s\"",
                      path, rv_err_hint_text(err));
        rv_err_free(err);
        free(path);
    }
    unlink(loop);
    unlink(qa);
    free(loop);
    free(qa);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(what_is_written_is_for_its_owner_only)
{
    char *path = rv_kit_path(dir, "f"), *text;
    struct stat st;
    int fd = -1;

    ck_assert_int_eq(rv_file_write(path, RV_STR_LIT("new"), NULL), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_int_eq(rv_file_write(path, RV_STR_LIT("newer"), NULL), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_int_eq(rv_file_create(path, &fd, NULL), 0);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    close(fd);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    text = rv_kit_read(path);
    ck_assert_str_eq(text, "x");
    free(text);
    free(path);
}
END_TEST

START_TEST(a_file_that_is_rewritten_keeps_its_mode)
{
    char *path = rv_kit_path(dir, "rewritten"), *link_path = rv_kit_path(dir, "link");
    struct stat st;

    ck_assert_int_eq(rv_file_rewrite(path, RV_STR_LIT("x"), NULL), RV_E_NOT_FOUND);
    rv_kit_write(path, "old");
    ck_assert_int_eq(chmod(path, 0640), 0);
    ck_assert_int_eq(symlink("rewritten", link_path), 0);
    ck_assert_int_eq(rv_file_rewrite(link_path, RV_STR_LIT("x"), NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_file_rewrite(path, RV_STR_LIT("new"), NULL), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0640);
    char *text = rv_kit_read(path);
    ck_assert_str_eq(text, "new");
    free(text);
    free(path);
    free(link_path);
}
END_TEST

START_TEST(no_link_leads_a_write_elsewhere)
{
    char *path = rv_kit_path(dir, "f"), *link_path = rv_kit_path(dir, "l"), *text;
    rv_err *err = NULL;
    int fd = -1;

    rv_kit_write(path, "old");
    ck_assert_int_eq(symlink("rewritten", link_path), 0);
    ck_assert_int_eq(rv_file_write(link_path, RV_STR_LIT("new"), &err), RV_E_INVALID);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "it is a symbolic link"));
    rv_err_free(err);
    ck_assert_int_eq(rv_file_create(link_path, &fd, NULL), RV_E_INVALID);
    ck_assert_int_eq(unlink(link_path), 0);
    ck_assert_int_eq(symlink("absent", link_path), 0);
    ck_assert_int_eq(rv_file_write(link_path, RV_STR_LIT("new"), NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_file_create(link_path, &fd, NULL), RV_E_INVALID);
    ck_assert_int_eq(unlink(link_path), 0);
    ck_assert_int_eq(link(path, link_path), 0); /* a second name: what is written anew leaves the other one alone */
    ck_assert_int_eq(rv_file_create(link_path, &fd, NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_file_write(link_path, RV_STR_LIT("new"), NULL), 0);
    text = rv_kit_read(path);
    ck_assert_str_eq(text, "old");
    free(text);
    free(link_path);
    free(path);
}
END_TEST

START_TEST(a_device_is_written_to_and_stays)
{
    struct stat st;

    int fd = -1;

    ck_assert_int_eq(rv_file_write("/dev/null", RV_STR_LIT("x"), NULL), 0);
    ck_assert_int_eq(rv_file_create("/dev/null", &fd, NULL), 0);
    close(fd);
    ck_assert_int_eq(stat("/dev/null", &st), 0);
    ck_assert(S_ISCHR(st.st_mode));
}
END_TEST

START_TEST(a_new_file_never_takes_the_place_of_another)
{
    char *path = rv_kit_path(dir, "new"), *link_path = rv_kit_path(dir, "link"), *lost = rv_kit_path(dir, "no/new");
    rv_buf b = RV_BUF_INIT(1 << 10);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_file_write_new(path, RV_STR_LIT("first"), NULL), 0);
    ck_assert_int_eq(rv_file_write_new(path, RV_STR_LIT("second"), &err), RV_E_EXISTS);
    ck_assert_ptr_nonnull(strstr(rv_err_hint_text(err), "not overwritten"));
    rv_err_free(err);
    ck_assert_int_eq(symlink("elsewhere", link_path), 0);
    ck_assert_int_eq(rv_file_write_new(link_path, RV_STR_LIT("x"), NULL), RV_E_EXISTS);
    ck_assert_int_eq(rv_file_write_new(lost, RV_STR_LIT("x"), NULL), RV_E_NOT_FOUND);
    ck_assert_int_eq(rv_file_read(path, &b, NULL), 0);
    ck_assert(rv_str_is(rv_buf_str(&b), "first"));
    ck_assert_int_eq(count_entries(), 2);
    rv_buf_fini(&b);
    free(path);
    free(link_path);
    free(lost);
}
END_TEST

START_TEST(folders_above_a_file_are_for_their_owner)
{
    char *path = rv_kit_path(dir, "a/b/c"), *folder = rv_kit_path(dir, "a/b"), *under = rv_kit_path(dir, "f/g/h");
    char *plain = rv_kit_path(dir, "f");
    struct stat st;

    ck_assert_int_eq(rv_file_make_folders(path, NULL), 0);
    ck_assert_int_eq(rv_file_make_folders(path, NULL), 0);
    ck_assert_int_eq(stat(folder, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0700);
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_int_eq(rv_file_write_new(plain, RV_STR_LIT("x"), NULL), 0);
    ck_assert_int_eq(rv_file_make_folders(under, NULL), RV_E_NOT_FOUND); /* a file stands in the way */
    free(path);
    free(folder);
    free(under);
    free(plain);
}
END_TEST

START_TEST(a_folder_that_cannot_be_read_to_its_end_is_an_error)
{
    DIR *d = opendir(dir), *lost = opendir(dir);
    const struct dirent *entry = NULL;
    rv_err *err = NULL;
    int n = 0;

    for (n = 0; rv_folder_next(d, dir, &entry, NULL) == 0 && entry; n++)
        ;
    ck_assert_int_eq(n, 2);
    ck_assert_ptr_null(entry);
    closedir(d);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(dup2(null, dirfd(lost)), dirfd(lost));
    ck_assert_int_eq(rv_folder_next(lost, "f/g", &entry, &err), RV_E_NOT_FOUND);
    ck_assert_str_eq(rv_err_text(err), "cannot read folder \"f/g\" to its end: Not a directory");
    rv_err_free(err);
    closedir(lost);
    close(null);
}
END_TEST

/* The writing end; a byte each time the pipe is empty. */
static void *write_late(void *self)
{
    int fd = *(int *)self, n;

    for (int i = 0; i < N_LATE; i++) {
        while (ioctl(fd, FIONREAD, &n) == 0 && n > 0)
            sched_yield();
        ck_assert_int_eq(write(fd, "x", 1), 1);
    }
    close(fd);
    return NULL;
}

START_TEST(a_pipe_that_does_not_block_is_read_to_its_end)
{
    int fds[2], n = 0;
    pthread_t writer;

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(rv_thread_start(write_late, &fds[1], &writer, NULL), 0);
    if (_i == 0) {
        rv_buf b = RV_BUF_INIT(N_LATE);
        int before = dup(STDIN_FILENO);
        ck_assert_int_eq(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
        int rc = rv_file_read("-", &b, NULL);
        dup2(before, STDIN_FILENO);
        close(before);
        ck_assert_int_eq(rc, 0);
        n = (int)b.len;
        rv_buf_fini(&b);
        close(fds[0]);
    } else {
        FILE *in = fdopen(fds[0], "r");
        while (rv_stream_getc(in) == 'x')
            n++;
        fclose(in);
    }
    pthread_join(writer, NULL);
    ck_assert_int_eq(n, N_LATE);
}
END_TEST

TCase *file_case(void)
{
    TCase *tc = tcase_create("file");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_file_that_is_rewritten_keeps_its_mode);
    tcase_add_test(tc, what_was_written_is_read_back);
    tcase_add_test(tc, a_large_file_is_read_whole_and_an_empty_one_too);
    tcase_add_test(tc, a_file_above_the_ceiling_is_refused);
    tcase_add_test(tc, failures_say_what_the_system_said);
    tcase_add_test(tc, a_file_that_is_not_there_has_a_hint);
    tcase_add_test(tc, what_is_written_is_for_its_owner_only);
    tcase_add_test(tc, no_link_leads_a_write_elsewhere);
    tcase_add_test(tc, a_device_is_written_to_and_stays);
    tcase_add_test(tc, a_new_file_never_takes_the_place_of_another);
    tcase_add_test(tc, folders_above_a_file_are_for_their_owner);
    tcase_add_test(tc, a_folder_that_cannot_be_read_to_its_end_is_an_error);
    tcase_add_loop_test(tc, a_pipe_that_does_not_block_is_read_to_its_end, 0, 2);
    return tc;
}
