/* Providers that capabilities bring hand out their answers on a worker, or in a process of their own: what they say
 * reaches the run in order, before the answer, and is kept where there is none. */
#include <stdio.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"
#include "tests/unit/engine/talks.h"

#define LONG_MS 10000 /* no longer limit is tried */

static const struct plan nothing[] = {{0}};

static const struct {
    const char *name, *model;
    bool is_isolated;
    const char *limit;     /* a key of execution; NULL: none */
    const char *heard;     /* from the call to its result, or where that begins */
    const char *result[4]; /* parts of the event */
} rows[] = {
    {"models",
     "models.good:x",
     false,
     NULL,
     "{llm_call_start}[thinking]<Hel><lo \u00e4>[usage]",
     {"\"status\":\"success\"", "\"preview\":\"Hello \u00e4\""}},
    {"models",
     "models.good:x",
     true,
     NULL,
     "{llm_call_start}[thinking]<Hel><lo \u00e4>[usage]",
     {"\"status\":\"success\"", "\"preview\":\"Hello \u00e4\""}},
    {"models",
     "models.fails:x",
     false,
     NULL,
     "{llm_call_start}<half>{llm_result}",
     {"\"error_kind\":\"rate_limited\"", "slow down", "\"partial\":\"half\""}},
    {"models",
     "models.fails:x",
     true,
     NULL,
     "{llm_call_start}<half>{llm_result}",
     {"\"error_kind\":\"rate_limited\"", "slow down", "\"partial\":\"half\""}},
    {"models", "models.silent:x", false, NULL, "{llm_call_start}<half>{llm_result}", {"\"partial\":\"half\""}},
    {"models",
     "models.waits:x",
     false,
     "llm_timeout",
     "{llm_call_start}<first>{llm_result}",
     {"\"error_type\":\"TimeoutError\"", " ms: raise execution.llm_timeout", "\"partial\":\"first\""}},
    {"models",
     "models.waits:x",
     true,
     "llm_timeout",
     "{llm_call_start}<first>{llm_result}",
     {"\"error_type\":\"TimeoutError\"", "\"partial\":\"first\""}},
    {"models",
     "models.waits:x",
     false,
     "agent_timeout",
     "{llm_call_start}<first>{llm_result}",
     {"\"error_type\":\"TimeoutError\"", "raise execution.agent_timeout", "\"partial\":\"first\""}},
    {"models",
     "models.hangs:x",
     true,
     "llm_timeout",
     "{llm_call_start}<half>{llm_result}",
     {"\"error_type\":\"TimeoutError\"", "\"partial\":\"half\""}},
    {"models",
     "models.dies:x",
     true,
     NULL,
     "{llm_call_start}<half>{llm_result}",
     {"its process died", "\"partial\":\"half\""}},
};

/* Where the model has to say something before its time is over, and the machine was too slow for that, with twice as
 * much. */
static const char *ask(struct talks *all, struct talk *t, int row)
{
    for (int ms = 50;; ms *= 2) {
        char execution[64] = "";
        if (rows[row].limit)
            snprintf(execution, sizeof execution, "%s: %d.%03d", rows[row].limit, ms / 1000, ms % 1000);
        talks_init(all, nothing, 1);
        const char *status = talk_whole(
            all, t, talks_capability(all, rows[row].name, rows[row].is_isolated, rows[row].model, execution));
        if (!rows[row].limit || t->n_pieces > 0 || ms > LONG_MS)
            return status;
        talk_fini(t);
        talks_fini(all);
        *t = (struct talk){0};
    }
}

/* Proves 12.5/pieces: Pieces of capabilities' providers come before their answer, each run hears its own */
START_TEST(pieces_of_a_worker_come_before_its_answer)
{
    struct talk t = {0};
    struct talks all;
    char line[4096];

    const char *status = ask(&all, &t, _i);
    talk_event(&t, "llm_result", line, sizeof line);
    ck_assert_str_eq(status, strstr(line, "\"status\":\"success\"") ? "completed" : "failed");
    const char *heard = strstr(rv_buf_cstr(&t.heard), "{llm_call_start}");
    ck_assert_ptr_nonnull(heard);
    ck_assert_msg(strncmp(heard, rows[_i].heard, strlen(rows[_i].heard)) == 0, "%s", heard);
    for (size_t i = 0; i < RV_COUNT(rows[_i].result) && rows[_i].result[i]; i++)
        ck_assert_msg(strstr(line, rows[_i].result[i]) != NULL, "no %s in %s", rows[_i].result[i], line);
    ck_assert_msg(strstr(rv_buf_cstr(&t.payloads), "\"provider\":\"models."), "%s", rv_buf_cstr(&t.payloads));
    talk_fini(&t);
    talks_fini(&all);
}
END_TEST

/* What a role has for its provider reaches that, and no recording. */
START_TEST(a_provider_gets_the_keys_of_its_role)
{
    struct talk t = {0};
    struct talks all;
    char line[4096];

    talks_init(&all, nothing, 1);
    const struct rv_pipeline *p =
        talks_capability(&all, "models", _i == 1, "{model: 'models.knows:x', api_key: hush, options: {mine: [7]}}", "");
    ck_assert_str_eq(talk_whole(&all, &t, p), "completed");
    ck_assert_msg(strstr(rv_buf_cstr(&t.heard), "hush and 7"), "%s", rv_buf_cstr(&t.heard));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&t.payloads), "\"provider\":\"models.knows\""));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&t.payloads), "settings"));
    talk_event(&t, "llm_result", line, sizeof line);
    ck_assert_ptr_nonnull(strstr(line, "\"latency_ms\":")); /* metrics need it */
    talk_fini(&t);
    talks_fini(&all);
}
END_TEST

