/* Entries that ask for services, in the engine's process and in one of their own: what reaches the engine, what comes
 * back, and what is refused before. */
#include <stdio.h>
#include <string.h>

#include "capabilities/sdk/capability.h"
#include "tests/unit/plugin/suites.h"

/* An engine that answers by name. */
struct world {
    rv_plugins *p;
    int n_asked;
    bool was_declared;
    char last[256]; /* "capability entry kind service args" */
    int rc;         /* what the engine says to all asks; 0: answers */
    size_t size;    /* of each answer, a multiple of 4096; 0: small */
};

static int answer(void *self, const struct rv_service_ask *ask, rv_buf *out, rv_err **err)
{
    struct world *w = self;

    w->n_asked++;
    w->was_declared = ask->is_declared;
    snprintf(w->last, sizeof w->last, "%s %s %s %s %.60s", ask->capability, ask->entry, ask->kind, ask->service,
             ask->args.ptr);
    ck_assert_str_eq(ask->user_id, "ada");
    ck_assert_str_eq(ask->run_id, "run_1");
    if (!ask->is_declared)
        return RV_FAIL(err, RV_E_DENIED, "not declared");
    if (rv_service_check(rv_str_of(ask->service), err) < 0)
        return RV_E_NOT_FOUND;
    if (w->rc < 0)
        return RV_FAIL(err, w->rc, "the engine \"does\" not want to");
    if (w->size) {
        char part[4096];
        memset(part, 'x', sizeof part);
        rv_buf_puts(out, "{\"a\":\"");
        for (size_t n = 0; n < w->size; n += sizeof part)
            rv_buf_add(out, part, sizeof part);
        rv_buf_puts(out, "\"}");
        return 0;
    }
    rv_buf_printf(out, "{\"n\":%d}", w->n_asked);
    return 0;
}

static void open_world(struct world *w, bool isolated)
{
    *w = (struct world){.p = new_set(NULL)};
    if (isolated)
        must_isolate(w->p, "asker");
    else
        must_load(w->p, "asker");
}

static int ask(struct world *w, const char *tool, const char *args, rv_buf *out, rv_err **err)
{
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL,
                                        .name = tool,
                                        .args = rv_str_of(args),
                                        .run_id = "run_1",
                                        .user_id = "ada",
                                        .timeout_ms = 20000,
                                        .on_ask = answer,
                                        .ask_self = w};

    return rv_plugins_call(w->p, &call, out, err);
}

static const struct {
    const char *tool, *args;
    int engine_rc;
    const char *reply, *type, *says; /* reply NULL: it fails */
    int n_asked;
} cases[] = {
    {"ask", "{\"service\": \"engine.tools\", \"args\": {\"a\": [1]}}", 0, "{\"n\":1}", NULL, NULL, 1},
    {"ask", "{\"times\": 1000, \"service\": \"engine.tools\", \"args\": {}}", 0, "{\"n\":1000}", NULL, NULL, 1000},
    {"ask", "{\"times\": 1001, \"service\": \"engine.tools\", \"args\": {}}", 0, NULL, "LimitError",
     "at most 1000 times", 1000},
    {"ask", "{\"service\": \"engine.tools\", \"args\": {}}", RV_E_TIMEOUT, NULL, "TimeoutError",
     "the engine \"does\" not want to", 1},
    {"ask", "{\"service\": \"engine.tools\", \"args\": {}}", RV_E_QUOTA, NULL, "LimitError", "not want to", 1},
    {"ask", "{\"service\": \"engine.tools\", \"args\": {}}", RV_E_STATE, NULL, "UnavailableError", "not want to", 1},
    {"ask", "{\"service\": \"engine.tools\", \"args\": {}}", RV_E_INVALID, NULL, "ValidationError", "not want to", 1},
    {"ask", "{\"service\": \"a0123456789012345678901234567890123456789012345678901234567890123456789\", \"args\": {}}",
     0, NULL, "ValidationError", "more than 64 bytes", 0},
    {"ask_undeclared", "{\"service\": \"engine.tools\", \"args\": {}}", 0, NULL, "AccessDenied", "not declared", 1},
    {"ask_large", "{}", 0, NULL, "LimitError", "larger than 1048576 bytes", 0},
    {"ask_null", "{}", 0, NULL, "ValidationError", "without a name", 0},
    {"ask_after_reply", "{}", 0, "{\"ok\": true}", NULL, NULL, 0},
    {"fail_unasked", "{}", 0, NULL, "ExecutionError", "no ask has failed", 0},
    {"ask_two", "{}", 0, "{\"one\": {\"n\":1}, \"two\": {\"n\":2}}", NULL, NULL, 2},
};

