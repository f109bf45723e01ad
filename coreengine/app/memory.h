/* What a store remembers of conversations, for fronts: sessions searched, copied, told as a timeline; moments with a
 * session of their own; the feed of a user's days. Every call has a scope: a user sees only their own data and shared
 * data. */
#ifndef RV_APP_MEMORY_H
#define RV_APP_MEMORY_H

#include "coreengine/app/workspace.h"
#include "coreengine/base/base.h"
#include "coreengine/knowledge/knowledge.h"
#include "coreengine/store/store.h"

#define RV_APP_MAX_EVENTS 10000 /* of one timeline: they are sorted in memory */
#define RV_APP_MAX_DAYS   366   /* of one feed: a year */

/** The newest `limit` messages and moments of a session (1 to RV_APP_MAX_EVENTS), oldest first: an array of {event_type
 *  ("message" or "moment"), event_id, event_timestamp, name_or_type, content_or_summary, encryption_level, metadata},
 *  the caller's. A moment stands where it starts. RV_E_NOT_FOUND: no such session in the scope. */
RV_MUST_CHECK int rv_app_build_timeline(rv_store *store, const struct rv_store_scope *scope, const char *session,
                                        int64_t limit, json_object **out, rv_err **err);

/* What it points to is borrowed for the call. */
struct rv_app_clone {
    const char *session;  /* that is copied */
    const char *id;       /* of the copy; NULL: random */
    const char *user;     /* owner of the copy; NULL: the same. Only an operator gives a session to another user */
    const char *agent;    /* of the copy; NULL: the same */
    int64_t max_messages; /* the first ones; 0: all */
    int64_t now_us;
    struct rv_rand rand; /* for ids */
};
/** Copy a session: the name gets " (clone)", the metadata cloned_from, messages new ids. Rows of asked agents are not
 *  copied, nor are moments. One transaction. id: room for RV_STORE_MAX_ID + 1 bytes. RV_E_NOT_FOUND; RV_E_EXISTS: the
 *  id is taken; RV_E_DENIED; RV_E_LIMIT: more than 64 MiB of words. */
RV_MUST_CHECK int rv_app_clone_session(rv_store *store, const struct rv_store_scope *scope,
                                       const struct rv_app_clone *opts, char *id, int64_t *n_messages, rv_err **err);

/** Who may act for all users sees their sessions, too; a turn or a run in one of them would begin another session of
 * that id. RV_E_STATE: the session is of a user; RV_E_INVALID: so are several. A scope with a user is fine. */
RV_MUST_CHECK int rv_app_check_session_owner(rv_store *store, const struct rv_store_scope *scope, const char *session,
                                             rv_err **err);

/* What it points to is borrowed for the call. */
struct rv_app_session_search {
    const char *name;  /* part of the name, in any case of ASCII letters; NULL: any */
    const char *agent; /* NULL: any */
    const char *const *tags;
    size_t n_tags;      /* all of them */
    int64_t since_us;   /* touched since; 0: any */
    int64_t page, size; /* page from 1; size 1 to 100 */
    const char *query;  /* what they are about; NULL, "": anything. Of all that fits the rest */
    const struct rv_knowledge_embedder *embedder; /* of the query, as struct rv_knowledge_search has it */
};
/** {results: [{session's columns, message_count, similarity}], page, size, total}, newest first; the caller's.
 *  With a query those whose name has that text, and those whose description or moments are like it, by vectors and by
 *  words: the lists are fused by reciprocal rank, best first. similarity is then the best cosine, else null.
 *  RV_E_INVALID: the page; RV_E_LIMIT: a long query; RV_E_NOMEM; RV_E_IO */
RV_MUST_CHECK int rv_app_search_sessions(rv_store *store, const struct rv_store_scope *scope,
                                         const struct rv_app_session_search *search, json_object **out, rv_err **err);

#define RV_APP_MAX_GREP 10000 /* sessions that are looked through: each is read */
/* Sessions in which a text is looked for. What it points to is borrowed for the call. */
struct rv_session_grep {
    const struct rv_session_filter *filter; /* offset and limit are of those that are found */
    const char *text;
};
/** As rv_store_list_sessions(), but only sessions that have the text in their name or in the words of a message (ASCII
 *  letters in any case). Messages are read until there are enough. */
RV_MUST_CHECK int rv_app_grep_sessions(rv_store *store, const struct rv_store_scope *scope,
                                       const struct rv_session_grep *grep,
                                       int (*each)(void *self, const struct rv_session_row *row, rv_err **err),
                                       void *self, rv_err **err);

