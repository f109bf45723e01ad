/* Models that take too long, in whatever they do: the call ends, keeps what came, and says which limit ended it. Where
 * a model has to come as far as its text the limit is a second: the machine may be slow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"
#include "tests/unit/engine/talks.h"

static const struct plan says_nothing[] = {{0}};
static const struct plan hangs_in_the_middle[] = {{.status = 200, .body = PIECE("Hel") PIECE("lo"), .hangs = true}};
static const struct plan says_much[] = {{.status = 200, .n_numbered = 4000}};
static const struct plan is_busy_for_long[] = {{.status = 503, .headers = "Retry-After: 20\r\n", .body = "busy"}};
static const struct plan is_busy[] = {{.status = 503, .headers = "Retry-After-Ms: 600\r\n", .body = "busy"}};

static const struct {
    const char *name;
    const struct plan *plan;
    struct asking how;
    bool holds;
    size_t most; /* requests there is time for, when each is waited for; 0: one */
    const char *type, *kind, *text, *partial;
} rows[] = {
    {"first byte",
     says_nothing,
     {.execution = "llm_timeout: 1"},
     .type = "TimeoutError",
     .kind = "timeout",
     .text = ": raise execution.llm_timeout"},
    {"first byte, the stage's time",
     says_nothing,
     {.stage = "timeout_seconds: 1"},
     .type = "TimeoutError",
     .kind = "timeout",
     .text = ": that was left of the 1 s for stage \\\"ask\\\"; raise its timeout_seconds"},
    {"first byte, the role's time",
     says_nothing,
     {.role = "first_byte_timeout_ms: 1000, max_attempts: 1"},
     .type = "TimeoutError",
     .kind = "timeout",
     .text = "no answer within 1000 ms (first_byte_timeout_ms of the role)"},
    {"in the middle",
     hangs_in_the_middle,
     {.execution = "llm_timeout: 1"},
     .type = "TimeoutError",
     .kind = "timeout",
     .text = ": raise execution.llm_timeout",
     .partial = "Hello"},
    {"in the middle, the role's time",
     hangs_in_the_middle,
     {.role = "idle_timeout_ms: 1000"},
     .type = "TimeoutError",
     .kind = "timeout",
     .text = "idle_timeout_ms of the role",
     .partial = "Hello"},
    {"held",
     says_much,
     {.execution = "llm_timeout: 1"},
     true,
     .type = "TimeoutError",
     .kind = "timeout",
     .text = ": raise execution.llm_timeout",
     .partial = "0 "},
    {"a wait that would take too long",
     is_busy_for_long,
     {.execution = "llm_timeout: 5"},
     .most = 1,
     .type = "LLMError",
     .kind = "overloaded",
     .text = "the wait before it would pass the deadline"},
    {"waits, again and again",
     is_busy,
     {.execution = "llm_timeout: 2", .role = "max_attempts: 20"},
     .most = 4, /* 2 s have room for three waits */
     .type = "LLMError",
     .kind = "overloaded",
     .text = " the deadline"}, /* would be passed by the next wait, or, on a slow machine, has passed in the last */
};

static void says(const char *line, const char *key, const char *value)
{
    char want[200];

    snprintf(want, sizeof want, "\"%s\":\"%s\"", key, value);
    ck_assert_msg(strstr(line, want) != NULL, "no %s in %s", want, line);
}

