/* Layouts of many files: those of the tree, files of a generator that writes YAML as oddly as YAML permits, and files
 * with random faults. Whatever can be loaded can be formatted, says the same afterwards, and is not changed by a second
 * time. */
#include <dirent.h>
#include <stdlib.h>

#include "coreengine/lang/lang.h"
#include "tests/kit/kit.h"
#include "tests/unit/yaml/suites.h"

static bool same_node(const struct rv_node *a, const struct rv_node *b)
{
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->is_block != b->is_block || a->is_quoted != b->is_quoted || a->n != b->n ||
        !rv_str_eq(a->text, b->text))
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!same_node(a->items[i], b->items[i]) || (a->keys && !same_node(a->keys[i], b->keys[i])))
            return false;
    return true;
}

/* The document of a text, or NULL where it has faults. */
static rv_yaml *loaded(rv_str text)
{
    rv_findings *findings = rv_findings_new();
    rv_yaml *doc = NULL;

    ck_assert_int_eq(rv_yaml_parse(text, "x.yaml", findings, &doc, NULL), 0);
    if (rv_findings_n_errors(findings)) {
        rv_yaml_free(doc);
        doc = NULL;
    }
    rv_findings_free(findings);
    return doc;
}

/* A text whose line begins with "---" behind blanks, which would be another thing in the first column. */
static bool has_false_marker(rv_str text)
{
    for (size_t i = 1; i + 3 <= text.len; i++)
        if (strchr(" \t", text.ptr[i - 1]) &&
            (memcmp(text.ptr + i, "---", 3) == 0 || memcmp(text.ptr + i, "...", 3) == 0))
            return true;
    return false;
}

/* False: it was refused, as it may. */
static bool format(rv_str text, rv_buf *out)
{
    rv_findings *findings = rv_findings_new();
    rv_err *err = NULL;

    int rc = rv_yaml_format(text, "x.yaml", findings, out, &err);
    if (rc < 0 && !(rc == RV_E_INVALID && has_false_marker(text)))
        ck_abort_msg("%s\n%.*s", rv_kit_err_take(err), RV_STR_ARG(text));
    rv_err_free(err);
    ck_assert_uint_eq(rv_findings_n_errors(findings), 0);
    rv_findings_free(findings);
    return rc == 0;
}

/* False: it is not a file that can be loaded. */
static bool try_text(rv_str text)
{
    rv_buf once = RV_BUF_INIT(RV_YAML_MAX_BYTES), twice = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    rv_yaml *before = loaded(text), *after;

    if (!before)
        return false;
    if (!format(text, &once)) {
        rv_yaml_free(before);
        rv_buf_fini(&once);
        return false;
    }
    ck_assert(format(rv_buf_str(&once), &twice));
    after = loaded(rv_buf_str(&once));
    ck_assert_msg(same_node(rv_yaml_root(before), rv_yaml_root(after)), "from\n%.*s\nto\n%s", RV_STR_ARG(text),
                  rv_buf_cstr(&once));
    ck_assert_str_eq(rv_buf_cstr(&once), rv_buf_cstr(&twice));
    ck_assert_ptr_null(strstr(rv_buf_cstr(&once), "\r"));
    rv_yaml_free(before);
    rv_yaml_free(after);
    rv_buf_fini(&once);
    rv_buf_fini(&twice);
    return true;
}

/* --- the tree --- */

static void try_folder(const char *path, int *n)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir))) {
        char *inner = rv_kit_path(path, entry->d_name);
        const char *dot = strrchr(entry->d_name, '.');
        if (entry->d_name[0] != '.' && entry->d_type == DT_DIR && strcmp(entry->d_name, "build") != 0) {
            try_folder(inner, n);
        } else if (dot && entry->d_type == DT_REG && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)) {
            rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);
            ck_assert_int_eq(rv_file_read(inner, &text, NULL), 0);
            *n += try_text(rv_buf_str(&text));
            rv_buf_fini(&text);
        }
        free(inner);
    }
    closedir(dir);
}

