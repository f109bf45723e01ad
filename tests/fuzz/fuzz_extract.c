/* Finding the object in a reply: what is found is an object, is valid JSON of the text's own parts, and is found again
 * when it is the whole text; required fields only ever choose among candidates. */
#include "coreengine/agent/agent.h"
#include "tests/kit/fuzz.h"

#include <stdint.h>
#include <stdlib.h>

#define MAX_OUT ((size_t)64 << 20)

static bool found_again(json_object *obj)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_OUT};
    rv_buf text = RV_BUF_INIT(MAX_OUT);
    json_object *again = NULL, *parsed = NULL;

    rv_json_write(obj, &text);
    require(rv_buf_check(&text, "x", NULL) == 0);
    require(rv_json_parse(rv_buf_str(&text), &opts, &parsed, NULL) == 0);
    bool same = rv_json_equal(parsed, obj);
    if (text.len <= RV_JSON_MAX_BYTES) {
        require(rv_extract_object(rv_buf_str(&text), NULL, 0, RV_RULES_NEWEST, &again, NULL) == 0);
        same &= rv_json_equal(again, obj);
    }
    json_object_put(again);
    json_object_put(parsed);
    rv_buf_fini(&text);
    return same;
}

RV_FUZZ_TARGET(extract)
{
    static const char *const required[] = {"a"};
    rv_str text = {(const char *)data, size};
    json_object *any = NULL, *with = NULL;
    rv_err *err = NULL;
    int rc = rv_extract_object(text, NULL, 0, RV_RULES_NEWEST, &any, &err);
    int rc_with = rv_extract_object(text, required, 1, RV_RULES_NEWEST, &with, NULL);

    require((rc == 0) == (any != NULL) && (rc < 0) == (err != NULL));
    require(rc == 0 || rc == RV_E_PARSE || rc == RV_E_LIMIT);
    require(rc == rc_with); /* the fields choose, they refuse nothing */
    if (rc == 0) {
        require(json_object_is_type(any, json_type_object) && found_again(any));
        require(json_object_is_type(with, json_type_object) && found_again(with));
        if (json_object_object_get_ex(any, "a", NULL))
            require(rv_json_equal(any, with));
        else
            require(json_object_object_get_ex(with, "a", NULL) || rv_json_equal(any, with));
    }
    json_object_put(any);
    json_object_put(with);
    rv_err_free(err);
    return 0;
}
