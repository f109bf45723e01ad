/* A pipeline made again from its texts alone: no file is read, nothing is guessed. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/config/world.h"

static const char files_text[] = "name: t\nagents: [{name: a}]\n"
                                 "prompts: {x: {file: x.md}, y: {file: sub/y.md}, again: {file: x.md}}\n"
                                 "tests: [{name: one, script: nowhere.yaml, expect: {status: completed}}]\n";

/* Files in memory, and how often each was asked for. */
struct files {
    const char *paths[2];
    rv_str texts[2];
    int asked[2];
};

static bool find_file(void *self, const char *path, rv_str *out)
{
    struct files *f = self;

    for (size_t i = 0; i < RV_COUNT(f->paths); i++) {
        if (strcmp(path, f->paths[i]) != 0)
            continue;
        f->asked[i]++;
        *out = f->texts[i];
        return out->ptr != NULL;
    }
    return false;
}

static struct files some_files(void)
{
    return (struct files){.paths = {"d/x.md", "d/sub/y.md"}, .texts = {RV_STR_LIT("X {{user_id}}"), RV_STR_LIT("")}};
}

static struct rv_pipeline *parse(const char *text, const struct rv_pipeline_opts *opts, char **findings)
{
    rv_findings *f = rv_findings_new();
    rv_buf said = RV_BUF_INIT(1 << 20);
    struct rv_pipeline *p = NULL;

    ck_assert_int_eq(
        rv_pipeline_parse_with(&(const struct rv_pipeline_source){rv_str_of(text), "d/t.yaml", "d"}, opts, f, &p, NULL),
        0);
    rv_findings_write_text(f, false, &said);
    rv_buf_puts(&said, "\n");
    *findings = rv_buf_steal(&said, NULL);
    rv_findings_free(f);
    return p;
}

START_TEST(files_come_from_whoever_has_them)
{
    struct files files = some_files();
    const struct rv_pipeline_opts opts = {.file = find_file, .self = &files};
    char *said;
    struct rv_pipeline *p = parse(files_text, &opts, &said);
    size_t n;
    const struct rv_text_file *kept = rv_pipeline_files(p, &n);

    ck_assert_str_eq(said, "\n"); /* not even that the test's script is missing */
    ck_assert_int_eq(files.asked[0], 1);
    ck_assert_int_eq(files.asked[1], 1);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(kept[0].path, "d/x.md");
    ck_assert(rv_str_is(kept[0].text, "X {{user_id}}"));
    ck_assert_str_eq(kept[1].path, "d/sub/y.md");
    ck_assert_uint_eq(kept[1].text.len, 0);
    ck_assert(rv_str_is(rv_pipeline_text(p), files_text));
    ck_assert_uint_eq(rv_template_n_placeholders(rv_pipeline_find_prompt(p, RV_STR_LIT("again"))->compiled), 1);
    ck_assert(rv_str_is(rv_template_text(rv_pipeline_find_prompt(p, RV_STR_LIT("x"))->compiled), "X {{user_id}}"));
    rv_pipeline_free(p);
    free(said);
}
END_TEST

/* As in texts that stand in the file itself; a text that a run was begun with stays as it is. */
START_TEST(a_file_with_line_ends_of_windows_has_those_of_yaml)
{
    static const char text[] = "a\r\n{{#user_id}}\r\nb\rc\r\n{{/user_id}}\r\n";
    static const char lines[] = "name: t\nagents: [{name: a}]\nprompts: {x: {file: x.md}}\n";
    const struct rv_pipeline_opts of_disk = {.file = NULL};
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "x.md");
    rv_findings *f = rv_findings_new();
    struct rv_pipeline *p = NULL;

    rv_kit_write(path, text);
    free(path);
    ck_assert_int_eq(rv_pipeline_parse_with(&(const struct rv_pipeline_source){rv_str_of(lines), "t.yaml", dir},
                                            &of_disk, f, &p, NULL),
                     0);
    ck_assert_str_eq(rv_template_text(rv_pipeline_find_prompt(p, RV_STR_LIT("x"))->compiled).ptr,
                     "a\n{{#user_id}}\nb\rc\n{{/user_id}}\n");
    rv_pipeline_free(p);
    rv_findings_free(f);
    rv_kit_tmpdir_remove(dir);
    struct files files = some_files();
    const struct rv_pipeline_opts opts = {.file = find_file, .self = &files};
    files.texts[0] = rv_str_of(text);
    p = parse(lines, &opts, &path);
    ck_assert_str_eq(rv_template_text(rv_pipeline_find_prompt(p, RV_STR_LIT("x"))->compiled).ptr, text);
    rv_pipeline_free(p);
    free(path);
}
END_TEST

