/* A document from its text to the end of its life. */
#include <stdlib.h>
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

#define MAX_ARENA ((size_t)64 << 20) /* the caps on text, tree and tools end long before */

bool rv_agentdoc_is_name(rv_str name)
{
    if (name.len == 0 || name.len > RV_AGENTDOC_MAX_NAME)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!is_word && (i == 0 || (c != '-' && c != '.'))) /* ".." is not a name: names become files */
            return false;
    }
    return true;
}

bool rv_agentdoc_names_tool(const struct rv_agentdoc *d, const char *name)
{
    for (size_t i = 0; i < d->n_tools; i++)
        if (strcmp(d->tools[i].name, name) == 0)
            return true;
    return false;
}

static struct rv_agentdoc_owner *new_owner(void)
{
    struct rv_agentdoc_owner *owner = calloc(1, sizeof *owner);

    if (!owner)
        return NULL;
    owner->arena = rv_arena_new(MAX_ARENA);
    if (!owner->arena) {
        free(owner);
        return NULL;
    }
    owner->doc = (struct rv_agentdoc){
        .name = "",
        .kind = "agent",
        .version = "1.0.0",
        .description = "",
        .routing_enabled = true,
        .routing_max_turns = 20,
        .always_include_last = RV_UNSET,
        .replay = RV_UNSET,
        .child_text = RV_UNSET,
    };
    return owner;
}

/* What is read can be written and read again, aliases written out. */
static int check_size(const struct rv_agentdoc *d, const char *name, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    rv_jw w = rv_jw_on(&text);
    int rc;

    rv_agentdoc_write_json(d, &w);
    rc = text.rc;
    rv_buf_fini(&text);
    if (rc == RV_E_LIMIT)
        return RV_FAIL(err, rc, "the agent document \"%s\" has more than %zu bytes when it is written out", name,
                       RV_AGENTDOC_MAX_BYTES);
    return rc < 0 ? RV_FAIL(err, rc, "read the agent document \"%s\"", name) : 0;
}

static int read_root(struct rv_agentdoc_owner *owner, const struct rv_node *root, const char *name,
                     rv_findings *findings, rv_err **err)
{
    struct rv_agentdoc_reading r = {
        .keys = {.arena = owner->arena, .findings = findings, .owner_kind = "agent"},
        .doc = &owner->doc,
    };

    owner->doc.src = root->src;
    rv_agentdoc_gather(&r, root);
    if (r.keys.rc == 0)
        rv_agentdoc_read_fields(&r);
    if (r.keys.rc < 0)
        return RV_FAIL(err, r.keys.rc, "read the agent document \"%s\"", name);
    int rc = rv_agentdoc_flatten(&r, err);
    return rc == 0 ? check_size(&owner->doc, name, err) : rc;
}

/* The document, unless something was found wrong with it. Takes owner. */
static int hand_out(struct rv_agentdoc_owner *owner, int rc, rv_findings *findings, size_t n_before,
                    struct rv_agentdoc **out, rv_err **err)
{
    if (rc == 0)
        rc = rv_findings_check(findings, err);
    if (rc == 0 && rv_findings_n_errors(findings) == n_before)
        *out = &owner->doc;
    else
        rv_agentdoc_free(&owner->doc);
    return rc;
}

int rv_agentdoc_parse(rv_str text, const char *name, rv_findings *findings, struct rv_agentdoc **out, rv_err **err)
{
    size_t n_before = rv_findings_n_errors(findings);
    struct rv_agentdoc_owner *owner = NULL;
    const struct rv_node *root = NULL;

    *out = NULL;
    if (text.len > RV_AGENTDOC_MAX_BYTES)
        return RV_FAIL(err, RV_E_LIMIT, "the agent document \"%s\" has %zu bytes (the limit is %zu)", name, text.len,
                       RV_AGENTDOC_MAX_BYTES);
    owner = new_owner();
    if (!owner)
        return RV_FAIL(err, RV_E_NOMEM, "read the agent document \"%s\"", name);
    int rc = rv_agentdoc_source(text, name, findings, owner, &root, err);
    if (rc == 0 && root)
        rc = read_root(owner, root, name, findings, err);
    return hand_out(owner, rc, findings, n_before, out, err);
}

/* The first error of the list as an error value. */
static int first_error(const rv_findings *findings, const char *name, rv_err **err)
{
    size_t n = rv_findings_n(findings);

    for (size_t i = 0; i < n; i++) {
        struct rv_finding x = rv_findings_at(findings, i);
        if (x.severity == RV_SEVERITY_WARNING)
            continue;
        int rc = RV_FAIL_AT(err, &x.src, RV_E_INVALID, "%s", x.text);
        if (x.hint)
            rv_err_hint(err, "%s", x.hint);
        return rc;
    }
    return RV_FAIL(err, RV_E_INVALID, "the agent document \"%s\" has more faults than are kept", name);
}

/* Findings as an error. */
static int found(rv_findings *findings, const char *name, rv_err **err)
{
    rv_findings_sort(findings);
    return first_error(findings, name, err);
}

int rv_agentdoc_read(rv_str text, const char *name, struct rv_agentdoc **out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc *d = NULL;
    int rc;

    if (!findings)
        return RV_FAIL(err, RV_E_NOMEM, "read the agent document \"%s\"", name);
    rc = rv_agentdoc_parse(text, name, findings, &d, err);
    if (rc == 0 && !d)
        rc = found(findings, name, err);
    rv_findings_free(findings);
    if (rc == 0)
        *out = d;
    return rc;
}

int rv_agentdoc_of_value(json_object *flat, const char *name, struct rv_agentdoc **out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    struct rv_agentdoc_owner *owner = findings ? new_owner() : NULL;
    struct rv_src src = {owner ? rv_arena_dup(owner->arena, rv_str_of(name)) : NULL, 1, 1};
    const struct rv_node *root = src.file ? rv_node_of_json(flat, &src, owner->arena) : NULL;
    struct rv_agentdoc *d = NULL;
    int rc = root ? read_root(owner, root, name, findings, err)
                  : RV_FAIL(err, RV_E_NOMEM, "read the agent document \"%s\"", name);

    if (owner)
        rc = hand_out(owner, rc, findings, 0, &d, err);
    if (rc == 0 && !d)
        rc = found(findings, name, err);
    rv_findings_free(findings);
    if (rc == 0)
        *out = d;
    return rc;
}

void rv_agentdoc_free(struct rv_agentdoc *d)
{
    struct rv_agentdoc_owner *owner = (struct rv_agentdoc_owner *)(void *)d;

    if (!owner)
        return;
    json_object_put(d->flat); /* properties, required, defs and chained_map are parts of the flat document */
    rv_yaml_free(owner->yaml);
    rv_arena_free(owner->arena);
    free(owner);
}
