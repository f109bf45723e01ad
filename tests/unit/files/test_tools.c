/* list, read, write, delete: what they return, and what they leave on disk. */
#include "tests/unit/files/sandbox.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

START_TEST(list_is_sorted_and_takes_a_pattern)
{
    static const char *const want[] = {"docs/deep/limits.md", "docs/errors.md", "README.md"};
    struct sandbox s;
    json_object *reply;

    sandbox_begin(&s, NULL);
    reply = sandbox_ask(&s, "list_files", "{}");
    ck_assert_uint_eq(json_object_array_length(at(reply, "files")), RV_COUNT(want));
    for (size_t i = 0; i < RV_COUNT(want); i++)
        ck_assert_str_eq(text_at(json_object_array_get_idx(at(reply, "files"), i), "path"), want[i]);
    ck_assert_int_eq(int_at(reply, "files.2.bytes"), 38);
    reply = sandbox_ask(&s, "list_files", "{\"glob\": \"docs/*.md\"}");
    ck_assert_int_eq(int_at(reply, "total"), 1);
    sandbox_end(&s);
}
END_TEST

/* Proves 11.6 */
START_TEST(names_that_are_not_utf8_are_passed_over)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    sandbox_file(&s, "project/docs/\xff\xfe.md", "x\n");
    ck_assert_int_eq(int_at(sandbox_ask(&s, "list_files", "{}"), "total"), 3);
    sandbox_end(&s);
}
END_TEST

static const struct {
    const char *args;
    int64_t first, last;
    const char *first_text;
} ranges[] = {
    {"{\"path\": \"docs/errors.md\"}", 1, 8, "# Errors"},
    {"{\"path\": \"docs/errors.md\", \"start_line\": 3}", 3, 8, "An error is a value."},
    {"{\"path\": \"docs/errors.md\", \"start_line\": 4, \"end_line\": 4}", 4, 4, "It has a code and a text."},
    {"{\"path\": \"docs/errors.md\", \"start_line\": 8, \"end_line\": 900}", 8, 8, "A wrapped error keeps its cause."},
    {"{\"path\": \"README.md\", \"end_line\": 2}", 1, 2, "# Project"},
};

/* Proves 6.6 */
START_TEST(read_returns_lines_with_their_numbers)
{
    struct sandbox s;
    json_object *reply;

    sandbox_begin(&s, NULL);
    reply = sandbox_ask(&s, "read_file", ranges[_i].args);
    ck_assert_int_eq(int_at(reply, "start_line"), ranges[_i].first);
    ck_assert_int_eq(int_at(reply, "end_line"), ranges[_i].last);
    ck_assert_int_eq(int_at(reply, "lines.0.line"), ranges[_i].first);
    ck_assert_str_eq(text_at(reply, "lines.0.text"), ranges[_i].first_text);
    ck_assert_int_eq((int64_t)json_object_array_length(at(reply, "lines")), ranges[_i].last - ranges[_i].first + 1);
    ck_assert_ptr_nonnull(at(reply, "evidence.0.content"));
    sandbox_end(&s);
}
END_TEST

static const struct {
    const char *path, *text;
} absent[] = {
    {"docs/erors.md", "file \"docs/erors.md\": there is no such file; its folder has \"errors.md\""},
    {"docs/ERRORS", "its folder has \"errors.md\""},
    {"docs/dep", "its folder has \"deep\""},
    {"docs/hidde.md", "list_files shows those that are there"},
    {"docs/quotas.md", "list_files shows those that are there"},
    {"docs/dep/errors.md", "list_files shows those that are there"},
};

START_TEST(a_file_that_is_not_there_names_one_that_is_like_it)
{
    struct sandbox s;
    char args[256];

    sandbox_begin(&s, NULL);
    sandbox_file(&s, "project/docs/.hidden.md", "x\n");
    snprintf(args, sizeof args, "{\"path\": \"%s\"}", absent[_i].path);
    ck_assert_int_eq(sandbox_call(&s, "read_file", args), RV_E_TOOL);
    ck_assert_msg(strstr(rv_err_text(s.err), absent[_i].text), "%s", rv_err_text(s.err));
    sandbox_end(&s);
}
END_TEST

