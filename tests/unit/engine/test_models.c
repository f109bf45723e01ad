/* Models over HTTP, as a run sees them: what they say as they say it, and what becomes of a stream that somebody holds,
 * cancels or leaves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"
#include "tests/unit/engine/talks.h"

static const struct plan says_hello[] = {{.status = 200, .body = PIECE("Hel") PIECE("lo") PIECE(" you") THE_END}};
static const struct plan hangs_in_the_middle[] = {{.status = 200, .body = PIECE("Hel") PIECE("lo"), .hangs = true}};
static const struct plan fails_first[] = {
    {.status = 503, .headers = "Retry-After-Ms: 1\r\n", .body = "busy"},
    {.status = 200, .body = PIECE("Hello") THE_END},
};
static const struct plan dies_first[] = {
    {.status = 200, .body = PIECE("Hel") PIECE("lo"), .hangs = true},
    {.status = 200, .body = PIECE("Hel") PIECE("lo") PIECE(" you") THE_END},
};
static const struct asking plainly = {0};

static struct talks all;

static void begin(const struct plan *plan, size_t n)
{
    talks_init(&all, plan, n);
}

static void tear_down(void)
{
    talks_fini(&all);
}

/* Proves 12.2/deltas: Pieces come in order and before the result; a reader that is not ready holds its stream and
 * loses nothing */
START_TEST(pieces_come_in_order_and_before_the_result)
{
    struct talk t = {0};
    char line[2048];

    begin(says_hello, 1);
    ck_assert_str_eq(talk_whole(&all, &t, talks_asking(&all, &plainly)), "completed");
    const char *pieces = strstr(rv_buf_cstr(&t.heard), "{llm_call_start}");
    ck_assert_ptr_nonnull(pieces);
    ck_assert_msg(strstr(pieces, "{llm_call_start}<Hel><lo>< you>[") == pieces, "%s", pieces);
    ck_assert_ptr_nonnull(strstr(pieces, "[finish]"));
    ck_assert_ptr_nonnull(strstr(pieces, "[usage]"));
    ck_assert_msg(strstr(pieces, "]{llm_result}") > strstr(pieces, "< you>"), "%s", pieces);
    ck_assert_ptr_null(strchr(strstr(pieces, "{llm_result}"), '['));
    ck_assert_ptr_nonnull(strstr(talk_event(&t, "llm_result", line, sizeof line), "\"preview\":\"Hello you\""));
    ck_assert_ptr_null(strstr(line, "\"attempts\""));
    talk_fini(&t);
    tear_down();
}
END_TEST

/* Proves 12.5/payload: What is sent can be seen, byte for byte as the server got it
 * Proves p8.W39 */
START_TEST(the_payload_is_what_the_server_got)
{
    struct talk t = {0};

    begin(fails_first, 2);
    ck_assert_str_eq(talk_whole(&all, &t, talks_asking(&all, &plainly)), "completed");
    ck_assert_uint_eq(t.n_payloads, 2);
    ck_assert_uint_gt(t.payloads.len, 100);
    ck_assert_str_eq(rv_buf_cstr(&t.payloads), rv_buf_cstr(&all.server.bodies));
    talk_fini(&t);
    tear_down();
}
END_TEST

/* Else the records of requests could not be joined with those of the run. */
START_TEST(the_record_of_a_request_names_its_run_and_call)
{
    struct talk t = {0};
    struct rv_kit_log log;

    rv_kit_log_init(&log, RV_LOG_DEBUG, RV_LOG_JSON);
    talks_init_logged(&all, says_hello, 1, log.log);
    ck_assert_str_eq(talk_whole(&all, &t, talks_asking(&all, &plainly)), "completed");
    const char *line = rv_kit_log_find(&log, "\"http.end\"");
    ck_assert_ptr_nonnull(line);
    ck_assert_msg(strstr(line, "\"run_id\":\"") && strstr(line, "\"call_id\":1,"), "%s", line);
    talk_fini(&t);
    tear_down();
    rv_kit_log_fini(&log);
}
END_TEST

