/* Ciphers, keys of RSA, and signatures. Nothing here allocates with GMP, which would end the process when there is no
 * memory. */
#ifndef RV_BASE_CRYPTO_H
#define RV_BASE_CRYPTO_H

#include "coreengine/base/buf.h"
#include "coreengine/base/clock.h"

#include <stdalign.h>

/* AES-256-GCM, AES-256-SIV, and bytes as base64. A text that was changed, or that belongs to another place, does not
 * decrypt. */

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

/* Keys of RSA, and what they seal: 32 random bytes, by OAEP with SHA-256 (RFC 8017), which only the private key opens.
 * Nothing here allocates with GMP, which would end the process when there is no memory. */

#define RV_RSA_MIN_BITS 2048                  /* RFC 7518, section 3.3: a shorter key is refused */
#define RV_RSA_MAX_BITS 8192                  /* of a key; a longer one takes too long to verify with */
#define RV_RSA_MAX      (RV_RSA_MAX_BITS / 8) /* bytes of a modulus */
#define RV_RSA_TEXT     ((size_t)64 * 1024)   /* bytes of a text with keys */

/* A key, public or private; caller's storage. A private one is a secret: rv_wipe() it. */
struct rv_rsa {
    size_t size;                                           /* bytes of the modulus */
    unsigned char modulus[RV_RSA_MAX], secret[RV_RSA_MAX]; /* big-endian, `size` bytes; secret: the private exponent */
    unsigned char exponent[4];
    bool is_private;
};

/** Read the first key of a text as openssl writes it, PEM or DER: "PUBLIC KEY", "RSA PUBLIC KEY", "PRIVATE KEY", "RSA
 * PRIVATE KEY"; *text becomes what is behind it. source names it in errors, which do not show the key. RV_E_INVALID
 * (not such a key, shorter than 2048 bits, a private exponent that does not fit), RV_E_LIMIT (too long), RV_E_NOMEM. */
RV_MUST_CHECK int rv_rsa_read(rv_str *text, const char *source, struct rv_rsa *out, rv_err **err);
/** Append the public part as PEM ("PUBLIC KEY"). */
void rv_rsa_write(const struct rv_rsa *key, rv_buf *out);
/** Are the public parts the same? */
bool rv_rsa_is_same(const struct rv_rsa *a, const struct rv_rsa *b);

/** Seal 32 bytes; out gets key->size bytes. */
RV_MUST_CHECK int rv_rsa_seal(const struct rv_rsa *key, struct rv_rand rand, const unsigned char plain[RV_CIPHER_KEY],
                              unsigned char *out, rv_err **err);
/** Open them by a private key. RV_E_IO: they were changed, or are for another key. */
RV_MUST_CHECK int rv_rsa_open(const struct rv_rsa *key, const unsigned char *sealed, unsigned char plain[RV_CIPHER_KEY],
                              rv_err **err);

/* Signatures by a private key, as tokens have them: ES256 (ECDSA on P-256 with SHA-256) and RS256 (RSA, PKCS #1 v1.5,
 * with SHA-256), of RFC 7518. Nothing here allocates with GMP. */

#define RV_SIGN_SCALAR 32         /* bytes of a private key on P-256, and of a half of its signatures */
#define RV_SIGN_MAX    RV_RSA_MAX /* bytes of a signature */
#define RV_SIGN_SEED   32         /* bytes that a signature takes: no other may have the same ones */

/* A private key; caller's storage, a secret: rv_wipe() it. */
struct rv_signer {
    bool is_rsa; /* else on P-256 */
    struct rv_rsa rsa;
    unsigned char scalar[RV_SIGN_SCALAR]; /* big-endian, above 0 and below the order of the curve */
};

/** Read a private key as openssl writes it, in PEM: "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY". source names it
 * in errors, which do not show it. Errors as of rv_rsa_read(). */
RV_MUST_CHECK int rv_signer_read(rv_str text, const char *source, struct rv_signer *out, rv_err **err);
const char *rv_signer_algorithm(const struct rv_signer *key); /* "ES256" or "RS256" */
/** Append the bytes of the signature of a text. */
RV_MUST_CHECK int rv_sign(const struct rv_signer *key, rv_str text, const unsigned char seed[RV_SIGN_SEED], rv_buf *out,
                          rv_err **err);

#endif
