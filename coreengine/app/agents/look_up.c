/* The order of the sources. What a person put into the store goes first; a row that was only registered is a copy of a
 * built-in agent or of a file, and gives way to what it was copied from. */
#include "coreengine/app/agents/agents_internal.h"

#include <stdlib.h>
#include <string.h>

/* The agent as a capability or a file has it. */
struct given {
    rv_str text;
    const char *source, *place;
};

static bool find_given(rv_agents *a, const char *name, struct given *out)
{
    const struct rv_agents_file *file;
    const char *found, *capability;

    for (size_t i = 0; a->plugins && rv_plugins_agent(a->plugins, i, &found, &out->text, &capability); i++) {
        if (strcmp(found, name) != 0)
            continue;
        out->source = "built-in";
        out->place = capability;
        return true;
    }
    file = rv_agents_find_file(a, name);
    if (!file)
        return false;
    *out = (struct given){{file->text, file->len}, "file", file->path};
    return true;
}

const char *rv_agents_hidden(const rv_agents *a, const char *name, const struct rv_agents_found *found)
{
    bool is_file = strcmp(found->source, "file") == 0;

    if (!is_file && strcmp(found->source, "built-in") != 0)
        return NULL;
    for (size_t i = 0; i < a->files.n; i++) {
        const struct rv_agents_file *f = &a->files.items[i];
        size_t len = strlen(f->path);
        bool is_found = is_file && strncmp(f->path, found->place, len) == 0 &&
                        (!found->place[len] || found->place[len] == ' '); /* a blank: with AGENT_* variables */
        if (f->name && strcmp(f->name, name) == 0 && !is_found)
            return f->path;
    }
    return NULL;
}

static int find_row(rv_agents *a, const struct rv_store_scope *scope, const char *name, struct rv_schema_row *row,
                    bool *has_row, rv_err **err)
{
    rv_err *why = NULL;
    int rc;

    *has_row = false;
    if (!a->store)
        return 0;
    rc = rv_store_find_schema(a->store, scope, RV_AGENTS_KIND, name, row, &why);
    *has_row = rc == 0;
    if (rc < 0 && rc != RV_E_NOT_FOUND && err)
        *err = why;
    else
        rv_err_free(why);
    return rc == RV_E_NOT_FOUND ? 0 : rc;
}

static bool is_registered(const struct rv_schema_row *row)
{
    return row->source && (strcmp(row->source, "built-in") == 0 || strcmp(row->source, "file") == 0);
}

/* Read the document; what is wrong with it is wrapped in where it is from. */
static int take(struct rv_agents_entry *out, const char *name, rv_str text, const char *source, const char *place,
                rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf file = RV_BUF_INIT(RV_AGENTS_MAX_PATH);
    int rc;

    if (strcmp(source, "file") == 0)
        rv_buf_puts(&file, place);
    else
        rv_buf_printf(&file, "<%s>", name);
    out->text = rv_str_dup(text);
    out->len = text.len;
    out->source = source;
    out->place = rv_str_dup(rv_str_of(place));
    if (!out->text || !out->place || file.rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read agent \"%s\"", name);
    rc = rv_agentdoc_read((rv_str){out->text, out->len}, rv_buf_cstr(&file), &out->doc, err);
    if (rc < 0 && rc != RV_E_NOMEM)
        rc = RV_WRAP(err, RV_E_INVALID, "agent \"%s\" of the %s \"%s\" is no agent", name,
                     strcmp(source, "built-in") == 0 ? "capability" : source, place);
    return rc;
}

/* All users share the built-in agents. An agent of a folder belongs to the user who named the folder: other users
 * must not see it, and naming another folder must not change what they get. */
static const char *owner_of(const struct rv_store_scope *scope, const struct rv_agents_entry *agent)
{
    return strcmp(agent->source, "file") == 0 && scope->user ? scope->user : "";
}

/* The agent is usable even if the store cannot be written now. */
static int register_it(rv_agents *a, const struct rv_store_scope *scope, const struct rv_agents_entry *agent,
                       rv_err **err)
{
    bool changed = false;
    rv_err *why = NULL;
    int rc = rv_agents_put_row(a, scope->tenant, owner_of(scope, agent), agent->doc, (rv_str){agent->text, agent->len},
                               agent->source, agent->place, RV_SCHEMA_REGISTER, &changed, &why);

    if (rc == RV_E_NOMEM) {
        rv_err_free(why);
        return RV_FAIL(err, RV_E_NOMEM, "register agent \"%s\"", agent->doc->name);
    }
    if (rc < 0)
        RV_LOG(a->log, WARN, "agent.register_failed", RV_F_TEXT("agent", agent->doc->name), RV_F_ERR("error", why));
    else if (changed)
        RV_LOG(a->log, INFO, "agent.register", RV_F_TEXT("agent", agent->doc->name), RV_F_TEXT("source", agent->source),
               RV_F_TEXT("place", agent->place));
    rv_err_free(why);
    return 0;
}

int rv_agents_look_up(rv_agents *a, const struct rv_store_scope *scope, const char *name, bool registers,
                      struct rv_agents_entry *out, rv_err **err)
{
    struct rv_schema_row row = {.id = NULL};
    struct given given;
    bool has_row, is_given = find_given(a, name, &given);
    int rc = find_row(a, scope, name, &row, &has_row, err);

    if (rc < 0)
        return rc;
    if (has_row && (!is_given || !is_registered(&row))) {
        rc = take(out, name, row.document, "store", row.id ? row.id : "", err);
    } else if (is_given) {
        rc = take(out, name, given.text, given.source, given.place, err);
        if (rc == 0 && registers && !(has_row && rv_str_eq(row.document, given.text)))
            rc = register_it(a, scope, out, err);
    } else {
        rc = rv_agents_fail_unknown(a, scope, name, err);
    }
    rv_schema_row_fini(&row);
    return rc;
}
