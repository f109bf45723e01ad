/* The part of the store for users and tenants: the keys with which they call, and what they have used of their quotas.
 */
#ifndef RV_STORE_USERS_H
#define RV_STORE_USERS_H

#include "coreengine/store/handle.h"

/* --- API keys, and the logins of the page that were exchanged for one. Neither has its secret here: a key has the
 * SHA-256 of its secret, a login is found by the SHA-256 of its cookie. coreengine/identity makes both and decides what
 * they open.
 *
 * Calls of requests (get, find a login) are for all tenants, since the key itself says whose it is; calls of people
 * (list, revoke) see what is in their scope. --- */
#define RV_API_KEY_MAX_TEXT   1000 /* bytes of a note, or of all scopes: lists of keys show them */
#define RV_API_KEY_MAX_LOGINS 100  /* of one key at a time; the oldest ends when another one begins */

/* Texts are borrowed, or in the memory of `own`. */
struct rv_api_key_row {
    const char *id;              /* public: 16 lower-case hex digits */
    const char *hash;            /* SHA-256 of the secret as lower-case hex */
    const char *level;           /* "master", "tenant" or "user" */
    const char *tenant;          /* NULL: RV_STORE_TENANT */
    const char *user;            /* "": none; of level "user" never */
    const char *scopes;          /* words with one blank between them */
    const char *note;            /* for people; "" */
    int64_t created_us;          /* of this and the next ones, 0: not */
    int64_t expires_us, used_us; /* used: the last time, some minutes old at most */
    int64_t revoked_us;
    char *own; /* the texts' memory; NULL when they are borrowed */
};
void rv_api_key_row_fini(struct rv_api_key_row *row);

/** Add a key: id to expires_us of row. RV_E_EXISTS: the id is taken; RV_E_INVALID, RV_E_LIMIT: an argument. */
RV_MUST_CHECK int rv_store_add_api_key(rv_store *s, const struct rv_api_key_row *row, rv_err **err);
/** The key with that id, also one that is revoked or expired. RV_E_NOT_FOUND. out owns its texts. */
RV_MUST_CHECK int rv_store_get_api_key(rv_store *s, const char *id, struct rv_api_key_row *out, rv_err **err);
/* Which keys of a scope are listed. */
struct rv_api_key_filter {
    bool all; /* also those that are revoked or expired at now_us */
    int64_t now_us;
};
/** Keys of the scope, newest first. Rows are borrowed for the call of each; each as rv_store_list_runs(). */
RV_MUST_CHECK int rv_store_list_api_keys(rv_store *s, const struct rv_store_scope *scope,
                                         const struct rv_api_key_filter *filter,
                                         int (*each)(void *self, const struct rv_api_key_row *row, rv_err **err),
                                         void *self, rv_err **err);
/** Whether there is a key, of any tenant, that is not revoked and not expired. */
RV_MUST_CHECK int rv_store_has_api_keys(rv_store *s, int64_t now_us, bool *has, rv_err **err);
/** From now on the key is refused, and its logins end. A key that is revoked already stays as it is. RV_E_NOT_FOUND
 * also for one outside of the scope. */
RV_MUST_CHECK int rv_store_revoke_api_key(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                          int64_t now_us, rv_err **err);
/** Note that it was used, unless that was noted after now_us - RV_API_KEY_USED_US. */
RV_MUST_CHECK int rv_store_note_api_key(rv_store *s, const char *id, int64_t now_us, rv_err **err);
/* five minutes: a write for each request would cost more than the request */
#define RV_API_KEY_USED_US (5 * RV_US_PER_MIN)

/* --- Logins --- */
/** hash: SHA-256 of the cookie as lower-case hex. RV_E_NOT_FOUND: there is no such key, or it is revoked. */
RV_MUST_CHECK int rv_store_add_login(rv_store *s, const char *hash, const char *key, int64_t now_us, int64_t expires_us,
                                     rv_err **err);
