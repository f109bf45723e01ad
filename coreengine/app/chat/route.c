/* Routing between agents: a router is asked only when no agent is active (or one has been for too long), and the agent
 * that it names serves the next turns. The state is written with each turn. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/chat/chat_internal.h"

/* The routing state of a session, or where a router begins. */
static void routing_of(const struct chat_session *session, const char *fallback, struct rv_routing *out)
{
    json_object *kept = session->metadata ? rv_json_get_obj(session->metadata, "routing") : NULL;

    *out = RV_ROUTING_INIT;
    if (kept)
        rv_routing_read_json(kept, out);
    if (strlen(fallback) < sizeof out->fallback)
        memcpy(out->fallback, fallback, strlen(fallback) + 1);
}

/* May the router lead there? */
static bool is_target(const struct rv_agentdoc *router, const char *agent, const char *fallback)
{
    for (size_t i = 0; i < router->routes.n; i++)
        if (strcmp(router->routes.items[i], agent) == 0)
            return true;
    return strcmp(agent, fallback) == 0;
}

/* The agent, if it can serve people. One that only says who should does not: that would be all they are told. */
static int serve(rv_chat *chat, const char *agent, const struct chat_pipeline **out, rv_err **err)
{
    const struct chat_pipeline *cp = NULL;

    int rc = chat_pipeline_of(chat, agent, &cp, err);
    if (rc < 0)
        return rc;
    if (cp->pipeline->agents[0].declared.doc->routes.n > 0) {
        rc = RV_FAIL(err, RV_E_INVALID, "agent \"%s\" is a router: it chooses an agent and does not answer itself",
                     agent);
        rv_err_set_hint(err, "lead to an agent that answers, and name one as `fallback` of `routing`");
        return rc;
    }
    *out = cp;
    return 0;
}

static bool may_be_routed_to(const struct chat_pipeline *cp)
{
    return cp->pipeline->agents[0].declared.doc->routing_enabled;
}

static const char *short_of(const struct rv_agentdoc *doc)
{
    return doc->short_description ? doc->short_description : doc->description;
}

/* "Agents you can choose from:" with a line for each that is there. */
static int write_choice(rv_chat *chat, const struct rv_agentdoc *router, rv_buf *out, rv_err **err)
{
    struct rv_store_scope scope = chat_scope(chat);
    struct rv_agents_found found;

    rv_buf_puts(out, "## Agents to choose from");
    for (size_t i = 0; i < router->routes.n; i++) {
        rv_err *cause = NULL;
        int rc = rv_agents_find(chat->opts.agents, &scope, router->routes.items[i], &found, &cause);
        bool no_memory = rc < 0 && rv_err_is(cause, RV_E_NOMEM);
        rv_err_free(cause); /* an agent that does not exist cannot be chosen */
        if (no_memory)
            return RV_FAIL(err, RV_E_NOMEM, "route a message");
        if (rc < 0 || !found.doc->routing_enabled || found.doc->routes.n > 0)
            continue;
        rv_str head = rv_str_trim(rv_utf8_cut(rv_str_of(short_of(found.doc)), 200));
        const char *line_end = memchr(head.ptr, '\n', head.len);
        if (line_end)
            head.len = (size_t)(line_end - head.ptr);
        rv_buf_printf(out, "\n- %s: %.*s", found.doc->name, RV_STR_ARG(head));
    }
    return rv_buf_check(out, "the choice of agents", err);
}

/* Ask the router, with the agents there are to choose from. */
static int ask(rv_chat *chat, const struct chat_pipeline **out, rv_err **err)
{
    struct chat_call call = {.with = NULL};
    rv_err *cause = NULL;

    *out = NULL;
    rv_buf_clear(&chat->section);
    int rc = chat_pipeline_of(chat, chat->agent, &call.with, err);
    if (rc == 0)
        rc = write_choice(chat, call.with->pipeline->agents[0].declared.doc, &chat->section, err);
    if (rc < 0)
        return rc;
    call.section = rv_buf_cstr(&chat->section);
    rc = chat_run(chat, &call, &cause);
    return rc < 0 ? chat_routed(chat, rc, cause, out, err) : 0;
}

