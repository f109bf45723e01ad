/* One turn: a run that belongs to the session's conversation, and what comes before it: earlier turns are ended, a
 * router is asked. Each of these is a run, too. When one is over, advance() begins the next; nothing here waits but
 * wait(). */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/chat/chat_internal.h"

void chat_end_run(rv_chat *chat)
{
    rv_exec_free(chat->exec);
    chat->exec = NULL;
    rv_journal_free(chat->journal);
    chat->journal = NULL;
    rv_bundle_free(chat->bundle);
    chat->bundle = NULL;
    chat->waits = false;
    json_object_put(chat->conversation.history);
    json_object_put(chat->conversation.moments);
    chat->conversation.history = chat->conversation.moments = NULL;
    json_object_put(chat->output);
    json_object_put(chat->chained);
    chat->output = chat->chained = NULL;
}

/* --- the session --- */

static void session_fini(struct chat_session *s)
{
    json_object_put(s->metadata);
    rv_session_row_fini(&s->row);
    *s = (struct chat_session){0};
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
    return rv_store_get_session(chat->opts.store, &scope, chat->session_id, row, err);
}

/* Damaged metadata is left out: the conversation goes on without its routing, and the log says so. */
static int read_metadata(rv_chat *chat, struct chat_session *s, rv_err **err)
{
    rv_err *cause = NULL;

    int rc = rv_json_parse(s->row.metadata, NULL, &s->metadata, &cause);
    if (rc == 0 && !json_object_is_type(s->metadata, json_type_object))
        rc = RV_FAIL(&cause, RV_E_INVALID, "the metadata is not a JSON object");
    if (rc < 0) {
        json_object_put(s->metadata);
        s->metadata = NULL;
    }
    if (rc == RV_E_NOMEM)
        RV_FAIL(err, rc, "read a session");
    else if (rc < 0)
        RV_LOG(rv_engine_log(chat->opts.engine), ERROR, "store.damaged", RV_F_TEXT("kind", "session"),
               RV_F_TEXT("id", s->row.id), RV_F_ERR("error", cause));
    rv_err_free(cause);
    return rc == RV_E_NOMEM ? rc : 0;
}

/* Made now if it is not there: before anything is asked, it must be known whether its id can be had. */
static int ensure_session(rv_chat *chat, struct chat_session *out, rv_err **err)
{
    struct rv_store_scope scope = chat_scope(chat);
    const struct rv_session_row fresh = {.id = chat->session_id,
                                         .tenant = scope.tenant,
                                         .user = scope.user,
                                         .name = chat->opts.session_name,
                                         .agent_name = chat->agent,
                                         .mode = chat->opts.session_type,
                                         .created_us = rv_engine_now_us(chat->opts.engine)};

    rv_store_defer_sync(chat->opts.store, true); /* the run of the turn comes next */
    int rc = rv_store_ensure_session(chat->opts.store, &fresh, &out->row, err);
    rv_store_defer_sync(chat->opts.store, false);
    if (rc == RV_E_EXISTS)
        rv_err_set_hint(err, "leave out the session's id for a new session, or name another one");
    if (rc < 0)
        return rc;
    rc = rename_session(chat, &out->row, err);
    return rc == 0 ? read_metadata(chat, out, err) : rc;
}

/* --- the conversation --- */

/* The model of agents that name none, as tools are told it. */
static const char *default_model(const rv_chat *chat)
{
    const struct rv_context *c = &chat->context;

    return chat->opts.model   ? chat->opts.model
           : c->default_model ? c->default_model
                              : chat->opts.settings.default_model;
}

