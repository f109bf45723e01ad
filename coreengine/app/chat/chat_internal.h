/* Shared by the files of this folder. */
#ifndef RV_APP_CHAT_INTERNAL_H
#define RV_APP_CHAT_INTERNAL_H

#include "coreengine/app/chat.h"

#define CHAT_MAX_SECTIONS (RV_CONVERSATION_MAX_SECTIONS + 1) /* of a turn: a router adds its own */
#define CHAT_MAX_SECTION  ((size_t)16 << 10)                 /* bytes: a router lists agents there */
#define CHAT_MAX_LEFT     64 /* unfinished turns of a session that are looked at: one is usual */

/* An agent as a pipeline, and the bundle that turns with it are started with. */
struct chat_pipeline {
    size_t n_refs;                /* lists that it is in, of one thread */
    struct rv_pipeline *pipeline; /* owned */
    char *agent;                  /* owned */
    char checksum[RV_HASH_MAX];   /* of the document and what was asked for beside it */
    char bundle[RV_STORE_HASH_MAX];
    int64_t put_us; /* when the bundle was put into the store; 0: never */
    int64_t routing_max_turns;
};
struct chat_pipelines {
    struct chat_pipeline **items; /* owned, with a reference to each; newest first */
    size_t n, cap;
};

struct chat_session {
    struct rv_session_row row; /* zeroed: there is none yet */
    json_object *metadata;     /* owned; an object, or NULL */
};

/* Unfinished turns of the session. */
struct chat_left {
    struct chat_left_turn {
        char *id, *bundle; /* owned */
        int64_t created_us;
        bool waits, lives; /* lives: another process drives it */
    } * items;             /* oldest first; owned */
    size_t n, at;          /* at: the next one to be ended */
    size_t cap;
    int64_t now_us, patience_us;
    const char *owner; /* us; borrowed from opts */
    bool waiting;      /* those that wait are looked for */
};

/* What the run under way is for. When it is over, the chat begins what comes next. */
enum chat_step {
    CHAT_RESTS,   /* no turn is under way */
    CHAT_SETTLES, /* the run ends a turn that was left unfinished */
    CHAT_ROUTES,  /* the router names the agent of the turn */
    CHAT_ANSWERS, /* the agent answers */
};

struct rv_chat {
    struct rv_chat_opts opts;
    char *texts[8]; /* what the context borrows; owned */
    struct rv_context context;
    char session_id[RV_STORE_MAX_ID + 1];
    bool is_new;                     /* no turn was begun */
    bool waits;                      /* the last turn does, for an answer */
    char *agent;                     /* that is asked for; owned */
    struct chat_pipelines pipelines; /* newest first */
    struct rv_catalog under, catalog;
    /* The run under way, or the last one. */
    const struct chat_pipeline *with; /* borrowed from pipelines */
    struct rv_conversation conversation;
    const char *sections[CHAT_MAX_SECTIONS]; /* borrowed from opts and section */
    rv_buf section;                          /* of the router */
    rv_bundle *bundle;                       /* of a run that is ended; owned */
    rv_journal *journal;                     /* owned */
    rv_exec *exec;                           /* owned */
    char run_id[RV_ID_MAX];
    int64_t began_us;
    /* The turn under way, or the last one. */
    enum chat_step step;
    bool tells;             /* on_turn is told of its end; else its caller waits */
    bool is_busy;           /* another process has a turn of the session */
    bool is_unwanted;       /* it was cancelled: also its runs that begin later */
    int64_t place_until_us; /* the place of the turn is the chat's; 0: it is not */
    rv_buf message;
    struct chat_left left;
    struct chat_session session;
    bool is_routed;
    struct rv_routing routing;
    rv_buf text, store_error;
    char answer_id[RV_STORE_MAX_ID + 1]; /* "": no row has it */
    json_object *output, *chained;       /* owned */
    struct rv_chat_turn turn;
    int rc;      /* of a turn that failed without a result; 0: none */
    rv_err *err; /* owned */
};

struct rv_store_scope chat_scope(const rv_chat *chat);
/** What a chat has of the one that is open, for that scope. */
void chat_fill_opts(const struct rv_app_chat *c, const struct rv_store_scope *scope, const char *session,
                    const char *agent, struct rv_chat_opts *opts);

