/* output_schema of agents: a pipeline that says more than can be checked is not sound. */
#include <stdlib.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

#define AGENT(name, schema) "  - {name: " name ", has_llm: true, model_role: r, output_schema: " schema "}\n"

static const struct {
    const char *text, *want;
} cases[] = {
    {AGENT("a", "{type: object, properties: {b: {type: integer, minimum: 1}}}"), ""},
    {AGENT("a", "{type: object, properties: {b: {typ: integer}}}") AGENT("b", "{type: object, pattern: \"[\"}"),
     "t.yaml:3:92: error: agent \"a\": schema of the output: /properties/b: unknown keyword \"typ\"\n"
     "  hint: did you mean \"type\"?\n"
     "t.yaml:4:84: error: agent \"b\": schema of the output: /pattern: pattern \"[\", byte 1: the class "
     "does not end: ] is missing\n"},
    {"  - {name: a}\n", ""},
};

/* Proves 12.1/load: An output_schema that is none is an error when the pipeline is loaded */
START_TEST(every_output_schema_must_be_one)
{
    rv_findings *findings = rv_findings_new();
    struct rv_pipeline *p = NULL;
    rv_buf text = RV_BUF_INIT(1 << 16), said = RV_BUF_INIT(1 << 16);

    rv_buf_printf(&text, "name: x\nagents:\n%s", cases[_i].text);
    ck_assert_int_eq(rv_pipeline_parse(rv_buf_str(&text), "t.yaml", ".", findings, &p, NULL), 0);
    ck_assert(p->is_sound);
    ck_assert_int_eq(rv_schema_check_pipeline(p, findings, NULL), 0);
    ck_assert_int_eq(p->is_sound, cases[_i].want[0] == 0);
    rv_findings_write_text(findings, false, &said);
    ck_assert_str_eq(said.len ? rv_buf_cstr(&said) : "", cases[_i].want);
    rv_pipeline_free(p);
    rv_findings_free(findings);
    rv_buf_fini(&text);
    rv_buf_fini(&said);
}
END_TEST

TCase *pipeline_schemas_case(void)
{
    TCase *tc = tcase_create("pipeline_schemas");

    tcase_add_loop_test(tc, every_output_schema_must_be_one, 0, RV_COUNT(cases));
    return tc;
}
