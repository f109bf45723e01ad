/* Several questions at once: stages side by side that each ask, answered by id in any order (rules 3.6, 7.7, 7.10). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define HEAD "name: t\ndefault_run_mode: parallel\nmodels: {r: scripted}\nagents:\n"
#define HOUR INT64_C(3600000000)

static const struct drive_tool tools[] = {{"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0},
                                          {"put", RV_RISK_WRITE, NULL, NULL, 0}};

/* The id of the interrupt of that stage that waits, pending or queued; false: none. */
static bool id_of(struct drive *d, const char *stage, char id[64])
{
    char path[80], want[80];

    snprintf(want, sizeof want, "\"%s\"", stage);
    for (int i = -1; i < 8; i++) {
        const char *at = i < 0 ? "interrupt" : "metadata.queued_interrupts";
        char item[16] = "";
        if (i >= 0)
            snprintf(item, sizeof item, ".%d", i);
        else if (strcmp(drive_state(d, "interrupt_pending"), "true") != 0)
            continue;
        snprintf(path, sizeof path, "%s%s.stage", at, item);
        if (strcmp(drive_state(d, path), want) != 0)
            continue;
        snprintf(path, sizeof path, "%s%s.id", at, item);
        const char *text = drive_state(d, path);
        snprintf(id, 64, "%.*s", (int)strlen(text) - 2, text + 1);
        return true;
    }
    return false;
}

static size_t n_waiting(struct drive *d)
{
    const char *queued = drive_state(d, "metadata.queued_interrupts.n");
    size_t n = strcmp(queued, "absent") == 0 ? 0 : strtoul(queued, NULL, 10);

    return n + (strcmp(drive_state(d, "interrupt_pending"), "true") == 0);
}

/* The n-th permutation of 0..k-1. */
static void permute(int n, int k, int out[])
{
    for (int i = 0; i < k; i++)
        out[i] = i;
    for (int i = k - 1; i > 0; i--) {
        int j = n % (i + 1), was = out[i];
        n /= i + 1;
        out[i] = out[j];
        out[j] = was;
    }
}

static int factorial(int k)
{
    return k < 2 ? 1 : k * factorial(k - 1);
}

/* --- stages that ask for text --- */

/* Asks at first, then says what it was told. */
static const char *ask_once(struct drive *d, const struct drive_call *c, bool *handled)
{
    static char text[64];

    (void)d;
    *handled = c->kind == RV_EFFECT_CALL_LLM;
    if (c->visit == 1)
        return "{'outcome':'clarify','question':'which?'}";
    const char *at = strstr(c->request, "told-");
    snprintf(text, sizeof text, "{'was':'%.*s'}", at ? 6 : 0, at ? at : "");
    return text;
}

static struct drive *askers(int k)
{
    rv_buf yaml = RV_BUF_INIT(4096);

    rv_buf_puts(&yaml, HEAD);
    for (int i = 0; i < k; i++)
        rv_buf_printf(&yaml, "  - {name: s%d, stage_order: %d, has_llm: true, model_role: r, prompt_key: p}\n", i, i);
    rv_buf_puts(&yaml, "  - {name: last, stage_order: 9, requires: [s0, s1]}\n"
                       "prompts: {p: 'you said {{interrupt_response}}'}\n");
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    d->answer = ask_once;
    rv_buf_fini(&yaml);
    return d;
}

static void check_all_told(struct drive *d, int k)
{
    char path[32], want[32];

    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    for (int i = 0; i < k; i++) {
        snprintf(path, sizeof path, "outputs.s%d.was", i);
        snprintf(want, sizeof want, "\"told-%d\"", i);
        ck_assert_str_eq(drive_state(d, path), want);
        snprintf(path, sizeof path, "stage_visits.s%d", i);
        ck_assert_str_eq(drive_state(d, path), "2");
    }
    ck_assert_str_ne(drive_state(d, "outputs.last"), "absent");
    ck_assert_str_eq(drive_state(d, "metadata.queued_interrupts"), "[]");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"end\"");
}

