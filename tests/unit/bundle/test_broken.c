/* Bundles that nobody of ours wrote: every fault is an error that says where it is. */
#include "tests/unit/bundle/world.h"

#include <stdlib.h>
#include <string.h>

#define PIPELINE "{\"file\":\"p.yaml\",\"dir\":\".\",\"text\":\"name: t\\nagents: [{name: a}]\\n\",\"models\":{}}"
#define CATALOG  "{\"tools\":{},\"entries\":{},\"prompts\":{}}"
#define BUNDLE(pipeline, files, more, catalog)                                                                         \
    "{\"reeve_bundle\":1,\"pipeline\":" pipeline ",\"files\":" files more ",\"catalog\":" catalog "}"
#define TOOLS(tools)     BUNDLE(PIPELINE, "{}", "", "{\"tools\":" tools ",\"entries\":{},\"prompts\":{}}")
#define ENTRIES(entries) BUNDLE(PIPELINE, "{}", "", "{\"tools\":{},\"entries\":" entries ",\"prompts\":{}}")
#define PROMPTS(prompts) BUNDLE(PIPELINE, "{}", "", "{\"tools\":{},\"entries\":{},\"prompts\":" prompts "}")
#define TEXT(text)       BUNDLE("{\"file\":\"p.yaml\",\"dir\":\".\",\"text\":" text ",\"models\":{}}", "{}", "", CATALOG)
#define MODELS(models)                                                                                                 \
    BUNDLE("{\"file\":\"p.yaml\",\"dir\":\".\",\"text\":\"name: t\",\"models\":" models "}", "{}", "", CATALOG)
#define INNER(inner)                                                                                                   \
    BUNDLE("{\"file\":\"p.yaml\",\"dir\":\".\",\"text\":\"name: t\",\"models\":{},\"inner\":" inner "}", "{}", "",     \
           CATALOG)
#define SCRIPT(script) BUNDLE(PIPELINE, "{}", ",\"script\":" script, CATALOG)

