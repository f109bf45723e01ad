/* Schemas that are refused, and what is said about them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

static const struct {
    const char *schema, *text, *hint; /* text NULL: fine */
} cases[] = {
    {"{}", NULL, NULL},
    {"true", NULL, NULL},
    {"false", NULL, NULL},
    {"{'$schema':'s','$comment':'c','title':'t','description':'d','format':'email','default':null,'examples':[1],"
     "'deprecated':true,'readOnly':true,'writeOnly':false}",
     NULL, NULL},
    {"{'maxLength':2.0}", NULL, NULL},
    {"{'$ref':'#/properties/a','properties':{'a':{'items':{'$ref':'#'}}}}", NULL, NULL},
    {"{'properties':{'a':{'$ref':'#'}}}", NULL, NULL},
    {"{'$defs':{'node':{'properties':{'next':{'$ref':'#/$defs/node'}}}},'$ref':'#/$defs/node'}", NULL, NULL},
    {"null", "schema of x: (root): a schema is an object, true or false; found null", NULL},
    {"[]", "schema of x: (root): a schema is an object, true or false; found array", NULL},
    {"{'properties':{'a':{'typ':'string'}}}", "schema of x: /properties/a: unknown keyword \"typ\"",
     "did you mean \"type\"?"},
    {"{'$dynamicRef':'#a'}", "schema of x: (root): keyword \"$dynamicRef\" is not supported", NULL},
    {"{'x-order':[1],'discriminator':{'propertyName':'kind'},'contentEncoding':'base64'}", NULL, NULL},
    {"{'pattern':'^a+$','patternProperties':{'^x-':true},'propertyNames':{'maxLength':3}}", NULL, NULL},
    {"{'pattern':'a++'}", "schema of x: /pattern: pattern \"a++\", byte 3: nothing to repeat", NULL},
    {"{'pattern':'(a'}", "schema of x: /pattern: pattern \"(a\": missing closing parenthesis", NULL},
    {"{'pattern':1}", "schema of x: /pattern: expected string, found integer", NULL},
    {"{'patternProperties':{'a':true,'[':true}}",
     "schema of x: /patternProperties: pattern \"[\", byte 1: the class does not end: ] is missing", NULL},
    {"{'dependentRequired':{'a':['b',1]}}",
     "schema of x: /dependentRequired/a: expected a property name, found integer", NULL},
    {"{'dependentSchemas':[]}", "schema of x: /dependentSchemas: expected an object, found array", NULL},
    {"{'minContains':-1}", "schema of x: /minContains: expected a whole number from 0 to 2147483647", NULL},
    {"{'if':{'$ref':'#'}}", "schema of x: (root): refers to itself without end", NULL},
    {"{'dependentSchemas':{'a':{'$ref':'#'}}}", "schema of x: (root): refers to itself without end", NULL},
    {"{'$id':'tree','properties':{'left':{'$ref':'tree'},'right':{'$ref':'tree#'}}}", NULL, NULL},
    {"{'$defs':{'a':{'$anchor':'name'}},'items':{'$ref':'#name'}}", NULL, NULL},
    {"{'$defs':{'a':{'$id':'a','$defs':{'b':{}},'items':{'$ref':'#/$defs/b'}}}}", NULL, NULL},
    {"{'$defs':{'a':{'$id':'a','items':{'$ref':'#/$defs/b'}},'b':{}}}",
     "schema of x: /$defs/a/items: $ref \"#/$defs/b\" leads to no schema", "did you mean \"#/$defs/a/items\"?"},
    {"{'properties':{'a/b~c':{'type':'strin'}}}", "schema of x: /properties/a~1b~0c/type: unknown type \"strin\"",
     "did you mean \"string\"?"},
    {"{'type':'str'}", "schema of x: /type: unknown type \"str\"", "did you mean \"string\"?"},
    {"{'type':'x'}", "schema of x: /type: unknown type \"x\"",
     "types are null, boolean, integer, number, string, array, object"},
    {"{'type':[]}", "schema of x: /type: the list of types is empty", NULL},
    {"{'type':['string',1]}", "schema of x: /type: expected the name of a type, found integer", NULL},
    {"{'properties':[]}", "schema of x: /properties: expected an object of schemas, found array", NULL},
    {"{'required':'a'}", "schema of x: /required: expected a list of property names, found string",
     "it stands beside \"properties\", as in required: [name]"},
    {"{'required':[1]}", "schema of x: /required: expected a property name, found integer", NULL},
    {"{'items':[{}],'additionalItems':false}", NULL, NULL},
    {"{'items':[3]}", "schema of x: /items/0: a schema is an object, true or false; found integer", NULL},
    {"{'prefixItems':[]}", "schema of x: /prefixItems: expected a list with at least one schema", NULL},
    {"{'anyOf':[]}", "schema of x: /anyOf: expected a list with at least one schema", NULL},
    {"{'oneOf':[true,3]}", "schema of x: /oneOf/1: a schema is an object, true or false; found integer", NULL},
    {"{'enum':[]}", "schema of x: /enum: expected a list with at least one value",
     "write the values that are allowed as a list, for example [low, high]"},
    {"{'minItems':-1}", "schema of x: /minItems: expected a whole number from 0 to 2147483647", NULL},
    {"{'minItems':1.5}", "schema of x: /minItems: expected a whole number from 0 to 2147483647", NULL},
    {"{'maxLength':'3'}", "schema of x: /maxLength: expected a whole number from 0 to 2147483647", NULL},
    {"{'maxProperties':18446744073709551615}",
     "schema of x: /maxProperties: expected a whole number from 0 to 2147483647", NULL},
    {"{'minimum':'1'}", "schema of x: /minimum: expected number, found string",
     "write a number, without unit or quotes"},
    {"{'multipleOf':0}", "schema of x: /multipleOf: expected a number above 0", NULL},
    {"{'multipleOf':-2}", "schema of x: /multipleOf: expected a number above 0", NULL},
    {"{'multipleOf':null}", "schema of x: /multipleOf: expected number, found null",
     "write a number, without unit or quotes"},
    {"{'uniqueItems':1}", "schema of x: /uniqueItems: expected boolean, found integer", NULL},
    {"{'description':1}", "schema of x: /description: expected string, found integer", NULL},
    {"{'$ref':1}", "schema of x: /$ref: expected string, found integer", NULL},
    {"{'$ref':'http://example.com/s'}", "schema of x: (root): $ref \"http://example.com/s\" leads out of the document",
     "references look like \"#/$defs/name\""},
    {"{'$ref':'#name'}", "schema of x: (root): $ref \"#name\" leads to no schema", NULL},
    {"{'$defs':{'step':{}},'items':{'$ref':'#/$defs/stp'}}",
     "schema of x: /items: $ref \"#/$defs/stp\" leads to no schema", "did you mean \"#/$defs/step\"?"},
    {"{'$ref':'#'}", "schema of x: (root): refers to itself without end", NULL},
    {"{'$defs':{'a':{'$ref':'#/$defs/b'},'b':{'anyOf':[{'type':'null'},{'$ref':'#/$defs/a'}]}}}",
     "schema of x: /$defs/a: refers to itself without end", NULL},
    {"{'not':{'allOf':[{'oneOf':[{'$ref':'#'}]}]}}", "schema of x: (root): refers to itself without end", NULL},
};

