/* Values made for a schema fit it. */
#include <stdlib.h>

#include "tests/kit/kit.h"
#include "tests/unit/sim/suites.h"

#define VALUES 1000

static const char *const schemas[] = {
    "{}",
    "true",
    "{'type': 'string', 'minLength': 3, 'maxLength': 5}",
    "{'type': 'integer', 'minimum': -3, 'maximum': 3}",
    "{'type': 'integer', 'exclusiveMinimum': 0, 'exclusiveMaximum': 2}",
    "{'type': 'integer', 'multipleOf': 7, 'minimum': 10, 'maximum': 30}",
    "{'type': 'number', 'minimum': 0.25, 'exclusiveMaximum': 0.75}",
    "{'type': 'number', 'multipleOf': 0.5, 'minimum': 1, 'maximum': 4}",
    "{'type': ['string', 'null', 'boolean']}",
    "{'enum': ['a', 2, null, {'x': [1]}]}",
    "{'const': {'deep': [true]}}",
    "{'type': 'array', 'items': {'type': 'boolean'}, 'minItems': 1, 'maxItems': 4}",
    "{'type': 'array', 'items': {'type': 'integer', 'minimum': 0, 'maximum': 9}, 'uniqueItems': true, 'minItems': 3}",
    "{'type': 'array', 'prefixItems': [{'type': 'string'}, {'const': 1}], 'items': false, 'minItems': 2}",
    "{'type': 'object', 'properties': {'a': {'type': 'string'}, 'b': {'type': 'integer'}}, 'required': ['b'],"
    " 'additionalProperties': false}",
    "{'type': 'object', 'required': ['x', 'y'], 'additionalProperties': {'type': 'integer'}}",
    "{'type': 'object', 'minProperties': 2, 'maxProperties': 3}",
    "{'anyOf': [{'type': 'string', 'minLength': 1}, {'type': 'integer', 'minimum': 5}]}",
    "{'oneOf': [{'type': 'integer', 'multipleOf': 2}, {'type': 'integer', 'multipleOf': 3}]}",
    "{'allOf': [{'type': 'object', 'required': ['a']}, {'properties': {'a': {'minimum': 3, 'type': 'number'}}},"
    " {'properties': {'a': {'maximum': 5}}}]}",
    "{'type': 'integer', 'not': {'const': 0}, 'minimum': 0, 'maximum': 3}",
    "{'$ref': '#/$defs/node', '$defs': {'node': {'type': 'object', 'properties': {'name': {'type': 'string'},"
    " 'children': {'type': 'array', 'items': {'$ref': '#/$defs/node'}}}, 'required': ['name']}}}",
    "{'type': 'object', 'properties': {'steps': {'type': 'array', 'minItems': 1, 'items': {'type': 'object',"
    " 'properties': {'tool': {'enum': ['read', 'write']}, 'n': {'$ref': '#/$defs/n'}}, 'required': ['tool', 'n'],"
    " 'additionalProperties': false}}}, 'required': ['steps'], '$defs': {'n': {'type': 'integer', 'minimum': 1}}}",
};

START_TEST(values_fit_their_schema)
{
    json_object *schema = rv_kit_json(schemas[_i]);
    rv_schema *compiled = NULL;

    ck_assert_int_eq(rv_schema_compile(schema, "test", &compiled, NULL), 0);
    for (uint32_t i = 0; i < VALUES; i++) {
        struct sim_rng r = sim_rng_of(i);
        json_object *v = NULL;
        rv_err *err = NULL;
        bool fits = false;

        ck_assert_int_eq(sim_value(schema, compiled, &r, &v, &fits, NULL), 0);
        if (rv_schema_check(compiled, v, &err) < 0) {
            char *text = rv_kit_text(v), *why = rv_kit_err_take(err);
            ck_abort_msg("schema %s, bits %u: %s: %s", schemas[_i], i, text, why);
        }
        ck_assert(fits);
        json_object_put(v);
    }
    rv_schema_free(compiled);
    json_object_put(schema);
}
END_TEST

START_TEST(a_schema_that_nothing_fits_is_told)
{
    json_object *schema = rv_kit_json("{'type': 'integer', 'minimum': 3, 'maximum': 2}"), *v = NULL;
    struct sim_rng r = sim_rng_of(5);
    rv_schema *compiled = NULL;
    bool fits = true;

    ck_assert_int_eq(rv_schema_compile(schema, "test", &compiled, NULL), 0);
    ck_assert_int_eq(sim_value(schema, compiled, &r, &v, &fits, NULL), 0);
    ck_assert(!fits);
    json_object_put(v);
    rv_schema_free(compiled);
    json_object_put(schema);
}
END_TEST

START_TEST(values_are_not_all_the_same)
{
    json_object *schema = rv_kit_json("{'type': 'string'}");
    char *first = NULL;
    size_t n_other = 0;

    for (uint32_t i = 0; i < 100; i++) {
        struct sim_rng r = sim_rng_of(i);
        json_object *v = NULL;
        bool fits;
        ck_assert_int_eq(sim_value(schema, NULL, &r, &v, &fits, NULL), 0);
        char *text = rv_kit_text(v);
        if (!first)
            first = rv_str_dup(rv_str_of(text));
        n_other += !rv_str_is(rv_str_of(text), first);
        free(text);
        json_object_put(v);
    }
    ck_assert_uint_ge(n_other, 80);
    free(first);
    json_object_put(schema);
}
END_TEST

TCase *values_case(void)
{
    TCase *tc = tcase_create("values");

    tcase_add_loop_test(tc, values_fit_their_schema, 0, (int)RV_COUNT(schemas));
    tcase_add_test(tc, a_schema_that_nothing_fits_is_told);
    tcase_add_test(tc, values_are_not_all_the_same);
    return tc;
}