static int activate(rv_chat *chat, const char *agent, const struct chat_pipeline **out, rv_err **err)
{
    const struct rv_agentdoc *router = chat->with->pipeline->agents[0].declared.doc;
    struct rv_routing *routing = &chat->routing;
    const char *to = is_target(router, agent, routing->fallback) ? agent : routing->fallback;
    rv_err *cause = NULL;

    int rc = serve(chat, to, out, &cause);
    if (rc < 0 && rc != RV_E_NOMEM && strcmp(to, routing->fallback) != 0) {
        rv_err_free(cause);
        cause = NULL;
        to = routing->fallback;
        rc = serve(chat, to, out, &cause);
    } else if (rc == 0 && !may_be_routed_to(*out) && strcmp(to, routing->fallback) != 0) {
        to = routing->fallback;
        rc = serve(chat, to, out, &cause);
    }
    if (rc < 0) {
        rc = rv_err_pass(err, cause);
        return RV_WRAP(err, rc, "route to agent \"%s\"", to);
    }
    rv_routing_activate(routing, to, (*out)->routing_max_turns);
    return 0;
}

/* The agent that the router names for this message; none when it failed or names none of its own. */
int chat_routed(rv_chat *chat, int rc, rv_err *cause, const struct chat_pipeline **out, rv_err **err)
{
    const char *output = chat->with->pipeline->agents[0].output.key, *agent = NULL;
    char name[RV_ROUTING_MAX_NAME] = "";

    if (rv_err_is(cause, RV_E_NOMEM)) { /* perhaps only for a text on top */
        rv_err_pass(err, cause);
        return RV_E_NOMEM;
    }
    rv_err_free(cause); /* a message that cannot be classified goes to the fallback */
    if (rc == 0 && rv_exec_status(chat->exec) == RV_RUN_COMPLETED) {
        json_object *named = rv_envelope_output(rv_exec_envelope(chat->exec), rv_str_of(output), NULL);
        if (named && rv_json_get_text(named, "agent", &agent) && strlen(agent) < sizeof name)
            memcpy(name, agent, strlen(agent) + 1);
    }
    return activate(chat, name, out, err);
}

int chat_route(rv_chat *chat, const struct rv_agentdoc *router, const struct chat_pipeline **out, rv_err **err)
{
    struct rv_routing *routing = &chat->routing;
    char fallback[RV_ROUTING_MAX_NAME] = RV_AGENTDOC_FALLBACK;
    rv_err *cause = NULL;

    if (router->routing_fallback && strlen(router->routing_fallback) < sizeof fallback)
        memcpy(fallback, router->routing_fallback, strlen(router->routing_fallback) + 1);
    routing_of(&chat->session, fallback, routing);
    if (routing->state == RV_ROUTING_ESCALATED)
        return serve(chat, routing->fallback, out, err);
    if (!rv_routing_needs_classification(routing) && routing->active_agent[0]) {
        int rc = serve(chat, routing->active_agent, out, &cause);
        if (rc == 0)
            rv_routing_increment(routing);
        if (rc == 0)
            return 0;
        if (rc == RV_E_NOMEM)
            return rv_err_pass(err, cause);
        rv_err_free(cause); /* the agent no longer exists: another one has to serve */
    }
    return ask(chat, out, err);
}

int rv_chat_leave(rv_chat *chat, rv_err **err)
{
    struct rv_store_scope scope = chat_scope(chat);
    struct chat_session session = {0};
    struct rv_routing routing;
    rv_buf text = RV_BUF_INIT(CHAT_MAX_SECTION);
    json_object *patch = json_object_new_object(), *state = NULL;
    rv_jw w = rv_jw_on(&text);

    int rc = patch ? rv_store_get_session(chat->opts.store, &scope, chat->session_id, &session.row, err)
                   : RV_FAIL(err, RV_E_NOMEM, "leave an agent");
    if (rc == 0)
        rc = rv_json_parse(session.row.metadata, NULL, &session.metadata, err);
    if (rc == 0) {
        routing_of(&session, RV_AGENTDOC_FALLBACK, &routing);
        rv_routing_resolve(&routing);
        rv_routing_complete(&routing);
        rv_routing_write_json(&routing, &w);
        rc = rv_json_parse(rv_buf_str(&text), NULL, &state, err);
    }
    if (rc == 0)
        rc = rv_json_set_take(patch, "routing", state, err);
    const struct rv_session_change change = {.metadata = patch, .now_us = rv_engine_now_us(chat->opts.engine)};
    if (rc == 0)
        rc = rv_store_change_session(chat->opts.store, &scope, chat->session_id, &change, err);
    json_object_put(patch);
    json_object_put(session.metadata);
    rv_session_row_fini(&session.row);
    rv_buf_fini(&text);
    return rc;
}
