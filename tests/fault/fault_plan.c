/* Each allocation fails once while a plan or the result of a tool is read, checked or made: no crash, no leak, and the
 * code says no memory. */
#include "coreengine/plan/plan.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

static int read_text(const char *text)
{
    struct rv_plan_reply reply = {rv_str_of(text), NULL, false};
    struct rv_plan plan;
    int rc = rv_plan_parse(&reply, 0, &plan, NULL);

    rv_plan_fini(&plan);
    return rc;
}

static int sound_plan(void)
{
    return read_text("{\"type\":\"tool_calls\",\"calls\":[{\"tool_name\":\"a\",\"arguments\":\"{\\\"n\\\":1.10}\"},"
                     "{\"tool_name\":\"b\"}]}");
}

static int empty_plan(void)
{
    return read_text("{\"type\":\"tool_calls\",\"calls\":[]}");
}

static int read_result(const char *text, bool has_schema)
{
    struct rv_output_promise promise = {.has_schema = has_schema};
    struct rv_output output = {0};
    json_object *result = NULL;
    int rc = rv_json_parse(rv_str_of(text), NULL, &result, NULL);

    if (rc == 0)
        rc = rv_output_build(result, &promise, &output, NULL);
    rv_output_fini(&output);
    json_object_put(result);
    return rc;
}

static int output_of_texts(void)
{
    int rc =
        read_result("{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}", false);

    return rc < 0 ? rc : read_result("{\"content\":[{\"type\":\"text\",\"text\":\"[1]\"}]}", false);
}

static int failed_call(void)
{
    int rc = read_result("{\"isError\":true,\"structuredContent\":{\"a\":1}}", true);

    return rc < 0 ? rc : read_result("{\"content\":[]}", true);
}

static int resolve_arguments(const char *text)
{
    struct rv_plan_step_output outputs[2] = {{true, NULL, NULL}, {false, NULL, NULL}};
    struct rv_plan_resolution out = {0};
    json_object *arguments = NULL;
    int rc = rv_json_parse(RV_STR_LIT("{\"a b\":[1.10,{\"c\":\"x\"}]}"), NULL, &outputs[0].value, NULL);

    if (rc == 0)
        rc = rv_json_parse(rv_str_of(text), NULL, &arguments, NULL);
    if (rc == 0)
        rc = rv_plan_resolve(arguments, outputs, 2, &out, NULL);
    rv_plan_resolution_fini(&out);
    json_object_put(arguments);
    json_object_put(outputs[0].value);
    return rc;
}

static int resolved(void)
{
    return resolve_arguments(
        "{\"n\":\"$0.output[\\\"a b\\\"][0]\",\"l\":[\"<${0.output[\\\"a b\\\"].1}> $$${0.output}\"]}");
}

static int unresolved(void)
{
    return resolve_arguments("{\"l\":[{\"id\":\"see ${0.output.b}\"}]}");
}

static int formatted(void)
{
    struct rv_plan_result item = {RV_STR_LIT("a"), NULL};
    rv_buf text = RV_BUF_INIT(10000);
    int rc = rv_json_parse(RV_STR_LIT("{\"content\":[{\"type\":\"text\",\"text\":\"long enough\"}]}"), NULL,
                           &item.result, NULL);

    if (rc == 0)
        rv_plan_results_write(RV_RESULT_SYNTHESIS, &item, 1, 0, &text);
    rc = rc == 0 ? text.rc : rc;
    rv_buf_fini(&text);
    json_object_put(item.result);
    return rc;
}

static const char schemas[] = "{\"in\":{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"},\"n\":{"
                              "\"items\":{\"$ref\":\"#/$defs/d\"}}},"
                              "\"required\":[\"s\"],\"additionalProperties\":false,\"$defs\":{\"d\":{\"enum\":[1]}}},"
                              "\"out\":{\"x-artifact-type\":"
                              "\"table\",\"properties\":{\"id\":{\"type\":\"string\"},\"l\":{\"type\":\"array\","
                              "\"items\":{\"type\":\"object\"}}}}}";

/* Three tools, two of which are called alike, and a bad one. */
static int make_catalog(rv_plan_catalog **out)
{
    json_object *both = NULL;
    int rc = rv_json_parse(rv_str_of(schemas), NULL, &both, NULL);

    if (rc < 0)
        return rc;
    json_object *in = rv_json_get_obj(both, "in"), *output = rv_json_get_obj(both, "out");
    struct rv_plan_tool tools[] = {
        {.name = "make", .server = "a", .description = "Makes", .input = in, .output = output, .is_http = true},
        {.name = "make", .server = "b", .input = in, .output = output},
        {.name = "use", .server = "b", .input = in},
        {.name = "a b"},
        {.name = "use", .server = "b"},
    };
    rc = rv_plan_catalog_new(tools, RV_COUNT(tools), out, NULL);
    json_object_put(both);
    return rc;
}

static int validate(const char *calls)
{
    rv_plan_catalog *catalog = NULL;
    rv_buf text = RV_BUF_INIT(1000000);
    rv_jw out = rv_jw_on(&text);
    struct rv_plan_check check = {0};
    struct rv_plan_reply reply = {rv_str_of(calls), NULL, false};
    struct rv_plan plan = {0};
    int rc = make_catalog(&catalog);

    if (rc == 0)
        rc = rv_plan_parse(&reply, 0, &plan, NULL);
    if (rc == 0)
        rc = rv_plan_validate(&plan, catalog, NULL, &check, NULL);
    for (size_t i = 0; rc == 0 && i < check.n_errors; i++)
        rv_plan_error_write_json(&check.errors[i], &out);
    if (rc == 0)
        rv_plan_check_write_text(&check, &text);
    rc = rc == 0 ? text.rc : rc;
    rv_buf_fini(&text);
    rv_plan_check_fini(&check);
    rv_plan_fini(&plan);
    rv_plan_catalog_free(catalog);
    return rc;
}

