/* Values against schemas: what fits, and what is said about what does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/kit.h"
#include "tests/unit/tools/suites.h"

#define PLAN                                                                                                           \
    "{'type':'object','required':['steps'],'additionalProperties':false,'properties':{'steps':{'type':'array',"        \
    "'maxItems':2,'items':{'type':'object','required':['tool'],'properties':{'tool':{'type':'string'},"                \
    "'limit':{'type':'integer','minimum':1}}}}}}"
#define TREE                                                                                                           \
    "{'$defs':{'tree':{'type':'object','properties':{'left':{'$ref':'#/$defs/tree'},'n':{'type':'integer'}}}},"        \
    "'$ref':'#/$defs/tree'}"

static const struct {
    const char *schema, *value, *text; /* text NULL: fits */
} cases[] = {
    {PLAN, "{'steps':[{'tool':'t','limit':1,'more':null}]}", NULL},
    {PLAN, "{'steps':[{'tool':3}]}", "/steps/0/tool: expected string, found integer 3"},
    {PLAN, "{'steps':[{'limit':0},{'tool':null,'limit':2.5}]}",
     "/steps/0: missing required property \"tool\"; /steps/0/limit: expected at least 1, found integer 0; "
     "/steps/1/tool: expected string, found null; /steps/1/limit: expected integer, found number 2.5"},
    {PLAN, "[]", "(root): expected object, found array"},
    {PLAN, "{'step':[]}",
     "(root): missing required property \"steps\"; (root): unknown property \"step\" (did you mean \"steps\"?)"},
    {PLAN, "{'steps':[{'tool':''},{'tool':''},{'tool':''}]}", "/steps: expected at most 2 items, found 3"},

    {"true", "{'a':1}", NULL},
    {"false", "1", "(root): expected nothing, found integer 1"},
    {"{'properties':{'a':false}}", "{'a':1}", "/a: expected nothing, found integer 1"},
    {"{'additionalProperties':{'type':'null'}}", "{'a/b~':1}", "/a~1b~0: expected null, found integer 1"},
    {"{'type':['string','null']}", "null", NULL},
    {"{'type':['string','null']}", "true", "(root): expected string or null, found boolean true"},
    {"{'type':'integer'}", "3.0", NULL},
    {"{'type':'integer'}", "1e2", NULL},
    {"{'type':'number'}", "3", NULL},
    {"{'minLength':2,'maxLength':3}", "'\\u00e4\\u00f6'", NULL},
    {"{'minLength':2}", "'\\u00e4'", "(root): expected at least 2 characters, found 1"},
    {"{'maxLength':3}", "'abcd'", "(root): expected at most 3 characters, found 4"},
    {"{'exclusiveMinimum':1,'exclusiveMaximum':3}", "2", NULL},
    {"{'exclusiveMinimum':1}", "1.0", "(root): expected more than 1, found number 1.0"},
    {"{'exclusiveMaximum':3}", "3", "(root): expected less than 3, found integer 3"},
    {"{'maximum':9007199254740992}", "9007199254740993",
     "(root): expected at most 9007199254740992, found integer 9007199254740993"},
    {"{'minimum':9223372036854775808}", "9223372036854775807",
     "(root): expected at least 9223372036854775808, found integer 9223372036854775807"},
    {"{'minimum':18446744073709551615}", "18446744073709551615", NULL},
    {"{'maximum':99999999999999999999999999}", "99999999999999999999999999", NULL},
    {"{'maximum':99999999999999999999999999}", "100000000000000000000000000",
     "(root): expected at most 99999999999999999999999999, found number 100000000000000000000000000"},
    {"{'minimum':-99999999999999999999999999}", "-100000000000000000000000000",
     "(root): expected at least -99999999999999999999999999, found number -100000000000000000000000000"},
    {"{'exclusiveMaximum':99999999999999999999999999}", "99999999999999999999999998", NULL},
    {"{'maximum':1e26,'minimum':1e26}", "100000000000000000000000000", NULL},
    {"{'maximum':0,'minimum':0}", "-0.0", NULL},
    {"{'maximum':0}", "-1e-400", NULL},
    {"{'exclusiveMinimum':0}", "-1e-400", "(root): expected more than 0, found number -1e-400"},
    {"{'exclusiveMinimum':0}", "1e-400", NULL},
    {"{'minimum':-1e-400}", "-1e-401", NULL},
    {"{'minimum':1e-400}", "-1e-400", "(root): expected at least 1e-400, found number -1e-400"},
    {"{'maximum':0.1,'minimum':0.1}", "0.1000", NULL},
    {"{'maximum':0.1}", "0.10000000000000000001", "(root): expected at most 0.1, found number 0.10000000000000000001"},
    {"{'multipleOf':0.01}", "19.99", NULL},
    {"{'multipleOf':0.01}", "19.995", "(root): expected a multiple of 0.01, found number 19.995"},
    {"{'multipleOf':1e-8}", "12391239123", NULL},
    {"{'multipleOf':1e-8}", "12391239123.000000001",
     "(root): expected a multiple of 1e-8, found number 12391239123.000000001"},
    {"{'multipleOf':0.5}", "1000000000000000.25",
     "(root): expected a multiple of 0.5, found number 1000000000000000.25"},
    {"{'multipleOf':0.01}", "7000000000000.005", "(root): expected a multiple of 0.01, found number 7000000000000.005"},
    {"{'multipleOf':0.5}", "1e308", NULL},
    {"{'multipleOf':0.123456789}", "1e308", "(root): expected a multiple of 0.123456789, found number 1e308"},
    {"{'multipleOf':0.0001}", "0.0075", NULL},
    {"{'multipleOf':0.1}", "0.30000000000000004", NULL},
    {"{'multipleOf':0.1}", "-0.0", NULL},
    {"{'multipleOf':1024}", "1e20", NULL},
    {"{'multipleOf':1024}", "1e5", "(root): expected a multiple of 1024, found number 1e5"},
    {"{'multipleOf':3}", "9007199254740993", NULL},
    {"{'multipleOf':3}", "9007199254740994", "(root): expected a multiple of 3, found integer 9007199254740994"},
    {"{'enum':['red','green',null,4]}", "4.0", NULL},
    {"{'enum':['red','green']}", "'blue'", "(root): expected one of \"red\", \"green\", found string \"blue\""},
    {"{'enum':['red']}", "{}", "(root): expected \"red\", found object"},
    {"{'enum':[1,2,3,4,5,6,7,8,9,10]}", "11",
     "(root): expected one of 1, 2, 3, 4, 5, 6, 7, 8 or one of 2 more, found integer 11"},
    {"{'const':null}", "null", NULL},
    {"{'const':{'a':[1]}}", "{'a':[1.0]}", NULL},
    {"{'const':[1]}", "[2]", "(root): expected [...], found array"},
    {"{'uniqueItems':true}", "[1,2,'1',true,[1],[2],{'a':1,'b':2}]", NULL},
    {"{'uniqueItems':true}", "[1,2,1.0]", "(root): expected no equal items, items 0 and 2 are equal"},
    {"{'uniqueItems':true}", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,{'a':1,'b':2},{'b':2,'a':1}]",
     "(root): expected no equal items, items 18 and 19 are equal"},
    {"{'uniqueItems':true}", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,'18',true,null,[],{},[[]],1.5,0]", NULL},
    {"{'uniqueItems':false}", "[1,1]", NULL},
    {"{'pattern':'^[a-z]+$'}", "'abc'", NULL},
    {"{'pattern':'^[a-z]+$'}", "7", NULL},
    {"{'pattern':'^[a-z]+$'}", "'abc\\n'", "(root): expected text that matches \"^[a-z]+$\", found string \"abc\\n\""},
    {"{'patternProperties':{'^n':{'type':'integer'}},'additionalProperties':false}", "{'n1':1,'n2':2}", NULL},
    {"{'patternProperties':{'^n':{'type':'integer'}},'additionalProperties':false}", "{'n1':'x','m':2}",
     "(root): unknown property \"m\"; /n1: expected integer, found string \"x\""},
    {"{'propertyNames':{'maxLength':2,'title':'a short name'}}", "{'ab':1,'abc':2}",
     "(root): the name of property \"abc\" does not fit: expected a short name"},
    {"{'contains':{'type':'integer'},'minContains':2}", "[1,'a',2]", NULL},
    {"{'contains':{'type':'integer'},'minContains':2}", "[1,'a']",
     "(root): expected at least 2 items that are integer, found 1"},
    {"{'contains':{'const':1},'maxContains':1}", "[1,1]", "(root): expected at most 1 items that are 1, found 2"},
    {"{'if':{'required':['a']},'then':{'required':['b']},'else':{'required':['c']}}", "{'a':1,'b':1}", NULL},
    {"{'if':{'required':['a']},'then':{'required':['b']},'else':{'required':['c']}}", "{'a':1}",
     "(root): missing required property \"b\""},
    {"{'if':{'required':['a']},'then':{'required':['b']},'else':{'required':['c']}}", "{}",
     "(root): missing required property \"c\""},
    {"{'dependentRequired':{'card':['address']}}", "{'card':1}",
     "(root): missing property \"address\", which \"card\" requires"},
    {"{'dependencies':{'a':['b'],'c':{'required':['d']}}}", "{'a':1,'b':1,'c':1}",
     "(root): missing required property \"d\""},
    {"{'items':[{'type':'string'}],'additionalItems':false}", "['a',1]", "/1: expected nothing, found integer 1"},
    {"{'allOf':[{'properties':{'a':true}}],'properties':{'b':true},'unevaluatedProperties':false}", "{'a':1,'b':1}",
     NULL},
    {"{'allOf':[{'properties':{'a':true}}],'properties':{'b':true},'unevaluatedProperties':false}", "{'a':1,'c':1}",
     "(root): unknown property \"c\""},
    {"{'anyOf':[{'required':['x'],'properties':{'x':true}},{'properties':{'y':true}}],'unevaluatedProperties':false}",
     "{'y':1,'x':1}", NULL},
    {"{'prefixItems':[true],'contains':{'type':'string'},'unevaluatedItems':{'type':'integer'}}", "[null,'a',3,null]",
     "/3: expected integer, found null"},
    {"{'minProperties':1}", "{}", "(root): expected at least 1 properties, found 0"},
    {"{'maxProperties':0}", "{'a':1}", "(root): expected at most 0 properties, found 1"},

    /* 2020-12: items by position */
    {"{'prefixItems':[{'type':'string'},{'type':'integer'}]}", "['a',1,null]", NULL},
    {"{'prefixItems':[{'type':'string'},{'type':'integer'}]}", "['a']", NULL},
    {"{'prefixItems':[{'type':'string'},{'type':'integer'}]}", "['a','b']", "/1: expected integer, found string \"b\""},
    {"{'prefixItems':[{'type':'string'}],'items':{'type':'boolean'}}", "['a',true,1]",
     "/2: expected boolean, found integer 1"},
    {"{'prefixItems':[true],'items':false}", "[1,2]", "/1: expected nothing, found integer 2"},

    /* references; keywords beside them count */
    {TREE, "{'left':{'left':{'n':1}}}", NULL},
    {TREE, "{'left':{'left':{'n':'1'}}}", "/left/left/n: expected integer, found string \"1\""},
    {"{'$defs':{'a':{'type':'array'}},'properties':{'x':{'$ref':'#/$defs/a','maxItems':1}}}", "{'x':[1,2]}",
     "/x: expected at most 1 items, found 2"},

    /* combinations: the message is about the alternative that was meant */
    {"{'allOf':[{'minimum':2},{'maximum':0}]}", "1",
     "(root): expected at least 2, found integer 1; (root): expected at most 0, found integer 1"},
    {"{'anyOf':[{'type':'string'},{'type':'null'}]}", "3", "(root): expected string or null, found integer 3"},
    {"{'anyOf':[{'type':'object','properties':{'a':{'type':'string'}}},{'type':'null'}]}", "{'a':1}",
     "/a: expected string, found integer 1"},
    {"{'anyOf':[{'type':'object','required':['a']},{'type':'null'}]}", "{}", "(root): missing required property \"a\""},
    {"{'anyOf':[{'type':'object','required':['a']},{'type':'object','required':['b']}]}", "{}",
     "(root): expected object with \"a\", or object with \"b\", found object"},
    {"{'anyOf':[{'const':1},{'const':'x'}]}", "2", "(root): expected 1, or \"x\", found integer 2"},
    {"{'anyOf':[{'minimum':5},{'title':'a small one','maximum':1}]}", "2",
     "(root): expected what /anyOf/0 asks for, or a small one, found integer 2"},
    {"{'$defs':{'s':{'type':'string'}},'oneOf':[{'$ref':'#/$defs/s'},{'type':'null'}]}", "1",
     "(root): expected string or null, found integer 1"},
    {"{'oneOf':[{'type':'integer'},{'minimum':2}]}", "1", NULL},
    {"{'oneOf':[{'type':'integer'},{'minimum':2}]}", "3",
     "(root): expected to fit exactly one of 2 alternatives, fits 2"},
    {"{'properties':{'at':{'format':'date-time','minLength':9}}}", "{'at':'tomorrow'}",
     "/at: expected at least 9 characters, found 8; "
     "/at: expected date-time such as \"2026-03-09T16:05:00Z\", found string \"tomorrow\""},
    {"{'anyOf':[{'type':'string','format':'date'},{'type':'null'}]}", "'soon'",
     "(root): expected date such as \"2026-03-09\", found string \"soon\""},
    {"{'anyOf':[{'type':'string','format':'date'},{'type':'string','format':'time'}]}", "'soon'",
     "(root): expected string (date), or string (time), found string \"soon\""},
    {"{'not':{'type':'string'}}", "1", NULL},
    {"{'not':{'type':'string'}}", "'x'", "(root): expected anything but string, found string \"x\""},
    {"{'not':{'anyOf':[{'type':'string'},{'type':'null'}]}}", "true", NULL},
};