static const struct {
    const char *text;
    int rc;
    const char *says;
} broken[] = {
    {"", RV_E_INVALID, "bundle"},
    {"{", RV_E_INVALID, "line 1"},
    {"[]", RV_E_INVALID, "it is not a bundle"},
    {"null", RV_E_INVALID, "it is not a bundle"},
    {"{}", RV_E_INVALID, "it is not a bundle"},
    {"{\"reeve_bundle\":\"1\"}", RV_E_INVALID, "it is not a bundle"},
    {"{\"reeve_bundle\":0}", RV_E_INVALID, "it is not a bundle"},
    {"{\"reeve_bundle\":2}", RV_E_VERSION, "it has version 2, this engine reads up to 1"},
    {"{\"reeve_bundle\":1,\"more\":1}", RV_E_INVALID, "unknown key \"more\""},
    {"{\"reeve_bundle\":1}", RV_E_INVALID, "\"catalog\" is missing"},
    {BUNDLE("1", "{}", "", CATALOG), RV_E_INVALID, "\"pipeline\" must be an object, not integer"},
    {BUNDLE("{}", "{}", "", CATALOG), RV_E_INVALID, "\"file\" is missing"},
    {BUNDLE(PIPELINE, "[]", "", CATALOG), RV_E_INVALID, "\"files\" must be an object, not array"},
    {BUNDLE("{\"file\":\"a\",\"dir\":\".\",\"text\":\"\",\"models\":{},\"x\":1}", "{}", "", CATALOG), RV_E_INVALID,
     "\"pipeline\" has an unknown key \"x\""},
    {BUNDLE("{\"file\":1,\"dir\":\".\",\"text\":\"\",\"models\":{}}", "{}", "", CATALOG), RV_E_INVALID,
     "\"file\" must be a string, not integer"},
    {BUNDLE("{\"file\":\"a\\u0000b\",\"dir\":\".\",\"text\":\"\",\"models\":{}}", "{}", "", CATALOG), RV_E_INVALID,
     "\"file\" has a NUL in it"},
    {TEXT("\"\""), RV_E_INVALID, "the file is empty"},
    {TEXT("\"name: [\""), RV_E_INVALID, "pipeline \"p.yaml\""},
    {TEXT("\"name: t\\nagents: [{name: a, default_next: z}]\""), RV_E_INVALID, "(p.yaml:2:"},
    {TEXT("\"name: t\\nagents: [{name: a}]\\nprompts: {p: {file: gone.md}}\""), RV_E_INVALID,
     "there is no \"gone.md\""},
    {BUNDLE("{\"file\":\"p\",\"dir\":\".\",\"text\":\"name: t\\nagents: [{name: a}]\\nprompts: {p: {file: f.md}}\","
            "\"models\":{}}",
            "{\"f.md\":\"a\\u0000b\"}", "", CATALOG),
     RV_E_INVALID, "\"f.md\" is not UTF-8 text"},
    {BUNDLE("{\"file\":\"p\",\"dir\":\".\",\"text\":\"name: t\\nagents: [{name: a}]\\nprompts: {p: {file: f.md}}\","
            "\"models\":{}}",
            "{\"f.md\":7}", "", CATALOG),
     RV_E_INVALID, "there is no \"f.md\""},
    {MODELS("[]"), RV_E_INVALID, "\"models\" must be an object, not array"},
    {MODELS("{\"r\":1}"), RV_E_INVALID, "model \"r\" must be an object or null"},
    {MODELS("{\"r\":{\"provider\":\"p\"}}"), RV_E_INVALID, "model \"r\": \"model\" is missing"},
    {MODELS("{\"r\":{\"provider\":\"p\",\"model\":\"m\",\"max_input_tokens\":-1}}"), RV_E_INVALID,
     "model \"r\": \"max_input_tokens\" must be an integer from 0"},
    {MODELS("{\"r\":{\"provider\":\"p\",\"model\":\"m\",\"price\":1}}"), RV_E_INVALID,
     "model \"r\": \"price\" must be an object"},
    {MODELS("{\"r\":{\"provider\":\"p\",\"model\":\"m\",\"price\":{\"input\":1}}}"), RV_E_INVALID,
     "model \"r\": \"output\" must be an integer from 0"},
    {MODELS("{\"r\":{\"provider\":\"p\",\"model\":\"m\",\"price\":{\"input\":1,\"output\":1,\"cached\":-1}}}"),
     RV_E_INVALID, "model \"r\": \"cached\" must be an integer from 0"},
    {MODELS("{\"r\":{\"provider\":\"p\",\"model\":\"m\",\"price\":{\"in\":1}}}"), RV_E_INVALID,
     "a price has an unknown key \"in\""},
    {INNER("[]"), RV_E_INVALID, "\"inner\" must be an object, not array"},
    {INNER("{\"in.yaml\":1}"), RV_E_INVALID, "the models of \"in.yaml\" must be an object, not integer"},
    {INNER("{\"in.yaml\":{\"r\":{\"provider\":\"p\"}}}"), RV_E_INVALID,
     "file \"in.yaml\": model \"r\": \"model\" is missing"},
    {SCRIPT("7"), RV_E_INVALID, "\"script\" must be an object"},
    {SCRIPT("{\"file\":\"s.yaml\",\"text\":\"\"}"), RV_E_INVALID, "script \"s.yaml\": script: the file is empty"},
    {SCRIPT("{\"file\":\"s.yaml\",\"text\":\"model: {}\"}"), RV_E_INVALID, "(s.yaml:1:1)"},
    {SCRIPT("{\"file\":\"s.yaml\",\"text\":\"models: {}\",\"x\":1}"), RV_E_INVALID, "unknown key \"x\""},
    {BUNDLE(PIPELINE, "{}", "", "{\"tools\":{},\"entries\":{}}"), RV_E_INVALID, "\"prompts\" is missing"},
    {TOOLS("{\"t\":1}"), RV_E_INVALID, "tool \"t\": it must be an object, not integer"},
    {TOOLS("{\"t\":{\"y\":1}}"), RV_E_INVALID, "unknown key \"y\""},
    {TOOLS("{\"t\":{\"description\":[]}}"), RV_E_INVALID, "\"description\" must be a string"},
    {TOOLS("{\"t\":{\"risk\":\"hig\"}}"), RV_E_INVALID, "high"},
    {TOOLS("{\"t\":{\"effect\":\"?\"}}"), RV_E_INVALID, "effect"},
    {TOOLS("{\"t\":{\"category\":\"?\"}}"), RV_E_INVALID, "categor"},
    {TOOLS("{\"t\":{\"timeout_ms\":-1}}"), RV_E_INVALID, "\"timeout_ms\" must be an integer above 0"},
    {TOOLS("{\"t\":{\"timeout_ms\":1e99}}"), RV_E_INVALID, "\"timeout_ms\" must be an integer above 0"},
    {TOOLS("{\"t\":{\"has_probe\":1}}"), RV_E_INVALID, "\"has_probe\" must be true or false"},
    {TOOLS("{\"t\":{\"input_schema\":null}}"), RV_E_INVALID, "input_schema"},
    {TOOLS("{\"t\":{\"output_schema\":{\"typ\":1}}}"), RV_E_INVALID, "output_schema"},
    {ENTRIES("{\"tool\":{}}"), RV_E_INVALID, "there is no kind \"tool\""},
    {ENTRIES("{\"hook\":[]}"), RV_E_INVALID, "\"hook\" must be an object, not array"},
    {ENTRIES("{\"hook\":{\"c.h\":null}}"), RV_E_INVALID, "hook \"c.h\": it must be an object"},
    {ENTRIES("{\"hook\":{\"c.h\":{\"sees\":{}}}}"), RV_E_INVALID, "\"sees\" must be an array"},
    {ENTRIES("{\"hook\":{\"c.h\":{\"sees\":[\"a\",1]}}}"), RV_E_INVALID, "\"sees\" has an item"},
    {ENTRIES("{\"hook\":{\"c.h\":{\"timeout_ms\":0}}}"), RV_E_INVALID, "timeout_ms"},
    {PROMPTS("{\"c.p\":1}"), RV_E_INVALID, "prompt \"c.p\" must be a string"},
    {PROMPTS("{\"c.p\":\"{{open\"}"), RV_E_INVALID, "prompt \"c.p\""},
};

