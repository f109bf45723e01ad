/* The part of the store for sessions: their messages, and the moments that are made of them.
 *
 * A session id is unique among the sessions of one tenant and user: other users may have a session of the same id, and
 * no user can find out. Rows may have no user: a scope with user "" sees only those, with NULL (an operator) all rows,
 * and with a name only the rows of that user. A session outside the scope is always RV_E_NOT_FOUND; an id that an
 * operator gives and that several users have is RV_E_INVALID. */
#ifndef RV_STORE_SESSIONS_H
#define RV_STORE_SESSIONS_H

#include "coreengine/conversation/conversation.h"
#include "coreengine/store/handle.h"

#define RV_SESSION_STATUSES(X)                                                                                         \
    X(ACTIVE, "active", "the conversation goes on")                                                                    \
    X(ARCHIVED, "archived", "kept to be read; a new message is taken all the same")
#define RV_SESSION_CONST(n, t, m) RV_SESSION_##n,
enum rv_session_status { RV_SESSION_STATUSES(RV_SESSION_CONST) RV_N_SESSION_STATUSES };

/* Texts are borrowed, or in the memory of `own`. */
struct rv_session_row {
    const char *id, *tenant, *user; /* user "": none */
    const char *name, *description, *agent_name, *mode;
    const char *status;               /* a word of the list above */
    int64_t total_tokens, n_messages; /* messages: also the seq of the last one */
    rv_str metadata;                  /* JSON object, in plain in every mode of encryption: the engine goes by it */
    rv_str shown_metadata;            /* of a row that was read: what a client is shown; ptr NULL: the same */
    int64_t created_us, updated_us;
    char *own; /* the texts' memory; NULL when they are borrowed */
};
void rv_session_row_fini(struct rv_session_row *row);
/** The session of that id, or a new one as `fresh` says (name NULL: "chat-<id>", mode NULL: "chat", status NULL:
 * "active"; id, tenant and user must be given). RV_E_EXISTS: the owner had one of that id and deleted it. out (may be
 * NULL) owns its texts. */
RV_MUST_CHECK int rv_store_ensure_session(rv_store *s, const struct rv_session_row *fresh, struct rv_session_row *out,
                                          rv_err **err);
/** out owns its texts: rv_session_row_fini(). RV_E_NOT_FOUND: the scope sees none of that id, or it was deleted;
 *  RV_E_INVALID: the id. */
RV_MUST_CHECK int rv_store_get_session(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                       struct rv_session_row *out, rv_err **err);
/** The same without description and metadata, so that no key is needed: whose it is, and that it is there. */
RV_MUST_CHECK int rv_store_identify_session(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                            struct rv_session_row *out, rv_err **err);
/* What it points to is borrowed for the call. */
struct rv_session_change {
    const char *name, *mode;   /* NULL: as it is */
    const char *status;        /* NULL: unchanged */
    const char *description;   /* of a session that has none; NULL: unchanged */
    json_object *metadata;     /* shallow-merged: members replace members; NULL: as it is */
    const char *const *remove; /* members of metadata that go */
    size_t n_remove;
    int64_t now_us;
};
/** RV_E_NOT_FOUND: the scope sees none of that id; RV_E_INVALID: a value of change; RV_E_LIMIT: too much metadata;
 *  nothing changed then. */
RV_MUST_CHECK int rv_store_change_session(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                          const struct rv_session_change *change, rv_err **err);
/* What it points to is borrowed for the call. */
struct rv_session_filter {
    const char *agent_name, *name_contains; /* NULL: any; ASCII case does not matter */
    const char *status;                     /* NULL: any */
    int64_t since_us;                       /* touched since */
    int64_t offset, limit;                  /* limit 0: no limit */
};
#define RV_STORE_ENOUGH 1 /* ends a walk well */
/** Last touched first. each returns 0, RV_STORE_ENOUGH, or a code that is passed on; it must not use the store. */
RV_MUST_CHECK int rv_store_list_sessions(rv_store *s, const struct rv_store_scope *scope,
                                         const struct rv_session_filter *filter,
                                         int (*each)(void *self, const struct rv_session_row *row, rv_err **err),
                                         void *self, rv_err **err);
/** Delete a session: it and its messages cannot be read any more, and its id stays taken for its owner. It cannot be
 * restored. The first sweep that finds all its runs finished deletes the messages: a run that is recovered until then
 * needs them. */
RV_MUST_CHECK int rv_store_delete_session(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                          int64_t now_us, rv_err **err);

/* The place in which a turn of a session begins: one process at a time has it. What it points to is borrowed for the
 * call. */
struct rv_turn_place {
    const char *session, *owner; /* owner: who wants it, or has it */
    int64_t now_us, until_us;    /* it is the owner's until then */
    const char *dead;            /* an owner that is known to be dead has it no more; NULL: none is */
};
/** Take it for a session of that tenant and user (scope's user NULL: none), which need not be there. *is_mine; else *by
 * says who has it, "" if that one has just left it. An owner that has it keeps it. */