static void compile(const char *text, rv_schema **out)
{
    json_object *doc = rv_kit_json(text);
    rv_err *err = NULL;

    ck_assert_msg(rv_schema_compile(doc, "input", out, &err) == 0, "%s: %s", text, rv_err_text(err));
    json_object_put(doc);
}

/* Proves 10/catalogue-check: Checking arguments lists every problem: missing, wrong type, unknown (with the nearest
 * name); defaults can be filled in */
START_TEST(value_fits_or_every_fault_is_named)
{
    json_object *value = rv_kit_json(cases[_i].value);
    rv_schema *s = NULL;
    rv_err *err = NULL;
    char want[1024] = "";
    int rc;

    compile(cases[_i].schema, &s);
    rc = rv_schema_check(s, value, &err);
    if (cases[_i].text)
        snprintf(want, sizeof want, "input: %s", cases[_i].text);
    ck_assert_msg(rc == (cases[_i].text ? RV_E_INVALID : 0), "%s, %s: %s", cases[_i].schema, cases[_i].value,
                  rv_err_text(err));
    ck_assert_str_eq(rv_err_text(err), want);
    rv_err_free(err);
    rv_schema_free(s);
    json_object_put(value);
}
END_TEST

/* What is of a format (yes) and what is not (no), each a list of texts. */
static const struct {
    const char *format, *yes, *no;
} formats[] = {
    {"date-time",
     "['2026-03-09T16:05:00Z','2026-03-09t16:05:00.123456789z','1998-12-31T23:59:60Z','1998-12-31T15:59:60.1-08:00',"
     "'2024-02-29T00:00:00+23:59','2000-02-29T00:00:00-00:00']",
     "['','2026-03-09','16:05:00Z','2026-03-09 16:05:00Z','2026-03-09T16:05:00','2026-03-09T16:05Z',"
     "'2026-03-09T24:00:00Z','2026-03-09T16:60:00Z','1998-12-31T23:58:60Z','2026-03-09T16:05:00.Z',"
     "'2026-03-09T16:05:00Z ','2026-03-09T16:05:00+24:00','2026-03-09T16:05:00+0100','2023-02-29T00:00:00Z']"},
    {"date", "['2026-03-09','2024-02-29','2000-02-29','0000-01-01']",
     "['1900-02-29','2026-3-9','2026-00-01','2026-13-01','2026-04-31','2026-01-00','26-03-09','20260309','2026-W10',"
     "'2026-03-09Z','+2026-03-09','2026-03-0\\u0669']"},
    {"time", "['16:05:00Z','16:05:00.5+01:00','01:29:60+01:30']",
     "['16:05:00','16:05Z','16:05:00 Z','16:05:00,5Z','01:29:60+01:31','4:05:00Z']"},
    {"duration", "['P1Y2M3DT4H5M6S','P1D','PT36H','P4W','P1Y3D','PT0S','P00012345678901234567890D']",
     "['','P','PT','P1DT','1D','P1','PT1D','P1H','P1D2M','P1Y2W','P1W2D','PT1.5S','-P1D','p1d','P1DT1HT1S','P1D ']"},
    {"email",
     "['ada@example.com','a.b+c~@x-1.org','ada@localhost','\\u0022a "
     "b@c\\\\\\u0022\\u0022@example.com','ada@[192.0.2.1]',"
     "'ada@[IPv6:2001:db8::1]']",
     "['','ada','@example.com','ada@','a@b@c.org','.a@b.org','a.@b.org','a..b@c.org','a b@c.org','a@b_c.org',"
     "'a@[192.0.2.300]','a@[IPv6:192.0.2.1]','a@[]','a@[','\\u0022a@c.org','a@b.org ','Ada <a@b.org>',"
     "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@b.org','\\u00e4@b.org']"},
    {"hostname", "['example','www.example.com','1.2.3','a-b.c--d','xn--4gbwdl.xn--wgbh1c']",
     "['','.','a.','.a','a..b','-a.b','a-.b','a_b','a b','\\u00e4.de',"
     "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.b']"},
    {"ipv4", "['192.0.2.1','0.0.0.0','255.255.255.255']",
     "['','192.0.2','192.0.2.256','192.0.2.01','192.0.2.1.','0x7f.0.0.1','127.1','192.0.2.1\\u0000','192.0.2.1/24']"},
    {"ipv6", "['::','::1','2001:db8::192.0.2.1','1:2:3:4:5:6:7:8']",
     "['','1','1::2::3',':1:2:3:4:5:6:7','1:2:3:4:5:6:7:8:9','12345::','::1%eth0','[::1]','192.0.2.1','::1/64']"},
    {"uri",
     "['https://example.com','https://u:p@example.com:8080/a/b;c?d=e/?#f?','mailto:a@b.org','urn:isbn:1','file:///etc',"
     "'http://[::1]:80/','http://[2001:db8::7]?x','a+b-c.d:','x:/a%20b']",
     "['','example.com','/a','//example.com','1a:b','ht tp://a',':a','http://a b','http://[::1','http://[1]/',"
     "'http://[::1]x','http://a:b','http://a:65536','http://a@b@c/','x:%2','x:%zz','x:a#b#c','x:\\\\a','x:\\u00e4',"
     "'x:<a>','http://a/[b]']"},
    {"uri-reference", "['','/a','a/b:c','./a:b','?q','#f','//example.com/a','https://example.com','../a?b#c']",
     "['1a:b','a b','a#b#c','\\\\a','%','//a:b','a^b']"},
    {"uuid",
     "['0b8f4c1e-2d6a-4f0e-9c3b-5a7d1e9f2c48','00000000-0000-0000-0000-000000000000',"
     "'0B8F4C1E-2D6A-4F0E-9C3B-5A7D1E9F2C48']",
     "['','0b8f4c1e2d6a4f0e9c3b5a7d1e9f2c48','{0b8f4c1e-2d6a-4f0e-9c3b-5a7d1e9f2c48}',"
     "'0b8f4c1e-2d6a-4f0e-9c3b-5a7d1e9f2c4',"
     "'0b8f4c1e-2d6a-4f0e-9c3b-5a7d1e9f2c4g','0b8f4c1e-2d6a-4f0e-9c3b05a7d1e9f2c48']"},
    {"iri", "['anything',1,null]", "[]"},
};

