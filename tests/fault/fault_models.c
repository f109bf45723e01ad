/* Every allocation of a run that asks a real model fails once: the run ends, one way or another, without crash or leak.
 * The server is another thread, whose allocations are not counted. Each try is a process of its own, because libuv
 * gives up the process where it can not grow its tables. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coreengine/engine/engine.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"
#include "tests/unit/engine/model_server.h"

#define MAX_ABORTS 8 /* the tables of libuv's loop, each time that it grows */

/* What became of a try: the exit status of its process. */
enum { COMPLETED, FAILED, WITHOUT_MEMORY, NOTHING_FIRED, LEAKED, WRONG };

static struct model_server server;

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    (void)from;
    *(size_t *)self += d->kind == RV_LLM_DELTA_TEXT;
    return true;
}

static int drive(rv_engine *e, const struct rv_pipeline *p, rv_err **err)
{
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("what is it?"), .user_id = RV_STR_LIT("ada")};
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct rv_rand_state rand;
    rv_envelope *env = NULL;
    rv_exec *x = NULL;
    size_t n_pieces = 0;

    opts.pipeline = p;
    opts.observer.on_delta = on_delta;
    opts.observer.self = &n_pieces;
    int rc = rv_envelope_new(&seed, rv_rand_seeded(&rand, 1), rv_engine_now_us(e), &env, err);
    if (rc == 0)
        rc = rv_engine_start(e, &opts, env, NULL, &x, err);
    if (rc == 0)
        rc = rv_engine_wait(e, x, err);
    int outcome = rc == 0 && rv_exec_status(x) == RV_RUN_COMPLETED && n_pieces == 2 ? COMPLETED
                  : rc == 0 && rv_exec_status(x) == RV_RUN_FAILED                   ? FAILED
                  : rc == RV_E_NOMEM                                                ? WITHOUT_MEMORY
                                                                                    : WRONG;
    rv_exec_free(x);
    return outcome;
}

static int scenario(const struct rv_pipeline *p)
{
    const struct rv_engine_opts opts = {.workers = 1};
    rv_engine *e = NULL;
    rv_err *err = NULL;

    int rc = rv_engine_new(&opts, &e, &err);
    int outcome = rc == 0 ? drive(e, p, &err) : rc == RV_E_NOMEM ? WITHOUT_MEMORY : WRONG;
    rv_engine_free(e);
    rv_err_free(err);
    return outcome;
}

/* The exit status of a process where the n-th allocation failed; -1: it aborted. */
static int try_without(const struct rv_pipeline *p, size_t n)
{
    const struct rlimit no_core = {0, 0};
    int status = 0;

    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &no_core);
        rv_fault_arm(n);
        int outcome = scenario(p);
        if (!rv_fault_disarm())
            outcome = outcome == COMPLETED ? NOTHING_FIRED : WRONG;
        else if (rv_fault_balance() != 0)
            outcome = LEAKED;
        _exit(outcome);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        ck_assert_msg(WTERMSIG(status) == SIGABRT, "allocation %zu: signal %d", n, WTERMSIG(status));
        return -1;
    }
    return WEXITSTATUS(status);
}

START_TEST(any_allocation_may_fail)
{
    static const struct plan plan[] = {{.status = 200, .body = PIECE("Hel") PIECE("lo") THE_END}};
    size_t n = 0, n_seen[WRONG + 1] = {0}, n_aborts = 0;
    rv_findings *f = rv_findings_new();
    struct rv_pipeline *p = NULL;
    char text[400];
    int outcome;

    model_server_start(&server, plan, 1);
    snprintf(text, sizeof text,
             "name: talk\nmodels: {default: {model: \"openai:m\", base_url: \"http://127.0.0.1:%d/v1\", proxy: \"\", "
             "max_attempts: 1}}\nexecution: {llm_timeout: 1, max_llm_retries: 0}\n"
             "agents: [{name: ask, has_llm: true, model_role: default, output_mode: text}]\n",
             server.port);
    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(text), "p.yaml", ".", f, &p, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    ck_assert_int_eq(scenario(p), COMPLETED); /* opens libcurl */

    /* where libcurl can not remember a socket, the call ends by its deadline */
    while ((outcome = try_without(p, n)) != NOTHING_FIRED) {
        ck_assert_msg(outcome < LEAKED, "allocation %zu: %s", n, outcome == LEAKED ? "it leaks" : "it ends wrongly");
        if (outcome < 0)
            n_aborts++;
        else
            n_seen[outcome]++;
        n++;
    }
    printf("%zu allocations: %zu runs without memory, %zu failed, %zu completed, %zu gave up the process\n", n,
           n_seen[WITHOUT_MEMORY], n_seen[FAILED], n_seen[COMPLETED], n_aborts);
    ck_assert(n > 100 || !rv_fault_works());
    ck_assert_uint_le(n_aborts, MAX_ABORTS);
    ck_assert_uint_ge(n_seen[WITHOUT_MEMORY] + n_seen[FAILED], n / 2);
    rv_pipeline_free(p);
    rv_findings_free(f);
    model_server_stop(&server);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_models");
    TCase *tc = tcase_create("models");

    tcase_add_test(tc, any_allocation_may_fail);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
