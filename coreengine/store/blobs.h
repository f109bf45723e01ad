/* The fourth part of the store: blobs and bundles, bytes by the SHA-256 of their content. */
#ifndef RV_STORE_BLOBS_H
#define RV_STORE_BLOBS_H

#include "coreengine/store/handle.h"

/** Dated by the system's clock; writing an existing blob renews its date: see rv_store_sweep(). */
RV_MUST_CHECK int rv_store_put_blob(rv_store *s, rv_str data, char hash[RV_STORE_HASH_MAX], rv_err **err);
/** Appended to out. RV_E_NOT_FOUND; RV_E_INVALID when the bytes are not those of the hash. */
RV_MUST_CHECK int rv_store_get_blob(rv_store *s, const char *hash, rv_buf *out, rv_err **err);

#endif
