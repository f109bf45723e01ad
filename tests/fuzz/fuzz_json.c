/* What the reader accepts is valid UTF-8, is written, and reads back equal; the scanner agrees with the reader. */
#include "coreengine/base/base.h"
#include "tests/kit/fuzz.h"

#include <stdint.h>
#include <stdlib.h>

#define MAX_OUT ((size_t)64 << 20)

/* With and without a tree the same text ends the same way at the same place. */
static void check_scan(rv_str text, const struct rv_json_opts *opts, bool parsed)
{
    struct rv_json_scan with_tree, without;
    json_object *v = NULL;
    rv_str trimmed = text;

    while (trimmed.len &&
           (*trimmed.ptr == ' ' || *trimmed.ptr == '\n' || *trimmed.ptr == '\t' || *trimmed.ptr == '\r')) {
        trimmed.ptr++;
        trimmed.len--;
    }
    require(rv_json_scan(trimmed, opts, &with_tree, &v, NULL) == 0);
    require(rv_json_scan(trimmed, opts, &without, NULL, NULL) == 0);
    require(with_tree.how == without.how && with_tree.end == without.end && with_tree.saw_key == without.saw_key);
    require(with_tree.end <= trimmed.len);
    require(with_tree.how != RV_JSON_INCOMPLETE || with_tree.end == trimmed.len);
    require(!parsed || with_tree.how == RV_JSON_VALUE);
    json_object_put(v);
}

static void check_round_trip(json_object *v, const struct rv_json_opts *opts)
{
    rv_buf compact = RV_BUF_INIT(MAX_OUT), pretty = RV_BUF_INIT(MAX_OUT), again = RV_BUF_INIT(MAX_OUT);
    json_object *from_compact = NULL, *from_pretty = NULL, *copy = NULL;

    rv_json_write(v, &compact);
    rv_json_write_pretty(v, &pretty);
    require(rv_buf_check(&compact, "x", NULL) == 0 && rv_buf_check(&pretty, "x", NULL) == 0);
    require(rv_utf8_valid(rv_buf_str(&compact), NULL));
    require(rv_json_parse(rv_buf_str(&compact), opts, &from_compact, NULL) == 0);
    require(rv_json_parse(rv_buf_str(&pretty), opts, &from_pretty, NULL) == 0);
    require(rv_json_dup(v, &copy, NULL) == 0);
    require(rv_json_equal(v, from_compact) && rv_json_equal(from_pretty, v) && rv_json_equal(copy, v));
    rv_json_write(copy, &again);
    require(rv_str_eq(rv_buf_str(&compact), rv_buf_str(&again)));
    json_object_put(from_compact);
    json_object_put(from_pretty);
    json_object_put(copy);
    rv_buf_fini(&compact);
    rv_buf_fini(&pretty);
    rv_buf_fini(&again);
}

RV_FUZZ_TARGET(json)
{
    static const struct rv_json_opts strict = {.max_bytes = MAX_OUT};
    static const struct rv_json_opts relaxed = {.max_bytes = MAX_OUT, .allow_duplicates = true};
    rv_str text = {(const char *)data, size};
    json_object *v = NULL;
    bool is_strict = rv_json_parse(text, &strict, &v, NULL) == 0;

    json_object_put(v);
    v = NULL;
    if (rv_json_parse(text, &relaxed, &v, NULL) == 0) {
        require(rv_utf8_valid(text, NULL));
        check_round_trip(v, &relaxed);
        check_scan(text, &relaxed, true);
    } else {
        require(!is_strict);
        check_scan(text, &relaxed, false);
    }
    json_object_put(v);
    return 0;
}
