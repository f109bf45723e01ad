/* Runs with quotas: calls that are refused, that wait for others, that are handed over, and what a killed process
 * leaves of its reservations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/kept_host.h"
#include "tests/unit/engine/model_server.h"

#define MODELS "models: {m: scripted:x}"
#define THREE                                                                                                          \
    "name: three\nagents: [{name: a, has_llm: true, model_role: m, max_tokens: 50, max_retries: 3, error_next: c,"     \
    " default_next: b}, {name: b, has_llm: true, model_role: m, max_tokens: 50, max_retries: 3, error_next: c,"        \
    " default_next: c}, {name: c, has_llm: true, model_role: m, max_tokens: 50}]\n" MODELS
#define USES_100 "{json: {n: 1}, usage: {input_tokens: 60, output_tokens: 40}}"
#define SAYS     "models: {a: [" USES_100 "], b: [" USES_100 "], c: [" USES_100 "]}"

static const struct rv_store_scope all = {NULL, NULL};

static rv_store *open_store(void)
{
    rv_store *s = NULL;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &s, NULL), 0);
    return s;
}

static struct rv_quota_limit limit_of(enum rv_quota_kind kind, int64_t n)
{
    return (struct rv_quota_limit){.kind = kind, .span = RV_SPAN_DAY, .limit = n, .plan = "free"};
}

struct counted {
    int64_t used[RV_N_QUOTA], reserved[RV_N_QUOTA];
};
static int see(void *self, const struct rv_usage_row *row, rv_err **err)
{
    struct counted *c = self;

    (void)err;
    c->used[row->kind] += row->used;
    c->reserved[row->kind] += row->reserved;
    return 0;
}

static struct counted count(rv_store *s, int64_t now_us)
{
    struct counted c = {0};

    ck_assert_int_eq(rv_store_list_usage(s, &all, now_us, see, &c, NULL), 0);
    return c;
}

static void ends_with(const struct world *w, const char *part)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(rv_exec_envelope(w->exec));
    char reason[2048];

    snprintf(reason, sizeof reason, "%s: %s", rv_reason_text(f->terminal_reason),
             f->termination_reason ? f->termination_reason : "");
    ck_assert_msg(strstr(reason, part) != NULL, "\"%s\" is not in \"%s\"", part, reason);
}

/* --- refused --- */

/* Proves 8.6/quotas: A model call that a quota of the user or the tenant refuses is not made: the run ends as
 * quota_exceeded, without a retry, and no error route catches it; the text says which quota and when it fits again */
START_TEST(a_refused_call_ends_the_run_without_a_retry)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_MODEL_CALLS, 1)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 1};
    struct how how = {.store = open_store(), .quotas = &quotas};
    struct world w;

    world_run(&w, &how, THREE, SAYS);
    ck_assert_str_eq(world_status(&w), "terminated");
    ends_with(&w, "quota_exceeded: agent \"b\"");
    ends_with(&w, "user \"ada\" may use 1 model call a day (plan \"free\"); used: 1 model call; needed: 1 model call; "
                  "fits again at ");
    char *visited = world_visited(&w);
    ck_assert_str_eq(visited, "a b"); /* not c, its error_next */
    free(visited);
    char *line = world_event(&w, "\"llm_result\"", "\"code\":\"quota_exceeded\"");
    ck_assert_ptr_nonnull(line);
    free(line);
    struct counted c = count(how.store, w.started_us);
    ck_assert_int_eq(c.used[RV_QUOTA_MODEL_CALLS], 1);
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

/* The quota is gone when the run is replayed, and it decides the same. */
START_TEST(a_replay_decides_the_same_without_asking)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_MODEL_CALLS, 1)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 1};
    struct how how = {.store = open_store(), .quotas = &quotas};
    struct world w;
    struct rv_replayed r = {0};

    world_run(&w, &how, THREE, SAYS);
    const struct rv_replay_opts opts = {.pipeline = w.pipeline};
    char *state = world_essence(rv_exec_envelope(w.exec));
    ck_assert_int_eq(rv_journal_replay(how.store, &all, world_run_id(), &opts, &r, NULL), 0);
    char *again = world_essence(rv_run_envelope(r.run));
    ck_assert_str_eq(again, state);
    ck_assert_int_eq(rv_run_status(r.run), RV_RUN_TERMINATED);
    rv_replayed_fini(&r);
    free(state);
    free(again);
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

