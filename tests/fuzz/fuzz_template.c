/* Any text as a template: it compiles or is refused with a place; what it renders has no braces that were replaced, and
 * a text without placeholders comes out with nothing but its escapes changed. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "tests/kit/fuzz.h"

static const char sample[] =
    "{\"a\": \"x\", \"name\": \"{{name}}\", \"l\": [1, [2], {\"b\": null}], \"o\": {\"p\": {\"q\": 1.5}}}";

static json_object *scope_object(void)
{
    static json_object *obj; /* one for all inputs: rendering must not change it */

    if (!obj)
        require(rv_json_parse(RV_STR_LIT(sample), NULL, &obj, NULL) == 0);
    return obj;
}

static void render(const rv_template *t, rv_str text)
{
    struct rv_scope scope = rv_scope_of_object(scope_object());
    RV_AUTO(rv_buf_fini) rv_buf out = RV_BUF_INIT(16 << 20);
    rv_err *err = NULL;
    int rc = rv_template_render(t, &scope, &out, &err);

    require((rc == 0) == (err == NULL));
    require(rc == 0 || (out.len == 0 && rv_err_src(err).line > 0));
    if (rc == 0 && rv_template_n_placeholders(t) == 0)
        require(out.len <= text.len && (memchr(text.ptr, '\\', text.len) || rv_str_eq(rv_buf_str(&out), text)));
    rv_err_free(err);
}

RV_FUZZ_TARGET(template)
{
    rv_str text = {(const char *)data, size};
    struct rv_src src = {"fuzz.md", 1, 1};
    rv_template *t = NULL;
    rv_err *err = NULL;

    if (size == 0)
        text.ptr = "";
    if (rv_template_compile(text, &src, &t, &err) == 0) {
        for (size_t i = 0; i < rv_template_n_placeholders(t); i++) {
            struct rv_placeholder ph = rv_template_placeholder_at(t, i);

            require(ph.path.len >= ph.root.len && ph.root.len > 0 && ph.src.line > 0);
            require(strlen(ph.root.ptr) == ph.root.len && (!ph.field.ptr || strlen(ph.field.ptr) == ph.field.len));
        }
        render(t, text);
    } else {
        require(err && rv_err_src(err).line > 0);
    }
    rv_err_free(err);
    rv_template_free(t);
    return 0;
}
