/* Shared by the files of the module: bytes of tokens, addresses, refusals, JSON Web Tokens, the authenticator itself.
 */
#ifndef RV_IDENTITY_INTERNAL_H
#define RV_IDENTITY_INTERNAL_H

#include "coreengine/base/base.h"
#include "coreengine/identity/identity.h"

/* --- bytes.c --- */

#define RV_DIGEST 32 /* bytes of a SHA-256, of an HMAC with it, and of a secret */

/** Strict base64url (RFC 4648, 5): no padding, no other characters, no bits left over that are not zero, so each value
 * has one spelling. *n: bytes in out, which has room for text.len * 3 / 4. false: it is not. */
bool identity_base64url_read(rv_str text, unsigned char *out, size_t *n);
/** Write it with a NUL: (n * 4 + 2) / 3 characters. */
void identity_base64url_write(const unsigned char *bytes, size_t n, char *out);
/** As long as n, wherever they differ. */
bool identity_bytes_equal(const void *a, const void *b, size_t n);
/** SHA-256 as lower-case hex, and as bytes. */
void identity_secret_hash(rv_str secret, char out[RV_HASH_MAX]);
void identity_secret_digest(rv_str secret, unsigned char out[RV_DIGEST]);
/** Whether the store can have it as an id of a tenant or user: 1 to RV_IDENTITY_MAX_ID bytes of UTF-8 without control
 * characters. */
bool identity_is_store_id(rv_str s);
/** Copy into an array of `size` with a NUL behind it; false, and "", when it does not fit. */
bool identity_text_keep(rv_str s, char *out, size_t size);
/** The next word of a list with blanks or commas between; empty: no more. */
rv_str identity_list_next(rv_str *rest);

/* --- scopes.c --- */

/** The set with that scope alone; 0: it is not the word of one. */
uint32_t identity_scope_bit(rv_str word);

/* --- refusal.c --- */

int identity_refuse(struct rv_refusal *refusal, int status, const char *code, const char *detail); /* RV_E_DENIED */
/** 401 with a challenge. code NULL: nothing was shown; else "invalid_token". */
int identity_refuse_token(struct rv_refusal *refusal, const char *code, const char *detail);
/** 400 for a request that cannot be read, with the reason for client and log. Returns RV_E_DENIED. */
int identity_refuse_malformed(struct rv_refusal *refusal, const char *what);
void identity_refuse_reason(struct rv_refusal *refusal, const char *fmt, ...) RV_PRINTF(2, 3); /* for the log */

/* --- net.c --- */

struct rv_network {
    struct rv_address at;
    int bits; /* 0 to 128 */
};
#define RV_MAX_NETWORKS 64 /* trusted proxies, each an address or a network: each request is compared with all */
/** Read an address; a zone (fe80::1%eth0), a port ([::1]:80, 1.2.3.4:80) and brackets are passed over. */
bool identity_address_read(rv_str text, struct rv_address *out);
bool identity_network_has(const struct rv_network *n, const struct rv_address *a);
/** "10.0.0.0/8", "::1"; bits beyond the length have to be zero. */
bool identity_network_read(rv_str text, struct rv_network *out);
/** Whether a header Host names this machine: localhost, *.localhost, 127.x.y.z, [::1], with any port. */
bool identity_host_is_local(rv_str host);
/** "https://app.example.com:8443": scheme http or https, lower case, no path. */
bool identity_is_origin(rv_str text);

/* --- jwks.c --- */

enum rv_jwt_alg { RV_JWT_HS256, RV_JWT_RS256, RV_JWT_ES256, RV_N_JWT_ALGS };
typedef struct rv_jwks rv_jwks; /* public keys; never changed */
/** Read a JSON Web Key Set. RV_E_INVALID, RV_E_PARSE, RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int identity_jwks_parse(rv_str text, rv_jwks **out, rv_err **err);
RV_MUST_CHECK int identity_jwks_read(const char *path, rv_jwks **out, rv_err **err);
rv_jwks *identity_jwks_ref(rv_jwks *set); /* one more reference */
void identity_jwks_unref(rv_jwks *set);   /* takes one; NULL is fine */
/** The index of the key for a token. kid ptr NULL: it names none, and one key alone may fit. -1: none, -2: several. */
int identity_jwks_find(const rv_jwks *set, enum rv_jwt_alg alg, rv_str kid);
bool identity_jwks_verify(const rv_jwks *set, int key, const unsigned char digest[RV_DIGEST],
                          const unsigned char *signature, size_t n);

/* --- key_file.c: the file of such a set, looked at again once in a while; any thread --- */

