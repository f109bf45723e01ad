#include "tests/kit/suites.h"
#include "tests/unit/script/suites.h"

rv_script *script_of(const char *text, char **findings)
{
    static rv_yaml *doc;
    rv_findings *f = rv_findings_new();
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_script *s = NULL;

    rv_yaml_free(doc);
    doc = NULL;
    ck_assert_int_eq(rv_yaml_parse(rv_str_of(text), "s.yaml", f, &doc, NULL), 0);
    ck_assert_ptr_nonnull(doc);
    ck_assert_int_eq(rv_script_read_node(rv_yaml_root(doc), f, &s, NULL), 0);
    rv_findings_sort(f);
    rv_findings_write_text(f, false, &out);
    if (findings) {
        rv_buf_puts(&out, "");
        *findings = rv_buf_steal(&out, NULL);
        if (!*findings)
            *findings = rv_str_dup(rv_str_of(""));
    } else {
        ck_assert_msg(s && rv_findings_n(f) == 0, "%s", rv_buf_cstr(&out));
    }
    rv_buf_fini(&out);
    rv_findings_free(f);
    return s;
}

int main(void)
{
    static Suite *(*const suites[])(void) = {read_suite, next_suite, catalog_suite, source_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