/* What it points to is borrowed for the call. */
struct rv_app_moment_session {
    json_object *moment; /* columns of the moment: name and moment_type are needed; borrowed */
    const char *session; /* that it belongs to, made if it is not there; NULL: the one that the moment of this name has,
                         else a new one */
    const char *description; /* of a session without one; NULL: the summary */
    int64_t now_us;
    struct rv_rand rand;
};
/** Write a moment and make sure that it has a session: a new one is named after it and has its type as mode, one that
 * is there gets it in its metadata (uploads, resource_keys, latest_moment_id, latest_summary). One transaction, or part
 * of the caller's. *out: the row of the moment, the caller's. session: room for RV_STORE_MAX_ID + 1 bytes. */
RV_MUST_CHECK int rv_app_put_moment(rv_store *store, const struct rv_store_scope *scope,
                                    const struct rv_app_moment_session *opts, char *session, json_object **out,
                                    rv_err **err);

/* What it points to is borrowed for the call. */
struct rv_app_feed {
    const char *before_date; /* "YYYY-MM-DD": this day and earlier ones; NULL: all */
    int64_t days;            /* with anything in them, 1 to RV_APP_MAX_DAYS */
    bool include_future;     /* moments that have not started yet; reminders always are in it */
    int64_t now_us;
};
/** Days of a user (UTC), newest first: an array with a daily_summary of each day and the day's moments behind it, but
 * no chunks of sessions; the caller's. */
RV_MUST_CHECK int rv_app_feed(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_feed *opts,
                              json_object **out, rv_err **err);

#define RV_NOTIFY_TASK "notify" /* type of tasks that tell users something */
struct rv_app_notice {          /* what a task of type `notify` says; borrowed for the call */
    const char *key;            /* of the notice: its message is written once; a task's id */
    const char *title, *body;
    json_object *data; /* an object for the metadata of a notification; borrowed; NULL: none */
    int64_t now_us;
    struct rv_rand rand;
};
/** Tell the scope's user something: their reminder of that title happens now, or, where there is none, a moment of type
 *  notification is written; and its session gets a message. One transaction. moment, session: room for
 *  RV_STORE_MAX_ID + 1 bytes each. */
RV_MUST_CHECK int rv_app_notify(rv_store *store, const struct rv_store_scope *scope, const struct rv_app_notice *notice,
                                char *moment, char *session, rv_err **err);

/* --- summaries of chunks by an agent --- */
/** Append what an agent is told of a chunk: its messages, oldest first, long ones shortened so that all fit. hash: of
 *  that text. Nothing is appended when no message has words. RV_E_NOT_FOUND: the scope has no such chunk, or its
 *  session is gone. */
RV_MUST_CHECK int rv_app_read_chunk(rv_store *store, const struct rv_store_scope *scope, const char *moment,
                                    rv_buf *out, char hash[RV_HASH_MAX], rv_err **err);
/* What it points to is borrowed for the call. */
struct rv_app_summary {
    const char *moment;      /* id of the chunk */
    const char *agent, *run; /* who wrote it */
    char hash[RV_HASH_MAX];  /* of the text that it is the summary of */
    int64_t now_us;
};
/** In the caller's transaction: these words, at most RV_CHUNK_MAX_SUMMARY code points of them, become the summary of
 * the chunk, and of its session if the chunk is its newest moment. RV_E_STATE: the messages changed since;
 * RV_E_NOT_FOUND as above. */
RV_MUST_CHECK int rv_app_put_summary(rv_store *store, const struct rv_store_scope *scope,
                                     const struct rv_app_summary *opts, rv_str words, rv_err **err);

/* --- Dreaming: looking back over what a user did lately, while no one waits. Phase 1 makes chunks of the user's
 * sessions (coreengine/store/sessions.h), without a model. Phase 2 tells a dreamer, a declared agent, what is new; it
 * answers with moments and what they are connected with, which its chained tool keeps.
 *
 * One dreaming is one run of a pipeline of one dreamer, for one user and one day, and its id follows from these. So a
 * day is dreamt once, however often it is asked for; and a process that dies leaves a run that the next one goes on
 * with. --- */