START_TEST(usage_replaces_the_reservation)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_TOKENS, 100000), limit_of(RV_QUOTA_MODEL_CALLS, 10)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 2};
    struct how how = {.store = open_store(), .quotas = &quotas};
    struct world w;

    world_run(&w, &how, THREE, SAYS);
    ck_assert_str_eq(world_status(&w), "completed");
    struct counted c = count(how.store, w.started_us);
    ck_assert_int_eq(c.used[RV_QUOTA_TOKENS], 300);
    ck_assert_int_eq(c.reserved[RV_QUOTA_TOKENS], 0);
    ck_assert_int_eq(c.used[RV_QUOTA_MODEL_CALLS], 3);
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

/* --- waiting --- */

#define BOTH                                                                                                           \
    "name: both\nagents: [{name: a, has_llm: true, model_role: m, max_tokens: 50, default_next: end},"                 \
    " {name: b, has_llm: true, model_role: m, max_tokens: 50, default_next: end}, {name: c, has_llm: true,"            \
    " model_role: m, max_tokens: 50, default_next: end}]\n" MODELS
#define SLOWLY "{json: {n: 1}, delay_ms: 700, usage: {input_tokens: 60, output_tokens: 40}}"

/* Each may take more than half of what there is: one after the other fits. */
START_TEST(a_call_waits_for_what_others_have_reserved)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_TOKENS, 500)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 1};
    struct how how = {.store = open_store(), .quotas = &quotas, .mode = RV_MODE_PARALLEL + 1};
    struct world w;

    world_run(&w, &how, BOTH, "models: {a: [" SLOWLY "], b: [" SLOWLY "], c: [" SLOWLY "]}");
    ends_with(&w, "completed: ");
    ck_assert_int_ge(world_elapsed_ms(&w), 2100);
    struct counted c = count(how.store, w.started_us);
    ck_assert_int_eq(c.used[RV_QUOTA_TOKENS], 300);
    ck_assert_int_eq(c.reserved[RV_QUOTA_TOKENS], 0);
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

/* --- handed over --- */

