/* A chat as its caller sees it: made, asked, freed; its session deleted; and a chat with all that it needs. */
#include "coreengine/app/chat.h"
#include "coreengine/app/app_internal.h"
#include "coreengine/app/chat/chat_internal.h"
#include "coreengine/app/work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RUNS ((size_t)10000) /* of a session, that are not over: each is ended in turn */

#define WAITS_US (RV_US_PER_MIN) /* a message, for the end of a turn of another process: most end within it */

/* --- a chat --- */

struct rv_store_scope chat_scope(const rv_chat *chat)
{
    const char *user = chat->context.user_id;

    return (struct rv_store_scope){.tenant = chat->context.tenant_id, .user = user ? user : ""};
}

/* Copies what the context borrows. */
static int copy_context(rv_chat *chat, rv_err **err)
{
    struct rv_context *c = &chat->context;
    const char **members[] = {&c->user_id,           &c->tenant_id,  &c->default_model, &c->client_id,
                              &c->user_profile_hint, &c->user_email, &c->user_name};
    static_assert(RV_COUNT(members) <= sizeof chat->texts / sizeof chat->texts[0], "each has its place");

    *c = chat->opts.context;
    if (!c->tenant_id || !c->tenant_id[0])
        c->tenant_id = RV_STORE_TENANT;
    for (size_t i = 0; i < RV_COUNT(members); i++) {
        if (!*members[i] || !(*members[i])[0]) {
            *members[i] = NULL;
            continue;
        }
        chat->texts[i] = rv_str_dup(rv_str_of(*members[i]));
        if (!chat->texts[i])
            return RV_FAIL(err, RV_E_NOMEM, "begin a chat");
        *members[i] = chat->texts[i];
    }
    c->session_id = chat->session_id;
    c->agent_schema_uri = NULL;
    return rv_context_check(c, err);
}

/* The session that was named, if it is there for that user; else it will be made with the first turn. */
static int find_session(rv_chat *chat, const char *id, char **agent, rv_err **err)
{
    struct rv_store_scope scope = chat_scope(chat);
    struct rv_session_row row = {0};
    rv_err *cause = NULL;

    chat->is_new = true;
    if (!id || !id[0]) {
        rv_uuid_make(rv_rand_system(), chat->session_id);
        return 0;
    }
    if (strlen(id) > RV_STORE_MAX_ID)
        return RV_FAIL(err, RV_E_INVALID, "a session's id has at most %d bytes", RV_STORE_MAX_ID);
    memcpy(chat->session_id, id, strlen(id) + 1);
    int rc = rv_store_get_session(chat->opts.store, &scope, id, &row, &cause);
    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0) {
        rv_err_pass(err, cause);
        return rc;
    }
    chat->is_new = row.n_messages == 0;
    if (row.agent_name && row.agent_name[0] && !(*agent = rv_str_dup(rv_str_of(row.agent_name))))
        rc = RV_FAIL(err, RV_E_NOMEM, "begin a chat");
    rv_session_row_fini(&row);
    return rc;
}

/* Which agent's text is shown and kept when agents ask each other. word NULL: as the agents say. */
static int set_child_text(rv_chat *chat, const char *word, rv_err **err)
{
    int how = word ? rv_child_text_of(rv_str_of(word)) : RV_UNSET;

    if (word && how == RV_UNSET) {
        int rc = RV_FAIL(err, RV_E_INVALID, "child_text \"%.60s\" is not a choice", word);
        rv_err_set_hint(err, "choices: child, parent, both, final");
        return rc;
    }
    chat->opts.child_text = word ? rv_child_text_text((enum rv_child_text)how) : NULL; /* static */
    return 0;
}

static int begin(rv_chat *chat, rv_err **err)
{
    const struct rv_chat_opts *o = &chat->opts;
    const struct chat_pipeline *cp = NULL;
    char *sessions_agent = NULL;

    chat->under = rv_plugins_catalog(o->plugins);
    chat->catalog = o->script ? rv_script_catalog(o->script, &chat->under) : chat->under;
    chat->text = chat->store_error = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);
    chat->message = RV_BUF_INIT(RV_STATE_MAX_BYTES);
    chat->section = RV_BUF_INIT(CHAT_MAX_SECTION);
    int rc = copy_context(chat, err);
    if (rc == 0)
        rc = set_child_text(chat, o->child_text, err);
    if (rc == 0)
        rc = find_session(chat, o->context.session_id, &sessions_agent, err);
    const char *agent = o->agent && o->agent[0] ? o->agent : sessions_agent ? sessions_agent : RV_CHAT_DEFAULT_AGENT;
    if (rc == 0) {
        chat->agent = rv_str_dup(rv_str_of(agent));
        if (!chat->agent)
            rc = RV_FAIL(err, RV_E_NOMEM, "begin a chat");
    }
    free(sessions_agent);
    return rc == 0 ? chat_pipeline_of(chat, chat->agent, &cp, err) : rc;
}

