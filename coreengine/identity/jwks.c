/* JSON Web Key Sets: public keys from a file, and signatures checked with them. Keys of other kinds and uses are passed
 * over, since providers publish them in the same set; what could not be meant to be there makes the file invalid. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/ecc-curve.h>
#include <nettle/ecdsa.h>
#include <nettle/rsa.h>

#include "coreengine/identity/identity_internal.h"

/* bytes of a key set: MAX_KEYS of the longest fit; a longer one is refused */
#define MAX_FILE     ((size_t)256 << 10)
#define MAX_KEYS     64              /* of one set: providers have two or three; more is refused */
#define MAX_KID      256             /* bytes of a key's id: providers use a hash of 43; a longer one is refused */
#define MIN_RSA_BITS 2048            /* RFC 7518, section 3.3 */
#define MAX_RSA_BITS RV_RSA_MAX_BITS /* a longer key costs a server milliseconds a request */
#define MAX_NUMBER   (MAX_RSA_BITS / 8 + 8) /* bytes of a modulus, with room for zeros in front */
#define POINT        32                     /* bytes of a coordinate on P-256, and of a half of its signatures */

struct jwk {
    enum rv_jwt_alg alg;
    bool has_kid;
    char *kid; /* owned; may have NULs */
    size_t n_kid;
    struct rsa_public_key rsa;
    struct ecc_point point;
};
struct rv_jwks {
    atomic_size_t more_refs; /* than one */
    size_t n;
    struct jwk keys[MAX_KEYS];
};

rv_jwks *identity_jwks_ref(rv_jwks *set)
{
    atomic_fetch_add(&set->more_refs, 1);
    return set;
}

void identity_jwks_unref(rv_jwks *set)
{
    if (set && atomic_fetch_sub(&set->more_refs, 1) > 0)
        return;
    for (size_t i = 0; set && i < set->n; i++) {
        struct jwk *k = &set->keys[i];
        free(k->kid);
        if (k->alg == RV_JWT_RS256)
            rsa_public_key_clear(&k->rsa);
        else
            ecc_point_clear(&k->point);
    }
    free(set);
}

/* --- reading one --- */

static int read_number(json_object *jwk, const char *member, unsigned char out[MAX_NUMBER], size_t *n, rv_err **err)
{
    json_object *v = NULL;

    if (!json_object_object_get_ex(jwk, member, &v) || !json_object_is_type(v, json_type_string))
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is missing or not a string", member);
    rv_str text = rv_json_str(v);
    if (text.len > (size_t)MAX_NUMBER * 4 / 3 || !identity_base64url_read(text, out, n) || *n == 0)
        return RV_FAIL(err, RV_E_INVALID, "\"%s\" is not the base64url text of a number of at most %d bits", member,
                       MAX_RSA_BITS);
    return 0;
}

static int read_rsa(json_object *jwk, struct rsa_public_key *out, rv_err **err)
{
    unsigned char modulus[MAX_NUMBER], exponent[MAX_NUMBER];
    size_t n = 0, e = 0;
    int rc = read_number(jwk, "n", modulus, &n, err);

    if (rc == 0)
        rc = read_number(jwk, "e", exponent, &e, err);
    if (rc < 0)
        return rc;
    rsa_public_key_init(out);
    nettle_mpz_set_str_256_u(out->n, n, modulus);
    nettle_mpz_set_str_256_u(out->e, e, exponent);
    size_t bits = mpz_sizeinbase(out->n, 2);
    if (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS)
        rc = RV_FAIL(err, RV_E_INVALID, "an RSA key of %zu bits: %d to %d are allowed", bits, MIN_RSA_BITS,
                     MAX_RSA_BITS);
    else if (mpz_even_p(out->n) || mpz_even_p(out->e) || mpz_cmp_ui(out->e, 3) < 0 || mpz_sizeinbase(out->e, 2) > 32 ||
             !rsa_public_key_prepare(out))
        rc = RV_FAIL(err, RV_E_INVALID, "\"n\" and \"e\" are not those of an RSA key");
    if (rc < 0)
        rsa_public_key_clear(out);
    return rc;
}

