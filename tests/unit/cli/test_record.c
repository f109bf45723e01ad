/* What the recorder makes of the calls of a run. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/cli/play.h"
#include "tests/unit/cli/suites.h"

#define T0 1700000000000000

static void say(rv_recorder *r, int64_t id, enum rv_llm_delta_kind kind, const char *text, int64_t ms)
{
    const struct rv_llm_delta d = {.kind = kind, .text = rv_str_of(text)};
    rv_recorder_note_delta(r, 0, id, &d, T0 + ms * 1000);
}

static void reply(rv_recorder *r, int64_t id, const char *text, int64_t ms)
{
    const struct rv_event ev = {.kind = RV_EVENT_LLM_DONE,
                                .now_us = T0 + ms * 1000,
                                .call_id = id,
                                .reply = rv_str_of(text),
                                .llm = {.finish = RV_FINISH_STOP, .error_kind = RV_UNSET}};
    rv_recorder_note_input(r, &ev);
}

static void want(rv_recorder *r, const char *json)
{
    char *got = play_recording(r);
    const char *body = strchr(got, '\n') + 1;

    ck_assert_str_eq(body, json);
    free(got);
    rv_recorder_free(r);
}

START_TEST(pieces_keep_their_times)
{
    rv_recorder *r = rv_recorder_new();

    play_start(r, true, "a", 7, T0);
    say(r, 7, RV_LLM_DELTA_THINKING, "hm", 120);
    say(r, 7, RV_LLM_DELTA_TOOL_ARGUMENTS, "{", 130);
    say(r, 7, RV_LLM_DELTA_TEXT, "two ", 150);
    say(r, 7, RV_LLM_DELTA_TEXT, "words", 150);
    say(r, 8, RV_LLM_DELTA_TEXT, "of nobody", 150);
    reply(r, 7, "two words", 160);
    want(r, "{\"models\":{\"a\":[{\"chunks\":[{\"thinking\":\"hm\",\"delay_ms\":120},"
            "{\"text\":\"two \",\"delay_ms\":30},\"words\",{\"delay_ms\":10}]}]},\"repeat\":false}\n");
}
END_TEST

START_TEST(pieces_that_are_not_the_reply_are_left_out)
{
    rv_recorder *r = rv_recorder_new();

    play_start(r, true, "a", 1, T0);
    say(r, 1, RV_LLM_DELTA_TEXT, "a first attempt that broke", 100);
    reply(r, 1, "{\"x\":1}", 300);
    want(r, "{\"models\":{\"a\":[{\"json\":{\"x\":1},\"delay_ms\":300}]},\"repeat\":false}\n");
}
END_TEST

START_TEST(calls_side_by_side_are_in_the_order_of_their_starts)
{
    rv_recorder *r = rv_recorder_new();

    play_start(r, true, "a", 1, T0);
    play_start(r, true, "a", 2, T0);
    reply(r, 2, "second", 0);
    reply(r, 1, "first", 0);
    want(r, "{\"models\":{\"a\":[{\"text\":\"first\"},{\"text\":\"second\"}]},\"repeat\":false}\n");
}
END_TEST

START_TEST(a_call_that_was_given_up_takes_longer_than_anybody_waited)
{
    rv_recorder *r = rv_recorder_new();
    const struct rv_event end = {.kind = RV_EVENT_TIMER, .now_us = T0 + 5000000};

    play_start(r, true, "a", 1, T0);
    say(r, 1, RV_LLM_DELTA_TEXT, "half a", 1000);
    rv_recorder_note_input(r, &end);
    want(r, "{\"models\":{\"a\":[{\"chunks\":[{\"text\":\"half a\",\"delay_ms\":1000},{\"delay_ms\":4001}],"
            "\"error\":{\"kind\":\"cancelled\",\"message\":\"the answer came after the deadline of the "
            "call\"}}]},\"repeat\":false}\n");
}
END_TEST

START_TEST(bytes_that_are_no_text_are_replaced)
{
    rv_recorder *r = rv_recorder_new();

    play_start(r, true, "a", 1, T0);
    reply(r, 1, "a\xff\xfe{}", 0);
    play_start(r, true, "a", 2, T0);
    const struct rv_event ev = {.kind = RV_EVENT_LLM_DONE,
                                .now_us = T0,
                                .call_id = 2,
                                .reply = RV_STR_LIT("x\0y"),
                                .llm = {.finish = RV_FINISH_STOP, .error_kind = RV_UNSET}};
    const struct rv_llm_delta d = {.kind = RV_LLM_DELTA_TEXT, .text = ev.reply};
    rv_recorder_note_delta(r, 0, 2, &d, T0);
    rv_recorder_note_input(r, &ev);
    want(r, "{\"models\":{\"a\":[{\"text\":\"a\xef\xbf\xbd\xef\xbf\xbd{}\"},{\"chunks\":[{\"text\":"
            "\"x\xef\xbf\xbdy\"}]}]},\"repeat\":false}\n");
}
END_TEST

/* It takes milliseconds; a recorder that looked through the rest for each byte would take minutes. A script of
 * this size cannot be played. */
