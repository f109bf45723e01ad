#include "tests/kit/suites.h"
#include "tests/unit/yaml/suites.h"

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
    static TCase *(*const cases[])(void) = {scalars_case, reader_case, keys_case,       findings_case,
                                            table_case,   format_case, format_many_case};

    return rv_kit_run_cases("yaml", cases, RV_COUNT(cases));
}