START_TEST(every_file_of_the_tree)
{
    int n = 0; /* that can be loaded: corpora have files that cannot */

    try_folder(RV_SOURCE_DIR, &n);
    ck_assert_int_gt(n, 500);
}
END_TEST

/* --- files of a generator --- */

struct writer {
    struct rv_rand_state state;
    struct rv_rand rand;
    rv_buf out;
    const char *end; /* of lines */
    int n_anchors;
};

static int upto(struct writer *w, int n)
{
    return (int)rv_rand_below(w->rand, (uint64_t)n);
}

static bool one_in(struct writer *w, int n)
{
    return upto(w, n) == 0;
}

static const char *pick(struct writer *w, const char *const *words, size_t n)
{
    return words[upto(w, (int)n)];
}
#define PICK(w, list) pick(w, list, RV_COUNT(list))

static void put(struct writer *w, const char *text)
{
    rv_buf_puts(&w->out, text);
}

static void columns(struct writer *w, int n)
{
    for (int i = 0; i < n; i++)
        put(w, " ");
}

static void line_end(struct writer *w)
{
    static const char *const comments[] = {" # c", "  # \xc3\xa4 # - {[", "      #", " #x: |", " # ---  "};

    if (one_in(w, 6))
        put(w, PICK(w, comments));
    else if (one_in(w, 8))
        put(w, one_in(w, 20) ? "\t" : "  ");
    put(w, w->end);
}

/* Blank lines and comments of any column. */
static void noise(struct writer *w)
{
    while (one_in(w, 4)) {
        columns(w, upto(w, 9));
        if (one_in(w, 2))
            put(w, one_in(w, 2) ? "# - a: 1" : "#\tb: [");
        put(w, w->end);
    }
}

static const char *const plain[] = {"x", "1",          "true",    "a b", "a:b",    "-1", "no # c", "\xe2\x82\xac u",
                                    "~", "http://x/y", "x {{y}}", "+",   "a'b\"c", "-x"};
static const char *const quoted[] = {"\"x\"", "'y'", "\"a\\tb # c\"", "'it''s: {'",
                                     "\"\"",  "''",  "\"\\\"\"",      "\"\xc3\xa4: - |\""};

static void flow(struct writer *w, int depth);

static void flow_gap(struct writer *w)
{
    if (one_in(w, 6)) {
        put(w, one_in(w, 3) ? " # in" : "");
        put(w, w->end);
        noise(w);
        columns(w, 12 + upto(w, 9));
    } else {
        columns(w, upto(w, 3));
    }
}

static void flow_scalar(struct writer *w)
{
    static const char *const words[] = {"x", "1", "a b", "true", "-1", "\"q, r\"", "'s]'", "\"\"", "\xc3\xa4"};

    put(w, PICK(w, words));
}

static void flow_items(struct writer *w, int depth, bool is_map)
{
    int n = upto(w, 4);

    flow_gap(w);
    for (int i = 0; i < n; i++) {
        if (is_map) {
            rv_buf_printf(&w->out, one_in(w, 3) ? "\"k%d\"" : "k%d", i);
            columns(w, upto(w, 2));
            put(w, ": ");
            if (one_in(w, 9)) {
                put(w, i + 1 < n ? "," : "");
                continue;
            }
        }
        flow(w, depth - 1);
        flow_gap(w);
        if (i + 1 < n || one_in(w, 9))
            put(w, ",");
        flow_gap(w);
    }
}

static void flow(struct writer *w, int depth)
{
    bool is_map = one_in(w, 2);

    if (depth <= 0 || one_in(w, 2)) {
        flow_scalar(w);
        return;
    }
    put(w, is_map ? "{" : "[");
    flow_items(w, depth, is_map);
    put(w, is_map ? "}" : "]");
}

