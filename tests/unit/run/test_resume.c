/* Resuming (rules 3.6, 7.10; W03, W13, W22, W44, W45): each kind of interrupt, its answers and its errors. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/run/drive.h"
#include "tests/unit/run/suites.h"

/* Stages a, b, c, d; the envelope waits at b with one visit of a done. */
#define STAGES                                                                                                         \
    "name: t\nagents:\n  - {name: a, stage_order: 1, default_next: b}\n  - {name: b, stage_order: 2, default_next: "   \
    "c}\n"                                                                                                             \
    "  - {name: c, stage_order: 3}\n  - {name: d, stage_order: 4}\n"
#define RESUME "clarification_resume_stage: d\nconfirmation_resume_stage: d\nagent_review_resume_stage: d\n"
#define REJECT "agent_review_reject_stage: c\n"

static const struct {
    const char *kind, *more;
    const char *text, *decision;
    int approved; /* -1: not given */
    int code;
    enum rv_run_status status;
    const char *first; /* stage that runs first, NULL: none */
} answers[] = {
    {"clarification", "", "blue", NULL, -1, 0, RV_RUN_COMPLETED, "b"},
    {"clarification", RESUME, "blue", NULL, -1, 0, RV_RUN_COMPLETED, "d"},
    {"clarification", "", NULL, NULL, -1, RV_E_INVALID, 0, NULL},
    {"clarification", "", NULL, NULL, 1, RV_E_INVALID, 0, NULL},
    {"confirmation", "", NULL, NULL, 1, 0, RV_RUN_COMPLETED, "b"},
    {"confirmation", RESUME, NULL, NULL, 1, 0, RV_RUN_COMPLETED, "d"},
    {"confirmation", RESUME, NULL, NULL, 0, 0, RV_RUN_TERMINATED, NULL},
    {"confirmation", "", "yes", "approve", -1, RV_E_INVALID, 0, NULL}, /* W44 */
    {"agent_review", "", NULL, "approve", -1, 0, RV_RUN_COMPLETED, "b"},
    {"agent_review", RESUME, NULL, "approve", -1, 0, RV_RUN_COMPLETED, "d"},
    {"agent_review", RESUME, "shorter", "modify", -1, 0, RV_RUN_COMPLETED, "d"},
    {"agent_review", RESUME, NULL, "reject", -1, 0, RV_RUN_TERMINATED, NULL}, /* W45 */
    {"agent_review", RESUME REJECT, NULL, "reject", -1, 0, RV_RUN_COMPLETED, "c"},
    {"agent_review", "", NULL, "maybe", -1, RV_E_INVALID, 0, NULL},
    {"agent_review", "", "text", NULL, 1, RV_E_INVALID, 0, NULL},
    {"checkpoint", RESUME, NULL, NULL, -1, 0, RV_RUN_COMPLETED, "b"},
    {"resource_exhausted", RESUME, NULL, NULL, -1, 0, RV_RUN_COMPLETED, "b"},
    {"timeout", RESUME, NULL, NULL, -1, 0, RV_RUN_COMPLETED, "b"},
};

static struct drive *waiting(const char *more, const char *kind, const char *expires)
{
    rv_buf yaml = RV_BUF_INIT(4096), state = RV_BUF_INIT(4096);

    rv_buf_printf(&yaml, STAGES "%s", more);
    rv_buf_printf(
        &state,
        "{'current_stage':'b','stage_order':['a','b','c','d'],'agent_hop_count':1,'llm_call_count':3,'iteration':1,"
        "'edge_traversals':[{'from':'a','to':'b','count':1}],'interrupt_pending':true,'interrupt':{'kind':'%s',"
        "'id':'int_1','question':'q','message':'m','data':{},'created_at':'2023-11-14T22:13:20Z'%s}}",
        kind, expires);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    drive_envelope(d, rv_buf_cstr(&state));
    rv_buf_fini(&yaml);
    rv_buf_fini(&state);
    return d;
}

/* Proves 7.10/where: Each kind goes on at its configured stage, else where it stands; a denial or a rejection ends
 * the run, or leads to the reject stage; modify keeps the text as feedback
 * Proves 7.10/refused: An answer that lacks what its kind needs is refused and the interrupt stays
 * Proves W03/resume: Resuming resets neither position nor counts
 * Proves W45: A rejected review ends the run or goes to the reject stage */
