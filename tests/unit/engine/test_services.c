/* Services that capabilities ask for in a run: what the engine answers, what a program does on the thread that asks,
 * requests to the outside, and asks whose call has
 * ended. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/telemetry/telemetry.h"
#include "model_server.h"
#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

static const char *const capabilities[] = {"asker", NULL};

#define ONE_STEP                                                                                                       \
    "name: one\nagents:\n  - {name: p, default_next: t}\n"                                                             \
    "  - {name: t, has_tools: true, tool_access: all, plan_from: p}\n"                                                 \
    "execution: {tool_timeout: %s}\n"
#define PLAN "stages: {p: [{output: {steps: [{tool: %s, parameters: {service: \"%s\", args: %s}}]}}]}"

/* A program that answers all services that the engine does not: on the thread that asks. */
struct program {
    struct rv_exec_services services;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_made, n_run, n_freed;
    bool refuses, fails, holds; /* holds: a job waits until that is false */
    char last[300];
};
struct job {
    struct rv_service_job job;
    struct program *p;
};

static int run_job(struct rv_service_job *j, rv_buf *answer, rv_err **err)
{
    struct program *p = ((struct job *)j)->p;

    pthread_mutex_lock(&p->lock);
    p->n_run++;
    pthread_cond_broadcast(&p->changed);
    while (p->holds)
        pthread_cond_wait(&p->changed, &p->lock);
    bool fails = p->fails;
    pthread_mutex_unlock(&p->lock);
    if (fails)
        return RV_FAIL(err, RV_E_EXISTS, "there is one");
    rv_buf_puts(answer, "{\"from\":\"the program\"}");
    return 0;
}

static void free_job(struct rv_service_job *j)
{
    struct program *p = ((struct job *)j)->p;

    pthread_mutex_lock(&p->lock);
    p->n_freed++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    free(j);
}

static int make(void *self, const struct rv_service_ask *ask, json_object *args, struct rv_service_job **out,
                rv_err **err)
{
    struct program *p = self;

    p->n_made++;
    snprintf(p->last, sizeof p->last, "%s %s.%s for \"%s\" of %s: %s", ask->service, ask->capability, ask->entry,
             ask->user_id, ask->run_id, json_object_to_json_string_ext(args, JSON_C_TO_STRING_PLAIN));
    if (p->refuses)
        return RV_FAIL(err, RV_E_INVALID, "not with these arguments");
    struct job *j = calloc(1, sizeof *j);
    ck_assert_ptr_nonnull(j);
    *j = (struct job){.job = {run_job, free_job}, .p = p};
    *out = &j->job;
    return 0;
}

static void open_program(struct program *p)
{
    *p = (struct program){.services = {make, p}};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
}

static char *ask_in(struct world *w, const struct how *how, const char *timeout, const char *tool, const char *service,
                    const char *args)
{
    char pipeline[512], script[1024];

    snprintf(pipeline, sizeof pipeline, ONE_STEP, timeout);
    snprintf(script, sizeof script, PLAN, tool, service, args);
    world_run(w, how, pipeline, script);
    ck_assert_str_eq(world_status(w), "completed");
    return world_output(w, "t");
}

static const struct {
    const char *tool, *service, *args, *output; /* a part of the stage's output */
    int n_made;
    bool refuses, fails;
} cases[] = {
    {"ask", "engine.tools", "{}", "{\"name\":\"ask\",", 0, false, false},
    {"ask", "engine.health", "{}", "{\"status\":\"unknown\",\"tools\":[{\"tool\":\"ask\",\"status\":\"unknown\"", 0,
     false, false},
    {"ask", "events.publish", "{name: a.b-c, data: {x: 1}}", "\"status\":\"success\"", 0, false, false},
    {"ask", "events.publish", "{name: A}", "ValidationError", 0, false, false},
    {"ask", "events.publish", "{name: a, date: {}}", "there is no argument \\\"date\\\"", 0, false, false},
    {"ask", "events.publish", "{name: a, data: 7}", "\\\"data\\\" is not an object but int", 0, false, false},
    {"ask", "engine.tool", "{}", "nothing answers \\\"engine.tool\\\"", 0, false, false},
    {"ask", "engine.tools", "[]", "the arguments are not an object but array", 0, false, false},
    {"ask", "tasks.add", "{type: mail}", "{\"from\":\"the program\"}", 1, false, false},
    {"ask", "tasks.add", "{type: mail}", "not with these arguments", 1, true, false},
    {"ask", "tasks.add", "{type: mail}", "ExistsError", 1, false, true},
    {"ask_undeclared", "engine.tools", "{}",
     "tool \\\"ask_undeclared\\\" of capability \\\"asker\\\" does not say that", 0, false, false},
    {"ask_undeclared", "tasks.add", "{}", "AccessDenied", 0, false, false},
};

