/* Markdown on a terminal: what each construct looks like, with and without styles, and that nothing depends on how the
 * text was cut into pieces. A control character of a text never gets through. */
#include <string.h>

#include "coreengine/cli/markdown/markdown_internal.h"
#include "coreengine/cli/show/width_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

#define COLUMNS   40
#define MAX_OUT   ((size_t)1 << 20)
#define B         "\033[0;1m"
#define I         "\033[0;3m"
#define C         "\033[0;36m"
#define D         "\033[0;2m"
#define U         "\033[0;4m"
#define H         "\033[0;1;4m"
#define O         "\033[0m"
#define BAR       D "|" O
#define PIECE_MAX 7

static const struct {
    const char *text, *plain, *styled;
} cases[] = {
    {"", "", ""},
    {"words, and more", "words, and more", "words, and more"},
    {"# One #2\nx", "# One #2\nx", H "One #2" O "\nx"},
    {"#hash ####### seven", "#hash ####### seven", "#hash ####### seven"},
    {"### Three `c`", "### Three `c`", B "Three \033[0;1;36mc" B O},
    {"a **b** c", "a **b** c", "a " B "b" O " c"},
    {"*i* _i_ ***bi*** ~~s~~", "*i* _i_ ***bi*** ~~s~~", I "i" O " " I "i" O " \033[0;1;3mbi" O " \033[0;9ms" O},
    {"**b *i* b**", "**b *i* b**", B "b \033[0;1;3mi" B " b" O},
    {"snake_case_name 5 * 3 * 2 ** x", "snake_case_name 5 * 3 * 2 ** x", "snake_case_name 5 * 3 * 2 ** x"},
    {"open **bold\nnext** line", "open **bold\nnext** line", "open **bold\nnext** line"},
    {"`a*b*` ``x`y`` `open", "`a*b*` ``x`y`` `open", C "a*b*" O " " C "x`y" O " `open"},
    {"[text](http://x) [a] ![p](q) [u](u)", "[text](http://x) [a] ![p](q) [u](u)",
     U "text" O " (http://x) [a] image: " U "p" O " (q) " U "u" O},
    {"\\*no\\* \\a", "\\*no\\* \\a", "*no* \\a"},
    {"- one\n  * two\n+ three\n10. ten\n2) x\n-no", "- one\n  * two\n+ three\n10. ten\n2) x\n-no",
     "\xe2\x80\xa2 one\n  \xe2\x80\xa2 two\n\xe2\x80\xa2 three\n10. ten\n2) x\n-no"},
    {"> q **b**\n>> r", "> q **b**\n> > r",
     D "\xe2\x94\x82 " O "q " B "b" O "\n" D "\xe2\x94\x82 " O D "\xe2\x94\x82 " O "r"},
    {"```c\nint *a = **b;\n| x |\n```\n**b**", "```c\nint *a = **b;\n| x |\n```\n**b**",
     D "```c" O "\n" C "int *a = **b;" O "\n" C "| x |" O "\n" D "```" O "\n" B "b" O},
    {"~~~~\n~~~\n~~~~\nx", "~~~~\n~~~\n~~~~\nx", D "~~~~" O "\n" C "~~~" O "\n" D "~~~~" O "\nx"},
    {"```x``` y", "```x``` y", C "x" O " y"},
    {"| a | b\nx", "| a | b\nx", "| a | b\nx"},
    {"|a|b|\n|:-|-:|\n|1|22|\n|**c**|\\||\nx", "| a     |   b |\n|-------|-----|\n| 1     |  22 |\n| **c** |   | |\nx",
     BAR " " B "a" O "   " BAR "   " B "b" O " " BAR "\n" D "|-----|-----|" O "\n" BAR " 1   " BAR "  22 " BAR "\n" BAR
         " " B "c" O "   " BAR "   | " BAR "\nx"},
    /* characters of East Asia take two columns */
    {"|\xe6\xbc\xa2|b|\n|-|-|\n|x|\xe5\xad\x97\xe5\xad\x97|",
     "| \xe6\xbc\xa2  | b    |\n|-----|------|\n| x   | "
     "\xe5\xad\x97\xe5\xad\x97 |",
     BAR " " B "\xe6\xbc\xa2" O "  " BAR " " B "b" O "    " BAR "\n" D "|-----|------|" O "\n" BAR " x   " BAR
         " \xe5\xad\x97\xe5\xad\x97 " BAR},
    /* cells that are too wide have several lines */
    {"|a|b|\n|-|-|\n|one two three four five six|seven eight nine|",
     "| a                 | b                |\n|-------------------|------------------|\n"
     "| one two three     | seven eight nine |\n| four five six     |                  |",
     BAR " " B "a" O "                 " BAR " " B "b" O "                " BAR "\n" D
         "|-------------------|------------------|" O "\n" BAR " one two three     " BAR " seven eight nine " BAR
         "\n" BAR " four five six     " BAR "                  " BAR},
    {"a\r\nb\rc\td", "a\nb c\td", "a\nb c\td"},
    {"x\033[31mred\x07\xc2\x9b\xe2\x80\xae", "x [31mred   ", "x [31mred   "},
    {"\xff\xc3(\xe6\xbc", "\xef\xbf\xbd\xef\xbf\xbd(", "\xef\xbf\xbd\xef\xbf\xbd("},
};

