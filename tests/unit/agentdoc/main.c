#include "tests/kit/suites.h"
#include "tests/unit/agentdoc/suites.h"

#include <stdlib.h>
#include <string.h>

char *findings_of(const char *text, struct rv_agentdoc **out)
{
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc *d = NULL;
    rv_buf b = RV_BUF_INIT(1 << 20);
    char *printed;

    ck_assert_int_eq(rv_agentdoc_parse(rv_str_of(text), "a.yaml", findings, &d, NULL), 0);
    ck_assert((d != NULL) == (rv_findings_n_errors(findings) == 0));
    rv_findings_sort(findings);
    rv_findings_write_text(findings, false, &b);
    rv_buf_putc(&b, ' ');
    rv_buf_truncate(&b, b.len - 1);
    printed = rv_buf_steal(&b, NULL);
    rv_findings_free(findings);
    if (out)
        *out = d;
    else
        rv_agentdoc_free(d);
    return printed;
}

struct rv_agentdoc *doc_of(const char *text)
{
    struct rv_agentdoc *d = NULL;
    char *findings = findings_of(text, &d);

    ck_assert_msg(d != NULL, "%s\n%s", text, findings);
    free(findings);
    return d;
}

char *flat_of(const struct rv_agentdoc *d)
{
    return rv_kit_text(d->flat);
}

void ck_findings(const char *text, const char *want)
{
    char *got = findings_of(text, NULL);

    if (want)
        ck_assert_msg(strstr(got, want) != NULL, "%s\nwant: %s\ngot:  %s", text, want, got);
    else
        ck_assert_msg(got[0] == 0, "%s\ngot: %s", text, got);
    free(got);
}

int main(void)
{
    static TCase *(*const cases[])(void) = {forms_case,  scalars_case, tools_case, schema_case, prompt_case,
                                            output_case, write_case,   with_case,  source_case};

    return rv_kit_run_cases("agentdoc", cases, RV_COUNT(cases));
}