int rv_chat_new(const struct rv_chat_opts *opts, rv_chat **out, rv_err **err)
{
    rv_chat *chat = calloc(1, sizeof *chat);

    if (!chat)
        return RV_FAIL(err, RV_E_NOMEM, "begin a chat");
    chat->opts = *opts;
    json_object_get(chat->opts.request.client_tools);
    json_object_get(chat->opts.request.output_schema);
    json_object_get(chat->opts.request.attachments);
    json_object_get(chat->opts.request.metadata);
    int rc = begin(chat, err);
    if (rc < 0) {
        rv_chat_free(chat);
        return rc;
    }
    *out = chat;
    return 0;
}

void rv_chat_free(rv_chat *chat)
{
    if (!chat)
        return;
    chat_end_turn(chat);
    chat_pipelines_fini(&chat->pipelines);
    for (size_t i = 0; i < RV_COUNT(chat->texts); i++)
        free(chat->texts[i]);
    json_object_put(chat->opts.request.client_tools);
    json_object_put(chat->opts.request.output_schema);
    json_object_put(chat->opts.request.attachments);
    json_object_put(chat->opts.request.metadata);
    free(chat->agent);
    rv_buf_fini(&chat->text);
    rv_buf_fini(&chat->store_error);
    rv_buf_fini(&chat->message);
    rv_buf_fini(&chat->section);
    free(chat);
}

const char *rv_chat_session(const rv_chat *chat)
{
    return chat->session_id;
}

bool rv_chat_is_new(const rv_chat *chat)
{
    return chat->is_new;
}

const char *rv_chat_agent(const rv_chat *chat)
{
    return chat->agent;
}

int rv_chat_set_agent(rv_chat *chat, const char *name, rv_err **err)
{
    const struct chat_pipeline *cp = NULL;
    char *agent = rv_str_dup(rv_str_of(name));

    int rc = agent ? chat_pipeline_of(chat, agent, &cp, err) : RV_FAIL(err, RV_E_NOMEM, "change the agent");
    if (rc < 0) {
        free(agent);
        return rc;
    }
    free(chat->agent);
    chat->agent = agent;
    return 0;
}

/* --- a session is deleted: what still runs in it is asked to end, in the same write --- */

struct unfinished {
    char **ids; /* owned */
    size_t n, cap;
};

static int note(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct unfinished *u = self;

    if (u->n == MAX_RUNS || !rv_has_room(&u->ids, &u->cap, u->n + 1, sizeof *u->ids))
        return RV_FAIL(err, RV_E_NOMEM, "list the runs of a session");
    u->ids[u->n] = rv_str_dup(rv_str_of(row->id));
    return u->ids[u->n++] ? 0 : RV_FAIL(err, RV_E_NOMEM, "list the runs of a session");
}

static void unfinished_fini(struct unfinished *u)
{
    for (size_t i = 0; i < u->n; i++)
        free(u->ids[i]);
    free(u->ids);
    *u = (struct unfinished){0};
}

static int delete_with_runs(rv_store *store, const struct rv_store_scope *owner, const char *id, int64_t now_us,
                            struct unfinished *u, rv_err **err)
{
    /* Each has an index; both at once would read the runs of the user. */
    static const unsigned statuses[] = {1u << RV_RUN_READY | 1u << RV_RUN_RUNNING, 1u << RV_RUN_INTERRUPTED};
    int rc = rv_store_delete_session(store, owner, id, now_us, err);

    for (size_t i = 0; i < RV_COUNT(statuses) && rc == 0; i++) {
        const struct rv_run_filter filter = {.statuses = statuses[i], .session = id};
        rc = rv_store_list_runs(store, owner, &filter, note, u, err);
    }
    for (size_t i = 0; i < u->n && rc == 0; i++)
        rc = rv_store_request_cancel(store, owner, u->ids[i], now_us, err);
    return rc;
}

