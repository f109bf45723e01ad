/* Whatever a record is written with, its reader reads: clocks that are wrong, what providers and people may say,
 * numbers at their borders, texts of any kind, and records of engines that wrote more than they read. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"
#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

#define ROUNDS  rv_kit_sample(200, 400)
#define LONGEST ((size_t)100000)

static const int64_t ints[] = {INT64_MIN,
                               -1,
                               0,
                               1,
                               INT64_C(9999999999000000), /* Retry-After: 9999999999 */
                               INT64_C(251606931330708742),
                               INT64_C(1) << 52,
                               (INT64_C(1) << 52) + 1,
                               INT64_C(1) << 60,
                               INT64_MAX};
static const rv_str texts[] = {
    {NULL, 0},
    RV_STR_LIT(""),
    RV_STR_LIT("a\0b"),
    RV_STR_LIT("\xc2\x80\xc2\x9f\x01\x1b\x7f \" \\ \n \xf4\x8f\xbf\xbf"),
    RV_STR_LIT("[{\"id\":\"a\",\"name\":\"b\",\"arguments\":\"{\\\"n\\\":123456789012345678901}\"}]"),
};

static int64_t an_int(struct rv_rand r)
{
    return ints[rv_rand_below(r, RV_COUNT(ints))];
}

static int64_t a_number(struct rv_rand r) /* of a call or a visit: the core counts them */
{
    int64_t n = an_int(r);
    return n > 0 ? n : 1;
}

static rv_str a_text(struct rv_rand r)
{
    static char longest[LONGEST];
    size_t i = rv_rand_below(r, RV_COUNT(texts) + 1);

    memset(longest, 1, sizeof longest);
    return i < RV_COUNT(texts) ? texts[i] : (rv_str){longest, sizeof longest};
}

static rv_str some_bytes(struct rv_rand r)
{
    return rv_rand_below(r, 4) ? a_text(r) : RV_STR_LIT("\xff\xe2\x82\0");
}

static struct rv_usage a_usage(struct rv_rand r)
{
    return (struct rv_usage){.calls = an_int(r),
                             .input_tokens = an_int(r),
                             .output_tokens = an_int(r),
                             .cached_tokens = an_int(r),
                             .cache_write_tokens = an_int(r),
                             .reasoning_tokens = an_int(r),
                             .cost_micro_usd = an_int(r),
                             .estimated = rv_rand_below(r, 2)};
}

static struct rv_llm_answer an_answer(struct rv_rand r)
{
    return (struct rv_llm_answer){.finish = (int)rv_rand_below(r, RV_N_FINISH + 1) - 1,
                                  .tool_calls = a_text(r),
                                  .opaque = a_text(r),
                                  .role = rv_rand_below(r, 2) ? "role \xc2\x85" : NULL,
                                  .usage = a_usage(r),
                                  .has_usage = rv_rand_below(r, 2),
                                  .error_kind = (int)rv_rand_below(r, RV_N_LLM_ERROR + 1) - 1,
                                  .may_be_billed = rv_rand_below(r, 2),
                                  .retry_after_us = an_int(r),
                                  .latency_us = an_int(r),
                                  .first_token_us = an_int(r),
                                  .attempts = an_int(r)};
}

static json_object *some_data(struct rv_rand r, int most)
{
    rv_buf b = RV_BUF_INIT(8192);
    json_object *v = NULL;
    int depth = rv_rand_below(r, 2) ? 1 : most;

    for (int i = 0; i < depth; i++)
        rv_buf_puts(&b, "{\"\":");
    if (depth > 1)
        rv_buf_puts(&b, "123456789012345678901"); /* a list would be one level too many */
    else
        rv_buf_puts(&b, "[18446744073709551616,-9223372036854775809,18446744073709551615,1e-400,-0.0,\"\\u0000\"]");
    for (int i = 0; i < depth; i++)
        rv_buf_putc(&b, '}');
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&b), NULL, &v, NULL), 0);
    rv_buf_fini(&b);
    return v;
}

static char *shown(const struct rv_event *ev)
{
    rv_buf body = RV_BUF_INIT(LIVE_MAX_TEXT), value = RV_BUF_INIT(LIVE_MAX_TEXT);

    rv_str text = journal_record_put_event(ev, &body, &value);
    ck_assert_int_eq(body.rc, 0);
    ck_assert_int_eq(value.rc, 0);
    rv_buf_putc(&body, '\n');
    rv_buf_add_str(&body, text);
    rv_buf_fini(&value);
    return rv_buf_steal(&body, NULL);
}

