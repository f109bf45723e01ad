/* One turn: a run that belongs to the session's conversation. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/turns/chat_internal.h"

#define MAX_SECTIONS 16

void chat_end_run(rv_chat *chat)
{
    rv_exec_free(chat->exec);
    chat->exec = NULL;
    rv_journal_free(chat->journal);
    chat->journal = NULL;
    chat->waits = false;
    json_object_put(chat->conversation.history);
    chat->conversation.history = NULL;
    json_object_put(chat->output);
    json_object_put(chat->chained);
    chat->output = chat->chained = NULL;
}

/* --- the session --- */

static void session_fini(struct chat_session *s)
{
    json_object_put(s->metadata);
    rv_session_row_fini(&s->row);
}

/* Whether it is asked for, and not so yet. */
static const char *differs(const char *wanted, const char *present)
{
    return wanted && wanted[0] && (!present || strcmp(present, wanted) != 0) ? wanted : NULL;
}

/* A name or a type that is asked for is the session's, be it new or not (p8-data 4.1). */
static int rename_session(rv_chat *chat, struct rv_session_row *row, rv_err **err)
{
    struct rv_store_scope scope = chat_scope(chat);
    const struct rv_session_change change = {.name = differs(chat->opts.session_name, row->name),
                                             .mode = differs(chat->opts.session_type, row->mode),
                                             .now_us = rv_engine_now_us(chat->opts.engine)};

    if (!change.name && !change.mode)
        return 0;
    int rc = rv_store_change_session(chat->opts.store, &scope, row->id, &change, err);
    if (rc < 0)
        return rc;
    rv_session_row_fini(row);
    return rv_store_get_session(chat->opts.store, &scope, chat->session, row, err);
}

/* Made now if it is not there: before anything is asked, it must be known whether its id can be had. */
static int ensure_session(rv_chat *chat, struct chat_session *out, rv_err **err)
{
    struct rv_store_scope scope = chat_scope(chat);
    const struct rv_session_row fresh = {.id = chat->session,
                                         .tenant = scope.tenant,
                                         .user = scope.user,
                                         .name = chat->opts.session_name,
                                         .agent_name = chat->agent,
                                         .mode = chat->opts.session_type,
                                         .created_us = rv_engine_now_us(chat->opts.engine)};
    rv_err *cause = NULL;

    int rc = rv_store_ensure_session(chat->opts.store, &fresh, &out->row, err);
    if (rc == RV_E_EXISTS)
        rv_err_hint(err, "leave --session out for a new session, or name another one");
    if (rc < 0)
        return rc;
    rc = rename_session(chat, &out->row, err);
    if (rc < 0)
        return rc;
    rc = rv_json_parse(out->row.metadata, NULL, &out->metadata, &cause);
    bool no_memory = rv_err_is(cause, RV_E_NOMEM);
    rv_err_free(cause);
    if (no_memory)
        return RV_FAIL(err, RV_E_NOMEM, "read a session");
    if (rc < 0 || !json_object_is_type(out->metadata, json_type_object)) { /* damaged: the conversation goes on */
        json_object_put(out->metadata);
        out->metadata = NULL;
    }
    return 0;
}

/* --- the conversation --- */

struct rv_history_opts rv_chat_history_opts(const struct rv_chat_settings *settings, const struct rv_agentdoc *doc)
{
    struct rv_history_opts o = settings->history;

    if (doc->context_token_budget != 0)
        o.max_tokens = doc->context_token_budget > 0 ? doc->context_token_budget : 0;
    if (doc->always_include_last >= 0)
        o.always_last = doc->always_include_last;
    if (doc->replay != RV_UNSET)
        o.policy = doc->replay;
    o.names_keys = rv_agentdoc_names_tool(doc, RV_LOOKUP_TOOL);
    return o;
}

/* The model of agents that name none, as tools are told it. */
static const char *default_model(const rv_chat *chat)
{
    const struct rv_context *c = &chat->context;

    return chat->opts.model   ? chat->opts.model
           : c->default_model ? c->default_model
                              : chat->opts.settings.default_model;
}

