/* Routing between agents: each operation of p8-agents 12 from each state, and what a session hands back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/context/suites.h"

#define TRANSITIONS                                                                                                    \
    "\"transitions\":{\"executing\":{\"on_complete\":\"idle\",\"on_escalate\":\"escalated\",\"on_max_turns\":"         \
    "\"re-evaluate\"},\"idle\":{\"on_message\":\"executing\"},\"escalated\":{\"on_resolve\":\"idle\"}}}"
#define S(state) RV_ROUTING_##state

static const struct {
    enum rv_routing_state state;
    int64_t turns;
    bool needs;
} needs[] = {
    {S(IDLE), 0, true},       {S(REEVALUATE), 0, true}, {S(EXECUTING), 0, false}, {S(EXECUTING), 2, false},
    {S(EXECUTING), 3, true},  {S(EXECUTING), 4, true},  {S(COMPLETE), 0, false},  {S(COMPLETE), 9, false},
    {S(ESCALATED), 0, false}, {S(ESCALATED), 9, false},
};

/* Proves p8.12 */
START_TEST(a_message_is_classified_when_no_agent_has_it)
{
    struct rv_routing r = {.state = needs[_i].state, .turn_count = needs[_i].turns, .max_turns = 3};

    ck_assert_int_eq(rv_routing_needs_classification(&r), needs[_i].needs);
}
END_TEST

static void activate_b(struct rv_routing *r)
{
    rv_routing_activate(r, "b", 7);
}
static void activate_b_as_it_is(struct rv_routing *r)
{
    rv_routing_activate(r, "b", 0);
}
static void activate_nobody(struct rv_routing *r)
{
    rv_routing_activate(r, NULL, 0);
}
static void escalate(struct rv_routing *r)
{
    rv_routing_escalate(r, "too hard");
}
static void escalate_without_a_word(struct rv_routing *r)
{
    rv_routing_escalate(r, NULL);
}

static void escalate_twice(struct rv_routing *r)
{
    rv_routing_escalate(r, NULL);
    rv_routing_escalate(r, NULL);
}

/* From agent a, fallback general, no escalation. */
static const struct {
    enum rv_routing_state from;
    void (*op)(struct rv_routing *r);
    int64_t turns;
    const char *agent;
    enum rv_routing_state state;
    int64_t want_turns, want_max;
    const char *escalation;
} ops[] = {
    {S(IDLE), activate_b, 1, "b", S(EXECUTING), 0, 7, ""},
    {S(EXECUTING), activate_b_as_it_is, 3, "b", S(EXECUTING), 0, 3, ""},
    {S(REEVALUATE), activate_b_as_it_is, 3, "b", S(EXECUTING), 0, 3, ""},
    {S(ESCALATED), activate_b, 1, "b", S(EXECUTING), 0, 7, ""},
    {S(IDLE), activate_nobody, 1, "general", S(EXECUTING), 0, 3, ""},
    {S(EXECUTING), rv_routing_increment, 1, "a", S(EXECUTING), 2, 3, ""},
    {S(EXECUTING), rv_routing_increment, 2, "a", S(REEVALUATE), 3, 3, ""},
    {S(COMPLETE), rv_routing_increment, 1, "a", S(COMPLETE), 2, 3, ""},
    {S(COMPLETE), rv_routing_increment, 2, "a", S(REEVALUATE), 3, 3, ""},
    {S(IDLE), rv_routing_increment, 1, "a", S(IDLE), 2, 3, ""},
    {S(ESCALATED), rv_routing_increment, 2, "a", S(ESCALATED), 3, 3, ""},
    {S(EXECUTING), rv_routing_increment, INT64_MAX, "a", S(REEVALUATE), INT64_MAX, 3, ""},
    {S(EXECUTING), rv_routing_complete, 2, "general", S(IDLE), 2, 3, ""},
    {S(EXECUTING), escalate, 2, "general", S(ESCALATED), 2, 3, "too hard"},
    {S(EXECUTING), escalate_without_a_word, 2, "general", S(ESCALATED), 2, 3, "a"},
    {S(EXECUTING), escalate_twice, 2, "general", S(ESCALATED), 2, 3, "a"},
    {S(ESCALATED), rv_routing_resolve, 2, "general", S(IDLE), 2, 3, ""},
    {S(EXECUTING), rv_routing_resolve, 2, "a", S(EXECUTING), 2, 3, ""},
};

/* Proves p8.12: States of routing, what changes them, and who is asked */
START_TEST(each_operation_does_what_its_row_says)
{
    struct rv_routing r = RV_ROUTING_INIT;

    rv_routing_activate(&r, "a", 3);
    r.state = ops[_i].from;
    r.turn_count = ops[_i].turns;
    ops[_i].op(&r);
    ck_assert_str_eq(r.active_agent, ops[_i].agent);
    ck_assert_int_eq(r.state, ops[_i].state);
    ck_assert_int_eq(r.turn_count, ops[_i].want_turns);
    ck_assert_int_eq(r.max_turns, ops[_i].want_max);
    ck_assert_str_eq(r.escalation, ops[_i].escalation);
    ck_assert_str_eq(r.fallback, "general");
}
END_TEST

/* One message of a session, as whoever routes it does. */
static bool serve(struct rv_routing *r, const char *chosen)
{
    if (rv_routing_needs_classification(r)) {
        rv_routing_activate(r, chosen, 0);
        return true;
    }
    rv_routing_increment(r);
    return false;
}