/* Written, read and written again: the same record. */
static void check_event(const struct rv_event *ev)
{
    rv_buf body = RV_BUF_INIT(LIVE_MAX_TEXT), value = RV_BUF_INIT(LIVE_MAX_TEXT), scratch = RV_BUF_INIT(LIVE_MAX_TEXT);
    struct rv_record r = {.seq = 2, .kind = RV_RECORD_EVENT};
    json_object *own = NULL;
    struct rv_event got;
    rv_err *err = NULL;

    r.value = journal_record_put_event(ev, &body, &value);
    r.body = rv_buf_str(&body);
    ck_assert_msg(journal_record_get_event(&r, &own, &scratch, &got, &err) == 0, "%.300s: %s", rv_buf_cstr(&body),
                  rv_err_text(err));
    char *a = shown(ev), *b = shown(&got);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    json_object_put(own);
    rv_buf_fini(&body);
    rv_buf_fini(&value);
    rv_buf_fini(&scratch);
}

START_TEST(every_event_that_can_be_written_can_be_read)
{
    static const char *const types[] = {NULL, "LLMError", "TimeoutError"};
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, (uint64_t)_i);

    for (int n = 0; n < ROUNDS; n++) {
        struct rv_event ev = {.kind = (enum rv_event_kind)_i, .now_us = an_int(r), .llm = RV_LLM_ANSWER_NONE};
        if (_i == RV_EVENT_LLM_DONE || _i == RV_EVENT_TOOL_DONE || _i == RV_EVENT_HOOK_DONE) {
            ev.failed = rv_rand_below(r, 2);
            ev.reply = ev.failed ? a_text(r) : some_bytes(r); /* what had come of a failed one is text */
            ev.error = ev.failed ? some_bytes(r) : (rv_str){NULL, 0};
            ev.error_type = ev.failed ? types[rv_rand_below(r, RV_COUNT(types))] : NULL;
            ev.retryable = ev.failed && rv_rand_below(r, 2);
        }
        if (_i == RV_EVENT_TOOL_DONE && rv_rand_below(r, 4) == 0)
            ev = (struct rv_event){.kind = ev.kind, .now_us = ev.now_us, .unknown = true};
        if (_i != RV_EVENT_START && _i != RV_EVENT_ANSWER && _i != RV_EVENT_CANCEL && _i != RV_EVENT_RECOVER)
            ev.call_id = a_number(r);
        if (_i == RV_EVENT_LLM_DONE)
            ev.llm = an_answer(r);
        if (_i == RV_EVENT_CANCEL)
            ev.reply = a_text(r);
        if (_i == RV_EVENT_ANSWER)
            ev.response = (struct rv_response){.text = a_text(r),
                                               .has_approved = rv_rand_below(r, 2),
                                               .decision = a_text(r),
                                               .interrupt_id = a_text(r),
                                               .data = rv_rand_below(r, 2) ? some_data(r, RV_JSON_MAX_DEPTH) : NULL};
        if (rv_rand_below(r, 4) == 0) {
            ev.blocked = json_object_new_array();
            ck_assert_int_eq(json_object_array_add(ev.blocked, json_object_new_string("a \xc2\x85")), 0);
        }
        check_event(&ev);
        json_object_put(ev.blocked);
        json_object_put(ev.response.data);
    }
}
END_TEST