static void check_texts(const rv_schema *s, const char *texts, int want)
{
    json_object *list = rv_kit_json(texts);

    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *v = json_object_array_get_idx(list, i);
        rv_err *err = NULL;
        int rc = rv_schema_check(s, v, &err);
        ck_assert_msg(rc == want, "%s: %d", json_object_get_string(v), rc);
        rv_err_free(err);
    }
    json_object_put(list);
}

/* Proves 12.1/formats: Formats of texts are checked; the keywords and formats that are known stand on a page */
START_TEST(pattern_that_tries_too_much_is_a_limit)
{
    json_object *value = rv_kit_json("{'a':'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab'}");
    rv_schema *s = NULL;
    rv_err *err = NULL;

    compile("{'additionalProperties':{'pattern':'^(a+)+$'}}", &s);
    ck_assert_int_eq(rv_schema_check(s, value, &err), RV_E_LIMIT);
    ck_assert_str_eq(rv_err_text(err), "input: pattern \"^(a+)+$\" takes more than 100176 steps on a text of 44 bytes");
    rv_err_free(err);
    rv_schema_free(s);
    json_object_put(value);
}
END_TEST
START_TEST(texts_are_of_their_format)
{
    char text[80];
    rv_schema *s = NULL;

    snprintf(text, sizeof text, "{'format':'%s'}", formats[_i].format);
    compile(text, &s);
    check_texts(s, "[1,null,true,[],{}]", 0); /* it asks something of strings only */
    check_texts(s, formats[_i].yes, 0);
    check_texts(s, formats[_i].no, RV_E_INVALID);
    rv_schema_free(s);
}
END_TEST

