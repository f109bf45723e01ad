/* Rule 3.6: interrupts; W13, W44. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <string.h>

#define MIN  (60 * SEC)
#define HOUR (60 * MIN)

static const struct {
    enum rv_interrupt_kind kind;
    int64_t ttl_us;
    bool expires, needs_response;
} rules[] = {
    {RV_INTERRUPT_CLARIFICATION, 24 * HOUR, true, true},
    {RV_INTERRUPT_CONFIRMATION, HOUR, true, true},
    {RV_INTERRUPT_AGENT_REVIEW, 30 * MIN, true, true},
    {RV_INTERRUPT_CHECKPOINT, 0, false, false},
    {RV_INTERRUPT_RESOURCE_EXHAUSTED, 5 * MIN, true, false},
    {RV_INTERRUPT_TIMEOUT, 5 * MIN, true, false},
    {RV_INTERRUPT_SYSTEM_ERROR, HOUR, true, false},
    {(enum rv_interrupt_kind)RV_UNSET, HOUR, true, true}, /* unknown kind */
};

/* Proves 3.6.ttl.clarification: Kind clarification: 24 h, expires, response required
 * Proves 3.6.ttl.confirmation: Kind confirmation: 1 h, expires, response required
 * Proves 3.6.ttl.agent_review: Kind agent_review: 30 min, expires, response required
 * Proves 3.6.ttl.checkpoint: Kind checkpoint: never expires, no response required
 * Proves 3.6.ttl.resource_exhausted: Kind resource_exhausted: 5 min, expires, no response required
 * Proves 3.6.ttl.timeout: Kind timeout: 5 min, expires, no response required
 * Proves 3.6.ttl.system_error: Kind system_error: 1 h, expires, no response required
 * Proves 3.6.ttl.unknown: Kind unknown: 1 h, expires, response required */
START_TEST(rule_3_6_each_kind_has_its_time_to_live)
{
    struct rv_interrupt_rule rule = rv_interrupt_rule(rules[_i].kind);

    ck_assert_int_eq(rule.ttl_us, rules[_i].ttl_us);
    ck_assert_int_eq(rule.expires, rules[_i].expires);
    ck_assert_int_eq(rule.needs_response, rules[_i].needs_response);
}
END_TEST

static struct rv_interrupt_spec spec_of(enum rv_interrupt_kind kind)
{
    return (struct rv_interrupt_spec){.kind = kind, .id = S("int_1"), .question = S("why?"), .ttl_us = -1};
}

/* Proves 3.6.object: Interrupt object: kind, id, question, message, data, created_at, expires_at
 * Proves 3.6.set_interrupt: Pending becomes true, the object is new, expiry is now plus the time to live */
START_TEST(rule_3_6_raising_stores_an_object_and_makes_it_pending)
{
    rv_envelope *env = world_fresh();
    json_object *data = rv_kit_json("{'a':1}");
    struct rv_interrupt_spec spec = {
        .kind = RV_INTERRUPT_CONFIRMATION, .id = S("int_1"), .message = S("sure?"), .data = data, .ttl_us = 90 * SEC};
    struct rv_interrupt it;

    ck_assert(!rv_envelope_interrupt(env).exists);
    OK(rv_envelope_raise(env, &spec, T0, NULL));
    json_object_put(data);
    it = rv_envelope_interrupt(env);
    ck_assert(rv_envelope_has_interrupt(env) && it.exists);
    ck_assert_int_eq(it.kind, RV_INTERRUPT_CONFIRMATION);
    ck_assert_ptr_null(it.question);
    ck_assert_ptr_null(it.response);
    world_expect(env, "interrupt_pending", "true");
    world_expect(env, "interrupt",
                 "{'kind':'confirmation','id':'int_1','question':null,'message':'sure?','data':{'a':1},"
                 "'created_at':'2025-11-24T16:00:00.123456Z','expires_at':'2025-11-24T16:01:30.123456Z'}");
    rv_envelope_free(env);
}
END_TEST

