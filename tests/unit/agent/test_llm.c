/* Model stages: the request (rule 5.5), prompts (W27, W28), output modes, attempts and time (W16). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

#define HEAD  "name: t\nagents:\n  - name: a\n    stage_order: 1\n    has_llm: true\n    model_role: r\n    "
#define MODEL "models: {r: 'openai:gpt-x'}\n"

static const struct {
    const char *agent, *rest, *want;
} requests[] = {
    {"", MODEL,
     "{\"role\":\"r\",\"provider\":\"openai\",\"model\":\"gpt-x\",\"prompt\":\"Process the following request and "
     "answer with a "
     "JSON object.\\n\\nRequest: what is "
     "it?\",\"options\":{\"num_predict\":2000,\"num_ctx\":16384},\"output_mode\":\"json\"}"},
    {"prompt_key: p\n    max_tokens: 7\n    temperature: 0\n    output_mode: text\n", MODEL "prompts: {p: 'Hi'}\n",
     "{\"role\":\"r\",\"provider\":\"openai\",\"model\":\"gpt-x\",\"prompt\":\"Hi\",\"options\":{\"num_predict\":7,"
     "\"num_ctx\":16384,\"temperature\":0.0},\"output_mode\":\"text\"}"},
    {"prompt_key: p\n    temperature: null\n",
     "models: {r: {model: 'openai:gpt-x', temperature: 1}}\nprompts: {p: 'Hi'}\n",
     "{\"role\":\"r\",\"provider\":\"openai\",\"model\":\"gpt-x\",\"prompt\":\"Hi\",\"options\":{\"num_predict\":2000,"
     "\"num_ctx\":16384},\"output_mode\":\"json\"}"},
    {"prompt_key: p\n    temperature: 0.5\n", MODEL "prompts: {p: 'Hi'}\nexecution: {llm_seed: 42}\n",
     "{\"role\":\"r\",\"provider\":\"openai\",\"model\":\"gpt-x\",\"prompt\":\"Hi\",\"options\":{\"num_predict\":2000,"
     "\"num_ctx\":16384,\"temperature\":0.5,\"seed\":42},\"output_mode\":\"json\"}"},
};

/* Proves 5.5/prompt: The prompt is rendered from the key; without one a fixed sentence with the input takes its
 * place
 * Proves 5.5/options: The request has model role, max_tokens or 2000, a context of 16384, and a temperature only
 * when set */
START_TEST(the_request_is_exact)
{
    rv_buf yaml = RV_BUF_INIT(4096);

    rv_buf_printf(&yaml, "%s%s\n%s", HEAD, requests[_i].agent, requests[_i].rest);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    drive_start(d);
    ck_assert_uint_eq(d->n_calls, 1);
    ck_assert_str_eq(d->calls[0].name, "r");
    ck_assert_str_eq(d->calls[0].request, requests[_i].want);
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

/* --- what prompts see --- */

static const struct {
    const char *prompt, *want;
} prompts[] = {
    {"{{raw_input}}", "what is it?"},
    {"{{user_id}}", "ada"}, /* an output of that name does not replace it (W27) */
    {"{{session_id}}", "sess_0123456789abcdef"},
    {"{{outputs.user_id.x}}", "evil"},
    {"{{plan.goal}}", "g"}, /* outputs under their own key */
    {"{{outputs.plan.goal}}", "g"},
    {"{{metadata.lang}}", "en"},
    {"{{metadata.x}}", "m"}, /* and not the output called metadata */
    {"{{iteration}}", "2"},
    {"{{loop_feedback}}", "[\"shorter\"]"},
    {"{{prior_plans}}", "[{\"goal\":\"old\"}]"},
    {"{{interrupt_response.text}}", "blue"},
};

/* Proves 5.5/context: Prompts see the input, ids, metadata, iteration, feedback, earlier plans, the answer to an
 * interrupt and every output; the engine's names win
 * Proves W27: An output's name never overwrites one of the engine's in a prompt; feedback and earlier plans are
 * offered */
START_TEST(a_prompt_sees_the_envelope_and_engine_keys_win)
{
    rv_buf yaml = RV_BUF_INIT(4096);

    rv_buf_printf(&yaml,
                  "%sprompt_key: p\n  - {name: b, stage_order: 2, output_key: plan}\n"
                  "  - {name: c, stage_order: 3, output_key: user_id}\n%sprompts: {p: 'Say: %s'}\n",
                  HEAD, MODEL, prompts[_i].prompt);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    drive_envelope(
        d, "{'raw_input':'what is it?','user_id':'ada','session_id':'sess_0123456789abcdef','iteration':2,"
           "'outputs':{'user_id':{'x':'evil'},'raw_input':{'x':1},'iteration':{'x':1},'metadata':{'x':'no'},"
           "'loop_feedback':{},'prior_plans':{},'interrupt_response':{'text':'no'},'plan':{'goal':'g'}},"
           "'metadata':{'lang':'en','x':'m'},'loop_feedback':['shorter'],'prior_plans':[{'goal':'old'}],"
           "'interrupt':{'kind':'clarification','id':'int_1','question':'q','data':{},"
           "'created_at':'2023-11-14T22:13:20Z','response':{'text':'blue','received_at':'2023-11-14T22:13:20Z'}}}");
    drive_start(d);
    json_object *request = rv_kit_json(d->calls[0].request);
    const char *prompt = NULL;
    ck_assert(rv_json_get_text(request, "prompt", &prompt));
    ck_assert_msg(strncmp(prompt, "Say: ", 5) == 0 && strcmp(prompt + 5, prompts[_i].want) == 0, "%s: %s",
                  prompts[_i].prompt, prompt);
    json_object_put(request);
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

/* Proves W28: A prompt that nobody knows is an error at load, or fails the stage */
START_TEST(a_prompt_that_nobody_knows_fails_the_stage)
{
    struct drive *d = drive_new(HEAD "prompt_key: gone\n" MODEL, NULL, 0);

    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED); /* W28 */
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_LLM), 0);
    ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"ProcessingError\"");
    ck_assert_msg(strstr(drive_state(d, "errors.0.error"), "gone") != NULL, "%s", drive_state(d, "errors.0.error"));
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"tool_failed_fatally\"");
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "1"); /* the LLM path ran */
    drive_free(d);
}
END_TEST

