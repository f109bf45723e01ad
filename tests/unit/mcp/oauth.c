/* Tokens, the pure part: a flow is a list of requests that are expected and of the answers to them. */
#include <json-c/json_tokener.h>
#include <stdlib.h>

#include "coreengine/mcp/mcp.h"
#include "tests/kit/ec_keys.h"
#include "tests/kit/rsa_keys.h"
#include "tests/unit/mcp/suites.h"

#define NOW INT64_C(1800000000000000)

/* --- addresses --- */

static const struct {
    const char *url, *origin, *host, *path, *query;
    int port;
    bool is_literal, is_local;
} urls[] = {
    {"https://a.example/mcp?x=1#f", "https://a.example", "a.example", "/mcp", "?x=1", 443, false, false},
    {"HTTP://LocalHost:80", "HTTP://LocalHost:80", "LocalHost", "", "", 80, true, true},
    {"http://127.0.0.1:8080/", "http://127.0.0.1:8080", "127.0.0.1", "/", "", 8080, true, true},
    {"http://[::1]:99/x", "http://[::1]:99", "[::1]", "/x", "", 99, true, true},
    {"http://10.0.0.1/x", "http://10.0.0.1", "10.0.0.1", "/x", "", 80, true, false},
    {"http://127.evil.example/x", "http://127.evil.example", "127.evil.example", "/x", "", 80, false, false},
    {"https://a?q", "https://a", "a", "", "?q", 443, false, false},
    {"ftp://a", NULL, NULL, NULL, NULL, 0, 0, 0},
    {"https://", NULL, NULL, NULL, NULL, 0, 0, 0},
    {"https://:80", NULL, NULL, NULL, NULL, 0, 0, 0},
    {"https://a:0", NULL, NULL, NULL, NULL, 0, 0, 0},
    {"https://a:65536", NULL, NULL, NULL, NULL, 0, 0, 0},
    {"https://a:8x", NULL, NULL, NULL, NULL, 0, 0, 0},
    {"https://[::1", NULL, NULL, NULL, NULL, 0, 0, 0},
    {"https://a b", NULL, NULL, NULL, NULL, 0, 0, 0},
    {"https://a\\b", NULL, NULL, NULL, NULL, 0, 0, 0},
};

START_TEST(an_address_is_taken_apart_or_refused)
{
    struct rv_mcp_url u = {.port = -7};
    bool is = rv_mcp_url_read(rv_str_of(urls[_i].url), &u);

    ck_assert_msg(is == (urls[_i].origin != NULL), "%s", urls[_i].url);
    if (!is) {
        ck_assert_int_eq(u.port, -7); /* a refusal writes nothing */
        return;
    }
    ck_assert(rv_str_is(u.origin, urls[_i].origin));
    ck_assert(rv_str_is(u.host, urls[_i].host));
    ck_assert(rv_str_is(u.path, urls[_i].path));
    ck_assert(rv_str_is(u.query, urls[_i].query));
    ck_assert_int_eq(u.port, urls[_i].port);
    ck_assert_int_eq(rv_mcp_url_is_literal(&u), urls[_i].is_literal);
    ck_assert_int_eq(rv_mcp_url_is_local(&u), urls[_i].is_local);
}
END_TEST

START_TEST(a_user_in_an_address_is_seen)
{
    struct rv_mcp_url u, v;

    ck_assert(rv_mcp_url_read(RV_STR_LIT("https://u:p@a.example:443/"), &u));
    ck_assert(u.has_user);
    ck_assert(rv_str_is(u.host, "a.example"));
    ck_assert(rv_mcp_url_read(RV_STR_LIT("https://A.example/x"), &v));
    ck_assert(!v.has_user);
    ck_assert(rv_mcp_url_has_same_origin(&u, &v));
    ck_assert(rv_mcp_url_read(RV_STR_LIT("http://a.example:443/x"), &v));
    ck_assert(!rv_mcp_url_has_same_origin(&u, &v));
}
END_TEST