/* Proves 8.5/catalogue: The tools of a run, and their health, are queries that a capability may ask */
START_TEST(a_call_gets_an_answer_or_the_reason_why_not)
{
    for (int real_time = 0; real_time < 2; real_time++) {
        struct program p;
        struct how how = {.capabilities = capabilities, .real_time = real_time, .services = &p.services};
        struct world w;

        open_program(&p);
        p.refuses = cases[_i].refuses;
        p.fails = cases[_i].fails;
        char *output = ask_in(&w, &how, "30", cases[_i].tool, cases[_i].service, cases[_i].args);
        ck_assert_msg(strstr(output, cases[_i].output), "%s", output);
        ck_assert_int_eq(p.n_made, cases[_i].n_made);
        free(output);
        world_fini(&w);
        ck_assert_int_eq(p.n_freed, p.n_run);
    }
}
END_TEST

START_TEST(a_program_knows_who_asks)
{
    struct program p;
    struct how how = {.capabilities = capabilities, .services = &p.services};
    struct world w;
    char want[300];

    open_program(&p);
    free(ask_in(&w, &how, "30", "ask", "tasks.add", "{user_id: eve, tenant: other}"));
    snprintf(want, sizeof want, "tasks.add asker.ask for \"%s\" of %s: {\"user_id\":\"eve\",\"tenant\":\"other\"}",
             rv_envelope_user(rv_exec_envelope(w.exec)), world_run_id());
    ck_assert_str_eq(p.last, want);
    world_fini(&w);
}
END_TEST

START_TEST(without_a_program_its_services_are_not_there)
{
    struct how how = {.capabilities = capabilities};
    struct world w;

    char *output = ask_in(&w, &how, "30", "ask", "tasks.add", "{}");
    ck_assert_msg(strstr(output, "UnavailableError"), "%s", output);
    free(output);
    world_fini(&w);
}
END_TEST

START_TEST(a_published_event_is_told_and_not_kept)
{
    struct how how = {.capabilities = capabilities};
    struct world w;

    free(ask_in(&w, &how, "30", "ask", "events.publish", "{name: note, data: {x: 1}}"));
    char *line =
        world_event(&w, "\"type\":\"custom\"", "\"capability\":\"asker\",\"name\":\"note\",\"data\":{\"x\":1}");
    ck_assert_ptr_nonnull(line);
    ck_assert(strstr(line, "\"kept\":false") && strstr(line, "\"stage\":\"t\"") && !strstr(line, "\"seq\""));
    free(line);
    world_fini(&w);
}
END_TEST

START_TEST(a_run_publishes_no_more_than_its_share)
{
    struct how how = {.capabilities = capabilities};
    struct world w;
    char pipeline[512];

    snprintf(pipeline, sizeof pipeline, ONE_STEP, "30");
    world_run(&w, &how, pipeline,
              "stages: {p: [{output: {steps: [\n"
              "  {tool: ask, parameters: {times: 1000, service: events.publish, args: {name: a}}},\n"
              "  {tool: ask, parameters: {service: events.publish, args: {name: a}}}]}}]}");
    char *output = world_output(&w, "t");
    ck_assert_msg(strstr(output, "have published 1000 events"), "%s", output);
    free(output);
    world_fini(&w);
}
END_TEST

/* Four calls ask at once with one worker each; none needs another one to be answered. */
START_TEST(calls_that_ask_do_not_wait_for_each_other)
{
    struct program p;
    struct how how = {.capabilities = capabilities, .services = &p.services, .workers = 2, .real_time = _i};
    struct world w;
    char pipeline[2048] = "name: four\ndefault_run_mode: parallel\nagents:\n  - {name: p}\n";

    open_program(&p);
    for (int i = 0; i < 8; i++)
        snprintf(pipeline + strlen(pipeline), sizeof pipeline - strlen(pipeline),
                 "  - {name: t%d, has_tools: true, tool_access: all, plan_from: p, requires: [p]}\n", i);
    world_run(&w, &how, pipeline,
              "stages: {p: [{output: {steps: [{tool: ask, parameters: {times: 20, service: tasks.add, args: {}}}]}}]}");
    ck_assert_str_eq(world_status(&w), "completed");
    ck_assert_int_eq(p.n_run, 8 * 20);
    world_fini(&w);
    ck_assert_int_eq(p.n_freed, 8 * 20);
}
END_TEST

