/* Each allocation of an envelope's life fails once: no crash, no leak, and what failed changed nothing. */
#include "envelope/envelope.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define NOW INT64_C(1764000000123456)

/* Check's own assertions allocate, so what a scenario finds wrong is kept until the allocator is disarmed. */
static int broken_line;

#define must(holds)                                                                                                    \
    do {                                                                                                               \
        if (!(holds) && broken_line == 0)                                                                              \
            broken_line = __LINE__;                                                                                    \
    } while (0)

static const char base_text[] =
    "{\"envelope_id\":\"e\",\"request_id\":\"r\",\"session_id\":\"s\",\"outputs\":{\"plan\":{\"plan_id\":1},\"critic\":"
    "{}},"
    "\"metadata\":{\"k\":1,\"queued_interrupts\":[{\"kind\":\"timeout\",\"id\":\"queued_1\"},"
    "{\"kind\":\"confirmation\",\"id\":\"queued_2\",\"message\":\"m\",\"data\":{\"d\":1},\"stage\":\"b\"},7]},"
    "\"state\":{"
    "\"l\":[1]},\"stage_order\":[\"a\",\"b\"],\"active_stages\":{\"a\":true},"
    "\"failed_stages\":{\"b\":\"x\"},\"loop_feedback\":[\"f\"],\"errors\":[{\"e\":1}],"
    "\"all_goals\":[\"g\"],\"remaining_goals\":[\"g\"],\"goal_completion_status\":{\"g\":\"pending\"},"
    "\"interrupt\":{\"kind\":\"confirmation\",\"id\":\"i\",\"message\":\"m\",\"response\":{\"approved\":true}},"
    "\"processing_history\":[{\"agent\":\"a\",\"status\":\"running\"},{\"agent\":\"b\",\"error\":\"e\"}],"
    "\"edge_traversals\":[{\"from\":\"a\",\"to\":\"b\",\"count\":2}],\"stage_visits\":{\"a\":1},"
    "\"suspended\":{\"a\":{}}}";

static json_object *base, *partial, *value;

static struct rv_rand bits(void)
{
    static struct rv_rand_state state;

    return rv_rand_seeded(&state, 1);
}

static int load(rv_envelope **out)
{
    rv_err *err = NULL;
    int rc = rv_envelope_load(base, bits(), NOW, out, &err);

    must((rc < 0) == (err != NULL));
    rv_err_free(err);
    return rc;
}

static int life(void)
{
    struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("in"), .metadata = partial};
    rv_envelope *env = NULL, *copy = NULL;
    rv_buf b = RV_BUF_INIT(1 << 20);
    int rc = rv_envelope_new(&seed, bits(), NOW, &env, NULL);

    if (rc == 0)
        rc = rv_envelope_dup(env, &copy, NULL);
    if (rc == 0) {
        rv_envelope_write_state(copy, &b);
        rv_envelope_write_result(copy, NULL, &b);
        rc = rv_buf_check(&b, "x", NULL);
    }
    must((rc == 0) == (copy != NULL && b.rc == 0));
    rv_buf_fini(&b);
    rv_envelope_free(copy);
    rv_envelope_free(env);
    return rc;
}

static int load_and_copy(void)
{
    rv_envelope *env = NULL, *copy = NULL;
    int rc = load(&env);

    if (rc == 0)
        rc = rv_envelope_dup(env, &copy, NULL);
    must((rc == 0) == (copy != NULL));
    rv_envelope_free(copy);
    rv_envelope_free(env);
    return rc;
}

static int load_wrong(void)
{
    json_object *wrong = rv_kit_json("{'interrupt':{'kind':'timeout','id':'i','data':{'a':1},'response':{'text':'x',"
                                     "'approved':3}}}");
    rv_envelope *env = NULL;
    rv_err *err = NULL;
    int rc = rv_envelope_load(wrong, bits(), NOW, &env, &err);

    must(rc < 0 && !env);
    rv_err_free(err);
    json_object_put(wrong);
    return rc == RV_E_INVALID ? 0 : rc;
}