START_TEST(schema_is_compiled_or_refused_with_place_and_reason)
{
    json_object *doc = rv_kit_json(cases[_i].schema);
    rv_schema *s = NULL;
    rv_err *err = NULL;
    int rc = rv_schema_compile(doc, "x", &s, &err);

    ck_assert_msg(rc == (cases[_i].text ? RV_E_INVALID : 0), "%s: %s", cases[_i].schema, rv_err_text(err));
    ck_assert_str_eq(rv_err_text(err), cases[_i].text ? cases[_i].text : "");
    ck_assert_pstr_eq(rv_err_hint_text(err), cases[_i].hint);
    ck_assert_int_eq(s != NULL, rc == 0);
    rv_err_free(err);
    rv_schema_free(s);
    json_object_put(doc);
}
END_TEST

START_TEST(percent_and_tilde_escapes_of_references_are_undone)
{
    json_object *doc = rv_kit_json("{'$defs':{'a b/c~d%':{'type':'string'}},'$ref':'#/$defs/a%20b~1c~0d%25'}");
    json_object *number = rv_kit_json("1");
    rv_schema *s = NULL;

    ck_assert_int_eq(rv_schema_compile(doc, "x", &s, NULL), 0);
    ck_assert_int_eq(rv_schema_check(s, number, NULL), RV_E_INVALID);
    json_object_put(number);
    json_object_put(doc);
    rv_schema_free(s);
}
END_TEST

START_TEST(schema_nested_too_deep_is_a_limit)
{
    rv_buf text = RV_BUF_INIT(10000);
    json_object *doc;
    rv_schema *s = NULL;
    rv_err *err = NULL;

    for (int i = 0; i < 65; i++)
        rv_buf_puts(&text, "{\"not\":");
    rv_buf_puts(&text, "true");
    for (int i = 0; i < 65; i++)
        rv_buf_puts(&text, "}");
    doc = rv_kit_json(text.ptr);
    ck_assert_int_eq(rv_schema_compile(doc, "x", &s, &err), RV_E_LIMIT);
    ck_assert_str_eq(rv_err_text(err), "schema of x: nested deeper than 64");
    rv_err_free(err);
    json_object_put(doc);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(too_many_schemas_are_a_limit)
{
    rv_buf text = RV_BUF_INIT(100000);
    json_object *doc;
    rv_schema *s = NULL;
    rv_err *err = NULL;

    rv_buf_puts(&text, "{\"prefixItems\":[true");
    for (int i = 0; i < 10000; i++)
        rv_buf_puts(&text, ",{}");
    rv_buf_puts(&text, "]}");
    doc = rv_kit_json(text.ptr);
    ck_assert_int_eq(rv_schema_compile(doc, "x", &s, &err), RV_E_LIMIT);
    ck_assert_str_eq(rv_err_text(err), "schema of x: more than 10000 schemas");
    rv_err_free(err);
    json_object_put(doc);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(schema_keeps_its_document)
{
    json_object *doc = rv_kit_json("{'const':{'a':1}}"), *value = rv_kit_json("{'a':1.0}");
    rv_schema *s = NULL;

    ck_assert_int_eq(rv_schema_compile(doc, "x", &s, NULL), 0);
    json_object_put(doc);
    ck_assert_int_eq(rv_schema_check(s, value, NULL), 0);
    json_object_put(value);
    rv_schema_free(s);
    rv_schema_free(NULL);
}
END_TEST

TCase *schema_compile_case(void)
{
    TCase *tc = tcase_create("schema_compile");

    tcase_add_loop_test(tc, schema_is_compiled_or_refused_with_place_and_reason, 0, (int)RV_COUNT(cases));
    tcase_add_test(tc, percent_and_tilde_escapes_of_references_are_undone);
    tcase_add_test(tc, schema_nested_too_deep_is_a_limit);
    tcase_add_test(tc, too_many_schemas_are_a_limit);
    tcase_add_test(tc, schema_keeps_its_document);
    return tc;
}
