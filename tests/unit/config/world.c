#include "tests/unit/config/world.h"

#include <stdlib.h>

struct loaded load_text(const char *text, const char *dir)
{
    rv_findings *findings = rv_findings_new();
    struct loaded l = {NULL, NULL, 0};
    rv_buf b = RV_BUF_INIT(1 << 20);

    ck_assert_int_eq(rv_pipeline_parse(rv_str_of(text), "t.yaml", dir, findings, &l.p, NULL), 0);
    rv_findings_sort(findings);
    rv_findings_write_text(findings, false, &b);
    rv_buf_putc(&b, ' ');
    rv_buf_truncate(&b, b.len - 1);
    l.findings = rv_buf_steal(&b, NULL);
    l.n_errors = rv_findings_n_errors(findings);
    ck_assert(!l.p || l.p->is_sound == (l.n_errors == 0));
    rv_findings_free(findings);
    return l;
}

struct loaded load_clean(const char *text)
{
    struct loaded l = load_text(text, ".");

    ck_assert_str_eq(l.findings, "");
    ck_assert(l.p && l.p->is_sound);
    return l;
}

void loaded_fini(struct loaded *l)
{
    rv_pipeline_free(l->p);
    free(l->findings);
}

void expect_findings(const char *text, const char *want)
{
    struct loaded l = load_text(text, ".");

    ck_assert_str_eq(l.findings, want);
    loaded_fini(&l);
}
