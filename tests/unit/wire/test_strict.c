/* Schemas in the strict subset, or the knowledge that they can not be said in it. */
#include <stdlib.h>

#include "tests/kit/kit.h"
#include "tests/unit/wire/hear.h"
#include "tests/unit/wire/suites.h"

static const struct {
    const char *what, *schema, *want; /* NULL: it can not be said */
} schemas[] = {
    {"all required", "{'type':'object','properties':{'a':{'type':'string'}},'required':['a']}",
     "{'type':'object','properties':{'a':{'type':'string'}},'required':['a'],'additionalProperties':false}"},
    {"optional ones may be null",
     "{'type':'object','properties':{'a':{'type':'integer'},'b':{'type':['string','null']},"
     "'c':{'enum':['x',null]},'d':{'type':'string','enum':['x']},'e':{'const':null},"
     "'f':{'anyOf':[{'type':'string'},{'type':'null'}]}}}",
     "{'type':'object','properties':{'a':{'type':['integer','null']},'b':{'type':['string','null']},"
     "'c':{'enum':['x',null]},'d':{'type':['string','null'],'enum':['x',null]},'e':{'enum':[null]},"
     "'f':{'anyOf':[{'anyOf':[{'type':'string'},{'type':'null'}]},{'type':'null'}]}},"
     "'required':['a','b','c','d','e','f'],'additionalProperties':false}"},
    {"optional ones in definitions and lists may be null",
     "{'type':'object','properties':{'a':{'type':'array','items':{'$ref':'#/$defs/p'}}},'required':['a'],"
     "'$defs':{'p':{'type':'object','properties':{'x':{'type':'string'},'y':{'$ref':'#/$defs/p'}}}}}",
     "{'type':'object','properties':{'a':{'type':'array','items':{'$ref':'#/$defs/p'}}},'required':['a'],"
     "'additionalProperties':false,'$defs':{'p':{'type':'object','properties':{'x':{'type':['string','null']},"
     "'y':{'anyOf':[{'$ref':'#/$defs/p'},{'type':'null'}]}},'required':['x','y'],'additionalProperties':false}}}"},
    {"far places need no null",
     "{'type':'object','properties':{'a':{'anyOf':[{'$ref':'#/$defs/p'},{'type':'null'}]},'b':{'type':'string'}},"
     "'required':['a'],'$defs':{'p':{'type':'object','properties':{'x':{'type':'string'}},'required':['x']}}}",
     "{'type':'object','properties':{'a':{'anyOf':[{'$ref':'#/$defs/p'},{'type':'null'}]},"
     "'b':{'type':['string','null']}},'required':['a','b'],'additionalProperties':false,"
     "'$defs':{'p':{'type':'object','properties':{'x':{'type':'string'}},'required':['x'],"
     "'additionalProperties':false}}}"},
    {"an optional one of values without a type", "{'type':'object','properties':{'a':{'enum':['x','y']}}}", NULL},
    {"an optional one of types without a value null",
     "{'type':'object','properties':{'a':{'type':['string','null'],'enum':['x']}}}", NULL},
    {"an optional constant", "{'type':'object','properties':{'a':{'const':5}}}", NULL},
    {"an optional one of alternatives",
     "{'type':'object','properties':{'a':{'oneOf':[{'type':'string'},{'type':'integer'}]}}}", NULL},
    {"an optional one that two alternatives allow to be null",
     "{'type':'object','properties':{'a':{'oneOf':[{'type':['string','null']},{'type':['integer','null']}]}}}", NULL},
    {"an optional one within an alternative",
     "{'type':'object','required':['a'],'properties':{'a':{'anyOf':[{'type':'object','properties':{'x':{'type':"
     "'string'}}},{'type':'string'}]}}}",
     NULL},
    {"an optional one of a definition that is an alternative",
     "{'type':'object','required':['a'],'properties':{'a':{'anyOf':[{'$ref':'#/$defs/p'},{'type':'string'}]}},"
     "'$defs':{'p':{'type':'object','properties':{'x':{'type':'string'}}}}}",
     NULL},
    {"an optional one of a definition behind another",
     "{'type':'object','required':['a'],'properties':{'a':{'$ref':'#/$defs/p'}},"
     "'$defs':{'p':{'$ref':'#/$defs/q'},'q':{'type':'object','properties':{'x':{'type':'string'}}}}}",
     NULL},
    {"an optional one of an older definition",
     "{'type':'object','required':['a'],'properties':{'a':{'$ref':'#/definitions/p'}},"
     "'definitions':{'p':{'type':'object','properties':{'x':{'type':'string'}}}}}",
     NULL},
    {"an optional one of a root that contains itself",
     "{'type':'object','required':['a'],'properties':{'a':{'type':'array','items':{'$ref':'#'}},'b':{'type':"
     "'string'}}}",
     NULL},
    {"an optional reference to the root",
     "{'type':'object','required':['b'],'properties':{'a':{'$ref':'#'},'b':{'type':'string'}}}", NULL},
    {"objects and lists within",
     "{'type':'object','properties':{'a':{'type':'array','items':{'type':'object','properties':{'b':{'type':'number'}},"
     "'required':['b']}}},'required':['a'],'additionalProperties':false}",
     "{'type':'object','properties':{'a':{'type':'array','items':{'type':'object','properties':{'b':{'type':'number'}},"
     "'required':['b'],'additionalProperties':false}}},'required':['a'],'additionalProperties':false}"},
    {"references stay",
     "{'type':'object','properties':{'a':{'$ref':'#/$defs/p','description':'left out'},'b':{'$ref':'#/$defs/p'}},"
     "'required':['a'],'$defs':{'p':{'type':'object','properties':{'x':{'type':'string'}}}}}",
     "{'type':'object','properties':{'a':{'$ref':'#/$defs/p'},'b':{'anyOf':[{'$ref':'#/$defs/p'},{'type':'null'}]}},"
     "'required':['a','b'],'additionalProperties':false,'$defs':{'p':{'type':'object','properties':{'x':{'type':"
     "['string','null']}},'required':['x'],'additionalProperties':false}}}"},
    {"a root that contains itself",
     "{'type':'object','properties':{'a':{'type':'array','items':{'$ref':'#'}}},'required':['a']}",
     "{'type':'object','properties':{'a':{'type':'array','items':{'$ref':'#'}}},'required':['a'],"
     "'additionalProperties':false}"},
    {"limits become words",
     "{'type':'object','properties':{'a':{'type':'string','description':'Name','minLength':1,'maxLength':9},"
     "'b':{'type':'integer','minimum':0},'c':{'type':'string','default':'x','x-ui':1}},'required':['a','b','c']}",
     "{'type':'object','properties':{'a':{'type':'string','description':'Name (minLength: 1, maxLength: 9)'},"
     "'b':{'type':'integer','description':'(minimum: 0)'},'c':{'type':'string'}},'required':['a','b','c'],"
     "'additionalProperties':false}"},
    {"a pattern becomes words",
     "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"^a\"}},\"required\":[\"a\"]}",
     "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"description\":\"(pattern: \\\"^a\\\")\"}},"
     "\"required\":[\"a\"],\"additionalProperties\":false}"},
    {"alternatives",
     "{'type':'object','properties':{'a':{'anyOf':[{'type':'string'},{'type':'integer'}]},"
     "'b':{'oneOf':[{'type':'string'},{'type':'null'}]}},'required':['a','b']}",
     "{'type':'object','properties':{'a':{'anyOf':[{'type':'string'},{'type':'integer'}]},'b':{'anyOf':[{'type':'"
     "string'},"
     "{'type':'null'}]}},'required':['a','b'],'additionalProperties':false}"},
    {"the root has no type but properties", "{'properties':{}}",
     "{'properties':{},'required':[],'additionalProperties':false,'type':'object'}"},
    {"a map", "{'type':'object','properties':{'a':{'type':'object','additionalProperties':{'type':'string'}}}}", NULL},
    {"any members", "{'type':'object','properties':{},'additionalProperties':true}", NULL},
    {"any object", "{'type':'object'}", NULL},
    {"a root that is no object", "{'type':'array','items':{'type':'string'}}", NULL},
    {"a root that may be null", "{'type':['object','null'],'properties':{}}", NULL},
    {"a root of alternatives", "{'anyOf':[{'type':'object','properties':{}}]}", NULL},
    {"a list of anything", "{'type':'object','properties':{'a':{'type':'array'}}}", NULL},
    {"anything", "{'type':'object','properties':{'a':{}}}", NULL},
    {"true", "{'type':'object','properties':{'a':true}}", NULL},
    {"a word that has no place", "{'type':'object','properties':{'a':{'type':'object','patternProperties':{}}}}", NULL},
    {"all of several", "{'type':'object','properties':{'a':{'allOf':[{'type':'string'}]}}}", NULL},
    {"a reference to elsewhere", "{'type':'object','properties':{'a':{'$ref':'other.json'}}}", NULL},
    {"a reference to nothing", "{'type':'object','properties':{'a':{'$ref':'#/$defs/x'}},'$defs':{}}", NULL},
    {"a limit beside a reference",
     "{'type':'object','properties':{'a':{'$ref':'#/$defs/x','minLength':1}},'$defs':{'x':{'type':'string'}}}", NULL},
    {"a required one that is not there", "{'type':'object','properties':{'a':{'type':'string'}},'required':['b']}",
     NULL},
    {"too deep",
     "{'type':'object','properties':{'a':{'type':'array','items':{'type':'array','items':{'type':'array','items':"
     "{'type':'array','items':{'type':'string'}}}}}}}",
     NULL},
};

