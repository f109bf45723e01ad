/* Every allocation of the loop thread fails once: an engine on a given loop begins a run whose steps the store thread
 * commits, the run asks, is answered where it asks, and ends. Or it is given up there, and the store thread opens it
 * again with the answer. No crash, no leak; RV_E_NOMEM, or the run lived on. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "coreengine/engine/engine.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static const char pipeline_text[] = "name: small\nagents: [{name: ask, default_next: use}, {name: use}]\n";
static const char script_text[] =
    "stages: {ask: [{visit: 1, raise: {kind: clarification, question: which?}}, {output: {}}], use: [{output: {}}]}\n";

struct host {
    uv_loop_t loop;
    struct rv_pipeline *pipeline;
    const struct rv_node *script;
    char path[512], bundle[RV_STORE_HASH_MAX];
    int rc;
    bool opens, is_answered;
    char run[64];
};

static void on_question(void *self, rv_exec *x, const struct rv_pending *q)
{
    const struct rv_response response = {.text = RV_STR_LIT("that one")};
    struct host *h = self;
    rv_err *err = NULL;

    (void)q;
    if (h->opens)
        return;
    int rc = rv_exec_answer(x, &response, &err);
    h->is_answered = rc == 0;
    if (rc < 0)
        h->rc = rc;
    rv_err_free(err);
}

static void on_ended(void *self, rv_exec *x, int rc, const rv_err *err)
{
    struct host *h = self;

    (void)err;
    if (h->rc == 0)
        h->rc = rc;
    if (h->opens && rv_exec_status(x) == RV_RUN_INTERRUPTED)
        return;
    if (h->rc == 0 && rv_exec_status(x) != RV_RUN_COMPLETED)
        h->rc = h->is_answered ? RV_E_INTERNAL : RV_E_NOMEM; /* there was no memory for the question */
}

static int begin(struct host *h, rv_engine *e, rv_store *store, rv_script *script, rv_journal **j, rv_exec **x)
{
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("x")};
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_envelope *env = NULL;
    rv_err *err = NULL;
    bool flags[2] = {true, true};

    int rc = rv_envelope_new(&seed, rv_rand_system(), rv_engine_now_us(e), &env, &err);
    const struct rv_journal_start start = {.bundle = h->bundle,
                                           .pipeline = h->pipeline,
                                           .begin = {.mode = RV_UNSET, .has_script = true, .scripted = flags},
                                           .env = env,
                                           .owner = "me",
                                           .now_us = rv_engine_now_us(e)};
    if (rc == 0)
        snprintf(h->run, sizeof h->run, "%s", rv_envelope_fields(env)->envelope_id);
    if (rc == 0)
        rc = rv_journal_new(store, &start, j, &err);
    opts.pipeline = h->pipeline;
    opts.script = script;
    opts.journal = *j;
    opts.holds = !h->opens;
    opts.observer = (struct rv_observer){.on_question = on_question, .on_ended = on_ended, .self = h};
    if (rc == 0)
        rc = rv_engine_start(e, &opts, env, NULL, x, &err); /* takes env */
    else
        rv_envelope_free(env);
    rv_err_free(err);
    return rc;
}

static int open_again(struct host *h, rv_engine *e, rv_script *script, rv_exec **x)
{
    const struct rv_response response = {.text = RV_STR_LIT("that one")};
    const struct rv_store_scope all = {NULL, NULL};
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_err *err = NULL;

    rv_exec_free(*x);
    *x = NULL;
    rv_script_rewind(script);
    opts.pipeline = h->pipeline;
    opts.script = script;
    opts.observer = (struct rv_observer){.on_question = on_question, .on_ended = on_ended, .self = h};
    int rc = rv_engine_open(e, &opts, &all, &(struct rv_engine_resume){.run = h->run, .response = &response}, x, &err);
    h->is_answered = rc == 0;
    rv_err_free(err);
    return rc;
}

static int scenario(struct host *h, rv_store *store)
{
    const struct rv_engine_opts opts = {.loop = &h->loop, .store = store, .owner = "me"};
    rv_findings *f = rv_findings_new();
    rv_script *script = NULL;
    rv_journal *j = NULL;
    rv_engine *e = NULL;
    rv_exec *x = NULL;
    rv_err *err = NULL;

    h->rc = 0;
    h->is_answered = false;
    int rc = f ? rv_script_read_node(h->script, f, &script, &err) : RV_E_NOMEM;
    if (rc == 0)
        rc = rv_engine_new(&opts, &e, &err);
    if (rc == 0)
        rc = begin(h, e, store, script, &j, &x);
    if (rc == 0) {
        uv_run(&h->loop, UV_RUN_DEFAULT);
        rc = h->rc;
    }
    if (rc == 0 && h->opens) {
        rc = open_again(h, e, script, &x);
        uv_run(&h->loop, UV_RUN_DEFAULT);
        rc = rc < 0 ? rc : h->rc;
    }
    rv_exec_free(x);
    if (e)
        rv_engine_close(e, NULL, NULL);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    rv_journal_free(j);
    rv_script_free(script);
    rv_findings_free(f);
    rv_err_free(err);
    uv_run(&h->loop, UV_RUN_NOWAIT);
    return rc;
}

static const char *const urls[] = {"memory:", NULL}; /* NULL: a file */

START_TEST(any_allocation_may_fail)
{
    struct host h = {.opens = _i >= (int)RV_COUNT(urls)};
    const char *url = urls[_i % (int)RV_COUNT(urls)];
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    char *dir = rv_kit_tmpdir();
    rv_findings *f = rv_findings_new();
    rv_yaml *doc = NULL;
    rv_store *store = NULL;
    uv_async_t own; /* libuv ends the process where it has no memory for the first handle of a loop */
    size_t n;

    snprintf(h.path, sizeof h.path, "sqlite:%s/runs", dir);
    ck_assert_int_eq(uv_loop_init(&h.loop), 0);
    ck_assert_int_eq(uv_async_init(&h.loop, &own, NULL), 0);
    uv_unref((uv_handle_t *)&own);
    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(pipeline_text), "p.yaml", ".", f, &h.pipeline, NULL), 0);
    ck_assert_int_eq(rv_yaml_parse(rv_str_of(script_text), "s.yaml", f, &doc, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    h.script = rv_yaml_root(doc);
    ck_assert_int_eq(rv_store_open(url ? url : h.path, &opts, &store, NULL), 0);
    ck_assert_int_eq(rv_store_put_blob(store, RV_STR_LIT("{}"), h.bundle, NULL), 0);
    ck_assert_int_eq(scenario(&h, store), 0);

    for (n = 0;; n++) {
        rv_fault_arm(n);
        int rc = scenario(&h, store);
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %d", n, rc);
    }
    ck_assert(n > 100 || !rv_fault_works());
    rv_store_close(store);
    rv_yaml_free(doc);
    rv_pipeline_free(h.pipeline);
    rv_findings_free(f);
    uv_close((uv_handle_t *)&own, NULL);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&h.loop), 0);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_hosted");
    TCase *tc = tcase_create("hosted");

    tcase_add_loop_test(tc, any_allocation_may_fail, 0, 2 * RV_COUNT(urls));
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
