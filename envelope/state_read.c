/* Reading single values of a state dict. A wrong type is an error that names the path of the key. */
#include "envelope/state_read_internal.h"

#include <stdio.h>
#include <string.h>

#define MAX_PATH_TEXT 160 /* of a key in a message; longer ones are cut */

static bool is(json_object *v, json_type type)
{
    return json_object_is_type(v, type);
}

int rv_read_bad(struct rv_state_reader *rd, struct rv_state_place p, const char *want, json_object *got)
{
    char text[MAX_PATH_TEXT];
    char item[24] = "";
    rv_str path;

    if (p.item >= 0)
        (void)snprintf(item, sizeof item, "[%ld]", p.item);
    (void)snprintf(text, sizeof text, "%s%s%s%s", p.key, item, p.member ? "." : "", p.member ? p.member : "");
    path = rv_utf8_cut(rv_str_of(text), sizeof text - 4);
    return RV_FAIL(rd->err, RV_E_INVALID, "state key \"%.*s\" must be %s, not %s", RV_STR_ARG(path), want,
                   got && rv_json_is_number(got) ? "this number" : rv_json_type_text(got));
}

/* A whole number that arrives as 3.0 is fine, 3.5 is another type. */
int rv_read_int(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, int64_t lowest, int64_t highest,
                int64_t *out)
{
    char want[80];
    int64_t i = 0;
    bool whole = false;

    if (rv_json_is_int(v)) {
        i = json_object_get_int64(v);
        whole = true;
    } else if (v && rv_json_is_number(v)) {
        double d = json_object_get_double(v);

        if (d >= -(double)RV_MAX_COUNTER && d <= (double)RV_MAX_COUNTER) {
            i = (int64_t)d;
            whole = (double)i == d;
        }
    }
    if (!whole || i < lowest || i > highest) {
        (void)snprintf(want, sizeof want, "an integer from %lld to %lld", (long long)lowest, (long long)highest);
        return rv_read_bad(rd, p, want, v);
    }
    *out = i;
    return 0;
}

int rv_read_count(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, int64_t *out)
{
    return rv_read_int(rd, p, v, 0, RV_MAX_COUNTER, out);
}

int rv_read_time(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, int64_t *out)
{
    int64_t us = 0;
    int rc;

    if (!is(v, json_type_string))
        return rv_read_bad(rd, p, "a time as text", v);
    rc = rv_time_parse(rv_json_str(v), &us, NULL);
    if (rc < 0)
        return rv_read_bad(rd, p, "a time in RFC 3339 form", v);
    *out = rv_clamp_time(us);
    return 0;
}

int rv_read_text(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, bool may_be_null,
                 struct rv_text *out)
{
    struct rv_text made = {0};
    rv_str s = rv_json_str(v);
    int rc;

    if (!v && may_be_null) {
        rv_text_fini(out);
        return 0;
    }
    if (!is(v, json_type_string))
        return rv_read_bad(rd, p, may_be_null ? "a string or null" : "a string", v);
    rc = rv_text_of(s.ptr ? s : RV_STR_LIT(""), p.key, &made, rd->err);
    if (rc == 0)
        rv_text_move(out, &made);
    return rc;
}

/* A word of a list; the message keeps the list's own explanation as its cause. */
int rv_read_word(struct rv_state_reader *rd, const char *path, int rc)
{
    return rc < 0 ? RV_WRAP(rd->err, rc, "state key \"%s\"", path) : 0;
}

int rv_read_name(struct rv_state_reader *rd, struct rv_state_place p, json_object *v, const struct rv_name **out)
{
    if (!is(v, json_type_string))
        return rv_read_bad(rd, p, "a string", v);
    if (memchr(rv_json_str(v).len ? rv_json_str(v).ptr : "", 0, rv_json_str(v).len))
        return rv_read_bad(rd, p, "a string without NUL", v);
    return rv_env_intern(rd->env, rv_json_str(v), p.key, out, rd->err);
}
