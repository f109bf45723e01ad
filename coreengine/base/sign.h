/* Signatures by a private key, as tokens have them: ES256 (ECDSA on P-256 with SHA-256) and RS256 (RSA, PKCS #1 v1.5,
 * with SHA-256), of RFC 7518. Nothing here allocates with GMP. */
#ifndef RV_BASE_SIGN_H
#define RV_BASE_SIGN_H

#include "coreengine/base/rsa.h"

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
