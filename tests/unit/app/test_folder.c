/* A folder of pipelines is listed whole or not at all. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "coreengine/app/app.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

static int count(void *self, const char *name, rv_err **err)
{
    (void)name;
    (void)err;
    ++*(int *)self;
    return 0;
}

/* The code, and what is told begins with `text`. */
static void want(const char *folder, int rc, const char *text, int n)
{
    rv_err *err = NULL;
    int found = 0;

    ck_assert_int_eq(rv_app_list_pipelines(folder, count, &found, &err), rc);
    ck_assert_msg(strncmp(rv_err_text(err), text, strlen(text)) == 0, "%s", rv_err_text(err));
    ck_assert_int_eq(found, n);
    rv_err_free(err);
}

START_TEST(a_folder_that_cannot_be_read_is_an_error)
{
    struct rlimit few = {0, 0};
    char *dir = rv_kit_tmpdir(), *file = rv_kit_path(dir, "one.yaml"), *gone = rv_kit_path(dir, "gone");
    char *pipe = rv_kit_path(dir, "pipe.yaml");

    rv_kit_write(file, "name: one\n");
    ck_assert_int_eq(mkfifo(pipe, 0600), 0); /* none of the pipelines: opening it would wait for a writer */
    want(NULL, 0, "", 0);
    want(dir, 0, "", 1);
    want(gone, RV_E_IO, "cannot read the folder of pipelines \"", 0);
    want(file, RV_E_IO, "cannot read the folder of pipelines \"", 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
    few.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    want(dir, RV_E_FILES, "cannot read the folder of pipelines \"", 0);
    few.rlim_cur = few.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    free(pipe);
    free(gone);
    free(file);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

static int n_more = -1; /* entries that a folder has still; -1: those of the system */

/* In place of the system's, for the code that this program is linked with. */
struct dirent *readdir(DIR *dir)
{
    static struct dirent made;
    struct dirent *(*of_the_system)(DIR * dir);

    *(void **)&of_the_system = dlsym(RTLD_NEXT, "readdir");
    if (n_more < 0)
        return of_the_system(dir);
    if (n_more == 0)
        return NULL;
    snprintf(made.d_name, sizeof made.d_name, "p%d.yaml", n_more--);
    return &made;
}

START_TEST(a_folder_with_too_many_pipelines_is_not_listed_in_part)
{
    n_more = 10001;
    want("/", RV_E_LIMIT, "the folder \"/\" has more than 10000 pipelines", 0);
    n_more = 10000;
    want("/", 0, "", 10000);
    n_more = -1;
}
END_TEST

TCase *folder_case(void)
{
    TCase *tc = tcase_create("folder");

    tcase_add_test(tc, a_folder_that_cannot_be_read_is_an_error);
    tcase_add_test(tc, a_folder_with_too_many_pipelines_is_not_listed_in_part);
    return tc;
}
