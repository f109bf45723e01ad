/* Documents of declared agents are kept with the pipeline, and nothing else is asked for them later. */
#include "tests/unit/bundle/world.h"

#include <stdlib.h>
#include <string.h>

#define SORT                                                                                                           \
    "type: object\nname: sort\ndescription: \"You \\\"sort\\\".\"\nmodel: openai:gpt-4.1-mini\nstructured_output: "    \
    "true\nproperties: {a: {type: string}}\ntools: [look]\n"
static const char text[] = "name: t\nagents:\n  - {agent: sort, default_next: help}\n  - {agent: help, max_rounds: 2}\n"
                           "  - {agent: sort, name: again}\n";

struct source {
    const char *sort; /* its document */
};

static int find(void *self, const char *name, rv_str *out, const char **place, rv_err **err)
{
    const struct source *s = self;
    bool is_sort = strcmp(name, "sort") == 0;

    if (!is_sort && strcmp(name, "help") != 0)
        return RV_FAIL(err, RV_E_NOT_FOUND, "there is no agent \"%s\"", name);
    *out = rv_str_of(is_sort ? s->sort : "type: object\nname: help\ndescription: You help.\n");
    *place = is_sort ? "dir/sort.yaml" : "dir/help.yaml";
    return 0;
}

static void bind(struct world *w, const char *sort)
{
    struct source s = {sort};
    const struct rv_agent_source source = {find, &s};
    rv_findings *findings = rv_findings_new();

    ck_assert_int_eq(rv_pipeline_bind_agents(w->pipeline, &source, findings, NULL), 0);
    ck_assert_uint_eq(rv_findings_n(findings), 0);
    rv_findings_free(findings);
}

static char *bundle_of(const char *pipeline, const char *sort)
{
    struct world w;
    char *out;

    world_parse(&w, pipeline, ".");
    bind(&w, sort);
    out = world_bundle(&w, NULL);
    world_fini(&w);
    return out;
}

START_TEST(agents_come_back_from_a_bundle)
{
    struct world w;
    char *kept, *want, *got;
    size_t n;
    rv_bundle *b;

    world_parse(&w, text, ".");
    bind(&w, SORT);
    kept = world_bundle(&w, NULL);
    want = world_explained(w.pipeline);
    for (int offline = 0; offline < 2; offline++) {
        b = world_open(kept, offline);
        got = world_explained(rv_bundle_pipeline(b));
        ck_assert_str_eq(got, want);
        const struct rv_bound_agent *bound = rv_pipeline_bound_agents(rv_bundle_pipeline(b), &n);
        ck_assert_uint_eq(n, 2);
        ck_assert(rv_str_eq(bound[0].text, rv_str_of(SORT)));
        ck_assert_str_eq(bound[0].place, "dir/sort.yaml");
        ck_assert_str_eq(rv_bundle_pipeline(b)->agents[0].model.system, "You \"sort\".");
        ck_assert_int_eq(rv_bundle_pipeline(b)->agents[1].limits.max_rounds, 2);
        rv_bundle_free(b);
        free(got);
    }
    free(want);
    free(kept);
    world_fini(&w);
}
END_TEST

START_TEST(agents_are_sorted_and_each_is_there_once)
{
    char *kept = bundle_of(text, SORT);
    const char *help = strstr(kept, "\"agents\":{\"help\":{\"place\":\"dir/help.yaml\",\"text\":");
    const char *sort = strstr(kept, "\"sort\":{\"place\":");

    ck_assert_ptr_nonnull(help);
    ck_assert_ptr_nonnull(sort);
    ck_assert(help < sort);
    ck_assert_ptr_null(strstr(sort + 1, "\"sort\":{\"place\":"));
    free(kept);
}
END_TEST

START_TEST(another_document_makes_another_bundle)
{
    char *first = bundle_of(text, SORT), *second = bundle_of(text, SORT "# a remark\n"), *third = bundle_of(text, SORT);

    ck_assert_str_ne(first, second);
    ck_assert_str_eq(first, third);
    free(first);
    free(second);
    free(third);
}
END_TEST

START_TEST(a_pipeline_without_agents_keeps_its_bytes)
{
    char *kept = bundle_of("name: t\nagents: [{name: a}]\n", SORT);

    ck_assert_ptr_null(strstr(kept, "\"agents\""));
    free(kept);
}
END_TEST