START_TEST(a_large_reply_that_is_no_text_is_recorded_soon)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "r.yaml");
    const size_t n = (size_t)3 << 20;
    rv_recorder *r = rv_recorder_new();
    char *bytes = malloc(n + 1);
    rv_err *err = NULL;

    ck_assert_ptr_nonnull(bytes);
    memset(bytes, '\xff', n);
    bytes[n] = '\0';
    play_start(r, true, "a", 1, T0);
    reply(r, 1, bytes, 0);
    ck_assert_int_eq(rv_recorder_write(r, "recorded", path, &err), RV_E_INVALID);
    char *said = rv_kit_err_take(err), *text = rv_kit_read(path);
    ck_assert_msg(strstr(said, "the limit is"), "%s", said);
    ck_assert_uint_gt(strlen(text), 3 * n);
    free(said);
    free(text);
    free(bytes);
    rv_recorder_free(r);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

static const char secretive[] =
    "name: p\n"
    "models: {default: {model: 'openai:x', api_key: sk-0123456789, headers: {Authorization: "
    "'Bearer abcdefghijk', X-Passphrase: open-sesame-1234}}}\n"
    "agents: [{name: a, has_llm: true, model_role: default}]\n";

START_TEST(secrets_that_answers_repeat_are_hidden)
{
    rv_recorder *r = rv_recorder_new();
    rv_findings *f = rv_findings_new();
    struct rv_pipeline *p = NULL;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(secretive), "p.yaml", ".", f, &p, NULL), 0);
    ck_assert_ptr_nonnull(p);
    rv_recorder_hide(r, p);
    play_start(r, true, "a", 1, T0);
    say(r, 1, RV_LLM_DELTA_TEXT, "your key is sk-01234", 10);
    say(r, 1, RV_LLM_DELTA_TEXT, "56789, is it", 20);
    reply(r, 1, "your key is sk-0123456789, is it", 20);
    play_start(r, true, "a", 2, T0);
    const struct rv_event ev = {
        .kind = RV_EVENT_LLM_DONE,
        .now_us = T0,
        .call_id = 2,
        .llm = {
            .finish = RV_FINISH_TOOL_CALLS,
            .error_kind = RV_UNSET,
            .tool_calls = RV_STR_LIT(
                "[{\"id\":\"i\",\"name\":\"t\",\"arguments\":\"{\\\"k\\\":\\\"abcdefghijk open-sesame-1234\\\"}\"}]")}};
    rv_recorder_note_input(r, &ev);
    want(r, "{\"models\":{\"a\":[{\"text\":\"your key is [secret], is it\",\"delay_ms\":20},"
            "{\"tool_calls\":[{\"id\":\"i\",\"name\":\"t\",\"arguments\":{\"k\":\"[secret] "
            "[secret]\"}}]}]},\"repeat\":false}\n");
    rv_pipeline_free(p);
    rv_findings_free(f);
}
END_TEST