static int set_conversation(rv_chat *chat, const struct chat_call *call, rv_err **err)
{
    const struct rv_agent *a = &call->with->pipeline->agents[0];
    const struct rv_session_row *row = &chat->session.row;
    struct rv_conversation *c = &chat->conversation;
    struct rv_store_scope scope = chat_scope(chat);
    size_t n = 0, n_all = chat->opts.n_sections + (call->section != NULL); /* with too many it is refused */

    for (size_t i = 0; i < chat->opts.n_sections && n < CHAT_MAX_SECTIONS - 1; i++)
        chat->sections[n++] = chat->opts.sections[i];
    if (call->section)
        chat->sections[n] = call->section;
    *c = (struct rv_conversation){.context = rv_context_child(&chat->context, a->declared.name, default_model(chat)),
                                  .session_name = row->name,
                                  .session_metadata = chat->session.metadata,
                                  .sections = chat->sections,
                                  .n_sections = n_all,
                                  .zone_minutes = chat->opts.zone_minutes,
                                  .keeps = call->keeps,
                                  .upto_seq = row->n_messages,
                                  .history_opts = rv_chat_history_opts(&chat->opts.settings, a->declared.doc),
                                  .moment_token_threshold = chat->opts.settings.moment_token_threshold,
                                  .moment_summariser = chat->opts.settings.moment_summariser};
    if (call->routing) {
        c->has_routing = true;
        c->routing = *call->routing;
    }
    int rc = rv_chat_choose_moment_opts(&chat->opts.settings, a->declared.doc, &c->moment_opts, err);
    if (rc == 0)
        rc = rv_conversation_check(c, err);
    if (rc < 0)
        return rc;
    return rv_journal_read_history(chat->opts.store, &scope, c, &c->history, c->history_hash, err);
}

/* --- the run --- */

static int new_envelope(rv_chat *chat, bool keeps, rv_envelope **out, rv_err **err)
{
    const char *user = chat->context.user_id, *id = keeps && chat->opts.run_id ? chat->opts.run_id : "";
    struct rv_envelope_seed seed = {.raw_input = rv_buf_str(&chat->message),
                                    .user_id = rv_str_of(user ? user : ""),
                                    .session_id = rv_str_of(chat->session_id),
                                    .envelope_id = rv_str_of(id)};

    int rc = chat_request_metadata(chat, &seed.metadata, err);
    if (rc == 0)
        rc = rv_envelope_new(&seed, rv_rand_system(), chat->began_us, out, err);
    json_object_put(seed.metadata);
    if (rc == 0)
        memcpy(chat->run_id, rv_envelope_fields(*out)->envelope_id, strlen(rv_envelope_fields(*out)->envelope_id) + 1);
    return rc;
}

static void drop_journal(rv_chat *chat)
{
    rv_journal_free(chat->journal);
    chat->journal = NULL;
}

int chat_open_journal(rv_chat *chat, const struct rv_store_scope *scope, const char *run, rv_err **err)
{
    const struct rv_chat_opts *o = &chat->opts;
    int rc;

    do {
        drop_journal(chat);
        rc = rv_store_begin(o->store, err);
        if (rc < 0)
            continue;
        const struct rv_journal_claim claim = {o->owner, rv_engine_now_us(o->engine), o->lease_us};
        rc = rv_store_end(o->store, rv_journal_open(o->store, scope, run, &claim, &chat->journal, err), err);
    } while (rc < 0 && rv_store_wait_again(o->store, err));
    if (rc < 0)
        drop_journal(chat);
    return rc;
}

static int create_journal(rv_chat *chat, struct rv_journal_start *start, rv_err **err)
{
    const struct rv_chat_opts *o = &chat->opts;
    int rc;

    do {
        drop_journal(chat);
        rc = rv_store_begin(o->store, err);
        start->now_us = rv_engine_now_us(o->engine); /* the lease begins when other writers are waited for */
        if (rc == 0)
            rc = rv_store_end(o->store, rv_journal_create(o->store, start, &chat->journal, err), err);
    } while (rc < 0 && rv_store_wait_again(o->store, err));
    if (rc < 0)
        drop_journal(chat);
    return rc;
}

