/* Every allocation of scripts, and of recordings of what they play, fails once: no crash, no leak, RV_E_NOMEM. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/cli/cli.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"
#include "tests/unit/cli/play.h"

static const char script_text[] =
    "models:\n"
    "  a:\n"
    "    - {chunks: [x, {thinking: hm, delay_ms: 5}, {text: y}], delay_ms: 20, opaque: {provider: p}}\n"
    "    - {tool_calls: [{name: t, arguments: {q: [1, 2.50]}}, {name: t, id: call_2, arguments: '{'}, {name: t}],\n"
    "       text: look, usage: {input_tokens: 9, reasoning_tokens: 1}}\n"
    "    - {json: {a: [1, null]}, finish_reason: length, answered_by: r, attempts: 2, opaque: '{\"a\": 1}'}\n"
    "    - {text: par, error: {kind: rate_limited, status: 429, retry_after_ms: 5, retryable: false, billed: true}}\n"
    "tools: {t: {risk: write, input_schema: {type: object}, calls: [{result: {x: 1}}, {error: no}]}}\n"
    "hooks: {c.h: [{stage: s, reply: {action: continue}}, {error: no}]}\n"
    "stages: {s: [{output: {}, outcome: skip, raise: {kind: checkpoint, message: m, data: {}}}]}\n"
    "answers: [{text: yes, data: {a: 1}}]\n"
    "repeat: false\n";

static int hand_out(rv_script *s, enum rv_script_kind kind, const char *name, int n, rv_err **err)
{
    const struct rv_script_call call = {.kind = kind, .stage = name, .tool = name, .visit = 1};
    struct rv_script_reply reply;
    int rc = 0;

    while (rc == 0 && n-- > 0) {
        rc = rv_script_next(s, &call, &reply, err);
        if (rc == 0)
            rv_script_reply_fini(&reply);
    }
    return rc;
}

static int read_and_hand_out(void)
{
    rv_findings *f = rv_findings_new();
    rv_buf text = RV_BUF_INIT(1 << 20);
    json_object *position = NULL;
    rv_script *s = NULL;
    rv_err *err = NULL;
    const char *name;

    int rc = f ? rv_script_parse(RV_STR_LIT(script_text), "s.yaml", f, &s, &err) : RV_E_NOMEM;
    if (rc == 0 && !s)
        rc = RV_E_INVALID;
    if (rc == 0)
        rc = hand_out(s, RV_SCRIPT_MODEL, "a", 4, &err);
    if (rc == 0)
        rc = hand_out(s, RV_SCRIPT_TOOL, "t", 2, &err);
    if (rc == 0)
        rc = hand_out(s, RV_SCRIPT_STAGE, "s", 1, &err);
    if (rc == 0)
        rc = hand_out(s, RV_SCRIPT_HOOK, "c.h", 1, &err);
    if (rc == 0)
        rc = rv_script_build_position(s, &position, &err);
    if (rc == 0)
        rc = rv_script_set_position(s, position, &err);
    if (rc == 0)
        rc = rv_script_write_source(s, &name, &text, &err);
    json_object_put(position);
    rv_buf_fini(&text);
    rv_script_free(s);
    rv_findings_free(f);
    rv_err_free(err);
    return rc;
}

static rv_script *played; /* read before anything fails */
static struct rv_pipeline *pipeline;
static char *recording; /* path */

static void tell(rv_recorder *r, const struct rv_script_reply *reply, int64_t id, bool is_model)
{
    int64_t now_us = 1700000000000000;

    for (size_t i = 0; i < reply->n_deltas; i++) {
        const struct rv_llm_delta d = {.kind = reply->deltas[i].is_thinking ? RV_LLM_DELTA_THINKING : RV_LLM_DELTA_TEXT,
                                       .text = reply->deltas[i].text};
        now_us += reply->deltas[i].delay_ms * 1000;
        rv_recorder_note_delta(r, 0, id, &d, now_us);
    }
    const struct rv_event ev = {.kind = is_model ? RV_EVENT_LLM_DONE : RV_EVENT_TOOL_DONE,
                                .now_us = now_us,
                                .call_id = id,
                                .failed = reply->failed,
                                .reply = rv_buf_str(&reply->body),
                                .error_type = reply->error_type,
                                .error = rv_str_of(reply->error),
                                .retryable = reply->retryable,
                                .llm = reply->answer};
    if (id != 3) /* nobody waited for that one */
        rv_recorder_note_input(r, &ev);
}

