/* What a store remembers of conversations, for fronts: sessions searched, copied, told as a timeline; moments with a
 * session of their own; the feed of a user's days. Every call has a scope: a user sees only their own data and shared
 * data. */
#ifndef RV_APP_MEMORY_H
#define RV_APP_MEMORY_H

#include "coreengine/app/app.h"
#include "coreengine/base/hash.h"
#include "coreengine/knowledge/search.h"
#include "coreengine/store/entities.h"
#include "coreengine/store/sessions.h"

#define RV_APP_MAX_EVENTS 10000 /* of one timeline */
#define RV_APP_MAX_DAYS   366   /* of one feed */

/** The newest `limit` messages and moments of a session (1 to RV_APP_MAX_EVENTS), oldest first: an array of {event_type
 *  ("message" or "moment"), event_id, event_timestamp, name_or_type, content_or_summary, encryption_level, metadata},
 *  the caller's. A moment stands where it starts. RV_E_NOT_FOUND: no such session in the scope. */
RV_MUST_CHECK int rv_app_timeline(rv_store *store, const struct rv_store_scope *scope, const char *session,
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

#define RV_APP_MAX_GREP 10000 /* sessions that are looked through */
/** As rv_store_list_sessions(), but only sessions that have the text in their name or in the words of a message (ASCII
 *  letters in any case); offset and limit are of those that are found. Messages are read until there are enough. */
RV_MUST_CHECK int rv_app_grep_sessions(rv_store *store, const struct rv_store_scope *scope,
                                       const struct rv_session_filter *filter, const char *text,
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
RV_MUST_CHECK int rv_app_moment_session(rv_store *store, const struct rv_store_scope *scope,
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
struct rv_app_notice {          /* what a task of type `notify` says */
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
RV_MUST_CHECK int rv_app_chunk_text(rv_store *store, const struct rv_store_scope *scope, const char *moment,
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

#endif