START_TEST(queries_are_read_strictly)
{
    static const char query[] = "a=1&b=x%20y+z&c=%zz&d=%4&e&a=2&f=";
    rv_buf b = RV_BUF_INIT(100);

    ck_assert(rv_mcp_query_get(rv_str_of(query), "a", &b));
    ck_assert(rv_mcp_query_get(rv_str_of(query), "b", &b));
    ck_assert(rv_mcp_query_get(rv_str_of(query), "f", &b));
    ck_assert_str_eq(rv_buf_cstr(&b), "1x y z");
    ck_assert(!rv_mcp_query_get(rv_str_of(query), "c", &b));
    ck_assert(!rv_mcp_query_get(rv_str_of(query), "d", &b));
    ck_assert(!rv_mcp_query_get(rv_str_of(query), "e", &b));
    ck_assert(!rv_mcp_query_get(rv_str_of(query), "g", &b));
    rv_buf_fini(&b);
}
END_TEST

/* --- flows --- */

struct turn {
    const char *want; /* "GET url", "POST url form", "ASK url"; a*b: begins with a and has b in it */
    int status;
    const char *answer; /* of ASK: the query */
};
#define PRM                                                                                                            \
    "{\"resource\":\"https://s.example/mcp\",\"authorization_servers\":[\"https://as.example\"],"                      \
    "\"scopes_supported\":[\"read\",\"write\"]}"
#define ENDS                                                                                                           \
    "\"authorization_endpoint\":\"https://as.example/authorize\",\"token_endpoint\":\"https://as.example/token\","     \
    "\"registration_endpoint\":\"https://as.example/register\",\"code_challenge_methods_supported\":[\"S256\"]"
#define META  "{\"issuer\":\"https://as.example\"," ENDS "}"
#define TOKEN "{\"access_token\":\"t1\",\"token_type\":\"bearer\",\"expires_in\":60,\"refresh_token\":\"r1\"}"
#define STATE "state=202122232425262728292a2b2c2d2e2f"
/* {"alg":"ES256","typ":"JWT","kid":"k1"} and what the client says of itself, for a minute. */
#define SIGNED_HEAD "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIn0"
#define SIGNED_CLAIMS                                                                                                  \
    "eyJpc3MiOiJtZSIsInN1YiI6Im1lIiwiYXVkIjoiaHR0cHM6Ly9hcy5leGFtcGxlIiwianRpIjoiMzAzMTMyMzMzNDM1MzYzNzM4"             \
    "MzkzYTNiM2MzZDNlM2YiLCJpYXQiOjE4MDAwMDAwMDAsImV4cCI6MTgwMDAwMDA2MH0"
#define JWT_FOR_AS "e30.eyJzdWIiOiJ3IiwiYXVkIjoiaHR0cHM6Ly9hcy5leGFtcGxlLyJ9.c2ln"
#define JWT_FOR_ENDPOINT                                                                                               \
    "e30.eyJzdWIiOiJ3IiwiYXVkIjpbImh0dHBzOi8veC5leGFtcGxlIiwiaHR0cHM6Ly9hcy5leGFtcGxlL3Rva2VuIl19.c2ln"
#define JWT_FOR_OTHER "e30.eyJzdWIiOiJ3IiwiYXVkIjoiaHR0cHM6Ly9ldmlsLmV4YW1wbGUifQ.c2ln"
#define EXCHANGED(jwt)                                                                                                 \
    "{\"access_token\":\"" jwt                                                                                         \
    "\",\"issued_token_type\":\"urn:ietf:params:oauth:token-type:id-jag\",\"token_type\":\"N_A\"}"
#define ID_TOKEN                                                                                                       \
    .id_token = "it", .idp_token_endpoint = "https://idp.example/token", .idp_client_id = "reeve",                     \
    .idp_client_secret = "p"
#define FIND                                                                                                           \
    {"GET https://s.example/.well-known/oauth-protected-resource/mcp", 200, PRM},                                      \
    {                                                                                                                  \
        "GET https://as.example/.well-known/oauth-authorization-server", 200, META                                     \
    }