START_TEST(twenty_faults_are_listed_and_the_rest_counted)
{
    json_object *value = json_object_new_array();
    rv_schema *s = NULL;
    rv_err *err = NULL;

    compile("{'items':{'type':'string'}}", &s);
    for (int i = 0; i < 25; i++)
        ck_assert_int_eq(rv_json_push_take(value, json_object_new_int(i), NULL), 0);
    ck_assert_int_eq(rv_schema_check(s, value, &err), RV_E_INVALID);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "/19: expected string, found integer 19; and 5 more"));
    ck_assert_ptr_null(strstr(rv_err_text(err), "/20:"));
    rv_err_free(err);
    rv_schema_free(s);
    json_object_put(value);
}
END_TEST

START_TEST(huge_names_and_values_are_cut_in_messages)
{
    json_object *value = json_object_new_object(), *long_text;
    rv_schema *s = NULL;
    rv_err *err = NULL;
    char key[2001];

    compile("{'additionalProperties':{'type':'null'}}", &s);
    for (size_t i = 0; i < sizeof key - 1; i += 2)
        memcpy(key + i, "\xC3\xA4", 2);
    key[2000] = '\0';
    long_text = json_object_new_string(key);
    ck_assert_int_eq(rv_json_set_ref(value, key, long_text, NULL), 0);
    ck_assert_int_eq(rv_json_set_ref(value, "short", long_text, NULL), 0);
    ck_assert_int_eq(rv_schema_check(s, value, &err), RV_E_INVALID);
    ck_assert_uint_lt(strlen(rv_err_text(err)), 800);
    ck_assert(rv_utf8_valid(rv_str_of(rv_err_text(err)), NULL));
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "...; /short: expected null, found string \"\xC3\xA4"));
    rv_err_free(err);
    json_object_put(long_text);
    json_object_put(value);
    rv_schema_free(s);
}
END_TEST