START_TEST(tools_are_declared_for_a_run_without_their_capabilities)
{
    static const char text[] = "name: p\nagents:\n"
                               "  - {name: a, has_tools: true, tool_access: read, allowed_tools: [look, find, none]}\n"
                               "  - {name: b, has_tools: true, tool_access: read}\n";
    static const char tools[] =
        "tools: {look: {description: d, input_schema: {type: object}, calls: [{result: {}}]}, find: "
        "[{result: {}}], wipe: {risk: destructive, calls: [{result: {}}]}, peek: {effect: "
        "idempotent, calls: []}}";
    rv_recorder *r = rv_recorder_new();
    rv_findings *f = rv_findings_new();
    rv_script *s = play_script(RV_STR_LIT(tools));
    struct rv_catalog catalog = rv_script_catalog(s, &rv_catalog_empty);
    struct rv_pipeline *p = NULL;
    const struct rv_event ev = {
        .kind = RV_EVENT_TOOL_DONE, .now_us = T0, .call_id = 1, .reply = RV_STR_LIT("{}"), .llm = RV_LLM_ANSWER_NONE};

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(text), "p.yaml", ".", f, &p, NULL), 0);
    rv_recorder_note_tools(r, p, &catalog);
    play_start(r, false, "look", 1, T0);
    rv_recorder_note_input(r, &ev);
    want(r, "{\"tools\":{\"look\":{\"description\":\"d\",\"input_schema\":{\"type\":\"object\"},\"calls\":[{\"result\":"
            "{}}]},"
            "\"find\":{\"calls\":[]},\"peek\":{\"effect\":\"idempotent\",\"calls\":[]}},\"repeat\":false}\n");
    rv_pipeline_free(p);
    rv_script_free(s);
    rv_findings_free(f);
}
END_TEST

/* More pieces than a script can have: neighbours are joined, and the rest is as it was. */
START_TEST(a_recording_always_fits_a_script)
{
    rv_recorder *r = rv_recorder_new();
    rv_buf whole = RV_BUF_INIT(1 << 20), log = RV_BUF_INIT(8 << 20);
    int64_t ms = 0;

    play_start(r, true, "a", 1, T0);
    for (int i = 0; i < 60000; i++) {
        ms += 1 + i % 20;
        say(r, 1, RV_LLM_DELTA_TEXT, "token ", ms);
        rv_buf_puts(&whole, "token ");
    }
    reply(r, 1, rv_buf_cstr(&whole), ms + 3);
    char *text = play_recording(r);
    ck_assert_uint_lt(strlen(text), RV_YAML_MAX_BYTES);
    rv_script *s = play_script(rv_str_of(text));
    const struct rv_script_call call = {.kind = RV_SCRIPT_MODEL, .stage = "a", .visit = 1};
    struct rv_script_reply got;
    ck_assert_int_eq(rv_script_next(s, &call, &got, NULL), 0);
    ck_assert(rv_str_eq(rv_buf_str(&got.body), rv_buf_str(&whole)));
    ck_assert_uint_gt(got.n_deltas, 1000);
    int64_t took = 0;
    for (size_t i = 0; i < got.n_deltas; i++)
        took += got.deltas[i].delay_ms;
    ck_assert_int_eq(took, ms + 3);
    rv_script_reply_fini(&got);
    rv_script_free(s);
    free(text);
    rv_buf_fini(&whole);
    rv_buf_fini(&log);
    rv_recorder_free(r);
}
END_TEST

