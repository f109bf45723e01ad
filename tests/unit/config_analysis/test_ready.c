/* Readiness (rule 4.5) and dependents (rule 4.4). */
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"
#include "tests/unit/config_analysis/suites.h"
#include "tests/unit/config_analysis/world.h"

/* s0, s1 and s2 stand free; s3 is the stage under test. One letter a stage: w(aiting), a(ctive), c(ompleted), f(ailed),
 * s(kipped). Lists are digits. */
static const struct {
    const char *name, *requires, *after;
    enum rv_join join;
    const char *states;
    bool ready;
} rows[] = {
    {"no dependencies", "", "", RV_JOIN_ALL, "wwww", true},
    {"no dependencies, any", "", "", RV_JOIN_ANY, "wwww", true},
    {"completed stages do not run again", "", "", RV_JOIN_ALL, "wwwc", false},
    {"active stages do not start again", "", "", RV_JOIN_ALL, "wwwa", false},
    {"failed stages do not start again", "", "", RV_JOIN_ALL, "wwwf", false},
    {"skipped stages do not start", "", "", RV_JOIN_ALL, "wwws", false},
    {"all: none completed", "01", "", RV_JOIN_ALL, "wwww", false},
    {"all: one of two completed", "01", "", RV_JOIN_ALL, "cwww", false},
    {"all: both completed", "01", "", RV_JOIN_ALL, "ccww", true},
    {"all: a failed one does not count", "01", "", RV_JOIN_ALL, "cfww", false},
    {"all: a skipped one does not count", "01", "", RV_JOIN_ALL, "csww", false},
    {"all: an active one does not count", "01", "", RV_JOIN_ALL, "caww", false},
    {"any: none completed", "01", "", RV_JOIN_ANY, "wwww", false},
    {"any: first completed", "01", "", RV_JOIN_ANY, "cwww", true},
    {"any: second completed", "01", "", RV_JOIN_ANY, "wcww", true},
    {"any: failed and skipped do not count", "01", "", RV_JOIN_ANY, "fsww", false},
    {"after waits", "", "0", RV_JOIN_ALL, "wwww", false},
    {"after waits for an active one", "", "0", RV_JOIN_ALL, "awww", false},
    {"after is satisfied by a completed one", "", "0", RV_JOIN_ALL, "cwww", true},
    {"after is satisfied by a failed one", "", "0", RV_JOIN_ALL, "fwww", true},
    {"after is satisfied by a skipped one", "", "0", RV_JOIN_ALL, "swww", true},
    {"after needs every one, all", "", "01", RV_JOIN_ALL, "cwww", false},
    {"after needs every one, any does not loosen it", "", "01", RV_JOIN_ANY, "cwww", false},
    {"any with after open", "01", "2", RV_JOIN_ANY, "cwww", false},
    {"any with after done", "01", "2", RV_JOIN_ANY, "cwfw", true},
    {"all with after done, requires open", "01", "2", RV_JOIN_ALL, "cwcw", false},
};

static enum rv_stage_state state_of_letter(char c)
{
    switch (c) {
    case 'a':
        return RV_STAGE_ACTIVE;
    case 'c':
        return RV_STAGE_COMPLETED;
    case 'f':
        return RV_STAGE_FAILED;
    case 's':
        return RV_STAGE_SKIPPED;
    default:
        return RV_STAGE_WAITING;
    }
}

/* Proves 4.5/lint: A stage is ready if it waits (not active, completed, failed or skipped)
 * Proves 4.5/lint2: requires with `all` needs every listed stage completed, with `any` one of them; an empty list
 * is satisfied; failed, skipped and active stages do not count
 * Proves 4.5/lint3: after needs every listed stage to have come to an end: completed, failed or skipped; join `any`
 * does not loosen it */
START_TEST(ready_follows_rule_4_5)
{
    struct world *w = world_new(4);
    enum rv_stage_state states[4];
    int ready[4];

    w->agents[3].order.join = (int)rows[_i].join;
    for (const char *c = rows[_i].requires; *c; c++)
        world_require(w, 3, *c - '0');
    for (const char *c = rows[_i].after; *c; c++)
        world_after(w, 3, *c - '0');
    for (int i = 0; i < 4; i++)
        states[i] = state_of_letter(rows[_i].states[i]);
    size_t n = rv_pipeline_collect_ready(&w->p, states, ready);
    ck_assert_msg((n > 0 && ready[n - 1] == 3) == rows[_i].ready, "%s", rows[_i].name);
    world_free(w);
}
END_TEST

/* Proves 4.5/lint4: Ready stages are listed in stage order */
START_TEST(ready_stages_come_in_stage_order)
{
    struct world *w = world_new(5);
    enum rv_stage_state states[5] = {RV_STAGE_COMPLETED};
    int ready[5];

    world_require(w, 1, 0);
    world_require(w, 2, 1);
    world_require(w, 4, 0);
    ck_assert_uint_eq(rv_pipeline_collect_ready(&w->p, states, ready), 3);
    ck_assert_int_eq(ready[0], 1);
    ck_assert_int_eq(ready[1], 3);
    ck_assert_int_eq(ready[2], 4);
    world_free(w);
}
END_TEST

/* Proves 4.5/lint5: A requirement that names no stage is never met; a stage index outside the pipeline is never
 * ready */
START_TEST(ready_is_false_for_unknown_stages)
{
    struct world *w = world_new(2);
    enum rv_stage_state states[2] = {RV_STAGE_WAITING, RV_STAGE_WAITING};

    world_require(w, 1, 0);
    w->agents[1].order.required_index[0] = -1;
    ck_assert(!rv_stage_has_what_it_needs(&w->p, states, 1));
    ck_assert(!rv_stage_has_what_it_needs(&w->p, states, -1));
    ck_assert(!rv_stage_has_what_it_needs(&w->p, states, 2));
    world_free(w);
}
END_TEST

static void ck_dependents(const struct world *w, int stage, const char *want)
{
    char got[32] = "";
    size_t n = 0;
    const int *list = rv_pipeline_dependents(&w->p, stage, &n);

    for (size_t i = 0; i < n; i++)
        got[i] = (char)('0' + list[i]);
    got[n] = '\0';
    ck_assert_str_eq(got, want);
}

/* Proves 4.4/lint: Dependents of a stage are the stages that name it in requires or after: each once, in stage
 * order, none for a stage that does not exist; unknown names belong to nobody */
START_TEST(dependents_are_listed_once_in_stage_order)
{
    struct world *w = world_new(5);

    world_after(w, 4, 1);
    world_require(w, 4, 0);
    world_after(w, 4, 0); /* named twice: one dependent */
    world_require(w, 2, 0);
    world_after(w, 0, 3);
    world_require(w, 1, 2);
    w->agents[1].order.required_index[0] = -1; /* an unknown name is of no stage */
    ck_assert_int_eq(config_pipeline_link(&w->p, NULL), 0);
    ck_dependents(w, 0, "24");
    ck_dependents(w, 1, "4");
    ck_dependents(w, 2, "");
    ck_dependents(w, 3, "0");
    ck_dependents(w, -1, "");
    ck_dependents(w, 5, "");
    world_free(w);
}
END_TEST

void add_ready_tests(Suite *suite)
{
    TCase *tc = tcase_create("ready");

    tcase_add_loop_test(tc, ready_follows_rule_4_5, 0, RV_COUNT(rows));
    tcase_add_test(tc, ready_stages_come_in_stage_order);
    tcase_add_test(tc, ready_is_false_for_unknown_stages);
    tcase_add_test(tc, dependents_are_listed_once_in_stage_order);
    suite_add_tcase(suite, tc);
}