static void block_scalar(struct writer *w, int column)
{
    static const char *const chomps[] = {"", "-", "+"};
    static const char *const lines[] = {"text", "# no comment", "a: b", "\ttab", "two  ", "- x", "\xc3\xa4 {{b}}"};
    int step = 1 + upto(w, 4), n = upto(w, 5);
    bool is_marked = one_in(w, 3);

    put(w, one_in(w, 3) ? ">" : "|");
    if (is_marked)
        rv_buf_printf(&w->out, "%d", step);
    put(w, PICK(w, chomps));
    line_end(w);
    for (int i = 0; i < n; i++) {
        if (one_in(w, 5)) {
            columns(w, one_in(w, 2) ? 0 : upto(w, column + step + 1));
        } else {
            columns(w, column + step + (is_marked || i > 0 ? upto(w, 3) : 0));
            put(w, PICK(w, lines));
        }
        put(w, w->end);
    }
    while (one_in(w, 4)) {
        columns(w, upto(w, 2) * upto(w, column + step));
        put(w, w->end);
    }
}

static void long_scalar(struct writer *w, int column)
{
    static const char *const marks[] = {"\"", "'", ""};
    const char *mark = PICK(w, marks);

    put(w, mark);
    put(w, "first");
    for (int i = 1 + upto(w, 3); i > 0; i--) {
        put(w, one_in(w, 4) ? "  " : "");
        if (*mark == '"' && one_in(w, 3))
            put(w, one_in(w, 2) ? " \\" : "\\ ");
        put(w, w->end);
        if (one_in(w, 4))
            put(w, w->end);
        columns(w, column + 1 + upto(w, 6));
        put(w, one_in(w, 3) ? "- more" : "more");
    }
    put(w, mark);
    line_end(w);
}

static void map(struct writer *w, int column, int depth, bool is_compact);
static void list(struct writer *w, int column, int depth, bool is_compact);

static void anchor(struct writer *w)
{
    if (one_in(w, 9))
        rv_buf_printf(&w->out, "&a%d ", w->n_anchors++);
}

/* A value behind ":" or "-" that stands in a level of that column. least: columns of a list below it. */
static void value(struct writer *w, int column, int depth, int least)
{
    static const char *const gaps[] = {" ", "  ", "   "};

    if (depth > 0 && one_in(w, 2)) {
        if (one_in(w, 9))
            rv_buf_printf(&w->out, " &a%d", w->n_anchors++);
        line_end(w);
        noise(w);
        if (one_in(w, 2))
            map(w, column + 1 + upto(w, 5), depth - 1, false);
        else
            list(w, column + least + upto(w, 4), depth - 1, false);
        return;
    }
    if (one_in(w, 10)) {
        line_end(w);
        noise(w);
        columns(w, column + 1 + upto(w, 5));
    } else {
        put(w, one_in(w, 40) ? " \t" : PICK(w, gaps));
    }
    switch (upto(w, 7)) {
    case 0:
        block_scalar(w, column);
        return;
    case 1:
        long_scalar(w, column);
        return;
    case 2:
        anchor(w);
        flow(w, 3);
        break;
    case 3:
        anchor(w);
        put(w, PICK(w, quoted));
        break;
    case 4:
        if (w->n_anchors && one_in(w, 3))
            rv_buf_printf(&w->out, "*a%d", upto(w, w->n_anchors));
        break;
    default:
        put(w, PICK(w, plain));
        break;
    }
    line_end(w);
}

static void map(struct writer *w, int column, int depth, bool is_compact)
{
    for (int i = 0, n = 1 + upto(w, 4); i < n; i++) {
        if (i > 0 || !is_compact)
            columns(w, column);
        if (one_in(w, 12)) {
            put(w, "? ");
            rv_buf_printf(&w->out, "k%d", i);
            line_end(w);
            noise(w);
            columns(w, column);
            put(w, ":");
            value(w, column, depth, 1);
        } else {
            rv_buf_printf(&w->out, one_in(w, 4) ? "'k%d'" : "k%d", i);
            put(w, one_in(w, 6) ? "  :" : ":");
            value(w, column, depth, 0);
        }
        noise(w);
    }
}

