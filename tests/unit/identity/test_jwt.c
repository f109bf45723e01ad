/* Tokens: each rule with the token that breaks it and nothing else. */
#include "tests/unit/identity/world.h"

#define BOTH_KEYS JWKS(JWK_RSA("r1", "") "," JWK_EC("e1", ""))

static const char *verdict(const char *token, const char *issuer, const char *audience, int64_t now_us)
{
    static char why[700];
    struct rv_jwt jwt;
    rv_jwks *keys = NULL;

    ck_assert_int_eq(identity_jwks_parse(RV_STR_LIT(BOTH_KEYS), &keys, NULL), 0);
    const struct rv_jwt_rules rules = {
        .secret = RV_STR_LIT(SECRET), .keys = keys, .issuer = issuer, .audience = audience, .skew_s = 30};
    int rc = identity_jwt_verify(&rules, rv_str_of(token), now_us, &jwt, NULL);
    identity_jwks_unref(keys);
    if (rc == 0)
        snprintf(why, sizeof why, "ok %s/%s", jwt.tenant, jwt.subject);
    else
        snprintf(why, sizeof why, "%s", jwt.why);
    ck_assert(rc == 0 || rc == RV_E_DENIED);
    return why;
}

static const struct {
    const char *alg, *header, *claims, *out;
} tokens[] = {
    {"HS256", HEADER, CLAIMS, "ok acme/ada"},
    {"RS256", "{\"alg\":\"RS256\",\"kid\":\"r1\"}", CLAIMS, "ok acme/ada"},
    {"ES256", "{\"alg\":\"ES256\",\"kid\":\"e1\",\"typ\":\"at+jwt\"}", CLAIMS, "ok acme/ada"},
    {"RS256", "{\"alg\":\"RS256\"}", CLAIMS, "ok acme/ada"}, /* one key alone fits */
    {"HS256", "{\"alg\":\"HS256\",\"kid\":\"whatever\"}", CLAIMS, "ok acme/ada"},
    {"HS256", "{\"alg\":\"HS256\",\"typ\":\"AT+JWT\"}", CLAIMS, "ok acme/ada"},
    {"HS256", "{\"alg\":\"HS256\",\"typ\":\"application/at+jwt\",\"jku\":\"https://evil.example\"}", CLAIMS,
     "ok acme/ada"}, /* never followed */
    /* the header */
    {"HS256", "{\"alg\":\"none\"}", CLAIMS, "the algorithm of the token is not one of HS256, RS256, ES256"},
    {"HS256", "{\"alg\":\"nOnE\"}", CLAIMS, "the algorithm of the token is not one of HS256, RS256, ES256"},
    {"HS256", "{\"alg\":\"hs256\"}", CLAIMS, "the algorithm of the token is not one of HS256, RS256, ES256"},
    {"HS256", "{\"alg\":\"HS384\"}", CLAIMS, "the algorithm of the token is not one of HS256, RS256, ES256"},
    {"HS256", "{\"alg\":[\"HS256\"]}", CLAIMS, "the algorithm of the token is not one of HS256, RS256, ES256"},
    {"HS256", "{\"alg\":\"HS256\\u0000\"}", CLAIMS, "the algorithm of the token is not one of HS256, RS256, ES256"},
    {"HS256", "{\"typ\":\"JWT\"}", CLAIMS, "the token names no algorithm"},
    {"HS256", "{\"alg\":\"HS256\",\"alg\":\"HS256\"}", CLAIMS, "the header of the token is not a JSON object"},
    {"HS256", "{\"alg\":\"RS256\",\"alg\":\"HS256\"}", CLAIMS, "the header of the token is not a JSON object"},
    {"HS256", "[\"alg\"]", CLAIMS, "the header of the token is not a JSON object"},
    {"HS256", "{\"alg\":\"HS256\"} x", CLAIMS, "the header of the token is not a JSON object"},
    {"HS256", "{\"alg\":\"HS256\",\"crit\":[]}", CLAIMS, "the token has \"crit\""},
    {"HS256", "{\"alg\":\"HS256\",\"crit\":[\"exp\"],\"exp\":1}", CLAIMS, "the token has \"crit\""},
    {"HS256", "{\"alg\":\"HS256\",\"typ\":\"dpop+jwt\"}", CLAIMS, "the type of the token is neither JWT nor at+jwt"},
    {"HS256", "{\"alg\":\"HS256\",\"typ\":7}", CLAIMS, "the type of the token is neither JWT nor at+jwt"},
    {"HS256", "{\"alg\":\"HS256\",\"kid\":7}", CLAIMS, "\"kid\" is not a string"},
    /* keys */
    {"RS256", "{\"alg\":\"RS256\",\"kid\":\"R1\"}", CLAIMS, "there is no key for the token (kid \"R1\")"},
    {"RS256", "{\"alg\":\"RS256\",\"kid\":\"\"}", CLAIMS, "there is no key for the token (kid \"\")"},
    {"RS256", "{\"alg\":\"RS256\",\"kid\":\"e1\"}", CLAIMS, "there is no key for the token (kid \"e1\")"},
    {"RS256", "{\"alg\":\"RS256\",\"kid\":\"a\\nb\"}", CLAIMS, "there is no key for the token (kid \"a?b\")"},
    {"HS256", "{\"alg\":\"RS256\",\"kid\":\"r1\"}", CLAIMS, "the signature is wrong (kid \"r1\")"},
    {"RS256", "{\"alg\":\"HS256\"}", CLAIMS, "the signature is wrong"},
    {"RS256", "{\"alg\":\"ES256\"}", CLAIMS, "the signature is wrong"},
    /* claims */
    {"HS256", HEADER, "[]", "the claims of the token are not a JSON object"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"sub\":\"b\",\"exp\":1700000100}",
     "the claims of the token are not a JSON object"},
    {"HS256", HEADER, "{\"sub\":\"a\"}", "\"exp\" is missing or not a number"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":\"1700000100\"}", "\"exp\" is missing or not a number"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":null}", "\"exp\" is missing or not a number"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":1700000100.5}", "ok /a"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":1699999970}", "the token has expired"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":1699999971}", "ok /a"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":-1e300}", "the token has expired"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":1700000100,\"nbf\":1700000030}", "ok /a"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":1700000100,\"nbf\":1700000031}", "the token is not valid yet"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":1700000100,\"nbf\":true}", "\"nbf\" is not a number"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":1700000100,\"iat\":1700000031}", "the token was issued in the future"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"exp\":1700000100,\"iat\":\"x\"}", "\"iat\" is not a number"},
    {"HS256", HEADER, "{\"exp\":1700000100}", "\"sub\" is missing or not an id"},
    {"HS256", HEADER, "{\"sub\":\"\",\"exp\":1700000100}", "\"sub\" is missing or not an id"},
    {"HS256", HEADER, "{\"sub\":7,\"exp\":1700000100}", "\"sub\" is missing or not an id"},
    {"HS256", HEADER, "{\"sub\":\"a\\u0000b\",\"exp\":1700000100}", "\"sub\" is missing or not an id"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"tenant_id\":\"\",\"exp\":1700000100}", "\"tenant_id\" is not an id"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"tenant_id\":null,\"exp\":1700000100}", "\"tenant_id\" is not an id"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"type\":\"access\",\"exp\":1700000100}", "ok /a"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"type\":\"refresh\",\"exp\":1700000100}", "the token is not an access token"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"type\":1,\"exp\":1700000100}", "the token is not an access token"},
    {"HS256", HEADER, "{\"sub\":\"a\",\"scope\":7,\"exp\":1700000100}",
     "the scopes of the token are neither a text nor an array"},
};
START_TEST(each_rule_has_its_token)
{
    const char *token = token_of(tokens[_i].alg, tokens[_i].header, tokens[_i].claims);

    ck_assert_str_eq(verdict(token, NULL, NULL, T0_US), tokens[_i].out);
}
END_TEST

