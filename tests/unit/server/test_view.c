/* Ids of blocks of a chat's stream, as clients send them back: which are one, and what they say. */
#include <stdint.h>

#include "coreengine/server/view_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/server/suites.h"

static const struct {
    const char *text;
    bool is_one;
    struct srv_cursor want;
} cursors[] = {
    {"1-17", true, {1, 17, SIZE_MAX}},
    {"2-3.1", true, {2, 3, 1}},
    {"1-0", true, {1, 0, SIZE_MAX}},
    {"", false, {0}},
    {"17", false, {0}},
    {"-17", false, {0}},
    {"1-", false, {0}},
    {"1-2.", false, {0}},
    {"1-2.3.4", false, {0}},
    {"1.2", false, {0}},
    {"1-99999999999999999999", false, {0}},
    {" 1-2", false, {0}},
};

START_TEST(cursors_are_read)
{
    struct srv_cursor c = {0};
    bool is_one = srv_cursor_read(rv_str_of(cursors[_i].text), &c);

    ck_assert_int_eq(is_one, cursors[_i].is_one);
    if (is_one)
        ck_assert(c.ordinal == cursors[_i].want.ordinal && c.line == cursors[_i].want.line &&
                  c.blocks == cursors[_i].want.blocks);
}
END_TEST

/* Ids of the streams of a run, and back. */
START_TEST(streams_have_ordinals)
{
    char id[SRV_STREAM_ID];

    srv_stream_id("run", _i, id);
    ck_assert_str_eq(id, _i == 1 ? "run" : _i == 2 ? "run~2" : "run~3");
    ck_assert_int_eq(srv_stream_ordinal(id), _i);
}
END_TEST

/* The process died when the reply was in the journal, and its last pieces were not in the stream: they are told before
 * the event that ends the reply. A reply that does not go on with what was told is left alone. */
#define OPEN    "{\"type\":\"delta\",\"stage\":\"a\",\"call_id\":1,"
#define SAYS(s) OPEN "\"kind\":\"text\",\"text\":\"" s "\"}\n"
#define BEGINS  "1\n2\n" SAYS("Here it ")
#define CALL    OPEN "\"kind\":\"tool_call_start\",\"index\":0,\"id\":\"c\",\"name\":\"f\"}\n"
static const struct {
    const char *lines, *reply, *calls, *has, *has_not;
} missed[] = {
    {BEGINS "again 4\n", "Here it is.", "", "\"delta\":\"is.\"", "\"delta\":\"Here it is.\""},
    {BEGINS "4\n", "Here it is.", "", "\"delta\":\"is.\"", "\"delta\":\"Here it is.\""},
    {BEGINS SAYS("is.") "3\n4\n", "Here it is.", "", "\"delta\":\"is.\"", "\"delta\":\"Here it is.\""},
    {BEGINS "3\n4\n", "Here it is.", "", "Here it ", "\"delta\":\"is.\""},
    {BEGINS "again 4\n", "There it is.", "", "Here it ", "is."},
    {BEGINS "again 2\n3\n4\n", "Here it is.", "", "Here it ", "\"delta\":\"is.\""},
    {BEGINS CALL "again 4\n", "Here it ", "[{\"id\":\"c\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}]",
     "\"delta\":\"{\\\"x\\\":1}\"", "\"delta\":\"Here it is.\""},
};

static void tell_missed(const char *lines, const struct rv_protocol_reply *reply, rv_buf *out)
{
    static const char *const events[] = {
        "{\"type\":\"stage_started\",\"stage\":\"a\",\"visit\":1}",
        "{\"type\":\"llm_call_start\",\"stage\":\"a\",\"visit\":1,\"call_id\":1,\"model\":\"m\"}",
        "{\"type\":\"llm_result\",\"stage\":\"a\",\"visit\":1,\"call_id\":1,\"status\":\"success\",\"preview\":\"\"}",
        "{\"type\":\"stage_completed\",\"stage\":\"a\",\"visit\":1,\"status\":\"success\"}"};
    const struct rv_protocol_opts opts = {
        .kind = RV_PROTOCOL_AGUI, .run_id = "r", .session_id = "s", .model = "m", .created_us = 1};
    struct srv_view *v = srv_view_new(NULL);
    rv_buf text = RV_BUF_INIT(4096);

    rv_buf_puts(&text, "open ");
    srv_view_open_write(&opts, 1, 0, &text);
    rv_buf_printf(&text, "\n%send {\"status\":\"completed\",\"text\":\"\",\"usage\":{}}\n", lines);
    for (size_t i = 0; i < RV_COUNT(events); i++) {
        int64_t seq = (int64_t)i + 1;
        ck_assert_int_eq(srv_view_event(v, seq, rv_str_of(events[i]), NULL, NULL), 0);
        if (seq == 3)
            ck_assert_int_eq(srv_view_reply(v, seq, reply, NULL), 0);
    }
    const struct rv_stream_part part = {.n = 1, .first = 1, .at_us = 1, .lines = rv_buf_str(&text)};
    ck_assert_int_eq(srv_view_lines(v, &part, out, NULL), 0);
    ck_assert(srv_view_is_over(v));
    srv_view_free(v);
    rv_buf_fini(&text);
}

