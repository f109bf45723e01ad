/* One table parses, checks, defaults and makes the schema. */
#include <stddef.h>
#include <stdlib.h>

#include "tests/unit/yaml/suites.h"

struct thing {
    const char *name, *note;
    bool on, has_size;
    int64_t size;
    double share, least;
    int mode;
    struct rv_str_list tags;
    json_object *any;
    int64_t inner_n;
    struct rv_src size_src;
};
#define AT(member) offsetof(struct thing, member)

static const struct rv_key inner_keys[] = {
    {.name = "n", .type = RV_KEY_INT, .offset = 0, .required = true, .min = 1, .max = 9},
};
static const struct rv_key keys[] = {
    {.name = "name", .type = RV_KEY_STR, .offset = AT(name), .required = true, .doc = "Its name."},
    {.name = "note", .type = RV_KEY_STR, .offset = AT(note)},
    {.name = "on", .type = RV_KEY_BOOL, .offset = AT(on), .default_text = "true"},
    {.name = "size",
     .type = RV_KEY_INT,
     .offset = AT(size),
     .min = 1,
     .max = 100,
     .default_text = "7",
     .is_set_offset = AT(has_size),
     .src_offset = AT(size_src)},
    {.name = "share", .type = RV_KEY_FLOAT, .offset = AT(share), .min = 0, .max = 1, .default_text = "0.5"},
    {.name = "mode", .type = RV_KEY_TERM, .offset = AT(mode), .term_list = "run_mode"},
    {.name = "tags", .type = RV_KEY_STR_LIST, .offset = AT(tags)},
    {.name = "any", .type = RV_KEY_JSON, .offset = AT(any)},
    {.name = "least", .type = RV_KEY_FLOAT, .offset = AT(least), .min = 0.25, .max = -1},
    {.name = "inner", .type = RV_KEY_MAP, .offset = AT(inner_n), .keys = inner_keys, .n_keys = RV_COUNT(inner_keys)},
};

static char *read_thing(const char *text, struct thing *out, rv_arena *arena, bool hide)
{
    rv_findings *findings = rv_findings_new();
    rv_buf b = RV_BUF_INIT(1 << 16);
    rv_yaml *doc = NULL;
    struct rv_key_reader r = {
        .arena = arena, .findings = findings, .owner_kind = "thing", .owner_name = "x", .hide_values = hide};
    char *printed;

    *out = (struct thing){0};
    ck_assert_int_eq(rv_yaml_parse(rv_str_of(text), "t.yaml", findings, &doc, NULL), 0);
    rv_keys_read(&r, rv_yaml_root(doc), keys, RV_COUNT(keys), out);
    ck_assert_int_eq(r.rc, 0);
    rv_findings_write_text(findings, false, &b);
    rv_buf_putc(&b, ' ');
    rv_buf_truncate(&b, b.len - 1);
    printed = rv_buf_steal(&b, NULL);
    rv_findings_free(findings);
    rv_yaml_free(doc);
    return printed;
}

START_TEST(sets_defaults_and_reads_what_is_there)
{
    rv_arena *arena = rv_arena_new(1 << 20);
    struct thing t;
    char *found = read_thing("name: a", &t, arena, false);

    ck_assert_str_eq(found, "");
    ck_assert_str_eq(t.note, "");
    ck_assert(t.on && !t.has_size && !t.tags.is_set);
    ck_assert_int_eq(t.size, 7);
    ck_assert_double_eq(t.share, 0.5);
    ck_assert_int_eq(t.mode, RV_UNSET);
    ck_assert_int_eq(t.size_src.line, 0);
    free(found);
    found =
        read_thing("{name: b, on: false, size: 3.0, share: 1, mode: parallel, tags: [], any: {k: ~}, inner: {n: 2}}",
                   &t, arena, false);
    ck_assert_str_eq(found, "");
    ck_assert(!t.on && t.has_size && t.tags.is_set && t.tags.n == 0);
    ck_assert_int_eq(t.size, 3); /* a whole number may be written as a float */
    ck_assert_double_eq(t.share, 1);
    ck_assert_int_eq(t.mode, RV_MODE_PARALLEL);
    ck_assert_int_eq(t.inner_n, 2);
    ck_assert_int_eq(t.size_src.col, 28);
    json_object_put(t.any);
    free(found);
    rv_arena_free(arena);
}
END_TEST