START_TEST(an_answer_resumes_where_its_kind_says)
{
    struct drive *d = waiting(answers[_i].more, answers[_i].kind, "");
    struct rv_response r = {.text = rv_str_of(answers[_i].text),
                            .decision = rv_str_of(answers[_i].decision),
                            .has_approved = answers[_i].approved >= 0,
                            .approved = answers[_i].approved > 0};
    rv_err *err = NULL;

    if (!answers[_i].text)
        r.text = (rv_str){NULL, 0};
    if (!answers[_i].decision)
        r.decision = (rv_str){NULL, 0};
    ck_assert_msg(drive_resume(d, &r, &err) == answers[_i].code, "%s: %s", answers[_i].kind, rv_err_text(err));
    rv_err_free(err);
    if (answers[_i].code) { /* nothing changed: it stays pending */
        ck_assert_str_eq(drive_state(d, "interrupt_pending"), "true");
        ck_assert_str_eq(drive_state(d, "interrupt.response"), "absent");
        ck_assert_str_eq(drive_state(d, "status"), "\"ready\"");
        drive_free(d);
        return;
    }
    ck_assert_int_eq(rv_run_status(d->run), answers[_i].status);
    ck_assert_str_eq(drive_state(d, "interrupt_pending"), "false");
    ck_assert_str_ne(drive_state(d, "interrupt.response.received_at"), "absent"); /* stays readable */
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "3");                      /* counters go on */
    ck_assert_str_eq(drive_state(d, "iteration"), "1");
    ck_assert_str_eq(drive_state(d, "edge_traversals.0.count"), "1"); /* W22 */
    json_object *line = drive_line(d, "stage_started", 0);
    const char *stage = NULL;
    if (line)
        ck_assert(rv_json_get_text(line, "stage", &stage));
    ck_assert_pstr_eq(stage, answers[_i].first); /* W03 */
    bool modifies = answers[_i].decision && strcmp(answers[_i].decision, "modify") == 0;
    ck_assert_str_eq(drive_state(d, "loop_feedback"), modifies ? "[\"shorter\"]" : "[]");
    if (answers[_i].status == RV_RUN_TERMINATED)
        ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"user_cancelled\"");
    ck_assert(strncmp(drive_story(d), "pipeline_started", 16) == 0);
    drive_free(d);
}
END_TEST

/* Proves 7.10/refused */
START_TEST(a_refused_answer_can_be_followed_by_a_right_one)
{
    struct drive *d = waiting("", "confirmation", "");
    struct rv_response wrong = {.text = RV_STR_LIT("yes")};
    rv_err *err = NULL;

    ck_assert_int_eq(drive_resume(d, &wrong, &err), RV_E_INVALID);
    rv_err_free(err);
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_COMPLETED);
    drive_free(d);
}
END_TEST

/* Proves 7.10/expired: An answer after the expiry is refused */
START_TEST(an_expired_interrupt_is_refused_and_stays)
{
    struct drive *d = waiting("", "confirmation", ",'expires_at':'2023-11-14T22:13:21Z'");
    struct rv_response r = {.has_approved = true, .approved = true};
    rv_err *err = NULL;

    d->now_us = DRIVE_T0 + 2000000;
    ck_assert_int_eq(drive_resume(d, &r, &err), RV_E_TIMEOUT); /* W13 */
    rv_err_free(err);
    ck_assert_str_eq(drive_state(d, "interrupt_pending"), "true");
    drive_free(d);
}
END_TEST

/* Proves 7.10/pending: Without a pending interrupt an answer is an error */
START_TEST(nothing_pending_is_an_error)
{
    struct drive *d = drive_new(STAGES, NULL, 0);
    struct rv_response r = {.text = RV_STR_LIT("x")};
    rv_err *err = NULL;

    ck_assert_int_eq(drive_resume(d, &r, &err), RV_E_STATE);
    ck_assert_msg(strstr(rv_err_text(err), "no pending interrupt") != NULL, "%s", rv_err_text(err));
    rv_err_free(err);
    drive_free(d);
}
END_TEST