static const struct {
    const char *claims, *issuer, *audience, *out;
} parties[] = {
    {"\"iss\":\"me\"", "me", NULL, "ok"},
    {"\"iss\":\"me/\"", "me", NULL, "the token is of another issuer"},
    {"\"iss\":[\"me\"]", "me", NULL, "the token is of another issuer"},
    {"\"x\":1", "me", NULL, "the token is of another issuer"},
    {"\"aud\":\"a\"", NULL, "a", "ok"},
    {"\"aud\":\"b\"", NULL, "a b", "ok"},
    {"\"aud\":[\"x\",\"b\"]", NULL, "a b", "ok"},
    {"\"aud\":[]", NULL, "a", "the token is for another audience"},
    {"\"aud\":\"ab\"", NULL, "a", "the token is for another audience"},
    {"\"aud\":7", NULL, "a", "the token is for another audience"},
    {"\"aud\":[[\"a\"]]", NULL, "a", "the token is for another audience"},
    {"\"x\":1", NULL, "a", "the token has no audience"},
    {"\"aud\":\"b\"", NULL, NULL, "ok"}, /* not set up: not checked */
};
START_TEST(a_token_is_for_whom_it_says)
{
    char claims[300];

    snprintf(claims, sizeof claims, "{\"sub\":\"a\",\"exp\":1700000100,%s}", parties[_i].claims);
    const char *out = verdict(token_of("HS256", HEADER, claims), parties[_i].issuer, parties[_i].audience, T0_US);
    ck_assert_int_eq(strncmp(out, parties[_i].out, strlen(parties[_i].out)), 0);
}
END_TEST

