/* What a visit does that a scene cannot say: a long text, a catalog that knows an entry, a script for a stage. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/agent/suites.h"

#define HEAD "name: t\nagents:\n  - name: a\n    stage_order: 1\n    "
#define LLM  "has_llm: true\n    model_role: r\n    "

static const struct drive_tool tools[] = {{"read", RV_RISK_READ_ONLY, NULL, NULL, 0}};

/* Proves 5.1/checks, W24 */
START_TEST(a_scripted_stage_is_answered_by_its_script)
{
    static const bool scripted[] = {true, false};
    struct drive *d = drive_new(HEAD LLM "default_next: b\n    required_output_fields: [v]\n"
                                         "  - {name: b, stage_order: 2}\nmodels: {r: 'scripted'}\n",
                                NULL, 0);

    d->opts.scripted_stages = scripted;
    DRIVE_ANSWERS(d,
                  {"mock:script", "{'output':{'v':1},'raise':{'kind':'clarification','question':'which?'}}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"v\":1}");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"b\""); /* 7.3: a raised interrupt does not stop the routing */
    ck_assert_str_eq(drive_state(d, "interrupt.question"), "\"which?\"");
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "0");
    drive_free(d);
}
END_TEST

/* Proves 5.5/preview: Previews are cut at 200 bytes, at a character, with three dots */
START_TEST(the_preview_of_a_reply_is_200_bytes_cut_at_a_character)
{
    char reply[600] = "{\"v\":\"a", want[256] = "{\"v\":\"a";
    struct drive_answer answer = {"llm:a", reply, false, 0};
    struct drive *d = drive_new(HEAD LLM "output_mode: text\nmodels: {r: 'openai:gpt-x'}\n", NULL, 0);
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

START_TEST(an_entry_sees_only_the_parts_it_asked_for)
{
    const char *const all[] = {"raw_input", "outputs.x", "metadata.k", "counters"};
    struct drive *d = drive_new(HEAD "pre_process: x.pre\n", NULL, 0);

    d->has_entry = true;
    d->entry = (struct rv_entry_info){
        .name = "x.pre", .sees = {.items = (const char **)(void *)all, .n = 4, .is_set = true}, .timeout_ms = 50};
    drive_envelope(d, "{'raw_input':'hi','outputs':{'x':{'a':1},'y':{}},'metadata':{'k':2,'secret':3}}");
    drive_start(d);
    ck_assert_str_eq(drive_request(&d->calls[0], "envelope"),
                     "{\"raw_input\":\"hi\",\"llm_call_count\":0,\"agent_hop_count\":1,\"outputs\":{\"x\":{\"a\":1}},"
                     "\"metadata\":{\"k\":2}}");
    ck_assert_int_eq(d->calls[0].deadline_us, DRIVE_T0 + 50000);
    drive_free(d);
}
END_TEST

START_TEST(keys_of_stages_with_long_names_differ)
{
    rv_buf yaml = RV_BUF_INIT(8192);
    char name[90];

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    rv_buf_printf(&yaml,
                  "name: t\nagents:\n  - {name: %s\xc3\xa9_1, stage_order: 1, has_tools: true, tool_access: all, "
                  "default_next: %s\xc3\xa9_2}\n"
                  "  - {name: %s\xc3\xa9_2, stage_order: 2, has_tools: true, tool_access: all}\n",
                  name, name, name);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    drive_envelope(d, "{'outputs':{'plan':{'steps':[{'tool':'read'}]}}}");
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 2);
    ck_assert_str_ne(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->key, drive_call_at(d, RV_EFFECT_CALL_TOOL, 1)->key);
    ck_assert_uint_lt(strlen(drive_call_at(d, RV_EFFECT_CALL_TOOL, 1)->key), RV_KEY_MAX);
    ck_assert(rv_utf8_valid(rv_str_of(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->key), NULL));
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

START_TEST(the_type_of_an_event_reads_back_and_other_words_are_none)
{
    for (int kind = 0; kind < RV_N_EMITS; kind++)
        ck_assert_int_eq(rv_emit_of(rv_str_of(rv_emit_text((enum rv_emit_kind)kind))), kind);
    ck_assert_int_eq(rv_emit_of(RV_STR_LIT("stage_start")), RV_UNSET);
    ck_assert_int_eq(rv_emit_of(RV_STR_LIT("unknown")), RV_UNSET);
    ck_assert_int_eq(rv_emit_of(RV_STR_LIT("")), RV_UNSET);
}
END_TEST

TCase *visit_case(void)
{
    TCase *tc = tcase_create("visit");

    tcase_add_test(tc, the_type_of_an_event_reads_back_and_other_words_are_none);
    tcase_add_test(tc, a_scripted_stage_is_answered_by_its_script);
    tcase_add_test(tc, the_preview_of_a_reply_is_200_bytes_cut_at_a_character);
    tcase_add_test(tc, an_entry_sees_only_the_parts_it_asked_for);
    tcase_add_test(tc, keys_of_stages_with_long_names_differ);
    return tc;
}