static int set_conversation(rv_chat *chat, const struct chat_call *call, const char **sections, rv_err **err)
{
    const struct rv_agent *a = &call->with->pipeline->agents[0];
    const struct rv_session_row *row = &call->session->row;
    struct rv_conversation *c = &chat->conversation;
    struct rv_store_scope scope = chat_scope(chat);
    size_t n = 0;

    for (size_t i = 0; i < chat->opts.n_sections && n < MAX_SECTIONS - 1; i++)
        sections[n++] = chat->opts.sections[i];
    if (call->section)
        sections[n++] = call->section;
    *c = (struct rv_conversation){.context = rv_context_child(&chat->context, a->declared.name, default_model(chat)),
                                  .session_name = row->name,
                                  .session_metadata = call->session->metadata,
                                  .sections = sections,
                                  .n_sections = n,
                                  .zone_minutes = chat->opts.zone_minutes,
                                  .keeps = call->keeps,
                                  .upto_seq = row->n_messages,
                                  .history_opts = rv_chat_history_opts(&chat->opts.settings, a->declared.doc)};
    if (call->routing) {
        c->has_routing = true;
        c->routing = *call->routing;
    }
    int rc = rv_conversation_check(c, err);
    if (rc < 0)
        return rc;
    return rv_journal_read_history(chat->opts.store, &scope, c, &c->history, c->history_hash, err);
}

/* --- the run --- */

static int new_envelope(rv_chat *chat, rv_str message, int64_t now_us, rv_envelope **out, rv_err **err)
{
    const char *user = chat->context.user_id;
    const struct rv_envelope_seed seed = {
        .raw_input = message, .user_id = rv_str_of(user ? user : ""), .session_id = rv_str_of(chat->session)};

    int rc = rv_envelope_new(&seed, rv_rand_system(), now_us, out, err);
    if (rc == 0)
        memcpy(chat->run_id, rv_envelope_fields(*out)->envelope_id, strlen(rv_envelope_fields(*out)->envelope_id) + 1);
    return rc;
}

static int create_journal(rv_chat *chat, const struct chat_pipeline *with, const rv_envelope *env, rv_err **err)
{
    const struct rv_chat_opts *o = &chat->opts;
    bool scripted[1] = {false};
    struct rv_journal_start start = {.tenant = chat->context.tenant_id,
                                     .bundle = with->bundle,
                                     .pipeline = with->pipeline,
                                     .env = env,
                                     .owner = o->owner,
                                     .lease_us = o->lease_us,
                                     .begin = {.mode = RV_UNSET,
                                               .has_script = o->script != NULL,
                                               .answers_from_script = o->script != NULL,
                                               .max_parallel = RV_ENGINE_MAX_PARALLEL,
                                               .conversation = &chat->conversation}};
    int rc = 0;

    if (o->script) {
        rv_script_stages(o->script, with->pipeline, scripted);
        start.begin.scripted = scripted;
        rc = rv_script_position(o->script, &start.begin.script_at, err);
    }
    if (rc == 0)
        rc = rv_store_begin(o->store, err);
    if (rc == 0) {
        start.now_us = rv_engine_now_us(o->engine); /* the lease begins when other writers are waited for */
        rc = rv_store_end(o->store, rv_journal_create(o->store, &start, &chat->journal, err), err);
    }
    json_object_put(start.begin.script_at);
    return rc;
}

static int find_agent(void *self, const struct rv_context *who, const char *name, rv_buf *text, rv_err **err)
{
    rv_chat *chat = self;
    struct rv_store_scope scope = chat_scope(chat);
    struct rv_agents_found found;

    (void)who; /* an agent that is asked acts for the same user */
    int rc = rv_agents_find(chat->opts.agents, &scope, name, &found, err);
    if (rc == 0)
        rv_buf_add_str(text, found.text);
    return rc < 0 ? rc : rv_buf_check(text, "an agent's document", err);
}

static struct rv_exec_opts exec_opts(rv_chat *chat)
{
    const struct rv_chat_opts *o = &chat->opts;
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;

    x.pipeline = chat->with->pipeline;
    x.plugins = o->plugins;
    x.script = o->script;
    x.journal = chat->journal;
    x.conversation = &chat->conversation;
    x.find_agent = find_agent;
    x.find_self = chat;
    x.answer_from_script = o->script != NULL;
    x.observer = (struct rv_observer){.on_event = o->on_event, .on_delta = o->on_delta, .self = o->self};
    x.on_piece = o->on_piece;
    x.on_payload = o->on_payload;
    x.on_input = o->on_input;
    x.on_effect = o->on_effect;
    x.self = o->self;
    return x;
}