struct rv_key_file;
/** Reads it: as identity_jwks_read(). */
RV_MUST_CHECK int identity_key_file_new(const char *path, int64_t now_us, struct rv_key_file **out, rv_err **err);
void identity_key_file_free(struct rv_key_file *f); /* NULL is fine */
/** Read it again if it changed and the last look is a minute ago or more. The old keys stay when it cannot be used. */
RV_MUST_CHECK int identity_key_file_look(struct rv_key_file *f, int64_t now_us, rv_err **err);
/** The set of now; the reference is the caller's. */
rv_jwks *identity_key_file_keys(struct rv_key_file *f);

/* --- jwt.c --- */

/* What it points to is borrowed for the call. */
struct rv_jwt_rules {
    rv_str secret;        /* of HS256; empty: none */
    const rv_jwks *keys;  /* NULL: none */
    const char *issuer;   /* NULL: not checked */
    const char *audience; /* a list of words, one is enough; NULL: not checked */
    int64_t skew_s;
};
struct rv_jwt {
    char subject[RV_IDENTITY_MAX_ID + 1], tenant[RV_IDENTITY_MAX_ID + 1]; /* tenant "": the token has none */
    char email[RV_IDENTITY_MAX_EMAIL + 1], name[RV_IDENTITY_MAX_NAME + 1];
    bool has_scopes;
    uint32_t scopes; /* the known ones */
    char why[200];   /* RV_E_DENIED: the reason for the log, with the kid; never the token */
};
/** Judge a token. RV_E_DENIED: out->why says why; RV_E_NOMEM. */
RV_MUST_CHECK int identity_jwt_verify(const struct rv_jwt_rules *rules, rv_str token, int64_t now_us,
                                      struct rv_jwt *out, rv_err **err);

/* --- rate.c --- */

typedef struct rv_rates rv_rates; /* how often names did something of late; bounded; any thread */
RV_MUST_CHECK int identity_rates_new(struct rv_rand rand, rv_rates **out, rv_err **err);
void identity_rates_free(rv_rates *r);
/** Count one of `kind` under that name unless there were too many: 0, or how long to wait (us). per_minute > 0; as many
 * may come at once. */
int64_t identity_rates_take(rv_rates *r, const char *kind, const char *name, int64_t per_minute, int64_t now_us);
/** The same without counting. */
int64_t identity_rates_look(rv_rates *r, const char *kind, const char *name, int64_t per_minute, int64_t now_us);

/* --- auth.c --- */

/* Settings, which never change; the two tables that do have locks of their own, held for a short time. */
struct rv_auth {
    rv_arena *arena; /* owned: texts and lists of the settings */
    bool has_master_key;
    unsigned char master_digest[RV_DIGEST];
    char *secret; /* owned, of jwt; wiped */
    size_t n_secret;
    struct rv_key_file *key_file;                /* owned; NULL: there are no public keys */
    const char *issuer, *audiences, *jwt_tenant; /* in the arena, as all texts here but secret */
    bool has_jwt_scopes;
    uint32_t jwt_scopes;
    int64_t skew_s, login_s, per_minute, failed_per_minute;
    struct rv_network proxies[RV_MAX_NETWORKS];
    size_t n_proxies;
    const char *origins, *hosts; /* checked lists; NULL: none */
    bool any_origin, trust_user_header, any_user_id, always_ask;
    rv_rates *rates; /* owned */
};

/* --- caller.c: where a request comes from --- */

/** The only value of a header. 0: it is missing, 1: *out, -1: there are several. */
int identity_caller_header(const struct rv_caller *c, const char *name, rv_str *out);
/** The client behind trusted proxies, and whether it came by TLS. false: it is not known, as the peer is not an address
 * or there are too many hops. */
bool identity_caller_client(const rv_auth *auth, const struct rv_caller *c, struct rv_address *out, bool *is_tls);
/** The other end of the connection is a proxy of the settings. */
bool identity_caller_is_proxy(const rv_auth *auth, const struct rv_caller *c);
/** On this machine, without a proxy in between, and addressed by a name of this machine. */
bool identity_caller_is_here(const rv_auth *auth, const struct rv_caller *c);
/** An origin of the settings by name, or that of the server itself. */
bool identity_caller_allows_origin(const rv_auth *auth, const struct rv_caller *c, rv_str origin);
/** The settings allow every origin, which counts on this machine only, and never for cookies. */
bool identity_caller_is_any_origin(const rv_auth *auth, const struct rv_caller *c, rv_str origin);
/** A write that a browser sent for a foreign page: RV_E_DENIED. is_cookie: a cookie came with it, so it has to say
 * where it is from. */
RV_MUST_CHECK int identity_caller_check_site(const rv_auth *auth, const struct rv_caller *c, bool is_cookie,
                                             struct rv_refusal *refusal);
/** The only value of a cookie: as identity_caller_header(). */
int identity_caller_cookie(const struct rv_caller *c, const char *name, rv_str *out);

#endif