/* Proves p8.W4 */
START_TEST(an_agent_serves_one_message_and_its_turns)
{
    struct rv_routing r = RV_ROUTING_INIT;
    int64_t n_served = 0;

    r.max_turns = _i;
    ck_assert(serve(&r, "a"));
    do {
        ck_assert_str_eq(r.active_agent, "a");
        n_served++;
    } while (!serve(&r, "b"));
    ck_assert_int_eq(n_served, 1 + _i);
    ck_assert_str_eq(r.active_agent, "b");
}
END_TEST

START_TEST(the_fallback_serves_until_an_escalation_is_resolved)
{
    struct rv_routing r = RV_ROUTING_INIT;

    rv_routing_activate(&r, "a", 2);
    rv_routing_escalate(&r, NULL);
    for (int i = 0; i < 10; i++) {
        ck_assert(!serve(&r, "b"));
        ck_assert_str_eq(r.active_agent, "general");
    }
    rv_routing_resolve(&r);
    ck_assert(serve(&r, "b"));
}
END_TEST

#define LONG "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FIRST                                                                                                          \
    "{\"active_agent\":null,\"state\":\"idle\",\"target\":\"complete\",\"turn_count\":0,\"max_turns\":20,"             \
    "\"fallback\":\"general\",\"escalation\":null,\"delegation\":null," TRANSITIONS

static const struct {
    const char *json, *written;
} kept[] = {
    {"null", FIRST},
    {"[]", FIRST},
    {"{}", FIRST},
    {"{\"active_agent\":\"a\",\"state\":\"executing\",\"turn_count\":2,\"max_turns\":5,\"fallback\":\"f\","
     "\"escalation\":\"e\",\"delegation\":{\"x\":1},\"transitions\":{},\"target\":\"t\",\"other\":1}",
     "{\"active_agent\":\"a\",\"state\":\"executing\",\"target\":\"complete\",\"turn_count\":2,\"max_turns\":5,"
     "\"fallback\":\"f\",\"escalation\":\"e\",\"delegation\":null," TRANSITIONS},
    {"{\"state\":\"Executing\"}", FIRST},
    {"{\"active_agent\":7,\"state\":\"dancing\",\"turn_count\":-1,\"max_turns\":\"5\",\"fallback\":\"\","
     "\"escalation\":\"a\\u0000b\"}",
     FIRST},
    {"{\"active_agent\":\"" LONG LONG "!\",\"state\":null,\"turn_count\":1.5}", FIRST},
};

static char *text_of(const struct rv_routing *r)
{
    rv_buf b = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&b);

    rv_routing_write_json(r, &w);
    ck_assert_int_eq(b.rc, 0);
    return rv_buf_steal(&b, NULL);
}

START_TEST(what_a_session_hands_back_is_read_as_far_as_it_is_right)
{
    json_object *json = rv_kit_json(kept[_i].json), *again;
    struct rv_routing r, second;
    char *text, *copy;

    rv_routing_read_json(json, &r);
    text = text_of(&r);
    ck_assert_str_eq(text, kept[_i].written);
    again = rv_kit_json(text);
    rv_routing_read_json(again, &second);
    copy = text_of(&second);
    ck_assert_str_eq(copy, text);
    free(copy);
    free(text);
    json_object_put(again);
    json_object_put(json);
}
END_TEST

START_TEST(each_state_has_its_word)
{
    static const char *const words[] = {"idle", "executing", "complete", "re-evaluate", "escalated"};
    struct rv_routing r = RV_ROUTING_INIT, again;
    char want[64];

    ck_assert_uint_eq(RV_COUNT(words), RV_N_ROUTING_STATES);
    r.state = (enum rv_routing_state)_i;
    char *text = text_of(&r);
    (void)snprintf(want, sizeof want, "\"state\":\"%s\"", words[_i]);
    ck_assert_msg(strstr(text, want), "%s", text);
    json_object *json = rv_kit_json(text);
    rv_routing_read_json(json, &again);
    ck_assert_int_eq(again.state, _i);
    json_object_put(json);
    free(text);
}
END_TEST

START_TEST(a_long_name_is_cut_between_characters)
{
    struct rv_routing r = RV_ROUTING_INIT;
    char name[RV_ROUTING_MAX_NAME + 2];

    memset(name, 'a', sizeof name);
    memcpy(name + RV_ROUTING_MAX_NAME - 2, "\xc3\xab", 3);
    rv_routing_activate(&r, name, 0);
    ck_assert_uint_eq(strlen(r.active_agent), RV_ROUTING_MAX_NAME - 2);
}
END_TEST

TCase *routing_case(void)
{
    TCase *tc = tcase_create("routing");

    tcase_add_loop_test(tc, a_message_is_classified_when_no_agent_has_it, 0, RV_COUNT(needs));
    tcase_add_loop_test(tc, each_operation_does_what_its_row_says, 0, RV_COUNT(ops));
    tcase_add_loop_test(tc, an_agent_serves_one_message_and_its_turns, 0, 6);
    tcase_add_test(tc, the_fallback_serves_until_an_escalation_is_resolved);
    tcase_add_loop_test(tc, what_a_session_hands_back_is_read_as_far_as_it_is_right, 0, RV_COUNT(kept));
    tcase_add_loop_test(tc, each_state_has_its_word, 0, RV_N_ROUTING_STATES);
    tcase_add_test(tc, a_long_name_is_cut_between_characters);
    return tc;
}