static const struct {
    const char *what;
    struct rv_oauth_config config;
    const char *kept, *challenge;
    int status;
    struct turn turns[9];
    int rc;
    const char *error; /* a part, of the text */
    const char *after; /* what is kept; NULL: not looked at */
} flows[] = {
    {.what = "a person approves; the client registers itself",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb"},
     .turns =
         {FIND,
          {"POST https://as.example/register {\"client_name\":\"reeve\",\"application_type\":\"native\"*", 201,
           "{\"client_id\":\"c1\"}"},
          {"ASK https://as.example/authorize?response_type=code&client_id=c1&redirect_uri=http%3A%2F%2F127.0.0.1%3A1"
           "%2Fcb&code_challenge=6oZqdX5MOLq_qBJ8vppAnT4fk6AP8UiP9zX8-Rev_9A&code_challenge_method=S256&" STATE
           "&resource=https%3A%2F%2Fs.example%2Fmcp&scope=read%20write",
           0, "code=k%201&" STATE},
          {"POST https://as.example/token grant_type=authorization_code&code=k%201&redirect_uri=http%3A%2F%2F127.0.0"
           ".1%3A1%2Fcb&code_verifier=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8&resource=https%3A%2F%2Fs.example"
           "%2Fmcp&client_id=c1",
           200, TOKEN}},
     .after =
         "{\"client\":{\"id\":\"c1\",\"issuer\":\"https://as.example\",\"redirect_uri\":\"http://127.0.0.1:1/cb\"},"
         "\"access_token\":\"t1\",\"refresh_token\":\"r1\",\"expires_at\":1800000060,\"scope\":\"read write\","
         "\"issuer\":\"https://as.example\"}"},
    {.what = "the challenge names the metadata and the scope",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .client_id = "me", .client_secret = "s+1"},
     .challenge = "Bearer resource_metadata=\"https://s.example/meta\", scope=\"admin\"",
     .status = 401,
     .turns = {{"GET https://s.example/meta", 200, PRM},
               {"GET https://as.example/.well-known/oauth-authorization-server", 404, ""},
               {"GET https://as.example/.well-known/openid-configuration", 200, META},
               {"ASK *scope=admin", 0, "code=k&" STATE},
               {"POST https://as.example/token [Basic bWU6cyUyQjE=] grant_type=authorization_code&code=k*", 200,
                TOKEN}}},
    {.what = "a client metadata document",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .metadata_url = "https://me.example/client.json"},
     .turns = {{"GET https://s.example/.well-known/oauth-protected-resource/mcp", 404, ""},
               {"GET https://s.example/.well-known/oauth-protected-resource", 200,
                "{\"resource\":\"https://s.example\",\"authorization_servers\":[\"https://as.example/t/\"]}"},
               {"GET https://as.example/.well-known/oauth-authorization-server/t", 404, ""},
               {"GET https://as.example/.well-known/openid-configuration/t", 404, ""},
               {"GET https://as.example/t/.well-known/openid-configuration", 200,
                "{\"issuer\":\"https://as.example/t/\",\"client_id_metadata_document_supported\":true," ENDS "}"},
               {"ASK *client_id=https%3A%2F%2Fme.example%2Fclient.json&", 0, "code=k&" STATE},
               {"POST https://as.example/token grant*", 200, TOKEN}}},
    {.what = "an old server without any metadata",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb"},
     .turns = {{"GET https://s.example/.well-known/oauth-protected-resource/mcp", 404, ""},
               {"GET https://s.example/.well-known/oauth-protected-resource", 404, ""},
               {"GET https://s.example/.well-known/oauth-authorization-server", 404, ""},
               {"GET https://s.example/.well-known/openid-configuration", 404, ""},
               {"POST https://s.example/register *", 200, "{\"client_id\":\"c\",\"client_secret\":\"x\"}"},
               {"ASK https://s.example/authorize?*", 0, "code=k&" STATE},
               {"POST https://s.example/token [Basic Yzp4] grant*", 200, TOKEN}}},
    {.what = "the resource is what the server writes, not its address",
     .config = {.grant = RV_OAUTH_CLIENT, .client_id = "me", .client_secret = "s"},
     .turns = {{"GET *", 200,
                "{\"resource\":\"https://s.example\",\"authorization_servers\":[\"https://as.example\"]}"},
               {"GET https://as.example/.well-known/oauth-authorization-server", 200, META},
               {"POST https://as.example/token [Basic bWU6cw==] grant_type=client_credentials&resource="
                "https%3A%2F%2Fs.example",
                200, TOKEN}}},
    {.what = "client credentials need no person",
     .config = {.grant = RV_OAUTH_CLIENT, .client_id = "me", .client_secret = "s"},
     .turns =
         {FIND,
          {"POST https://as.example/token [Basic bWU6cw==] grant_type=client_credentials&scope=read%20write&resource="
           "https%3A%2F%2Fs.example%2Fmcp",
           200, TOKEN}}},
    {.what = "a client signs who it is",
     .config = {.grant = RV_OAUTH_CLIENT, .client_id = "me", .private_key = EC_PRIVATE, .key_id = "k1"},
     .turns = {FIND,
               {"POST https://as.example/token grant_type=client_credentials&scope=read%20write&resource="
                "https%3A%2F%2Fs.example%2Fmcp&client_id=me&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3A"
                "client-assertion-type%3Ajwt-bearer&client_assertion=" SIGNED_HEAD "." SIGNED_CLAIMS ".*",
                200, TOKEN}}},
    {.what = "a client signs who it is beside the code of a person",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .client_id = "me", .private_key = RSA_PRIVATE},
     .turns = {FIND,
               {"ASK *client_id=me&", 0, "code=k&" STATE},
               {"POST https://as.example/token grant_type=authorization_code&code=k*&client_assertion=eyJhbGciOiJSUzI1",
                200, TOKEN}}},
    {.what = "an id that a registration gave has no key",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .private_key = EC_PRIVATE},
     .kept = "{\"client\":{\"id\":\"c1\",\"issuer\":\"https://as.example\"}}",
     .turns = {FIND, {"ASK *client_id=c1&", 0, "code=k&" STATE}, {"POST *&client_id=c1", 200, TOKEN}}},
    {.what = "an authorization server that does not take the algorithm",
     .config = {.grant = RV_OAUTH_CLIENT, .client_id = "me", .private_key = EC_PRIVATE},
     .turns =
         {{"GET *", 200, PRM},
          {"GET *", 200,
           "{\"issuer\":\"https://as.example\",\"token_endpoint_auth_signing_alg_values_supported\":[\"RS256\"]," ENDS
           "}"}},
     .rc = RV_E_DENIED,
     .error = "no assertion signed with ES256"},
    {.what = "a private key that is none",
     .config = {.grant = RV_OAUTH_CLIENT, .client_id = "me", .private_key = "hush"},
     .turns = {FIND},
     .rc = RV_E_INVALID,
     .error = "private_key: not an RSA key"},
    {.what = "an assertion that another one signed",
     .config = {.grant = RV_OAUTH_ASSERTION, .client_id = "me", .assertion = JWT_FOR_AS "\n", .scope = "read"},
     .turns = {FIND,
               {"POST https://as.example/token "
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" JWT_FOR_AS
                "&scope=read&resource=https%3A%2F%2Fs.example%2Fmcp&client_id=me",
                200, TOKEN}}},
    {.what = "an assertion says who the client is",
     .config = {.grant = RV_OAUTH_ASSERTION, .assertion = JWT_FOR_ENDPOINT},
     .turns = {FIND,
               {"POST https://as.example/token grant_type=*&resource=https%3A%2F%2Fs.example%2Fmcp", 200, TOKEN}}},
    {.what = "an assertion for another server is not sent to this one",
     .config = {.grant = RV_OAUTH_ASSERTION, .client_id = "me", .assertion = JWT_FOR_OTHER},
     .turns = {FIND},
     .rc = RV_E_DENIED,
     .error = "not for the authorization server of the server, https://as.example"},
    {.what = "an assertion for no one",
     .config = {.grant = RV_OAUTH_ASSERTION, .assertion = "e30.e30.x"},
     .turns = {FIND},
     .rc = RV_E_DENIED,
     .error = "not for the authorization server"},
    {.what = "an assertion that is not a JWT",
     .config = {.grant = RV_OAUTH_ASSERTION, .assertion = "hush"},
     .turns = {FIND},
     .rc = RV_E_INVALID,
     .error = "not a JWT"},
    {.what = "an assertion that is refused is not sent again",
     .config = {.grant = RV_OAUTH_ASSERTION, .assertion = JWT_FOR_AS},
     .turns = {FIND, {"POST *", 400, "{\"error\":\"invalid_grant\"}"}},
     .rc = RV_E_DENIED,
     .error = "does not give a token: invalid_grant"},
    {.what = "an identity provider makes an assertion",
     .config = {.grant = RV_OAUTH_ID_TOKEN, .client_id = "me", .client_secret = "s", ID_TOKEN},
     .turns =
         {FIND,
          {"POST https://idp.example/token [Basic cmVldmU6cA==] grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3A"
           "token-exchange&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid-jag&audience=https%3A%2F%"
           "2F"
           "as.example&resource=https%3A%2F%2Fs.example%2Fmcp&scope=read%20write&subject_token=it&subject_token_type="
           "urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid_token",
           200, EXCHANGED(JWT_FOR_AS)},
          {"POST https://as.example/token [Basic bWU6cw==] grant_type=*&assertion=" JWT_FOR_AS "&", 200, TOKEN}}},
    {.what = "an identity provider that makes an assertion for another server",
     .config = {.grant = RV_OAUTH_ID_TOKEN, .client_id = "me", ID_TOKEN},
     .turns = {FIND, {"POST https://idp.example/token *", 200, EXCHANGED(JWT_FOR_OTHER)}},
     .rc = RV_E_DENIED,
     .error = "not for the authorization server"},
    {.what = "an identity provider that gives a token of another type",
     .config = {.grant = RV_OAUTH_ID_TOKEN, .client_id = "me", ID_TOKEN},
     .turns = {FIND, {"POST https://idp.example/token *", 200, TOKEN}},
     .rc = RV_E_PARSE,
     .error = "no assertion"},
    {.what = "an identity provider that says no",
     .config = {.grant = RV_OAUTH_ID_TOKEN, .client_id = "me", ID_TOKEN},
     .turns = {FIND, {"POST https://idp.example/token *", 400, "{\"error\":\"invalid_grant\"}"}},
     .rc = RV_E_DENIED,
     .error = "the identity provider does not give a token: invalid_grant"},
    {.what = "an identity provider without https",
     .config = {.grant = RV_OAUTH_ID_TOKEN,
                .client_id = "me",
                .id_token = "it",
                .idp_token_endpoint = "http://idp.example/token",
                .idp_client_id = "reeve"},
     .turns = {FIND},
     .rc = RV_E_DENIED,
     .error = "https"},
    {.what = "a refresh needs no person",
     .config = {.client_id = "me"},
     .status = 401,
     .kept = "{\"refresh_token\":\"r0\",\"access_token\":\"t0\",\"issuer\":\"https://as.example\",\"scope\":\"read\"}",
     .turns =
         {FIND,
          {"POST https://as.example/token grant_type=refresh_token&refresh_token=r0&resource=https%3A%2F%2Fs.example"
           "%2Fmcp&client_id=me",
           200, "{\"access_token\":\"t1\",\"token_type\":\"Bearer\"}"}},
     .after =
         "{\"refresh_token\":\"r0\",\"access_token\":\"t1\",\"issuer\":\"https://as.example\",\"scope\":\"read\"}"},
    {.what = "a refresh token that is not good any more",
     .config = {.client_id = "me", .server = "wiki"},
     .status = 401,
     .kept = "{\"refresh_token\":\"r0\",\"access_token\":\"t0\"}",
     .turns = {FIND, {"POST https://as.example/token grant_type=refresh*", 400, "{\"error\":\"invalid_grant\"}"}},
     .rc = RV_E_DENIED,
     .error = "reeve mcp login PIPELINE wiki",
     .after = "{}"},
    {.what = "more than before is asked for, not something else",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .client_id = "me"},
     .status = 403,
     .challenge = "Bearer error=\"insufficient_scope\", scope=\"write\"",
     .kept = "{\"refresh_token\":\"r0\",\"access_token\":\"t0\",\"scope\":\"read\"}",
     .turns = {FIND, {"ASK *scope=read%20write", 0, "code=k&" STATE}, {"POST *", 200, TOKEN}}},
    {.what = "a login continues what was refused before",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .client_id = "me"},
     .kept =
         "{\"scope\":\"read\",\"challenge\":{\"scope\":\"admin read\",\"resource_metadata\":\"https://s.example/m\"}}",
     .turns = {{"GET https://s.example/m", 200, PRM},
               {"GET https://as.example/.well-known/oauth-authorization-server", 200, META},
               {"ASK *scope=read%20admin", 0, "code=k&" STATE},
               {"POST *", 200, TOKEN}}},
    {.what = "no person can be asked",
     .config = {.server = "wiki"},
     .status = 401,
     .turns = {FIND},
     .rc = RV_E_DENIED,
     .error = "reeve mcp login PIPELINE wiki"},
    {.what = "metadata that are not JSON do not stand for those of the origin",
     .turns = {{"GET *", 200, "<html>"}, {"GET *", 404, ""}},
     .rc = RV_E_PARSE,
     .error = "not a JSON object"},
    {.what = "metadata that are a list",
     .turns = {{"GET *", 200, "[]"}, {"GET *", 200, ""}},
     .rc = RV_E_PARSE,
     .error = "not a JSON object"},
    {.what = "metadata of another server",
     .turns = {{"GET *", 200,
                "{\"resource\":\"https://other.example/mcp\",\"authorization_servers\":[\"https://a\"]}"}},
     .rc = RV_E_DENIED,
     .error = "about another server"},
    {.what = "metadata of another path",
     .turns = {{"GET *", 200, "{\"resource\":\"https://s.example/mc\",\"authorization_servers\":[\"https://a\"]}"}},
     .rc = RV_E_DENIED,
     .error = "about another server"},
    {.what = "metadata without an authorization server",
     .turns = {{"GET *", 200, "{\"resource\":\"https://s.example/mcp\"}"}},
     .rc = RV_E_NOT_FOUND,
     .error = "no authorization server"},
    {.what = "an authorization server without https",
     .turns = {{"GET *", 200,
                "{\"resource\":\"https://s.example/mcp\",\"authorization_servers\":[\"http://a.example\"]}"}},
     .rc = RV_E_DENIED,
     .error = "https"},
    {.what = "another issuer",
     .turns = {{"GET *", 200, PRM}, {"GET *", 200, "{\"issuer\":\"https://as.example/\"," ENDS "}"}},
     .rc = RV_E_DENIED,
     .error = "another issuer"},
    {.what = "no PKCE",
     .turns = {{"GET *", 200, PRM},
               {"GET *", 200, "{\"issuer\":\"https://as.example\",\"token_endpoint\":\"https://as.example/t\"}"}},
     .rc = RV_E_DENIED,
     .error = "PKCE"},
    {.what = "an endpoint without https",
     .config = {.grant = RV_OAUTH_CLIENT, .client_id = "me", .client_secret = "s"},
     .turns = {{"GET *", 200, PRM},
               {"GET *", 200, "{\"issuer\":\"https://as.example\",\"token_endpoint\":\"http://as.example/t\"}"}},
     .rc = RV_E_DENIED,
     .error = "https"},
    {.what = "metadata in the challenge without https",
     .challenge = "Bearer resource_metadata=\"http://169.254.169.254/x\"",
     .rc = RV_E_DENIED,
     .error = "https"},
    {.what = "another authorization server than before",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .client_id = "me"},
     .kept = "{\"issuer\":\"https://before.example\",\"refresh_token\":\"r\",\"access_token\":\"t\"}",
     .turns = {FIND},
     .rc = RV_E_DENIED,
     .error = "another authorization server",
     .after = "{\"issuer\":\"https://before.example\"}"},
    {.what = "a registration is made again for another authorization server",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb"},
     .kept = "{\"issuer\":\"https://b.example\",\"client\":{\"id\":\"old\",\"issuer\":\"https://b.example\"}}",
     .turns = {FIND, {"POST https://as.example/register *", 400, "{\"error\":\"invalid_redirect_uri\"}"}},
     .rc = RV_E_DENIED,
     .error = "invalid_redirect_uri"},
    {.what = "the person says no",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .client_id = "me"},
     .turns = {FIND, {"ASK *", 0, "error=access_denied&" STATE}},
     .rc = RV_E_DENIED,
     .error = "access_denied"},
    {.what = "an answer of another issuer is not even shown",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .client_id = "me"},
     .turns = {FIND, {"ASK *", 0, "error=secret&iss=https%3A%2F%2Fevil&" STATE}},
     .rc = RV_E_DENIED,
     .error = "does not come from the authorization server"},
    {.what = "an issuer that is promised has to come",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .client_id = "me"},
     .turns = {{"GET *", 200, PRM},
               {"GET *", 200,
                "{\"issuer\":\"https://as.example\",\"authorization_response_iss_parameter_supported\":true," ENDS "}"},
               {"ASK *", 0, "code=k&" STATE}},
     .rc = RV_E_DENIED,
     .error = "does not come from the authorization server"},
    {.what = "an answer of another login",
     .config = {.redirect_uri = "http://127.0.0.1:1/cb", .client_id = "me"},
     .turns = {FIND, {"ASK *", 0, "code=k&state=guess"}},
     .rc = RV_E_INVALID,
     .error = "does not belong"},
    {.what = "a token that would end the header",
     .config = {.grant = RV_OAUTH_CLIENT, .client_id = "me", .client_secret = "s"},
     .turns = {FIND, {"POST *", 200, "{\"access_token\":\"a\\r\\nX: y\",\"token_type\":\"Bearer\"}"}},
     .rc = RV_E_PARSE,
     .error = "none that can be sent"},
    {.what = "a token of another kind",
     .config = {.grant = RV_OAUTH_CLIENT, .client_id = "me", .client_secret = "s"},
     .turns = {FIND, {"POST *", 200, "{\"access_token\":\"a\",\"token_type\":\"DPoP\"}"}},
     .rc = RV_E_PARSE,
     .error = "Bearer"},
    {.what = "no credentials",
     .config = {.grant = RV_OAUTH_CLIENT, .client_id = "me"},
     .turns = {FIND},
     .rc = RV_E_DENIED,
     .error = "not configured"},
    {.what = "an authorization server that is down",
     .config = {.client_id = "me"},
     .kept = "{\"refresh_token\":\"r0\",\"access_token\":\"t0\"}",
     .status = 401,
     .turns = {FIND, {"POST *", 503, ""}},
     .rc = RV_E_PROVIDER,
     .error = "HTTP 503",
     .after = "{\"refresh_token\":\"r0\",\"access_token\":\"t0\"}"},
};

