/* The schema of a structured output: whole, without the prompt (p8 3, W6; remlight 5, 19.20). */
#include <stdlib.h>

#include "tests/unit/agentdoc/suites.h"

#define HEAD "name: a\ndescription: d\nstructured_output: true\n"

static const struct {
    const char *text, *want; /* NULL: none */
} schemas[] = {
    {HEAD "properties: {a: {type: string}}",
     "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}},\"additionalProperties\":false}"},
    {HEAD "title: T\nproperties: {a: {type: array, description: kept, items: {enum: [x, 1.50]}}}\nrequired: [a]",
     "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"description\":\"kept\",\"items\":{\"enum\":["
     "\"x\","
     "1.50]}}},\"required\":[\"a\"],\"additionalProperties\":false}"},
    {HEAD "properties: {a: {}}\nadditionalProperties: true",
     "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":true}"},
    {HEAD "properties: {a: {}}\nadditionalProperties: {type: string}",
     "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":{\"type\":\"string\"}}"},
    {HEAD "properties: {a: {$ref: '#/$defs/D'}}\n$defs: {D: {description: kept, properties: {d: {$ref: '#/$defs/D'}}}}",
     "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/D\"}},\"$defs\":{\"D\":{\"description\":\"kept\","
     "\"properties\":{\"d\":{\"$ref\":\"#/$defs/D\"}}}},\"additionalProperties\":false}"},
    {HEAD "properties: {a: {$ref: '#/definitions/D/items'}}\ndefinitions: {D: {items: {$ref: '#/definitions/D'}}}",
     "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/D/items\"}},\"$defs\":{\"D\":{\"items\":{\"$ref\":"
     "\"#/$defs/D\"}}},\"additionalProperties\":false}"},
    /* a nested name in the root's list marks a line of the prompt; no output could have it */
    {HEAD "properties: {a: {properties: {b: {}}}}\nrequired: [b, a]",
     "{\"type\":\"object\",\"properties\":{\"a\":{\"properties\":{\"b\":{}}}},\"required\":[\"a\"],"
     "\"additionalProperties\":false}"},
    {"description: d\nadditionalProperties: true\nproperties: {a: {}}\njson_schema_extra: {name: a, structured_output: "
     "true}",
     "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":true}"},
    {"name: a\ncontent: c\njson_schema: {structured_output: true, response_schema: {type: object, description: no, "
     "properties: {a: {}}}}",
     "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":false}"},
    {HEAD "properties: {}", NULL},
    {HEAD, NULL},
};

/* Proves p8.3: Structured: the switch and properties; the schema without its own description, no Thinking Structure
 * Proves p8.W6: The schema of the output keeps enumerations, items, nesting and descriptions
 * Proves remlight.19/20: The schema of the response keeps its shape */
START_TEST(the_schema_is_passed_through)
{
    struct rv_agentdoc *d = doc_of(schemas[_i].text);
    json_object *schema = NULL;
    char *got = NULL;

    ck_assert_int_eq(rv_agentdoc_build_output_schema(d, RV_UNSET, &schema, NULL), 0);
    rv_agentdoc_free(d); /* it is a copy */
    if (schema)
        got = rv_kit_text(schema);
    ck_assert_pstr_eq(got, schemas[_i].want);
    free(got);
    json_object_put(schema);
}
END_TEST

/* Proves p8.3 */
START_TEST(the_caller_may_want_another_mode)
{
    struct rv_agentdoc *d = doc_of(HEAD "properties: {a: {}}");
    json_object *schema = NULL;

    ck_assert_int_eq(rv_agentdoc_build_output_schema(d, 0, &schema, NULL), 0);
    ck_assert_ptr_null(schema);
    rv_agentdoc_free(d);
    d = doc_of("name: a\ndescription: d\nproperties: {a: {}}");
    ck_assert_int_eq(rv_agentdoc_build_output_schema(d, 1, &schema, NULL), 0);
    ck_assert_ptr_nonnull(schema);
    json_object_put(schema);
    rv_agentdoc_free(d);
}
END_TEST

START_TEST(a_change_of_the_schema_leaves_the_document_alone)
{
    struct rv_agentdoc *d = doc_of(HEAD "properties: {a: {}}\nrequired: [a]");
    char *before = flat_of(d), *after;
    json_object *schema = NULL;

    ck_assert_int_eq(rv_agentdoc_build_output_schema(d, RV_UNSET, &schema, NULL), 0);
    ck_assert_int_eq(rv_json_set_int(rv_json_get_obj(schema, "properties"), "b", 1, NULL), 0);
    ck_assert_int_eq(rv_json_push_take(rv_json_get_arr(schema, "required"), json_object_new_string("b"), NULL), 0);
    after = flat_of(d);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    json_object_put(schema);
    rv_agentdoc_free(d);
}
END_TEST

TCase *output_case(void)
{
    TCase *tc = tcase_create("output");

    tcase_add_loop_test(tc, the_schema_is_passed_through, 0, RV_COUNT(schemas));
    tcase_add_test(tc, the_caller_may_want_another_mode);
    tcase_add_test(tc, a_change_of_the_schema_leaves_the_document_alone);
    return tc;
}
