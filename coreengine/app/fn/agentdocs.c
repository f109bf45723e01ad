/* Agent documents: what one comes to (config/agentdoc). */
#include "config/agentdoc/agentdoc.h"
#include "coreengine/app/fn/fn_internal.h"

/* A document as text (YAML or JSON) or as a value. */
static int text_of_document(json_object *in, rv_buf *text, rv_err **err)
{
    json_object *given = rv_fn_any(in, "document");

    if (json_object_is_type(given, json_type_string))
        rv_buf_add_str(text, rv_json_str(given));
    else
        rv_json_write(given, text); /* JSON is YAML */
    return rv_buf_check(text, "agent document", err);
}

/* What is wrong with it is part of the answer: warnings are not dropped, and all errors are told. */
static int agent_document(json_object *in, rv_jw *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc *d = NULL;
    int rc = findings ? text_of_document(in, &text, err) : RV_FAIL(err, RV_E_NOMEM, "read an agent document");

    if (rc == 0)
        rc = rv_agentdoc_parse(rv_buf_str(&text), "document", findings, &d, err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_key(out, "document");
        if (d)
            rv_agentdoc_write_json(d, out);
        else
            rv_jw_null(out);
        rv_jw_key(out, "findings");
        rv_findings_write_json(findings, out);
        rv_jw_obj_end(out);
    }
    rv_agentdoc_free(d);
    rv_findings_free(findings);
    rv_buf_fini(&text);
    return rc;
}

static int agent_prompt(json_object *in, rv_jw *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES), prompt = RV_BUF_INIT(RV_FN_MAX_REPLY);
    struct rv_agentdoc *d = NULL;
    json_object *schema = NULL;
    int structured = rv_fn_any(in, "structured") ? rv_fn_flag(in, "structured") : RV_UNSET;
    int rc = text_of_document(in, &text, err);

    if (rc == 0)
        rc = rv_agentdoc_read(rv_buf_str(&text), "document", &d, err);
    if (rc == 0)
        rc = rv_agentdoc_prompt(d, structured, &prompt, err);
    if (rc == 0)
        rc = rv_agentdoc_output_schema(d, structured, &schema, err);
    if (rc == 0)
        rc = rv_buf_check(&prompt, "prompt", err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_str(out, "prompt", rv_buf_str(&prompt));
        rv_jw_kv_value(out, "output_schema", schema);
        rv_jw_obj_end(out);
    }
    json_object_put(schema);
    rv_agentdoc_free(d);
    rv_buf_fini(&prompt);
    rv_buf_fini(&text);
    return rc;
}

static const struct rv_fn items[] = {
    {"agent_document", "{document: object|string}", "{document: object, findings: list}",
     "an agent document of any form as the flat one (null: it has errors), and what is wrong with it", agent_document},
    {"agent_prompt", "{document: object|string, structured?: bool}", "{prompt: string, output_schema: object}",
     "the system prompt of an agent document, and the schema of its output (null: text)", agent_prompt},
};
const struct rv_fn_group rv_fn_group_agentdocs = {items, RV_COUNT(items)};
