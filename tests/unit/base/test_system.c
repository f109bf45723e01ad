/* What the system refuses: each errno has its code, and threads and descriptors that are not there are errors that say
 * so. Threads are refused by a default stack that no machine has. */
#include "coreengine/base/base.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/base/suites.h"

#define NO_STACK ((size_t)1 << 46) /* bytes; half of all addresses of a process */

START_TEST(each_refusal_of_the_system_has_a_code)
{
    static const struct {
        int number, code;
        const char *hint; /* a part; NULL: none */
    } cases[] = {
        {ENOMEM, RV_E_NOMEM, NULL},
        {ENOSPC, RV_E_DISK, "make room"},
        {EDQUOT, RV_E_DISK, "quota"},
        {EFBIG, RV_E_DISK, "ulimit -f"},
        {EMFILE, RV_E_FILES, "ulimit -n"},
        {ENFILE, RV_E_FILES, "fs.file-max"},
        {EAGAIN, RV_E_IO, NULL}, /* of a read: nothing is there yet */
        {EACCES, RV_E_DENIED, NULL},
        {EPERM, RV_E_DENIED, NULL},
        {EROFS, RV_E_DENIED, NULL},
        {ENOENT, RV_E_NOT_FOUND, NULL},
        {ENOTDIR, RV_E_NOT_FOUND, NULL},
        {EEXIST, RV_E_EXISTS, NULL},
        {EIO, RV_E_IO, NULL},
        {4711, RV_E_IO, NULL},
    };

    for (size_t i = 0; i < RV_COUNT(cases); i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            rv_err *err = NULL;
            ck_assert_int_eq(rv_code_of_system(sign * cases[i].number), cases[i].code);
            ck_assert_int_eq(RV_FAIL_SYSTEM(&err, sign * cases[i].number, "open \"%s\"", "x"), cases[i].code);
            ck_assert_int_eq(strncmp(rv_err_text(err), "open \"x\": ", 10), 0);
            ck_assert_str_eq(rv_err_text(err) + 10, strerror(cases[i].number));
            const char *hint = rv_err_hint_text(err);
            ck_assert_msg(cases[i].hint ? hint && strstr(hint, cases[i].hint) : !hint, "%d: %s", cases[i].number, hint);
            rv_err_free(err);
        }
    ck_assert_int_eq(RV_FAIL_SYSTEM(NULL, EMFILE, "x"), RV_E_FILES);
}
END_TEST

START_TEST(only_what_starts_a_thread_or_process_is_refused_for_want_of_threads)
{
    static const struct {
        int number, code;
        const char *hint; /* a part; NULL: none */
    } cases[] = {{EAGAIN, RV_E_THREADS, "pids.max"}, {ENOENT, RV_E_NOT_FOUND, NULL}, {EMFILE, RV_E_FILES, "ulimit -n"}};

    for (size_t i = 0; i < RV_COUNT(cases); i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            rv_err *err = NULL;
            ck_assert_int_eq(RV_FAIL_START(&err, sign * cases[i].number, "start \"%s\"", "x"), cases[i].code);
            ck_assert_int_eq(strncmp(rv_err_text(err), "start \"x\": ", 11), 0);
            ck_assert_str_eq(rv_err_text(err) + 11, strerror(cases[i].number));
            const char *hint = rv_err_hint_text(err);
            ck_assert_msg(cases[i].hint ? hint && strstr(hint, cases[i].hint) : !hint, "%d: %s", cases[i].number, hint);
            rv_err_free(err);
        }
    ck_assert_int_eq(RV_FAIL_START(NULL, EAGAIN, "x"), RV_E_THREADS);
}
END_TEST

START_TEST(what_a_person_can_give_back_is_scarce_and_memory_is_not)
{
    for (int code = -RV_N_CODES; code <= 0; code++)
        ck_assert_int_eq(rv_code_is_scarce(code), code == RV_E_DISK || code == RV_E_FILES || code == RV_E_THREADS);
}
END_TEST

static void *see_mask(void *self)
{
    sigset_t *mask = self;

    pthread_sigmask(SIG_BLOCK, NULL, mask);
    return NULL;
}

START_TEST(a_thread_starts_with_all_signals_blocked_but_those_of_its_faults)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t in_thread, before, after;
    pthread_t thread;
    rv_err *err = NULL;

    sigemptyset(&in_thread);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    ck_assert_int_eq(rv_thread_start(see_mask, &in_thread, &thread, &err), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(sigismember(&in_thread, SIGTERM), 1);
    ck_assert_int_eq(sigismember(&in_thread, SIGUSR1), 1);
    for (size_t i = 0; i < RV_COUNT(faults); i++)
        ck_assert_msg(sigismember(&in_thread, faults[i]) == 0, "signal %d is blocked", faults[i]);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int i = 1; i < NSIG; i++)
        ck_assert_int_eq(sigismember(&after, i), sigismember(&before, i));
}
END_TEST

START_TEST(a_thread_that_the_system_refuses_is_an_error_of_its_own)
{
    pthread_attr_t attr, before;
    pthread_t thread;
    sigset_t unused;
    rv_err *err = NULL;

    ck_assert_int_eq(pthread_getattr_default_np(&before), 0);
    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, NO_STACK), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&attr), 0);
    int rc = rv_thread_start(see_mask, &unused, &thread, &err);
    ck_assert_int_eq(pthread_setattr_default_np(&before), 0);
    ck_assert_int_eq(rc, RV_E_THREADS);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "start a thread: "));
    ck_assert_ptr_nonnull(strstr(rv_err_hint_text(err), "ulimit -u"));
    rv_err_free(err);
    pthread_attr_destroy(&attr);
    pthread_attr_destroy(&before);
}
END_TEST

START_TEST(descriptors_that_are_not_left_are_an_error_of_its_own)
{
    struct rlimit before, few;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_descriptors_check(4, &err), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    ck_assert_int_ge(next, 0);
    close(next);
    few = (struct rlimit){(rlim_t)next + 3, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    int rc = rv_descriptors_check(4, &err), enough = rv_descriptors_check(1, NULL), again = dup(0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(rc, RV_E_FILES);
    ck_assert_int_eq(enough, 0);
    ck_assert_int_eq(again, next); /* all were closed */
    close(again);
    rv_err_free(err);
}
END_TEST

TCase *system_case(void)
{
    TCase *tc = tcase_create("system");

    tcase_add_test(tc, each_refusal_of_the_system_has_a_code);
    tcase_add_test(tc, only_what_starts_a_thread_or_process_is_refused_for_want_of_threads);
    tcase_add_test(tc, what_a_person_can_give_back_is_scarce_and_memory_is_not);
    tcase_add_test(tc, a_thread_starts_with_all_signals_blocked_but_those_of_its_faults);
    tcase_add_test(tc, a_thread_that_the_system_refuses_is_an_error_of_its_own);
    tcase_add_test(tc, descriptors_that_are_not_left_are_an_error_of_its_own);
    return tc;
}