START_TEST(an_envelope_that_never_ran_is_initialised_on_resume)
{
    struct drive *d = drive_new(STAGES, NULL, 0);
    struct rv_response r = {.text = RV_STR_LIT("x")};

    drive_envelope(d, "{'interrupt_pending':true,'interrupt':{'kind':'clarification','id':'i','question':'q','data':{},"
                      "'created_at':'2023-11-14T22:13:20Z'}}");
    ck_assert_int_eq(drive_resume(d, &r, NULL), 0);
    ck_assert_str_eq(drive_state(d, "stage_order.0"), "\"a\"");
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "3");
    drive_free(d);
}
END_TEST

/* Proves 7.10/kept: Counters, edge counts and visits go on
 * Proves W22/run: Edge counts go on across a pause
 * Proves W03/resume */
START_TEST(edge_limits_hold_across_a_pause)
{
    struct drive *d =
        drive_new("name: t\nmax_iterations: 9\nagents: [{name: a, default_next: a, has_llm: true, model_role: r}]\n"
                  "edge_limits: [{from: a, to: a, max_count: 2}]\nmodels: {r: scripted}\n",
                  NULL, 0);
    struct rv_response r = {.text = RV_STR_LIT("x")};

    DRIVE_ANSWERS(d, {"llm:a", "{}", false, 0}, {"llm:a", "{'outcome':'clarify','question':'q'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(drive_resume(d, &r, NULL), 0);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "edge_traversals.0.count"), "3"); /* not counted anew (W22) */
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "4");
    drive_free(d);
}
END_TEST

START_TEST(an_interrupt_carries_its_id_expiry_and_answer_to_prompts)
{
    struct drive *d = drive_new("name: t\nagents: [{name: a, has_llm: true, model_role: r, prompt_key: p}]\n"
                                "prompts: {p: 'said {{interrupt_response}}'}\nmodels: {r: scripted}\n",
                                NULL, 0);
    struct rv_response r = {.text = RV_STR_LIT("blue")};

    DRIVE_ANSWERS(d, {"llm:a", "{'outcome':'clarify','question':'q'}", false, 0});
    ck_assert_msg(drive_run(d) == RV_RUN_INTERRUPTED, "%s", drive_state(d, "errors"));
    ck_assert_str_eq(drive_state(d, "interrupt.expires_at"), "\"2023-11-15T22:13:20.001000Z\""); /* 24 h */
    json_object *line = drive_line(d, "interrupt_pending", 0);
    const char *text = NULL;
    ck_assert(rv_json_get_text(line, "id", &text) && strncmp(text, "int_", 4) == 0 && strlen(text) == 20);
    ck_assert_int_eq(drive_resume(d, &r, NULL), 0);
    ck_assert_msg(strstr(drive_request(&d->calls[0], "prompt"), "blue") != NULL, "%s", d->calls[0].request);
    drive_free(d);
}
END_TEST

/* Proves 7.10/text: An answer that is no UTF-8 is refused
 * Proves 11.6/answers: Bytes that are no UTF-8 are refused in answers of people, too */
START_TEST(an_answer_that_is_no_text_is_refused)
{
    struct drive *d = waiting("", "clarification", "");
    struct rv_response r = {.text = RV_STR_LIT("\xff")};
    rv_err *err = NULL;

    ck_assert_int_eq(drive_resume(d, &r, &err), RV_E_INVALID);
    rv_err_free(err);
    ck_assert_str_eq(drive_state(d, "interrupt_pending"), "true");
    drive_free(d);
}
END_TEST

TCase *resume_case(void)
{
    TCase *tc = tcase_create("resume");

    tcase_add_loop_test(tc, an_answer_resumes_where_its_kind_says, 0, RV_COUNT(answers));
    tcase_add_test(tc, a_refused_answer_can_be_followed_by_a_right_one);
    tcase_add_test(tc, an_expired_interrupt_is_refused_and_stays);
    tcase_add_test(tc, an_answer_that_is_no_text_is_refused);
    tcase_add_test(tc, nothing_pending_is_an_error);
    tcase_add_test(tc, an_envelope_that_never_ran_is_initialised_on_resume);
    tcase_add_test(tc, edge_limits_hold_across_a_pause);
    tcase_add_test(tc, an_interrupt_carries_its_id_expiry_and_answer_to_prompts);
    return tc;
}
