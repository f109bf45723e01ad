/* Shared by rsa.c, rsa_read.c and sign.c. */
#ifndef RV_BASE_RSA_INTERNAL_H
#define RV_BASE_RSA_INTERNAL_H

#include "coreengine/base/crypto.h"

/** Raise a number of key->size bytes, which becomes the power. */
RV_MUST_CHECK int base_rsa_power(const struct rv_rsa *key, bool is_secret, unsigned char *number, rv_err **err);
/** Read a private key on P-256 (32 bytes) of a text in PEM. *is_one false: it is a key of another kind, or damaged,
 * which rv_rsa_read() says. */
RV_MUST_CHECK int base_ec_read(rv_str text, const char *source, bool *is_one, unsigned char scalar[32], rv_err **err);

#endif