static char too_large[((size_t)1 << 20) + 1];
static const struct {
    rv_str text;
    const char *says;
} bad_files[] = {
    {{NULL, 0}, "prompt \"x\": there is no \"d/x.md\""},
    {{"a\0b", 3}, "prompt \"x\": \"d/x.md\" is not UTF-8 text"},
    {{"\xff", 1}, "prompt \"x\": \"d/x.md\" is not UTF-8 text"},
    {{too_large, sizeof too_large}, "prompt \"x\": \"d/x.md\" has 1048577 bytes (the limit is 1048576)"},
    {{"{{open", 6}, "d/x.md:1:1: error: prompt \"x\""},
};

START_TEST(a_file_from_memory_is_checked_like_one_of_the_disk)
{
    struct files files = some_files();
    const struct rv_pipeline_opts opts = {.file = find_file, .self = &files};
    char *said;

    memset(too_large, 'x', sizeof too_large);
    files.texts[0] = bad_files[_i].text;
    struct rv_pipeline *p = parse(files_text, &opts, &said);
    ck_assert_msg(strstr(said, bad_files[_i].says), "%s", said);
    ck_assert(p && !p->is_sound);
    rv_pipeline_free(p);
    free(said);
}
END_TEST

static const char models_text[] = "name: t\nagents: [{name: a, has_llm: true, model_role: gone}]\n"
                                  "models:\n  kept: {model: 'p:m', optional: true, proxy: '${env:RV_TEXTS_NONE}'}\n"
                                  "  gone: {model: 'p:m', optional: true}\n"
                                  "  named: '${env:RV_TEXTS_NONE}'\n  half: 'p:${file:none}'\n"
                                  "  plain: 'p:${env:RV_TEXTS_SET}'\n";

START_TEST(what_was_chosen_stands_whatever_the_environment_says)
{
    static const struct rv_chosen_model chosen[] = {{.role = "gone"},
                                                    {.role = "named", .provider = "openai", .model = "big"}};
    const struct rv_pipeline_opts opts = {.models = chosen, .n_models = RV_COUNT(chosen), .offline = true};
    char *said;
    size_t n;

    unsetenv("RV_TEXTS_NONE");
    setenv("RV_TEXTS_SET", "m", 1);
    struct rv_pipeline *p = parse(models_text, &opts, &said);
    ck_assert_str_eq(said, "\n");
    ck_assert_ptr_null(rv_pipeline_find_model(p, RV_STR_LIT("gone")));
    ck_assert_ptr_nonnull(rv_pipeline_find_model(p, RV_STR_LIT("kept")));
    ck_assert_str_eq(rv_pipeline_find_model(p, RV_STR_LIT("named"))->provider, "openai");
    ck_assert_str_eq(rv_pipeline_find_model(p, RV_STR_LIT("named"))->model, "big");
    ck_assert_str_eq(rv_pipeline_find_model(p, RV_STR_LIT("half"))->provider, "p"); /* as far as it can be known */
    ck_assert_str_eq(rv_pipeline_find_model(p, RV_STR_LIT("half"))->model, "");
    ck_assert_str_eq(rv_pipeline_find_model(p, RV_STR_LIT("plain"))->model, "m");
    const struct rv_chosen_model *again = rv_pipeline_chosen_models(p, &n);
    ck_assert_uint_eq(n, 4);
    ck_assert_str_eq(again[0].role, "gone");
    ck_assert_ptr_null(again[0].provider);
    ck_assert_str_eq(again[1].role, "named");
    ck_assert_str_eq(again[1].model, "big");
    rv_pipeline_free(p);
    free(said);
}
END_TEST

START_TEST(without_a_choice_the_environment_says)
{
    const struct rv_pipeline_opts opts = {.file = NULL};
    char *said;

    unsetenv("RV_TEXTS_NONE");
    struct rv_pipeline *p = parse(
        "name: t\nagents: [{name: a}]\nmodels:\n  kept: {model: 'p:m', optional: true, proxy: '${env:RV_TEXTS_NONE}'}\n"
        "  other: {model: 'p:m'}\n",
        &opts, &said);
    size_t n;
    const struct rv_chosen_model *chosen = rv_pipeline_chosen_models(p, &n);
    ck_assert_str_eq(said, "\n");
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(chosen[0].role, "kept");
    ck_assert_ptr_null(chosen[0].provider);
    rv_pipeline_free(p);
    free(said);
}
END_TEST

TCase *texts_case(void)
{
    TCase *tc = tcase_create("texts");

    tcase_add_test(tc, files_come_from_whoever_has_them);
    tcase_add_test(tc, a_file_with_line_ends_of_windows_has_those_of_yaml);
    tcase_add_loop_test(tc, a_file_from_memory_is_checked_like_one_of_the_disk, 0, RV_COUNT(bad_files));
    tcase_add_test(tc, what_was_chosen_stands_whatever_the_environment_says);
    tcase_add_test(tc, without_a_choice_the_environment_says);
    return tc;
}