int chat_run(rv_chat *chat, const struct chat_call *call, rv_err **err)
{
    const char *sections[MAX_SECTIONS];
    rv_envelope *env = NULL;

    chat_end_run(chat);
    chat->with = call->with;
    chat->began_us = rv_engine_now_us(chat->opts.engine);
    int rc = set_conversation(chat, call, sections, err);
    if (rc == 0)
        rc = new_envelope(chat, call->message, chat->began_us, &env, err);
    if (rc == 0)
        rc = create_journal(chat, call->with, env, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    const struct rv_exec_opts x = exec_opts(chat);
    rc = rv_engine_start(chat->opts.engine, &x, env, NULL, &chat->exec, err);
    if (rc == 0)
        rc = rv_engine_wait(chat->opts.engine, chat->exec, err);
    chat->conversation.sections = NULL; /* they were of this call */
    chat->conversation.n_sections = 0;
    return rc;
}

/* --- what callers ask for --- */

static int say(rv_chat *chat, const struct chat_session *session, rv_str message, struct rv_chat_turn *out,
               rv_err **err)
{
    struct rv_routing routing = RV_ROUTING_INIT;
    struct chat_call call = {.message = message, .session = session, .keeps = true};
    rv_err *run_err = NULL;

    int rc = chat_pipeline_of(chat, chat->agent, &call.with, err);
    if (rc < 0)
        return rc;
    const struct rv_agentdoc *doc = call.with->pipeline->agents[0].declared.doc;
    if (doc->routes.n > 0) {
        rc = chat_route(chat, doc, session, message, &routing, &call.with, err);
        if (rc < 0)
            return rc;
        call.routing = &routing;
    }
    rc = chat_run(chat, &call, &run_err);
    return chat_result(chat, rc, run_err, out, err);
}

int rv_chat_say(rv_chat *chat, rv_str message, struct rv_chat_turn *out, rv_err **err)
{
    struct chat_session session = {0};
    const struct chat_pipeline *with = NULL;

    *out = (struct rv_chat_turn){0};
    rv_engine_forget_cancel(chat->opts.engine); /* that was for the turn before */
    if (!rv_utf8_valid(message, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the message is not valid UTF-8");
    int rc = chat_pipeline_of(chat, chat->agent, &with, err); /* nothing is given up for an agent that is not there */
    if (rc == 0) {
        chat_end_run(chat);
        rc = chat_give_up(chat, err);
    }
    if (rc == 0)
        rc = ensure_session(chat, &session, err);
    if (rc == 0)
        rc = say(chat, &session, message, out, err);
    if (rc == 0)
        chat->is_new = false;
    session_fini(&session);
    return rc;
}

int rv_chat_answer(rv_chat *chat, const struct rv_response *response, struct rv_chat_turn *out, rv_err **err)
{
    struct rv_store_scope scope = {.tenant = chat->context.tenant_id};
    rv_err *run_err = NULL;

    *out = (struct rv_chat_turn){0};
    if (!chat->waits)
        return RV_FAIL(err, RV_E_STATE, "the chat waits for no answer");
    rv_exec_free(chat->exec);
    chat->exec = NULL;
    rv_journal_free(chat->journal);
    chat->journal = NULL;
    int rc = rv_store_begin(chat->opts.store, err);
    if (rc == 0) {
        rc = rv_journal_open(chat->opts.store, &scope, chat->run_id, chat->opts.owner,
                             rv_engine_now_us(chat->opts.engine), chat->opts.lease_us, &chat->journal, err);
        rc = rv_store_end(chat->opts.store, rc, err);
    }
    if (rc < 0)
        return rc;
    if (chat->opts.script) /* the replay hands it out again, from where the run began */
        rv_script_rewind(chat->opts.script);
    const struct rv_exec_opts x = exec_opts(chat);
    rc = rv_engine_continue(chat->opts.engine, &x, &scope, response, &chat->exec, &run_err);
    if (rc == 0)
        rc = rv_engine_wait(chat->opts.engine, chat->exec, &run_err);
    return chat_result(chat, rc, run_err, out, err);
}