START_TEST(a_broken_bundle_says_what_is_wrong)
{
    char *said = world_refused(broken[_i].text, true, broken[_i].rc);

    ck_assert_msg(strstr(said, broken[_i].says), "%s", said);
    ck_assert_msg(strncmp(said, "open a bundle: ", 15) == 0, "%s", said);
    free(said);
}
END_TEST

START_TEST(the_smallest_bundle_opens)
{
    rv_bundle *b = world_open(BUNDLE(PIPELINE, "{}", "", CATALOG), false);

    ck_assert_str_eq(rv_bundle_pipeline(b)->name, "t");
    rv_bundle_free(b);
}
END_TEST

START_TEST(a_warning_keeps_no_bundle_closed)
{
    static const char text[] = TEXT("\"name: t\\nagents: [{name: a, has_tools: true}]\\n\"");
    rv_bundle *b = world_open(text, false);

    ck_assert(rv_bundle_pipeline(b)->agents[0].has_tools); /* but no tool may be used, says the loader */
    rv_bundle_free(b);
}
END_TEST

/* Cut or changed anywhere, it opens or is refused, and never anything else. */
START_TEST(no_damage_is_more_than_an_error)
{
    static const char bytes[] = {'"', '{', '}', ':', '0', 'x', '\\', ' '};
    const struct rv_bundle_opts opts = {.offline = true};
    struct world w;
    char *text;
    size_t len, n_refused = 0;

    world_load(&w, RV_SOURCE_DIR "/pipelines/policies.yaml");
    text = world_bundle(&w, NULL);
    len = strlen(text);
    for (size_t i = 0; i < len; i += 7) {
        char kept = text[i];
        rv_bundle *b = NULL;
        rv_err *err = NULL;
        text[i] = bytes[i % sizeof bytes];
        int rc = rv_bundle_open((rv_str){text, i % 2 ? len : i}, &opts, &b, &err);
        ck_assert((rc == 0) == (b != NULL) && (rc < 0) == (err != NULL));
        n_refused += rc < 0;
        rv_bundle_free(b);
        rv_err_free(err);
        text[i] = kept;
    }
    ck_assert_uint_gt(n_refused, 100);
    free(text);
    world_fini(&w);
}
END_TEST

Suite *broken_suite(void)
{
    Suite *suite = suite_create("bundle_broken");
    TCase *tc = tcase_create("broken");

    tcase_add_loop_test(tc, a_broken_bundle_says_what_is_wrong, 0, RV_COUNT(broken));
    tcase_add_test(tc, the_smallest_bundle_opens);
    tcase_add_test(tc, a_warning_keeps_no_bundle_closed);
    tcase_add_test(tc, no_damage_is_more_than_an_error);
    suite_add_tcase(suite, tc);
    return suite;
}
