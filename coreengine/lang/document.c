/* Documents: what is refused before reading, and the life of the result. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/yaml_internal.h"

#define MAX_ARENA ((size_t)256 << 20) /* the node and byte caps end long before */

static bool is_readable(rv_str text, const char *name, rv_findings *findings)
{
    size_t bad = 0;
    struct rv_src src = {name, 1, 1};

    if (text.len > RV_YAML_MAX_BYTES) {
        rv_findings_add(findings, RV_SEVERITY_CRITICAL, &src, NULL, "the file has %zu bytes (the limit is %zu)",
                        text.len, RV_YAML_MAX_BYTES);
        return false;
    }
    if (!rv_utf8_valid(text, &bad)) {
        src = rv_yaml_place(text, bad, name);
        rv_findings_add(findings, RV_SEVERITY_CRITICAL, &src, "save the file as UTF-8",
                        "the byte 0x%02x is not valid UTF-8 here", (unsigned char)text.ptr[bad]);
        return false;
    }
    return true;
}

int rv_yaml_parse(rv_str text, const char *name, rv_findings *findings, rv_yaml **out, rv_err **err)
{
    rv_yaml *doc = NULL;
    bool is_whole = false;
    int rc = 0;

    *out = NULL;
    if (text.len >= 3 &&
        memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0) /* a byte-order mark, which does not count as part of line 1 */
        text = (rv_str){text.ptr + 3, text.len - 3};
    if (!is_readable(text, name, findings))
        return rv_findings_check(findings, err);
    doc = calloc(1, sizeof *doc);
    if (doc)
        doc->arena = rv_arena_new(MAX_ARENA);
    if (doc && doc->arena)
        doc->name = rv_arena_dup(doc->arena, rv_str_of(name));
    if (!doc || !doc->name)
        rc = RV_E_NOMEM;
    if (rc == 0)
        rc = rv_yaml_read_nodes(doc, text, findings, &is_whole);
    if (rc == 0)
        rc = rv_findings_check(findings, NULL);
    if (rc < 0 || !is_whole) {
        rv_yaml_free(doc);
        return rc < 0 ? RV_FAIL(err, rc, "read \"%s\"", name) : 0;
    }
    *out = doc;
    return 0;
}

int rv_yaml_read(const char *path, rv_findings *findings, rv_yaml **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    int rc = rv_file_read(path, &text, err);

    if (rc == 0)
        rc = rv_yaml_parse(rv_buf_str(&text), path, findings, out, err);
    rv_buf_fini(&text);
    return rc;
}

void rv_yaml_free(rv_yaml *doc)
{
    if (!doc)
        return;
    rv_arena_free(doc->arena);
    free(doc);
}

const struct rv_node *rv_yaml_root(const rv_yaml *doc)
{
    return doc ? doc->root : NULL;
}
