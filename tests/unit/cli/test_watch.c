/* Folders that cannot be watched: the verb ends, and does not wait for changes that it cannot see. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coreengine/cli/verbs/watch_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

static int refusal;              /* an errno; 0: the system decides */
static const char *refused = ""; /* how the names of folders end that it is for */

/* In place of that of the C library. */
int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    size_t len = strlen(path), n = strlen(refused);

    if (refusal && len >= n && strcmp(path + len - n, refused) == 0) {
        errno = refusal;
        return -1;
    }
    return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}

/* The code of beginning to watch dir/loop.yaml, with a folder dir/prompts; *text: what is told. */
static int begin(const char *dir, char **text)
{
    char *paths[] = {rv_kit_path(dir, "loop.yaml")}, *inner = rv_kit_path(dir, "prompts");
    const struct rv_cli_files files = {.paths = paths, .n = 1};
    struct rv_cli_watch w = RV_CLI_WATCH_INIT;
    rv_err *err = NULL;

    ck_assert(mkdir(inner, 0700) == 0 || errno == EEXIST || errno == ENOENT);
    int rc = cli_watch_begin(&w, &files, &err);
    ck_assert_int_eq(w.fd >= 0, rc == 0);
    *text = rv_kit_err_take(err);
    cli_watch_end(&w);
    free(paths[0]);
    free(inner);
    return rc;
}

static const struct {
    int number;
    const char *folder;
    int rc;
    const char *text;
} refusals[] = {
    {ENOSPC, "", RV_E_LIMIT, "the system allows this user no more watches"},
    {ENOSPC, "/prompts", RV_E_LIMIT, "/prompts\": the system allows this user no more watches"},
    {ENOMEM, "/prompts", RV_E_NOMEM, "/prompts\": Cannot allocate memory"},
    {EACCES, "", RV_E_DENIED, "cannot watch folder \""},
    {EACCES, "/prompts", 0, ""}, /* what cannot be read is not part of a run */
    {ENOENT, "/prompts", 0, ""}, /* gone meanwhile */
    {0, "", 0, ""},
};

START_TEST(a_folder_that_cannot_be_watched_is_told)
{
    char *dir = rv_kit_tmpdir(), *text;

    refusal = refusals[_i].number;
    refused = refusals[_i].folder;
    ck_assert_int_eq(begin(dir, &text), refusals[_i].rc);
    if (refusals[_i].rc < 0)
        ck_assert_msg(strstr(text, refusals[_i].text) != NULL, "%s", text);
    free(text);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* The first folder on the way to it that is there. */
START_TEST(a_folder_that_is_gone_may_be_made)
{
    char *dir = rv_kit_tmpdir(), *gone = rv_kit_path(dir, "not/there"), *text;

    refusal = 0;
    ck_assert_int_eq(begin(gone, &text), 0);
    free(text);
    refusal = ENOSPC;
    refused = dir;
    ck_assert_int_eq(begin(gone, &text), RV_E_LIMIT);
    ck_assert_msg(strstr(text, dir) != NULL, "%s", text);
    free(text);
    free(gone);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* It was read, or would have been. */
START_TEST(a_file_that_cannot_be_watched_is_told_before_it_is_waited_for)
{
    char *dir = rv_kit_tmpdir(), *paths[] = {rv_kit_path(dir, "loop.yaml")};
    const struct rv_cli_files files = {.paths = paths, .n = 1};
    struct rv_cli_watch w = RV_CLI_WATCH_INIT;
    rv_buf text = RV_BUF_INIT(16);
    rv_err *err = NULL;

    refusal = ENOSPC;
    refused = "/usr";
    ck_assert_int_eq(cli_watch_begin(&w, &files, NULL), 0);
    cli_watch_reads(&w, true);
    ck_assert_int_lt(rv_file_read("/usr/absent-file", &text, NULL), 0);
    cli_watch_reads(&w, false);
    ck_assert_int_eq(cli_watch_wait(&w, &err), RV_E_LIMIT);
    ck_assert_msg(strstr(rv_err_text(err), "/usr\"") != NULL, "%s", rv_err_text(err));
    rv_err_free(err);
    cli_watch_end(&w);
    rv_buf_fini(&text);
    free(paths[0]);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

Suite *watch_suite(void)
{
    Suite *s = suite_create("watch");
    TCase *tc = tcase_create("watch");

    tcase_add_loop_test(tc, a_folder_that_cannot_be_watched_is_told, 0, RV_COUNT(refusals));
    tcase_add_test(tc, a_folder_that_is_gone_may_be_made);
    tcase_add_test(tc, a_file_that_cannot_be_watched_is_told_before_it_is_waited_for);
    suite_add_tcase(s, tc);
    return s;
}
