/* Shared by the files of chat only. */
#ifndef RV_CHAT_INTERNAL_H
#define RV_CHAT_INTERNAL_H

#include "coreengine/app/turns/chat.h"
#include "coreengine/store/journal/bundle.h"

/* An agent as a pipeline, and the bundle that turns with it are started with. */
struct chat_pipeline {
    struct chat_pipeline *next;
    struct rv_pipeline *pipeline; /* owned */
    char *agent;
    char checksum[RV_HASH_MAX]; /* of the document and what was asked for beside it */
    char bundle[RV_STORE_HASH_MAX];
    int64_t routing_max_turns;
};

struct rv_chat {
    struct rv_chat_opts opts;
    char *texts[8]; /* what the context borrows */
    struct rv_context context;
    char session[RV_STORE_MAX_ID + 1];
    bool is_new; /* no turn was begun */
    bool waits;  /* the last turn does, for an answer */
    char *agent; /* that is asked for */
    char *first_agent;
    struct chat_pipeline *pipelines; /* newest first */
    struct rv_catalog under, catalog;
    /* The turn under way, or the last one. */
    const struct chat_pipeline *with;
    struct rv_conversation conversation;
    rv_journal *journal;
    rv_exec *exec;
    char run_id[RV_ID_MAX];
    rv_buf text, store_error;
    json_object *output, *chained;
    int64_t began_us;
};

struct rv_store_scope chat_scope(const rv_chat *chat);

/* pipeline.c */
/** The pipeline of that agent as its document is now. RV_E_NOT_FOUND, RV_E_INVALID. Borrowed from the chat. */
RV_MUST_CHECK int chat_pipeline_of(rv_chat *chat, const char *agent, const struct chat_pipeline **out, rv_err **err);
void chat_pipelines_free(rv_chat *chat);

/* turn.c */
struct chat_session {
    struct rv_session_row row; /* zeroed: there is none yet */
    json_object *metadata;     /* owned; an object, or NULL */
};
/** Begin a turn of that agent and wait for it. keeps: its rows become part of the session. sections: beside those of
 * the options; may be NULL. The chat has the run afterwards. */
struct chat_call {
    const struct chat_pipeline *with;
    rv_str message;
    const struct chat_session *session;
    const struct rv_routing *routing; /* NULL: none */
    const char *section;              /* one more; NULL: none */
    bool keeps;
};
RV_MUST_CHECK int chat_run(rv_chat *chat, const struct chat_call *call, rv_err **err);
void chat_end_run(rv_chat *chat); /* forget the run */

/* settle.c */
/** rv_chat_settle(), and what waits for an answer is ended, too. */
RV_MUST_CHECK int chat_give_up(rv_chat *chat, rv_err **err);

/* result.c */
RV_MUST_CHECK int chat_result(rv_chat *chat, int run_rc, rv_err *run_err, struct rv_chat_turn *out, rv_err **err);

/* route.c */
/** Which agent serves the next message of a router; *routing is its state in that turn. *out borrows from the chat. */
RV_MUST_CHECK int chat_route(rv_chat *chat, const struct rv_agentdoc *router, const struct chat_session *session,
                             rv_str message, struct rv_routing *routing, const struct chat_pipeline **out,
                             rv_err **err);
/** The routing state of a session, or where a router begins. */
void chat_routing_of(const struct chat_session *session, const char *fallback, struct rv_routing *out);

#endif
