/* A run in one call, and the answer to the one that waits; a chat that is opened and closed. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"
#include "tests/unit/app/suites.h"

static const char asks[] = "name: asks\nmodels: {default: scripted}\nagents:\n"
                           "  - name: plan\n    has_llm: true\n    model_role: default\n    prompt_key: plan\n"
                           "    routing_rules: [{condition: needs_clarification, value: true, target: clarification}]\n"
                           "    default_next: end\n"
                           "prompts: {plan: '{{raw_input}} {{interrupt_response}}'}\n"
                           "response: {output_key: plan, field: text}\n";
static const char script[] = "models:\n  plan:\n    - {contains: Ada, json: {text: 'hello Ada'}}\n"
                             "    - json: {needs_clarification: true, clarification_question: 'who?'}\n";

static char *dir, *pipeline_path, *script_path, *store_path;

static void set_up(void)
{
    dir = rv_kit_tmpdir();
    pipeline_path = rv_kit_path(dir, "asks.yaml");
    script_path = rv_kit_path(dir, "script.yaml");
    store_path = rv_kit_path(dir, "runs.db");
    rv_kit_write(pipeline_path, asks);
    rv_kit_write(script_path, script);
}

static void tear_down(void)
{
    free(pipeline_path);
    free(script_path);
    free(store_path);
    rv_kit_tmpdir_remove(dir);
}

static struct rv_app_job job_of(const char *input)
{
    struct rv_app_job job = RV_APP_JOB_INIT;

    job.pipeline = pipeline_path;
    job.script = script_path;
    job.input = input;
    return job;
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    ck_assert_uint_gt(line.len, 0);
    *(size_t *)self += e->emit == RV_EMIT_STAGE_COMPLETED;
}

START_TEST(gives_status_and_answer_and_tells_the_observer)
{
    const struct rv_app app = {.no_store = true};
    struct rv_app_job job = job_of("I am Ada");
    struct rv_app_result result;
    size_t n_completed = 0;

    job.observer = (struct rv_app_observer){.self = &n_completed, .on_event = on_event};
    ck_assert_int_eq(rv_app_run(&app, &job, &result, NULL), 0);
    ck_assert_int_eq(result.status, RV_RUN_COMPLETED);
    ck_assert_str_eq(result.answer, "hello Ada");
    ck_assert_uint_eq(n_completed, 1);
    rv_app_result_fini(&result);
}
END_TEST

START_TEST(begins_with_the_state_that_is_given)
{
    const struct rv_app app = {.no_store = true, .scope = {.user = "ada"}};
    struct rv_app_job job = job_of(NULL);
    struct rv_app_result result;

    job.state = rv_kit_json("{\"raw_input\":\"Ada\",\"metadata\":{\"lang\":\"en\"}}");
    job.session = "s1";
    ck_assert_int_eq(rv_app_run(&app, &job, &result, NULL), 0);
    ck_assert_str_eq(result.answer, "hello Ada");
    ck_assert_str_eq(rv_envelope_fields(result.envelope)->user_id, "ada");
    ck_assert_str_eq(rv_envelope_fields(result.envelope)->session_id, "s1");
    rv_app_result_fini(&result);
    json_object_put(job.state);
}
END_TEST

START_TEST(says_what_is_wrong_with_a_pipeline)
{
    const struct rv_app app = {.no_store = true};
    struct rv_app_job job = job_of("x");
    struct rv_app_result result;
    rv_err *err = NULL;

    job.script = NULL; /* nothing answers for the model */
    ck_assert_int_eq(rv_app_run(&app, &job, &result, &err), RV_E_INVALID);
    char *text = rv_kit_err_take(err);
    ck_assert_ptr_nonnull(strstr(text, "plan"));
    free(text);
    job.pipeline = "not-there.yaml";
    ck_assert_int_eq(rv_app_run(&app, &job, &result, NULL), RV_E_NOT_FOUND);
}
END_TEST