RV_MUST_CHECK int rv_store_take_turn(rv_store *s, const struct rv_store_scope *scope, const struct rv_turn_place *place,
                                     bool *is_mine, char by[RV_STORE_MAX_ID + 1], rv_err **err);
/** Fine if another has it. */
RV_MUST_CHECK int rv_store_leave_turn(rv_store *s, const struct rv_store_scope *scope,
                                      const struct rv_turn_place *place, rv_err **err);

struct rv_message_filter {
    int64_t from_seq, upto_seq; /* 0: from the first, to the last */
    bool newest_first;
    bool with_children; /* also the rows of delegated agents */
    bool with_deleted;  /* also of a session that was deleted: what a run was told, for its replay */
    int64_t told_us;    /* with_deleted: also messages that were deleted after that moment */
    int64_t limit;      /* 0: no limit */
    bool for_agents;    /* an agent is told them: they are decrypted in every mode of encryption */
};
/* Borrowed for the call. */
struct rv_messages_of {
    const char *session;
    const struct rv_message_filter *filter; /* NULL: all */
};
/** Messages of a session in order of their numbers, of one state of the store. each borrows m for the
 * call, and returns 0, RV_STORE_ENOUGH, or a code that is passed on.
 *  @return RV_E_NOT_FOUND (no such session in the scope), RV_E_INVALID (id, filter), what each returned */
RV_MUST_CHECK int rv_store_read_messages(rv_store *s, const struct rv_store_scope *scope,
                                         const struct rv_messages_of *of,
                                         int (*each)(void *self, const struct rv_message *m, rv_err **err), void *self,
                                         rv_err **err);
/** Hide one message. The numbers of the others stay, and so do the session's counts of messages and of tokens, which
 * were used. Its words go with the first sweep that finds no unfinished run of the session. RV_E_NOT_FOUND: no such
 * session in the scope, or no such message. */
RV_MUST_CHECK int rv_store_delete_message(rv_store *s, const struct rv_store_scope *scope, const char *session,
                                          int64_t seq, int64_t now_us, rv_err **err);
/** Rows that no run wrote, in one transaction: the session must be there. Their seq is given here (in order), the
 *  session's tokens grow by their token_count (of rows without parent_call_id), its name and metadata change as the
 *  turn says. A row whose id the session has already is passed over, whatever else it says. token_count RV_UNSET: the
 *  estimate; created_us 0: now. Tokens, money and time may be RV_UNSET otherwise, and come back so. RV_E_LIMIT: the
 *  metadata would be longer than RV_STORE_MAX_META. */
RV_MUST_CHECK int rv_store_add_messages(rv_store *s, const struct rv_store_scope *scope, const struct rv_turn *turn,
                                        int64_t now_us, rv_err **err);

/* What a day (UTC) has of messages. */
struct rv_message_day {
    int64_t day; /* since 1970-01-01 */
    int64_t n_messages, n_sessions, n_tokens;
};
/** Days with messages up to until_us, newest first; the database counts. Of a scope with a user
 * the messages in their own sessions count, not those in sessions without an owner. day is borrowed for the call of
 * each; each as above. */
RV_MUST_CHECK int rv_store_list_message_days(rv_store *s, const struct rv_store_scope *scope, int64_t until_us,
                                             int (*each)(void *self, const struct rv_message_day *day, rv_err **err),
                                             void *self, rv_err **err);

/* --- Moments that the store itself makes: chunks of sessions (coreengine/conversation/conversation.h). A chunk follows
 * from the messages alone, so it is made in the transaction that writes them: a crash leaves both or neither, and none
 * is made twice. --- */
#define RV_SUMMARY_TASK                                                                                                \
    "summary" /* type of the tasks {"moment": ID, "agent": NAME} that a turn queues for its chunk                      \
               */

/* The chunk that is made of a session. */
struct rv_moment_build {
    const char *session; /* borrowed for the call */
    int64_t threshold;   /* tokens that the messages must have; 0: any */
    int64_t now_us;
};
/** Make a chunk of the messages that no chunk of the session covers, if their tokens are enough; one transaction. *out:
 * the row of the moment, the caller's; NULL: there was nothing to do. RV_E_NOT_FOUND: no such session in the scope. */
RV_MUST_CHECK int rv_store_build_moment(rv_store *s, const struct rv_store_scope *scope,
                                        const struct rv_moment_build *what, json_object **out, rv_err **err);
/* Which moments a turn is told. Borrowed for the call. */
struct rv_moment_notes {
    const struct rv_moment_opts *opts;
    int64_t covers_tokens; /* also chunks that are not injected, the newest that together have so many tokens, since a
                              history with that budget shows no older message; 0: none of them, RV_UNSET: as many as a
                              history refers to */
};
/** Notes of the moments of a session, as its next turn is told them. Only moments of the session's owner count, which
 * scope names (user "": none). *out is the caller's; NULL: there are none. */
RV_MUST_CHECK int rv_store_note_moments(rv_store *s, const struct rv_store_scope *scope, const char *session,
                                        const struct rv_moment_notes *want, json_object **out, rv_err **err);

#endif
