/* Encryption of texts of rows, for the files that read and write them. A text is bound to its place: moved to another
 * row, column or tenant it does not decrypt.
 *
 * A column has one of these texts, told apart by how it begins:
 *   reeve-enc1:KEY:BASE64   the nonce and the ciphertext with its tag, by the tenant's key of that name
 *   reeve-enc2:KEY:BASE64   sealed: a key of its own by RSA-OAEP, then as above by that key
 *   reeve-enc3:KEY:BASE64   AES-SIV, the same bytes for the same text in any row of the tenant's column
 *   reeve-enc0:TEXT         a plain text that itself begins with "reeve-enc" and a digit
 *   TEXT                    any other plain text */
#ifndef RV_STORE_VAULT_INTERNAL_H
#define RV_STORE_VAULT_INTERNAL_H

#include "coreengine/store/encryption.h"
#include "coreengine/store/sql/sql_internal.h"

/* Where a text is. The ids are those that other rows of its table do not have. Texts are borrowed for the call. */
struct rv_place {
    const char *tenant, *table;
    const char *ids[3]; /* NULL: none */
    int64_t seq;        /* 0: none */
    bool is_engines;    /* no client is shown it as it is: it is decrypted in every mode */
};

/* The place of a text of a record, an interrupt or a task: a value that is unique in its table. Clients never read
 * these rows as they are kept. */
static inline struct rv_place vault_engine_place(const char *tenant, const char *table, const char *id,
                                                 const char *more, int64_t seq)
{
    return (struct rv_place){tenant, table, {id, more, NULL}, seq, true};
}

static inline struct rv_place vault_session_place(const char *tenant, const char *user, const char *id)
{
    return (struct rv_place){tenant, "sessions", {user, id, NULL}, 0, true};
}

/** Bind a text (ptr NULL: null), encrypted where that is what the tenant's mode says. A failure sticks until the step.
 */
void store_secret_bind(rv_sql_stmt *stmt, int i, enum sql_type type, const struct rv_place *at, const char *column,
                       rv_str plain);
/** A column as its text, valid until the statement moves. ptr NULL: null. RV_E_DENIED: no key for it; RV_E_IO: it was
 * changed or belongs elsewhere. */
RV_MUST_CHECK int store_secret_at(rv_sql_stmt *stmt, int i, const struct rv_place *at, const char *column, rv_str *out,
                                  rv_err **err);
/** The same of a column with JSON: a text that is not decrypted for the reader is {"encrypted": TEXT}. */
RV_MUST_CHECK int store_secret_json_at(rv_sql_stmt *stmt, int i, const struct rv_place *at, const char *column,
                                       rv_str *out, rv_err **err);
/** Is a client of this handle shown the text as it is kept, though there is a key for it? */
RV_MUST_CHECK int store_secret_is_hidden(struct sql_store *st, rv_str kept, bool *out, rv_err **err);
/** The same for a column of SQL_TEXT. */
RV_MUST_CHECK int store_secret_text_at(rv_sql_stmt *stmt, int i, const struct rv_place *at, const char *column,
                                       const char **out, rv_err **err);
/** The same for texts that are in no column of their own: append what is to be kept, or what is to be shown. */
RV_MUST_CHECK int store_secret_write(struct sql_store *st, const struct rv_place *at, const char *column, rv_str plain,
                                     rv_buf *out, rv_err **err);
RV_MUST_CHECK int store_secret_read(struct sql_store *st, const struct rv_place *at, const char *column, rv_str kept,
                                    rv_buf *out, rv_err **err);
/** Is it encrypted? */
bool store_secret_is(rv_str kept);
/** Is it sealed? Without its private key store_secret_read() gives it as it is kept. */
bool store_secret_is_sealed(rv_str kept);
/** Does it belong to one row alone, and can be decrypted by the tenant's key? */
bool store_secret_is_of_row(rv_str kept);
/** By which key; "" of a plain text. */
void store_secret_key(rv_str kept, char id[RV_ENCRYPTION_ID]);
/** Is the text kept as it would be written now: plain, or encrypted by the tenant's key, in the form of its place? */
RV_MUST_CHECK int store_secret_is_current(struct sql_store *st, const struct rv_place *at, const char *column,
                                          rv_str kept, bool *out, rv_err **err);
/* A column of a row. Borrowed for the call. */
struct rv_secret_cell {
    const struct rv_place *at;
    const char *column;
};
/** How a text may stand in a column whose equal texts have equal bytes: by each key of the tenant. out: initialised.
 * *n above RV_SECRET_SPELLINGS: there are more keys than that, and out is empty. */