/* Proves 12.1/strict: In OpenAI's strict form what can be said in it, all else without; nulls for what may be left
 * out are taken out again */
START_TEST(a_schema_is_said_in_the_strict_subset_or_not_at_all)
{
    json_object *schema = rv_kit_json(schemas[_i].schema), *strict = NULL;
    char *before = rv_kit_text(schema);

    ck_assert_int_eq(wire_schema_to_strict(schema, &strict, NULL), 0);
    if (schemas[_i].want) {
        json_object *want = rv_kit_json(schemas[_i].want);
        char *text = rv_kit_text(want);
        ck_assert_ptr_nonnull(strict);
        same_text(schemas[_i].what, rv_kit_text(strict), text);
        free(text);
        json_object_put(want);
    } else {
        ck_assert_ptr_null(strict);
    }
    json_object_put(strict);
    same_text("the schema itself stays", rv_kit_text(schema), before);
    free(before);
    json_object_put(schema);
}
END_TEST

/* Proves 12.1/strict */
START_TEST(a_schema_with_too_much_in_it_is_not_said)
{
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);
    json_object *schema, *strict = NULL;

    for (int n = 100; n <= 101; n++) {
        rv_buf_clear(&text);
        rv_buf_puts(&text, "{\"type\":\"object\",\"properties\":{");
        for (int i = 0; i < n; i++)
            rv_buf_printf(&text, "%s\"p%d\":{\"type\":\"string\"}", i ? "," : "", i);
        rv_buf_puts(&text, "}}");
        schema = rv_kit_json(rv_buf_cstr(&text));
        ck_assert_int_eq(wire_schema_to_strict(schema, &strict, NULL), 0);
        ck_assert_int_eq(strict != NULL, n == 100);
        json_object_put(strict);
        json_object_put(schema);
    }
    rv_buf_fini(&text);
}
END_TEST

TCase *strict_case(void)
{
    TCase *c = tcase_create("strict");

    tcase_add_loop_test(c, a_schema_is_said_in_the_strict_subset_or_not_at_all, 0, RV_COUNT(schemas));
    tcase_add_test(c, a_schema_with_too_much_in_it_is_not_said);
    return c;
}