/* The verbs, one at a time on a prepared envelope or fork: what fails must leave the state as it was. */
static int set_output(rv_envelope *env)
{
    return rv_envelope_set_output(env, RV_STR_LIT("new"), value, NULL);
}
static int remove_output(rv_envelope *env)
{
    return rv_envelope_remove_output(env, RV_STR_LIT("critic"), NULL);
}
static int set_metadata(rv_envelope *env)
{
    return rv_envelope_set_metadata(env, RV_STR_LIT("new"), value, NULL);
}
static int append_state(rv_envelope *env)
{
    return rv_envelope_merge_state(env, RV_STR_LIT("l"), RV_MERGE_APPEND, value, NULL);
}
static int unite_state(rv_envelope *env)
{
    return rv_envelope_merge_state(env, RV_STR_LIT("new"), RV_MERGE_DICT, value, NULL);
}
static int set_suspended(rv_envelope *env)
{
    return rv_envelope_set_suspended(env, RV_STR_LIT("new"), value, NULL);
}
static int drop_suspended(rv_envelope *env)
{
    return rv_envelope_set_suspended(env, RV_STR_LIT("a"), NULL, NULL);
}
static int set_stage(rv_envelope *env)
{
    return rv_envelope_set_stage(env, RV_STR_LIT("new"), NULL);
}
static int set_order(rv_envelope *env)
{
    static const char *const names[] = {"x", "y"};

    return rv_envelope_set_stage_order(env, names, 2, NULL);
}
static int start(rv_envelope *env)
{
    return rv_envelope_start_stage(env, RV_STR_LIT("b"), NULL);
}
static int complete(rv_envelope *env)
{
    return rv_envelope_complete_stage(env, RV_STR_LIT("a"), NULL);
}
static int fail_it(rv_envelope *env)
{
    return rv_envelope_fail_stage(env, RV_STR_LIT("a"), RV_STR_LIT("bad \xff text"), NULL);
}
static int record_start(rv_envelope *env)
{
    return rv_envelope_record_start(env, RV_STR_LIT("new"), 1, NOW, NULL);
}
static int record_complete(rv_envelope *env)
{
    struct rv_record_end end = {RV_HISTORY_ERROR, RV_STR_LIT("why"), 1, 1};

    return rv_envelope_record_complete(env, RV_STR_LIT("a"), &end, NOW, NULL);
}
static int record_skipped(rv_envelope *env)
{
    return rv_envelope_record_skipped(env, RV_STR_LIT("new"), 1, NOW, NULL);
}
static int add_error(rv_envelope *env)
{
    return rv_envelope_add_error(
        env, &(const struct rv_error_entry){RV_STR_LIT("a"), RV_STR_LIT("why"), "LLMError", RV_FAILURE_MODEL_FAILED},
        NOW, NULL);
}
static int count_edge(rv_envelope *env)
{
    return rv_envelope_note_passage(env, RV_STR_LIT("new"), RV_STR_LIT("b"), NULL, NULL);
}
static int terminate(rv_envelope *env)
{
    return rv_envelope_terminate(env, RV_STR_LIT("why"), RV_REASON_POLICY, NOW, NULL);
}
static int raise_interrupt(rv_envelope *env)
{
    struct rv_interrupt_spec spec = {.kind = RV_INTERRUPT_TIMEOUT,
                                     .id = RV_STR_LIT("n"),
                                     .question = RV_STR_LIT("q"),
                                     .message = RV_STR_LIT("m"),
                                     .data = value};

    return rv_envelope_raise(env, &spec, NOW, NULL);
}
static int resolve(rv_envelope *env)
{
    struct rv_response answer = {.text = RV_STR_LIT("t"),
                                 .has_approved = true,
                                 .approved = true,
                                 .decision = RV_STR_LIT("modify"),
                                 .data = value};

    return rv_envelope_resolve(env, &answer, NOW, NULL);
}
static int select_queued(rv_envelope *env)
{
    return rv_envelope_select_interrupt(env, RV_STR_LIT("queued_2"), NULL);
}
static int promote(rv_envelope *env)
{
    bool promoted = false;

    return rv_envelope_promote_interrupt(env, NOW, &promoted, NULL);
}
static int check_queued(rv_envelope *env)
{
    const struct rv_response answer = {.has_approved = true, .approved = true, .interrupt_id = RV_STR_LIT("queued_2")};

    return rv_envelope_check_response(env, &answer, NOW, NULL);
}
static int init_goals(rv_envelope *env)
{
    static const char *const goals[] = {"x", "y"};

    return rv_envelope_init_goals(env, goals, 2, NULL);
}
static int advance(rv_envelope *env)
{
    static const char *const goals[] = {"h"};
    bool more = false;

    return rv_envelope_advance_stage(env, &(const struct rv_goals_met){goals, 1, value}, NULL, &more, NULL);
}
static int iterate(rv_envelope *env)
{
    return rv_envelope_increment_iteration(env, RV_STR_LIT("again"), NULL, NULL);
}
static int restart(rv_envelope *env)
{
    return rv_envelope_restart(env, NULL);
}
static int patch(rv_envelope *env)
{
    return rv_envelope_patch(env, partial, NULL);
}

