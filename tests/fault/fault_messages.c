/* Every allocation fails once, as a turn is read, as a history is put together with either policy, and as options are
 * read: no crash, no leak, RV_E_NOMEM. */
#include <check.h>
#include <string.h>

#include "coreengine/conversation/conversation.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define VIEW(text)                                                                                                     \
    {                                                                                                                  \
        (text), sizeof(text) - 1                                                                                       \
    }

static const char turn[] =
    "[{\"id\":\"1\",\"type\":\"user\",\"content\":\"hi\",\"at_us\":1},"
    "{\"id\":\"2\",\"type\":\"tool_call\",\"tool_calls\":{\"name\":\"f\",\"id\":\"c\",\"arguments\":{}},\"at_us\":2,"
    "\"metadata\":{\"x\":[1,2]}}]";

static char long_text[2000]; /* of an assistant */

/* One of each kind, the newest first; many enough for lists to grow. */
static const struct rv_message rows[] = {
    {.type = "assistant", .has_content = true, .content = {long_text, sizeof long_text}, .token_count = RV_UNSET},
    {.type = "assistant", .has_content = true, .content = VIEW("no\xffUTF-8"), .token_count = RV_UNSET},
    {.type = "tool_response",
     .has_content = true,
     .content = VIEW("r\xff"),
     .tool_calls = VIEW("{\"id\":\"a b\"}"),
     .metadata = VIEW("{\"is_error\":true}")},
    {.type = "tool_response", .has_content = true, .content = VIEW("r"), .tool_calls = VIEW("{\"id\":\"b\"}")},
    {.type = "tool_call", .tool_calls = VIEW("{\"id\":\"b\",\"name\":\"g\",\"arguments\":\"{\\\"x\\\":1}\"}")},
    {.type = "tool_call", .tool_calls = VIEW("{\"id\":\"a b\",\"arguments\":\"{x\"}")},
    {.type = "tool_call", .tool_calls = VIEW("{\"id\":\"b\",\"arguments\":{\"x\":[1]}}")},
    {.type = "tool", .has_content = true, .metadata = VIEW("{\"tool_name\":\"f\"}")},
    {.type = "observation", .has_content = true, .content = VIEW("it rains"), .token_count = RV_UNSET},
    {.type = "tool_response", .has_content = true, .content = VIEW("r"), .tool_calls = VIEW("{\"id\":\"b\"}")},
    {.type = "user", .has_content = true, .content = VIEW("u"), .token_count = RV_UNSET}};

static int read_turn(void)
{
    struct rv_turn *t = rv_turn_new(1 << 20), *copy = rv_turn_new(1 << 20);
    json_object *json = NULL;
    rv_err *err = NULL;
    int rc = t && copy ? rv_json_parse(rv_str_of(turn), NULL, &json, &err) : RV_E_NOMEM;

    if (rc == 0)
        rc = rv_turn_read_rows(json, t, &err);
    if (rc == 0) {
        rv_turn_add_all(copy, t);
        rc = rv_turn_check(copy, &err);
    }
    json_object_put(json);
    rv_turn_free(t);
    rv_turn_free(copy);
    rv_err_free(err);
    return rc;
}

static int show(int policy)
{
    struct rv_history_opts o = RV_HISTORY_OPTS_INIT;
    rv_history *h = NULL;
    json_object *messages = NULL;
    rv_err *err = NULL;
    bool full = false;
    int rc;

    o.policy = policy;
    o.always_last = 0;
    rc = rv_history_new("s", &o, &h, &err);
    for (size_t round = 0; rc == 0 && round < 2; round++)
        for (size_t i = 0; rc == 0 && i < RV_COUNT(rows); i++)
            rc = rv_history_add(h, &rows[i], &full, &err);
    if (rc == 0)
        rc = rv_history_finish(h, &messages, &err);
    if (rc == 0 && json_object_array_length(messages) < 8)
        rc = RV_E_INTERNAL;
    json_object_put(messages);
    rv_history_free(h);
    rv_err_free(err);
    return rc;
}

static int show_all(void)
{
    return show(RV_REPLAY_SYNTHESISE);
}

static int show_texts(void)
{
    return show(RV_REPLAY_SKIP);
}

/* With memory as without it the same rows are told, or it fails: here the second row is too long, so that it ends what
 * is injected, and the file of the first stands in metadata that is text. */
static int note_moments(void)
{
    json_object *both[2] = {json_object_new_object(), json_object_new_object()}, *notes = NULL;
    const struct rv_moment_opts opts = {.max_inject = 3, .max_tokens = 50};
    rv_err *err = NULL;
    int rc = both[0] && both[1] ? 0 : RV_E_NOMEM;

    if (rc == 0)
        rc = rv_json_set_text(both[0], "summary", "tea", &err);
    if (rc == 0)
        rc = rv_json_set_text(both[0], "metadata", "{\"file_name\":\"tea.md\"}", &err);
    if (rc == 0)
        rc = rv_json_set_str(both[1], "summary", (rv_str){long_text, sizeof long_text}, &err);
    if (rc == 0)
        rc = rv_moments_note(both, 2, &opts, false, &notes, &err);
    if (rc == 0) {
        json_object *first = json_object_array_get_idx(notes, 0);
        if (json_object_array_length(notes) != 1 || !strstr(rv_json_text_or(first, "text", ""), "File: tea.md"))
            rc = RV_E_INTERNAL;
    }
    json_object_put(notes);
    json_object_put(both[0]);
    json_object_put(both[1]);
    rv_err_free(err);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {
    {"a turn", read_turn}, {"a history", show_all}, {"texts", show_texts}, {"moments", note_moments}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 10);
}
END_TEST

/* It names rows: two sessions with one id would have one row. */
START_TEST(the_id_of_a_chunk_needs_no_memory)
{
    char want[RV_UUID_MAX], got[RV_UUID_MAX];

    rv_chunk_make_id("a session", 7, want);
    rv_fault_arm(0);
    rv_chunk_make_id("a session", 7, got);
    ck_assert(!rv_fault_disarm());
    ck_assert_str_eq(got, want);
    ck_assert_str_eq(got, "7ca35676-e8ab-55bb-8ff3-838ae8ae3b9e");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_messages");
    TCase *c = tcase_create("loops");

    memset(long_text, 'x', sizeof long_text);
    tcase_add_loop_test(c, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    tcase_add_test(c, the_id_of_a_chunk_needs_no_memory);
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}
