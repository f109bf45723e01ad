/* Who asks: from the headers of a request to an identity, or to a refusal.
 *
 * A caller of the server shows an API key, a JSON Web Token, or the cookie of a login. An authenticator has the
 * settings of the server; with it a request is judged in two steps, so that reading the store stays with its user:
 *
 *   rv_auth_read_credentials()    which credentials there are; says which row of the store is needed
 *   rv_auth_verify()   that row, the time and the headers -> who it is
 *
 * Both are pure: no clock, no I/O. rv_auth_identify() does both with a store. The identity never comes from a body,
 * and no secret ends up in a message: refusals and errors name ids and reasons only. */
#ifndef RV_IDENTITY_H
#define RV_IDENTITY_H

#include "coreengine/store/store.h"

#define RV_IDENTITY_MAX_ID    RV_STORE_MAX_ID               /* bytes of a tenant or user */
#define RV_IDENTITY_MAX_EMAIL 320                           /* bytes: 64 before the @, 255 behind it */
#define RV_IDENTITY_MAX_NAME  200                           /* bytes; a longer one is cut: pages show it in a line */
#define RV_IDENTITY_MAX_PEER  48                            /* an address as text, with its NUL */
#define RV_JWT_MAX_KB         8                             /* of a token: a header of a request has no room for more */
#define RV_JWT_MAX            ((size_t)RV_JWT_MAX_KB << 10) /* the same in bytes */
#define RV_API_KEY_ID         16                            /* hex digits */
#define RV_API_KEY_SECRET     43                            /* characters: 32 random bytes as base64url */
#define RV_API_KEY_MAX        64                            /* "rv_<id>_<secret>" and its NUL */

/* --- Identities --- */

enum rv_level {
    RV_LEVEL_USER,   /* own data, and data without an owner */
    RV_LEVEL_TENANT, /* data of all users of the tenant */
    RV_LEVEL_MASTER, /* all tenants, one at a time */
    RV_N_LEVELS
};
const char *rv_level_text(enum rv_level level); /* "user", "tenant", "master" */
int rv_level_of(rv_str word);                   /* RV_UNSET: another word */

/* What a key or token allows. One list: constant, word, meaning. */
#define RV_SCOPES(X)                                                                                                   \
    X(CHAT, "chat", "turns with agents, and completions")                                                              \
    X(RUNS_READ, "runs:read", "runs, their events and interrupts")                                                     \
    X(RUNS_WRITE, "runs:write", "start, resume, answer and cancel runs")                                               \
    X(SESSIONS_READ, "sessions:read", "sessions and their messages")                                                   \
    X(SESSIONS_WRITE, "sessions:write", "change, clone and delete sessions")                                           \
    X(DATA_READ, "data:read", "entities, and queries over all rows: also of sessions, messages and agents")            \
    X(DATA_WRITE, "data:write", "upload, change and delete resources and other entities")                              \
    X(AGENTS_READ, "agents:read", "documents of agents, and tools")                                                    \
    X(AGENTS_WRITE, "agents:write", "change and delete documents of agents")                                           \
    X(TASKS_READ, "tasks:read", "the queue and schedules")                                                             \
    X(TASKS_WRITE, "tasks:write", "queue, schedule and cancel work")                                                   \
    X(USAGE_READ, "usage:read", "what quotas have used")                                                               \
    X(METRICS_READ, "metrics:read", "metrics of the server")                                                           \
    X(KEYS_WRITE, "keys:write", "list, create and revoke API keys")
enum rv_api_scope {
#define X(name, word, meaning) RV_SCOPE_##name,
    RV_SCOPES(X)
#undef X
        RV_N_SCOPE
};
#define RV_SCOPES_ALL ((UINT32_C(1) << RV_N_SCOPE) - 1) /* a bit for each scope */
/* What a token or key has that does not say: all but the server's own. */
#define RV_SCOPES_USUAL (RV_SCOPES_ALL & ~(UINT32_C(1) << RV_SCOPE_METRICS_READ | UINT32_C(1) << RV_SCOPE_KEYS_WRITE))
const char *rv_scope_text(enum rv_api_scope scope);
/** A set of scopes from words with blanks or commas between them; "all", "usual" and "read" (all that end in :read) are
 * words, too. RV_E_INVALID: an unknown word, with the nearest one. */