/* Proves 5.6/text: In text mode the output is the reply under `response`, and nothing is parsed */
START_TEST(text_mode_takes_the_reply_as_it_is)
{
    struct drive *d = drive_new(HEAD "output_mode: text\n" MODEL, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "no \"JSON\" {at all", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"response\":\"no \\\"JSON\\\" {at all\"}");
    drive_free(d);
}
END_TEST

/* Proves 5.5/preview: Previews are cut at 200 bytes, at a character, with three dots */
START_TEST(the_preview_of_a_reply_is_200_bytes_cut_at_a_character)
{
    char reply[600] = "{\"v\":\"a", want[256] = "{\"v\":\"a";
    struct drive_answer answer = {"llm:a", reply, false, 0};
    struct drive *d = drive_new(HEAD "output_mode: text\n" MODEL, NULL, 0);
    const char *text = NULL;

    for (size_t n = strlen(reply); n < 400; n += 2)
        memcpy(reply + n, "\xc3\xa9", 3);
    for (size_t n = strlen(want); n + 2 <= 200; n += 2)
        memcpy(want + n, "\xc3\xa9", 3);
    memcpy(want + strlen(want), "...", 4);
    drive_answers(d, &answer, 1);
    drive_run(d);
    ck_assert(rv_json_get_text(drive_line(d, "llm_result", 0), "preview", &text));
    ck_assert_str_eq(text, want);
    drive_free(d);
}
END_TEST

/* --- attempts (W16) --- */

static const char patient[] = HEAD "max_retries: 3\n    timeout_seconds: 100\n" MODEL;

static const struct {
    const char *replies[5];
    enum rv_run_status status;
    size_t calls;
    const char *error_type;
} attempts[] = {
    {{"?:busy", "{'v':1}"}, RV_RUN_COMPLETED, 2, "absent"},
    {{"!TimeoutError:slow", "{'v':1}"}, RV_RUN_COMPLETED, 2, "absent"},
    {{"no object", "{'v':1}"}, RV_RUN_COMPLETED, 2, "absent"},
    {{"?:1", "?:2", "no", "{'v':1}"}, RV_RUN_COMPLETED, 4, "absent"},
    {{"?:1", "?:2", "?:3", "?:4", "{}"}, RV_RUN_FAILED, 4, "\"LLMError\""},
    {{"!:bad key", "{'v':1}"}, RV_RUN_FAILED, 1, "\"LLMError\""}, /* not transient: not repeated */
};

/* Proves 10/transient: What cannot pass is not tried again
 * Proves W16/run: A visit has a deadline; further attempts are made for failures that may pass, each a model call
 * of the budget; one record and one hop in all
 * Proves 10/retry */
START_TEST(what_may_pass_is_tried_again)
{
    struct drive_answer answers[5] = {{NULL, NULL, false, 0}};
    size_t n = 0;
    struct drive *d = drive_new(patient, NULL, 0);
    char want[8];

    while (n < 5 && attempts[_i].replies[n]) {
        answers[n] = (struct drive_answer){"llm:a", attempts[_i].replies[n], false, 0};
        n++;
    }
    drive_answers(d, answers, n);
    ck_assert_int_eq(drive_run(d), attempts[_i].status);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_LLM), attempts[_i].calls);
    snprintf(want, sizeof want, "%zu", attempts[_i].calls);
    ck_assert_str_eq(drive_state(d, "llm_call_count"), want); /* each attempt counts */
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "1"); /* one hop, one record per visit */
    ck_assert_str_eq(drive_state(d, "processing_history.n"), "1");
    ck_assert_str_eq(drive_state(d, "errors.0.error_type"), attempts[_i].error_type);
    for (size_t i = 0; i < attempts[_i].calls; i++)
        ck_assert_int_eq(drive_call_at(d, RV_EFFECT_CALL_LLM, i)->attempt, (int64_t)i + 1);
    drive_free(d);
}
END_TEST