/** The key of the login, also one that is revoked or expired. RV_E_NOT_FOUND: there is no such login, or it has expired
 * at now_us. out owns its texts. */
RV_MUST_CHECK int rv_store_find_login(rv_store *s, const char *hash, int64_t now_us, struct rv_api_key_row *out,
                                      rv_err **err);
/** Log out; nothing happens when there is no such login. */
RV_MUST_CHECK int rv_store_delete_login(rv_store *s, const char *hash, rv_err **err);
/** Forget logins that expired before now_us, and keys that were revoked or expired before before_us. *n (may be NULL):
 * how many keys. */
RV_MUST_CHECK int rv_store_prune_api_keys(rv_store *s, int64_t before_us, int64_t now_us, int64_t *n, rv_err **err);

/* --- What users and tenants have used of their quotas, and how often they did something of late. Limits are the
 * caller's; the store counts, and says yes or no.
 *
 * A quota is an amount of a calendar period in UTC: tokens a day, runs a month. Its counter belongs to the period, so a
 * new period begins with nothing used. A rate is a number of times in a window that moves with the clock: model calls
 * in the last 60 seconds, counted in tenths of the window.
 *
 * What a call will use is reserved before it, and settled afterwards with what it used. The check and the reservation
 * are one statement for each counter, and all counters of a call are one transaction: however many processes ask, no
 * limit is passed. A reservation belongs to a run, its fence and a call: it is settled once. The next owner of a run
 * turns what its earlier owners left into use, since those calls may have been made. --- */
/* What is counted: constant, word, singular, plural. */
#define RV_QUOTA_KINDS(X)                                                                                              \
    X(TOKENS, "tokens", "token", "tokens")                                                                             \
    X(COST, "cost_usd", "dollar", "dollars")                                                                           \
    X(MODEL_CALLS, "model_calls", "model call", "model calls")                                                         \
    X(RUNS, "runs", "run", "runs")                                                                                     \
    X(TASKS, "tasks", "task", "tasks")                                                                                 \
    X(WEB_SEARCHES, "web_searches", "web search", "web searches")                                                      \
    X(DREAMS, "dreams", "dreaming", "dreamings")
#define RV_QUOTA_SPANS(X) X(MINUTE, "minute") X(HOUR, "hour") X(DAY, "day") X(WEEK, "week") X(MONTH, "month")

enum rv_quota_kind {
#define X(name, word, one, many) RV_QUOTA_##name,
    RV_QUOTA_KINDS(X)
#undef X
        RV_N_QUOTA
};
enum rv_quota_span {
#define X(name, word) RV_SPAN_##name,
    RV_QUOTA_SPANS(X)
#undef X
        RV_N_SPAN
};
const char *rv_quota_kind_text(enum rv_quota_kind kind);
const char *rv_quota_span_text(enum rv_quota_span span);

#define RV_QUOTA_MAX_LIMIT  (INT64_C(1) << 50) /* of one counter: sums do not overflow */
#define RV_QUOTA_MAX_LIMITS 64                 /* of one question: both plans, all kinds and spans */
#define RV_RATE_BUCKETS     10                 /* of the window of a rate */

struct rv_quota_limit {
    enum rv_quota_kind kind;
    enum rv_quota_span span; /* of a quota: DAY, WEEK or MONTH; of a rate: MINUTE, HOUR or DAY */
    bool is_rate;
    bool is_tenants;  /* counted for all users of the tenant together */
    int64_t limit;    /* 1 to RV_QUOTA_MAX_LIMIT; of COST in millionths of a dollar. As much is allowed, more is not */
    const char *plan; /* that has it, for messages; borrowed */
};

/* --- Time --- */
/** The period of a quota that a moment is in: [start, end). Weeks begin on Monday. */
void rv_quota_find_period(enum rv_quota_span span, int64_t now_us, int64_t *start_us, int64_t *end_us);

