/* Whole simulations: the same every time, everything that may happen does, nothing that must hold is broken. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/sim/suites.h"

static const char *const pipelines[] = {
    RV_SOURCE_DIR "/tests/sim/effects.yaml",  RV_SOURCE_DIR "/tests/sim/branches.yaml",
    RV_SOURCE_DIR "/tests/sim/bounds.yaml",   RV_SOURCE_DIR "/pipelines/loop.yaml",
    RV_SOURCE_DIR "/pipelines/parallel.yaml", RV_SOURCE_DIR "/pipelines/clarify.yaml",
    RV_SOURCE_DIR "/pipelines/policies.yaml", RV_SOURCE_DIR "/pipelines/hooks.yaml",
    RV_SOURCE_DIR "/tests/sim/guarded.yaml",  RV_SOURCE_DIR "/tests/sim/talks.yaml",
    RV_SOURCE_DIR "/tests/sim/told.yaml",     RV_SOURCE_DIR "/tests/sim/asks.yaml",
};
#define ASKS (RV_COUNT(pipelines) - 1) /* its runs are many times as long */

#define SEEDS      rv_kit_sample(160, 1000)
#define ASKS_SEEDS 75 /* of its own */
#define MANY_SEEDS rv_kit_sample(400, 1000)

static struct rv_sim_report run(const struct rv_sim_opts *o)
{
    struct rv_sim_report r;
    rv_err *err = NULL;

    if (rv_sim_run(o, &r, &err) < 0)
        ck_abort_msg("%s", rv_kit_err_take(err));
    if (r.has_failure)
        ck_abort_msg("seed %llu: %s\n%s", (unsigned long long)r.failure.seed, r.failure.text, r.failure.trace);
    return r;
}

START_TEST(nothing_breaks_and_the_hash_depends_on_the_seeds_alone)
{
    struct subjects one, four;
    subjects_init(&one, pipelines[_i], 1);
    subjects_init(&four, pipelines[_i], 4);
    int64_t n = (size_t)_i == ASKS ? SEEDS / 4 : SEEDS;
    struct rv_sim_opts o = subjects_opts(&one, n), threads = subjects_opts(&four, n);
    struct rv_sim_report a = run(&o), b = run(&o), c = run(&threads);

    ck_assert_str_eq(a.hash, b.hash);
    ck_assert_str_eq(a.hash, c.hash);
    ck_assert_int_eq(a.n_steps, c.n_steps);
    ck_assert_mem_eq(a.faults, c.faults, sizeof a.faults);
    ck_assert_mem_eq(a.by_status, c.by_status, sizeof a.by_status);
    rv_sim_report_fini(&b);
    o.first_seed = 2;
    b = run(&o);
    ck_assert_str_ne(a.hash, b.hash);
    rv_sim_report_fini(&a);
    rv_sim_report_fini(&b);
    rv_sim_report_fini(&c);
    subjects_fini(&one);
    subjects_fini(&four);
}
END_TEST

START_TEST(every_fault_every_status_and_every_route_occurs)
{
    int64_t faults[RV_N_SIM_FAULTS] = {0}, statuses[RV_N_RUN] = {0};

    for (size_t i = 0; i < RV_COUNT(pipelines); i++) {
        struct subjects s;
        subjects_init(&s, pipelines[i], 2);
        struct rv_sim_opts o = subjects_opts(&s, i == ASKS ? ASKS_SEEDS : MANY_SEEDS);
        struct rv_sim_report r = run(&o);
        for (size_t f = 0; f < RV_N_SIM_FAULTS; f++)
            faults[f] += r.faults[f];
        for (size_t k = 0; k < RV_N_RUN; k++)
            statuses[k] += r.by_status[k];
        for (size_t k = 0; k < r.n_places; k++)
            ck_assert_msg(r.places[k].hits > 0, "%s: place %zu of stage %d is never reached", pipelines[i], k,
                          r.places[k].stage);
        rv_sim_report_fini(&r);
        subjects_fini(&s);
    }
    for (size_t f = 0; f < RV_N_SIM_FAULTS; f++)
        ck_assert_msg(faults[f] > 0, "fault %zu never occurs", f);
    for (size_t k = RV_RUN_COMPLETED; k < RV_N_RUN; k++)
        ck_assert_msg(statuses[k] > 0, "no run is %s", rv_run_status_text((enum rv_run_status)k));
}
END_TEST

