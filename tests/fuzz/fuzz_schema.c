/* A schema, a line feed, a value: compile and check. A value that fits its schema does not fit {"not": schema}. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/tools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

static void check(const rv_schema *s, json_object *doc, json_object *value)
{
    rv_err *err = NULL;
    int rc = rv_schema_check(s, value, &err), opposite;

    if ((rc < 0) != (err != NULL) || (rc < 0 && !rv_utf8_valid(rv_str_of(rv_err_text(err)), NULL)))
        abort();
    rv_err_free(err);
    opposite = check_not(doc, value); /* does not compile when a reference meant the old root */
    if (rc == 0 && opposite == 0)
        abort();
    if (rc == 0 && json_object_is_type(value, json_type_object))
        RV_IGNORE(rv_schema_fill_defaults(s, value, NULL), "only that it ends well");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
