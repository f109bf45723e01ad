/* Any bytes as a script: it loads or is refused with findings that have places; what loads answers calls. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/script/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void ask(rv_script *s, enum rv_script_kind kind, const char *name, int64_t visit)
{
    const struct rv_script_call call = {
        .kind = kind, .stage = name, .tool = name, .visit = visit, .text = RV_STR_LIT("what is x?")};
    struct rv_script_reply reply;
    rv_err *err = NULL;
    int rc = rv_script_next(s, &call, &reply, &err);

    require((rc < 0) == (err != NULL));
    if (rc == 0) {
        require(reply.failed ? reply.error && reply.error_type : reply.error == NULL);
        require(reply.n_chunks == 0 || reply.chunks);
        rv_script_reply_fini(&reply);
    }
    rv_err_free(err);
}

static void use(rv_script *s)
{
    struct rv_catalog catalog = rv_script_catalog(s, &rv_catalog_empty);
    struct rv_response response;
    size_t n;
    const char *const *tools = rv_script_tool_names(s, &n);

    for (int64_t visit = 1; visit < 4; visit++)
        for (int kind = RV_SCRIPT_MODEL; kind <= RV_SCRIPT_TOOL; kind++)
            ask(s, (enum rv_script_kind)kind, "a", visit);
    for (size_t i = 0; i < n && i < 100; i++) {
        require(catalog.tool(catalog.self, rv_str_of(tools[i])) != NULL);
        ask(s, RV_SCRIPT_TOOL, tools[i], 1);
    }
    for (n = 0; n < 5 && rv_script_answer(s, &response, NULL); n++)
        continue;
    rv_script_rewind(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rv_findings *f = rv_findings_new();
    rv_yaml *doc = NULL;
    rv_script *s = NULL;

    if (f && rv_yaml_parse((rv_str){(const char *)data, size}, "s.yaml", f, &doc, NULL) == 0 && doc &&
        rv_findings_n_errors(f) == 0 && rv_yaml_root(doc) && rv_script_from_node(rv_yaml_root(doc), f, &s, NULL) == 0) {
        require((s != NULL) == (rv_findings_n_errors(f) == 0));
        for (size_t i = 0; i < rv_findings_n(f); i++)
            require(rv_findings_at(f, i).src.line > 0);
        if (s)
            use(s);
    }
    rv_script_free(s);
    rv_yaml_free(doc);
    rv_findings_free(f);
    return 0;
}
