/* One of many chats that share an engine, a store and capabilities: with its own user, limits and services. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/chat/chat_internal.h"

struct rv_app_user_chat {
    struct rv_app app; /* of the chat that is open, for its user */
    char tenant[RV_STORE_MAX_ID + 1], user[RV_STORE_MAX_ID + 1];
    struct rv_app_limits *limits; /* owned; NULL: nothing is limited */
    struct rv_app_services services;
    rv_chat *chat; /* owned */
};

static int set_scope(rv_app_user_chat *user_chat, const struct rv_store_scope *scope, rv_err **err)
{
    const char *tenant = scope->tenant ? scope->tenant : RV_STORE_TENANT, *user = scope->user ? scope->user : "";

    if (strlen(tenant) > RV_STORE_MAX_ID || strlen(user) > RV_STORE_MAX_ID)
        return RV_FAIL(err, RV_E_INVALID, "a tenant or a user has at most %d bytes", RV_STORE_MAX_ID);
    memcpy(user_chat->tenant, tenant, strlen(tenant) + 1);
    memcpy(user_chat->user, user, strlen(user) + 1);
    user_chat->app.scope = (struct rv_store_scope){user_chat->tenant, user_chat->user};
    return 0;
}

static int set_limits(rv_app_user_chat *user_chat, const rv_quotas *quotas, rv_err **err)
{
    if (!quotas)
        return 0;
    user_chat->limits = calloc(1, sizeof *user_chat->limits);
    if (!user_chat->limits)
        return RV_FAIL(err, RV_E_NOMEM, "begin a chat");
    app_limits_set(user_chat->limits, quotas, user_chat->tenant, user_chat->user);
    return 0;
}

/* The handles that all chats of c use for what capabilities ask. NULL: no memory. */
static rv_app_handles *handles_of(struct rv_app_chat *c)
{
    if (!c->services.app)
        rv_app_services_init(&c->services, c->app);
    if (!c->services.handles)
        c->services.handles = rv_app_handles_new();
    return c->services.handles;
}

int rv_app_user_chat_new(struct rv_app_chat *c, const struct rv_app_user_chat_opts *opts, rv_app_user_chat **out,
                         rv_err **err)
{
    rv_app_handles *handles = handles_of(c);
    rv_app_user_chat *user_chat = handles ? calloc(1, sizeof *user_chat) : NULL;
    struct rv_chat_opts chat = opts->chat;

    if (!user_chat)
        return RV_FAIL(err, RV_E_NOMEM, "begin a chat");
    user_chat->app = *c->app;
    int rc = set_scope(user_chat, &opts->scope, err);
    chat_fill_opts(c, &user_chat->app.scope, opts->session, opts->agent, &chat);
    chat.services = rv_app_services_init_shared(&user_chat->services, &user_chat->app, handles);
    if (rc == 0)
        rc = set_limits(user_chat, c->quotas, err);
    chat.quotas = user_chat->limits ? app_limits_exec(user_chat->limits) : NULL;
    if (rc == 0)
        rc = rv_chat_new(&chat, &user_chat->chat, err);
    if (rc < 0) {
        free(user_chat->limits);
        free(user_chat);
        return rc;
    }
    *out = user_chat;
    return 0;
}

rv_chat *rv_app_user_chat_chat(const rv_app_user_chat *user_chat)
{
    return user_chat->chat;
}

void rv_app_user_chat_free(rv_app_user_chat *user_chat)
{
    if (!user_chat)
        return;
    rv_chat_free(user_chat->chat);
    free(user_chat->limits);
    free(user_chat);
}