static int read_point(json_object *jwk, struct ecc_point *out, rv_err **err)
{
    unsigned char bytes[2][MAX_NUMBER];
    size_t n[2] = {0, 0};
    mpz_t x, y;
    int rc = read_number(jwk, "x", bytes[0], &n[0], err);

    if (rc == 0)
        rc = read_number(jwk, "y", bytes[1], &n[1], err);
    if (rc == 0 && (n[0] != POINT || n[1] != POINT))
        rc = RV_FAIL(err, RV_E_INVALID, "\"x\" and \"y\" of a P-256 key have 32 bytes each");
    if (rc < 0)
        return rc;
    ecc_point_init(out, nettle_get_secp_256r1());
    nettle_mpz_init_set_str_256_u(x, POINT, bytes[0]);
    nettle_mpz_init_set_str_256_u(y, POINT, bytes[1]);
    if (!ecc_point_set(out, x, y)) {
        rc = RV_FAIL(err, RV_E_INVALID, "\"x\" and \"y\" are not a point on P-256");
        ecc_point_clear(out);
    }
    mpz_clear(x);
    mpz_clear(y);
    return rc;
}

static bool member_is(json_object *jwk, const char *member, const char *text)
{
    json_object *v = NULL;

    return json_object_object_get_ex(jwk, member, &v) && rv_str_is(rv_json_str(v), text);
}

static bool has(json_object *jwk, const char *member)
{
    return json_object_object_get_ex(jwk, member, NULL);
}

/* Whether it is there to check signatures. */
static bool is_for_verifying(json_object *jwk)
{
    json_object *ops = rv_json_get_arr(jwk, "key_ops");
    bool verifies = !has(jwk, "key_ops");

    for (size_t i = 0; ops && i < json_object_array_length(ops); i++)
        verifies = verifies || rv_str_is(rv_json_str(json_object_array_get_idx(ops, i)), "verify");
    return verifies && (!has(jwk, "use") || member_is(jwk, "use", "sig"));
}

/* 1: a key that is of no use here. */
static int kind_of(json_object *jwk, enum rv_jwt_alg *alg, rv_err **err)
{
    bool is_rsa = member_is(jwk, "kty", "RSA"), is_ec = member_is(jwk, "kty", "EC");

    if (member_is(jwk, "kty", "oct")) {
        RV_FAIL(err, RV_E_INVALID, "a secret (\"kty\":\"oct\") is among the public keys");
        rv_err_set_hint(err, "give the secret of HS256 with --jwt-secret-file, and keep it out of the file");
        return RV_E_INVALID;
    }
    if (has(jwk, "d"))
        return RV_FAIL(err, RV_E_INVALID, "it is a private key (it has \"d\"): leave public members only");
    *alg = is_rsa ? RV_JWT_RS256 : RV_JWT_ES256;
    if ((!is_rsa && !(is_ec && member_is(jwk, "crv", "P-256"))) || !is_for_verifying(jwk))
        return 1;
    return has(jwk, "alg") && !member_is(jwk, "alg", is_rsa ? "RS256" : "ES256");
}

static int read_kid(json_object *jwk, struct jwk *k, rv_err **err)
{
    json_object *v = NULL;

    k->has_kid = json_object_object_get_ex(jwk, "kid", &v);
    if (!k->has_kid)
        return 0;
    rv_str kid = rv_json_str(v);
    if (!json_object_is_type(v, json_type_string) || kid.len > MAX_KID)
        return RV_FAIL(err, RV_E_INVALID, "\"kid\" is not a string of at most %d bytes", MAX_KID);
    k->kid = rv_str_dup(kid);
    k->n_kid = kid.len;
    return k->kid ? 0 : RV_FAIL(err, RV_E_NOMEM, "read \"kid\"");
}

