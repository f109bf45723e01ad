/* Patterns, words and passages on their own. */
#include "capabilities/files/files_internal.h"
#include "tests/unit/files/sandbox.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *pattern, *path;
    bool match;
} globs[] = {
    {"*.md", "docs/a.md", true},
    {"*.md", "a.mdx", false},
    {"docs/*.md", "docs/a.md", true},
    {"docs/*.md", "docs/b/a.md", false},
    {"docs/**/*.md", "docs/a.md", true},
    {"docs/**/*.md", "docs/b/c/a.md", true},
    {"**/a.md", "docs/a.md", true},
    {"**/a.md", "docs/ba.md", false},
    {"**", "x/y/z", true},
    {"docs/**", "docs/x/y", true},
    {"docs/**", "doc/x", false},
    {"a?.md", "ab.md", true},
    {"a?b/x", "a/b/x", false},
    {"", "a", false},
    {"*", "a/b", true},
    {"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    {"**/**/**/**/x", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/y", false},
};

START_TEST(glob_matches_parts_and_paths)
{
    ck_assert_msg(glob_match(globs[_i].pattern, globs[_i].path) == globs[_i].match, "%s on %s", globs[_i].pattern,
                  globs[_i].path);
}
END_TEST

static const struct {
    const char *text, *folded;
} foldings[] = {
    {"limits", "limit"},
    {"Policies", "policy"},
    {"routing", "rout"},
    {"routed", "rout"},
    {"routes", "rout"},
    {"stopped", "stop"},
    {"running", "run"},
    {"status", "status"},
    {"class", "class"},
    {"classes", "class"},
    {"is", "is"},
    {"error_next", "error"},
    {"analysis", "analysis"},
    {"caf\xc3\xa9s", "caf\xc3\xa9s"},
    {"failures", "failur"},
    {"bus", "bus"},
    {"string", "string"},
    {"x86", "x86"},
};

START_TEST(words_fold_light_endings)
{
    char word[MAX_WORD], written[MAX_WORD];
    size_t at_byte = 0;

    ck_assert(next_word(foldings[_i].text, strlen(foldings[_i].text), &at_byte, word, written));
    ck_assert_str_eq(word, foldings[_i].folded);
}
END_TEST

START_TEST(synonyms_are_written_in_folded_form)
{
    static const char *const seen[] = {"failure", "terminate",   "execute",  "compile", "module", "route",
                                       "pause",   "performance", "template", "stage",   "delete", "write"};

    for (size_t i = 0; i < RV_COUNT(seen); i++) {
        char word[MAX_WORD], written[MAX_WORD];
        size_t at_byte = 0;
        ck_assert(next_word(seen[i], strlen(seen[i]), &at_byte, word, written));
        ck_assert_msg(synonyms_of(word) != NULL, "%s is folded to %s, which has no group", seen[i], word);
    }
}
END_TEST

START_TEST(content_words_leave_out_what_says_nothing)
{
    static const char *const stops[] = {"a", "about", "the", "your", "how", "does", "what", "using", "x"};
    struct words words;

    words_of("How does the engine limit loops, and loops?", 43, &words);
    ck_assert_uint_eq(words.n, 3);
    ck_assert_str_eq(words.item[0], "engin");
    ck_assert_str_eq(words.seen[2], "loops");
    for (size_t i = 0; i < RV_COUNT(stops); i++)
        ck_assert(is_stop_word(stops[i]));
    ck_assert(!is_stop_word("engine"));
}
END_TEST

START_TEST(a_word_list_ends_at_its_limit)
{
    struct words words = {.n = 0};
    char text[2000];
    size_t len = 0;

    for (int i = 0; i < 200; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "w%d ", i);
    words_of(text, len, &words);
    ck_assert_uint_eq(words.n, MAX_TERMS);
}
END_TEST

START_TEST(passages_know_their_lines_and_titles)
{
    static const char text[] =
        "intro line\n\n# Top\n## One\n\nfirst\nsecond\n\n```sh\n# no title\n\nafter blank\n```\n## Two\nlast";
    static const struct {
        int line, end_line;
        const char *heading;
    } want[] = {{1, 1, ""}, {6, 7, "Top > One"}, {9, 13, "Top > One"}, {15, 15, "Top > Two"}};
    struct passages cursor;
    struct passage passage;

    passages_begin(&cursor, "a.md", text, sizeof text - 1);
    for (size_t i = 0; i < RV_COUNT(want); i++) {
        ck_assert(passages_next(&cursor, &passage));
        ck_assert_int_eq(passage.line, want[i].line);
        ck_assert_int_eq(passage.end_line, want[i].end_line);
        ck_assert_str_eq(passage.heading, want[i].heading);
    }
    ck_assert(!passages_next(&cursor, &passage));
}
END_TEST