static const struct {
    const char *text, *want;
} wrong[] = {
    {"{}", "t.yaml:1:1: error: thing \"x\": name is required\n  hint: add `name:`, its name\n"},
    {"name: ''", "t.yaml:1:7: error: thing \"x\": name is required but empty\n"},
    {"[1]", "t.yaml:1:1: error: thing \"x\": must be a map, not list\n"
            "  hint: keys here: name, note, on, size, share, mode, tags, any, least, inner\n"},
    {"nmae: a\nname: b", "t.yaml:1:1: error: thing \"x\": unknown key \"nmae\"\n  hint: did you mean \"name\"?\n"},
    {"{name: b, qqqqqqqq: 1}", "t.yaml:1:11: error: thing \"x\": unknown key \"qqqqqqqq\"\n"
                               "  hint: keys here: name, note, on, size, share, mode, tags, any, least, inner\n"},
    {"{name: b, on:1}", "t.yaml:1:11: error: thing \"x\": unknown key \"on:1\"\n"
                        "  hint: a blank belongs between \":\" and the value\n"},
    {"name: 12", "t.yaml:1:7: error: thing \"x\": name must be a string, not integer 12\n"
                 "  hint: put it in quotes: \"12\"\n"},
    {"{name: b, note: }", "t.yaml:1:17: error: thing \"x\": note must be a string, not null\n"
                          "  hint: leave the key out to get its default\n"},
    {"{name: b, on: yes}", "t.yaml:1:15: error: thing \"x\": on must be a boolean, not string \"yes\"\n"
                           "  hint: booleans are written true and false\n"},
    {"{name: b, size: '3'}", "t.yaml:1:17: error: thing \"x\": size must be an integer, not string \"3\"\n"
                             "  hint: write the number without quotes\n"},
    {"{name: b, size: 3.5}", "t.yaml:1:17: error: thing \"x\": size must be an integer, not number 3.5\n"
                             "  hint: write a whole number, without unit or quotes\n"},
    {"{name: b, size: 0}", "t.yaml:1:17: error: thing \"x\": size must be at least 1, not 0\n"
                           "  hint: left out, it is 7\n"},
    {"{name: b, size: 101}", "t.yaml:1:17: error: thing \"x\": size must be at most 100, not 101\n"
                             "  hint: left out, it is 7\n"},
    {"{name: b, share: .nan}", "t.yaml:1:18: error: thing \"x\": share must be a finite number, not .nan\n"},
    {"{name: b, share: .inf}", "t.yaml:1:18: error: thing \"x\": share must be at most 1, not .inf\n"
                               "  hint: left out, it is 0.5\n"},
    {"{name: b, mode: paralel}", "t.yaml:1:17: error: thing \"x\": mode is \"paralel\", which is not a valid run mode\n"
                                 "  hint: did you mean \"parallel\"? legal: sequential, parallel\n"},
    {"{name: b, tags: x}", "t.yaml:1:17: error: thing \"x\": tags must be a list of strings, not string \"x\"\n"
                           "  hint: write a list: [x]\n"},
    {"{name: b, tags: [a, 2]}", "t.yaml:1:21: error: thing \"x\": tags[1] must be a string, not integer 2\n"
                                "  hint: put it in quotes: \"2\"\n"},
    {"{name: b, any: .inf}", "t.yaml:1:16: error: the number .inf has no JSON form\n"},
    {"{name: b, inner: {n: 10}}", "t.yaml:1:22: error: thing \"x\": inner.n must be at most 9, not 10\n"
                                  "  hint: the nearest legal value is 9\n"},
    {"{name: b, inner: {n: -7}}", "t.yaml:1:22: error: thing \"x\": inner.n must be at least 1, not -7\n"
                                  "  hint: the nearest legal value is 1\n"},
    {"{name: b, least: 0}", "t.yaml:1:18: error: thing \"x\": least must be at least 0.25, not 0\n"
                            "  hint: the nearest legal value is 0.25\n"},
    {"{name: b, least: .inf}", "t.yaml:1:18: error: thing \"x\": least must be a finite number, not .inf\n"},
    {"{name: b, inner: {m: 1}}", "t.yaml:1:19: error: thing \"x\": unknown key \"inner.m\"\n  hint: keys here: n\n"
                                 "t.yaml:1:18: error: thing \"x\": inner.n is required\n  hint: add `n:`\n"},
};