/* Else three requests of one call would be three records that nothing joins, and a call that hangs in retries would be
 * silent. */
START_TEST(the_record_of_a_retry_names_its_call_and_why)
{
    static const char *const parts[] = {"\"level\":\"warn\"",
                                        "\"run_id\":\"",
                                        "\"stage\":\"",
                                        "\"visit\":1,",
                                        "\"call_id\":1,",
                                        "\"attempt\":1,\"of\":3,\"wait_ms\":1,",
                                        "503",
                                        "\"code\":\"model_overloaded\"",
                                        "busy"};
    struct talk t = {0};
    struct rv_kit_log log;

    rv_kit_log_init(&log, RV_LOG_DEBUG, RV_LOG_JSON);
    talks_init_logged(&all, fails_first, 2, log.log);
    ck_assert_str_eq(talk_whole(&all, &t, talks_asking(&all, &plainly)), "completed");
    const char *line = rv_kit_log_find(&log, "\"model.retry\"");
    ck_assert_ptr_nonnull(line);
    for (size_t i = 0; i < RV_COUNT(parts); i++)
        ck_assert_msg(strstr(line, parts[i]) != NULL, "%s is not in %s", parts[i], line);
    ck_assert_ptr_nonnull(rv_kit_log_find(&log, "\"call_id\":1,\"attempt\":2,\"host\""));
    ck_assert_ptr_nonnull(rv_kit_log_find(&log, "\"attempts\":2,\"latency_ms\""));
    talk_fini(&t);
    tear_down();
    rv_kit_log_fini(&log);
}
END_TEST

START_TEST(a_server_that_is_busy_is_asked_again)
{
    struct talk t = {0};
    char line[2048];

    begin(fails_first, 2);
    ck_assert_str_eq(talk_whole(&all, &t, talks_asking(&all, &plainly)), "completed");
    ck_assert_ptr_nonnull(strstr(talk_event(&t, "llm_result", line, sizeof line), "\"attempts\":2"));
    ck_assert_uint_eq(t.n_pieces, 1);
    ck_assert_uint_eq(all.server.n_connections, 1); /* which was good for both */
    talk_fini(&t);
    tear_down();
}
END_TEST

/* Else a budget of a pipeline that another one runs would count one of five requests that were all charged for. */
START_TEST(a_broken_answer_is_not_asked_for_again_when_an_inner_pipeline_has_a_budget)
{
    static const struct plan breaks[] = {{.status = 200, .body = ": nothing\n\n"}};
    static const struct asking priced = {.role = "price: {input: 1, output: 2}, max_attempts: 2",
                                         .stage = "max_tokens: 10"};
    struct talk t = {0};
    char line[2048];

    begin(breaks, 1);
    ck_assert_str_eq(talk_whole(&all, &t, talks_budget_within(&all, &priced)), "failed");
    ck_assert_uint_eq(all.server.n_requests, 1);
    ck_assert(t.may_be_billed);
    talk_event(&t, "llm_result", line, sizeof line);
    ck_assert_msg(strstr(line, "it may have been charged for, and there is a budget or a quota") != NULL, "%s", line);
    talk_fini(&t);
    tear_down();
}
END_TEST

static const struct {
    enum rv_quota_kind kind;
    size_t n_requests;
} quotas[] = {{RV_QUOTA_COST, 1}, {RV_QUOTA_TOKENS, 1}, {RV_QUOTA_MODEL_CALLS, 2}};

/* A reservation is settled once, however many requests its call has made. */
START_TEST(a_broken_answer_is_not_asked_for_again_when_a_quota_counts_what_it_costs)
{
    static const struct plan breaks[] = {{.status = 200, .body = ": nothing\n\n"}};
    static const struct asking priced = {.role = "price: {input: 1, output: 2}, max_attempts: 2, max_retry_wait_ms: 1",
                                         .stage = "max_tokens: 10"};
    struct rv_quota_limit limit = {.kind = quotas[_i].kind, .span = RV_SPAN_DAY, .limit = 1000000, .plan = "free"};
    const struct rv_exec_quotas of = {.user = "ada", .limits = &limit, .n_limits = 1};
    struct how how = {.real_time = true, .quotas = &of};
    struct world w;

    begin(breaks, 1);
    char *text = talks_text(&all, &priced);
    ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &how.store, NULL), 0);
    world_run(&w, &how, text, NULL);
    ck_assert_str_eq(world_status(&w), "failed");
    ck_assert_uint_eq(all.server.n_requests, quotas[_i].n_requests);
    world_fini(&w);
    rv_store_close(how.store);
    free(text);
    tear_down();
}
END_TEST