/* Two alternatives that are the same recursion: 2^depth ways to fail. */
START_TEST(exponential_check_ends_with_a_limit)
{
    json_object *value = NULL;
    rv_schema *s = NULL;
    rv_err *err = NULL;

    compile("{'$defs':{'a':{'type':'object','anyOf':[{'properties':{'x':{'$ref':'#/$defs/a'}}},"
            "{'properties':{'x':{'$ref':'#/$defs/a'}}}]}},'$ref':'#/$defs/a'}",
            &s);
    for (int i = 0; i < 40; i++) {
        json_object *outer = json_object_new_object();
        ck_assert_int_eq(i ? rv_json_set_take(outer, "x", value, NULL) : rv_json_set_int(outer, "x", 1, NULL), 0);
        value = outer;
    }
    ck_assert_int_eq(rv_schema_check(s, value, &err), RV_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "steps"));
    rv_err_free(err);
    rv_schema_free(s);
    json_object_put(value);
}
END_TEST

START_TEST(value_nested_too_deep_for_a_recursive_schema_is_a_limit)
{
    json_object *value = json_object_new_object();
    rv_schema *s = NULL;

    compile("{'additionalProperties':{'$ref':'#'}}", &s);
    for (int i = 0; i < 600; i++) {
        json_object *outer = json_object_new_object();
        ck_assert_int_eq(rv_json_set_take(outer, "x", value, NULL), 0);
        value = outer;
    }
    ck_assert_int_eq(rv_schema_check(s, value, NULL), RV_E_LIMIT);
    rv_schema_free(s);
    json_object_put(value);
}
END_TEST