START_TEST(a_run_that_may_not_go_on_is_handed_over_and_goes_on_later)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_MODEL_CALLS, 2)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 1, .hands_over = true};
    struct how how = {.store = open_store(), .quotas = &quotas};
    struct world w;
    const char *why = NULL;
    int64_t start_us, end_us;

    world_run(&w, &how, THREE, SAYS);
    rv_quota_find_period(RV_SPAN_DAY, w.started_us, &start_us, &end_us);
    ck_assert(rv_exec_is_handed_over(w.exec));
    ck_assert_int_eq(rv_exec_refused(w.exec, &why), end_us);
    ck_assert_ptr_nonnull(strstr(why, "may use 2 model calls a day"));
    world_fini(&w);

    how.start_us = end_us - 1; /* too early: it waits again, and nothing is lost */
    world_load(&w, THREE, SAYS, NULL);
    ck_assert_int_eq(world_continue(&w, &how, world_run_id(), NULL, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
    ck_assert(rv_exec_is_handed_over(w.exec));
    world_fini(&w);

    how.start_us = end_us;
    world_load(&w, THREE, SAYS, NULL);
    ck_assert_int_eq(world_continue(&w, &how, world_run_id(), NULL, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
    ck_assert(!rv_exec_is_handed_over(w.exec));
    ck_assert_str_eq(world_status(&w), "completed");
    ck_assert_int_eq(rv_envelope_fields(rv_exec_envelope(w.exec))->llm_call_count, 3);
    ck_assert_int_eq(count(how.store, end_us).used[RV_QUOTA_MODEL_CALLS], 1);
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

START_TEST(what_never_fits_fails_at_once)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_TOKENS, 20)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 1, .hands_over = true};
    struct how how = {.store = open_store(), .quotas = &quotas};
    struct world w;

    world_run(&w, &how, THREE, SAYS);
    ck_assert(!rv_exec_is_handed_over(w.exec));
    ck_assert_str_eq(world_status(&w), "terminated");
    ends_with(&w, "which never fits");
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

/* --- killed --- */

/* Nothing that the process does after its death reaches the store. */
struct death {
    int at, seen;
};
static int die_at(void *self, const char *point, rv_err **err)
{
    struct death *d = self;

    return d->seen++ < d->at ? 0 : RV_FAIL(err, RV_E_IO, "dead at %s", point);
}

/* At each point of the store: no reservation is left when the run has gone on, each call counts, and one that was lost
 * with the process counts as what was reserved for it. */
START_TEST(a_process_that_dies_anywhere_leaves_no_reservation)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_TOKENS, 100000), limit_of(RV_QUOTA_MODEL_CALLS, 100)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 2};
    int n_dead = 0, n_lost = 0;

    for (int at = 0;; at++) {
        struct how how = {.store = open_store(), .quotas = &quotas};
        struct death death = {.at = at};
        struct world w;

        world_load(&w, THREE, SAYS, NULL);
        rv_store_set_faults(how.store, (struct rv_store_faults){NULL, NULL});
        if (world_try_start(&w, &how, "what is it?", NULL) < 0)
            ck_abort_msg("it does not begin");
        rv_store_set_faults(how.store, (struct rv_store_faults){die_at, &death});
        int rc = rv_engine_wait(w.engine, w.exec, NULL);
        bool dead = death.seen > death.at;
        how.start_us = w.started_us + 60 * INT64_C(1000000); /* the lease is over then */
        world_fini(&w);
        rv_store_set_faults(how.store, (struct rv_store_faults){NULL, NULL});
        if (!dead) {
            rv_store_close(how.store);
            break;
        }
        n_dead++;
        world_load(&w, THREE, SAYS, NULL);
        rc = world_continue(&w, &how, world_run_id(), NULL, NULL);
        if (rc == 0)
            ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
        else
            ck_assert(rc == RV_E_STATE); /* its last step was kept */
        struct counted c = count(how.store, w.started_us);
        if (rc == 0)
            ck_assert_str_eq(world_status(&w), "completed");
        ck_assert_msg(c.reserved[RV_QUOTA_TOKENS] == 0, "at %d: %lld", at, (long long)c.reserved[RV_QUOTA_TOKENS]);
        ck_assert_msg(c.used[RV_QUOTA_TOKENS] >= 300, "at %d: %lld, %d", at, (long long)c.used[RV_QUOTA_TOKENS], rc);
        ck_assert_int_le(c.used[RV_QUOTA_TOKENS], 300 + 2500);
        ck_assert_int_ge(c.used[RV_QUOTA_MODEL_CALLS], 3);
        ck_assert_int_le(c.used[RV_QUOTA_MODEL_CALLS], 4);
        n_lost += c.used[RV_QUOTA_TOKENS] > 300;
        world_fini(&w);
        rv_store_close(how.store);
    }
    ck_assert_int_ge(n_dead, 15);
    ck_assert_int_ge(n_lost, 3);
}
END_TEST

/* The store has reserved, and its answer is lost: the call is not made, and what was reserved is given back. */
static int lose_answer(void *self, const char *point, rv_err **err)
{
    bool *lost = self;

    if (*lost || strcmp(point, "reserve.done") != 0)
        return 0;
    *lost = true;
    return RV_FAIL(err, RV_E_IO, "the answer is lost");
}