START_TEST(every_begin_that_can_be_written_can_be_read)
{
    static const size_t counts[] = {0, 1, (size_t)INT64_MAX, SIZE_MAX};
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 1);
    const struct rv_pipeline none = {.name = "none"};

    for (int n = 0; n < ROUNDS; n++) {
        struct rv_conversation talk = {.context = {.user_id = "u", .tenant_id = "default"},
                                       .session_name = rv_rand_below(r, 2) ? "\xc2\x85" : NULL,
                                       .zone_minutes = (int)rv_rand_below(r, 4000) - 2000,
                                       .upto_seq = an_int(r),
                                       .history_opts = RV_HISTORY_OPTS_INIT};
        talk.history_opts.max_tokens = an_int(r);
        talk.history_opts.since_us = an_int(r);
        bool talks = rv_rand_below(r, 2) && rv_conversation_check(&talk, NULL) == 0;
        const struct rv_journal_begin b = {.rules = rv_rand_below(r, 2) ? RV_RULES_1 : RV_RULES_NEWEST,
                                           .mode = rv_rand_below(r, 2) ? RV_UNSET : RV_MODE_PARALLEL,
                                           .continues = rv_rand_below(r, 2),
                                           .max_parallel = counts[rv_rand_below(r, RV_COUNT(counts))],
                                           .script_at = rv_rand_below(r, 2) ? some_data(r, 1) : NULL,
                                           .conversation = talks ? &talk : NULL};
        rv_buf body = RV_BUF_INIT(LIVE_MAX_TEXT), again = RV_BUF_INIT(LIVE_MAX_TEXT);
        struct rv_journal_begin got;
        rv_err *err = NULL;
        int64_t now_us;

        journal_record_put_begin(&b, &none, an_int(r), &body);
        ck_assert_int_eq(body.rc, 0);
        const struct rv_record record = {1, RV_RECORD_BEGIN, rv_buf_str(&body), {NULL, 0}};
        int rc = journal_record_get_begin(&record, &none, &got, &now_us, &err);
        ck_assert_msg(rc == 0, "%.300s: %s", rv_buf_cstr(&body), rv_err_text(err));
        journal_record_put_begin(&got, &none, now_us, &again);
        ck_assert_str_eq(rv_buf_cstr(&body), rv_buf_cstr(&again));
        rv_journal_begin_fini(&got);
        json_object_put(b.script_at);
        rv_buf_fini(&body);
        rv_buf_fini(&again);
    }
}
END_TEST

/* A started record is compared with the call that the core asks for; its text must not have to be the same. */
START_TEST(every_call_that_can_be_written_is_known_again)
{
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 1);
    struct rv_rand_state ids;
    rv_envelope *env = NULL;

    ck_assert_int_eq(rv_envelope_new(NULL, rv_rand_seeded(&ids, 1), LIVE_T0, &env, NULL), 0);
    for (int n = 0; n < ROUNDS; n++) {
        rv_str request = a_text(r);
        char key[] = "env_1/\xc2\x85/1";
        const struct rv_effect e = {.kind = n % 2 ? RV_EFFECT_CALL_TOOL : RV_EFFECT_CALL_LLM,
                                    .call_id = a_number(r),
                                    .stage = -1,
                                    .visit = a_number(r),
                                    .attempt = a_number(r),
                                    .name = "a \xc2\x85",
                                    .effect_class = RV_EFFECT_SAFE,
                                    .key = key,
                                    .request = (char *)(uintptr_t)request.ptr,
                                    .request_len = request.len};
        rv_buf body = RV_BUF_INIT(LIVE_MAX_TEXT), scratch = RV_BUF_INIT(LIVE_MAX_TEXT);
        rv_err *err = NULL;

        journal_record_put_started(&e, env, &body);
        rv_buf_putc(&body, ' ');
        const struct rv_record record = {2, RV_RECORD_STARTED, rv_buf_str(&body), n % 2 ? request : (rv_str){NULL, 0}};
        ck_assert_msg(journal_record_check_started(&record, &e, env, &scratch, &err) == 0, "%s", rv_err_text(err));
        rv_buf_fini(&body);
        rv_buf_fini(&scratch);
    }
    rv_envelope_free(env);
}
END_TEST

START_TEST(every_owner_that_can_be_written_can_be_read)
{
    static const char *const owners[] = {"", "a/b/1/2/3", "\xc2\x85 \" \\ \n"};
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 1);

    for (int n = 0; n < ROUNDS; n++) {
        const char *owner = owners[rv_rand_below(r, RV_COUNT(owners))], *got = NULL;
        int64_t fence = a_number(r), got_fence = 0, now_us = -1;
        rv_buf text = RV_BUF_INIT(LIVE_MAX_TEXT);
        json_object *body = NULL;

        journal_record_put_owner(owner, fence, an_int(r), &text);
        const struct rv_record record = {3, RV_RECORD_OWNER, rv_buf_str(&text), {NULL, 0}};
        ck_assert_msg(journal_record_get_body(&record, &body, NULL) == 0, "%s", rv_buf_cstr(&text));
        ck_assert(rv_json_get_text(body, "owner", &got) && rv_json_get_int(body, "fence", &got_fence));
        ck_assert_str_eq(got, owner);
        ck_assert_int_eq(got_fence, fence);
        ck_assert(rv_json_get_int(body, "now_us", &now_us) && now_us >= 0);
        json_object_put(body);
        rv_buf_fini(&text);
    }
}
END_TEST

static char *state_text(const rv_envelope *env)
{
    rv_buf b = RV_BUF_INIT(LIVE_MAX_TEXT);

    rv_envelope_write_state(env, &b);
    ck_assert_int_eq(b.rc, 0);
    return rv_buf_steal(&b, NULL);
}

