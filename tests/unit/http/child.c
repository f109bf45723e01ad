#include "child.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void child_start(struct child *c, char *const argv[], const char *before)
{
    posix_spawn_file_actions_t actions;
    char line[200];
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(posix_spawn_file_actions_init(&actions), 0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, fds[1], 1), 0);
    ck_assert_int_eq(posix_spawn_file_actions_addclose(&actions, fds[0]), 0);
    ck_assert_int_eq(posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0), 0);
    ck_assert_int_eq(posix_spawnp(&c->pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    c->says = fdopen(fds[0], "r");
    ck_assert_ptr_nonnull(c->says);
    c->port = 0;
    while (c->port == 0 && fgets(line, sizeof line, c->says))
        if (strncmp(line, before, strlen(before)) == 0 && strrchr(line, ':'))
            c->port = (int)strtol(strrchr(line, ':') + 1, NULL, 10);
    ck_assert_int_gt(c->port, 0);
}

void child_kill(struct child *c)
{
    if (c->pid == 0)
        return;
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    c->pid = 0;
}

void child_stop(struct child *c)
{
    child_kill(c);
    fclose(c->says);
}

void make_certificate(const char *dir, const char *name)
{
    char command[1000];

    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test"
             " -addext subjectAltName=IP:127.0.0.1 -keyout '%s/%s.key' -out '%s/%s.pem' 2>/dev/null",
             dir, name, dir, name);
    ck_assert_int_eq(system(command), 0);
}