#define RV_DREAM_TASK       "dreaming"       /* type of its tasks */
#define RV_DREAM_AGENT      "dreaming-agent" /* where the tenant names none */
#define RV_DREAM_MODE       "dreaming"       /* of the sessions in which dreamers work */
#define RV_DREAM_DAYS       1                /* that are looked back over */
#define RV_DREAM_MAX_DAYS   366              /* a year: all its rows are read from the store */
#define RV_DREAM_TOKENS     38400            /* of what a dreamer is told: 30 % of a window of 128,000 */
#define RV_DREAM_THRESHOLD  6000             /* tokens of a session that no chunk covers, for a new one */
#define RV_DREAM_SESSIONS   10               /* last touched, that get chunks */
#define RV_DREAM_MAX_AGENTS 16               /* dreamers of a tenant: each asks a model */

/* --- what there is to dream about --- */
struct rv_dream_chunks {
    int64_t n_checked, n_built;
};
/** Phase 1: chunks of the sessions that the user touched last, each one transaction. A chunk of a session with uploads
 *  says what they begin with. RV_E_INVALID: the scope names no user. */
RV_MUST_CHECK int rv_app_dream_make_chunks(rv_store *store, const struct rv_store_scope *scope, int64_t now_us,
                                           struct rv_dream_chunks *out, rv_err **err);
struct rv_dream_context {
    int64_t since_us;
    int64_t n_moments, n_sessions, n_files; /* that are in the text */
    int64_t tokens;                         /* of the text, estimated */
    rv_buf text;                            /* for the dreamer; empty: nothing happened */
};
/* The part of a user's past that a dream is told. */
struct rv_dream_window {
    int64_t days;       /* that are looked back */
    int64_t max_tokens; /* of the text */
    int64_t now_us;
};
/** Phase 2: what the user did in the last days: moments, conversations, files. Each section is whole or left out, so
 *  that all are within max_tokens. Fini with rv_buf_fini(&out->text). */
RV_MUST_CHECK int rv_app_dream_build_context(rv_store *store, const struct rv_store_scope *scope,
                                             const struct rv_dream_window *window, struct rv_dream_context *out,
                                             rv_err **err);

/* --- one dreaming --- */
/* What it points to is borrowed for the call. */
struct rv_app_dream {
    const char *agent;  /* the dreamer; NULL: RV_DREAM_AGENT */
    const char *script; /* file that answers for its models; NULL: none */
    const char *salt;   /* makes it another dreaming of the same day; NULL: it is the day's */
    int64_t day_us;     /* a time of the day (UTC) that it stands for */
    int64_t days;       /* that are looked back over; 0: RV_DREAM_DAYS */
    bool again;         /* another one, when the day was dreamt */
};
/** The dreamers of the scope's tenant: metadata.dreamer_agents of its row in `tenants`, else RV_DREAM_AGENT. *out: an
 *  array of texts, the caller's. RV_E_INVALID: the row has something else there. */
RV_MUST_CHECK int rv_app_dream_find_agents(rv_store *store, const struct rv_store_scope *scope, json_object **out,
                                           rv_err **err);
/** Append the pipeline of a dreamer. RV_E_INVALID: that is not the name of an agent. */
RV_MUST_CHECK int rv_app_dream_write_pipeline(const char *agent, rv_buf *out, rv_err **err);
struct rv_app_dreamt {
    char run[RV_STORE_MAX_ID + 1];
    bool is_old;               /* it was completed before */
    enum rv_run_status status; /* of the run */
    rv_buf result; /* {status, run, agent, io_tokens, phase1, phase2}; fini it. status: "ok", or why the run ended */
};
/** Dream, or say what an earlier call has come to: drives the run until it is over. app: its scope names the user. A
 *  run that fails is a success of this call. RV_E_STATE: another process is at it; RV_E_QUOTA; what rv_app_load() and
 *  rv_app_run_keep() say. Thread: blocks the caller. */
RV_MUST_CHECK int rv_app_dream(const struct rv_app *app, const struct rv_app_dream *dream, struct rv_app_dreamt *out,
                               rv_err **err);

/* --- queued --- */
struct rv_dream_queued {
    int64_t n_new, n_old; /* tasks that were added, and that were in the queue already */
};
/** Add a task for each dreamer of the scope's user; user NULL: of each user who did something in the last days. */
RV_MUST_CHECK int rv_app_dream_enqueue(rv_store *store, const struct rv_store_scope *scope,
                                       const struct rv_app_dream *dream, int64_t now_us, struct rv_dream_queued *out,
                                       rv_err **err);

#endif