START_TEST(a_token_has_three_parts_in_one_spelling)
{
    static const char bad[] = "a part of the token is not base64url in its one spelling";
    char text[20000];

    ck_assert_str_eq(verdict("", NULL, NULL, T0_US), "the token does not have three parts");
    ck_assert_str_eq(verdict("a.b", NULL, NULL, T0_US), "the token does not have three parts");
    snprintf(text, sizeof text, "%s.x", GOOD);
    ck_assert_str_eq(verdict(text, NULL, NULL, T0_US), "the token does not have three parts");
    snprintf(text, sizeof text, "%s=", GOOD);
    ck_assert_str_eq(verdict(text, NULL, NULL, T0_US), bad);
    ck_assert_str_eq(verdict("..", NULL, NULL, T0_US), bad);
    snprintf(text, sizeof text, "%s.%s.", encoded(HEADER), encoded(CLAIMS));
    ck_assert_str_eq(verdict(text, NULL, NULL, T0_US), bad);
    /* The last of 43 characters has two bits to spare. */
    snprintf(text, sizeof text, "%s", GOOD);
    text[strlen(text) - 1]++;
    ck_assert_str_eq(verdict(text, NULL, NULL, T0_US), bad);
    /* Spellings of the signed parts other than the usual one are refused even when they are signed. */
    snprintf(text, sizeof text, "%s=", encoded(HEADER));
    ck_assert_str_eq(verdict(token_of_parts(text, encoded(CLAIMS)), NULL, NULL, T0_US), bad);
    memset(text, 'A', sizeof text - 1);
    text[sizeof text - 1] = 0;
    ck_assert_str_eq(verdict(text, NULL, NULL, T0_US), "the token is longer than 8 KB");
}
END_TEST

START_TEST(every_changed_character_breaks_the_signature)
{
    static const struct {
        const char *alg, *header;
    } kinds[] = {{"HS256", HEADER}, {"ES256", "{\"alg\":\"ES256\"}"}, {"RS256", "{\"alg\":\"RS256\"}"}};
    char text[16384];

    snprintf(text, sizeof text, "%s", token_of(kinds[_i].alg, kinds[_i].header, CLAIMS));
    ck_assert_str_eq(verdict(text, NULL, NULL, T0_US), "ok acme/ada");
    for (size_t i = 0, n = strlen(text), step = _i == 0 ? 1 : 7; i < n; i += step) {
        char was = text[i];
        text[i] = was == 'A' ? 'B' : 'A';
        ck_assert_int_ne(strncmp(verdict(text, NULL, NULL, T0_US), "ok", 2), 0);
        text[i] = was;
    }
}
END_TEST

START_TEST(a_signature_in_der_is_refused)
{
    /* 70 bytes that begin as DER does */
    char text[16384];

    snprintf(text, sizeof text,
             "%s.%s.MEUCIQDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
             "AAAAAAAA",
             encoded("{\"alg\":\"ES256\"}"), encoded(CLAIMS));
    ck_assert_str_eq(verdict(text, NULL, NULL, T0_US), "the signature is wrong");
}
END_TEST

START_TEST(an_end_counts_to_the_microsecond)
{
    ck_assert_str_eq(verdict(GOOD, NULL, NULL, T0_US + 129999999), "ok acme/ada");
    ck_assert_str_eq(verdict(GOOD, NULL, NULL, T0_US + 130000000), "the token has expired");
}
END_TEST