#define RV_SECRET_SPELLINGS 4
RV_MUST_CHECK int store_secret_spellings(struct sql_store *st, const struct rv_secret_cell *cell, rv_str plain,
                                         rv_buf out[RV_SECRET_SPELLINGS], size_t *n, rv_err **err);

/** Was anything ever encrypted in the store? If not, the tenant of a row need not be looked up. */
RV_MUST_CHECK int vault_is_used(struct sql_store *st, bool *out, rv_err **err);
/** What the mode of a tenant is now; of the store's own writes of the present transaction. */
RV_MUST_CHECK int vault_mode(struct sql_store *st, const char *tenant, enum rv_encryption_mode *out, rv_err **err);
/** The mode that the column encryption_level of a row of that table or kind gets when it is written now; NULL: there is
 * no rule. */
RV_MUST_CHECK int vault_level(struct sql_store *st, const char *tenant, const char *table, const char **out,
                              rv_err **err);
void vault_look_again(struct sql_store *st); /* others may have changed the rules */

struct rv_vault_key {
    char id[RV_ENCRYPTION_ID];
    enum rv_encryption_mode mode;
    struct rv_cipher cipher; /* of a mode that has a key */
    struct rv_siv siv;
    struct rv_rsa *seal; /* owned: the public key of the mode sealed */
};
/** A key by its name, borrowed from the vault; *out NULL: the store has none. */
RV_MUST_CHECK int vault_key_of(struct sql_store *st, const char *id, struct rv_vault_key **out, rv_err **err);
struct rv_vault_rule {
    char *tenant; /* owned */
    char key[RV_ENCRYPTION_ID];
    enum rv_encryption_mode mode;
};
/** *out: borrowed from the vault; NULL: there is none. */
RV_MUST_CHECK int vault_rule(struct sql_store *st, const char *tenant, const struct rv_vault_rule **out, rv_err **err);

/** A tenant's key, wrapped by the first master key, and unwrapped by the one of that name. */
RV_MUST_CHECK int vault_wrap(const rv_keyring *ring, const char *tenant, const char *id,
                             const unsigned char key[RV_CIPHER_KEY], rv_buf *out, rv_err **err);
/* A key of a tenant as the store has it. Borrowed for the call. */
struct rv_wrapped_key {
    const char *tenant, *id;
    const char *master; /* id of the master key that wraps it */
    rv_str wrapped;
};
RV_MUST_CHECK int vault_unwrap(const rv_keyring *ring, const struct rv_wrapped_key *of,
                               unsigned char key[RV_CIPHER_KEY], rv_err **err);

/** Is the row, as it is kept, marked as one whose encrypted fields are ciphertext? */
bool vault_is_ciphertext(json_object *whole);

/* encryption/keyring.c */
#define RV_KEYRING_CHARS   44                 /* base64 of a key */
#define RV_KEYRING_MAX     64                 /* keys of one ring: changed each month, they last five years */
#define RV_KEYRING_PRIVATE 16                 /* private keys of one ring */
#define RV_KEYRING_BYTES   ((size_t)16 << 10) /* of a text with keys */
/** References are counted atomically: stores of several threads share a ring. NULL is fine. */
rv_keyring *store_keyring_ref(rv_keyring *ring);
/** The private key that belongs to a public one, borrowed; NULL: the ring has none. */
const struct rv_rsa *store_keyring_private(const rv_keyring *ring, const struct rv_rsa *seal);
size_t store_keyring_size(const rv_keyring *ring); /* of master keys; NULL: 0 */
/** The name of key i; key 0 wraps. Borrowed. */
const char *store_keyring_name(const rv_keyring *ring, size_t i);
/** Append the key, wrapped by the first key of the ring for that place. */
void store_keyring_wrap(const rv_keyring *ring, struct rv_rand rand, rv_str bound,
                        const unsigned char key[RV_CIPHER_KEY], rv_buf *out);
/** Unwrap it by the key of that name. RV_E_DENIED: the ring has none (ring NULL: there are no keys at all). RV_E_IO: it
 * was changed, or wrapped for another place. */
RV_MUST_CHECK int store_keyring_unwrap(const rv_keyring *ring, const char *name, rv_str bound, rv_str wrapped,
                                       unsigned char key[RV_CIPHER_KEY], rv_err **err);

/* encryption/check.c */
/** Tell of encrypted texts that do not decrypt, until tell() gives something else than 0; those whose master key is not
 * given are passed over. */
RV_MUST_CHECK int store_encryption_check(struct sql_store *st, bool (*tell)(void *self, const char *what), void *self,
                                         rv_err **err);

#endif
