/* Shared by rsa.c and rsa_read.c. */
#ifndef RV_BASE_RSA_INTERNAL_H
#define RV_BASE_RSA_INTERNAL_H

#include "coreengine/base/rsa.h"

/** Raise a number of key->size bytes, which becomes the power. */
RV_MUST_CHECK int rv_rsa_power(const struct rv_rsa *key, bool is_secret, unsigned char *number, rv_err **err);

#endif