START_TEST(without_its_key_an_algorithm_is_refused)
{
    const struct rv_jwt_rules rules = {.skew_s = 0};
    struct rv_jwt jwt;

    ck_assert_int_eq(identity_jwt_verify(&rules, rv_str_of(GOOD), T0_US, &jwt, NULL), RV_E_DENIED);
    ck_assert_str_eq(jwt.why, "no secret for HS256 is set up");
    const char *token = token_of("RS256", "{\"alg\":\"RS256\"}", CLAIMS);
    ck_assert_int_eq(identity_jwt_verify(&rules, rv_str_of(token), T0_US, &jwt, NULL), RV_E_DENIED);
    ck_assert_str_eq(jwt.why, "there is no key for the token");
}
END_TEST

static const struct {
    const char *claims;
    bool has;
    const char *scopes, *email, *name;
} what[] = {
    {"\"x\":1", false, "", "", ""},
    {"\"scope\":\"openid chat runs:read\"", true, "chat runs:read", "", ""},
    {"\"scopes\":[\"chat\",7,\"all\"]", true, "chat", "", ""}, /* words for several scopes are not scopes */
    {"\"scopes\":[]", true, "", "", ""},
    {"\"email\":\"a@example.com\",\"name\":\"Ada L.\"", false, "", "a@example.com", "Ada L."},
    {"\"email\":\"a\\nb\",\"name\":7", false, "", "", ""},
};
START_TEST(claims_say_who_it_is)
{
    rv_buf scopes = RV_BUF_INIT(1000);
    struct rv_jwt jwt;
    char claims[300];

    snprintf(claims, sizeof claims, "{\"sub\":\"a\",\"exp\":1700000100,%s}", what[_i].claims);
    const struct rv_jwt_rules rules = {.secret = RV_STR_LIT(SECRET)};
    ck_assert_int_eq(identity_jwt_verify(&rules, rv_str_of(token_of("HS256", HEADER, claims)), T0_US, &jwt, NULL), 0);
    rv_scopes_write(jwt.scopes, &scopes);
    ck_assert_str_eq(rv_buf_cstr(&scopes), what[_i].scopes);
    ck_assert_int_eq(jwt.has_scopes, what[_i].has);
    ck_assert_str_eq(jwt.email, what[_i].email);
    ck_assert_str_eq(jwt.name, what[_i].name);
    rv_buf_fini(&scopes);
}
END_TEST

TCase *jwt_case(void)
{
    TCase *tc = tcase_create("jwt");

    tcase_add_loop_test(tc, each_rule_has_its_token, 0, RV_COUNT(tokens));
    tcase_add_loop_test(tc, a_token_is_for_whom_it_says, 0, RV_COUNT(parties));
    tcase_add_test(tc, a_token_has_three_parts_in_one_spelling);
    tcase_add_loop_test(tc, every_changed_character_breaks_the_signature, 0, 3);
    tcase_add_test(tc, a_signature_in_der_is_refused);
    tcase_add_test(tc, an_end_counts_to_the_microsecond);
    tcase_add_test(tc, without_its_key_an_algorithm_is_refused);
    tcase_add_loop_test(tc, claims_say_who_it_is, 0, RV_COUNT(what));
    return tc;
}

/* --- sets of keys --- */