static void list(struct writer *w, int column, int depth, bool is_compact)
{
    for (int i = 0, n = 1 + upto(w, 4); i < n; i++) {
        int gap = 1 + upto(w, 3);
        if (i > 0 || !is_compact)
            columns(w, column);
        put(w, "-");
        if (depth > 0 && one_in(w, 2)) {
            columns(w, gap);
            if (one_in(w, 3))
                list(w, column + 1 + gap, depth - 1, true);
            else
                map(w, column + 1 + gap, depth - 1, true);
        } else {
            value(w, column, depth, 1);
        }
        noise(w);
    }
}

static void generate(struct writer *w)
{
    static const char *const ends[] = {"\n", "\n", "\n", "\r\n", "\r"};

    w->end = PICK(w, ends);
    w->n_anchors = 0;
    rv_buf_clear(&w->out);
    noise(w);
    if (one_in(w, 8)) {
        put(w, "---");
        line_end(w);
    }
    if (one_in(w, 3))
        list(w, upto(w, 3), 4, false);
    else
        map(w, upto(w, 3), 4, false);
    if (one_in(w, 12)) {
        put(w, one_in(w, 2) ? "..." : "---");
        line_end(w);
        noise(w);
    }
    if (one_in(w, 4) && w->out.len)
        rv_buf_truncate(&w->out, w->out.len - 1);
}

START_TEST(every_file_of_the_generator)
{
    struct writer w = {.out = RV_BUF_INIT(RV_YAML_MAX_BYTES)};
    int n = rv_kit_sample(4000, 200000), n_tried = 0;

    w.rand = rv_rand_seeded(&w.state, 18);
    for (int i = 0; i < n; i++) {
        generate(&w);
        n_tried += try_text(rv_buf_str(&w.out));
    }
    ck_assert_int_gt(n_tried, n / 2);
    rv_buf_fini(&w.out);
}
END_TEST

/* Pieces at random places of files that are in order: most results are not YAML, the others are odd. */
START_TEST(every_file_with_pieces_at_random_places)
{
    static const char *const pieces[] = {
        " ",    "  ", "\n", "\r\n",  "\t",    "#", " # c", ":",   ": ", "- ", "-",  "\n- ", "{",        "}",
        "[",    "]",  ",",  "\"",    "'",     "|", ">",    "&a ", "*a", "? ", "\\", "x",    "\xc2\x85", "\xe2\x80\xa8",
        "\n\n", "!",  "%",  "---\n", "...\n", "0", "+"};
    struct writer w = {.out = RV_BUF_INIT(RV_YAML_MAX_BYTES)};
    int n = rv_kit_sample(6000, 400000), n_tried = 0;
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);

    w.rand = rv_rand_seeded(&w.state, 81);
    for (int i = 0; i < n; i++) {
        generate(&w);
        rv_str made = rv_buf_str(&w.out);
        size_t at = made.len ? (size_t)upto(&w, (int)made.len) : 0;
        rv_buf_clear(&text);
        rv_buf_add(&text, made.ptr, at);
        rv_buf_puts(&text, PICK(&w, pieces));
        at += one_in(&w, 2) && at < made.len;
        rv_buf_add(&text, made.ptr + at, made.len - at);
        n_tried += try_text(rv_buf_str(&text));
    }
    ck_assert_int_gt(n_tried, n / 10);
    rv_buf_fini(&text);
    rv_buf_fini(&w.out);
}
END_TEST

TCase *format_many_case(void)
{
    TCase *tc = tcase_create("format_many");

    tcase_add_test(tc, every_file_of_the_tree);
    tcase_add_test(tc, every_file_of_the_generator);
    tcase_add_test(tc, every_file_with_pieces_at_random_places);
    return tc;
}
