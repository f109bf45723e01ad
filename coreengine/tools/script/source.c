/* A script as text again: the bytes it was read from, or, when it stands inside another file, its node as JSON. */
#include <string.h>

#include "coreengine/tools/script/script_internal.h"

/* The length of the character at p if YAML would refuse it or take it for a line break where JSON has it as it is; its
 * code goes to *code. All are below U+10000. 0: it may stand. */
static size_t odd_character(const unsigned char *p, size_t n, unsigned *code)
{
    if (p[0] == 0x7f) {
        *code = 0x7f;
        return 1;
    }
    if (n >= 2 && p[0] == 0xc2 && p[1] <= 0xa0) { /* C1 controls, the no-break space */
        *code = p[1];
        return 2;
    }
    if (n < 3 || !(p[0] == 0xe2 || p[0] == 0xef))
        return 0;
    *code = (unsigned)(p[0] & 15) << 12 | (unsigned)(p[1] & 63) << 6 | (p[2] & 63);
    return *code == 0x2028 || *code == 0x2029 || *code == 0xfeff || *code >= 0xfffe ? 3 : 0;
}

/* JSON is YAML but for those characters; they only stand in strings, which both escape alike. */
void rv_script_add_json(rv_str json, rv_buf *out)
{
    size_t from = 0, at = 0;

    while (at < json.len) {
        unsigned code = 0;
        size_t n = odd_character((const unsigned char *)json.ptr + at, json.len - at, &code);

        if (n > 0) {
            rv_buf_add(out, json.ptr + from, at - from);
            rv_buf_printf(out, "\\u%04x", code);
            from = at + n;
        }
        at += n > 0 ? n : 1;
    }
    rv_buf_add(out, json.ptr + from, json.len - from);
}

static int write_node(const struct rv_node *node, rv_buf *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES); /* more could not be read again */
    json_object *json = NULL;
    int rc = rv_node_to_json(node, &json, err);

    if (rc == 0) {
        rv_json_write_pretty(json, &text);
        rc = rv_buf_check(&text, "text of a script", err);
    }
    if (rc == 0)
        rv_script_add_json(rv_buf_str(&text), out);
    json_object_put(json);
    rv_buf_fini(&text);
    return rc;
}

int rv_script_source(const rv_script *s, const char **name, rv_buf *text, rv_err **err)
{
    int rc = 0;

    if (s->doc)
        rv_buf_add_str(text, s->text);
    else
        rc = write_node(s->root, text, err);
    if (rc == 0)
        rc = rv_buf_check(text, "text of a script", err);
    if (rc == 0)
        *name = s->root->src.file;
    return rc;
}
