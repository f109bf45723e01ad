/* Calls of providers: what they hand out while they answer, in the engine's process and in another one. */
#include <string.h>

#include "tests/unit/plugin/suites.h"

#define LONG_MS 10000 /* no longer limit is tried */
#define N_HOMES 2     /* in the engine's process, and in one of its own */

static rv_plugins *models_at(int home)
{
    rv_plugins *p = new_set(NULL);

    if (home)
        must_isolate(p, "models");
    else
        must_load(p, "models");
    return p;
}

/* Whoever takes the pieces. */
struct listener {
    rv_buf heard; /* each with a bar after it */
    int n, enough_at, cancel_at;
    atomic_bool cancelled;
};

/* For as long as it takes a flood to fill a socket. */
static void dawdle(void)
{
    struct rv_clock clock = rv_clock_system();
    int64_t until_us = clock.now_us(clock.self) + 50000;

    while (clock.now_us(clock.self) < until_us)
        continue;
}

static int take_piece(void *self, rv_str json)
{
    struct listener *l = self;

    rv_buf_add_str(&l->heard, json);
    rv_buf_putc(&l->heard, '|');
    l->n++;
    if (l->n == l->cancel_at) {
        dawdle(); /* what comes meanwhile is there, and must not be handed on */
        atomic_store(&l->cancelled, true);
    }
    return l->n == l->enough_at;
}

static int ask(rv_plugins *p, const char *name, int64_t timeout_ms, struct listener *l, rv_buf *out, rv_err **err)
{
    const struct rv_plugin_call call = {.kind = RV_NAME_PROVIDER,
                                        .name = name,
                                        .args = RV_STR_LIT("{\"prompt\": \"Hi\"}"),
                                        .timeout_ms = timeout_ms,
                                        .cancelled = &l->cancelled,
                                        .on_emit = take_piece,
                                        .emit_self = l};

    l->heard = RV_BUF_INIT((size_t)1 << 20);
    return rv_plugins_call(p, &call, out, err);
}

#define BEFORE "{\"text\": \"before\"}|"
#define HALF   "{\"text\": \"half\"}|"

static const struct {
    const char *name;
    int rc;
    const char *says, *heard; /* the whole answer, or a part of the error */
} answers[] = {
    {"models.good", 0, "{\"text\": \"Hello \\u00e4\", \"usage\": {\"input_tokens\": 3, \"output_tokens\": 2}}",
     "{\"thinking\": \"a greeting\"}| {\"text\": \"Hel\"} |{\"text\": \"lo \\u00e4\"}|"},
    {"models.says_nothing_first", 0, "{\"text\": \"done\"}", "{\"text\": \"x\"}|"},
    {"models.args", 0, "{\"prompt\": \"Hi\"}", ""},
    {"models.garbage", RV_E_PLUGIN, "handed out a piece that is not JSON", BEFORE},
    {"models.not_utf8", RV_E_PLUGIN, "handed out a piece that is not JSON", BEFORE},
    {"models.list", RV_E_PLUGIN, "handed out a piece that is not an object but array", BEFORE},
    {"models.bare", RV_E_PLUGIN, "handed out a piece that is not an object but string", BEFORE},
    {"models.nothing", RV_E_PLUGIN, "has not \"text\" or \"thinking\" alone", BEFORE},
    {"models.both", RV_E_PLUGIN, "has not \"text\" or \"thinking\" alone", BEFORE},
    {"models.other_member", RV_E_PLUGIN, "has not \"text\" or \"thinking\" alone", BEFORE},
    {"models.number", RV_E_PLUGIN, "\"text\" that is not a string but integer", BEFORE},
    {"models.null_text", RV_E_PLUGIN, "\"thinking\" that is not a string but null", BEFORE},
    {"models.deep", RV_E_PLUGIN, "handed out a piece that is not JSON", BEFORE},
    {"models.null_piece", RV_E_PLUGIN, "a piece that is a null pointer", BEFORE},
    {"models.large", RV_E_PLUGIN, "pieces of more than 8388608 bytes", BEFORE},
    {"models.after_reply", RV_E_PLUGIN, "a piece after its answer", ""},
    {"models.after_failure", RV_E_PLUGIN, "a piece after its answer", ""},
    {"models.bad_piece_then_failure", RV_E_PLUGIN, "not an object but integer", BEFORE},
    {"models.silent", RV_E_PLUGIN, "without an answer", HALF},
    {"models.two_replies", RV_E_PLUGIN, "answered 2 times", ""},
    {"models.fails", RV_E_TOOL, "slow down", HALF},
    {"good", RV_E_NOT_FOUND, "no provider \"good\"", ""},
    {"models.goood", RV_E_NOT_FOUND, "did you mean \"models.good\"?", ""},
};

