/* Keys of RSA, and what they seal: 32 random bytes, by OAEP with SHA-256 (RFC 8017), which only the private key opens.
 * Nothing here allocates with GMP, which would end the process when there is no memory. */
#ifndef RV_BASE_RSA_H
#define RV_BASE_RSA_H

#include "coreengine/base/buf.h"
#include "coreengine/base/cipher.h"
#include "coreengine/base/clock.h"

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
bool rv_rsa_same(const struct rv_rsa *a, const struct rv_rsa *b);

/** Seal 32 bytes; out gets key->size bytes. */
RV_MUST_CHECK int rv_rsa_seal(const struct rv_rsa *key, struct rv_rand rand, const unsigned char plain[RV_CIPHER_KEY],
                              unsigned char *out, rv_err **err);
/** Open them by a private key. RV_E_IO: they were changed, or are for another key. */
RV_MUST_CHECK int rv_rsa_open(const struct rv_rsa *key, const unsigned char *sealed, unsigned char plain[RV_CIPHER_KEY],
                              rv_err **err);

#endif