/* A quota of model calls counts each request. What is not allowed is not sent: neither again nor to a fallback. */
static const struct {
    int64_t limit;
    bool is_rate, falls_back;
    size_t n_requests;
    const char *says; /* in llm_result */
} counted[] = {
    {10, false, false, 3, "after 3 attempts"},
    {2, false, false, 2,
     "after 2 attempts; not repeated: quota exceeded: user \\\"ada\\\" may use 2 model calls a day"},
    {1, false, false, 1, "busy; not repeated: quota exceeded: user \\\"ada\\\" may use 1 model call a day"},
    {2, true, false, 2, "after 2 attempts; not repeated: quota exceeded: user \\\"ada\\\" may use 2 model calls a day"},
    {5, false, true, 5, "after 2 attempts; not repeated"},
    {3, false, true, 3, "may use 3 model calls a day"},
};
START_TEST(each_request_of_a_call_counts_as_a_model_call)
{
    static const struct plan busy[] = {{.status = 503, .body = "busy"}};
    char role[300] = "max_attempts: 3, max_retry_wait_ms: 1";
    const struct asking asks = {.role = role, .stage = "max_tokens: 10"};
    struct rv_quota_limit limit = {.kind = RV_QUOTA_MODEL_CALLS,
                                   .span = RV_SPAN_DAY,
                                   .is_rate = counted[_i].is_rate,
                                   .limit = counted[_i].limit,
                                   .plan = "free"};
    const struct rv_exec_quotas of = {.user = "ada", .limits = &limit, .n_limits = 1};
    struct how how = {.real_time = true, .quotas = &of};
    struct world w;

    begin(busy, 1);
    if (counted[_i].falls_back)
        snprintf(role, sizeof role,
                 "max_attempts: 3, max_retry_wait_ms: 1, fallback: [other]}\n  other: {model: \"openai:n\", base_url: "
                 "\"http://127.0.0.1:%d/v1\", proxy: \"\", max_attempts: 3, max_retry_wait_ms: 1",
                 all.server.port);
    char *text = talks_text(&all, &asks);
    ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &how.store, NULL), 0);
    world_run(&w, &how, text, NULL);
    ck_assert_str_eq(world_status(&w), "failed");
    ck_assert_uint_eq(all.server.n_requests, counted[_i].n_requests);
    char *line = world_event(&w, "\"llm_result\"", "\"error\"");
    ck_assert_msg(line && strstr(line, counted[_i].says), "%s", line ? line : "no result");
    free(line);
    world_fini(&w);
    rv_store_close(how.store);
    free(text);
    tear_down();
}
END_TEST

/* --- held --- */

#define N_LARGE 4000 /* pieces of 8 KB: far more than what two sockets take */
static const struct plan says_much[] = {{.status = 200, .n_numbered = N_LARGE}};

/* The engine goes on until the server has written nothing for a while. */
static size_t written_when_still(void)
{
    size_t before, now = model_server_count(&all.server, &all.server.n_written);

    do {
        before = now;
        engine_let_pass(all.engine, 60);
        now = model_server_count(&all.server, &all.server.n_written);
    } while (now != before);
    return now;
}