/* One that waits, or that no process drives, is ended by a worker. */
static void hurry(rv_store *store, const struct rv_store_scope *owner, const char *run)
{
    rv_err *err = NULL;

    if (rv_app_enqueue_cancel(store, owner, run, &err) < 0) /* the request is kept: it takes no answer any more */
        rv_err_free(err);
}

int rv_chat_delete_session(rv_store *store, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                           size_t *n_cancelled, rv_err **err)
{
    struct rv_session_row row = {0};
    struct unfinished u = {0};
    int rc = rv_store_identify_session(store, scope, id, &row, err);

    if (rc < 0)
        return rc;
    const struct rv_store_scope owner = {row.tenant, row.user};
    do {
        unfinished_fini(&u);
        rc = rv_store_begin(store, err);
        if (rc == 0)
            rc = rv_store_end(store, delete_with_runs(store, &owner, id, now_us, &u, err), err);
    } while (rc < 0 && rv_store_wait_again(store, err));
    if (rc == 0 && n_cancelled)
        *n_cancelled = u.n;
    for (size_t i = 0; i < u.n && rc == 0; i++)
        hurry(store, &owner, u.ids[i]);
    unfinished_fini(&u);
    rv_session_row_fini(&row);
    return rc;
}

/* --- with all that it needs: capabilities, script, store, agents, engine --- */

/* --- capabilities and script --- */

static bool is_open(const struct rv_app_chat *c, const char *name)
{
    for (size_t i = 0; i < c->n_capabilities; i++)
        if (strcmp(c->capabilities[i], name) == 0)
            return true;
    return false;
}

/* The agents that are always at hand, as far as they can be found. */
static int open_built_in(struct rv_app_chat *c, rv_err **err)
{
    const char *agent, *capability;
    rv_str document;
    bool none = false;

    for (size_t i = 0; i < c->n_wanted; i++)
        none = none || !c->wanted[i][0];
    int rc = rv_app_open_built_in(c->app, NULL, none ? "" : NULL, &c->loaded.plugins, err);
    if (rc == 0 && rv_plugins_agent_at(c->loaded.plugins, 0, &agent, &document, &capability))
        c->capabilities[c->n_capabilities++] = RV_APP_BUILT_IN;
    return rc;
}

static int open_capabilities(struct rv_app_chat *c, rv_err **err)
{
    c->capabilities = calloc(c->n_wanted + 1, sizeof *c->capabilities);
    int rc = c->capabilities ? open_built_in(c, err) : RV_FAIL(err, RV_E_NOMEM, "open capabilities");
    for (size_t i = 0; rc == 0 && i < c->n_wanted; i++) {
        const char *name = c->wanted[i];
        const struct rv_capability_config which = {.name = name};
        if (!name[0] || is_open(c, name))
            continue;
        rc = rv_plugins_load(c->loaded.plugins, &which, err);
        if (rc == 0)
            c->capabilities[c->n_capabilities++] = name;
    }
    return rc;
}

static int open_script(struct rv_app_chat *c, rv_err **err)
{
    if (!c->script)
        return 0;
    c->loaded.findings = rv_findings_new();
    if (!c->loaded.findings)
        return RV_FAIL(err, RV_E_NOMEM, "read a script");
    int rc = rv_script_read(c->script, c->loaded.findings, &c->loaded.script, err);
    if (rc < 0 || c->loaded.script)
        return rc;
    const struct rv_finding f = rv_findings_at(c->loaded.findings, 0);
    rc = RV_FAIL_AT(err, &f.src, RV_E_INVALID, "%s", f.text);
    if (f.hint)
        rv_err_set_hint(err, "%s", f.hint);
    return rc;
}

/* --- store, agents, engine --- */

static int open_store(struct rv_app_chat *c, rv_err **err)
{
    const struct rv_store_opts memory = {.sync = RV_STORE_SYNC_OFF};

    if (c->app->no_store)
        return rv_store_open("memory:", &memory, &c->store, err);
    int rc = rv_app_store_open(c->app, RV_APP_STORE_MAKE, &c->store, err);
    c->store_failed = rc < 0;
    return rc;
}