START_TEST(what_people_answer_is_recorded)
{
    rv_recorder *r = rv_recorder_new();
    json_object *data = rv_kit_json("{'a': 1}");
    const struct rv_event ev = {
        .kind = RV_EVENT_ANSWER,
        .response = {.text = RV_STR_LIT("yes"), .has_approved = true, .approved = true, .data = data}};

    const struct rv_event named = {
        .kind = RV_EVENT_ANSWER,
        .response = {.text = RV_STR_LIT("no"), .interrupt_id = RV_STR_LIT("int_1"), .asker = "plan"}};

    rv_recorder_note_input(r, &ev);
    rv_recorder_note_input(r, &named);
    json_object_put(data);
    want(r,
         "{\"answers\":[{\"text\":\"yes\",\"approved\":true,\"data\":{\"a\":1}},{\"stage\":\"plan\",\"text\":\"no\"}],"
         "\"repeat\":false}\n");
}
END_TEST

START_TEST(a_recording_that_can_not_be_played_is_written_and_said)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "r.yaml");
    rv_recorder *r = rv_recorder_new();
    const struct rv_event ev = {
        .kind = RV_EVENT_TOOL_DONE, .now_us = T0, .call_id = 1, .reply = RV_STR_LIT("[1]"), .llm = RV_LLM_ANSWER_NONE};
    rv_err *err = NULL;

    play_start(r, false, "t", 1, T0);
    rv_recorder_note_input(r, &ev);
    ck_assert_int_eq(rv_recorder_write(r, "recorded", path, &err), RV_E_INVALID);
    char *said = rv_kit_err_take(err), *text = rv_kit_read(path);
    ck_assert_msg(strstr(said, "result must be a map"), "%s", said);
    ck_assert_ptr_nonnull(strstr(text, "\"result\":[1]"));
    free(said);
    free(text);
    rv_recorder_free(r);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* A NUL becomes three bytes: more than one text may have. */
START_TEST(a_part_that_is_missing_is_told_with_its_reason)
{
    const size_t len = RV_LLM_MAX_REPLY + RV_LLM_MAX_REPLY / 2;
    char *nuls = calloc(1, len);
    const struct rv_event ev = {.kind = RV_EVENT_LLM_DONE,
                                .now_us = T0,
                                .call_id = 1,
                                .reply = {nuls, len},
                                .llm = {.finish = RV_FINISH_STOP, .error_kind = RV_UNSET}};
    rv_recorder *r = rv_recorder_new();
    rv_err *err = NULL;

    ck_assert_ptr_nonnull(nuls);
    play_start(r, true, "a", 1, T0);
    rv_recorder_note_input(r, &ev);
    ck_assert_int_eq(rv_recorder_write(r, "recorded", "not-there/r.yaml", &err), RV_E_LIMIT);
    char *said = rv_kit_err_take(err);
    ck_assert_msg(strstr(said, "a part of the recording is missing") && strstr(said, "recorded text"), "%s", said);
    free(said);
    rv_recorder_free(r);
    free(nuls);
}
END_TEST

Suite *record_suite(void)
{
    Suite *suite = suite_create("record");
    TCase *tc = tcase_create("record");

    tcase_add_test(tc, pieces_keep_their_times);
    tcase_add_test(tc, pieces_that_are_not_the_reply_are_left_out);
    tcase_add_test(tc, calls_side_by_side_are_in_the_order_of_their_starts);
    tcase_add_test(tc, a_call_that_was_given_up_takes_longer_than_anybody_waited);
    tcase_add_test(tc, bytes_that_are_no_text_are_replaced);
    tcase_add_test(tc, a_large_reply_that_is_no_text_is_recorded_soon);
    tcase_add_test(tc, secrets_that_answers_repeat_are_hidden);
    tcase_add_test(tc, tools_are_declared_for_a_run_without_their_capabilities);
    tcase_add_test(tc, a_recording_always_fits_a_script);
    tcase_add_test(tc, what_people_answer_is_recorded);
    tcase_add_test(tc, a_recording_that_can_not_be_played_is_written_and_said);
    tcase_add_test(tc, a_part_that_is_missing_is_told_with_its_reason);
    suite_add_tcase(suite, tc);
    return suite;
}
