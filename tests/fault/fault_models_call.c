/* Each allocation of the service models.call fails once, while the model is asked and while a call that is made again
 * is answered from its run. No crash, no leak; the call fails, or its answer is whole; and the store that is left
 * answers the same call later. Each try is a process of its own, because libuv gives up the process where it cannot
 * grow its tables. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coreengine/app/app.h"
#include "coreengine/store/store.h"
#include "coreengine/tools/script/script.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define TRIES 100 /* of each scenario */

/* How a try ended: the exit status of its process. */
enum { ANSWERED, REFUSED, NOTHING_FIRED, LEAKED, WRONG, LATER_WRONG };

static const struct {
    const char *name, *args;
    bool is_again; /* the store has the run already */
    bool is_refused;
} calls[] = {
    {"new", "{\"prompt\": \"Who keeps the light?\"}", false, false},
    {"again", "{\"prompt\": \"Who keeps the light?\"}", true, false},
    {"refused", "{\"prompt\": \"Who?\", \"provider\": \"openai\"}", false, true},
};

static const struct rv_script *script;

static int ask(const char *store, size_t i, rv_buf *answer)
{
    const struct rv_app app = {.store = store, .sync = "off"};
    const struct rv_service_ask ask = {.service = "models.call",
                                       .args = rv_str_of(calls[i].args),
                                       .capability = "any",
                                       .entry = "any",
                                       .run_id = "run_1",
                                       .user_id = "ada",
                                       .key = "call-1",
                                       .script = script};
    struct rv_service_job *job = NULL;
    struct rv_app_services services;
    rv_err *err = NULL;

    rv_app_services_init(&services, &app);
    int rc = services.exec.make(services.exec.self, &ask, NULL, &job, &err);
    if (rc == 0)
        rc = job->run(job, answer, &err);
    if (job)
        job->free(job);
    if (rc == 0)
        rc = rv_buf_check(answer, "answer", &err);
    rv_app_services_fini(&services);
    rv_err_free(err);
    return rc;
}

static bool is_whole(const rv_buf *answer)
{
    const char *text = rv_buf_cstr(answer);

    return strstr(text, "\"text\":\"The warden.\"") && strstr(text, "\"input_tokens\":7");
}

static void copy_file(const char *from, const char *to)
{
    static const char *const with[] = {"-wal", "-shm"};
    char bytes[65536], path[4096];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    size_t n;

    ck_assert(in && out);
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        ck_assert_uint_eq(fwrite(bytes, 1, n, out), n);
    fclose(in);
    ck_assert_int_eq(fclose(out), 0);
    for (size_t i = 0; i < RV_COUNT(with); i++) {
        snprintf(path, sizeof path, "%s%s", to, with[i]);
        remove(path);
    }
}

/* In a process of its own. */
static int outcome_without(const char *store, size_t i, size_t n)
{
    rv_buf answer;

    rv_buf_init(&answer, 1 << 20);
    rv_fault_arm(n);
    int rc = ask(store, i, &answer);
    bool fired = rv_fault_disarm();
    long balance = rv_fault_lost(answer.ptr != NULL);
    bool good = rc == 0 ? !calls[i].is_refused && is_whole(&answer)
                        : (fired && rc == RV_E_NOMEM) || (calls[i].is_refused && rc == RV_E_INVALID);
    if (!good)
        return WRONG;
    if (!fired)
        return NOTHING_FIRED;
    if (balance != 0)
        return LEAKED;
    rv_buf_fini(&answer);
    rv_buf_init(&answer, 1 << 20);
    int later = ask(store, i, &answer);
    if (calls[i].is_refused ? later != RV_E_INVALID : later != 0 || !is_whole(&answer))
        return LATER_WRONG;
    rv_buf_fini(&answer);
    return rc == 0 ? ANSWERED : REFUSED;
}

/* -1: it gave up. */
static int try_without(const char *store, size_t i, size_t n)
{
    const struct rlimit no_core = {0, 0};
    int status = 0;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &no_core);
        _exit(outcome_without(store, i, n));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        ck_assert_msg(WTERMSIG(status) == SIGABRT, "%s, allocation %zu: signal %d", calls[i].name, n, WTERMSIG(status));
        return -1;
    }
    return WEXITSTATUS(status);
}

static void make_template(const char *path, size_t i)
{
    rv_store *s = NULL;
    rv_buf answer;

    rv_buf_init(&answer, 1 << 20);
    ck_assert_int_eq(rv_store_open(path, NULL, &s, NULL), 0);
    rv_store_close(s);
    if (calls[i].is_again)
        ck_assert_int_eq(ask(path, i, &answer), 0);
    rv_buf_fini(&answer);
}

START_TEST(any_allocation_of_a_call_may_fail)
{
    static const char text[] = "models:\n  models_call:\n"
                               "    - {text: The warden., usage: {input_tokens: 7, output_tokens: 3}}\n";
    char *dir = rv_kit_tmpdir(), *template = rv_kit_path(dir, "template.db"), *store = rv_kit_path(dir, "store.db");
    size_t i = (size_t)_i, n, n_seen[LATER_WRONG + 1] = {0}, n_aborts = 0;
    rv_findings *f = rv_findings_new();
    rv_script *made = NULL;
    rv_buf answer;
    int outcome;

    rv_buf_init(&answer, 1 << 20);
    ck_assert_int_eq(rv_script_parse(rv_str_of(text), "talk.yaml", f, &made, NULL), 0);
    script = made;
    make_template(template, i);
    copy_file(template, store);
    ask(store, i, &answer); /* opens libraries */
    copy_file(template, store);
    rv_fault_arm(SIZE_MAX);
    ask(store, i, &answer);
    rv_fault_disarm();
    const size_t count = rv_fault_count(), step = rv_kit_step(count / TRIES + 1);
    for (n = rv_kit_first(step);; n += step) {
        copy_file(template, store);
        if ((outcome = try_without(store, i, n)) == NOTHING_FIRED)
            break;
        ck_assert_msg(outcome < LEAKED, "%s, allocation %zu: %s", calls[i].name, n,
                      outcome == LEAKED  ? "it leaks"
                      : outcome == WRONG ? "it ends wrongly"
                                         : "the store does not answer the call later");
        if (outcome < 0)
            n_aborts++;
        else
            n_seen[outcome]++;
    }
    printf("%s, %zu allocations: %zu calls refused, %zu answered, %zu gave up the process\n", calls[i].name, count,
           n_seen[REFUSED], n_seen[ANSWERED], n_aborts);
    ck_assert(n > 10 || !rv_fault_works());
    ck_assert_uint_le(n_aborts, n / step / 10);
    ck_assert_uint_ge(n_seen[REFUSED], n_seen[ANSWERED]);
    rv_script_free(made);
    rv_findings_free(f);
    rv_buf_fini(&answer);
    rv_kit_tmpdir_remove(dir);
    free(template);
    free(store);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_models_call");
    TCase *tc = tcase_create("models.call");

    tcase_add_loop_test(tc, any_allocation_of_a_call_may_fail, 0, RV_COUNT(calls));
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
