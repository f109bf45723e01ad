/* The same things give the same bytes, other things others, and no secret is among them. */
#include "tests/unit/bundle/world.h"

#include <stdlib.h>
#include <string.h>

static const char pipeline_text[] =
    "name: t\n"
    "models:\n"
    "  default: {model: 'openai:gpt', api_key: '${env:RV_BUNDLE_KEY}', headers: {x: 'Bearer ${file:key.txt}'}}\n"
    "  extra: {model: '${env:RV_BUNDLE_MODEL}', optional: true}\n"
    "capabilities: [hello]\n"
    "agents:\n"
    "  - {name: a, has_llm: true, model_role: default, prompt_key: zeta, default_next: b}\n"
    "  - {name: b, has_llm: true, model_role: default, prompt_key: alpha}\n"
    "prompts:\n"
    "  zeta: {file: zeta.md}\n"
    "  alpha: {file: alpha.md}\n"
    "  again: {file: zeta.md}\n";
static const char script_text[] = "models: {a: [{json: {}}]}\ntools: {lookup: [{result: {}}]}\n";

#define KEY      "s3cr3t-of-the-environment"
#define FILE_KEY "s3cr3t-of-a-file"

struct disk {
    char *dir;
};

static void put(const struct disk *d, const char *name, const char *text)
{
    char *path = rv_kit_path(d->dir, name);

    rv_kit_write(path, text);
    free(path);
}

static void disk_begin(struct disk *d)
{
    d->dir = rv_kit_tmpdir();
    put(d, "p.yaml", pipeline_text);
    put(d, "zeta.md", "Do {{raw_input}}.\n");
    put(d, "alpha.md", "Say it.");
    put(d, "key.txt", FILE_KEY "\n");
    setenv("RV_BUNDLE_KEY", KEY, 1);
    unsetenv("RV_BUNDLE_MODEL");
}

/* The hash and, if wanted, the text (free() it) of what stands on the disk now. */
static char *bundle_of(const struct disk *d, const char *script, char hash[RV_HASH_MAX])
{
    struct world w;
    char *path = rv_kit_path(d->dir, "p.yaml"), *text;

    world_load(&w, path);
    if (script)
        world_script_text(&w, script);
    text = world_bundle(&w, hash);
    world_fini(&w);
    free(path);
    return text;
}

START_TEST(the_same_things_give_the_same_bytes)
{
    struct disk d;
    char first[RV_HASH_MAX], second[RV_HASH_MAX], of_text[RV_HASH_MAX];
    char *a, *b;

    disk_begin(&d);
    a = bundle_of(&d, script_text, first);
    unsetenv("RV_BUNDLE_KEY"); /* variables come and go, in another order */
    setenv("RV_BUNDLE_OTHER", "1", 1);
    setenv("RV_BUNDLE_KEY", "another value", 1);
    b = bundle_of(&d, script_text, second);
    ck_assert_str_eq(a, b);
    ck_assert_str_eq(first, second);
    rv_hash_format(rv_str_of(a), of_text);
    ck_assert_str_eq(first, of_text);
    free(a);
    free(b);
    rv_kit_tmpdir_remove(d.dir);
}
END_TEST

START_TEST(files_are_sorted_and_each_is_there_once)
{
    struct disk d;
    char *text, *zeta, *alpha;

    disk_begin(&d);
    text = bundle_of(&d, NULL, NULL);
    alpha = strstr(text, "alpha.md\":\"Say it.\"");
    zeta = strstr(text, "zeta.md\":\"Do {{raw_input}}.\\n\"");
    ck_assert_ptr_nonnull(alpha);
    ck_assert_ptr_nonnull(zeta);
    ck_assert_msg(alpha < zeta, "%s", text);
    ck_assert_ptr_null(strstr(zeta + 1, "zeta.md\":\"Do"));
    free(text);
    rv_kit_tmpdir_remove(d.dir);
}
END_TEST

static const struct {
    const char *file, *from, *to;
} changes[] = {
    {"zeta.md", "Do", "Please do"},
    {"alpha.md", ".", "!"},
    {"p.yaml", "default_next: b", "default_next: end"},
    {"p.yaml", "name: t\n", "name: t\n# a remark moves every place in messages\n"},
    {"p.yaml", "[hello]", "[guard]"}, /* another catalog */
};

START_TEST(any_change_gives_another_hash)
{
    struct disk d;
    char before[RV_HASH_MAX], after[RV_HASH_MAX];
    char *path, *old, *now;

    disk_begin(&d);
    free(bundle_of(&d, NULL, before));
    path = rv_kit_path(d.dir, changes[_i].file);
    old = rv_kit_read(path);
    now = replaced(old, changes[_i].from, changes[_i].to);
    rv_kit_write(path, now);
    free(bundle_of(&d, NULL, after));
    ck_assert_str_ne(before, after);
    free(path);
    free(old);
    free(now);
    rv_kit_tmpdir_remove(d.dir);
}
END_TEST

START_TEST(a_script_is_part_of_the_hash)
{
    struct disk d;
    char none[RV_HASH_MAX], one[RV_HASH_MAX], other[RV_HASH_MAX];

    disk_begin(&d);
    free(bundle_of(&d, NULL, none));
    free(bundle_of(&d, script_text, one));
    free(bundle_of(&d, "models: {a: [{json: {x: 1}}]}\n", other));
    ck_assert_str_ne(none, one);
    ck_assert_str_ne(one, other);
    rv_kit_tmpdir_remove(d.dir);
}
END_TEST