static void write_text(rv_cli_md *md, rv_str text, size_t piece, rv_buf *out)
{
    cli_md_begin(md);
    for (size_t i = 0, n; i < text.len; i += n) {
        n = piece && text.len - i > piece ? piece : text.len - i;
        cli_md_add(md, (rv_str){text.ptr + i, n}, out);
    }
    cli_md_flush(md, out);
}

START_TEST(each_construct_has_its_look)
{
    for (int styled = 0; styled < 2; styled++) {
        rv_cli_md *md = cli_md_new(styled, COLUMNS);
        for (size_t piece = 0; piece < PIECE_MAX; piece++) {
            rv_buf out = RV_BUF_INIT(MAX_OUT);
            write_text(md, rv_str_of(cases[_i].text), piece, &out);
            ck_assert_str_eq(rv_buf_cstr(&out), styled ? cases[_i].styled : cases[_i].plain);
            rv_buf_fini(&out);
        }
        cli_md_free(md);
    }
}
END_TEST

/* Parts of Markdown in any order: whole, byte by byte, and in pieces of any length the same comes out, and no control
 * character but those written here. */
START_TEST(pieces_change_nothing)
{
    static const char *const parts[] = {
        "*",    "**", "_",   "`",    "```", "\n", "\n\n", "|",    "| a | b |\n|---|---|\n", "# ", "> ",    "- ",
        "1. ",  "[",  "](",  ")",    "!",   "\\", " ",    "word", "\xe6\xbc\xa2",           "~~", "---\n", "\033[2J",
        "\xc2", "\r", "   ", "```\n"};
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 18);
    rv_cli_md *md[] = {cli_md_new(false, COLUMNS), cli_md_new(true, COLUMNS)};

    for (int round = 0; round < 2000; round++) {
        rv_buf text = RV_BUF_INIT(MAX_OUT);
        for (size_t i = rv_rand_below(rand, 60); i > 0; i--)
            rv_buf_puts(&text, parts[rv_rand_below(rand, RV_COUNT(parts))]);
        for (size_t styled = 0; styled < 2; styled++) {
            rv_buf whole = RV_BUF_INIT(MAX_OUT), cut = RV_BUF_INIT(MAX_OUT);
            write_text(md[styled], rv_buf_str(&text), 0, &whole);
            write_text(md[styled], rv_buf_str(&text), 1 + rv_rand_below(rand, 9), &cut);
            ck_assert_msg(rv_str_eq(rv_buf_str(&whole), rv_buf_str(&cut)), "\"%s\": \"%s\", \"%s\"", rv_buf_cstr(&text),
                          rv_buf_cstr(&whole), rv_buf_cstr(&cut));
            for (size_t i = 0; i < whole.len; i++) {
                const char *at = whole.ptr + i;
                size_t n = rv_utf8_control(at, whole.len - i);
                bool own = *at == '\033' && styled && strncmp(at, "\033[0", 3) == 0 &&
                           at[3 + strspn(at + 3, "0123456789;")] == 'm';
                ck_assert_msg(n == 0 || *at == '\n' || own, "\"%s\": byte %zu", rv_buf_cstr(&text), i);
            }
            rv_buf_fini(&whole);
            rv_buf_fini(&cut);
        }
        rv_buf_fini(&text);
    }
    cli_md_free(md[0]);
    cli_md_free(md[1]);
}
END_TEST