static const struct {
    const char *name;
    int (*run)(rv_envelope *env);
} verbs[] = {
    {"set_output", set_output},
    {"remove_output", remove_output},
    {"set_metadata", set_metadata},
    {"append_state", append_state},
    {"unite_state", unite_state},
    {"set_suspended", set_suspended},
    {"drop_suspended", drop_suspended},
    {"set_stage", set_stage},
    {"set_order", set_order},
    {"start", start},
    {"complete", complete},
    {"fail", fail_it},
    {"record_start", record_start},
    {"record_complete", record_complete},
    {"record_skipped", record_skipped},
    {"add_error", add_error},
    {"count_edge", count_edge},
    {"terminate", terminate},
    {"raise", raise_interrupt},
    {"resolve", resolve},
    {"check", check_queued},
    {"select", select_queued},
    {"promote", promote},
    {"init_goals", init_goals},
    {"advance", advance},
    {"iterate", iterate},
    {"patch", patch},
    {"restart", restart}, /* not for forks */
};
#define N_FOR_FORKS (RV_COUNT(verbs) - 1)

static char *state_of(const rv_envelope *env)
{
    rv_buf b = RV_BUF_INIT(1 << 20);

    rv_envelope_write_state(env, &b);
    return rv_buf_steal(&b, NULL);
}

/* Fail allocation n of the verb, compare, then let it succeed: the same as if nothing had ever failed. */
static bool verb_survives(size_t i, bool on_fork, size_t n, const char *wanted)
{
    rv_envelope *root = NULL, *fork = NULL, *env;
    char *before, *after;
    bool fired;
    int rc;

    ck_assert_int_eq(load(&root), 0);
    if (on_fork)
        ck_assert_int_eq(rv_envelope_fork(root, &fork, NULL), 0);
    env = fork ? fork : root;
    before = state_of(env);
    rv_fault_arm(n);
    rc = verbs[i].run(env);
    fired = rv_fault_disarm();
    ck_assert_int_eq(rc, fired ? RV_E_NOMEM : 0);
    if (fired) {
        after = state_of(env);
        ck_assert_msg(strcmp(before, after) == 0, "%s changed something, allocation %zu", verbs[i].name, n);
        free(after);
        ck_assert_int_eq(verbs[i].run(env), 0);
    }
    after = state_of(env);
    ck_assert_msg(!wanted || strcmp(after, wanted) == 0, "%s again, allocation %zu: %s", verbs[i].name, n, after);
    free(after);
    free(before);
    rv_envelope_free(fork);
    rv_envelope_free(root);
    return fired;
}

START_TEST(a_failed_verb_changes_nothing_and_can_be_repeated)
{
    for (int on_fork = 0; on_fork < ((size_t)_i < N_FOR_FORKS ? 2 : 1); on_fork++) {
        rv_envelope *root = NULL, *fork = NULL;
        char *wanted;

        ck_assert_int_eq(load(&root), 0);
        ck_assert_int_eq(rv_envelope_fork(root, &fork, NULL), 0);
        ck_assert_int_eq(verbs[_i].run(on_fork ? fork : root), 0);
        wanted = state_of(on_fork ? fork : root);
        for (size_t n = 0; verb_survives((size_t)_i, on_fork, n, wanted); n++)
            ;
        free(wanted);
        rv_envelope_free(fork);
        rv_envelope_free(root);
    }
}
END_TEST

static void work(rv_envelope *env)
{
    for (size_t i = 0; i < N_FOR_FORKS; i++)
        if (verbs[i].run != patch && verbs[i].run != resolve && verbs[i].run != set_order)
            ck_assert_int_eq(verbs[i].run(env), 0);
}

static char *merged_after_fault(size_t n, bool *fired)
{
    rv_envelope *root = NULL, *forks[2] = {NULL, NULL};
    struct rv_merge m = {0};
    char *text, *before, *after;
    int rc;

    ck_assert_int_eq(load(&root), 0);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(rv_envelope_fork(root, &forks[i], NULL), 0);
        work(forks[i]);
    }
    ck_assert_int_eq(rv_envelope_merge(root, forks[0], RV_STR_LIT("one"), &m, NULL), 0);
    before = state_of(root);
    rv_fault_arm(n);
    rc = rv_envelope_merge(root, forks[1], RV_STR_LIT("two"), &m, NULL);
    *fired = rv_fault_disarm();
    ck_assert_int_eq(rc, *fired ? RV_E_NOMEM : 0);
    if (*fired) {
        after = state_of(root);
        ck_assert_str_eq(before, after);
        free(after);
        ck_assert_int_eq(rv_envelope_merge(root, forks[1], RV_STR_LIT("two"), &m, NULL), 0);
    }
    text = state_of(root);
    free(before);
    rv_merge_fini(&m);
    rv_envelope_free(forks[0]);
    rv_envelope_free(forks[1]);
    rv_envelope_free(root);
    return text;
}