static const struct {
    enum rv_interrupt_kind kind;
    int64_t ttl_us, want; /* expires_at - created_at; 0: never */
} lives[] = {
    {RV_INTERRUPT_CLARIFICATION, -1, 24 * HOUR},
    {RV_INTERRUPT_CLARIFICATION, 0, 0},
    {RV_INTERRUPT_CLARIFICATION, 5, 5},
    {RV_INTERRUPT_CHECKPOINT, -1, 0},
    {RV_INTERRUPT_CHECKPOINT, 7, 7},
    {RV_INTERRUPT_TIMEOUT, -1, 5 * MIN},
};

/* Proves 3.6.set_interrupt */
START_TEST(rule_3_6_expiry_is_now_plus_the_time_to_live)
{
    rv_envelope *env = world_fresh();
    struct rv_interrupt_spec spec = spec_of(lives[_i].kind);
    int64_t expires_at_us;

    spec.ttl_us = lives[_i].ttl_us;
    OK(rv_envelope_raise(env, &spec, T0, NULL));
    expires_at_us = rv_envelope_interrupt(env).expires_at_us;
    ck_assert_int_eq(expires_at_us, lives[_i].want ? T0 + lives[_i].want : 0);
    rv_envelope_free(env);
}
END_TEST

/* Proves W13 */
START_TEST(w13_raising_over_a_pending_one_needs_replace)
{
    rv_envelope *env = world_fresh();
    struct rv_interrupt_spec spec = spec_of(RV_INTERRUPT_CLARIFICATION);
    struct rv_response answer = {.text = S("x")};

    OK(rv_envelope_raise(env, &spec, T0, NULL));
    spec.id = S("int_2");
    ck_assert_int_eq(rv_envelope_raise(env, &spec, T0, NULL), RV_E_STATE);
    ck_assert_str_eq(rv_envelope_interrupt(env).id, "int_1");
    spec.replace = true;
    OK(rv_envelope_raise(env, &spec, T0, NULL));
    ck_assert_str_eq(rv_envelope_interrupt(env).id, "int_2");
    OK(rv_envelope_resolve(env, &answer, T0, NULL));
    spec.replace = false; /* a resolved one is replaced freely */
    spec.id = S("int_3");
    OK(rv_envelope_raise(env, &spec, T0, NULL));
    ck_assert_ptr_null(rv_envelope_interrupt(env).response);
    rv_envelope_free(env);
}
END_TEST

