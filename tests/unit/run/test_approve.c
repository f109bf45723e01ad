/* A route that asks for confirmation: a yes goes on with the output that was shown, along the asking stage's
 * default_next, and the stage is not visited again. Runs that began with the first rules visit it again. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define MODEL ", has_llm: true, model_role: m"
#define ASKS  ", routing_rules: [{condition: ask, value: true, target: confirmation}]"
#define HEAD  "name: t\nmodels: {m: \"scripted:any\"}\n"
#define TWO                                                                                                            \
    HEAD "agents:\n  - {name: draft" MODEL ASKS ", default_next: send}\n  - {name: send, stage_order: 1" MODEL "}\n"

static struct drive *asked(const char *yaml, enum rv_rules rules)
{
    struct drive *d = drive_new(yaml, NULL, 0);

    d->opts.rules = rules;
    DRIVE_ANSWERS(d, {"llm:draft", "{'ask': true, 'amount': 10, 'feedback': 'f'}", false, 0},
                  {"llm:draft", "{'ask': true, 'amount': 99}", true, 0}, {"llm:send", "{'sent': true}", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    return d;
}

/* Where a yes leads. `visits` of draft in the whole run; `next` in the data. */
static const struct {
    const char *yaml, *next, *story;
    enum rv_run_status status;
} ways[] = {
    {HEAD "agents:\n  - {name: draft" MODEL ASKS "}\n", "\"end\"", "", RV_RUN_COMPLETED},
    {HEAD "agents:\n  - {name: draft" MODEL ", default_next: confirmation}\n", "\"end\"", "", RV_RUN_COMPLETED},
    {TWO "confirmation_resume_stage: send\n", "\"send\"", "stage_started:send", RV_RUN_COMPLETED},
    {HEAD "confirmation_resume_stage: draft\nagents:\n  - {name: draft" MODEL ASKS
          ", default_next: send}\n  - {name: send" MODEL "}\n",
     "\"draft\"", "stage_started:draft", RV_RUN_INTERRUPTED},
    {HEAD "agents:\n  - {name: draft" MODEL ASKS ", default_next: clarification}\n", "\"clarification\"",
     "interrupt_pending", RV_RUN_INTERRUPTED},
    {TWO "edge_limits: [{from: draft, to: send, max_count: 1}]\n", "\"send\"", "stage_started:send", RV_RUN_COMPLETED},
    {HEAD "execution: {enable_loop_back: false}\nagents:\n  - {name: draft" MODEL ASKS ", default_next: draft}\n",
     "\"draft\"", "", RV_RUN_TERMINATED},
    {HEAD "max_agent_hops: 1\nagents:\n  - {name: draft" MODEL ASKS
          ", default_next: send}\n  - {name: send, stage_order: 1" MODEL "}\n",
     "\"send\"", "", RV_RUN_TERMINATED},
    {HEAD "agents:\n  - {name: draft" MODEL ", routing_function: f, default_next: send}\n"
          "  - {name: send, stage_order: 1" MODEL "}\n",
     "\"send\"", "stage_started:send", RV_RUN_COMPLETED},
};

START_TEST(a_yes_leads_along_the_default)
{
    struct drive *d = drive_new(ways[_i].yaml, NULL, 0);
    rv_buf story = RV_BUF_INIT(4096);

    d->has_entry = true;
    DRIVE_ANSWERS(d, {"llm:draft", "{'ask': true, 'amount': 10}", true, 0}, {"llm:send", "{'sent': true}", true, 0},
                  {"route:f", "{'next': 'confirmation'}", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "interrupt.data.next"), ways[_i].next);
    ck_assert_int_eq(drive_approve(d, true), ways[_i].status);
    rv_buf_puts(&story, drive_story(d));
    ck_assert_msg(strstr(rv_buf_cstr(&story), ways[_i].story), "%s", rv_buf_cstr(&story));
    if (strcmp(ways[_i].next, "\"draft\"") != 0)
        ck_assert_msg(!strstr(rv_buf_cstr(&story), "stage_started:draft"), "%s", rv_buf_cstr(&story));
    rv_buf_fini(&story);
    drive_free(d);
}
END_TEST

START_TEST(a_question_shows_a_bounded_part_of_a_large_output)
{
    struct drive *d = drive_new(TWO, NULL, 0);
    rv_buf reply = RV_BUF_INIT((size_t)1 << 20);
    struct drive_answer answer = {.to = "llm:draft", .stays = true};

    rv_buf_puts(&reply, "{'ask': true, 'text': '");
    for (int i = 0; i < 300 * 1024; i++)
        rv_buf_putc(&reply, 'x');
    rv_buf_puts(&reply, "'}");
    answer.reply = rv_buf_cstr(&reply);
    drive_answers(d, &answer, 1);
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "interrupt.data"),
                     "{\"stage\":\"draft\",\"output_key\":\"draft\",\"next\":\"send\"}");
    const char *message = drive_state(d, "interrupt.message");
    size_t len = strlen(message);
    ck_assert_uint_lt(len, 1200);
    ck_assert_str_eq(message + len - 5, "x...\"");
    rv_buf_fini(&reply);
    drive_free(d);
}
END_TEST

START_TEST(a_denied_output_is_no_answer)
{
    struct drive *d = asked(TWO "response: {output_key: draft, field: feedback}\n", RV_RULES_NEWEST);
    rv_str text;

    ck_assert_int_eq(drive_approve(d, false), RV_RUN_TERMINATED);
    ck_assert(rv_envelope_was_denied(rv_run_envelope(d->run)));
    ck_assert(!rv_envelope_find_final_response(rv_run_envelope(d->run), &d->p->response, &text));
    drive_free(d);
}
END_TEST

TCase *approve_case(void)
{
    TCase *tc = tcase_create("approve");

    tcase_add_loop_test(tc, a_yes_leads_along_the_default, 0, (int)RV_COUNT(ways));
    tcase_add_test(tc, a_question_shows_a_bounded_part_of_a_large_output);
    tcase_add_test(tc, a_denied_output_is_no_answer);
    return tc;
}