/* Proves 4.3/strict, W40 */
START_TEST(says_what_is_wrong_with_a_value)
{
    rv_arena *arena = rv_arena_new(1 << 20);
    struct thing t;
    char *found = read_thing(wrong[_i].text, &t, arena, false);

    ck_assert_str_eq(found, wrong[_i].want);
    free(found);
    json_object_put(t.any);
    rv_arena_free(arena);
}
END_TEST

START_TEST(hides_values_that_may_be_secrets)
{
    rv_arena *arena = rv_arena_new(1 << 20);
    struct thing t;
    char *found = read_thing("{name: 12, size: s3cret, share: 7777, tags: ['4', 4], least: -1}", &t, arena, true);

    ck_assert_str_eq(found, "t.yaml:1:8: error: thing \"x\": name must be a string, not integer\n"
                            "t.yaml:1:18: error: thing \"x\": size must be an integer, not string\n"
                            "  hint: write a whole number, without unit or quotes\n"
                            "t.yaml:1:33: error: thing \"x\": share is out of range\n  hint: legal: 0 to 1\n"
                            "t.yaml:1:51: error: thing \"x\": tags[1] must be a string, not integer\n"
                            "t.yaml:1:62: error: thing \"x\": least is out of range\n  hint: legal: 0.25 or more\n");
    free(found);
    rv_arena_free(arena);
}
END_TEST

START_TEST(writes_the_schema_and_the_reference_of_the_same_rows)
{
    rv_buf b = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&b);

    rv_keys_write_schema(keys, 4, &w);
    ck_assert_str_eq(rv_buf_cstr(&b), "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                                      "\"name\":{\"description\":\"Its name.\",\"type\":\"string\",\"minLength\":1},"
                                      "\"note\":{\"type\":\"string\"},\"on\":{\"default\":true,\"type\":\"boolean\"},"
                                      "\"size\":{\"default\":7,\"type\":\"integer\",\"minimum\":1,\"maximum\":100}},"
                                      "\"required\":[\"name\"]}");
    rv_buf_clear(&b);
    rv_keys_write_markdown(&keys[3], 3, &b);
    ck_assert_str_eq(rv_buf_cstr(&b), "| key | type | default | meaning |\n| --- | --- | --- | --- |\n"
                                      "| `size` | integer, 1 to 100 | `7` |  |\n"
                                      "| `share` | number | `0.5` |  |\n"
                                      "| `mode` | one of `sequential` `parallel` | unset |  |\n");
    rv_buf_fini(&b);
}
END_TEST

TCase *keys_case(void)
{
    TCase *tc = tcase_create("keys");

    tcase_add_test(tc, sets_defaults_and_reads_what_is_there);
    tcase_add_loop_test(tc, says_what_is_wrong_with_a_value, 0, RV_COUNT(wrong));
    tcase_add_test(tc, hides_values_that_may_be_secrets);
    tcase_add_test(tc, writes_the_schema_and_the_reference_of_the_same_rows);
    return tc;
}