/* By id, each in the given order; in the same run, or each time in one made from the saved state. */
static void answer_in_order(struct drive *d, const int order[], int k, bool reloads)
{
    char ids[8][64], stage[16], text[24], id[64];

    for (int i = 0; i < k; i++) {
        snprintf(stage, sizeof stage, "s%d", i);
        ck_assert(id_of(d, stage, ids[i]));
    }
    for (int i = 0; i < k; i++) {
        struct rv_response r = {.text = rv_str_of(text), .interrupt_id = rv_str_of(ids[order[i]])};
        snprintf(text, sizeof text, "told-%d", order[i]);
        r.text = rv_str_of(text);
        ck_assert_int_eq(rv_run_status(d->run), RV_RUN_INTERRUPTED);
        ck_assert_uint_eq(n_waiting(d), (size_t)(k - i));
        ck_assert_int_eq(reloads ? drive_resume(d, &r, NULL) : drive_go_on(d, &r, NULL), 0);
        for (int j = 0; j < k; j++) { /* the others wait under the ids they had */
            bool answered = false;
            snprintf(stage, sizeof stage, "s%d", j);
            for (int a = 0; a <= i; a++)
                answered |= order[a] == j;
            ck_assert(id_of(d, stage, id) == !answered);
            if (!answered)
                ck_assert_str_eq(id, ids[j]);
        }
    }
}

static const int widths[] = {2, 3, 5};

/* Proves 3.6/several: Interrupts of parallel stages wait together under ids of their own, and are answered by id in
 * any order; without an id the pending one is meant */
START_TEST(questions_of_parallel_stages_can_be_answered_in_any_order)
{
    int k = widths[_i / 2], order[8];
    int step = k > 3 ? (_i % 2 ? 7 : 1) * (int)rv_kit_stride(5) : 1; /* loading and saving takes its time */

    for (int n = 0; n < factorial(k); n += step) {
        struct drive *d = askers(k);
        ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
        permute(n, k, order);
        answer_in_order(d, order, k, _i % 2);
        check_all_told(d, k);
        drive_free(d);
    }
}
END_TEST

/* Proves 3.6/several */
START_TEST(answers_without_id_go_to_the_pending_question)
{
    struct drive *d = askers(3);
    char stage[16], id[64], text[24];

    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    for (int i = 0; i < 3; i++) {
        snprintf(stage, sizeof stage, "\"s%d\"", i);
        ck_assert_str_eq(drive_state(d, "interrupt.stage"), stage); /* in stage order */
        snprintf(text, sizeof text, "told-%d", i);
        const struct rv_response r = {.text = rv_str_of(text)};
        ck_assert(id_of(d, "s2", id) == (i < 3));
        ck_assert_int_eq(drive_go_on(d, &r, NULL), 0);
    }
    check_all_told(d, 3);
    drive_free(d);
}
END_TEST

/* Proves 7.7/promote: When all that was answered is done, the first that waits becomes the envelope's; its time to
 * live begins then */
START_TEST(a_promoted_question_keeps_id_and_text_and_gets_its_time_anew)
{
    struct drive *d = askers(2);
    char id[64], want[80];
    const struct rv_response r = {.text = RV_STR_LIT("told-0")};

    drive_run(d);
    ck_assert(id_of(d, "s1", id));
    snprintf(want, sizeof want, "\"%s\"", id);
    d->now_us += HOUR;
    ck_assert_int_eq(drive_go_on(d, &r, NULL), 0);
    ck_assert_str_eq(drive_state(d, "interrupt.id"), want);
    ck_assert_str_eq(drive_state(d, "interrupt.stage"), "\"s1\"");
    ck_assert_str_eq(drive_state(d, "interrupt.question"), "\"which?\"");
    ck_assert_str_eq(drive_state(d, "interrupt.created_at"), "\"2023-11-14T23:13:20.002000Z\"");
    ck_assert_str_eq(drive_state(d, "interrupt.expires_at"), "\"2023-11-15T23:13:20.002000Z\"");
    ck_assert_str_eq(drive_state(d, "interrupt.response"), "absent");
    json_object *line = drive_line(d, "interrupt_pending", 1);
    const char *text = NULL;
    ck_assert(rv_json_get_text(line, "stage", &text) && strcmp(text, "s1") == 0);
    ck_assert(rv_json_get_text(line, "id", &text) && strcmp(text, id) == 0);
    drive_free(d);
}
END_TEST