static const struct {
    const char *text, *out; /* places of the only keys of RS256 and of ES256, -1: none; or a part of the error */
} key_sets[] = {
    {JWKS(JWK_RSA("r1", "")), "0/-1"},
    {JWKS(JWK_RSA("r1", ",\"use\":\"sig\",\"alg\":\"RS256\",\"key_ops\":[\"verify\"]") "," JWK_EC("r1", "")), "0/1"},
    {JWKS(JWK_RSA("r1", "") "," JWK_RSA("r2", ",\"use\":\"enc\"")), "0/-1"},
    {JWKS(JWK_RSA("r1", "") "," JWK_RSA("r2", ",\"alg\":\"RS512\"")), "0/-1"},
    {JWKS(JWK_RSA("r1", "") "," JWK_RSA("r2", ",\"key_ops\":[\"encrypt\"]")), "0/-1"},
    {JWKS(JWK_EC("e1", "") ",{\"kty\":\"OKP\",\"crv\":\"Ed25519\"},{\"kty\":\"EC\",\"crv\":\"P-521\"}"), "-1/0"},
    {JWKS(JWK_RSA("r1", ",\"use\":\"enc\"")), "none of its keys can be used"},
    {JWKS(""), "none of its keys can be used"},
    {JWKS("{\"kty\":\"oct\",\"k\":\"AAAA\"}"), "a secret (\"kty\":\"oct\") is among the public keys"},
    {JWKS(JWK_EC("e1", ",\"d\":\"AA\"")), "it is a private key"},
    {JWKS(JWK_RSA("r1", "") "," JWK_RSA_2("r1")), "another key has the same \"kid\""},
    {JWKS("{\"kty\":\"RSA\",\"n\":\"" KEY_SMALL_N "\",\"e\":\"AQAB\"}"), "an RSA key of 1024 bits"},
    {JWKS("{\"kty\":\"RSA\",\"n\":\"" KEY_RSA_N "\",\"e\":\"AQ\"}"), "not those of an RSA key"},
    {JWKS("{\"kty\":\"RSA\",\"n\":\"" KEY_RSA_N "\",\"e\":\"BA\"}"), "not those of an RSA key"},
    {JWKS("{\"kty\":\"RSA\",\"n\":\"" KEY_RSA_N "=\",\"e\":\"AQAB\"}"), "\"n\" is not the base64url text"},
    {JWKS("{\"kty\":\"RSA\",\"e\":\"AQAB\"}"), "\"n\" is missing"},
    {JWKS("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" KEY_EC_X "\",\"y\":\"" KEY_EC_X "\"}"), "not a point on P-256"},
    {JWKS("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"" KEY_EC_Y "\"}"), "have 32 bytes each"},
    {JWKS("{\"kty\":\"RSA\",\"kid\":7,\"n\":\"AA\",\"e\":\"AQAB\"}"), "\"kid\" is not a string"},
    {JWKS("7"), "key 1: it is not an object"},
    {"{\"keys\":{}}", "not a JSON Web Key Set"},
    {"[]", "not a JSON Web Key Set"},
    {"{\"keys\":[],\"keys\":[]}", "keys"},
    {"", "key set"},
};
START_TEST(a_set_of_keys_is_read_or_refused_as_a_whole)
{
    const rv_str any = {NULL, 0};
    rv_buf text = RV_BUF_INIT(2000);
    rv_jwks *set = NULL;
    rv_err *err = NULL;

    int rc = identity_jwks_parse(rv_str_of(key_sets[_i].text), &set, &err);
    if (rc == 0)
        rv_buf_printf(&text, "%d/%d", identity_jwks_find(set, RV_JWT_RS256, any),
                      identity_jwks_find(set, RV_JWT_ES256, any));
    else
        rv_err_write_chain(err, &text);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&text), key_sets[_i].out));
    rv_err_free(err);
    identity_jwks_unref(set);
    rv_buf_fini(&text);
}
END_TEST

START_TEST(a_token_without_kid_needs_that_one_key_fits)
{
    rv_jwks *set = NULL;

    ck_assert_int_eq(
        identity_jwks_parse(RV_STR_LIT(JWKS(JWK_RSA("r1", "") "," JWK_RSA_2("r2") "," JWK_EC("e1", ""))), &set, NULL),
        0);
    ck_assert_int_eq(identity_jwks_find(set, RV_JWT_RS256, (rv_str){NULL, 0}), -2);
    ck_assert_int_eq(identity_jwks_find(set, RV_JWT_ES256, (rv_str){NULL, 0}), 2);
    ck_assert_int_eq(identity_jwks_find(set, RV_JWT_RS256, RV_STR_LIT("r2")), 1);
    ck_assert_int_eq(identity_jwks_find(set, RV_JWT_RS256, RV_STR_LIT("r3")), -1);
    ck_assert_int_eq(identity_jwks_find(set, RV_JWT_HS256, RV_STR_LIT("r1")), -1);
    identity_jwks_unref(set);
}
END_TEST

TCase *jwks_case(void)
{
    TCase *tc = tcase_create("jwks");

    tcase_add_loop_test(tc, a_set_of_keys_is_read_or_refused_as_a_whole, 0, RV_COUNT(key_sets));
    tcase_add_test(tc, a_token_without_kid_needs_that_one_key_fits);
    return tc;
}