/* Agents ask agents up to the bound and past it, some have an answer and some have none, and faults hit them. */
START_TEST(agents_that_are_asked_are_reached)
{
    struct subjects s;
    subjects_init(&s, pipelines[ASKS], 2);
    struct rv_sim_opts o = subjects_opts(&s, ASKS_SEEDS);
    struct rv_sim_report r = run(&o);

    ck_assert_int_ge(r.n_asked, ASKS_SEEDS);
    ck_assert_int_lt(r.n_agents, r.n_asked); /* not all are found */
    ck_assert_int_lt(r.n_agents_ok, r.n_agents);
    ck_assert_int_gt(r.n_agents_ok, r.n_agents / 2);
    ck_assert_int_ge(r.max_depth, 3);
    ck_assert_int_gt(r.n_agent_calls, r.n_agents);
    ck_assert_int_gt(r.n_agent_faults, ASKS_SEEDS / 4);
    ck_assert_int_gt(r.n_turns, 0);
    ck_assert_int_gt(r.n_rows, 4 * r.n_turns);
    rv_sim_report_fini(&r);
    subjects_fini(&s);
}
END_TEST

START_TEST(without_faults_none_occurs)
{
    struct subjects s;
    subjects_init(&s, pipelines[0], 1);
    struct rv_sim_opts o = subjects_opts(&s, rv_kit_sample(200, 200));
    o.faults = 0;
    struct rv_sim_report r = run(&o);

    for (size_t f = 0; f < RV_N_SIM_FAULTS; f++)
        ck_assert_int_eq(r.faults[f], 0);
    ck_assert_int_gt(r.by_status[RV_RUN_COMPLETED], 0);
    rv_sim_report_fini(&r);
    subjects_fini(&s);
}
END_TEST

START_TEST(a_script_answers_what_it_has_entries_for)
{
    struct subjects s;
    subjects_init(&s, pipelines[0], 1);
    s.of[0].script = s.scripts[0];
    struct rv_sim_opts o = subjects_opts(&s, 50);
    o.faults = 0;
    struct rv_sim_report r = run(&o);

    ck_assert_int_eq(r.by_status[RV_RUN_COMPLETED], 50); /* as its test expects */
    rv_sim_report_fini(&r);
    subjects_fini(&s);
}
END_TEST

START_TEST(one_seed_is_told_step_by_step)
{
    struct subjects s;
    subjects_init(&s, pipelines[3], 1);
    struct rv_sim_opts o = subjects_opts(&s, 1);
    o.trace = true;
    struct rv_sim_report r = run(&o);

    ck_assert_ptr_nonnull(r.trace);
    ck_assert_ptr_nonnull(strstr(r.trace, "stage writer"));
    ck_assert_ptr_nonnull(strstr(r.trace, "the run is "));
    rv_sim_report_fini(&r);
    subjects_fini(&s);
}
END_TEST

START_TEST(the_report_reads_as_text_and_as_json)
{
    rv_buf text = RV_BUF_INIT(1 << 20), json = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&json);
    json_object *tree = NULL;
    struct subjects s;
    subjects_init(&s, pipelines[3], 1);
    struct rv_sim_opts o = subjects_opts(&s, 100);
    struct rv_sim_report r = run(&o);

    rv_sim_report_write_text(&r, s.pipelines[0], &text);
    rv_sim_report_write_json(&r, s.pipelines[0], &w);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), "100 seeds"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), r.hash));
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&json), NULL, &tree, NULL), 0);
    int64_t n = 0;
    ck_assert(rv_json_get_int(tree, "seeds", &n));
    ck_assert_int_eq(n, 100);
    json_object_put(tree);
    rv_buf_fini(&text);
    rv_buf_fini(&json);
    rv_sim_report_fini(&r);
    subjects_fini(&s);
}
END_TEST

/* Each place that no run reached is named. */
START_TEST(the_report_names_places_that_were_not_reached)
{
    static const char yaml[] = "name: t\nagents:\n  - {name: a, stage_order: 1, routing_function: x.route}\n"
                               "  - {name: b, stage_order: 2, routing_rules: [{when: 'false', target: c}],\n"
                               "     error_next: c}\n"
                               "  - {name: c, stage_order: 3, default_next: end}\n";
    static const char *const wanted[] = {"stage a",         "a -> whatever x.route says", "stage b",
                                         "b -> c (rule 1)", "b -> end (no rule fits)",    "b -> c (error)",
                                         "stage c",         "c -> end (default)"};
    struct rv_sim_report r = {.n_seeds = 2}; /* one run does not have to go everywhere */
    rv_buf text = RV_BUF_INIT(1 << 20);
    rv_findings *f = rv_findings_new();
    struct rv_pipeline *p = NULL;

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(yaml), "t.yaml", ".", f, &p, NULL), 0);
    ck_assert(p && p->is_sound);
    ck_assert_int_eq(sim_places_new(p, RV_MODE_SEQUENTIAL, &r, NULL), 0);
    rv_sim_report_write_text(&r, p, &text);
    for (size_t i = 0; i < RV_COUNT(wanted); i++)
        ck_assert_msg(strstr(rv_buf_cstr(&text), wanted[i]), "%s\nis not in\n%s", wanted[i], rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_sim_report_fini(&r);
    rv_pipeline_free(p);
    rv_findings_free(f);
}
END_TEST