static void check(size_t i, bool isolated)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;
    struct world w;

    open_world(&w, isolated);
    w.rc = cases[i].engine_rc;
    int rc = ask(&w, cases[i].tool, cases[i].args, &out, &err);
    ck_assert_msg((rc == 0) == (cases[i].reply != NULL), "%s", error_text(err));
    if (cases[i].reply) {
        ck_assert_str_eq(rv_buf_cstr(&out), cases[i].reply);
    } else {
        ck_assert_str_eq(rv_plugin_error_type(err), cases[i].type);
        ck_assert_msg(strstr(error_text(err), cases[i].says) != NULL, "%s", error_text(err));
    }
    ck_assert_int_eq(w.n_asked, cases[i].n_asked);
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_plugins_free(w.p);
}

START_TEST(an_entry_asks_the_engine)
{
    check((size_t)_i, false);
}
END_TEST

START_TEST(an_entry_in_a_process_of_its_own_asks_the_same)
{
    check((size_t)_i, true);
}
END_TEST

START_TEST(the_engine_knows_who_asks_and_whether_it_may)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    struct world w;

    open_world(&w, _i == 1);
    ck_assert_int_eq(ask(&w, "ask", "{\"service\": \"http.get\", \"args\": {\"url\": 1}}", &out, NULL), 0);
    ck_assert_str_eq(w.last, "asker ask tool http.get {\"url\": 1}");
    ck_assert(w.was_declared);
    ck_assert_int_lt(ask(&w, "ask_undeclared", "{\"service\": \"http.get\", \"args\": {}}", &out, NULL), 0);
    ck_assert(!w.was_declared);
    rv_buf_fini(&out);
    rv_plugins_free(w.p);
}
END_TEST

START_TEST(a_failed_ask_says_why_as_json)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    json_object *failure = NULL;
    const char *type = "", *message = "";
    struct world w;

    open_world(&w, _i == 1);
    ck_assert_int_eq(ask(&w, "tell_failure", "{}", &out, NULL), 0);
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&out), NULL, &failure, NULL), 0);
    ck_assert(rv_json_get_text(failure, "type", &type) && rv_json_get_text(failure, "message", &message));
    ck_assert_str_eq(type, "AccessDenied"); /* a service that does not exist cannot be declared */
    ck_assert_str_ne(message, "");
    json_object_put(failure);
    rv_buf_fini(&out);
    rv_plugins_free(w.p);
}
END_TEST

START_TEST(the_answers_of_a_call_are_bounded)
{
    rv_buf out = RV_BUF_INIT(16 << 20);
    rv_err *err = NULL;
    struct world w;

    open_world(&w, _i == 1);
    w.size = 4 << 20;
    ck_assert_int_lt(ask(&w, "ask", "{\"times\": 20, \"service\": \"http.get\", \"args\": {}}", &out, &err), 0);
    ck_assert_msg(strstr(error_text(err), "answers of a call are at most") != NULL, "%s", error_text(err));
    ck_assert_int_le(w.n_asked, (int)(RV_CAP_MAX_ASKED / w.size) + 1);
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_plugins_free(w.p);
}
END_TEST

START_TEST(without_a_run_no_engine_answers)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;
    struct world w;

    open_world(&w, _i == 1);
    ck_assert_int_eq(call_entry(w.p, RV_NAME_TOOL, "ask_two", "{}", &out, &err), RV_E_TOOL);
    ck_assert_str_eq(rv_plugin_error_type(err), "UnavailableError");
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_plugins_free(w.p);
}
END_TEST

