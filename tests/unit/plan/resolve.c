/* Arguments of calls with their references resolved, one test a rule, and strings at random. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/plan/plan.h"
#include "tests/kit/kit.h"
#include "tests/unit/plan/plan_suites.h"

static json_object *parse(const char *text)
{
    json_object *value = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &value, NULL), 0);
    return value;
}

/* Call 0 gave the output, call 1 failed. The arguments as JSON, or "code at argument: reason". */
static void expect(const char *arguments, const char *output, const char *want)
{
    struct rv_plan_step_output outputs[2] = {{.usable = true, .value = parse(output)}, {.usable = false}};
    json_object *given = parse(arguments);
    rv_buf got = RV_BUF_INIT(100000);
    struct rv_plan_resolution r;

    ck_assert_int_eq(rv_plan_resolve(given, outputs, 2, &r, NULL), 0);
    if (r.code)
        rv_buf_printf(&got, "%s at %s: %s", r.code, r.argument, r.reason);
    else
        rv_json_write(r.arguments, &got);
    ck_assert(!r.code == !!r.arguments);
    ck_assert_str_eq(rv_buf_cstr(&got), want);
    rv_plan_resolution_fini(&r);
    rv_buf_fini(&got);
    json_object_put(given);
    json_object_put(outputs[0].value);
}

/* Proves plan.R1: what is not a reference stays as it is */
START_TEST(r1_everything_else_stays)
{
    expect("{\"b\":[1.10,{\"z\":null,\"a\":true}],\"a\":\"x\",\"$0.output\":9007199254740993}", "1",
           "{\"b\":[1.10,{\"z\":null,\"a\":true}],\"a\":\"x\",\"$0.output\":9007199254740993}");
}
END_TEST

/* Proves plan.R2: a whole reference becomes the value with its type */
START_TEST(r2_whole_references_keep_the_type)
{
    expect("{\"n\":\"$0.output.n\",\"l\":[\"${0.output.l}\"]}", "{\"n\":42,\"l\":[{\"a\":false}]}",
           "{\"n\":42,\"l\":[[{\"a\":false}]]}");
}
END_TEST

/* Proves plan.R3: a reference without a value stops the call */
START_TEST(r3_what_is_not_there_stops_the_call)
{
    expect("{\"l\":[{\"id\":\"$0.output.b\"}]}", "{\"a\":1,\"c\":2}",
           "unresolved_reference at l[0].id: the object has no \"b\"; it has a, c");
    expect("{\"id\":\"see ${0.output[3]}\"}", "[1,2]",
           "unresolved_reference at id: index 3 is past the end of a list of 2");
    expect("{\"id\":\"$0.output.99999999999999999999999\"}", "[1]",
           "unresolved_reference at id: \"99999999999999999999999\" cannot be looked up: the value is array");
    expect("{\"id\":\"$0.output[99999999999999999999999]\"}", "[1]",
           "unresolved_reference at id: the index is past the end of a list of 1");
    /* a key is cut between two characters: the reason is text of the run */
    expect("{\"id\":\"$0.output.a\"}", "{\"xääääääääääääääääääääääääääääääääääääääää\":1}",
           "unresolved_reference at id: the object has no \"a\"; it has xäääääääääääääääääääääääääääääää");
    expect(
        "{\"id\":\"$0.output[\\\"xääääääääääääääääääääääääääääääääääääääää\\\"]\"}", "1",
        "unresolved_reference at id: \"xäääääääääääääääääääääääääääääää\" cannot be looked up: the value is integer");
    expect("{\"id\":\"$0.output[0]\"}", "{\"0\":1}",
           "unresolved_reference at id: [n] needs a list, and the value is object");
    expect("{\"id\":\"$0.output[\\\"0\\\"]\"}", "[1]",
           "unresolved_reference at id: \"0\" cannot be looked up: the value is array");
    expect("{\"id\":\"$0.output[\\\"a\\\\u0000b\\\"]\"}", "{\"a\":1}",
           "unresolved_reference at id: the object has no \"a\"; it has a");
    expect("{\"id\":\"$1.output\"}", "1", "unresolved_reference at id: call 1 did not succeed");
    expect("{\"id\":\"$2.output\"}", "1", "unresolved_reference at id: call 2 is not an earlier call of this plan");
}
END_TEST

