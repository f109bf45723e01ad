/* Telling whether the process that ran something is still there. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

/* This process's name with other parts; "" keeps one. */
static void vary(char out[RV_OWNER_MAX], const char *host, const char *boot, const char *pid, const char *began)
{
    const char *const parts[] = {host, boot, pid, began};
    char me[RV_OWNER_MAX];
    const char *at = me;
    size_t n = 0;

    rv_owner_name(me);
    for (size_t i = 0; i < RV_COUNT(parts); i++) {
        size_t len = strcspn(at, "/");
        ck_assert(at[len] == (i < 3 ? '/' : '\0'));
        n += (size_t)snprintf(out + n, RV_OWNER_MAX - n, "%s%.*s", i ? "/" : "", *parts[i] ? 100 : (int)len,
                              *parts[i] ? parts[i] : at);
        at += len + 1;
    }
}

static const struct {
    const char *host, *boot, *pid, *began;
    bool is_dead;
} cases[] = {
    {"", "", "", "", false},                 /* this process */
    {"", "", "", "1", true},                 /* its number, given to another */
    {"", "00000000", "", "", true},          /* before the machine was booted */
    {"", "", "4000000", "", true},           /* no such process */
    {"elsewhere", "", "4000000", "", false}, /* who knows */
    {"elsewhere", "00000000", "", "", false},
    {"", "unknown", "4000000", "", false},
    {"", "", "4000000", "0", false}, /* written where /proc was not to be had */
};

START_TEST(only_what_is_known_to_be_gone_is_dead)
{
    char name[RV_OWNER_MAX];

    vary(name, cases[_i].host, cases[_i].boot, cases[_i].pid, cases[_i].began);
    ck_assert_msg(rv_owner_is_dead(name) == cases[_i].is_dead, "%s", name);
}
END_TEST

START_TEST(other_texts_are_not_dead)
{
    static const char *const texts[] = {"",
                                        "a",
                                        "worker-7",
                                        "a/b/c/d",
                                        "a/b/1/2/3",
                                        "////",
                                        "a/b/-1/5",
                                        "a/00000000/1/",
                                        "a/00000000/99999999999999999999/1"};

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        ck_assert_msg(!rv_owner_is_dead(texts[i]), "%s", texts[i]);
    ck_assert(!rv_owner_is_dead(NULL));
}
END_TEST

START_TEST(a_killed_process_is_dead_before_its_parent_knows)
{
    char name[RV_OWNER_MAX];
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        rv_owner_name(name);
        if (write(fds[1], name, sizeof name) != sizeof name)
            _exit(1);
        pause();
        _exit(0);
    }
    ck_assert_int_eq(read(fds[0], name, sizeof name), (ssize_t)sizeof name);
    ck_assert(!rv_owner_is_dead(name));
    siginfo_t info;
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_msg(rv_owner_is_dead(name), "a zombie: %s", name);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_msg(rv_owner_is_dead(name), "reaped: %s", name);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

TCase *owner_case(void)
{
    TCase *tc = tcase_create("owner");

    tcase_add_loop_test(tc, only_what_is_known_to_be_gone_is_dead, 0, (int)RV_COUNT(cases));
    tcase_add_test(tc, other_texts_are_not_dead);
    tcase_add_test(tc, a_killed_process_is_dead_before_its_parent_knows);
    return tc;
}