START_TEST(a_cancelled_call_is_answered_nothing)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_cancel_flag cancelled;
    rv_err *err = NULL;
    struct world w;

    open_world(&w, true);
    atomic_init(&cancelled, true);
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL,
                                        .name = "ask_cancelled",
                                        .args = RV_STR_LIT("{}"),
                                        .cancelled = &cancelled,
                                        .on_ask = answer,
                                        .ask_self = &w};
    ck_assert_int_lt(rv_plugins_call(w.p, &call, &out, &err), 0);
    ck_assert_int_eq(w.n_asked, 0);
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_plugins_free(w.p);
}
END_TEST

/* A child that writes to the socket past its host. What it sends is an ask as any other, or the end of the child. */
static const struct {
    const char *tool;
    int rc, n_asked;
    const char *says;
} forged[] = {
    {"forge_unknown", RV_E_TIMEOUT, 1, "no answer in time"},
    {"forge_undeclared", RV_E_TIMEOUT, 1, "no answer in time"},
    {"forge_large", RV_E_TIMEOUT, 0, "no answer in time"},
    {"forge_flood", RV_E_PLUGIN, RV_CAP_MAX_ASKS, "asks more than 1000 times"},
};

/* The child that was asked is silent then. Where the machine was too slow for its ask to come in time, it gets twice
 * the time. */
static int ask_a_forger(struct world *w, int row, rv_buf *out, rv_err **err)
{
    struct rv_plugin_call call = {.kind = RV_NAME_TOOL,
                                  .name = forged[row].tool,
                                  .args = RV_STR_LIT("{}"),
                                  .run_id = "run_1",
                                  .user_id = "ada",
                                  .timeout_ms = forged[row].rc == RV_E_TIMEOUT ? 50 : 20000,
                                  .on_ask = answer,
                                  .ask_self = w};

    for (;; call.timeout_ms *= 2) {
        int rc = rv_plugins_call(w->p, &call, out, err);
        if (w->n_asked >= forged[row].n_asked || call.timeout_ms > 10000)
            return rc;
        rv_err_free(*err);
        *err = NULL;
    }
}

START_TEST(a_forged_ask_gets_no_more_than_a_proper_one)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;
    struct world w;

    open_world(&w, true);
    ck_assert_int_eq(ask_a_forger(&w, _i, &out, &err), forged[_i].rc);
    ck_assert_msg(strstr(error_text(err), forged[_i].says) != NULL, "%s", error_text(err));
    ck_assert_int_eq(w.n_asked, forged[_i].n_asked);
    rv_err_free(err);
    ck_assert_int_eq(ask(&w, "ask_two", "{}", &out, NULL), 0); /* by another child */
    rv_buf_fini(&out);
    rv_plugins_free(w.p);
}
END_TEST

START_TEST(an_ask_after_the_reply_ends_the_child)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    struct world w;

    open_world(&w, true);
    ck_assert_int_eq(ask(&w, "forge_after_reply", "{}", &out, NULL), 0);
    rv_buf_clear(&out);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ask(&w, "ask_two", "{}", &out, NULL), 0);
        ck_assert_int_eq(w.n_asked, 2 * (i + 1));
        rv_buf_clear(&out);
    }
    rv_buf_fini(&out);
    rv_plugins_free(w.p);
}
END_TEST

Suite *ask_suite(void)
{
    Suite *s = suite_create("plugin ask");
    TCase *tc = tcase_create("ask");

    tcase_add_loop_test(tc, an_entry_asks_the_engine, 0, RV_COUNT(cases));
    tcase_add_loop_test(tc, an_entry_in_a_process_of_its_own_asks_the_same, 0, RV_COUNT(cases));
    tcase_add_loop_test(tc, the_engine_knows_who_asks_and_whether_it_may, 0, 2);
    tcase_add_loop_test(tc, a_failed_ask_says_why_as_json, 0, 2);
    tcase_add_loop_test(tc, the_answers_of_a_call_are_bounded, 0, 2);
    tcase_add_loop_test(tc, without_a_run_no_engine_answers, 0, 2);
    tcase_add_test(tc, a_cancelled_call_is_answered_nothing);
    tcase_add_loop_test(tc, a_forged_ask_gets_no_more_than_a_proper_one, 0, RV_COUNT(forged));
    tcase_add_test(tc, an_ask_after_the_reply_ends_the_child);
    suite_add_tcase(s, tc);
    return s;
}
