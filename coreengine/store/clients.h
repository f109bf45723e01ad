/* The part of the store for what clients of runs are told: streams of what happens, and webhooks at the end. */
#ifndef RV_STORE_CLIENTS_H
#define RV_STORE_CLIENTS_H

#include "coreengine/store/handle.h"

/* --- Streams that clients are sent, kept while they go on and for a while after their end: a line for each event that
 * was told (its number in the journal) and for each piece of a model's answer, in the order in which clients were told.
 * What a client is sent follows from the lines alone, so any process can go on with a stream at any place. Lines are
 * written in groups by one process at a time; coreengine/app/streams.h writes and reads them. --- */
#define RV_STREAM_MAX_ASK  300                /* bytes of the name of a request: a key of the client, or a hash */
#define RV_STREAM_MAX_PART ((size_t)64 << 20) /* bytes of one group: it is one value of a row */
#define RV_STREAM_LIVES_US RV_US_PER_DAY      /* a stream that never ended is deleted after a day */

/* Texts are borrowed, or in the memory of `own`. */
struct rv_stream_row {
    const char *id;               /* the run's id; of a further stream of the run with "~2", "~3", ... */
    const char *run;              /* which may not have begun yet */
    const char *tenant;           /* NULL: RV_STORE_TENANT */
    const char *user;             /* NULL: "" */
    const char *session;          /* NULL: "" */
    const char *ask;              /* name of the request, one for each user; "" or NULL: none */
    bool replaces;                /* a stream that has the name already loses it */
    const char *hash;             /* of what was asked for */
    const char *owner;            /* the process that writes lines */
    int64_t last_part, n_lines;   /* last_part: number of the last group; 0: there is none */
    int64_t created_us, ended_us; /* ended 0: it goes on */
    char *own;
};
void rv_stream_row_fini(struct rv_stream_row *row);
/** RV_E_EXISTS: there is a stream of that id, or one of that user with that ask. */
RV_MUST_CHECK int rv_store_add_stream(rv_store *s, const struct rv_stream_row *row, rv_err **err);
/** RV_E_NOT_FOUND. rv_stream_row_fini() it. */
RV_MUST_CHECK int rv_store_get_stream(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                      struct rv_stream_row *out, rv_err **err);
/** The stream that was made for a request of the scope's user. RV_E_NOT_FOUND. */
RV_MUST_CHECK int rv_store_find_stream(rv_store *s, const struct rv_store_scope *scope, const char *ask,
                                       struct rv_stream_row *out, rv_err **err);
/** The newest stream of a run. RV_E_NOT_FOUND. */
RV_MUST_CHECK int rv_store_find_last_stream(rv_store *s, const struct rv_store_scope *scope, const char *run,
                                            struct rv_stream_row *out, rv_err **err);
/** The newest stream of a session whose turn has begun: its run is in the store, or it has more than its first line, or
 * an end. RV_E_NOT_FOUND. */
RV_MUST_CHECK int rv_store_find_session_stream(rv_store *s, const struct rv_store_scope *scope, const char *session,
                                               struct rv_stream_row *out, rv_err **err);
/** Another process writes its lines from now on. RV_E_STATE: it has another owner than `from`, or has ended. */
RV_MUST_CHECK int rv_store_claim_stream(rv_store *s, const char *id, const char *from, const char *owner, rv_err **err);
/* Where a process goes on to write in a stream of its own. All 0: it is looked up. */
struct rv_stream_tail {
    int64_t key, n_lines;
    char tenant[RV_STORE_MAX_ID + 1];
};
/* A group of lines, each with its LF. What it points to is borrowed for the call. */
struct rv_new_stream_part {
    const char *id, *owner; /* of the stream, and who writes it */
    rv_str lines;
    int64_t n_lines, at_us;
};
/** RV_E_STATE: another process writes them, or it has ended; RV_E_NOT_FOUND. tail (may be NULL): moved behind the
 * group; after a group of writes that did not come to be it has to be 0 again. *first (may be NULL): number of the
 * first of them, from 1. */
RV_MUST_CHECK int rv_store_add_stream_part(rv_store *s, const struct rv_new_stream_part *part,
                                           struct rv_stream_tail *tail, int64_t *first, rv_err **err);
RV_MUST_CHECK int rv_store_end_stream(rv_store *s, const char *id, const char *owner, int64_t now_us, rv_err **err);
/** One whose turn did not begin: it has its first line at most. One of another owner, or that has ended, stays. */
RV_MUST_CHECK int rv_store_delete_stream(rv_store *s, const char *id, const char *owner, rv_err **err);
struct rv_stream_part {
    int64_t n, first, at_us; /* n: grows from group to group; first: number of its first line */
    rv_str lines;
};
/** The groups behind number `after`, in order; part borrowed. A code of each ends the walk. */
RV_MUST_CHECK int rv_store_read_stream(rv_store *s, const char *id, int64_t after,
                                       int (*each)(void *self, const struct rv_stream_part *part, rv_err **err),
                                       void *self, rv_err **err);
/** Delete at most max that ended before that, or are older than RV_STREAM_LIVES_US. *n: how many. */
RV_MUST_CHECK int rv_store_prune_streams(rv_store *s, int64_t before_us, int64_t now_us, int64_t max, int64_t *n,
                                         rv_err **err);

/* --- Webhooks: who is told when a run ends or waits for an answer. The task that tells it is queued by the same
 * transaction that ends the run or lets it wait: none is lost, and none is queued for what was rolled back. Its id
 * follows from the run and the record, so that a receiver knows one that comes twice. --- */
#define RV_WEBHOOK_TASK       "webhook" /* type of its tasks: {run, n, event, at, status, interrupts?} */
#define RV_WEBHOOK_PREFIX     "hook_"   /* of their ids */
#define RV_WEBHOOK_MAX        4         /* of one run: each is a request for each event */
#define RV_WEBHOOK_MAX_URL    2000      /* bytes: common servers refuse longer ones */
#define RV_WEBHOOK_MAX_SECRET 512       /* bytes: more than a key of any hash */
#define RV_WEBHOOK_RETRIES    8         /* of one delivery: with doubling waits about a day */

#define RV_WEBHOOK_ENDED       1 /* "run.ended" */
#define RV_WEBHOOK_INTERRUPTED 2 /* "run.interrupted" */

struct rv_webhook {
    const char *url, *secret; /* of the row: owned by `own` */
    int64_t events;           /* bits */
    char *own;                /* NULL when the texts are borrowed */
};
void rv_webhook_fini(struct rv_webhook *w);
/** The n-th of a run, from 0: set when the run is made, in its group. RV_E_NOT_FOUND (no such run), RV_E_INVALID,
 *  RV_E_EXISTS. */
RV_MUST_CHECK int rv_store_add_webhook(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t n,
                                       const struct rv_webhook *hook, rv_err **err);
/** RV_E_NOT_FOUND: the run is gone, or has none of that number. out owns its texts. */
RV_MUST_CHECK int rv_store_get_webhook(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t n,
                                       struct rv_webhook *out, rv_err **err);

#endif
