/* Chat: turns between a person and an agent, within a session.
 *
 * A turn is a run of a pipeline with one stage, `agent: NAME`, that belongs to a conversation: the turn refers to the
 * earlier messages of the conversation, and its rows are written with its last step. Turns are therefore journaled,
 * replayed, recovered and cancelled as runs are, for the command line as well as for a server.
 *
 * A front opens a struct rv_app_chat, which has all that a chat needs, and enters a session. rv_chat_send() waits for
 * the end of a turn; rv_chat_begin() does not: the loop goes on, and on_turn tells the end. Used by the engine's
 * thread. */
#ifndef RV_APP_CHAT_H
#define RV_APP_CHAT_H

#include "coreengine/app/services.h"
#include "coreengine/app/workspace.h"

typedef struct rv_chat rv_chat;

/* Defaults where neither the agent nor the caller sets a value. Texts are borrowed from the environment. */
struct rv_chat_settings {
    const char *default_model; /* P8_DEFAULT_MODEL, else "openai:gpt-4.1" */
    bool has_temperature;
    double temperature;             /* P8_DEFAULT_TEMPERATURE; else the provider's own */
    int64_t max_tokens;             /* P8_DEFAULT_MAX_TOKENS, else 4000 */
    int64_t request_limit;          /* P8_DEFAULT_REQUEST_LIMIT; 0: the engine's */
    int64_t token_limit;            /* P8_DEFAULT_TOKEN_LIMIT; 0: the engine's */
    struct rv_history_opts history; /* P8_CONTEXT_TOKEN_BUDGET, P8_ALWAYS_INCLUDE_LAST_MESSAGES, P8_REPLAY_POLICY,
                                       P8_COMPACTION */
    struct rv_moment_opts moments;  /* P8_MOMENT_MAX_INJECT, P8_MOMENT_MAX_TOKENS */
    int64_t moment_token_threshold; /* P8_MOMENT_TOKEN_THRESHOLD; 0: none are made */
    const char *moment_summariser;  /* P8_MOMENT_SUMMARISER; NULL: no agent writes summaries */
};
/** Read the options from the environment, which keeps the texts. RV_E_INVALID names the variable that cannot be read.
 */
RV_MUST_CHECK int rv_chat_settings_read(struct rv_chat_settings *out, rv_err **err);

/** Tells whether that can be the model of chats: provider:model, or a model of OpenAI. is_played: a script answers in
 * place of models, and any provider will do. RV_E_INVALID. */
RV_MUST_CHECK int rv_chat_check_model(const char *model, bool is_played, rv_err **err);

/** The part of a session that an agent sees: as its document says, else as the settings say. */
struct rv_history_opts rv_chat_history_opts(const struct rv_chat_settings *settings, const struct rv_agentdoc *doc);
/** The one part that all agents of a pipeline see: what the documents of those that take part in the session agree
 * about, else what the settings say. It names keys only where all of them can look them up. */
struct rv_history_opts rv_chat_shared_history_opts(const struct rv_chat_settings *settings,
                                                   const struct rv_pipeline *pipeline);

/** The number of the session's moments that it is told, and of their tokens, in the same way. RV_E_INVALID: the
 * document wants too many. */
RV_MUST_CHECK int rv_chat_choose_moment_opts(const struct rv_chat_settings *settings, const struct rv_agentdoc *doc,
                                             struct rv_moment_opts *out, rv_err **err);

/** Check whether a chat would take that document, with what these plugins have: unknown tools and chained tools that do
 * not fit are findings beside those of the document itself. RV_E_NOMEM. */
RV_MUST_CHECK int rv_chat_check_agent(rv_plugins *plugins, const struct rv_agents_found *found, rv_findings *findings,
                                      rv_err **err);

/* What requests of clients ask of a turn's model, over the agent's document. Zeroed: nothing. A
 * chat has references of its own to the trees; texts are borrowed, and outlive its turns. */
