/* The format: what is written is read back alike, people can read it, and the reference page tells of all of it. */
#include <json-c/json_object_iterator.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/journal/journal_internal.h"
#include "tests/unit/journal/live.h"
#include "tests/unit/journal/suites.h"

#define SAID(...)                                                                                                      \
    {                                                                                                                  \
        .finish = RV_FINISH_STOP, .error_kind = RV_UNSET, .has_usage = true, __VA_ARGS__                               \
    }
#define CASES(X)                                                                                                       \
    X(.kind = RV_EVENT_START)                                                                                          \
    X(.kind = RV_EVENT_CANCEL)                                                                                         \
    X(.kind = RV_EVENT_RECOVER)                                                                                        \
    X(.kind = RV_EVENT_TIMER, .call_id = 7)                                                                            \
    X(.kind = RV_EVENT_LLM_DONE, .call_id = 7, .reply = RV_STR_LIT("a \"b\"\n\xc3\xa9"),                               \
      .llm = SAID(.usage.input_tokens = 3))                                                                            \
    X(.kind = RV_EVENT_LLM_DONE, .call_id = 7, .llm = SAID(.usage.output_tokens = 9), .reply = RV_STR_LIT(""))         \
    X(.kind = RV_EVENT_LLM_DONE, .call_id = 7, .llm = SAID(.tool_calls = RV_STR_LIT("[{\"id\":\"a\"}]")))              \
    X(.kind = RV_EVENT_LLM_DONE, .call_id = 7, .failed = true, .error = RV_STR_LIT("cut"), .reply = RV_STR_LIT("par"), \
      .llm = {.finish = RV_UNSET, .error_kind = RV_LLM_ERROR_PROTOCOL, .may_be_billed = true})                         \
    X(.kind = RV_EVENT_HOOK_DONE, .call_id = 8, .reply = RV_STR_LIT("{}"))                                             \
    X(.kind = RV_EVENT_TOOL_DONE, .call_id = 9, .unknown = true)                                                       \
    X(.kind = RV_EVENT_TOOL_DONE, .call_id = 9, .failed = true, .error = RV_STR_LIT("bad"), .retryable = true)         \
    X(.kind = RV_EVENT_TOOL_DONE, .call_id = 9, .failed = true, .error_type = "TimeoutError",                          \
      .error = RV_STR_LIT("late"))                                                                                     \
    X(.kind = RV_EVENT_ANSWER)                                                                                         \
    X(.kind = RV_EVENT_ANSWER, .response = {.text = RV_STR_LIT("a\0b"),                                                \
                                            .decision = RV_STR_LIT("approve"),                                         \
                                            .interrupt_id = RV_STR_LIT("int_1")})                                      \
    X(.kind = RV_EVENT_ANSWER, .response = {.has_approved = true, .approved = false})                                  \
    X(.kind = RV_EVENT_ANSWER, .response = {.has_approved = true, .approved = true})

#define EVENT(...) {.now_us = LIVE_T0, __VA_ARGS__},
static const struct rv_event events[] = {CASES(EVENT)};

static char *event_text(const struct rv_event *ev)
{
    rv_buf b = RV_BUF_INIT(LIVE_MAX_TEXT);
    rv_jw w = rv_jw_on(&b);

    rv_event_write_json(ev, &w);
    return rv_buf_steal(&b, NULL);
}

static void check_round_trip(const struct rv_event *ev)
{
    rv_buf body = RV_BUF_INIT(4096), value = RV_BUF_INIT(4096), scratch = RV_BUF_INIT(4096);
    struct rv_record r = {.seq = 2, .kind = RV_RECORD_EVENT};
    json_object *own = NULL;
    struct rv_event got;

    r.value = journal_record_put_event(ev, &body, &value);
    r.body = rv_buf_str(&body);
    ck_assert_int_eq(journal_record_get_event(&r, &own, &scratch, &got, NULL), 0);
    char *a = event_text(ev), *b = event_text(&got);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    json_object_put(own);
    rv_buf_fini(&body);
    rv_buf_fini(&value);
    rv_buf_fini(&scratch);
}

START_TEST(events_come_back_as_they_were)
{
    check_round_trip(&events[_i]);
}
END_TEST

START_TEST(the_data_of_an_answer_comes_back)
{
    struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = 5};

    ev.response.data = rv_kit_json("{'result':{'n':1.50,'list':[null,true]}}");
    check_round_trip(&ev);
    json_object_put(ev.response.data);
}
END_TEST