/* --- every kind of question beside the others --- */

#define MIXED                                                                                                          \
    HEAD "  - {name: c, stage_order: 1, has_llm: true, model_role: r, prompt_key: p}\n"                                \
         "  - {name: g, stage_order: 2, has_tools: true, tool_access: all, plan_from: wipes}\n"                        \
         "  - {name: p, stage_order: 3, has_policies: true, policies: [x.p]}\n"                                        \
         "  - {name: u, stage_order: 4, has_tools: true, tool_access: all, plan_from: puts}\n"                         \
         "  - {name: last, stage_order: 9, requires: [c, g, p, u]}\n"                                                  \
         "prompts: {p: 'you said {{interrupt_response}}'}\n"
#define PLANS                                                                                                          \
    "{'envelope_id':'env_1','outputs':{'wipes':{'steps':[{'tool':'wipe','parameters':{'n':1}}]},"                      \
    "'puts':{'steps':[{'tool':'put','parameters':{'n':2}}]}}}"

static const char *mixed_answer(struct drive *d, const struct drive_call *c, bool *handled)
{
    if (c->kind == RV_EFFECT_CALL_LLM)
        return ask_once(d, c, handled);
    *handled = true;
    if (c->kind == RV_EFFECT_CALL_TOOL)
        return strcmp(c->name, "put") == 0 && c->visit == 1 ? "#" : "{'ran':1}";
    return c->kind == RV_EFFECT_CALL_HOOK && c->entry == RV_NAME_POLICY ? "{'decision':'confirm'}" : "{}";
}

static struct drive *mixed(void)
{
    struct drive *d = drive_new(MIXED, tools, RV_COUNT(tools));

    d->answer = mixed_answer;
    drive_envelope(d, PLANS);
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_uint_eq(n_waiting(d), 4);
    return d;
}

static struct rv_response right_answer(const char *stage)
{
    struct rv_response r = {0};

    if (stage[0] == 'c')
        r.text = rv_str_of("told-0");
    else if (stage[0] == 'u')
        r.decision = rv_str_of("not_happened");
    else
        r.has_approved = r.approved = true;
    return r;
}

/* Proves 10/gate-several: Gates of several stages are answered each by its id; one denial ends the run and runs no
 * tool; what was approved and has an unknown outcome is not asked for approval again */
START_TEST(gates_policies_questions_and_unknown_outcomes_mix_in_any_order)
{
    static const char *const stages[] = {"c", "g", "p", "u"};
    char id[64];
    int order[4];

    permute(_i, 4, order);
    struct drive *d = mixed();
    for (int i = 0; i < 4; i++) {
        struct rv_response r = right_answer(stages[order[i]]);
        ck_assert(id_of(d, stages[order[i]], id));
        r.interrupt_id = rv_str_of(id);
        size_t n_calls = d->n_calls;
        ck_assert_int_eq(drive_go_on(d, &r, NULL), 0);
        ck_assert_uint_le(d->n_calls, n_calls + 1); /* only what was answered goes on */
    }
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.c.was"), "\"told-0\"");
    ck_assert_str_eq(drive_state(d, "outputs.g.results.0.data"), "{\"ran\":1}");
    ck_assert_str_eq(drive_state(d, "outputs.u.results.0.data"), "{\"ran\":1}");
    ck_assert_str_eq(drive_state(d, "outputs.p"), "{}");
    ck_assert_str_eq(drive_state(d, "suspended"), "{}");
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 3); /* put twice: it was said not to have happened */
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 2); /* the policy confirms again, and was answered */
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "9");
    drive_free(d);
}
END_TEST