/* Proves plan.T3 */
START_TEST(r3_digits_name_keys_and_places)
{
    expect("{\"a\":\"$0.output.o.0\",\"b\":\"$0.output.l.0\"}", "{\"o\":{\"0\":\"key\"},\"l\":[\"place\"]}",
           "{\"a\":\"key\",\"b\":\"place\"}");
}
END_TEST

/* Proves plan.R4: in a text a string is inserted as it is, any other value as JSON */
START_TEST(r4_embedded_values_become_text)
{
    expect("{\"t\":\"${0.output.s}|${0.output.n}|${0.output.o}|${0.output.z}\"}",
           "{\"s\":\"q\\\"\",\"n\":1.10,\"o\":{\"k\": 1},\"z\":null}", "{\"t\":\"q\\\"|1.10|{\\\"k\\\":1}|null\"}");
}
END_TEST

/* Proves plan.R5: a null that is there is passed on */
START_TEST(r5_null_is_a_value)
{
    expect("{\"n\":\"$0.output.n\"}", "{\"n\":null}", "{\"n\":null}");
    expect("{\"n\":\"$0.output\"}", "null", "{\"n\":null}");
}
END_TEST

/* Proves plan.R6: what was inserted is never read as a template */
START_TEST(r6_outputs_are_not_read_as_templates)
{
    expect("{\"a\":\"$0.output.s\",\"b\":\"<${0.output.s}>\"}", "{\"s\":\"$1.output.secret ${1.output}\"}",
           "{\"a\":\"$1.output.secret ${1.output}\",\"b\":\"<$1.output.secret ${1.output}>\"}");
}
END_TEST

/* Proves plan.R8: a malformed reference stops the call */
START_TEST(r8_no_malformed_reference_passes)
{
    expect("{\"a\":{\"b\":\"see $0.output.x\"}}", "1",
           "embedded_reference at a.b: inside a text, write ${N.output.path}, or $$ for a dollar sign that begins no "
           "reference");
    expect("{\"a\":\"$x.output.x\"}", "1",
           "invalid_template_syntax at a: write $N.output.path or ${N.output.path}, or $$ for a dollar sign that "
           "begins no "
           "reference");
}
END_TEST

/* Proves plan.R9: numbers keep the text with which they were read */
START_TEST(r9_numbers_keep_their_text)
{
    expect("{\"a\":\"$0.output[0]\",\"b\":\"$0.output[1]\",\"c\":\"${0.output[0]} ${0.output[1]}\"}",
           "[9007199254740993,1.10]", "{\"a\":9007199254740993,\"b\":1.10,\"c\":\"9007199254740993 1.10\"}");
}
END_TEST

/* Proves plan.A9 */
START_TEST(ids_of_artifacts_are_found)
{
    json_object *given = parse("{\"a\":\"$0.output.artifact_id\",\"b\":\"$1.output.artifact_id\",\"c\":"
                               "\"$2.output[\\\"artifact_id\\\"]\"}");
    json_object *id = json_object_new_string("known");
    struct rv_plan_step_output outputs[3] = {
        {true, parse("{\"artifact_id\":null}"), id}, {true, parse("{}"), id}, {true, parse("[1]"), id}};
    rv_buf got = RV_BUF_INIT(1000);
    struct rv_plan_resolution r;

    ck_assert_int_eq(rv_plan_resolve(given, outputs, 3, &r, NULL), 0);
    rv_json_write(r.arguments, &got);
    ck_assert_str_eq(rv_buf_cstr(&got), "{\"a\":null,\"b\":\"known\",\"c\":\"known\"}"); /* a real member wins */
    rv_buf_fini(&got);
    rv_plan_resolution_fini(&r);
    for (size_t i = 0; i < 3; i++)
        json_object_put(outputs[i].value);
    json_object_put(given);
    json_object_put(id);
}
END_TEST

START_TEST(texts_with_references_are_bounded)
{
    rv_buf output = RV_BUF_INIT(2 << 20), arguments = RV_BUF_INIT(10000);

    rv_buf_putc(&output, '"');
    for (int i = 0; i < 1 << 16; i++)
        rv_buf_puts(&output, "0123456789abcdef");
    rv_buf_putc(&output, '"');
    rv_buf_puts(&arguments, "{\"t\":\"x");
    for (int i = 0; i < 9; i++)
        rv_buf_puts(&arguments, "${0.output}");
    rv_buf_puts(&arguments, "\"}");
    expect(rv_buf_cstr(&arguments), rv_buf_cstr(&output),
           "too_large at t: texts with references would have more than 8 MiB");
    rv_buf_fini(&output);
    rv_buf_fini(&arguments);
}
END_TEST