START_TEST(bytes_that_are_no_text_come_back)
{
    const struct rv_event ev = {
        .kind = RV_EVENT_LLM_DONE, .now_us = 5, .call_id = 1, .reply = RV_STR_LIT("\x00\xff\x10 x")};
    rv_buf body = RV_BUF_INIT(4096), value = RV_BUF_INIT(4096), scratch = RV_BUF_INIT(4096);
    struct rv_record r = {.seq = 2, .kind = RV_RECORD_EVENT};
    json_object *own = NULL;
    struct rv_event got;

    r.value = journal_record_put_event(&ev, &body, &value);
    r.body = rv_buf_str(&body);
    ck_assert(rv_str_is(r.value, "00ff102078"));
    ck_assert_int_eq(journal_record_get_event(&r, &own, &scratch, &got, NULL), 0);
    ck_assert(rv_str_eq(got.reply, ev.reply));
    json_object_put(own);
    rv_buf_fini(&body);
    rv_buf_fini(&value);
    rv_buf_fini(&scratch);
}
END_TEST

/* --- for people --- */

static const struct {
    struct rv_record r;
    const char *want;
} lines[] = {
    {{4, RV_RECORD_EVENT, RV_STR_LIT("{\"event\":\"llm_done\",\"now_us\":5}"), RV_STR_LIT("so: \"x\"")},
     "{\"seq\":4,\"record\":\"event\",\"event\":\"llm_done\",\"now_us\":5,\"value\":\"so: \\\"x\\\"\"}"},
    {{5, RV_RECORD_STARTED, RV_STR_LIT("{\"call_id\":1}"), RV_STR_LIT(" {\"a\":1.50} ")},
     "{\"seq\":5,\"record\":\"started\",\"call_id\":1,\"value\":{\"a\":1.50}}"},
    {{6, RV_RECORD_OWNER, RV_STR_LIT("{}"), {NULL, 0}}, "{\"seq\":6,\"record\":\"owner\"}"},
    {{7, 99, RV_STR_LIT("[1]"), RV_STR_LIT("7")},
     "{\"seq\":7,\"record\":\"unknown\",\"body\":\"[1]\",\"value\":\"7\"}"},
    {{8, RV_RECORD_BEGIN, RV_STR_LIT("{"), RV_STR_LIT("")},
     "{\"seq\":8,\"record\":\"begin\",\"body\":\"{\",\"value\":\"\"}"},
    {{9, RV_RECORD_EVENT, RV_STR_LIT("{}"), RV_STR_LIT("\xff")},
     "{\"seq\":9,\"record\":\"event\",\"not_utf8\":\"value\",\"sha256\":"
     "\"a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89\"}"},
};

START_TEST(a_record_is_one_line)
{
    rv_buf b = RV_BUF_INIT(4096);
    rv_jw w = rv_jw_on(&b);

    rv_record_write_json(&lines[_i].r, &w);
    ck_assert_int_eq(rv_buf_check(&b, "line", NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&b), lines[_i].want);
    rv_buf_fini(&b);
}
END_TEST

/* --- the page --- */

static void must_tell(const char *page, const char *kind, const char *member)
{
    char row[100];

    snprintf(row, sizeof row, "\n| `%s` |", member);
    ck_assert_msg(strstr(page, row) != NULL, "docs/reference/journal.md has no row for member \"%s\" of %s", member,
                  kind);
}

static void must_tell_all(const char *page, const char *kind, rv_str body)
{
    json_object *json = NULL;

    ck_assert_int_eq(rv_json_parse(body, NULL, &json, NULL), 0);
    struct json_object_iterator it = json_object_iter_begin(json), end = json_object_iter_end(json);
    for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it))
        must_tell(page, kind, json_object_iter_peek_name(&it));
    json_object_put(json);
}

struct reader {
    const char *page;
    int n_kinds[RV_N_RECORD_KINDS];
};

static int read_one(void *self, const struct rv_record *r, rv_err **err)
{
    struct reader *reader = self;
    char heading[64];

    (void)err;
    snprintf(heading, sizeof heading, "\n## %s\n", rv_record_kind_text(r->kind));
    ck_assert_msg(strstr(reader->page, heading), "no heading for records %s", rv_record_kind_text(r->kind));
    must_tell_all(reader->page, rv_record_kind_text(r->kind), r->body);
    reader->n_kinds[r->kind]++;
    return 0;
}

