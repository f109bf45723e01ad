/* Telling whether the process that ran something is still there. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

/* This process's name with other parts; "" keeps one. mark NULL: as an older version would have written it. */
static void vary(char out[RV_OWNER_MAX], const char *host, const char *boot, const char *pid, const char *began,
                 const char *mark)
{
    const char *const parts[] = {host, boot, pid, began, mark};
    char me[RV_OWNER_MAX];
    const char *at = me;
    size_t n = 0;

    rv_owner_make_name(me);
    for (size_t i = 0; i < RV_COUNT(parts) - !mark; i++) {
        size_t len = strcspn(at, "/");
        ck_assert(at[len] == (i < 4 ? '/' : '\0'));
        n += (size_t)snprintf(out + n, RV_OWNER_MAX - n, "%s%.*s", i ? "/" : "", *parts[i] ? 100 : (int)len,
                              *parts[i] ? parts[i] : at);
        at += len + 1;
    }
}

static const struct {
    const char *host, *boot, *pid, *began, *mark;
    bool is_dead;
} cases[] = {
    {"", "", "", "", NULL, false},                 /* this process */
    {"", "", "", "1", NULL, true},                 /* its number, given to another */
    {"", "00000000", "", "", NULL, false},         /* an earlier boot, or another machine with this name */
    {"", "", "4000000", "", NULL, true},           /* no such process */
    {"elsewhere", "", "4000000", "", NULL, false}, /* who knows */
    {"elsewhere", "00000000", "", "", NULL, false},
    {"", "unknown", "4000000", "", NULL, false},
    {"", "", "4000000", "0", NULL, false}, /* written where /proc was not to be had */
    {"", "", "", "", "", false},           /* this process, with its mark */
    {"", "", "4000000", "", "", false},    /* its process is gone, a thread or a child is not */
    {"", "", "", "1", "", false},
    {"", "00000000", "", "", "", false},
    {"elsewhere", "", "", "", "", false},
    {"", "", "4000000", "", "1-0123456789abcdef", false}, /* in a network namespace that cannot be seen from here */
    {"", "", "4000000", "", "nonsense", false},
};

START_TEST(only_what_is_known_to_be_gone_is_dead)
{
    char name[RV_OWNER_MAX];

    vary(name, cases[_i].host, cases[_i].boot, cases[_i].pid, cases[_i].began, cases[_i].mark);
    ck_assert_msg(rv_owner_is_dead(name) == cases[_i].is_dead, "%s", name);
}
END_TEST

START_TEST(a_mark_that_is_not_held_is_that_of_a_dead_owner)
{
    char name[RV_OWNER_MAX], mark[RV_OWNER_MAX];

    rv_owner_make_name(name);
    snprintf(mark, sizeof mark, "%s", strrchr(name, '/') + 1);
    memcpy(strchr(mark, '-') + 1, "0123456789abcdef", 16);
    vary(name, "", "", "", "", mark);
    ck_assert_msg(rv_owner_is_dead(name), "%s", name);
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

static void *sleep_on(void *self)
{
    (void)self;
    pause();
    return NULL;
}

/* A process of which only a second thread is left: its name is in `name`, with a mark and as older versions wrote it.
 */
static pid_t start_without_first_thread(char name[RV_OWNER_MAX], char old[RV_OWNER_MAX])
{
    char path[64], text[1024] = "";
    pthread_t thread;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        rv_owner_make_name(name);
        if (pthread_create(&thread, NULL, sleep_on, NULL) != 0 || write(fds[1], name, RV_OWNER_MAX) != RV_OWNER_MAX)
            _exit(1);
        syscall(SYS_exit, 0); /* this thread alone */
    }
    ck_assert_int_eq(read(fds[0], name, RV_OWNER_MAX), RV_OWNER_MAX);
    close(fds[0]);
    close(fds[1]);
    memcpy(old, name, RV_OWNER_MAX);
    *strrchr(old, '/') = '\0';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    while (!strstr(text, ") Z ")) {
        FILE *f = fopen(path, "re");
        ck_assert_ptr_nonnull(f);
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        fclose(f);
    }
    return pid;
}

START_TEST(a_zombie_with_a_thread_is_not_dead)
{
    char name[RV_OWNER_MAX], old[RV_OWNER_MAX];
    int64_t patience_us = 3000;
    pid_t pid = start_without_first_thread(name, old);

    ck_assert_msg(!rv_owner_is_dead(name), "%s", name);
    ck_assert_msg(!rv_owner_is_dead(old), "%s", old);
    ck_assert(!rv_owner_wait_dead(name, &patience_us)); /* looks again, but not for ever */
    ck_assert_int_le(patience_us, 0);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_msg(rv_owner_is_dead(name), "%s", name);
    ck_assert_msg(rv_owner_is_dead(old), "%s", old);
}
END_TEST

START_TEST(a_child_with_the_mark_keeps_its_parent_alive)
{
    char name[RV_OWNER_MAX];
    int64_t patience_us = INT64_C(60000000);
    int fds[2], gate[2];

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(pipe(gate), 0);
    pid_t pid = fork();
    if (pid == 0) {
        rv_owner_make_name(name);
        close(gate[1]);
        if (fork() == 0) /* ends with the test, or when it closes the gate */
            _exit(read(gate[0], name, 1) == 0 ? 0 : 1);
        _exit(write(fds[1], name, sizeof name) == sizeof name ? 0 : 1);
    }
    ck_assert_int_eq(read(fds[0], name, sizeof name), (ssize_t)sizeof name);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_msg(!rv_owner_is_dead(name), "%s", name);
    close(gate[1]);
    ck_assert_msg(rv_owner_wait_dead(name, &patience_us), "%s", name);
    ck_assert(rv_owner_is_dead(name));
    close(gate[0]);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

START_TEST(a_killed_process_is_dead_before_its_parent_knows)
{
    char name[RV_OWNER_MAX];
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        rv_owner_make_name(name);
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
    tcase_add_test(tc, a_mark_that_is_not_held_is_that_of_a_dead_owner);
    tcase_add_test(tc, a_zombie_with_a_thread_is_not_dead);
    tcase_add_test(tc, a_child_with_the_mark_keeps_its_parent_alive);
    tcase_add_test(tc, a_killed_process_is_dead_before_its_parent_knows);
    return tc;
}