struct rv_chat_request {
    json_object *client_tools; /* [{name, description?, parameters?}] that the client calls itself; NULL: none */
    bool requires_tool;        /* the first reply has to call a tool */
    bool has_temperature, has_seed;
    double temperature;
    int64_t max_tokens; /* of a reply; the agent's own where that is less; 0: not given */
    int64_t seed;
    json_object *output_schema;      /* that the answer has to fit; NULL: as the document says */
    json_object *attachments;        /* of the message, as in llm.h; NULL: none */
    json_object *metadata;           /* kept with the row of the message; NULL: none */
    const char *trace, *trace_state; /* headers traceparent and tracestate of a caller that the run belongs to the trace
                                        of; NULL: none */
};
/** May these tools be brought along? RV_E_INVALID: the agent takes none, one of them (*at) is called like its own, or
 *  has parameters that are not a schema. */
RV_MUST_CHECK int rv_chat_check_client_tools(const struct rv_agentdoc *doc, json_object *tools, size_t *at,
                                             rv_err **err);

struct rv_chat_turn;
/* Agents as pipelines: chats of one thread with the same store, capabilities, settings and script share them. */
typedef struct chat_pipelines rv_chat_pipelines;
rv_chat_pipelines *rv_chat_pipelines_new(void);       /* NULL: no memory */
void rv_chat_pipelines_free(rv_chat_pipelines *list); /* after those chats */
#define RV_CHAT_DEFAULT_AGENT "general"
/* All that it points to is borrowed and outlives the chat, unless a line says that it is copied. */
struct rv_chat_opts {
    rv_engine *engine; /* borrowed, as everything below; its store and owner are these */
    rv_store *store;   /* never NULL: what is not to be kept goes to a store in memory */
    const char *owner; /* of its runs, in the store */
    rv_plugins *plugins;
    rv_agents *agents;
    rv_chat_pipelines *pipelines; /* that other chats have made, too; NULL: this one alone */
    rv_script *script;            /* NULL: none */
    struct rv_chat_settings settings;
    struct rv_context context; /* who, and which session (NULL: a new one); copied */
    const char *agent;         /* NULL: the session's, else RV_CHAT_DEFAULT_AGENT */
    const char *model;         /* "provider:model" that is asked for; NULL: the agent's */
    struct rv_chat_request request;
    const char *child_text;          /* a word of enum rv_child_text; NULL: as the agent's document says */
    const char *const *capabilities; /* that the turns' pipelines name */
    size_t n_capabilities;
    const char *const *sections; /* added to the instructions of each turn */
    size_t n_sections;
    int zone_minutes;
    const char *session_name; /* of the session, be it new or not; NULL: as it is, of a new one "chat-<id>" */
    const char *session_type; /* the session's mode; NULL: unchanged, "chat" for a new session */
    const char *run_id;       /* of the next turn's run, if no run has it; NULL or "": a new one */
    int64_t lease_us;         /* 0: the default */
    int64_t waits_us; /* rv_chat_send(): so long for the end of a turn of the session in another process; 0: not */
    const struct rv_exec_quotas *quotas;     /* of the turns' model calls; NULL: none */
    const struct rv_exec_services *services; /* as in struct rv_exec_opts */
    /* As in struct rv_exec_opts. */
    void (*on_event)(void *self, const struct rv_effect *e, rv_str line);
    bool (*on_delta)(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d);
    void (*on_piece)(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d);
    void (*on_payload)(void *self, int64_t call_id, const char *provider, rv_str body);
    void (*on_input)(void *self, const struct rv_event *ev);
    void (*on_effect)(void *self, const struct rv_effects *all, const struct rv_effect *e);
    /** The turn that rv_chat_begin() began is over, or waits for an answer. rc < 0: it failed
     * without a result, and err says why. Both are borrowed for the call, which may begin the next turn or free the
     * chat: that of a struct rv_app_chat has to be NULL then. */
    void (*on_turn)(void *self, rv_chat *chat, const struct rv_chat_turn *turn, int rc, const rv_err *err);
    void *self;
};
/** RV_E_NOT_FOUND: the user has no such session (or it is another user's), or there is no such agent; RV_E_INVALID: a
 *  session id that is not valid, an agent with faults, a child_text that does not exist. Nothing is written yet. */
