/* The catalog and the script out of a bundle answer as those that went in. */
#include "tests/unit/bundle/world.h"

#include <stdlib.h>
#include <string.h>

START_TEST(the_catalog_answers_as_before)
{
    struct world w;
    char *text;

    world_load(&w, RV_SOURCE_DIR "/pipelines/ask-docs.yaml");
    struct rv_capability_config more[] = {{.name = "hello"}, {.name = "guard"}};
    for (size_t i = 0; i < RV_COUNT(more); i++)
        ck_assert_int_eq(rv_plugins_load(w.plugins, &more[i], NULL), 0);
    text = world_bundle(&w, NULL);
    rv_bundle *b = world_open(text, true);
    struct rv_catalog catalog = rv_bundle_catalog(b);
    struct rv_known_names names = rv_plugins_names(w.plugins);
    size_t n;
    names.list(names.self, RV_NAME_TOOL, &n);
    ck_assert_uint_gt(n, 4); /* there is something to compare */
    world_same_catalog(&w.catalog, &catalog, &names);
    ck_assert_ptr_null(rv_bundle_script(b));
    rv_bundle_free(b);
    free(text);
    world_fini(&w);
}
END_TEST

/* --- A catalog with everything that capabilities may declare. --- */

struct made {
    struct rv_tool_info tools[2];
    rv_schema *schemas[3];
    struct rv_entry_info entries[3];
    rv_template *prompt;
};
static const char *const made_tools[] = {"bare", "full"};
static const char *const made_hooks[] = {"c.one", "c.two"};
static const char *const made_probes[] = {"full"};
static const char *const made_prompts[] = {"c.p"};

static const struct rv_tool_info *made_tool(void *self, rv_str name)
{
    struct made *m = self;
    return rv_str_is(name, "bare") ? &m->tools[0] : rv_str_is(name, "full") ? &m->tools[1] : NULL;
}

static const struct rv_entry_info *made_entry(void *self, enum rv_name_kind kind, rv_str name)
{
    struct made *m = self;
    for (size_t i = 0; i < RV_COUNT(m->entries); i++)
        if (m->entries[i].kind == kind && rv_str_is(name, m->entries[i].name))
            return &m->entries[i];
    return NULL;
}

static const rv_template *made_prompt(void *self, rv_str key)
{
    struct made *m = self;
    return rv_str_is(key, "c.p") ? m->prompt : NULL;
}

static const char *const *made_names(void *self, enum rv_name_kind kind, size_t *n)
{
    (void)self;
    *n = kind == RV_NAME_TOOL || kind == RV_NAME_HOOK ? 2 : kind == RV_NAME_PROBE || kind == RV_NAME_PROMPT ? 1 : 0;
    return kind == RV_NAME_TOOL    ? made_tools
           : kind == RV_NAME_HOOK  ? made_hooks
           : kind == RV_NAME_PROBE ? made_probes
                                   : made_prompts;
}

static void made_begin(struct made *m)
{
    static const char *sees[] = {"raw_input", "outputs.plan"};

    *m = (struct made){.tools = {{.name = "bare", .category = RV_UNSET, .risk = RV_UNSET, .effect = RV_UNSET},
                                 {.name = "full",
                                  .description = "all \"of\" it",
                                  .category = RV_CATEGORY_NETWORK,
                                  .risk = RV_RISK_CRITICAL,
                                  .effect = RV_EFFECT_IDEMPOTENT,
                                  .timeout_ms = 1500,
                                  .has_probe = true}},
                       .entries = {{.name = "c.one", .kind = RV_NAME_HOOK, .sees = {.is_set = true}},
                                   {.name = "c.two", .kind = RV_NAME_HOOK, .timeout_ms = 7},
                                   {.name = "full", .kind = RV_NAME_PROBE, .sees = {sees, NULL, 2, true}}}};
    m->tools[1].input_json = rv_kit_json("{'properties': {'zz': {'minimum': 1e2}, 'aa': {'type': 'string'}}}");
    m->tools[1].output_json = rv_kit_json("true");
    ck_assert_int_eq(rv_schema_compile(m->tools[1].input_json, "input_schema", &m->schemas[0], NULL), 0);
    ck_assert_int_eq(rv_schema_compile(m->tools[1].output_json, "output_schema", &m->schemas[1], NULL), 0);
    ck_assert_int_eq(rv_template_compile(RV_STR_LIT("Hi {{user_id}} \\{{x"), NULL, &m->prompt, NULL), 0);
    m->tools[1].input = m->schemas[0];
    m->tools[1].output = m->schemas[1];
}

static void made_fini(struct made *m)
{
    rv_schema_free(m->schemas[0]);
    rv_schema_free(m->schemas[1]);
    json_object_put(m->tools[1].input_json);
    json_object_put(m->tools[1].output_json);
    rv_template_free(m->prompt);
}

START_TEST(all_that_can_be_declared_is_kept)
{
    struct made m;
    struct world w;
    rv_buf text = RV_BUF_INIT(1 << 20);

    made_begin(&m);
    world_parse(&w, "name: t\nagents: [{name: a}]\n", ".");
    const struct rv_catalog catalog = {.tool = made_tool, .entry = made_entry, .prompt = made_prompt, .self = &m};
    const struct rv_known_names names = {.list = made_names, .self = NULL};
    const struct rv_bundle_source from = {.pipeline = w.pipeline, .catalog = &catalog, .names = &names};
    ck_assert_int_eq(rv_bundle_write(&from, &text, NULL, NULL), 0);
    rv_bundle *b = world_open(rv_buf_cstr(&text), true);
    struct rv_catalog got = rv_bundle_catalog(b);
    world_same_catalog(&catalog, &got, &names);
    rv_bundle_free(b);
    rv_buf_fini(&text);
    world_fini(&w);
    made_fini(&m);
}
END_TEST