/* Proves 12.2/deltas */
START_TEST(a_held_stream_holds_its_server_and_loses_nothing)
{
    rv_buf want = RV_BUF_INIT(1 << 20);
    struct talk t = {.holds = true};

    begin(says_much, 1);
    talk_begin(&all, &t, talks_asking(&all, &plainly));
    engine_until(all.engine, &t.n_pieces, 1);
    size_t n_written = written_when_still(), n_pieces = t.n_pieces;
    ck_assert_uint_lt(n_written, (size_t)N_LARGE * 8000 / 2);
    ck_assert_uint_lt(n_pieces, 100); /* what came with the first part */

    rv_exec_read_on(t.exec); /* the next part is held again */
    engine_until(all.engine, &t.n_pieces, n_pieces + 1);
    ck_assert_uint_lt(t.n_pieces, n_pieces + 1000);

    t.holds = false;
    rv_exec_read_on(t.exec);
    ck_assert_str_eq(talk_end(&all, &t), "completed");
    for (size_t i = 0; i < N_LARGE; i++)
        rv_buf_printf(&want, "<%zu >", i);
    ck_assert_uint_eq(t.n_pieces, N_LARGE);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&t.heard), rv_buf_cstr(&want)));
    rv_buf_fini(&want);
    talk_fini(&t);
    tear_down();
}
END_TEST

START_TEST(a_held_stream_can_be_cancelled)
{
    struct talk t = {.holds = true};

    begin(says_much, 1);
    talk_begin(&all, &t, talks_asking(&all, &plainly));
    engine_until(all.engine, &t.n_pieces, 1);
    rv_exec_cancel(t.exec);
    ck_assert_str_eq(talk_end(&all, &t), "cancelled");
    ck_assert(model_server_is_down_to(&all.server, &all.server.n_open, 0));
    rv_exec_read_on(t.exec); /* there is nothing any more */
    talk_fini(&t);
    tear_down();
}
END_TEST

/* --- left --- */

START_TEST(a_run_cancelled_in_mid_stream_closes_its_connection)
{
    struct talk t = {.cancel_at = 2};

    begin(hangs_in_the_middle, 1);
    ck_assert_str_eq(talk_whole(&all, &t, talks_asking(&all, &plainly)), "cancelled");
    ck_assert(model_server_is_down_to(&all.server, &all.server.n_open, 0));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&t.heard), "<Hel><lo>"));
    ck_assert_uint_eq(all.server.n_requests, 1);
    talk_fini(&t);
    tear_down();
}
END_TEST

START_TEST(a_run_freed_in_mid_stream_closes_its_connection)
{
    struct talk t = {0}, other = {0};

    begin(dies_first, 2);
    talk_begin(&all, &t, talks_asking(&all, &plainly));
    engine_until(all.engine, &t.n_pieces, 2);
    talk_fini(&t);
    ck_assert(model_server_is_down_to(&all.server, &all.server.n_open, 0));
    ck_assert_str_eq(talk_whole(&all, &other, all.pipelines[0]), "completed");
    talk_fini(&other);
    tear_down();
}
END_TEST

START_TEST(an_engine_freed_in_mid_stream_closes_its_connections)
{
    struct talk t[3] = {{0}};
    const struct rv_pipeline *p;

    begin(hangs_in_the_middle, 1);
    p = talks_asking(&all, &(struct asking){.role = "max_concurrent: 2"}); /* the third waits for a place */
    for (size_t i = 0; i < RV_COUNT(t); i++)
        talk_begin(&all, &t[i], p);
    engine_until(all.engine, &t[0].n_pieces, 2);
    engine_until(all.engine, &t[1].n_pieces, 2);
    rv_engine_free(all.engine);
    all.engine = NULL;
    ck_assert(model_server_is_down_to(&all.server, &all.server.n_open, 0));
    ck_assert_uint_eq(t[2].n_pieces, 0);
    for (size_t i = 0; i < RV_COUNT(t); i++)
        talk_fini(&t[i]);
    tear_down();
}
END_TEST

/* --- another process goes on --- */

static int on_step(void *self, const struct rv_record *record, const struct rv_event *ev,
                   const struct rv_effects *effects, const rv_run *run, rv_err **err)
{
    (void)record;
    (void)ev;
    (void)run;
    (void)err;
    for (size_t i = 0; effects && i < effects->n; i++)
        *(size_t *)self += effects->items[i].kind == RV_EFFECT_CALL_LLM;
    return 0;
}