static void *let_go(void *self)
{
    struct program *p = self;

    pthread_mutex_lock(&p->lock);
    p->holds = false;
    pthread_cond_broadcast(&p->changed);
    while (p->n_freed < p->n_run)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* The deadline ends a call whose job takes too long; the job's answer is not wanted then, and its memory is freed when
 * it comes back. */
START_TEST(a_deadline_ends_a_call_that_waits_for_a_job)
{
    int n_run = 0;

    for (int ms = 50; n_run == 0; ms *= 4) { /* a busy machine may not have begun the job by then */
        struct program p;
        struct how how = {.capabilities = capabilities, .services = &p.services, .real_time = _i};
        struct world w;
        char seconds[32], said[64];

        snprintf(seconds, sizeof seconds, "%d.%03d", ms / 1000, ms % 1000);
        snprintf(said, sizeof said, "did not answer within %d ms", ms);
        open_program(&p);
        p.holds = true;
        char *output = ask_in(&w, &how, seconds, "ask", "tasks.add", "{}");
        ck_assert_msg(strstr(output, said), "%s", output);
        free(output);
        pthread_mutex_lock(&p.lock);
        n_run = p.n_run;
        pthread_mutex_unlock(&p.lock);
        let_go(&p);
        ck_assert(rv_engine_settle(w.engine, HANGS_MS));
        world_fini(&w);
        ck_assert_int_ge(p.n_freed, n_run); /* a call that ended before it asked has no job */
        ck_assert_int_le(p.n_freed, 1);
    }
    ck_assert_int_eq(n_run, 1);
}
END_TEST

struct canceller {
    struct model_server *server;
    rv_engine *engine;
};

static void *cancel_when_asked(void *self)
{
    struct canceller *c = self;

    pthread_mutex_lock(&c->server->lock);
    while (c->server->n_requests == 0)
        pthread_cond_wait(&c->server->changed, &c->server->lock);
    pthread_mutex_unlock(&c->server->lock);
    rv_engine_cancel_all(c->engine);
    return NULL;
}

START_TEST(a_cancelled_run_withdraws_what_it_asked)
{
    static const struct plan plan[] = {
        {.hangs = true, .status = 200, .headers = "Content-Length: 10\r\n", .body = "x"}};
    struct model_server server;
    struct canceller c = {.server = &server};
    pthread_t thread;
    struct how how = {.capabilities = capabilities, .real_time = true};
    struct world w;
    char pipeline[512], script[512], allow[64];

    model_server_start(&server, plan, RV_COUNT(plan));
    snprintf(allow, sizeof allow, "127.0.0.1:%d", server.port);
    setenv("REEVE_ALLOW_NET", allow, 1);
    snprintf(pipeline, sizeof pipeline, ONE_STEP, "30");
    snprintf(script, sizeof script,
             "stages: {p: [{output: {steps: [{tool: ask, parameters: {service: http.get, args: {url: "
             "\"http://127.0.0.1:%d/\"}}}]}}]}",
             server.port);
    world_load(&w, pipeline, script, capabilities);
    world_start(&w, &how, "x");
    c.engine = w.engine;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_when_asked, &c), 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_str_eq(world_status(&w), "cancelled");
    ck_assert(rv_engine_settle(w.engine, HANGS_MS));
    world_fini(&w);
    model_server_stop(&server);
}
END_TEST

/* --- requests --- */

#define MAYBE_ONE 100 /* requests: the time may be over before the server has read its first one */

