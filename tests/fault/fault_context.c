/* Each allocation fails once: no crash, no leak, and what could not be made whole is not handed out. */
#include <check.h>
#include <string.h>

#include "coreengine/conversation/conversation.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static json_object *whole, *broken;

static int from_headers(void)
{
    static const struct rv_context_header headers[] = {{RV_STR_LIT("X-User-Id"), RV_STR_LIT("u")},
                                                       {RV_STR_LIT("X-Session-Id"), RV_STR_LIT("s")},
                                                       {RV_STR_LIT("X-Client-Id"), RV_STR_LIT("cli")}};
    const struct rv_context_source from = {
        .headers = headers, .n_headers = RV_COUNT(headers), .default_model = "p:m", .auth_email = "a@b.c"};
    rv_arena *room = rv_arena_new(1 << 16);
    struct rv_context c;
    rv_err *err = NULL;
    int rc = room ? rv_context_read_headers(&from, room, &c, &err) : RV_E_NOMEM;

    rv_err_free(err);
    rv_arena_free(room);
    return rc;
}

static int read_and_tell(void)
{
    struct rv_conversation *c = NULL;
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&text);
    rv_err *err = NULL;
    int rc = rv_conversation_read_json(whole, &c, &err);

    rv_err_free(err);
    if (rc == 0) {
        rv_instructions_write(c, "a", true, 1, &text);
        rv_conversation_write_json(c, &w);
        rc = rv_buf_check(&text, "text", NULL);
    }
    rv_buf_fini(&text);
    rv_conversation_free(c);
    return rc;
}

static int read_broken(void)
{
    struct rv_conversation *c = NULL;
    rv_err *err = NULL;
    int rc = rv_conversation_read_json(broken, &c, &err);
    /* An error that could not be kept says that it is about memory. */
    bool was_short = rv_err_is(err, RV_E_NOMEM);

    rv_err_free(err);
    return was_short ? RV_E_NOMEM : rc == RV_E_INVALID && !c ? 0 : rc;
}

static const struct rv_fault_scenario scenarios[] = {
    {"from_headers", from_headers}, {"read_and_tell", read_and_tell}, {"read_broken", read_broken}};

START_TEST(each_failed_allocation_is_reported_and_nothing_leaks)
{
    rv_fault_each(&scenarios[_i], 1);
}
END_TEST

static void set_up(void)
{
    static const char text[] =
        "{'context':{'user_id':'u','tenant_id':'t','user_profile_hint':'a'},'session_name':'N','session_metadata':"
        "{'a':{'b':[1.50,'x']},'c':'d'},'routing':{'active_agent':'a','state':'executing'},'sections':['s','t'],"
        "'zone_minutes':60,'keeps':true,'upto_seq':3,'history':{}}";
    struct rv_conversation c = {.context = {.tenant_id = "t"}, .history_opts = RV_HISTORY_OPTS_INIT};
    rv_buf b = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&b);
    json_object *opts;

    rv_history_opts_write(&c.history_opts, &w);
    opts = rv_kit_json(rv_buf_cstr(&b));
    whole = rv_kit_json(text);
    broken = rv_kit_json(text);
    ck_assert_int_eq(rv_json_set_take(whole, "history", opts, NULL), 0);
    ck_assert_int_eq(rv_json_set_text(broken, "history_hash", "none", NULL), 0);
    rv_buf_fini(&b);
}

static void tear_down(void)
{
    json_object_put(whole);
    json_object_put(broken);
}

int main(void)
{
    Suite *suite = suite_create("fault_context");
    TCase *tc = tcase_create("fault");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, each_failed_allocation_is_reported_and_nothing_leaks, 0, RV_COUNT(scenarios));
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
