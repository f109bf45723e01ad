/* The service `agents.save`: the document of an agent, checked and kept as the user's own. No other user sees it, and
 * an agent for everybody is never changed. */
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/services/services_internal.h"

#define WHAT     "document"        /* what messages call the text */
#define KIND     "agent"           /* of rows of the store */
#define MAX_TAGS 64                /* of one agent: they are read with each list; more is an error of the call */
#define MAX_TAG  RV_ENTITY_MAX_TAG /* bytes */

struct save {
    const char *document, *name, *description; /* name and description NULL: those of the document */
    json_object *tags;                         /* borrowed; NULL: those of the document */
    bool overwrites;
};

static int read_tags(const struct app_ask *a, struct save *s, rv_err **err)
{
    if (!json_object_object_get_ex(a->args, "tags", &s->tags))
        return 0;
    if (!json_object_is_type(s->tags, json_type_array) || json_object_array_length(s->tags) > MAX_TAGS)
        return RV_FAIL(err, RV_E_INVALID, "\"tags\" is not a list of at most %d strings", MAX_TAGS);
    for (size_t i = 0; i < json_object_array_length(s->tags); i++) {
        json_object *tag = json_object_array_get_idx(s->tags, i);
        if (!json_object_is_type(tag, json_type_string) || json_object_get_string_len(tag) > MAX_TAG)
            return RV_FAIL(err, RV_E_INVALID, "\"tags\": item %zu is not a string of at most %d bytes", i + 1, MAX_TAG);
    }
    return 0;
}

static int read_save(const struct app_ask *a, struct save *s, rv_err **err)
{
    static const char *const known[] = {"document", "name", "description", "tags", "overwrite"};
    int rc = app_ask_check(a, known, RV_COUNT(known), err);

    if (rc == 0)
        rc = app_ask_text(a, "document", true, &s->document, err);
    if (rc == 0)
        rc = app_ask_text(a, "name", false, &s->name, err);
    if (rc == 0)
        rc = app_ask_text(a, "description", false, &s->description, err);
    if (rc == 0)
        rc = read_tags(a, s, err);
    if (rc == 0 && json_object_object_get_ex(a->args, "overwrite", NULL) &&
        !rv_json_get_bool(a->args, "overwrite", &s->overwrites))
        rc = RV_FAIL(err, RV_E_INVALID, "\"overwrite\" is not true or false");
    return rc;
}

/* --- the document with what the arguments say --- */

/* The text as a tree; it has to be a map. */
static int tree_of(rv_str text, json_object **out, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    rv_yaml *yaml = NULL;
    int rc = findings ? rv_yaml_parse(text, WHAT, findings, &yaml, err) : RV_FAIL(err, RV_E_NOMEM, "read an agent");

    if (rc == 0)
        rc = rv_findings_raise_first_error(findings, err);
    if (rc == 0 && (!yaml || !rv_yaml_root(yaml) || rv_yaml_root(yaml)->kind != RV_NODE_MAP))
        rc = RV_FAIL(err, RV_E_INVALID, "\"" WHAT "\" is not a map of keys");
    if (rc == 0)
        rc = rv_node_build_json(rv_yaml_root(yaml), out, err);
    rv_yaml_free(yaml);
    rv_findings_free(findings);
    return rc;
}

/* A document without a name gets the one of the argument: the others are read as they are. */
static int name_it(const struct save *s, rv_buf *out, rv_err **err)
{
    json_object *tree = NULL;
    int rc = tree_of(rv_str_of(s->document), &tree, err);

    if (rc == 0 && s->name && !rv_json_get_obj(tree, "json_schema_extra") && !rv_json_get_obj(tree, "json_schema") &&
        !json_object_object_get_ex(tree, "name", NULL)) {
        rc = rv_json_set_take(tree, "name", json_object_new_string(s->name), err);
        if (rc == 0)
            rv_json_write(tree, out);
    } else if (rc == 0) {
        rv_buf_puts(out, s->document);
    }
    json_object_put(tree);
    return rc == 0 ? rv_buf_check(out, "document of an agent", err) : rc;
}