/* The words that echo streams are the answer that it gives. */
START_TEST(echo_streams_what_it_answers)
{
    struct talk t = {0};
    struct talks all;
    rv_buf said = RV_BUF_INIT(1 << 16);
    char line[4096], want[4200];

    talks_init(&all, nothing, 1);
    const struct rv_pipeline *p = talks_capability(&all, "echo", _i == 1, "echo.model:any", "");
    ck_assert_str_eq(talk_whole(&all, &t, p), "completed");
    const char *at = strstr(rv_buf_cstr(&t.heard), "{llm_call_start}"), *end = strstr(at, "{llm_result}");
    for (at = strchr(at, '<'); at && at < end; at = strchr(at + 1, '<'))
        rv_buf_add(&said, at + 1, strcspn(at + 1, ">"));
    ck_assert_uint_gt(t.n_pieces, 1);
    snprintf(want, sizeof want, "\"preview\":\"%s\"", rv_buf_cstr(&said));
    talk_event(&t, "llm_result", line, sizeof line);
    ck_assert_msg(strstr(line, want) != NULL, "no %s in %s", want, line);
    rv_buf_fini(&said);
    talk_fini(&t);
    talks_fini(&all);
}
END_TEST

/* A provider that was written before there were attachments would answer as if there were none. */
START_TEST(only_a_provider_that_says_so_gets_attachments)
{
    static const struct {
        const char *name, *model, *status, *result;
    } pictures[] = {
        {"models", "models.sees:x", "completed", "\"preview\":\"a kea\""},
        {"models", "models.good:x", "failed", "provider \\\"models.good\\\" takes no attachments"},
        {"models", "models.good:x", "failed", "\"error_kind\":\"bad_request\""},
        {"echo", "echo.model:any", "failed", "provider \\\"echo.model\\\" takes no attachments"},
    };

    for (size_t i = 0; i < RV_COUNT(pictures); i++) {
        struct talk t = {0};
        struct talks all;
        char line[4096];

        talks_init(&all, nothing, 1);
        const struct rv_pipeline *p = talks_picture(&all, pictures[i].name, pictures[i].model);
        ck_assert_str_eq(talk_whole(&all, &t, p), pictures[i].status);
        talk_event(&t, "llm_result", line, sizeof line);
        ck_assert_msg(strstr(line, pictures[i].result) != NULL, "no %s in %s", pictures[i].result, line);
        talk_fini(&t);
        talks_fini(&all);
    }
}
END_TEST

/* Pieces of several workers at once, each run hears its own. */
/* Proves 12.5/pieces */
START_TEST(runs_hear_their_own_pieces)
{
    struct talk t[40] = {{0}};
    struct talks all;

    talks_init(&all, nothing, 1);
    const struct rv_pipeline *p[] = {talks_capability(&all, "models", false, "models.good:x", ""),
                                     talks_capability(&all, "echo", false, "echo.model:x", "")};
    for (size_t i = 0; i < RV_COUNT(t); i++)
        talk_begin(&all, &t[i], p[i % 2]);
    for (size_t i = 0; i < RV_COUNT(t); i++) {
        ck_assert_str_eq(talk_end(&all, &t[i]), "completed");
        ck_assert_str_eq(rv_buf_cstr(&t[i].heard), rv_buf_cstr(&t[i % 2].heard));
    }
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&t[0].heard), "[thinking]<Hel><lo \u00e4>"));
    ck_assert_str_ne(rv_buf_cstr(&t[0].heard), rv_buf_cstr(&t[1].heard));
    for (size_t i = 0; i < RV_COUNT(t); i++)
        talk_fini(&t[i]);
    talks_fini(&all);
}
END_TEST

START_TEST(a_run_or_an_engine_goes_while_pieces_come)
{
    struct talk t[8] = {{0}};
    struct talks all;

    talks_init(&all, nothing, 1);
    const struct rv_pipeline *p = talks_capability(&all, "models", false, "models.waits:x", "");
    for (size_t i = 0; i < RV_COUNT(t); i++)
        talk_begin(&all, &t[i], p);
    engine_until(all.engine, &t[0].n_pieces, 1);
    t[1].cancel_at = 1;
    if (t[1].n_pieces == 0)
        ck_assert_str_eq(talk_end(&all, &t[1]), "cancelled");
    talk_fini(&t[0]);
    rv_engine_cancel_all(all.engine);
    for (size_t i = 1; i < 4; i++)
        ck_assert_str_eq(talk_end(&all, &t[i]), "cancelled");
    ck_assert(rv_engine_settle(all.engine, HANGS_MS)); /* each of them heard of it */
    rv_engine_free(all.engine);
    all.engine = NULL;
    for (size_t i = 1; i < RV_COUNT(t); i++)
        talk_fini(&t[i]);
    talks_fini(&all);
}
END_TEST

Suite *pieces_suite(void)
{
    Suite *suite = suite_create("pieces");
    TCase *tc = tcase_create("pieces");

    tcase_add_loop_test(tc, pieces_of_a_worker_come_before_its_answer, 0, RV_COUNT(rows));
    tcase_add_loop_test(tc, a_provider_gets_the_keys_of_its_role, 0, 2);
    tcase_add_loop_test(tc, echo_streams_what_it_answers, 0, 2);
    tcase_add_test(tc, only_a_provider_that_says_so_gets_attachments);
    tcase_add_test(tc, runs_hear_their_own_pieces);
    tcase_add_test(tc, a_run_or_an_engine_goes_while_pieces_come);
    suite_add_tcase(suite, tc);
    return suite;
}
