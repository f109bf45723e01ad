/* From a document to a row of the store. */
#include "coreengine/app/agents/agents_internal.h"

#include <string.h>

#define MAX_SHORT 200               /* characters of a description that stand for the whole text */
#define MAX_JSON  ((size_t)4 << 20) /* of a document: what is short in YAML may be longer as JSON */

/* The first characters, whole ones. */
static rv_str head_of(const char *text)
{
    size_t at = 0, n = 0;

    while (text[at]) {
        if (((unsigned char)text[at] & 0xc0) != 0x80 && n++ == MAX_SHORT)
            break;
        at++;
    }
    return (rv_str){text, at};
}

int rv_agents_put_row(rv_agents *a, const char *tenant, const char *user, const struct rv_agentdoc *doc, rv_str text,
                      const char *source, const char *place, enum rv_schema_put how, bool *changed, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf json = RV_BUF_INIT(MAX_JSON), description = RV_BUF_INIT((size_t)4 * MAX_SHORT);
    rv_jw w = rv_jw_on(&json);
    struct rv_schema_row row = {.tenant = tenant ? tenant : RV_STORE_TENANT,
                                .user = user,
                                .name = doc->name,
                                .kind = RV_AGENTS_KIND, /* whatever else it calls itself (p8 1.5) */
                                .version = doc->version,
                                .content = rv_str_of(doc->description),
                                .document = text,
                                .source = source,
                                .place = place};
    int rc;

    rv_agentdoc_write_json(doc, &w);
    if (!doc->short_description)
        rv_buf_add_str(&description, head_of(doc->description));
    if ((rc = rv_buf_check(&json, "document of an agent", err)) < 0 ||
        (rc = rv_buf_check(&description, "description of an agent", err)) < 0)
        return rc;
    row.json_schema = rv_buf_str(&json);
    row.description = doc->short_description ? doc->short_description : rv_buf_cstr(&description);
    return rv_store_put_schema(a->store, &row, how, a->clock.now_us(a->clock.self), changed, err);
}

static int check_owner(const struct rv_store_scope *scope, bool user_own, rv_err **err)
{
    if (!user_own || (scope->user && *scope->user))
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "an agent of one's own needs a user");
}

/* The first fault as an error. */
static int check_use(const struct rv_agentdoc *doc, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    int rc = findings ? rv_agents_check(doc, findings, err) : RV_FAIL(err, RV_E_NOMEM, "check an agent");

    if (rc == 0 && rv_findings_n_errors(findings) > 0) {
        struct rv_finding f = rv_findings_at(findings, 0);
        rc = RV_FAIL_AT(err, &f.src, RV_E_INVALID, "%s", f.text);
    }
    rv_findings_free(findings);
    return rc;
}

int rv_agents_put(rv_agents *a, const struct rv_store_scope *scope, bool user_own, rv_str text, const char *file,
                  bool *changed, rv_err **err)
{
    struct rv_agentdoc *doc = NULL;
    bool written = false;
    int rc;

    if (!a->store)
        return RV_FAIL(err, RV_E_STATE, "there is no store to put an agent into");
    rc = check_owner(scope, user_own, err);
    if (rc == 0)
        rc = rv_agentdoc_read(text, file ? file : "<document>", &doc, err);
    if (rc == 0)
        rc = check_use(doc, err);
    if (rc < 0) {
        rv_agentdoc_free(doc);
        return rc;
    }
    rc = rv_agents_put_row(a, scope->tenant, user_own ? scope->user : "", doc, text, "person", file, RV_SCHEMA_PUT,
                           &written, err);
    if (rc == 0 && changed)
        *changed = written;
    rv_agentdoc_free(doc);
    return rc < 0 ? RV_WRAP(err, rc, "put agent \"%s\" into the store", file ? file : "<document>") : 0;
}
