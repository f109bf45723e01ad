/* Pipelines as a simulation needs them. */
#include "coreengine/app/check.h"

#include <stdlib.h>
#include <string.h>

void rv_app_subject_fini(struct rv_app_subject *o)
{
    if (o->is_loaded)
        rv_app_loaded_fini(&o->loaded);
    free(o->scripts);
    free(o->tools);
    for (size_t i = 0; i < o->n_agents; i++) {
        free((char *)o->agents[i].name);
        free((char *)o->agents[i].document.ptr);
    }
    free(o->agents);
}

static int add_agent(void *self, const char *name, const struct rv_agents_found *found, const rv_err *fault,
                     rv_err **err)
{
    struct rv_app_subject *o = self;
    struct rv_sim_agent *agents = realloc(o->agents, (o->n_agents + 1) * sizeof *agents);

    (void)fault; /* a document with errors exists, but cannot be used */
    if (!agents)
        return RV_FAIL(err, RV_E_NOMEM, "list the agents that may be asked");
    o->agents = agents;
    struct rv_sim_agent *a = &o->agents[o->n_agents++];
    *a = (struct rv_sim_agent){.name = rv_str_dup(rv_str_of(name))};
    if (found->doc)
        a->document = (rv_str){rv_str_dup(found->text), found->text.len};
    return a->name && (a->document.ptr || !found->doc) ? 0
                                                       : RV_FAIL(err, RV_E_NOMEM, "list the agents that may be asked");
}

/* Agents that a run of this pipeline would find. */
static int list_agents(const struct rv_app *app, struct rv_app_subject *o, struct rv_sim_subject *subject, rv_err **err)
{
    int rc = o->loaded.agents ? rv_agents_list(o->loaded.agents, &app->scope, add_agent, o, err) : 0;

    subject->agents = o->agents;
    subject->n_agents = o->n_agents;
    return rc;
}

/* The names of all tools, borrowed; a name may come twice. */
static int list_tools(struct rv_app_subject *o, struct rv_sim_subject *subject, rv_err **err)
{
    const struct rv_app_loaded *l = &o->loaded;
    struct rv_known_names known = rv_plugins_names(l->plugins);
    size_t n_scripts = (l->test_scripts ? l->pipeline->n_tests : 0) + 1, n = 0;

    for (size_t i = 0; i <= n_scripts; i++) { /* the capabilities, the script, those of the tests */
        const rv_script *s = i == 1 ? l->script : i > 1 ? l->test_scripts[i - 2] : NULL;
        const char *const *names = NULL;
        size_t more = 0;
        if (i == 0)
            names = known.list(known.self, RV_NAME_TOOL, &more);
        else if (s)
            names = rv_script_tool_names(s, &more);
        const char **tools = realloc(o->tools, (n + more + 1) * sizeof *tools);
        if (!tools)
            return RV_FAIL(err, RV_E_NOMEM, "list the tools of pipeline \"%s\"", l->pipeline->name);
        o->tools = tools;
        for (size_t k = 0; k < more; k++)
            o->tools[n++] = names[k];
    }
    subject->tools = o->tools;
    subject->n_tools = n;
    return 0;
}

int rv_app_subject_load(const struct rv_app *app, const char *path, const char *script, struct rv_app_subject *o,
                        struct rv_sim_subject *subject, rv_err **err)
{
    struct rv_app_loaded *l = &o->loaded;
    const struct rv_app_load_opts opts = {.script = script, .tests = !script};
    int rc = rv_app_load(app, path, &opts, l, err);

    if (rc < 0)
        return rc;
    o->is_loaded = true;
    if (!l->pipeline || rv_findings_n_errors(l->findings) > 0)
        return 0; /* reported with the first pipeline */
    o->scripts = calloc(l->pipeline->n_tests + 2, sizeof *o->scripts);
    if (!o->scripts)
        return RV_FAIL(err, RV_E_NOMEM, "load pipeline \"%s\"", path);
    o->plugins = rv_plugins_catalog(l->plugins);
    const struct rv_catalog *top = &o->plugins;
    size_t n = 0;
    for (size_t i = 0; l->test_scripts && i < l->pipeline->n_tests; i++)
        if (l->test_scripts[i]) {
            o->scripts[n] = rv_script_catalog(l->test_scripts[i], top);
            top = &o->scripts[n++];
        }
    if (l->script) {
        o->scripts[n] = rv_script_catalog(l->script, top);
        top = &o->scripts[n];
    }
    *subject = (struct rv_sim_subject){.pipeline = l->pipeline, .catalog = top, .script = l->script};
    rc = list_tools(o, subject, err);
    return rc < 0 ? rc : list_agents(app, o, subject, err);
}