/* Of a pipeline with that default, in runs of that mode. */
static size_t n_routes(int default_mode, int mode)
{
    struct subjects s;
    size_t n = 0;

    subjects_init(&s, RV_SOURCE_DIR "/pipelines/loop.yaml", 1);
    s.pipelines[0]->default_run_mode = default_mode;
    struct rv_sim_opts o = subjects_opts(&s, 4);
    o.mode = mode;
    struct rv_sim_report r = run(&o);
    for (size_t i = 0; i < r.n_places; i++)
        n += r.places[i].kind != RV_SIM_STAGE;
    rv_sim_report_fini(&r);
    subjects_fini(&s);
    return n;
}

START_TEST(routes_are_counted_in_the_mode_of_the_runs)
{
    size_t n = n_routes(RV_MODE_SEQUENTIAL, RV_UNSET);

    ck_assert_uint_gt(n, 0);
    ck_assert_uint_eq(n_routes(RV_MODE_SEQUENTIAL, RV_MODE_PARALLEL), 0);
    ck_assert_uint_eq(n_routes(RV_MODE_PARALLEL, RV_UNSET), 0);
    ck_assert_uint_eq(n_routes(RV_MODE_PARALLEL, RV_MODE_SEQUENTIAL), n);
}
END_TEST

/* As the engine answers it: who was found, and its document. */
START_TEST(an_agent_is_answered_with_its_name_and_its_document)
{
    bool found = false;
    struct subjects s;
    subjects_init(&s, pipelines[ASKS], 1);
    struct rv_sim_opts o = subjects_opts(&s, 1);

    o.trace = true;
    o.faults = 0;
    for (o.first_seed = 1; o.first_seed < 30 && !found; o.first_seed++) {
        struct rv_sim_report r = run(&o);
        found = strstr(r.trace, "answers {\"agent\":\"helper\",\"agent_document\":\"") != NULL;
        rv_sim_report_fini(&r);
    }
    ck_assert(found);
    subjects_fini(&s);
}
END_TEST

static const struct {
    const char *text;
    int rc;
    unsigned bits;
} lists[] = {
    {"all", 0, RV_SIM_ALL_FAULTS},
    {"none", 0, 0},
    {"cancel", 0, 1u << RV_SIM_CANCEL},
    {"crash-idle, cancel", 0, 1u << RV_SIM_CRASH_IDLE | 1u << RV_SIM_CANCEL},
    {"crash", 0,
     1u << RV_SIM_CRASH_BEFORE | 1u << RV_SIM_CRASH_AFTER | 1u << RV_SIM_CRASH_AMID | 1u << RV_SIM_CRASH_IDLE},
    {"", RV_E_INVALID, 0},
    {"crash-sometimes", RV_E_INVALID, 0},
    {"cancel,,zombie", RV_E_INVALID, 0},
};

START_TEST(a_list_of_faults_is_read)
{
    unsigned bits = 0;

    ck_assert_int_eq(rv_sim_faults_of(rv_str_of(lists[_i].text), &bits, NULL), lists[_i].rc);
    ck_assert_uint_eq(bits, lists[_i].bits);
}
END_TEST

START_TEST(a_misspelt_fault_names_the_nearest)
{
    rv_err *err = NULL;
    unsigned bits;

    ck_assert_int_eq(rv_sim_faults_of(RV_STR_LIT("tool-eror"), &bits, &err), RV_E_INVALID);
    char *text = rv_kit_err_take(err);
    ck_assert_ptr_nonnull(strstr(text, "did you mean \"tool-error\"?"));
    free(text);
}
END_TEST

TCase *seeds_case(void)
{
    TCase *tc = tcase_create("seeds");

    tcase_add_loop_test(tc, nothing_breaks_and_the_hash_depends_on_the_seeds_alone, 0, (int)RV_COUNT(pipelines));
    if (rv_kit_stride(2) == 1) { /* many seeds: a sanitizer sees no more in them */
        tcase_add_test(tc, every_fault_every_status_and_every_route_occurs);
        tcase_add_test(tc, agents_that_are_asked_are_reached);
    }
    tcase_add_test(tc, without_faults_none_occurs);
    tcase_add_test(tc, a_script_answers_what_it_has_entries_for);
    tcase_add_test(tc, one_seed_is_told_step_by_step);
    tcase_add_test(tc, the_report_reads_as_text_and_as_json);
    tcase_add_test(tc, the_report_names_places_that_were_not_reached);
    tcase_add_test(tc, routes_are_counted_in_the_mode_of_the_runs);
    tcase_add_test(tc, an_agent_is_answered_with_its_name_and_its_document);
    tcase_add_loop_test(tc, a_list_of_faults_is_read, 0, (int)RV_COUNT(lists));
    tcase_add_test(tc, a_misspelt_fault_names_the_nearest);
    return tc;
}
