/* properties, required and $defs are checked when the document is read (p8 W20), references too. */
#include "tests/unit/agentdoc/suites.h"

#define HEAD "name: a\ndescription: d\n"

static const struct {
    const char *text, *want;
} faults[] = {
    {HEAD "properties: null", "3:13: error: agent \"a\": properties must not be null"},
    {HEAD "properties: [a]", "3:13: error: agent \"a\": properties must be a map, not list"},
    {HEAD "properties: {a: string}",
     "3:17: error: agent \"a\": properties.a must be a JSON Schema (a map), not string"},
    {HEAD "properties: {a: true}", "properties.a must be a JSON Schema (a map), not boolean"},
    {HEAD "properties: {a: null}", "properties.a must be a JSON Schema (a map), not null"},
    {HEAD "properties: {a: {type: 3}}", "properties.a.type must be a type or a list of types, not integer"},
    {HEAD "properties: {a: {type: null}}", "properties.a.type must be a type or a list of types, not null"},
    {HEAD "properties: {a: {type: [string, 3]}}", "properties.a.type has an item that is not a string"},
    {HEAD "properties: {a: {type: strng}}",
     "3:24: warning: agent \"a\": properties.a.type is not a type of JSON Schema\n  hint: did you mean \"string\"?"},
    {HEAD "properties: {a: {type: [string, date]}}",
     "warning: agent \"a\": properties.a.type is not a type of JSON Schema"},
    {HEAD "properties: {a: {description: 3}}", "properties.a.description must be a string, not integer"},
    {HEAD "properties: {a: {enum: x}}", "properties.a.enum must be a list, not string"},
    {HEAD "properties: {a: {items: [{}]}}", "properties.a.items must be a JSON Schema (a map), not list"},
    {HEAD "properties: {a: {items: false}}", NULL},
    {HEAD "properties: {a: {required: b}}", "properties.a.required must be a list of strings, not string"},
    {HEAD "properties: {a: {required: [3]}}", "properties.a.required has an item that is not a string"},
    {HEAD "properties: {a: {properties: {b: {properties: {c: 3}}}}}", "properties.a.properties.b.properties.c must be"},
    {HEAD "properties: {a: {items: {properties: 3}}}", "properties.a.items.properties must be a map, not integer"},
    {HEAD "properties: {a: {anyOf: {}}}", "properties.a.anyOf must be a list of schemas, not map"},
    {HEAD "properties: {a: {allOf: [x]}}", "properties.a.allOf must be a JSON Schema (a map), not string"},
    {HEAD "properties: {a: {enum: [{$ref: x, type: 3}], default: {type: 3}, const: {$ref: 1}}}", NULL},
    {HEAD "properties: {enum: {type: string}, $ref: {type: string}, type: {}, properties: {}}", NULL},
    {HEAD "$defs: 3", "3:8: error: agent \"a\": $defs must be a map, not integer"},
    {HEAD "$defs: {A: 3}", "$defs.A must be a JSON Schema (a map), not integer"},
    {HEAD "definitions: {A: {type: 3}}", "$defs.A.type must be a type"},
    {HEAD "additionalProperties: {type: 3}", "additionalProperties.type must be a type"},
    {HEAD "required: null", "required must not be null"},
    {HEAD "required: a", "3:11: error: agent \"a\": required must be a list of strings"},
    {HEAD "required: [1]", "3:12: error: agent \"a\": required must be a list of strings, not integer 1"},
    {HEAD "required: [b]\nproperties: {a: {}}", "3:12: warning: agent \"a\": required: no property is called \"b\""},
    {HEAD "required: [b]\nproperties: {a: {properties: {b: {}}}}", NULL},
    {HEAD "required: [b]\nproperties: {a: {items: {anyOf: [{properties: {b: {}}}]}}}", NULL},
    {HEAD "required: [b]\nproperties: {a: {$ref: '#/$defs/D'}}\n$defs: {D: {properties: {b: {}}}}", NULL},
    {HEAD "required: [b]\nproperties: {a: {properties: {b: {}}}}\nstructured_output: true",
     "3:12: warning: agent \"a\": required: \"b\" is a property further below"},
};

/* Proves p8.W20: Documents are checked whole when they are read, with places */
START_TEST(what_is_no_schema_is_a_finding_with_its_place)
{
    ck_findings(faults[_i].text, faults[_i].want);
}
END_TEST

#define DEFS "$defs: {Addr: {properties: {street: {}}, anyOf: [{}, {}]}, 'a/b~c': {}}\n"

static const struct {
    const char *ref, *want;
} refs[] = {
    {"#/$defs/Addr", NULL},
    {"#/$defs/Addr/properties/street", NULL},
    {"#/$defs/Addr/anyOf/1", NULL},
    {"#/$defs/a~1b~0c", NULL},
    {"#/properties/p", NULL}, /* itself: legal, and no prompt follows it */
    {"#", NULL},
    {"#/$defs/Adr", "the reference \"#/$defs/Adr\" leads nowhere in this document\n  hint: did you mean "
                    "\"#/$defs/Addr\"?"},
    {"#/definitions/Addr", "leads nowhere in this document\n  hint: did you mean \"#/$defs/Addr\"?"},
    {"#/$defs/Addr/anyOf/2", "leads nowhere"},
    {"#/$defs/Addr/anyOf/x", "leads nowhere"},
    {"#/$defs/Addr/anyOf/", "leads nowhere"},
    {"#/$defs/Addr/anyOf", "leads nowhere"}, /* no schema */
    {"#/$defs/", "leads nowhere"},
    {"#/$defs", "leads nowhere"},
    {"#/properties", "leads nowhere"},
    {"#/", "leads nowhere"},
    {"#/nowhere", "leads nowhere"},
    {"#anchor", "leads nowhere"},
    {"Addr", "leads nowhere"},
    {"", "leads nowhere"},
    {"https://example.org/x", "hint: references begin with \"#/$defs/\""},
};

START_TEST(references_lead_somewhere)
{
    rv_buf text = RV_BUF_INIT(1 << 12);

    rv_buf_printf(&text, HEAD "properties: {p: {$ref: '%s'}}\n" DEFS, refs[_i].ref);
    ck_findings(rv_buf_cstr(&text), refs[_i].want);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(a_reference_needs_definitions)
{
    ck_findings(HEAD "properties: {p: {$ref: '#/$defs/X'}}", "hint: there are no $defs: write the schema in place of");
    ck_findings(HEAD "properties: {p: {$ref: 3}}", "properties.p.$ref must be a string, not integer");
    ck_findings(HEAD "properties: {p: {items: {not: {$ref: '#/x'}}}}",
                "3:38: error: agent \"a\": the reference \"#/x\"");
}
END_TEST

START_TEST(cycles_are_legal)
{
    ck_findings(HEAD "properties: {p: {$ref: '#/$defs/A'}}\n$defs: {A: {properties: {a: {$ref: '#/$defs/B'}}},\n"
                     "  B: {items: {$ref: '#/$defs/A'}}, C: {$ref: '#/$defs/C'}}",
                NULL);
}
END_TEST

TCase *schema_case(void)
{
    TCase *tc = tcase_create("schema");

    tcase_add_loop_test(tc, what_is_no_schema_is_a_finding_with_its_place, 0, RV_COUNT(faults));
    tcase_add_loop_test(tc, references_lead_somewhere, 0, RV_COUNT(refs));
    tcase_add_test(tc, a_reference_needs_definitions);
    tcase_add_test(tc, cycles_are_legal);
    return tc;
}
