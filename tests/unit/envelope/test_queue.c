/* Several interrupts in one envelope: the pending one and those queued behind it. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <stdlib.h>
#include <string.h>

#define HOUR (3600 * SEC)

/* Pending int_1 of stage a; queued int_2 of b (a confirmation), int_3 of c (a review), int_4 of d (an outcome). */
#define AT "'created_at':'2025-11-24T16:00:00.123456Z'"
static const char waiting[] =
    "{'interrupt_pending':true,'interrupt':{'kind':'clarification','id':'int_1','question':'which?','data':{'n':1}," AT
    ",'expires_at':'2025-11-25T16:00:00.123456Z','stage':'a'},'metadata':{'k':1,'queued_interrupts':["
    "{'kind':'confirmation','id':'int_2','message':'may it?','data':null," AT
    ",'expires_at':'2025-11-24T17:00:00.123456Z','stage':'b'},"
    "{'kind':'agent_review','id':'int_3','message':'good?','data':{'reason':'style'}," AT ",'stage':'c'},"
    "{'kind':'agent_review','id':'int_4','message':'ran?','data':{'reason':'outcome_unknown'}," AT ",'stage':'d'}]}}";

static void expect_order(const rv_envelope *env, const char *want)
{
    rv_buf got = RV_BUF_INIT(100);
    const char *id = NULL;

    if (rv_envelope_has_interrupt(env))
        rv_buf_printf(&got, "%s:", rv_envelope_interrupt(env).id + strlen("int_"));
    for (size_t i = 0; i < rv_envelope_n_queued(env); i++)
        if (rv_json_get_text(rv_envelope_queued_at(env, i), "id", &id))
            rv_buf_puts(&got, id + strlen("int_"));
    ck_assert_str_eq(rv_buf_cstr(&got), want);
    rv_buf_fini(&got);
}

static void expect_round_trip(const rv_envelope *env)
{
    char *text = world_state(env);
    rv_envelope *again = world_load(text);
    char *back = world_state(again);

    ck_assert_str_eq(back, text);
    free(text);
    free(back);
    rv_envelope_free(again);
}

static const struct {
    const char *ids[3], *order;
} selections[] = {
    {{NULL}, "1:234"},
    {{"int_1"}, "1:234"},
    {{"int_2"}, "2:134"},
    {{"int_3"}, "3:214"},
    {{"int_4"}, "4:231"},
    {{"int_4", "int_1"}, "1:234"},
    {{"int_2", "int_3"}, "3:124"},
    {{"int_2", "int_3", "int_4"}, "4:123"},
};

START_TEST(the_chosen_one_changes_places_with_the_pending_one)
{
    rv_envelope *env = world_load(waiting);

    for (size_t i = 0; i < 3 && (i == 0 || selections[_i].ids[i]); i++) {
        const char *id = selections[_i].ids[i];
        OK(rv_envelope_select_interrupt(env, id ? rv_str_of(id) : (rv_str){NULL, 0}, NULL));
        expect_round_trip(env); /* stage and all */
    }
    expect_order(env, selections[_i].order);
    rv_envelope_free(env);
}
END_TEST

START_TEST(there_and_back_is_byte_for_byte_the_same)
{
    rv_envelope *env = world_load(waiting);

    OK(rv_envelope_select_interrupt(env, S("int_4"), NULL)); /* writes out the members that the text above left away */
    OK(rv_envelope_select_interrupt(env, S("int_1"), NULL));
    char *before = world_state(env);
    OK(rv_envelope_select_interrupt(env, S("int_4"), NULL));
    ck_assert_str_eq(rv_envelope_interrupt(env).stage, "d");
    OK(rv_envelope_select_interrupt(env, S("int_1"), NULL));
    char *after = world_state(env);
    ck_assert_str_eq(after, before);
    ck_assert_int_eq(rv_envelope_select_interrupt(env, S("int_9"), NULL), RV_E_NOT_FOUND);
    free(before);
    free(after);
    rv_envelope_free(env);
}
END_TEST