START_TEST(the_page_tells_of_every_member)
{
    const struct rv_store_scope scope = live_scope();
    const bool scripted[8] = {true, true};
    struct reader reader = {.page = rv_kit_read(RV_SOURCE_DIR "/docs/reference/journal.md")};

    for (uint64_t seed = 1; seed < 30; seed++) {
        rv_store *store = NULL;
        ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
        struct live *l = live_new(store, live_pipelines[3], seed, RV_UNSET);
        live_go(l, 100);
        ck_assert_int_eq(rv_store_read(store, &scope, &(struct rv_record_range){.run = LIVE_RUN, .from = 1}, read_one,
                                       &reader, NULL),
                         0);
        rv_buf b = RV_BUF_INIT(4096);
        const struct rv_conversation conversation = {.context = {.tenant_id = "default"}};
        struct rv_journal_begin begin = {.mode = RV_MODE_PARALLEL,
                                         .use_mocks = true,
                                         .has_script = true,
                                         .answers_from_script = true,
                                         .is_script_blind = true,
                                         .max_parallel = 5,
                                         .scripted = scripted,
                                         .script_at = rv_kit_json("{}"),
                                         .conversation = &conversation,
                                         .task = "pgreet"};
        journal_record_put_begin(&begin, l->p, 5, &b);
        rv_journal_begin_fini(&begin);
        must_tell_all(reader.page, "begin", rv_buf_str(&b));
        rv_buf_fini(&b);
        live_free(l);
        rv_store_close(store);
    }
    for (int kind = 1; kind < RV_N_RECORD_KINDS; kind++) /* no live pipeline plans; the example is of a plan */
        ck_assert_msg(kind == RV_RECORD_ARTIFACT || reader.n_kinds[kind] > 0, "no record %s was seen",
                      rv_record_kind_text(kind));
    for (size_t i = 0; i < RV_COUNT(events); i++) {
        rv_buf body = RV_BUF_INIT(4096), value = RV_BUF_INIT(4096);
        journal_record_put_event(&events[i], &body, &value);
        must_tell_all(reader.page, "event", rv_buf_str(&body));
        if (events[i].kind == RV_EVENT_ANSWER)
            must_tell_all(reader.page, "answer", rv_buf_str(&value));
        rv_buf_fini(&body);
        rv_buf_fini(&value);
    }
    free((char *)(uintptr_t)reader.page);
}
END_TEST

/* Each example of the page is a record as it is printed: take it apart, print it again. */
START_TEST(the_examples_are_records)
{
    char *page = rv_kit_read(RV_SOURCE_DIR "/docs/reference/journal.md");
    int n = 0, n_kinds[RV_N_RECORD_KINDS] = {0};

    for (const char *at = page; (at = strstr(at, "\n{\"seq\":")) != NULL; n++) {
        rv_str line = {at + 1, strcspn(at + 1, "\n")};
        json_object *json = NULL, *value = NULL;
        struct rv_record r = {0};
        rv_buf body = RV_BUF_INIT(4096), text = RV_BUF_INIT(4096), again = RV_BUF_INIT(4096);
        const char *kind = NULL;
        ck_assert_int_eq(rv_json_parse(line, NULL, &json, NULL), 0);
        ck_assert(rv_json_get_int(json, "seq", &r.seq) && rv_json_get_text(json, "record", &kind));
        for (int k = 1; k < RV_N_RECORD_KINDS; k++)
            if (strcmp(kind, rv_record_kind_text(k)) == 0)
                r.kind = k;
        n_kinds[r.kind]++;
        if (json_object_object_get_ex(json, "value", &value)) {
            if (json_object_is_type(value, json_type_string))
                rv_buf_add_str(&text, rv_json_str(value));
            else
                rv_json_write(value, &text);
            r.value = rv_buf_str(&text);
        }
        json_object_object_del(json, "seq");
        json_object_object_del(json, "record");
        json_object_object_del(json, "value");
        rv_json_write(json, &body);
        r.body = rv_buf_str(&body);
        must_tell_all(page, kind, r.body);
        rv_jw w = rv_jw_on(&again);
        rv_record_write_json(&r, &w);
        ck_assert_msg(rv_str_eq(rv_buf_str(&again), line), "%s", rv_buf_cstr(&again));
        if (r.kind == RV_RECORD_EVENT) { /* and one that is understood */
            json_object *own = NULL;
            struct rv_event ev;
            ck_assert_int_eq(journal_record_get_event(&r, &own, &text, &ev, NULL), 0);
            json_object_put(own);
        }
        json_object_put(json);
        rv_buf_fini(&body);
        rv_buf_fini(&text);
        rv_buf_fini(&again);
        at += line.len;
    }
    for (int k = 1; k < RV_N_RECORD_KINDS; k++)
        ck_assert_msg(n_kinds[k] > 0, "no example of %s", rv_record_kind_text(k));
    free(page);
}
END_TEST

TCase *format_case(void)
{
    TCase *tc = tcase_create("format");

    tcase_add_loop_test(tc, events_come_back_as_they_were, 0, (int)RV_COUNT(events));
    tcase_add_test(tc, the_data_of_an_answer_comes_back);
    tcase_add_test(tc, bytes_that_are_no_text_come_back);
    tcase_add_loop_test(tc, a_record_is_one_line, 0, (int)RV_COUNT(lines));
    tcase_add_test(tc, the_page_tells_of_every_member);
    tcase_add_test(tc, the_examples_are_records);
    return tc;
}
