/* Chunks, names and links of pages (p8-data 7). */
#include <stdlib.h>

#include "coreengine/match/match.h"
#include "coreengine/match/match_internal.h"
#include "tests/unit/match/suites.h"

static struct rv_chunks chunks_of(rv_str text, size_t max_chars, size_t overlap)
{
    struct rv_chunks c;

    ck_assert_int_eq(rv_chunks_build(text, max_chars, overlap, &c, NULL), 0);
    return c;
}

static size_t count_chars(rv_str s)
{
    size_t count = 0;

    for (size_t i = 0, n; i < s.len; i += n, count++)
        (void)match_rune_at(s, i, &n);
    return count;
}

static bool is_blank(const char *from, const char *until)
{
    rv_str s = {from, until > from ? (size_t)(until - from) : 0};

    for (size_t i = 0, n; i < s.len; i += n)
        if (!match_rune_is_space(match_rune_at(s, i, &n)))
            return false;
    return true;
}

/* Chunks cover all of the text that is not blank, in order; none is too long, none begins or ends within a character,
 * none repeats more of the one before it than it may. */
static void check_chunks(rv_str text, size_t max_chars, size_t overlap)
{
    struct rv_chunks c = chunks_of(text, max_chars, overlap);
    const char *end = text.ptr;

    for (size_t i = 0; i < c.n; i++) {
        rv_str s = c.at[i];
        size_t n_shared = s.ptr < end ? count_chars((rv_str){s.ptr, (size_t)(end - s.ptr)}) : 0;
        ck_assert(rv_utf8_valid(s, NULL) && s.len > 0);
        ck_assert_uint_le(count_chars(s), max_chars);
        ck_assert_uint_le(n_shared, overlap);
        ck_assert(s.ptr + s.len > end && is_blank(end, s.ptr));
        end = s.ptr + s.len;
    }
    ck_assert(is_blank(end, text.ptr + text.len));
    rv_chunks_fini(&c);
}

START_TEST(chunks_cover_the_text)
{
    struct numbers r = {_i + 1};
    rv_buf text = RV_BUF_INIT(100000);

    for (int i = 0; i < 300; i++) {
        size_t max_chars = 1 + next_below(&r, 40);
        some_text(&r, 200, &text);
        for (size_t k = 0; k < text.len; k++) /* more borders */
            if (text.ptr[k] >= '!' && text.ptr[k] <= '/')
                text.ptr[k] = " \n.! \n\n "[next_below(&r, 8)];
        check_chunks(rv_buf_str(&text), max_chars, next_below(&r, (max_chars - 1) / 2 + 1));
    }
    rv_buf_fini(&text);
}
END_TEST

/* 7: 1500 characters, 200 of them again */
START_TEST(a_text_without_borders_is_cut_where_chunks_are_full)
{
    char text[4001];

    memset(text, 'a', sizeof text);
    struct rv_chunks c = chunks_of((rv_str){text, 4000}, RV_CHUNK_CHARS, RV_CHUNK_OVERLAP);
    ck_assert_uint_eq(c.n, 3);
    ck_assert(c.at[0].ptr == text && c.at[0].len == 1500);
    ck_assert(c.at[1].ptr == text + 1300 && c.at[1].len == 1500);
    ck_assert(c.at[2].ptr == text + 2600 && c.at[2].len == 1400);
    rv_chunks_fini(&c);
    c = chunks_of((rv_str){text, 1500}, RV_CHUNK_CHARS, RV_CHUNK_OVERLAP);
    ck_assert_uint_eq(c.n, 1);
    rv_chunks_fini(&c);
}
END_TEST

static const struct {
    const char *text, *first;
} cuts[] = {
    {"One two three four.\n\nFive. Six seven eight", "One two three four.\n\n"}, /* a paragraph */
    {"One two three four. Five six seven eight", "One two three four. "},        /* a sentence */
    {"One two three four\nfive six seven eight", "One two three four\n"},        /* a line */
    {"One two three four five six seven eight", "One two three four five six "},
    {"One. twothreefourfivesixseveneightnine", "One. twothreefourfivesixsevene"}, /* only in the second half */
    {"One two 3.14159 four 2.71828e five six", "One two 3.14159 four 2.71828e "},
};