START_TEST(a_reservation_whose_answer_is_lost_is_given_back)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_TOKENS, 100000)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 1};
    struct how how = {.store = open_store(), .quotas = &quotas};
    bool lost = false;
    struct world w;

    rv_store_set_faults(how.store, (struct rv_store_faults){lose_answer, &lost});
    world_run(&w, &how, THREE, SAYS);
    ck_assert(lost);
    char *visited = world_visited(&w);
    ck_assert_str_eq(visited, "a c"); /* a fault of the store does not end the run: error_next leads on */
    free(visited);
    struct counted c = count(how.store, w.started_us);
    ck_assert_int_eq(c.reserved[RV_QUOTA_TOKENS], 0);
    ck_assert_int_eq(c.used[RV_QUOTA_TOKENS], 100);
    world_fini(&w);
    rv_store_close(how.store);
}
END_TEST

/* --- on a given loop, where the store thread reserves and settles --- */

#define TALK_100 "models: {t: [" USES_100 "]}"

START_TEST(many_runs_of_a_loop_share_a_quota_and_pass_it_in_no_order)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_MODEL_CALLS, 5), limit_of(RV_QUOTA_TOKENS, 100000)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 2, .hands_over = true};
    struct host h;
    int n_completed = 0, n_refused = 0;

    host_new(&h);
    world_fini(&h.w);
    world_load(&h.w, TALKS, TALK_100, NULL);
    h.quotas = &quotas;
    host_start_all(&h, 0, N_RUNS);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, N_RUNS);
    for (size_t i = 0; i < N_RUNS; i++) {
        const char *why;
        n_completed += rv_exec_status(h.runs[i].exec) == RV_RUN_COMPLETED;
        n_refused += rv_exec_is_handed_over(h.runs[i].exec) && rv_exec_refused(h.runs[i].exec, &why) > 0;
    }
    ck_assert_int_eq(n_completed, 5);
    ck_assert_int_eq(n_refused, N_RUNS - 5);
    struct counted c = count(h.store, rv_engine_now_us(h.engine));
    ck_assert_int_eq(c.used[RV_QUOTA_MODEL_CALLS], 5);
    ck_assert_int_eq(c.reserved[RV_QUOTA_TOKENS], 0);
    ck_assert_int_eq(c.used[RV_QUOTA_TOKENS], 500);
    host_fini(&h);
}
END_TEST

static bool is_at_gate(struct host *h)
{
    pthread_mutex_lock(&h->lock);
    bool is = h->is_at_gate;
    pthread_mutex_unlock(&h->lock);
    return is;
}

/* The loop does not wait for the store, which answers before the run goes or after that. */
START_TEST(a_run_that_is_freed_gives_its_reservation_back)
{
    struct rv_quota_limit *limits = malloc(sizeof *limits);
    char *user = rv_str_dup(RV_STR_LIT("ada")), *plan = rv_str_dup(RV_STR_LIT("free"));
    const struct rv_exec_quotas quotas = {.user = user, .limits = limits, .n_limits = 1};
    struct host h;

    *limits = limit_of(RV_QUOTA_TOKENS, 100000);
    limits->plan = plan;
    host_new(&h);
    world_fini(&h.w);
    world_load(&h.w, TALKS, "models: {t: [{text: a, delay_ms: 100000}]}", NULL);
    h.quotas = &quotas;
    h.gate = _i < 2 ? "reserve.done" : "reserve";
    host_start_all(&h, 0, 1);
    while (!is_at_gate(&h))
        uv_run(&h.loop, UV_RUN_NOWAIT);
    if (_i == 0)
        host_open_gate(&h); /* the answer of the store is on its way when the run goes */
    rv_exec_free(h.runs[0].exec);
    h.runs[0].exec = NULL;
    free(limits); /* they are the run's, as far as the store is told */
    free(user);
    free(plan);
    if (_i > 0)
        host_open_gate(&h);
    int64_t now_us = rv_engine_now_us(h.engine);
    rv_engine_free(h.engine);
    h.engine = NULL;
    struct counted c = count(h.store, now_us);
    ck_assert_int_eq(c.reserved[RV_QUOTA_TOKENS], 0);
    ck_assert_int_eq(c.used[RV_QUOTA_TOKENS], 0);
    host_fini(&h);
}
END_TEST

static void set_gate(struct host *h, const char *gate)
{
    pthread_mutex_lock(&h->lock);
    h->gate = gate;
    pthread_mutex_unlock(&h->lock);
}

