#include "tests/unit/yaml/suites.h"

#include <stdlib.h>

char *findings_of(rv_str text, rv_yaml **out)
{
    rv_findings *findings = rv_findings_new();
    rv_yaml *doc = NULL;
    rv_buf b = RV_BUF_INIT(1 << 20);
    char *printed;

    ck_assert_int_eq(rv_yaml_parse(text, "t.yaml", findings, &doc, NULL), 0);
    rv_findings_sort(findings);
    rv_findings_write_text(findings, false, &b);
    rv_buf_putc(&b, '\0');
    rv_buf_truncate(&b, b.len - 1);
    printed = rv_buf_steal(&b, NULL);
    rv_findings_free(findings);
    if (out)
        *out = doc;
    else
        rv_yaml_free(doc);
    return printed;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {scalars_case, reader_case, keys_case, findings_case};
    Suite *suite = suite_create("yaml");
    SRunner *runner;
    int n_failed;

    for (size_t i = 0; i < RV_COUNT(cases); i++)
        suite_add_tcase(suite, cases[i]());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? 1 : 0;
}
