/* A tool as it is listed: its description, the schemas of its arguments and its result, and the four hints.
 */
#include <string.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/mcp/mcp_internal.h"
#include "coreengine/plan/plan.h"

#define INPUT "input" /* the argument of pipelines and agents */

/* {"type": "object", "properties": {...}, "required": [...], "additionalProperties": false} of JSON text. */
static int parse(const char *text, json_object **out, rv_err **err)
{
    return rv_json_parse(rv_str_of(text), NULL, out, err);
}

static const char run_schema[] =
    "{\"type\":\"object\",\"properties\":{\"" INPUT "\":{\"type\":\"string\",\"description\":\"what it works on\"},"
    "\"session\":{\"type\":\"string\",\"minLength\":1,\"description\":\"id of the session that the run belongs to\"}},"
    "\"required\":[\"" INPUT "\"],\"additionalProperties\":false}";
static const char query_schema[] =
    "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\",\"minLength\":1,\"description\":"
    "\"LOOKUP key[, key...], TRAVERSE key [DEPTH n] [TYPE relation], SEARCH \\\"text\\\" [IN table], FUZZY "
    "\\\"text\\\", "
    "or SELECT ...\"}},\"required\":[\"query\"],\"additionalProperties\":false}";
static const char answer_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"run\":{\"type\":\"string\",\"minLength\":1,\"description\":\"id of the run that waits\"},"
    "\"question\":{\"type\":\"string\",\"minLength\":1,\"description\":\"id of the question, if it waits with "
    "several\"},"
    "\"text\":{\"type\":\"string\",\"description\":\"the answer to a question in words\"},"
    "\"approved\":{\"type\":\"boolean\",\"description\":\"the answer to a confirmation\"},"
    "\"choice\":{\"type\":\"string\",\"description\":\"one of the choices of the question\"},"
    "\"decision\":{\"type\":\"string\",\"description\":\"of a review: approve, reject, modify\"}},"
    "\"required\":[\"run\"],\"additionalProperties\":false}";

/* Those of a pipeline that says what it needs: each is required, and `input` is not. */
static int declared_inputs(const struct rv_pipeline *p, json_object **out, rv_err **err)
{
    int rc = parse(run_schema, out, err);

    if (rc < 0)
        return rc;
    struct rv_json_build b = {.err = err};
    json_object *properties = rv_json_get_obj(*out, "properties");
    json_object *required = rv_json_build(&b, *out, "required", json_object_new_array());
    for (size_t i = 0; i < p->inputs.n; i++) {
        rv_json_build(&b, properties, p->inputs.items[i], b.rc < 0 ? NULL : json_object_new_object());
        rv_json_build(&b, required, NULL, b.rc < 0 ? NULL : json_object_new_string(p->inputs.items[i]));
    }
    if (b.rc < 0) {
        json_object_put(*out);
        *out = NULL;
    }
    return b.rc;
}

static const struct rv_tool_info *tool_of(const struct offer *o, const struct rv_app_loaded *l)
{
    struct rv_catalog c = rv_plugins_catalog(l->plugins);

    return c.tool(c.self, rv_str_of(o->name));
}

int app_mcp_input_schema(const struct offer *o, const struct rv_app_loaded *l, json_object **out, rv_err **err)
{
    const struct rv_tool_info *tool;
    const struct rv_pipeline *p;

    switch (o->kind) {
    case OFFER_QUERY:
        return parse(query_schema, out, err);
    case OFFER_ANSWER:
        return parse(answer_schema, out, err);
    case OFFER_PIPELINE:
        p = app_mcp_offered(l->pipeline);
        return p && p->inputs.is_set ? declared_inputs(p, out, err) : parse(run_schema, out, err);
    case OFFER_AGENT:
        return parse(run_schema, out, err);
    case OFFER_TOOL:
    case N_OFFERS:
        break;
    }
    tool = tool_of(o, l);
    if (!tool)
        return RV_FAIL(err, RV_E_NOT_FOUND, "the capability has no tool \"%s\"", o->name);
    if (!tool->input_json)
        return parse("{\"type\":\"object\"}", out, err);
    int rc = rv_json_dup(tool->input_json, out, err);
    if (rc == 0 && !json_object_object_get_ex(*out, "type", NULL)) { /* clients want to see it */
        rc = rv_json_set_text(*out, "type", "object", err);
        if (rc < 0)
            json_object_put(*out);
    }
    return rc;
}

/* --- hints --- */

struct hints {
    bool reads, destroys, repeats, is_open;
};

static struct hints hints_of_tool(const struct rv_tool_info *t)
{
    enum rv_risk risk = rv_tool_risk(t);
    enum rv_effect_class effect = rv_tool_effect(t);
    struct hints h = {.reads = risk == RV_RISK_READ_ONLY, .is_open = t->category == RV_CATEGORY_NETWORK};