/* The store is asked for a second request of the call when the run goes: what the first one may cost counts. */
START_TEST(a_run_that_is_freed_before_another_request_keeps_what_it_may_have_used)
{
    static const struct plan busy[] = {{.status = 503, .body = "busy"}};
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_TOKENS, 100000), limit_of(RV_QUOTA_MODEL_CALLS, 100)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 2};
    struct model_server server = {0};
    struct host h;
    char text[400];

    model_server_start(&server, busy, 1);
    snprintf(text, sizeof text,
             "name: t\nagents: [{name: t, has_llm: true, model_role: m, max_tokens: 50}]\nmodels:\n  m: {model: "
             "\"openai:m\", base_url: \"http://127.0.0.1:%d/v1\", proxy: \"\", max_retry_wait_ms: 50}\n",
             server.port);
    host_new(&h);
    world_fini(&h.w);
    world_load(&h.w, text, NULL, NULL);
    h.quotas = &quotas;
    host_start_all(&h, 0, 1);
    while (model_server_count(&server, &server.n_requests) == 0)
        uv_run(&h.loop, UV_RUN_NOWAIT);
    set_gate(&h, _i == 0 ? "reserve" : "reserve.done");
    while (!is_at_gate(&h))
        uv_run(&h.loop, UV_RUN_NOWAIT);
    rv_exec_free(h.runs[0].exec);
    h.runs[0].exec = NULL;
    host_open_gate(&h);
    int64_t now_us = rv_engine_now_us(h.engine);
    rv_engine_free(h.engine);
    h.engine = NULL;
    struct counted c = count(h.store, now_us);
    ck_assert_int_eq(c.reserved[RV_QUOTA_TOKENS], 0);
    ck_assert_int_gt(c.used[RV_QUOTA_TOKENS], 50);
    ck_assert_int_eq(c.used[RV_QUOTA_MODEL_CALLS], 2);
    ck_assert_uint_eq(model_server_count(&server, &server.n_requests), 1);
    host_fini(&h);
    model_server_stop(&server);
}
END_TEST

/* Its journal is its own, and goes to the store thread before its calls are freed. */
START_TEST(a_run_with_a_journal_of_its_own_is_freed_in_a_call)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_TOKENS, 100000)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 1};
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct counted c = {0};
    struct host h;

    host_new(&h);
    world_fini(&h.w);
    world_load(&h.w, TALKS, "models: {t: [{text: a, delay_ms: 100000}]}", NULL);
    int64_t now_us = rv_engine_now_us(h.engine);
    rv_envelope *env = host_envelope(0, now_us);
    rv_journal_free(host_journal(&h, env, now_us));
    opts.pipeline = h.w.pipeline;
    opts.script = h.w.script;
    opts.quotas = &quotas;
    opts.observer = (struct rv_observer){.on_ended = host_on_over, .self = &h};
    const char *run = rv_envelope_fields(env)->envelope_id;
    ck_assert_int_eq(
        rv_engine_open(h.engine, &opts, &all, &(struct rv_engine_resume){.run = run}, &h.runs[0].exec, NULL), 0);
    while (c.reserved[RV_QUOTA_TOKENS] == 0) {
        uv_run(&h.loop, UV_RUN_NOWAIT);
        c = count(h.store, now_us);
    }
    for (int i = 0; i < 100; i++) /* the answer of the store comes, and the call is made */
        uv_run(&h.loop, UV_RUN_NOWAIT);
    rv_exec_free(h.runs[0].exec);
    h.runs[0].exec = NULL;
    rv_engine_free(h.engine);
    h.engine = NULL;
    rv_envelope_free(env);
    c = count(h.store, now_us);
    ck_assert_int_eq(c.reserved[RV_QUOTA_TOKENS], 0);
    host_fini(&h);
}
END_TEST

/* --- bounds of the run itself --- */

#define ROUND                                                                                                          \
    "name: round\nmax_iterations: 10\nmax_llm_calls: 100\nmax_agent_hops: 5\n"                                         \
    "agents: [{name: a, default_next: b}, {name: b, default_next: a}]"