START_TEST(good_pieces_are_handed_on_and_the_first_bad_one_fails_the_call)
{
    int row = _i / N_HOMES;
    rv_plugins *p = models_at(_i % N_HOMES);
    rv_buf out = RV_BUF_INIT((size_t)16 << 20);
    struct listener l = {.n = 0};
    rv_err *err = NULL;

    ck_assert_int_eq(ask(p, answers[row].name, 0, &l, &out, &err), answers[row].rc);
    ck_assert_str_eq(rv_buf_cstr(&l.heard), answers[row].heard);
    if (answers[row].rc == 0) {
        ck_assert_str_eq(rv_buf_cstr(&out), answers[row].says);
    } else {
        ck_assert_uint_eq(out.len, 0);
        ck_assert_msg(strstr(error_text(err), answers[row].says) != NULL, "%s", error_text(err));
    }
    rv_err_free(err);
    rv_buf_fini(&l.heard);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_call_without_a_listener_is_answered_all_the_same)
{
    rv_plugins *p = models_at(_i);
    rv_buf out = RV_BUF_INIT(4096);

    ck_assert_int_eq(call_entry(p, RV_NAME_PROVIDER, "models.says_nothing_first", "{}", &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"text\": \"done\"}");
    ck_assert_int_eq(call_entry(p, RV_NAME_PROVIDER, "models.garbage", "{}", &out, NULL), RV_E_PLUGIN);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_listener_that_has_enough_hears_no_more_and_the_answer_counts)
{
    rv_plugins *p = models_at(_i);
    rv_buf out = RV_BUF_INIT(4096);
    struct listener l = {.enough_at = 3};

    ck_assert_int_eq(ask(p, "models.counts", 0, &l, &out, NULL), 0);
    ck_assert_int_eq(l.n, 3);
    if (_i == 0)
        ck_assert_str_eq(rv_buf_cstr(&out), "{\"text\": \"2\"}"); /* told at once; elsewhere a little later */
    rv_buf_fini(&l.heard);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_provider_is_told_that_nobody_wants_more)
{
    rv_plugins *p = models_at(_i);
    rv_buf out = RV_BUF_INIT(4096);
    struct listener l = {.enough_at = 1};

    ck_assert_int_eq(ask(p, "models.waits", 0, &l, &out, NULL), 0); /* it waits for a cancellation, long */
    ck_assert_int_eq(l.n, 1);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"text\": \"refused\"}");
    rv_buf_fini(&l.heard);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(nothing_is_handed_on_once_a_call_was_cancelled)
{
    rv_plugins *p = models_at(_i);
    rv_buf out = RV_BUF_INIT(4096);
    struct listener l = {.cancel_at = 1};

    ck_assert_int_eq(ask(p, "models.waits", 0, &l, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&l.heard), "{\"text\": \"first\"}|");
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"text\": \"refused\"}");
    rv_buf_fini(&l.heard);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_flood_ends_at_the_limit_and_fails_the_call)
{
    rv_plugins *p = models_at(_i);
    rv_buf out = RV_BUF_INIT(4096);
    struct listener l = {.n = 0};
    rv_err *err = NULL;

    ck_assert_int_eq(ask(p, "models.flood", 0, &l, &out, &err), RV_E_PLUGIN);
    ck_assert_msg(strstr(error_text(err), "pieces of more than 8388608 bytes") != NULL, "%s", error_text(err));
    ck_assert_int_eq(l.n, (8 << 20) / 1012);
    rv_err_free(err);
    rv_buf_fini(&l.heard);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_tool_has_nobody_to_hand_pieces_to)
{
    rv_plugins *p = models_at(_i);
    rv_buf out = RV_BUF_INIT(4096);

    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "tool", "{}", &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"taken\": false}");
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

/* What costs a process costs it in the middle of an answer too: what was heard before stays heard. */
static const struct {
    const char *name;
    bool is_late;
    int cancel_at, rc;
    const char *says, *heard;
} worst[] = {
    {"models.dies", false, 0, RV_E_PLUGIN, "died of signal 6 (SIGABRT) in this call", HALF},
    {"models.hangs", true, 0, RV_E_TIMEOUT, "no answer in time", HALF},
    {"models.hangs", false, 1, RV_E_CANCELLED, "it was cancelled", HALF},
    {"models.waits", true, 0, RV_E_TIMEOUT, "no answer in time", "{\"text\": \"first\"}|"},
    {"models.deaf", true, 0, RV_E_TIMEOUT, "no answer in time", NULL},
    {"models.deaf", false, 5, RV_E_CANCELLED, "it was cancelled", NULL},
    {"models.forges", false, 0, RV_E_PLUGIN, "pieces of more than 8388608 bytes", NULL},
};

