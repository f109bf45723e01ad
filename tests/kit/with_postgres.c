/* with_postgres [--disk] COMMAND...: run a command while a private server of PostgreSQL runs. The command has
 * REEVE_STORE (a URL of that server) and what libpq and psql need to find it (PGHOST, PGPORT, PGUSER) in its
 * environment. --disk: a commit waits for the disk, as it does in use. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"

int main(int argc, char **argv)
{
    struct rv_kit_postgres pg = {0};
    int at = argc > 1 && strcmp(argv[1], "--disk") == 0 ? 2 : 1, status = 0;

    if (at >= argc)
        rv_kit_die("usage: with_postgres [--disk] COMMAND...");
    pg.waits_for_disk = at == 2;
    rv_kit_postgres_start(&pg);
    setenv("REEVE_STORE", pg.url, 1);
    setenv("PGHOST", pg.dir, 1);
    setenv("PGPORT", "1", 1);
    setenv("PGUSER", "reeve", 1);
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[at], argv + at);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        rv_kit_die("cannot run %s", argv[at]);
    rv_kit_postgres_end(&pg);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
