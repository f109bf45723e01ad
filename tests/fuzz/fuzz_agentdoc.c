/* Any bytes as an agent document: it is read or refused with findings that have places; what is read can be written,
 * reads as the same again, and has a prompt and an output schema. */
#include <stdlib.h>
#include <string.h>

#include "config/agentdoc/agentdoc.h"
#include "tests/kit/fuzz.h"

static void require_same(const struct rv_agentdoc *d, rv_str text)
{
    struct rv_agentdoc *again = NULL;
    rv_err *err = NULL;
    int rc = rv_agentdoc_read(text, "again.yaml", &again, &err);

    /* written, it can be larger than what was read: aliases are gone, controls are escapes */
    require(rc == 0 || (rc == RV_E_LIMIT && text.len > RV_AGENTDOC_MAX_BYTES));
    if (rc == 0)
        require(rv_json_equal(d->flat, again->flat));
    rv_agentdoc_free(again);
    rv_err_free(err);
}

static void write(const struct rv_agentdoc *d)
{
    rv_buf b = RV_BUF_INIT((size_t)64 << 20);
    rv_jw w = rv_jw_on(&b);

    rv_agentdoc_write_json(d, &w);
    require(b.rc == 0);
    require_same(d, rv_buf_str(&b));
    rv_buf_clear(&b);
    rv_agentdoc_write_yaml(d, &b);
    require(b.rc == 0);
    require_same(d, rv_buf_str(&b));
    rv_buf_fini(&b);
}

static void use(const struct rv_agentdoc *d)
{
    rv_buf b = RV_BUF_INIT((size_t)64 << 20);
    json_object *schema = NULL;

    require(rv_agentdoc_is_name(rv_str_of(d->name)) && d->n_tools <= RV_AGENTDOC_MAX_TOOLS);
    for (int structured = -1; structured <= 1; structured++) {
        require(rv_agentdoc_write_prompt(d, structured, &b, NULL) == 0);
        require(rv_utf8_valid(rv_buf_str(&b), NULL));
        require(rv_agentdoc_build_output_schema(d, structured, &schema, NULL) == 0);
        require((schema != NULL) == rv_agentdoc_is_structured(d, structured));
        json_object_put(schema);
        rv_buf_clear(&b);
    }
    rv_buf_fini(&b);
}

RV_FUZZ_TARGET(agentdoc)
{
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc *d = NULL;
    rv_err *err = NULL;
    rv_str text = {size > 0 ? (const char *)data : "", size};
    int rc;

    require(findings != NULL);
    rc = rv_agentdoc_parse(text, "fuzz.yaml", findings, &d, &err);
    require(rc == 0 ? !err : rc == RV_E_LIMIT);
    require(rc < 0 || (d != NULL) == (rv_findings_n_errors(findings) == 0));
    for (size_t i = 0; i < rv_findings_n(findings); i++) {
        struct rv_finding x = rv_findings_at(findings, i);
        require(x.text && x.text[0] && x.src.file && x.src.line > 0 && x.src.col > 0);
    }
    if (d) {
        use(d);
        write(d);
    }
    rv_agentdoc_free(d);
    rv_findings_free(findings);
    rv_err_free(err);
    return 0;
}