START_TEST(unique_items_of_a_long_list_take_linear_time)
{
    json_object *value = json_object_new_array();
    rv_schema *s = NULL;

    compile("{'uniqueItems':true}", &s);
    for (int i = 0; i < 200000; i++)
        ck_assert_int_eq(rv_json_push_take(value, json_object_new_int(i), NULL), 0);
    ck_assert_int_eq(rv_schema_check(s, value, NULL), 0);
    ck_assert_int_eq(rv_json_push_take(value, json_object_new_int(777), NULL), 0);
    ck_assert_int_eq(rv_schema_check(s, value, NULL), RV_E_INVALID);
    rv_schema_free(s);
    json_object_put(value);
}
END_TEST

static const struct {
    const char *schema, *value, *want;
} defaults[] = {
    {"{'properties':{'a':{'default':1},'b':{'default':null},'c':{}}}", "{}", "{'a':1,'b':null}"},
    {"{'properties':{'a':{'default':1},'b':{'default':[2]}}}", "{'a':null,'z':0}", "{'a':null,'z':0,'b':[2]}"},
    {"{'$defs':{'o':{'properties':{'a':{'default':1.50}}}},'$ref':'#/$defs/o'}", "{}", "{'a':1.50}"},
    {"{'properties':{'a':{'properties':{'b':{'default':1}}}}}", "{'a':{}}", "{'a':{}}"},
    {"{}", "{'a':1}", "{'a':1}"},
    {"true", "{}", "{}"},
};

