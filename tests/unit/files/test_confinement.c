/* Nothing outside the declared roots can be read, written or deleted, by any path. */
#include "capabilities/files/files_internal.h"
#include "tests/unit/files/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Links and odd files, made in each sandbox. */
static void make_traps(const struct sandbox *s)
{
    char path[512], target[512];

    snprintf(path, sizeof path, "%s/project/docs/out.md", s->dir);
    ck_assert_int_eq(symlink("../../secret.txt", path), 0);
    snprintf(path, sizeof path, "%s/project/docs/absolute.md", s->dir);
    snprintf(target, sizeof target, "%s/secret.txt", s->dir);
    ck_assert_int_eq(symlink(target, path), 0);
    snprintf(path, sizeof path, "%s/project/docs/up", s->dir);
    ck_assert_int_eq(symlink("../..", path), 0);
    snprintf(path, sizeof path, "%s/project/docs/inside.md", s->dir);
    ck_assert_int_eq(symlink("errors.md", path), 0);
    snprintf(path, sizeof path, "%s/project/docs/circle.md", s->dir);
    ck_assert_int_eq(symlink("circle.md", path), 0);
    snprintf(path, sizeof path, "%s/project/docs/pipe", s->dir);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
}

static const struct {
    const char *path, *type;
} refused[] = {
    {"docs/../../secret.txt", "AccessDenied"},
    {"../secret.txt", "AccessDenied"},
    {"docs/deep/../../../secret.txt", "AccessDenied"},
    {"/etc/passwd", "AccessDenied"},
    {"docs/out.md", "AccessDenied"},
    {"docs/absolute.md", "AccessDenied"},
    {"docs/up/secret.txt", "AccessDenied"},
    {"docs/circle.md", "AccessDenied"},
    {"secret.txt", "NotFoundError"},
    {"pipelines/qa.yaml", "NotFoundError"},
    {"README.md/x", "NotFoundError"},
    {"docsx/errors.md", "NotFoundError"},
    {"docs/pipe", "ValidationError"},
    {"docs", "ValidationError"},
    {"docs/deep", "ValidationError"},
    {"docs/absent.md", "NotFoundError"},
    {"docs/errors.md/x", "NotFoundError"},
    {"", "NotFoundError"},
    {"docs/errors.md\\u0000.png", "AccessDenied"}, /* not docs/errors.md */
};

START_TEST(no_path_reads_outside_the_roots)
{
    struct sandbox s;
    char args[256];

    sandbox_begin(&s, NULL);
    make_traps(&s);
    snprintf(args, sizeof args, "{\"path\": \"%s\"}", refused[_i].path);
    ck_assert_int_eq(sandbox_call(&s, "read_file", args), RV_E_TOOL);
    ck_assert_msg(strcmp(rv_plugin_error_type(s.err), refused[_i].type) == 0, "%s: %s", rv_plugin_error_type(s.err),
                  rv_err_text(s.err));
    sandbox_end(&s);
}
END_TEST

static const char *const untouchable[] = {
    "docs/../../secret.txt",
    "../secret.txt",
    "docs/out.md",
    "docs/absolute.md",
    "docs/up/secret.txt",
    "docs/up/new.txt",
    "/tmp/rv_x",
    "docs/pipe",
    "docs",
    "docs/deep",
    "docs/absent/new.md",
    "secret.txt",
    "docs/inside.md",
};

START_TEST(no_path_changes_what_is_outside_or_no_regular_file)
{
    struct sandbox s;
    char args[256], path[256];
    rv_buf text = RV_BUF_INIT(4096);

    sandbox_begin(&s, NULL);
    make_traps(&s);
    snprintf(args, sizeof args, "{\"path\": \"%s\", \"text\": \"gone\"}", untouchable[_i]);
    ck_assert_int_eq(sandbox_call(&s, "write_file", args), RV_E_TOOL);
    snprintf(args, sizeof args, "{\"path\": \"%s\"}", untouchable[_i]);
    ck_assert_int_eq(sandbox_call(&s, "delete_file", args), RV_E_TOOL);
    snprintf(path, sizeof path, "%s/secret.txt", s.dir);
    ck_assert_int_eq(rv_file_read(path, &text, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&text), "the secret is 42\n");
    rv_buf_fini(&text);
    snprintf(path, sizeof path, "%s/new.txt", s.dir);
    ck_assert_int_ne(access(path, F_OK), 0);
    sandbox_end(&s);
}
END_TEST

START_TEST(links_that_stay_inside_are_read_but_not_listed)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    make_traps(&s);
    ck_assert_str_eq(text_at(sandbox_ask(&s, "read_file", "{\"path\": \"docs/inside.md\"}"), "lines.0.text"),
                     "# Errors");
    ck_assert_int_eq(int_at(sandbox_ask(&s, "list_files", "{}"), "total"), 3);
    ck_assert_ptr_null(strstr(rv_buf_cstr(&s.reply), "inside.md"));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&s.reply), "hidden"));
    sandbox_end(&s);
}
END_TEST