/* Proves 7.7/promote */
START_TEST(promoting_takes_the_first_that_can_be_read)
{
    rv_envelope *env = world_load(waiting);
    struct rv_response answer = {.text = S("x")};
    bool promoted = false;

    OK(rv_envelope_resolve(env, &answer, T0, NULL));
    OK(rv_envelope_promote_interrupt(env, T0 + 10 * HOUR, &promoted, NULL));
    ck_assert(promoted);
    expect_order(env, "2:34");
    ck_assert_str_eq(rv_envelope_interrupt(env).stage, "b");
    ck_assert_str_eq(rv_envelope_interrupt(env).message, "may it?");
    ck_assert_ptr_null(rv_envelope_interrupt(env).response);
    ck_assert_int_eq(rv_envelope_interrupt(env).created_at_us, T0 + 10 * HOUR);
    ck_assert_int_eq(rv_envelope_interrupt(env).expires_at_us, T0 + 11 * HOUR);
    expect_round_trip(env);
    OK(rv_envelope_promote_interrupt(env, T0, &promoted, NULL));
    ck_assert_int_eq(rv_envelope_interrupt(env).expires_at_us, 0); /* who never expires does not begin to */
    world_set_metadata(env, "queued_interrupts", "[7,{'kind':'x','id':'int_7'},{'id':'int_8'}]");
    OK(rv_envelope_promote_interrupt(env, T0, &promoted, NULL));
    ck_assert(!promoted);
    world_set_metadata(env, "queued_interrupts", "[7,{'kind':'timeout','id':'int_7'},{'id':'int_8'}]");
    OK(rv_envelope_promote_interrupt(env, T0, &promoted, NULL));
    ck_assert(promoted);
    ck_assert_str_eq(rv_envelope_interrupt(env).id, "int_7");
    rv_envelope_free(env);
}
END_TEST

static const struct {
    const char *id, *decision;
    int rc;
    const char *mentions;
} words[] = {
    {"int_3", "approve", 0, NULL},
    {"int_3", "reject", 0, NULL},
    {"int_3", "modify", 0, NULL},
    {"int_3", "happened", RV_E_INVALID, "approve, reject, modify"},
    {"int_3", "not_happened", RV_E_INVALID, "approve, reject, modify"},
    {"int_3", "fail", RV_E_INVALID, "approve, reject, modify"},
    {"int_4", "happened", 0, NULL},
    {"int_4", "not_happened", 0, NULL},
    {"int_4", "fail", 0, NULL},
    {"int_4", "approve", RV_E_INVALID, "happened, not_happened, fail"},
    {"int_4", "reject", RV_E_INVALID, "happened, not_happened, fail"},
    {"int_4", "", RV_E_INVALID, "happened, not_happened, fail"},
    {"int_4", "Happened", RV_E_INVALID, "did you mean \"happened\"?"},
};

/* Proves 3.6/outcome */
START_TEST(each_review_has_its_own_words)
{
    rv_envelope *env = world_load(waiting);
    const struct rv_response r = {.decision = rv_str_of(words[_i].decision), .interrupt_id = rv_str_of(words[_i].id)};
    rv_err *err = NULL;

    for (int chosen = 0; chosen < 2; chosen++) { /* queued, and pending */
        ck_assert_int_eq(rv_envelope_check_response(env, &r, T0 + 9999 * HOUR, &err), words[_i].rc);
        char *text = words[_i].rc ? rv_kit_err_take(err) : NULL;
        if (words[_i].mentions)
            ck_assert_msg(strstr(text, words[_i].mentions) != NULL, "%s", text);
        free(text);
        err = NULL;
        OK(rv_envelope_select_interrupt(env, r.interrupt_id, NULL));
    }
    rv_envelope_free(env);
}
END_TEST

START_TEST(an_answered_one_is_told_from_one_that_never_was)
{
    rv_envelope *env = world_load(waiting);
    struct rv_response r = {.text = S("x"), .interrupt_id = S("int_1")};
    rv_err *err = NULL;

    OK(rv_envelope_check_response(env, &r, T0, NULL));
    OK(rv_envelope_resolve(env, &r, T0, NULL));
    ck_assert_int_eq(rv_envelope_check_response(env, &r, T0, &err), RV_E_STATE);
    char *text = rv_kit_err_take(err);
    ck_assert_msg(strstr(text, "\"int_1\" was answered already") != NULL, "%s", text);
    free(text);
    err = NULL;
    r.interrupt_id = S("int_9");
    ck_assert_int_eq(rv_envelope_check_response(env, &r, T0, &err), RV_E_NOT_FOUND);
    rv_err_free(err);
    rv_envelope_free(env);
}
END_TEST

TCase *queue_case(void)
{
    TCase *tc = tcase_create("queue");

    tcase_add_loop_test(tc, the_chosen_one_changes_places_with_the_pending_one, 0, RV_COUNT(selections));
    tcase_add_test(tc, there_and_back_is_byte_for_byte_the_same);
    tcase_add_test(tc, promoting_takes_the_first_that_can_be_read);
    tcase_add_loop_test(tc, each_review_has_its_own_words, 0, RV_COUNT(words));
    tcase_add_test(tc, an_answered_one_is_told_from_one_that_never_was);
    return tc;
}