/* The flat document in place of the text, when an argument says something else. */
static int amend(const struct save *s, const struct rv_agentdoc *doc, rv_buf *text, rv_err **err)
{
    bool renames = s->name && strcmp(s->name, doc->name) != 0;
    json_object *flat = NULL;
    rv_buf json = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    rv_jw w = rv_jw_on(&json);

    if (!renames && !s->description && !s->tags)
        return 0;
    rv_agentdoc_write_json(doc, &w);
    int rc = rv_buf_check(&json, "document of an agent", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&json), NULL, &flat, err);
    if (rc == 0 && renames)
        rc = rv_json_set_take(flat, "name", json_object_new_string(s->name), err);
    if (rc == 0 && s->description)
        rc = rv_json_set_take(flat, "short_description", json_object_new_string(s->description), err);
    if (rc == 0 && s->tags)
        rc = rv_json_set_take(flat, "tags", json_object_get(s->tags), err);
    if (rc == 0) {
        rv_buf_clear(text);
        rv_json_write(flat, text);
        rc = rv_buf_check(text, "document of an agent", err);
    }
    json_object_put(flat);
    rv_buf_fini(&json);
    return rc;
}

/* What is to be kept, and read once more as it will be. */
static int document_of(const struct save *s, rv_buf *text, struct rv_agentdoc **out, rv_err **err)
{
    struct rv_agentdoc *given = NULL;
    int rc = name_it(s, text, err);

    if (rc == 0)
        rc = rv_agentdoc_read(rv_buf_str(text), WHAT, &given, err);
    if (rc == 0)
        rc = amend(s, given, text, err);
    rv_agentdoc_free(given);
    return rc == 0 ? rv_agentdoc_read(rv_buf_str(text), WHAT, out, err) : rc;
}

/* --- keeping it --- */

/* Whether the name is free, or may be taken. *created: there is no own one. */
static int check_name(const struct app_ask *a, const struct save *s, const char *name, rv_str text, bool *created,
                      rv_err **err)
{
    struct rv_schema_row row = {.id = NULL};
    rv_err *why = NULL;
    int rc = rv_store_find_schema(a->store, &a->app.scope, KIND, name, &row, &why);

    *created = true;
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(why);
        return 0;
    }
    if (rc < 0) {
        rv_err_pass(err, why);
        return rc;
    }
    bool is_own = strcmp(row.user ? row.user : "", a->app.scope.user) == 0;
    bool is_same = is_own && rv_str_eq(row.document, text);
    rv_schema_row_fini(&row);
    *created = !is_own;
    if (s->overwrites || is_same) /* the call may be made again after a crash */
        return 0;
    rc = is_own ? RV_FAIL(err, RV_E_EXISTS, "you have an agent \"%s\" already", name)
                : RV_FAIL(err, RV_E_EXISTS, "\"%s\" is the name of an agent that is for everybody", name);
    rv_err_set_hint(err, is_own ? "choose another name, or set \"overwrite\" to replace it"
                                : "choose another name, or set \"overwrite\" to have one of that name for yourself");
    return rc;
}

static int keep(const struct app_ask *a, const struct save *s, const char *name, rv_str text, bool *created,
                rv_err **err)
{
    const struct rv_agents_opts opts = {.store = a->store};
    char place[256];
    rv_agents *agents = NULL;
    int rc = rv_agents_new(&opts, &agents, err);

    snprintf(place, sizeof place, "saved by %.60s of %.60s", a->entry, a->capability);
    while (rc == 0) {
        rc = rv_store_begin(a->store, err);
        if (rc == 0) {
            rc = check_name(a, s, name, text, created, err);
            if (rc == 0)
                rc = rv_agents_put(agents, &a->app.scope,
                                   &(const struct rv_agent_text){.user_own = true, .text = text, .file = place}, NULL,
                                   err);
            rc = rv_store_end(a->store, rc, err);
        }
        if (rc == 0 || !rv_store_wait_again(a->store, err))
            break;
        rc = 0;
    }
    rv_agents_free(agents);
    return rc;
}

int app_agents_save(const struct app_ask *a, rv_jw *w, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    struct save s = {.document = NULL};
    struct rv_agentdoc *doc = NULL;
    bool created = false;
    int rc = read_save(a, &s, err);

    if (rc == 0 && !*a->app.scope.user)
        rc = RV_FAIL(err, RV_E_INVALID, "user_id is required for saving agents");
    if (rc == 0)
        rc = document_of(&s, &text, &doc, err);
    if (rc == 0)
        rc = keep(a, &s, doc->name, rv_buf_str(&text), &created, err);
    if (rc == 0) {
        rv_jw_kv_text(w, "name", doc->name);
        rv_jw_kv_text(w, "version", doc->version);
        rv_jw_kv_bool(w, "created", created);
    }
    rv_agentdoc_free(doc);
    return rc;
}