static bool fits(const char *want, const char *got)
{
    const char *star = strchr(want, '*');

    if (!star)
        return strcmp(want, got) == 0;
    return strncmp(want, got, (size_t)(star - want)) == 0 && strstr(got, star + 1);
}

static void check_step(const char *what, const struct rv_oauth_step *s, const char *want)
{
    rv_buf b = RV_BUF_INIT(20000);

    rv_buf_printf(&b, "%s %s", s->kind == RV_OAUTH_ASK ? "ASK" : s->method, s->url);
    if (s->authorization)
        rv_buf_printf(&b, " [%s]", s->authorization);
    if (s->body.len)
        rv_buf_printf(&b, " %.*s", RV_STR_ARG(s->body));
    ck_assert_msg(want && fits(want, rv_buf_cstr(&b)), "%s: %s, not %s", what, rv_buf_cstr(&b), want ? want : "an end");
    rv_buf_fini(&b);
}

static int flow(int i, json_object *kept, rv_err **err)
{
    struct rv_oauth_config config = flows[i].config;
    unsigned char random[RV_OAUTH_RANDOM];
    rv_oauth *o = NULL;

    for (size_t k = 0; k < sizeof random; k++)
        random[k] = (unsigned char)k;
    config.resource = "https://s.example/mcp";
    int rc = rv_oauth_new(
        &config,
        &(const struct rv_oauth_start){
            .kept = kept, .status = flows[i].status, .challenge = rv_str_of(flows[i].challenge), .random = random},
        &o, err);
    for (size_t k = 0; rc == 0; k++) {
        const struct rv_oauth_step *s = rv_oauth_step(o);
        const struct turn *t = &flows[i].turns[k];
        if (s->kind == RV_OAUTH_DONE) {
            ck_assert_msg(!t->want, "%s: ends before %s", flows[i].what, t->want);
            break;
        }
        check_step(flows[i].what, s, t->want);
        rc = s->kind == RV_OAUTH_ASK ? rv_oauth_on_redirect(o, rv_str_of(t->answer), NOW, err)
                                     : rv_oauth_on_answer(o, t->status, rv_str_of(t->answer), NOW, err);
    }
    rv_oauth_free(o);
    return rc;
}