START_TEST(a_failed_merge_changes_nothing_and_can_be_repeated)
{
    bool fired = true;
    char *wanted = merged_after_fault((size_t)1 << 30, &fired);

    ck_assert(!fired);
    fired = true;
    for (size_t n = 0; fired; n++) {
        char *text = merged_after_fault(n, &fired);

        ck_assert_str_eq(text, wanted);
        free(text);
    }
    free(wanted);
}
END_TEST

static int fork_and_merge(void)
{
    rv_envelope *root = NULL, *fork = NULL;
    struct rv_merge m = {0};
    int rc = load(&root);

    if (rc == 0)
        rc = rv_envelope_fork(root, &fork, NULL);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(verbs); i++)
        rc = verbs[i].run(fork);
    if (rc == 0)
        rc = rv_envelope_merge(root, fork, RV_STR_LIT("s"), &m, NULL);
    rv_merge_fini(&m);
    rv_envelope_free(fork);
    rv_envelope_free(root);
    return rc;
}

static int context(void)
{
    rv_envelope *root = NULL;
    json_object *obj = NULL, *outputs = NULL;
    int rc = load(&root);

    if (rc == 0)
        rc = rv_envelope_build_stage_context(root, &obj, NULL);
    if (rc == 0)
        rc = rv_envelope_build_outputs(root, &outputs, NULL);
    must(rc == 0 || !outputs);
    json_object_put(obj);
    json_object_put(outputs);
    rv_envelope_free(root);
    return rc;
}

static const struct {
    const char *name;
    int (*run)(void);
} scenarios[] = {
    {"life", life}, {"load_and_copy", load_and_copy}, {"fork_and_merge", fork_and_merge}, {"context", context}};

START_TEST(each_failed_allocation_is_reported_and_nothing_leaks)
{
    ck_assert_int_eq(scenarios[_i].run(), 0);
    for (size_t n = 0;; n++) {
        int rc;

        broken_line = 0;
        rv_fault_arm(n);
        rc = scenarios[_i].run();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            ck_assert(n > 10 || !rv_fault_works());
            break;
        }
        ck_assert_msg(rc == RV_E_NOMEM, "%s, allocation %zu: %d", scenarios[_i].name, n, rc);
        ck_assert_msg(rv_fault_balance() == 0, "%s, allocation %zu: %ld blocks leak", scenarios[_i].name, n,
                      rv_fault_balance());
        ck_assert_msg(broken_line == 0, "%s, allocation %zu: line %d", scenarios[_i].name, n, broken_line);
    }
}
END_TEST

START_TEST(a_wrong_state_leaks_nothing)
{
    rv_fault_arm((size_t)1 << 30);
    ck_assert_int_eq(load_wrong(), 0);
    (void)rv_fault_disarm();
    ck_assert_int_eq(rv_fault_balance(), 0);
}
END_TEST

static void set_up(void)
{
    const struct rv_json_opts opts = {.max_bytes = sizeof base_text};

    ck_assert_int_eq(rv_json_parse(RV_STR_LIT(base_text), &opts, &base, NULL), 0);
    partial = rv_kit_json("{'raw_input':'x','outputs':{'new':{'a':[1,2]}},'active_stages':{'q':true},'suspended':{},"
                          "'current_stage':'q','errors':[{'e':1},{'e':2}],'termination_reason':'t','state':{'z':1},"
                          "'interrupt':{'kind':'timeout','id':'i','created_at':'2025-01-01T00:00:00Z'}}");
    value = rv_kit_json("{'v':[1,{'w':2.50}]}");
}

static void tear_down(void)
{
    json_object_put(base);
    json_object_put(partial);
    json_object_put(value);
}

int main(void)
{
    Suite *suite = suite_create("fault_envelope");
    TCase *tc = tcase_create("fault");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, a_failed_verb_changes_nothing_and_can_be_repeated, 0, RV_COUNT(verbs));
    tcase_add_test(tc, a_failed_merge_changes_nothing_and_can_be_repeated);
    tcase_add_loop_test(tc, each_failed_allocation_is_reported_and_nothing_leaks, 0, RV_COUNT(scenarios));
    tcase_add_test(tc, a_wrong_state_leaks_nothing);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