START_TEST(which_optional_roles_there_are_is_part_of_the_hash)
{
    struct disk d;
    char without[RV_HASH_MAX], with[RV_HASH_MAX], other[RV_HASH_MAX];
    char *text;

    disk_begin(&d);
    text = bundle_of(&d, NULL, without);
    ck_assert_ptr_nonnull(strstr(text, "\"models\":{\"extra\":null}"));
    free(text);
    setenv("RV_BUNDLE_MODEL", "openai:big", 1);
    text = bundle_of(&d, NULL, with);
    ck_assert_ptr_nonnull(strstr(text, "\"models\":{\"extra\":{\"provider\":\"openai\",\"model\":\"big\"}}"));
    free(text);
    setenv("RV_BUNDLE_MODEL", "openai:small", 1);
    free(bundle_of(&d, NULL, other));
    ck_assert_str_ne(without, with);
    ck_assert_str_ne(with, other);
    rv_kit_tmpdir_remove(d.dir);
}
END_TEST

START_TEST(secrets_are_never_in_it)
{
    static const char with_config[] =
        "name: t\nagents: [{name: a}]\n"
        "capabilities: [{name: c, config: {a: '${env:RV_BUNDLE_KEY}', b: ['${file:key.txt}']}}]\n";
    struct disk d;
    struct world w;
    char *text;

    disk_begin(&d);
    text = bundle_of(&d, script_text, NULL);
    ck_assert_ptr_nonnull(strstr(text, "${env:RV_BUNDLE_KEY}"));
    ck_assert_ptr_nonnull(strstr(text, "${file:key.txt}"));
    ck_assert_ptr_null(strstr(text, KEY));
    ck_assert_ptr_null(strstr(text, FILE_KEY));
    free(text);
    world_parse(&w, with_config, d.dir);
    ck_assert_ptr_nonnull(strstr(json_object_get_string(w.pipeline->capabilities[0].config), KEY));
    text = world_bundle(&w, NULL);
    ck_assert_ptr_null(strstr(text, KEY));
    ck_assert_ptr_null(strstr(text, FILE_KEY));
    free(text);
    world_fini(&w);
    rv_kit_tmpdir_remove(d.dir);
}
END_TEST

START_TEST(a_bundle_is_appended)
{
    struct world w;
    rv_buf out = RV_BUF_INIT(1 << 20);
    char hash[RV_HASH_MAX], want[RV_HASH_MAX];
    char *text;

    world_parse(&w, "name: t\nagents: [{name: a}]\n", ".");
    const struct rv_bundle_source from = {.pipeline = w.pipeline, .catalog = &w.catalog};
    text = world_bundle(&w, want);
    rv_buf_puts(&out, "before ");
    ck_assert_int_eq(rv_bundle_write(&from, &out, hash, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out) + strlen("before "), text);
    ck_assert_str_eq(hash, want);
    rv_buf_fini(&out);
    free(text);
    world_fini(&w);
}
END_TEST

START_TEST(what_does_not_fit_leaves_nothing_behind)
{
    struct world w;
    rv_buf out = RV_BUF_INIT(100);
    rv_err *err = NULL;

    world_parse(&w, "name: t\nagents: [{name: a}]\n", ".");
    const struct rv_bundle_source from = {.pipeline = w.pipeline, .catalog = &w.catalog};
    rv_buf_puts(&out, "before");
    ck_assert_int_eq(rv_bundle_write(&from, &out, NULL, &err), RV_E_LIMIT);
    ck_assert_str_eq(rv_buf_cstr(&out), "before");
    ck_assert_uint_eq(out.max, 100);
    rv_err_free(err);
    rv_buf_fini(&out);
    world_fini(&w);
}
END_TEST

START_TEST(a_pipeline_with_errors_is_refused)
{
    rv_findings *f = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_pipeline_parse(RV_STR_LIT("name: t\nagents: [{name: a, default_next: nowhere}]\n"), "p.yaml",
                                       ".", f, &p, NULL),
                     0);
    const struct rv_bundle_source from = {.pipeline = p, .catalog = &rv_catalog_empty};
    ck_assert_int_eq(rv_bundle_write(&from, &out, NULL, &err), RV_E_STATE);
    rv_err_free(err);
    rv_buf_fini(&out);
    rv_pipeline_free(p);
    rv_findings_free(f);
}
END_TEST

Suite *write_suite(void)
{
    Suite *suite = suite_create("bundle_write");
    TCase *tc = tcase_create("write");

    tcase_add_test(tc, the_same_things_give_the_same_bytes);
    tcase_add_test(tc, files_are_sorted_and_each_is_there_once);
    tcase_add_loop_test(tc, any_change_gives_another_hash, 0, RV_COUNT(changes));
    tcase_add_test(tc, a_script_is_part_of_the_hash);
    tcase_add_test(tc, which_optional_roles_there_are_is_part_of_the_hash);
    tcase_add_test(tc, secrets_are_never_in_it);
    tcase_add_test(tc, a_bundle_is_appended);
    tcase_add_test(tc, what_does_not_fit_leaves_nothing_behind);
    tcase_add_test(tc, a_pipeline_with_errors_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