START_TEST(a_chunk_ends_at_the_best_border)
{
    struct rv_chunks c = chunks_of(rv_str_of(cuts[_i].text), 30, 0);

    ck_assert(c.n >= 1 && rv_str_is(c.at[0], cuts[_i].first));
    rv_chunks_fini(&c);
}
END_TEST

static const struct {
    const char *path, *name;
} names[] = {
    {"report.pdf", "report"},
    {"docs/guide.md", "guide"},
    {"docs/README.md", "docs"},
    {"a/b/Readme.txt", "b"},
    {"README.md", "README"},
    {"../README.md", "README"},
    {"./README", "README"},
    {"x.tar.gz", "x.tar"},
    {".bashrc", ".bashrc"},
    {"docs/", "docs"},
    {"a.", "a."},
    {"", ""},
    {"README/page.md", "page"},
};

/* 7: "name = stem (README takes its folder's name)" */
START_TEST(a_page_has_its_name)
{
    rv_buf out = RV_BUF_INIT(1000);

    rv_page_write_name(rv_str_of(names[_i].path), &out);
    ck_assert_str_eq(rv_buf_cstr(&out), names[_i].name);
    rv_buf_fini(&out);
}
END_TEST

static const struct {
    const char *text, *targets; /* with a bar behind each */
} pages[] = {
    {"[a](one.md) and [b](dir/two.html#x)", "one|two|"},
    {"[a](one.md) [b](One.md) [c](ONE.txt)", "one|"}, /* first occurrence only */
    {"[a](http://e.org/x.md)[b](https://e.org)[c](mailto:a@b.c)[d](#x)[e](data:,x)[f](HTTP://x)", ""},
    {"`[a](a.md)` ``[b](b.md)`[b](b2.md)`` [c](c.md)", "c|"},
    {"```\n[a](a.md)\n```\n[b](b.md)", "b|"},
    {"~~~\n[a](a.md)\n```\n[a](a2.md)\n~~~\n[b](b.md)", "b|"},
    {"````md\n```\n[a](a.md)\n```\n````\n[b](b.md)", "b|"},
    {"```\nnever closed [a](a.md)", ""},
    {"   ```\n[a](a.md)\n   ```\n", ""},
    {"a ` b [c](c.md)\n\n[d](d.md) ` e", "c|d|"}, /* a backquote without another in its paragraph is one */
    {"[a](one.md \"a title\") [b](two.md 'x)') [c](<th ree.md>)", "one|two|th ree|"},
    {"[a [b] c](x.md) [a](y(1).md) \\[a](z.md)", "x|y(1)|"},
    {"[![i](pic.png)](page.md) ![[x](y.md)](p.md) \\![a](a.md) !`b`[b](b.md)",
     "page|a|b|"}, /* pictures are not links */
    {"[a](ftp://h/x.md) [b](javascript:y) [c](//h/z.md) [d](a/b:c.md) [e](:x.md) [f](x.y+z-1:q)", "b:c|:x|"},
    {"[a](docs/README.md) [b](docs/)", "docs|"},
    {"[a](my%20page.md) [b](%ff.md) [c](%00.md)", "my page|%ff|%00|"},
    {"[a] (x.md) [b](y.md", ""},
    {"[a\n\nb](x.md) [c\nd](y.md)", "y|"},
    {"[](x.md) [a]() [b](?q) [c](..)", "x|"},
};

static void check_links(const char *text, const char *path, const char *expected)
{
    json_object *edges = NULL;
    rv_buf shown = RV_BUF_INIT(10000);

    ck_assert_int_eq(rv_page_build_links(rv_str_of(text), rv_str_of(path), &edges, NULL), 0);
    for (size_t i = 0; i < json_object_array_length(edges); i++) {
        json_object *edge = json_object_array_get_idx(edges, i);
        const char *target, *relation;
        ck_assert(rv_json_get_text(edge, "target", &target) && rv_json_get_text(edge, "relation", &relation));
        ck_assert_str_eq(relation, "links_to");
        ck_assert(json_object_get_double(json_object_object_get(edge, "weight")) == 1);
        rv_buf_printf(&shown, "%s|", target);
    }
    ck_assert_str_eq(rv_buf_cstr(&shown), expected);
    rv_buf_fini(&shown);
    json_object_put(edges);
}