/* Adds it when it is of use. */
static int add_key(rv_jwks *set, json_object *jwk, rv_err **err)
{
    struct jwk k = {.has_kid = false};

    if (!json_object_is_type(jwk, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "it is not an object");
    int rc = kind_of(jwk, &k.alg, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = read_kid(jwk, &k, err);
    if (rc == 0 && k.has_kid && identity_jwks_find(set, k.alg, (rv_str){k.kid, k.n_kid}) >= 0)
        rc = RV_FAIL(err, RV_E_INVALID, "another key has the same \"kid\"");
    if (rc == 0)
        rc = k.alg == RV_JWT_RS256 ? read_rsa(jwk, &k.rsa, err) : read_point(jwk, &k.point, err);
    if (rc < 0)
        free(k.kid);
    else
        set->keys[set->n++] = k;
    return rc;
}

/* --- the set --- */

static int add_keys(rv_jwks *set, json_object *root, rv_err **err)
{
    json_object *keys = rv_json_get_arr(root, "keys");
    int rc = 0;

    if (!keys)
        return RV_FAIL(err, RV_E_INVALID, "it is not a JSON Web Key Set: an object with an array \"keys\"");
    size_t n = json_object_array_length(keys);
    if (n > MAX_KEYS)
        return RV_FAIL(err, RV_E_LIMIT, "%zu keys are more than %d", n, MAX_KEYS);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = add_key(set, json_object_array_get_idx(keys, i), err);
        if (rc < 0)
            RV_WRAP(err, rc, "key %zu", i + 1);
    }
    if (rc == 0 && set->n == 0)
        rc = RV_FAIL(err, RV_E_INVALID, "none of its keys can be used: RS256 and ES256 (P-256) can");
    return rc;
}

int identity_jwks_parse(rv_str text, rv_jwks **out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = MAX_FILE, .max_depth = 8, .what = "key set"};
    rv_jwks *set = calloc(1, sizeof *set);
    json_object *root = NULL;

    if (!set)
        return RV_FAIL(err, RV_E_NOMEM, "read a key set");
    int rc = rv_json_parse(text, &opts, &root, err);
    if (rc == 0)
        rc = json_object_is_type(root, json_type_object)
                 ? add_keys(set, root, err)
                 : RV_FAIL(err, RV_E_INVALID, "it is not a JSON Web Key Set: an object with an array \"keys\"");
    json_object_put(root);
    if (rc < 0)
        identity_jwks_unref(set);
    else
        *out = set;
    return rc;
}

int identity_jwks_read(const char *path, rv_jwks **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_FILE);
    int rc = rv_file_read(path, &text, err);

    if (rc == 0)
        rc = identity_jwks_parse(rv_buf_str(&text), out, err);
    rv_buf_fini(&text);
    if (rc == 0)
        return 0;
    if (rc == RV_E_PARSE || rc == RV_E_INVALID)
        rv_err_set_hint(
            err, "write a JSON Web Key Set, {\"keys\": [...]}, as the jwks_uri of who issues the tokens answers it");
    return RV_WRAP(err, rc, "read the keys of tokens from \"%s\"", path);
}

int identity_jwks_find(const rv_jwks *set, enum rv_jwt_alg alg, rv_str kid)
{
    int found = -1;

    for (size_t i = 0; i < set->n; i++) {
        const struct jwk *k = &set->keys[i];
        if (k->alg != alg || (kid.ptr && !(k->has_kid && rv_str_eq(kid, (rv_str){k->kid, k->n_kid}))))
            continue;
        if (found >= 0)
            return -2;
        found = (int)i;
    }
    return found;
}

static bool verify_point(const struct ecc_point *point, const unsigned char *digest, const unsigned char *signature)
{
    struct dsa_signature s;

    dsa_signature_init(&s);
    nettle_mpz_set_str_256_u(s.r, POINT, signature);
    nettle_mpz_set_str_256_u(s.s, POINT, signature + POINT);
    bool holds = ecdsa_verify(point, RV_DIGEST, digest, &s);
    dsa_signature_clear(&s);
    return holds;
}

bool identity_jwks_verify(const rv_jwks *set, int key, const unsigned char digest[RV_DIGEST],
                          const unsigned char *signature, size_t n)
{
    const struct jwk *k = &set->keys[key];
    mpz_t s;

    if (k->alg == RV_JWT_ES256) /* raw, not DER */
        return n == (size_t)2 * POINT && verify_point(&k->point, digest, signature);
    if (n != k->rsa.size)
        return false;
    nettle_mpz_init_set_str_256_u(s, n, signature);
    bool holds = rsa_sha256_verify_digest(&k->rsa, digest, s);
    mpz_clear(s);
    return holds;
}