START_TEST(prices_of_agents_are_those_of_the_day_the_run_began)
{
    char *kept = bundle_of(text, SORT), *changed = replaced(kept, "\"price\":{\"input\":", "\"price\":{\"input\":7");
    rv_bundle *old = world_open(kept, true), *b = world_open(changed, true);
    const struct rv_model_config *was = rv_pipeline_find_model(rv_bundle_pipeline(old), rv_str_of("agent:sort"));
    const struct rv_model_config *is = rv_pipeline_find_model(rv_bundle_pipeline(b), rv_str_of("agent:sort"));

    ck_assert(was->has_price && is->has_price);
    ck_assert_int_gt(is->price.input, was->price.input);
    rv_bundle_free(old);
    rv_bundle_free(b);
    free(kept);
    free(changed);
}
END_TEST

START_TEST(what_was_not_bound_is_not_kept)
{
    struct world w;
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;

    world_parse(&w, text, ".");
    const struct rv_bundle_source from = {.pipeline = w.pipeline, .catalog = &w.catalog};
    ck_assert_int_eq(rv_bundle_write(&from, &out, NULL, &err), RV_E_STATE);
    ck_assert_uint_eq(out.len, 0);
    char *said = rv_kit_err_take(err);
    ck_assert_ptr_nonnull(strstr(said, "agent \"sort\" was not looked up"));
    free(said);
    world_fini(&w);
}
END_TEST

#define PIPELINE "{\"file\":\"p.yaml\",\"dir\":\".\",\"text\":\"name: t\\nagents: [{agent: help}]\\n\",\"models\":{}}"
#define BUNDLE(agents)                                                                                                 \
    "{\"reeve_bundle\":1,\"pipeline\":" PIPELINE ",\"files\":{}" agents                                                \
    ",\"catalog\":{\"tools\":{},\"entries\":{},\"prompts\":{}}}"

static const struct {
    const char *text, *says;
} broken[] = {
    {BUNDLE(""), "the bundle has no agent \"help\""},
    {BUNDLE(",\"agents\":{}"), "the bundle has no agent \"help\""},
    {BUNDLE(",\"agents\":[]"), "\"agents\" must be an object, not array"},
    {BUNDLE(",\"agents\":{\"help\":1}"), "it must be an object, not integer"},
    {BUNDLE(",\"agents\":{\"help\":{\"text\":\"x\"}}"), "\"place\" is missing"},
    {BUNDLE(",\"agents\":{\"help\":{\"place\":\"x\"}}"), "\"text\" is missing"},
    {BUNDLE(",\"agents\":{\"help\":{\"place\":\"x\",\"text\":\"a\\u0000b\"}}"), "\"text\" has a NUL in it"},
    {BUNDLE(",\"agents\":{\"help\":{\"place\":\"x\",\"text\":\"\",\"more\":1}}"), "unknown key \"more\""},
    {BUNDLE(",\"agents\":{\"help\":{\"place\":\"x.yaml\",\"text\":\"name: [\"}}"), "(x.yaml:2:"},
};

START_TEST(a_damaged_agent_is_an_error)
{
    char *said = world_refused(broken[_i].text, true, RV_E_INVALID);

    ck_assert_msg(strstr(said, broken[_i].says), "%s is not in: %s", broken[_i].says, said);
    free(said);
}
END_TEST

Suite *agents_suite(void)
{
    Suite *s = suite_create("bundle_agents");
    TCase *tc = tcase_create("agents");

    tcase_add_test(tc, agents_come_back_from_a_bundle);
    tcase_add_test(tc, agents_are_sorted_and_each_is_there_once);
    tcase_add_test(tc, another_document_makes_another_bundle);
    tcase_add_test(tc, a_pipeline_without_agents_keeps_its_bytes);
    tcase_add_test(tc, prices_of_agents_are_those_of_the_day_the_run_began);
    tcase_add_test(tc, what_was_not_bound_is_not_kept);
    tcase_add_loop_test(tc, a_damaged_agent_is_an_error, 0, RV_COUNT(broken));
    suite_add_tcase(s, tc);
    return s;
}
