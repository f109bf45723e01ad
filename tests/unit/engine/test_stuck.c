/* A step that would fail each time ends its run as failed, in the journal; what may succeed later leaves it as it is.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/kept_host.h"

static const struct rv_store_scope all = {NULL, NULL};

#define ACTS                                                                                                           \
    "name: acts\nagents:\n  - {name: plan, default_next: act}\n"                                                       \
    "  - {name: act, has_tools: true, tool_access: all, allowed_tools: [look], default_next: end}\n"
#define SEEN                                                                                                           \
    "repeat: false\nstages: {plan: [{output: {steps: [{tool: look}]}}]}\n"                                             \
    "tools: {look: [{result: {seen: true}}, {result: {seen: true}}]}"

static void open_store(struct how *how)
{
    ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &how->store, NULL), 0);
}

static void check_row(rv_store *store, enum rv_run_status status)
{
    struct rv_run_row row = {0};

    ck_assert_int_eq(rv_store_get_run(store, &all, world_run_id(), &row, NULL), 0);
    ck_assert_str_eq(rv_run_status_text(row.status), rv_run_status_text(status));
    ck_assert(status != RV_RUN_FAILED || !row.owner);
    rv_run_row_fini(&row);
}

/* The journal says the same as the run said; `part` is of the reason. */
static void check_journal(struct world *w, rv_store *store, const char *part)
{
    const struct rv_catalog under = rv_catalog_empty, catalog = rv_script_catalog(w->script, &under);
    const struct rv_replay_opts opts = {.pipeline = w->pipeline, .catalog = &catalog};
    struct rv_replayed r;
    rv_err *err = NULL;

    int rc = rv_journal_replay(store, &all, world_run_id(), &opts, &r, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
    char *live = world_essence(rv_exec_envelope(w->exec)), *journaled = world_essence(rv_run_envelope(r.run));
    ck_assert_str_eq(live, journaled);
    ck_assert_msg(strstr(journaled, part) != NULL, "%s", journaled);
    ck_assert_int_eq(rv_envelope_failure(rv_run_envelope(r.run), NULL), RV_FAILURE_ENGINE_FAILED);
    free(live);
    free(journaled);
    rv_replayed_fini(&r);
}

static void check_ended(struct world *w, rv_store *store, const char *part)
{
    ck_assert_str_eq(world_status(w), "failed");
    check_row(store, RV_RUN_FAILED);
    check_journal(w, store, part);
    char *done = world_event(w, "\"done\"", "\"engine_failed\"");
    ck_assert_ptr_nonnull(done);
    ck_assert_ptr_null(strstr(done, "\"kept\":false"));
    free(done);
}

START_TEST(what_the_core_refuses_each_time_ends_the_run)
{
    struct how how = {0};
    struct world w;
    rv_err *err = NULL;

    open_store(&how);
    world_load(&w, ACTS, SEEN, NULL);
    w.spoils = RV_EVENT_TOOL_DONE;
    world_start(&w, &how, "what is it?");
    int rc = rv_engine_wait(w.engine, w.exec, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
    check_ended(&w, how.store, "of pipeline \"acts\", at stage \"act\": unknown event kind 99 [invalid_argument]");
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

START_TEST(without_a_journal_the_error_says_of_which_run_and_where)
{
    struct how how = {0};
    struct world w;
    rv_err *err = NULL;

    world_load(&w, ACTS, SEEN, NULL);
    w.spoils = RV_EVENT_TOOL_DONE;
    world_start(&w, &how, "what is it?");
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, &err), RV_E_INVALID);
    char *text = rv_kit_err_take(err);
    ck_assert_ptr_nonnull(strstr(text, world_run_id()));
    ck_assert_ptr_nonnull(strstr(text, "of pipeline \"acts\", at stage \"act\": unknown event kind 99"));
    free(text);
    world_fini(&w);
}
END_TEST

/* The store refuses the n-th append with rc. */
static void refuse(int rc, const char *part)
{
    struct how how = {0};
    struct breaker b = {.points = "append", .at = 2, .rc = rc};
    struct world w;
    rv_err *err = NULL;

    open_store(&how);
    world_load(&w, ACTS, SEEN, NULL);
    world_break(how.store, &b);
    world_start(&w, &how, "what is it?");
    int got = rv_engine_wait(w.engine, w.exec, &err);
    ck_assert_int_eq(got, part ? 0 : rc);
    ck_assert(b.fired);
    if (part)
        check_ended(&w, how.store, part);
    else
        check_row(how.store, RV_RUN_RUNNING);
    rv_err_free(err);
    world_fini(&w);
    rv_store_close(how.store);
}

START_TEST(so_does_what_the_journal_refuses_for_what_it_is)
{
    refuse(RV_E_LIMIT, "the process dies at append [resource_exhausted]");
    refuse(RV_E_INVALID, "the process dies at append [invalid_argument]");
}
END_TEST

START_TEST(what_may_succeed_later_does_not)
{
    static const int codes[] = {RV_E_NOMEM, RV_E_DISK, RV_E_IO, RV_E_UNAVAILABLE, RV_E_STATE, RV_E_TIMEOUT};

    for (size_t i = 0; i < RV_COUNT(codes); i++)
        refuse(codes[i], NULL);
}
END_TEST

/* Each process that goes on with the run would meet the same. */
START_TEST(a_run_that_cannot_be_recovered_ends)
{
    struct how how = {0};
    struct world w;
    rv_err *err = NULL;

    open_store(&how);
    world_die(&how, ACTS, SEEN, 3);
    check_row(how.store, RV_RUN_RUNNING);
    how.start_us = 1700003600000000;
    world_load(&w, ACTS, SEEN, NULL);
    w.spoils = RV_EVENT_RECOVER;
    int rc = world_continue(&w, &how, world_run_id(), NULL, &err);
    if (rc == 0)
        rc = rv_engine_wait(w.engine, w.exec, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
    check_ended(&w, how.store, "unknown event kind 99 [invalid_argument]");
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

/* --- rows of a session that no store takes: its id is too long --- */

#define TALKS_ALONE "name: acts\nagents: [{agent: talker}]\nmodels: {default: scripted:x}\n"
#define SAYS        "models: {talker: [{text: hello}, {text: hello}]}"

static int find_talker(void *self, const char *name, rv_str *text, const char **place, rv_err **err)
{
    (void)self, (void)name, (void)err;
    *text = RV_STR_LIT("type: object\nname: talker\ndescription: Talks.\n");
    *place = "here";
    return 0;
}

static void load_talker(struct world *w)
{
    const struct rv_agent_source source = {.find = find_talker};
    rv_findings *f = rv_findings_new();

    world_load(w, TALKS_ALONE, SAYS, NULL);
    ck_assert_int_eq(rv_pipeline_bind_agents(w->pipeline, &source, f, NULL), 0);
    ck_assert_uint_eq(rv_findings_n_errors(f), 0);
    rv_findings_free(f);
}

static void check_rowless(struct world *w, const struct how *how)
{
    rv_err *err = NULL;

    int rc = rv_engine_wait(w->engine, w->exec, &err);
    ck_assert_msg(rc == 0, "%s", rc < 0 ? rv_kit_err_take(err) : "");
    check_ended(w, how->store, "the session id ");
}

START_TEST(a_run_whose_rows_are_refused_ends_without_them)
{
    char session[RV_STORE_MAX_ID + 2] = "";
    const struct rv_conversation c = {
        .context = {.session_id = session}, .keeps = true, .history_opts = RV_HISTORY_OPTS_INIT};
    struct how how = {.conversation = &c};
    struct breaker b = {.points = "append", .at = 1}; /* behind the first step: its process dies */
    struct world w;

    memset(session, 's', sizeof session - 1);
    open_store(&how);
    load_talker(&w);
    if (_i == 0) {
        world_start(&w, &how, "what is it?");
    } else { /* a cancellation keeps what there was of the turn, too */
        world_break(how.store, &b);
        ck_assert_int_eq(world_try_start(&w, &how, "what is it?", NULL), RV_E_IO);
        world_break(how.store, NULL);
        world_fini(&w);
        how.start_us = 1700003600000000;
        how.cancels = true;
        load_talker(&w);
        ck_assert_int_eq(world_continue(&w, &how, world_run_id(), NULL, NULL), 0);
    }
    check_rowless(&w, &how);
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

START_TEST(a_host_sees_it_end)
{
    struct host h;
    struct rv_run_row row;

    host_new(&h);
    h.fails = "append";
    h.fails_with = RV_E_INVALID;
    h.n_more = _i;  /* the end, too */
    h.n_passed = 1; /* the first one */
    host_start_all(&h, 0, 1);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    ck_assert_ptr_null(h.fails);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(h.runs[0].rc, 0);
    ck_assert_int_eq(rv_exec_status(h.runs[0].exec), RV_RUN_FAILED);
    ck_assert_int_eq(rv_store_get_run(h.store, &all, rv_journal_run(h.runs[0].journal), &row, NULL), 0);
    ck_assert_int_eq(row.status, RV_RUN_FAILED);
    rv_run_row_fini(&row);
    host_fini(&h);
}
END_TEST

Suite *stuck_suite(void)
{
    Suite *s = suite_create("stuck");
    TCase *tc = tcase_create("stuck");

    suite_add_tcase(s, tc);
    tcase_add_test(tc, what_the_core_refuses_each_time_ends_the_run);
    tcase_add_test(tc, without_a_journal_the_error_says_of_which_run_and_where);
    tcase_add_test(tc, so_does_what_the_journal_refuses_for_what_it_is);
    tcase_add_test(tc, what_may_succeed_later_does_not);
    tcase_add_test(tc, a_run_that_cannot_be_recovered_ends);
    tcase_add_loop_test(tc, a_run_whose_rows_are_refused_ends_without_them, 0, 2);
    tcase_add_loop_test(tc, a_host_sees_it_end, 0, 2);
    return s;
}
