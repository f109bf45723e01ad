/* Keys from anywhere: what is accepted is written as PEM and reads back the same, and its public part seals. */
#include "coreengine/base/base.h"
#include "tests/kit/fuzz.h"

#include <stdint.h>
#include <stdlib.h>

RV_FUZZ_TARGET(rsa)
{
    rv_str text = {(const char *)data, size};
    struct rv_rsa key, again;
    rv_buf pem = RV_BUF_INIT(RV_RSA_TEXT);
    unsigned char sealed[RV_RSA_MAX], plain[RV_CIPHER_KEY] = {1};

    for (int i = 0; i < 2 && rv_rsa_read(&text, "a key", &key, NULL) == 0; i++) {
        require(text.len < size && key.size >= RV_RSA_MIN_BITS / 8 && key.size <= RV_RSA_MAX);
        rv_buf_clear(&pem);
        rv_rsa_write(&key, &pem);
        rv_str written = rv_buf_str(&pem);
        require(rv_rsa_read(&written, "a key", &again, NULL) == 0 && rv_rsa_is_same(&key, &again));
        require(rv_rsa_seal(&key, rv_rand_system(), plain, sealed, NULL) == 0);
        if (text.len == 0)
            break;
    }
    rv_buf_fini(&pem);
    return 0;
}