/* --- at random --- */

#define TIMES      5000
#define MANY_TIMES 100000

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A second reader, for strings without "$$": is there still a reference? */
static bool has_reference(const char *text)
{
    for (const char *at = strchr(text, '$'); at; at = strchr(at + 1, '$')) {
        size_t braces = at[1] == '{', digits = strspn(at + 1 + braces, "0123456789");
        const char *behind = at + 1 + braces + digits;
        if (digits == 0 || strncmp(behind, ".output", 7) != 0)
            continue;
        if (braces || behind[7] == '.' || behind[7] == '[' || (at == text && behind[7] == '\0'))
            return true;
    }
    return false;
}

/* Whatever a model wrote without an escape: no reference is left in what a tool gets. */
START_TEST(no_reference_reaches_a_tool)
{
    static const char *const tokens[] = {
        "$", "${", "}",     "0", "1", "9",      ".output", ".output.",   ".output[",    "[0",
        "]", ".a", "\"a\"", " ", "x", "output", "[\"a\"]", "0.output.a", "${0.output}", "$1.output[0]"};
    struct rv_plan_step_output outputs[2] = {{true, parse("{\"a\":[\"deep\",{\"a\":1.5}]}"), NULL},
                                             {true, parse("[7,null]"), NULL}};
    uint64_t state = 88172645463325252u, n = (uint64_t)rv_kit_sample(TIMES, MANY_TIMES), n_resolved = 0, n_stopped = 0;

    for (uint64_t i = 0; i < n; i++) {
        json_object *arguments = json_object_new_object();
        rv_buf text = RV_BUF_INIT(1000);
        struct rv_plan_resolution r;
        for (uint64_t len = 1 + next(&state) % 9; len > 0; len--) {
            const char *token = tokens[next(&state) % RV_COUNT(tokens)];
            if (token[0] == '$' && text.len > 0 && text.ptr[text.len - 1] == '$')
                token = "x";
            rv_buf_puts(&text, token);
        }
        ck_assert_int_eq(rv_json_set_str(arguments, "t", rv_buf_str(&text), NULL), 0);
        ck_assert_int_eq(rv_plan_resolve(arguments, outputs, 2, &r, NULL), 0);
        json_object *got = NULL;
        if (r.arguments && json_object_object_get_ex(r.arguments, "t", &got) &&
            json_object_is_type(got, json_type_string))
            ck_assert_msg(!has_reference(json_object_get_string(got)), "%s gave %s", rv_buf_cstr(&text),
                          json_object_get_string(got));
        n_resolved += r.arguments && has_reference(rv_buf_cstr(&text));
        n_stopped += !r.arguments;
        rv_plan_resolution_fini(&r);
        rv_buf_fini(&text);
        json_object_put(arguments);
    }
    ck_assert_uint_gt(n_resolved, 0);
    ck_assert_uint_gt(n_stopped, 0);
    json_object_put(outputs[0].value);
    json_object_put(outputs[1].value);
}
END_TEST

TCase *resolve_case(void)
{
    TCase *tc = tcase_create("resolve");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, r1_everything_else_stays);
    tcase_add_test(tc, r2_whole_references_keep_the_type);
    tcase_add_test(tc, r3_what_is_not_there_stops_the_call);
    tcase_add_test(tc, r3_digits_name_keys_and_places);
    tcase_add_test(tc, r4_embedded_values_become_text);
    tcase_add_test(tc, r5_null_is_a_value);
    tcase_add_test(tc, r6_outputs_are_not_read_as_templates);
    tcase_add_test(tc, r8_no_malformed_reference_passes);
    tcase_add_test(tc, r9_numbers_keep_their_text);
    tcase_add_test(tc, ids_of_artifacts_are_found);
    tcase_add_test(tc, texts_with_references_are_bounded);
    tcase_add_test(tc, no_reference_reaches_a_tool);
    return tc;
}