START_TEST(a_run_that_waits_goes_on_with_its_users_answer_once)
{
    const struct rv_app ada = {.store = store_path, .scope = {.user = "ada"}};
    const struct rv_app bob = {.store = store_path, .scope = {.user = "bob"}};
    const struct rv_response answer = {.text = RV_STR_LIT("Ada")};
    const struct rv_app_job job = job_of("greet me");
    struct rv_app_result asked, result;

    ck_assert_int_eq(rv_app_run(&ada, &job, &asked, NULL), 0);
    ck_assert_int_eq(asked.status, RV_RUN_INTERRUPTED);
    ck_assert_ptr_null(asked.answer);
    ck_assert_str_eq(rv_envelope_interrupt(asked.envelope).question, "who?");
    const char *id = rv_envelope_fields(asked.envelope)->envelope_id;
    ck_assert_int_eq(rv_app_answer(&bob, id, &answer, NULL, &result, NULL), RV_E_NOT_FOUND);
    ck_assert_int_eq(rv_app_answer(&ada, id, &answer, NULL, &result, NULL), 0);
    ck_assert_int_eq(result.status, RV_RUN_COMPLETED);
    ck_assert_str_eq(result.answer, "hello Ada");
    rv_app_result_fini(&result);
    ck_assert_int_eq(rv_app_answer(&ada, id, &answer, NULL, &result, NULL), RV_E_STATE);
    rv_app_result_fini(&asked);
}
END_TEST

/* As another process would, at that event. */
struct canceller {
    enum rv_emit_kind at;
    const struct rv_app *app;
    bool ends_elsewhere;
};

static void cancel_at(void *self, const struct rv_effect *e, rv_str line)
{
    struct canceller *c = self;
    struct rv_run_row row;
    rv_store *store = NULL;

    (void)line;
    if (e->emit != c->at)
        return;
    ck_assert_int_eq(rv_app_store_open(c->app, RV_APP_STORE_CHANGE, &store, NULL), 0);
    ck_assert_int_eq(rv_app_request_cancel(store, &c->app->scope, "last", &row, &c->ends_elsewhere, NULL), 0);
    rv_run_row_fini(&row);
    rv_store_close(store);
}

/* Its engine does not look again before the run waits. */
START_TEST(a_request_to_cancel_that_comes_just_before_the_run_waits_is_obeyed)
{
    static const enum rv_emit_kind moments[] = {RV_EMIT_STAGE_STARTED, RV_EMIT_STAGE_COMPLETED};
    const struct rv_app app = {.store = store_path};
    const struct rv_response answer = {.text = RV_STR_LIT("Ada")};
    struct canceller c = {.at = moments[_i], .app = &app};
    struct rv_app_job job = job_of("greet me");
    struct rv_app_result result;

    job.observer = (struct rv_app_observer){.self = &c, .on_event = cancel_at};
    ck_assert_int_eq(rv_app_run(&app, &job, &result, NULL), 0);
    ck_assert(c.ends_elsewhere);
    ck_assert_int_eq(result.status, RV_RUN_CANCELLED);
    rv_app_result_fini(&result);
    ck_assert_int_eq(rv_app_answer(&app, "last", &answer, NULL, &result, NULL), RV_E_STATE);
}
END_TEST

START_TEST(a_chat_is_closed_twice_and_opened_again)
{
    const struct rv_app app = {.no_store = true, .capability = "", .schema_dir = ""};
    struct rv_app_chat chat = {.app = &app};
    rv_err *err = NULL;

    ck_assert_int_eq(rv_app_chat_enter(&chat, NULL, "a", &err), RV_E_STATE);
    rv_err_free(err);
    rv_app_chat_close(&chat);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(rv_app_chat_open(&chat, NULL), 0);
        ck_assert_int_eq(rv_app_chat_enter(&chat, NULL, "a", NULL), RV_E_NOT_FOUND);
        rv_app_chat_close(&chat);
        rv_app_chat_close(&chat);
        ck_assert_ptr_eq(chat.app, &app);
    }
}
END_TEST

static TCase *job_case(void)
{
    TCase *tc = tcase_create("job");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, gives_status_and_answer_and_tells_the_observer);
    tcase_add_test(tc, begins_with_the_state_that_is_given);
    tcase_add_test(tc, says_what_is_wrong_with_a_pipeline);
    tcase_add_test(tc, a_run_that_waits_goes_on_with_its_users_answer_once);
    tcase_add_loop_test(tc, a_request_to_cancel_that_comes_just_before_the_run_waits_is_obeyed, 0, 2);
    tcase_add_test(tc, a_chat_is_closed_twice_and_opened_again);
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {job_case,    needs_case,      plan_case, quotas_case, memory_case,
                                            client_case, dispatcher_case, rate_case, top_case,    find_case,
                                            folder_case, dream_case,      hook_case};

    return rv_kit_run_cases("app", cases, RV_COUNT(cases));
}