RV_MUST_CHECK int rv_chat_new(const struct rv_chat_opts *opts, rv_chat **out, rv_err **err);
void rv_chat_free(rv_chat *chat);
const char *rv_chat_session(const rv_chat *chat); /* its id */
bool rv_chat_is_new(const rv_chat *chat);         /* the session has no turn yet */
const char *rv_chat_agent(const rv_chat *chat);   /* the agent of the next turn, unless routing chooses another */
/** Choose the agent from the next turn on. RV_E_NOT_FOUND, RV_E_INVALID: nothing changed. */
RV_MUST_CHECK int rv_chat_set_agent(rv_chat *chat, const char *name, rv_err **err);
/** The active agent of a routed session is left: the next message is classified. */
RV_MUST_CHECK int rv_chat_leave(rv_chat *chat, rv_err **err);

/* The result of a turn; borrowed until the next one. */
struct rv_chat_turn {
    enum rv_run_status status;
    const char *run_id;
    const char *agent; /* that answered */
    bool is_structured;
    const char *message_id;    /* of the row that keeps the answer; NULL: none */
    rv_str text;               /* what people are shown: the answer, or the output as JSON */
    json_object *output;       /* of a structured agent; NULL */
    json_object *chained;      /* what its chained tool answered; NULL */
    const char *chained_error; /* why its chained tool failed; NULL: it did not */
    const char *error;         /* why it did not complete; NULL */
    const char *code;          /* of the error: a word of enum rv_failure or of rv_code; NULL: none */
    bool is_cut_off;           /* the answer ended because it reached max_tokens */
    struct rv_usage usage;     /* with the agents that were asked */
    int64_t latency_ms;
    struct rv_interrupt interrupt; /* INTERRUPTED: what it waits for */
    bool was_kept;                 /* false: it could not be written, and store_error says why */
    const char *store_error;
};
/** One turn, until it is over or waits. A run that fails is a turn all the same. A turn of the session that waits for
 * an answer is given up first: it ends as cancelled, and what was said in it is kept. RV_E_DENIED: the session is
 * another's.
 * attachments: of this message, as in llm.h; NULL: those of the options.
 */
RV_MUST_CHECK int rv_chat_send(rv_chat *chat, rv_str message, json_object *attachments, struct rv_chat_turn *out,
                               rv_err **err);
/** Answer what the last turn waits for; it goes on. */
RV_MUST_CHECK int rv_chat_answer(rv_chat *chat, const struct rv_response *response, struct rv_chat_turn *out,
                                 rv_err **err);
/** Would rv_chat_answer() take that answer? Nothing changes. RV_E_INVALID: it does not fit the question (changed
 * arguments: the tool's schema), RV_E_TIMEOUT: it comes too late, RV_E_STATE: the chat waits for no answer. */
RV_MUST_CHECK int rv_chat_check_answer(const rv_chat *chat, const struct rv_response *response, rv_err **err);
/** The same two without waiting, with a response the second: the caller's loop drives the turn, and on_turn of the
 *  options tells its end, never before the function has returned. rv_engine_cancel_all() cancels it. RV_E_STATE: a turn
 *  is under way; else as above, as far as it is known already. A session that does not exist yet, and earlier turns
 * that have to be ended, are written on the calling thread. */
RV_MUST_CHECK int rv_chat_begin(rv_chat *chat, rv_str message, const struct rv_response *response, rv_err **err);
/** Streams of models that on_delta held go on. */
void rv_chat_read_on(rv_chat *chat);
/** End the turn under way: on_turn, or the call that waits, tells it as cancelled, and what was said is kept. Nothing
 * happens when there is none. */