/* Proves 10/gate-several */
START_TEST(one_denial_among_several_ends_the_run_and_runs_nothing)
{
    static const char *const stages[] = {"g", "p"};
    struct drive *d = mixed();
    char id[64];
    size_t n_calls = d->n_calls;

    ck_assert(id_of(d, stages[_i], id));
    const struct rv_response r = {.has_approved = true, .approved = false, .interrupt_id = rv_str_of(id)};
    ck_assert_int_eq(drive_go_on(d, &r, NULL), 0);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"user_cancelled\"");
    ck_assert_uint_eq(d->n_calls, n_calls);
    ck_assert_int_eq(drive_go_on(d, &r, NULL), RV_E_STATE);
    drive_free(d);
}
END_TEST

/* `to` is a stage whose id is given, or an id. */
static const struct {
    const char *name, *to;
    struct rv_response r;
    int code;
    const char *mentions;
} refusals[] = {
    {"unknown id", "int_0000000000000000", {.text = RV_STR_LIT("x")}, RV_E_NOT_FOUND, "int_0000000000000000"},
    {"empty id", "", {.text = RV_STR_LIT("x")}, RV_E_NOT_FOUND, "\"\""},
    {"text for a queued gate", "g", {.text = RV_STR_LIT("x")}, RV_E_INVALID, "approved"},
    {"text for a queued policy", "p", {.text = RV_STR_LIT("x")}, RV_E_INVALID, "approved"},
    {"approval for the pending question", "c", {.has_approved = true, .approved = true}, RV_E_INVALID, "text"},
    {"approval for a queued outcome", "u", {.has_approved = true, .approved = true}, RV_E_INVALID, "decision"},
    {"words of a review for an outcome", "u", {.decision = RV_STR_LIT("approve")}, RV_E_INVALID, "happened"},
    {"odd word for an outcome", "u", {.decision = RV_STR_LIT("hapened")}, RV_E_INVALID, "not_happened"},
    {"words of an outcome for a gate",
     "g",
     {.has_approved = true, .decision = RV_STR_LIT("happened")},
     RV_E_INVALID,
     "approve"},
    {"no text for the pending question", "c", {.text = RV_STR_LIT("\xff")}, RV_E_INVALID, "UTF-8"},
    {"no text for a queued gate",
     "g",
     {.has_approved = true, .approved = true, .text = RV_STR_LIT("\xff")},
     RV_E_INVALID,
     "UTF-8"},
    {"nothing", "p", {.has_approved = false}, RV_E_INVALID, "approved"},
};

/* Proves 3.6/several-refused: An unknown id (the ids that wait are listed), a second answer, an answer of the wrong
 * kind and a late one are refused and change nothing
 * Proves 8.6/resolve: It is resolved by its id; an unknown one, one that does not wait and one of another user are
 * refused */
START_TEST(a_refused_answer_changes_nothing)
{
    struct drive *d = mixed();
    struct rv_response r = refusals[_i].r;
    rv_err *err = NULL;
    char id[64];

    if (id_of(d, refusals[_i].to, id))
        r.interrupt_id = rv_str_of(id);
    else
        r.interrupt_id = rv_str_of(refusals[_i].to);
    ck_assert_int_eq(drive_go_on(d, &r, &err), refusals[_i].code);
    char *text = rv_kit_err_take(err);
    ck_assert_msg(strstr(text, refusals[_i].mentions) != NULL, "%s", text);
    if (refusals[_i].code == RV_E_NOT_FOUND) /* says which ones wait */
        for (const char *s = "cgpu"; *s; s++) {
            ck_assert(id_of(d, (char[]){*s, '\0'}, id));
            ck_assert_msg(strstr(text, id) != NULL, "%s", text);
        }
    free(text);
    for (const char *s = "ucpg"; *s; s++) { /* and all can be answered all the same */
        r = right_answer(s);
        ck_assert(id_of(d, (char[]){*s, '\0'}, id));
        r.interrupt_id = rv_str_of(id);
        ck_assert_int_eq(drive_go_on(d, &r, NULL), 0);
    }
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    drive_free(d);
}
END_TEST