START_TEST(pieces_that_no_line_has_are_told_from_the_journal)
{
    const struct rv_protocol_reply reply = {rv_str_of(missed[_i].reply), rv_str_of(missed[_i].calls)};
    rv_buf out = RV_BUF_INIT(65536);

    tell_missed(missed[_i].lines, &reply, &out);
    ck_assert_msg(strstr(rv_buf_cstr(&out), missed[_i].has), "%s: %s", missed[_i].lines, rv_buf_cstr(&out));
    ck_assert_msg(!strstr(rv_buf_cstr(&out), missed[_i].has_not), "%s: %s", missed[_i].lines, rv_buf_cstr(&out));
    const char *first = strstr(rv_buf_cstr(&out), "TEXT_MESSAGE_START");
    ck_assert_ptr_null(strstr(first + 1, "TEXT_MESSAGE_START"));
    rv_buf_fini(&out);
}
END_TEST

/* What is kept of a stream is the store's: a first line that cannot be is damage, not a fault of the client. */
static const char *const damaged[] = {
    "open {}\n",
    "open {\"protocol\":\"agui\",\"session\":\"s\"}\n",
    "open {\"protocol\":\"of-later\",\"run\":\"r\",\"session\":\"s\"}\n",
    "open {\"protocol\":\"agui\",\"run\":\"r\",\"session\":\"s\",\"client_tools\":[7]}\n",
    "open {\n",
    "1\n",
};

START_TEST(a_first_line_that_cannot_be_is_damage)
{
    const struct rv_stream_part part = {.n = 1, .first = 1, .at_us = 1, .lines = rv_str_of(damaged[_i])};
    struct srv_view *v = srv_view_new(NULL);
    rv_buf out = RV_BUF_INIT(65536);
    rv_err *err = NULL;

    ck_assert_int_eq(srv_view_event(v, 1, RV_STR_LIT("{\"seq\":1}"), NULL, NULL), 0);
    ck_assert_int_eq(srv_view_lines(v, &part, &out, &err), RV_E_IO);
    rv_err_free(err);
    srv_view_free(v);
    rv_buf_fini(&out);
}
END_TEST

static void ok(int rc, rv_err *err)
{
    ck_assert_msg(rc == 0, "%s", rv_err_text(err));
}

/* Its other lines had the words, so the end that is made of the store has them. */
START_TEST(a_lost_end_has_the_words_in_the_mode_client)
{
    const struct rv_store_scope scope = {NULL, ""};
    const struct rv_session_row fresh = {.id = "s1", .tenant = RV_STORE_TENANT, .user = "", .created_us = 1};
    const struct rv_run_row run = {.id = "r1", .session = "s1", .status = RV_RUN_COMPLETED};
    struct rv_message m = {
        .id = "m1", .type = "assistant", .has_content = true, .content = RV_STR_LIT("leek soup"), .run_id = "r1"};
    rv_buf out = RV_BUF_INIT(65536);
    rv_keyring *ring = NULL;
    rv_store *s = NULL;
    rv_err *err = NULL;
    char id[RV_ENCRYPTION_ID];

    ok(rv_keyring_read(RV_STR_LIT("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), "keys", &ring, &err), err);
    ok(rv_store_open("memory:", &(const struct rv_store_opts){.ring = ring}, &s, &err), err);
    rv_keyring_unref(ring);
    ok(rv_store_set_encryption(s, "", &(const struct rv_encryption_choice){.mode = RV_ENCRYPTION_CLIENT}, 1, id, &err),
       err);
    ok(rv_store_ensure_session(s, &fresh, NULL, &err), err);
    ok(rv_store_add_messages(s, &scope, &(struct rv_turn){.session = "s1", .rows = &m, .n_rows = 1}, 1, &err), err);
    ok(srv_lost_end_write(s, &scope, &run, RV_STR_LIT("{\"event\":\"run_end\"}"), &out, &err), err);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&out), "leek soup"));
    rv_buf_fini(&out);
    rv_store_close(s);
}
END_TEST

TCase *view_case(void)
{
    TCase *c = tcase_create("view");

    tcase_add_loop_test(c, cursors_are_read, 0, RV_COUNT(cursors));
    tcase_add_loop_test(c, pieces_that_no_line_has_are_told_from_the_journal, 0, RV_COUNT(missed));
    tcase_add_loop_test(c, streams_have_ordinals, 1, 4);
    tcase_add_loop_test(c, a_first_line_that_cannot_be_is_damage, 0, RV_COUNT(damaged));
    tcase_add_test(c, a_lost_end_has_the_words_in_the_mode_client);
    return c;
}