void rv_chat_cancel(rv_chat *chat);
/** The run of the session's last turn that waits for an answer, which rv_chat_send() would give up; "": none does. */
RV_MUST_CHECK int rv_chat_find_waiting(rv_chat *chat, char run_id[RV_STORE_MAX_ID + 1], rv_err **err);
/** A session is deleted, and its runs that are not over are asked to cancel, in one write; how many (may be NULL).
 *  RV_E_NOT_FOUND: no such session in the scope. */
RV_MUST_CHECK int rv_chat_delete_session(rv_store *store, const struct rv_store_scope *scope, const char *id,
                                         int64_t now_us, size_t *n_cancelled, rv_err **err);

/* A chat with all that it needs. Zero it, fill in the first part, open it, enter a session; close it in any case. */
struct rv_app_chat {
    const struct rv_app *app;  /* borrowed; with no_store a store in memory has the conversation */
    const char *script;        /* file that answers for models, tools and people; NULL: none; borrowed */
    const char *const *wanted; /* capabilities beside the built-in one; one that is "": without that, too; borrowed */
    size_t n_wanted;
    struct uv_loop_s *loop; /* the caller's, for rv_chat_begin(); NULL: one of its own, for rv_chat_send(); borrowed */
    struct rv_chat_opts opts; /* model, names, sections, callbacks; what follows and the session are filled in */
    /* filled in */
    struct rv_app_loaded loaded; /* its plugins and its script */
    const char **capabilities;   /* owned; that are open */
    size_t n_capabilities;
    rv_store *store;              /* owned */
    rv_agents *agents;            /* owned */
    rv_chat_pipelines *pipelines; /* owned; of all its chats */
    rv_engine *engine;            /* owned */
    char owner[RV_OWNER_MAX];
    struct rv_chat_settings settings;
    rv_chat *chat;                /* rv_chat_send(), rv_chat_answer(); owned */
    bool store_failed;            /* why it could not be opened */
    struct rv_quotas *quotas;     /* owned; NULL: none */
    struct rv_app_limits *limits; /* of its user; owned; NULL: none */
    struct rv_app_services services;
};
/** Open what the first part names, in this order: settings, limits, script, capabilities, store, agents, engine. What
 * was opened before a failure is closed by rv_app_chat_close(). RV_E_INVALID: a setting, or a file with faults;
 *  RV_E_NOT_FOUND; what the store says (store_failed). */
RV_MUST_CHECK int rv_app_chat_open(struct rv_app_chat *c, rv_err **err);
/** Another chat in place of the one there is: session NULL is a new one, agent as in struct rv_chat_opts. On failure
 *  nothing changed. RV_E_STATE: c is not open. */
RV_MUST_CHECK int rv_app_chat_enter(struct rv_app_chat *c, const char *session, const char *agent, rv_err **err);
/** {session_id, run_id, agent, status, text, ...}, appended. */
void rv_app_chat_write(const struct rv_app_chat *c, const struct rv_chat_turn *turn, rv_buf *b);
/** Also of one that is closed, or was not opened; then it can be opened again. Not from a callback: leave its loop. */
void rv_app_chat_close(struct rv_app_chat *c);

/* One more chat with what c has open, for a front with many users: each has a chat of its own. */
typedef struct rv_app_user_chat rv_app_user_chat;
struct rv_app_user_chat_opts {
    struct rv_store_scope scope; /* for whom; copied. user NULL: no user */
    const char *session, *agent; /* as rv_app_chat_enter() takes them; borrowed for the call */
    struct rv_chat_opts chat;    /* names, model, sections, callbacks: what they point to lives as long as the chat */
};
/** As rv_app_chat_enter(). c outlives the chat. */
RV_MUST_CHECK int rv_app_user_chat_new(struct rv_app_chat *c, const struct rv_app_user_chat_opts *opts,
                                       rv_app_user_chat **out, rv_err **err);
rv_chat *rv_app_user_chat_chat(const rv_app_user_chat *user_chat);
void rv_app_user_chat_free(rv_app_user_chat *user_chat); /* NULL is fine */

#endif