RV_MUST_CHECK int rv_scopes_parse(rv_str words, uint32_t *out, rv_err **err);
void rv_scopes_write(uint32_t scopes, rv_buf *out); /* with one blank between them */

enum rv_identity_by {
    RV_BY_NOTHING,    /* no key is set up, and the caller is on this machine */
    RV_BY_KEY,        /* an API key of the store */
    RV_BY_MASTER_KEY, /* the one key of the settings */
    RV_BY_JWT,
    RV_BY_LOGIN, /* the cookie of a login */
};
struct rv_identity {
    enum rv_level level;
    enum rv_identity_by by;
    uint32_t scopes;
    char tenant[RV_IDENTITY_MAX_ID + 1];                                   /* never empty: whose data a call is about */
    char user[RV_IDENTITY_MAX_ID + 1];                                     /* "": none */
    char key[RV_API_KEY_ID + 1];                                           /* id of the API key, also of a login; "" */
    char email[RV_IDENTITY_MAX_EMAIL + 1], name[RV_IDENTITY_MAX_NAME + 1]; /* for the agent's context; "" */
    char peer[RV_IDENTITY_MAX_PEER];                                       /* address of the client, behind proxies */
    bool is_tls;                                                           /* between the client and the first proxy */
};
/** The rows that it may see: all users of its tenant, or one user's. Borrows from identity. */
struct rv_store_scope rv_identity_scope(const struct rv_identity *identity);

/* --- Refusals: what to answer, and what to log --- */

struct rv_refusal {
    int status;             /* 400, 401, 403, 429 or 503 */
    const char *code;       /* stable word: "invalid_request", "invalid_token", "insufficient_scope", ...; static */
    char detail[256];       /* for the caller; no secret, no word about what exists */
    char authenticate[160]; /* value of WWW-Authenticate; "": no such header */
    int64_t retry_us;       /* of 429 and 503: how long to wait; 0: not said */
    char reason[256];       /* for the log: more than the caller is told, and no secret either */
};
/** Seconds for the header Retry-After: rounded up, at least 1. */
int64_t rv_refusal_retry_s(const struct rv_refusal *refusal);
/** RV_E_DENIED and *refusal filled in (403) when identity lacks the scope; else 0. */
RV_MUST_CHECK int rv_identity_needs(const struct rv_identity *identity, enum rv_api_scope scope,
                                    struct rv_refusal *refusal);

/* --- Settings --- */

/* As they are written by people; every text is borrowed for the call that takes them. The table in settings.c says of
 * each its flag, its variable and its meaning. */
struct rv_identity_opts {
    const char *master_key;         /* one key that opens everything; at least 16 bytes; NULL: none */
    const char *jwt_secret;         /* HS256: at least 32 bytes; NULL: no such tokens */
    const char *jwks;               /* path of a file with public keys, RS256 and ES256; NULL: no such tokens */
    const char *issuer;             /* `iss` of tokens, byte for byte; NULL: not checked */
    const char *audiences;          /* blanks between them: one of them has to be in `aud`; NULL: not checked */
    const char *jwt_tenant;         /* of tokens without `tenant_id`; NULL: those are refused */
    const char *jwt_scopes;         /* of all tokens; NULL: the token says, or the usual ones */
    int64_t skew_s;                 /* of clocks, for exp, nbf and iat: 0 to 60 */
    const char *trusted_proxies;    /* addresses and networks (10.0.0.0/8, ::1), blanks or commas between; NULL: none */
    const char *cors_origins;       /* https://app.example.com ..., or "*" on loopback; NULL: none */
    const char *hosts;              /* further names of this server that a Host header may have; NULL: none */
    bool trust_user_header;         /* X-User-Id and X-Tenant-Id of callers above level user name a user */
    bool any_user_id;               /* X-User-Id is any id; else a UUID */
    bool always_ask;                /* never open, even without any key */
    int64_t login_s;                /* how long a login lasts */
    int64_t requests_per_minute;    /* of one key, user or, without either, peer; 0: no limit */
    int64_t failed_logins_a_minute; /* of one peer */
};
#define RV_IDENTITY_OPTS_INIT                                                                                          \
    ((struct rv_identity_opts){.skew_s = 30, .login_s = INT64_C(12) * 3600, .failed_logins_a_minute = 10})

