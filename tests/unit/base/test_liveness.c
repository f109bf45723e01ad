/* The mark of a process: made once, another one for a child, and none when the process has no descriptor left. */
#include "coreengine/base/base.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/base/suites.h"

START_TEST(a_process_has_a_mark_that_others_see)
{
    char name[RV_LIVENESS_MAX], again[RV_LIVENESS_MAX];

    ck_assert(rv_liveness_make_name(name));
    ck_assert(rv_liveness_make_name(again));
    ck_assert_str_eq(again, name);
    ck_assert_int_gt(rv_liveness_fd(), STDERR_FILENO);
    ck_assert_int_eq(rv_liveness_of(name), RV_LIVENESS_HELD);
    name[strlen(name) - 1] = name[strlen(name) - 1] == '0' ? '1' : '0';
    ck_assert_int_eq(rv_liveness_of(name), RV_LIVENESS_GONE);
    ck_assert_int_eq(rv_liveness_of("no mark"), RV_LIVENESS_UNKNOWN);
}
END_TEST

START_TEST(without_a_descriptor_there_is_no_mark)
{
    struct rlimit few;
    char name[RV_LIVENESS_MAX];

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
    few.rlim_cur = 1;
    pid_t child = fork(); /* a process asks once and keeps what it heard */
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(setrlimit(RLIMIT_NOFILE, &few) != 0 || rv_liveness_make_name(name) || rv_liveness_fd() != -1);
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

TCase *liveness_case(void)
{
    TCase *tc = tcase_create("liveness");

    tcase_add_test(tc, without_a_descriptor_there_is_no_mark); // first: a mark stays
    tcase_add_test(tc, a_process_has_a_mark_that_others_see);
    return tc;
}