/* Proves 10/retry: Attempts wait 1 s, doubled up to 30 s; only what may pass is tried again, and never an interrupt */
START_TEST(the_wait_doubles_up_to_30_seconds)
{
    static const int64_t seconds[] = {1, 2, 4, 8, 16, 30, 30};
    struct drive *d =
        drive_new(HEAD "max_retries: 7\n    timeout_seconds: 200\n" MODEL "execution: {max_llm_retries: 7}\n", NULL, 0);
    int64_t asked = DRIVE_T0;

    DRIVE_ANSWERS(d, {"llm:a", "?:busy", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_ARM_TIMER), RV_COUNT(seconds));
    for (size_t i = 0; i < RV_COUNT(seconds); i++) {
        int64_t at = drive_call_at(d, RV_EFFECT_ARM_TIMER, i)->due_us;
        ck_assert_int_eq(at, asked + DRIVE_LATENCY_US + seconds[i] * 1000000);
        asked = at;
    }
    ck_assert_msg(strstr(drive_story(d), "llm_result:a retry:a llm_call_start:a") != NULL, "%s", drive_story(d));
    drive_free(d);
}
END_TEST

/* Proves W16/run */
START_TEST(attempts_end_with_the_budget_of_calls)
{
    struct drive *d = drive_new(HEAD "max_retries: 3\n" MODEL "max_llm_calls: 2\n", NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "?:busy", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "2");
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"llm_failed_fatally\"");
    drive_free(d);
}
END_TEST

/* Proves 10/timeout, W16/run */
START_TEST(attempts_end_with_the_deadline_of_the_stage)
{
    struct drive *d = drive_new(HEAD "max_retries: 3\n    timeout_seconds: 4\n" MODEL, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "?:busy", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED); /* 1 s, then 2 s, then 4 s would be too long */
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_LLM), 3);
    drive_free(d);
}
END_TEST

START_TEST(error_next_comes_after_the_last_attempt)
{
    struct drive *d =
        drive_new(HEAD "max_retries: 1\n    error_next: b\n  - {name: b, stage_order: 2}\n" MODEL, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "?:busy", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_LLM), 2);
    ck_assert_str_eq(drive_state(d, "errors.n"), "1");
    drive_free(d);
}
END_TEST

/* --- time --- */

static const struct {
    const char *agent, *rest;
    int64_t seconds;
} deadlines[] = {
    {"", "", 120}, /* execution.llm_timeout */
    {"timeout_seconds: 30", "", 30},
    {"timeout_seconds: 500", "", 120},
    {"", "default_timeout_seconds: 20", 20},
    {"timeout_seconds: 500", "execution: {llm_timeout: 400}", 400},
    {"timeout_seconds: 500", "execution: {llm_timeout: 400, agent_timeout: 50}", 50},
};

/* Proves 5.5/deadline: Each call has the nearest of the deadlines of stage, model, tool and agent
 * Proves 10/timeout: A visit has a deadline, each call the nearest one
 * Proves W23/run */
START_TEST(a_call_has_the_nearest_deadline)
{
    rv_buf yaml = RV_BUF_INIT(4096);

    rv_buf_printf(&yaml, "%s%s\n%s%s\n", HEAD, deadlines[_i].agent, MODEL, deadlines[_i].rest);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    drive_start(d);
    ck_assert_int_eq(d->calls[0].deadline_us, DRIVE_T0 + deadlines[_i].seconds * 1000000);
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

START_TEST(a_stage_that_is_out_of_time_asks_nothing_more)
{
    struct drive *d = drive_new(HEAD "timeout_seconds: 2\n    pre_process: x.pre\n" MODEL, NULL, 0);

    DRIVE_ANSWERS(d, {"hook:x.pre", "", false, 2000000});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_LLM), 0);
    ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"TimeoutError\"");
    drive_free(d);
}
END_TEST

TCase *llm_case(void)
{
    TCase *tc = tcase_create("llm");

    tcase_add_loop_test(tc, the_request_is_exact, 0, RV_COUNT(requests));
    tcase_add_loop_test(tc, a_prompt_sees_the_envelope_and_engine_keys_win, 0, RV_COUNT(prompts));
    tcase_add_test(tc, a_prompt_that_nobody_knows_fails_the_stage);
    tcase_add_test(tc, text_mode_takes_the_reply_as_it_is);
    tcase_add_test(tc, the_preview_of_a_reply_is_200_bytes_cut_at_a_character);
    tcase_add_loop_test(tc, what_may_pass_is_tried_again, 0, RV_COUNT(attempts));
    tcase_add_test(tc, the_wait_doubles_up_to_30_seconds);
    tcase_add_test(tc, attempts_end_with_the_budget_of_calls);
    tcase_add_test(tc, attempts_end_with_the_deadline_of_the_stage);
    tcase_add_test(tc, error_next_comes_after_the_last_attempt);
    tcase_add_loop_test(tc, a_call_has_the_nearest_deadline, 0, RV_COUNT(deadlines));
    tcase_add_test(tc, a_stage_that_is_out_of_time_asks_nothing_more);
    return tc;
}
