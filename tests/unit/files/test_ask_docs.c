/* pipelines/ask-docs.yaml: it loads without a finding, names only what its capabilities have, and its stages, called in
 * their order on the project's own documents, end in quotes that are in the files at the lines they name. */
#include "tests/unit/files/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char pipeline_path[] = RV_SOURCE_DIR "/pipelines/ask-docs.yaml";

struct world {
    struct rv_pipeline *pipeline;
    rv_findings *findings;
    struct sandbox s;
    json_object *outputs; /* by stage, as the run would keep them */
};

static const char *findings_text(const rv_findings *findings)
{
    static char text[8192];
    rv_buf b = RV_BUF_INIT(sizeof text - 1);

    rv_findings_write_text(findings, false, &b);
    snprintf(text, sizeof text, "%s", rv_buf_cstr(&b));
    rv_buf_fini(&b);
    return text;
}

/* What the capabilities have, and one provider of models, which the engine itself brings. */
static const char *const *list_known(void *self, enum rv_name_kind kind, size_t *n)
{
    static const char *const providers[] = {"openai"};
    struct rv_known_names known = rv_plugins_names(self);

    if (kind != RV_NAME_PROVIDER)
        return known.list(known.self, kind, n);
    *n = RV_COUNT(providers);
    return providers;
}

static void world_begin(struct world *w)
{
    static const char *const dirs[] = {CAPABILITY_DIR};
    const struct rv_plugins_opts opts = {dirs, 1, RV_SOURCE_DIR "/pipelines", NULL, NULL, NULL};
    struct rv_known_names known = {.list = list_known, .self = NULL};

    memset(w, 0, sizeof *w);
    w->findings = rv_findings_new();
    ck_assert_int_eq(rv_pipeline_load(pipeline_path, w->findings, &w->pipeline, NULL), 0);
    ck_assert_int_eq(rv_plugins_new(&opts, &w->s.plugins, NULL), 0);
    ck_assert_int_eq(rv_plugins_load_all(w->s.plugins, w->pipeline, w->findings, NULL), 0);
    known.self = w->s.plugins;
    rv_pipeline_check_names(w->pipeline, &known, w->findings);
    rv_buf_init(&w->s.reply, (size_t)16 << 20);
    w->outputs = json_object_new_object();
}

static void world_end(struct world *w)
{
    rv_plugins_free(w->s.plugins);
    rv_pipeline_free(w->pipeline);
    rv_findings_free(w->findings);
    rv_buf_fini(&w->s.reply);
    json_object_put(w->s.json);
    json_object_put(w->outputs);
    rv_err_free(w->s.err);
}

/* A hook of a service stage: sees the outputs so far, gives the output of its stage. */
static void run_hook(struct world *w, const char *hook, const char *question, int iteration, const char *key)
{
    json_object *args = json_object_new_object(), *envelope = json_object_new_object();
    rv_buf text = RV_BUF_INIT((size_t)16 << 20);

    ck_assert_int_eq(rv_json_set_text(envelope, "raw_input", question, NULL), 0);
    ck_assert_int_eq(rv_json_set_int(envelope, "iteration", iteration, NULL), 0);
    ck_assert_int_eq(rv_json_set_ref(envelope, "outputs", w->outputs, NULL), 0);
    ck_assert_int_eq(rv_json_set_take(args, "envelope", envelope, NULL), 0);
    rv_json_write(args, &text);
    sandbox_ask(&w->s, hook, rv_buf_cstr(&text));
    ck_assert_int_eq(rv_json_set_ref(w->outputs, key, at(w->s.json, "output"), NULL), 0);
    rv_buf_fini(&text);
    json_object_put(args);
}

/* A tool stage: each step of the plan. */
static void run_tools(struct world *w, const char *plan, const char *key)
{
    json_object *steps = at(at(w->outputs, plan), "steps"), *results = json_object_new_array();
    json_object *output = json_object_new_object();

    for (size_t i = 0; i < json_object_array_length(steps); i++) {
        json_object *step = json_object_array_get_idx(steps, i), *result = json_object_new_object();
        rv_buf text = RV_BUF_INIT((size_t)1 << 20);
        const struct rv_tool_info *tool;
        struct rv_catalog catalog = rv_plugins_catalog(w->s.plugins);

        rv_json_write(at(step, "parameters"), &text);
        tool = catalog.tool(catalog.self, rv_str_of(text_at(step, "tool")));
        ck_assert_ptr_nonnull(tool);
        ck_assert_int_eq(rv_schema_check(tool->input, at(step, "parameters"), NULL), 0);
        sandbox_ask(&w->s, text_at(step, "tool"), rv_buf_cstr(&text));
        ck_assert_int_eq(rv_json_set_ref(result, "data", w->s.json, NULL), 0);
        ck_assert_int_eq(rv_json_push_take(results, result, NULL), 0);
        rv_buf_fini(&text);
    }
    ck_assert_int_eq(rv_json_set_take(output, "results", results, NULL), 0);
    ck_assert_int_eq(rv_json_set_take(w->outputs, key, output, NULL), 0);
}

