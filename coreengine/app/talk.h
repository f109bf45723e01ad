/* A chat with all that it needs: what coreengine/app/turns is given by a front. */
#ifndef RV_APP_TALK_H
#define RV_APP_TALK_H

#include "coreengine/app/app.h"
#include "coreengine/app/turns/chat.h"

/* Zero it, fill in the first part, open it, enter a session; close it in any case. Loop thread. */
struct rv_app_chat {
    const struct rv_app *app;  /* borrowed; with no_store a store in memory has the conversation */
    const char *script;        /* file that answers for models, tools and people; NULL: none */
    const char *const *wanted; /* capabilities beside the built-in one; one that is "": without that, too; borrowed */
    size_t n_wanted;
    struct rv_chat_opts opts; /* model, names, sections, callbacks; what follows and the session are filled in */
    /* filled in */
    struct rv_app_loaded loaded; /* its plugins and its script */
    const char **capabilities;   /* owned; that are open */
    size_t n_capabilities;
    rv_store *store;
    rv_agents *agents;
    rv_engine *engine;
    char owner[RV_OWNER_MAX];
    struct rv_chat_settings settings;
    rv_chat *chat;     /* rv_chat_say(), rv_chat_answer() */
    bool store_failed; /* why it could not be opened */
};
RV_MUST_CHECK int rv_app_chat_open(struct rv_app_chat *c, rv_err **err);
/** Another chat in place of the one there is: session NULL is a new one, agent as in struct rv_chat_opts. On failure
 *  nothing changed. */
RV_MUST_CHECK int rv_app_chat_enter(struct rv_app_chat *c, const char *session, const char *agent, rv_err **err);
/** {session_id, run_id, agent, status, text, ...}, appended. */
void rv_app_chat_write(const struct rv_app_chat *c, const struct rv_chat_turn *turn, rv_buf *b);
void rv_app_chat_close(struct rv_app_chat *c);

#endif