START_TEST(a_page_has_its_links)
{
    check_links(pages[_i].text, "", pages[_i].targets);
}
END_TEST

START_TEST(links_start_from_the_folder_of_the_page)
{
    check_links("[a](README.md) [b](../README.md) [c](../../README.md) [d](/x/README.md)", "a/b/page.md",
                "b|a|README|x|");
}
END_TEST

/* Brackets, backquotes and parentheses without end: read in a few passes, and within the limits. */
START_TEST(hostile_pages_are_read_in_time)
{
    static const char *const pieces[] = {"[", "](", "[](", "[](x \"", "`", "[a", "(", "` ``", "[](<", "[x][](", "\\["};
    rv_buf text = RV_BUF_INIT(RV_PAGE_MAX_BYTES + 100);
    json_object *edges = NULL;

    while (text.len < (1u << 20))
        rv_buf_puts(&text, pieces[_i]);
    ck_assert_int_eq(rv_page_build_links(rv_buf_str(&text), RV_STR_LIT(""), &edges, NULL), 0);
    json_object_put(edges);
    rv_buf_fini(&text);
}
END_TEST

/* A page that cannot have that name is not meant: it keeps no other page out of the store. */
START_TEST(links_to_what_no_page_can_be_called_are_left_out)
{
    rv_buf text = RV_BUF_INIT(20000), expected = RV_BUF_INIT(20000);

    rv_buf_puts(&text, "[a](");
    for (int i = 0; i < 1024; i++) {
        rv_buf_putc(&text, 'x');
        rv_buf_putc(&expected, 'x');
    }
    rv_buf_puts(&text, ".md) [b](");
    for (int i = 0; i < 1025; i++)
        rv_buf_putc(&text, 'y');
    rv_buf_puts(&text, ".md) [c](");
    for (int i = 0; i < 128; i++)
        rv_buf_puts(&text, "a/");
    rv_buf_puts(&text, "real.md) [d](");
    for (int i = 0; i < 127; i++)
        rv_buf_puts(&text, "a/");
    rv_buf_puts(&text, "deep.md)");
    rv_buf_puts(&expected, "|deep|");
    check_links(rv_buf_cstr(&text), "", rv_buf_cstr(&expected));
    rv_buf_fini(&text);
    rv_buf_fini(&expected);
}
END_TEST

START_TEST(links_of_a_page_have_a_limit)
{
    rv_buf text = RV_BUF_INIT(RV_PAGE_MAX_BYTES + 100);
    json_object *edges = NULL;

    for (int i = 0; i < RV_PAGE_MAX_LINKS + 10; i++)
        rv_buf_printf(&text, "[a](p%d.md) ", i);
    ck_assert_int_eq(rv_page_build_links(rv_buf_str(&text), RV_STR_LIT(""), &edges, NULL), 0);
    ck_assert_uint_eq(json_object_array_length(edges), RV_PAGE_MAX_LINKS);
    json_object_put(edges);
    while (text.len <= RV_PAGE_MAX_BYTES)
        rv_buf_puts(&text, "0123456789");
    ck_assert_int_eq(rv_page_build_links(rv_buf_str(&text), RV_STR_LIT(""), &edges, NULL), RV_E_LIMIT);
    rv_buf_fini(&text);
}
END_TEST

TCase *pages_case(void)
{
    TCase *c = tcase_create("pages");

    tcase_add_loop_test(c, chunks_cover_the_text, 0, 4);
    tcase_add_test(c, a_text_without_borders_is_cut_where_chunks_are_full);
    tcase_add_loop_test(c, a_chunk_ends_at_the_best_border, 0, RV_COUNT(cuts));
    tcase_add_loop_test(c, a_page_has_its_name, 0, RV_COUNT(names));
    tcase_add_loop_test(c, a_page_has_its_links, 0, RV_COUNT(pages));
    tcase_add_test(c, links_start_from_the_folder_of_the_page);
    tcase_add_loop_test(c, hostile_pages_are_read_in_time, 0, 11);
    tcase_add_test(c, links_to_what_no_page_can_be_called_are_left_out);
    tcase_add_test(c, links_of_a_page_have_a_limit);
    return c;
}