START_TEST(an_empty_file_has_no_lines)
{
    struct sandbox s;
    json_object *reply;

    sandbox_begin(&s, NULL);
    sandbox_file(&s, "project/docs/empty.md", "");
    reply = sandbox_ask(&s, "read_file", "{\"path\": \"docs/empty.md\"}");
    ck_assert_int_eq(int_at(reply, "total_lines"), 0);
    ck_assert_int_eq(int_at(reply, "end_line"), 0);
    sandbox_end(&s);
}
END_TEST

static const struct {
    const char *args, *type, *says;
} bad_reads[] = {
    {"{\"path\": \"docs/errors.md\", \"start_line\": 9}", "ValidationError", "has 8 lines"},
    {"{\"path\": \"docs/errors.md\", \"start_line\": 3, \"end_line\": 2}", "ValidationError", "before"},
    {"{\"path\": \"docs/errors.md\", \"start_line\": 0}", "ValidationError", "start_line must be 1 or more, not 0"},
    {"{\"path\": \"docs/binary.md\"}", "ValidationError", "not a text"},
    {"{\"path\": \"docs/large.md\"}", "ValidationError", "max_file_bytes"},
    {"{}", "AccessDenied", "missing"},
    {"[]", "ValidationError", "not a JSON object"},
};

START_TEST(read_refuses_with_type_and_reason)
{
    struct sandbox s;
    char large[2000];

    sandbox_begin(&s, "{\"roots\": [\"../docs\"], \"max_file_bytes\": 1000}");
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    sandbox_file(&s, "project/docs/large.md", large);
    sandbox_file(&s, "project/docs/binary.md", "abc\xff\xfe");
    ck_assert_int_eq(sandbox_call(&s, "read_file", bad_reads[_i].args), RV_E_TOOL);
    ck_assert_str_eq(rv_plugin_error_type(s.err), bad_reads[_i].type);
    ck_assert_msg(strstr(rv_err_text(s.err), bad_reads[_i].says) != NULL, "%s", rv_err_text(s.err));
    sandbox_end(&s);
}
END_TEST