/* One row for each setting: for `reeve serve`, its help and docs/reference/identity.md. What it points to is static. */
struct rv_identity_setting {
    const char *flag, *env, *arg; /* "jwt-issuer", "REEVE_JWT_ISSUER", "URL"; arg NULL: a switch */
    const char *help;
    bool is_secret; /* the variable has the value, the flag names a file that has it: arguments are visible to others */
    size_t offset;  /* the rest is internal */
    int64_t min, max; /* of a number; both 0: a text */
};
extern const struct rv_identity_setting rv_identity_settings[];
extern const size_t rv_n_identity_settings;
/** Set one of them from text, which is borrowed as long as the options are used. A switch takes NULL, "1", "true", "on"
 * and "yes", and their opposites. RV_E_INVALID: not a number in its range, or not such a word. */
RV_MUST_CHECK int rv_identity_opts_set(struct rv_identity_opts *opts, const struct rv_identity_setting *setting,
                                       const char *value, rv_err **err);

/* --- The authenticator --- */

/* Any thread, and several at the same time: no store is asked, no file read and no signature checked under a lock. */
typedef struct rv_auth rv_auth;

/** Check the options and make an authenticator with them; reads the JWKS file. Nothing of opts is kept but copies.
 *  @return RV_E_INVALID (a setting, with its flag), what reading the file says, RV_E_NOMEM */
RV_MUST_CHECK int rv_auth_new(const struct rv_identity_opts *opts, int64_t now_us, rv_auth **out, rv_err **err);
void rv_auth_free(rv_auth *auth); /* overwrites secrets; NULL is fine */
/** Look at the JWKS file again if it changed and the last look is a minute ago or more; call it before tokens are
 * judged. The old keys stay when the new file cannot be used; the error says why, for the log. The only I/O of an
 * authenticator. */
RV_MUST_CHECK int rv_auth_refresh(rv_auth *auth, int64_t now_us, rv_err **err);

/* A request, as far as it says who asks. What it points to is borrowed for the call of the authenticator. */
struct rv_caller {
    /** The i-th value of a header, name in lower case; false: there are no more. Borrowed for the call of the
     * authenticator. */
    bool (*header)(void *self, const char *name, size_t i, rv_str *out);
    void *self;
    const char *peer; /* address of the other end of the connection, as text; NULL or "": unknown, so not trusted */
    const char *method;
    bool is_tls; /* of the connection */
};

enum rv_credential {
    RV_CREDENTIAL_NONE,
    RV_CREDENTIAL_KEY,        /* needs the row of the API key `id` */
    RV_CREDENTIAL_MASTER_KEY, /* compared already */
    RV_CREDENTIAL_JWT,
    RV_CREDENTIAL_LOGIN, /* needs the row of the API key of the login `hash` */
};
struct rv_credentials {
    enum rv_credential kind;
    char id[RV_API_KEY_ID + 1]; /* of KEY */
    char hash[RV_HASH_MAX];     /* of KEY: of its secret; of LOGIN: of its cookie */
    rv_str token;               /* of JWT; borrowed from the header */
    bool is_foreign; /* of KEY: it does not have the form of a key of reeve; an open authenticator ignores it */
    bool is_ambient; /* a browser adds it by itself, or nothing is asked for: where the request comes from
                      * is checked, too */
};
/** Find the credentials. RV_E_DENIED: 400, two different ones or a malformed one; *refusal says so. */
RV_MUST_CHECK int rv_auth_read_credentials(const rv_auth *auth, const struct rv_caller *c, struct rv_credentials *out,
                                           struct rv_refusal *refusal);
/* What a request is judged by besides its headers. Borrowed for the call. */
struct rv_evidence {
    const struct rv_credentials *credentials;
    const struct rv_api_key_row *key; /* the row that they need; NULL: there is none. An unknown key takes as long as a
                                         wrong one */
    bool has_keys; /* the store has a valid API key: without one, and without tokens and a master key, callers on this
                      machine are let in as MASTER */
    int64_t now_us;
};
/** Judge it.
 *  @return 0; RV_E_DENIED: *refusal says what to answer; RV_E_NOMEM */