/* --- Reserving --- */
/* What it points to is borrowed for the call. */
struct rv_quota_ask {
    const char *tenant, *user; /* NULL: RV_STORE_TENANT, no user. Runs without a user count as one user's */
    const struct rv_quota_limit *limits;
    size_t n_limits;
    int64_t counts[RV_N_QUOTA];   /* to be counted now: of kinds without a reservation */
    int64_t reserves[RV_N_QUOTA]; /* to be settled later; 0: nothing */
    /* Of the reservation, with its fence and call; NULL: there is none. Without `reserves` it remembers that `counts`
     * were counted, until their period is forgotten: the same call again counts nothing. Of kinds that have a quota
     * only: rates do not remember. */
    const char *run;
    int64_t fence, call_id;
    int64_t now_us;
};
/* Why it was refused, or what is nearly used up. */
struct rv_quota_answer {
    size_t at;            /* of the limits: that refuses */
    int64_t used, wanted; /* of that one; used: reservations of calls under way included */
    int64_t reserved;     /* of used */
    int64_t again_us;     /* when it may fit; 0: it never does */
    bool is_crowded;      /* it would fit without the reservations of calls under way */
    uint64_t near;        /* allowed: bits of the limits of which this took the use to 80 % or more, from below */
};
/** Check all limits, and count or reserve. RV_E_QUOTA: one of them refuses; then nothing is counted, and the text says
 *  which, its limit, what is used, and when it fits again. out is filled in then, too. A reservation that is there
 *  already stays as it is. */
RV_MUST_CHECK int rv_store_reserve(rv_store *s, const struct rv_quota_ask *ask, struct rv_quota_answer *out,
                                   rv_err **err);
/* What a model call used in the end. Borrowed for the call. */
struct rv_settlement {
    const char *run;
    int64_t fence, call_id;
    const int64_t *used; /* RV_N_QUOTA of them */
};
/** The call is over: what was reserved for it is given back, and `used` counts, each kind once. *n (may be NULL): how
 * many counters it changed; 0: it was settled before, or is another owner's. */
RV_MUST_CHECK int rv_store_settle(rv_store *s, const struct rv_settlement *call, int64_t *n, rv_err **err);
/** Reservations of owners of the run before that fence count as used: their calls may have been made. */
RV_MUST_CHECK int rv_store_settle_left(rv_store *s, const char *run, int64_t fence, int64_t *n, rv_err **err);
/** Forget periods that ended before `before_us`, and windows in which nothing has happened up to `now_us`; at most max
 * of each. */
RV_MUST_CHECK int rv_store_prune_usage(rv_store *s, int64_t before_us, int64_t now_us, int64_t max, int64_t *n,
                                       rv_err **err);
#define RV_USAGE_KEPT_US (100 * RV_US_PER_DAY) /* how long periods that are over are kept as a rule */

/* --- Reading --- */
struct rv_usage_row {          /* texts: borrowed for the call */
    const char *tenant, *user; /* user "": none; of a tenant's own counter also */
    bool is_tenants, is_rate;
    enum rv_quota_kind kind;
    enum rv_quota_span span;
    int64_t start_us, end_us; /* of the period, or of the window */
    int64_t used, reserved;   /* reserved: beside used */
};
/** Counters of the scope that are running at now_us, the tenant's own first, then by user, kind and span; borrowed for
 *  the call of each; each as rv_store_list_runs(). A scope with a user has no counters of the tenant. */
RV_MUST_CHECK int rv_store_list_usage(rv_store *s, const struct rv_store_scope *scope, int64_t now_us,
                                      int (*each)(void *self, const struct rv_usage_row *row, rv_err **err), void *self,
                                      rv_err **err);
/** Append a limit as people read it: "20 runs a day"; amount is what stands before the unit. */
void rv_quota_write(const struct rv_quota_limit *limit, int64_t amount, rv_buf *out);
/** Append an amount of that kind with its unit: "1 run", "$0.012000". */
void rv_quota_write_amount(enum rv_quota_kind kind, int64_t amount, rv_buf *out);

#endif
