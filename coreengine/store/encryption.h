/* The part of the store that says what is encrypted: a mode for each tenant, keys of tenants that master keys wrap, and
 * the walk that brings rows to what their tenant's mode and key are now. */
#ifndef RV_STORE_ENCRYPTION_H
#define RV_STORE_ENCRYPTION_H

#include "coreengine/base/base.h"
#include "coreengine/store/handle.h"

/* --- Master keys: they wrap the keys of tenants, and are never in a store. A key is 32 random bytes, written as
 * base64; its name follows from it. Beside them private keys of tenants, where reeve may read what is sealed. --- */
#define RV_KEYRING_NAME 17 /* 16 lower-case hex digits and a NUL */

typedef struct rv_keyring rv_keyring;

/** Read keys, one a line or separated by commas; blank lines and those that begin with "#" are comments. The first key
 * wraps, all unwrap. source: names the text in errors, which never have a part of a key. *out: one reference.
 * RV_E_INVALID (a line that is not a key, the same key twice, no key at all), RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int rv_keyring_read(rv_str text, const char *source, rv_keyring **out, rv_err **err);
/** The same of a file. RV_E_DENIED: everyone may read or change it. */
RV_MUST_CHECK int rv_keyring_read_file(const char *path, rv_keyring **out, rv_err **err);
/** NULL is fine. */
void rv_keyring_unref(rv_keyring *ring);

/** Add the private keys of a file, PEM or DER, that open what is sealed; *ring NULL: a ring without master keys is
 * made. Not for a ring that others have a reference to. RV_E_DENIED: everyone may read or change the file. RV_E_INVALID
 * (no key, a public key, the same key twice), RV_E_LIMIT, RV_E_NOMEM, RV_E_IO. */
RV_MUST_CHECK int rv_keyring_add_private(rv_keyring **ring, const char *path, rv_err **err);

/** Append a new master key as base64, and its name. The key is a secret: rv_wipe() it. */
void rv_keyring_make(struct rv_rand rand, rv_buf *out, char name[RV_KEYRING_NAME]);

/* --- Modes --- */
#define RV_ENCRYPTION_ID 17 /* of a tenant's key: 16 lower-case hex digits and a NUL */

#define RV_ENCRYPTION_MODES(X)                                                                                         \
    X(NONE, "none", "plain; nothing was ever said about the tenant")                                                   \
    X(DISABLED, "disabled", "plain, whatever the rule for all tenants is")                                             \
    X(PLATFORM, "platform", "encrypted in the store, decrypted when it is read")                                       \
    X(CLIENT, "client", "encrypted in the store, and shown so; decrypted for agents alone")                            \
    X(SEALED, "sealed", "contents of entities by the tenant's public key, which reeve cannot read; the rest: platform")
enum rv_encryption_mode {
#define X(name, text, meaning) RV_ENCRYPTION_##name,
    RV_ENCRYPTION_MODES(X)
#undef X
        RV_N_ENCRYPTION_MODES
};
const char *rv_encryption_mode_text(enum rv_encryption_mode mode);
/** RV_E_INVALID: there is no such mode; NONE is not one that can be set. */
RV_MUST_CHECK int rv_encryption_mode_of(rv_str text, enum rv_encryption_mode *out, rv_err **err);

/* A row of tenant_keys. Texts are borrowed for the call that gets it. */
struct rv_tenant_key {
    const char *id, *tenant; /* tenant "": of those that have no row of their own */
    enum rv_encryption_mode mode;
    const char *status;     /* current, retired */
    const char *algorithm;  /* "" of a mode without a key */
    const char *public_key; /* PEM, of the mode sealed; NULL: none */
    const char *master;     /* name of the master key that wraps it; "" of a mode without a key */
    int64_t created_us, retired_us;
};

/* How a tenant's rows are encrypted. Borrowed for the call. */
struct rv_encryption_choice {
    enum rv_encryption_mode mode;
    const struct rv_rsa *seal; /* the tenant's public key in the mode sealed; else NULL */
};
/** Set the mode of a tenant ("": of all that have none of their own), with a new key where the mode needs one. Its
 * former key is retired: it goes on decrypting what it encrypted. Rows that are there stay as they are until
 * rv_store_encrypt(). id gets the name of the new row.
 *  @return RV_E_STATE (no master key), RV_E_INVALID (also: a key without that mode, or the mode without a key),
 * RV_E_DENIED, RV_E_NOMEM, RV_E_IO */
RV_MUST_CHECK int rv_store_set_encryption(rv_store *s, const char *tenant, const struct rv_encryption_choice *how,
                                          int64_t now_us, char id[RV_ENCRYPTION_ID], rv_err **err);
/** All rows, by tenant, the current one first. tenant NULL: of all. */
RV_MUST_CHECK int rv_store_list_tenant_keys(rv_store *s, const char *tenant,
                                            int (*each)(void *self, const struct rv_tenant_key *key, rv_err **err),
                                            void *self, rv_err **err);
/** Wrap every key of tenants by the first master key. n: how many were not. All or none. RV_E_DENIED: a key is wrapped
 * by a master key that is not given. */
RV_MUST_CHECK int rv_store_rewrap_keys(rv_store *s, int64_t *n, rv_err **err);

/** Whether this handle reads what the mode `client` hides in plain: only what an agent is told may be, and what the
 * engine makes other rows of. A new handle does not. Gives what it was before, for a part of a call to put back. */
bool rv_store_reveal(rv_store *s, bool reveals);

/* What a walk over the rows found. */
struct rv_encryption_walked {
    int64_t texts, rewritten;
    int64_t locked; /* sealed texts that should be something else, and stay: their private key is not given */
};
/** Bring every text that is kept of a tenant (NULL: of all) to its mode and key, a few rows in a transaction: what is
 * plain and should not be is encrypted, what another key encrypted is encrypted again, what should be plain is
 * decrypted. Repeat it after it failed: it goes on. out is set in any case.
 *  @return RV_E_DENIED (a master key is missing), RV_E_IO (a text does not decrypt), RV_E_STATE (in a group) */
RV_MUST_CHECK int rv_store_encrypt(rv_store *s, const char *tenant, int64_t now_us, struct rv_encryption_walked *out,
                                   rv_err **err);
/** Delete keys that were retired before that moment and that no text needs; *n: how many. */
RV_MUST_CHECK int rv_store_prune_tenant_keys(rv_store *s, int64_t retired_before_us, int64_t *n, rv_err **err);

#endif