static int record_calls(rv_recorder *r, enum rv_script_kind kind, const char *name, int64_t first_id, int64_t n,
                        rv_err **err)
{
    const struct rv_script_call call = {.kind = kind, .stage = name, .tool = name, .visit = 1};
    int rc = 0;

    for (int64_t id = first_id; rc == 0 && id < first_id + n; id++) {
        struct rv_script_reply reply;
        rc = rv_script_next(played, &call, &reply, err);
        if (rc < 0)
            break;
        play_start(r, kind == RV_SCRIPT_MODEL, name, id, 1700000000000000);
        tell(r, &reply, id, kind == RV_SCRIPT_MODEL);
        rv_script_reply_fini(&reply);
    }
    return rc;
}

static int record(void)
{
    rv_recorder *r = rv_recorder_new();
    struct rv_event answer = {.kind = RV_EVENT_ANSWER};
    rv_err *err = NULL;
    int rc = r ? 0 : RV_E_NOMEM;

    rv_script_rewind(played);
    if (rc == 0) {
        const struct rv_catalog catalog = rv_script_catalog(played, &rv_catalog_empty);
        rv_recorder_hide(r, pipeline);
        rv_recorder_note_tools(r, pipeline, &catalog);
        rc = record_calls(r, RV_SCRIPT_MODEL, "a", 1, 4, &err);
    }
    if (rc == 0)
        rc = record_calls(r, RV_SCRIPT_TOOL, "t", 100, 2, &err);
    if (rc == 0 && rv_script_answer(played, &answer.response, NULL))
        rv_recorder_note_input(r, &answer);
    if (rc == 0)
        rc = rv_recorder_write(r, "recorded", recording, &err);
    rv_recorder_free(r);
    rv_err_free(err);
    return rc;
}

/* n_spare: allocations that may fail and do no harm. */
static void fail_each(int (*scenario)(void), const char *name, int n_spare)
{
    ck_assert_msg(scenario() == 0, "%s", name);
    for (size_t n = 0;; n++) {
        rv_fault_arm(n);
        int rc = scenario();
        if (!rv_fault_disarm()) {
            ck_assert_msg(rc == 0, "%s: %d without a failure", name, rc);
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM || (rc == 0 && n_spare-- > 0), "%s: allocation %zu failed, got %d", name, n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "%s: allocation %zu failed, %ld blocks lost", name, n,
                      rv_fault_balance());
    }
}

START_TEST(reading_and_handing_out)
{
    fail_each(read_and_hand_out, "read", 0);
}
END_TEST

START_TEST(recording_what_is_played)
{
    static const char text[] = "name: p\nmodels: {r: {model: 'openai:x', api_key: sk-0123456789}}\n"
                               "agents: [{name: a, has_llm: true, model_role: r, has_tools: true, tool_access: all}]\n";
    char *dir = rv_kit_tmpdir();
    rv_findings *f = rv_findings_new();

    recording = rv_kit_path(dir, "r.yaml");
    played = play_script(RV_STR_LIT(script_text));
    ck_assert_int_eq(rv_pipeline_parse(RV_STR_LIT(text), "p.yaml", ".", f, &pipeline, NULL), 0);
    fail_each(record, "record", 1); /* writing the folder of a file that is written */
    ;
    rv_pipeline_free(pipeline);
    rv_findings_free(f);
    rv_script_free(played);
    free(recording);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault script");
    TCase *tc = tcase_create("fault");

    tcase_add_test(tc, reading_and_handing_out);
    tcase_add_test(tc, recording_what_is_played);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
