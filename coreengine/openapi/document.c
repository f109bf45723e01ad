/* A document: text to a tree, and its version. */
#include "coreengine/openapi/openapi_internal.h"

#include "coreengine/lang/lang.h"

static int read_yaml(rv_str text, const char *name, json_object **out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    rv_yaml *doc = NULL;

    int rc = findings ? rv_yaml_parse(text, name, findings, &doc, err) : OPENAPI_NOMEM(err);
    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, err);
    if (rc == 0 && doc && rv_yaml_root(doc))
        rc = rv_node_build_json(rv_yaml_root(doc), out, err);
    rv_yaml_free(doc);
    rv_findings_free(findings);
    return rc;
}

static int check_version(json_object *document, const char *name, rv_err **err)
{
    const char *version = "";

    if (json_object_is_type(document, json_type_object) && rv_json_get_text(document, "openapi", &version) &&
        (strncmp(version, "3.0", 3) == 0 || strncmp(version, "3.1", 3) == 0))
        return 0;
    if (rv_json_get_text(document, "swagger", &version))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is a document of Swagger 2: convert it to OpenAPI 3", name);
    return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a document of OpenAPI 3.0 or 3.1", name);
}

int rv_openapi_read(rv_str text, const char *name, json_object **out, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = RV_OPENAPI_MAX_BYTES, .max_depth = RV_OPENAPI_MAX_DEPTH, .what = "OpenAPI document"};
    rv_str trimmed = rv_str_trim(text);
    json_object *document = NULL;

    int rc = trimmed.len > 0 && trimmed.ptr[0] == '{' ? rv_json_parse(text, &opts, &document, err)
                                                      : read_yaml(text, name, &document, err);
    if (rc == 0)
        rc = check_version(document, name, err);
    if (rc < 0)
        json_object_put(document);
    else
        *out = document;
    return rc;
}