START_TEST(long_blocks_are_cut_and_no_line_is_lost)
{
    char text[4096];
    size_t len = 0;
    int covered = 0;
    struct passages cursor;
    struct passage passage;

    for (int i = 0; i < 100; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "line %d\n", i);
    passages_begin(&cursor, "a.txt", text, len);
    while (passages_next(&cursor, &passage)) {
        ck_assert_int_eq(passage.line, covered + 1);
        covered = passage.end_line;
    }
    ck_assert_int_eq(covered, 100);
}
END_TEST

static int reads_left = -1; /* names until a folder fails; -1: it does not */

/* In place of the system's, for the code that this program is linked with. */
struct dirent *readdir(DIR *dir)
{
    struct dirent *(*of_the_system)(DIR * dir);

    *(void **)&of_the_system = dlsym(RTLD_NEXT, "readdir");
    if (reads_left == 0) {
        errno = EIO;
        return NULL;
    }
    reads_left -= reads_left > 0;
    return of_the_system(dir);
}

static int never(const struct rv_cap_call *call)
{
    (void)call;
    return 0;
}

/* Else a listing would be short, and nothing would tell. */
START_TEST(a_folder_that_breaks_off_is_an_error_and_not_its_end)
{
    struct sandbox s;
    struct rv_cap_call call = {.cancelled = never};
    struct files f = {.n_roots = 1};
    char label[] = "here";

    sandbox_begin(&s, "{}");
    f.roots[0] = (struct root){.label = label, .fd = open(s.dir, O_RDONLY | O_DIRECTORY)};
    for (int n = 0; n < 2; n++) {
        struct walked found = {0};
        reads_left = n == 0 ? -1 : 2;
        walk_all(&f, &call, NULL, &found);
        reads_left = -1;
        ck_assert_int_eq(found.error, n == 0 ? 0 : EIO);
        ck_assert_str_eq(found.unread, n == 0 ? "" : "here");
        walked_fini(&found);
    }
    close(f.roots[0].fd);
    sandbox_end(&s);
}
END_TEST

/* Folders in folders take a descriptor each; the walk has too few, then as many as it needs. */
START_TEST(a_folder_that_cannot_be_opened_is_an_error_and_not_absent)
{
    struct sandbox s;
    struct rv_cap_call call = {.cancelled = never};
    struct files f = {.n_roots = 1};
    char label[] = "here";
    struct rlimit all, few;
    size_t n_files = 0, n_errors = 0;

    sandbox_begin(&s, "{}");
    f.roots[0] = (struct root){.label = label, .fd = open(s.dir, O_RDONLY | O_DIRECTORY)};
    ck_assert_int_eq(mkdirat(f.roots[0].fd, "in", 0700), 0);
    ck_assert_int_eq(mkdirat(f.roots[0].fd, "in/deep", 0700), 0);
    int file = openat(f.roots[0].fd, "in/deep/a.md", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(file, 0);
    close(file);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
    for (rlim_t n = 0; n < 20; n++) {
        struct walked found = {0};
        few = (struct rlimit){(rlim_t)file + n, all.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        walk_all(&f, &call, NULL, &found);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
        ck_assert_int_eq(found.unread[0] != 0, found.error != 0);
        if (found.error) {
            ck_assert_int_eq(found.error, EMFILE);
            n_errors++;
        } else {
            ck_assert_uint_gt(found.n, 0); /* no list is short without an error */
            ck_assert(n_files == 0 || found.n == n_files);
            n_files = found.n;
        }
        walked_fini(&found);
    }
    ck_assert_uint_ge(n_errors, 4);
    ck_assert_uint_gt(n_files, 0);
    close(f.roots[0].fd);
    sandbox_end(&s);
}
END_TEST

TCase *parts_case(void)
{
    TCase *tc = tcase_create("parts");

    tcase_add_loop_test(tc, glob_matches_parts_and_paths, 0, RV_COUNT(globs));
    tcase_add_loop_test(tc, words_fold_light_endings, 0, RV_COUNT(foldings));
    tcase_add_test(tc, synonyms_are_written_in_folded_form);
    tcase_add_test(tc, content_words_leave_out_what_says_nothing);
    tcase_add_test(tc, a_word_list_ends_at_its_limit);
    tcase_add_test(tc, passages_know_their_lines_and_titles);
    tcase_add_test(tc, long_blocks_are_cut_and_no_line_is_lost);
    tcase_add_test(tc, a_folder_that_breaks_off_is_an_error_and_not_its_end);
    tcase_add_test(tc, a_folder_that_cannot_be_opened_is_an_error_and_not_absent);
    return tc;
}