/* Of a state with extreme numbers, at any time: it is used, and it is the same state. */
START_TEST(every_snapshot_that_can_be_written_can_be_read)
{
    const struct rv_store_scope scope = live_scope();
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 1);
    struct rv_run_row row = {0};
    rv_store *store = NULL;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    struct live *l = live_new(store, live_pipelines[0], 1, RV_UNSET);
    live_start(l);
    ck_assert_int_eq(live_reply(l,
                                "{\"n\":[18446744073709551616,-9223372036854775809,123456789012345678901234567890,"
                                "1e-400,-0.0,\"\\u0000\\u0085\"]}",
                                NULL),
                     0);
    ck_assert_int_eq(rv_store_get_run(store, &scope, LIVE_RUN, &row, NULL), 0);
    char *wanted = state_text(rv_run_envelope(l->run));
    int64_t seq = l->shots[l->n_shots - 1].seq;
    for (int n = 0; n < ROUNDS; n++) {
        int64_t last_us = an_int(r);
        struct snapshot got;
        rv_err *err = NULL;

        if (last_us < 0) /* times are cut off where they are taken in */
            continue;
        int rc = journal_snapshot_put(store, &scope, &(struct snapshot_new){LIVE_RUN, row.fence, seq, last_us, l->run},
                                      &err);
        ck_assert_msg(rc == 0, "%s", rv_err_text(err));
        ck_assert_int_eq(journal_snapshot_get(store, &scope, LIVE_RUN, seq, &got, NULL), 0);
        ck_assert_msg(got.seq == seq && got.env, "a snapshot at %lld is not read", (long long)last_us);
        char *text = state_text(got.env);
        ck_assert_str_eq(text, wanted);
        ck_assert_int_eq(got.last_us, last_us);
        ck_assert_int_eq(got.counters.next_seq, rv_run_counters(l->run).next_seq);
        ck_assert_int_eq(got.counters.next_call_id, rv_run_counters(l->run).next_call_id);
        free(text);
        journal_snapshot_fini(&got);
    }
    free(wanted);
    rv_run_row_fini(&row);
    live_free(l);
    rv_store_close(store);
}
END_TEST

/* As engines before wrote it after a header `Retry-After: 9999999999`. */
START_TEST(a_time_that_an_older_engine_wrote_is_read)
{
    static const struct {
        const char *members;
        int rc;
        int64_t us;
    } old[] = {{"\"retry_after_us\":9999999999000000", 0, RV_USAGE_MAX},
               {"\"retry_after_us\":251606931330708742,\"latency_us\":9223372036854775807", 0, RV_USAGE_MAX},
               {"\"retry_after_us\":5", 0, 5},
               {"\"retry_after_us\":-1", RV_E_INVALID, 0},
               {"\"retry_after_us\":1e30", RV_E_INVALID, 0},
               {"\"attempts\":\"3\"", RV_E_INVALID, 0}};
    rv_buf body = RV_BUF_INIT(4096), scratch = RV_BUF_INIT(4096);
    json_object *own = NULL;
    struct rv_event got;

    rv_buf_printf(&body, "{\"event\":\"llm_done\",\"now_us\":5,\"call_id\":1,\"failed\":true,%s}", old[_i].members);
    const struct rv_record r = {2, RV_RECORD_EVENT, rv_buf_str(&body), RV_STR_LIT("busy")};
    ck_assert_int_eq(journal_record_get_event(&r, &own, &scratch, &got, NULL), old[_i].rc);
    if (old[_i].rc == 0)
        ck_assert_int_eq(got.llm.retry_after_us, old[_i].us);
    json_object_put(own);
    rv_buf_fini(&body);
    rv_buf_fini(&scratch);
}
END_TEST

TCase *extreme_case(void)
{
    TCase *tc = tcase_create("extreme");

    tcase_add_loop_test(tc, every_event_that_can_be_written_can_be_read, RV_EVENT_START, RV_EVENT_RECOVER + 1);
    tcase_add_test(tc, every_begin_that_can_be_written_can_be_read);
    tcase_add_test(tc, every_call_that_can_be_written_is_known_again);
    tcase_add_test(tc, every_owner_that_can_be_written_can_be_read);
    tcase_add_test(tc, every_snapshot_that_can_be_written_can_be_read);
    tcase_add_loop_test(tc, a_time_that_an_older_engine_wrote_is_read, 0, 6);
    return tc;
}