static int make_journal(rv_chat *chat, const struct chat_pipeline *with, const rv_envelope *env, rv_err **err)
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
                                               .is_script_blind = rv_script_is_blind(o->script),
                                               .max_parallel = RV_ENGINE_MAX_PARALLEL,
                                               .conversation = &chat->conversation}};
    int rc = 0;

    if (o->script) {
        rv_script_mark_stages(o->script, with->pipeline, scripted);
        start.begin.scripted = scripted;
        rc = rv_script_build_position(o->script, &start.begin.script_at, err);
    }
    start.now_us = rv_engine_now_us(o->engine);
    if (rc == 0 && chat->tells) /* the thread of the store writes it with the first step */
        rc = rv_journal_new(o->store, &start, &chat->journal, err);
    else if (rc == 0)
        rc = create_journal(chat, &start, err);
    json_object_put(start.begin.script_at);
    return rc;
}

static int find_agent(void *self, const struct rv_context *context, const char *name, rv_buf *text, rv_err **err)
{
    rv_chat *chat = self;
    struct rv_store_scope scope = chat_scope(chat);
    struct rv_agents_found found;

    (void)context; /* an agent that is asked acts for the same user */
    int rc = rv_agents_find(chat->opts.agents, &scope, name, &found, err);
    if (rc == 0)
        rv_buf_add_str(text, found.text);
    return rc < 0 ? rc : rv_buf_check(text, "an agent's document", err);
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    const struct rv_chat_opts *o = &((rv_chat *)self)->opts;

    o->on_event(o->self, e, line);
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    const struct rv_chat_opts *o = &((rv_chat *)self)->opts;

    return o->on_delta(o->self, from, d);
}

static void advance(rv_chat *chat, int rc, rv_err *err);

/* What went wrong is only borrowed here. */
static void on_ended(void *self, rv_exec *x, int rc, const rv_err *why)
{
    rv_buf text = RV_BUF_INIT(64 << 10);
    rv_err *err = NULL;

    (void)x;
    if (rc < 0) {
        rv_err_write_chain(why, &text);
        rc = RV_FAIL(&err, rc, "%s", rv_buf_cstr(&text));
    }
    rv_buf_fini(&text);
    advance(self, rc, err);
}

struct rv_exec_opts chat_exec_opts(rv_chat *chat)
{
    const struct rv_chat_opts *o = &chat->opts;
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;

    x.journal = chat->journal;
    if (chat->tells)
        x.observer = (struct rv_observer){.on_ended = on_ended, .self = chat};
    if (chat->step == CHAT_SETTLES)
        return x;
    x.pipeline = chat->with->pipeline;
    x.plugins = o->plugins;
    x.script = o->script;
    x.conversation = &chat->conversation;
    x.tenant = chat->context.tenant_id;
    x.quotas = o->quotas;
    x.services = o->services;
    x.find_agent = find_agent;
    x.find_self = chat;
    x.answer_from_script = o->script != NULL;
    x.observer.on_event = o->on_event ? on_event : NULL;
    x.observer.on_delta = o->on_delta ? on_delta : NULL;
    x.observer.self = chat;
    x.on_piece = o->on_piece;
    x.on_payload = o->on_payload;
    x.on_input = o->on_input;
    x.on_effect = o->on_effect;
    x.self = o->self;
    return x;
}

int chat_run(rv_chat *chat, const struct chat_call *call, rv_err **err)
{
    rv_envelope *env = NULL;

    chat_end_run(chat);
    chat->with = call->with;
    chat->began_us = rv_engine_now_us(chat->opts.engine);
    int rc = chat_take_place(chat, err);
    if (rc == 0)
        rc = set_conversation(chat, call, err);
    if (rc == 0)
        rc = new_envelope(chat, call->keeps, &env, err);
    if (rc == 0)
        rc = make_journal(chat, call->with, env, err);
    if (rc < 0) {
        rv_envelope_free(env);
        return rc;
    }
    const struct rv_exec_opts x = chat_exec_opts(chat);
    rc = rv_engine_start(chat->opts.engine, &x, env, NULL, &chat->exec, err);
    if (rc == 0 && chat->is_unwanted)
        rv_exec_cancel(chat->exec);
    return rc;
}

