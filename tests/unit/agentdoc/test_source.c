/* The same document in YAML and in JSON, what is too large, and faults as errors. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agentdoc/suites.h"

static const struct {
    const char *text, *description; /* NULL: there are findings */
    int line;                       /* of the name; 1: JSON that YAML reads otherwise */
} sources[] = {
    {"name: a\ndescription: d\n", "d", 1},
    {"{\"name\":\"a\",\"description\":\"d\"}", "d", 1},
    {" \n{\n\"description\":\"d\",\n\"name\":\"a\"}\n", "d", 4},    /* JSON that YAML reads has places */
    {"{\n\t\"description\":\"d\",\n\t\"name\":\t\"a\"\n}", "d", 0}, /* tabs */
    {"{\"name\":\"a\",\n\"description\":\"a\\/b\"}", "a/b", 0},     /* an escape that YAML has, too */
    {"{\n\"name\":\"a\",\"description\":\"\\ud83d\\ude00\"}", "\xf0\x9f\x98\x80", 1}, /* a pair of surrogates */
    {"{\n\"name\":\"a\",\"description\":\"x\xc2\x85y\"}", "x\xc2\x85y", 1},           /* a line break of YAML */
    {"{\n\"name\":\"a\",\"description\":\"x\x7fy\"}", "x\x7fy", 1},
    {"{name: a, description: d}", "d", 1}, /* YAML that is no JSON */
    {"{\"name\":\"a\",\"name\":\"b\"}", NULL, 0},
    {"{\"name\":\"a\"", NULL, 0},
    {"{\"name\":\"a\",\"x-a\":\"\\u0000\"}", NULL, 0},
    {"name: a\nname: b\n", NULL, 0},
    {"a: *b\n", NULL, 0},
};

START_TEST(json_is_read_as_what_it_says)
{
    struct rv_agentdoc *d = NULL;
    char *findings = findings_of(sources[_i].text, &d);

    if (!sources[_i].description) {
        ck_assert_ptr_null(d);
        ck_assert(strncmp(findings, "a.yaml:", 7) == 0);
    } else {
        ck_assert_msg(d != NULL, "%s", findings);
        ck_assert_str_eq(d->description, sources[_i].description);
        ck_assert_str_eq(d->name, "a");
        ck_assert_str_eq(d->name_src.file, "a.yaml");
        if (sources[_i].line > 0)
            ck_assert_int_eq(d->name_src.line, sources[_i].line);
    }
    free(findings);
    rv_agentdoc_free(d);
}
END_TEST

START_TEST(values_of_json_keep_their_types)
{
    struct rv_agentdoc *d =
        doc_of("{\"name\":\"a\",\"description\":\"\\ud83d\\ude00\",\"temperature\":1,\"max_tokens\":2.0,"
               "\"x-all\":[null,true,1,2.50,18446744073709551615,{\"k\":[]}]}");
    char *flat = flat_of(d);

    ck_assert(d->temperature == 1 && d->max_tokens == 2);
    ck_assert_msg(strstr(flat, "\"x-all\":[null,true,1,2.50,18446744073709551615,{\"k\":[]}]") != NULL, "%s", flat);
    free(flat);
    rv_agentdoc_free(d);
}
END_TEST

/* Proves p8.W20 */
START_TEST(what_is_too_large_is_refused)
{
    rv_buf text = RV_BUF_INIT(2 * RV_AGENTDOC_MAX_BYTES);
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc *d = NULL;

    rv_buf_puts(&text, "name: a\ndescription: ");
    while (text.len <= RV_AGENTDOC_MAX_BYTES)
        rv_buf_putc(&text, 'x');
    ck_assert_int_eq(rv_agentdoc_parse(rv_buf_str(&text), "a.yaml", findings, &d, NULL), RV_E_LIMIT);
    rv_buf_clear(&text);
    rv_buf_puts(&text, "name: a\ndescription: d\nx-a: &a ");
    for (int i = 0; i < 10000; i++)
        rv_buf_putc(&text, 'x');
    rv_buf_puts(&text, "\nx-b: [");
    for (int i = 0; i < 900; i++)
        rv_buf_puts(&text, "*a, ");
    rv_buf_puts(&text, "]\n");
    ck_assert_int_eq(rv_agentdoc_parse(rv_buf_str(&text), "a.yaml", findings, &d, NULL), RV_E_LIMIT);
    rv_buf_clear(&text); /* nor what is too large only when it is written out */
    rv_buf_puts(&text, "name: a\ndescription: d\nx-a: &a ");
    for (int i = 0; i < 10000; i++)
        rv_buf_putc(&text, 'x');
    rv_buf_puts(&text, "\nx-b: [");
    for (int i = 0; i < 30; i++)
        rv_buf_puts(&text, "*a, ");
    rv_buf_puts(&text, "]\n");
    ck_assert_int_eq(rv_agentdoc_parse(rv_buf_str(&text), "a.yaml", findings, &d, NULL), RV_E_LIMIT);
    ck_assert_ptr_null(d);
    rv_findings_free(findings);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(a_key_has_a_longest)
{
    rv_buf text = RV_BUF_INIT(1 << 12);

    rv_buf_puts(&text, "{\"name\":\"a\",\"description\":\"d\",\"x-map\":{\"");
    for (int i = 0; i <= RV_AGENTDOC_MAX_KEY; i++)
        rv_buf_putc(&text, 'k');
    rv_buf_puts(&text, "\":1}}");
    ck_findings(rv_buf_cstr(&text), "is longer than 512 bytes");
    rv_buf_fini(&text);
}
END_TEST

START_TEST(a_fault_is_an_error_where_findings_are_not_wanted)
{
    struct rv_agentdoc *d = NULL;
    rv_err *err = NULL;
    char *got;

    ck_assert_int_eq(rv_agentdoc_read(RV_STR_LIT("name: a\nmodle: x\nreplay: skp\ntools: 3\n"), "b.yaml", &d, &err),
                     RV_E_INVALID);
    ck_assert_ptr_null(d);
    got = rv_kit_err_take(err);
    ck_assert_str_eq(got, "agent \"a\": replay cannot be \"skp\"  [invalid_argument]  (b.yaml:3:9)\n"
                          "  hint: did you mean \"skip\"?\n");
    free(got);
    ck_assert_int_eq(rv_agentdoc_read(RV_STR_LIT("name: a\nmodle: x\n"), "b.yaml", &d, NULL),
                     0); /* warnings are none */
    ck_assert_ptr_nonnull(d);
    rv_agentdoc_free(d);
    rv_agentdoc_free(NULL);
}
END_TEST

START_TEST(findings_of_others_are_not_counted)
{
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc *d = NULL;

    rv_findings_add(findings, RV_SEVERITY_ERROR, NULL, NULL, "an earlier one");
    ck_assert_int_eq(rv_agentdoc_parse(RV_STR_LIT("name: a\ndescription: d\n"), "a.yaml", findings, &d, NULL), 0);
    ck_assert_ptr_nonnull(d);
    rv_agentdoc_free(d);
    rv_findings_free(findings);
}
END_TEST

TCase *source_case(void)
{
    TCase *tc = tcase_create("source");

    tcase_add_loop_test(tc, json_is_read_as_what_it_says, 0, RV_COUNT(sources));
    tcase_add_test(tc, values_of_json_keep_their_types);
    tcase_add_test(tc, what_is_too_large_is_refused);
    tcase_add_test(tc, a_key_has_a_longest);
    tcase_add_test(tc, a_fault_is_an_error_where_findings_are_not_wanted);
    tcase_add_test(tc, findings_of_others_are_not_counted);
    return tc;
}