static size_t n_lines(const struct rv_kit_log *log, const char *text)
{
    size_t n = 0;

    for (size_t i = 0; i < log->n_lines; i++)
        n += strstr(log->lines[i], text) != NULL;
    return n;
}

/* Proves 8.6/near: When 80 % of a bound of the run, or of a quota, are used, the log has a warning, once */
START_TEST(a_warning_comes_once_when_most_of_a_bound_is_used)
{
    struct rv_kit_log log;
    struct world w;

    rv_kit_log_init(&log, RV_LOG_WARN, RV_LOG_JSON);
    const struct how how = {.log = log.log};
    world_run(&w, &how, ROUND, "stages: {a: [{output: {n: 1}}], b: [{output: {n: 2}}]}");
    ck_assert_str_eq(world_status(&w), "terminated");
    const char *line = rv_kit_log_find(&log, "bound.near");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"bound\":\"max_agent_hops\",\"used\":4,\"limit\":5"));
    ck_assert_uint_eq(n_lines(&log, "bound.near"), 1);
    world_fini(&w);
    rv_kit_log_fini(&log);
}
END_TEST

START_TEST(a_warning_comes_once_when_most_of_a_quota_is_used)
{
    struct rv_quota_limit limits[] = {limit_of(RV_QUOTA_MODEL_CALLS, 4), limit_of(RV_QUOTA_TOKENS, 100000)};
    const struct rv_exec_quotas quotas = {.user = "ada", .limits = limits, .n_limits = 2};
    struct rv_kit_log log;
    struct world w;

    rv_kit_log_init(&log, RV_LOG_WARN, RV_LOG_JSON);
    const struct how how = {.store = open_store(), .quotas = &quotas, .log = log.log};
    world_run(&w, &how, THREE, SAYS);
    ck_assert_ptr_null(rv_kit_log_find(&log, "quota.near")); /* three of four */
    world_fini(&w);
    limits[0].limit = 3;
    rv_store_close(how.store);
    struct how again = how;
    again.store = open_store();
    world_run(&w, &again, THREE, SAYS);
    const char *line = rv_kit_log_find(&log, "quota.near");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "\"quota\":\"model_calls\",\"span\":\"day\",\"limit\":3,\"plan\":\"free\""));
    ck_assert_uint_eq(n_lines(&log, "quota.near"), 1);
    world_fini(&w);
    rv_store_close(again.store);
    rv_kit_log_fini(&log);
}
END_TEST

Suite *quotas_suite(void)
{
    Suite *s = suite_create("quotas");
    TCase *tc = tcase_create("quotas");

    tcase_add_test(tc, a_refused_call_ends_the_run_without_a_retry);
    tcase_add_test(tc, a_replay_decides_the_same_without_asking);
    tcase_add_test(tc, usage_replaces_the_reservation);
    tcase_add_test(tc, a_call_waits_for_what_others_have_reserved);
    tcase_add_test(tc, a_run_that_may_not_go_on_is_handed_over_and_goes_on_later);
    tcase_add_test(tc, what_never_fits_fails_at_once);
    tcase_add_test(tc, a_process_that_dies_anywhere_leaves_no_reservation);
    tcase_add_test(tc, a_reservation_whose_answer_is_lost_is_given_back);
    tcase_add_test(tc, many_runs_of_a_loop_share_a_quota_and_pass_it_in_no_order);
    tcase_add_loop_test(tc, a_run_that_is_freed_gives_its_reservation_back, 0, 3);
    tcase_add_loop_test(tc, a_run_that_is_freed_before_another_request_keeps_what_it_may_have_used, 0, 2);
    tcase_add_test(tc, a_run_with_a_journal_of_its_own_is_freed_in_a_call);
    tcase_add_test(tc, a_warning_comes_once_when_most_of_a_bound_is_used);
    tcase_add_test(tc, a_warning_comes_once_when_most_of_a_quota_is_used);
    suite_add_tcase(s, tc);
    return s;
}