/* --- Scripts --- */

static const char script_text[] = "models:\n  a:\n    - {json: {x: 1}}\n    - {text: two}\n"
                                  "tools:\n  lookup: {description: Look., risk: write, input_schema: {type: object},"
                                  " calls: [{result: {n: 1}}]}\n  write_file: [{result: {}}]\n"
                                  "answers: [{text: yes}]\n";

START_TEST(a_script_comes_out_at_its_first_entries)
{
    struct world w;
    struct rv_script_reply reply;
    const struct rv_script_call call = {.kind = RV_SCRIPT_MODEL, .stage = "a", .visit = 1};
    char *text;

    world_parse(&w, "name: t\nmodels: {m: scripted}\nagents: [{name: a, has_llm: true, model_role: m}]\n", ".");
    world_script_text(&w, script_text);
    ck_assert_int_eq(rv_script_next(w.script, &call, &reply, NULL), 0); /* the original's are used up meanwhile */
    rv_script_reply_fini(&reply);
    text = world_bundle(&w, NULL);
    rv_bundle *b = world_open(text, true);
    ck_assert_int_eq(rv_script_next(rv_bundle_script(b), &call, &reply, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&reply.body), "{\"x\":1}");
    rv_script_reply_fini(&reply);
    rv_bundle_free(b);
    free(text);
    world_fini(&w);
}
END_TEST

static const char *const *script_names(void *self, enum rv_name_kind kind, size_t *n)
{
    *n = 0;
    return kind == RV_NAME_TOOL ? rv_script_tool_names(self, n) : NULL;
}

START_TEST(tools_of_the_script_are_in_the_catalog)
{
    struct world w;
    char *text;

    world_load(&w, RV_SOURCE_DIR "/pipelines/ask-docs.yaml"); /* which has a write_file of its own, or has not */
    world_script_text(&w, script_text);
    text = world_bundle(&w, NULL);
    rv_bundle *b = world_open(text, true);
    struct rv_catalog got = rv_bundle_catalog(b);
    const struct rv_known_names names = {.list = script_names, .self = w.script};
    world_same_catalog(&w.catalog, &got, &names);
    struct rv_catalog again = rv_script_catalog(rv_bundle_script(b), &got); /* as a caller may do */
    world_same_catalog(&w.catalog, &again, &names);
    again = rv_script_catalog(rv_bundle_script(b), &again);
    world_same_catalog(&w.catalog, &again, &names);
    rv_bundle_free(b);
    free(text);
    world_fini(&w);
}
END_TEST

/* Whoever lists them among the names of capabilities gets the same bundle: they are kept as the script's text. */
START_TEST(tools_of_the_script_are_not_kept_twice)
{
    struct world w;
    rv_buf out = RV_BUF_INIT(1 << 20);
    char *want;

    world_parse(&w, "name: t\nagents: [{name: a}]\n", ".");
    world_script_text(&w, script_text);
    want = world_bundle(&w, NULL);
    const struct rv_known_names names = {.list = script_names, .self = w.script};
    const struct rv_bundle_source from = {w.pipeline, &w.catalog, &names, w.script, NULL, NULL};
    ck_assert_int_eq(rv_bundle_write(&from, &out, NULL, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), want);
    ck_assert_ptr_nonnull(strstr(want, "\"tools\":{}"));
    rv_buf_fini(&out);
    free(want);
    world_fini(&w);
}
END_TEST

START_TEST(a_bundle_of_what_came_out_is_the_same_bundle)
{
    struct world w;
    char hash[RV_HASH_MAX], again[RV_HASH_MAX], *text;
    rv_buf second = RV_BUF_INIT(1 << 20);

    world_load(&w, RV_SOURCE_DIR "/pipelines/ask-docs.yaml");
    world_script_text(&w, script_text);
    text = world_bundle(&w, hash);
    rv_bundle *b = world_open(text, true);
    struct rv_catalog catalog = rv_bundle_catalog(b);
    struct rv_known_names names = rv_plugins_names(w.plugins);
    const struct rv_bundle_source from = {rv_bundle_pipeline(b), &catalog, &names, rv_bundle_script(b), NULL, NULL};
    ck_assert_int_eq(rv_bundle_write(&from, &second, again, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&second), text);
    ck_assert_str_eq(hash, again);
    rv_buf_fini(&second);
    rv_bundle_free(b);
    free(text);
    world_fini(&w);
}
END_TEST

Suite *catalog_suite(void)
{
    Suite *suite = suite_create("bundle_catalog");
    TCase *tc = tcase_create("catalog");

    tcase_add_test(tc, the_catalog_answers_as_before);
    tcase_add_test(tc, all_that_can_be_declared_is_kept);
    tcase_add_test(tc, a_script_comes_out_at_its_first_entries);
    tcase_add_test(tc, tools_of_the_script_are_in_the_catalog);
    tcase_add_test(tc, tools_of_the_script_are_not_kept_twice);
    tcase_add_test(tc, a_bundle_of_what_came_out_is_the_same_bundle);
    suite_add_tcase(suite, tc);
    return suite;
}