    h.destroys = risk == RV_RISK_DESTRUCTIVE || risk == RV_RISK_HIGH || risk == RV_RISK_CRITICAL;
    h.repeats = effect != RV_EFFECT_NON_IDEMPOTENT;
    return h;
}

/* What no stage can do, the pipeline does not. */
static struct hints hints_of_pipeline(const struct rv_pipeline *p)
{
    bool reads = p->n_capabilities == 0 && !rv_app_has_agents(p);

    for (size_t i = 0; i < p->n_agents && reads; i++)
        reads = !p->agents[i].has_tools && !p->agents[i].inner.file[0];
    return (struct hints){.reads = reads, .destroys = !reads, .repeats = false, .is_open = true};
}

static void write_hints(struct rv_json_build *b, json_object *tool, struct hints h)
{
    json_object *list = rv_json_build(b, tool, "annotations", b->rc < 0 ? NULL : json_object_new_object());

    rv_json_build(b, list, "readOnlyHint", b->rc < 0 ? NULL : json_object_new_boolean(h.reads));
    rv_json_build(b, list, "destructiveHint", b->rc < 0 ? NULL : json_object_new_boolean(h.destroys));
    rv_json_build(b, list, "idempotentHint", b->rc < 0 ? NULL : json_object_new_boolean(h.repeats));
    rv_json_build(b, list, "openWorldHint", b->rc < 0 ? NULL : json_object_new_boolean(h.is_open));
}

/* --- the whole --- */

static int write(const struct offer *o, const struct rv_app_loaded *l, const char *description, struct hints hints,
                 json_object **out, rv_err **err)
{
    json_object *tool = json_object_new_object(), *input = NULL, *output = NULL;
    struct rv_json_build b = {err, tool ? 0 : RV_FAIL(err, RV_E_NOMEM, "describe a tool")};

    rv_json_build_text(&b, tool, "name", o->name);
    rv_json_build_text(&b, tool, "description", description);
    if (b.rc == 0)
        b.rc = app_mcp_input_schema(o, l, &input, err);
    rv_json_build(&b, tool, "inputSchema", input);
    if (b.rc == 0)
        b.rc = rv_artifact_build_schema(NULL, &output, err);
    rv_json_build(&b, tool, "outputSchema", output);
    write_hints(&b, tool, hints);
    if (o->kind != OFFER_QUERY) { /* each of the others is a run, which may take its time */
        json_object *execution = rv_json_build(&b, tool, "execution", b.rc < 0 ? NULL : json_object_new_object());
        bool needs = o->kind == OFFER_PIPELINE && app_mcp_offered(l->pipeline)->mcp.tasks == RV_MCP_TASKS_REQUIRED;
        rv_json_build_text(&b, execution, "taskSupport", needs ? "required" : "optional");
    }
    if (b.rc < 0)
        json_object_put(tool);
    else
        *out = tool;
    return b.rc;
}

/* Write it if it could run. */
static int write_loaded(const struct rv_app_mcp_at *at, const struct offer *o, struct rv_app_loaded *l,
                        json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(64 << 10);
    bool is_known = l->pipeline && !app_mcp_find_unlisted(l, NULL); /* what its servers have, a call finds out */
    int rc = is_known ? rv_app_check(l, false, err) : 0;

    if (rc < 0)
        return rc;
    const struct rv_tool_info *tool = o->kind == OFFER_TOOL && l->plugins ? tool_of(o, l) : NULL;
    if (rv_findings_n_errors(l->findings) > 0 || !l->pipeline || (o->kind == OFFER_TOOL && !tool)) {
        RV_LOG(at->app->log, WARN, "mcp.left_out", RV_F_TEXT("tool", o->name),
               RV_F_TEXT("reason", rv_findings_n(l->findings) > 0 ? rv_findings_at(l->findings, 0).text
                                                                  : "the capability does not offer this tool"));
        return 0;
    }
    if (o->kind == OFFER_PIPELINE && app_mcp_offered(l->pipeline)->mcp.kind != RV_MCP_OFFER_TOOL)
        return 0;
    if (o->kind == OFFER_AGENT) {
        const struct rv_agentdoc *doc = l->pipeline->agents[0].declared.doc;
        rv_buf_printf(&text, "Ask the agent %s.%s%s", o->target, doc && doc->description ? " " : "",
                      doc && doc->description ? doc->description : "");
        rc = rv_buf_check(&text, "the description of a tool", err);
        if (rc == 0)
            rc = write(o, l, rv_buf_cstr(&text), (struct hints){.destroys = true, .is_open = true}, out, err);
    } else if (tool) {
        rc = write(o, l, tool->description && tool->description[0] ? tool->description : o->name, hints_of_tool(tool),
                   out, err);
    } else {
        const char *said = app_mcp_offered(l->pipeline)->description;
        rv_buf_printf(&text, "Run the pipeline %s.", o->name);
        rc = rv_buf_check(&text, "the description of a tool", err);
        if (rc == 0)
            rc = write(o, l, said && said[0] ? said : rv_buf_cstr(&text),
                       hints_of_pipeline(app_mcp_offered(l->pipeline)), out, err);
    }
    rv_buf_fini(&text);
    return rc;
}