/* pipeline.c */
/** The pipeline of that agent as its document is now. RV_E_NOT_FOUND, RV_E_INVALID. Borrowed from the chat. */
RV_MUST_CHECK int chat_pipeline_of(rv_chat *chat, const char *agent, const struct chat_pipeline **out, rv_err **err);
void chat_pipelines_fini(struct chat_pipelines *list);

/* request.c */
/** May the chat's agent be asked so? RV_E_INVALID. What rv_agents_find() gave before is gone afterwards. */
RV_MUST_CHECK int chat_request_check(const rv_chat *chat, rv_err **err);
/** The tools of the client that a pipeline of that agent has; *out is the caller's, NULL: none. */
RV_MUST_CHECK int chat_request_tools(const rv_chat *chat, const struct rv_agentdoc *doc, json_object **out,
                                     rv_err **err);
/** The rest of what the request asks, as parts of that pipeline. */
void chat_request_apply(const rv_chat *chat, const struct rv_agentdoc *doc, struct rv_agent_pipeline *p);
/** What the turn's state knows of the message beside its text; *out is the caller's, NULL: nothing. */
RV_MUST_CHECK int chat_request_metadata(const rv_chat *chat, json_object **out, rv_err **err);

/* turn.c */
struct rv_exec_opts chat_exec_opts(rv_chat *chat);
/* What it points to is borrowed until the run is over. */
struct chat_call {
    const struct chat_pipeline *with;
    const struct rv_routing *routing; /* NULL: none */
    const char *section;              /* one more; borrowed until the run is over; NULL: none */
    bool keeps;                       /* its rows become part of the session */
};
/** Begin a run of that agent with the turn's message. */
RV_MUST_CHECK int chat_run(rv_chat *chat, const struct chat_call *call, rv_err **err);
/** Make the chat the owner of a run, and open its journal. RV_E_NOT_FOUND; RV_E_STATE: another process has it. */
RV_MUST_CHECK int chat_open_journal(rv_chat *chat, const struct rv_store_scope *scope, const char *run, rv_err **err);
void chat_end_run(rv_chat *chat);  /* forget the run */
void chat_end_turn(rv_chat *chat); /* and the turn */

/* settle.c */
/** Take the place in which a turn of the session begins, or keep it. RV_E_STATE: another process has it. */
RV_MUST_CHECK int chat_take_place(rv_chat *chat, rv_err **err);
/** Take it, and look for the turns of the session that have to be ended before another one begins. RV_E_STATE: another
 * process begins or drives one, and does so when the chat has waited. */
RV_MUST_CHECK int chat_find_left(rv_chat *chat, rv_err **err);
/** Begin to end the next one of them. 1: a run is under way; 0: none is left. */
RV_MUST_CHECK int chat_end_left(rv_chat *chat, rv_err **err);
/** That run is over; cause is taken. */
RV_MUST_CHECK int chat_left_ended(rv_chat *chat, int rc, rv_err *cause, rv_err **err);
/** The run of a turn that waits is given back: an answer or a request to cancel it may come by another process. Who
 * asked before that it be cancelled left that to this one, whose engine looks a few times a second. True: it is being
 * ended, or (rc < 0) cannot be. */
bool chat_ends_as_asked(rv_chat *chat, int *rc, rv_err **err);
void chat_left_fini(rv_chat *chat); /* the turn is over: its place is left */

/* result.c */
/** Fill in the result of the turn. run_err is taken. */
RV_MUST_CHECK int chat_result(rv_chat *chat, int run_rc, rv_err *run_err, rv_err **err);

/* route.c */
/** Which agent serves this message of a router; *out NULL: the router's run was begun, and says it. */
RV_MUST_CHECK int chat_route(rv_chat *chat, const struct rv_agentdoc *router, const struct chat_pipeline **out,
                             rv_err **err);
/** The router's run is over; cause is taken. */
RV_MUST_CHECK int chat_routed(rv_chat *chat, int rc, rv_err *cause, const struct chat_pipeline **out, rv_err **err);

#endif