static const struct {
    bool allowed;
    const char *service, *args; /* %d: the port */
    struct plan plan[3];
    size_t n_plan;
    const char *output;
    size_t n_requests;
} requests[] = {
    {true,
     "http.get",
     "{url: \"http://127.0.0.1:%d/a?b\"}",
     {{.status = 200, .headers = "X-A: 1\r\nX-A: 2\r\n", .body = "hi"}},
     1,
     "\"body\":\"hi\"",
     1},
    {true,
     "http.get",
     "{url: \"http://127.0.0.1:%d/\"}",
     {{.status = 200, .headers = "X-A: 1\r\nX-A: 2\r\n", .body = "hi"}},
     1,
     "\"x-a\":\"1, 2\"",
     1},
    {true,
     "http.get",
     "{url: \"http://127.0.0.1:%d/\"}",
     {{.status = 404, .body = "\xff\xfe\xfd\xfc"}},
     1,
     "\"body_base64\":\"//79/A==\"",
     1},
    {true, "http.get", "{url: \"http://127.0.0.1:%d/\", method: POST}", {{.status = 200}}, 1, "ask http.request", 0},
    {true,
     "http.request",
     "{url: \"http://127.0.0.1:%d/\", method: POST, body: x, headers: {X-B: y}}",
     {{.status = 201, .body = "made"}},
     1,
     "\"status\":201",
     1},
    {true,
     "http.request",
     "{url: \"http://127.0.0.1:%d/\", headers: {Host: evil.test}}",
     {{.status = 200}},
     1,
     "AccessDenied",
     0},
    {true,
     "http.request",
     "{url: \"http://127.0.0.1:%d/\", headers: {X-B: \"a\\r\\nb: c\"}}",
     {{.status = 200}},
     1,
     "ValidationError",
     0},
    {true,
     "http.get",
     "{url: \"http://127.0.0.1:%d/\", max_bytes: 3}",
     {{.status = 200, .body = "four"}},
     1,
     "larger than 3 bytes",
     1},
    {true, "http.get", "{url: \"http://127.0.0.1:%d/\", max_byte: 3}", {{.status = 200}}, 1, "max_byte", 0},
    {true,
     "http.get",
     "{url: \"http://127.0.0.1:%d/\", timeout_ms: 50}",
     {{.hangs = true}},
     1,
     "TimeoutError",
     MAYBE_ONE},
    {true,
     "http.get",
     "{url: \"http://127.0.0.1:%d/\"}",
     {{.status = 302, .headers = "Location: /b\r\n"}, {.status = 200, .body = "there"}},
     2,
     "\"body\":\"there\"",
     2},
    {true,
     "http.get",
     "{url: \"http://127.0.0.1:%d/\"}",
     {{.status = 302, .headers = "Location: /b\r\n"}},
     1,
     "more than 5 redirects",
     6},
    {true,
     "http.get",
     "{url: \"http://127.0.0.1:%d/\"}",
     {{.status = 302, .headers = "Location: http://127.0.0.2:1/latest/meta-data\r\n"}},
     1,
     "a loopback address",
     1},
    {true,
     "http.get",
     "{url: \"http://127.0.0.1:%d/\"}",
     {{.status = 302, .headers = "Location: file:///etc/passwd\r\n"}},
     1,
     "a redirect leads to no address",
     1},
    {true,
     "http.request",
     "{url: \"http://127.0.0.1:%d/\", method: POST}",
     {{.status = 302, .headers = "Location: /b\r\n"}},
     1,
     "\"status\":302",
     1},
    {false, "http.get", "{url: \"http://127.0.0.1:%d/\"}", {{.status = 200}}, 1, "a loopback address", 0},
    {false, "http.get", "{url: \"http://0x7f.1:%d/\"}", {{.status = 200}}, 1, "a loopback address", 0},
    {false, "http.get", "{url: \"http://localhost:%d/\"}", {{.status = 200}}, 1, "a loopback address", 0},
    {false, "http.get", "{url: \"http://[::ffff:127.0.0.1]:%d/\"}", {{.status = 200}}, 1, "a loopback address", 0},
    {false, "http.get", "{url: \"http://u:p@127.0.0.1:%d/\"}", {{.status = 200}}, 1, "a user or a password", 0},
    {false, "http.get", "{url: \"ftp://127.0.0.1:%d/\"}", {{.status = 200}}, 1, "http:// or https://", 0},
    {false, "http.get", "{}", {{.status = 200}}, 1, "is not a string", 0},
};