static int open_agents(struct rv_app_chat *c, rv_err **err)
{
    const char *dir = NULL;
    int rc = rv_app_find_schema_dir(c->app, &dir, err);
    const struct rv_agents_opts opts = {.store = c->store,
                                        .plugins = c->loaded.plugins,
                                        .dirs = &dir,
                                        .n_dirs = dir != NULL,
                                        .registers = true,
                                        .obeys_env = true,
                                        .is_unkept = c->app->no_store,
                                        .log = c->app->log};

    return rc == 0 ? rv_agents_new(&opts, &c->agents, err) : rc;
}

static int open_engine(struct rv_app_chat *c, rv_err **err)
{
    rv_owner_make_name(c->owner);
    const struct rv_engine_opts opts = {
        .log = c->app->log, .loop = c->loop, .store = c->store, .owner = c->owner, .traces = c->app->traces};

    return rv_engine_new(&opts, &c->engine, err);
}

/* --- the chat --- */

/* What is not kept is not counted. */
static int open_limits(struct rv_app_chat *c, rv_err **err)
{
    int rc = rv_app_quotas_open(c->app, &c->quotas, err);

    if (rc < 0 || !c->quotas)
        return rc;
    c->limits = calloc(1, sizeof *c->limits);
    if (!c->limits)
        return RV_FAIL(err, RV_E_NOMEM, "open a chat");
    app_limits_set(c->limits, c->quotas, c->app->scope.tenant, c->app->scope.user);
    c->opts.quotas = app_limits_exec(c->limits);
    return c->opts.quotas && c->app->no_store ? app_limits_refuse(c->limits, err) : 0;
}

int rv_app_chat_open(struct rv_app_chat *c, rv_err **err)
{
    int rc = rv_chat_settings_read(&c->settings, err);

    if (rc == 0)
        rc = open_limits(c, err);
    if (rc == 0)
        rc = open_script(c, err);
    if (rc == 0)
        rc = open_capabilities(c, err);
    if (rc == 0)
        rc = open_store(c, err);
    if (rc == 0)
        rc = open_agents(c, err);
    if (rc == 0 && !(c->pipelines = rv_chat_pipelines_new()))
        rc = RV_FAIL(err, RV_E_NOMEM, "open a chat");
    return rc == 0 ? open_engine(c, err) : rc;
}

void chat_fill_opts(const struct rv_app_chat *c, const struct rv_store_scope *scope, const char *session,
                    const char *agent, struct rv_chat_opts *opts)
{
    opts->engine = c->engine;
    opts->store = c->store;
    opts->owner = c->owner;
    opts->plugins = c->loaded.plugins;
    opts->agents = c->agents;
    opts->pipelines = c->pipelines;
    opts->script = c->loaded.script;
    opts->settings = c->settings;
    opts->agent = agent;
    opts->capabilities = c->capabilities;
    opts->n_capabilities = c->n_capabilities;
    opts->context.user_id = scope->user;
    opts->context.tenant_id = scope->tenant;
    opts->context.session_id = session;
    if (!opts->context.client_id)
        opts->context.client_id = c->app->client;
}

int rv_app_chat_enter(struct rv_app_chat *c, const char *session, const char *agent, rv_err **err)
{
    struct rv_chat_opts opts = c->opts;
    rv_chat *chat = NULL;

    if (!c->engine)
        return RV_FAIL(err, RV_E_STATE, "the chat is not open: rv_app_chat_open() opens it");
    chat_fill_opts(c, &c->app->scope, session, agent, &opts);
    opts.services = c->services.app ? &c->services.exec : rv_app_services_init(&c->services, c->app);
    opts.waits_us = WAITS_US;
    int rc = rv_chat_new(&opts, &chat, err);
    if (rc < 0)
        return rc;
    rv_chat_free(c->chat);
    c->chat = chat;
    return 0;
}

void rv_app_chat_close(struct rv_app_chat *c)
{
    struct rv_app_chat first = {.app = c->app,
                                .script = c->script,
                                .wanted = c->wanted,
                                .n_wanted = c->n_wanted,
                                .loop = c->loop,
                                .opts = c->opts,
                                .store_failed = c->store_failed};

    if (c->limits)
        first.opts.quotas = NULL; /* those of the limits */
    rv_chat_free(c->chat);
    rv_app_engine_free(&c->loaded, c->engine);
    rv_chat_pipelines_free(c->pipelines);
    rv_app_services_fini(&c->services);
    rv_agents_free(c->agents);
    rv_app_loaded_fini(&c->loaded);
    rv_store_close(c->store);
    rv_quotas_free(c->quotas);
    free(c->limits);
    free(c->capabilities);
    *c = first;
}
