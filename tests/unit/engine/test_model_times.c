/* Models that take too long, in whatever they do: the call ends, keeps what came, and says which limit ended it. The
 * limits are short; where the machine was too slow for the model to come as far as it has to, a longer one is tried. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"
#include "tests/unit/engine/talks.h"

#define LONG_MS 10000 /* no longer limit is tried */

static const struct plan says_nothing[] = {{0}};
static const struct plan hangs_in_the_middle[] = {{.status = 200, .body = PIECE("Hel") PIECE("lo"), .hangs = true}};
static const struct plan says_much[] = {{.status = 200, .n_numbered = 4000}};
static const struct plan is_busy_for_long[] = {{.status = 503, .headers = "Retry-After: 20\r\n", .body = "busy"}};
static const struct plan is_busy[] = {{.status = 503, .headers = "Retry-After-Ms: 100\r\n", .body = "busy"}};
#define BUSY_MS 100

/* The key that limits the time. */
enum limit { LLM, AGENT, FIRST_BYTE, IDLE, NONE };

static const struct {
    const char *name;
    const struct plan *plan;
    enum limit limit;
    const char *role;  /* more keys of it */
    bool holds, waits; /* the reader; the model, between requests */
    const char *type, *kind, *text, *partial;
} rows[] = {
    {"first byte", says_nothing, LLM, .type = "TimeoutError", .kind = "timeout",
     .text = ": raise execution.llm_timeout"},
    {"first byte, the stage's time", says_nothing, AGENT, .type = "TimeoutError", .kind = "timeout",
     .text = "for stage \\\"ask\\\"; raise execution.agent_timeout"},
    {"first byte, the role's time", says_nothing, FIRST_BYTE, .role = ", max_attempts: 1", .type = "TimeoutError",
     .kind = "timeout", .text = " ms (first_byte_timeout_ms of the role)"},
    {"in the middle", hangs_in_the_middle, LLM, .type = "TimeoutError", .kind = "timeout",
     .text = ": raise execution.llm_timeout", .partial = "Hello"},
    {"in the middle, the role's time", hangs_in_the_middle, IDLE, .type = "TimeoutError", .kind = "timeout",
     .text = "idle_timeout_ms of the role", .partial = "Hello"},
    {"held", says_much, LLM, .holds = true, .type = "TimeoutError", .kind = "timeout",
     .text = ": raise execution.llm_timeout", .partial = "0 "},
    {"a wait that would take too long", is_busy_for_long, NONE, .type = "LLMError", .kind = "overloaded",
     .text = "the wait before it would pass the deadline"},
    {"waits, again and again", is_busy, LLM, .role = "max_attempts: 20", .waits = true, .type = "LLMError",
     .kind = "overloaded",
     .text = " the deadline"}, /* would be passed by the next wait, or, on a slow machine, has passed in the last */
};

static void says(const char *line, const char *key, const char *value)
{
    char want[200];

    snprintf(want, sizeof want, "\"%s\":\"%s\"", key, value);
    ck_assert_msg(strstr(line, want) != NULL, "no %s in %s", want, line);
}

/* Asks with that limit. */
static void ask_within(struct talks *all, struct talk *t, int row, int ms)
{
    char execution[64] = "llm_timeout: 5", role[96] = "";

    if (rows[row].limit == LLM || rows[row].limit == AGENT)
        snprintf(execution, sizeof execution, "%s: %d.%03d", rows[row].limit == LLM ? "llm_timeout" : "agent_timeout",
                 ms / 1000, ms % 1000);
    else if (rows[row].limit != NONE)
        snprintf(role, sizeof role, "%s: %d", rows[row].limit == IDLE ? "idle_timeout_ms" : "first_byte_timeout_ms",
                 ms);
    if (rows[row].role)
        snprintf(role + strlen(role), sizeof role - strlen(role), "%s", rows[row].role);
    t->holds = rows[row].holds;
    talks_init(all, rows[row].plan, 1);
    ck_assert_str_eq(talk_whole(all, t, talks_asking(all, &(struct asking){execution, role[0] ? role : NULL, NULL})),
                     "failed");
}

/* The machine was too slow for the model to come as far as the row wants it to. */
static bool was_too_short(const struct talk *t, int row, const char *line)
{
    if (strcmp(rows[row].kind, "timeout") != 0)
        return strstr(line, "\"error_kind\":\"timeout\"") != NULL;
    return !t->may_be_billed || (rows[row].partial && !strstr(line, rows[row].partial));
}

/* Proves 12.3/times */
START_TEST(a_model_that_is_late_ends_in_its_time)
{
    struct talk t = {0};
    struct talks all;
    char line[4096];
    int ms = rows[_i].waits ? 2 * BUSY_MS + 50 : 50;

    for (;; ms *= 2) {
        ask_within(&all, &t, _i, ms);
        talk_event(&t, "llm_result", line, sizeof line);
        if (ms > LONG_MS || !was_too_short(&t, _i, line))
            break;
        talk_fini(&t);
        talks_fini(&all);
        t = (struct talk){0};
    }
    says(line, "error_type", rows[_i].type);
    says(line, "error_kind", rows[_i].kind);
    ck_assert_msg(strstr(line, rows[_i].text) != NULL, "%s: %s", rows[_i].name, line);
    ck_assert_int_eq(t.may_be_billed, strcmp(rows[_i].kind, "timeout") == 0); /* the server may be at work on it */
    if (rows[_i].partial)
        ck_assert_msg(strstr(line, "\"partial\":\"") && strstr(line, rows[_i].partial), "%s: %s", rows[_i].name, line);
    else
        ck_assert_ptr_null(strstr(line, "\"partial\""));
    ck_assert_uint_le(model_server_count(&all.server, &all.server.n_requests),
                      rows[_i].waits ? (size_t)ms / BUSY_MS + 1 : 1);
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
        talks_asking(&all, &(struct asking){.execution = "llm_timeout: 0.05", .role = "max_concurrent: 1"});
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
        talks_asking(&all, &(struct asking){.execution = "llm_timeout: 0.05", .role = "max_concurrent: 1"});
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
