/* AES-256-GCM, AES-256-SIV, and bytes as base64. A text that was changed, or that belongs to another place, does not
 * decrypt. */
#ifndef RV_BASE_CIPHER_H
#define RV_BASE_CIPHER_H

#include "coreengine/base/buf.h"

#include <stdalign.h>

#define RV_CIPHER_KEY   32 /* bytes, of AES-256 */
#define RV_CIPHER_NONCE 12 /* bytes, as GCM takes it */
#define RV_CIPHER_TAG   16 /* bytes, the whole tag of GCM */

/* A key, ready for use; caller's storage. It has no pointers and is a secret: rv_wipe() it. */
struct rv_cipher {
    alignas(16) unsigned char state[5120]; /* opaque */
};
void rv_cipher_init(struct rv_cipher *c, const unsigned char key[RV_CIPHER_KEY]);
/** Encrypt; out gets plain.len + RV_CIPHER_TAG bytes. A nonce must not be used twice with one key. bound: what else has
 * to be the same when it is decrypted. c changes while it works: one thread. */
void rv_cipher_encrypt(struct rv_cipher *c, const unsigned char nonce[RV_CIPHER_NONCE], rv_str bound, rv_str plain,
                       unsigned char *out);
/** Decrypt what that made (at least RV_CIPHER_TAG bytes); out gets kept.len - RV_CIPHER_TAG bytes. False: another key,
 * nonce or bound text, or changed bytes; out is zeroed then. */
RV_MUST_CHECK bool rv_cipher_decrypt(struct rv_cipher *c, const unsigned char nonce[RV_CIPHER_NONCE], rv_str bound,
                                     rv_str kept, unsigned char *out);

/* AES-256-SIV (RFC 5297, with a nonce of one zero byte): equal texts with equal bound texts give equal bytes, and
 * nothing else is told of them. Its key is derived from another one; caller's storage, a secret. */
struct rv_siv {
    alignas(16) unsigned char state[1024]; /* opaque */
};
void rv_siv_init(struct rv_siv *c, const unsigned char key[RV_CIPHER_KEY]);
/** Encrypt; out gets RV_CIPHER_TAG + plain.len bytes. */
void rv_siv_encrypt(const struct rv_siv *c, rv_str bound, rv_str plain, unsigned char *out);
/** Decrypt (at least RV_CIPHER_TAG bytes); out gets kept.len - RV_CIPHER_TAG bytes, zeroed when it is false. */
RV_MUST_CHECK bool rv_siv_decrypt(const struct rv_siv *c, rv_str bound, rv_str kept, unsigned char *out);
/** Overwrite secrets; the compiler does not leave it out. */
void rv_wipe(void *bytes, size_t len);

/** Append the bytes as base64, with padding. */
void rv_base64_write(rv_str bytes, rv_buf *out);
/** Append the bytes of a text that rv_base64_write() could have written. False: it could not. */
RV_MUST_CHECK bool rv_base64_read(rv_str text, rv_buf *out);

#endif
