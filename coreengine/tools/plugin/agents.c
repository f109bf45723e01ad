/* Agents of capabilities: documents that come with the descriptor. They are read when the capability is loaded, so that
 * the author sees a fault, not the user who talks to the agent, and passed on unchanged. */
#include "coreengine/tools/plugin/plugin_internal.h"

#include <stdlib.h>
#include <string.h>

/* The place is part of the text: as a place of the error it would hide the one in the pipeline. */
static int fail_document(const rv_err *why, int rc, rv_err **err)
{
    struct rv_src at = rv_err_src(why);
    const char *hint = rv_err_hint_text(why);

    if (rc == RV_E_NOMEM || rv_err_is(why, RV_E_NOMEM))
        return RV_FAIL(err, RV_E_NOMEM, "read its document");
    if (at.line > 0)
        rc = RV_FAIL(err, RV_E_PLUGIN, "its document, line %d, column %d: %s", at.line, at.col, rv_err_text(why));
    else
        rc = RV_FAIL(err, RV_E_PLUGIN, "its document: %s", rv_err_text(why));
    if (hint)
        rv_err_hint(err, "%s", hint);
    return rc;
}

/* An entry is a name of C, an agent's may have dashes. */
static bool is_called(const struct rv_agentdoc *doc, const char *entry)
{
    size_t i = 0;

    while (doc->name[i] && (doc->name[i] == '-' ? '_' : doc->name[i]) == entry[i])
        i++;
    return !doc->name[i] && !entry[i];
}

int rv_plugin_read_agent(struct rv_plugin_agent *a, const char *name, const char *text, rv_err **err)
{
    rv_str given = {text, text ? strnlen(text, RV_AGENTDOC_MAX_BYTES + 1) : 0};
    rv_err *why = NULL;
    int rc;

    if (!text)
        return RV_FAIL(err, RV_E_PLUGIN, "its document is missing");
    if (given.len > RV_AGENTDOC_MAX_BYTES)
        return RV_FAIL(err, RV_E_PLUGIN, "its document is longer than %zu bytes", RV_AGENTDOC_MAX_BYTES);
    if (!rv_utf8_valid(given, NULL))
        return RV_FAIL(err, RV_E_PLUGIN, "its document is not UTF-8");
    a->text = rv_str_dup(given);
    if (!a->text)
        return RV_FAIL(err, RV_E_NOMEM, "copy its document");
    rc = rv_agentdoc_read(rv_str_of(a->text), name, &a->doc, &why);
    if (rc < 0)
        rc = fail_document(why, rc, err);
    rv_err_free(why);
    if (rc == 0 && !is_called(a->doc, name)) {
        rc = RV_FAIL(err, RV_E_PLUGIN, "its document names the agent \"%s\"", a->doc->name);
        rv_err_hint(err, "the entry is called like the agent, with \"_\" for \"-\"");
    }
    return rc;
}

void rv_plugin_agents_free(struct rv_plugin *pl)
{
    for (size_t i = 0; i < pl->n_agents; i++) {
        rv_agentdoc_free(pl->agents[i].doc);
        free(pl->agents[i].text);
    }
    free(pl->agents);
    pl->agents = NULL;
    pl->n_agents = 0;
}

static bool has_agent(const struct rv_plugin *pl, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(pl->agents[i].doc->name, name) == 0)
            return true;
    return false;
}

int rv_plugin_check_agents(const struct rv_plugins *p, const struct rv_plugin *pl, rv_err **err)
{
    for (size_t i = 0; i < pl->n_agents; i++) {
        const char *name = pl->agents[i].doc->name;

        if (has_agent(pl, i, name))
            return RV_FAIL(err, RV_E_PLUGIN, "it has two entries for agent \"%s\"", name);
        for (size_t k = 0; k < p->n_loaded; k++)
            if (has_agent(p->loaded[k], p->loaded[k]->n_agents, name))
                return RV_FAIL(err, RV_E_EXISTS, "agent \"%s\" is in capability \"%s\" already", name,
                               p->loaded[k]->name);
    }
    return 0;
}

bool rv_plugins_agent(rv_plugins *p, size_t i, const char **name, rv_str *document, const char **capability)
{
    for (size_t k = 0; k < p->n_loaded; k++) {
        const struct rv_plugin *pl = p->loaded[k];

        if (i < pl->n_agents) {
            *name = pl->agents[i].doc->name;
            *document = rv_str_of(pl->agents[i].text);
            *capability = pl->name;
            return true;
        }
        i -= pl->n_agents;
    }
    return false;
}

/* --- for inspect --- */

/* What it is, in one line: a description is a whole prompt. */
static rv_str short_text(const struct rv_agentdoc *doc)
{
    rv_str text = rv_str_trim(rv_str_of(doc->short_description ? doc->short_description : doc->description));
    const char *end = text.len ? memchr(text.ptr, '\n', text.len) : NULL;

    if (end)
        text.len = (size_t)(end - text.ptr);
    return rv_str_trim(text);
}

static void write_agent(const struct rv_agentdoc *doc, rv_jw *w)
{
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", doc->name);
    rv_jw_kv_str(w, "description", short_text(doc));
    rv_jw_kv_text(w, "version", doc->version);
    rv_jw_kv_bool(w, "structured_output", rv_agentdoc_is_structured(doc, RV_UNSET));
    if (doc->model)
        rv_jw_kv_text(w, "model", doc->model);
    if (doc->chained_tool)
        rv_jw_kv_text(w, "chained_tool", doc->chained_tool);
    rv_jw_key(w, "tools");
    rv_jw_arr(w);
    for (size_t i = 0; i < doc->n_tools; i++)
        rv_jw_text(w, doc->tools[i].name);
    rv_jw_arr_end(w);
    rv_jw_obj_end(w);
}

void rv_plugin_write_agents(const struct rv_plugin *pl, rv_jw *w)
{
    rv_jw_key(w, "agents");
    rv_jw_arr(w);
    for (size_t i = 0; i < pl->n_agents; i++)
        write_agent(pl->agents[i].doc, w);
    rv_jw_arr_end(w);
}