/* Proves 12.3/times */
START_TEST(a_model_that_is_late_ends_in_its_time)
{
    struct talk t = {.holds = rows[_i].holds};
    struct talks all;
    char line[4096];

    talks_init(&all, rows[_i].plan, 1);
    const struct rv_pipeline *p = talks_asking(&all, &rows[_i].how);
    ck_assert_str_eq(talk_whole(&all, &t, p), "failed");
    talk_event(&t, "llm_result", line, sizeof line);
    says(line, "error_type", rows[_i].type);
    says(line, "error_kind", rows[_i].kind);
    ck_assert_msg(strstr(line, rows[_i].text) != NULL, "%s: %s", rows[_i].name, line);
    ck_assert_int_eq(t.may_be_billed, strcmp(rows[_i].kind, "timeout") == 0); /* the server may be at work on it */
    if (rows[_i].partial)
        ck_assert_msg(strstr(line, "\"partial\":\"") && strstr(line, rows[_i].partial), "%s: %s", rows[_i].name, line);
    else
        ck_assert_ptr_null(strstr(line, "\"partial\""));
    ck_assert_uint_le(model_server_count(&all.server, &all.server.n_requests), rows[_i].most ? rows[_i].most : 1);
    ck_assert(model_server_is_down_to(&all.server, &all.server.n_now, 0));
    talk_fini(&t);
    talks_fini(&all);
}
END_TEST

/* The run before it has the only place, and keeps it. */
START_TEST(a_wait_for_a_place_ends_in_its_time)
{
    struct talk first = {0}, second = {0};
    struct talks all;
    char line[4096];

    talks_init(&all, hangs_in_the_middle, 1);
    talk_begin(&all, &first, talks_asking(&all, &(struct asking){.role = "max_concurrent: 1"}));
    engine_until(all.engine, &first.n_pieces, 2);
    const struct rv_pipeline *p =
        talks_asking(&all, &(struct asking){.execution = "llm_timeout: 0.2", .role = "max_concurrent: 1"});
    ck_assert_str_eq(talk_whole(&all, &second, p), "failed");
    talk_event(&second, "llm_result", line, sizeof line);
    says(line, "error_type", "TimeoutError");
    says(line, "error_kind", "timeout");
    ck_assert_msg(strstr(line, "of waiting for its turn (max_concurrent, ") != NULL, "%s", line);
    ck_assert_ptr_nonnull(strstr(line, "): raise execution.llm_timeout\""));
    ck_assert_uint_eq(second.n_payloads, 0);
    ck_assert(!second.may_be_billed);
    ck_assert_uint_eq(model_server_count(&all.server, &all.server.n_requests), 1);
    ck_assert(!rv_exec_has_ended(first.exec));
    talk_fini(&second);
    talk_fini(&first);
    talks_fini(&all);
}
END_TEST

/* Whoever waits behind one that gave up still gets the place. */
START_TEST(a_place_goes_to_who_still_waits)
{
    static const struct plan slow[] = {{.status = 200, .body = PIECE("x") THE_END, .waits = true}};
    struct talk first = {0}, late = {0}, last = {0};
    struct talks all;

    talks_init(&all, slow, 1);
    const struct rv_pipeline *patient = talks_asking(&all, &(struct asking){.role = "max_concurrent: 1"});
    const struct rv_pipeline *hasty =
        talks_asking(&all, &(struct asking){.execution = "llm_timeout: 0.1", .role = "max_concurrent: 1"});
    talk_begin(&all, &first, patient);
    engine_until(all.engine, &first.n_payloads, 1);
    talk_begin(&all, &late, hasty);
    talk_begin(&all, &last, patient);
    ck_assert_str_eq(talk_end(&all, &late), "failed");
    model_server_go_on(&all.server);
    ck_assert_str_eq(talk_end(&all, &last), "completed");
    ck_assert_str_eq(talk_end(&all, &first), "completed");
    ck_assert_uint_eq(all.server.n_peak, 1);
    talk_fini(&first);
    talk_fini(&late);
    talk_fini(&last);
    talks_fini(&all);
}
END_TEST

Suite *model_times_suite(void)
{
    Suite *suite = suite_create("model_times");
    TCase *tc = tcase_create("model_times");

    tcase_add_loop_test(tc, a_model_that_is_late_ends_in_its_time, 0, RV_COUNT(rows));
    tcase_add_test(tc, a_wait_for_a_place_ends_in_its_time);
    tcase_add_test(tc, a_place_goes_to_who_still_waits);
    suite_add_tcase(suite, tc);
    return suite;
}
