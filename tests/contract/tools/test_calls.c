/* Calls that end by themselves: exactly once, with an answer or a failure that says why. */
#include "tests/contract/tools/world.h"

#define N_AT_ONCE 24

/* Proves 6.3/execute */
START_TEST(a_call_ends_once_with_its_answer)
{
    struct world w;
    struct seen seen;
    json_object *answer = NULL;

    world_open(&w, _i);
    must_call(&w, &seen, w.impl->good, w.impl->good_args);
    await(&w, &seen);
    ck_assert(!seen.failed);
    ck_assert_int_eq(rv_json_parse(rv_str_of(seen.text), NULL, &answer, NULL), 0);
    json_object *data = rv_json_get_obj(answer, "data"), *said = data ? data : answer;
    ck_assert(json_object_object_get_ex(said, "ok", NULL) || json_object_object_get_ex(said, "agent", NULL));
    json_object_put(answer);
    world_turn(&w);
    ck_assert_int_eq(seen.n_done, 1);
    world_close(&w);
}
END_TEST

/* Proves 6.3/execute */
START_TEST(a_failure_has_a_type_and_says_why)
{
    struct world w;
    struct seen seen;

    world_open(&w, _i);
    must_call(&w, &seen, w.impl->failing, w.impl->failing_args);
    await(&w, &seen);
    ck_assert(seen.failed);
    ck_assert_str_eq(seen.error_type, w.impl->error_type);
    ck_assert(seen.text[0]);
    world_close(&w);
}
END_TEST

/* Proves 6.3/threads: Many calls of one source may be under way at once */
START_TEST(many_calls_at_once_end_once_each)
{
    static struct seen seen[N_AT_ONCE];
    struct world w;

    world_open(&w, _i);
    for (size_t i = 0; i < N_AT_ONCE; i++) {
        bool fails = i % 3 == 0;
        must_call(&w, &seen[i], fails ? w.impl->failing : w.impl->good,
                  fails ? w.impl->failing_args : w.impl->good_args);
    }
    for (size_t i = 0; i < N_AT_ONCE; i++)
        await(&w, &seen[i]);
    for (size_t i = 0; i < N_AT_ONCE; i++) {
        ck_assert_int_eq(seen[i].n_done, 1);
        ck_assert_int_eq(seen[i].failed, i % 3 == 0);
    }
    ck_assert_ptr_null(w.s->pending);
    world_close(&w);
}
END_TEST

/* Proves 6.3/execute: A call of an unknown tool is an error that names it; any other call ends exactly once, with
 * the answer or failure of its source, whichever kind of source that is */
START_TEST(an_unknown_tool_is_an_error_and_harms_no_other_call)
{
    struct world w;
    struct seen unknown, seen;
    rv_err *err = NULL;

    world_open(&w, _i);
    ck_assert_int_eq(call_tool(&w, &unknown, "nothing", RV_STR_LIT("{}"), &err), RV_E_NOT_FOUND);
    ck_assert_msg(strstr(rv_err_text(err), "nothing"), "%s: %s", w.impl->name, rv_err_text(err));
    rv_err_free(err);
    ck_assert_ptr_null(unknown.call.source);
    must_call(&w, &seen, w.impl->good, w.impl->good_args);
    await(&w, &seen);
    ck_assert_int_eq(unknown.n_done, 0);
    world_close(&w);
}
END_TEST

/* It begins and ends once, or does not begin. */
static void survives(struct world *w, rv_str args)
{
    struct seen seen;
    int rc = call_tool(w, &seen, w->impl->good, args, NULL);

    if (rc == 0)
        await(w, &seen);
    ck_assert_int_eq(seen.n_done, rc == 0);
    ck_assert_ptr_null(seen.call.source);
}

START_TEST(arguments_of_any_size_and_kind_are_survived)
{
    static const char *const odd[] = {"", "{", "null", "[]", "\"x\"", "{\"agent_name\": 7}", "{}{}"};
    size_t size = RV_JSON_MAX_BYTES;
    char *large = malloc(size + 1);
    struct world w;
    struct seen seen;

    ck_assert_ptr_nonnull(large);
    world_open(&w, _i);
    for (size_t i = 0; i < RV_COUNT(odd); i++)
        survives(&w, rv_str_of(odd[i]));
    memset(large, '[', size + 1); /* deeper than any limit */
    survives(&w, (rv_str){large, size});
    memset(large, ' ', size);
    memcpy(large, w.impl->good_args, strlen(w.impl->good_args));
    survives(&w, (rv_str){large, size});
    ck_assert_int_eq(call_tool(&w, &seen, w.impl->good, (rv_str){large, size + 1}, NULL), RV_E_LIMIT);
    ck_assert_int_eq(seen.n_done, 0);
    world_close(&w);
    free(large);
}
END_TEST

Suite *calls_suite(void)
{
    Suite *s = suite_create("calls");
    TCase *tc = tcase_create("calls");

    ADD(tc, a_call_ends_once_with_its_answer);
    ADD(tc, a_failure_has_a_type_and_says_why);
    ADD(tc, many_calls_at_once_end_once_each);
    ADD(tc, an_unknown_tool_is_an_error_and_harms_no_other_call);
    ADD(tc, arguments_of_any_size_and_kind_are_survived);
    suite_add_tcase(s, tc);
    return s;
}