/* Proves 10/catalogue-check */
START_TEST(absent_properties_get_their_defaults)
{
    json_object *value = rv_kit_json(defaults[_i].value), *want = rv_kit_json(defaults[_i].want);
    rv_schema *s = NULL;
    char *got_text, *want_text;

    compile(defaults[_i].schema, &s);
    ck_assert_int_eq(rv_schema_fill_defaults(s, value, NULL), 0);
    got_text = rv_kit_text(value);
    want_text = rv_kit_text(want);
    ck_assert_str_eq(got_text, want_text);
    free(got_text);
    free(want_text);
    json_object_put(value);
    json_object_put(want);
    rv_schema_free(s);
}
END_TEST

START_TEST(defaults_are_copies_and_need_an_object)
{
    json_object *value = rv_kit_json("{}"), *other = rv_kit_json("{}"), *list = rv_kit_json("[]"), *filled = NULL;
    rv_schema *s = NULL;
    rv_err *err = NULL;

    compile("{'properties':{'a':{'default':[1]}}}", &s);
    ck_assert_int_eq(rv_schema_fill_defaults(s, value, NULL), 0);
    ck_assert(json_object_object_get_ex(value, "a", &filled));
    ck_assert_int_eq(rv_json_push_take(filled, json_object_new_int(2), NULL), 0);
    ck_assert_int_eq(rv_schema_fill_defaults(s, other, NULL), 0);
    ck_assert_uint_eq(json_object_array_length(rv_json_get_arr(other, "a")), 1);
    ck_assert_int_eq(rv_schema_fill_defaults(s, list, &err), RV_E_INVALID);
    ck_assert_str_eq(rv_err_text(err), "input: expected object, found array");
    rv_err_free(err);
    json_object_put(value);
    json_object_put(other);
    json_object_put(list);
    rv_schema_free(s);
}
END_TEST

TCase *schema_case(void)
{
    TCase *tc = tcase_create("schema");

    tcase_add_loop_test(tc, value_fits_or_every_fault_is_named, 0, (int)RV_COUNT(cases));
    tcase_add_loop_test(tc, texts_are_of_their_format, 0, (int)RV_COUNT(formats));
    tcase_add_test(tc, pattern_that_tries_too_much_is_a_limit);
    tcase_add_test(tc, twenty_faults_are_listed_and_the_rest_counted);
    tcase_add_test(tc, huge_names_and_values_are_cut_in_messages);
    tcase_add_test(tc, exponential_check_ends_with_a_limit);
    tcase_add_test(tc, value_nested_too_deep_for_a_recursive_schema_is_a_limit);
    tcase_add_test(tc, unique_items_of_a_long_list_take_linear_time);
    tcase_add_loop_test(tc, absent_properties_get_their_defaults, 0, (int)RV_COUNT(defaults));
    tcase_add_test(tc, defaults_are_copies_and_need_an_object);
    return tc;
}