START_TEST(a_flow_asks_for_what_it_needs_and_believes_only_what_fits)
{
    json_object *kept = json_tokener_parse(flows[_i].kept ? flows[_i].kept : "{}");
    rv_err *err = NULL;
    rv_buf text = RV_BUF_INIT(10000);
    int rc = flow(_i, kept, &err);

    rv_err_write_text(err, false, &text);
    ck_assert_msg(rc == flows[_i].rc, "%s: %s", flows[_i].what, rv_buf_cstr(&text));
    if (flows[_i].error)
        ck_assert_msg(strstr(rv_buf_cstr(&text), flows[_i].error) != NULL, "%s: %s", flows[_i].what,
                      rv_buf_cstr(&text));
    if (flows[_i].after) {
        json_object *after = json_tokener_parse(flows[_i].after);
        ck_assert_msg(rv_json_equal(kept, after), "%s: %s", flows[_i].what, json_object_to_json_string(kept));
        json_object_put(after);
    }
    rv_err_free(err);
    rv_buf_fini(&text);
    json_object_put(kept);
}
END_TEST

START_TEST(a_token_is_sent_until_shortly_before_its_end)
{
    json_object *kept = json_tokener_parse("{\"access_token\":\"t\",\"expires_at\":1000}");
    rv_buf b = RV_BUF_INIT(100);

    ck_assert(rv_oauth_read_token(kept, INT64_C(970) * 1000000, &b));
    ck_assert(!rv_oauth_read_token(kept, INT64_C(971) * 1000000, &b));
    json_object_object_del(kept, "expires_at");
    ck_assert(rv_oauth_read_token(kept, NOW, &b));
    ck_assert_str_eq(rv_buf_cstr(&b), "tt");
    ck_assert(!rv_oauth_read_token(NULL, NOW, &b));
    rv_buf_fini(&b);
    json_object_put(kept);
}
END_TEST

START_TEST(a_refusal_is_noted_for_a_login)
{
    json_object *kept = json_object_new_object();

    ck_assert_int_eq(rv_oauth_note(kept, RV_STR_LIT("Bearer scope=\"a b\", realm=\"x\""), NULL), 0);
    ck_assert_str_eq(json_object_to_json_string_ext(kept, 0), "{\"challenge\":{\"scope\":\"a b\"}}");
    json_object_put(kept);
}
END_TEST

TCase *oauth_case(void)
{
    TCase *c = tcase_create("oauth");

    tcase_add_loop_test(c, an_address_is_taken_apart_or_refused, 0, RV_COUNT(urls));
    tcase_add_test(c, a_user_in_an_address_is_seen);
    tcase_add_test(c, queries_are_read_strictly);
    tcase_add_loop_test(c, a_flow_asks_for_what_it_needs_and_believes_only_what_fits, 0, RV_COUNT(flows));
    tcase_add_test(c, a_token_is_sent_until_shortly_before_its_end);
    tcase_add_test(c, a_refusal_is_noted_for_a_login);
    return c;
}