RV_MUST_CHECK int rv_auth_verify(const rv_auth *auth, const struct rv_caller *c, const struct rv_evidence *e,
                                 struct rv_identity *out, struct rv_refusal *refusal, rv_err **err);
/* Where and when a request is judged. Borrowed for the call. */
struct rv_auth_with {
    rv_store *store;
    int64_t now_us;
    rv_log *log; /* of refusals and of a JWKS file that cannot be used; may be NULL */
};
/** Both steps with a store: refresh, read, look up, judge, count failures of the peer, note that a key was used.
 *  @return as rv_auth_verify(), and what the store says */
RV_MUST_CHECK int rv_auth_identify(rv_auth *auth, const struct rv_auth_with *with, const struct rv_caller *c,
                                   struct rv_identity *out, struct rv_refusal *refusal, rv_err **err);
/** Is the authenticator open for callers on this machine? False as soon as there is any key. */
bool rv_auth_is_open(const rv_auth *auth, bool has_keys);
/** Is it the address of a trusted proxy? */
bool rv_auth_has_proxy(const rv_auth *auth, const struct rv_address *a);

/* --- API keys and logins: made here, kept in the store --- */

/** A new key: its id, its text, which is shown once, and the hash of its secret. */
struct rv_new_key {
    char id[RV_API_KEY_ID + 1], text[RV_API_KEY_MAX], hash[RV_HASH_MAX];
};
void rv_api_key_make(struct rv_rand rand, struct rv_new_key *out);
/** The parts of a key's text; false: it is not one. hash: of the secret. */
bool rv_api_key_read(rv_str text, char id[RV_API_KEY_ID + 1], char hash[RV_HASH_MAX]);
/** Overwrite memory so that the compiler does not leave it out. */
void rv_secret_wipe(void *memory, size_t n);

#define RV_LOGIN_COOKIE "__Host-reeve" /* only over TLS or to localhost, only to this host, not for scripts */
/* A login that is wanted. */
struct rv_login {
    rv_store *store; /* borrowed for the call, as the key is */
    rv_str key;
    struct rv_rand rand; /* for the cookie */
    int64_t now_us;
    rv_log *log; /* borrowed; may be NULL */
};
/** Begin a login: judge the key as if the request had it in a header, keep the login, and append the value of
 *  Set-Cookie. Only for requests of our own pages, and only with an API key of the store.
 *  @return as rv_auth_identify(), which counts wrong keys; RV_E_DENIED (*refusal: 403) also for another page or another
 * key */
RV_MUST_CHECK int rv_auth_login(rv_auth *auth, const struct rv_caller *c, const struct rv_login *login,
                                rv_buf *set_cookie, struct rv_refusal *refusal, rv_err **err);
/** End the login of the request, if it has one, and append the value of Set-Cookie that takes the cookie back.
 *  @return RV_E_DENIED (*refusal: 403, the page of another origin asks), what the store says */
RV_MUST_CHECK int rv_auth_logout(const rv_auth *auth, rv_store *store, const struct rv_caller *c, rv_buf *set_cookie,
                                 struct rv_refusal *refusal, rv_err **err);

/* --- Cross-origin requests --- */

/** Append the headers of CORS to an answer. put: name in the case that is usual, value borrowed for the call.
 *  @return true: the request is a preflight, answer it with 204 and these headers, before anything is judged */
bool rv_auth_put_cors(const rv_auth *auth, const struct rv_caller *c,
                      void (*put)(void *self, const char *name, const char *value), void *self);

/* --- Rates --- */

/** One more request of identity: RV_E_DENIED and *refusal (429, Retry-After) when there were too many of late. Memory
 * is bounded: of very many callers those that were quiet for longest are forgotten. */
RV_MUST_CHECK int rv_auth_note_request(rv_auth *auth, const struct rv_identity *identity, int64_t now_us,
                                       struct rv_refusal *refusal);
/** 429 of a quota: when it may fit again (0: never), in words of the store's answer. */
void rv_refuse_quota(struct rv_refusal *refusal, const char *why, int64_t again_us, int64_t now_us);
/** 503 while the server drains. */
void rv_refuse_drain(struct rv_refusal *refusal, int64_t wait_us);

#endif
