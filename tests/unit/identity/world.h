/* What the tests of identities share: tokens that are signed here, and requests. */
#ifndef RV_TESTS_IDENTITY_WORLD_H
#define RV_TESTS_IDENTITY_WORLD_H

#include <check.h>
#include <stdio.h>
#include <unistd.h>

#include "coreengine/identity/identity_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/identity/keys.h"

#define T0     INT64_C(1700000000) /* seconds */
#define T0_US  (T0 * 1000000)
#define SECRET "a secret of at least thirty-two bytes"

/* Public keys: JWKS(KEY_RSA, KEY_EC) and the like. */
#define JWK_RSA(kid, more)                                                                                             \
    "{\"kty\":\"RSA\",\"kid\":\"" kid "\",\"n\":\"" KEY_RSA_N "\",\"e\":\"" KEY_RSA_E "\"" more "}"
#define JWK_RSA_2(kid) "{\"kty\":\"RSA\",\"kid\":\"" kid "\",\"n\":\"" KEY_RSA_2_N "\",\"e\":\"AQAB\"}"
#define JWK_EC(kid, more)                                                                                              \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"" kid "\",\"x\":\"" KEY_EC_X "\",\"y\":\"" KEY_EC_Y "\"" more "}"
#define JWKS(list) "{\"keys\":[" list "]}"

/** A token: header and claims as given, signed as alg (HS256, RS256, ES256) says. Static memory, eight in turn. */
const char *token_of(const char *alg, const char *header, const char *claims);
/** The same with parts that are encoded already, and HS256. */
const char *token_of_parts(const char *header, const char *claims);
/** A good one of HS256 that expires at T0 + 100. */
#define HEADER "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"
#define CLAIMS "{\"sub\":\"ada\",\"tenant_id\":\"acme\",\"exp\":1700000100}"
#define GOOD   token_of("HS256", HEADER, CLAIMS)
const char *encoded(const char *text); /* base64url; static memory, eight in turn */

/* A request: headers by name, "" ends them. */
struct request {
    struct rv_caller caller;
    struct {
        const char *name, *value;
    } headers[48];
    size_t n;
};
/** From 127.0.0.1 to localhost, POST, with those headers: name, value, ..., NULL. */
void request_init(struct request *r, ...);
void request_add(struct request *r, const char *name, const char *value);

TCase *bytes_case(void);
TCase *jwt_case(void);
TCase *jwks_case(void);
TCase *net_case(void);
TCase *auth_case(void);
TCase *ask_case(void);
TCase *cors_case(void);
TCase *rate_case(void);

#endif
