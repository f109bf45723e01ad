/* Every allocation fails once as a document is read, written, changed and asked for its prompt: no crash, no leak,
 * RV_E_NOMEM. */
#include <check.h>

#include "config/agentdoc/agentdoc.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

static const char flat[] =
    "name: a\ndescription: |\n  Two\n  lines.\nsystem_prompt: s\nmodel: m\ntemperature: '0.5'\nmax_iterations: '3'\n"
    "properties:\n  p: {type: [string, 'null'], enum: [a, [1.5, \"it's\"], {k: 5.0e-324}], description: d}\n"
    "  q: {type: array, items: {$ref: '#/$defs/D'}}\nrequired: [p]\n$defs: {D: {type: object, properties: {x: {}}}}\n"
    "tools: [t, {name: u, server: s, description: d, uri: 'user://{id}'}]\nlimits: {request_limit: 3}\n"
    "routing: {agents: [b], fallback: c}\ntags: [g]\nx-odd: {a b: [1, 2.50]}\nchained_tool: t\nchained_map: {p: z}\n"
    "structured_output: true\nresources: [{name: W R}]\n";
static const char nested[] = "description: d\ndefinitions: {D: {}}\nproperties: {p: {$ref: '#/definitions/D'}}\n"
                             "json_schema_extra: {name: a, override_model: m, resources: ['rem://x/{y}']}\n";
static const char json[] = "{\"name\":\"a\",\"content\":\"\\ud83d\\ude00\",\"json_schema\":{\"model_name\":\"m\","
                           "\"tools\":[\"t\",{\"name\":\"u\"}],\"temperature\":0.5,\"structured_output\":true,"
                           "\"response_schema\":{\"properties\":{\"p\":{\"type\":\"string\"}}}}}";
static const char broken[] =
    "name: a b\ndescription: null\ntools: [3, {}]\nmodle: x\nproperties: {p: {$ref: '#/$defs/x'}}\n"
    "$defs: {xy: 3}\nlimits: {request_limt: 3}\nrouting: {agentz: 3}\nreplay: skp\nmodel: ' '\n"
    "chained_map: {pp: 1}\nrequired: [zz]\nname_: 1\n";

static int use(struct rv_agentdoc *d, rv_err **err)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&out);
    json_object *schema = NULL;
    int rc = rv_agentdoc_write_prompt(d, 0, &out, err);

    if (rc == 0)
        rc = rv_agentdoc_build_output_schema(d, 1, &schema, err);
    if (rc == 0) {
        rv_agentdoc_write_yaml(d, &out);
        rv_agentdoc_write_json(d, &w);
        rc = rv_buf_check(&out, "a document", err);
    }
    json_object_put(schema);
    rv_buf_fini(&out);
    return rc;
}

static int read_and_use(const char *text)
{
    struct rv_agentdoc *d = NULL;
    rv_err *err = NULL;
    int rc = rv_agentdoc_read(rv_str_of(text), "a.yaml", &d, &err);

    if (rc == 0)
        rc = use(d, &err);
    rv_agentdoc_free(d);
    rv_err_free(err);
    return rc;
}

static int read_flat(void)
{
    return read_and_use(flat);
}

static int read_nested(void)
{
    return read_and_use(nested);
}

static int read_json(void)
{
    return read_and_use(json);
}

static int read_broken(void)
{
    struct rv_agentdoc *d = NULL;
    rv_findings *findings = rv_findings_new();
    rv_err *err = NULL;
    int rc;

    if (!findings)
        return RV_E_NOMEM;
    rc = rv_agentdoc_parse(rv_str_of(broken), "a.yaml", findings, &d, &err);
    if (rc == 0 && (d || rv_findings_n_errors(findings) == 0))
        rc = RV_E_INTERNAL;
    rv_findings_free(findings);
    rv_err_free(err);
    return rc;
}

static int read_as_error(void)
{
    struct rv_agentdoc *d = NULL;
    rv_err *err = NULL;
    int rc = rv_agentdoc_read(rv_str_of(broken), "a.yaml", &d, &err);

    if (rv_err_is(err, RV_E_NOMEM) ||
        !rv_err_hint_text(err)) /* an error goes without its hint rather than not at all */
        rc = RV_E_NOMEM;
    else if (rc == RV_E_INVALID)
        rc = 0;
    rv_err_free(err);
    return rc;
}

static const char *env(void *self, const char *name)
{
    (void)self;
    (void)name;
    return "1";
}

static int change(void)
{
    struct rv_agentdoc *d = NULL, *copy = NULL;
    rv_err *err = NULL;
    int rc = rv_agentdoc_read(rv_str_of(nested), "a.yaml", &d, &err);

    if (rc == 0)
        rc = rv_agentdoc_dup_with_env(d, env, NULL, &copy, &err);
    rv_agentdoc_free(copy);
    rv_agentdoc_free(d);
    rv_err_free(err);
    return rc;
}

static int describe(void)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    rv_jw w = rv_jw_on(&out);
    int rc;

    rv_agentdoc_write_schema(&w);
    rv_agentdoc_write_reference(&out);
    rc = out.rc;
    rv_buf_fini(&out);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {
    {"flat", read_flat}, {"nested", read_nested}, {"json", read_json},     {"broken", read_broken},
    {"change", change},  {"describe", describe},  {"error", read_as_error}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_agentdoc");
    TCase *tc = tcase_create("fault");

    tcase_add_loop_test(tc, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