static int check_tool(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, const struct offer *o,
                      rv_err **err)
{
    struct rv_app_loaded l;
    size_t n = 0;
    int rc = app_mcp_offer_load(opts, at, o, false, &l, err);

    if (rc < 0)
        return rc;
    if (l.plugins && !tool_of(o, &l)) {
        struct rv_known_names known = rv_plugins_names(l.plugins);
        const char *const *names = known.list(known.self, RV_NAME_TOOL, &n);
        const char *near = n > 0 ? rv_nearest(rv_str_of(o->name), names, n) : NULL;
        rc = n > 0 ? RV_FAIL(err, RV_E_NOT_FOUND, "tool %s: the capability does not have it", o->target)
                   : app_findings_error(l.findings, err);
        if (near)
            rv_err_set_hint(err, "did you mean \"%s\"?", near);
    }
    rv_app_loaded_fini(&l);
    return rc;
}

int rv_app_mcp_check(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < opts->n_tools && rc == 0; i++) {
        rv_buf name = RV_BUF_INIT(4096), target = RV_BUF_INIT(4096);
        rv_buf_puts(&name, strchr(opts->tools[i], ':') + 1);
        rv_buf_puts(&target, opts->tools[i]);
        struct offer o = {.name = rv_buf_steal(&name, NULL), .kind = OFFER_TOOL, .target = rv_buf_steal(&target, NULL)};
        rc = o.name && o.target ? check_tool(opts, at, &o, err) : RV_FAIL(err, RV_E_NOMEM, "look for a tool");
        app_mcp_offer_fini(&o);
        rv_buf_fini(&name);
        rv_buf_fini(&target);
    }
    return rc;
}

/* *out NULL: it has faults, and is not offered; the log says why. */
static int describe(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, const struct offer *o,
                    json_object **out, rv_err **err)
{
    struct rv_app_loaded l;
    rv_err *why = NULL;

    *out = NULL;
    if (o->kind == OFFER_QUERY)
        return write(o, NULL,
                     "Query what reeve knows: entities by key, their relations, text search, or SQL that only reads.",
                     (struct hints){.reads = true, .repeats = true}, out, err);
    if (o->kind == OFFER_ANSWER)
        return write(o, NULL,
                     "Answer the question that a run waits with; the result is that of the run when it is over. "
                     "Only a person may decide this: ask them first.",
                     (struct hints){.destroys = true, .is_open = true}, out, err);
    int rc = app_mcp_offer_load(opts, at, o, false, &l, &why);
    if (rc == 0) {
        rc = write_loaded(at, o, &l, out, err);
        rv_app_loaded_fini(&l);
        return rc;
    }
    if (rc == RV_E_NOMEM)
        rc = RV_FAIL(err, rc, "describe a tool");
    else
        RV_LOG(at->app->log, WARN, "mcp.left_out", RV_F_TEXT("tool", o->name), RV_F_ERR("error", why));
    rv_err_free(why);
    return rc == RV_E_NOMEM ? rc : 0;
}

int app_mcp_tools_list(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, int64_t first,
                       json_object *list, bool *has_more, rv_err **err)
{
    struct offers offers;
    int rc = app_mcp_offers_list(opts, at, &offers, err);

    if (rc < 0)
        return rc;
    /* A tool with faults takes its place in the count, so that a cursor means the same as long as it has them. */
    for (int64_t i = 0, n = 0; i < (int64_t)offers.n && rc == 0; i++) {
        json_object *tool = NULL;
        rc = describe(opts, at, &offers.items[i], &tool, err);
        if (rc < 0 || !tool)
            continue;
        *has_more = n >= first + RV_MCP_PAGE;
        if (n++ < first || *has_more)
            json_object_put(tool);
        else
            rc = rv_json_push_take(list, tool, err);
        if (*has_more)
            break;
    }
    app_mcp_offers_fini(&offers);
    return rc;
}

int rv_app_mcp_add_tools(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, json_object *list,
                         rv_err **err)
{
    bool has_more = true;
    int rc = 0;

    while (has_more && rc == 0) {
        has_more = false;
        rc = app_mcp_tools_list(opts, at, (int64_t)json_object_array_length(list), list, &has_more, err);
    }
    return rc;
}