/* What is known is written at once: words with their blanks, and a span with its last mark. */
START_TEST(words_do_not_wait)
{
    static const struct {
        const char *piece, *written;
    } steps[] = {{"Hello", "Hello"}, {" wor", " wor"}, {"ld **bo", "ld "}, {"ld", ""},  {"** ", B "bold" O " "},
                 {"a\n", "a\n"},     {"|x|\n", ""},    {"|-|\n", ""},      {"|y|", ""}, {"\nend", NULL}};
    rv_cli_md *md = cli_md_new(true, COLUMNS);

    for (size_t i = 0; i < RV_COUNT(steps); i++) {
        rv_buf out = RV_BUF_INIT(MAX_OUT);
        cli_md_add(md, rv_str_of(steps[i].piece), &out);
        if (steps[i].written)
            ck_assert_str_eq(rv_buf_cstr(&out), steps[i].written);
        else
            ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&out), " y   " BAR "\nend"));
        rv_buf_fini(&out);
    }
    cli_md_free(md);
}
END_TEST

/* A mark whose end does not come holds back no more than its bound, a table no more than its own. */
START_TEST(what_waits_is_bounded)
{
    rv_cli_md *md = cli_md_new(true, COLUMNS);
    rv_buf out = RV_BUF_INIT(8 * RV_CLI_MD_MAX_TABLE);
    size_t n = 0;

    for (; n < 3 * RV_CLI_MD_MAX_SPAN; n++)
        cli_md_add(md, n == 0 ? RV_STR_LIT("**") : RV_STR_LIT("x"), &out);
    ck_assert_uint_ge(out.len, 2 * RV_CLI_MD_MAX_SPAN);
    rv_buf_clear(&out);
    cli_md_begin(md);
    cli_md_add(md, RV_STR_LIT("|a|\n|-|\n"), &out);
    for (n = 0; n < 2 * RV_CLI_MD_MAX_TABLE; n += 8)
        cli_md_add(md, RV_STR_LIT("|cell 1|\n"), &out);
    ck_assert_uint_ge(out.len, RV_CLI_MD_MAX_TABLE);
    cli_md_add(md, RV_STR_LIT("end"), &out);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&out), BAR " cell 1 " BAR "\n" BAR " cell 1 " BAR "\nend"));
    rv_buf_clear(&out);
    cli_md_begin(md);
    for (n = 0; n < 3 * RV_CLI_MD_MAX_LINE; n++)
        cli_md_add(md, RV_STR_LIT("|"), &out);
    ck_assert_uint_ge(out.len, RV_CLI_MD_MAX_LINE);
    rv_buf_fini(&out);
    cli_md_free(md);
}
END_TEST

/* Behind a label a heading begins a line of its own; what is cut off in its middle goes on as what it was. */
START_TEST(labels_and_breaks)
{
    rv_cli_md *md = cli_md_new(true, COLUMNS);
    rv_buf out = RV_BUF_INIT(MAX_OUT);

    cli_md_behind(md);
    cli_md_add(md, RV_STR_LIT("# T"), &out);
    ck_assert_str_eq(rv_buf_cstr(&out), "\n" H "T");
    cli_md_flush(md, &out);
    rv_buf_clear(&out);
    cli_md_add(md, RV_STR_LIT("u\nx **b"), &out);
    cli_md_flush(md, &out);
    ck_assert_str_eq(rv_buf_cstr(&out), H "u" O "\nx **b");
    rv_buf_clear(&out);
    cli_md_begin(md);
    cli_md_behind(md);
    cli_md_add(md, RV_STR_LIT("words\n# T\n"), &out);
    ck_assert_str_eq(rv_buf_cstr(&out), "words\n" H "T" O "\n");
    rv_buf_fini(&out);
    cli_md_free(md);
}
END_TEST

Suite *markdown_suite(void)
{
    Suite *s = suite_create("markdown");
    TCase *c = tcase_create("text");

    tcase_add_loop_test(c, each_construct_has_its_look, 0, RV_COUNT(cases));
    tcase_add_test(c, pieces_change_nothing);
    tcase_add_test(c, words_do_not_wait);
    tcase_add_test(c, what_waits_is_bounded);
    tcase_add_test(c, labels_and_breaks);
    suite_add_tcase(s, c);
    return s;
}