START_TEST(a_capability_asks_for_an_address)
{
    struct model_server server;
    struct how how = {.capabilities = capabilities, .real_time = true};
    struct world w;
    char args[400], allow[64] = "";

    model_server_start(&server, requests[_i].plan, requests[_i].n_plan);
    if (requests[_i].allowed)
        snprintf(allow, sizeof allow, "127.0.0.1:%d", server.port);
    setenv("REEVE_ALLOW_NET", allow, 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(args, sizeof args, requests[_i].args, server.port);
#pragma GCC diagnostic pop
    char *output = ask_in(&w, &how, "30", "ask", requests[_i].service, args);
    ck_assert_msg(strstr(output, requests[_i].output), "%s", output);
    size_t n_requests = model_server_count(&server, &server.n_requests);
    if (requests[_i].n_requests != MAYBE_ONE)
        ck_assert_uint_eq(n_requests, requests[_i].n_requests);
    free(output);
    world_fini(&w);
    model_server_stop(&server);
}
END_TEST

/* The first request, its redirect within the origin, and one that leads elsewhere. */
START_TEST(a_request_names_the_trace_of_its_call_to_the_origin_that_was_asked)
{
    struct model_server server;
    struct how how = {.capabilities = capabilities, .real_time = true, .traces = _i != 1};
    struct world w;
    char args[200], allow[64], elsewhere[100], want[100];
    struct rv_trace_headers t;
    int n = 0;

    struct plan plan[] = {{.status = 302, .headers = "Location: /b\r\n"},
                          {.status = 302, .headers = elsewhere},
                          {.status = 200, .body = "there"}};
    model_server_start(&server, plan, RV_COUNT(plan));
    snprintf(elsewhere, sizeof elsewhere, "Location: http://localhost:%d/c\r\n", server.port);
    snprintf(allow, sizeof allow, "127.0.0.1:%d,localhost:%d", server.port, server.port);
    setenv("REEVE_ALLOW_NET", allow, 1);
    snprintf(args, sizeof args, "{url: \"http://127.0.0.1:%d/a\"%s}", server.port,
             _i == 2 ? ", headers: {Traceparent: mine}" : "");
    free(ask_in(&w, &how, "30", "ask", "http.get", args));
    ck_assert_uint_eq(model_server_count(&server, &server.n_requests), 3);
    ck_assert(rv_trace_make_headers(world_run_id(), 2, NULL, NULL, true, &t));
    snprintf(want, sizeof want, "%s: %s\r\n", _i == 2 ? "Traceparent" : "traceparent", _i == 2 ? "mine" : t.parent);
    for (const char *p = rv_buf_cstr(&server.heads); (p = strcasestr(p, "traceparent:")); p++, n++)
        ck_assert_msg(strncmp(p, want, strlen(want)) == 0, "%s", p);
    ck_assert_int_eq(n, _i == 1 ? 0 : 2);
    world_fini(&w);
    model_server_stop(&server);
}
END_TEST

START_TEST(a_request_takes_real_time)
{
    struct how how = {.capabilities = capabilities};
    struct world w;

    char *output = ask_in(&w, &how, "30", "ask", "http.get", "{url: \"http://127.0.0.1:1/\"}");
    ck_assert_msg(strstr(output, "the time of this run is simulated"), "%s", output);
    free(output);
    world_fini(&w);
}
END_TEST

START_TEST(a_list_of_addresses_that_cannot_be_read_allows_nothing)
{
    struct how how = {.capabilities = capabilities, .real_time = true};
    struct world w;

    setenv("REEVE_ALLOW_NET", "10.0.0.0/99", 1);
    char *output = ask_in(&w, &how, "30", "ask", "http.get", "{url: \"http://127.0.0.1:1/\"}");
    ck_assert_msg(strstr(output, "the variable REEVE_ALLOW_NET"), "%s", output);
    free(output);
    world_fini(&w);
}
END_TEST

Suite *services_suite(void)
{
    Suite *s = suite_create("engine services");
    TCase *tc = tcase_create("services");

    tcase_add_loop_test(tc, a_call_gets_an_answer_or_the_reason_why_not, 0, RV_COUNT(cases));
    tcase_add_test(tc, a_program_knows_who_asks);
    tcase_add_test(tc, without_a_program_its_services_are_not_there);
    tcase_add_test(tc, a_published_event_is_told_and_not_kept);
    tcase_add_test(tc, a_run_publishes_no_more_than_its_share);
    tcase_add_loop_test(tc, calls_that_ask_do_not_wait_for_each_other, 0, 2);
    tcase_add_loop_test(tc, a_deadline_ends_a_call_that_waits_for_a_job, 0, 2);
    tcase_add_test(tc, a_cancelled_run_withdraws_what_it_asked);
    tcase_add_loop_test(tc, a_capability_asks_for_an_address, 0, RV_COUNT(requests));
    tcase_add_loop_test(tc, a_request_names_the_trace_of_its_call_to_the_origin_that_was_asked, 0, 3);
    tcase_add_test(tc, a_request_takes_real_time);
    tcase_add_test(tc, a_list_of_addresses_that_cannot_be_read_allows_nothing);
    suite_add_tcase(s, tc);
    return s;
}