static int valid(void)
{
    return validate(
        "{\"type\":\"tool_calls\",\"calls\":[{\"tool_name\":\"a.make\",\"arguments\":{\"s\":\"$$0.output\"}},"
        "{\"tool_name\":\"use\",\"after\":[0],\"arguments\":{\"s\":\"${0.output.artifact_id}!\",\"n\":[1,"
        "\"$0.output.l[0].x\"]}}]}");
}

static int invalid(void)
{
    return validate(
        "{\"type\":\"tool_calls\",\"calls\":[{\"tool_name\":\"make\"},{\"tool_name\":\"nope\",\"arguments\":[1]},"
        "{\"tool_name\":\"a.make\",\"after\":7},{\"tool_name\":\"use\",\"arguments\":{\"s\":\"$2.output.l\","
        "\"n\":[2,\"$2.output.none\"],\"x\":\"a $0.output.b\"}}]}");
}

static int planner_of(bool any_of)
{
    struct rv_planner_opts opts = {.any_of = any_of, .has_options = true};
    rv_plan_catalog *catalog = NULL;
    rv_buf text = RV_BUF_INIT(1000000);
    json_object *schema = NULL;
    int rc = make_catalog(&catalog);

    if (rc == 0)
        rc = rv_plan_build_schema(catalog, &opts, &schema, NULL);
    if (rc == 0)
        rv_plan_write_brief(catalog, &opts, &text);
    rv_jw fields = rv_jw_on(&text);
    if (rc == 0)
        rv_plan_fields_write(schema, &fields);
    rc = rc == 0 ? text.rc : rc;
    json_object_put(schema);
    rv_buf_fini(&text);
    rv_plan_catalog_free(catalog);
    return rc;
}

static int portable(void)
{
    return planner_of(false);
}

static int with_arguments(void)
{
    return planner_of(true);
}

static int artifact_of(const char *schema, const char *text)
{
    struct rv_artifact_source source = {
        .tool = "t", .fresh_id = "i", .created_at = "now", .context = {.context_id = "c", .task_id = "k"}};
    struct rv_artifact artifact = {0};
    int rc = rv_json_parse(rv_str_of(text), NULL, &source.result, NULL);

    if (rc == 0)
        rc = rv_json_parse(rv_str_of(schema), NULL, &source.schema, NULL);
    source.arguments = source.schema;
    if (rc == 0)
        rc = rv_artifact_build(&source, &artifact, NULL);
    rv_artifact_fini(&artifact);
    json_object_put(source.schema);
    json_object_put(source.result);
    return rc;
}

static int artifact_of_form(void)
{
    return artifact_of("{\"x-artifact-type\":\"form\",\"properties\":{\"a\":{\"enum\":[1],\"default\":1}}}",
                       "{\"structuredContent\":{\"artifact_id\":\"w\",\"artifact\":{\"skill_id\":\"s\"},\"_metadata\":"
                       "{\"execution_id\":\"e\"}}}");
}

static int artifact_of_table(void)
{
    return artifact_of("{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"a\":{}}}}",
                       "{\"structuredContent\":[1]}");
}

static int parts_of_content(void)
{
    return artifact_of("{}",
                       "{\"content\":[{\"type\":\"text\",\"text\":\"t\"},{\"type\":\"resource_link\",\"uri\":\"u\"},"
                       "{\"type\":\"other\"}]}");
}

static int wrapped(void)
{
    struct rv_artifact_context context = {.context_id = "c", .skill_id = "s", .execution_id = "e"};
    json_object *payload = json_object_new_object(), *result = NULL, *schema = NULL;
    int rc = payload ? rv_artifact_wrap(&(struct rv_artifact_made){payload, "i", "t", "now", "done"}, &context, &result,
                                        NULL)
                     : RV_E_NOMEM;

    if (rc == 0)
        rc = rv_artifact_build_schema(payload, &schema, NULL);
    json_object_put(schema);
    schema = NULL;
    if (rc == 0)
        rc = rv_artifact_build_schema(NULL, &schema, NULL);
    json_object_put(schema);
    json_object_put(result);
    json_object_put(payload);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {{"sound_plan", sound_plan},
                                                     {"empty_plan", empty_plan},
                                                     {"output_of_texts", output_of_texts},
                                                     {"failed_call", failed_call},
                                                     {"resolved", resolved},
                                                     {"unresolved", unresolved},
                                                     {"formatted", formatted},
                                                     {"valid", valid},
                                                     {"invalid", invalid},
                                                     {"portable", portable},
                                                     {"with_arguments", with_arguments},
                                                     {"artifact_of_form", artifact_of_form},
                                                     {"artifact_of_table", artifact_of_table},
                                                     {"parts_of_content", parts_of_content},
                                                     {"wrapped", wrapped}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 5);
}
END_TEST

static TCase *plan_case(void)
{
    TCase *tc = tcase_create("plan");

    tcase_add_loop_test(tc, every_allocation_may_fail, 0, (int)RV_COUNT(scenarios));
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {plan_case};

    return rv_kit_run_cases("fault_plan", cases, RV_COUNT(cases));
}