/* One that is late has 50 ms, and twice as much where the machine was too slow for it to say anything by then. */
static int ask_the_worst(rv_plugins *p, int row, struct listener *l, rv_buf *out, rv_err **err)
{
    for (int64_t ms = 50;; ms *= 2) {
        int rc = ask(p, worst[row].name, worst[row].is_late ? ms : 0, l, out, err);
        if (!worst[row].is_late || l->n > 0 || ms > LONG_MS)
            return rc;
        rv_err_free(*err);
        *err = NULL;
        rv_buf_fini(&l->heard);
    }
}

START_TEST(a_provider_that_ends_badly_in_its_own_process_costs_one_answer)
{
    rv_plugins *p = models_at(1);
    rv_buf out = RV_BUF_INIT(4096);
    struct listener l = {.cancel_at = worst[_i].cancel_at};
    rv_err *err = NULL;

    ck_assert_int_eq(ask_the_worst(p, _i, &l, &out, &err), worst[_i].rc);
    ck_assert_msg(strstr(error_text(err), worst[_i].says) != NULL, "%s", error_text(err));
    if (worst[_i].heard)
        ck_assert_str_eq(rv_buf_cstr(&l.heard), worst[_i].heard);
    else if (worst[_i].cancel_at)
        ck_assert_int_eq(l.n, worst[_i].cancel_at); /* not one more */
    else
        ck_assert_int_gt(l.n, 0);
    ck_assert_uint_eq(out.len, 0);
    rv_err_free(err);
    rv_buf_fini(&l.heard);

    l.cancel_at = 0;
    atomic_store(&l.cancelled, false);
    ck_assert_int_eq(ask(p, "models.good", 0, &l, &out, NULL), 0);
    rv_buf_fini(&l.heard);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(providers_are_listed_and_known_by_capability_and_name)
{
    rv_plugins *p = models_at(_i);
    struct rv_known_names known = rv_plugins_names(p);
    struct rv_catalog catalog = rv_plugins_catalog(p);
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);
    rv_jw w = rv_jw_on(&text);
    const struct rv_entry_info *info;
    const char *const *names;
    json_object *all = NULL, *list;
    size_t n = 0;

    names = known.list(known.self, RV_NAME_PROVIDER, &n);
    ck_assert_uint_eq(n, 32);
    ck_assert_str_eq(names[0], "models.after_failure");
    info = catalog.entry(catalog.self, RV_NAME_PROVIDER, RV_STR_LIT("models.good"));
    ck_assert_ptr_nonnull(info);
    ck_assert_int_eq(info->timeout_ms, 700);
    ck_assert_ptr_null(catalog.entry(catalog.self, RV_NAME_PROVIDER, RV_STR_LIT("good")));

    rv_plugins_write_json(p, &w);
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&text), NULL, &all, NULL), 0);
    list = rv_json_get_arr(json_object_array_get_idx(all, 0), "providers");
    ck_assert_uint_eq(json_object_array_length(list), 32);
    ck_assert(
        rv_str_is(rv_json_str(json_object_object_get(json_object_array_get_idx(list, 0), "name")), "models.good"));
    json_object_put(all);
    rv_buf_fini(&text);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_capability_built_with_the_first_header_still_works)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);
    rv_err *err = NULL;

    if (_i)
        must_isolate(p, "oldest");
    else
        must_load(p, "oldest");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "answer", "{}", &out, &err), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"ok\": true}");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "refuse", "{}", &out, &err), RV_E_TOOL);
    ck_assert_str_eq(rv_plugin_error_type(err), "NotFoundError");
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

Suite *provider_suite(void)
{
    Suite *s = suite_create("plugin provider");
    TCase *tc = tcase_create("provider");

    tcase_add_loop_test(tc, good_pieces_are_handed_on_and_the_first_bad_one_fails_the_call, 0,
                        N_HOMES * (int)RV_COUNT(answers));
    tcase_add_loop_test(tc, a_call_without_a_listener_is_answered_all_the_same, 0, N_HOMES);
    tcase_add_loop_test(tc, a_listener_that_has_enough_hears_no_more_and_the_answer_counts, 0, N_HOMES);
    tcase_add_loop_test(tc, a_provider_is_told_that_nobody_wants_more, 0, N_HOMES);
    tcase_add_loop_test(tc, nothing_is_handed_on_once_a_call_was_cancelled, 0, N_HOMES);
    tcase_add_loop_test(tc, a_flood_ends_at_the_limit_and_fails_the_call, 0, N_HOMES);
    tcase_add_loop_test(tc, a_tool_has_nobody_to_hand_pieces_to, 0, N_HOMES);
    tcase_add_loop_test(tc, a_provider_that_ends_badly_in_its_own_process_costs_one_answer, 0, RV_COUNT(worst));
    tcase_add_loop_test(tc, providers_are_listed_and_known_by_capability_and_name, 0, N_HOMES);
    tcase_add_loop_test(tc, a_capability_built_with_the_first_header_still_works, 0, N_HOMES);
    suite_add_tcase(s, tc);
    return s;
}
