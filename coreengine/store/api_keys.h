/* A part of the store: API keys, and the logins of the page that were exchanged for one. Neither has its secret here:
 * a key has the SHA-256 of its secret, a login is found by the SHA-256 of its cookie. coreengine/identity makes both
 * and decides what they open.
 *
 * Calls of requests (get, find a login) are for all tenants, since the key itself says whose it is; calls of people
 * (list, revoke) see what is in their scope. */
#ifndef RV_STORE_API_KEYS_H
#define RV_STORE_API_KEYS_H

#include "coreengine/store/handle.h"

#define RV_API_KEY_MAX_TEXT   1000 /* bytes of a note, or of all scopes */
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
/** Keys of the scope, newest first; all: also those that are revoked or expired at now_us. Rows are borrowed for the
 * call of each; each as rv_store_list_runs(). */
RV_MUST_CHECK int rv_store_list_api_keys(rv_store *s, const struct rv_store_scope *scope, bool all, int64_t now_us,
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
#define RV_API_KEY_USED_US (INT64_C(300) * 1000000)

/* --- Logins --- */
/** hash: SHA-256 of the cookie as lower-case hex. RV_E_NOT_FOUND: there is no such key, or it is revoked. */
RV_MUST_CHECK int rv_store_add_login(rv_store *s, const char *hash, const char *key, int64_t now_us, int64_t expires_us,
                                     rv_err **err);
/** The key of the login, also one that is revoked or expired. RV_E_NOT_FOUND: there is no such login, or it has expired
 * at now_us. out owns its texts. */
RV_MUST_CHECK int rv_store_find_login(rv_store *s, const char *hash, int64_t now_us, struct rv_api_key_row *out,
                                      rv_err **err);
/** Log out; nothing happens when there is no such login. */
RV_MUST_CHECK int rv_store_drop_login(rv_store *s, const char *hash, rv_err **err);
/** Forget logins that expired before now_us, and keys that were revoked or expired before before_us. *n (may be NULL):
 * how many keys. */
RV_MUST_CHECK int rv_store_prune_api_keys(rv_store *s, int64_t before_us, int64_t now_us, int64_t *n, rv_err **err);

#endif