/* The pipeline's route, by hand. Returns the answer stage's output. */
static json_object *ask(struct world *w, const char *question)
{
    for (int iteration = 0;; iteration++) {
        ck_assert_int_lt(iteration, 3); /* the edge limit would end the run */
        run_hook(w, "files.plan_search", question, iteration, "plan");
        run_tools(w, "plan", "search");
        run_hook(w, "files.judge_coverage", question, iteration, "judge");
        if (strcmp(text_at(w->outputs, "judge.verdict"), "loop_back") != 0)
            break;
    }
    if (strcmp(text_at(w->outputs, "judge.verdict"), "proceed") == 0)
        run_tools(w, "judge", "read");
    run_hook(w, "files.write_answer", question, 0, "answer");
    return at(w->outputs, "answer");
}

/* Lines first..last of a file, trimmed and joined by one blank. */
static void lines_of(const char *path, int64_t first, int64_t last, rv_buf *out)
{
    char full[512];
    rv_buf text = RV_BUF_INIT((size_t)4 << 20);
    const char *line;

    snprintf(full, sizeof full, "%s/%s", RV_SOURCE_DIR, path);
    ck_assert_int_eq(rv_file_read(full, &text, NULL), 0);
    line = rv_buf_cstr(&text);
    for (int64_t n = 1; n <= last; n++) {
        size_t len = strcspn(line, "\n");
        if (n > first)
            rv_buf_putc(out, ' ');
        if (n >= first)
            rv_buf_add_str(out, rv_str_trim((rv_str){line, len}));
        line += len + (line[len] == '\n');
    }
    rv_buf_fini(&text);
}

START_TEST(the_pipeline_loads_without_a_finding)
{
    struct world w;

    unsetenv("REEVE_MODEL");
    world_begin(&w);
    ck_assert_msg(rv_findings_n(w.findings) == 0, "%s", findings_text(w.findings));
    ck_assert(w.pipeline->is_sound);
    world_end(&w);
}
END_TEST

START_TEST(with_a_model_configured_it_loads_too)
{
    struct world w;

    setenv("REEVE_MODEL", "openai:any", 1);
    world_begin(&w);
    ck_assert_msg(rv_findings_n(w.findings) == 0, "%s", findings_text(w.findings));
    ck_assert_ptr_nonnull(rv_pipeline_find_model(w.pipeline, RV_STR_LIT("writer")));
    world_end(&w);
}
END_TEST

static const char *const questions[] = {
    "Which tests run under the sanitizers?",
    "Where does a module have its public header?",
    "How do I add a plugin or a fuzz target?",
    "Which operators does an expression have?",
    "What happens to a placeholder without a value in a template?",
};

START_TEST(every_quote_is_in_its_file_at_its_line)
{
    struct world w;
    json_object *answer, *quotes;

    world_begin(&w);
    answer = ask(&w, questions[_i]);
    quotes = at(answer, "quotes");
    ck_assert_msg(json_object_array_length(quotes) >= 2, "%s", text_at(answer, "final_response"));
    for (size_t i = 0; i < json_object_array_length(quotes); i++) {
        json_object *quote = json_object_array_get_idx(quotes, i);
        rv_buf want = RV_BUF_INIT(65536), shown = RV_BUF_INIT(65536);
        lines_of(text_at(quote, "path"), int_at(quote, "line"), int_at(quote, "end_line"), &want);
        ck_assert_str_eq(text_at(quote, "text"), rv_buf_cstr(&want));
        rv_buf_printf(&shown, "%s:%d: \"%s\"", text_at(quote, "path"), (int)int_at(quote, "line"), rv_buf_cstr(&want));
        ck_assert_ptr_nonnull(strstr(text_at(answer, "final_response"), rv_buf_cstr(&shown)));
        rv_buf_fini(&want);
        rv_buf_fini(&shown);
    }
    world_end(&w);
}
END_TEST

static const char *const nonsense[] = {
    "Which okapis sing purple operas?",
    "Do colorless green ideas sleep furiously?",
    "Who won the football championship of 1998?",
};

START_TEST(nonsense_is_answered_by_nothing_found)
{
    struct world w;
    json_object *answer;

    world_begin(&w);
    answer = ask(&w, nonsense[_i]);
    ck_assert_msg(strstr(text_at(answer, "final_response"), "Nothing was found") != NULL, "%s",
                  text_at(answer, "final_response"));
    ck_assert_uint_eq(json_object_array_length(at(answer, "quotes")), 0);
    world_end(&w);
}
END_TEST

TCase *ask_docs_case(void)
{
    TCase *tc = tcase_create("ask_docs");

    tcase_add_test(tc, the_pipeline_loads_without_a_finding);
    tcase_add_test(tc, with_a_model_configured_it_loads_too);
    tcase_add_loop_test(tc, every_quote_is_in_its_file_at_its_line, 0, RV_COUNT(questions));
    tcase_add_loop_test(tc, nonsense_is_answered_by_nothing_found, 0, RV_COUNT(nonsense));
    return tc;
}
