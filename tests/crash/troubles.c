/* What is done to the workers of crash_workers, and to their server: killed, drained, cut off, restarted. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/crash/workers.h"

/* --- workers --- */

void start_worker(struct world *w, int i)
{
    char log[64];

    snprintf(log, sizeof log, "worker.%d", i);
    char *path = rv_kit_path(w->dir, log);
    unlink(path); /* what the one before it said is not its word: see is_working() */
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(w->reeve, "reeve", "worker", "--store", w->store, "--sync", w->sync, "--lease", w->server ? "5" : "1",
              "--concurrency", "8", "--grace", "600s", "--capability-path", w->capabilities, (char *)NULL);
        _exit(127);
    }
    if (pid < 0)
        rv_kit_die("fork failed");
    free(path);
    w->workers[i] = pid;
}

/* A worker ends by itself when it was started, or had to give its runs up, while no server answered. It says so then,
 * and its runs are taken over; nothing else may end one. */
static void check_ended(const struct world *w, int i, int status)
{
    char log[64];

    snprintf(log, sizeof log, "worker.%d", i);
    char *path = rv_kit_path(w->dir, log), *said = rv_kit_read(path);
    free(path);
    if (!w->server || !WIFEXITED(status) || !strstr(said, "is the server running"))
        rv_kit_die("a worker ended with status %d: %s", status, said);
    free(said);
}

/* As whatever keeps services running does it: a worker that ended is started again. */
static void start_ended(struct world *w)
{
    int status;

    for (int i = 0; i < N_WORKERS; i++) {
        if (w->workers[i] <= 0 || waitpid(w->workers[i], &status, WNOHANG) != w->workers[i])
            continue;
        check_ended(w, i, status);
        w->n_refused++;
        start_worker(w, i);
    }
}

/* Until something was written beside the store, or for a while. */
void wait_for_change(struct world *w)
{
    struct pollfd p = {.fd = w->watch, .events = POLLIN};
    char events[4096];

    if (poll(&p, 1, LOOK_MS) > 0)
        while (read(w->watch, events, sizeof events) > 0)
            continue;
    start_ended(w);
}

static void kill_one(struct world *w)
{
    int i = (int)rv_rand_below(w->rand, N_WORKERS), status;

    kill(w->workers[i], SIGKILL);
    waitpid(w->workers[i], &status, 0);
    if (WIFEXITED(status)) {
        check_ended(w, i, status);
        w->n_refused++;
    } else {
        w->n_kills++;
    }
    start_worker(w, i);
}

/* It has said so: before that a signal ends it like any program. */
static bool is_working(const struct world *w, int i)
{
    char log[64];
    struct stat st;

    snprintf(log, sizeof log, "worker.%d", i);
    char *path = rv_kit_path(w->dir, log);
    bool is = stat(path, &st) == 0 && st.st_size > 0;
    free(path);
    return is;
}

static void check_drained(const struct world *w, int i, int status)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        check_ended(w, i, status);
}

/* SIGTERM: each drains, and ends well. */
void drain_all(struct world *w)
{
    int status;

    for (int i = 0; i < N_WORKERS; i++)
        while (!is_working(w, i))
            wait_for_change(w);
    for (int i = 0; i < N_WORKERS; i++)
        kill(w->workers[i], SIGTERM);
    for (int i = 0; i < N_WORKERS; i++) {
        waitpid(w->workers[i], &status, 0);
        check_drained(w, i, status);
    }
}

static void drain_one(struct world *w)
{
    int i = (int)rv_rand_below(w->rand, N_WORKERS), status;

    while (!is_working(w, i))
        wait_for_change(w);
    kill(w->workers[i], SIGTERM);
    waitpid(w->workers[i], &status, 0);
    check_drained(w, i, status);
    w->n_drained++;
    start_worker(w, i);
}

/* --- the server --- */

static void end_a_connection(struct world *w)
{
    char *said = rv_kit_postgres_sql(w->server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                                                " application_name = 'reeve' ORDER BY random() LIMIT 1");

    w->n_ended += said[0] == 't';
    free(said);
}

/* Once when a third of the runs was submitted, and once when two thirds were. */
static bool restart_server(struct world *w)
{
    if (w->n_restarts >= 2 || w->n_submitted < w->n_runs * (w->n_restarts + 1) / 3)
        return false;
    rv_kit_postgres_stop(w->server, w->n_restarts == 0 ? SIGINT : SIGKILL);
    rv_kit_postgres_restart(w->server);
    w->n_restarts++;
    return true;
}

void make_trouble(struct world *w)
{
    long nth = w->n_kills + w->n_drained + w->n_ended;

    if (w->server && restart_server(w))
        return;
    if (!w->server || nth % 3 == 0)
        kill_one(w);
    else if (nth % 3 == 1)
        drain_one(w);
    else
        end_a_connection(w);
}