/* --- the turn --- */

void chat_end_turn(rv_chat *chat)
{
    chat_end_run(chat);
    chat_left_fini(chat);
    session_fini(&chat->session);
    rv_err_free(chat->err);
    chat->err = NULL;
    chat->step = CHAT_RESTS;
}

static int answer(rv_chat *chat, const struct chat_pipeline *with, rv_err **err)
{
    const struct chat_call call = {.with = with, .routing = chat->is_routed ? &chat->routing : NULL, .keeps = true};

    chat->step = CHAT_ANSWERS;
    return chat_run(chat, &call, err);
}

/* End what was left unfinished, one after the other; then the message's agent answers, or a router is asked who does.
 */
static int go_on(rv_chat *chat, rv_err **err)
{
    const struct chat_pipeline *with = NULL;

    chat->step = CHAT_SETTLES;
    int rc = chat_end_left(chat, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = ensure_session(chat, &chat->session, err);
    if (rc == 0)
        rc = chat_pipeline_of(chat, chat->agent, &with, err);
    if (rc < 0)
        return rc;
    const struct rv_agentdoc *doc = with->pipeline->agents[0].declared.doc;
    chat->is_routed = doc->routes.n > 0;
    if (!chat->is_routed)
        return answer(chat, with, err);
    chat->step = CHAT_ROUTES;
    rc = chat_route(chat, doc, &with, err);
    return rc == 0 && with ? answer(chat, with, err) : rc;
}

/* The run under way is over: begin what comes next, or tell the end of the turn. Takes err. */
static void advance(rv_chat *chat, int rc, rv_err *err)
{
    const struct chat_pipeline *with = NULL;
    rv_err *cause = err;

    err = NULL;
    switch (chat->step) {
    case CHAT_SETTLES:
        rc = chat_left_ended(chat, rc, cause, &err);
        if (rc == 0)
            rc = go_on(chat, &err);
        break;
    case CHAT_ROUTES:
        rc = chat_routed(chat, rc, cause, &with, &err);
        if (rc == 0)
            rc = answer(chat, with, &err);
        break;
    case CHAT_ANSWERS:
        if (rc == 0 && chat_ends_as_asked(chat, &rc, &cause) && rc == 0)
            return;
        rc = chat_result(chat, rc, cause, &err);
        chat->is_new = chat->is_new && rc < 0;
        chat->step = CHAT_RESTS;
        break;
    case CHAT_RESTS:
        return;
    }
    if (rc == 0 && chat->step != CHAT_RESTS)
        return;
    chat->step = CHAT_RESTS;
    chat->rc = rc;
    chat->err = err;
    chat_left_fini(chat);
    session_fini(&chat->session);
    if (chat->tells && chat->opts.on_turn)
        chat->opts.on_turn(chat->opts.self, chat, &chat->turn, chat->rc, chat->err);
}

/* --- what callers ask for --- */

static int say(rv_chat *chat, rv_str message, bool tells, rv_err **err)
{
    const struct chat_pipeline *with = NULL;

    if (chat->step != CHAT_RESTS)
        return RV_FAIL(err, RV_E_STATE, "a turn of the chat is under way");
    rv_engine_forget_cancel(chat->opts.engine); /* that was for the turn before */
    if (!rv_utf8_valid(message, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the message is not valid UTF-8");
    int rc = chat_pipeline_of(chat, chat->agent, &with, err); /* no turn is given up for an agent that is not there */
    if (rc < 0)
        return rc;
    chat_end_turn(chat);
    chat->turn = (struct rv_chat_turn){0};
    chat->tells = tells;
    chat->is_unwanted = false;
    rv_buf_clear(&chat->message);
    rv_buf_add_str(&chat->message, message);
    rc = rv_buf_check(&chat->message, "the message", err);
    if (rc == 0)
        rc = chat_find_left(chat, err);
    if (rc == 0)
        rc = go_on(chat, err);
    if (rc < 0) {
        chat->step = CHAT_RESTS;
        chat_left_fini(chat);
        session_fini(&chat->session);
    }
    return rc;
}

static int reply(rv_chat *chat, const struct rv_response *response, bool tells, rv_err **err)
{
    struct rv_store_scope scope = {.tenant = chat->context.tenant_id};

    if (!chat->waits || chat->step != CHAT_RESTS)
        return RV_FAIL(err, RV_E_STATE, "the chat waits for no answer");
    int rc = chat_take_place(chat, err); /* a message that comes to another process would give the turn up */
    if (rc < 0)
        return rc; /* it waits on, and can be answered later */
    chat->turn = (struct rv_chat_turn){0};
    chat->tells = tells;
    chat->is_unwanted = false;
    rv_exec_free(chat->exec);
    chat->exec = NULL;
    rc = chat_open_journal(chat, &scope, chat->run_id, err);
    if (rc < 0) {
        chat_left_fini(chat);
        return rc;
    }
    if (chat->opts.script) /* the replay hands it out again, from where the run began */
        rv_script_rewind(chat->opts.script);
    chat->step = CHAT_ANSWERS;
    const struct rv_exec_opts x = chat_exec_opts(chat);
    rc = rv_engine_continue(chat->opts.engine, &x, &scope, response, &chat->exec, err);
    if (rc < 0) {
        chat->step = CHAT_RESTS;
        chat_left_fini(chat);
    }
    return rc;
}

/* Drive the turn that was begun to its end. */
static int wait(rv_chat *chat, struct rv_chat_turn *out, rv_err **err)
{
    while (chat->step != CHAT_RESTS) {
        rv_err *why = NULL;
        int rc = rv_engine_wait(chat->opts.engine, chat->exec, &why);
        advance(chat, rc, why);
    }
    *out = chat->turn;
    rv_err_pass(err, chat->err);
    chat->err = NULL;
    return chat->rc;
}

int rv_chat_send(rv_chat *chat, rv_str message, json_object *attachments, struct rv_chat_turn *out, rv_err **err)
{
    json_object *own = chat->opts.request.attachments;

    *out = (struct rv_chat_turn){0};
    if (attachments)
        chat->opts.request.attachments = attachments; /* only read, and only until the turn is over */
    int rc = say(chat, message, false, err);
    rc = rc < 0 ? rc : wait(chat, out, err);
    chat->opts.request.attachments = own;
    return rc;
}

int rv_chat_answer(rv_chat *chat, const struct rv_response *response, struct rv_chat_turn *out, rv_err **err)
{
    *out = (struct rv_chat_turn){0};
    int rc = reply(chat, response, false, err);
    return rc < 0 ? rc : wait(chat, out, err);
}

int rv_chat_check_answer(const rv_chat *chat, const struct rv_response *response, rv_err **err)
{
    if (!chat->waits || chat->step != CHAT_RESTS || !chat->exec)
        return RV_FAIL(err, RV_E_STATE, "the chat waits for no answer");
    return rv_exec_check_answer(chat->exec, response, err);
}

int rv_chat_begin(rv_chat *chat, rv_str message, const struct rv_response *response, rv_err **err)
{
    return response ? reply(chat, response, true, err) : say(chat, message, true, err);
}

void rv_chat_read_on(rv_chat *chat)
{
    if (chat->exec && chat->step != CHAT_RESTS)
        rv_exec_read_on(chat->exec);
}

void rv_chat_cancel(rv_chat *chat)
{
    if (chat->step == CHAT_RESTS)
        return;
    chat->is_unwanted = true;
    if (chat->exec && chat->step != CHAT_SETTLES)
        rv_exec_cancel(chat->exec);
}