START_TEST(search_does_not_see_outside)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    make_traps(&s);
    ck_assert_uint_eq(json_object_array_length(at(sandbox_ask(&s, "search_files", "{\"query\": \"secret\"}"), "hits")),
                      0);
    sandbox_end(&s);
}
END_TEST

static const struct {
    const char *rel;
    int code; /* 0: opens */
} walked[] = {
    {"docs/errors.md", 0},  {"docs/deep/limits.md", 0},      {"docs/../../secret.txt", EXDEV}, {"..", EXDEV},
    {"docs/out.md", ELOOP}, {"docs/up/secret.txt", ENOTDIR}, {"docs/inside.md", ELOOP},        {"docs/absent", ENOENT},
    {"docs//errors.md", 0}, {"./docs/./errors.md", 0},
};

START_TEST(without_openat2_parts_are_walked_and_no_link_is_followed)
{
    const struct files f = {.no_openat2 = true};
    struct sandbox s;
    char path[256];
    int dir, fd;

    sandbox_begin(&s, NULL);
    make_traps(&s);
    snprintf(path, sizeof path, "%s/project", s.dir);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(dir, 0);
    fd = open_beneath(&f, dir, walked[_i].rel, O_RDONLY);
    if (walked[_i].code == 0)
        ck_assert_int_ge(fd, 0);
    else
        ck_assert_msg(fd < 0 && errno == walked[_i].code, "fd %d, %s", fd, strerror(errno));
    if (fd >= 0)
        close(fd);
    close(dir);
    sandbox_end(&s);
}
END_TEST

static const struct {
    const char *config, *says;
} bad_configs[] = {
    {"{\"roots\": [\"../absent\"]}", "../absent"},
    {"{\"roots\": [\"../docs\", \"../../project/docs\"]}", "same last part"},
    {"{\"roots\": []}", "roots"},
    {"{\"roots\": \"../docs\"}", "roots"},
    {"{\"root\": \"../docs\"}", "root"},
    {"{\"max_file_bytes\": 0}", "max_file_bytes"},
    {"{\"roots\": [\"/dev/null\"]}", "neither a file nor a folder"},
};

START_TEST(bad_configuration_is_refused_with_its_reason)
{
    struct sandbox s;
    rv_buf text = RV_BUF_INIT(4096);

    sandbox_begin(&s, bad_configs[_i].config);
    ck_assert_ptr_nonnull(s.err);
    rv_err_write_text(s.err, false, &text);
    ck_assert_msg(strstr(rv_buf_cstr(&text), bad_configs[_i].says) != NULL, "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    sandbox_end(&s);
}
END_TEST

START_TEST(a_path_that_is_too_long_names_the_limit)
{
    struct sandbox s;
    rv_buf config = RV_BUF_INIT(4096), text = RV_BUF_INIT(4096);

    rv_buf_puts(&config, "{\"roots\": [\"");
    for (int i = 0; i < 600; i++)
        rv_buf_puts(&config, "\xc3\xa4"); /* the schema counts characters */
    rv_buf_puts(&config, "\"]}");
    sandbox_begin(&s, rv_buf_cstr(&config));
    ck_assert_ptr_nonnull(s.err);
    rv_err_write_text(s.err, false, &text);
    ck_assert_msg(strstr(rv_buf_cstr(&text), "the path has 1024 bytes or more"), "%s", rv_buf_cstr(&text));
    rv_buf_fini(&config);
    rv_buf_fini(&text);
    sandbox_end(&s);
}
END_TEST

START_TEST(the_default_root_is_the_pipelines_folder)
{
    struct sandbox s;

    sandbox_begin(&s, "{}");
    ck_assert_ptr_null(s.err);
    ck_assert_str_eq(text_at(sandbox_ask(&s, "list_files", "{}"), "files.0.path"), "qa.yaml");
    ck_assert_str_eq(text_at(sandbox_ask(&s, "read_file", "{\"path\": \"./qa.yaml\"}"), "lines.0.text"), "name: qa");
    ck_assert_int_eq(sandbox_call(&s, "read_file", "{\"path\": \"../docs/errors.md\"}"), RV_E_TOOL);
    sandbox_end(&s);
}
END_TEST

TCase *confinement_case(void)
{
    TCase *tc = tcase_create("confinement");

    tcase_add_loop_test(tc, no_path_reads_outside_the_roots, 0, RV_COUNT(refused));
    tcase_add_loop_test(tc, no_path_changes_what_is_outside_or_no_regular_file, 0, RV_COUNT(untouchable));
    tcase_add_test(tc, links_that_stay_inside_are_read_but_not_listed);
    tcase_add_test(tc, search_does_not_see_outside);
    tcase_add_loop_test(tc, without_openat2_parts_are_walked_and_no_link_is_followed, 0, RV_COUNT(walked));
    tcase_add_test(tc, a_path_that_is_too_long_names_the_limit);
    tcase_add_loop_test(tc, bad_configuration_is_refused_with_its_reason, 0, RV_COUNT(bad_configs));
    tcase_add_test(tc, the_default_root_is_the_pipelines_folder);
    return tc;
}