static const struct {
    const char *stage;
    int64_t after_us;
    int code;
} late[] = {
    {"g", HOUR - 1, 0},      {"g", HOUR, RV_E_TIMEOUT},      {"p", HOUR - 1, 0},  {"p", HOUR, RV_E_TIMEOUT},
    {"c", 24 * HOUR - 1, 0}, {"c", 24 * HOUR, RV_E_TIMEOUT}, {"u", 24 * HOUR, 0}, {"u", 24 * 365 * HOUR, 0},
};

/* Proves 8.6/expire: An expired one takes no answer; the run says when the earliest one expires
 * Proves 3.6/several-refused */
START_TEST(each_of_several_questions_expires_at_its_own_time)
{
    struct drive *d = mixed();
    struct rv_response r = right_answer(late[_i].stage);
    rv_err *err = NULL;
    char id[64];

    ck_assert(id_of(d, late[_i].stage, id));
    r.interrupt_id = rv_str_of(id);
    /* the question was raised by the answer of its call or, at a gate, at once */
    d->now_us = (late[_i].stage[0] == 'g' ? DRIVE_T0 : DRIVE_T0 + DRIVE_LATENCY_US) + late[_i].after_us;
    ck_assert_int_eq(drive_go_on(d, &r, &err), late[_i].code);
    rv_err_free(err);
    drive_free(d);
}
END_TEST

/* Proves 3.6/several-refused */
START_TEST(a_second_answer_to_the_same_question_is_refused)
{
    struct drive *d = mixed();
    struct rv_response r = right_answer("p");
    rv_err *err = NULL;
    char id[64], other[64];

    ck_assert(id_of(d, "p", id) && id_of(d, "g", other));
    r.interrupt_id = rv_str_of(id);
    ck_assert_int_eq(drive_go_on(d, &r, NULL), 0);
    ck_assert_int_eq(drive_go_on(d, &r, &err), RV_E_NOT_FOUND); /* others wait, this one does not */
    char *text = rv_kit_err_take(err);
    ck_assert_msg(strstr(text, other) != NULL, "%s", text);
    free(text);
    for (size_t n = 3; n > 0; n--) { /* without an id: whichever is pending */
        ck_assert_uint_eq(n_waiting(d), n);
        const struct rv_response next = right_answer(drive_state(d, "interrupt.stage") + 1);
        ck_assert_int_eq(drive_go_on(d, &next, NULL), 0);
    }
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_int_eq(drive_go_on(d, &r, NULL), RV_E_STATE);
    drive_free(d);
}
END_TEST

TCase *answers_case(void)
{
    TCase *tc = tcase_create("answers");

    tcase_add_loop_test(tc, questions_of_parallel_stages_can_be_answered_in_any_order, 0, 2 * RV_COUNT(widths));
    tcase_add_test(tc, answers_without_id_go_to_the_pending_question);
    tcase_add_test(tc, a_promoted_question_keeps_id_and_text_and_gets_its_time_anew);
    tcase_add_loop_test(tc, gates_policies_questions_and_unknown_outcomes_mix_in_any_order, 0, 24);
    tcase_add_loop_test(tc, one_denial_among_several_ends_the_run_and_runs_nothing, 0, 2);
    tcase_add_loop_test(tc, a_refused_answer_changes_nothing, 0, RV_COUNT(refusals));
    tcase_add_loop_test(tc, each_of_several_questions_expires_at_its_own_time, 0, RV_COUNT(late));
    tcase_add_test(tc, a_second_answer_to_the_same_question_is_refused);
    return tc;
}