static void replays_to(const struct world *w, rv_store *store, const char *state)
{
    const struct rv_store_scope everybody = {NULL, NULL};
    size_t n_calls = 0;
    const struct rv_replay_opts opts = {
        .pipeline = w->pipeline, .catalog = &rv_catalog_empty, .on_step = on_step, .self = &n_calls};
    rv_buf replayed = RV_BUF_INIT(1 << 20);
    struct rv_replayed r;
    rv_err *err = NULL;

    int rc = rv_journal_replay(store, &everybody, world_run_id(), &opts, &r, &err);
    ck_assert_msg(rc == 0, "%s", rv_err_text(err));
    rv_envelope_write_state(rv_run_envelope(r.run), &replayed);
    ck_assert_str_eq(rv_buf_cstr(&replayed), state);
    ck_assert_uint_eq(n_calls, 1);
    rv_buf_fini(&replayed);
    rv_replayed_fini(&r);
}

/* Proves 12.3/crash: A run that died in the middle of an answer asks again, and asks nothing twice that had an
 * answer */
START_TEST(a_run_that_died_in_mid_stream_asks_again_elsewhere)
{
    struct how how = {.real_time = true};
    struct world first, second;
    rv_err *err = NULL;

    begin(dies_first, 2);
    char *text = talks_text(&all, &plainly);
    ck_assert_int_eq(rv_store_open("memory:", &(struct rv_store_opts){0}, &how.store, NULL), 0);
    world_load(&first, text, NULL, NULL);
    world_start(&first, &how, "what is it?");
    engine_until(first.engine, &first.deltas.len, 10); /* both pieces */
    world_fini(&first);
    ck_assert(model_server_is_down_to(&all.server, &all.server.n_open, 0));

    world_load(&second, text, NULL, NULL);
    int rc = world_continue(&second, &how, world_run_id(), NULL, &err);
    ck_assert_msg(rc == 0, "%s", rv_err_text(err));
    ck_assert_int_eq(rv_engine_wait(second.engine, second.exec, NULL), 0);
    ck_assert_str_eq(world_status(&second), "completed");
    ck_assert_uint_eq(all.server.n_requests, 2);
    char *output = world_output(&second, "ask"), *state = world_state(&second);
    ck_assert_msg(strstr(output, "Hello you"), "%s", output);
    replays_to(&second, how.store, state);
    free(output);
    free(state);
    free(text);
    world_fini(&second);
    rv_store_close(how.store);
    tear_down();
}
END_TEST

Suite *models_suite(void)
{
    Suite *suite = suite_create("models");
    TCase *tc = tcase_create("models");

    tcase_add_test(tc, pieces_come_in_order_and_before_the_result);
    tcase_add_test(tc, the_payload_is_what_the_server_got);
    tcase_add_test(tc, the_record_of_a_retry_names_its_call_and_why);
    tcase_add_test(tc, the_record_of_a_request_names_its_run_and_call);
    tcase_add_test(tc, a_server_that_is_busy_is_asked_again);
    tcase_add_test(tc, a_broken_answer_is_not_asked_for_again_when_an_inner_pipeline_has_a_budget);
    tcase_add_loop_test(tc, each_request_of_a_call_counts_as_a_model_call, 0, RV_COUNT(counted));
    tcase_add_loop_test(tc, a_broken_answer_is_not_asked_for_again_when_a_quota_counts_what_it_costs, 0,
                        RV_COUNT(quotas));
    tcase_add_test(tc, a_held_stream_holds_its_server_and_loses_nothing);
    tcase_add_test(tc, a_held_stream_can_be_cancelled);
    tcase_add_test(tc, a_run_cancelled_in_mid_stream_closes_its_connection);
    tcase_add_test(tc, a_run_freed_in_mid_stream_closes_its_connection);
    tcase_add_test(tc, an_engine_freed_in_mid_stream_closes_its_connections);
    tcase_add_test(tc, a_run_that_died_in_mid_stream_asks_again_elsewhere);
    suite_add_tcase(suite, tc);
    return suite;
}
