/* One of many chats that share an engine, a store and capabilities: with its own user, limits and services. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/app_internal.h"
#include "coreengine/app/chat/chat_internal.h"

struct rv_app_seat {
    struct rv_app app; /* of the chat that is open, for the seat's user */
    char tenant[RV_STORE_MAX_ID + 1], user[RV_STORE_MAX_ID + 1];
    struct rv_app_limits *limits; /* owned; NULL: nothing is limited */
    struct rv_app_services services;
    rv_chat *chat; /* owned */
};

static int set_scope(rv_app_seat *seat, const struct rv_store_scope *scope, rv_err **err)
{
    const char *tenant = scope->tenant ? scope->tenant : RV_STORE_TENANT, *user = scope->user ? scope->user : "";

    if (strlen(tenant) > RV_STORE_MAX_ID || strlen(user) > RV_STORE_MAX_ID)
        return RV_FAIL(err, RV_E_INVALID, "a tenant or a user has at most %d bytes", RV_STORE_MAX_ID);
    memcpy(seat->tenant, tenant, strlen(tenant) + 1);
    memcpy(seat->user, user, strlen(user) + 1);
    seat->app.scope = (struct rv_store_scope){seat->tenant, seat->user};
    return 0;
}

static int set_limits(rv_app_seat *seat, const rv_quotas *quotas, rv_err **err)
{
    if (!quotas)
        return 0;
    seat->limits = calloc(1, sizeof *seat->limits);
    if (!seat->limits)
        return RV_FAIL(err, RV_E_NOMEM, "begin a chat");
    rv_app_limits_set(seat->limits, quotas, seat->tenant, seat->user);
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

int rv_app_seat_new(struct rv_app_chat *c, const struct rv_app_seat_opts *opts, rv_app_seat **out, rv_err **err)
{
    rv_app_handles *handles = handles_of(c);
    rv_app_seat *seat = handles ? calloc(1, sizeof *seat) : NULL;
    struct rv_chat_opts chat = opts->chat;

    if (!seat)
        return RV_FAIL(err, RV_E_NOMEM, "begin a chat");
    seat->app = *c->app;
    int rc = set_scope(seat, &opts->scope, err);
    chat_fill_opts(c, &seat->app.scope, opts->session, opts->agent, &chat);
    chat.services = rv_app_services_init_shared(&seat->services, &seat->app, handles);
    if (rc == 0)
        rc = set_limits(seat, c->quotas, err);
    chat.quotas = seat->limits ? rv_app_limits_exec(seat->limits) : NULL;
    if (rc == 0)
        rc = rv_chat_new(&chat, &seat->chat, err);
    if (rc < 0) {
        free(seat->limits);
        free(seat);
        return rc;
    }
    *out = seat;
    return 0;
}

rv_chat *rv_app_seat_chat(const rv_app_seat *seat)
{
    return seat->chat;
}

void rv_app_seat_free(rv_app_seat *seat)
{
    if (!seat)
        return;
    rv_chat_free(seat->chat);
    free(seat->limits);
    free(seat);
}
