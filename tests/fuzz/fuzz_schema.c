/* A schema, a line feed, a value: compile and check. A value that fits its schema does not fit {"not": schema}, and
 * faults one by one are those of the whole text. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"
#include "tests/kit/fuzz.h"

static int check_not(json_object *doc, json_object *value)
{
    json_object *negation = json_object_new_object();
    rv_schema *s = NULL;
    int rc = RV_E_LIMIT;

    if (rv_json_set_ref(negation, "not", doc, NULL) == 0 && rv_schema_compile(negation, "x", &s, NULL) == 0)
        rc = rv_schema_check(s, value, NULL);
    rv_schema_free(s);
    json_object_put(negation);
    return rc;
}

static void count_fault(void *self, const struct rv_schema_fault *fault)
{
    if (!fault->text[0] || (fault->kind != RV_SCHEMA_FAULT_VALUE && !fault->name))
        abort();
    ++*(size_t *)self;
}

/* Fault by fault it is the same; and where the whole value is not known yet, none is one. */
static void check_watched(const rv_schema *s, json_object *value, int rc)
{
    size_t n_told = 0, n = 0;
    struct rv_schema_partial partial = {NULL, 3, count_fault, &n_told};

    if (rc != 0 && rc != RV_E_INVALID)
        return;
    if (rv_schema_check_partial(s, value, &partial, &n, NULL) != 0 || (n > 0) != (rc < 0) || n_told > 3 ||
        (n > 0) != (n_told > 0))
        abort();
    partial.hole = value;
    if (value && (rv_schema_check_partial(s, value, &partial, &n, NULL) != 0 || n > 0))
        abort();
}

static void check(const rv_schema *s, json_object *doc, json_object *value)
{
    rv_err *err = NULL;
    int rc = rv_schema_check(s, value, &err), opposite;

    if ((rc < 0) != (err != NULL) || (rc < 0 && !rv_utf8_valid(rv_str_of(rv_err_text(err)), NULL)))
        abort();
    rv_err_free(err);
    check_watched(s, value, rc);
    opposite = check_not(doc, value); /* does not compile when a reference meant the old root */
    if (rc == 0 && opposite == 0)
        abort();
    if (rc == 0 && json_object_is_type(value, json_type_object))
        RV_IGNORE(rv_schema_fill_defaults(s, value, NULL), "only that it ends well");
}

RV_FUZZ_TARGET(schema)
{
    const char *text = (const char *)data, *line_feed = memchr(data, '\n', size);
    json_object *doc = NULL, *value = NULL;
    rv_schema *s = NULL;
    size_t n;

    if (!line_feed)
        return 0;
    n = (size_t)(line_feed - text);
    if (rv_json_parse((rv_str){text, n}, NULL, &doc, NULL) == 0 && rv_schema_compile(doc, "x", &s, NULL) == 0 &&
        rv_json_parse((rv_str){line_feed + 1, size - n - 1}, NULL, &value, NULL) == 0)
        check(s, doc, value);
    rv_schema_free(s);
    json_object_put(value);
    json_object_put(doc);
    return 0;
}