static size_t files_in(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    ck_assert_ptr_nonnull(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

START_TEST(write_creates_and_replaces_and_leaves_no_temporary_file)
{
    struct sandbox s;
    char dir[256], path[300];
    rv_buf text = RV_BUF_INIT(4096);
    size_t before;
    struct stat st;

    sandbox_begin(&s, NULL);
    snprintf(dir, sizeof dir, "%s/project/docs", s.dir);
    snprintf(path, sizeof path, "%s/errors.md", dir);
    before = files_in(dir);
    ck_assert_int_eq(chmod(path, 06600), 0);
    ck_assert_int_eq(
        int_at(sandbox_ask(&s, "write_file", "{\"path\": \"docs/errors.md\", \"text\": \"a\\u0000b\"}"), "bytes"), 3);
    ck_assert_int_eq(rv_file_read(path, &text, NULL), 0);
    ck_assert(text.len == 3 && memcmp(text.ptr, "a\0b", 3) == 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    sandbox_ask(&s, "write_file", "{\"path\": \"docs/new.md\", \"text\": \"\"}");
    ck_assert_uint_eq(files_in(dir), before + 1);
    sandbox_ask(&s, "write_file", "{\"path\": \"README.md\", \"text\": \"short\"}"); /* a root that is a file */
    ck_assert_str_eq(text_at(sandbox_ask(&s, "read_file", "{\"path\": \"README.md\"}"), "lines.0.text"), "short");
    rv_buf_fini(&text);
    sandbox_end(&s);
}
END_TEST

START_TEST(write_refuses_what_is_too_large)
{
    struct sandbox s;

    sandbox_begin(&s, "{\"roots\": [\"../docs\"], \"max_file_bytes\": 4}");
    ck_assert_int_eq(sandbox_call(&s, "write_file", "{\"path\": \"docs/n.md\", \"text\": \"12345\"}"), RV_E_TOOL);
    ck_assert_int_eq(sandbox_call(&s, "write_file", "{\"path\": \"docs/n.md\", \"text\": \"1234\"}"), 0);
    sandbox_end(&s);
}
END_TEST

START_TEST(what_the_system_refuses_is_told_in_words)
{
    static const char *const tools[] = {"write_file", "delete_file"};
    struct sandbox s;
    struct rlimit old, small;
    char args[400], path[300];
    rv_buf text = RV_BUF_INIT(4096);

    sandbox_begin(&s, NULL);
    for (size_t i = 0; i < RV_COUNT(tools); i++) {
        snprintf(args, sizeof args, "{\"path\": \"docs/%0300d\"%s}", 0, i == 0 ? ", \"text\": \"x\"" : "");
        ck_assert_int_eq(sandbox_call(&s, tools[i], args), RV_E_TOOL);
        ck_assert_msg(strstr(rv_err_text(s.err), "its name is too long"), "%s", rv_err_text(s.err));
    }
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 4, .rlim_max = old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = sandbox_call(&s, "write_file", "{\"path\": \"docs/errors.md\", \"text\": \"12345\"}");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    ck_assert_int_eq(rc, RV_E_TOOL);
    ck_assert_msg(strstr(rv_err_text(s.err), "it would be larger than a file of this process may be"), "%s",
                  rv_err_text(s.err));
    snprintf(path, sizeof path, "%s/project/docs/errors.md", s.dir);
    ck_assert_int_eq(rv_file_read(path, &text, NULL), 0);
    ck_assert(text.len != 4 && text.len != 5); /* the old one is as it was */
    rv_buf_fini(&text);
    sandbox_end(&s);
}
END_TEST

START_TEST(deleting_twice_leaves_the_same_state_and_says_so)
{
    struct sandbox s;

    sandbox_begin(&s, NULL);
    ck_assert(json_object_get_boolean(at(sandbox_ask(&s, "delete_file", "{\"path\": \"docs/errors.md\"}"), "deleted")));
    ck_assert(
        !json_object_get_boolean(at(sandbox_ask(&s, "delete_file", "{\"path\": \"docs/errors.md\"}"), "deleted")));
    sandbox_end(&s);
}
END_TEST

static const struct {
    const char *tool;
    enum rv_risk risk;
    enum rv_effect_class effect;
} classes[] = {
    {"list_files", RV_RISK_READ_ONLY, RV_EFFECT_SAFE},          {"read_file", RV_RISK_READ_ONLY, RV_EFFECT_SAFE},
    {"search_files", RV_RISK_READ_ONLY, RV_EFFECT_SAFE},        {"write_file", RV_RISK_WRITE, RV_EFFECT_IDEMPOTENT},
    {"delete_file", RV_RISK_DESTRUCTIVE, RV_EFFECT_IDEMPOTENT},
};

START_TEST(tools_state_their_risk_and_effect)
{
    struct sandbox s;
    struct rv_catalog catalog;
    const struct rv_tool_info *tool;

    sandbox_begin(&s, NULL);
    catalog = rv_plugins_catalog(s.plugins);
    tool = catalog.tool(catalog.self, rv_str_of(classes[_i].tool));
    ck_assert_ptr_nonnull(tool);
    ck_assert_int_eq(tool->risk, (int)classes[_i].risk);
    ck_assert_int_eq(tool->effect, (int)classes[_i].effect);
    ck_assert_ptr_nonnull(tool->input);
    ck_assert_str_ne(tool->description, "");
    sandbox_end(&s);
}
END_TEST

TCase *tools_case(void)
{
    TCase *tc = tcase_create("tools");

    tcase_add_test(tc, list_is_sorted_and_takes_a_pattern);
    tcase_add_test(tc, names_that_are_not_utf8_are_passed_over);
    tcase_add_loop_test(tc, read_returns_lines_with_their_numbers, 0, RV_COUNT(ranges));
    tcase_add_loop_test(tc, a_file_that_is_not_there_names_one_that_is_like_it, 0, RV_COUNT(absent));
    tcase_add_test(tc, an_empty_file_has_no_lines);
    tcase_add_loop_test(tc, read_refuses_with_type_and_reason, 0, RV_COUNT(bad_reads));
    tcase_add_test(tc, write_creates_and_replaces_and_leaves_no_temporary_file);
    tcase_add_test(tc, write_refuses_what_is_too_large);
    tcase_add_test(tc, what_the_system_refuses_is_told_in_words);
    tcase_add_test(tc, deleting_twice_leaves_the_same_state_and_says_so);
    tcase_add_loop_test(tc, tools_state_their_risk_and_effect, 0, RV_COUNT(classes));
    return tc;
}
