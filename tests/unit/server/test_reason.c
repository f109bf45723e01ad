/* What a client is told of a failure: nothing of the server's own hosts, files and settings. */
#include <string.h>

#include "coreengine/server/turns_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/server/suites.h"

#define TEXT "open \"/srv/reeve/events.jsonl\": refused"

static const struct {
    const char *code;
    bool is_told;
} rows[] = {
    {"disk_full", false},     {"no_descriptors", false}, {"no_threads", false},          {"model_no_key", false},
    {"stage_failed", false},  {"hook_timed_out", false}, {"model_content_filter", true}, {"limit_reached", true},
    {"quota_exceeded", true}, {"policy_denied", true},
};

START_TEST(a_failure_of_the_server_is_told_by_its_meaning)
{
    const struct rv_chat_turn turn = {.error = TEXT, .code = rows[_i].code, .was_kept = true};
    char reason[SRV_MAX_REASON];
    const char *told = srv_reason(&turn, "run-7", reason);

    ck_assert_msg((strstr(told, "/srv/reeve") != NULL) == rows[_i].is_told, "%s: %s", rows[_i].code, told);
    ck_assert_msg((strstr(told, "run-7") == NULL) == rows[_i].is_told, "%s: %s", rows[_i].code, told);
}
END_TEST

TCase *reason_case(void)
{
    TCase *tc = tcase_create("reason");

    tcase_add_loop_test(tc, a_failure_of_the_server_is_told_by_its_meaning, 0, RV_COUNT(rows));
    return tc;
}