START_TEST(an_interrupt_needs_a_kind_an_id_and_clean_text)
{
    rv_envelope *env = world_fresh();
    struct rv_interrupt_spec spec = spec_of((enum rv_interrupt_kind)RV_UNSET);

    ck_assert_int_eq(rv_envelope_raise(env, &spec, T0, NULL), RV_E_INVALID);
    spec = spec_of(RV_INTERRUPT_TIMEOUT);
    spec.id = S("");
    ck_assert_int_eq(rv_envelope_raise(env, &spec, T0, NULL), RV_E_INVALID);
    spec = spec_of(RV_INTERRUPT_TIMEOUT);
    spec.message = S("\xff");
    ck_assert_int_eq(rv_envelope_raise(env, &spec, T0, NULL), RV_E_INVALID);
    spec = spec_of(RV_INTERRUPT_TIMEOUT);
    spec.data = rv_kit_json("[]");
    ck_assert_int_eq(rv_envelope_raise(env, &spec, T0, NULL), RV_E_INVALID);
    json_object_put(spec.data);
    ck_assert(!rv_envelope_has_interrupt(env) && !rv_envelope_interrupt(env).exists);
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.6.response: Response: only the parts that were given, and received_at
 * Proves 3.6.resolve_interrupt: The answer is stamped and stored; pending becomes false either way
 * Proves 3.6.get_interrupt_kind: Kind of the stored object, resolved or not */
START_TEST(rule_3_6_an_answer_is_stamped_and_the_object_stays)
{
    rv_envelope *env = world_fresh();
    struct rv_interrupt_spec spec = spec_of(RV_INTERRUPT_AGENT_REVIEW);
    json_object *data = rv_kit_json("{'n':1.0}");
    struct rv_response answer = {
        .text = S("t\0t"), .has_approved = true, .approved = false, .decision = S("modify"), .data = data};

    OK(rv_envelope_raise(env, &spec, T0, NULL));
    OK(rv_envelope_resolve(env, &answer, T0 + SEC, NULL));
    json_object_put(data);
    ck_assert(!rv_envelope_has_interrupt(env));
    ck_assert(rv_envelope_interrupt(env).exists);
    ck_assert_int_eq(rv_envelope_interrupt(env).kind, RV_INTERRUPT_AGENT_REVIEW); /* even when resolved */
    world_expect(env, "interrupt_pending", "false");
    world_expect_in(rv_envelope_interrupt(env).response, "received_at", "'2025-11-24T16:00:01.123456Z'");
    world_expect_in(rv_envelope_interrupt(env).response, "text", "'t\\u0000t'");
    world_expect_in(rv_envelope_interrupt(env).response, "approved", "false");
    world_expect_in(rv_envelope_interrupt(env).response, "decision", "'modify'");
    world_expect_in(rv_envelope_interrupt(env).response, "data", "{'n':1.0}");
    rv_envelope_free(env);
}
END_TEST

START_TEST(an_answer_that_is_not_utf_8_is_refused)
{
    rv_envelope *env = world_fresh();
    struct rv_interrupt_spec spec = spec_of(RV_INTERRUPT_CLARIFICATION);
    struct rv_response answer = {.text = S("\xff")};

    OK(rv_envelope_raise(env, &spec, T0, NULL));
    ck_assert_int_eq(rv_envelope_resolve(env, &answer, T0, NULL), RV_E_INVALID);
    ck_assert(rv_envelope_has_interrupt(env));
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.6.response */
START_TEST(rule_3_6_parts_that_were_not_given_are_absent)
{
    rv_envelope *env = world_fresh();
    struct rv_interrupt_spec spec = spec_of(RV_INTERRUPT_CHECKPOINT);
    struct rv_response nothing = {0};

    OK(rv_envelope_raise(env, &spec, T0, NULL));
    OK(rv_envelope_resolve(env, &nothing, T0, NULL));
    ck_assert_int_eq(json_object_object_length(rv_envelope_interrupt(env).response), 1);
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.6.has_pending_interrupt: Pending and an object exists
 * Proves 3.6.resolve_interrupt */
START_TEST(rule_3_6_resolving_without_an_object_only_ends_the_waiting)
{
    rv_envelope *env = world_load("{'interrupt_pending':true}");
    struct rv_response nothing = {0};

    ck_assert(!rv_envelope_has_interrupt(env));
    OK(rv_envelope_resolve(env, &nothing, T0, NULL));
    world_expect(env, "interrupt_pending", "false");
    world_expect(env, "interrupt", "null");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.6.clear_interrupt: Pending becomes false and the object goes */
START_TEST(rule_3_6_clearing_drops_the_object)
{
    rv_envelope *env = world_fresh();
    struct rv_interrupt_spec spec = spec_of(RV_INTERRUPT_CHECKPOINT);

    OK(rv_envelope_raise(env, &spec, T0, NULL));
    rv_envelope_clear_interrupt(env);
    ck_assert(!rv_envelope_has_interrupt(env) && !rv_envelope_interrupt(env).exists);
    ck_assert_int_eq((int)rv_envelope_interrupt(env).kind, RV_UNSET);
    world_expect(env, "interrupt", "null");
    rv_envelope_free(env);
}
END_TEST

static const struct {
    enum rv_interrupt_kind kind;
    struct rv_response response;
    int rc;
    const char *mentions;
} answers[] = {
    {RV_INTERRUPT_CLARIFICATION, {.text = RV_STR_LIT("x")}, 0, NULL},
    {RV_INTERRUPT_CLARIFICATION, {.has_approved = true}, RV_E_INVALID, "text"},
    {RV_INTERRUPT_CONFIRMATION, {.has_approved = true, .approved = true}, 0, NULL},
    {RV_INTERRUPT_CONFIRMATION, {.has_approved = true, .approved = false}, 0, NULL},
    {RV_INTERRUPT_CONFIRMATION, {.text = RV_STR_LIT("yes")}, RV_E_INVALID, "approved"}, /* W44 */
    {RV_INTERRUPT_AGENT_REVIEW, {.decision = RV_STR_LIT("approve")}, 0, NULL},
    {RV_INTERRUPT_AGENT_REVIEW, {.decision = RV_STR_LIT("reject")}, 0, NULL},
    {RV_INTERRUPT_AGENT_REVIEW, {.decision = RV_STR_LIT("modify")}, 0, NULL},
    {RV_INTERRUPT_AGENT_REVIEW, {.decision = RV_STR_LIT("aprove")}, RV_E_INVALID, "aprove"},
    {RV_INTERRUPT_AGENT_REVIEW, {.text = RV_STR_LIT("fine")}, RV_E_INVALID, "decision"},
    {RV_INTERRUPT_CHECKPOINT, {.has_approved = false}, 0, NULL},
    {RV_INTERRUPT_CHECKPOINT, {.decision = RV_STR_LIT("go")}, RV_E_INVALID, "go"},
    {RV_INTERRUPT_RESOURCE_EXHAUSTED, {.has_approved = false}, 0, NULL},
    {RV_INTERRUPT_TIMEOUT, {.has_approved = false}, 0, NULL},
    {RV_INTERRUPT_SYSTEM_ERROR, {.has_approved = false}, 0, NULL},
};

/* Proves W44: An answer without the field its kind needs is refused and the interrupt stays pending */
START_TEST(w44_an_answer_must_have_the_field_that_its_kind_needs)
{
    rv_envelope *env = world_fresh();
    struct rv_interrupt_spec spec = spec_of(answers[_i].kind);
    rv_err *err = NULL;

    OK(rv_envelope_raise(env, &spec, T0, NULL));
    ck_assert_int_eq(rv_envelope_check_response(env, &answers[_i].response, T0, &err), answers[_i].rc);
    if (answers[_i].mentions)
        ck_assert_ptr_nonnull(strstr(rv_err_text(err), answers[_i].mentions));
    ck_assert(rv_envelope_has_interrupt(env));
    rv_err_free(err);
    rv_envelope_free(env);
}
END_TEST

/* Proves W13: An expired interrupt takes no answer; raising over a pending one needs `replace` */
START_TEST(w13_an_expired_interrupt_takes_no_answer)
{
    rv_envelope *env = world_fresh();
    struct rv_interrupt_spec spec = spec_of(RV_INTERRUPT_CLARIFICATION);
    struct rv_response answer = {.text = S("x")};

    ck_assert_int_eq(rv_envelope_check_response(env, &answer, T0, NULL), RV_E_STATE);
    spec.ttl_us = 10 * SEC;
    OK(rv_envelope_raise(env, &spec, T0, NULL));
    OK(rv_envelope_check_response(env, &answer, T0 + 10 * SEC - 1, NULL));
    ck_assert_int_eq(rv_envelope_check_response(env, &answer, T0 + 10 * SEC, NULL), RV_E_TIMEOUT);
    ck_assert(rv_envelope_has_interrupt(env)); /* and stays unresolved */
    ck_assert_ptr_null(rv_envelope_interrupt(env).response);
    rv_envelope_free(env);
}
END_TEST

TCase *interrupt_case(void)
{
    TCase *tc = tcase_create("interrupt");

    tcase_add_loop_test(tc, rule_3_6_each_kind_has_its_time_to_live, 0, RV_COUNT(rules));
    tcase_add_test(tc, rule_3_6_raising_stores_an_object_and_makes_it_pending);
    tcase_add_loop_test(tc, rule_3_6_expiry_is_now_plus_the_time_to_live, 0, RV_COUNT(lives));
    tcase_add_test(tc, w13_raising_over_a_pending_one_needs_replace);
    tcase_add_test(tc, an_interrupt_needs_a_kind_an_id_and_clean_text);
    tcase_add_test(tc, rule_3_6_an_answer_is_stamped_and_the_object_stays);
    tcase_add_test(tc, an_answer_that_is_not_utf_8_is_refused);
    tcase_add_test(tc, rule_3_6_parts_that_were_not_given_are_absent);
    tcase_add_test(tc, rule_3_6_resolving_without_an_object_only_ends_the_waiting);
    tcase_add_test(tc, rule_3_6_clearing_drops_the_object);
    tcase_add_loop_test(tc, w44_an_answer_must_have_the_field_that_its_kind_needs, 0, RV_COUNT(answers));
    tcase_add_test(tc, w13_an_expired_interrupt_takes_no_answer);
    return tc;
}
