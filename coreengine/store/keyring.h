/* Master keys: they wrap the keys of tenants, and are never in a store. A key is 32 random bytes, written as base64;
 * its name follows from it. Beside them private keys of tenants, where reeve may read what is sealed. */
#ifndef RV_STORE_KEYRING_H
#define RV_STORE_KEYRING_H

#include "coreengine/base/base.h"
#include "coreengine/base/rsa.h"

#define RV_KEYRING_NAME    17                 /* 16 lower-case hex digits and a NUL */
#define RV_KEYRING_CHARS   44                 /* base64 of a key */
#define RV_KEYRING_MAX     64                 /* keys of one ring */
#define RV_KEYRING_PRIVATE 16                 /* private keys of one ring */
#define RV_KEYRING_BYTES   ((size_t)16 << 10) /* of a text with keys */

typedef struct rv_keyring rv_keyring;

/** Read keys, one a line or separated by commas; blank lines and those that begin with "#" are comments. The first key
 * wraps, all unwrap. source: names the text in errors, which never have a part of a key. *out: one reference.
 * RV_E_INVALID (a line that is not a key, the same key twice, no key at all), RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int rv_keyring_read(rv_str text, const char *source, rv_keyring **out, rv_err **err);
/** The same of a file. RV_E_DENIED: everyone may read or change it. */
RV_MUST_CHECK int rv_keyring_read_file(const char *path, rv_keyring **out, rv_err **err);
/** References are counted atomically: stores of several threads share a ring. NULL is fine. */
rv_keyring *rv_keyring_ref(rv_keyring *ring);
void rv_keyring_unref(rv_keyring *ring);

/** Add the private keys of a file, PEM or DER, that open what is sealed; *ring NULL: a ring without master keys is
 * made. Not for a ring that others have a reference to. RV_E_DENIED: everyone may read or change the file. RV_E_INVALID
 * (no key, a public key, the same key twice), RV_E_LIMIT, RV_E_NOMEM, RV_E_IO. */
RV_MUST_CHECK int rv_keyring_add_private(rv_keyring **ring, const char *path, rv_err **err);
/** The private key that belongs to a public one, borrowed; NULL: the ring has none. */
const struct rv_rsa *rv_keyring_private(const rv_keyring *ring, const struct rv_rsa *seal);

size_t rv_keyring_size(const rv_keyring *ring); /* of master keys; NULL: 0 */
/** The name of key i; key 0 wraps. Borrowed. */
const char *rv_keyring_name(const rv_keyring *ring, size_t i);

/** Append a new master key as base64, and its name. The key is a secret: rv_wipe() it. */
void rv_keyring_make(struct rv_rand rand, rv_buf *out, char name[RV_KEYRING_NAME]);

/** Append the key, wrapped by the first key of the ring for that place. */
void rv_keyring_wrap(const rv_keyring *ring, struct rv_rand rand, rv_str bound, const unsigned char key[RV_CIPHER_KEY],
                     rv_buf *out);
/** Unwrap it by the key of that name. RV_E_DENIED: the ring has none (ring NULL: there are no keys at all). RV_E_IO: it
 * was changed, or wrapped for another place. */
RV_MUST_CHECK int rv_keyring_unwrap(const rv_keyring *ring, const char *name, rv_str bound, rv_str wrapped,
                                    unsigned char key[RV_CIPHER_KEY], rv_err **err);

#endif
